"""Rows asked of policies, the kinds of policy, bots and networks among them, and playing by the book."""

import math
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import mcts
from open_spiel.python.bots.policy import PolicyBot
from open_spiel.python.bots.uniform_random import UniformRandomBot

from precomp_games import HistoryTree, NetworkPolicy
from precomp_games.algorithms import best_precomputation, best_response, nash_conv
from precomp_games.policies.rows import as_batch_policy, movers_rows, policy_rows
from precomp_games.tree.meta_strategy import PrecomputationPolicy
from tests.oracles import books
from tests.oracles.games import expand, kuhn_poker, random_policy, random_tree, uniform
from tests.oracles.preparation import preparations
from tests.oracles.zero_sum import constant_sum
from tests.properties import examples

_LEDUC, _NIM = pyspiel.load_game("leduc_poker"), pyspiel.load_game("nim(pile_sizes=1;2)")

# -- rows ---------------------------------------------------------------------------------------------


def _state(actions=(0, 1, 2), **more):
    """Return a state with as much as `policy_rows` needs."""
    return SimpleNamespace(legal_actions=lambda: list(actions), history_str=lambda: "h", **more)


def _ask(*rows, **arguments):
    return policy_rows(lambda states: list(rows), [_state()] * len(rows), **arguments)


def test_rows_are_in_order_without_zeros_and_sum_to_1():
    rows = _ask(
        {2: 0.25, 0: 0.75},
        {0: 0.0, 1: 1.0, 77: 0.0, -3: 0},  # zeros are left out, even for illegal actions
        {0: 0.5, 1: 0.5 + 5e-7},
        {np.int64(1): np.float32(0.5), np.int32(0): np.float64(0.5)},
    )
    assert (rows.start.dtype, rows.action.dtype, rows.probability.dtype) == (np.int64, np.int64, np.float64)
    assert rows.start.tolist() == [0, 2, 3, 5, 7] and rows.action.tolist() == [0, 2, 1, 0, 1, 0, 1]
    exact = [0.5 / (1 + 5e-7), (0.5 + 5e-7) / (1 + 5e-7)]
    assert rows.probability == pytest.approx([0.75, 0.25, 1, *exact, 0.5, 0.5], abs=1e-15)
    assert [column.tolist() for column in _ask()[:3]] == [[0], [], []]


_WEIGHTS = st.lists(st.integers(0, 4) | st.floats(0.0, 1.0), min_size=1, max_size=6)


@examples(300)
@given(
    rows=st.lists(_WEIGHTS.filter(lambda weights: sum(weights) > 1e-6), min_size=1, max_size=5),
    cut=st.sampled_from((0.0, 0.25, 0.5)) | st.floats(0.0, 0.6),
)
@example(rows=[[3, 1]], cut=0.25)  # what is at the cut stays
def test_rows_are_distributions_of_what_is_not_below_the_cut(rows, cut):
    answers = [{a: w / sum(row) for a, w in enumerate(row)} for row in rows]
    states = [_state(range(len(row))) for row in rows]
    found = policy_rows(lambda _: answers, states, min_probability=cut)
    for k, answer in enumerate(answers):
        part = slice(found.start[k], found.start[k + 1])
        actions, probabilities = found.action[part].tolist(), found.probability[part]
        kept = {a for a, p in answer.items() if p > 0.0 and p >= cut}
        if kept:
            assert actions == sorted(kept)
            total = sum(answer[a] for a in kept)
            assert probabilities == pytest.approx([answer[a] / total for a in actions], abs=1e-12)
        else:
            assert probabilities == [1.0] and answer[actions[0]] == max(answer.values())


_SHARE, _ROW = r"give probabilities in \[0, 1\] at history 'h', got ", r"give \{action: probability\} at hist"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({0: 0.5}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0.5"),
        ({}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0"),
        ({0: 1.5, 1: -0.5}, rf"sigma\[1\] to {_SHARE}1.5"),
        ({0: -1e-9, 1: 1.0 + 1e-9}, rf"{_SHARE}-1e-09 for action 0"),
        ({0: "0.5", 1: "0.5"}, rf"{_ROW}.*got 0: '0.5'"),
        ({0: 10**400}, rf"{_SHARE}1000"),
        ({0: np.complex128(1.0)}, rf"{_ROW}.*got 0: .*1\+0j"),
        ({0: 1.0, 1: math.nan}, rf"{_SHARE}nan for action 1"),
        ({3: 1.0}, r"sigma\[1\] to play legal actions at history 'h', got action 3, .* \[0, 1, 2\]"),
        (None, rf"sigma\[1\] to {_ROW}.*got None"),
    ],
)
def test_bad_rows(row, words):
    with pytest.raises(ValueError, match=r"^expected .*" + words):
        _ask({0: 1.0}, row, name="sigma[1]")


def test_a_batch_has_a_row_for_each_state():
    for answers, got in (
        ([], "0 rows"),
        ([{}] * 3, "3 rows"),
        (None, "None"),
        (iter([{}] * 2), "<list_iter"),
    ):
        with pytest.raises(ValueError, match=rf"^expected p to answer 2 states, got .*{got}"):
            policy_rows(lambda states, answers=answers: answers, [_state()] * 2, name="p")


def test_rows_of_chance():
    root = kuhn_poker().new_initial_state()
    rows = movers_rows([root, root.child(1)], (None, None), name="sigma", min_probability=0.0)
    assert rows.start.tolist() == [0, 3, 5] and rows.action.tolist() == [0, 1, 2, 0, 2]
    assert rows.probability == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)
    odd = _state((0, 1), current_player=lambda: -1, chance_outcomes=lambda: [(0, 0.5), (1, 0.4)])
    with pytest.raises(ValueError, match=r"the probabilities of chance to sum to 1 at history 'h', got 0.9"):
        movers_rows([odd], (None, None), name="sigma", min_probability=0.0)


# -- kinds of policy --------------------------------------------------------------------------------


class _Batch:
    def action_probabilities_batch(self, states):
        return [uniform(state) for state in states]

    def action_probabilities(self, state, player_id=None):
        raise AssertionError("the batch is preferred")

    __call__ = action_probabilities


def test_all_kinds_of_policy_say_the_same():
    game, trees = kuhn_poker(), []
    states = [game.new_initial_state().child(0).child(k) for k in (1, 2)]
    for policy in (
        openspiel_policy.UniformRandomPolicy(game),
        openspiel_policy.TabularPolicy(game),
        pyspiel.UniformRandomPolicy(game),
        uniform,
        books.AsPolicy(game, uniform),
        _Batch(),
    ):
        assert list(map(dict, as_batch_policy(policy)(states))) == [{0: 0.5, 1: 0.5}] * 2
        trees.append(expand(game, policy, policy, 0.01))
    assert len({tree.fingerprint for tree in trees}) == 1


@pytest.mark.parametrize("name", ["sigma_pre", "sigma", "leaf_value"])
def test_a_users_own_error_passes_through(name):
    def fails(state):
        raise RuntimeError("engine gone")

    given = {"sigma_pre": uniform, "sigma": uniform, "penalties": 0.1} | {name: fails}
    with pytest.raises(RuntimeError, match="engine gone"):
        HistoryTree.from_game(random_tree(1), **given)


# -- bots ---------------------------------------------------------------------------------------------


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


def test_bots_that_tell_their_policy_are_it_and_draw_nothing():
    expected = nash_conv(_LEDUC, uniform)
    for make in (
        lambda player: UniformRandomBot(player, np.random),
        lambda player: pyspiel.make_uniform_random_bot(player, 5),
        lambda player: pyspiel.make_stateful_random_bot(_LEDUC, player, 5),
    ):
        assert nash_conv(_LEDUC, [make(0), make(1)]) == pytest.approx(expected, abs=1e-12)
    policy = books.AsPolicy(_LEDUC, random_policy(1, "partial", "infoset"))
    old, new = np.random.RandomState(7), np.random.default_rng(7)
    bots = [PolicyBot(0, old, policy), PolicyBot(1, new, policy)]
    assert nash_conv(_LEDUC, bots) == nash_conv(_LEDUC, policy)
    assert old.rand() == np.random.RandomState(7).rand()
    assert new.random() == np.random.default_rng(7).random()


@pytest.mark.parametrize("make", [_search, _FirstBot, _HistoryBot])
def test_searches_are_what_they_would_play(make):
    for moves in ([], [0]):
        bot, state = make(), _NIM.new_initial_state()
        for action in moves:
            state.apply_action(action)
        played = (_FirstBot() if make is _HistoryBot else make()).step(state.clone())
        assert _row(bot, state) == _row(bot, state) == {played: 1.0}  # asking changes nothing
        assert state.history() == moves


def test_bots_that_cannot_be_copied():
    evaluator = pyspiel.RandomRolloutEvaluator(2, 3)
    exact = pyspiel.MCTSBot(_NIM, evaluator, 2.0, 1000, 10, True, 3, False)  # proves what it can in so few
    assert nash_conv(_NIM, exact) == 0.0
    assert best_response(_NIM, exact, 0).value == best_response(_NIM, _search(), 0).value


def test_a_bot_where_only_action_0_is_legal_plays_it():
    """OpenSpiel's PolicyBot has no action there."""
    game = constant_sum()
    state = game.new_initial_state().child(0)
    assert state.legal_actions() == [0]
    assert _row(PolicyBot(0, np.random, books.AsPolicy(game, uniform)), state) == {0: 1.0}


_OF_0 = PolicyBot(0, np.random, openspiel_policy.UniformRandomPolicy(kuhn_poker()))
_KINDS = r"OpenSpiel Policy or Bot, a NetworkPolicy\(network\), an object with act"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (_OF_0, r"nash_conv\(\): expected a bot of player 1, who moves .*; give a pair of bots"),
        (_FirstBot(7), "expected policy to play legal actions at history '0, 1', got action 7"),
        *((kind, _KINDS) for kind in (PolicyBot, openspiel_policy.UniformRandomPolicy, "uniform", {"0": {}})),
    ],
)
def test_what_is_no_policy_is_refused(policy, words):
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
_WEIGHTS_OF = np.random.default_rng(0).normal(size=_SHAPE)


def _answers(tensors, masks, masked):
    assert tensors.dtype == np.float32 and masks.dtype == bool
    assert tensors.shape == (len(masks), _SHAPE[0]) and masks.shape == (len(tensors), _SHAPE[1])
    scores = np.exp(tensors @ _WEIGHTS_OF) * (masks if masked else 1.0)
    return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("masked", "library"), [(True, _Tensor), (False, np.asarray)])
def test_networks(masked, library):
    def plain(state):
        tensor = np.array([state.information_state_tensor()], np.float32)
        row = _answers(tensor, np.array([state.legal_actions_mask()], bool), masked)[0].astype(float)
        total = sum(row[a] for a in state.legal_actions())
        return {a: row[a] / total for a in state.legal_actions()}

    def one(state):
        return library(np.array([plain(state).get(a, 0.0) for a in range(3)]))

    tree, expected = HistoryTree.of_game(_LEDUC), nash_conv(_LEDUC, plain)
    policy = NetworkPolicy(lambda tensors, masks: library(_answers(tensors, masks, masked)))
    assert nash_conv(tree, policy) == pytest.approx(expected, abs=1e-5)  # in float32, and in other batches
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


def test_a_network_is_for_games_with_tensors():
    words = "expected a game with tensors for a network, got python_test_random_tree"
    with pytest.raises(ValueError, match=words):
        nash_conv(random_tree(1), NetworkPolicy(lambda tensors, masks: masks / 2))


# -- playing by the book ------------------------------------------------------------------------------


@examples(60)
@given(preparations(menu=False), st.sampled_from((1e-9, 0.02)))
def test_on_and_off_the_book(prepared, penalty):
    player, game = prepared.player, prepared.game
    best = best_precomputation(prepared.tree(penalty), player)
    policy = best.policy()
    assert isinstance(policy, PrecomputationPolicy) and policy.player == player
    book = {books.information_state(game, best.tree.state(s.history), player) for s in best.states()}
    for state in [state for state in books.states(game) if state.current_player() >= 0]:
        mover = state.current_player()
        memorized = mover == player and books.information_state(game, state, player) in book
        row = (prepared.pre if memorized else prepared.sigma)[mover](state)
        expected = dict.fromkeys(state.legal_actions(), 0.0) | row
        assert policy.action_probabilities(state) == pytest.approx(expected)


def test_off_the_book_without_sigma():
    theirs = pyspiel.load_game("tic_tac_toe").new_initial_state()
    mine = theirs.child(0)
    policy = PrecomputationPolicy(theirs.get_game(), 1, lambda state: None, (None, uniform))
    assert policy.action_probabilities(mine) == uniform(mine)
    words = r"expected a state on the book of player 1, got .*give policy\(sigma=...\) what player 0 computes"
    with pytest.raises(ValueError, match=r"^PrecomputationPolicy.action_probabilities\(\): " + words):
        policy.action_probabilities(theirs)
