"""The parts of a strategy of the meta-game, and the trees that it may be used on."""

import math

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    memorized_states,
    meta_exploitability,
)
from tests.oracles.games import expand, random_policy, random_tree
from tests.oracles.meta_games import menu_tree


def _tree(**options):
    policies = random_policy(1), random_policy(2)
    return expand(random_tree(3, depth=5), *policies, (0.001, 0.002), truncate="none", **options)


@pytest.fixture(scope="module")
def tree():
    return _tree()


def test_probabilities_that_are_none(tree):
    for probability in (2.0, -1.0):
        with pytest.raises(
            ValueError, match=r"MetaStrategy\(\): expected memorize to be \d+ numbers from 0 to"
        ):
            MetaStrategy(tree, 0, np.full(tree.num_infosets, probability))
    menus = menu_tree("tree", 7, truncate="none")
    with pytest.raises(ValueError, match="add up to at most 1"):
        MetaStrategy(menus, 0, np.ones(menus.num_entries))


def test_sets_of_any_kind(tree):
    best = best_precomputation(tree, 0).memorization_set
    assert len(best) > 1
    for members in (best, best.tolist(), set(best.tolist()), iter(best.tolist()), best[::-1], [*best, *best]):
        strategy = MetaStrategy.of_set(tree, 0, members)
        assert np.flatnonzero(strategy.memorize).tolist() == best.tolist()
        assert strategy.expected_size == len(best)
    assert memorized_states(strategy) == memorized_states(strategy, _nothing(tree, 1))  # against sigma
    for nothing in ([], (), set(), np.zeros(0)):
        assert MetaStrategy.of_set(tree, 0, nothing).expected_size == 0.0
    with pytest.raises(
        ValueError, match=r"of_set\(\): expected information states of player 0, each with all"
    ):
        MetaStrategy.of_set(tree, 0, best[1:])


def test_the_array_is_the_strategys_own(tree):
    given = np.full(tree.num_infosets, 0.5)
    given[tree.infoset_player == 1] = math.nan  # not player 0's
    strategy = MetaStrategy(tree, 0, given)
    size = strategy.expected_size
    given[:] = 7.0
    assert strategy.expected_size == size > 0.0
    assert not strategy.memorize[tree.infoset_player == 1].any()
    with pytest.raises(ValueError, match="read-only"):
        strategy.memorize[0] = 1.0


def _nothing(tree, player):
    return MetaStrategy.of_set(tree, player, [])


def test_strategies_of_equal_trees_are_taken(tree, tmp_path):
    tree.save(tmp_path / "tree.npz")
    loaded, own = HistoryTree.load(tmp_path / "tree.npz"), _nothing(tree, 0)
    for same in (_tree(), loaded, tree.with_penalties((0.5, math.inf))):
        rival = _nothing(same, 1)
        assert best_precomputation(tree, 0, opponent=rival).value == best_precomputation(tree, 0).value
        assert meta_exploitability(tree, (own, rival)).sizes == (0.0, 0.0)
        assert memorized_states(own, rival) == []
    # A file knows what is played where one stops.
    there = _nothing(loaded.with_game(tree.game), 0).policy()
    for history in tree.infoset_history[tree.infoset_player == 0].tolist():
        state = tree.state(history)
        row = own.policy().action_probabilities(state)
        assert there.action_probabilities(state) == pytest.approx(row)


def test_what_counts_are_the_penalties_of_the_tree_and_not_of_the_strategies(tree):
    dear = tree.with_penalties((0.003, 0.004))
    known = [best_precomputation(dear, player).memorization_set for player in (0, 1)]
    own, others = ([MetaStrategy.of_set(each, i, known[i]) for i in (0, 1)] for each in (tree, dear))
    assert min(map(len, known)) > 0
    assert meta_exploitability(tree, others) == meta_exploitability(tree, own)
    assert meta_exploitability(dear, own) == meta_exploitability(dear, others)


def test_a_tree_that_was_cut_elsewhere_is_another_one():
    """The fingerprint does not count penalties, but what they cut."""
    kuhn, policies = pyspiel.load_game("kuhn_poker"), [random_policy(k, by="infoset") for k in (1, 2)]
    small, large = (expand(kuhn, *policies, penalty) for penalty in (0.001, 3.0))
    assert large.num_infosets < small.num_infosets
    with pytest.raises(ValueError, match="another tree"):
        best_precomputation(small, 0, opponent=_nothing(large, 1))
