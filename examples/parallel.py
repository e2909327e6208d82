"""Many tasks of an example at once: on processes of this machine, or on a cluster.

    for number, found in parallel.each_done(solve, tasks, workers=2):
        results[number] = found

A task is whatever `solve` takes, and its result depends on nothing else: then neither the number of workers,
nor their order, nor their deaths change it. What tasks share, such as what games are worth, goes with each.

To a cluster, functions and classes of an example are sent as they are, by value: its workers need this
library, and not the examples.
"""

from __future__ import annotations

import collections
import concurrent.futures
import importlib.metadata
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from precomp_games import cluster_client

CLUSTER = (
    'a Dask cluster: its scheduler, such as "tcp://host:8786", a scheduler file *.json, or "local:4" for '
    "four workers on this machine. See docs/cluster.md."
)
"""What --cluster may be, for its help."""

_MOST_DEATHS = 3  # of workers, until the task that they had is taken for the reason
_AHEAD = 2  # tasks for each worker: one that runs, and one that waits for it
_LOOK_SECONDS = 5.0
_WAIT_SECONDS = 60.0


def check_workers(workers: int | None, cluster: str | None) -> None:
    """Refuses a --cluster that is none, and --workers beside it."""
    if cluster is not None:
        cluster_client(cluster)  # which begins nothing
        if workers is not None:
            raise ValueError('--workers: expected none with --cluster, which has its own ("local:4" has 4)')


def each_done(
    solve: Callable[[Any], Any],
    tasks: Sequence[Any],
    *,
    workers: int | None = None,
    cluster: str | None = None,
) -> Iterator[tuple[int, Any]]:
    """(number, solve(task)) of every task, in the order in which they are done.

    Args:
      solve: a function of a module's top level, or a partial one of it.
      tasks: what it takes, numbered as they stand here.
      workers: processes. None: one a core.
      cluster: in place of these, where tasks are sent to.

    Raises:
      ChildProcessError: workers die of a task again and again.
      ConnectionError: there is no such cluster, or it has no workers.
    """
    check_workers(workers, cluster)
    if cluster is not None:
        yield from _on_cluster(solve, tasks, cluster)
        return
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    if workers > 1:
        yield from _on_processes(solve, tasks, workers)
    else:
        yield from enumerate(map(solve, tasks))


def _on_processes(
    solve: Callable[[Any], Any], tasks: Sequence[Any], workers: int
) -> Iterator[tuple[int, Any]]:
    # Started anew, and not forked: solvers have threads of their own.
    context = multiprocessing.get_context("spawn")
    left, deaths = dict(enumerate(tasks)), 0
    while left:
        with concurrent.futures.ProcessPoolExecutor(
            workers, mp_context=context, initializer=_end_with_parent
        ) as pool:
            try:
                waiting = {pool.submit(solve, task): number for number, task in left.items()}
                for done in concurrent.futures.as_completed(waiting):
                    number = waiting[done]
                    found = done.result()
                    del left[number]
                    yield number, found
            except BrokenProcessPool as error:  # one died, and the others were ended for it
                deaths += 1
                if deaths > _MOST_DEATHS:
                    raise _deadly(deaths, tasks[min(left)]) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _end_with_parent() -> None:
    """Ends a worker when its parent has ended; one whose parent is killed would wait for tasks forever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _on_cluster(solve: Callable[[Any], Any], tasks: Sequence[Any], cluster: str) -> Iterator[tuple[int, Any]]:
    with cluster_client(cluster) as client:
        from distributed import KilledWorker

        _send_by_value(solve)
        solve_there = _checked(solve)
        left = list(range(len(tasks)))[::-1]
        running: dict[Any, int] = {}
        deaths: collections.Counter[int] = collections.Counter()
        try:
            while left or running:
                while left and len(running) < _AHEAD * _workers(client, cluster):
                    number = left.pop()
                    running[client.submit(solve_there, tasks[number], pure=False)] = number
                for future in _finished(client, cluster, list(running)):
                    number = running.pop(future)
                    try:
                        yield number, future.result()
                    except KilledWorker as error:
                        deaths[number] += 1
                        if deaths[number] > _MOST_DEATHS:
                            raise _deadly(deaths[number], tasks[number]) from error
                        left.append(number)
        finally:
            client.cancel(list(running), force=True)


def _send_by_value(solve: Callable[[Any], Any]) -> None:
    """Has what a function's module defines sent as it is, unless workers have it too."""
    import cloudpickle  # type: ignore[import-untyped,unused-ignore]

    module = getattr(solve, "func", solve).__module__
    if module not in ("__main__", "builtins") and module.partition(".")[0] != "precomp_games":
        cloudpickle.register_pickle_by_value(sys.modules[module])


def _checked(solve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`solve`, which refuses a worker with another version of the library."""
    version = importlib.metadata.version("precomp-games")

    def solve_there(task: Any) -> Any:  # within a function, so that it is sent by value
        found = importlib.metadata.version("precomp-games")
        if found != version:
            from distributed import get_worker

            raise ValueError(
                f"worker {get_worker().address}: expected precomp-games {version}, got {found}: install the "
                "same version there"
            )
        return solve(task)

    return solve_there


def _workers(client: Any, cluster: str) -> int:
    """How many workers there are, at least one."""
    count = len(client.scheduler_info(n_workers=-1)["workers"])
    if not count:
        try:
            client.wait_for_workers(1, timeout=_WAIT_SECONDS)
        except TimeoutError:
            raise ConnectionError(
                f"--cluster: expected workers at {cluster!r}, got none within {_WAIT_SECONDS:g} s: start "
                f"some, dask worker {cluster} --nthreads 1"
            ) from None
    return max(count, 1)


def _finished(client: Any, cluster: str, running: list[Any]) -> Iterable[Any]:
    """Some that are done, or none after a while in which workers are looked for."""
    from distributed import wait

    try:
        return set(wait(running, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED").done)
    except TimeoutError:
        _workers(client, cluster)
        return ()


def _deadly(deaths: int, task: Any) -> ChildProcessError:
    return ChildProcessError(
        f"expected workers to live through their tasks, got {deaths} deaths, the last with "
        f"{str(task)[:200]}: do they have enough memory?"
    )
