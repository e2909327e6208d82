"""The meta-game's solvers against brute force over all pairs of sets, and iterates beside OpenSpiel's."""

import contextlib
import functools
import importlib
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import discounted_cfr, sequence_form_lp

from benchmarks.synthetic_trees import paired_tree, with_menus
from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, make_policy, to_efg
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    memorized_states,
    meta_equilibrium,
    meta_exploitability,
    strategies_from_policy,
)
from precomp_games.algorithms.zero_sum import double_oracle
from precomp_games.algorithms.zero_sum.regret_minimization import CFR_VARIANTS, RegretMinimization
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.algorithms.zero_sum.tables import strategy_by
from tests.oracles.games import SEEDS, expand, random_efg, random_policy, random_tree, sides
from tests.oracles.meta_games import known_cases, menu_tree, random_strategies
from tests.oracles.regret import PlainRegrets
from tests.oracles.zero_sum import game_of
from tests.properties import examples
from tests.shown import shown


@contextlib.contextmanager
def _small_programs(iterations, least=1e-4):
    """Trees of any size are solved by programs that grow, from what is memorized with some probability."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(double_oracle, "_LEAST_PLAN", least)
        patch.setattr(double_oracle, "_SMALL", 0)
        patch.setattr(double_oracle, "_PART", math.inf)
        patch.setattr(double_oracle, "_WARM_UP", iterations)
        yield


@examples(320)
@given(known_cases(), st.integers(1, 3), st.sampled_from(CFR_VARIANTS))
def test_all_solvers_find_the_value_of_all_pairs(case, iterations, variant):
    """The whole program, programs that grow, and regret minimization."""
    tree = case.tree
    tree.check()
    exact, whole = meta_sequence_form_lp(tree), meta_equilibrium(tree)
    assert whole.iterations == 1
    with _small_programs(iterations, least=2.0):
        grown = meta_equilibrium(tree)
    assert grown.nash_conv < 1e-12 and grown.converged and grown.solver == "double_oracle"
    assert grown.trace[-1] == (grown.iterations, grown.nash_conv)
    for strategy in grown.strategies:
        assert strategy.largest_size == max(len(members) for _, members in strategy.mixture())
    for found in (exact, whole, grown):
        assert found.value == pytest.approx(case.value, abs=1e-8) and abs(found.nash_conv) < 1e-8
    found = meta_equilibrium(tree, variant=variant, iterations=300, check_every=300)
    assert abs(found.value - case.value) <= found.nash_conv + 1e-9
    assert found.nash_conv < 0.05


@examples(80)
@given(known_cases().filter(lambda case: case.tree.num_infosets))
def test_openspiels_linear_program_on_the_audit_form(case):
    game = MetaPrecomputationGame(case.tree)
    for same in (game, pyspiel.load_efg_game(to_efg(game))):
        value = sequence_form_lp.solve_zero_sum_game(same)[0] + game.value_shift
        assert value == pytest.approx(case.value, abs=1e-6)  # what its solver promises


@examples(160)
@given(known_cases(), SEEDS)
def test_exploitability_is_the_matrix_games(case, seed):
    strategies = random_strategies(case.whole, seed)
    rows, columns = (case.mixture(strategy) for strategy in strategies)
    measured = meta_exploitability(case.whole, strategies)
    value = rows @ case.payoffs @ columns
    assert measured.value == pytest.approx(value, abs=1e-10)
    assert measured.utility == pytest.approx(rows @ case.utilities @ columns, abs=1e-10)
    sizes = [mixed @ [*map(len, case.choices[i])] for i, mixed in enumerate((rows, columns))]
    assert measured.sizes == pytest.approx(sizes, abs=1e-10)
    assert measured.incentives[0] == pytest.approx((case.payoffs @ columns).max() - value, abs=1e-10)
    assert measured.incentives[1] == pytest.approx(value - (rows @ case.payoffs).min(), abs=1e-10)


@examples(160)
@given(known_cases(), st.integers(0, 1))
def test_states_of_a_best_set_are_those_of_algorithm_1(case, player):
    tree = case.expand(penalties=sides(player, 0.02, math.inf))
    best = best_precomputation(tree, player)
    members = sides(player, best.memorization_set, [])
    strategies = [MetaStrategy.of_set(tree, i, members[i]) for i in (0, 1)]
    assert meta_exploitability(tree, tuple(strategies)).nash_conv == pytest.approx(0.0, abs=1e-12)
    states = memorized_states(strategies[player], strategies[1 - player])
    for state, known in zip(states, best.states(), strict=True):
        assert (state.probability, state.infoset, state.actions) == (1.0, known.infoset, known.actions)
        numbers = [(s.reach, s.gain, s.net_gain) for s in (state, known)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-12)


def test_where_all_information_states_are_free():
    """The audit form still visits each of them."""
    game, pair = random_tree(1, depth=3, actions=2), (random_policy(1), random_policy(2))
    tree = expand(game, *pair, 0.3, weight=lambda state: 0.0)
    exact = meta_sequence_form_lp(tree)
    assert exact.value == pytest.approx(exact.utility, abs=1e-12)
    game = MetaPrecomputationGame(tree)
    assert sequence_form_lp.solve_zero_sum_game(game)[0] + game.value_shift == pytest.approx(exact.value)


# -- larger trees, targets and what is asked for ---------------------------------------------------


@functools.cache
def _dice(sides, penalty):
    """Every action of liar's dice may be memorized."""
    game = pyspiel.load_game(f"liars_dice(dice_sides={sides})")
    return expand(game, Menu.of_actions(), make_policy(game, "uniform"), penalty)


@pytest.mark.parametrize("iterations", [1, 50])
def test_programs_grow_until_nothing_is_added(iterations):
    for tree in (with_menus(paired_tree(4e-3)), paired_tree(1e-3, 5), _dice(3, 1e-4)):
        with _small_programs(iterations):
            found = meta_equilibrium(tree)
        assert found.nash_conv < 1e-14
        assert found.value == pytest.approx(meta_sequence_form_lp(tree).value, abs=1e-12)
        assert found.iterations >= 2 or iterations == 1
        assert [programs for programs, _ in found.trace] == list(range(found.iterations + 1))


def test_how_much_is_memorized_decides_what_is_solved(monkeypatch):
    """Programs that grow, the whole tree, or regret minimization where programs are too large."""
    monkeypatch.setattr(double_oracle, "_PART", 0.2)
    few, many = (meta_equilibrium(_dice(4, penalty)) for penalty in (1e-2, 1e-6))
    assert few.iterations > 1 and few.nash_conv < 1e-12
    assert many.iterations == 1 and many.nash_conv < 1e-12
    assert many.value == pytest.approx(meta_sequence_form_lp(_dice(4, 1e-6)).value, abs=1e-12)
    monkeypatch.setattr(double_oracle, "_MOST", 20)
    found = meta_equilibrium(_dice(4, 1e-2), target_nash_conv=1e-3)
    assert found.solver == "pdcfr+" and found.converged and found.nash_conv <= 1e-3
    assert [iterations for iterations, _ in found.trace[:2]] == [0, 50]
    assert meta_equilibrium(_dice(4, 1e-2)).iterations == 1000


def test_a_target_ends_it_and_each_program_is_shown():
    tree = _dice(3, 1e-4)
    with _small_programs(20), shown() as bars:
        whole = meta_equilibrium(tree)
        noted = [(programs, f"NashConv {nash_conv:.2e}") for programs, nash_conv in whole.trace]
        assert bars[-1].notes == noted and whole.iterations >= 2
        first = meta_equilibrium(tree, target_nash_conv=whole.trace[1][1])
        assert first.trace == whole.trace[:2] and first.converged
        missed = meta_equilibrium(tree, solver="double_oracle", iterations=1, target_nash_conv=0.0)
        assert missed.trace == whole.trace[:2] and not missed.converged


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ({}, "double_oracle"),
        ({"target_nash_conv": 1e-3, "check_every": 10}, "double_oracle"),
        ({"iterations": 5}, "cfr+"),
        ({"variant": "dcfr"}, "dcfr"),
        ({"solver": "regret_minimization"}, "cfr+"),
    ],
)
def test_what_is_asked_for_decides_the_solver(options, solver):
    assert meta_equilibrium(menu_tree("tree", 0), **options).solver == solver
    with pytest.raises(ValueError, match=r"meta_equilibrium\(\): expected no variant"):
        meta_equilibrium(menu_tree("tree", 0), solver="double_oracle", variant="cfr+")


@pytest.mark.parametrize("variant", [None, "cfr+"])
@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_a_target_is_reached_without_a_number_of_iterations(kind, variant):
    """The default of 1000 iterations missed it in most of these games, without a word."""
    tree = menu_tree(kind, 3, penalties=(0.01, 0.02), policies=True)
    found = meta_equilibrium(tree, variant=variant, target_nash_conv=1e-6)
    assert found.converged and found.nash_conv <= 1e-6


def test_a_missed_target_is_reported(monkeypatch):
    tree, target = menu_tree("tree", 0), {"variant": "cfr+", "target_nash_conv": 1e-6}
    missed = meta_equilibrium(tree, **target, iterations=100)
    assert not missed.converged and missed.nash_conv > 1e-6 and missed.iterations == 100
    module = importlib.import_module("precomp_games.algorithms.zero_sum.equilibrium")
    monkeypatch.setattr(module, "MOST_ITERATIONS", 120)
    given_up = meta_equilibrium(tree, **target)
    assert not given_up.converged and given_up.iterations == 120
    assert meta_equilibrium(tree, target_nash_conv=missed.nash_conv, iterations=100).converged
    unasked = meta_equilibrium(tree, variant="cfr+")
    assert unasked.converged and unasked.iterations == 1000


# -- iterates --------------------------------------------------------------------------------------

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
@pytest.mark.parametrize("game", [random_efg(2, depth=5), game_of("kuhn_poker")], ids=["random", "kuhn"])
def test_iterates_of_games_are_the_papers(variant, game):
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
