"""Results go to other processes and come back: by pickle, with policies that can be named."""

import dataclasses
import functools
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree, MetaPrecomputationGame, make_policy
from precomp_games.algorithms import (
    EntropyBounds,
    MetaGamePolicy,
    MetaStrategy,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    memory_frontier,
    meta_equilibrium,
    meta_exploitability,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import random_policy


def _policies(kind, game):
    """Return (sigma_pre, sigma); only sigma is kept in results."""
    if kind == "named":
        return make_policy(game, "random(seed=2)"), make_policy(game, "random(seed=1)")
    return random_policy(1, by="infoset"), openspiel_policy.UniformRandomPolicy(game)


def _tree(kind, game_string):
    game = pyspiel.load_game(game_string)
    sigma_pre, sigma = _policies(kind, game)
    return HistoryTree.from_game(game, sigma_pre=sigma_pre, sigma=sigma, penalties=(1e-5, 2e-5))


def _same(one, two):
    """Return whether two results are equal, arrays and trees included."""
    if isinstance(one, HistoryTree):
        return one.fingerprint == two.fingerprint and one.penalties == two.penalties
    if dataclasses.is_dataclass(one):
        return all(_same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(_same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, pyspiel.Game | openspiel_policy.Policy):
        return str(getattr(one, "game", one)) == str(getattr(two, "game", two))
    if isinstance(one, functools.partial):
        return (one.func, one.args, one.keywords) == (two.func, two.args, two.keywords)
    return one == two


def _again(thing):
    return pickle.loads(pickle.dumps(thing))


def _assert_rows_come_back(policy, states):
    assert states
    again = _again(policy)
    for state in states:
        assert again.action_probabilities(state) == policy.action_probabilities(state)


@pytest.mark.parametrize("kind", ["uniform", "named", "without"])
def test_results_come_back_with_their_policies(kind):
    tree = _tree(kind, "kuhn_poker")
    if kind == "without":
        tree = dataclasses.replace(tree, policies=(None, None))
    found, best = meta_equilibrium(tree, iterations=50), best_precomputation(tree, 0)
    for result in (
        found,
        meta_sequence_form_lp(tree),
        meta_exploitability(tree, found.strategies),
        best,
        best_precomputation(tree, 1, budget=2, opponent=found.strategies[0]),
        memory_frontier(tree, 0),
        memory_frontier(tree, 0).at(0.01),
        MetaStrategy.of_set(tree, 0, []),
        next(best.states()),
    ):
        assert _same(result, _again(result)), result
    own = [tree.state(state.history) for state in best.states()]
    _assert_rows_come_back(best.policy(), [state for state in own if state.current_player() == 0])
    for strategy in found.strategies:
        size = len(pickle.dumps(strategy))
        plan = strategy.realization_plan()  # its passes over the tree are not pickled
        assert len(pickle.dumps(strategy)) <= size + 1000
        nodes = np.flatnonzero((tree.infoset >= 0) & (tree.player == strategy.player))
        states = [tree.state(h) for h in nodes if plan[tree.infoset[h]] > 0.0]
        _assert_rows_come_back(strategy.policy(), states)
    policy = MetaGamePolicy(MetaPrecomputationGame(tree), found.strategies)
    _assert_rows_come_back(policy, [policy.game.new_initial_state().child(1).child(0)])
    strategy, rival = found.strategies[0], MetaStrategy.of_set(tree, 1, [])
    again = _again(strategy)
    assert (again.realization_plan() == strategy.realization_plan()).all()
    assert not again.memorize.flags.writeable
    assert meta_exploitability(tree, (again, rival)) == meta_exploitability(tree, (strategy, rival))


def test_entropy_bounds_come_back():
    bounds = EntropyBounds(_tree("uniform", "connect_four(rows=3,columns=3,x_in_row=3)"), 0)
    again = _again(bounds)
    assert _same(bounds.best_bound(0.05), again.best_bound(0.05))
    assert _same(bounds.lines(0.5), again.lines(0.5))


@pytest.mark.parametrize("kind", ["uniform", "named"])
@pytest.mark.parametrize("way", ["rollouts", "evaluations"])
def test_certified_results_come_back(kind, way):
    game = pyspiel.load_game("tic_tac_toe")
    pre, sigma = _policies(kind, game)
    if way == "rollouts":
        found = certified_precomputation(game, pre, sigma, 0.05, 0, epsilon=0.5)
    else:
        found = best_first_precomputation(game, pre, sigma, 0.05, 0, lambda state: 0.0, position_key=str)
    again, start = _again(found), game.new_initial_state()
    assert _same(found, again)
    assert again.policy().action_probabilities(start) == found.policy().action_probabilities(start)
    _assert_rows_come_back(found.policy(), [start])
