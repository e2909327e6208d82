"""Drills: the questions, the kept progress, and a learner who forgets as fsrs predicts."""

import datetime
import itertools
import math
import sqlite3
import statistics

import chess
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import Book, BookMove, BookPosition, Drill
from tests.oracles.chess_books import entry
from tests.properties import examples

_START = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC)
# Two replies to e4, the rarer one worth little; a line after the first.
BOOK = Book(
    chess.Board(),
    chess.WHITE,
    [
        entry("", {"e2e4": 1.0}, 1.0, 0.4),
        entry("e2e4 e7e5", {"g1f3": 1.0}, 0.7, 0.25),
        entry("e2e4 c7c5", {"g1f3": 1.0}, 0.3, 0.1),
        entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 1.0}, 0.5, 0.2),
    ],
)


def days(count):
    return _START + datetime.timedelta(days=count)


@pytest.fixture
def drill():
    with Drill(BOOK, ":memory:", seed=1) as opened:
        yield opened


def answer(drill, now=_START):
    """Answer the next question rightly, and return its card."""
    card = drill.next(now)
    assert drill.answer(card, card.moves[0], now)
    return card


def test_what_costs_most_comes_first(drill):
    assert [answer(drill).worth for _ in range(4)] == [0.4, 0.25, 0.2, 0.1]
    assert drill.next(_START) is None and drill.expected_loss(_START) == 0.0


def test_the_expected_loss_is_that_of_all_that_may_be_forgotten(drill):
    """A line loses at its first forgotten position."""
    assert drill.expected_loss(_START) == pytest.approx(0.4)
    for _ in range(3):
        answer(drill)
    assert drill.expected_loss(_START) == pytest.approx(0.1)
    r = [drill.known(card, days(40)) for card in sorted(drill.cards, key=lambda card: -card.worth)]
    loss = 0.0
    for known in itertools.product((False, True), repeat=4):
        first, e5, nc6, c5 = known
        failed = 0.4 if not first else (0.25 if not e5 else 0.2 * (not nc6)) + 0.1 * (not c5)
        loss += failed * math.prod(p if k else 1.0 - p for p, k in zip(r, known, strict=True))
    assert drill.expected_loss(days(40)) == pytest.approx(loss, abs=1e-12)


def test_wrong_answers_come_again_and_are_rated_once(tmp_path):
    path = tmp_path / "progress.sqlite"
    with Drill(BOOK, path) as drill:
        first = drill.next(_START)
        assert not drill.answer(first, chess.Move.from_uci("d2d4"), _START)
        assert drill.known(first, _START) == 0.0
        assert first not in [answer(drill) for _ in range(3)]
        assert drill.next(_START) is first  # nothing else is left
        assert answer(drill) is first
        assert drill.next(_START) is None and drill.known(first, _START) == 1.0
        kept = [drill.known(card, days(5)) for card in drill.cards]
    with Drill(BOOK, path) as drill:
        assert [drill.known(card, days(5)) for card in drill.cards] == kept
        assert kept[0] < min(kept[1:])  # it was forgotten once
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*), sum(correct) FROM answers").fetchone() == (4, 3)
    with Drill(Book(chess.Board(), chess.WHITE, BOOK.positions[:2]), path) as drill:
        assert drill.next(_START) is None  # progress belongs to positions of a side


@pytest.mark.parametrize("move", ["0000", "e2e5", "e7e5"])
def test_what_is_no_legal_move_is_no_answer(move, drill):
    first = drill.next(_START)
    with pytest.raises(ValueError, match="expected a legal move, or None"):
        drill.answer(first, chess.Move.from_uci(move), _START)
    assert answer(drill) is first and drill.known(first, _START) == 1.0


def test_replies_and_transpositions_which_are_one_card_are_drawn_by_reach(drill):
    drawn = [drill.reply(BOOK.positions[0], chess.Move.from_uci("e2e4"))[1].reach for _ in range(400)]
    assert 0.6 < drawn.count(0.7) / 400 < 0.8
    assert drill.reply(BOOK.positions[3], chess.Move.from_uci("f1b5")) is None
    positions = [
        entry("d2d4 d7d5 g1f3 g8f6", {"c2c4": 1.0}, 0.25, 0.1),
        entry("g1f3 d7d5 d2d4 g8f6", {"c2c4": 1.0}, 0.75, 0.2),
    ]
    with Drill(Book(chess.Board(), chess.WHITE, positions), ":memory:", seed=1) as other:
        (card,) = other.cards
        assert card.worth == pytest.approx(0.3)
        assert 0.65 < sum(other.line(card) is positions[1] for _ in range(400)) / 400 < 0.85


def random_book(rng, size=40):
    """Return a tree of histories whose worths are sums of gains that are reached below."""
    grown: dict[tuple[chess.Move, ...], chess.Board] = {(): chess.Board()}
    while len(grown) < size:
        board = grown[list(grown)[int(rng.integers(len(grown)))]].copy()
        board.push(first_move(board))
        board.push(sorted(board.legal_moves, key=str)[int(rng.integers(4))])
        grown[tuple(board.move_stack)] = board
    gain = dict(zip(grown, rng.exponential(0.01, size), strict=True))
    positions = []
    for line, board in grown.items():
        worth = sum(value for other, value in gain.items() if other[: len(line)] == line)
        moves = (BookMove(first_move(board), 1.0),)
        positions.append(BookPosition(line, moves, 0.5 ** (len(line) / 2), worth))
    return Book(chess.Board(), chess.WHITE, positions)


def first_move(board):
    return min(board.legal_moves, key=str)


def loss(book, rng, by_cost):
    """Return a learner's mean expected loss, who forgets by fsrs, asked by cost or at random, over 8 days."""
    losses = []
    with Drill(book, ":memory:", seed=1) as drill:
        for day in range(0, 16, 2):
            shown_today = set()
            for _ in range(10):
                card = drill.next(days(day)) if by_cost else drill.cards[int(rng.integers(len(drill.cards)))]
                if card is None:
                    break
                knows = card.epd in shown_today or rng.random() < drill.known(card, days(day))
                shown_today.add(card.epd)
                drill.answer(card, card.moves[0] if knows else None, days(day))
            losses.append(drill.expected_loss(days(day + 1)))
    return statistics.mean(losses)


@examples(20)
@given(st.integers(0, 2**32))
def test_a_learner_loses_less_than_by_random_questions(seed):
    book = random_book(np.random.default_rng(seed))
    by_cost, at_random = (loss(book, np.random.default_rng([seed, 7]), how) for how in (True, False))
    assert by_cost < at_random
