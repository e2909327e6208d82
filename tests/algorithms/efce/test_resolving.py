"""Refinements: Table 1, safety of what is stitched together, deeper subgames, regret minimization."""

import dataclasses

import numpy as np
import pytest

from precomp_games import config
from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.bounds import player_rows
from precomp_games.algorithms.efce.correlation_plans import plan_error
from precomp_games.algorithms.efce.equilibria import whole_game_problem
from precomp_games.algorithms.efce.refinement import PlanProgram
from precomp_games.algorithms.efce.regret import RegretResolver
from precomp_games.algorithms.efce.subgames import one_subgame
from precomp_games.algorithms.programs import Clock, LinearProgramError
from tests.oracles.treeplex import (
    all_refined,
    battleship,
    blueprint,
    held,
    random_game,
    refined,
    refined_again,
    resolving,
    sheriff,
    stitched,
    subgames_from,
)

SMALL = battleship(1, 3, 2)
LARGER = battleship(2, 2, 3)
SAFE_BOUNDS = ("separate", "aggregate")
BOUNDS = ("paper", *SAFE_BOUNDS)

# H, W, T, gamma: blueprint's and refined welfare of a subgame in Table 1 (Uniform), in units of 1e-2, as
# printed.
TABLE_1 = [
    (1, 3, 2, 2, "-3.70", "-3.70"),
    (1, 3, 2, 5, "-14.8", "-14.8"),
    (2, 2, 3, 2, "-3.13", "-2.95"),
    (2, 2, 3, 5, "-12.5", "-11.4"),
    (1, 5, 3, 2, "-1.92", "-1.34"),
    (1, 5, 3, 5, "-7.68", "-4.80"),
]


@pytest.mark.parametrize(("height", "width", "shots", "multiplier", "before", "after"), TABLE_1)
def test_table_1_uniform(height, width, shots, multiplier, before, after):
    game = battleship(height, width, shots, multiplier=multiplier)
    level = resolving(held(game, 1), blueprint(None), "separate")
    found = refined(level, level.names[0])
    for welfare, printed in ((found.blueprint_welfare, before), (found.welfare, after)):
        last_digit = 10.0 ** -len(printed.split(".")[1])
        assert 100 * welfare == pytest.approx(float(printed), abs=0.5000001 * last_digit)


# -- safety ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", SAFE_BOUNDS)
def test_stitched_refinements_are_safe_where_little_is_gained(bounds, cases):
    """Row 1 of Table 1, uniform and jittered."""
    for seed in (None, *range(cases(20))):
        level = resolving(held(SMALL, 1), blueprint(seed), bounds)
        found = stitched(level, blueprint(seed), all_refined(level))
        assert found.violation < 1e-6, seed
        assert found.welfare > found.blueprint_welfare - 1e-7, seed
        if bounds == "separate":
            for one in all_refined(level):
                assert one.welfare > one.blueprint_welfare - 1e-7, seed


SAFE = {
    "row 2, separate": (lambda: held(LARGER, 1), None, "separate"),
    "row 2, aggregate": (lambda: held(LARGER, 1), None, "aggregate"),
    "row 2, jittered": (lambda: held(LARGER, 1), 0, "separate"),
    "sheriff, separate": (lambda: held(sheriff(2, 2, 3), 1), 0, "separate"),
    "sheriff, aggregate": (lambda: held(sheriff(2, 2, 3), 1), None, "aggregate"),
    "sheriff, two rounds": (lambda: held(sheriff(2, 2, 3), 2), 0, "separate"),
    "one subgame": (lambda: one_subgame(held(SMALL)), 0, "aggregate"),
    "finest": (lambda: efce.finest_subgames(held(battleship(2, 2, 2)), 4), 4, "aggregate"),
}


@pytest.mark.parametrize("name", SAFE)
def test_stitched_refinements_are_safe_and_gain(name):
    whole, seed, bounds = SAFE[name]
    level = resolving(whole(), blueprint(seed), bounds)
    found = stitched(level, blueprint(seed), all_refined(level))
    assert found.violation < 1e-6
    assert found.welfare > found.blueprint_welfare + 1e-3
    for one in all_refined(level):
        assert one.welfare > one.blueprint_welfare - 1e-8, one.problem.name


def test_published_bounds_are_not_safe():
    level = resolving(held(SMALL, 1), blueprint(0), "paper")
    found = stitched(level, blueprint(0), all_refined(level))
    assert found.violation > 0.05


def test_aggregate_bounds_have_more_welfare_here():
    """In Table 1; not in every game (`test_bounds`)."""
    welfare = {}
    for bounds in BOUNDS:
        level = resolving(held(LARGER, 1), blueprint(None), bounds)
        welfare[bounds] = refined(level, level.names[0]).welfare
    assert welfare["aggregate"] > welfare["separate"] + 1e-3
    assert welfare["paper"] == pytest.approx(welfare["separate"], abs=1e-7)  # as in Table 1


def test_one_subgame_at_a_time_gives_the_same_problems():
    public = efce.public_moves(LARGER, 1)
    whole = resolving(held(LARGER, 1), blueprint(3))
    parts = efce.Resolving.of(LARGER, blueprint(3), public)
    assert set(parts.names) == set(whole.names)
    assert parts.counts == whole.counts
    for name in parts.names[::5]:
        one, two = parts.problem(name), whole.problem(name)
        assert one.bounds.kind == two.bounds.kind == "aggregate"
        np.testing.assert_allclose(one.blueprint.xi, two.blueprint.xi, atol=1e-15)
        for i in (0, 1):
            np.testing.assert_allclose(one.allowed[i], two.allowed[i], atol=1e-15)
            a, b = one.bounds.players[i], two.bounds.players[i]
            np.testing.assert_allclose(a.lower, b.lower, atol=1e-14)
            np.testing.assert_allclose(a.upper, b.upper, atol=1e-14)


# -- subgames of subgames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", SAFE_BOUNDS)
@pytest.mark.parametrize("game", [LARGER, sheriff(2, 2, 3)], ids=["battleship", "sheriff"])
def test_refining_again_deeper(game, bounds):
    level = resolving(held(game, 1), blueprint(2), bounds)
    refinements, gain = [], 0.0
    for k, name in enumerate(level.names):
        one = efce.refine_lp(level.problem(name))
        if k % 4 == 0:
            # Any safe plan leaves something to gain.
            program, clock = PlanProgram(one.problem, Clock(None)), Clock(None)
            plan, _ = program.solve(program.program.built(), clock, vertex=False)
            one = dataclasses.replace(one, plan=plan, welfare=plan.welfare(0))
            deeper = level.deeper(one, efce.public_moves(game, 2))
            for inner in all_refined(deeper):
                assert inner.welfare > inner.blueprint_welfare - 1e-7
            done = deeper.complete(all_refined(deeper))
            gain += done.welfare - one.welfare
            one = done
        refinements.append(one)
    assert stitched(level, blueprint(2), refinements).violation < 1e-6
    assert gain > 1e-4


def test_deeper_subgames_three_times():
    game = sheriff(1, 1, 4)
    level = first = resolving(held(game, 1), blueprint(1, 0.9), "separate")
    chain = []
    for rounds in (1, 2, 3):
        chain.append((refined(level, level.names[-1]), level))
        if rounds < 3:
            level = level.deeper(chain[-1][0], efce.public_moves(game, rounds + 1))
    done, level = chain.pop()
    for _, level_above in reversed(chain):
        done, level = level.complete([done]), level_above
    assert stitched(first, blueprint(1, 0.9), [done]).violation < 1e-6


# Costs seconds: linear programs of several games.
def test_stitched_refinements_are_safe_on_random_games(cases):
    """Refined once, and again where a refined subgame has subgames of its own."""
    tried = 0
    # Of the first one, first solutions leave entries of 1e-10.
    for seed, depth, bounds in [
        (75, 1, "separate"),
        *((seed, 1 + seed % 3, SAFE_BOUNDS[seed // 3 % 2]) for seed in range(cases(60))),
    ]:
        whole = subgames_from(held(random_game(seed, 5)), depth)
        if whole is None:
            continue
        start = blueprint(seed, 0.9 if seed % 2 else 1.0)
        level = resolving(whole, start, bounds)
        refinements = [refined_again(level, one, depth + 1) for one in all_refined(level)]
        for one in refinements:
            assert one.problem.violation(one.plan) < 1e-6, (seed, one.problem.name)
        found = stitched(level, start, refinements)
        assert found.violation < 1e-6, seed
        assert found.welfare > found.blueprint_welfare - 1e-6, seed
        tried += 1
    assert tried > cases(20)


def test_deeper_subgames_are_within_the_refined_one():
    level = resolving(held(SMALL, 1), blueprint(None))
    for public in (
        lambda state: None,
        lambda state: state.history()[-1] if len(state.history()) > 2 else None,
    ):
        with pytest.raises(ValueError, match=r"names none|valid decomposition|reach before"):
            level.deeper(refined(level, level.names[0]), public)


# -- regret minimization -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("variant", ["plain", "predictive"])
def test_regret_resolver_finds_safe_refinements(bounds, variant):
    level = resolving(held(LARGER, 1), blueprint(0), bounds)
    problem = level.problem(level.names[5])
    found = efce.refine_regret(problem, iterations=3000, start="random", variant=variant)
    assert found.violation < 1e-4
    assert plan_error(found.plan.pairs, found.plan.xi) < 1e-12
    outside = found.plan.pairs.pair_label < 0
    np.testing.assert_allclose(found.plan.xi[outside], problem.blueprint.xi[outside], atol=1e-13)
    assert found.curve.violation[0] > 10 * found.violation
    assert list(found.curve.iterations) == sorted(set(found.curve.iterations))


def test_single_precision_finds_what_double_does():
    level = resolving(held(LARGER, 1), blueprint(0))
    problem = level.problem(level.names[5])
    for iterations, apart, violation in ((5, 1e-5, 1.0), (500, 1.0, 1e-4)):
        double, single = (
            efce.refine_regret(problem, iterations=iterations, start="random", precision=precision)
            for precision in ("double", "single")
        )
        assert 0.0 < np.abs(double.plan.xi - single.plan.xi).max() < apart
        assert max(double.violation, single.violation) < violation
    assert plan_error(single.plan.pairs, single.plan.xi) < 1e-12
    outside = single.plan.pairs.pair_label < 0
    np.testing.assert_array_equal(single.plan.xi[outside], problem.blueprint.xi[outside])
    assert RegretResolver(problem, precision="single").total.dtype == np.float32


@pytest.mark.parametrize(
    ("game", "seed", "number", "share"),
    [(LARGER, None, 2, 0.95), (LARGER, 1, 2, 0.95), (sheriff(2, 2, 2), 2, -1, 0.9)],
    ids=["uniform", "jittered", "sheriff"],
)
def test_regret_resolver_agrees_with_the_linear_program(game, seed, number, share):
    """A target a little below the program's optimum is reached, one above is not, and violations agree."""
    level = resolving(held(game, 1), blueprint(seed), "separate")
    optimum = refined(level, level.names[number])
    problem = optimum.problem
    resolver = RegretResolver(problem)
    assert resolver.violation(optimum.plan) < 1e-7
    assert resolver.violation(problem.blueprint) < 1e-12
    gap = optimum.welfare - optimum.blueprint_welfare
    target = optimum.blueprint_welfare + share * gap
    reached = efce.refine_regret(problem, target=target, iterations=4000)
    assert reached.violation < 2e-5
    assert reached.welfare > target - 2e-5
    beyond = efce.refine_regret(problem, target=optimum.welfare + 5.0 * gap, iterations=1000)
    assert beyond.violation > 1e-4


def test_stitched_regret_refinements_are_nearly_safe():
    level = resolving(held(SMALL, 1), blueprint(0), "separate")
    refinements = [
        efce.refine_regret(level.problem(name), iterations=2000, start="random") for name in level.names
    ]
    worst = max(one.violation for one in refinements)
    # A trunk's trigger adds up its rows' violations, so many times at most.
    sides = [side for name in level.names for side in level.bounds(name).players]
    rows = sum(len(side.lower) + len(side.upper) for side in sides)
    assert worst < 1e-4
    assert stitched(level, blueprint(0), refinements).violation <= min(rows * worst, 1e-2)


def test_violation_is_the_worst_of_the_constraints():
    """By the definition: bounds and triggers measured one by one, on plans that violate them."""
    for bounds in BOUNDS:
        level = resolving(held(LARGER, 1), blueprint(3), bounds)
        problem = level.problem(level.names[1])
        resolver = RegretResolver(problem, start="random", seed=5)
        resolver.run(3)
        plan = resolver.average()
        delta = efce.exploitability(plan).delta
        expected = 0.0
        for i in (0, 1):
            inside = plan.game.players[i].sequence_label >= 0
            rows = player_rows(plan, i, bounds)
            side = problem.bounds.players[i]
            missed = [
                (delta[i] - problem.allowed[i])[inside],
                side.lower - rows.value,
                rows.cap_value - side.upper,
            ]
            expected = max(expected, *(float(each.max()) for each in missed))
        assert expected > 1e-3
        assert resolver.violation(plan) == pytest.approx(expected, abs=1e-12)
        assert resolver.violation(problem.blueprint) < 1e-12  # it keeps its own bounds


def test_whole_game_by_regret_minimization():
    problem = whole_game_problem(held(SMALL), blueprint(None))
    best = efce.efce_lp(held(SMALL))
    found = efce.refine_regret(problem, target=best.welfare - 1e-3, iterations=3000)
    assert found.violation < 1e-3
    assert efce.exploitability(found.plan).worst <= found.violation + 1e-12


# -- programs that have no solution, or will not fit -------------------------------------------------------


def test_where_nothing_is_safe():
    level = resolving(held(SMALL, 1), blueprint(0))
    problem = level.problem(level.names[0])
    bounds = problem.bounds
    sides = [dataclasses.replace(side, lower=side.lower + 10.0) for side in bounds.players]
    harder = dataclasses.replace(problem, bounds=dataclasses.replace(bounds, players=tuple(sides)))
    with pytest.raises(LinearProgramError, match="nfeasible"):
        efce.refine_lp(harder)
    assert harder.violation(problem.blueprint) > 9.0


def test_limits():
    level = resolving(held(LARGER, 1), blueprint(None))
    problem = level.problem(level.names[0])
    with pytest.raises(LinearProgramError, match=r"refine_lp.*ime limit"):
        efce.refine_lp(problem, time_limit=1e-3)
    with (
        config(max_memory="5MB"),
        pytest.raises(ValueError, match=r"refine_lp\(\).*max_memory=5 MB.*2,133 relevant pairs"),
    ):
        efce.refine_lp(problem)
    assert efce.refine_lp(problem).welfare > problem.blueprint.welfare(0)
