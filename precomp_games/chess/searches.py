"""What a search is: its limit, its lines and its result, and a result's compact text.

Scores are the engine's own, from the viewpoint of the side to move; centipawns are ints, and a mate
is never a centipawn value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Line", "SearchLimit", "SearchResult", "decode", "encode"]

MAX_LIMIT = 10**15
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")
_LINE = re.compile(
    r"(?P<move>[a-h][1-8][a-h][1-8][qrbn]?):"
    r"(?:(?P<cp>0|-?[1-9][0-9]{0,8})|#(?P<mate>-?[1-9][0-9]{0,8}))"
)


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """How long an engine searches a position: a number of nodes, or a time in milliseconds.

    Exactly one is set. Node limits are reproducible; at move times the best move differs from run
    to run in a tenth of the positions.
    """

    nodes: int | None = None
    movetime_ms: int | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.nodes, self.movetime_ms) if value is not None]
        if len(given) != 1 or type(given[0]) is not int or not 1 <= given[0] <= MAX_LIMIT:
            raise ValueError(
                "SearchLimit(): expected either nodes or movetime_ms, a positive int, "
                f"got nodes={self.nodes!r}, movetime_ms={self.movetime_ms!r}"
            )

    def __str__(self) -> str:
        return f"nodes={self.nodes}" if self.nodes is not None else f"movetime={self.movetime_ms}"

    @classmethod
    def parse(cls, text: str) -> SearchLimit:
        """The limit that `str` gives: "nodes=5000" or "movetime=50" (milliseconds)."""
        match = re.fullmatch(r"(nodes|movetime)=([1-9][0-9]{0,15})", text)
        if match is None or int(match[2]) > MAX_LIMIT:
            raise ValueError(f"SearchLimit.parse(): expected 'nodes=5000' or 'movetime=50', got {text!r}")
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
        cp: the score in the engine's centipawns, or None where it is a mate.
        mate: moves to mate, or None: +3 means that the side to move mates in 3, -2 that it is mated
            in 2. Never 0, and exactly one of `cp` and `mate` is set.
    """

    move: str
    cp: int | None
    mate: int | None

    def __post_init__(self) -> None:
        if not isinstance(self.move, str) or not _MOVE.fullmatch(self.move):
            raise ValueError(f"Line(): expected a UCI move such as 'e2e4', got {self.move!r}")
        given = [value for value in (self.cp, self.mate) if value is not None]
        if len(given) != 1 or type(given[0]) is not int or self.mate == 0:
            raise ValueError(
                "Line(): expected either cp or mate as an int, and mate not 0, "
                f"got cp={self.cp!r}, mate={self.mate!r}"
            )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        lines: one `Line` a move, best first, all of them exact and of the same depth; as many as
            MultiPV asked for, or as there are legal moves where those are fewer.
        depth: the iteration the lines come from, in the engine's plies.
        nodes: what the whole search visited, the iteration that the limit interrupted included.
    """

    lines: tuple[Line, ...]
    depth: int
    nodes: int


def encode(result: SearchResult) -> str:
    """The lines as text: "e2e4:31 d2d4:-28", with "#3" and "#-2" for mates."""
    return " ".join(
        f"{line.move}:{line.cp}" if line.cp is not None else f"{line.move}:#{line.mate}"
        for line in result.lines
    )


def decode(depth: object, nodes: object, text: object, multipv: int) -> SearchResult:
    """A row as a `SearchResult`; ValueError if it is not one that `encode` writes."""
    if type(depth) is not int or type(nodes) is not int or type(text) is not str:
        raise ValueError("values of the wrong type")
    if depth < 0 or nodes < 0:
        raise ValueError("a negative depth or node count")
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
    return SearchResult(tuple(lines), depth, nodes)
