r"""Asks you the positions of a book, those that cost most first, and remembers which you knew.

  precomp-games drill --from=output/chess_preparation --questions=20
  precomp-games drill --book=mine.pgn

asks in the terminal for the moves of a book of `precomp-games prepare`, `opponent` or `judge`, or of any
repertoire, each position once, whatever moves lead there. Answer with a move (Nf3 or g1f3), with Enter twice
if you do not know, or with q to stop; after anything else the question is repeated. The next question is the
one with the highest cost of forgetting times probability of having been forgotten (fsrs). After a right
answer the opponent replies, drawn as it plays, and the line goes on while its questions are worth asking;
--from_move_1 asks whole lines. After a wrong answer you see what it costs and how an engine replies, if the
preparation or the searches in --store have it. For --book the cost of forgetting is unknown: the positions
that most of its lines pass through come first, and any move of the book is right; `precomp-games judge`
makes a folder with the costs. Progress is kept in --progress; each answer counts at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import math
import os
import sys
from collections.abc import Sequence

import chess
from absl import flags

from precomp_games._support import checks
from precomp_games.chess.data.book import BookPosition, percent
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.store import EvaluationStore
from precomp_games.chess.model.engine_policies import pov_score
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.study.drill import Drill, DrillCard
from precomp_games.chess.study.sentences import BookSentences
from precomp_games.chess.study.words import pawns_text, points, why_words
from precomp_games.commands import _app, _chess, _flags

_KNOWN = 0.9  # a position counts as known from this probability on
_GOES_ON = 0.2  # a line goes on where this much of the most urgent question is at stake
_STOP = ("q", "quit", "exit", "stop")


@dataclasses.dataclass
class Flags:
    """Flags of a drill.

    Attributes:
      questions: Ask at most so many questions.
      progress: File that keeps your progress.
      store: File of kept searches, for the costs of wrong answers and the replies to them.
      unicode: Show the board with chess symbols. Default: if the terminal's encoding has them.
      from_move_1: Ask whole lines, from move 1 to the most costly position, and on to their ends.
      drill_seed: Seed of the lines that are drawn. Default: other lines each time.
    """

    questions: checks.PositiveInt = 20
    progress: str = "output/drill.sqlite"
    store: str = _flags.STORE
    unicode: bool | None = None
    from_move_1: bool = False
    drill_seed: checks.NonNegativeInt | None = None


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, _chess.FolderFlags, Flags)


def run(given: flags.FlagValues) -> None:
    """Drill the book of --from, or of --book."""
    _has_symbols(given.unicode)  # a wrong flag is an error before any work
    made = None
    if given.book:
        _chess.check_alone(given)
        book = _chess.own_book(given).by_lines()
    else:
        made = _chess.earlier_run(given).made
        book = made.book
    _app.output_folder(os.path.dirname(given.progress) or ".")
    with Drill(book, given.progress, seed=given.drill_seed) as drill:
        right, asked = _questions(drill, made, given)
        now = _now()
        known = sum(drill.known(card, now) > _KNOWN for card in drill.cards)
        loss = drill.expected_loss(now)
        lost = f"What may be forgotten costs {points(loss)} points in 100 games."
        if made is None:
            lost = f"Of all lines {percent(loss)} pass through what may be forgotten."
        print(f"\n{right} of {asked} right. {known} of {len(drill.cards)} positions are known by now. {lost}")


def _has_symbols(unicode: bool | None) -> bool:
    """Return whether boards are shown with chess symbols."""
    encoding = sys.stdout.encoding
    try:
        "♔·".encode(encoding)
    except UnicodeEncodeError:
        if unicode:
            raise ValueError(
                f"--unicode: expected an encoding with chess symbols, got {encoding} (see --nounicode)"
            ) from None
        return False
    return unicode is not False


def _show(drill: Drill, position: BookPosition, unicode: bool | None, of: str) -> chess.Board:
    """Print a question, which comes up in a share "of games" or "of lines", and return its board."""
    board = drill.book.start.copy()
    moves = board.variation_san(position.history) or "(start)"
    for move in position.history:
        board.push(move)
    print(f"\n{moves}   {100 * position.reach:.3g} % {of}")
    print(_drawn(board, drill.book.side, _has_symbols(unicode)))
    return board


def _drawn(board: chess.Board, side: chess.Color, symbols: bool) -> str:
    """Return a board with its coordinates, from a side."""
    text = board.unicode(empty_square="·") if symbols else str(board)
    turned = slice(None, None, 1 if side == chess.WHITE else -1)
    ranks = zip("87654321"[turned], text[turned].splitlines(), strict=True)
    files = " ".join(" " + "abcdefgh"[turned])
    return "\n".join((*(f"{rank} {row}" for rank, row in ranks), files))


def _ask(board: chess.Board) -> tuple[chess.Move | None, bool]:
    """Return (the move that was answered, whether to go on); what is no legal move is no answer."""
    empty = False  # whether the line before was
    while True:
        try:
            text = input("Your move: ").strip()
        except EOFError:
            return None, False
        if text.lower() in _STOP:
            return None, False
        if not text and empty:
            return None, True
        for parse in (board.parse_san, board.parse_uci):
            with contextlib.suppress(ValueError):
                if move := parse(text):  # python-chess also reads the null move, which is none
                    return move, True
        empty = not text
        if empty:
            print("Enter once more: I do not know.")
        else:
            how = "answer as in Nf3 or g1f3. Enter twice: I do not know. q: stop."
            print(f"{text!r} is no legal move here: {how}")


def _questions(drill: Drill, made: Preparation | None, given: flags.FlagValues) -> tuple[int, int]:
    """Ask questions; return how many answers were right, and how many there were."""
    right, asked, sentences = 0, 0, None if made is None else BookSentences(made)
    line: tuple[DrillCard, BookPosition] | None = None  # the continuation of the last line
    waiting: list[tuple[DrillCard, BookPosition]] = []  # rest of a line that is asked from its first move
    while asked < given.questions:
        best = drill.next(_now())
        if best is None:
            print("\nNothing is left to ask today.")
            break
        if given.from_move_1 and line is None:
            waiting = waiting or drill.way(drill.line(best))
            line = waiting.pop(0)
        elif line is None or (
            not given.from_move_1 and _urgent(drill, line[0]) < _GOES_ON * _urgent(drill, best)
        ):
            line = best, drill.line(best)
        card, position = line
        board = _show(drill, position, given.unicode, "of lines" if made is None else "of games")
        move, goes_on = _ask(board)
        if not goes_on:
            break
        correct = drill.answer(card, move, _now())
        asked, right = asked + 1, right + correct
        played = " or ".join(board.san(each) for each in card.moves)
        why = ""
        if sentences is not None:
            words = _why(board, card, position, move), sentences.of_position(position, whole=False)
            why = f" {' '.join(words)}".rstrip()
        print(f"{'Right' if correct else 'No'}: {played}.{why}")
        if move is not None and made is not None and not correct:
            print(_searched(board, (card.moves[0], move), made, given.store), end="")
        if not correct or move is None:
            move = card.moves[0] if given.from_move_1 else None
        line = None if move is None or waiting else drill.reply(position, move)
    return right, asked


def _why(board: chess.Board, card: DrillCard, position: BookPosition, move: chess.Move | None) -> str:
    """Explain why the card is worth knowing, with the cost of the answer, or else of the best other move."""
    others = sorted(position.others, key=lambda other: (other[0] != move, other[1]))
    sans = [(board.san(move), loss) for move, loss in others if board.is_legal(move)]
    return why_words(math.fsum(each.reach for each in card.positions), card.worth, sans)


def _searched(board: chess.Board, moves: Sequence[chess.Move], made: Preparation, path: str) -> str:
    """Return a line with stored scores of the book's move and of the answer, and the reply to the answer.

    "" where the preparation's engines have searched neither the position nor the one after the answer.
    """
    then, settings = board.copy(stack=False), made.settings
    then.push(moves[-1])
    asked = (
        (made.engines[0], settings.analyst_limit, settings.multipv),
        (made.engines[1], settings.opponent_limit, settings.top_k),
    )
    stored = path if os.path.exists(path) else str(_flags.DATA / "evaluations.sqlite")
    with contextlib.suppress(EngineError, ValueError), EvaluationStore(stored, read_only=True) as store:
        for key in asked:
            found = store.get_many(*key, [board.epd(), then.epd()])
            parts = []
            if (here := found.get(board.epd())) is not None:
                scores = {line.move: pawns_text(pov_score(line, board.turn)) for line in here.lines}
                parts += [f"{board.san(move)} {scores[move.uci()]}" for move in moves if move.uci() in scores]
            if (after := found.get(then.epd())) is not None:
                reply, score = then.parse_uci(after.lines[0].move), pov_score(after.lines[0], then.turn)
                parts.append(f"{board.san(moves[-1])} is answered by {then.san(reply)}, {pawns_text(score)}")
            if parts:
                return f"{key[0]}, in pawns for White: {'; '.join(parts)}.\n"
    return ""


def _urgent(drill: Drill, card: DrillCard) -> float:
    return card.worth * (1.0 - drill.known(card, _now()))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
