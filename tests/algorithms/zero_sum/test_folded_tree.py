"""Folded trees and the passes over them, against plain passes over the history tree."""

import math

import numpy as np
import pyspiel

from benchmarks.synthetic_trees import paired_tree
from precomp_games.algorithms import MetaStrategy
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.zero_sum.folded_tree import DecisionTree
from precomp_games.algorithms.zero_sum.regret_minimization import (
    CFR_VARIANTS,
    RegretState,
    iterate,
    update_rule,
)
from tests.oracles.games import expand, random_menu, random_policy
from tests.oracles.meta_games import meta_cases


def _start(tree):
    """Return the strategies that both players start from: all actions alike."""
    alike = 1.0 / (1.0 + np.diff(tree.first_entry)[tree.entry_infoset])
    return np.where(np.isfinite(tree.penalties)[tree.entry_player], alike, 0.0)


def _plain(tree, variant, iterations):
    """Return (current, plans) after so many iterations, history by history and in the tree's own order."""
    current = _start(tree)
    regret = [np.zeros(1 + count) for count in np.diff(tree.first_entry)]
    plans = np.zeros(tree.num_entries)
    for t in range(1, iterations + 1):
        rule = update_rule(variant, t)
        for i, penalty in enumerate(tree.penalties):
            if math.isinf(penalty):
                continue
            found = Decisions.against(tree, i, MetaStrategy(tree, 1 - i, current))
            stop, after = found.stop, found.after
            plans += rule.weight * MetaStrategy(tree, i, current).realization_plan()
            for k in np.flatnonzero(tree.infoset_player == i)[::-1]:
                menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
                worth = np.append(after[1:][menu] - tree.infoset_penalty[k], stop[k])
                mix = np.append(current[menu], 1.0 - current[menu].sum())
                after[tree.previous[k] + 1] += mix @ worth
                gain = worth - mix @ worth
                r = np.maximum(regret[k] + gain, rule.floor)
                regret[k] = r * np.where(r > 0.0, rule.positive, rule.negative)
                wish = np.maximum(regret[k] + rule.predict * gain, 0.0)
                current[menu] = wish[:-1] / wish.sum() if wish.sum() > 0.0 else 1.0 / len(wish)
    return current, plans


def _folded(tree, variant, iterations):
    """Return the same, from the folded tree."""
    decisions = DecisionTree.of(tree)
    state = RegretState.start(decisions, _start(tree)[decisions.tree_entry])
    rules = [update_rule(variant, t) for t in range(1, iterations + 1)]
    iterate(decisions, state, rules[:2])
    iterate(decisions, state, rules[2:])
    assert not state.worth[1:].any() and not state.after[1:].any() and not state.shared.any()
    current, plans = np.empty(tree.num_entries), np.empty(tree.num_entries)
    current[decisions.tree_entry], plans[decisions.tree_entry] = state.current, state.plan_sum
    return current, plans


def _never(tree, player):
    """Return a tree on which a player memorizes nothing any more."""
    return tree.with_penalties([math.inf if i == player else p for i, p in enumerate(tree.penalties)])


def test_the_same_iterates(cases):
    trees = [case.tree for case in meta_cases(cases(80))]
    trees += [_never(tree, k % 2) for k, tree in enumerate(trees[::5])]
    for k, tree in enumerate(trees):
        for variant in (CFR_VARIANTS[k % 5], CFR_VARIANTS[(k + 2) % 5]):
            plain = _plain(tree, variant, 12)
            current, plans = _folded(tree, variant, 12)
            np.testing.assert_allclose(current, plain[0], atol=1e-7)  # a ratio of regrets, maybe tiny
            np.testing.assert_allclose(plans, plain[1], atol=1e-7)


def test_a_larger_tree():
    leduc = (random_menu(1, 2, "infoset"), random_menu(2, 3, "infoset")), random_policy(3, "full", "infoset")
    for tree in (expand(pyspiel.load_game("leduc_poker"), *leduc, (0.01, 0.02)), paired_tree(2e-3)):
        for expected, found in zip(_plain(tree, "pdcfr+", 6), _folded(tree, "pdcfr+", 6), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-7)
