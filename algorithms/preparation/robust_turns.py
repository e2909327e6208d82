"""How many entries to memorize after each reply, where chance or nature chooses among the replies.

Below reply a, a table has the most utility Phi_a(n) that nature leaves with at most n entries there. Of
n_1 + n_2 + ... <= n entries, which give the most? Where the replies' probabilities are fixed, this is
a (max, +) convolution. Where nature chooses them from a set, it is a branch and bound over (n_1, n_2, ...)
that asks nature for its worst reply rho only: it is exact for each set, and no set has a search of its own.
Two things bound it:

- Each q in the set is a cut: rho <= q . v, and the best of q . v over what is left is a convolution. Some
  cuts are found beforehand where bounds are loose, between the tightest there and nature's reply to it.
- rho rises in each of its arguments. So a child needs some size at least, with all others at their most; and
  what it needs, the others cannot have.

The search has a number of steps, which large radii and many replies with long tables use up. Then it says by
how much a utility may be too small.

Cost: for each two replies the product of the lengths of their tables; where nature chooses, some 25 times
that, and what the bounds leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precomp_games._support.kernels import kernel

from .ambiguity import worst_reply

LINEAR = -1
"""The kind of what nobody changes."""

TIE = 1e-14
"""Of the largest of the values that are compared: less is rounding."""

_DIRECT = 512  # ways to distribute that are looked at one by one
_MOST_CUTS = 24


class Turn(NamedTuple):
    """A turn of chance or of the opponent with k replies, of which c have tables of several sizes.

    Attributes:
      kind: of the set, or LINEAR.
      radius: of the set.
      p: float64[k], the model's probabilities.
      where: int64[c], which of the replies these are; short tables first.
      start: int64[c], where their tables begin in `size` and `utility`.
      length: int64[c], how many sizes they have.
      size: int32[], growing in each table from 0 on.
      utility: float64[], growing as well.
    """

    kind: int
    radius: float
    p: np.ndarray
    where: np.ndarray
    start: np.ndarray
    length: np.ndarray
    size: np.ndarray
    utility: np.ndarray


@kernel
def _worth(turn: Turn, v: np.ndarray, q: np.ndarray) -> float:
    """What the turn is worth where the replies are worth v; writes what nature plays into q."""
    if turn.kind != LINEAR:
        return worst_reply(turn.kind, turn.radius, turn.p, v, q)
    worth = 0.0
    for a in range(len(v)):
        worth += turn.p[a] * v[a]
    return worth


@kernel
def _set(turn: Turn, at: np.ndarray, v: np.ndarray) -> int:
    """Writes what the replies are worth with these rows of their tables; how many entries that takes."""
    total = 0
    for j in range(len(at)):
        v[turn.where[j]] = turn.utility[turn.start[j] + at[j]]
        total += turn.size[turn.start[j] + at[j]]
    return total


@kernel
def _last(turn: Turn, j: int, most: int) -> int:
    """The last row of a table whose size is at most `most` >= 0."""
    low, high = 0, turn.length[j]
    while high - low > 1:
        middle = (low + high) // 2
        if turn.size[turn.start[j] + middle] <= most:
            low = middle
        else:
            high = middle
    return low


@kernel
def _convolve(turn: Turn, q: np.ndarray, v: np.ndarray, best: np.ndarray, pick: np.ndarray) -> None:
    """Writes best[j, r], the most of q . v with r entries for tables from j on, and the row of j in it."""
    tables, width = len(turn.where), best.shape[1]
    constant = 0.0
    for j in range(tables):
        v[turn.where[j]] = 0.0
    for a in range(len(v)):
        constant += q[a] * v[a]
    best[tables, :] = constant
    for j in range(tables - 1, -1, -1):
        part = q[turn.where[j]]
        for r in range(width):
            most, which = -np.inf, 0
            for b in range(turn.length[j]):
                size = turn.size[turn.start[j] + b]
                if size > r:
                    break
                here = part * turn.utility[turn.start[j] + b] + best[j + 1, r - size]
                if here > most:
                    most, which = here, b
            best[j, r], pick[j, r] = most, which


@kernel
def _follow(turn: Turn, pick: np.ndarray, r: int, at: np.ndarray) -> None:
    """Writes the rows that a convolution picks with r entries."""
    for j in range(len(at)):
        at[j] = pick[j, r]
        r -= turn.size[turn.start[j] + at[j]]


@kernel
def _fill(best: np.ndarray, chosen: np.ndarray) -> None:
    """What fewer entries have, more can have."""
    for r in range(1, len(best)):
        if best[r] <= best[r - 1]:
            best[r] = best[r - 1]
            chosen[:, r] = chosen[:, r - 1]


@kernel
def distribute(
    turn: Turn, v: np.ndarray, width: int, penalty: float, steps: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """(what at most 0, 1, ..., width - 1 entries are worth, int64[c, width] the rows for that, the gap).

    Args:
      turn: see there.
      v: float64[k], what the replies without tables are worth.
      width: see above.
      penalty: a size that is not worth this much more for each entry than a smaller one may be left out.
      steps: of the search; the gap is by how much something may be too small where they do not do.
    """
    tables, q = len(turn.where), np.empty(len(v))
    best, chosen = np.full(width, -np.inf), np.zeros((tables, width), np.int64)
    at, ways = np.zeros(tables, np.int64), 1.0
    for j in range(tables):
        ways *= turn.length[j]
    if turn.kind == LINEAR and tables > 1:
        table, pick = np.empty((tables + 1, width)), np.empty((tables, width), np.int64)
        _convolve(turn, turn.p, v, table, pick)
        for r in range(width):
            best[r] = table[0, r]
            _follow(turn, pick, r, chosen[:, r])
        return best, chosen, 0.0
    if ways > _DIRECT and tables > 1:
        gap = _search(turn, v, penalty, steps, best, chosen)
        return best, chosen, gap
    j = 0
    while j >= 0:
        total = _set(turn, at, v)
        if total < width:
            here = _worth(turn, v, q)
            if here > best[total]:
                best[total] = here
                chosen[:, total] = at
        j = tables - 1
        while j >= 0:
            at[j] += 1
            if at[j] < turn.length[j]:
                break
            at[j] = 0
            j -= 1
    _fill(best, chosen)
    return best, chosen, 0.0


@kernel
def _cut(
    turn: Turn, v: np.ndarray, penalty: float, tie: float, best: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(float64[f, k] what opponents of the set play, float64[f, c + 1, width] the convolutions for that).

    What is found meanwhile is written into the last two.
    """
    tables, width = len(turn.where), len(best)
    cuts, bounds = np.empty((_MOST_CUTS, len(v))), np.empty((_MOST_CUTS, tables + 1, width))
    picks = np.empty((_MOST_CUTS, tables, width), np.int64)
    q, at = np.empty(len(v)), np.zeros(tables, np.int64)
    upper, tried = np.full(width, np.inf), np.zeros(width)
    used = 0
    while used < _MOST_CUTS:
        # What is worst where nothing is memorized, where all is, and then where the bounds are loosest.
        if used < 2:
            for j in range(tables):
                at[j] = _last(turn, j, width - 1) if used == 1 else 0
            _set(turn, at, v)
            _worth(turn, v, q)
            cuts[used] = q
        else:
            loose, most, pays = 0, 0.0, -np.inf
            for r in range(width):
                pays = max(pays, best[r] - penalty * r)
                here = (upper[r] - pays - penalty * r) / (1.0 + tried[r])
                if here > most:
                    loose, most = r, here
            if most <= tie:
                break
            tried[loose] += 1.0
            tightest = np.argmin(bounds[:used, 0, loose])
            _follow(turn, picks[tightest], loose, at)
            _set(turn, at, v)
            _worth(turn, v, q)
            cuts[used] = cuts[tightest] + (q - cuts[tightest]) / (1.0 + tried[loose])
        _convolve(turn, cuts[used], v, bounds[used], picks[used])
        for r in range(width):
            upper[r] = min(upper[r], bounds[used, 0, r])
            _follow(turn, picks[used], r, at)
            _set(turn, at, v)
            here = _worth(turn, v, q)
            if here > best[r]:
                best[r] = here
                chosen[:, r] = at
        _fill(best, chosen)
        used += 1
    return cuts[:used], bounds[:used]


@kernel
def _step(turn: Turn, v: np.ndarray, r: int, best: np.ndarray, chosen: np.ndarray) -> None:
    """Tries with r entries what fewer do best, and some more in one place."""
    at, q = np.empty(len(turn.where), np.int64), np.empty(len(v))
    for j in range(len(at)):
        at[:] = chosen[:, r - 1]
        total = 0
        while total < r and at[j] + 1 < turn.length[j]:
            at[j] += 1
            total = _set(turn, at, v)
        if total == r:
            here = _worth(turn, v, q)
            if here > best[r]:
                best[r] = here
                chosen[:, r] = at


@kernel
def _needs(turn: Turn, v: np.ndarray, r: int, above: float, least: np.ndarray) -> bool:
    """Whether r entries may be worth more than `above`; writes the row from which on each table counts.

    With less than that it is not worth so much, whatever the others have of the rest.
    """
    tables, q = len(turn.where), np.empty(len(v))
    tops = np.empty(tables, np.int64)
    least[:] = 0
    for _ in range(3):
        needed, rose = _set(turn, least, v), False
        if needed > r:
            return False
        for j in range(tables):
            tops[j] = _last(turn, j, r - needed + turn.size[turn.start[j] + least[j]])
        _set(turn, tops, v)
        if _worth(turn, v, q) <= above:
            return False
        for j in range(tables):
            low, high = least[j] - 1, tops[j]  # too little, and enough
            while high - low > 1:
                middle = (low + high) // 2
                v[turn.where[j]] = turn.utility[turn.start[j] + middle]
                if _worth(turn, v, q) > above:
                    high = middle
                else:
                    low = middle
            v[turn.where[j]] = turn.utility[turn.start[j] + tops[j]]
            rose |= high > least[j]
            least[j] = high
        if not rose:
            break
    return _set(turn, least, v) <= r


@kernel
def _search(
    turn: Turn, v: np.ndarray, penalty: float, steps: int, best: np.ndarray, chosen: np.ndarray
) -> float:
    """`distribute` by branch and bound, over two tables at least; writes into the last two."""
    tables, width, largest = len(turn.where), len(best), 0.0
    q, at, least = np.empty(len(v)), np.zeros(tables, np.int64), np.zeros(tables, np.int64)
    _set(turn, at, v)
    for a in range(len(v)):
        largest = max(largest, abs(v[a]))
    for j in range(tables):
        largest = max(largest, abs(turn.utility[turn.start[j] + turn.length[j] - 1]))
    tie = TIE * largest
    cuts, bounds = _cut(turn, v, penalty, tie, best, chosen)
    gap, pays = 0.0, best[0]
    # What the tables before j have by each cut, the entries left for j and after, and what these need.
    before, spare = np.zeros((len(cuts), tables)), np.zeros(tables, np.int64)
    needed = np.zeros(tables + 1, np.int64)
    for r in range(1, width):
        if best[r] < best[r - 1]:
            best[r] = best[r - 1]
            chosen[:, r] = chosen[:, r - 1]
        _step(turn, v, r, best, chosen)
        pays = max(pays, best[r] - penalty * r)
        above = pays + penalty * r + tie  # what is no better than this is not kept
        tightest = np.argmin(bounds[:, 0, r])
        upper = bounds[tightest, 0, r]
        if upper <= above:
            continue
        if steps <= 0:
            gap = max(gap, upper - above)
            continue
        if not _needs(turn, v, r, above, least):
            continue
        for j in range(tables - 1, -1, -1):
            needed[j] = needed[j + 1] + turn.size[turn.start[j] + least[j]]
        j = 0
        at[0], spare[0] = least[0], r
        while j >= 0:
            steps -= 1
            if steps < 0:
                gap = max(gap, upper - above)
                break
            row = turn.start[j] + at[j]
            if at[j] >= turn.length[j] or turn.size[row] > spare[j] - needed[j + 1]:
                j -= 1
                if j >= 0:
                    at[j] += 1
                continue
            worth, rest = turn.utility[row], spare[j] - turn.size[row]
            hopeless = False
            for k in range(len(cuts)):
                f = (tightest + k) % len(cuts)
                if before[f, j] + cuts[f, turn.where[j]] * worth + bounds[f, j + 1, rest] <= above:
                    hopeless = True
                    break
            if hopeless:
                at[j] += 1
            elif j < tables - 2:
                for k in range(len(cuts)):
                    before[k, j + 1] = before[k, j] + cuts[k, turn.where[j]] * worth
                j += 1
                at[j], spare[j] = least[j], rest
            else:  # the last table has what is left
                at[j + 1] = _last(turn, j + 1, rest)
                _set(turn, at, v)
                here = _worth(turn, v, q)
                if here > above:
                    best[r], above = here, here + tie
                    chosen[:, r] = at
                at[j] += 1
        pays = max(pays, best[r] - penalty * r)
    return gap
