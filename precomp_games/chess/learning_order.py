"""In which order a book is best learned, a position at a time.

Gains of a book's positions are additive against a fixed opponent, and a position is of use only to those
who know the ones before it. Of all orders that learn what comes before first, the one here is worth the
most on the way: the worth of its first k positions, added up over all k, is greatest. It is found by
joining: the position with the largest gain has to come right after the one before it, so the two become one
block with their mean gain, and so on (Horn, "Single-machine job sequencing with treelike precedence
ordering and linear delay penalties", 1972).

At the ends of blocks no part of the book with as many positions is worth more. Within a block another part
may be; the order is nested in exchange, so that what has been learned stays learned.

Cost: O(n log n) for n positions, and O(n) for each join of two blocks at worst.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import chess

from precomp_games.checks import check_instance, check_numbers
from precomp_games.chess.book import Book

__all__ = ["learning_order"]


def learning_order(book: Book, gains: Sequence[float]) -> list[int]:
    """The order in which a book's positions are best learned, as their indices.

    Args:
      book: what is to be learned.
      gains: of each position, what knowing it adds to knowing those before it, in all games.

    Raises:
      ValueError: no book, or not a finite gain for each of its positions.
    """
    caller = "learning_order()"
    check_instance(book, Book, "book", caller)
    total = check_numbers(gains, len(book), "gains", caller).tolist()  # of a block, at its first position
    before = _predecessors(book)
    blocks = [[k] for k in range(len(book))]
    of = list(range(len(book)))  # the block that a position is in, by its first position

    def entry(k: int) -> tuple[Any, ...]:
        position = book.positions[k]
        # Of equal gains the more reached position comes first, and then the one before the other.
        return (-total[k] / len(blocks[k]), -position.reach, len(position.history), k, len(blocks[k]))

    heap = [entry(k) for k in range(len(book))]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        *_, k, size = heapq.heappop(heap)
        if of[k] != k or len(blocks[k]) != size:
            continue  # it has become part of another block, or has grown
        parent = before[k]
        first = -1 if parent is None else of[parent]
        for member in blocks[k]:
            of[member] = first
        if first < 0:  # what comes before it is learned, which -1 stands for
            order += blocks[k]
        else:
            blocks[first] += blocks[k]
            total[first] += total[k]
            heapq.heappush(heap, entry(first))
    return order


def _predecessors(book: Book) -> list[int | None]:
    """The last memorized position on the way to each."""
    known: dict[tuple[chess.Move, ...], int] = {each.history: k for k, each in enumerate(book.positions)}
    return [
        next(
            (
                known[each.history[:ply]]
                for ply in range(len(each.history) - 1, -1, -1)
                if each.history[:ply] in known
            ),
            None,
        )
        for each in book.positions
    ]
