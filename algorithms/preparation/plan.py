"""Plans: what to learn first, and what then. Books of growing sizes, each of which contains the one before.

A person does not learn a book of 100 positions at once. The best sets of each size need not contain each
other; where menus have one entry, those do at which the memory frontier bends. A plan extends what is known
already as well as possible at each of its steps, and says what the best set of that size would have been
worth.

What is known at a step costs nothing any more and stays (`preparation.known`), so each step is
`best_precomputation` with a budget for what is new.

Deviations: steps look no further than themselves; another first book might make a better second one.

Cost: two budgets for each step.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError, NonNegativeFloat, Player, public
from precomp_games._support.checks import check_integer, shown
from precomp_games.tree.history_tree import HistoryTree

from .best_precomputation import BestPrecomputation, best_precomputation

__all__ = ["PlanStep", "precomputation_plan"]


@dataclasses.dataclass(frozen=True, eq=False)
class PlanStep:
    """One step of a plan; utilities are the player's.

    Attributes:
      budget: The most that is learned by then, in information states or positions.
      learned: How many are, without what was known at the start; at most `budget`.
      chosen: The set by then, with all that was known before. Its `paid` is what this step adds.
      best: The best set of at most `budget` that need not contain the plan's earlier ones.
    """

    budget: int
    learned: int
    chosen: BestPrecomputation
    best: BestPrecomputation

    @property
    def loss(self) -> float:
        """What nesting loses: the utility of the best set of this size less that of the plan's."""
        return self.best.utility - self.chosen.utility


@public
def precomputation_plan(
    tree: HistoryTree,
    player: Player,
    budgets: Sequence[int],
    *,
    price: Any = "infosets",
    keep: npt.ArrayLike | None = None,
    time_limit: NonNegativeFloat | None = None,
) -> tuple[PlanStep, ...]:
    """Plans what `player` learns first, and what then.

    Args:
      tree: see `best_precomputation`.
      player: 0 or 1.
      budgets: how much is learned by each step, growing: 10, 20, 50 is 10 at first, then 10 more, then 30.
      price: see `best_precomputation`; with a price per position, menus must have one entry.
      keep: what is known at the start, see there.
      time_limit: seconds after which each integer program is stopped, see there.

    Returns:
      A step for each budget. Each contains the one before, and is its best extension.

    Raises:
      ValueError: an argument is not as above.
    """
    if not isinstance(budgets, Sequence) or isinstance(budgets, str | bytes) or not len(budgets):
        raise ArgumentError(f"expected budgets to be numbers that grow, got {shown(budgets)}")
    wanted = [check_integer(budget, f"budgets[{k}]", least=0) for k, budget in enumerate(budgets)]
    if any(after <= before for before, after in itertools.pairwise(wanted)):
        raise ArgumentError(f"expected budgets to be numbers that grow, got {shown(budgets)}")

    def best_of(budget: int, known: npt.ArrayLike | None) -> BestPrecomputation:
        return best_precomputation(
            tree, player, price=price, budget=budget, keep=known, time_limit=time_limit
        )

    steps: list[PlanStep] = []
    known, learned = keep, 0
    for budget in wanted:
        chosen = best_of(budget - learned, known)
        learned += round(chosen.paid)
        best = best_of(budget, keep) if steps else chosen
        steps.append(PlanStep(budget, learned, chosen, best))
        known = chosen.memorization_set if keep is None else np.union1d(keep, chosen.memorization_set)
    return tuple(steps)
