"""The polytope Xi of correlation plans, as sparse matrices, and what a plan is worth.

    xi >= 0,   xi[empty, empty] = 1,
    sum over a of xi[I a, tau] = xi[parent(I), tau]   for every I of player 0 and every tau relevant to it,

and the same for player 1. In games without chance the points of Xi are what the distributions over pairs of
pure strategies induce.

Source: von Stengel and Forges; `efce_resolving`, Definition 3.

Cost: about one row a pair, |A(I)| + 1 entries each.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from precomp_games._support.arguments import ArgumentError, NonNegativeFloat, Player, public
from precomp_games._support.checks import check_integer, real_array, shown
from precomp_games._support.kernels import kernel, read_only

from .sequence_game import SequenceGame, spread
from .sequence_pairs import RelevantPairs, check_as_many

__all__ = ["CorrelationPlan", "check_sequences", "flow_constraints", "is_plan", "plan_error"]

_MISS = 1e-6
"""By how much a plan may miss Xi: solvers' tolerances, added up, and single precision."""


@public
@dataclasses.dataclass(frozen=True, eq=False)
class CorrelationPlan:
    """A point of Xi: whoever has a plan can rely on that.

    Attributes:
      pairs: What it is indexed by.
      xi: float64[pairs], probabilities that both sequences are recommended, as an array of the plan's own
        that cannot be written to.

    Raises:
      ValueError: another length, numbers that are not finite, or a vector that misses Xi by more than 1e-6.
    """

    _made_by = "CorrelationPlan(pairs, xi)"

    pairs: RelevantPairs
    xi: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        xi = np.array(_vector(self.pairs, self.xi))
        error = plan_error(self.pairs, xi)
        if error > _MISS:
            raise ArgumentError(
                f"expected xi to be a correlation plan, got a vector that misses Xi by {error:.1e}"
            )
        xi.flags.writeable = False
        object.__setattr__(self, "xi", xi)

    def __repr__(self) -> str:
        return f"CorrelationPlan({len(self.pairs):,} pairs of {self.game})"

    @property
    def game(self) -> SequenceGame:
        """The pairs' game."""
        return self.pairs.game

    @public
    def utilities(self, label: int | None = None) -> tuple[float, float]:
        """Both players' expected utilities; with `label`, of that subgame's leaves alone.

        Raises:
          ValueError: there is no subgame of this number.
        """
        weight = self.xi[self.pairs.leaves()]
        if label is not None:
            label = check_integer(label, "label", least=0, most=len(self.game.labels) - 1)
            weight = np.where(self.game.leaf_label == label, weight, 0.0)
        u = self.game.leaf_utility @ weight
        return float(u[0]), float(u[1])

    @public
    def welfare(self, label: int | None = None) -> float:
        """Social welfare: the sum of `utilities`."""
        return sum(self.utilities(label))

    @public
    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """As `blueprints.Blueprint`; `plan_game` is the plan's own game or a part of it, however numbered.

        Raises:
          ValueError: it is of another game, or holds what the plan does not; a pair is not relevant.
        """
        first, second = check_sequences(plan_game, first, second)
        if plan_game is not self.game:
            numbers = plan_game.sequences_in(self.game)
            first, second = numbers[0][first], numbers[1][second]
        at = self.pairs.index(first, second)
        if (at < 0).any():
            raise ArgumentError("expected relevant pairs, got some that are not")
        probabilities: npt.NDArray[np.float64] = self.xi[at]
        return probabilities


def check_sequences(game: SequenceGame, first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
    """As many sequences of player 0 as of player 1: int64 each.

    Raises:
      ValueError: they are no sequences of `game`, or not as many.
    """
    return check_as_many(first, second, [form.num_sequences for form in game.players])


@public
def flow_constraints(pairs: RelevantPairs, player: Player) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """One player's rows of Xi.

    Returns:
      (F, block) with F xi = 0; block: int64[rows], the block that each row's left side lies in.

    Raises:
      ValueError: these are no pairs, or no player.
    """
    sums = _Sums.of(pairs, player)
    row, k = spread(sums.number)
    entry_row, a = spread(sums.size[row])
    column = (sums.start[row] + k * sums.next_sum[row])[entry_row] + a * sums.stride[row][entry_row]
    source = sums.source[row] + k * sums.next_source[row]
    matrix = scipy.sparse.csr_array(
        (
            np.concatenate([np.ones(len(column)), -np.ones(len(row))]),
            (np.concatenate([entry_row, np.arange(len(row))]), np.concatenate([column, source])),
        ),
        shape=(len(row), len(pairs)),
    )
    return matrix, sums.block[row]


class _Sums(NamedTuple):
    """One player's rows of Xi, by block: int64 each. A tuple, so that numba takes it.

    Attributes:
      block: The block that is summed over the player's actions, once for each of the opponent's.
      number, size: How many sums there are in the block, and of how many entries each.
      start: The first sum's first entry.
      stride, next_sum: From an entry to the next one of its sum, and to the next sum's.
      source, next_source: What the first sum must be, in the block of the player's set before; and from there
        to what the next one must be.
    """

    block: np.ndarray
    number: np.ndarray
    size: np.ndarray
    start: np.ndarray
    stride: np.ndarray
    next_sum: np.ndarray
    source: np.ndarray
    next_source: np.ndarray

    @classmethod
    def of(cls, pairs: RelevantPairs, player: int) -> _Sums:
        """The sums over a player's actions."""
        form, other = pairs.game.players[player], pairs.game.players[1 - player]
        own, theirs = (pairs.first, pairs.second) if player == 0 else (pairs.second, pairs.first)
        block = np.flatnonzero(own > 0)
        own, theirs = own[block], theirs[block]
        size, number = form.num_actions[own], other.num_actions[theirs]
        above, first = form.parent[own].astype(np.int64), other.first[theirs]
        source = pairs.index(above, first) if player == 0 else pairs.index(first, above)
        one = np.ones_like(size)
        # Player 0's action comes first in a block, so that player 1's are neighbors.
        if player == 0:
            return cls(block, number, size, pairs.start[block], number, one, source, one)
        width = form.num_actions[form.infoset[above]]
        return cls(block, number, size, pairs.start[block], one, size, source, width)


@public
def plan_error(pairs: RelevantPairs, xi: np.ndarray) -> float:
    """By how much a vector misses Xi: the worst violated constraint.

    Raises:
      ValueError: it is no vector of as many finite numbers as there are pairs.
    """
    xi = read_only(_vector(pairs, xi))
    worst = max(abs(float(xi[0]) - 1.0), -float(xi.min()))
    return float(max(worst, *(_worst_sum(xi, _Sums.of(pairs, player)) for player in (0, 1))))


@public
def is_plan(pairs: RelevantPairs, xi: np.ndarray, tolerance: NonNegativeFloat = 1e-9) -> bool:
    """Whether a vector is in Xi, up to a tolerance.

    Raises:
      ValueError: as `plan_error`, or a tolerance below 0.
    """
    return plan_error(pairs, xi) <= tolerance


@kernel
def _worst_sum(xi: np.ndarray, sums: _Sums) -> float:
    """The worst difference of a sum over a player's actions from its source."""
    worst = 0.0
    number, size, start, stride = sums.number, sums.size, sums.start, sums.stride
    next_sum, source, next_source = sums.next_sum, sums.source, sums.next_source
    for b in range(len(number)):
        for k in range(number[b]):
            total = -xi[source[b] + k * next_source[b]]
            for a in range(size[b]):
                total += xi[start[b] + k * next_sum[b] + a * stride[b]]
            worst = max(worst, abs(total))
    return worst


def _vector(pairs: RelevantPairs, xi: Any) -> np.ndarray:
    vector = real_array(xi)
    if vector is None or vector.shape != (len(pairs),) or not np.isfinite(vector).all():
        raise ArgumentError(f"expected xi to be {len(pairs)} finite numbers, got {shown(xi)}")
    return vector
