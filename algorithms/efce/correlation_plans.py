"""The polytope Xi of correlation plans, as sparse matrices, and what a plan is worth.

    xi >= 0,   xi[empty, empty] = 1,
    sum over a of xi[I a, tau] = xi[sigma(I), tau]   for every I of player 0 and every tau relevant to it,

and the same for player 1. In games without chance the points of Xi are what the distributions over pairs of
pure strategies induce.

Source: von Stengel and Forges; `efce_resolving`, Definition 3.

Cost: about one row a pair, |A(I)| + 1 entries each.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse

from .sequence_game import SequenceGame, spread
from .sequence_pairs import RelevantPairs

__all__ = ["CorrelationPlan", "flow_constraints", "is_plan", "plan_error"]


@dataclasses.dataclass(frozen=True, eq=False)
class CorrelationPlan:
    """A point of Xi.

    pairs: what it is indexed by. xi: float64[pairs], probabilities that both sequences are recommended.
    """

    pairs: RelevantPairs
    xi: np.ndarray

    def __repr__(self) -> str:
        return f"CorrelationPlan({len(self.pairs):,} pairs of {self.game})"

    @property
    def game(self) -> SequenceGame:
        """The pairs' game."""
        return self.pairs.game

    def utilities(self, label: int | None = None) -> tuple[float, float]:
        """Both players' expected utilities; with `label`, of that subgame's leaves alone."""
        weight = self.xi[self.pairs.leaves()]
        if label is not None:
            weight = np.where(self.game.leaf_label == label, weight, 0.0)
        u = self.game.leaf_utility @ weight
        return float(u[0]), float(u[1])

    def welfare(self, label: int | None = None) -> float:
        """Social welfare: the sum of `utilities`."""
        return sum(self.utilities(label))

    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """As `blueprints.Blueprint`; `plan_game` is the plan's own game or a part of it, however numbered.

        Raises:
          ValueError: it is of another game, or holds what the plan does not.
        """
        if plan_game is not self.game:
            numbers = plan_game.sequences_in(self.game)
            first, second = numbers[0][first], numbers[1][second]
        return self.xi[self.pairs.index(first, second)]


def flow_constraints(pairs: RelevantPairs, player: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """One player's rows of Xi.

    Returns:
      (F, block) with F xi = 0; block: int64[rows], the block that each row's left side lies in.
    """
    one, two = pairs.game.players
    blocks = np.flatnonzero((pairs.first if player == 0 else pairs.second) > 0)
    i, j = pairs.first[blocks], pairs.second[blocks]
    width = two.num_actions[j]
    if player == 0:
        own, other = one.num_actions[i], width
        above = one.parent[i].astype(np.int64)
        step_own, step_other = width, np.ones_like(width)
    else:
        own, other = width, one.num_actions[i]
        above = two.parent[j].astype(np.int64)
        step_own, step_other = np.ones_like(width), width
    block_of_row, k = spread(other)  # the opponent's action k
    count = len(k)
    start = pairs.start[blocks][block_of_row] + k * step_other[block_of_row]
    entry_row, a = spread(own[block_of_row])
    column = start[entry_row] + a * step_own[block_of_row][entry_row]
    if player == 0:
        source = pairs.index(above[block_of_row], two.first[j][block_of_row] + k)
    else:
        source = pairs.index(one.first[i][block_of_row] + k, above[block_of_row])
    matrix = scipy.sparse.csr_array(
        (
            np.concatenate([np.ones(len(column)), -np.ones(count)]),
            (np.concatenate([entry_row, np.arange(count)]), np.concatenate([column, source])),
        ),
        shape=(count, len(pairs)),
    )
    return matrix, blocks[block_of_row]


def plan_error(pairs: RelevantPairs, xi: np.ndarray) -> float:
    """By how much a vector misses Xi: the worst violated constraint."""
    xi = np.asarray(xi, np.float64)
    if xi.shape != (len(pairs),) or not np.isfinite(xi).all():
        return np.inf
    errors = [abs(xi[0] - 1.0), float(-xi.min())]
    for player in (0, 1):
        rows, _ = flow_constraints(pairs, player)
        if rows.shape[0]:
            errors.append(float(np.abs(rows @ xi).max()))
    return float(max(errors))


def is_plan(pairs: RelevantPairs, xi: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Whether a vector is in Xi, up to a tolerance."""
    return plan_error(pairs, xi) <= tolerance
