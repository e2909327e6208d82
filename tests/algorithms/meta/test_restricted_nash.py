"""Restricted Nash responses against linear programs over all pairs of sets, and the solvers at both ends."""

import pytest

from precomp_games.algorithms import MetaStrategy, best_precomputation, meta_exploitability, restricted_nash
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.meta_games import matrix_value, meta_cases

_CASES = 160


def _value(case, player, p):
    """v(p) by enumeration, in the player's utility."""
    nothing = case.choices[1 - player].index({})
    if player == 0:
        return matrix_value(p * case.payoffs[:, [nothing]] + (1.0 - p) * case.payoffs)
    mixed = p * case.payoffs[[nothing]] + (1.0 - p) * case.payoffs
    return (case.game.utility_sum() or 0.0) - matrix_value(mixed)


def test_values_are_those_of_all_sets(cases):
    for k, case in enumerate(meta_cases(cases(_CASES))):
        player, p = k % 2, (0.0, 0.2, 0.5, 0.83, 1.0)[k % 5]
        found = restricted_nash(case.tree, player, model_probability=p)
        assert found.value == pytest.approx(_value(case, player, p), abs=1e-8)
        assert abs(found.gap) < 1e-9 * case.tree.scale
        assert found.rival.totals[case.tree.previous < 0].max(initial=0.0) <= 1.0 - p + 1e-12


def test_ends_are_the_equilibrium_and_algorithm_1(cases):
    for k, case in enumerate(meta_cases(cases(_CASES))[::2]):
        player, tree = k % 2, case.tree
        own = lambda value: value if player == 0 else tree.utility_sum - value  # noqa: B023, E731
        start, end = (restricted_nash(tree, player, model_probability=p) for p in (0.0, 1.0))
        assert start.value == start.against_best
        assert start.value == pytest.approx(own(meta_sequence_form_lp(tree).value), abs=1e-9)
        pair = [start.strategy, start.rival][:: 1 if player == 0 else -1]
        assert meta_exploitability(tree, tuple(pair)).nash_conv == pytest.approx(start.gap, abs=1e-12)
        assert end.value == end.against_model
        assert end.value == pytest.approx(best_precomputation(tree, player).value, abs=1e-9)
        nothing = MetaStrategy.of_set(tree, 1 - player, [])
        assert (end.rival.memorize == nothing.memorize).all()
