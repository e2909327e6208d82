"""The best parts of books, against all parts of small ones."""

import itertools
import random

import chess
import numpy as np
import pytest
from hypothesis import given

from precomp_games.chess import Book
from precomp_games.chess.plan.preparation import best_parts
from tests.oracles.chess_books import book_of, random_books
from tests.oracles.games import SEEDS
from tests.properties import examples


def closed_parts(book):
    """Return all parts that have the nearest memorized position before each of their positions."""
    histories = [each.history for each in book.positions]
    parents = []
    for own in histories:
        before = [k for k, other in enumerate(histories) if other == own[: len(other)] and other != own]
        parents.append(max(before, key=lambda k: len(histories[k]), default=None))
    parts = itertools.product([False, True], repeat=len(book))
    pairs = [(k, parent) for k, parent in enumerate(parents) if parent is not None]
    return [part for part in parts if all(part[parent] or not part[k] for k, parent in pairs)]


@examples(80)
@given(random_books(9), SEEDS)
def test_no_part_within_the_budget_is_worth_more(book, seed):
    rng = random.Random(seed)
    gains = np.array([rng.choice([-0.2, 0.0, 0.1, rng.uniform(-0.3, 1.0)]) for _ in book.positions])
    allowed = closed_parts(book)
    parts = best_parts(book, gains)
    assert parts.shape == (len(book) + 1, len(book)) and parts[-1].all()
    for budget, part in enumerate(parts[:-1]):
        assert tuple(part) in allowed and part.sum() <= budget
        best = max((gains @ each, -sum(each)) for each in allowed if sum(each) <= budget)
        assert gains @ part == pytest.approx(best[0], abs=1e-12)
        # Of equally good parts the smallest.
        assert all(sum(each) >= part.sum() or gains @ each < gains @ part - 1e-12 for each in allowed)


def test_a_book_that_is_not_closed_and_one_that_is_empty():
    book = book_of("e2e4 e7e5 | g1f3", "d2d4 d7d5 | c2c4")
    assert best_parts(book, [0.1, 0.2]).tolist() == [[False, False], [False, True], [True, True]]
    assert best_parts(Book(chess.Board(), chess.WHITE, []), []).shape == (1, 0)
