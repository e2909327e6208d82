"""The store: what was put is there, whatever happened, and what is not a store is refused."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
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
    wrong: list[dict[str, object]] = [
        {"played": ()},  # lines that nobody played
        {"last": ()},
        {"played": (("d2d4", 1), ("d2d4", 1))},
        {"played": (("d2d9", 1),)},
        {"played": (("d2d4", 0),)},
        {"last": 2 * MATES.lines[1:]},
    ]
    with EvaluationStore(":memory:") as store:
        for changes in wrong:
            with pytest.raises(ValueError, match="expected a search result"):
                store.put("A", LIMIT, 2, "p", dataclasses.replace(PLAYED, **changes))
        assert len(store) == 0


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
    ("column", "text"),
    [
        ("played", ""),
        ("played", "d2d4:19"),
        ("played", "d2d4:20 "),
        ("played", "d2d4:10 d2d4:10"),
        ("played", b"d2d4:20"),
        ("last", ""),
        ("last", "d2d4"),
        ("last", b"d2d4:3"),
    ],
)
def test_damaged_moves(tmp_path: Path, column: str, text: object) -> None:
    with EvaluationStore(tmp_path / "s.db") as store:
        store.put("A", LIMIT, 2, "p", PLAYED)
        assert store._db is not None
        store._db.execute(f"UPDATE plays SET {column} = ?", (text,))
        assert store.get_many("A", LIMIT, 2, ["p"]) == {"p": RESULT}
        with pytest.raises(StoreError, match=r"expected a search in .* for 'p', got .* damaged"):
            store.get_many("A", LIMIT, 2, ["p"], 20)


def test_text_in_the_file() -> None:
    with EvaluationStore(":memory:") as store:
        store.put("A", LIMIT, 3, "p", MATES)
        assert store._db is not None
        row = store._db.execute("SELECT lines, depth, nodes FROM searches").fetchone()
    assert row == ("e7e8q:#3 a7a6:0 a7a5:#-2", 9, 5)


def test_many_positions_and_first_search_stays() -> None:
    epds = [f"p{i}" for i in range(2500)]
    with EvaluationStore(":memory:") as store:
        for i, epd in enumerate(epds):
            store.put("A", LIMIT, 2, epd, SearchResult(RESULT.lines, i, i))
        store.put("A", LIMIT, 2, "p7", RESULT)
        found = store.get_many("A", LIMIT, 2, [*epds, "other"])
    assert {epd: result.depth for epd, result in found.items()} == {f"p{i}": i for i in range(2500)}


def test_bad_keys_and_results() -> None:
    with EvaluationStore(":memory:") as store:
        for key in [
            ("", LIMIT, 2, "p"),
            ("A", "depth=0", 2, "p"),
            ("A", "nodes=0", 2, "p"),
            ("A", LIMIT, 0, "p"),
            ("A", LIMIT, True, "p"),
            ("A", LIMIT, 2, ""),
        ]:
            with pytest.raises(ValueError, match=r"EvaluationStore\.put\(\): expected .*, got"):
                store.put(*key, RESULT)
        with pytest.raises(ValueError, match=r"get_many\(\): expected multipv"):
            store.get_many("A", LIMIT, -1, ["p"])
        for lines in [(), RESULT.lines[:1] * 2, MATES.lines]:
            with pytest.raises(ValueError, match="expected a search result"):
                store.put("A", LIMIT, 2, "p", SearchResult(lines, 1, 1))
        for depth, nodes in [(-1, 1), (10_001, 1), (1, 10**18), (1, 2**70)]:
            with pytest.raises(ValueError, match="expected a search result"):
                store.put("A", LIMIT, 2, "p", SearchResult(RESULT.lines, depth, nodes))
        assert len(store) == 0 and store  # not false for being empty
    absurd = [
        ("e2e4", 50_001, None),
        ("e2e4", -(10**30), None),
        ("e2e4", None, 10_001),
        ("e2e4", None, -(10**9)),
    ]
    for args in [("e2e9", 1, None), ("e2e4", 1, 1), ("e2e4", None, None), ("e2e4", None, 0), *absurd]:
        with pytest.raises(ValueError, match=r"Line\(\): expected"):
            Line(*args)
    with pytest.raises(ValueError, match="either cp or mate as an int"):
        Line("e2e4", 1.5, None)


PUTS = """
import sys
from precomp_games.chess.store import EvaluationStore, Line, SearchResult
store = EvaluationStore(sys.argv[1])
for i in range(10**9):
    store.put("A", "nodes=5", 1, f"{sys.argv[2]}{i}", SearchResult((Line("e2e4", i, None),), 1, i))
    print(i, flush=True)
"""


@pytest.mark.parametrize("wanted", [1, 700])
def test_killed_process_loses_no_put(tmp_path: Path, wanted: int) -> None:
    path = str(tmp_path / "s.db")
    child = run(PUTS, path, "p")
    assert child.stdout is not None and child.stderr is not None
    for _ in range(wanted):
        last = child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    printed = [int(line) for line in (last + child.stdout.read()).split()]
    child.wait()
    assert child.stderr.read() == ""
    child.stdout.close()
    child.stderr.close()
    with EvaluationStore(path) as store:
        found = store.get_many("A", "nodes=5", 1, [f"p{i}" for i in range(printed[-1] + 1)])
    assert len(found) == printed[-1] + 1 >= wanted
    assert all(found[f"p{i}"].nodes == i for i in range(printed[-1] + 1))


def test_two_processes_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    code = PUTS.replace("10**9", "300")
    children = [run(code, path, name) for name in ("a", "b")]  # both create the file
    for child in children:
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err, len(out.split())) == (0, "", 300)
    with EvaluationStore(path) as store:
        assert len(store) == 600
        assert store.engines() == ["A"]


def test_threads() -> None:
    with EvaluationStore(":memory:") as store:

        def work(name: str) -> None:
            for i in range(200):
                store.put(name, LIMIT, 2, f"p{i}", RESULT)
                assert store.get_many(name, LIMIT, 2, [f"p{i}"])

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store) == 800


def test_not_a_store(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("Dear diary, " * 200)
    with pytest.raises(StoreError, match=r"EvaluationStore\(\): .*not a database: the file is"):
        EvaluationStore(text)
    assert text.read_text() == "Dear diary, " * 200
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    before = other.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        EvaluationStore(other)
    assert other.read_bytes() == before
    with pytest.raises(StoreError, match="directory does not exist"):
        EvaluationStore(tmp_path / "no" / "s.db")
    with pytest.raises(StoreError, match="it is a directory"):
        EvaluationStore(tmp_path)
    with pytest.raises(StoreError, match="no such file"):
        EvaluationStore(tmp_path / "none.db", read_only=True)
    os.mkfifo(tmp_path / "pipe")
    for read_only in (False, True):  # nobody writes to it: opening it to read would wait for ever
        with pytest.raises(StoreError, match="it is a named pipe, which keeps nothing: name a file"):
            EvaluationStore(tmp_path / "pipe", read_only)
        with pytest.raises(StoreError, match="it is a device"):
            EvaluationStore(os.devnull, read_only)
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="got an empty file"):
        EvaluationStore(tmp_path / "empty.db", read_only=True)
    with EvaluationStore(tmp_path / "empty.db") as store:  # what a killed creation leaves
        assert len(store) == 0


def test_other_version(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    EvaluationStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="schema version 1, got version 2"):
            EvaluationStore(path, read_only=read_only)


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "e2e4",
        "e2e4:1 ",
        "e2e4:+1",
        "e2e4:01",
        "e2e4:#0",
        "e2e9:1",
        "e2e4:1 e2e4:2",
        "e2e4:1.5",
        "e2e4:1 d2d4:1 c2c4:1",
        "e2e4:\u0661",
        b"e2e4:1",
    ],
)
def test_damaged_row(tmp_path: Path, lines: object) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        store.put("A", LIMIT, 2, "p", RESULT)
        store.put("A", LIMIT, 2, "q", RESULT)
        assert store._db is not None
        store._db.execute("UPDATE searches SET lines = ? WHERE epd = 'q'", (lines,))
        assert store.get_many("A", LIMIT, 2, ["p"]) == {"p": RESULT}
        with pytest.raises(StoreError, match=r"expected a search in .* for 'q', got .* damaged"):
            store.get_many("A", LIMIT, 2, ["p", "q"])


def test_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with EvaluationStore(path) as store:
        for i in range(2000):
            store.put("A", LIMIT, 2, f"p{i}", RESULT)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)  # all pages but the first
    path.write_bytes(data)
    with (
        pytest.raises(StoreError, match=r"damaged: move it away|restore a copy"),
        EvaluationStore(path) as store,
    ):
        store.get_many("A", LIMIT, 2, [f"p{i}" for i in range(2000)])
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreError):
        EvaluationStore(path)


def test_disk_full(tmp_path: Path) -> None:
    with EvaluationStore(tmp_path / "s.db") as store:
        assert store._db is not None
        store.put("A", LIMIT, 2, "p", RESULT)
        store._db.execute("PRAGMA max_page_count = 12")
        stored = ["p"]
        with pytest.raises(StoreError, match=r"put\(\): .*full: free disk space"):
            for i in range(10000):
                store.put("A", LIMIT, 2, f"p{i}", RESULT)
                stored.append(f"p{i}")
        assert set(store.get_many("A", LIMIT, 2, [*stored, "other"])) == set(stored)
        with pytest.raises(StoreError, match="full"):  # a new engine needs a transaction
            for i in range(10000):
                store.put("B", LIMIT, 2, f"p{i}", RESULT)
        assert set(store.get_many("A", LIMIT, 2, stored)) == set(stored)


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_file_size_limit(tmp_path: Path) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))\n" + PUTS
    child = run(code, str(tmp_path / "s.db"), "p")
    out, err = child.communicate(timeout=60)
    assert "StoreError: EvaluationStore.put(): " in err and "free disk space" in err
    with EvaluationStore(tmp_path / "s.db") as store:
        found = store.get_many("A", "nodes=5", 1, [f"p{i}" for i in range(len(out.split()))])
    assert len(found) == len(out.split()) > 0


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
            for i in range(500):
                store.put(engine, LIMIT, 2, f"p{i}", RESULT)
        store.export(copy)
        first = copy.read_bytes()
        with EvaluationStore(":memory:") as other:  # the same content in another order
            for i in reversed(range(500)):
                for engine in "AB":
                    other.put(engine, LIMIT, 2, f"p{i}", RESULT)
            other.export(copy)
        assert copy.read_bytes() == first
        assert not list(tmp_path.glob("copy.db-*")) and not list(tmp_path.glob(".copy*"))
        with EvaluationStore(copy, read_only=True) as reader:
            assert len(reader) == 1000
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
