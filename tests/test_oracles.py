"""The oracle's one walk for all choices against a plain recursion for each pair of them."""

import numpy as np
import pytest
from hypothesis import given

from tests.oracles import books
from tests.oracles.games import SEEDS, settings
from tests.properties import examples


@examples(160)
@given(settings(menus=True), SEEDS)
def test_choices_are_worth_what_their_play_is(case, seed):
    game, pre, sigma = case
    rng = np.random.default_rng(seed)
    every = [books.all_choices(game, i, pre[i], 100_000) for i in (0, 1)]
    choices = [[each[k] for k in rng.permutation(len(each))[:8]] for each in every]
    found = books.utilities_of_choices(game, choices, sigma)
    for j, k in np.ndindex(found.shape):

        def row(state, chosen=(choices[0][j], choices[1][k])):
            i = state.current_player()
            return chosen[i].get(books.information_state(game, state, i)) or sigma[i](state)

        value = books.play_value(game.new_initial_state(), (row, row))
        assert found[j, k] == pytest.approx(value, abs=1e-12)
    for i in (0, 1):
        alone = books.own_utilities_of_choices(game, i, choices[i], sigma)
        nothing = ([{}], choices[1]) if i else (choices[0], [{}])
        both = books.utilities_of_choices(game, nothing, sigma).ravel()
        assert alone == pytest.approx((game.utility_sum() or 0.0) - both if i else both, abs=1e-12)
