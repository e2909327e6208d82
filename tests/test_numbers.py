"""Values accepted and refused as numbers: kinds of arrays, bytes, numbers beyond floats, a range of 0."""

import math
from fractions import Fraction

import numpy as np
import pytest

from precomp_games import HistoryTree, RolloutValues, SearchClock
from precomp_games._support.checks import real_array
from precomp_games.algorithms import (
    EntropyBounds,
    best_first_precomputation,
    best_precomputation,
    certified_precomputation,
    meta_equilibrium,
)
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import first, last
from tests.oracles.trees import efg, from_game


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ([0, 1], True),
        ((0.5, 1), True),
        (np.array([1, 2], np.int8), True),
        ([Fraction(1, 2), 1], True),
        (np.ma.masked_array([0.5, 1.0], [False, False]), True),
        (np.ma.masked_array([0.5, 1.0], [False, True]), False),
        ([0.5, 1j], False),
        (np.array([0.5, 1.0 + 0j]), False),
        (["0.5", "1"], False),
        (np.array(["0.5", "1"], object), False),
        (np.array([b"0.5"]), False),
        (np.array(["2026-01-01"], "M8[D]"), False),
        (b"\0\1", False),
        (bytearray(b"\0\1"), False),
        (memoryview(b"\0\1"), False),
        ([10**400], False),
        ([object(), 1.0], False),
        ([[1.0], [1.0, 2.0]], False),
    ],
)
def test_real_arrays(value, numbers):
    found = real_array(value)
    assert (found is not None) == numbers
    if numbers:
        assert found.dtype == np.float64 and found.tolist() == [float(each) for each in value]


def test_penalties_beyond_floats():
    """They are as good as infinite."""
    assert from_game(penalties=(0.1, 10**400)).penalties == (0.1, math.inf)
    with pytest.raises(ValueError, match=r"^HistoryTree.from_game\(\): expected penalties to be positive"):
        from_game(penalties=-(10**400))


@pytest.mark.parametrize(
    "options", [{}, {"truncate": "none"}, {"truncate": "values", "leaf_value": lambda s: 0.0}]
)
def test_payoffs_that_are_all_equal(options):
    """Nothing is worth memorizing, and nothing is refused for a range that nobody gave."""
    ends = [f't "" {k} "" {{ 0 0 }}' for k in range(1, 5)]
    second = [f'p "" 2 {k} "" {{ "a" "b" }} 0' for k in (1, 2)]
    game = efg('p "" 1 1 "" { "a" "b" } 0', second[0], *ends[:2], second[1], *ends[2:])
    assert game.min_utility() == game.max_utility()
    for penalties in (0.1, (0.1, math.inf)):
        tree = HistoryTree.from_game(game, sigma_pre=last, sigma=first, penalties=penalties, **options)
        tree.check()
        assert tree.utility_range == 0.0
        best = best_precomputation(tree, 0, budget=1)
        assert (best.utility, best.truncation_loss) == (0.0, 0.0) and best_precomputation(tree, 0).size == 0
        assert meta_sequence_form_lp(tree).sizes == meta_equilibrium(tree).sizes == (0.0, 0.0)
        assert EntropyBounds(tree, 0).best_bound(0.1).utility == 0.0
    free = HistoryTree.from_game(
        game, sigma_pre=last, sigma=first, penalties=(0.1, math.inf), weight=lambda state: 0.0, **options
    )
    assert free.num_infosets == 1  # what costs nothing stays
    assert best_first_precomputation(game, last, first, 0.1, 0, lambda s: 0.0).upper == 0.0
    assert certified_precomputation(game, last, first, 0.1, 0).size == 0


def test_small_integers_do_not_overflow():
    assert SearchClock(np.int8(100), moves=2).nodes(5) == 200
    assert RolloutValues(games=np.uint8(200)).games * 9 == 1800
    tree = from_game(leaf_value=RolloutValues(games=np.uint8(200)), penalties=(0.1, math.inf))
    assert tree.work["games_sampled"] == 200 * tree.work["leaf_evaluations"]
