"""The oracle's one walk for all strategies against a plain recursion for each pair of them."""

import itertools

import numpy as np
import pytest

from tests.oracles import books
from tests.oracles.games import SUPPORTS, random_case, random_menu


def play_out(game, row):
    """u for player 0, where row(state) is what the player to move plays."""
    return books.play_value(game.new_initial_state(), (row, row))


def case(seed):
    return random_case("tree" if seed % 2 else "efg", seed, SUPPORTS[seed % 3], depth=4)


def some(seed, found, count=12):
    return [found[k] for k in np.random.default_rng(seed).permutation(len(found))[:count]]


@pytest.mark.parametrize("seed", range(6))
def test_sets(seed):
    game, pre, sigma = case(seed)
    parents = [books.predecessors(game, i) for i in (0, 1)]
    sets = [some(seed, list(itertools.islice(books.prefix_closed_sets(p), 3000))) for p in parents]
    found = books.utilities(game, sets, pre, sigma)
    assert found.shape == (len(sets[0]), len(sets[1]))
    for j, k in np.ndindex(found.shape):
        chosen = sets[0][j], sets[1][k]

        def row(state, chosen=chosen):
            i = state.current_player()
            held = books.information_state(game, state, i) in chosen[i]
            return (pre if held else sigma)[i](state)

        assert found[j, k] == pytest.approx(play_out(game, row), abs=1e-12)
    for i in (0, 1):
        alone = books.own_utilities(game, i, sets[i], pre, sigma)
        nothing = ([frozenset()], sets[1]) if i else (sets[0], [frozenset()])
        both = books.utilities(game, nothing, pre, sigma).ravel()
        assert alone == pytest.approx((game.utility_sum() or 0.0) - both if i else both, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_choices(seed):
    game, _, sigma = case(seed)
    menu = random_menu(seed, by="history" if seed % 2 else "infoset")
    choices = [some(seed, books.all_choices(game, i, menu, 100_000)) for i in (0, 1)]
    found = books.utilities_of_choices(game, choices, sigma)
    assert found.shape == (len(choices[0]), len(choices[1])) and found.size
    for j, k in np.ndindex(found.shape):
        chosen = choices[0][j], choices[1][k]

        def row(state, chosen=chosen):
            i = state.current_player()
            own = chosen[i].get(books.information_state(game, state, i))
            return sigma[i](state) if own is None else own

        assert found[j, k] == pytest.approx(play_out(game, row), abs=1e-12)
