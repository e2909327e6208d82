"""Which half-life and which alpha predict a player: by the likelihood of later games, given earlier ones.

Time is cut into periods. Each move is predicted from the periods before its own by

    P(m | position) = (n(m) + alpha q(m | position)) / (n + alpha),    n: weights 2^(-age / H),

ages being counted up to the beginning of the period, and (H, alpha) of the greatest likelihood is looked for
on a grid; alpha is then refined. The prior q stays as it is. What is not known in a period is thus not used
for it: neither its own games, nor later ones, nor, with `fits`, an H or alpha that they have chosen.

Cost: for each H, two passes over the table and an array of all different moves for each period; then a
logarithm for each move, H and alpha.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import scipy  # which imports `optimize` when that is used: half a second

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games.chess.data.move_counts import GameTable, GameWeights

Floats = npt.NDArray[np.float64]

HALF_LIVES = (*(0.25 * 2.0 ** (k / 2) for k in range(17)), math.inf)
"""Half-lives that are tried, in years: a quarter to 64, and infinity."""
ALPHAS = tuple(0.02 * 2.0 ** (k / 2) for k in range(23))
"""Alphas that are tried first: 0.02 to 41."""
_SLACK = 1e-9  # years
_LEAST = 1e-12  # of a probability whose logarithm is taken: a prior may rule out what was played


@dataclasses.dataclass(frozen=True)
class CountFit:
    """The half-life and alpha that predict moves best.

    Attributes:
        half_life: H, in years; infinity if age makes no difference.
        alpha: games that the prior is worth.
        bits: how much each move that the fit looked at surprises, on average.
        moves: how many it looked at.
    """

    half_life: float
    alpha: float
    bits: float
    moves: int


class RollingCounts:
    """The moves of a player, each of them predicted from earlier periods.

    Attributes:
        period: years.
        block: int64[n], the period of each move that counts, from 0; the moves are those of the table that
            are its player's own and have a date, in their order.
        moves: int64[n], their indices among the table's own moves.
    """

    @public
    def __init__(
        self, table: GameTable, weights: GameWeights | None = None, *, period: checks.PositiveFloat = 1.0
    ) -> None:
        """Sorts the moves.

        Args:
            table: the games.
            weights: how much a game counts but for its age.
            period: years that are predicted at once.

        Raises:
            ValueError: no table, no weights, no positive number; or no dated game.
        """
        weights, self.period = weights or GameWeights(), period
        years = table.years[table.game]
        dated = ~np.isnan(years[table.own])
        kept = np.flatnonzero(table.own)[dated]
        self.moves = np.flatnonzero(dated)
        if not len(kept):
            raise ArgumentError(f"expected games with dates, got none of {table.num_games}")
        self._years = years[kept]
        number = np.floor(self._years / self.period).astype(np.int64)
        self._first = int(number.min())
        self.block = number - self._first
        _, self._position = np.unique(table.keys[kept], return_inverse=True)
        pairs = self._position.astype(np.int64) << 16 | table.actions[kept].astype(np.int64)
        _, self._pair = np.unique(pairs, return_inverse=True)
        self._base = weights.base(table)[kept]
        self._order = np.argsort(self.block, kind="stable")

    def start(self, block: int) -> float:
        """The decimal year in which a period begins."""
        return (self._first + block) * self.period

    @public
    def sums(self, half_life: Annotated[float, checks.Gt(0.0), checks.INFINITE]) -> tuple[Floats, Floats]:
        """float64[n] twice: the weight in earlier periods of the move played, and of all at its position.

        Raises:
            ValueError: no positive number.
        """
        own, every = np.zeros(len(self.block)), np.zeros(len(self.block))
        of_pair = np.zeros(int(self._pair.max()) + 1)
        of_position = np.zeros(int(self._position.max()) + 1)
        blocks, starts = np.unique(self.block[self._order], return_index=True)
        before = int(blocks[0])
        for block, rows in zip(blocks, np.split(self._order, starts[1:]), strict=True):
            aged = 2.0 ** (-(int(block) - before) * self.period / half_life)
            of_pair *= aged
            of_position *= aged
            before = int(block)
            pair, position = self._pair[rows], self._position[rows]
            own[rows], every[rows] = of_pair[pair], of_position[position]
            age = self.start(before) - self._years[rows]  # negative: they happen after its beginning
            weight = self._base[rows] * np.exp2(-age / half_life)
            np.add.at(of_pair, pair, weight)
            np.add.at(of_position, position, weight)
        return own, every

    @public
    def probabilities(
        self,
        half_life: Annotated[float, checks.Gt(0.0), checks.INFINITE],
        alpha: Annotated[float, checks.Ge(0.0), checks.INFINITE],
        prior: Any,
    ) -> Floats:
        """float64[n]: how likely each move was, as predicted.

        Args:
            half_life: H.
            alpha: games that the prior is worth, at least 0.
            prior: float64[n], what q says of each move.

        Raises:
            ValueError: numbers out of range, or too few.
        """
        prior = checks.check_numbers(prior, len(self.block), "prior")
        own, every = self.sums(half_life)
        return _predicted(own, every, alpha, prior)

    @public
    def fits(
        self,
        prior: Any,
        before: Sequence[float],
        half_lives: Sequence[float] = HALF_LIVES,
        among: npt.NDArray[np.bool_] | None = None,
    ) -> list[CountFit]:
        """H and alpha of the greatest likelihood, of the periods that end before each of some times.

        Args:
            prior: float64[n], what q says of each move.
            before: decimal years, or infinity for all periods.
            half_lives: those that are tried.
            among: bool[n], the moves whose likelihood counts; all of them are counted. None: all.

        Raises:
            ValueError: numbers of another kind, or no period that ends before one of the times.
        """
        prior = checks.check_numbers(prior, len(self.block), "prior")
        for year in before:
            if not (self._ends <= year + _SLACK).any():
                raise ArgumentError(f"expected before to be later than the first period, got {year:g}")
        sums = [self.sums(half_life) for half_life in half_lives]
        seen = [self._ends <= year + _SLACK for year in before]
        seen = seen if among is None else [each & among for each in seen]
        return [self._best(prior, each, sums, half_lives) for each in seen]

    @functools.cached_property
    def _ends(self) -> Floats:
        return np.asarray((self._first + self.block + 1) * self.period, np.float64)

    def _best(
        self,
        prior: Floats,
        seen: npt.NDArray[np.bool_],
        sums: list[tuple[Floats, Floats]],
        half_lives: Sequence[float],
    ) -> CountFit:
        prior = prior[seen]
        best = (math.inf, 0, 0.0)
        for number, (own, every) in enumerate(sums):
            n, total = own[seen], every[seen]
            for alpha in ALPHAS:
                best = min(best, (_loss(n, total, alpha, prior), number, alpha))
        loss, number, alpha = best
        own, every = (column[seen] for column in sums[number])
        refined = scipy.optimize.minimize_scalar(
            lambda x: _loss(own, every, math.exp(x), prior),
            bounds=(math.log(alpha) - 0.35, math.log(alpha) + 0.35),
            method="bounded",
            options={"xatol": 1e-4},
        )
        if refined.fun < loss:
            loss, alpha = float(refined.fun), math.exp(refined.x)
        return CountFit(half_lives[number], alpha, loss, int(seen.sum()))


def _predicted(own: Floats, every: Floats, alpha: float, prior: Floats) -> Floats:
    if math.isinf(alpha):
        return prior.copy()
    whole = every + alpha
    return np.where(whole > 0.0, (own + alpha * prior) / np.where(whole > 0.0, whole, 1.0), prior)


def _loss(own: Floats, every: Floats, alpha: float, prior: Floats) -> float:
    """Bits a move."""
    return float(-np.log2(np.maximum(_predicted(own, every, alpha, prior), _LEAST)).mean())
