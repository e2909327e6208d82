"""Menus against a fixed opponent: Algorithm 1, frontier and budgets against brute force over all choices."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import best_response

from precomp_games import HistoryTree, Menu, make_policy
from precomp_games.algorithms import (
    EntropyBounds,
    best_of_frontier,
    best_precomputation,
    memory_frontier,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.meta_strategy import MetaStrategy
from tests import reference
from tests.history_tree.cases import uneven_efg
from tests.menus import menu_tree
from tests.random_games import random_efg, random_menu, random_policy, random_tree

_TINY = 1e-9
_GAMES = 220
_MOST = 3000  # choices of a player; a game with more is too slow by brute force


@functools.cache
def _case(seed: int) -> tuple[pyspiel.Game, int, Menu, tuple[Any, Any], list[reference.Choices]] | None:
    """(game, player, menu, sigma, all choices): perfect and imperfect information in turns."""
    kind, support = seed % 4, ("full", "partial", "pure")[seed % 3]
    by = "infoset" if kind in (1, 3) else "or_nothing" if seed % 8 == 2 else "history"
    if kind == 1:
        game = random_efg(seed, depth=4 + seed % 2, actions=2 + seed % 2)
    elif kind == 3:
        game = uneven_efg(seed)
    else:
        game = random_tree(seed, depth=3 + seed % 2, actions=3 - seed % 2)
    player = (seed // 2) % 2
    menu = random_menu(seed, 1 + seed % 3, by)
    sigma = tuple(
        random_policy(2 * seed + i, support, "infoset" if kind in (1, 3) else "history") for i in (0, 1)
    )
    choices = reference.all_choices(game, player, menu, _MOST)
    return (game, player, menu, sigma, choices) if choices else None


def _tree(seed: int, penalty: float = _TINY, **more: Any) -> HistoryTree:
    game, player, menu, sigma, _ = _case(seed)
    penalties = (penalty, math.inf) if player == 0 else (math.inf, penalty)
    pre = (menu, None) if player == 0 else (None, menu)
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties, **more)


@functools.cache
def _points(seed: int) -> np.ndarray:
    """The greatest utility of the player at each size, of all sets and all choices."""
    game, player, _, sigma, choices = _case(seed)
    sizes = np.array(list(map(len, choices)))
    best = np.full(1 + sizes.max(), -math.inf)
    np.maximum.at(best, sizes, reference.own_utilities_of_choices(game, player, choices, sigma))
    return best


_SEEDS = [seed for seed in range(3 * _GAMES) if seed % 4 != 3 or seed < 200]


def _seeds() -> list[int]:
    found = []
    for seed in _SEEDS:
        if len(found) == _GAMES:
            break
        if _case(seed) is not None:
            found.append(seed)
    assert len(found) == _GAMES
    return found


@pytest.mark.seconds("brute force over 10,000 sets, of which other tests use the games")
def test_against_brute_force_over_all_sets_and_all_choices():
    """Algorithm 1, the frontier at 101 penalties, and every budget, on more than 200 games."""
    several = mixed = inner = 0
    for seed in _seeds():
        points = _points(seed)
        tree, player = _tree(seed), _case(seed)[1]
        tree.check()
        sizes = np.arange(len(points))
        frontier = memory_frontier(tree, player)
        top = max(float(np.ptp(points[np.isfinite(points)])), 0.01)
        for penalty in np.append(_TINY, np.geomspace(1e-4, 1.1 * top, 100)):
            expected = float((points - penalty * sizes).max())
            at = frontier.at(float(penalty))
            assert at.value == pytest.approx(expected, abs=1e-9), (seed, penalty)
            assert at.size == len(at.memorization_set)
            best = best_precomputation(
                tree.with_penalties(tuple(np.where(np.isinf(tree.penalties), math.inf, penalty))), player
            )
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
    assert several >= 100 and mixed >= 80 and inner >= 100, (several, mixed, inner)


def test_trees_that_are_cut_lose_nothing():
    """Lemma 3 with menus: at the penalty that the tree was expanded for, and above."""
    cut = 0
    for seed in _seeds()[::3]:
        points, player = _points(seed), _case(seed)[1]
        for penalty in (0.02, 0.1, 0.3):
            tree = _tree(seed, penalty)
            expected = float((points - penalty * np.arange(len(points))).max())
            assert best_precomputation(tree, player).value == pytest.approx(expected, abs=1e-9)
            cut += tree.num_histories < _tree(seed).num_histories
    assert cut > 20


def test_evaluated_stops_against_the_whole_tree():
    """Branch and bound over menus: what `truncate="values"` leaves out is not worth memorizing."""

    def evaluation(state: Any) -> float:
        if state.is_terminal():
            return float(state.returns()[0])
        return float(np.random.default_rng([5, *state.history()]).uniform(0.0, 1.0))

    dropped = 0
    for seed in range(60):
        game = random_tree(seed, depth=5, actions=3)
        menu, sigma = random_menu(seed), random_policy(seed)
        player = seed % 2
        trees = [
            HistoryTree.from_game(
                game,
                sigma_pre=(menu, None) if player == 0 else (None, menu),
                sigma=sigma,
                penalties=(0.05, math.inf) if player == 0 else (math.inf, 0.05),
                leaf_value=evaluation,
                stop_value="evaluate",
                truncate=truncate,
            )
            for truncate in ("none", "reach", "values")
        ]
        values = [best_precomputation(tree, player).value for tree in trees]
        assert values == pytest.approx([values[0]] * 3, abs=1e-12)
        for tree in trees:
            tree.check()
        dropped += trees[2].num_histories < trees[1].num_histories
    assert dropped > 30


def test_what_a_book_is_worth_is_what_its_policy_scores():
    for seed in _seeds()[:60]:
        game, player, _, sigma, _ = _case(seed)
        best = best_precomputation(_tree(seed), player)
        policy = best.policy(sigma)

        def score(state: Any, player: int = player, policy: Any = policy) -> float:
            if state.is_terminal():
                return float(state.returns()[player])
            rows = (
                dict(state.chance_outcomes())
                if state.is_chance_node()
                else policy.action_probabilities(state)
            )
            return sum(p * score(state.child(a), player, policy) for a, p in rows.items() if p > 0.0)

        assert score(game.new_initial_state()) == pytest.approx(best.utility, abs=1e-9)
        gains, unprepared = Decisions.against(best.tree, player).gains()
        assert best.utility == pytest.approx(unprepared + gains[best.memorization_set].sum(), abs=1e-9)
        assert best.gain.sum() == pytest.approx(best.utility - unprepared, abs=1e-9)
        for state in best.states():
            assert state.infoset == best.tree.entry_infoset[state.entry]
            assert sum(best.tree.memorized_row(state.entry).values()) == pytest.approx(1.0)


def test_choices_switch_with_the_penalty():
    """One entry worth 0.10 with one information state beats one worth 0.16 with three, and then not."""
    lines = [
        'p "" 1 1 "" { "short" "long" "none" } 0',
        't "" 1 "" { 0.1 -0.1 }',
        'p "" 2 1 "" { "x" } 0',
        'p "" 1 2 "" { "on" "off" } 0',
        'p "" 2 2 "" { "x" } 0',
        'p "" 1 3 "" { "on" "off" } 0',
        't "" 2 "" { 0.16 -0.16 }',
        't "" 3 "" { 0 0 }',
        't "" 3 "" { 0 0 }',
        't "" 3 "" { 0 0 }',
    ]
    game = pyspiel.load_efg_game('EFG 2 R "switch" { "one" "two" }\n' + "\n".join(lines) + "\n")
    last = {"sigma": (lambda s: {s.legal_actions()[-1]: 1.0},) * 2, "penalties": (0.01, math.inf)}
    tree = HistoryTree.from_game(game, sigma_pre=(Menu.of_actions(), None), **last)
    frontier = memory_frontier(tree, 0)
    assert frontier.threshold is None
    assert frontier.sizes.tolist() == [0, 1, 3]
    assert frontier.breakpoints == pytest.approx([0.1, 0.03])
    assert [frontier.at(p).size for p in (0.02, 0.04, 0.2)] == [3, 1, 0]
    short, long = frontier.at(0.04).memorization_set, frontier.at(0.02).memorization_set
    assert not set(short) & set(long)  # sets need not nest
    assert best_precomputation(tree, 0, budget=2).utility == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["policy", "menu of one"])
def test_a_menu_of_one_entry_is_a_policy(kind):
    """The same arrays, bit for bit, and so everything else."""
    for seed in range(12):
        by = "infoset" if seed % 2 else "history"
        game = random_efg(seed) if seed % 2 else random_tree(seed)
        pre, sigma = random_policy(seed, "partial", by), random_policy(seed + 50, by=by)
        menu = Menu(lambda state, pre=pre: [pre(state)])
        plain = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01)
        tree = HistoryTree.from_game(
            game, sigma_pre=menu if kind == "menu of one" else (pre, menu), sigma=sigma, penalties=0.01
        )
        assert tree.fingerprint == plain.fingerprint
        assert not tree.has_menus and tree.num_entries == tree.num_infosets


def _uniform(state: Any) -> dict[int, float]:
    return dict.fromkeys(state.legal_actions(), 1.0 / len(state.legal_actions()))


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    ("name", "rival"),
    [
        ("kuhn_poker", None),
        ("leduc_poker", None),
        pytest.param("tic_tac_toe", None),
        ("connect_four(rows=4,columns=4,x_in_row=4)", "alpha_beta(depth=1)"),
        ("connect_four(rows=4,columns=4,x_in_row=4)", "alpha_beta(depth=2)"),
    ],
)
def test_with_all_actions_it_is_a_best_response(name, rival, player):
    """By OpenSpiel's own best response; against the uniform opponent where no other is named."""
    game = pyspiel.load_game(name)
    perfect = game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
    opponent = _Rows(game, make_policy(game, rival)) if rival else None
    menus, penalties = (Menu.of_actions(), None), (_TINY, math.inf)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=menus if player == 0 else menus[::-1],
        sigma=opponent or _uniform,
        penalties=penalties if player == 0 else penalties[::-1],
        position_key=(lambda s: s.observation_string(0)) if perfect else None,
    )
    if opponent is None:
        uniform = pyspiel.UniformRandomPolicy(game)  # which the response does not keep alive
        response = pyspiel.TabularBestResponse(game, player, uniform)
        expected = response.value_from_state(game.new_initial_state())
    else:
        expected = best_response.BestResponsePolicy(game, player, opponent).value(game.new_initial_state())
    assert best_precomputation(tree, player).value == pytest.approx(expected, abs=1e-6)


class _Rows(openspiel_policy.Policy):
    """A search that is asked once for each position; moves that it does not play are left out."""

    def __init__(self, game: pyspiel.Game, policy: Any) -> None:
        super().__init__(game, [0, 1])
        self._policy, self._rows = policy, {}

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        name = str(state)
        if name not in self._rows:
            row = self._policy.action_probabilities(state)
            self._rows[name] = {action: p for action, p in row.items() if p > 0.0}
        return self._rows[name]


def test_files_and_pickles_keep_menus(tmp_path):
    seed = next(s for s in _seeds() if _tree(s).has_menus)
    tree = _tree(seed)
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert loaded.fingerprint == tree.fingerprint
    assert (loaded.entry == tree.entry).all() and (loaded.first_entry == tree.first_entry).all()
    player = _case(seed)[1]
    assert best_precomputation(loaded, player).value == best_precomputation(tree, player).value


def test_mixtures_and_draws_play_like_the_strategy():
    rng = np.random.default_rng(3)
    for seed in _seeds()[:40]:
        tree, player = _tree(seed), _case(seed)[1]
        memorize = rng.random(tree.num_entries) * rng.integers(0, 2, tree.num_entries)
        totals = np.bincount(tree.entry_infoset, memorize, tree.num_infosets)
        memorize /= np.maximum(totals, 1.0)[tree.entry_infoset]
        strategy = MetaStrategy(tree, player, memorize)
        mixture = strategy.mixture()
        assert sum(p for p, _ in mixture) == pytest.approx(1.0)
        assert len(mixture) <= tree.num_entries + 1
        plan = np.zeros(tree.num_entries)
        for probability, members in mixture:
            plan += probability * MetaStrategy.of_set(tree, player, members).plan()
        assert plan == pytest.approx(strategy.plan(), abs=1e-12)
        again = MetaStrategy.of_plan(tree, player, strategy.plan())
        assert again.plan() == pytest.approx(strategy.plan(), abs=1e-12)
        for _ in range(5):
            MetaStrategy.of_set(tree, player, strategy.draw(rng))


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
    with pytest.raises(ValueError, match=message):
        HistoryTree.from_game(random_tree(3), sigma_pre=Menu(menu), sigma=random_policy(1), penalties=0.01)


def test_menus_that_differ_within_an_information_state():
    game = pyspiel.load_game("kuhn_poker")
    menu = Menu(lambda s: [0, 1] if s.history()[0] < s.history()[1] else [1, 0])
    with pytest.raises(ValueError, match="same at all histories of an information state"):
        HistoryTree.from_game(game, sigma_pre=menu, sigma=random_policy(1, by="infoset"), penalties=0.01)


def test_a_menu_is_no_policy_for_play():
    with pytest.raises(ValueError, match=r"expected sigma\[0\] to be an OpenSpiel Policy"):
        HistoryTree.from_game(
            random_tree(3), sigma_pre=random_policy(1), sigma=Menu.of_actions(), penalties=0.1
        )


def test_the_entries_of_ties():
    """`Menu.of_support`: each of the moves that a policy plays is an entry."""
    policy = {0: 0.5, 1: 0.5 - 1e-12, 2: 1e-12}
    menu = Menu.of_support(lambda state: policy)
    assert menu.entries_batch([None, None]) == [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match=r"Menu.of_support\(\): expected policy"):
        Menu.of_support(3)


def test_entropy_bounds_want_a_policy():
    seed = next(
        s
        for s in range(0, 200, 2)
        if _case(s) is not None and _tree(s).infoset_keys is None and _tree(s).has_menus
    )
    with pytest.raises(
        ValueError, match=r"EntropyBounds\(\): expected sigma_pre of player \d to be a policy"
    ):
        EntropyBounds(_tree(seed), _case(seed)[1])


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_a_rivals_menu_is_no_choice_of_the_players(kind):
    """Entries and information states then differ in number, though the player's menus have one entry."""
    compared = 0
    for seed in range(60):
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
    assert compared >= 8
