"""`meta_equilibrium` beside OpenSpiel's CFR+, LiteEFG's CFR+, the memory's own speed, and one linear program.

- OpenSpiel's C++ CFRPlusSolver runs on the tree's .efg export, LiteEFG's C++ CFR+ on a file in its own
  format; both are games that hold each history once for each pair of stop times. Compared are iterations.
  That they lead to the same is tested elsewhere for OpenSpiel (tests/algorithms/zero_sum/test_equilibrium.py)
  and printed here for LiteEFG.
- An iteration over 2.8 million histories is compared with copying every array that it reads or writes, warm,
  and with less than that: without the buffers of its own.
- The double oracle is compared with iterations of CFR+ on trees of that size, folding and measuring included,
  and with the program of the whole tree on base games of which every action may be memorized. These are
  processor times, since the machine may have other work.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from benchmarks.liteefg import NOT_MEASURED, Node, cfr_plus
from benchmarks.measure import Row, side_by_side
from benchmarks.synthetic_trees import paired_tree
from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, make_policy, to_efg
from precomp_games.algorithms import meta_equilibrium
from precomp_games.algorithms.zero_sum import regret_minimization
from precomp_games.algorithms.zero_sum.folded_tree import DecisionTree
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.meta_game.rules import MetaPosition, MetaRules
from precomp_games.tree.facts import CHANCE, TERMINAL

__all__ = ["rows"]

_FASTER = 1000.0
_COPIES = 2.0
_NASH_CONV = 1.2e-3
_EXACT, _ITERATIONS, _SEEDS = 1e-12, 400, 5
_BESIDE_PROGRAM = 1.5
_BASE_GAMES = ("kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)", "liars_dice(dice_sides=4)")
_PENALTIES = (1e-6, 1e-4, 1e-2, 1.0)


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure on trees of about 19,000, 1,500 and 2.8 million histories, times `scale`."""
    return [
        *_beside_openspiel(paired_tree(min(0.02, 1.37e-3 / scale)), turns, say),
        *_beside_liteefg(paired_tree(min(0.02, 1.4e-2 / scale)), turns, say),
        *_at_scale(paired_tree(min(0.02, 1.17e-5 / scale)), turns, say),
        *_exact(min(0.02, 1.17e-5 / scale), say),
        *_beside_one_program(turns, say),
    ]


class _Ours:
    """Iterations of CFR+, one after another, as `meta_equilibrium` does them."""

    def __init__(self, tree: HistoryTree) -> None:
        self.tree = tree
        self.decisions = DecisionTree.of(tree)
        self.state = regret_minimization.RegretState.start(self.decisions, np.full(tree.num_infosets, 0.5))
        self.done = 0

    def iterate(self, count: int) -> None:
        rules = [regret_minimization.update_rule("cfr+", self.done + 1 + k) for k in range(count)]
        regret_minimization.iterate(self.decisions, self.state, rules)
        self.done += count


def _beside_openspiel(tree: HistoryTree, turns: int, say: Callable[[str], None]) -> list[Row]:
    say(f"exporting a tree of {tree.num_histories} histories to OpenSpiel")
    text = to_efg(MetaPrecomputationGame(tree, "reweighted"))
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
    say(f"writing a tree of {tree.num_histories} histories for LiteEFG")
    rules = MetaPrecomputationGame(tree, "reweighted").rules
    theirs = cfr_plus(rules.start(), functools.partial(_node, rules))
    if theirs is None:
        return [Row(f"{name} / ours", NOT_MEASURED, f">= {_FASTER:.0f} x")]
    ours = _Ours(tree)
    ours.iterate(1)
    many = max(1, round(2_000_000 / tree.num_histories))
    times = side_by_side(5 * turns, liteefg=theirs.iterate, ours=lambda: ours.iterate(many))
    value, same = theirs.value() + tree.utility_sum / 2.0, meta_equilibrium(tree)
    ratio = times.least("liteefg") / (times.least("ours") / many)
    faster = f"{name} ({theirs.nodes} nodes) / ours"
    return [
        Row(faster, f"{ratio:.0f} x", f">= {_FASTER:.0f} x", ratio >= _FASTER),
        Row(
            f"{name}: value after {5 * turns}, and ours to {same.nash_conv:.0e}",
            f"{value:.6f}, {same.value:.6f}",
        ),
    ]


def _node(rules: MetaRules, at: MetaPosition) -> Node:
    player = rules.player(at)
    if player == TERMINAL:
        return Node(TERMINAL, payoff=rules.returns(at))
    if player == CHANCE:
        outcomes = rules.outcomes(at)
        return Node(CHANCE, [rules.step(at, action) for action, _ in outcomes], odds=[p for _, p in outcomes])
    return Node(player, [rules.step(at, action) for action in (0, 1)], rules.infoset(at))


def _at_scale(tree: HistoryTree, turns: int, say: Callable[[str], None]) -> list[Row]:
    ours = _Ours(tree)
    arrays = (*ours.decisions, *ours.state)
    size = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    decisions = len(ours.decisions.parent)
    say(f"{tree.num_histories} histories, {decisions} decisions, {size / 2**20:.0f} MiB of arrays")
    # The last two of the tree's are no arrays of decisions.
    inputs, state = list[Any](ours.decisions[:-2]), list[Any](ours.state)
    everything, needed = _copier([*inputs, *state]), _copier([*inputs, *state[:4]])  # less its own buffers
    of_tree = _copier(
        [tree.parent, tree.player, tree.infoset, tree.num_children, tree.sigma, tree.sigma_pre, tree.value]
    )
    ours.iterate(2)
    times = side_by_side(
        2 * turns, iteration=lambda: ours.iterate(1), copy=everything, copy_needed=needed, copy_tree=of_tree
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
    ]
    for variant in regret_minimization.CFR_VARIANTS:
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


def _exact(penalty: float, say: Callable[[str], None]) -> list[Row]:
    """Measure the double oracle on five trees, beside iterations of CFR+."""
    gaps, ratios, histories = [], [], []
    for seed in range(_SEEDS):
        tree = paired_tree(penalty, seed)
        meta_equilibrium(tree, iterations=1)  # what a tree keeps of itself, and numba
        oracle, found = _processor_time(meta_equilibrium, tree)
        cfr, _ = _processor_time(meta_equilibrium, tree, iterations=_ITERATIONS, check_every=_ITERATIONS)
        say(
            f"{tree.num_histories} histories: NashConv {found.nash_conv:.1e} in {oracle:.1f} s, "
            f"{found.iterations} programs; {_ITERATIONS} iterations of CFR+ in {cfr:.1f} s"
        )
        gaps.append(found.nash_conv)
        ratios.append(oracle / cfr)
        histories.append(tree.num_histories)
    name = f"double oracle, {min(histories)} to {max(histories)} histories, {_SEEDS} seeds"
    return [
        Row(f"{name}: NashConv at most", f"{max(gaps):.1e}", f"<= {_EXACT:g}", max(gaps) <= _EXACT),
        Row(
            f"{name}: time / {_ITERATIONS} iterations of CFR+",
            f"{np.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})",
            "<= 1 x",
            max(ratios) <= 1.0,
        ),
    ]


def _beside_one_program(turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure the double oracle and the whole tree's program, in turns."""
    result = []
    for name in _BASE_GAMES:
        game = pyspiel.load_game(name)
        tree = HistoryTree.from_game(
            game,
            sigma_pre=Menu.of_actions(),
            sigma=make_policy(game, "uniform"),
            penalties=min(_PENALTIES),
        )
        for solve in (meta_equilibrium, meta_sequence_form_lp):
            solve(tree.with_penalties(max(_PENALTIES)))  # numba, and what a tree keeps of itself
        ratios = []
        for penalty in _PENALTIES:
            dearer = tree.with_penalties(penalty)
            times = [
                [_processor_time(solve, dearer)[0] for solve in (meta_equilibrium, meta_sequence_form_lp)]
                for _ in range(turns)
            ]
            ratios.append(min(ours for ours, _ in times) / min(program for _, program in times))
        say(f"{name}: {', '.join(f'{ratio:.2f}' for ratio in ratios)} at penalties of {_PENALTIES}")
        result.append(
            Row(
                f"double oracle / the whole tree's program, {name}, penalties {_PENALTIES[0]:g} to 1",
                f"{max(ratios):.2f} x at most",
                f"<= {_BESIDE_PROGRAM:g} x",
                max(ratios) <= _BESIDE_PROGRAM,
            )
        )
    return result


def _processor_time(work: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[float, Any]:
    """Return the seconds of processor time that `work` takes, and its result."""
    start = time.process_time()
    result = work(*arguments, **named)
    return time.process_time() - start, result


def _copier(arrays: list[np.ndarray]) -> Callable[[], None]:
    """Copy arrays over existing ones."""
    pairs: list[tuple[Any, Any]] = [(np.zeros_like(array), array) for array in arrays]

    def copy() -> None:
        for to, source in pairs:
            np.copyto(to, source)

    return copy
