"""Branch and bound on evaluated stops against Algorithm 1 without it, and against a plain recursion."""

import hashlib
import math

import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation, meta_sequence_form_lp
from tests.random_games import random_menu, random_policy, random_tree

_LOW, _HIGH = -1.0, 2.0  # the utilities of `random_tree`; they add up to 1


def _evaluation(seed, extremes=False):
    """An arbitrary evaluation, which need not be anybody's expected utility."""

    def evaluate(state):
        digest = hashlib.blake2b(f"{seed}:{state.history()}".encode(), digest_size=8).digest()
        draw = int.from_bytes(digest, "big") / 2**64
        if extremes:
            return _LOW if draw < 0.5 else _HIGH
        return _LOW + (_HIGH - _LOW) * draw

    return evaluate


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
    support = ("full", "partial", "pure")[seed % 3]
    pre = tuple(random_policy(4 * seed + i, support) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, support) for i in (0, 1))
    penalty = (0.001, 0.01, 0.05, 0.2)[(seed + player) % 4]
    return game, pre, sigma, penalty, _evaluation(seed, extremes=seed % 5 == 0)


def _pair(player, penalty):
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


def _rows(best):
    return {s.actions: (s.reach, s.gain, s.net_gain) for s in best.states()}


def _same(one, two):
    """Equal in everything that a book says."""
    for name in ("value", "utility", "unprepared"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-12)
    first, second = _rows(one), _rows(two)
    assert first.keys() == second.keys()
    for actions, row in first.items():
        assert row == pytest.approx(second[actions], abs=1e-12)


@pytest.mark.parametrize("player", [0, 1])
def test_nothing_is_lost(player, cases):
    games = memorized = fewer = 0
    for seed in range(cases(120)):
        game, pre, sigma, penalty, evaluate = _setting(seed, player)
        asked = {}
        for truncate in ("values", "reach", "none"):
            tree = HistoryTree.from_game(
                game,
                sigma_pre=pre,
                # The player's own sigma is never asked, where stopping is evaluated.
                sigma=(None, sigma[1]) if player == 0 else (sigma[0], None),
                penalties=_pair(player, penalty),
                leaf_value=evaluate,
                stop_value="evaluate",
                truncate=truncate,
            )
            tree.check()
            best = best_precomputation(tree, player)
            value, utility, chosen = _algorithm_1(game, player, penalty, pre, sigma, evaluate)
            assert best.value == pytest.approx(value, abs=1e-12)
            assert best.utility == pytest.approx(utility, abs=1e-12)
            assert _rows(best).keys() == chosen
            asked[truncate] = (best, tree.work["leaf_evaluations"], tree.num_histories)
            assert tree.work["histories"] == tree.num_histories <= tree.work["expanded"]
        _same(asked["values"][0], asked["reach"][0])
        _same(asked["reach"][0], asked["none"][0])
        assert asked["values"][1] <= asked["reach"][1] <= asked["none"][1]
        assert asked["values"][2] <= asked["reach"][2] <= asked["none"][2]
        games += 1
        memorized += asked["values"][0].size > 0
        fewer += asked["values"][1] < asked["reach"][1]
    assert games >= cases(100)
    assert memorized >= cases(30)  # the comparison is not about empty sets
    assert fewer >= cases(20)  # and the bounds do something


@pytest.mark.parametrize("player", [0, 1])
def test_larger_penalties_on_the_same_tree(player):
    smaller = 0
    for seed in range(40):
        game, pre, sigma, penalty, evaluate = _setting(seed, player)

        def expand(new, game=game, pre=pre, sigma=sigma, evaluate=evaluate):
            return HistoryTree.from_game(
                game,
                sigma_pre=pre,
                sigma=sigma,
                penalties=_pair(player, new),
                leaf_value=evaluate,
                stop_value="evaluate",
                truncate="values",
            )

        tree = expand(penalty)
        for factor in (1.0, 1.5, 4.0, 20.0):
            fresh = expand(factor * penalty)
            _same(
                best_precomputation(tree.with_penalties(_pair(player, factor * penalty)), player),
                best_precomputation(fresh, player),
            )
            smaller += fresh.num_histories < tree.num_histories
    assert smaller >= 20


def test_a_penalty_made_infinite_leaves_the_player_the_same():
    # The opponent's viewpoint was never expanded: its own edges are those of sigma_pre.
    game, pre, sigma, _, evaluate = _setting(1, 0)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=(0.01, math.inf),
        leaf_value=evaluate,
        stop_value="evaluate",
        truncate="values",
    )
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
        HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=(0.02, math.inf),
            stop_value="evaluate",
            truncate=truncate,
        ).num_histories
        for truncate in ("values", "reach")
    ]
    assert sizes[0] == sizes[1]


def test_positions_shared_and_a_batch_evaluation():
    game, pre, sigma, _, evaluate = _setting(8, 0)
    calls = []

    class Batch:
        def evaluate_batch(self, states):
            calls.append([tuple(s.history()) for s in states])
            return [evaluate(s) for s in states]

    trees = [
        HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=(0.01, math.inf),
            leaf_value=leaf_value,
            stop_value="evaluate",
            truncate="values",
            position_key=key,
        )
        for leaf_value, key in ((evaluate, None), (Batch(), None), (evaluate, lambda s: tuple(s.history())))
    ]
    for other in trees[1:]:
        _same(best_precomputation(trees[0], 0), best_precomputation(other, 0))
    asked = [history for call in calls for history in call]
    assert len(asked) == len(set(asked)) == trees[1].work["leaf_evaluations"]
    assert all(len({len(history) for history in call}) == 1 for call in calls)  # a level at a time
    assert len(calls) == len({len(call[0]) for call in calls})  # in one batch


def _worth(sigma, seen):
    """u^sigma for player 0 by recursion, counting the states that are asked for."""

    def value(state):
        if state.is_terminal():
            return float(state.returns()[0])
        if state.is_chance_node():
            edges = state.chance_outcomes()
        else:
            edges = sigma[state.current_player()](state).items()
        return sum(p * value(state.child(a)) for a, p in edges if p > 0.0)

    def evaluate(state):
        seen.append(tuple(state.history()))
        return value(state)

    return evaluate


@pytest.mark.parametrize("support", ["full", "partial", "pure"])
def test_nothing_is_lost_where_both_prepare(support):
    """Exact evaluations: the meta-game has the same value where evaluated stops ended the tree."""
    smaller = used = 0
    for seed in range(60):
        game = random_tree(seed, depth=4 + seed % 3, actions=2, chance=0.2 * (seed % 2))
        pre = tuple(random_policy(4 * seed + i, "pure" if i else support) for i in (0, 1))
        sigma = tuple(random_policy(4 * seed + 2 + i, "full") for i in (0, 1))
        penalties = ((0.02, 0.03), (0.1, 0.01), (0.05, math.inf))[seed % 3]
        trees = {}
        for truncate in ("values", "reach"):
            seen = []
            trees[truncate] = HistoryTree.from_game(
                game,
                sigma_pre=pre,
                sigma=sigma,
                penalties=penalties,
                leaf_value=_worth(sigma, seen),
                truncate=truncate,
            )
            trees[truncate].check()
            assert len(seen) == trees[truncate].work["leaf_evaluations"]
        cut, whole = trees["values"], trees["reach"]
        assert cut.num_histories <= whole.num_histories
        exact = [meta_sequence_form_lp(tree) for tree in (cut, whole)]
        assert exact[0].value == pytest.approx(exact[1].value, abs=1e-9)
        smaller += cut.num_infosets < whole.num_infosets
        used += sum(strategy.expected_size for strategy in exact[0].strategies) > 0.5
    assert smaller >= 30
    assert used >= 20


@pytest.mark.parametrize("first", [0, 40])
def test_nothing_is_lost_with_menus(first):
    """The same where both choose among entries, of which sigma plays some as well, and other moves too."""
    fewer = 0
    for seed in range(first, first + 40):
        game = random_tree(seed, depth=4 + seed % 2, actions=2 + seed % 2, chance=0.2 * (seed % 2))
        menus = tuple(random_menu(4 * seed + i) for i in (0, 1))
        support = ("full", "pure", "partial")[seed % 3]
        sigma = tuple(random_policy(4 * seed + 2 + i, support) for i in (0, 1))
        penalties = ((0.02, 0.03), (0.1, 0.01), (0.05, math.inf))[(seed // 3) % 3]
        trees = []
        for truncate in ("values", "reach"):
            trees.append(
                HistoryTree.from_game(
                    game,
                    sigma_pre=menus,
                    sigma=sigma,
                    penalties=penalties,
                    leaf_value=_worth(sigma, []),
                    truncate=truncate,
                )
            )
            trees[-1].check()
        values = [meta_sequence_form_lp(tree).value for tree in trees]
        assert values[0] == pytest.approx(values[1], abs=1e-9)
        fewer += trees[0].num_entries < trees[1].num_entries
    assert fewer >= 20
