"""The store: what was put is there, whatever happened, and what is not a store is refused."""

import contextlib
import dataclasses
import os
import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from precomp_games.chess.engines.searches import Line, SearchLimit, SearchResult
from precomp_games.chess.engines.store import EvaluationStore, StoreError
from tests.chess.test_engine import started

LIMIT = SearchLimit(nodes=1000)
RESULT = SearchResult((Line("e2e4", 31, None), Line("d2d4", -28, None)), 7, 1003)
MATES = SearchResult((Line("e7e8q", None, 3), Line("a7a6", 0, None), Line("a7a5", None, -2)), 9, 5)


PLAYED = dataclasses.replace(RESULT, played=(("d2d4", 13), ("e2e4", 7)))
SHIPPED = Path(__file__).parents[2] / "precomp_games" / "commands" / "data" / "evaluations.sqlite"


def drawn(rng: random.Random) -> SearchResult:
    """Return a result of two lines, in two cases of three with what was played in so many searches."""
    moves = rng.sample(["e2e4", "d2d4", "a7a6", "e7e8q"], 2)
    scores = [(rng.randint(-50_000, 50_000), None), (None, rng.choice([-10_000, -2, 1, 3]))]
    lines = tuple(Line(move, *rng.choice(scores)) for move in moves)
    found = SearchResult(lines, rng.randint(0, 10_000), rng.randint(0, 10**17))
    played = rng.choice([(), ((moves[0], 1),), ((moves[0], 4), (moves[1], 3))])
    return dataclasses.replace(found, played=played)


def test_a_store_keeps_what_was_put_first(tmp_path: Path) -> None:
    """Against a dictionary; also where it is opened again, and in copies, which keep no order."""
    rng, epds = random.Random(1), [f"p{i}" for i in range(700)]  # more than a query takes
    of = [("A 1", "nodes=1000", 2), ("A 1", "depth=4", 3), ("B [x=1]", "nodes=1000", 2)]
    kept: dict[Any, SearchResult] = {}  # by key and samples, which are 0 for lines alone

    def check(path: Path, **how: bool) -> None:
        with EvaluationStore(path, **how) as store:
            assert len(store) == sum(samples == 0 for *_, samples in kept)
            assert store.engines() == ["A 1", "B [x=1]"]
            for engine, limit, multipv in [*of, ("A 1", "nodes=1000", 3), ("C", "nodes=1000", 2)]:
                for samples in (0, 1, 2, 7):
                    keys = {epd: (engine, limit, multipv, epd, samples) for epd in epds}
                    found = store.get_many(engine, SearchLimit.parse(limit), multipv, [*epds, "p1"], samples)
                    assert found == {epd: kept[key] for epd, key in keys.items() if key in kept}

    with EvaluationStore(tmp_path / "s.db") as store:
        for _ in range(1000):
            key, result = (*rng.choice(of), rng.choice(epds)), drawn(rng)
            store.put(*key, result)
            lines = kept.setdefault((*key, 0), dataclasses.replace(result, played=()))
            if result.played:
                first = dataclasses.replace(lines, played=result.played)
                kept.setdefault((*key, result.samples), first)
        store.export(tmp_path / "copy.db")
    check(tmp_path / "s.db")
    check(tmp_path / "copy.db", read_only=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "s.db"]  # no journal is left
    with EvaluationStore(":memory:") as other:
        for *key, samples in sorted(kept, reverse=True):
            other.put(*key, kept[*key, samples])
        other.export(tmp_path / "again.db")
    assert (tmp_path / "again.db").read_bytes() == (tmp_path / "copy.db").read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"lines": MATES.lines},  # three, of two that were asked for
        {"depth": 10_001},
        {"played": (("d2d4", 1), ("d2d4", 1))},
        {"played": (("d2d9", 1),)},
    ],
)
def test_results_that_could_not_be_read_back(changes: dict[str, object]) -> None:
    with EvaluationStore(":memory:") as store:
        with pytest.raises(ValueError, match="expected a search result"):
            store.put("A", LIMIT, 2, "p", dataclasses.replace(PLAYED, **changes))
        assert len(store) == 0 and store  # not false for being empty


def test_lines_that_are_none() -> None:
    absurd = [(50_001, None), (-50_001, None), (None, 10_001), (None, -(10**9))]
    for cp, mate in [(1.5, None), (1, 1), (None, None), (None, 0), *absurd]:
        with pytest.raises(ValueError, match=r"Line\(\): expected"):
            Line("e2e4", cp, mate)
    with pytest.raises(ValueError, match=r"Line\(\): expected a UCI move"):
        Line("e2e9", 1, None)


def test_a_store_from_before_moves_were_kept(tmp_path: Path) -> None:
    with EvaluationStore(SHIPPED, read_only=True) as store:
        (engine,) = store.engines()
        epd, multipv, limit = store._db.execute(
            "SELECT epd, multipv, budgets.name FROM searches JOIN budgets ON budgets.id = budget"
        ).fetchone()
        before = store.get_many(engine, limit, multipv, [epd])
        assert list(before) == [epd]
        assert store.get_many(engine, limit, multipv, [epd], samples=1) == {}
    path = tmp_path / "old.db"
    shutil.copy(SHIPPED, path)
    with EvaluationStore(path) as store:
        result = dataclasses.replace(before[epd], played=((before[epd].lines[0].move, 1),))
        store.put(engine, limit, multipv, epd, result)
        assert store.get_many(engine, limit, multipv, [epd]) == before
        assert store.get_many(engine, limit, multipv, [epd], 1) == {epd: result}


def test_a_store_that_keeps_more_than_is_read(tmp_path: Path) -> None:
    """Earlier versions wrote the lines of a search on its way, and those that it reported last."""
    path, copy = tmp_path / "old.db", tmp_path / "copy.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", PLAYED)
        store._db.execute("UPDATE plays SET last = 'a7a6:0 a7a5:#-2'")
        store._db.execute(
            "CREATE TABLE IF NOT EXISTS iterations (engine INTEGER NOT NULL, budget INTEGER NOT NULL,"
            " multipv INTEGER NOT NULL, epd TEXT NOT NULL, iterations TEXT NOT NULL,"
            " PRIMARY KEY (engine, budget, multipv, epd)) WITHOUT ROWID"
        )
        store._db.execute("INSERT INTO iterations VALUES (1, 1, 2, 'p', '1 56 e2e4:31 d2d4:-28')")
    for each, how in ((path, {"read_only": True}), (path, {})):
        with EvaluationStore(each, **how) as store:
            assert store.get_many("A", LIMIT, 2, ["p"], 20) == {"p": PLAYED}
            assert store.get_many("A", LIMIT, 2, ["p"]) == {"p": RESULT}
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "q", PLAYED)
        store.export(copy)
    with EvaluationStore(copy, read_only=True) as store:
        assert store.get_many("A", LIMIT, 2, ["p", "q"], 20) == {"p": PLAYED, "q": PLAYED}


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (
            "lines",
            ["", "e2e4", "e2e4:1 ", "e2e4:+1", "e2e4:01", "e2e4:#0", "e2e9:1", "e2e4:1.5", "e2e4:\u0661"],
        ),
        ("lines", ["e2e4:1 e2e4:2", "e2e4:1 d2d4:1 c2c4:1", b"e2e4:1"]),
        ("played", ["", "d2d4:19", "d2d4:20 ", "d2d4:10 d2d4:10", b"d2d4:20"]),
    ],
)
def test_damaged_rows(column: str, texts: list[object]) -> None:
    table = "searches" if column == "lines" else "plays"
    with EvaluationStore(":memory:") as store:
        for epd in ("p", "q"):
            store.put("A", LIMIT, 2, epd, PLAYED)
        for text in texts:
            store._db.execute(f"UPDATE {table} SET {column} = ? WHERE epd = 'q'", (text,))
            assert store.get_many("A", LIMIT, 2, ["p"], 20) == {"p": PLAYED}
            if table != "searches":
                assert store.get_many("A", LIMIT, 2, ["q"]) == {"q": RESULT}
            with pytest.raises(StoreError, match=r"expected a search in .* for 'q', got .* damaged"):
                store.get_many("A", LIMIT, 2, ["p", "q"], 20)


def test_a_move_without_a_line() -> None:
    """It is there for whoever asks what was played, and for nobody else; before its like or after."""
    alone = SearchResult((), 3, 30, (("e2e4", 1),))
    lines = SearchResult((Line("d2d4", 5, None),), 3, 30, (("d2d4", 1), ("e2e4", 1)))
    for first, then in ((alone, lines), (lines, alone)):
        with EvaluationStore(":memory:") as store:
            store.put("A", LIMIT, 1, "p", first)
            store.put("A", LIMIT, 1, "p", then)
            assert store.get_many("A", LIMIT, 1, ["p"]) == (
                {"p": SearchResult(lines.lines, 3, 30)} if first is lines else {}
            )
            for each in (alone, lines):
                found = store.get_many("A", LIMIT, 1, ["p"], each.samples)["p"]
                assert found.played == each.played
            with pytest.raises(ValueError, match="expected a search result"):
                store.put("A", LIMIT, 2, "p", alone)


PUTS = """
import sys
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.engines.store import EvaluationStore
store = EvaluationStore(sys.argv[1])
for i in range(10**9):
    store.put("A", "nodes=5", 1, f"{sys.argv[2]}{i}", SearchResult((Line("e2e4", i, None),), 1, i))
    print(i, flush=True)
"""


def test_two_processes_at_once_of_which_one_is_killed(tmp_path: Path) -> None:
    """Both create the file, and no put that has returned is lost."""
    path = str(tmp_path / "s.db")
    killed, other = started(PUTS, path, "a"), started(PUTS.replace("10**9", "100"), path, "b")
    first = [killed.stdout.readline() for _ in range(100)]
    os.kill(killed.pid, signal.SIGKILL)
    rest, error = killed.communicate(timeout=60)
    last = int([*first, *rest.splitlines()][-1])
    out, err = other.communicate(timeout=60)
    assert (error, other.returncode, err, len(out.split())) == ("", 0, "", 100)
    with EvaluationStore(path) as store:
        for name, count in (("a", last + 1), ("b", 100)):
            found = store.get_many("A", "nodes=5", 1, [f"{name}{i}" for i in range(count)])
            assert [found[f"{name}{i}"].nodes for i in range(count)] == list(range(count))
        assert store.engines() == ["A"]


def test_threads() -> None:
    with EvaluationStore(":memory:") as store, ThreadPoolExecutor(4) as threads:

        def work(name: str) -> None:
            for i in range(50):
                store.put(name, LIMIT, 2, f"p{i}", RESULT)
                assert store.get_many(name, LIMIT, 2, [f"p{i}"])

        list(threads.map(work, "abcd"))
        assert len(store) == 200


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("Dear diary, " * 200)
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (a)")
    for path, told in ((text, "not a database: the file is"), (other, "another program")):
        before = path.read_bytes()
        with pytest.raises(StoreError, match=rf"EvaluationStore\(\): .*{told}"):
            EvaluationStore(path)
        assert path.read_bytes() == before


def test_paths_of_no_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty.db").touch()
    for name, modes, told in (
        ("no/s.db", (False, True), "directory does not exist"),
        (".", (False, True), "it is a directory or a device"),
        ("none.db", (True,), "no such file"),
        # Nobody writes to it: opening it to read would wait for ever.
        ("pipe", (False, True), "it is a directory or a device, which keeps nothing: name a file"),
        (os.devnull, (False, True), "it is a directory or a device"),
        ("empty.db", (True,), "got an empty file"),
    ):
        for read_only in modes:
            with pytest.raises(StoreError, match=told):
                EvaluationStore(tmp_path / name, read_only)
    with EvaluationStore(tmp_path / "empty.db") as store:  # what a killed creation leaves
        assert len(store) == 0


def test_other_version(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    EvaluationStore(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="schema version 1, got version 2"):
            EvaluationStore(path, read_only=read_only)


def test_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        for i in range(500):
            store.put("A", LIMIT, 2, f"p{i}", RESULT)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)  # all pages but the first
    path.write_bytes(data)
    with (
        pytest.raises(StoreError, match=r"damaged: move it away|restore a copy"),
        EvaluationStore(path) as store,
    ):
        store.get_many("A", LIMIT, 2, [f"p{i}" for i in range(500)])
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreError):
        EvaluationStore(path)


@contextlib.contextmanager
def full_disk(store: EvaluationStore, how: str) -> Iterator[None]:
    """No more than a few pages can be written."""
    if how == "pages":
        store._db.execute("PRAGMA max_page_count = 12")
        yield
        return
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("how", ["pages", "file size"])
def test_disk_full(tmp_path: Path, how: str) -> None:
    with EvaluationStore(tmp_path / "s.db") as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        stored = ["p"]
        with full_disk(store, how):
            with pytest.raises(StoreError, match=r"put\(\): .*(full|disk i/o).*: free disk space"):
                for i in range(10000):
                    store.put("A", LIMIT, 2, f"p{i}", RESULT)
                    stored.append(f"p{i}")
            with pytest.raises(StoreError, match="free disk space"):  # a new engine needs a transaction
                for i in range(10000):
                    store.put("B", LIMIT, 2, f"p{i}", RESULT)
        assert set(store.get_many("A", LIMIT, 2, [*stored, "other"])) == set(stored)


def test_read_only(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", RESULT)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with EvaluationStore(path, read_only=True) as store:
            assert store.get_many("A", LIMIT, 2, ["p"]) == {"p": RESULT}
            assert store.engines() == ["A"]
            with pytest.raises(StoreError, match="opened read-only"):
                store.put("A", LIMIT, 2, "q", RESULT)
        if os.geteuid() != 0:
            with pytest.raises(StoreError, match="check the permissions"):
                EvaluationStore(path)
    finally:
        tmp_path.chmod(0o755)
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]
    with pytest.raises(ValueError, match="':memory:'"):
        EvaluationStore(":memory:", read_only=True)


def test_read_only_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        with EvaluationStore(path, read_only=True) as reader:  # the row stands in the journal
            assert len(reader) == 1
            store.put("A", LIMIT, 2, "q", RESULT)
            assert len(reader) == 2


def test_a_store_that_another_process_holds_is_waited_for(tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "s.db") as store, ThreadPoolExecutor(1) as beside:
        with contextlib.closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            put = beside.submit(store.put, "A", LIMIT, 2, "p", RESULT)
            with pytest.raises(TimeoutError):
                put.result(0.3)
        put.result(20.0)
        assert len(store) == 1


def test_keys_that_are_none(tmp_path: Path) -> None:
    with EvaluationStore(":memory:") as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        for engine, epd in (("", "p"), ("A", "")):
            with pytest.raises(ValueError, match="to be text, got ''"):
                store.put(engine, LIMIT, 2, epd, RESULT)
        for key in (
            (1, LIMIT, 2, "p"),
            ("A", "nodes=010", 2, "p"),
            ("A", LIMIT, 10**30, "p"),
            ("A", LIMIT, 2),
            7,
        ):
            with pytest.raises(ValueError, match=r"^EvaluationStore.export\(\): expected"):
                store.export(tmp_path / "copy.db", keys=[("A", LIMIT, 2, "p"), key])
        assert not list(tmp_path.iterdir())
        store.export(tmp_path / "copy.db", keys=[["A", LIMIT, 2, "p"]])


def test_closed() -> None:
    store = EvaluationStore(":memory:")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="got a closed one"):
        store.put("A", LIMIT, 2, "p", RESULT)
    with pytest.raises(StoreError, match="got a closed one"):
        len(store)


def test_export(tmp_path: Path) -> None:
    source, copy = tmp_path / "s.db", tmp_path / "copy.db"
    with EvaluationStore(source) as store:
        for engine in "BA":
            for i in range(10):
                store.put(engine, LIMIT, 2, f"p{i}", PLAYED)
        store.export(copy, keys=[("A", LIMIT, 2, "p1"), ("A", "nodes=1000", 2, "p9")])
        with EvaluationStore(copy, read_only=True) as reader:
            assert (len(reader), reader.engines()) == (2, ["A"])
            assert reader.get_many("A", LIMIT, 2, ["p1", "p2"], 20) == {"p1": PLAYED}
            reader.export(tmp_path / "again.db")
        before = copy.read_bytes()
        assert (tmp_path / "again.db").read_bytes() == before
        with pytest.raises(StoreError, match="got 1 of 2 that are not"):
            store.export(copy, keys=[("A", LIMIT, 2, "p1"), ("A", LIMIT, 2, "none")])
        assert copy.read_bytes() == before
        with pytest.raises(StoreError, match="no store is open on"):
            store.export(source)
        with pytest.raises(StoreError, match="expected to write"):
            store.export(tmp_path / "no" / "x.db")
    with EvaluationStore(copy) as writable:  # an exported store can be gone on with
        writable.put("A", LIMIT, 2, "new", RESULT)
        assert len(writable) == 3
