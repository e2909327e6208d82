"""Pairs, plans, equilibria and devices, against oracles that walk OpenSpiel's states."""

import itertools
import pickle
import time

import numpy as np
import pyspiel
import pytest
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
from tests.oracles.treeplex import (
    OwnTree,
    all_steps,
    battleship,
    blueprint,
    brute_force_deltas,
    check_exploitability,
    held,
    normal_form_efce_welfare,
    pairs_of,
    pure_plan,
    random_game,
    random_plan,
    sheriff,
    subgames_from,
    taken_apart,
)

# H, W, T of Table 1's rows; pairs of a subgame with the trunk's, and of all of the game.
ROWS = [(1, 3, 2, 382, 1150), (2, 2, 3, 3246, 35241), (1, 5, 3, 22566, 485286), (3, 2, 3, 115966, 3893341)]

SMALL = {
    "battleship 1x2": battleship(1, 2, 2),
    "battleship 1x3": battleship(1, 3, 2),
    "sheriff": sheriff(1, 1, 1),
    "sheriff, two rounds": sheriff(1, 1, 2),
}


# -- pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width", "shots", "subgame", "total"), ROWS)
def test_pair_counts(height, width, shots, subgame, total):
    game = battleship(height, width, shots)
    public = efce.public_moves(game, 1)
    counts = efce.Resolving.of(game, blueprint(None), public).counts
    assert len(counts.subgames) == (height * width) ** 2
    assert {counts.trunk + count for count in counts.subgames.values()} == {subgame}
    assert counts.total == total
    whole = held(game, 1)
    pairs = RelevantPairs.of(whole)
    assert len(pairs) == total
    # Theorem 1: the pairs of the subgames and of the trunk are a partition.
    label = np.bincount(pairs.pair_label + 1)
    assert label.tolist() == [counts.trunk, *(counts.subgames[name] for name in whole.labels)]


def test_theorem_1_on_random_games(cases):
    tried = 0
    for seed in range(cases(80)):
        whole = subgames_from(held(random_game(seed)), 1 + seed % 3)
        if whole is None:
            continue
        assert set(whole.node_label[whole.node_player >= 0]) >= set(range(len(whole.labels)))
        pairs = RelevantPairs.of(whole)
        first, second = whole.players[0].label[pairs.first], whole.players[1].label[pairs.second]
        assert not ((first >= 0) & (second >= 0) & (first != second)).any()
        total = (pairs.pair_label < 0).sum()
        for k in range(len(whole.labels)):
            total += (RelevantPairs.of(whole.restrict(k)[0]).pair_label >= 0).sum()
        assert total == len(pairs), seed
        tried += 1
    assert tried > cases(20)


def test_relevant_pairs_are_those_on_paths():
    game = battleship(1, 3, 2)
    pairs = pairs_of(game)
    found = set()

    def walk(state, path):
        if state.is_terminal():
            return
        player, key = state.current_player(), state.information_state_string()
        for other, theirs in path:
            if other != player:
                found.add((key, theirs) if player == 0 else (theirs, key))
        for action in state.legal_actions():
            walk(state.child(action), [*path, (player, key)])

    walk(game.new_initial_state(), [])
    keys = [form.keys for form in pairs.game.players]
    first, second = pairs.first.tolist(), pairs.second.tolist()
    mine = {(keys[0][i], keys[1][j]) for i, j in zip(first, second, strict=True)}
    assert {pair for pair in mine if all(pair)} == found
    assert sum(not all(pair) for pair in mine) == len(keys[0]) + len(keys[1]) - 1
    s, t = pairs.sequences()
    assert (pairs.index(s, t) == np.arange(len(pairs))).all()
    assert len(set(zip(s.tolist(), t.tolist(), strict=True))) == len(pairs)


def test_information_state_strings_may_be_empty():
    """Tic-tac-toe's string is its history."""
    game = pyspiel.load_game("tic_tac_toe")
    trunk = efce.SequenceGame.of(game, public=lambda state: len(state.history()) >= 2 or None, trunk=True)
    assert [form.num_infosets - 1 for form in trunk.players] == [1, 9]
    assert trunk.infoset_of(0, "") == 1
    assert trunk.players[0].action.tolist() == [-1, *range(9)]


# -- plans and equilibria ----------------------------------------------------------------------------------


def test_exploitability_is_that_by_brute_force_on_random_games(cases):
    for seed in range(cases(40)):
        game = random_game(seed)
        check_exploitability(game, random_plan(pairs_of(game), seed))


@pytest.mark.parametrize("name", SMALL)
def test_exploitability_is_that_by_brute_force(name):
    pairs = pairs_of(SMALL[name])
    for plan in (random_plan(pairs, 0), efce.CorrelationPlan.of(pairs.game, blueprint(1))):
        check_exploitability(SMALL[name], plan)


@pytest.mark.parametrize("name", ["battleship 1x2", "sheriff"])
def test_greatest_welfare_is_that_of_the_normal_form(name):
    expected = normal_form_efce_welfare(SMALL[name])
    assert efce.efce_lp(SMALL[name], vertex=True).welfare == pytest.approx(expected, abs=1e-7)
    assert efce.efce_lp(SMALL[name]).welfare == pytest.approx(expected, abs=1e-6)


def as_policy(game, plans):
    """Two pure strategies as OpenSpiel's policy; the first action where a player's own do not lead."""
    table = {}
    for form, plan in zip(game.players, plans, strict=True):
        for key, k in form.index.items():
            actions = form.actions(k)
            chosen = plan.get(key, actions[0])
            table[key] = [(action, float(action == chosen)) for action in actions]
    return pyspiel.TabularPolicy(table)


@pytest.mark.parametrize("name", SMALL)
def test_equilibrium(name):
    game = SMALL[name]
    found = efce.efce_lp(game, vertex=True)
    assert found.exploitability < 1e-9
    assert found.welfare == pytest.approx(sum(found.utilities))
    device = taken_apart(found.plan)
    assert sum(weight for weight, _ in device) == pytest.approx(1.0, abs=1e-12)
    deltas = brute_force_deltas(game, device)
    assert max(deltas.values()) < 1e-8
    mixed = [(weight, as_policy(found.plan.game, plans)) for weight, plans in device]
    assert pyspiel.cce_dist(game, mixed).dist_value < 1e-8


def test_xi_is_what_pure_strategies_span():
    game = battleship(1, 2, 2)
    pairs = pairs_of(game)
    trees = [OwnTree(game, player) for player in (0, 1)]
    points = [
        pure_plan(pairs, plans) for plans in itertools.product(*(tree.plans(tree.first) for tree in trees))
    ]
    assert all(plan_error(pairs, point) <= 1e-12 for point in points)
    rows = [flow_constraints(pairs, i)[0].toarray() for i in (0, 1)]
    dimension = len(pairs) - np.linalg.matrix_rank(np.vstack([*rows, np.eye(len(pairs))[:1]]))
    assert np.linalg.matrix_rank(np.array(points)[1:] - points[0]) == dimension


def test_a_plan_is_the_mean_of_pure_strategies():
    pairs = pairs_of(battleship(1, 2, 2))
    plan = random_plan(pairs, 3)
    exact = sum(weight * pure_plan(pairs, plans) for weight, plans in taken_apart(plan))
    np.testing.assert_allclose(exact, plan.xi, atol=1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_scaled_extensions_write_every_plan(name):
    pairs = pairs_of(SMALL[name])
    steps = all_steps(pairs)
    written = np.concatenate(
        [
            [steps.other[n]]
            if steps.is_sum[n]
            else steps.start[n] + steps.stride[n] * np.arange(steps.size[n])
            for n in range(len(steps.start))
        ]
    )
    np.testing.assert_array_equal(np.sort(written), np.arange(1, len(pairs)))
    plan = efce.CorrelationPlan.of(pairs.game, blueprint(2))
    xi = np.array(plan.xi)
    write_again(steps, xi)
    np.testing.assert_allclose(xi, plan.xi, atol=1e-14)


def test_plan_error_is_that_of_the_sparse_constraints(cases):
    rng = np.random.default_rng(0)
    for seed in range(cases(20)):
        pairs = pairs_of(random_game(seed, 5))
        for noise in (0.0, 1e-3, 1.0):
            xi = efce.CorrelationPlan.of(pairs.game, blueprint(seed)).xi + noise * rng.normal(size=len(pairs))
            rows = [flow_constraints(pairs, player)[0] for player in (0, 1)]
            worst = [abs(xi[0] - 1.0), -xi.min(), *(abs(r @ xi).max() for r in rows if r.shape[0])]
            assert plan_error(pairs, xi) == pytest.approx(max(worst), abs=1e-15)


def test_plans_are_read_and_not_written():
    plan = efce.CorrelationPlan.of(held(battleship(1, 3, 2)), blueprint(1))
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
    game = battleship(1, 3, 2)
    pairs = pairs_of(game)

    def plan_of(policies):
        return efce.CorrelationPlan.of(pairs.game, efce.policy_blueprint(policies))

    tabular = openspiel_policy.TabularPolicy(game)
    rows = {key: actions for player in (0, 1) for key, actions in OwnTree(game, player).actions.items()}
    table = pyspiel.TabularPolicy(
        {key: [(a, 1 / len(actions)) for a in actions] for key, actions in rows.items()}
    )
    uniform = efce.CorrelationPlan.of(pairs.game, blueprint(None))
    for policies in (tabular, table, (tabular, table)):
        np.testing.assert_allclose(plan_of(policies).xi, uniform.xi, atol=1e-12)
    first = pyspiel.TabularPolicy(
        {key: [(a, float(a == actions[0])) for a in actions] for key, actions in rows.items()}
    )
    assert set(np.unique(plan_of(first).xi)) == {0.0, 1.0}
    # Tabular rows are over all of the game's actions.
    form = pairs.game.players[0]
    tabular.policy_for_key(form.keys[1])[:] = [0.0] * game.num_distinct_actions()
    tabular.policy_for_key(form.keys[1])[int(form.action[1])] = 1.0
    assert plan_of(tabular).xi[pairs.index(np.array([1]), np.array([0]))][0] == 1.0


def test_plans_are_blueprints_of_the_parts_they_hold():
    """Whatever the numbers of information sets: a walk with subgames puts the trunk first."""
    game = battleship(1, 3, 2)
    public = efce.public_moves(game, 1)
    plan = efce.efce_lp(game).plan
    walked = efce.SequenceGame.of(game, public=public)
    levels = [
        efce.Resolving.of_subgames(efce.decompose(plan.game, public), plan),
        efce.Resolving.of_subgames(walked, plan),
        efce.Resolving.of(game, plan, public),
    ]
    assert walked.players[1].keys != plan.game.players[1].keys
    for level in levels:
        parts = {name: level.problem(name).blueprint for name in walked.labels}
        welfare = {name: part.welfare(0) for name, part in parts.items()}
        assert max(plan_error(part.pairs, part.xi) for part in parts.values()) < 1e-12
        assert welfare == pytest.approx(
            {name: levels[0].problem(name).blueprint.welfare(0) for name in parts}
        )
        assert sum(welfare.values()) + level.trunk.welfare() == pytest.approx(plan.welfare())


def test_jitter_is_the_same_whatever_part_of_the_game_is_held():
    whole = held(battleship(1, 3, 2), 1)
    plans = blueprint(5).realization_plans(whole)
    small, old = whole.restrict(4)
    for a, b, k in zip(plans, blueprint(5).realization_plans(small), old, strict=True):
        np.testing.assert_array_equal(a[k], b)
    assert not np.allclose(plans[0], blueprint(6).realization_plans(whole)[0])
    still, uniform = (each.realization_plans(whole) for each in (blueprint(7, 0.0), blueprint(None)))
    np.testing.assert_array_equal(still[0], uniform[0])


# -- the mediator ----------------------------------------------------------------------------------------


def test_mediator_leads_to_leaves_as_often_as_the_plan_says():
    game = battleship(1, 2, 2)
    plan = random_plan(pairs_of(game), 4)
    mediator = efce.Mediator(plan.game, plan, seed=0)
    leaf = {}

    def walk(state, weight, told):
        if state.is_terminal():
            leaf[tuple(state.history())] = weight
            return
        player, key = state.current_player(), state.information_state_string()
        mediator._recommended = told  # each recommendation is followed
        for action, p in mediator.probabilities(state).items():
            if p > 0:
                after = list(told)
                after[player] = (key, state.legal_actions().index(action))
                walk(state.child(action), weight * p, after)

    walk(game.new_initial_state(), 1.0, [None, None])
    expected = sorted(x for x in plan.xi[plan.pairs.leaves()] if x > 1e-15)
    np.testing.assert_allclose(sorted(leaf.values()), expected, atol=1e-12)


def test_a_player_who_deviates_is_told_no_more():
    game = battleship(1, 3, 2)
    mediator = efce.Mediator(held(game), blueprint(None), seed=1)
    state = game.new_initial_state()
    told = mediator.recommend(state)
    action = next(a for a in state.legal_actions() if a != told)
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


# -- what is refused -------------------------------------------------------------------------------------


def test_what_is_no_decomposition():
    game = battleship(1, 3, 2)
    whole = held(game)

    def placement(state):  # the first player's is secret
        return state.history()[0] if state.history() else None

    public = efce.public_moves(game, 1)
    for refused, words in (
        (lambda: efce.decompose(whole, placement), "valid decomposition"),
        (lambda: efce.SequenceGame.of(game, public=placement), "share no information set"),
        (lambda: efce.Resolving.of(game, blueprint(None), placement), "share an information set"),
        (lambda: efce.finest_subgames(whole, 6), "moves below"),  # all games end there, or before
        (lambda: efce.SequenceGame.of(game, only=(0, 1)), "public"),
        (lambda: efce.efce_lp(efce.SequenceGame.of(game, public=public, trunk=True)), "held whole"),
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
        efce.CorrelationPlan.of(held(battleship(1, 3, 2)), ProductBlueprint(behavior, "mine"))


def test_programs_without_a_solution():
    game = battleship(1, 3, 2)
    with pytest.raises(LinearProgramError, match="Infeasible") as caught:
        efce.efce_lp(game, floors=(10.0, 10.0))
    assert "nfeasible" in caught.value.status
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with (
        config(max_memory="1MB"),
        pytest.raises(ValueError, match=r"efce_lp\(\).*1,149 relevant pairs.*3\.45 MB.*raise max_memory"),
    ):
        efce.efce_lp(game)
    with pytest.raises(ValueError, match="max_nodes"):
        efce.SequenceGame.of(game, max_nodes=100)


def test_the_time_limit_includes_building():
    whole = held(battleship(1, 5, 3))
    start = time.process_time()
    with pytest.raises(LinearProgramError, match=r"efce_lp\(\).*Time limit"):
        efce.efce_lp(whole, time_limit=0.3)
    assert time.process_time() - start < 3.0


@pytest.mark.test_all
def test_the_greatest_game_of_the_paper_will_not_fit():
    with (
        config(max_memory="8GB"),
        pytest.raises(ValueError, match=r"3,893,340 relevant pairs, which takes some 11\.7 GB"),
    ):
        efce.efce_lp(battleship(2, 3, 3), time_limit=60.0)
