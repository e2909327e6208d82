"""Calls that work: players with limited lookahead, and who commits against them."""

import functools
import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms.lookahead import (
    LookaheadPolicy,
    NodeValues,
    SequenceForm,
    StrategyPolicy,
    commit_against_lookahead,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    evaluate_against_lookahead,
    independent_noise,
    lookahead_nash_equilibrium,
)
from tests.wrong_calls import good_call

_FACE = "precomp_games.algorithms.lookahead"
_HUGE = [10**30]


@functools.cache
def kuhn():
    return pyspiel.load_game("kuhn_poker")


@functools.cache
def other():
    return pyspiel.load_efg_game(_EFG)


_EFG = """EFG 2 R "two moves each" { "A" "B" }
p "" 1 1 "" { "l" "r" } 0
p "" 2 1 "" { "l" "r" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { 0 0 }
p "" 2 2 "" { "l" "r" } 0
t "" 3 "" { 2 -2 }
t "" 4 "" { -1 1 }
"""


@functools.cache
def values(player=1):
    return equilibrium_values(kuhn(), player, policy.UniformRandomPolicy(kuhn()))


@functools.cache
def other_values():
    return equilibrium_values(other(), 1, policy.UniformRandomPolicy(other()))


@functools.cache
def forgetful():
    """Player 0 moves twice and has forgotten the first one."""
    ends = "".join(f't "" {k} "" {{ {k} {-k} }}\n' for k in range(1, 5))
    first, second, third, fourth = ends.splitlines(keepends=True)
    again = 'p "" 1 2 "" { "l" "r" } 0\n'
    text = 'EFG 2 R "forgetful" { "A" "B" }\np "" 1 1 "" { "l" "r" } 0\n'
    return pyspiel.load_efg_game(text + again + first + second + again + third + fourth)


def bad_games():
    return [
        "kuhn_poker",
        pyspiel.load_game("kuhn_poker(players=3)"),
        pyspiel.load_game("matrix_mp"),
        forgetful(),
        kuhn().new_initial_state(),
    ]


def bad_evaluations():
    answers = (None, math.nan, math.inf, "1", True, [0.5])
    constant = [(lambda state, answer=answer: answer) for answer in answers]
    return [*constant, values(0), other_values(), NodeValues]


def bad_policies():
    return [
        lambda state: None,
        lambda state: dict.fromkeys(state.legal_actions(), 0.3),
        lambda state: dict.fromkeys(state.legal_actions(), math.nan),
        lambda state: {"a": 1.0},
        lambda state: {17: 1.0},
        policy.UniformRandomPolicy(other()),
        policy.UniformRandomPolicy,
    ]


def bad_orders():
    return [
        lambda key, actions: None,
        lambda key, actions: 0,
        lambda key, actions: actions[1:],
        lambda key, actions: [*actions, 9],
        lambda key, actions: [*actions[1:], "x"],
        lambda key, actions: list(map(float, actions)),
    ]


_MORE = {
    "game": bad_games,
    "evaluation": bad_evaluations,
    "strategy": bad_policies,
    "order": bad_orders,
    "tie_breaking": ["adversarial", "favorable"],  # where there is an order
}
# A lookahead to the end of the game, however long.
_FINE = {"lookahead": _HUGE, "tie_tolerance": [0.5], "delta": [0.5]}


def _settings():
    return {
        "game": kuhn(),
        "rational_player": 0,
        "lookahead": 1,
        "evaluation": values(),
        "tie_breaking": "static",
        "order": lambda key, actions: actions[::-1],
    }


@good_call(
    f"{_FACE}:commit_against_lookahead", fine=_FINE | {"time_limit": [0.5, math.inf, 1e309]}, more=_MORE
)
def _():
    further = {"delta": 1e-3, "method": "correlation", "time_limit": 20.0}
    return commit_against_lookahead, _settings() | further


@good_call(f"{_FACE}:evaluate_against_lookahead", fine=_FINE, more=_MORE)
def _():
    further = {"strategy": policy.UniformRandomPolicy(kuhn()), "tie_tolerance": 1e-9}
    return evaluate_against_lookahead, _settings() | further


@good_call(f"{_FACE}:LookaheadPolicy", fine=_FINE, more=_MORE)
def _():
    return LookaheadPolicy, _settings() | {"strategy": policy.UniformRandomPolicy(kuhn())}


@good_call(
    f"{_FACE}:lookahead_nash_equilibrium",
    more={"game": lambda: [*bad_games(), kuhn()], "evaluation": lambda: [values()], "order": bad_orders},
)
def _():
    further = {"rational_player": 0, "evaluation": other_values(), "order": lambda key, actions: actions}
    return lookahead_nash_equilibrium, {"game": other()} | further


def bad_states():
    """At a chance node; over; another game's."""
    start = kuhn().new_initial_state()
    end = start.child(0).child(1).child(0).child(0)
    return [start, end, other().new_initial_state(), kuhn()]


@good_call(
    f"{_FACE}:LookaheadPolicy.action_probabilities", more={"state": bad_states, "player_id": [1, True]}
)
def _():
    played = LookaheadPolicy(kuhn(), 0, policy.UniformRandomPolicy(kuhn()), 1, values())
    return played.action_probabilities, {"state": dealt(), "player_id": 0}


def dealt():
    return kuhn().new_initial_state().child(0).child(1)


@good_call(
    f"{_FACE}:StrategyPolicy",
    more={
        "game": lambda: bad_games()[:3],
        "rows": [{0: {0: 1.0}}, {"0": {0: 0.3}}, {"0": {0: math.nan}}, {"0": {"a": 1.0}}, {"0": None}, []],
    },
)
def _():
    return StrategyPolicy, {"game": kuhn(), "rows": {"0": {0: 0.5, 1: 0.5}, "1": {1: 1.0}}}


@good_call(f"{_FACE}:StrategyPolicy.action_probabilities", more={"state": bad_states, "player_id": [1, True]})
def _():
    return StrategyPolicy(kuhn(), {"0": {0: 1.0}}).action_probabilities, {"state": dealt(), "player_id": 0}


@good_call(f"{_FACE}:NodeValues", more={"form": lambda: [SequenceForm.of(other()), SequenceForm, kuhn()]})
def _():
    made = values()
    return NodeValues, {"form": made.form, "player": 1, "values": made.values, "odds": made.odds}


@good_call(f"{_FACE}:SequenceForm.of", more={"game": bad_games})
def _():
    return SequenceForm.of, {"game": kuhn()}


# No history has such an action, which is what -1 says.
@good_call(f"{_FACE}:SequenceForm.child", more={"history": [10**6]})
def _():
    return SequenceForm.of(kuhn()).child, {"history": 0, "action": 2}


@good_call(f"{_FACE}:SequenceForm.against")
def _():
    form = SequenceForm.of(kuhn())
    return form.against, {"player": 0, "plan": np.ones(form.players[0].num_sequences), "whose": 1}


@good_call(f"{_FACE}:equilibrium", more={"game": bad_games})
def _():
    return equilibrium, {"game": other(), "lexicographic": True}


@good_call(f"{_FACE}:equilibrium_values", more={"game": bad_games, "policy": bad_policies})
def _():
    return equilibrium_values, {"game": kuhn(), "player": 0, "policy": policy.UniformRandomPolicy(kuhn())}


for _noise in (independent_noise, cumulative_noise):

    @good_call(
        f"{_FACE}:{_noise.__name__}",
        fine={"gamma": [0.5], "seed": [(1, 2, 3), [1], *_HUGE]},
        more={"evaluation": [lambda state: 0.0, NodeValues], "seed": [[1, "2"], [1, -2], []]},
    )
    def _(noise=_noise):
        return noise, {"evaluation": values(), "gamma": 1.0, "seed": 1}
