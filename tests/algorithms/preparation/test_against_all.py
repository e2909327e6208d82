"""Books against all components of a mixture, beside all sets and linear programs over what they are worth."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from precomp_games import MixturePolicy
from precomp_games.algorithms import (
    best_precomputation,
    precomputation_against_all,
    value_against_components,
)
from precomp_games.algorithms.preparation.components import ComponentDecisions
from precomp_games.algorithms.preparation.decisions import Decisions
from tests import reference
from tests.random_games import random_evaluation, random_menu
from tests.test_mixtures import case

OBJECTIVES = ("worst", "gain", "regret", "tail")
SHARE = 0.4


def optimum(rows, most):
    """The best mixture of rows[sets, K] against the worst weights of at most `most`, by its own program."""
    sets, count = rows.shape
    program = linprog(
        np.concatenate([np.zeros(sets), [-1.0], most]),
        np.hstack([-rows.T, np.ones((count, 1)), -np.eye(count)]),
        np.zeros(count),
        np.concatenate([np.ones(sets), np.zeros(1 + count)])[None],
        [1.0],
        bounds=[(0, None)] * sets + [(None, None)] + [(0, None)] * count,
    )
    return -program.fun


def single(rows, most):
    """What the best row alone is worth: for each the best eta."""
    short = np.maximum(rows[:, :, None] - rows[:, None, :], 0.0)  # eta, opponent
    return (rows - short @ most).max()


def check(found, utilities, paid, weights, baseline=None):
    """Holds a result to all sets, utilities[sets, K] and what they pay; is the best single one found?"""
    rows, objective = utilities - paid[:, None], found.objective
    nothing = utilities[0] if baseline is None else baseline
    own = {"worst": 0.0 * nothing, "gain": nothing, "tail": nothing, "regret": rows.max(axis=0)}[objective]
    rows = rows - own
    most = weights / SHARE if objective == "tail" else np.ones(len(weights))
    assert found.baseline == pytest.approx(own, abs=1e-9)
    assert found.value == pytest.approx(optimum(rows, most), abs=1e-9)
    assert -1e-15 <= found.gap <= 1e-12
    # The certificate.
    assert found.upper == pytest.approx((rows @ found.weights).max(), abs=1e-9)
    assert found.weights.sum() == pytest.approx(1.0) and (found.weights <= most + 1e-9).all()
    # What is drawn.
    assert found.probabilities.sum() == pytest.approx(1.0) and len(found.books) <= len(weights)
    each = np.array([value_against_components(book) for book in found.books])
    assert found.utilities == pytest.approx(found.probabilities @ each, abs=1e-9)
    each -= np.array([book.penalty * book.paid for book in found.books])[:, None]
    assert found.value == pytest.approx(optimum((found.probabilities @ each)[None] - own, most), abs=1e-9)
    # The best single set.
    alone = found.best_single
    assert found.single_utilities == pytest.approx(value_against_components(alone), abs=1e-9)
    assert alone.utility == pytest.approx(weights @ found.single_utilities, abs=1e-9)
    row = (found.single_utilities - alone.penalty * alone.paid - own)[None]
    assert found.single_value == pytest.approx(single(row, most), abs=1e-9)
    best = single(rows, most)
    assert found.single_value <= best + 1e-9 <= found.upper + 2e-9
    return found.single_value >= best - 1e-9


def asked(tree, player, objective, **options):
    share = SHARE if objective == "tail" else None
    return precomputation_against_all(tree, player, objective, share=share, **options)


def drawn_case(seed):
    """(the case, all its sets, utilities[sets, K], its tree's options): policies, menus, evaluated stops."""
    drawn, options = case(seed), {}
    if seed % 4 == 2:
        drawn.pre = random_menu(seed)
    elif seed % 8 == 1:
        drawn.pre = random_menu(seed, 2, "infoset")
    sets = reference.all_choices(drawn.game, drawn.player, drawn.pre, 1000)
    values = None
    if seed % 8 == 4:
        values = [random_evaluation(k) for k in range(len(drawn.opponents))]
        options = {"leaf_value": values, "stop_value": "evaluate"}
    return drawn, sets, drawn.utilities(sets, values).T if sets else None, options


def test_all_objectives_beside_all_sets(cases):
    right = []
    for seed in range(cases(200)):
        drawn, sets, utilities, options = drawn_case(seed)
        if not sets:
            continue
        sizes = np.array(list(map(len, sets)))
        penalty, budget = float(10.0 ** -(1 + seed % 3)), (None, 2, None, 4)[seed // 2 % 4]
        if budget is None:
            paid = penalty * sizes
        else:
            utilities, paid = utilities[sizes <= budget], np.zeros(np.count_nonzero(sizes <= budget))
        tree, player = drawn.tree(penalty, truncate="none", **options), drawn.player
        for objective in OBJECTIVES:
            found = asked(tree, player, objective, budget=budget)
            right.append(check(found, utilities, paid, drawn.weights))
            assert found.truncation_loss == 0.0
            assert all(budget is None or book.size <= budget for book in (*found.books, found.best_single))
    assert np.mean(right) > 0.98


def test_what_a_tree_leaves_out_is_told(cases):
    """And nothing is left out where the tree was made for the opponent who comes most seldom."""
    for seed in range(0, cases(100), 2):
        drawn, sets, utilities, options = drawn_case(seed)
        if not sets:
            continue
        sizes, penalty = np.array(list(map(len, sets))), 0.1
        rows = utilities - penalty * sizes[:, None]
        whole = optimum(rows, np.ones(len(drawn.weights)))
        cut = drawn.tree(penalty, **options)
        found = asked(cut, drawn.player, "worst")
        assert found.value <= whole + 1e-9 <= found.upper + found.truncation_loss + 2e-9
        within = asked(cut, drawn.player, "worst", budget=1)
        whole_within = optimum(utilities[sizes <= 1], np.ones(len(drawn.weights)))
        assert within.value <= whole_within + 1e-9 <= within.upper + within.truncation_loss + 2e-9
        fine = drawn.tree(penalty * drawn.weights.min(), **options)
        exact = asked(fine.with_penalties([max(p, penalty) for p in fine.penalties]), drawn.player, "worst")
        assert exact.value == pytest.approx(whole, abs=1e-9) and exact.truncation_loss <= 1e-15


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["keys", "keep", "weights"])
def test_prices_that_are_shared_and_what_is_known(seed, how):
    """Beside all closed sets of information states, by the utilities that other tests hold to the game."""
    drawn = case(seed)
    tree, player = drawn.tree(0.02, truncate="none"), drawn.player
    rng, m = np.random.default_rng(seed), tree.num_infosets
    opponents = ComponentDecisions.of(Decisions.against(tree, player), None)
    before = {k: int(tree.previous[k]) if tree.previous[k] >= 0 else None for k in range(m)}
    sets = [sorted(chosen) for chosen in reference.prefix_closed_sets(before)]
    options, paid = {}, np.array([float(len(chosen)) for chosen in sets])
    if how == "keys":
        keys = rng.integers(m // 2 + 1, size=m)
        options, paid = {"price": keys}, np.array([len(np.unique(keys[chosen])) for chosen in sets])
    elif how == "keep":
        known = rng.permutation(m)[:2]
        options, paid = {"keep": known}, np.array([len(np.setdiff1d(chosen, known)) for chosen in sets])
        come_to = [{k for k in known if before[k] is None or before[k] in chosen} for chosen in sets]
        kept = [need <= set(chosen) for need, chosen in zip(come_to, sets, strict=True)]
        sets, paid = list(itertools.compress(sets, kept)), paid[kept]
    else:
        weight = rng.integers(3, size=m)
        tree, paid = tree.with_weights(weight), np.array([weight[chosen].sum() for chosen in sets])
    utilities = np.array([opponents.utilities(np.array(chosen, int)) for chosen in sets])
    for objective in OBJECTIVES:
        check(
            asked(tree, player, objective, **options), utilities, 0.02 * paid, drawn.weights, opponents.alone
        )
        if how != "weights":
            found = asked(tree, player, objective, budget=2, **options)
            within, free = utilities[paid <= 2], np.zeros(np.count_nonzero(paid <= 2))
            check(found, within, free, drawn.weights, opponents.alone)


@pytest.mark.parametrize("seed", range(4))
def test_one_opponent_is_algorithm_1(seed):
    drawn = case(seed)
    drawn.opponents, drawn.weights = drawn.opponents[:1], np.ones(1)
    best = drawn.best(0.02)
    for objective, less in (("worst", 0.0), ("gain", best.unprepared), ("regret", best.value)):
        found = asked(best.tree, drawn.player, objective)
        assert found.value == found.single_value == pytest.approx(best.value - less, abs=1e-12)
        assert found.best_single.memorization_set.tolist() == best.memorization_set.tolist()
    whole = precomputation_against_all(best.tree, drawn.player, "tail", share=1.0)
    assert whole.value == pytest.approx(best.value - best.unprepared, abs=1e-12)


def test_all_opponents_by_their_weights_are_the_mixture():
    drawn = case(4)
    best = drawn.best(0.02)
    found = precomputation_against_all(best.tree, drawn.player, "tail", share=1.0)
    assert found.weights == pytest.approx(drawn.weights) and len(found.books) == 1
    assert found.value == pytest.approx(best.value - best.unprepared, abs=1e-12)
    assert found.books[0].memorization_set.tolist() == best.memorization_set.tolist()
    assert found.books[0].upper == pytest.approx(best.value) and found.books[0].policy() is not None


@pytest.mark.parametrize("factor", [1e-12, 1e-5, 1e9])
def test_utilities_may_be_measured_in_anything(factor):
    drawn = case(8)
    tree = drawn.tree(0.01)
    mixture = tree.mixture._replace(value=tree.mixture.value * factor)
    scaled = dataclasses.replace(
        tree, value=tree.value * factor, utility_sum=tree.utility_sum * factor, mixture=mixture,
        utility_range=tree.utility_range * factor, penalties=tuple(p * factor for p in tree.penalties),
    )  # fmt: skip
    for objective in OBJECTIVES:
        one, other = (asked(each, drawn.player, objective) for each in (tree, scaled))
        for name in ("value", "upper", "single_value", "truncation_loss"):
            assert getattr(other, name) / factor == pytest.approx(getattr(one, name), abs=1e-9), name


def test_where_time_runs_out_the_gap_is_told():
    drawn = case(6)
    tree = drawn.tree(0.001)
    found = precomputation_against_all(tree, drawn.player, "regret", time_limit=0.0)
    exact = precomputation_against_all(tree, drawn.player, "regret")
    assert found.value <= exact.value + 1e-12 <= found.upper + 2e-12 and found.gap > 0.0


def test_what_it_refuses():
    drawn = case(2)
    tree = drawn.tree(0.1)
    for share, objective in ((None, "tail"), (0.5, "gain")):
        with pytest.raises(ValueError, match='expected a share with objective="tail", and no other'):
            precomputation_against_all(tree, drawn.player, objective, share=share)
    plain = drawn.tree(0.1, mixture=drawn.opponents[0])
    for each, player in ((plain, drawn.player), (tree, 1 - drawn.player)):
        with pytest.raises(
            ValueError, match=r"precomputation_against_all\(\): expected a tree whose opponent"
        ):
            precomputation_against_all(each, player)
    never = best_precomputation(tree.with_penalties(math.inf), drawn.player)
    found = precomputation_against_all(never.tree, drawn.player)
    assert found.value == found.upper == 0.0 and found.best_single.size == never.size == 0
    assert len(MixturePolicy(drawn.opponents).weights) == len(found.weights)
