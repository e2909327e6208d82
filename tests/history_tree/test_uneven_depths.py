"""Information states whose histories are of several lengths."""

import math

import numpy as np
import pytest

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation
from tests.oracles import books
from tests.oracles.games import expand, first, last, policy_pairs
from tests.oracles.meta_games import names_in
from tests.oracles.trees import efg, uneven_efg


def _reopened():
    """Player 1's first turn is met after the chance move (0.1) and, one level further down, else (0.9)."""

    def turn(second, *utilities):
        u, v = utilities
        return [
            'p "" 1 1 "" { "a" "b" } 0',
            't "" 1 "zero" { 0 0 }',
            f'p "" 1 {second} "" {{ "c" "d" }} 0',
            f't "" 2 "lost" {{ {u} {-u} }}',
            f't "" 3 "won" {{ {v} {-v} }}',
        ]

    return efg(
        'c "" 1 "" { "s" 0.1 "l" 0.9 } 0',
        *turn(2, -1, 1),
        'p "" 2 1 "" { "x" "y" } 0',
        *turn(3, -1, 1),
        't "" 1 "zero" { 0 0 }',
    )


def test_information_states_of_several_depths(cases):
    compared = uneven = memorized = 0
    for seed in range(cases(60)):
        game = uneven_efg(seed)
        pre, sigma = policy_pairs(seed, ("full", "partial")[seed % 2], "infoset")
        if books.count_prefix_closed_sets(books.predecessors(game, 0)) > 1000:
            continue
        for penalty in (0.02, 0.15, 0.4, 0.8):
            value, utility, chosen = books.best_set(game, 0, penalty, pre, sigma)
            for opponent in (math.inf, 0.1):
                tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=(penalty, opponent))
                tree.check()
                best = best_precomputation(tree, 0)
                assert best.value == pytest.approx(value, abs=1e-9)
                assert best.utility == pytest.approx(utility, abs=1e-9)
                assert best.size == len(chosen)
                compared += 1
                memorized += bool(chosen)
                depths = {}
                for h in np.flatnonzero(tree.infoset >= 0):
                    depths.setdefault(int(tree.infoset[h]), set()).add(len(tree.actions(h)))
                uneven += any(len(d) > 1 for d in depths.values())
    assert compared >= cases(100)
    assert uneven >= cases(50)
    assert memorized >= cases(40)


@pytest.mark.parametrize("penalty", [0.05, 0.15, 0.3, 0.4, 0.6])
def test_an_information_state_is_reopened_for_its_longer_histories(penalty):
    # Its short history is reached with 0.1 < penalty / 2 for the larger penalties. What follows its long one
    # must not be held to that either.
    game = _reopened()

    def sigma(state):
        names = [state.action_to_string(a) for a in state.legal_actions()]
        return {state.legal_actions()[names.index("b") if "b" in names else 0]: 1.0}

    tree = HistoryTree.from_game(game, sigma_pre=last, sigma=(sigma, first), penalties=(penalty, math.inf))
    value, utility, chosen = books.best_set(game, 0, penalty, (last, last), (sigma, first))
    best = best_precomputation(tree, 0)
    assert (best.value, best.utility) == (pytest.approx(value), pytest.approx(utility))
    assert chosen.issubset(names_in(tree, 0))
    assert best.size == len(chosen) >= 2
    everything = expand(game, last, (sigma, first), (penalty, math.inf), truncate="none")
    assert tree.num_infosets == (3 if penalty <= 0.2 else 2) <= everything.num_infosets == 3
