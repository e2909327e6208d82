"""The most robust utility below each history for each number of memorized entries, by recursion.

Let Phi_h(n) be the most utility below history h that nature cannot take away, where at most n entries at and
below h are memorized, and everything before h is. With W(h) for what stopping is worth:

    own turn          Phi_h(n) = max(W(h), max over entries e of the sum of sigma_pre Phi over what e plays,
                                     with n - 1 entries distributed over it)
    chance            the largest sum of p_a Phi_a(n_a)   over n_1 + n_2 + ... <= n
    opponent          the largest rho(Phi_1(n_1), Phi_2(n_2), ...), nature's minimum, over the same

A table keeps the sizes at which it rises. How many go where, over replies and outcomes, is the search of
`robust_turns`. Where it was stopped, what its utilities may lack goes up the tree: nature's minimum moves by
no more than its arguments do.

With a price of lambda for each entry, a size n with less of Phi - lambda n than a smaller one is left out:
nature's reach is 1 at most, so it does not pay anywhere.

Source: the robust recursion over states is Iyengar's and Nilim and El Ghaoui's (2005); the sizes are ours.

Cost: see `robust_turns`; 14 bytes for each size in a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import TreeArrays

from .ambiguity import DIVERGENCE, worst_reply
from .robust_turns import LINEAR, TIE, Turn, distribute


class Tables(NamedTuple):
    """Phi of all histories, as sizes at which it rises.

    Attributes:
      start: int64[n], where the table of each begins.
      length: int32[n], how many sizes it has; the first is 0.
      size: int32[], what is memorized at most. utility: float64[], Phi.
      choice: int16[], at own turns the entry of the menu, -1 for stopping.
      share: int64[n], where for each size in the parent's table it says which of its own this child has.
      picked: int32[], what it says.
      gap: float64[n], how much less than Phi some utility may be, where a search was stopped.
    """

    start: np.ndarray
    length: np.ndarray
    size: np.ndarray
    utility: np.ndarray
    choice: np.ndarray
    share: np.ndarray
    picked: np.ndarray
    gap: np.ndarray


@kernel
def _is_open(p: float, radius: float, kind: int) -> bool:
    """Whether an edge after a chance node, where the radius is 0, or the opponent's turn may be played."""
    return p > 0.0 or (radius > 0.0 and kind != DIVERGENCE)


@kernel
def stopped_worth(
    tree: TreeArrays,
    played: np.ndarray,
    evaluated: np.ndarray,
    player: int,
    utility_sum: float,
    kind: int,
    radius: np.ndarray,
    nature: np.ndarray,
) -> np.ndarray:
    """float64[n]: what each history is worth if the player plays `played`, and nature what is worst for that.

    Args:
      tree: see there.
      played: float64[n], the edges' probabilities; the model's at the opponent's turns.
      evaluated: bool[n], where the tree's value stands for what follows.
      player: whose utility is meant.
      utility_sum: of the game.
      kind: of the set.
      radius: float64[n].
      nature: float64[n]; nature's probabilities are written into it, at the opponent's turns.
    """
    n = len(tree.parent)
    worth, child = np.zeros(n), n
    for h in range(n - 1, -1, -1):
        k = tree.num_children[h]
        child -= k  # children stand in the order of their parents
        if k == 0 or evaluated[h]:
            worth[h] = tree.value[h] if player == 0 else utility_sum - tree.value[h]
        if k == 0:
            continue
        part = slice(child, child + k)
        if tree.mover[h] == 1 - player:
            worth[h] = worst_reply(kind, radius[h], played[part], worth[part], nature[part])
        elif not evaluated[h]:
            for c in range(child, child + k):
                if played[c] > 0.0:
                    worth[h] += played[c] * worth[c]
    return worth


@kernel
def _grown(array: np.ndarray, room: int) -> np.ndarray:
    """The same with more room behind."""
    larger = np.empty(room, array.dtype)
    for k in range(len(array)):
        larger[k] = array[k]
    return larger


@kernel
def tables_of(
    tree: TreeArrays,
    played: np.ndarray,
    worth: np.ndarray,
    weight: np.ndarray,
    player: int,
    kind: int,
    radius: np.ndarray,
    budget: int,
    penalty: float,
    most: int,
    steps: int,
) -> tuple[bool, Tables]:
    """Whether they have at most `most` sizes, and the tables of all histories.

    Args:
      tree: see there.
      played: float64[n], the edges' probabilities where the player has stopped; the model's.
      worth: float64[n], what stopping is worth.
      weight: int64[m], 0 or 1 entries to count for each information state.
      player: who prepares.
      kind: of the set.
      radius: float64[n].
      budget: the largest size.
      penalty: sizes that do not pay at this price for each entry are left out.
      most: sizes that there is room for.
      steps: of the search at each turn; what it leaves is in `Tables.gap`.
    """
    n = len(tree.parent)
    start, count, share = np.zeros(n, np.int64), np.ones(n, np.int32), np.zeros(n, np.int64)
    gap = np.zeros(n)
    room = 4 * n + 1024
    size, utility, choice = np.zeros(room, np.int32), np.empty(room), np.full(room, -1, np.int16)
    picked = np.zeros(room, np.int32)
    used, given, child = 0, 0, n
    menus = len(tree.entry) > 0
    for h in range(n - 1, -1, -1):
        k = tree.num_children[h]
        child -= k
        decides = tree.mover[h] == player and tree.infoset[h] >= 0
        opponent = tree.mover[h] == 1 - player
        changed = opponent and radius[h] > 0.0
        entries, own_weight = 1, 0
        if decides:
            own_weight = weight[tree.infoset[h]]
            if menus:
                for c in range(child, child + k):
                    entries = max(entries, tree.entry[c] + 1)
        elif tree.mover[h] == player:
            entries = 0  # it has stopped by then
        # How wide the table can be at most.
        width = 1
        for e in range(entries):
            total = own_weight + 1
            for c in range(child, child + k):
                if not decides or not menus or tree.entry[c] == e:
                    total += size[start[c] + count[c] - 1]
            width = max(width, total)
        width = min(width, budget + 1) if k > 0 else 1
        if used + width + 1 > most:
            return False, Tables(start, count, size, utility, choice, share, picked, gap)
        if used + width > len(size):
            room = 2 * (used + width)
            size, utility, choice = _grown(size, room), _grown(utility, room), _grown(choice, room)
        start[h] = used
        size[used], utility[used], choice[used] = 0, worth[h], -1
        if k == 0 or entries == 0 or (width == 1 and own_weight == 1) or (decides and penalty == np.inf):
            used += 1
            continue
        best, which = np.full(width, -np.inf), np.full(width, -1, np.int16)
        joins = np.zeros((k, width), np.int32)
        if decides:
            best[:] = worth[h]
        for e in range(entries):
            # What nature, chance or the entry plays, and where there are tables of several sizes.
            at, sizes = np.empty(k, np.int64), 0
            p, v, replies = np.empty(k), np.empty(k), 0
            where, order = np.empty(k, np.int64), np.empty(k, np.int64)
            for c in range(child, child + k):
                if decides:
                    plays = tree.sigma_pre[c] > 0.0 and (not menus or tree.entry[c] == e)
                    probability = tree.sigma_pre[c]
                else:
                    probability = played[c]
                    plays = _is_open(probability, radius[h], kind)
                if plays:
                    p[replies], v[replies] = probability, utility[start[c]]
                    if count[c] > 1:
                        at[sizes], where[sizes] = c, replies
                        sizes += 1
                    replies += 1
            if replies == 0:
                continue
            lengths = count[at[:sizes]]
            order = np.argsort(lengths, kind="mergesort")
            where, at = where[:sizes][order], at[:sizes][order]
            room_below = 0
            for c in at:
                room_below += size[start[c] + count[c] - 1]
            below = min(width - own_weight, room_below + 1)
            if below < 1:
                continue
            turn = Turn(
                kind if changed else LINEAR, radius[h], p[:replies], where, start[at],
                lengths[order].astype(np.int64), size, utility,
            )  # fmt: skip
            found, chosen, lost = distribute(turn, v[:replies], below, penalty, steps)
            for c in range(child, child + k):
                if not decides or not menus or tree.entry[c] == e:
                    gap[h] = max(gap[h], gap[c] + lost)
            for r in range(below):
                if found[r] > best[r + own_weight]:
                    best[r + own_weight], which[r + own_weight] = found[r], e
                    for j in range(sizes):
                        joins[at[j] - child, r + own_weight] = chosen[j, r]
        # What is kept of it: where it rises, and pays.
        largest = 0.0
        for r in range(width):
            if best[r] > -np.inf:
                largest = max(largest, abs(best[r]))
        kept, last = 0, -np.inf
        for r in range(width):
            if kept == 0 or (best[r] - penalty * r > last + TIE * largest):
                size[used + kept], utility[used + kept] = r, best[r]
                choice[used + kept] = which[r] if decides else -1
                for c in range(k):
                    joins[c, kept] = joins[c, r]
                last = best[r] - penalty * r
                kept += 1
        count[h] = kept
        if given + kept * k > len(picked):
            picked = _grown(picked, 2 * (given + kept * k))
        for c in range(child, child + k):
            if count[c] > 1:
                share[c] = given
                for r in range(kept):
                    picked[given + r] = joins[c - child, r]
                given += kept
        used += kept
    return True, Tables(start, count, size, utility, choice, share, picked, gap)


@kernel
def chosen_entries(
    tree: TreeArrays, player: int, kind: int, radius: np.ndarray, tables: Tables
) -> np.ndarray:
    """bool[E]: the entries of the set that the root's table has last."""
    n = len(tree.parent)
    memorized = np.zeros(tree.first_entry[-1], np.bool_)
    rows, child = np.full(n, -1, np.int64), 1
    rows[0] = tables.length[0] - 1
    for h in range(n):
        k, at, entry = tree.num_children[h], rows[h], 0
        if at >= 0 and k > 0 and tree.mover[h] == player:
            entry = tables.choice[tables.start[h] + at]
            if entry >= 0:
                memorized[tree.first_entry[tree.infoset[h]] + entry] = True
        for c in range(child, child + k):
            if tree.mover[h] == player:
                own = tree.entry[c] if len(tree.entry) else 0
                plays = own == entry and tree.sigma_pre[c] > 0.0
            else:
                plays = _is_open(tree.sigma[c], radius[h], kind)
            if plays and at >= 0:
                rows[c] = tables.picked[tables.share[c] + at] if tables.length[c] > 1 else 0
        child += k
    return memorized
