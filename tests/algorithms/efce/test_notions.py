"""Notions, objectives, polygons of utilities and bounds, against programs over pairs of pure strategies."""

from typing import Any

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.correlation_plans import RelevantPairs
from precomp_games.algorithms.efce.equilibria import best_of, greatest, whole_game_problem
from precomp_games.algorithms.efce.refinement import PlanProgram
from precomp_games.algorithms.programs import Clock, LinearProgramError
from tests.examples.launcher import imported
from tests.oracles.efce import (
    all_steps,
    battleship,
    blueprint,
    check_exploitability,
    held,
    moved,
    pairs_of,
    pure_plan,
    random_games,
    random_plan,
    sheriff,
)
from tests.oracles.games import SEEDS, written
from tests.oracles.treeplex import NormalForm, OwnTree, expected, profiles_of
from tests.properties import examples


def staying_out():
    """Player 0's utility of it is settled before the mediator recommends anything."""
    return written((1, 1, ["out", "in"]), (1, 0), (2, 1, "ab"), (0, 2), (3, 1))


NOTIONS = ("efce", "efcce", "nfcce")
SMALL = {"battleship": battleship(1, 2, 2), "sheriff": sheriff(1, 1, 1)}
ANY_CHANCE = st.sampled_from(("none", "public", "private"))
SMALL_GAMES = ANY_CHANCE.flatmap(lambda chance: random_games(chance, most=200))


@pytest.fixture(scope="module")
def shown():
    """Polygons of utilities, and Nash equilibria beside them."""
    with imported("payoff_frontier") as module:
        yield module


def held_or_none(game):
    """Return a game as sequences; None where it has triangles."""
    try:
        return RelevantPairs.of(held(game)).game
    except ValueError as error:
        assert "without triangles" in str(error)
        return None


# -- exploitability ----------------------------------------------------------------------------------------


@examples(80)
@given(SMALL_GAMES, SEEDS)
@example(SMALL["battleship"], 0)
@example(SMALL["sheriff"], 0)
def test_exploitability_is_that_by_brute_force(game, seed):
    assume(held_or_none(game))
    check_exploitability(game, random_plan(pairs_of(game), seed))


@pytest.mark.parametrize("game", [*SMALL.values(), sheriff(1, 1, 2)], ids=[*SMALL, "sheriff, two rounds"])
def test_an_equilibrium_is_one_by_brute_force_and_openspiel(game):
    found = efce.efce_lp(game, vertex=True)
    assert found.exploitability < 1e-9
    assert found.welfare == pytest.approx(sum(found.utilities))
    mixed = check_exploitability(game, found.plan)
    every = OwnTree(game, 0).actions | OwnTree(game, 1).actions

    def as_policy(plans):
        """The first action where a player's own do not lead."""
        chosen = {key: actions[0] for key, actions in every.items()} | plans[0] | plans[1]
        return pyspiel.TabularPolicy(
            {key: [(a, float(a == chosen[key])) for a in actions] for key, actions in every.items()}
        )

    device = [(weight, as_policy(plans)) for weight, plans in mixed]
    assert pyspiel.cce_dist(game, device).dist_value < 1e-8


# -- objectives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", NOTIONS)
@examples(64)
@given(SMALL_GAMES)
@example(game=SMALL["battleship"])
@example(game=SMALL["sheriff"])
@example(game=staying_out())
def test_objectives_and_floors_are_those_of_the_normal_form(notion, game):
    """Private chance without triangles is no exception."""
    assume(whole := held_or_none(game))
    form = NormalForm(game, notion)
    best = efce.efce_lp(whole, notion=notion, vertex=True)
    assert best.welfare == pytest.approx(form.greatest((1, 1)), abs=1e-7)
    inside = efce.efce_lp(whole, objective="welfare", notion=notion)
    assert inside.welfare == pytest.approx(best.welfare, abs=1e-7)
    assert max(abs(inside.gap), inside.exploitability) < 1e-6
    least = efce.efce_lp(whole, objective="smaller", notion=notion, vertex=True)
    assert least.value == pytest.approx(form.greatest(None), abs=1e-7)
    assert least.value == min(least.utilities)
    weighed = efce.efce_lp(whole, objective=(-1.0, 2.5), notion=notion, vertex=True)
    assert weighed.value == pytest.approx(form.greatest((-1.0, 2.5)), abs=1e-7)
    assert weighed.value == pytest.approx(np.dot((-1.0, 2.5), weighed.utilities))
    # Halfway from what welfare alone gives the player who gets less to the most that it can have.
    poorer = int(np.argmin(best.utilities))
    most = efce.efce_lp(whole, objective=poorer, notion=notion, vertex=True).value
    assert most == pytest.approx(form.greatest(np.eye(2)[poorer]), abs=1e-7)
    floors = np.full(2, -np.inf)
    floors[poorer] = 0.5 * (best.utilities[poorer] + most)
    kept = efce.efce_lp(whole, notion=notion, floors=floors, vertex=True)
    assert kept.value == pytest.approx(form.greatest((1, 1), floors), abs=1e-7)
    assert kept.utilities[poorer] > floors[poorer] - 1e-9
    for found in (best, least, weighed, kept):
        assert max(abs(found.gap), found.exploitability) < 1e-9


@pytest.mark.parametrize("notion", NOTIONS)
@examples(40)
@given(random_games(most=200), SEEDS)
def test_any_multipliers_give_a_bound(notion, game, seed):
    """A worse one, but none that an equilibrium exceeds; without any, what no plan at all exceeds."""
    rng, problem = np.random.default_rng(seed), whole_game_problem(held(game), blueprint(None))
    best = efce.efce_lp(game, notion=notion, vertex=True)
    parts = PlanProgram(problem, Clock(None), notion)
    floors, rows = np.array(best.utilities) - rng.random(2), parts.program.size[1]
    some = greatest(parts, rng.normal(size=rows), np.ones(2), rng.random(2), floors)
    assert some >= best.welfare - 1e-9
    unbound = greatest(parts, np.zeros(rows), np.ones(2), np.zeros(2), floors)
    best_play = max(expected(game.new_initial_state(), plans).sum() for plans in profiles_of(game))
    assert unbound == pytest.approx(best_play)


@examples(40)
@given(random_games(most=200), SEEDS)
def test_linear_functions_are_maximized_over_xi(game, seed):
    pairs = pairs_of(game)
    worth = np.random.default_rng(seed).normal(size=len(pairs))
    work = worth.copy()
    best_of(all_steps(pairs), work)
    assert work[0] == pytest.approx(max(worth @ pure_plan(pairs, plans) for plans in profiles_of(game)))


@pytest.mark.parametrize("objective", ["fairness", 2, True, (1.0,), (1.0, np.nan), None, ("a", "b"), 1.5])
def test_what_is_no_objective(objective):
    with pytest.raises(ValueError, match='expected objective to be "welfare", "smaller", a'):
        efce.efce_lp(SMALL["sheriff"], objective=objective)


UNITS = [(1.0, 1e4), (1.0, 1e6), (1e-6, 0.0), (1e6, -3.0), ((1e3, 1.0), 0.0), (1.0, (-1e6, 1e6))]


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0, -1.0), "smaller"])
@examples(40)
@given(random_games("public"), st.sampled_from(UNITS), SEEDS)
def test_equilibria_do_not_depend_on_units(notion, weights, game, unit, seed):
    """Each player's utilities may have a unit and a zero of their own."""
    whole, (scale, offset) = held(game), np.broadcast_arrays(*unit, np.zeros(2))[:2]
    changed = moved(whole, scale, offset)
    objective, size, zero = weights, scale[0], offset[0]
    if weights == "smaller":
        assume(np.ptp(scale) == np.ptp(offset) == 0.0)
    else:
        objective, zero = tuple(np.array(weights) * scale / size), np.dot(weights, offset)
    near = 1e-9 * max(scale.max(), np.abs(offset).max())
    best = efce.efce_lp(whole, notion=notion, objective=objective, vertex=True)
    found = efce.efce_lp(changed, notion=notion, objective=weights, vertex=True)
    assert found.value == pytest.approx(best.value * size + zero, rel=1e-9, abs=near)
    assert max(abs(found.gap), found.exploitability) < near
    inside = efce.efce_lp(changed, notion=notion, objective=weights)
    assert (inside.value - zero) / size == pytest.approx(best.value, rel=1e-6, abs=1e-7 + near / size)
    assert inside.exploitability < 1e-8 * scale.max()
    deltas = (
        efce.exploitability(efce.CorrelationPlan.of(g, blueprint(seed))).delta for g in (whole, changed)
    )
    for own, before, after in zip(scale, *deltas, strict=True):
        np.testing.assert_allclose(after / own, before, atol=1e-13)


# -- polygons of utilities ---------------------------------------------------------------------------------


def normals_of(corners):
    """Return directions along a polygon's edges, counterclockwise, and those that are normal to them."""
    along = np.roll(corners, -1, axis=0) - corners
    along /= np.hypot(*along.T)[:, None]
    return along, np.stack([along[:, 1], -along[:, 0]], axis=1)


def outside(points, corners):
    """Return how far the worst of some points is outside of a polygon."""
    if len(corners) == 1:
        return np.abs(points - corners).max()
    along, normals = normals_of(corners)
    if len(corners) == 2:  # and beyond its ends
        normals = np.vstack([normals, along])
    return max((points @ normal).max() - (corners @ normal).max() for normal in normals)


def check_frontier(frontier, form):
    """A polygon is that of the normal form.

    No pair of strategies' distribution is beyond an edge. And each corner is one's: it is the only point of
    the polygon that is farthest in a direction between its edges', and some distribution is as far.
    """
    corners = frontier.corners
    assert frontier.gap < 1e-9
    assert max(each.exploitability for each in frontier.equilibria) < 1e-9
    if len(corners) == 1:
        directions = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    else:
        along, normals = normals_of(corners)
        more = along if len(corners) == 2 else normals + np.roll(normals, 1, axis=0)
        directions = np.vstack([normals, more])
    for direction in directions:
        assert (corners @ direction).max() == pytest.approx(form.greatest(direction), abs=2e-7)


@examples(64)
@given(st.sampled_from(("none", "public")).flatmap(lambda chance: random_games(chance, most=100)))
@example(game=SMALL["battleship"])
@example(game=SMALL["sheriff"])
def test_frontiers_are_those_of_the_normal_form_and_nest(shown, game):
    """The next notion's polygon has each in it; and the Nash equilibria are in the innermost."""
    whole = held(game)
    inner = shown.nash(whole)
    for notion in NOTIONS:
        frontier = shown.frontier(whole, notion)
        check_frontier(frontier, NormalForm(game, notion))
        if len(inner):
            assert outside(inner, frontier.corners) < 1e-7
        inner = frontier.corners


def test_matrix_games_by_hand(shown):
    """Moves are simultaneous, so that all notions are those of matrices."""
    bos, hunt, prisoners, pennies = (
        pyspiel.convert_to_turn_based(pyspiel.load_game(f"matrix_{name}"))
        for name in ("bos", "sh", "pd", "mp")
    )
    for game, nash in ((bos, [[1.2, 1.2], [2, 3], [3, 2]]), (prisoners, [[1, 1]]), (pennies, [[0, 0]])):
        np.testing.assert_allclose(shown.nash(held(game)), nash, atol=1e-9)
    for game, corners in (
        (bos, [[3, 2], [2, 3], [1.2, 1.2]]),
        (prisoners, [[1, 1]]),
        (hunt, [[2, 2], [1, 4 / 3], [1, 1], [4 / 3, 1]]),
    ):
        np.testing.assert_allclose(shown.frontier(held(game), "efce").corners, corners, atol=1e-9)
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


@st.composite
def matrices(draw):
    """Payoffs of both players, of which some are far below the others."""
    rows, columns = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    entries = st.sampled_from((-2.0, -1.0, 0.0, 1.0, 2.0, -1e6))
    cells = st.lists(entries, min_size=rows * columns, max_size=rows * columns)
    return [np.reshape(draw(cells), (rows, columns)) for _ in range(2)]


@examples(100)
@given(matrices())
def test_pure_equilibria_are_among_nash_payoffs(shown, tables):
    """Also where most of the others differ by little beside the largest utility."""
    one, two = tables
    nodes: list[Any] = [(1, 1, range(len(one)))]
    for mine, theirs in zip(one, two, strict=True):
        nodes += [(2, 1, range(len(mine))), *zip(mine, theirs, strict=True)]
    found = shown.nash(held(written(*nodes)))
    assert len(found)
    for i, j in zip(*np.nonzero((one == one.max(axis=0)) & (two.max(axis=1) == two.T).T), strict=True):
        assert np.abs(found - [one[i, j], two[i, j]]).max(axis=1).min() < 1e-3


# -- games where something went wrong ----------------------------------------------------------------------


def test_rounding_gives_nobody_a_reason(shown):
    """Player 0 always gets 1/3, times chance that rounds; player 1 gets more by "b" than by "a"."""
    third, one, two = 1.0 / 3.0, {"x": 0.389, "y": 0.611}, {"x": 0.135, "y": 0.865}
    game = written((1, 1, "ab"), one, (third, 0), (third, 0), two, (third, 1), (third, 2))
    whole, ends = held(game), np.array([[1.0 / 3.0, 0.0], [1.0 / 3.0, 1.865]])
    for notion in NOTIONS:
        corners = shown.frontier(whole, notion).corners
        np.testing.assert_allclose(np.sort(corners, axis=0), ends, atol=1e-9)
    np.testing.assert_allclose(shown.nash(whole), ends, atol=1e-9)


def test_where_crossover_from_interior_points_never_ends():
    """A game of 14 nodes; HiPO stops before the optimum, and IPX goes on from there for ever (HiGHS 1.15)."""
    low, high = (99997, 99998), (100001, 100003)
    drawn, other = {"x": 1e-6, "y": 0.999999}, (99999, 99997)
    third = (
        (2, 2, "abc"),
        (1, 2, "ab"),
        (99998, 100003),
        (100003, 99999),
        drawn,
        low,
        other,
        drawn,
        high,
        other,
    )
    game = written((1, 1, "ab"), (99997, 99999), (2, 1, "ab"), (99998, 100003), *third)
    best = efce.efce_lp(game, notion="nfcce", vertex=True, time_limit=60.0)
    assert best.welfare == pytest.approx(200001.0)
    assert abs(best.gap) < 1e-9
