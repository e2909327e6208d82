"""Searches through the store: each position once, nothing lost, and an answer without an engine."""

import dataclasses
import functools

import pytest
from tqdm import tqdm

from precomp_games import config
from precomp_games.chess.engines import stored_engine as search_module
from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.engines.store import EvaluationStore, StoreError
from precomp_games.chess.engines.stored_engine import StoredEngine
from tests.chess.test_engine import EPDS, FAKE, LIMIT, ONE_MOVE, STALEMATE, answered, expected, forked

ALL = [expected(epd, 2) for epd in EPDS]


@pytest.fixture(scope="module")
def pool():
    with EnginePool(FAKE, workers=2) as made:
        yield made


@pytest.fixture
def store():
    with EvaluationStore(":memory:") as made:
        yield made


def test_each_position_is_searched_once(store, pool):
    counts = []
    engine = StoredEngine(store, pool, on_search=counts.append)
    asked = [*EPDS[:5], EPDS[0], EPDS[3]]
    later = [*EPDS[3:7], ONE_MOVE]
    for epds, searches, hits in ((asked, 5, 0), (asked, 5, 5), (later, 8, 7), ([], 8, 7)):
        assert engine.search(iter(epds), LIMIT, 2) == [expected(epd, 2) for epd in epds]
        assert (engine.searches, engine.hits) == (searches, hits)
    engine.search(EPDS[:2], LIMIT, 1)  # another MultiPV and another limit are other searches
    engine.search(EPDS[:2], SearchLimit(nodes=2000), 2)
    assert counts == list(range(1, 13)) and engine.searches == len(store) == 12
    second = StoredEngine(store, pool, engine_id=pool.engine_id)
    assert second.search(later, LIMIT, 2) == [expected(epd, 2) for epd in later]
    assert (second.searches, second.hits) == (0, 5)


def test_what_is_played_is_searched_once(tmp_path):
    """Draws differ from search to search; stored, they are the same for everyone."""
    epds, path = EPDS[:5], tmp_path / "s.db"
    with (
        EvaluationStore(path) as store,
        EnginePool(FAKE, workers=2, options={"Skill Level": 5}) as pool,
    ):
        engine, again = StoredEngine(store, pool), StoredEngine(store, pool)
        lines = engine.search(epds, LIMIT, 1)
        drawn = engine.search(epds, LIMIT, 1, samples=20)
        assert (engine.searches, engine.hits, len(store)) == (10, 0, 5)
        for each in (engine, again):
            assert each.search(epds, LIMIT, 1, 20) == drawn
        assert engine.search(epds, LIMIT, 1) == lines == [expected(epd, 1) for epd in epds]
        assert {result.samples for result in again.search(epds, LIMIT, 1, 7)} == {7}
        assert (engine.searches, again.searches) == (10, 5)
    with EvaluationStore(path, read_only=True) as store:
        engine = StoredEngine(store, engine_id="Fake 1.0 [Skill Level=5]")
        assert engine.search(epds, LIMIT, 1, 20) == drawn
        with pytest.raises(EngineError, match="MultiPV 1, 3 for the move played, to be stored in"):
            engine.search(epds, LIMIT, 1, 3)


def test_draws_of_another_run_stay(store, pool):
    """Two runs that search a position at once go on with the draws that were stored first."""
    theirs = dataclasses.replace(answered(EPDS[0], 1), played=(("a2a3", 20),))

    class Meanwhile(tqdm):
        def __enter__(self):
            store.put(pool.engine_id, LIMIT, 1, EPDS[0], theirs)
            return super().__enter__()

    with config(progress=functools.partial(Meanwhile, disable=True)):
        assert StoredEngine(store, pool).search(EPDS[:1], LIMIT, 1, 20) == [theirs]


def test_memory_is_bounded(store, pool, monkeypatch):
    monkeypatch.setattr(search_module, "REMEMBERED", 4)
    engine = StoredEngine(store, pool)
    for _ in range(2):
        assert engine.search(EPDS, LIMIT, 2) == ALL
    assert (len(engine._memory), engine.searches, engine.hits) == (4, len(EPDS), len(EPDS))


def test_a_search_that_fails_or_is_not_stored_keeps_the_others(store, pool):
    with EnginePool([*FAKE, "--fault=exit", "--only", EPDS[5]], workers=1, retries=0) as failing:
        engine = StoredEngine(store, failing)
        with pytest.raises(EngineError, match="process died"):
            engine.search(EPDS, LIMIT, 2)
        assert (engine.searches, len(store)) == (5, 5)
    engine = StoredEngine(store, pool)
    store._db.execute("PRAGMA query_only = 1")  # as a full disk
    with pytest.raises(StoreError, match=r"^StoredEngine\.search\(\): expected"):
        engine.search(EPDS, LIMIT, 2)
    store._db.execute("PRAGMA query_only = 0")
    assert engine.search(EPDS, LIMIT, 2) == ALL
    assert (engine.searches, len(store)) == (len(EPDS) - 5, len(EPDS))


def test_without_an_engine_there_is_what_is_stored(pool, tmp_path):
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        with pytest.raises(EngineError, match="got an empty store: install Stockfish"):
            StoredEngine(store)
        StoredEngine(store, pool).search(EPDS[:6], LIMIT, 2)
    with EvaluationStore(path, read_only=True) as store:
        engine = StoredEngine(store)
        assert engine.engine_id == "Fake 1.0"
        assert engine.search(EPDS[:6], LIMIT, 2) == ALL[:6]
        assert (engine.searches, engine.hits) == (0, 6)
        for epds, limit, told in (
            ([*EPDS[:8], EPDS[7]], LIMIT, r"got 2 position\(s\) that are not.*apt install"),
            (EPDS[:2], SearchLimit(nodes=7), r"at nodes=7, MultiPV 2, to be stored"),
        ):
            with pytest.raises(EngineError, match=told):
                engine.search(epds, limit, 2)
        with pytest.raises(ValueError, match="expected a position as EPD"):
            engine.search([STALEMATE], LIMIT, 2)
        with pytest.raises(EngineError, match=r"the engine 'Other' in .*got \['Fake 1.0'\]"):
            StoredEngine(store, engine_id="Other")
    with EvaluationStore(path) as store:
        store.put("Other", LIMIT, 2, EPDS[0], ALL[0])
        with pytest.raises(EngineError, match=r"got \['Fake 1.0', 'Other'\]: name one of them"):
            StoredEngine(store)
        assert StoredEngine(store, engine_id="Other").search(EPDS[:1], LIMIT, 2) == ALL[:1]


def test_a_run_that_is_killed_goes_on(tmp_path):
    """SIGKILL after a few searches, again and again: none is done twice, none is lost."""
    path, done = tmp_path / "s.db", 0

    def run(tell):
        with EvaluationStore(path) as store, EnginePool(FAKE, workers=2) as pool:
            StoredEngine(store, pool, on_search=tell).search(EPDS, LIMIT, 2)

    for kill in range(3):
        child, heard = forked(run)
        printed = 0
        while heard.poll(None):
            try:
                heard.recv()
            except EOFError:
                break
            printed += 1
            if kill < 2 and printed == 4:
                child.kill()
        child.join()
        with EvaluationStore(path) as store:
            # One more may be in the store than was printed.
            assert 0 <= len(store) - done - printed <= 1
            done = len(store)
            store.export(tmp_path / "killed.db")
    assert (child.exitcode, done) == (0, len(EPDS))
    with EvaluationStore(":memory:") as store, EnginePool(FAKE, workers=1) as pool:
        StoredEngine(store, pool).search(EPDS, LIMIT, 2)
        store.export(tmp_path / "undisturbed.db")
    assert (tmp_path / "killed.db").read_bytes() == (tmp_path / "undisturbed.db").read_bytes()
