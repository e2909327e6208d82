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
    HistoryTree,
    RolloutValues,
    make_policy,
)
from precomp_games.algorithms import best_precomputation, meta_equilibrium
from precomp_games.policies.leaf_values import EvaluatedValues, ExactValues
from tests.oracles.books import states
from tests.oracles.games import last

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


def _kuhn_tree(sigma="uniform"):
    game = pyspiel.load_game("kuhn_poker")
    sigma = make_policy(game, sigma) if isinstance(sigma, str) else sigma
    return HistoryTree.from_game(
        game, sigma_pre=make_policy(game, "best_response"), sigma=sigma, penalties=(0.01, 0.3)
    )


# -- what the other process does ---------------------------------------------------------------------------


def _rows(policy):
    """Return all rows of a policy of Kuhn poker."""
    return {
        state.information_state_string(): policy.action_probabilities(state)
        for state in states(pyspiel.load_game("kuhn_poker"))
        if state.current_player() >= 0
    }


def _solved(tree):
    best = best_precomputation(tree, 0)
    return tree.fingerprint, str(tree.game), best.value, _rows(best.policy())


def _refused(tree):
    try:
        _rows(best_precomputation(tree, 0).policy())
    except ValueError as error:
        return str(error)


def _with_sigma(tree):
    return _rows(best_precomputation(tree, 0).policy(sigma=last))


def _state_of(tree, history, text=None):
    try:
        return str((tree.with_game(pyspiel.load_efg_game(text)) if text else tree).state(history))
    except ValueError as error:
        return str(error)


# -- trees ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sigma", [*_SPECS, last, openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))]
)
def test_trees_and_their_policies(pool, sigma):
    tree = _kuhn_tree(sigma)
    assert pool.apply(_solved, (tree,)) == _solved(tree)
    if isinstance(sigma, str):
        policy = make_policy(tree.game, sigma)
        assert pool.apply(_rows, (policy,)) == _rows(policy)


def test_what_cannot_be_pickled_is_left_behind_and_missed(pool):
    tree = _kuhn_tree(sigma=lambda state: last(state))
    message = pool.apply(_refused, (tree,))
    assert message.startswith("PrecomputationPolicy.action_probabilities(): expected a state on the book")
    assert "give policy(sigma=...)" in message and "files do not have it" in message
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
    best = best_precomputation(_kuhn_tree(sigma=lambda state: last(state)), 0)
    book = pickle.loads(pickle.dumps(best.policy()))
    for state in best.states():
        on_book = best.tree.state(state.history)
        assert book.action_probabilities(on_book) == best.policy().action_probabilities(on_book)


@pytest.fixture
def coin():
    """Return the tree of a game that no string loads."""
    game = pyspiel.load_efg_game(_EFG)
    uniform = openspiel_policy.UniformRandomPolicy(game)
    return HistoryTree.from_game(game, sigma_pre=last, sigma=uniform, penalties=0.1)


def test_a_game_that_no_string_loads(pool, coin):
    message = pool.apply(_state_of, (coin, 1))
    assert message.startswith("HistoryTree.state(): expected a game that its string loads, got 'efg_game()'")
    assert "tree.with_game(game)" in message
    assert pool.apply(_state_of, (coin, 1, _EFG)) == str(coin.state(1))


def test_the_game_of_a_tree_from_a_file(tmp_path, coin):
    coin.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.same_as(coin)
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
    assert [str(whole.state(h)) for h in range(5)] == [str(coin.state(h)) for h in range(5)]
    # A game from a file has a string that would load; but what a tree's file names is not opened.
    (tmp_path / "coin.efg").write_text(_EFG)
    named = pyspiel.load_game("efg_game", {"filename": str(tmp_path / "coin.efg")})
    HistoryTree.from_game(named, sigma_pre=last, sigma=last, penalties=0.1).save(tmp_path / "named.npz")
    loaded = HistoryTree.load(tmp_path / "named.npz")
    with pytest.raises(ValueError, match="filename= names a file, which it may not open"):
        loaded.state(1)
    assert str(loaded.with_game(named).state(1)) == str(coin.state(1))


@pytest.mark.parametrize(("old", "new"), [("{ 1 -1 }", "{ 0.5 -0.5 }"), ('1 2 "sees too"', '1 1 "sees"')])
def test_the_game_of_another_tree(coin, old, new):
    words = r"^HistoryTree.with_game\(\): expected the game "
    with pytest.raises(ValueError, match=words + "that the tree was expanded from, got another 'efg_game"):
        coin.with_game(pyspiel.load_efg_game(_EFG.replace(old, new)))
    with pytest.raises(ValueError, match=words + r"'efg_game\(\)', got 'kuhn_poker"):
        coin.with_game(pyspiel.load_game("kuhn_poker"))


def test_copies_keep_their_policies():
    tree = _kuhn_tree(sigma=lambda state: last(state))
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
    policy = game.policy(make_policy(game.base, "uniform"), 1)
    state, key = game.new_initial_state(), game.position_key(str)
    again = pickle.loads(pickle.dumps((policy, key)))
    assert again[0].action_probabilities(state) == policy.action_probabilities(state)
    assert again[1](state) == key(state)
