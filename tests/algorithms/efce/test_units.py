"""The unit and zero of payoffs change nothing but bounds of other kinds than "aggregate"."""

import numpy as np
import pytest

from precomp_games.algorithms import efce
from tests.oracles.treeplex import (
    all_refined,
    blueprint,
    held,
    moved,
    random_game,
    random_subgames,
    resolving,
    sheriff,
    stitched,
)

UNITS = [(1.0, 1e6), (1.0, (-1e6, 1e6)), (1e-6, 0.0), (1e6, 0.0)]


def test_equilibria_do_not_depend_on_units(cases):
    for seed in range(cases(40)):
        whole = held(random_game(seed, 5))
        best = efce.efce_lp(whole, vertex=True)
        for scale, offset in UNITS:
            found = efce.efce_lp(moved(whole, scale, offset))
            welfare = (found.welfare - np.broadcast_to(offset, 2).sum()) / scale
            assert welfare == pytest.approx(best.welfare, rel=1e-6, abs=1e-8), (seed, scale, offset)
            assert found.exploitability / scale < 1e-8


def test_welfare_adds_up_utilities_in_the_games_own_units(cases):
    for seed in range(cases(10)):
        for scale in ((1e3, 1.0), (1.0, 1e-3)):
            whole = moved(held(random_game(seed, 5)), scale, 0.0)
            best = efce.efce_lp(whole, vertex=True).welfare
            assert efce.efce_lp(whole).welfare == pytest.approx(best, rel=1e-6, abs=1e-7), (seed, scale)


def test_exploitability_is_measured_to_the_same_precision():
    for seed in range(10):
        whole = held(random_game(seed, 5))
        before = efce.exploitability(efce.CorrelationPlan.of(whole, blueprint(seed)))
        for scale, offset in UNITS:
            plan = efce.CorrelationPlan.of(moved(whole, scale, offset), blueprint(seed))
            after = efce.exploitability(plan)
            for i in (0, 1):
                np.testing.assert_allclose(after.delta[i] / scale, before.delta[i], atol=1e-13)


def test_aggregate_refinements_do_not_depend_on_units(cases):
    for seed, whole in random_subgames(cases(8)):
        start = blueprint(seed, 0.9)
        plain = resolving(whole, start)
        vertices = [efce.refine_lp(plain.problem(name), vertex=True) for name in plain.names]
        for scale, offset in UNITS:
            level = resolving(moved(whole, scale, offset), start)
            for vertex, found in zip(vertices, all_refined(level), strict=True):
                gain = (found.welfare - found.blueprint_welfare) / scale
                assert gain == pytest.approx(vertex.welfare - vertex.blueprint_welfare, abs=3e-9), seed


def test_separate_bounds_change_with_a_constant_and_aggregate_ones_do_not(cases):
    total = {}
    for seed, whole in random_subgames(cases(8)):
        start = blueprint(seed, 0.9)
        for offset in (-100.0, 0.0, 100.0):
            for bounds in ("separate", "aggregate"):
                level = resolving(moved(whole, 1.0, offset), start, bounds)
                assert stitched(level, start, all_refined(level)).violation < 1e-7
                gain = sum(found.welfare - found.blueprint_welfare for found in all_refined(level))
                total[bounds, offset] = total.get((bounds, offset), 0.0) + gain
            assert total["aggregate", offset] > total["separate", offset] - 1e-6
    for offset in (-100.0, 100.0):
        assert total["aggregate", offset] == pytest.approx(total["aggregate", 0.0], abs=1e-7)
        assert total["separate", offset] < total["separate", 0.0] - 0.1


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e6), (1e6, 0.0), (1e-6, 0.0)])
def test_regret_minimization_does_not_depend_on_units(scale, offset):
    plans = []
    for unit, zero in ((1.0, 0.0), (scale, offset)):
        whole = moved(held(sheriff(2, 2, 2), 1), unit, zero)
        problem = resolving(whole, blueprint(2)).problem((5, 0))
        plans.append(efce.refine_regret(problem, iterations=50, start="random").plan)
    np.testing.assert_allclose(plans[0].xi, plans[1].xi, atol=1e-6)
