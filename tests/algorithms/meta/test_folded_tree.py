"""Folded trees and the passes over them, against plain passes over the history tree."""

import concurrent.futures
import math

import numpy as np
import pyspiel
import pytest

from benchmarks.synthetic_trees import paired_tree
from precomp_games import HistoryTree
from precomp_games.algorithms import MetaStrategy, meta_equilibrium
from precomp_games.algorithms.meta.equilibrium import CFR_VARIANTS, update_rule
from precomp_games.algorithms.meta.folded_tree import ALONE, DecisionTree
from precomp_games.algorithms.meta.regret_kernel import RegretState, Work, iterate
from precomp_games.algorithms.preparation.decisions import Decisions
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

_CASES = [
    (kind, seed, support)
    for kind in ("tree", "efg", "kuhn_poker")
    for seed in range(4)
    for support in ("full", "partial", "pure")
] + [("leduc_poker", 0, "full"), ("uneven", 0, "full")]


def _tree(kind, seed, support, penalties=(0.01, 0.02)):
    if kind == "tree":
        game, by = random_tree(seed, depth=6, actions=2, chance=0.2), "history"
    elif kind == "efg":
        game, by = random_efg(seed, depth=6), "infoset"
    elif kind == "uneven":
        game, by = pyspiel.load_efg_game(_UNEVEN), "infoset"
    else:
        game, by = pyspiel.load_game(kind), "infoset"
    pre, sigma = (random_policy(2 * seed + k, support, by) for k in (0, 1))
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)


# Player 0 cannot tell whether player 1 has moved: histories of different lengths in one information state.
_UNEVEN = """EFG 2 R "uneven" { "0" "1" }
c "" 1 "" { "x" 0.4 "y" 0.6 } 0
p "" 2 1 "" { "l" "r" } 0
p "" 1 1 "" { "a" "b" } 0
p "" 1 2 "" { "c" "d" } 0
t "" 1 "" { 0.1 -0.1 }
t "" 2 "" { 0.9 -0.9 }
t "" 3 "" { -0.4 0.4 }
t "" 4 "" { 0.3 -0.3 }
p "" 1 1 "" { "a" "b" } 0
p "" 1 2 "" { "c" "d" } 0
t "" 5 "" { 0.7 -0.7 }
t "" 6 "" { -0.9 0.9 }
t "" 7 "" { 0.5 -0.5 }
"""


def _plain(tree, variant, iterations):
    """(current, average) after so many iterations, history by history and in the tree's own order."""
    m = tree.num_infosets
    playing = np.isfinite(tree.penalties)[tree.infoset_player]
    current = np.where(playing, 0.5, 0.0)
    regret, plans, above = np.zeros((m, 2)), np.zeros(m), np.zeros(m)
    for t in range(1, iterations + 1):
        rule = update_rule(variant, t)
        for i, penalty in enumerate(tree.penalties):
            if math.isinf(penalty):
                continue
            found = Decisions.against(tree, i, MetaStrategy(tree, 1 - i, current))
            stop, after = found.stop, found.after
            plan, old = MetaStrategy(tree, i, current).plan(), current.copy()
            for k in range(m - 1, -1, -1):
                if tree.infoset_player[k] != i:
                    continue
                memorize = after[k + 1] - penalty
                mean = old[k] * memorize + (1.0 - old[k]) * stop[k]
                after[tree.previous[k] + 1] += mean
                gain = np.array([memorize, stop[k]]) - mean
                r = np.maximum(regret[k] + gain, rule.floor)
                regret[k] = r * np.where(r > 0.0, rule.positive, rule.negative)
                wish = np.maximum(regret[k] + rule.predict * gain, 0.0)
                current[k] = wish[0] / wish.sum() if wish.sum() > 0.0 else 0.5
                plans[k] += rule.weight * plan[k]
                above[k] += rule.weight * (plan[tree.previous[k]] if tree.previous[k] >= 0 else 1.0)
    average = np.divide(plans, above, out=np.where(playing, 0.5, 0.0), where=above > 0.0)
    return current, average


def _folded(tree, variant, iterations, shard=None, threads=None):
    decisions = DecisionTree.of(tree, shard)
    work = Work.of(decisions)
    start = np.where(np.isfinite(tree.penalties)[tree.infoset_player], 0.5, 0.0)
    state = RegretState.start(start[decisions.tree_infoset])
    rules = [update_rule(variant, t) for t in range(1, iterations + 1)]
    iterate(decisions, state, work, rules[:2], threads)
    iterate(decisions, state, work, rules[2:], threads)
    assert not work.worth[1:].any() and not work.after[1:].any() and not work.shared.any()
    current, plans = np.empty(len(start)), np.empty(len(start))
    current[decisions.tree_infoset], plans[decisions.tree_infoset] = state.current, state.plan_sum
    return current, plans


@pytest.mark.parametrize(("kind", "seed", "support"), _CASES)
def test_the_same_iterates(kind, seed, support):
    tree = _tree(kind, seed, support)
    for variant in CFR_VARIANTS:
        current, average = _plain(tree, variant, 12)
        for shard in (None, 1, 4):
            found, _ = _folded(tree, variant, 12, shard)
            np.testing.assert_allclose(found, current, atol=1e-7)  # a ratio of regrets, both maybe tiny
        solved = meta_equilibrium(tree, variant=variant, iterations=12)
        for i in (0, 1):
            own = tree.infoset_player == i
            plans = [s.plan()[own] for s in (solved.strategies[i], MetaStrategy(tree, i, average))]
            np.testing.assert_allclose(*plans, atol=1e-9)


@pytest.mark.parametrize("penalties", [(0.01, math.inf), (math.inf, 0.01), (math.inf, math.inf)])
def test_a_player_who_never_memorizes(penalties):
    wide = _tree("tree", 1, "full", (0.01, 0.01))
    for tree in (wide.with_penalties(penalties), _tree("tree", 1, "full", penalties)):
        current, _ = _plain(tree, "cfr+", 10)
        found, _ = _folded(tree, "cfr+", 10)
        np.testing.assert_allclose(found, current, atol=1e-12)
        assert not found[tree.infoset_player == int(penalties[1] == math.inf)].any()


@pytest.mark.parametrize("shard", [None, 1, 7, 100, 1000])
def test_structure(shard):
    tree = paired_tree(2e-3)
    folded = DecisionTree.of(tree, shard)
    count = len(folded.parent)
    assert count == 1 + np.count_nonzero(tree.infoset >= 0)
    assert (folded.parent[1:] < np.arange(1, count)).all()
    assert folded.runs[0, 0] == 1 and folded.runs[-1, 1] == count
    assert (folded.runs[1:, 0] == folded.runs[:-1, 1]).all()
    assert (folded.status == ALONE).all()
    assert sorted(folded.tree_infoset) == list(range(tree.num_infosets))
    mover = np.append(0, tree.infoset_player[folded.tree_infoset[folded.infoset[1:]]])
    group = np.zeros(count, int)
    for k in range(len(folded.shards) - 1):
        for first, end, before, moves, enters in folded.runs[folded.shards[k] : folded.shards[k + 1]]:
            group[first:end] = k
            assert (mover[first:end] == moves).all()
            assert (mover[folded.parent[first:end]] == before).all()
            inside = group[folded.parent[first:end]] == k
            assert not inside.any() if enters else inside.all()
    assert len(folded.shards) == len(set(group.tolist()) | {0}) + 1
    if shard is not None:
        assert np.bincount(group)[1:].max() < 2 * shard or shard == 1


def test_threads_change_nothing():
    tree = paired_tree(2e-3)
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        for shard in (50, 500):
            alone, shared = (_folded(tree, "cfr+", 20, shard, threads) for threads in (None, two))
            for one, other in zip(alone, shared, strict=True):
                assert one.tobytes() == other.tobytes()
    solved = [meta_equilibrium(tree, iterations=20, threads=k) for k in (1, 2)]
    assert solved[0].nash_conv == solved[1].nash_conv


def test_a_tree_without_decisions():
    tree = _tree("tree", 1, "full", (3.5, 3.5))
    assert tree.num_infosets == 0
    found = meta_equilibrium(tree, iterations=3)
    assert found.nash_conv == 0.0
    game = random_tree(1, depth=6, actions=2, chance=0.2)
    both = (random_policy(3, "full", "history"),) * 2
    assert found.value == pytest.approx(
        reference.expected_utility(game, (frozenset(), frozenset()), both, both)
    )
