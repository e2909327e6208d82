"""How long people think: expected seconds of a move, fitted to the clocks of rated games.

    E seconds = exp(h(n) + r(n) (rating - 1500) / 400 + m(legal moves) + t log(T / 180) + i 40 inc / T)

n is which of the mover's moves it is, and T = base + 40 inc, what a player has for 40 moves. h, r and m are
linear between knots and constant beyond: better players are quicker at first, and then think longer; with few
moves to choose among a king is often in check, and so fewest seconds go to some fifteen. It is the mean that
is fitted, by Poisson's likelihood, and not the mean of logarithms: what is left on the clock is a sum of
seconds. Each speed has its own fit; see `regression` for errors, and for speeds of which there are few games.

A move that one knows takes `KNOWN_SECONDS`. What that saves is expected against players who do not know it;
it is no more than a comparison of means, since who knows a position is not drawn.
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
"""Of the mover's moves, counted from 1, those at which h is fitted."""
KNOWN_SECONDS = {"bullet": 0.4, "blitz": 1.0, "rapid": 1.0, "classical": 1.0}
"""What a move takes that one knows, by speed: moves of positions that had come up in 20 games and more."""
USUAL_MOVES = 30
"""Legal moves, where nobody has counted them; m is 0 there."""
_RATING_KNOTS = (2, 10, 20, 40)
_MOVES_KNOTS = (1, 5, 15, USUAL_MOVES, 50)
NAMES = (
    *(f"move {knot}" for knot in KNOTS),
    *(f"rating at move {knot}" for knot in _RATING_KNOTS),
    *(f"{knot} moves" for knot in _MOVES_KNOTS if knot != USUAL_MOVES),
    *("time", "increment"),
)
"""Of the coefficients."""

_RATINGS = (1000.0, 2300.0)  # beyond them, all is as there
_FEWEST_GAMES = 50  # of a speed that has a fit
_CENTER = np.array([0.0] * (len(NAMES) - 2) + [1.0, 0.0])
# How far they are elsewhere: from one speed to the next.
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
    """What people of a rating spend under a time control.

    Attributes:
      speed: one of `SPEEDS`, whose games were fitted.
      coefficients, errors: in the order of `NAMES`, and their standard errors.
      games, moves: how many were fitted to.
      rating: the mean of both players' ratings.
      control: seconds that a player has at first, and what each move adds.
    """

    speed: Annotated[str, checks.one_of(SPEEDS)]
    coefficients: Annotated[tuple[float, ...], checks.Check(_coefficients)]
    errors: Annotated[tuple[float, ...], checks.Check(_coefficients)]
    games: checks.PositiveInt
    moves: checks.PositiveInt
    rating: Annotated[float, checks.Ge(0.0), checks.Le(5000.0)] = 1500.0
    control: tuple[float, float] = (180.0, 0.0)

    def __post_init__(self) -> None:
        """Checks the time control."""
        base, added = checks.check_pair(self.control, "control")
        base = checks.check_number(base, "control[0]", least=1.0, most=1e6)
        added = checks.check_number(added, "control[1]", least=0.0, most=1e6)
        object.__setattr__(self, "control", (base, added))

    def seconds(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Expected seconds of a move.

        Args:
          ply: the half-move, counted from 0. The first of each side, before which no clock runs, is taken as
            its second one.
          num_moves: legal moves there.
        """
        return float(self._means(np.array([ply]), num_moves)[0])

    def saved(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Expected seconds that are saved where the move is known."""
        return max(0.0, self.seconds(ply, num_moves) - KNOWN_SECONDS[self.speed])

    def clock(self, ply: int, num_moves: int = USUAL_MOVES) -> float:
        """Seconds that who moves at a half-move is expected to have left; 1 at least."""
        base, added = self.control
        return max(1.0, base - float((self._means(np.arange(2 + ply % 2, ply, 2), num_moves) - added).sum()))

    def _means(self, plies: npt.NDArray[np.int64], num_moves: int) -> Floats:
        x = _features(plies // 2 + 1, self.rating, num_moves, *self.control)
        return mean_of("exponential", x @ np.array(self.coefficients))


def _features(move: Any, rating: Any, num_moves: Any, base: Any, added: Any) -> Floats:
    """float64[n, k]: what the coefficients are multiplied by, of n moves."""
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
    """What is 1 at a knot, and 0 at others, for each knot: their sum, weighted, is linear between them."""
    return [np.interp(at, knots, row) for row in np.eye(len(knots))]


def _features_of(moves: Sequence[TimedMove]) -> Floats:
    return _features(*np.array([(x.ply // 2 + 1, x.rating, x.num_moves, *x.control) for x in moves]).T)


def expected_seconds(times: ClockTimes, moves: Sequence[TimedMove]) -> Floats:
    """float64[n]: expected seconds of moves, each by its own rating and time control."""
    return mean_of("exponential", _features_of(moves) @ np.array(times.coefficients))


def fit_clock_times(moves: Sequence[TimedMove]) -> tuple[ClockTimes, ...]:
    """Fits of each speed of which there are `_FEWEST_GAMES` or more.

    Raises:
      ValueError: there is none.
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
