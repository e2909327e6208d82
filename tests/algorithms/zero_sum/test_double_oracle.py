"""The double oracle against brute force over all pairs of sets with choices, and what it is made of."""

import functools
import math

import numpy as np
import pyspiel
import pytest

from benchmarks.synthetic_trees import paired_tree, with_menus
from precomp_games import Menu, make_policy
from precomp_games.algorithms import MetaStrategy, meta_equilibrium, meta_exploitability
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.zero_sum import double_oracle
from precomp_games.algorithms.zero_sum.double_oracle import restricted_tree
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import expand
from tests.oracles.meta_games import menu_tree, meta_cases
from tests.shown import shown

_CASES = 320


@pytest.fixture
def small_programs(monkeypatch):
    """Trees of any size are solved by programs that grow, from what is memorized with some probability."""

    def after(iterations, least=1e-4):
        monkeypatch.setattr(double_oracle, "_LEAST_PLAN", least)
        monkeypatch.setattr(double_oracle, "_SMALL", 0)
        monkeypatch.setattr(double_oracle, "_PART", math.inf)
        monkeypatch.setattr(double_oracle, "_WARM_UP", iterations)

    return after


def test_the_value_of_all_pairs(small_programs, cases):
    programs = []
    for k, case in enumerate(meta_cases(cases(_CASES))):
        small_programs(1 + k % 3, least=2.0)
        found = meta_equilibrium(case.tree)
        assert found.value == pytest.approx(case.value, abs=1e-8)
        assert found.nash_conv < 1e-12 and found.converged and found.solver == "double_oracle"
        for strategy in found.strategies:
            assert strategy.largest_size == max(len(members) for _, members in strategy.mixture())
        assert found.trace[-1] == (found.iterations, found.nash_conv)
        programs.append(found.iterations)
    assert max(programs) >= 2


def test_the_whole_program_at_once(cases):
    for case in meta_cases(cases(_CASES))[::7]:
        found = meta_equilibrium(case.tree)
        assert found.value == pytest.approx(case.value, abs=1e-8)
        assert found.iterations == 1


# -- restricted trees ------------------------------------------------------------------------------


def _some_entries(tree, rng, share):
    """bool[E]: random ones, with their predecessors."""
    allowed = rng.random(tree.num_entries) < share
    before = tree.previous[tree.entry_infoset]
    for e in range(tree.num_entries):
        allowed[e] &= before[e] < 0 or allowed[before[e]]
    return allowed


def test_strategies_are_worth_the_same_on_a_restricted_tree(cases):
    rng = np.random.default_rng(0)
    fewer = 0
    trees = [case.tree for case in meta_cases(cases(_CASES))[::3]]
    for k, tree in enumerate(trees):
        allowed = _some_entries(tree, rng, (0.0, 0.7, 1.0)[k % 3])
        small = restricted_tree(tree, allowed, Decisions.against(tree, 0).worth)
        small.check()
        assert small.num_entries == allowed.sum()
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
        fewer += small.num_histories < tree.num_histories
    assert fewer >= 1


# -- larger trees ----------------------------------------------------------------------------------


@functools.cache
def _base_game(name, penalty):
    """Every action of a game may be memorized."""
    game = pyspiel.load_game(name)
    return expand(game, Menu.of_actions(), make_policy(game, "uniform"), penalty)


@pytest.mark.parametrize("iterations", [1, 50])
def test_programs_grow_until_nothing_is_added(small_programs, iterations):
    small_programs(iterations)
    trees = {
        "menus": with_menus(paired_tree(4e-3)),
        "deep": paired_tree(1e-3, 5),
        "dice": _base_game("liars_dice(dice_sides=3)", 1e-4),
    }
    for name, tree in trees.items():
        found = meta_equilibrium(tree)
        assert found.nash_conv < 1e-14, name
        assert found.value == pytest.approx(meta_sequence_form_lp(tree).value, abs=1e-12)
        assert found.iterations >= 2 or iterations == 1
        assert [programs for programs, _ in found.trace] == list(range(found.iterations + 1))


def test_where_much_is_memorized_the_whole_tree_is_solved(monkeypatch):
    monkeypatch.setattr(double_oracle, "_PART", 0.2)
    trees = [_base_game("liars_dice(dice_sides=4)", penalty) for penalty in (1e-2, 1e-6)]
    few, many = map(meta_equilibrium, trees)
    assert few.iterations > 1 and few.nash_conv < 1e-12
    assert many.iterations == 1 and many.nash_conv < 1e-12
    assert many.value == pytest.approx(meta_sequence_form_lp(trees[1]).value, abs=1e-12)


def test_programs_that_are_too_large_are_left_to_regret_minimization(monkeypatch):
    tree = _base_game("liars_dice(dice_sides=4)", 1e-2)
    monkeypatch.setattr(double_oracle, "_MOST", 20)
    found = meta_equilibrium(tree, target_nash_conv=1e-3)
    assert found.solver == "pdcfr+" and found.converged and found.nash_conv <= 1e-3
    assert [iterations for iterations, _ in found.trace[:2]] == [0, 50]
    assert meta_equilibrium(tree).iterations == 1000


def test_a_target_ends_it(small_programs):
    small_programs(20)
    tree = _base_game("liars_dice(dice_sides=3)", 1e-4)
    whole = meta_equilibrium(tree)
    first = meta_equilibrium(tree, target_nash_conv=whole.trace[1][1])
    assert first.trace == whole.trace[:2] and first.converged
    missed = meta_equilibrium(tree, solver="double_oracle", iterations=1, target_nash_conv=0.0)
    assert missed.trace == whole.trace[:2] and not missed.converged


def test_each_program_is_told(small_programs):
    small_programs(2, least=2.0)
    with shown() as bars:
        whole = meta_equilibrium(_base_game("liars_dice(dice_sides=3)", 1e-4))
    told = [(programs, f"NashConv {nash_conv:.2e}") for programs, nash_conv in whole.trace]
    assert bars[-1].told == told and whole.iterations >= 3


def test_what_is_asked_for_decides_the_solver():
    tree = menu_tree("tree", 0)
    assert meta_equilibrium(tree).solver == "double_oracle"
    assert meta_equilibrium(tree, target_nash_conv=1e-3, check_every=10).solver == "double_oracle"
    assert meta_equilibrium(tree, iterations=5).solver == "cfr+"
    assert meta_equilibrium(tree, variant="dcfr").solver == "dcfr"
    assert meta_equilibrium(tree, solver="regret_minimization").solver == "cfr+"
    with pytest.raises(ValueError, match=r"meta_equilibrium\(\): expected no variant"):
        meta_equilibrium(tree, solver="double_oracle", variant="cfr+")
