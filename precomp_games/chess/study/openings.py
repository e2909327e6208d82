"""What openings are called, by position: lichess's list of names (vendor/chess-openings, CC0)."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Hashable, Mapping

import chess

_MOVE = 4  # characters; no opening has a promotion


def opening_name(board: chess.Board) -> str | None:
    """Code and name of the opening at a position, such as "B33 Sicilian Defense: Lasker-Pelikan Variation".

    None where the list has no name for it: then the game's opening is that of the last position with one.
    """
    return _names().get(_position(board))


@functools.cache
def _names() -> Mapping[Hashable, str]:
    """Of several entries that come to a position, the first one by its moves counts."""
    folder = importlib.resources.files("precomp_games.chess.study")
    text = folder.joinpath("vendor", "chess-openings", "openings.tsv").read_text(encoding="utf-8")
    board, names = chess.Board(), dict[Hashable, str]()
    for line in text.splitlines():
        code, shared, moves, name = line.split("\t")
        while len(board.move_stack) > int(shared):
            board.pop()
        for first in range(0, len(moves), _MOVE):
            board.push(chess.Move.from_uci(moves[first : first + _MOVE]))
        names.setdefault(_position(board), f"{code} {name}")
    return names


def _position(board: chess.Board) -> Hashable:
    """Where the pieces stand, and who is to move: so much tells openings apart, and an EPD takes longer."""
    pieces = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    return *pieces, board.occupied_co[chess.WHITE], board.turn
