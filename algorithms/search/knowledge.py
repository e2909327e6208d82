"""Knowledge of some games: position keys, evaluations, move orderings. Other games have none.

Evaluations are player 0's, strictly between a loss (-1) and a win (1), and cheap: a few microseconds.

| game | evaluation |
|---|---|
| tic_tac_toe, connect_four | lines still open to a player: those that hold no stone of the other's |
| breakthrough | pieces, each worth more the further it has come |
"""

from __future__ import annotations

import functools
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
        ranks = [abs(column - middle) for column in range(columns)]
        by_column = functools.partial(_in_order, ranks.__getitem__, {})
        return Known(_open_lines(rows, columns, settings["x_in_row"]), by_column, str)
    if name == "breakthrough":
        far = [1.0 + (k / (settings["rows"] - 1)) ** 2 for k in range(settings["rows"])]
        first = functools.partial(_in_order, _captures_first, {})
        return Known(functools.partial(_advancement, far), first, str)
    return Known()


# Partial functions, unlike closures, can be pickled, and so travel to other processes.


def _in_order(
    rank: Callable[[int], float], orders: dict[tuple[int, ...], list[int]], state: Any, actions: list[int]
) -> list[int]:
    """Return actions by rank; it looks at them only, and so works it out once for each set of them."""
    key = tuple(actions)
    if key not in orders:
        orders[key] = sorted(actions, key=rank)
    return orders[key]


def _captures_first(action: int) -> int:
    return -(action & 1)  # the last bit of an action of breakthrough marks captures


def _open_lines(rows: int, columns: int, length: int) -> Evaluator:
    """Return an evaluation: (lines open to player 0 - lines open to player 1) / (number of lines + 1).

    A board is read as one integer a player: a bit a cell, and one for each line's end, which is nobody's.
    """
    empty = "\n".join(["." * columns] * rows)
    cells = int(empty.translate({ord("."): "1", ord("\n"): "0"}), 2)
    shifts = (1, columns + 1, columns, columns + 2)
    total = _lines(cells, shifts, length) + 1
    return functools.partial(_open_share, cells, len(empty), shifts, length, total)


_OTHERS = [str.maketrans(".xo\n", digits) for digits in ("0010", "0100")]  # x: player 0


def _open_share(cells: int, bits: int, shifts: tuple[int, ...], length: int, total: int, state: Any) -> float:
    board = str(state)[:bits]
    # The player's own cells and the free ones: all but the other's.
    first, second = (_lines(cells & ~int(board.translate(other), 2), shifts, length) for other in _OTHERS)
    return (first - second) / total


def _lines(free: int, shifts: tuple[int, ...], length: int) -> int:
    """Return how many lines of a length lie in these cells."""
    lines = 0
    for shift in shifts:
        run = free
        for k in range(1, length):
            run &= free >> (k * shift)
        lines += run.bit_count()
    return lines


def _advancement(far: list[float], state: Any) -> float:
    """Return player 0's pieces (b, moving down the text) less player 1's (w), by rows gone.

    A piece that has gone k rows counts far[k] = 1 + (k / (rows - 1))^2; the sum is divided by what both sides
    have.
    """
    black = white = 0.0
    for k, line in enumerate(str(state).split("\n")[: len(far)]):
        black += far[k] * line.count("b")
        white += far[-1 - k] * line.count("w")
    return 0.9 * (black - white) / (black + white)
