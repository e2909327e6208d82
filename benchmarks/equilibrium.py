"""`meta_equilibrium` beside OpenSpiel's CFR+, LiteEFG's CFR+, and the memory's own speed.

- OpenSpiel's C++ CFRPlusSolver runs on the tree's .efg export, LiteEFG's C++ CFR+ on a file in its own
  format; both are games that hold each history once for each pair of stop times. Compared are iterations.
  That they lead to the same is tested elsewhere for OpenSpiel (tests/algorithms/meta/test_iterates.py), and
  printed here for LiteEFG.
- An iteration over 2.8 million histories is compared with copying every array that it reads or writes, warm,
  and with less than that: without the buffers of its own.
"""

from __future__ import annotations

import concurrent.futures
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel

from benchmarks.measure import Row, side_by_side
from benchmarks.synthetic_trees import paired_tree
from precomp_games import HistoryTree, MetaPrecomputationGame, to_efg
from precomp_games.algorithms import meta_equilibrium
from precomp_games.algorithms.meta.equilibrium import CFR_VARIANTS, update_rule
from precomp_games.algorithms.meta.folded_tree import DecisionTree
from precomp_games.algorithms.meta.regret_kernel import RegretState, Work, iterate
from precomp_games.history_tree import CHANCE, TERMINAL

__all__ = ["rows"]

_FASTER = 1000.0
_COPIES = 2.0
_NASH_CONV = 1.2e-3


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measures on trees of about 19,000, 1,500 and 2.8 million histories, times `scale`."""
    return [
        *_beside_openspiel(paired_tree(min(0.02, 1.37e-3 / scale)), turns, say),
        *_beside_liteefg(paired_tree(min(0.02, 1.4e-2 / scale)), turns, say),
        *_at_scale(paired_tree(min(0.02, 1.17e-5 / scale)), turns, say),
    ]


class _Ours:
    """Iterations of CFR+, one after another, as `meta_equilibrium` does them."""

    def __init__(self, tree: HistoryTree) -> None:
        self.tree = tree
        self.decisions = DecisionTree.of(tree)
        self.work = Work.of(self.decisions)
        self.state = RegretState.start(np.full(tree.num_infosets, 0.5))
        self.done = 0

    def iterate(self, count: int, threads: concurrent.futures.Executor | None = None) -> None:
        rules = [update_rule("cfr+", self.done + 1 + k) for k in range(count)]
        iterate(self.decisions, self.state, self.work, rules, self.tree.penalties, threads)
        self.done += count


def _beside_openspiel(tree: HistoryTree, turns: int, say: Callable[[str], None]) -> list[Row]:
    say(f"exporting a tree of {tree.num_histories} histories to OpenSpiel")
    text = to_efg(tree, form="reweighted")
    nodes = text.count("\n") - 3
    solver = pyspiel.CFRPlusSolver(pyspiel.load_efg_game(text))
    del text
    ours = _Ours(tree)
    ours.iterate(1)
    many, done = max(1, round(2_000_000 / tree.num_histories)), []

    def openspiel() -> None:
        solver.evaluate_and_update_policy()
        done.append(1)

    times = side_by_side(min(turns, 5), openspiel=openspiel, ours=lambda: ours.iterate(many))
    ratio = times.least("openspiel") / (times.least("ours") / many)
    return [
        Row(
            f"CFR+, {tree.num_histories} histories: OpenSpiel's iteration ({nodes} nodes) / ours",
            f"{ratio:.0f} x",
            f">= {_FASTER:.0f} x",
            ratio >= _FASTER,
        )
    ]


def _beside_liteefg(tree: HistoryTree, turns: int, say: Callable[[str], None]) -> list[Row]:
    name = f"CFR+, {tree.num_histories} histories: LiteEFG's iteration"
    try:
        import LiteEFG
        from LiteEFG.baselines import CFRplus
    except ImportError:
        return [Row(f"{name} / ours", "not measured: pip install LiteEFG", f">= {_FASTER:.0f} x")]
    say(f"writing a tree of {tree.num_histories} histories for LiteEFG")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "meta.game")
        nodes = _write_liteefg(MetaPrecomputationGame(tree, "reweighted"), file)
        environment = LiteEFG.FileEnv(os.fspath(file))
    graph = CFRplus.graph()
    environment.set_graph(graph)
    ours = _Ours(tree)
    ours.iterate(1)
    many = max(1, round(2_000_000 / tree.num_histories))

    def theirs() -> None:
        graph.update_graph(environment)
        environment.update_strategy(graph.current_strategy())

    times = side_by_side(5 * turns, liteefg=theirs, ours=lambda: ours.iterate(many))
    value = environment.utility(graph.current_strategy(), "linear-avg-iterate")[0] + tree.utility_sum / 2.0
    same = meta_equilibrium(tree, target_nash_conv=1e-6, iterations=10_000)
    ratio = times.least("liteefg") / (times.least("ours") / many)
    return [
        Row(f"{name} ({nodes} nodes) / ours", f"{ratio:.0f} x", f">= {_FASTER:.0f} x", ratio >= _FASTER),
        Row(
            f"{name}: value after {5 * turns}, and ours to {same.nash_conv:.0e}",
            f"{value:.6f}, {same.value:.6f}",
        ),
    ]


def _write_liteefg(game: MetaPrecomputationGame, path: Path) -> int:
    """Writes a meta-game in LiteEFG's format; the number of nodes."""
    rules = game.rules
    members: dict[int, list[int]] = {}
    stack, count = [(0, rules.start())], 1
    with open(path, "w", encoding="ascii") as file:
        file.write("# Opt {\n#     openspiel,\n#     players: 2,\n# }\n")
        while stack:
            number, at = stack.pop()
            player = rules.player(at)
            if player == TERMINAL:
                payoff = rules.returns(at)
                file.write(f"node n{number} leaf payoffs 1={payoff:.17g} 2={-payoff:.17g}\n")
                continue
            if player == CHANCE:
                outcomes = rules.outcomes(at)
                text = " ".join(f"n{count + k}={p:.17g}" for k, (_, p) in enumerate(outcomes))
                file.write(f"node n{number} chance actions {text}\n")
                actions = [action for action, _ in outcomes]
            else:
                members.setdefault(rules.infoset(at), []).append(number)
                file.write(f"node n{number} player {player + 1} actions n{count} n{count + 1}\n")
                actions = [0, 1]
            stack += [(count + k, rules.step(at, action)) for k, action in enumerate(actions)]
            count += len(actions)
        for infoset, nodes in members.items():
            owner = int(game.tree.infoset_player[infoset]) + 1
            file.write(f"infoset pl{owner}_{infoset} nodes {' '.join(f'n{k}' for k in nodes)}\n")
    return count


def _at_scale(tree: HistoryTree, turns: int, say: Callable[[str], None]) -> list[Row]:
    ours = _Ours(tree)
    arrays = (*ours.decisions, *ours.state, *ours.work)
    size = sum(array.nbytes for array in arrays if array is not None)
    decisions = len(ours.decisions.parent)
    say(f"{tree.num_histories} histories, {decisions} decisions, {size / 2**20:.0f} MiB of arrays")
    inputs: list[Any] = list(ours.decisions[:-1])  # the last one is for reading results off
    everything, needed = _copier([*inputs, *ours.state, *ours.work]), _copier([*inputs, *ours.state])
    of_tree = _copier(
        [tree.parent, tree.player, tree.infoset, tree.num_children, tree.sigma, tree.sigma_pre, tree.value]
    )
    ours.iterate(2)
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        times = side_by_side(
            2 * turns,
            iteration=lambda: ours.iterate(1),
            copy=everything,
            copy_needed=needed,
            copy_tree=of_tree,
            two_threads=lambda: ours.iterate(1, two),
        )
    name = f"CFR+, {tree.num_histories} histories: an iteration"
    result = [
        Row(
            f"{name} / copying once all that it reads and writes",
            times.text("iteration", "copy"),
            f"< {_COPIES:.0f} x",
            times.ratio("iteration", "copy") < _COPIES,
        ),
        Row(f"{name} / the same without its own buffers", times.text("iteration", "copy_needed")),
        Row(f"{name} / copying the history tree's arrays", times.text("iteration", "copy_tree")),
        Row(f"{name}: milliseconds here", f"{1e3 * times.least('iteration'):.1f}"),
        Row(f"{name}: one thread / two threads", times.text("iteration", "two_threads")),
    ]
    for variant in CFR_VARIANTS:
        start = time.perf_counter()
        found = meta_equilibrium(tree, variant=variant, iterations=1000, check_every=100)
        curve = ", ".join(f"{gap:.1e} ({t})" for t, gap in found.trace if t in (100, 200, 500, 1000))
        say(f"{variant}: 1000 iterations in {time.perf_counter() - start:.0f} s")
        goal = variant == "cfr+"
        result.append(
            Row(
                f"NashConv of {variant}, {tree.num_histories} histories (iterations)",
                curve,
                f"< {_NASH_CONV:g} (100)" if goal else "",
                found.trace[0][1] < _NASH_CONV if goal else None,
            )
        )
    return result


def _copier(arrays: list[np.ndarray]) -> Callable[[], None]:
    """Copies arrays over others that are there already."""
    pairs: list[tuple[Any, Any]] = [(np.zeros_like(array), array) for array in arrays]

    def copy() -> None:
        for to, source in pairs:
            np.copyto(to, source)

    return copy
