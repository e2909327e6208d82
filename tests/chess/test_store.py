"""The store: what was put is there, whatever happened, and what is not a store is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from precomp_games.chess.engine import SearchLimit
from precomp_games.chess.store import EvaluationStore, Line, SearchResult, StoreError

LIMIT = SearchLimit(nodes=1000)
RESULT = SearchResult((Line("e2e4", 31, None), Line("d2d4", -28, None)), 7, 1003)
MATED = SearchResult((Line("e7e8q", None, -2),), 4, 99)
MATES = SearchResult((Line("e7e8q", None, 3), Line("a7a6", 0, None), Line("a7a5", None, -2)), 9, 5)


PLAYED = dataclasses.replace(RESULT, played=(("d2d4", 13), ("e2e4", 7)), last=MATES.lines[1:])
SHIPPED = Path(__file__).parents[2] / "examples" / "data" / "evaluations.sqlite"


def run(code: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        store.put("A 1", LIMIT, 2, "p1", RESULT)
        store.put("A 1", LIMIT, 3, "p1", MATES)
        store.put("B [x=1]", "movetime=50", 2, "p2", RESULT)
        store.put("A 1", SearchLimit(depth=4), 2, "p1", MATED)
        assert len(store) == 4
    with EvaluationStore(path) as store:
        assert store.get_many("A 1", "depth=4", 2, ["p1"]) == {"p1": MATED}
        assert store.get_many("A 1", LIMIT, 2, ["p1", "p2", "p1"]) == {"p1": RESULT}
        assert store.get_many("A 1", "nodes=1000", 3, ["p1"]) == {"p1": MATES}
        assert store.get_many("B [x=1]", SearchLimit(movetime_ms=50), 2, ["p2"]) == {"p2": RESULT}
        assert store.get_many("A 1", "nodes=1001", 2, ["p1"]) == {}
        assert store.get_many("C", LIMIT, 2, ["p1"]) == {}
        assert store.get_many("A 1", LIMIT, 2, []) == {}
        assert store.engines() == ["A 1", "B [x=1]"]
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"]  # no journal is left


def test_what_was_played(tmp_path: Path) -> None:
    path, other = tmp_path / "s.db", dataclasses.replace(PLAYED, played=(("a2a3", 20),))
    once = dataclasses.replace(PLAYED, played=(("d2d4", 1),))
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", PLAYED)
        store.put("A", LIMIT, 2, "p", once)  # another number of searches
        store.put("A", LIMIT, 2, "p", other)  # other draws: the first ones stay
        store.put("A", LIMIT, 2, "q", RESULT)
        assert len(store) == 2
        store.export(tmp_path / "copy.db")
        store.export(tmp_path / "part.db", keys=[("A", LIMIT, 2, "q")])
    for name in ("s.db", "copy.db"):
        with EvaluationStore(tmp_path / name, read_only=name == "copy.db") as store:
            assert store.get_many("A", LIMIT, 2, ["p", "q"]) == {"p": RESULT, "q": RESULT}
            assert store.get_many("A", LIMIT, 2, ["p", "q"], samples=20) == {"p": PLAYED}
            assert store.get_many("A", LIMIT, 2, ["p", "q"], 1) == {"p": once}
            assert store.get_many("A", LIMIT, 2, ["p"], 2) == {}
            assert store.get_many("A", LIMIT, 1, ["p"], 1) == {}
    with EvaluationStore(tmp_path / "part.db", read_only=True) as store:
        assert (len(store), store.get_many("A", LIMIT, 2, ["p", "q"], 20)) == (1, {})


@pytest.mark.parametrize(
    "changes",
    [
        {"lines": MATES.lines},  # three, of two that were asked for
        {"lines": RESULT.lines[:1] * 2},
        {"depth": 10_001},
        {"nodes": 10**18},
        {"played": ()},  # lines that nobody played
        {"played": (("d2d4", 1), ("d2d4", 1))},
        {"played": (("d2d9", 1),)},
        {"last": ()},
        {"last": 2 * MATES.lines[1:]},
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
        assert store._db is not None
        epd, multipv, limit = store._db.execute(
            "SELECT epd, multipv, budgets.name FROM searches JOIN budgets ON budgets.id = budget"
        ).fetchone()
        before = store.get_many(engine, limit, multipv, [epd])
        assert list(before) == [epd]
        assert store.get_many(engine, limit, multipv, [epd], samples=1) == {}
    path = tmp_path / "old.db"
    shutil.copy(SHIPPED, path)
    with EvaluationStore(path) as store:
        result = dataclasses.replace(
            before[epd], played=((before[epd].lines[0].move, 1),), last=before[epd].lines
        )
        store.put(engine, limit, multipv, epd, result)
        assert store.get_many(engine, limit, multipv, [epd]) == before
        assert store.get_many(engine, limit, multipv, [epd], 1) == {epd: result}


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (
            "lines",
            ["", "e2e4", "e2e4:1 ", "e2e4:+1", "e2e4:01", "e2e4:#0", "e2e9:1", "e2e4:1.5", "e2e4:\u0661"],
        ),
        ("lines", ["e2e4:1 e2e4:2", "e2e4:1 d2d4:1 c2c4:1", b"e2e4:1"]),
        ("played", ["", "d2d4:19", "d2d4:20 ", "d2d4:10 d2d4:10", b"d2d4:20"]),
        ("last", ["", "d2d4", b"d2d4:3"]),
    ],
)
def test_damaged_rows(column: str, texts: list[object]) -> None:
    table = "searches" if column == "lines" else "plays"
    with EvaluationStore(":memory:") as store:
        for epd in ("p", "q"):
            store.put("A", LIMIT, 2, epd, PLAYED)
        assert store._db is not None
        for text in texts:
            store._db.execute(f"UPDATE {table} SET {column} = ? WHERE epd = 'q'", (text,))
            assert store.get_many("A", LIMIT, 2, ["p"], 20) == {"p": PLAYED}
            if table == "plays":
                assert store.get_many("A", LIMIT, 2, ["q"]) == {"q": RESULT}
            with pytest.raises(StoreError, match=r"expected a search in .* for 'q', got .* damaged"):
                store.get_many("A", LIMIT, 2, ["p", "q"], 20)


def test_text_in_the_file() -> None:
    with EvaluationStore(":memory:") as store:
        store.put("A", LIMIT, 3, "p", MATES)
        assert store._db is not None
        row = store._db.execute("SELECT lines, depth, nodes FROM searches").fetchone()
    assert row == ("e7e8q:#3 a7a6:0 a7a5:#-2", 9, 5)


def test_many_positions_and_first_search_stays() -> None:
    epds = [f"p{i}" for i in range(1100)]
    with EvaluationStore(":memory:") as store:
        for i, epd in enumerate(epds):
            store.put("A", LIMIT, 2, epd, SearchResult(RESULT.lines, i, i))
        store.put("A", LIMIT, 2, "p7", RESULT)
        found = store.get_many("A", LIMIT, 2, [*epds, "other"])
    assert {epd: result.depth for epd, result in found.items()} == {f"p{i}": i for i in range(1100)}


PUTS = """
import sys
from precomp_games.chess.store import EvaluationStore, Line, SearchResult
store = EvaluationStore(sys.argv[1])
for i in range(10**9):
    store.put("A", "nodes=5", 1, f"{sys.argv[2]}{i}", SearchResult((Line("e2e4", i, None),), 1, i))
    print(i, flush=True)
"""


def test_two_processes_at_once_of_which_one_is_killed(tmp_path: Path) -> None:
    """Both create the file, and no put that has returned is lost."""
    path = str(tmp_path / "s.db")
    killed, other = run(PUTS, path, "a"), run(PUTS.replace("10**9", "100"), path, "b")
    assert killed.stdout is not None
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
    with EvaluationStore(":memory:") as store:

        def work(name: str) -> None:
            for i in range(50):
                store.put(name, LIMIT, 2, f"p{i}", RESULT)
                assert store.get_many(name, LIMIT, 2, [f"p{i}"])

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
        (".", (False, True), "it is a directory"),
        ("none.db", (True,), "no such file"),
        # Nobody writes to it: opening it to read would wait for ever.
        ("pipe", (False, True), "it is a named pipe, which keeps nothing: name a file"),
        (os.devnull, (False, True), "it is a device"),
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
    assert store._db is not None
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
            with pytest.raises(StoreError, match="no permission to write"):
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
            for i in range(100):
                store.put(engine, LIMIT, 2, f"p{i}", RESULT)
        store.export(copy)
        first = copy.read_bytes()
        with EvaluationStore(":memory:") as other:  # the same content in another order
            for i in reversed(range(100)):
                for engine in "AB":
                    other.put(engine, LIMIT, 2, f"p{i}", RESULT)
            other.export(copy)
        assert copy.read_bytes() == first
        assert not list(tmp_path.glob("copy.db-*")) and not list(tmp_path.glob(".copy*"))
        with EvaluationStore(copy, read_only=True) as reader:
            assert len(reader) == 200
            assert reader.get_many("A", LIMIT, 2, ["p3"]) == {"p3": RESULT}
            reader.export(tmp_path / "again.db")
        assert (tmp_path / "again.db").read_bytes() == first

        store.export(copy, keys=[("A", LIMIT, 2, "p1"), ("A", "nodes=1000", 2, "p9")])
        with EvaluationStore(copy, read_only=True) as reader:
            assert (len(reader), reader.engines()) == (2, ["A"])
        before = copy.read_bytes()
        with pytest.raises(StoreError, match="got 1 of 2 that are not"):
            store.export(copy, keys=[("A", LIMIT, 2, "p1"), ("A", LIMIT, 2, "none")])
        assert copy.read_bytes() == before
        with pytest.raises(StoreError, match="no store is open on"):
            store.export(source)
        with pytest.raises(StoreError, match="existing directory"):
            store.export(tmp_path / "no" / "x.db")
    with EvaluationStore(copy) as writable:  # an exported store can be gone on with
        writable.put("A", LIMIT, 2, "new", RESULT)
        assert len(writable) == 3
