"""Rows asked of policies, the kinds of policy, and playing by the book."""

import math
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation
from precomp_games.policies.rows import as_batch_policy, movers_rows, policy_rows
from precomp_games.tree.meta_strategy import PrecomputationPolicy
from tests.oracles import books
from tests.oracles.games import kuhn_poker, random_tree, uniform
from tests.oracles.preparation import preparations
from tests.properties import examples


def _state(actions=(0, 1, 2), **more):
    """Return a state with as much as `policy_rows` needs."""
    return SimpleNamespace(legal_actions=lambda: list(actions), history_str=lambda: "h", **more)


def _ask(*rows, **arguments):
    return policy_rows(lambda states: list(rows), [_state()] * len(rows), **arguments)


# -- rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "start", "action", "probability"),
    [
        (
            [{2: 0.25, 0: 0.75}, {1: 1.0}, {2: 0.2, 0: 0.8}],
            [0, 2, 3, 5],
            [0, 2, 1, 0, 2],
            [0.75, 0.25, 1, 0.8, 0.2],
        ),
        ([], [0], [], []),
        # Zeros are left out, even for illegal actions.
        ([{0: 0.0, 1: 1.0, 77: 0.0, -3: 0}], [0, 1], [1], [1.0]),
        # Sums are made exact.
        ([{0: 0.5, 1: 0.5 + 5e-7}], [0, 2], [0, 1], [0.5 / (1 + 5e-7), (0.5 + 5e-7) / (1 + 5e-7)]),
        ([{np.int64(1): np.float32(0.5), np.int32(0): np.float64(0.5)}], [0, 2], [0, 1], [0.5, 0.5]),
    ],
)
def test_rows(answers, start, action, probability):
    rows = _ask(*answers)
    assert (rows.start.dtype, rows.action.dtype, rows.probability.dtype) == (np.int64, np.int64, np.float64)
    assert rows.start.tolist() == start and rows.action.tolist() == action
    assert rows.probability == pytest.approx(np.array(probability), abs=1e-15)


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


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({0: 0.5}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0.5"),
        ({}, r"the probabilities of sigma\[1\] to sum to 1 at history 'h', got 0"),
        ({0: 1.5, 1: -0.5}, r"sigma\[1\] to give probabilities in \[0, 1\] at history 'h', got 1.5"),
        ({0: -1e-9, 1: 1.0 + 1e-9}, r"probabilities in \[0, 1\] at history 'h', got -1e-09 for action 0"),
        ({0: "0.5", 1: "0.5"}, r"to give \{action: probability\} at history 'h', got 0: '0.5'"),
        ({0: 10**400}, r"sigma\[1\] to give probabilities in \[0, 1\] at history 'h', got 1000"),
        ({0: np.complex128(1.0)}, r"to give \{action: probability\} at history 'h', got 0: .*1\+0j"),
        ({0: 1.0, 1: math.nan}, r"probabilities in \[0, 1\] at history 'h', got nan for action 1"),
        ({3: 1.0}, r"sigma\[1\] to play legal actions at history 'h', got action 3, .* \[0, 1, 2\]"),
        (None, r"sigma\[1\] to give \{action: probability\} at history 'h', got None"),
    ],
)
def test_bad_rows(row, words):
    with pytest.raises(ValueError, match=r"^expected .*" + words):
        _ask({0: 1.0}, row, name="sigma[1]")


@pytest.mark.parametrize(
    ("answers", "got"),
    [([], "0 rows"), ([{0: 1.0}] * 3, "3 rows"), (None, "None"), (iter([{0: 1.0}] * 2), "<list_iterator")],
)
def test_a_batch_of_the_wrong_length(answers, got):
    with pytest.raises(ValueError, match=r"^expected p to answer 2 states, got ") as e:
        policy_rows(lambda states: answers, [_state()] * 2, name="p")
    assert got in str(e.value)


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

    def __call__(self, state):
        raise AssertionError("the batch is preferred")


def test_all_kinds_of_policy_say_the_same():
    game = kuhn_poker()
    states = [game.new_initial_state().child(0).child(k) for k in (1, 2)]
    trees = []
    for policy in (
        openspiel_policy.UniformRandomPolicy(game),
        openspiel_policy.TabularPolicy(game),
        pyspiel.UniformRandomPolicy(game),
        uniform,
        books.AsPolicy(game, uniform),
        _Batch(),
    ):
        assert list(map(dict, as_batch_policy(policy)(states))) == [{0: 0.5, 1: 0.5}] * 2
        trees.append(HistoryTree.from_game(game, sigma_pre=policy, sigma=policy, penalties=0.01))
    assert len({tree.fingerprint for tree in trees}) == 1


@pytest.mark.parametrize("name", ["sigma_pre", "sigma", "leaf_value"])
def test_a_users_own_error_passes_through(name):
    def fails(state):
        raise RuntimeError("engine gone")

    given = {"sigma_pre": uniform, "sigma": uniform, "penalties": 0.1} | {name: fails}
    with pytest.raises(RuntimeError, match="engine gone"):
        HistoryTree.from_game(random_tree(1), **given)


# -- playing by the book ------------------------------------------------------------------------------


@examples(60)
@given(preparations(menu=False), st.sampled_from((1e-9, 0.02)))
def test_on_and_off_the_book(prepared, penalty):
    player = prepared.player
    best = best_precomputation(prepared.tree(penalty), player)
    policy = best.policy()
    assert isinstance(policy, PrecomputationPolicy) and policy.player == player
    game = prepared.game
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
