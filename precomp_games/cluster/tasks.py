"""Tasks on a cluster: any that depend on nothing else, and how they are sent and come back.

    for number, found in map_on_cluster(solve, tasks, "tcp://scheduler:8786"):
        results[number] = found

A result depends on its task alone. So neither the number of workers, nor their order, nor their deaths change
what is found.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.metadata
import queue
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from precomp_games._support.arguments import Seconds, public
from precomp_games._support.checks import check_instance, shown
from precomp_games.cluster.client import (
    ANSWER_SECONDS,
    Cluster,
    ClusterError,
    asked,
    connected,
    no_worker,
    told_if_lost,
)

__all__ = ["AHEAD", "UnderWay", "map_on_cluster"]

AHEAD = 2
"""Tasks that a worker is given: one that runs, and one that waits for it."""

_MOST_DEATHS = 3  # of several workers with a task, until it is blamed for them
_LOOK_SECONDS = 5.0
_AT_ONCE = 100  # results that are fetched together
_FETCH_LOOK_SECONDS = 0.5  # until it is seen whether what is fetched is still there
_NOT_THERE = ("pending", "lost")  # Dask's words for what is to be made, or to be made again


@public
def map_on_cluster(
    function: Callable[[Any], Any], tasks: Iterable[Any], cluster: Cluster, *, startup_seconds: Seconds = 60.0
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
    listed = list(check_instance(tasks, Iterable, "tasks"))
    return _map(function, listed, cluster, startup_seconds)


def _map(
    function: Callable[[Any], Any], tasks: list[Any], cluster: str, seconds: float
) -> Iterator[tuple[int, Any]]:
    with connected(cluster, seconds) as client:

        def workers() -> int:
            end = time.monotonic() + seconds
            while True:
                found = len(asked(client, cluster, lambda: client.scheduler.identity())["workers"])
                if found:
                    return found
                if time.monotonic() > end:
                    raise ClusterError(no_worker(cluster, seconds))
                time.sleep(0.1)

        _send_by_value(function)
        function_there = _checked(function)
        left = list(range(len(tasks)))[::-1]
        under_way = UnderWay(client, cluster, told=lambda number: shown(tasks[number]))
        count = workers()
        try:
            while left or under_way:
                while left and len(under_way) < AHEAD * count:
                    number = left.pop()
                    under_way.submit(number, function_there, tasks[number])
                yield from under_way.done(_LOOK_SECONDS)
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


@dataclasses.dataclass
class _Sent:
    """A task under way: what it is for, how it is sent, how often that was, and how often it was given up."""

    purpose: Any
    call: tuple[Any, ...]
    key: str | None
    options: dict[str, Any]
    future: Any = None
    times: int = 0
    deaths: int = 0


class UnderWay:
    """Tasks that a client has sent, each with what it is for, and those of them that are done.

    `distributed.wait` looks at all futures each time, and belongs to the client that was made last. Here they
    are told of as they come, and results that are there are fetched together: each alone takes the way to its
    worker and back. A task that workers die of is sent again, and nothing here waits without a limit: what is
    lost between its end and its fetching is made again, while the caller looks at the cluster.

    Args:
        client: Dask's.
        cluster: its name.
        told: what a task is for, in words.
        most_deaths: how often a task is sent again that several workers died of.
    """

    def __init__(
        self,
        client: Any,
        cluster: str,
        *,
        told: Callable[[Any], str] = str,
        most_deaths: int = _MOST_DEATHS,
    ) -> None:
        self._client, self._cluster = client, cluster
        self._told, self._most_deaths = told, most_deaths
        self._tasks: dict[str, _Sent] = {}  # by the future's key
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lost: set[str] = set()  # those that were done once, of which Dask does not tell again

    def __len__(self) -> int:
        return len(self._tasks)

    def submit(
        self,
        purpose: Any,
        function: Callable[..., Any],
        *arguments: Any,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Sends a task, named by `key` on the cluster; see Dask's `Client.submit`."""
        self._send(_Sent(purpose, (function, *arguments), key, options))

    def _send(self, task: _Sent) -> None:
        # The scheduler knows one that was sent before by its name.
        name = f"{task.key}-{task.times}" if task.key and task.times else task.key
        with told_if_lost(self._cluster):
            task.future = self._client.submit(*task.call, key=name, pure=False, **task.options)
            self._tasks[task.future.key] = task
            task.future.add_done_callback(lambda done: self._done.put(done.key))
        task.times += 1

    def _send_again(self, keys: list[str]) -> None:
        tasks = [self._tasks.pop(key) for key in keys]
        self._lost.difference_update(keys)
        self._cancel(tasks)
        for task in tasks:
            self._send(task)

    def _cancel(self, tasks: Iterable[_Sent]) -> None:
        futures = [task.future for task in tasks]
        asked(self._client, self._cluster, lambda: self._client.cancel(futures, force=True))

    def done(self, seconds: float) -> list[tuple[Any, Any]]:
        """(what it was for, its result) of each task that is done; none after so many seconds.

        Raises:
            ChildProcessError: workers die of a task again and again.
            Exception: what a task raised, once nothing else is done.
        """
        keys = {key for key in self._lost if self._tasks[key].future.status not in _NOT_THERE}
        self._lost -= keys
        with contextlib.suppress(queue.Empty):
            keys.add(self._done.get(timeout=0.0 if keys else seconds))
            while len(keys) < _AT_ONCE:
                keys.add(self._done.get_nowait())
        keys &= self._tasks.keys()  # the others are canceled
        found: dict[str, Any] | None = {}
        with contextlib.suppress(Exception):  # each then tells its own
            found = self._fetched([key for key in keys if self._tasks[key].future.status == "finished"])
        given: list[tuple[Any, Any]] = []
        for key in keys:
            if found and key in found:
                given.append((self._tasks.pop(key).purpose, found[key]))
            elif self._tasks[key].future.status in _NOT_THERE:
                self._lost.add(key)
            elif given:
                self._done.put(key)
            else:
                given += self._alone(key, late=found is None)
        return given

    def _alone(self, key: str, *, late: bool) -> list[tuple[Any, Any]]:
        """What `done` gives of one task, which is sent again if its result is late, or workers died of it."""
        from distributed import KilledWorker

        task, error = self._tasks[key], None
        if task.future.status == "error":
            error = task.future.exception(ANSWER_SECONDS)
            if not isinstance(error, KilledWorker):
                raise error
        elif not late and (found := self._fetched([key])):
            return [(self._tasks.pop(key).purpose, found[key])]
        elif task.future.status in _NOT_THERE:
            self._lost.add(key)
            return []
        task.deaths += 1
        if task.deaths > self._most_deaths:
            last = f", the last at {error.last_worker.address}" if error else ""
            raise ChildProcessError(
                "expected workers to live through their tasks, got several that died or "
                f"said nothing for {ANSWER_SECONDS:g} s, {task.deaths} times{last}, of "
                f"{self._told(task.purpose)}: do they have enough memory? See their own output"
            ) from error
        self._send_again([key])
        return []

    def _fetched(self, keys: list[str]) -> dict[str, Any] | None:
        """Results by key; {} where one is no longer there, None where they do not come in time.

        Of what a dead worker had, Dask waits until it is there again, for ever if no worker can make it.
        """
        futures = [self._tasks[key].future for key in keys]

        async def fetch() -> dict[str, Any] | None:
            fetching = asyncio.ensure_future(self._client.gather(futures))
            fetching.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            end = time.monotonic() + ANSWER_SECONDS
            while time.monotonic() < end:
                if (await asyncio.wait({fetching}, timeout=_FETCH_LOOK_SECONDS))[0]:
                    return dict(zip(keys, fetching.result(), strict=True))
                if any(future.status in _NOT_THERE for future in futures):
                    return {}  # and it ends when they are made again, or canceled
            fetching.cancel()
            return None

        if not keys:
            return {}
        found: dict[str, Any] | None = asked(self._client, self._cluster, fetch, 2.0 * ANSWER_SECONDS)
        return found

    def send_stranded(self) -> None:
        """Sends again what no worker has, since all were dead and came again as others."""
        ask = (self._client, self._cluster)
        held = set().union(*asked(*ask, lambda: self._client.processing()).values())
        self._send_again(
            [key for key, x in self._tasks.items() if x.future.status in _NOT_THERE and key not in held]
        )

    def cancel(self) -> None:
        """Takes all back; a scheduler that is gone has nothing left of them."""
        with contextlib.suppress(ConnectionError):
            self._cancel(self._tasks.values())
        self._tasks.clear()
        self._lost.clear()
