"""A price per position against enumeration: best sets, frontiers, budgets, menus and what trees keep."""

import functools
import itertools
import math
import pickle
import zlib

import numpy as np
import pyspiel
import pytest

from benchmarks.position_prices import whole_program
from benchmarks.synthetic_trees import transposing_tree, with_menus
from precomp_games import HistoryTree
from precomp_games.algorithms import (
    MetaStrategy,
    best_of_frontier,
    best_precomputation,
    every_visit_policy,
    every_visit_utility,
    memory_frontier,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.position_prices import (
    PricedForest,
    best_closure,
    closure_frontier,
)
from precomp_games.expansion.kept_positions import KeptPositions
from tests import reference
from tests.random_games import random_efg, random_menu, random_policy, random_tree

_TINY = 1e-9  # a penalty that cuts nothing
_MOST_SETS = 1000


def _pair(player, penalty):
    return (penalty, math.inf) if player == 0 else (math.inf, penalty)


def _policies(seed, by="position"):
    support = ("full", "partial", "pure")[seed % 3]
    pre = tuple(random_policy(4 * seed + i, support, by) for i in (0, 1))
    sigma = tuple(random_policy(4 * seed + 2 + i, ("full", support)[seed % 2], by) for i in (0, 1))
    return pre, sigma


def _all_sets(game, player, pre, sigma, position_of):
    """[(positions, utility)] of every prefix-closed set, by playing it out."""
    sets = list(reference.prefix_closed_sets(reference.predecessors(game, player)))
    counts = [len({position_of[name] for name in chosen}) for chosen in sets]
    utilities = reference.own_utilities(game, player, sets, pre, sigma)
    return list(zip(counts, utilities.tolist(), strict=True))


def _cases(games, kind):
    """(tree, player, price, all sets) of games number start to stop where something is shared."""
    given = 0
    for seed in itertools.count():
        if given == games.stop:
            return
        if kind == "perfect":
            game = random_tree(seed, depth=4 + seed % 3, actions=2 + seed % 2, width=2 + seed % 2)
            pre, sigma = _policies(seed)
        else:
            game = random_efg(seed, depth=4 + seed % 3)
            pre, sigma = _policies(seed, "infoset")
        player = (seed // 3) % 2
        parents = reference.predecessors(game, player)
        if not 1 < reference.count_prefix_closed_sets(parents) <= _MOST_SETS:
            continue
        if kind == "perfect":
            position_of = reference.positions(game, player)
        else:
            position_of = {name: zlib.crc32(f"{seed}{name}".encode()) % 4 for name in parents}
        if len(set(position_of.values())) == len(position_of):
            continue
        found = _all_sets(game, player, pre, sigma, position_of)
        if max(found, key=lambda pair: pair[1])[0] < 2:  # nothing much to memorize
            continue
        tree = HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=_pair(player, _TINY),
            truncate="none",
            position_key=str if kind == "perfect" else None,
        )
        price: str | np.ndarray = "positions"
        if kind != "perfect":
            if tree.infoset_keys is None:  # drawn so that nothing is hidden
                continue
            price = np.array([position_of[tree.key(k)] for k in range(tree.num_infosets)], dtype=np.int64)
        given += 1
        if given > games.start:
            yield tree, player, price, found


def _check_best(tree, player, price, found, penalty):
    best = best_precomputation(tree.with_penalties(_pair(player, penalty)), player, price=price)
    value = max(utility - penalty * count for count, utility in found)
    assert best.value == pytest.approx(value, abs=1e-9)
    assert best.value == pytest.approx(best.utility - penalty * best.num_positions, abs=1e-12)
    assert best.upper >= best.value and best.gap < 1e-9
    assert best.price == "positions" and best.size == len(best.memorization_set)
    MetaStrategy.of_set(tree, player, best.memorization_set)  # refuses sets that are not closed
    assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
    return best


@pytest.mark.parametrize(
    ("kind", "games"),
    [
        ("perfect", range(20)),
        ("imperfect", range(20)),
        pytest.param("perfect", range(20, 300)),
        pytest.param("imperfect", range(20, 300)),
    ],
)
def test_against_all_sets(kind, games):
    """Best sets at several penalties, the frontier, and every budget."""
    differs = bends = inner = 0
    for tree, player, price, found in _cases(games, kind):
        most = max(utility for _, utility in found)
        spread = most - min(utility for _, utility in found)
        for penalty in (0.3 * spread, 0.1 * spread, 0.03 * spread, 1e-3 * spread):
            if penalty < _TINY:
                continue
            best = _check_best(tree, player, price, found, penalty)
            alone = best_precomputation(tree.with_penalties(_pair(player, penalty)), player)
            assert best.value >= alone.value - 1e-12
            differs += best.value > alone.value + 1e-9
        frontier = memory_frontier(tree, player, price=price)
        points = frontier.breakpoints
        bends += len(points)
        assert (np.diff(points) < 0.0).all() and (np.diff(frontier.sizes) > 0).all()
        previous = frozenset()
        for k in range(len(frontier.sizes)):  # nested
            chosen = frozenset(np.flatnonzero(frontier.memorize(k)).tolist())
            assert previous <= chosen
            previous = chosen
        between = [(a + b) / 2 for a, b in itertools.pairwise(points)]
        for penalty in [*points, *between, *(points[:1] * 2)]:
            at = frontier.at(penalty)
            value = max(utility - penalty * count for count, utility in found)
            assert at.value == pytest.approx(value, abs=1e-9)
        for count, utility in found:
            assert frontier.upper_bound(count) >= utility - 1e-9
        for budget in range(max(count for count, _ in found) + 2):
            best = best_of_frontier(frontier, budget)
            expected = max(utility for count, utility in found if count <= budget)
            assert best.utility == best.value == pytest.approx(expected, abs=1e-9)
            assert best.num_positions <= budget and best.truncation_loss == 0.0
            assert best.gap < 1e-9
            MetaStrategy.of_set(tree, player, best.memorization_set)
            inner += best.num_positions not in frontier.sizes
    assert differs >= len(games) / 4 and bends >= len(games)
    assert inner >= len(games) / 100


def test_where_no_position_comes_twice():
    """It is the price per information state."""
    for seed in range(40):
        game, (pre, sigma) = random_tree(seed, depth=5), _policies(seed)
        tree = HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=(0.01, math.inf),
            price="positions",
            position_key=str,
        )
        one, two = best_precomputation(tree, 0), best_precomputation(tree, 0, price="positions")
        assert one.value == pytest.approx(two.value, abs=1e-12)
        np.testing.assert_array_equal(one.memorization_set, two.memorization_set)
        first, second = memory_frontier(tree, 0), memory_frontier(tree, 0, price="positions")
        known = first.breakpoints >= 0.01
        np.testing.assert_allclose(first.breakpoints[known], second.breakpoints, atol=1e-12)
        for budget in range(second.sizes[-1] + 1):
            one, two = best_of_frontier(first, budget), best_of_frontier(second, budget)
            assert one.utility == pytest.approx(two.utility, abs=1e-10)
            assert one.truncation_loss == pytest.approx(two.truncation_loss, abs=1e-10)


@pytest.mark.parametrize("truncate", ["reach", "values"])
@pytest.mark.parametrize("games", [range(30), pytest.param(range(30, 200))])
def test_cut_trees_lose_nothing(truncate, games, monkeypatch):
    """Trees that are cut for positions, beside uncut ones."""
    fewer = more = 0
    again = []
    begin = KeptPositions.__init__

    def counted(self, never_cut):
        again.append(bool(never_cut))
        begin(self, never_cut)

    monkeypatch.setattr(KeptPositions, "__init__", counted)
    for seed in games:
        # Most keys come up on several levels.
        key = str if seed % 3 == 1 else (lambda state: state.position()[-1:])
        game = random_tree(seed, depth=6 + seed % 2, actions=2 + seed % 2, width=3 + seed % 5, chance=0.1)
        pre, sigma = _policies(seed)
        player, penalty = (seed // 3) % 2, (0.02, 0.1, 0.4, 0.8)[seed // 2 % 4]
        options = {"sigma_pre": pre, "sigma": sigma, "penalties": _pair(player, penalty), "position_key": key}
        if truncate == "values":
            options |= {"leaf_value": _evaluation(seed), "stop_value": "evaluate"}
        whole = HistoryTree.from_game(game, truncate="none", **options)
        tree = HistoryTree.from_game(game, truncate=truncate, price="positions", **options)
        tree.check()
        assert whole.cut_for == "nothing" and tree.cut_for == "positions"
        one = best_precomputation(whole, player, price="positions")
        two = best_precomputation(tree, player, price="positions")
        assert two.value == pytest.approx(one.value, abs=1e-9)
        fewer += tree.num_infosets < whole.num_infosets
        alone = HistoryTree.from_game(game, truncate=truncate, **options)
        with pytest.raises(ValueError, match="cut for infosets"):
            best_precomputation(alone, player, price="positions")
        # What positions need has all that information states need.
        assert best_precomputation(tree, player).value == pytest.approx(
            best_precomputation(alone, player).value, abs=1e-9
        )
        for budget in (1, 2, 4):
            exact = best_precomputation(whole, player, price="positions", budget=budget)
            cut = best_precomputation(tree, player, price="positions", budget=budget)
            assert cut.utility <= exact.utility + 1e-9 <= cut.utility + cut.truncation_loss + 2e-9
        more += alone.num_infosets < tree.num_infosets
    assert fewer > len(games) / 4 and more > len(games) / 20 and any(again)


def _evaluation(seed):
    def evaluate(state):
        return -1.0 + 3.0 * (zlib.crc32(f"{seed}:{state}".encode()) % 1000) / 1000.0

    return evaluate


@pytest.mark.parametrize("games", [range(10), pytest.param(range(10, 100))])
def test_menus_against_all_choices(games):
    """One entry a position: all sets and choices that agree, without and with a budget."""
    given = differs = 0
    for seed in itertools.count():
        if given == games.stop:
            break
        game = random_tree(seed, depth=3 + seed % 2, actions=3, width=2, chance=0.1)
        menu, (_, sigma) = random_menu(seed, by="position"), _policies(seed)
        player = (seed // 2) % 2
        choices = reference.all_choices(game, player, menu, 400)
        position_of = reference.positions(game, player)
        if len(choices) < 10 or len(set(position_of.values())) == len(position_of):
            continue
        utilities, found = reference.own_utilities_of_choices(game, player, choices, sigma), []
        for chosen, utility in zip(choices, utilities.tolist(), strict=True):
            rows = {}
            for name, row in chosen.items():
                rows.setdefault(position_of[name], []).append(row)
            if all(row == same[0] for same in rows.values() for row in same):
                found.append((len(rows), utility))
        if len(found) == len(choices):
            continue
        given += 1
        if given <= games.start:
            continue
        tree = HistoryTree.from_game(
            game,
            sigma_pre=(menu, None) if player == 0 else (None, menu),
            sigma=sigma,
            penalties=_pair(player, _TINY),
            truncate="none",
            position_key=str,
        )
        for penalty in (0.2, 0.02, 1e-3):
            priced = tree.with_penalties(_pair(player, penalty))
            best = best_precomputation(priced, player, price="positions")
            value = max(utility - penalty * count for count, utility in found)
            assert best.value == pytest.approx(value, abs=1e-9)
            assert best.value == pytest.approx(best.utility - penalty * best.num_positions, abs=1e-12)
            assert best.gap < 1e-6
            members = set(best.memorization_set.tolist())
            differs += members != set(best_precomputation(priced, player).memorization_set.tolist())
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


@pytest.mark.parametrize(
    ("joined", "noise", "times"), [(1.05, 0.02, 1.0), (1.12, 0.1, 1.0), (1.12, 0.02, 4.0)]
)
def test_against_the_whole_program(joined, noise, times):
    """HiGHS on everything, beside passes and HiGHS on what they leave."""
    penalty = 2e-3
    tree = transposing_tree(penalty, joined, noise).with_penalties((times * penalty, math.inf))
    decisions = Decisions.against(tree, 0)
    shared = tree.position[tree.infoset_history].astype(np.int64)
    forest, _ = PricedForest.of_decisions(decisions, shared)
    best = best_precomputation(tree, 0, price="positions")
    objective = whole_program(forest, times * penalty).solve("test").objective
    assert best.value == pytest.approx(best.unprepared + objective * times * penalty, abs=1e-9)
    assert best.gap < 1e-9


def _random_forest(seed):
    """Any gains, any trees, any positions: no game's, and harder than those of games."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 600))
    previous = np.array([int(rng.integers(-1, k)) if k else -1 for k in range(n)], np.int32)
    keys, position = np.unique(rng.integers(0, int(rng.integers(1, n)), n), return_inverse=True)
    gain = rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
    return PricedForest(previous, gain, position.astype(np.int32), len(keys)), float(rng.uniform(0.0, 3.0))


def test_random_forests():
    """The whole program's value and the certificate; the frontier at many penalties."""
    left = 0
    for seed in range(40):
        forest, penalty = _random_forest(seed)
        best = best_closure(forest, penalty, "test")
        value = best.gain - penalty * best.size
        assert value == pytest.approx(
            whole_program(forest, penalty).solve("test").objective * penalty, abs=1e-8
        )
        assert best.upper == pytest.approx(value, abs=1e-8)
        shares = np.bincount(forest.position, best.price, forest.num_positions)
        assert (best.price >= 0.0).all() and (shares <= penalty * (1.0 + 1e-12)).all()
        left += best.left > 0
        if seed % 4 == 0:
            threshold, breakpoints, sizes, gains = closure_frontier(forest, 0.01, "test")
            assert (np.diff(breakpoints) < 0.0).all()
            for k, size in enumerate(sizes):
                chosen = threshold > (breakpoints[k] if k < len(breakpoints) else 0.0)
                assert forest.size(chosen) == size
                assert forest.gain[chosen].sum() == pytest.approx(gains[k], abs=1e-8)
            for price in [*np.linspace(0.01, 3.0, 7), *breakpoints[:5]]:
                found = best_closure(forest, price, "test")
                curve = float((gains - price * sizes).max())
                assert curve == pytest.approx(found.gain - price * found.size, abs=1e-8)
    assert left >= 10


def _edges_game(edges):
    """Chance draws an edge of a bipartite graph, its left end first; to play 1 at both ends wins 1."""
    chance, turn, end = itertools.count(1), itertools.count(1), itertools.count(1)
    ways = {a: [y for x, y in edges if x == a] for a, _ in edges}

    def leaf(utility):
        return f't "" {next(end)} "" {{ {utility} -{utility} }}'

    def drawn(names):
        return f'c "" {next(chance)} "" {{ {" ".join(names)} }} 0'

    lines = ['EFG 2 R "edges" { "0" "1" }', drawn(f'"{a}" {len(ways[a])}/{len(edges)}' for a in ways)]
    for ends in ways.values():
        lines += [
            f'p "" 1 {next(turn)} "" {{ "0" "1" }} 0',
            leaf(0),
            drawn(f'"{b}" 1/{len(ends)}' for b in ends),
        ]
        for _ in ends:
            lines += [f'p "" 1 {next(turn)} "" {{ "0" "1" }} 0', leaf(0), leaf(1)]
    return pyspiel.load_efg_game("\n".join(lines) + "\n")


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
    for _ in range(2):
        edges = [(a, b) for a in "abc" for b in "xyz" if rng.random() < 0.6]
        vertices = sorted({end for edge in edges for end in edge})
        tree = HistoryTree.from_game(
            _edges_game(edges),
            sigma_pre=(lambda state: {1: 1.0}, None),
            sigma=lambda state: {0: 1.0},
            penalties=(_TINY, math.inf),
            truncate="none",
            position_key=_end_of,
        )
        assert len(set(tree.position[tree.infoset_history])) == len(vertices) < tree.num_infosets
        frontier = memory_frontier(tree, 0, price="positions")
        for budget in range(len(vertices) + 1):
            most = max(
                sum(a in chosen and b in chosen for a, b in edges)
                for chosen in itertools.combinations(vertices, budget)
            )
            best = best_of_frontier(frontier, budget)
            assert best.utility == pytest.approx(most / len(edges), abs=1e-9)


def test_what_comes_in_is_the_least_best_set():
    """What adds nothing is in some best sets and not in others, and is not taken in."""
    forest = PricedForest(
        np.array([-1, 0, -1], np.int32), np.array([2.0, 1.0, 1.0]), np.array([0, 1, 2], np.int32), 3
    )
    found = best_closure(forest, 1.0, "test")
    assert found.chosen.tolist() == [True, False, False] and found.upper == 1.0


def test_wrong_prices():
    tree = HistoryTree.from_game(
        random_tree(1, width=2), sigma_pre=random_policy(1), sigma=random_policy(2), penalties=(0.1, math.inf)
    )
    for price, message in (
        ("histories", "price to be"),
        (None, "price to be"),
        ([1.5] * tree.num_infosets, "integers"),
        ([0] * (tree.num_infosets + 1), "integers"),
        ("positions", "position_key"),
        ([0] * tree.num_infosets, "cut for infosets"),
    ):
        with pytest.raises(ValueError, match=message):
            best_precomputation(tree, 0, price=price)
    options = {"sigma_pre": random_policy(1), "sigma": random_policy(2), "penalties": 0.1}
    with pytest.raises(ValueError, match="whose penalty is infinite"):
        HistoryTree.from_game(random_tree(1, width=2), price="positions", position_key=str, **options)
    with pytest.raises(ValueError, match="perfect information"):
        HistoryTree.from_game(random_efg(1), price="positions", position_key=str, **options)


def _by_position(known, pre, sigma, state):
    return (pre if str(state) in known else sigma)(state)


def _played(game, player, policies):
    """What policies are worth to a player."""

    def worth(state):
        if state.is_terminal():
            return state.returns()[player]
        mover = state.current_player()
        row = dict(state.chance_outcomes()) if state.is_chance_node() else policies[mover](state)
        return sum(p * worth(state.child(a)) for a, p in row.items() if p > 0.0)

    return worth(game.new_initial_state())


def test_every_visit():
    """The policy that answers by position, played out on states."""
    differs = 0
    for seed in range(30):
        game, (pre, sigma) = (
            random_tree(seed, depth=7, actions=2, width=3),
            _policies(seed),
        )
        player = seed % 2
        tree = HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=_pair(player, 0.02),
            price="positions",
            position_key=str,
        )
        book = best_precomputation(tree, player, price="positions")
        known = {str(tree.state(tree.infoset_history[k])) for k in book.memorization_set.tolist()}
        answers = every_visit_policy(book, str)

        answering = list(sigma)
        answering[player] = functools.partial(_by_position, known, pre[player], sigma[player])
        utility = every_visit_utility(book, str)
        assert utility == pytest.approx(_played(game, player, answering), abs=1e-12)
        played = [answers.action_probabilities] * 2
        assert utility == pytest.approx(_played(game, player, played), abs=1e-12)
        lines = _played(game, player, [book.policy().action_probabilities] * 2)
        assert lines == pytest.approx(book.utility, abs=1e-9)
        differs += abs(utility - lines) > 1e-9
    assert differs


def test_what_a_tree_was_cut_for_is_in_its_file(tmp_path):
    game, (pre, sigma) = random_tree(2, depth=5, width=2), _policies(2)
    options = {"sigma_pre": pre, "sigma": sigma, "penalties": (0.05, math.inf), "position_key": str}
    for more, cut_for in (
        ({"price": "positions"}, "positions"),
        ({"truncate": "none"}, "nothing"),
        ({}, "infosets"),
    ):
        tree = HistoryTree.from_game(game, **more, **options)
        tree.save(tmp_path / "tree.npz")
        loaded = HistoryTree.load(tmp_path / "tree.npz")
        assert tree.cut_for == loaded.cut_for == pickle.loads(pickle.dumps(tree)).cut_for == cut_for
        assert tree.with_penalties((0.1, math.inf)).cut_for == cut_for
        if cut_for != "infosets":
            one, two = (best_precomputation(t, 0, price="positions") for t in (tree, loaded))
            assert one.value == two.value
            with pytest.raises(ValueError, match="sigma of both players"):
                every_visit_utility(two, str)


def test_a_penalty_for_each_information_state():
    """`Decisions.best` at prices that differ, against all sets."""
    games = differs = 0
    for seed in itertools.count():
        if games == 100:
            break
        kind = "perfect" if seed % 2 else "imperfect"
        game = random_tree(seed, depth=3 + seed % 2) if seed % 2 else random_efg(seed, depth=4)
        pre, sigma = _policies(seed, "history" if kind == "perfect" else "infoset")
        player = (seed // 2) % 2
        parents = reference.predecessors(game, player)
        if not 1 < reference.count_prefix_closed_sets(parents) <= 100:
            continue
        tree = HistoryTree.from_game(
            game, sigma_pre=pre, sigma=sigma, penalties=_pair(player, _TINY), truncate="none"
        )
        # Named as the reference names them.
        names = [
            reference.information_state(game, tree.state(int(history)), player)
            for history in tree.infoset_history
        ]
        prices = np.random.default_rng(seed).exponential(0.05, len(names))
        prices[prices < 0.02] = 0.0
        cost = dict(zip(names, prices.tolist(), strict=True))
        # What sigma_pre never comes to is not in the tree, and nothing is gained there.
        sets = list(reference.prefix_closed_sets(parents))
        costs = [sum(cost.get(name, 0.05) for name in chosen) for chosen in sets]
        most = (reference.own_utilities(game, player, sets, pre, sigma) - costs).max()
        decisions = Decisions.against(tree, player)
        best = decisions.best(prices)
        assert best.value == pytest.approx(most, abs=1e-9)
        worth = decisions.value(best.memorize, prices)
        assert worth.value == pytest.approx(most, abs=1e-9)
        differs += best.memorize.sum() != decisions.best(0.05).memorize.sum()
        games += 1
    assert differs >= 10
