"""Questions to engines and their answers: positions, options and limits; lines, and their text.

Scores are the engine's own, from the viewpoint of the side to move; centipawns are ints, and a mate
is never a centipawn value.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, NamedTuple

import chess
import chess.engine

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown

# Ranges of meaningful numbers; those beyond are nonsense, wherever they are read. Engines write scores of at
# most some 32,000 centipawns. Any mate outranks any other score: MATE_CP - MAX_MATE > MAX_CP.
MATE_CP = 100_000
"""Centipawns of a mate on the board: mate in n moves is MATE_CP - n, finite so that softmax is defined."""
MAX_CP = 50_000
MAX_MATE = 10_000
MAX_DEPTH = 10_000
MAX_MULTIPV = 500
"""The largest MultiPV, Stockfish's."""
MAX_LIMIT = 10**15
"""The largest `SearchLimit`, in nodes or milliseconds."""
MAX_NODES = 10**17  # nodes of a search; SQLite's integers end at 9 * 10**18
_MOST_NODES = 1_000_000  # the largest limit with which a search with too few lines is repeated
_MOST_MILLISECONDS = 10_000
MAX_SAMPLES = 10**6
"""The largest number of searches of one position that record an engine's move."""

Multipv = Annotated[int, checks.Ge(1), checks.Le(MAX_MULTIPV)]
"""Number of lines of a search."""
Samples = Annotated[int, checks.Ge(0), checks.Le(MAX_SAMPLES)]
"""Number of fresh searches that record an engine's move; 0: only its lines are wanted."""
SomeSamples = Annotated[int, checks.Ge(1), checks.Le(MAX_SAMPLES)]
"""Number of fresh searches that record an engine's move, at least one."""

_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")
_LINE = re.compile(rf"({_MOVE.pattern}):(?:(0|-?[1-9][0-9]{{0,8}})|#(-?[1-9][0-9]{{0,8}}))")
_PLAYED = re.compile(rf"({_MOVE.pattern}):([1-9][0-9]{{0,6}})")
# Names of limits in UCI and in stores, by attribute.
_LIMITS = {"nodes": "nodes", "movetime_ms": "movetime", "depth": "depth"}


@public
@dataclass(frozen=True, slots=True)
class SearchLimit:
    """Limit of a search: a number of nodes, a time in milliseconds, or a depth in iterations.

    Exactly one is set. Limits of nodes and of depth are reproducible; at move times the best move differs
    from run to run in a tenth of the positions. A depth is the engine's own, in plies: for another engine, or
    another version, it is another amount of work, and even one engine takes a hundred times as long in one
    position as in another.
    """

    nodes: Annotated[int, checks.Ge(1), checks.Le(MAX_LIMIT)] | None = None
    movetime_ms: Annotated[int, checks.Ge(1), checks.Le(MAX_LIMIT)] | None = None
    depth: Annotated[int, checks.Ge(1), checks.Le(MAX_DEPTH)] | None = None

    def __post_init__(self) -> None:
        """Check the limit.

        Raises:
          ValueError: none of the three is set, or several.
        """
        given = [name for name in _LIMITS if getattr(self, name) is not None]
        if len(given) != 1:
            limits = ", ".join(f"{name}={shown(getattr(self, name))}" for name in _LIMITS)
            raise ArgumentError(f"expected one of nodes, movetime_ms and depth, got {limits}")

    def __str__(self) -> str:
        given = ((called, getattr(self, name)) for name, called in _LIMITS.items())
        return next(f"{called}={value}" for called, value in given if value is not None)

    @classmethod
    @public
    def parse(cls, text: str) -> SearchLimit:
        """Return the limit that `str` gives: "nodes=5000", "movetime=50" (milliseconds) or "depth=4".

        Raises:
          ValueError: other text.
        """
        kind, _, number = text.partition("=")
        with contextlib.suppress(ValueError):  # no number, or too large a one
            limit = cls(**{name: int(number) for name, called in _LIMITS.items() if called == kind})
            if str(limit) == text:
                return limit
        raise ArgumentError(f"expected 'nodes=5000', 'movetime=50' or 'depth=4', got {shown(text)}")

    @property
    def uci(self) -> str:
        """The arguments of UCI's `go`."""
        return str(self).replace("=", " ")


def limit_text(value: Any, name: str) -> str:
    """Return the text of a limit, given as a `SearchLimit` or as text; ArgumentError otherwise."""
    limit = SearchLimit.parse(value) if isinstance(value, str) else value
    return str(checks.check_instance(limit, SearchLimit, name))


@public
@dataclass(frozen=True, slots=True)
class Line:
    """A line of a search: its first move and its score, from the side to move's viewpoint.

    Attributes:
        move: the move in UCI notation, e.g. "e7e8q".
        cp: the score in the engine's centipawns, at most `MAX_CP` either way, or None if it is a mate.
        mate: moves to mate, at most `MAX_MATE`, or None: +3 if the side to move mates in 3, -2 if it is mated
            in 2. Never 0, and exactly one of `cp` and `mate` is set.
    """

    move: str
    cp: int | None
    mate: int | None

    def __post_init__(self) -> None:
        if not _MOVE.fullmatch(self.move):
            raise ArgumentError(f"expected a UCI move such as 'e2e4', got {self.move!r}")
        if self.mate is None:
            holds = self.cp is not None and -MAX_CP <= self.cp <= MAX_CP
        else:
            holds = self.cp is None and 1 <= abs(self.mate) <= MAX_MATE
        if not holds:
            raise ArgumentError(
                f"expected either cp or mate as an int, cp at most {MAX_CP} either way, and mate "
                f"from 1 to {MAX_MATE} either way, got cp={shown(self.cp)}, mate={shown(self.mate)}"
            )


@functools.lru_cache(1 << 16)
def line_of(move: str, cp: int | None, mate: int | None) -> Line:
    """Return a `Line` of numbers that were read; equal lines of engines and stores are checked once."""
    return Line(move, cp, mate)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        lines: a `Line` for each move, best first, all of them exact and of the same depth; as many as
            MultiPV asked for, or as there are legal moves if those are fewer. Empty if the engine's move was
            asked for, and the engine gave only that.
        depth: the iteration of the lines, in the engine's plies.
        nodes: nodes of the whole search, the interrupted iteration included. Twice the limit or more if that
            was too small for all lines, and the position was searched on.
        played: (move, number of fresh searches that answered it), the most frequent first; empty if that
            was not asked for.
    """

    lines: tuple[Line, ...]
    depth: int
    nodes: int
    played: tuple[tuple[str, int], ...] = ()

    @property
    def samples(self) -> int:
        """Number of searches that `played` counts."""
        return sum(count for _, count in self.played)


def encode_lines(lines: tuple[Line, ...]) -> str:
    """Return lines as text: "e2e4:31 d2d4:-28", with "#3" and "#-2" for mates."""
    return " ".join(
        f"{line.move}:{line.cp}" if line.cp is not None else f"{line.move}:#{line.mate}" for line in lines
    )


def encode_played(played: tuple[tuple[str, int], ...]) -> str:
    """Return the moves played as text: "e2e4:13 d2d4:7"."""
    return " ".join(f"{move}:{count}" for move, count in played)


def decode(
    multipv: int, samples: int, depth: object, nodes: object, lines: object, played: object = ""
) -> SearchResult:
    """Return a row as a `SearchResult`, with the moves played in `samples` searches if there are any.

    Raises:
      ValueError: values that are never written.
    """
    if not (type(depth) is type(nodes) is int and type(lines) is type(played) is str):
        raise ValueError("values of the wrong type")
    if not 0 <= depth <= MAX_DEPTH or not 0 <= nodes <= MAX_NODES:
        raise ValueError(f"depth {depth} and {nodes} nodes")
    alone = samples > 0 and multipv == 1  # a move may be answered without a line
    best = () if alone and not lines else _decode_lines(lines, multipv)
    if not (samples or played):
        return SearchResult(best, depth, nodes)
    counts: dict[str, int] = {}
    for item in played.split(" "):
        match = _PLAYED.fullmatch(item)
        if match is None or match[1] in counts:
            raise ValueError(f"the move played {item[:40]!r}")
        counts[match[1]] = int(match[2])
    if sum(counts.values()) != samples:
        raise ValueError(f"{sum(counts.values())} searches of {samples}")
    return SearchResult(best, depth, nodes, tuple(counts.items()))


def _decode_lines(text: str, multipv: int) -> tuple[Line, ...]:
    lines = []
    for item in text.split(" "):
        match = _LINE.fullmatch(item)
        if match is None:
            raise ValueError(f"the line {item[:40]!r}")
        move, cp, mate = match.groups()
        # There are 1,968 different moves: each text is stored once.
        lines.append(line_of(sys.intern(move), cp and int(cp), mate and int(mate)))
    if len(lines) > multipv or len({line.move for line in lines}) < len(lines):
        raise ValueError(f"{len(lines)} lines with MultiPV {multipv}, or a move twice")
    return tuple(lines)


# With these options an engine searches as usual, and then plays another move than it found: its play is
# weaker, and its scores are not.
_CHOOSE_OF_MOVES = frozenset({"uci_limitstrength", "uci_elo", "skill level", "skill", "temperature"})


Positions = Annotated[Iterable[str], checks.each_of(str)]
"""Positions as text; `check_position` checks them."""

_GAME = " moves"
_MOST_PLIES = 20_000  # by the start's move number as well: engines keep such numbers in 16 bits


def game_text(start: chess.Board, moves: Iterable[chess.Move]) -> str:
    """Return a game so far as text, "<FEN of its start> moves e2e4 e7e5", for an engine that plays it."""
    return " ".join([start.fen(en_passant="fen") + _GAME, *(move.uci() for move in moves)])


def is_game(text: str) -> bool:
    """Return whether a text is a game so far, and not a single position."""
    return _GAME in text


def check_position(epd: str) -> chess.Board:
    """Return the board of an EPD, clocks at 0 1, or of a game; ValueError if there is no legal move."""
    if isinstance(epd, str) and is_game(epd):
        return _check_game(epd)
    problem = "which is no EPD of four fields"
    with contextlib.suppress(ValueError):
        if isinstance(epd, str) and len(epd.split()) == 4:
            board = chess.Board(epd + " 0 1")
            if not board.is_valid():
                problem = f"which cannot come up in chess ({board.status()!r})"
            elif not any(board.legal_moves):
                problem = "which has no legal move to search"
            else:
                return board
    raise ArgumentError(f"expected a position as EPD without clocks, got {shown(epd)}, {problem}")


def _check_game(text: str) -> chess.Board:
    fen, moves = text.split(_GAME, 1)
    with contextlib.suppress(ValueError):
        board = chess.Board(fen)
        if board.is_valid():
            for move in moves.split():
                board.push_uci(move)
            # One text for each game, as `game_text` writes it: no null moves, and no other notation.
            same = all(board.move_stack) and game_text(board.root(), board.move_stack) == text
            if same and board.ply() <= _MOST_PLIES and any(board.legal_moves):
                return board
    raise ArgumentError(
        "expected a game as FEN, 'moves' and legal moves as UCI writes them, after which another one is, got "
        f"{shown(text)}"
    )


def number_of_lines(board: chess.Board, multipv: int) -> int:
    """Count legal moves, up to a MultiPV."""
    return sum(1 for _ in islice(board.legal_moves, multipv))


class Turn(NamedTuple):
    """A turn of a game that an engine plays; its answer depends on the game so far.

    Attributes:
        start: FEN of the game's start.
        moves: the moves since, of both sides.
        limit, multipv: of all searches of the game.
    """

    start: str
    moves: tuple[str, ...]
    limit: SearchLimit
    multipv: int

    @property
    def before(self) -> Turn | None:
        """The engine's turn before this one."""
        return self._replace(moves=self.moves[:-2]) if len(self.moves) > 1 else None


@dataclass(frozen=True, slots=True)
class Question:
    """A position to search, or a game to play on.

    Attributes:
        index: number of the position in the call.
        epd, fen: the position as given, and its FEN with clocks.
        limit, multipv: of the search.
        lines: number of lines that must come.
        samples: number of fresh searches that record the move played; 0: none is wanted.
        turn: the turn of its game; None for a single position.
    """

    index: int
    epd: str
    fen: str
    limit: SearchLimit
    multipv: int
    lines: int
    samples: int = 0
    turn: Turn | None = None

    @classmethod
    def of(cls, index: int, epd: str, limit: SearchLimit, multipv: int, samples: int = 0) -> Question:
        """Return the question for a position or game; ValueError if it cannot be searched."""
        board = check_position(epd)
        turn = None
        if is_game(epd):
            start, moves = board.root().fen(en_passant="fen"), tuple(m.uci() for m in board.move_stack)
            turn = Turn(start, moves, limit, multipv)
        fen, lines = board.fen(en_passant="fen"), number_of_lines(board, multipv)
        return cls(index, epd, fen, limit, multipv, lines, samples, turn)

    @property
    def position(self) -> str:
        """The arguments of UCI's `position`."""
        if self.turn is None:
            return f"fen {self.fen}"
        moves = ["moves", *self.turn.moves] if self.turn.moves else []
        return " ".join([f"fen {self.turn.start}", *moves])

    def longer(self) -> Question | None:
        """Return it with twice its limit, for more lines; None if that is out of proportion."""
        nodes, milliseconds = self.limit.nodes, self.limit.movetime_ms
        if nodes is not None and 2 * nodes <= _MOST_NODES:
            return replace(self, limit=SearchLimit(nodes=2 * nodes))
        if milliseconds is not None and 2 * milliseconds <= _MOST_MILLISECONDS:
            return replace(self, limit=SearchLimit(movetime_ms=2 * milliseconds))
        return None


def check_command(command: Any) -> list[str]:
    """Return a command as a list."""
    given = [command] if isinstance(command, str) else command
    if isinstance(given, list | tuple) and given and all(isinstance(a, str) and a for a in given):
        return list(given)
    raise ArgumentError(f"expected command to be text or a list of texts, none empty, got {shown(command)}")


def _options(options: Any, name: str) -> dict[str, str | int | bool]:
    if not isinstance(options, Mapping):
        raise ArgumentError(f"expected options by name, got {shown(options)}")
    for name, value in options.items():
        problem = None
        if not isinstance(name, str) or not isinstance(value, (str, int, bool)):
            problem = "options as UCI names with a str, int or bool"
        elif not f"{name}{value}".isprintable():  # a line break would be another command
            problem = "options without control characters"
        elif name.lower() in chess.engine.MANAGED_OPTIONS:
            problem = "options that the pool does not set itself"
        if problem is not None:
            raise ArgumentError(f"expected {problem}, got {shown(name)}: {shown(value)}")
    return dict(options)


Options = Annotated[Mapping[str, str | int | bool], checks.Check(_options)]
"""UCI options by name, checked as far as possible without the engine's own list."""


def named_options(texts: Iterable[str] | None, flag: str) -> dict[str, str]:
    """Return the options of a repeatable flag, each "Name=value"."""
    options = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ValueError(f'--{flag}: expected "Name=value", got {text!r}')
        options[name.strip()] = value.strip()
    return options


def identity_options(engine_id: str) -> list[str]:
    """Return the options in an engine's identity, as "Name=value"."""
    match = re.search(r" \[(.*)\]$", engine_id)
    return match[1].split(", ") if match else []


def weakened_by(engine_id: str) -> str:
    """Return the first option of an identity that makes the engine play weaker than it finds, or ""."""
    options = identity_options(engine_id)
    return next((text for text in options if text.partition("=")[0].lower() in _CHOOSE_OF_MOVES), "")


def check_strength(options: Iterable[str]) -> None:
    """Raise ArgumentError for a rating, among options as "Name=value", that the engine would ignore."""
    lowered = [text.lower() for text in options]
    rating = next((text for text in options if text.lower().startswith("uci_elo=")), None)
    if rating is not None and "uci_limitstrength=true" not in lowered:
        raise ArgumentError(
            f"expected UCI_LimitStrength=true beside {rating!r}, got it left off: without "
            "it the rating changes nothing, neither moves nor scores"
        )
