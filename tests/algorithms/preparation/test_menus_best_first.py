"""Menus where the tree grows best first: both orders, budgets, and certificates by roll-outs."""

from __future__ import annotations

import functools
import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import (
    Decisions,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    memory_frontier,
)
from precomp_games.algorithms.preparation.partial_tree import PreparationProblem
from tests.algorithms.preparation.test_certified_sampling import rounds_by_the_formula
from tests.random_games import random_menu, random_policy, random_tree


def _evaluation(state: Any) -> float:
    """A function of the history; not consistent, as an engine's are not."""
    if state.is_terminal():
        return float(state.returns()[0])
    return float(np.random.default_rng([5, *state.history()]).uniform(0.0, 1.0))


@functools.cache
def _case(seed: int) -> tuple[Any, Menu, Any, int]:
    game = random_tree(seed, depth=7, actions=3)
    return game, random_menu(seed, by="or_nothing"), random_policy(seed + 7, "partial"), seed % 2


@functools.cache
def _tree(seed: int, penalty: float, evaluated: bool = True) -> HistoryTree:
    game, menu, sigma, player = _case(seed)
    more = {"leaf_value": _evaluation, "stop_value": "evaluate"} if evaluated else {}
    return HistoryTree.from_game(
        game,
        sigma_pre=(menu, None) if player == 0 else (None, menu),
        sigma=sigma,
        penalties=(penalty, math.inf) if player == 0 else (math.inf, penalty),
        truncate="none",
        **more,
    )


def _found(seed: int, penalty: float, **options: Any) -> Any:
    game, menu, sigma, player = _case(seed)
    return best_first_precomputation(game, menu, sigma, penalty, player, _evaluation, **options)


def _entries(tree: HistoryTree, found: Any) -> list[int]:
    """What a result memorizes, as entries of the whole tree."""
    members = []
    for actions, row in zip(found.histories, found.rows, strict=True):
        history = tree.find(actions)
        entry = next(int(tree.edge_entry[c]) for c in tree.children(history) if int(tree.action[c]) in row)
        assert tree.memorized_row(entry) == pytest.approx(row)
        members.append(entry)
    return members


def _worth(tree: HistoryTree, player: int, members: list[int], penalty: float) -> float:
    """By the tree: utility less penalties."""
    best = best_precomputation(tree, player, budget=0)
    gain = float(Decisions.against(tree, player).gains()[0][members].sum())
    return best.unprepared + gain - penalty * len(members)


@pytest.mark.parametrize("penalty", [0.02, 0.1])
def test_the_certified_order_ends_at_algorithm_1(penalty):
    fewer = several = 0
    for seed in range(40):
        tree, player = _tree(seed, penalty), _case(seed)[3]
        expected = best_precomputation(tree, player)
        found = _found(seed, penalty, gap=0.0)
        assert found.reached and found.gap == pytest.approx(0.0, abs=1e-12)
        assert found.lower == pytest.approx(expected.value, abs=1e-12)
        assert _worth(tree, player, _entries(tree, found), penalty) == pytest.approx(found.lower, abs=1e-12)
        fewer += found.work["evaluations"] < tree.work["leaf_evaluations"]
        several += tree.has_menus
    assert fewer > 20 and several > 20


def test_intervals_hold_whenever_one_looks():
    for seed in range(25):
        player, seen = _case(seed)[3], []
        best = best_precomputation(_tree(seed, 0.03), player).value
        for order in ("certified", "optimistic"):
            found = _found(
                seed,
                0.03,
                gap=0.0,
                order=order,
                batch=2,
                progress=lambda n, low, up, to=seen: to.append((low, up)),
            )
            assert found.lower - 1e-12 <= best <= found.upper + 1e-12
        assert all(low - 1e-12 <= best <= up + 1e-12 for low, up in seen)


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_budgets_are_exact_on_what_was_opened_and_bounded_beyond(order):
    capped = 0
    for seed in range(25):
        player, whole = _case(seed)[3], _tree(seed, 1e-9)
        for budget in (0, 1, 2, 3, 5):
            best = best_precomputation(whole, player, budget=budget).utility
            found = _found(seed, 0.02, gap=0.0, order=order, budget=budget)
            assert found.size <= budget and found.penalty == 0.0
            assert found.lower <= best + 1e-12
            assert best <= found.upper + 1e-12
            members = _entries(whole, found)
            # What has not been evaluated counts as little as possible.
            assert _worth(whole, player, members, 0.0) >= found.lower - 1e-12
            capped += len(members) == budget > 0
    assert capped > 20


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_a_tree_of_what_was_opened(order):
    """`HistoryTree.from_game` for what best-first preparation leaves behind: frontier and budgets."""
    for seed in range(12):
        game, _, sigma, player = _case(seed)
        found = _found(seed, 0.02, gap=0.0, order=order)
        pre, penalties = (found.menu, None), (0.02, math.inf)
        tree = HistoryTree.from_game(
            game,
            sigma_pre=pre if player == 0 else pre[::-1],
            sigma=sigma,
            penalties=penalties if player == 0 else penalties[::-1],
            leaf_value=_evaluation,
            stop_value="evaluate",
            truncate="none",
        )
        assert tree.num_infosets <= found.work["opened"]  # some menus are empty
        best = best_precomputation(tree, player)
        assert best.value >= found.lower - 1e-12
        if order == "certified":
            assert best.value == pytest.approx(found.lower, abs=1e-12)
        assert memory_frontier(tree, player).at(0.02).value == pytest.approx(best.value, abs=1e-12)
        copied, start = pickle.loads(pickle.dumps(found.menu)), game.new_initial_state()
        assert copied.entries_batch([start]) == found.menu.entries_batch([start])


def test_fewer_evaluations_in_the_optimistic_order():
    """On games where it has something to leave out, it does, and is told what it may have missed."""
    certified = optimistic = 0
    for seed in range(25):
        certified += _found(seed, 0.005, gap=0.0).work["evaluations"]
        quick = _found(seed, 0.005, gap=0.0, order="optimistic")
        optimistic += quick.work["evaluations"]
    assert optimistic < 0.8 * certified


def test_alternatives_say_what_choosing_them_would_cost():
    told = 0
    for seed in range(20):
        tree, player = _tree(seed, 0.02), _case(seed)[3]
        best = best_precomputation(tree, player)
        for state in best.states():
            rows = [tree.memorized_row(state.entry), *(other.row for other in state.alternatives)]
            assert sum(map(len, rows)) == len(set().union(*rows))
            for other in state.alternatives:
                assert other.loss >= -1e-12
                told += 1
        # Taking the alternative at the first state, and Algorithm 1 after it, loses so much.
        for state in list(best.states())[:1]:
            for other in state.alternatives:
                game, menu, sigma, _ = _case(seed)
                first = state.actions

                def only(at: Any, row: Any = other.row, menu: Menu = menu, first: Any = first) -> Any:
                    return [row] if tuple(at.history()) == first else menu.entries(at)

                forced = best_first_precomputation(
                    game, Menu(only), sigma, 0.02, player, _evaluation, gap=0.0
                )
                assert forced.lower >= best.value - other.loss - 1e-12
                if first in forced.histories:  # and elsewhere stopping is better than this entry
                    assert forced.lower == pytest.approx(best.value - other.loss, abs=1e-12)
    assert told > 20


# -- roll-outs -------------------------------------------------------------------------------------------


def test_every_choice_is_bounded_by_hoeffding_and_priors_add_up_to_one(monkeypatch):
    counts = []
    for seed in range(12):
        game = random_tree(seed, depth=4, actions=3)
        problem = PreparationProblem.checked(
            "test", game, random_menu(seed), random_policy(seed + 1000), 0.05, seed % 2, None, 1e-12
        )
        counts += rounds_by_the_formula(problem, seed, 2, monkeypatch)
    assert len(counts) == 24 and sum(count > 10 for count in counts) > 8


@pytest.mark.test_all("a frequency of many runs")
def test_300_certificates_with_menus():
    """Ten games, 30 runs each: at no moment more misses than delta (one-sided binomial test at 1e-3)."""
    delta, misses, runs, several = 0.2, 0, 0, 0
    for seed in range(10):
        game, menu, sigma, player = _case(seed)
        whole = _tree(seed, 0.05, evaluated=False)
        several += whole.has_menus
        best = best_precomputation(whole, player).value
        for repetition in range(30):
            seen: list[tuple[float, float]] = []
            found = certified_precomputation(
                game, menu, sigma, 0.05, player, epsilon=0.3, delta=delta, seed=repetition,
                progress=lambda games, lower, upper, seen=seen: seen.append((lower, upper)),
            )  # fmt: skip
            assert found.reached and found.gap <= 0.3
            worth = _worth(whole, player, _entries(whole, found), 0.05)
            wrong = not found.lower - 1e-9 <= worth <= best + 1e-9
            wrong |= any(not lower - 1e-9 <= best <= upper + 1e-9 for lower, upper in seen)
            misses += wrong
            runs += 1
    assert runs == 300 and several >= 8
    assert scipy.stats.binomtest(misses, runs, delta, alternative="greater").pvalue > 1e-3
    print(f"{misses} misses in {runs} runs, delta = {delta}")
