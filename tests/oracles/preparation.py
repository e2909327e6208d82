"""One player's preparation: random settings with all memorization sets played out, and what solvers return.

`tests.oracles.books` plays the sets, and knows nothing of the library's tree.
"""

import dataclasses
import functools
import itertools
import math
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from open_spiel.python.algorithms import expected_game_score

from precomp_games.algorithms import MetaStrategy, best_of_frontier, best_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import SEEDS, SUPPORTS, expand, games, named_by, policy_pairs, random_menu, sides

TINY = 1e-9  # a penalty that cuts nothing
NEAR = 1e-9


def one_sided(game, player, pre, sigma, penalty=TINY, **options):
    """Return a tree on which one player prepares; `pre` is a pair, or that player's alone."""
    pair = pre if isinstance(pre, tuple) else sides(player, pre, None)
    return expand(game, pair, sigma, sides(player, penalty, math.inf), **options)


class Sets:
    """The costs of some memorization sets, and their utilities."""

    def __init__(self, costs, utilities):
        self.costs, self.utilities = np.array(costs, float), np.array(utilities, float)

    def value(self, penalty):
        return float((self.utilities - penalty * self.costs).max())

    def within(self, budget):
        return float(self.utilities[self.costs <= budget].max())


def chosen_by(tree, player, members):
    """Return a memorization set as the oracle has it: {information state: row}."""
    states = (tree.state(int(tree.infoset_history[tree.entry_infoset[entry]])) for entry in members)
    names = [books.information_state(tree.game, state, player) for state in states]
    return dict(zip(names, (tree.memorized_row(int(entry)) for entry in members), strict=True))


def named(tree, player, members):
    """Return the same as {(information state, actions of the entry)}."""
    return books.key_of(chosen_by(tree, player, members))


@dataclasses.dataclass(frozen=True, eq=False)
class Preparation:
    """A player prepares against sigma. pre: what each may memorize, policies or menus."""

    game: Any
    player: int
    pre: tuple[Any, Any]
    sigma: tuple[Any, Any]
    seed: int
    most: int

    def tree(self, penalty=TINY, rival=math.inf, **options):
        return expand(self.game, self.pre, self.sigma, sides(self.player, penalty, rival), **options)

    @functools.cached_property
    def choices(self):
        """All memorization sets, {information state: row}; none where there are more than `most`."""
        return books.all_choices(self.game, self.player, self.pre[self.player], self.most)

    @functools.cached_property
    def utilities(self):
        return books.own_utilities_of_choices(self.game, self.player, self.choices, self.sigma)

    @functools.cached_property
    def by_name(self):
        """{set as `named` has it: utility}"""
        return dict(zip(map(books.key_of, self.choices), self.utilities.tolist(), strict=True))

    def sets(self, cost=len, fits=lambda chosen: True):
        """Return the sets that fit, `Sets`."""
        pairs = zip(self.choices, self.utilities.tolist(), strict=True)
        return Sets(*zip(*((cost(chosen), u) for chosen, u in pairs if fits(chosen)), strict=True))

    def sets_of_positions(self):
        """Return the sets with the same entry at all states of a position, which costs one penalty."""
        at = books.positions(self.game, self.player)

        def cost(chosen):
            return len({(at[name], tuple(row.items())) for name, row in chosen.items()})

        return self.sets(cost, lambda chosen: cost(chosen) == len({at[name] for name in chosen}))

    def against(self, policy):
        """Return the same player's preparation against another policy of the opponent's."""
        sigma = sides(self.player, self.sigma[self.player], policy)
        return dataclasses.replace(self, sigma=sigma)

    def having(self, given):
        """Return the same player's preparation with something else that may be memorized."""
        return dataclasses.replace(self, pre=sides(self.player, given, self.pre[1 - self.player]))

    def evaluated(self, penalty=TINY, **options):
        """Return a tree on which stopping is worth what an arbitrary function says."""
        usual = {"truncate": "none", "leaf_value": evaluation(self.seed), "stop_value": "evaluate"}
        return self.tree(penalty, **usual | options)

    def worth(self, tree, members):
        """Return a memorization set's utility."""
        choice = chosen_by(tree, self.player, members)
        return float(books.own_utilities_of_choices(self.game, self.player, [choice], self.sigma)[0])

    def play(self, state):
        """Return player 0's mean utility from a state on if nobody memorizes anything."""
        return books.play_value(state, self.sigma)


def prepared(game, seed, player=0, menu=0, support="full", rival=0, most=2000):
    """Return the preparation of a player in a game, `Preparation`; policies and menus are drawn by the seed.

    menu, rival: the most entries of a menu of the player's, and of the other one's; 0: of a policy.
    """
    by = named_by(game)
    given, sigma = policy_pairs(seed, support, by)
    sparse = by == "history" and seed % 2 == 1
    own, other = (random_menu(2 * seed + i, size, by, sparse) for i, size in enumerate((menu, rival)))
    pre = sides(player, own if menu else given[player], other if rival else given[1 - player])
    return Preparation(game, player, pre, sigma, seed, most)


def preparations(kind="any", menu=None, fewest=3, most=2000, **options):
    """Preparations of players who have so many memorization sets; fewest=0: any number.

    menu: whether the player has a menu; None: either. options: of `games`.
    """
    made = st.builds(
        prepared,
        game=games(kind, **{"least": 3} | options),
        seed=SEEDS,
        player=st.integers(0, 1),
        menu=st.just(0) if menu is False else st.integers(0 if menu is None else 1, 3),
        support=st.sampled_from(SUPPORTS),
        rival=st.integers(0, 2),
        most=st.just(most),
    )
    return made.filter(lambda each: len(each.choices) >= fewest) if fewest else made


def check_result(setting, best, found, penalty):
    """A best set is worth what is best of all sets that were found, and its parts agree with each other."""
    tree, player = best.tree, best.player
    MetaStrategy.of_set(tree, player, best.memorization_set)  # refuses sets that are not closed
    assert best.value == pytest.approx(found.value(penalty), abs=NEAR)
    assert best.utility == pytest.approx(setting.worth(tree, best.memorization_set), abs=NEAR)
    assert best.unprepared == pytest.approx(setting.by_name[frozenset()], abs=NEAR)
    assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=NEAR)
    assert best.value == pytest.approx(best.utility - penalty * best.paid, abs=1e-12)
    assert best.value <= best.upper <= best.value + NEAR and best.size == len(best.memorization_set)


def check_frontier(frontier, found):
    """Every penalty at and between bends, beside all sets."""
    points = frontier.breakpoints[frontier.breakpoints > frontier.penalty]  # others are rounding
    between = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    ends = [points[0] * 2, max(points[-1] / 2, frontier.penalty)] if len(points) else [0.1]
    for penalty in [*points, *between, *ends]:
        at, values = frontier.at(penalty), found.utilities - penalty * found.costs
        assert at.value == pytest.approx(values.max(), abs=NEAR)
        assert at.size == found.costs[values > values.max() - 1e-10].min()
    assert (frontier.upper_bound(found.costs) >= found.utilities - NEAR).all()
    assert (np.diff(points) < 0.0).all()
    slopes = np.diff(frontier.utilities) / np.diff(frontier.sizes)
    assert slopes == pytest.approx(frontier.breakpoints, abs=NEAR)
    sets = [frozenset(np.flatnonzero(frontier.memorize(k)).tolist()) for k in range(len(frontier.sizes))]
    nested = all(smaller <= larger for smaller, larger in itertools.pairwise(sets))
    assert nested or frontier.decisions.has_choice  # entries may be exchanged
    nothing = frontier.at(math.inf)
    assert nothing.size == 0 and nothing.value == nothing.utility == frontier.unprepared


def check_budgets(frontier, found, **options):
    """Every budget beside all sets. options: of `best_precomputation`, which finds the same."""
    tree, player = frontier.tree, frontier.player
    for budget in [*range(int(found.costs.max()) + 2), 10**30]:
        best = best_of_frontier(frontier, budget)
        assert best.utility == best.value == pytest.approx(found.within(budget), abs=NEAR)
        assert best.paid <= budget and best.penalty == 0.0 and best.budget == budget and best.gap < NEAR
        MetaStrategy.of_set(tree, player, best.memorization_set)  # refuses other sets
        assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=NEAR)
        assert best.truncation_loss == 0.0 or frontier.decisions.cut_reach > 0.0
        again = best_precomputation(tree, player, budget=budget, **options)
        assert (again.memorization_set == best.memorization_set).all() and again.utility == best.utility


def evaluation(seed):
    """Return an arbitrary function of the position, with values among the utilities of `random_tree`."""

    def evaluate(state):
        return -1.0 + 3.0 * (zlib.crc32(f"{seed}:{state}".encode()) % 1000) / 1000.0

    return evaluate


def scored(game, player, policy):
    """Return a player's expected score if a policy plays for both, by OpenSpiel."""
    return float(expected_game_score.policy_value(game.new_initial_state(), [policy, policy])[player])


# -- what grows best first, without a history tree -------------------------------------------------------


def entries_of(tree, found):
    """Return the memorized entries of a result in the whole tree; refuse sets that are not closed."""
    members = []
    for actions, row in zip(found.histories, found.rows, strict=True):
        history = tree.find(actions)
        entry = next(int(tree.edge_entry[c]) for c in tree.children(history) if int(tree.action[c]) in row)
        played = tree.memorized_row(entry)
        assert row.keys() == played.keys()
        assert all(abs(row[action] - p) < NEAR for action, p in played.items())
        members.append(entry)
    MetaStrategy.of_set(tree, found.player, members)
    return members


def worth(tree, found):
    """Return the value of a result's set by the whole tree: utility less penalties."""
    gain, unprepared = Decisions.against(tree, found.player).gains()
    return unprepared + float(gain[entries_of(tree, found)].sum()) - found.penalty * found.paid
