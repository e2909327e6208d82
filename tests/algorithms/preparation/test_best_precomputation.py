"""One player's best preparation: Algorithm 1, frontiers, budgets, weights, what is known, and plans.

Oracles are all sets with all choices, played out on OpenSpiel's states, and recursions over states.
"""

import dataclasses
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic_trees import synthetic_tree
from precomp_games import HistoryTree, Menu, RolloutValues
from precomp_games.algorithms import (
    MetaStrategy,
    best_first_precomputation,
    best_of_frontier,
    best_precomputation,
    memory_frontier,
    meta_equilibrium,
    precomputation_plan,
    robust_precomputation,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.frontier import best_within_budget, frontier_of
from precomp_games.tree.facts import Forest
from tests.oracles import books
from tests.oracles.games import (
    SEEDS,
    expand,
    policy_pairs,
    random_efg,
    random_policy,
    random_tree,
    uniform,
    written,
)
from tests.oracles.preparation import (
    NEAR,
    check_budgets,
    check_frontier,
    check_result,
    evaluation,
    named,
    one_sided,
    preparations,
    scored,
)
from tests.oracles.trees import from_game
from tests.oracles.zero_sum import is_perfect
from tests.properties import examples

_PENALTIES = st.sampled_from((0.003, 0.03, 0.1, 0.3))
_CUTS = st.sampled_from(
    (
        {"truncate": "none"},
        {"truncate": "reach"},
        {"truncate": "reach", "stop_value": "evaluate"},
        {"truncate": "reach", "rival": 0.01},
    )
)


@examples(320)
@given(preparations() | preparations("imperfect", general=True), _PENALTIES, _CUTS)
def test_algorithm_1_finds_the_best_set_on_trees_that_are_cut(setting, penalty, options):
    """Lemma 3: at the penalty that a tree was expanded for, and above; whatever the opponent pays.

    In games of general sum, preparing is for the own utility.
    """
    found, player = setting.sets(), setting.player
    if setting.game.utility_sum() is None:
        options = options | {"rival": math.inf}
    tree = setting.tree(penalty, **options)
    tree.check()
    best = best_precomputation(tree, player)
    check_result(setting, best, found, penalty)
    play = best.policy(setting.sigma).action_probabilities
    score = books.play_value(setting.game.new_initial_state(), (play, play), player)
    assert score == pytest.approx(best.utility, abs=NEAR)
    for state in best.states():
        assert state.infoset == tree.entry_infoset[state.entry]
        assert sum(tree.memorized_row(state.entry).values()) == pytest.approx(1.0)
    dearer = best_precomputation(tree.with_penalties(2.5 * np.array(tree.penalties)), player)
    check_result(setting, dearer, found, 2.5 * penalty)


@examples(240)
@given(preparations(), _PENALTIES)
def test_frontiers_and_budgets_and_what_other_solvers_find(setting, penalty):
    """Prices of positions that are all different, shares of 0, and growing best first find the same sets."""
    found, player, tree = setting.sets(), setting.player, setting.tree(truncate="none")
    frontier = memory_frontier(tree, player)
    check_frontier(frontier, found)
    check_budgets(frontier, found)
    if not isinstance(setting.pre[player], Menu):  # which may be empty
        assert frontier.decisions.cut_reach == 0.0
    priced, alone = setting.tree(penalty, truncate="none"), np.arange(tree.num_infosets)
    own = np.diff(tree.first_entry)[tree.infoset_player == player]
    others = [best_precomputation(priced, player, price=alone)]
    within = [best_precomputation(tree, player, budget=2, price=alone)]
    if own.max(initial=0) <= 1:
        others.append(memory_frontier(tree, player, price=alone).at(penalty))
    if is_perfect(setting.game):
        others.append(robust_precomputation(priced, player, 0.0))
        within.append(robust_precomputation(priced, player, 0.0, budget=2))
        arguments = setting.game, setting.pre[player], setting.sigma, penalty, player, setting.play
        for order in ("certified", "optimistic"):
            grown = best_first_precomputation(*arguments, gap=0.0, order=order)
            assert grown.lower - NEAR <= found.value(penalty) <= grown.upper + NEAR
            capped = best_first_precomputation(*arguments, gap=0.0, order=order, budget=2)
            assert capped.lower - NEAR <= found.within(2) <= capped.upper + NEAR
            if order == "certified":
                assert grown.lower == pytest.approx(found.value(penalty), abs=NEAR)
    assert [each.value for each in others] == pytest.approx([found.value(penalty)] * len(others), abs=1e-8)
    assert [each.utility for each in within] == pytest.approx([found.within(2)] * len(within), abs=1e-8)


@examples(160)
@given(preparations(menu=False, most=150), st.booleans())
def test_against_a_strategy_of_the_opponent(setting, equilibrium):
    """Its equilibrium, or a strategy drawn at random, played out as a behavioral policy."""
    player, penalty = setting.player, 0.02
    tree = setting.tree(penalty, rival=penalty, truncate="none")
    memorize = np.random.default_rng(setting.seed).random(tree.num_entries) / 3.0
    rival = MetaStrategy(tree, 1 - player, memorize)
    if equilibrium:
        rival = meta_equilibrium(tree, iterations=100).strategies[1 - player]
    found = setting.against(rival.policy().action_probabilities).sets()
    frontier = memory_frontier(tree, player, opponent=rival)
    assert frontier.unprepared == pytest.approx(found.within(0), abs=NEAR)
    for dearer in (penalty, 0.05, 0.1, *frontier.breakpoints[frontier.breakpoints >= penalty]):
        assert frontier.at(dearer).value == pytest.approx(found.value(dearer), abs=NEAR)
        larger = tree.with_penalties((dearer, dearer))
        best = best_precomputation(larger, player, opponent=MetaStrategy(larger, 1 - player, rival.memorize))
        assert best.value == pytest.approx(found.value(dearer), abs=NEAR)
    check_budgets(frontier, found, opponent=rival)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "connect_four(rows=3,columns=3,x_in_row=3)"])
def test_with_all_actions_it_is_openspiels_best_response(name, player):
    game = pyspiel.load_game(name)
    key = None if "poker" in name else str
    tree = one_sided(game, player, Menu.of_actions(), uniform, position_key=key)
    opponent = pyspiel.UniformRandomPolicy(game)  # which the response does not keep alive
    response = pyspiel.TabularBestResponse(game, player, opponent)
    expected = response.value_from_state(game.new_initial_state())
    assert best_precomputation(tree, player).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("action", "members"), [(0, []), (2, [0])])
def test_of_ties_stopping_comes_first_and_then_the_first_entry(action, members):
    tree = one_sided(
        written((1, 1, "lrs"), 1, 1, 0), 0, Menu.of_actions(), lambda state: {action: 1.0}, truncate="none"
    )
    assert np.flatnonzero(Decisions.against(tree, 0).best(0.0).memorize).tolist() == members


def test_a_loaded_tree_needs_sigma_only_off_the_book(tmp_path):
    game, (pre, sigma) = random_tree(3, depth=6), policy_pairs(3, "partial")
    one_sided(game, 0, pre, sigma, 0.001).save(tmp_path / "tree.npz")
    tree = HistoryTree.load(tmp_path / "tree.npz")
    best = best_precomputation(tree, 0)
    book = [state.history for state in best.states()]
    on_book, off_book = (
        tree.state(next(h for h in np.flatnonzero(tree.player == 0) if (h in book) == on))
        for on in (True, False)
    )
    row = dict.fromkeys(on_book.legal_actions(), 0.0) | pre[0](on_book)
    assert best.policy().action_probabilities(on_book) == pytest.approx(row)
    with pytest.raises(ValueError, match=r"give policy\(sigma=...\)"):
        best.policy().action_probabilities(off_book)
    assert best.policy(sigma).action_probabilities(off_book) == sigma[0](off_book)


# -- trees that are cut --------------------------------------------------------------------------------


@examples(240)
@given(
    preparations("perfect", depth=5, fewest=0),
    st.sampled_from((0.02, 0.05, 0.2, 0.5)),
    st.sampled_from(("exact", "evaluate", "backup")),
    st.booleans(),
)
def test_cut_trees_lose_nothing_at_their_penalty_and_say_what_a_budget_may_lose(
    setting, penalty, how, weighted
):
    """best with a budget on the tree <= of the whole game <= on the tree + truncation_loss.

    The best set at the tree's penalty or a larger one is also that of the whole game, whatever it costs.
    """

    def weight(state):
        return (0.0, 0.0, 0.4, 1.0, 2.5)[sum(state.history()) % 5] if weighted else 1.0

    player, evaluate = setting.player, evaluation(setting.seed) if how == "evaluate" else setting.play
    options = {
        "leaf_value": evaluate,
        "stop_value": "backup" if how == "backup" else "evaluate",
        "weight": weight,
    }
    whole, reach, values = (
        setting.tree(penalty, truncate=way, **options) for way in ("none", "reach", "values")
    )
    assert values.num_histories <= reach.num_histories <= whole.num_histories
    for tree in (reach, values):
        tree.check()
        value = best_precomputation(whole, player).value
        assert best_precomputation(tree, player).value == pytest.approx(value, abs=1e-12)
        if weighted:
            continue  # sizes are not counted
        frontier = memory_frontier(tree, player)
        for budget in range(7):
            most, best = (best_precomputation(each, player, budget=budget) for each in (whole, tree))
            if how != "evaluate" and setting.choices:
                assert most.utility == pytest.approx(setting.sets().within(budget), abs=NEAR)
            assert best.utility <= most.utility + NEAR <= best.utility + best.truncation_loss + 2.0 * NEAR
            if budget in frontier.sizes and budget <= frontier.exact_size:
                assert best.utility == pytest.approx(most.utility, abs=NEAR)


def test_an_entry_that_cannot_pay_is_counted(tmp_path):
    """One wins 0.09 at once and the other 0.5 after a second move: of one entry, the former is worth more."""
    game = written((1, 1, "efs"), 0.09, (1, 2, "xy"), 0.5, 0, 0)
    menu = Menu(lambda state: state.legal_actions()[:2])
    options = {"leaf_value": lambda state: 0.0, "stop_value": "evaluate", "truncate": "values"}
    tree = one_sided(game, 0, menu, None, 0.1, **options)
    tree.save(tmp_path / "tree.npz")
    for each in (tree, HistoryTree.load(tmp_path / "tree.npz"), tree.with_penalties((0.15, math.inf))):
        best = best_precomputation(each, 0, budget=1)
        assert best.utility == 0.0 and 0.09 <= best.truncation_loss <= each.penalties[0]
    assert best_precomputation(tree, 0, budget=2).utility == 0.5
    assert best_precomputation(tree, 0).value == pytest.approx(0.3)


def test_sampled_leaves_lose_at_most_epsilon():
    game, (pre, sigma) = random_tree(11, depth=5), policy_pairs(11)
    exact = best_precomputation(one_sided(game, 0, pre, sigma, 0.05), 0)
    lost = []
    for seed in range(20):
        values = RolloutValues(epsilon=0.5, delta=0.1, seed=seed)
        best = best_precomputation(one_sided(game, 0, pre, sigma, 0.05, leaf_value=values), 0)
        lost.append(exact.value - (scored(game, 0, best.policy(sigma)) - 0.05 * best.size))
    assert min(lost) > -1e-9  # nothing beats the optimum
    assert sum(loss > 0.5 for loss in lost) <= 2  # delta = 0.1 of 20


# -- weights, what is known, and plans -----------------------------------------------------------------


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


def test_positions_are_planned_as_well():
    game = random_tree(7, depth=5, actions=2, width=3)
    tree = one_sided(game, 0, *policy_pairs(7, by="position"), 0.01, truncate="none", position_key=str)
    steps = precomputation_plan(tree, 0, [1, 2, 5], price="positions")
    assert [step.learned for step in steps] == [step.chosen.num_positions for step in steps]
    known = [set(step.chosen.memorization_set.tolist()) for step in steps]
    assert known[0] <= known[1] <= known[2] and min(step.loss for step in steps) >= -1e-12
    alone = best_precomputation(tree, 0, price="positions", budget=1)
    assert steps[0].chosen.utility == alone.utility


def test_weights_travel_with_the_tree(tmp_path):
    game, policies = random_tree(3, depth=4, actions=2), (random_policy(1), random_policy(2))
    tree = expand(game, *policies, (0.01, 0.02), weight=lambda state: len(state.history()) % 3 / 2)
    assert len(tree.weight) == tree.num_infosets
    tree.save(tmp_path / "tree.npz")
    loaded = HistoryTree.load(tmp_path / "tree.npz")
    assert (loaded.weight == tree.weight).all() and loaded.same_as(tree)
    assert loaded.same_as(tree.with_weights(np.ones(tree.num_infosets)))
    assert len(expand(game, *policies, (0.01, 0.02), weight=lambda state: 1).weight) == 0
    never = tree.with_penalties((math.inf, 0.02))
    assert np.isinf(never.infoset_penalty[never.infoset_player == 0]).all()
    assert best_precomputation(never, 0).size == 0


# -- frontiers of many entries -------------------------------------------------------------------------


def _random_gains(seed, size, back, whole):
    """A forest with random gains; whole numbers tie. back: how far an entry is from the one before it."""
    rng = np.random.default_rng(seed)
    previous = np.array([rng.integers(max(-1, k - back), k) if k else -1 for k in range(size)], np.int32)
    gain = rng.integers(-2, 4, size).astype(float) if whole else rng.normal(0.02, 1.0, size)
    forest = Forest.of_player_0(np.arange(size + 1, dtype=np.int32), previous, 0.0)
    alike = np.ones(size), np.zeros(size), np.append(0.0, gain)
    return Decisions(forest, 0, *alike, np.ones(1), np.zeros(1), 0.0)


def _best_by_size(gains):
    """Greatest sum of gains of exactly b members, for all b: children are merged from the leaves up."""
    gain, previous = gains.gains()[0], gains.forest.previous
    tables = {k: np.zeros(1) for k in range(-1, len(gain))}

    def merge(one, two):
        both = np.full(len(one) + len(two) - 1, -math.inf)
        for b, value in enumerate(two):
            both[b : b + len(one)] = np.maximum(both[b : b + len(one)], one + value)
        return both

    for k in range(len(gain) - 1, -1, -1):
        with_k = np.append(0.0, gain[k] + tables.pop(k))
        tables[int(previous[k])] = merge(tables[int(previous[k])], with_k)
    return tables[-1]


@examples(640)
@given(st.builds(_random_gains, SEEDS, st.integers(1, 120), st.integers(1, 120), st.booleans()))
def test_thresholds_are_algorithm_1s_and_budgets_those_of_dynamic_programming(gains):
    gain, previous = gains.gains()[0], gains.forest.previous
    frontier = frontier_of(gains)
    after = previous >= 0
    assert (frontier.threshold[after] <= frontier.threshold[previous[after]]).all()
    for penalty in np.linspace(-2.0, 3.0, 20) + 0.01:  # at which nothing ties
        best = gains.best(np.full(len(gain), penalty)).memorize
        for k in np.flatnonzero(after):
            best[k] *= best[previous[k]]  # it says what would be memorized elsewhere, too
        assert (best == (frontier.threshold > penalty)).all()
    expected = np.maximum.accumulate(_best_by_size(gains))
    for budget in range(0, len(expected), 1 + len(expected) // 10):
        found = best_within_budget(frontier, budget)
        assert found.utility == pytest.approx(expected[budget], abs=1e-9)
        members = np.flatnonzero(found.chosen)
        assert len(members) <= budget
        assert gain[members].sum() == pytest.approx(found.utility, abs=1e-9)
        before = previous[members]
        assert found.chosen[before[before >= 0]].all()


def test_a_frontier_of_100000_histories_is_algorithm_1s():
    tree = synthetic_tree(100_000)
    assert tree.num_histories >= 90_000
    frontier, sizes = memory_frontier(tree, 0), set()
    for penalty in np.geomspace(tree.penalties[0], frontier.breakpoints[0] * 1.5, 50).tolist():
        best, at = best_precomputation(tree.with_penalties((penalty, math.inf)), 0), frontier.at(penalty)
        assert (at.value, at.utility) == pytest.approx((best.value, best.utility), abs=1e-11)
        assert at.memorization_set.tolist() == best.memorization_set.tolist()
        sizes.add(best.size)
    assert len(sizes) > 25 and max(sizes) > 200 and min(sizes) == 0
    for size, utility in list(zip(frontier.sizes, frontier.utilities, strict=True))[:200:10]:
        assert best_precomputation(tree, 0, budget=int(size)).utility == pytest.approx(utility, abs=1e-11)


def test_a_player_who_never_memorizes():
    tree = one_sided(random_tree(1), 1, *policy_pairs(1), 0.1)
    frontier = memory_frontier(tree, 0)
    assert frontier.sizes.tolist() == [0] and len(frontier.breakpoints) == 0 and frontier.exact_size == 0
    best = best_precomputation(tree, 0, budget=5)
    assert best.size == 0 and best.utility == pytest.approx(frontier.unprepared)
    assert best.truncation_loss > 0.0  # what it could have memorized is not in the tree
    alone = best_precomputation(tree, 0)
    assert alone.size == 0 and alone.value == alone.utility == alone.unprepared


# -- menus, and what is refused ------------------------------------------------------------------------


@examples(40)
@given(preparations(menu=False, fewest=0), st.booleans())
def test_a_menu_of_one_entry_is_a_policy(setting, both):
    """The same arrays, bit for bit, and so everything else."""
    given, other = (setting.pre[i] for i in (setting.player, 1 - setting.player))
    rival = Menu(lambda state: books.entries(other, state)) if both else other
    pair = [Menu(lambda state: [given(state)]), rival][:: 1 if setting.player == 0 else -1]
    plain = setting.tree(0.01, rival=0.01)
    tree = dataclasses.replace(setting, pre=tuple(pair)).tree(0.01, rival=0.01)
    assert tree.fingerprint == plain.fingerprint and tree.num_entries == plain.num_entries


def test_the_entries_of_ties():
    """`Menu.of_support`: each of the moves that a policy plays is an entry."""
    policy = {0: 0.5, 1: 0.5 - 1e-12, 2: 1e-12}
    menu = Menu.of_support(lambda state: policy)
    assert menu.entries_batch([None, None]) == [[0, 1], [0, 1]]


def _having(entries):
    """Expand a game with this menu."""
    return from_game(pyspiel.load_game("kuhn_poker"), sigma_pre=Menu(entries))


def _weighted(weight):
    return expand(random_efg(5, depth=4), *policy_pairs(1, by="infoset"), 0.01, weight=weight)


_PLAIN = one_sided(random_tree(1), 0, *policy_pairs(1), 0.1)
_EVALUATED = one_sided(random_tree(1), 0, *policy_pairs(1), 0.1, truncate="values", stop_value="evaluate")
_NEVER = _EVALUATED.with_penalties(math.inf)
_GENERAL = one_sided(random_efg(1, general=True), 0, *policy_pairs(1, by="infoset"), 0.1)
_MENUS = one_sided(random_tree(3), 0, Menu.of_actions(), random_policy(1), 0.01)
_HALF = _PLAIN.with_weights(np.full(_PLAIN.num_infosets, 0.5))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: _having(lambda state: [0, {0: 0.5, 1: 0.5}]), "share no action"),
        (lambda: _having(lambda state: [99]), "legal actions"),
        (lambda: _having(lambda state: [{0: 0.5}]), "sum to 1"),
        (lambda: _having(lambda state: 3), "a sequence of actions"),
        (lambda: _having(lambda state: ["e4"]), r"\{action: probability\}"),
        (lambda: from_game(sigma=Menu.of_actions()), r"expected sigma\[0\] to be an OpenSpiel Policy"),
        (lambda: _weighted(lambda state: -1.0), r"^HistoryTree.from_game\(\): expected weight to give"),
        (lambda: _weighted(lambda state: "1"), r"^HistoryTree.from_game\(\): expected weight to give"),
        (lambda: _weighted(lambda state: math.nan), r"^HistoryTree.from_game\(\): expected weight to give"),
        (lambda: _weighted(lambda state: math.inf), r"^HistoryTree.from_game\(\): expected weight to give"),
        (
            lambda: _weighted(lambda state: float(sum(map(ord, state.history_str())))),
            "to be the same at all histories",
        ),
        (lambda: best_precomputation(_HALF, 0, budget=2), r"^best_precomputation\(\): .*weights of 0 and 1"),
        (lambda: memory_frontier(_HALF, 0), r"^memory_frontier\(\): expected weights of 0 and 1"),
        (lambda: best_precomputation(_MENUS, 0, keep=[0, 1]), r"^best_precomputation\(\): .*keep to be"),
        (lambda: precomputation_plan(_PLAIN, 0, (1, 1)), r"^precomputation_plan\(\): expected budgets"),
        (lambda: precomputation_plan(_PLAIN, 0, (-1,)), r"^precomputation_plan\(\): expected budgets"),
        (lambda: best_precomputation(_EVALUATED, 1), "expected the tree's precomputing player, 0"),
        (lambda: best_precomputation(_NEVER, 1), "expected the tree's precomputing player, 0"),
        (lambda: memory_frontier(_GENERAL, 1), "expected the tree's precomputing player, 0"),
        (
            lambda: best_precomputation(_EVALUATED, 0, opponent=MetaStrategy.of_set(_PLAIN, 1, [])),
            r'^best_precomputation\(\): .* with stop_value="backup"',
        ),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_budget_that_is_too_hard_names_who_was_asked(monkeypatch):
    monkeypatch.setattr("precomp_games.algorithms.preparation.frontier._MOST_OPEN", 0)
    tree = expand(random_tree(2), random_policy(2), random_policy(3), 1e-3)
    for name, call in (
        ("best_precomputation", lambda: best_precomputation(tree, 0, budget=1)),
        ("best_of_frontier", lambda: best_of_frontier(memory_frontier(tree, 0), 1)),
    ):
        with pytest.raises(ValueError, match=rf"^{name}\(\): .* less is left open than 0 .*, got 1;"):
            call()
