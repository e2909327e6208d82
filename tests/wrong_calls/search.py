"""Calls that work: searches with a budget, as functions, policies and bots."""

import functools
import math

import pyspiel

from precomp_games.algorithms.search import (
    SearchBot,
    SearchBudget,
    SearchPolicy,
    SimulationBudget,
    SoftmaxPolicy,
    alpha_beta,
    default_evaluator,
    default_ordering,
    default_position_key,
    mcts,
    minimax,
    negamax,
    principal_variation_search,
)
from tests.wrong_calls import good_call

_FACE = "precomp_games.algorithms.search"
_HUGE = [10**30, -(10**30)]


@functools.cache
def board():
    return pyspiel.load_game("tic_tac_toe")


def after(*moves):
    state = board().new_initial_state()
    for move in moves:
        state.apply_action(move)
    return state


def in_progress():
    return after(0, 3, 1, 4)


def not_to_search():
    """Over; at a chance node; of imperfect information; of more players, or of none in turn."""
    pig = pyspiel.load_game("pig").new_initial_state()
    pig.apply_action(0)
    return [
        after(0, 3, 1, 4, 2),
        pig,
        pyspiel.load_game("kuhn_poker").new_initial_state().child(0).child(1),
        pyspiel.load_game("pig(players=3)").new_initial_state(),
        pyspiel.load_game("matrix_mp").new_initial_state(),
        board(),
    ]


def not_to_answer():
    """What a policy for `board()` cannot be asked about: also what other games search."""
    return [*not_to_search(), pyspiel.load_game("connect_four").new_initial_state()]


def bad_evaluators():
    return [(lambda state, answer=answer: answer) for answer in (None, math.nan, math.inf, "1", True, [0.5])]


def bad_orderings():
    return [
        lambda state, actions: None,
        lambda state, actions: actions[1:],
        lambda state, actions: [*actions[1:], "x"],
        lambda state, actions: [*actions[1:], None],
        lambda state, actions: [actions[1], *actions[1:]],
        lambda state, actions: list(map(float, actions)),
        lambda state, actions: 3,
    ]


def _depth_first(search, **options):
    def make():
        given = {"state": in_progress(), "budget": SearchBudget(depth=3), "evaluator": lambda state: 0.0}
        return search, given | options

    name = search.__name__
    more = {
        "state": not_to_search,
        "budget": [SimulationBudget(10), SearchBudget, 3],
        "evaluator": bad_evaluators,
        "ordering": bad_orderings,
        "position_key": [lambda state: [1], lambda state: {}],
    }
    good_call(f"{_FACE}:{name}", more=more)(make)


_depth_first(minimax)
_depth_first(negamax)
for _search in (alpha_beta, principal_variation_search):
    _depth_first(
        _search,
        ordering=lambda state, actions: actions[::-1],
        position_key=str,
        iterative_deepening=True,
        all_scores=True,
    )


@good_call(f"{_FACE}:mcts", more={"state": not_to_search, "evaluator": bad_evaluators})
def _():
    budget = SimulationBudget(20)
    return mcts, {"state": in_progress(), "budget": budget, "c": 1.4, "evaluator": lambda s: 0.0, "seed": 1}


# A limit that is never reached is one.
@good_call(f"{_FACE}:SearchBudget", more={"depth": [0]})
def _():
    return SearchBudget, {"depth": 3, "nodes": 100, "seconds": 1.0}


def _other_games():
    return ["tic_tac_toe", pyspiel.load_game("pig(players=3)"), pyspiel.load_game("matrix_mp")]


def policy():
    return SearchPolicy(board(), functools.partial(minimax, budget=SearchBudget(depth=2)), position_key=str)


@good_call(f"{_FACE}:SearchPolicy", more={"game": _other_games})
def _():
    search = functools.partial(minimax, budget=SearchBudget(depth=2))
    return SearchPolicy, {"game": board(), "search": search, "scored": search, "position_key": str}


@good_call(
    f"{_FACE}:SearchPolicy.action_probabilities", more={"state": not_to_answer, "player_id": [1, True]}
)
def _():
    return policy().action_probabilities, {"state": in_progress(), "player_id": 0}


@good_call(f"{_FACE}:SearchPolicy.scores", more={"state": not_to_answer})
def _():
    return policy().scores, {"state": in_progress()}


@good_call(f"{_FACE}:SoftmaxPolicy", more={"game": _other_games, "temperature": [0.0]})
def _():
    return SoftmaxPolicy, {"game": board(), "policy": policy(), "temperature": 1.0}


@good_call(
    f"{_FACE}:SoftmaxPolicy.action_probabilities", more={"state": not_to_answer, "player_id": [1, True]}
)
def _():
    softmax = SoftmaxPolicy(board(), policy(), 1.0)
    return softmax.action_probabilities, {"state": in_progress(), "player_id": 0}


# Other games' states are refused by the policy, which says so itself: a bot may be any policy's.
def nobody_to_move():
    return not_to_search()[:2]


for _method in ("get_policy", "step", "step_with_policy"):

    @good_call(f"{_FACE}:SearchBot.{_method}", more={"state": nobody_to_move})
    def _(method=_method):
        return getattr(SearchBot(policy()), method), {"state": in_progress()}


# A bot is told what has happened and keeps nothing of it, whatever it is.
@good_call(f"{_FACE}:SearchBot.restart_at", fine={"state": ...})
def _():
    return SearchBot(policy()).restart_at, {"state": in_progress()}


@good_call(f"{_FACE}:SearchBot.inform_action", fine=dict.fromkeys(("state", "player_id", "action"), ...))
def _():
    return SearchBot(policy()).inform_action, {"state": in_progress(), "player_id": 0, "action": 2}


for _known in (default_evaluator, default_ordering, default_position_key):

    @good_call(f"{_FACE}:{_known.__name__}")
    def _(known=_known):
        return known, {"game": board()}
