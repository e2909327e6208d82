"""Learning a book by heart: the next question, and the probability that a position is forgotten.

A card is a position of the book. Let w be the loss from forgetting it (`BookPosition.worth`, over all
histories that lead to it) and R the probability that it is still known, by the model of fsrs (free spaced
repetition scheduler), given the times and the results of its answers. The next card is the one with the
largest w (1 - R). The worth of a position includes that of the positions after it, so the first positions of
a line are asked first.

A game's expected loss to forgetting is a sum over the book's positions h,

    product of R over the positions of the book before h, times (1 - R(h)) w(h),

since a line fails at the first position that is forgotten, and all that follows is lost there. Cards are
assumed to be forgotten independently.

fsrs counts in whole days: a card that was answered today is known today, whatever the answer. So wrong
answers are asked again before the end, without a rating.

Progress is stored in an SQLite file, a row for each card and a log of all answers. A card belongs to the EPD
and the book's side, so another book with the same positions finds it. The file is not trusted.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.results import Shown
from precomp_games.chess.data.book import Book, BookPosition
from precomp_games.chess.engines.store import first_strange, refuse_journal_of_several
from precomp_games.chess.plan.preparation import predecessors

_TABLES = """
CREATE TABLE IF NOT EXISTS cards (
  epd TEXT NOT NULL, side TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (epd, side)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
  time TEXT NOT NULL, epd TEXT NOT NULL, side TEXT NOT NULL, answer TEXT NOT NULL, correct INTEGER NOT NULL
);
"""
_MOST_DAYS = 36_500.0  # longest interval of fsrs
_LONGEST_STATE = 10_000  # characters of a card
_VERSION = 1
_AGAIN_AFTER = 4  # other questions before a wrong answer is asked again


@dataclasses.dataclass(frozen=True)
class DrillCard:
    """A position to learn.

    Attributes:
      epd: The position.
      positions: The book's histories that lead to it.
      moves: The book's moves there, likeliest first.
      worth: Loss from forgetting it, over all games.
    """

    epd: str
    positions: tuple[BookPosition, ...]
    moves: tuple[chess.Move, ...]
    worth: float


class Drill(Shown):
    """A book, with the progress of learning it.

    Attributes:
      cards: A card for each distinct position, the most valuable first.
    """

    @public
    def __init__(
        self, book: Book, path: checks.FilePath, *, seed: checks.NonNegativeInt | None = None
    ) -> None:
        """Open the progress, and make the file if there is none.

        Args:
          book: the book to learn.
          path: of the SQLite file; ":memory:" for none.
          seed: of random draws: the histories of questions. None: others each time.

        Raises:
          ValueError: a book without positions, or a file that is no progress.
        """
        self.book = book
        self.cards = book_cards(book)
        self._questions = [(card, position) for card in self.cards for position in card.positions]
        if not self.cards:
            raise ArgumentError("expected a book with positions, got an empty one")
        self._rng = np.random.default_rng(seed)
        import fsrs  # here, since the import takes a third of a second

        self._fsrs: Any = fsrs
        self._scheduler = self._fsrs.Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
        self._side = chess.COLOR_NAMES[book.side]
        self._again: dict[str, tuple[int, DrillCard]] = {}  # by EPD, with the number of questions to wait for
        self._asked = 0
        try:
            refuse_journal_of_several(path)
            self._file = sqlite3.connect(path)
        except sqlite3.Error as error:
            raise ArgumentError(f"expected path to be a file, got {path!r} ({one_line(error)})") from None
        try:
            self._open()
            self._known = dict(self._stored())
        except (sqlite3.Error, ValueError) as error:
            self._file.close()
            raise ArgumentError(
                f"expected path to be a file of progress, got {path!r} ({one_line(error)})"
            ) from None

    def _open(self) -> None:
        """Make the tables if there are none; raise ValueError if there are others."""
        version = self._file.execute("PRAGMA user_version").fetchone()[0]
        tables = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and (version != _VERSION or first_strange(self._file, _TABLES) is not None):
            raise ValueError("which is another database")
        self._file.executescript(_TABLES + f"PRAGMA user_version = {_VERSION};")

    def _stored(self) -> Iterator[tuple[str, Any]]:
        """Yield (EPD, fsrs's card) of this book's cards that were answered before."""
        ours = {card.epd for card in self.cards}
        for epd, text in self._file.execute("SELECT epd, state FROM cards WHERE side = ?", (self._side,)):
            if epd in ours:
                yield epd, self._card(text)

    def _card(self, text: Any) -> Any:
        """Return fsrs's card as `answer` stored it; fsrs itself accepts nearly anything."""
        try:
            fields = json.loads(text if isinstance(text, str) and len(text) < _LONGEST_STATE else "")
            card = self._fsrs.Card.from_dict(fields)
            for name in ("stability", "difficulty"):
                checks.check_number(getattr(card, name), name, above=0.0, most=_MOST_DAYS)
            for name in ("due", "last_review"):
                _time(getattr(card, name), name)
            if card.state != self._fsrs.State.Review or card.step is not None:
                raise ValueError("a card that is still to be learned")
            self._scheduler.review_card(card, self._fsrs.Rating.Good, card.due)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"expected the state of a card, got {shown(text)}: {one_line(error)}") from None
        return card

    @public
    def known(self, card: DrillCard, now: _Time) -> float:
        """Return R, in [0, 1]; 0 for a card that was never answered, or is asked again after a wrong answer.

        Raises:
          ValueError: a time without a time zone.
        """
        found = self._known.get(card.epd)
        if found is None or card.epd in self._again:
            return 0.0
        return float(self._scheduler.get_card_retrievability(found, now))

    @public
    def expected_loss(self, now: _Time) -> float:
        """Return the expected loss of a game with the book to forgetting, see the module.

        Raises:
          ValueError: a time without a time zone.
        """
        by_history = {each.history: self.known(card, now) for card in self.cards for each in card.positions}
        positions, before = self.book.positions, predecessors(self.book)
        still_on = np.ones(len(positions) + 1)  # of a position and all before it; the last is the start
        loss = 0.0
        for k in sorted(range(len(positions)), key=lambda k: len(positions[k].history)):
            known = by_history[positions[k].history]
            still_on[k] = still_on[before[k]] * known
            loss += still_on[before[k]] * (1.0 - known) * max(positions[k].worth, 0.0)
        return float(loss)

    @public
    def next(self, now: _Time, least: float = 0.0) -> DrillCard | None:
        """Return the next card to ask; None if none is worth it.

        Args:
          now: with a time zone.
          least: the smallest w (1 - R) that is worth a question.

        Raises:
          ValueError: a time without a time zone.
        """
        again = [card for when, card in self._again.values() if when <= self._asked]
        if again:
            return again[0]

        def loss(card: DrillCard) -> float:
            return card.worth * (1.0 - self.known(card, now))

        best = max((card for card in self.cards if card.epd not in self._again), key=loss, default=None)
        if best is not None and loss(best) > least:
            return best
        return next((card for _, card in self._again.values()), None)

    @public
    def line(self, card: DrillCard) -> BookPosition:
        """Return a history to ask a card with, drawn by reach."""
        reach = [position.reach for position in card.positions]
        return card.positions[self._drawn(reach if any(reach) else [1.0] * len(reach))]

    @public
    def way(self, position: BookPosition) -> list[tuple[DrillCard, BookPosition]]:
        """Return the questions on a line from its first move on, up to a position and with it."""
        line = position.history
        before = [pair for pair in self._questions if pair[1].history == line[: len(pair[1].history)]]
        return sorted(before, key=lambda pair: len(pair[1].history))

    @public
    def reply(self, position: BookPosition, move: chess.Move) -> tuple[DrillCard, BookPosition] | None:
        """Return the next question on a line: a card, and the history after a reply, drawn by reach.

        Args:
          position: position of the last question.
          move: the move played there.

        Returns:
          None if the line ends.
        """
        line = (*position.history, move)
        following = [pair for pair in self._questions if pair[1].history[:-1] == line]
        reach = [each.reach for _, each in following]
        return following[self._drawn(reach)] if any(reach) else None

    def _drawn(self, weights: Sequence[float]) -> int:
        """Return the index of a random draw."""
        shares = np.array(weights)
        return int(self._rng.choice(len(shares), p=shares / shares.sum()))

    @public
    def answer(self, card: DrillCard, move: chess.Move | None, now: _Time) -> bool:
        """Record an answer.

        Args:
          card: the card of the question.
          move: the answer; None for "I do not know".
          now: with a time zone.

        Returns:
          Whether the book plays it.

        Raises:
          ValueError: a move that is not legal, a time without a time zone, or the file cannot be written.
        """
        if move is not None and not chess.Board(f"{card.epd} 0 1").is_legal(move):
            raise ArgumentError(f"expected a legal move, or None, got {move.uci()} in {card.epd}")
        self._asked += 1
        correct = move in card.moves
        repeated = self._again.pop(card.epd, None)
        if not correct:
            self._again[card.epd] = self._asked + _AGAIN_AFTER, card
        if repeated:
            return correct
        rating = self._fsrs.Rating.Good if correct else self._fsrs.Rating.Again
        before = self._known.get(card.epd) or self._fsrs.Card()
        after, _ = self._scheduler.review_card(before, rating, now.astimezone(datetime.UTC))
        try:
            with self._file:
                self._file.execute(
                    "INSERT OR REPLACE INTO cards VALUES (?, ?, ?)",
                    (card.epd, self._side, json.dumps(after.to_dict())),
                )
                self._file.execute(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?)",
                    (now.isoformat(), card.epd, self._side, move.uci() if move else "", correct),
                )
        except sqlite3.Error as error:
            raise ArgumentError(f"expected progress that can be written, got {one_line(error)}") from None
        self._known[card.epd] = after
        return correct

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Drill:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def book_cards(book: Book) -> tuple[DrillCard, ...]:
    """Return a card for each distinct position, the most valuable first."""
    cards, by_epd = list[DrillCard](), dict[str, list[BookPosition]]()
    for position, board in zip(book.positions, book.boards, strict=True):
        by_epd.setdefault(board.epd(), []).append(position)
    for epd, positions in by_epd.items():
        odds: dict[chess.Move, float] = {}
        for position in positions:
            for entry in position.moves:
                if entry.probability > 0.0:
                    odds[entry.move] = odds.get(entry.move, 0.0) + position.reach * entry.probability
        worth = sum(max(position.worth, 0.0) for position in positions)
        moves = tuple(sorted(odds, key=lambda move: (-odds[move], move.uci())))
        cards.append(DrillCard(epd, tuple(positions), moves, worth))
    return tuple(sorted(cards, key=lambda card: (-card.worth, card.epd)))


def _time(value: Any, name: str) -> datetime.datetime:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value
    raise ArgumentError(f"expected {name} to be a datetime with a time zone, got {shown(value)}")


_Time = Annotated[datetime.datetime, checks.Check(_time)]
