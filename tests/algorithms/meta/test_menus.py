"""Both sides with menus: brute force over all pairs of sets with choices, and OpenSpiel's solvers."""

import concurrent.futures
import functools
import math

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import expected_game_score, exploitability, sequence_form_lp

from precomp_games import HistoryTree, Menu, MetaPrecomputationGame, to_efg
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    meta_equilibrium,
    meta_exploitability,
    meta_game_policy,
    meta_sequence_form_lp,
    strategies_from_policy,
    strategy_from_base_policy,
    strategy_from_mixture,
)
from precomp_games.algorithms.meta.equilibrium import CFR_VARIANTS, update_rule
from precomp_games.algorithms.meta.folded_tree import DecisionTree
from precomp_games.algorithms.meta.regret_kernel import RegretState, Work, iterate
from tests.algorithms.meta.test_iterates import _tree as one_entry_tree
from tests.menus import (
    MOST_PAIRS,
    PENALTIES,
    Side,
    chosen,
    matrix_value,
    menu_case,
    menu_tree,
    payoffs,
)
from tests.random_games import random_menu, random_policy, random_tree

_KINDS = {"tree": 90, "efg": 50, "uneven": 30}


@functools.cache
def _solved(kind, seed):
    """(tree, sides, choices, matrix), None where there are too many pairs."""
    game, pre, sigma = menu_case(kind, seed)
    sides = [Side(game, i, pre[i]) for i in (0, 1)]
    if math.prod(side.count() for side in sides) > MOST_PAIRS:
        return None
    choices = [side.choices() for side in sides]
    matrix = payoffs(game, sides, choices, sigma, PENALTIES[seed % 3])
    return menu_tree(kind, seed), sides, choices, matrix


def _cases(kind, least=0):
    """The solved cases in which somebody has a choice of entries."""
    found = [(seed, case) for seed in range(least, _KINDS[kind]) if (case := _solved(kind, seed))]
    return [(seed, *case) for seed, case in found if case[0].has_menus]


def _random_strategies(tree, seed):
    """Both players', with zeros and whole menus among the probabilities; nothing that no entry leads to."""
    rng = np.random.default_rng(seed)
    strategies = []
    for i in (0, 1):
        reached = tree.own_reaches[i][tree.infoset_history] > 0.0
        weights = np.clip(rng.uniform(-0.3, 1.0, tree.num_entries), 0.0, 1.0)
        stop = np.clip(rng.uniform(-0.3, 1.0, tree.num_infosets), 0.0, 1.0)
        total = np.bincount(tree.entry_infoset, weights, tree.num_infosets) + stop
        memorize = weights / np.where(total > 0.0, total, 1.0)[tree.entry_infoset]
        own = (tree.entry_player == i) & reached[tree.entry_infoset]
        strategies.append(MetaStrategy(tree, i, np.where(own, memorize, 0.0)))
    return tuple(strategies)


def _weights(side, tree, strategy, choices):
    """A strategy's mixture over all choices of the oracle."""
    number = {tuple(sorted(choice.items())): k for k, choice in enumerate(choices)}
    weights = np.zeros(len(choices))
    for probability, members in strategy.mixture():
        weights[number[tuple(sorted(chosen(side, tree, members).items()))]] += probability
    return weights


# -- values ----------------------------------------------------------------------------------------


def test_there_are_enough_cases():
    cases = [case for kind in _KINDS for case in _cases(kind)]
    assert len(cases) >= 100
    trees = [tree for _, tree, *_ in cases]
    mixed = [tree for tree in trees if ((tree.sigma_pre > 0.0) & (tree.sigma_pre < 1.0)).any()]
    assert len(mixed) >= 30
    assert sum((tree.player == pyspiel.PlayerId.CHANCE).any() for tree in trees) >= 30
    sizes = [np.diff(tree.first_entry)[tree.infoset_player == i] for tree in trees for i in (0, 1)]
    assert sum((size > 1).any() for size in sizes) >= 120
    assert sum((size > 2).any() for size in sizes) >= 10


@pytest.mark.parametrize("kind", _KINDS)
def test_the_value_of_all_pairs(kind):
    for _, tree, _, _, matrix in _cases(kind):
        value = matrix_value(matrix)
        exact = meta_sequence_form_lp(tree)
        assert exact.value == pytest.approx(value, abs=1e-9)
        assert abs(exact.nash_conv) < 1e-9


@pytest.mark.parametrize("kind", _KINDS)
def test_counterfactual_regret_minimization(kind):
    for seed, tree, _, _, matrix in _cases(kind)[::3]:
        found = meta_equilibrium(tree, variant=CFR_VARIANTS[seed % 4], iterations=400, check_every=400)
        assert abs(found.value - matrix_value(matrix)) <= found.nash_conv + 1e-9
        assert found.nash_conv < 0.02


@pytest.mark.parametrize("kind", _KINDS)
def test_openspiels_linear_program_on_the_audit_form(kind):
    compared = 0
    for _, tree, _, _, matrix in _cases(kind)[::4]:
        game = MetaPrecomputationGame(tree)
        value = sequence_form_lp.solve_zero_sum_game(game)[0] + game.value_shift
        assert value == pytest.approx(matrix_value(matrix), abs=1e-6)  # what its solver promises
        loaded = pyspiel.load_efg_game(to_efg(tree))
        assert sequence_form_lp.solve_zero_sum_game(loaded)[0] + game.value_shift == pytest.approx(
            value, abs=1e-6
        )
        compared += 1
    assert compared >= 5


def test_exploitability_is_the_matrix_games():
    compared = 0
    for kind in _KINDS:
        for seed, _, sides, choices, matrix in _cases(kind)[::3]:
            tree = menu_tree(kind, seed, truncate="none")
            strategies = _random_strategies(tree, seed)
            weights = [_weights(sides[i], tree, strategies[i], choices[i]) for i in (0, 1)]
            measured = meta_exploitability(tree, strategies)
            value = weights[0] @ matrix @ weights[1]
            assert measured.value == pytest.approx(value, abs=1e-10)
            assert measured.incentives[0] == pytest.approx((matrix @ weights[1]).max() - value, abs=1e-10)
            assert measured.incentives[1] == pytest.approx(value - (weights[0] @ matrix).min(), abs=1e-10)
            compared += 1
    assert compared >= 30


@pytest.mark.parametrize("kind", _KINDS)
def test_openspiel_measures_the_audit_form_alike(kind):
    for seed, *_ in _cases(kind)[::4]:
        tree = menu_tree(kind, seed, truncate="none")
        game = MetaPrecomputationGame(tree)
        strategies = _random_strategies(tree, seed)
        ours = meta_exploitability(tree, strategies)
        policy = meta_game_policy(game, strategies)
        value = expected_game_score.policy_value(game.new_initial_state(), [policy, policy])
        assert value[0] + game.value_shift == pytest.approx(ours.value, abs=1e-9)
        cached = pyspiel.convert_to_cached_tree(game)
        assert exploitability.nash_conv(cached, policy) == pytest.approx(ours.nash_conv, abs=1e-9)
        exported = pyspiel.load_efg_game(to_efg(game))
        assert exploitability.nash_conv(exported, policy) == pytest.approx(ours.nash_conv, abs=1e-9)


def test_an_opponent_who_never_memorizes_gives_algorithm_1():
    for seed in range(24):
        kind, player = ("tree", "efg", "uneven")[seed % 3], seed % 2
        penalties = (0.02, math.inf) if player == 0 else (math.inf, 0.02)
        tree = menu_tree(kind, seed, penalties=penalties)
        best = best_precomputation(tree, player)
        own = best.value if player == 0 else tree.utility_sum - best.value
        assert meta_sequence_form_lp(tree).value == pytest.approx(own, abs=1e-9)
        found = meta_equilibrium(tree, iterations=300, check_every=300)
        assert abs(found.value - own) <= found.nash_conv + 1e-9
        assert not found.strategies[1 - player].memorize.any()


# -- iterates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "solver"), [("cfr", pyspiel.CFRSolver), ("cfr+", pyspiel.CFRPlusSolver)])
@pytest.mark.parametrize(
    ("kind", "seed"), [("tree", 7), ("tree", 19), ("efg", 4), ("efg", 15), ("uneven", 2)]
)
def test_the_same_strategies_after_every_iteration(variant, solver, kind, seed):
    tree = menu_tree(kind, seed, penalties=(0.02, 0.03))
    assert tree.has_menus
    game = MetaPrecomputationGame(tree)
    exported = pyspiel.load_efg_game(to_efg(game))
    theirs = solver(exported)
    ours = meta_equilibrium(tree, variant=variant, iterations=20, check_every=1).trace
    for iteration in range(1, 21):
        theirs.evaluate_and_update_policy()
        average = theirs.average_policy()
        expected = pyspiel.nash_conv(exported, average)
        assert ours[iteration - 1][1] == pytest.approx(expected, abs=1e-10)
        if iteration % 5 == 0:
            found = meta_equilibrium(tree, variant=variant, iterations=iteration).strategies
            for mine, other in zip(
                found, strategies_from_policy(game, average, played_on=exported), strict=True
            ):
                np.testing.assert_allclose(mine.plan(), other.plan(), atol=1e-10)


@pytest.mark.parametrize("variant", CFR_VARIANTS)
def test_shards_and_checkpoints_change_nothing(variant, tmp_path):
    sizes = {"tree": random_tree(5, depth=6, actions=3), "leduc": pyspiel.load_game("leduc_poker")}
    for name, game in sizes.items():
        by = "history" if name == "tree" else "infoset"
        tree = HistoryTree.from_game(
            game,
            sigma_pre=(random_menu(1, 2, by), random_menu(2, 3, by)),
            sigma=random_policy(3, "full", by),
            penalties=(0.01, 0.02),
        )
        whole = _folded(tree, variant, 12)
        with concurrent.futures.ThreadPoolExecutor(2) as two:
            for shard in (1, 4, 50):
                alone, shared = (_folded(tree, variant, 12, shard, threads) for threads in (None, two))
                for one, other, third in zip(whole, alone, shared, strict=True):
                    np.testing.assert_allclose(one, other, atol=1e-7)
                    assert other.tobytes() == third.tobytes()
        path = tmp_path / f"{name}.npz"
        straight = meta_equilibrium(tree, variant=variant, iterations=30, check_every=10)
        meta_equilibrium(tree, variant=variant, iterations=20, check_every=10, checkpoint=path)
        rest = meta_equilibrium(tree, variant=variant, iterations=30, check_every=10, checkpoint=path)
        for i in (0, 1):
            memorize = [found.strategies[i].memorize.tobytes() for found in (straight, rest)]
            assert memorize[0] == memorize[1]


def _folded(tree, variant, iterations, shard=None, threads=None):
    """(current, plan_sum) in the tree's order, the tree folded into shards of some size."""
    decisions = DecisionTree.of(tree, shard)
    work = Work.of(decisions)
    start = 1.0 / (1.0 + np.diff(tree.first_entry)[tree.entry_infoset])
    state = RegretState.start(start[decisions.tree_entry])
    rules = [update_rule(variant, t) for t in range(1, iterations + 1)]
    iterate(decisions, state, work, rules, threads)
    assert not work.worth[1:].any() and not work.after[1:].any() and not work.shared.any()
    current, plans = np.empty(len(start)), np.empty(len(start))
    current[decisions.tree_entry], plans[decisions.tree_entry] = state.current, state.plan_sum
    return current, plans


def _one_entry(policy):
    return Menu(lambda state: [policy(state)])


@pytest.mark.parametrize(("kind", "seed"), [("tree", 0), ("tree", 3), ("efg", 1), ("efg", 2)])
def test_menus_of_one_entry_are_policies_to_the_last_bit(kind, seed):
    policies = one_entry_tree(kind, seed, "partial")
    by = "history" if kind == "tree" else "infoset"
    pre = tuple(_one_entry(random_policy(4 * seed + i, "partial", by)) for i in (0, 1))
    menus = HistoryTree.from_game(
        policies.game, sigma_pre=pre, sigma=policies.policies, penalties=policies.penalties
    )
    assert not menus.has_menus and menus.fingerprint == policies.fingerprint
    for variant in CFR_VARIANTS:
        found = [meta_equilibrium(tree, variant=variant, iterations=25) for tree in (policies, menus)]
        assert found[0].trace == found[1].trace
        for i in (0, 1):
            assert len({f.strategies[i].memorize.tobytes() for f in found}) == 1
    exact = [meta_sequence_form_lp(tree) for tree in (policies, menus)]
    assert exact[0].value == exact[1].value
    assert to_efg(policies) == to_efg(menus)


def test_where_nobody_comes_all_actions_are_alike():
    tree = menu_tree("tree", 7, truncate="none")
    first = meta_equilibrium(tree, iterations=1).strategies
    for i in (0, 1):
        starts = np.flatnonzero((tree.infoset_player == i) & (tree.previous < 0))
        for k in starts:
            menu = slice(tree.first_entry[k], tree.first_entry[k + 1])
            np.testing.assert_allclose(first[i].memorize[menu], 1.0 / (1.0 + menu.stop - menu.start))


# -- policies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", _KINDS)
def test_strategies_as_policies_of_the_meta_game_and_back(kind):
    for seed, *_ in _cases(kind)[::4]:
        tree = menu_tree(kind, seed, truncate="none")
        for form in ("audit", "reweighted"):
            game = MetaPrecomputationGame(tree, form, check_supports=False)
            strategies = _random_strategies(tree, seed)
            policy = meta_game_policy(game, strategies)
            asked = _asked(game)
            for back in (
                strategies_from_policy(game, policy),
                strategies_from_policy(game, policy.to_tabular()),
                strategies_from_policy(game, policy.to_pyspiel()),
            ):
                for strategy, original in zip(back, strategies, strict=True):
                    here = np.isin(tree.entry_infoset, asked)
                    expected = np.where(here, original.memorize, 0.0)
                    np.testing.assert_allclose(strategy.memorize, expected, atol=1e-15)
        assert asked or form == "reweighted"


def _asked(game):
    """The information states that G' has."""
    found, stack = set(), [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if not state.is_terminal():
            found.add(state.infoset)
            stack += [state.child(action) for action in state.legal_actions()]
    return sorted(found - {-1})


@pytest.mark.parametrize("kind", _KINDS)
def test_mixtures_and_base_policies_play_the_same(kind):
    for seed, *_ in _cases(kind)[::3]:
        tree = menu_tree(kind, seed, truncate="none")
        for i, strategy in enumerate(_random_strategies(tree, seed)):
            mixed = strategy_from_mixture(tree, i, strategy.mixture())
            np.testing.assert_allclose(mixed.plan(), strategy.plan(), atol=1e-12)
            back = strategy_from_base_policy(tree, i, strategy.policy())
            np.testing.assert_allclose(back.reach(), strategy.reach(), atol=1e-9)
            assert back.expected_size <= strategy.expected_size + 1e-9


def test_the_base_policy_of_a_menu_that_has_sigma_in_it():
    """Where sigma mixes the entries, memorizing them all alike plays what stopping does, and is left out."""
    game = random_tree(2, depth=5, actions=3, chance=0.0)
    uniform = lambda state: {a: 1.0 / len(state.legal_actions()) for a in state.legal_actions()}  # noqa: E731
    tree = HistoryTree.from_game(
        game, sigma_pre=Menu.of_actions(), sigma=uniform, penalties=0.01, truncate="none"
    )
    for i in (0, 1):
        nothing = strategy_from_base_policy(tree, i, uniform)
        assert nothing.expected_size == 0.0
        strategy = _random_strategies(tree, i)[i]
        back = strategy_from_base_policy(tree, i, strategy.policy())
        np.testing.assert_allclose(back.reach(), strategy.reach(), atol=1e-9)
        assert back.expected_size < strategy.expected_size


def test_a_policy_that_no_choice_plays_is_refused():
    tree = menu_tree("tree", 7, truncate="none")
    with pytest.raises(ValueError, match=r"strategy_from_base_policy\(\): expected a policy that some"):
        strategy_from_base_policy(tree, 0, random_policy(99))


def test_wrong_sums_are_refused():
    tree = menu_tree("tree", 7, truncate="none")
    assert tree.has_menus
    with pytest.raises(ValueError, match="add up to at most 1"):
        MetaStrategy(tree, 0, np.ones(tree.num_entries))
