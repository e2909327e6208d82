"""The flat-tree solver beside OpenSpiel's and a plain recursion on the meta-game, iteration by iteration."""

import numpy as np
import pyspiel
import pytest

from precomp_games import MetaPrecomputationGame
from precomp_games.algorithms import meta_equilibrium, strategies_from_policy
from precomp_games.algorithms.zero_sum.regret_minimization import RegretMinimization
from tests.oracles.meta_games import menu_tree
from tests.oracles.regret import PlainPredictive

_POLICIES = [("tree", 0, True), ("tree", 3, True), ("efg", 3, True), ("efg", 6, True)]
_MENUS = [
    ("tree", 7, False),
    ("tree", 19, False),
    ("efg", 4, False),
    ("efg", 15, False),
    ("uneven", 2, False),
]


def _tree(kind, seed, policies):
    return menu_tree(kind, seed, penalties=(0.02, 0.03), policies=policies)


@pytest.mark.parametrize(("variant", "solver"), [("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)])
@pytest.mark.parametrize(("kind", "seed", "policies"), [*_POLICIES, *_MENUS])
def test_the_same_strategies_after_every_iteration(variant, solver, kind, seed, policies):
    """In both forms: their counterfactual values agree."""
    tree = _tree(kind, seed, policies)
    trace = dict(meta_equilibrium(tree, variant=variant, iterations=30, check_every=1).trace)
    for form in ("audit", "reweighted") if policies else ("audit",):
        game = MetaPrecomputationGame(tree, form)
        cached = pyspiel.convert_to_cached_tree(game)
        theirs, ours = solver(cached), RegretMinimization(tree, variant, check_every=1)
        for iteration in range(1, 31):
            theirs.evaluate_and_update_policy()
            ours.advance(1)
            average = theirs.average_policy()
            assert trace[iteration] == pytest.approx(pyspiel.nash_conv(cached, average), abs=1e-10)
            if iteration % 5 == 0:
                back = strategies_from_policy(game, average)
                for one, other in zip(ours.strategies(), back, strict=True):
                    np.testing.assert_allclose(one.realization_plan(), other.realization_plan(), atol=1e-10)


def test_where_nobody_comes_all_actions_are_alike():
    tree = menu_tree("tree", 7, truncate="none")
    first = meta_equilibrium(tree, iterations=1).strategies
    for k in np.flatnonzero(tree.previous < 0):
        menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
        memorize = first[tree.infoset_player[k]].memorize[menu]
        np.testing.assert_allclose(memorize, 1.0 / (1.0 + menu.stop - menu.start))


@pytest.mark.parametrize(
    ("kind", "seed", "policies"),
    [("tree", 0, True), ("tree", 3, True), ("efg", 1, True), ("tree", 7, False), ("tree", 19, False)],
)
def test_predictive_discounted_cfr_plus_is_the_papers(kind, seed, policies):
    tree = _tree(kind, seed, policies)
    theirs = PlainPredictive(MetaPrecomputationGame(tree), lambda state: state.infoset)
    ours = RegretMinimization(tree, "pdcfr+", check_every=1)
    for _ in range(50):
        theirs.iterate()
        ours.advance(1)
        current = np.empty(tree.num_entries)
        current[ours.decisions.tree_entry] = ours.state.current
        plans = [strategy.realization_plan() for strategy in ours.strategies()]
        for k in theirs.plan:
            menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
            np.testing.assert_allclose(current[menu], theirs.strategy[k][1:], atol=1e-10)
            np.testing.assert_allclose(plans[tree.infoset_player[k]][menu], theirs.average(k)[1:], atol=1e-10)
