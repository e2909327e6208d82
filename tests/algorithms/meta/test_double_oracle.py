"""The double oracle against brute force over all pairs of sets with choices, and what it is made of."""

import functools
import math

import numpy as np
import pyspiel
import pytest
import scipy.optimize

from benchmarks.synthetic_trees import paired_tree, with_menus
from precomp_games import HistoryTree, Menu, make_policy
from precomp_games.algorithms import (
    MetaStrategy,
    meta_equilibrium,
    meta_exploitability,
    meta_sequence_form_lp,
)
from precomp_games.algorithms.meta import double_oracle
from precomp_games.algorithms.meta.restricted_tree import restricted_tree
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.menus import PENALTIES, Side, matrix_value, menu_case, payoffs
from tests.random_games import random_policy

_MOST_PAIRS = 1500
_KINDS = {"tree": 120, "efg": 110, "uneven": 40}


@pytest.fixture
def small_programs(monkeypatch):
    """Trees of any size are solved by programs that grow, from what is memorized with some probability."""

    def after(iterations, least=1e-4):
        monkeypatch.setattr(double_oracle, "_LEAST_PLAN", least)
        monkeypatch.setattr(double_oracle, "_SMALL", 0)
        monkeypatch.setattr(double_oracle, "_PART", math.inf)
        monkeypatch.setattr(double_oracle, "_WARM_UP", iterations)

    return after


def _solved(kind, seed):
    """(tree, value by brute force, payoffs, sizes), None where there are too many pairs."""
    game, pre, sigma = menu_case(kind, seed)
    penalties = [*PENALTIES[seed % 3]]
    if seed % 5 == 0:
        penalties[seed % 2] = math.inf
    sides = [Side(game, i, pre[i]) for i in (0, 1)]
    if math.prod(side.count() for side in sides) > _MOST_PAIRS:
        return None
    choices = [[{}] if math.isinf(p) else side.choices() for p, side in zip(penalties, sides, strict=True)]
    costs = [0.0 if math.isinf(p) else p for p in penalties]
    matrix = payoffs(game, sides, choices, sigma, costs)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
    return tree, matrix_value(matrix), matrix, [np.array([*map(len, chosen)]) for chosen in choices]


@functools.cache
def _cases():
    found = [_solved(kind, seed) for kind, count in _KINDS.items() for seed in range(count)]
    return [case for case in found if case]


def test_there_are_enough_cases():
    trees = [tree for tree, *_ in _cases()]
    assert len(trees) >= 200
    assert sum(tree.has_menus for tree in trees) >= 60
    assert sum((tree.player == pyspiel.PlayerId.CHANCE).any() for tree in trees) >= 80
    assert sum(tree.infoset_keys is not None for tree in trees) >= 60
    assert sum(math.isinf(max(tree.penalties)) for tree in trees) >= 30
    assert sum(((tree.sigma == 0.0) & (tree.sigma_pre > 0.0)).any() for tree in trees) >= 60


def test_the_value_of_all_pairs(small_programs):
    programs = []
    for k, (tree, value, *_) in enumerate(_cases()):
        small_programs(1 + k % 3, least=2.0)
        found = meta_equilibrium(tree)
        assert found.value == pytest.approx(value, abs=1e-9)
        assert found.nash_conv < 1e-12 and found.converged and found.solver == "double_oracle"
        assert found.trace[-1] == (found.iterations, found.nash_conv)
        programs.append(found.iterations)
    assert max(programs) >= 3


def test_the_whole_program_at_once():
    for tree, value, *_ in _cases()[::7]:
        found = meta_equilibrium(tree)
        assert found.value == pytest.approx(value, abs=1e-9)
        assert found.iterations == 1


# -- restricted trees ------------------------------------------------------------------------------


def _some_entries(tree, rng):
    """bool[E]: random ones, with their predecessors."""
    allowed = rng.random(tree.num_entries) < 0.7
    before = tree.previous[tree.entry_infoset]
    for e in range(tree.num_entries):
        allowed[e] &= before[e] < 0 or allowed[before[e]]
    return allowed


def test_strategies_are_worth_the_same_on_a_restricted_tree():
    rng = np.random.default_rng(0)
    fewer = 0
    for tree, *_ in _cases()[::3]:
        allowed = _some_entries(tree, rng)
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
    assert fewer >= 20


def test_nothing_and_everything():
    tree = paired_tree(2e-3)
    worth = Decisions.against(tree, 0).worth
    nothing = restricted_tree(tree, np.zeros(tree.num_entries, bool), worth)
    nothing.check()
    assert nothing.num_histories == 1 and nothing.value[0] == worth[0]
    everything = restricted_tree(tree, np.ones(tree.num_entries, bool), worth)
    assert everything.num_infosets == tree.num_infosets
    assert meta_sequence_form_lp(everything).value == pytest.approx(
        meta_sequence_form_lp(tree).value, abs=1e-14
    )


# -- larger trees ----------------------------------------------------------------------------------


@functools.cache
def _base_game(name, penalty):
    """Every action of a game may be memorized."""
    game = pyspiel.load_game(name)
    return HistoryTree.from_game(
        game, sigma_pre=Menu.of_actions(), sigma=make_policy(game, "uniform"), penalties=penalty
    )


@pytest.mark.parametrize("iterations", [1, 50])
def test_programs_grow_until_nothing_is_added(small_programs, iterations):
    small_programs(iterations)
    trees = [
        with_menus(paired_tree(4e-3)),
        paired_tree(1e-3, 5),
        _base_game("liars_dice(dice_sides=3)", 1e-4),
    ]
    for tree in trees:
        found = meta_equilibrium(tree)
        assert found.nash_conv < 1e-14
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


def test_programs_that_are_too_large_are_left_to_regret_minimization(monkeypatch, tmp_path):
    tree = _base_game("liars_dice(dice_sides=4)", 1e-2)
    monkeypatch.setattr(double_oracle, "_MOST", 20)
    found = meta_equilibrium(tree, target_nash_conv=1e-3, checkpoint=tmp_path / "run.npz")
    assert found.solver == "pdcfr+" and found.converged and found.nash_conv <= 1e-3
    assert [iterations for iterations, _ in found.trace[:2]] == [0, 50]
    on = meta_equilibrium(tree, target_nash_conv=5e-4, checkpoint=tmp_path / "run.npz")
    assert on.solver == "pdcfr+" and on.trace[0][0] == found.iterations + 50
    assert meta_equilibrium(tree).iterations == 1000


def test_a_target_ends_it(small_programs):
    small_programs(20)
    tree = _base_game("liars_dice(dice_sides=3)", 1e-4)
    whole = meta_equilibrium(tree)
    first = meta_equilibrium(tree, target_nash_conv=whole.trace[1][1])
    assert first.trace == whole.trace[:2] and first.converged
    missed = meta_equilibrium(tree, solver="double_oracle", iterations=1, target_nash_conv=0.0)
    assert missed.trace == whole.trace[:2] and not missed.converged


def test_a_run_goes_on_from_its_checkpoint(small_programs, tmp_path):
    small_programs(2, least=2.0)
    tree, path = _base_game("liars_dice(dice_sides=3)", 1e-4), tmp_path / "run.npz"
    told = []
    whole = meta_equilibrium(tree, progress=lambda *measured: told.append(measured))
    assert tuple(told) == whole.trace and whole.iterations >= 3
    meta_equilibrium(tree, solver="double_oracle", iterations=1, checkpoint=path)
    rest = meta_equilibrium(tree, checkpoint=path)
    assert rest.trace == whole.trace[2:]
    for one, other in zip(whole.strategies, rest.strategies, strict=True):
        assert one.memorize.tobytes() == other.memorize.tobytes()
    again = meta_equilibrium(tree, checkpoint=path)
    assert again.trace == whole.trace[-1:]
    with pytest.raises(ValueError, match="differs in variant"):
        meta_equilibrium(tree, variant="cfr+", checkpoint=path)
    with pytest.raises(ValueError, match="differs in penalties"):
        meta_equilibrium(_base_game("liars_dice(dice_sides=3)", 1e-4).with_penalties(0.5), checkpoint=path)


def test_what_is_asked_for_decides_the_solver():
    game = pyspiel.load_game("kuhn_poker")
    tree = HistoryTree.from_game(
        game, sigma_pre=random_policy(1, by="infoset"), sigma=random_policy(2, by="infoset"), penalties=0.01
    )
    assert meta_equilibrium(tree).solver == "double_oracle"
    assert meta_equilibrium(tree, target_nash_conv=1e-3, threads=2, check_every=10).solver == "double_oracle"
    assert meta_equilibrium(tree, iterations=5).solver == "cfr+"
    assert meta_equilibrium(tree, variant="dcfr").solver == "dcfr"
    assert meta_equilibrium(tree, solver="regret_minimization").solver == "cfr+"
    with pytest.raises(ValueError, match=r"meta_equilibrium\(\): expected no variant"):
        meta_equilibrium(tree, solver="double_oracle", variant="cfr+")
    with pytest.raises(ValueError, match=r"meta_equilibrium\(\): expected solver to be"):
        meta_equilibrium(tree, solver="simplex")


# -- budgets ---------------------------------------------------------------------------------------


def _value_within(matrix, sizes, budgets):
    """The value for the player of rows, where both mix rows and columns of such sizes on average."""
    count, columns = matrix.shape
    free = [budget is None for budget in budgets]
    result = scipy.optimize.linprog(
        np.concatenate([np.zeros(count), [-1.0, 0.0 if free[1] else budgets[1]]]),
        A_ub=np.vstack(
            [
                np.column_stack([-matrix.T, np.ones(columns), -sizes[1]]),
                [*(sizes[0] * (not free[0])), 0.0, 0.0],
            ]
        ),
        b_ub=np.append(np.zeros(columns), 0.0 if free[0] else budgets[0]),
        A_eq=[[*np.ones(count), 0.0, 0.0]],
        b_eq=[1.0],
        bounds=[(0.0, None)] * count + [(None, None), (0.0, 0.0 if free[1] else None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return -result.fun


def test_budgets_are_those_of_mixtures_of_sets(small_programs):
    binding = drawn = 0
    for k, (tree, _, matrix, sizes) in enumerate(_cases()[::2]):
        small_programs(1 + k % 3, least=2.0)
        rng = np.random.default_rng(k)
        budgets = [
            None if rng.random() < 0.2 else float(rng.uniform(0.0, 0.6 * max(s.max(), 1))) for s in sizes
        ]
        found = meta_equilibrium(tree, budgets=budgets)
        assert found.value == pytest.approx(_value_within(matrix, sizes, budgets), abs=1e-9)
        assert found.nash_conv < 1e-12
        for i, (budget, penalty) in enumerate(zip(budgets, tree.penalties, strict=True)):
            if budget is None or math.isinf(penalty):
                assert found.prices[i] == penalty
            else:
                assert found.sizes[i] <= budget + 1e-9
                assert (found.prices[i] - penalty) * (budget - found.sizes[i]) == pytest.approx(0.0, abs=1e-9)
                binding += found.prices[i] > penalty
            strategy = found.strategies[i]
            largest = max(len(members) for _, members in strategy.mixture())
            assert strategy.largest_size == largest
            drawn += budget is not None and largest > budget
        # An equilibrium at these prices, without budgets.
        priced = meta_exploitability(tree.with_penalties(found.prices), found.strategies)
        assert priced.nash_conv < 1e-9
    assert k >= 100 and binding >= 60 and drawn >= 40


def test_budgets_on_larger_trees(tmp_path):
    tree = paired_tree(3e-4)
    free = meta_equilibrium(tree)
    assert free.prices == tree.penalties
    budgets = (free.sizes[0] / 2.0, None)
    found = meta_equilibrium(tree, budgets=budgets, checkpoint=tmp_path / "run.npz")
    assert found.nash_conv < 1e-12 and found.converged and found.value < free.value
    assert found.sizes[0] == pytest.approx(budgets[0], abs=1e-9)
    assert found.prices[0] > tree.penalties[0] and found.prices[1] == tree.penalties[1]
    dearer = meta_equilibrium(tree.with_penalties(found.prices))
    paid = [price * size for price, size in zip(found.prices, found.sizes, strict=True)]
    assert dearer.value == pytest.approx(found.utility - paid[0] + paid[1], abs=1e-12)
    assert meta_equilibrium(tree, budgets=budgets, checkpoint=tmp_path / "run.npz").value == found.value
    with pytest.raises(ValueError, match="differs in budgets"):
        meta_equilibrium(tree, checkpoint=tmp_path / "run.npz")
    assert meta_equilibrium(tree, budgets=1e6).value == pytest.approx(free.value, abs=1e-12)
    nothing = meta_equilibrium(tree, budgets=0.0)
    assert nothing.sizes == (0.0, 0.0) and nothing.nash_conv < 1e-12
    with pytest.raises(
        ValueError, match=r"meta_equilibrium\(\): expected solver=\"double_oracle\" with budg"
    ):
        meta_equilibrium(tree, budgets=3, iterations=10)
