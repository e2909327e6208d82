"""Strategies of the meta-game to policies and back; and both measured by OpenSpiel."""

import itertools
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from precomp_games import HistoryTree, MetaPrecomputationGame, make_policy, to_efg
from precomp_games.algorithms.meta.exploitability import meta_exploitability
from precomp_games.algorithms.meta.policies import (
    meta_game_policy,
    strategies_from_policy,
    strategy_from_base_policy,
    strategy_from_mixture,
)
from precomp_games.algorithms.meta.sequence_form_lp import meta_sequence_form_lp
from precomp_games.meta_strategy import MetaStrategy
from tests import reference
from tests.meta_game.test_game import all_sets, case, infoset_names, walk
from tests.random_games import random_policy

_CASES = [
    *itertools.product(("tree", "efg"), range(6), ("full", "partial", "pure")),
    *itertools.product(("kuhn",), range(3), ("full", "partial")),
]
_FORMS = ("audit", "reweighted")


def random_strategies(tree, seed):
    """Both players', with zeros and ones among the probabilities."""
    rng = np.random.default_rng(seed)
    drawn = np.clip(rng.uniform(-0.2, 1.2, (2, tree.num_infosets)), 0.0, 1.0)
    return tuple(MetaStrategy(tree, i, np.where(tree.infoset_player == i, drawn[i], 0.0)) for i in (0, 1))


def asked(game):
    """The information states that G' has."""
    return {state.infoset for state in walk(game) if state.current_player() >= 0}


# -- the meta-game ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", _FORMS)
def test_there_and_back(form):
    for n, c in enumerate(_CASES):
        tree, _, _ = case(*c)
        game = MetaPrecomputationGame(tree, form, check_supports=False)
        strategies = random_strategies(tree, n)
        policy = meta_game_policy(game, strategies)
        here = np.zeros(tree.num_infosets, bool)
        here[list(asked(game))] = True
        assert here.all() or form == "reweighted"
        for back in (
            strategies_from_policy(game, policy),
            strategies_from_policy(game, policy.to_tabular()),
            strategies_from_policy(game, policy.to_pyspiel()),
            strategies_from_policy(game, [policy, policy.action_probabilities]),
        ):
            for strategy, original in zip(back, strategies, strict=True):
                assert strategy.player == original.player
                np.testing.assert_array_equal(strategy.memorize, np.where(here, original.memorize, 0.0))


@pytest.mark.parametrize("form", _FORMS)
def test_openspiel_measures_what_we_do(form):
    compared = 0
    for n, c in enumerate(_CASES):
        tree, _, _ = case(*c)
        try:
            game = MetaPrecomputationGame(tree, form)
        except ValueError:
            continue  # the reweighted form is another game there
        strategies = random_strategies(tree, n)
        ours = meta_exploitability(tree, strategies)
        policy = meta_game_policy(game, strategies)
        value = expected_game_score.policy_value(game.new_initial_state(), [policy, policy])
        assert value[0] + game.value_shift == pytest.approx(ours.value, abs=1e-9)
        cached = pyspiel.convert_to_cached_tree(game)
        assert exploitability.nash_conv(cached, policy) == pytest.approx(ours.nash_conv, abs=1e-8)
        assert pyspiel.nash_conv(game, policy.to_pyspiel()) == pytest.approx(ours.nash_conv, abs=1e-8)
        compared += 1
    assert compared >= (len(_CASES) if form == "audit" else 14)


@pytest.mark.parametrize("form", _FORMS)
def test_what_is_made_of_the_game(form):
    """Cached trees have the game's information states; .efg exports have them under longer names."""
    for c in (("tree", 1, "full"), ("efg", 2, "full"), ("kuhn", 1, "full")):
        tree, _, _ = case(*c)
        game = MetaPrecomputationGame(tree, form)
        strategies = random_strategies(tree, 5)
        policy = meta_game_policy(game, strategies)
        ours = meta_exploitability(tree, strategies)
        for made in (pyspiel.convert_to_cached_tree(game), pyspiel.load_efg_game(to_efg(game))):
            value = expected_game_score.policy_value(made.new_initial_state(), [policy, policy])
            assert value[0] + game.value_shift == pytest.approx(ours.value, abs=1e-9)
            back = strategies_from_policy(game, policy, played_on=made)
            for strategy, original in zip(back, strategies, strict=True):
                np.testing.assert_array_equal(strategy.memorize, original.memorize)

            solver = pyspiel.CFRPlusSolver(made)
            for _ in range(300):
                solver.evaluate_and_update_policy()
            average = solver.average_policy()
            found = meta_exploitability(tree, strategies_from_policy(game, average, played_on=made))
            assert found.nash_conv == pytest.approx(pyspiel.nash_conv(made, average), abs=1e-9)
            assert found.nash_conv < 2e-3


def test_an_infinite_penalty():
    tree = case("kuhn", 1, "full")[0].with_penalties((0.07, math.inf))
    for form in _FORMS:
        game = MetaPrecomputationGame(tree, form)
        strategies = (random_strategies(tree, 0)[0], MetaStrategy(tree, 1, np.zeros(tree.num_infosets)))
        policy = meta_game_policy(game, strategies)
        back = strategies_from_policy(game, policy)
        np.testing.assert_array_equal(back[0].memorize, strategies[0].memorize)
        assert not back[1].memorize.any()
        ours = meta_exploitability(tree, back)
        assert pyspiel.nash_conv(game, policy.to_pyspiel()) == pytest.approx(ours.nash_conv, abs=1e-9)
    nobody = MetaPrecomputationGame(tree.with_penalties(math.inf))
    for strategy in strategies_from_policy(nobody, openspiel_policy.UniformRandomPolicy(nobody)):
        assert not strategy.memorize.any()


def test_a_policy_is_asked_once_for_each_information_state():
    for form in _FORMS:
        game = MetaPrecomputationGame(case("efg", 3, "full")[0], form)
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
        assert sorted(names) == sorted({game.infoset_string(k) for k in range(game.tree.num_infosets)})
        assert len(names) == game.tree.num_infosets


# -- mixtures and the base game --------------------------------------------------------------------


def test_mixtures_there_and_back():
    for n, c in enumerate(_CASES):
        tree, _, _ = case(*c)
        for strategy in random_strategies(tree, n):
            back = strategy_from_mixture(tree, strategy.player, strategy.mixture())
            np.testing.assert_allclose(back.plan(), strategy.plan(), atol=1e-12)


def test_mixtures_of_any_sets():
    """Not nested ones: the utility is the mean over what each set earns."""
    rng = np.random.default_rng(0)
    for c in _CASES[::5]:
        tree, pre, sigma = case(*c)
        sets = all_sets(tree)
        if sets is None:
            continue
        strategies, drawn = [], []
        for i in (0, 1):
            names = infoset_names(tree, i)
            picked = [sets[i][k] for k in rng.integers(len(sets[i]), size=4)]
            weights = rng.dirichlet(np.ones(4))
            drawn.append(list(zip(weights, picked, strict=True)))
            mixture = [(p, [names[name] for name in chosen]) for p, chosen in drawn[i]]
            strategies.append(strategy_from_mixture(tree, i, mixture))
        (p, rows), (q, columns) = (zip(*each, strict=True) for each in drawn)
        expected = p @ reference.utilities(tree.game, (rows, columns), pre, sigma) @ q
        found = meta_exploitability(tree, tuple(strategies))
        assert found.utility == pytest.approx(expected, abs=1e-9)
        for i in (0, 1):
            size = sum(p * len(chosen) for p, chosen in drawn[i])
            assert found.sizes[i] == pytest.approx(size, abs=1e-9)


@pytest.mark.parametrize("c", _CASES)
def test_base_game_policies_earn_the_utility(c):
    """As OpenSpiel plays them; and come back as strategies that earn it too."""
    tree, _, _ = case(*c)
    for strategies in (random_strategies(tree, 3), meta_sequence_form_lp(tree).strategies):
        ours = meta_exploitability(tree, strategies)
        policies = [strategy.policy() for strategy in strategies]
        utility = expected_game_score.policy_value(tree.game.new_initial_state(), policies)
        assert utility[0] == pytest.approx(ours.utility, abs=1e-9)
        assert utility[1] == pytest.approx(tree.utility_sum - ours.utility, abs=1e-9)
        back = tuple(strategy_from_base_policy(tree, i, policies[i]) for i in (0, 1))
        again = meta_exploitability(tree, back)
        assert again.utility == pytest.approx(ours.utility, abs=1e-9)
        for i in (0, 1):
            assert again.sizes[i] <= ours.sizes[i] + 1e-9
            if c[2] == "full":  # everything is reached, and tells sigma_pre from sigma
                np.testing.assert_allclose(back[i].plan(), strategies[i].plan(), atol=1e-9)


def test_kuhn_by_name():
    """The equilibrium of two named policies, in the base game and in the meta-game."""
    kuhn = pyspiel.load_game("kuhn_poker")
    pre, sigma = make_policy(kuhn, "cfr(iterations=100)"), make_policy(kuhn, "uniform")
    tree = HistoryTree.from_game(kuhn, sigma_pre=pre, sigma=sigma, penalties=(0.02, 0.01))
    found = meta_sequence_form_lp(tree)
    ours = meta_exploitability(tree, found.strategies)
    policies = [strategy.policy() for strategy in found.strategies]
    utility = expected_game_score.policy_value(kuhn.new_initial_state(), policies)
    assert utility[0] == pytest.approx(ours.utility, abs=1e-12)
    assert ours.utility - 0.02 * ours.sizes[0] + 0.01 * ours.sizes[1] == pytest.approx(found.value, abs=1e-9)
    assert min(ours.sizes) > 0.0
    for i, (policy, strategy) in enumerate(zip(policies, found.strategies, strict=True)):
        back = strategy_from_base_policy(tree, i, policy)
        np.testing.assert_allclose(back.plan(), strategy.plan(), atol=1e-9)


def test_where_the_policies_agree_nothing_is_memorized_in_vain():
    """A move that sigma plays too is only worth memorizing on the way to one that it does not."""
    kuhn = pyspiel.load_game("kuhn_poker")
    sigma = random_policy(1, "full", "infoset")
    other = random_policy(2, "full", "infoset")
    later = "pb"  # player 0's second turns

    def pre(state):
        return (other if state.information_state_string().endswith(later) else sigma)(state)

    tree = HistoryTree.from_game(kuhn, sigma_pre=pre, sigma=sigma, penalties=1e-4)
    names = infoset_names(tree, 0)
    assert {"0", "0pb"} <= names.keys()
    sure = MetaStrategy.of_set(tree, 0, names.values())
    assert strategy_from_base_policy(tree, 0, sigma).expected_size == 0.0
    assert strategy_from_base_policy(tree, 0, sure.policy()).expected_size == pytest.approx(6.0)
    half = strategy_from_mixture(tree, 0, [(0.5, names.values()), (0.5, [names["1"], names["2"]])])
    back = strategy_from_base_policy(tree, 0, half.policy())
    np.testing.assert_allclose(back.plan()[list(names.values())], 0.5)


# -- errors ----------------------------------------------------------------------------------------


def test_bad_arguments():
    tree, _, _ = case("kuhn", 1, "full")
    other, _, _ = case("kuhn", 2, "full")
    game = MetaPrecomputationGame(tree)
    strategies = random_strategies(tree, 0)
    with pytest.raises(
        ValueError, match=r"meta_game_policy\(\): expected game to be a MetaPrecomputationGame, got"
    ):
        meta_game_policy(tree, strategies)
    with pytest.raises(ValueError, match=r"meta_game_policy\(\): expected strategies of players 0 and 1"):
        meta_game_policy(game, strategies[::-1])
    with pytest.raises(ValueError, match=r"meta_game_policy\(\): expected strategies on HistoryTree"):
        meta_game_policy(game, random_strategies(other, 0))
    policy = meta_game_policy(game, strategies)
    start = game.new_initial_state()
    decision = start.child(1).child(0)
    assert policy.action_probabilities(decision, 0) == policy(decision)
    for state, player in ((start, None), (start, 0), (decision, 1)):
        with pytest.raises(ValueError, match="expected a decision of the meta-game, got"):
            policy.action_probabilities(state, player)
    with pytest.raises(ValueError, match="expected a decision of the meta-game"):
        policy.action_probabilities(tree.game.new_initial_state().child(0).child(1))

    def answers(row):
        return strategies_from_policy(game, lambda state: row)

    for row, message in (
        ({0: 0.5, 1: 0.6}, r"expected the probabilities of policy\[\d\] to sum to 1 .*, got 1.1"),
        ({1: -0.5, 0: 1.5}, r"expected policy\[\d\] to give probabilities in \[0, 1\]"),
        ({0: math.nan, 1: 0.5}, r"expected policy\[\d\] to give probabilities in \[0, 1\]"),
        ({2: 1.0}, r"expected policy\[\d\] to play legal actions"),
        ({}, r"expected the probabilities of policy\[\d\] to sum to 1 .*, got 0"),
        (0.5, r"expected policy\[\d\] to give \{action: probability\}"),
    ):
        with pytest.raises(ValueError, match=rf"strategies_from_policy\(\): {message}"):
            answers(row)
    with pytest.raises(
        ValueError, match=r"strategies_from_policy\(\): expected game to be a MetaPrecomputationGame"
    ):
        strategies_from_policy(tree.game, policy)
    with pytest.raises(ValueError, match="expected policy to be one value or a pair, got 3 of them"):
        strategies_from_policy(game, [policy] * 3)
    with pytest.raises(ValueError, match=r"expected policy\[1\] to be an OpenSpiel Policy"):
        strategies_from_policy(game, [policy, 3])
    with pytest.raises(ValueError, match="expected played_on to be made of the meta-game, got one with"):
        strategies_from_policy(game, policy, played_on=tree.game)


def test_bad_mixtures_and_base_policies():
    tree, pre, sigma = case("kuhn", 1, "full")
    own = np.flatnonzero(tree.infoset_player == 0).tolist()
    for mixture, message in (
        ([], "probabilities of sum 1"),
        ([(0.5, own)], "probabilities of sum 1"),
        ([(1.5, own), (-0.5, [])], "probabilities to be a finite number of at least 0, got -0.5"),
        ([(math.nan, own)], "probabilities to be a finite number of at least 0, got nan"),
        ([(1.0, [0.5])], r"memorization_set to be integers of at least 0 and below \d+, got \[0.5\]"),
        ([own], "mixture to be"),
    ):
        with pytest.raises(ValueError, match=rf"strategy_from_mixture\(\): expected {message}"):
            strategy_from_mixture(tree, 0, mixture)
    with pytest.raises(
        ValueError, match=r"strategy_from_mixture\(\): expected information states of player 1"
    ):
        strategy_from_mixture(tree, 1, [(1.0, own)])
    for player in (-1, 2, None):
        with pytest.raises(ValueError, match="expected player 0 or 1, got"):
            strategy_from_mixture(tree, player, [])
        with pytest.raises(ValueError, match="expected player 0 or 1, got"):
            strategy_from_base_policy(tree, player, sigma[0])
    with pytest.raises(ValueError, match="expected a HistoryTree"):
        strategy_from_mixture(tree.game, 0, [])
    with pytest.raises(ValueError, match="expected policy to be an OpenSpiel Policy"):
        strategy_from_base_policy(tree, 0, 1)
    np.testing.assert_allclose(strategy_from_base_policy(tree, 0, pre[0]).plan()[own], 1.0)
    unlike = random_policy(99, "full", "infoset")
    with pytest.raises(
        ValueError, match=r"expected a policy that some preparation of player 0 plays, got \{0"
    ):
        strategy_from_base_policy(tree, 0, unlike)

    def forgetful(state):
        """Sigma at first, then what it could only know had it memorized more."""
        return (pre if len(state.information_state_string()) > 1 else sigma)[0](state)

    with pytest.raises(ValueError, match=r"after \[0, 1, 0, 1\]"):
        strategy_from_base_policy(tree, 0, forgetful)
