"""The arguments of `HistoryTree.from_game` that are refused, and the games outside of its model."""

import math

import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy

from precomp_games.algorithms import best_precomputation
from tests.oracles.games import first, last, random_policy, tree_type, uniform
from tests.oracles.trees import efg, from_game

_BOARD = {"game": "tic_tac_toe", "penalties": (0.01, math.inf)}
_FLAT = {"leaf_value": lambda state: 0.0}
_JOINED = "expected position_key to join only states that play the same, got '"
_UNHASHABLE = r"expected position_key to give something hashable, got \[\] at history ''"
_LEDUC = openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_histories": 10}, r"expected at most max_histories=10 histories, got more at level \d"),
        ({"max_histories": 1}, "expected at most max_histories=1 histories, got more at level 1"),
        (
            _BOARD | {"penalties": (0.5, math.inf), "max_histories": 1000},
            "expected at most max_histories=1000 states",
        ),
        ({"stop_value": "evaluate"}, "expected one player with an infinite penalty for"),
        ({"sigma_pre": None}, r"expected a policy as sigma_pre\[\d\], which plays at history '.*', got None"),
        ({"sigma": None}, r"expected a policy as sigma\[\d\], which plays .* got None"),
        ({"sigma": (uniform, None)}, r"expected a policy as sigma\[1\], which plays .* got None"),
        (
            {"game": "kuhn_poker", "sigma": _LEDUC},
            r"expected sigma\[0\] to know the states .* of kuhn_poker\(\), got KeyError: '0'; is it a ",
        ),
        ({"position_key": lambda state: 0}, _JOINED[:-1]),
        # Different legal actions; a policy that looks at the history; information states that differ.
        (_BOARD | _FLAT | {"position_key": lambda state: len(state.history())}, _JOINED),
        (_BOARD | _FLAT | {"sigma": random_policy(1), "position_key": str}, _JOINED),
        ({"game": "kuhn_poker", "position_key": lambda s: (len(s.history()), str(s)[:2])}, _JOINED),
        ({"position_key": lambda state: state.history()}, _UNHASHABLE),
        ({"position_key": lambda state: state.history()} | _FLAT, _UNHASHABLE),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): " + words):
        from_game(**arguments)


def test_a_position_key_for_policies_that_look_at_no_more():
    policy = random_policy(1, "partial", "position")
    from_game(**_BOARD, **_FLAT, sigma_pre=policy, sigma=policy, position_key=str)


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
@pytest.mark.parametrize("name", ["sigma_pre", "sigma"])
@pytest.mark.parametrize("player", [0, 1])
def test_bad_policies(row, words, name, player):
    policies = [uniform, uniform]
    policies[player] = lambda state: row
    with pytest.raises(ValueError, match=rf"{name}\[{player}\] .*{words}.* got "):
        from_game(**{name: policies})


@pytest.mark.parametrize("answered", [lambda rows: rows[:-1], lambda rows: rows * 2])
def test_batches_of_the_wrong_length(answered):
    class Policy:
        def action_probabilities_batch(self, states):
            return answered([uniform(state) for state in states])

    with pytest.raises(ValueError, match=r"from_game\(\): expected sigma\[0\] to answer \d+ states"):
        from_game(sigma=(Policy(), uniform))


# -- games -----------------------------------------------------------------------------------------


def _sampled():
    """Chance outcomes that cannot be listed; never expanded."""
    sampled = pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
    kind = tree_type("python_test_sampled_tree", sampled, {})
    return pyspiel.Game(kind, pyspiel.GameInfo(2, 2, 2, -1.0, 2.0, 1.0, 3), {})


_ONE, _TWO = ('t "" 1 "" { 1 -1 }', 't "" 2 "" { -1 1 }')
_FORGETFUL = [
    'p "" 1 1 "" { "a" "b" } 0',
    'p "" 1 2 "" { "c" "d" } 0',
    _ONE,
    _TWO,
    'p "" 1 2 "" { "c" "d" } 0',
    _TWO,
    _ONE,
]
_ABSENT_MINDED = ['p "" 1 1 "" { "a" "b" } 0'] * 2 + [_ONE, _TWO, 't "" 3 "" { 0 0 }']
# Player 1 learns chance's move, and forgets it.
_FORGETS_WHAT_IT_SAW = [
    'c "" 1 "" { "l" 0.5 "r" 0.5 } 0',
    'p "" 1 1 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    _ONE,
    _TWO,
    'p "" 1 2 "" { "a" } 0',
    'p "" 1 3 "" { "c" "d" } 0',
    _TWO,
    _ONE,
]


@pytest.mark.parametrize(
    ("game", "words"),
    [
        (lambda: "kuhn_poker(players=3)", "expected a two-player game, .* 3 players"),
        (lambda: "blackjack", "expected a two-player game, .* 1 players"),
        (_sampled, "expected explicit chance nodes, got python_test_sampled_tree"),
        (lambda: "dark_chess", "expected information state strings, got dark_chess"),
        (lambda: "phantom_go(board_size=3)", "expected information state strings"),
        (lambda: efg(*_FORGETFUL), "perfect recall, got efg_game, where player 0 forg"),
        (lambda: efg(*_ABSENT_MINDED), "perfect recall, got efg_game, where player 0"),
        (lambda: efg(*_FORGETS_WHAT_IT_SAW), "perfect recall, got efg_game"),
    ],
)
@pytest.mark.parametrize("penalties", [0.01, (0.01, math.inf)])
def test_games_outside_the_model(game, words, penalties):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): .*" + words):
        from_game(game=game(), penalties=penalties, **_FLAT)


@pytest.mark.parametrize(
    "name", ["phantom_ttt_ir", "liars_dice_ir(dice_sides=3,numdice=1)", "dark_hex_ir(board_size=2)"]
)
def test_openspiels_games_of_imperfect_recall(name):
    with pytest.raises(ValueError, match=rf"perfect recall, got {name.split('(')[0]}, where pl"):
        from_game(game=name, penalties=0.001, **_FLAT)


@pytest.mark.xfail(reason="recall is checked only where the player may still memorize on every way there")
def test_what_is_forgotten_from_beyond_w():
    # The turn after "r" is cut, so the last one is grouped by its history after "l" alone; the book is then
    # played after "r" too, and earns 0.8 instead of the 1.0 that it claims.
    lines = [line.replace('"l" 0.5 "r" 0.5', '"l" 0.9 "r" 0.1') for line in _FORGETS_WHAT_IT_SAW]
    with pytest.raises(ValueError, match="expected a game with perfect recall"):
        from_game(game=efg(*lines), sigma_pre=first, sigma=last, penalties=(0.3, math.inf))


@pytest.mark.parametrize("game", ["bargaining", "matrix_pd"])
@pytest.mark.parametrize("penalties", [0.01, math.inf])
def test_games_of_general_sum_are_for_one_preparing_player(game, penalties):
    words = r"constant-sum game, got .*; those of any sum are for best_response"
    with pytest.raises(ValueError, match=words):
        from_game(game=game, sigma_pre=first, penalties=penalties)


def test_a_simultaneous_game_is_made_sequential():
    tree = from_game(game="matrix_mp", sigma_pre=first, penalties=(0.1, math.inf))
    tree.check()
    assert tree.num_infosets == 1
    assert best_precomputation(tree, 0).unprepared == pytest.approx(0.0)
