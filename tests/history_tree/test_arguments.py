"""The arguments of `HistoryTree.from_game` that are refused."""

import itertools
import math

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree
from tests.oracles.games import expand, last, random_policy, uniform
from tests.oracles.trees import board_of, by_board, from_game


def test_exact_values_are_bounded_too():
    game = pyspiel.load_game("tic_tac_toe")
    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected at most max_histories=1000 states"
    ):
        expand(game, uniform, uniform, (0.5, math.inf), max_histories=1000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_histories": 10}, r"expected at most max_histories=10 histories, got more at level \d"),
        ({"max_histories": 1}, "expected at most max_histories=1 histories, got more at level 1"),
        ({"stop_value": "evaluate"}, "expected one player with an infinite penalty for"),
        ({"sigma_pre": None}, r"expected a policy as sigma_pre\[\d\], which plays at history '.*', got None"),
        ({"sigma": None}, r"expected a policy as sigma\[\d\], which plays .* got None"),
        ({"sigma": (uniform, None)}, r"expected a policy as sigma\[1\], which plays .* got None"),
        ({"position_key": lambda s: 0}, "expected position_key to join only states that play the same, got"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        from_game(**arguments)


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
def test_bad_policies(row, words):
    for name, player in itertools.product(("sigma_pre", "sigma"), (0, 1)):
        policies = [uniform, uniform]
        policies[player] = lambda state: row
        with pytest.raises(ValueError, match=rf"{name}\[{player}\] .*{words}.* got "):
            from_game(**{name: policies})


@pytest.mark.parametrize("answered", [lambda rows: rows[:-1], lambda rows: rows * 2])
def test_batches_of_the_wrong_length(answered):
    class Policy:
        def action_probabilities_batch(self, states):
            return answered([uniform(state) for state in states])

    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected sigma\[0\] to answer \d+ states"
    ):
        from_game(sigma=(Policy(), uniform))


def test_position_keys_that_join_too_much():
    game = pyspiel.load_game("tic_tac_toe")
    words = r"^HistoryTree.from_game\(\): expected position_key to join only states that play the same, got '"

    def joined(policy, key):
        expand(game, policy, policy, (0.01, math.inf), position_key=key, leaf_value=lambda s: 0.0)

    with pytest.raises(ValueError, match=words):  # different legal actions
        joined(uniform, lambda s: len(s.history()))
    # The board is right for the game, not for a policy that looks at the history.
    with pytest.raises(ValueError, match=words):
        joined(random_policy(1), board_of)
    joined(by_board(1), board_of)
    # Information states that differ, with the same legal actions and the same policy.
    with pytest.raises(ValueError, match=words):
        expand(
            pyspiel.load_game("kuhn_poker"),
            uniform,
            uniform,
            0.01,
            position_key=lambda s: (len(s.history()), str(s)[:2]),
        )


@pytest.mark.parametrize("values", ["exact", lambda state: 0.0])
def test_position_keys_that_cannot_be_looked_up(values):
    words = r"expected position_key to give something hashable, got \[\] at history ''"
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        from_game(position_key=lambda state: state.history(), leaf_value=values)


def test_a_policy_of_another_game():
    leduc = openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker"))
    words = r"expected sigma\[0\] to know the states .* of kuhn_poker\(\), got KeyError: '0'; is it a "
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        HistoryTree.from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=last, sigma=leduc, penalties=0.1)
