"""Refining a subgame by regret minimization, for subgames that no linear program can hold.

`refine_regret` runs a `RegretResolver` and measures its average on the way, until it is good enough.

The refinement's constraints (A), (B) and (C) are a zero-sum game. A mediator chooses the plan. A deviator
puts weights, which add up to 1, on the constraints, and chooses how the player deviates after each trigger;
it is paid the weighted violation. Its best answer is the worst violation, which is at most 0 where the
refinement is safe. Welfare of at least a target is one more constraint, "target - welfare".

Both sides minimize regrets by regret matching+, by default the predictive kind, which acts as if the last
gain came again and needs some ten times fewer iterations here: the mediator on each simplex of Xi's scaled
extensions, the deviator on its weights and on each set after each trigger (counterfactual regrets). They take
turns, and the plans' average, later ones weighing more, converges. It is in Xi, so that only (A) to (C) and
the target can be violated. All this happens in the units of `RefinementProblem.normalize`; results are in the
game's.

Regrets of zero mean equal shares, and so the mediator would start exactly at the uniform blueprint, whose
violation is 0; `start="random"` starts elsewhere.

Source: `efce_resolving`, Algorithm 2, Experiments, and appendices E and F; regret matching+: Tammelin 2014;
predictive: Farina, Kroer and Sandholm 2021.

Cost: an iteration touches each pair a few times and each leaf once for each action at the player's
information sets before it, twice. Memory: some 70 bytes a pair, or 45 in single precision.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Literal

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.config import bar
from precomp_games._support.kernels import kernel, read_only

from .bounds import sums
from .constraints import (
    DeviatorState,
    NormalizedConstraints,
    RefinementProblem,
    add_gradient,
    evaluate,
)
from .correlation_plans import CorrelationPlan
from .refinement import Refinement
from .scaled_extensions import ScaledExtensions, fill_plan, write_again

Start = Literal["uniform", "random"]
"""The first shares: equal, or drawn."""
Variant = Literal["plain", "predictive"]
"""Of regret matching+."""
Precision = Literal["double", "single"]
"""Of regrets and plans; "single" takes half the memory and less time."""
_FEW = 200
"""So many plans weigh n in the average, so that it is of many; later ones weigh n^2 / 200."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """Progress of a run: iterations, their seconds, and violation and welfare of the average plan."""

    iterations: tuple[int, ...]
    seconds: tuple[float, ...]
    violation: tuple[float, ...]
    welfare: tuple[float, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class RegretRefinement(Refinement):
    """A refinement with a certificate.

    Attributes:
      violation: The worst of (A), (B), (C) and the target, 0 where none is violated; in utility, weighted
        with the probability of what it is about.
      target: The welfare asked for, -inf for none.
    """

    violation: float = math.nan
    target: float = -math.inf
    curve: Curve = Curve((), (), (), ())


@public
def refine_regret(
    problem: RefinementProblem,
    *,
    iterations: checks.PositiveInt = 1000,
    violation: checks.NonNegativeFloat = 0.0,
    target: float | None = None,
    start: Start = "uniform",
    seed: checks.NonNegativeInt = 0,
    variant: Variant = "predictive",
    precision: Precision = "double",
) -> RegretRefinement:
    """Refine a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      iterations: at most so many; measured are 1, 2, 5, 10, 20, 50, ... and the last.
      violation: stop when the average violates nothing by more (`RefinementProblem.violation`, and the
        target).
      target: welfare of the subgame's leaves to be reached; None for none.
      start: "uniform": equal shares; "random": shares drawn with `seed`.
      seed: of the start.
      variant: "plain" regret matching+, or "predictive".
      precision: "double", or "single" for large subgames: regrets and plans are then float32, and the average
        is written into Xi again and measured in float64.

    Raises:
      ValueError: `problem` is none; `iterations` is not positive, `violation` negative;
        another start, variant or precision, or a target or seed that is no number.
    """
    began = time.perf_counter()
    resolver = RegretResolver(problem, target, start, seed, variant, precision)
    points: list[tuple[int, float, float, float]] = []
    with bar("Refining", "iterations", iterations) as show:
        while resolver.iterations < iterations:
            done = resolver.iterations
            scale = 10 ** int(math.log10(done)) if done else 1
            after = next(k * scale for k in (1, 2, 5, 10) if k * scale > done)
            resolver.run(min(after, iterations) - done)
            worst, welfare = resolver.measure()
            points.append((resolver.iterations, resolver.seconds, worst, welfare))
            show(resolver.iterations, f"violation {worst:.1e}")
            if worst <= violation:
                break
    return RegretRefinement(
        problem=problem,
        plan=resolver.average(),
        welfare=points[-1][3],
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=resolver.iterations,
        seconds=time.perf_counter() - began,
        violation=points[-1][2],
        target=resolver.target,
        curve=Curve(*zip(*points, strict=True)),
    )


class RegretResolver:
    """Self-play on one subgame, which can be run on and looked at; arguments as of `refine_regret`.

    Attributes:
      constraints: The problem's, normalized.
      steps: The mediator's choices.
      iterations: Their number so far. seconds: Their time.
      regret, share, xi, total, gradient: float64 or float32[pairs], the mediator's: regrets and next
        shares of the entries that are shares of others, the last plan, the weighted sum of all, and what
        entries were worth last.
      arm_regret, arm_weight, arm_gain: float64[arms + 1], the deviator's: player 0's arms, player 1's, and
        the target. `work` has views of the latter two.
    """

    def __init__(
        self,
        problem: RefinementProblem,
        target: float | None = None,
        start: Start = "uniform",
        seed: int = 0,
        variant: Variant = "predictive",
        precision: Precision = "double",
    ) -> None:
        """Set up the run, before any iteration."""
        self.problem = problem
        self._predict = 1.0 if variant == "predictive" else 0.0
        self.target = -math.inf if target is None else target
        pairs, game = problem.blueprint.pairs, problem.game
        self.steps = ScaledExtensions.of(pairs)
        self.constraints = NormalizedConstraints.of(problem)
        units, mass = self.constraints.units, problem.mass
        # The target's arm: what welfare is in normalized units, and what of the target is the centers'.
        inside = game.leaf_label >= 0
        chance, utility = game.leaf_chance[inside], game.leaf_utility[:, inside]
        normalized = (utility - np.outer(units.center, chance)) / units.scale[:, None]
        # Where a player does not see what chance drew, a pair can have several leaves.
        self._leaf_pair, leaf = np.unique(pairs.leaves()[inside], return_inverse=True)
        self._leaf_welfare = sums(leaf, utility.sum(axis=0), len(self._leaf_pair))
        self._normalized_welfare = sums(leaf, units.normalized_welfare(normalized), len(self._leaf_pair))
        self._normalized_target = (self.target - float(sum(units.center)) * mass) / units.welfare
        count = len(pairs)
        dtype: npt.DTypeLike = np.float64 if precision == "double" else np.float32
        self.regret, self.share, self.total, self.gradient = (np.zeros(count, dtype) for _ in range(4))
        if start == "random":
            self.regret += 1e-9 * np.random.default_rng(seed).random(count)
        _learn(self.steps, self.gradient, self.regret, self.share, 0.0)  # which is nothing yet
        self.xi = problem.blueprint.xi.astype(dtype)
        work = [DeviatorState.of(side, dtype=dtype) for side in self.constraints.sides]
        ends = np.cumsum([len(one.gains) for one in work])
        self.arm_regret, self.arm_weight, self.arm_gain = (np.zeros(ends[-1] + 1) for _ in range(3))
        gains, weights = np.split(self.arm_gain, ends), np.split(self.arm_weight, ends)
        self.work = tuple(one._replace(gains=gains[i], weights=weights[i]) for i, one in enumerate(work))
        self.iterations = 0
        self.seconds = 0.0

    def run(self, iterations: int) -> None:
        """Run some more iterations."""
        start = time.perf_counter()
        for _ in range(iterations):
            self._iterate()
        self.seconds += time.perf_counter() - start

    def _iterate(self) -> None:
        self.iterations += 1
        fill_plan(self.steps, self.share, self.xi)
        for side, work in zip(self.constraints.sides, self.work, strict=True):
            evaluate(side, work, read_only(self.xi), self._predict)
        self.arm_gain[-1] = -np.inf
        if self.target > -math.inf:
            welfare = float(self._normalized_welfare @ self.xi[self._leaf_pair])
            self.arm_gain[-1] = self._normalized_target - welfare
        _weigh(self.arm_gain, self.arm_regret, self.arm_weight, self._predict)
        self.gradient[:] = 0.0
        for side, work in zip(self.constraints.sides, self.work, strict=True):
            add_gradient(side, work, self.gradient)
        if self.arm_weight[-1] > 0.0:
            self.gradient[self._leaf_pair] += self.arm_weight[-1] * self._normalized_welfare
        _learn(self.steps, self.gradient, self.regret, self.share, self._predict)
        n = float(self.iterations)
        _accumulate(self.total, self.xi, n * max(n / _FEW, 1.0))

    def average(self) -> CorrelationPlan:
        """Return the average plan so far; the blueprint's in the trunk."""
        blueprint = self.problem.blueprint
        trunk = blueprint.pairs.pair_label < 0
        xi = self.total.astype(np.float64)
        xi[trunk] = blueprint.xi[trunk]
        write_again(self.steps, xi)
        xi.flags.writeable = False  # to be the plan's own, without a copy
        return CorrelationPlan(blueprint.pairs, xi)

    def measure(self) -> tuple[float, float]:
        """Return the average's violation and welfare; what that takes of memory is given back."""
        plan = self.average()
        return self.violation(plan), self.welfare(plan)

    def violation(self, plan: CorrelationPlan) -> float:
        """Return the violation, as `RefinementProblem.violation`, of the target too."""
        missed = max(0.0, self.target - self.welfare(plan)) if self.target > -math.inf else 0.0
        return max(missed, self.constraints.violation(plan.xi))

    def welfare(self, plan: CorrelationPlan) -> float:
        """Return the welfare of the subgame's leaves."""
        return float(self._leaf_welfare @ plan.xi[self._leaf_pair])


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def _learn(
    steps: ScaledExtensions, worth: np.ndarray, regret: np.ndarray, share: np.ndarray, predict: float
) -> None:
    """Write the next shares, in proportion to regrets plus `predict` times the last gains; else equal ones.

    worth: what entries are worth, to which what their shares are worth is added.
    """
    starts, strides, sizes, others, sums = steps.start, steps.stride, steps.size, steps.other, steps.is_sum
    for n in range(len(starts) - 1, -1, -1):
        first, stride = np.uint64(starts[n]), np.uint64(strides[n])
        other, size = np.uint64(others[n]), sizes[n]
        at = first
        if sums[n]:
            above = worth[other]
            for _ in range(size):
                worth[at] += above
                at += stride
            continue
        mean, total = 0.0, 0.0
        for _ in range(size):
            mean += worth[at] * share[at]
            at += stride
        worth[other] += mean
        at = first
        for _ in range(size):
            gain = worth[at] - mean
            r = max(regret[at] + gain, 0.0)
            regret[at] = r
            r = max(r + predict * gain, 0.0)
            share[at] = r
            total += r
            at += stride
        factor, at = 1.0 / total if total > 0.0 else 0.0, first
        for _ in range(size):
            share[at] = share[at] * factor if total > 0.0 else 1.0 / size
            at += stride


@kernel
def _weigh(gain: np.ndarray, regret: np.ndarray, weight: np.ndarray, predict: float) -> None:
    """Do regret matching on the constraints. A gain of -inf is a constraint that is not there."""
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
