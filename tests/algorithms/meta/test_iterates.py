"""The flat-tree solver and OpenSpiel's C++ solvers on the exported game, iteration by iteration."""

import pyspiel
import pytest

from precomp_games import HistoryTree, to_efg
from precomp_games.algorithms import meta_equilibrium, meta_sequence_form_lp
from tests.random_games import random_efg, random_policy, random_tree


def _tree(kind, seed, support="full"):
    game = random_tree(seed, depth=4, actions=2) if kind == "tree" else random_efg(seed, depth=4)
    by = "history" if kind == "tree" else "infoset"
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, support, by) for i in (0, 1))
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.02, 0.03))


@pytest.mark.slow_after(8)
@pytest.mark.parametrize("form", ["reweighted", "audit"])
@pytest.mark.parametrize(("variant", "solver"), [("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)])
@pytest.mark.parametrize(("kind", "seed"), [("tree", 0), ("tree", 3), ("efg", 1), ("efg", 2)])
def test_the_same_nash_conv_after_every_iteration(form, variant, solver, kind, seed):
    tree = _tree(kind, seed)
    exported = pyspiel.load_efg_game(to_efg(tree, form=form))
    theirs = solver(exported)
    ours = dict(meta_equilibrium(tree, variant=variant, iterations=50, check_every=1).trace)
    for iteration in range(1, 51):
        theirs.evaluate_and_update_policy()
        expected = pyspiel.nash_conv(exported, theirs.average_policy())
        assert ours[iteration] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("support", ["partial", "pure"])
def test_cfr_plus_on_the_audit_form_where_supports_differ(support):
    for seed in range(6):
        tree = _tree("tree", seed, support)
        exact = meta_sequence_form_lp(tree).value
        game = pyspiel.load_efg_game(to_efg(tree, form="audit"))
        solver = pyspiel.CFRPlusSolver(game)
        for _ in range(300):
            solver.evaluate_and_update_policy()
        average = solver.average_policy()
        found = pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0]
        value = found + tree.utility_sum / 2.0
        assert abs(value - exact) <= pyspiel.nash_conv(game, average) + 1e-9
