"""Tasks on a cluster: any that depend on nothing else, and how they are sent and come back.

    for number, result in map_on_cluster(solve, tasks, "tcp://scheduler:8786"):
        results[number] = result

A result depends on its task alone. So neither the number of workers, nor their order, nor their deaths change
what comes back. `UnderWay` sends tasks, a few for each worker, and sees to it that every result comes:

* **A worker dies with a task.** Dask gives the task to another worker. After some deaths Dask blames the task
  and ends it as a `KilledWorker`. The task is then sent again, as another one, a few times.
* **A worker dies between a task's end and the fetching of its result.** Dask has the result made again, and
  whoever asks for it waits until it is there, for ever if no worker can make it. So nothing is fetched that
  is not there, and the caller looks at the cluster meanwhile.
* **A worker has a result and says nothing.** After a minute the task is sent again, as after a death.
* **Nobody has a task.** All workers that could make it are dead and came again as others, or a scheduler that
  was busy gave up the message by which the task came. Nobody is told of that. So where nothing comes, the
  scheduler is asked what workers have, and whatever is missing there for some seconds is sent again.

A task that is made twice changes nothing, since its result is the same.

Dask's own means do less: `Client.submit(retries=...)` repeats tasks that raise errors, not those that workers
die of; `as_completed` fetches each result alone, which takes the way to its worker and back, and waits
without a limit for what is lost; `wait` looks at all futures each time, and belongs to the client that was
made last.
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

from precomp_games._support.validation import Seconds, check_instance, public, shown
from precomp_games.cluster.client import (
    ANSWER_SECONDS,
    Cluster,
    ClusterError,
    asked,
    cluster_client,
    no_worker,
    told_if_lost,
)

AHEAD = 2
"""Tasks that a worker is given: one that runs, and one that waits for it."""

_MOST_DEATHS = 3  # of several workers with a task, until it is blamed for them
_LOOK_SECONDS = 2.0  # without a result, until it is seen whether workers and tasks are still there
_COUNT_SECONDS = 30.0  # until workers are counted again, while results come
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
    with cluster_client(cluster, startup_seconds=seconds) as client:
        _send_by_value(function)
        checking = _checking(function)
        under_way = UnderWay(client, cluster, words=lambda number: shown(tasks[number]))
        left = iter(range(len(tasks)))

        def send_next(workers: int) -> bool:
            del workers
            for number in left:
                under_way.submit(number, checking, tasks[number])
                return True
            return False

        def count_workers() -> int:
            end = time.monotonic() + seconds
            while not (count := len(asked(client, cluster, lambda: client.scheduler.identity())["workers"])):
                if time.monotonic() > end:
                    raise ClusterError(no_worker(cluster, seconds))
                time.sleep(0.1)
            return count

        yield from under_way.results(send_next, count_workers)


def _send_by_value(function: Callable[[Any], Any]) -> None:
    """Has what a function's module defines sent as it is, unless workers have it too."""
    import cloudpickle  # type: ignore[import-untyped,unused-ignore]

    module = getattr(function, "func", function).__module__
    if module not in ("__main__", "builtins") and module.partition(".")[0] != "precomp_games":
        cloudpickle.register_pickle_by_value(sys.modules[module])


def _checking(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function`, which refuses a worker with another version of the library."""
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
        purpose: what the task is for, which comes back with its result.
        call: the function and its arguments.
        key: the task's name on the cluster; None for one that Dask makes.
        options: Dask's.
        future: Dask's, of the last time that the task was sent.
        times: how often it was sent.
        deaths: how often Dask gave it up, or its result did not come.
    """

    purpose: Any
    call: tuple[Any, ...]
    key: str | None
    options: dict[str, Any]
    future: Any = None
    times: int = 0
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
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lost: set[str] = set()  # those that were done once, of which Dask does not tell again
        self._missed: set[str] = set()  # those that no worker had when it was last asked

    def __len__(self) -> int:
        return len(self._tasks)

    def results(
        self, send_next: Callable[[int], bool], count_workers: Callable[[], int]
    ) -> Iterator[tuple[Any, Any]]:
        """Sends tasks ahead of the workers, and gives (what it was for, its result) of each as they come.

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

    def _send_again(self, keys: Iterable[str]) -> None:
        tasks = [self._tasks.pop(key) for key in keys]
        self._lost &= self._tasks.keys()
        self._cancel(tasks)
        for task in tasks:
            self._send(task)

    def _cancel(self, tasks: Iterable[_Sent]) -> None:
        futures = [task.future for task in tasks]
        asked(self._client, self._cluster, lambda: self._client.cancel(futures, force=True))

    def _is_there(self, key: str) -> bool:
        """Whether Dask has a task's result or error."""
        return self._tasks[key].future.status not in _NOT_THERE

    def done(self, seconds: float) -> list[tuple[Any, Any]]:
        """(what it was for, its result) of each task that is done; none after so many seconds.

        Raises:
            ChildProcessError: workers die of a task again and again.
            Exception: what a task raised, once nothing else is done.
        """
        keys = set(filter(self._is_there, self._lost))
        self._lost -= keys
        with contextlib.suppress(queue.Empty):
            keys.add(self._done.get(timeout=0.0 if keys else seconds))
            while len(keys) < _AT_ONCE:
                keys.add(self._done.get_nowait())
        keys &= self._tasks.keys()  # the others are canceled
        results: dict[str, Any] | None = {}
        with contextlib.suppress(Exception):  # each then tells its own
            results = self._fetched([key for key in keys if self._tasks[key].future.status == "finished"])
        given: list[tuple[Any, Any]] = []
        for key in keys:
            if results and key in results:
                given.append((self._tasks.pop(key).purpose, results[key]))
            elif not self._is_there(key):
                self._lost.add(key)
            elif given:
                self._done.put(key)  # for the next call, since this one might raise
            else:
                given += self._alone(key, late=results is None)
        return given

    def _alone(self, key: str, *, late: bool) -> list[tuple[Any, Any]]:
        """What `done` gives of one task, which is sent again if its result is late, or workers died of it."""
        from distributed import KilledWorker

        task, error = self._tasks[key], None
        if task.future.status == "error":
            error = task.future.exception(ANSWER_SECONDS)
            if not isinstance(error, KilledWorker):
                raise error
        elif not late and (results := self._fetched([key])):
            return [(self._tasks.pop(key).purpose, results[key])]
        elif not self._is_there(key):
            self._lost.add(key)
            return []
        task.deaths += 1
        if task.deaths > _MOST_DEATHS:
            last = f", the last at {error.last_worker.address}" if error else ""
            raise ChildProcessError(
                "expected workers to live through their tasks, got several that died or "
                f"said nothing for {ANSWER_SECONDS:g} s, {task.deaths} times{last}, of "
                f"{self._words(task.purpose)}: do they have enough memory? See their own output"
            ) from error
        self._send_again([key])
        return []

    def _fetched(self, keys: list[str]) -> dict[str, Any] | None:
        """Results by key; {} where one is no longer there, None where they do not come in time."""
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
        results: dict[str, Any] | None = asked(self._client, self._cluster, fetch, 2.0 * ANSWER_SECONDS)
        return results

    def send_stranded(self) -> None:
        """Sends again what no worker has, now and at the last call: a task may be on its way for a while."""
        ask = (self._client, self._cluster)
        held = set().union(*asked(*ask, lambda: self._client.processing()).values())
        missed = {key for key in self._tasks if key not in held and not self._is_there(key)}
        self._send_again(missed & self._missed)
        self._missed = missed & self._tasks.keys()

    def cancel(self) -> None:
        """Takes all back; a scheduler that is gone has nothing left of them."""
        with contextlib.suppress(ConnectionError):
            self._cancel(self._tasks.values())
        self._tasks.clear()
        self._lost.clear()
