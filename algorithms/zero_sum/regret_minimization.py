"""Algorithm 2: an equilibrium of the meta-game by counterfactual regret minimization on the flat tree.

Each iteration updates player 0 and then player 1 against the other's current strategy. At information state
I the actions are worth stop(I) and, for each entry e of its menu, memorize(e) (`preparation.decisions`), the
player's penalty charged on its own realization plan, so that the result is exact for all policies. These are
the counterfactual values of the paper's game G', and on trees where that one is exact too the iterates are
those of OpenSpiel's solvers on it.

Variants, by name:

    "cfr"    regret matching, uniform averaging                              Zinkevich et al. 2007
    "cfr+"   regrets floored at 0, averages weighted with t                  Tammelin 2014
    "dcfr"   discounted, alpha = 1.5, beta = 0, gamma = 2                    Brown and Sandholm 2019
    "pcfr+"  predictive: the next strategy answers the last regrets again,   Farina, Kroer and Sandholm 2021
             averages weighted with t^2
    "pdcfr+" predictive, floored and discounted, alpha = 2.3, gamma = 5      Xu et al. 2024, arXiv 2404.13891

Indices of "pdcfr+": iteration t = 1, 2, ... adds its regrets, floors the sum, and then discounts it with
t^2.3 / (t^2.3 + 1). So iteration t + 1 finds it discounted with the index t, and the prediction, which is the
regrets of iteration t once more, is added to what is discounted. The average weighs iteration t with t^5.

Source: `precomputation`, Algorithm 2, Theorem 4.

Deviations: CFR runs on the base game's histories, not on G', whose nodes multiply with both players' stop
times; it stops at a NashConv that is measured, not after O(|W|^2 / epsilon^2) iterations; the signs of the
penalties at truncated leaves (Algorithm 2, line 3) are Lemma 4's.

Cost: see `regret_kernel`. NashConv is measured by other code, `preparation.decisions`, on the tree as
it is.
"""

from __future__ import annotations

import concurrent.futures
import math
from typing import Annotated

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import one_of
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, adjusted

from .folded_tree import DecisionTree
from .regret_kernel import RegretState, Rule, Work, iterate

_AVERAGING = {"cfr": 0, "cfr+": 1, "dcfr": 2, "pcfr+": 2, "pdcfr+": 5}  # powers of t that weigh iteration t
_DISCOUNTING = {"dcfr": 1.5, "pdcfr+": 2.3}  # alpha: iteration t leaves t^alpha / (t^alpha + 1)

CFR_VARIANTS = tuple(_AVERAGING)
"""Names of the variants that `meta_equilibrium` knows."""
Variant = Annotated[str, one_of(CFR_VARIANTS)]
"""One of `CFR_VARIANTS`."""

MOST_ITERATIONS = 1_000_000
"""After so many iterations `meta_equilibrium` gives a target up that it was given alone."""


class RegretMinimization:
    """Regrets and averages of a run, in the order of the decision tree; measured every so many iterations."""

    too_large = False
    multipliers = (0.0, 0.0)

    def __init__(
        self,
        tree: HistoryTree,
        variant: str,
        threads: concurrent.futures.Executor | None = None,
        check_every: int = MOST_ITERATIONS,
    ) -> None:
        self.tree = tree
        self.name = variant
        self.threads = threads
        self.check_every = check_every
        self.iterations = 0
        self.decisions = DecisionTree.of(tree)
        self.work = Work.of(self.decisions)
        playing = np.isfinite(np.array(tree.penalties))[tree.entry_player]
        actions = float(tree.may_stop) + np.diff(tree.first_entry)[tree.entry_infoset]
        self.unreached = np.where(playing, 1.0 / actions, 0.0)[self.decisions.tree_entry]
        self.state = RegretState.start(self.unreached.copy())

    def advance(self, most: int) -> None:
        """Goes on to the next measurement, by at most so many iterations."""
        count = max(0, min(self.check_every - self.iterations % self.check_every, most))
        rules = [update_rule(self.name, self.iterations + 1 + k) for k in range(count)]
        iterate(self.decisions, self.state, self.work, rules, self.threads)
        self.iterations += count

    def strategies(self) -> tuple[MetaStrategy, MetaStrategy]:
        """The average strategies; where neither player ever came, all actions alike."""
        decisions, plans = self.decisions, self.state.plan_sum
        start = _total_weight(self.name, float(self.iterations))
        above = np.where(decisions.previous >= 0, plans[decisions.previous], start)
        if decisions.first_entry is not None:
            above = np.repeat(above, np.diff(decisions.first_entry))
        averages = np.empty(len(plans))
        shares = np.divide(np.minimum(plans, above), above, out=self.unreached.copy(), where=above > 0.0)
        averages[decisions.tree_entry] = shares
        first, second = (adjusted(self.tree, averages, i) for i in (0, 1))  # sums of rounded numbers
        return MetaStrategy(self.tree, 0, first), MetaStrategy(self.tree, 1, second)

    def learn(self, chosen: npt.NDArray[np.bool_]) -> bool:
        """Best responses are nothing to it; it could always go on."""
        return True


def update_rule(variant: str, t: int) -> Rule:
    """What iteration t = 1, 2, ... does."""
    power = _DISCOUNTING.get(variant)
    return Rule(
        floor=0.0 if variant.endswith("+") else -math.inf,
        positive=1.0 if power is None else t**power / (t**power + 1.0),
        negative=0.5 if variant == "dcfr" else 1.0,
        predict=1.0 if variant.startswith("p") else 0.0,
        weight=float(t ** _AVERAGING[variant]),
    )


def _total_weight(variant: str, t: float) -> float:
    """The sum of the weights of iterations 1 to t."""
    sums = {
        0: t,
        1: t * (t + 1.0) / 2.0,
        2: t * (t + 1.0) * (2.0 * t + 1.0) / 6.0,
        5: t**2 * (t + 1.0) ** 2 * (2.0 * t * (t + 1.0) - 1.0) / 12.0,
    }
    return sums[_AVERAGING[variant]]
