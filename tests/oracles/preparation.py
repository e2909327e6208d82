"""Shared by the tests of preparation: one player's trees, sets and evaluations, and values of play."""

import functools
import itertools
import math
import zlib

import numpy as np
import pytest
from open_spiel.python.algorithms import expected_game_score

from precomp_games.algorithms import MetaStrategy, best_of_frontier, best_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import SUPPORTS, expand, random_menu, random_policy, random_tree, sides

TINY = 1e-9  # a penalty that cuts nothing


def one_sided(game, player, pre, sigma, penalty=TINY, **options):
    """Return a tree on which one player prepares; `pre` is a pair, or that player's alone."""
    return expand(
        game,
        pre if isinstance(pre, tuple) else sides(player, pre, None),
        sigma,
        sides(player, penalty, math.inf),
        **options,
    )


def all_sets(game, player, pre, sigma, most=150):
    """{prefix-closed set: the player's utility}, each played out; empty where there are more than `most`."""
    sets = books.all_sets(game, player, most)
    if not sets:
        return {}
    return dict(zip(sets, books.own_utilities(game, player, sets, pre, sigma).tolist(), strict=True))


def check_frontier(frontier, found):
    """Every penalty at and between bends, beside all sets, [(what they cost, utility)]; how many bends."""
    points = frontier.breakpoints[frontier.breakpoints > frontier.penalty]  # others are rounding
    between = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    ends = [points[0] * 2, max(points[-1] / 2, frontier.penalty)] if len(points) else [0.1]
    for penalty in [*points, *between, *ends]:
        value = max(utility - penalty * size for size, utility in found)
        at = frontier.at(penalty)
        assert at.value == pytest.approx(value, abs=1e-9)
        ties = [size for size, utility in found if utility - penalty * size > value - 1e-10]
        assert at.size == min(ties)
    for size, utility in found:
        assert frontier.upper_bound(size) >= utility - 1e-9
    assert (np.diff(points) < 0.0).all()
    slopes = np.diff(frontier.utilities) / np.diff(frontier.sizes)
    assert slopes == pytest.approx(frontier.breakpoints, abs=1e-9)
    sets = [frozenset(np.flatnonzero(frontier.memorize(k)).tolist()) for k in range(len(frontier.sizes))]
    assert all(smaller <= larger for smaller, larger in itertools.pairwise(sets))
    nothing = frontier.at(math.inf)
    assert nothing.size == 0 and nothing.value == nothing.utility == frontier.unprepared
    return len(points)


def check_budgets(frontier, found, **options):
    """Every budget beside all sets; returns for how many the set is none of the frontier's.

    options: of `best_precomputation`, which finds the same.
    """
    inner = 0
    for budget in [*range(max(size for size, _ in found) + 2), 10**30]:
        best = best_of_frontier(frontier, budget)
        expected = max(utility for size, utility in found if size <= budget)
        assert best.utility == best.value == pytest.approx(expected, abs=1e-9)
        assert best.paid <= budget and best.penalty == 0.0 and best.budget == budget and best.gap < 1e-9
        MetaStrategy.of_set(frontier.tree, frontier.player, best.memorization_set)  # refuses other sets
        assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
        assert best.truncation_loss == 0.0  # nothing was cut
        again = best_precomputation(frontier.tree, frontier.player, budget=budget, **options)
        assert (again.memorization_set == best.memorization_set).all() and again.utility == best.utility
        inner += best.paid not in frontier.sizes
    return inner


def names_of(tree, player, entries):
    """Return the information states of entries, as the reference calls them."""
    histories = tree.infoset_history[tree.entry_infoset[np.asarray(entries, int)]].tolist()
    return frozenset(books.information_state(tree.game, tree.state(h), player) for h in histories)


def evaluation(seed):
    """Return an arbitrary function of the position, with values among the utilities of `random_tree`."""

    def evaluate(state):
        return -1.0 + 3.0 * (zlib.crc32(f"{seed}:{state}".encode()) % 1000) / 1000.0

    return evaluate


def scored(game, player, policy):
    """Return a player's expected score if a policy plays for both, by OpenSpiel."""
    return float(expected_game_score.policy_value(game.new_initial_state(), [policy, policy])[player])


# -- what grows best first, without a history tree -------------------------------------------------------


@functools.cache
def setting(kind, seed):
    """Return (game, sigma_pre, sigma, player), with a policy or a menu to memorize."""
    if kind == "policy":
        game, pre = random_tree(seed, depth=5, actions=3), random_policy(seed, SUPPORTS[seed % 3])
        return game, pre, random_policy(seed + 1000, SUPPORTS[seed % 2]), seed % 2
    game, menu = random_tree(seed, depth=7, actions=3), random_menu(seed, by="or_nothing")
    return game, menu, random_policy(seed + 7, "partial"), seed % 2


@functools.cache
def whole_tree(kind, seed, penalty=0.05, evaluated=True):
    """Return all histories of a setting; stopping is worth its `evaluation(seed)`, or what play is."""
    game, pre, sigma, player = setting(kind, seed)
    more = {"leaf_value": evaluation(seed), "stop_value": "evaluate"} if evaluated else {}
    return one_sided(game, player, pre, sigma, penalty, truncate="none", **more)


def entries_of(tree, found):
    """Return the memorized entries of a result in the whole tree; refuse sets that are not closed."""
    members = []
    for actions, row in zip(found.histories, found.rows, strict=True):
        history = tree.find(actions)
        entry = next(int(tree.edge_entry[c]) for c in tree.children(history) if int(tree.action[c]) in row)
        played = tree.memorized_row(entry)
        assert row.keys() == played.keys()
        assert all(abs(row[action] - p) < 1e-9 for action, p in played.items())
        members.append(entry)
    MetaStrategy.of_set(tree, found.player, members)
    return members


def worth(tree, found):
    """Return the value of a result's set by the whole tree: utility less penalties."""
    gain, unprepared = Decisions.against(tree, found.player).gains()
    return unprepared + float(gain[entries_of(tree, found)].sum()) - found.penalty * len(found.histories)
