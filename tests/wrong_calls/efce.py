"""Calls that work: correlation plans, equilibria, refinements, the mediator."""

import functools
import math

import numpy as np
import pyspiel
from open_spiel.python import policy

from precomp_games.algorithms import efce
from tests.algorithms.efce.reference import battleship, sheriff
from tests.wrong_calls import NOTHING, good_call

_FACE = "precomp_games.algorithms.efce:"
# More than anybody waits for, but what was asked for.
NOT_GAMES = [pyspiel.load_game("kuhn_poker"), pyspiel.load_game("matrix_pd")]


@functools.cache
def game():
    return battleship(1, 2, 2)


@functools.cache
def whole():
    return efce.SequenceGame.of(game())


@functools.cache
def decomposed(multiplier=2.0):
    base = battleship(1, 2, 2, multiplier=multiplier)
    return efce.decompose(efce.SequenceGame.of(base), public())


def public(rounds=1):
    return efce.public_moves(game(), rounds)


@functools.cache
def pairs():
    return efce.RelevantPairs.of(whole())


@functools.cache
def plan():
    return efce.plan_of(efce.jittered_blueprint(1), pairs())


@functools.cache
def resolving(multiplier=2.0, seed=1, bounds="aggregate"):
    return efce.Resolving.of_subgames(decomposed(multiplier), efce.jittered_blueprint(seed), bounds)


@functools.cache
def refined(**settings):
    found = resolving(**settings)
    return efce.refine_lp(found.problem(found.names[0]))


def problem():
    return refined().problem


@functools.cache
def other_plan():
    """A plan of another game."""
    return efce.plan_of(
        efce.uniform_blueprint(), efce.RelevantPairs.of(efce.SequenceGame.of(battleship(1, 3, 2)))
    )


@functools.cache
def other_policy():
    return policy.TabularPolicy(battleship(1, 3, 2))


@functools.cache
def two_rounds(bounds="aggregate", bribe=1):
    """Sheriff with its first round of moves as subgames, and the first of them refined."""
    base = sheriff(1, bribe, 3)
    held = efce.decompose(efce.SequenceGame.of(base), efce.public_moves(base, 1))
    level = efce.Resolving.of_subgames(held, efce.jittered_blueprint(1), bounds)
    return level, efce.refine_lp(level.problem(level.names[0]))


@functools.cache
def deeper():
    level, first = two_rounds()
    return level.deeper(first, efce.public_moves(sheriff(1, 1, 3), 2))


def finished():
    state = game().new_initial_state()
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    return state


def other_state():
    return battleship(1, 3, 2).new_initial_state()


# -- games, subgames, pairs --------------------------------------------------------------------------------


@good_call(_FACE + "SequenceGame.of", more={"game": NOT_GAMES, "public": [lambda s: []]})
def _():
    # Any hashable is a name; what names no subgame is refused by the next call.
    return efce.SequenceGame.of, {
        "game": game(), "public": public(), "only": (0, 1), "trunk": False, "max_nodes": 1000,
    }  # fmt: skip


@good_call(_FACE + "SequenceGame.infoset_of", more={"key": ["no such", ""]})
def _():
    return whole().infoset_of, {"player": 0, "key": whole().players[0].keys[1]}


@good_call(_FACE + "SequenceGame.sequences_in", more={"other": lambda: [other_plan().game, game()]})
def _():
    return whole().sequences_in, {"other": decomposed()}


@good_call(_FACE + "SequenceGame.restrict", more={"label": [-2, 4]})
def _():
    return decomposed().restrict, {"label": 1}


@good_call(_FACE + "public_moves", more={"game": [*NOT_GAMES, pyspiel.load_game("tic_tac_toe")]})
def _():
    return efce.public_moves, {"game": game(), "rounds": 1}


@good_call(_FACE + "subgame_names", more={"game": NOT_GAMES, "public": [lambda s: [1]]})
def _():
    return efce.subgame_names, {"game": game(), "public": public()}


@good_call(_FACE + "decompose", more={"public": [lambda s: [1], lambda s: None]})
def _():
    return efce.decompose, {"game": whole(), "public": public()}


@good_call(_FACE + "finest_subgames", more={"depth": [0, 99]})
def _():
    return efce.finest_subgames, {"game": whole(), "depth": 4}


@good_call(
    _FACE + "check_decomposition",
    fine={"labels": [[NOTHING], [math.nan]]},  # names of any kind
    more={"labels": [(), ("a", "a"), ("a", "b"), ([],), "a"]},
)
def _():
    return efce.check_decomposition, {
        "game": whole(), "node_label": np.zeros(whole().num_nodes, np.int32), "labels": ("all",),
    }  # fmt: skip


@good_call(_FACE + "count_pairs", more={"game": NOT_GAMES, "names": [[(0, 1)], []]})
def _():
    names = efce.subgame_names(game(), public())
    return efce.count_pairs, {
        "game": game(), "public": public(), "names": names, "progress": lambda name: None,
    }  # fmt: skip


@good_call(_FACE + "RelevantPairs.block", more={"first": [np.array([0, 99])], "second": [np.array([0])]})
def _():
    return pairs().block, {"first": np.array([0, 1]), "second": np.array([1, 0])}


@good_call(_FACE + "RelevantPairs.index", more={"first": [np.array([0, 99])], "second": [np.array([0])]})
def _():
    return pairs().index, {"first": np.array([0, 1]), "second": np.array([1, 0])}


# -- plans -------------------------------------------------------------------------------------------------


def _no_plans():
    xi = plan().xi
    return [np.zeros(len(xi)), 2.0 * xi, -xi, np.append(xi, 0.0), other_plan().xi]


@good_call(_FACE + "CorrelationPlan", more={"xi": _no_plans})
def _():
    return efce.CorrelationPlan, {"pairs": pairs(), "xi": np.array(plan().xi)}


@good_call(_FACE + "CorrelationPlan.utilities", more={"label": [0]})
def _():
    return plan().utilities, {"label": None}


@good_call(_FACE + "CorrelationPlan.welfare", more={"label": [1]})
def _():
    return refined().plan.welfare, {"label": 0}


def _entries(of):
    # The empty sequence with one of player 1's.
    return of.entries, {"plan_game": whole(), "first": np.array([0, 1]), "second": np.array([1, 0])}


@good_call(
    _FACE + "CorrelationPlan.entries",
    more={"plan_game": lambda: [other_plan().game, game()], "first": [np.array([0, 99])]},
)
def _():
    return _entries(plan())


@good_call(_FACE + "ProductBlueprint.entries", more={"first": [np.array([0, 99])], "second": [np.array([0])]})
def _():
    return _entries(efce.uniform_blueprint())


@good_call(
    _FACE + "policy_blueprint",
    more={"policies": lambda: [policy.UniformRandomPolicy(game()), pyspiel.TabularPolicy, game()]},
)
def _():
    tabular = policy.TabularPolicy(game())
    return efce.policy_blueprint, {"policies": (tabular, tabular)}


class _Silent:
    def entries(self, plan_game, first, second):
        return None


@good_call(
    _FACE + "plan_of",
    more={
        "blueprint": lambda: [
            efce.uniform_blueprint,
            efce.ProductBlueprint,
            _Silent(),
            other_plan(),
            efce.policy_blueprint(other_policy()),
        ]
    })  # fmt: skip
def _():
    return efce.plan_of, {"blueprint": efce.uniform_blueprint(), "pairs": pairs()}


@good_call(_FACE + "plan_error", more={"xi": lambda: [other_plan().xi]})
def _():
    return efce.plan_error, {"pairs": pairs(), "xi": np.array(plan().xi)}


@good_call(_FACE + "is_plan", more={"xi": lambda: [other_plan().xi]})
def _():
    return efce.is_plan, {"pairs": pairs(), "xi": np.array(plan().xi), "tolerance": 1e-9}


@good_call(_FACE + "correlation_device", more={"tolerance": [1e-3]})
def _():
    return efce.correlation_device, {"plan": plan(), "tolerance": 1e-10, "max_profiles": 1000}


# -- equilibria and refinements ----------------------------------------------------------------------------


@good_call(
    _FACE + "efce_lp",
    # Infeasible programs are no wrong calls, and infinite memory is how to go on all the same.
    more={"game": lambda: [*NOT_GAMES, decomposed().restrict(0)[0]], "time_limit": [0.0, "1", True]},
)
def _():
    return efce.efce_lp, {
        "game": game(), "allowance": 0.0, "time_limit": 60.0, "vertex": True, "max_memory_gb": 1.0,
    }  # fmt: skip


@good_call(
    _FACE + "Resolving.of",
    more={
        "game": lambda: [*NOT_GAMES, whole()],
        "blueprint": lambda: [efce.uniform_blueprint, "uniform", other_plan()],
        "public": [lambda s: [1], lambda s: None],
    },
)
def _():
    return efce.Resolving.of, {
        "game": game(), "blueprint": efce.uniform_blueprint(), "public": public(), "bounds": "aggregate",
        "progress": lambda name: None,
    }  # fmt: skip


@good_call(
    _FACE + "Resolving.of_subgames",
    more={
        "game": lambda: [game(), whole(), decomposed().restrict(0)[0]],
        "blueprint": lambda: [efce.uniform_blueprint, "uniform", other_plan()],
    },
)
def _():
    return efce.Resolving.of_subgames, {
        "game": decomposed(), "blueprint": efce.uniform_blueprint(), "bounds": "separate",
    }  # fmt: skip


@good_call(
    _FACE + "Resolving.deeper",
    more={
        "refined": lambda: [problem(), refined(), two_rounds("separate")[1], two_rounds(bribe=2)[1]],
        "public": [lambda s: [1], lambda s: None],
    },
)
def _():
    level, first = two_rounds()
    return level.deeper, {"refined": first, "public": efce.public_moves(sheriff(1, 1, 3), 2)}


@good_call(_FACE + "refine_lp", more={"time_limit": [0.0, "1", True]})
def _():
    return efce.refine_lp, {
        "problem": problem(), "objective": "welfare", "time_limit": 60.0, "vertex": True,
        "max_memory_gb": 1.0,
    }  # fmt: skip


@functools.cache
def resolver():
    return efce.RegretResolver(problem())


def _no_plans_of_this():
    return [plan(), refined(multiplier=5.0).plan, refined(seed=2).plan, refined().plan.xi]


@good_call(_FACE + "RegretResolver.violation", more={"plan": _no_plans_of_this})
def _():
    return resolver().violation, {"plan": refined().plan}


@good_call(_FACE + "RegretResolver.welfare", more={"plan": _no_plans_of_this})
def _():
    return resolver().welfare, {"plan": refined().plan}


@functools.cache
def hard():
    """A subgame with unsafe plans."""
    base = battleship(1, 3, 2)
    held = efce.decompose(efce.SequenceGame.of(base), efce.public_moves(base, 1))
    return efce.Resolving.of_subgames(held, efce.jittered_blueprint(1)).problem((0, 1))


@functools.cache
def unsafe():
    found = efce.RegretResolver(hard(), start="random", seed=3)
    found.run(1)
    return found.average()


@good_call(
    _FACE + "RegretResolver.make_safe",
    more={"plan": _no_plans_of_this, "safe": lambda: [*_no_plans_of_this(), unsafe()]},
)
def _():
    return efce.RegretResolver(hard()).make_safe, {"plan": unsafe(), "safe": hard().blueprint}


@good_call(
    _FACE + "stitch",
    more={
        "game": lambda: [game(), whole(), decomposed(5.0)],
        "blueprint": lambda: [efce.uniform_blueprint, efce.jittered_blueprint(2), other_plan()],
        "refinements": lambda: [
            refined(), [refined(), refined()], [refined(seed=2)], [refined(multiplier=5.0)], [None],
        ],
    })  # fmt: skip
def _():
    return efce.stitch, {
        "game": decomposed(),
        "blueprint": efce.jittered_blueprint(1),
        "refinements": [refined()],
    }


@good_call(
    _FACE + "complete",
    more={
        "refined": lambda: [refined(), two_rounds(bribe=2)[1], problem()],
        "deeper": lambda: [refined(), [refined()]],
        "game": lambda: [decomposed(), game()],
    },
)
def _():
    level = deeper()
    return efce.complete, {
        "refined": two_rounds()[1], "deeper": [efce.refine_lp(level.problem(level.names[0]))],
        "game": level.game,
    }  # fmt: skip


@good_call(
    _FACE + "safety",
    more={
        "refined": lambda: [other_plan(), plan().xi, refined().plan],
        "blueprint": lambda: [other_plan(), efce.uniform_blueprint(), refined().plan],
    },
)
def _():
    return efce.safety, {"refined": plan(), "blueprint": efce.plan_of(efce.uniform_blueprint(), pairs())}


# -- the mediator ------------------------------------------------------------------------------------------


@good_call(_FACE + "Mediator", more={"blueprint": lambda: [efce.uniform_blueprint, "uniform"], "seed": [-1]})
def _():
    return efce.Mediator, {
        "game": whole(), "blueprint": efce.uniform_blueprint(), "seed": 0, "refine": lambda state: None,
    }  # fmt: skip


def mediator():
    return efce.Mediator(whole(), efce.uniform_blueprint())


def _no_states():
    return [None, game(), other_state(), finished()]


@good_call(_FACE + "Mediator.probabilities", more={"state": _no_states})
def _():
    return mediator().probabilities, {"state": game().new_initial_state()}


@good_call(_FACE + "Mediator.recommend", more={"state": _no_states})
def _():
    return mediator().recommend, {"state": game().new_initial_state()}


@good_call(_FACE + "Mediator.played", more={"state": _no_states, "action": [999]})
def _():
    asked = mediator()
    state = game().new_initial_state()
    asked.recommend(state)
    return asked.played, {"state": state, "action": state.legal_actions()[0]}
