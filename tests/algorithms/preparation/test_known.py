"""Information states that cost different penalties, what is known already, and plans: against all sets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import (
    best_of_frontier,
    best_precomputation,
    memory_frontier,
    precomputation_plan,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import expand, policy_pairs, random_efg, random_policy, random_tree
from tests.oracles.preparation import NEAR, check_result, named, one_sided, preparations
from tests.properties import examples

_SOME = (0.0, 0.0, 0.4, 1.0, 2.5)
_KNOWN = (0.0, 1.0, 1.0)
_PENALTIES = st.sampled_from((0.01, 0.1))


def _draw(seed, name, of):
    return of[int(np.random.default_rng([seed, 11, *name.encode()]).integers(len(of)))]


def _weights(game, seed, of):
    """Return a function from a state to what memorizing its information state costs."""
    return lambda state: _draw(seed, books.information_state(game, state, state.current_player()), of)


def _weighted(setting, of):
    """Return the sets by what they cost, and the weights of states."""
    weight = _weights(setting.game, setting.seed, of)
    return setting.sets(lambda chosen: sum(_draw(setting.seed, name, of) for name in chosen)), weight


@examples(240)
@given(preparations(most=300), _PENALTIES)
def test_each_information_state_has_its_penalty(setting, penalty):
    """By weights that a tree was expanded with or was given afterwards, and by prices of `Decisions.best`."""
    player, (found, weight) = setting.player, _weighted(setting, _SOME)
    tree = setting.tree(penalty, weight=weight)
    tree.check()
    check_result(setting, best_precomputation(tree, player), found, penalty)
    whole = setting.tree(penalty, truncate="none")
    states = map(whole.state, whole.infoset_history.tolist())
    given = np.array([weight(state) for state in states])
    check_result(setting, best_precomputation(whole.with_weights(given), player), found, penalty)
    decisions, value = Decisions.against(whole, player), found.value(penalty)
    best = decisions.best(penalty * given)
    assert best.value == pytest.approx(value, abs=NEAR)
    assert decisions.value(best.memorize, penalty * given).value == pytest.approx(value, abs=NEAR)


@examples(80)
@given(preparations("perfect", most=300))
def test_what_costs_nothing_and_what_follows_it_is_not_cut(setting):
    """A line that is known, however rare, leads to what is worth its penalty or not by itself."""
    everything, player = setting.tree(10.0, weight=lambda state: 0.0), setting.player
    assert everything.num_infosets == setting.tree(10.0, truncate="none").num_infosets
    assert best_precomputation(everything, player).value == pytest.approx(setting.sets().value(0.0), abs=NEAR)
    assert setting.tree(10.0).num_infosets == 0


@examples(160)
@given(preparations(most=300))
def test_budgets_and_frontiers_count_what_is_not_known(setting):
    player, (found, weight) = setting.player, _weighted(setting, _KNOWN)
    tree = setting.tree(0.01, truncate="none", weight=weight)
    frontier = memory_frontier(tree, player)
    for penalty in (0.01, 0.05, 0.3, 10.0):
        assert frontier.at(penalty).value == pytest.approx(found.value(penalty), abs=NEAR)
    for budget in range(5):
        best = best_precomputation(tree, player, budget=budget)
        assert best.utility == pytest.approx(found.within(budget), abs=NEAR) and best.paid <= budget
        assert best_of_frontier(frontier, budget).utility == pytest.approx(best.utility, abs=1e-12)


def _some_entries(setting, tree, share):
    """Return the numbers of random entries of a player's, at most one of each menu."""
    rng = np.random.default_rng([setting.seed, 3])
    own = [k for k in range(tree.num_infosets) if tree.infoset_player[k] == setting.player]
    return [int(rng.integers(*tree.first_entry[k : k + 2])) for k in own if rng.random() < share]


def _contains(setting, chosen, kept):
    """Return whether a set has each kept entry that it comes to."""
    before = books.last_steps(setting.game, setting.player)
    for name, actions in kept:
        last = before[name]
        comes = last is None or chosen.get(last[0], {}).get(last[1], 0.0) > 0.0
        if comes and {a for a, p in chosen.get(name, {}).items() if p > 0.0} != actions:
            return False
    return True


@examples(160)
@given(preparations(most=300))
def test_what_is_kept_is_in_the_set_and_costs_nothing(setting):
    player, tree = setting.player, setting.tree(0.02, truncate="none")
    keep = _some_entries(setting, tree, 0.35)
    kept = named(tree, player, keep)
    names = {name for name, _ in kept}
    found = setting.sets(
        lambda chosen: len(chosen.keys() - names), lambda chosen: _contains(setting, chosen, kept)
    )
    check_result(setting, best_precomputation(tree, player, keep=keep), found, 0.02)
    frontier = memory_frontier(tree, player, keep=keep)
    assert frontier.at(0.02).value == pytest.approx(found.value(0.02), abs=NEAR)
    for budget in range(4):
        within = best_precomputation(tree, player, keep=keep, budget=budget)
        assert within.utility == pytest.approx(found.within(budget), abs=NEAR) and within.paid <= budget


@examples(240)
@given(preparations(most=300), st.booleans())
def test_each_step_of_a_plan_is_the_best_extension_of_the_one_before(setting, from_something):
    player, tree = setting.player, setting.tree(0.02, truncate="none")
    keep = _some_entries(setting, tree, 0.2) if from_something else None

    def extensions(known):
        names = {name for name, _ in known}
        return setting.sets(
            lambda chosen: len(chosen.keys() - names), lambda chosen: _contains(setting, chosen, known)
        )

    start = known = named(tree, player, keep or [])
    learned = 0
    for step in precomputation_plan(tree, player, (1, 2, 3), keep=keep):
        chosen = named(tree, player, step.chosen.memorization_set)
        most = extensions(known).within(step.budget - learned)
        assert step.chosen.utility == pytest.approx(most, abs=NEAR)
        assert step.chosen.utility == pytest.approx(setting.by_name[chosen], abs=NEAR)
        assert step.best.utility == pytest.approx(extensions(start).within(step.budget), abs=NEAR)
        assert step.learned == len(chosen - start) <= step.budget and step.loss >= -NEAR
        known, learned = start | chosen, step.learned


def test_positions_are_planned_as_well():
    game = random_tree(7, depth=5, actions=2, width=3)
    tree = one_sided(game, 0, *policy_pairs(7, by="position"), 0.01, truncate="none", position_key=str)
    steps = precomputation_plan(tree, 0, [1, 2, 5], price="positions")
    assert [step.learned for step in steps] == [step.chosen.num_positions for step in steps]
    for before, after in itertools.pairwise(steps):
        assert set(before.chosen.memorization_set) <= set(after.chosen.memorization_set)
        assert after.loss >= -1e-12
    alone = best_precomputation(tree, 0, price="positions", budget=1)
    assert steps[0].chosen.utility == alone.utility


@examples(160)
@given(preparations("perfect", repeated=True, menu=False, most=300))
def test_positions_that_are_known_cost_nothing(setting):
    game, player, penalty = setting.game, setting.player, 0.05
    at = books.positions(game, player)
    known = {name for name in set(at.values()) if _draw(setting.seed, name, _KNOWN) == 0.0}

    def cost(chosen):
        return len({at[name] for name in chosen} - known)

    options = {"position_key": str, "price": "positions"}
    options["weight"] = lambda state: _draw(setting.seed, str(state), _KNOWN)
    found = setting.sets(cost)
    for truncate in ("reach", "none"):
        tree = setting.tree(penalty, truncate=truncate, **options)
        check_result(setting, best_precomputation(tree, player, price="positions"), found, penalty)
    frontier = memory_frontier(tree, player, price="positions")
    for dearer in (penalty, 0.2):
        assert frontier.at(dearer).value == pytest.approx(found.value(dearer), abs=NEAR)
    for budget in range(4):
        within = best_precomputation(tree, player, price="positions", budget=budget)
        assert within.utility == pytest.approx(found.within(budget), abs=NEAR)
    own = np.flatnonzero(tree.infoset_player == player).tolist()
    keep = [k for k in own if str(tree.state(int(tree.infoset_history[k]))) in known]
    kept = named(tree, player, keep)
    plain = tree.with_weights(np.ones(tree.num_infosets))
    best = best_precomputation(plain, player, price="positions", keep=keep)
    having = setting.sets(cost, lambda chosen: _contains(setting, chosen, kept))
    check_result(setting, best, having, penalty)


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
    game, policies = random_efg(5, depth=4), policy_pairs(1, by="infoset")
    for wrong in (-1.0, "1", math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected weight to give"):
            expand(game, *policies, 0.01, weight=lambda state, wrong=wrong: wrong)
    with pytest.raises(ValueError, match="expected weight to be the same at all histories of an information"):
        expand(game, *policies, 0.01, weight=lambda state: float(sum(map(ord, state.history_str()))))
    tree = expand(game, *policies, 0.01)
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


@pytest.mark.parametrize("budgets", [(1, 1), (-1,)])
def test_budgets_of_a_plan_grow_from_0(budgets):
    tree = one_sided(random_tree(1), 0, *policy_pairs(1), 0.02)
    with pytest.raises(ValueError, match=r"^precomputation_plan\(\): expected budgets"):
        precomputation_plan(tree, 0, budgets)
