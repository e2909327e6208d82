"""Correlation plans, equilibria, refinements, the mediator."""

import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms import efce
from tests.algorithms.efce.reference import battleship, sheriff
from tests.wrong_calls import NOTHING, Arg

_SEQUENCE_GAMES = (
    "Mediator",
    "ProductBlueprint",
    "RelevantPairs",
    "check_decomposition",
    "decompose",
    "finest_subgames",
    "one_subgame",
)


def table():
    game = battleship(1, 2, 2)
    state = game.new_initial_state()
    public = efce.public_moves(game, 1)
    whole = efce.SequenceGame.of(game)
    decomposed = efce.decompose(whole, public)
    names = efce.subgame_names(game, public)
    pairs = efce.RelevantPairs.of(whole)
    uniform, jittered = efce.uniform_blueprint(), efce.jittered_blueprint(1)
    plan = efce.plan_of(jittered, pairs)
    xi = np.array(plan.xi)
    tabular = policy.TabularPolicy(game)
    no_games = [pyspiel.load_game("kuhn_poker"), pyspiel.load_game("matrix_pd")]

    other_game = battleship(1, 3, 2)
    other_whole = efce.SequenceGame.of(other_game)
    other_plan = efce.plan_of(uniform, efce.RelevantPairs.of(other_whole))
    other_policy = efce.policy_blueprint(policy.TabularPolicy(other_game))

    refined = _refined(decomposed, jittered)
    of_other_seed = _refined(decomposed, efce.jittered_blueprint(2))
    richer = efce.decompose(efce.SequenceGame.of(battleship(1, 2, 2, multiplier=5.0)), public)
    of_richer = _refined(richer, jittered)
    no_plans_of_this = [plan, of_richer.plan, of_other_seed.plan, refined.plan.xi]

    # Sheriff with its first round of moves as subgames, the first of them refined, and then what it holds.
    level, first = _two_rounds()
    further = efce.public_moves(sheriff(1, 1, 3), 2)
    deeper = level.deeper(first, further)
    separate, of_other_bribe = _two_rounds("separate")[1], _two_rounds(bribe=2)[1]

    # A subgame with unsafe plans.
    hard_game = efce.decompose(other_whole, efce.public_moves(other_game, 1))
    hard = efce.Resolving.of_subgames(hard_game, jittered).problem((0, 1))
    unsafe = _unsafe(hard)
    mediator = efce.Mediator(whole, uniform)
    mediator.recommend(state)
    no_states = [None, game, other_game.new_initial_state(), _finished(game)]

    several = Arg(np.array([0, 1]), np.array([0, 99]))  # the empty sequence and another one
    blueprint = Arg(uniform, efce.uniform_blueprint, "uniform", other_plan)
    return {
        "PairCounts()": efce.count_pairs(game, public, names),
        "Resolving()": level,
        "Mediator()": mediator,
        # games, subgames, pairs
        "game": Arg(game, *no_games),
        **{f"{of}.game": Arg(whole, game) for of in _SEQUENCE_GAMES},
        "public_moves.game": Arg(game, *no_games, pyspiel.load_game("tic_tac_toe")),
        "public": Arg(public, lambda state: [1], lambda state: None, None),
        "subgame_names.public": Arg(public, lambda state: [1]),
        "only": (0, 1),
        "rounds": 1,
        "depth": Arg(4, 0, 99),
        "player": 0,
        "key": Arg(whole.players[0].keys[1], "no such", ""),
        "other": Arg(decomposed, other_plan.game, game),
        "SequenceGame.restrict()": decomposed.restrict,
        "restrict.label": Arg(1, -2, 4),
        "node_label": np.zeros(whole.num_nodes, np.int32),
        # Names are of any kind.
        "labels": Arg(("all",), (), ("a", "a"), ("a", "b"), ([],), "a", fine=[[NOTHING], [math.nan]]),
        "names": Arg(names, [(0, 1)], []),
        "pairs": pairs,
        "first": several,
        "second": Arg(np.array([1, 0]), np.array([0])),
        # plans
        "xi": Arg(xi, other_plan.xi),
        "CorrelationPlan.xi": Arg(xi, np.zeros(len(xi)), 2.0 * xi, -xi, np.append(xi, 0.0), other_plan.xi),
        "plan": Arg(plan, xi),
        "utilities.label": Arg(None, 0),
        "CorrelationPlan.welfare()": refined.plan.welfare,
        "welfare.label": Arg(0, 1),
        "plan_game": whole,
        "CorrelationPlan.plan_game": Arg(whole, other_plan.game, game),
        "policies": Arg((tabular, tabular), policy.UniformRandomPolicy(game), pyspiel.TabularPolicy, game),
        "behavior": lambda game, player: None,
        "ProductBlueprint.name": "blueprint",
        "blueprint": blueprint,
        "plan_of.blueprint": Arg(
            uniform, efce.uniform_blueprint, efce.ProductBlueprint, _Silent(), other_plan, other_policy
        ),
        "count": 2,
        "seed": 1,
        # equilibria and refinements
        "efce_lp.game": Arg(game, *no_games, decomposed.restrict(0)[0]),
        "max_memory_gb": Arg(1.0, 1e-9),
        "time_limit": Arg(60.0, 0.0, "1", True),
        "iterations": 1,
        "Resolving.of.game": Arg(game, *no_games, whole),
        "of_subgames.game": Arg(decomposed, game, whole, decomposed.restrict(0)[0]),
        "name": level.names[0],
        "PairCounts.name": names[0],
        "problem": refined.problem,
        "Resolving.deeper.refined": Arg(first, refined.problem, refined, separate, of_other_bribe),
        "Resolving.deeper.public": Arg(further, lambda state: [1], lambda state: None),
        "RegretResolver.plan": Arg(refined.plan, *no_plans_of_this),
        "RegretResolver.make_safe()": efce.RegretResolver(hard).make_safe,
        "make_safe.plan": Arg(unsafe, *no_plans_of_this),
        "make_safe.safe": Arg(hard.blueprint, *no_plans_of_this, unsafe),
        "stitch.game": Arg(decomposed, game, whole, richer),
        "stitch.blueprint": Arg(jittered, efce.uniform_blueprint, efce.jittered_blueprint(2), other_plan),
        "refinements": Arg([refined], refined, [refined, refined], [of_other_seed], [of_richer], [None]),
        "complete.refined": Arg(first, refined, of_other_bribe, refined.problem),
        "complete.deeper": Arg([efce.refine_lp(deeper.problem(deeper.names[0]))], refined, [refined]),
        "complete.game": Arg(deeper.game, decomposed, game),
        "safety.refined": Arg(plan, other_plan, xi, refined.plan),
        "safety.blueprint": Arg(efce.plan_of(uniform, pairs), other_plan, uniform, refined.plan),
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


def _unsafe(problem):
    found = efce.RegretResolver(problem, start="random", seed=3)
    found.run(1)
    return found.average()


def _finished(game):
    state = game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    return state
