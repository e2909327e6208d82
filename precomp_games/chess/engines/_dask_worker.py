"""Code of a cluster's workers: each starts one engine, checks it before use, and searches with it."""

from __future__ import annotations

import ctypes
import importlib.metadata
import signal
import time
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.searches import SearchLimit, SearchResult, encode_lines

REFERENCE = (SearchLimit(nodes=2000), 2)
"""The limit and MultiPV of the searches of `REFERENCE_POSITIONS` that compare workers' engines."""

REFERENCE_POSITIONS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -",
)

_PR_SET_PDEATHSIG = 1

_VERSION = importlib.metadata.version("precomp-games")

# By plugin: a worker's engine, or the reason why it has none. A process is one worker.
_ENGINES: dict[str, EnginePool | str] = {}


class ClusterPool(EnginePool):
    """An engine of the client or of a worker, killed by the kernel with its process, even during a search."""

    @staticmethod
    def _before_engine() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class EnginePlugin(WorkerPlugin):  # type: ignore[misc,unused-ignore]
    """Starts a worker's engine, compares it with the client's, and ends it.

    A worker whose engine is the same offers a resource of the plugin's name, which searches require, so that
    other workers get none.
    """

    def __init__(
        self,
        name: str,
        engine_id: str,
        expected: list[SearchResult],
        how: dict[str, Any],
    ) -> None:
        """Keep the client's engine identity and reference results; `how` are arguments of `EnginePool`."""
        self.name = name
        self._engine_id, self._expected, self._how = engine_id, expected, how
        self._version = _VERSION

    async def setup(self, worker: Worker) -> None:
        """Start the engine and keep any failure, since an error here would end the worker."""
        try:
            _ENGINES[self.name] = self._start()
        except (EngineError, ValueError, OSError) as error:
            _ENGINES[self.name] = str(error)
        else:
            await worker.set_resources(**{self.name: 1})

    def _start(self) -> EnginePool:
        """Start the engine and compare it with the client's.

        Raises:
            EngineError: it differs from the client's; the message states how.
        """
        if self._version != _VERSION:
            raise EngineError(f"precomp-games {_VERSION} in place of {self._version}")
        pool = ClusterPool(workers=1, **self._how)
        try:
            if pool.engine_id != self._engine_id:
                raise EngineError(f"the engine {pool.engine_id!r} in place of {self._engine_id!r}")
            searched = pool.search(REFERENCE_POSITIONS, *REFERENCE)
            for epd, own, expected in zip(REFERENCE_POSITIONS, searched, self._expected, strict=True):
                if own != expected:
                    raise EngineError(
                        f"other lines of {epd!r} at {REFERENCE[0]}: {_words(own)} in place of "
                        f"{_words(expected)}; another build of the engine, or another network?"
                    )
        except BaseException:
            pool.close()
            raise
        return pool

    def teardown(self, worker: Worker) -> None:
        """End the engine."""
        del worker
        engine = _ENGINES.pop(self.name, "")
        if isinstance(engine, EnginePool):
            engine.close()


def _words(result: SearchResult) -> str:
    return f"{encode_lines(result.lines)} (depth {result.depth}, {result.nodes} nodes)"


def state(name: str) -> str | None:
    """Return "" if this worker's engine is ready, None before it has started, or why it is not used."""
    engine = _ENGINES.get(name)
    return "" if isinstance(engine, EnginePool) else engine


def search(
    name: str, epds: list[str], limit: SearchLimit, multipv: int, samples: int
) -> tuple[list[SearchResult], float]:
    """Search positions on this worker; return the results, and the seconds that they took.

    Raises:
        EngineError: a search failed, or this worker has no engine; the message names the worker.
    """
    started, engine = time.monotonic(), _ENGINES.get(name)
    address = get_worker().address
    if not isinstance(engine, EnginePool):
        raise EngineError(f"worker {address}: {engine or 'no engine yet'}")
    try:
        results = engine.search(epds, limit, multipv, samples=samples)
    except EngineError as error:
        raise EngineError(f"worker {address}: {error}") from None
    return results, time.monotonic() - started
