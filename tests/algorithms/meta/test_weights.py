"""Information states that cost different penalties, or none, in the meta-game: brute force, and OpenSpiel."""

import math

import numpy as np
import pytest
from open_spiel.python.algorithms import exploitability, sequence_form_lp
from scipy.optimize import linprog

from precomp_games import HistoryTree, MetaPrecomputationGame
from precomp_games.algorithms import (
    MetaStrategy,
    best_precomputation,
    meta_equilibrium,
    meta_exploitability,
    meta_game_policy,
    meta_sequence_form_lp,
    strategies_from_policy,
)
from precomp_games.algorithms.meta.equilibrium import CFR_VARIANTS
from tests import reference
from tests.menus import matrix_value
from tests.random_games import random_efg, random_policy, random_tree

_MOST_PAIRS = 600
_SOME = (0.0, 0.0, 0.4, 1.0, 2.5)
_PENALTIES = ((0.01, 0.03), (0.05, 0.05), (0.1, 0.02))


def _draw(seed, name):
    return _SOME[int(np.random.default_rng([seed, 12, *name.encode()]).integers(len(_SOME)))]


def _weight(game, seed):
    def weight(state):
        player = state.current_player()
        return _draw(seed, f"{player} {reference.information_state(game, state, player)}")

    return weight


def _cases(kind, count):
    """(seed, game, sigma_pre, sigma, penalties, each player's sets), where there are not too many."""
    for seed in range(count):
        support, by = ("full", "partial", "pure")[seed % 3], "history" if kind == "tree" else "infoset"
        game = random_tree(seed, depth=3, actions=2) if kind == "tree" else random_efg(seed, depth=3)
        pre, sigma = (tuple(random_policy(4 * seed + k + i, support, by) for i in (0, 1)) for k in (0, 2))
        parents = [reference.predecessors(game, i) for i in (0, 1)]
        if math.prod(map(reference.count_prefix_closed_sets, parents)) <= _MOST_PAIRS:
            sets = [list(reference.prefix_closed_sets(each)) for each in parents]
            yield seed, game, pre, sigma, _PENALTIES[seed % 3], sets


def _payoffs(seed, game, pre, sigma, penalties, sets):
    """Player 0's meta-game utility for each pair of sets, by the base game alone."""
    cost = [[penalties[i] * sum(_draw(seed, f"{i} {name}") for name in s) for s in sets[i]] for i in (0, 1)]
    return reference.utilities(game, sets, pre, sigma) - np.array(cost[0])[:, None] + np.array(cost[1])


def _tree(seed, game, pre, sigma, penalties, **options):
    return HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=penalties, weight=_weight(game, seed), **options
    )


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_against_brute_force(kind):
    compared = 0
    for seed, game, pre, sigma, penalties, sets in _cases(kind, 70):
        value = matrix_value(_payoffs(seed, game, pre, sigma, penalties, sets))
        tree = _tree(seed, game, pre, sigma, penalties)
        tree.check()
        exact = meta_sequence_form_lp(tree)
        assert exact.value == pytest.approx(value, abs=1e-7)
        assert abs(exact.nash_conv) < 1e-7
        assert meta_equilibrium(tree).value == pytest.approx(value, abs=1e-7)  # double oracle
        found = meta_equilibrium(tree, variant=CFR_VARIANTS[seed % 5], iterations=200, check_every=200)
        assert abs(found.value - value) <= found.nash_conv + 1e-9
        assert found.nash_conv < 0.03
        compared += 1
    assert compared >= 50


@pytest.mark.parametrize("kind", ["tree", "efg"])
def test_openspiel_solves_the_same_game(kind):
    compared = reweighted = 0
    for seed, game, pre, sigma, penalties, _ in _cases(kind, 30):
        tree = _tree(seed, game, pre, sigma, penalties)
        if not tree.num_infosets:
            continue
        exact = meta_sequence_form_lp(tree)
        forms = ["audit", *(["reweighted"] if seed % 3 == 0 else [])]
        for form in forms:
            played = MetaPrecomputationGame(tree, form=form)
            value = sequence_form_lp.solve_zero_sum_game(played)[0]
            assert value + played.value_shift == pytest.approx(exact.value, abs=1e-6)
            policy = meta_game_policy(played, exact.strategies)
            assert exploitability.exploitability(played, policy) == pytest.approx(0.0, abs=1e-6)
            assert max(abs(u) for state in _ends(played) for u in state.returns()) <= played.max_utility()
            reweighted += form == "reweighted"
        again = strategies_from_policy(MetaPrecomputationGame(tree, form="audit"), meta_game_policy(
            MetaPrecomputationGame(tree, form="audit"), exact.strategies))  # fmt: skip
        for one, two in zip(exact.strategies, again, strict=True):
            np.testing.assert_allclose(one.plan(), two.plan(), atol=1e-12)
        compared += 1
    assert compared >= 20
    assert reweighted >= 5


def _ends(game):
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if state.is_terminal():
            yield state
        stack += [state.child(action) for action in state.legal_actions()] if not state.is_terminal() else []


def test_exploitability_is_the_matrix_games():
    compared = 0
    for seed, game, pre, sigma, penalties, sets in _cases("tree", 30):
        matrix = _payoffs(seed, game, pre, sigma, penalties, sets)
        tree = _tree(seed, game, pre, sigma, penalties, truncate="none")
        names = {
            i: {
                reference.information_state(game, tree.state(int(tree.infoset_history[k])), i): k
                for k in np.flatnonzero(tree.infoset_player == i).tolist()
            }
            for i in (0, 1)
        }
        rng = np.random.default_rng(seed)
        row, column = (int(rng.integers(len(each))) for each in sets)
        if not all(name in names[i] for i, k in ((0, row), (1, column)) for name in sets[i][k]):
            continue
        pair = tuple(
            MetaStrategy.of_set(tree, i, [names[i][name] for name in sets[i][k]])
            for i, k in ((0, row), (1, column))
        )
        measured = meta_exploitability(tree, pair)
        assert measured.value == pytest.approx(matrix[row, column], abs=1e-9)
        best = matrix[:, column].max() - matrix[row].min()
        assert measured.nash_conv == pytest.approx(best, abs=1e-9)
        compared += 1
    assert compared >= 15


def _value_within(matrix, weights, budgets):
    """The value where mixtures of sets are within budgets in expectation; by its program and duality."""
    rows, columns = matrix.shape
    # max v - mu B_1 over x, v, mu >= 0: v <= x'A_j + mu w_j for each column j, sum w x <= B_0
    result = linprog(
        np.concatenate([np.zeros(rows), [-1.0, budgets[1]]]),
        A_ub=np.vstack(
            [
                np.column_stack([-matrix.T, np.ones(columns), -weights[1]]),
                np.concatenate([weights[0], [0.0, 0.0]]),
            ]
        ),
        b_ub=np.append(np.zeros(columns), budgets[0]),
        A_eq=[np.concatenate([np.ones(rows), [0.0, 0.0]])],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None), (0.0, None)],
    )
    assert result.status == 0
    return -result.fun


def test_budgets_count_weights():
    compared = 0
    for seed, game, pre, sigma, penalties, sets in _cases("tree", 30):
        matrix = _payoffs(seed, game, pre, sigma, penalties, sets)
        weights = [np.array([sum(_draw(seed, f"{i} {name}") for name in s) for s in sets[i]]) for i in (0, 1)]
        tree = _tree(seed, game, pre, sigma, penalties)
        found = meta_equilibrium(tree, budgets=(0.7, 0.4))
        assert found.nash_conv == pytest.approx(0.0, abs=1e-7)
        assert found.value == pytest.approx(_value_within(matrix, weights, (0.7, 0.4)), abs=1e-7)
        compared += 1
    assert compared >= 15


@pytest.mark.parametrize("player", [0, 1])
def test_an_opponent_who_never_memorizes_gives_algorithm_1(player):
    for seed, game, pre, sigma, penalties, _ in _cases("efg", 12):
        never = (penalties[0], math.inf) if player == 0 else (math.inf, penalties[1])
        tree = _tree(seed, game, pre, sigma, never)
        best = best_precomputation(tree, player)
        own = best.value if player == 0 else tree.utility_sum - best.value
        assert meta_sequence_form_lp(tree).value == pytest.approx(own, abs=1e-9)


def test_a_checkpoint_is_of_its_weights(tmp_path):
    seed, game, pre, sigma, penalties, _ = next(_cases("tree", 5))
    tree = _tree(seed, game, pre, sigma, penalties)
    path = tmp_path / "run.npz"
    options = {"variant": "cfr+", "checkpoint": path}
    meta_equilibrium(tree, iterations=5, **options)
    assert meta_equilibrium(tree, iterations=9, **options).iterations == 9
    with pytest.raises(ValueError, match="which differs in weight"):
        meta_equilibrium(tree.with_weights(np.ones(tree.num_infosets)), iterations=9, **options)


def test_all_free_and_audited():
    """Where everything is known already, the audit form still visits each information state."""
    game = random_tree(1, depth=3, actions=2)
    pre, sigma = random_policy(1), random_policy(2)
    tree = HistoryTree.from_game(game, sigma_pre=pre, sigma=sigma, penalties=0.3, weight=lambda state: 0.0)
    played = MetaPrecomputationGame(tree, form="audit")
    exact = meta_sequence_form_lp(tree)
    value = sequence_form_lp.solve_zero_sum_game(played)[0]
    assert value + played.value_shift == pytest.approx(exact.value, abs=1e-6)
    assert exact.value == pytest.approx(exact.utility, abs=1e-12)
