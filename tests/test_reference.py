"""The oracle's one walk for all strategies against a plain recursion for each pair of them."""

import itertools

import numpy as np
import pytest

from tests import reference
from tests.random_games import random_efg, random_menu, random_policy, random_tree


def play_out(state, row):
    """u for player 0, where row(state) is what the player to move plays."""
    if state.is_terminal():
        return state.returns()[0]
    played = dict(state.chance_outcomes()) if state.is_chance_node() else row(state)
    return sum(p * play_out(state.child(action), row) for action, p in played.items() if p > 0.0)


def case(seed):
    game = random_tree(seed, depth=4) if seed % 2 else random_efg(seed)
    by, support = "history" if seed % 2 else "infoset", ("full", "partial", "pure")[seed % 3]
    pre, sigma = (tuple(random_policy(4 * seed + k + i, support, by) for i in (0, 1)) for k in (0, 2))
    return game, by, pre, sigma


def some(seed, found, count=12):
    return [found[k] for k in np.random.default_rng(seed).permutation(len(found))[:count]]


@pytest.mark.parametrize("seed", range(12))
def test_sets(seed):
    game, _, pre, sigma = case(seed)
    sets = [
        some(
            seed, list(itertools.islice(reference.prefix_closed_sets(reference.predecessors(game, i)), 3000))
        )
        for i in (0, 1)
    ]
    found = reference.utilities(game, sets, pre, sigma)
    assert found.shape == (len(sets[0]), len(sets[1]))
    for j, k in np.ndindex(found.shape):
        chosen = sets[0][j], sets[1][k]

        def row(state, chosen=chosen):
            i = state.current_player()
            held = reference.information_state(game, state, i) in chosen[i]
            return (pre if held else sigma)[i](state)

        assert found[j, k] == pytest.approx(play_out(game.new_initial_state(), row), abs=1e-12)
    for i in (0, 1):
        alone = reference.own_utilities(game, i, sets[i], pre, sigma)
        nothing = ([frozenset()], sets[1]) if i else (sets[0], [frozenset()])
        both = reference.utilities(game, nothing, pre, sigma).ravel()
        assert alone == pytest.approx((game.utility_sum() or 0.0) - both if i else both, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_choices(seed):
    game, by, _, sigma = case(seed)
    menu = random_menu(seed, by=by)
    choices = [some(seed, reference.all_choices(game, i, menu, 100_000)) for i in (0, 1)]
    found = reference.utilities_of_choices(game, choices, sigma)
    assert found.shape == (len(choices[0]), len(choices[1])) and found.size
    for j, k in np.ndindex(found.shape):
        chosen = choices[0][j], choices[1][k]

        def row(state, chosen=chosen):
            i = state.current_player()
            own = chosen[i].get(reference.information_state(game, state, i))
            return sigma[i](state) if own is None else own

        assert found[j, k] == pytest.approx(play_out(game.new_initial_state(), row), abs=1e-12)
