"""Refining a subgame by regret minimization until it is good enough, and looking for the best welfare so.

`refine_regret` runs a `RegretResolver` and measures its average on the way. `search_target` looks for the
greatest target of welfare by bisection, and claims what a safe plan has (`projection`).

Source: `efce_resolving`, Algorithm 2 and Experiments.

Cost: that of the iterations; `search_target` runs some ten times as many.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

from precomp_games._support.arguments import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    public,
)

from .constraints import RefinementProblem
from .refinement import Refinement
from .regret_resolver import RegretResolver, Start, Variant

__all__ = ["Curve", "RegretRefinement", "refine_regret", "search_target"]

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
    iterations: PositiveInt = 1000,
    violation: NonNegativeFloat = 0.0,
    target: float | None = None,
    start: Start = "uniform",
    seed: NonNegativeInt = 0,
    variant: Variant = "predictive",
    check_every: PositiveInt | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> RegretRefinement:
    """Refines a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      iterations: at most so many.
      violation: stop when the average violates nothing by more (`RegretResolver.violation`).
      target: as for `RegretResolver`.
      start: the same.
      seed: the same.
      variant: the same.
      check_every: iterations between measurements; default: at 1, 2, 5, 10, 20, 50, ...
      progress: told iterations and violation after each measurement.

    Raises:
      ValueError: `iterations` or `check_every` is not positive, `violation` negative, or as `RegretResolver`.
    """
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


@public
def search_target(
    problem: RefinementProblem,
    *,
    violation: PositiveFloat | None = None,
    gap: PositiveFloat | None = None,
    iterations: PositiveInt = 1000,
    progress: Callable[[float, float, float], None] | None = None,
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
      progress: told the bracket's ends and the average's violation at the target tried last.

    Returns:
      The refinement of greatest welfare that was found, which is `target` too; the blueprint itself at least.
      Its `violation` is rounding.

    Raises:
      ValueError: `problem` is none, or a tolerance is not positive.
    """
    began = time.perf_counter()
    game, mass = problem.game, problem.mass
    inside = game.leaf_utility[:, game.leaf_label >= 0]
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
        found = refine_regret(
            problem, iterations=iterations, violation=violation, target=middle, check_every=50
        )
        total += found.iterations
        if found.violation <= _NEAR * violation:
            plan = resolver.make_safe(found.plan, best)
            welfare = resolver.welfare(plan)
            if welfare > low:
                best, low, curve = plan, welfare, found.curve
        # Being made safe costs a little, for which a target is not yet out of reach.
        if low < middle - 0.25 * gap:
            high = middle
        if progress is not None:
            progress(low, high, found.violation)
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
