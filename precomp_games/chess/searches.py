"""What a search is: its limit, its lines, what was played, and the compact text of these.

Scores are the engine's own, from the viewpoint of the side to move; centipawns are ints, and a mate
is never a centipawn value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from precomp_games.checks import check_integer, shown

__all__ = [
    "MATE_CP",
    "MAX_CP",
    "MAX_DEPTH",
    "MAX_LIMIT",
    "MAX_MATE",
    "MAX_MULTIPV",
    "MAX_NODES",
    "MAX_SAMPLES",
    "Line",
    "SearchLimit",
    "SearchResult",
    "decode",
    "decode_played",
    "encode_lines",
    "encode_played",
]

# What an engine can mean; numbers beyond these are nonsense, wherever they are read. Engines write scores of
# at most some 32,000 centipawns. Any mate outranks any other score: MATE_CP - MAX_MATE > MAX_CP.
MATE_CP = 100_000
"""Centipawns of a mate on the board: mate in n moves is MATE_CP - n, finite so that softmax is defined."""
MAX_CP = 50_000
MAX_MATE = 10_000
MAX_DEPTH = 10_000
MAX_MULTIPV = 500
"""The largest MultiPV that is asked for, Stockfish's."""
MAX_LIMIT = 10**15
"""The largest `SearchLimit`, in nodes or milliseconds."""
MAX_NODES = 10**17  # what a search visits; SQLite's integers end at 9 * 10**18
MAX_SAMPLES = 10**6
"""How often one position is searched to see what an engine plays there."""

_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")
_LINE = re.compile(
    r"(?P<move>[a-h][1-8][a-h][1-8][qrbn]?):"
    r"(?:(?P<cp>0|-?[1-9][0-9]{0,8})|#(?P<mate>-?[1-9][0-9]{0,8}))"
)
_PLAYED = re.compile(r"([a-h][1-8][a-h][1-8][qrbn]?):([1-9][0-9]{0,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """How long an engine searches a position: a number of nodes, or a time in milliseconds.

    Exactly one is set. Node limits are reproducible; at move times the best move differs from run
    to run in a tenth of the positions.
    """

    nodes: int | None = None
    movetime_ms: int | None = None

    def __post_init__(self) -> None:
        """Checks the limit.

        Raises:
          ValueError: none of the two is set, or both; or it is no integer from 1 to `MAX_LIMIT`.
        """
        if (self.nodes is None) == (self.movetime_ms is None):
            raise ValueError(
                "SearchLimit(): expected either nodes or movetime_ms, "
                f"got nodes={shown(self.nodes)}, movetime_ms={shown(self.movetime_ms)}"
            )
        name = "nodes" if self.nodes is not None else "movetime_ms"
        value = check_integer(getattr(self, name), name, "SearchLimit()", least=1, most=MAX_LIMIT)
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"nodes={self.nodes}" if self.nodes is not None else f"movetime={self.movetime_ms}"

    @classmethod
    def parse(cls, text: str) -> SearchLimit:
        """The limit that `str` gives: "nodes=5000" or "movetime=50" (milliseconds).

        Raises:
          ValueError: other text.
        """
        match = isinstance(text, str) and re.fullmatch(r"(nodes|movetime)=([1-9][0-9]{0,15})", text)
        if not match or int(match[2]) > MAX_LIMIT:
            raise ValueError(
                f"SearchLimit.parse(): expected 'nodes=5000' or 'movetime=50', got {shown(text)}"
            )
        value = int(match[2])
        return cls(nodes=value) if match[1] == "nodes" else cls(movetime_ms=value)

    @property
    def uci(self) -> str:
        """The arguments of UCI's `go`."""
        return str(self).replace("=", " ")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a search: its first move and its score, from the side to move's viewpoint.

    Attributes:
        move: the move in UCI notation, e.g. "e7e8q".
        cp: the score in the engine's centipawns, at most `MAX_CP` either way, or None where it is a mate.
        mate: moves to mate, at most `MAX_MATE`, or None: +3 means that the side to move mates in 3, -2
            that it is mated in 2. Never 0, and exactly one of `cp` and `mate` is set.
    """

    move: str
    cp: int | None
    mate: int | None

    def __post_init__(self) -> None:
        if not isinstance(self.move, str) or not _MOVE.fullmatch(self.move):
            raise ValueError(f"Line(): expected a UCI move such as 'e2e4', got {self.move!r}")
        if self.mate is None:
            holds = type(self.cp) is int and -MAX_CP <= self.cp <= MAX_CP
        else:
            holds = self.cp is None and type(self.mate) is int and 1 <= abs(self.mate) <= MAX_MATE
        if not holds:
            raise ValueError(
                f"Line(): expected either cp or mate as an int, cp at most {MAX_CP} either way, and mate "
                f"from 1 to {MAX_MATE} either way, got cp={shown(self.cp)}, mate={shown(self.mate)}"
            )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        lines: one `Line` a move, best first, all of them exact and of the same depth; as many as
            MultiPV asked for, or as there are legal moves where those are fewer.
        depth: the iteration the lines come from, in the engine's plies.
        nodes: what the whole search visited, the iteration that the limit interrupted included.
        played: (move, how often it was the engine's answer) in so many fresh searches, the most frequent
            first; empty where that was not asked for.
        last: what the first of these searches reported last, bounds and unfinished iterations included, one
            `Line` a move; empty where that was not asked for.
    """

    lines: tuple[Line, ...]
    depth: int
    nodes: int
    played: tuple[tuple[str, int], ...] = ()
    last: tuple[Line, ...] = ()

    @property
    def samples(self) -> int:
        """How many searches `played` counts."""
        return sum(count for _, count in self.played)


def encode_lines(lines: tuple[Line, ...]) -> str:
    """Lines as text: "e2e4:31 d2d4:-28", with "#3" and "#-2" for mates."""
    return " ".join(
        f"{line.move}:{line.cp}" if line.cp is not None else f"{line.move}:#{line.mate}" for line in lines
    )


def decode(depth: object, nodes: object, text: object, multipv: int) -> SearchResult:
    """A row as a `SearchResult` without what was played; ValueError if it is not one."""
    if type(depth) is not int or type(nodes) is not int:
        raise ValueError("values of the wrong type")
    if not 0 <= depth <= MAX_DEPTH or not 0 <= nodes <= MAX_NODES:
        raise ValueError(f"depth {depth} and {nodes} nodes")
    return SearchResult(_decode_lines(text, multipv), depth, nodes)


def encode_played(played: tuple[tuple[str, int], ...]) -> str:
    """What was played as text: "e2e4:13 d2d4:7"."""
    return " ".join(f"{move}:{count}" for move, count in played)


def decode_played(
    result: SearchResult, played: object, last: object, multipv: int, samples: int
) -> SearchResult:
    """A result with what was played in so many searches; ValueError if texts are not what was written."""
    moves: dict[str, int] = {}
    for item in played.split(" ") if isinstance(played, str) else [""]:
        match = _PLAYED.fullmatch(item)
        if match is None or match[1] in moves:
            raise ValueError(f"the move played {item[:40]!r}")
        moves[match[1]] = int(match[2])
    if sum(moves.values()) != samples:
        raise ValueError(f"{sum(moves.values())} searches of {samples}")
    lines = _decode_lines(last, multipv)
    return SearchResult(result.lines, result.depth, result.nodes, tuple(moves.items()), lines)


def _decode_lines(text: object, multipv: int) -> tuple[Line, ...]:
    if type(text) is not str:
        raise ValueError("values of the wrong type")
    lines = []
    for item in text.split(" "):
        match = _LINE.fullmatch(item)
        if match is None:
            raise ValueError(f"the line {item[:40]!r}")
        cp, mate = match["cp"], match["mate"]
        lines.append(
            Line(match["move"], None if cp is None else int(cp), None if mate is None else int(mate))
        )
    if len(lines) > multipv or len({line.move for line in lines}) < len(lines):
        raise ValueError(f"{len(lines)} lines with MultiPV {multipv}, or a move twice")
    return tuple(lines)
