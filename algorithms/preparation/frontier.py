"""The value of memory: the best memorization sets for all penalties at once, and for each budget.

Utility is additive over a memorization set in the gains g(I) of `Decisions`, and a set holds with I all of
the player's information states before it. So where menus have one entry, the sets that are best for a penalty
shrink as it grows: each I has one threshold theta(I), and {I: theta(I) > lambda} is the smallest set that is
best at lambda. Thresholds are the isotonic regression of g along the tree, the least-squares fit that does
not grow from an information state to those after it. They come from the leaves up: a block takes in, the
largest first, those blocks right after it whose mean gain is greater than its own; blocks after a block are
kept in a mergeable heap (a skew heap). CART's weakest-link pruning finds the same numbers from the root down.

Information states that are known already, of weight 0, add nothing to sizes. They are in all of these sets
where they pay.

With menus, choices switch with lambda: one entry worth 0.10 with one information state beats one worth 0.16
with three at lambda = 0.04 and loses at 0.02. Then sets need not nest, and no information state has one
threshold. The value of the best set still is a convex, piecewise linear function of lambda. Its bends are
found by solving where two known lines meet: either these are neighbors, or the set that is best there gives
a line between them.

The curve of utility against size through these sets is concave, and lies above the utility of every set.

**Budgets.** The best set of at most B entries is a knapsack on a tree. At the sizes where the memory frontier
bends, its own sets are best. Between two of them, let lambda be the slope of the curve at B, and let v(I) be
the value of information state I by Algorithm 1 at that penalty. A set of k entries falls short of the curve
by lambda (B - k), plus the sum of what each of its choices loses:

    v(I) - stop(I)          at an information state where it stops,
    v(I) - memorize(e)      at one where it memorizes e.

So the program looks for the least loss at each size, L(I, k). It is the loss of stopping, where k = 0, or the
loss of an entry plus the least loss of distributing k - 1 over the information states right after that entry
(a min-plus convolution). Where I is known already and costs nothing, all k are distributed.

A choice that loses more than the best set falls short cannot be part of it, and most choices do. How far the
best set falls short is not known before, so it is guessed. If no set falls short by at most the guess, the
guess was too small and is multiplied.

Source: `precomputation`, Algorithm 1 and footnote 3 ("a hard limit on the memorization set size"). Isotonic
regression on a rooted tree: Pardalos and Xue 1999; skew heaps: Sleator and Tarjan 1986; bends at the
intersections of known lines: Eisner and Severance 1976.

Cost: a pass down the tree and one back; O(m log m) for m information states. With menus, two passes over the
entries for each bend. A budget takes a pass over the entries for each guess as well, and the convolutions of
what is left, m B at worst, with 12 bytes for each size that is left of each information state and each entry.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Axes, Result, axes_of
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, realization_plan

from .decisions import Decisions, StrategyValue, Treeplex
from .position_prices import PricedForest, closure_frontier

_ROUNDING = 1e-14  # of the sum of all utilities: lines that lie closer together are one
_SUMS = 1e-11  # of the sum of all utilities: what sums of many gains may be off by
_MOST_OPEN = 2**27  # 1.6 GB
_FIRST_GUESS, _GROWTH = 2.0**-8, 4.0


@dataclasses.dataclass(frozen=True, eq=False)
class FrontierPoint(Result):
    """The best memorization set at one penalty, and the smallest one where several are best.

    Attributes:
      penalty: lambda.
      value: utility - penalty * size.
      utility: The utility of playing it, without penalties.
      size: |S|; with a price per position, how many positions S has. What is known already does not count.
      memorization_set: int32[|S|], entries, increasing.
    """

    penalty: float
    value: float
    utility: float
    size: int
    memorization_set: np.ndarray = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryFrontier(Result):
    """The best sets of `player` for every penalty; utilities are its own, penalties aside.

    With a price per position, sizes are in positions, and the curve ends at the tree's penalty.

    Attributes:
      decisions: Whose sets these are, and what everything is worth.
      penalty: The tree's lambda, from which on the curve is that of the game. Below it, what the tree left
        out may be worth memorizing, and the curve is that of the tree alone.
      threshold: float64[m], the penalty at which an information state leaves the best set; NaN at the other
        player's. Only I with a positive one are ever in it. None where there are menus of several entries.
      breakpoints: float64[k], the penalties at which the best set changes, falling.
      sizes: int64[k + 1], the size of the best set that costs nothing, 0, and of the best set just below each
        breakpoint.
      utilities: float64[k + 1], the utilities of the same sets. Between two of them, the curve is a straight
        line with the breakpoint as its slope.
    """

    decisions: Decisions = dataclasses.field(repr=False)
    penalty: float
    threshold: np.ndarray | None = dataclasses.field(repr=False)
    breakpoints: np.ndarray = dataclasses.field(repr=False)
    sizes: np.ndarray
    utilities: np.ndarray

    @property
    def tree(self) -> HistoryTree:
        """The tree that the frontier was computed on."""
        return self.decisions.tree

    @property
    def player(self) -> int:
        """0 or 1."""
        return self.decisions.player

    @property
    def shared(self) -> npt.NDArray[np.int64] | None:
        """int64[m], equal where information states share one price; None: each has its own."""
        return self.decisions.shared

    @property
    def unprepared(self) -> float:
        """Utility of memorizing nothing that costs something."""
        return float(self.utilities[0])

    @functools.cached_property
    def exact_size(self) -> int:
        """The size up to which the curve is that of the game and not only of the tree."""
        return int(self.sizes[self._index(self.penalty)])

    @public
    def at(self, penalty: Annotated[float, checks.INFINITE]) -> FrontierPoint:
        """Return the best set at a penalty.

        Raises:
          ValueError: it is smaller than the tree's own, for which histories were left out.
        """
        if penalty < self.penalty:
            raise ArgumentError(
                f"expected a penalty of at least {self.penalty}, for which the tree was "
                f"expanded, got {penalty!r}"
            )
        k = self._index(penalty)
        size, utility = int(self.sizes[k]), float(self.utilities[k])
        return FrontierPoint(
            penalty=penalty,
            value=utility - penalty * size if size else utility,
            utility=utility,
            size=size,
            memorization_set=np.flatnonzero(self.memorize(k)).astype(np.int32),
        )

    @public
    def memorize(self, k: int) -> npt.NDArray[np.float64]:
        """Return float64[E], zeros and ones: the set of sizes[k], as a strategy.

        Raises:
          ValueError: there is no such number.
        """
        k = checks.check_integer(k, "k", least=0, most=len(self.sizes) - 1)
        below = float(self.breakpoints[k]) if k < len(self.breakpoints) else 0.0
        if self.threshold is not None:
            forest = self.decisions.forest
            memorize = np.zeros(forest.num_entries)
            memorize[forest.first_entry[:-1][self.threshold > below]] = 1.0
            return memorize
        # Between two bends; at a bend itself, rounding chooses.
        above = float(self.breakpoints[k - 1]) if k else 3.0 * below + 1.0
        best = self.decisions.best((below + above) / 2.0)
        return realization_plan(self.decisions.forest, best.memorize)

    @public
    def upper_bound(self, size: Any) -> npt.NDArray[np.float64]:
        """Return the curve at sizes: more utility than this no set of that size on the tree has.

        Args:
          size: sizes of at least 0, a real number or an array of them.

        Raises:
          ValueError: a size is none.
        """
        try:
            sizes = np.asarray(size)
        except ValueError:
            sizes = np.empty(0, object)
        if sizes.dtype.kind not in "iuf" or not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise ArgumentError(f"expected sizes to be numbers of at least 0, got {shown(size)}")
        bounds: npt.NDArray[np.float64] = np.interp(sizes, self.sizes, self.utilities)
        if self.shared is not None:  # beyond its end, the curve is no steeper than the penalty
            bounds = bounds + self.penalty * np.maximum(sizes - self.sizes[-1], 0)
        return bounds

    def columns(self) -> dict[str, Any]:
        """Return a row for each best set: its size, its utility, and how much each of its last ones adds."""
        worth = np.append(math.nan, self.breakpoints)
        return {"size": self.sizes, "utility": self.utilities, "worth_of_one": worth}

    @public
    def plot(self, axes: Axes = None, *, most: checks.NonNegativeFloat | None = None) -> Any:
        """Draw the utility of the best sets against their sizes, dotted where it is of the tree alone.

        Args:
          axes: matplotlib's, to draw on; None: those of a new figure.
          most: the largest size to draw; None: that of the largest set.

        Returns:
          The axes.
        """
        axes = axes_of(axes)
        right = float(self.sizes[-1]) if most is None else most
        exact = self.sizes <= self.exact_size
        beyond = np.append(self.sizes[self.sizes >= self.exact_size], right)
        axes.plot(self.sizes[exact], self.utilities[exact], "C0-", lw=2.0, label="no book has more")
        if right > self.exact_size:
            label = "the same, of what was looked at alone"
            axes.plot(beyond, self.upper_bound(beyond), "C0:", lw=1.5, label=label)
        axes.set(xlabel="size", ylabel="utility", xlim=(0.0, max(right, 1.0)))
        axes.legend(loc="lower right")
        return axes

    def _index(self, penalty: float) -> int:
        """Return the number of breakpoints above a penalty."""
        return len(self.breakpoints) - int(np.searchsorted(self.breakpoints[::-1], penalty, side="right"))


@public
def memory_frontier(
    tree: HistoryTree,
    player: checks.Player,
    *,
    price: Any = "infosets",
    keep: npt.ArrayLike | None = None,
    opponent: MetaStrategy | None = None,
) -> MemoryFrontier:
    """Compute the best memorization sets of `player` for all penalties that a tree serves.

    Args:
      tree: expanded with a finite penalty for `player`.
      player: 0 or 1.
      price: what is paid for, see `best_precomputation`. Per position there is a frontier where menus have
        one entry, and from the tree's penalty upwards.
      keep: the entries known already, see there. The sets of the frontier are what there is beside it.
      opponent: the other player's strategy in the meta-game: a `MetaStrategy` on this tree, for instance one
        side of an equilibrium. None: it plays its sigma and memorizes nothing.
    """
    decisions = Decisions.against(tree, player, opponent, price=price, keep=keep)
    if decisions.shared is not None and decisions.has_choice:
        raise ArgumentError(
            "expected menus of one entry with a price per position, got a tree with choices, on "
            "which best sets do not nest; best_precomputation() solves for one penalty, or one budget"
        )
    return frontier_of(decisions)


def frontier_of(decisions: Decisions) -> MemoryFrontier:
    """Return `memory_frontier` on decisions."""
    penalty = decisions.forest.penalties[decisions.player]
    weight = decisions.counted_weights()
    if decisions.shared is not None:
        forest, own = PricedForest.of_decisions(decisions)
        threshold = np.full(decisions.forest.num_infosets, np.nan)
        threshold[own], breakpoints, sizes, gains = closure_frontier(forest, penalty)
        utilities = decisions.gains()[1] + gains
        return MemoryFrontier(decisions, penalty, threshold, breakpoints, sizes, utilities)
    if decisions.has_choice:
        return MemoryFrontier(decisions, penalty, None, *_envelope(decisions, weight))
    return MemoryFrontier(decisions, penalty, *_nested_curve(decisions, weight))


_Floats = npt.NDArray[np.float64]
_Curve = tuple[_Floats, npt.NDArray[np.int64], _Floats]
"""(breakpoints, sizes, utilities) of a `MemoryFrontier`."""


def _nested_curve(decisions: Decisions, weight: npt.NDArray[np.int64]) -> tuple[_Floats, *_Curve]:
    """Return (threshold, breakpoints, sizes, utilities) where menus have one entry, and sets are nested."""
    forest = decisions.forest
    gains, unprepared = decisions.gains()
    threshold, gain = np.full(forest.num_infosets, np.nan), gains[forest.first_entry[:-1]]
    _thresholds(decisions.treeplex, decisions.previous_infoset, weight, gain, threshold)
    free = threshold == math.inf
    unprepared += float(gain[free].sum())
    wanted = np.flatnonzero((threshold > 0.0) & ~free)
    # A stable sort leaves an information state after its previous one.
    order = wanted[np.argsort(-threshold[wanted], kind="stable")]
    ranked = threshold[order]
    last = np.flatnonzero(np.diff(ranked, append=-math.inf) < 0.0)
    sizes = np.append(0, np.cumsum(weight[order])[last])
    utilities = np.append(unprepared, (unprepared + np.cumsum(gain[order]))[last])
    return threshold, ranked[last], sizes, utilities


def _envelope(decisions: Decisions, weight: npt.NDArray[np.int64]) -> _Curve:
    """Return the curve where choices switch."""
    problem = decisions.treeplex
    most = float(np.abs(decisions.stop).sum() + np.abs(decisions.after).sum())
    scale = _ROUNDING * most
    known = [_best_line(problem, weight, 4.0 * most)]  # a penalty that nothing is worth
    waiting = [_best_line(problem, weight, 0.0)]
    while waiting:
        (size, utility), (more, best) = known[-1], waiting[-1]
        if more > size:
            penalty = (best - utility) / (more - size)
            between, reached = _best_line(problem, weight, penalty)
            if size < between < more and reached - penalty * between > utility - penalty * size + scale:
                waiting.append((between, reached))
                continue
            if penalty > 0.0:
                known.append((more, best))
        waiting.pop()
    sizes, utilities = np.array([k for k, _ in known]), np.array([u for _, u in known])
    return np.diff(utilities) / np.diff(sizes), sizes, utilities


@kernel
def _best_line(problem: Treeplex, weight: np.ndarray, penalty: float) -> tuple[int, float]:
    """Return (size, utility) of the best set at a penalty, the smallest where several are best."""
    first_entry, previous = problem.first_entry, problem.previous
    utility, size = problem.after.copy(), np.zeros(len(problem.after), np.int64)
    for k in range(len(previous) - 1, -1, -1):
        if problem.owner[k] != problem.player:
            continue
        most, reached, count = problem.stop[k], problem.stop[k], 0
        for e in range(first_entry[k], first_entry[k + 1]):
            paid = size[e + 1] + weight[k]
            value = utility[e + 1] - penalty * paid
            if value > most or (value == most and paid < count):
                most, reached, count = value, utility[e + 1], paid
        utility[previous[k] + 1] += reached
        size[previous[k] + 1] += count
    return size[0], utility[0]


@kernel
def _meld(one: int, two: int, mean: np.ndarray, left: np.ndarray, right: np.ndarray, path: np.ndarray) -> int:
    """Meld two skew heaps, the greatest mean on top; -1 is the empty heap. `path` is scratch."""
    depth = 0
    while one >= 0 and two >= 0:
        if mean[one] < mean[two]:
            one, two = two, one
        path[depth] = one
        depth += 1
        one = right[one]
    rest = one if one >= 0 else two
    for k in range(depth - 1, -1, -1):
        top = path[k]
        right[top] = left[top]
        left[top] = rest
        rest = top
    return rest


@kernel
def _mean(total: float, size: int) -> float:
    """Return the gain of a block by its size; of one that costs nothing, infinitely much or little."""
    if size == 0:
        return np.inf if total > 0.0 else -np.inf
    return total / size


@kernel
def _thresholds(
    problem: Treeplex, previous: np.ndarray, weight: np.ndarray, gain: np.ndarray, threshold: np.ndarray
) -> None:
    """Write `MemoryFrontier.threshold` of the player's; `previous` is of information states."""
    owner, player = problem.owner, problem.player
    m = len(gain)
    mean, total, size = np.empty(m), gain.copy(), weight.copy()  # of the block that begins at I
    left, right = np.full(m, -1, np.int32), np.full(m, -1, np.int32)
    after = np.full(m, -1, np.int32)  # the heap of the blocks right after the block that begins at I
    into = np.full(m, -1, np.int32)  # the block that took in the one that began at I
    path = np.empty(m, np.int32)
    for k in range(m - 1, -1, -1):
        if owner[k] != player:
            continue
        mean[k] = _mean(total[k], size[k])
        while after[k] >= 0 and mean[after[k]] > mean[k]:
            top = after[k]
            total[k] += total[top]
            size[k] += size[top]
            mean[k] = _mean(total[k], size[k])
            into[top] = k
            rest = _meld(left[top], right[top], mean, left, right, path)
            after[k] = _meld(rest, after[top], mean, left, right, path)
        if previous[k] >= 0:
            after[previous[k]] = _meld(after[previous[k]], k, mean, left, right, path)
    for k in range(m):
        if owner[k] == player:
            threshold[k] = mean[k] if into[k] < 0 else threshold[into[k]]


@dataclasses.dataclass(frozen=True, eq=False)
class BudgetChoice:
    """The best set within a budget.

    Attributes:
      chosen: bool[E].
      utility: Of the set; where it is the frontier's own, as the curve has it.
      played: Its value without penalties, and at each information state.
      best: Algorithm 1's result at the slope of the curve, by which alternatives are compared.
      open: Information states at which more than one choice could matter; 0 where the set is the frontier's
        own.
    """

    chosen: np.ndarray
    utility: float
    played: StrategyValue
    best: StrategyValue
    open: int


def best_within_budget(frontier: MemoryFrontier, budget: int) -> BudgetChoice:
    """Return the best set of at most `budget` >= 0 entries for the decisions of a frontier.

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
    widest = slope * float(budget - sizes[below]) + _SUMS * scale
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
    """Return (whether a set is within `gap` of the curve, the best such one, `BudgetChoice.open`).

    A table has the least loss at each size, and what was picked for it. Table 0 belongs to what comes before
    the first information states, table e + 1 to entry e, and table E + 1 + I to information state I. Tables
    stand one after the other in `loss` and `pick`; `start`, `low` and `count` give where a table begins, its
    least size, and how many sizes it has.

    Invariants of the pass up, which goes through information states from the last to the first:

    - Once I is done, table E + 1 + I has the least loss of each size up to `budget` over all choices at I and
      after it, wherever that is at most `gap`. Elsewhere it has some loss above `gap`; at both ends of the
      table, such sizes are cut off.
    - At each time, table e + 1 has the least loss of distributing each size over those information states
      right after e that are done. It is complete when the information state of e is next, because what
      comes after an entry has larger numbers.
    - Nothing that was written into `loss` and `pick` is written again. `before[I]` gives where the table was
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
    """Take sizes off both ends of the newest table whose loss is too large; return where it ends."""
    while count[table] > 0 and loss[start[table] + count[table] - 1] > gap:
        count[table] -= 1
    while count[table] > 0 and loss[start[table]] > gap:
        start[table] += 1
        low[table] += 1
        count[table] -= 1
    return int(start[table] + count[table])


def truncation_loss(frontier: MemoryFrontier, utility: float, budget: float) -> float:
    """Return the most utility that a set of `budget` information states of the whole game can have more.

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
