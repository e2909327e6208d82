"""Penalties: larger ones on a tree that is there, and those that are refused."""

import math

import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation
from tests.oracles.games import expand, policy_pairs, random_tree


def test_larger_penalties():
    game = random_tree(3, depth=6)
    pre, sigma = policy_pairs(3)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.01, 0.02))
    for penalties in ((0.01, 0.02), (0.05, 0.02), (0.05, 0.5), (math.inf, 0.02), 1.0, math.inf):
        larger = tree.with_penalties(penalties)
        wanted = penalties if isinstance(penalties, tuple) else (penalties, penalties)
        assert larger.penalties == wanted
        assert larger.parent is tree.parent
        assert larger.policies == tree.policies
        larger.check()
        fresh = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
        for player in (0, 1):
            one, two = best_precomputation(larger, player), best_precomputation(fresh, player)
            assert one.value == pytest.approx(two.value, abs=1e-12)
            assert [s.actions for s in one.states()] == [s.actions for s in two.states()]
    assert tree.penalties == (0.01, 0.02)


@pytest.mark.parametrize("penalties", [0.01, (0.02, 0.019), (0.005, math.inf), 1e-300])
def test_smaller_penalties_are_refused(penalties):
    tree = expand(random_tree(3), *policy_pairs(3), 0.02)
    words = r"^HistoryTree.with_penalties\(\): expected penalties of at least \(0.02, 0.02\), .*, got \("
    with pytest.raises(ValueError, match=words):
        tree.with_penalties(penalties)
