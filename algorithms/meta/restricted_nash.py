"""Restricted Nash response: the best preparation against a model that is right with probability p.

With probability p the rival is the model: it plays its sigma all game and memorizes nothing. Otherwise it may
prepare too, at its own penalty. The player does not see which. With x its realization plan and y the rival's,
in the player's utility,

    a(x) = u(x, 0) - cost(x)                               against the model
    b(x) = min over y of u(x, y) + cost(y) - cost(x)       against the best preparation of the rival
    v(p) = max over x of p a(x) + (1 - p) b(x)

so the player pays once, whoever the rival is; v(0) is the value of the meta-game, and v(1) that of
Algorithm 1. The model is a strategy of the meta-game, which memorizes nothing, and u is linear in y. So a
rival that is the model with probability p is a rival whose plan begins with 1 - p in place of 1, and v(p) is
the meta-game's own linear program with one number changed (`sequence_form_lp`, `shares`), also on small
programs (`double_oracle`).

v is the upper envelope of the lines p a(x) + (1 - p) b(x), so it is convex, and piecewise linear since x has
finitely many vertices. Each vertex is a point (a, b): what is given up against the model for what safety.

Certificates are by best responses, which know nothing of the program: that of the rival to x gives b(x), and
that of the player to the rival's mixture bounds v(p) from above.

Source: Johanson, Zinkevich and Bowling, "Computing Robust Counter-Strategies", NIPS 2007.

Deviation: the restriction is on preparation, in the meta-game of a tree.

Cost: a double oracle, with some passes over the tree for each program.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.results import Result
from precomp_games.tree.meta_strategy import MetaStrategy

from ..preparation.decisions import Decisions
from ..zero_sum.double_oracle import DoubleOracle
from ..zero_sum.exploitability import MetaTree

_ROUNDING = 1e-12  # of the tree's scale: a gap that is none
_NOISE = 1e-14  # of the greatest value: the same


@dataclasses.dataclass(frozen=True, eq=False)
class RestrictedNash(Result):
    """The best preparation against a model that is right with some probability; utilities are the player's.

    Attributes:
      player: 0 or 1.
      model_probability: p.
      value: p against_model + (1 - p) against_best.
      against_model: Utility against the model, less the player's penalties.
      against_best: Utility against the rival's best preparation, less the player's penalties, plus the
        rival's.
      strategy: The player's strategy.
      rival: The rival's strategy: with probability p at least, nothing is memorized.
      gap: No strategy has a value that is greater by more, by a best response to `rival`; 0 up to rounding.
    """

    player: int
    model_probability: float
    value: float
    against_model: float
    against_best: float
    strategy: MetaStrategy = dataclasses.field(repr=False)
    rival: MetaStrategy = dataclasses.field(repr=False)
    gap: float


@public
def restricted_nash(
    tree: MetaTree,
    player: checks.Player,
    *,
    model_probability: Annotated[float, checks.Ge(0.0), checks.Le(1.0)],
) -> RestrictedNash:
    """Compute the best preparation against a rival that is the model with some probability.

    Args:
      tree: a tree that was expanded with stop_value="backup". A rival whose penalty is infinite is the model,
        whatever the probability.
      player: 0 or 1, who prepares for the model.
      model_probability: p, with which the rival memorizes nothing; otherwise it prepares too.

    Raises:
      ValueError: an argument is not as above.
      LinearProgramError: HiGHS did not find an optimum.
    """
    p = model_probability
    run = DoubleOracle(tree, (1.0, 1.0 - p) if player == 0 else (1.0 - p, 1.0))
    greatest = float(np.abs(tree.value[tree.num_children == 0]).max())
    rounding = max(_ROUNDING * tree.scale, _NOISE * greatest)
    while True:
        run.advance(1)
        pair = run.strategies()
        strategy, rival = pair[player], pair[1 - player]
        own_cost, rivals_cost = (_cost(each) for each in (strategy, rival))
        of_rival = Decisions.against(tree, 1 - player, strategy)
        best, answer = Decisions.against(tree, player, rival).best(), of_rival.best()
        against_model = tree.utility_sum - of_rival.gains()[1] - own_cost
        against_best = tree.utility_sum - answer.value - own_cost
        value = p * against_model + (1.0 - p) * against_best
        gap = best.value + rivals_cost - value
        more = run.learn((best.memorize > 0.0) | (answer.memorize > 0.0))
        # The warm-up knows nothing of p.
        if not more or (run.iterations and gap <= rounding):
            return RestrictedNash(player, p, value, against_model, against_best, strategy, rival, gap)


def _cost(strategy: MetaStrategy) -> float:
    """Return the expected price of memorizing under a strategy."""
    plan, prices = strategy.realization_plan(), strategy.tree.infoset_penalty[strategy.tree.entry_infoset]
    return float(plan[plan > 0.0] @ prices[plan > 0.0])
