"""The loss of a budget by pruned parts of a tree with menus, against the best sets of the whole game."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games import HistoryTree, Menu
from precomp_games.algorithms import best_precomputation, memory_frontier
from tests.oracles import books
from tests.oracles.preparation import NEAR, evaluation, one_sided, preparations
from tests.oracles.trees import efg
from tests.properties import examples


def test_an_entry_that_cannot_pay_is_counted(tmp_path):
    """One wins 0.09 at once and the other 0.5 after a second move: of one entry, the former is worth more."""
    game = efg(
        'p "" 1 1 "" { "e" "f" "s" } 0',
        't "" 1 "" { 0.09 -0.09 }',
        'p "" 1 2 "" { "x" "y" } 0',
        't "" 2 "" { 0.5 -0.5 }',
        't "" 3 "" { 0 0 }',
        't "" 4 "" { 0 0 }',
    )
    menu = Menu(lambda state: state.legal_actions()[:2])
    options = {"leaf_value": lambda state: 0.0, "stop_value": "evaluate", "truncate": "values"}
    tree = one_sided(game, 0, menu, None, 0.1, **options)
    tree.save(tmp_path / "tree.npz")
    for each in (tree, HistoryTree.load(tmp_path / "tree.npz"), tree.with_penalties((0.15, math.inf))):
        best = best_precomputation(each, 0, budget=1)
        assert best.utility == 0.0 and 0.09 <= best.truncation_loss <= each.penalties[0]
    assert best_precomputation(tree, 0, budget=2).utility == 0.5
    assert best_precomputation(tree, 0).value == pytest.approx(0.3)


def _most(state, player, menu, rival, evaluate, budget):
    """float[budget + 1]: the most utility of at most so many entries, by recursion over states."""

    def joined(edges):
        total = np.zeros(budget + 1)
        for action, p in edges.items():
            below = p * _most(state.child(action), player, menu, rival, evaluate, budget)
            total = np.array([(total[: k + 1] + below[k::-1]).max() for k in range(budget + 1)])
        return total

    if state.is_terminal():
        return np.full(budget + 1, state.returns()[player])
    if state.is_chance_node():
        return joined(dict(state.chance_outcomes()))
    if state.current_player() != player:
        return joined(rival(state))
    white = evaluate(state)
    found = np.full(budget + 1, white if player == 0 else 1.0 - white)
    for entry in books.entries(menu, state) if budget else []:
        found[1:] = np.maximum(found[1:], joined(entry)[:-1])
    return found


@examples(240)
@given(
    preparations("perfect", depth=5, fewest=0),
    st.sampled_from((0.03, 0.2, 0.5)),
    st.sampled_from(("values", "reach")),
    st.sampled_from(("evaluate", "backup")),
    st.booleans(),
)
def test_the_loss_bounds_the_whole_game(setting, penalty, truncate, stop_value, exact):
    """best with a budget on the tree <= of the whole game <= on the tree + truncation_loss.

    The best set at the tree's penalty or a larger one is also that of the whole game.
    """
    player, root = setting.player, setting.game.new_initial_state()
    evaluate = setting.play if exact or stop_value == "backup" else evaluation(setting.seed)
    most = _most(root, player, setting.pre[player], setting.sigma[1 - player], evaluate, 6)
    tree = setting.tree(penalty, leaf_value=evaluate, stop_value=stop_value, truncate=truncate)
    tree.check()
    frontier = memory_frontier(tree, player)
    for budget in range(7):
        best = best_precomputation(tree, player, budget=budget)
        assert best.utility <= most[budget] + NEAR <= best.utility + best.truncation_loss + 2.0 * NEAR
        if budget in frontier.sizes and budget <= frontier.exact_size:
            assert best.utility == pytest.approx(most[budget], abs=NEAR)
