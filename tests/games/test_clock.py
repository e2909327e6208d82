"""Clock games: the rules, and preparation that saves time against brute force."""

import collections
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from precomp_games import MetaPrecomputationGame
from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.search import SearchBudget, alpha_beta
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.games.clock import ClockGame, SearchClock
from tests.oracles import books
from tests.oracles.games import expand, first, last, penalties, random_policy, random_tree, settings, sides
from tests.oracles.meta_games import game_payoffs, matrix_value, names_in
from tests.properties import examples

TIC_TAC_TOE = {"name": "tic_tac_toe"}


# -- rules -----------------------------------------------------------------------------------------------


def test_moves_take_time_and_who_is_late_loses():
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 3, "time_1": 2})
    state = game.new_initial_state()
    state.apply_action(game.encode(4, 2))
    assert state.left == (1, 2) and state.current_player() == 1
    assert str(state) == f"{state.base}\nclocks 1 2"
    state.apply_action(game.encode(0, 0))
    assert state.left == (1, 2) and not state.is_terminal()
    assert {game.decode(action)[1] for action in state.legal_actions()} == {0, 1, 2}
    assert len(state.legal_actions()) == 7 * 3
    in_time, late = state.child(game.encode(1, 1)), state.child(game.encode(1, 2))
    assert in_time.left == (0, 2) and not in_time.is_terminal()
    assert late.is_terminal() and late.returns() == [-1.0, 1.0] and late.late == 0
    assert str(late.base) == str(state.base)  # the move was not made
    assert "late" in state.action_to_string(0, game.encode(1, 2))
    assert state.left == (1, 2)  # children do not touch their parent


def test_memorized_moves_alone_are_the_base_game():
    base = pyspiel.load_game("tic_tac_toe")
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 1, "time_1": 1})
    rng = np.random.default_rng(0)
    for _ in range(20):
        plain, clocked = base.new_initial_state(), game.new_initial_state()
        while not plain.is_terminal():
            action = int(rng.choice(plain.legal_actions()))
            plain.apply_action(action)
            clocked.apply_action(game.encode(action, 0))
        assert clocked.is_terminal() and clocked.returns() == plain.returns()


def test_constant_sum_games_and_their_utilities():
    game = ClockGame({"game": random_tree(3, actions=2), "time_0": 1, "time_1": 1})
    assert game.utility_sum() == 1.0
    assert game.lost_on_time == ([-1.0, 2.0], [2.0, -1.0])
    assert (game.min_utility(), game.max_utility()) == (-1.0, 2.0)


# -- brute force -----------------------------------------------------------------------------------------


def _before(tree, history):
    """Yield the histories before one."""
    while history > 0:
        history = int(tree.parent[history])
        yield history


def test_preparation_on_the_clock_against_all_sets():
    """Best preparation, the meta-game's linear program and its audit form; Lemma 4 is refused."""
    seen = collections.Counter()

    @examples(160)
    @given(settings(kind="perfect", actions=2), st.booleans(), penalties(infinite=False))
    def holds(case, odd, costs):
        base, *policies = case
        game = ClockGame({"game": base, "time_0": 2, "time_1": 2, "move_time": 3})
        pre = [game.policy(policy) for policy in policies[0]]
        sigma = [game.policy(p, lambda state: 1 + (sum(state.base.history()) + odd) % 2) for p in policies[1]]
        whole = expand(game, pre, sigma, costs, truncate="none")
        rows = [[policy.action_probabilities for policy in each] for each in (pre, sigma)]
        choices = []
        for i in (0, 1):
            every, known = books.all_choices(game, i, rows[0][i], 240), set(names_in(whole, i))
            choices.append([choice for choice in every if choice.keys() <= known])
            assume(0 < len(choices[i]) <= 60)
        utilities = books.utilities_of_choices(game, choices, rows[1])
        paid = [cost * np.array([*map(len, each)]) for cost, each in zip(costs, choices, strict=True)]

        for i, own in enumerate((utilities[:, 0], 1.0 - utilities[0])):
            tree = expand(game, pre, sigma, sides(i, costs[i], math.inf))
            best = best_precomputation(tree, i)
            assert best.value == pytest.approx(max(own - paid[i]))
            seen.update(memorized=best.size > 0)

        payoffs = utilities - paid[0][:, None] + paid[1]
        assert meta_sequence_form_lp(whole).value == pytest.approx(matrix_value(payoffs), abs=1e-8)
        assert game_payoffs(MetaPrecomputationGame(whole), choices) == pytest.approx(payoffs, abs=1e-9)
        memorable = np.flatnonzero(whole.infoset >= 0).tolist()
        if any(
            whole.player[g] != whole.player[h] for h in memorable for g in _before(whole, h) if g in memorable
        ):
            with pytest.raises(ValueError, match="reweighted"):
                MetaPrecomputationGame(whole, "reweighted")
            seen.update(refused=1)

    holds()
    assert min(seen["memorized"], seen["refused"]) > 0


# -- what saved time is worth ----------------------------------------------------------------------------


def test_a_move_that_sigma_plays_anyway_is_memorized_for_the_time_that_it_saves():
    """Knowing the first move, the very one that sigma finds, leaves the time to find the second."""
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 2, "time_1": 9})
    # Player 0 takes the squares 0, 1, 2 in turn and wins with its third move, if its time lasts.
    computed, memorized = game.policy(first, 1), game.policy(first)
    tree = expand(game, memorized, (computed, game.policy(last, 1)), (0.1, math.inf))
    best = best_precomputation(tree, 0)
    assert best.unprepared == -1.0 and best.utility == 1.0 and best.size == 1
    assert best.value == pytest.approx(0.9)
    (known,) = best.states()
    assert known.gain == pytest.approx(2.0)
    rows = tree.memorized_row(known.infoset), computed.action_probabilities(tree.state(known.history))
    assert {game.decode(a)[0] for a in rows[0]} == {game.decode(a)[0] for a in rows[1]}
    # Without clocks to speak of, the same move is not worth learning.
    slow = ClockGame({"game": TIC_TAC_TOE, "time_0": 9, "time_1": 9})
    policies = (slow.policy(first, 1), slow.policy(last, 1))
    tree = expand(slow, slow.policy(first), policies, (0.1, math.inf))
    assert best_precomputation(tree, 0).size == 0


def test_searches_with_a_budget_in_nodes():
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 12, "time_1": 12})

    def search(state, nodes):
        return alpha_beta(state, SearchBudget(nodes=nodes))

    clock = SearchClock(nodes_per_tick=40, moves=3)
    policy = clock.policy(game, search, position_key=str)
    state = game.new_initial_state()
    while not state.is_terminal():
        row = policy.action_probabilities(state)
        (action,) = row
        before = state.left[state.current_player()]
        assert action in state.legal_actions()
        _, ticks = game.decode(action)
        assert 1 <= ticks <= before + 1
        state.apply_action(action)
    # It never gives out more than there is, so it is late only on an empty clock.
    assert clock.allotted(12) == 4 and clock.allotted(2) == 1 and clock.allotted(0) == 1
    assert clock.ticks(41) == 2 and clock.ticks(1) == 1
    key = game.position_key(str)
    assert key(state) != key(game.new_initial_state())


# -- bad input -------------------------------------------------------------------------------------------


def test_bad_games_and_clocks():
    with pytest.raises(ValueError, match="expected at most 2147483647 actions"):
        ClockGame({"game": TIC_TAC_TOE, "time_0": 10**12, "time_1": 2})
    assert ClockGame().times == ClockGame({}).times == (10, 10)
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 2, "time_1": 2})
    # Lost on time, of another clock, of the game without one.
    late, start = game.new_initial_state().child(3), ClockGame().new_initial_state()
    for player in (game.policy(random_policy(1)), SearchClock(100).policy(game, lambda state, nodes: None)):
        for strange in (late, start, start.base):
            with pytest.raises(ValueError, match=r"action_probabilities\(\): expected (a )?state"):
                player.action_probabilities(strange)
    for ticks in (None, 1.7, -1):
        policy = game.policy(random_policy(1), lambda state, ticks=ticks: ticks)
        with pytest.raises(ValueError, match=r"expected ticks to be an integer"):
            policy.action_probabilities(game.new_initial_state())
