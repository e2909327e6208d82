"""Calls that work: history trees, leaf values, policies, the meta-game, clocks and KJ poker."""

import functools
import itertools
import math
import pathlib
import tempfile

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games import (
    ClockGame,
    ClockPolicy,
    EvaluatedValues,
    HistoryTree,
    KJPokerGame,
    Menu,
    MetaPrecomputationGame,
    MixturePolicy,
    PrecomputationPolicy,
    RolloutValues,
    SearchClock,
    TimedSearch,
    atomic_write,
    cluster_client,
    make_policy,
    map_on_cluster,
    register_policy,
    sample_size,
    to_efg,
    write_efg,
    write_together,
)
from tests.wrong_calls import cluster_address, good_call

_NEW_NAMES = (f"wrong_calls_{k}" for k in itertools.count())


@functools.cache
def kuhn():
    return pyspiel.load_game("kuhn_poker")


@functools.cache
def kuhn_tree():
    uniform = policy.UniformRandomPolicy(kuhn())
    return HistoryTree.from_game(kuhn(), sigma_pre=_last, sigma=uniform, penalties=0.01)


@functools.cache
def clock_game():
    return ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3})


@functools.cache
def folder():
    """A folder that lives as long as the tests."""
    kept = tempfile.TemporaryDirectory()
    _KEPT.append(kept)
    return pathlib.Path(kept.name)


_KEPT: list[tempfile.TemporaryDirectory] = []


def _last(state):
    return {state.legal_actions()[-1]: 1.0}


def _decision(state):
    while state.is_chance_node():
        state = state.child(state.legal_actions()[0])
    return state


def _strange_states():
    """No states of Kuhn poker where a player moves."""
    board = pyspiel.load_game("tic_tac_toe").new_initial_state()
    start = kuhn().new_initial_state()
    return [board, start, start.child(0).child(1).child(0).child(0)]


def _strange_clock_states():
    """No states of `clock_game()` where a player moves."""
    slow = ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 5, "time_1": 5})
    late = clock_game().new_initial_state().child(4)
    assert late.is_terminal()
    return [late, slow.new_initial_state(), clock_game().base.new_initial_state()]


def _strange_policies():
    """No policies of Kuhn poker; one is of another game, and answers for states that it does not know."""
    leduc = policy.TabularPolicy(pyspiel.load_game("leduc_poker"))
    return [leduc, lambda state: None, lambda state: {7: 1.0}, [leduc, leduc]]


# -- history trees -----------------------------------------------------------------------------------------


@good_call(
    "precomp_games:HistoryTree.from_game",
    fine={"penalties": [math.inf, 0.5], "max_memory": [None, math.inf]},
    more={
        "game": lambda: [kuhn().new_initial_state(), pyspiel.load_game("matrix_pd")],
        "sigma_pre": _strange_policies,
        "sigma": _strange_policies,
        "penalties": [0.0, [0.1, math.nan], (0.1, 0.2, 0.3)],
        "weight": [lambda state: -1.0, lambda state: "much", lambda state: math.inf],
        "leaf_value": [lambda state: "much", lambda state: 1e6, lambda state: None, RolloutValues],
        "position_key": [lambda state: [1], lambda state: 0],
        "price": ["positions"],
        "min_probability": [0.9],
        "max_histories": [0, 3],
    },
)
def _():
    return HistoryTree.from_game, {
        "game": kuhn(),
        "sigma_pre": _last,
        "sigma": policy.UniformRandomPolicy(kuhn()),
        "penalties": 1.0,
        "weight": lambda state: 1.0,
        "leaf_value": "exact",
        "truncate": "reach",
        "price": "infosets",
        "stop_value": "backup",
        "position_key": str,
        "utility_range": 4.0,
        "min_probability": 1e-6,
        "max_histories": 1000,
        "max_memory": "10GB",
        "progress": lambda level, histories: None,
    }


@good_call("precomp_games:HistoryTree.children", more={"history": [10**6]})
def _():
    return kuhn_tree().children, {"history": 5}


@good_call("precomp_games:HistoryTree.actions", more={"history": [10**6]})
def _():
    return kuhn_tree().actions, {"history": 5}


@good_call("precomp_games:HistoryTree.state", more={"history": [10**6]})
def _():
    return kuhn_tree().state, {"history": 5}


@good_call("precomp_games:HistoryTree.find", fine={"actions": [(1, 2, 3)]}, more={"actions": [[0, 1.0], 3]})
def _():
    return kuhn_tree().find, {"actions": kuhn_tree().actions(5)}


@good_call("precomp_games:HistoryTree.infoset_of", more={"state": lambda: [_strange_states()[0]]})
def _():
    return kuhn_tree().infoset_of, {"state": kuhn_tree().state(5)}


@good_call("precomp_games:HistoryTree.key", more={"infoset": [10**6]})
def _():
    return kuhn_tree().key, {"infoset": 1}


@good_call("precomp_games:HistoryTree.memorized_row", more={"entry": [10**6]})
def _():
    return kuhn_tree().memorized_row, {"entry": 1}


@good_call("precomp_games:Menu.of_support")
def _():
    return Menu.of_support, {"policy": lambda state: {0: 1.0}, "least": 0.1}


@good_call("precomp_games:HistoryTree.with_game", more={"game": lambda: [pyspiel.load_game("leduc_poker")]})
def _():
    return kuhn_tree().with_game, {"game": kuhn()}


@good_call(
    "precomp_games:HistoryTree.with_penalties",
    fine={"penalties": [math.inf, 0.5]},
    more={"penalties": [0.001, (0.1, 0.001), [0.1]]},
)
def _():
    return kuhn_tree().with_penalties, {"penalties": 0.02}


@good_call("precomp_games:HistoryTree.with_weights")
def _():
    return kuhn_tree().with_weights, {"weight": np.ones(kuhn_tree().num_infosets)}


# A file that is not there, or cannot be written, is an OSError.
@good_call("precomp_games:HistoryTree.save", fine={"path": ["nonsense"]})
def _():
    return kuhn_tree().save, {"path": folder() / "saved.npz"}


@good_call("precomp_games:HistoryTree.load", fine={"path": ["nonsense"]}, more={"path": [True, 1, "a\0b"]})
def _():
    kuhn_tree().save(folder() / "tree.npz")
    return HistoryTree.load, {"path": folder() / "tree.npz"}


@good_call("precomp_games:EvaluatedValues")
def _():
    return EvaluatedValues, {"function": len}


@good_call(
    "precomp_games:RolloutValues",
    more={"epsilon": [0.0, 1e-200], "delta": [0.0, 1.0], "games": [0], "bound": ["theorem 3"]},
)
def _():
    return RolloutValues, {"epsilon": 0.2, "delta": 0.1, "games": 7, "bound": "hoeffding", "seed": 3}


@good_call(
    "precomp_games:sample_size",
    more={"epsilon": [0.0, 1e-200], "delta": [0.0, 1.0], "estimates": [0], "bound": ["theorem 3"]},
)
def _():
    return sample_size, {
        "epsilon": 0.2,
        "delta": 0.1,
        "estimates": 5,
        "utility_range": 2.0,
        "bound": "theorem3",
    }


# -- policies ----------------------------------------------------------------------------------------------


@good_call(
    "precomp_games:PrecomputationPolicy",
    fine={"sigma": [None]},
    more={"player": [2], "sigma": [[_last], [_last, 3]]},
)
def _():
    return PrecomputationPolicy, {"game": kuhn(), "player": 0, "lookup": _last, "sigma": (None, _last)}


@good_call(
    "precomp_games:PrecomputationPolicy.action_probabilities",
    more={"state": _strange_states, "player_id": [1]},
)
def _():
    book = PrecomputationPolicy(kuhn(), 0, _last, (None, _last))
    state = kuhn().new_initial_state().child(0).child(1)
    return book.action_probabilities, {"state": state, "player_id": 0}


@functools.cache
def mixture():
    return MixturePolicy([policy.UniformRandomPolicy(kuhn()), _last], [0.25, 0.75])


@good_call("precomp_games:MixturePolicy", more={"policies": [[], "uniform"], "weights": [[0.5, 0.0], [1.0]]})
def _():
    return MixturePolicy, {
        "policies": [_last, _last],
        "weights": [0.25, 0.75],
        "per": "game",
        "position_key": str,
    }


@good_call(
    "precomp_games:MixturePolicy.action_probabilities", more={"state": _strange_states, "player_id": [1]}
)
def _():
    state = kuhn().new_initial_state().child(0).child(1)
    return mixture().action_probabilities, {"state": state, "player_id": 0}


@good_call(
    "precomp_games:MixturePolicy.action_probabilities_batch",
    more={"states": lambda: [[state] for state in _strange_states()]},
)
def _():
    return mixture().action_probabilities_batch, {"states": [_decision(kuhn().new_initial_state())]}


@good_call("precomp_games:MixturePolicy.posterior", more={"state": lambda: _strange_states()[:1]})
def _():
    return mixture().posterior, {"state": _decision(kuhn().new_initial_state()), "player": 0}


@good_call("precomp_games:make_policy", more={"spec": ["cfr(10)", {"name": "cfr", "seed": 3}]})
def _():
    return make_policy, {"game": kuhn(), "spec": "cfr(iterations=2)", "trusted": True}


def _register(name, factory, touches):
    """As `register_policy`; a name is new only once."""
    register_policy(name + next(_NEW_NAMES) if name == "fresh" else name, factory, touches=touches)


@good_call(
    "precomp_games:register_policy",
    fine={"name": ["nonsense", "fresh"]},
    more={
        "name": ["uniform", "two words"],
        "factory": [lambda: None, lambda game, seed: None, "uniform"],
        "touches": [["file"], "seed"],
    },
)
def _():
    made = policy.UniformRandomPolicy
    return _register, {"name": "fresh", "factory": lambda game, seed=0: made(game), "touches": ["seed"]}


# -- the meta-game -----------------------------------------------------------------------------------------


@functools.cache
def _evaluated_tree():
    return HistoryTree.from_game(
        kuhn(),
        sigma_pre=_last,
        sigma=_last,
        penalties=(0.01, math.inf),
        leaf_value=lambda state: 0.0,
        stop_value="evaluate",
    )


def _bad_parameters():
    return [
        {"penalty_0": "x"},
        {"penalty_0": True},
        {"penalty_0": math.nan},
        {"penalty_0": -3.0},
        {"penalty": "none"},
        {"check_supports": 1},
        {"game": "kuhn_poker"},
        {"game": {"name": 3}},
        {"sigma": "uniform"},
        {"tree_file": 3},
        {"tree_file": str(folder() / "t.npz"), "penalty_0": 0.3},
        _evaluated_tree(),
    ]


@good_call("precomp_games:MetaPrecomputationGame", fine={"tree": [None]}, more={"tree": _bad_parameters})
def _():
    return MetaPrecomputationGame, {"tree": kuhn_tree(), "form": "audit", "check_supports": False}


@good_call("precomp_games:MetaPrecomputationGame.infoset_string", more={"infoset": [10**6]})
def _():
    return MetaPrecomputationGame(kuhn_tree()).infoset_string, {"infoset": 1}


def _observer(game):
    kind = pyspiel.IIGObservationType(perfect_recall=True)
    return game.make_py_observer, {"iig_obs_type": kind, "params": {}}


# OpenSpiel's C++ side gives its parameters first where it has no observation type: an empty mapping is fine.
@good_call("precomp_games:MetaPrecomputationGame.make_py_observer", fine={"params": [None]})
def _():
    return _observer(MetaPrecomputationGame(kuhn_tree()))


@good_call("precomp_games:to_efg", more={"source": lambda: [kuhn(), _evaluated_tree()]})
def _():
    return to_efg, {"source": kuhn_tree(), "form": "audit", "check_supports": False}


@good_call("precomp_games:write_efg", more={"source": lambda: [kuhn(), _evaluated_tree()]})
def _():
    return write_efg, {
        "source": kuhn_tree(),
        "path": folder() / "meta.efg",
        "form": "audit",
        "check_supports": False,
    }


@good_call("precomp_games:atomic_write", fine={"path": ["nonsense"]}, more={"path": [folder]})
def _():
    return atomic_write, {"path": folder() / "kept.txt", "mode": "w"}


@good_call("precomp_games:write_together", fine={"folder": ["nonsense"]})
def _():
    return write_together, {"folder": folder()}


# -- games -------------------------------------------------------------------------------------------------


@good_call("precomp_games:KJPokerGame", fine={"params": [None]}, more={"params": [{"players": 2}]})
def _():
    return KJPokerGame, {"params": {}}


@good_call("precomp_games:KJPokerGame.make_py_observer", fine={"params": [None]})
def _():
    return _observer(KJPokerGame())


_BAD_CLOCKS = [
    {"time_0": 0},
    {"time_0": 2.5},
    {"time_1": True},
    {"move_time": -1},
    {"game": "no_such_game"},
    {"game": {"name": 3}},
    {"game": {"name": "kuhn_poker"}},
    {"game": {"name": "matrix_pd"}},
]


@good_call("precomp_games:ClockGame", fine={"params": [None]}, more={"params": _BAD_CLOCKS})
def _():
    return ClockGame, {"params": {"game": {"name": "tic_tac_toe"}, "time_0": 3, "time_1": 3}}


@good_call("precomp_games:ClockGame.encode", more={"action": [9], "ticks": [5]})
def _():
    return clock_game().encode, {"action": 2, "ticks": 1}


@good_call("precomp_games:ClockGame.decode", more={"action": [45]})
def _():
    return clock_game().decode, {"action": 3}


@good_call("precomp_games:ClockGame.lost_on_time", more={"player": [2]})
def _():
    return clock_game().lost_on_time, {"player": 1}


@good_call("precomp_games:ClockGame.make_py_observer", fine={"params": [None]})
def _():
    return _observer(clock_game())


@good_call("precomp_games:ClockPolicy", fine={"ticks": [10**30]})
def _():
    return ClockPolicy, {"game": clock_game(), "policy": _last, "ticks": 1}


@good_call(
    "precomp_games:ClockPolicy.action_probabilities", more={"state": _strange_clock_states, "player_id": [1]}
)
def _():
    timed = ClockPolicy(clock_game(), _last, 1)
    return timed.action_probabilities, {"state": clock_game().new_initial_state(), "player_id": 0}


@good_call(
    "precomp_games:ClockPolicy.action_probabilities_batch",
    more={"states": lambda: [[state] for state in _strange_clock_states()]},
)
def _():
    timed = ClockPolicy(clock_game(), _last, 1)
    return timed.action_probabilities_batch, {"states": [clock_game().new_initial_state()]}


@good_call("precomp_games:SearchClock", more={"nodes_per_tick": [0], "moves": [0], "least": [0]})
def _():
    return SearchClock, {"nodes_per_tick": 100, "moves": 5, "least": 1}


class _Found:
    action = 4
    nodes = 100


@good_call(
    "precomp_games:TimedSearch.action_probabilities", more={"state": _strange_clock_states, "player_id": [1]}
)
def _():
    player = TimedSearch(clock_game(), lambda state, nodes: _Found, SearchClock(100))
    return player.action_probabilities, {"state": clock_game().new_initial_state(), "player_id": 0}


@good_call("precomp_games:cluster_client", more={"cluster": ["local:0", "x:8786"]})
def _():
    return cluster_client, {"cluster": cluster_address(), "startup_seconds": 20.0}


@good_call("precomp_games:map_on_cluster", fine={"tasks": ...}, more={"cluster": ["local:0", "x:8786"]})
def _():
    given = {"function": str, "tasks": [1], "cluster": cluster_address(), "startup_seconds": 20.0}
    return map_on_cluster, given
