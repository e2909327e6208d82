"""The best memorization set of at most B entries: a knapsack on a tree.

At the sizes where the memory frontier bends, its own sets are best. Between two of them, let lambda be the
slope of the curve at B, and let v(I) be the value of information state I by Algorithm 1 at that penalty. A
set of k entries falls short of the curve by lambda (B - k), plus the sum of what each of its choices loses:

    v(I) - stop(I)          at an information state where it stops,
    v(I) - memorize(e)      at one where it memorizes e.

So the program looks for the least loss at each size, L(I, k). It is the loss of stopping, where k = 0, or the
loss of an entry plus the least loss of distributing k - 1 over the information states right after that entry
(a min-plus convolution). Where I is known already and costs nothing, all k are distributed.

A choice that loses more than the best set falls short cannot be part of it, and most choices do. How far the
best set falls short is not known before, so it is guessed. If no set falls short by at most the guess, the
guess was too small and is multiplied.

Source: `precomputation`, footnote 3 ("a hard limit on the memorization set size").

Cost: the cost of the frontier, a pass over the entries for each guess, and the convolutions of what is left,
m B at worst. They take 12 bytes for each size that is left of each information state and of each entry.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from precomp_games._support.kernels import kernel
from precomp_games._support.validation import ArgumentError

from .decisions import StrategyValue, Treeplex
from .frontier import MemoryFrontier

_ROUNDING = 1e-11  # of the sum of all utilities: what sums of many gains may be off by
_MOST_OPEN = 2**27  # 1.6 GB
_FIRST_GUESS, _GROWTH = 2.0**-8, 4.0


@dataclasses.dataclass(frozen=True, eq=False)
class BudgetChoice:
    """The best set within a budget.

    Attributes:
      chosen: bool[E].
      utility: Of the set; where it is the frontier's own, as the curve has it.
      played: What it is worth, penalties aside, and at each information state.
      best: What Algorithm 1 finds at the slope of the curve, by which alternatives are compared.
      open: Information states at which more than one choice could matter; 0 where the set is the frontier's
        own.
    """

    chosen: np.ndarray
    utility: float
    played: StrategyValue
    best: StrategyValue
    open: int


def best_within_budget(frontier: MemoryFrontier, budget: int) -> BudgetChoice:
    """The best set of at most `budget` >= 0 entries for the decisions of a frontier.

    Raises:
      ValueError: there are too many ways to come near the curve at this budget.
    """
    decisions, sizes = frontier.decisions, frontier.sizes
    below = int(np.searchsorted(sizes, budget, side="right")) - 1
    slope = float(frontier.breakpoints[below]) if below < len(frontier.breakpoints) else 0.0
    best = decisions.best(slope)
    if below == len(frontier.breakpoints) or sizes[below] == budget:
        chosen = frontier.memorize(below)
        played = decisions.value(chosen, 0.0)
        return BudgetChoice(chosen > 0.0, float(frontier.utilities[below]), played, best, 0)
    scale = float(np.abs(decisions.stop).sum() + np.abs(decisions.after).sum())
    widest = slope * float(budget - sizes[below]) + _ROUNDING * scale
    weight = decisions.forest.infoset_weight.astype(np.int64)
    gap = widest * _FIRST_GUESS
    while True:
        status, chosen, choices = _knapsack(
            decisions.treeplex, weight, best.advantage, slope, budget, gap, _MOST_OPEN
        )
        if status == _FITS or (status == _NONE and gap >= widest):
            played = decisions.value(chosen.astype(np.float64), 0.0)
            return BudgetChoice(chosen, played.value, played, best, choices)
        if status == _TOO_MANY:
            raise ArgumentError(
                f"expected a budget at which less is left open than {_MOST_OPEN} sizes of sets, "
                f"got {budget}; {sizes[below]} is one that the frontier has"
            )
        gap = min(gap * _GROWTH, widest)


_NONE, _FITS, _TOO_MANY = range(3)


@kernel
def _knapsack(
    problem: Treeplex,
    weight: np.ndarray,
    advantage: np.ndarray,
    slope: float,
    budget: int,
    gap: float,
    most: int,
) -> tuple[int, np.ndarray, int]:
    """(whether a set falls short of the curve by at most `gap`, the best of these, `BudgetChoice.open`).

    A table has the least loss at each size, and what was picked for it. Table 0 belongs to what comes before
    the first information states, table e + 1 to entry e, and table E + 1 + I to information state I. Tables
    stand one after the other in `loss` and `pick`; `start`, `low` and `count` say where a table begins, its
    least size, and how many sizes it has.

    Invariants of the pass up, which goes through information states from the last to the first:

    - Once I is done, table E + 1 + I has the least loss of each size up to `budget` over all choices at I and
      after it, wherever that is at most `gap`. Elsewhere it has some loss above `gap`; at both ends of the
      table, such sizes are cut off.
    - At each time, table e + 1 has the least loss of distributing each size over those information states
      right after e that are done. It is complete when the information state of e is next, because what
      comes after an entry has larger numbers.
    - Nothing that was written into `loss` and `pick` is written again. `before[I]` says where the table was
      that I was joined to, so the pass down can take the joins apart in the opposite order.

    Invariant of the pass down: `wanted` of an entry that was reached is the number of entries that its set
    has after it.
    """
    owner, first_entry, previous = problem.owner, problem.first_entry, problem.previous
    m, entries = len(owner), len(advantage)
    start, low, count = np.zeros((3, entries + 1 + m), np.int64)
    room = 4 * (m + entries) + 1024
    loss, pick = np.empty(room), np.empty(room, np.int32)
    loss[0] = 0.0
    count[: entries + 1] = 1  # nothing is joined to an entry yet: no loss, at size 0, which all of them share
    before = np.zeros((m, 3), np.int64)  # the table that I was joined to, as it was before
    memorize = np.zeros(entries, np.bool_)
    used, choices = 1, 0
    for k in range(m - 1, -1, -1):
        if owner[k] != problem.player:
            continue
        table = entries + 1 + k
        best = 0.0  # what the best choice is worth more than stopping
        for e in range(first_entry[k], first_entry[k + 1]):
            best = max(best, advantage[e])
        # The sizes that are left, over all choices.
        least, largest = (0, 0) if best <= gap else (budget + 1, -1)
        left = int(best <= gap)
        for e in range(first_entry[k], first_entry[k + 1]):
            if best - advantage[e] <= gap:
                left += 1
                least = min(least, low[e + 1] + weight[k])
                largest = max(largest, min(low[e + 1] + count[e + 1] - 1 + weight[k], budget))
        choices += int(left > 1)
        width = largest - least + 1
        joined = previous[k] + 1
        needed = used + max(width, 0) * 2 + count[joined] + 1
        if needed > most:
            return _TOO_MANY, memorize, choices
        if needed > len(loss):
            more = 2 * needed - len(loss)
            loss = np.concatenate((loss, np.empty(more)))
            pick = np.concatenate((pick, np.empty(more, np.int32)))
        start[table], low[table], count[table] = used, least, max(width, 0)
        for size in range(least, largest + 1):
            loss[used] = best if size == 0 and best <= gap else np.inf
            pick[used] = -1
            for e in range(first_entry[k], first_entry[k + 1]):
                at = size - weight[k] - low[e + 1]
                if best - advantage[e] <= gap and 0 <= at < count[e + 1]:
                    here = best - advantage[e] + loss[start[e + 1] + at]
                    if here < loss[used]:
                        loss[used], pick[used] = here, e
            used += 1
        used = _trim(loss, start, low, count, table, gap)
        # Join it to what comes before.
        before[k, 0], before[k, 1], before[k, 2] = start[joined], low[joined], count[joined]
        width = min(low[joined] + count[joined] + low[table] + count[table] - 2, budget)
        width = max(width - low[joined] - low[table] + 1, 0)
        if count[joined] == 0 or count[table] == 0:
            width = 0
        for size in range(width):
            least_loss, picked = np.inf, -1
            for own in range(max(0, size - count[joined] + 1), min(size + 1, count[table])):
                here = loss[start[table] + own] + loss[start[joined] + size - own]
                if here < least_loss:
                    least_loss, picked = here, own
            loss[used + size], pick[used + size] = least_loss, low[table] + picked
        start[joined], low[joined], count[joined] = used, low[joined] + low[table], width
        used = _trim(loss, start, low, count, joined, gap)
    short, chosen = np.inf, -1
    for size in range(count[0]):
        here = loss[start[0] + size] + slope * (budget - low[0] - size)
        if here < short:
            short, chosen = here, low[0] + size
    if chosen < 0:
        return _NONE, memorize, choices
    # Sizes go down again: first to an entry, then from table to table, the one joined last first.
    wanted = np.zeros(entries + 1, np.int64)
    wanted[0] = chosen
    reached = np.zeros(entries + 1, np.bool_)
    reached[0] = True
    for k in range(m):
        joined = previous[k] + 1
        if owner[k] != problem.player or not reached[joined]:
            continue
        size = pick[start[joined] + wanted[joined] - low[joined]]
        wanted[joined] -= size
        start[joined], low[joined], count[joined] = before[k, 0], before[k, 1], before[k, 2]
        table = entries + 1 + k
        e = pick[start[table] + size - low[table]]
        if e >= 0:
            memorize[e] = True
            reached[e + 1], wanted[e + 1] = True, size - weight[k]
    return (_FITS if short <= gap else _NONE), memorize, choices


@kernel
def _trim(
    loss: np.ndarray, start: np.ndarray, low: np.ndarray, count: np.ndarray, table: int, gap: float
) -> int:
    """Takes sizes off both ends of the newest table whose loss is too large; returns where it ends."""
    while count[table] > 0 and loss[start[table] + count[table] - 1] > gap:
        count[table] -= 1
    while count[table] > 0 and loss[start[table]] > gap:
        start[table] += 1
        low[table] += 1
        count[table] -= 1
    return int(start[table] + count[table])


def truncation_loss(frontier: MemoryFrontier, utility: float, budget: float) -> float:
    """The most utility that a set of `budget` information states of the whole game can have more.

    A set of the game is one of the tree, of b information states, and k >= 1 others at and below what the
    tree cut, entries that cannot pay included; with a price per position, of so many positions.
    The former have at most the curve's utility at b. The latter add at most the tree's penalty each, or they
    would not have been cut, and together at most the reach of what was cut times the range of utilities.

    Args:
      frontier: of the tree.
      utility: of the best set within the budget on the tree.
      budget: the most information states, or positions.
    """
    decisions, sizes, penalty = frontier.decisions, frontier.sizes, frontier.penalty
    cut_worth = decisions.cut_reach * decisions.tree.utility_range
    if cut_worth <= 0.0 or budget == 0:
        return 0.0
    # The best k is 1, one beyond a size where the curve bends, or where the two bounds meet.
    meet = cut_worth / penalty if penalty > 0.0 and math.isfinite(penalty) else 1.0
    inner = sizes[sizes < budget]
    tried = np.unique(np.concatenate([[1.0, budget, min(max(meet, 1.0), budget)], budget - inner]))
    added = np.minimum(penalty * tried, cut_worth)
    return max(0.0, float((frontier.upper_bound(budget - tried) + added).max() - utility))
