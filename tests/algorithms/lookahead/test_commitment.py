"""Commitment against limited lookahead: known values, reductions, brute force."""

import itertools

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score, exploitability

from precomp_games.algorithms.lookahead import (
    LookaheadPolicy,
    commit_against_lookahead,
    commitment,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    evaluate_against_lookahead,
    independent_noise,
)
from precomp_games.algorithms.lookahead.evaluation_functions import StrategyPolicy
from precomp_games.algorithms.lookahead.sequence_form import SequenceForm
from precomp_games.algorithms.programs import LinearProgramError, Program
from precomp_games.games import kj_poker  # noqa: F401  (registers the game)
from tests.oracles.games import random_efg, random_tree
from tests.oracles.lookahead import Oracle
from tests.oracles.lookahead_games import (
    clauses_first,
    figure_1,
    maxsat,
    narrow,
    random_evaluation,
    random_formula,
    theorem_3,
    utility_of,
)

TIES = ("adversarial", "static", "favorable")
KUHN = pyspiel.load_game("kuhn_poker")
KJ = pyspiel.load_game("python_kj_poker")
LEDUC = pyspiel.load_game("leduc_poker(suit_isomorphism=true)")


def check(best, delta=1e-4):
    """Proven, and worth what is claimed when played."""
    assert best.optimal and best.gap <= 1e-6
    assert best.value == best.outcome.utility
    assert best.supremum - delta - 1e-9 <= best.value <= best.supremum + 1e-9
    if best.types[0].tie_breaking == "favorable":
        assert best.value == pytest.approx(best.supremum, abs=1e-7)


# -- analytic values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "lookahead", "adversarial", "favorable"),
    [
        (0, 1, 1 / 6, 1 / 6),
        (0, 2, -1 / 18, -1 / 18),
        (1, 1, 1 / 18, 7 / 18),
        (1, 2, 1 / 18, 1 / 18),
    ],
)
def test_kuhn_without_noise(player, lookahead, adversarial, favorable):
    h = equilibrium_values(KUHN, 1 - player)
    for ties, value in (("adversarial", adversarial), ("favorable", favorable)):
        best = commit_against_lookahead(KUHN, player, lookahead, h, ties)
        check(best)
        assert best.supremum == pytest.approx(value, abs=1e-6)
        assert best.bound == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_kuhn_depends_on_the_equilibrium(alpha):
    # Kuhn's equilibria: player 0 bets a jack with probability alpha, a king with 3 alpha, and calls with a
    # queen with alpha + 1/3.
    rows = dict(equilibrium(KUHN).rows)
    rows |= {"0": {0: 1 - alpha, 1: alpha}, "2": {0: 1 - 3 * alpha, 1: 3 * alpha}}
    rows |= {"1pb": {0: 2 / 3 - alpha, 1: alpha + 1 / 3}}
    h = equilibrium_values(KUHN, 1, StrategyPolicy(KUHN, rows))
    assert h(KUHN.new_initial_state()) == pytest.approx(1 / 18, abs=1e-12)
    best = commit_against_lookahead(KUHN, 0, 1, h)
    assert best.supremum == pytest.approx(1 / 6 - alpha / 3, abs=1e-6)


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_kuhn_cumulative_noise_with_two_moves_is_no_noise(gamma):
    # Player 1 sees all leaves after its move, and leaves have no noise.
    exact = equilibrium_values(KUHN, 1)
    for seed in range(5):
        best = commit_against_lookahead(KUHN, 0, 2, cumulative_noise(exact, gamma, seed))
        check(best)
        assert best.supremum == pytest.approx(-1 / 18, abs=1e-6)


@pytest.mark.parametrize("game", [KUHN, KJ], ids=["kuhn", "kj"])
def test_equilibrium_is_one(game):
    policy = equilibrium(game)
    assert exploitability.nash_conv(game, policy) == pytest.approx(0.0, abs=1e-12)
    if game is KUHN:
        assert equilibrium_values(game, 0, policy)(game.new_initial_state()) == pytest.approx(
            -1 / 18, abs=1e-12
        )
        assert policy.rows["0"][1] == 0.0  # alpha


def test_an_equilibrium_is_there_where_the_solver_cannot_tell_the_least_one(monkeypatch):
    solve, asked = Program.solve, []

    def fails(program, **options):
        if np.count_nonzero(program.objective) == 1:  # one sequence is to be as seldom as can be
            asked.append(program)
            if len(asked) % 3 == 0:
                raise LinearProgramError("Unknown")
        return solve(program, **options)

    monkeypatch.setattr(Program, "solve", fails)
    policy = equilibrium(KUHN)
    assert len(asked) > 6
    assert exploitability.nash_conv(KUHN, policy) == pytest.approx(0.0, abs=1e-7)


def best_reply(state, policy, player):
    """Return the best-response value of `player` in a game of perfect information, by recursion."""
    if state.is_terminal():
        return state.returns()[player]
    values = {action: best_reply(state.child(action), policy, player) for action in state.legal_actions()}
    if state.current_player() == player:
        return max(values.values())
    chance = state.is_chance_node()
    odds = dict(state.chance_outcomes()) if chance else policy.action_probabilities(state)
    return sum(odds[action] * value for action, value in values.items())


def test_figure_1():
    # With half weights, the follower compares stop: 1/2 (1 + 0) with on: 1/2 (a + b); evaluations of the
    # leader's nodes decide, not what follows.
    game, h = figure_1(0.2, 0.9)
    uniform = StrategyPolicy(game, {})
    out = evaluate_against_lookahead(game, uniform, 0, 1, h)
    ((key, values),) = out.values.items()
    assert values == pytest.approx({2: 0.5, 3: 0.55})
    assert out.optimal[key] == (3,)
    assert out.utility == pytest.approx(3.0)
    game, low = figure_1(0.2, 0.7)
    assert evaluate_against_lookahead(game, uniform, 0, 1, low).optimal[key] == (2,)
    # With two moves it sees the leaves behind them: on is 1/2 (4.5 + 2.5) if the leader mixes evenly.
    out = evaluate_against_lookahead(game, uniform, 0, 2, low)
    assert out.values[key] == pytest.approx({2: 0.5, 3: 3.5})
    # The best commitment makes it go on, with as much "l" as keeps 0.2 x + 0.7 (1 - x) above x.
    best = commit_against_lookahead(game, 0, 1, low, "favorable")
    check(best)
    x = 0.7 / 1.5
    assert best.value == pytest.approx(5 * x + 4 * (1 - x), abs=1e-7)


# -- the reductions of Theorems 1 to 3 -------------------------------------------------------------


def against_maxsat(seed):
    clauses = random_formula(seed, variables=3 + seed % 2, clauses=4 + seed)
    most = maxsat(clauses, 4) / len(clauses)
    best = commit_against_lookahead(clauses_first(clauses, False), 0, 1, lambda state: 0.0, "favorable")
    check(best)
    assert best.value == pytest.approx(most, abs=1e-6)
    for game, lookahead in ((clauses_first(clauses, True), 2), (theorem_3(clauses), 1)):
        for ties in TIES:
            best = commit_against_lookahead(game, 0, lookahead, utility_of(1), ties)
            check(best)
            assert best.work["rounds"] >= 1
            assert best.supremum == pytest.approx(most, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5])
def test_reductions_return_maxsat(seed):
    against_maxsat(seed)


def test_a_reduction_whose_first_plan_cannot_be():
    """The program's first plan is one that the follower cannot have, and is mended or ruled out."""
    against_maxsat(1)


# -- brute force -----------------------------------------------------------------------------------


def against_brute_force(game, player, lookahead, h):
    oracle = Oracle(game, player, lookahead, h)
    at_least = equilibrium_values(game, player)(game.new_initial_state())
    found = []
    for ties in TIES:
        best = commit_against_lookahead(game, player, lookahead, h, ties)
        expected = oracle.best(ties)
        check(best)
        assert best.supremum == pytest.approx(expected, abs=1e-6)
        assert best.bound == pytest.approx(expected, abs=1e-6)
        assert best.bound >= at_least - 1e-9
        found.append(best.supremum)
    assert found[0] <= found[1] + 1e-7 and found[1] <= found[2] + 1e-7


def tiny(seed):
    """Return a random game of one to four information sets a player."""
    for number in itertools.count(seed, 1000):
        perfect = seed % 4 == 3
        game = random_tree(number, depth=4, actions=2) if perfect else random_efg(number, depth=3 + seed % 2)
        if all(1 <= player.num_infosets - 1 <= 4 for player in SequenceForm.of(game).players):
            return game
    raise AssertionError


def test_brute_force_on_random_games(cases):
    for seed in range(cases(72)):
        coarse = seed % 5 != 0
        against_brute_force(tiny(seed), seed // 4 % 2, 1 + seed % 3, random_evaluation(seed, coarse))


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("lookahead", [1, 2, 3])
def test_brute_force_on_kuhn(player, lookahead):
    exact = equilibrium_values(KUHN, 1 - player)
    against_brute_force(KUHN, player, lookahead, exact)
    against_brute_force(KUHN, player, lookahead, independent_noise(exact, 0.5, lookahead))


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("lookahead", [1, 2, 3])
def test_kj_is_proven_and_rules_are_in_order(player, lookahead):
    exact = equilibrium_values(KJ, 1 - player)
    worth = equilibrium_values(KJ, player)(KJ.new_initial_state())
    for seed, model in ((0, independent_noise), (1, cumulative_noise)):
        h = model(exact, 0.3, seed)
        found = []
        for ties in TIES:
            best = commit_against_lookahead(KJ, player, lookahead, h, ties)
            check(best)
            assert best.bound >= worth - 1e-9
            found.append(best.supremum)
        assert sorted(found) == pytest.approx(found, abs=1e-7)


def test_delta_is_as_asked():
    h = equilibrium_values(KUHN, 1)
    for delta in (1e-2, 1e-4, 1e-6):
        best = commit_against_lookahead(KUHN, 0, 1, h, delta=delta)
        check(best, delta)
        assert best.delta > 0.0


@pytest.mark.parametrize("height", [0.0, 1e2, 1e3, 5e3])
def test_narrow_leads_are_found(height):
    # Far from zero, evaluations differ by little of their size, and each bit of lead costs more utility.
    game, h = narrow(height)
    for ties in ("adversarial", "static"):
        best = commit_against_lookahead(game, 0, 2, h, ties)
        check(best)
        assert best.supremum == pytest.approx(2.0, abs=1e-6)


def test_a_delta_below_what_ties_allow():
    # A lead of 1e-9 counts as a tie, which costs 4e-3 here: the least possible, as reported.
    game, h = narrow(1e6)
    best = commit_against_lookahead(game, 0, 2, h)
    assert best.optimal and best.supremum == pytest.approx(2.0, abs=1e-6)
    assert 1.9 < best.value < 2.0 - 4e-3
    assert best.delta == best.supremum - best.value


def test_small_leads_are_leads():
    # 2e-8 of the evaluations' size is more than a tie: the best plan must not be taken for impossible.
    game, h = narrow(1e8)
    rows = {0: {2: 0.0, 3: 0.9, 4: 0.1}, 1: {2: 1.0, 3: 0.0, 4: 0.0}}
    out = evaluate_against_lookahead(game, lambda state: rows[state.history()[0]], 0, 2, h)
    assert out.utility == pytest.approx(1.6)
    best = commit_against_lookahead(game, 0, 2, h)
    assert best.bound == pytest.approx(2.0, abs=1e-6)


def test_policy_of_both():
    best = commit_against_lookahead(KJ, 1, 2, equilibrium_values(KJ, 0))
    played = expected_game_score.policy_value(KJ.new_initial_state(), [best.policy()] * 2)
    assert played[1] == pytest.approx(best.value, abs=1e-9)


# -- where it is easy ------------------------------------------------------------------------------


def by_search(*call):
    """Return a commitment that is searched for, where one linear program would do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commitment, "fixed_options", lambda *_: None)
        return commit_against_lookahead(*call)


def test_lookahead_1_without_information_sets(cases):
    for seed, player in itertools.product(range(cases(12)), (0, 1)):
        game = random_tree(seed, depth=4)
        root = game.new_initial_state()
        h = random_evaluation(seed, coarse=True)
        for ties in ("static", "adversarial"):
            easy = commit_against_lookahead(game, player, 1, h, ties)
            assert easy.method == "polynomial"
            check(easy)
            hard = by_search(game, player, 1, h, ties)
            assert hard.method == "correlation"
            assert easy.supremum == pytest.approx(hard.supremum, abs=1e-6)
        # What the follower holds for best is the same against any strategy that comes everywhere.
        uniform = StrategyPolicy(game, {})
        known = LookaheadPolicy(game, player, uniform, 1, h, "static")
        static = commit_against_lookahead(game, player, 1, h, "static")
        assert static.value == pytest.approx(best_reply(root, known, player), abs=1e-9)


def test_static_order():
    game = random_tree(3, depth=4)
    for order in (None, lambda key, actions: actions[::-1]):
        best = commit_against_lookahead(game, 0, 1, lambda state: 0.0, "static", order=order)
        for key, action in best.outcome.response.items():
            actions = best.outcome.optimal[key]
            assert action == (actions[0] if order is None else actions[-1])
        again = evaluate_against_lookahead(game, best.policy(), 0, 1, lambda state: 0.0, "static", order)
        played = LookaheadPolicy(game, 0, best.policy(), 1, lambda state: 0.0, "static", order)
        assert again.response == played.outcome.response == best.outcome.response


# -- limits ----------------------------------------------------------------------------------------


def test_what_cannot_be_done():
    with pytest.raises(ValueError, match="plans inside a lookahead"):
        commit_against_lookahead(LEDUC, 1, 9, lambda state: 0.0)


def test_time_limit_gives_an_interval():
    """The whole program takes twenty times as long."""
    h = independent_noise(equilibrium_values(LEDUC, 1, StrategyPolicy(LEDUC, {})), 1.0, 0)
    best = commit_against_lookahead(LEDUC, 0, 1, h, time_limit=0.1)
    assert not best.optimal
    assert best.gap > 1e-6
    assert best.supremum <= best.bound <= SequenceForm.of(LEDUC).utility.max()
    assert best.value == pytest.approx(best.supremum, abs=1e-4)
    assert np.isfinite(best.value)
