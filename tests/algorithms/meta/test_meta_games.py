"""The meta-game: strategies, policies of them and back, restricted Nash responses, and Theorem 4."""

import functools
import math

import hypothesis
import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import expected_game_score, exploitability
from scipy import stats

from precomp_games import HistoryTree, MetaPrecomputationGame, RolloutValues, make_policy
from precomp_games.algorithms import (
    MetaGamePolicy,
    MetaStrategy,
    best_precomputation,
    memorized_states,
    meta_equilibrium,
    meta_exploitability,
    restricted_nash,
    strategies_from_policy,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from precomp_games.policies.leaf_values import sample_size
from precomp_games.tree.facts import TERMINAL
from tests.oracles.books import states
from tests.oracles.games import SEEDS, expand, random_efg, random_policy, random_tree, sides
from tests.oracles.graphs import follow
from tests.oracles.meta_games import (
    enumerated,
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


# -- Theorem 4, end to end -------------------------------------------------------------------------

_EPSILON, _DELTA = 0.03, 0.1
_COUNT = 44  # runs: enough to show the claim at 99 % if none of them fails
_KINDS = ("tree", "efg")


@functools.cache
def _truth(kind):
    """Return a meta-game that is known, in which sigma_pre is strong and plays several actions."""
    if kind == "tree":
        game, pre = random_tree(394, depth=6, actions=2), "softmax(policy=minimax(depth=6),temperature=0.25)"
    else:
        game, pre = random_efg(30, depth=7), "cfr(iterations=50)"
    prepared, sigma = (make_policy(game, spec).action_probabilities for spec in (pre, "uniform"))
    return enumerated(game, (prepared, prepared), (sigma, sigma), (0.2, 0.2))


def _incentives(truth, strategies):
    """Return each player's gain by a best response to the other's strategy, from the matrix alone."""
    x, y = (truth.mixture(strategy) for strategy in strategies)
    value = x @ truth.payoffs @ y
    return float((truth.payoffs @ y).max() - value), float(value - (x @ truth.payoffs).min())


@functools.cache
def _runs(kind, games=None):
    """Algorithm 2 with seeds 0, 1, ...; K as the theorem has it, or `games`.

    Returns arrays: K, what CFR left, the largest error of a leaf, and each player's true incentive.
    """
    truth = _truth(kind)
    exact = truth.tree
    cut = (exact.num_children == 0) & (exact.player != TERMINAL)
    runs = []
    for seed in range(_COUNT):
        tree = truth.expand(leaf_value=RolloutValues(_EPSILON / 2, _DELTA, games=games, seed=seed))
        found = meta_equilibrium(
            tree, variant="cfr", iterations=20_000, target_nash_conv=_EPSILON / 2, check_every=20
        )
        error = np.abs(tree.value - exact.value)[cut].max()
        games_of_each = tree.work["games_sampled"] // int(cut.sum())
        runs.append((games_of_each, found.nash_conv, error, *_incentives(truth, found.strategies)))
    return np.array(runs).T


def _most_moved(runs):
    """Return the largest change of NashConv, which never exceeds twice the largest error of a leaf."""
    _, estimated, error, *incentives = runs
    moved = np.abs(sum(incentives) - estimated)
    assert (moved <= 2.0 * error + 1e-9).all()
    return moved.max()


@pytest.mark.parametrize("kind", _KINDS)
def test_theorem_4(kind):
    """Theorem 4 end to end: sampled leaves and an approximate equilibrium make an epsilon-equilibrium.

    Algorithm 2 samples the leaves of the truncated tree, K games each, and solves the game that has the
    estimates for values. What is an epsilon-equilibrium: neither player can gain more than epsilon by any
    other mixture of memorization sets in the true meta-game, which is neither sampled nor truncated.

    How epsilon splits. Let every estimate be within eta of its u^sigma. The reaches of a profile's leaves sum
    to 1, so no value of any profile moves by more than eta, nor does the most that a player can get against a
    fixed opponent. NashConv is the sum of both players' best responses (penalties and the constant sum
    cancel), so

        |NashConv - estimated NashConv| <= 2 eta,

    and an incentive is at most NashConv. With eta = epsilon / 4, which is the K of RolloutValues(epsilon / 2,
    delta), and an estimated NashConv of epsilon / 2, NashConv is at most epsilon with probability 1 - delta.
    (The paper has the same constants, x = x' = 4, and adds up the errors of a value and of a best response
    for each player by itself: each incentive is at most epsilon, NashConv 2 epsilon.) The rest of the true
    game makes no difference: what lies outside W is in no best response.

    The true game is known by enumeration: all prefix-closed sets of both players, played out on the base
    game's own states. Observed for epsilon = 0.03, delta = 0.1, with 200 seeds:

        game                            K          epsilon-equilibria   largest incentive   largest NashConv
        perfect information, chance     368,414    200                  0.0059              0.0100
                                        100        200                  0.0157              0.0245
                                        1           48                  0.1229              0.1266
        imperfect information, chance   874,052    200                  0.0063              0.0100
                                        100        200                  0.0180              0.0214
                                        1           59                  0.0501              0.0649

    Hoeffding's inequality and the union bound are generous, and so is 2 eta: leaves are cut where little is
    at stake. With exact leaves CFR would leave at most epsilon / 2, so that what fails for K = 1 is the
    sampling.
    """
    exact, runs = _truth(kind).tree, _runs(kind)
    leaves = exact.work["leaf_evaluations"]
    assert leaves >= 4 and exact.num_infosets < _truth(kind).whole.num_infosets
    games, estimated, error, *incentives = runs
    assert (games == sample_size(_EPSILON / 2, _DELTA, leaves, exact.utility_range)).all()
    assert (estimated <= _EPSILON / 2).all() and _most_moved(runs) > 0.0
    assert (error <= _EPSILON / 4).sum() >= (1.0 - _DELTA) * _COUNT
    # The stronger reading too: NashConv, not only each incentive, is at most epsilon.
    failures = int((sum(incentives) > _EPSILON).sum())
    assert failures <= _DELTA * _COUNT
    # More than that many runs are: at 99 %, the probability of failing is below delta.
    assert stats.beta.ppf(0.99, failures + 1, _COUNT - failures) <= _DELTA


@pytest.mark.parametrize("kind", _KINDS)
def test_one_game_a_leaf_is_not_enough(kind):
    runs = _runs(kind, 1)
    assert (np.maximum(*runs[3:]) > _EPSILON).sum() > _COUNT / 2 > _DELTA * _COUNT
    assert _most_moved(runs) > _EPSILON


@pytest.mark.parametrize("kind", _KINDS)
def test_equilibria_are_mixed(kind):
    """So that it matters to them what is sampled."""
    truth = _truth(kind)
    found = meta_equilibrium(truth.tree, iterations=20_000, target_nash_conv=1e-4)
    assert sum(_incentives(truth, found.strategies)) == pytest.approx(found.nash_conv, abs=1e-9)
    for strategy in found.strategies:
        plan = strategy.realization_plan()
        assert ((plan > 0.05) & (plan < 0.95)).any()
