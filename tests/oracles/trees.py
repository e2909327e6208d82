"""Shared by the tests of the history tree: policies, games, and trees of every kind."""

import functools
import itertools
import math

import numpy as np
import pyspiel

from precomp_games import HistoryTree
from tests.oracles.games import EfgText, expand, policy_pairs, random_efg, random_tree, uniform


def board_of(state):
    return state.observation_string(0)


def by_board(seed, most=9):
    """Return a random policy of tic-tac-toe that depends on the board, with at most so many actions."""

    @functools.cache
    def row(board, actions):
        rng = np.random.default_rng([seed, *board.encode()])
        weights = rng.dirichlet(np.ones(len(actions)))
        weights[rng.permutation(len(actions))[most:]] = 0.0
        return dict(zip(actions, (weights / weights.sum()).tolist(), strict=True))

    return lambda state: row(board_of(state), tuple(state.legal_actions()))


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


KINDS = {
    "random": lambda **a: expand(random_tree(3, depth=6), *policy_pairs(3), (0.01, 0.02), **a),
    "evaluated": lambda **a: expand(
        random_tree(4, depth=6),
        *policy_pairs(4),
        (0.01, math.inf),
        leaf_value=lambda s: 0.5,
        stop_value="evaluate",
        **a,
    ),
    "never": lambda **a: expand(random_tree(3), *policy_pairs(3), math.inf, **a),
    "everything": lambda **a: expand(random_tree(3), *policy_pairs(3), 0.3, truncate="none", **a),
    "one": lambda **a: expand(random_tree(3), *policy_pairs(3, "partial"), (math.inf, 0.02), **a),
    "pure": lambda **a: expand(random_tree(8, depth=6), *policy_pairs(8, "pure"), 0.02, **a),
    "kuhn": lambda **a: expand(
        pyspiel.load_game("kuhn_poker"), *policy_pairs(1, by="infoset"), (0.05, 0.01), **a
    ),
    "leduc": lambda **a: expand(
        pyspiel.load_game("leduc_poker"), *policy_pairs(1, "partial", "infoset"), (0.1, 0.5), **a
    ),
    "efg": lambda **a: expand(random_efg(5, depth=5), *policy_pairs(5, by="infoset"), (0.05, 0.05), **a),
    "uneven": lambda **a: expand(uneven_efg(2), *policy_pairs(2, by="infoset"), (0.01, 0.2), **a),
    "positions": lambda **a: expand(
        pyspiel.load_game("tic_tac_toe"),
        by_board(1, 2),
        by_board(2, 3),
        (0.01, 0.05),
        position_key=board_of,
        **a,
    ),
    "terminal": lambda **a: expand(random_tree(1, depth=0), *policy_pairs(1), 0.1, **a),
}


@functools.cache
def tree_of(kind):
    return KINDS[kind]()


PERFECT = ["random", "evaluated", "never", "everything", "one", "pure", "positions", "terminal"]


def from_game(**arguments):
    given = {"sigma_pre": uniform, "sigma": uniform, "penalties": 0.1} | arguments
    return HistoryTree.from_game(random_tree(3), **given)
