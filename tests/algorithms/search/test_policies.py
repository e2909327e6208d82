"""Searches as policies, by name, as bots, and as sigma and sigma_pre of a history tree."""

import functools
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import evaluate_bots as python_evaluate_bots

from precomp_games import make_policy
from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.search import (
    SearchBot,
    SearchBudget,
    SearchPolicy,
    SimulationBudget,
    alpha_beta,
    known_of,
    mcts,
    minimax,
)
from tests.oracles.games import expand, random_tree
from tests.oracles.graphs import Oracle, after

TIC_TAC_TOE = pyspiel.load_game("tic_tac_toe")
START = TIC_TAC_TOE.new_initial_state()
SPECS = [
    "alpha_beta(nodes=500)",
    "pvs(depth=3,evaluator=draw,table=false)",
    "mcts(simulations=100,c=0.7,seed=3,evaluator=auto)",
    "softmax(policy=alpha_beta(depth=2),temperature=0.5)",
    "softmax(policy=mcts(simulations=50),temperature=0.1)",
    "noisy(policy=pvs(depth=2),epsilon=0.2)",
]


def states(game, count, seed=0):
    """Decision states on random lines."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        state = game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                found.append(state.clone())
            state.apply_action(int(rng.choice(state.legal_actions())))
    return found[:count]


@pytest.mark.parametrize("spec", SPECS)
def test_specs_make_policies_of_games_of_all_kinds(spec):
    games = map(pyspiel.load_game, ("connect_four(rows=4,columns=4)", "pig(winscore=8)", "hex(board_size=3)"))
    for game in (random_tree(5, chance=0.3), *games):
        policies = [make_policy(game, spec) for _ in range(2)]
        for state in states(game, 5):
            rows = [policy.action_probabilities(state) for policy in policies]
            assert rows[0] == rows[1] == policies[0].action_probabilities(state.clone())
            assert list(rows[0]) == state.legal_actions()
            assert sum(rows[0].values()) == pytest.approx(1.0) and min(rows[0].values()) >= 0.0
            assert spec.startswith(("softmax", "noisy")) or max(rows[0].values()) == 1.0


@pytest.mark.parametrize("name", ["minimax", "alpha_beta", "pvs"])
def test_policies_play_the_best_move_or_by_softmax(name):
    oracle = Oracle(known_of(TIC_TAC_TOE).evaluator, str)
    policy = make_policy(TIC_TAC_TOE, f"{name}(depth=3)")
    soft = {
        t: make_policy(TIC_TAC_TOE, f"softmax(policy={name}(depth=3),temperature={t})") for t in (0.05, 5.0)
    }
    for state in states(TIC_TAC_TOE, 30):
        scores = oracle.scores(state, 3)
        (played,) = [a for a, p in policy.action_probabilities(state).items() if p]
        assert scores[played] == max(scores.values())
        assert policy.scores(state) == policy.scores(state.clone()) == scores  # remembered
        for temperature, mixed in soft.items():
            weights = np.exp(np.array([*scores.values()]) / temperature)
            expected = dict(zip(scores, weights / weights.sum(), strict=True))
            assert mixed.action_probabilities(state) == pytest.approx(expected, abs=1e-12)
    cold = make_policy(TIC_TAC_TOE, f"softmax(policy={name}(depth=2),temperature=1e-9)")
    assert max(cold.action_probabilities(START).values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("key", "searches"), [(str, 1), (None, 3)])
def test_answers_are_kept_by_position(key, searches):
    asked = []

    def search(state):
        asked.append(str(state))
        return alpha_beta(state, SearchBudget(depth=1))

    policy = SearchPolicy(TIC_TAC_TOE, search, position_key=key)
    for line in ([0, 1, 2], [2, 1, 0], [0, 1, 2]):
        policy.action_probabilities(after("tic_tac_toe", line))
    assert len(asked) == searches


def test_searches_take_functions():
    search = functools.partial(
        alpha_beta, budget=SearchBudget(depth=1), evaluator=lambda state: -abs(state.history()[-1] - 7)
    )
    policy = SearchPolicy(TIC_TAC_TOE, search, scored=functools.partial(search, all_scores=True))
    assert policy.action_probabilities(START)[7] == 1.0
    assert policy.scores(START) == {a: -abs(a - 7) for a in range(9)}


# -- what is known of games --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["tic_tac_toe", "connect_four", "breakthrough", "connect_four(rows=4,columns=5,x_in_row=3)"]
)
def test_evaluations_keys_and_orderings_of_known_games(name):
    game = pyspiel.load_game(name)
    evaluator, ordering, key = known_of(game)
    values, rows = [], {}
    for state in states(game, 60, seed=2):
        values.append(evaluator(state))
        again = rows.setdefault((state.current_player(), key(state)), state)
        assert again.legal_actions() == state.legal_actions() and evaluator(again) == values[-1]
        if ordering is not None:
            assert sorted(ordering(state, state.legal_actions())) == state.legal_actions()
    assert -1.0 < min(values) < 0.0 < max(values) < 1.0


def test_of_other_games_nothing_is_known():
    for name in ("chess", "pig", "kuhn_poker"):
        assert known_of(pyspiel.load_game(name)) == (None, None, None)


@pytest.mark.parametrize(
    ("game_string", "line", "value"),
    [
        ("tic_tac_toe", [], 0.0),
        ("tic_tac_toe", [4], (8 - 4) / 9),  # player 1 keeps the 4 lines of the rim
        ("tic_tac_toe", [4, 0], (5 - 4) / 9),  # through a corner go 3 lines, one of them closed already
        ("connect_four", [], 0.0),
        ("connect_four", [3], 7 / 70),  # 7 of 69 lines go through the middle of the first row
    ],
)
def test_evaluations_count_open_lines(game_string, line, value):
    state = after(game_string, line)
    assert known_of(state.get_game()).evaluator(state) == pytest.approx(value)


# -- in the rest of the library ----------------------------------------------------------------------


def test_sigma_and_sigma_pre_of_a_history_tree():
    """Positions may be shared, and there is something to memorize."""
    game = pyspiel.load_game("connect_four(rows=4,columns=3,x_in_row=3)")
    pre = make_policy(game, "pvs(depth=6)")
    sigma = make_policy(game, "softmax(policy=alpha_beta(depth=1),temperature=0.1)")
    keys = known_of(game).position_key, None
    shared, alone = (expand(game, pre, sigma, (0.02, math.inf), position_key=key) for key in keys)
    for name in ("parent", "action", "sigma", "sigma_pre", "value"):
        np.testing.assert_allclose(getattr(shared, name), getattr(alone, name), atol=1e-12)
    best = best_precomputation(shared, 0)
    assert best.size > 0 and best.value > best.unprepared


@pytest.mark.parametrize("spec", ["pvs(depth=9,evaluator=draw)", "mcts(simulations=1500)"])
def test_bots_of_good_searches_do_not_lose(spec):
    strong = SearchBot(make_policy(TIC_TAC_TOE, spec))
    for seed in range(10):
        random = SearchBot(make_policy(TIC_TAC_TOE, "uniform"), seed)
        assert pyspiel.evaluate_bots(START.clone(), [strong, random], seed)[0] >= 0.0
        rng = np.random.default_rng(seed)
        assert python_evaluate_bots.evaluate_bots(START.clone(), [random, strong], rng)[1] >= 0.0
    cpp = pyspiel.make_uniform_random_bot(1, 5)
    assert pyspiel.evaluate_bots(START.clone(), [strong, cpp], 1)[0] >= 0.0


def test_bots_draw_from_the_policy():
    policy = make_policy(TIC_TAC_TOE, "softmax(policy=alpha_beta(depth=1),temperature=0.2)")
    bot = SearchBot(policy, seed=1)
    draws = np.bincount([bot.step(START) for _ in range(2000)], minlength=9) / 2000
    np.testing.assert_allclose(draws, list(policy.action_probabilities(START).values()), atol=0.04)
    one, two = (SearchBot(policy, seed=2) for _ in range(2))
    assert [one.step(START) for _ in range(3)] == [two.step(START) for _ in range(3)]
    assert isinstance(bot.step(START), int)
    # A single legal move, number 0, is a move like others.
    last = after("tic_tac_toe", (8, 7, 6, 3, 5, 4, 1, 2))
    assert last.legal_actions() == [0] and bot.step(last) == 0


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("minimax(depth=-1)", "depth to be an integer of at least 0, got -1"),
        ("mcts(simulations=10,c=-1.0)", "c to be a finite number of at least 0, got -1.0"),
        ("mcts(simulations=10,evaluator=draw)", 'evaluator to be one of "auto", "rollouts", got .draw'),
        ("alpha_beta(depth=2,evaluator=best)", 'evaluator to be one of "auto", "draw", got .best'),
        ("alpha_beta(deep=2)", "'deep'"),
        ("softmax(policy=uniform)", "SearchPolicy"),
        ("softmax(temperature=0.0)", "temperature to be a positive, finite number, got 0.0"),
    ],
)
def test_bad_specs(spec, words):
    """Refused where the policy is made, and not only in play."""
    with pytest.raises(ValueError, match="expected.*" + words):
        make_policy(TIC_TAC_TOE, spec)


def test_scores_are_exact_and_of_all_moves():
    for search, budget, words in (
        (alpha_beta, SearchBudget(depth=3), "got bounds"),
        (minimax, SearchBudget(nodes=3), "got none after 3 nodes"),
    ):
        policy = SearchPolicy(TIC_TAC_TOE, functools.partial(search, budget=budget))
        with pytest.raises(ValueError, match=f"exact scores of all root moves, {words}"):
            policy.scores(START)
    few = SearchPolicy(TIC_TAC_TOE, functools.partial(mcts, budget=SimulationBudget(4)))
    assert len(few.scores(START)) == 4  # of the moves that were tried
