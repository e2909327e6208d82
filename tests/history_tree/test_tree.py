"""A history tree shows the game and the policies that it was made of, in memory and from a file."""

import collections
import itertools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import HistoryTree, make_policy
from precomp_games.algorithms import best_precomputation
from precomp_games.tree.facts import ARRAYS, OPTIONAL
from tests.oracles.books import entries, play_value
from tests.oracles.games import (
    Level,
    expand,
    level_game,
    penalties,
    policy_pairs,
    random_tree,
    setting,
    settings,
    uniform,
)
from tests.oracles.trees import from_game, tree_of
from tests.properties import examples


def _played(row):
    return {action: p for action, p in row.items() if p > 0.0}


def _check(tree, pre, sigma):
    """Hold each history against its state, and each edge against the policies' rows."""
    tree.check()
    states, below, lengths = [], [], []
    for h in range(tree.num_histories):
        path, state = tree.actions(h), tree.state(h)
        states.append(state)
        lengths.append(len(path))
        assert state.history() == path and tree.find(path) == h
        mover, infoset, children = tree.player[h], int(tree.infoset[h]), list(tree.children(h))
        assert mover == state.current_player()
        assert tree.find([*path, 12345]) == tree.find([*path, -7]) == -1
        below += children
        if not children:
            assert infoset == tree.first_child[h] == -1
            if tree.stop_value == "backup":
                assert tree.value[h] == pytest.approx(play_value(state, sigma), abs=1e-9)
            assert state.is_terminal() or tree.find([*path, state.legal_actions()[0]]) == -1
            continue
        rows = [
            {int(tree.action[c]): float(column[c]) for c in children}
            for column in (tree.sigma, tree.sigma_pre)
        ]
        assert list(rows[0]) == sorted(rows[0]) and all(max(row[a] for row in rows) > 0.0 for a in rows[0])
        if state.is_chance_node():
            assert rows[0] == rows[1] == pytest.approx(dict(state.chance_outcomes()))
            assert infoset == tree.infoset_of(state) == -1
            continue
        assert tree.infoset_of(state) == infoset
        stops = infoset < 0 or tree.stop_value == "backup"
        assert _played(rows[0]) == pytest.approx(_played(sigma[mover](state)) if stops else {})
        memorized = entries(pre[mover], state) if infoset >= 0 else []
        assert _played(rows[1]) == pytest.approx(collections.ChainMap(*map(_played, memorized)))
        if infoset >= 0:
            assert tree.infoset_player[infoset] == mover and tree.infoset_history[infoset] <= h
            own = range(tree.first_entry[infoset], tree.first_entry[infoset + 1])
            assert [tree.memorized_row(e) for e in own] == [pytest.approx(_played(row)) for row in memorized]
            named = tree.infoset_keys is not None
            assert tree.key(infoset) == (state.information_state_string() if named else state.history_str())
    assert below == list(range(1, len(states)))  # children side by side, level after level
    assert lengths == sorted(lengths)
    assert tree.work["histories"] == tree.num_histories <= tree.work["expanded"]
    assert list(map(str, tree.infoset_states)) == [str(states[h]) for h in tree.infoset_history]


def _same(tree, other):
    assert tree.same_as(other) and tree.fingerprint == other.fingerprint
    assert tree.work == other.work
    for name, kind in (ARRAYS | OPTIONAL).items():
        assert getattr(other, name).dtype == kind
        assert np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=name == "value")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("trees") / "tree.data"  # no ending is added


def test_a_tree_shows_its_game_and_its_file_shows_the_tree(path):
    seen = collections.Counter()

    @examples(320)
    @given(settings(menus=True), penalties(), st.sampled_from(("reach", "none")), st.booleans())
    @example(setting(random_tree(3), 3, ("menu", "full")), (0.01, 0.01), "none", True)
    @example(setting(level_game(3, [Level(0), Level(1)]), 3), (0.01, 0.01), "none", False)
    def holds(case, costs, truncate, evaluated):
        options = {"truncate": truncate}
        if evaluated:
            costs = costs[0], math.inf
            options |= {"stop_value": "evaluate", "leaf_value": lambda state: 0.5}
        tree = expand(*case, costs, **options)
        _check(tree, *case[1:])
        _same(tree, expand(*case, costs, **options))
        tree.save(path)
        loaded = HistoryTree.load(str(path))
        _same(tree, loaded)
        for name in ("game_string", "penalties", "utility_range", "utility_sum", "infoset_keys"):
            assert getattr(loaded, name) == getattr(tree, name)
        assert loaded.policies == (None, None) and loaded.base_game is None
        seen.update(
            menus=tree.has_menus, evaluated=evaluated and tree.num_infosets > 0, keys=bool(tree.infoset_keys)
        )

    holds()
    assert list(path.parent.iterdir()) == [path]  # which was replaced
    assert min(seen.values()) > 0


@examples(160)
@given(settings(menus=True), penalties(), st.sampled_from((1.0, 2.0, 10.0, math.inf)))
def test_larger_penalties_on_a_tree_that_is_there(case, costs, factor):
    tree = expand(*case, costs)
    larger = (costs[0] * factor, costs[1])
    fresh = expand(*case, larger)
    later = tree.with_penalties(larger)
    later.check()
    assert (later.penalties, later.policies, later.fingerprint) == (larger, tree.policies, tree.fingerprint)
    assert later.parent is tree.parent and tree.penalties == costs
    for player in (0, 1):
        one, two = best_precomputation(later, player), best_precomputation(fresh, player)
        assert one.value == pytest.approx(two.value, abs=1e-12)


def test_smaller_penalties_are_refused():
    tree = expand(random_tree(3), *policy_pairs(3), 0.02)
    words = r"^HistoryTree.with_penalties\(\): expected penalties of at least \(0.02, 0.02\), .*, got \("
    for smaller in (0.01, (0.02, 0.019), (0.005, math.inf), 1e-300):
        with pytest.raises(ValueError, match=words):
            tree.with_penalties(smaller)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_games_in_which_nobody_moves(chance):
    game = random_tree(1, depth=int(3 * chance), chance=chance)
    tree = expand(game, *policy_pairs(1), 0.1)
    assert tree.num_infosets == 0 and (tree.num_histories == 1 or chance)
    for player in (0, 1):
        best = best_precomputation(tree, player)
        expected = play_value(game.new_initial_state(), (), player)
        assert (best.size, best.value) == (0, pytest.approx(expected))


def test_fingerprints_tell_trees_apart():
    kuhn = pyspiel.load_game("kuhn_poker")
    trees = [
        expand(kuhn, make_policy(kuhn, pre), make_policy(kuhn, sigma), (0.01, 0.3))
        for pre, sigma in (("best_response", "uniform"), ("best_response", "random"), ("cfr", "uniform"))
    ]
    assert trees[0].num_histories == trees[1].num_histories
    assert not any(a.same_as(b) for k, a in enumerate(trees) for b in trees[:k])
    assert len({tree.fingerprint for tree in trees}) == 3


def test_min_probability_cuts_edges():
    rows = {2: {0: 0.6, 1: 0.4 - 1e-3, 2: 1e-3}}

    def policy(state):
        return rows.get(0 if len(state.legal_actions()) < 3 else 2) or uniform(state)

    full, cut = (from_game(sigma_pre=policy, sigma=policy, min_probability=p) for p in (1e-12, 0.01))
    cut.check()
    assert cut.num_histories < full.num_histories
    for h in np.flatnonzero((cut.player >= 0) & (cut.num_children > 0)):
        assert cut.sigma[list(cut.children(h))].sum() == pytest.approx(1.0)
    assert cut.sigma[1:][cut.player[cut.parent[1:]] >= 0].min() > 0.3
    assert from_game(min_probability=0.01).same_as(from_game(min_probability=0.0))  # a fair coin stays one


# -- what policies are asked: a batch a level, each position once ------------------------------------


class _Counting:
    """A batch policy that keeps what it was asked."""

    def __init__(self, row):
        self.row = row
        self.calls = []

    def action_probabilities_batch(self, states):
        self.calls.append([state.clone() for state in states])
        return [self.row(state) for state in states]


_BOARD = pyspiel.load_game("tic_tac_toe")


@pytest.mark.parametrize(
    ("game", "by", "penalties", "key"),
    [
        (random_tree(3, depth=6), "history", (0.01, 0.02), None),
        (random_tree(3, depth=6), "history", (0.01, math.inf), None),
        (_BOARD, "position", (0.01, math.inf), str),  # a board determines its level
    ],
)
def test_each_position_of_a_level_is_asked_once_in_one_batch(game, by, penalties, key):
    pre, sigma = ([_Counting(policy) for policy in pair] for pair in policy_pairs(3, "partial", by))
    tree = expand(game, pre, sigma, penalties, position_key=key, leaf_value=lambda s: 0.0)
    name, total, extra = key or (lambda state: state.history_str()), 0, 0
    for i, prepared in itertools.product((0, 1), (True, False)):
        decides = tree.infoset >= 0 if prepared else tree.num_children > 0
        wanted = {name(tree.state(h)) for h in np.flatnonzero(decides & (tree.player == i))}
        asked = []
        calls = (pre if prepared else sigma)[i].calls
        for level, batches in itertools.groupby(calls, key=lambda call: len(call[0].history())):
            whole, *spot_checks = batches
            assert all(len(state.history()) == level for state in whole)
            asked += map(name, whole)
            # What the key joined is compared now and then, two states at a time.
            assert all(len(call) == 2 for call in spot_checks)
            extra += 2 * len(spot_checks)
        assert sorted(asked) == sorted(wanted)
        total += len(asked)
    assert tree.work["policy_queries"] == total
    assert extra <= 4 * math.log2(tree.num_histories) and (extra > 0) == (key is not None)
    assert (tree.num_positions < tree.num_histories) == (key is not None)


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
