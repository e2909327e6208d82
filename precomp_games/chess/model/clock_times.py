"""Thinking times of people: expected seconds of a move, fitted to the clocks of rated games.

    E seconds = exp(h(n) + r(n) (rating - 1500) / 400 + m(legal moves) + t log(T / 180) + i 40 inc / T)

n is the number of the mover's move, and T = base + 40 inc, a player's time for 40 moves. h, r and m are
linear between knots and constant beyond: better players are quicker at first, and then think longer; with few
legal moves a king is often in check, so the fewest seconds go to positions with some fifteen. The mean is
fitted, by Poisson's likelihood, and not the mean of logarithms, since the time left on the clock depends on a
sum of seconds. Each speed has its own fit; see `regression` for errors, and for speeds with few games.

A known move takes `KNOWN_SECONDS`. The saving is expected in comparison with players who do not know it; it
is only a comparison of means, since players who know a position are not drawn at random.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games.chess.data.game_records import SPEEDS
from precomp_games.chess.model.rated_games import TimedMove
from precomp_games.chess.model.regression import Coefficients, Data, Floats, fit_kinds, mean_of

KNOTS = (2, 4, 7, 11, 16, 22, 30, 40, 60)
"""Numbers of the mover's moves, counted from 1, at which h is fitted."""
KNOWN_SECONDS = {"bullet": 0.4, "blitz": 1.0, "rapid": 1.0, "classical": 1.0}
"""Seconds of a known move, by speed: moves in positions that had come up in 20 games and more."""
USUAL_MOVES = 30
"""Default number of legal moves; m is 0 there."""
_RATING_KNOTS = (2, 10, 20, 40)
_MOVES_KNOTS = (1, 5, 15, USUAL_MOVES, 50)
NAMES = (
    *(f"move {knot}" for knot in KNOTS),
    *(f"rating at move {knot}" for knot in _RATING_KNOTS),
    *(f"{knot} moves" for knot in _MOVES_KNOTS if knot != USUAL_MOVES),
    *("time", "increment"),
)
"""Names of the coefficients."""

_RATINGS = (1000.0, 2300.0)  # beyond them, times are constant
_FEWEST_GAMES = 50  # of a speed that has a fit
_CENTER = np.array([0.0] * (len(NAMES) - 2) + [1.0, 0.0])
# Standard deviations of the prior for the step from one speed to the next.
_SPREAD = np.array([0.5] * len(KNOTS) + [0.2] * (len(NAMES) - len(KNOTS) - 2) + [0.3, 0.5])


def _coefficients(value: object, name: str) -> tuple[float, ...]:
    if not isinstance(value, tuple | list) or len(value) != len(NAMES):
        raise ArgumentError(f"expected {name} to be {len(NAMES)} numbers, got {shown(value)}")
    return tuple(
        checks.check_number(each, f"{name}[{k}]", least=-100.0, most=100.0) for k, each in enumerate(value)
    )


@public
@dataclasses.dataclass(frozen=True)
class ClockTimes:
    """Thinking times of people of a rating under a time control.

    Attributes:
      speed: one of `SPEEDS`, of the fitted games.
      coefficients, errors: in the order of `NAMES`, and their standard errors.
      games, moves: their numbers in the fit.
      rating: the mean of both players' ratings.
      control: a player's seconds at first, and the increment for each move.
    """

    speed: Annotated[str, checks.one_of(SPEEDS)]
    coefficients: Annotated[tuple[float, ...], checks.Check(_coefficients)]
    errors: Annotated[tuple[float, ...], checks.Check(_coefficients)]
    games: checks.PositiveInt
    moves: checks.PositiveInt
    rating: Annotated[float, checks.Ge(0.0), checks.Le(5000.0)] = 1500.0
    control: tuple[float, float] = (180.0, 0.0)

    def __post_init__(self) -> None:
        """Check the time control."""
        base, added = checks.check_pair(self.control, "control")
        base = checks.check_number(base, "control[0]", least=1.0, most=1e6)
        added = checks.check_number(added, "control[1]", least=0.0, most=1e6)
        object.__setattr__(self, "control", (base, added))

    def seconds(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Return the expected seconds of a move.

        Args:
          ply: the half-move, counted from 0. The first of each side, before which no clock runs, is treated
            as its second one.
          num_moves: number of legal moves.
        """
        return float(self._means(np.array([ply]), num_moves)[0])

    def saved(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Return the expected seconds that are saved if the move is known."""
        return max(0.0, self.seconds(ply, num_moves) - KNOWN_SECONDS[self.speed])

    def clock(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Return the seconds that the mover of a half-move is expected to have left; at least 1."""
        base, added = self.control
        return max(1.0, base - float((self._means(np.arange(2 + ply % 2, ply, 2), num_moves) - added).sum()))

    def _means(self, plies: npt.NDArray[np.int64], num_moves: int) -> Floats:
        x = _features(plies // 2 + 1, self.rating, num_moves, *self.control)
        return mean_of("exponential", x @ np.array(self.coefficients))


def _features(move: Any, rating: Any, num_moves: Any, base: Any, added: Any) -> Floats:
    """Return float64[n, k]: the features of n moves that the coefficients multiply."""
    move, rating, num_moves, base, added = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(each, np.float64)) for each in (move, rating, num_moves, base, added))
    )
    total, points = np.maximum(1.0, base + 40.0 * added), (np.clip(rating, *_RATINGS) - 1500.0) / 400.0
    by_rating = [points * hat for hat in _hats(move, _RATING_KNOTS)]
    by_moves = [
        hat
        for hat, knot in zip(_hats(num_moves, _MOVES_KNOTS), _MOVES_KNOTS, strict=True)
        if knot != USUAL_MOVES
    ]
    by_time = (np.log(total / 180.0), 40.0 * added / total)
    return np.column_stack([*_hats(move, KNOTS), *by_rating, *by_moves, *by_time])


def _hats(at: Floats, knots: Sequence[int]) -> list[Floats]:
    """Return for each knot a function that is 1 there and 0 at others; weighted sums are linear between."""
    return [np.interp(at, knots, row) for row in np.eye(len(knots))]


def _features_of(moves: Sequence[TimedMove]) -> Floats:
    return _features(*np.array([(x.ply // 2 + 1, x.rating, x.num_moves, *x.control) for x in moves]).T)


def expected_seconds(times: ClockTimes, moves: Sequence[TimedMove]) -> Floats:
    """Return float64[n]: expected seconds of moves, each by its own rating and time control."""
    return mean_of("exponential", _features_of(moves) @ np.array(times.coefficients))


def fit_clock_times(moves: Sequence[TimedMove]) -> tuple[ClockTimes, ...]:
    """Fit each speed with at least `_FEWEST_GAMES` games.

    Raises:
      ValueError: no speed has so many games.
    """
    data = {}
    for speed in SPEEDS:
        of = [each for each in moves if each.speed == speed]
        if len({each.game for each in of}) >= _FEWEST_GAMES:
            data[speed] = Data(
                _features_of(of),
                np.array([each.seconds for each in of]),
                np.array([each.game for each in of]),
            )
    if not data:
        raise ArgumentError(f"expected moves of {_FEWEST_GAMES} games of a speed or more, got fewer")
    center = Coefficients(_CENTER, np.zeros((len(NAMES),) * 2))
    fits = fit_kinds("exponential", data, SPEEDS, center, _SPREAD)
    return tuple(
        ClockTimes(
            speed,
            tuple(fit.values.tolist()),
            tuple(fit.errors.tolist()),
            data[speed].num_games,
            len(data[speed].values),
        )
        for speed, fit in sorted(fits.items(), key=lambda each: SPEEDS.index(each[0]))
    )
