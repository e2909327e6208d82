"""Knowledge of some games: position keys, evaluations, move orderings. Other games have none.

Evaluations are player 0's, strictly between a loss (-1) and a win (1), and cheap: a few microseconds.

| game | evaluation |
|---|---|
| tic_tac_toe, connect_four | lines still open to a player: those that hold no stone of the other's |
| breakthrough | pieces, each worth more the further it has come |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import pyspiel

from precomp_games._support.checks import public

from .depth_first import Evaluator, Ordering


class Known(NamedTuple):
    """Knowledge of a game; None where there is none.

    Attributes:
      evaluator: A cheap evaluation of positions.
      ordering: Moves in an order that costs next to nothing.
      position_key: A key for transposition tables and for `HistoryTree`. Where the board does not show who is
        to move, nor does the key: searches add that themselves, and so do the levels of a history tree.
    """

    evaluator: Evaluator | None = None
    ordering: Ordering | None = None
    position_key: Callable[[Any], Hashable] | None = None


@public
def known_of(game: pyspiel.Game) -> Known:
    """Return the knowledge of a game.

    Raises:
      ValueError: `game` is no game.
    """
    # The text of these games is the board, and the future depends on nothing else but the player to move.
    name, settings = game.get_type().short_name, game.get_parameters()
    if name == "tic_tac_toe":
        return Known(_open_lines(rows=3, columns=3, length=3), None, str)
    if name == "connect_four":
        rows, columns, middle = settings["rows"], settings["columns"], (settings["columns"] - 1) / 2
        by_column = _by_number(lambda column: abs(column - middle))
        return Known(_open_lines(rows, columns, settings["x_in_row"]), by_column, str)
    if name == "breakthrough":  # the last bit marks captures
        return Known(_advancement(settings["rows"]), _by_number(lambda action: -(action & 1)), str)
    return Known()


def _by_number(rank: Callable[[int], float]) -> Ordering:
    """Return an ordering that looks at the actions only, and so is worked out once for each set of them."""
    orders: dict[tuple[int, ...], list[int]] = {}

    def ordering(state: Any, actions: list[int]) -> list[int]:
        key = tuple(actions)
        order = orders.get(key)
        if order is None:
            order = orders[key] = sorted(actions, key=rank)
        return order

    return ordering


def _open_lines(rows: int, columns: int, length: int) -> Evaluator:
    """Return (lines open to player 0 - lines open to player 1) / (number of lines + 1).

    A board is read as one integer a player: a bit a cell, and one for each line's end, which is nobody's.
    """
    empty = "\n".join(["." * columns] * rows)
    bits = len(empty)
    cells = int(empty.translate({ord("."): "1", ord("\n"): "0"}), 2)
    others = [str.maketrans(".xo\n", digits) for digits in ("0010", "0100")]  # x: player 0
    shifts = (1, columns + 1, columns, columns + 2)

    def count(free: int) -> int:
        lines = 0
        for shift in shifts:
            run = free
            for k in range(1, length):
                run &= free >> (k * shift)
            lines += run.bit_count()
        return lines

    total = count(cells) + 1

    def evaluate(state: Any) -> float:
        board = str(state)[:bits]
        # The player's own cells and the free ones: all but the other's.
        first, second = (count(cells & ~int(board.translate(other), 2)) for other in others)
        return (first - second) / total

    return evaluate


def _advancement(rows: int) -> Evaluator:
    """Return an evaluation: player 0's pieces (b, moving down the text) less player 1's (w), by rows gone.

    A piece that has gone k rows counts 1 + (k / (rows - 1))^2; the sum is divided by what both sides have.
    """
    far = [1.0 + (k / (rows - 1)) ** 2 for k in range(rows)]

    def evaluate(state: Any) -> float:
        black = white = 0.0
        for k, line in enumerate(str(state).split("\n")[:rows]):
            black += far[k] * line.count("b")
            white += far[rows - 1 - k] * line.count("w")
        return 0.9 * (black - white) / (black + white)

    return evaluate
