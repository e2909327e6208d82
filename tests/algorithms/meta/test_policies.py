"""Strategies of the meta-game to policies and back; and both measured by OpenSpiel."""

import math

import hypothesis
import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from precomp_games import MetaPrecomputationGame
from precomp_games.algorithms import MetaGamePolicy, MetaStrategy, meta_exploitability, strategies_from_policy
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.books import states
from tests.oracles.games import SEEDS
from tests.oracles.meta_games import known_cases, members_of, menu_tree, random_strategies, within
from tests.properties import examples

_FORMS = ("audit", "reweighted")


def _asked(game):
    """bool[m]: the information states that G' has."""
    asked = np.zeros(game.tree.num_infosets, bool)
    asked[[state.infoset for state in states(game) if state.current_player() >= 0]] = True
    return asked


def _of_mixture(tree, player, mixture):
    """Return the strategy that plays like a mixture of memorization sets: its plan is the mean of theirs."""
    plan = np.zeros(tree.num_entries)
    for probability, members in mixture:
        plan[members] += probability
    return MetaStrategy.of_plan(tree, player, np.minimum(plan, 1.0))  # sums of rounded numbers


_KNOWN = known_cases().filter(lambda case: case.whole.num_infosets)


# -- the meta-game ---------------------------------------------------------------------------------


@examples(120)
@given(_KNOWN, SEEDS, st.sampled_from(_FORMS))
def test_there_and_back(case, seed, form):
    tree = case.whole
    game = MetaPrecomputationGame(tree, form, check_supports=False)
    strategies = random_strategies(tree, seed)
    policy = MetaGamePolicy(game, strategies)
    here = _asked(game)[tree.entry_infoset]
    for back in (
        strategies_from_policy(game, policy),
        strategies_from_policy(game, policy.to_tabular()),
        strategies_from_policy(game, policy.to_pyspiel()),
        strategies_from_policy(game, [policy, policy.action_probabilities]),
    ):
        for strategy, original in zip(back, strategies, strict=True):
            assert strategy.player == original.player
            expected = np.where(here, original.memorize, 0.0)
            np.testing.assert_allclose(strategy.memorize, expected, atol=1e-15)


@examples(120)
@given(_KNOWN, SEEDS, st.sampled_from(_FORMS))
def test_openspiel_measures_what_we_do(case, seed, form):
    try:
        game = MetaPrecomputationGame(case.whole, form)
    except ValueError:
        hypothesis.reject()  # the reweighted form is another game there
    strategies = random_strategies(case.whole, seed)
    ours = meta_exploitability(case.whole, strategies)
    policy = MetaGamePolicy(game, strategies)
    cached = pyspiel.convert_to_cached_tree(game)
    for made in (game, cached):
        value = expected_game_score.policy_value(made.new_initial_state(), [policy, policy])
        assert value[0] + game.value_shift == pytest.approx(ours.value, abs=1e-9)
    assert exploitability.nash_conv(cached, policy) == pytest.approx(ours.nash_conv, abs=1e-8)
    assert pyspiel.nash_conv(game, policy.to_pyspiel()) == pytest.approx(ours.nash_conv, abs=1e-8)


def test_where_nobody_memorizes():
    nobody = MetaPrecomputationGame(menu_tree("tree", 7).with_penalties(math.inf))
    for strategy in strategies_from_policy(nobody, openspiel_policy.UniformRandomPolicy(nobody)):
        assert not strategy.memorize.any()


def test_a_policy_is_asked_once_for_each_information_state():
    for form in _FORMS:
        game = MetaPrecomputationGame(menu_tree("efg", 3, "none", policies=True), form)
        names = []

        def policy(state, names=names):
            names.append(state.information_state_string())
            assert state.legal_actions() == [0, 1]
            again = state.get_game().new_initial_state()
            for action in state.history():
                again.apply_action(action)
            assert str(again) == str(state)  # a state of play, with its history
            return {1: 1.0}  # zeros may be left out

        for strategy in strategies_from_policy(game, policy):
            own = game.tree.infoset_player == strategy.player
            np.testing.assert_array_equal(strategy.memorize, own)
        assert sorted(names) == sorted({game.rules.infoset_view(k) for k in range(game.tree.num_infosets)})
        assert len(names) == game.tree.num_infosets


# -- mixtures and the base game --------------------------------------------------------------------


@examples(160)
@given(_KNOWN, SEEDS)
def test_mixtures_and_plans_there_and_back(case, seed):
    rng, tree = np.random.default_rng(seed), case.whole
    for strategy in random_strategies(tree, seed):
        player, mixture, plan = strategy.player, strategy.mixture(), strategy.realization_plan()
        assert len(mixture) <= tree.num_entries + 1
        for back in (_of_mixture(tree, player, mixture), MetaStrategy.of_plan(tree, player, plan)):
            np.testing.assert_allclose(back.realization_plan(), plan, atol=1e-12)
        sets = {tuple(members.tolist()) for _, members in mixture}
        assert {tuple(strategy.draw(rng).tolist()) for _ in range(5)} <= sets


def test_sets_are_drawn_from_the_mixture():
    strategy, rng = random_strategies(menu_tree("tree", 7), 3)[0], np.random.default_rng(0)
    drawn = [tuple(strategy.draw(rng).tolist()) for _ in range(4000)]
    for probability, members in strategy.mixture():
        assert drawn.count(tuple(members.tolist())) / 4000 == pytest.approx(probability, abs=0.05)


@examples(160)
@given(_KNOWN, SEEDS)
def test_mixtures_of_any_sets(case, seed):
    """Not nested ones: the utility is the mean over what each set earns."""
    rng, strategies, mixed = np.random.default_rng(seed), [], []
    for i, inside in enumerate(within(case, case.whole)):
        picked, weights = rng.choice(inside, size=4), rng.dirichlet(np.ones(4))
        sets = [members_of(case.whole, i, case.choices[i][k]) for k in picked]
        strategies.append(_of_mixture(case.whole, i, zip(weights, sets, strict=True)))
        mixed.append(np.bincount(picked, weights, len(case.choices[i])))
    found = meta_exploitability(case.whole, tuple(strategies))
    assert found.utility == pytest.approx(mixed[0] @ case.utilities @ mixed[1], abs=1e-9)
    sizes = [mixed[i] @ [*map(len, case.choices[i])] for i in (0, 1)]
    assert found.sizes == pytest.approx(sizes, abs=1e-9)


@examples(160)
@given(_KNOWN, SEEDS)
def test_base_game_policies_earn_the_utility(case, seed):
    """As OpenSpiel plays them."""
    tree = case.whole
    for strategies in (random_strategies(tree, seed), meta_sequence_form_lp(tree).strategies):
        ours = meta_exploitability(tree, strategies)
        policies = [strategy.policy() for strategy in strategies]
        utility = expected_game_score.policy_value(tree.game.new_initial_state(), policies)
        assert utility == pytest.approx([ours.utility, tree.utility_sum - ours.utility], abs=1e-9)
