"""Tasks on a cluster: any that depend on nothing else, and how they are sent and come back.

    for number, found in map_on_cluster(solve, tasks, "tcp://scheduler:8786"):
        results[number] = found

A result depends on its task alone. So neither the number of workers, nor their order, nor their deaths change
what is found.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib.metadata
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from precomp_games.checks import check_function, check_instance, check_number, shown
from precomp_games.clusters import MOST_SECONDS, check_cluster, connected, no_worker, told_if_lost

__all__ = ["AHEAD", "UnderWay", "map_on_cluster"]

AHEAD = 2
"""Tasks that a worker is given: one that runs, and one that waits for it."""

_MOST_DEATHS = 3  # of several workers with a task, until it is blamed for them
_LOOK_SECONDS = 5.0
_AT_ONCE = 100  # results that are fetched together


def map_on_cluster(
    function: Callable[[Any], Any], tasks: Iterable[Any], cluster: str, *, startup_seconds: float = 60.0
) -> Iterator[tuple[int, Any]]:
    """Gives (number, function(task)) of every task, in the order in which they are done.

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
    who = "map_on_cluster()"
    function = check_function(function, "function", who)
    listed = list(check_instance(tasks, Iterable, "tasks", who))
    seconds = check_number(startup_seconds, "startup_seconds", who, above=0.0, most=MOST_SECONDS)
    return _map(function, listed, check_cluster(cluster, who), seconds, who)


def _map(
    function: Callable[[Any], Any], tasks: list[Any], cluster: str, seconds: float, caller: str
) -> Iterator[tuple[int, Any]]:
    with connected(cluster, seconds, caller) as client:
        from distributed import KilledWorker

        def workers() -> int:
            with told_if_lost(cluster, caller):
                if count := len(client.scheduler_info(n_workers=-1)["workers"]):
                    return count
                with contextlib.suppress(TimeoutError):
                    client.wait_for_workers(1, timeout=seconds)
                    return 1
            raise ConnectionError(f"{caller}: {no_worker(cluster, seconds)}")

        _send_by_value(function)
        function_there = _checked(function)
        left = list(range(len(tasks)))[::-1]
        under_way = UnderWay(client, cluster, caller)
        deaths: collections.Counter[int] = collections.Counter()
        count = workers()
        try:
            while left or under_way:
                while left and len(under_way) < AHEAD * count:
                    number = left.pop()
                    under_way.submit(number, function_there, tasks[number], pure=False)
                done = under_way.done(_LOOK_SECONDS)
                for number, result, error in done:
                    if error is None:
                        yield number, result
                    elif not isinstance(error, KilledWorker):
                        raise error
                    else:
                        deaths[number] += 1
                        if deaths[number] > _MOST_DEATHS:
                            raise ChildProcessError(
                                f"{caller}: expected workers to live through their tasks, got several that "
                                f"died, {deaths[number]} times, of {shown(tasks[number])}: do they have "
                                "enough memory?"
                            ) from error
                        left.append(number)
                count = workers()
        finally:
            under_way.cancel()


def _send_by_value(function: Callable[[Any], Any]) -> None:
    """Has what a function's module defines sent as it is, unless workers have it too."""
    import cloudpickle  # type: ignore[import-untyped,unused-ignore]

    module = getattr(function, "func", function).__module__
    if module not in ("__main__", "builtins") and module.partition(".")[0] != "precomp_games":
        cloudpickle.register_pickle_by_value(sys.modules[module])


def _checked(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function`, which refuses a worker with another version of the library."""
    version = importlib.metadata.version("precomp-games")

    def function_there(task: Any) -> Any:  # within a function, so that it is sent by value
        found = importlib.metadata.version("precomp-games")
        if found != version:
            from distributed import get_worker

            raise ValueError(
                f"worker {get_worker().address}: expected precomp-games {version}, got {found}: install the "
                "same version there"
            )
        return function(task)

    return function_there


class UnderWay:
    """Tasks that a client has sent, each with what it is for, and those of them that are done.

    `distributed.wait` looks at all futures each time, and belongs to the client that was made last. Here they
    are told of as they come, and results that are there are fetched together: each alone takes the way to its
    worker and back.

    Args:
        client: Dask's.
        cluster: its name.
        caller: for whom errors are told: a ConnectionError of any method where the scheduler is gone.
    """

    def __init__(self, client: Any, cluster: str, caller: str) -> None:
        self._client, self._if_lost = client, functools.partial(told_if_lost, cluster, caller)
        self._tasks: dict[str, tuple[Any, Any]] = {}  # by the future's key: it, and what it is for
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._tasks)

    def submit(self, purpose: Any, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Sends a task; see Dask's `Client.submit`."""
        with self._if_lost():
            future = self._client.submit(function, *arguments, **options)
            self._tasks[future.key] = future, purpose
            future.add_done_callback(lambda done: self._done.put(done.key))

    def done(self, seconds: float) -> list[tuple[Any, Any, Exception | None]]:
        """(what it was for, its result, its error) of each task that is done; none after so many seconds."""
        try:
            keys = {self._done.get(timeout=seconds)}
        except queue.Empty:
            return []
        with contextlib.suppress(queue.Empty):
            while len(keys) < _AT_ONCE:
                keys.add(self._done.get_nowait())
        futures = {key: self._tasks[key][0] for key in keys if key in self._tasks}  # the others are canceled
        with self._if_lost():
            found = self._fetched(futures)
        return [(self._tasks.pop(key)[1], *found[key]) for key in futures]

    def _fetched(self, futures: dict[str, Any]) -> dict[str, tuple[Any, Exception | None]]:
        ready = [future for future in futures.values() if future.status == "finished"]
        found: dict[str, tuple[Any, Exception | None]] = {}
        with contextlib.suppress(Exception):  # each then tells its own
            for future, result in zip(ready, self._client.gather(ready), strict=True):
                found[future.key] = result, None
        for key, future in futures.items():
            if key not in found:
                try:
                    found[key] = future.result(), None
                except Exception as error:
                    if future.status != "error":  # of the cluster, and not of the task
                        raise
                    found[key] = None, error
        return found

    def stranded(self) -> list[Any]:
        """Takes back what no worker has, since all were dead and came again as others; tells its purposes."""
        with self._if_lost():
            held = set().union(*self._client.processing().values())
            keys = [
                key
                for key, (future, _) in self._tasks.items()
                if future.status == "pending" and key not in held
            ]
            self._client.cancel([self._tasks[key][0] for key in keys], force=True)
        return [self._tasks.pop(key)[1] for key in keys]

    def cancel(self) -> None:
        """Takes all back; a scheduler that is gone has nothing left of them."""
        with contextlib.suppress(ConnectionError), self._if_lost():
            self._client.cancel([future for future, _ in self._tasks.values()], force=True)
        self._tasks.clear()
