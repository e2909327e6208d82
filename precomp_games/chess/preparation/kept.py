"""A book that is there already: at its positions it says what is memorized, elsewhere an engine does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import chess

from precomp_games._support.arguments import ArgumentError
from precomp_games._support.checks import shown
from precomp_games.chess.evaluation.policies import EngineMenu, EnginePolicy
from precomp_games.chess.game import ChessState, action_of, is_legal

__all__ = ["KeptMoves", "check_kept"]


@dataclasses.dataclass(frozen=True)
class KeptMoves:
    """What can be memorized, as a menu, where the moves at some positions are known already.

    Attributes:
      others: What can be memorized elsewhere.
      moves: The move to play by the EPD of the position (`board_key`).
    """

    others: EngineMenu | EnginePolicy
    moves: Mapping[str, chess.Move]

    def entries_batch(self, states: Sequence[ChessState]) -> list[Sequence[Any]]:
        """The menu at each of several states; at a known position it is the known move alone."""
        unknown = [state for state in states if state.epd not in self.moves]
        if isinstance(self.others, EngineMenu):
            answers: list[Sequence[Any]] = list(self.others.entries_batch(unknown))
        else:
            answers = [[row] for row in self.others.action_probabilities_batch(unknown)]
        rest = iter(answers)
        return [
            [action_of(self.moves[state.epd])] if state.epd in self.moves else next(rest) for state in states
        ]

    def weight(self, state: ChessState) -> float:
        """How many penalties a position costs: nothing where its move is known."""
        return 0.0 if state.epd in self.moves else 1.0


def check_kept(value: Mapping[str, chess.Move], player: int) -> dict[str, chess.Move]:
    """Moves by the EPDs of positions at which a player is to move.

    Raises:
      ValueError: a position cannot be read or is the other side's, or a move is not legal.
    """
    for epd, move in value.items():
        try:
            board = chess.Board(f"{epd} 0 1")
        except (TypeError, ValueError):
            board = None
        if board is None or board.turn != (player == 0):
            raise ArgumentError(
                f"expected keep to have positions of {('White', 'Black')[player]}'s as EPDs, got {shown(epd)}"
            )
        if not isinstance(move, chess.Move) or not is_legal(board, move):
            raise ArgumentError(f"expected keep to have a legal move at {epd!r}, got {shown(move)}")
    return dict(value)
