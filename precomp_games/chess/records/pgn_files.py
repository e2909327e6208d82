"""The text of PGN files, game by game, and their names; of any encoding, size, and state.

What takes memory is bounded: a line, a game's text, and the names.
"""

from __future__ import annotations

import codecs
import collections
import dataclasses
import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import chess
import chess.pgn

from precomp_games._support.arguments import FilePath, public
from precomp_games._support.messages import counted
from precomp_games._support.results import Result

MAX_LINE = 1 << 16  # bytes; PGN allows 255
MAX_TEXT = 1 << 20  # characters of one game, comments and variations too
MAX_TAG = 200  # characters of a tag's value
_MAX_NAMES = 200_000
_REPORTED = 1 << 20  # bytes between two calls of progress
# What python-chess raises on games that are odd enough.
_PARSER_ERRORS = (ValueError, IndexError, KeyError, AssertionError, AttributeError, RecursionError)
V = TypeVar("V", bound=chess.pgn.BaseVisitor[Any])
_STANDARD_RULES = frozenset({"", "standard", "chess", "normal", "?"})
_TAG_LINE = re.compile(r'\[\w+\s+"')


@dataclasses.dataclass
class GameReport(Result):
    """What was read of a file, and what was not, and why.

    Attributes:
        games: games that were read.
        plies: half-moves of them.
        left_out: games that were not, by reason.
        cut: games of which only the beginning was read, by reason.
        recoded: lines that are no UTF-8 and were read as Latin-1.
        undated: games without a year, among those that were read.
        dates_differ: games that stand there twice, under years that differ.
        names: spellings of the player that was asked for.
        alike: other names that might be the same player's, by their number of games.
    """

    games: int = 0
    plies: int = 0
    left_out: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    cut: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    recoded: int = 0
    undated: int = 0
    dates_differ: int = 0
    names: tuple[str, ...] = ()
    alike: dict[str, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        """One line."""
        parts = [counted(self.games, "game")]
        parts += [f"{count} left out: {reason}" for reason, count in self.left_out.most_common()]
        parts += [f"{count} cut: {reason}" for reason, count in self.cut.most_common()]
        for count, what in (
            (self.undated, "without a date"),
            (self.dates_differ, "copies with another year"),
            (self.recoded, "lines in another encoding"),
        ):
            parts += [f"{count} {what}"] * (count > 0)
        parts += [f"{name!r} has {count} games and may be the same" for name, count in self.alike.items()]
        return "; ".join(parts)


@public
def pgn_names(path: FilePath) -> dict[str, int]:
    """How many games each name in a file's White and Black tags has, the most frequent first.

    Raises:
        ValueError: no path.
        OSError: the file cannot be read.
    """
    return dict(count_names(os.fspath(path)).most_common())


def count_names(path: str) -> collections.Counter[str]:
    """`pgn_names` of a path that has been checked."""
    names: collections.Counter[str] = collections.Counter()
    for _, line in _lines(path, GameReport()):
        if line.startswith(("[White ", "[Black ")) and (tag := chess.pgn.TAG_REGEX.match(line)):
            name = tag[2][:MAX_TAG]
            if name in names or len(names) < _MAX_NAMES:
                names[name] += 1
    return names


class GameVisitor(chess.pgn.BaseVisitor[Any]):
    """Reads a game, of which rules and start position are looked at before its moves are read.

    Attributes:
        tags: the text of these tags, cut short where that is long.
        reason: why the game is left out; None if it is not.
    """

    names = frozenset({"Variant", "FEN"})

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}
        self.reason: str | None = None
        self._managed = chess.pgn.Headers({})
        self._started = False

    def begin_headers(self) -> chess.pgn.Headers:
        """What the start position is read from; python-chess's own headers would keep any number of tags."""
        return self._managed

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        """Keeps a tag that is wanted."""
        if tagname in self.names:
            self.tags[tagname] = tagvalue[:MAX_TAG]

    def end_headers(self) -> Any:
        """Skips the game where it is left out."""
        self.reason = self.unwanted()
        if self.reason is not None:
            return chess.pgn.SKIP
        if fen := self.tags.get("FEN", "").strip():
            self._managed["FEN"] = fen
        return None

    def unwanted(self) -> str | None:
        """Why a game with these tags is left out; None if it is not."""
        rules = self.tags.get("Variant", "").strip().casefold()
        return None if rules in _STANDARD_RULES else "other rules"

    def visit_board(self, board: chess.Board) -> None:
        """Looks at the first board, which is that of the start."""
        if not self._started:
            self._started = True
            self.start(board)

    def start(self, board: chess.Board) -> None:
        """Looks at the start position: one that cannot come up is none to count."""
        if not board.is_valid() or board.chess960:
            self.reason = "another start position"

    def result(self) -> Any:
        """The reader itself."""
        return self


def game_texts(
    path: str, report: GameReport, progress: Callable[[int, int], None] | None
) -> Iterator[tuple[str, bool]]:
    """The text of each game, and whether it is longer than a game is read.

    A tag after moves begins a new game, so that a comment without an end takes no more than its own.
    """
    size = os.path.getsize(path)
    lines: list[str] = []
    length, next_report, moves, cut, event = 0, 0, False, False, False
    for position, line in _lines(path, report):
        if progress is not None and position >= next_report:
            progress(position, size)
            next_report = position + _REPORTED
        if line.startswith("[") and _TAG_LINE.match(line):
            is_event = line.startswith("[Event ")
            if moves or (is_event and event):
                yield "".join(lines), cut
                lines, length, moves, cut, event = [], 0, False, False, False
            event = event or is_event
        elif not moves and line.strip() and not line.startswith(("[", "%", ";")):
            moves = True
        lines.append(line[: max(0, MAX_TEXT - length)])
        length += len(line)
        cut = length > MAX_TEXT
        if cut:
            lines = ["".join(lines)]  # one text, however many lines it goes on for
    if lines:
        yield "".join(lines), cut
    if progress is not None:
        progress(size, size)


def visited(text: str, visitor: Callable[[], V]) -> Iterator[tuple[V, bool]]:
    """A visitor of its own for each game of a text, and whether python-chess read it to its end."""
    file = io.StringIO(text)

    def read(reader: V) -> bool | None:
        try:
            return None if chess.pgn.read_game(file, Visitor=lambda: reader) is None else True
        except _PARSER_ERRORS:
            return False

    while (whole := read(reader := visitor())) is not None:
        yield reader, whole


def _lines(path: str, report: GameReport) -> Iterator[tuple[int, str]]:
    """(bytes before it, text) of each line; a longer one than `MAX_LINE` is several."""
    with open(path, "rb") as file:
        mark = file.read(3)
        if mark[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            file.seek(0)
            text = io.TextIOWrapper(file, encoding="utf-16", errors="replace")
            done = 0
            while line := text.readline(MAX_LINE):
                yield done, line
                done += 2 * len(line)
            return
        file.seek(done := 3 if mark == codecs.BOM_UTF8 else 0)
        while raw := file.readline(MAX_LINE):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                line = raw.decode("latin-1")
                report.recoded += 1
            yield done, line.replace("\r\n", "\n")
            done += len(raw)
