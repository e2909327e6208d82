"""Searches through the store: each position once, nothing lost, and an answer without an engine."""

import dataclasses
import functools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tqdm import tqdm

from precomp_games import config
from precomp_games.chess.engines import stored_engine as search_module
from precomp_games.chess.engines.pool import EngineError, EnginePool, find_engine
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.store import EvaluationStore, StoreError
from precomp_games.chess.engines.stored_engine import StoredEngine
from tests.chess.test_engine import EPDS, FAKE, LIMIT, ONE_MOVE, STALEMATE, answered, expected, started


@pytest.fixture(scope="module")
def pool() -> Iterator[EnginePool]:
    with EnginePool(FAKE, workers=2) as made:
        yield made


@pytest.fixture
def store() -> Iterator[EvaluationStore]:
    with EvaluationStore(":memory:") as made:
        yield made


def test_each_position_once(store: EvaluationStore, pool: EnginePool) -> None:
    counts: list[int] = []
    engine = StoredEngine(store, pool, on_search=counts.append)
    asked = [*EPDS[:5], EPDS[0], EPDS[3]]
    assert engine.search(asked, LIMIT, 2) == [expected(epd, 2) for epd in asked]
    assert (engine.searches, engine.hits, len(store)) == (5, 0, 5)
    assert counts == [1, 2, 3, 4, 5]
    assert engine.search(iter(asked), LIMIT, 2) == [expected(epd, 2) for epd in asked]
    assert (engine.searches, engine.hits) == (5, 5)
    later = [*EPDS[3:7], ONE_MOVE]
    assert engine.search(later, LIMIT, 2) == [expected(epd, 2) for epd in later]
    assert (engine.searches, engine.hits) == (8, 7)
    engine.search(EPDS[:2], LIMIT, 1)  # another MultiPV and another limit are other searches
    engine.search(EPDS[:2], SearchLimit(nodes=2000), 2)
    assert (engine.searches, len(store)) == (12, 12)
    assert engine.search([], LIMIT, 2) == []

    second = StoredEngine(store, pool, engine_id=pool.engine_id)
    assert second.search(later, LIMIT, 2) == [expected(epd, 2) for epd in later]
    assert (second.searches, second.hits) == (0, 5)


def test_what_is_played_is_searched_once(tmp_path: Path) -> None:
    """Draws differ from search to search; stored, they are the same for everyone."""
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        with EnginePool(FAKE, workers=2, options={"Skill Level": 5}) as pool:
            engine = StoredEngine(store, pool)
            lines = engine.search(EPDS[:5], LIMIT, 1)
            drawn = engine.search(EPDS[:5], LIMIT, 1, samples=20)
            assert (engine.searches, engine.hits, len(store)) == (10, 0, 5)
            assert engine.search(EPDS[:5], LIMIT, 1, 20) == drawn
            again = StoredEngine(store, pool)
            assert again.search(EPDS[:5], LIMIT, 1, 20) == drawn
            assert engine.search(EPDS[:5], LIMIT, 1) == lines == [expected(epd, 1) for epd in EPDS[:5]]
            assert {result.samples for result in again.search(EPDS[:5], LIMIT, 1, 7)} == {7}
            assert (engine.searches, again.searches) == (10, 5)
        with EnginePool(FAKE, workers=1) as pool:  # at full strength: searches of its own
            engine = StoredEngine(store, pool)
            assert engine.search(EPDS[:2], LIMIT, 2, 1) == [answered(epd, 2) for epd in EPDS[:2]]
    with EvaluationStore(path, read_only=True) as store:
        engine = StoredEngine(store, engine_id="Fake 1.0 [Skill Level=5]")
        assert engine.search(EPDS[:5], LIMIT, 1, 20) == drawn
        with pytest.raises(EngineError, match="MultiPV 1, 3 for the move played, to be stored in"):
            engine.search(EPDS[:5], LIMIT, 1, 3)


def test_draws_of_another_run_stay(store: EvaluationStore, pool: EnginePool) -> None:
    """Two runs that search a position at once go on with the draws that were stored first."""
    theirs = dataclasses.replace(answered(EPDS[0], 1), played=(("a2a3", 20),))

    class Meanwhile(tqdm):
        def __enter__(self) -> Any:
            store.put(pool.engine_id, LIMIT, 1, EPDS[0], theirs)
            return super().__enter__()

    with config(progress=functools.partial(Meanwhile, disable=True)):
        assert StoredEngine(store, pool).search(EPDS[:1], LIMIT, 1, 20) == [theirs]


def test_memory_is_bounded(store: EvaluationStore, pool: EnginePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "REMEMBERED", 4)
    engine = StoredEngine(store, pool)
    for _ in range(2):
        assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]
    assert len(engine._memory) == 4
    assert (engine.searches, engine.hits) == (len(EPDS), len(EPDS))


def test_failed_search_keeps_the_others(store: EvaluationStore, pool: EnginePool) -> None:
    command = [*FAKE, "--fault", "exit", "--only", EPDS[5]]
    with EnginePool(command, workers=1, retries=0) as failing:
        engine = StoredEngine(store, failing)
        with pytest.raises(EngineError, match="process died"):
            engine.search(EPDS, LIMIT, 2)
        assert (engine.searches, len(store)) == (5, 5)
        engine.search(EPDS[6:8], LIMIT, 2)
    engine = StoredEngine(store, pool)
    assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]
    assert (engine.searches, engine.hits) == (len(EPDS) - 7, 7)


def test_full_disk_stops_the_search(store: EvaluationStore, pool: EnginePool) -> None:
    engine = StoredEngine(store, pool)
    engine.search(EPDS[:2], LIMIT, 2)
    store._db.execute("PRAGMA query_only = 1")
    with pytest.raises(StoreError, match=r"^StoredEngine\.search\(\): expected"):
        engine.search(EPDS, LIMIT, 2)
    store._db.execute("PRAGMA query_only = 0")
    assert engine.search(EPDS, LIMIT, 2) == [expected(epd, 2) for epd in EPDS]


def test_without_an_engine(pool: EnginePool, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        with pytest.raises(EngineError, match="got an empty store: install Stockfish"):
            StoredEngine(store)
        StoredEngine(store, pool).search(EPDS[:6], LIMIT, 2)
    with EvaluationStore(path, read_only=True) as store:
        engine = StoredEngine(store)
        assert engine.engine_id == "Fake 1.0"
        assert engine.search(EPDS[:6], LIMIT, 2) == [expected(epd, 2) for epd in EPDS[:6]]
        assert (engine.searches, engine.hits) == (0, 6)
        with pytest.raises(EngineError, match=r"got 2 position\(s\) that are not.*apt install"):
            engine.search([*EPDS[:8], EPDS[7]], LIMIT, 2)
        with pytest.raises(EngineError, match=r"at nodes=7, MultiPV 2, to be stored"):
            engine.search(EPDS[:2], SearchLimit(nodes=7), 2)
        with pytest.raises(ValueError, match="expected a position as EPD"):
            engine.search([STALEMATE], LIMIT, 2)
        with pytest.raises(EngineError, match=r"the engine 'Other' in .*got \['Fake 1.0'\]"):
            StoredEngine(store, engine_id="Other")
    with EvaluationStore(path) as store:
        store.put("Other", LIMIT, 2, EPDS[0], expected(EPDS[0], 2))
        with pytest.raises(EngineError, match=r"got \['Fake 1.0', 'Other'\]: name one of them"):
            StoredEngine(store)
        assert len(StoredEngine(store, engine_id="Other").search(EPDS[:1], LIMIT, 2)) == 1


RUN = """
import json, sys
from precomp_games.chess.engines.pool import EnginePool, SearchLimit
from precomp_games.chess.engines.stored_engine import StoredEngine
from precomp_games.chess.engines.store import EvaluationStore
path, nodes, epds, *command = sys.argv[1:]
with EvaluationStore(path) as store, EnginePool(command, workers=2) as pool:
    engine = StoredEngine(store, pool, on_search=lambda n: print(n, flush=True))
    engine.search(json.loads(epds), SearchLimit(nodes=int(nodes)), 2)
"""


def killed_and_run_again(folder: Path, command: list[str], nodes: int, kills: int) -> None:
    """SIGKILL after a few searches, again and again: none is done twice, none is lost."""
    path = folder / "s.db"
    done = 0
    for kill in range(kills + 1):
        child = started(RUN, str(path), str(nodes), json.dumps(EPDS), *command)
        printed = 0
        for _ in child.stdout:
            printed += 1
            if kill < kills and printed == 4:
                os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        with EvaluationStore(path) as store:
            # One more may be in the store than was printed.
            assert 0 <= len(store) - done - printed <= 1
            done = len(store)
            if kill == kills:
                assert (child.returncode, done) == (0, len(EPDS))
                store.export(folder / "killed.db")
    with EvaluationStore(":memory:") as store, EnginePool(command, workers=1) as pool:
        StoredEngine(store, pool).search(EPDS, SearchLimit(nodes=nodes), 2)
        store.export(folder / "undisturbed.db")
    assert (folder / "killed.db").read_bytes() == (folder / "undisturbed.db").read_bytes()


# Costs seconds: a run in a process of its own, which is killed.
def test_killed_run_goes_on(tmp_path: Path) -> None:
    killed_and_run_again(tmp_path, FAKE, 1000, kills=1)


@pytest.mark.engine
@pytest.mark.slow("with another engine in test_killed_run_goes_on")
def test_killed_run_goes_on_with_stockfish(tmp_path: Path) -> None:
    killed_and_run_again(tmp_path, [str(find_engine())], 20_000, kills=2)
