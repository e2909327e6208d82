"""The arrays of a history tree: their shapes, their probabilities, and that they are the same each time."""

import numpy as np
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation
from precomp_games.tree.facts import ARRAYS, CHANCE, TERMINAL
from tests.oracles import books
from tests.oracles.games import expand, policy_pairs, random_tree, uniform
from tests.oracles.trees import KINDS, by_board, from_game, tree_of


@pytest.mark.parametrize("kind", KINDS)
def test_structure(kind):
    tree = tree_of(kind)
    tree.check()
    n, m = tree.num_histories, tree.num_infosets
    for name, dtype in ARRAYS.items():
        array = getattr(tree, name)
        assert array.dtype == dtype
        assert array.shape == ((m if name == "infoset_player" else n),) or (
            name == "position" and kind != "positions" and array.shape == (0,)
        )
    assert tree.parent[0] == tree.action[0] == -1
    assert tree.sigma[0] == tree.sigma_pre[0] == 1.0
    assert (tree.parent[1:] < np.arange(1, n)).all()
    seen = [0]
    for h in range(n):
        children = list(tree.children(h))
        seen += children
        assert (tree.parent[children] == h).all()
        assert (np.diff(tree.action[children]) > 0).all()
        assert len(children) == tree.num_children[h]
        if not children:
            assert tree.first_child[h] == -1
            assert np.isfinite(tree.value[h])
            assert tree.infoset[h] == -1
            continue
        mover, memorized = tree.player[h], tree.infoset[h] >= 0
        sums = tree.sigma[children].sum(), tree.sigma_pre[children].sum()
        if mover == CHANCE:
            assert sums == pytest.approx((1.0, 1.0))
            assert (tree.sigma[children] == tree.sigma_pre[children]).all()
        else:
            stops = not (memorized and tree.stop_value == "evaluate")
            assert sums == pytest.approx((float(stops), float(memorized)))
        assert (np.maximum(tree.sigma, tree.sigma_pre)[children] > 0.0).all()
    assert seen == list(range(n))  # children side by side, level after level
    depth = np.array([len(tree.actions(h)) for h in range(n)])
    assert (np.diff(depth) >= 0).all()
    assert tree.work["histories"] == n <= tree.work["expanded"]


@pytest.mark.parametrize("kind", ["random", "pure", "one", "everything", "positions"])
def test_edges_are_the_policies_rows(kind):
    tree = tree_of(kind)
    if kind == "positions":
        pre, sigma = (by_board(1, 2),) * 2, (by_board(2, 3),) * 2
    else:
        seed, support = {"pure": (8, "pure"), "one": (3, "partial")}.get(kind, (3, "full"))
        pre, sigma = policy_pairs(seed, support)
    for h in np.flatnonzero((tree.num_children > 0) & (tree.player >= 0))[:200]:
        state, mover = tree.state(h), tree.player[h]
        rows = {"sigma": sigma[mover](state), "sigma_pre": pre[mover](state) if tree.infoset[h] >= 0 else {}}
        for name, row in rows.items():
            found = {int(tree.action[c]): float(getattr(tree, name)[c]) for c in tree.children(h)}
            assert {a: p for a, p in found.items() if p} == pytest.approx({a: p for a, p in row.items() if p})


def test_roots_where_nobody_moves():
    ended = tree_of("terminal")
    assert ended.num_histories == 1
    assert ended.player.tolist() == [TERMINAL]
    assert ended.value[0] == ended.state(0).returns()[0]
    for player in (0, 1):
        best = best_precomputation(ended, player)
        own = ended.value[0] if player == 0 else 1.0 - ended.value[0]
        assert (best.value, best.size) == (pytest.approx(own), 0)
    chance = tree_of("kuhn")
    assert chance.player[0] == CHANCE
    only = expand(random_tree(3, chance=1.0), *policy_pairs(3), 1e-9)
    assert only.num_infosets == 0
    expected = books.expected_utility(random_tree(3, chance=1.0), (frozenset(),) * 2, None, None)
    assert best_precomputation(only, 0).value == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_arguments_give_the_same_tree(kind):
    one, two = tree_of(kind), KINDS[kind]()
    assert one.fingerprint == two.fingerprint
    assert one.work == two.work
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=name == "value")


def test_fingerprints_tell_trees_apart():
    assert len({tree_of(kind).fingerprint for kind in KINDS}) == len(KINDS)
    tree = tree_of("random")
    assert tree.with_penalties(1.0).fingerprint == tree.fingerprint  # the histories are the same


def test_min_probability_cuts_edges():
    game = random_tree(3)
    rows = {2: {0: 0.6, 1: 0.4 - 1e-3, 2: 1e-3}}

    def policy(state):
        return rows.get(0 if len(state.legal_actions()) < 3 else 2) or uniform(state)

    full = HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01)
    cut = HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01, min_probability=0.01)
    cut.check()
    assert cut.num_histories < full.num_histories
    for h in np.flatnonzero(cut.player >= 0):
        if cut.num_children[h]:
            assert cut.sigma[list(cut.children(h))].sum() == pytest.approx(1.0)
    player = cut.player[cut.parent[1:]]
    assert cut.sigma[1:][player >= 0].min() > 0.3


def test_a_fair_coin_stays_one():
    tree = from_game(min_probability=0.01)
    assert tree.same_as(from_game(min_probability=0.0))
