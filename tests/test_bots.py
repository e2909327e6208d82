"""Bots and networks as policies: what they play, that asking changes nothing, and what is refused."""

import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import mcts
from open_spiel.python.bots.policy import PolicyBot
from open_spiel.python.bots.uniform_random import UniformRandomBot

from precomp_games import HistoryTree, NetworkPolicy
from precomp_games.algorithms import best_precomputation, best_response, nash_conv
from precomp_games.policies.rows import as_batch_policy, policy_rows
from tests.oracles.books import AsPolicy
from tests.oracles.games import first, random_policy, random_tree, uniform
from tests.oracles.zero_sum import constant_sum

_NIM = "nim(pile_sizes=1;2)"


class _FirstBot(pyspiel.Bot):
    """The least that a bot in Python has."""

    def __init__(self, action=None) -> None:
        super().__init__()
        self.action = action

    def step(self, state):
        action = state.legal_actions()[0] if self.action is None else self.action
        state.apply_action(action)  # as bots should not
        return action


class _HistoryBot(_FirstBot):
    """A bot that keeps the moves it was given: it must be restarted for a question."""

    def restart_at(self, state):
        self.at = state.history()

    def step(self, state):
        assert self.at == state.history()
        return super().step(state)


def _search(game, seed=3):
    evaluator = mcts.RandomRolloutEvaluator(2, np.random.RandomState(seed))
    return mcts.MCTSBot(game, 2.0, 20, evaluator, random_state=np.random.RandomState(seed))


def _row(policy, state):
    rows = policy_rows(as_batch_policy(policy), [state])
    return dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))


def test_bots_that_tell_their_policy_are_it():
    game, ask = pyspiel.load_game("leduc_poker"), random_policy(1, "partial", "infoset")
    policy, tree = AsPolicy(game, ask), HistoryTree.of_game(game)
    old, new = np.random.RandomState(7), np.random.default_rng(7)
    bots = [PolicyBot(0, old, policy), PolicyBot(1, new, policy)]
    assert nash_conv(tree, bots) == nash_conv(tree, policy)
    assert old.rand() == np.random.RandomState(7).rand()
    assert new.random() == np.random.default_rng(7).random()
    same = pytest.approx(nash_conv(tree, uniform), abs=1e-12)
    assert nash_conv(tree, [UniformRandomBot(i, np.random) for i in (0, 1)]) == same
    assert nash_conv(tree, [pyspiel.make_uniform_random_bot(i, 5) for i in (0, 1)]) == same
    assert nash_conv(tree, [pyspiel.make_stateful_random_bot(game, i, 5) for i in (0, 1)]) == same


def test_searches_are_what_they_would_play():
    game = pyspiel.load_game(_NIM)
    for bot, other in (
        (_search(game), _search(game)),
        (_FirstBot(), _FirstBot()),
        (_HistoryBot(), _FirstBot()),
    ):
        for state in (game.new_initial_state(), game.new_initial_state().child(0)):
            before = state.history()
            found = _row(bot, state)
            assert found == _row(bot, state) == {other.step(state.clone()): 1.0}  # asking changes nothing
            assert state.history() == before
            other = _search(game) if isinstance(bot, mcts.MCTSBot) else other
    evaluator = pyspiel.RandomRolloutEvaluator(2, 3)
    exact = pyspiel.MCTSBot(game, evaluator, 2.0, 1000, 10, True, 3, False)  # proves what it can in so few
    assert nash_conv(game, exact) == 0.0
    assert best_response(game, exact, 0).value == best_response(game, _search(game), 0).value


def test_bots_prepare_and_are_prepared_against():
    game = pyspiel.load_game(_NIM)
    how = {"sigma": (uniform, _FirstBot()), "penalties": (0.01, math.inf)}
    found = best_precomputation(HistoryTree.from_game(game, sigma_pre=_search(game), **how), 0)
    plain = {"sigma": (uniform, first), "penalties": (0.01, math.inf)}
    table = as_batch_policy(_search(game))
    same = HistoryTree.from_game(game, sigma_pre=lambda state: table([state])[0], **plain)
    assert found.value == best_precomputation(same, 0).value


def test_where_only_action_0_is_legal():
    """OpenSpiel's PolicyBot has none there."""
    game = constant_sum()
    state = game.new_initial_state().child(0)
    assert state.legal_actions() == [0]
    assert _row(PolicyBot(0, np.random, AsPolicy(game, uniform)), state) == {0: 1.0}


def test_wrong_bots():
    game = pyspiel.load_game("kuhn_poker")
    bot = PolicyBot(0, np.random, openspiel_policy.UniformRandomPolicy(game))
    with pytest.raises(
        ValueError, match=r"nash_conv\(\): expected a bot of player 1, who moves .*; give a pair of bots"
    ):
        nash_conv(game, bot)
    with pytest.raises(
        ValueError, match="expected policy to play legal actions at history '0, 1', got action 7"
    ):
        nash_conv(game, _FirstBot(7))
    for kind in (PolicyBot, openspiel_policy.UniformRandomPolicy, "uniform", {"0": {0: 1.0}}):
        with pytest.raises(
            ValueError, match=r"OpenSpiel Policy or Bot, a NetworkPolicy\(network\), an object with act"
        ):
            nash_conv(game, kind)


# -- networks -----------------------------------------------------------------------------------------


class _Tensor:
    """Of a library that learns: nothing is had of it before it is detached."""

    def __init__(self, values, learning=True) -> None:
        self.values, self.learning = values, learning

    def detach(self):
        return _Tensor(self.values, learning=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        assert not self.learning
        return self.values


def _network(game, masked):
    weights = np.random.default_rng(0).normal(
        size=(game.information_state_tensor_size(), game.num_distinct_actions())
    )

    def network(tensors, masks):
        assert tensors.dtype == np.float32 and masks.dtype == bool
        assert tensors.shape == (len(masks), weights.shape[0]) and masks.shape == (
            len(tensors),
            weights.shape[1],
        )
        scores = np.exp(tensors @ weights) * (masks if masked else 1.0)
        return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)

    return network


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("library", [np.asarray, _Tensor])
def test_networks(masked, library):
    game = pyspiel.load_game("leduc_poker")
    network = _network(game, masked)

    def plain(state):
        tensor = np.array([state.information_state_tensor()], np.float32)
        row = network(tensor, np.array([state.legal_actions_mask()], bool))[0].astype(float)
        total = sum(row[a] for a in state.legal_actions())
        return {a: row[a] / total for a in state.legal_actions()}

    tree, expected = HistoryTree.of_game(game), nash_conv(game, plain)
    policy = NetworkPolicy(lambda tensors, masks: library(network(tensors, masks)))
    assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-5)  # in float32, and in other batches
    one = lambda state: library(np.array([plain(state).get(a, 0.0) for a in range(3)]))  # noqa: E731
    assert nash_conv(tree, one) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            lambda tensors, masks: masks * 3.0,
            r"{action: probability}, or 2 probabilities, one for each action",
        ),
        (lambda tensors, masks: np.full((len(masks), 3), 1 / 3), "or 2 probabilities, one for each action"),
        (lambda tensors, masks: np.full((len(masks), 2), np.nan), "or 2 probabilities, one for each action"),
        (lambda tensors, masks: masks * [[1.5, -0.5]], r"probabilities in \[0, 1\] at history"),
        (lambda tensors, masks: masks[0] / 2, r"to answer 6 states, got 2 rows"),
        (lambda tensors, masks: np.array("x"), r"to answer 6 states"),
        (
            lambda tensors, masks: [[0.5, 0.5]] * len(masks),
            r"to give {action: probability} at history .*, got \[0.5",
        ),
        (lambda tensors, masks: None, r"to answer 6 states, got None"),
    ],
)
def test_wrong_networks(answer, words):
    with pytest.raises(ValueError, match=words):
        nash_conv("kuhn_poker", NetworkPolicy(answer))


def test_games_without_tensors_and_networks_that_are_none():
    with pytest.raises(
        ValueError, match="expected a game with tensors for a network, got python_test_random_tree"
    ):
        nash_conv(random_tree(1), NetworkPolicy(lambda tensors, masks: masks / 2))
    with pytest.raises(ValueError, match=r"NetworkPolicy\(\): expected network to be a function"):
        NetworkPolicy({"0": {0: 1.0}})
