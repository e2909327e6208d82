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

_NIM = pyspiel.load_game("nim(pile_sizes=1;2)")
_LEDUC = pyspiel.load_game("leduc_poker")


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


def _search(seed=3):
    evaluator = mcts.RandomRolloutEvaluator(2, np.random.RandomState(seed))
    return mcts.MCTSBot(_NIM, 2.0, 20, evaluator, random_state=np.random.RandomState(seed))


def _row(policy, state):
    rows = policy_rows(as_batch_policy(policy), [state])
    return dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))


_RANDOM = {
    "OpenSpiel's": lambda player: UniformRandomBot(player, np.random),
    "in C++": lambda player: pyspiel.make_uniform_random_bot(player, 5),
    "with a state": lambda player: pyspiel.make_stateful_random_bot(_LEDUC, player, 5),
}


@pytest.mark.parametrize("kind", _RANDOM)
def test_bots_that_tell_their_policy_are_it(kind):
    expected = nash_conv(_LEDUC, uniform)
    assert nash_conv(_LEDUC, [_RANDOM[kind](player) for player in (0, 1)]) == pytest.approx(
        expected, abs=1e-12
    )


def test_bots_of_a_policy_are_it_and_draw_nothing():
    policy = AsPolicy(_LEDUC, random_policy(1, "partial", "infoset"))
    old, new = np.random.RandomState(7), np.random.default_rng(7)
    assert nash_conv(_LEDUC, [PolicyBot(0, old, policy), PolicyBot(1, new, policy)]) == nash_conv(
        _LEDUC, policy
    )
    assert old.rand() == np.random.RandomState(7).rand()
    assert new.random() == np.random.default_rng(7).random()


@pytest.mark.parametrize("make", [_search, _FirstBot, _HistoryBot])
@pytest.mark.parametrize("moves", [[], [0]])
def test_searches_are_what_they_would_play(make, moves):
    bot, state = make(), _NIM.new_initial_state()
    for action in moves:
        state.apply_action(action)
    other = _FirstBot() if make is _HistoryBot else make()
    assert _row(bot, state) == _row(bot, state) == {other.step(state.clone()): 1.0}  # asking changes nothing
    assert state.history() == moves


def test_bots_that_cannot_be_copied():
    evaluator = pyspiel.RandomRolloutEvaluator(2, 3)
    exact = pyspiel.MCTSBot(_NIM, evaluator, 2.0, 1000, 10, True, 3, False)  # proves what it can in so few
    assert nash_conv(_NIM, exact) == 0.0
    assert best_response(_NIM, exact, 0).value == best_response(_NIM, _search(), 0).value


def test_bots_prepare_and_are_prepared_against():
    table = as_batch_policy(_search())
    values = []
    for pre, rival in ((_search(), _FirstBot()), (lambda state: table([state])[0], first)):
        tree = HistoryTree.from_game(_NIM, sigma_pre=pre, sigma=(uniform, rival), penalties=(0.01, math.inf))
        values.append(best_precomputation(tree, 0).value)
    assert values[0] == values[1]


def test_where_only_action_0_is_legal():
    """OpenSpiel's PolicyBot has none there."""
    game = constant_sum()
    state = game.new_initial_state().child(0)
    assert state.legal_actions() == [0]
    assert _row(PolicyBot(0, np.random, AsPolicy(game, uniform)), state) == {0: 1.0}


_KINDS = r"OpenSpiel Policy or Bot, a NetworkPolicy\(network\), an object with act"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            PolicyBot(0, np.random, openspiel_policy.UniformRandomPolicy(pyspiel.load_game("kuhn_poker"))),
            r"nash_conv\(\): expected a bot of player 1, who moves .*; give a pair of bots",
        ),
        (_FirstBot(7), "expected policy to play legal actions at history '0, 1', got action 7"),
        *(
            (kind, _KINDS)
            for kind in (PolicyBot, openspiel_policy.UniformRandomPolicy, "uniform", {"0": {0: 1.0}})
        ),
    ],
)
def test_wrong_bots(policy, words):
    with pytest.raises(ValueError, match=words):
        nash_conv("kuhn_poker", policy)


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


_SHAPE = _LEDUC.information_state_tensor_size(), _LEDUC.num_distinct_actions()
_WEIGHTS = np.random.default_rng(0).normal(size=_SHAPE)


def _answers(tensors, masks, masked):
    assert tensors.dtype == np.float32 and masks.dtype == bool
    assert tensors.shape == (len(masks), _SHAPE[0]) and masks.shape == (len(tensors), _SHAPE[1])
    scores = np.exp(tensors @ _WEIGHTS) * (masks if masked else 1.0)
    return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("masked", "library"), [(True, _Tensor), (False, np.asarray)])
def test_networks(masked, library):
    def plain(state):
        tensor = np.array([state.information_state_tensor()], np.float32)
        row = _answers(tensor, np.array([state.legal_actions_mask()], bool), masked)[0].astype(float)
        total = sum(row[a] for a in state.legal_actions())
        return {a: row[a] / total for a in state.legal_actions()}

    tree, expected = HistoryTree.of_game(_LEDUC), nash_conv(_LEDUC, plain)
    policy = NetworkPolicy(lambda tensors, masks: library(_answers(tensors, masks, masked)))
    assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-5)  # in float32, and in other batches
    one = lambda state: library(np.array([plain(state).get(a, 0.0) for a in range(3)]))  # noqa: E731
    assert nash_conv(tree, one) == pytest.approx(expected, abs=1e-12)


_ONE_EACH = "or 2 probabilities, one for each action"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda masks: masks * 3.0, "{action: probability}, " + _ONE_EACH),
        (lambda masks: np.full((len(masks), 3), 1 / 3), _ONE_EACH),
        (lambda masks: np.full((len(masks), 2), np.nan), _ONE_EACH),
        (lambda masks: masks * [[1.5, -0.5]], r"probabilities in \[0, 1\] at history"),
        (lambda masks: masks[0] / 2, "to answer 6 states, got 2 rows"),
        (lambda masks: np.array("x"), "to answer 6 states"),
        (lambda masks: [[0.5, 0.5]] * len(masks), r"to give {action: probability} at history .*, got \[0.5"),
        (lambda masks: None, "to answer 6 states, got None"),
    ],
)
def test_wrong_networks(answer, words):
    with pytest.raises(ValueError, match=words):
        nash_conv("kuhn_poker", NetworkPolicy(lambda tensors, masks: answer(masks)))


def test_games_without_tensors():
    words = "expected a game with tensors for a network, got python_test_random_tree"
    with pytest.raises(ValueError, match=words):
        nash_conv(random_tree(1), NetworkPolicy(lambda tensors, masks: masks / 2))
