"""Menus against a fixed opponent: Algorithm 1, frontier and budgets against brute force over all choices."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import best_of_frontier, best_precomputation, memory_frontier
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import SUPPORTS, random_efg, random_menu, random_policy, random_tree, sides, uniform
from tests.oracles.meta_games import menu_tree
from tests.oracles.preparation import TINY, evaluation, one_sided
from tests.oracles.trees import board_of, efg, uneven_efg


@functools.cache
def _case(seed: int) -> tuple[pyspiel.Game, int, Menu, tuple[Any, Any], list[books.Choices]]:
    """(game, player, menu, sigma, all choices, if not too many): both kinds of information in turns."""
    kind, imperfect = seed % 4, seed % 2 == 1
    by = "infoset" if imperfect else "or_nothing" if seed % 8 == 2 else "history"
    if kind == 1:
        game = random_efg(seed, depth=4 + seed % 2, actions=2 + seed % 2)
    elif kind == 3:
        game = uneven_efg(seed)
    else:
        game = random_tree(seed, depth=3 + seed % 2, actions=3 - seed % 2)
    player = (seed // 2) % 2
    menu = random_menu(seed, 1 + seed % 3, by)
    by = "infoset" if imperfect else "history"
    policies = (random_policy(2 * seed + i, SUPPORTS[seed % 3], by) for i in (0, 1))
    return game, player, menu, tuple(policies), books.all_choices(game, player, menu, 3000)


def _tree(seed: int, penalty: float = TINY, **more: Any) -> HistoryTree:
    game, player, menu, sigma, _ = _case(seed)
    return one_sided(game, player, menu, sigma, penalty, **more)


@functools.cache
def _points(seed: int) -> np.ndarray:
    """Return the greatest utility of the player at each size, of all sets and all choices."""
    game, player, _, sigma, choices = _case(seed)
    sizes = np.array(list(map(len, choices)))
    best = np.full(1 + sizes.max(), -math.inf)
    np.maximum.at(best, sizes, books.own_utilities_of_choices(game, player, choices, sigma))
    return best


def _seeds(count: int) -> Iterator[int]:
    """Cases that brute force can do."""
    return itertools.islice((seed for seed in itertools.count() if _case(seed)[4]), count)


def test_against_brute_force_over_all_sets_and_all_choices(cases):
    """Algorithm 1 and the frontier at 20 penalties, and every budget."""
    games = cases(200)
    several = mixed = inner = 0
    for seed in _seeds(games):
        points = _points(seed)
        tree, player = _tree(seed), _case(seed)[1]
        tree.check()
        sizes = np.arange(len(points))
        frontier = memory_frontier(tree, player)
        top = max(float(np.ptp(points[np.isfinite(points)])), 0.01)
        for penalty in np.append(TINY, np.geomspace(1e-4, 1.1 * top, 20)).tolist():
            expected = float((points - penalty * sizes).max())
            at = frontier.at(penalty)
            assert at.value == pytest.approx(expected, abs=1e-9), (seed, penalty)
            assert at.size == len(at.memorization_set)
            best = best_precomputation(tree.with_penalties(sides(player, penalty, math.inf)), player)
            assert best.value == pytest.approx(expected, abs=1e-9), (seed, penalty)
            assert best.value == pytest.approx(best.utility - penalty * best.size, abs=1e-12)
        most = np.maximum.accumulate(points)
        for budget in range(len(points) + 2):
            best = best_of_frontier(frontier, budget)
            assert best.size <= budget
            assert best.utility == pytest.approx(most[min(budget, len(most) - 1)], abs=1e-9), (seed, budget)
            inner += budget not in frontier.sizes
        assert (np.diff(frontier.breakpoints) < 0.0).all()
        several += tree.has_menus
        mixed += bool(((tree.sigma_pre > 0.0) & (tree.sigma_pre < 1.0) & (tree.edge_entry >= 0)).any())
    assert min(several, mixed, inner) >= games / 4, (several, mixed, inner)


def test_trees_that_are_cut_lose_nothing(cases):
    """Lemma 3 with menus: at the penalty that the tree was expanded for, and above."""
    cut = 0
    for seed in _seeds(cases(80)):
        points, player = _points(seed), _case(seed)[1]
        for penalty in (0.02, 0.1, 0.3):
            tree = _tree(seed, penalty)
            expected = float((points - penalty * np.arange(len(points))).max())
            assert best_precomputation(tree, player).value == pytest.approx(expected, abs=1e-9)
            cut += tree.num_histories < _tree(seed).num_histories
    assert cut > cases(20)


def test_evaluated_stops_against_the_whole_tree(cases):
    """Branch and bound over menus: what `truncate="values"` leaves out is not worth memorizing."""
    dropped = 0
    for seed in range(cases(60)):
        setting = (random_tree(seed, depth=5, actions=3), seed % 2, random_menu(seed), random_policy(seed))
        options = {"leaf_value": evaluation(seed), "stop_value": "evaluate"}
        trees = [one_sided(*setting, 0.05, truncate=way, **options) for way in ("none", "reach", "values")]
        values = [best_precomputation(tree, seed % 2).value for tree in trees]
        assert values == pytest.approx([values[0]] * 3, abs=1e-12)
        for tree in trees:
            tree.check()
        dropped += trees[2].num_histories < trees[1].num_histories
    assert dropped > cases(30)


@pytest.mark.parametrize(("action", "members"), [(0, []), (2, [0])])
def test_of_ties_stopping_comes_first_and_then_the_first_entry(action, members):
    game = efg(
        'p "" 1 1 "" { "l" "r" "s" } 0', *(f't "" {k} "" {{ {u} -{u} }}' for k, u in enumerate((1, 1, 0), 1))
    )
    tree = one_sided(game, 0, Menu.of_actions(), lambda state: {action: 1.0}, truncate="none")
    assert np.flatnonzero(Decisions.against(tree, 0).best(0.0).memorize).tolist() == members


def test_what_a_book_is_worth_is_what_its_policy_scores(cases):
    for seed in _seeds(cases(60)):
        game, player, _, sigma, _ = _case(seed)
        best = best_precomputation(_tree(seed), player)
        play = best.policy(sigma).action_probabilities
        score = books.play_value(game.new_initial_state(), (play, play), player)
        assert score == pytest.approx(best.utility, abs=1e-9)
        gains, unprepared = Decisions.against(best.tree, player).gains()
        assert best.utility == pytest.approx(unprepared + gains[best.memorization_set].sum(), abs=1e-9)
        assert best.gain.sum() == pytest.approx(best.utility - unprepared, abs=1e-9)
        for state in best.states():
            assert state.infoset == best.tree.entry_infoset[state.entry]
            assert sum(best.tree.memorized_row(state.entry).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("others", ["policy", "menu of one"])
def test_a_menu_of_one_entry_is_a_policy(others):
    """The same arrays, bit for bit, and so everything else."""
    for seed in range(4):
        by = "infoset" if seed % 2 else "history"
        game = random_efg(seed) if seed % 2 else random_tree(seed)
        pre, sigma = random_policy(seed, "partial", by), random_policy(seed + 50, by=by)
        menu = Menu(lambda state, pre=pre: [pre(state)])
        pair = (pre if others == "policy" else menu, menu)
        plain = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01)
        tree = HistoryTree.from_game(game, sigma_pre=pair, sigma=sigma, penalties=0.01)
        assert tree.fingerprint == plain.fingerprint
        assert not tree.has_menus and tree.num_entries == tree.num_infosets


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "connect_four(rows=3,columns=3,x_in_row=3)"])
def test_with_all_actions_it_is_a_best_response(name, player):
    """To the uniform opponent, by OpenSpiel's own best response."""
    game = pyspiel.load_game(name)
    key = None if "poker" in name else board_of
    tree = one_sided(game, player, Menu.of_actions(), uniform, position_key=key)
    opponent = pyspiel.UniformRandomPolicy(game)  # which the response does not keep alive
    response = pyspiel.TabularBestResponse(game, player, opponent)
    expected = response.value_from_state(game.new_initial_state())
    assert best_precomputation(tree, player).value == pytest.approx(expected, abs=1e-6)


def test_files_keep_menus(tmp_path):
    tree = menu_tree("tree", 1)
    assert tree.has_menus
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.fingerprint == tree.fingerprint
    assert (loaded.entry == tree.entry).all() and (loaded.first_entry == tree.first_entry).all()
    assert best_precomputation(loaded, 0).value == best_precomputation(tree, 0).value


@pytest.mark.parametrize(
    ("menu", "message"),
    [
        (lambda s: [0, {0: 0.5, 1: 0.5}], "share no action"),
        (lambda s: [99], "legal actions"),
        (lambda s: [{0: 0.5}], "sum to 1"),
        (lambda s: 3, "a sequence of actions"),
        (lambda s: ["e4"], r"\{action: probability\}"),
    ],
)
def test_menus_that_are_none(menu, message):
    game = pyspiel.load_game("kuhn_poker")
    with pytest.raises(ValueError, match=message):
        HistoryTree.from_game(game, sigma_pre=Menu(menu), sigma=uniform, penalties=0.01)


def test_a_menu_is_no_policy_for_play():
    with pytest.raises(ValueError, match=r"expected sigma\[0\] to be an OpenSpiel Policy"):
        HistoryTree.from_game(random_tree(3), sigma_pre=uniform, sigma=Menu.of_actions(), penalties=0.1)


def test_the_entries_of_ties():
    """`Menu.of_support`: each of the moves that a policy plays is an entry."""
    policy = {0: 0.5, 1: 0.5 - 1e-12, 2: 1e-12}
    menu = Menu.of_support(lambda state: policy)
    assert menu.entries_batch([None, None]) == [[0, 1], [0, 1]]


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_a_rivals_menu_is_no_choice_of_the_players(kind, cases):
    """Entries and information states then differ in number, though the player's menus have one entry."""
    compared = 0
    for seed in range(cases(60)):
        tree = menu_tree(kind, seed, truncate="none")
        for player in (0, 1):
            own = np.diff(tree.first_entry)[tree.infoset_player == player]
            if not tree.has_menus or not len(own) or own.max() > 1:
                continue
            frontier = memory_frontier(tree, player)
            keys = np.arange(tree.num_infosets)
            shared = memory_frontier(tree, player, price=keys)
            for penalty in (tree.penalties[player], 0.2):
                best = Decisions.against(tree, player).best(penalty).value
                assert frontier.at(penalty).value == pytest.approx(best, abs=1e-12)
                assert shared.at(penalty).value == pytest.approx(best, abs=1e-12)
            for budget in range(4):
                one = best_precomputation(tree, player, budget=budget)
                assert one.size <= budget
                assert one.utility <= frontier.upper_bound(budget) + 1e-12
                two = best_precomputation(tree, player, budget=budget, price=keys)
                assert one.utility == pytest.approx(two.utility, abs=1e-9)
            compared += 1
    assert compared >= cases(8)
