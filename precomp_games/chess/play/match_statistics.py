"""What match programs say of a match: the Elo difference, normalized Elo, LOS, and a sequential test.

Scores are ours, and so are all signs. Where games come in pairs, of the same opening with colors reversed,
the two games of a pair depend on each other: pairs are what is counted then, by their score of 0, 1/2, 1, 3/2
or 2 (the pentanomial), and their variance is the one that matters. Else games are counted (the trinomial).

  * Elo difference: -400 log10(1 / s - 1) of the mean score s.
  * Its 95 % interval, by the delta method: the score's standard error, times the slope at s. Where all
    results are equal the standard error is 0 and means nothing. The ends are those of `mean_interval` then,
    turned into Elo, so that after wins alone the difference is infinite, and the interval reaches from
    something finite to infinity.
  * Normalized Elo: 800 / ln 10 times t = (s - 1/2) / (standard deviation of a game), which says how many
    games it takes to see a difference. A game's deviation is sqrt(2) times that of a pair's mean score.
  * LOS, the likelihood of superiority: Phi of the points above one half, over the root of the sum of their
    squares. Without pairs that is Phi((W - L) / sqrt(W + L)), as cutechess has it (`Elo::LOS`).
  * The generalized sequential probability ratio test: log(maximum likelihood where the score is s1) less the
    same where it is s0. The likelihood is that of all distributions over the 3 or 5 results. Its maximum
    under a mean of s is p_i = f_i / (1 + x (a_i - s)), with the observed shares f_i of results a_i, and x the
    root of sum_i f_i (a_i - s) / (1 + x (a_i - s)), by Brent. Where hypotheses are normalized Elo, t is fixed
    in place of the mean: the same with a_i - 1/2 - t d (1 + (a_i - m)^2 / d^2) / 2 in place of a_i - s, with
    the mean m and the deviation d of the solution before, until nothing moves.

Sources: M. Van den Bergh's notes on the multinomial maximum, "Normalized Elo" and "Comments on normalized
Elo" (cantate.be/Fishtest: support_MLE_multinomial.pdf, normalized_elo.pdf, normalized_elo_practical.pdf);
fishtest, server/fishtest/stats; A. Wald for the bounds.

Where this deviates from fishtest, and why:

  * A result that was never seen has no thousandth of a game added. The maximum exists without it: the mass
    that is missing lies on an end of the range, and x at an end of its interval.
  * Elo's interval is symmetric around the difference, and not what the ends of the score's become, which
    cannot be used near 0 and 1. The least coverage of 95 % intervals over scores from 0.5 to 0.998, with lost
    points lost by draws to shares of 0, 0.3, 0.7 and 1, by enumeration of all results of 100 games:

        delta method, as above          0.94   0.95   0.95   0.94
        the score's ends, as Elo        0.18   0.23   0.29   0.33

    For 20 games the first is 0.94, 0.94, 0.93 and 0.92.
  * The interval of normalized Elo counts that the deviation is estimated, too: the variance of t is
    (1 - t g + t^2 (k - 1) / 4) / n with the skewness g and the kurtosis k. With 1 / n alone, which is what is
    reported elsewhere and the same where t is small, coverage is 0.5 at a score of 0.9; with all of it, at
    least 0.91 up to 0.99, in 100 games. Beyond, too few points are lost to know a deviation.

Cost: some 0.2 ms for a likelihood ratio, a few times that with normalized Elo. `sprt` asks for one after each
game.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import scipy  # which imports `optimize` when that is used: half a second

from precomp_games._support.arguments import Check, Ge, Gt, Le, Lt, public
from precomp_games._support.checks import ArgumentError, check_integer, real_array, shown
from precomp_games._support.results import Result
from precomp_games.policies.playouts import mean_interval

_NORMAL_95 = 1.959963984540054
_NORMALIZED = 800.0 / math.log(10.0)  # so that it is Elo, for small differences without draws
_MOST_GAMES = 10_000_000
_MOST_NORMALIZED = 300.0  # beyond, the likelihood may have several maxima
_SETTLED = 1e-13
_ROUNDS = 1_000  # a dozen are usual

EloModel = Literal["logistic", "normalized"]
"""How a hypothesis says a difference."""

_Array = npt.NDArray[np.float64]
_Count = Annotated[int, Ge(0), Le(_MOST_GAMES)]
_Elo = Annotated[float, Ge(-1000.0), Le(1000.0)]
_Risk = Annotated[float, Gt(0.0), Lt(0.5)]


def _check_pairs(value: Any, name: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes) or len(value) != 5:
        raise ArgumentError(f"expected {name} to be 5 counts, of scores 0 to 2, got {shown(value)}")
    return tuple(check_integer(each, name, least=0, most=_MOST_GAMES) for each in value)


@public
@dataclasses.dataclass(frozen=True)
class MatchStatistics(Result):
    """Results of a match, and what they say. `str` is a line of it.

    Attributes:
      wins: Ours.
      draws: Both sides'.
      losses: Ours.
      pairs: How many pairs of games scored 0, 1/2, 1, 3/2 and 2, where games come in pairs; else None.
    """

    wins: _Count
    draws: _Count
    losses: _Count
    pairs: Annotated[tuple[int, ...] | None, Check(_check_pairs)] = None

    def __post_init__(self) -> None:
        if not self.games:
            raise ArgumentError("expected at least one game, got none")
        if self.pairs is not None:
            points = sum(score * count for score, count in enumerate(self.pairs))
            if 2 * sum(self.pairs) != self.games or points != 2 * self.wins + self.draws:
                raise ArgumentError(
                    f"expected pairs of {self.games} games with {self.wins + self.draws / 2:g} points, "
                    f"got {2 * sum(self.pairs)} games with {points / 2:g}"
                )

    @classmethod
    @public
    def of_scores(cls, scores: Sequence[float] | _Array, *, paired: bool = False) -> MatchStatistics:
        """Those of games.

        Args:
          scores: float[games], 1, 1/2 or 0 each.
          paired: the first and the second game are a pair, the third and the fourth, and so on.

        Raises:
          ValueError: no game, other scores, or an odd number of games in pairs.
        """
        halves = _half_points(scores, paired)
        losses, draws, wins = map(int, np.bincount(halves, minlength=3))
        pairs = np.bincount(halves[::2] + halves[1::2], minlength=5).tolist() if paired else None
        return cls(wins, draws, losses, pairs)

    @property
    def games(self) -> int:
        """How many."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """The mean, from 0 to 1."""
        return (self.wins + 0.5 * self.draws) / self.games

    @property
    def draw_ratio(self) -> float:
        """The share of games that were drawn."""
        return self.draws / self.games

    @property
    def elo(self) -> float:
        """The difference; infinite where the score is 0 or 1."""
        return _elo(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 %; one end is infinite where the score is 0 or 1."""
        shares, results = self._shares()
        if self._is_uniform:
            low, high = mean_interval(np.full(self._size, self.score), 0.0, 1.0)
            return _elo(low), _elo(high)
        error = math.sqrt(_variance(shares, results) / self._size)
        half = _NORMAL_95 * error * 400.0 / math.log(10.0) / (self.score * (1.0 - self.score))
        return self.elo - half, self.elo + half

    @property
    def normalized_elo(self) -> float:
        """The difference by a game's deviation; infinite where that is 0, unless the score is 1/2."""
        if self._is_uniform:
            return 0.0 if self.score == 0.5 else math.copysign(math.inf, self.score - 0.5)
        return _NORMALIZED * self._per_game * self._t

    @property
    def normalized_elo_interval(self) -> tuple[float, float]:
        """95 %; where all results are equal they say nothing of a deviation, and it has no ends."""
        if self._is_uniform:
            return -math.inf, math.inf
        shares, results = self._shares()
        z = (results - self.score) / math.sqrt(_variance(shares, results))
        skewness, kurtosis = (float(shares @ z**power) for power in (3, 4))
        variance = 1.0 - self._t * skewness + self._t**2 * (kurtosis - 1.0) / 4.0
        # Where there are two results t is a function of one share, and rounding can leave less than nothing.
        half = _NORMALIZED * self._per_game * _NORMAL_95 * math.sqrt(max(variance, 0.0) / self._size)
        return self.normalized_elo - half, self.normalized_elo + half

    @property
    def los(self) -> float:
        """The likelihood of superiority; 1/2 where all games were drawn."""
        shares, results = self._shares()
        above = results - 0.5
        squares = float(shares @ above**2)
        z = math.sqrt(self._size / squares) * float(shares @ above) if squares else 0.0
        return 0.5 * math.erfc(-z / math.sqrt(2.0))

    @public
    def llr(self, elo0: _Elo, elo1: _Elo, model: EloModel = "logistic") -> float:
        """The logarithm of the generalized likelihood ratio of two differences: above 0 for the second.

        Args:
          elo0: one difference.
          elo1: the other.
          model: what they are: "logistic" or "normalized" Elo, the latter at most 300 either way.

        Raises:
          ValueError: an argument is none of these.
        """
        _check_normalized(elo0, elo1, model)
        return _llr(*self._shares(), elo0, elo1, model) * self._size

    def __str__(self) -> str:
        low, high = self.elo_interval
        return (
            f"{_signed(self.elo)} (95 %: {_signed(low)} to {_signed(high)}), "
            f"{self.wins} won, {self.draws} drawn, {self.losses} lost"
        )

    def _shares(self) -> tuple[_Array, _Array]:
        """Shares of results, and their mean scores, from 0 to 1."""
        counts = (self.losses, self.draws, self.wins) if self.pairs is None else self.pairs
        return np.array(counts) / self._size, np.linspace(0.0, 1.0, len(counts))

    @property
    def _size(self) -> int:
        """How many results are independent: pairs, or games."""
        return self.games if self.pairs is None else self.games // 2

    @property
    def _per_game(self) -> float:
        """What makes t of a result that of a game."""
        return 1.0 if self.pairs is None else math.sqrt(0.5)

    @property
    def _is_uniform(self) -> bool:
        return bool((self._shares()[0] == 1.0).any())

    @property
    def _t(self) -> float:
        return (self.score - 0.5) / math.sqrt(_variance(*self._shares()))


@dataclasses.dataclass(frozen=True)
class Sprt(Result):
    """A generalized sequential probability ratio test, of H0 and H1. `str` is a line of it.

    Attributes:
      elo0: Our Elo difference to the opponent by H0.
      elo1: By H1.
      model: What these are: "logistic" or "normalized" Elo.
      lower: log(beta / (1 - alpha)), where H0 is accepted.
      upper: log((1 - beta) / alpha), where H1 is accepted.
      games: After how many the test had ended; all, where it goes on.
      llr: The logarithm of the likelihood ratio after these.
    """

    elo0: float
    elo1: float
    model: str
    lower: float
    upper: float
    games: int
    llr: float

    @property
    def verdict(self) -> str:
        """What it comes to: "H0 accepted", "H1 accepted", or "goes on"."""
        if self.llr <= self.lower:
            return "H0 accepted"
        return "H1 accepted" if self.llr >= self.upper else "goes on"

    def __str__(self) -> str:
        return (
            f"LLR {self.llr:.2f} ({self.lower:.2f} to {self.upper:.2f}) after {self.games} games, "
            f"H0: {self.elo0:+g}, H1: {self.elo1:+g} {self.model} Elo: {self.verdict}"
        )


@public
def sprt(
    scores: Sequence[float] | _Array,
    elo0: _Elo,
    elo1: _Elo,
    *,
    model: EloModel = "logistic",
    alpha: _Risk = 0.05,
    beta: _Risk = 0.05,
    paired: bool = False,
) -> Sprt:
    """The test of games in their order, which ends with the game, or the pair, that reaches a bound.

    Games after that change nothing: a test that looks at all of them and at no other time is another one.

    Args:
      scores: float[games], ours: 1, 1/2 or 0 each.
      elo0: our difference to the opponent by H0.
      elo1: by H1, a larger one.
      model: what they are: "logistic" or "normalized" Elo, the latter at most 300 either way.
      alpha: how probable H1 may be accepted where the difference is `elo0`.
      beta: how probable H0 may be accepted where the difference is `elo1`.
      paired: as in `MatchStatistics.of_scores`.

    Raises:
      ValueError: an argument is none of these.
    """
    _check_normalized(elo0, elo1, model)
    if elo0 >= elo1:
        raise ArgumentError(f"expected elo1 to be greater than elo0, {elo0:g}, got {elo1:g}")
    lower, upper = math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)
    halves = _half_points(scores, paired)
    each = halves[::2] + halves[1::2] if paired else halves
    counts = np.zeros(5 if paired else 3)
    results = np.linspace(0.0, 1.0, len(counts))
    llr = 0.0
    for number, result in enumerate(each.tolist(), start=1):
        counts[result] += 1.0
        llr = number * _llr(counts / number, results, elo0, elo1, model)
        if not lower < llr < upper:
            break
    return Sprt(elo0, elo1, model, lower, upper, number * (1 + paired), llr)


def _half_points(scores: Any, paired: bool) -> npt.NDArray[np.int64]:
    array = real_array(scores)
    if array is None or array.ndim != 1 or not len(array) or not np.isin(array, (0.0, 0.5, 1.0)).all():
        raise ArgumentError(f"expected scores to be 1, 1/2 or 0 of at least one game, got {shown(scores)}")
    if paired and len(array) % 2:
        raise ArgumentError(f"expected scores to be of pairs of games, got {len(array)} games")
    return (2.0 * array).astype(np.int64)


def _check_normalized(elo0: float, elo1: float, model: str) -> None:
    for elo in (elo0, elo1):
        if model == "normalized" and abs(elo) > _MOST_NORMALIZED:
            raise ArgumentError(
                f"expected normalized Elo to be at most {_MOST_NORMALIZED:g} either way, got {elo:g}"
            )


def _elo(score: float) -> float:
    if not 0.0 < score < 1.0:
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))


def _signed(elo: float) -> str:
    return f"{round(elo, 1) + 0.0:+.0f}" if math.isfinite(elo) else f"{elo:+}"


def _variance(shares: _Array, results: _Array) -> float:
    return float(shares @ (results - shares @ results) ** 2)


def _llr(shares: _Array, results: _Array, elo0: float, elo1: float, model: str) -> float:
    """For each result that was seen, on average."""
    likely = []
    for elo in (elo0, elo1):
        if model == "logistic" or elo == 0.0:  # which is a mean of 1/2 for both, whatever the deviation
            likely.append(_tilted(shares, results - 1.0 / (1.0 + 10.0 ** (-elo / 400.0))))
        else:
            of_pairs = math.sqrt(2.0) if len(results) == 5 else 1.0
            likely.append(_likeliest_of_t(shares, results, of_pairs * elo / _NORMALIZED))
    seen = shares > 0.0
    return float(shares[seen] @ np.log(likely[1][seen] / likely[0][seen]))


def _tilted(shares: _Array, amounts: _Array) -> _Array:
    """The likeliest distribution by observed shares under which the mean of amounts, of both signs, is 0."""
    most, least = int(amounts.argmax()), int(amounts.argmin())
    # No probability is greater than 1, which bounds x. Where an end was never seen, 1 + x amount is 0 there
    # at the bound: it may have any mass then, and has what is missing to 1.
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


def _likeliest_of_t(shares: _Array, results: _Array, t: float) -> _Array:
    """The likeliest distribution by observed shares with (mean - 1/2) / deviation = t."""
    likely = _any_of_t(results, t)
    for _ in range(_ROUNDS):
        before = likely
        mean, deviation = float(before @ results), math.sqrt(_variance(before, results))
        # A deviation d is the least of (e + V / e) / 2 over e, with the mean square V around any m. So these
        # amounts have a mean of 0 where t is fixed and m and d are right; what has a mean of 0 by others has
        # no smaller a t, which is why some amount always has the sign of t.
        amounts = results - 0.5 - 0.5 * t * (deviation + (results - mean) ** 2 / deviation)
        likely = _tilted(shares, amounts)
        if np.abs(likely - before).max() < _SETTLED:
            break
    return likely


def _any_of_t(results: _Array, t: float) -> _Array:
    """A distribution with this t: all results alike, and more of all won or all lost."""
    even, end = np.full(len(results), 1.0 / len(results)), np.zeros(len(results))
    end[-1 if t > 0.0 else 0] = 1.0
    # With a weight w of the end, the mean is (1 +- w) / 2 and the variance (1 - w)(v + w / 4): a square root.
    variance = _variance(even, results)
    a, b, c = 1.0 / 4.0 + t * t / 4.0, t * t * (variance - 1.0 / 4.0), -t * t * variance
    weight = (-b + math.sqrt(b * b - 4.0 * a * c)) / (2.0 * a)
    return (1.0 - weight) * even + weight * end
