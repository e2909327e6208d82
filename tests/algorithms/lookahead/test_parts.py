"""The parts of limited lookahead: flattened games, evaluation functions, outcomes, the player as a policy."""

import itertools
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from open_spiel.python.algorithms import expected_game_score
from open_spiel.python.policy import UniformRandomPolicy

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.lookahead import (
    LookaheadPolicy,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    evaluate_against_lookahead,
    independent_noise,
)
from precomp_games.algorithms.lookahead.evaluation_functions import StrategyPolicy
from precomp_games.algorithms.lookahead.sequence_form import SequenceForm
from precomp_games.games import kj_poker
from precomp_games.tree.facts import TERMINAL
from tests.oracles.books import AsPolicy
from tests.oracles.games import SEEDS, expand, games, random_policy
from tests.oracles.lookahead import random_evaluation, utility_of
from tests.oracles.zero_sum import best_response_value
from tests.properties import examples

KUHN = pyspiel.load_game("kuhn_poker")
UNIFORM = UniformRandomPolicy(KUHN)
TIES = ("adversarial", "static", "favorable")


@pytest.mark.parametrize(
    ("name", "histories", "sequences", "infosets"),
    [
        # In the paper, with both cards dealt at once, which is a level of histories less: 55 / 13; 199 / 57;
        # "1935" (there are 1936) / 337.
        ("kuhn_poker", 58, 13, 6),
        ("python_kj_poker", 199, 57, 28),
        ("leduc_poker(suit_isomorphism=true)", 1939, 337, 144),
        ("leduc_poker", 9457, 1093, 468),
    ],
)
def test_sizes(name, histories, sequences, infosets):
    form = SequenceForm.of(pyspiel.load_game(name))
    assert form.num_histories == histories
    for player in form.players:
        assert (player.num_sequences, player.num_infosets - 1) == (sequences, infosets)


def test_realization_plans():
    form = SequenceForm.of(kj_poker.KJPokerGame())
    rng = np.random.default_rng(0)
    player = form.players[1]
    drawn = [rng.dirichlet(np.ones(count)) for count in player.num_actions]
    plan = player.realized(np.concatenate(drawn))
    for key, row in player.behavior(plan).items():
        k = player.index[key]
        assert row == pytest.approx(dict(zip(player.actions(k), drawn[k], strict=True)))
    assert (plan @ np.eye(len(plan)) <= player.extremes(np.eye(len(plan)))).all()


def test_extremes_are_those_of_pure_plans():
    player = SequenceForm.of(KUHN).players[1]
    weights = np.random.default_rng(0).normal(size=(player.num_sequences, 3))
    choices = itertools.product(*(np.eye(count) for count in player.num_actions))
    pure = np.array([player.realized(np.concatenate(chosen)) for chosen in choices])
    np.testing.assert_allclose(player.extremes(weights), (pure @ weights).max(axis=0))


# -- evaluation functions -----------------------------------------------------------------------------------


def test_equilibrium_values_are_expected_values():
    h = equilibrium_values(KUHN, 1, UNIFORM)
    state = KUHN.new_initial_state()
    for action in (2, 0, 1):
        assert h(state) == pytest.approx(expected_game_score.policy_value(state, [UNIFORM, UNIFORM])[1])
        state.apply_action(action)


def test_noise():
    h = equilibrium_values(KUHN, 0)
    form = h.form
    leaves = form.player == TERMINAL
    one, two = (independent_noise(h, gamma, [3, 4]).values - h.values for gamma in (0.5, 1.0))
    np.testing.assert_allclose(2 * one, two)
    assert (one != 0.0).all()
    assert (independent_noise(h, 1.0, [3, 5]).values - h.values != two).all()
    draws = np.concatenate([independent_noise(h, 2.0, seed).values - h.values for seed in range(50)])
    assert draws.std() == pytest.approx(2.0, rel=0.05) and abs(draws.mean()) < 0.15
    noisy = cumulative_noise(h, 0.7, 1)
    assert (noisy.values[leaves] == h.values[leaves]).all()
    # (17): what a history has beyond the expectation of its successors is its own draw.
    own = []
    for history in np.flatnonzero(~leaves).tolist():
        after = list(form.children[history])
        own.append(noisy.values[history] - noisy.values[after] @ h.odds[after])
    np.testing.assert_allclose(own, 0.7 * np.random.default_rng(1).standard_normal(len(leaves))[~leaves])


# -- outcomes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
@examples(20)
@given(games("imperfect"), SEEDS)
def test_lookahead_to_the_end_is_a_best_response(player, game, seed):
    # With all leaves in sight and utilities as evaluation, the follower is rational.
    policy = AsPolicy(game, random_policy(seed, by="infoset"))
    out = evaluate_against_lookahead(game, policy, player, 10, utility_of(1 - player))
    best = best_response_value(game, policy, 1 - player)
    assert -out.utility == pytest.approx(best, abs=1e-9)


def test_ties_are_broken_by_the_rule():
    h = random_evaluation(0, coarse=True)
    results = {
        rule: evaluate_against_lookahead(KUHN, UNIFORM, 0, 1, lambda state: 0.0, rule) for rule in TIES
    }
    for rule, out in results.items():
        assert all(len(actions) == 2 for actions in out.optimal.values())
        played = StrategyPolicy(KUHN, {key: {action: 1.0} for key, action in out.response.items()})
        values = expected_game_score.policy_value(KUHN.new_initial_state(), [UNIFORM, played])
        assert out.utility == pytest.approx(values[0]), rule
    assert set(results["static"].response.values()) == {0}
    assert results["adversarial"].utility < results["static"].utility < results["favorable"].utility
    assert evaluate_against_lookahead(KUHN, UNIFORM, 0, 1, h).optimal != results["static"].optimal


# -- as a policy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("rule", TIES)
def test_policy_earns_what_the_outcome_says(player, rule):
    h = equilibrium_values(KUHN, 1 - player)
    policy = LookaheadPolicy(KUHN, player, UNIFORM, 2, h, rule)
    values = expected_game_score.policy_value(KUHN.new_initial_state(), [policy, policy])
    assert values[player] == pytest.approx(policy.outcome.utility)


def test_preparing_against_a_player_with_limited_lookahead():
    # The rational player computes uniform play, which the limited one answers, and may learn an equilibrium.
    policy = LookaheadPolicy(KUHN, 0, UNIFORM, 1, equilibrium_values(KUHN, 1))
    tree = expand(KUHN, equilibrium(KUHN), (UNIFORM, policy), (1e-4, math.inf))
    book = best_precomputation(tree, 0)
    assert book.unprepared == pytest.approx(policy.outcome.utility)
    assert book.size > 0 and book.value > book.unprepared
    played = expected_game_score.policy_value(KUHN.new_initial_state(), [book.policy(), policy])
    assert played[0] == pytest.approx(book.utility)
