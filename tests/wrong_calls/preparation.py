"""Calls that work: one side prepares; entropy bounds."""

import functools
import math

import numpy as np
import pyspiel

from precomp_games import HistoryTree, MixturePolicy
from precomp_games.algorithms import (
    Decisions,
    EntropyBounds,
    MetaStrategy,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    confirmed_precomputation,
    entropy_lower_bound,
    every_visit_exchange,
    every_visit_policy,
    every_visit_utility,
    judge_book,
    memory_frontier,
    precomputation_plan,
    theorem_2_bound,
    value_against_components,
)
from tests.random_games import random_policy, random_tree
from tests.wrong_calls import good_call
from tests.wrong_calls.core import kuhn_tree

_FACE = "precomp_games.algorithms:"


@functools.cache
def game():
    """Of perfect information."""
    return random_tree(3, depth=5)


@functools.cache
def tree(sigma=2, penalties=(0.001, 0.001), **options):
    return HistoryTree.from_game(
        game(),
        sigma_pre=random_policy(1),
        sigma=random_policy(sigma),
        penalties=penalties,
        truncate="none",
        **options,
    )


@functools.cache
def evaluated_tree():
    """That only player 0 can prepare on, and that knows no strategies."""
    return tree(penalties=(0.001, math.inf), stop_value="evaluate")


def rival(sigma=2, player=1):
    return MetaStrategy.of_set(tree(sigma), player, [])


def other_games():
    """Games outside of the model, or of imperfect information."""
    return [
        pyspiel.load_game("kuhn_poker"),
        pyspiel.load_game("kuhn_poker(players=3)"),
        pyspiel.load_game("matrix_rps"),
        pyspiel.load_game("tic_tac_toe").new_initial_state(),
        "tic_tac_toe",
    ]


def other_opponents():
    """Strategies that are not player 1's on `tree()`, and what is none."""
    return [rival(player=0), rival(sigma=3), rival().memorize, random_policy(2), (rival(player=0), rival())]


def bad_policies():
    """Policies whose answers are none, or no distributions, or illegal."""
    return [
        lambda state: {},
        lambda state: {state.legal_actions()[0]: math.nan},
        lambda state: {state.legal_actions()[0]: 0.5},
        lambda state: {10**6: 1.0},
        lambda state: {"a": 1.0},
        lambda state: 1.0,
        lambda state: None,
    ]


def known(count=2):
    return np.flatnonzero(tree().entry_player == 0)[:count]


_KEPT = {"keep": [known(1)]}  # fewer of them are as good
_TREES = [None, "tree.npz", game()]
_TREE = {"tree": _TREES}


@good_call(
    f"{_FACE}best_precomputation",
    # More than there is to memorize: everything that pays.
    fine={"budget": [10**30], "time_limit": [0.5]} | _KEPT,
    more={"opponent": other_opponents, "price": ["positions"]},
)
def _():
    return best_precomputation, {
        "tree": tree(),
        "player": 0,
        "price": np.arange(tree().num_infosets),
        "budget": 3,
        "keep": known(),
        "opponent": rival(),
        "time_limit": 10.0,
    }


@good_call(
    f"{_FACE}precomputation_plan",
    # More than there is to memorize: everything that pays.
    fine={"time_limit": [0.5], "budgets": [(1, 2, 3)]} | _KEPT,
    more=_TREE | {"opponent": other_opponents, "budgets": [[2, 1], []]},
)
def _():
    return precomputation_plan, {
        "tree": tree(),
        "player": 0,
        "budgets": [1, 2],
        "price": np.arange(tree().num_infosets),
        "keep": known(),
        "opponent": rival(),
        "time_limit": 10.0,
    }


def book():
    return best_precomputation(tree(), 0)


_BOOKS = {"book": lambda: [tree(), rival()]}
_PAIRS = {"sigma": [[random_policy(1)] * 3, ("uniform", None)]}


@good_call(f"{_FACE}every_visit_policy", more=_BOOKS | _PAIRS)
def _():
    return every_visit_policy, {"book": book(), "position_key": str, "sigma": random_policy(2)}


@good_call(
    f"{_FACE}every_visit_exchange",
    more=_BOOKS
    | _PAIRS
    | {"sigma": [*_PAIRS["sigma"], (None, random_policy(2))], "max_positions": [0, 3], "max_exchanges": [-1]},
)
def _():
    return every_visit_exchange, {
        "book": book(),
        "position_key": str,
        "sigma": random_policy(2),
        "max_positions": 10_000,
        "max_exchanges": 2,
    }


@good_call(
    f"{_FACE}every_visit_utility",
    more=_BOOKS | _PAIRS | {"sigma": [*_PAIRS["sigma"], (None, random_policy(2))]},
)
def _():
    return every_visit_utility, {
        "book": book(),
        "position_key": str,
        "sigma": random_policy(2),
        "leaf_value": "exact",
    }


@good_call(f"{_FACE}judge_book", more={"opponent": other_opponents, "own_entries": [rival(), [10**6]]})
def _():
    return judge_book, {
        "tree": tree(),
        "player": 0,
        "memorization_set": book().memorization_set.tolist(),
        "own_entries": [],
        "learn": 3,
        "opponent": rival(),
    }


@good_call(f"{_FACE}BestPrecomputation.policy", more={"sigma": [[random_policy(1)] * 3, ("uniform", None)]})
def _():
    return best_precomputation(tree(), 0).policy, {"sigma": random_policy(2)}


@good_call(f"{_FACE}Decisions.against", more=_TREE | {"opponent": other_opponents})
def _():
    return Decisions.against, {"tree": tree(), "player": 0, "opponent": rival()}


@good_call(f"{_FACE}Decisions.best", fine={"penalty": [math.inf, 0.5]})
def _():
    return Decisions.against(tree(), 0).best, {"penalty": 0.1}


@good_call(f"{_FACE}Decisions.value", fine={"penalty": [math.inf, 0.5]})
def _():
    return Decisions.against(tree(), 0).value, {"memorize": np.zeros(tree().num_infosets), "penalty": 0.1}


@good_call(f"{_FACE}memory_frontier", fine=_KEPT, more=_TREE | {"opponent": other_opponents})
def _():
    return memory_frontier, {
        "tree": tree(),
        "player": 0,
        "price": np.arange(tree().num_infosets),
        "keep": known(),
        "opponent": rival(),
    }


@good_call(
    f"{_FACE}value_against_components", more={"found": lambda: [tree(), best_precomputation(tree(), 0)]}
)
def _():
    mixture = MixturePolicy([random_policy(2), random_policy(3)])
    pair, never = (random_policy(2), mixture), (0.001, math.inf)
    against = HistoryTree.from_game(game(), sigma_pre=random_policy(1), sigma=pair, penalties=never)
    return value_against_components, {"found": best_precomputation(against, 0)}


@good_call(f"{_FACE}MemoryFrontier.at", more={"penalty": [0.0009]})
def _():
    return memory_frontier(tree(), 0).at, {"penalty": 0.01}


@good_call(f"{_FACE}MemoryFrontier.memorize", more={"k": [10**6]})
def _():
    return memory_frontier(tree(), 0).memorize, {"k": 1}


@good_call(
    f"{_FACE}MemoryFrontier.upper_bound",
    fine={"size": [0.5, (1, 2, 3), [2.5]]},  # the curve is one of real numbers
    more={"size": [[1, -1], [[1], [1, 2]], [True], 1j]},
)
def _():
    return memory_frontier(tree(), 0).upper_bound, {"size": 2.5}


@good_call(
    f"{_FACE}certified_precomputation",
    more={
        "game": other_games,
        "sigma_pre": bad_policies,
        "sigma": lambda: [*bad_policies(), (random_policy(1), None), (None, random_policy(1))],
    },
)
def _():
    return certified_precomputation, {
        "game": game(),
        "sigma_pre": random_policy(1),
        "sigma": random_policy(2),
        "penalty": 0.05,
        "player": 0,
        "epsilon": 2.5,
        "delta": 0.1,
        "max_rollouts": 1000,
        "position_key": str,
        "min_probability": 1e-6,
        "seed": 1,
        "progress": lambda *_: None,
    }


def _evaluation(state):
    return 0.5


@good_call(
    f"{_FACE}best_first_precomputation",
    more={
        "game": other_games,
        "sigma_pre": bad_policies,
        "sigma": lambda: [*bad_policies(), (random_policy(1), None), ("uniform", random_policy(1))],
        "evaluator": [lambda s: math.nan, lambda s: "a", lambda s: None, lambda s: [0.5], lambda s: 10.0],
    },
)
def _():
    return best_first_precomputation, {
        "game": game(),
        "sigma_pre": random_policy(1),
        "sigma": random_policy(2),
        "penalty": 0.05,
        "player": 0,
        "evaluator": _evaluation,
        "gap": 0.01,
        "batch": 4,
        "max_evaluations": 1000,
        "position_key": str,
        "min_probability": 1e-6,
        "progress": lambda *_: None,
    }


@good_call(
    f"{_FACE}confirmed_precomputation",
    fine={"seed": [10**30, [1], (1, 2, 3)]},
    more={
        "game": other_games,
        "sigma_pre": bad_policies,
        "sigma": lambda: [*bad_policies(), (random_policy(1), None), ("uniform", random_policy(1))],
        "evaluator": [lambda s: math.nan, lambda s: "a", lambda s: None, lambda s: [0.5]],
    },
)
def _():
    return confirmed_precomputation, {
        "game": game(),
        "sigma_pre": random_policy(1),
        "sigma": random_policy(2),
        "penalty": 0.05,
        "player": 0,
        "evaluator": _evaluation,
        "budget": 3,
        "games": 4,
        "promise_games": 100,
        "precision": 0.1,
        "rounds": 2,
        "prior_games": 5.0,
        "inherited": 0.5,
        "batch": 4,
        "max_evaluations": 1000,
        "position_key": str,
        "min_probability": 1e-6,
        "seed": 1,
        "progress": lambda *_: None,
    }


# -- entropy bounds ----------------------------------------------------------------------------------


@functools.cache
def bounds():
    return EntropyBounds(tree(), 0)


@good_call(
    f"{_FACE}EntropyBounds",
    more={
        "tree": lambda: [*_TREES, kuhn_tree()],
        "opponent": other_opponents,
        "utilities": [(0.0, 0.5), (2.0, -1.0), (0.0, math.inf), (1.0, 1.0), (False, True), (-1.0,)],
    },
)
def _():
    arguments = {"tree": tree(), "player": 0, "opponent": rival(), "utilities": (-1.0, 2.0)}
    return EntropyBounds, arguments


_NUMBER = {"v": [-1, 0.5, -0.25]}  # advantages, in utility


@good_call(f"{_FACE}EntropyBounds.construct", fine=_NUMBER | {"epsilon": [0.5]}, more={"v": [-1.5]})
def _():
    return bounds().construct, {"v": 0.25, "epsilon": 0.25}


@good_call(
    f"{_FACE}EntropyBounds.leading_to",
    fine={"histories": [(1, 2, 3)]},
    more={"histories": lambda: [[tree().num_histories], [-1], [1.0], [True]]},
)
def _():
    return bounds().leading_to, {"histories": bounds().lines(0.5).histories.tolist()}


@good_call(
    f"{_FACE}EntropyBounds.utility",
    more={"memorization_set": lambda: [best_set()[1:], [1.0], [True], [tree().num_infosets], [-1]]},
)
def _():
    return bounds().utility, {"memorization_set": best_set()}


def best_set():
    return best_precomputation(tree(), 0).memorization_set.tolist()


_COUNT = {"moves": [10**30]}


@good_call(
    f"{_FACE}entropy_lower_bound",
    fine={"value": [0.5], "v": [0.5], "p_norm": [0.5], "penalty": [0.5]} | _COUNT,
    more={"value": [1.5], "v": [1.5], "p_norm": [1.5], "penalty": [0.0], "moves": [0, 3.0]},
)
def _():
    return entropy_lower_bound, {"value": 0.25, "v": 0.9, "p_norm": 1.0, "penalty": 0.001, "moves": 4}


@good_call(
    f"{_FACE}theorem_2_bound",
    fine={"value": [0.5], "v": [0.5], "penalty": [0.5]} | _COUNT,
    more={"value": [1.5], "v": [1.5], "penalty": [0.0], "moves": [0, 3.0]},
)
def _():
    return theorem_2_bound, {"value": 0.25, "v": 0.9, "penalty": 0.001, "moves": 4}
