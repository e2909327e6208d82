"""Small games as text, and trees that several tests share."""

import functools
import itertools
import math

import numpy as np
import pyspiel

from precomp_games import HistoryTree
from tests.oracles.games import EfgText, expand, policy_pairs, random_tree, uniform


def board_of(state):
    return str(state)


def efg(*lines):
    return pyspiel.load_efg_game('EFG 2 R "test" { "one" "two" }\n' + "\n".join(lines) + "\n")


def uneven_efg(seed):
    """Imperfect information with information states at several depths.

    Chance decides in secret how many moves player 2 makes before each of player 1's, who sees some of them.
    """
    rng = np.random.default_rng(seed)
    text, names, opponents = EfgText(), {}, itertools.count(1)
    odds = [round(float(x), 4) for x in rng.dirichlet([1.0, 1.0, 1.0])[:2]]
    odds.append(round(1.0 - sum(odds), 4))
    extra = rng.integers(0, 3, size=(3, 2))  # [secret, turn]: player 2's moves before player 1's turn
    tells = rng.random(2) < 0.5  # [turn]: player 1 sees whether player 2's last move was an even one

    def walk(secret, turn, left, mine, seen, last):
        if left:
            text.move(2, next(opponents), "xy")
            for move in (0, 1):
                walk(secret, turn, left - 1, mine, seen, move)
        elif turn == 2:
            text.leaf(round(float(rng.uniform(-2, 2)), 4))
        else:
            seen = (*seen, last if tells[turn] else None)
            text.move(1, names.setdefault((mine, seen), len(names) + 1), "ab")
            for move in (0, 1):
                following = int(extra[secret][1]) if turn == 0 else 0
                walk(secret, turn + 1, following, (*mine, move), seen, None)

    text.chance(dict(enumerate(odds)))
    for secret in range(3):
        walk(secret, 0, int(extra[secret][0]), (), (), None)
    return text.game()


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
