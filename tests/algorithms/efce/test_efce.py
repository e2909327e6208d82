"""Pairs, plans, blueprints, mediators and subgames, with chance, by oracles that walk OpenSpiel's states."""

import itertools
import pickle
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy

from precomp_games import config
from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.correlation_plans import (
    ProductBlueprint,
    RelevantPairs,
    flow_constraints,
    plan_error,
)
from precomp_games.algorithms.efce.sequence_game import moves
from precomp_games.algorithms.programs import LinearProgramError
from tests.oracles.efce import (
    all_refined,
    battleship,
    blueprint,
    goofspiel,
    held,
    pairs_of,
    pure_plan,
    random_games,
    random_plan,
    resolving,
    stitched,
    subgames_from,
)
from tests.oracles.games import SEEDS, Level, written
from tests.oracles.treeplex import NormalForm, OwnTree, profiles_of
from tests.properties import examples

SMALL, HIDDEN = battleship(1, 3, 2), goofspiel(3, hidden=True)

# H, W, T of Table 1's rows; pairs of a subgame with the trunk's, and of all of the game.
ROWS = [
    (1, 3, 2, 382, 1150),
    (2, 2, 3, 3246, 35241),
    pytest.param(1, 5, 3, 22566, 485286, marks=pytest.mark.slow("larger rows of the table")),
    pytest.param(3, 2, 3, 115966, 3893341, marks=pytest.mark.slow("larger rows of the table")),
]


# -- pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width", "shots", "subgame", "total"), ROWS)
def test_pair_counts_are_those_of_the_paper(height, width, shots, subgame, total):
    game = battleship(height, width, shots)
    counts = efce.Resolving.of(game, blueprint(None), efce.public_moves(game, 1)).counts
    assert len(counts.subgames) == (height * width) ** 2
    assert {counts.trunk + count for count in counts.subgames.values()} == {subgame}
    whole = held(game, 1)
    pairs = RelevantPairs.of(whole)
    assert counts.total == len(pairs) == total
    label = np.bincount(pairs.pair_label + 1)
    assert label.tolist() == [counts.trunk, *(counts.subgames[name] for name in whole.labels)]


@examples(80)
@given(random_games(), st.integers(1, 3))
def test_pairs_of_subgames_and_trunk_are_a_partition(game, depth):
    """Theorem 1."""
    whole = subgames_from(held(game), depth)
    assume(whole is not None)
    assert set(whole.node_label[whole.node_player >= 0]) >= set(range(len(whole.labels)))
    pairs = RelevantPairs.of(whole)
    first, second = whole.players[0].label[pairs.first], whole.players[1].label[pairs.second]
    assert not ((first >= 0) & (second >= 0) & (first != second)).any()
    total = (pairs.pair_label < 0).sum()
    for k in range(len(whole.labels)):
        total += (RelevantPairs.of(whole.restrict(k)[0]).pair_label >= 0).sum()
    assert total == len(pairs)


def test_information_state_strings_may_be_empty():
    """Tic-tac-toe's string is its history."""
    game = pyspiel.load_game("tic_tac_toe")
    trunk = efce.SequenceGame.of(game, public=lambda state: len(state.history()) >= 2 or None, trunk=True)
    assert [form.num_infosets - 1 for form in trunk.players] == [1, 9]
    assert trunk.infoset_of(0, "") == 1
    assert trunk.players[0].action.tolist() == [-1, *range(9)]


# -- plans -----------------------------------------------------------------------------------------------


def test_xi_is_what_pure_strategies_span():
    game = battleship(1, 2, 2)
    pairs = pairs_of(game)
    points = [pure_plan(pairs, plans) for plans in profiles_of(game)]
    assert all(plan_error(pairs, point) <= 1e-12 for point in points)
    rows = [flow_constraints(pairs, i)[0].toarray() for i in (0, 1)]
    dimension = len(pairs) - np.linalg.matrix_rank(np.vstack([*rows, np.eye(len(pairs))[:1]]))
    assert np.linalg.matrix_rank(np.array(points)[1:] - points[0]) == dimension


@examples(80)
@given(random_games(turns=5), SEEDS, st.sampled_from((0.0, 1e-3, 1.0)))
def test_plan_error_is_that_of_the_sparse_constraints(game, seed, noise):
    pairs, rng = pairs_of(game), np.random.default_rng(seed)
    xi = efce.CorrelationPlan.of(pairs.game, blueprint(seed)).xi + noise * rng.normal(size=len(pairs))
    rows = [flow_constraints(pairs, player)[0] for player in (0, 1)]
    worst = [abs(xi[0] - 1.0), -xi.min(), *(abs(r @ xi).max() for r in rows if r.shape[0])]
    assert plan_error(pairs, xi) == pytest.approx(max(worst), abs=1e-15)


def test_plans_are_read_and_not_written():
    plan = efce.CorrelationPlan.of(held(SMALL), blueprint(1))
    with pytest.raises(ValueError, match="read-only"):
        plan.xi[:] = 0.0
    assert efce.CorrelationPlan(plan.pairs, plan.xi).xi is plan.xi  # which is large, and stays as it is
    entries = np.array(plan.xi)
    looked_at = entries[:]
    looked_at.flags.writeable = False
    again = efce.CorrelationPlan(plan.pairs, looked_at)
    entries[:] = 0.0
    assert (again.xi == plan.xi).all()
    with pytest.raises(ValueError, match=r"entries\(\): expected relevant pairs"):
        # Both players' first decisions are connected; second ones after other shots are not.
        count = [form.num_sequences for form in plan.game.players]
        plan.entries(plan.game, *np.indices(count).reshape(2, -1))


# -- blueprints ------------------------------------------------------------------------------------------


def test_blueprints_of_openspiel_policies():
    pairs = pairs_of(SMALL)

    def plan_of(policies):
        return efce.CorrelationPlan.of(pairs.game, efce.policy_blueprint(policies))

    def table(odds):
        rows = {key: actions for player in (0, 1) for key, actions in OwnTree(SMALL, player).actions.items()}
        return pyspiel.TabularPolicy({key: [(a, odds(a, own)) for a in own] for key, own in rows.items()})

    tabular, even = openspiel_policy.TabularPolicy(SMALL), table(lambda action, own: 1 / len(own))
    uniform = efce.CorrelationPlan.of(pairs.game, blueprint(None))
    for policies in (tabular, even, (tabular, even)):
        np.testing.assert_allclose(plan_of(policies).xi, uniform.xi, atol=1e-12)
    first = table(lambda action, own: float(action == own[0]))
    assert set(np.unique(plan_of(first).xi)) == {0.0, 1.0}
    # Tabular rows are over all of the game's actions.
    form = pairs.game.players[0]
    tabular.policy_for_key(form.keys[1])[:] = np.eye(SMALL.num_distinct_actions())[form.action[1]]
    assert plan_of(tabular).xi[pairs.index(np.array([1]), np.array([0]))][0] == 1.0


def test_plans_are_blueprints_of_the_parts_they_hold():
    """Whatever the numbers of information sets: a walk with subgames puts the trunk first."""
    public = efce.public_moves(SMALL, 1)
    plan = efce.efce_lp(SMALL).plan
    walked = efce.SequenceGame.of(SMALL, public=public)
    levels = [
        efce.Resolving.of_subgames(efce.decompose(plan.game, public), plan),
        efce.Resolving.of_subgames(walked, plan),
        efce.Resolving.of(SMALL, plan, public),
    ]
    assert walked.players[1].keys != plan.game.players[1].keys
    found = []
    for level in levels:
        parts = {name: level.problem(name).blueprint for name in walked.labels}
        assert max(plan_error(part.pairs, part.xi) for part in parts.values()) < 1e-12
        found.append({name: part.welfare(0) for name, part in parts.items()})
        assert sum(found[-1].values()) + level.trunk.welfare() == pytest.approx(plan.welfare())
    assert found[1] == pytest.approx(found[0]) and found[2] == pytest.approx(found[0])


def test_blueprints_are_jittered_by_their_seeds():
    one, other, still, uniform = (
        each.realization_plans(held(SMALL))[0]
        for each in (blueprint(5), blueprint(6), blueprint(7, 0.0), blueprint(None))
    )
    assert not np.allclose(one, other) and (still == uniform).all()


# -- the mediator ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [battleship(1, 2, 2), HIDDEN], ids=["battleship", "goofspiel"])
def test_mediator_leads_to_leaves_as_often_as_the_plan_says(game):
    plan, leaves = random_plan(pairs_of(game), 4), []
    mediator = efce.Mediator(plan.game, plan, seed=0)

    def walk(state, weight, recommended):
        if state.is_terminal():
            leaves.append(weight)
            return
        mediator._recommended = recommended  # each recommendation is followed
        odds = moves(state) if state.is_chance_node() else mediator.probabilities(state).items()
        for action, p in odds:
            after = list(recommended)
            if not state.is_chance_node():
                number = state.legal_actions().index(action)
                after[state.current_player()] = (state.information_state_string(), number)
            if p > 0:
                walk(state.child(action), weight * p, after)

    walk(game.new_initial_state(), 1.0, [None, None])
    expected = plan.xi[plan.pairs.leaves()] * plan.game.leaf_chance
    np.testing.assert_allclose(sorted(leaves), sorted(expected[expected > 1e-15]), atol=1e-12)


def test_a_player_who_deviates_gets_no_more_recommendations():
    mediator = efce.Mediator(held(SMALL), blueprint(None), seed=1)
    state = SMALL.new_initial_state()
    recommended = mediator.recommend(state)
    action = next(a for a in state.legal_actions() if a != recommended)
    mediator.played(state, action)
    state.apply_action(action)
    before = mediator.sequences()
    other = mediator.recommend(state)
    assert {mediator.recommend(state) for _ in range(20)} == {other}  # no second draw
    assert other in state.legal_actions()
    mediator.played(state, other)
    state.apply_action(other)
    assert mediator.recommend(state) is None
    assert mediator.sequences()[0] == before[0]
    state.apply_action(state.legal_actions()[0])
    with pytest.raises(ValueError, match="recommend"):
        mediator.played(state, state.legal_actions()[0])


def test_nobody_is_recommended_what_chance_does():
    mediator, state = efce.Mediator(held(HIDDEN), blueprint(None)), HIDDEN.new_initial_state()
    for ask in (mediator.recommend, mediator.probabilities, lambda state: mediator.played(state, 0)):
        with pytest.raises(ValueError, match="where a player moves"):
            ask(state)


# -- what is refused -------------------------------------------------------------------------------------


def test_what_is_no_decomposition():
    whole = held(SMALL)

    def placement(state):  # the first player's is secret
        return state.history()[0] if state.history() else None

    public = efce.public_moves(SMALL, 1)
    for refused, words in (
        (lambda: efce.decompose(whole, placement), "valid decomposition"),
        (lambda: efce.SequenceGame.of(SMALL, public=placement), "share no information set"),
        (lambda: efce.Resolving.of(SMALL, blueprint(None), placement), "share an information set"),
        (lambda: efce.finest_subgames(whole, 6), "moves below"),  # all games end there, or before
        (lambda: efce.SequenceGame.of(SMALL, only=(0, 1)), "public"),
        (lambda: efce.efce_lp(efce.SequenceGame.of(SMALL, public=public, trunk=True)), "held whole"),
    ):
        with pytest.raises(ValueError, match=words):
            refused()


@pytest.mark.parametrize(
    "row",
    [
        lambda count: [1.0] * count,
        lambda count: [-1.0, *[2.0 / (count - 1)] * (count - 1)],
        lambda count: {99: 1.0},
        lambda count: [np.nan] * count,
        lambda count: None,
    ],
)
def test_what_is_no_behavior(row):
    with pytest.raises(ValueError, match="expected a strategy"):
        wrong = ProductBlueprint(lambda player, key, actions: row(len(actions)), "mine")
        efce.CorrelationPlan.of(held(SMALL), wrong)


def test_programs_without_a_solution():
    with pytest.raises(LinearProgramError, match="Infeasible") as caught:
        efce.efce_lp(SMALL, floors=(10.0, 10.0))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with (
        config(max_memory="1MB"),
        pytest.raises(ValueError, match=r"efce_lp\(\).*1,149 relevant pairs.*3\.45 MB.*raise max_memory"),
    ):
        efce.efce_lp(SMALL)
    with pytest.raises(ValueError, match="max_nodes"):
        efce.SequenceGame.of(SMALL, max_nodes=100)


def test_the_time_limit_includes_building():
    whole = held(battleship(2, 2, 3))
    start = time.process_time()
    with pytest.raises(LinearProgramError, match=r"efce_lp\(\).*Time limit"):
        efce.efce_lp(whole, time_limit=0.1)
    assert time.process_time() - start < 3.0


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
    """Return the error about a triangle, without who was asked, or None without one."""
    try:
        call()
    except ValueError as error:
        asked, message = str(error).split("(): ")
        assert asked in ("efce_lp", "CorrelationPlan.of", "Resolving.of", "Resolving.of_subgames")
        assert message.startswith("expected a game without triangles")
        return message
    return None


def two_bits():
    """Each player sees a bit and answers with one; both win if the sum of their answers is the product.

    Whatever they agreed on, they lose for one of the four pairs of bits (Clauser et al. 1969). Xi, where only
    pairs of answers count, would have a plan that wins always (Popescu and Rohrlich 1994).
    """
    nodes: list[Any] = [dict.fromkeys(("00", "01", "10", "11"), 0.25)]
    for x, y in itertools.product((0, 1), (0, 1)):
        alike, other = [(1, 1), (0, 0)][:: -1 if x * y else 1]
        nodes += [(1, 1 + x, "01"), (2, 1 + y, "01"), alike, other, (2, 1 + y, "01"), other, alike]
    return written(*nodes)


@examples(240)
@given(random_games("private", 5) | random_games(first=OWN_CARDS))
@example(two_bits())
@example(SMALL)
@example(pyspiel.load_game("kuhn_poker"))
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


def test_triangles_of_several_subgames_are_refused():
    """Two subgames have a part of the triangle each: player 1 sees "a" or "b", player 0 its card."""
    high_a = (1, 1, "xy"), (2, 1, "xy"), (0, 1), (1, 1), (2, 1, "xy"), (1, 1), (1, 0)
    high_b = (1, 1, "xy"), (2, 2, "xy"), (0, 1), (1, 2), (2, 2, "xy"), (1, 1), (1, 1)
    low_b = (1, 2, "xy"), (2, 2, "xy"), (0, 2), (2, 2), (2, 2, "xy"), (1, 2), (2, 1)
    game = written({"high a": 0.25, "high b": 0.5, "low b": 0.25}, *high_a, *high_b, *low_b)

    def public(state):
        return state.history()[0] > 0 if state.current_player() == 1 else None

    for name in (False, True):
        part = efce.SequenceGame.of(game, public=public, only=name)
        assert refusal(lambda: efce.CorrelationPlan.of(part, blueprint(None))) is None  # noqa: B023
    decomposed = efce.decompose(held(game), public)
    errors = {
        refusal(call)
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
    chicken = (1, 1, "ab"), (2, 1, "ab"), (0, 0), (7, 2), (2, 1, "ab"), (2, 7), (6, 6)
    sexes = (1, 2, "ab"), (2, 2, "ab"), (2, 1), (0, 0), (2, 2, "ab"), (0, 0), (1, 2)
    game = written({"chicken": 0.25, "sexes": 0.75}, *chicken, *sexes)  # chance's draw is seen by both
    whole, worth = held(game), [0.25 * 10.5, 0.75 * 3.0]
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
    one = (2, 1, "xy"), (1, 1, "xy"), (0, 2), (1, 0), (1, 1, "xy"), (1, 1), (0, 3)
    two = (2, 2, "xy"), (1, 1, "xy"), (0, 2), (2, 0), (1, 1, "xy"), (1, 1), (1, 3)
    game = written({"one": 0.5, "two": 0.5}, *one, *two)
    most = NormalForm(game, "efce").greatest((1, 1))
    assert efce.efce_lp(game, vertex=True).welfare == pytest.approx(most, abs=1e-7)
    level = efce.Resolving.of(game, blueprint(1), lambda state: state.current_player() == 0 or None)
    for refine in (efce.refine_lp, efce.refine_regret):
        with pytest.raises(ValueError, match="has to suit several sets of player 1 in the trunk"):
            refine(level.problem(True))


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
    odds = {"over": 0.4, "on": 0.6}
    one, two = (odds, (5, 0), (2, 1, "xy"), (1, 2), (2, 0)), (odds, (5, 1), (2, 2, "xy"), (1, 2), (2, 0))
    game = written((1, 1, "ab"), *one, *two)

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
    with pytest.raises(ValueError, match="in which a player moves"):
        efce.SequenceGame.of(written({"x": 0.5, "y": 0.5}, 1, 2))
    unfair = SimpleNamespace(
        current_player=lambda: pyspiel.PlayerId.CHANCE,
        chance_outcomes=lambda: [(0, 0.5), (1, 0.4)],
        history_str=lambda: "here",
    )
    with pytest.raises(ValueError, match=r"sum to 1 at history 'here', got 0\.9"):
        moves(unfair)
