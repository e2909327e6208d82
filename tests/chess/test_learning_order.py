"""The order in which a book is best learned, against all orders of small books."""

import random

import chess
import pytest

from precomp_games.chess import Book, learning_order
from tests.chess.test_book import entry, random_book


def parents(book):
    """The nearest memorized position before each, or None."""
    histories = [each.history for each in book.positions]
    found = []
    for each in book.positions:
        before = [k for k, other in enumerate(histories) if other == each.history[: len(other)]]
        before = [k for k in before if histories[k] != each.history]
        found.append(max(before, key=lambda k: len(histories[k]), default=None))
    return found


def orders(parent, learned=()):
    """All orders that learn what comes before first."""
    if len(learned) == len(parent):
        yield learned
    for k, before in enumerate(parent):
        if k not in learned and (before is None or before in learned):
            yield from orders(parent, (*learned, k))


def curve(order, gains):
    values = [0.0]
    for k in order:
        values.append(values[-1] + gains[k])
    return values


def books():
    for seed in range(40):
        rng = random.Random(seed)
        book = random_book(seed, rng.random() < 0.5, chess.Board(), rng.randint(1, 6))
        yield book, [rng.choice([-0.2, 0.0, 0.1, rng.uniform(-0.3, 1.0)]) for _ in book.positions]


def test_no_order_is_worth_more_on_the_way():
    for book, gains in books():
        order = learning_order(book, gains)
        parent = parents(book)
        assert tuple(order) in set(orders(parent))
        best = max(sum(curve(each, gains)) for each in orders(parent))
        assert sum(curve(order, gains)) == pytest.approx(best, abs=1e-12)


def test_where_the_best_worths_bend_the_order_has_them():
    for book, gains in books():
        worth = curve(learning_order(book, gains), gains)
        curves = [curve(each, gains) for each in orders(parents(book))]
        best = [max(each[size] for each in curves) for size in range(len(book) + 1)]
        for size, value in enumerate(best):
            assert worth[size] <= value + 1e-12
            # A vertex of the least concave curve above all of them: no two others span it.
            spanned = any(
                best[low] + (best[high] - best[low]) * (size - low) / (high - low) >= value - 1e-12
                for low in range(size)
                for high in range(size + 1, len(best))
            )
            if not spanned:
                assert worth[size] == pytest.approx(value, abs=1e-12)


def test_a_book_that_is_not_closed_and_one_that_is_empty():
    book = Book(
        chess.Board(), chess.WHITE, [entry("e2e4 e7e5", {"g1f3": 1.0}), entry("d2d4 d7d5", {"c2c4": 1.0})]
    )
    assert learning_order(book, [0.1, 0.2]) == [1, 0]
    assert learning_order(Book(chess.Board(), chess.WHITE, []), []) == []


def test_equal_gains_are_learned_by_reach():
    book = random_book(3, chess.WHITE, chess.Board(), 30)
    order = learning_order(book, [0.01] * 30)
    reach = [book.positions[k].reach for k in order]
    assert reach == sorted(reach, reverse=True)
