"""The memory frontier and memory budgets against enumeration, dynamic programming and Algorithm 1."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from benchmarks.synthetic_trees import synthetic_tree
from precomp_games import HistoryTree
from precomp_games.algorithms import MetaStrategy, best_of_frontier, best_precomputation, meta_equilibrium
from precomp_games.algorithms.preparation.budget import best_within_budget
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.frontier import frontier_of, memory_frontier
from precomp_games.tree_facts import Forest
from tests import reference
from tests.random_games import random_efg, random_policy, random_tree

_TINY = 1e-9  # a penalty that cuts nothing


def _penalties(player: int, penalty: float) -> tuple[float, float]:
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


def _all_sets(game, player, pre, sigma):
    """[(size, utility)] of every prefix-closed set, by playing it out; None where there are too many."""
    parents = reference.predecessors(game, player)
    if reference.count_prefix_closed_sets(parents) > 150:
        return None
    sets = list(reference.prefix_closed_sets(parents))
    utilities = reference.own_utilities(game, player, sets, pre, sigma)
    return list(zip(map(len, sets), utilities.tolist(), strict=True))


def _check_frontier(frontier, found) -> int:
    """Every penalty at and between breakpoints, beside all sets; returns the number of breakpoints."""
    points = frontier.breakpoints[frontier.breakpoints > frontier.penalty]  # others are rounding
    between = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    ends = [points[0] * 2, max(points[-1] / 2, frontier.penalty)] if len(points) else [0.1]
    for penalty in [*points, *between, *ends]:
        value = max(utility - penalty * size for size, utility in found)
        at = frontier.at(penalty)
        assert at.value == pytest.approx(value, abs=1e-9)
        assert at.size == len(at.memorization_set)
        ties = [size for size, utility in found if utility - penalty * size > value - 1e-10]
        assert at.size == min(ties)
    for size, utility in found:
        assert frontier.upper_bound(size) >= utility - 1e-9
    assert (np.diff(points) < 0.0).all()
    return len(points)


def _check_budgets(tree, player, found, opponent=None) -> int:
    """Every budget beside all sets; returns for how many the set is none of the frontier's."""
    inner = 0
    frontier = memory_frontier(tree, player, opponent=opponent)
    for budget in range(max(size for size, _ in found) + 2):
        best = best_precomputation(tree, player, budget=budget, opponent=opponent)
        expected = max(utility for size, utility in found if size <= budget)
        assert best.utility == best.value == pytest.approx(expected, abs=1e-9)
        assert best.size <= budget and best.penalty == 0.0 and best.budget == budget
        own = MetaStrategy.of_set(tree, player, best.memorization_set)  # refuses sets that are not closed
        assert own.expected_size == best.size
        assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
        assert best.truncation_loss == 0.0  # nothing was cut
        inner += best.size not in frontier.sizes
    return inner


def test_perfect_information_against_all_sets():
    games = bends = inner = 0
    for seed in range(200):
        game = random_tree(seed, depth=3 + seed % 2, actions=2 + seed % 2)
        support = ("full", "partial", "pure")[seed % 3]
        pre = tuple(random_policy(4 * seed + i, support) for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, support) for i in (0, 1))
        for player in (0, 1):
            found = _all_sets(game, player, pre, sigma)
            if found is None:
                continue
            tree = HistoryTree.from_game(
                game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, _TINY), truncate="none"
            )
            bends += _check_frontier(memory_frontier(tree, player), found)
            inner += _check_budgets(tree, player, found)
            games += 1
    assert games >= 200
    assert bends >= 200
    assert inner >= 30


def test_imperfect_information_against_all_sets():
    games = bends = 0
    for seed in range(70):
        game = random_efg(seed, depth=3 + seed % 2)
        pre = tuple(random_policy(4 * seed + i, "partial", "infoset") for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, "full", "infoset") for i in (0, 1))
        for player in (0, 1):
            found = _all_sets(game, player, pre, sigma)
            if found is None:
                continue
            tree = HistoryTree.from_game(
                game, sigma_pre=pre, sigma=sigma, penalties=_penalties(player, _TINY), truncate="none"
            )
            bends += _check_frontier(memory_frontier(tree, player), found)
            _check_budgets(tree, player, found)
            games += 1
    assert games >= 80
    assert bends >= 60


def test_against_a_strategy_of_the_opponent():
    """The opponent's equilibrium, and strategies drawn at random, played out as behavioral policies."""
    games = memorized = 0
    for seed in range(30):
        game = random_tree(seed, depth=4, actions=2)
        pre = tuple(random_policy(4 * seed + i, "partial") for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, "partial") for i in (0, 1))
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.02, truncate="none")
        strategies: tuple[MetaStrategy, ...] = meta_equilibrium(tree, iterations=100).strategies
        if seed % 2:
            rng = np.random.default_rng(seed)
            strategies = tuple(MetaStrategy(tree, i, rng.random(tree.num_infosets)) for i in (0, 1))
        for player in (0, 1):
            rival = strategies[1 - player]
            policies = [sigma[0], sigma[1]]
            policies[1 - player] = rival.policy().action_probabilities
            found = _all_sets(game, player, pre, policies)
            if found is None:
                continue
            frontier = memory_frontier(tree, player, opponent=rival)
            assert frontier.unprepared == pytest.approx(found[0][1], abs=1e-9)
            points = [penalty for penalty in (0.02, 0.05, 0.1, *frontier.breakpoints) if penalty >= 0.02]
            for penalty in points:
                value = max(utility - penalty * size for size, utility in found)
                assert frontier.at(penalty).value == pytest.approx(value, abs=1e-9)
                larger = tree.with_penalties((penalty, penalty))
                moved = MetaStrategy(larger, 1 - player, rival.memorize)
                best = best_precomputation(larger, player, opponent=moved)
                assert best.value == pytest.approx(value, abs=1e-9)
                memorized += best.size > 0
            _check_budgets(tree, player, found, rival)
            games += 1
    assert games >= 40
    assert memorized >= 40


# -- larger trees ----------------------------------------------------------------------------------------


def _random_gains(seed: int, m: int) -> Decisions:
    """A forest with random gains, two in three of them unprofitable by themselves in every third forest."""
    rng = np.random.default_rng(seed)
    back = max(1, m // (1 + seed % 5))
    previous = np.array([rng.integers(max(-1, k - back), k) if k else -1 for k in range(m)], np.int32)
    gain = rng.normal(0.02, 1.0, m) if seed % 3 else rng.integers(-2, 4, m).astype(float)
    after = np.append(0.0, gain)
    forest = Forest(np.arange(m + 1, dtype=np.int32), previous)
    return Decisions(forest, 0, np.ones(m), np.zeros(m), after, np.ones(1), np.zeros(1), 0.0)


def _best_by_size(gains: Decisions) -> np.ndarray:
    """Greatest sum of gains of exactly b members, for all b: children are merged from the leaves up."""
    gain, previous = gains.gains()[0], gains.forest.previous
    tables = {k: np.zeros(1) for k in range(-1, len(gain))}

    def merge(one, two):
        both = np.full(len(one) + len(two) - 1, -math.inf)
        for b, value in enumerate(two):
            both[b : b + len(one)] = np.maximum(both[b : b + len(one)], one + value)
        return both

    for k in range(len(gain) - 1, -1, -1):
        with_k = np.append(0.0, gain[k] + tables.pop(k))
        tables[int(previous[k])] = merge(tables[int(previous[k])], with_k)
    return tables[-1]


def test_thresholds_against_dynamic_programming():
    """500 forests, 20 penalties each."""
    for seed in range(500):
        gains = _random_gains(seed, 1 + seed % 60)
        gain, previous = gains.gains()[0], gains.forest.previous
        threshold = frontier_of(gains, "test").threshold
        after = previous >= 0
        assert (threshold[after] <= threshold[previous[after]]).all()
        for penalty in np.random.default_rng(seed).uniform(-2.0, 3.0, 20):
            net = gain - penalty
            for k in range(len(gain) - 1, -1, -1):
                if previous[k] >= 0:
                    net[previous[k]] += max(0.0, net[k])
            chosen = net > 0.0
            for k in range(len(gain)):
                chosen[k] &= previous[k] < 0 or chosen[previous[k]]
            assert (chosen == (threshold > penalty)).all()


def test_budgets_against_dynamic_programming():
    inner = settled = 0
    for seed in range(150):
        gains = _random_gains(seed, 5 + seed)
        expected = np.maximum.accumulate(_best_by_size(gains))
        frontier = frontier_of(gains, "test")
        for budget in range(0, len(expected), 1 + seed // 10):
            found = best_within_budget(gains, frontier, budget, "test")
            assert found.utility == pytest.approx(expected[budget], abs=1e-9)
            members = np.flatnonzero(found.chosen)
            assert len(members) <= budget
            assert gains.gains()[0][members].sum() == pytest.approx(found.utility, abs=1e-9)
            before = gains.forest.previous[members]
            assert found.chosen[before[before >= 0]].all()
            inner += found.open > 0
            settled += 0 < found.open < len(gains.forest.previous)
    assert inner >= 200 and settled >= 100


def test_against_algorithm_1_on_100000_histories():
    tree = synthetic_tree(100_000)
    assert tree.num_histories >= 90_000
    frontier = memory_frontier(tree, 0)
    sizes = set()
    for penalty in np.geomspace(tree.penalties[0], frontier.breakpoints[0] * 1.5, 50):
        best = best_precomputation(tree.with_penalties((float(penalty), math.inf)), 0)
        at = frontier.at(float(penalty))
        assert at.value == pytest.approx(best.value, abs=1e-11)
        assert at.utility == pytest.approx(best.utility, abs=1e-11)
        assert at.memorization_set.tolist() == best.memorization_set.tolist()
        sizes.add(best.size)
    assert len(sizes) > 25 and max(sizes) > 200 and min(sizes) == 0
    for size, utility in list(zip(frontier.sizes, frontier.utilities, strict=True))[:200:10]:
        assert best_precomputation(tree, 0, budget=int(size)).utility == pytest.approx(utility, abs=1e-11)


def test_budgets_on_100000_histories_lie_under_the_curve_and_grow():
    tree = synthetic_tree(100_000)
    frontier = memory_frontier(tree, 0)
    before = -math.inf
    for budget in (1, 2, 3, 5, 10, 30, 100, 101, 102, 300, 1000, 3000):
        best = best_precomputation(tree, 0, budget=budget)
        again = best_of_frontier(frontier, budget)
        assert (again.memorization_set == best.memorization_set).all() and again.utility == best.utility
        assert (again.budget, again.truncation_loss) == (best.budget, best.truncation_loss)
        assert best.size <= budget
        assert before <= best.utility <= frontier.upper_bound(budget) + 1e-12
        before = best.utility


# -- what truncation can have cost -----------------------------------------------------------------------


def _evaluation(state) -> float:
    """A function of the history, and no martingale."""
    if state.is_terminal():
        return float(state.returns()[0])
    return float(np.random.default_rng([len(state.history()), *state.history()]).uniform(-1.0, 2.0))


@pytest.mark.parametrize(
    "options", [{}, {"leaf_value": _evaluation, "stop_value": "evaluate", "truncate": "values"}]
)
def test_truncation_loss_holds_against_the_whole_tree(options):
    """Cut by reach, and by what evaluations rule out."""
    cut = lossy = 0
    for seed in range(60):
        game = random_tree(seed, depth=6, actions=2)
        pre = tuple(random_policy(4 * seed + i, "partial") for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, "full") for i in (0, 1))
        whole = HistoryTree.from_game(
            game, sigma_pre=pre, sigma=sigma, penalties=(_TINY, math.inf), **(options | {"truncate": "none"})
        )
        for penalty in (0.05, 0.2):
            tree = HistoryTree.from_game(
                game, sigma_pre=pre, sigma=sigma, penalties=(penalty, math.inf), **options
            )
            frontier = memory_frontier(tree, 0)
            for budget in range(0, 12):
                best = best_precomputation(tree, 0, budget=budget)
                true = best_precomputation(whole, 0, budget=budget)
                assert true.truncation_loss == 0.0
                assert best.utility <= true.utility + 1e-9
                assert true.utility <= best.utility + best.truncation_loss + 1e-9
                if budget in frontier.sizes and budget <= frontier.exact_size:
                    assert true.utility == pytest.approx(best.utility, abs=1e-9)
                cut += best.truncation_loss > 0.0
                lossy += true.utility > best.utility + 1e-9
    assert cut > 100 and lossy > 20


def test_the_curve_starts_with_the_best_single_steps_and_ends_at_the_tree_s_penalty():
    game = random_tree(3, depth=6)
    pre, sigma = random_policy(1), random_policy(2)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(0.001, math.inf))
    frontier = memory_frontier(tree, 0)
    best = best_precomputation(tree, 0)
    assert frontier.exact_size == best.size == frontier.at(0.001).size
    assert frontier.unprepared == pytest.approx(best.unprepared, abs=1e-12)
    slopes = np.diff(frontier.utilities) / np.diff(frontier.sizes)
    assert slopes == pytest.approx(frontier.breakpoints)


# -- bad input -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree() -> HistoryTree:
    return HistoryTree.from_game(
        random_tree(1), sigma_pre=random_policy(1), sigma=random_policy(2), penalties=(0.1, 0.1)
    )


@pytest.mark.parametrize("budget", [-1, 1.5, "3", True, math.inf, math.nan])
def test_bad_budget(tree, budget):
    message = r"best_precomputation\(\): expected budget to be an integer of at least 0, got"
    with pytest.raises(ValueError, match=message):
        best_precomputation(tree, 0, budget=budget)


def test_a_budget_that_is_too_hard_names_who_was_asked(monkeypatch):
    monkeypatch.setattr("precomp_games.algorithms.preparation.budget._MOST_OPEN", 0)
    sigma_pre, sigma = random_policy(2), random_policy(3)
    tree = HistoryTree.from_game(random_tree(2), sigma_pre=sigma_pre, sigma=sigma, penalties=1e-3)
    with pytest.raises(ValueError, match=r"^best_precomputation\(\): .* less is left open than 0 .*, got 1;"):
        best_precomputation(tree, 0, budget=1)
    with pytest.raises(ValueError, match=r"^best_of_frontier\(\): .* less is left open than 0 .*, got 1;"):
        best_of_frontier(memory_frontier(tree, 0), 1)


@pytest.mark.parametrize("budget", [100, 10**30])
def test_a_budget_beyond_all_there_is(tree, budget):
    best = best_precomputation(tree, 0, budget=budget)
    assert best.utility == pytest.approx(memory_frontier(tree, 0).utilities[-1]) and best.budget == budget


def test_no_budget_is_no_set(tree):
    best = best_precomputation(tree, 0, budget=0)
    assert best.size == 0 and best.utility == best.unprepared and best.truncation_loss == 0.0


@pytest.mark.parametrize("penalty", [0.05, -1.0, math.nan, "0.1", None, True])
def test_bad_penalty(tree, penalty):
    small = penalty in (0.05, -1.0)
    message = "a penalty of at least 0.1, for which" if small else "penalty to be a number, got"
    with pytest.raises(ValueError, match=rf"MemoryFrontier.at\(\): expected {message}"):
        memory_frontier(tree, 0).at(penalty)


@pytest.mark.parametrize("size", [-1, math.nan, "1", None, True, [1, -1], [[1], [1, 2]], [1, None]])
def test_bad_size(tree, size):
    message = r"MemoryFrontier.upper_bound\(\): expected sizes to be numbers of at least 0, got"
    with pytest.raises(ValueError, match=message):
        memory_frontier(tree, 0).upper_bound(size)


def test_an_infinite_penalty_is_the_empty_set(tree):
    at = memory_frontier(tree, 0).at(math.inf)
    assert at.size == 0 and at.value == at.utility == memory_frontier(tree, 0).unprepared


@pytest.mark.parametrize("call", [memory_frontier, best_precomputation])
def test_bad_arguments(tree, call):
    name = call.__name__
    with pytest.raises(ValueError, match=rf"{name}\(\): expected tree to be a HistoryTree"):
        call("tree", 0)
    with pytest.raises(ValueError, match=rf"{name}\(\): expected player 0 or 1"):
        call(tree, 2)
    own = MetaStrategy(tree, 0, np.zeros(tree.num_infosets))
    for opponent in (own, "sigma", np.zeros(tree.num_infosets)):
        with pytest.raises(
            ValueError, match=rf"{name}\(\): expected opponent to be a MetaStrategy of player 1"
        ):
            call(tree, 0, opponent=opponent)
    another = HistoryTree.from_game(
        random_tree(1), sigma_pre=random_policy(1), sigma=random_policy(3), penalties=0.1
    )
    with pytest.raises(ValueError, match=rf"{name}\(\): expected strategies on HistoryTree.* another tree"):
        call(tree, 0, opponent=MetaStrategy.of_set(another, 1, []))
    evaluated = HistoryTree.from_game(
        random_tree(1),
        sigma_pre=random_policy(1),
        sigma=random_policy(2),
        penalties=(0.1, math.inf),
        stop_value="evaluate",
        truncate="values",
    )
    other = dataclasses.replace(own, player=1)
    with pytest.raises(ValueError, match=rf'{name}\(\): expected a HistoryTree with stop_value="backup"'):
        call(evaluated, 0, opponent=other)


def test_a_player_who_never_memorizes():
    tree = HistoryTree.from_game(
        random_tree(1), sigma_pre=random_policy(1), sigma=random_policy(2), penalties=(math.inf, 0.1)
    )
    frontier = memory_frontier(tree, 0)
    assert frontier.sizes.tolist() == [0] and len(frontier.breakpoints) == 0 and frontier.exact_size == 0
    best = best_precomputation(tree, 0, budget=5)
    assert best.size == 0 and best.utility == pytest.approx(frontier.unprepared)
    assert best.truncation_loss > 0.0  # what it could have memorized is not in the tree
