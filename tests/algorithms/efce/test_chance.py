"""Games with chance: which are refused, and that all else holds there too, against oracles."""

import itertools

import numpy as np
import pyspiel
import pytest

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce import correlation_plans
from precomp_games.algorithms.efce.equilibria import whole_game_problem
from precomp_games.algorithms.efce.sequence_game import moves
from tests.oracles.games import EfgText
from tests.oracles.treeplex import (
    OwnTree,
    all_refined,
    blueprint,
    check_exploitability,
    goofspiel,
    held,
    moved,
    normal_form_efce_welfare,
    pairs_of,
    pure_plan,
    random_game,
    random_plan,
    refined_again,
    resolving,
    stitched,
    subgames_from,
    taken_apart,
)

HIDDEN = goofspiel(3, hidden=True)
SAFE_BOUNDS = ("separate", "aggregate")


def random_games(kind, count, depth=4, most=np.inf):
    """[(seed, random game with chance)], of at most so many pairs of pure strategies."""

    def fits(game):
        trees = [OwnTree(game, player) for player in (0, 1)]
        if not any(tree.actions for tree in trees) or not len(held(game).outcomes):
            return False
        return most == np.inf or np.prod([len(tree.plans(tree.first)) for tree in trees]) <= most

    games = ((seed, random_game(seed, depth, kind)) for seed in itertools.count())
    return list(itertools.islice((each for each in games if fits(each[1])), count))


# -- triangles ---------------------------------------------------------------------------------------------


class Paths:
    """Information states that are on a path together, and those before each, by walking states."""

    def __init__(self, game):
        self.connected, self.before = set(), ({}, {})

        def walk(state, last, path):
            if state.is_terminal():
                return
            if not state.is_chance_node():
                player, key = state.current_player(), state.information_state_string()
                self.before[player][key] = last[player]
                path = [*path, (player, key)]
                mine, theirs = ({k for p, k in path if p == i} for i in (player, 1 - player))
                for pair in itertools.product(mine, theirs):
                    self.connected.add(pair if player == 0 else pair[::-1])
            for action, _ in moves(state):
                after = list(last)
                if not state.is_chance_node():
                    after[player] = (key, action)
                walk(state.child(action), after, path)

        walk(game.new_initial_state(), [None, None], [])

    def triangles(self):
        """{(I', J, I, J')}, each connected with the next."""
        one, two = self.before
        near = {key: [j for i, j in self.connected if i == key] for key in one}
        return {
            (first, j, i, last)
            for i, j in self.connected
            for last in near[i]
            if last != j and two[last] == two[j]
            for first in one
            if first != i and one[first] == one[i] and j in near[first]
        }


def refusal(call):
    """Return the error about a triangle, or None without one."""
    try:
        call()
    except ValueError as error:
        assert "without triangles" in str(error)
        return str(error)
    return None


def test_triangles_are_those_of_the_definition(cases):
    refused = 0
    for seed, game in random_games("private", cases(240), depth=5):
        expected = Paths(game).triangles()
        said = refusal(lambda: efce.CorrelationPlan.of(held(game), blueprint(None)))  # noqa: B023
        assert (said is not None) == bool(expected), seed
        if expected:
            assert any(
                f"player 0's {a!r} and {c!r}, " in said and f"player 1's {b!r} and {d!r}: " in said
                for a, b, c, d in expected
            )
        refused += bool(expected)
    assert refused > cases(240) // 15


def test_public_chance_and_no_chance_make_no_triangles(cases):
    for kind in ("public", None):
        for seed in range(cases(80)):
            assert not Paths(random_game(seed, 5, kind)).triangles(), (kind, seed)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_private_deals_are_refused_by_name(name):
    game = pyspiel.load_game(name)
    said = refusal(lambda: efce.efce_lp(game))
    assert said.startswith("efce_lp(): expected a game without triangles")
    keys = [OwnTree(game, player).actions for player in (0, 1)]
    assert [sum(repr(key) in said for key in of_player) for of_player in keys] == [2, 2]


def two_bits():
    """Each player is told a bit and answers with one; both win if the sum of their answers is the product.

    Whatever they agreed on, they lose for one of the four pairs of bits (Clauser et al. 1969). Xi, where only
    pairs of answers count, has a plan that wins always (Popescu and Rohrlich 1994).
    """
    text = EfgText()
    text.chance(dict.fromkeys(("00", "01", "10", "11"), 0.25))
    for x, y in itertools.product((0, 1), (0, 1)):
        text.move(1, 1 + x, (0, 1))
        for a in (0, 1):
            text.move(2, 1 + y, (0, 1))
            for b in (0, 1):
                text.leaf(*[1.0 if (a + b) % 2 == x * y else 0.0] * 2)
    return text.game()


def test_xi_is_too_large_where_there_is_a_triangle(monkeypatch):
    game = two_bits()
    assert normal_form_efce_welfare(game) == pytest.approx(2 * 0.75, abs=1e-9)
    assert refusal(lambda: efce.efce_lp(game))
    monkeypatch.setattr(correlation_plans, "check_triangle_free", lambda *_: None)
    pairs = pairs_of(game)
    one, two = (form.action for form in pairs.game.players)
    told = [[form.keys[k] for k in form.infoset] for form in pairs.game.players]
    both = np.array([told[0][1], told[1][1]])  # the first bits that are told: 0 each
    xi = np.empty(len(pairs))
    for at, (s, t) in enumerate(zip(*pairs.sequences(), strict=True)):
        product = told[0][s] != both[0] and told[1][t] != both[1]
        xi[at] = 0.5 ** (s > 0) if not (s and t) else 0.5 * ((one[s] + two[t]) % 2 == product)
        if not s and t:
            xi[at] = 0.5
    assert efce.CorrelationPlan(pairs, xi).welfare() == pytest.approx(2.0)


def several_parts():
    """A triangle of which two subgames have a part each: player 1 is told "a" or "b", player 0 its card."""
    text = EfgText()
    text.chance({"high a": 0.25, "high b": 0.5, "low b": 0.25})
    for card, told in ((1, 1), (1, 2), (2, 2)):
        text.move(1, card, "xy")
        for k in (0, 1):
            text.move(2, told, "xy")
            text.leaf(k, card)
            text.leaf(card, told - k)
    return text.game()


def test_triangles_of_several_subgames_are_refused():
    game = several_parts()

    def told(state):
        return state.history()[0] > 0 if state.current_player() == 1 else None

    for name in (False, True):
        part = efce.SequenceGame.of(game, public=told, only=name)
        assert refusal(lambda: efce.CorrelationPlan.of(part, blueprint(None))) is None  # noqa: B023
    decomposed = efce.decompose(held(game), told)
    said = {
        refusal(call).split("): ")[1]
        for call in (
            lambda: efce.efce_lp(game),
            lambda: efce.Resolving.of(game, blueprint(None), told),
            lambda: efce.Resolving.of_subgames(decomposed, blueprint(None)),
        )
    }
    assert len(said) == 1


# -- equilibria --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["public", "private"])
def test_greatest_welfare_is_that_of_the_normal_form(kind, cases):
    """Private chance without triangles is no exception."""
    games = [each for each in random_games(kind, cases(60), most=600) if not Paths(each[1]).triangles()]
    assert len(games) >= cases(50)
    for seed, game in games[: cases(50)]:
        expected = normal_form_efce_welfare(game)
        assert efce.efce_lp(game, vertex=True).welfare == pytest.approx(expected, abs=1e-7), seed
        assert efce.efce_lp(game).welfare == pytest.approx(expected, abs=1e-7), seed


def test_exploitability_is_that_by_brute_force(cases):
    for kind in ("public", "private"):
        for seed, game in random_games(kind, cases(20)):
            check_exploitability(game, random_plan(pairs_of(game), seed))


def lottery():
    """Chance draws which of two games is played, one time in four chicken; both players see it."""
    text = EfgText()
    text.chance({"chicken": 0.25, "sexes": 0.75})
    for number, utilities in ((1, [(0, 0), (7, 2), (2, 7), (6, 6)]), (2, [(2, 1), (0, 0), (0, 0), (1, 2)])):
        text.move(1, number, "ab")
        for k in (0, 2):
            text.move(2, number, "ab")
            text.leaf(*utilities[k])
            text.leaf(*utilities[k + 1])
    return text.game()


def test_a_lottery_of_games_is_worth_what_they_are():
    """The best correlated equilibrium of chicken is worth 10.5 (Aumann 1974), the battle of the sexes 3."""
    whole, worth = held(lottery()), [0.25 * 10.5, 0.75 * 3.0]
    best = efce.efce_lp(whole, vertex=True)
    assert best.welfare == pytest.approx(sum(worth), abs=1e-9)
    # Before these subgames nobody moves.
    level = resolving(efce.finest_subgames(whole, 1), blueprint(None))
    assert (len(level.trunk.pairs), len(level.names)) == (1, 2)
    for one, least, mass in zip(all_refined(level), worth, (0.25, 0.75), strict=True):
        assert one.problem.mass == pytest.approx(mass)
        assert one.welfare > least - 1e-9
    assert stitched(level, blueprint(None), all_refined(level)).violation < 1e-9


def duds(shots, *, announced):
    """Battleship on two cells, where one hit in four is a dud: announced as such, or as a miss.

    In the latter case the owner of the ship knows better and the shooter does not.
    """
    text, infosets = EfgText(), ({}, {})

    def number(player, view):
        return infosets[player].setdefault(view, 1 + len(infosets[player]))

    def shoot(turn, ships, views):
        player = turn % 2
        if turn == 2 * shots:
            text.leaf(0.0, 0.0)
            return
        text.move(1 + player, number(player, views[player]), (0, 1))
        for cell in (0, 1):
            dud = cell == ships[1 - player]
            seen = (cell, "dud" if dud and announced else "miss")
            if dud:
                text.chance({"hit": 0.75, "dud": 0.25})
                text.leaf(*((1.0, -2.0) if player == 0 else (-2.0, 1.0)))
            shoot(turn + 1, ships, tuple((*view, seen) for view in views))

    text.move(1, number(0, ()), (0, 1))
    for one in (0, 1):
        text.move(2, number(1, ()), (0, 1))
        for two in (0, 1):
            shoot(0, (one, two), ((one,), (two,)))
    return text.game()


@pytest.mark.parametrize("announced", [True, False])
def test_battleship_with_duds(announced):
    game = duds(1, announced=announced)
    assert efce.efce_lp(game).welfare == pytest.approx(normal_form_efce_welfare(game), abs=1e-7)
    assert not Paths(duds(2, announced=announced)).triangles()
    level = resolving(efce.finest_subgames(held(duds(2, announced=announced)), 4), blueprint(1))
    found = stitched(level, blueprint(1), all_refined(level))
    assert found.violation < 1e-8
    assert found.welfare > found.blueprint_welfare + 5e-4


def test_goofspiel_wastes_no_prize():
    """With equal bids nobody would win a prize; a mediator sees to it that they never are."""
    found = efce.efce_lp(held(goofspiel(3)))
    assert found.welfare == pytest.approx(1.0 + 2.0 + 3.0, abs=1e-7)
    assert found.exploitability < 1e-9
    mean = sum(weight * pure_plan(found.plan.pairs, plans) for weight, plans in taken_apart(found.plan))
    np.testing.assert_allclose(mean, found.plan.xi, atol=1e-9)


def test_equilibria_do_not_depend_on_units(cases):
    for _, game in random_games("public", cases(20), 5):
        whole = held(game)
        best = efce.efce_lp(whole, vertex=True)
        for scale, offset in ((1.0, 1e6), (1e-6, 0.0), (1e6, -3.0)):
            found = efce.efce_lp(moved(whole, scale, offset))
            assert (found.welfare - 2 * offset) / scale == pytest.approx(best.welfare, rel=1e-6, abs=1e-8)
            assert found.exploitability / scale < 1e-8


# -- subgames ----------------------------------------------------------------------------------------------


def test_public_moves_of_goofspiel():
    """Prizes are seen, that of the next round as well; bids, or who won, when the round is over."""
    state = goofspiel(3).new_initial_state()
    hidden = HIDDEN.new_initial_state()
    shown, won = (efce.public_moves(game, 1) for game in (goofspiel(3), HIDDEN))
    names = []
    for action in (1, 0, 2, 2, 1):  # prize, bids, prize, bid
        names.append((shown(state), won(hidden)))
        state.apply_action(action)
        hidden.apply_action(action)
    names.append((shown(state), won(hidden)))
    assert names == [(None, None)] * 4 + [((1, 0, 2, 2), (1, -1, 2))] * 2


@pytest.mark.parametrize("bounds", SAFE_BOUNDS)
def test_goofspiel_is_refined_safely_whether_held_whole_or_not(bounds):
    public = efce.public_moves(HIDDEN, 1)
    level = resolving(held(HIDDEN, 1), blueprint(1), bounds)
    parts = efce.Resolving.of(HIDDEN, blueprint(1), public, bounds)
    assert parts.counts == level.counts
    assert len(parts.names) == 18
    for name in parts.names[::5]:
        one, two = parts.problem(name), level.problem(name)
        np.testing.assert_array_equal(one.blueprint.xi, two.blueprint.xi)
        for a, b in zip(one.bounds.players, two.bounds.players, strict=True):
            np.testing.assert_allclose(a.lower, b.lower, atol=1e-14)
            np.testing.assert_allclose(a.upper, b.upper, atol=1e-14)
    assert sum(level.problem(name).mass for name in level.names) == pytest.approx(1.0)
    found = stitched(level, blueprint(1), all_refined(level))
    assert found.violation < 1e-8
    assert found.welfare > found.blueprint_welfare + 1.0


@pytest.mark.parametrize("kind", ["public", "private"])
def test_stitched_refinements_are_safe_on_random_games(kind, cases):
    """Refined once, and again where a refined subgame has subgames of its own."""
    tried, gain = 0, 0.0
    for seed, game in random_games(kind, cases(48), 5):
        depth, bounds = 1 + seed % 3, SAFE_BOUNDS[seed // 3 % 2]
        whole = subgames_from(held(game), depth)
        if whole is None or Paths(game).triangles():
            continue
        start = blueprint(seed, 0.9)
        level = resolving(whole, start, bounds)
        refinements = all_refined(level)
        if kind == "public":
            refinements = [refined_again(level, one, depth + 1) for one in refinements]
        found = stitched(level, start, refinements)
        assert found.violation < 1e-8, seed
        assert found.welfare > found.blueprint_welfare - 1e-8, seed
        gain += found.welfare - found.blueprint_welfare
        tried += 1
    assert tried > cases(48) * 0.6
    assert gain > 0.1 * tried


def hidden_type():
    """Chance tells player 1 alone which of two games it is; both move, and player 0 knows nothing."""
    text = EfgText()
    text.chance({"one": 0.5, "two": 0.5})
    for kind in (1, 2):
        text.move(2, kind, "xy")
        for k in (0, 1):
            text.move(1, 1, "xy")
            text.leaf(k, 2 - k)
            text.leaf(kind - k, 3 * k)
    return text.game()


def test_a_set_that_has_to_suit_several_before_its_subgame():
    """No triangle, but what player 0 does after both types is tied together, which shares cannot express."""
    game = hidden_type()
    expected = normal_form_efce_welfare(game)
    assert efce.efce_lp(game, vertex=True).welfare == pytest.approx(expected, abs=1e-7)
    level = efce.Resolving.of(game, blueprint(1), lambda state: state.current_player() == 0 or None)
    for refine in (efce.refine_lp, efce.refine_regret):
        with pytest.raises(ValueError, match="has to suit several sets of player 1 in the trunk"):
            refine(level.problem(True))


def test_subgames_begin_with_decisions():
    """Chance moves before a subgame's first decision are in the trunk, with the leaves that they lead to."""
    text = EfgText()
    text.move(1, 1, "ab")
    for k in (0, 1):
        text.chance({"over": 0.4, "on": 0.6})
        text.leaf(5.0, k)
        text.move(2, 1 + k, "xy")
        text.leaf(1.0, 2.0)
        text.leaf(2.0, 0.0)
    game = text.game()

    def first(state):
        return state.history()[0] if state.history() else None

    for whole in (efce.decompose(held(game), first), efce.finest_subgames(held(game), 1)):
        assert whole.node_label.tolist() == [-1, -1, -1, 0, 0, 0, -1, -1, 1, 1, 1]
        level = resolving(whole, blueprint(None))
        assert level.trunk.utilities() == pytest.approx((0.4 * 5.0, 0.4 * 0.5))
        assert [level.problem(name).mass for name in level.names] == pytest.approx([0.3, 0.3])
        assert whole.restrict(-1)[0].is_whole is False
    parts = efce.Resolving.of(game, blueprint(None), first)
    assert parts.trunk.utilities() == pytest.approx((2.0, 0.2))
    assert efce.SequenceGame.of(game, public=first, only=1).node_label.max() == 0


# -- regret minimization -----------------------------------------------------------------------------------


def test_regret_minimization_comes_to_the_programs_value(cases):
    for seed, game in random_games("public", cases(16), 5):
        problem = whole_game_problem(held(game), blueprint(None))
        best = efce.refine_lp(problem).welfare
        found = efce.refine_regret(problem, target=best, iterations=5000, violation=2e-5)
        assert found.violation <= 2e-5, seed
        assert found.welfare > best - 2e-5, seed
        beyond = efce.refine_regret(problem, target=best + 0.05, iterations=1000)
        assert beyond.violation > 1e-3, seed


def test_pairs_with_several_leaves():
    """Nobody sees what chance draws at the end: as good as its mean."""

    def game(drawn):
        text = EfgText()
        text.move(1, 1, "ab")
        for k in (0, 1):
            text.move(2, 1, "ab")
            for m in (0, 1):
                if drawn:
                    text.chance({"x": 0.25, "y": 0.75})
                    text.leaf(4.0 * k, 4.0 * m)
                    text.leaf(m, 1 - k)
                else:
                    text.leaf(k + 0.75 * m, m + 0.75 * (1 - k))
        return text.game()

    problems = [whole_game_problem(held(game(drawn)), blueprint(1)) for drawn in (True, False)]
    lp = [efce.refine_lp(problem, vertex=True).welfare for problem in problems]
    assert lp[0] == pytest.approx(lp[1], abs=1e-9)
    plans = [efce.refine_regret(p, target=lp[0], iterations=200, start="random").plan for p in problems]
    np.testing.assert_allclose(plans[0].xi, plans[1].xi, atol=1e-9)


# -- the mediator ------------------------------------------------------------------------------------------


def test_mediator_leads_to_leaves_as_often_as_the_plan_says():
    plan = random_plan(pairs_of(HIDDEN), 4)
    mediator = efce.Mediator(plan.game, plan, seed=0)
    leaves = []

    def walk(state, weight, told):
        if state.is_terminal():
            leaves.append(weight)
            return
        if state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), weight * p, told)
            return
        player, key = state.current_player(), state.information_state_string()
        mediator._recommended = told  # each recommendation is followed
        for action, p in mediator.probabilities(state).items():
            after = list(told)
            after[player] = (key, state.legal_actions().index(action))
            if p > 0:
                walk(state.child(action), weight * p, after)

    walk(HIDDEN.new_initial_state(), 1.0, [None, None])
    expected = plan.xi[plan.pairs.leaves()] * plan.game.leaf_chance
    np.testing.assert_allclose(sorted(leaves), sorted(expected[expected > 0]), atol=1e-12)


def test_nobody_is_recommended_what_chance_does():
    mediator = efce.Mediator(held(HIDDEN), blueprint(None))
    state = HIDDEN.new_initial_state()
    for ask in (mediator.recommend, mediator.probabilities, lambda state: mediator.played(state, 0)):
        with pytest.raises(ValueError, match="where a player moves"):
            ask(state)


# -- what else is refused ----------------------------------------------------------------------------------


def test_what_is_no_game():
    text = EfgText()
    text.chance({"x": 0.5, "y": 0.5})
    text.leaf(1.0)
    text.leaf(2.0)
    with pytest.raises(ValueError, match="in which a player moves"):
        efce.SequenceGame.of(text.game())

    class Unfair:
        def current_player(self):
            return pyspiel.PlayerId.CHANCE

        def chance_outcomes(self):
            return [(0, 0.5), (1, 0.4)]

        def history_str(self):
            return "here"

    with pytest.raises(ValueError, match=r"sum to 1 at history 'here', got 0\.9"):
        moves(Unfair())
