"""Rows asked of policies, the kinds of policy, and playing by the book."""

import math
from types import SimpleNamespace

import numpy as np
import pyspiel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy

from precomp_games import HistoryTree, Menu, to_efg
from precomp_games.algorithms import (
    best_precomputation,
    best_response,
    efce,
    lookahead,
    nash_conv,
    search,
    solve,
)
from precomp_games.policies.rows import as_batch_policy, movers_rows, policy_rows
from precomp_games.tree.meta_strategy import PrecomputationPolicy
from tests.oracles import books
from tests.oracles.games import EfgText, policy_pairs, random_tree, sides, uniform
from tests.oracles.zero_sum import MatrixGame


def _state(actions=(0, 1, 2)):
    """Return a state with as much as `policy_rows` needs."""
    return SimpleNamespace(legal_actions=lambda: list(actions), history_str=lambda: "h")


def _ask(*rows, **arguments):
    return policy_rows(lambda states: list(rows), [_state()] * len(rows), **arguments)


# -- rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "cut", "start", "action", "probability"),
    [
        (
            [{2: 0.25, 0: 0.75}, {1: 1.0}, {2: 0.2, 1: 0.3, 0: 0.5}],
            0.0,
            [0, 2, 3, 6],
            [0, 2, 1, 0, 1, 2],
            [0.75, 0.25, 1.0, 0.5, 0.3, 0.2],
        ),
        ([], 0.0, [0], [], []),
        # Zeros are left out, even for illegal actions.
        ([{0: 0.0, 1: 1.0, 77: 0.0, -3: 0}], 0.0, [0, 1], [1], [1.0]),
        # What is at the cut stays; what is below it, in the test that follows.
        ([{0: 0.75, 1: 0.25}], 0.25, [0, 2], [0, 1], [0.75, 0.25]),
        # Sums are made exact.
        ([{0: 0.5, 1: 0.5 + 5e-7}], 0.0, [0, 2], [0, 1], [0.5 / (1 + 5e-7), (0.5 + 5e-7) / (1 + 5e-7)]),
        ([{np.int64(1): np.float32(0.5), np.int32(0): np.float64(0.5)}], 0.0, [0, 2], [0, 1], [0.5, 0.5]),
    ],
)
def test_rows(answers, cut, start, action, probability):
    rows = _ask(*answers, min_probability=cut)
    assert (rows.start.dtype, rows.action.dtype, rows.probability.dtype) == (np.int64, np.int64, np.float64)
    assert rows.start.tolist() == start
    assert rows.action.tolist() == action
    assert rows.probability == pytest.approx(np.array(probability), abs=1e-15)


@settings(max_examples=40, deadline=None)
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
    def action_probabilities_batch(self, states):
        return [uniform(state) for state in states]

    def action_probabilities(self, state, player_id=None):
        raise AssertionError("the batch is preferred")

    def __call__(self, state):
        raise AssertionError("the batch is preferred")


def test_all_kinds_of_policy_say_the_same():
    game = pyspiel.load_game("kuhn_poker")
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


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "random"])
def test_on_and_off_the_book(name, player):
    game = random_tree(3, depth=6) if name == "random" else pyspiel.load_game(name)
    pre, sigma = policy_pairs(0, "partial", "history" if name == "random" else "infoset", "full")
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=sides(player, 0.004, math.inf))
    best = best_precomputation(tree, player)
    policy = best.policy()
    assert isinstance(policy, PrecomputationPolicy)
    assert isinstance(policy, openspiel_policy.Policy)
    assert policy.player == player
    book = {books.information_state(game, tree.state(s.history), player) for s in best.states()}
    assert len(book) == best.size > 0
    found = set()
    for state in [state for state in books.states(game) if state.current_player() >= 0][:600]:
        mover = state.current_player()
        memorized = mover == player and books.information_state(game, state, player) in book
        expected = dict.fromkeys(state.legal_actions(), 0.0) | (pre if memorized else sigma)[mover](state)
        row = policy.action_probabilities(state)
        assert row == pytest.approx(expected)
        assert sum(row.values()) == pytest.approx(1.0)
        assert policy.action_probabilities(state, mover) == row
        found.add(memorized)
    assert found == {True, False}


def test_off_the_book_without_sigma():
    game = pyspiel.load_game("tic_tac_toe")
    theirs = game.new_initial_state()
    mine = theirs.child(0)
    policy = PrecomputationPolicy(game, 1, lambda state: None, (None, uniform))
    assert policy.action_probabilities(mine) == uniform(mine)
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
    policy = PrecomputationPolicy(game, 0, lambda s: None, (lambda s: table, uniform))
    policy.action_probabilities(state)[0] = 7.0
    assert policy.action_probabilities(state) == {0: 0.5, 1: 0.5}


# -- actions of one number ----------------------------------------------------------------------------


class _TwiceState(type(MatrixGame(np.eye(2)).new_initial_state())):
    """A state of a game in Python that gives its last action twice."""

    def _legal_actions(self, player):
        return [*super()._legal_actions(player), 1]


class _TwiceGame(MatrixGame):
    def new_initial_state(self):
        return _TwiceState(self)


def _chosen(player, labels, payoffs=(0, 1, 5)):
    """One player chooses; equal labels are what OpenSpiel gives one number."""
    text = EfgText()
    text.move(player, 1, labels)
    for payoff, _ in zip(payoffs, labels, strict=False):
        text.leaf(payoff)
    return text


def _drawn(labels):
    text = EfgText()
    text.chance(dict(zip(labels, ("1/4", "3/4"), strict=False)))
    for player in (1, 2):
        text.move(player, 1, ["l", "r"])
        text.leaf(3)
        text.leaf(-1)
    return text


def _pennies(first, second):
    text = EfgText()
    text.move(1, 1, first)
    for sign in (1, -1):
        text.move(2, 1, second)
        text.leaf(sign)
        text.leaf(-sign)
    return text


def _late(labels):
    """Return the second player's last turn, behind chance and a turn of the first one."""
    text = EfgText()
    text.chance({"a": "1/2", "b": "1/2"})
    text.leaf(1)
    text.move(1, 1, ["l", "r"])
    text.leaf(0)
    text.move(2, 1, labels)
    text.leaf(2)
    text.leaf(-2)
    return text


def _unlabeled_chance():
    """`EfgText.chance` cannot write it: two outcomes without a label."""
    text = _drawn(["x", "y"])
    text.lines[1] = text.lines[1].replace('"x"', '""').replace('"y"', '""')
    return text


_TWICE = {
    "no labels": lambda: _pennies(["", ""], ["", ""]).game(),
    "no labels of the second player": lambda: _pennies(["h", "t"], ["", ""]).game(),
    "two of three": lambda: _chosen(1, ["L", "R", "R"]).game(),
    "first and last of three": lambda: _chosen(2, ["L", "R", "L"]).game(),
    "no label of two": lambda: _chosen(1, ["only", "", ""]).game(),
    "late": lambda: _late(["x", "x"]).game(),
    "chance": lambda: _unlabeled_chance().game(),
    "in Python": lambda: _TwiceGame(np.eye(2)),
}

_WALKS = {
    "solve": solve,
    "refined": lambda game: solve(game, refine=True),
    "cfr": lambda game: solve(game, method="cfr+", iterations=1),
    "nash_conv": lambda game: nash_conv(game, uniform),
    "best_response": lambda game: best_response(game, uniform, 1),
    "of_game": HistoryTree.of_game,
    "from_game": lambda game: HistoryTree.from_game(game, sigma_pre=uniform, sigma=uniform, penalties=0.01),
    "menus": lambda game: HistoryTree.from_game(
        game, sigma_pre=Menu.of_actions(), sigma=uniform, penalties=0.01
    ),
    "to_efg": to_efg,
    "efce": efce.SequenceGame.of,
    "commitment": lambda game: lookahead.commit_against_lookahead(game, 0, 1, lambda state: 0.0),
    "lookahead": lambda game: lookahead.evaluate_against_lookahead(game, uniform, 0, 1, lambda state: 0.0),
    "equilibrium": lookahead.equilibrium,
}


@pytest.mark.parametrize("walk", _WALKS)
@pytest.mark.parametrize("game", _TWICE)
def test_actions_of_one_number_are_refused_wherever_a_game_is_walked(game, walk):
    with pytest.raises(ValueError, match="expected the actions of a state to differ, got ") as refused:
        _WALKS[walk](_TWICE[game]())
    said = str(refused.value)
    assert said.count("\n") == 0 and "in an EFG file, label the actions of each node differently" in said


@pytest.mark.parametrize("name", ["minimax", "alpha_beta", "principal_variation_search", "mcts"])
@pytest.mark.parametrize("game", ["two of three", "first and last of three", "no label of two", "late"])
def test_actions_of_one_number_are_refused_by_searches(game, name):
    state = _TWICE[game]().new_initial_state()
    if state.is_chance_node():
        state.apply_action(1)
    budget = search.SimulationBudget(simulations=50) if name == "mcts" else search.SearchBudget(depth=4)
    with pytest.raises(ValueError, match=f"^{name}.*: expected the actions of a state to differ"):
        getattr(search, name)(state, budget)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (_pennies(["h", "t"], ["h", "t"]), 0.0),
        (_pennies(["a", "b"], ["c", "d"]), 0.0),
        (_chosen(1, ["L", "M", "R"]), 5.0),
        (_chosen(2, ["L", "M", "R"]), 0.0),
        (_chosen(1, [""]), 0.0),
        (_drawn(["x", "y"]), 0.25 * 3 - 0.75),
        (_late(["x", "y"]), 0.5),
    ],
)
def test_the_same_games_with_labels_have_their_values(text, value):
    for refine in (False, True):
        assert solve(text.game(), refine=refine).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("walk", _WALKS)
def test_an_information_set_that_is_named_at_some_of_its_nodes_is_refused(walk):
    """OpenSpiel takes it for two, of which the one would know what was done."""
    text = _pennies(["h", "t"], ["h", "t"])
    named = [k for k, line in enumerate(text.lines) if line.startswith('p "" 2 1')]
    text.lines[named[0]] = text.lines[named[0]].replace('2 1 ""', '2 1 "same - or not"')
    with pytest.raises(ValueError, match="EFG file to name an information set alike at each of its nodes"):
        _WALKS[walk](text.game())
    text.lines[named[1]] = text.lines[named[1]].replace('2 1 ""', '2 1 "same - or not"')
    assert solve(text.game()).value == pytest.approx(0.0, abs=1e-12)
