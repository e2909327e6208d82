"""Equilibria of the meta-game, in which both sides prepare: the solvers behind one function.

    "double_oracle"          exact: small linear programs, and best responses on the whole tree
    "regret_minimization"    approximate: counterfactual regret minimization, in several variants

Whichever solver computes them, strategies are measured by best responses on the whole tree
(`zero_sum.exploitability`).
"""

from __future__ import annotations

import math
import time
from typing import Annotated

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.config import bar
from precomp_games.tree.history_tree import HistoryTree

from .double_oracle import DOUBLE_ORACLE, WARM_UP_VARIANT, DoubleOracle
from .exploitability import MetaEquilibrium, PlayedTree, answered, measured
from .regret_minimization import MOST_ITERATIONS, RegretMinimization, Variant

SOLVERS = (DOUBLE_ORACLE, "regret_minimization")
"""Names of the solvers that `meta_equilibrium` knows."""
_Solver = Annotated[str, checks.one_of(SOLVERS)]

_VARIANTS = dict(zip(SOLVERS, (WARM_UP_VARIANT, "cfr+"), strict=True))  # where none is asked for
_ITERATIONS = 1000  # of regret minimization, where nothing is asked for
_ROUNDING = 1e-14  # times the tree's scale: a NashConv that counts as none where nothing is asked for
_EXACT, _INEXACT = 1e-6, 1e-2  # times the least price, see `_exact`
_NOISE = 1e-15  # times the greatest value: what a NashConv may be off by


@public
def meta_equilibrium(
    tree: PlayedTree,
    *,
    solver: _Solver | None = None,
    variant: Variant | None = None,
    iterations: checks.PositiveInt | None = None,
    target_nash_conv: checks.NonNegativeFloat | None = None,
    check_every: checks.PositiveInt = 50,
    seconds: checks.Seconds | None = None,
) -> MetaEquilibrium:
    """Compute an equilibrium of the meta-game of a tree.

    Args:
      tree: a tree that was expanded with stop_value="backup", or of a game alone (`HistoryTree.of_game`). A
        player whose penalty is infinite never memorizes.
      solver: one of `SOLVERS`. "double_oracle" is exact up to rounding; where optimal strategies memorize too
        much for its programs, it goes on by regret minimization, and `solver` of the result shows it. None:
        this one, unless `variant` or `iterations` is given.
      variant: of regret minimization, one of `CFR_VARIANTS`. None: "cfr+".
      iterations: stop after so many iterations; of the double oracle, so many programs. None: regret
        minimization stops after 1000 where there is no target, and after 1,000,000 (`MOST_ITERATIONS`) where
        there is one. Most targets are reached after some hundreds or thousands.
      target_nash_conv: stop as soon as NashConv is at most this. `converged` of the result shows if it was.
      check_every: the iterations of regret minimization between measurements of NashConv.
      seconds: regret minimization stops at the first measurement after so many. None: no limit.
    """
    if solver is None:
        solver = SOLVERS[0] if variant is None and iterations is None else SOLVERS[1]
    exact = solver == DOUBLE_ORACLE
    if exact and variant is not None:
        raise ArgumentError(
            f'expected no variant of regret minimization with solver="{solver}", got {variant!r}'
        )
    started = time.monotonic()

    run: DoubleOracle | RegretMinimization
    run = DoubleOracle(tree) if exact else RegretMinimization(tree, variant or _VARIANTS[solver], check_every)
    trace: list[tuple[int, float]] = []
    enough = min(_ROUNDING * tree.scale, _exact(tree)) if exact else -1.0
    enough = enough if target_nash_conv is None else target_nash_conv
    most = iterations or (_ITERATIONS if target_nash_conv is None else MOST_ITERATIONS)
    with bar(variant or solver, "iterations", iterations) as show:
        while True:
            run.advance(most - run.iterations)
            strategies = run.strategies()
            profile, chosen = answered(tree, strategies)
            trace.append((run.iterations, profile.nash_conv))
            show(run.iterations, f"NashConv {profile.nash_conv:.2e}")
            reached = profile.nash_conv <= enough
            late = seconds is not None and time.monotonic() - started >= seconds
            if reached or late or run.iterations >= most or not run.learn(chosen):
                break
            if run.too_large:
                run = RegretMinimization(tree, _VARIANTS[solver], check_every)
    converged = reached
    if target_nash_conv is None:
        converged = profile.nash_conv <= _exact(tree) if exact else True
    return measured(
        tree,
        strategies,
        profile,
        iterations=run.iterations,
        converged=converged,
        trace=tuple(trace),
        solver=run.name,
    )


def _exact(tree: HistoryTree) -> float:
    """Return the most NashConv of an exact equilibrium: a millionth of the least price, besides rounding.

    NashConv itself is rounded. Where a hundredth of the price is no more than that, it cannot show who should
    memorize what, and nothing counts: -inf.
    """
    prices = tree.infoset_penalty[np.isfinite(tree.infoset_penalty) & (tree.infoset_penalty > 0.0)]
    least = min(float(prices.min(initial=math.inf)), tree.scale)
    noise = _NOISE * float(np.abs(tree.value[tree.num_children == 0]).max())
    if _INEXACT * least < noise:
        return -math.inf
    return min(max(_EXACT * least, 10.0 * noise), _INEXACT * least)
