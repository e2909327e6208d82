"""Fits the half-life and alpha that predict a player best: by the likelihood of later games, given earlier.

Each move is predicted from the months before its own by

    P(m | position) = (n(m) + alpha q(m | position)) / (n + alpha),    n: weights 2^(-age / H),

ages being counted up to the beginning of the month, and the maximum likelihood over (H, alpha) is searched on
a grid; alpha is then refined. The prior q stays as it is. So nothing unknown in a month is used for it:
neither its own games, nor later ones, nor, with `fits`, an H or alpha that they have determined. With years
in place of months, the games of a player who changes openings within a year would seem to be worth little
beside the prior (`docs/people.md`); games whose date is a year alone are all of its middle.

Cost: for each H, two passes over the table and an array of all different moves for each month with games;
then a logarithm for each move, H and alpha.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import scipy  # imports `optimize` when it is used: half a second

from precomp_games._support.checks import ArgumentError
from precomp_games.chess.data.move_counts import GameTable, GameWeights

Floats = npt.NDArray[np.float64]

HALF_LIVES = (*(0.0625 * 2.0 ** (k / 2) for k in range(21)), math.inf)
"""Half-lives that are tried, in years: a sixteenth to 64, and infinity."""
ALPHAS = tuple(0.02 * 2.0 ** (k / 2) for k in range(23))
"""Alphas that are tried first: 0.02 to 41."""
_MONTHS = 12  # of a year
_LEAST = 1e-12  # least probability in a logarithm: a prior may rule out a move that was played


@dataclasses.dataclass(frozen=True)
class CountFit:
    """The half-life and alpha that predict moves best.

    Attributes:
        half_life: H, in years; infinity if age makes no difference.
        alpha: number of games that the prior is worth.
        bits: mean surprise of a move in the fit.
        moves: number of moves in the fit.
    """

    half_life: float
    alpha: float
    bits: float
    moves: int


class RollingCounts:
    """The moves of a player, each of them predicted from earlier months.

    Attributes:
        years: float64[n], decimal, of each move that counts: the player's own dated moves, in the table's
            order.
        moves: int64[n], their indices among the table's own moves.
    """

    def __init__(self, table: GameTable, weights: GameWeights | None = None) -> None:
        """Sort the moves.

        Args:
            table: the games.
            weights: settings of games' weights, except for age.

        Raises:
            ValueError: no dated game.
        """
        weights = weights or GameWeights()
        years = table.years[table.game]
        dated = ~np.isnan(years[table.own])
        kept = np.flatnonzero(table.own)[dated]
        self.moves = np.flatnonzero(dated)
        if not len(kept):
            raise ArgumentError(f"expected games with dates, got none of {table.num_games}")
        self.years = years[kept]
        self._month = np.floor(self.years * _MONTHS).astype(np.int64)
        _, self._position = np.unique(table.keys[kept], return_inverse=True)
        pairs = self._position.astype(np.int64) << 16 | table.actions[kept].astype(np.int64)
        _, self._pair = np.unique(pairs, return_inverse=True)
        self._base = weights.base(table)[kept]
        self._order = np.argsort(self._month, kind="stable")
        self._sums: dict[float, tuple[Floats, Floats]] = {}  # used by two fits

    def sums(self, half_life: float) -> tuple[Floats, Floats]:
        """Return two float64[n]: weights in earlier months of the move played, and of all moves there."""
        if half_life not in self._sums:
            self._sums[half_life] = self._summed(half_life)
        return self._sums[half_life]

    def _summed(self, half_life: float) -> tuple[Floats, Floats]:
        own, every = np.zeros(len(self.years)), np.zeros(len(self.years))
        of_pair = np.zeros(int(self._pair.max()) + 1)
        of_position = np.zeros(int(self._position.max()) + 1)
        months, starts = np.unique(self._month[self._order], return_index=True)
        before = int(months[0])
        for month, rows in zip(months.tolist(), np.split(self._order, starts[1:]), strict=True):
            aged = 2.0 ** (-(month - before) / _MONTHS / half_life)
            of_pair *= aged
            of_position *= aged
            before = month
            pair, position = self._pair[rows], self._position[rows]
            own[rows], every[rows] = of_pair[pair], of_position[position]
            age = month / _MONTHS - self.years[rows]  # negative: they happen after its beginning
            weight = self._base[rows] * np.exp2(-age / half_life)
            np.add.at(of_pair, pair, weight)
            np.add.at(of_position, position, weight)
        return own, every

    def probabilities(self, half_life: float, alpha: float, prior: Floats) -> Floats:
        """Return float64[n]: the predicted probability of each move.

        Args:
            half_life: H.
            alpha: number of games that the prior is worth, at least 0.
            prior: float64[n], q of each move.
        """
        own, every = self.sums(half_life)
        return _predicted(own, every, alpha, prior)

    def fits(
        self,
        prior: Floats,
        before: Sequence[float],
        half_lives: Sequence[float] = HALF_LIVES,
        among: npt.NDArray[np.bool_] | None = None,
    ) -> list[CountFit]:
        """Fit H and alpha by maximum likelihood, to the months that end before each of some times.

        Args:
            prior: float64[n], q of each move.
            before: decimal years, or infinity for all months.
            half_lives: half-lives to try.
            among: bool[n], the moves whose likelihood counts; all moves are counted in n. None: all.

        Raises:
            ValueError: no month with games ends before one of the times.
        """
        seen = [self._month + 1 <= year * _MONTHS for year in before]
        for year, ended in zip(before, seen, strict=True):
            if not ended.any():
                raise ArgumentError(f"expected before to be later than the first month, got {year:g}")
        sums = {half_life: self.sums(half_life) for half_life in half_lives}
        return [_best(prior, each if among is None else each & among, sums) for each in seen]


def _best(
    prior: Floats, seen: npt.NDArray[np.bool_], sums: Mapping[float, tuple[Floats, Floats]]
) -> CountFit:
    """Return the best of these half-lives, and its alpha, by the moves of `seen`."""
    prior = prior[seen]
    tried = {half_life: (own[seen], every[seen]) for half_life, (own, every) in sums.items()}
    loss, half_life, alpha = min(
        (_loss(*each, alpha, prior), half_life, alpha)
        for half_life, each in tried.items()
        for alpha in ALPHAS
    )
    own, every = tried[half_life]
    refined = scipy.optimize.minimize_scalar(
        lambda x: _loss(own, every, math.exp(x), prior),
        bounds=(math.log(alpha) - 0.35, math.log(alpha) + 0.35),
        method="bounded",
        options={"xatol": 1e-4},
    )
    if refined.fun < loss:
        loss, alpha = float(refined.fun), math.exp(refined.x)
    return CountFit(half_life, alpha, loss, int(seen.sum()))


def _predicted(own: Floats, every: Floats, alpha: float, prior: Floats) -> Floats:
    if math.isinf(alpha):
        return prior.copy()
    whole = every + alpha
    return np.where(whole > 0.0, (own + alpha * prior) / np.where(whole > 0.0, whole, 1.0), prior)


def _loss(own: Floats, every: Floats, alpha: float, prior: Floats) -> float:
    """Return bits a move."""
    return float(-np.log2(np.maximum(_predicted(own, every, alpha, prior), _LEAST)).mean())
