"""Engines that say how likely they find each move: lc0, by the lines of its option VerboseMoveStats.

    info string e2e4  (322 ) N: 0 (+ 0) (P: 47.23%) ...

A search of one node is what its network says, without any search.

Cost: one such search a position, one after the other.
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
_SECONDS = 60.0  # that an engine may take to start, or for one answer
_MOST_LINES = 10_000  # of one answer

Row = dict[chess.Move, float]
"""How likely each legal move is."""


class StatsEngine:
    """An engine that says how likely it finds each move of a game so far."""

    @public
    def __init__(
        self, engine: checks.FilePath, options: Mapping[str, str | int | bool] | None = None
    ) -> None:
        """Starts it.

        Args:
            engine: its file, or a command on PATH.
            options: of UCI, such as WeightsFile.

        Raises:
            EngineError: it cannot be run, or has no such options.
        """
        command = find_engine(str(engine))
        if not isinstance(command, str):  # a name may come from others, who are not to choose arguments
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
        """Ends the engine."""
        if (thread := getattr(self, "_thread", None)) is not None:
            thread.end()

    def ask(self, games: Sequence[str]) -> list[Row]:
        """How likely each move is in each of some games.

        Args:
            games: as `game_text` makes them.

        Raises:
            EngineError: the engine ends, does not answer, or says nothing of that kind.
        """
        return [self._thread.run(self._ask(game)) for game in games]

    async def _start(self) -> EngineProcess:
        """The engine, started anew where it has ended."""
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
    """Ends an engine that does not answer in time, or as UCI has it, with an error that says so."""
    try:
        async with asyncio.timeout(_SECONDS):
            yield
        return
    except TimeoutError:
        why = f"no answer in {_SECONDS:g} seconds"
    except chess.engine.EngineError as error:  # which python-chess's errors of a process are, too
        why = str(error)
    await engine.kill()
    asked = f"{command!r} to say how likely it finds moves"
    raise EngineError(f"expected {asked}, got {why}{engine.last_words()}")


class _StatsCommand(chess.engine.BaseCommand[dict[str, float]]):
    """A search of one node, and what it says of each move."""

    def __init__(self, engine: EngineProcess, game: str) -> None:
        super().__init__(engine)
        self._uci, self._game = engine, game
        self._shares: dict[str, float] = {}
        self._ready, self._lines = False, 0

    def start(self) -> None:
        """Asks. The answer to isready parts this search's lines from earlier ones."""
        self._uci.send_line(f"ucinewgame\nisready\nposition fen {self._game}\ngo nodes 1")

    def line_received(self, line: str) -> None:
        """Reads a line, and ends with the move."""
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
