"""Clusters of machines by Dask: connecting to one, and independent tasks on it.

    with cluster_client("tcp://scheduler:8786") as client:
        future = client.submit(function, task)

    for number, result in map_on_cluster(solve, tasks, "tcp://scheduler:8786"):
        results[number] = result

Encryption is set in Dask's own configuration (`distributed.comm.tls`), which the client reads as schedulers
and workers do.

A result depends on its task alone. So neither the number of workers, nor their order, nor their deaths change
what comes back. `UnderWay` sends tasks, a few for each worker, and sees to it that every result comes:

* **A worker dies with a task.** Dask gives the task to another worker. After some deaths Dask blames the task
  and ends it as a `KilledWorker`. The task is then sent again, as another one, a few times.
* **A worker dies between a task's end and the fetching of its result.** Dask has the result made again, and
  whoever asks for it waits until it is there, for ever if no worker can make it. So nothing is fetched that
  is not there, and the caller looks at the cluster meanwhile.
* **A worker has a result and does not report it.** After a minute the task is sent again, as after a death.
* **Nobody has a task.** All workers that could make it are dead and came again as others, or a scheduler that
  was busy gave up the message by which the task came. Nobody is notified. So where nothing comes, the
  scheduler is asked what workers have, and whatever is missing there for some seconds is sent again.

A task that is made twice changes nothing, since its result is the same.

Dask's own means do less: `Client.submit(retries=...)` repeats tasks that raise errors, not those that workers
die of; `as_completed` fetches one result after the other, each by the way to its worker and back, and waits
without a limit for what is lost; `wait` looks at all futures each time, and belongs to the client that was
made last.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import functools
import importlib.metadata
import json
import logging
import pathlib
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import resource_tracker
from typing import Annotated, Any, TypeVar

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, Unnamed, one_line, public, shown


class ClusterError(Unnamed, ConnectionError):
    """Error: a scheduler or its workers are missing, or have gone."""


class _LateError(Exception):
    """Error: a result that exists does not arrive."""


ANSWER_SECONDS = 60.0
"""Until a part of a cluster that is asked something and says nothing is taken for gone."""

AHEAD = 2
"""Tasks that a worker is given: one that runs, and one that waits for it."""

_MOST_DEATHS = 3  # of several workers with a task, until it is blamed for them
_LOOK_SECONDS = 2.0  # without a result, until it is seen whether workers and tasks are still there
_COUNT_SECONDS = 30.0  # until workers are counted again, while results come
_AT_ONCE = 100  # results that are fetched together
_FETCH_LOOK_SECONDS = 0.5  # until it is seen whether what is fetched is still there
_NOT_THERE = ("pending", "lost")  # Dask's words for what is to be made, or to be made again
# A worker that died is started again; on a busy machine that may take more than the 15 s after which Dask
# gives it up.
_PATIENT = {"distributed.deploy.lost-worker-timeout": "1 hour"}
# Workers are the client's to end, not the terminal's; what they print about tasks that are given up, and of a
# scheduler that has just gone, is no news.
_SETUP = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
logging.getLogger("distributed.worker.memory").setLevel(logging.WARNING)
"""
_ADDRESS = re.compile(r"(tcp|tls)://(\[[\w:.%]+\]|[\w-]+(\.[\w-]+)*):\d{1,5}")
_CLUSTER = re.compile(rf"{_ADDRESS.pattern}|(?!local:).*\.json|local:[1-9][0-9]{{0,3}}", re.DOTALL)
_FILE_SECONDS = 10.0  # until a scheduler that is starting has written its file
_T = TypeVar("_T")
_quiet_lock = threading.Lock()
_quiet_clients = 0  # that want Dask to log warnings only; they may end in any order
_own_levels: list[int] = []  # the level of logs where there are none


def _cluster(cluster: Any, name: str) -> str:
    if _CLUSTER.fullmatch(checks.check_instance(cluster, str, name)):
        return str(cluster)
    raise ArgumentError(
        f'expected {name} to be a scheduler\'s address such as "tcp://host:8786", a scheduler '
        f'file *.json, or "local:4" for so many workers here, got {shown(cluster)}'
    )


Cluster = Annotated[str, checks.Check(_cluster)]
"""The name of a cluster; `cluster_client` says what that may be."""


@contextlib.contextmanager
@public
def cluster_client(cluster: Cluster, *, startup_seconds: checks.Seconds = 60.0) -> Iterator[Any]:
    """Open a client of a cluster; at the end of the block it is closed, with all that was started for it.

    Args:
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine, with one thread each.
        startup_seconds: how long to wait for the scheduler.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        ConnectionError: where the `with` begins: dask.distributed is not installed, or there is no scheduler.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError(
            'expected dask.distributed, got none: pip install "precomp-games[cluster]"'
        ) from error

    with contextlib.ExitStack() as closing:
        quiet = closing.enter_context(_warnings_only())
        local = cluster.startswith("local:")
        address: Any = closing.enter_context(_local(cluster, startup_seconds)) if local else None
        try:
            address = address or _address(cluster, startup_seconds)
            # Dask's own limits leave out a scheduler that does not answer.
            most = startup_seconds + ANSWER_SECONDS
            client = closing.enter_context(_in_time(lambda: Client(address, timeout=startup_seconds), most))
        # UnicodeError: a host that is none; TypeError: tls:// without certificates.
        except (OSError, RuntimeError, UnicodeError, TypeError) as error:
            raise ClusterError(
                f"expected a scheduler at {cluster!r}, got none ({error}): start one with "
                "dask scheduler, and see that its address can be reached from here, by tls:// and the "
                "certificates of distributed.comm.tls in Dask's configuration where it requires encryption"
            ) from error
        try:
            yield client
        except KeyboardInterrupt:  # clients closed in the middle of their work log much
            quiet(logging.CRITICAL)
            raise


@contextlib.contextmanager
def _local(cluster: str, seconds: float) -> Iterator[Any]:
    """Start workers on this machine, for the block.

    Raises:
        ConnectionError: they do not start.
    """
    import dask
    from distributed import LocalCluster

    count = int(cluster.partition(":")[2])

    def start() -> Any:
        return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, preload=[_SETUP])

    # At the end it is no news that one was slow to go, and was killed.
    logging.getLogger("distributed.nanny").addFilter(_no_slow_end)
    with dask.config.set(_PATIENT), contextlib.ExitStack() as closing:
        try:
            with _interrupted_after(), warnings.catch_warnings():
                # Of the port of a page that Dask has though nobody asked for it.
                warnings.filterwarnings("ignore", "Port 8787 is already in use", UserWarning)
                made = _in_time(start, seconds + ANSWER_SECONDS + 10.0 * count)
                closing.enter_context(made)  # before an interrupt that came meanwhile
        except (OSError, RuntimeError) as error:
            raise ClusterError(
                f"expected {count} worker(s) of {cluster!r} to start, got one that did not "
                f"({one_line(error)}): see that there is enough memory for so many, and run again"
            ) from error
        yield made


def _no_slow_end(record: logging.LogRecord) -> bool:
    return "still alive" not in str(record.msg)


def _in_time(make: Callable[[], _T], seconds: float) -> _T:
    """Return the result of `make`, called in a thread that is left behind if it takes longer.

    Raises:
        TimeoutError: it takes longer.
    """
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def work() -> None:
        try:
            outcome.set_result(make())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    if not concurrent.futures.wait([outcome], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return outcome.result()


def _address(cluster: str, seconds: float) -> str:
    """Return a scheduler's address, which may be in a file that is written meanwhile.

    Raises:
        OSError: there is no such file.
        RuntimeError: it is no scheduler file.
    """
    if not cluster.endswith(".json"):
        return cluster
    end = time.monotonic() + min(seconds, _FILE_SECONDS)
    while True:
        try:
            address = json.loads(pathlib.Path(cluster).read_bytes())["address"]
            if _ADDRESS.fullmatch(address):
                return str(address)
            raise ValueError(address)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            if time.monotonic() > end:
                raise (
                    error if isinstance(error, OSError) else RuntimeError("it is no scheduler file")
                ) from None
        time.sleep(0.1)


@contextlib.contextmanager
def explained_if_lost(cluster: str) -> Iterator[None]:
    """Raise `ClusterError` where the scheduler is lost within the block.

    Raises:
        ConnectionError: it is gone.
    """
    from distributed.client import ClosedClientError

    try:
        yield
    except (OSError, RuntimeError, concurrent.futures.CancelledError, ClosedClientError) as error:
        why = one_line(error) if str(error) else "it closed"
        raise ClusterError(
            f"expected the scheduler at {cluster!r} to stay, got {why}: what was finished is kept; start it "
            "again, and run again"
        ) from error


def asked(client: Any, cluster: str, question: Callable[[], Any], seconds: float | None = None) -> Any:
    """Call one of the client's methods with a time limit and return the answer.

    Args:
        client: Dask's.
        cluster: its name.
        question: calls one of the client's methods; it runs in the client's event loop, where these give what
            can be awaited.
        seconds: the time to wait. None: `ANSWER_SECONDS`.

    Raises:
        ConnectionError: the scheduler is gone, or does not answer for so long.
    """
    limit = ANSWER_SECONDS if seconds is None else seconds

    async def answer() -> Any:
        if client.scheduler is None:  # Dask's client closes when it has tried for long to reach it again
            raise ClusterError("Dask's client has closed")
        return await question()

    with explained_if_lost(cluster):
        try:
            return client.sync(answer, callback_timeout=limit)
        except TimeoutError:
            raise TimeoutError(f"no answer within {limit:g} s") from None


def once_there(count: Callable[[], int], cluster: str, seconds: float) -> int:
    """Wait for the first worker and return the number of workers.

    Raises:
        ConnectionError: no worker comes within so many seconds.
    """
    end = time.monotonic() + seconds
    while not (workers := count()):
        if time.monotonic() > end:
            scheduler = f"--scheduler-file {cluster}" if cluster.endswith(".json") else cluster
            raise ClusterError(
                f"expected a worker at {cluster!r}, got none within {seconds:g} s: start some, "
                f"dask worker {scheduler} --nthreads 1"
            )
        time.sleep(0.1)
    return workers


@contextlib.contextmanager
def _warnings_only() -> Iterator[Callable[[int], None]]:
    """Show only Dask's warnings: it reports each worker that comes and each task that is given up.

    Yields a setter of the log level.
    """
    global _quiet_clients
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    with _quiet_lock:
        if not _quiet_clients:
            _own_levels[:] = [logger.level for logger in loggers]
        _quiet_clients += 1

    def at_least(level: int) -> None:
        for logger, own in zip(loggers, _own_levels, strict=True):
            logger.setLevel(max(own, level))

    at_least(logging.WARNING)
    try:
        yield at_least
    finally:
        with _quiet_lock:
            _quiet_clients -= 1
            if not _quiet_clients:
                at_least(logging.NOTSET)


@contextlib.contextmanager
def _interrupted_after() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block, and keep it from processes that are started in it.

    Dask cannot close what has started in part, and a worker that has just begun cannot ignore it yet.
    """
    if threading.current_thread() is not threading.main_thread():  # to which interrupts go
        yield
        return
    resource_tracker.ensure_running()  # or a first process would have it lift the mask
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which threads and processes inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


# -- tasks ---


@public
def map_on_cluster(
    function: Callable[[Any], Any],
    tasks: Iterable[Any],
    cluster: Cluster,
    *,
    startup_seconds: checks.Seconds = 60.0,
) -> Iterator[tuple[int, Any]]:
    """Yield (number, function(task)) of every task, in the order in which they are done.

    What the function's module defines is sent as it is, by value, unless it is of this library: workers need
    the library and not the module.

    Args:
        function: one of a module's top level, or a partial one of it; of one argument.
        tasks: what it takes, numbered as they come.
        cluster: see `cluster_client`.
        startup_seconds: how long to wait for the scheduler, and for a worker when there is none.

    Raises:
        ValueError: an argument out of range, or a cluster that is none; a worker has another version of the
            library.
        ConnectionError: there is no scheduler, or no worker, or they are gone.
        ChildProcessError: workers die of a task again and again.
        Exception: what the function raises.
    """
    listed = list(checks.check_instance(tasks, Iterable, "tasks"))
    return _map(function, listed, cluster, startup_seconds)


def _map(
    function: Callable[[Any], Any], tasks: list[Any], cluster: str, seconds: float
) -> Iterator[tuple[int, Any]]:
    with cluster_client(cluster, startup_seconds=seconds) as client:
        _send_by_value(function)
        checking = _checking(function)
        under_way = UnderWay(client, cluster, words=lambda number: shown(tasks[number]))
        left = iter(range(len(tasks)))

        def send_next(workers: int) -> bool:
            if (number := next(left, None)) is not None:
                under_way.submit(number, checking, tasks[number])
            return number is not None

        def count_workers() -> int:
            return len(asked(client, cluster, lambda: client.scheduler.identity())["workers"])

        yield from under_way.results(send_next, lambda: once_there(count_workers, cluster, seconds))


def _send_by_value(function: Callable[[Any], Any]) -> None:
    """Send the contents of a function's module by value, unless workers have it too."""
    import cloudpickle  # type: ignore[import-untyped,unused-ignore]

    module = getattr(function, "func", function).__module__
    if module not in ("__main__", "builtins") and module.partition(".")[0] != "precomp_games":
        cloudpickle.register_pickle_by_value(sys.modules[module])


def _checking(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `function`, which refuses a worker with another version of the library."""
    version = importlib.metadata.version("precomp-games")

    def checking(task: Any) -> Any:  # within a function, so that it is sent by value
        there = importlib.metadata.version("precomp-games")
        if there != version:
            from distributed import get_worker

            raise ValueError(
                f"worker {get_worker().address}: expected precomp-games {version}, got {there}: install the "
                "same version there"
            )
        return function(task)

    return checking


@dataclasses.dataclass
class _Sent:
    """A task under way.

    Attributes:
        purpose: the task's purpose, which comes back with its result.
        send: makes Dask's future of it.
        future: Dask's, of the last time that the task was sent.
        deaths: the number of times that Dask gave it up, or its result did not come.
    """

    purpose: Any
    send: Callable[[], Any]
    future: Any = None
    deaths: int = 0


class UnderWay:
    """Tasks that a client has sent, each with what it is for, and those of them that are done.

    Args:
        client: Dask's.
        cluster: its name.
        words: what a task is for, in words, for errors.
    """

    def __init__(self, client: Any, cluster: str, *, words: Callable[[Any], str] = str) -> None:
        self._client, self._cluster, self._words = client, cluster, words
        self._tasks: dict[str, _Sent] = {}  # by the future's key
        self._news = threading.Event()  # that one is done
        self._missed: set[str] = set()  # those that no worker had when it was last asked

    def __len__(self) -> int:
        return len(self._tasks)

    def results(
        self, send_next: Callable[[int], bool], count_workers: Callable[[], int]
    ) -> Iterator[tuple[Any, Any]]:
        """Send tasks ahead of the workers, and yield (its purpose, its result) of each as they come.

        Args:
            send_next: submits the next task, given the number of workers; False where there is none left.
            count_workers: how many workers there are, 1 or more; waits for a first one, or raises.

        Raises:
            ChildProcessError: workers die of a task again and again.
            Exception: what a task raised, or `count_workers`.
        """
        try:
            workers, counted, more = count_workers(), time.monotonic(), True
            while True:
                while more and len(self) < AHEAD * workers:
                    more = send_next(workers)
                if not self:
                    return
                done = self.done(_LOOK_SECONDS)
                if not done or time.monotonic() > counted + _COUNT_SECONDS:
                    workers, counted = count_workers(), time.monotonic()
                if not done:
                    self.send_stranded()
                yield from done
        finally:
            self.cancel()

    def submit(self, purpose: Any, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Send a task; see Dask's `Client.submit`."""
        send = functools.partial(self._client.submit, function, *arguments, pure=False, **options)
        self._send(_Sent(purpose, send))

    def _send(self, task: _Sent) -> None:
        with explained_if_lost(self._cluster):
            task.future = task.send()
            self._tasks[task.future.key] = task
            task.future.add_done_callback(lambda done: self._news.set())

    def _send_again(self, keys: Iterable[str]) -> None:
        tasks = [self._tasks.pop(key) for key in keys]
        self._cancel(tasks)
        for task in tasks:
            self._send(task)

    def _cancel(self, tasks: Iterable[_Sent]) -> None:
        futures = [task.future for task in tasks]
        asked(self._client, self._cluster, lambda: self._client.cancel(futures, force=True))

    def _is_there(self, key: str) -> bool:
        """Return whether Dask has a task's result or error."""
        return self._tasks[key].future.status not in _NOT_THERE

    def done(self, seconds: float) -> list[tuple[Any, Any]]:
        """Yield (its purpose, its result) of each task that is done; none after so many seconds.

        Raises:
            ChildProcessError: workers die of a task again and again.
            Exception: what a task raised, once nothing else is done.
        """
        self._news.clear()  # before they are looked at
        if not any(map(self._is_there, self._tasks)):
            self._news.wait(seconds)
        futures = [self._tasks[key].future for key in filter(self._is_there, self._tasks)][:_AT_ONCE]

        async def fetch() -> list[Any]:
            return await asyncio.gather(*map(self._outcome, futures))

        found = asked(self._client, self._cluster, fetch, 2.0 * ANSWER_SECONDS) if futures else []
        outcomes = [(future.key, outcome) for future, outcome in zip(futures, found, strict=True) if outcome]
        if results := [(key, *found) for key, found in outcomes if isinstance(found, list)]:
            return [(self._tasks.pop(key).purpose, result) for key, result in results]
        for key, error in outcomes:
            self._try_again(key, error)
        return []

    async def _outcome(self, future: Any) -> Any:
        """Return [a task's result], its error, or None where it is no longer there."""
        fetching = asyncio.ensure_future(self._client.gather([future]))
        fetching.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        end = time.monotonic() + ANSWER_SECONDS
        while not (await asyncio.wait({fetching}, timeout=_FETCH_LOOK_SECONDS))[0]:
            if future.status in _NOT_THERE:
                return None  # and the fetching ends when it is made again, or canceled
            if time.monotonic() > end:
                fetching.cancel()
                return _LateError()
        return fetching.exception() if future.status == "error" else fetching.result()

    def _try_again(self, key: str, error: Exception) -> None:
        """Send a task again where workers died of it or its result is late, or raise its error."""
        from distributed import KilledWorker

        task = self._tasks[key]
        if not isinstance(error, KilledWorker | _LateError):
            raise error
        task.deaths += 1
        if task.deaths > _MOST_DEATHS:
            last = f", the last at {error.last_worker.address}" if isinstance(error, KilledWorker) else ""
            raise ChildProcessError(
                "expected workers to live through their tasks, got several that died or "
                f"said nothing for {ANSWER_SECONDS:g} s, {task.deaths} times{last}, of "
                f"{self._words(task.purpose)}: do they have enough memory? See their own output"
            ) from error
        self._send_again([key])

    def send_stranded(self) -> None:
        """Resend tasks that no worker has, now and at the last call: a task may be on its way for a while."""
        ask = (self._client, self._cluster)
        held = set().union(*asked(*ask, lambda: self._client.processing()).values())
        missed = {key for key in self._tasks if key not in held and not self._is_there(key)}
        self._send_again(missed & self._missed)
        self._missed = missed & self._tasks.keys()

    def cancel(self) -> None:
        """Cancel all tasks; a scheduler that is gone has nothing left of them."""
        with contextlib.suppress(ConnectionError):
            self._cancel(self._tasks.values())
        self._tasks.clear()
