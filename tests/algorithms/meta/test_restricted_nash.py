"""Restricted Nash responses against linear programs over all pairs of sets, and the solvers at both ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.algorithms import MetaStrategy, best_precomputation, meta_exploitability, restricted_nash
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.meta_games import known_cases, matrix_value
from tests.properties import examples


def _value(case, player, p):
    """v(p) by enumeration, in the player's utility."""
    nothing = case.choices[1 - player].index({})
    if player == 0:
        return matrix_value(p * case.payoffs[:, [nothing]] + (1.0 - p) * case.payoffs)
    mixed = p * case.payoffs[[nothing]] + (1.0 - p) * case.payoffs
    return (case.game.utility_sum() or 0.0) - matrix_value(mixed)


@examples(240)
@given(known_cases(), st.integers(0, 1), st.sampled_from((0.0, 0.2, 0.5, 0.83, 1.0)))
def test_values_are_those_of_all_sets_and_ends_the_equilibrium_and_algorithm_1(case, player, p):
    tree = case.tree
    found = restricted_nash(tree, player, model_probability=p)
    assert found.value == pytest.approx(_value(case, player, p), abs=1e-8)
    assert abs(found.gap) < 1e-9 * tree.scale
    assert found.rival.totals[tree.previous < 0].max(initial=0.0) <= 1.0 - p + 1e-12
    if p == 0.0:
        equilibrium = meta_sequence_form_lp(tree).value
        own = equilibrium if player == 0 else tree.utility_sum - equilibrium
        assert found.value == found.against_best == pytest.approx(own, abs=1e-9)
        pair = [found.strategy, found.rival][:: 1 if player == 0 else -1]
        assert meta_exploitability(tree, tuple(pair)).nash_conv == pytest.approx(found.gap, abs=1e-12)
    if p == 1.0:
        assert found.value == found.against_model
        assert found.value == pytest.approx(best_precomputation(tree, player).value, abs=1e-9)
        nothing = MetaStrategy.of_set(tree, 1 - player, [])
        assert (found.rival.memorize == nothing.memorize).all()
