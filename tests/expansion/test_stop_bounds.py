"""Branch and bound on evaluated stops against Algorithm 1 without it, and against a plain recursion."""

import math

import pytest

from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.books import play_value
from tests.oracles.games import (
    SUPPORTS,
    expand,
    policy_pairs,
    random_evaluation,
    random_menu,
    random_policy,
    random_tree,
    sides,
)

_LOW, _HIGH = -1.0, 2.0  # the utilities of `random_tree`; they add up to 1


def _algorithm_1(game, player, penalty, pre, sigma, evaluate):
    """(value, utility, histories) by Algorithm 1 as the paper has it, on states, with nothing left out."""

    def own(utility):
        return utility if player == 0 else 1.0 - utility

    def walk(state, reach):
        if state.is_terminal():
            worth = reach * own(state.returns()[0])
            return worth, worth, frozenset()
        mover = state.current_player()
        if state.is_chance_node():
            edges = state.chance_outcomes()
        else:
            edges = (pre if mover == player else sigma)[mover](state).items()
        below = [walk(state.child(a), reach * p) for a, p in edges if p > 0.0]
        value, utility = sum(b[0] for b in below), sum(b[1] for b in below)
        chosen = frozenset().union(*(b[2] for b in below))
        if mover != player:
            return value, utility, chosen
        stop = reach * own(evaluate(state))
        if value - penalty > stop:
            return value - penalty, utility, chosen | {tuple(state.history())}
        return stop, stop, frozenset()

    return walk(game.new_initial_state(), 1.0)


def _setting(seed, player):
    game = random_tree(
        seed, depth=4 + seed % 3, actions=2 + (seed // 3) % 2, chance=(0.0, 0.2, 0.4)[(seed // 6) % 3]
    )
    pre, sigma = policy_pairs(seed, SUPPORTS[seed % 3])
    penalty = (0.001, 0.01, 0.05, 0.2)[(seed + player) % 4]
    evaluate = random_evaluation(seed)
    if seed % 5 == 0:  # as good or as bad as can be
        return game, pre, sigma, penalty, lambda state: _LOW if evaluate(state) < 0.5 else _HIGH
    return game, pre, sigma, penalty, evaluate


def _expand(setting, player, penalty, truncate, **options):
    """Return a tree whose stops are evaluated; the player's own sigma is never asked."""
    game, pre, sigma, _, evaluate = setting
    sigma = sides(player, None, sigma[1 - player])
    penalties = sides(player, penalty, math.inf)
    options = {"leaf_value": evaluate, "stop_value": "evaluate"} | options
    return expand(game, pre, sigma, penalties, truncate=truncate, **options)


def _rows(best):
    return {s.actions: (s.reach, s.gain, s.net_gain) for s in best.states()}


def _same(one, two):
    """Equal in everything that a book has."""
    for name in ("value", "utility", "unprepared"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-12)
    first, second = _rows(one), _rows(two)
    assert first.keys() == second.keys()
    for actions, row in first.items():
        assert row == pytest.approx(second[actions], abs=1e-12)


@pytest.mark.parametrize("player", [0, 1])
def test_nothing_is_lost(player, cases):
    memorized = fewer = 0
    for seed in range(cases(80)):
        setting = _setting(seed, player)
        game, pre, sigma, penalty, evaluate = setting
        value, utility, chosen = _algorithm_1(game, player, penalty, pre, sigma, evaluate)
        trees = [_expand(setting, player, penalty, truncate) for truncate in ("values", "reach", "none")]
        books = [best_precomputation(tree, player) for tree in trees]
        for tree, best in zip(trees, books, strict=True):
            tree.check()
            assert best.value == pytest.approx(value, abs=1e-12)
            assert best.utility == pytest.approx(utility, abs=1e-12)
            assert _rows(best).keys() == chosen
            assert tree.work["histories"] == tree.num_histories <= tree.work["expanded"]
            _same(best, books[0])
        asked, histories = [tree.work["leaf_evaluations"] for tree in trees], [t.num_histories for t in trees]
        assert asked == sorted(asked) and histories == sorted(histories)
        memorized += books[0].size > 0
        fewer += asked[0] < asked[1]
    assert memorized >= cases(20)  # the comparison is not about empty sets
    assert fewer >= cases(8)  # and the bounds do something


@pytest.mark.parametrize("player", [0, 1])
def test_larger_penalties_on_the_same_tree(player, cases):
    smaller = 0
    for seed in range(cases(40)):
        setting = _setting(seed, player)
        penalty = setting[3]
        tree = _expand(setting, player, penalty, "values")
        for factor in (1.0, 1.5, 4.0, 20.0):
            fresh = _expand(setting, player, factor * penalty, "values")
            later = tree.with_penalties(fresh.penalties)
            _same(best_precomputation(later, player), best_precomputation(fresh, player))
            smaller += fresh.num_histories < tree.num_histories
    assert smaller >= cases(20)


def test_a_penalty_made_infinite_leaves_the_player_the_same():
    # The opponent's viewpoint was never expanded: its own edges are those of sigma_pre.
    tree = _expand(_setting(1, 0), 0, 0.01, "values")
    assert tree.num_infosets > 0
    never = tree.with_penalties(math.inf)
    best = best_precomputation(never, 0)
    assert best.size == 0
    assert best.value == pytest.approx(best_precomputation(tree, 0).unprepared, abs=1e-12)
    with pytest.raises(ValueError, match=r"best_precomputation\(\): expected the tree's precomputing player"):
        best_precomputation(never, 1)


def test_the_bounds_know_only_values_that_are_there_at_once():
    # Sampled and exact values come after the expansion: the reach alone decides then.
    game, pre, sigma, _, _ = _setting(4, 0)
    sizes = [
        expand(game, pre, sigma, (0.02, math.inf), stop_value="evaluate", truncate=truncate).num_histories
        for truncate in ("values", "reach")
    ]
    assert sizes[0] == sizes[1]


def test_positions_shared_and_a_batch_evaluation():
    setting = _setting(8, 0)
    calls = []

    class Batch:
        def evaluate_batch(self, states):
            calls.append([tuple(s.history()) for s in states])
            return [setting[4](s) for s in states]

    plain, batch, shared = (
        _expand(setting, 0, 0.01, "values", **options)
        for options in ({}, {"leaf_value": Batch()}, {"position_key": lambda s: tuple(s.history())})
    )
    for other in (batch, shared):
        _same(best_precomputation(plain, 0), best_precomputation(other, 0))
    asked = [history for call in calls for history in call]
    assert len(asked) == len(set(asked)) == batch.work["leaf_evaluations"]
    assert all(len({len(history) for history in call}) == 1 for call in calls)  # a level at a time
    assert len(calls) == len({len(call[0]) for call in calls})  # in one batch


@pytest.mark.parametrize("menus", [False, True])
def test_nothing_is_lost_where_both_prepare(menus, cases):
    """Exact evaluations: the meta-game has the same value where evaluated stops ended the tree.

    Of the entries of a menu sigma plays some as well, and other moves too.
    """
    smaller = used = 0
    for seed in range(cases(80)):
        game = random_tree(seed, depth=4 + seed % 2, actions=2 + menus * (seed % 2), chance=0.2 * (seed % 2))
        supports = SUPPORTS[seed // 2 % 3], "pure"
        pre = tuple(
            random_menu(4 * seed + i) if menus else random_policy(4 * seed + i, supports[i]) for i in (0, 1)
        )
        sigma = tuple(random_policy(4 * seed + 2 + i, supports[0] if menus else "full") for i in (0, 1))
        penalties, trees = ((0.02, 0.03), (0.1, 0.01), (0.05, math.inf))[seed // 6 % 3], []
        for truncate in ("values", "reach"):
            seen = []

            def evaluate(state, sigma=sigma, seen=seen):
                seen.append(state)
                return play_value(state, sigma)

            trees.append(expand(game, pre, sigma, penalties, leaf_value=evaluate, truncate=truncate))
            trees[-1].check()
            assert len(seen) == trees[-1].work["leaf_evaluations"]
        cut, whole = trees
        assert cut.num_histories <= whole.num_histories
        exact = [meta_sequence_form_lp(tree) for tree in trees]
        assert exact[0].value == pytest.approx(exact[1].value, abs=1e-9)
        smaller += cut.num_entries < whole.num_entries
        used += sum(strategy.expected_size for strategy in exact[0].strategies) > 0.5
    assert smaller >= cases(30)
    assert used >= cases(20)
