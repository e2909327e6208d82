"""Pairs, plans, blueprints and the mediator, against oracles that walk OpenSpiel's states."""

import pickle
import time

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, given
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
from precomp_games.algorithms.efce.scaled_extensions import write_again
from precomp_games.algorithms.programs import LinearProgramError
from tests.oracles.efce import (
    all_steps,
    battleship,
    blueprint,
    goofspiel,
    held,
    pairs_of,
    pure_plan,
    random_games,
    random_plan,
    sheriff,
    subgames_from,
)
from tests.oracles.games import SEEDS
from tests.oracles.treeplex import OwnTree, profiles_of
from tests.properties import examples

SMALL = battleship(1, 3, 2)

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
    # Theorem 1: the pairs of the subgames and of the trunk are a partition.
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


@pytest.mark.parametrize("game", [SMALL, sheriff(1, 1, 2)], ids=["battleship", "sheriff"])
def test_scaled_extensions_write_every_plan(game):
    pairs = pairs_of(game)
    steps = all_steps(pairs)
    written = np.concatenate(
        [
            [other] if is_sum else start + stride * np.arange(size)
            for start, stride, size, other, is_sum in zip(*steps, strict=True)
        ]
    )
    np.testing.assert_array_equal(np.sort(written), np.arange(1, len(pairs)))
    plan = efce.CorrelationPlan.of(pairs.game, blueprint(2))
    xi = np.array(plan.xi)
    write_again(steps, xi)
    np.testing.assert_allclose(xi, plan.xi, atol=1e-14)


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


def test_jitter_is_the_same_whatever_part_of_the_game_is_held():
    whole = held(SMALL, 1)
    plans = blueprint(5).realization_plans(whole)
    small, old = whole.restrict(4)
    for a, b, k in zip(plans, blueprint(5).realization_plans(small), old, strict=True):
        np.testing.assert_array_equal(a[k], b)
    assert not np.allclose(plans[0], blueprint(6).realization_plans(whole)[0])
    still, uniform = (each.realization_plans(whole) for each in (blueprint(7, 0.0), blueprint(None)))
    np.testing.assert_array_equal(still[0], uniform[0])


# -- the mediator ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "game", [battleship(1, 2, 2), goofspiel(3, hidden=True)], ids=["battleship", "goofspiel"]
)
def test_mediator_leads_to_leaves_as_often_as_the_plan_says(game):
    plan, leaves = random_plan(pairs_of(game), 4), []
    mediator = efce.Mediator(plan.game, plan, seed=0)

    def walk(state, weight, recommended):
        if state.is_terminal():
            leaves.append(weight)
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), weight * p, recommended)
        else:
            player, key = state.current_player(), state.information_state_string()
            mediator._recommended = recommended  # each recommendation is followed
            for action, p in mediator.probabilities(state).items():
                after = list(recommended)
                after[player] = (key, state.legal_actions().index(action))
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
    game = goofspiel(3, hidden=True)
    mediator, state = efce.Mediator(held(game), blueprint(None)), game.new_initial_state()
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
    "behavior",
    [
        lambda player, key, actions: [1.0] * len(actions),
        lambda player, key, actions: [-1.0, *[2.0 / (len(actions) - 1)] * (len(actions) - 1)],
        lambda player, key, actions: {99: 1.0},
        lambda player, key, actions: [np.nan] * len(actions),
        lambda player, key, actions: None,
    ],
)
def test_what_is_no_behavior(behavior):
    with pytest.raises(ValueError, match="expected a strategy"):
        efce.CorrelationPlan.of(held(SMALL), ProductBlueprint(behavior, "mine"))


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
