"""Refining a subgame by regret minimization, for subgames that no linear program can hold.

The refinement's constraints (A), (B) and (C) are a zero-sum game. A mediator chooses the plan. A deviator
puts weights, which add up to 1, on the constraints, and chooses how the player deviates after each trigger;
it is paid the weighted violation. Its best answer is the worst violation, which is at most 0 where the
refinement is safe. Welfare of at least a target is one more constraint, "target - welfare".

Both sides minimize regrets by regret matching+, by default the predictive kind, which acts as if the last
gain came again and needs some ten times fewer iterations here: the mediator on each simplex of Xi's scaled
extensions, the deviator on its weights and on each set after each trigger (counterfactual regrets). They take
turns, and the plans' average, later ones weighing more, converges. It is in Xi, so that only (A) to (C) and
the target can be violated. All this happens in the units of `RefinementProblem.normalize`; what is told is
in the game's.

Regrets of zero mean equal shares, and so the mediator would start exactly at the uniform blueprint, whose
violation is 0; `start="random"` starts elsewhere.

Source: `efce_resolving`, Algorithm 2 and appendices E and F; regret matching+: Tammelin 2014; predictive:
Farina, Kroer and Sandholm 2021.

Cost: an iteration touches each pair a few times and each leaf once for each action at the player's
information sets before it, twice. Memory: some 70 bytes a pair.
"""

from __future__ import annotations

import math
import time
from typing import Literal

import numpy as np

from precomp_games._support.arguments import ArgumentError, NonNegativeInt, public
from precomp_games._support.kernels import kernel, read_only

from .constraints import PlayerConstraints, RefinementProblem
from .correlation_plans import CorrelationPlan
from .deviator import DeviatorState, add_gradient, evaluate, evaluate_best
from .projection import project
from .scaled_extensions import ScaledExtensions, advantages, fill_plan
from .sequence_game import same_game

__all__ = ["RegretResolver", "Start", "Variant"]

Start = Literal["uniform", "random"]
"""The first shares: equal, or drawn."""
Variant = Literal["plain", "predictive"]
"""Of regret matching+."""
_SAFE = 1e-10
"""What may be violated by a plan that is called safe, in normalized units, as if play were in the subgame."""


class RegretResolver:
    """Self-play on one subgame, which can be run on and looked at.

    Args:
      problem: from `resolving.Resolving.problem`.
      target: welfare of the subgame's leaves to be reached; None for none.
      start: "uniform": equal shares; "random": shares drawn with `seed`.
      seed: of the start.
      variant: "plain" regret matching+, or "predictive".

    Raises:
      ValueError: `problem` is none; another start or variant, or a target or seed that is no number.
    """

    @public
    def __init__(
        self,
        problem: RefinementProblem,
        target: float | None = None,
        start: Start = "uniform",
        seed: NonNegativeInt = 0,
        variant: Variant = "predictive",
    ) -> None:
        self.problem = problem
        self._predict = 1.0 if variant == "predictive" else 0.0
        self.target = -math.inf if target is None else target
        pairs = problem.blueprint.pairs
        self.steps = ScaledExtensions.of(pairs)
        normalized, self._units = problem.normalize()
        self.sides = (PlayerConstraints.of(normalized, 0), PlayerConstraints.of(normalized, 1))
        game = problem.game
        inside = game.leaf_label >= 0
        self._leaf_pair = pairs.leaves()[inside]
        self._leaf_welfare = np.ascontiguousarray(game.leaf_utility.sum(axis=0)[inside])
        self._mass = problem.mass
        # The target's arm: what welfare is in normalized units, and what of the target is the centers'.
        utility = normalized.game.leaf_utility[:, inside]
        self._normalized_welfare = np.ascontiguousarray(self._units.normalized_welfare(utility))
        self._normalized_target = (self.target - sum(self._units.center) * self._mass) / self._units.welfare
        count = len(pairs)
        self.regret = np.zeros(count)
        if start == "random":
            self.regret[:] = 1e-9 * np.random.default_rng(seed).random(count)
        self.share = np.zeros(count)
        self.xi = problem.blueprint.xi.copy()
        self.total = np.zeros(count)
        self.gradient = np.zeros(count)
        # Regrets, weights and gains of the arms: player 0's, player 1's, of which `work` has views, the
        # target.
        work = [DeviatorState.of(side) for side in self.sides]
        ends = np.cumsum([len(one.gains) for one in work])
        self.arm_regret, self.arm_weight, self.arm_gain = (np.zeros(ends[-1] + 1) for _ in range(3))
        gains, weights = np.split(self.arm_gain, ends), np.split(self.arm_weight, ends)
        self.work = tuple(one._replace(gains=gains[i], weights=weights[i]) for i, one in enumerate(work))
        self.iterations = 0
        self.seconds = 0.0

    @public
    def run(self, iterations: NonNegativeInt) -> None:
        """Does so many iterations.

        Raises:
          ValueError: no integer of at least 0.
        """
        start = time.perf_counter()
        for _ in range(iterations):
            self._iterate()
        self.seconds += time.perf_counter() - start

    def _iterate(self) -> None:
        self.iterations += 1
        _match(self.steps, self.regret, self.gradient, self.share, self._predict)
        fill_plan(self.steps, self.share, self.xi)
        for side, work in zip(self.sides, self.work, strict=True):
            evaluate(side, work, read_only(self.xi), self._predict)
        self.arm_gain[-1] = -np.inf
        if self.target > -math.inf:
            welfare = float(self._normalized_welfare @ self.xi[self._leaf_pair])
            self.arm_gain[-1] = self._normalized_target - welfare
        _weigh(self.arm_gain, self.arm_regret, self.arm_weight, self._predict)
        self.gradient[:] = 0.0
        for side, work in zip(self.sides, self.work, strict=True):
            add_gradient(side, work, self.gradient)
        if self.arm_weight[-1] > 0.0:
            # A pair has one leaf at most, where there is no chance.
            self.gradient[self._leaf_pair] += self.arm_weight[-1] * self._normalized_welfare
        advantages(self.steps, self.gradient, self.share, self.regret)
        _accumulate(self.total, self.xi, float(self.iterations))

    @public
    def average(self) -> CorrelationPlan:
        """The average plan so far; the blueprint's in the trunk.

        Raises:
          ValueError: nothing has been run.
        """
        if not self.iterations:
            raise ArgumentError("expected at least one iteration, got none")
        weight = self.iterations * (self.iterations + 1) / 2.0
        return CorrelationPlan(self.problem.blueprint.pairs, self.total / weight)

    @public
    def violation(self, plan: CorrelationPlan) -> float:
        """The worst violation of (A), (B), (C) and the target by a plan of this subgame, at least 0.

        In utility, weighted with the probability of what it is about, as everywhere.

        Raises:
          ValueError: it is no plan of this subgame.
        """
        self._check_plan(plan)
        worst = max(0.0, self.target - self._welfare(plan.xi)) if self.target > -math.inf else 0.0
        return max(worst, *(g * s for g, s in zip(self._gains(plan.xi), self._units.scale, strict=True)))

    @public
    def welfare(self, plan: CorrelationPlan) -> float:
        """Of the subgame's leaves.

        Raises:
          ValueError: it is no plan of this subgame.
        """
        self._check_plan(plan)
        return self._welfare(plan.xi)

    @public
    def make_safe(self, plan: CorrelationPlan, safe: CorrelationPlan) -> CorrelationPlan:
        """A plan near `plan` that violates nothing but for rounding.

        Args:
          plan: nearly safe, such as `average()`.
          safe: one that is, such as the blueprint. Where nothing near `plan` is found, the two are mixed,
            with as little as possible of this one.

        Raises:
          ValueError: one of them is no plan of this subgame, or `safe` is not safe.
        """
        self._check_plan(plan)
        self._check_plan(safe)
        tolerance = _SAFE * (self._mass or 1.0)
        if max(self._gains(safe.xi)) > tolerance:
            raise ArgumentError(f"expected a safe plan, got a violation of {self.violation(safe):.1e}")
        pairs = self.problem.blueprint.pairs
        xi = project(self.steps, self.sides, plan.xi, tolerance)
        if xi is None:
            # Violations are convex, so the mixtures that are safe are those with enough of the safe plan.
            less, share = 0.0, 1.0
            for _ in range(30):
                middle = 0.5 * (less + share)
                mixed = (1.0 - middle) * plan.xi + middle * safe.xi
                if max(self._gains(mixed)) > tolerance:
                    less = middle
                else:
                    share = middle
            xi = (1.0 - share) * plan.xi + share * safe.xi
        return CorrelationPlan(pairs, xi)

    def _check_plan(self, plan: CorrelationPlan) -> None:
        if not same_game(plan.game, self.problem.game):
            raise ArgumentError(f"expected a plan of {self.problem.game}, got one of {plan.game}")
        before = self.problem.blueprint
        trunk = before.pairs.pair_label < 0
        apart = float(np.abs(plan.xi - before.xi)[trunk].max(initial=0.0))
        if apart > 1e-9:
            raise ArgumentError(
                f"expected a plan with the blueprint's entries in the trunk, got one that is {apart:.1e} off"
            )

    def _gains(self, xi: np.ndarray) -> tuple[float, float]:
        """By how much a plan violates either player's (A), (B) and (C), normalized; at least 0."""
        worst = []
        for side in self.sides:
            work = DeviatorState.of(side, regrets=False)
            evaluate_best(side, work, read_only(xi))
            worst.append(float(work.gains.max(initial=0.0)))
        return worst[0], worst[1]

    def _welfare(self, xi: np.ndarray) -> float:
        return float(self._leaf_welfare @ xi[self._leaf_pair])


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def _match(
    steps: ScaledExtensions, regret: np.ndarray, last: np.ndarray, share: np.ndarray, predict: float
) -> None:
    """Shares in proportion to regrets plus `predict` times the last gains; equal ones where all are 0."""
    starts, strides, sizes, sums = steps.start, steps.stride, steps.size, steps.is_sum
    for n in range(len(starts)):
        if sums[n]:
            continue
        first, stride, size = np.uint64(starts[n]), np.uint64(strides[n]), sizes[n]
        at, total = first, 0.0
        for _ in range(size):
            r = max(regret[at] + predict * last[at], 0.0)
            share[at] = r
            total += r
            at += stride
        factor, at = 1.0 / total if total > 0.0 else 0.0, first
        for _ in range(size):
            share[at] = share[at] * factor if total > 0.0 else 1.0 / size
            at += stride


@kernel
def _weigh(gain: np.ndarray, regret: np.ndarray, weight: np.ndarray, predict: float) -> None:
    """Regret matching on the constraints. A gain of -inf is a constraint that is not there."""
    mean, total, present = 0.0, 0.0, 0
    for n in range(len(gain)):
        if weight[n] > 0.0:
            mean += weight[n] * gain[n]
    for n in range(len(gain)):
        weight[n] = 0.0
        if gain[n] > -np.inf:
            present += 1
            regret[n] = max(regret[n] + gain[n] - mean, 0.0)
            weight[n] = max(regret[n] + predict * (gain[n] - mean), 0.0)
            total += weight[n]
    for n in range(len(gain)):
        if total > 0.0:
            weight[n] /= total
        elif gain[n] > -np.inf:
            weight[n] = 1.0 / present


@kernel
def _accumulate(total: np.ndarray, xi: np.ndarray, weight: float) -> None:
    for n in range(len(total)):
        total[n] += weight * xi[n]
