"""Refining a subgame by regret minimization, for subgames that no linear program can hold.

The refinement's constraints (A), (B) and (C) are a zero-sum game. A mediator chooses the plan. A deviator
puts weights, which add up to 1, on the constraints, and chooses how the player deviates after each trigger;
it is paid the weighted violation. Its best answer is the worst violation, which is at most 0 where the
refinement is safe. Welfare of at least a target is one more constraint, "target - welfare"; `search_target`
looks for a target by bisection.

Both sides minimize regrets by regret matching+, by default the predictive kind, which acts as if the last
gain came again and needs some ten times fewer iterations here: the mediator on each simplex of Xi's scaled
extensions, the deviator on its weights and on each set after each trigger (counterfactual regrets). They take
turns, and the plans' average, later ones weighing more, converges. It is in Xi, so that only (A) to (C) and
the target can be violated.

Regrets of zero mean equal shares, and so the mediator would start exactly at the uniform blueprint, whose
violation is 0; `start="random"` starts elsewhere.

Source: `efce_resolving`, Algorithm 2 and appendices E and F; regret matching+: Tammelin 2014; predictive:
Farina, Kroer and Sandholm 2021.

Cost: an iteration touches each pair a few times and each leaf once for each action at the player's
information sets before it, twice. Memory: some 70 bytes a pair.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Literal

import numba
import numpy as np

from .correlation_plans import CorrelationPlan
from .deviator import add_gradient, evaluate, evaluate_best, side_of, work_of
from .refinement import Refinement, RefinementProblem
from .scaled_extensions import ScaledExtensions

__all__ = ["Curve", "RegretRefinement", "RegretResolver", "refine_regret", "search_target"]

Start = Literal["uniform", "random"]
Variant = Literal["plain", "predictive"]


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

    violation: the worst of (A), (B), (C) and the target, 0 where none is violated.
    target: the welfare asked for, -inf for none.
    """

    violation: float = math.nan
    target: float = -math.inf
    curve: Curve = Curve((), (), (), ())


class RegretResolver:
    """Self-play on one subgame, which can be run on and looked at.

    Args:
      problem: from `resolving.Resolving.problem`.
      target: welfare of the subgame's leaves to be reached; None for none.
      start: "uniform": equal shares; "random": shares drawn with `seed`.
      seed: of the start.
      variant: "plain" regret matching+, or "predictive".

    Raises:
      ValueError: another start or variant, or a target that is no number.
    """

    def __init__(
        self,
        problem: RefinementProblem,
        target: float | None = None,
        start: Start = "uniform",
        seed: int = 0,
        variant: Variant = "predictive",
    ) -> None:
        if variant not in ("plain", "predictive"):
            raise ValueError(f'RegretResolver(): expected variant "plain" or "predictive", got {variant!r}')
        if start not in ("uniform", "random"):
            raise ValueError(f'RegretResolver(): expected start "uniform" or "random", got {start!r}')
        if target is not None and (not isinstance(target, int | float) or not math.isfinite(target)):
            raise ValueError(f"RegretResolver(): expected a finite target or None, got {target!r}")
        self.problem = problem
        self._predict = 1.0 if variant == "predictive" else 0.0
        self.target = -math.inf if target is None else float(target)
        pairs = problem.blueprint.pairs
        self.steps = ScaledExtensions.of(pairs)
        self.sides = (side_of(problem, 0), side_of(problem, 1))
        self.work = tuple(work_of(side) for side in self.sides)
        game = problem.game
        inside = game.leaf_label >= 0
        self._leaf_pair = pairs.leaves()[inside]
        self._leaf_welfare = np.ascontiguousarray(game.leaf_utility.sum(axis=0)[inside])
        count = len(pairs)
        self.regret = np.zeros(count)
        if start == "random":
            self.regret[:] = 1e-9 * np.random.default_rng(seed).random(count)
        self.share = np.zeros(count)
        self.xi = problem.blueprint.xi.copy()
        self.total = np.zeros(count)
        self.gradient = np.zeros(count)
        # (regrets, weights, gains) of the arms: player 0's, player 1's, the target.
        arms = [len(work.gains) for work in self.work]
        self.arm_regret = np.zeros(sum(arms) + 1)
        self.arm_weight = np.zeros(sum(arms) + 1)
        self.arm_gain = np.zeros(sum(arms) + 1)
        self._arms = arms
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
        _mediator_plays(self.steps, self.regret, self.gradient, self.share, self.xi, self._predict)
        a = self._arms
        offset = 0
        for side, work, arms in zip(self.sides, self.work, a, strict=True):
            evaluate(side, work, self.xi, self._predict)
            self.arm_gain[offset : offset + arms] = work.gains
            offset += arms
        self.arm_gain[-1] = -np.inf
        if self.target > -math.inf:
            self.arm_gain[-1] = self.target - float(self._leaf_welfare @ self.xi[self._leaf_pair])
        _weigh(self.arm_gain, self.arm_regret, self.arm_weight, self._predict)
        _clear(self.gradient)
        offset = 0
        for side, work, arms in zip(self.sides, self.work, a, strict=True):
            work.weights[:] = self.arm_weight[offset : offset + arms]
            add_gradient(side, work, self.gradient)
            offset += arms
        if self.arm_weight[-1] > 0.0:
            _welfare_gradient(self._leaf_pair, self._leaf_welfare, self.arm_weight[-1], self.gradient)
        _mediator_learns(self.steps, self.gradient, self.share, self.regret)
        _accumulate(self.total, self.xi, float(self.iterations))

    def average(self) -> CorrelationPlan:
        """The average plan so far; the blueprint's in the trunk.

        Raises:
          ValueError: nothing has been run.
        """
        if not self.iterations:
            raise ValueError("average(): expected at least one iteration, got none")
        weight = self.iterations * (self.iterations + 1) / 2.0
        return CorrelationPlan(self.problem.blueprint.pairs, self.total / weight)

    def violation(self, plan: CorrelationPlan) -> float:
        """The worst violation of (A), (B), (C) and the target by a plan of this subgame, at least 0."""
        worst = max(0.0, self.target - self.welfare(plan)) if self.target > -math.inf else 0.0
        for side in self.sides:
            work = work_of(side, regrets=False)
            evaluate_best(side, work, plan.xi)
            worst = max(worst, float(work.gains.max(initial=0.0)))
        return worst

    def welfare(self, plan: CorrelationPlan) -> float:
        """Of the subgame's leaves."""
        return float(self._leaf_welfare @ plan.xi[self._leaf_pair])


def refine_regret(
    problem: RefinementProblem,
    *,
    iterations: int = 1000,
    violation: float = 0.0,
    target: float | None = None,
    start: Start = "uniform",
    seed: int = 0,
    variant: Variant = "predictive",
    check_every: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> RegretRefinement:
    """Refines a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      iterations: at most so many.
      violation: stop when the average violates nothing by more.
      target: as for `RegretResolver`.
      start: the same.
      seed: the same.
      variant: the same.
      check_every: iterations between measurements; default: at 1, 2, 5, 10, 20, 50, ...
      progress: told iterations and violation after each measurement.

    Raises:
      ValueError: `iterations` or `check_every` is not positive, or as `RegretResolver`.
    """
    for name, value in (
        ("iterations", iterations),
        ("check_every", 1 if check_every is None else check_every),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"refine_regret(): expected {name} to be a positive integer, got {value!r}")
    began = time.perf_counter()
    resolver = RegretResolver(problem, target, start, seed, variant)
    points: list[tuple[int, float, float, float]] = []
    while resolver.iterations < iterations:
        after = _next_check(resolver.iterations, check_every)
        resolver.run(min(after, iterations) - resolver.iterations)
        plan = resolver.average()
        worst = resolver.violation(plan)
        points.append((resolver.iterations, resolver.seconds, worst, resolver.welfare(plan)))
        if progress is not None:
            progress(resolver.iterations, worst)
        if worst <= violation:
            break
    columns = list(zip(*points, strict=True))
    return RegretRefinement(
        problem=problem,
        plan=plan,
        welfare=points[-1][3],
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=resolver.iterations,
        seconds=time.perf_counter() - began,
        violation=points[-1][2],
        target=resolver.target,
        curve=Curve(columns[0], columns[1], columns[2], columns[3]),
    )


def search_target(
    problem: RefinementProblem,
    *,
    violation: float = 1e-4,
    gap: float = 1e-3,
    iterations: int = 1000,
    progress: Callable[[float, float, float], None] | None = None,
) -> RegretRefinement:
    """The greatest welfare target that `iterations` reach with no more than `violation`, by bisection.

    Args:
      problem: as for `refine_regret`.
      violation: what counts as reached.
      gap: stop when the bracket is no wider.
      iterations: for each target; a target that needs more counts as out of reach.
      progress: told the bracket's ends and the violation at the target tried last.

    Returns:
      The refinement of the greatest target that was reached; the blueprint's welfare is one that can be.

    Raises:
      ValueError: a tolerance is not positive, or not even the blueprint's welfare was reached.
    """
    if not (violation > 0.0 and gap > 0.0):
        raise ValueError(
            f"search_target(): expected positive violation and gap, got {violation!r} and {gap!r}"
        )
    game = problem.game
    low = problem.blueprint.welfare(0)
    # The subgame's pairs sum to what the trunk lets in: no plan has more than its best leaf throughout.
    counted = game.leaf_label >= 0
    mass = float(problem.blueprint.xi[problem.blueprint.pairs.leaves()[counted]].sum())
    high = float(game.leaf_utility.sum(axis=0)[counted].max(initial=0.0)) * mass

    def attempt(target: float) -> RegretRefinement:
        return refine_regret(
            problem, iterations=iterations, violation=violation, target=target, check_every=50
        )

    best = attempt(low)
    if best.violation > violation:
        raise ValueError(
            f"search_target(): expected the blueprint's welfare {low:g} to be reached within {iterations} "
            f"iterations, got a violation of {best.violation:.1e}; more iterations may help"
        )
    while high - low > gap:
        middle = 0.5 * (low + high)
        found = attempt(middle)
        if found.violation <= violation:
            best, low = found, middle
        else:
            high = middle
        if progress is not None:
            progress(low, high, found.violation)
    return best


def _next_check(done: int, every: int | None) -> int:
    if every is not None:
        return done + every
    scale = 10 ** int(math.log10(done)) if done else 1
    return next(k * scale for k in (1, 2, 5, 10) if k * scale > done)


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@numba.njit(cache=True)
def _mediator_plays(
    steps: ScaledExtensions,
    regret: np.ndarray,
    last: np.ndarray,
    share: np.ndarray,
    xi: np.ndarray,
    predict: float,
) -> None:
    """Shares in proportion to regrets plus `predict` times the last gains, and the plan that they make."""
    starts, strides, sizes, others, sums = steps.start, steps.stride, steps.size, steps.other, steps.is_sum
    for n in range(len(starts)):
        first, stride, other, size = (
            np.uint64(starts[n]),
            np.uint64(strides[n]),
            np.uint64(others[n]),
            sizes[n],
        )
        at, total = first, 0.0
        if sums[n]:
            for _ in range(size):
                total += xi[at]
                at += stride
            xi[other] = total
            continue
        for _ in range(size):
            r = max(regret[at] + predict * last[at], 0.0)
            share[at] = r
            total += r
            at += stride
        scale, at = xi[other], first
        if total > 0.0:
            factor = 1.0 / total
            for _ in range(size):
                p = share[at] * factor
                share[at] = p
                xi[at] = scale * p
                at += stride
        else:
            p = 1.0 / size
            for _ in range(size):
                share[at] = p
                xi[at] = scale * p
                at += stride


@numba.njit(cache=True)
def _mediator_learns(
    steps: ScaledExtensions, gradient: np.ndarray, share: np.ndarray, regret: np.ndarray
) -> None:
    """Regrets, from the last step to the first; `gradient`, what entries are worth, becomes their gains."""
    starts, strides, sizes, others, sums = steps.start, steps.stride, steps.size, steps.other, steps.is_sum
    for n in range(len(starts) - 1, -1, -1):
        first, stride, other, size = (
            np.uint64(starts[n]),
            np.uint64(strides[n]),
            np.uint64(others[n]),
            sizes[n],
        )
        at = first
        if sums[n]:
            worth = gradient[other]
            for _ in range(size):
                gradient[at] += worth
                at += stride
            continue
        worth = 0.0
        for _ in range(size):
            worth += gradient[at] * share[at]
            at += stride
        at = first
        for _ in range(size):
            gain = gradient[at] - worth
            regret[at] = max(regret[at] + gain, 0.0)
            gradient[at] = gain
            at += stride
        gradient[other] += worth


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _welfare_gradient(pair: np.ndarray, welfare: np.ndarray, weight: float, gradient: np.ndarray) -> None:
    for n in range(len(pair)):
        gradient[pair[n]] += weight * welfare[n]


@numba.njit(cache=True)
def _clear(gradient: np.ndarray) -> None:
    for n in range(len(gradient)):
        gradient[n] = 0.0


@numba.njit(cache=True)
def _accumulate(total: np.ndarray, xi: np.ndarray, weight: float) -> None:
    for n in range(len(total)):
        total[n] += weight * xi[n]
