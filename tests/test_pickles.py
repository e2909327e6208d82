"""Trees, books and policies in other processes: a real pool of spawned ones."""

import copy
import math
import multiprocessing
import pickle

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import (
    ClockGame,
    ClockPolicy,
    EvaluatedValues,
    ExactValues,
    HistoryTree,
    RolloutValues,
    clock_position_key,
    make_policy,
)
from precomp_games.algorithms import best_precomputation, meta_equilibrium

_SPECS = (
    "uniform",
    "random(seed=3,concentration=0.5)",
    "cfr(iterations=20)",
    "best_response(to=random(seed=1))",
    "noisy(policy=best_response(to=cfr(iterations=5)),epsilon=0.1)",
)
_EFG = """EFG 2 R "coin" { "0" "1" }
c "" 1 "" { "h" 0.5 "t" 0.5 } 0
p "" 1 1 "sees" { "a" "b" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
p "" 1 2 "sees too" { "a" "b" } 0
t "" 3 "" { -1 1 }
t "" 4 "" { 1 -1 }
"""


@pytest.fixture(scope="module")
def pool():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


def _kuhn_tree(sigma_pre="best_response", sigma="uniform"):
    game = pyspiel.load_game("kuhn_poker")
    first, second = (make_policy(game, p) if isinstance(p, str) else p for p in (sigma_pre, sigma))
    return HistoryTree.from_game(game, sigma_pre=first, sigma=second, penalties=(0.01, 0.3))


def _last(state):
    """Named, but in a module: it can be pickled."""
    return {state.legal_actions()[-1]: 1.0}


# -- what the other process does ---------------------------------------------------------------------------


def _rows(policy):
    """All rows of a policy of Kuhn poker."""
    rows, waiting = {}, [pyspiel.load_game("kuhn_poker").new_initial_state()]
    while waiting:
        state = waiting.pop()
        if state.current_player() >= 0:
            rows[state.information_state_string()] = policy.action_probabilities(state)
        waiting += [state.child(a) for a in state.legal_actions()]
    return rows


def _solved(tree):
    best = best_precomputation(tree, 0)
    return tree.fingerprint, str(tree.game), best.value, _rows(best.policy())


def _refused(tree):
    try:
        _rows(best_precomputation(tree, 0).policy())
    except ValueError as error:
        return str(error)


def _with_sigma(tree):
    return _rows(best_precomputation(tree, 0).policy(sigma=_last))


def _state_of(tree, history, text=None):
    try:
        return str((tree.with_game(pyspiel.load_efg_game(text)) if text else tree).state(history))
    except ValueError as error:
        return str(error)


# -- trees ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", _SPECS)
def test_trees_of_named_policies(pool, spec):
    tree = _kuhn_tree(sigma=spec)
    assert pool.apply(_solved, (tree,)) == _solved(tree)


@pytest.mark.parametrize("sigma", [_last, openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))])
def test_trees_of_policies_of_ones_own(pool, sigma):
    tree = _kuhn_tree(sigma=sigma)
    assert pool.apply(_solved, (tree,)) == _solved(tree)


def test_what_cannot_be_pickled_is_left_behind_and_missed(pool):
    tree = _kuhn_tree(sigma=lambda state: _last(state))
    message = pool.apply(_refused, (tree,))
    assert message.startswith("PrecomputationPolicy.action_probabilities(): expected a state on the book")
    assert "give policy(sigma=...)" in message and "pickles none that cannot be pickled" in message
    assert (
        pool.apply(_with_sigma, (tree,)) == _with_sigma(tree) == _rows(best_precomputation(tree, 0).policy())
    )


def test_results_and_books(pool):
    tree = _kuhn_tree()
    for policy in (
        best_precomputation(tree, 0).policy(),
        meta_equilibrium(tree, iterations=50).strategies[0].policy(),
    ):
        assert pool.apply(_rows, (policy,)) == _rows(policy)
    best = best_precomputation(_kuhn_tree(sigma=lambda state: _last(state)), 0)
    book = pickle.loads(pickle.dumps(best.policy()))
    for state in best.states():
        on_book = best.tree.state(state.history)
        assert book.action_probabilities(on_book) == best.policy().action_probabilities(on_book)


@pytest.mark.parametrize("spec", _SPECS)
def test_named_policies(pool, spec):
    policy = make_policy(pyspiel.load_game("kuhn_poker"), spec)
    assert pool.apply(_rows, (policy,)) == _rows(policy)


def test_a_game_that_no_string_loads(pool):
    game = pyspiel.load_efg_game(_EFG)
    uniform = openspiel_policy.UniformRandomPolicy(game)
    tree = HistoryTree.from_game(game, sigma_pre=_last, sigma=uniform, penalties=0.1)
    message = pool.apply(_state_of, (tree, 1))
    assert message.startswith("HistoryTree.game: expected a game that its string loads, got 'efg_game()'")
    assert "tree.with_game(game)" in message
    assert pool.apply(_state_of, (tree, 1, _EFG)) == str(tree.state(1))


def test_the_game_of_a_tree_from_a_file(tmp_path):
    tree = HistoryTree.from_game(pyspiel.load_efg_game(_EFG), sigma_pre=_last, sigma=_last, penalties=0.1)
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.same_as(tree)
    for use in (
        lambda: loaded.game,
        lambda: loaded.state(1),
        lambda: best_precomputation(loaded, 0).policy(),
    ):
        with pytest.raises(
            ValueError, match=r"got 'efg_game\(\)' .* give the tree its game with tree.with_game"
        ):
            use()
    whole = loaded.with_game(pyspiel.load_efg_game(_EFG))
    assert [str(whole.state(h)) for h in range(5)] == [str(tree.state(h)) for h in range(5)]
    # A game from a file has a string that would load; but what a tree's file names is not opened.
    (tmp_path / "coin.efg").write_text(_EFG)
    named = pyspiel.load_game("efg_game", {"filename": str(tmp_path / "coin.efg")})
    HistoryTree.from_game(named, sigma_pre=_last, sigma=_last, penalties=0.1).save(tmp_path / "named.npz")
    loaded = HistoryTree.load(tmp_path / "named.npz")
    with pytest.raises(ValueError, match="without opening a file, got filename="):
        loaded.state(1)
    assert str(loaded.with_game(named).state(1)) == str(tree.state(1))


@pytest.mark.parametrize(("old", "new"), [("{ 1 -1 }", "{ 0.5 -0.5 }"), ('1 2 "sees too"', '1 1 "sees"')])
def test_the_game_of_another_tree(old, new):
    tree = HistoryTree.from_game(pyspiel.load_efg_game(_EFG), sigma_pre=_last, sigma=_last, penalties=0.1)
    words = r"^HistoryTree.with_game\(\): expected the game "
    with pytest.raises(ValueError, match=words + "that the tree was expanded from, got another 'efg_game"):
        tree.with_game(pyspiel.load_efg_game(_EFG.replace(old, new)))
    with pytest.raises(ValueError, match=words + r"'efg_game\(\)', got 'kuhn_poker"):
        tree.with_game(pyspiel.load_game("kuhn_poker"))


def test_copies_keep_their_policies():
    tree = _kuhn_tree(sigma=lambda state: _last(state))
    for other in (copy.copy(tree), copy.deepcopy(tree)):
        assert other.policies == tree.policies
        assert other.game is tree.game
        assert other.same_as(tree)
    assert copy.deepcopy(tree).sigma is not tree.sigma


def test_leaf_values():
    for values in (ExactValues(), RolloutValues(games=3), EvaluatedValues(math.sqrt)):
        assert pickle.loads(pickle.dumps(values)) == values


def test_clocks():
    game = ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3})
    policy = ClockPolicy(game, make_policy(game.base, "uniform"), 1)
    state, key = game.new_initial_state(), clock_position_key(str)
    again = pickle.loads(pickle.dumps((policy, key)))
    assert again[0].action_probabilities(state) == policy.action_probabilities(state)
    assert again[1](state) == key(state)
