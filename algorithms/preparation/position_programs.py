"""What a price per position makes hard: budgets between bends of the curve, and menus.

**Budgets.** A set has at most B positions, which then cost nothing. At the sizes where the frontier bends,
its own sets are best. Between two of them the problem is hard (docs/position_prices.md), so an integer
program solves it. As with a price per information state (`frontier`), prices y at the slope of the curve say
what each choice loses: to take an information state loses at least as much as its ancestors are worth below
0, and to leave one out loses what it is worth. Choices that lose more than a guess of how far the best set
falls short of the curve are fixed before the program is solved. A set that is within the guess is the best
one; otherwise the guess grows.

**Menus.** A position has one move: where its information states are memorized, it is by the same entry. Such
sets are no closure, and which entry to take is a choice, z(P, e), of at most one e for each P:

    max sum of g(e) x(e) - lambda sum of z(P, e)   subject to   x(e) <= z(P, e),  sum over e of z(P, e) <= 1,
                                                                sum over I's entries of x(e) <= x(before I).

Once the z are fixed, the rest is a closure. The search begins with the entries that a price per information
state would choose, and the best closure of these.

HiGHS solves both, up to a gap that it certifies; a limit on its time leaves a larger one.

Cost: that of an integer program. Budgets on trees with a million histories leave it a few hundred columns.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from ..programs import Clock, ProgramBuilder, ProgramSolution, unit
from .decisions import Decisions, Treeplex
from .frontier import MemoryFrontier
from .position_prices import (
    Closure,
    PricedForest,
    add_no_more_than,
    best_closure,
    only_after,
    positions_of,
    values_at,
)

_FIRST_GUESS, _GROWTH = 2.0**-8, 4.0
_ROUNDING = 1e-11  # of the sum of gains
_GAP = 1e-9  # of the unit that a program is written in


@dataclasses.dataclass(frozen=True, eq=False)
class BoundedSet:
    """A set and what no other one exceeds.

    Attributes:
      chosen: bool[n] of a forest's nodes, or bool[E] of entries.
      upper: No set's gains, less what it pays, are more.
    """

    chosen: npt.NDArray[np.bool_]
    upper: float


def best_closure_within_budget(frontier: MemoryFrontier, budget: int, clock: Clock) -> BoundedSet:
    """The information states of a set of most gain with at most `budget` >= 0 positions: bool[m].

    Args:
      frontier: of decisions on which positions have a price, and menus one entry.
      budget: the most positions.
      clock: how long it may take.
    """
    assert frontier.threshold is not None
    forest, own = PricedForest.of_decisions(frontier.decisions)
    chosen = np.zeros(len(frontier.threshold), bool)
    best = _within_budget(forest, frontier, frontier.threshold[own], budget, clock)
    chosen[own] = best.chosen
    return BoundedSet(chosen, best.upper)


def _within_budget(
    forest: PricedForest,
    frontier: MemoryFrontier,
    threshold: npt.NDArray[np.float64],
    budget: int,
    clock: Clock,
) -> BoundedSet:
    """The same on the nodes of the forest."""
    sizes, gains = frontier.sizes, frontier.utilities - frontier.decisions.gains()[1]
    below = int(np.searchsorted(sizes, budget, side="right")) - 1
    last = below == len(frontier.breakpoints)
    slope = frontier.penalty if last else float(frontier.breakpoints[below])
    inner = threshold > (0.0 if last else slope)
    if sizes[below] == budget:
        return BoundedSet(inner, float(gains[below]))
    free = best_closure(forest, 0.0)
    if free.size <= budget:
        return BoundedSet(free.chosen, free.gain)
    closure = best_closure(forest, slope)
    curve_at = closure.upper + slope * budget
    best, most = inner, curve_at
    rounding = _ROUNDING * float(np.abs(forest.gain).sum())
    widest = max(curve_at - float(gains[below]), 0.0) + rounding
    guess = widest * _FIRST_GUESS
    while True:
        solution, chosen = _solve_open(forest, closure, slope, budget, guess, best, clock)
        if chosen is not None and forest.gain[chosen].sum() > forest.gain[best].sum():
            best = chosen
        # What was fixed loses more than the guess.
        most = min(most, max(solution.bound, curve_at - guess))
        reached = float(forest.gain[best].sum())
        done = curve_at - reached <= guess or guess >= widest
        if done or solution.status == "time_limit":
            return BoundedSet(best, max(min(most, free.gain), reached))
        guess = min(guess * _GROWTH, widest)


def _solve_open(
    forest: PricedForest,
    closure: Closure,
    slope: float,
    budget: int,
    guess: float,
    start: npt.NDArray[np.bool_],
    clock: Clock,
) -> tuple[ProgramSolution, npt.NDArray[np.bool_] | None]:
    """(what HiGHS says, in gains; the set) of the choices that lose at most `guess`."""
    value, _ = values_at(forest, closure.price)
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
    only_after(forest.previous, open_)
    fixed = open_ & (kept > guess)
    paid = forest.paid(fixed)
    rest, nodes = forest.between(fixed, open_)
    base = float(forest.gain[fixed].sum())
    room = budget - forest.size(fixed)
    if room < 0:
        return ProgramSolution("infeasible", bound=-np.inf), None
    scale = unit(float(np.abs(rest.gain).max(initial=0.0)), one=slope)
    program = ProgramBuilder()
    n, count = len(nodes), rest.num_positions
    program.columns(n + count)
    program.set_costs(dict(enumerate((rest.gain * scale).tolist())))
    for k in range(count):
        program.integer(n + k)
    add_no_more_than(program, rest.previous.astype(np.int64))
    add_no_more_than(program, np.where(rest.position < count, n + rest.position, -1))
    program.row(((n + k, 1.0) for k in range(count)), high=float(room))
    # The position of each node that is left, as the program numbers it.
    number = np.full(forest.num_positions + 1, -1)
    number[forest.position[nodes]] = rest.position
    number[paid] = -1
    used = number[forest.position[start & open_]]
    begun = np.zeros(count)
    begun[used[used >= 0]] = 1.0
    solution = _solved(program, n, begun if begun.sum() <= room else None, clock)
    solution = dataclasses.replace(solution, bound=base + solution.bound / scale)
    if not solution.found:
        return solution, None
    bought = paid.copy()
    chosen = np.zeros(forest.num_positions + 1, bool)
    keys = np.full(count, -1)
    keys[rest.position[rest.position < count]] = forest.position[nodes][rest.position < count]
    chosen[keys[solution.x[n:] > 0.5]] = True
    return solution, positions_of(forest, bought | chosen)


def best_shared_entries(decisions: Decisions, price: float, budget: int | None, clock: Clock) -> BoundedSet:
    """The entries to memorize where a position has one of them.

    Args:
      decisions: the player's; information states that share a price share the entry.
      price: what a position costs; with a budget, nothing.
      budget: the most positions; None: any number.
      clock: how long it may take.
    """
    tree, player, shared = decisions.forest, decisions.player, decisions.shared
    assert shared is not None
    gain, unprepared = decisions.gains()
    value = np.where(tree.entry_player == player, 0.0, -np.inf)
    position = np.unique(shared, return_inverse=True)[1]
    _rule_out(decisions.treeplex, gain, position, price, value)
    entries = np.flatnonzero(value > 0.0)
    if not len(entries):
        return BoundedSet(np.zeros(tree.num_entries, bool), 0.0)
    choice = np.arange(tree.num_entries) - tree.first_entry[tree.entry_infoset]
    most = int(choice.max(initial=0)) + 1
    pairs = _Pairs(decisions, gain, position[tree.entry_infoset] * most + choice, most, price)
    best = np.zeros(tree.num_entries, bool) if budget is not None else pairs.agreed(entries)
    keys, pair = np.unique(pairs.pair[entries], return_inverse=True)
    scale = unit(float(np.abs(gain[entries]).max()), one=price)
    program = ProgramBuilder()
    n, count = len(entries), len(keys)
    program.columns(n + count)
    costs = dict(enumerate((gain[entries] * scale).tolist()))
    program.set_costs(costs | {n + k: -price * scale for k in range(count)})
    for k in range(count):
        program.integer(n + k)
    number = np.full(tree.num_entries + 1, -1)
    number[entries] = np.arange(n)
    infosets, at = np.unique(tree.entry_infoset[entries], return_inverse=True)
    before = number[tree.previous[infosets]]
    rows = program.rows(np.full(len(infosets), -np.inf), np.where(before >= 0, 0.0, 1.0))
    program.put(rows[at], np.arange(n), np.ones(n))
    program.put(rows, before, -np.ones(len(infosets)))
    add_no_more_than(program, n + pair)
    places, at = np.unique(keys // most, return_inverse=True)
    rows = program.rows(np.full(len(places), -np.inf), np.ones(len(places)))
    program.put(rows[at], n + np.arange(count), np.ones(count))
    if budget is not None:
        program.row(((n + k, 1.0) for k in range(count)), high=float(budget))
    start = np.isin(keys, pairs.pair[best]).astype(np.float64)
    solution = _solved(program, n, start, clock)
    if solution.found:
        chosen = pairs.best_of(keys[solution.x[n:] > 0.5])
        if pairs.worth(chosen) > pairs.worth(best):
            best = chosen
    free = decisions.best(0.0).value - unprepared
    return BoundedSet(best, max(min(solution.bound / scale, free), pairs.worth(best)))


def _solved(
    program: ProgramBuilder, first: int, begun: npt.NDArray[np.float64] | None, clock: Clock
) -> ProgramSolution:
    """Solves a program, from what is bought at the beginning, if that fits: columns from `first` on."""
    start = None if begun is None else {first + k: x for k, x in enumerate(begun.tolist())}
    return program.built().solve(time_limit=clock.remaining(), start=start, absolute_gap=_GAP, attempt=True)


@dataclasses.dataclass(frozen=True, eq=False)
class _Pairs:
    """Entries by (position, entry of its menu): those of a pair are bought together.

    Attributes:
      decisions: The player's.
      gain: float64[E].
      pair: int64[E], the number of each entry's pair, for a position counted from a multiple of `most` on.
      most: The length of the longest menu.
      price: What a pair costs.
    """

    decisions: Decisions
    gain: npt.NDArray[np.float64]
    pair: npt.NDArray[np.int64]
    most: int
    price: float

    def worth(self, chosen: npt.NDArray[np.bool_]) -> float:
        """The gains of a set, bool[E], less what it pays."""
        return float(self.gain[chosen].sum()) - self.price * len(np.unique(self.pair[chosen]))

    def best_of(self, bought: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """bool[E]: the best entries of pairs that are bought, one entry a position."""
        tree = self.decisions.forest
        own = tree.entry_player == self.decisions.player
        value = np.where(np.isin(self.pair, bought) & own, 0.0, -np.inf)
        _rule_out(self.decisions.treeplex, self.gain, np.arange(tree.num_infosets), 0.0, value)
        chosen = value > 0.0
        only_after(tree.previous[tree.entry_infoset], chosen)
        return chosen

    def agreed(self, entries: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """bool[E]: the best closure of what a price per information state chooses."""
        tree, pair = self.decisions.forest, self.pair
        advantage = self.decisions.best(self.price).advantage
        keys, at = np.unique(pair[entries], return_inverse=True)
        # Of each position, the entry that is worth most in all.
        weight = np.bincount(at, np.maximum(advantage[entries], 0.0))
        order = np.lexsort((-weight, keys // self.most))
        taken = keys[order[np.append(True, np.diff(keys[order] // self.most) > 0)]]
        chosen = np.zeros(tree.num_entries, bool)
        chosen[entries] = np.isin(pair[entries], taken)
        before = tree.previous[tree.entry_infoset]
        only_after(before, chosen)
        kept = np.flatnonzero(chosen)
        number = np.full(tree.num_entries + 1, -1, np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        keys, position = np.unique(pair[kept], return_inverse=True)
        forest = PricedForest(number[before[kept]], self.gain[kept], position.astype(np.int32), len(keys))
        chosen[kept] = best_closure(forest, self.price).chosen
        return chosen


@kernel
def _losses(previous: np.ndarray, value: np.ndarray, loss: np.ndarray, kept: np.ndarray) -> None:
    """What each node loses if it is chosen, and if it is not, where `value` is what it is worth."""
    for k in range(len(value)):
        before = previous[k]
        loss[k] = max(0.0, -value[k]) + (loss[before] if before >= 0 else 0.0)
        kept[k] = min(max(0.0, value[k]), kept[before]) if before >= 0 else max(0.0, value[k])


@kernel
def _rule_out(
    problem: Treeplex, gain: np.ndarray, position: np.ndarray, price: float, value: np.ndarray
) -> None:
    """Writes what entries are worth where all is free into `value`, where that is not -inf.

    Where all of a position's information states are worth at most its price, they become -inf. Then, of each
    information state, entries that are worth nothing.
    """
    first_entry, previous = problem.first_entry, problem.previous
    m, count = len(previous), 0
    for k in range(m):
        count = max(count, position[k] + 1)
    total = np.empty(count)
    below = np.empty(len(gain) + 1)
    changed = True
    while changed:
        changed = False
        below[:], total[:] = 0.0, 0.0
        for k in range(m - 1, -1, -1):
            best = 0.0
            for e in range(first_entry[k], first_entry[k + 1]):
                if value[e] > -np.inf:
                    value[e] = gain[e] + below[e + 1]
                    best = max(best, value[e])
            total[position[k]] += best
            below[previous[k] + 1] += best
        for k in range(m):
            gone = total[position[k]] <= price
            if previous[k] >= 0 and value[previous[k]] == -np.inf:
                gone = True
            for e in range(first_entry[k], first_entry[k + 1]):
                if value[e] > -np.inf and (gone or value[e] <= 0.0):
                    value[e] = -np.inf
                    changed = True
