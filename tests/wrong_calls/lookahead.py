"""Players with limited lookahead, and who commits against them."""

import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms.lookahead import NodeValues, SequenceForm, equilibrium_values
from tests.random_games import random_tree
from tests.wrong_calls import Arg, answering


def table():
    kuhn, other = pyspiel.load_game("kuhn_poker"), random_tree(3, depth=3)
    start = kuhn.new_initial_state()
    no_games = [
        "kuhn_poker",
        pyspiel.load_game("kuhn_poker(players=3)"),
        pyspiel.load_game("matrix_mp"),
        pyspiel.load_game("liars_dice_ir(dice_sides=3,numdice=1)"),
        start,
    ]
    uniform = policy.UniformRandomPolicy(kuhn)
    uniform_in_other = policy.UniformRandomPolicy(other)
    values = equilibrium_values(kuhn, 1, uniform)
    of_player_0 = equilibrium_values(kuhn, 0, uniform)
    other_values = equilibrium_values(other, 1, uniform_in_other)
    form = SequenceForm.of(kuhn)
    no_policies = [
        *answering(None, {"a": 1.0}, {17: 1.0}),
        lambda state: dict.fromkeys(state.legal_actions(), 0.3),
        lambda state: dict.fromkeys(state.legal_actions(), math.nan),
        uniform_in_other,
        policy.UniformRandomPolicy,
    ]
    no_rows = [{0: {0: 1.0}}, *({"0": row} for row in ({0: 0.3}, {0: math.nan}, {"a": 1.0}, None)), []]
    return {
        "game": Arg(kuhn, *no_games),
        "lookahead_nash_equilibrium.game": Arg(other, *no_games, kuhn),
        "StrategyPolicy.game": Arg(kuhn, *no_games[:3]),
        "player": 0,
        "rational_player": 0,
        "state": Arg(start.child(0).child(1), start, _ended(start), other.new_initial_state(), kuhn),
        "player_id": Arg(0, 1, True),
        "lookahead": 1,
        "evaluation": Arg(
            values,
            *answering(None, math.nan, math.inf, "1", True, [0.5]),
            of_player_0,
            other_values,
            NodeValues,
        ),
        "lookahead_nash_equilibrium.evaluation": Arg(other_values, values),
        "tie_breaking": Arg("static", "adversarial", "favorable"),  # there is an order
        "order": Arg(
            lambda key, actions: actions[::-1],
            lambda key, actions: None,
            lambda key, actions: 0,
            lambda key, actions: actions[1:],
            lambda key, actions: [*actions, 9],
            lambda key, actions: [*actions[1:], "x"],
            lambda key, actions: list(map(float, actions)),
        ),
        "policy": Arg(uniform, *no_policies),
        "strategy": Arg(uniform, *no_policies),
        "rows": Arg({"0": {0: 0.5, 1: 0.5}, "1": {1: 1.0}}, *no_rows),
        "gamma": 1.0,
        "seed": Arg(1, [1, "2"], [1, -2], [], fine=[(1, 2, 3), [1], 10**30]),
        "cumulative_noise.evaluation": Arg(values, lambda state: 0.0, NodeValues),
        "independent_noise.evaluation": Arg(values, lambda state: 0.0, NodeValues),
        # node values and sequence forms
        "form": Arg(values.form, SequenceForm.of(other), SequenceForm, kuhn),
        "NodeValues.player": 1,
        "values": values.values,
        "odds": values.odds,
        "history": Arg(0, 10**6),
        "action": 2,  # No history has such an action, which is what -1 says.
        "plan": np.ones(form.players[0].num_sequences),
        "whose": 1,
    }


def _ended(state):
    return state.child(0).child(1).child(0).child(0)
