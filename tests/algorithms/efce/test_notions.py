"""Notions, objectives, polygons of utilities and bounds, against programs over pairs of pure strategies."""

import itertools

import numpy as np
import pyspiel
import pytest

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.correlation_plans import RelevantPairs
from precomp_games.algorithms.efce.equilibria import best_of, greatest, whole_game_problem
from precomp_games.algorithms.efce.refinement import PlanProgram
from precomp_games.algorithms.programs import Clock, LinearProgramError
from tests.examples.launcher import imported
from tests.oracles.games import EfgText
from tests.oracles.normal_form import NormalForm, expected, plans_of, profiles_of
from tests.oracles.treeplex import (
    all_steps,
    battleship,
    blueprint,
    held,
    moved,
    pure_plan,
    random_game,
    random_plan,
    sheriff,
    taken_apart,
)

NOTIONS = ("efce", "efcce", "nfcce")
SMALL = {"battleship 1x2": battleship(1, 2, 2), "sheriff": sheriff(1, 1, 1)}
MATRIX = ("matrix_bos", "matrix_sh", "matrix_pd", "matrix_mp")


@pytest.fixture(scope="module")
def example():
    """Polygons of utilities, and Nash equilibria beside them."""
    with imported("payoff_frontier") as module:
        yield module


def small_random_games(count, most=100, chance=None):
    """[(seed, game)] of the first ones with so many pairs of pure strategies, and something to choose."""
    games = ((seed, random_game(seed, chance=chance)) for seed in itertools.count())
    chosen = (each for each in games if 4 <= len(profiles_of(each[1])) <= most)
    return list(itertools.islice(chosen, count))


def by_playing(game, plan, notion):
    """Return the worst delta of a plan, by playing its pure strategies."""
    form = NormalForm(game, notion)
    numbers = {str(plans): n for n, plans in enumerate(map(list, profiles_of(game)))}
    weights = np.zeros(len(form.utilities))
    for weight, plans in taken_apart(plan):
        weights[numbers[str(plans)]] += weight
    return float((form.gains @ weights).max())


@pytest.mark.parametrize("notion", NOTIONS)
def test_exploitability_is_that_by_playing(notion, cases):
    for seed, game in small_random_games(cases(30), 200):
        plan = random_plan(RelevantPairs.of(held(game)), seed)
        worst = efce.exploitability(plan, notion).worst
        assert max(worst, 0.0) == pytest.approx(max(by_playing(game, plan, notion), 0.0), abs=1e-8), seed


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", SMALL)
def test_objectives_are_those_of_the_normal_form(name, notion):
    game = SMALL[name]
    form = NormalForm(game, notion)
    for objective, weights in {"welfare": (1, 1), 0: (1, 0), 1: (0, 1)}.items():
        for vertex, near in ((True, 1e-7), (False, 1e-6)):
            found = efce.efce_lp(game, objective=objective, notion=notion, vertex=vertex)
            assert found.value == pytest.approx(form.greatest(weights), abs=near)
            assert abs(found.gap) < near
            assert found.exploitability < near
    weighted = efce.efce_lp(game, objective=(-1.0, 2.5), notion=notion, vertex=True)
    assert weighted.value == pytest.approx(form.greatest((-1.0, 2.5)), abs=1e-7)
    assert weighted.value == pytest.approx(-weighted.utilities[0] + 2.5 * weighted.utilities[1])


@pytest.mark.parametrize("notion", NOTIONS)
def test_the_smaller_utility_and_floors_are_those_of_the_normal_form(notion, cases):
    bounded = 0
    for seed, game in small_random_games(cases(40), 200):
        form = NormalForm(game, notion)
        least = efce.efce_lp(game, objective="smaller", notion=notion, vertex=True)
        assert least.value == pytest.approx(form.greatest(None, smaller=True), abs=1e-7), seed
        assert least.value == min(least.utilities)
        assert abs(least.gap) < 1e-9
        # Halfway from what welfare alone gives the player who gets less to the most that it can have.
        free = efce.efce_lp(game, notion=notion, vertex=True).utilities
        poorer = int(np.argmin(free))
        most = efce.efce_lp(game, objective=poorer, notion=notion, vertex=True).value
        floors = np.full(2, -np.inf)
        floors[poorer] = 0.5 * (free[poorer] + most)
        kept = efce.efce_lp(game, notion=notion, floors=floors, vertex=True)
        assert kept.value == pytest.approx(form.greatest((1, 1), floors), abs=1e-7), seed
        assert kept.utilities[poorer] > floors[poorer] - 1e-9
        assert abs(kept.gap) < 1e-9
        bounded += floors[poorer] > free[poorer] + 1e-3
    assert bounded or cases(40) < 40


def outside(points, corners):
    """Return how far the worst of some points is outside of a polygon, given counterclockwise."""
    far = -np.inf
    for one, two in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = two - one
        length = np.hypot(*along)
        if length == 0.0:
            return np.abs(points - one).max()
        far = max(far, float(((points - one) @ np.array([along[1], -along[0]])).max() / length))
    if len(corners) == 2:  # and beyond its ends
        along = (corners[1] - corners[0]) / np.hypot(*(corners[1] - corners[0]))
        far = max(
            far, float(((points - corners[1]) @ along).max()), float(((corners[0] - points) @ along).max())
        )
    return far


def check_frontier(frontier, form):
    """A polygon is that of the normal form.

    No pair of strategies' distribution is beyond an edge. And each corner is one's: it is the only point of
    the polygon that is farthest in a direction between its edges', and some distribution is as far.
    """
    corners = frontier.corners
    assert frontier.gap < 1e-9
    assert max(each.exploitability for each in frontier.equilibria) < 1e-9
    along = np.roll(corners, -1, axis=0) - corners
    normals = np.stack([along[:, 1], -along[:, 0]], axis=1)
    if len(corners) == 1:
        normals = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    else:
        normals /= np.hypot(*normals.T)[:, None]
    if len(corners) == 2:
        normals = np.vstack([normals, along / np.hypot(*along.T)[:, None]])
    else:
        between = normals + np.roll(normals, 1, axis=0)
        normals = np.vstack([normals, between])
    for normal in normals:
        assert (corners @ normal).max() == pytest.approx(form.greatest(normal), abs=2e-7)


# Costs seconds: finds each polygon in two ways.
def test_frontiers_are_those_of_the_normal_form_and_nest_on_random_games(example, cases):
    seen = np.zeros(3, int)
    for seed, game in small_random_games(cases(100)):
        inner = None
        for notion in NOTIONS:
            frontier = example.frontier(held(game), notion)
            check_frontier(frontier, NormalForm(game, notion))
            if inner is not None:
                assert outside(inner, frontier.corners) < 1e-7, (seed, notion)
                seen[0] += len(inner) != len(frontier.corners)
            elif sum(map(len, plans_of(game))) <= 16:
                nash = example.nash(held(game))
                assert outside(nash, frontier.corners) < 1e-7, seed
                seen[1] += len(nash) > 1
            inner = frontier.corners
        seen[2] += len(inner) > 2
    # Polygons that differ, several Nash equilibria, polygons with an inside.
    assert seen.min() >= 5 or cases(100) < 100, seen


def test_frontiers_with_public_chance_are_those_of_the_normal_form(example, cases):
    for _, game in small_random_games(cases(40), chance="public"):
        for notion in NOTIONS:
            form = NormalForm(game, notion)
            check_frontier(example.frontier(held(game), notion), form)
            least = efce.efce_lp(game, objective="smaller", notion=notion, vertex=True)
            assert least.value == pytest.approx(form.greatest(None, smaller=True), abs=1e-7)
            assert abs(least.gap) < 1e-9


@pytest.mark.parametrize("name", SMALL)
def test_frontiers_are_those_of_the_normal_form(example, name):
    for notion in NOTIONS:
        check_frontier(
            example.frontier(held(SMALL[name]), notion),
            NormalForm(SMALL[name], notion),
        )


def test_matrix_games_by_hand(example):
    """Moves are simultaneous, so that all notions are those of matrices."""
    bos, hunt, prisoners, pennies = (
        pyspiel.convert_to_turn_based(pyspiel.load_game(name)) for name in MATRIX
    )
    np.testing.assert_allclose(example.nash(held(bos)), [[1.2, 1.2], [2, 3], [3, 2]], atol=1e-9)
    np.testing.assert_allclose(example.nash(held(prisoners)), [[1, 1]], atol=1e-9)
    np.testing.assert_allclose(example.nash(held(pennies)), [[0, 0]], atol=1e-9)
    np.testing.assert_allclose(
        example.frontier(held(bos), "efce").corners, [[3, 2], [2, 3], [1.2, 1.2]], atol=1e-9
    )
    np.testing.assert_allclose(example.frontier(held(prisoners), "efce").corners, [[1, 1]], atol=1e-9)
    corners = [[2, 2], [1, 4 / 3], [1, 1], [4 / 3, 1]]
    np.testing.assert_allclose(example.frontier(held(hunt), "efce").corners, corners, atol=1e-9)
    # A fair coin tells them where to meet.
    fair = efce.efce_lp(bos, objective="smaller", vertex=True)
    assert fair.value == pytest.approx(2.5)
    with pytest.raises(
        LinearProgramError, match=r"nfeasible; no efce gives the players the floors \[2.6, 2.5\]"
    ):
        efce.efce_lp(bos, floors=(2.6, 2.5))
    with pytest.raises(LinearProgramError, match=r"no efcce gives the players the floors \[None, 9\.0\]"):
        efce.efce_lp(bos, floors=(None, 9), notion="efcce")
    for floors in ((None, 2.5), [None, 2.5], np.array([-np.inf, 2.5])):
        assert efce.efce_lp(bos, objective=0, floors=floors).value == pytest.approx(2.5, abs=1e-7)


def test_pure_equilibria_are_among_nash_payoffs(example, cases):
    for seed, game in small_random_games(cases(20), 36):
        plans, root = plans_of(game), game.new_initial_state()
        table = np.array([[expected(root, (p, q)) for q in plans[1]] for p in plans[0]])
        best = (table[..., 0] == table[..., 0].max(axis=0)) & (
            table[..., 1] == table[..., 1].max(axis=1)[:, None]
        )
        found = example.nash(held(game), 36)
        assert len(found)
        for point in table[best]:
            assert np.abs(found - point).max(axis=1).min() < 1e-9, seed


def test_leaving_before_the_other_has_moved():
    """Player 0's utility of staying out is settled before the mediator recommends anything."""
    text = EfgText()
    text.move(1, 1, ["out", "in"])
    text.leaf(1, 0)
    text.move(2, 1, "ab")
    text.leaf(0, 2)
    text.leaf(3, 1)
    game = text.game()
    for notion in NOTIONS:
        best = efce.efce_lp(game, notion=notion, vertex=True)
        assert best.welfare == pytest.approx(NormalForm(game, notion).greatest((1, 1)), abs=1e-7)
        assert max(best.exploitability, abs(best.gap)) < 1e-9


@pytest.mark.parametrize("notion", NOTIONS)
def test_any_multipliers_give_a_bound(notion, cases):
    """A worse one, but none that an equilibrium exceeds; without any, what no plan at all exceeds."""
    for seed, game in small_random_games(cases(20), 200):
        rng, problem = np.random.default_rng(seed), whole_game_problem(held(game), blueprint(None))
        best = efce.efce_lp(game, notion=notion, vertex=True)
        parts = PlanProgram(problem, Clock(None), notion)
        floors, rows = np.array(best.utilities) - rng.random(2), parts.program.size[1]
        some = greatest(parts, rng.normal(size=rows), np.ones(2), rng.random(2), floors)
        assert some >= best.welfare - 1e-9
        unbound = greatest(parts, np.zeros(rows), np.ones(2), np.zeros(2), floors)
        best_play = max(expected(game.new_initial_state(), plans).sum() for plans in profiles_of(game))
        assert unbound == pytest.approx(best_play)


def test_linear_functions_are_maximized_over_xi(cases):
    for seed, game in small_random_games(cases(20), 200):
        pairs = RelevantPairs.of(held(game))
        worth = np.random.default_rng(seed).normal(size=len(pairs))
        steps, work = all_steps(pairs), worth.copy()
        best_of(steps, work)
        assert work[0] == pytest.approx(max(worth @ pure_plan(pairs, plans) for plans in profiles_of(game)))


def test_notions_do_not_depend_on_units():
    """Bounds and objectives with utilities in other units, far from 0."""
    game = held(random_game(20))
    for notion in NOTIONS:
        for objective in ("welfare", "smaller", (2.0, -1.0)):
            best = efce.efce_lp(game, notion=notion, objective=objective, vertex=True)
            weight = 1.0 if objective == "smaller" else sum(objective if objective != "welfare" else (1, 1))
            for scale, offset in ((1e6, 0.0), (1.0, 1e4), (1e-4, 3.0)):
                found = efce.efce_lp(
                    moved(game, scale, offset), notion=notion, objective=objective, vertex=True
                )
                expected = best.value * scale + weight * offset
                assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)
                assert abs(found.gap) < 1e-9 * max(scale, abs(offset))


@pytest.mark.parametrize("objective", ["fairness", 2, True, (1.0,), (1.0, np.nan), None, ("a", "b"), 1.5])
def test_what_is_no_objective(objective):
    with pytest.raises(
        ValueError, match=r"efce_lp\(\): expected objective to be \"welfare\", \"smaller\", a"
    ):
        efce.efce_lp(SMALL["sheriff"], objective=objective)


def indifferent(utility):
    """Player 0 always gets `utility`, times chance that rounds; player 1 gets more by "b" than by "a"."""
    text = EfgText()
    text.move(1, 1, "ab")
    for odds, worth in ((0.389, (0, 0)), (0.135, (1, 2))):
        text.chance({"x": odds, "y": round(1.0 - odds, 3)})
        for each in worth:
            text.leaf(utility, each)
    return text.game()


def test_rounding_gives_nobody_a_reason(example):
    utility = 1.0 / 3.0
    game, ends = indifferent(utility), np.array([[utility, 0.0], [utility, 1.865]])
    for notion in NOTIONS:
        corners = example.frontier(held(game), notion).corners
        np.testing.assert_allclose(np.sort(corners, axis=0), ends, atol=1e-9)
    np.testing.assert_allclose(example.nash(held(game)), ends, atol=1e-9)


def test_where_crossover_from_interior_points_never_ends():
    """A game of 14 nodes; HiPO stops before the optimum, and IPX goes on from there for ever (HiGHS 1.15)."""
    text, odds = EfgText(), {"x": 1e-6, "y": 0.999999}
    text.move(1, 1, "ab")
    text.leaf(99997, 99999)
    text.move(2, 1, "ab")
    text.leaf(99998, 100003)
    text.move(2, 2, "abc")
    text.move(1, 2, "ab")
    text.leaf(99998, 100003)
    text.leaf(100003, 99999)
    for one, two in (((99997, 99998), (99999, 99997)), ((100001, 100003), (99999, 99997))):
        text.chance(odds)
        text.leaf(*one)
        text.leaf(*two)
    best = efce.efce_lp(text.game(), notion="nfcce", vertex=True, time_limit=60.0)
    assert best.welfare == pytest.approx(200001.0)
    assert abs(best.gap) < 1e-9


def matrix_game(one, two):
    """Player 0 chooses a row, player 1 a column, which it is not told."""
    text = EfgText()
    text.move(1, 1, range(len(one)))
    for mine, theirs in zip(one, two, strict=True):
        text.move(2, 1, range(len(mine)))
        for each in zip(mine, theirs, strict=True):
            text.leaf(*each)
    return text.game()


def test_nash_payoffs_where_some_utilities_are_far_larger(example, cases):
    """Pure equilibria are among them, also where most of the others differ by little beside the largest."""
    rng = np.random.default_rng(5)
    for _ in range(cases(100)):
        one, two = rng.integers(-2, 3, (2, *rng.integers(3, 6, 2))).astype(float)
        for table in (one, two):
            table[rng.random(table.shape) < 0.2] = -1e6
        found = example.nash(held(matrix_game(one, two)))
        assert len(found)
        for i, j in zip(*np.nonzero((one == one.max(axis=0)) & (two.max(axis=1) == two.T).T), strict=True):
            assert np.abs(found - [one[i, j], two[i, j]]).max(axis=1).min() < 1e-3
