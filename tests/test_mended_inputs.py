"""Small inputs that broke something once, or from anybody: each gives a result, or one short line."""

import bz2
import functools
import gzip
import io
import json
import lzma
import re
import sqlite3
import time
import tracemalloc
from typing import Any

import chess
import numpy as np
import pyspiel
import pytest

from precomp_games import make_policy
from precomp_games._support.checks import one_line
from precomp_games._support.files import read_archive
from precomp_games.chess import ChessGame, Drill, EngineError, EvaluationStore, SearchLimit, StoredEngine
from precomp_games.chess.data.move_counts import PolyglotCounts
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.play.players import EnginePlayer
from precomp_games.chess.play.uci_engine import UciEngine
from tests.oracles.pgn import game
from tools import samples
from tools.fuzz import TARGETS
from tools.fuzz.mutate import archive, packed, unpacked
from tools.fuzz.targets import engines
from tools.fuzz.targets.files import with_fingerprint

# -- what uses an input --------------------------------------------------------------------------------------


def in_file(use):
    """Return what uses the bytes of an input as a file."""

    def used(data, folder):
        path = folder / "file"
        path.write_bytes(data)
        return use(path)

    return used


def as_text(use):
    return lambda data, folder: use(data.decode("utf-8", "surrogateescape"))


def _entries(path):
    """Return the number of entries of a book, and the weights of the moves at some positions."""
    even = PolyglotCounts.read(path, "uniform")
    weights = [weight for board in samples.sample_boards() for weight in even.at(board).values()]
    return len(PolyglotCounts.read(path)), weights


def _searched(path):
    with EvaluationStore(path) as store:
        return StoredEngine(store).search([chess.Board().epd()], SearchLimit(nodes=2), 1)


USES = {name: target.use for name, target in TARGETS.items()} | {
    "archive": in_file(lambda path: read_archive(path, ["value"])),
    "entries": in_file(_entries),
    "read-only store": in_file(lambda path: EvaluationStore(path, read_only=True)),
    "search": in_file(_searched),
    "policy": as_text(functools.partial(make_policy, pyspiel.load_game("kuhn_poker"))),
    "position": as_text(lambda text: ChessGame({"fen": text})),
}

# -- inputs, which are made when they are used ---------------------------------------------------------------


def _member(shape, kind="<f8"):
    """Return the beginning of an array's file, without the array."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _archive(member, **bombs):
    header = io.BytesIO()
    np.save(header, np.frombuffer(b"{}", np.uint8))
    return archive({"header": header.getvalue(), "value": member}, bombs)


def _claims_two_gigabytes():
    data = bytearray(packed({"a": 1}, {}))
    place = data.index(b"PK\x01\x02") + 20
    data[place : place + 4] = (2**31 - 1).to_bytes(4, "little")
    return bytes(data)


def _sql(data, script):
    """Return a database after a script of SQL."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if data:
        connection.deserialize(data)
    connection.executescript(script)
    return connection.serialize()


def _card(state):
    """Return a drill's progress in which a card's state has other fields, or is another text."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(samples.drills()[0])
    if isinstance(state, dict):
        (known,) = connection.execute("SELECT state FROM cards LIMIT 1").fetchone()
        state = json.dumps(json.loads(known) | state)
    connection.execute("UPDATE cards SET state = ?", (state,))
    return connection.serialize()


def _long_name(folder):
    found = SearchResult((Line("e2e4", 0, None),), 1, 1)
    with EvaluationStore(folder / "store.sqlite") as store:
        store.put("x" * 20_000, "nodes=1", 1, chess.Board().epd(), found)
    return (folder / "store.sqlite").read_bytes()


def _result(**change):
    (message,) = samples.results()
    return json.dumps(message | change).encode()


def _tree(**changes):
    """Return a tree's file with other values in its header, or at places of its arrays."""
    header, arrays = unpacked(TARGETS["tree"].seeds()[0])
    for name, change in changes.items():
        if name in header:
            header[name] = change
        else:
            arrays[name] = arrays[name].copy()
            arrays[name][change[0]] = change[1]
    if "fingerprint" not in changes:
        with_fingerprint(header, arrays)
    return packed(header, arrays)


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
_HARMS = [
    f"DROP TABLE searches; CREATE VIEW searches AS {_ENDLESS} 1 engine, 1 budget, 2 multipv, 'e' epd, "
    "1 depth, 1 nodes, '' lines FROM n",
    "CREATE TRIGGER harm AFTER INSERT ON engines BEGIN DELETE FROM searches; END",
    "ALTER TABLE searches ADD COLUMN large AS (zeroblob(1000000000))",
    "DROP TABLE budgets",
]
_CARDS = [
    *({"stability": float("nan")}, {"stability": -1.0}, {"stability": None}, {"difficulty": 1e999}),
    {"last_review": "2026-01-01T00:00:00"},  # without a time zone
    *({"due": 5}, {"step": 0, "state": 1}, {"state": 10**400}),
    *("null", "{}", "[" * 9000, "9" * 5000, b"\xff", "x" * 20_000),
]
_PROSE = (
    "Of all moves e4 is best.\n\nThen e5 and Nf3, or e6 and d4 d5 e5, see [a page](docs/page.md).\n\n",
    "# A book\n\nOf all moves e4 is best.\n\n1. e4 e5 2. Nf3 Nc6\n\nThat is all - or not.\n",
)
_PACKED: dict[str, Any] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda data: b"PK\3\4" + data,
}
_E4 = game("1. e4").encode()


def _corpus():
    """Yield (target, input or what makes it in a folder, what is expected).

    Expected are words of a refusal, or what is true of the result.
    """
    # Archives take no more memory than their own size: eight terabytes were asked for, and two gigabytes for
    # two kilobytes; a megabyte unpacked to a gigabyte.
    for member in (_member((1 << 40,)), _member((1,), "|O") + bytes(8), _member((-1,)) + bytes(8)):
        yield "archive", lambda _, member=member: _archive(member), "value is"
    yield "archive", lambda _: _archive(_member((1 << 30,), "|u1"), value=1024), "value is"
    yield "archive", lambda _: _claims_two_gigabytes(), "header is compressed"
    # A gigabyte was taken for a book of any size, and an entry that is repeated was looked at each time.
    yield "entries", bytes(16), lambda found: found == (1, [])
    repeated = lambda _: samples.polyglot_samples()[0][-16:] * 200_000  # noqa: E731
    yield "entries", repeated, lambda found: found == (200_000, [1.0])
    for data in (b"", b"seven b"):
        yield "entries", data, r"PolyglotCounts\.read\(\): expected Polyglot entries"
    for name, harm in ((name, harm) for name in ("store", "read-only store") for harm in _HARMS):
        harmed = lambda _, harm=harm: _sql(samples.stores()[0], harm)  # noqa: E731
        yield name, harmed, "expected the tables of a store"
    yield "search", _long_name, "to be stored in"
    for state in _CARDS:
        yield "drill", lambda _, state=state: _card(state), "expected the state of a card"
    endless = f"DROP TABLE cards; CREATE VIEW cards AS {_ENDLESS} i epd, '' side, '' state FROM n"
    yield "drill", lambda _: _sql(samples.drills()[0], endless), "another database"
    yield "drill", lambda _: _sql(None, "CREATE TABLE games (pgn TEXT)"), "another database"
    yield "drill", b"no database, but long enough " * 100, "expected path to be a file of progress"
    # A text as reach was a TypeError when the book was written.
    for change in ({"reach": "x"}, {"reach": None}, {"over": "no"}, {"promised": float("nan")}):
        exits = [samples.results()[0]["exits"][0] | change]
        yield "result", lambda _, exits=exits: _result(exits=exits), next(iter(change))
    replies = [{"after": [], "count": 1, "games": [5]}]
    wrong = {"utility": 2.0, "value": "x", "settings": 1, "person": {}, "budget": -1, "replies": replies}
    for name, value in wrong.items():
        yield "result", lambda _, message={name: value}: _result(**message), r"expected a result\.json"
    for spec in (b"s(e=m,t=\x85)", b"x" * 10_000, b"cfr(" * 3000, b"uniform(a=%s)" % (b"9" * 5000)):
        yield "policy", spec, r"make_policy\(\)"
    yield "position", b"8/" * 5000 + b" w - - 0 1", "expected fen to be a FEN"
    # Actions that OpenSpiel does not have were a TypeError, and a probability made up for the others.
    for place, value in ((1, -1), (1, 2**31 - 1), (0, 2**31 - 1)):
        yield "tree", lambda _, at=(place, value): _tree(action=at), "action does not describe a tree"
    yield "tree", lambda _: _tree(sigma=(slice(1, 4), 1.0)), "sigma does not describe a tree"
    yield "tree", lambda _: _tree(fingerprint="x" * 5000), "was damaged"
    for text in (
        *(b"kuhn_poker(\xe9", b"python_clock(e=(),\n1)", b"kuhn_poker(" + b"ye" * 5000 + b")"),
        *(b"python_meta_precomputation(tree_file=nothing)", b"python_meta_precomputation(\x1az)"),
        b"python_clock(game=" + b"file" * 20_000 + b")",  # half a minute, for one long word
        b"python_clock(" + b"x(" * 20_000,  # the parser took a gigabyte for fifty thousand characters
    ):
        yield "tree_game", text, "expected a game that its string loads"
    # Engines, and commands to ours.
    yield "uci_search", b"id name k\noption name \x7f type check\nuciok", "no option 'Hash'"
    yield "uci_player", b"x\n" * 20_000, "to answer 'uci' with 'uciok'"
    yield "uci_main", b"\xff\nuci\nquit\nx", lambda output: b"uciok\n" in output
    # Files that are no games.
    for data in (b"", b"\n" * 1000, bytes(range(256)) * 40, b"e4 e5 Nf3\n", b"[" * 10_000):
        yield "pgn_moves", data, r"pgn_moves\(\): expected games of anyone"
    none = r"^read_repertoire\(\): expected moves of white in .*got none"
    for moves in ("", "no game", game(""), game("1. Ke4"), "\x00" * 100, game("1. e4", FEN="nonsense")):
        yield "repertoire", moves.encode(), none
    for prose in _PROSE:  # python-chess finds moves in it
        yield "repertoire", prose.encode(), f"{none}: .* no PGN tags"
    for kind, pack in _PACKED.items():
        for name in ("pgn_names", "games", "repertoire"):
            yield name, pack(_E4), f"expected a PGN file, got .* compressed by {kind}: unpack it"


_CORPUS = list(_corpus())


@pytest.mark.parametrize(("target", "data", "expected"), _CORPUS, ids=[target for target, *_ in _CORPUS])
def test_an_input_is_read_or_refused_in_one_short_line_with_little_time_and_memory(
    target, data, expected, tmp_path
):
    data = data(tmp_path) if callable(data) else data
    folder = tmp_path / "empty"
    folder.mkdir()
    tracemalloc.start()
    began = time.thread_time()
    try:
        result, refusal = USES[target](data, folder), ""
    except (ValueError, EngineError) as error:
        refusal = str(error)
    seconds, memory = time.thread_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5.0 and memory < (1 << 24) + 16 * len(data)
    if isinstance(expected, str):
        assert re.search(expected, refusal) and len(refusal) < 1500 and refusal.isprintable()
    else:
        assert not refusal and expected(result)


def test_messages_are_one_printable_line():
    assert one_line(ValueError("a\n\x1b[2J\u2028 b")) == "a \\x1b[2J b"
    assert one_line(MemoryError()) == "MemoryError()" and len(one_line("x" * 10_000)) == 300


def test_progress_that_cannot_be_written_is_reported(tmp_path):
    path = tmp_path / "drill.sqlite"
    path.write_bytes(samples.drills()[0])
    with Drill(samples.small_book(), path) as drill:
        with sqlite3.connect(path) as file:
            file.execute("DROP TABLE answers")
        card = drill.cards[0]
        with pytest.raises(ValueError, match=r"Drill\.answer\(\): expected progress that can be written"):
            drill.answer(card, card.moves[0], samples.NOW)


def test_a_store_whose_rows_are_out_of_order_gives_no_others(tmp_path):
    """SQLite may then find rows that nobody asked for."""
    path, epds = tmp_path / "store.sqlite", samples.store_positions()
    swapped = epds[0].replace("pppppppp/8/8/8/8", "8/8/8/pppppppp/8").encode()
    path.write_bytes(samples.stores()[0].replace(epds[0].encode(), swapped))
    with EvaluationStore(path) as store:
        try:
            found = store.get_many(samples.STORE_ENGINE, samples.STORE_LIMIT, 2, epds)
            assert set(found) <= set(epds)
        except EngineError as error:  # by SQLite's version
            assert "got a position that was not asked for: the file is damaged" in str(error)


def _commands(engine):
    UciEngine(engine, say=(message := []).append).run(["isready", "go nodes 1", "quit"])
    assert "readyok" in message and message[-1] == "bestmove (none)"


@pytest.mark.usefixtures("ends_in_time")
@pytest.mark.parametrize(
    ("unasked", "use"), [(b"", _commands), (b"bestmove e2e4\n", lambda it: [it.ready() for _ in range(1000)])]
)
def test_an_engine_that_ends_is_not_started_forever(unasked, use):
    starts = []

    def sections():
        starts.append(unasked)
        return iter([b"id name x\nuciok\n" + unasked])

    with engines.without_processes(sections):
        use(EnginePlayer("engine"))
    assert len(starts) < 20
