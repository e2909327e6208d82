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

**The curve.** v is the upper envelope of the lines p a(x) + (1 - p) b(x), so it is convex, and piecewise
linear since x has finitely many vertices. Its bends are found by solving where two known lines meet: either
these are neighbors, or what is best there gives a line between them. Each vertex is a point (a, b): what is
given up against the model for what safety. No x is better in both than a mixture of two neighbors.

Certificates are by best responses, which know nothing of the program: that of the rival to x gives b(x), and
that of the player to the rival's mixture bounds v(p) from above. Upper bounds at the bends bound v between
them, because it is convex.

Source: Johanson, Zinkevich and Bowling, "Computing Robust Counter-Strategies", NIPS 2007; bends at the
intersections of known lines: Eisner and Severance 1976.

Deviations: the restriction is on preparation, in the meta-game of a tree; all bends are found, and not values
of p chosen by hand.

Cost: a double oracle, with some passes over the tree for each program; for the curve about two for each bend,
each from where the one before ended.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Annotated

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from ..preparation.decisions import Decisions
from ..zero_sum.double_oracle import DoubleOracle
from ..zero_sum.exploitability import MetaTree

_ROUNDING = 1e-12  # of the tree's scale: lines that are no further above what is known are not new
_NOISE = 1e-14  # of the greatest value: nor are these


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
      strategy: What the player memorizes.
      rival: What the player meets: with probability p at least, nothing is memorized.
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


@dataclasses.dataclass(frozen=True, eq=False)
class RestrictedNashCurve(Result):
    """The best preparations for every p, from p = 0 to p = 1; utilities are the player's.

    v(p) = max(p * against_model + (1 - p) * against_best).

    Attributes:
      player: 0 or 1.
      breakpoints: float64[k], the p at which another strategy becomes best, rising.
      against_model: float64[k + 1], rising, of the best strategy before the first breakpoint, between each
        two of them, and after the last one; see `RestrictedNash`.
      against_best: float64[k + 1], falling.
      strategies: The k + 1 strategies.
      gap: At no p has any strategy a value that is greater by more; 0 up to rounding.
    """

    player: int
    breakpoints: npt.NDArray[np.float64]
    against_model: npt.NDArray[np.float64]
    against_best: npt.NDArray[np.float64]
    strategies: tuple[MetaStrategy, ...] = dataclasses.field(repr=False)
    gap: float


@public
def restricted_nash(
    tree: MetaTree,
    player: checks.Player,
    *,
    model_probability: Annotated[float, checks.Ge(0.0), checks.Le(1.0)],
) -> RestrictedNash:
    """Computes the best preparation against a rival that is the model with some probability.

    Args:
      tree: a tree that was expanded with stop_value="backup". A rival whose penalty is infinite is the model,
        whatever the probability.
      player: 0 or 1, who prepares for the model.
      model_probability: p, with which the rival memorizes nothing; otherwise it prepares too.

    Raises:
      ValueError: an argument is not as above.
      LinearProgramError: HiGHS did not find an optimum.
    """
    return _Responses(tree, player).at(model_probability)


@public
def restricted_nash_curve(tree: MetaTree, player: checks.Player) -> RestrictedNashCurve:
    """Computes the best preparations for all probabilities of the model.

    Args:
      tree: see `restricted_nash`.
      player: see there.

    Raises:
      ValueError: an argument is not as above.
      LinearProgramError: HiGHS did not find an optimum.
    """
    responses = _Responses(tree, player)
    rounding = responses.rounding
    found = [responses.at(0.0), responses.at(1.0)]
    pairs = [(found[0], found[1])]
    while pairs:
        before, after = pairs.pop()
        if (
            min(before.against_best - after.against_best, after.against_model - before.against_model)
            > rounding
        ):
            p = _meeting(before, after)
            between = responses.at(p)
            if between.value > _line(before, p) + rounding:
                found.append(between)
                pairs += [(before, between), (between, after)]
    points = _envelope(found, rounding)
    return RestrictedNashCurve(
        player=player,
        breakpoints=np.array([_meeting(*pair) for pair in itertools.pairwise(points)]),
        against_model=np.array([point.against_model for point in points]),
        against_best=np.array([point.against_best for point in points]),
        strategies=tuple(point.strategy for point in points),
        gap=responses.largest_gap,
    )


def _line(point: RestrictedNash, p: float) -> float:
    """What a strategy is worth where the model is right with probability p."""
    return p * point.against_model + (1.0 - p) * point.against_best


def _meeting(before: RestrictedNash, after: RestrictedNash) -> float:
    """The p at which two strategies are worth the same; `after` is better against the model."""
    safety = before.against_best - after.against_best
    return safety / (safety + after.against_model - before.against_model)


def _envelope(found: list[RestrictedNash], rounding: float) -> list[RestrictedNash]:
    """Those that are best on an interval of [0, 1], in its order."""
    kept: list[RestrictedNash] = []
    for point in sorted(found, key=lambda point: (point.against_model, -point.against_best)):
        while kept and point.against_best >= kept[-1].against_best - rounding:
            kept.pop()  # no better in anything
        if kept and point.against_model <= kept[-1].against_model + rounding:
            continue
        while len(kept) > 1:
            p = _meeting(kept[-2], point)
            if _line(kept[-1], p) > _line(point, p) + rounding:
                break
            kept.pop()
        kept.append(point)
    return kept


class _Responses:
    """Solves for one p after another, each from where the one before ended.

    rounding: what may be between numbers that are the same. largest_gap: of all that were solved.
    """

    def __init__(self, tree: HistoryTree, player: int) -> None:
        self.tree, self.player = tree, player
        self.run = DoubleOracle(tree)
        greatest = float(np.abs(tree.value[tree.num_children == 0]).max())
        self.rounding = max(_ROUNDING * tree.scale, _NOISE * greatest)
        self.largest_gap = 0.0

    def at(self, p: float) -> RestrictedNash:
        """The best preparation where the model is right with probability p."""
        self.run.resume((1.0, 1.0 - p) if self.player == 0 else (1.0 - p, 1.0))
        while True:
            self.run.advance(1)
            point, chosen = self._measured(p)
            more = self.run.learn(chosen)
            # The warm-up knows nothing of p.
            if not more or (self.run.iterations and point.gap <= self.rounding):
                self.largest_gap = max(self.largest_gap, point.gap)
                return point

    def _measured(self, p: float) -> tuple[RestrictedNash, npt.NDArray[np.bool_]]:
        """(the run's strategies, measured; bool[E], the entries that best responses to them memorize)."""
        tree, player = self.tree, self.player
        pair = self.run.strategies()
        strategy, rival = pair[player], pair[1 - player]
        own_cost, rivals_cost = (_cost(each) for each in (strategy, rival))
        against, of_rival = (
            Decisions.against(tree, player, rival),
            Decisions.against(tree, 1 - player, strategy),
        )
        best, answer = against.best(), of_rival.best()
        against_model = tree.utility_sum - of_rival.gains()[1] - own_cost
        against_best = tree.utility_sum - answer.value - own_cost
        value = p * against_model + (1.0 - p) * against_best
        point = RestrictedNash(
            player, p, value, against_model, against_best, strategy, rival, best.value + rivals_cost - value
        )
        return point, (best.memorize > 0.0) | (answer.memorize > 0.0)


def _cost(strategy: MetaStrategy) -> float:
    """What a strategy is expected to pay for memorizing."""
    plan, prices = strategy.plan(), strategy.tree.infoset_penalty[strategy.tree.entry_infoset]
    return float(plan[plan > 0.0] @ prices[plan > 0.0])
