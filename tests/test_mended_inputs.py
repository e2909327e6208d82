"""Faults that fuzzing has found, each with a small input that did it."""

import contextlib
import dataclasses
import io
import json
import sqlite3
import sys
import time
import tracemalloc

import numpy as np
import pyspiel
import pytest

from precomp_games import HistoryTree, make_policy
from precomp_games._support.checks import one_line
from precomp_games._support.files import read_archive, write_archive
from precomp_games.chess import (
    ChessGame,
    Drill,
    EngineError,
    EnginePool,
    EvaluationStore,
    Preparation,
    SearchLimit,
    StoredEngine,
)
from precomp_games.chess.data.move_counts import PolyglotCounts
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.play.players import EnginePlayer
from precomp_games.chess.play.uci_engine import UciEngine
from precomp_games.commands.uci import main
from precomp_games.tree.base_game import loaded_game
from tools import samples
from tools.fuzz.mutate import archive
from tools.fuzz.targets import engines


@contextlib.contextmanager
def memory_of_at_most(size):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


@contextlib.contextmanager
def one_short_line(match, kind=ValueError):
    """Expect an error of one line that a terminal can show."""
    with pytest.raises(kind, match=match) as refused:
        yield
    assert len(str(refused.value)) < 1500 and str(refused.value).isprintable()


def head(shape, kind="<f8"):
    """Return the beginning of an array's file, without the array."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def header():
    file = io.BytesIO()
    np.save(file, np.frombuffer(b"{}", np.uint8))
    return file.getvalue()


@pytest.mark.parametrize(
    "member, bombs",
    [
        (head((1 << 40,)), {}),  # eight terabytes were asked for
        (head((1 << 30,), "|u1"), {"value": 1024}),  # a megabyte that unpacks to a gigabyte
        (head((1,), "|O") + bytes(8), {}),
        (head((-1,)) + bytes(8), {}),
    ],
)
def test_an_archive_takes_no_more_memory_than_its_own_size(tmp_path, member, bombs):
    (tmp_path / "a.npz").write_bytes(archive({"header": header(), "value": member}, bombs))
    with memory_of_at_most(1 << 24), pytest.raises(ValueError, match="value is"):
        read_archive(tmp_path / "a.npz", ["value"])


def test_a_member_that_claims_more_packed_bytes_than_its_file_has(tmp_path):
    """Two gigabytes were taken for two kilobytes."""
    write_archive(tmp_path / "x", {"a": 1}, {})
    data = bytearray((tmp_path / "x").read_bytes())
    place = data.index(b"PK\x01\x02") + 20
    data[place : place + 4] = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match="header is compressed"):
        read_archive(tmp_path / "x", ())


def test_a_small_book_takes_little_memory(tmp_path):
    """A gigabyte was taken for a book of any size."""
    (tmp_path / "book.bin").write_bytes(bytes(16))
    with memory_of_at_most(1 << 20):
        assert len(PolyglotCounts.read(tmp_path / "book.bin")) == 1


def test_an_entry_may_stand_in_a_book_many_times(tmp_path):
    """Each of them was looked at as a move, which took seconds for each position."""
    (tmp_path / "book.bin").write_bytes(samples.polyglot_samples()[0][-16:] * 200_000)
    began = time.thread_time()
    assert len(PolyglotCounts.read(tmp_path / "book.bin")) == 200_000
    counts = PolyglotCounts.read(tmp_path / "book.bin", "uniform")
    board = next(b for b in samples.sample_boards() if counts.at(b))
    assert list(counts.at(board).values()) == [1.0] and time.thread_time() - began < 5.0


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.mark.parametrize(
    "harm",
    [
        f"DROP TABLE searches; CREATE VIEW searches AS {_ENDLESS} 1 engine, 1 budget, 2 multipv, 'e' epd, "
        "1 depth, 1 nodes, '' lines FROM n",
        "CREATE TRIGGER harm AFTER INSERT ON engines BEGIN DELETE FROM searches; END",
        "ALTER TABLE searches ADD COLUMN large AS (zeroblob(1000000000))",
        "DROP TABLE budgets",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_other_tables_is_refused(tmp_path, harm, read_only):
    path = tmp_path / "store.sqlite"
    EvaluationStore(path).close()
    with sqlite3.connect(path) as file:
        file.executescript(harm)
    file.close()
    with pytest.raises(EngineError, match="expected the tables of a store"):
        EvaluationStore(path, read_only=read_only)


@pytest.fixture
def progress(tmp_path):
    """Return a file of progress, in which a card has been answered once."""
    pytest.importorskip("fsrs", reason="drills need fsrs")
    with Drill(samples.small_book(), tmp_path / "drill.sqlite", seed=0) as drill:
        card = drill.next(samples.NOW)
        drill.answer(card, card.moves[0], samples.NOW)
    return tmp_path / "drill.sqlite"


@pytest.mark.parametrize(
    "state",
    [
        *({"stability": float("nan")}, {"stability": -1.0}, {"stability": None}, {"difficulty": 1e999}),
        {"last_review": "2026-01-01T00:00:00"},  # without a time zone
        *({"due": 5}, {"step": 0, "state": 1}, {"state": 10**400}),
        *("null", "{}", "[" * 9000, "9" * 5000, b"\xff", "x" * 20_000),
    ],
)
def test_a_card_that_cannot_be_is_refused(progress, state):
    with sqlite3.connect(progress) as file:
        if isinstance(state, dict):
            ((known,),) = file.execute("SELECT state FROM cards")
            state = json.dumps(json.loads(known) | state)
        file.execute("UPDATE cards SET state = ?", (state,))
    with pytest.raises(ValueError, match="expected the state of a card"):
        Drill(samples.small_book(), progress)


def test_progress_of_other_tables_is_refused(progress):
    with sqlite3.connect(progress) as file:
        file.executescript(
            f"DROP TABLE cards; CREATE VIEW cards AS {_ENDLESS} i epd, '' side, '' state FROM n"
        )
    with pytest.raises(ValueError, match="another database"):
        Drill(samples.small_book(), progress)


def test_progress_that_cannot_be_written_is_told(progress):
    with Drill(samples.small_book(), progress) as drill:
        with sqlite3.connect(progress) as file:
            file.execute("DROP TABLE answers")
        card = drill.next(samples.NOW)
        with pytest.raises(ValueError, match=r"Drill\.answer\(\): expected progress that can be written"):
            drill.answer(card, card.moves[0], samples.NOW)


@pytest.mark.parametrize(
    "change", [{"reach": "x"}, {"reach": None}, {"over": "no"}, {"promised": float("nan")}]
)
def test_exits_of_a_result_are_checked(tmp_path, change):
    """A text as reach was a TypeError when the book was written."""
    (told,) = samples.results()
    told = told | {"exits": [told["exits"][0] | change]}
    (tmp_path / "result.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match=next(iter(change))):
        Preparation.read(tmp_path)


@pytest.mark.parametrize("spec", ["s(e=m,t=\udc85)", "x" * 10_000, "cfr(" * 3000, f"uniform(a={'9' * 5000})"])
def test_specs_are_refused_in_one_short_line(spec):
    with one_short_line(r"make_policy\(\)"):
        make_policy(pyspiel.load_game("kuhn_poker"), spec)


@pytest.mark.parametrize(("action", "history"), [(-1, 1), (2**31 - 1, 1), (2**31 - 1, 0)])
def test_actions_of_a_tree_are_numbers_that_openspiel_has(action, history):
    """The largest was a TypeError of OpenSpiel's when the meta-game was made."""
    tree = samples.sample_trees()[0]
    actions = tree.action.copy()
    actions[history] = action
    with pytest.raises(ValueError, match="action does not describe a tree"):
        dataclasses.replace(tree, action=actions).check()


def test_chance_of_a_tree_sums_to_one():
    """It was exported with a negative probability that made up for the others."""
    tree = samples.sample_trees()[0]
    sigma = tree.sigma.copy()
    sigma[tree.parent == 0] = 1.0
    with pytest.raises(ValueError, match="sigma does not describe a tree"):
        dataclasses.replace(tree, sigma=sigma).check()


def rewritten(path, told=(), **arrays):
    """Write an archive again with other values in its header, and arrays that functions change in place."""
    with np.load(path) as file:
        known = json.loads(bytes(file["header"]))
        kept = {name: file[name] for name in file if name != "header"}
    for name, change in arrays.items():
        change(kept[name])
    write_archive(path, known | dict(told), kept)


def test_a_long_fingerprint_is_told_in_one_short_line(tmp_path):
    samples.sample_trees()[0].save(tmp_path / "tree.npz")
    rewritten(tmp_path / "tree.npz", {"fingerprint": "x" * 5000})
    with one_short_line("was damaged"):
        HistoryTree.load(tmp_path / "tree.npz")


@pytest.mark.parametrize(
    "text",
    [
        "kuhn_poker(\udce9",
        "python_clock(e=(),\n1)",
        "python_meta_precomputation(tree_file=nothing)",
        "python_meta_precomputation(\x1az)",
        "kuhn_poker(" + "ye" * 5000 + ")",
        "python_clock(game=" + "file" * 20_000 + ")",  # a name that no parameter has took a minute to be seen
        "python_clock(" + "x(" * 20_000,  # the parser took a gigabyte for fifty thousand characters
    ],
)
def test_game_strings_of_trees_are_refused_in_one_short_line(text):
    with one_short_line("expected a game that its string loads"):
        loaded_game(text)


def test_a_long_position_is_refused_in_one_short_line():
    with one_short_line("expected fen to be a FEN"):
        ChessGame({"fen": "8/" * 5000 + " w - - 0 1"})


def test_a_store_whose_rows_are_out_of_order_gives_no_others(tmp_path):
    """SQLite may then find rows that nobody asked for."""
    start, end = "rnbqkbnr/", "/PPPPPPPP/RNBQKBNR w KQkq -"
    epds = [
        f"{start}pppppppp/8/8/8/8{end}",
        f"{start}pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -",
        f"{start}pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -",
    ]
    path = tmp_path / "store.sqlite"
    with EvaluationStore(path) as store:
        lines = (Line("e2e4", 0, None), Line("d2d4", 0, None))
        for epd in epds:
            store.put("e", "nodes=1", 2, epd, SearchResult(lines, 1, 1))
    swapped = f"{start}8/8/8/pppppppp/8{end}"
    path.write_bytes(path.read_bytes().replace(epds[0].encode(), swapped.encode()))
    with EvaluationStore(path) as store:
        try:
            assert set(store.get_many("e", "nodes=1", 2, epds)) <= set(epds)
        except EngineError as error:  # by SQLite's version
            assert "got a position that was not asked for: the file is damaged" in str(error)


def test_a_long_name_in_a_store_is_told_in_one_short_line(tmp_path):
    with EvaluationStore(tmp_path / "store.sqlite") as store:
        epd = "8/8/8/8/8/k7/8/K7 w - -"
        store.put("x" * 20_000, "nodes=1", 1, epd, SearchResult((Line("a1b1", 0, None),), 1, 1))
        with one_short_line("to be stored in", EngineError):
            StoredEngine(store).search([epd], SearchLimit(nodes=2), 1)


def test_an_option_that_cannot_be_printed_is_told_in_one_line(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text("input(); print('id name k\\noption name \\x7f type check\\nuciok'); input()")
    with one_short_line("no option 'Hash'", EngineError):
        EnginePool([sys.executable, str(script)], workers=1, options={"Hash": 1})


def test_messages_are_one_printable_line():
    assert one_line(ValueError("a\n\x1b[2J\u2028 b")) == "a \\x1b[2J b"
    assert one_line(MemoryError()) == "MemoryError()" and len(one_line("x" * 10_000)) == 300


# -- engines that end, and commands that are no text -------------------------------------------------------


def _engine(request, data):
    """Return how often an engine that prints this data and ends was started."""
    starts = []

    def said():
        starts.append(data)
        return iter([data])

    fake = engines.without_processes(said)
    fake.start()
    request.addfinalizer(fake.stop)
    return starts


def test_an_engine_that_always_ends_is_not_started_forever(request):
    starts, told = _engine(request, b"id name x\nuciok\n"), []
    engine = UciEngine(EnginePlayer("engine"), say=told.append)
    engine.run(["isready", "go nodes 1", "quit"])
    assert "readyok" in told and told[-1] == "bestmove (none)"
    assert len(starts) < 20


def test_an_engine_that_answers_unasked_and_ends_is_not_started_forever(request):
    starts = _engine(request, b"id name x\nuciok\nbestmove e2e4\n")
    player = EnginePlayer("engine")
    for _ in range(1000):
        player.ready()
    assert len(starts) < 20


def test_an_engine_that_never_says_uciok_is_refused(request):
    _engine(request, b"x\n" * 20_000)
    with pytest.raises(EngineError, match="to answer 'uci' with 'uciok'"):
        EnginePlayer("engine")


def test_commands_that_are_no_utf8_are_passed_over(request, monkeypatch, tmp_path):
    _engine(request, b"id name x\nuciok\nreadyok\nbestmove e2e4\n")
    (tmp_path / "book.bin").write_bytes(engines._book())
    typed = io.TextIOWrapper(io.BytesIO(b"\xff\nuci\nquit\n"), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["uci", f"--book={tmp_path / 'book.bin'}", "--engine=/bin/true"]) == 0
    out.seek(0)
    assert "uciok\n" in out.read()


def test_samples_are_as_they_are_written():
    """The inputs of all targets are made of files that are read without a complaint."""
    assert samples.results()
