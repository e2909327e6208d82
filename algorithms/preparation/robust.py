"""The memorization set that holds best against an opponent who is not quite the model.

A model of an opponent is a guess. With some probability s, its *contamination*, the opponent does not play as
the model does but anything, at each of its turns anew: nature chooses q = (1 - s) p + s r for any r, so that
the player who prepares gets least,

    rho(v) = (1 - s) p . v + s min v,

with v what follows each reply; after the player has stopped, too, wherever the tree has the opponent's turns.
The answer is the set with the largest utility against that, less its penalties.

Nature plays what the tree has as edges and nothing else, also where the model has p = 0. The replies that the
model may have missed are thus named when the tree is expanded. Either the opponent's policy gives each of
them a tiny probability, such as 1e-9 (above the tree's `min_probability`), with truncate="none"; or they are
what the opponent could memorize, at a penalty that is made infinite later:
`tree.with_penalties((penalty, math.inf))`.

Algorithm 1 does not find the set. Its recursion prices a memorized history by lambda over the reach of what
comes before; but nature's reach depends on what is memorized below, and dividing by the model's reach gives
other sets. So entries are counted, and priced at the root. Let Phi_h(n) be the most utility below history h
that nature cannot take away, where at most n entries at and below h are memorized, and everything before h
is. With W(h) for what stopping is worth:

    own turn          Phi_h(n) = max(W(h), max over entries e of the sum of sigma_pre Phi over what e plays,
                                     with n - 1 entries distributed over it)
    chance            the largest sum of p_a Phi_a(n_a)   over n_1 + n_2 + ... <= n
    opponent          the largest rho(Phi_1(n_1), Phi_2(n_2), ...) over the same

A table keeps the sizes at which it rises. With a price of lambda for each entry there is less to keep.
Whatever is memorized and whatever nature plays, Phi_h counts at the root with a factor of at most R_h, the
product of sigma_pre at own turns, p at chance's and (1 - s) p + s at the opponent's. So a size n with less of
Phi_h - n lambda / R_h than a smaller one does not pay anywhere, and is left out.

How many entries go where, over outcomes and replies, is a (max, +) convolution where nobody changes p. At the
opponent's turns it is one for each threshold m, over those n_a with Phi_a(n_a) >= m, to which s m is added:
no way to distribute is worth less than that, and with its own least value for m it is worth just that. Of two
thresholds the larger one leaves less to choose from, so what one convolution finds, with s times the largest
of a range of thresholds, bounds them all. Ranges are halved until none is left in which a size may gain.

Nature is the worst for a given set of entries. That is what a player meets who cannot hide the book.

Source: contamination is the model of restricted Nash responses (Johanson, Zinkevich and Bowling 2007, with a
share that depends on the information state: Johanson and Bowling 2009). Robust dynamic programs with a
rectangular set: Iyengar 2005, Nilim and El Ghaoui 2005; the sizes are ours.

Deviations: nature plays at the opponent's turns of the tree. What leaves are worth is given, and so is what
stopping is worth under stop_value="evaluate". A tree that was cut lacks what is rare by the model's reach;
only with truncate="none" the answer is that of the game.

Cost: for each two replies the product of the lengths of their tables, times the thresholds that are tried; 22
bytes for each size in a table. A tree like that of a chess opening, of 50,000 histories, takes 0.1 s for all
sizes up to 200.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.config import memory_limit
from precomp_games._support.kernels import kernel
from precomp_games._support.memory import size_text
from precomp_games._support.results import Result
from precomp_games.policies.rows import PolicyLike
from precomp_games.tree.facts import TreeArrays
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import (
    MemorizedState,
    MetaStrategy,
    PrecomputationPolicy,
    strategy_policy,
)

from .best_precomputation import memorized_states
from .decisions import Decisions

_BYTES = 22  # of a size in a table
_MOST_SIZES = 2**31 - 2**20
_TIE = 1e-14  # of the largest of the values that are compared: less is rounding


@dataclasses.dataclass(frozen=True, eq=False)
class RobustPrecomputation(Result):
    """The best set against the worst opponent around the model; utilities are `player`'s.

    Attributes:
      tree: The tree that was solved.
      player: 0 or 1.
      contamination: float64[n], s at the opponent's turns.
      penalty: lambda, what each entry costs; 0 where there was a budget.
      value: utility - penalty * paid, the most that any memorization set has.
      utility: The set's value against the worst of the opponents, without penalties.
      nominal: Its value against the model itself.
      unprepared: The value of no book against the worst opponent for that.
      size: |S|, with what is known already.
      paid: The number of entries that are paid for: `size` without what has weight 0.
      memorization_set: int32[size], entries, increasing.
      sizes: int64[k], the sizes at which the best utility rises, 0 first: all up to the budget; with a
        penalty those that are worth more at this penalty than all smaller ones, and so all that are best at a
        larger penalty.
      utilities: float64[k], the utility of the best set of each of these sizes.
      nature: float64[n], the worst opponent's probabilities of the edges from its turns; elsewhere they are
        the tree's sigma. Against it the set has its utility, and no opponent of the set leaves it less.
      budget: The budget that was given; None where the penalty counted.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    contamination: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    penalty: float
    value: float
    utility: float
    nominal: float
    unprepared: float
    size: int
    paid: int
    memorization_set: npt.NDArray[np.int32] = dataclasses.field(repr=False)
    sizes: npt.NDArray[np.int64] = dataclasses.field(repr=False)
    utilities: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    nature: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    budget: int | None = None

    def states(self) -> Iterator[MemorizedState]:
        """Yield the memorized states in the order of the tree, with reaches and gains against `nature`."""
        penalties = (self.penalty, math.inf) if self.player == 0 else (math.inf, self.penalty)
        tree = dataclasses.replace(self.tree, sigma=self.nature, penalties=penalties)
        yield from memorized_states(MetaStrategy.of_set(tree, self.player, self.memorization_set))

    @public
    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """Return a policy of the base game: the book where it reaches, sigma off it and for the opponent.

        Args:
          sigma: see `BestPrecomputation.policy`.

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        return strategy_policy(MetaStrategy.of_set(self.tree, self.player, self.memorization_set), sigma)


@public
def robust_precomputation(
    tree: HistoryTree,
    player: checks.Player,
    contamination: Any,
    *,
    budget: checks.NonNegativeInt | None = None,
) -> RobustPrecomputation:
    """Compute the memorization set of `player` with the greatest value against its worst opponent.

    Args:
      tree: of perfect information, on which only `player` memorizes: the opponent's penalty is infinite.
        Nature plays the edges that it has, so expand it with truncate="none", or with a small penalty, and
        with the replies that the model may have missed.
      player: 0 or 1, who prepares.
      contamination: with what probability the opponent plays anything, from 0 to 1: a number, float64[n] over
        the histories of the tree, of which those at the opponent's turns are read, or a function from a state
        at which the opponent is to move.
      budget: the most entries. None: each costs the tree's penalty.

    Raises:
      ValueError: information states have weights other than 0 and 1; the tables
        need more memory than there is.
    """
    if tree.infoset_keys is not None or math.isfinite(tree.penalties[1 - player]):
        raise ArgumentError(
            "expected a tree of perfect information with an infinite penalty for the opponent, who "
            f"memorizes nothing, got {tree}"
        )
    decisions = Decisions.against(tree, player)
    weight = decisions.counted_weights()
    share = contamination_at(tree, player, contamination)
    decides, nature = (tree.player == player) & (tree.infoset >= 0), np.array(tree.sigma)
    given = decides & (tree.stop_value == "evaluate")  # what stopping is worth there
    worth = _worst_values(tree.arrays, tree.sigma, given, player, tree.utility_sum, share, nature)
    penalty = tree.penalties[player] if budget is None else 0.0
    most = int(min(memory_limit() / _BYTES, _MOST_SIZES))
    fits, tables = _tables_of(
        tree.arrays, worth, weight, player, share,
        len(weight) if budget is None else min(budget, len(weight)), penalty, most,
    )  # fmt: skip
    if not fits:
        raise ArgumentError(
            f"expected tables that fit into {size_text(most * _BYTES)}, got more on {tree}: "
            "give a smaller budget, a larger penalty or a smaller tree"
        )
    whole = slice(tables.start[0], tables.start[0] + int(tables.length[0]))
    # With a penalty, what is kept rises in value; with a budget, in utility: the last is the best.
    members = np.flatnonzero(_chosen_entries(tree.arrays, weight, player, share, tables)).astype(np.int32)
    strategy = MetaStrategy.of_set(tree, player, members)
    given &= ~np.isin(tree.infoset, tree.entry_infoset[members])
    played = strategy.played.probability
    held = _worst_values(tree.arrays, played, given, player, tree.utility_sum, share, nature)
    utility, paid = float(held[0]), int(weight[tree.entry_infoset[members]].sum())
    return RobustPrecomputation(
        tree=tree,
        player=player,
        contamination=share,
        penalty=penalty,
        value=utility - penalty * paid if paid else utility,
        utility=utility,
        nominal=decisions.value(strategy.memorize, 0.0).value,
        unprepared=float(worth[0]),
        size=len(members),
        paid=paid,
        memorization_set=members,
        sizes=tables.size[whole].astype(np.int64),
        utilities=tables.utility[whole].copy(),
        nature=nature,
        budget=budget,
    )


def contamination_at(tree: HistoryTree, player: int, given: Any) -> npt.NDArray[np.float64]:
    """Return float64[n]: s at the turns of `player`'s opponent, 0 elsewhere.

    Raises:
      ValueError: it is none of what `robust_precomputation` takes.
    """
    turns = (tree.player == 1 - player) & (tree.num_children > 0)
    bounds: dict[str, Any] = {"least": 0.0, "most": 1.0}
    if isinstance(given, np.ndarray | Sequence):
        return checks.check_numbers(given, tree.num_histories, "contamination", which=turns, **bounds)
    if not callable(given):
        return np.where(turns, checks.check_number(given, "contamination", **bounds), 0.0)
    share = np.zeros(tree.num_histories)
    for history in np.flatnonzero(turns).tolist():
        state = tree.state(history)
        share[history] = checks.check_number(
            given(state), f"contamination at {state.history_str()!r}", **bounds
        )
    return share


@kernel
def _worst_values(
    tree: TreeArrays,
    played: np.ndarray,
    evaluated: np.ndarray,
    player: int,
    utility_sum: float,
    share: np.ndarray,
    nature: np.ndarray,
) -> np.ndarray:
    """Write nature, float64[n], the worst for the player; float64[n], what each history is worth then.

    Args:
      tree: of perfect information.
      played: float64[n], the edges' probabilities; the model's at the opponent's turns.
      evaluated: bool[n], where the tree's value stands for what follows.
      player: whose utility is meant.
      utility_sum: the tree's.
      share: float64[n], s.
      nature: the edges' probabilities; written at the opponent's.
    """
    n = len(tree.parent)
    worth, child = np.zeros(n), n
    for h in range(n - 1, -1, -1):
        k = tree.num_children[h]
        child -= k  # children stand in the order of their parents
        natures = tree.mover[h] == 1 - player
        if k == 0 or (evaluated[h] and not natures):
            worth[h] = tree.value[h] if player == 0 else utility_sum - tree.value[h]
            continue
        if natures:
            low = child + np.argmin(worth[child : child + k])
            for c in range(child, child + k):
                nature[c] = played[c] * (1.0 - share[h])
            nature[low] += share[h]
        for c in range(child, child + k):
            p = nature[c] if natures else played[c]
            if p > 0.0:
                worth[h] += p * worth[c]
    return worth


class _Tables(NamedTuple):
    """Phi of all histories, as sizes at which it rises.

    Attributes:
      start: int64[n], where the table of each begins.
      length: int32[n], how many sizes it has; the first is 0.
      size: int32[], what is memorized at most.
      utility: float64[], Phi.
      choice: int16[], at own turns the entry of the menu, -1 for stopping.
      least: float64[], what each reply has at least, as the sizes are distributed.
    """

    start: np.ndarray
    length: np.ndarray
    size: np.ndarray
    utility: np.ndarray
    choice: np.ndarray
    least: np.ndarray


class _Turn(NamedTuple):
    """A turn with k replies, short tables first.

    Attributes:
      share: s of the opponent's; 0 where nobody changes p.
      p: float64[k], the model's probabilities, or the entry's, or chance's.
      reply: int64[k], the histories.
      fixed: The tables of how many have one size.
      start: int64[k], where the tables begin in `size` and `utility`.
      length: int64[k], how many sizes they have.
      size: int32[], growing in each table from 0 on.
      utility: float64[], growing as well.
    """

    share: float
    p: np.ndarray
    reply: np.ndarray
    fixed: int
    start: np.ndarray
    length: np.ndarray
    size: np.ndarray
    utility: np.ndarray


@kernel
def _turn_at(tree: TreeArrays, share: float, own: bool, h: int, child: int, e: int, tables: _Tables) -> _Turn:
    """Return the turn of an entry, or of chance or nature, at a history; its children begin at `child`."""
    k, count = tree.num_children[h], 0
    reply, p = np.empty(k, np.int64), np.empty(k)
    for c in range(child, child + k):
        part = tree.sigma_pre[c] if own else tree.sigma[c]
        if own and len(tree.entry) > 0 and tree.entry[c] != e:
            part = 0.0
        if part > 0.0 or share > 0.0:
            reply[count], p[count] = c, part
            count += 1
    reply, p = reply[:count], p[:count]
    order = np.argsort(tables.length[reply], kind="mergesort")
    reply, p = reply[order], p[order]
    length = tables.length[reply].astype(np.int64)
    fixed = int(np.searchsorted(length, 2))
    return _Turn(share, p, reply, fixed, tables.start[reply], length, tables.size, tables.utility)


@kernel
def _worth(turn: _Turn, pick: np.ndarray, r: int) -> float:
    """Return the value of the turn with the rows that a convolution picks with r entries."""
    worth, least = 0.0, np.inf
    for a in range(len(turn.p)):
        row = turn.start[a] + pick[a, r]
        worth += turn.p[a] * turn.utility[row]
        least = min(least, turn.utility[row])
        r -= turn.size[row]
    return (1.0 - turn.share) * worth + turn.share * least


@kernel
def _thresholds(turn: _Turn, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[t], growing least values of all replies, and int64[width], the last for r entries.

    The first is what they are worth at least in any case.
    """
    last = np.zeros(width, np.int64)
    values, high = [np.min(turn.utility[turn.start])], np.min(turn.utility[turn.start + turn.length - 1])
    if turn.share > 0.0:
        for a in range(len(turn.p)):
            for row in range(turn.start[a], turn.start[a] + turn.length[a]):
                if values[0] < turn.utility[row] <= high:
                    values.append(turn.utility[row])
    levels = np.unique(np.array(values))
    for t in range(1, len(levels)):
        needed = 0
        for a in range(turn.fixed, len(turn.p)):
            part = turn.utility[turn.start[a] : turn.start[a] + turn.length[a]]
            needed += turn.size[turn.start[a] + np.searchsorted(part, levels[t])]
        if needed >= width:
            return levels[:t], last
        last[needed:] = t
    return levels, last


@kernel
def _convolve(turn: _Turn, least: float, wanted: np.ndarray, best: np.ndarray, pick: np.ndarray) -> None:
    """Write best[a, r], the most of (1 - s) p . v with r entries for replies from a on, and a's row in it.

    Args:
      turn: see there.
      least: rows that are worth less do not count.
      wanted: bool[width], the numbers of entries for all replies that matter; -inf is written for the others.
      best: float64[k + 1, width], of which nothing is written for replies whose tables have one size.
      pick: int64[k, width].
    """
    k, width, fixed = len(turn.p), len(wanted), turn.fixed
    constant = 0.0
    for a in range(fixed):
        constant += (1.0 - turn.share) * turn.p[a] * turn.utility[turn.start[a]]
    best[:k], best[k], pick[:] = -np.inf, constant, 0
    first, needed, most = np.zeros(k, np.int64), 0, 0  # rows, and the entries that these take
    for a in range(fixed, k):
        first[a] = np.searchsorted(turn.utility[turn.start[a] : turn.start[a] + turn.length[a]], least)
        needed += turn.size[turn.start[a] + first[a]]
    for r in range(width):
        if wanted[r]:
            most = r
    room = most - needed
    needed = 0
    for a in range(k - 1, fixed - 1, -1):
        part, begin = (1.0 - turn.share) * turn.p[a], turn.start[a]
        needed += turn.size[begin + first[a]]
        if a == k - 1:  # with nothing to share with, a row serves up to the next one
            for row in range(first[a], turn.length[a]):
                best[a, turn.size[begin + row] :] = part * turn.utility[begin + row] + constant
                pick[a, turn.size[begin + row] :] = row
            continue
        for r in range(needed, needed + room + 1):
            if a > fixed or wanted[r]:
                for row in range(first[a], turn.length[a]):
                    if turn.size[begin + row] > r:
                        break
                    here = part * turn.utility[begin + row] + best[a + 1, r - turn.size[begin + row]]
                    if here > best[a, r]:
                        best[a, r], pick[a, r] = here, row


@kernel
def _distribute(turn: _Turn, width: int, price: float) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[width]: the values of at most 0, 1, ... entries, and float64[width]: their thresholds.

    A size that is not worth the price for each entry more than a smaller one may be left out.
    """
    best, least = np.full(width, -np.inf), np.full(width, -np.inf)
    pick = np.zeros((len(turn.p), width), np.int64)
    if turn.fixed == len(turn.p):
        best[0] = _worth(turn, pick, 0)
        return best, least
    levels, last = _thresholds(turn, width)
    found = np.empty((len(turn.p) + 1, width))
    wanted, largest = np.empty(width, np.bool_), np.max(np.abs(turn.utility[turn.start]))
    # Ranges of thresholds that may gain something, with what was found at one below, which bounds them all.
    waiting = [(0, len(levels) - 1, np.full(width, np.inf))]
    while len(waiting) > 0:
        low, high, bound = waiting.pop()
        pays = -np.inf
        for r in range(width):
            pays = max(pays, best[r] - price * r)
            here = bound[r] + turn.share * levels[min(high, last[r])]
            wanted[r] = last[r] >= low and here > max(best[r], pays + price * r) + _TIE * largest
        if low > high or not wanted.any():
            continue
        _convolve(turn, levels[low], wanted, found, pick)
        for r in range(width):
            if wanted[r]:
                here = _worth(turn, pick, r)
                if here > best[r]:
                    best[r], least[r] = here, levels[low]
        bound = np.where(wanted, found[turn.fixed], -np.inf)
        middle = (low + high) // 2 + 1
        waiting.append((low + 1, middle - 1, bound))
        waiting.append((middle, high, bound))
    return best, least


@kernel
def _tables_of(
    tree: TreeArrays,
    worth: np.ndarray,
    weight: np.ndarray,
    player: int,
    share: np.ndarray,
    budget: int,
    penalty: float,
    most: int,
) -> tuple[bool, _Tables]:
    """Return whether the tables have at most `most` sizes, and the tables of all histories.

    Args:
      tree: see there.
      worth: float64[n], the value of stopping.
      weight: int64[m], 0 or 1 entries to count for each information state.
      player: the player who prepares.
      share: float64[n], s.
      budget: the largest size.
      penalty: sizes that do not pay at this price for each entry are left out.
      most: sizes that there is room for.
    """
    n = len(tree.parent)
    price = np.full(n, penalty)  # lambda / R
    for h in range(1, n):
        before = tree.parent[h]
        part = (1.0 - share[before]) * tree.sigma[h] + share[before]
        if tree.mover[before] == player:
            part = tree.sigma_pre[h] if tree.infoset[before] >= 0 else 0.0
        price[h] = price[before] / part if part > 0.0 else np.inf
    room, used, child = 4 * n + 1024, 0, n
    start, length = np.zeros(n, np.int64), np.ones(n, np.int32)
    size, choice = np.zeros(room, np.int32), np.full(room, -1, np.int16)
    utility, least = np.empty(room), np.empty(room)
    tables = _Tables(start, length, size, utility, choice, least)
    for h in range(n - 1, -1, -1):
        k = tree.num_children[h]
        child -= k
        own = tree.mover[h] == player
        entries, own_weight = 1, 0
        if own:  # where it has stopped by then, there are none
            infoset = tree.infoset[h]
            entries = tree.first_entry[infoset + 1] - tree.first_entry[infoset] if infoset >= 0 else 0
            own_weight = weight[infoset] if infoset >= 0 else 0
        # How wide the table can be at most.
        width = 1 + own_weight
        for c in range(child, child + k):
            width += size[start[c] + length[c] - 1]
        width = min(width, budget + 1)
        if used + width + 1 > most:
            return False, tables
        if used + width > len(size):
            more = 2 * (used + width) - len(size)
            size = np.concatenate((size, np.empty(more, np.int32)))
            choice = np.concatenate((choice, np.empty(more, np.int16)))
            utility = np.concatenate((utility, np.empty(more)))
            least = np.concatenate((least, np.empty(more)))
            tables = _Tables(start, length, size, utility, choice, least)
        start[h] = used
        size[used], utility[used], choice[used] = 0, worth[h], -1
        if k == 0 or entries == 0 or width <= own_weight or price[h] == np.inf:
            used += 1
            continue
        best, which, at_least = np.full(width, -np.inf), np.full(width, -1, np.int16), np.empty(width)
        if own:
            best[:] = worth[h]
        for e in range(entries):
            turn = _turn_at(tree, share[h], own, h, child, e, tables)
            below = 1
            for a in range(turn.fixed, len(turn.p)):
                below += size[turn.start[a] + turn.length[a] - 1]
            below = min(width - own_weight, below)
            found, levels = _distribute(turn, below, price[h])
            for r in range(below):
                if found[r] > best[r + own_weight]:
                    best[r + own_weight], which[r + own_weight] = found[r], e
                    at_least[r + own_weight] = levels[r]
        # What is kept of it: where it rises, and pays.
        largest = 0.0
        for r in range(width):
            if best[r] > -np.inf:
                largest = max(largest, abs(best[r]))
        last, length[h] = -np.inf, 0
        for r in range(width):
            if length[h] == 0 or best[r] - price[h] * r > last + _TIE * largest:
                size[used], utility[used], choice[used], least[used] = r, best[r], which[r], at_least[r]
                last = best[r] - price[h] * r
                length[h] += 1
                used += 1
    return True, tables


@kernel
def _chosen_entries(
    tree: TreeArrays, weight: np.ndarray, player: int, share: np.ndarray, tables: _Tables
) -> np.ndarray:
    """Return bool[E]: the entries of the set that the root's table has last."""
    n = len(tree.parent)
    memorized = np.zeros(tree.first_entry[-1], np.bool_)
    rows, child = np.full(n, -1, np.int64), 1
    rows[0] = tables.length[0] - 1
    for h in range(n):
        at, own = tables.start[h] + rows[h], tree.mover[h] == player
        if rows[h] >= 0 and tree.num_children[h] > 0 and tables.choice[at] >= 0:
            count = tables.size[at]
            if own:
                count -= weight[tree.infoset[h]]
                memorized[tree.first_entry[tree.infoset[h]] + tables.choice[at]] = True
            turn = _turn_at(tree, share[h], own, h, child, int(tables.choice[at]), tables)
            wanted = np.arange(count + 1) == count
            found, pick = np.empty((len(turn.p) + 1, count + 1)), np.empty((len(turn.p), count + 1), np.int64)
            _convolve(turn, tables.least[at], wanted, found, pick)
            for a in range(len(turn.p)):
                rows[turn.reply[a]] = pick[a, count]
                count -= tables.size[turn.start[a] + pick[a, count]]
        child += tree.num_children[h]
    return memorized
