"""Statistics of a match, as in match programs: the Elo difference, and a sequential test.

Scores and signs are from our viewpoint.

  * Elo difference: -400 log10(1 / s - 1) of the mean score s.
  * Its 95 % interval, by the delta method: the score's standard error, times the slope at s. If all results
    are equal, the standard error is 0 and meaningless. The ends are then those of `mean_interval`, in Elo, so
    after wins alone the difference is infinite, and the interval reaches from a finite value to infinity.
  * The generalized sequential probability ratio test: log(maximum likelihood given score s1) minus that given
    s0. The likelihood is maximized over all distributions of the three results. Its maximum under
    a mean of s is p_i = f_i / (1 + x (a_i - s)), with the observed shares f_i of results a_i, and x the root
    of sum_i f_i (a_i - s) / (1 + x (a_i - s)), by Brent.

Sources: M. Van den Bergh's notes on the multinomial maximum (cantate.be/Fishtest:
support_MLE_multinomial.pdf); fishtest, server/fishtest/stats; A. Wald for the bounds.

Deviations from fishtest, and reasons:

  * No thousandth of a game is added for a result that was never seen. The maximum exists without it: the
    missing mass lies on an end of the range, and x at an end of its interval.
  * Elo's interval is symmetric around the difference, instead of the ends of the score's interval in Elo,
    which cannot be used near 0 and 1. The least coverage of 95 % intervals over scores from 0.5 to 0.998, if
    a share of 0, 0.3, 0.7 or 1 of the lost points is lost by draws, by enumeration of all results of 100
    games:

        delta method, as above          0.94   0.95   0.95   0.94
        the score's ends, as Elo        0.18   0.23   0.29   0.33

    For 20 games the first is 0.94, 0.94, 0.93 and 0.92.

Cost: some 0.2 ms for a likelihood ratio. `sprt` computes one after each game.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import scipy  # imports `optimize` when it is used: half a second

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Result
from precomp_games.policies.playouts import mean_interval

_NORMAL_95 = 1.959963984540054
_MOST_GAMES = 10_000_000
_RESULTS = np.array([0.0, 0.5, 1.0])
_BOUND = math.log(0.95 / 0.05)  # of the test, either way: each error has a probability of 5 %

_Array = npt.NDArray[np.float64]
_Count = Annotated[int, checks.Ge(0), checks.Le(_MOST_GAMES)]
_Elo = Annotated[float, checks.Ge(-1000.0), checks.Le(1000.0)]


@public
@dataclasses.dataclass(frozen=True)
class MatchStatistics(Result):
    """Results of a match, with statistics. `str` gives a line of them.

    Attributes:
      wins: Number of our wins.
      draws: Number of draws.
      losses: Number of our losses.
    """

    wins: _Count
    draws: _Count
    losses: _Count

    def __post_init__(self) -> None:
        if not self.games:
            raise ArgumentError("expected at least one game, got none")

    @classmethod
    @public
    def of_scores(cls, scores: Sequence[float] | _Array) -> MatchStatistics:
        """Count the results of games.

        Args:
          scores: float[games], 1, 1/2 or 0 each.

        Raises:
          ValueError: no game, or other scores.
        """
        losses, draws, wins = map(int, np.bincount(_half_points(scores), minlength=3))
        return cls(wins, draws, losses)

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Mean score, from 0 to 1."""
        return (self.wins + 0.5 * self.draws) / self.games

    @property
    def elo(self) -> float:
        """Elo difference; infinite if the score is 0 or 1."""
        return _elo(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of the difference; one end is infinite if the score is 0 or 1."""
        shares = self._shares
        if (shares == 1.0).any():
            low, high = mean_interval(np.full(self.games, self.score), 0.0, 1.0)
            return _elo(low), _elo(high)
        variance = float(shares @ (_RESULTS - shares @ _RESULTS) ** 2)
        error = math.sqrt(variance / self.games)
        half = _NORMAL_95 * error * 400.0 / math.log(10.0) / (self.score * (1.0 - self.score))
        return self.elo - half, self.elo + half

    @public
    def llr(self, elo0: _Elo, elo1: _Elo) -> float:
        """Return the logarithm of the likelihood ratio of two Elo differences: above 0 for the second.

        Args:
          elo0: one difference.
          elo1: the other.
        """
        shares, seen = self._shares, self._shares > 0.0
        likely = [_tilted(shares, _RESULTS - 1.0 / (1.0 + 10.0 ** (-elo / 400.0))) for elo in (elo0, elo1)]
        return self.games * float(shares[seen] @ np.log(likely[1][seen] / likely[0][seen]))

    def __str__(self) -> str:
        low, high = self.elo_interval
        return (
            f"{_signed(self.elo)} (95 %: {_signed(low)} to {_signed(high)}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost"
        )

    @property
    def _shares(self) -> _Array:
        """Shares of the results."""
        return np.array((self.losses, self.draws, self.wins)) / self.games


@dataclasses.dataclass(frozen=True)
class Sprt(Result):
    """A generalized sequential probability ratio test, of H0 and H1. `str` gives a line of it.

    Attributes:
      elo0: Our Elo difference to the opponent by H0.
      elo1: By H1.
      games: Number of games after which the test ended; all, if it goes on.
      llr: The logarithm of the likelihood ratio after these; H0 is accepted at -log(19), H1 at log(19).
    """

    elo0: float
    elo1: float
    games: int
    llr: float

    @property
    def verdict(self) -> str:
        """The verdict: "H0 accepted", "H1 accepted", or "goes on"."""
        if self.llr <= -_BOUND:
            return "H0 accepted"
        return "H1 accepted" if self.llr >= _BOUND else "goes on"

    def __str__(self) -> str:
        return (
            f"LLR {self.llr:.2f} ({-_BOUND:.2f} to {_BOUND:.2f}) after {self.games} games, "
            f"H0: {self.elo0:+g}, H1: {self.elo1:+g} logistic Elo: {self.verdict}"
        )


@public
def sprt(scores: Sequence[float] | _Array, elo0: _Elo, elo1: _Elo) -> Sprt:
    """Test games in their order, up to the one that reaches a bound.

    Either hypothesis is wrongly rejected with a probability of 5 %. Later games do not matter; a test only
    after all games would be another test.

    Args:
      scores: float[games], ours: 1, 1/2 or 0 each.
      elo0: our difference to the opponent by H0.
      elo1: by H1, a larger one.

    Raises:
      ValueError: other scores, or no larger difference by H1.
    """
    if elo0 >= elo1:
        raise ArgumentError(f"expected elo1 to be greater than elo0, {elo0:g}, got {elo1:g}")
    counts = [0, 0, 0]
    for half_points in _half_points(scores).tolist():
        counts[2 - half_points] += 1
        found = MatchStatistics(*counts)
        if abs(llr := found.llr(elo0, elo1)) >= _BOUND:
            break
    return Sprt(elo0, elo1, found.games, llr)


def _half_points(scores: Any) -> npt.NDArray[np.int64]:
    array = checks.real_array(scores)
    if array is None or array.ndim != 1 or not len(array) or not np.isin(array, _RESULTS).all():
        raise ArgumentError(f"expected scores to be 1, 1/2 or 0 of at least one game, got {shown(scores)}")
    return (2.0 * array).astype(np.int64)


def _elo(score: float) -> float:
    if not 0.0 < score < 1.0:
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))


def _signed(elo: float) -> str:
    return f"{round(elo, 1) + 0.0:+.0f}" if math.isfinite(elo) else f"{elo:+}"


def _tilted(shares: _Array, amounts: _Array) -> _Array:
    """Return the likeliest distribution under which the mean of amounts, of both signs, is 0."""
    most, least = int(amounts.argmax()), int(amounts.argmin())
    # No probability is greater than 1, which bounds x. If an end was never seen, 1 + x amount is 0 there at
    # the bound: it may have any mass then, and gets the rest of the mass.
    low, high = (shares[most] - 1.0) / amounts[most], (shares[least] - 1.0) / amounts[least]
    seen = shares > 0.0
    share, amount = shares[seen], amounts[seen]

    def mean(x: float) -> float:
        return float(np.sum(share * amount / (1.0 + x * amount)))

    if mean(low) <= 0.0:
        x = low
    elif mean(high) >= 0.0:
        x = high
    else:
        x = scipy.optimize.brentq(mean, low, high, xtol=1e-15, rtol=1e-14)
    tilted = np.zeros(len(shares))
    tilted[seen] = share / (1.0 + x * amount)
    tilted[most if x < 0.0 else least] += max(0.0, 1.0 - float(tilted.sum()))
    return tilted
