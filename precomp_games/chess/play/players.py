"""Who plays for `UciEngine` where its book knows nothing: another engine, or a policy.

* `EnginePlayer` hands positions and `go` commands on to an engine's process, and its answers back. The
  engine's options are offered to the interface. One that ends is started again.
* `PolicyPlayer` draws from a policy over `ChessGame`: the modelled opponent of a preparation, or our own play
  out of book as a preparation has it. Clocks and limits of `go` have no meaning for it.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import chess
import numpy as np

from precomp_games._support.arguments import Seed, public
from precomp_games._support.messages import one_line
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.searches import check_command
from precomp_games.chess.game import ChessGame, ChessState, action_of, move_of
from precomp_games.policies.rows import BatchPolicy, as_batch_policy

FOREVER = frozenset({"infinite", "ponder"})
"""Words of `go` after which an answer waits to be asked for."""
NO_MOVE = "(none)"
"""What stands for a move where there is none, or none can be found."""

LONGEST_LINE = 1 << 20
"""Characters of a line that an engine or an interface may write."""

_QUIT_SECONDS = 2.0
_START_SECONDS = 10.0
_MOST_STARTS = 5  # in a row, of an engine that ends before it answers
_MOST_LINES = 10_000  # before "uciok"


class Player(Protocol):
    """Who plays out of book.

    Attributes:
      name: What interfaces are told.
      options: The lines by which options are offered.
    """

    name: str
    options: Sequence[str] = ()

    def set_option(self, name: str, value: str | None) -> None:
        """Takes an option that is not this module's; by default none has a meaning."""
        return

    def new_game(self) -> None:
        """The next position belongs to another game; by default nothing is kept from game to game."""
        return

    def ready(self) -> None:
        """Returns when everything before has been taken in; by default there is nothing to wait for."""
        return

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Begins a search, whose last line is "bestmove ...", and returns at once."""

    def command(self, line: str) -> None:
        """Takes "stop" or "ponderhit", while it searches."""

    def close(self) -> None:
        """Ends for good; by default a search under way ends with the process."""
        return


class PolicyPlayer(Player):
    """Plays moves that are drawn from a policy."""

    @public
    def __init__(self, policy: Any, name: str, seed: Seed | None = None) -> None:
        """A player.

        Args:
          policy: over `ChessGame`.
          name: what interfaces are told.
          seed: of the draws; None: games differ from one start of the program to the next.

        Raises:
          ValueError: no policy, name or seed.
        """
        self._policy: BatchPolicy = as_batch_policy(policy, "policy")
        self.name = name
        self._rng = np.random.default_rng(seed)

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Draws the move in a thread of its own, and says it when it is wanted."""
        self._stop = threading.Event()
        if not FOREVER.intersection(go.split()):
            self._stop.set()
        threading.Thread(target=self._play, args=(board, say, self._stop), daemon=True).start()

    def _play(self, board: chess.Board, say: Callable[[str], None], wanted: threading.Event) -> None:
        try:
            move = self._drawn(board).uci()
        except Exception as error:  # an engine's fault must not end the game without a word
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
        """The move is wanted now."""
        self._stop.set()


def _state(start: chess.Board, moves: Sequence[chess.Move]) -> ChessState:
    """The state after these moves, or where the game was over before: a policy may look at all of it."""
    params = {"fen": start.fen(en_passant="fen"), "max_plies": len(moves) + 2, "threefold": True}
    state = ChessGame(params).new_initial_state()
    for move in moves:
        if not state.is_terminal():
            state.apply_action(action_of(move))
    return state


class EnginePlayer(Player):
    """Plays as another engine does, which it hands everything on to.

    Attributes:
      name: The engine's.
      options: The lines by which the engine offers its own.
    """

    @public
    def __init__(self, command: str | Sequence[str]) -> None:
        """Starts the engine.

        Args:
          command: its file, or a list of it and its arguments.

        Raises:
          ValueError: no command.
          EngineError: it cannot be run, or does not answer "uci".
        """
        self._command = check_command(command)
        self._ready = threading.Event()
        self._say: Callable[[str], None] | None = None
        self._asked: tuple[str, str] | None = None
        self._set: dict[str, str] = {}  # the last line for each option
        self._lock = threading.Lock()
        self._closed = False
        self._lost_since = 0  # how often it has ended since it answered
        self._start()

    def _start(self) -> None:
        """Starts the process, up to its "uciok"."""
        shown_command = " ".join(self._command)
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                bufsize=1,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"expected an engine's command, got {shown_command!r}: {error.strerror}"
            ) from None
        greeting: queue.Queue[list[str] | None] = queue.Queue()
        threading.Thread(target=self._pump, args=(self._process, greeting), daemon=True).start()
        self._send("uci")
        try:
            lines = greeting.get(timeout=_START_SECONDS)
        except queue.Empty:
            lines = None
        if lines is None:
            self._process.kill()
            raise EngineError(
                f"expected {shown_command!r} to answer 'uci' with 'uciok': check that it runs by itself"
            )
        names = [line.removeprefix("id name ") for line in lines if line.startswith("id name ")]
        self.name = names[0] if names else shown_command
        self.options = [line for line in lines if line.startswith("option name ")]

    def _pump(self, process: subprocess.Popen[str], greeting: queue.Queue[list[str] | None]) -> None:
        """Hands the engine's lines on."""
        assert process.stdout is not None
        lines: list[str] | None = []
        while raw := process.stdout.readline(LONGEST_LINE):
            line = raw.strip()
            if lines is not None:
                lines.append(line)
                if line == "uciok":
                    greeting.put(lines)
                    lines = None
                elif len(lines) > _MOST_LINES:
                    break
            elif line == "readyok":
                self._ready.set()
            elif line.split(maxsplit=1)[:1] in (["info"], ["bestmove"]):
                self._answer(line)
        if lines is not None:
            greeting.put(None)
        elif not self._closed:
            self._ready.set()
            self._lost()

    def _answer(self, line: str) -> None:
        with self._lock:
            say = self._say
            if line.startswith("bestmove") and say is not None:
                self._say = self._asked = None
                self._lost_since = 0
        if say is not None:
            say(line)

    def _lost(self) -> None:
        """Starts the engine anew, and what it was asked."""
        self._lost_since += 1
        if self._gone:
            self._no_move(f"the engine ended {self._lost_since} times before it answered")
            return
        if (say := self._say) is not None:
            say("info string error: the engine ended, and is started again")
        self._again()

    @property
    def _gone(self) -> bool:
        """Whether it has ended so often that it is not started until it is asked again."""
        return self._lost_since > _MOST_STARTS

    def _again(self) -> None:
        """Starts the engine, with its options and what it was asked."""
        try:
            self._start()
        except EngineError as error:
            self._lost_since = _MOST_STARTS + 1
            self._no_move(one_line(error))
            return
        with self._lock:  # asked now: a search may have been begun meanwhile
            asked = self._asked or ()
        self._send(*self._set.values(), *asked)
        self._ready.set()  # whoever waits for it may have asked the one before

    def _no_move(self, why: str) -> None:
        """Says that there will be no answer, where one is waited for."""
        self._ready.set()
        with self._lock:
            say, asked, self._say, self._asked = self._say, self._asked, None, None
        if say is not None and asked is not None:
            say(f"info string error: {why}")
            say(f"bestmove {NO_MOVE}")

    def _send(self, *lines: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # an engine that has ended is started by who reads it
            self._process.stdin.write("".join(f"{line}\n" for line in lines))
            self._process.stdin.flush()

    def set_option(self, name: str, value: str | None) -> None:
        """Hands it on, and again to an engine that has to be started anew."""
        line = f"setoption name {name}" + (f" value {value}" if value is not None else "")
        self._set[name.lower()] = line
        self._send(line)

    def new_game(self) -> None:
        """Hands it on."""
        self._send("ucinewgame")

    def ready(self) -> None:
        """Waits for the engine's "readyok"."""
        self._ready.clear()
        self._send("isready")
        if not self._gone:
            self._ready.wait()

    def go(self, board: chess.Board, position: str, go: str, say: Callable[[str], None]) -> None:
        """Hands both lines on."""
        with self._lock:
            self._say, self._asked = say, (position, go)
        if self._gone:
            self._lost_since = 0
            self._again()
        else:
            self._send(position, go)

    def command(self, line: str) -> None:
        """Hands it on."""
        self._send(line)

    def close(self) -> None:
        """Ends the engine, and kills it where it does not within two seconds."""
        self._closed = True
        self._send("quit")
        try:
            self._process.wait(_QUIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
