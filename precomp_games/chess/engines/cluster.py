"""Searches on a cluster of machines, behind the interface of an engine pool, by Dask.

    with DaskEngine("stockfish", "tcp://scheduler:8786") as engines:
        stored = StoredEngine(store, engines)

Each worker process of the cluster has one engine at work (`_dask_worker`), and one thread. A worker is used
only if its engine has the same name and options as the client's, and gives the same lines in reference
searches: then a search is the same function of its position wherever it runs. Searches travel in batches of
a few seconds, so that the scheduler, which can do a few thousand tasks a second, keeps up with thousands of
engines. A batch that runs twice, since a worker died, changes nothing. Workers may come and go: batches that
one has not finished go to another.

Only the client writes a store: results come to it, in any order.

`precomp_games.cluster` describes what happens to searches whose workers die.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import uuid
from collections.abc import Callable
from typing import Any

from precomp_games import cluster as clusters
from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.deadlines import check_finished, time_is_up
from precomp_games._support.results import Shown
from precomp_games.chess.engines import searches
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.searches import SearchLimit, SearchResult

_BATCH_SECONDS = 5.0
_MOST_IN_A_BATCH = 10_000
_END_SECONDS = 10.0  # for asking workers to end their engines, which die with them anyway


class DaskEngine(Shown, contextlib.AbstractContextManager["DaskEngine"]):
    """Engines on a cluster, used as an `EnginePool` is.

    Unpickled in another process, it connects to the cluster anew; with "local:N" it starts another cluster.

    Args:
        command: the engine's file or command, which is the same on the client and on all workers; or a list
            of it and its arguments.
        cluster: a scheduler's address ("tcp://host:8786", "tls://host:8786"), a scheduler file, or
            "local:N" for N workers on this machine.
        options: see `EnginePool`.
        timeout_seconds: see `EnginePool`.
        startup_seconds: how long to wait for the first worker, and for each engine to start.

    Attributes:
        engine_id: see `EnginePool`.
        command: the command as a list.

    Raises:
        ValueError: an argument out of range, or a cluster that is none of these.
        ConnectionError: dask.distributed is not installed, there is no scheduler, or no worker comes.
        EngineError: the engine does not start here, or no worker has the client's: the message states how
            each worker's differs.
    """

    @public
    def __init__(
        self,
        command: str | list[str],
        cluster: clusters.Cluster,
        *,
        options: searches.Options | None = None,
        timeout_seconds: checks.Seconds = 60.0,
        startup_seconds: checks.Seconds = 60.0,
    ) -> None:
        self.command, self._cluster, self._seconds = searches.check_command(command), cluster, startup_seconds
        self._how: dict[str, Any] = {
            "options": dict(options or {}),
            "timeout_seconds": timeout_seconds,
            "startup_seconds": startup_seconds,
        }
        self._closed = False
        self._pace = 0.0  # seconds a search, by the last batch
        with contextlib.ExitStack() as closing:
            client = clusters.cluster_client(cluster, startup_seconds=startup_seconds)
            self._client = closing.enter_context(client)
            self._ask = functools.partial(clusters.asked, self._client, cluster)
            from precomp_games.chess.engines import _dask_worker

            how = {"command": self.command, **self._how}
            with _dask_worker.ClusterPool(workers=1, **how) as own:
                self.engine_id = own.engine_id
                expected = own.search(_dask_worker.REFERENCE_POSITIONS, *_dask_worker.REFERENCE)
            # Of a name of its own: another client's engines on the same cluster are others, and a worker
            # keeps the resource of engines that have ended.
            self._name = f"precomp-games-{uuid.uuid4().hex}"
            plugin = _dask_worker.EnginePlugin(self._name, self.engine_id, expected, how)
            closing.callback(self._unregister)

            async def register() -> None:
                registering = asyncio.ensure_future(self._client.register_plugin(plugin, name=self._name))
                # A worker that does not answer does not keep the others from searching.
                if (await asyncio.wait({registering}, timeout=self._seconds))[0]:
                    registering.result()

            self._ask(register, self._seconds + clusters.ANSWER_SECONDS)
            self._wait()
            self._closing = closing.pop_all()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise TypeError("DaskEngine: expected open engines to pickle, got closed ones")
        return functools.partial(DaskEngine, **self._how), (self.command, self._cluster)

    @property
    def workers(self) -> int:
        """Number of engines at present."""
        known = self._ask(lambda: self._client.scheduler.identity())["workers"]
        return sum(self._name in worker["resources"] for worker in known.values())

    @property
    def refused(self) -> dict[str, str]:
        """The workers that are not used, by address, each with the reason."""
        return {address: why for address, why in self._states().items() if why}

    def _states(self) -> dict[str, str | None]:
        """Return by worker's address: "" if its engine is ready, None before, else why it is not used."""
        from precomp_games.chess.engines._dask_worker import state

        states: dict[str, str | None] = self._ask(
            lambda: self._client.run(state, self._name, on_error="ignore")
        )
        return states

    def _wait(self) -> int:
        """Wait for the first engine and return the number of engines.

        Raises:
            ConnectionError: no worker comes in time.
            EngineError: all are refused.
        """

        def count() -> int:
            if not (workers := self.workers) and (states := self._states()) and all(states.values()):
                why = "; ".join(f"{address}: {reason}" for address, reason in sorted(states.items()))
                raise EngineError(f"expected workers with the client's engine {self.engine_id!r}, got {why}")
            return workers

        return clusters.once_there(count, self._cluster, self._seconds)

    @public
    def search(
        self,
        epds: searches.Positions,
        limit: SearchLimit,
        multipv: searches.Multipv,
        on_result: Callable[[str, SearchResult], None] | None = None,
        samples: searches.Samples = 0,
    ) -> list[SearchResult]:
        """Search positions as `EnginePool.search` does, with the same arguments, results and errors.

        A position that comes twice is searched once, and results are delivered as batches come.

        Raises:
            ValueError: as `EnginePool.search`.
            EngineError: as `EnginePool.search`.
            ConnectionError: no worker is left, or the scheduler is gone.
            ChildProcessError: workers die of a search again and again.
        """
        from precomp_games.chess.engines._dask_worker import search

        distinct = list(dict.fromkeys(epds))
        for epd in distinct:
            searches.check_position(epd)
        if self._closed:
            raise EngineError("expected open engines, got closed ones")
        results: dict[str, SearchResult] = {}
        left = distinct[::-1]
        words = "{} position(s) such as {!r}".format
        under_way = clusters.UnderWay(
            self._client, self._cluster, words=lambda batch: words(len(batch), batch[0])
        )

        def send_next(workers: int) -> bool:
            if time_is_up():
                return False
            if left:
                size = self._batch_size(len(left), workers)
                batch = left[-size:][::-1]
                del left[-size:]
                on = {"resources": {self._name: 1}}
                under_way.submit(batch, search, self._name, batch, limit, multipv, samples, **on)
            return bool(left)

        for batch, (found, seconds) in under_way.results(send_next, self._wait):
            self._pace = seconds / len(batch)
            for epd, result in zip(batch, found, strict=True):
                results[epd] = result
                if on_result is not None:
                    on_result(epd, result)
        check_finished(len(results), len(distinct))
        return [results[epd] for epd in epds]

    def _batch_size(self, left: int, workers: int) -> int:
        """Return a number of positions that take a few seconds, at most a fair share of those left."""
        most = 1 if not self._pace else int(min(_BATCH_SECONDS / self._pace, _MOST_IN_A_BATCH))
        return max(1, min(most, -(-left // (clusters.AHEAD * workers))))

    def _unregister(self) -> None:
        with contextlib.suppress(Exception):  # a scheduler that is gone has no plugins
            self._ask(lambda: self._client.unregister_worker_plugin(self._name), _END_SECONDS)

    def close(self) -> None:
        """End the engines, and the workers of "local:N"; others stay. Calling it again is harmless."""
        self._closed = True
        self._closing.close()

    def __exit__(self, *error: object) -> None:
        self.close()
