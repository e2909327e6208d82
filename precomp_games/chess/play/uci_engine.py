"""A UCI engine that plays a book and then another engine, or a policy: for chess programs to play with.

`UciEngine` reads an interface's commands, line by line, and answers. While a game is in the book it answers
at once; elsewhere its player does (`players`). An answer that is not wanted yet (`go infinite`,
`go ponder`) waits for `stop` or `ponderhit`. Lines that are not UCI are ignored with a message, as UCI
demands.

The player gets our own board and its moves, in whatever notation they came: castling also as king takes
rook, letters of any case. Castling rights and en passant squares that a FEN cannot have are dropped. An
unplayable input (an illegal move or a null move, a king in check that is not to move, no king) is no
position: until the next one, `go` is answered by "bestmove 0000" and the reason.

Options: OwnBook (whether the book is played), and the player's. If these have UCI_Chess960, the player
plays Chess960 once that is set, and castling is written as king takes rook.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import chess
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games.chess.data.book import Book
from precomp_games.chess.data.move_counts import PolyglotCounts, warn_of
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.play.match import memorized_rows
from precomp_games.chess.play.players import FOREVER, LONGEST_LINE, NO_MOVE, Player

_NAME = "precomp-games"
_AUTHOR = "the precomp-games authors"
_ANSWER_SECONDS = 10.0
_ENTRY_BYTES = 16
_CHESS960 = "uci_chess960"
_NO_POSITION = "bestmove 0000"

UciBook = Callable[[chess.Board], Mapping[chess.Move, float]]
"""A function from a board, with the game before it on the stack, to weights of moves, or nothing."""


@public
def uci_book(book: Book | str) -> UciBook:
    """Return a book for `UciEngine`.

    Args:
      book: a `Book`, which is played by history, as in matches; or the path of a Polyglot file, which answers
        wherever a position comes up.

    Raises:
      ValueError: a file without a readable entry.
      OSError: the file cannot be read.
    """
    if isinstance(book, Book):
        rows, start = memorized_rows(book), book.start.fen(en_passant="fen")

        def by_history(board: chess.Board) -> Mapping[chess.Move, float]:
            if board.root().fen(en_passant="fen") != start:
                return {}
            row = rows.get(tuple(map(action_of, board.move_stack)), {})
            return {move_of(action): p for action, p in row.items()}

        return by_history
    size = os.path.getsize(book)
    if size % _ENTRY_BYTES:
        raise ArgumentError(
            f"expected a Polyglot book, entries of {_ENTRY_BYTES} bytes, got {shown(book)} of {size} bytes, "
            "whose last entry breaks off"
        )
    if not size:  # a book without positions
        return lambda board: {}
    counts = PolyglotCounts.read(book)
    warn_of(book, counts.strange)

    def by_position(board: chess.Board) -> Mapping[chess.Move, float]:
        return {move_of(action): weight for action, weight in counts.at(board).items() if weight > 0.0}

    return by_position


class UciEngine:
    """A UCI engine for chess programs: a book and a player."""

    @public
    def __init__(
        self,
        player: Player,
        book: UciBook | None = None,
        *,
        say: Callable[[str], Any] = print,
        seed: checks.Seed | None = None,
    ) -> None:
        """Make an engine that waits for commands.

        Args:
          player: the player out of book; it is closed when `run` ends.
          book: of `uci_book`; None for no book.
          say: receives a line of output.
          seed: of draws among a book's moves; None: they differ from one start of the program to the next.
        """
        self._player = player
        self._book = book
        self._print, self._printing = say, threading.Lock()
        self._rng = np.random.default_rng(seed)
        self._own_book = True
        self._chess960 = False
        self._position = "startpos"  # as given
        self._waiting: str | None = None  # an answer that is not wanted yet
        self._idle = threading.Event()  # set while no search is under way
        self._idle.set()

    @public
    def run(self, lines: Iterable[str]) -> None:
        """Execute commands until "quit", or the end of the input.

        Args:
          lines: the interface's commands, as they come.
        """
        try:
            for raw in lines:
                line = " ".join(checks.check_instance(raw, str, "lines")[:LONGEST_LINE].split())
                if line == "quit":
                    break
                try:
                    self._handle(line)
                except ValueError as error:
                    self._say(f"info string error: {one_line(error)}")
            if not self._idle.is_set():  # its answer is still sent, as other engines do
                self._player.command("stop")
                self._idle.wait(_ANSWER_SECONDS)
                with self._printing:  # until it is sent
                    pass
        finally:
            self._player.close()

    def _say(self, line: str) -> None:
        with self._printing:
            if line.startswith("bestmove"):
                self._idle.set()  # first: an interface may send its next go as soon as it reads this
            self._print(line)

    def _handle(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "uci":
            self._introduce()
        elif word == "isready":
            self._player.ready()
            self._say("readyok")
        elif word == "ucinewgame":
            self._player.new_game()
        elif word == "setoption":
            self._set_option(rest)
        elif word == "position":
            self._position = rest
        elif word == "go":
            self._go(line)
        elif word in ("stop", "ponderhit"):
            if self._waiting is not None:
                answer, self._waiting = self._waiting, None
                self._say(answer)
            elif not self._idle.is_set():
                self._player.command(word)
        elif word not in ("", "debug", "register"):
            raise ValueError(f"expected a UCI command, got {line[:80]!r}")

    def _introduce(self) -> None:
        self._say(f"id name {_NAME}: {self._player.name}")
        self._say(f"id author {_AUTHOR}")
        self._say("option name OwnBook type check default true")
        for line in self._player.options:
            if not line.startswith("option name OwnBook "):
                self._say(line)
        self._say("uciok")

    def _set_option(self, text: str) -> None:
        name, separator, value = text.removeprefix("name ").partition(" value ")
        if not text.startswith("name ") or not name:
            raise ValueError(f"expected setoption name NAME value VALUE, got {text[:80]!r}")
        if name.lower() != "ownbook":
            if name.lower() == _CHESS960 and any(_CHESS960 in line.lower() for line in self._player.options):
                self._chess960 = value.lower() == "true"
            self._player.set_option(name, value if separator else None)
        elif value.lower() in ("true", "false"):
            self._own_book = value.lower() == "true"
        else:
            raise ValueError(f"expected OwnBook to be true or false, got {value[:80]!r}")

    def _board(self) -> tuple[chess.Board, str]:
        """Return the board after the given moves, and the command that sends it to a player.

        Raises:
          ValueError: the given moves cannot be played.
        """
        given, _, moves = f"{self._position} ".partition(" moves ")
        kind, _, fen = given.strip().partition(" ")
        if kind != "fen" and given.strip() != "startpos":
            raise ValueError(f"expected position startpos or fen, got {self._position[:80]!r}")
        board = _start(fen) if kind == "fen" else chess.Board()
        if board.chess960 and not self._chess960:
            raise ValueError(f"expected UCI_Chess960 to be set for a position of Chess960, got {fen[:100]!r}")
        start = f"fen {board.fen(shredder=board.chess960, en_passant='fen')}" if fen else kind
        words = ["position", start, *(["moves"] if moves.strip() else [])]
        for text in moves.split():
            move = board.parse_uci(text.lower())
            if not move:
                raise ValueError(f"expected moves, got the null move {text!r}")
            words.append(board.uci(move, chess960=self._chess960))
            board.push(move)
        return board, " ".join(words)

    def _go(self, line: str) -> None:
        if not self._idle.is_set() or self._waiting is not None:
            raise ValueError("expected stop before the next go, since a search is under way")
        answer: str | None
        try:
            board, position = self._board()
        except ValueError as error:
            self._say(f"info string error: {one_line(error)}")
            answer = _NO_POSITION
        else:
            line = self._written(board, line)
            answer = self._from_book(board, line) if any(board.legal_moves) else f"bestmove {NO_MOVE}"
        if answer is None:
            self._idle.clear()
            self._player.go(board, position, line, functools.partial(self._hear, board))
        elif FOREVER.intersection(line.split()):
            self._waiting = answer
        else:
            self._say(answer)

    def _hear(self, board: chess.Board, line: str) -> None:
        """Pass on the player's line."""
        self._say(self._written(board, line) if line.startswith("bestmove") else line)

    def _written(self, board: chess.Board, line: str) -> str:
        """Return a line in which moves are written in our notation."""

        def written(word: str) -> str:
            with contextlib.suppress(ValueError):
                return board.uci(board.parse_uci(word.lower()), chess960=self._chess960)
            return word

        return " ".join(map(written, line.split()))

    def _from_book(self, board: chess.Board, go: str) -> str | None:
        """Return the book's answer, or None."""
        if not self._own_book or self._book is None:
            return None
        _, only, wanted = go.partition(" searchmoves ")
        known = {
            move: weight
            for move, weight in self._book(board).items()
            if not only or board.uci(move, chess960=self._chess960) in wanted.split()
        }
        if not known:
            return None
        moves, weights = list(known), np.array(list(known.values()), np.float64)
        drawn = moves[int(self._rng.choice(len(moves), p=weights / weights.sum()))]
        self._say(f"info string book: {', '.join(board.san(move) for move in moves)}")
        return f"bestmove {board.uci(drawn, chess960=self._chess960)}"


def _start(fen: str) -> chess.Board:
    """Return the board of a FEN, without impossible rights; of Chess960 if only that castles so.

    Raises:
      ValueError: the position is not valid.
    """
    board = chess.Board(fen, chess960=True)
    board.castling_rights = board.clean_castling_rights()
    board.chess960 = False
    board.chess960 = board.castling_rights != board.clean_castling_rights()
    if board.status() & chess.STATUS_INVALID_EP_SQUARE:
        board.ep_square = None
    if not board.is_valid():
        raise ValueError(f"expected a valid position, got {fen[:100]!r}")
    return board
