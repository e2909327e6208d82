"""Players for `UciEngine` out of book: another engine, or a policy.

* `EnginePlayer` passes positions and `go` commands on to an engine's process, and its answers back. The
  engine's options are offered to the interface. An engine that ends is started again.
* `PolicyPlayer` draws from a policy over `ChessGame`: the modeled opponent of a preparation, or our own play
  out of book as in a preparation. It ignores clocks and limits of `go`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import chess
import chess.engine
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import one_line, public
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.searches import check_command
from precomp_games.chess.engines.uci import EngineProcess, EngineThread
from precomp_games.chess.game import ChessGame, ChessState, action_of, move_of
from precomp_games.policies.rows import BatchPolicy, as_batch_policy

FOREVER = frozenset({"infinite", "ponder"})
"""Words of `go` after which an answer waits until it is asked for."""
NO_MOVE = "(none)"
"""Sent as a move if there is none, or none can be found."""

LONGEST_LINE = 1 << 20
"""Characters of a line that an engine or an interface may write."""

_START_SECONDS = 10.0
_MOST_STARTS = 5  # in a row, of an engine that ends before it answers


class Player(Protocol):
    """A player out of book.

    Attributes:
      name: Its name for interfaces.
      options: The lines that offer its options.
    """

    name: str
    options: Sequence[str] = ()

    def set_option(self, name: str, value: str | None) -> None:
        """Set an option that is not this module's; by default it is ignored."""
        return

    def new_game(self) -> None:
        """Begin another game; by default nothing is kept from game to game."""
        return

    def ready(self) -> None:
        """Wait until all earlier commands have been read; by default there is nothing to wait for."""
        return

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Begin a search, whose last line is "bestmove ...", and return at once."""

    def command(self, line: str) -> None:
        """Receive "stop" or "ponderhit" during a search."""

    def close(self) -> None:
        """End for good; by default a search under way ends with the process."""
        return


class PolicyPlayer(Player):
    """Plays moves that are drawn from a policy."""

    @public
    def __init__(self, policy: Any, name: str, seed: checks.Seed | None = None) -> None:
        """Make the player.

        Args:
          policy: over `ChessGame`.
          name: its name for interfaces.
          seed: of the draws; None: games differ from one start of the program to the next.
        """
        self._policy: BatchPolicy = as_batch_policy(policy, "policy")
        self.name = name
        self._rng = np.random.default_rng(seed)

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Draw the move in a thread of its own, and send it when it is wanted."""
        self._stop = threading.Event()
        if not FOREVER.intersection(go.split()):
            self._stop.set()
        threading.Thread(target=self._play, args=(board, say, self._stop), daemon=True).start()

    def _play(self, board: chess.Board, say: Callable[[str], None], wanted: threading.Event) -> None:
        try:
            move = self._drawn(board).uci()
        except Exception as error:  # an engine's fault must be reported in the game
            say(f"info string error: {one_line(error)}")
            move = next(iter(board.legal_moves)).uci()
        wanted.wait()
        say(f"bestmove {move}")

    def _drawn(self, board: chess.Board) -> chess.Move:
        state = _state(board.root(), board.move_stack)
        if state.is_terminal():  # or was, and the interface plays on
            state = _state(board, [])
        if state.is_terminal():  # a draw for us, which an interface need not have claimed
            return next(iter(board.legal_moves))
        (row,) = self._policy([state])
        moves, weights = list(row), np.array(list(row.values()), np.float64)
        return move_of(int(self._rng.choice(moves, p=weights / weights.sum())))

    def command(self, line: str) -> None:
        """Play the move now."""
        self._stop.set()


def _state(start: chess.Board, moves: Sequence[chess.Move]) -> ChessState:
    """Return the state after these moves, or where the game ended before: policies may read all of it."""
    params = {"fen": start.fen(en_passant="fen"), "max_plies": len(moves) + 2, "threefold": True}
    state = ChessGame(params).new_initial_state()
    for move in moves:
        if not state.is_terminal():
            state.apply_action(action_of(move))
    return state


class _Relay(chess.engine.BaseCommand[None]):
    """Starts the protocol with an engine, and passes on its lines until it ends."""

    def __init__(self, engine: EngineProcess, hear: Callable[[str], None]) -> None:
        super().__init__(engine)
        self._hear = hear

    def check_initialized(self) -> None:
        """Accept any engine."""

    def start(self) -> None:
        self._engine.send_line("uci")

    def line_received(self, line: str) -> None:
        for part in line.split("\r"):
            self._hear(part.strip())


class EnginePlayer(Player):
    """Plays as another engine does, by passing everything on to it.

    Attributes:
      name: The engine's.
      options: The lines that offer the engine's own options.
    """

    @public
    def __init__(self, command: str | Sequence[str]) -> None:
        """Start the engine.

        Args:
          command: its file, or a list of it and its arguments.

        Raises:
          EngineError: it cannot be run, or does not answer "uci".
        """
        self._command = check_command(command)
        self._say: Callable[[str], None] | None = None
        self._asked: Sequence[str] = ()
        self._set: dict[str, str] = {}  # the last line for each option
        self._engine: EngineProcess | None = None  # once it has answered "uci"
        self._ready = asyncio.Event()  # cleared while "readyok" is awaited
        self._ready.set()
        self._losses = 0  # number of times that the engine has ended since its last answer
        self._thread = EngineThread("engine-player", 1)
        try:
            self._thread.run(self._start())
        except BaseException:
            self.close()
            raise

    # The methods up to `set_option` run in the engine's thread.

    async def _start(self) -> None:
        """Start the process, with the options that were set and its question.

        Raises:
          EngineError: it cannot be run, or does not answer.
        """
        shown_command = " ".join(self._command)
        try:
            _, engine = await EngineProcess.popen(self._command, setpgrp=True)
        except OSError as error:
            raise EngineError(
                f"expected an engine's command, got {shown_command!r}: {error.strerror}"
            ) from None
        self._thread.engines[0] = engine
        self.name, options = shown_command, list[str]()
        greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def hear(line: str) -> None:
            if greeted.done():
                self._hear(line)
            elif line == "uciok":
                greeted.set_result(None)
            elif line.startswith("id name "):
                self.name = line.removeprefix("id name ")
            elif line.startswith("option name "):
                options.append(line)

        ended = asyncio.ensure_future(engine.ask(_Relay(engine, hear)))
        ended.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait({ended, greeted}, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not greeted.done():
            await engine.kill()
            raise EngineError(
                f"expected {shown_command!r} to answer 'uci' with 'uciok': check that it runs by itself"
            )
        self.options, self._engine = options, engine
        self._send(*self._set.values(), *([] if self._ready.is_set() else ["isready"]), *self._asked)
        self._task = asyncio.ensure_future(self._stay(ended))

    async def _stay(self, ended: asyncio.Future[None]) -> None:
        """Start the engine anew if it has ended by itself."""
        await asyncio.wait({ended})
        self._engine = None
        self._losses += 1
        if self._is_gone:
            self._answer_none(f"the engine ended {self._losses} times before it answered")
            return
        if self._say is not None:
            self._say("info string error: the engine ended, and is started again")
        await self._start_again()

    async def _start_again(self) -> None:
        try:
            await self._start()
        except EngineError as error:
            self._losses = _MOST_STARTS + 1
            self._answer_none(one_line(error))

    @property
    def _is_gone(self) -> bool:
        """Return whether it has ended so often that it is not started until it is asked again."""
        return self._losses > _MOST_STARTS

    def _hear(self, line: str) -> None:
        word = line.partition(" ")[0]
        if line == "readyok":
            self._ready.set()
        elif word in ("info", "bestmove") and (say := self._say) is not None:
            if word == "bestmove":
                self._say, self._asked, self._losses = None, (), 0
            say(line)

    def _answer_none(self, why: str) -> None:
        """Report that there will be no answer, if one is awaited."""
        self._ready.set()
        say, self._say, self._asked = self._say, None, ()
        if say is not None:
            say(f"info string error: {why}")
            say(f"bestmove {NO_MOVE}")

    def _send(self, *lines: str) -> None:
        # An engine that is being started gets its options and its question once it is there.
        if self._engine is not None and not self._engine.returncode.done():
            for line in lines:
                self._engine.send_line(line)

    async def _wait_until_ready(self) -> None:
        if not self._is_gone:
            self._ready.clear()
            self._send("isready")
            await self._ready.wait()

    def _search(self, say: Callable[[str], None], asked: Sequence[str]) -> None:
        self._say, self._asked = say, asked
        if self._is_gone:
            self._losses = 0
            self._task = asyncio.ensure_future(self._start_again())
        else:
            self._send(*asked)

    def set_option(self, name: str, value: str | None) -> None:
        """Pass it on, and again to an engine that is started anew."""
        line = f"setoption name {name}" + (f" value {value}" if value is not None else "")
        self._set[name.lower()] = line
        self._thread.call(self._send, line)

    def new_game(self) -> None:
        """Pass it on."""
        self._thread.call(self._send, "ucinewgame")

    def ready(self) -> None:
        """Wait for the engine's "readyok"."""
        self._thread.run(self._wait_until_ready())

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Pass both lines on."""
        self._thread.call(self._search, say, (position, go))

    def command(self, line: str) -> None:
        """Pass it on."""
        self._thread.call(self._send, line)

    def close(self) -> None:
        """End the engine, and kill it if it does not end within a second."""
        self._thread.end()
