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

Cost: see `meta.regret_kernel`. NashConv is measured by other code, `preparation.decisions`, on the tree as
it is.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from precomp_games.checks import check_choice, check_function, check_integer, check_number, check_path
from precomp_games.files import read_archive, write_archive
from precomp_games.history_tree import HistoryTree
from precomp_games.meta_strategy import MetaStrategy, at_most_one, check_meta_tree

from .exploitability import MetaExploitability, measure
from .folded_tree import DecisionTree
from .regret_kernel import RegretState, Rule, Work, iterate

__all__ = ["CFR_VARIANTS", "MOST_ITERATIONS", "MetaEquilibrium", "meta_equilibrium", "update_rule"]

_AVERAGING = {"cfr": 0, "cfr+": 1, "dcfr": 2, "pcfr+": 2, "pdcfr+": 5}  # powers of t that weigh iteration t
_DISCOUNTING = {"dcfr": 1.5, "pdcfr+": 2.3}  # alpha: iteration t leaves t^alpha / (t^alpha + 1)

CFR_VARIANTS = tuple(_AVERAGING)
"""Names of the variants that `meta_equilibrium` knows."""

MOST_ITERATIONS = 1_000_000
"""After so many iterations `meta_equilibrium` gives a target up that it was given alone."""

_ITERATIONS = 1000  # where nothing is asked for

_FORMAT = "precomp-games meta-equilibrium 2"


@dataclasses.dataclass(frozen=True)
class MetaEquilibrium:
    """An approximate equilibrium, measured by best responses.

    Attributes:
      value: Player 0's meta-game utility, penalties included.
      utility: Player 0's base-game utility, without penalties.
      nash_conv: What both players together could gain by deviating.
      sizes: Expected number of memorized information states of each player.
      strategies: The average strategies of players 0 and 1.
      iterations: How many were done in all, including those that a checkpoint had.
      converged: Whether nash_conv is at most the target; True where there was no target.
      trace: (iterations, nash_conv) each time it was measured.
    """

    value: float
    utility: float
    nash_conv: float
    sizes: tuple[float, float]
    strategies: tuple[MetaStrategy, MetaStrategy]
    iterations: int
    converged: bool = True
    trace: tuple[tuple[int, float], ...] = ()


def measured(
    strategies: tuple[MetaStrategy, MetaStrategy],
    found: MetaExploitability | None = None,
    iterations: int = 0,
    converged: bool = True,
    trace: tuple[tuple[int, float], ...] = (),
) -> MetaEquilibrium:
    """Strategies of players 0 and 1, with what best responses say of them."""
    found = found or measure(strategies)
    return MetaEquilibrium(
        value=found.value,
        utility=found.utility,
        nash_conv=found.nash_conv,
        sizes=found.sizes,
        strategies=strategies,
        iterations=iterations,
        converged=converged,
        trace=trace,
    )


def meta_equilibrium(
    tree: HistoryTree,
    *,
    variant: str = "cfr+",
    iterations: int | None = None,
    target_nash_conv: float | None = None,
    check_every: int = 50,
    checkpoint: str | os.PathLike[str] | None = None,
    threads: int = 1,
    progress: Callable[[int, float], None] | None = None,
) -> MetaEquilibrium:
    """Computes an equilibrium of the meta-game of a tree.

    Args:
      tree: a tree that was expanded with stop_value="backup". A player whose penalty is infinite never
        memorizes.
      variant: one of `CFR_VARIANTS`.
      iterations: stop after so many iterations, including those that a checkpoint has. None: after 1000 where
        there is no target, and after 1,000,000 (`MOST_ITERATIONS`) where there is one. Most targets are
        reached after some hundreds or thousands.
      target_nash_conv: stop as soon as NashConv is at most this. `converged` of the result says if it was.
      check_every: how many iterations lie between measurements of NashConv.
      checkpoint: a file that is written at each measurement. Where it exists, the run goes on from it.
      threads: how many cores to use; the result is the same. More than one is worth it from some 100,000
        histories on, where information is perfect.
      progress: called with (iterations, NashConv) at each measurement.

    Raises:
      ValueError: an argument is not as above, or the checkpoint is another tree's or variant's.
    """
    caller = "meta_equilibrium()"
    check_meta_tree(tree, caller)
    check_choice(variant, CFR_VARIANTS, "variant", caller)
    if target_nash_conv is not None:
        target_nash_conv = check_number(target_nash_conv, "target_nash_conv", caller, least=0.0)
    if iterations is None:
        iterations = _ITERATIONS if target_nash_conv is None else MOST_ITERATIONS
    iterations = check_integer(iterations, "iterations", caller, least=1)
    check_every = check_integer(check_every, "check_every", caller, least=1)
    threads = check_integer(threads, "threads", caller, least=1)
    if checkpoint is not None:
        checkpoint = check_path(checkpoint, "checkpoint", caller)
        if os.path.isdir(checkpoint) or not os.path.isdir(os.path.dirname(checkpoint) or os.curdir):
            raise ValueError(
                f"{caller}: expected checkpoint to be a file in a folder that exists, got {checkpoint!r}"
            )
    check_function(progress, "progress", caller, optional=True)

    pool: contextlib.AbstractContextManager[concurrent.futures.Executor | None] = (
        concurrent.futures.ThreadPoolExecutor(threads) if threads > 1 else contextlib.nullcontext()
    )
    with pool as workers:
        solver = _Solver(tree, variant, workers)
        if checkpoint is not None and os.path.exists(checkpoint):
            solver.load(checkpoint)
        trace: list[tuple[int, float]] = []
        while True:
            wanted = min(check_every - solver.iterations % check_every, iterations - solver.iterations)
            solver.run(max(0, wanted))
            strategies = solver.averages()
            found = measure(strategies)
            trace.append((solver.iterations, found.nash_conv))
            if checkpoint is not None:
                solver.save(checkpoint)
            if progress is not None:
                progress(solver.iterations, found.nash_conv)
            reached = target_nash_conv is not None and found.nash_conv <= target_nash_conv
            if reached or solver.iterations >= iterations:
                converged = reached or target_nash_conv is None
                return measured(strategies, found, solver.iterations, converged, tuple(trace))


class _Solver:
    """Regrets and averages of a run, in the order of the decision tree."""

    def __init__(self, tree: HistoryTree, variant: str, threads: concurrent.futures.Executor | None) -> None:
        self.tree = tree
        self.variant = variant
        self.threads = threads
        self.iterations = 0
        self.decisions = DecisionTree.of(tree)
        self.work = Work.of(self.decisions)
        playing = np.isfinite(np.array(tree.penalties))[tree.entry_player]
        actions = 1.0 + np.diff(tree.first_entry)[tree.entry_infoset]
        self.untold = np.where(playing, 1.0 / actions, 0.0)[self.decisions.tree_entry]
        self.state = RegretState.start(self.untold.copy())

    def run(self, count: int) -> None:
        """Does so many iterations."""
        rules = [update_rule(self.variant, self.iterations + 1 + k) for k in range(count)]
        iterate(self.decisions, self.state, self.work, rules, self.tree.penalties, self.threads)
        self.iterations += count

    def averages(self) -> tuple[MetaStrategy, MetaStrategy]:
        """The average strategies; where neither player ever came, all actions alike."""
        decisions, plans = self.decisions, self.state.plan_sum
        first = _total_weight(self.variant, float(self.iterations))
        above = np.where(decisions.previous >= 0, plans[decisions.previous], first)
        if decisions.first_entry is not None:
            above = np.repeat(above, np.diff(decisions.first_entry))
        averages = np.empty(len(plans))
        averages[decisions.tree_entry] = np.divide(
            plans, above, out=self.untold.copy(), where=above > 0.0
        ).clip(0.0, 1.0)
        averages = at_most_one(self.tree, averages)  # sums of rounded numbers
        return MetaStrategy(self.tree, 0, averages), MetaStrategy(self.tree, 1, averages)

    # -- checkpoints -------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        tree = self.tree
        return {
            "format": _FORMAT,
            "variant": self.variant,
            "tree": tree.fingerprint,
            "penalties": [repr(penalty) for penalty in tree.penalties],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, whole or not at all."""
        header = self._header() | {"iterations": self.iterations}
        write_archive(path, header, self.state._asdict())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint.

        Raises:
          ValueError: it is none, or of another tree, other penalties or another variant.
        """
        expected = self._header()
        try:
            header, arrays = read_archive(path, RegretState._fields)
            iterations = int(header.pop("iterations"))
            for name, array in arrays.items():
                own = getattr(self.state, name)
                if array.shape != own.shape or array.dtype != own.dtype or not np.isfinite(array).all():
                    raise ValueError(f"{name} is not {own.dtype}{own.shape}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"meta_equilibrium(): expected a checkpoint of this run, got {os.fspath(path)!r}: {error}"
            ) from error
        if header != expected:
            wrong = [key for key in expected if header.get(key) != expected[key]]
            raise ValueError(
                "meta_equilibrium(): expected a checkpoint of the same tree, penalties and variant, got "
                f"{os.fspath(path)!r}, which differs in {', '.join(wrong)}"
            )
        self.iterations = iterations
        self.state = RegretState(**arrays)


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
