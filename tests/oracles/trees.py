"""Small games as text, and trees that several tests share."""

import functools
import math

import pyspiel

from precomp_games import HistoryTree
from tests.oracles.games import expand, policy_pairs, random_tree, uniform


def efg(*lines):
    return pyspiel.load_efg_game('EFG 2 R "test" { "one" "two" }\n' + "\n".join(lines) + "\n")


@functools.cache
def tree_of(kind):
    """Return a tree: "random", "evaluated" stops, "kuhn", or "positions" of tic-tac-toe."""
    if kind == "kuhn":
        return expand(pyspiel.load_game("kuhn_poker"), *policy_pairs(1, by="infoset"), (0.05, 0.01))
    if kind == "positions":
        board = pyspiel.load_game("tic_tac_toe")
        return expand(board, *policy_pairs(1, "partial", "position"), (0.05, 0.1), position_key=str)
    game, policies = random_tree(3, depth=6), policy_pairs(3)
    if kind == "random":
        return expand(game, *policies, (0.01, 0.02))
    options = {"leaf_value": lambda state: 0.5, "stop_value": "evaluate"}
    return expand(game, *policies, (0.01, math.inf), **options)


def from_game(game=None, **arguments):
    given = {"sigma_pre": uniform, "sigma": uniform, "penalties": 0.1} | arguments
    return HistoryTree.from_game(random_tree(3) if game is None else game, **given)
