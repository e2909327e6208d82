"""What a pool's engines are asked: positions, or turns of games, and in which order."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import chess

from precomp_games.chess.engines.searches import Asked, SearchLimit, check_position, is_game

MOST_NODES = 1_000_000  # up to which a search with too few lines is made again, for longer
MOST_MILLISECONDS = 10_000


class Turn(NamedTuple):
    """A turn of a game that an engine plays: where it stands is a part of what the engine answers.

    Attributes:
        start: the FEN that the game began with.
        moves: what was played since, by both sides.
        limit, multipv: of all searches of the game.
    """

    start: str
    moves: tuple[str, ...]
    limit: SearchLimit
    multipv: int

    @property
    def before(self) -> Turn | None:
        """The engine's turn before this one."""
        return self._replace(moves=self.moves[:-2]) if len(self.moves) > 1 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A position to search, or a game to play on.

    Attributes:
        index: which of the positions it is.
        epd, fen: the position as given, and as it stands.
        limit, multipv: what is asked for.
        lines: how many lines must come.
        samples: how many fresh searches tell what is played; 0 where that is not asked for.
        turn: of which game; None: it is a position alone.
    """

    index: int
    epd: str
    fen: str
    limit: SearchLimit
    multipv: int
    lines: int
    samples: int = 0
    turn: Turn | None = None

    @classmethod
    def of(cls, index: int, asked: Asked) -> Question:
        """What is asked for; ValueError where it cannot be searched."""
        epd, limit, multipv, samples = asked
        board = check_position(epd)
        turn = None
        if is_game(epd):
            start, moves = board.root().fen(en_passant="fen"), tuple(m.uci() for m in board.move_stack)
            turn = Turn(start, moves, limit, multipv)
        fen, lines = board.fen(en_passant="fen"), _number_of_lines(board, multipv)
        return cls(index, epd, fen, limit, multipv, lines, samples, turn)

    @property
    def position(self) -> str:
        """The arguments of UCI's `position`."""
        if self.turn is None:
            return f"fen {self.fen}"
        moves = ["moves", *self.turn.moves] if self.turn.moves else []
        return " ".join([f"fen {self.turn.start}", *moves])

    def longer(self) -> Question | None:
        """With twice its limit, for more lines; None where that is out of proportion."""
        nodes, milliseconds = self.limit.nodes, self.limit.movetime_ms
        if nodes is not None and 2 * nodes <= MOST_NODES:
            return dataclasses.replace(self, limit=SearchLimit(nodes=2 * nodes))
        if milliseconds is not None and 2 * milliseconds <= MOST_MILLISECONDS:
            return dataclasses.replace(self, limit=SearchLimit(movetime_ms=2 * milliseconds))
        return None


def turns_before(last: Turn | None, question: Question) -> list[Question]:
    """The searches of a game's earlier turns that an engine has to make before a question.

    None where its last one was the turn before this one; all of them where it was of another game.
    """
    found: list[Question] = []
    if question.turn is None:
        return found
    board, moves = chess.Board(question.turn.start), question.turn.moves
    for k, move in enumerate(moves):
        if (len(moves) - k) % 2 == 0:
            turn = question.turn._replace(moves=moves[:k])
            step = dataclasses.replace(
                question,
                fen=board.fen(en_passant="fen"),
                limit=turn.limit,
                lines=_number_of_lines(board, question.multipv),
                turn=turn,
            )
            found = [] if turn == last else [*found, step]
        board.push_uci(move)
    return found


def _number_of_lines(board: chess.Board, multipv: int) -> int:
    return sum(1 for _ in islice(board.legal_moves, multipv))


class Questions:
    """Questions in their order, but that an engine stays in its game: after one turn comes the next."""

    def __init__(self, questions: list[Question]) -> None:
        self._left = {question.index: question for question in questions}
        self._order = collections.deque(self._left)
        self._next: dict[Turn, list[int]] = {}
        for question in questions:
            if question.turn is not None and question.turn.before is not None:
                self._next.setdefault(question.turn.before, []).append(question.index)

    def take(self, turns: Iterable[Turn]) -> Question | None:
        """The next one, where idle engines' games stand at these turns; None where none is left."""
        following = (k for turn in turns for k in self._next.get(turn, ()))
        index = next((k for k in following if k in self._left), None)
        while index is None and self._order:
            first = self._order.popleft()
            index = first if first in self._left else None
        return None if index is None else self._left.pop(index)
