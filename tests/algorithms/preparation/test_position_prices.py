"""A price per position against enumeration: best sets, frontiers, budgets, menus and what trees keep."""

import itertools
import math
import operator
import pickle
import zlib
from typing import Any

import numpy as np
import pytest

from benchmarks.position_prices import whole_program
from benchmarks.synthetic_trees import transposing_tree, with_menus
from precomp_games import HistoryTree
from precomp_games.algorithms import (
    MetaStrategy,
    best_of_frontier,
    best_precomputation,
    memory_frontier,
)
from precomp_games.algorithms.preparation.position_prices import PricedForest, best_closure, closure_frontier
from tests.oracles import books
from tests.oracles.games import (
    SUPPORTS,
    EfgText,
    expand,
    policy_pairs,
    random_efg,
    random_menu,
    random_tree,
    sides,
)
from tests.oracles.preparation import (
    TINY,
    all_sets,
    check_budgets,
    check_frontier,
    evaluation,
    one_sided,
)


def _shared(count, kind):
    """(tree, player, price, [(positions, utility)] of all sets) of so many games worth preparing for."""
    given = 0
    for seed in itertools.count():
        if given == count:
            return
        if kind == "perfect":
            game = random_tree(seed, depth=4 + seed % 3, actions=2 + seed % 2, width=2 + seed % 2)
        else:
            game = random_efg(seed, depth=4 + seed % 3)
        pre, sigma = policy_pairs(seed, SUPPORTS[seed % 3], "position" if kind == "perfect" else "infoset")
        player = (seed // 3) % 2
        position_of = books.positions(game, player)
        if kind != "perfect":
            position_of = {name: zlib.crc32(f"{seed}{name}".encode()) % 4 for name in position_of}
        found = [
            (len({position_of[name] for name in chosen}), utility)
            for chosen, utility in all_sets(game, player, pre, sigma, 1000).items()
        ]
        if not found or max(found, key=operator.itemgetter(1))[0] < 2:  # nothing much to memorize
            continue
        key = str if kind == "perfect" else None
        tree = one_sided(game, player, pre, sigma, truncate="none", position_key=key)
        price: str | np.ndarray = "positions"
        if kind != "perfect":
            if tree.infoset_keys is None:  # drawn so that nothing is hidden
                continue
            price = np.array([position_of[tree.key(k)] for k in range(tree.num_infosets)], dtype=np.int64)
        given += 1
        yield tree, player, price, found


def _check_best(tree, player, price, found, penalty):
    """Algorithm 1's counterpart at a penalty; returns whether a price per information state has less."""
    priced = tree.with_penalties(sides(player, penalty, math.inf))
    best = best_precomputation(priced, player, price=price)
    value = max(utility - penalty * count for count, utility in found)
    assert best.value == pytest.approx(value, abs=1e-9)
    assert best.value == pytest.approx(best.utility - penalty * best.num_positions, abs=1e-12)
    assert best.upper >= best.value and best.gap < 1e-9
    assert best.price == "positions" and best.size == len(best.memorization_set)
    MetaStrategy.of_set(tree, player, best.memorization_set)  # refuses sets that are not closed
    assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
    alone = best_precomputation(priced, player)
    assert best.value >= alone.value - 1e-12
    return best.value > alone.value + 1e-9


@pytest.mark.parametrize("kind", ["perfect", "imperfect"])
def test_against_all_sets(kind, cases):
    """Best sets at several penalties, the frontier, and every budget."""
    count = cases(128)
    differs = bends = inner = 0
    for tree, player, price, found in _shared(count, kind):
        spread = np.ptp([utility for _, utility in found])
        for penalty in np.array([0.3, 0.1, 0.03, 1e-3]) * spread:
            if penalty >= TINY:
                differs += _check_best(tree, player, price, found, float(penalty))
        frontier = memory_frontier(tree, player, price=price)
        bends += check_frontier(frontier, found)
        inner += check_budgets(frontier, found, price=price)
    assert differs >= count / 4 and bends >= count
    assert inner >= count / 100


@pytest.mark.parametrize("truncate", ["reach", "values"])
def test_cut_trees_lose_nothing(truncate, cases):
    """Trees that are cut for positions, beside uncut ones."""
    count = cases(128)
    fewer = more = 0
    for seed in range(count):
        # Most keys come up on several levels.
        key = str if seed % 3 == 1 else (lambda state: state.position()[-1:])
        game = random_tree(seed, depth=6 + seed % 2, actions=2 + seed % 2, width=3 + seed % 5, chance=0.1)
        pre, sigma = policy_pairs(seed, SUPPORTS[seed % 3], "position")
        player, penalty = (seed // 3) % 2, (0.02, 0.1, 0.4, 0.8)[seed // 2 % 4]
        options: dict[str, Any] = {"position_key": key}
        if truncate == "values":
            options |= {"leaf_value": evaluation(seed), "stop_value": "evaluate"}
        whole = one_sided(game, player, pre, sigma, penalty, truncate="none", **options)
        alone = one_sided(game, player, pre, sigma, penalty, truncate=truncate, **options)
        tree = one_sided(game, player, pre, sigma, penalty, truncate=truncate, price="positions", **options)
        tree.check()
        one = best_precomputation(whole, player, price="positions")
        two = best_precomputation(tree, player, price="positions")
        assert two.value == pytest.approx(one.value, abs=1e-9)
        with pytest.raises(ValueError, match="cut for infosets"):
            best_precomputation(alone, player, price="positions")
        # What positions need has all that information states need.
        one, two = best_precomputation(alone, player), best_precomputation(tree, player)
        assert two.value == pytest.approx(one.value, abs=1e-9)
        for budget in (1, 2, 4):
            exact = best_precomputation(whole, player, price="positions", budget=budget)
            cut = best_precomputation(tree, player, price="positions", budget=budget)
            assert cut.utility <= exact.utility + 1e-9 <= cut.utility + cut.truncation_loss + 2e-9
        fewer += tree.num_infosets < whole.num_infosets
        more += alone.num_infosets < tree.num_infosets
    assert fewer > count / 4 and more > count / 20


def same_choice_at_a_position(chosen, position_of):
    """Return the number of positions that a choice of entries pays for; None if one has two entries."""
    rows = {}
    for name, row in chosen.items():
        if rows.setdefault(position_of[name], row) != row:
            return None
    return len(rows)


def test_menus_against_all_choices(cases):
    """One entry a position: all sets and choices that agree, without and with a budget."""
    given = differs = 0
    for seed in itertools.count():
        if given == cases(80):
            break
        game = random_tree(seed, depth=3 + seed % 2, actions=3, width=2, chance=0.1)
        menu, sigma = random_menu(seed, by="position"), policy_pairs(seed, "full", "position")[1]
        player = (seed // 2) % 2
        choices = books.all_choices(game, player, menu, 400)
        position_of = books.positions(game, player)
        counts = [same_choice_at_a_position(chosen, position_of) for chosen in choices]
        if len(choices) < 10 or None not in counts:
            continue
        given += 1
        utilities = books.own_utilities_of_choices(game, player, choices, sigma).tolist()
        found = [pair for pair in zip(counts, utilities, strict=True) if pair[0] is not None]
        tree = one_sided(game, player, menu, sigma, truncate="none", position_key=str)
        for penalty in (0.2, 0.02, 1e-3):
            priced = tree.with_penalties(sides(player, penalty, math.inf))
            best = best_precomputation(priced, player, price="positions")
            value = max(utility - penalty * count for count, utility in found)
            assert best.value == pytest.approx(value, abs=1e-9)
            assert best.value == pytest.approx(best.utility - penalty * best.num_positions, abs=1e-12)
            assert best.gap < 1e-6
            alone = best_precomputation(priced, player)
            differs += set(best.memorization_set.tolist()) != set(alone.memorization_set.tolist())
        for budget in range(4):
            best = best_precomputation(tree, player, price="positions", budget=budget)
            expected = max(utility for count, utility in found if count <= budget)
            assert best.utility == pytest.approx(expected, abs=1e-9)
            assert best.num_positions <= budget and best.gap < 1e-6
        if tree.has_menus:
            with pytest.raises(ValueError, match="menus of one entry"):
                memory_frontier(tree, player, price="positions")
    assert differs


def test_stopped_programs_say_what_they_do_not_know():
    tree = transposing_tree(1e-3, 1.05)
    frontier = memory_frontier(tree, 0, price="positions")
    sizes = set(frontier.sizes.tolist())
    budget = next(k for k in range(3, int(frontier.sizes[-1])) if k not in sizes)
    exact = best_of_frontier(frontier, budget)
    assert exact.gap < 1e-9 and exact.num_positions <= budget
    assert exact.utility <= frontier.upper_bound(budget) + 1e-12
    stopped = best_of_frontier(frontier, budget, time_limit=0.0)
    assert stopped.utility <= exact.utility + 1e-12 <= stopped.upper + 2e-12
    assert stopped.upper == pytest.approx(float(frontier.upper_bound(budget)), abs=1e-9)
    menus = with_menus(tree)
    unknown = best_precomputation(menus, 0, price="positions", time_limit=0.0)
    known = best_precomputation(menus, 0, price="positions", time_limit=20.0)
    assert unknown.value <= known.value + 1e-12 <= unknown.upper + 2e-12
    assert unknown.value > unknown.unprepared  # where it begins


def _random_forest(seed):
    """Any gains, any trees, any positions: no game's, and harder than those of games."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 600))
    previous = np.array([int(rng.integers(-1, k)) if k else -1 for k in range(n)], np.int32)
    keys, position = np.unique(rng.integers(0, int(rng.integers(1, n)), n), return_inverse=True)
    gain = rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
    return PricedForest(previous, gain, position.astype(np.int32), len(keys)), float(rng.uniform(0.0, 3.0))


def test_random_forests(cases):
    """Passes, and HiGHS on what they leave, beside HiGHS on everything; the frontier at many penalties."""
    left = 0
    for seed in range(cases(40)):
        forest, penalty = _random_forest(seed)
        best = best_closure(forest, penalty)
        value = best.gain - penalty * best.size
        objective = whole_program(forest, penalty).solve().objective
        assert value == pytest.approx(objective * penalty, abs=1e-8)
        assert best.upper == pytest.approx(value, abs=1e-8)
        shares = np.bincount(forest.position, best.price, forest.num_positions)
        assert (best.price >= 0.0).all() and (shares <= penalty * (1.0 + 1e-12)).all()
        left += best.left > 0
        if seed % 4 == 0:
            threshold, breakpoints, sizes, gains = closure_frontier(forest, 0.01)
            assert (np.diff(breakpoints) < 0.0).all()
            for k, size in enumerate(sizes):
                chosen = threshold > (breakpoints[k] if k < len(breakpoints) else 0.0)
                assert forest.size(chosen) == size
                assert forest.gain[chosen].sum() == pytest.approx(gains[k], abs=1e-8)
            for price in [*np.linspace(0.01, 3.0, 7), *breakpoints[:5]]:
                found = best_closure(forest, price)
                curve = float((gains - price * sizes).max())
                assert curve == pytest.approx(found.gain - price * found.size, abs=1e-8)
    assert left >= cases(10)


def _edges_game(edges):
    """Chance draws an edge of a bipartite graph, its left end first; to play 1 at both ends wins 1."""
    turn, text = itertools.count(1), EfgText()
    ways = {a: [y for x, y in edges if x == a] for a, _ in edges}
    text.chance({a: f"{len(ends)}/{len(edges)}" for a, ends in ways.items()})
    for ends in ways.values():
        text.move(1, next(turn), "01")
        text.leaf(0)
        text.chance({b: f"1/{len(ends)}" for b in ends})
        for _ in ends:
            text.move(1, next(turn), "01")
            text.leaf(0)
            text.leaf(1)
    return text.game()


def _end_of(state):
    """The vertex that was drawn last, at a turn: all that may follow is the same, however play came there."""
    if state.current_player() < 0:
        return state.history_str()
    before = state.get_game().new_initial_state()
    for action in state.history()[:-1]:
        before.apply_action(action)
    return before.action_to_string(state.history()[-1])


def test_budgets_of_positions_find_densest_subgraphs():
    """docs/position_prices.md: the reduction by which budgets between bends are NP-hard."""
    rng = np.random.default_rng(1)
    edges = [(a, b) for a in "abc" for b in "xyz" if rng.random() < 0.6]
    vertices = sorted({end for edge in edges for end in edge})
    pre, sigma = (lambda state: {1: 1.0}), (lambda state: {0: 1.0})
    tree = one_sided(_edges_game(edges), 0, pre, sigma, truncate="none", position_key=_end_of)
    assert len(set(tree.position[tree.infoset_history])) == len(vertices) < tree.num_infosets
    frontier = memory_frontier(tree, 0, price="positions")
    for budget in range(len(vertices) + 1):
        most = max(
            sum(a in chosen and b in chosen for a, b in edges)
            for chosen in itertools.combinations(vertices, budget)
        )
        assert best_of_frontier(frontier, budget).utility == pytest.approx(most / len(edges), abs=1e-9)


def test_what_comes_in_is_the_least_best_set():
    """The least of the best sets is returned: entries that add nothing are left out."""
    forest = PricedForest(
        np.array([-1, 0, -1], np.int32), np.array([2.0, 1.0, 1.0]), np.array([0, 1, 2], np.int32), 3
    )
    found = best_closure(forest, 1.0)
    assert found.chosen.tolist() == [True, False, False] and found.upper == 1.0


def test_trees_that_have_no_price_for_positions():
    game, (pre, sigma) = random_tree(1, width=2), policy_pairs(1)
    tree = one_sided(game, 0, pre, sigma, 0.1)
    with pytest.raises(ValueError, match="cut for infosets"):
        best_precomputation(tree, 0, price=[0] * tree.num_infosets)
    for base, message in ((game, "an infinite penalty"), (random_efg(1), "perfect information")):
        with pytest.raises(ValueError, match=message):
            expand(base, pre, sigma, 0.1, price="positions", position_key=str)


@pytest.mark.parametrize(
    ("options", "cut_for"),
    [({"price": "positions"}, "positions"), ({"truncate": "none"}, "nothing"), ({}, "infosets")],
)
def test_what_a_tree_was_cut_for_is_in_its_file(options, cut_for, tmp_path):
    game, (pre, sigma) = random_tree(2, depth=5, width=2), policy_pairs(2, "pure", "position")
    tree = one_sided(game, 0, pre, sigma, 0.05, position_key=str, **options)
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert tree.cut_for == loaded.cut_for == pickle.loads(pickle.dumps(tree)).cut_for == cut_for
    assert tree.with_penalties((0.1, math.inf)).cut_for == cut_for
    if cut_for != "infosets":
        one, two = (best_precomputation(t, 0, price="positions") for t in (tree, loaded))
        assert one.value == two.value
