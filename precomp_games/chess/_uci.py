"""What `engine.py` adds to python-chess's UCI protocol: a strict, quick search command.

`SearchReport` is the reading of one search's output, apart from processes; `SearchCommand` sends
the search and feeds it; `UciEngine` is python-chess's process and protocol with a way to kill it
for good.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import chess
import chess.engine

from precomp_games.chess.searches import (
    MAX_CP,
    MAX_DEPTH,
    MAX_MATE,
    MAX_MULTIPV,
    MAX_NODES,
    Line,
    SearchLimit,
    SearchResult,
)

MAX_LINE_BYTES = 1 << 20  # an engine that writes on without a line break is not one
MAX_UNKNOWN_LINES = 10_000  # UCI lets an engine write what a GUI does not know, within reason
EXCESS = 20  # times the node limit, and a million more: an engine that goes on so far does not heed it
EXHAUSTED_DEPTH = 60  # plies; engines stop by themselves somewhere above this
QUIT_SECONDS = 1.0
KILL_SECONDS = 5.0

_T = TypeVar("_T")
_RANGES = {  # least and most of each number that is read
    "depth": (0, MAX_DEPTH),
    "multipv": (1, MAX_MULTIPV),
    "nodes": (0, MAX_NODES),
    "cp": (-MAX_CP, MAX_CP),
    "mate": (-MAX_MATE, MAX_MATE),
}
_LONGEST_NUMBER = 20  # characters; int() refuses more than some 4,000, and takes long over them
_SKIPPED = frozenset({"seldepth", "nps", "hashfull", "tbhits", "time", "cpuload", "currmove"})


class BadOutput(Exception):
    """The engine's answer is not what UCI says; the text names what came."""


@dataclass(frozen=True, slots=True)
class Question:
    """A position to search.

    Attributes:
        index: which of the positions it is.
        epd, fen: the position as given, and as sent.
        limit, multipv: what is asked for.
        lines: how many lines must come.
        samples: how many fresh searches tell what is played; 0 where that is not asked for.
    """

    index: int
    epd: str
    fen: str
    limit: SearchLimit
    multipv: int
    lines: int
    samples: int = 0


class UciEngine(chess.engine.UciProtocol):
    """One engine process."""

    def __init__(self) -> None:
        super().__init__()
        self.multipv: int | None = None  # what the engine was last told
        self._said: collections.deque[str] = collections.deque(maxlen=3)

    async def ask(self, command: chess.engine.BaseCommand[_T]) -> _T:
        """Runs a command and waits for its result."""
        return await self.communicate(lambda _: command)

    def remember(self, line: str) -> None:
        """Keeps a line for error messages."""
        self._said.append(line[:200])

    def last_words(self) -> str:
        """What the engine last wrote outside the protocol, as a part of an error message."""
        return f" (it wrote: {' / '.join(self._said)!r})" if self._said else ""

    def error_line_received(self, line: str) -> None:
        self.remember(line)  # python-chess would log it, which prints

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        # Replaces python-chess's, which copies the rest of the buffer for every line, and logs a
        # warning for what is no UTF-8.
        buffer = self.buffer[fd]
        buffer.extend(data.encode() if isinstance(data, str) else data)
        *lines, rest = buffer.split(b"\n")
        self.buffer[fd] = rest
        for line in lines:
            self._line(fd, line.rstrip(b"\r").decode("utf-8", "replace"))
        if len(rest) > MAX_LINE_BYTES:
            self.buffer[fd] = bytearray()
            self.remember(f"{MAX_LINE_BYTES} bytes without a line break")
            self.signal_kill()

    def _line(self, fd: int, line: str) -> None:
        if fd == 1:
            self._line_received(line)
        else:
            self.error_line_received(line)

    def signal_kill(self) -> None:
        """Sends SIGKILL to the engine and what it started, which ends a stopped process too."""
        transport = self.transport
        if transport is None:
            return
        if transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(transport.get_pid(), signal.SIGKILL)  # it leads a group of its own
                else:
                    transport.kill()
        transport.close()

    async def kill(self) -> None:
        """Kills the process and waits until it is gone."""
        self.signal_kill()
        await asyncio.wait([self.returncode], timeout=KILL_SECONDS)

    async def quit_or_kill(self) -> None:
        """Asks the engine to end, and kills it where it does not within a second."""
        if not self.returncode.done():
            self.send_line("quit")
            await asyncio.wait([self.returncode], timeout=QUIT_SECONDS)
        await self.kill()


class SyncCommand(chess.engine.BaseCommand[None]):
    """Waits until the engine has taken in everything sent before."""

    def start(self) -> None:
        self._engine.send_line("isready")

    def line_received(self, line: str) -> None:
        if line.strip() == "readyok" and not self.result.done():
            self.result.set_result(None)
            self.set_finished()


class SearchReport:
    """Reads the `info` lines of one search and keeps the last iteration that was finished.

    An iteration counts when all its lines have come, exact (no bounds), of one depth and with
    different first moves, and a line of a greater depth has come after them: the last report of an
    interrupted search carries the new depth over old scores. Where only one depth was reported in
    all, there is nothing older to fall back on, and it counts.

    Args:
        lines: how many lines there must be: the smaller of MultiPV and the number of legal moves.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._pending: dict[int, Line] = {}
        self._pending_depth = -1
        self._latest: tuple[int, tuple[Line, ...]] | None = None  # complete, perhaps interrupted
        self._finished: tuple[int, tuple[Line, ...]] | None = None
        self._last: dict[int, Line] = {}
        self.nodes = 0
        self.depth = 0  # the greatest reported

    def info(self, tokens: Sequence[str]) -> None:
        """Takes in the words of an `info` line, "info" included.

        Raises:
            ValueError, IndexError: it is malformed, which an engine may do that says what we do not know.
            BadOutput: it has a number that nothing can mean.
        """
        depth, index, nodes = 0, 1, self.nodes
        cp: int | None = None
        mate: int | None = None
        move: str | None = None
        exact = True
        position, end = 1, len(tokens)
        while position < end:
            token = tokens[position]
            value = tokens[position + 1] if position + 1 < end else ""
            position += 2
            if token == "depth":
                depth = _number(token, value)
            elif token == "nodes":
                nodes = _number(token, value)
            elif token == "multipv":
                index = _number(token, value)
            elif token == "score":
                if value == "cp":
                    cp = _number(value, tokens[position])
                elif value == "mate":
                    mate = _number(value, tokens[position])
                position += 1
            elif token == "pv":
                move = value.lower()
            elif token == "string":
                break
            elif token not in _SKIPPED:
                exact = exact and token not in ("lowerbound", "upperbound")
                position -= 1  # a word of its own, e.g. a move of the variation
        self.nodes = nodes
        if move is None or (cp is None and mate is None):
            return
        if depth > self.depth:
            self.depth = depth
            if self._latest is not None:
                self._finished = self._latest
        if index > self._lines:
            return
        if not exact or index in self._pending or depth != self._pending_depth:
            self._pending.clear()
        self._pending_depth = depth
        self._last[index] = line = Line(move, cp, mate)
        if exact:
            self._pending[index] = line
            if len(self._pending) == self._lines:
                found = tuple(self._pending[i + 1] for i in range(self._lines))
                if len({line.move for line in found}) == self._lines:
                    self._latest = depth, found

    def result(self, fen: str, best: str, nodes: int, play: bool = False) -> SearchResult:
        """The result of the finished search.

        Args:
            fen: the position, to check moves against.
            best: the move after "bestmove".
            nodes: how many nodes the engine was told to visit, 0 for no such limit.
            play: the result says what the engine played and what it reported last, too.

        Raises:
            BadOutput: moves that are illegal, lines that are missing, too few nodes.
        """
        board = chess.Board(fen)
        found = self._finished or self._latest
        if found is None:
            raise BadOutput(f"no {self._lines} exact line(s) of one depth before bestmove {best!r}")
        depth, lines = found

        def check(line: Line) -> Line:
            # parse_uci also brings castling as king takes rook into the usual form.
            return Line(board.parse_uci(line.move).uci(), line.cp, line.mate)

        try:
            played = board.parse_uci(best.lower()).uci()
            checked = tuple(map(check, lines))
            reported = [check(self._last[index]) for index in sorted(self._last)] if play else []
        except ValueError as err:
            raise BadOutput(f"an illegal move: {err}") from None
        if self.nodes < nodes and not self._exhausted(board, lines[0]):
            raise BadOutput(f"{self.nodes} nodes reported of {nodes} asked")
        if not play:
            return SearchResult(checked, depth, self.nodes)
        last: dict[str, Line] = {}
        for line in reported:  # of a move that stands in two places, the better one counts
            last.setdefault(line.move, line)
        return SearchResult(checked, depth, self.nodes, ((played, 1),), tuple(last.values()))

    def _exhausted(self, board: chess.Board, best: Line) -> bool:
        """Whether an engine may stop before its limit: depth used up, mate proven, one move."""
        if self.depth >= EXHAUSTED_DEPTH or sum(1 for _ in board.legal_moves) == 1:
            return True
        return best.mate is not None and self.depth >= 2 * abs(best.mate) - 1


def _number(name: str, text: str) -> int:
    """A number of an `info` line; ValueError where there is none, BadOutput where it is nonsense."""
    least, most = _RANGES[name]
    if len(text) > _LONGEST_NUMBER or not least <= (number := int(text)) <= most:
        raise BadOutput(f"{name} {text[:_LONGEST_NUMBER]!r} where a number from {least} to {most} can be")
    return number


class SearchCommand(chess.engine.BaseCommand[SearchResult]):
    """A new game, one position, one search by the engine it is given to."""

    def __init__(self, engine: UciEngine, question: Question) -> None:
        super().__init__(engine)
        self._uci = engine
        self._question = question
        self._nodes = question.limit.nodes or 0  # how many must be visited, 0 for no such limit
        self._report = SearchReport(question.lines)
        self._ready = False
        self._unknown = 0

    def start(self) -> None:
        sent, asked = [], self._question
        if self._uci.multipv != asked.multipv and "MultiPV" in self._uci.options:
            sent.append(f"setoption name MultiPV value {asked.multipv}")
            self._uci.multipv = asked.multipv
        # All in one write: an engine takes its input in order. The answer to isready parts the
        # output of this search from anything that was still to come from earlier ones.
        sent += ["ucinewgame", "isready", f"position fen {asked.fen}", f"go {asked.limit.uci}"]
        self._uci.send_line("\n".join(sent))

    def line_received(self, line: str) -> None:
        tokens = line.split()
        if not tokens or self.result.done():
            return
        try:
            self._read(line, tokens)
        except BadOutput as err:
            self.result.set_exception(err)
            self.set_finished()

    def _read(self, line: str, tokens: list[str]) -> None:
        """Takes in a line; BadOutput, which ends the search, where it cannot be one of it."""
        if not self._ready:
            self._ready = tokens == ["readyok"]
        elif tokens[0] == "info":
            if tokens[1:3] == ["string", "ERROR:"]:
                self._uci.remember(line)
            try:
                self._report.info(tokens)
            except (ValueError, IndexError):
                self._strange(line)
            if self._nodes and self._report.nodes > EXCESS * self._nodes + 1_000_000:
                raise BadOutput(
                    f"{self._report.nodes} nodes and no end, {self._nodes} asked: no heed of node limits"
                )
        elif tokens[0] == "bestmove":
            best = tokens[1] if len(tokens) > 1 else ""
            asked = self._question
            self.result.set_result(self._report.result(asked.fen, best, self._nodes, asked.samples > 0))
            self.set_finished()
        else:
            self._strange(line)

    def _strange(self, line: str) -> None:
        self._uci.remember(line)
        self._unknown += 1
        if self._unknown > MAX_UNKNOWN_LINES:
            raise BadOutput(f"{self._unknown} lines that are no UCI")
