"""What many engines do with a tree's searches: an event loop with the rules of `DaskEngine`.

Whoever asks is one client. It sends batches through one scheduler to workers, at most two each under way,
and deals with what has come back, up to some batches at once, before it sends more. Batches have as many
positions as take some seconds at the pace of the last one that came, and no more than a fair share of what is
ready. A batch goes to the worker with the fewest; there it waits for those before it.

Searches are released in rounds, the next one when all of a round is dealt with, as levels are; or each when
its parent's result is dealt with, as an asynchronous expansion would.

Deviations: the scheduler works on a batch once, when it is sent; Dask hands nothing that waits for a slow
worker to another; no worker dies.

Cost: 1 to 3 microseconds a batch and a search.
"""

from __future__ import annotations

import dataclasses
import heapq

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["Outcome", "Rules", "simulate"]


@dataclasses.dataclass(frozen=True)
class Rules:
    """What a cluster costs besides the searches, in seconds.

    Attributes:
      submit, look, fetch: Of the client, to send a batch, to fetch what has come, and for each batch of it.
      result: Of the client, for a search that came.
      scheduler_task, scheduler_result: Of the scheduler, for a batch and for a search in it.
      worker_task: Of a worker, for a batch.
      latency: From client to worker, and back.
      batch_seconds, most, ahead, at_once: How long a batch shall take, how many searches it may have, how
        many batches a worker may have under way, and how many the client deals with before it sends more.
    """

    submit: float = 0.0
    look: float = 0.0
    fetch: float = 0.0
    result: float = 0.0
    scheduler_task: float = 0.0
    scheduler_result: float = 0.0
    worker_task: float = 0.0
    latency: float = 0.0
    batch_seconds: float = 5.0
    most: int = 10_000
    ahead: int = 2
    at_once: int = 100


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of it.

    Attributes:
      seconds: Until the client had dealt with all.
      searching: Seconds that engines searched, all together.
      client, scheduler: Seconds that these worked.
      batches: How many there were.
    """

    seconds: float
    searching: float
    client: float
    scheduler: float
    batches: int


def simulate(
    seconds: npt.NDArray[np.float64],
    slowness: npt.NDArray[np.float64],
    rules: Rules,
    rounds: npt.NDArray[np.int64],
    between: npt.NDArray[np.float64],
    children: npt.NDArray[np.int64] | None = None,
) -> Outcome:
    """Runs all searches.

    Args:
      seconds: float64[n], of each search on an engine of slowness 1.
      slowness: float64[engines], by what each engine's times are multiplied.
      rules: what the rest costs.
      rounds: int64[r + 1]: round k releases searches rounds[k]:rounds[k + 1].
      between: float64[r], of the client, when a round is dealt with.
      children: int64[n + 1]: the result of search k releases children[k]:children[k + 1]. None: all searches
        are in rounds.
    """
    none = np.zeros(0, np.int64)
    costs = np.array(
        [
            rules.submit,
            rules.look,
            rules.fetch,
            rules.result,
            rules.scheduler_task,
            rules.scheduler_result,
            rules.worker_task,
            rules.latency,
            rules.batch_seconds,
        ]
    )
    found = _run(
        seconds,
        slowness,
        costs,
        rules.most,
        rules.ahead,
        rules.at_once,
        rounds,
        between,
        none if children is None else children,
    )
    return Outcome(*found)


@numba.njit(cache=True)
def _run(seconds, slowness, costs, most, ahead, at_once, rounds, between, children):
    """`simulate`; see there."""
    submit, look, fetch, result, scheduler_task, scheduler_result, worker_task, latency, batch_seconds = costs
    engines = len(slowness)
    ready = np.empty(len(seconds), np.int64)
    head = tail = 0
    # By engine, a ring of batches: the first in `ready` and the number of searches, and when they are there.
    batch = np.zeros((engines, ahead, 2), np.int64)
    there = np.zeros((engines, ahead))
    oldest, has = np.zeros((2, engines), np.int64)
    # Engines by how many batches they have; those that have another number by now are passed over.
    by_number = [[engine for engine in range(engines)] for _ in range(ahead)]
    running = [(0.0, 0, 0.0)][1:]  # (when it ends, engine, how long it takes)
    done = [(0.0, 0, 0, 0.0)][1:]  # (when it is back, first and number of its searches, how long it took)
    queues = (batch, there, oldest, has, by_number, running, done)
    work = (seconds, ready, slowness, worker_task)
    clock = searching = client = scheduler = scheduler_free = pace = 0.0
    under_way = batches = at = 0
    while True:
        while head < tail and under_way < ahead * engines:
            size = 1 if pace == 0.0 else int(min(batch_seconds / pace, float(most)))
            size = max(1, min(size, -(-(tail - head) // (ahead * engines))))
            clock, client = clock + submit, client + submit
            takes = scheduler_task + scheduler_result * size
            scheduler_free, scheduler = max(scheduler_free, clock) + takes, scheduler + takes
            _advance(scheduler_free, latency, queues, work)
            engine = _fewest(by_number, has)
            place = (oldest[engine] + has[engine]) % ahead
            batch[engine, place, 0], batch[engine, place, 1] = head, size
            there[engine, place] = scheduler_free + latency
            has[engine] += 1
            if has[engine] == 1:
                _start(engine, there[engine, place], queues, work)
            if has[engine] < ahead:
                heapq.heappush(by_number[has[engine]], engine)
            head, under_way, batches = head + size, under_way + 1, batches + 1
        if under_way == 0:
            if at > 0:
                clock, client = clock + between[at - 1], client + between[at - 1]
            if at == len(between):
                return clock, searching, client, scheduler, batches
            for k in range(rounds[at], rounds[at + 1]):
                ready[tail] = k
                tail += 1
            at += 1
            continue
        clock = max(clock, done[0][0] if done else running[0][0] + latency)
        _advance(clock, latency, queues, work)
        looked, dealt = clock, 0
        clock, client = clock + look, client + look
        while dealt < at_once and done and done[0][0] <= looked:
            dealt += 1
            _, begin, size, took = done.pop(0)
            takes = fetch + result * size
            clock, client, searching = clock + takes, client + takes, searching + took
            pace = took / size
            under_way -= 1
            if len(children):
                for k in ready[begin : begin + size]:
                    for child in range(children[k], children[k + 1]):
                        ready[tail] = child
                        tail += 1


@numba.njit(cache=True)
def _advance(until, latency, queues, work):
    """Ends the batches that are back by then, and begins those that waited for them."""
    batch, there, oldest, has, by_number, running, done = queues
    while running and running[0][0] + latency <= until:
        end, engine, took = heapq.heappop(running)
        begin, size = batch[engine, oldest[engine]]
        done.append((end + latency, begin, size, took))
        oldest[engine] = (oldest[engine] + 1) % len(by_number)
        has[engine] -= 1
        heapq.heappush(by_number[has[engine]], engine)
        if has[engine]:
            _start(engine, max(end, there[engine, oldest[engine]]), queues, work)


@numba.njit(cache=True)
def _start(engine, start, queues, work):
    """Begins an engine's oldest batch."""
    batch, _, oldest, _, _, running, _ = queues
    seconds, ready, slowness, worker_task = work
    begin, size = batch[engine, oldest[engine]]
    took = 0.0
    for k in ready[begin : begin + size]:
        took += seconds[k]
    took *= slowness[engine]
    heapq.heappush(running, (start + worker_task + took, engine, took))


@numba.njit(cache=True)
def _fewest(by_number, has):
    """The first engine of those with the fewest batches."""
    for number in range(len(by_number)):
        while by_number[number]:
            engine = heapq.heappop(by_number[number])
            if has[engine] == number:
                return engine
    return -1
