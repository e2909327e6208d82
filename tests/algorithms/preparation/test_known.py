"""Information states that cost different penalties, and what is known already: brute force over all sets."""

import functools
import math

import numpy as np
import pytest

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import best_of_frontier, best_precomputation, memory_frontier
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import SUPPORTS, policy_pairs, random_efg, random_menu, random_policy, random_tree
from tests.oracles.preparation import all_sets, evaluation, names_of, one_sided

_SOME = (0.0, 0.0, 0.4, 1.0, 2.5)
_KNOWN = (0.0, 1.0, 1.0)


def _draw(seed, name, of):
    return of[int(np.random.default_rng([seed, 11, *name.encode()]).integers(len(of)))]


def _weights(game, seed, of):
    """Return a function from a state to what memorizing its information state costs."""
    return lambda state: _draw(seed, books.information_state(game, state, state.current_player()), of)


def games(count, kinds=("tree", "efg")):
    """(seed, game, player, sigma_pre, sigma, {set of the player's: its utility}) of small ones of so many."""
    for seed in range(count):
        tree = kinds[seed % len(kinds)] == "tree"
        game = random_tree(seed, depth=4, actions=2) if tree else random_efg(seed, depth=3 + seed // 4 % 2)
        pre, sigma = policy_pairs(seed, SUPPORTS[seed % 3], "history" if tree else "infoset")
        player = seed // 2 % 2
        if sets := all_sets(game, player, pre, sigma, 120):
            yield seed, game, player, pre, sigma, sets


def contains(chosen, kept, parents):
    """Return whether a set has each kept entry whose parent it has."""
    return all(name in chosen for name in kept if parents[name] is None or parents[name] in chosen)


def _best(sets, cost, penalty=0.0, budget=math.inf):
    """Return the greatest value of the sets that cost at most the budget."""
    costs = ((cost(chosen), utility) for chosen, utility in sets.items())
    return max(utility - penalty * paid for paid, utility in costs if paid <= budget)


def test_each_information_state_has_its_penalty(cases):
    """By weights that a tree was expanded with or was given afterwards, and by prices of `Decisions.best`."""
    free = 0
    for seed, game, player, pre, sigma, sets in games(cases(130)):
        weight = functools.partial(_draw, seed, of=_SOME)

        def cost(chosen, weight=weight):
            return sum(map(weight, chosen))

        whole = one_sided(game, player, pre, sigma, 0.01, truncate="none")
        given = np.ones(whole.num_infosets)
        for k in np.flatnonzero(whole.infoset_player == player).tolist():
            given[k] = cost(names_of(whole, player, [k]))
        decisions = Decisions.against(whole, player)
        for penalty in (0.01, 0.1):
            value = _best(sets, cost, penalty)
            tree = one_sided(game, player, pre, sigma, penalty, weight=_weights(game, seed, _SOME))
            tree.check()
            best = best_precomputation(tree, player)
            assert best.value == pytest.approx(value, abs=1e-9)
            names = names_of(tree, player, best.memorization_set)
            assert best.utility == pytest.approx(sets[names], abs=1e-9)
            assert best.paid == pytest.approx(cost(names), abs=1e-12)
            assert best.value == pytest.approx(best.utility - penalty * best.paid, abs=1e-12)
            again = decisions.best(penalty * given)
            assert again.value == pytest.approx(value, abs=1e-9)
            assert decisions.value(again.memorize, penalty * given).value == pytest.approx(value, abs=1e-9)
            free += best.size > 0 and best.paid == 0.0
        afterwards = best_precomputation(whole.with_weights(given), player)
        assert afterwards.value == pytest.approx(_best(sets, cost, 0.01), abs=1e-9)
    assert free >= cases(5)


def test_what_costs_nothing_and_what_follows_it_is_not_cut(cases):
    """A line that is known, however rare, leads to what is worth its penalty or not by itself."""
    for _, game, player, pre, sigma, sets in games(cases(40), ("tree",)):
        everything = one_sided(game, player, pre, sigma, 10.0, weight=lambda state: 0.0)
        whole = one_sided(game, player, pre, sigma, 10.0, truncate="none")
        assert everything.num_infosets == whole.num_infosets
        assert best_precomputation(everything, player).value == pytest.approx(max(sets.values()), abs=1e-9)
        assert one_sided(game, player, pre, sigma, 10.0).num_infosets == 0


def test_evaluated_stops_cut_no_more_than_they_may(cases):
    fewer = 0
    for seed, game, player, pre, sigma, _ in games(cases(60), ("tree",)):
        options = {"leaf_value": evaluation(seed), "stop_value": "evaluate"}
        options["weight"] = _weights(game, seed, _SOME)
        for penalty in (0.02, 0.2):
            cut = one_sided(game, player, pre, sigma, penalty, truncate="values", **options)
            whole = one_sided(game, player, pre, sigma, penalty, truncate="none", **options)
            one, two = best_precomputation(cut, player), best_precomputation(whole, player)
            assert one.value == pytest.approx(two.value, abs=1e-12)
            fewer += cut.num_histories < whole.num_histories
    assert fewer >= cases(20)


def test_budgets_and_frontiers_count_what_is_not_known(cases):
    for seed, game, player, pre, sigma, sets in games(cases(80)):

        def cost(chosen, seed=seed):
            return sum(_draw(seed, name, _KNOWN) for name in chosen)

        weight = _weights(game, seed, _KNOWN)
        tree = one_sided(game, player, pre, sigma, 0.01, truncate="none", weight=weight)
        frontier = memory_frontier(tree, player)
        for penalty in (0.01, 0.05, 0.3, 10.0):
            assert frontier.at(penalty).value == pytest.approx(_best(sets, cost, penalty), abs=1e-9)
        for budget in range(5):
            best = best_precomputation(tree, player, budget=budget)
            assert best.utility == pytest.approx(_best(sets, cost, budget=budget), abs=1e-9)
            assert best.paid <= budget
            assert best_of_frontier(frontier, budget).utility == pytest.approx(best.utility, abs=1e-12)


def test_what_is_kept_is_in_the_set_and_costs_nothing(cases):
    lost = 0
    for seed, game, player, pre, sigma, sets in games(cases(90)):
        tree = one_sided(game, player, pre, sigma, 0.02, truncate="none")
        own = np.flatnonzero(tree.infoset_player == player)
        keep = own[np.random.default_rng([seed, 3]).random(len(own)) < 0.35]
        kept, parents = names_of(tree, player, keep), books.predecessors(game, player)
        sets = {s: u for s, u in sets.items() if contains(s, kept & parents.keys(), parents)}

        def cost(chosen, kept=kept):
            return len(chosen - kept)

        value = _best(sets, cost, 0.02)
        best = best_precomputation(tree, player, keep=keep)
        assert best.value == pytest.approx(value, abs=1e-9)
        assert best.utility == pytest.approx(sets[names_of(tree, player, best.memorization_set)], abs=1e-9)
        assert best.utility == pytest.approx(best.unprepared + best.gain.sum(), abs=1e-9)
        assert memory_frontier(tree, player, keep=keep).at(0.02).value == pytest.approx(value, abs=1e-9)
        for budget in range(4):
            within = best_precomputation(tree, player, keep=keep, budget=budget)
            assert within.utility == pytest.approx(_best(sets, cost, budget=budget), abs=1e-9)
            assert within.paid <= budget
        lost += best.utility < best_precomputation(tree, player, budget=len(own)).utility - 1e-9
    assert lost >= cases(10)  # for better or worse


def test_menus_keep_their_entries(cases):
    compared = 0
    for seed in range(cases(120)):
        game, player = random_tree(seed, depth=3 + seed % 2, actions=3), seed % 2
        menu, sigma = random_menu(seed), (random_policy(4 * seed + 2), random_policy(4 * seed + 3))
        choices = books.all_choices(game, player, menu, 600)
        if not choices:
            continue
        tree = one_sided(game, player, menu, sigma, 0.02, truncate="none")
        rng = np.random.default_rng([seed, 4])
        own = np.flatnonzero(tree.infoset_player == player)
        keep = np.array([rng.integers(*tree.first_entry[k : k + 2]) for k in own if rng.random() < 0.3], int)
        kept = {next(iter(names_of(tree, player, [e]))): set(tree.memorized_row(int(e))) for e in keep}
        before = books.last_steps(game, player)

        def fits(chosen, kept=kept, before=before):
            for name, actions in kept.items():
                last = before[name]
                comes = last is None or last[1] in chosen.get(last[0], {})
                if comes and set(chosen.get(name, ())) != actions:
                    return False
            return True

        fitting = list(filter(fits, choices))
        sizes = [len(chosen.keys() - kept.keys()) for chosen in fitting]
        utilities = books.own_utilities_of_choices(game, player, fitting, sigma)
        found = list(zip(sizes, utilities.tolist(), strict=True))
        best = best_precomputation(tree, player, keep=keep)
        assert best.value == pytest.approx(max(u - 0.02 * size for size, u in found), abs=1e-9)
        for budget in (0, 1, 2):
            within = best_precomputation(tree, player, keep=keep, budget=budget)
            assert within.utility == pytest.approx(max(u for size, u in found if size <= budget), abs=1e-9)
        compared += 1
    assert compared >= cases(50)


def test_positions_that_are_known_cost_nothing(cases):
    compared = 0
    for seed in range(cases(150)):
        game, player, penalty = random_tree(seed, depth=4, actions=2, width=3), seed % 2, 0.05
        pre, sigma = policy_pairs(seed, by="position")
        sets = all_sets(game, player, pre, sigma, 120)
        if not sets:
            continue
        at, parents = books.positions(game, player), books.predecessors(game, player)
        known = {name for name in set(at.values()) if _draw(seed, name, _KNOWN) == 0.0}

        def cost(chosen, at=at, known=known):
            return len({at[name] for name in chosen} - known)

        def weight(state, seed=seed):
            return _draw(seed, str(state), _KNOWN)

        for truncate in ("reach", "none"):
            options = {"truncate": truncate, "weight": weight, "position_key": str, "price": "positions"}
            tree = one_sided(game, player, pre, sigma, penalty, **options)
            best = best_precomputation(tree, player, price="positions")
            assert best.value == pytest.approx(_best(sets, cost, penalty), abs=1e-9)
            assert best.upper == pytest.approx(best.value, abs=1e-9)
        frontier = memory_frontier(tree, player, price="positions")
        for dearer in (penalty, 0.2):
            assert frontier.at(dearer).value == pytest.approx(_best(sets, cost, dearer), abs=1e-9)
        for budget in range(4):
            within = best_precomputation(tree, player, price="positions", budget=budget)
            assert within.utility == pytest.approx(_best(sets, cost, budget=budget), abs=1e-9)
        own = np.flatnonzero(tree.infoset_player == player).tolist()
        keep = [k for k in own if str(tree.state(int(tree.infoset_history[k]))) in known]
        kept = names_of(tree, player, keep)
        plain = tree.with_weights(np.ones(tree.num_infosets))
        best = best_precomputation(plain, player, price="positions", keep=keep)
        having = {s: u for s, u in sets.items() if contains(s, kept, parents)}
        assert best.value == pytest.approx(_best(having, cost, penalty), abs=1e-9)
        compared += 1
    assert compared >= cases(60)


def test_weights_travel_with_the_tree(tmp_path):
    game = random_tree(3, depth=4, actions=2)
    options = {"sigma_pre": random_policy(1), "sigma": random_policy(2), "penalties": (0.01, 0.02)}
    tree = HistoryTree.from_game(game, weight=_weights(game, 3, _SOME), **options)
    assert len(tree.weight) == tree.num_infosets
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert (loaded.weight == tree.weight).all()
    assert loaded.same_as(tree)
    assert loaded.same_as(tree.with_weights(np.ones(tree.num_infosets)))
    plain = HistoryTree.from_game(game, weight=lambda state: 1, **options)
    assert len(plain.weight) == 0
    assert (plain.infoset_penalty == np.array([0.01, 0.02])[plain.infoset_player]).all()
    never = tree.with_penalties((math.inf, 0.02))
    assert np.isinf(never.infoset_penalty[never.infoset_player == 0]).all()
    assert best_precomputation(never, 0).size == 0


def test_bad_weights():
    game = random_efg(5, depth=4)
    pre, sigma = policy_pairs(1, by="infoset")

    def expanded(weight):
        return HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.01, weight=weight)

    for wrong in (-1.0, "1", math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected weight to give"):
            expanded(lambda state, wrong=wrong: wrong)
    with pytest.raises(ValueError, match="expected weight to be the same at all histories of an information"):
        expanded(lambda state: float(len(state.history_str()) + sum(map(ord, state.history_str()))))
    tree = expanded(None)
    half = tree.with_weights(np.full(tree.num_infosets, 0.5))
    with pytest.raises(ValueError, match=r"^best_precomputation\(\): expected weights of 0 and 1"):
        best_precomputation(half, 0, budget=2)
    with pytest.raises(ValueError, match=r"^memory_frontier\(\): expected weights of 0 and 1"):
        memory_frontier(half, 0)


def test_two_entries_of_a_menu_cannot_be_kept():
    tree = one_sided(random_tree(3, depth=4, actions=3), 0, Menu.of_actions(), random_policy(1), 0.01)
    first = int(np.flatnonzero(np.diff(tree.first_entry) > 1)[0])
    with pytest.raises(ValueError, match=r"^best_precomputation\(\): expected keep to be"):
        best_precomputation(tree, 0, keep=[tree.first_entry[first], tree.first_entry[first] + 1])
