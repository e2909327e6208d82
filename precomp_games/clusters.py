"""Clusters of machines by Dask: what names one, and how it is reached.

    with cluster_client("tcp://scheduler:8786") as client:
        future = client.submit(function, task)

Encryption is set in Dask's own configuration (`distributed.comm.tls`), which the client reads as schedulers
and workers do.
"""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from precomp_games.checks import check_instance, check_number, shown

__all__ = ["check_cluster", "cluster_client", "connected"]

_MOST_WORKERS = 1024
_MOST_SECONDS = 1e6
# A worker that died is started again; on a busy machine that may take more than the 15 s after which Dask
# gives it up.
_PATIENT = {"distributed.deploy.lost-worker-timeout": "1 hour"}
# Workers are the client's to end, not the terminal's; what they say of tasks that are given up is no news.
_SETUP = """import logging, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
logging.getLogger("distributed.worker.state_machine").setLevel(logging.ERROR)
"""
_ADDRESS = re.compile(r"(tcp|tls)://(\[[\w:.%]+\]|[\w.-]+)(:\d{1,5})?")


def check_cluster(cluster: Any, caller: str) -> str:
    """The name of a cluster; `cluster_client` says what that may be.

    Raises:
        ValueError: it is none.
    """
    kind, _, count = check_instance(cluster, str, "cluster", caller).partition(":")
    if kind == "local":
        known = count.isascii() and count.isdecimal() and len(count) < 5 and 1 <= int(count) <= _MOST_WORKERS
    else:
        known = _ADDRESS.fullmatch(cluster) is not None or cluster.endswith(".json")
    if known:
        return str(cluster)
    raise ValueError(
        f'{caller}: expected cluster to be a scheduler\'s address such as "tcp://host:8786", a scheduler '
        f'file *.json, or "local:4" for so many workers here, got {shown(cluster)}'
    )


def cluster_client(cluster: str, *, startup_seconds: float = 60.0) -> contextlib.AbstractContextManager[Any]:
    """A client of a cluster, in a `with`; at its end the client is closed, and what was started for it.

    Args:
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine, with one thread each.
        startup_seconds: how long to wait for the scheduler.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        ConnectionError: where the `with` begins: dask.distributed is not installed, or there is no scheduler.
    """
    who = "cluster_client()"
    seconds = check_number(startup_seconds, "startup_seconds", who, above=0.0, most=_MOST_SECONDS)
    return connected(check_cluster(cluster, who), seconds, who)


@contextlib.contextmanager
def connected(cluster: str, seconds: float, caller: str) -> Iterator[Any]:
    """`cluster_client`, of what was checked, for another public function.

    Raises:
        ConnectionError: see there.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ConnectionError(
            f'{caller}: expected dask.distributed, got none: pip install "precomp-games[cluster]"'
        ) from error
    with contextlib.ExitStack() as closing:
        quiet = closing.enter_context(_warnings_only())
        try:
            if cluster.startswith("local:"):
                closing.enter_context(dask.config.set(_PATIENT))
                count = int(cluster.partition(":")[2])
                with _interrupted_after(), warnings.catch_warnings():
                    # Of a port that a page nobody asked for would have had.
                    warnings.filterwarnings("ignore", "Port 8787 is already in use", UserWarning)
                    local = LocalCluster(
                        n_workers=count, threads_per_worker=1, dashboard_address=None, preload=[_SETUP]
                    )
                    where: dict[str, Any] = {"address": closing.enter_context(local)}
            elif cluster.endswith(".json"):
                where = {"scheduler_file": cluster}
            else:
                where = {"address": cluster}
            client = closing.enter_context(Client(**where, timeout=seconds))
        except (OSError, RuntimeError, TimeoutError) as error:
            raise ConnectionError(
                f"{caller}: expected a scheduler at {cluster!r}, got none ({error}): start one with "
                "dask scheduler, and see that its address can be reached from here, by tls:// where its "
                "configuration requires encryption"
            ) from error
        except TypeError as error:  # what Dask makes of tls:// without a context of its own
            raise ConnectionError(
                f"{caller}: expected certificates for {cluster!r} in Dask's configuration, got none "
                f"({error}): set distributed.comm.tls"
            ) from error
        try:
            yield client
        except KeyboardInterrupt:  # what is closed in the middle of its work has much to say
            quiet(logging.CRITICAL)
            raise


@contextlib.contextmanager
def _warnings_only() -> Iterator[Callable[[int], None]]:
    """Dask tells of each worker that comes and of each task that is given up; only warnings are for users.

    Yields what sets the level of what is told.
    """
    before = {name: logging.getLogger(name).level for name in ("distributed", "tornado.application")}

    def at_least(level: int) -> None:
        for name, own in before.items():
            logging.getLogger(name).setLevel(max(own, level))

    at_least(logging.WARNING)
    try:
        yield at_least
    finally:
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
