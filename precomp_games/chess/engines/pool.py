"""A pool of UCI engines whose answers do not depend on its size, its order or its accidents.

A search is a function of (engine, position, limit, MultiPV). This requires, as measured on real
engines:

* one thread, a fixed hash table, and a new game before every search (`ucinewgame`, which empties
  the hash table and the history tables; sending "Clear Hash" as well changes no result and costs
  another 0.6 ms);
* a position without clocks: the EPD with a halfmove clock of 0 and move number 1;
* only iterations that the engine has finished. When a limit stops Stockfish in the middle of an
  iteration, it reports once more under the new depth, with scores that may be bounds, or left over
  from the iteration before: of 78 such last reports without a bound, at 5,000 nodes and MultiPV 2,
  15 differed from those of a finished iteration of that depth or of the one before. So an iteration
  counts once the engine has reported a deeper one; the iteration before the last report was the
  finished one in 78 of 78. If the limit ends a search during its first iteration, before there is
  a line for each move asked for, the position is searched on with twice the limit, and twice that,
  until there is (at 300 nodes and MultiPV 4 in one of fifty middle-game positions). That is a
  function of the question, too; `SearchResult.nodes` shows how far it went.

Engines' accidents (they die, hang, are stopped, write nonsense) are cured by killing the process, starting
another and asking again; since the answer is a function of the question, nothing else changes. Failures
that would repeat end in one `EngineError`.

Processes, option handling and the handshake are python-chess's; only the search command is our own,
because parsing whole principal variations takes python-chess 1.2 to 1.9 ms a search, and the first
moves need 0.3 ms (with two engines at 1,000 nodes: 430 searches a second against 590). A line of a megabyte,
which an engine may write, keeps its parser busy for some eleven seconds, and ours for a tenth of one.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import functools
import logging
import os
import queue
import shlex
import shutil
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import chess
import chess.engine

from precomp_games._support import checks
from precomp_games._support.checks import Unnamed, one_line, public
from precomp_games._support.deadlines import check_finished, deadline, limited
from precomp_games._support.results import Shown
from precomp_games.chess.engines import searches, uci
from precomp_games.chess.engines.searches import Question, SearchLimit, SearchResult, Turn
from precomp_games.chess.engines.uci import BadOutput, EngineProcess, NoNodes, NoScores, TooFewLines

DEFAULT_PATHS: tuple[str, ...] = ("/usr/games/stockfish",)  # Debian's path, which is not on every PATH
MAX_WORKERS = 1024
_PATIENCE = 10.0  # seconds beyond its limit that a search may take when the limit is tested
_GAMES = 8  # or the number of workers, if larger: games under way at once, by an engine each, to replay few

_T = TypeVar("_T")
_LOGGER = logging.getLogger(__name__)
_Failure = (chess.engine.EngineError, BadOutput, TimeoutError, OSError)
_Accident = (chess.engine.EngineTerminatedError, TimeoutError)  # at a start: another try may succeed


class EngineError(Unnamed, RuntimeError):
    """An engine cannot be started or does not answer in UCI; the message says what to do."""


class EngineNotFoundError(EngineError):
    """No engine was named, and none is installed in the usual places."""


@public
def find_engine(path: str | None = None) -> str | list[str]:
    """Return the engine to use: the path of its file, or a list of it and its arguments.

    Args:
        path: a file, or a command on PATH; or one of these and arguments, as in a shell ("gnuchess --uci").
            None: `$STOCKFISH`, else `stockfish` on PATH, else Debian's /usr/games/stockfish.

    Raises:
        EngineError: `path`, or `$STOCKFISH`, names nothing that can be run.
        EngineNotFoundError: nothing was named, and nothing is installed.
    """
    source = "path"
    if path is None and os.environ.get("STOCKFISH"):
        source, path = "$STOCKFISH", os.environ["STOCKFISH"]
    if path is None:
        if executable := _program("stockfish"):
            return executable
        raise EngineNotFoundError(
            "expected Stockfish on PATH or in /usr/games, got neither: install it "
            "(Debian: apt install stockfish), or name an engine with --engine or $STOCKFISH"
        )
    if executable := _program(path):
        return executable
    if not os.path.exists(path):
        with contextlib.suppress(ValueError):  # a quotation without an end
            name, *arguments = shlex.split(path) or [""]
            if program := _program(name):
                return [program, *arguments] if arguments else program
    problem = "is not executable: chmod +x" if os.path.isfile(path) else "is no such file"
    raise EngineError(
        f"expected {source} to be an engine's file or a command on PATH, "
        f"got {path!r}, which {problem}; correct it (a path with spaces that has arguments stands in "
        "quotation marks), or leave it out to use an installed Stockfish"
    )


def _program(name: str) -> str | None:
    """Return the file of a command on PATH, or in Debian's folder of games."""
    folders = os.pathsep.join(map(os.path.dirname, DEFAULT_PATHS))
    return (shutil.which(name) or shutil.which(name, path=folders)) if name else None


@dataclasses.dataclass(frozen=True)
class Demand:
    """A requirement on an engine, with advice for an engine that fails it.

    Attributes:
        limit: limit of searches.
        lines: MultiPV; 0: only the engine's move is read, and no score.
        limit_help: advice if it does not keep the limit.
        lines_help: advice if it has fewer lines.
    """

    limit: SearchLimit
    lines: int
    limit_help: str
    lines_help: str


def engine_troubles(
    command: str | list[str], options: Mapping[str, str], flag: str, demands: Sequence[Demand]
) -> list[str]:
    """Return a line for each requirement that an engine does not meet, with advice.

    Otherwise a run would fail only after work has been done, and then again for the next reason. So the
    engine's options and its number of lines are checked once, and searches of the start position test the
    limits.

    Args:
        command: the engine's command.
        options: UCI options that it must have.
        flag: the flag that sets them.
        demands: the requirements.
    """
    troubles: list[str] = []
    # An engine that does not start, or dies, is reported when it is started, or asked, in earnest.
    with (
        contextlib.suppress(EngineError, ValueError, chess.engine.EngineError),
        EnginePool(command, workers=1, timeout_seconds=_PATIENCE, retries=0) as pool,
    ):
        for trouble in pool._troubles(options, flag, demands):
            if trouble not in troubles:
                troubles.append(trouble)
    return troubles


async def start_engine(
    command: Sequence[str],
    set_up: Callable[[EngineProcess], Coroutine[Any, Any, _T]],
    seconds: float,
    tries: int,
    known: bool = False,
    before: Callable[[], None] | None = None,
) -> tuple[EngineProcess, _T]:
    """Start an engine and set it up; start another process if one ends or does not answer.

    Args:
        command: the engine's command.
        set_up: called after "uciok".
        seconds: time for both.
        tries: number of processes; two at most if none answers, unless the engine has answered before.
        known: whether it has.
        before: called in the process before the engine starts.

    Returns:
        The engine, and the result of `set_up`.

    Raises:
        EngineError: it does not start; no process is left.
    """
    shown_command, tried = " ".join(command), 0
    while True:
        engine: EngineProcess | None = None
        try:
            _, engine = await EngineProcess.popen(list(command), setpgrp=True, preexec_fn=before)
            async with asyncio.timeout(seconds):
                await engine.initialize()
                return engine, await set_up(engine)
        except BaseException as err:
            if engine is not None:
                await engine.kill()
            if not isinstance(err, _Failure):
                raise
            what = _words(err, f"no answer within {seconds:g} s")
            what += "" if engine is None else engine.last_words()
            tried += 1
            most = tries if known or not isinstance(err, TimeoutError) else min(tries, 2)
            if isinstance(err, _Accident) and tried < most:
                _LOGGER.warning("an engine is started again: at its start it gave %s", what)
                continue
            times = f", {tried} times running" if tried > 1 else ""
            raise EngineError(
                f"expected {shown_command!r} to start as a UCI engine, got {what}{times}: "
                "check that it runs by itself, answers 'uci', and takes these options"
            ) from err


class EnginePool(Shown, contextlib.AbstractContextManager["EnginePool"]):
    """Identical engines that share out searches; their answers do not depend on how many there are.

    One engine is started at once, to learn its identity; the others when there is work for them. They run in
    process groups of their own (Ctrl-C reaches Python, not them), and end when the pool is closed, when it is
    garbage collected, and when the Python process dies in whatever way (their input ends). An unpickled pool
    starts engines of its own.

    Args:
        command: the engine's file (`find_engine`), or a list of it and its arguments.
        workers: number of engines that search at once; None: one for each core that this process may use. For
            games, up to 8 more are kept waiting, or as many more as there are workers.
        options: UCI options over Threads=1 and Hash=16, by name. Those that the pool sets itself
            (MultiPV, Ponder, UCI_Chess960, UCI_Variant) are refused, and so are those with which
            an engine plays other moves than it finds (UCI_LimitStrength, UCI_Elo, Skill Level): the
            pool reads scores, which they leave as they are. With Threads above 1 results are not
            reproducible.
        timeout_seconds: time of a search, on top of a move time, after which its engine is taken for
            hung and replaced. Choose more for node limits of many millions.
        retries: how often a failed search is repeated by a new process, and how often an engine that ends or
            does not answer while it starts is started again; once, if none has answered yet.
        startup_seconds: time for an engine to start.

    Attributes:
        engine_id: the engine's UCI name and the options that differ from the pool's settings
            and from the engine's defaults, e.g. "Stockfish 15.1 [Hash=64]": the key in a store.
        command: the command as a list.
        workers: number of engines that search at once.

    Raises:
        ValueError: an argument out of range, or an option that is refused.
        EngineError: the command cannot be run, is no UCI engine, or lacks one of `options`.
    """

    _before_engine: Callable[[], None] | None = None  # called in an engine's process before it starts

    @public
    def __init__(
        self,
        command: str | list[str],
        *,
        workers: Annotated[int, checks.Ge(1), checks.Le(MAX_WORKERS)] | None = None,
        options: searches.Options | None = None,
        timeout_seconds: checks.Seconds = 60.0,
        retries: Annotated[int, checks.Ge(0), checks.Le(1000)] = 3,
        startup_seconds: checks.Seconds = 10.0,
    ) -> None:
        self.command = searches.check_command(command)
        self.workers = workers or min(len(os.sched_getaffinity(0)), MAX_WORKERS)
        self._shown = " ".join(self.command)
        self._options, self._startup_seconds = dict(options or {}), startup_seconds
        self.timeout_seconds, self.retries = timeout_seconds, retries
        self._lock = threading.Lock()
        self._searching: int | None = None  # the thread that has the lock
        self._warned_too_few = False
        # A place for each worker's engine that searches positions, then places for engines of games.
        self._thread = uci.EngineThread("engine-pool", self.workers + max(self.workers, _GAMES))
        self._slots = self._thread.engines
        self._idle = list(range(self.workers, len(self._slots)))  # engines of games, the longest idle first
        self._closed = False
        self.engine_id = ""
        # The thread has no reference to the pool, so that a forgotten one is closed; runs at exit too.
        self._finalizer = weakref.finalize(self, self._thread.end)
        try:
            self._thread.run(self._engine(0))
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise TypeError("EnginePool: expected an open pool to pickle, got a closed one")
        how: dict[str, Any] = {"workers": self.workers, "options": self._options, "retries": self.retries}
        how |= {"timeout_seconds": self.timeout_seconds, "startup_seconds": self._startup_seconds}
        return functools.partial(EnginePool, **how), (self.command,)

    # Everything below named async runs in the loop's thread; self._slots is touched there only.

    def _turn(self, place: int) -> Turn | None:
        """Return the turn at which an engine's game stands."""
        engine = self._slots[place]
        return None if engine is None else engine.turn

    async def _engine(self, place: int) -> EngineProcess:
        engine = self._slots[place]
        if engine is None:
            engine = self._slots[place] = await self._spawn()
        return engine

    async def _spawn(self) -> EngineProcess:
        """Start and configure an engine; EngineError, and no process left, if that fails."""
        how = (self._startup_seconds, self.retries + 1, bool(self.engine_id), self._before_engine)
        engine, engine_id = await start_engine(self.command, lambda it: it.set_options(self._options), *how)
        if self.engine_id and engine_id != self.engine_id:
            await engine.kill()
            raise EngineError(
                f"expected {self._shown!r} to be {self.engine_id!r} as before, got "
                f"{engine_id!r}: the engine was replaced during the run; run again"
            )
        self.engine_id = engine_id
        return engine

    @public
    def search(
        self,
        epds: searches.Positions,
        limit: SearchLimit,
        multipv: searches.Multipv,
        on_result: Callable[[str, SearchResult], None] | None = None,
        samples: searches.Samples = 0,
    ) -> list[SearchResult]:
        """Search positions and return the results in the given order.

        Args:
            epds: positions without clocks, each with a legal move.
            limit: for each position.
            multipv: number of lines; a position with fewer legal moves has fewer. If the limit is too small
                for so many, the position is searched on until they are there.
            on_result: called in this thread with each position and its result as soon as it is there, in the
                order of finishing. If this method raises, every finished search has been delivered before,
                unless `on_result` itself raised.
            samples: number of fresh searches of each position that record the engine's move; 0: only its
                lines are wanted. An engine that draws its moves at random draws others next time.

        Raises:
            ValueError: a position, limit, MultiPV or number of samples that cannot be searched; nothing
                was sent.
            EngineError: a search failed `retries` + 1 times, the engine cannot do MultiPV, or does not report
                nodes under a limit of nodes; or this is called within `on_result`.
            OutOfTimeError: time is up (`deadline`); searches begun by then are finished.
        """
        questions = [Question.of(index, epd, limit, multipv, samples) for index, epd in enumerate(epds)]
        results: dict[int, SearchResult] = {}

        def deliver(index: int, result: SearchResult) -> None:
            results[index] = result
            if on_result is not None:
                on_result(questions[index].epd, result)

        if self._searching == threading.get_ident():
            raise EngineError(
                "expected no search within on_result, while its engines are at work, got one: "
                "search afterwards, or by another pool"
            )
        with self._lock:
            if self._closed:
                raise EngineError("expected an open pool, got a closed one")
            self._searching = threading.get_ident()
            try:
                _Batch(self, questions).run(deliver)
            finally:
                self._searching = None
        check_finished(len(results), len(questions))
        return [results[index] for index in range(len(questions))]

    def _troubles(self, options: Mapping[str, str], flag: str, demands: Sequence[Demand]) -> Iterator[str]:
        """Yield the lines of `engine_troubles`."""
        engine = self._slots[0]
        assert engine is not None
        known = ", ".join(sorted(engine.options)) or "none"
        for name, value in options.items():
            if name not in engine.options:
                yield f"has no option {name!r}: leave out --{flag}={name}={value} (it has {known})"
        for lines, what in {each.lines: each.lines_help for each in demands}.items():
            if has := _fewer_lines(engine, lines):
                yield f"has {has}, and {lines} lines are asked for: {what}"
        self._options = {name: value for name, value in options.items() if name in engine.options}
        self._thread.run(engine.configure(self._options))
        for (limit, scores), what in {(_least(x.limit), x.lines > 0): x.limit_help for x in demands}.items():
            try:
                with limited(None):  # tried before any work, even if little time is left for that
                    self.search([chess.Board().epd()], limit, 1, samples=0 if scores else 1)
            except EngineError as error:
                problem = error.__cause__
                if isinstance(problem, NoScores):
                    yield f"gives {problem}"
                elif isinstance(problem, NoNodes):
                    yield f"does not keep {limit}, since it does not report nodes: {what}"
                elif isinstance(problem, BadOutput):
                    yield f"does not keep {limit}, with {problem}: {what}"
                elif isinstance(problem, TimeoutError):
                    yield f"does not keep {limit}, with no move in {self.timeout_seconds:g} s: {what}"

    async def _answer(self, worker: int, question: Question) -> SearchResult:
        """Return the result of a position's first search, with the moves played in all of its searches."""
        first = await self._search(worker, question)
        played = collections.Counter(dict(first.played))
        for _ in range(question.samples - 1):
            played.update(dict((await self._search(worker, question)).played))
        ranked = sorted(played.items(), key=lambda entry: (-entry[1], entry[0]))
        return dataclasses.replace(first, played=tuple(ranked)) if question.samples > 1 else first

    async def _search(self, worker: int, question: Question) -> SearchResult:
        if question.turn is None:
            return await self._search_at(worker, question)
        # In a game, by an engine that has reached this turn, or by the longest idle.
        before = question.turn.before
        there = (place for place in self._idle if before is not None and self._turn(place) == before)
        place = next(there, self._idle[0])
        self._idle.remove(place)
        try:
            return await self._search_at(place, question)
        finally:
            self._idle.append(place)

    async def _search_at(self, place: int, question: Question) -> SearchResult:
        asked, what = question, ""
        problem: BaseException | None = None
        failures = too_few = 0
        while failures <= self.retries:
            engine = await self._engine(place)
            if has := _fewer_lines(engine, question.multipv):
                raise EngineError(
                    f"expected {self._shown!r} to search {question.multipv} lines, got an engine with {has}: "
                    "use another engine, or fewer moves a position (--top_k=1 and --menu=1; an opponent's "
                    "with --opponent_plays=bestmove or uci(plays=bestmove) needs one)"
                )
            try:
                return await self._ask(engine, asked)
            except TooFewLines as err:
                problem, what, too_few = err, str(err), too_few + 1
                if too_few % 2 == 0:  # no accident
                    if (longer := asked.longer()) is None:
                        break
                    asked = longer
                    self._tell_too_few(question)
            except NoScores as err:
                problem, what, failures = err, str(err), failures + 1
                if failures > 1:  # no accident
                    break
            except BaseException as err:
                # Whatever the error, even a cancelled search: this process is in an unknown state.
                self._slots[place] = None
                ending = engine.last_words()
                await engine.kill()
                if not isinstance(err, _Failure):
                    raise
                if isinstance(err, NoNodes):
                    raise EngineError(
                        f"expected {self._shown!r} to report nodes, by "
                        f"which {asked.limit} is kept, got {err} for {asked.epd!r}: limit its time or its "
                        "depth, by --opponent_movetime_ms=50 and --analyst_movetime_ms=50, or uci(depth=4)"
                    ) from err
                failures += 1
                problem, what = err, _words(err, "no answer in time") + ending
                if failures <= self.retries:
                    about = (what, asked.epd, asked.limit)
                    _LOGGER.warning("an engine is replaced: it gave %s for %s at %s", *about)
        times = f", {failures} times running" if failures else ""
        raise EngineError(
            f"expected {question.lines} line(s) for {question.epd!r} at "
            f"{asked.limit} from {self._shown!r}, got {what}{times}: searches that were finished "
            "are kept; try a larger limit, or a move time, fewer lines, the position in the engine by hand, "
            "or another engine"
        ) from problem

    async def _ask(self, engine: EngineProcess, asked: Question) -> SearchResult:
        """Make a search; in a game, after those of earlier turns that this engine has not made."""
        seconds = self.timeout_seconds + (asked.limit.movetime_ms or 0) / 1000
        for step in (*_turns_before(engine.turn, asked), asked):
            async with asyncio.timeout(seconds):
                try:
                    result = await engine.ask(uci.SearchCommand(engine, step))
                except TooFewLines:
                    if step is asked:
                        raise
        return result

    def _tell_too_few(self, question: Question) -> None:
        if not self._warned_too_few:
            _LOGGER.warning(
                "%s is too little for %d lines of %s: there, and wherever else that is so, it is searched on "
                "until they are known (this is printed once)",
                *(question.limit, question.lines, question.epd),
            )
        self._warned_too_few = True

    def close(self) -> None:
        """End the engines; a search in another thread ends in EngineError. Calling it again is harmless."""
        self._closed = True
        self._finalizer()

    def __exit__(self, *error: object) -> None:
        self.close()


class _Batch:
    """A call of `search`: its tasks in the loop, and the way of the results to the caller."""

    def __init__(self, pool: EnginePool, questions: list[Question]) -> None:
        self._pool = pool
        self._left = _Questions(questions)
        self._deadline = deadline()  # the caller's, and not the loop's
        self._workers = min(pool.workers, len(questions))
        self._task: asyncio.Task[None] | None = None
        # Results, and None to wake a waiting thread when there are no more.
        self._queue: queue.SimpleQueue[tuple[int, SearchResult] | None] = queue.SimpleQueue()

    def run(self, deliver: Callable[[int, SearchResult], None]) -> None:
        """Deliver results as they come; raise EngineError after the last finished one."""
        thread = self._pool._thread
        item = None
        try:
            thread.call(self._start)
            for item in self._results():
                deliver(*item)
        except BaseException as err:
            thread.call(self._cancel)
            # The result that was being delivered, again, and those finished meanwhile.
            rest = [*([] if item is None else [item]), *self._results()]
            if isinstance(err, KeyboardInterrupt):
                for item in rest:
                    deliver(*item)
            raise
        task = self._task
        if task is None or task.cancelled() or not task.done():
            raise EngineError("expected an open pool, got it closed meanwhile")
        if (error := task.exception()) is not None:
            raise error

    def _results(self) -> Iterator[tuple[int, SearchResult]]:
        """Yield results as they come, until the task is over and its engines are idle or dead."""
        while True:
            # Read before the queue: everything is in the queue by the time that the task is over.
            over = not self._pool._thread.is_alive or (self._task is not None and self._task.done())
            try:
                item = self._queue.get(timeout=0.0 if over else 1.0)
            except queue.Empty:
                if over:
                    return
                continue
            if item is None:
                return
            yield item

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda task: self._queue.put(None))

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        tasks = [asyncio.create_task(self._work(worker)) for worker in range(self._workers)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, worker: int) -> None:
        """Take the next question with one engine, until there is none, or no time."""
        while self._deadline is None or self._deadline.left > 0.0:
            turns = filter(None, map(self._pool._turn, self._pool._idle))
            question = self._left.take(turns)
            if question is None:
                return
            self._queue.put((question.index, await self._pool._answer(worker, question)))


def _turns_before(last: Turn | None, question: Question) -> list[Question]:
    """Return the searches of a game's earlier turns that an engine has to make before a question.

    The list is empty if its last one was the turn before this one, and has all of them after another game.
    """
    found: list[Question] = []
    if question.turn is None:
        return found
    board, moves = chess.Board(question.turn.start), question.turn.moves
    for k, move in enumerate(moves):
        if (len(moves) - k) % 2 == 0:
            turn = question.turn._replace(moves=moves[:k])
            step = dataclasses.replace(
                question,
                fen=board.fen(en_passant="fen"),
                limit=turn.limit,
                lines=searches.number_of_lines(board, question.multipv),
                turn=turn,
            )
            found = [] if turn == last else [*found, step]
        board.push_uci(move)
    return found


class _Questions:
    """Questions in their order, except that an engine stays in its game: after one turn comes the next."""

    def __init__(self, questions: list[Question]) -> None:
        self._left = collections.OrderedDict((question.index, question) for question in questions)
        self._next: dict[Turn, list[int]] = {}
        for question in questions:
            if question.turn is not None and question.turn.before is not None:
                self._next.setdefault(question.turn.before, []).append(question.index)

    def take(self, turns: Iterable[Turn]) -> Question | None:
        """Return the next question, given the turns of idle engines' games; None if none is left."""
        following = (index for turn in turns for index in self._next.get(turn, ()) if index in self._left)
        index = next(following, next(iter(self._left), None))
        return None if index is None else self._left.pop(index)


def _least(limit: SearchLimit) -> SearchLimit:
    """Return the limit, or a smaller one of its kind: an engine that keeps that keeps larger ones."""
    if limit.nodes is not None:
        return SearchLimit(nodes=min(limit.nodes, 20_000))
    return limit if limit.movetime_ms is None else SearchLimit(movetime_ms=min(limit.movetime_ms, 200))


def _fewer_lines(engine: EngineProcess, lines: int) -> str:
    """State an engine's MultiPV if it cannot give so many lines; else return ""."""
    option = engine.options.get("MultiPV")
    if option is None:
        return "no MultiPV" if lines > 1 else ""
    return f"MultiPV up to {option.max}" if option.max is not None and option.max < lines else ""


def _words(error: BaseException, late: str) -> str:
    """Describe an engine's error for a message; `late` if it did not answer in time."""
    return late if isinstance(error, TimeoutError) else one_line(error)
