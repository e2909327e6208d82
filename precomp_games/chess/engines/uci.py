"""UCI engines: python-chess's protocol, with a strict and quick search and a sure end.

`SearchReport` reads one search's output, apart from processes; `SearchCommand` sends the search and passes
the output on; `EngineProcess` is python-chess's process and protocol with a way to kill it for good;
`EngineThread` is the thread in which all users talk to engines.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import chess
import chess.engine

from precomp_games._support.checks import one_line
from precomp_games.chess.engines import searches
from precomp_games.chess.engines.searches import Line, Question, SearchLimit, SearchResult, Turn, line_of

BASE_OPTIONS: Mapping[str, int] = {"Threads": 1, "Hash": 16}  # Hash in MiB
MAX_LINE_BYTES = 1 << 20  # output without a line break beyond this is no UCI engine's
MAX_UNKNOWN_LINES = 10_000  # UCI lets an engine write lines that a GUI does not know, within reason
EXCESS = 20  # times the node limit, and a million more: an engine beyond that does not keep the limit
EXHAUSTED_DEPTH = 60  # plies; engines stop by themselves somewhere above this
QUIT_SECONDS = 1.0
COUNT_SECONDS = 5.0  # an engine that reports lines for so long, and no nodes, reports none at all
DEEPER = 10  # plies beyond a limit of depth: an engine beyond that does not keep the limit
KILL_SECONDS = 5.0

_T = TypeVar("_T")
_RANGES = {  # least and greatest value of each number that is read
    "depth": (0, searches.MAX_DEPTH),
    "multipv": (1, searches.MAX_MULTIPV),
    "nodes": (0, searches.MAX_NODES),
    "cp": (-searches.MAX_CP, searches.MAX_CP),
    "mate": (-searches.MAX_MATE, searches.MAX_MATE),
}
_LONGEST_NUMBER = 20  # characters; int() refuses more than some 4,000, and takes long over them
_SKIPPED = frozenset({"seldepth", "nps", "hashfull", "tbhits", "time", "cpuload", "currmove"})


class BadOutput(Exception):
    """The engine's answer is not UCI; the text quotes it."""


class TooFewLines(BadOutput):
    """The limit ended the search during its first iteration: a longer search has more lines."""


class NoNodes(BadOutput):
    """The engine does not report nodes, so it is unknown whether it keeps a limit of them."""


class NoScores(BadOutput):
    """The engine gives only its move, where its lines are wanted."""


class EngineProcess(chess.engine.UciProtocol):
    """An engine process."""

    def __init__(self) -> None:
        super().__init__()
        self.multipv: int | None = None  # as last set
        self.turn: Turn | None = None  # the last one that it has searched, in a game
        self._said: collections.deque[str] = collections.deque(maxlen=3)

    async def ask(self, command: chess.engine.BaseCommand[_T]) -> _T:
        """Run a command and wait for its result."""
        return await self.communicate(lambda _: command)

    async def set_options(self, options: Mapping[str, str | int | bool]) -> str:
        """Set the options and return the engine's identity."""
        if not self.id.get("name", "").strip():
            raise chess.engine.EngineError("no 'id name', without which searches have no key")
        name = one_line(self.id["name"])
        lacking = [option for option in options if option not in self.options]
        if lacking:
            raise chess.engine.EngineError(
                f"no option {lacking[0]!r} (it has: {', '.join(sorted(self.options))})"
            )
        base = chess.engine.UciOptionMap(BASE_OPTIONS.items())  # names in any case
        settings = chess.engine.UciOptionMap[str | int | bool | None](options.items())
        for option, usual in {**base, "UCI_AnalyzeMode": True}.items():
            if option in self.options:
                settings.setdefault(option, usual)
        await self.configure(settings)
        await self.ask(SyncCommand(self))
        different = []
        for option in sorted(options, key=str.lower):
            spec = self.options[option]
            if spec.type == "button":
                raise chess.engine.EngineError(f"{option!r} as a button, which is no setting")
            value = spec.parse(options[option])
            if value != base.get(option, spec.default):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                different.append(f"{spec.name}={text}")
        searches.check_strength(different)
        return f"{name} [{', '.join(different)}]" if different else name

    def remember(self, line: str) -> None:
        """Keep a line for error messages."""
        self._said.append(line[:200])

    def last_words(self) -> str:
        """Return the engine's last output outside the protocol, as a part of an error message."""
        return f" (it wrote: {' / '.join(self._said)!r})" if self._said else ""

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Read the engine's output, and kill an engine that writes on without a line break."""
        # Replaces python-chess's method, which copies the rest of the buffer for every line, and logs a
        # warning for output that is not UTF-8, and for everything on the other pipe.
        buffer = self.buffer[fd]
        buffer.extend(data.encode() if isinstance(data, str) else data)
        *lines, rest = buffer.split(b"\n")
        self.buffer[fd] = rest
        take = self._line_received if fd == 1 else self.remember
        for line in lines:
            take(line.rstrip(b"\r").decode("utf-8", "replace"))
        if len(rest) > MAX_LINE_BYTES:
            self.buffer[fd] = bytearray()
            self.remember(f"{MAX_LINE_BYTES} bytes without a line break")
            self.signal_kill()

    def signal_kill(self) -> None:
        """Send SIGKILL to the engine and its child processes, which ends a stopped process too."""
        if (transport := self.transport) is None:
            return
        if transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(transport.get_pid(), signal.SIGKILL)  # it leads a group of its own
        transport.close()

    async def kill(self) -> None:
        """Kill the process and wait until it is gone."""
        self.signal_kill()
        await asyncio.wait([self.returncode], timeout=KILL_SECONDS)

    async def quit_or_kill(self) -> None:
        """Ask the engine to end, and kill it if it does not within a second."""
        try:
            if not self.returncode.done():
                self.send_line("quit")
                await asyncio.wait([self.returncode], timeout=QUIT_SECONDS)
        finally:  # also if this is cancelled: a transport that is left open outlives its loop
            await self.kill()


class EngineThread:
    """A thread with an event loop, in which all communication with engines takes place.

    Attributes:
        loop: the event loop.
        engines: the engines, used in the thread only.
    """

    def __init__(self, name: str, places: int) -> None:
        self.engines: list[EngineProcess | None] = [None] * places
        self.loop = asyncio.new_event_loop()
        # Errors in callbacks of killed processes are ignored; failures reach the caller as errors.
        self.loop.set_exception_handler(lambda loop, context: None)
        self._end: concurrent.futures.Future[None] | None = None
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether the thread runs; it does not in a forked child, whose engines are its parent's."""
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the thread and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the thread, unless the thread has ended."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def end(self) -> None:
        """Cancel all tasks, end all engines and the thread; after an interrupt it may be called again."""
        if not self.is_alive:
            return

        async def finish() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                # Cancelled once: a task that ends its engines must not be interrupted. asyncio's own tasks
                # go on, or it would wait for good for a process whose pipes are not connected.
                if not task.cancelling() and not _of_asyncio(task):
                    task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.gather(*(engine.quit_or_kill() for engine in self.engines if engine is not None))
            self.engines[:] = [None] * len(self.engines)

        def stop() -> None:
            for engine in filter(None, self.engines):  # those for which there was no time
                engine.signal_kill()
            self.loop.stop()

        with contextlib.suppress(Exception):
            if self._end is None:
                self._end = asyncio.run_coroutine_threadsafe(finish(), self.loop)
            self._end.result(timeout=10.0)
        self.call(stop)
        self._thread.join(timeout=5.0)
        if not self.is_alive:
            self.loop.close()


def _of_asyncio(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and os.path.dirname(code.co_filename) == os.path.dirname(asyncio.__file__)


class SyncCommand(chess.engine.BaseCommand[None]):
    """Waits until the engine has read everything sent before."""

    def start(self) -> None:
        """Ask the engine."""
        self._engine.send_line("isready")

    def line_received(self, line: str) -> None:
        """End with the answer."""
        if line.strip() == "readyok" and not self.result.done():
            self.result.set_result(None)
            self.set_finished()


class SearchReport:
    """Reads the `info` lines of one search and keeps the last iteration that was finished.

    An iteration counts when all its lines have come, exact (no bounds), of one depth and with
    different first moves, and a line of a greater depth has come after them: the last report of an
    interrupted search carries the new depth over old scores. If only one depth was reported in all,
    nothing older exists, and it counts. A limit of depth interrupts nothing, so the last iteration
    counts.

    Args:
        lines: number of lines that there must be: the smaller of MultiPV and the number of legal moves.
    """

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._pending: dict[int, Line] = {}
        self._pending_depth = -1
        self._latest: tuple[int, tuple[Line, ...]] | None = None  # depth and lines, perhaps interrupted
        self._finished: tuple[int, tuple[Line, ...]] | None = None
        self.any_lines = False  # whether a line was reported
        self.nodes = 0
        self.counted = False  # whether nodes were reported
        self.depth = 0  # the greatest reported
        self._first_depth = 0

    def info(self, tokens: Sequence[str]) -> None:
        """Read the words of an `info` line, "info" included.

        Raises:
            ValueError, IndexError: it is malformed, or of an unknown kind, which UCI allows.
            BadOutput: it has an impossible number.
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
                self.counted = True
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
        if not self.any_lines:
            self._first_depth = depth
        if depth > self.depth:
            self.depth = depth
            if self._latest is not None:
                self._finished = self._latest
        if index > self._lines:
            return
        self.any_lines = True
        if not exact or index in self._pending or depth != self._pending_depth:
            self._pending.clear()
        self._pending_depth = depth
        line = line_of(move, cp, mate)
        if exact:
            self._pending[index] = line
            if len(self._pending) == self._lines:
                lines = tuple(self._pending[i + 1] for i in range(self._lines))
                if len({line.move for line in lines}) == self._lines:
                    self._latest = depth, lines

    def result(
        self, fen: str, best: str, limit: SearchLimit, play: bool = False, alone: bool = False
    ) -> SearchResult:
        """Return the result of the finished search.

        Args:
            fen: the position, to check moves against.
            best: the move after "bestmove".
            limit: the limit of the search.
            play: whether the result contains the engine's move as well.
            alone: whether the engine's move is enough, if it reported no line.

        Raises:
            NoNodes: there is a limit of nodes, and lines without nodes.
            NoScores: there is a move, and no line.
            TooFewLines: lines are missing, and the engine had no time for more than the first iteration.
            BadOutput: moves that are illegal, lines that are missing, too few nodes, too little depth.
        """
        board = chess.Board(fen)
        played = _usual(board, best)
        iteration = self._latest if limit.depth else self._finished or self._latest
        if limit.nodes and self.any_lines and not self.counted:
            raise NoNodes("lines without nodes")
        if iteration is None:
            missing = f"no {self._lines} exact line(s) of one depth before bestmove {best!r}"
            used_up = not limit.depth and self.nodes >= (limit.nodes or 0)
            if played and used_up and self.any_lines and self.depth == self._first_depth:
                raise TooFewLines(missing)
            if played and alone:
                return SearchResult((), self.depth, self.nodes, ((played, 1),))
            if not played or self.any_lines:
                raise BadOutput(missing)
            raise NoScores(
                f"{missing}, and no score: an engine that answers its move alone plays with "
                "--opponent_plays=bestmove or uci(plays=bestmove)"
            )
        depth, lines = iteration
        usual = [_usual(board, line.move) for line in lines]
        if not (played and all(usual)):
            raise BadOutput(f"an illegal move among {best!r} and {[line.move for line in lines]}")
        checked = tuple(line_of(move, line.cp, line.mate) for move, line in zip(usual, lines, strict=True))
        asked, what = (limit.depth, "depth") if limit.depth else (limit.nodes or 0, "nodes")
        reached = depth if limit.depth else self.nodes
        if reached < asked and not self._exhausted(board, lines[0]):
            raise BadOutput(f"{reached} {what} reported of {asked} asked")
        return SearchResult(checked, depth, self.nodes, ((played, 1),) if play else ())

    def _exhausted(self, board: chess.Board, best: Line) -> bool:
        """Return whether an engine may stop before its limit: depth used up, mate proven, one move."""
        if self.depth >= EXHAUSTED_DEPTH or sum(1 for _ in board.legal_moves) == 1:
            return True
        return best.mate is not None and self.depth >= 2 * abs(best.mate) - 1


def _usual(board: chess.Board, text: str) -> str:
    """Return a move in usual notation, also castling written as king takes rook; "" if it is no move."""
    try:
        move = board.parse_uci(text.lower())
    except ValueError:
        return ""
    return sys.intern(move.uci()) if move else ""


def _number(name: str, text: str) -> int:
    """Return a number of an `info` line; ValueError if it is no number, BadOutput if it is nonsense."""
    least, most = _RANGES[name]
    if len(text) > _LONGEST_NUMBER or not least <= (number := int(text)) <= most:
        raise BadOutput(f"{name} {text[:_LONGEST_NUMBER]!r} where a number from {least} to {most} can be")
    return number


class SearchCommand(chess.engine.BaseCommand[SearchResult]):
    """A search of a position by an engine, in a new game or in the game that it plays."""

    def __init__(self, engine: EngineProcess, question: Question) -> None:
        super().__init__(engine)
        self._uci = engine
        self._question = question
        self._since = time.monotonic()
        self._report = SearchReport(question.lines)
        self._ready = False
        self._unknown = 0

    def start(self) -> None:
        """Send the search."""
        sent, asked = [], self._question
        if self._uci.multipv != asked.multipv and "MultiPV" in self._uci.options:
            sent.append(f"setoption name MultiPV value {asked.multipv}")
            self._uci.multipv = asked.multipv
        # All in one write: an engine reads its input in order. The answer to isready separates the
        # output of this search from any that was still to come from earlier ones.
        if self._uci.turn is None or asked.turn is None or asked.turn.before != self._uci.turn:
            sent.append("ucinewgame")
        sent += ["isready", f"position {asked.position}", f"go {asked.limit.uci}"]
        # A search that is longer than the game's limit is not one of its turns.
        self._uci.turn = asked.turn if asked.turn is None or asked.turn.limit == asked.limit else None
        self._uci.send_line("\n".join(sent))

    def line_received(self, line: str) -> None:
        """Read a line of the answer, and end with the last one, or with an impossible one."""
        tokens = line.split()
        if not tokens or self.result.done():
            return
        try:
            self._read(line, tokens)
        except BadOutput as err:
            self.result.set_exception(err)
            self.set_finished()

    def _read(self, line: str, tokens: list[str]) -> None:
        """Read a line; raise BadOutput, which ends the search, if it is impossible."""
        if not self._ready:
            self._ready = tokens == ["readyok"]
        elif tokens[0] == "info":
            if tokens[1:3] == ["string", "ERROR:"]:
                self._uci.remember(line)
            try:
                self._report.info(tokens)
            except (ValueError, IndexError):
                self._strange(line)
            self._check_heed(self._question.limit)
        elif tokens[0] == "bestmove":
            best = tokens[1] if len(tokens) > 1 else ""
            asked = self._question
            play = asked.samples > 0
            alone = play and asked.multipv == 1
            self.result.set_result(self._report.result(asked.fen, best, asked.limit, play, alone))
            self.set_finished()
        else:
            self._strange(line)

    def _check_heed(self, limit: SearchLimit) -> None:
        """Raise BadOutput for an engine that searches on beyond its limit, or for ever."""
        report = self._report
        if limit.nodes and report.nodes > EXCESS * limit.nodes + 1_000_000:
            raise BadOutput(f"{report.nodes} nodes and no end, {limit.nodes} asked: no heed of node limits")
        if limit.depth and report.depth > limit.depth + DEEPER:
            raise BadOutput(f"depth {report.depth} and no end, {limit.depth} asked: no heed of depth limits")
        uncounted = limit.nodes and report.any_lines and not report.counted
        if uncounted and time.monotonic() > self._since + COUNT_SECONDS:
            raise NoNodes("lines without nodes, and no end")

    def _strange(self, line: str) -> None:
        self._uci.remember(line)
        self._unknown += 1
        if self._unknown > MAX_UNKNOWN_LINES:
            raise BadOutput(f"{self._unknown} lines that are no UCI")
