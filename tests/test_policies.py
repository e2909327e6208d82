"""Rows asked of policies, the kinds of policy, and playing by the book."""

import math
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree, PrecomputationPolicy
from precomp_games.algorithms import best_precomputation
from precomp_games.policies import as_batch_policy, movers_rows, policy_rows
from tests.random_games import random_policy, random_tree


def _state(actions=(0, 1, 2)):
    """What `policy_rows` needs of a state."""
    return SimpleNamespace(legal_actions=lambda: list(actions), history_str=lambda: "h")


def _ask(*rows, **arguments):
    return policy_rows(lambda states: list(rows), [_state()] * len(rows), **arguments)


# -- rows ---------------------------------------------------------------------------------------------


def test_rows_are_compressed_in_order_of_actions():
    rows = _ask({2: 0.25, 0: 0.75}, {1: 1.0}, {2: 0.2, 1: 0.3, 0: 0.5})
    assert rows.start.tolist() == [0, 2, 3, 6]
    assert rows.action.tolist() == [0, 2, 1, 0, 1, 2]
    assert rows.probability.tolist() == [0.75, 0.25, 1.0, 0.5, 0.3, 0.2]
    assert (rows.start.dtype, rows.action.dtype, rows.probability.dtype) == (np.int64, np.int64, np.float64)


def test_no_states_no_rows():
    rows = policy_rows(lambda states: [], [])
    assert rows.start.tolist() == [0]
    assert len(rows.action) == len(rows.probability) == 0


def test_zeros_are_left_out_even_for_illegal_actions():
    rows = _ask({0: 0.0, 1: 1.0, 77: 0.0, -3: 0})
    assert rows.action.tolist() == [1]
    assert rows.probability.tolist() == [1.0]


def test_tiny_probabilities_are_cut_and_the_rest_renormalized():
    rows = _ask({0: 0.5, 1: 0.3, 2: 0.2}, {0: 0.9, 1: 0.1}, min_probability=0.25)
    assert rows.action.tolist() == [0, 1, 0]
    assert rows.probability.tolist() == pytest.approx([0.625, 0.375, 1.0])
    kept = _ask({0: 0.75, 1: 0.25}, min_probability=0.25)  # "below this": not at it
    assert kept.probability.tolist() == [0.75, 0.25]


def test_the_likeliest_action_is_left_when_all_are_below_the_cut():
    rows = _ask({0: 0.3, 1: 0.4, 2: 0.3}, min_probability=0.9)
    assert rows.action.tolist() == [1]
    assert rows.probability.tolist() == [1.0]


def test_sums_are_made_exact():
    rows = _ask({0: 0.5, 1: 0.5 + 5e-7})
    assert rows.probability.sum() == pytest.approx(1.0, abs=1e-15)
    assert rows.probability[1] > rows.probability[0]


def test_numpy_numbers_will_do():
    rows = _ask({np.int64(1): np.float32(0.5), np.int32(0): np.float64(0.5)})
    assert rows.action.tolist() == [0, 1]
    assert rows.probability.tolist() == [0.5, 0.5]


@settings(max_examples=80, deadline=None)
@given(
    weights=st.lists(
        st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-6),
        min_size=1,
        max_size=5,
    ),
    cut=st.floats(0.0, 0.6),
)
def test_rows_are_distributions(weights, cut):
    answers = [{a: w / sum(row) for a, w in enumerate(row)} for row in weights]
    states = [_state(range(len(row))) for row in weights]
    rows = policy_rows(lambda _: answers, states, min_probability=cut)
    for k, answer in enumerate(answers):
        part = slice(rows.start[k], rows.start[k + 1])
        actions, probabilities = rows.action[part].tolist(), rows.probability[part]
        assert actions == sorted(set(actions))
        assert len(actions) >= 1
        assert (probabilities > 0.0).all()
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        kept = {a for a, p in answer.items() if p > 0.0 and p >= cut}
        if kept:
            assert set(actions) == kept
            total = sum(answer[a] for a in kept)
            assert probabilities == pytest.approx([answer[a] / total for a in actions], abs=1e-12)
        else:
            assert answer[actions[0]] == max(answer.values())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({0: 0.5}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0.5"),
        ({}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0"),
        ({0: 0.6, 1: 0.6}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 1.2"),
        ({0: 0.5, 1: 0.5 + 1e-5}, r"sum to 1 at history 'h', got 1.00001"),
        ({0: 1.5, 1: -0.5}, r"sigma\[1\] to give probabilities in \[0, 1\] at history 'h', got 1.5"),
        ({0: -0.5, 1: 1.5}, r"probabilities in \[0, 1\] at history 'h', got -0.5 for action 0"),
        ({0: -1e-9, 1: 1.0 + 1e-9}, r"probabilities in \[0, 1\] at history 'h', got -1e-09 for action 0"),
        ({0: math.nan, 1: 1.0}, r"probabilities in \[0, 1\] at history 'h', got nan for action 0"),
        ({0: 1.0, 1: math.nan}, r"probabilities in \[0, 1\] at history 'h', got nan for action 1"),
        ({0: math.inf}, r"probabilities in \[0, 1\] at history 'h', got inf for action 0"),
        ({3: 1.0}, r"sigma\[1\] to play legal actions at history 'h', got action 3, .* \[0, 1, 2\]"),
        ({0: 0.5, 77: 0.5}, r"to play legal actions at history 'h', got action 77"),
        (None, r"sigma\[1\] to give \{action: probability\} at history 'h', got None"),
        ([0.5, 0.5], r"to give \{action: probability\} at history 'h', got \[0.5, 0.5\]"),
        ([(0, 1.0)], r"to give \{action: probability\} at history 'h'"),
        (0.5, r"to give \{action: probability\} at history 'h', got 0.5"),
    ],
)
def test_bad_rows(row, words):
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected .*" + words):
        _ask({0: 1.0}, row, name="sigma[1]")


@pytest.mark.parametrize(
    ("answers", "got"),
    [([], "0 rows"), ([{0: 1.0}] * 3, "3 rows"), (None, "None"), (iter([{0: 1.0}] * 2), "<list_iterator")],
)
def test_a_batch_of_the_wrong_length(answers, got):
    with pytest.raises(
        ValueError, match=r"^HistoryTree.from_game\(\): expected p to answer 2 states, got "
    ) as e:
        policy_rows(lambda states: answers, [_state()] * 2, name="p")
    assert got in str(e.value)


def test_rows_of_chance():
    game = pyspiel.load_game("kuhn_poker")
    root = game.new_initial_state()
    rows = movers_rows([root, root.child(1)], (None, None), name="sigma", min_probability=0.0)
    assert rows.start.tolist() == [0, 3, 5]
    assert rows.action.tolist() == [0, 1, 2, 0, 2]
    assert rows.probability == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)
    odd = SimpleNamespace(
        current_player=lambda: pyspiel.PlayerId.CHANCE,
        legal_actions=lambda: [0, 1],
        history_str=lambda: "c",
        chance_outcomes=lambda: [(0, 0.5), (1, 0.4)],
    )
    with pytest.raises(ValueError, match=r"the probabilities of chance to sum to 1 at history 'c', got 0.9"):
        movers_rows([odd], (None, None), name="sigma", min_probability=0.0)


# -- kinds of policy --------------------------------------------------------------------------------


class _Batch:
    def __init__(self, row):
        self.row = row
        self.sizes = []

    def action_probabilities_batch(self, states):
        self.sizes.append(len(states))
        return [self.row(state) for state in states]


def _uniform(state):
    return {a: 1 / len(state.legal_actions()) for a in state.legal_actions()}


def _kinds(game):
    class Single:
        def action_probabilities(self, state, player_id=None):
            return _uniform(state)

    class Both(_Batch):
        def action_probabilities(self, state, player_id=None):
            raise AssertionError("the batch is preferred")

        def __call__(self, state):
            raise AssertionError("the batch is preferred")

    return {
        "openspiel": openspiel_policy.UniformRandomPolicy(game),
        "tabular": openspiel_policy.TabularPolicy(game),
        "callable": _uniform,
        "lambda": lambda state: _uniform(state),
        "single": Single(),
        "batch": _Batch(_uniform),
        "both": Both(_uniform),
    }


def test_all_kinds_of_policy_say_the_same():
    game = pyspiel.load_game("kuhn_poker")
    states = [game.new_initial_state().child(0).child(k) for k in (1, 2)]
    trees = []
    for name, policy in _kinds(game).items():
        assert list(as_batch_policy(policy, name)(states)) == [{0: 0.5, 1: 0.5}] * 2
        trees.append(HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01))
    assert len({tree.fingerprint for tree in trees}) == 1


def test_an_openspiel_policy_in_cpp():
    game = pyspiel.load_game("kuhn_poker")
    python = HistoryTree.from_game(game, sigma_pre=_uniform, sigma=_uniform, penalties=0.01)
    cpp = pyspiel.UniformRandomPolicy(game)
    assert (
        HistoryTree.from_game(game, sigma_pre=cpp, sigma=cpp, penalties=0.01).fingerprint
        == python.fingerprint
    )


@pytest.mark.parametrize("policy", [3, "uniform", None, {0: 1.0}, [0.5, 0.5]])
def test_not_a_policy(policy):
    words = r"^HistoryTree.from_game\(\): expected sigma_pre\[0\] to be an OpenSpiel Policy, .* got "
    with pytest.raises(ValueError, match=words):
        as_batch_policy(policy, "sigma_pre[0]")


def test_a_users_own_error_passes_through():
    def fails(state):
        raise RuntimeError("engine gone")

    with pytest.raises(RuntimeError, match="engine gone"):
        HistoryTree.from_game(random_tree(1), sigma_pre=fails, sigma=fails, penalties=0.1)


# -- playing by the book ------------------------------------------------------------------------------


def _decisions(game):
    """All decision states of a small game."""
    found = []

    def walk(state):
        if state.is_terminal():
            return
        if not state.is_chance_node():
            found.append(state)
        for action in state.legal_actions():
            walk(state.child(action))

    walk(game.new_initial_state())
    return found


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "random"])
def test_on_and_off_the_book(name, player):
    if name == "random":
        game, by = random_tree(3, depth=6), "history"
    else:
        game, by = pyspiel.load_game(name), "infoset"
    pre = tuple(random_policy(i, "partial", by) for i in (0, 1))
    sigma = tuple(random_policy(2 + i, "full", by) for i in (0, 1))
    penalties = (0.004, math.inf) if player == 0 else (math.inf, 0.004)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties)
    best = best_precomputation(tree, player)
    policy = best.policy()
    assert isinstance(policy, PrecomputationPolicy)
    assert isinstance(policy, openspiel_policy.Policy)
    assert policy.player == player

    def name_of(state):
        return tuple(state.history()) if by == "history" else state.information_state_string()

    book = {name_of(tree.state(s.history)) for s in best.states()}
    assert len(book) == best.size > 0
    on = off = 0
    for state in _decisions(game)[:600]:
        mover = state.current_player()
        memorized = mover == player and name_of(state) in book
        expected = dict.fromkeys(state.legal_actions(), 0.0) | (pre if memorized else sigma)[mover](state)
        row = policy.action_probabilities(state)
        assert row == pytest.approx(expected)
        assert sum(row.values()) == pytest.approx(1.0)
        assert policy.action_probabilities(state, mover) == row
        on += memorized
        off += not memorized
    assert on > 0
    assert off > 0


def test_off_the_book_without_sigma():
    game = random_tree(3)
    states = _decisions(game)
    policy = PrecomputationPolicy(game, 1, lambda state: None, (None, _uniform))
    mine = next(s for s in states if s.current_player() == 1)
    theirs = next(s for s in states if s.current_player() == 0)
    assert policy.action_probabilities(mine) == _uniform(mine)
    words = (
        r"^PrecomputationPolicy.action_probabilities\(\): expected a state on the book of player 1, got .*"
        r"give policy\(sigma=...\) what player 0 computes"
    )
    with pytest.raises(ValueError, match=words):
        policy.action_probabilities(theirs)


def test_the_row_is_the_callers_own():
    # Whoever changes what it got does not change the policy.
    table = {0: 0.5, 1: 0.5}
    game = pyspiel.load_game("kuhn_poker")
    state = game.new_initial_state().child(0).child(1)
    policy = PrecomputationPolicy(game, 0, lambda s: None, (lambda s: table, _uniform))
    policy.action_probabilities(state)[0] = 7.0
    assert policy.action_probabilities(state) == {0: 0.5, 1: 0.5}


def test_bad_sigma_of_a_book():
    game = random_tree(3)
    tree = HistoryTree.from_game(game, sigma_pre=_uniform, sigma=_uniform, penalties=0.1)
    best = best_precomputation(tree, 0)
    name = r"BestPrecomputation.policy\(\)"
    with pytest.raises(ValueError, match=rf"^{name}: expected sigma\[0\] to be an OpenSpiel"):
        best.policy(sigma=3)
    with pytest.raises(ValueError, match=rf"^{name}: expected sigma to be one value or a pair, got 3"):
        best.policy(sigma=(_uniform,) * 3)
