"""Drills: the questions, and the kept progress."""

import datetime
import itertools
import math
import sqlite3

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import Book, Drill
from tests.oracles.chess_books import entry, random_books
from tests.properties import examples

_START = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC)
_LATER = _START + datetime.timedelta(days=40)
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


@pytest.fixture
def drill():
    with Drill(BOOK, ":memory:", seed=1) as opened:
        yield opened


def answer(drill, now=_START):
    """Answer the next question rightly, and return its card."""
    card = drill.next(now)
    assert drill.answer(card, card.moves[0], now)
    return card


def test_the_expected_loss_is_that_of_all_that_may_be_forgotten(drill):
    """A line loses at its first forgotten position."""
    assert drill.expected_loss(_START) == pytest.approx(0.4)
    assert [answer(drill).worth for _ in range(3)] == [0.4, 0.25, 0.2]
    assert drill.expected_loss(_START) == pytest.approx(0.1)
    r = [drill.known(card, _LATER) for card in sorted(drill.cards, key=lambda card: -card.worth)]
    loss = 0.0
    for known in itertools.product((False, True), repeat=4):
        first, e5, nc6, c5 = known
        failed = 0.4 if not first else (0.25 if not e5 else 0.2 * (not nc6)) + 0.1 * (not c5)
        loss += failed * math.prod(p if k else 1.0 - p for p, k in zip(r, known, strict=True))
    assert drill.expected_loss(_LATER) == pytest.approx(loss, abs=1e-12)


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
        kept = [drill.known(card, _LATER) for card in drill.cards]
    with Drill(BOOK, path) as drill:
        assert [drill.known(card, _LATER) for card in drill.cards] == kept
        assert kept[0] < min(kept[1:])  # it was forgotten once
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*), sum(correct) FROM answers").fetchone() == (4, 3)
    with Drill(Book(chess.Board(), chess.WHITE, BOOK.positions[:2]), path) as drill:
        assert drill.next(_START) is None  # progress belongs to positions of a side


def test_a_wrong_answer_comes_again_after_four_others():
    line = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6", "e1g1", "f8e7", "f1e1"]
    positions = [entry(" ".join(line[:k]), {line[k]: 1.0}, 1.0, 1.0 - k / 20) for k in range(0, 11, 2)]
    with Drill(Book(chess.Board(), chess.WHITE, positions), ":memory:") as drill:
        first = drill.next(_START)
        assert not drill.answer(first, None, _START)
        assert [answer(drill) is first for _ in range(5)] == [False] * 4 + [True]


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


@examples(40)
@given(random_books(15), st.lists(st.integers(0, 30), max_size=12))
def test_the_next_question_is_the_one_that_forgetting_costs_most(book, pauses):
    if not len(book):
        return
    now = _START
    with Drill(book, ":memory:", seed=1) as drill:
        for pause in pauses:
            now += datetime.timedelta(days=pause)
            losses = {card.epd: card.worth * (1.0 - drill.known(card, now)) for card in drill.cards}
            card = drill.next(now)
            assert (losses[card.epd] if card else 0.0) == max(losses.values())
            assert drill.next(now, least=max(losses.values())) is None
            if card:
                answer(drill, now)
                assert drill.known(card, now) == 1.0 > drill.known(card, now + datetime.timedelta(days=1))
