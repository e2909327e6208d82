"""Games between a book with an engine behind it and another engine, as match programs play them.

Both engines are processes of their own, started and asked by python-chess's implementation of UCI: a new
game once, and then at each turn the start and all moves so far, with a limit or with both clocks. Nothing of
the rest of this library stands between them, so what is scored here is scored elsewhere.

Rules: those of chess, with draws claimed as soon as they stand on the board, and a draw after `MATCH_PLIES`
half-moves. A side whose clock has run out loses. A game is resigned where both engines agree for three moves
of each that one of them is ten pawns ahead, and drawn after 40 moves where for eight moves of each neither
sees more than a tenth of a pawn: what match programs do by their usual settings.

A game in which an engine dies, hangs or plays no legal move is played again from its start, by new
processes; what was played of it counts for nothing.

The text of a game is PGN: what each engine thought of its move and with how much time left, in the form that
python-chess and Lichess read ([%eval], [%clk]), and "book" at moves of the book.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import queue
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import chess
import chess.engine
import chess.pgn
import numpy as np

from precomp_games._support.arguments import Ge, Gt, Le, Seed, each_of, public
from precomp_games._support.checks import ArgumentError, shown
from precomp_games._support.messages import one_line
from precomp_games.chess.books.book import Book
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.searches import Options, SearchLimit, check_command
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.play.match import MATCH_PLIES, memorized_rows
from precomp_games.chess.records.game_records import BOOK_MOVE

_RESIGN_CP, _RESIGN_MOVES = 1000, 3
_DRAW_CP, _DRAW_MOVES, _DRAW_FROM = 10, 8, 80  # half-moves from the start
_MATE_CP = 100_000
_OVERSTEPPED = 0.05  # seconds that a clock may be off, as the way through two pipes takes time
_PATIENCE = 30.0  # seconds over its time, after which an engine is taken for hung
_TRIES = 3  # of a game
_STREAMS = int.from_bytes(b"spar", "big")
_CLOCK = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)\+([0-9]{1,4}(?:\.[0-9]{1,3})?)")


@public
@dataclasses.dataclass(frozen=True)
class Clock:
    """What a side has for all of its moves.

    Attributes:
      seconds: At the start.
      increment: Seconds more after each move.
    """

    seconds: Annotated[float, Gt(0.0), Le(99_999.0)]
    increment: Annotated[float, Ge(0.0), Le(9999.0)] = 0.0

    def __str__(self) -> str:
        """As PGN has it: "60+0.6"."""
        return f"{self.seconds:g}+{self.increment:g}"

    @classmethod
    @public
    def parse(cls, text: str) -> Clock:
        """The clock of a text such as "1+0.01".

        Raises:
          ValueError: it is none.
        """
        if isinstance(text, str) and (match := _CLOCK.fullmatch(text)):
            with contextlib.suppress(ValueError):
                return cls(float(match[1]), float(match[2]))
        raise ArgumentError(f"expected seconds and an increment such as '60+0.6', got {shown(text)}")

    @property
    def move_ms(self) -> int:
        """About what an engine takes of it for a move of the opening, in milliseconds."""
        return max(1, round(1000.0 * (self.seconds / _MOVES_TO_GO + self.increment)))


_MOVES_TO_GO = 40.0


@public
@dataclasses.dataclass(frozen=True)
class MatchEngine:
    """An engine of a match.

    Attributes:
      name: In PGN.
      command: Its file, or that and its arguments.
      limit: What it has for each move, or for all.
      options: UCI options, over its own defaults but for one thread.
    """

    name: str
    command: str | Sequence[str]
    limit: SearchLimit | Clock
    options: Options = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the command."""
        object.__setattr__(self, "command", check_command(self.command))


@dataclasses.dataclass
class _Side:
    """An engine in a game: its process, and what it has left."""

    player: MatchEngine
    engine: chess.engine.SimpleEngine
    left: float = 0.0

    def begin(self) -> None:
        """Sets the clock."""
        self.left = self.player.limit.seconds if isinstance(self.player.limit, Clock) else 0.0


class _Failed(Exception):
    """An engine did not play; the game counts for nothing."""


class EngineMatch(contextlib.AbstractContextManager["EngineMatch"]):
    """Pairs of engine processes, which play games side by side.

    Attributes:
      own, opponent: The engine behind the book, and the other one.
    """

    @public
    def __init__(
        self, own: MatchEngine, opponent: MatchEngine, *, concurrency: Annotated[int, Ge(1), Le(256)] = 1
    ) -> None:
        """Starts the engines.

        Args:
          own: plays where the book ends.
          opponent: the other side.
          concurrency: how many games are under way at once, each by two engines of which one thinks. More
            than there are cores take each other's time.

        Raises:
          EngineError: an engine cannot be started, or lacks an option.
        """
        self.own, self.opponent = own, opponent
        self._waiting: queue.Queue[list[_Side | None]] = queue.Queue()
        self._sides: list[list[_Side | None]] = []
        self._closed = False
        try:
            for _ in range(concurrency):
                pair: list[_Side | None] = [_started(own), _started(opponent)]
                self._sides.append(pair)
                self._waiting.put(pair)
        except BaseException:
            self.close()
            raise

    @public
    def games(
        self, book: Book, headers: Annotated[Sequence[Mapping[str, str]], each_of(dict)], *, seed: Seed = 0
    ) -> Iterator[str]:
        """Plays a game for each of the headers; gives the text of each as it ends.

        Args:
          book: what one side plays from, while its games are in it.
          headers: PGN tags of each game.
          seed: of the book's moves, where it has several at a position; nothing else is random here.

        Raises:
          EngineError: an engine fails three times in one game.
        """
        return self._games(book, headers, seed)

    def _games(self, book: Book, headers: Sequence[Mapping[str, str]], seed: Any) -> Iterator[str]:
        rows = memorized_rows(book)
        ended: queue.Queue[str | BaseException] = queue.Queue()
        todo = iter(list(enumerate(headers)))
        lock = threading.Lock()

        def work() -> None:
            pair = self._waiting.get()
            try:
                while not self._closed:
                    with lock:
                        number, tags = next(todo, (-1, {}))
                    if number < 0:
                        break
                    stream = np.random.SeedSequence(seed, spawn_key=(_STREAMS, number))
                    ended.put(self._played(pair, book, rows, tags, stream))
            except BaseException as error:
                ended.put(error)
            finally:
                self._waiting.put(pair)

        workers = [threading.Thread(target=work, daemon=True) for _ in self._sides]
        for worker in workers:
            worker.start()
        for _ in headers:
            said = ended.get()
            if isinstance(said, BaseException):
                with lock:
                    todo = iter(())
                raise said
            yield said

    def _played(
        self,
        pair: list[_Side | None],
        book: Book,
        rows: Mapping[tuple[int, ...], Mapping[int, float]],
        tags: Mapping[str, str],
        stream: np.random.SeedSequence,
    ) -> str:
        """The text of a game, which is begun anew where an engine fails."""
        for tried in range(_TRIES):
            try:
                for k, player in enumerate((self.own, self.opponent)):
                    pair[k] = pair[k] or _started(player)
                sides = [side for side in pair if side is not None]
                return _game_text(_play(sides, book, rows, tags, np.random.default_rng(stream)))
            except _Failed as error:
                for side in pair:
                    _end(side)
                pair[:] = [None, None]
                if self._closed or tried == _TRIES - 1:
                    raise EngineError(
                        f"expected an engine to play, got {one_line(error)} in each of {_TRIES} games: check "
                        "that it runs by itself"
                    ) from None
        raise AssertionError

    def close(self) -> None:
        """Ends the engines."""
        self._closed = True
        for pair in self._sides:
            for side in pair:
                _end(side)

    def __exit__(self, *exception: object) -> None:
        self.close()


def _started(player: MatchEngine) -> _Side:
    command = list(player.command)
    try:
        engine = chess.engine.SimpleEngine.popen_uci(command, timeout=_PATIENCE, setpgrp=True)
    except (OSError, TimeoutError, chess.engine.EngineError) as error:
        raise EngineError(
            f"expected a UCI engine, got {' '.join(command)!r} ({one_line(error)}): check that it runs by "
            "itself"
        ) from None
    side = _Side(player, engine)
    try:
        known = {name.lower() for name in engine.options}
        given = {name: value for name, value in {"Threads": 1}.items() if name.lower() in known}
        engine.configure({**given, **player.options})
    except chess.engine.EngineError as error:
        _end(side)
        raise EngineError(f"expected options of {player.name}, got {one_line(error)}") from None
    return side


def _end(side: _Side | None) -> None:
    """Ends an engine, in whatever state it is."""
    if side is not None:
        with contextlib.suppress(Exception):  # it may be gone already, or hang
            side.engine.close()


# -- a game ------------------------------------------------------------------------------------------------


def _play(
    sides: Sequence[_Side],
    book: Book,
    rows: Mapping[tuple[int, ...], Mapping[int, float]],
    tags: Mapping[str, str],
    rng: np.random.Generator,
) -> chess.pgn.Game:
    """One game; `sides` are the book's and the opponent's."""
    board, token = book.start.copy(stack=False), object()
    by_color = {book.side: sides[0], not book.side: sides[1]}
    game = chess.pgn.Game()
    game.setup(board)
    for name, value in tags.items():
        game.headers[name] = value
    game.headers["White"] = by_color[chess.WHITE].player.name
    game.headers["Black"] = by_color[chess.BLACK].player.name
    if isinstance(sides[1].player.limit, Clock):
        game.headers["TimeControl"] = str(sides[1].player.limit)
    for side in sides:
        side.begin()
    node: chess.pgn.GameNode = game
    thought: list[int | None] = []  # centipawns for White, of each half-move out of book
    actions: tuple[int, ...] = ()
    in_book = True
    while (over := _over(board, thought)) is None:
        side = by_color[board.turn]
        row = rows.get(actions) if in_book and board.turn == book.side else None
        in_book = in_book and (board.turn != book.side or row is not None)
        if row is not None:
            moves, odds = list(row), np.array(list(row.values()))
            move = move_of(int(rng.choice(moves, p=odds / odds.sum())))
            node = node.add_variation(move, comment=BOOK_MOVE)
            thought.clear()
        else:
            said, score = _asked(side, board, by_color, token)
            if said is None:
                game.headers["Result"] = "0-1" if board.turn else "1-0"
                game.headers["Termination"] = "time forfeit"
                return game
            move = said
            node = node.add_variation(move)
            if score is not None:
                node.set_eval(score)
            if isinstance(side.player.limit, Clock):
                node.set_clock(side.left)
            thought.append(None if score is None else score.white().score(mate_score=_MATE_CP))
        actions += (action_of(move),)
        board.push(move)
    game.headers["Result"], game.headers["Termination"] = over
    return game


def _asked(
    side: _Side, board: chess.Board, by_color: Mapping[chess.Color, _Side], token: object
) -> tuple[chess.Move | None, chess.engine.PovScore | None]:
    """An engine's move, and what it thinks of it; no move where its time has run out."""
    limit = side.player.limit
    if isinstance(limit, Clock):
        white, black = by_color[chess.WHITE], by_color[chess.BLACK]
        how = chess.engine.Limit(**_clock(white, "white"), **_clock(black, "black"), remaining_moves=None)
        longest = side.left
    else:
        seconds = None if limit.movetime_ms is None else limit.movetime_ms / 1000.0
        how = chess.engine.Limit(time=seconds, nodes=limit.nodes, depth=limit.depth)
        longest = seconds or _PATIENCE
    protocol = side.engine.protocol
    began = time.perf_counter()
    work = protocol.play(board, how, game=token, info=chess.engine.INFO_SCORE)
    try:
        # SimpleEngine.play waits for ever where a limit has no time, or where an engine dies as it is asked:
        # then its loop may end before it begins with this.
        waiting = asyncio.wait_for(work, longest + _PATIENCE)
        said = asyncio.run_coroutine_threadsafe(waiting, protocol.loop).result(longest + 2.0 * _PATIENCE)
    except (chess.engine.EngineError, TimeoutError, OSError, RuntimeError) as error:
        raise _Failed(f"{side.player.name}: {one_line(error) or 'no answer in time'}") from None
    if isinstance(limit, Clock):
        side.left += -(time.perf_counter() - began)
        if side.left < -_OVERSTEPPED:
            return None, None
        side.left = max(side.left, 0.0) + limit.increment
    if said.move is None:
        raise _Failed(f"{side.player.name}: no move")
    return said.move, said.info.get("score")


def _clock(side: _Side, color: str) -> dict[str, Any]:
    limit = side.player.limit
    if not isinstance(limit, Clock):
        return {}
    return {f"{color}_clock": max(side.left, 0.001), f"{color}_inc": limit.increment}


def _over(board: chess.Board, thought: Sequence[int | None]) -> tuple[str, str] | None:
    """(result, why) where a game is over; `thought` are the engines' scores for White, the latest last."""
    if (outcome := board.outcome(claim_draw=False)) is not None:
        return outcome.result(), outcome.termination.name.lower().replace("_", " ")
    if board.is_repetition(3):
        return "1/2-1/2", "threefold repetition"
    if board.halfmove_clock >= 100:
        return "1/2-1/2", "fifty moves"
    if len(board.move_stack) >= MATCH_PLIES:
        return "1/2-1/2", "too long"
    last = thought[-2 * _RESIGN_MOVES :]
    if len(last) == 2 * _RESIGN_MOVES:
        if all(cp is not None and cp >= _RESIGN_CP for cp in last):
            return "1-0", "adjudication"
        if all(cp is not None and cp <= -_RESIGN_CP for cp in last):
            return "0-1", "adjudication"
    last = thought[-2 * _DRAW_MOVES :]
    level = len(last) == 2 * _DRAW_MOVES and all(cp is not None and abs(cp) <= _DRAW_CP for cp in last)
    return ("1/2-1/2", "adjudication") if level and len(board.move_stack) >= _DRAW_FROM else None


def _game_text(game: chess.pgn.Game) -> str:
    """As it stands in a file, with the empty line after it."""
    return game.accept(chess.pgn.StringExporter(headers=True, variations=False, comments=True)) + "\n\n"
