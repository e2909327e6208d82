"""What is known of some games: position keys, evaluations, move orderings. For others there is nothing here.

Evaluations are player 0's, strictly between a loss (-1) and a win (1), and cheap: a few microseconds.

| game | evaluation |
|---|---|
| tic_tac_toe, connect_four | lines still open to a player: those that hold no stone of the other's |
| breakthrough | pieces, each worth more the further it has come |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import pyspiel

from precomp_games._support.checks import public

from .depth_first import Evaluator, Ordering

# Games whose text is the board, and whose future depends on nothing but the board and the player to move.
_BOARDS = ("tic_tac_toe", "connect_four", "breakthrough")


@public
def default_position_key(game: pyspiel.Game) -> Callable[[Any], Hashable] | None:
    """A key for transposition tables and for `HistoryTree`; None where none is known.

    Where the board does not say who is to move, nor does the key: searches add that themselves, and so do
    the levels of a history tree.

    Raises:
      ValueError: `game` is no game.
    """
    return str if game.get_type().short_name in _BOARDS else None


@public
def default_evaluator(game: pyspiel.Game) -> Evaluator | None:
    """A cheap evaluation of the game's positions; None, a draw, where none is known.

    Raises:
      ValueError: `game` is no game.
    """
    name = game.get_type().short_name
    if name == "tic_tac_toe":
        return _open_lines(rows=3, columns=3, length=3)
    if name == "connect_four":
        settings = game.get_parameters()
        return _open_lines(settings["rows"], settings["columns"], settings["x_in_row"])
    if name == "breakthrough":
        return _advancement(game.get_parameters()["rows"])
    return None


@public
def default_ordering(game: pyspiel.Game) -> Ordering | None:
    """An ordering that costs next to nothing; None, the game's own order, where none is known.

    Raises:
      ValueError: `game` is no game.
    """
    name = game.get_type().short_name
    if name == "connect_four":
        middle = (game.get_parameters()["columns"] - 1) / 2
        return _by_number(lambda column: abs(column - middle))
    if name == "breakthrough":
        return _by_number(lambda action: -(action & 1))  # the last bit says whether it captures
    return None


def _by_number(rank: Callable[[int], float]) -> Ordering:
    """An ordering that looks at the actions only, and so is worked out once for each set of them."""
    orders: dict[tuple[int, ...], list[int]] = {}

    def ordering(state: Any, actions: list[int]) -> list[int]:
        key = tuple(actions)
        order = orders.get(key)
        if order is None:
            order = orders[key] = sorted(actions, key=rank)
        return order

    return ordering


def _open_lines(rows: int, columns: int, length: int) -> Evaluator:
    """(lines open to player 0 - lines open to player 1) / (number of lines + 1).

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
    """Pieces of player 0 (b, moving down the text) less those of player 1 (w), weighted by rows gone.

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
