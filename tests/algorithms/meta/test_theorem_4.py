"""Theorem 4 end to end: sampled leaves and an approximate equilibrium make an epsilon-equilibrium.

Algorithm 2 samples the leaves of the truncated tree, K games each, and solves the game that has the estimates
for values. What is an epsilon-equilibrium: neither player can gain more than epsilon by any other mixture of
memorization sets in the true meta-game, which is neither sampled nor truncated.

How epsilon splits. Let every estimate be within eta of its u^sigma. The reaches of a profile's leaves sum to
1, so no value of any profile moves by more than eta, nor does the most that a player can get against a fixed
opponent. NashConv is the sum of both players' best responses (penalties and the constant sum cancel), so

    |NashConv - estimated NashConv| <= 2 eta,

and an incentive is at most NashConv. With eta = epsilon / 4, which is the K of RolloutValues(epsilon / 2,
delta), and an estimated NashConv of epsilon / 2, NashConv is at most epsilon with probability 1 - delta. (The
paper has the same constants, x = x' = 4, and adds up the errors of a value and of a best response for each
player by itself: each incentive is at most epsilon, NashConv 2 epsilon.) The rest of the true game makes no
difference: what lies outside W is in no best response.

The true game is known by enumeration: all prefix-closed sets of both players, played out on the base game's
own states. Observed for epsilon = 0.03, delta = 0.1, with 200 seeds:

    game                            K          epsilon-equilibria   largest incentive   largest NashConv
    perfect information, chance     368,414    200                  0.0059              0.0100
                                    100        200                  0.0157              0.0245
                                    1           48                  0.1229              0.1266
    imperfect information, chance   874,052    200                  0.0063              0.0100
                                    100        200                  0.0180              0.0214
                                    1           59                  0.0501              0.0649

Hoeffding's inequality and the union bound are generous, and so is 2 eta: leaves are cut where little is at
stake. With exact leaves CFR would leave at most epsilon / 2, so that what fails for K = 1 is the sampling.
"""

import functools

import numpy as np
import pytest
from scipy import stats

from precomp_games import RolloutValues, make_policy
from precomp_games.algorithms import meta_equilibrium
from precomp_games.policies.leaf_values import sample_size
from precomp_games.tree.facts import TERMINAL
from tests.oracles.games import random_efg, random_tree
from tests.oracles.meta_games import enumerated

_EPSILON, _DELTA = 0.03, 0.1
_COUNT = 44  # runs: enough to show the claim at 99 % if none of them fails
_KINDS = ("tree", "efg")


@functools.cache
def _truth(kind):
    """Return a meta-game that is known, in which sigma_pre is strong and plays several actions."""
    if kind == "tree":
        game, pre = random_tree(394, depth=6, actions=2), "softmax(policy=minimax(depth=6),temperature=0.25)"
    else:
        game, pre = random_efg(30, depth=7), "cfr(iterations=50)"
    prepared, sigma = (make_policy(game, spec).action_probabilities for spec in (pre, "uniform"))
    return enumerated(game, (prepared, prepared), (sigma, sigma), (0.2, 0.2))


def _incentives(truth, strategies):
    """Return each player's gain by a best response to the other's strategy, from the matrix alone."""
    x, y = (truth.mixture(strategy) for strategy in strategies)
    value = x @ truth.payoffs @ y
    return float((truth.payoffs @ y).max() - value), float(value - (x @ truth.payoffs).min())


@functools.cache
def _runs(kind, games=None):
    """Algorithm 2 with seeds 0, 1, ...; K as the theorem has it, or `games`.

    Returns arrays: K, what CFR left, the largest error of a leaf, and each player's true incentive.
    """
    truth = _truth(kind)
    exact = truth.tree
    cut = (exact.num_children == 0) & (exact.player != TERMINAL)
    runs = []
    for seed in range(_COUNT):
        tree = truth.expand(leaf_value=RolloutValues(_EPSILON / 2, _DELTA, games=games, seed=seed))
        found = meta_equilibrium(
            tree, variant="cfr", iterations=20_000, target_nash_conv=_EPSILON / 2, check_every=20
        )
        error = np.abs(tree.value - exact.value)[cut].max()
        games_of_each = tree.work["games_sampled"] // int(cut.sum())
        runs.append((games_of_each, found.nash_conv, error, *_incentives(truth, found.strategies)))
    return np.array(runs).T


def _most_moved(runs):
    """Return the largest change of NashConv, which never exceeds twice the largest error of a leaf."""
    _, estimated, error, *incentives = runs
    moved = np.abs(sum(incentives) - estimated)
    assert (moved <= 2.0 * error + 1e-9).all()
    return moved.max()


@pytest.mark.parametrize("kind", _KINDS)
def test_theorem_4(kind):
    exact, runs = _truth(kind).tree, _runs(kind)
    leaves = exact.work["leaf_evaluations"]
    assert leaves >= 4 and exact.num_infosets < _truth(kind).whole.num_infosets
    games, estimated, error, *incentives = runs
    assert (games == sample_size(_EPSILON / 2, _DELTA, leaves, exact.utility_range)).all()
    assert (estimated <= _EPSILON / 2).all() and _most_moved(runs) > 0.0
    assert (error <= _EPSILON / 4).sum() >= (1.0 - _DELTA) * _COUNT
    # The stronger reading too: NashConv, not only each incentive, is at most epsilon.
    failures = int((sum(incentives) > _EPSILON).sum())
    assert failures <= _DELTA * _COUNT
    # More than that many runs are: at 99 %, the probability of failing is below delta.
    assert stats.beta.ppf(0.99, failures + 1, _COUNT - failures) <= _DELTA


@pytest.mark.parametrize("kind", _KINDS)
def test_one_game_a_leaf_is_not_enough(kind):
    runs = _runs(kind, 1)
    assert (np.maximum(*runs[3:]) > _EPSILON).sum() > _COUNT / 2 > _DELTA * _COUNT
    assert _most_moved(runs) > _EPSILON


@pytest.mark.parametrize("kind", _KINDS)
def test_equilibria_are_mixed(kind):
    """So that it matters to them what is sampled."""
    truth = _truth(kind)
    found = meta_equilibrium(truth.tree, iterations=20_000, target_nash_conv=1e-4)
    assert sum(_incentives(truth, found.strategies)) == pytest.approx(found.nash_conv, abs=1e-9)
    for strategy in found.strategies:
        plan = strategy.realization_plan()
        assert ((plan > 0.05) & (plan < 0.95)).any()
