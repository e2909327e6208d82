"""Every solver of one player's preparation against enumeration of all sets, played out on OpenSpiel's states."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.algorithms import (
    MetaStrategy,
    best_first_precomputation,
    best_precomputation,
    memory_frontier,
    meta_equilibrium,
    robust_precomputation,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.preparation import NEAR, check_budgets, check_frontier, check_result, preparations
from tests.oracles.zero_sum import is_perfect
from tests.properties import examples

_PENALTIES = st.sampled_from((0.003, 0.03, 0.1, 0.3))
_CUTS = st.sampled_from(
    (
        {"truncate": "none"},
        {"truncate": "none", "rival": 0.01},
        {"truncate": "reach"},
        {"truncate": "reach", "rival": 0.01},
        {"truncate": "reach", "stop_value": "evaluate"},
    )
)


@examples(400)
@given(preparations(), _PENALTIES, _CUTS)
def test_algorithm_1_finds_the_best_set_on_trees_that_are_cut(setting, penalty, options):
    """Lemma 3: at the penalty that a tree was expanded for, and above; whatever the opponent pays."""
    found, player = setting.sets(), setting.player
    tree = setting.tree(penalty, **options)
    tree.check()
    best = best_precomputation(tree, player)
    check_result(setting, best, found, penalty)
    play = best.policy(setting.sigma).action_probabilities
    score = books.play_value(setting.game.new_initial_state(), (play, play), player)
    assert score == pytest.approx(best.utility, abs=NEAR)
    for state in best.states():
        assert state.infoset == tree.entry_infoset[state.entry]
        assert sum(tree.memorized_row(state.entry).values()) == pytest.approx(1.0)
    dearer = best_precomputation(tree.with_penalties(2.5 * np.array(tree.penalties)), player)
    check_result(setting, dearer, found, 2.5 * penalty)


@examples(400)
@given(preparations(), _PENALTIES)
def test_frontiers_and_budgets_and_what_other_solvers_find(setting, penalty):
    """Prices of positions that are all different, shares of 0, and growing best first find the same sets."""
    found, player, tree = setting.sets(), setting.player, setting.tree(truncate="none")
    frontier = memory_frontier(tree, player)
    check_frontier(frontier, found)
    check_budgets(frontier, found)
    priced, alone = setting.tree(penalty, truncate="none"), np.arange(tree.num_infosets)
    own = np.diff(tree.first_entry)[tree.infoset_player == player]
    others = [best_precomputation(priced, player, price=alone)]
    within = [best_precomputation(tree, player, budget=2, price=alone)]
    if own.max() <= 1:
        assert memory_frontier(tree, player, price=alone).at(penalty).value == pytest.approx(
            found.value(penalty), abs=NEAR
        )
    if is_perfect(setting.game):
        others.append(robust_precomputation(priced, player, 0.0))
        within.append(robust_precomputation(priced, player, 0.0, budget=2))
        arguments = setting.game, setting.pre[player], setting.sigma, penalty, player, setting.play
        for order in ("certified", "optimistic"):
            grown = best_first_precomputation(*arguments, gap=0.0, order=order)
            assert grown.lower - NEAR <= found.value(penalty) <= grown.upper + NEAR
            capped = best_first_precomputation(*arguments, gap=0.0, order=order, budget=2)
            assert capped.lower - NEAR <= found.within(2) <= capped.upper + NEAR
            if order == "certified":
                assert grown.lower == pytest.approx(found.value(penalty), abs=NEAR)
    assert [each.value for each in others] == pytest.approx([found.value(penalty)] * len(others), abs=1e-8)
    assert [each.utility for each in within] == pytest.approx([found.within(2)] * len(within), abs=1e-8)


@examples(160)
@given(preparations(kinds=("tree", "efg"), menu=False, most=150), st.booleans())
def test_against_a_strategy_of_the_opponent(setting, equilibrium):
    """Its equilibrium, or a strategy drawn at random, played out as a behavioral policy."""
    player, penalty = setting.player, 0.02
    tree = setting.tree(penalty, rival=penalty, truncate="none")
    memorize = np.random.default_rng(setting.seed).random(tree.num_entries) / 3.0
    rival = MetaStrategy(tree, 1 - player, memorize)
    if equilibrium:
        rival = meta_equilibrium(tree, iterations=100).strategies[1 - player]
    found = setting.against(rival.policy().action_probabilities).sets()
    frontier = memory_frontier(tree, player, opponent=rival)
    assert frontier.unprepared == pytest.approx(found.within(0), abs=NEAR)
    for dearer in (penalty, 0.05, 0.1, *frontier.breakpoints[frontier.breakpoints >= penalty]):
        assert frontier.at(dearer).value == pytest.approx(found.value(dearer), abs=NEAR)
        larger = tree.with_penalties((dearer, dearer))
        best = best_precomputation(larger, player, opponent=MetaStrategy(larger, 1 - player, rival.memorize))
        assert best.value == pytest.approx(found.value(dearer), abs=NEAR)
    check_budgets(frontier, found, opponent=rival)
