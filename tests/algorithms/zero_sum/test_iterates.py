"""The flat-tree solver beside OpenSpiel's and a plain recursion, iteration by iteration."""

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import discounted_cfr

from benchmarks.synthetic_trees import paired_tree
from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import meta_equilibrium, strategies_from_policy
from precomp_games.algorithms.zero_sum.regret_minimization import CFR_VARIANTS, RegretMinimization
from precomp_games.algorithms.zero_sum.tables import strategy_by
from tests.oracles.games import random_efg
from tests.oracles.meta_games import known_cases, menu_tree
from tests.oracles.regret import PlainRegrets
from tests.oracles.zero_sum import game_of
from tests.properties import examples

_SOLVERS = {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver, "dcfr": discounted_cfr.DCFRSolver}


def _plans(strategies):
    return [strategy.realization_plan() for strategy in strategies]


@pytest.mark.parametrize("variant", _SOLVERS)
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "dark_hex(board_size=2)", "random"])
def test_iterates_of_games_are_openspiels(variant, name):
    game = random_efg(2, depth=5) if name == "random" else game_of(name)
    tree, theirs = HistoryTree.of_game(game), _SOLVERS[variant](game)
    ours = RegretMinimization(tree, variant, check_every=1)
    for _ in range(3 if name == "leduc_poker" else 12):
        theirs.evaluate_and_update_policy()
        ours.advance(1)
        expected = _plans(strategy_by(tree, theirs.average_policy(), i) for i in (0, 1))
        np.testing.assert_allclose(_plans(ours.strategies()), expected, atol=1e-10)


_MENUS = [("tree", 7), ("tree", 19), ("efg", 4), ("efg", 15), ("uneven", 2)]


@pytest.mark.parametrize("variant", ["cfr", "cfr+"])
@pytest.mark.parametrize(
    ("kind", "seed", "form"),
    [(*each, "audit") for each in _MENUS]
    + [(*each, form) for each in (("tree", 0), ("efg", 3)) for form in ("audit", "reweighted")],
)
def test_iterates_of_meta_games_are_openspiels(variant, kind, seed, form):
    """In both forms: their counterfactual values agree."""
    tree = menu_tree(kind, seed, penalties=(0.02, 0.03), policies=(kind, seed) not in _MENUS)
    trace = dict(meta_equilibrium(tree, variant=variant, iterations=30, check_every=1).trace)
    game = MetaPrecomputationGame(tree, form)
    cached = pyspiel.convert_to_cached_tree(game)
    theirs, ours = _SOLVERS[variant](cached), RegretMinimization(tree, variant, check_every=1)
    for iteration in range(1, 31):
        theirs.evaluate_and_update_policy()
        ours.advance(1)
        average = theirs.average_policy()
        assert trace[iteration] == pytest.approx(pyspiel.nash_conv(cached, average), abs=1e-10)
        if iteration % 5 == 0:
            back = strategies_from_policy(game, average)
            np.testing.assert_allclose(_plans(ours.strategies()), _plans(back), atol=1e-10)


def _check_papers(tree, theirs, variant, key, iterations, near=1e-7, rounding=0.0):
    """Compare current strategies (ratios of regrets) and average plans, until rounding decides a strategy."""
    ours = RegretMinimization(tree, variant, check_every=1)
    for _ in range(iterations):
        theirs.iterate()
        ours.advance(1)
        if theirs.least < rounding:  # some actions are alike, and one sum of 0 is 1e-17 in the other's order
            return
        current = np.empty(tree.num_entries)
        current[ours.decisions.tree_entry] = ours.state.current
        plans = _plans(ours.strategies())
        for k in range(tree.num_infosets):
            if key(k) in theirs.plan:
                menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
                own = slice(int(tree.may_stop), None)
                average = theirs.average(key(k))[own]
                np.testing.assert_allclose(current[menu], theirs.strategy[key(k)][own], atol=near)
                np.testing.assert_allclose(plans[tree.infoset_player[k]][menu], average, atol=near)


@examples(320)
@given(known_cases(), st.sampled_from(CFR_VARIANTS))
def test_iterates_of_meta_games_are_the_papers(case, variant):
    theirs = PlainRegrets(MetaPrecomputationGame(case.tree), variant, lambda state: state.infoset)
    _check_papers(case.tree, theirs, variant, int, 12, rounding=1e-9)


@pytest.mark.parametrize("variant", CFR_VARIANTS)
@pytest.mark.parametrize("name", ["kuhn_poker", "random"])
def test_iterates_of_games_are_the_papers(variant, name):
    game = random_efg(2, depth=5) if name == "random" else game_of(name)
    tree = HistoryTree.of_game(game)
    _check_papers(tree, PlainRegrets(game, variant), variant, tree.key, 20, near=1e-10)


def test_iterates_of_a_larger_meta_game_are_the_papers():
    tree = paired_tree(4e-2)
    theirs = PlainRegrets(MetaPrecomputationGame(tree), "pdcfr+", lambda state: state.infoset)
    _check_papers(tree, theirs, "pdcfr+", int, 3)


def test_where_nobody_comes_all_actions_are_alike():
    tree = menu_tree("tree", 7, truncate="none")
    first = meta_equilibrium(tree, iterations=1).strategies
    for k in np.flatnonzero(tree.previous < 0):
        menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
        memorize = first[tree.infoset_player[k]].memorize[menu]
        np.testing.assert_allclose(memorize, 1.0 / (1.0 + menu.stop - menu.start))
