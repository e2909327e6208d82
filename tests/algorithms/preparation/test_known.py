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
from tests.oracles.zero_sum import is_perfect
from tests.properties import examples


def _weight(setting, kind):
    """Return a function from names to what memorizing costs: weights of any size, or 0 for what is known."""
    of = {"any": (0.0, 0.0, 0.4, 1.0, 2.5), "known": (0.0, 1.0, 1.0), "all known": (0.0,)}[kind]
    return lambda name: of[int(np.random.default_rng([setting.seed, 11, *name.encode()]).integers(len(of)))]


@examples(240)
@given(preparations(most=300), st.sampled_from((0.01, 0.1)), st.sampled_from(("any", "known", "all known")))
def test_information_states_have_their_penalties(setting, penalty, kind):
    """By weights that a tree was expanded with or was given afterwards, and by prices of `Decisions.best`.

    A line that is known, however rare, leads to what is worth its penalty or not by itself.
    """
    game, player, cost_of = setting.game, setting.player, _weight(setting, kind)
    found = setting.sets(lambda chosen: sum(map(cost_of, chosen)))

    def weight(state):
        return cost_of(books.information_state(game, state, state.current_player()))

    tree, whole = setting.tree(penalty, weight=weight), setting.tree(penalty, truncate="none")
    tree.check()
    check_result(setting, best_precomputation(tree, player), found, penalty)
    given = np.array([weight(state) for state in map(whole.state, whole.infoset_history.tolist())])
    weighted = whole.with_weights(given)
    check_result(setting, best_precomputation(weighted, player), found, penalty)
    decisions, value = Decisions.against(whole, player), found.value(penalty)
    best = decisions.best(penalty * given)
    assert best.value == pytest.approx(value, abs=NEAR)
    assert decisions.value(best.memorize, penalty * given).value == pytest.approx(value, abs=NEAR)
    if kind != "any":
        frontier = memory_frontier(weighted, player)
        for dearer in (penalty, 0.3, 10.0):
            assert frontier.at(dearer).value == pytest.approx(found.value(dearer), abs=NEAR)
        for budget in range(5):
            within = best_precomputation(weighted, player, budget=budget)
            assert within.utility == pytest.approx(found.within(budget), abs=NEAR) and within.paid <= budget
            assert best_of_frontier(frontier, budget).utility == pytest.approx(within.utility, abs=1e-12)
    if kind == "all known" and is_perfect(game):
        assert tree.num_infosets == whole.num_infosets and setting.tree(10.0).num_infosets == 0


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


@examples(240)
@given(preparations(most=300), st.sampled_from((None, 0.2, 0.4)))
def test_what_is_kept_costs_nothing_and_steps_of_plans_are_the_best_extensions(setting, share):
    player, tree = setting.player, setting.tree(0.02, truncate="none")
    keep = None if share is None else _some_entries(setting, tree, share)

    def having(known):
        """Return the sets that contain what is known, which costs nothing."""
        names = {name for name, _ in known}
        return setting.sets(
            lambda chosen: len(chosen.keys() - names), lambda chosen: _contains(setting, chosen, known)
        )

    start = known = named(tree, player, keep or [])
    found, learned = having(start), 0
    check_result(setting, best_precomputation(tree, player, keep=keep), found, 0.02)
    frontier = memory_frontier(tree, player, keep=keep)
    assert frontier.at(0.02).value == pytest.approx(found.value(0.02), abs=NEAR)
    assert best_precomputation(tree, player, keep=keep, budget=0).paid == 0.0
    for step in precomputation_plan(tree, player, (1, 2, 3), keep=keep):
        chosen = named(tree, player, step.chosen.memorization_set)
        most = having(known).within(step.budget - learned)
        assert step.chosen.utility == pytest.approx(most, abs=NEAR)
        assert step.chosen.utility == pytest.approx(setting.by_name[chosen], abs=NEAR)
        assert step.best.utility == pytest.approx(found.within(step.budget), abs=NEAR)
        assert step.learned == len(chosen - start) <= step.budget and step.loss >= -NEAR
        assert step.best.paid <= step.budget
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
    cost_of = _weight(setting, "known")
    known = {name for name in set(at.values()) if cost_of(name) == 0.0}

    def cost(chosen):
        return len({at[name] for name in chosen} - known)

    options = {"position_key": str, "price": "positions", "weight": lambda state: cost_of(str(state))}
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
    game, policies = random_tree(3, depth=4, actions=2), (random_policy(1), random_policy(2))
    tree = expand(game, *policies, (0.01, 0.02), weight=lambda state: len(state.history()) % 3 / 2)
    assert len(tree.weight) == tree.num_infosets
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert (loaded.weight == tree.weight).all() and loaded.same_as(tree)
    assert loaded.same_as(tree.with_weights(np.ones(tree.num_infosets)))
    plain = expand(game, *policies, (0.01, 0.02), weight=lambda state: 1)
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
