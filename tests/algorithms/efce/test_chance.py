"""Games with chance: which are refused, and that all else holds there too, against oracles."""

import itertools

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given

from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.equilibria import whole_game_problem
from precomp_games.algorithms.efce.sequence_game import moves
from tests.oracles.efce import (
    all_refined,
    battleship,
    blueprint,
    goofspiel,
    held,
    pairs_of,
    random_games,
    resolving,
    stitched,
)
from tests.oracles.games import EfgText, Level
from tests.oracles.treeplex import NormalForm, OwnTree
from tests.properties import examples

HIDDEN = goofspiel(3, hidden=True)
OWN_CARDS = Level(-1, hidden=(False, True)), Level(-1, hidden=(True, False))


class Paths:
    """Information states that are on a path together, and those before each, by walking states."""

    def __init__(self, game):
        self.connected, self.before = set(), ({}, {})

        def walk(state, last, path):
            if state.is_terminal():
                return
            after = list(last)
            if not state.is_chance_node():
                player, key = state.current_player(), state.information_state_string()
                self.before[player][key] = last[player]
                path = [*path, (player, key)]
                mine, theirs = ({k for p, k in path if p == i} for i in (player, 1 - player))
                for pair in itertools.product(mine, theirs):
                    self.connected.add(pair if player == 0 else pair[::-1])
            for action, _ in moves(state):
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


def two_bits():
    """Each player sees a bit and answers with one; both win if the sum of their answers is the product.

    Whatever they agreed on, they lose for one of the four pairs of bits (Clauser et al. 1969). Xi, where only
    pairs of answers count, would have a plan that wins always (Popescu and Rohrlich 1994).
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


@examples(240)
@given(random_games("private", 5) | random_games(first=OWN_CARDS))
@example(two_bits())
@example(battleship(1, 3, 2))
def test_triangles_and_pairs_are_those_of_the_definition(game):
    paths = Paths(game)
    found = paths.triangles()
    error = refusal(lambda: efce.CorrelationPlan.of(held(game), blueprint(None)))
    assert (error is not None) == bool(found)
    if found:
        assert any(
            f"player 0's {a!r} and {c!r}, " in error and f"player 1's {b!r} and {d!r}: " in error
            for a, b, c, d in found
        )
        return
    pairs = pairs_of(game)
    keys = [form.keys for form in pairs.game.players]
    both = (pairs.first > 0) & (pairs.second > 0)
    mine = [(keys[0][i], keys[1][j]) for i, j in zip(pairs.first[both], pairs.second[both], strict=True)]
    assert sorted(mine) == sorted(paths.connected)
    assert (~both).sum() == len(keys[0]) + len(keys[1]) - 1
    s, t = pairs.sequences()
    assert (pairs.index(s, t) == np.arange(len(pairs))).all()
    assert len(set(zip(s.tolist(), t.tolist(), strict=True))) == len(pairs)


@examples(160)
@given(random_games("none", 5) | random_games("public", 5))
def test_public_chance_and_no_chance_make_no_triangles(game):
    assert not Paths(game).triangles()


def test_private_deals_are_refused_by_name():
    game = pyspiel.load_game("kuhn_poker")
    error = refusal(lambda: efce.efce_lp(game))
    assert error.startswith("efce_lp(): expected a game without triangles")
    keys = [OwnTree(game, player).actions for player in (0, 1)]
    assert [sum(repr(key) in error for key in of_player) for of_player in keys] == [2, 2]


def test_triangles_of_several_subgames_are_refused():
    """Two subgames have a part of the triangle each: player 1 sees "a" or "b", player 0 its card."""
    text = EfgText()
    text.chance({"high a": 0.25, "high b": 0.5, "low b": 0.25})
    for card, seen in ((1, 1), (1, 2), (2, 2)):
        text.move(1, card, "xy")
        for k in (0, 1):
            text.move(2, seen, "xy")
            text.leaf(k, card)
            text.leaf(card, seen - k)
    game = text.game()

    def public(state):
        return state.history()[0] > 0 if state.current_player() == 1 else None

    for name in (False, True):
        part = efce.SequenceGame.of(game, public=public, only=name)
        assert refusal(lambda: efce.CorrelationPlan.of(part, blueprint(None))) is None  # noqa: B023
    decomposed = efce.decompose(held(game), public)
    errors = {
        refusal(call).split("): ")[1]
        for call in (
            lambda: efce.efce_lp(game),
            lambda: efce.Resolving.of(game, blueprint(None), public),
            lambda: efce.Resolving.of_subgames(decomposed, blueprint(None)),
        )
    }
    assert len(errors) == 1


# -- games by hand -----------------------------------------------------------------------------------------


def test_a_lottery_of_games_is_worth_what_they_are():
    """The best correlated equilibrium of chicken is worth 10.5 (Aumann 1974), the battle of the sexes 3."""
    text = EfgText()
    text.chance({"chicken": 0.25, "sexes": 0.75})  # which both players see
    for number, utilities in ((1, [(0, 0), (7, 2), (2, 7), (6, 6)]), (2, [(2, 1), (0, 0), (0, 0), (1, 2)])):
        text.move(1, number, "ab")
        for k in (0, 2):
            text.move(2, number, "ab")
            text.leaf(*utilities[k])
            text.leaf(*utilities[k + 1])
    whole, worth = held(text.game()), [0.25 * 10.5, 0.75 * 3.0]
    best = efce.efce_lp(whole, vertex=True)
    assert best.welfare == pytest.approx(sum(worth), abs=1e-9)
    # Before these subgames nobody moves.
    level = resolving(efce.finest_subgames(whole, 1), blueprint(None))
    assert (len(level.trunk.pairs), len(level.names)) == (1, 2)
    for one, least, mass in zip(all_refined(level), worth, (0.25, 0.75), strict=True):
        assert one.problem.mass == pytest.approx(mass)
        assert one.welfare > least - 1e-9
    assert stitched(level, blueprint(None), all_refined(level)).violation < 1e-9


def test_goofspiel_wastes_no_prize():
    """With equal bids nobody would win a prize; a mediator sees to it that they never are."""
    found = efce.efce_lp(held(goofspiel(3)))
    assert found.welfare == pytest.approx(1.0 + 2.0 + 3.0, abs=1e-7)
    assert found.exploitability < 1e-9


def test_a_set_that_has_to_suit_several_before_its_subgame():
    """Player 1 alone sees which of two games it is, both move, and player 0 sees nothing.

    There is no triangle, but what player 0 does after both types is tied together, which shares cannot
    express.
    """
    text = EfgText()
    text.chance({"one": 0.5, "two": 0.5})
    for kind in (1, 2):
        text.move(2, kind, "xy")
        for k in (0, 1):
            text.move(1, 1, "xy")
            text.leaf(k, 2 - k)
            text.leaf(kind - k, 3 * k)
    game = text.game()
    most = NormalForm(game, "efce").greatest((1, 1))
    assert efce.efce_lp(game, vertex=True).welfare == pytest.approx(most, abs=1e-7)
    level = efce.Resolving.of(game, blueprint(1), lambda state: state.current_player() == 0 or None)
    for refine in (efce.refine_lp, efce.refine_regret):
        with pytest.raises(ValueError, match="has to suit several sets of player 1 in the trunk"):
            refine(level.problem(True))


def test_pairs_with_several_leaves():
    """Nobody sees what chance draws at the end: as good as its mean."""

    def problem(drawn):
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
        return whole_game_problem(held(text.game()), blueprint(1))

    problems = problem(True), problem(False)
    lp = [efce.refine_lp(each, vertex=True).welfare for each in problems]
    assert lp[0] == pytest.approx(lp[1], abs=1e-9)
    found = [efce.refine_regret(each, target=lp[0], iterations=200, start="random") for each in problems]
    np.testing.assert_allclose(found[0].plan.xi, found[1].plan.xi, atol=1e-9)
    for each in found:
        assert each.welfare == pytest.approx(each.plan.welfare(0))


# -- subgames ----------------------------------------------------------------------------------------------


def test_public_moves_of_goofspiel():
    """Prizes are seen, that of the next round as well; bids, or who won, when the round is over."""
    shown, won = (efce.public_moves(game, 1) for game in (goofspiel(3), HIDDEN))
    state, hidden = goofspiel(3).new_initial_state(), HIDDEN.new_initial_state()
    names = [(shown(state), won(hidden))]
    for action in (1, 0, 2, 2, 1):  # prize, bids, prize, bid
        state.apply_action(action)
        hidden.apply_action(action)
        names.append((shown(state), won(hidden)))
    assert names == [(None, None)] * 4 + [((1, 0, 2, 2), (1, -1, 2))] * 2


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
