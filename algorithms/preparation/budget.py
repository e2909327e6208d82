"""The best memorization set of at most B information states: a knapsack on a tree.

At the budgets where the memory frontier bends, its own sets are best. Between them a set is made of the
frontier's by adding blocks; what it falls short of the curve is the gap, and it settles most information
states: at the penalty lambda of the curve's slope at B, with V the best value, forcing I into the set (or out
of it) costs some loss, and a set with I in it has at most the utility V + lambda B - loss. Where the loss is
more than the gap, I is out (or in). Over what is left open, a forest, the knapsack is solved exactly: with
information states in preorder, D(k, b) the best utility of b more from the k-th on,

    D(k, b) = max( g(k) + D(k + 1, b - 1),  D(k + size of k's subtree, b) ).

Source: `precomputation`, footnote 3 ("a hard limit on the memorization set size").

Cost: the frontier's, and n B' for n information states left open and B' of the budget left for them; in bytes
n B' / 8 for decisions and 8 B' for each level of what is open. Often both are small; at worst n B' is m B.
"""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np

from .decisions import Decisions
from .frontier import MemoryFrontier

__all__ = ["BudgetChoice", "best_within_budget"]

_ROUNDING = 1e-11  # of the range of utilities: what sums of many gains may be off by
_MOST_OPEN = 2**33  # bits of decisions, a gigabyte


@dataclasses.dataclass(frozen=True, eq=False)
class BudgetChoice:
    """The best set within a budget, and how hard it was to find.

    Attributes:
      chosen: bool[m].
      utility: Of the set.
      slope: What the curve gives for one information state more.
      open: Information states that the bounds left open.
    """

    chosen: np.ndarray
    utility: float
    slope: float
    open: int


def best_within_budget(
    decisions: Decisions, frontier: MemoryFrontier, budget: int, caller: str
) -> BudgetChoice:
    """Solves the knapsack for `budget` >= 0 information states; `frontier` is that of the decisions."""
    gain, unprepared = decisions.gains()
    owner, previous, player = decisions.tree.infoset_player, decisions.tree.previous, decisions.player
    threshold, order = frontier.threshold, frontier.order
    chosen = np.zeros(len(owner), np.bool_)
    if len(order) <= budget:
        chosen[order] = True
        return BudgetChoice(chosen, unprepared + float(gain[order].sum()), 0.0, 0)
    slope = float(threshold[order[budget]])
    sure = order[threshold[order] > slope]
    chosen[sure] = True
    rest = order[threshold[order] <= slope]
    base = unprepared + float(gain[sure].sum())
    left = budget - len(sure)
    added = _fill(previous, gain, threshold, rest, chosen, left)
    gap = slope * left - added
    scale = max(1.0, float(np.abs(decisions.stop).sum() + np.abs(decisions.after).sum()))
    if gap <= _ROUNDING * scale:
        return BudgetChoice(chosen, base + added, slope, 0)
    state = np.zeros(len(owner), np.int8)
    count = _settle(owner, previous, player, gain, slope, gap + _ROUNDING * scale, state)
    spare = budget - int((state == 1).sum())
    fixed = state == 1
    free = np.flatnonzero(state == 2)
    if count * (spare + 1) > _MOST_OPEN:
        raise ValueError(
            f"{caller}: expected a budget at which less is left open than {count} information "
            f"states for {spare} places, got {budget}; {len(sure)} is one that the frontier has"
        )
    sequence, subtree, depth = _preorder(free.astype(np.int32), previous, len(owner))
    take = _knapsack(gain[sequence], subtree, depth, spare)
    fixed[sequence[take]] = True
    utility = unprepared + float(gain[fixed].sum())
    if utility < base + added:  # rounding alone
        return BudgetChoice(chosen, base + added, slope, count)
    return BudgetChoice(fixed, utility, slope, count)


@numba.njit(cache=True)
def _fill(
    previous: np.ndarray,
    gain: np.ndarray,
    threshold: np.ndarray,
    rest: np.ndarray,
    chosen: np.ndarray,
    left: int,
) -> float:
    """Adds to `chosen` from `rest` (falling thresholds) as far as `left` goes; what that adds to utility.

    Whole blocks first, the best ones that still fit; then single information states of positive gain.
    """
    block = np.full(len(previous), -1, np.int32)
    size = np.zeros(len(previous), np.int64)
    for k in rest:
        p = previous[k]
        block[k] = block[p] if p >= 0 and block[p] >= 0 and threshold[p] == threshold[k] else k
        size[block[k]] += 1
    added = 0.0
    for k in rest:
        first = block[k]
        if first == k:
            p = previous[k]
            if size[k] > left or not (p < 0 or chosen[p]):
                continue
            left -= size[k]
        elif not chosen[first]:
            continue
        chosen[k] = True
        added += gain[k]
    for k in rest:
        p = previous[k]
        if left > 0 and not chosen[k] and gain[k] > 0.0 and (p < 0 or chosen[p]):
            chosen[k] = True
            added += gain[k]
            left -= 1
    return added


@numba.njit(cache=True)
def _settle(
    owner: np.ndarray,
    previous: np.ndarray,
    player: int,
    gain: np.ndarray,
    slope: float,
    gap: float,
    state: np.ndarray,
) -> int:
    """Writes 1 into `state` where a best set must memorize, 2 where that is open; returns how many are."""
    m = len(gain)
    net = gain - slope  # value of memorizing I and the best after it, at the penalty `slope`
    for k in range(m - 1, -1, -1):
        if owner[k] == player and previous[k] >= 0 and net[k] > 0.0:
            net[previous[k]] += net[k]
    into, out = np.zeros(m), np.zeros(m)  # what forcing I into the set, or out of it, costs
    count = 0
    for k in range(m):
        if owner[k] != player:
            continue
        p = previous[k]
        into[k] = (into[p] if p >= 0 else 0.0) + max(0.0, -net[k])
        out[k] = max(0.0, net[k]) if p < 0 else min(out[p], max(0.0, net[k]))
        if out[k] > gap:
            state[k] = 1
        elif into[k] <= gap:
            state[k] = 2
            count += 1
    return count


@numba.njit(cache=True)
def _preorder(free: np.ndarray, previous: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`free` (increasing) in preorder, each one's subtree size there, and its depth among them."""
    n = len(free)
    place = np.full(m, -1, np.int32)
    for k in range(n):
        place[free[k]] = k
    size = np.ones(n, np.int32)
    for k in range(n - 1, -1, -1):
        p = previous[free[k]]
        if p >= 0 and place[p] >= 0:
            size[place[p]] += size[k]
    sequence, subtree = np.empty(n, np.int32), np.empty(n, np.int32)
    depth = np.zeros(n, np.int32)
    following = np.zeros(n, np.int32)  # where in preorder the next one after k begins
    deep = np.zeros(n, np.int32)
    start = 0
    for k in range(n):
        p = previous[free[k]]
        if p >= 0 and place[p] >= 0:
            at = following[place[p]]
            following[place[p]] += size[k]
            deep[k] = deep[place[p]] + 1
        else:
            at = start
            start += size[k]
        following[k] = at + 1
        sequence[at] = free[k]
        subtree[at] = size[k]
        depth[at] = deep[k]
    return sequence, subtree, depth


@numba.njit(cache=True)
def _knapsack(gain: np.ndarray, subtree: np.ndarray, depth: np.ndarray, budget: int) -> np.ndarray:
    """Which of the items, in preorder, are best: bool[n]."""
    n = len(gain)
    width = budget + 1
    deepest = 0
    for k in range(n):
        deepest = max(deepest, depth[k])
    skip = np.zeros((deepest + 1, width))  # at depth d: D behind the subtree of the last one of depth d
    row = np.zeros(width)  # D(k + 1, .)
    took = np.zeros((n, (width + 7) // 8), np.uint8)
    for k in range(n - 1, -1, -1):
        # What ends right here, at this depth or above the next one, is followed by `row`.
        if k == n - 1 or depth[k + 1] <= depth[k]:
            least = depth[k + 1] if k < n - 1 else 0
            for d in range(least, depth[k] + 1):
                skip[d] = row
        behind = skip[depth[k]]
        for b in range(width - 1, 0, -1):
            on = gain[k] + row[b - 1]
            if on > behind[b]:
                took[k, b >> 3] |= np.uint8(1 << (b & 7))
                row[b] = on
            else:
                row[b] = behind[b]
        row[0] = 0.0
    chosen = np.zeros(n, np.bool_)
    k, b = 0, budget
    while k < n and b > 0:
        if took[k, b >> 3] >> (b & 7) & 1:
            chosen[k] = True
            k += 1
            b -= 1
        else:
            k += subtree[k]
    return chosen


def truncation_loss(decisions: Decisions, frontier: MemoryFrontier, utility: float, budget: float) -> float:
    """At most so much more utility a set of `budget` information states of the whole game can have.

    A set of the game is one of the tree, of b information states, and k >= 1 others below what the tree cut.
    The former have at most the curve's utility at b. The latter add at most the tree's penalty each, or they
    would not have been cut, and together at most the reach of what was cut times the range of utilities.

    `frontier` is that of the decisions, `utility` that of the best set on the tree.
    """
    sizes, utilities, penalty = frontier.sizes, frontier.utilities, frontier.penalty
    cut_worth = decisions.cut_reach * decisions.tree.utility_range
    if cut_worth <= 0.0 or budget == 0:
        return 0.0
    # The best k is 1, one beyond a size where the curve bends, or where the two bounds meet.
    meet = cut_worth / penalty if penalty > 0.0 and math.isfinite(penalty) else 1.0
    inner = sizes[sizes < budget]
    tried = np.unique(np.concatenate([[1.0, budget, min(max(meet, 1.0), budget)], budget - inner]))
    added = np.minimum(penalty * tried, cut_worth)
    return max(0.0, float((np.interp(budget - tried, sizes, utilities) + added).max() - utility))
