"""The arguments of `HistoryTree.from_game` that are refused."""

import math

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree, make_policy
from tests.history_tree.cases import board_of, by_board, from_game, last, uniform
from tests.random_games import random_policy, random_tree


def test_exact_values_are_bounded_too():
    game = pyspiel.load_game("tic_tac_toe")
    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected at most max_histories=1000 states"
    ):
        HistoryTree.from_game(
            game, sigma_pre=uniform, sigma=uniform, penalties=(0.5, math.inf), max_histories=1000
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stop_value": "both"}, 'expected stop_value to be one of "backup", "evaluate", got \'both\''),
        ({"stop_value": None}, "expected stop_value to be .* got None"),
        ({"truncate": "yes"}, 'expected truncate to be one of "none", "reach", "values", got \'yes\''),
        ({"truncate": None}, "expected truncate .* got None"),
        ({"min_probability": -0.1}, "expected min_probability to be a number from 0 to 0.01, got -0.1"),
        ({"min_probability": 1.0}, "expected min_probability to be a number from 0 to 0.01, got 1.0"),
        ({"min_probability": 0.9}, "expected min_probability to be a number from 0 to 0.01, got 0.9"),
        ({"min_probability": math.nan}, "expected min_probability to be a number from 0 to 0.01, got nan"),
        ({"max_histories": 0}, "expected max_histories to be an integer of at least 1, got 0"),
        ({"max_histories": -5}, "expected max_histories to be an integer of at least 1, got -5"),
        ({"max_histories": 10}, r"expected at most max_histories=10 histories, got more at level \d"),
        ({"max_histories": 1}, "expected at most max_histories=1 histories, got more at level 1"),
        ({"utility_range": 0.0}, "expected utility_range to be a positive, finite number, got 0.0"),
        ({"utility_range": -1.0}, "expected utility_range to be a positive, finite number, got -1.0"),
        ({"utility_range": math.inf}, "expected utility_range to be a positive, finite number, got inf"),
        ({"utility_range": math.nan}, "expected utility_range to be a positive, finite number, got nan"),
        (
            {"stop_value": "evaluate"},
            r"expected one player with an infinite penalty for .* got penalties \(0.1, 0.1\)",
        ),
        ({"leaf_value": "approximate"}, "expected leaf_value to be .* got 'approximate'"),
        ({"sigma": (uniform,) * 3}, "expected sigma to be one value or a pair, got 3 of them"),
        ({"sigma_pre": (uniform,)}, "expected sigma_pre to be one value or a pair, got 1 of them"),
        ({"sigma_pre": 3}, r"expected sigma_pre\[0\] to be an OpenSpiel Policy, .* got 3"),
        (
            {"sigma": (uniform, "uniform")},
            r"expected sigma\[1\] to be an OpenSpiel Policy, .* got 'uniform'",
        ),
        ({"sigma_pre": None}, r"expected a policy as sigma_pre\[\d\], which plays at history '.*', got None"),
        ({"sigma": None}, r"expected a policy as sigma\[\d\], which plays .* got None"),
        ({"sigma": (uniform, None)}, r"expected a policy as sigma\[1\], which plays .* got None"),
        ({"position_key": lambda s: 0}, "expected position_key to join only states that play the same, got"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        from_game(**arguments)


@pytest.mark.parametrize("name", ["sigma_pre", "sigma"])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({0: 0.5}, "to sum to 1"),
        ({0: 0.7, 1: 0.7}, "to sum to 1"),
        ({}, "to sum to 1"),
        ({0: -0.5, 1: 1.5}, r"probabilities in \[0, 1\]"),
        ({0: math.nan, 1: 1.0}, r"probabilities in \[0, 1\]"),
        ({99: 1.0}, "legal actions"),
        ({-1: 1.0}, "legal actions"),
        (None, r"\{action: probability\}"),
        ([1.0, 0.0], r"\{action: probability\}"),
    ],
)
def test_bad_policies(name, player, row, words):
    policies = [uniform, uniform]
    policies[player] = lambda state: row
    expected = (
        rf"^HistoryTree.from_game\(\): expected (the probabilities of )?{name}\[{player}\] .*{words}.* got "
    )
    with pytest.raises(ValueError, match=expected):
        from_game(**{name: policies})


@pytest.mark.parametrize("count", [-1, 1])
def test_batches_of_the_wrong_length(count):
    class Policy:
        def action_probabilities_batch(self, states):
            return (
                [uniform(s) for s in states][:count]
                if count < 0
                else [uniform(s) for s in [*states, *states]]
            )

    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected sigma\[0\] to answer \d+ states"
    ):
        from_game(sigma=(Policy(), uniform))


def test_position_keys_that_join_too_much():
    game = pyspiel.load_game("tic_tac_toe")
    words = r"^HistoryTree.from_game\(\): expected position_key to join only states that play the same, got '"

    def expand(policy, key):
        HistoryTree.from_game(
            game,
            sigma_pre=policy,
            sigma=policy,
            penalties=(0.01, math.inf),
            position_key=key,
            leaf_value=lambda s: 0.0,
        )

    with pytest.raises(ValueError, match=words):  # different legal actions
        expand(uniform, lambda s: len(s.history()))
    # The board is right for the game, not for a policy that looks at the history.
    with pytest.raises(ValueError, match=words):
        expand(random_policy(1), board_of)
    expand(by_board(1), board_of)
    # Information states that differ, with the same legal actions and the same policy.
    with pytest.raises(ValueError, match=words):
        HistoryTree.from_game(
            pyspiel.load_game("kuhn_poker"),
            sigma_pre=uniform,
            sigma=uniform,
            penalties=0.01,
            position_key=lambda s: (len(s.history()), str(s)[:2]),
        )


@pytest.mark.parametrize("values", ["exact", lambda state: 0.0])
def test_position_keys_that_cannot_be_looked_up(values):
    words = r"expected position_key to give something hashable, .* got \[\] at history ''"
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        from_game(position_key=lambda state: state.history(), leaf_value=values)


def test_policies_are_given_by_name():
    # sigma and sigma_pre swapped by position would be a tree of another question.
    with pytest.raises(TypeError, match=r"HistoryTree.from_game\(\) takes 2 positional arguments"):
        HistoryTree.from_game(random_tree(3), uniform, uniform, 0.1)


def test_a_policy_of_another_game():
    leduc = openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker"))
    words = r"expected sigma\[0\] to know the states .* of kuhn_poker\(\), got KeyError: '0'; is it a "
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        HistoryTree.from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=last, sigma=leduc, penalties=0.1)
    cfr = make_policy(pyspiel.load_game("leduc_poker"), "cfr(iterations=1)")
    with pytest.raises(ValueError, match="state of player 0 that the policy was computed for, got '0'"):
        HistoryTree.from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=last, sigma=cfr, penalties=0.1)


def test_an_error_leaves_no_traceback_of_others():
    # One error, not one raised while another was handled.
    with pytest.raises(ValueError) as caught:
        from_game(penalties="x")
    assert caught.value.__context__ is None
