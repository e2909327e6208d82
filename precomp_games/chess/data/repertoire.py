"""Reads a person's own book from files: the moves that one side plays, by position.

A repertoire comes from PGN, one game with variations or many, and from Polyglot files (names that end in
".bin"). A player knows positions: whatever the order of moves, a position is known once, by its EPD. If
files give several moves for it, the first one is played; the others are kept, and counted.

PGN files are not trusted. Every variation is a line that is read to its end, or to its first move that
cannot be read, or is refused, and each is counted. Left out are: other rules, games that begin elsewhere
than the book, what follows a null move, and moves of one's own that the file marks as mistakes ("?", "??",
$2, $4), since books show them as warnings. Comments and other marks are passed over. After an unreadable
move python-chess would go on from the wrong position; here a null move replaces it, which the alternative to
it takes back, and the rest is passed over. python-chess finds moves in prose too: a file without a tag is
refused if more of its lines break off at an unreadable word than do not.

A Polyglot file has keys, and no lines. It is walked from the start, with the book's moves for one side and
all legal ones for the other. Entries that cannot be reached so are not found; they are counted, and so are
the file's irregularities.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import chess
import chess.pgn

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Result
from precomp_games.chess.data.book import Book, BookMove, BookPosition
from precomp_games.chess.data.move_counts import REPEATED, UNWEIGHTED, PolyglotCounts
from precomp_games.chess.data.pgn_files import GameReport, GameVisitor, game_texts, visited
from precomp_games.chess.game import action_of, board_after, check_fen, move_of

_MAX_GAMES = 100_000
_MAX_PLIES = 200  # of a line
_MAX_POSITIONS = 200_000
_MAX_DEPTH = 100  # of variations within variations
_ALONE = 0.5  # the owner's side has at most this part of the other's share of positions with several moves
_MISTAKES = (chess.pgn.NAG_MISTAKE, chess.pgn.NAG_BLUNDER)


@dataclasses.dataclass
class RepertoireReport(GameReport):
    """Counts of what was read of a book's files, and of what was left out, with reasons.

    Attributes:
      lines: Variations that were read, main lines included.
      redundant: Lines with moves of the book's side that are all in earlier lines.
      entries: Entries of Polyglot files that were used.
      mistakes: Moves of the book's side that are marked as mistakes, and left out.
      positions: Distinct positions in which the book has a move.
      transpositions: Positions to which several orders of moves lead.
      contradictions: Positions with several moves, of which the first is played.
      strange: Irregularities of Polyglot files that were read all the same, by description.
    """

    lines: int = 0
    redundant: int = 0
    entries: int = 0
    mistakes: int = 0
    positions: int = 0
    transpositions: int = 0
    contradictions: int = 0
    strange: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def __str__(self) -> str:
        """Return the report in one line."""
        parts = [f"{self.positions} positions"]
        if self.entries:
            parts.append(f"{self.entries} Polyglot entries")
        parts += [f"{self.lines} lines in {GameReport.__str__(self)}"] if self.games or self.left_out else []
        for count, what in (
            (self.transpositions, "positions that several lines reach"),
            (self.contradictions, "with several moves, of which the first counts"),
            (self.redundant, "lines that add nothing"),
            (self.mistakes, "moves marked as mistakes, left out"),
        ):
            parts += [f"{count} {what}"] * (count > 0)
        parts += [f"{count} {what}" for what, count in self.strange.items()]
        return "; ".join(parts)


@dataclasses.dataclass(frozen=True)
class RepertoirePosition:
    """A position of a repertoire, with the book's moves.

    Attributes:
      history: The moves that lead to it, as the files have it first.
      moves: The move that is played, then the other moves of the files.
      source: Source of the first one: a file's name, and the number of the game.
    """

    history: tuple[chess.Move, ...]
    moves: tuple[chess.Move, ...]
    source: str


@dataclasses.dataclass(frozen=True, eq=False)
class Repertoire(Result):
    """A person's own book for one side.

    Attributes:
      start: Position in which lines begin.
      side: chess.WHITE or chess.BLACK, whose book it is.
      positions: The book's positions, by EPD.
      lines: The EPD after each sequence of actions (`action_of`) after which the files have a move.
      report: Counts of what was read.
    """

    start: chess.Board
    side: chess.Color
    positions: Mapping[str, RepertoirePosition] = dataclasses.field(repr=False)
    lines: Mapping[tuple[int, ...], str] = dataclasses.field(repr=False)
    report: RepertoireReport = dataclasses.field(repr=False)

    def __len__(self) -> int:
        """Return the number of distinct positions."""
        return len(self.positions)

    @property
    def player(self) -> int:
        """The side as a player of `ChessGame`."""
        return 0 if self.side == chess.WHITE else 1

    @property
    def longest(self) -> int:
        """Half-moves of the longest line, with the book's last move."""
        return 1 + max(map(len, self.lines))

    def actions_at(self, epd: str) -> tuple[int, ...]:
        """Return the book's actions in a position, the one that is played first; () if it has none."""
        known = self.positions.get(epd)
        return () if known is None else tuple(map(action_of, known.moves))

    @functools.cached_property
    def playable(self) -> frozenset[str]:
        """Positions that lines reach in which the book itself plays its first choices."""
        reached = set()
        for line, epd in self.lines.items():
            own = (k for k in range(len(line)) if line[:k] in self.lines)
            if all(action_of(self.positions[self.lines[line[:k]]].moves[0]) == line[k] for k in own):
                reached.add(epd)
        return frozenset(reached)

    @functools.cached_property
    def following(self) -> Mapping[tuple[int, ...], Sequence[tuple[int, ...]]]:
        """The lines by all of their actions but the last one, a reply."""
        found: dict[tuple[int, ...], list[tuple[int, ...]]] = collections.defaultdict(list)
        for line in self.lines:
            found[line[:-1]].append(line)
        return found

    def by_lines(self) -> Book:
        """Return all lines as a book, for opponents whose replies are unknown.

        A position's reach is the share of lines that pass through it, and so is its worth: all of these lines
        fail if it is forgotten. Of several moves, each is played as often as lines go on with it.
        """
        ends: dict[tuple[int, ...], int] = {}  # number of lines that end behind each line
        for line in sorted(self.lines, key=len, reverse=True):
            for action in self.actions_at(self.lines[line]):
                behind = (*line, action)
                ends[behind] = sum(ends[each] for each in self.following.get(behind, ())) or 1
            ends[line] = sum(ends[*line, action] for action in self.actions_at(self.lines[line]))
        firsts = [line for line in self.lines if len(line) == (self.start.turn != self.side)]
        whole, positions = sum(ends[line] for line in firsts), list[BookPosition]()
        for line in firsts:  # grows as it goes
            actions = self.actions_at(self.lines[line])
            moves = tuple(BookMove(move_of(each), ends[*line, each] / ends[line]) for each in actions)
            share = ends[line] / whole
            positions.append(BookPosition(tuple(map(move_of, line)), moves, share, share))
            firsts += [each for action in actions for each in self.following.get((*line, action), ())]
        return Book(self.start, self.side, positions)


@public
def read_repertoire(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    side: chess.Color | None = None,
    *,
    fen: str = "",
    max_games: checks.PositiveInt = _MAX_GAMES,
    max_plies: checks.PositiveInt = _MAX_PLIES,
) -> Repertoire:
    """Read a person's own book.

    Args:
      paths: a file, or several, the most important one first: PGN, or Polyglot if names end in ".bin".
      side: chess.WHITE or chess.BLACK, its side; None: the side with one move where the other has several.
      fen: start of the book, "" for the usual start. Games that begin elsewhere are left out, and counted.
      max_games: games that are read of a file.
      max_plies: half-moves of a line that are read.

    Raises:
      ValueError: a file is not PGN, or the files have no move of that side, or do not show whose they are;
        the error lists what was read instead.
      OSError: a file cannot be read.
    """
    several = isinstance(paths, Sequence) and not isinstance(paths, str | bytes)
    listed = [checks.check_path(path, "paths") for path in (paths if several else [paths])]  # type: ignore[union-attr]
    if not listed:
        raise ArgumentError(f"expected paths of at least one file, got {shown(paths)}")
    start = check_fen(fen)
    read, problems = list[Repertoire](), list[ArgumentError]()
    for each in chess.COLORS if side is None else (side,):
        try:
            read.append(_read(listed, each, start, max_games, max_plies))
        except ArgumentError as error:
            problems.append(error)
    if not read:
        raise problems[0]
    read.sort(key=lambda book: book.report.contradictions / len(book))
    shares = [book.report.contradictions / len(book) for book in read]
    if len(read) > 1 and (shares[0] > _ALONE * shares[1] or not shares[1]):
        files = ", ".join(map(repr, listed))
        raise ArgumentError(f"expected files that tell whose book it is where no side is given, got {files}")
    return read[0]


def _read(
    paths: Sequence[str], side: chess.Color, start: chess.Board, max_games: int, max_plies: int
) -> Repertoire:
    """Read the book of one side."""
    reader = _Reader(start, side, max_plies)
    for path in paths:
        if path.lower().endswith(".bin"):
            reader.read_polyglot(path)
        else:
            reader.read_pgn(path, max_games)
    if not reader.moves:
        color, files = chess.COLOR_NAMES[side], ", ".join(map(repr, paths))
        hint = f"; fen={reader.elsewhere!r} reads what begins there" if reader.elsewhere else ""
        raise ArgumentError(f"expected moves of {color} in {files}, got none ({reader.report}{hint})")
    return reader.result()


class _Reader:
    """A repertoire under construction."""

    def __init__(self, start: chess.Board, side: chess.Color, max_plies: int) -> None:
        self.start, self.side, self.max_plies = start, side, max_plies
        self.start_epd = start.epd()
        self.report = RepertoireReport()
        self.action = functools.cache(action_of)  # the same moves stand before many others
        self.moves: dict[str, list[int]] = {}
        self.first: dict[str, tuple[tuple[int, ...], str]] = {}  # first history, and its source
        self.lines: dict[tuple[int, ...], str] = {}
        self.source = self.elsewhere = ""  # a file and a game; another start position of games
        self.tags = self.whole = self.broken = 0  # of a PGN file: these distinguish it from prose

    def add(self, epd: str, history: tuple[int, ...], action: int) -> bool:
        """Add a move; return whether it is new."""
        if epd not in self.moves:
            if len(self.moves) >= _MAX_POSITIONS:
                self.report.left_out["moves in more positions than are read"] += 1
                return False
            self.moves[epd], self.first[epd] = [], (history, self.source)
        self.lines.setdefault(history, epd)
        news = action not in self.moves[epd]
        if news:
            self.moves[epd].append(action)
        return news

    def result(self) -> Repertoire:
        ways = collections.Counter(self.lines.values())
        report = self.report
        report.positions = len(self.moves)
        report.transpositions = sum(count > 1 for count in ways.values())
        report.contradictions = sum(len(moves) > 1 for moves in self.moves.values())
        move = functools.cache(move_of)
        positions = {
            epd: RepertoirePosition(
                tuple(map(move, self.first[epd][0])), tuple(map(move, moves)), self.first[epd][1]
            )
            for epd, moves in self.moves.items()
        }
        return Repertoire(self.start, self.side, positions, self.lines, report)

    def read_pgn(self, path: str, max_games: int) -> None:
        """Read a file's games, one after the other."""
        report, name, read = self.report, os.path.basename(path), 0
        self.source = f"{name}, game 1"
        self.tags = self.whole = self.broken = 0
        visitor = functools.partial(_Lines, self)
        games = ((text, game) for text in game_texts(path, report) for game in visited(text, visitor, report))
        for text, game in games:
            game.end_game()
            if game.reason is not None:
                report.left_out[game.reason] += 1
                continue
            if text.too_long:
                game.stop("too much text")
            read += 1
            report.games += 1
            self.source = f"{name}, game {read + 1}"
            if read >= max_games:
                report.left_out["games beyond the number that is read"] += 1
                break
        if not self.tags and self.broken > self.whole:
            raise ArgumentError(
                f"expected moves of {chess.COLOR_NAMES[self.side]} in {path!r}, got none: it has no "
                f"PGN tags, and {self.broken} of {self.broken + self.whole} passages break off"
            )

    def read_polyglot(self, path: str) -> None:
        """Walk through a Polyglot file from the start."""
        book, used = PolyglotCounts.read(path), 0
        self.source = os.path.basename(path)
        self.report.left_out.update(book.left_out)
        self.report.strange.update(book.strange)
        met: set[str] = set()
        waiting = collections.deque[tuple[chess.Board, tuple[int, ...]]]([(self.start.copy(stack=False), ())])
        while waiting:
            board, history = waiting.popleft()
            if board.turn != self.side:
                replies = ((move, board_after(board, move)) for move in list(board.legal_moves))
                waiting += [(after, (*history, action_of(move))) for move, after in replies if book.at(after)]
                continue
            epd = board.epd()
            if len(history) >= self.max_plies or epd in met:
                continue
            met.add(epd)
            ranked = sorted((-weight, action) for action, weight in book.at(board).items() if weight > 0.0)
            for _, action in ranked:
                used += 1
                self.add(epd, history, action)
                waiting.append((board_after(board, move_of(action)), (*history, action)))
        self.report.entries += used
        others = len(book) - used - book.strange[REPEATED] - book.strange[UNWEIGHTED]
        if others > 0:
            self.report.left_out["entries of the other side, or that play does not reach"] += others


@dataclasses.dataclass
class _Variation:
    """Counts of a variation that is being read: its moves, the side's own, and the new ones.

    broken: no more of it is read; short: though its moves so far can be read.
    """

    read: int = 0
    own: int = 0
    news: int = 0
    broken: bool = False
    short: bool = False
    passed_over: int = 0


class _Lines(GameVisitor):
    """Reads one game with its variations."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader
        self._open = [_Variation()]
        self._pending: tuple[str, tuple[int, ...], int] | None = None

    def stop(self, why: str, *, short: bool = False) -> None:
        """Read no more of a variation; a `short` one is no sign of prose."""
        self._reader.report.cut[why] += 1
        if self._open:
            self._open[-1].broken, self._open[-1].short = True, short

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self._reader.tags += 1
        super().visit_header(tagname, tagvalue)

    def start(self, board: chess.Board) -> None:
        super().start(board)
        if board.epd() != self._reader.start_epd:
            self.reason = self.reason or "another start position"
            self._reader.elsewhere = self._reader.elsewhere or board.fen() * board.is_valid()

    def begin_variation(self) -> Any:
        self._flush()
        above = self._open[-1]
        self._open.append(_Variation())
        if self.reason is not None:
            return chess.pgn.SKIP
        if len(self._open) > _MAX_DEPTH:
            self.stop("variations within too many others", short=True)
            return chess.pgn.SKIP
        if above.passed_over:
            self.stop("a variation of what cannot be read", short=above.short)
            return chess.pgn.SKIP
        return None

    def end_variation(self) -> None:
        self._flush()
        if len(self._open) > 1:
            self._close(self._open.pop())

    def begin_parse_san(self, board: chess.Board, san: str) -> Any:
        del board, san
        here = self._open[-1]
        if self.reason is None and not here.broken:
            return None
        here.passed_over += 1
        return chess.pgn.SKIP

    def parse_san(self, board: chess.Board, san: str) -> chess.Move:
        try:
            move = super().parse_san(board, san)
        except ValueError:
            self.stop("a move that cannot be read")
            return chess.Move.null()
        if not move:
            self.stop("a null move", short=self._open[-1].read > 0)
        elif len(board.move_stack) >= self._reader.max_plies:
            self.stop("a line that is too long", short=True)
        return move

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self._flush()
        here = self._open[-1]
        if here.broken:
            return
        here.read += 1
        if board.turn == self._reader.side:
            *history, action = map(self._reader.action, (*board.move_stack, move))
            self._pending = board.epd(), tuple(history), action

    def visit_nag(self, nag: int) -> None:
        if nag in _MISTAKES and self._pending is not None:
            self._pending = None
            self._reader.report.mistakes += 1

    def handle_error(self, error: Exception) -> None:
        # Not a bad move (see `parse_san`): rules or a start position that cannot be.
        self.reason = self.reason or "another start position"

    def end_game(self) -> None:
        self._flush()
        while self._open:
            self._close(self._open.pop())

    def _flush(self) -> None:
        """Count the pending move: no mark can follow it any more."""
        if self._pending is not None:
            self._open[-1].own += 1
            self._open[-1].news += self._reader.add(*self._pending)
            self._pending = None

    def _close(self, variation: _Variation) -> None:
        report = self._reader.report
        if self.reason is not None:
            return
        if variation.read and (variation.short or not variation.broken):
            self._reader.whole += 1
        elif not variation.short:
            self._reader.broken += 1
        if variation.read:
            report.lines += 1
            report.redundant += variation.own > 0 and not variation.news
        else:
            report.left_out["a line without a move that can be read"] += 1
