"""Information states that cost different penalties, and what is known already: brute force over all sets."""

import functools
import math

import numpy as np
import pytest

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import (
    best_of_frontier,
    best_precomputation,
    memory_frontier,
)
from tests import reference
from tests.random_games import random_efg, random_menu, random_policy, random_tree

_MOST = 120  # sets
_SOME = (0.0, 0.0, 0.4, 1.0, 2.5)
_KNOWN = (0.0, 1.0, 1.0)


def _draw(seed, name, of):
    return of[int(np.random.default_rng([seed, 11, *name.encode()]).integers(len(of)))]


def _weights(game, seed, of):
    """A function from a state to what memorizing its information state costs."""
    return lambda state: _draw(seed, reference.information_state(game, state, state.current_player()), of)


def _cases(count, kinds=("tree", "efg")):
    """(seed, game, player, sigma_pre, sigma, all of the player's sets with their utilities)."""
    for seed in range(count):
        kind = kinds[seed % len(kinds)]
        game = (
            random_tree(seed, depth=4, actions=2)
            if kind == "tree"
            else random_efg(seed, depth=3 + seed // 4 % 2)
        )
        by, support = ("history" if kind == "tree" else "infoset"), ("full", "partial", "pure")[seed % 3]
        pre, sigma = (tuple(random_policy(4 * seed + k + i, support, by) for i in (0, 1)) for k in (0, 2))
        player = seed // 2 % 2
        parents = reference.predecessors(game, player)
        if reference.count_prefix_closed_sets(parents) > _MOST:
            continue
        yield seed, game, player, pre, sigma, parents


def _utilities(game, player, pre, sigma, parents):
    """{set: the player's utility}."""
    sets = list(reference.prefix_closed_sets(parents))
    return dict(zip(sets, reference.own_utilities(game, player, sets, pre, sigma).tolist(), strict=True))


def _tree(game, player, pre, sigma, penalty, **options):
    penalties = (penalty, math.inf) if player == 0 else (math.inf, penalty)
    return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=penalties, **options)


def _names(tree, player, entries):
    """The information states of entries."""
    return frozenset(
        reference.information_state(tree.game, tree.state(int(tree.infoset_history[k])), player)
        for k in tree.entry_infoset[np.asarray(entries, int)]
    )


def test_each_information_state_has_its_penalty(cases):
    compared = free = 0
    for seed, game, player, pre, sigma, parents in _cases(cases(130)):
        weight = functools.partial(_draw, seed, of=_SOME)
        sets = _utilities(game, player, pre, sigma, parents)
        for penalty in (0.01, 0.1):
            value = max(u - penalty * sum(map(weight, s)) for s, u in sets.items())
            told = {"weight": _weights(game, seed, _SOME)}
            tree = _tree(game, player, pre, sigma, penalty, **told)
            tree.check()
            best = best_precomputation(tree, player)
            assert best.value == pytest.approx(value, abs=1e-9)
            names = _names(tree, player, best.memorization_set)
            assert best.utility == pytest.approx(sets[names], abs=1e-9)
            assert best.paid == pytest.approx(sum(map(weight, names)), abs=1e-12)
            assert best.value == pytest.approx(best.utility - penalty * best.paid, abs=1e-12)
            # An uncut tree without weights takes them afterwards.
            whole = _tree(game, player, pre, sigma, penalty, truncate="none")
            given = np.ones(whole.num_infosets)
            for k in np.flatnonzero(whole.infoset_player == player).tolist():
                given[k] = weight(next(iter(_names(whole, player, [k]))))
            assert best_precomputation(whole.with_weights(given), player).value == pytest.approx(
                value, abs=1e-9
            )
            compared += 1
            free += best.size > 0 and best.paid == 0.0
    assert compared >= cases(100)
    assert free >= cases(5)


def test_what_costs_nothing_and_what_follows_it_is_not_cut():
    """A line that is known, however rare, leads to what is worth its penalty or not by itself."""
    for _, game, player, pre, sigma, parents in _cases(40, ("tree",)):
        everything = _tree(game, player, pre, sigma, 10.0, weight=lambda state: 0.0)
        whole = _tree(game, player, pre, sigma, 10.0, truncate="none")
        assert everything.num_infosets == whole.num_infosets
        sets = _utilities(game, player, pre, sigma, parents)
        assert best_precomputation(everything, player).value == pytest.approx(max(sets.values()), abs=1e-9)
        nothing = _tree(game, player, pre, sigma, 10.0)
        assert nothing.num_infosets == 0


def test_evaluated_stops_cut_no_more_than_they_may():
    compared = 0
    for seed, game, player, pre, sigma, _ in _cases(60, ("tree",)):

        def worth(state, seed=seed):
            return float(np.random.default_rng([seed, *state.history()]).uniform(-1.0, 2.0))

        options = {"leaf_value": worth, "stop_value": "evaluate", "weight": _weights(game, seed, _SOME)}
        for penalty in (0.02, 0.2):
            cut = _tree(game, player, pre, sigma, penalty, truncate="values", **options)
            whole = _tree(game, player, pre, sigma, penalty, truncate="none", **options)
            one, two = best_precomputation(cut, player), best_precomputation(whole, player)
            assert one.value == pytest.approx(two.value, abs=1e-12)
            compared += cut.num_histories < whole.num_histories
    assert compared >= 20


def _within(sets, weight, budget):
    return max(u for s, u in sets.items() if sum(map(weight, s)) <= budget)


def test_budgets_and_frontiers_count_what_is_not_known():
    compared = 0
    for seed, game, player, pre, sigma, parents in _cases(80):
        weight = functools.partial(_draw, seed, of=_KNOWN)
        sets = _utilities(game, player, pre, sigma, parents)
        tree = _tree(game, player, pre, sigma, 0.01, truncate="none", weight=_weights(game, seed, _KNOWN))
        frontier = memory_frontier(tree, player)
        for penalty in (0.01, 0.05, 0.3, 10.0):
            value = max(u - penalty * sum(map(weight, s)) for s, u in sets.items())
            assert frontier.at(penalty).value == pytest.approx(value, abs=1e-9)
        for budget in range(5):
            best = best_precomputation(tree, player, budget=budget)
            assert best.utility == pytest.approx(_within(sets, weight, budget), abs=1e-9)
            assert best.paid <= budget
            assert best_of_frontier(frontier, budget).utility == pytest.approx(best.utility, abs=1e-12)
        compared += 1
    assert compared >= 50


def _contains(chosen, kept, parents):
    """Whether a set has what is kept wherever it comes to it."""
    return all(name in chosen for name in kept if parents[name] is None or parents[name] in chosen)


def test_what_is_kept_is_in_the_set_and_costs_nothing():
    compared = lost = 0
    for seed, game, player, pre, sigma, parents in _cases(90):
        rng = np.random.default_rng([seed, 3])
        sets = _utilities(game, player, pre, sigma, parents)
        tree = _tree(game, player, pre, sigma, 0.02, truncate="none")
        own = np.flatnonzero(tree.infoset_player == player)
        keep = own[rng.random(len(own)) < 0.35]
        kept = _names(tree, player, keep)
        sets = {s: u for s, u in sets.items() if _contains(s, kept & parents.keys(), parents)}
        value = max(u - 0.02 * len(s - kept) for s, u in sets.items())
        best = best_precomputation(tree, player, keep=keep)
        assert best.value == pytest.approx(value, abs=1e-9)
        assert best.utility == pytest.approx(sets[_names(tree, player, best.memorization_set)], abs=1e-9)
        assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
        frontier = memory_frontier(tree, player, keep=keep)
        assert frontier.at(0.02).value == pytest.approx(value, abs=1e-9)
        for budget in range(4):
            within = best_precomputation(tree, player, keep=keep, budget=budget)
            assert within.utility == pytest.approx(
                max(u for s, u in sets.items() if len(s - kept) <= budget), abs=1e-9
            )
            assert within.paid <= budget
        lost += best.utility < best_precomputation(tree, player, budget=len(own)).utility - 1e-9
        compared += 1
    assert compared >= 60
    assert lost >= 10  # for better or worse


def _comes_to(game, player):
    """{name: the player's last (name, action) before it, or None}."""
    found = {}

    def walk(state, last):
        if state.is_terminal():
            return
        own = state.current_player() == player
        name = reference.information_state(game, state, player) if own else ""
        if own:
            found.setdefault(name, last)
        for action in state.legal_actions():
            walk(state.child(action), (name, action) if own else last)

    walk(game.new_initial_state(), None)
    return found


def test_menus_keep_their_entries():
    compared = 0
    for seed in range(120):
        player, depth = seed % 2, 3 + seed % 2
        game = random_tree(seed, depth=depth, actions=3)
        menu = random_menu(seed)
        pre, sigma = (menu, menu), tuple(random_policy(4 * seed + i) for i in (2, 3))
        choices = reference.all_choices(game, player, menu, 600)
        if not choices:
            continue
        tree = _tree(game, player, pre, sigma, 0.02, truncate="none")
        rng = np.random.default_rng([seed, 4])
        own = np.flatnonzero(tree.infoset_player == player)
        keep = np.array([rng.integers(*tree.first_entry[k : k + 2]) for k in own if rng.random() < 0.3], int)
        kept = {next(iter(_names(tree, player, [e]))): set(tree.memorized_row(int(e))) for e in keep}
        before = _comes_to(game, player)

        def fits(chosen, kept=kept, before=before):
            for name, actions in kept.items():
                last = before[name]
                comes = last is None or last[1] in chosen.get(last[0], {})
                if comes and set(chosen.get(name, ())) != actions:
                    return False
            return True

        fitting = list(filter(fits, choices))
        sizes = [len(chosen.keys() - kept.keys()) for chosen in fitting]
        utilities = reference.own_utilities_of_choices(game, player, fitting, sigma)
        found = list(zip(sizes, utilities.tolist(), strict=True))
        best = best_precomputation(tree, player, keep=keep)
        assert best.value == pytest.approx(max(u - 0.02 * size for size, u in found), abs=1e-9)
        for budget in (0, 1, 2):
            within = best_precomputation(tree, player, keep=keep, budget=budget)
            assert within.utility == pytest.approx(max(u for size, u in found if size <= budget), abs=1e-9)
        compared += 1
    assert compared >= 50


def test_positions_that_are_known_cost_nothing():
    compared = 0
    for seed in range(150):
        player = seed % 2
        game = random_tree(seed, depth=4, actions=2, width=3)
        parents = reference.predecessors(game, player)
        if reference.count_prefix_closed_sets(parents) > _MOST:
            continue
        pre, sigma = (
            tuple(random_policy(4 * seed + k + i, "full", "position") for i in (0, 1)) for k in (0, 2)
        )
        at = reference.positions(game, player)
        sets = _utilities(game, player, pre, sigma, parents)
        known = {name for name in set(at.values()) if _draw(seed, name, _KNOWN) == 0.0}

        def cost(chosen, at=at, known=known):
            return len({at[name] for name in chosen} - known)

        weight = lambda state, seed=seed: _draw(seed, str(state), _KNOWN)  # noqa: E731
        penalty = 0.05
        for truncate in ("reach", "none"):
            options = {"truncate": truncate, "weight": weight, "position_key": str}
            tree = _tree(game, player, pre, sigma, penalty, price="positions", **options)
            best = best_precomputation(tree, player, price="positions")
            value = max(u - penalty * cost(s) for s, u in sets.items())
            assert best.value == pytest.approx(value, abs=1e-9)
            assert best.upper == pytest.approx(value, abs=1e-9)
        frontier = memory_frontier(tree, player, price="positions")
        for dearer in (penalty, 0.2):
            value = max(u - dearer * cost(s) for s, u in sets.items())
            assert frontier.at(dearer).value == pytest.approx(value, abs=1e-9)
        for budget in range(4):
            within = best_precomputation(tree, player, price="positions", budget=budget)
            assert within.utility == pytest.approx(
                max(u for s, u in sets.items() if cost(s) <= budget), abs=1e-9
            )
        keep = [k for k in np.flatnonzero(tree.infoset_player == player)
                if at[next(iter(_names(tree, player, [k])))] in known]  # fmt: skip
        kept = _names(tree, player, keep)
        plain = tree.with_weights(np.ones(tree.num_infosets))
        best = best_precomputation(plain, player, price="positions", keep=keep)
        value = max(u - penalty * cost(s) for s, u in sets.items() if _contains(s, kept, parents))
        assert best.value == pytest.approx(value, abs=1e-9)
        compared += 1
    assert compared >= 60


def test_weights_travel_with_the_tree(tmp_path):
    game = random_tree(3, depth=4, actions=2)
    pre, sigma = random_policy(1), random_policy(2)
    tree = HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=(0.01, 0.02), weight=_weights(game, 3, _SOME)
    )
    assert len(tree.weight) == tree.num_infosets
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert (loaded.weight == tree.weight).all()
    assert loaded.same_as(tree)
    assert loaded.same_as(tree.with_weights(np.ones(tree.num_infosets)))
    plain = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01, weight=lambda state: 1)
    assert len(plain.weight) == 0
    assert (plain.infoset_penalty == 0.01).all()
    never = tree.with_penalties((math.inf, 0.02))
    assert np.isinf(never.infoset_penalty[never.infoset_player == 0]).all()
    assert best_precomputation(never, 0).size == 0


def test_bad_weights():
    game = random_efg(5, depth=4)
    pre, sigma = random_policy(1, by="infoset"), random_policy(2, by="infoset")

    def expanded(weight):
        return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01, weight=weight)

    for weight in (
        lambda state: -1.0,
        lambda state: "1",
        lambda state: math.nan,
        lambda state: math.inf,
        1.0,
    ):
        with pytest.raises(
            ValueError, match=r"^HistoryTree.from_game\(\): expected weight to (give|be a function)"
        ):
            expanded(weight)
    with pytest.raises(
        ValueError, match="expected weight to be the same at all histories of an information state"
    ):
        expanded(lambda state: float(len(state.history_str()) + sum(map(ord, state.history_str()))))
    tree = expanded(None)
    for wrong in (1.0, [1.0], [-1.0] * tree.num_infosets, [math.inf] * tree.num_infosets):
        with pytest.raises(ValueError, match=r"^HistoryTree.with_weights\(\): expected weight to be"):
            tree.with_weights(wrong)
    half = tree.with_weights(np.full(tree.num_infosets, 0.5))
    with pytest.raises(ValueError, match=r"^best_precomputation\(\): expected weights of 0 and 1"):
        best_precomputation(half, 0, budget=2)
    with pytest.raises(ValueError, match=r"^memory_frontier\(\): expected weights of 0 and 1"):
        memory_frontier(half, 0)


def test_bad_keep():
    game = random_tree(3, depth=4, actions=3)
    menu = Menu(lambda state: state.legal_actions())
    tree = _tree(game, 0, (menu, None), (random_policy(1), random_policy(2)), 0.01)
    first = int(np.flatnonzero(np.diff(tree.first_entry) > 1)[0])
    for wrong in (
        [-1],
        [tree.num_entries],
        [0.5],
        "0",
        [tree.first_entry[first], tree.first_entry[first] + 1],
    ):
        with pytest.raises(ValueError, match=r"^best_precomputation\(\): expected keep to be"):
            best_precomputation(tree, 0, keep=wrong)
