"""Utilities may be measured in anything: all solvers on a game, and on the same game times a factor.

Factors go from 1e-15 to 1e15, penalties from 1e-12 of the range of utilities to 1000 times of it. Oracles are
the same game at scale 1, where others hold it against brute force, and NashConv.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from open_spiel.python.algorithms import exploitability

from precomp_games.algorithms import (
    MetaStrategy,
    best_first_precomputation,
    best_of_frontier,
    best_precomputation,
    judge_book,
    memory_frontier,
    meta_equilibrium,
    meta_exploitability,
    precomputation_plan,
    restricted_nash,
    robust_precomputation,
)
from precomp_games.algorithms.lookahead import commit_against_lookahead, equilibrium
from precomp_games.algorithms.zero_sum.sequence_form_lp import meta_sequence_form_lp
from tests.oracles.games import SEEDS, SUPPORTS, expand, random_efg, random_policy, random_tree, setting
from tests.properties import examples

_RANGE = 4.0  # of the utilities of these games, about
_SAME = 1e-9 * _RANGE
Answers = dict[Any, Any]
_KINDS = ("policies", "menus", "hidden", "lottery", "positions")


@dataclasses.dataclass(frozen=True)
class _Case:
    """penalties: of both players at scale 1."""

    kind: str
    game: Callable[..., Any]
    sigma_pre: Any
    sigma: Any
    player: int
    whole: bool
    penalties: tuple[float, float]

    def tree(self, scale, alone):
        more: dict[str, Any] = {"truncate": "none"} if self.whole else {}
        if self.kind == "positions":
            more = {"price": "positions", "position_key": str}
        penalties = [scale * penalty for penalty in self.penalties]
        if alone:
            penalties[1 - self.player] = math.inf
        return expand(self.game(scale=scale), self.sigma_pre, self.sigma, penalties, **more)


@st.composite
def _cases(draw, kinds=_KINDS):
    kind, seed = draw(st.sampled_from(kinds)), draw(SEEDS)
    if kind in ("hidden", "lottery"):
        game = functools.partial(random_efg, seed, depth=4, lottery=kind == "lottery")
    else:
        depth, actions = draw(st.integers(3, 5)), draw(st.integers(2, 3))
        width = 3 if kind == "positions" else 0
        game = functools.partial(random_tree, seed, depth=depth, actions=actions, width=width)
    support = {"policies": SUPPORTS, "menus": ("menu",)}.get(kind, ("menu", *SUPPORTS))
    _, *policies = setting(game(), seed, draw(st.tuples(*[st.sampled_from(support)] * 2)))
    # Anything, and where there is something to weigh up.
    power = st.floats(-12.0, 3.0) | st.floats(-3.0, -0.5)
    penalties = tuple(_RANGE * 10.0 ** draw(power) for _ in (0, 1))
    return _Case(kind, game, *policies, draw(st.integers(0, 1)), draw(st.booleans()), penalties)


def _worth(scale):
    """Return an evaluation function: a number of [-1, 1] for each history."""
    return lambda state: scale * float(np.random.default_rng([3, *state.history()]).uniform(-1.0, 1.0))


def _against_a_fixed_opponent(case, scale):
    """Return the values of one player's preparation, by all solvers."""
    tree, player = case.tree(scale, alone=True), case.player
    penalty, found = tree.penalties[player], Answers()
    for price in ("infosets", "positions") if case.kind == "positions" else ("infosets",):
        best = best_precomputation(tree, player, price=price)
        found[price, "best"] = best.value, best.upper, best.value + penalty * best.paid - best.utility
        for budget in (1, 2, 4):
            within = best_precomputation(tree, player, price=price, budget=budget)
            found[price, "budget", budget] = within.utility, within.upper, within.truncation_loss
        if price == "positions" and tree.has_menus:
            continue
        frontier = memory_frontier(tree, player, price=price)
        found[price, "frontier"] = frontier.upper_bound(np.arange(9))
        found[price, "its sets"] = [best_of_frontier(frontier, budget).utility for budget in range(9)]
        asked = [p * penalty for p in (1.0, 3.0, 1e2, 1e4)]
        found[price, "at"] = [frontier.at(p).value for p in asked]
        within_it = found[price, "frontier"] - np.array(found[price, "its sets"])
        assert (within_it >= -_SAME * scale).all()
        steps = precomputation_plan(tree, player, (1, 3), price=price)
        found[price, "plan"] = [(step.chosen.utility, step.best.utility) for step in steps]
    if tree.infoset_keys is None:
        robust = robust_precomputation(tree, player, 0.2, budget=3)
        found["robust"] = robust.utility, robust.unprepared
    known = np.flatnonzero((tree.entry_player == player) & (tree.previous[tree.entry_infoset] < 0))[:1]
    if case.kind != "positions":
        found["keep"] = best_precomputation(tree, player, keep=known).value
    book = judge_book(tree, player, known, learn=2)
    found["judged"] = book.value, book.utility, book.best.utility, book.own_utility, book.lessons.gain.sum()
    found["holes"], found["thresholds"] = book.holes.cost, book.threshold
    return found


def _best_first(case, scale):
    """Bounds of the search, all the way, and cut short: then rounding may choose between equal hopes."""
    found, own = Answers(), scale * case.penalties[case.player]
    for gap, most, budget in ((1e-6, None, None), (0.3, None, None), (0.0, None, 2), (0.0, 12, None)):
        arguments = case.game(scale=scale), case.sigma_pre, case.sigma, own, case.player, _worth(scale)
        options = {"gap": scale * gap, "max_evaluations": most, "budget": budget}
        bounds = best_first_precomputation(*arguments, **options)
        if most is None:
            found["best first", gap, budget] = bounds.lower, bounds.upper
        else:
            value = found["best first", 1e-6, None][0]
            assert bounds.lower <= value + _SAME * scale and value <= bounds.upper + _SAME * scale
    return found


def _equilibria(case, scale):
    """Return the value of the meta-game by all solvers, each with a certificate."""
    tree, found = case.tree(scale, alone=False), Answers()
    exact, program = meta_equilibrium(tree), meta_sequence_form_lp(tree)
    least = scale * min(*case.penalties, _RANGE)
    for each in (exact, program):
        assert each.nash_conv <= max(1e-6 * least, 1e-14 * _RANGE * scale)
    assert exact.converged and exact.solver == "double_oracle"
    few = meta_equilibrium(tree, solver="regret_minimization", iterations=30)
    nothing = (MetaStrategy.of_set(tree, 0, []), MetaStrategy.of_set(tree, 1, []))
    found["equilibrium"] = exact.value, program.value
    found["regret minimization"] = few.value, few.nash_conv
    found["NashConv"] = meta_exploitability(tree, nothing).nash_conv
    found["restricted Nash"] = restricted_nash(tree, 0, model_probability=0.3).value
    if case.kind == "lottery":  # where memorizing is worth nothing, nobody does, however little it costs
        assert exact.sizes == program.sizes == (0.0, 0.0)
    return found


def _limited_lookahead(case, scale):
    game = case.game(scale=scale)
    found = commit_against_lookahead(game, case.player, 1 + case.whole, _worth(scale), delta=0.1 * scale)
    assert found.optimal and found.delta <= 0.1 * scale
    assert exploitability.nash_conv(game, equilibrium(game)) <= 1e-7 * _RANGE * scale
    return {"commitment": (found.supremum, found.bound)}


def _answers(case, scale):
    found = _against_a_fixed_opponent(case, scale)
    if case.kind in ("policies", "menus", "positions"):
        found |= _best_first(case, scale)
    if case.kind != "positions":
        found |= _equilibria(case, scale)
    if case.kind == "hidden":
        found |= _limited_lookahead(case, scale)
    return {name: np.asarray(values, float) / scale for name, values in found.items()}


def _menus():
    game = functools.partial(random_tree, 2, depth=4, actions=3)
    return _Case("menus", game, *setting(game(), 2, ("menu", "menu"))[1:], 0, True, (0.02, 0.02))


@example(_menus(), -13, 1.0)  # below 1e-11 frontiers of menus missed sets
@examples(80)
@given(_cases(), st.integers(-15, 15), st.sampled_from((1.0, 3.0, 0.7, math.pi)))
def test_no_solver_goes_by_what_utilities_are_measured_in(case, power, digits):
    factor = digits * 10.0**power
    plain, scaled = _answers(case, 1.0), _answers(case, factor)
    assert plain.keys() == scaled.keys()
    for name, values in plain.items():
        assert values.shape == scaled[name].shape, name
        assert np.abs(values - scaled[name]).max(initial=0.0) <= _SAME, name


@pytest.mark.parametrize(("scale", "share"), [(1e-9, 0.05), (1.0, 1e-9), (1.0, 1e-12)])
@examples(40)
@given(SEEDS)
def test_what_is_worth_nothing_is_not_memorized(scale, share, seed):
    game = random_efg(seed, depth=3, scale=scale, lottery=True)
    _, pre, sigma = setting(game, seed)
    tree = expand(game, pre, sigma, share * 3.0 * scale, truncate="none")
    for found in (meta_equilibrium(tree), meta_sequence_form_lp(tree)):
        assert found.sizes == (0.0, 0.0) and found.nash_conv == 0.0 and found.converged


@examples(32)
@given(_cases(("hidden",)))
def test_utilities_may_have_any_zero(case):
    tree = dataclasses.replace(case.tree(1.0, alone=False), penalties=(0.05, 0.01))
    moved = dataclasses.replace(tree, value=tree.value + 1e6, utility_sum=2e6)
    here, there = meta_sequence_form_lp(tree), meta_sequence_form_lp(moved)
    assert there.sizes == pytest.approx(here.sizes, abs=1e-5) and there.nash_conv <= 1e-8
    assert there.value - 1e6 == pytest.approx(here.value, abs=1e-8)


@pytest.mark.parametrize(
    ("share", "tells"), [(1e-3, True), (1e-10, True), (1e-12, True), (1e-14, False), (1e-18, False)]
)
def test_an_equilibrium_counts_where_nash_conv_can_tell_at_the_scale_of_the_penalties(share, tells):
    game = random_efg(3, depth=4)
    policies = [random_policy(k, "full", "infoset") for k in range(4)]
    found = meta_equilibrium(expand(game, tuple(policies[:2]), tuple(policies[2:]), 4.0 * share))
    assert found.nash_conv <= 1e-14 * _RANGE and found.converged == tells
    assert found.nash_conv <= 0.01 * 4.0 * share or not tells
