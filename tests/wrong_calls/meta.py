"""Calls that work: both sides prepare."""

import functools
import tempfile

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games import MetaPrecomputationGame
from precomp_games.algorithms import (
    MetaGamePolicy,
    MetaStrategy,
    memorized_states,
    meta_equilibrium,
    meta_exploitability,
    meta_game_policy,
    meta_sequence_form_lp,
    strategies_from_policy,
    strategy_from_base_policy,
    strategy_from_mixture,
)
from tests.random_games import random_policy
from tests.wrong_calls import good_call
from tests.wrong_calls.core import kuhn, kuhn_tree
from tests.wrong_calls.preparation import (
    bad_policies,
    best_set,
    evaluated_tree,
    game,
    other_opponents,
    rival,
    tree,
)

_FACE = "precomp_games.algorithms:"


def other_trees():
    """On which the two players have no strategies."""
    return [None, game(), evaluated_tree(), "tree.npz"]


_TREE = {"tree": other_trees}


def halves(player, sigma=2):
    own = tree(sigma).infoset_player == player
    return MetaStrategy(tree(sigma), player, np.where(own, 0.5, 0.0))


def other_profiles():
    """What is no pair of strategies of players 0 and 1 on `tree()`."""
    own, other = (halves(0), halves(1)), (halves(0, 3), halves(1, 3))
    return [own[0], own[::-1], own[:1], (*own, own[0]), other, (own[0], other[1]), (own[0], own[0])]


# -- strategies --------------------------------------------------------------------------------------


@good_call(f"{_FACE}MetaStrategy", more=_TREE)
def _():
    return MetaStrategy, {"tree": tree(), "player": 0, "memorize": halves(0).memorize}


def _sets():
    """No memorization sets of player 0."""
    rivals = np.flatnonzero(tree().infoset_player == 1).tolist()
    return [rivals[:1], best_set()[1:], [0.9, 1.9], [True], [tree().num_infosets], "0", [best_set()]]


@good_call(f"{_FACE}MetaStrategy.of_set", more=_TREE | {"memorization_set": _sets})
def _():
    return MetaStrategy.of_set, {"tree": tree(), "player": 0, "memorization_set": best_set()}


@good_call(f"{_FACE}MetaStrategy.of_plan", more=_TREE)
def _():
    return MetaStrategy.of_plan, {"tree": tree(), "player": 0, "plan": halves(0).plan()}


@good_call(f"{_FACE}memorized_states", more={"opponent": other_opponents})
def _():
    return memorized_states, {"strategy": halves(0), "opponent": rival()}


@good_call(f"{_FACE}MetaStrategy.policy", more={"sigma": [[random_policy(1)] * 3, ("uniform", None)]})
def _():
    return halves(0).policy, {"sigma": (random_policy(1), None)}


# -- solvers -----------------------------------------------------------------------------------------


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory()


def _checkpoint():
    return f"{_folder().name}/run.npz"


@good_call(
    f"{_FACE}meta_equilibrium",
    fine={"checkpoint": ["nonsense", _checkpoint() + "?"], "budgets": ...},
    more=_TREE | {"checkpoint": ["", ".", b"run.npz", "no/such/folder/run.npz", __file__]},
)
def _():
    return meta_equilibrium, {
        "tree": tree(),
        "solver": "regret_minimization",
        "variant": "cfr+",
        "iterations": 1,
        "target_nash_conv": 1.0,
        "check_every": 1,
        "checkpoint": _checkpoint(),
        "threads": 1,
        "progress": lambda *_: None,
    }


@good_call(f"{_FACE}meta_sequence_form_lp", more=_TREE)
def _():
    return meta_sequence_form_lp, {"tree": tree()}


@good_call(f"{_FACE}meta_exploitability", more=_TREE | {"strategies": other_profiles})
def _():
    return meta_exploitability, {"tree": tree(), "strategies": (halves(0), halves(1))}


# -- policies ----------------------------------------------------------------------------------------


@functools.cache
def meta_game():
    return MetaPrecomputationGame(tree())


def other_games():
    """That are no meta-game."""
    return [tree(), game(), pyspiel.load_game("kuhn_poker"), meta_game().new_initial_state()]


@good_call(f"{_FACE}MetaGamePolicy", more={"strategies": other_profiles})
def _():
    return MetaGamePolicy, {"game": meta_game(), "strategies": (halves(0), halves(1))}


@good_call(f"{_FACE}meta_game_policy", more={"strategies": other_profiles})
def _():
    return meta_game_policy, {"game": meta_game(), "strategies": (halves(0), halves(1))}


def other_policies():
    """What answers with no distribution, and another game's tabular policies."""
    leduc = pyspiel.load_game("leduc_poker")
    return [*bad_policies(), policy.TabularPolicy(leduc), pyspiel.TabularPolicy({})]


def _decision():
    """A state of the meta-game at which somebody decides."""
    state = meta_game().new_initial_state()
    while state.is_chance_node():
        state = state.child(state.legal_actions()[0])
    return state


def _no_decisions():
    """Chance's turn, a base game's states, another meta-game's."""
    kuhn = pyspiel.load_game("kuhn_poker").new_initial_state()
    return [
        meta_game().new_initial_state(),
        game().new_initial_state(),
        kuhn,
        kuhn.child(0).child(1),
        pyspiel.load_game("tic_tac_toe").new_initial_state(),
    ]


@good_call(f"{_FACE}MetaGamePolicy.action_probabilities", more={"state": _no_decisions})
def _():
    state = _decision()
    return meta_game_policy(meta_game(), (halves(0), halves(1))).action_probabilities, {
        "state": state,
        "player_id": state.current_player(),
    }


@good_call(
    f"{_FACE}strategies_from_policy",
    more={"policy": other_policies, "played_on": [game(), kuhn(), "meta.efg", tree()]},
)
def _():
    return strategies_from_policy, {
        "game": meta_game(),
        "policy": policy.UniformRandomPolicy(meta_game()),
        "played_on": meta_game(),
    }


@good_call(f"{_FACE}strategy_from_mixture", more=_TREE | {"mixture": lambda: [*_mixtures(), _sets()]})
def _():
    return strategy_from_mixture, {"tree": tree(), "player": 0, "mixture": halves(0).mixture()}


def _mixtures():
    """With other weights, and with what is no set."""
    weights = [[(0.5, [])], [(1.5, []), (-0.5, [])], [(float("nan"), [])], [(True, [])], [("1", [])], [1.0]]
    return [*weights, *([(1.0, members)] for members in _sets()), halves(1).mixture()]


@good_call(
    f"{_FACE}strategy_from_base_policy",
    more=_TREE | {"policy": lambda: [*other_policies(), random_policy(99, by="infoset")]},
)
def _():
    return strategy_from_base_policy, {
        "tree": kuhn_tree(),
        "player": 0,
        "policy": policy.UniformRandomPolicy(kuhn()),
        "tolerance": 1e-6,
    }
