"""What a smaller memory leaves of a book: its best parts, one for each number of positions.

Against a fixed opponent the gains of a book's positions are additive, and a position is of use only to those
who know the ones before it. So the best part within a budget is a knapsack on a tree: the most that k
positions from I on are worth, I being one of them, is I's gain and the best distribution of k - 1 over what
follows it (a max-plus convolution).

This chooses among a book's own positions and moves. A book that is made for a budget has more to choose from;
`precomp_games.algorithms` has what finds it.

Cost: O(n^2) for n positions, in time and bytes, since tables of subtrees are as long as these are large.
"""

from __future__ import annotations

from collections.abc import Sequence

import chess
import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import public
from precomp_games._support.checks import check_numbers
from precomp_games.chess.books.book import Book

_Joined = list[list[tuple[int, npt.NDArray[np.int64]]]]


@public
def best_parts(book: Book, gains: Sequence[float]) -> npt.NDArray[np.bool_]:
    """The best part of a book within each budget.

    Args:
      book: whose parts.
      gains: of each position, what knowing it adds to knowing those before it, in all games.

    Returns:
      bool[n + 1, n]: row k says which positions are in the best part of at most k; of equally good ones it
      has the fewest. The last row is the whole book, whatever its gains.

    Raises:
      ValueError: no book, or not a finite gain for each of its positions.
    """
    gain = check_numbers(gains, len(book), "gains").tolist()
    n = len(book)
    before = predecessors(book)
    # What has been joined to a position, or (n) to the start: the most that each number of positions is
    # worth, and what was joined, with how many positions of it are best at each size.
    worth = [np.zeros(1) for _ in range(n + 1)]
    joined: _Joined = [[] for _ in range(n + 1)]
    for k in sorted(range(n), key=lambda k: -len(book.positions[k].history)):
        # With k itself, or nothing.
        own = np.concatenate([[0.0], gain[k] + worth[k]])
        worth[before[k]], taken = _join(worth[before[k]], own)
        worth[k] = np.zeros(0)
        joined[before[k]].append((k, taken))
    best = worth[n]
    parts = np.zeros((n + 1, n), np.bool_)
    size = 0
    for budget in range(n):
        if best[budget] > best[size]:
            size = budget
        _take(parts[budget], joined, size)
    parts[n] = True
    return parts


def _join(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(the most that each number of positions of both is worth, how many of the other's are best there)."""
    most = np.full(len(one) + len(other) - 1, -np.inf)
    taken = np.zeros(len(most), np.int64)
    if len(other) <= len(one):
        for count, value in enumerate(other.tolist()):
            _raise(most, taken, slice(count, count + len(one)), one + value, count)
    else:
        for count, value in enumerate(one.tolist()):
            _raise(most, taken, slice(count, count + len(other)), other + value, np.arange(len(other)))
    return most, taken


def _raise(
    most: npt.NDArray[np.float64],
    taken: npt.NDArray[np.int64],
    where: slice,
    values: npt.NDArray[np.float64],
    counts: int | npt.NDArray[np.int64],
) -> None:
    better = values > most[where]
    most[where] = np.where(better, values, most[where])
    taken[where] = np.where(better, counts, taken[where])


def _take(part: npt.NDArray[np.bool_], joined: _Joined, size: int) -> None:
    """Marks the positions of the best part with `size` of them."""
    stack = [(len(part), size)]
    while stack:
        k, left = stack.pop()
        for child, taken in reversed(joined[k]):
            count = int(taken[left])
            left -= count
            if count:
                part[child] = True
                stack.append((child, count - 1))


def predecessors(book: Book) -> list[int]:
    """The last memorized position on the way to each; where there is none, the number of positions."""
    known: dict[tuple[chess.Move, ...], int] = {each.history: k for k, each in enumerate(book.positions)}
    found = []
    for each in book.positions:
        prefixes = (each.history[:ply] for ply in range(len(each.history) - 1, -1, -1))
        found.append(next((known[prefix] for prefix in prefixes if prefix in known), len(book)))
    return found
