"""Refining a subgame by regret minimization, for subgames that no linear program can hold.

`refine_regret` runs a `RegretResolver` and measures its average on the way, until it is good enough.
`search_target` looks for the greatest target of welfare by bisection, and claims what a safe plan has
(projection, below).

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

**Projection** turns a plan that nearly keeps all constraints into a safe one, the nearest. Regret
minimization ends near the constraints (A), (B) and (C), on the wrong side of some, and a little welfare that
is bought with a little violation can be more than any safe plan has. Here such a plan is projected onto the
constraints. With the deviations held at the best ones, a violated constraint is a linear *cut* a xi <= b, and
the plan moves by its shares (`ScaledExtensions`),

    share <- share * exp(-sum over cuts of w g(a)),   made to add up to 1 again,   w >= 0,

with g(a) what a share is worth under the cut less what its simplex is worth on the mean. To first order the
cuts' excesses fall by G w, with G[k, l] = sum over shares' entries of xi g(a_k) g(a_l), so w solves a small
least-squares problem. New deviations make new cuts, until none is violated: some ten rounds. Constraints that
no plan keeps with room to spare, such as those of the uniform blueprint, are no obstacle; mixing with a plan
that has slack would need that room.

Source: `efce_resolving`, Algorithm 2, Experiments, and appendices E and F; regret matching+: Tammelin 2014;
predictive: Farina, Kroer and Sandholm 2021; projection: Kelley's cutting planes (1960), with the geometry of
mirror descent on the simplexes.

Cost: an iteration touches each pair a few times and each leaf once for each action at the player's
information sets before it, twice; `search_target` runs some ten times as many. Memory: some 70 bytes a pair,
or 45 in single precision. A
round of the projection takes a pass of the mediator for each cut, and two numbers a pair and cut.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.optimize

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.config import bar
from precomp_games._support.kernels import kernel, read_only

from .bounds import sums
from .constraints import (
    DeviatorState,
    NormalizedConstraints,
    PlayerConstraints,
    RefinementProblem,
    add_gradient,
    evaluate,
    evaluate_best,
)
from .correlation_plans import CorrelationPlan
from .refinement import Refinement
from .scaled_extensions import ScaledExtensions, advantages, fill_plan, shares_of, write_again

Start = Literal["uniform", "random"]
"""The first shares: equal, or drawn."""
Variant = Literal["plain", "predictive"]
"""Of regret matching+."""
Precision = Literal["double", "single"]
"""Of regrets and plans; "single" takes half the memory and less time."""
_SAFE = 1e-10
"""What may be violated by a plan that is called safe, in normalized units, as if play were in the subgame."""
_FEW = 200
"""So many plans weigh n in the average, so that it is of many; later ones weigh n^2 / 200."""
_NEAR = 50.0
"""How many times the violation asked for a plan may have that `search_target` tries to make safe."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """How a run went. iterations, seconds (of iterations alone), violation and welfare of the average."""

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
    check_every: checks.PositiveInt | None = None,
) -> RegretRefinement:
    """Refines a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      iterations: at most so many.
      violation: stop when the average violates nothing by more (`RefinementProblem.violation`, and the
        target).
      target: welfare of the subgame's leaves to be reached; None for none.
      start: "uniform": equal shares; "random": shares drawn with `seed`.
      seed: of the start.
      variant: "plain" regret matching+, or "predictive".
      precision: "double", or "single" for large subgames: regrets and plans are then float32, and the average
        is written into Xi again and measured in float64.
      check_every: iterations between measurements; default: at 1, 2, 5, 10, 20, 50, ...

    Raises:
      ValueError: `problem` is none; `iterations` or `check_every` is not positive, `violation` negative;
        another start, variant or precision, or a target or seed that is no number.
    """
    began = time.perf_counter()
    resolver = RegretResolver(problem, target, start, seed, variant, precision)
    points: list[tuple[int, float, float, float]] = []
    with bar("Refining", "iterations", iterations) as show:
        while resolver.iterations < iterations:
            after = _next_check(resolver.iterations, check_every)
            resolver.run(min(after, iterations) - resolver.iterations)
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


@public
def search_target(
    problem: RefinementProblem,
    *,
    violation: checks.PositiveFloat | None = None,
    gap: checks.PositiveFloat | None = None,
    iterations: checks.PositiveInt = 1000,
) -> RegretRefinement:
    """The greatest welfare that `iterations` come to, by bisection on targets.

    What a target comes to is made safe (`RegretResolver.make_safe`), and what counts is the welfare of that:
    so no more is claimed than a safe refinement has.

    Args:
      problem: as for `refine_regret`.
      violation: stop on a target when the average violates nothing by more; then it is made safe. Default: a
        hundred-thousandth of the subgame's range of utilities, weighted with the probability of coming to it.
      gap: stop when the bracket is no wider. Default: a thousandth of the same.
      iterations: for each target; a target that needs more counts as out of reach.

    Returns:
      The refinement of greatest welfare that was found, which is `target` too; the blueprint itself at least.
      Its `violation` is rounding.

    Raises:
      ValueError: `problem` is none, or a tolerance is not positive.
    """
    began = time.perf_counter()
    game, mass = problem.game, problem.mass
    inside = game.payoffs[:, game.leaf_label >= 0]
    unit = mass * float((inside.max(axis=1) - inside.min(axis=1)).max())
    violation = 1e-5 * unit if violation is None else violation
    gap = 1e-3 * unit if gap is None else gap
    best = problem.blueprint
    before = low = best.welfare(0)
    # The subgame's pairs sum to what the trunk lets in: no plan has more than its best leaf throughout.
    high = float(inside.sum(axis=0).max()) * mass
    resolver = RegretResolver(problem)
    total, curve = 0, Curve((), (), (), ())
    while high - low > gap:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break  # no number lies between them
        tried = refine_regret(
            problem, iterations=iterations, violation=violation, target=middle, check_every=50
        )
        total += tried.iterations
        if tried.violation <= _NEAR * violation:
            plan = resolver.make_safe(tried.plan, best)
            welfare = resolver.welfare(plan)
            if welfare > low:
                best, low, curve = plan, welfare, tried.curve
        # Being made safe costs a little, for which a target is not yet out of reach.
        if low < middle - 0.25 * gap:
            high = middle
    return RegretRefinement(
        problem=problem,
        plan=best,
        welfare=low,
        blueprint_welfare=before,
        iterations=total,
        seconds=time.perf_counter() - began,
        violation=resolver.violation(best),
        target=low,
        curve=curve,
    )


def _next_check(done: int, every: int | None) -> int:
    if every is not None:
        return done + every
    scale = 10 ** int(math.log10(done)) if done else 1
    return next(k * scale for k in (1, 2, 5, 10) if k * scale > done)


class RegretResolver:
    """Self-play on one subgame, which can be run on and looked at; arguments as of `refine_regret`.

    Attributes:
      constraints: The problem's, normalized.
      steps: The mediator's choices.
      iterations: How many were done. seconds: what they took.
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
        """Has done nothing yet."""
        self.problem = problem
        self._predict = 1.0 if variant == "predictive" else 0.0
        self.target = -math.inf if target is None else target
        pairs, game = problem.blueprint.pairs, problem.game
        self.steps = ScaledExtensions.of(pairs)
        self.constraints = NormalizedConstraints.of(problem)
        units, mass = self.constraints.units, problem.mass
        self._tolerance = _SAFE * (mass or 1.0)
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
        """Does so many iterations."""
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
        """The average plan so far; the blueprint's in the trunk.

        Raises:
          ValueError: nothing has been run.
        """
        if not self.iterations:
            raise ArgumentError("expected at least one iteration, got none")
        blueprint = self.problem.blueprint
        trunk = blueprint.pairs.pair_label < 0
        xi = self.total.astype(np.float64)
        xi[trunk] = blueprint.xi[trunk]
        write_again(self.steps, xi)
        xi.flags.writeable = False  # to be the plan's own, without a copy
        return CorrelationPlan(blueprint.pairs, xi)

    def measure(self) -> tuple[float, float]:
        """The average's violation and welfare; what that takes of memory is given back."""
        plan = self.average()
        return self.violation(plan), self.welfare(plan)

    def violation(self, plan: CorrelationPlan) -> float:
        """As `RefinementProblem.violation`, of the target too."""
        missed = max(0.0, self.target - self.welfare(plan)) if self.target > -math.inf else 0.0
        return max(missed, self.constraints.violation(plan.xi))

    def welfare(self, plan: CorrelationPlan) -> float:
        """Of the subgame's leaves."""
        return float(self._leaf_welfare @ plan.xi[self._leaf_pair])

    def make_safe(self, plan: CorrelationPlan, safe: CorrelationPlan) -> CorrelationPlan:
        """A plan near `plan` that violates nothing but for rounding.

        Args:
          plan: nearly safe, such as `average()`.
          safe: one that is, such as the blueprint. Where nothing near `plan` is found, the two are mixed,
            with as little as possible of this one.

        Raises:
          ValueError: `safe` is not safe.
        """
        gains, tolerance = self.constraints.gains, self._tolerance
        if gains(safe.xi).max() > tolerance:
            raise ArgumentError(f"expected a safe plan, got a violation of {self.violation(safe):.1e}")
        xi = project(self.steps, self.constraints.sides, plan.xi, tolerance)
        if xi is None:
            # Violations are convex, so the mixtures that are safe are those with enough of the safe plan.
            less, share = 0.0, 1.0
            for _ in range(30):
                middle = 0.5 * (less + share)
                if gains((1.0 - middle) * plan.xi + middle * safe.xi).max() > tolerance:
                    less = middle
                else:
                    share = middle
            xi = (1.0 - share) * plan.xi + share * safe.xi
        return CorrelationPlan(self.problem.blueprint.pairs, xi)


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def _learn(
    steps: ScaledExtensions, worth: np.ndarray, regret: np.ndarray, share: np.ndarray, predict: float
) -> None:
    """The next shares, in proportion to regrets plus `predict` times the last gains; equal where all are 0.

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


_ROUNDS = 60
_MOST_CUTS = 600
_MOST_NUMBERS = 10**8


def project(
    steps: ScaledExtensions, sides: Sequence[PlayerConstraints], xi: npt.NDArray[np.float64], tolerance: float
) -> np.ndarray | None:
    """A plan near `xi` that violates nothing by more than `tolerance`.

    Args:
      steps: of the subgame.
      sides: both players' constraints.
      xi: float64[pairs], in Xi; the trunk's entries stay.
      tolerance: in the units of `sides`.

    Returns:
      float64[pairs], or None if no such plan was found.
    """
    works = [DeviatorState.of(side) for side in sides]
    most = min(_MOST_CUTS, _MOST_NUMBERS // (2 * len(xi)))
    xi, shares = np.array(xi), np.full(len(xi), np.nan)
    cuts: list[np.ndarray] = []
    limits: list[float] = []
    for _ in range(_ROUNDS):
        violated = []
        for side, work in zip(sides, works, strict=True):
            evaluate_best(side, work, read_only(xi))
            gains = work.gains.copy()
            violated += [(gains[k], side, work, k) for k in np.flatnonzero(gains > tolerance).tolist()]
        if not violated:
            return xi
        violated.sort(key=lambda entry: -entry[0])
        if len(cuts) == most:
            return None
        for gain, side, work, k in violated[: most - len(cuts)]:
            work.weights[:] = 0.0
            work.weights[k] = 1.0
            worth = np.zeros(len(xi))
            add_gradient(side, work, worth)
            cuts.append(-worth)
            limits.append(-float(worth @ xi) - gain)
        shares_of(steps, read_only(xi), shares)
        slopes = np.array(cuts)
        excess = slopes @ xi - limits
        for row in slopes:
            advantages(steps, row, shares)
        slopes[:, np.isnan(shares)] = 0.0  # entries that are no shares of others
        weight = _weights((slopes * xi) @ slopes.T, excess)
        _tilt(steps, -(weight @ slopes), shares)
        fill_plan(steps, shares, xi)
    return None


def _weights(matrix: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """The w >= 0 that minimize w' matrix w / 2 - excess' w: weights of the cuts, so that none is exceeded."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-14 * values[-1]
    root = np.sqrt(values[kept])
    try:
        weight, _ = scipy.optimize.nnls(
            (vectors[:, kept] * root).T, (vectors[:, kept].T @ excess) / root, maxiter=10 * len(excess)
        )
    except RuntimeError:  # too many iterations
        return np.zeros(len(excess))
    return np.asarray(weight)


@kernel
def _tilt(steps: ScaledExtensions, tilt: np.ndarray, shares: np.ndarray) -> None:
    """Shares in proportion to share * exp(tilt), no more than e^2 at a time."""
    for n in range(len(steps.start)):
        if steps.is_sum[n]:
            continue
        total = 0.0
        for k in range(steps.size[n]):
            at = steps.start[n] + k * steps.stride[n]
            shares[at] *= np.exp(min(max(tilt[at], -2.0), 2.0))
            total += shares[at]
        for k in range(steps.size[n]):
            shares[steps.start[n] + k * steps.stride[n]] /= total
