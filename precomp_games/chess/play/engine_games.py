"""Games between a book with an engine behind it and another engine, as match programs play them.

Both engines are processes of their own, asked by python-chess's implementation of UCI: a new game once, and
then at each turn the start and all moves so far, with a limit or with both clocks, which start when the
engine is ready. One thread and a hash of 16 MB, unless options say otherwise.

Rules: those of chess, with draws claimed as soon as they stand on the board, and a draw after `MATCH_PLIES`
half-moves. A move of the book takes no time, and brings the increment as any other. A side that has used up
its time loses. A game is resigned if both engines agree for three moves of each that one of them is ten
pawns ahead, and drawn after 40 moves if for eight moves of each neither sees more than a tenth of a pawn:
the usual settings of match programs.

A game in which an engine dies, hangs or plays no legal move is played again from its start, by new
processes; its moves so far are discarded. An engine that ends or does not answer while it starts is started
again.

The games have a thread of their own, in which nothing is interrupted: Ctrl-C ends the games, however often it
is pressed, and the engines end before their event loop does.

The text of a game is PGN: each engine's evaluation of its move and its remaining time, in the form that
python-chess and Lichess read ([%eval], [%clk]), and "book" at moves of the book.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import os
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import chess
import chess.engine
import chess.pgn
import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.deadlines import time_is_up
from precomp_games.chess.data.book import Book, pgn_text, set_headers
from precomp_games.chess.data.movetext import BOOK_MOVE
from precomp_games.chess.data.pgn_files import MAX_TEXT
from precomp_games.chess.engines.pool import EngineError, start_engine
from precomp_games.chess.engines.searches import Options, SearchLimit, check_command
from precomp_games.chess.engines.uci import BASE_OPTIONS, EngineProcess, EngineThread
from precomp_games.chess.game import action_of, move_of
from precomp_games.chess.play.match import MATCH_PLIES, memorized_rows

_RESIGN_CP, _RESIGN_MOVES = 1000, 3
_DRAW_CP, _DRAW_MOVES, _DRAW_FROM = 10, 8, 80  # half-moves from the start
_MATE_CP = 100_000
_OVERSTEPPED = 0.05  # seconds of tolerance in all, as the way through two pipes takes time
_PATIENCE = 60.0  # seconds over its time, after which an engine is taken for hung
_TRIES = 3  # of a game, and of a start
_STREAMS = int.from_bytes(b"spar", "big")
_MOVES_TO_GO = 40.0
_CLOCK = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)\+([0-9]{1,4}(?:\.[0-9]{1,3})?)")
# A result at the end of moves, outside lines of tags, before an empty line, tags or the end.
_GAME_END = re.compile(
    rb'^(?!\[\w+\s+")(?:[^\n]*[ \t])?(?:1-0|0-1|1/2-1/2|\*)(?=\s*\Z|[ \t\r]*\n[ \t\r]*(?:\n|\[))', re.M
)
_NO_NAME = re.compile(r'["\\\x00-\x1f\x7f]')  # not allowed in a tag, which is written as it is

_T = TypeVar("_T")
Rows = Mapping[tuple[int, ...], Mapping[int, float]]


@public
@dataclasses.dataclass(frozen=True)
class Clock:
    """Time control of a side.

    Attributes:
      seconds: At the start.
      increment: Seconds added after each move.
    """

    seconds: Annotated[float, checks.Gt(0.0), checks.Le(99_999.0)]
    increment: Annotated[float, checks.Ge(0.0), checks.Le(9999.0)] = 0.0

    def __str__(self) -> str:
        """Return it as in PGN: "60+0.6"."""
        return f"{self.seconds:g}+{self.increment:g}"

    @classmethod
    @public
    def parse(cls, text: str) -> Clock:
        """Return the clock of a text such as "1+0.01".

        Raises:
          ValueError: another text.
        """
        if isinstance(text, str) and (match := _CLOCK.fullmatch(text)):
            with contextlib.suppress(ValueError):
                return cls(float(match[1]), float(match[2]))
        raise ArgumentError(f"expected seconds and an increment such as '60+0.6', got {shown(text)}")

    @property
    def move_ms(self) -> int:
        """Approximate time that an engine takes for a move of the opening, in milliseconds."""
        return max(1, round(1000.0 * (self.seconds / _MOVES_TO_GO + self.increment)))

    @public
    def time_gained(self, moves: checks.NonNegativeInt) -> float:
        """Return the factor by which the time for later moves grows if the first `moves` took none.

        As if a side thought for `seconds` / 40 and the increment before each of the first 40 moves, with as
        many still to come after these.
        """
        with_book = self.seconds + (_MOVES_TO_GO + moves) * self.increment
        left = self.seconds * max(1.0, _MOVES_TO_GO - moves) / _MOVES_TO_GO + _MOVES_TO_GO * self.increment
        return with_book / left


@public
@dataclasses.dataclass(frozen=True)
class MatchEngine:
    """An engine of a match.

    Attributes:
      name: In PGN.
      command: Its file, or that and its arguments.
      limit: Its limit for each move, or for all.
      options: UCI options.
    """

    name: str
    command: str | Sequence[str]
    limit: SearchLimit | Clock
    options: Options = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the name and the command."""
        if not self.name or _NO_NAME.search(self.name):
            raise ArgumentError(f"expected a name without quotes and control characters, got {self.name!r}")
        object.__setattr__(self, "command", check_command(self.command))


@public
def play_engine_games(
    book: Book,
    own: MatchEngine,
    opponent: MatchEngine,
    headers: Annotated[Sequence[Mapping[str, str]], checks.each_of(dict)],
    ended: Callable[[str], Any],
    *,
    seed: checks.Seed = 0,
    concurrency: Annotated[int, checks.Ge(1), checks.Le(256)] = 1,
) -> None:
    """Play a game for each of the headers.

    Args:
      book: one side plays from it, while its games are in it; an empty one is no book.
      own: plays where the book ends.
      opponent: the other side.
      headers: PGN tags of each game, see `write_pgn`.
      ended: called with the text of each game as it ends.
      seed: of the book's moves, if it has several at a position; nothing else is random here.
      concurrency: number of simultaneous games, each by two engines of which one thinks. More than there are
        cores compete for time.

    When time is up (`deadline`), no other game is begun.

    Raises:
      EngineError: an engine cannot be started, lacks an option, or fails three times in one game.
    """
    rows, todo = memorized_rows(book), enumerate(headers)

    async def play() -> None:
        async with contextlib.AsyncExitStack() as stack:
            sides = [_Side(own), _Side(opponent)]
            for side in sides:
                stack.push_async_callback(side.end)
            for number, tags in todo:  # shared by all
                if time_is_up():
                    return
                stream = np.random.SeedSequence(seed, spawn_key=(_STREAMS, number))
                ended(await _played(sides, book, rows, tags, stream))

    async def play_all() -> None:
        await asyncio.gather(*(play() for _ in range(min(concurrency, len(headers)))))

    thread = EngineThread("engine-games", 0)
    try:
        future = asyncio.run_coroutine_threadsafe(play_all(), thread.loop)
        # A signal just before the wait would not interrupt it.
        while not concurrent.futures.wait([future], 0.1).done:
            pass
        future.result()
    finally:
        while thread.is_alive:
            with contextlib.suppress(KeyboardInterrupt):  # further Ctrl-C change nothing
                thread.end()


def cut_to_whole_games(path: str | os.PathLike[str]) -> int:
    """Cut a file to which games are added back to its last whole game; return the number of bytes removed.

    The moves of a whole game end in a result. Text after the last one is half a game, left by a full disk or
    a power cut, and would be joined to the next. A missing line break is added.

    Raises:
      ValueError: more than a game would be lost: it is another kind of file.
      OSError: the file cannot be read, or not be written to.
    """
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start = file.seek(max(0, size - 2 * MAX_TEXT))
        data = file.read()
        whole = max((found.end() for found in _GAME_END.finditer(data)), default=0)
        rest, after = data[whole:], b"\n\n" if whole else b""
        lost = len(rest.lstrip())
        if lost and (lost > MAX_TEXT or (start and not whole) or rest.count(b"[Event ") > 1):
            raise ArgumentError(f"expected games that end in a result, got {os.fspath(path)!r}")
        if rest != after:
            file.truncate(file.seek(start + whole))
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
    return lost


async def _played(
    sides: Sequence[_Side],
    book: Book,
    rows: Rows,
    tags: Mapping[str, str],
    stream: np.random.SeedSequence,
) -> str:
    """Return the text of a game, which is begun anew if an engine fails."""
    for tried in range(_TRIES):
        try:
            for side in sides:
                await side.begin()
            return pgn_text(await _play(sides, book, rows, tags, np.random.default_rng(stream)))
        except _Failed as error:
            for side in sides:
                await side.end()
            if tried == _TRIES - 1:
                raise EngineError(
                    f"expected an engine to play, got {one_line(error)}, in each of {_TRIES} games: check "
                    "that it runs by itself, and has the time that it needs"
                ) from None
    raise AssertionError


class _Failed(Exception):
    """An engine did not play; the game is discarded."""


class _Side:
    """An engine in a game: its process, if there is one, and its remaining time."""

    def __init__(self, player: MatchEngine) -> None:
        self.player = player
        self.clock = player.limit if isinstance(player.limit, Clock) else None
        self.left = 0.0
        self.moved = False
        self._engine: EngineProcess | None = None

    async def begin(self) -> None:
        """Prepare the engine for another game."""
        if self._engine is None:
            self._engine, _ = await start_engine(self.player.command, self._set_up, _PATIENCE, _TRIES)
        self._engine.send_line("ucinewgame")
        self._engine.first_game = False  # otherwise `play` would send it, on the player's time
        await self._answer(self._engine.ping(), 0.0)
        self.left, self.moved = self.clock.seconds if self.clock else 0.0, False

    async def _set_up(self, engine: EngineProcess) -> None:
        given = chess.engine.UciOptionMap(self.player.options.items())
        for name, usual in BASE_OPTIONS.items():
            if name in engine.options:
                given.setdefault(name, usual)
        await engine.configure(given)

    async def end(self) -> None:
        """End the engine, in whatever state it is."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.quit_or_kill()

    async def move(
        self, board: chess.Board, sides: Mapping[chess.Color, _Side]
    ) -> tuple[chess.Move | None, chess.engine.PovScore | None]:
        """Return the engine's move and its score; no move if its time has run out."""
        assert self._engine is not None
        limit = self.player.limit
        if isinstance(limit, Clock):
            clocks: dict[str, Any] = {
                f"{chess.COLOR_NAMES[color]}_{name}": value
                for color, side in sides.items()
                if side.clock is not None
                for name, value in (("clock", max(side.left, 1e-3)), ("inc", side.clock.increment))
            }
            how = chess.engine.Limit(**clocks)
            longest = self.left
        else:
            seconds = None if limit.movetime_ms is None else limit.movetime_ms / 1000.0
            how = chess.engine.Limit(time=seconds, nodes=limit.nodes, depth=limit.depth)
            longest = seconds or 0.0
        began = time.perf_counter()
        answer = await self._answer(self._engine.play(board, how, info=chess.engine.INFO_SCORE), longest)
        if answer.move is None:
            raise _Failed(f"no move from {self.player.name}")
        if not self.spend(time.perf_counter() - began):
            if not self.moved:  # a game without a move of its own would be no game
                raise _Failed(f"no time left after the first move of {self.player.name}")
            return None, None
        self.moved = True
        return answer.move, answer.info.get("score")

    def spend(self, seconds: float) -> bool:
        """Subtract a move's time from its clock, if it has one; return whether it came in time."""
        if self.clock is not None:
            self.left -= seconds
            if self.left < -_OVERSTEPPED:
                return False
            self.left += self.clock.increment
        return True

    async def _answer(self, asked: Coroutine[Any, Any, _T], seconds: float) -> _T:
        """Return the engine's answer, within its time and some more; raise _Failed otherwise."""
        try:
            async with asyncio.timeout(seconds + _PATIENCE):  # wait_for can swallow a cancellation
                return await asked
        except (chess.engine.EngineError, TimeoutError, OSError) as error:
            what = one_line(error) if str(error) else f"no answer within {_PATIENCE:g} s over its time"
            raise _Failed(f"{what} from {self.player.name}") from None


# -- a game ------------------------------------------------------------------------------------------------


async def _play(
    pair: Sequence[_Side], book: Book, rows: Rows, tags: Mapping[str, str], rng: np.random.Generator
) -> chess.pgn.Game:
    """Play a game; `pair` are the book's side and the opponent's."""
    board, sides = book.start.copy(stack=False), {book.side: pair[0], not book.side: pair[1]}
    game = chess.pgn.Game()
    game.setup(board)
    names = {"White": sides[chess.WHITE].player.name, "Black": sides[chess.BLACK].player.name}
    set_headers(game, {**tags, **names})
    if pair[1].clock is not None:
        game.headers["TimeControl"] = str(pair[1].clock)
    node: chess.pgn.GameNode = game
    thought: list[int | None] = []  # centipawns for White, of each half-move after the book
    actions: tuple[int, ...] = ()
    in_book = True
    while (over := _over(board, thought)) is None:
        ours = board.turn == book.side
        row = rows.get(actions) if ours and in_book else None
        in_book = in_book and not (ours and row is None)
        if row is not None:
            odds = np.array(list(row.values()))
            move = move_of(int(rng.choice(list(row), p=odds / odds.sum())))
            node = node.add_variation(move, comment=BOOK_MOVE)
            thought.clear()
            sides[board.turn].spend(0.0)
        else:
            side = sides[board.turn]
            found, score = await side.move(board, sides)
            if found is None:
                over = ("0-1" if board.turn else "1-0", "time forfeit")
                break
            move = found
            node = node.add_variation(move)
            if score is not None:
                node.set_eval(score)
            if side.clock is not None:
                node.set_clock(max(side.left, 0.0))
            thought.append(None if score is None else score.white().score(mate_score=_MATE_CP))
        actions += (action_of(move),)
        board.push(move)
    game.headers["Result"], game.headers["Termination"] = over
    return game


def _over(board: chess.Board, thought: Sequence[int | None]) -> tuple[str, str] | None:
    """Return (result, reason) if a game is over; `thought` are the scores for White, the latest last."""
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
