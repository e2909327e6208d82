"""Games that people played, streamed from untrusted PGN files.

If a player is given, a file is read twice: first its names alone, so that a name that fits several players
is reported before anything is counted, and then game by game, so that the file's size does not matter.
Besides a game's text and half-moves, only a hash is kept, by which a copy of the game is recognized.

python-chess reads each game, its main line alone. Every reason for which a game, or the end of one, is left
out is counted in a `GameReport`: other rules, another start position, moves that cannot be read (the moves
before them count), null moves, nothing but tags.

Two games are copies if their first 40 half-moves are the same, or all of them where there are 20 or more;
shorter games may well have been played twice. The first copy counts. Names, dates and the rest of the moves
are not compared, since copies differ in them.

Dates are decimal years, as precise as the file: "1984.??.??" is the middle of 1984, and so is "03/04/1984",
whose month may be either.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import chess
import chess.pgn

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games.chess.data import pgn_files
from precomp_games.chess.data.movetext import BOOK_MOVE, Standard, result_of
from precomp_games.chess.data.names import alike, name_words, resolve_names, same_initials, tag_text
from precomp_games.chess.data.pgn_files import MAX_TEXT, GameReport, GameVisitor
from precomp_games.chess.data.replays import packed_hash, replay
from precomp_games.chess.game import action_of

MAX_GAMES = 10**6  # read of a file by default
MAX_PLIES = 1000  # of one game
_SAME_FROM, _SAME_TO = 20, 40  # plies by which a copy of a game is recognized

WHITE_SCORES = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
"""White's score, by the Result tag of a finished game."""
RESULTS = {score: result for result, score in WHITE_SCORES.items()}
"""The Result tag, by White's score."""

SPEEDS = ("bullet", "blitz", "rapid", "classical")
"""Kinds of time control: a player has under 3, under 8, under 25 minutes, or more, for 40 moves."""
_SPEED_SECONDS = (180, 480, 1500)

_DATES = ("Date", "UTCDate", "EventDate")  # tags; the first is used where both are equally precise
_TAGS = frozenset(
    ("White", "Black", "Result", "WhiteElo", "BlackElo", "TimeControl", "Variant", "FEN", "SetUp")
).union(_DATES)
_SIDE = re.compile(r'\[(?<![^\n]\[)(?:White|Black)\s+"([^\n]*)"\s*\]')  # at the beginning of a line
_OTHERS = "games of others"
_YEAR_FIRST = re.compile(r"([12][0-9]{3})(?:([./-]?)([0-9]{1,2})(?:\2([0-9]{1,2}))?)?(?![0-9])")
_DAY_FIRST = re.compile(r"(?:([0-9]{1,2}|\?\?)([./-]))?([0-9]{1,2}|\?\?)[./-]([12][0-9]{3})")
_RATED = re.compile(r"\b(?:(rated)|unrated|casual)\b", re.IGNORECASE)
_TIME_CONTROL = re.compile(r"(?:[0-9]{1,4}/)?([0-9]{1,6})(?:\+([0-9]{1,6}))?")
_CLOCK = re.compile(r"\[%clk\s+([0-9]{1,2}):([0-5]?[0-9]):([0-5]?[0-9](?:\.[0-9]{1,3})?)\s*\]")

Key = Callable[[chess.Board], Any]
Names = frozenset[tuple[str, ...]]


def position_hash(board: chess.Board) -> int:
    """Return a position's 64 bits: pieces, side to move, castling, and en passant if a capture is legal.

    It distinguishes the same positions as the EPD, at a tenth of its cost. It is a truncated cryptographic
    hash: of ten million positions two share it with probability 3e-6, and moves that are then counted
    together are legal in both. Polyglot's keys are sums of a published table, so a file could be made whose
    positions collide, and they take longer to compute in Python.
    """
    passed = board.ep_square if board.ep_square is not None and board.has_legal_en_passant() else -1
    pieces = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    sides = (board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK])
    return packed_hash(*pieces, *sides, board.clean_castling_rights(), board.turn, passed)


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """The main line of a game, as far as it could be read, and its players.

    Attributes:
        white, black: names, as in the file.
        own: the colors of the players that were asked for.
        first: the side that moves first; White unless the game begins at another position.
        year: date of the game as a decimal year; None if unknown.
        ratings: of White and Black, None if unknown.
        speed: one of `SPEEDS`, "" if unknown.
        result: the Result tag or, without one, the result behind the moves; "*" if there is none.
        keys: of the positions before each move, by the reader's `key`.
        actions: the moves, as `ChessGame` numbers them.
        booked: the moves, counted from 0, that a comment calls book moves, as match programs do.
        control: a player's seconds, and the increment for each move; None if unknown.
        clocks: seconds left to the mover after each move, None where no comment gives them; () if clocks
            are not read.
        number: place of the game in its file, by which `read_games` finds it again: `MAX_TEXT` for each
            text before its own, and one for each game before it in that.
        rated: whether the Event tag calls it a rated game, or else unrated or casual; None if neither.
    """

    white: str
    black: str
    own: tuple[chess.Color, ...]
    first: chess.Color
    year: float | None
    ratings: tuple[int | None, int | None]
    speed: str
    result: str
    keys: tuple[Any, ...]
    actions: tuple[int, ...]
    booked: frozenset[int] = frozenset()
    control: tuple[int, int] | None = None
    clocks: tuple[float | None, ...] = ()
    number: int = 0
    rated: bool | None = None

    def mover(self, ply: int) -> chess.Color:
        """Return the side that makes move `ply`, counted from 0."""
        return self.first if ply % 2 == 0 else not self.first


@public
def read_games(
    path: checks.FilePath,
    player: str | None = None,
    *,
    without: str | None = None,
    max_plies: checks.PositiveInt = MAX_PLIES,
    max_games: checks.PositiveInt = MAX_GAMES,
    setups: bool = False,
    copies: bool = False,
    clocks: bool = False,
    numbers: Annotated[Collection[int], checks.each_of(int)] | None = None,
    key: Key = position_hash,
    report: GameReport | None = None,
) -> Iterator[GameRecord]:
    """Yield the games of a file, one by one, without copies.

    Args:
        path: the file.
        player: the player of the games, by name in White and Black tags (see `resolve_names`). None: all.
        without: a player whose games are left out, in any spelling: everyone with that last name and
            initial. A name that the file does not have leaves out no game.
        max_plies: half-moves of a game that are read.
        max_games: games that are read of this file.
        setups: whether games that begin at another position count.
        copies: whether copies of a game count. They should in a match program's games, in which the same
            game may be played again, and not in a collection.
        clocks: whether clock times are read from comments, such as [%clk 0:02:59]; times of 100 hours or
            more are ignored.
        numbers: of the games to read, see `GameRecord`; None: all. Other games cost no more than their
            lines.
        key: function that gives a position's key in the records.
        report: report to which the counts are added.

    Raises:
        ValueError: a name that nobody has, or that fits several players.
        OSError: the file cannot be read.
    """
    path = os.fspath(path)
    report = GameReport() if report is None else report
    wanted = excluded = None
    if player is not None or without is not None:
        names = pgn_files.pgn_names(path)
        if player is not None:
            wanted = resolve_names(player, names, path)
            report.names = tuple(name for name in names if name_words(name) in wanted)
            report.alike = {
                name: count
                for name, count in names.items()
                if name_words(name) not in wanted and any(alike(name, each) for each in report.names)
            }
        if without is not None:
            parts = without.split(";")
            excluded = frozenset(
                name_words(name) for name in names if any(same_initials(part, name) for part in parts)
            )
    reader = functools.partial(_Game, wanted, excluded, min(max_plies, MAX_PLIES), setups, key, clocks)
    seen = None if copies else dict[int, float | None]()
    only = None if numbers is None else frozenset(numbers)
    return _records(path, wanted, reader, max_games, report, seen, only)


def _records(
    path: str,
    wanted: Names | None,
    reader: Callable[[], _Game],
    max_games: int,
    report: GameReport,
    seen: dict[int, float | None] | None,
    numbers: Collection[int] | None,
) -> Iterator[GameRecord]:
    before = report.games  # of other files, which are in the report as well
    texts = None if numbers is None else {number // MAX_TEXT for number in numbers}
    for first, text in zip(itertools.count(step=MAX_TEXT), pgn_files.game_texts(path, report), strict=False):
        if texts is not None and first // MAX_TEXT not in texts:
            continue
        if wanted is not None:  # most of a large file is games of others, and python-chess is slow
            names = [tag_text(name)[: pgn_files.MAX_TAG] for name in _SIDE.findall(text.text)]
            if names and not any(name_words(name) in wanted for name in names):
                report.left_out[_OTHERS] += 1
                continue
        for number, game in enumerate(pgn_files.visited(text, reader, report), start=first):
            if numbers is not None and number not in numbers:
                continue
            reason = game.reason or _reason(game, seen, report)
            if reason is not None:
                report.left_out[reason] += 1
                continue
            if text.too_long:
                game.stop("too much text")
            if game.cut is not None:
                report.cut[game.cut] += 1
            record = game.record(number)
            report.games += 1
            report.plies += len(record.actions)
            report.undated += record.year is None
            yield record
            if report.games - before >= max_games:
                return


def _reason(game: _Game, seen: dict[int, float | None] | None, report: GameReport) -> str | None:
    """Return the reason for which a game is left out, or None. `seen`: years by the hashes of games."""
    if not game.tags:
        return "no tags"  # the rest of a game that broke off
    if not game.actions:
        return "no moves"
    if seen is not None and len(game.tokens) >= _SAME_FROM:
        line = [*map(str, game.actions), *game.tokens[len(game.actions) :]][:_SAME_TO]
        fen = game.tags.get("FEN", "")
        line.append("" if _usual(fen) else fen)
        digest = hashlib.blake2b(" ".join(line).encode(errors="replace"), digest_size=8).digest()
        name, year = int.from_bytes(digest, "little"), _year(game.tags)
        if name in seen:
            report.dates_differ += None not in (year, seen[name]) and year != seen[name]
            return "a game that stands there twice"
        seen[name] = year
    return None


class _Game(GameVisitor):
    """Reads one game's main line, as far as it is wanted."""

    names = _TAGS

    def __init__(
        self,
        wanted: Names | None,
        excluded: Names | None,
        max_plies: int,
        setups: bool,
        key: Key,
        clocks: bool,
    ) -> None:
        super().__init__()
        self._wanted, self._excluded, self._max_plies = wanted, excluded, max_plies
        self._setups, self._key = setups, key
        self.keys: list[Any] = []
        self.actions: list[int] = []
        self.booked: set[int] = set()
        self.clocks: dict[int, float] | None = {} if clocks else None
        self.quick = key is position_hash
        self.tokens: list[str] = []
        self.first = chess.WHITE
        self.cut: str | None = None
        self.outcome = "*"
        self.rated: bool | None = None
        self._over = self._past = False  # all that is wanted was read; and more follows it

    def stop(self, why: str) -> None:
        """Read no more moves."""
        self.cut = self.cut or why
        self._over = True

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        super().visit_header(tagname, tagvalue)
        if tagname == "Event" and (match := _RATED.search(tagvalue)):
            self.rated = match[1] is not None

    def unwanted(self) -> str | None:
        sides = {name_words(self.tags.get(side, "?")) for side in ("White", "Black")}
        if self._wanted is not None and self.tags and not sides & self._wanted:
            return _OTHERS
        if self._excluded is not None and sides & self._excluded:
            return "games of the player to be left out"
        elsewhere = not _usual(self.tags.get("FEN", ""))
        return super().unwanted() or ("another start position" if elsewhere and not self._setups else None)

    def reads(self, game: Standard, moves: Sequence[str]) -> bool:
        played = replay(moves[: self._max_plies])
        if played is None:
            return False
        self.keys, self.actions = played
        if self.clocks is not None:
            for number, comment in game.comments():
                if number > len(self.actions):
                    break
                if number:
                    self._read_clock(self.clocks, number - 1, comment)
        self.tokens = list(moves[: max(self._max_plies, _SAME_TO)])
        return True

    def begin_variation(self) -> Any:
        return chess.pgn.SKIP

    def start(self, board: chess.Board) -> None:
        super().start(board)
        self.first, self._over = board.turn, self.reason is not None

    def begin_parse_san(self, board: chess.Board, san: str) -> Any:
        if self._over:
            self._past = True
            return chess.pgn.SKIP
        self.tokens.append(san.rstrip("+#!?"))
        self._over = len(self.tokens) >= max(self._max_plies, _SAME_TO)
        return chess.pgn.SKIP if len(self.tokens) > self._max_plies else None

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        if not move:
            self.stop("a null move")
        if self.cut is None and self.reason is None:
            self.keys.append(self._key(board))
            self.actions.append(action_of(move))

    def visit_comment(self, comment: Any) -> None:
        read = self.cut is None and 0 < len(self.actions) == len(self.tokens) and not self._past
        if not read:
            return
        if str(comment).strip().casefold() == BOOK_MOVE:
            self.booked.add(len(self.actions) - 1)
        elif self.clocks is not None:
            self._read_clock(self.clocks, len(self.actions) - 1, str(comment))

    @staticmethod
    def _read_clock(clocks: dict[int, float], ply: int, comment: str) -> None:
        """Add the clock time that a comment behind a half-move gives, if it does."""
        if match := _CLOCK.search(comment):
            clocks[ply] = 3600.0 * int(match[1]) + 60.0 * int(match[2]) + float(match[3])

    def visit_result(self, result: str) -> None:
        self.outcome = result

    def handle_error(self, error: Exception) -> None:
        if not self._started:
            self.reason = "another start position"
        self.stop("a move that cannot be read")

    def record(self, number: int) -> GameRecord:
        tags, wanted = self.tags, self._wanted
        control = _control(tags.get("TimeControl", ""))
        names = {chess.WHITE: tags.get("White", "?"), chess.BLACK: tags.get("Black", "?")}
        return GameRecord(
            white=names[chess.WHITE],
            black=names[chess.BLACK],
            own=tuple(c for c, name in names.items() if wanted is None or name_words(name) in wanted),
            first=self.first,
            year=_year(tags),
            ratings=(_rating(tags.get("WhiteElo", "")), _rating(tags.get("BlackElo", ""))),
            speed=_speed(control),
            result=result_of(tags.get("Result", "")) or self.outcome,
            keys=tuple(self.keys),
            actions=tuple(self.actions),
            booked=frozenset(self.booked),
            control=control,
            clocks=() if self.clocks is None else tuple(map(self.clocks.get, range(len(self.actions)))),
            number=number,
            rated=self.rated,
        )


def _year(tags: Mapping[str, str]) -> float | None:
    """Return a game's date as a decimal year, by the most precise tag."""
    known = max((_date(tags.get(name, "")) for name in _DATES), key=len)
    match known:
        case (year, month, day):
            return year + (month - 1 + (day - 0.5) / 31.0) / 12.0
        case (year, month):
            return year + (month - 0.5) / 12.0
        case (year,):
            return year + 0.5
    return None


def bounds_of(day: str) -> tuple[float, float]:
    """Return the beginning and end of a day (2021-03-01), a month (2021-03) or a year, as decimal years.

    Raises:
        ValueError: it is none of them.
    """
    match = _YEAR_FIRST.fullmatch(day.strip())
    known = [int(part) for part in match.group(1, 3, 4) if part] if match else []
    if not known or not all(1 <= part <= most for part, most in zip(known[1:], (12, 31), strict=False)):
        raise ArgumentError(f"expected a day, a month or a year, such as 2021-03-01, got {day!r}")
    year, month, date = (*known, 1, 1)[:3]
    begin = year + (month - 1 + (date - 1) / 31.0) / 12.0
    return begin, begin + (1.0, 1.0 / 12.0, 1.0 / 372.0)[len(known) - 1]


def month_of(year: float) -> str:
    """Return a decimal year as text, such as 2021-03; the year alone if the file has no more."""
    whole, part = divmod(year, 1.0)
    return f"{whole:.0f}" if part == 0.5 else f"{whole:.0f}-{int(12.0 * part) + 1:02}"


@functools.lru_cache(1 << 12)
def _date(text: str) -> tuple[int, ...]:
    """Return a date's known parts, year first; with slashes or hyphens, day and month may be swapped."""
    if match := _YEAR_FIRST.match(text.strip()):
        parts = [match[1], match[3], match[4]]
    elif match := _DAY_FIRST.fullmatch(text.strip()):
        day, between, month, year = match.groups()
        if between in ("/", "-") and day.isdigit() and month.isdigit() and day != month:
            day, month = (day, month) if int(day) > 12 else (month, day) if int(month) > 12 else (None, None)
        parts = [year, month, day]
    else:
        year = re.search(r"(?<![0-9])[12][0-9]{3}(?![0-9])", text)
        parts = [year and year[0]]
    known = [int(part) for part in itertools.takewhile(lambda part: part and part.isdigit(), parts)]
    if len(known) > 1 and not 1 <= known[1] <= 12:
        return tuple(known[:1])
    return tuple(known[:2] if len(known) > 2 and not 1 <= known[2] <= 31 else known)


def _usual(fen: str) -> bool:
    """Return whether a FEN tag is that of the usual start, whatever its counters."""
    parts = fen.split()[:4]
    return parts == chess.STARTING_FEN.split()[: len(parts)]


def _rating(text: str) -> int | None:
    text = text.strip()
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    return value or None


def _control(text: str) -> tuple[int, int] | None:
    """Return a player's seconds at first, and the increment for each move."""
    match = _TIME_CONTROL.match(text.strip())
    return None if match is None else (int(match[1]), int(match[2] or 0))


def _speed(control: tuple[int, int] | None) -> str:
    if control is None:
        return ""
    seconds = control[0] + 40 * control[1]
    return SPEEDS[sum(seconds >= limit for limit in _SPEED_SECONDS)]
