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


def _tree(penalties=(0.001, 0.002), sigma=2, **options):
    return expand(
        random_tree(3, depth=5), random_policy(1), random_policy(sigma), penalties, truncate="none", **options
    )


@pytest.fixture(scope="module")
def tree():
    return _tree()


@pytest.mark.parametrize("probability", [2.0, -1.0])
def test_bad_probabilities(tree, probability):
    with pytest.raises(
        ValueError, match=r"MetaStrategy\(\): expected memorize to be \d+ numbers from 0 to 1"
    ):
        MetaStrategy(tree, 0, np.full(tree.num_infosets, probability))


def test_menus_whose_entries_add_up_to_too_much():
    tree = menu_tree("tree", 7, truncate="none")
    assert tree.has_menus
    with pytest.raises(ValueError, match="add up to at most 1"):
        MetaStrategy(tree, 0, np.ones(tree.num_entries))


def test_sets_of_any_kind(tree):
    best = best_precomputation(tree, 0).memorization_set
    assert len(best) > 1
    for members in (best, best.tolist(), set(best.tolist()), iter(best.tolist()), best[::-1], [*best, *best]):
        strategy = MetaStrategy.of_set(tree, 0, members)
        assert np.flatnonzero(strategy.memorize).tolist() == best.tolist()
        assert strategy.expected_size == len(best)
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
    own = _nothing(tree, 0)
    for same in (_tree(), HistoryTree.load(tmp_path / "tree.npz"), tree.with_penalties((0.5, math.inf))):
        rival = _nothing(same, 1)
        assert best_precomputation(tree, 0, opponent=rival).value == best_precomputation(tree, 0).value
        assert meta_exploitability(tree, (own, rival)).sizes == (0.0, 0.0)
        assert memorized_states(own, rival) == []


def test_states_without_an_opponent_are_those_against_sigma(tree):
    best = best_precomputation(tree, 0)
    strategy = MetaStrategy.of_set(tree, 0, best.memorization_set)
    assert best.size > 1
    assert memorized_states(strategy) == memorized_states(strategy, _nothing(tree, 1))


def test_a_tree_from_a_file_knows_what_is_played_where_one_stops(tree, tmp_path):
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz").with_game(tree.game)
    here, there = _nothing(tree, 0).policy(), _nothing(loaded, 0).policy()
    decisions = [int(tree.infoset_history[k]) for k in np.flatnonzero(tree.infoset_player == 0)]
    assert len(decisions) > 1
    for history in decisions:
        state = tree.state(history)
        assert there.action_probabilities(state) == pytest.approx(here.action_probabilities(state))


def test_a_tree_that_was_cut_elsewhere_is_another_one():
    """The fingerprint does not count penalties, but what they cut."""
    kuhn = pyspiel.load_game("kuhn_poker")
    pre, sigma = random_policy(1, by="infoset"), random_policy(2, by="infoset")
    small, large = (
        HistoryTree.from_game(kuhn, sigma_pre=pre, sigma=sigma, penalties=penalty) for penalty in (0.001, 3.0)
    )
    assert large.num_infosets < small.num_infosets
    with pytest.raises(ValueError, match="another tree"):
        best_precomputation(small, 0, opponent=_nothing(large, 1))
