"""What searches on a cluster cost, measured on one machine: what `cluster_simulation` is fed with.

Costs are processor seconds, of the process that has them: they do not depend on who else keeps the machine
busy, and on a cluster client, scheduler, workers and engines have processors of their own. Everything is
measured with the real parts: Stockfish, `EvaluationStore`, `HistoryTree`, and a scheduler and workers in
processes of their own, to which `DaskEngine` connects.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from precomp_games._support.files import atomic_write
from precomp_games.algorithms import best_first_precomputation
from precomp_games.chess import (
    DaskEngine,
    EnginePool,
    EvaluationStore,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    position_key,
    preparation_policies,
    preparation_tree,
)
from precomp_games.chess.engines import cluster
from precomp_games.chess.engines.searches import SearchResult
from precomp_games.cluster import tasks as cluster_tasks

__all__ = ["RECORDED", "Costs", "load", "measure", "save"]

RECORDED = pathlib.Path(__file__).with_suffix(".json")
"""Where the measurements are that the repository has."""

_NODES = {1_000: 400, 5_000: 400, 100_000: 60}  # of a search, and how many are timed
_QUANTILES = 101
_PENALTY, _ANALYST, _OPPONENT = 1e-5, 800, 400  # of the tree, and the nodes of its searches
_FIRST_PENALTY, _GAP = 1e-4, 0.02  # of best-first order
_BATCHES = (16, 128, 1024)  # best-first order
_TASKS, _IN_A_BATCH = 400, 8
_AT_ONCE = 50  # batches that are fetched together


@dataclasses.dataclass(frozen=True)
class Costs:
    """What was measured; seconds are processor seconds of whoever works.

    Attributes:
      machine: Where, in words.
      search_seconds: By nodes, quantiles of an engine's seconds for a search, from the least to the most.
      worker_search_seconds: By nodes, of a worker, for a search, besides its engine's.
      levels: How many searches each level of a real tree asked for, evaluations and replies.
      expansion_seconds: Of the client, for a search of that tree, to read it and expand by it.
      store_seconds: Of the client, to write a search to the store.
      client_submit_seconds, client_look_seconds, client_fetch_seconds: On the clock, for which the client
        sends a batch, fetches what has come, and does so for each batch of it.
      client_result_seconds: Of the client, for a result in a batch.
      client_worker_seconds: Of the client and the scheduler, to ask one worker whether its engine is ready.
      scheduler_task_seconds, scheduler_result_seconds: Of the scheduler, for a batch and for a result in it.
      worker_task_seconds: Of a worker, for a batch.
      first: Of best-first order: [nodes worked on at once, searches, steps, seconds of the client].
    """

    machine: str
    search_seconds: dict[int, list[float]]
    worker_search_seconds: dict[int, float]
    levels: list[int]
    expansion_seconds: float
    store_seconds: float
    client_submit_seconds: float
    client_look_seconds: float
    client_fetch_seconds: float
    client_result_seconds: float
    client_worker_seconds: float
    scheduler_task_seconds: float
    scheduler_result_seconds: float
    worker_task_seconds: float
    first: list[list[float]]


def save(costs: Costs, path: pathlib.Path) -> None:
    """Writes measurements."""
    with atomic_write(path, "w") as file:
        json.dump(dataclasses.asdict(costs), file, indent=1)
        file.write("\n")


def load(path: pathlib.Path = RECORDED) -> Costs:
    """Reads what `save` wrote."""
    read = json.loads(path.read_text())
    for name in ("search_seconds", "worker_search_seconds"):
        read[name] = {int(nodes): found for nodes, found in read[name].items()}
    return Costs(**read)


def measure(engine: str, folder: pathlib.Path, say: Callable[[str], None]) -> Costs:
    """Measures anew; takes some minutes, the most for the tree's searches, which stay in `folder`."""
    tree = _tree(engine, folder, say)
    epds = tree["epds"]
    with EvaluationStore(folder / "searches.sqlite") as store:
        (name,) = store.engines()
        results = list(store.get_many(name, SearchLimit(nodes=_ANALYST), 2, epds).items())
    say("timing searches")
    seconds, besides = _searches(engine, epds)
    say("timing a store")
    stored = _store(results, folder / "timed.sqlite")
    say("timing a cluster")
    costs = _cluster(engine, epds)
    say("timing best-first order")
    first = [_first(engine, folder, batch) for batch in _BATCHES]
    return Costs(
        machine=_machine(engine),
        search_seconds=seconds,
        worker_search_seconds=besides,
        levels=tree["levels"],
        expansion_seconds=tree["seconds"] / sum(tree["levels"]),
        store_seconds=stored,
        first=first,
        **costs,
    )


def _machine(engine: str) -> str:
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    with EnginePool(engine, workers=1) as pool:
        name = pool.engine_id
    python = ".".join(map(str, sys.version_info[:2]))
    return (
        f"a core of a shared server ({model[1] if model else 'unknown'}), {name} with one thread and 16 MiB "
        f"of hash table, Python {python}, distributed {importlib.metadata.version('distributed')}"
    )


def _processor_seconds(pid: int) -> float:
    """Of a process, all its threads."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) * 1e-9


def _children() -> list[int]:
    """The processes that this one has started."""
    tasks = pathlib.Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


class _Counting(StoredEngine):
    """Counts the searches of each call that would have been made without a store."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked: dict[tuple[str, str], None] = {}
        self.levels: list[int] = []

    def search(
        self, epds: Any, limit: SearchLimit, multipv: int, samples: int = 0, iterations: bool = False
    ) -> list[SearchResult]:
        epds, before = list(epds), len(self.asked)
        self.asked |= dict.fromkeys((str(limit), epd) for epd in epds)
        if len(self.asked) > before:
            self.levels.append(len(self.asked) - before)
        return super().search(epds, limit, multipv, samples, iterations)


def _settings(penalty: float) -> PreparationSettings:
    return PreparationSettings(
        penalty=penalty,
        analyst_limit=SearchLimit(nodes=_ANALYST),
        opponent_limit=SearchLimit(nodes=_OPPONENT),
    )


@contextlib.contextmanager
def _stored(engine: str, folder: pathlib.Path) -> Iterator[_Counting]:
    with EnginePool(engine, workers=1) as pool, EvaluationStore(folder / "searches.sqlite") as store:
        yield _Counting(store, pool)


def _tree(engine: str, folder: pathlib.Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Sizes of a tree's levels, and the seconds to expand it once all of its searches are stored."""
    settings = _settings(_PENALTY)
    for turn in ("with its searches", "again, from the store"):
        say(f"expanding a tree, {turn}")
        with _stored(engine, folder) as searches:
            start = time.process_time()
            preparation_tree(settings, searches)
            seconds = time.process_time() - start
            epds = [epd for limit, epd in searches.asked if limit == str(settings.analyst_limit)]
    return {"levels": searches.levels, "seconds": seconds, "epds": epds}


def _searches(engine: str, epds: Sequence[str]) -> tuple[dict[int, list[float]], dict[int, float]]:
    """Quantiles of an engine's seconds by nodes, and the means of those of whoever asks it."""
    quantiles, own = {}, {}
    others = _children()
    with EnginePool(engine, workers=1) as pool:
        (process,) = set(_children()) - set(others)
        for nodes, most in _NODES.items():
            found = []
            start = time.process_time()
            asked = epds[:: max(1, len(epds) // most)][:most]
            for epd in asked:
                before = _processor_seconds(process)
                pool.search([epd], SearchLimit(nodes=nodes), 2)
                found.append(_processor_seconds(process) - before)
            own[nodes] = (time.process_time() - start) / len(asked)
            quantiles[nodes] = np.quantile(found, np.linspace(0.0, 1.0, _QUANTILES)).round(7).tolist()
    return quantiles, own


def _store(results: Sequence[tuple[str, SearchResult]], path: pathlib.Path) -> float:
    """Seconds to write a search."""
    path.unlink(missing_ok=True)
    with EvaluationStore(path) as store:
        start = time.process_time()
        for epd, result in results:
            store.put("engine", SearchLimit(nodes=1), 2, epd, result)
        seconds = time.process_time() - start
    path.unlink()
    return seconds / len(results)


def _first(engine: str, folder: pathlib.Path, batch: int) -> list[float]:
    """Best-first order: [nodes at once, searches, steps, seconds of the client]."""
    settings, steps = _settings(_FIRST_PENALTY), 0

    def count(*told: Any) -> None:
        nonlocal steps
        steps += 1

    for _ in range(2):  # the second time all searches are stored
        steps = 0
        with _stored(engine, folder) as searches:
            policies = preparation_policies(settings, searches)
            start = time.process_time()
            best_first_precomputation(
                settings.game(),
                policies.sigma_pre,
                policies.sigma,
                settings.penalty,
                settings.player,
                policies.leaf_value,
                gap=_GAP,
                batch=batch,
                position_key=position_key,
                min_probability=settings.min_probability,
                progress=count,
            )
            seconds = time.process_time() - start
    return [batch, len(searches.asked), steps, round(seconds, 4)]


def _cluster(engine: str, epds: Sequence[str]) -> dict[str, float]:
    """Costs of batches and of results, from batches of one search and of many."""
    limit = SearchLimit(nodes=400)
    with _scheduler(2) as (address, pids), DaskEngine(engine, address) as engines:
        while engines.workers < 2:
            time.sleep(0.1)
        engines.search(epds[:50], limit, 2)
        idle = _spent(pids, lambda: time.sleep(3.0)) / 3.0
        left, spent = list(epds[50:]), []
        for most in (_IN_A_BATCH, 1):
            asked, left = left[: _TASKS * most], left[_TASKS * most :]
            start = time.monotonic()
            with mock.patch.object(cluster, "_MOST_IN_A_BATCH", most):
                took = _spent(pids, lambda asked=asked: engines.search(asked, limit, 2))  # type: ignore[misc]
            spent.append((took - idle * (time.monotonic() - start)) / _TASKS)
        costs = _fetching(engines, epds)
        asking = _spent(pids, lambda: [engines._states() for _ in range(50)])[:2].sum() / 100
    each = np.maximum(spent[0] - spent[1], 0.0) / (_IN_A_BATCH - 1)  # client, scheduler, workers
    task = spent[1] - each
    return {
        **costs,
        "client_result_seconds": float(each[0]),
        "client_worker_seconds": float(asking),
        "scheduler_task_seconds": float(task[1]),
        "scheduler_result_seconds": float(each[1]),
        "worker_task_seconds": float(task[2:].sum()),
    }


def _spent(pids: Sequence[int], work: Callable[[], Any]) -> np.ndarray:
    """Seconds of this process and of others while something is done."""
    before = [time.process_time(), *map(_processor_seconds, pids)]
    work()
    return np.array([time.process_time(), *map(_processor_seconds, pids)]) - before


@contextlib.contextmanager
def _scheduler(workers: int) -> Iterator[tuple[str, list[int]]]:
    """A scheduler and workers: the scheduler file, and the processes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        address = pathlib.Path(folder, "scheduler.json")

        def start(module: str, *flags: str) -> int:
            command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(address)]
            quiet = subprocess.DEVNULL
            command += ["--no-dashboard", *flags]
            process = subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet)
            running.callback(process.wait)
            running.callback(process.terminate)
            return process.pid

        pids = [start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")]
        while not address.exists():
            time.sleep(0.1)
        pids += [start("dask_worker", "--nthreads", "1", "--no-nanny") for _ in range(workers)]
        yield str(address), pids


def _fetching(engines: DaskEngine, epds: Sequence[str]) -> dict[str, float]:
    """Costs on the clock, since the client waits for others: what batches of one search take, some at once.

    The tenth percentile is what they are where nobody else keeps the machine busy.
    """
    under_way, searched = engines._under_way(), (SearchLimit(nodes=300), 2, 0, False)
    submitting, fetching = [], {}
    for most in (1, _AT_ONCE):
        asked = epds[: 200 if most == 1 else 20 * most]
        for epd in asked:
            start = time.monotonic()
            engines._submit(under_way, [epd], searched)
            submitting.append(time.monotonic() - start)
        while under_way._done.qsize() < len(asked):
            time.sleep(0.1)
        found = []
        with mock.patch.object(cluster_tasks, "_AT_ONCE", most):
            for _ in range(len(asked) // most):
                start = time.monotonic()
                assert len(under_way.done(60.0)) == most
                found.append(time.monotonic() - start)
        fetching[most] = float(np.quantile(found, 0.1))
        epds = epds[len(asked) :]
    each = (fetching[_AT_ONCE] - fetching[1]) / (_AT_ONCE - 1)
    return {
        "client_submit_seconds": float(np.quantile(submitting, 0.1)),
        "client_look_seconds": fetching[1] - each,
        "client_fetch_seconds": each,
    }
