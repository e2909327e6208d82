"""The store: what was put is there, whatever happened; and searches through it, each position once."""

import contextlib
import dataclasses
import functools
import os
import resource
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

from precomp_games import config
from precomp_games.chess.engines import stored_engine as search_module
from precomp_games.chess.engines.pool import EngineError, EnginePool
from precomp_games.chess.engines.searches import Line, SearchLimit, SearchResult
from precomp_games.chess.engines.store import EvaluationStore, StoreError, _create_tables
from precomp_games.chess.engines.stored_engine import StoredEngine
from tests.chess.test_engine import DEPTH, EPDS, FAKE, LIMIT, ONE_MOVE, STALEMATE, answered, expected, forked
from tests.properties import examples

RESULT = SearchResult((Line("e2e4", 31, None), Line("d2d4", -28, None)), 7, 1003)
PLAYED = dataclasses.replace(RESULT, played=(("d2d4", 13), ("e2e4", 7)))

OF = [("A 1", "nodes=1000", 2), ("A 1", "depth=4", 1), ("B [x=1]", "nodes=1000", 2)]
MOVES = st.permutations(["e2e4", "d2d4", "a7a6", "e7e8q"])
NO_SCORES = [(1.5, None), (1, 1), (None, None), (None, 0)]
SCORES = st.tuples(st.integers(-50_000, 50_000), st.none()) | st.tuples(
    st.none(), st.integers(-10_000, -1) | st.integers(1, 10_000)
)


@pytest.fixture
def store():
    with EvaluationStore(":memory:") as made:
        yield made


@st.composite
def puts(draw):
    """Return a key and a result, which may have what was played, and then need have no line of one asked."""
    key = (*draw(st.sampled_from(OF)), draw(st.sampled_from("pqrs")))
    moves = draw(MOVES)
    played = tuple((move, draw(st.integers(1, 2))) for move in moves[: draw(st.integers(0, 2))])
    least = 0 if played and key[2] == 1 else 1
    lines = tuple(Line(move, *draw(SCORES)) for move in moves[: draw(st.integers(least, key[2]))])
    return key, SearchResult(lines, draw(st.integers(0, 10_000)), draw(st.integers(0, 10**17)), played)


@examples(80)
@given(st.lists(puts() | st.sampled_from(["close", "kill", "copy"]), max_size=30))
def test_a_store_keeps_what_was_put_first(tmp_path_factory, steps):
    """Against a dictionary, wherever it is closed, killed or copied; and copies keep no order."""
    folder = tmp_path_factory.mktemp("stores")
    path, kept = folder / "0.db", {}  # by key and samples, which are 0 for lines alone
    store = EvaluationStore(path)
    for number, step in enumerate(steps, 1):
        if isinstance(step, tuple):
            key, result = step
            store.put(*key, result)
            lines = kept.setdefault((*key, 0), dataclasses.replace(result, played=()))
            if result.played:
                first = dataclasses.replace(lines, played=result.played)
                kept.setdefault((*key, result.samples), first)
            continue
        before, path = path, folder / (path.name if step == "close" else f"{number}.db")
        if step == "copy":
            store.export(path)
        elif step == "kill":  # what a process leaves that ends here
            for file in folder.glob(f"{before.name}*"):
                shutil.copy(file, folder / file.name.replace(before.name, path.name))
        store.close()
        assert not Path(f"{before}-wal").exists()
        store = EvaluationStore(path)
    asked = ["p", "q", *map(str, range(700)), "r", "s", "p"]  # more than a query takes
    assert len(store) == sum(samples == 0 for *_, samples in kept)
    assert store.engines() == sorted({engine for engine, *_ in kept})
    for of in [*OF, ("A 1", "nodes=1000", 3), ("C", "nodes=1000", 2)]:
        for samples in range(5):
            wanted = {epd: kept.get((*of, epd, samples)) for epd in "pqrs"}
            found = {epd: each for epd, each in wanted.items() if each and (samples or each.lines)}
            assert store.get_many(*of, asked, samples) == found
    store.export(folder / "copy.db")
    store.close()
    with EvaluationStore(":memory:") as other, EvaluationStore(folder / "copy.db", read_only=True) as copy:
        for *key, samples in sorted(kept, reverse=True):
            if samples or not any((*key, n) in kept for n in range(1, 5)):
                other.put(*key, kept[*key, samples])
        other.export(folder / "again.db")
        copy.export(folder / "third.db")
    assert len({(folder / f"{name}.db").read_bytes() for name in ("copy", "again", "third")}) == 1


def test_results_that_could_not_be_read_back_are_refused(store):
    for multipv, changes in (
        (1, {}),  # two lines, of one that was asked for
        (2, {"lines": ()}),  # a move without a line, of a search for two
        (2, {"depth": 10_001}),
        (2, {"played": (("d2d4", 1), ("d2d4", 1))}),
        (2, {"played": (("d2d9", 1),)}),
    ):
        with pytest.raises(ValueError, match="expected a search result"):
            store.put("A", LIMIT, multipv, "p", dataclasses.replace(PLAYED, **changes))
    assert len(store) == 0 and store  # not false for being empty
    absurd = [(50_001, None), (-50_001, None), (None, 10_001), (None, -(10**9))]
    for move, cp, mate in [("e2e9", 1, None), *(("e2e4", *score) for score in [*NO_SCORES, *absurd])]:
        with pytest.raises(ValueError, match=r"Line\(\): expected"):
            Line(move, cp, mate)


def test_what_earlier_versions_kept_besides_is_ignored(tmp_path):
    """They wrote the lines of a search on its way, and those that it reported last."""
    path = tmp_path / "old.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", PLAYED)
        store._db.execute("UPDATE plays SET last = 'a7a6:0 a7a5:#-2'")
        store._db.execute(
            "CREATE TABLE IF NOT EXISTS iterations (engine INTEGER NOT NULL, budget INTEGER NOT NULL,"
            " multipv INTEGER NOT NULL, epd TEXT NOT NULL, iterations TEXT NOT NULL,"
            " PRIMARY KEY (engine, budget, multipv, epd)) WITHOUT ROWID"
        )
        store._db.execute("INSERT INTO iterations VALUES (1, 1, 2, 'p', '1 56 e2e4:31 d2d4:-28')")
    for read_only in (True, False):
        with EvaluationStore(path, read_only) as store:
            assert store.get_many("A", LIMIT, 2, ["p"], 20) == {"p": PLAYED}
            store.export(tmp_path / "copy.db")
        with EvaluationStore(tmp_path / "copy.db") as copy:
            copy.put("A", LIMIT, 2, "q", PLAYED)
            assert copy.get_many("A", LIMIT, 2, ["p", "q"], 20) == {"p": PLAYED, "q": PLAYED}


BAD_LINES = (
    *("", "e2e4", "e2e4:1 ", "e2e4:+1", "e2e4:01", "e2e4:#0", "e2e9:1", "e2e4:1.5", "e2e4:\u0661"),
    *("e2e4:1 e2e4:2", "e2e4:1 d2d4:1 c2c4:1", b"e2e4:1"),
)
BAD_PLAYED = ("", "d2d4:19", "d2d4:20 ", "d2d4:10 d2d4:10", b"d2d4:20")


@pytest.mark.parametrize(
    ("change", "texts"), [("searches SET lines", BAD_LINES), ("plays SET played", BAD_PLAYED)]
)
def test_damaged_rows_are_refused_and_others_read(store, change, texts):
    for epd in ("p", "q"):
        store.put("A", LIMIT, 2, epd, PLAYED)
    for text in texts:
        store._db.execute(f"UPDATE {change} = ? WHERE epd = 'q'", (text,))
        assert store.get_many("A", LIMIT, 2, ["p"], 20) == {"p": PLAYED}
        if texts is BAD_PLAYED:
            assert store.get_many("A", LIMIT, 2, ["q"]) == {"q": RESULT}
        with pytest.raises(StoreError, match=r"expected a search in .* for 'q', got .* damaged"):
            store.get_many("A", LIMIT, 2, ["p", "q"], 20)


def test_no_put_that_has_returned_is_lost_where_one_of_two_processes_is_killed(tmp_path):
    """Both create the file."""
    path = tmp_path / "s.db"

    def put(tell, name, count):
        store = EvaluationStore(path)
        for i in range(count):
            store.put("A", "nodes=5", 1, f"{name}{i}", SearchResult((Line("e2e4", i % 100, None),), 1, i))
            tell(i)

    (killed, first), (other, second) = forked(put, "a", 10**9), forked(put, "b", 100)
    message = [first.recv() for _ in range(100)]
    killed.kill()
    with contextlib.suppress(EOFError):
        while True:
            message.append(first.recv())
    assert [second.recv() for _ in range(100)] == list(range(100))
    other.join()
    killed.join()
    with EvaluationStore(path) as store:
        for name, count in (("a", len(message)), ("b", 100)):
            found = store.get_many("A", "nodes=5", 1, [f"{name}{i}" for i in range(count)])
            assert [found[f"{name}{i}"].nodes for i in range(count)] == list(range(count))
        assert store.engines() == ["A"]


def test_threads_may_share_a_store(store):
    def work(name):
        for i in range(50):
            store.put(name, LIMIT, 2, f"p{i}", RESULT)
            assert store.get_many(name, LIMIT, 2, [f"p{i}"])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, "abcd"))
    assert len(store) == 200


def test_what_is_no_store_is_refused_and_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.db").touch()
    (tmp_path / "notes.txt").write_text("Dear diary, " * 200)
    for name, statement in (("other.db", "CREATE TABLE t (a)"), ("new.db", "PRAGMA user_version = 2")):
        if name == "new.db":
            EvaluationStore(tmp_path / name).close()
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as db:
            db.execute(statement)
    for name, message in (
        ("no/s.db", "directory does not exist"),
        (".", "it is a directory or a device"),
        ("none.db", "no such file"),
        # Nobody writes to it: opening it to read would wait for ever.
        ("pipe", "it is a directory or a device, which keeps nothing: name a file"),
        (os.devnull, "it is a directory or a device"),
        ("empty.db", "got an empty file"),
        ("notes.txt", "not a database: the file is"),
        ("other.db", "another program"),
        ("new.db", "schema version 1, got version 2"),
    ):
        path = tmp_path / name
        before = path.is_file() and path.read_bytes()
        for read_only in (True,) if name in ("none.db", "empty.db") else (True, False):
            with pytest.raises(StoreError, match=rf"EvaluationStore\(\): .*{message}"):
                EvaluationStore(path, read_only)
        assert (path.is_file() and path.read_bytes()) == before
    with EvaluationStore(tmp_path / "empty.db") as store:  # what a killed creation leaves
        assert len(store) == 0


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        for i in range(500):
            store.put("A", LIMIT, 2, f"p{i}", RESULT)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))  # all pages but the first
    damaged = pytest.raises(StoreError, match=r"damaged: move it away|restore a copy")
    with damaged, EvaluationStore(path) as store:
        store.get_many("A", LIMIT, 2, [f"p{i}" for i in range(500)])
    path.write_bytes(data[:50])
    with pytest.raises(StoreError):
        EvaluationStore(path)


@pytest.mark.parametrize("how", ["pages", "file size"])
def test_a_full_disk_costs_nothing_that_is_stored(tmp_path, how):
    with EvaluationStore(tmp_path / "s.db") as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        stored, limits = ["p"], resource.getrlimit(resource.RLIMIT_FSIZE)
        if how == "pages":
            store._db.execute("PRAGMA max_page_count = 12")
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            for engine in "AB":  # a new engine needs a transaction
                with pytest.raises(StoreError, match=r"put\(\): .*(full|disk i/o).*: free disk space"):
                    for i in range(10000):
                        store.put(engine, LIMIT, 2, f"p{i}", RESULT)
                        stored += [f"p{i}"] if engine == "A" else []
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert set(store.get_many("A", LIMIT, 2, [*stored, "other"])) == set(stored)


def test_a_store_is_read_where_nothing_may_be_written(tmp_path):
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        with EvaluationStore(path, read_only=True) as reader:  # the row stands in the journal
            assert len(reader) == 1
            store.put("A", LIMIT, 2, "q", RESULT)
            assert len(reader) == 2
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with EvaluationStore(path, read_only=True) as store:
            assert store.get_many("A", LIMIT, 2, ["p"]) == {"p": RESULT}
            assert store.engines() == ["A"]
            with pytest.raises(StoreError, match="opened read-only"):
                store.put("A", LIMIT, 2, "r", RESULT)
        if os.geteuid() != 0:
            with pytest.raises(StoreError, match="check the permissions"):
                EvaluationStore(path)
    finally:
        tmp_path.chmod(0o755)
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]
    with pytest.raises(ValueError, match="':memory:'"):
        EvaluationStore(":memory:", read_only=True)


@pytest.mark.parametrize("made", [True, False])
def test_a_store_that_another_process_writes_or_makes_is_waited_for(tmp_path, made):
    path = tmp_path / "s.db"
    stores = [EvaluationStore(path)] if made else []

    def put():
        with stores[0] if made else EvaluationStore(path) as store:
            store.put("A", LIMIT, 2, "p", RESULT)
            return len(store)

    other = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    with contextlib.closing(other), ThreadPoolExecutor(1) as beside:
        other.execute("BEGIN IMMEDIATE")
        waiting = beside.submit(put)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        if not made:
            _create_tables(other)
        other.execute("COMMIT")
        assert waiting.result(20.0) == 1


def test_keys_that_are_none_are_refused_and_closed_stores(store, tmp_path):
    store.put("A", LIMIT, 2, "p", RESULT)
    for engine, epd in (("", "p"), ("A", "")):
        with pytest.raises(ValueError, match="to be text, got ''"):
            store.put(engine, LIMIT, 2, epd, RESULT)
    for key in ((1, LIMIT, 2, "p"), ("A", "nodes=010", 2, "p"), ("A", LIMIT, 10**30, "p"), ("A", LIMIT), 7):
        with pytest.raises(ValueError, match=r"^EvaluationStore.export\(\): expected"):
            store.export(tmp_path / "copy.db", keys=[("A", LIMIT, 2, "p"), key])
    assert not list(tmp_path.iterdir())
    store.close()
    store.close()
    for use in (lambda: store.put("A", LIMIT, 2, "p", RESULT), store.__len__):
        with pytest.raises(StoreError, match="got a closed one"):
            use()


def test_a_copy_has_the_keys_that_are_named(tmp_path):
    source, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with EvaluationStore(source) as store:
        for engine in "BA":
            for i in range(10):
                store.put(engine, LIMIT, 2, f"p{i}", PLAYED)
        store.put("A", LIMIT, 1, "p1", dataclasses.replace(RESULT, lines=RESULT.lines[:1]))
        store.export(copy, keys=[["A", LIMIT, 2, "p1"], ("A", LIMIT, 1, "p1"), ("A", "nodes=1000", 2, "p9")])
        with EvaluationStore(copy) as reader:
            assert (len(reader), reader.engines()) == (3, ["A"])
            assert reader.get_many("A", LIMIT, 2, ["p1", "p2"], 20) == {"p1": PLAYED}
        before = copy.read_bytes()
        for path, keys, message in (
            (copy, [("A", LIMIT, 2, "p1"), ("A", LIMIT, 2, "none")], "got 1 of 2 that are not"),
            (source, None, "no store is open on"),
            (tmp_path / "no" / "x.db", None, "expected to write"),
        ):
            with pytest.raises(StoreError, match=message):
                store.export(path, keys)
        assert copy.read_bytes() == before


# -- searches through it -------------------------------------------------------------------------------------

ALL = [expected(epd, 2) for epd in EPDS]


@pytest.fixture(scope="module")
def pool():
    with EnginePool(FAKE, workers=2) as made:
        yield made


POSITIONS = st.lists(st.sampled_from([*EPDS[:4], ONE_MOVE]), max_size=6)
HOW = st.sampled_from([(LIMIT, 1, 0), (LIMIT, 2, 0), (DEPTH, 2, 0), (LIMIT, 1, 3), (LIMIT, 2, 1)])


@examples(40)
@given(st.lists(st.lists(st.tuples(POSITIONS, HOW), max_size=5), max_size=3), st.integers(1, 6))
def test_each_position_is_searched_once(pool, runs, remembered):
    """In several runs on a store, each of which may remember few of them."""
    known = set()
    with EvaluationStore(":memory:") as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "REMEMBERED", remembered)
        for calls in runs:
            hits, counts = 0, []
            engine = StoredEngine(store, pool, engine_id=pool.engine_id, on_search=counts.append)
            for epds, (limit, multipv, samples) in calls:
                wanted = [answered(epd, multipv, limit, samples) for epd in epds]
                wanted = wanted if samples else [dataclasses.replace(each, played=()) for each in wanted]
                keys = {(epd, limit, multipv, samples) for epd in epds}
                hits, searches = hits + len(keys & known), len(counts) + len(keys - known)
                assert engine.search(iter(epds), limit, multipv, samples) == wanted
                assert (engine.hits, engine.searches) == (hits, searches)
                assert counts == list(range(1, searches + 1))
                known |= keys | {(*key[:3], 0) for key in keys}
            asked = {(epd, *how) for epds, how in calls for epd in epds}
            assert len(engine._memory) == min(remembered, len(asked))


def test_what_is_drawn_is_drawn_once(tmp_path):
    """Draws differ from search to search; stored, they are the same for everyone."""
    epds, path = EPDS[:5], tmp_path / "s.db"
    with (
        EvaluationStore(path) as store,
        EnginePool(FAKE, workers=2, options={"Skill Level": 5}) as pool,
    ):
        engine, again = StoredEngine(store, pool), StoredEngine(store, pool)
        drawn = engine.search(epds, LIMIT, 1, samples=20)
        assert engine.search(epds, LIMIT, 1, 20) == again.search(epds, LIMIT, 1, 20) == drawn
        assert {result.samples for result in again.search(epds, LIMIT, 1, 7)} == {7}
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
        for epds, limit, message in (
            ([*EPDS[:8], EPDS[7]], LIMIT, r"got 2 position\(s\) that are not.*apt install"),
            (EPDS[:2], SearchLimit(nodes=7), r"at nodes=7, MultiPV 2, to be stored"),
        ):
            with pytest.raises(EngineError, match=message):
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
