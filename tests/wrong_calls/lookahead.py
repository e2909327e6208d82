"""Players with limited lookahead, and who commits against them."""

import math

import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms.lookahead import (
    FollowerType,
    equilibrium_values,
)
from precomp_games.algorithms.lookahead.evaluation_functions import NodeValues
from tests.oracles.games import random_tree
from tests.wrong_calls import Arg, answering


def table():
    kuhn, other = pyspiel.load_game("kuhn_poker"), random_tree(3, depth=3)
    start = kuhn.new_initial_state()
    no_games = [
        "kuhn_pokr",
        pyspiel.load_game("kuhn_poker(players=3)"),
        pyspiel.load_game("liars_dice_ir(dice_sides=3,numdice=1)"),
        start,
    ]
    uniform = policy.UniformRandomPolicy(kuhn)
    uniform_in_other = policy.UniformRandomPolicy(other)
    values = equilibrium_values(kuhn, 1, uniform)
    of_player_0 = equilibrium_values(kuhn, 0, uniform)
    other_values = equilibrium_values(other, 1, uniform_in_other)
    moves = [FollowerType(k, values) for k in (1, 2)]
    no_policies = [
        *answering(None, {"a": 1.0}, {17: 1.0}),
        lambda state: dict.fromkeys(state.legal_actions(), 0.3),
        lambda state: dict.fromkeys(state.legal_actions(), math.nan),
        uniform_in_other,
        policy.UniformRandomPolicy,
    ]
    return {
        "game": Arg(kuhn, *no_games),
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
        "FollowerType.evaluation": values,
        "FollowerType.order": Arg(lambda key, actions: actions[::-1]),
        "types": Arg(
            moves,
            [],
            [values],
            [(1, values)],
            moves[0],
            [FollowerType(1, of_player_0)],
            [FollowerType(1, other_values)],
            [FollowerType(1, lambda state: None)],
            [FollowerType(1, values, "static", lambda key, actions: actions[1:])],
        ),
        "weights": Arg([0.3, 0.7], [0.3], [0.0, 1.0], [-1.0, 2.0], [math.nan, 1.0], 0.5),
        "objective": Arg("mean", "worst", "best"),  # there are weights
        "policy": Arg(uniform, *no_policies),
        "strategy": Arg(uniform, *no_policies),
        "gamma": 1.0,
        "seed": Arg(1, [1, "2"], [1, -2], [], fine=[(1, 2, 3), [1], 10**30]),
        "cumulative_noise.evaluation": Arg(values, lambda state: 0.0, NodeValues),
        "independent_noise.evaluation": Arg(values, lambda state: 0.0, NodeValues),
    }


def _ended(state):
    return state.child(0).child(1).child(0).child(0)
