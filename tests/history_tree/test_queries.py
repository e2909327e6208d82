"""Queries of policies: a batch a level, each position once."""

import itertools
import math

import numpy as np
import pyspiel
import pytest

from precomp_games.tree.facts import ARRAYS
from tests.oracles.games import expand, policy_pairs, random_policy, random_tree
from tests.oracles.trees import tree_of


class _Counting:
    """A batch policy that keeps what it was asked."""

    def __init__(self, row):
        self.row = row
        self.calls = []

    def action_probabilities_batch(self, states):
        self.calls.append([state.clone() for state in states])
        return [self.row(state) for state in states]


@pytest.mark.parametrize("penalties", [(0.01, 0.02), (0.01, math.inf)])
def test_one_batch_a_level_without_a_key(penalties):
    game = random_tree(3, depth=6)
    pre, sigma = ([_Counting(policy) for policy in pair] for pair in policy_pairs(3))
    tree = expand(game, pre, sigma, penalties, leaf_value=lambda s: 0.0)
    for i, wanted in itertools.product((0, 1), ("pre", "sigma")):
        calls = (pre if wanted == "pre" else sigma)[i].calls
        asked = [tuple(state.history()) for call in calls for state in call]
        decides = tree.infoset >= 0 if wanted == "pre" else tree.num_children > 0
        expected = np.flatnonzero(decides & (tree.player == i))
        assert sorted(asked) == sorted(tuple(tree.actions(h)) for h in expected)  # each once
        assert all(len({len(state.history()) for state in call}) == 1 for call in calls)
        assert len(calls) == len({len(call[0].history()) for call in calls})
    assert tree.work["policy_queries"] == sum(len(c) for p in (*pre, *sigma) for c in p.calls)


def test_each_position_of_a_level_once_with_a_key():
    game = pyspiel.load_game("tic_tac_toe")
    pre, sigma = (_Counting(random_policy(seed, "partial", "position")) for seed in (1, 2))
    tree = expand(game, pre, sigma, (0.01, math.inf), position_key=str, leaf_value=lambda s: 0.0)
    assert tree.num_positions < tree.num_histories
    expected = total = extra = 0
    for policy, wanted in ((pre, tree.infoset >= 0), (sigma, tree.num_children > 0)):
        deciding = np.flatnonzero(wanted & (tree.player >= 0))
        expected += len(set(tree.position[deciding].tolist()))  # in this game, a board determines its level
        rows = [state for call in policy.calls for state in call]
        total += len(rows)
        for level, calls in itertools.groupby(policy.calls, key=lambda c: len(c[0].history())):
            first, *spot_checks = calls
            assert len({str(state) for state in first}) == len(first)
            assert all(len(state.history()) == level for state in first)
            # What the key joined is compared now and then, two states at a time.
            assert all(len(call) == 2 for call in spot_checks)
            extra += 2 * len(spot_checks)
    assert tree.work["policy_queries"] == expected == total - extra
    assert 0 < extra <= 4 * math.log2(tree.num_histories)


def test_equal_positions_have_equal_rows():
    tree = tree_of("positions")
    boards = {}
    for h in range(0, tree.num_histories, 5):
        board = str(tree.state(h))
        assert boards.setdefault(int(tree.position[h]), board) == board
    assert len(set(boards.values())) == len(boards)
    apart = expand(tree.game, *policy_pairs(1, "partial", "position"), tree.penalties)
    for name in set(ARRAYS) - {"position", "value"}:
        assert np.array_equal(getattr(apart, name), getattr(tree, name))
    assert apart.value == pytest.approx(tree.value, abs=1e-12, nan_ok=True)
