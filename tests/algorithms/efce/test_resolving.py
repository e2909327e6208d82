"""Refinements: Table 1, safety step by step as docs/efce.md proves it, deeper subgames, and regrets."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precomp_games import config
from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.bounds import player_rows
from precomp_games.algorithms.efce.correlation_plans import plan_error
from precomp_games.algorithms.efce.equilibria import whole_game_problem
from precomp_games.algorithms.efce.refinement import PlanProgram
from precomp_games.algorithms.efce.regret import RegretResolver
from precomp_games.algorithms.efce.subgames import one_subgame
from precomp_games.algorithms.efce.triggers import Deviations, deviation_values, following_values
from precomp_games.algorithms.programs import Clock, LinearProgramError
from tests.oracles.efce import (
    all_refined,
    battleship,
    blueprint,
    goofspiel,
    held,
    moved,
    random_games,
    random_subgames,
    refined,
    refined_again,
    resolving,
    sheriff,
    stitched,
)
from tests.oracles.games import SEEDS, Level, level_game, written
from tests.properties import examples

SMALL = battleship(1, 3, 2)
LARGER = battleship(2, 2, 3)
SAFE_BOUNDS = ("separate", "aggregate")
BOUNDS = ("paper", *SAFE_BOUNDS)
UNITS = [(1.0, 1e6), (1.0, (-1e6, 1e6)), (1e-6, 0.0), (1e6, 0.0)]

FIFTH_ROW = pytest.mark.slow("the larger row of the table")
# H, W, T, gamma: blueprint's and refined welfare of a subgame in Table 1 (Uniform), in units of 1e-2, as
# printed.
TABLE_1 = [
    (1, 3, 2, 2, "-3.70", "-3.70"),
    (1, 3, 2, 5, "-14.8", "-14.8"),
    (2, 2, 3, 2, "-3.13", "-2.95"),
    (2, 2, 3, 5, "-12.5", "-11.4"),
    pytest.param(1, 5, 3, 2, "-1.92", "-1.34", marks=FIFTH_ROW),
    pytest.param(1, 5, 3, 5, "-7.68", "-4.80", marks=FIFTH_ROW),
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


def check_refined(level, start, gain=-1e-7):
    """All subgames together are safe, and each keeps its welfare; together they gain so much."""
    for one in all_refined(level):
        assert one.welfare > one.blueprint_welfare - 1e-7, one.problem.name
    found = stitched(level, start, all_refined(level))
    assert found.violation < 1e-6
    assert found.welfare > found.blueprint_welfare + gain


LITTLE = [  # row 1 of Table 1, uniform and jittered
    pytest.param(lambda: held(SMALL, 1), seed, bounds, -1e-7, id=f"row 1, {bounds}, {seed}")
    for bounds in SAFE_BOUNDS
    for seed in (None, 0, 1, 2)
]


@pytest.mark.parametrize(
    ("whole", "seed", "bounds", "gain"),
    [
        *LITTLE,
        (lambda: held(sheriff(2, 2, 3), 1), 0, "separate", 1e-3),
        (lambda: held(sheriff(2, 2, 3), 1), None, "aggregate", 1e-3),
        (lambda: held(sheriff(2, 2, 3), 2), 0, "separate", 1e-3),
        (lambda: one_subgame(held(SMALL)), 0, "aggregate", 1e-3),
        (lambda: efce.finest_subgames(held(SMALL), 3), 4, "aggregate", 1e-3),
        pytest.param(lambda: held(LARGER, 1), 0, "separate", 1e-3, marks=FIFTH_ROW),
    ],
)
def test_stitched_refinements_are_safe_and_gain_where_there_is_something_to_gain(whole, seed, bounds, gain):
    check_refined(resolving(whole(), blueprint(seed), bounds), blueprint(seed), gain)


@pytest.mark.parametrize("chance", ["none", "public", "private"])
@examples(60)
@given(st.data(), SEEDS, st.sampled_from((0.9, 1.0)), st.sampled_from(SAFE_BOUNDS))
def test_stitched_refinements_are_safe_on_random_games(chance, data, seed, width, bounds):
    """Refined once, and again where a refined subgame has subgames of its own."""
    whole, depth = data.draw(random_subgames(chance))
    start = blueprint(seed, width)
    level = resolving(whole, start, bounds)
    refinements = all_refined(level)
    if chance != "private":
        refinements = [refined_again(level, one, depth + 1) for one in refinements]
    for one in refinements:
        assert one.problem.violation(one.plan) < 1e-6, one.problem.name
    found = stitched(level, start, refinements)
    assert found.violation < 1e-6
    assert found.welfare > found.blueprint_welfare - 1e-6


def test_published_bounds_are_not_safe():
    level = resolving(held(SMALL, 1), blueprint(0), "paper")
    found = stitched(level, blueprint(0), all_refined(level))
    assert found.violation > 0.05


def test_aggregate_bounds_have_more_welfare_here():
    """In Table 1; not in every game (`test_neither_kind_has_more_welfare_in_every_game`)."""
    welfare = {}
    for bounds in BOUNDS:
        level = resolving(held(LARGER, 1), blueprint(None), bounds)
        welfare[bounds] = refined(level, level.names[0]).welfare
    assert welfare["aggregate"] > welfare["separate"] + 1e-3
    assert welfare["paper"] == pytest.approx(welfare["separate"], abs=1e-7)  # as in Table 1


@pytest.mark.parametrize("bounds", SAFE_BOUNDS)
@pytest.mark.parametrize("game", [LARGER, goofspiel(3, hidden=True)], ids=["battleship", "goofspiel"])
def test_one_subgame_at_a_time_gives_the_same_problems(game, bounds):
    whole = resolving(held(game, 1), blueprint(3), bounds)
    parts = efce.Resolving.of(game, blueprint(3), efce.public_moves(game, 1), bounds)
    assert set(parts.names) == set(whole.names)
    assert parts.counts == whole.counts
    for name in parts.names[::5]:
        one, two = parts.problem(name), whole.problem(name)
        assert one.bounds.kind == two.bounds.kind == bounds
        np.testing.assert_allclose(one.blueprint.xi, two.blueprint.xi, atol=1e-15)
        for i in (0, 1):
            np.testing.assert_allclose(one.allowed[i], two.allowed[i], atol=1e-15)
            a, b = one.bounds.players[i], two.bounds.players[i]
            np.testing.assert_allclose(a.lower, b.lower, atol=1e-14)
            np.testing.assert_allclose(a.upper, b.upper, atol=1e-14)
    if game is not LARGER:
        assert sum(whole.problem(name).mass for name in whole.names) == pytest.approx(1.0)
        check_refined(whole, blueprint(3), 1.0)


# -- subgames of subgames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", SAFE_BOUNDS)
def test_refining_again_deeper_gains_what_a_first_refinement_left(bounds):
    game = sheriff(2, 2, 3)
    level = resolving(held(game, 1), blueprint(2), bounds)
    refinements, gain = all_refined(level), 0.0
    for k in range(0, len(refinements), 4):
        # Any safe plan leaves something to gain.
        program, clock = PlanProgram(refinements[k].problem, Clock(None)), Clock(None)
        plan, _ = program.solve(program.program.built(), clock, vertex=False)
        one = dataclasses.replace(refinements[k], plan=plan, welfare=plan.welfare(0))
        deeper = level.deeper(one, efce.public_moves(game, 2))
        assert all(inner.welfare > inner.blueprint_welfare - 1e-7 for inner in all_refined(deeper))
        refinements[k] = deeper.complete(all_refined(deeper))
        gain += refinements[k].welfare - one.welfare
    assert stitched(level, blueprint(2), refinements).violation < 1e-6
    assert gain > 1e-4


def test_deeper_subgames_three_times():
    game, start = sheriff(1, 1, 4), blueprint(1, 0.9)
    levels = [resolving(held(game, 1), start, "separate")]
    for rounds in (2, 3):
        one = refined(levels[-1], levels[-1].names[-1])
        levels.append(levels[-1].deeper(one, efce.public_moves(game, rounds)))
    done = refined(levels[-1], levels[-1].names[-1])
    for level in levels[:0:-1]:
        done = level.complete([done])
    assert stitched(levels[0], start, [done]).violation < 1e-6


@pytest.mark.parametrize(
    "public", [lambda state: None, lambda state: state.history()[-1] if len(state.history()) > 2 else None]
)
def test_deeper_subgames_are_within_the_refined_one(public):
    level = resolving(held(SMALL, 1), blueprint(None))
    with pytest.raises(ValueError, match=r"names none|valid decomposition|reach before"):
        level.deeper(refined(level, level.names[0]), public)


# -- regret minimization -----------------------------------------------------------------------------------


def check_plan(problem, found):
    """A plan is one, and outside of the subgame it is the blueprint's."""
    plan = found.plan
    assert plan_error(plan.pairs, plan.xi) < 1e-12
    outside = plan.pairs.pair_label < 0
    np.testing.assert_array_equal(plan.xi[outside], problem.blueprint.xi[outside])


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("variant", ["plain", "predictive"])
def test_regret_resolver_finds_safe_refinements(bounds, variant):
    level = resolving(held(LARGER, 1), blueprint(0), bounds)
    problem = level.problem(level.names[5])
    found = efce.refine_regret(problem, iterations=3000, start="random", variant=variant)
    check_plan(problem, found)
    assert found.violation < 1e-4 and found.curve.violation[0] > 10 * found.violation
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
    check_plan(problem, single)
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
    problem, resolver = optimum.problem, RegretResolver(optimum.problem)
    assert resolver.violation(optimum.plan) < 1e-7
    assert resolver.violation(problem.blueprint) < 1e-12
    gap = optimum.welfare - optimum.blueprint_welfare
    target = optimum.blueprint_welfare + share * gap
    reached = efce.refine_regret(problem, target=target, iterations=4000)
    assert reached.violation < 2e-5 and reached.welfare > target - 2e-5
    beyond = efce.refine_regret(problem, target=optimum.welfare + 5.0 * gap, iterations=1000)
    assert beyond.violation > 1e-4


@examples(32)
@given(random_games("public", 5))
@example(SMALL)
def test_regret_minimization_comes_to_the_best_equilibrium(game):
    problem = whole_game_problem(held(game), blueprint(None))
    best = efce.refine_lp(problem).welfare
    near = 1e-3 if game is SMALL else 2e-5
    found = efce.refine_regret(problem, target=best - near, iterations=50_000, violation=near)
    assert found.violation <= near
    assert found.welfare > best - 2.0 * near
    assert efce.exploitability(found.plan).worst <= found.violation + 1e-12
    beyond = efce.refine_regret(problem, target=best + 0.05, iterations=1000)
    assert beyond.violation > 1e-3


@pytest.mark.parametrize("bounds", BOUNDS)
def test_violation_is_the_worst_of_the_constraints(bounds):
    """By the definition: bounds and triggers measured one by one, on a plan that violates them."""
    level = resolving(held(LARGER, 1), blueprint(3), bounds)
    problem = level.problem(level.names[1])
    resolver = RegretResolver(problem, start="random", seed=5)
    resolver.run(3)
    plan = resolver.average()
    delta, missed = efce.exploitability(plan).delta, [0.0]
    for i in (0, 1):
        inside = plan.game.players[i].sequence_label >= 0
        rows, side = player_rows(plan, i, bounds), problem.bounds.players[i]
        missed += [*(delta[i] - problem.allowed[i])[inside], *(side.lower - rows.value)]
        missed += [*(rows.cap_value - side.upper)]
    assert max(missed) > 1e-3
    assert resolver.violation(plan) == pytest.approx(max(missed), abs=1e-12)
    assert resolver.violation(problem.blueprint) < 1e-12  # it keeps its own bounds


# -- the unit and zero of payoffs --------------------------------------------------------------------------


@examples(32)
@given(random_subgames(), SEEDS)
def test_aggregate_refinements_do_not_depend_on_units(subgames, seed):
    whole, start = subgames[0], blueprint(seed, 0.9)
    plain = resolving(whole, start)
    vertices = [efce.refine_lp(plain.problem(name), vertex=True) for name in plain.names]
    for scale, offset in UNITS:
        level = resolving(moved(whole, scale, offset), start)
        for vertex, found in zip(vertices, all_refined(level), strict=True):
            gain = (found.welfare - found.blueprint_welfare) / scale
            assert gain == pytest.approx(vertex.welfare - vertex.blueprint_welfare, abs=3e-9)


def test_separate_bounds_change_with_a_constant():
    """Eight games in which the other player's move leads to several information sets of a subgame."""
    start, turns = blueprint(0, 0.9), [Level(0), Level(1), Level(0, hidden=(False, True)), Level(1)]
    total = dict.fromkeys(itertools.product(SAFE_BOUNDS, (-100.0, 0.0, 100.0)), 0.0)
    for seed in range(8):
        whole = efce.finest_subgames(held(level_game(seed, turns, general=True)), 1)
        gains = {}
        for bounds, offset in total:
            level = resolving(moved(whole, 1.0, offset), start, bounds)
            safety = stitched(level, start, all_refined(level))
            assert safety.violation < 1e-7
            gains[bounds, offset] = sum(one.welfare - one.blueprint_welfare for one in all_refined(level))
            total[bounds, offset] += gains[bounds, offset]
            assert gains["separate", offset] <= gains.get(("aggregate", offset), np.inf) + 1e-6
    assert [*total.values()] == pytest.approx([10.21, 16.77, 10.17, 17.76, 17.76, 17.76], abs=0.005)
    assert total["aggregate", -100.0] == pytest.approx(total["aggregate", 0.0], abs=1e-7)
    assert total["aggregate", 100.0] == pytest.approx(total["aggregate", 0.0], abs=1e-7)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e6), (1e6, 0.0), (1e-6, 0.0)])
def test_regret_minimization_does_not_depend_on_units(scale, offset):
    plans = []
    for unit, zero in ((1.0, 0.0), (scale, offset)):
        whole = moved(held(sheriff(2, 2, 2), 1), unit, zero)
        problem = resolving(whole, blueprint(2)).problem((5, 0))
        plans.append(efce.refine_regret(problem, iterations=50, start="random").plan)
    np.testing.assert_allclose(plans[0].xi, plans[1].xi, atol=1e-6)


# -- programs that have no solution, or will not fit -------------------------------------------------------


def test_where_nothing_is_safe():
    level = resolving(held(SMALL, 1), blueprint(0))
    problem = level.problem(level.names[0])
    bounds = problem.bounds
    sides = tuple(dataclasses.replace(side, lower=side.lower + 10.0) for side in bounds.players)
    harder = dataclasses.replace(problem, bounds=dataclasses.replace(bounds, players=sides))
    with pytest.raises(LinearProgramError, match="nfeasible"):
        efce.refine_lp(harder)
    assert harder.violation(problem.blueprint) > 9.0


def test_a_refinement_of_another_blueprint_is_not_stitched():
    """Even of one that is equal above the subgames, so that the result is a plan."""
    whole, start = held(SMALL, 1), blueprint(1)
    level = resolving(whole, start)
    before = efce.CorrelationPlan.of(whole, start)
    better = efce.stitch(whole, start, [refined(level, level.names[0])])
    other = resolving(whole, better)
    with pytest.raises(ValueError, match=r"^stitch\(\): expected refinements .* from another blueprint"):
        efce.stitch(whole, before, [efce.refine_lp(other.problem(level.names[0]))])


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


# -- the proof, step by step -------------------------------------------------------------------------------


class Trunk:
    """Values for one player under a plan of the whole game, by names: an oracle of the shares.

    Children of a trunk's sequence are ("set", I), ("head", I), ("bundle", s, j) or ("part", s, j).
    """

    def __init__(self, plan, player, kind):
        self.game, self.form = plan.game, plan.game.players[player]
        self.deviations = Deviations.of(plan.pairs, player)
        self.sets = deviation_values(self.deviations, plan.xi)[1]
        self.v, self.of_infoset = following_values(plan, player)
        self.plan, self.player, self.kind = plan, player, kind
        self.inside = [s for s in range(self.form.num_sequences) if self.form.sequence_label[s] < 0]

    def actions(self, infoset):
        return range(self.form.first[infoset], self.form.first[infoset + 1])

    def children(self, s):
        """{child: its information sets and the labels of its leaves}."""
        found = {}
        for infoset in np.flatnonzero(self.form.parent == s):
            j = self.form.label[infoset]
            name = (
                ("set", infoset)
                if j < 0
                else ("head", infoset)
                if self.kind == "separate"
                else ("part", s, j)
            )
            found.setdefault(name, ([], set()))[0].append(infoset)
        own, label = self.game.leaf_sequence[self.player], self.game.leaf_label
        for j in np.unique(label[(own == s) & (label >= 0)]):
            name = ("bundle", s, j) if self.kind == "separate" else ("part", s, j)
            found.setdefault(name, ([], set()))[1].add(j)
        return found

    def leaves(self, s, labels, trigger=None):
        """Return the value of leaves right after s in these subgames (-1: settled), or after a trigger."""
        total = 0.0
        for k in np.flatnonzero(self.game.leaf_sequence[self.player] == s):
            if self.game.leaf_label[k] in labels:
                one = s if trigger is None else trigger
                tau = self.game.leaf_sequence[1 - self.player][k]
                pair = (one, tau) if self.player == 0 else (tau, one)
                xi = self.plan.entries(self.game, *(np.array([x]) for x in pair))[0]
                total += self.game.leaf_utility[self.player][k] * xi
        return total

    def set_after(self, infoset, trigger):
        """beta(I; s+)."""
        top = self.form.infoset[trigger]
        group = self.deviations.group(np.array([top]), np.array([infoset]))[0]
        return self.sets[self.deviations.set_[group] + trigger - self.form.first[top]]

    def child(self, s, members, trigger=None):
        """Return the value of a child of s by following, or by deviating after a trigger."""
        sets, labels = members
        below = (self.of_infoset[k] if trigger is None else self.set_after(k, trigger) for k in sets)
        return sum(below) + self.leaves(s, labels, trigger)


def shares(trunk, gains):
    """Return the page's shares: slack by sequence and by child, upper bounds by (trigger, child), targets."""
    form, slack, rows, upper = trunk.form, {}, {}, {}
    trigger_slack, target = {}, {}
    for s in trunk.inside:
        if np.isfinite(gains[s]):
            best = trunk.v[s] + gains[s]
            middle = (trunk.v[s] + best) / 2
            trigger_slack[s], target[s] = (trunk.v[s] - middle, middle) if gains[s] <= 0 else (0.0, best)

    def down(s, inherited):
        slack[s] = min(inherited, trigger_slack.get(s, np.inf))
        children = trunk.children(s)
        for name in children:
            rows[name] = slack[s] / len(children)
            if name[0] == "set":
                for after in trunk.actions(name[1]):
                    down(after, rows[name] / len(trunk.actions(name[1])))

    def deviate(trigger, infoset, most, skip=-1):
        for s in trunk.actions(infoset):
            if s != skip:
                children = trunk.children(s)
                worth = {name: trunk.child(s, members, trigger) for name, members in children.items()}
                room = most - trunk.leaves(s, {-1}, trigger) - sum(worth.values())
                for name in children:
                    upper[trigger, name] = worth[name] + room / len(children)
                    if name[0] == "set":
                        deviate(trigger, name[1], upper[trigger, name])

    down(0, np.inf)
    for s in target:
        deviate(s, form.infoset[s], target[s], skip=s)
    return slack, rows, upper, target


@pytest.mark.parametrize("kind", ["separate", "aggregate"])
@examples(64)
@given(random_subgames() | random_subgames("public"), SEEDS)
def test_every_inequality_of_the_proof_holds(kind, subgames, seed):
    """At every trunk node, for both players; and bounds are those of an oracle that knows no arrays."""
    whole, start = subgames[0], blueprint(seed, 0.9)
    level = resolving(whole, start, kind)
    plan = efce.stitch(whole, start, all_refined(level))
    before = efce.CorrelationPlan.of(plan.game, start)
    for player in (0, 1):
        old, new = Trunk(before, player, kind), Trunk(plan, player, kind)
        gains, after = (efce.exploitability(p).delta[player] for p in (before, plan))
        slack, rows, upper, target = shares(old, gains)
        for s in old.inside:
            assert new.v[s] >= old.v[s] - slack[s] - 1e-7
            for name, members in old.children(s).items():
                assert new.child(s, members) >= old.child(s, members) - rows[name] - 1e-7
                for trigger in target:
                    if (trigger, name) in upper:
                        assert new.child(s, members, trigger) <= upper[trigger, name] + 1e-7
        for s, most in target.items():
            assert new.v[s] + after[s] <= most + 1e-7
            assert after[s] <= max(0.0, gains[s]) + 1e-7
            assert gains[s] > 0 or new.v[s] >= most - 1e-7
        finite = sorted(
            old.child(s, m) - rows[c]
            for s in old.inside
            for c, m in old.children(s).items()
            if c[0] != "set" and rows[c] < np.inf
        )
        sides = [level.bounds(name).players[player] for name in level.names]
        lower = np.concatenate([side.lower for side in sides])
        np.testing.assert_allclose(sorted(lower[np.isfinite(lower)]), finite, atol=1e-12)
        caps = np.concatenate([side.upper for side in sides])
        theirs = sorted(most for (_, name), most in upper.items() if name[0] != "set")
        np.testing.assert_allclose(sorted(caps[np.isfinite(caps)]), theirs, atol=1e-12)


def six_heads():
    """Player 0 goes in, player 1 to A, with six information sets of player 0's, or to B, with one."""
    nodes = [(1, 1, ["out", "in"]), ("-1/3", 0), (2, 1, "AB"), (2, 2, range(6))]
    for k in range(6):
        nodes += [(1, k + 2, ["see"]), (2, k + 3, ["take", "leave"]), (0, 5), (2, 0)]
    return written(*nodes, (1, 8, ["see"]), (1, 0))


@pytest.mark.parametrize(("kind", "welfare"), [("separate", 1.25 + 0.25), ("aggregate", 1.125 + 0.25)])
def test_neither_kind_has_more_welfare_in_every_game(kind, welfare):
    """Six heads get six sevenths of the slack, or one half; in Table 1 it is the other way round."""
    whole = efce.finest_subgames(efce.SequenceGame.of(six_heads()), 2)
    level = resolving(whole, blueprint(None), kind)
    assert sum(found.welfare for found in all_refined(level)) == pytest.approx(welfare, abs=1e-7)
    assert stitched(level, blueprint(None), all_refined(level)).violation < 1e-7
