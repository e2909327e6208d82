"""Start positions for tests of engines: where games left books, and White scored near a given value."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Sequence

import chess
import chess.pgn

from precomp_games._support.files import atomic_write
from precomp_games.chess.books.book import BookExit, points
from precomp_games.chess.books.pgn import pgn_text, set_headers
from precomp_games.chess.play.match import MatchResult

_LEAST_GAMES = 4  # that say what a position scores
_NEAR = 0.1  # how far its score may be from the value


@dataclasses.dataclass(frozen=True)
class Opening:
    """A start position.

    Attributes:
      start: where its moves begin.
      moves: that lead to it.
      games: how many went on from there.
      score: White's mean score in them.
    """

    start: chess.Board
    moves: tuple[chess.Move, ...]
    games: int
    score: float

    @property
    def board(self) -> chess.Board:
        """The position, with its moves."""
        board = self.start.copy()
        for move in self.moves:
            board.push(move)
        return board

    def __str__(self) -> str:
        """What is known of it."""
        return f"White scored {points(self.score)} points in 100 games, by {self.games} of them"


def openings_near(matches: Iterable[tuple[MatchResult, Sequence[BookExit]]], value: float) -> list[Opening]:
    """Where games of matches left their books for a position in which White scored within 0.1 of a value.

    A position counts once, with the games of all matches, if there are four or more; what is nearest comes
    first, and of equals what has more games.

    Args:
      matches: each with the exits of its book.
      value: White's score.
    """
    found: dict[str, tuple[Opening, float]] = {}
    for match, exits in matches:
        white = match.book.side == chess.WHITE
        for row in match.exit_scores(exits):
            if not row.games or row.exit.over:
                continue
            opening = Opening(match.book.start, row.exit.history, row.games, 0.0)
            total = row.games * (row.score if white else 1.0 - row.score)
            key = opening.board.epd()
            if key in found:
                before, points = found[key]
                opening = dataclasses.replace(before, games=before.games + row.games)
                total += points
            found[key] = opening, total
    openings = [dataclasses.replace(each, score=total / each.games) for each, total in found.values()]
    near = [each for each in openings if each.games >= _LEAST_GAMES and abs(each.score - value) <= _NEAR]
    return sorted(near, key=lambda each: (abs(each.score - value), -each.games, each.board.epd()))


def write_openings(openings: Sequence[Opening], folder: str | os.PathLike[str]) -> None:
    """Writes openings.epd and openings.pgn, one position or game each, for match programs."""
    with atomic_write(pathlib.Path(folder) / "openings.epd") as file:
        for each in openings:
            file.write(f"{each.board.epd(c0=str(each))}\n")
    with atomic_write(pathlib.Path(folder) / "openings.pgn") as file:
        for number, each in enumerate(openings, start=1):
            game = chess.pgn.Game()
            game.setup(each.start)
            set_headers(game, {"Event": "Start positions", "Round": str(number)})
            node = game.add_line(each.moves)
            node.comment = str(each)
            file.write(pgn_text(game))
