"""Statistics of a player's games: lines by color, scores, form, new moves, when games leave known positions.

Nothing is searched and nothing is guessed. Games are those of one player, from the usual start.

  * A line has the games that begin with it, move by move. Its score is the player's mean result. Its
    performance is the rating P at which Elo's formula, 1 / (1 + 10^(-(P - R) / 400)) summed over the
    opponents' ratings R, expects as many points. It is undefined if all points were made, or none.
  * A position is known in a game if it came up in some number of earlier games with that color, in whatever
    order of moves. The half-move to the first unknown position leaves the known positions.
  * A move is new if the player has not played it at that position, with that color, before the last year.
    The first new move of each game counts.

All games of the player decide which positions were known and which moves were played before; a `GameFilter`
chooses the games that are counted. Games of one day, and those without a date, are in the order of the file,
or in the opposite order if the file begins with its newest game.

Cost: mostly reading, half a millisecond a game; counting takes a tenth of that.
"""

from __future__ import annotations

import array
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import chess
import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.results import Result
from precomp_games.chess.data.game_records import SPEEDS, WHITE_SCORES, GameRecord, read_games
from precomp_games.chess.data.move_counts import DEFAULT_PLIES, Floats, GameTable, game_tables
from precomp_games.chess.data.pgn_files import GameReport
from precomp_games.chess.game import move_of

LEAST_SHARE = 1 / 200
"""Share of a color's games: rarer lines are left out by default."""
_FEWEST = 2  # games of a new move that is reported
_BATCH = 1000  # games that are held as records
_STEPS = 40  # of a bisection
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, so that a position's moves stay different ones

Games = npt.NDArray[np.bool_]
"""bool[g]: a selection of games."""


# -- games -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ScoutedGames:
    """A player's games: g games of m half-moves.

    Attributes:
        table: their moves; `own` are the player's.
        scores: float64[g], the player's; NaN without a result.
        rated: bool[g], whether a game is known to be rated.
        seconds: float32[m], duration of each half-move; NaN if unknown.
        report: counts of what was read.
    """

    table: GameTable
    scores: Floats
    rated: Games
    seconds: npt.NDArray[np.float32]
    report: GameReport

    @staticmethod
    @public
    def read(path: checks.FilePath, player: str, plies: checks.PositiveInt = DEFAULT_PLIES) -> ScoutedGames:
        """Read a player's games in a file, except those against itself.

        Args:
            path: the PGN file.
            player: the player's name, as for `read_games`.
            plies: half-moves of a game that are read.

        Raises:
            ValueError: a name that nobody has, or that fits several.
            OSError: the file cannot be read.
        """
        report, clocks = GameReport(), array.array("f")
        scores, rated, increments = list[float](), bytearray(), list[float]()

        def noted() -> Iterator[GameRecord]:
            for record in read_games(path, player, max_plies=plies, clocks=True, report=report):
                if len(record.own) > 1:
                    report.games, report.plies = report.games - 1, report.plies - len(record.actions)
                    report.undated -= record.year is None
                    report.left_out["games against oneself"] += 1
                    continue
                score = WHITE_SCORES.get(record.result, math.nan)
                scores.append(score if record.own[0] == chess.WHITE else 1.0 - score)
                rated.append(record.rated is True)
                increments.append(math.nan if record.control is None else record.control[1])
                clocks.extend(math.nan if each is None else each for each in record.clocks)
                yield record

        table = GameTable.join(game_tables(noted(), _BATCH))
        left, seconds = np.array(clocks, np.float32), np.full(len(clocks), np.nan, np.float32)
        seconds[2:] = left[:-2] - left[2:] + np.array(increments, np.float32)[table.game[2:]]
        seconds[(table.ply < 2) | (seconds < 0.0)] = np.nan  # an opponent may give time
        of_games = np.array(scores, np.float64), np.frombuffer(bytes(rated), np.bool_)
        return ScoutedGames(table, *of_games, seconds, report)

    @property
    def white(self) -> Games:
        """bool[g]: whether the player has White."""
        return self.table.sides[:, 0]

    @property
    def opponents(self) -> Floats:
        """float64[g]: the opponents' ratings; NaN if unknown."""
        return np.where(self.white, self.table.ratings[:, 1], self.table.ratings[:, 0])

    @functools.cached_property
    def place(self) -> npt.NDArray[np.int64]:
        """int64[g]: the games' places in time, from 0; those without a date come first."""
        dated = self.table.years[~np.isnan(self.table.years)]
        backwards = len(dated) > 0 and dated[0] > dated[-1]
        in_file = np.arange(self.table.num_games) * (-1 if backwards else 1)
        return np.argsort(np.lexsort((in_file, np.nan_to_num(self.table.years, nan=-np.inf))))

    @functools.cached_property
    def seen(self) -> npt.NDArray[np.int64]:
        """int64[m]: number of earlier games with that color that reached the half-move's position."""
        at, white = self.place[self.table.game], self.white[self.table.game]
        order = np.lexsort((at, white, self.table.keys))
        columns = (self.table.keys[order], white[order], at[order])
        new = [np.append(True, column[1:] != column[:-1])[: len(order)] for column in columns]
        position = new[0] | new[1]
        number = np.cumsum(position | new[2]) - 1  # of a position in a game
        seen = np.empty(len(order), np.int64)
        seen[order] = number - np.maximum.accumulate(np.where(position, number, 0))
        return seen

    def first(self, moves: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return int64[g]: the row of each game's first half-move with `moves`, bool[m], true; or -1."""
        found = np.full(self.table.num_games, -1, np.int64)
        rows = np.flatnonzero(moves)[::-1]
        found[self.table.game[rows]] = rows  # the last one that is written is the first
        return found

    def line(self, row: int) -> tuple[chess.Move, ...]:
        """Return the moves of a game up to a half-move of the table, with it."""
        begin = int(np.searchsorted(self.table.game, self.table.game[row]))
        return tuple(map(move_of, self.table.actions[begin : row + 1].tolist()))


@dataclasses.dataclass(frozen=True)
class GameFilter:
    """Conditions on games. A game of which a condition is unknown does not count.

    Attributes:
        color: the player's, "white" or "black"; "": either.
        since: a decimal year.
        until: another one; a game at that moment does not count.
        speed: some of `SPEEDS`; (): any.
        rating: lowest and highest rating of the opponent; None: any.
        rated: whether a game has to be known to be rated.
    """

    color: str = ""
    since: float = -math.inf
    until: float = math.inf
    speed: tuple[str, ...] = ()
    rating: tuple[float, float] | None = None
    rated: bool = False

    def kept(self, games: ScoutedGames) -> tuple[Games, dict[str, int]]:
        """Return the games that count, and the number that each filter removes after the ones before it."""
        table, fits = games.table, dict[str, Games]()
        if self.color:
            fits["color"] = games.white == (self.color == "white")
        if math.isfinite(self.since):
            fits["since"] = table.years >= self.since
        if math.isfinite(self.until):
            fits["until"] = table.years < self.until
        if self.speed:
            fits["speed"] = np.isin(table.speeds, [SPEEDS.index(each) for each in self.speed])
        if self.rating is not None:
            fits["rating"] = (games.opponents >= self.rating[0]) & (games.opponents <= self.rating[1])
        if self.rated:
            fits["rated"] = games.rated
        kept, taken = np.ones(table.num_games, np.bool_), dict[str, int]()
        for name, fit in fits.items():
            taken[name] = int((kept & ~fit).sum())
            kept &= fit
        return kept, taken


# -- statistics --------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """Results of games.

    Attributes:
        games: number of games.
        score: the player's mean, in [0, 1]; None if no game has a result.
        error: its standard error; None for fewer than two.
        opponents: the opponents' mean rating; None if none is known.
        performance: see the module; of games with a result and a rating.
    """

    games: int
    score: float | None
    error: float | None
    opponents: float | None
    performance: float | None

    @staticmethod
    def of(scores: Floats, ratings: Floats) -> Tally:
        """Count games by the player's scores and the opponents' ratings, NaN if they are not known."""
        known = scores[~np.isnan(scores)]
        score = float(known.mean()) if len(known) else None
        error = float(known.std(ddof=1) / math.sqrt(len(known))) if len(known) > 1 else None
        rated = ratings[~np.isnan(ratings)]
        opponents = float(rated.mean()) if len(rated) else None
        both = ~np.isnan(scores) & ~np.isnan(ratings)
        return Tally(len(scores), score, error, opponents, performance(scores[both], ratings[both]))


def performance(scores: Floats, ratings: Floats) -> float | None:
    """Return the rating that is expected to score as much against these ratings; None if none is finite."""
    total = float(scores.sum())
    if not 0.0 < total < len(scores):
        return None
    ratings, counts = np.unique(ratings, return_counts=True)
    shift = 400.0 * math.log10(total / (len(scores) - total))
    low, high = ratings[0] + shift, ratings[-1] + shift
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        expected = float((counts / (1.0 + 10.0 ** ((ratings - middle) / 400.0))).sum())
        low, high = (middle, high) if expected < total else (low, middle)
    return float((low + high) / 2.0)


class ScoutedLine(NamedTuple):
    """A move of a line, and the moves after it.

    Attributes:
        san: the move; "" at the start.
        move: the move; None at the start.
        tally: results of the games that go so far, this move included.
        last: date of the newest of them, a decimal year; None if unknown.
        replies: the next moves, the most frequent first; rarer ones are left out.
    """

    san: str
    move: chess.Move | None
    tally: Tally
    last: float | None
    replies: tuple[ScoutedLine, ...]


@dataclasses.dataclass(frozen=True)
class Leaving:
    """The move numbers at which games leave the known positions.

    Attributes:
        moves: number of games that leave them, by move number.
        by_player: number of these that leave by a move of the player's.
        stayed: number of games that never leave.
    """

    moves: Mapping[int, int]
    by_player: int
    stayed: int

    @property
    def left(self) -> int:
        """Number of games that leave."""
        return sum(self.moves.values())

    @property
    def median(self) -> int | None:
        """The move by which half of all these games have left; None if they have not, or there are none."""
        done, half = 0, (self.left + self.stayed) / 2.0
        for move, games in sorted(self.moves.items()):
            done += games
            if done >= half:
                return move
        return None


class Form(NamedTuple):
    """Results of the games of a period, and when they left the known positions."""

    tally: Tally
    leaving: Leaving


class NewMove(NamedTuple):
    """A move of the player's that is new in the last year.

    Attributes:
        line: the first game's moves up to it, with it.
        tally: results of the games in which it is the first new one.
        before: number of earlier games that reached the position before it.
        instead: the move mostly played there before; None if unknown.
    """

    line: tuple[chess.Move, ...]
    tally: Tally
    before: int
    instead: chess.Move | None


@dataclasses.dataclass(frozen=True)
class ColorScouting:
    """Statistics of the player's games with one color.

    Attributes:
        color: "white" or "black".
        lines: from the start on.
        form: "all" games; the "last" ones, if there are more; those of the last "year" and those "before"
            it, if there are some.
        new: new moves, the most frequent first.
    """

    color: str
    lines: ScoutedLine
    form: Mapping[str, Form]
    new: tuple[NewMove, ...]


@dataclasses.dataclass(frozen=True)
class SpeedScouting:
    """Statistics of games at one speed.

    Attributes:
        speed: one of `SPEEDS`; "" if unknown.
        tally: their results.
        seconds: (moves, mean seconds) of the player's moves of known duration, by move number.
    """

    speed: str
    tally: Tally
    seconds: Mapping[int, tuple[int, float]]


@dataclasses.dataclass(frozen=True)
class Scouting(Result):
    """Statistics of a player's games.

    Attributes:
        player: the name, as in the file.
        games: number of games that count.
        years: dates of the first and the last of them; None if no game has a date.
        ratings: the player's in the first and in the last game that has one; None if none has.
        colors: statistics by color, White first.
        speeds: statistics by time control.
        taken: number of games that each filter removed.
        read: the report of reading.
        known: number of earlier games that make a position known.
        recent: number of the last games in `form`.
    """

    player: str
    games: int
    years: tuple[float, float] | None
    ratings: tuple[int, int] | None
    colors: tuple[ColorScouting, ...]
    speeds: tuple[SpeedScouting, ...]
    taken: Mapping[str, int]
    read: str
    known: int
    recent: int


def scout(
    games: ScoutedGames,
    chosen: GameFilter | None = None,
    *,
    least: int | None = None,
    known: int = 3,
    recent: int = 100,
    most_new: int = 10,
) -> Scouting:
    """Compute the statistics of a player's games.

    Args:
        games: all of them.
        chosen: the games that count; None: all.
        least: games of a line; rarer ones are left out. None: `LEAST_SHARE` of the color's, and 2 at least.
        known: number of earlier games that make a position known.
        recent: number of the last games in `form`.
        most_new: largest number of new moves that are listed for a color; none are where the time before the
            last year has fewer than `known` games, since all would be new.
    """
    kept, taken = (chosen or GameFilter()).kept(games)
    table, order = games.table, np.argsort(games.place)
    years = table.years[kept & ~np.isnan(table.years)]
    rating = np.where(games.white, table.ratings[:, 0], table.ratings[:, 1])[order]
    rating = rating[kept[order] & ~np.isnan(rating)]
    colors = []
    for color, of_color in (("white", games.white), ("black", ~games.white)):
        if not (mine := kept & of_color).any():
            continue
        fewest = max(2, math.ceil(LEAST_SHARE * mine.sum())) if least is None else least
        new = _new_moves(games, of_color, mine, most_new, known)
        colors.append(
            ColorScouting(color, _lines(games, mine, fewest), _form(games, mine, known, recent), new)
        )
    return Scouting(
        player="; ".join(games.report.names),
        games=int(kept.sum()),
        years=(float(years.min()), float(years.max())) if len(years) else None,
        ratings=(int(rating[0]), int(rating[-1])) if len(rating) else None,
        colors=tuple(colors),
        speeds=tuple(_speeds(games, kept)),
        taken=taken,
        read=str(games.report),
        known=known,
        recent=recent,
    )


def _tally(games: ScoutedGames, which: Any) -> Tally:
    return Tally.of(games.scores[which], games.opponents[which])


def _lines(games: ScoutedGames, mine: Games, least: int) -> ScoutedLine:
    """Return the tree of lines with at least `least` games."""
    table, scores, ratings, board = games.table, games.scores, games.opponents, chess.Board()
    begin, end = (np.searchsorted(table.game, np.arange(table.num_games), side) for side in ("left", "right"))

    def grown(members: npt.NDArray[np.int64], move: chess.Move | None) -> ScoutedLine:
        san = ""
        if move is not None:
            san = board.san_and_push(move)
        there = members[begin[members] + board.ply() < end[members]]
        played = table.actions[begin[there] + board.ply()]
        actions, counts = np.unique(played, return_counts=True)
        often = sorted(zip((-counts).tolist(), actions.tolist(), strict=True))
        replies = tuple(
            grown(there[played == action], move_of(action)) for count, action in often if -count >= least
        )
        newest = np.fmax.reduce(table.years[members], initial=np.nan)
        if move is not None:
            board.pop()
        tally = Tally.of(scores[members], ratings[members])
        return ScoutedLine(san, move, tally, None if np.isnan(newest) else float(newest), replies)

    return grown(np.flatnonzero(mine), None)


def _form(games: ScoutedGames, mine: Games, known: int, recent: int) -> dict[str, Form]:
    """Return the results and the leaving of known positions, by period."""
    unknown = games.first(games.seen < known)
    ply = np.where(unknown < 0, -1, games.table.ply[unknown])  # of the first unknown position
    years, places = games.table.years, games.place[mine]
    parts, before = {"all": mine}, mine & (years <= np.fmax.reduce(years[mine]) - 1.0)
    if len(places) > recent:
        parts["last"] = mine & (games.place >= np.sort(places)[-recent])
    if before.any():
        parts |= {"year": mine & ~before & ~np.isnan(years), "before": before}
    form = {}
    for name, part in parts.items():
        left = part & (ply > 0)  # if the start is unknown too, nothing is left
        moves, counts = np.unique((ply[left] + 1) // 2, return_counts=True)
        by_player = left & ((ply % 2 == 1) == games.white)  # the half-move before it
        leaving = Leaving(
            dict(zip(moves.tolist(), counts.tolist(), strict=True)),
            int(by_player.sum()),
            int((part & (ply < 0)).sum()),
        )
        form[name] = Form(_tally(games, part), leaving)
    return form


def _new_moves(
    games: ScoutedGames, of_color: Games, mine: Games, most: int, known: int
) -> tuple[NewMove, ...]:
    """Return the moves of games that count, in the last year, that no earlier game with that color has."""
    table = games.table
    newest = np.fmax.reduce(table.years[mine], initial=np.nan)
    earlier = of_color & ~(table.years > newest - 1.0)
    if np.isnan(newest) or earlier.sum() < known:
        return ()
    pairs = table.keys ^ (table.actions * _MIX)
    old, late = table.own & earlier[table.game], table.own & (mine & ~earlier)[table.game]
    fresh = games.first(late & ~np.isin(pairs, pairs[old]))
    rows = fresh[fresh >= 0]
    rows = rows[np.argsort(games.place[table.game[rows]])]
    _, first, which = np.unique(pairs[rows], return_index=True, return_inverse=True)
    found = []
    for number in sorted(range(len(first)), key=lambda k: (-int((which == k).sum()), int(first[k])))[:most]:
        of = table.game[rows[which == number]]
        if len(of) < _FEWEST:
            break
        row = int(rows[first[number]])
        met = np.flatnonzero(old & (table.keys == table.keys[row]))
        actions, counts = np.unique(table.actions[met], return_counts=True)
        instead = move_of(int(actions[counts.argmax()])) if len(met) else None
        before = len(np.unique(table.game[met]))
        found.append(NewMove(games.line(row), _tally(games, of), before, instead))
    return tuple(found)


def _speeds(games: ScoutedGames, kept: Games) -> Iterator[SpeedScouting]:
    """Yield statistics by time control, with the time that moves take."""
    table = games.table
    timed = table.own & ~np.isnan(games.seconds)
    for number, speed in enumerate((*SPEEDS, "")):
        part = kept & (table.speeds == (number if speed else -1))
        if not part.any():
            continue
        rows = np.flatnonzero(timed & part[table.game])
        moves = table.ply[rows] // 2 + 1
        counts = np.bincount(moves)
        sums = np.bincount(moves, games.seconds[rows])
        means = sums / np.maximum(1, counts)
        seconds = {int(move): (int(counts[move]), float(means[move])) for move in np.flatnonzero(counts)}
        yield SpeedScouting(speed, _tally(games, part), seconds)
