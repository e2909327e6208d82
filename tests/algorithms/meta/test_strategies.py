"""Strategies of the meta-game: parts, trees, policies of them and back, and restricted Nash responses."""

import math

import hypothesis
import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability

from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import (
    MetaGamePolicy,
    MetaStrategy,
    best_precomputation,
    memorized_states,
    meta_exploitability,
    restricted_nash,
    strategies_from_policy,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.books import states
from tests.oracles.games import SEEDS, expand, random_policy, random_tree, sides
from tests.oracles.graphs import follow
from tests.oracles.meta_games import (
    known_cases,
    matrix_value,
    members_of,
    menu_tree,
    random_strategies,
    within,
)
from tests.properties import examples


def _expanded():
    policies = random_policy(1), random_policy(2)
    return expand(random_tree(3, depth=5), *policies, (0.001, 0.002), truncate="none")


@pytest.fixture(scope="module")
def tree():
    return _expanded()


def test_probabilities_that_are_none(tree):
    menus, words = (
        menu_tree("tree", 7, truncate="none"),
        r"^MetaStrategy\(\): expected memorize to be \d+ numb",
    )
    for probability, wrong, message in ((2.0, tree, words), (-1.0, tree, words), (1.0, menus, "at most 1")):
        with pytest.raises(ValueError, match=message):
            MetaStrategy(wrong, 0, np.full(wrong.num_entries, probability))


def test_sets_of_any_kind(tree):
    best = best_precomputation(tree, 0).memorization_set
    assert len(best) > 1
    for members in (best, best.tolist(), set(best.tolist()), iter(best.tolist()), best[::-1], [*best, *best]):
        strategy = MetaStrategy.of_set(tree, 0, members)
        assert np.flatnonzero(strategy.memorize).tolist() == best.tolist()
        assert strategy.expected_size == len(best)
    assert memorized_states(strategy) == memorized_states(strategy, _nothing(tree, 1))  # against sigma
    for nothing in ([], (), set(), np.zeros(0)):
        assert MetaStrategy.of_set(tree, 0, nothing).expected_size == 0.0
    with pytest.raises(
        ValueError, match=r"of_set\(\): expected information states of player 0, each with all"
    ):
        MetaStrategy.of_set(tree, 0, best[1:])


def test_the_array_is_the_strategys_own(tree):
    given = np.full(tree.num_infosets, 0.5)
    given[tree.infoset_player == 1] = math.nan  # not player 0's
    strategy = MetaStrategy(tree, 0, given)
    size = strategy.expected_size
    given[:] = 7.0
    assert strategy.expected_size == size > 0.0
    assert not strategy.memorize[tree.infoset_player == 1].any()
    with pytest.raises(ValueError, match="read-only"):
        strategy.memorize[0] = 1.0


def _nothing(tree, player):
    return MetaStrategy.of_set(tree, player, [])


def test_strategies_of_equal_trees_are_taken(tree, tmp_path):
    tree.save(tmp_path / "tree.npz")
    loaded, own = HistoryTree.load(tmp_path / "tree.npz"), _nothing(tree, 0)
    for same in (_expanded(), loaded, tree.with_penalties((0.5, math.inf))):
        rival = _nothing(same, 1)
        assert best_precomputation(tree, 0, opponent=rival).value == best_precomputation(tree, 0).value
        assert meta_exploitability(tree, (own, rival)).sizes == (0.0, 0.0)
        assert memorized_states(own, rival) == []
    # A file knows what is played where one stops.
    there = _nothing(loaded.with_game(tree.game), 0).policy()
    for history in tree.infoset_history[tree.infoset_player == 0].tolist():
        state = tree.state(history)
        row = own.policy().action_probabilities(state)
        assert there.action_probabilities(state) == pytest.approx(row)


def test_what_counts_are_the_penalties_of_the_tree_and_not_of_the_strategies(tree):
    dear = tree.with_penalties((0.003, 0.004))
    known = [best_precomputation(dear, player).memorization_set for player in (0, 1)]
    own, others = ([MetaStrategy.of_set(each, i, known[i]) for i in (0, 1)] for each in (tree, dear))
    assert min(map(len, known)) > 0
    assert meta_exploitability(tree, others) == meta_exploitability(tree, own)
    assert meta_exploitability(dear, own) == meta_exploitability(dear, others)


def test_a_tree_that_was_cut_elsewhere_is_another_one():
    """The fingerprint does not count penalties, but what they cut."""
    kuhn, policies = pyspiel.load_game("kuhn_poker"), [random_policy(k, by="infoset") for k in (1, 2)]
    small, large = (expand(kuhn, *policies, penalty) for penalty in (0.001, 3.0))
    assert large.num_infosets < small.num_infosets
    with pytest.raises(ValueError, match="another tree"):
        best_precomputation(small, 0, opponent=_nothing(large, 1))


_FORMS = ("audit", "reweighted")


def _of_mixture(tree, player, mixture):
    """Return the strategy that plays like a mixture of memorization sets: its plan is the mean of theirs."""
    plan = np.zeros(tree.num_entries)
    for probability, members in mixture:
        plan[members] += probability
    return MetaStrategy.of_plan(tree, player, np.minimum(plan, 1.0))  # sums of rounded numbers


_KNOWN = known_cases().filter(lambda case: case.whole.num_infosets)


# -- policies of the meta-game ---------------------------------------------------------------------


@examples(120)
@given(_KNOWN, SEEDS, st.sampled_from(_FORMS))
def test_there_and_back(case, seed, form):
    tree = case.whole
    game = MetaPrecomputationGame(tree, form, check_supports=False)
    strategies = random_strategies(tree, seed)
    policy = MetaGamePolicy(game, strategies)
    asked = [state.infoset for state in states(game) if state.current_player() >= 0]  # which G' has
    here = np.isin(tree.entry_infoset, asked)
    for same in (policy, policy.to_tabular(), policy.to_pyspiel(), [policy, policy.action_probabilities]):
        for back, original in zip(strategies_from_policy(game, same), strategies, strict=True):
            assert back.player == original.player
            np.testing.assert_allclose(back.memorize, np.where(here, original.memorize, 0.0), atol=1e-15)


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


@pytest.mark.parametrize("form", _FORMS)
def test_a_policy_is_asked_once_for_each_information_state(form):
    game, names = MetaPrecomputationGame(menu_tree("efg", 3, "none", policies=True), form), []

    def policy(state):
        names.append(state.information_state_string())
        assert state.legal_actions() == [0, 1]
        again = follow(state.get_game().new_initial_state(), state.history())
        assert str(again) == str(state)  # a state of play, with its history
        return {1: 1.0}  # zeros may be left out

    for strategy in strategies_from_policy(game, policy):
        own = game.tree.infoset_player == strategy.player
        np.testing.assert_array_equal(strategy.memorize, own)
    assert sorted(names) == sorted({game.rules.infoset_view(k) for k in range(game.tree.num_infosets)})


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


# -- restricted Nash responses ---------------------------------------------------------------------


def _restricted_value(case, player, p):
    """v(p) by enumeration, in the player's utility."""
    nothing = case.choices[1 - player].index({})
    if player == 0:
        return matrix_value(p * case.payoffs[:, [nothing]] + (1.0 - p) * case.payoffs)
    mixed = p * case.payoffs[[nothing]] + (1.0 - p) * case.payoffs
    return (case.game.utility_sum() or 0.0) - matrix_value(mixed)


@examples(240)
@given(known_cases(), st.integers(0, 1), st.sampled_from((0.0, 0.2, 0.5, 0.83, 1.0)))
def test_values_are_those_of_all_sets_and_ends_the_equilibrium_and_algorithm_1(case, player, p):
    tree = case.tree
    found = restricted_nash(tree, player, model_probability=p)
    assert found.value == pytest.approx(_restricted_value(case, player, p), abs=1e-8)
    assert abs(found.gap) < 1e-9 * tree.scale
    assert found.rival.totals[tree.previous < 0].max(initial=0.0) <= 1.0 - p + 1e-12
    if p == 0.0:
        equilibrium = meta_sequence_form_lp(tree).value
        own = equilibrium if player == 0 else tree.utility_sum - equilibrium
        assert found.value == found.against_best == pytest.approx(own, abs=1e-9)
        pair = sides(player, found.strategy, found.rival)
        assert meta_exploitability(tree, pair).nash_conv == pytest.approx(found.gap, abs=1e-12)
    if p == 1.0:
        assert found.value == found.against_model
        assert found.value == pytest.approx(best_precomputation(tree, player).value, abs=1e-9)
        nothing = MetaStrategy.of_set(tree, 1 - player, [])
        assert (found.rival.memorize == nothing.memorize).all()
