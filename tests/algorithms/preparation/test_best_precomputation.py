"""Every solver of one player's preparation against all sets, played out on OpenSpiel's states."""

import dataclasses
import math

import numpy as np
import pyspiel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree, Menu, RolloutValues
from precomp_games.algorithms import (
    MetaStrategy,
    best_first_precomputation,
    best_precomputation,
    memory_frontier,
    meta_equilibrium,
    robust_precomputation,
)
from precomp_games.algorithms.preparation.decisions import Decisions
from tests.oracles import books
from tests.oracles.games import policy_pairs, random_efg, random_tree, sides, uniform
from tests.oracles.meta_games import menu_tree
from tests.oracles.preparation import (
    NEAR,
    check_budgets,
    check_frontier,
    check_result,
    one_sided,
    preparations,
    scored,
)
from tests.oracles.trees import efg
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
        assert memory_frontier(tree, player, price=alone).at(penalty).value == pytest.approx(
            found.value(penalty), abs=NEAR
        )
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


@examples(120)
@given(preparations("perfect", depth=5, fewest=0), st.sampled_from((0.02, 0.05, 0.2)), st.booleans())
def test_trees_that_are_cut_by_evaluations_lose_nothing(setting, penalty, weighted):
    """Branch and bound: what `truncate="values"` leaves out is not worth memorizing, whatever it costs."""

    def weight(state):
        return (0.0, 0.0, 0.4, 1.0, 2.5)[sum(state.history()) % 5]

    options = {"weight": weight} if weighted else {}
    trees = [setting.evaluated(penalty, truncate=way, **options) for way in ("none", "reach", "values")]
    values = [best_precomputation(tree, setting.player).value for tree in trees]
    assert values == pytest.approx([values[0]] * 3, abs=1e-12)
    for tree in trees:
        tree.check()
    assert trees[2].num_histories <= trees[1].num_histories <= trees[0].num_histories


def test_sampled_leaves_lose_at_most_epsilon():
    game, (pre, sigma) = random_tree(11, depth=5), policy_pairs(11)
    exact = best_precomputation(one_sided(game, 0, pre, sigma, 0.05), 0)
    lost = []
    for seed in range(20):
        values = RolloutValues(epsilon=0.5, delta=0.1, seed=seed)
        best = best_precomputation(one_sided(game, 0, pre, sigma, 0.05, leaf_value=values), 0)
        utility = scored(game, 0, best.policy(sigma))
        lost.append(exact.value - (utility - 0.05 * best.size))
    assert min(lost) > -1e-9  # nothing beats the optimum
    assert sum(loss > 0.5 for loss in lost) <= 2  # delta = 0.1 of 20


@pytest.mark.parametrize("call", [best_precomputation, memory_frontier])
def test_evaluated_trees_know_one_player_and_no_strategies(call):
    game, policies, options = random_tree(1), policy_pairs(1), {"stop_value": "evaluate"}
    evaluated = one_sided(game, 0, *policies, 0.1, truncate="values", **options)
    general = one_sided(random_efg(1, general=True), 0, *policy_pairs(1, by="infoset"), 0.1)
    for tree in (evaluated, general):
        with pytest.raises(ValueError, match="expected the tree's precomputing player, 0"):
            call(tree, 1)
    rival = MetaStrategy.of_set(one_sided(game, 0, *policies, 0.1), 1, [])
    with pytest.raises(ValueError, match=rf'{call.__name__}\(\): .* with stop_value="backup"'):
        call(evaluated, 0, opponent=rival)


def test_a_loaded_tree_needs_sigma_only_off_the_book(tmp_path):
    game = random_tree(3, depth=6)
    pre, sigma = policy_pairs(3, "partial")
    one_sided(game, 0, pre, sigma, 0.001).save(tmp_path / "tree.npz")
    tree = HistoryTree.load(tmp_path / "tree.npz")
    best = best_precomputation(tree, 0)
    on_book = next(best.states())
    state = tree.state(on_book.history)
    row = dict.fromkeys(state.legal_actions(), 0.0) | pre[0](state)
    assert best.policy().action_probabilities(state) == pytest.approx(row)
    off_book = set(range(tree.num_histories)) - {state.history for state in best.states()}
    state = tree.state(next(h for h in off_book if tree.player[h] == 0))
    with pytest.raises(ValueError, match=r"give policy\(sigma=...\)"):
        best.policy().action_probabilities(state)
    assert best.policy(sigma).action_probabilities(state) == sigma[0](state)


# -- menus ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "members"), [(0, []), (2, [0])])
def test_of_ties_stopping_comes_first_and_then_the_first_entry(action, members):
    game = efg(
        'p "" 1 1 "" { "l" "r" "s" } 0', *(f't "" {k} "" {{ {u} -{u} }}' for k, u in enumerate((1, 1, 0), 1))
    )
    tree = one_sided(game, 0, Menu.of_actions(), lambda state: {action: 1.0}, truncate="none")
    assert np.flatnonzero(Decisions.against(tree, 0).best(0.0).memorize).tolist() == members


@examples(40)
@given(preparations(menu=False, fewest=0), st.booleans())
def test_a_menu_of_one_entry_is_a_policy(setting, both):
    """The same arrays, bit for bit, and so everything else."""
    given, other = (setting.pre[i] for i in (setting.player, 1 - setting.player))
    menu = Menu(lambda state: [given(state)])
    rival = Menu(lambda state: books.entries(other, state)) if both else other
    plain = setting.tree(0.01, rival=0.01)
    tree = dataclasses.replace(setting, pre=sides(setting.player, menu, rival)).tree(0.01, rival=0.01)
    assert tree.fingerprint == plain.fingerprint and tree.num_entries == plain.num_entries


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "connect_four(rows=3,columns=3,x_in_row=3)"])
def test_with_all_actions_it_is_a_best_response(name, player):
    """To the uniform opponent, by OpenSpiel's own best response."""
    game = pyspiel.load_game(name)
    key = None if "poker" in name else str
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
