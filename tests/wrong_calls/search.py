"""Searches with a budget, as functions, policies and bots."""

import functools
import math

import pyspiel

from precomp_games.algorithms.search import SearchBudget, SearchPolicy, SimulationBudget, minimax
from tests.wrong_calls import Arg, answering


def table():
    game = pyspiel.load_game("tic_tac_toe")
    three_players = pyspiel.load_game("pig(players=3)")
    state = _after(game, 0, 3, 1, 4)
    over = _after(game, 0, 3, 1, 4, 2)
    chance = _after(pyspiel.load_game("pig"), 0)
    hidden = pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1)
    unsearchable = [
        over,
        chance,
        hidden,
        three_players.new_initial_state(),
        pyspiel.load_game("matrix_mp").new_initial_state(),
        game,
    ]
    asked = Arg(state, *unsearchable, pyspiel.load_game("connect_four").new_initial_state())
    search = functools.partial(minimax, budget=SearchBudget(depth=2))
    policy = SearchPolicy(game, search)
    return {
        "game": Arg(game, "tic_tac_to", three_players),
        "known_of.game": game,  # any game
        "state": Arg(state, *unsearchable),
        "player_id": Arg(0, 1, True),
        "budget": Arg(SearchBudget(depth=3), SimulationBudget(10), SearchBudget, 3),
        "mcts.budget": Arg(SimulationBudget(20), SearchBudget(depth=3)),
        "evaluator": Arg(lambda state: 0.0, *answering(None, math.nan, math.inf, "1", True, [0.5])),
        "ordering": Arg(
            lambda state, actions: actions[::-1],
            lambda state, actions: None,
            lambda state, actions: actions[1:],
            lambda state, actions: [*actions[1:], "x"],
            lambda state, actions: [*actions[1:], None],
            lambda state, actions: [actions[1], *actions[1:]],
            lambda state, actions: list(map(float, actions)),
            lambda state, actions: 3,
        ),
        "position_key": Arg(str, *answering([1], {})),
        "depth": Arg(3, 0),
        "nodes": 100,
        "seconds": 1.0,
        "search": search,
        "policy": policy,
        "temperature": Arg(1.0, 0.0),
        # Asked when it answers, not when it is made.
        "SearchPolicy.position_key": str,
        "SearchPolicy.state": asked,
        "SoftmaxPolicy.state": asked,
        # A bot may be any policy's, which itself knows whose states it has.
        "SearchBot.state": Arg(state, over, chance),
        # A bot keeps nothing of a game, whatever it is.
        "restart_at.state": Arg(state, fine=...),
    }


def _after(game, *moves):
    state = game.new_initial_state()
    for move in moves:
        state.apply_action(move)
    return state
