"""The arguments of `HistoryTree.from_game` that are refused, and the games outside of its model."""

import itertools
import math

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation
from tests.oracles.games import expand, first, last, random_policy, tree_type, uniform
from tests.oracles.trees import board_of, by_board, efg, from_game


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


# -- games ---------------------------------------------------------------------------------------------


def _sampled():
    """Chance outcomes that cannot be listed; never expanded."""
    sampled = pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    kind = tree_type("python_test_sampled_tree", sampled, {})
    return pyspiel.Game(kind, pyspiel.GameInfo(2, 2, 2, -1.0, 2.0, 1.0, 3), {})


_GENERAL_SUM = ['p "" 1 1 "" { "a" "b" } 0', 't "" 1 "" { 1 1 }', 't "" 2 "" { 0 1 }']


_FORGETFUL = [
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 2 "" { "c" "d" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    'p "" 1 2 "" { "c" "d" } 0',
    't "" 2 "" { -1 1 }',
    't "" 1 "" { 1 -1 }',
]


_ABSENT_MINDED = [
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 1 "" { "a" "b" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    't "" 3 "" { 0 0 }',
]


# Player 1 learns chance's move, and forgets it.
_FORGETS_WHAT_IT_SAW = [
    'c "" 1 "" { "l" 0.5 "r" 0.5 } 0',
    'p "" 1 1 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    't "" 1 "" { 1 -1 }',
    't "" 2 "" { -1 1 }',
    'p "" 1 2 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    't "" 2 "" { -1 1 }',
    't "" 1 "" { 1 -1 }',
]


@pytest.mark.parametrize(
    ("game", "words"),
    [
        (lambda: pyspiel.load_game("kuhn_poker(players=3)"), "expected a two-player game, .* 3 players"),
        (lambda: pyspiel.load_game("blackjack"), "expected a two-player game, .* 1 players"),
        (_sampled, "expected explicit chance nodes, got python_test_sampled_tree"),
        (lambda: pyspiel.load_game("dark_chess"), "expected information state strings, got dark_chess"),
        (lambda: pyspiel.load_game("phantom_go(board_size=3)"), "expected information state strings"),
        (
            lambda: efg(*_FORGETFUL),
            "expected a game with perfect recall, got efg_game, where player 0 forg",
        ),
        (
            lambda: efg(*_ABSENT_MINDED),
            "expected a game with perfect recall, got efg_game, where player 0",
        ),
        (lambda: efg(*_FORGETS_WHAT_IT_SAW), "expected a game with perfect recall, got efg_game"),
    ],
)
@pytest.mark.parametrize("penalties", [0.01, (0.01, math.inf)])
def test_games_outside_the_model(game, words, penalties):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): .*" + words):
        expand(game(), uniform, uniform, penalties, leaf_value=lambda s: 0.0)


@pytest.mark.parametrize(
    "name", ["phantom_ttt_ir", "liars_dice_ir(dice_sides=3,numdice=1)", "dark_hex_ir(board_size=2)"]
)
def test_openspiels_games_of_imperfect_recall(name):
    game = pyspiel.load_game(name)
    kind = game.get_type().short_name
    with pytest.raises(
        ValueError, match=rf"^HistoryTree.from_game\(\): .* perfect recall, got {kind}, where pl"
    ):
        expand(game, uniform, uniform, 0.001, leaf_value=lambda s: 0.0)


@pytest.mark.xfail(reason="recall is checked only where the player may still memorize on every way there")
def test_what_is_forgotten_from_beyond_w():
    # The turn after "r" is cut, so the last one is grouped by its history after "l" alone; the book is then
    # played after "r" too, and earns 0.8 instead of the 1.0 that it claims.
    lines = [line.replace('"l" 0.5 "r" 0.5', '"l" 0.9 "r" 0.1') for line in _FORGETS_WHAT_IT_SAW]
    with pytest.raises(ValueError, match="expected a game with perfect recall"):
        HistoryTree.from_game(efg(*lines), sigma_pre=first, sigma=last, penalties=(0.3, math.inf))


@pytest.mark.parametrize("game", [efg(*_GENERAL_SUM), "bargaining", "matrix_pd"])
@pytest.mark.parametrize("penalties", [0.01, math.inf])
def test_games_of_general_sum_are_for_one_preparing_player(game, penalties):
    with pytest.raises(
        ValueError, match=r"constant-sum game, got .*; those of any sum are for best_response"
    ):
        HistoryTree.from_game(game, sigma_pre=first, sigma=uniform, penalties=penalties)


def test_a_simultaneous_game_is_made_sequential():
    game = pyspiel.load_game("matrix_mp")
    tree = HistoryTree.from_game(game, sigma_pre=first, sigma=uniform, penalties=(0.1, math.inf))
    tree.check()
    assert tree.num_infosets == 1
    assert best_precomputation(tree, 0).unprepared == pytest.approx(0.0)
