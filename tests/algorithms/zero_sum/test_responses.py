"""Best responses and NashConv beside OpenSpiel's, for all kinds of policies and sums; tables and files."""

import dataclasses
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr, exploitability

from precomp_games import HistoryTree, MetaPrecomputationGame, RolloutValues, to_efg
from precomp_games._support.files import read_archive, write_archive
from precomp_games.algorithms import (
    best_precomputation,
    best_response,
    load_policy,
    meta_equilibrium,
    meta_exploitability,
    nash_conv,
    save_policy,
    solve,
)
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    SUPPORTS,
    expand,
    games,
    named_by,
    policy_pairs,
    random_efg,
    random_policy,
    sides,
    uniform,
)
from tests.oracles.zero_sum import SMALL, MatrixGame, best_response_value, constant_sum, game_of
from tests.properties import examples


@examples(400)
@given(games() | games("imperfect", general=True), SEEDS, st.sampled_from(SUPPORTS))
def test_responses_and_nash_conv_are_openspiels(game, seed, support):
    """Of general sum as well."""
    ask, start = random_policy(seed, support, named_by(game)), game.new_initial_state()
    policy, tree, near = books.AsPolicy(game, ask), HistoryTree.of_game(game), {"abs": 1e-11}
    best = [best_response_value(game, policy, player) for player in (0, 1)]
    gains = [best[i] - books.play_value(start, (ask, ask), i) for i in (0, 1)]
    assert nash_conv(tree, ask) == pytest.approx(sum(gains), **near)
    for player in (0, 1):
        found = best_response(tree, ask, player)
        assert found.value == pytest.approx(best[player], **near)
        answer = found.policy().action_probabilities
        assert books.play_value(start, (answer, answer), player) == pytest.approx(best[player], **near)


def test_every_kind_of_policy_is_asked_once():
    game, asked = pyspiel.load_game("leduc_poker"), []
    solver, own = pyspiel.CFRSolver(game), cfr.CFRSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    average, tabular = solver.average_policy(), solver.tabular_average_policy()
    expected, tree = pyspiel.nash_conv(game, tabular), HistoryTree.of_game(game)

    def ask(states):
        asked.append(len(states))
        return [average.action_probabilities(state) for state in states]

    batches = SimpleNamespace(action_probabilities_batch=ask)  # as a network answers
    for policy in (average, tabular, batches, average.action_probabilities, (average, tabular)):
        assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-12)
    assert len(asked) == 2 and sum(asked) == tree.num_infosets
    own.evaluate_and_update_policy()
    python = own.average_policy()
    theirs = openspiel_policy.python_policy_to_pyspiel_policy(python)
    assert nash_conv(tree, theirs) == pytest.approx(nash_conv(tree, python))
    best = best_response(tree, (batches, tabular), 0).value
    assert best == pytest.approx(best_response_value(game, tabular, 0)) and len(asked) == 2  # not asked
    assert nash_conv("leduc_poker", tabular) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_tables_and_their_files(name, tmp_path):
    game = game_of(name)
    table = solve(game).policy()
    theirs = openspiel_policy.TabularPolicy(game)
    assert table.state_lookup.keys() == theirs.state_lookup.keys()
    rows = [table.state_lookup[key] for key in theirs.state_lookup]
    np.testing.assert_array_equal(table.legal_actions_mask[rows], theirs.legal_actions_mask)
    save_policy(table, tmp_path / "policy.npz")
    for loaded in (load_policy(tmp_path / "policy.npz"), pickle.loads(pickle.dumps(table))):
        assert loaded.states_per_player == table.states_per_player
        np.testing.assert_array_equal(loaded.action_probability_array, table.action_probability_array)
        assert exploitability.nash_conv(game, loaded) == exploitability.nash_conv(game, table)
    save_policy(theirs, tmp_path / "uniform.npz")
    assert nash_conv(game, load_policy(tmp_path / "uniform.npz", game)) == nash_conv(game, theirs)


def test_where_chance_never_goes_all_actions_are_alike(tmp_path):
    game = constant_sum()
    table = solve(game).policy()
    never = game.new_initial_state().child(2)
    assert table.action_probabilities(never) == {0: 1.0}
    save_policy(table, tmp_path / "policy.npz")
    with pytest.raises(ValueError, match="expected a game"):
        load_policy(tmp_path / "policy.npz")
    assert nash_conv(game, load_policy(tmp_path / "policy.npz", game)) <= 1e-12


def test_players_whose_information_states_have_one_name_are_kept_apart(tmp_path):
    """OpenSpiel's own tables would give both the row of one."""
    game = MatrixGame([[(1, -1), (-1, 1)], [(-1, 1), (1, -1)]], name="nothing")
    found = solve(game)
    assert found.value == pytest.approx(0.0, abs=1e-12) and found.tree.num_infosets == 2
    plays = {0: {0: 1.0, 1: 0.0}, 1: {0: 0.0, 1: 1.0}}
    table = best_response(game, (lambda _: plays[0], lambda _: plays[1]), 1).policy()
    start = game.new_initial_state()
    assert table.action_probabilities(start) == plays[0]
    assert table.action_probabilities(start.child(0)) == plays[1]
    assert nash_conv(game, table) == pytest.approx(2.0)
    save_policy(table, tmp_path / "policy.npz")
    loaded = load_policy(tmp_path / "policy.npz", game)
    assert loaded.action_probabilities(start.child(0)) == plays[1]
    assert loaded.states_per_player == [["player 0: nothing"], ["player 1: nothing"]]


_TABLE = openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))


def _changed(*rows):
    """Return a table with other rows at its fourth information state."""
    table = _TABLE.__copy__()
    table.action_probability_array[3] = rows
    return table


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda state: {0: 0.7}, r"nash_conv\(\): expected the probabilities of policy to sum to 1"),
        (openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker")), "to know information state"),
        (pyspiel.TabularPolicy({"0": [(0, 1.0)]}), "to know information state"),
        (_changed(0.7, 0.7), "a distribution over legal actions"),
        (_changed(1.5, -0.5), r"at '1pb', got \[1\.5, -0\.5\]"),
    ],
)
def test_wrong_policies(policy, words):
    with pytest.raises(ValueError, match=words):
        nash_conv("kuhn_poker", policy)


def test_wrong_files_of_policies(tmp_path):
    path, game = tmp_path / "policy.npz", pyspiel.load_game("kuhn_poker")
    with pytest.raises(ValueError, match="expected policy"):
        save_policy(lambda state: {}, path)
    save_policy(solve(game).policy(), path)
    with pytest.raises(ValueError, match="expected a policy of leduc_poker"):
        load_policy(path, pyspiel.load_game("leduc_poker"))
    data = path.read_bytes()
    head, arrays = read_archive(path, ("start", "action", "probability"))
    wraps = np.array([0, 2**63 - 1, -2, *range(5, 24, 2), 24])[: len(arrays["start"])]
    for heads, changed, words in (
        ({}, {"start": wraps}, r"a file written by save_policy|expected actions below"),
        ({}, {"start": arrays["start"][::-1].copy()}, "a file written by save_policy"),
        ({}, {"action": arrays["action"] + 10**6}, r"a file written by save_policy|expected actions below"),
        ({}, {"probability": arrays["probability"] * np.nan}, "a file written by save_policy"),
        ({"format": "another"}, {}, "a file written by save_policy"),
        ({"game": "leduc_poker(players=3)"}, {}, "expected game, since that of the file does not serve"),
    ):
        kinds = {name: value.astype(arrays[name].dtype) for name, value in changed.items()}
        write_archive(path, dict(head) | heads, arrays | kinds)
        with pytest.raises(ValueError, match=words):
            load_policy(path)
    HistoryTree.of_game(game).save(path)
    for cut in (path.read_bytes(), *(data[:n] for n in (0, 10, len(data) // 2, len(data) - 1))):
        path.write_bytes(cut)
        with pytest.raises(ValueError, match=r"expected a file written by save_policy\(\)"):
            load_policy(path)


# -- games of general sum --------------------------------------------------------------------------


@examples(160)
@given(games("imperfect", general=True) | games("imperfect", general=True, lottery=True), SEEDS)
def test_gambits_format_and_files_keep_games_of_general_sum(tmp_path_factory, game, seed):
    tree, ask = HistoryTree.of_game(game), random_policy(seed, "full", "infoset")
    again = HistoryTree.of_game(pyspiel.load_efg_game(to_efg(tree)))
    for name in ("parent", "player", "infoset", "value", "value_1"):
        np.testing.assert_array_equal(getattr(again, name), getattr(tree, name))
    np.testing.assert_allclose(again.sigma, tree.sigma, rtol=1e-15)  # what is written sums to 1 exactly
    path = tmp_path_factory.mktemp("trees") / "tree.npz"
    tree.save(path)
    loaded = HistoryTree.load(path)
    assert loaded.fingerprint == tree.fingerprint
    assert nash_conv(loaded.with_game(game), ask) == nash_conv(tree, ask)


def _general(seed):
    return random_efg(seed, depth=3 + seed % 3, actions=2 + seed % 2, lottery=seed % 5 == 4, general=True)


@pytest.mark.parametrize("seed", range(8))
def test_gambit_reads_them(seed, tmp_path):
    gambit = pytest.importorskip("pygambit")
    (tmp_path / "game.efg").write_text(to_efg(_general(seed)))
    game = gambit.read_efg(str(tmp_path / "game.efg"))
    assert game.is_perfect_recall and not game.is_const_sum


@pytest.mark.parametrize("player", [0, 1])
def test_other_leaf_values_are_the_own_utility_as_well(player):
    game, (pre, sigma) = _general(6), policy_pairs(6, "partial", "infoset")
    start, most = game.new_initial_state(), game.max_utility()
    penalties = sides(player, 100.0, math.inf)
    expected = books.play_value(start, sigma, player)
    for leaf_value, slack in (("exact", 1e-12), (RolloutValues(games=20_000), 0.1), (lambda s: most, 0.0)):
        tree = expand(game, pre, sigma, penalties, leaf_value=leaf_value)
        wanted = expected if slack else most
        assert best_precomputation(tree, player).value == pytest.approx(wanted, abs=slack)


@pytest.mark.parametrize(
    "call",
    [
        lambda alone, _: solve(alone.game),
        lambda alone, _: solve(alone),
        lambda alone, _: meta_equilibrium(alone),
        lambda _, prepared: meta_equilibrium(prepared),
        lambda _, prepared: meta_exploitability(prepared, ()),
        lambda _, prepared: MetaPrecomputationGame(prepared),
        lambda _, prepared: to_efg(prepared),
    ],
)
def test_what_needs_a_constant_sum_says_what_does_not(call):
    game, (pre, sigma) = _general(2), policy_pairs(2, "full", "infoset")
    words = "a zero-sum or constant-sum game, got .*; those of any sum are for best_response"
    with pytest.raises(ValueError, match=words):
        call(HistoryTree.of_game(game), expand(game, pre, sigma, (0.1, math.inf)))


def test_damaged_files_and_other_games():
    tree = HistoryTree.of_game(_general(1))
    for name, value in (("value_1", np.full_like(tree.value, np.nan)), ("value_of", 1), ("value_of", 2)):
        with pytest.raises(ValueError, match=name):
            dataclasses.replace(tree, **{name: value}).check()
    with pytest.raises(ValueError, match="is not the same there"):
        tree.with_game(random_efg(1, depth=4, actions=3))
    assert tree.with_game(_general(1)).same_as(tree)


@pytest.mark.parametrize(("name", "most"), [("matrix_pd", 10.0), ("tiny_hanabi", 10.0), ("matrix_bos", 3.0)])
def test_openspiels_own_games_of_general_sum(name, most):
    game = game_of(name)
    policy = books.AsPolicy(game, uniform)
    assert nash_conv(name, uniform) == pytest.approx(exploitability.nash_conv(game, policy), abs=1e-12)
    assert 0.0 < best_response(name, uniform, 1).value <= most
