"""Plans: each step is the best extension of the one before, by brute force over all sets."""

import itertools

import numpy as np
import pytest

from precomp_games.algorithms import best_precomputation, precomputation_plan
from tests import reference
from tests.algorithms.preparation.test_known import _cases, _contains, _names, _tree, _utilities
from tests.random_games import random_policy, random_tree

_BUDGETS = (1, 2, 3)


def _deep_cases():
    """As `_cases`: some games of five moves, on which nesting loses something more often."""
    for seed in range(26, 50):
        game = random_tree(seed, depth=5, actions=2)
        support = ("full", "partial", "pure")[seed % 3]
        pre, sigma = (tuple(random_policy(4 * seed + k + i, support) for i in (0, 1)) for k in (0, 2))
        for player in (0, 1):
            parents = reference.predecessors(game, player)
            if reference.count_prefix_closed_sets(parents) <= 250:
                yield seed, game, player, pre, sigma, parents


def test_each_step_is_the_best_extension():
    compared = lost = 0
    for seed, game, player, pre, sigma, parents in [*_cases(60), *_deep_cases()]:
        tree = _tree(game, player, pre, sigma, 0.02, truncate="none")
        sets = _utilities(game, player, pre, sigma, parents)
        own = np.flatnonzero(tree.infoset_player == player)
        keep = own[np.random.default_rng([seed, 9]).random(len(own)) < 0.2] if seed % 4 == 0 else None
        start = frozenset() if keep is None else _names(tree, player, keep)
        sets = {s: u for s, u in sets.items() if _contains(s, start & parents.keys(), parents)}
        known, learned = start, 0
        for step in precomputation_plan(tree, player, _BUDGETS, keep=keep):
            fitting = {s: u for s, u in sets.items() if _contains(s, known, parents)}
            room = step.budget - learned
            expected = max(u for s, u in fitting.items() if len(s - known) <= room)
            names = _names(tree, player, step.chosen.memorization_set)
            assert step.chosen.utility == pytest.approx(expected, abs=1e-9)
            assert step.chosen.utility == pytest.approx(sets[names], abs=1e-9)
            assert step.learned == len(names - start) <= step.budget
            most = max(u for s, u in sets.items() if len(s - start) <= step.budget)
            assert step.best.utility == pytest.approx(most, abs=1e-9)
            assert step.loss >= -1e-9
            lost += step.loss > 1e-9
            known, learned = known | names, step.learned
        compared += 1
    assert compared >= 40
    assert lost >= 3


def test_positions_are_planned_as_well():
    game = random_tree(7, depth=5, actions=2, width=3)
    pre, sigma = (tuple(random_policy(k + i, "full", "position") for i in (0, 1)) for k in (0, 2))
    tree = _tree(game, 0, pre, sigma, 0.01, truncate="none", position_key=str)
    steps = precomputation_plan(tree, 0, [1, 2, 5], price="positions")
    assert [step.learned for step in steps] == [step.chosen.num_positions for step in steps]
    for before, after in itertools.pairwise(steps):
        assert set(before.chosen.memorization_set) <= set(after.chosen.memorization_set)
        assert after.loss >= -1e-12
    alone = best_precomputation(tree, 0, price="positions", budget=1)
    assert steps[0].chosen.utility == alone.utility


def test_bad_budgets():
    game = next(_cases(3))[1]
    tree = _tree(game, 0, *((p, p) for p in [lambda s: {s.legal_actions()[0]: 1.0}] * 2), 0.02)
    for wrong in ((), (2, 1), (1, 1), (-1,), (0.5,), 3, "10", None):
        with pytest.raises(ValueError, match=r"^precomputation_plan\(\): expected budgets"):
            precomputation_plan(tree, 0, wrong)
