"""Algorithm 2: an equilibrium of the meta-game by counterfactual regret minimisation on the flat tree.

Each iteration updates player 0 and then player 1 against the other's current strategy. At information state
I the two actions are worth memorise(I) and stop(I) (`meta_passes`), the player's penalty charged on its own
realization plan, so that the result is exact for all policies. These are the counterfactual values of the
paper's game G', and on trees where that one is exact too the iterates are those of OpenSpiel's solvers on it.

Variants, by name:

    "cfr"    regret matching, uniform averaging                              Zinkevich et al. 2007
    "cfr+"   regrets floored at 0, averages weighted with t                  Tammelin 2014
    "dcfr"   discounted, alpha = 1.5, beta = 0, gamma = 2                    Brown and Sandholm 2019
    "pcfr+"  predictive: the next strategy answers the last regrets again,   Farina, Kroer and Sandholm 2021
             averages weighted with t^2

Source: `precomputation`, Algorithm 2, Theorem 4.

Deviations: CFR runs on the base game's histories, not on G', whose nodes multiply with both players' stop
times; it stops at a NashConv that is measured, not after O(|W|^2 / epsilon^2) iterations; the signs of the
penalties at truncated leaves (Algorithm 2, line 3) are Lemma 4's.

Cost: an iteration is two passes down the tree and two back.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from precomp_games.algorithms.meta_exploitability import MetaExploitability, measure
from precomp_games.algorithms.meta_passes import PlayerView, TreePasses
from precomp_games.algorithms.meta_strategies import MetaStrategy
from precomp_games.files import read_archive, write_archive
from precomp_games.history_tree import HistoryTree

__all__ = ["VARIANTS", "MetaEquilibrium", "meta_equilibrium"]

VARIANTS = ("cfr", "cfr+", "dcfr", "pcfr+")
"""Names of the variants that `meta_equilibrium` knows."""

_FORMAT = "precomp-games meta-equilibrium 1"


@dataclasses.dataclass(frozen=True)
class MetaEquilibrium:
    """An approximate equilibrium, measured by best responses.

    value: player 0's meta-game utility, penalties included. utility: its base-game utility.
    nash_conv: what both players together could gain by deviating.
    sizes: expected number of memorised information states of each player.
    strategies: the averages, players 0 and 1. iterations: done in all, checkpoints included.
    history: (iterations, nash_conv) each time it was measured.
    """

    value: float
    utility: float
    nash_conv: float
    sizes: tuple[float, float]
    strategies: tuple[MetaStrategy, MetaStrategy]
    iterations: int
    history: tuple[tuple[int, float], ...]


def meta_equilibrium(
    tree: HistoryTree,
    *,
    variant: str = "cfr+",
    iterations: int = 1000,
    target_nash_conv: float | None = None,
    check_every: int = 50,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> MetaEquilibrium:
    """Computes an equilibrium of the meta-game of a tree.

    Args:
      tree: expanded with stop_value="backup". An infinite penalty: that player never memorises.
      variant: one of `VARIANTS`.
      iterations: stop after so many in all.
      target_nash_conv: stop at this NashConv already.
      check_every: iterations between measurements of NashConv.
      checkpoint: a file to go on from where it exists, written at each measurement.
      progress: called with (iterations, NashConv) at each measurement.

    Raises:
      ValueError: an argument is not as above, or the checkpoint is another tree's or variant's.
    """
    caller = "meta_equilibrium()"
    try:
        passes = TreePasses(tree)
    except ValueError as error:
        raise ValueError(f"{caller}: {error}") from None
    if variant not in VARIANTS:
        raise ValueError(f"{caller}: expected variant to be one of {', '.join(VARIANTS)}, got {variant!r}")
    for name, number in (("iterations", iterations), ("check_every", check_every)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{caller}: expected {name} to be a positive integer, got {number!r}")
    if target_nash_conv is not None and not 0.0 <= target_nash_conv < math.inf:
        raise ValueError(f"{caller}: expected target_nash_conv >= 0, got {target_nash_conv!r}")

    solver = _Solver(passes, variant)
    if checkpoint is not None and os.path.exists(checkpoint):
        solver.load(checkpoint)
    history: list[tuple[int, float]] = []
    while True:
        wanted = min(check_every - solver.iterations % check_every, iterations - solver.iterations)
        solver.run(max(0, wanted))
        averages = solver.averages()
        found = measure(passes, (averages, averages))
        history.append((solver.iterations, found.nash_conv))
        if checkpoint is not None:
            solver.save(checkpoint)
        if progress is not None:
            progress(solver.iterations, found.nash_conv)
        reached = target_nash_conv is not None and found.nash_conv <= target_nash_conv
        if reached or solver.iterations >= iterations:
            return solver.result(found, tuple(history))


class _Solver:
    """Regrets and averages of a run.

    regret, last: float64[m, 2], of memorising and of stopping; `last` of the last update alone.
    current: float64[m], the current strategies of both players.
    plan_sum, reach_sum: float64[m], weighted sums over iterations of x(I) and of x(previous I).
    """

    ARRAYS = ("regret", "last", "current", "plan_sum", "reach_sum")

    def __init__(self, passes: TreePasses, variant: str) -> None:
        self.passes = passes
        self.variant = variant
        self.iterations = 0
        tree = passes.tree
        m = tree.num_infosets
        self.regret, self.last = np.zeros((m, 2)), np.zeros((m, 2))
        self.plan_sum, self.reach_sum = np.zeros(m), np.zeros(m)
        self.playing = np.isfinite(np.array(tree.penalties))
        self.current = np.where(self.playing[tree.infoset_player], 0.5, 0.0)

    def run(self, count: int) -> None:
        """Does so many iterations."""
        kind = VARIANTS.index(self.variant)
        for _ in range(count):
            self.iterations += 1
            for player, view in enumerate(self.passes.players):
                if self.playing[player]:
                    rival = self.passes.contribution(1 - player, self.current)
                    stop, after = self.passes.collect(player, rival)
                    self._update(player, kind, view, stop, after)

    def _update(self, player: int, kind: int, view: PlayerView, stop: np.ndarray, after: np.ndarray) -> None:
        _update(
            self.passes.tree.infoset_player, view.previous, player, view.penalty, stop, after, kind,
            float(self.iterations), self.current, self.regret, self.last, self.plan_sum, self.reach_sum,
        )  # fmt: skip

    def averages(self) -> np.ndarray:
        """The average strategies of both players; one half where neither ever came."""
        half = np.where(self.playing[self.passes.tree.infoset_player], 0.5, 0.0)
        return np.divide(self.plan_sum, self.reach_sum, out=half, where=self.reach_sum > 0.0)

    def result(self, found: MetaExploitability, history: tuple[tuple[int, float], ...]) -> MetaEquilibrium:
        """The averages as a `MetaEquilibrium`."""
        tree, averages = self.passes.tree, self.averages()
        return MetaEquilibrium(
            value=found.value,
            utility=found.utility,
            nash_conv=found.nash_conv,
            sizes=found.sizes,
            strategies=(MetaStrategy(tree, 0, averages), MetaStrategy(tree, 1, averages)),
            iterations=self.iterations,
            history=history,
        )

    # -- checkpoints -------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        tree = self.passes.tree
        return {
            "format": _FORMAT,
            "variant": self.variant,
            "tree": tree.fingerprint,
            "penalties": [repr(penalty) for penalty in tree.penalties],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, whole or not at all."""
        header = self._header() | {"iterations": self.iterations}
        write_archive(path, header, {name: getattr(self, name) for name in self.ARRAYS})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint.

        Raises:
          ValueError: it is none, or of another tree, other penalties or another variant.
        """
        expected = self._header()
        try:
            header, arrays = read_archive(path, self.ARRAYS)
            iterations = int(header.pop("iterations"))
            for name, array in arrays.items():
                own = getattr(self, name)
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
        for name, array in arrays.items():
            setattr(self, name, array)


@numba.njit(cache=True)
def _update(
    infoset_player: np.ndarray,
    previous: np.ndarray,
    player: int,
    penalty: float,
    stop: np.ndarray,
    after: np.ndarray,
    kind: int,
    t: float,
    current: np.ndarray,
    regret: np.ndarray,
    last: np.ndarray,
    plan_sum: np.ndarray,
    reach_sum: np.ndarray,
) -> None:
    """One player's update in iteration t; `kind` indexes `VARIANTS`."""
    m = len(stop)
    weight = 1.0 if kind == 0 else (t if kind == 1 else t * t)
    plan = np.zeros(m)
    for k in range(m):
        if infoset_player[k] == player:
            reach = plan[previous[k]] if previous[k] >= 0 else 1.0
            plan[k] = reach * current[k]
            plan_sum[k] += weight * plan[k]
            reach_sum[k] += weight * reach
    worth = after.copy()
    for k in range(m - 1, -1, -1):
        if infoset_player[k] != player:
            continue
        memorise = worth[k + 1] - penalty
        mean = current[k] * memorise + (1.0 - current[k]) * stop[k]
        worth[previous[k] + 1] += mean
        preference = np.zeros(2)
        for action in range(2):
            gain = (memorise if action == 0 else stop[k]) - mean
            r = regret[k, action] + gain
            if kind == 1 or kind == 3:
                r = max(r, 0.0)
            elif kind == 2:
                r *= t**1.5 / (t**1.5 + 1.0) if r > 0.0 else 0.5
            regret[k, action] = r
            last[k, action] = gain
            preference[action] = max(r + gain if kind == 3 else r, 0.0)
        total = preference[0] + preference[1]
        current[k] = preference[0] / total if total > 0.0 else 0.5
