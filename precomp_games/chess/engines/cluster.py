"""Searches on a cluster of machines, behind the interface of an engine pool, by Dask.

    with DaskEngine("stockfish", "tcp://scheduler:8786") as engines:
        stored = StoredEngine(store, engines)

Each worker process of the cluster has one engine (`_dask_worker`), and one thread. A worker is taken only if
its engine has the same name and options as the client's, and gives the same lines in reference searches: then
a search is the same function of its position wherever it runs. Searches travel in batches of some seconds, so
that the scheduler, which can do a few thousand tasks a second, keeps up with thousands of engines. A task is
named by its engine, limit, MultiPV and positions, so that one that runs twice, since a worker died, changes
nothing. Workers may come and go: what one has not finished goes to another.

Only the client writes a store: results come to it, in any order.

Deviations: `dask.distributed` gives up on a task after some deaths of workers that had it; here that counts
as a failed search, which is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from precomp_games._support.arguments import Seconds, public
from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.searches import (
    Multipv,
    Options,
    Positions,
    Retries,
    Samples,
    SearchLimit,
    SearchResult,
    check_command,
    check_position,
)
from precomp_games.cluster.client import ANSWER_SECONDS, Cluster, asked, connected, no_worker
from precomp_games.cluster.tasks import AHEAD, UnderWay

__all__ = ["ClusterPool", "DaskEngine"]

REFERENCE = (SearchLimit(nodes=2000), 2)
"""What workers' engines are compared by: a limit and a MultiPV, in `REFERENCE_POSITIONS`."""

REFERENCE_POSITIONS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -",
)

STARTING = "no engine yet"
"""What a worker says before its engine is there."""

_BATCH_SECONDS = 5.0
_MOST_IN_A_BATCH = 10_000
_LOOK_SECONDS = 2.0
_END_SECONDS = 10.0  # for which workers are asked to end their engines, which die with them anyway
_PR_SET_PDEATHSIG = 1


class ClusterPool(EnginePool):
    """An engine of the client or of a worker, which the kernel kills with it, amid a search as well."""

    _called = "DaskEngine"

    @staticmethod
    def _before_engine() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class DaskEngine:
    """Engines on a cluster, used as an `EnginePool` is.

    One that is sent to another process connects to the cluster anew there; that of "local:N" starts another.

    Args:
        command: the engine's file or command, which is the same on the client and on all workers; or a list
            of it and its arguments.
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine.
        options: see `EnginePool`.
        timeout_seconds: see `EnginePool`.
        retries: see `EnginePool`; also how often searches that workers died of are asked again.
        startup_seconds: how long to wait for the first worker, and for each engine to start.

    Attributes:
        engine_id: see `EnginePool`.
        command: the command as a list.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        EngineError: dask.distributed is not installed, there is no scheduler, no worker comes, or none has
            the client's engine: says, for each worker, what differs.
    """

    @public
    def __init__(
        self,
        command: str | list[str],
        cluster: Cluster,
        *,
        options: Options | None = None,
        timeout_seconds: Seconds = 60.0,
        retries: Retries = 3,
        startup_seconds: Seconds = 60.0,
    ) -> None:
        self.command, self._cluster = check_command(command), cluster
        self._how: dict[str, Any] = {
            "options": dict(options or {}),
            "timeout_seconds": timeout_seconds,
            "retries": retries,
            "startup_seconds": startup_seconds,
        }
        self.timeout_seconds, self.retries, self._seconds = timeout_seconds, retries, startup_seconds
        how = {"command": self.command, **self._how}
        with ClusterPool(workers=1, **how) as own:
            self.engine_id = own.engine_id
            expected = own.search(REFERENCE_POSITIONS, *REFERENCE)
        self._closing = contextlib.ExitStack()
        self._closed = False
        self._pace = 0.0  # seconds a search, by the last batch
        try:
            try:
                self._client = self._closing.enter_context(connected(cluster, self._seconds))
            except ConnectionError as error:
                raise EngineError(str(error)) from error
            from precomp_games.chess.engines._dask_worker import EnginePlugin

            # Of a name of its own: another client's engines on the same cluster are others.
            self._name = f"precomp-games-{os.getpid()}-{id(self):x}"
            plugin = EnginePlugin(self._name, self.engine_id, expected, how)
            self._closing.callback(self._unregister)

            async def register() -> None:
                registering = asyncio.ensure_future(self._client.register_plugin(plugin, name=self._name))
                # A worker that says nothing does not keep the others from searching.
                if (await asyncio.wait({registering}, timeout=self._seconds))[0]:
                    registering.result()

            self._ask(register, self._seconds + ANSWER_SECONDS)
            self._wait()
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise TypeError("DaskEngine: expected open engines to pickle, got closed ones")
        return functools.partial(DaskEngine, **self._how), (self.command, self._cluster)

    @property
    def workers(self) -> int:
        """How many engines there are now."""
        known = self._ask(lambda: self._client.scheduler.identity())["workers"]
        return sum(self._name in worker["resources"] for worker in known.values())

    @property
    def refused(self) -> dict[str, str]:
        """The workers that are not used, by address, with what differs."""
        return {address: why for address, why in self._states().items() if why not in ("", STARTING)}

    def _states(self) -> dict[str, str]:
        """By worker's address: "" where its engine is ready, else why it is not used."""
        from precomp_games.chess.engines._dask_worker import state

        told: dict[str, str] = self._ask(lambda: self._client.run(state, self._name, on_error="ignore"))
        return told

    def _ask(self, question: Callable[[], Any], seconds: float | None = None) -> Any:
        try:
            return asked(self._client, self._cluster, question, seconds)
        except ConnectionError as error:
            raise EngineError(str(error)) from error

    def _wait(self) -> None:
        """Waits for a first engine.

        Raises:
            EngineError: no worker comes in time, or all are refused.
        """
        end = time.monotonic() + self._seconds
        while True:
            if self.workers:
                return
            states = self._states()
            if states and not {"", STARTING} & set(states.values()):
                told = "; ".join(f"{address}: {why}" for address, why in sorted(states.items()))
                raise EngineError(f"expected workers with the client's engine {self.engine_id!r}, got {told}")
            if time.monotonic() > end:
                raise EngineError(f"{no_worker(self._cluster, self._seconds)}")
            time.sleep(0.1)

    @public
    def search(
        self,
        epds: Positions,
        limit: SearchLimit,
        multipv: Multipv,
        on_result: Callable[[str, SearchResult], None] | None = None,
        samples: Samples = 0,
    ) -> list[SearchResult]:
        """Searches positions and returns the results in the order asked; see `EnginePool.search`.

        Args:
            epds: see there, as for the rest.
            limit: for each position.
            multipv: how many lines.
            on_result: called in this thread with each position and its result, as batches come.
            samples: in how many fresh searches it is seen what the engine plays.

        Raises:
            ValueError: see there.
            EngineError: see there; or no worker is left.
        """
        distinct = list(dict.fromkeys(epds))
        for epd in distinct:
            check_position(epd)
        if self._closed:
            raise EngineError("expected open engines, got closed ones")
        found: dict[str, SearchResult] = {}
        for batch, results in _Batches(self, (limit, multipv, samples), distinct).run():
            for epd, result in zip(batch, results, strict=True):
                found[epd] = result
                if on_result is not None:
                    on_result(epd, result)
        return [found[epd] for epd in epds]

    def _unregister(self) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is gone has no plugins
            self._ask(lambda: self._client.unregister_worker_plugin(self._name), _END_SECONDS)

    def close(self) -> None:
        """Ends the engines, and the workers of "local:N"; others stay. Again is harmless."""
        self._closed = True
        self._closing.close()

    def __enter__(self) -> DaskEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Batches:
    """One call of `search`: positions in batches on their way to workers and back."""

    def __init__(self, engine: DaskEngine, how: tuple[SearchLimit, int, int], left: list[str]) -> None:
        self._engine, self._how, self._left = engine, how, left[::-1]
        self._under_way = UnderWay(
            engine._client,
            engine._cluster,
            told=lambda batch: f"{len(batch)} position(s) such as {batch[0]!r}",
            most_deaths=engine.retries,
        )

    def run(self) -> Iterator[tuple[list[str], list[SearchResult]]]:
        """Gives batches with their results, as they come.

        Raises:
            EngineError: a search failed, or nobody is left to make it.
        """
        try:
            yield from self._run()
        except (ConnectionError, ChildProcessError) as error:
            raise EngineError(str(error)) from error

    def _run(self) -> Iterator[tuple[list[str], list[SearchResult]]]:
        workers = max(self._engine.workers, 1)
        try:
            while self._left or self._under_way:
                while self._left and len(self._under_way) < AHEAD * workers:
                    self._submit(self._next(workers))
                done = self._under_way.done(_LOOK_SECONDS)
                if not done:
                    self._engine._wait()
                    workers = max(self._engine.workers, 1)
                    self._under_way.send_stranded()
                for batch, (results, seconds) in done:
                    self._engine._pace = seconds / len(batch)
                    yield batch, results
        finally:
            self._under_way.cancel()

    def _next(self, workers: int) -> list[str]:
        """As many positions as take some seconds, and no more than a fair share of what is left."""
        pace = self._engine._pace
        count = 1 if not pace else int(min(_BATCH_SECONDS / pace, _MOST_IN_A_BATCH))
        count = max(1, min(count, -(-len(self._left) // (AHEAD * workers))))
        batch = self._left[-count:][::-1]
        del self._left[-count:]
        return batch

    def _submit(self, batch: list[str]) -> None:
        from precomp_games.chess.engines._dask_worker import search

        name = self._engine._name
        text = repr((self._engine.engine_id, *self._how, batch))
        key = f"search-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"
        self._under_way.submit(batch, search, name, batch, *self._how, key=key, resources={name: 1})
