"""Engines that give a probability to each move: lc0, by the lines of its option VerboseMoveStats.

    info string e2e4  (322 ) N: 0 (+ 0) (P: 47.23%) ...

A search of one node gives its network's policy, without any search.

Cost: one such search for each position, one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import chess
import chess.engine

from precomp_games._support import checks
from precomp_games._support.checks import public, shown
from precomp_games.chess.engines.pool import EngineError, find_engine
from precomp_games.chess.engines.uci import EngineProcess, EngineThread

_OPTION = "VerboseMoveStats"
_STATS = re.compile(r"info string ([a-h][1-8][a-h][1-8][nbrq]?)\s.*\(P:\s*(\d{1,3}(?:\.\d{1,6})?)%\)")
_SECONDS = 60.0  # for an engine to start, or to answer once
_MOST_LINES = 10_000  # of one answer

Row = dict[chess.Move, float]
"""{move: probability}, over all legal moves."""


class StatsEngine:
    """An engine that gives a probability to each move of a game so far."""

    @public
    def __init__(
        self, engine: checks.FilePath, options: Mapping[str, str | int | bool] | None = None
    ) -> None:
        """Start the engine.

        Args:
            engine: its file, or a command on PATH.
            options: of UCI, such as WeightsFile.

        Raises:
            EngineError: it cannot be run, or has no such options.
        """
        command = find_engine(str(engine))
        if not isinstance(command, str):  # a name from an untrusted spec must not choose arguments
            raise EngineError(f"expected the file of an engine, got {shown(engine)}, which is no such file")
        self._command, self._options = command, dict(options or {})
        self._thread = EngineThread("move-stats", 1)
        try:
            self._thread.run(self._start())
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._command, self._options)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the engine."""
        if (thread := getattr(self, "_thread", None)) is not None:
            thread.end()

    def ask(self, games: Sequence[str]) -> list[Row]:
        """Return the probability of each move, for each game.

        Args:
            games: as `game_text` makes them.

        Raises:
            EngineError: the engine ends, does not answer, or gives no probabilities.
        """
        return [self._thread.run(self._ask(game)) for game in games]

    async def _start(self) -> EngineProcess:
        """Return the engine, started anew if it has ended."""
        known = self._thread.engines[0]
        if known is not None and not known.returncode.done():
            return known
        try:
            _, engine = await EngineProcess.popen(self._command, setpgrp=True)
        except OSError as error:
            raise EngineError(f"expected an engine, got {self._command!r}: {error.strerror}") from None
        self._thread.engines[0] = engine
        async with _in_time(engine, self._command):
            await engine.initialize()
            await engine.set_options({_OPTION: True} | self._options)
        return engine

    async def _ask(self, game: str) -> Row:
        engine = await self._start()
        async with _in_time(engine, self._command):
            shares = await engine.ask(_StatsCommand(engine, game))
        start, _, moves = game.partition(" moves")
        board = chess.Board(start)
        for move in moves.split():
            board.push_uci(move)
        row: Row = {}
        for text, share in shares.items():
            try:
                row[board.parse_uci(text)] = share
            except ValueError:
                raise EngineError(f"expected legal moves of {self._command!r}, got {text!r}") from None
        total = sum(row.values())
        if not total > 0.0:
            wanted = f'lines "info string <move> ... (P: 12.34%)" of {self._command!r}'
            raise EngineError(f"expected {wanted} (lc0 at {_OPTION}), got none{engine.last_words()}")
        return {move: row.get(move, 0.0) / total for move in board.legal_moves}


@contextlib.asynccontextmanager
async def _in_time(engine: EngineProcess, command: str) -> AsyncIterator[None]:
    """End an engine that does not answer in time, or not in UCI, and raise an error that states it."""
    try:
        async with asyncio.timeout(_SECONDS):
            yield
        return
    except TimeoutError:
        why = f"no answer in {_SECONDS:g} seconds"
    except chess.engine.EngineError as error:  # python-chess's errors of a process are such, too
        why = str(error)
    await engine.kill()
    asked = f"{command!r} to say how likely it finds moves"
    raise EngineError(f"expected {asked}, got {why}{engine.last_words()}")


class _StatsCommand(chess.engine.BaseCommand[dict[str, float]]):
    """A search of one node that reads the probability of each move."""

    def __init__(self, engine: EngineProcess, game: str) -> None:
        super().__init__(engine)
        self._uci, self._game = engine, game
        self._shares: dict[str, float] = {}
        self._ready, self._lines = False, 0

    def start(self) -> None:
        """Start the search. The answer to isready separates its lines from those of earlier searches."""
        self._uci.send_line(f"ucinewgame\nisready\nposition fen {self._game}\ngo nodes 1")

    def line_received(self, line: str) -> None:
        """Read a line, and end with the move."""
        if self.result.done():
            return
        self._lines += 1
        if not self._ready:
            self._ready = line.strip() == "readyok"
        elif found := _STATS.match(line):
            self._shares[found[1]] = float(found[2]) / 100.0
        elif line.startswith("bestmove"):
            self.result.set_result(self._shares)
            self.set_finished()
        elif not line.startswith("info"):
            self._uci.remember(line)
        if self._lines > _MOST_LINES and not self.result.done():
            self.result.set_exception(chess.engine.EngineError(f"{self._lines} lines and no move"))
            self.set_finished()
