"""Plans: each step is the best extension of the one before, by brute force over all sets."""

import itertools

import numpy as np
import pytest

from precomp_games.algorithms import best_precomputation, precomputation_plan
from tests.algorithms.preparation.test_known import contains, games
from tests.oracles import books
from tests.oracles.games import SUPPORTS, policy_pairs, random_tree
from tests.oracles.preparation import all_sets, names_of, one_sided


def _deep_games(count):
    """As `games`: of five moves, on which nesting loses something more often."""
    for seed in range(26, 26 + count):
        game = random_tree(seed, depth=5, actions=2)
        pre, sigma = policy_pairs(seed, SUPPORTS[seed % 3])
        for player in (0, 1):
            if sets := all_sets(game, player, pre, sigma, 250):
                yield seed, game, player, pre, sigma, sets


def test_each_step_is_the_best_extension(cases):
    lost = 0
    for seed, game, player, pre, sigma, sets in itertools.chain(games(cases(60)), _deep_games(cases(24))):
        tree = one_sided(game, player, pre, sigma, 0.02, truncate="none")
        parents = books.predecessors(game, player)
        own = np.flatnonzero(tree.infoset_player == player)
        keep = own[np.random.default_rng([seed, 9]).random(len(own)) < 0.2] if seed % 4 == 0 else None
        start = frozenset() if keep is None else names_of(tree, player, keep)
        sets = {s: u for s, u in sets.items() if contains(s, start & parents.keys(), parents)}
        known, learned = start, 0
        for step in precomputation_plan(tree, player, (1, 2, 3), keep=keep):
            fitting = {s: u for s, u in sets.items() if contains(s, known, parents)}
            room = step.budget - learned
            expected = max(u for s, u in fitting.items() if len(s - known) <= room)
            names = names_of(tree, player, step.chosen.memorization_set)
            assert step.chosen.utility == pytest.approx(expected, abs=1e-9)
            assert step.chosen.utility == pytest.approx(sets[names], abs=1e-9)
            assert step.learned == len(names - start) <= step.budget
            most = max(u for s, u in sets.items() if len(s - start) <= step.budget)
            assert step.best.utility == pytest.approx(most, abs=1e-9)
            assert step.loss >= -1e-9
            lost += step.loss > 1e-9
            known, learned = known | names, step.learned
    assert lost >= cases(3)


def test_positions_are_planned_as_well():
    game = random_tree(7, depth=5, actions=2, width=3)
    pre, sigma = policy_pairs(7, by="position")
    tree = one_sided(game, 0, pre, sigma, 0.01, truncate="none", position_key=str)
    steps = precomputation_plan(tree, 0, [1, 2, 5], price="positions")
    assert [step.learned for step in steps] == [step.chosen.num_positions for step in steps]
    for before, after in itertools.pairwise(steps):
        assert set(before.chosen.memorization_set) <= set(after.chosen.memorization_set)
        assert after.loss >= -1e-12
    alone = best_precomputation(tree, 0, price="positions", budget=1)
    assert steps[0].chosen.utility == alone.utility


@pytest.mark.parametrize("budgets", [(1, 1), (-1,)])
def test_budgets_grow_from_0(budgets):
    tree = one_sided(random_tree(1), 0, *policy_pairs(1), 0.02)
    with pytest.raises(ValueError, match=r"^precomputation_plan\(\): expected budgets"):
        precomputation_plan(tree, 0, budgets)
