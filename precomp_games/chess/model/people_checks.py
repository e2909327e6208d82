"""Checks of fits to people's games on games that took no part in the fit.

Of values: the log loss, in bits a position, of the fit by bands, beside simpler fits: nothing, the ratings,
the evaluation, both, both with the clock, and with the move as well, each fitted to the same earlier games
of that speed. The slope of real scores on predicted ones, by least squares: 1 if predictions come true, less
if the fit promises too much. And real scores in ten classes of expected score. Of seconds: real seconds in
ten classes. Of replies: bits a move, how often the likeliest one was played, and in ten classes of predicted
probability, how often moves were played. Standard errors treat games as independent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.model.clock_times import expected_seconds
from precomp_games.chess.model.people_values import TERMS, PeopleFit, features
from precomp_games.chess.model.rated_games import RatedPosition, TimedMove
from precomp_games.chess.model.regression import Coefficients, Data, Floats, fit, mean_of

COLUMNS = {
    "nothing": (),
    "ratings": ("rating",),
    "evaluation": ("pawn",),
    "both": ("pawn", "rating"),
    "both and clock": ("pawn", "rating", "clock"),
    "the move as well": TERMS,
}
"""The terms of each fit that is compared."""
_FEWEST_GAMES = 20  # of a speed, or of a class, that is reported
_CLASSES = 10
_LEAST = 2.0**-40  # a move that a model rules out surprises it by no more than 40 bits


@dataclasses.dataclass(frozen=True)
class ValueCheck:
    """Quality of a fit's expected scores in games of one speed.

    Attributes:
      speed: of the games.
      by: one of `COLUMNS`, or "bands", the fit itself.
      games, positions: their numbers.
      bits: the mean log loss.
      slope, slope_error: of real scores on predicted ones; None if all predictions are equal.
    """

    speed: str
    by: str
    games: int
    positions: int
    bits: float
    slope: float | None
    slope_error: float | None


@dataclasses.dataclass(frozen=True)
class ValueClass:
    """A class of positions of similar expected score.

    Attributes:
      speed: of the games.
      positions: number of positions.
      expected, scored: mean expected and mean real score.
      error: the standard error of `scored`.
    """

    speed: str
    positions: int
    expected: float
    scored: float
    error: float


@dataclasses.dataclass(frozen=True)
class SecondsCheck:
    """A class of moves of similar expected seconds.

    Attributes:
      speed: of the games.
      moves: number of moves.
      expected, spent: means, in seconds.
      error: the standard error of `spent`.
    """

    speed: str
    moves: int
    expected: float
    spent: float
    error: float


@dataclasses.dataclass(frozen=True)
class ReplyCheck:
    """Quality of a model's predictions of moves.

    Attributes:
      moves, games: their numbers.
      bits, bits_error: mean surprise of a move, and its standard error.
      first, first_error: frequency with which the likeliest move was played, and its standard error.
    """

    moves: int
    games: int
    bits: float
    bits_error: float
    first: float
    first_error: float


@dataclasses.dataclass(frozen=True)
class ReplyClass:
    """Legal moves whose predicted probabilities are in the same tenth of [0, 1].

    Attributes:
      pairs: number of pairs of a position and a move.
      moves: number of these that were played.
      expected, played: mean probability, and frequency with which the moves were played.
      error: the standard error of `played`.
    """

    pairs: int
    moves: int
    expected: float
    played: float
    error: float


def check_replies(
    rows: Sequence[Mapping[int, float]], played: Sequence[int], games: npt.NDArray[np.int64]
) -> ReplyCheck:
    """Check predicted moves.

    Args:
      rows: {action: probability} at n positions.
      played: the action played at each.
      games: int64[n], number of each position's game.
    """
    odds = [max(row.get(action, 0.0), _LEAST) for row, action in zip(rows, played, strict=True)]
    # Of equally likely moves, the one with the least number is the guess.
    first = [
        min(row, key=lambda move: (-row[move], move)) == action
        for row, action in zip(rows, played, strict=True)
    ]
    bits, guessed = (mean_of_games(np.array(each), games) for each in ([-math.log2(p) for p in odds], first))
    return ReplyCheck(len(odds), len(np.unique(games)), *bits, *guessed)


def reply_classes(
    rows: Sequence[Mapping[int, float]], played: Sequence[int], games: npt.NDArray[np.int64]
) -> list[ReplyClass]:
    """Return ten classes of predicted probability, [0, 0.1) to [0.9, 1], without empty ones.

    Args:
      rows: as for `check_replies`.
      played: as for `check_replies`.
      games: as for `check_replies`.
    """
    of = np.repeat(games, [len(row) for row in rows])
    expected = np.array([p for row in rows for p in row.values()])
    real = np.array([a == b for row, b in zip(rows, played, strict=True) for a in row], np.float64)
    cell, found = np.minimum((expected * _CLASSES).astype(int), _CLASSES - 1), []
    for each in np.unique(cell):
        here = cell == each
        sums, mean = int(here.sum()), float(expected[here].mean())
        found.append(ReplyClass(sums, int(real[here].sum()), mean, *mean_of_games(real[here], of[here])))
    return found


def check_values(
    people: PeopleFit,
    earlier: tuple[Sequence[RatedPosition], Sequence[Line]],
    later: tuple[Sequence[RatedPosition], Sequence[Line]],
) -> list[ValueCheck]:
    """Check values on later games.

    Args:
      people: the fit.
      earlier: the positions of the fit, and the analyst's best line of each.
      later: other positions, with their lines.
    """
    checks = []
    for speed in SPEEDS:
        (data, _), (test, positions) = (_data(*each, speed) for each in (earlier, later))
        if min(data.num_games, test.num_games) < _FEWEST_GAMES:
            continue
        for by, terms in COLUMNS.items():
            used = [TERMS.index(name) for name in terms]
            part = dataclasses.replace(data, features=data.features[:, used])
            center = Coefficients(np.zeros(len(used)), np.zeros((len(used),) * 2))
            values = fit("logistic", part, center, np.full(len(used), 10.0)).values
            predicted = mean_of("logistic", test.features[:, used] @ values)
            checks.append(_value_check(speed, by, predicted, test))
        checks.append(_value_check(speed, "bands", _by_bands(people, speed, test, positions), test))
    return checks


def value_classes(
    people: PeopleFit, positions: Sequence[RatedPosition], lines: Sequence[Line]
) -> list[ValueClass]:
    """Check values on later games, in ten classes of each speed.

    Args:
      people: the fit.
      positions: positions that took no part in it.
      lines: the analyst's best line of each.
    """
    checks = []
    for speed in SPEEDS:
        test, of = _data(positions, lines, speed)
        if test.num_games >= _FEWEST_GAMES:
            expected = _by_bands(people, speed, test, of)
            checks += [ValueClass(speed, *each) for each in _in_classes(expected, test.values, test.games)]
    return checks


def check_seconds(people: PeopleFit, moves: Sequence[TimedMove]) -> list[SecondsCheck]:
    """Check expected seconds on later games, in ten classes of each speed."""
    checks = []
    for speed in SPEEDS:
        of = [each for each in moves if each.speed == speed]
        if len({each.game for each in of}) < _FEWEST_GAMES:
            continue
        expected = expected_seconds(people.times_at(speed, 1500.0), of)
        spent, games = np.array([each.seconds for each in of]), np.array([each.game for each in of])
        checks += [SecondsCheck(speed, *each) for each in _in_classes(expected, spent, games)]
    return checks


def _in_classes(
    expected: Floats, real: Floats, games: npt.NDArray[np.int64]
) -> list[tuple[int, float, float, float]]:
    """Return (number, mean expected, mean real, its error) of ten equal classes by expected value."""
    found = []
    for which in np.array_split(np.argsort(expected, kind="stable"), _CLASSES):
        if len(which):
            found.append(
                (len(which), float(expected[which].mean()), *mean_of_games(real[which], games[which]))
            )
    return found


def _by_bands(people: PeopleFit, speed: str, test: Data, positions: Sequence[RatedPosition]) -> Floats:
    """Return float64[n]: a fit's expected scores of positions of a speed."""
    rows = [people.at(speed, each.rating) for each in positions]
    weights = np.array([[getattr(row, name) for name in TERMS] for row in rows])
    return mean_of("logistic", (test.features * weights).sum(axis=1))


def mean_of_games(values: npt.NDArray[Any], games: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean of n moves' or positions' values, and its standard error, games being independent."""
    (mean,), (error,) = _least_squares(np.ones((len(values), 1)), values.astype(np.float64), games)
    return mean, error


def _data(
    positions: Sequence[RatedPosition], lines: Sequence[Line], speed: str
) -> tuple[Data, list[RatedPosition]]:
    of = [k for k, each in enumerate(positions) if each.speed == speed]
    chosen = [positions[k] for k in of]
    scores, games = np.array([each.score for each in chosen]), np.array([each.game for each in chosen])
    return Data(features(chosen, [lines[k] for k in of]), scores, games), chosen


def _value_check(speed: str, by: str, predicted: Floats, test: Data) -> ValueCheck:
    p, y = np.clip(predicted, 1e-9, 1.0 - 1e-9), test.values
    bits = float(-(y * np.log2(p) + (1.0 - y) * np.log2(1.0 - p)).mean())
    slope = error = None
    if np.ptp(p) > 1e-6:
        values, errors = _least_squares(np.column_stack([np.ones(len(p)), p]), y, test.games)
        slope, error = values[1], errors[1]
    return ValueCheck(speed, by, test.num_games, len(y), bits, slope, error)


def _least_squares(x: Floats, y: Floats, games: npt.NDArray[np.int64]) -> tuple[list[float], list[float]]:
    """Return coefficients, and their standard errors, games being independent."""
    inverse = np.linalg.inv(x.T @ x)
    at = inverse @ (x.T @ y)
    _, of = np.unique(games, return_inverse=True)
    sums = np.zeros((int(of.max()) + 1, x.shape[1]))
    np.add.at(sums, of, (y - x @ at)[:, None] * x)
    errors = np.sqrt((inverse @ sums.T @ sums @ inverse).diagonal())
    return at.tolist(), errors.tolist()
