"""Engines whose output is nonsense, and interfaces whose commands are.

Engines run inside the process: what python-chess takes for a process is an object that prints what the input
has.
"""

from __future__ import annotations

import asyncio
import functools
import io
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import chess

from precomp_games.chess import EngineError, EnginePool, SearchLimit, write_polyglot
from precomp_games.chess.engines import uci as engine_uci
from precomp_games.chess.play import players
from precomp_games.chess.play.players import EnginePlayer, PolicyPlayer
from precomp_games.chess.play.uci_engine import UciEngine, uci_book
from precomp_games.commands import uci
from tools.fuzz import target
from tools.samples import small_book

_BREAK = b"\n>\n"  # between what an engine says to "uci", to "isready", and to each search
_HELLO = b"""id name Fake 1.0
id author nobody
option name Threads type spin default 1 min 1 max 8
option name Hash type spin default 32 min 1 max 64
option name MultiPV type spin default 1 min 1 max 10
option name Style type combo default Solid var Solid var Wild
option name UCI_AnalyzeMode type check default false
option name Skill Level type spin default 20 min 0 max 20
option name Clear type button
option name UCI_Chess960 type check default false
option name File type string default <empty>
uciok"""
_READY = b"readyok"
_SEARCH = b"""readyok
info string hello
info depth 1 seldepth 1 multipv 1 score cp 30 nodes 20 nps 1000 hashfull 0 tbhits 0 time 1 pv e2e4 e7e5
info depth 1 seldepth 1 multipv 2 score mate -3 nodes 20 nps 1000 time 1 pv d2d4
info depth 2 seldepth 4 multipv 1 score cp 31 upperbound nodes 60 pv e2e4
info depth 2 seldepth 4 multipv 1 score cp 31 wdl 100 800 100 nodes 80 currmove e2e4 pv e2e4
info depth 2 seldepth 4 multipv 2 score cp 12 nodes 100 pv d2d4
info depth 3 multipv 1 score cp 5 nodes 150 pv g1f3 g8f6
bestmove e2e4 ponder e7e5"""
_DIALOGUE = _BREAK.join((_HELLO, _READY, _SEARCH, _SEARCH))
_WORDS = (
    *(b"info ", b"depth ", b"score cp ", b"multipv ", b"pv ", b"nodes ", b"bestmove ", _BREAK),
    *(b"type spin ", b"default ", b" min ", b"var ", b"id name ", b"bestmove (none)\n", b"bestmove 0000\n"),
    *(b"copyprotection error\n", b"registration error\n", b"info string ERROR: x\n", b"info depth 9\n"),
    *(b"option name MultiPV type button\n", b"score mate 0", b"uciok", b"readyok\n", b"lowerbound"),
    *(b"e1h1", b"a1a1", b"option name "),
)


_WANTED = {b"uci": b"uciok", b"isready": b"readyok", b"go": b"bestmove"}


class _Transport:
    """A process for python-chess that answers each command with the input's next section."""

    def __init__(self, protocol: Any, sections: Iterator[bytes]) -> None:
        self._protocol, self._sections = protocol, sections
        self._loop = asyncio.get_running_loop()
        self._code: int | None = None

    def get_pipe_transport(self, number: int) -> _Transport:
        return self

    def get_pid(self) -> int:
        return 2**30  # nobody's

    def get_returncode(self) -> int | None:
        return self._code

    def close(self) -> None:
        if self._code is None:
            self._code = 0
            self._loop.call_soon(self._protocol.process_exited)
            self._loop.call_soon(self._protocol.connection_lost, None)

    kill = close

    def write(self, data: bytes) -> None:
        for word in data.split():
            if word in _WANTED:
                if word != b"isready" or b"go" not in data.split():
                    self._loop.call_soon(self._answer, _WANTED[word])
            elif word == b"quit":
                self.close()

    def _answer(self, wanted: bytes) -> None:
        section = next(self._sections, None)
        if section is None or self._code is not None:
            return self.close()
        for start in range(0, len(section) + 1, 4096):
            self._protocol.pipe_data_received(1, (section + b"\n")[start : start + 4096])
        # An engine that goes on without the word that is waited for ends, since waiting takes time.
        if wanted not in section.split():
            self.close()
        return None


def without_processes(sections: Callable[[], Iterator[bytes]]) -> Any:
    """Replace processes of engines by objects that answer from the input, section by section."""

    async def popen(command: Any, **arguments: Any) -> tuple[Any, Any]:
        protocol = engine_uci.EngineProcess()
        transport = _Transport(protocol, sections())
        protocol.connection_made(transport)
        return transport, protocol

    return mock.patch.multiple(engine_uci.EngineProcess, popen=popen)


@target("uci_search", lambda: [_DIALOGUE], _WORDS, refusals=(EngineError,))
def _(data: bytes, folder: pathlib.Path) -> object:
    sections = iter(data.split(_BREAK))
    quick: Any = {"timeout_seconds": 0.05, "startup_seconds": 0.05, "retries": 1}
    with (
        without_processes(lambda: sections),
        mock.patch.object(engine_uci, "KILL_SECONDS", 0.05),
        mock.patch.object(engine_uci, "QUIT_SECONDS", 0.05),
        EnginePool("engine", workers=1, options={"Hash": 64, "Style": "Wild"}, **quick) as pool,
    ):
        result = pool.search([chess.Board().epd()], SearchLimit(nodes=100), 2, samples=2)
        return pool.engine_id, result


_PLAYED = b"readyok\ninfo depth 1 score cp 5 pv e2e4\nbestmove e2e4 ponder e7e5\n"
_ASKED = ("uci", "setoption name Hash value 1", "ucinewgame", "isready", "position startpos", "go nodes 1")


@target("uci_player", lambda: [_DIALOGUE, _HELLO + b"\n" + _PLAYED], _WORDS, refusals=(EngineError,))
def _(data: bytes, folder: pathlib.Path) -> object:
    lines: list[str] = []
    sections = iter(data.split(_BREAK))
    with without_processes(lambda: sections), mock.patch.object(players, "_START_SECONDS", 0.05):
        UciEngine(EnginePlayer("engine"), say=lines.append).run(_ASKED)
    assert sum(line.startswith("bestmove") for line in lines) == 1, lines[-5:]
    assert not any("\n" in line or "\r" in line for line in lines)
    return lines


# -- interfaces --------------------------------------------------------------------------------------------

_COMMANDS = (
    b"uci\nisready\nsetoption name OwnBook value false\nucinewgame\nposition startpos moves e2e4 e7e5\n"
    b"go wtime 1000 btime 1000\nstop\nposition fen 8/P7/8/8/8/k7/8/K7 w - - 0 1 moves a7a8q\n"
    b"go infinite\nstop\nquit\n",
    b"uci\nposition startpos\ngo searchmoves e2e4 d2d4\nisready\ngo ponder\nponderhit\nposition fen "
    b"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves e1g1\ngo depth 3\nquit\n",
    b"setoption name UCI_Chess960 value true\nposition fen 1r3k1r/p6p/8/8/8/8/P6P/1R3K1R w HBhb - 2 9 moves "
    b"f1b1 f8h8\ngo searchmoves A2A3\nposition startpos moves e2e4 0000\ngo infinite\nstop\nquit\n",
)
_COMMAND_WORDS = (
    *(b"position startpos\n", b"position fen ", b" moves ", b"go infinite\n", b"go\n", b"stop\n", b"quit\n"),
    *(b"setoption name ", b" value ", b"ucinewgame\n", b"isready\n", b"debug on\n", b"ponderhit\n", b"uci\n"),
    *(b"8/8/8/8/8/8/8/K1k5 w - - 0 1", b" searchmoves ", b"e1h1", b"0000", b"e2e4", b"Q@e4"),
)


@functools.cache
def _book() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_polyglot(small_book(), os.path.join(folder, "book.bin"))
        return pathlib.Path(folder, "book.bin").read_bytes()


def _first_move(state: Any) -> dict[int, float]:
    """Play the first move: a policy."""
    return {min(state.legal_actions()): 1.0}


@target("uci_main", lambda: _COMMANDS, _COMMAND_WORDS)
def _(data: bytes, folder: pathlib.Path) -> object:
    (folder / "book.bin").write_bytes(_book())
    typed = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    out, err = io.TextIOWrapper(output := io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    if data[-1:] < b"5":  # out of book a policy plays, in place of an engine
        engine = UciEngine(
            PolicyPlayer(_first_move, "x", 1), uci_book(small_book()), say=lambda line: None, seed=1
        )
        engine.run(data.decode("utf-8", "replace").splitlines())
        return None
    words = ["uci", f"--book={folder / 'book.bin'}", "--engine=/bin/true", "--seed=1"]
    with (
        without_processes(lambda: iter([_HELLO, *[_PLAYED] * 1000])),
        mock.patch.object(sys, "stdin", typed),
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
    ):
        assert uci.main(words) == 0, err.getvalue()
    return output.getvalue()
