"""Clock games: the rules, OpenSpiel's own checks, and preparation that saves time against brute force."""

import math
import pickle

import numpy as np
import pyspiel
import pytest

import precomp_games.chess  # noqa: F401  (registers python_chess)
from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.search import SearchBudget, alpha_beta
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.games.clock import (
    ClockGame,
    SearchClock,
)
from tests.oracles import books
from tests.oracles.games import expand, first, last, policy_pairs, random_policy, random_tree
from tests.oracles.meta_games import game_payoffs, matrix_value, names_in

TIC_TAC_TOE = {"name": "tic_tac_toe"}


# -- rules -----------------------------------------------------------------------------------------------


def test_openspiel_s_own_checks():
    for base in ("tic_tac_toe", "connect_four(rows=4,columns=4)", "pig(winscore=4,horizon=9)"):
        game = ClockGame({"game": base, "time_0": 4, "time_1": 3})
        assert str(ClockGame({"game": pyspiel.load_game(base), "time_0": 4, "time_1": 3})) == str(game)
        pyspiel.random_sim_test(game, num_sims=10, serialize=True, verbose=False)


def test_moves_take_time_and_who_is_late_loses():
    game = ClockGame({"game": TIC_TAC_TOE, "time_0": 3, "time_1": 2})
    state = game.new_initial_state()
    state.apply_action(game.encode(4, 2))
    assert state.left == (1, 2) and state.current_player() == 1
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


def test_game_strings_and_pickles():
    game = pyspiel.load_game("python_clock(game=connect_four(rows=5),time_0=7,time_1=6,move_time=4)")
    assert game.times == (7, 6) and game.move_time == 4
    for copy in (pyspiel.load_game(str(game)), pickle.loads(pickle.dumps(game))):
        assert str(copy) == str(game) and copy.times == (7, 6)
    state = game.new_initial_state()
    state.apply_action(game.encode(3, 2))
    assert pickle.loads(pickle.dumps(state)).left == (5, 6)
    chess = ClockGame({"game": {"name": "python_chess", "max_plies": 6}, "time_0": 2, "time_1": 2})
    state = chess.new_initial_state()
    state.apply_action(state.legal_actions()[1])
    assert state.base.ply == 1 and state.clone().left == state.left


# -- brute force -----------------------------------------------------------------------------------------


def _case(seed):
    """Return a tiny clock game with random ticks, and both players' policies on it."""
    base = random_tree(seed, depth=4, actions=2, chance=(0.0, 0.2)[seed % 2])
    game = ClockGame({"game": base, "time_0": 2, "time_1": 2, "move_time": 3})

    def ticks(state):
        return 1 + (sum(state.base.history()) + seed) % 2

    pre, sigma = policy_pairs(seed, ("pure", "partial", "full")[seed % 3])
    return game, [game.policy(p) for p in pre], [game.policy(p, ticks) for p in sigma]


def _known(seed, penalties):
    """(tree arguments, whole tree, each player's sets, utilities of all pairs), None where there are many."""
    game, pre, sigma = _case(seed)
    given = {"game": game, "sigma_pre": pre, "sigma": sigma, "penalties": penalties}
    whole = HistoryTree.from_game(**given, truncate="none")
    sets = []
    for i in (0, 1):
        kept, parents = names_in(whole, i), books.predecessors(game, i)
        parents = {name: parents[name] for name in kept}
        if books.count_prefix_closed_sets(parents) > 60:
            return None
        sets.append(list(books.prefix_closed_sets(parents)))
    rows = [[policy.action_probabilities for policy in policies] for policies in (pre, sigma)]
    return given, whole, sets, books.utilities(game, sets, *rows)


def test_best_preparation_against_all_sets(cases):
    memorized = 0
    for seed in range(cases(26)):
        penalty = (0.01, 0.1)[seed % 2]
        for player in (0, 1):
            known = _known(seed, (penalty, math.inf) if player == 0 else (math.inf, penalty))
            if known is None:
                continue
            given, whole, sets, utilities = known
            own = utilities[:, 0] if player == 0 else whole.utility_sum - utilities[0]
            best = best_precomputation(HistoryTree.from_game(**given), player)
            assert best.value == pytest.approx(max(own - penalty * np.array([*map(len, sets[player])])))
            memorized += best.size > 0
    assert memorized >= cases(16)


def test_the_meta_game_against_all_pairs_of_sets(cases):
    """Additive costs, the audit form and the linear program agree with brute force; Lemma 4 is refused."""
    refused = 0
    for seed in range(cases(30)):
        known = _known(seed, (0.07, 0.05))
        if known is None:
            continue
        _, whole, sets, utilities = known
        sizes = [np.array([*map(len, each)]) for each in sets]
        payoffs = utilities - 0.07 * sizes[0][:, None] + 0.05 * sizes[1]
        assert meta_sequence_form_lp(whole).value == pytest.approx(matrix_value(payoffs), abs=1e-8)
        own = [np.flatnonzero(whole.infoset_player == i).tolist() for i in (0, 1)]
        rows = [dict(zip(names_in(whole, i), map(whole.memorized_row, own[i]), strict=True)) for i in (0, 1)]
        choices = [[{name: rows[i][name] for name in names} for names in sets[i]] for i in (0, 1)]
        assert game_payoffs(MetaPrecomputationGame(whole), choices) == pytest.approx(payoffs, abs=1e-9)
        if len(np.unique(whole.infoset_player)) == 2:
            with pytest.raises(ValueError, match="reweighted"):
                MetaPrecomputationGame(whole, "reweighted")
            refused += 1
    assert refused >= cases(8)


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
