"""Reads the text of PGN files, game by game, and their names; in any encoding, size, and state.

Memory is bounded: for a line, a game's text, and the names.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import dataclasses
import functools
import io
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import chess
import chess.pgn

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, counted, public
from precomp_games._support.config import bar
from precomp_games._support.results import Result
from precomp_games.chess.data.movetext import Standard, languages_of, standard
from precomp_games.chess.data.names import tag_text

MAX_LINE = 1 << 16  # bytes; PGN allows 255
MAX_TEXT = 1 << 20  # characters of one game, comments and variations too
MAX_TAG = 200  # characters of a tag's value
_MAX_NAMES = 200_000
_REPORTED = 1 << 20  # bytes between two updates of the progress bar
# Raised by python-chess on sufficiently odd games.
_PARSER_ERRORS = (ValueError, IndexError, KeyError, AssertionError, AttributeError, RecursionError)
V = TypeVar("V", bound="GameVisitor")
_STANDARD_RULES = frozenset({"", "standard", "chess", "normal", "?", "fromposition"})
_TAG_LINE = re.compile(r'\[\w+\s+"')
_TAG = re.compile(r'\s*(\[\w[\w+#=:-]*\s+"(?:[^"\\\n]|\\.)*"\s*\])')
_ROSTER = re.compile(r'\[(?:Event|Site|Date|Round|White|Black|Result)\s+"')
_CODE_PAGES = ("cp1252", "cp1250", "cp1251", "koi8_r")
_CENTRAL = re.compile(r"[ŠšŽž]|(?<=\w)[³¹¿]|£(?=\w)|[ìùò](?=\w)")
_SAMPLE_LINES = 100_000
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\3\4": "zip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zX": "xz",
}


@dataclasses.dataclass
class GameReport(Result):
    """Counts of what was read of a file, and of what was left out, with reasons.

    Attributes:
        games: games that were read.
        plies: their half-moves.
        left_out: games that were left out, by reason.
        cut: games of which only the beginning was read, by reason.
        recoded: lines that are not UTF-8.
        encoding: the encoding as which these were read.
        pieces: games whose pieces have other letters than in English, by language; "small" or "unknown".
        undated: games without a year, among those that were read.
        dates_differ: copies of a game under another year.
        names: spellings of the player that was asked for.
        alike: other names that might be the same player's, by their number of games.
    """

    games: int = 0
    plies: int = 0
    left_out: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    cut: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    recoded: int = 0
    encoding: str = ""
    pieces: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    undated: int = 0
    dates_differ: int = 0
    names: tuple[str, ...] = ()
    alike: dict[str, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        """Return the report in one line."""
        parts = [counted(self.games, "game")]
        parts += [f"{count} left out: {reason}" for reason, count in self.left_out.most_common()]
        parts += [f"{count} cut: {reason}" for reason, count in self.cut.most_common()]
        for count, what in (
            (self.undated, "without a date"),
            (self.dates_differ, "copies with another year"),
            (self.recoded, f"lines in another encoding, read as {self.encoding}"),
            *((count, f"with {language} letters of pieces") for language, count in self.pieces.most_common()),
        ):
            parts += [f"{count} {what}"] * (count > 0)
        if len(self.names) > 1:
            parts.append(f"taken together: {', '.join(map(repr, self.names))}")
        for name, count in self.alike.items():
            parts.append(f"{name!r} has {counted(count, 'game')} and may be the same")
        return "; ".join(parts)


@public
def pgn_names(path: checks.FilePath) -> dict[str, int]:
    """Return the number of games of each name in a file's White and Black tags, the most frequent first.

    Raises:
        OSError: the file cannot be read.
    """
    names: collections.Counter[str] = collections.Counter()
    for _, line in _pgn_lines(os.fspath(path), GameReport()):
        if line.startswith(("[White ", "[Black ")) and (tag := chess.pgn.TAG_REGEX.match(line)):
            name = tag_text(tag[2])[:MAX_TAG]
            if name in names or len(names) < _MAX_NAMES:
                names[name] += 1
    return dict(names.most_common())


class GameVisitor(chess.pgn.BaseVisitor[Any]):
    """Reads a game; its rules and start position are checked before its moves are read.

    Attributes:
        tags: values of the wanted tags, cut short if long.
        reason: why the game is left out; None if it is not.
        small: pieces that small letters may be, which are files as well (see `movetext`).
        quick: whether only the moves of the main line are needed, see `reads`.
    """

    names = frozenset({"Variant", "FEN"})
    quick = False

    def __init__(self) -> None:
        self.small: Mapping[str, str] = {}
        self.tags: dict[str, str] = {}
        self.reason: str | None = None
        self._managed = chess.pgn.Headers({})
        self._started = False

    def begin_headers(self) -> chess.pgn.Headers:
        """Return headers for the start position alone; python-chess's own would keep any number of tags."""
        return self._managed

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        """Keep a tag that is wanted."""
        if tagname in self.names:
            self.tags[tagname] = tag_text(tagvalue)[:MAX_TAG]

    def end_headers(self) -> Any:
        """Skip the game if it is left out."""
        self.reason = self.unwanted()
        if self.reason is not None:
            return chess.pgn.SKIP
        if fen := self.tags.get("FEN", "").strip():
            self._managed["FEN"] = fen
        return None

    def unwanted(self) -> str | None:
        """Return why a game with these tags is left out; None if it is not."""
        rules = re.sub(r"[\s_-]", "", self.tags.get("Variant", "").casefold())
        return None if rules in _STANDARD_RULES else "other rules"

    def parse_san(self, board: chess.Board, san: str) -> chess.Move:
        """Parse a move, in which a small letter may be a piece where it is not the file of a pawn's move.

        Raises:
            ValueError: it is no legal move, or may be two.
        """
        if san[0] not in self.small or len(san) < 3:
            return board.parse_san(san)
        moves = set[chess.Move]()
        of_piece = self.small[san[0]] + san[1:]
        for reading in (of_piece,) if san[1] == san[0] else (san, of_piece):  # a pawn's is never "bb3"
            with contextlib.suppress(ValueError):
                moves.add(board.parse_san(reading))
        if len(moves) != 1:
            raise ValueError(f"expected one move, got {san!r} for {len(moves)}")
        return moves.pop()

    def reads(self, game: Standard, moves: Sequence[str]) -> bool:
        """Read moves from the usual start without python-chess, if `quick`; return whether it did."""
        return False

    def stop(self, why: str) -> None:
        """Read no more moves of the current line."""
        raise NotImplementedError

    def visit_board(self, board: chess.Board) -> None:
        """Check the first board, which is that of the start."""
        if not self._started:
            self._started = True
            self.start(board)

    def start(self, board: chess.Board) -> None:
        """Leave the game out if its start position is not legal."""
        if not board.is_valid() or board.chess960:
            self.reason = "another start position"

    def result(self) -> Any:
        """Return the reader itself."""
        return self


@dataclasses.dataclass(frozen=True)
class GameText:
    """The text of one game of a file, with a line for each tag.

    Attributes:
        text: its text, at most `MAX_TEXT` characters.
        too_long: whether the file has more of it.
        languages: languages that the file's pieces may be written in, see `languages_of`.
    """

    text: str
    too_long: bool
    languages: tuple[str, ...]


def game_texts(path: str, report: GameReport) -> Iterator[GameText]:
    """Yield the text of each game.

    A tag after moves begins a new game, so a comment without an end only spoils its own game.
    """
    languages = _languages(path)
    lines: list[str] = []
    length, next_report, moves, cut, event = 0, 0, False, False, False
    with bar("Reading", "bytes", os.path.getsize(path), leave=False) as show:
        for position, line in _pgn_lines(path, report):
            if position >= next_report:
                show(position)
                next_report = position + _REPORTED
            if line.startswith("[") and _TAG_LINE.match(line):
                is_event = line.startswith("[Event ")
                if moves or (is_event and event):
                    yield GameText("".join(lines), cut, languages)
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
        yield GameText("".join(lines), cut, languages)


def _languages(path: str) -> tuple[str, ...]:
    """Return the languages of a file's piece letters, by its first megabyte."""
    lines = list[str]()
    for position, line in _pgn_lines(path, GameReport()):
        if position > MAX_TEXT:
            break
        if not line.startswith("["):
            lines.append(line)
    return languages_of("".join(lines))


def visited(game: GameText, visitor: Callable[[], V], report: GameReport) -> Iterator[V]:
    """Yield a new visitor for each game of a text, stopped where python-chess cannot read on.

    A text has one game, and perhaps others behind it without tags. Other letters of pieces than
    English ones are reported.
    """
    for each in standard(game.text, game.languages):
        if not each.text:
            report.left_out["moves behind a result"] += 1
            continue
        reader = visitor()
        reader.small = each.small
        try:
            if not (reader.quick and _read_quickly(each, reader)):
                of_text = io.StringIO(each.text)
                if chess.pgn.read_game(of_text, Visitor=functools.partial(_same, reader)) is None:
                    continue
        except _PARSER_ERRORS:
            reader.stop("a game that cannot be read")
        yield reader
        if each.pieces:
            report.pieces[each.pieces] += 1


def _same(reader: V) -> V:
    return reader


def _read_quickly(game: Standard, reader: GameVisitor) -> bool:
    """Read a game without python-chess if its result would be the same; return whether it was read."""
    found = game.moves()
    if found is None:
        return False
    for line in game.text[: game.plain].split("\n"):
        if tag := chess.pgn.TAG_REGEX.match(line):
            reader.visit_header(tag[1], tag[2])
    if "FEN" in reader.tags:
        return False
    if reader.end_headers() is chess.pgn.SKIP:
        return True
    moves, result = found
    if not reader.reads(game, moves):
        return False
    if result:
        reader.visit_result(result)
    return True


def _pgn_lines(path: str, report: GameReport) -> Iterator[tuple[int, str]]:
    """Yield (bytes before it, text) of each line; each tag has a line of its own.

    Concatenated files may have byte order marks within the text, or no end of a line between them.
    """
    for position, line in _lines(path, report):
        if "\ufeff" in line:
            line = line.replace("\ufeff", "")
        if '"' not in line or (line.startswith("[") and line.count('"') == 2 and line.endswith('"]\n')):
            yield position, line
            continue
        joined = None if line.lstrip().startswith("[") else _ROSTER.search(line)
        if joined is not None and line.rfind("{", 0, joined.start()) <= line.rfind("}", 0, joined.start()):
            yield position, line[: joined.start()] + "\n"
            line = line[joined.start() :]
        at = 0
        while tag := _TAG.match(line, at):
            yield position, tag[1] + "\n"
            at = tag.end()
        if line[at:].strip():
            yield position, line[at:]


def _lines(path: str, report: GameReport) -> Iterator[tuple[int, str]]:
    """Yield (bytes before it, text) of each line; a line longer than `MAX_LINE` is split."""
    with open(path, "rb") as file:
        mark = file.read(4)
        file.seek(0)
        for begin, kind in _COMPRESSED.items():
            if mark.startswith(begin):
                raise ArgumentError(
                    f"expected a PGN file, got {path!r}, which is compressed by {kind}: unpack it"
                )
        if mark[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            text = io.TextIOWrapper(file, encoding="utf-16", errors="replace")
            done = 0
            while line := text.readline(MAX_LINE):
                yield done, line
                done += 2 * len(line)
            return
        done = 0
        while raw := file.readline(MAX_LINE):
            if not raw.endswith(b"\n") and b"\r" in raw:  # lines end as on old Macs
                file.seek(done + raw.rindex(b"\r") + 1)
                raw = raw[: file.tell() - done]
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError:
                report.encoding = report.encoding or _code_page(path, done)
                line = raw.decode(report.encoding, errors="replace")
                report.recoded += 1
            line = line.replace("\r\n", "\n")
            parts = io.StringIO(line.replace("\r", "\n"), newline="\n") if "\r" in line else (line,)
            for each in parts:
                yield done, each
            done += len(raw)


def _code_page(path: str, start: int) -> str:
    """Return the encoding of a file that is not UTF-8 from `start` on, by its tags or text; cp1252 in doubt.

    Western and Central European names differ in letters that are punctuation in the other encoding.
    """
    import charset_normalizer  # few files need it

    tags, text = bytearray(), bytearray()
    with open(path, "rb") as file:
        file.seek(start)
        for raw in itertools.islice(iter(lambda: file.readline(MAX_LINE), b""), _SAMPLE_LINES):
            if not raw.isascii():
                value = raw.partition(b'"')[2].rpartition(b'"')[0] if raw.startswith(b"[") else b""
                tags += value and value + b"\n"
                text += raw
            if len(text) > MAX_LINE:
                break
    sample = bytes(tags or text)
    found = charset_normalizer.from_bytes(sample, cp_isolation=list(_CODE_PAGES))
    if not found:
        return _CODE_PAGES[0]
    best = min(match.chaos for match in found)
    names = {name for match in found if match.chaos == best for name in match.could_be_from_charset}
    central = "cp1250" in names and _CENTRAL.search(sample.decode("cp1252", "replace"))
    return "cp1250" if central else next(name for name in _CODE_PAGES if name in names)
