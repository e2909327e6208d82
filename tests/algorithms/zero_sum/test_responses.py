"""Best responses and NashConv beside OpenSpiel's, for every kind of policy; tables and their files."""

import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import cfr, exploitability

from precomp_games import HistoryTree
from precomp_games.algorithms import best_response, load_policy, nash_conv, save_policy, solve
from tests.oracles.games import random_policy
from tests.oracles.zero_sum import (
    SMALL,
    MatrixGame,
    best_response_value,
    constant_sum,
    game_of,
    nash_conv_of,
    random_game,
    recursion,
)

_CASES = 80


class _Batches:
    """Answers batches, as a network does; counts how often it is asked and about what."""

    def __init__(self, ask) -> None:
        self.ask, self.batches, self.states = ask, 0, 0

    def action_probabilities_batch(self, states):
        self.batches += 1
        self.states += len(states)
        return [self.ask(state) for state in states]


class _AsPolicy(openspiel_policy.Policy):
    def __init__(self, game, ask) -> None:
        super().__init__(game, [0, 1])
        self._ask = ask

    def action_probabilities(self, state, player_id=None):
        return {a: self._ask(state).get(a, 0.0) for a in state.legal_actions()}


def test_random_policies(cases):
    for seed in range(cases(_CASES)):
        game = random_game(seed)
        named = game.get_type().provides_information_state_string
        ask = random_policy(seed, "partial", "infoset" if named else "history")
        policy, tree = _AsPolicy(game, ask), HistoryTree.of_game(game)
        spread = game.max_utility() - game.min_utility()
        assert nash_conv(tree, ask) == pytest.approx(nash_conv_of(game, policy), abs=1e-12 * spread)
        for player in (0, 1):
            found = best_response(tree, policy, player)
            theirs = best_response_value(game, policy, player)
            assert found.value == pytest.approx(theirs, abs=1e-12 * spread)
            value = recursion(game.new_initial_state(), found.policy(), ())
            own = value if player == 0 else (game.utility_sum() or 0.0) - value
            assert own == pytest.approx(found.value, abs=1e-12 * spread)


def test_every_kind_of_policy_is_asked_once():
    game = pyspiel.load_game("leduc_poker")
    solver = pyspiel.CFRSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    tabular = solver.tabular_average_policy()
    expected = pyspiel.nash_conv(game, tabular)
    tree, batches = HistoryTree.of_game(game), _Batches(average.action_probabilities)
    python = openspiel_policy.python_policy_to_pyspiel_policy
    own = cfr.CFRSolver(game)
    own.evaluate_and_update_policy()
    assert nash_conv(tree, python(own.average_policy())) == pytest.approx(
        nash_conv(tree, own.average_policy())
    )
    for policy in (average, tabular, batches, average.action_probabilities, (average, tabular)):
        assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-12)
    assert batches.batches == 2 and batches.states == tree.num_infosets
    own = _Batches(None)
    best = best_response(tree, (own, tabular), 0).value  # its own policy is not asked
    assert best == pytest.approx(best_response_value(game, tabular, 0)) and own.batches == 0
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


def test_players_whose_information_states_have_one_name_are_told_apart(tmp_path):
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


def test_wrong_policies_and_files(tmp_path):
    tree = HistoryTree.of_game(pyspiel.load_game("kuhn_poker"))
    with pytest.raises(ValueError, match=r"nash_conv\(\): expected the probabilities of policy to sum to 1"):
        nash_conv(tree, lambda state: {0: 0.7})
    with pytest.raises(ValueError, match="to know information state"):
        nash_conv(tree, openspiel_policy.TabularPolicy(pyspiel.load_game("leduc_poker")))
    with pytest.raises(ValueError, match="to know information state"):
        nash_conv(tree, pyspiel.TabularPolicy({"0": [(0, 1.0)]}))
    table = openspiel_policy.TabularPolicy(pyspiel.load_game("kuhn_poker"))
    table.action_probability_array[3] = [0.7, 0.7]
    with pytest.raises(ValueError, match="a distribution over legal actions"):
        nash_conv(tree, table)
    table.action_probability_array[3] = [1.5, -0.5]
    with pytest.raises(ValueError, match=r"at '1pb', got \[1\.5, -0\.5\]"):
        nash_conv(tree, table)
    with pytest.raises(ValueError, match="expected policy"):
        save_policy(lambda state: {}, tmp_path / "policy.npz")
    path = tmp_path / "policy.npz"
    save_policy(solve(tree).policy(), path)
    with pytest.raises(ValueError, match="expected a policy of leduc_poker"):
        load_policy(path, pyspiel.load_game("leduc_poker"))
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(ValueError, match=r"expected a file written by save_policy\(\)"):
            load_policy(path)
    tree.save(path)
    with pytest.raises(ValueError, match=r"expected a file written by save_policy\(\)"):
        load_policy(path)
