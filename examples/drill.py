r"""Do you know your book? Asks its positions, what costs most first, and remembers what you knew.

  python examples/drill.py --book_dir=output/chess_preparation --questions=20

asks in the terminal for the moves of a book of examples/chess_preparation.py. Answer with a move (Nf3 or
g1f3), with an empty line if you do not know, or with q to stop. What is asked next is what forgetting costs,
times how likely it is forgotten by now (fsrs). After a right answer the opponent replies, drawn as it plays,
and the line goes on while that is worth asking. Progress is kept in --progress; each answer counts at once.

Without --book_dir it drills the book that the shipped searches give.
"""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Sequence

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import book_match
import chess
import chess_runs
import preparation_results
from absl import flags

from precomp_games.chess import Book, BookPosition, Drill, DrillCard

_KNOWN = 0.9  # from which probability on a position counts as known
_GOES_ON = 0.2  # a line goes on where this much of the most urgent question is at stake

FLAGS = flags.FLAGS
_QUESTIONS = flags.DEFINE_integer("questions", 20, "How many questions at most.", lower_bound=1)
_PROGRESS = flags.DEFINE_string("progress", "output/drill.sqlite", "Where it is kept what you know.")
_UNICODE = flags.DEFINE_bool(
    "unicode", None, "Whether the board has chess symbols. Default: where the terminal's encoding has them."
)
_SEED = flags.DEFINE_integer("drill_seed", None, "Of drawn lines. Default: others each time.", lower_bound=0)
FLAGS.set_default("output_dir", "output/drill")


def book_of_flags() -> Book:
    """The book in --book_dir, or the one that is prepared by the flags."""
    if len(FLAGS.book_dir) > 1:
        raise ValueError("--book_dir: expected one book, got several")
    for folder in FLAGS.book_dir:
        return preparation_results.read_folder(folder).book
    with chess_runs.engines() as engines:
        return book_match.prepare(engines, common.output_folder(FLAGS.output_dir), FLAGS.budget).book


def has_symbols() -> bool:
    """Whether boards are shown with chess symbols."""
    encoding = sys.stdout.encoding
    try:
        "♔·".encode(encoding)
    except UnicodeEncodeError:
        if _UNICODE.value:
            raise ValueError(
                f"--unicode: expected an encoding with chess symbols, got {encoding} (see --nounicode)"
            ) from None
        return False
    return _UNICODE.value is not False


def show(drill: Drill, position: BookPosition) -> chess.Board:
    """Prints a question; returns its board."""
    board = drill.book.start.copy()
    moves = board.variation_san(position.history) or "(start)"
    for move in position.history:
        board.push(move)
    print(f"\n{moves}   {100 * position.reach:.3g} % of games")
    print(board.unicode(orientation=drill.book.side, empty_square="·") if has_symbols() else board)
    return board


def ask(board: chess.Board) -> tuple[chess.Move | None, bool]:
    """(the move that was answered, whether to go on)."""
    while True:
        try:
            text = common.typed("Your move: ").strip()
        except EOFError:
            return None, False
        if text.lower() in ("q", "quit"):
            return None, False
        if not text:
            return None, True
        for parse in (board.parse_san, board.parse_uci):
            try:
                return parse(text), True
            except ValueError:
                pass
        print(f"{text!r} is no legal move here, in SAN or UCI. An empty line: I do not know. q: stop.")


def main(argv: Sequence[str]) -> None:
    del argv
    has_symbols()  # a wrong flag is told before any work
    book = book_of_flags()
    common.output_folder(os.path.dirname(_PROGRESS.value) or ".")
    with Drill(book, _PROGRESS.value, seed=_SEED.value) as drill:
        right, asked = run(drill)
        now = _now()
        known = sum(drill.known(card, now) > _KNOWN for card in drill.cards)
        print(
            f"\n{right} of {asked} right. {known} of {len(drill.cards)} positions are known by now. What may "
            f"be forgotten costs {drill.expected_loss(now):.3f} points a game."
        )


def run(drill: Drill) -> tuple[int, int]:
    """Asks; returns how many answers were right, of how many."""
    right = asked = 0
    line: tuple[DrillCard, BookPosition] | None = None  # where the last one goes on
    while asked < _QUESTIONS.value:
        best = drill.next(_now())
        if best is None:
            print("\nNothing is left to ask today.")
            break
        if line is None or _urgent(drill, line[0]) < _GOES_ON * _urgent(drill, best):
            line = best, drill.line(best)
        card, position = line
        board = show(drill, position)
        move, goes_on = ask(board)
        if not goes_on:
            break
        correct = drill.answer(card, move, _now())
        asked, right = asked + 1, right + correct
        played = " or ".join(board.san(each) for each in card.moves)
        print(f"{'Right' if correct else 'No'}: {played}. Forgetting it costs {card.worth:.4f}.")
        line = drill.reply(position, move) if correct and move is not None else None
    return right, asked


def _urgent(drill: Drill, card: DrillCard) -> float:
    return card.worth * (1.0 - drill.known(card, _now()))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


if __name__ == "__main__":
    common.run(main)
