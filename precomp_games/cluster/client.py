"""Clusters of machines by Dask: what names one, and how it is reached.

    with cluster_client("tcp://scheduler:8786") as client:
        future = client.submit(function, task)

Encryption is set in Dask's own configuration (`distributed.comm.tls`), which the client reads as schedulers
and workers do.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import logging
import pathlib
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Annotated, Any, TypeVar

from precomp_games._support.validation import (
    ArgumentError,
    Check,
    Seconds,
    Unnamed,
    check_instance,
    one_line,
    public,
    shown,
)


class ClusterError(Unnamed, ConnectionError):
    """A scheduler or its workers are not there, or are gone."""


ANSWER_SECONDS = 60.0
"""Until a part of a cluster that is asked something and says nothing is taken for gone."""

_MOST_WORKERS = 1024
# A worker that died is started again; on a busy machine that may take more than the 15 s after which Dask
# gives it up.
_PATIENT = {"distributed.deploy.lost-worker-timeout": "1 hour"}
# Workers are the client's to end, not the terminal's; what they say of tasks that are given up, and of a
# scheduler that has just gone, is no news.
_SETUP = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
logging.getLogger("distributed.worker.memory").setLevel(logging.WARNING)
"""
_ADDRESS = re.compile(r"(tcp|tls)://(\[[\w:.%]+\]|[\w-]+(\.[\w-]+)*):\d{1,5}")
_FILE_SECONDS = 10.0  # until a scheduler that is starting has written its file
_T = TypeVar("_T")
_quiet_lock = threading.Lock()
_quiet_clients = 0  # that want Dask to tell warnings only; they may end in any order
_own_levels: list[int] = []  # of what is told where there are none


def _cluster(cluster: Any, name: str) -> str:
    kind, _, count = check_instance(cluster, str, name).partition(":")
    if kind == "local":
        known = count.isascii() and count.isdecimal() and len(count) < 5 and 1 <= int(count) <= _MOST_WORKERS
    else:
        known = _ADDRESS.fullmatch(cluster) is not None or cluster.endswith(".json")
    if known:
        return str(cluster)
    raise ArgumentError(
        f'expected {name} to be a scheduler\'s address such as "tcp://host:8786", a scheduler '
        f'file *.json, or "local:4" for so many workers here, got {shown(cluster)}'
    )


Cluster = Annotated[str, Check(_cluster)]
"""The name of a cluster; `cluster_client` says what that may be."""


def check_dask() -> None:
    """Raises a ConnectionError where dask.distributed is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ClusterError(
            'expected dask.distributed, got none: pip install "precomp-games[cluster]"'
        ) from error


@contextlib.contextmanager
@public
def cluster_client(cluster: Cluster, *, startup_seconds: Seconds = 60.0) -> Iterator[Any]:
    """A client of a cluster, in a `with`; at its end the client is closed, and what was started for it.

    Args:
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine, with one thread each.
        startup_seconds: how long to wait for the scheduler.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        ConnectionError: where the `with` begins: dask.distributed is not installed, or there is no scheduler.
    """
    check_dask()
    from distributed import Client

    with contextlib.ExitStack() as closing:
        quiet = closing.enter_context(_warnings_only())
        local = cluster.startswith("local:")
        address: Any = closing.enter_context(_local(cluster, startup_seconds)) if local else None
        try:
            address = address or _address(cluster, startup_seconds)
            # Dask's own limits leave out a scheduler that says nothing.
            most = startup_seconds + ANSWER_SECONDS
            client = closing.enter_context(_in_time(lambda: Client(address, timeout=startup_seconds), most))
        except (OSError, RuntimeError, UnicodeError) as error:  # the last one: a host that is none
            raise ClusterError(
                f"expected a scheduler at {cluster!r}, got none ({error}): start one with "
                "dask scheduler, and see that its address can be reached from here, by tls:// where its "
                "configuration requires encryption"
            ) from error
        except TypeError as error:  # what Dask makes of tls:// without a context of its own
            raise ClusterError(
                f"expected certificates for {cluster!r} in Dask's configuration, got none "
                f"({error}): set distributed.comm.tls"
            ) from error
        try:
            yield client
        except KeyboardInterrupt:  # what is closed in the middle of its work has much to say
            quiet(logging.CRITICAL)
            raise


@contextlib.contextmanager
def _local(cluster: str, seconds: float) -> Iterator[Any]:
    """Workers on this machine, for the block.

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
    """What `make` gives, in a thread that is left behind if it takes longer.

    Raises:
        TimeoutError: it does.
    """
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def work() -> None:
        try:
            outcome.set_result(make())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():  # what `make` raised
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def _address(cluster: str, seconds: float) -> str:
    """A scheduler's address, which may be in a file that is written meanwhile.

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
            if isinstance(address, str) and _ADDRESS.fullmatch(address):
                return address
            problem: Exception = RuntimeError(f"its address is {shown(address)}")
        except (ValueError, LookupError, TypeError, RecursionError):
            problem = RuntimeError("it is no scheduler file")
        except OSError as error:
            problem = error
        if time.monotonic() > end:
            raise problem
        time.sleep(0.1)


@contextlib.contextmanager
def told_if_lost(cluster: str) -> Iterator[None]:
    """In its block a scheduler is asked for something.

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
    """What a client's cluster says, in time.

    Args:
        client: Dask's.
        cluster: its name.
        question: calls one of the client's methods; it runs in the client's event loop, where these give what
            can be awaited.
        seconds: how long to wait. None: `ANSWER_SECONDS`.

    Raises:
        ConnectionError: the scheduler is gone, or says nothing for so long.
    """
    limit = ANSWER_SECONDS if seconds is None else seconds

    async def answer() -> Any:
        if client.scheduler is None:  # Dask's client closes when it has tried for long to reach it again
            raise ClusterError("Dask's client has closed")
        return await question()

    with told_if_lost(cluster):
        try:
            return client.sync(answer, callback_timeout=limit)
        except TimeoutError:
            raise TimeoutError(f"no answer within {limit:g} s") from None


def no_worker(cluster: str, seconds: float) -> str:
    """What is told of a cluster without workers."""
    scheduler = f"--scheduler-file {cluster}" if cluster.endswith(".json") else cluster
    return (
        f"expected a worker at {cluster!r}, got none within {seconds:g} s: start some, "
        f"dask worker {scheduler} --nthreads 1"
    )


@contextlib.contextmanager
def _warnings_only() -> Iterator[Callable[[int], None]]:
    """Dask tells of each worker that comes and of each task that is given up; only warnings are for users.

    Yields what sets the level of what is told.
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
    """Ctrl-C comes when the block has ended, and to no process that is started in it.

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
