"""The memory frontier and memory budgets against enumeration, dynamic programming and Algorithm 1."""

import math

import numpy as np
import pytest

from benchmarks.synthetic_trees import synthetic_tree
from precomp_games import HistoryTree
from precomp_games.algorithms import MetaStrategy, best_of_frontier, best_precomputation, meta_equilibrium
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.frontier import best_within_budget, frontier_of, memory_frontier
from precomp_games.tree.facts import Forest
from tests.oracles.games import SUPPORTS, expand, policy_pairs, random_case, random_policy, random_tree
from tests.oracles.preparation import all_sets, check_budgets, check_frontier, one_sided


def _sizes(sets):
    """[(size, utility)] of all sets."""
    return [(len(names), utility) for names, utility in sets.items()]


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_against_all_sets(kind, cases):
    seeds = cases(120)
    bends = inner = 0
    for seed in range(seeds):
        actions = 2 + seed % 2 if kind == "tree" else 2
        game, pre, sigma = random_case(kind, seed, SUPPORTS[seed % 3], depth=3 + seed % 2, actions=actions)
        for player in (0, 1):
            if found := _sizes(all_sets(game, player, pre, sigma)):
                tree = one_sided(game, player, pre, sigma, truncate="none")
                bends += check_frontier(memory_frontier(tree, player), found)
                inner += check_budgets(memory_frontier(tree, player), found)
    assert bends >= seeds / 2
    assert inner


def test_against_a_strategy_of_the_opponent(cases):
    """The opponent's equilibrium, and strategies drawn at random, played out as behavioral policies."""
    games = memorized = 0
    for seed in range(cases(32)):
        game = random_tree(seed, depth=4, actions=2)
        pre, sigma = policy_pairs(seed, "partial")
        tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.02, truncate="none")
        strategies: tuple[MetaStrategy, ...] = meta_equilibrium(tree, iterations=100).strategies
        if seed % 2:
            rng = np.random.default_rng(seed)
            strategies = tuple(MetaStrategy(tree, i, rng.random(tree.num_infosets)) for i in (0, 1))
        for player in (0, 1):
            rival = strategies[1 - player]
            policies = [sigma[0], sigma[1]]
            policies[1 - player] = rival.policy().action_probabilities
            found = _sizes(all_sets(game, player, pre, policies))
            if not found:
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
            check_budgets(frontier, found, opponent=rival)
            games += 1
    assert games >= cases(32)
    assert memorized >= cases(32)


# -- larger trees ----------------------------------------------------------------------------------------


def _random_gains(seed: int, m: int) -> Decisions:
    """A forest with random gains, two in three of them unprofitable by themselves in every third forest."""
    rng = np.random.default_rng(seed)
    back = max(1, m // (1 + seed % 5))
    previous = np.array([rng.integers(max(-1, k - back), k) if k else -1 for k in range(m)], np.int32)
    gain = rng.normal(0.02, 1.0, m) if seed % 3 else rng.integers(-2, 4, m).astype(float)
    after = np.append(0.0, gain)
    forest = Forest.of_player_0(np.arange(m + 1, dtype=np.int32), previous, 0.0)
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


def test_thresholds_against_dynamic_programming(cases):
    """500 forests, 20 penalties each."""
    for seed in range(cases(500)):
        gains = _random_gains(seed, 1 + seed % 60)
        gain, previous = gains.gains()[0], gains.forest.previous
        threshold = frontier_of(gains).threshold
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


def test_budgets_against_dynamic_programming(cases):
    inner = settled = 0
    for seed in range(0, 150, 150 // cases(150)):
        gains = _random_gains(seed, 5 + seed)
        expected = np.maximum.accumulate(_best_by_size(gains))
        frontier = frontier_of(gains)
        for budget in range(0, len(expected), 1 + seed // 10):
            found = best_within_budget(frontier, budget)
            assert found.utility == pytest.approx(expected[budget], abs=1e-9)
            members = np.flatnonzero(found.chosen)
            assert len(members) <= budget
            assert gains.gains()[0][members].sum() == pytest.approx(found.utility, abs=1e-9)
            before = gains.forest.previous[members]
            assert found.chosen[before[before >= 0]].all()
            inner += found.open > 0
            settled += 0 < found.open < len(gains.forest.previous)
    assert inner >= cases(200) and settled >= cases(100)


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


# -- limits ----------------------------------------------------------------------------------------------


def test_a_budget_that_is_too_hard_names_who_was_asked(monkeypatch):
    monkeypatch.setattr("precomp_games.algorithms.preparation.frontier._MOST_OPEN", 0)
    tree = expand(random_tree(2), random_policy(2), random_policy(3), 1e-3)
    with pytest.raises(ValueError, match=r"^best_precomputation\(\): .* less is left open than 0 .*, got 1;"):
        best_precomputation(tree, 0, budget=1)
    with pytest.raises(ValueError, match=r"^best_of_frontier\(\): .* less is left open than 0 .*, got 1;"):
        best_of_frontier(memory_frontier(tree, 0), 1)


def test_a_player_who_never_memorizes():
    tree = one_sided(random_tree(1), 1, *policy_pairs(1), 0.1)
    frontier = memory_frontier(tree, 0)
    assert frontier.sizes.tolist() == [0] and len(frontier.breakpoints) == 0 and frontier.exact_size == 0
    best = best_precomputation(tree, 0, budget=5)
    assert best.size == 0 and best.utility == pytest.approx(frontier.unprepared)
    assert best.truncation_loss > 0.0  # what it could have memorized is not in the tree
    alone = best_precomputation(tree, 0)
    assert alone.size == 0 and alone.value == alone.utility == alone.unprepared
