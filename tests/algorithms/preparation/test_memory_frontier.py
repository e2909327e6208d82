"""The memory frontier and memory budgets against dynamic programming, and Algorithm 1 on a large tree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic_trees import synthetic_tree
from precomp_games.algorithms import best_of_frontier, best_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.frontier import best_within_budget, frontier_of, memory_frontier
from precomp_games.tree.facts import Forest
from tests.oracles.games import SEEDS, expand, policy_pairs, random_policy, random_tree
from tests.oracles.preparation import one_sided
from tests.properties import examples


def _random_gains(seed, size, back, whole):
    """A forest with random gains; whole numbers tie. back: how far an entry is from the one before it."""
    rng = np.random.default_rng(seed)
    previous = np.array([rng.integers(max(-1, k - back), k) if k else -1 for k in range(size)], np.int32)
    gain = rng.integers(-2, 4, size).astype(float) if whole else rng.normal(0.02, 1.0, size)
    forest = Forest.of_player_0(np.arange(size + 1, dtype=np.int32), previous, 0.0)
    alike = np.ones(size), np.zeros(size), np.append(0.0, gain)
    return Decisions(forest, 0, *alike, np.ones(1), np.zeros(1), 0.0)


def _best_by_size(gains):
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


@examples(640)
@given(st.builds(_random_gains, SEEDS, st.integers(1, 120), st.integers(1, 120), st.booleans()))
def test_thresholds_and_budgets_against_dynamic_programming(gains):
    gain, previous = gains.gains()[0], gains.forest.previous
    frontier = frontier_of(gains)
    threshold, after = frontier.threshold, previous >= 0
    assert (threshold[after] <= threshold[previous[after]]).all()
    for penalty in np.linspace(-2.0, 3.0, 20) + 0.01:
        net = gain - penalty
        for k in range(len(gain) - 1, -1, -1):
            if previous[k] >= 0:
                net[previous[k]] += max(0.0, net[k])
        chosen = net > 0.0
        for k in range(len(gain)):
            chosen[k] &= previous[k] < 0 or chosen[previous[k]]
        assert (chosen == (threshold > penalty)).all()
    expected = np.maximum.accumulate(_best_by_size(gains))
    for budget in range(0, len(expected), 1 + len(expected) // 10):
        found = best_within_budget(frontier, budget)
        assert found.utility == pytest.approx(expected[budget], abs=1e-9)
        members = np.flatnonzero(found.chosen)
        assert len(members) <= budget
        assert gain[members].sum() == pytest.approx(found.utility, abs=1e-9)
        before = previous[members]
        assert found.chosen[before[before >= 0]].all()


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
