"""The oracle's one walk for all strategies against a plain recursion for each pair of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from tests.oracles import books
from tests.oracles.games import SEEDS, settings
from tests.properties import examples


@examples(160)
@given(settings(menus=True), SEEDS)
def test_choices_and_sets_are_worth_what_their_play_is(case, seed):
    game, pre, sigma = case
    rng = np.random.default_rng(seed)

    def some(found):
        return [found[k] for k in rng.permutation(len(found))[:8]]

    def played(known):
        """u for player 0, where known(state, name) is the memorized row, or None."""

        def row(state):
            i = state.current_player()
            return known(i, state, books.information_state(game, state, i)) or sigma[i](state)

        return pytest.approx(books.play_value(game.new_initial_state(), (row, row)), abs=1e-12)

    choices = [some(books.all_choices(game, i, pre[i], 100_000)) for i in (0, 1)]
    found = books.utilities_of_choices(game, choices, sigma)
    for j, k in np.ndindex(found.shape):
        chosen = choices[0][j], choices[1][k]
        assert found[j, k] == played(lambda i, state, name, chosen=chosen: chosen[i].get(name))

    sets = [
        some(list(itertools.islice(books.prefix_closed_sets(books.predecessors(game, i)), 3000)))
        for i in (0, 1)
    ]
    found = books.utilities(game, sets, sigma[::-1], sigma)
    for j, k in np.ndindex(found.shape):
        chosen = sets[0][j], sets[1][k]
        assert found[j, k] == played(
            lambda i, state, name, chosen=chosen: sigma[1 - i](state) if name in chosen[i] else None
        )
    for i in (0, 1):
        alone = books.own_utilities(game, i, sets[i], sigma[::-1], sigma)
        nothing = ([frozenset()], sets[1]) if i else (sets[0], [frozenset()])
        both = books.utilities(game, nothing, sigma[::-1], sigma).ravel()
        assert alone == pytest.approx((game.utility_sum() or 0.0) - both if i else both, abs=1e-12)
