"""A price per position against enumeration: best sets, frontiers, budgets, menus and what trees keep."""

import functools
import itertools
import math
import pickle
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.position_prices import whole_program
from benchmarks.synthetic_trees import transposing_tree, with_menus
from precomp_games import HistoryTree
from precomp_games.algorithms import best_of_frontier, best_precomputation, memory_frontier
from precomp_games.algorithms.preparation.position_prices import PricedForest, best_closure, closure_frontier
from tests.oracles.games import expand, policy_pairs, random_efg, random_tree, sides, written
from tests.oracles.graphs import follow
from tests.oracles.preparation import (
    NEAR,
    check_budgets,
    check_frontier,
    check_result,
    one_sided,
    preparations,
)
from tests.oracles.zero_sum import is_perfect
from tests.properties import examples


@examples(320)
@given(
    preparations("perfect", repeated=True, most=600) | preparations("imperfect", menu=False, most=1000),
    st.sampled_from((1e-3, 0.02, 0.1, 0.3)),
)
def test_against_all_sets(setting, penalty):
    """The best set at a penalty, the frontier, and every budget; for positions, and for keys of any kind.

    With menus, one entry a position: all sets and choices that agree.
    """
    player, found, tree = setting.player, setting.sets_of_positions(), setting.tree(truncate="none")
    price: Any = "positions"
    if is_perfect(setting.game):
        tree = setting.tree(truncate="none", position_key=str)
    else:
        price = [zlib.crc32(tree.key(k).encode()) % 4 for k in range(tree.num_infosets)]
        found = setting.sets(lambda chosen: len({zlib.crc32(name.encode()) % 4 for name in chosen}))
    priced = tree.with_penalties(sides(player, penalty, math.inf))
    best = best_precomputation(priced, player, price=price)
    check_result(setting, best, found, penalty)
    assert best.paid == best.num_positions and best.price == "positions"
    if np.diff(tree.first_entry)[tree.infoset_player == player].max(initial=0) > 1:
        for budget in range(4):
            best = best_precomputation(tree, player, price=price, budget=budget)
            assert best.utility == pytest.approx(found.within(budget), abs=NEAR)
            assert best.num_positions <= budget and best.gap < 1e-6
        with pytest.raises(ValueError, match="menus of one entry"):
            memory_frontier(tree, player, price=price)
    else:
        assert best.value >= best_precomputation(priced, player).value - 1e-12
        frontier = memory_frontier(tree, player, price=price)
        check_frontier(frontier, found)
        check_budgets(frontier, found, price=price)


@examples(160)
@given(
    preparations("perfect", least=5, depth=7, repeated=True, menu=False, fewest=0),
    st.sampled_from((0.02, 0.1, 0.4, 0.8)),
    st.sampled_from(("reach", "values")),
    st.booleans(),
)
def test_cut_trees_lose_nothing(setting, penalty, truncate, on_several_levels):
    """Trees that are cut for positions, beside uncut ones; most keys come up on several levels, or none."""
    player, key = setting.player, str
    if on_several_levels:

        def key(state):
            return state.position()[-1:]

    def best(tree, price="positions", **options):
        return best_precomputation(tree, player, price=price, **options)

    expand = functools.partial(setting.tree, penalty, position_key=key)
    if truncate == "values":
        expand = functools.partial(setting.evaluated, penalty, position_key=key)
    whole, alone = expand(truncate="none"), expand(truncate=truncate)
    tree = expand(truncate=truncate, price="positions")
    tree.check()
    assert best(tree).value == pytest.approx(best(whole).value, abs=NEAR)
    with pytest.raises(ValueError, match="cut for infosets"):
        best(alone)
    # What positions need has all that information states need.
    assert best(tree, "infosets").value == pytest.approx(best(alone, "infosets").value, abs=NEAR)
    assert alone.num_infosets <= tree.num_infosets <= whole.num_infosets
    for budget in (1, 2, 4):
        exact, cut = best(whole, budget=budget), best(tree, budget=budget)
        assert cut.utility <= exact.utility + NEAR <= cut.utility + cut.truncation_loss + 2.0 * NEAR


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


@examples(240)
@given(st.integers(5, 600), st.floats(0.0, 1.0), st.floats(1e-3, 3.0), st.integers(0, 999))
def test_random_forests(size, shared, penalty, seed):
    """Any gains, trees and positions: no game's, and harder than those of games.

    Passes, and HiGHS on what they leave, beside HiGHS on everything; the frontier at many penalties.
    """
    rng = np.random.default_rng(seed)
    previous = np.array([rng.integers(-1, k) if k else -1 for k in range(size)], np.int32)
    drawn = rng.integers(0, 1 + int(shared * (size - 1)), size)
    keys, position = np.unique(drawn, return_inverse=True)
    gain = rng.normal(size=size) * rng.choice([0.1, 1.0, 10.0])
    forest = PricedForest(previous, gain, position.astype(np.int32), len(keys))
    best = best_closure(forest, penalty)
    value = best.gain - penalty * best.size
    assert value == pytest.approx(whole_program(forest, penalty).solve().objective * penalty, abs=1e-8)
    assert best.upper == pytest.approx(value, abs=1e-8)
    shares = np.bincount(forest.position, best.price, forest.num_positions)
    assert (best.price >= 0.0).all() and (shares <= penalty * (1.0 + 1e-12)).all()
    threshold, breakpoints, sizes, gains = closure_frontier(forest, 0.01)
    assert (np.diff(breakpoints) < 0.0).all()
    for size, total, bend in zip(sizes, gains, [*breakpoints, 0.0], strict=True):
        chosen = threshold > bend
        assert forest.size(chosen) == size
        assert forest.gain[chosen].sum() == pytest.approx(total, abs=1e-8)
    for price in [*np.linspace(0.01, 3.0, 7), *breakpoints[:5]]:
        found = best_closure(forest, price)
        curve = float((gains - price * sizes).max())
        assert curve == pytest.approx(found.gain - price * found.size, abs=1e-8)


def _edges_game(edges):
    """Chance draws an edge of a bipartite graph, its left end first; to play 1 at both ends wins 1."""
    turn, ways = itertools.count(1), {a: [y for x, y in edges if x == a] for a, _ in edges}
    nodes: list[Any] = [{a: f"{len(ends)}/{len(edges)}" for a, ends in ways.items()}]
    for ends in ways.values():
        nodes += [(1, next(turn), "01"), 0, {b: f"1/{len(ends)}" for b in ends}]
        for _ in ends:
            nodes += [(1, next(turn), "01"), 0, 1]
    return written(*nodes)


def _end_of(state):
    """The vertex that was drawn last, at a turn: all that may follow is the same, however play came there."""
    if state.current_player() < 0:
        return state.history_str()
    *before, end = state.history()
    return follow(state.get_game().new_initial_state(), before).action_to_string(end)


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


def test_entries_that_add_nothing_are_left_out():
    links, gains, positions = [-1, 0, -1], [2.0, 1.0, 1.0], [0, 1, 2]
    forest = PricedForest(np.array(links, np.int32), np.array(gains), np.array(positions, np.int32), 3)
    found = best_closure(forest, 1.0)
    assert found.chosen.tolist() == [True, False, False] and found.upper == 1.0


def test_games_that_have_no_price_for_positions():
    for game, message in (
        (random_tree(1, width=2), "an infinite penalty"),
        (random_efg(1), "perfect inform"),
    ):
        with pytest.raises(ValueError, match=message):
            expand(game, *policy_pairs(1), 0.1, price="positions", position_key=str)


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
    for price, fits in (
        ("positions", cut_for != "infosets"),
        ([0] * tree.num_infosets, cut_for == "nothing"),
    ):
        if fits:
            one, two = (best_precomputation(t, 0, price=price) for t in (tree, loaded))
            assert one.value == two.value
        else:
            with pytest.raises(ValueError, match=f"cut for {cut_for}"):
                best_precomputation(loaded, 0, price=price)
