"""Values of positions in people's games: expected scores by evaluation, ratings and clocks.

For the side to move,

    logit P(score) = b pawns + d (own - other rating) / 400 + c log(own / other clock) + m

pawns is the analyst's evaluation, cut at +-10, mates included, and m the effect of having the move. m is
negative: the side to move still has to find the move that the evaluation supposes. It is fitted to half-moves
from `PLIES[0]` on, and grows to that in proportion: at the first move it is 0, where White scores as the
evaluation predicts. A term for White does not improve the prediction of games that were kept out. The fit is
by maximum likelihood, a draw being half a win, for each speed and for each band of ratings (both sides'
mean), with errors that hold if a game has several positions (`regression`). A speed with few games has the
coefficients of the nearest one with more as its prior's mean, with a standard deviation of half of them. A
band has its speed's as its prior's mean: the standard deviation of bands' coefficients around it is estimated
from all bands together, by DerSimonian and Laird's moments, and a band's estimate is the most likely one
given that. If bands differ by no more than chance, each equals its speed. Between the bands' mean ratings,
coefficients are linear; beyond them, constant.

The clock's effect is a regression's: a player who is ahead on the clock may also be better than the rating
shows, and a move that was played at once may be a better one. As a cause, it is an upper estimate.

The shipped fit is to searches of 20,000 nodes, one line. By 5,000 nodes and eight lines, a pawn is worth a
tenth less on the same positions: shallower evaluations predict less.

A file of fits contains people's thinking times as well (`clock_times`). It is JSON, and not trusted.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.files import atomic_write, read_json
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.model.clock_times import ClockTimes
from precomp_games.chess.model.engine_policies import centipawns
from precomp_games.chess.model.rated_games import PLIES, RatedPosition, band
from precomp_games.chess.model.regression import Coefficients, Data, Floats, fit, fit_kinds

TERMS = ("pawn", "rating", "clock", "move")
"""Terms of the logit, in the order of the features."""
FORMAT = "precomp-games people 2"

_SHIPPED = pathlib.Path(__file__).parent / "data" / "people_games.json"
_MOST_BYTES = 1 << 20
_MOST_ROWS = 1000
_MOST_PAWNS = 10.0
_LEAST_CLOCK = 1.0  # seconds: the clock's effect does not grow below this
_FEWEST_GAMES = 50  # of a speed, and of a band, that has a fit
_CENTER = np.array([0.25, 1.5, 1.0, 0.0])
_SPREAD = np.array([0.125, 0.75, 0.5, 0.1])  # standard deviations around it
_LEAST_SPREAD = 0.02  # times a coefficient: for bands that do not differ

Rating = Annotated[float, checks.Ge(0.0), checks.Le(5000.0)]
_Coefficient = Annotated[float, checks.Ge(-100.0), checks.Le(100.0)]
_Error = Annotated[float, checks.Ge(0.0), checks.Le(100.0)]


@public
@dataclasses.dataclass(frozen=True)
class PeopleUtility:
    """Expected score, in people's games of a speed and a rating, of the side to move.

    Attributes:
      pawn, rating, clock, move: coefficients of the logit for a pawn, for a difference of 400 rating points,
        for the logarithm of the clocks' ratio, and for having the move.
      pawn_error, rating_error, clock_error, move_error: their standard errors.
    """

    pawn: Annotated[float, checks.Ge(0.0), checks.Le(100.0)]
    rating: _Coefficient
    clock: _Coefficient
    move: _Coefficient = 0.0
    pawn_error: _Error = 0.0
    rating_error: _Error = 0.0
    clock_error: _Error = 0.0
    move_error: _Error = 0.0

    def mover_utility(self, line: Line, board: chess.Board, beside: float = 0.0) -> float:
        """Return utility (see `ScoreUtility`), in (0, 1); `beside`, further knowledge, adds to the logit."""
        z = self.pawn * pawns(line) + self.of_move(board.ply()) + beside
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))

    def of_move(self, ply: int) -> float:
        """Return the part of the mover's logit for having the move, after so many half-moves."""
        return self.move * min(1.0, ply / PLIES[0])

    def of_ratings(self, difference: float) -> float:
        """Return the part of the mover's logit for a difference of ratings, own less other."""
        return self.rating * difference / 400.0

    def of_clocks(self, own: float, other: float, saved: float = 0.0) -> float:
        """Return the clocks' part of the mover's logit, in seconds; `saved`: time saved by preparation."""
        return self.clock * _log_ratio(own + saved, other)


def pawns(line: Line) -> float:
    """Return a line's score for the side to move in pawns, cut at +-10, mates included."""
    return max(-_MOST_PAWNS, min(_MOST_PAWNS, centipawns(line) / 100.0))


def _log_ratio(own: float, other: float) -> float:
    return math.log(max(own, _LEAST_CLOCK) / max(other, _LEAST_CLOCK))


@public
@dataclasses.dataclass(frozen=True)
class PeopleRow:
    """The fit of a speed, or of one of its bands of ratings.

    Attributes:
      speed: one of `SPEEDS`.
      band: the lower end of the band; None: the whole speed.
      rating: the mean rating of the games.
      games, positions: their numbers in the fit.
      utility: the fit.
    """

    speed: Annotated[str, checks.one_of(SPEEDS)]
    band: checks.NonNegativeInt | None
    rating: Rating
    games: checks.PositiveInt
    positions: checks.PositiveInt
    utility: PeopleUtility


@public
@dataclasses.dataclass(frozen=True)
class PeopleFit:
    """Values of positions and thinking times in people's games, by speed and rating.

    Attributes:
      rows: of speeds and of bands.
      times: thinking times, by speed.
      source: description of the games.
      engine: engine of the fitted evaluations, without its options.
      analyst: the limit of its searches, as text.
      evidence: checks on games that were kept out, for JSON.
    """

    rows: Annotated[tuple[PeopleRow, ...], checks.each_of(PeopleRow)]
    times: Annotated[tuple[ClockTimes, ...], checks.each_of(ClockTimes)]
    source: str
    engine: str
    analyst: str
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Check that each speed has a row of its own."""
        whole = [row.speed for row in self.rows if row.band is None]
        speeds, timed = {row.speed for row in self.rows}, [each.speed for each in self.times]
        if not timed or not whole or len(set(whole)) < max(len(whole), len(speeds)):
            raise ArgumentError(f"expected rows with one of each whole speed, and times, got {shown(whole)}")

    @property
    def ratings(self) -> tuple[float, float]:
        """The lowest and the highest mean rating of fitted games; beyond them, values are constant."""
        ratings = [row.rating for row in self.rows]
        return min(ratings), max(ratings)

    @public
    def at(self, speed: Annotated[str, checks.one_of(SPEEDS)], rating: Rating) -> PeopleUtility:
        """Return the fit for games of a speed and a mean rating of both sides.

        A speed that was not fitted has the nearest one's; between bands' mean ratings, all is linear.
        """
        near = _nearest(speed, [row.speed for row in self.rows])
        bands = [row for row in self.rows if row.speed == near and row.band is not None]
        rows = sorted(bands, key=lambda row: row.rating) or [row for row in self.rows if row.speed == near]
        ratings = [row.rating for row in rows]
        return PeopleUtility(
            **{
                name: float(np.interp(rating, ratings, [getattr(row.utility, name) for row in rows]))
                for name in (field.name for field in dataclasses.fields(PeopleUtility))
            }
        )

    @public
    def times_at(
        self,
        speed: Annotated[str, checks.one_of(SPEEDS)],
        rating: Rating,
        control: tuple[float, float] | None = None,
    ) -> ClockTimes:
        """Return thinking times for a speed and rating; for a speed that was not fitted, the nearest one's.

        Args:
          speed: of the games.
          rating: the mean of both sides.
          control: seconds at first, and the increment for each move. None: a usual one of the speed.
        """
        near = _nearest(speed, [each.speed for each in self.times])
        chosen = next(each for each in self.times if each.speed == near)
        return dataclasses.replace(chosen, rating=rating, control=control or USUAL_CONTROLS[speed])


USUAL_CONTROLS: Mapping[str, tuple[float, float]] = {
    "bullet": (60.0, 0.0),
    "blitz": (180.0, 0.0),
    "rapid": (600.0, 0.0),
    "classical": (1800.0, 0.0),
}
"""Default seconds at first, and increment for each move, by speed."""


def _nearest(speed: str, known: Sequence[str]) -> str:
    return min(known, key=lambda each: abs(SPEEDS.index(each) - SPEEDS.index(speed)))


# -- fits --------------------------------------------------------------------------------------------------


def features(positions: Sequence[RatedPosition], lines: Sequence[Line]) -> Floats:
    """Return float64[n, 4]: the features that the coefficients multiply, in the order of `TERMS`."""
    return np.array(
        [
            (
                pawns(line),
                (each.ratings[0] - each.ratings[1]) / 400.0,
                _log_ratio(*each.clocks),
                1.0,
            )
            for each, line in zip(positions, lines, strict=True)
        ]
    ).reshape(-1, len(TERMS))


@public
def fit_people(
    positions: Annotated[Sequence[RatedPosition], checks.each_of(RatedPosition)],
    lines: Annotated[Sequence[Line], checks.each_of(Line)],
) -> tuple[PeopleRow, ...]:
    """Fit the rows of all speeds and bands with enough games.

    Args:
      positions: of rated games.
      lines: the analyst's best line of each.

    Raises:
      ValueError: no speed has 50 games.
    """
    x = features(positions, lines)
    every = Data(x, np.array([each.score for each in positions]), np.array([each.game for each in positions]))
    speeds = np.array([each.speed for each in positions])
    ratings = np.array([each.rating for each in positions])
    bands = np.array([band(rating) for rating in ratings])
    data = {speed: every.only(speeds == speed) for speed in SPEEDS}
    data = {speed: each for speed, each in data.items() if each.num_games >= _FEWEST_GAMES}
    if not data:
        raise ArgumentError(f"expected positions of {_FEWEST_GAMES} games of a speed or more, got fewer")
    center = Coefficients(_CENTER, np.zeros((len(TERMS),) * 2))
    whole = fit_kinds("logistic", data, SPEEDS, center, _SPREAD)
    parts = {
        (speed, int(each)): which
        for speed in data
        for each in np.unique(bands[speeds == speed])
        if every.only(which := (speeds == speed) & (bands == each)).num_games >= _FEWEST_GAMES
    }
    alone = {key: fit("logistic", every.only(parts[key]), center, np.full(len(TERMS), 10.0)) for key in parts}
    spread = _between([(alone[key], whole[key[0]]) for key in parts])
    rows = [_row(speed, None, ratings[speeds == speed], data[speed], whole[speed]) for speed in data]
    for (speed, each), which in parts.items():
        at = fit("logistic", every.only(which), whole[speed], _spread_at(spread, whole[speed]))
        rows.append(_row(speed, each, ratings[which], every.only(which), at))
    return tuple(sorted(rows, key=lambda row: (SPEEDS.index(row.speed), row.band or -1)))


def _spread_at(between: Floats, speed: Coefficients) -> Floats:
    return np.maximum(between, np.maximum(_LEAST_SPREAD * np.abs(speed.values), 1e-3))


def _between(pairs: Sequence[tuple[Coefficients, Coefficients]]) -> Floats:
    """Return the standard deviations of bands' coefficients around their speed's, by moments.

    Args:
      pairs: the fit of a band by itself, and its speed's.
    """
    variances = np.zeros(len(TERMS))
    by_speed: dict[int, list[Coefficients]] = {}
    for own, speed in pairs:
        by_speed.setdefault(id(speed), []).append(own)
    q, freedom, scale = np.zeros(len(TERMS)), 0, np.zeros(len(TERMS))
    for bands in by_speed.values():
        weights = np.array([each.errors**-2.0 for each in bands])
        values = np.array([each.values for each in bands])
        mean = (weights * values).sum(axis=0) / weights.sum(axis=0)
        q += (weights * (values - mean) ** 2).sum(axis=0)
        freedom += len(bands) - 1
        scale += weights.sum(axis=0) - (weights**2).sum(axis=0) / weights.sum(axis=0)
    np.divide(q - freedom, scale, out=variances, where=scale > 0.0)
    return np.sqrt(np.maximum(0.0, variances))


def _row(speed: str, of: int | None, ratings: Floats, data: Data, fitted: Coefficients) -> PeopleRow:
    named = dict(zip(TERMS, fitted.values.tolist(), strict=True))
    named["pawn"] = max(0.0, named["pawn"])  # a better position is worth no less, even if few games say so
    named |= {f"{name}_error": error for name, error in zip(TERMS, fitted.errors.tolist(), strict=True)}
    return PeopleRow(
        speed, of, float(ratings.mean()), data.num_games, len(data.values), PeopleUtility(**named)
    )


# -- files -------------------------------------------------------------------------------------------------


def save_people(people: PeopleFit, path: str | os.PathLike[str]) -> None:
    """Write fits as JSON, replacing `path` atomically.

    Raises:
      OSError: as `atomic_write`.
    """
    with atomic_write(path) as file:
        file.write(json.dumps(as_json(people), indent=1, allow_nan=False) + "\n")


def as_json(people: PeopleFit) -> dict[str, Any]:
    """Return fits for JSON, which `of_json` reads."""
    rows = [dataclasses.asdict(row) for row in people.rows]
    times = [dataclasses.asdict(each) for each in people.times]
    sources = {"source": people.source, "engine": people.engine, "analyst": people.analyst}
    return {"format": FORMAT, **sources, "rows": rows, "times": times, "evidence": dict(people.evidence)}


@public
def load_people(path: str | os.PathLike[str] | None = None) -> PeopleFit:
    """Read fits that `save_people` wrote, or the shipped ones.

    Args:
      path: the file, which is not trusted: anything odd is refused. None: the fits to rated games of one club
        player at Lichess.

    Raises:
      ValueError: the file contains no such fits.
      OSError: the file cannot be read.
    """
    name = str(_SHIPPED) if path is None else checks.check_path(path, "path")
    try:
        return of_json(read_json(name, _MOST_BYTES))
    except ValueError as error:
        raise ArgumentError(
            f"expected values of people's games, got {shown(name)} ({one_line(error)})"
        ) from None


def of_json(value: Any) -> PeopleFit:
    """Return the fits in a file's JSON.

    Raises:
      ValueError: it is not of `save_people`.
    """
    top = _fields(value, ("format", "source", "engine", "analyst", "rows", "times", "evidence"), "the file")
    checks.check_choice(top["format"], (FORMAT,), "format")
    for name in ("rows", "times"):
        if not isinstance(top[name], list) or len(top[name]) > _MOST_ROWS:
            raise ValueError(f"expected {name} to be a list, got {shown(top[name])}")
    for name in ("source", "engine", "analyst"):
        if not isinstance(top[name], str) or not top[name].isprintable():
            raise ValueError(f"expected {name} to be text, got {shown(top[name])}")
    if not isinstance(top["evidence"], dict):
        raise ValueError(f"expected evidence to be an object, got {shown(top['evidence'])}")
    rows = []
    for each in top["rows"]:
        fields = _fields(each, _names(PeopleRow), "a row")
        utility = PeopleUtility(**_fields(fields["utility"], _names(PeopleUtility), "utility"))
        rows.append(PeopleRow(**fields | {"utility": utility}))
    times = []
    for each in top["times"]:
        fields = _fields(each, _names(ClockTimes), "times")
        if not isinstance(fields["control"], list):
            raise ValueError(f"expected control to be two numbers, got {shown(fields['control'])}")
        times.append(ClockTimes(**fields | {"control": tuple(fields["control"])}))
    sources = {name: top[name] for name in ("source", "engine", "analyst", "evidence")}
    return PeopleFit(rows=tuple(rows), times=tuple(times), **sources)


def _names(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _fields(value: Any, names: Sequence[str], what: str) -> dict[str, Any]:
    """Return an object of JSON that must have exactly these names."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"expected {what} to have {', '.join(names)}, got {shown(value)}")
    return value
