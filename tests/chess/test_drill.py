"""Drills: the questions, the kept progress, and a learner who forgets as fsrs predicts."""

import datetime
import sqlite3
import statistics

import chess
import numpy as np
import pytest

from precomp_games.chess import Book, BookMove, BookPosition, Drill
from tests.oracles.chess_books import entry

_START = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC)


def days(count):
    return _START + datetime.timedelta(days=count)


def small_book():
    """Two replies to e4, the rarer one worth little; a line after the first."""
    return Book(
        chess.Board(),
        chess.WHITE,
        [
            entry("", {"e2e4": 1.0}, 1.0, 0.4),
            entry("e2e4 e7e5", {"g1f3": 1.0}, 0.7, 0.25),
            entry("e2e4 c7c5", {"g1f3": 1.0}, 0.3, 0.1),
            entry("e2e4 e7e5 g1f3 b8c6", {"f1b5": 1.0}, 0.5, 0.2),
        ],
    )


def answer(drill, now):
    """Answer the next question rightly, and return its card."""
    card = drill.next(now)
    assert drill.answer(card, card.moves[0], now)
    return card


def test_what_costs_most_comes_first():
    with Drill(small_book(), ":memory:") as drill:
        asked = [answer(drill, _START) for _ in range(4)]
        assert [card.worth for card in asked] == [0.4, 0.25, 0.2, 0.1]
        assert drill.next(_START) is None
        assert drill.expected_loss(_START) == 0.0


def test_expected_loss_by_hand():
    """By brute force over what is forgotten: a line loses at its first forgotten position."""
    with Drill(small_book(), ":memory:") as drill:
        assert drill.expected_loss(_START) == pytest.approx(0.4)
        for _ in range(3):
            answer(drill, _START)
        assert drill.expected_loss(_START) == pytest.approx(0.1)
        later = days(40)
        r = {card.worth: drill.known(card, later) for card in drill.cards}
        loss = 0.0
        for known in np.ndindex(2, 2, 2, 2):
            p = 1.0
            for k, worth in zip(known, (0.4, 0.25, 0.2, 0.1), strict=True):
                p *= r[worth] if k else 1.0 - r[worth]
            first, e5, nc6, c5 = known
            failed = 0.4 if not first else (0.25 if not e5 else 0.2 * (not nc6)) + 0.1 * (not c5)
            loss += p * failed
        assert drill.expected_loss(later) == pytest.approx(loss, abs=1e-12)


def test_wrong_answers_come_again_and_are_rated_once(tmp_path):
    path = tmp_path / "progress.sqlite"
    with Drill(small_book(), path) as drill:
        first = drill.next(_START)
        assert not drill.answer(first, chess.Move.from_uci("d2d4"), _START)
        assert drill.known(first, _START) == 0.0
        others = [answer(drill, _START) for _ in range(3)]
        assert first not in others
        assert drill.next(_START) is first  # nothing else is left
        assert drill.answer(first, first.moves[0], _START)
        assert drill.next(_START) is None and drill.known(first, _START) == 1.0
        kept = [drill.known(card, days(5)) for card in drill.cards]
    with Drill(small_book(), path) as drill:
        assert [drill.known(card, days(5)) for card in drill.cards] == kept
        assert kept[0] < min(kept[1:])  # it was forgotten once
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*), sum(correct) FROM answers").fetchone() == (4, 3)


@pytest.mark.parametrize(
    "move", [chess.Move.null(), chess.Move.from_uci("e2e5"), chess.Move.from_uci("e7e5")]
)
def test_what_is_no_legal_move_is_no_answer(move):
    with Drill(small_book(), ":memory:") as drill:
        first = drill.next(_START)
        with pytest.raises(ValueError, match="expected a legal move, or None"):
            drill.answer(first, move, _START)
        assert drill.next(_START) is first and answer(drill, _START) is first
        assert drill.known(first, _START) == 1.0


def test_progress_belongs_to_positions_of_a_side(tmp_path):
    path = tmp_path / "progress.sqlite"
    with Drill(small_book(), path) as drill:
        for _ in range(4):
            answer(drill, _START)
    shorter = Book(chess.Board(), chess.WHITE, small_book().positions[:2])
    with Drill(shorter, path) as drill:
        assert drill.next(_START) is None


def test_transpositions_are_one_card():
    positions = [
        entry("d2d4 d7d5 g1f3 g8f6", {"c2c4": 1.0}, 0.25, 0.1),
        entry("g1f3 d7d5 d2d4 g8f6", {"c2c4": 1.0}, 0.75, 0.2),
    ]
    with Drill(Book(chess.Board(), chess.WHITE, positions), ":memory:", seed=1) as drill:
        (card,) = drill.cards
        assert card.worth == pytest.approx(0.3)
        drawn = [drill.line(card) is positions[1] for _ in range(400)]
        assert 0.65 < sum(drawn) / 400 < 0.85


def test_replies_are_drawn_by_reach():
    book = small_book()
    with Drill(book, ":memory:", seed=1) as drill:
        drawn = [drill.reply(book.positions[0], chess.Move.from_uci("e2e4"))[1].reach for _ in range(400)]
        assert 0.6 < drawn.count(0.7) / 400 < 0.8
        assert drill.reply(book.positions[3], chess.Move.from_uci("f1b5")) is None


def test_files_that_are_no_progress(tmp_path):
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at " * 100)
    with pytest.raises(ValueError, match="expected path to be a file of progress"):
        Drill(small_book(), tmp_path / "text")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE games (pgn TEXT)")
    with pytest.raises(ValueError, match="another database"):
        Drill(small_book(), other)


def random_book(rng, size=40):
    """Return a tree of histories whose worths are sums of gains that are reached below."""
    grown: dict[tuple[chess.Move, ...], chess.Board] = {(): chess.Board()}
    while len(grown) < size:
        line = list(grown)[int(rng.integers(len(grown)))]
        board = grown[line].copy()
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


def learner(book, rng, by_cost, questions=10, sessions=8):
    """Return expected losses after each day of a learner who forgets by fsrs, asked by cost or at random."""
    losses = []
    with Drill(book, ":memory:", seed=1) as drill:
        for day in range(sessions):
            now, shown_today = days(2 * day), set()
            for _ in range(questions):
                card = drill.next(now) if by_cost else drill.cards[int(rng.integers(len(drill.cards)))]
                if card is None:
                    break
                knows = card.epd in shown_today or rng.random() < drill.known(card, now)
                shown_today.add(card.epd)
                drill.answer(card, card.moves[0] if knows else None, now)
            losses.append(drill.expected_loss(days(2 * day + 1)))
    return losses


def test_a_learner_loses_less_than_by_random_questions(cases):
    """Less expected loss over the days of study, whatever the seed."""
    for seed in range(cases(20)):
        book = random_book(np.random.default_rng(seed))
        by_cost, at_random = (
            statistics.mean(learner(book, np.random.default_rng([seed, 7]), how)) for how in (True, False)
        )
        assert by_cost < at_random, seed
