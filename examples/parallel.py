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
import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any

from precomp_games import map_on_cluster
from precomp_games.commands._flags import check_workers as check_workers

CLUSTER = (
    'a Dask cluster: its scheduler, such as "tcp://host:8786", a scheduler file *.json, or "local:4" for '
    "four workers on this machine. See docs/cluster.md."
)
"""Values of --cluster, for its help."""
_MOST_DEATHS = 3  # with a task, until it is blamed for them


def each_done(
    solve: Callable[[Any], Any],
    tasks: Sequence[Any],
    *,
    workers: int | None = None,
    cluster: str | None = None,
) -> Generator[tuple[int, Any], None, None]:
    """Yield (number, solve(task)) of every task as they are done; if closed, it ends the others.

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
        yield from map_on_cluster(solve, tasks, cluster)
        return
    workers = min(workers or os.cpu_count() or 1, len(tasks))
    if workers > 1:
        yield from _on_processes(solve, tasks, workers)
    else:
        yield from enumerate(map(solve, tasks))


def _on_processes(
    solve: Callable[[Any], Any], tasks: Sequence[Any], workers: int
) -> Iterator[tuple[int, Any]]:
    left = dict(enumerate(tasks))
    deaths: collections.Counter[int] = collections.Counter()
    suspects: list[int] = []  # of a death: each runs alone, which shows whether it was the one
    while left:
        now = suspects[:1] or list(left)
        try:
            with contextlib.closing(_in_a_pool(solve, {k: left[k] for k in now}, workers)) as found:
                for number, result in found:
                    del left[number]
                    yield number, result
            del suspects[:1]
        except BrokenProcessPool as error:  # one died, and the others were ended for it
            if not suspects:
                suspects = list(left)[:workers]
                continue
            deaths[now[0]] += 1
            if deaths[now[0]] > _MOST_DEATHS:
                task = str(tasks[now[0]])
                task = task if len(task) <= 200 else f"{task[:100]} ... {task[-100:]}"
                raise ChildProcessError(
                    f"expected workers to live through their tasks, got {deaths[now[0]]} deaths with "
                    f"{task} alone: is there enough memory?"
                ) from error


def _in_a_pool(
    solve: Callable[[Any], Any], tasks: dict[int, Any], workers: int
) -> Generator[tuple[int, Any], None, None]:
    # Started anew, and not forked: solvers have threads of their own.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    pool = concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=_end_with_parent, initargs=(reader,)
    )
    with reader, pool, writer:  # which is closed first: after an interrupt or an error nobody wants the rest
        waiting = {pool.submit(solve, task): number for number, task in tasks.items()}
        for done in concurrent.futures.as_completed(waiting):
            yield waiting[done], done.result()


def _end_with_parent(reader: Connection) -> None:
    """End a worker when its parent closes a pipe, as the system does for one that is killed."""

    def watch() -> None:
        reader.poll(None)  # until there is something to read, which is the end
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
