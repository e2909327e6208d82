"""The meta-game's solvers against brute force over all pairs of sets with choices, and each other."""

import contextlib
import functools
import importlib
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python.algorithms import sequence_form_lp

from benchmarks.synthetic_trees import paired_tree, with_menus
from precomp_games import Menu, MetaPrecomputationGame, make_policy, to_efg
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    memorized_states,
    meta_equilibrium,
    meta_exploitability,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.zero_sum import double_oracle
from precomp_games.algorithms.zero_sum.double_oracle import restricted_tree
from precomp_games.algorithms.zero_sum.regret_minimization import CFR_VARIANTS
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import SEEDS, expand, random_policy, random_tree
from tests.oracles.meta_games import known_cases, menu_tree, random_strategies
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
def test_an_opponent_who_never_memorizes_gives_algorithm_1(case, player):
    tree = case.expand(penalties=(0.02, math.inf) if player == 0 else (math.inf, 0.02))
    best = best_precomputation(tree, player)
    own = best.value if player == 0 else tree.utility_sum - best.value
    assert meta_sequence_form_lp(tree).value == pytest.approx(own, abs=1e-9)
    strategies = [MetaStrategy.of_set(tree, i, []) for i in (0, 1)]
    strategies[player] = MetaStrategy.of_set(tree, player, best.memorization_set)
    measured = meta_exploitability(tree, tuple(strategies))
    assert measured.value == pytest.approx(own, abs=1e-12)
    assert measured.nash_conv == pytest.approx(0.0, abs=1e-12)
    states = memorized_states(strategies[player], strategies[1 - player])
    for state, known in zip(states, best.states(), strict=True):
        assert state.probability == 1.0
        assert (state.infoset, state.actions) == (known.infoset, known.actions)
        numbers = [(s.reach, s.gain, s.net_gain) for s in (state, known)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-12)


def test_where_all_information_states_are_free():
    """The audit form still visits each of them."""
    tree = expand(
        random_tree(1, depth=3, actions=2), random_policy(1), random_policy(2), 0.3, weight=lambda state: 0.0
    )
    exact = meta_sequence_form_lp(tree)
    assert exact.value == pytest.approx(exact.utility, abs=1e-12)
    game = MetaPrecomputationGame(tree)
    assert sequence_form_lp.solve_zero_sum_game(game)[0] + game.value_shift == pytest.approx(exact.value)


@examples(160)
@given(known_cases(), SEEDS, st.sampled_from((0.0, 0.7, 1.0)))
def test_strategies_are_worth_the_same_on_a_restricted_tree(case, seed, share):
    tree, rng = case.tree, np.random.default_rng(seed)
    allowed, before = rng.random(tree.num_entries) < share, tree.previous[tree.entry_infoset]
    for e in range(tree.num_entries):
        allowed[e] &= before[e] < 0 or allowed[before[e]]
    small = restricted_tree(tree, allowed, Decisions.against(tree, 0).worth)
    small.check()
    assert small.num_entries == allowed.sum() and small.num_histories <= tree.num_histories
    weights = rng.random(tree.num_entries) * allowed
    memorize = weights / np.maximum(np.bincount(tree.entry_infoset, weights), 1.0)[tree.entry_infoset]
    both = [
        meta_exploitability(
            t, tuple(MetaStrategy(t, i, np.where(t.entry_player == i, m, 0.0)) for i in (0, 1))
        )
        for t, m in ((tree, memorize), (small, memorize[allowed]))
    ]
    assert both[0].value == pytest.approx(both[1].value, abs=1e-12)
    assert both[0].utility == pytest.approx(both[1].utility, abs=1e-12)
    assert both[0].sizes == pytest.approx(both[1].sizes, abs=1e-12)
    for more, less in zip(both[0].best_responses, both[1].best_responses, strict=True):
        assert more >= less - 1e-12


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


def test_where_much_is_memorized_the_whole_tree_is_solved(monkeypatch):
    monkeypatch.setattr(double_oracle, "_PART", 0.2)
    few, many = (meta_equilibrium(_dice(4, penalty)) for penalty in (1e-2, 1e-6))
    assert few.iterations > 1 and few.nash_conv < 1e-12
    assert many.iterations == 1 and many.nash_conv < 1e-12
    assert many.value == pytest.approx(meta_sequence_form_lp(_dice(4, 1e-6)).value, abs=1e-12)


def test_programs_that_are_too_large_are_left_to_regret_minimization(monkeypatch):
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


def test_what_is_asked_for_decides_the_solver():
    tree = menu_tree("tree", 0)
    assert meta_equilibrium(tree).solver == "double_oracle"
    assert meta_equilibrium(tree, target_nash_conv=1e-3, check_every=10).solver == "double_oracle"
    assert meta_equilibrium(tree, iterations=5).solver == "cfr+"
    assert meta_equilibrium(tree, variant="dcfr").solver == "dcfr"
    assert meta_equilibrium(tree, solver="regret_minimization").solver == "cfr+"
    with pytest.raises(ValueError, match=r"meta_equilibrium\(\): expected no variant"):
        meta_equilibrium(tree, solver="double_oracle", variant="cfr+")


@pytest.mark.parametrize("variant", [None, "cfr+"])
@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_a_target_is_reached_without_a_number_of_iterations(kind, variant):
    """The default of 1000 iterations missed it in most of these games, without a word."""
    tree = menu_tree(kind, 3, penalties=(0.01, 0.02), policies=True)
    found = meta_equilibrium(tree, variant=variant, target_nash_conv=1e-6)
    assert found.converged and found.nash_conv <= 1e-6


def test_a_missed_target_is_reported(monkeypatch):
    tree = menu_tree("tree", 0)
    missed = meta_equilibrium(tree, variant="cfr+", target_nash_conv=1e-6, iterations=100)
    assert not missed.converged and missed.nash_conv > 1e-6 and missed.iterations == 100
    module = importlib.import_module("precomp_games.algorithms.zero_sum.equilibrium")
    monkeypatch.setattr(module, "MOST_ITERATIONS", 120)
    given_up = meta_equilibrium(tree, variant="cfr+", target_nash_conv=1e-6)
    assert not given_up.converged and given_up.iterations == 120
    assert meta_equilibrium(tree, target_nash_conv=missed.nash_conv, iterations=100).converged
    unasked = meta_equilibrium(tree, variant="cfr+")
    assert unasked.converged and unasked.iterations == 1000
