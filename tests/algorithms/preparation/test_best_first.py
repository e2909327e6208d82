"""Trees that grow best first, by evaluations: both orders, budgets and menus against the whole tree."""

import itertools
import pickle

import pytest

from precomp_games import Menu
from precomp_games.algorithms import best_first_precomputation, best_precomputation, memory_frontier
from tests.oracles.preparation import evaluation, one_sided, setting, whole_tree, worth


def _found(kind, seed, penalty, **options):
    game, pre, sigma, player = setting(kind, seed)
    return best_first_precomputation(game, pre, sigma, penalty, player, evaluation(seed), **options)


@pytest.mark.parametrize("kind", ["policy", "menu"])
def test_against_algorithm_1(kind, cases):
    """Each set's value is in its interval; without a gap, the set is the best one, by fewer evaluations."""
    seeds = cases(40)
    fewer = 0
    for seed in range(seeds):
        for penalty in (0.02, 0.1):
            tree, player = whole_tree(kind, seed, penalty), seed % 2
            best = best_precomputation(tree, player)
            for gap in (0.0, 0.1, 0.5):
                found = _found(kind, seed, penalty, gap=gap, batch=(1, 8)[seed // 2 % 2])
                assert found.reached and found.gap <= gap + 1e-9
                assert found.lower - 1e-9 <= best.value <= found.upper + 1e-9
                assert found.lower - 1e-9 <= worth(tree, found) <= best.value + 1e-9
                if gap == 0.0:
                    assert worth(tree, found) == pytest.approx(best.value, abs=1e-9)
                    expected = best.unprepared + found.gain.sum() - penalty * found.size
                    assert expected <= best.value + 1e-9
                fewer += found.work["evaluations"] < tree.work["leaf_evaluations"]
    assert fewer > seeds


def test_it_evaluates_no_more_than_a_tree_that_reaches_cut(cases):
    for seed in range(cases(24)):
        tree = one_sided(
            *(setting("policy", seed)[k] for k in (0, 3, 1, 2)), 0.01,
            leaf_value=evaluation(seed), stop_value="evaluate", truncate="reach",
        )  # fmt: skip
        found = _found("policy", seed, 0.01, gap=0.0)
        assert found.work["evaluations"] <= tree.work["leaf_evaluations"]


def test_intervals_hold_whenever_one_looks(cases):
    for seed in range(cases(25)):
        best = best_precomputation(whole_tree("menu", seed, 0.03), seed % 2).value
        for order in ("certified", "optimistic"):
            found = _found("menu", seed, 0.03, gap=0.0, order=order, batch=2)
            assert found.lower - 1e-12 <= best <= found.upper + 1e-12
            assert all(low - 1e-12 <= best <= up + 1e-12 for _, low, up in found.trace)


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_the_best_so_far_is_told_and_changes_nothing(order, cases):
    """Each set has its reported value, and without a budget no less than the one before."""
    grew = 0
    for seed in range(cases(16)):
        whole = whole_tree("menu", seed, 1e-9)
        for budget in (None, 3):
            options = {"gap": 0.0, "order": order, "batch": 2, "budget": budget}
            told = []
            found = _found("menu", seed, 0.02, improved=told.append, **options)
            alone = _found("menu", seed, 0.02, **options)
            assert (found.histories, found.rows, found.lower) == (alone.histories, alone.rows, alone.lower)
            asked = [each.work["evaluations"] for each in told]
            assert all(after > 9 / 8 * before for before, after in itertools.pairwise(asked))
            assert asked[-1] <= found.work["evaluations"] <= max(9 / 8 * asked[-1], asked[-1] + 8)
            for each in told:
                assert each.size <= (budget or each.size) and each.penalty == (0.0 if budget else 0.02)
                assert worth(whole, each) >= each.lower - 1e-12
            lower = [each.lower for each in (*told, found)]
            assert budget or all(one <= other + 1e-12 for one, other in itertools.pairwise(lower))
            grew += lower[-1] > lower[0]
    assert grew > cases(16)


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_budgets_are_exact_on_what_was_opened_and_bounded_beyond(order, cases):
    capped = 0
    for seed in range(cases(25)):
        whole = whole_tree("menu", seed, 1e-9)
        for budget in (0, 1, 2, 3, 5):
            best = best_precomputation(whole, seed % 2, budget=budget).utility
            found = _found("menu", seed, 0.02, gap=0.0, order=order, budget=budget)
            assert found.size <= budget and found.penalty == 0.0
            assert found.lower <= best + 1e-12
            assert best <= found.upper + 1e-12
            # What has not been evaluated counts as little as possible.
            assert worth(whole, found) >= found.lower - 1e-12
            capped += found.size == budget > 0
    assert capped > cases(20)


@pytest.mark.parametrize("order", ["certified", "optimistic"])
def test_a_tree_of_what_was_opened(order, cases):
    """`HistoryTree.from_game` for what best-first preparation leaves behind: frontier and budgets."""
    for seed in range(cases(16)):
        game, _, sigma, player = setting("menu", seed)
        found = _found("menu", seed, 0.02, gap=0.0, order=order)
        options = {"leaf_value": evaluation(seed), "stop_value": "evaluate", "truncate": "none"}
        tree = one_sided(game, player, found.menu, sigma, 0.02, **options)
        assert tree.num_infosets <= found.work["opened"]  # some menus are empty
        best = best_precomputation(tree, player)
        assert best.value >= found.lower - 1e-12
        if order == "certified":
            assert best.value == pytest.approx(found.lower, abs=1e-12)
        assert memory_frontier(tree, player).at(0.02).value == pytest.approx(best.value, abs=1e-12)
        copied, start = pickle.loads(pickle.dumps(found.menu)), game.new_initial_state()
        assert copied.entries_batch([start]) == found.menu.entries_batch([start])


def test_fewer_evaluations_in_the_optimistic_order(cases):
    """It prunes where it can, and its bound covers what it may have missed."""
    evaluations = {
        order: sum(
            _found("menu", seed, 0.005, gap=0.0, order=order).work["evaluations"] for seed in range(cases(24))
        )
        for order in ("certified", "optimistic")
    }
    assert evaluations["optimistic"] < 0.8 * evaluations["certified"]


def test_alternatives_say_what_choosing_them_would_cost(cases):
    told = 0
    for seed in range(cases(24)):
        tree = whole_tree("menu", seed, 0.02)
        game, menu, sigma, player = setting("menu", seed)
        best = best_precomputation(tree, player)
        for state in best.states():
            rows = [tree.memorized_row(state.entry), *(other.row for other in state.alternatives)]
            assert sum(map(len, rows)) == len(set().union(*rows))
            assert all(other.loss >= -1e-12 for other in state.alternatives)
            told += len(state.alternatives)
        # Taking the alternative at the first state, and Algorithm 1 after it, loses so much.
        for state in list(best.states())[:1]:
            for other in state.alternatives:

                def only(at, row=other.row, menu=menu, first=state.actions):
                    return [row] if tuple(at.history()) == first else menu.entries(at)

                forced = best_first_precomputation(
                    game, Menu(only), sigma, 0.02, player, evaluation(seed), gap=0.0
                )
                assert forced.lower >= best.value - other.loss - 1e-12
                if state.actions in forced.histories:  # and elsewhere stopping is better than this entry
                    assert forced.lower == pytest.approx(best.value - other.loss, abs=1e-12)
    assert told > cases(24)


def test_it_stops_where_it_is_told():
    found = _found("menu", 3, 0.01, gap=0.0, batch=2, max_evaluations=6)
    assert not found.reached and found.work["evaluations"] == 6
    assert found.lower <= found.upper
    assert found.trace[-1] == (found.work["evaluations"], found.lower, found.upper)
    assert [lower for _, lower, _ in found.trace] == sorted(lower for _, lower, _ in found.trace)
    rounds = iter([False, True])
    assert not _found("menu", 3, 0.01, gap=0.0, batch=1, enough=lambda: next(rounds)).reached
    assert next(rounds, None) is None
