"""Samples of people's rated games: positions with the games' results, and moves with their time.

Of each game, a few positions of its opening are drawn, by half-moves that are chosen before it is read, so
that games stay nearly independent and long ones do not count more. Each has the mover's score, both ratings
and both clocks. Of its moves about one in eight is drawn with the seconds that it took: the difference of
the clock's times two half-moves before and now, plus the increment. A player's first move is left out, since
servers start clocks after it. A clock that grew by more than the increment (an opponent gave time, or the
file is wrong) gives no seconds.

The last games by date are kept out of every fit (`later`): checks on them are predictions.

Cost: python-chess reads some 400 games a second.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.deadlines import time_is_up
from precomp_games.chess.data.game_records import SPEEDS, WHITE_SCORES, GameRecord, read_games
from precomp_games.chess.data.pgn_files import GameReport

PLIES = (8, 36)
"""Range of half-moves, counted from 0, of drawn positions: the first, and the one behind the last."""
BAND = 300
"""Rating points of a band."""
TEST_SHARE = 0.15
_MOVES = 1 / 8  # share of a game's moves that are drawn with their seconds
_LAST = 160  # half-moves of a game that are read
_FEWEST_READ = 1000  # games, however little time there is


@dataclasses.dataclass(frozen=True)
class RatedPosition:
    """A position of a rated game, from the viewpoint of the side to move.

    Attributes:
      game: the game's number in the file.
      year: date as a decimal year; 0 if unknown.
      speed: one of `SPEEDS`.
      ratings: the mover's and the other side's.
      clocks: seconds that the mover and the other side have left.
      epd: the position.
      score: the mover's result: 0, 1/2 or 1.
    """

    game: int
    year: float
    speed: str
    ratings: tuple[int, int]
    clocks: tuple[float, float]
    epd: str
    score: float

    @property
    def rating(self) -> float:
        """Mean of both ratings."""
        return sum(self.ratings) / 2.0


@dataclasses.dataclass(frozen=True)
class TimedMove:
    """A move of a rated game, with its duration.

    Attributes:
      game, year, speed: as of a `RatedPosition`.
      control: a player's seconds at first, and the increment for each move.
      rating: the mean of both ratings.
      ply: the half-move, counted from 0.
      num_moves: number of legal moves.
      seconds: the move's duration.
    """

    game: int
    year: float
    speed: str
    control: tuple[int, int]
    rating: float
    ply: int
    num_moves: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class RatedGames:
    """Samples of a file's games.

    Attributes:
      positions, moves: in the order of the file.
      games: number of games with ratings, clocks and a result.
    """

    positions: tuple[RatedPosition, ...]
    moves: tuple[TimedMove, ...]
    games: int

    def parted(self, share: float = TEST_SHARE) -> tuple[RatedGames, RatedGames]:
        """Return the earlier games, and the share that was played last, which no fit may see."""
        dates = {each.game: each.year for each in self.moves}
        dates |= {each.game: each.year for each in self.positions}
        order = sorted(dates, key=lambda game: (dates[game], game))
        later = set(order[round((1.0 - share) * len(order)) :])

        def of(which: bool) -> RatedGames:
            positions = tuple(each for each in self.positions if (each.game in later) is which)
            moves = tuple(each for each in self.moves if (each.game in later) is which)
            return RatedGames(positions, moves, len(later) if which else len(order) - len(later))

        return of(False), of(True)


class _Drawn:
    """Key of positions for `read_games`: for those that are drawn, EPD and number of legal moves."""

    def __init__(self, positions: int, seed: int | Sequence[int]) -> None:
        self._positions, self._rng = positions, np.random.default_rng(seed)
        self._chosen: frozenset[int] = frozenset()
        self._timed = np.zeros(_LAST, bool)

    def __call__(self, board: chess.Board) -> tuple[str, int] | None:
        ply = board.ply()
        if ply == 0:
            self._chosen = frozenset(self._rng.choice(np.arange(*PLIES), self._positions, False).tolist())
            self._timed = self._rng.random(_LAST) < _MOVES
        if ply in self._chosen:
            return board.epd(), board.legal_moves.count()
        return ("", board.legal_moves.count()) if ply < _LAST and self._timed[ply] else None


@public
def rated_games(
    path: checks.FilePath,
    *,
    positions: checks.PositiveInt = 2,
    speeds: Sequence[str] = SPEEDS,
    seed: int | Sequence[int] = 0,
    report: GameReport | None = None,
) -> RatedGames:
    """Draw positions and moves from a file of rated games with clocks, as far as there is time.

    Args:
      path: the PGN file.
      positions: number that is drawn from a game; fewer from a short one.
      speeds: speeds of the games to draw from.
      seed: of the draws.
      report: report to which the counts are added.

    Raises:
      ValueError: no game has ratings of both sides, clocks and a result.
      OSError: the file cannot be read.
    """
    drawn, timed, games = list[RatedPosition](), list[TimedMove](), 0
    key = _Drawn(min(positions, PLIES[1] - PLIES[0]), seed)
    read = read_games(path, max_plies=_LAST, clocks=True, key=key, report=report)
    for number, record in enumerate(read):
        if number >= _FEWEST_READ and time_is_up():
            break
        known = None not in record.ratings and record.control is not None and any(record.clocks)
        if not known or record.speed not in speeds or record.result not in WHITE_SCORES:
            continue
        games += 1
        for ply in range(2, len(record.actions)):
            if record.keys[ply] is not None:
                _add(record, number, ply, drawn, timed)
    if not games:
        raise ArgumentError(
            "expected path to have games with WhiteElo, BlackElo, TimeControl, a result and clocks "
            f"([%clk 0:02:59]) of {', '.join(speeds)}, got none"
        )
    return RatedGames(tuple(drawn), tuple(timed), games)


def _add(
    record: GameRecord, number: int, ply: int, drawn: list[RatedPosition], timed: list[TimedMove]
) -> None:
    """Add the samples of a half-move, if its clocks are known."""
    (epd, num_moves), white = record.keys[ply], record.mover(ply) == chess.WHITE
    white_rating, black_rating = record.ratings
    assert record.control is not None and white_rating is not None and black_rating is not None
    own, other, after = record.clocks[ply - 2], record.clocks[ply - 1], record.clocks[ply]
    year, speed, mean = record.year or 0.0, record.speed, (white_rating + black_rating) / 2.0
    if epd and own is not None and other is not None:
        ratings = (white_rating, black_rating) if white else (black_rating, white_rating)
        score = WHITE_SCORES[record.result] if white else 1.0 - WHITE_SCORES[record.result]
        drawn.append(RatedPosition(number, year, speed, ratings, (own, other), epd, score))
    if own is not None and after is not None and (spent := own - after + record.control[1]) >= 0.0:
        timed.append(TimedMove(number, year, speed, record.control, mean, ply, num_moves, spent))


def spread(
    positions: Sequence[RatedPosition], count: int, seed: int | Sequence[int] = 0, *, bands: bool = True
) -> list[RatedPosition]:
    """Draw some of the positions, so that all speeds have the same number of them as far as possible.

    They are in an order whose beginnings are balanced as well. With `bands`, the bands of ratings of a speed
    are balanced too, as for a fit; without, they stay as they come, as for a test of a fit.
    """
    rng = np.random.default_rng(seed)
    rank, kinds = dict[int, int](), dict[tuple[str, int], int]()
    for k in rng.permutation(len(positions)).tolist():
        kind = (positions[k].speed, band(positions[k].rating) if bands else 0)
        rank[k] = kinds[kind] = kinds.get(kind, 0) + 1
    return [positions[k] for k in sorted(rank, key=lambda k: (rank[k], k))[:count]]


def band(rating: float) -> int:
    """Return the lower end of a rating's band."""
    return math.floor(rating / BAND) * BAND
