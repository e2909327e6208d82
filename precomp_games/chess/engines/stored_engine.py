"""Searches through a store: stored results are read, missing ones are searched and stored."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.config import bar
from precomp_games._support.deadlines import check_finished, time_is_up
from precomp_games._support.results import Shown
from precomp_games.chess.engines import searches
from precomp_games.chess.engines.cluster import DaskEngine
from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.searches import SearchLimit, SearchResult
from precomp_games.chess.engines.store import EvaluationStore

REMEMBERED = 1 << 15  # results kept in memory, about 0.5 kB each
_Key = tuple[str, SearchLimit, int, int]  # position, limit, MultiPV, samples


class StoredEngine(Shown):
    """An engine that searches a position once per limit and MultiPV, ever.

    Every search is stored before the next result is read, so a run that is killed loses no finished search.
    Without a pool only stored searches are available. Unpickled in another process, it opens the same store,
    with a pool of its own, and without `on_search`.

    Args:
        store: the store that is read and written.
        pool: the engines that search missing positions; None: only read the store.
        engine_id: the engine whose searches are read if there is no pool; None: the only engine in the
            store.
        on_search: called after each search with their number so far.

    Attributes:
        engine_id: the store's key for the engine.
        searches: number of searches by the pool for this object.
        hits: number of positions answered without a search, distinct ones in each call.
        record: None, or a set to which the store's key (engine, limit, multipv, epd) of everything
            asked for is added, whether searched or stored: the keys that a run needs.

    Raises:
        ValueError: an `engine_id` that is not the pool's.
        EngineError: no pool, and the store does not settle which engine is meant.
    """

    @public
    def __init__(
        self,
        store: EvaluationStore,
        pool: EnginePool | DaskEngine | None = None,
        *,
        engine_id: str | None = None,
        on_search: Callable[[int], None] | None = None,
    ) -> None:
        self.store, self.pool = store, pool
        self.searches = 0
        self.hits = 0
        self.record: set[tuple[str, str, int, str]] | None = None
        self._on_search = on_search
        self._memory: dict[_Key, SearchResult] = {}
        if pool is not None and engine_id not in (None, pool.engine_id):
            raise ArgumentError(f"expected the pool's engine {pool.engine_id!r}, got engine_id {engine_id!r}")
        self.engine_id = self._stored_engine(engine_id) if pool is None else pool.engine_id

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(StoredEngine, engine_id=self.engine_id), (self.store, self.pool)

    def _stored_engine(self, engine_id: str | None) -> str:
        names = self.store.engines()
        if engine_id in names or (engine_id is None and len(names) == 1):
            return engine_id or names[0]
        asked = "an engine" if engine_id is None else f"the engine {shown(engine_id)}"
        hint = "name one of them" if names else "install Stockfish (Debian: apt install stockfish)"
        raise EngineError(
            f"expected stored searches of {asked} in {self.store.path!r}, got "
            f"{shown(names) if names else 'an empty store'}: {hint}"
        )

    @public
    def search(
        self,
        epds: searches.Positions,
        limit: SearchLimit,
        multipv: searches.Multipv,
        samples: searches.Samples = 0,
    ) -> list[SearchResult]:
        """Return the search of each position, in the given order; repeated positions are searched once.

        Args:
            epds: positions without clocks, each with a legal move.
            limit: for each position.
            multipv: number of lines; a position with fewer legal moves has fewer.
            samples: number of fresh searches that record the engine's move (see `EnginePool.search`); results
                of different numbers are stored separately. 0: only its lines are wanted.

        Raises:
            ValueError: a position, limit, MultiPV or number of samples that cannot be searched.
            EngineError: a search failed, or is not in the store and there is no engine; or the store cannot
                be read or written.
            OutOfTimeError: time is up (`deadline`); finished searches are stored.
        """
        kind = (limit, multipv, samples)
        distinct = list(dict.fromkeys(epds))
        if self.record is not None:
            self.record.update((self.engine_id, str(limit), multipv, epd) for epd in distinct)
        results = {epd: self._memory[epd, *kind] for epd in distinct if (epd, *kind) in self._memory}
        if unknown := [epd for epd in distinct if epd not in results]:
            stored = self.store.get_many(self.engine_id, limit, multipv, unknown, samples)
            results |= {epd: self._remember((epd, *kind), result) for epd, result in stored.items()}
        missing = [epd for epd in distinct if epd not in results]
        self.hits += len(distinct) - len(missing)
        if missing:
            results |= self._search_missing(missing, *kind)
        return [results[epd] for epd in epds]

    def _search_missing(
        self, missing: list[str], limit: SearchLimit, multipv: int, samples: int
    ) -> dict[str, SearchResult]:
        if self.pool is None:
            for epd in missing:
                searches.check_position(epd)
            more = f", {samples} for the move played" if samples else ""
            raise EngineError(
                f"expected searches by {shown(self.engine_id)} at {limit}, MultiPV {multipv}{more}, to be "
                f"stored in {self.store.path!r}, got {len(missing)} position(s) that are not, the first "
                f"{missing[0]!r}: without an engine only stored searches are available; install Stockfish "
                "(Debian: apt install stockfish), or name an engine with --engine or $STOCKFISH"
            )
        if time_is_up():
            check_finished(0, len(missing))
        results: dict[str, SearchResult] = {}

        def keep(epd: str, result: SearchResult) -> None:
            self.store.put(self.engine_id, limit, multipv, epd, result)
            if samples > 1:  # another run may have stored its own draws meanwhile, and those stay
                result = self.store.get_many(self.engine_id, limit, multipv, [epd], samples)[epd]
            results[epd] = self._remember((epd, limit, multipv, samples), result)
            self.searches += 1
            if self._on_search is not None:
                self._on_search(self.searches)
            show(len(results))

        with bar("Searching", "searches", len(missing), leave=False) as show:
            self.pool.search(missing, limit, multipv, keep, samples)
        return results

    def _remember(self, key: _Key, result: SearchResult) -> SearchResult:
        if len(self._memory) >= REMEMBERED:
            del self._memory[next(iter(self._memory))]  # the oldest
        self._memory[key] = result
        return result


def check_scores(
    value: Any,
    name: str,
    otherwise: str = "an opponent may also play what its engine answers, 'bestmove' or 'game'",
) -> StoredEngine:
    """Return a `StoredEngine`, or an alike, whose scores are those of the moves that it plays.

    Args:
        value: the given value.
        name: the argument's name.
        otherwise: advice on where a weakened engine can be used, for the error.

    Raises:
        ValueError: another kind of value, or options that make it play other moves than its scores say.
    """
    engine: StoredEngine = _searches(value, name)
    if option := searches.weakened_by(engine.engine_id):
        raise ArgumentError(
            f"expected options of {name} that change what the engine finds, got {option!r}, with "
            "which it finds the same and plays other moves: its scores, which are all that is read here, "
            f"would be no weaker (fewer nodes, or a larger temperature r, are; {otherwise})"
        )
    return engine


def searches_to_see(engine: StoredEngine, samples: int) -> int:
    """Return how often to ask an engine for its move: once if it does not draw its moves."""
    return samples if searches.weakened_by(engine.engine_id) else 1


def _searches(value: Any, name: str) -> Any:
    searches = callable(getattr(value, "search", None)) and isinstance(getattr(value, "engine_id", None), str)
    if isinstance(value, type) or not searches:
        raise ArgumentError(f"expected {name} to be a StoredEngine, got {shown(value)}")
    return value


EngineLike = Annotated[StoredEngine, checks.Check(_searches)]
"""A `StoredEngine`, or an object that searches like one."""
ScoringEngine = Annotated[StoredEngine, checks.Check(check_scores)]
"""A `StoredEngine` whose scores are read: they must be those of the moves that it plays."""
