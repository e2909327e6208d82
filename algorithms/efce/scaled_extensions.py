"""Xi as a chain of scaled extensions: every entry is either a share of another or a sum of others.

Taken in order, the *steps* write a plan down from the top. A simplex step splits the entry `scale` among the
entries of one information set: xi[entry] = xi[scale] * share, shares that add up to 1, free to choose. A sum
step has no freedom: xi[target] = sum of xi[entries]. So whatever the shares, the outcome is in Xi, and every
point of Xi comes about so. Two things follow: regret minimization over Xi is regret matching on each simplex;
and a subgame's entries can be rewritten with the trunk's left as they are.

At a pair (s, t), look at which information sets right after s are connected with which right after t. Where
there are no triangles (`correlation_plans`), these connections are stars: one set, the center, with several
of the opponent's, which are connected with nothing else. (Without chance there is one star at most.) Centers
and sets without a connection are expanded as simplexes, what follows is decomposed, and then the other sets
of each star are filled in by sums over their center's actions. Of two sets that are connected with each other
alone, the center is the one in the trunk, so that no sum ever writes from a subgame into the trunk.

Source: Farina, Ling, Fang and Sandholm 2019; `efce_resolving`, appendix F and Theorem 3; with chance, Farina
and Sandholm 2020.

Cost: one visit a pair; 17 bytes a step, about a step for three pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games._support.kernels import kernel

from .correlation_plans import RelevantPairs


class ScaledExtensions(NamedTuple):
    """Steps in order; a tuple, so that numba takes it.

    A step's entries are start, start + stride, ..., `size` of them.

    Attributes:
      start: int32 or int64[n].
      stride, size: int32[n].
      other: As `start`; the entry that a simplex step splits, or that a sum step writes.
      is_sum: bool[n].
    """

    start: np.ndarray
    stride: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    other: np.ndarray
    is_sum: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, pairs: RelevantPairs) -> ScaledExtensions:
        """Return the steps that write a subgame's entries, given the trunk's; of a game with one subgame.

        Raises:
          ValueError: a set in the subgame is the center of a star that reaches into the trunk, which can be
            where a player alone sees what chance drew.
        """
        forms = pairs.game.players
        children = [_children(form.parent, form.num_sequences) for form in forms]
        arrays = _Arrays(
            first=_both(*(form.first for form in forms)),
            infoset=_both(*(form.infoset for form in forms)),
            child_start=_both(*(starts for starts, _ in children)),
            child=_both(*(sets for _, sets in children)),
            trunk=_both(*(form.label < 0 for form in forms)),
            row=np.searchsorted(pairs.first, np.arange(forms[0].num_infosets + 1)),
            second=pairs.second,
            pair_start=pairs.start,
            label=pairs.label,
        )
        steps, who, center, leaf = _decompose(arrays)
        if who >= 0:
            raise ArgumentError(
                "expected subgames whose plans are shares of the trunk's, but player "
                f"{who}'s {forms[who].keys[center]!r} is in one, and has to suit several sets of player "
                f"{1 - who} in the trunk, such as {forms[1 - who].keys[leaf]!r}; begin it before these"
            )
        index = np.int32 if len(pairs) < 2**31 else np.int64
        return cls(
            start=steps[:, 0].astype(index),
            stride=steps[:, 1].astype(np.int32),
            size=steps[:, 2].astype(np.int32),
            other=steps[:, 3].astype(index),
            is_sum=steps[:, 4] > 0,
        )


def _children(parent: np.ndarray, sequences: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (where each sequence's information sets begin, information sets by parent sequence)."""
    order = 1 + np.argsort(parent[1:], kind="stable")
    return np.searchsorted(parent[order], np.arange(sequences + 1)), order


def _both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return int64[2, n]: both players' arrays, the shorter one with zeros behind it."""
    both = np.zeros((2, max(len(first), len(second))), np.int64)
    both[0, : len(first)], both[1, : len(second)] = first, second
    return both


class _Arrays(NamedTuple):
    """Input arrays of the decomposition.

    Attributes:
      first, infoset, child_start, child, trunk: int64[2, n], a row for each player: `PlayerForm.first` and
        `.infoset`; information sets by parent sequence, from child_start[s] on; which are in the trunk.
      row, second, pair_start, label: The blocks: from row[I] on those of player 0's set I, by `second`; as
        `RelevantPairs`. Blocks labeled -1 are there already.
    """

    first: np.ndarray
    infoset: np.ndarray
    child_start: np.ndarray
    child: np.ndarray
    trunk: np.ndarray
    row: np.ndarray
    second: np.ndarray
    pair_start: np.ndarray
    label: np.ndarray


@kernel
def _block(row: np.ndarray, second: np.ndarray, who: int, mine: int, theirs: int) -> int:
    """Return the block of player `who`'s information set and the opponent's, -1 for none."""
    i, j = (mine, theirs) if who == 0 else (theirs, mine)
    low, high = row[i], row[i + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if second[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low if low < end and second[low] == j else -1


@kernel
def _find_centers(
    row: np.ndarray,
    second: np.ndarray,
    trunk: np.ndarray,
    after_s: np.ndarray,
    after_t: np.ndarray,
    degree: np.ndarray,
    center: np.ndarray,
) -> None:
    """Find the center of the star that each set is in, -1 for centers and for sets without a connection.

    Of player 0's sets `after_s` and player 1's `after_t`; `center`, int64[2, sets], is written for these, and
    so is `degree`, with how many sets each is connected.
    """
    for i in after_s:
        degree[0, i], center[0, i] = 0, -1
    for j in after_t:
        degree[1, j], center[1, j] = 0, -1
    for i in after_s:
        for j in after_t:
            if _block(row, second, 0, i, j) >= 0:
                degree[0, i] += 1
                degree[1, j] += 1
                center[0, i], center[1, j] = j, i  # the last connection, so far
    for i in after_s:
        j = center[0, i]
        if j >= 0:
            alone = degree[0, i] == 1 and degree[1, j] == 1
            if degree[0, i] > 1 or (alone and (trunk[0, i] or not trunk[1, j])):
                center[0, i] = -1
    for j in after_t:
        i = center[1, j]
        if i >= 0 and center[0, i] == j:
            center[1, j] = -1


@kernel
def _entry(
    pair_start: np.ndarray,
    first: np.ndarray,
    who: int,
    block: int,
    mine: int,
    own: int,
    theirs: int,
    other: int,
) -> tuple[int, int]:
    """Return the entry of `who`'s sequence `own` of set `mine` and `other` of `theirs`, and its stride."""
    start = pair_start[block]
    if who == 0:
        width = first[1, theirs + 1] - first[1, theirs]
        return start + (own - first[0, mine]) * width + (other - first[1, theirs]), width
    width = first[1, mine + 1] - first[1, mine]
    return start + (other - first[0, theirs]) * width + (own - first[1, mine]), 1


@kernel
def _room(rows: np.ndarray, used: int, more: int) -> np.ndarray:
    """Return the array, or a larger one with the same `used` rows if it has no room for so many more."""
    if used + more <= len(rows):
        return rows
    grown = np.empty((2 * len(rows) + more, rows.shape[1]), rows.dtype)
    for row in range(used):  # numba compiles four times as long where a slice is assigned
        for column in range(rows.shape[1]):
            grown[row, column] = rows[row, column]
    return grown


@kernel
def _put(rows: np.ndarray, used: int, a: int, b: int, c: int, d: int, e: int) -> None:
    """Write a row, or the first five of it."""
    rows[used, 0], rows[used, 1], rows[used, 2], rows[used, 3], rows[used, 4] = a, b, c, d, e


@kernel
def _decompose(arrays: _Arrays) -> tuple[np.ndarray, int, int, int]:
    """Return (steps as int64[n, 5] in the order of `ScaledExtensions`, -1, -1, -1).

    Or, in place of the latter, a player, its set in the subgame and one of the opponent's sets in the trunk
    that would have to be filled in from there.

    Tasks, the last one first: (-1, s, t, -), decompose a pair; (p, s, C, K), fill in the opponent's set K at
    player p's sequence s from K's center, p's set C right after s. A task comes down to sums, (-1, the step),
    and expansions, (p, k, home, other, scale, center): player p's set k at the opponent's sequence `other` of
    set `home`, whose entry is `scale`, by sums, later, from its center; or where that is -1 by a simplex, and
    then the pairs after it. One loop does both kinds: a function for an expansion, called for every pair with
    all these arrays, takes twice as long.
    """
    row, second, pair_start, label = arrays.row, arrays.second, arrays.pair_start, arrays.label
    first, infoset, child_start, child = arrays.first, arrays.infoset, arrays.child_start, arrays.child
    steps = np.empty((1024, 5), np.int64)
    tasks, todo = np.zeros_like(steps), np.empty((1024, 6), np.int64)
    degree, center = np.zeros_like(arrays.trunk), np.zeros_like(arrays.trunk)
    num_steps, num_tasks = 0, 1
    tasks[0, 0] = -1
    while num_tasks > 0:
        num_tasks -= 1
        who, s, t, k = tasks[num_tasks, 0], tasks[num_tasks, 1], tasks[num_tasks, 2], tasks[num_tasks, 3]
        fills, num_todo = who >= 0, 0
        if fills:
            middle, p, home = t, 1 - who, infoset[who, s]
            block, above = _block(row, second, p, k, home), _block(row, second, p, k, middle)
            if label[block] < 0 and label[above] >= 0:
                return steps[:num_steps], who, middle, k
            begin, end = first[who, middle], first[who, middle + 1]
            for q in range(first[p, k], first[p, k + 1]):
                target, _ = _entry(pair_start, first, p, block, k, q, home, s)
                todo = _room(todo, num_todo, 1 + child_start[p, q + 1] - child_start[p, q])
                if label[block] >= 0:
                    at, stride = _entry(pair_start, first, who, above, middle, begin, k, q)
                    _put(todo, num_todo, -1, at, stride, end - begin, target)
                    num_todo += 1
                for below in child[p, child_start[p, q] : child_start[p, q + 1]]:
                    _put(todo, num_todo, p, below, home, s, target)
                    todo[num_todo, 5] = middle if _block(row, second, p, below, middle) >= 0 else -1
                    num_todo += 1
        else:
            after_s = child[0, child_start[0, s] : child_start[0, s + 1]]
            after_t = child[1, child_start[1, t] : child_start[1, t + 1]]
            i, j = infoset[0, s], infoset[1, t]
            here, _ = _entry(pair_start, first, 0, _block(row, second, 0, i, j), i, s, j, t)
            _find_centers(row, second, arrays.trunk, after_s, after_t, degree, center)
            todo = _room(todo, 0, len(after_s) + len(after_t))
            # What is pushed last is done first: all centers, before what is filled in from them.
            last = 0
            for below in after_s:
                last = max(last, int(center[0, below] >= 0))
            for turn in range(3):
                p = 1 - last if turn == 1 else last
                after, home, other = (after_s, j, t) if p == 0 else (after_t, i, s)
                for below in after[::-1]:
                    if turn == 1 or (center[p, below] >= 0) == (turn == 0):
                        _put(todo, num_todo, p, below, home, other, here)
                        todo[num_todo, 5] = center[p, below]
                        num_todo += 1
        for n in range(num_todo):
            p, k, home, other, scale = todo[n, 0], todo[n, 1], todo[n, 2], todo[n, 3], todo[n, 4]
            steps = _room(steps, num_steps, 1)
            if p < 0:
                _put(steps, num_steps, k, home, other, scale, 1)
                num_steps += 1
                continue
            block = _block(row, second, p, k, home)
            if block < 0:
                continue
            start, size = first[p, k], first[p, k + 1] - first[p, k]
            tasks = _room(tasks, num_tasks, size + 1)
            if todo[n, 5] >= 0:
                _put(tasks, num_tasks, 1 - p, other, todo[n, 5], k, 0)
                num_tasks += 1
                continue
            if label[block] >= 0:
                at, stride = _entry(pair_start, first, p, block, k, start, home, other)
                _put(steps, num_steps, at, stride, size, scale, 0)
                num_steps += 1
            for m in range(size):
                q = start + m if fills else start + size - 1 - m
                s, t = (q, other) if p == 0 else (other, q)
                _put(tasks, num_tasks, -1, s, t, 0, 0)
                num_tasks += 1
    return steps[:num_steps], -1, -1, -1


@kernel
def fill_plan(steps: ScaledExtensions, shares: np.ndarray, xi: np.ndarray) -> None:
    """Write the steps' entries of xi from shares, float64[pairs]; the trunk's entries must be there."""
    starts, strides, sizes, others, sums = steps.start, steps.stride, steps.size, steps.other, steps.is_sum
    for n in range(len(starts)):
        at, stride, other = np.uint64(starts[n]), np.uint64(strides[n]), np.uint64(others[n])
        if sums[n]:
            total = 0.0
            for _ in range(sizes[n]):
                total += xi[at]
                at += stride
            xi[other] = total
        else:
            scale = xi[other]
            for _ in range(sizes[n]):
                xi[at] = scale * shares[at]
                at += stride


@kernel
def write_again(steps: ScaledExtensions, xi: np.ndarray) -> None:
    """Rewrite a vector nearly in Xi by `fill_plan` with its own shares, in place: then up to rounding.

    Shares are equal where an entry of 0 is split.
    """
    for n in range(len(steps.start)):
        at, stride, size = steps.start[n], steps.stride[n], steps.size[n]
        total = 0.0
        for k in range(size):
            total += max(xi[at + k * stride], 0.0)
        if steps.is_sum[n]:
            xi[steps.other[n]] = total
            continue
        scale = xi[steps.other[n]]
        for k in range(size):
            share = max(xi[at + k * stride], 0.0) / total if total > 0.0 else 1.0 / size
            xi[at + k * stride] = scale * share
