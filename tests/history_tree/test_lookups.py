"""States, indices and names of a history tree, there and back."""

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, make_policy
from tests.oracles.games import last
from tests.oracles.trees import KINDS, PERFECT, tree_of


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_lookups(kind):
    tree = tree_of(kind)
    n = tree.num_histories
    actions = [tree.actions(h) for h in range(n)]
    assert len({tuple(a) for a in actions}) == n
    seen = {}
    for h in range(0, n, max(1, n // 300)):
        assert tree.find(actions[h]) == h
        state = tree.state(h)
        assert state.history() == actions[h]
        assert state.current_player() == tree.player[h]
        if state.is_terminal():
            assert tree.value[h] == state.returns()[0]
            continue
        assert tree.find([*actions[h], 12345]) == tree.find([*actions[h], -7]) == -1
        if tree.num_children[h] == 0:
            assert tree.find([*actions[h], state.legal_actions()[0]]) == -1
        if state.is_chance_node():
            odds = dict(state.chance_outcomes())
            for child in tree.children(h):
                assert tree.sigma[child] == pytest.approx(odds[tree.action[child]])
            assert tree.infoset[h] == -1
            continue
        infoset = int(tree.infoset[h])
        assert tree.infoset_of(state) == infoset
        if infoset >= 0:
            assert tree.infoset_player[infoset] == tree.player[h]
            first = int(tree.infoset_history[infoset])
            assert first <= h
            assert tree.infoset[first] == infoset
            row = tree.memorized_row(infoset)
            assert sum(row.values()) == pytest.approx(1.0)
            assert row == {tree.action[c]: tree.sigma_pre[c] for c in tree.children(h) if tree.sigma_pre[c]}
            seen.setdefault(infoset, []).append(h)
            if tree.infoset_keys is not None:
                assert tree.infoset_keys[infoset] == state.information_state_string()
    assert (tree.infoset_keys is None) == (kind in PERFECT)
    if tree.infoset_keys is None:
        assert all(len(histories) == 1 for histories in seen.values())
        assert (np.diff(tree.infoset[tree.infoset >= 0]) == 1).all()
    # An information state comes after its player's previous one.
    for player in (0, 1):
        own = np.flatnonzero(tree.infoset_player == player)
        assert (np.diff(tree.infoset_history[own]) > 0).all()


def _kuhn_tree(sigma_pre="best_response", sigma="uniform"):
    game = pyspiel.load_game("kuhn_poker")
    named = {"sigma_pre": make_policy(game, sigma_pre), "sigma": make_policy(game, sigma)}
    return HistoryTree.from_game(game, **named, penalties=(0.01, 0.3))


def test_keys_of_information_states():
    tree = _kuhn_tree()
    assert [tree.key(k) for k in range(tree.num_infosets)] == list(tree.infoset_keys)
    game = pyspiel.load_game("tic_tac_toe")
    board = HistoryTree.from_game(game, sigma_pre=last, sigma=last, penalties=0.1)
    assert board.infoset_keys is None
    keys = [board.key(k) for k in range(board.num_infosets)]
    assert keys == [board.state(int(h)).history_str() for h in board.infoset_history]
    assert keys[0] == "" and len(set(keys)) == len(keys)


def test_trees_that_are_the_same():
    tree = _kuhn_tree()
    assert tree.same_as(tree) and tree.same_as(_kuhn_tree()) and tree.same_as(tree.with_penalties(0.4))
    assert not tree.same_as(_kuhn_tree(sigma="random"))  # as many histories, other policies
    assert tree.num_histories == _kuhn_tree(sigma="random").num_histories
    assert not tree.same_as(_kuhn_tree(sigma_pre="cfr(iterations=5)"))


@pytest.mark.parametrize("method", ["state", "actions", "children", "memorized_row", "key"])
def test_histories_and_infosets_that_there_are_none_of(method):
    tree = _kuhn_tree()
    count = tree.num_histories if method in ("state", "actions", "children") else tree.num_infosets
    assert tree.find([0, 0]) == -1  # nobody is dealt a card twice
    for wrong in (-1, count, -count):
        with pytest.raises(ValueError, match=rf"^HistoryTree.\w+\(\): expected .* 0 to {count - 1}, got"):
            getattr(tree, method)(wrong)
    getattr(tree, method)(np.int32(count - 1))
    assert tree.infoset_of(tree.game.new_initial_state()) == -1  # a chance node
