"""Problems that a price per position makes hard: budgets between bends of the curve, and menus.

Entries e of the player's menus are memorized, x(e), at positions that are bought, z(P, e): a position has one
move, so where its information states are memorized, it is by the same entry. With a price for each position
or at most B of them, an integer program finds the best set:

    max sum of g(e) x(e) - lambda sum of z(P, e)   subject to   x(e) <= z(P, e),  sum over e of z(P, e) <= 1,
                                    sum over I's entries of x(e) <= x(before I),     sum of z(P, e) <= B.

Once the z are fixed, the rest is Algorithm 1. Passes leave it little.

**Budgets**, where menus have one entry. At the sizes where the frontier bends, its own sets are best. Between
two of them the problem is hard (docs/position_prices.md). As with a price per information state (`frontier`),
prices y at the slope of the curve show what each choice loses: to take an information state loses at least as
much as its ancestors are worth below 0, and to leave one out loses what it is worth. Choices that lose more
than a guess of how far the best set falls short of the curve are fixed before the program is solved. A set
that is within the guess is the best one; otherwise the guess grows.

**Menus** of several entries. Sets are no closure, and there is no division of prices. A position goes where
all of its information states together are worth at most its price with all else free, and so does an entry
that is worth nothing then.

HiGHS solves both, up to a gap that it certifies; a limit on its time leaves a larger one.

Cost: that of an integer program. Budgets on trees with a million histories leave it a few hundred columns.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.tree.meta_strategy import realization_plan

from ..programs import Clock, ProgramBuilder, ProgramSolution, unit
from . import position_prices as closures
from .decisions import Decisions
from .frontier import MemoryFrontier
from .position_prices import Closure, PricedForest

_FIRST_GUESS, _GROWTH = 2.0**-8, 4.0
_ROUNDING = 1e-11  # of the sum of gains
_CHEAPEST, _STEPS = 1e-7, 24  # of all that can be gained, and of a bisection
_GAP = 1e-9  # of the unit that a program is written in

_Flags = npt.NDArray[np.bool_]


def best_closure_within_budget(
    frontier: MemoryFrontier, budget: int, clock: Clock
) -> tuple[npt.NDArray[np.float64], float]:
    """Return a set of most gain with at most `budget` >= 0 positions, float64[E], and an upper bound.

    Args:
      frontier: of decisions on which positions have a price, and menus one entry.
      budget: the most positions.
      clock: how long it may take.
    """
    decisions, sizes = frontier.decisions, frontier.sizes
    forest, own = PricedForest.of_decisions(decisions)
    below = int(np.searchsorted(sizes, budget, side="right")) - 1
    known = frontier.memorize(below)
    own_entries = decisions.forest.first_entry[own]
    last = below == len(frontier.breakpoints)
    slope = frontier.penalty if last else float(frontier.breakpoints[below])
    gained = float(frontier.utilities[below]) - decisions.gains()[1]
    if sizes[below] == budget:
        return known, gained
    free = closures.best_closure(forest, 0.0)
    if free.size <= budget:
        known[own_entries] = free.chosen
        return known, free.gain
    closure = closures.best_closure(forest, slope)
    curve_at = closure.upper + slope * budget
    best, most = known[own_entries] > 0.0, curve_at
    rounding = _ROUNDING * float(np.abs(forest.gain).sum())
    widest = max(curve_at - gained, 0.0) + rounding
    guess = widest * _FIRST_GUESS
    while True:
        chosen, bound, stopped = _solve_open(forest, closure, slope, budget, guess, best, clock)
        if forest.gain[chosen].sum() > forest.gain[best].sum():
            best = chosen
        most = min(most, max(bound, curve_at - guess))  # what was fixed loses more than the guess
        reached = float(forest.gain[best].sum())
        if stopped or curve_at - reached <= guess or guess >= widest:
            known[own_entries] = best
            return known, max(min(most, free.gain), reached)
        guess = min(guess * _GROWTH, widest)


def _solve_open(
    forest: PricedForest,
    closure: Closure,
    slope: float,
    budget: int,
    guess: float,
    start: _Flags,
    clock: Clock,
) -> tuple[_Flags, float, bool]:
    """Return the best set whose choices lose at most `guess`, a bound on gains, and whether time was up."""
    value, _ = closures.values_at(forest, closure.price)
    loss, kept = np.empty((2, len(value)))
    _losses(forest.previous, value, loss, kept)
    open_ = loss <= guess
    slack = slope - np.bincount(forest.position, closure.price, forest.num_positions + 1)
    least = np.full(forest.num_positions + 1, np.inf)
    np.minimum.at(least, forest.position[open_], loss[open_])
    # A position is bought for some information state of it; what is free does not count.
    dear = least + np.maximum(slack, 0.0) > guess
    dear[-1] = False
    open_ &= ~dear[forest.position]
    closures.only_after(forest.previous, open_)
    chosen = open_ & (kept > guess)
    base, room = float(forest.gain[chosen].sum()), budget - forest.size(chosen)
    if room < 0:
        return np.zeros(len(value), bool), -np.inf, False
    rest, nodes = forest.between(chosen, open_)
    begun = rest.paid(start[nodes])[:-1]
    solution, bought = _bought(
        rest.gain, np.arange(len(nodes)), rest.previous, rest.position, np.arange(rest.num_positions),
        0.0, slope, room, begun, clock,
    )  # fmt: skip
    if solution.found:
        chosen[nodes] = closures.positions_of(rest, np.append(bought, True))
    return chosen, base + solution.bound, solution.status == "time_limit"


def best_shared_entries(
    decisions: Decisions, price: float, budget: int | None, clock: Clock
) -> tuple[npt.NDArray[np.float64], float]:
    """Return a set of most gain, less prices, where a position has one entry, float64[E], and an upper bound.

    Args:
      decisions: the player's; information states that share a price share the entry.
      price: what a position costs; with a budget, nothing.
      budget: the most positions; None: any number.
      clock: how long it may take.
    """
    tree = decisions.forest
    gain, unprepared = decisions.gains()
    assert decisions.shared is not None
    place = np.unique(decisions.shared, return_inverse=True)[1]
    choice = np.arange(tree.num_entries) - tree.first_entry[tree.entry_infoset]
    pair = place[tree.entry_infoset] * (int(choice.max(initial=0)) + 1) + choice

    def taken(some: npt.NDArray[np.int64], own_price: float) -> npt.NDArray[np.float64]:
        """Return the best set of the entries of some pairs, at a price of each information state."""
        only = _only(decisions, np.isin(pair, pairs[some]))
        return realization_plan(tree, only.best(own_price).memorize)

    def worth(memorize: npt.NDArray[np.float64]) -> float:
        chosen = memorize > 0.0
        return float(gain[chosen].sum()) - price * len(np.unique(pair[chosen]))

    entries = np.flatnonzero(_may_pay(decisions, place, price))
    infosets, infoset = np.unique(tree.entry_infoset[entries], return_inverse=True)
    number = np.full(tree.num_entries + 1, -1)
    number[entries] = np.arange(len(entries))
    pairs, first, at = np.unique(pair[entries], return_index=True, return_inverse=True)
    place_of = place[tree.entry_infoset[entries[first]]]

    def agreed(own_price: float) -> npt.NDArray[np.float64]:
        """Return the best set with the entry of each position that is worth most in all at a price."""
        total = np.bincount(at, np.maximum(decisions.best(own_price).advantage[entries], 0.0))
        order = np.argsort(-total, kind="stable")
        return taken(order[np.unique(place_of[order], return_index=True)[1]], own_price)

    best = np.zeros(tree.num_entries)
    if budget is None:
        best = agreed(price)
    elif len(entries):  # it begins with the largest such set that fits
        dear = max(decisions.best(0.0).value - unprepared, 0.0)
        cheap = _CHEAPEST * dear
        for _ in range(_STEPS):
            middle = math.sqrt(cheap * dear)
            some = agreed(middle)
            if len(np.unique(pair[some > 0.0])) > budget:
                cheap = middle
            else:
                best, dear = max(best, some, key=worth), middle
    begun, before = np.isin(pairs, pair[best > 0.0]), number[tree.previous[infosets]]
    solution, bought = _bought(
        gain[entries], infoset, before, at, place_of, price, price, budget, begun, clock
    )
    if solution.found:
        best = max(best, taken(np.flatnonzero(bought), 0.0), key=worth)
    return best, max(min(solution.bound, decisions.best(0.0).value - unprepared), worth(best))


def _only(decisions: Decisions, allowed: _Flags) -> Decisions:
    """Return the decisions where only some entries, bool[E], may be memorized."""
    after = np.append(decisions.after[0], np.where(allowed, decisions.after[1:], -np.inf))
    return dataclasses.replace(decisions, after=after)


def _may_pay(decisions: Decisions, place: npt.NDArray[np.int64], price: float) -> _Flags:
    """Return bool[E]: the entries that can pay; `place` is each information state's position."""
    tree = decisions.forest
    left: _Flags = tree.entry_player == decisions.player
    while True:
        worth = np.where(left, _only(decisions, left).best(0.0).advantage, 0.0)  # with all else free
        best = np.zeros(tree.num_infosets)
        np.maximum.at(best, tree.entry_infoset, worth)
        pays = np.bincount(place, best)[place] > price
        still = (worth > 0.0) & pays[tree.entry_infoset]
        still &= np.append(left, True)[tree.previous[tree.entry_infoset]]
        if (still == left).all():
            return left
        left = still


def _bought(
    gain: npt.NDArray[np.float64],
    group: npt.NDArray[np.int64],
    before: npt.NDArray[Any],
    pair: npt.NDArray[Any],
    place: npt.NDArray[np.int64],
    price: float,
    one: float,
    budget: int | None,
    begun: _Flags,
    clock: Clock,
) -> tuple[ProgramSolution, _Flags]:
    """Solve the program of what is left; return HiGHS's solution, in gains, and bool[pairs]: bought.

    Args:
      gain: float64[n], g of what can be memorized.
      group: int64[n], the information state of each, from 0 on.
      before: int64[groups], what each of them needs, by its number; -1: nothing.
      pair: int64[n], what is bought for each; as many as there are pairs: nothing.
      place: int64[pairs], of which one may be bought at each place.
      price: of a pair.
      one: what is 1 in the program, in utility.
      budget: the most pairs; None: any number.
      begun: bool[pairs], what is bought at the beginning.
      clock: how long it may take.
    """
    n, count, program = len(gain), len(place), ProgramBuilder()
    scale = unit(float(np.abs(gain).max(initial=0.0)), one=one)
    program.columns(n + count)
    costs = np.append(gain, np.full(count, -price)) * scale
    program.set_costs(dict(enumerate(costs.tolist())))
    for k in range(count):
        program.integer(n + k)
    rows = program.rows(np.full(len(before), -np.inf), np.where(before >= 0, 0.0, 1.0))
    program.put(rows[group], np.arange(n), np.ones(n))
    program.put(rows, before, -np.ones(len(before)))
    closures.add_no_more_than(program, np.where(pair < count, n + pair, -1))
    places, at = np.unique(place, return_inverse=True)
    rows = program.rows(np.full(len(places), -np.inf), np.ones(len(places)))
    program.put(rows[at], n + np.arange(count), np.ones(count))
    if budget is not None:
        program.row(((n + k, 1.0) for k in range(count)), high=float(budget))
    start = dict(enumerate(begun.astype(float).tolist(), n))
    solution = program.built().solve(
        time_limit=clock.remaining(), start=start, absolute_gap=_GAP, attempt=True
    )
    return dataclasses.replace(solution, bound=solution.bound / scale), solution.x[n:] > 0.5


@kernel
def _losses(previous: np.ndarray, value: np.ndarray, loss: np.ndarray, kept: np.ndarray) -> None:
    """Fill in what each node loses if it is chosen, and if it is not, where `value` is its value."""
    for k in range(len(value)):
        before = previous[k]
        loss[k] = max(0.0, -value[k]) + (loss[before] if before >= 0 else 0.0)
        kept[k] = min(max(0.0, value[k]), kept[before]) if before >= 0 else max(0.0, value[k])
