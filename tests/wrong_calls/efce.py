"""Correlation plans, equilibria, refinements, the mediator."""

import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms import efce
from tests.oracles.treeplex import battleship, sheriff
from tests.wrong_calls import Arg

_SEQUENCE_GAMES = ("Mediator", "CorrelationPlan.of", "decompose", "finest_subgames")


def table():
    game = battleship(1, 2, 2)
    state = game.new_initial_state()
    public = efce.public_moves(game, 1)
    whole = efce.SequenceGame.of(game)
    decomposed = efce.decompose(whole, public)
    uniform, jittered = efce.uniform_blueprint(), efce.jittered_blueprint(1)
    plan = efce.CorrelationPlan.of(whole, jittered)
    xi = np.array(plan.xi)
    tabular = policy.TabularPolicy(game)
    no_games = [pyspiel.load_game("kuhn_poker"), pyspiel.load_game("kuhn_poker(players=3)")]

    other_game = battleship(1, 3, 2)
    other_whole = efce.SequenceGame.of(other_game)
    other_plan = efce.CorrelationPlan.of(other_whole, uniform)
    other_policy = efce.policy_blueprint(policy.TabularPolicy(other_game))

    refined = _refined(decomposed, jittered)
    of_other_seed = _refined(decomposed, efce.jittered_blueprint(2))
    richer = efce.decompose(efce.SequenceGame.of(battleship(1, 2, 2, multiplier=5.0)), public)
    of_richer = _refined(richer, jittered)
    # Sheriff with its first round of moves as subgames, the first of them refined, and then what it holds.
    level, first = _two_rounds()
    further = efce.public_moves(sheriff(1, 1, 3), 2)
    deeper = level.deeper(first, further)
    separate, of_other_bribe = _two_rounds("separate")[1], _two_rounds(bribe=2)[1]

    mediator = efce.Mediator(whole, uniform)
    mediator.recommend(state)
    no_states = [None, game, other_game.new_initial_state(), _finished(game)]

    several = Arg(np.array([0, 1]), np.array([0, 99]))  # the empty sequence and another one
    blueprint = Arg(uniform, efce.uniform_blueprint, "uniform", other_plan)
    return {
        "Resolving()": level,
        "Mediator()": mediator,
        # games, subgames, pairs
        "game": Arg(game, *no_games),
        "SequenceGame.of.game": Arg(game, "sherif", pyspiel.load_game("backgammon")),
        **{f"{of}.game": Arg(whole, game) for of in _SEQUENCE_GAMES},
        "public_moves.game": Arg(game, *no_games, pyspiel.load_game("tic_tac_toe")),
        "public": Arg(public, lambda state: [1], lambda state: None, None),
        "only": (0, 1),
        "rounds": 1,
        "depth": Arg(4, 0, 99),
        "player": 0,
        "key": Arg(whole.players[0].keys[1], "no such", ""),
        "other": Arg(decomposed, other_plan.game, game),
        "SequenceGame.restrict()": decomposed.restrict,
        "restrict.label": Arg(1, -2, 4),
        "pairs": plan.pairs,
        "first": several,
        "second": Arg(np.array([1, 0]), np.array([0])),
        # plans
        "CorrelationPlan.xi": Arg(xi, np.zeros(len(xi)), 2.0 * xi, -xi, np.append(xi, 0.0), other_plan.xi),
        "plan": Arg(plan, xi),
        "utilities.label": Arg(None, 0),
        "CorrelationPlan.welfare()": refined.plan.welfare,
        "welfare.label": Arg(0, 1),
        "plan_game": whole,
        "CorrelationPlan.plan_game": Arg(whole, other_plan.game, game),
        "policies": Arg((tabular, tabular), policy.UniformRandomPolicy(game), pyspiel.TabularPolicy, game),
        "blueprint": blueprint,
        "CorrelationPlan.of.blueprint": Arg(
            uniform, efce.uniform_blueprint, type(uniform), _Silent(), other_plan, other_policy
        ),
        "seed": 1,
        # equilibria and refinements
        "efce_lp.game": Arg(game, *no_games, decomposed.restrict(0)[0]),
        "objective": Arg("welfare", 2, (1.0, 2.0, 3.0), "fairness"),
        "floors": Arg((-3.0, -math.inf), 1.0, (0.0, math.inf), (0.0, "a")),
        "time_limit": Arg(60.0, 0.0, "1", True),
        "iterations": 1,
        "Resolving.of.game": Arg(game, *no_games, whole),
        "of_subgames.game": Arg(decomposed, game, whole, decomposed.restrict(0)[0]),
        "name": level.names[0],
        "problem": refined.problem,
        "Resolving.deeper.refined": Arg(first, refined.problem, refined, separate, of_other_bribe),
        "Resolving.deeper.public": Arg(further, lambda state: [1], lambda state: None),
        "Resolving.complete()": deeper.complete,
        "complete.refinements": Arg([efce.refine_lp(deeper.problem(deeper.names[0]))], refined, [refined]),
        "stitch.game": Arg(decomposed, game, whole, richer),
        "stitch.blueprint": Arg(jittered, efce.uniform_blueprint, efce.jittered_blueprint(2), other_plan),
        "refinements": Arg([refined], refined, [refined, refined], [of_other_seed], [of_richer], [None]),
        "safety.refined": Arg(plan, other_plan, xi, refined.plan),
        "safety.blueprint": Arg(
            efce.CorrelationPlan.of(whole, uniform), other_plan, efce.uniform_blueprint, refined.plan
        ),
        # the mediator
        "Mediator.blueprint": Arg(uniform, efce.uniform_blueprint, "uniform"),
        "Mediator.seed": Arg(0, -1),
        "state": Arg(state, *no_states),
        "action": Arg(state.legal_actions()[0], 999),
    }


class _Silent:
    def entries(self, plan_game, first, second):
        return None


def _refined(game, blueprint, bounds="aggregate"):
    level = efce.Resolving.of_subgames(game, blueprint, bounds)
    return efce.refine_lp(level.problem(level.names[0]))


def _two_rounds(bounds="aggregate", bribe=1):
    game = sheriff(1, bribe, 3)
    held = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    level = efce.Resolving.of_subgames(held, efce.jittered_blueprint(1), bounds)
    return level, efce.refine_lp(level.problem(level.names[0]))


def _finished(game):
    state = game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    return state
