"""What the tests of preparation share: one player's trees, sets and evaluations, and what play is worth."""

import math
import zlib

import numpy as np
from open_spiel.python.algorithms import expected_game_score

from precomp_games import HistoryTree
from tests import reference

TINY = 1e-9  # a penalty that cuts nothing
SUPPORTS = ("full", "partial", "pure")


def sides(player, own, other):
    """A pair: what is the player's, and what is the other one's."""
    return (own, other) if player == 0 else (other, own)


def one_sided(game, player, pre, sigma, penalty=TINY, **options):
    """A tree on which one player prepares; `pre` is a pair, or that player's alone."""
    return HistoryTree.from_game(
        game,
        sigma_pre=pre if isinstance(pre, tuple) else sides(player, pre, None),
        sigma=sigma,
        penalties=sides(player, penalty, math.inf),
        **options,
    )


def all_sets(game, player, pre, sigma, most=150):
    """{prefix-closed set: the player's utility}, each played out; empty where there are more than `most`."""
    parents = reference.predecessors(game, player)
    if reference.count_prefix_closed_sets(parents) > most:
        return {}
    sets = list(reference.prefix_closed_sets(parents))
    return dict(zip(sets, reference.own_utilities(game, player, sets, pre, sigma).tolist(), strict=True))


def names_of(tree, player, entries):
    """The information states of entries, as the reference calls them."""
    histories = tree.infoset_history[tree.entry_infoset[np.asarray(entries, int)]].tolist()
    return frozenset(reference.information_state(tree.game, tree.state(h), player) for h in histories)


def evaluation(seed):
    """An arbitrary function of the position, with values among the utilities of `random_tree`."""

    def evaluate(state):
        return -1.0 + 3.0 * (zlib.crc32(f"{seed}:{state}".encode()) % 1000) / 1000.0

    return evaluate


def scored(game, player, policy):
    """What a policy, which plays for both, is worth to a player, by OpenSpiel."""
    return float(expected_game_score.policy_value(game.new_initial_state(), [policy, policy])[player])
