"""What a payoff's unit and zero may change, what may be claimed, and programs that will not fit."""

import dataclasses
import math
import time

import numpy as np
import pytest

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.projection import project
from precomp_games.algorithms.programs import LinearProgramError
from tests.algorithms.efce.reference import battleship, random_game, sheriff


def moved(held, scale, offset):
    """A game with each player's utilities times `scale` plus `offset`."""
    scale, offset = np.broadcast_to(scale, 2), np.broadcast_to(offset, 2)
    return dataclasses.replace(held, leaf_utility=held.leaf_utility * scale[:, None] + offset[:, None])


def with_subgames(seed):
    """A random game with subgames from the third move on; None if it has none."""
    try:
        return efce.finest_subgames(efce.SequenceGame.of(random_game(seed, 5)), 2)
    except ValueError:
        return None


def random_games(count):
    found = ((seed, with_subgames(seed)) for seed in range(10 * count))
    return [(seed, whole) for seed, whole in found if whole is not None][:count]


def part(game, blueprint, bounds="aggregate", name=None):
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    level = efce.Resolving.of_subgames(whole, blueprint, bounds)
    return level.problem(level.names[0] if name is None else name)


# -- units -------------------------------------------------------------------------------------------------

UNITS = [(1.0, 1e6), (1.0, (-1e6, 1e6)), (1e-6, 0.0), (1e6, 0.0)]


@pytest.mark.parametrize(("scale", "offset"), UNITS)
def test_equilibria_do_not_depend_on_units(scale, offset):
    for seed in range(40):
        whole = efce.SequenceGame.of(random_game(seed, 5))
        best = efce.efce_lp(whole, vertex=True)
        found = efce.efce_lp(moved(whole, scale, offset))
        welfare = (found.welfare - np.broadcast_to(offset, 2).sum()) / scale
        assert welfare == pytest.approx(best.welfare, rel=1e-6, abs=1e-8)
        assert found.exploitability / scale < 1e-8


@pytest.mark.parametrize("scale", [(1e3, 1.0), (1.0, 1e-3)])
def test_welfare_adds_up_utilities_in_the_games_own_units(scale):
    for seed in range(10):
        whole = moved(efce.SequenceGame.of(random_game(seed, 5)), scale, 0.0)
        best = efce.efce_lp(whole, vertex=True).welfare
        assert efce.efce_lp(whole).welfare == pytest.approx(best, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("scale", "offset"), UNITS)
def test_exploitability_is_measured_to_the_same_precision(scale, offset):
    for seed in range(10):
        whole = efce.SequenceGame.of(random_game(seed, 5))
        before = efce.exploitability(
            efce.plan_of(efce.jittered_blueprint(seed), efce.RelevantPairs.of(whole))
        )
        other = moved(whole, scale, offset)
        after = efce.exploitability(efce.plan_of(efce.jittered_blueprint(seed), efce.RelevantPairs.of(other)))
        for i in (0, 1):
            np.testing.assert_allclose(
                after.delta[i] / np.broadcast_to(scale, 2)[i], before.delta[i], atol=1e-13
            )
            np.testing.assert_array_equal(after.deviate[i], after.follow[i] + after.delta[i])


@pytest.mark.parametrize(("scale", "offset"), UNITS)
def test_aggregate_refinements_do_not_depend_on_units(scale, offset):
    for seed, whole in random_games(8):
        blueprint = efce.jittered_blueprint(seed, 0.9)
        plain = efce.Resolving.of_subgames(whole, blueprint)
        other = efce.Resolving.of_subgames(moved(whole, scale, offset), blueprint)
        for name in plain.names:
            vertex = efce.refine_lp(plain.problem(name), vertex=True)
            found = efce.refine_lp(other.problem(name))
            gain = (found.welfare - found.blueprint_welfare) / scale
            assert gain == pytest.approx(vertex.welfare - vertex.blueprint_welfare, abs=3e-9)


def gain(whole, blueprint, bounds, offset):
    """Of all subgames, from "aggregate" or other bounds, with a constant added to all utilities."""
    level = efce.Resolving.of_subgames(moved(whole, 1.0, offset), blueprint, bounds)
    refined = [efce.refine_lp(level.problem(name)) for name in level.names]
    plan = efce.stitch(moved(whole, 1.0, offset), blueprint, refined)
    assert bounds == "paper" or efce.safety(plan, efce.plan_of(blueprint, plan.pairs)).violation < 1e-7
    return sum(found.welfare - found.blueprint_welfare for found in refined)


def test_separate_bounds_change_with_a_constant_and_aggregate_ones_do_not():
    total = {}
    for seed, whole in random_games(8):
        for offset in (-100.0, 0.0, 100.0):
            gains = {
                b: gain(whole, efce.jittered_blueprint(seed, 0.9), b, offset)
                for b in ("separate", "aggregate")
            }
            assert gains["aggregate"] > gains["separate"] - 1e-6
            for bounds, value in gains.items():
                total[bounds, offset] = total.get((bounds, offset), 0.0) + value
    assert total["aggregate", -100.0] == pytest.approx(total["aggregate", 0.0], abs=1e-7)
    assert total["aggregate", 100.0] == pytest.approx(total["aggregate", 0.0], abs=1e-7)
    assert total["separate", -100.0] < total["separate", 0.0] - 0.1
    assert total["separate", 100.0] < total["separate", 0.0] - 0.1


def test_aggregate_bounds_are_the_default():
    game = battleship(1, 3, 2)
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    for level in (
        efce.Resolving.of(game, efce.uniform_blueprint(), efce.public_moves(game, 1)),
        efce.Resolving.of_subgames(whole, efce.uniform_blueprint()),
    ):
        assert level.bounds(level.names[0]).kind == "aggregate"


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e6), (1e6, 0.0), (1e-6, 0.0)])
def test_regret_minimization_does_not_depend_on_units(scale, offset):
    game = sheriff(2, 2, 2)
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    plans, found = [], []
    for held in (whole, moved(whole, scale, offset)):
        problem = efce.Resolving.of_subgames(held, efce.jittered_blueprint(2)).problem((5, 0))
        plans.append(efce.refine_regret(problem, iterations=50, start="random").plan)
        shift = 2.0 * offset * problem.mass if held is not whole else 0.0
        target = efce.search_target(problem, iterations=200).target
        found.append((target - shift) / (scale if held is not whole else 1.0))
    np.testing.assert_allclose(plans[0].xi, plans[1].xi, atol=1e-6)
    assert found[0] == pytest.approx(found[1], abs=1e-3)


# -- plans that are plans, and claims that are true --------------------------------------------------------


def test_what_is_no_plan_is_no_plan():
    pairs = efce.RelevantPairs.of(efce.SequenceGame.of(battleship(1, 3, 2)))
    plan = efce.plan_of(efce.jittered_blueprint(1), pairs)
    for wrong in (np.zeros(len(pairs)), 2.0 * plan.xi):
        with pytest.raises(ValueError, match=r"CorrelationPlan\(\).*misses Xi by 1\.0"):
            efce.CorrelationPlan(pairs, wrong)
        with pytest.raises(ValueError, match="misses Xi"):
            dataclasses.replace(plan, xi=wrong)
    with pytest.raises(ValueError, match=f"{len(pairs)} finite numbers"):
        efce.CorrelationPlan(pairs, plan.xi[:-1])
    with pytest.raises(ValueError, match="read-only"):
        plan.xi[:] = 0.0
    with pytest.raises(ValueError, match=r"entries\(\): expected relevant pairs"):
        # Both players' first decisions are connected; second ones after other shots are not.
        count = [form.num_sequences for form in plan.game.players]
        every = np.indices(count).reshape(2, -1)
        plan.entries(plan.game, *every)


def test_plan_error_is_that_of_the_sparse_constraints():
    rng = np.random.default_rng(0)
    for seed in range(20):
        pairs = efce.RelevantPairs.of(efce.SequenceGame.of(random_game(seed, 5)))
        for noise in (0.0, 1e-3, 1.0):
            xi = efce.plan_of(efce.jittered_blueprint(seed), pairs).xi + noise * rng.normal(size=len(pairs))
            rows = [efce.flow_constraints(pairs, player)[0] for player in (0, 1)]
            worst = [abs(xi[0] - 1.0), -xi.min(), *(abs(r @ xi).max() for r in rows if r.shape[0])]
            assert efce.plan_error(pairs, xi) == pytest.approx(max(worst), abs=1e-15)


def test_refinements_of_another_blueprint_are_not_stitched():
    game = battleship(1, 3, 2)
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    level = efce.Resolving.of_subgames(whole, efce.jittered_blueprint(0))
    refined = [efce.refine_lp(level.problem(name)) for name in level.names]
    assert efce.stitch(whole, efce.jittered_blueprint(0), refined)
    with pytest.raises(
        ValueError, match=r"stitch\(\).*jittered_blueprint\(seed=1, width=0\.5\).*another blueprint"
    ):
        efce.stitch(whole, efce.jittered_blueprint(1), refined)


CLAIMS = [
    (lambda: part(battleship(1, 4, 3, multiplier=3), efce.jittered_blueprint(990002, 0.8)), 0.9),
    (lambda: part(battleship(1, 4, 3, multiplier=3), efce.jittered_blueprint(990002, 0.8), name=(2, 0)), 0.9),
    (lambda: part(battleship(2, 2, 3), efce.jittered_blueprint(1)), 0.9),
    (lambda: part(battleship(2, 2, 3), efce.jittered_blueprint(1), "separate"), 0.9),
    # No plan keeps all of the uniform blueprint's constraints with room to spare.
    (lambda: part(battleship(2, 2, 3), efce.uniform_blueprint()), 0.9),
    (lambda: part(battleship(2, 2, 3), efce.uniform_blueprint(), "separate"), 0.5),
    (lambda: part(sheriff(2, 2, 3), efce.jittered_blueprint(0)), 0.9),
    (lambda: part(sheriff(2, 2, 3), efce.uniform_blueprint()), 0.9),
    (lambda: part(battleship(1, 3, 2), efce.uniform_blueprint()), 0.0),
]


@pytest.mark.parametrize("number", range(len(CLAIMS)))
def test_no_more_is_claimed_than_a_safe_plan_has(number):
    make, share = CLAIMS[number]
    problem = make()
    best = efce.refine_lp(problem)
    found = efce.search_target(problem)
    assert found.target == found.welfare == pytest.approx(found.plan.welfare(0))
    assert found.target <= best.welfare + 1e-8
    assert found.violation < 1e-9
    possible = best.welfare - best.blueprint_welfare
    assert found.target >= best.blueprint_welfare + share * possible - 1e-9


def test_claims_are_safe_where_violations_are_rough():
    """Whatever a target is said to need, what is claimed is safe: mixed with the blueprint if need be."""
    problem = part(battleship(2, 2, 3), efce.jittered_blueprint(1))
    best = efce.refine_lp(problem).welfare
    for violation in (1e-2, 1e-3):
        found = efce.search_target(problem, violation=violation, iterations=20)
        assert found.violation < 1e-9
        assert problem.blueprint.welfare(0) <= found.target <= best + 1e-8


@pytest.mark.parametrize("bounds", ["separate", "aggregate"])
def test_plans_are_make_safe(bounds):
    problem = part(battleship(2, 2, 3), efce.jittered_blueprint(3), bounds)
    resolver = efce.RegretResolver(problem, start="random", seed=1)
    for iterations in (1, 10, 100, 500):
        resolver.run(iterations)
        plan = resolver.average()
        safe = resolver.make_safe(plan, problem.blueprint)
        assert resolver.violation(safe) < 1e-9
        if iterations == 1:
            assert resolver.violation(plan) > 1e-4
        if iterations == 500:
            assert np.abs(safe.xi - plan.xi).max() < 1e-2
    # What is safe stays as it is.
    again = resolver.make_safe(safe, problem.blueprint)
    np.testing.assert_array_equal(again.xi, safe.xi)


def test_projection_gives_up_where_nothing_is_safe():
    problem = part(battleship(1, 3, 2), efce.jittered_blueprint(0))
    bounds = problem.bounds
    sides = [dataclasses.replace(side, lower=side.lower + 10.0) for side in bounds.players]
    harder = dataclasses.replace(problem, bounds=dataclasses.replace(bounds, players=tuple(sides)))
    resolver = efce.RegretResolver(harder)
    assert project(resolver.steps, resolver.sides, problem.blueprint.xi, 1e-10) is None
    with pytest.raises(ValueError, match="expected a safe plan"):
        resolver.make_safe(problem.blueprint, problem.blueprint)


# -- programs that will not fit ----------------------------------------------------------------------------


def test_programs_that_will_not_fit_are_refused_before_they_are_built():
    game = battleship(1, 3, 2)
    with pytest.raises(
        ValueError, match=r"efce_lp\(\).*1,149 relevant pairs.*0\.0 GB.*refine_regret\(\).*max_memory_gb"
    ):
        efce.efce_lp(game, max_memory_gb=1e-3)
    problem = part(battleship(2, 2, 3), efce.uniform_blueprint())
    with pytest.raises(ValueError, match=r"refine_lp\(\).*2,133 relevant pairs"):
        efce.refine_lp(problem, max_memory_gb=5e-3)
    assert efce.refine_lp(problem, max_memory_gb=math.inf).welfare > problem.blueprint.welfare(0)


def test_the_time_limit_includes_building():
    whole = efce.SequenceGame.of(battleship(1, 5, 3))
    start = time.process_time()
    with pytest.raises(LinearProgramError, match=r"efce_lp\(\).*Time limit"):
        efce.efce_lp(whole, time_limit=0.3)
    assert time.process_time() - start < 3.0


def test_the_greatest_game_of_the_paper_will_not_fit():
    with pytest.raises(ValueError, match=r"3,893,340 relevant pairs, which takes some 11\.7 GB"):
        efce.efce_lp(battleship(2, 3, 3), time_limit=60.0)
