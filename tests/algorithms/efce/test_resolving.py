"""Refinements: Table 1, safety of what is stitched together, deeper subgames, regret minimization."""

import dataclasses
import math

import numpy as np
import pytest

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.resolving import whole_game_problem
from tests.algorithms.efce.reference import battleship, sheriff

# H, W, T, gamma: blueprint's and refined welfare of a subgame in Table 1 (Uniform), in units of 1e-2, as
# printed.
TABLE_1 = [
    (1, 3, 2, 2, "-3.70", "-3.70"),
    (1, 3, 2, 5, "-14.8", "-14.8"),
    (2, 2, 3, 2, "-3.13", "-2.95"),
    (2, 2, 3, 5, "-12.5", "-11.4"),
    pytest.param(1, 5, 3, 2, "-1.92", "-1.34"),
    pytest.param(1, 5, 3, 5, "-7.68", "-4.80"),
]


def resolving(game, blueprint, rounds=1, bounds="separate"):
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, rounds))
    return whole, efce.Resolving.of_subgames(whole, blueprint, bounds)


def safety(whole, blueprint, refinements):
    plan = efce.stitch(whole, blueprint, refinements)
    assert efce.plan_error(plan.pairs, plan.xi) < 1e-7
    return efce.safety(plan, efce.plan_of(blueprint, plan.pairs))


def printed(value, as_printed):
    """Whether a welfare is what was printed, to the last digit printed."""
    return abs(100 * value - float(as_printed)) <= 0.5000001 * 10.0 ** -len(as_printed.split(".")[1])


@pytest.mark.parametrize(("height", "width", "shots", "multiplier", "blueprint", "refined"), TABLE_1)
def test_table_1_uniform(height, width, shots, multiplier, blueprint, refined):
    game = battleship(height, width, shots, multiplier=multiplier)
    _, subgames = resolving(game, efce.uniform_blueprint())
    found = efce.refine_lp(subgames.problem(subgames.names[0]))
    assert printed(found.blueprint_welfare, blueprint)
    assert printed(found.welfare, refined)


@pytest.mark.parametrize("seed", range(3))
def test_table_1_jittered(seed):
    for height, width, shots in ((1, 3, 2), (2, 2, 3)):
        found = {}
        for multiplier in (2, 5):
            game = battleship(height, width, shots, multiplier=multiplier)
            _, subgames = resolving(game, efce.jittered_blueprint(seed))
            found[multiplier] = efce.refine_lp(subgames.problem(subgames.names[seed]))
            gain = found[multiplier].welfare - found[multiplier].blueprint_welfare
            assert gain > -1e-8
            if width == 3:
                assert gain == pytest.approx(0.0, abs=1e-7)
        assert found[5].blueprint_welfare == pytest.approx(4 * found[2].blueprint_welfare, abs=1e-12)


@pytest.mark.parametrize("bounds", ["separate", "aggregate"])
@pytest.mark.parametrize("seed", [None, *range(20)])
def test_stitched_refinements_are_safe_row_1(seed, bounds):
    blueprint = efce.uniform_blueprint() if seed is None else efce.jittered_blueprint(seed)
    whole, subgames = resolving(battleship(1, 3, 2), blueprint, bounds=bounds)
    found = safety(whole, blueprint, [efce.refine_lp(subgames.problem(name)) for name in subgames.names])
    assert found.violation < 1e-6
    assert found.welfare > found.blueprint_welfare - 1e-7


@pytest.mark.parametrize(("bounds", "seed"), [("separate", None), ("aggregate", None), ("separate", 0)])
@pytest.mark.seconds("16 linear programs of the paper's game")
def test_stitched_refinements_are_safe_row_2(bounds, seed):
    blueprint = efce.uniform_blueprint() if seed is None else efce.jittered_blueprint(seed)
    whole, subgames = resolving(battleship(2, 2, 3), blueprint, bounds=bounds)
    refinements = [efce.refine_lp(subgames.problem(name)) for name in subgames.names]
    found = safety(whole, blueprint, refinements)
    assert found.violation < 1e-6
    assert found.welfare > found.blueprint_welfare + 1e-3
    for refined in refinements:
        assert refined.welfare > refined.blueprint_welfare - 1e-8


def test_published_bounds_are_not_safe():
    worst = {}
    for bounds in efce.BOUNDS:
        whole, subgames = resolving(battleship(1, 3, 2), efce.jittered_blueprint(0), bounds=bounds)
        refinements = [efce.refine_lp(subgames.problem(name)) for name in subgames.names]
        found = safety(whole, efce.jittered_blueprint(0), refinements)
        worst[bounds] = found.violation
        assert found.trunk_violation == pytest.approx(found.violation) or found.violation < 1e-6
    assert worst["paper"] > 0.05
    assert worst["separate"] < 1e-6 and worst["aggregate"] < 1e-6


def test_aggregate_bounds_have_more_welfare_here():
    """In Table 1; not in every game (`test_bounds`)."""
    welfare = {}
    for bounds in efce.BOUNDS:
        _, subgames = resolving(battleship(2, 2, 3), efce.uniform_blueprint(), bounds=bounds)
        welfare[bounds] = efce.refine_lp(subgames.problem(subgames.names[0])).welfare
    assert welfare["aggregate"] > welfare["separate"] + 1e-3
    assert welfare["paper"] == pytest.approx(welfare["separate"], abs=1e-7)  # as in Table 1


def test_the_blueprint_keeps_its_own_bounds():
    for blueprint in (efce.uniform_blueprint(), efce.jittered_blueprint(1)):
        for bounds in efce.BOUNDS:
            _, subgames = resolving(battleship(2, 2, 3), blueprint, bounds=bounds)
            for name in subgames.names[::7]:
                for side in subgames.bounds(name).players:
                    assert (side.lower <= side.rows.value + 1e-12).all()
                    assert (side.upper >= side.rows.cap_value - 1e-12).all()


def test_one_subgame_at_a_time_gives_the_same_problems():
    game = battleship(2, 2, 3)
    blueprint = efce.jittered_blueprint(3)
    _, whole = resolving(game, blueprint)
    told = []
    parts = efce.Resolving.of(game, blueprint, efce.public_moves(game, 1), "separate", progress=told.append)
    assert told == parts.names and set(parts.names) == set(whole.names)
    assert parts.counts == efce.count_pairs(game, efce.public_moves(game, 1), parts.names)
    assert parts.counts.total == 35241
    for name in parts.names[::5]:
        one, two = parts.problem(name), whole.problem(name)
        np.testing.assert_allclose(one.blueprint.xi, two.blueprint.xi, atol=1e-15)
        for i in (0, 1):
            np.testing.assert_allclose(one.allowed[i], two.allowed[i], atol=1e-15)
            a, b = one.bounds.players[i], two.bounds.players[i]
            np.testing.assert_allclose(a.lower, b.lower, atol=1e-14)
            np.testing.assert_allclose(a.upper, b.upper, atol=1e-14)


def test_all_of_the_game_as_one_subgame():
    game = battleship(1, 3, 2)
    whole = efce.one_subgame(efce.SequenceGame.of(game))
    subgames = efce.Resolving.of_subgames(whole, efce.jittered_blueprint(0))
    refined = efce.refine_lp(subgames.problem("game"))
    found = efce.safety(refined.plan, subgames.problem("game").blueprint)
    assert found.violation < 1e-7 and found.welfare > found.blueprint_welfare


@pytest.mark.parametrize("bounds", ["separate", "aggregate"])
@pytest.mark.parametrize("case", ["battleship", "sheriff"])
def test_refining_again_deeper(case, bounds):
    game = battleship(2, 2, 3) if case == "battleship" else sheriff(2, 2, 3)
    blueprint = efce.jittered_blueprint(2)
    whole, subgames = resolving(game, blueprint, bounds=bounds)
    refinements, gain = [], 0.0
    for k, name in enumerate(subgames.names):
        refined = efce.refine_lp(subgames.problem(name), objective="none" if k % 4 == 0 else "welfare")
        if k % 4 == 0:
            deeper = subgames.deeper(refined, efce.public_moves(game, 2))
            finer = [efce.refine_lp(deeper.problem(inner)) for inner in deeper.names]
            for inner in finer:
                assert inner.welfare > inner.blueprint_welfare - 1e-7
            done = efce.complete(refined, finer, deeper.game)
            assert efce.plan_error(done.plan.pairs, done.plan.xi) < 1e-7
            gain += done.welfare - refined.welfare
            refined = done
        refinements.append(refined)
    found = safety(whole, blueprint, refinements)
    assert found.violation < 1e-6
    assert gain > 1e-4


def test_deeper_subgames_three_times():
    game = sheriff(1, 1, 4)
    blueprint = efce.jittered_blueprint(1, 0.9)
    whole, level = resolving(game, blueprint)
    refined, chain = None, []
    for rounds in (1, 2, 3):
        name = level.names[-1]
        refined = efce.refine_lp(level.problem(name))
        chain.append((refined, level))
        if rounds < 3:
            level = level.deeper(refined, efce.public_moves(game, rounds + 1))
    for k in (1, 0):
        chain[k] = (efce.complete(chain[k][0], [chain[k + 1][0]], chain[k + 1][1].game), chain[k][1])
    assert safety(whole, blueprint, [chain[0][0]]).violation < 1e-6


@pytest.mark.parametrize(("bounds", "rounds"), [("separate", 1), ("aggregate", 1), ("separate", 2)])
def test_sheriff(bounds, rounds):
    game = sheriff(2, 2, 3)
    for blueprint in (efce.uniform_blueprint(), efce.jittered_blueprint(0)):
        whole, subgames = resolving(game, blueprint, rounds, bounds)
        assert len(subgames.names) == (3 * 2) ** rounds
        found = safety(whole, blueprint, [efce.refine_lp(subgames.problem(name)) for name in subgames.names])
        assert found.violation < 1e-6
        assert found.welfare > found.blueprint_welfare + 1e-3


def test_finest_subgames_are_safe_too():
    whole = efce.finest_subgames(efce.SequenceGame.of(battleship(2, 2, 2)), 4)
    # After both placements and one shot each, if neither hit: as by public moves.
    assert len(whole.labels) == 16
    assert set(whole.node_label[whole.node_player >= 0]) == {-1, *range(16)}
    blueprint = efce.jittered_blueprint(4)
    subgames = efce.Resolving.of_subgames(whole, blueprint)
    found = safety(whole, blueprint, [efce.refine_lp(subgames.problem(name)) for name in subgames.names])
    assert found.violation < 1e-6


# -- regret minimization ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", ["separate", "aggregate", "paper"])
@pytest.mark.parametrize("variant", ["plain", "predictive"])
def test_regret_resolver_finds_safe_refinements(bounds, variant):
    _, subgames = resolving(battleship(2, 2, 3), efce.jittered_blueprint(0), bounds=bounds)
    problem = subgames.problem(subgames.names[5])
    found = efce.refine_regret(problem, iterations=3000, start="random", variant=variant)
    assert found.violation < 1e-4
    assert efce.plan_error(found.plan.pairs, found.plan.xi) < 1e-12
    outside = found.plan.pairs.pair_label < 0
    np.testing.assert_allclose(found.plan.xi[outside], problem.blueprint.xi[outside], atol=1e-13)
    assert found.curve.violation[0] > 10 * found.violation
    assert list(found.curve.iterations) == sorted(set(found.curve.iterations))


@pytest.mark.parametrize("blueprint", [efce.uniform_blueprint(), efce.jittered_blueprint(1)])
def test_regret_resolver_agrees_with_the_linear_program(blueprint):
    """A target a little below the program's optimum is reached, one above is not, and violations agree."""
    _, subgames = resolving(battleship(2, 2, 3), blueprint)
    problem = subgames.problem(subgames.names[2])
    optimum = efce.refine_lp(problem)
    resolver = efce.RegretResolver(problem)
    assert resolver.violation(optimum.plan) < 1e-7
    assert resolver.violation(problem.blueprint) < 1e-12
    gap = optimum.welfare - optimum.blueprint_welfare
    reached = efce.refine_regret(problem, target=optimum.welfare - 0.05 * gap, iterations=4000)
    assert reached.violation < 2e-5
    assert reached.welfare > optimum.welfare - 0.05 * gap - 2e-5
    beyond = efce.refine_regret(problem, target=0.5 * optimum.welfare, iterations=4000)
    assert beyond.violation > 1e-4


def test_regret_resolver_on_sheriff():
    _, subgames = resolving(sheriff(2, 2, 2), efce.jittered_blueprint(2))
    problem = subgames.problem((5, 0))
    optimum = efce.refine_lp(problem)
    target = optimum.welfare - 0.1 * (optimum.welfare - optimum.blueprint_welfare)
    found = efce.refine_regret(problem, target=target, iterations=2000)
    assert found.violation < 1e-5
    assert found.welfare > optimum.blueprint_welfare + 0.03


def test_stitched_regret_refinements_are_nearly_safe():
    blueprint = efce.jittered_blueprint(0)
    whole, subgames = resolving(battleship(2, 2, 3), blueprint)
    refinements = [
        efce.refine_regret(subgames.problem(name), iterations=2000, start="random") for name in subgames.names
    ]
    worst = max(refined.violation for refined in refinements)
    found = safety(whole, blueprint, refinements)
    # A trunk's trigger adds up its rows' violations, so many times at most.
    rows = sum(
        len(side.lower) + len(side.upper) for name in subgames.names for side in subgames.bounds(name).players
    )
    assert worst < 1e-4
    assert found.violation <= rows * worst
    assert found.violation < 1e-2


def test_violation_is_the_worst_of_the_constraints():
    """By the definition: bounds and triggers measured one by one, on plans that violate them."""
    from precomp_games.algorithms.efce.subgame_rows import player_rows

    for bounds in efce.BOUNDS:
        _, subgames = resolving(battleship(2, 2, 3), efce.jittered_blueprint(3), bounds=bounds)
        problem = subgames.problem(subgames.names[1])
        resolver = efce.RegretResolver(problem, start="random", seed=5)
        resolver.run(3)
        plan = resolver.average()
        delta = efce.exploitability(plan).delta
        expected = 0.0
        for i in (0, 1):
            form = plan.game.players[i]
            inside = form.sequence_label >= 0
            expected = max(expected, float((delta[i] - problem.allowed[i])[inside].max()))
            rows = player_rows(plan, i, bounds)
            side = problem.bounds.players[i]
            expected = max(expected, float((side.lower - rows.value).max()))
            expected = max(expected, float((rows.cap_value - side.upper).max()))
        assert expected > 1e-3
        assert resolver.violation(plan) == pytest.approx(expected, abs=1e-12)


def test_whole_game_by_regret_minimization():
    game = battleship(1, 3, 2)
    problem = whole_game_problem(efce.SequenceGame.of(game), efce.uniform_blueprint())
    best = efce.efce_lp(game)
    found = efce.refine_regret(problem, target=best.welfare - 1e-3, iterations=3000)
    assert found.violation < 1e-3
    assert efce.exploitability(found.plan).worst <= found.violation + 1e-12


@pytest.mark.seconds("many linear programs")
def test_search_for_the_welfare_target():
    _, subgames = resolving(battleship(2, 2, 3), efce.uniform_blueprint())
    problem = subgames.problem(subgames.names[0])
    optimum = efce.refine_lp(problem).welfare
    found = efce.search_target(problem, violation=1e-5, gap=2e-4, iterations=3000)
    assert found.violation <= 1e-5
    assert optimum - 1e-3 < found.target < optimum + 1e-3


# -- bad input -------------------------------------------------------------------------------------------


def test_bad_input():
    game = battleship(1, 3, 2)
    whole, subgames = resolving(game, efce.uniform_blueprint())
    problem = subgames.problem(subgames.names[0])
    with pytest.raises(ValueError, match='one of "paper", "separate", "aggregate"'):
        resolving(game, efce.uniform_blueprint(), bounds="tight")
    with pytest.raises(ValueError, match="with subgames"):
        efce.Resolving.of_subgames(efce.SequenceGame.of(game), efce.uniform_blueprint())
    with pytest.raises(ValueError, match="name of a subgame"):
        subgames.problem("no such")
    with pytest.raises(ValueError, match="objective"):
        efce.refine_lp(problem, objective="utility")
    refined = efce.refine_lp(problem)
    with pytest.raises(ValueError, match="again or unknown"):
        efce.stitch(whole, efce.uniform_blueprint(), [refined, refined])
    other, _ = resolving(battleship(2, 2, 2), efce.uniform_blueprint())
    with pytest.raises(ValueError, match="another's"):
        efce.stitch(other, efce.uniform_blueprint(), [refined])
    with pytest.raises(ValueError, match="same game"):
        efce.safety(efce.plan_of(efce.uniform_blueprint(), efce.RelevantPairs.of(other)), refined.plan)
    with pytest.raises(ValueError, match="names none"):
        subgames.deeper(refined, lambda state: None)
    with pytest.raises(ValueError, match=r"valid decomposition|reach before"):
        subgames.deeper(refined, lambda state: state.history()[-1] if len(state.history()) > 2 else None)
    for arguments, words in (
        ({"iterations": 0}, "iterations"),
        ({"iterations": 1.5}, "iterations"),
        ({"check_every": 0.5}, "check_every"),
        ({"target": "much"}, "target"),
        ({"check_every": -1}, "check_every"),
        ({"start": "here"}, "start"),
        ({"variant": "best"}, "variant"),
        ({"target": math.nan}, "target"),
    ):
        with pytest.raises(ValueError, match=words):
            efce.refine_regret(problem, **arguments)
    with pytest.raises(ValueError, match="violation to be a positive"):
        efce.search_target(problem, violation=0.0)
    with pytest.raises(ValueError, match="at least one iteration"):
        efce.RegretResolver(problem).average()


def test_programs_without_a_solution():
    _, subgames = resolving(battleship(2, 2, 3), efce.uniform_blueprint())
    problem = subgames.problem(subgames.names[0])
    with pytest.raises(efce.LinearProgramError, match=r"refine_lp.*ime limit"):
        efce.refine_lp(problem, time_limit=1e-3)
    bounds = problem.bounds
    players = [dataclasses.replace(side, lower=side.lower + 10.0) for side in bounds.players]
    harder = dataclasses.replace(problem, bounds=dataclasses.replace(bounds, players=tuple(players)))
    with pytest.raises(efce.LinearProgramError, match="nfeasible"):
        efce.refine_lp(harder)
