"""The most robust utility below each history for each number of memorized entries, by recursion.

Let Phi_h(n) be the most utility below history h that nature cannot take away, where at most n entries at and
below h are memorized, and everything before h is. With W(h) for what stopping is worth:

    own turn          Phi_h(n) = max(W(h), max over entries e of the sum of sigma_pre Phi over what e plays,
                                     with n - 1 entries distributed over it)
    chance            the largest sum of p_a Phi_a(n_a)   over n_1 + n_2 + ... <= n
    opponent          the largest rho(Phi_1(n_1), Phi_2(n_2), ...), nature's minimum, over the same

A table keeps the sizes at which it rises. Sums are (max, +) convolutions. At the opponent's turns there is a
branch and bound over (n_1, n_2, ...), which asks nature for its worst reply only: it is exact for each set,
and no set has a search of its own. Two things bound it:

- Each q in the set is a cut: rho <= q . v, and the best of q . v over what is left is a convolution. Some
  cuts are found beforehand where bounds are loose, between the tightest there and nature's reply to it.
- rho rises in each of its arguments. So a child needs some size at least, with all others at their most; and
  what it needs, the others cannot have.

The search has a number of steps for each turn, which large radii and many replies with long tables use up.
By how much a utility may then be too small goes up the tree: nature's minimum moves by no more than its
arguments do.

With a price of lambda for each entry, a size n with less of Phi - lambda n than a smaller one is left out:
nature's reach is 1 at most, so it does not pay anywhere.

Source: the robust recursion over states is Iyengar's and Nilim and El Ghaoui's (2005); the sizes are ours.

Cost: at a chance node, for each two children the product of the lengths of their tables; at the
opponent's turns some 25 times that, and what the bounds leave. 14 bytes for each size in a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import TreeArrays

from .ambiguity import DIVERGENCE, worst_reply

LINEAR = -1
"""The kind of what nobody changes."""

_DIRECT = 512  # ways to distribute that are looked at one by one
_MOST_CUTS = 24
_TIE = 1e-14  # of the largest of the values: less is rounding


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
def _suffixes(
    q: np.ndarray, constant: float, start: np.ndarray, count: np.ndarray, size: np.ndarray,
    utility: np.ndarray, best: np.ndarray, pick: np.ndarray,
) -> None:  # fmt: skip
    """Writes best[j, r], the most of q . v over children from j on with r entries, and what j has of them."""
    children, width = len(start), best.shape[1]
    best[children, :] = constant
    for j in range(children - 1, -1, -1):
        for r in range(width):
            most, which = -np.inf, 0
            for b in range(count[j]):
                s = size[start[j] + b]
                if s > r:
                    break
                here = q[j] * utility[start[j] + b] + best[j + 1, r - s]
                if here > most:
                    most, which = here, b
            best[j, r], pick[j, r] = most, which


@kernel
def _last(size: np.ndarray, start: int, count: int, most: int) -> int:
    """The last place in a table whose size is at most `most` >= 0."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if size[start + middle] <= most:
            low = middle
        else:
            high = middle
    return low


@kernel
def _needs(
    kind: int, radius: float, p: np.ndarray, v: np.ndarray, q: np.ndarray, where: np.ndarray,
    start: np.ndarray, count: np.ndarray, size: np.ndarray, utility: np.ndarray, r: int, above: float,
    least: np.ndarray,
) -> bool:  # fmt: skip
    """Whether r entries may be worth more than `above`; writes into `least` where each child's table begins.

    With less than that it is not worth so much, whatever the others have of the rest.
    """
    children = len(where)
    least[:] = 0
    for _ in range(3):
        needed, rose = 0, False
        for j in range(children):
            needed += size[start[j] + least[j]]
        if needed > r:
            return False
        for j in range(children):
            b = _last(size, start[j], count[j], r - needed + size[start[j] + least[j]])
            v[where[j]] = utility[start[j] + b]
        if worst_reply(kind, radius, p, v, q) <= above:
            return False
        for j in range(children):
            top = v[where[j]]
            low = least[j] - 1  # not enough
            high = _last(size, start[j], count[j], r - needed + size[start[j] + least[j]])  # enough
            while high - low > 1:
                middle = (low + high) // 2
                v[where[j]] = utility[start[j] + middle]
                if worst_reply(kind, radius, p, v, q) > above:
                    high = middle
                else:
                    low = middle
            v[where[j]] = top
            rose |= high > least[j]
            least[j] = high
        if not rose:
            break
    needed = 0
    for j in range(children):
        needed += size[start[j] + least[j]]
    return needed <= r


@kernel
def _fill(best: np.ndarray, chosen: np.ndarray) -> None:
    """What fewer entries have, more can have."""
    for r in range(1, len(best)):
        if best[r] <= best[r - 1]:
            best[r] = best[r - 1]
            chosen[:, r] = chosen[:, r - 1]


@kernel
def _search(
    kind: int, radius: float, p: np.ndarray, v: np.ndarray, where: np.ndarray, start: np.ndarray,
    count: np.ndarray, size: np.ndarray, utility: np.ndarray, penalty: float, steps: int,
    best: np.ndarray, chosen: np.ndarray,
) -> float:  # fmt: skip
    """`_join` of two or more children by branch and bound in so many steps; writes into the last two.

    Returns by how much some utility may be too small, 0 where the steps were enough.
    """
    k, children, width = len(p), len(where), len(best)
    cuts, parts = np.empty((_MOST_CUTS, k)), np.empty((_MOST_CUTS, children))
    tables = np.empty((_MOST_CUTS, children + 1, width))
    pick, upper = np.empty((children, width), np.int32), np.full(width, np.inf)
    q, at, largest = np.empty(k), np.zeros(children, np.int64), 0.0
    for a in range(k):
        largest = max(largest, abs(v[a]))
    for j in range(children):
        largest = max(largest, abs(utility[start[j] + count[j] - 1]))
    tie, tried = _TIE * largest, np.zeros(width)
    # What is worst where nothing is memorized, where all is, and then where the bounds are loosest.
    best[0] = worst_reply(kind, radius, p, v, q)
    cuts[0] = q
    used = 0
    while used < _MOST_CUTS:
        if used == 1:
            for j in range(children):
                v[where[j]] = utility[start[j] + _last(size, start[j], count[j], width - 1)]
            worst_reply(kind, radius, p, v, q)
            cuts[1] = q
        elif used > 1:
            loose, most, pays = 0, 0.0, -np.inf
            for r in range(width):
                pays = max(pays, best[r] - penalty * r)
                here = (upper[r] - pays - penalty * r) / (1.0 + tried[r])
                if here > most:
                    loose, most = r, here
            if most <= tie:
                break
            tried[loose] += 1.0
            f = 0
            for other in range(used):
                if tables[other, 0, loose] < tables[f, 0, loose]:
                    f = other
            left = loose
            for j in range(children):  # what the tightest cut would do
                most, which = -np.inf, 0
                for b in range(_last(size, start[j], count[j], left) + 1):
                    here = parts[f, j] * utility[start[j] + b] + tables[f, j + 1, left - size[start[j] + b]]
                    if here > most:
                        most, which = here, b
                v[where[j]] = utility[start[j] + which]
                left -= size[start[j] + which]
            worst_reply(kind, radius, p, v, q)
            cuts[used] = cuts[f] + (q - cuts[f]) / (1.0 + tried[loose])
        constant = 0.0
        for j in range(children):
            parts[used, j] = cuts[used, where[j]]
            v[where[j]] = 0.0
        for a in range(k):
            constant += cuts[used, a] * v[a]
        _suffixes(parts[used], constant, start, count, size, utility, tables[used], pick)
        for r in range(width):
            upper[r] = min(upper[r], tables[used, 0, r])
            left = r
            for j in range(children):
                at[j] = pick[j, left]
                v[where[j]] = utility[start[j] + at[j]]
                left -= size[start[j] + at[j]]
            here = worst_reply(kind, radius, p, v, q)
            if here > best[r]:
                best[r] = here
                chosen[:, r] = at
        _fill(best, chosen)
        used += 1
    # What is between the bounds.
    partial = np.zeros((used, children))
    least, spare = np.zeros(children, np.int64), np.zeros(children, np.int64)
    tail, gap, pays = np.zeros(children + 1, np.int64), 0.0, best[0]
    for r in range(1, width):
        if best[r] < best[r - 1]:
            best[r] = best[r - 1]
            chosen[:, r] = chosen[:, r - 1]
        for j in range(children):  # one step from what fewer entries do best
            for i in range(children):
                at[i] = chosen[i, r - 1]
            while at[j] + 1 < count[j]:
                at[j] += 1
                total = 0
                for i in range(children):
                    total += size[start[i] + at[i]]
                    v[where[i]] = utility[start[i] + at[i]]
                if total >= r:
                    if total == r:
                        here = worst_reply(kind, radius, p, v, q)
                        if here > best[r]:
                            best[r] = here
                            chosen[:, r] = at
                    break
        # What is no better than this is not kept.
        pays = max(pays, best[r] - penalty * r)
        above = pays + penalty * r + tie
        if upper[r] <= above:
            continue
        if steps <= 0:
            gap = max(gap, upper[r] - above)
            continue
        if not _needs(kind, radius, p, v, q, where, start, count, size, utility, r, above, least):
            continue
        for j in range(children - 1, -1, -1):
            tail[j] = tail[j + 1] + size[start[j] + least[j]]
        first = 0
        for f in range(used):
            if tables[f, 0, r] < tables[first, 0, r]:
                first = f
        j = 0
        at[0], spare[0] = least[0], r
        while j >= 0:
            steps -= 1
            if steps < 0:
                gap = max(gap, upper[r] - above)
                break
            b = at[j]
            if b >= count[j] or size[start[j] + b] > spare[j] - tail[j + 1]:
                j -= 1
                if j >= 0:
                    at[j] += 1
                continue
            worth, rest = utility[start[j] + b], spare[j] - size[start[j] + b]
            open_ = True
            for step in range(used):
                f = first if step == 0 else (step - 1 if step <= first else step)
                if partial[f, j] + parts[f, j] * worth + tables[f, j + 1, rest] <= above:
                    open_ = False
                    break
            if not open_:
                at[j] += 1
                continue
            v[where[j]] = worth
            if j < children - 2:
                for f in range(used):
                    partial[f, j + 1] = partial[f, j] + parts[f, j] * worth
                j += 1
                at[j], spare[j] = least[j], rest
                continue
            at[j + 1] = _last(size, start[j + 1], count[j + 1], rest)
            v[where[j + 1]] = utility[start[j + 1] + at[j + 1]]
            here = worst_reply(kind, radius, p, v, q)
            if here > above:
                best[r], above = here, here + tie
                chosen[:, r] = at
            at[j] += 1
        pays = max(pays, best[r] - penalty * r)
    return gap


@kernel
def _join(
    kind: int, radius: float, p: np.ndarray, v: np.ndarray, where: np.ndarray, start: np.ndarray,
    count: np.ndarray, size: np.ndarray, utility: np.ndarray, width: int, penalty: float,
    steps: int,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """(Phi of at most 0, 1, ..., width - 1 entries, int32[j, r] which size child j then has, `_search`).

    `where` says which of p and v belongs to each child that has tables of several sizes, with the fewest
    first; v has what the others are worth.
    """
    k, children = len(p), len(where)
    best, chosen = np.full(width, -np.inf), np.zeros((children, width), np.int32)
    q, at = np.empty(k), np.zeros(children, np.int64)
    ways = 1.0
    for j in range(children):
        ways *= count[j]
        v[where[j]] = utility[start[j]]
    if kind == LINEAR and children > 1:
        cut, constant = np.empty(children), 0.0
        for a in range(k):
            constant += p[a] * v[a]
        for j in range(children):
            cut[j] = p[where[j]]
            constant -= cut[j] * v[where[j]]
        table, pick = np.empty((children + 1, width)), np.empty((children, width), np.int32)
        _suffixes(cut, constant, start, count, size, utility, table, pick)
        for r in range(width):
            best[r] = table[0, r]
            left = r
            for j in range(children):
                chosen[j, r] = pick[j, left]
                left -= size[start[j] + chosen[j, r]]
        return best, chosen, 0.0
    if ways <= _DIRECT or children <= 1:
        while True:
            total = 0
            for j in range(children):
                total += size[start[j] + at[j]]
                v[where[j]] = utility[start[j] + at[j]]
            if total < width:
                here = 0.0
                if kind == LINEAR:
                    for a in range(k):
                        here += p[a] * v[a]
                else:
                    here = worst_reply(kind, radius, p, v, q)
                if here > best[total]:
                    best[total] = here
                    chosen[:, total] = at
            j = children - 1
            while j >= 0:
                at[j] += 1
                if at[j] < count[j]:
                    break
                at[j] = 0
                j -= 1
            if j < 0:
                break
        _fill(best, chosen)
        return best, chosen, 0.0
    gap = _search(kind, radius, p, v, where, start, count, size, utility, penalty, steps, best, chosen)
    return best, chosen, gap


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
            found, chosen, lost = _join(
                kind if changed else LINEAR, radius[h], p[:replies], v[:replies], where, start[at],
                lengths[order].astype(np.int64), size, utility, below, penalty, steps,
            )  # fmt: skip
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
            if kept == 0 or (best[r] - penalty * r > last + _TIE * largest):
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
