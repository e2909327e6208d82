"""Games to solve, and OpenSpiel's linear program beside them."""

import functools

import pyspiel
from open_spiel.python.algorithms import sequence_form_lp

from tests.random_games import EfgText, random_efg, random_tree

SMALL = (
    "kuhn_poker",
    "leduc_poker",
    "liars_dice(dice_sides=2)",
    "goofspiel(num_cards=3,imp_info=True)",
    "goofspiel(num_cards=3,imp_info=True,points_order=descending)",
    "oshi_zumo(coins=3,size=1,horizon=3)",
    "dark_hex(board_size=2)",
    "blotto(players=2,coins=4,fields=2)",
    "coordinated_mp",
    "matrix_rpsw",
    "mnk(m=2,n=2,k=2)",
    "nim(pile_sizes=1;2;3)",
)


@functools.cache
def game_of(name: str) -> pyspiel.Game:
    """A game whose players take turns."""
    return pyspiel.load_game_as_turn_based(name)


def constant_sum() -> pyspiel.Game:
    """Utilities that add up to 10, a turn with one action, and an outcome of chance that never comes."""
    text = EfgText()
    text.chance({"a": "0.5", "b": "0.5", "never": "0"})
    for k, payoffs in enumerate([(1, 9, 8, 2), (7, 3, 4, 6), (9, 1, 2, 8)]):
        text.move(1, 1 + k, ["only"])
        text.move(1, 4 + k, ["l", "r"])
        for half in (0, 1):
            text.move(2, 1, ["x", "y"])
            for one in payoffs[2 * half : 2 * half + 2]:
                text.leaf(one, 10 - one)
    return text.game()


def random_game(seed: int) -> pyspiel.Game:
    """Of imperfect information, or perfect and of constant sum."""
    if seed % 4 == 3:
        return random_tree(seed, depth=4, actions=3, chance=0.3)
    return random_efg(seed, depth=3 + seed % 4, actions=2 + seed % 2)


def linear_program(game: pyspiel.Game) -> float:
    """The value to player 0 by OpenSpiel's."""
    return float(sequence_form_lp.solve_zero_sum_game(game)[0])
