"""Everything public that reads a file, with files of strangers that would reach out of it.

    python -m tools.readers

runs each reader on good and on hostile files, uses what it read as users do, and prints what it did to the
machine beside reading: JSON, by reader, of audit events. `tests/test_trust.py` says what may come out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import chess
import pyspiel

from precomp_games import HistoryTree, MetaPrecomputationGame, make_policy, to_efg
from precomp_games._support.files import read_archive, write_archive
from precomp_games.algorithms import (
    best_precomputation,
    load_policy,
    meta_equilibrium,
    save_policy,
    solve,
)
from precomp_games.chess import (
    Drill,
    EngineError,
    EvaluationStore,
    Preparation,
    PreparationSettings,
    SearchLimit,
    StoredEngine,
    games_policy,
    opponent_policy,
    read_games,
    read_repertoire,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.data.move_counts import GameSelection, PolyglotCounts
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.game import ChessGame
from precomp_games.chess.model.calibration import load_calibration
from precomp_games.chess.model.model import MODEL_FILE, ModelFiles, preparation_policies
from precomp_games.chess.model.opponents import polyglot_policy
from precomp_games.chess.model.played import pgn_moves, pgn_results, reply_games
from precomp_games.chess.plan.sparring import SparringGames
from precomp_games.chess.play.uci_engine import uci_book
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands import report
from precomp_games.policies.specs import parsed_spec, touched
from precomp_games.tree.base_game import loaded_game
from tools import samples
from tools.audit import Audit

__all__ = ["READERS", "REFUSALS", "Reader"]

REFUSALS = (ValueError, OSError, EngineError, pyspiel.SpielError)
"""What a reader may raise."""

# A program, a file to read and one to write, and a folder, all elsewhere.
PROGRAM, SECRET, WRITTEN, FOLDER = "/bin/true", "/etc/passwd", "/var/tmp/precomp-games-written", "/etc"
SPECS = tuple(
    text.format(program=PROGRAM, secret=SECRET, written=WRITTEN, folder=FOLDER)
    for text in (
        "uci(engine={program},nodes=1)",
        "uci(nodes=1,engine={program})",
        "uci(engine={program},store={written})",
        "uci(engine={program},options=of(Hash=64,DebugLogFile={written}))",
        "uci(store={written})",
        "uci(options=of(SyzygyPath={folder}))",
        "uci(workers=4)",
        "games(file={secret})",
        "games(file={secret},player=A,fit=rolling)",
        "games(file={secret},prior=uci(engine={program}))",
        "polyglot(file={secret})",
        "polyglot(file={secret},prior=games(file={secret}))",
        "noisy(policy=uci(engine={program}))",
        "noisy(policy=noisy(policy=games(file={secret})),epsilon=0.5)",
        "mixture(a=uniform,b=uci(engine={program}))",
        "mixture(a=uci(engine={program}),b=uci(engine={program}),per=move)",
        "mixture(a=uniform,b=uniform,weights=uci(engine={program}))",
        "mixture(a=mixture(a=uniform,b=polyglot(file={secret})),b=uniform)",
        "best_response(to=uci(engine={program}))",
        "softmax(policy=uci(engine={program}))",
        "mcts(evaluator=games(file={secret}))",
    )
)
"""Policies that would run or open something."""

GAMES = (
    *(
        f"python_meta_precomputation(game=kuhn_poker(),sigma={spec},sigma_pre=uniform(),penalty_0=0.1)"
        for spec in SPECS
    ),
    f"python_meta_precomputation(game=kuhn_poker(),sigma=uniform(),sigma_pre={SPECS[0]})",
    f"python_meta_precomputation(game=efg_game(filename={SECRET}),sigma=uniform(),sigma_pre=uniform())",
    f"python_meta_precomputation(tree_file={SECRET})",
    f"python_clock(game=efg_game(filename={SECRET}))",
    f"efg_game(filename={SECRET})",
    f"efg_game( filename = {SECRET} )",
    f"nfg_game(filename={SECRET})",
    f"bargaining(instances_file={SECRET})",
    f"colored_trails(boards_file={SECRET})",
    f"crossword(puzzles_root={FOLDER},word_list_file={SECRET})",
    f"crossword(puzzles_root={FOLDER})",
    f"repeated_game(stage_game=nfg_game(filename={SECRET}),num_repetitions=2)",
    f"turn_based_simultaneous_game(game=nfg_game(filename={SECRET}))",
    f"start_at(game=efg_game(filename={SECRET}),history=0)",
    f"misere(game=efg_game(filename={SECRET}))",
    f"cached_tree(game=efg_game(filename={SECRET}))",
    f"zerosum(game=misere(game=efg_game(filename={SECRET})))",
)
"""Games that would."""

PLACES = (
    *SPECS[:8],
    f"Stockfish 15.1 [Debug Log File={WRITTEN}, SyzygyPath=$(id>x)]",
    f"Stockfish 15.1 [Debug Log File={WRITTEN}]",
    *(
        SECRET,
        f"file://{SECRET}",
        WRITTEN,
        f"../../../../../../..{WRITTEN}",
        f"|{PROGRAM}",
        "$(id>x)",
        "`id`",
    ),
    *("http://127.0.0.1:9/x", "\\\\host\\share", "~/.bashrc", "cos\nsystem\n(S'id'\ntR.", "__import__('os')"),
    *(
        "%s%n",
        "{0.__class__}",
        "'; ATTACH DATABASE '/var/tmp/x' AS x; --",
        "-oProxyCommand=id",
        "\0/etc/passwd",
    ),
)
"""Texts that would, somewhere."""


@dataclasses.dataclass(frozen=True)
class Reader:
    """A reader of files.

    covers: the public functions that it calls with the file.
    good: files that are read; hostile: others.
    use: reads a file of a folder, and works with what came of it.
    name: of the file; its suffix says how fuzzing changes it.
    words: what means something to whoever reads it.
    """

    covers: tuple[str, ...]
    good: Callable[[], Iterable[bytes]]
    hostile: Callable[[], Iterable[bytes]]
    use: Callable[[pathlib.Path], object]
    name: str = "file"
    words: tuple[bytes, ...] = ()


READERS: dict[str, Reader] = {}


class _Engine:
    """Scores by number, for whom settings need an engine."""

    engine_id = "Fake 1.0"

    def search(self, epds: Any, limit: Any, multipv: int, samples: int = 0) -> list[Any]:
        boards = (chess.Board(f"{epd} 0 1") for epd in epds)
        rows = [[Line(move.uci(), 30, None) for move in board.legal_moves][:multipv] for board in boards]
        return [SearchResult(tuple(row), 1, 1, ((row[0].move, max(samples, 1)),)) for row in rows]


def _documents(told: Any) -> Iterable[Any]:
    """A document of JSON with each hostile text at each of its places of text, in turn."""
    places: list[tuple[Any, ...]] = []

    def walk(part: Any, path: tuple[Any, ...]) -> None:
        if isinstance(part, str) or part is None:
            places.append(path)
        for key, inner in (
            part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else ())
        ):
            walk(inner, (*path, key))

    walk(told, ())
    for number in range(max(len(places), len(PLACES))):
        changed = top = json.loads(json.dumps(told))
        *above, last = places[number % len(places)]
        for key in above:
            changed = changed[key]
        changed[last] = PLACES[number % len(PLACES)]
        yield top


def json_documents(told: Any) -> Iterable[bytes]:
    return (json.dumps(each).encode() for each in _documents(told))


# -- results -------------------------------------------------------------------------------------------------


def _hostile_results() -> Iterable[bytes]:
    (told,) = samples.results()
    for spec in SPECS:
        yield json.dumps(told | {"settings": told["settings"] | {"opponent": spec}}).encode()
        more = {"opponent": spec, "trusted": True}
        yield json.dumps(told | {"settings": told["settings"] | more}).encode()
    for text in PLACES:
        yield json.dumps(told | {"analyst": text, "opponent": text}).encode()
        more = {"evaluation": "calibrated", "calibration": text}
        yield json.dumps(told | {"settings": told["settings"] | more}).encode()
    yield from json_documents(told)


def _use_result(path: pathlib.Path) -> object:
    found = Preparation.read(path.parent)
    engine: Any = _Engine()
    policies = preparation_policies(found.settings, engine)
    state = found.settings.game().new_initial_state()
    policies.leaf_value.evaluate_batch([state])
    write_polyglot(found.book, path.with_name("book.bin"))
    write_pgn(found.book, path.with_name("book.pgn"), exits=found.exits)
    assert found.book.first_lines(3) and OpponentWords(found.settings, found.engines[1]).name
    return [policy.action_probabilities(state) for policy in policies.sigma]


READERS["result"] = Reader(
    ("Preparation.read",),
    lambda: [json.dumps(samples.results()[0]).encode()],
    _hostile_results,
    _use_result,
    "result.json",
    (b'"e2e4"', b'"fen"', b"nodes=", b'"mate": 0'),
)


@functools.cache
def _model_file() -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """What a preparation against a person's games has."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "games.pgn").write_bytes(samples.sample_games()[-1])
        spec = f"mixture(a=noisy(policy=games(file={folder}/games.pgn,prior=uci(r=20))),b=uniform)"
        settings = PreparationSettings(opponent=spec, trusted=True)
        engine: Any = _Engine()
        policies = preparation_policies(settings, engine)
        files = ModelFiles.of(settings, policies.sigma[1], policies.leaf_value)
        assert files is not None
        path = folder / MODEL_FILE
        files.save(path)
        header, arrays = read_archive(path, ("keys_0", "actions_0", "weights_0"))
        header["named"]["opponent"] = _NAMED  # and not a folder's name, which is another one each time
        return header, arrays, archive(header, arrays)


_NAMED = "games(file=games.pgn)"


def _hostile_models() -> Iterable[bytes]:
    header, arrays, _ = _model_file()
    for spec in SPECS:
        for part in (spec, parsed_spec(spec), {"name": "noisy", "policy": spec}):
            yield archive(header | {"opponent": part}, arrays)
            counts = {"name": "counts", "source": 0, "alpha": 1.0, "prior": part}
            yield archive(header | {"opponent": counts}, arrays)
    for told in _documents(header):
        yield archive(told, arrays)


def _use_model(path: pathlib.Path) -> object:
    (told,) = samples.results()
    more = {"opponent": _NAMED, "evaluation": "calibrated"}
    path.with_name("result.json").write_text(json.dumps(told | {"settings": told["settings"] | more}))
    return _use_result(path)


READERS["opponent_data"] = Reader(
    ("Preparation.read",), lambda: [_model_file()[2]], _hostile_models, _use_model, "opponent.npz"
)


# -- trees and policies --------------------------------------------------------------------------------------


@functools.cache
def _tree_file() -> tuple[dict[str, Any], dict[str, Any], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tree.npz")
        samples.sample_trees()[0].save(path)
        names = [name.removesuffix(".npy") for name in _members(path) if name != "header.npy"]
        return *read_archive(path, names), path.read_bytes()


def _members(path: pathlib.Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def archive(header: Any, arrays: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_archive(pathlib.Path(folder, "x"), header, arrays)
        return pathlib.Path(folder, "x").read_bytes()


def _hostile_trees() -> Iterable[bytes]:
    header, arrays, _ = _tree_file()
    own = samples.sample_trees()[0]
    for game in (*GAMES, *SPECS, *PLACES):
        told = header | {"game": game}
        told["fingerprint"] = dataclasses.replace(own, game_string=game).fingerprint
        yield archive(told, arrays)
    for text in PLACES:
        yield archive(header | {"infoset_keys": [text] * len(header["infoset_keys"])}, arrays)


def _use_tree(path: pathlib.Path) -> object:
    tree = HistoryTree.load(path)
    uses: list[Callable[[], object]] = [
        lambda: tree.state(3),
        lambda: best_precomputation(tree, 0).policy(),
        lambda: meta_equilibrium(tree, iterations=3, check_every=3),
        lambda: to_efg(MetaPrecomputationGame(tree, check_supports=False)),
        lambda: tree.game.new_initial_state(),
        lambda: HistoryTree.load(path).game,
    ]
    for use in uses:
        with contextlib.suppress(*REFUSALS):
            use()
    return tree


READERS["tree"] = Reader(
    ("HistoryTree.load",), lambda: [_tree_file()[2]], _hostile_trees, _use_tree, "tree.npz"
)


@functools.cache
def _policy_file() -> tuple[dict[str, Any], dict[str, Any], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "policy")
        save_policy(solve("kuhn_poker").policy(), path)
        return *read_archive(path, ("start", "action", "probability")), path.read_bytes()


def _hostile_policies() -> Iterable[bytes]:
    header, arrays, _ = _policy_file()
    for game in (*GAMES, *SPECS, *PLACES):
        yield archive(header | {"game": game}, arrays)
    for told in _documents(header):
        yield archive(told, arrays)


READERS["policy"] = Reader(
    ("load_policy",), lambda: [_policy_file()[2]], _hostile_policies, load_policy, "policy.npz"
)


# -- games ---------------------------------------------------------------------------------------------------


_PLAYERS = ("Карпов, А", "Karpow,AE", "丁立人", "O’K_\u0301", r"A \"K\" \\", "GM,", "'", "\u212a\u0130")
_PGN_WORDS = (
    *b"{ } ( ) $2 $99999999999 1-0 * 0-0 O-O-O -- Z0 e8=Q N@f3 1... ; % Nbd7 [%clk 1:00:00]".split(),
    *(b"exd6 e.p.", b"\n\n", b'"] ', b"\xef\xbb\xbf", b"[Event "),
    *(
        b"[%s]\n" % tag
        for tag in (
            *(b'Event "x"', b'White "Karpov Anatoli"', b'FEN "8/8/8/8/8/8/8/K1k5 w - - 0 1"', b'SetUp "1"'),
            *(b'Variant "Chess960"', b'Variant "From Position"', b'Date "99999.99.99"', b'Date "31.12.2023"'),
            *(b'UTCDate "2024-01-02"', b'WhiteElo "99999"', b'TimeControl "1/2+3"'),
            b'FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"',
        )
    ),
    *("Sf3 Sc6 Lb5 ♘f3 ♝b4 Кf3 Крe2 nf3 bb5 0–0 ½-½ 0.5-0.5 1/2 e8(D) d:e5 [%clk".encode().split()),
    *("Müller Łódź Карпов".encode(page) for page in ("utf-8", "utf-16")),
    *("Łódź Příbyl".encode("cp1250"), "Карпов".encode("cp1251")),
    *(f'[White "{name}"]\n[Black "{name[::-1]}"]\n'.encode() for name in _PLAYERS),
)


def _good_games() -> list[bytes]:
    return [b"".join(samples.sample_games()[:-1])]


def hostile_games() -> Iterable[bytes]:
    moves = b"\n1. e4 e5 2. Nf3 *\n\n"
    for text in PLACES:
        value = text.replace('"', "'").encode("utf-8", "surrogateescape")
        for tag in (b"White", b"FEN", b"Variant", b"Event"):
            setup = b'[SetUp "1"]\n' if tag == b"FEN" else b""
            yield setup + b'[%s "%s"]\n[Black "B"]\n' % (tag, value) + moves
        yield b'[White "A"]\n[Black "B"]\n\n1. e4 {[%%cmd %s] %s} e5 $1 *\n' % (value, value)
    yield b'[Event "%s"]\n' % PROGRAM.encode() * 50 + moves
    yield b"%include /etc/passwd\n" + moves


def _sparred(path: pathlib.Path) -> object:
    """The games of whoever plays in a file, against whom both sides prepare."""
    games = SparringGames.read(path, next(iter(pgn_names(path)), "B"))
    return [games.against(PreparationSettings(player=player)) for player in (0, 1)]


for _name, _covers, _read in (
    ("games", "read_games", lambda path: list(read_games(path, setups=True))),
    ("table", "GameSelection", lambda path: GameSelection(path).table()),
    ("pgn_moves", "pgn_moves", lambda path: pgn_moves(path)),
    ("pgn_names", "pgn_names", lambda path: pgn_names(path)),
    ("pgn_results", "pgn_results", lambda path: pgn_results(path)),
    ("reply_games", "reply_games", lambda path: reply_games(samples.small_book(), GameSelection(path))),
    ("sparring", "SparringGames.read", lambda path: _sparred(path)),
    ("repertoire", "read_repertoire", lambda path: read_repertoire(path, chess.WHITE).playable),
    ("games_policy", "games_policy", lambda path: str(games_policy(ChessGame({}), path))),
):
    covered = (_covers, "SparringGames") if _name == "sparring" else (_covers,)
    READERS[_name] = Reader(covered, _good_games, hostile_games, _read, "games.pgn", _PGN_WORDS)


# -- books and databases -------------------------------------------------------------------------------------


def _hostile_books() -> Iterable[bytes]:
    for text in PLACES:
        data = text.encode("utf-8", "surrogateescape")
        yield data
        yield data.ljust(-(-len(data) // 16) * 16, b"\0")
        key = chess.polyglot.zobrist_hash(chess.Board())
        yield struct.pack(">Q", key) + data[:8].ljust(8, b"\0")


def _use_book(path: pathlib.Path) -> object:
    uses: list[Callable[[], object]] = [
        lambda: PolyglotCounts.read(path).at(chess.Board()),
        lambda: polyglot_policy(ChessGame({}), path),
        lambda: uci_book(str(path))(chess.Board()),
        lambda: read_repertoire(path, chess.WHITE, max_plies=4),
    ]
    for use in uses:
        with contextlib.suppress(*REFUSALS):
            use()
    return uses[0]()


READERS["polyglot"] = Reader(
    ("PolyglotCounts", "polyglot_policy", "uci_book"),
    lambda: samples.polyglot_samples()[:2],
    _hostile_books,
    _use_book,
    "book.bin",
)


# -- fits ----------------------------------------------------------------------------------------------------


def _fits() -> list[bytes]:
    return [json.dumps(told).encode() for told in samples.calibrations()]


READERS["calibration"] = Reader(
    ("load_calibration",),
    _fits,
    lambda: json_documents(samples.calibrations()[0]),
    load_calibration,
    "fit.json",
)


# -- what a page shows beside its books --------------------------------------------------------------------

_MATCH = {"matches": [{"side": "white", "player": "the book", "positions": 4, "games": 2, "score": 0.5}]}


def _use_shown(path: pathlib.Path) -> object:
    with contextlib.suppress(*REFUSALS):
        report._read_plot(path)
    with contextlib.suppress(*REFUSALS):
        report._read_notes(str(path))
    return report._read_match(str(path.parent))


READERS["shown"] = Reader(
    (), lambda: [json.dumps(_MATCH).encode()], lambda: json_documents(_MATCH), _use_shown, "result.json"
)


# -- databases -----------------------------------------------------------------------------------------------

_HARM = (
    "CREATE TRIGGER harm AFTER INSERT ON {table} BEGIN SELECT load_extension('/etc/passwd'); END",
    "CREATE TRIGGER harm BEFORE UPDATE ON {table} BEGIN SELECT writefile('/var/tmp/written', 'x'); END",
    "DROP TABLE {table}; CREATE VIEW {table} AS SELECT load_extension('/etc/passwd') AS x",
    "CREATE INDEX harm ON {table} (upper(load_extension))",
    "CREATE VIRTUAL TABLE harm USING fts5(x)",
    "PRAGMA writable_schema=1; UPDATE sqlite_master SET sql = 'CREATE TABLE x (a DEFAULT (readfile(''x'')))'",
)


def hostile_databases(sample: bytes) -> Iterable[bytes]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as plain:
        plain.deserialize(sample)
        tables = [name for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [
            (table, row[1])
            for table in tables
            for row in plain.execute(f"PRAGMA table_info({table})")
            if row[2] == "TEXT"
        ]
    changes: list[tuple[str, tuple[str, ...]]] = []
    for number, text in enumerate(PLACES):
        table, column = columns[number % len(columns)]
        changes.append((f"UPDATE OR IGNORE {table} SET {column} = ?", (text,)))
    changes += [(harm.format(table=table), ()) for harm in _HARM for table in tables]
    for change, given in changes:
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as file:
            file.deserialize(sample)
            with contextlib.suppress(sqlite3.Error):
                file.execute(change, given) if given else file.executescript(change)
            yield file.serialize()


_STORE_WORDS = (
    *b"e2e4:#0 e2e4:999999999 nodes=100 movetime=0".split(),
    *(b"e2e4:31 d2d4:#-3", b"e2e4:1 e2e4:1", b"9 700 e2e4:1 d2d4:2;10 900", b"Fake 2"),
)


def _use_store(path: pathlib.Path) -> object:
    with EvaluationStore(path) as store:
        for engine in store.engines():
            with contextlib.suppress(*REFUSALS):
                StoredEngine(store, engine_id=engine).search([chess.Board().epd()], SearchLimit(nodes=100), 2)
        epds, limit = samples.store_positions(), samples.STORE_LIMIT
        uses: list[Callable[[], object]] = [
            lambda: store.get_many(samples.STORE_ENGINE, limit, 2, epds),
            lambda: store.get_many(samples.STORE_ENGINE, limit, 2, epds, 3),
            lambda: store.put(
                samples.STORE_ENGINE, "nodes=7", 2, epds[0], SearchResult((Line("e2e4", 1, None),), 1, 1)
            ),
            lambda: store.export(path.with_name("copy.sqlite")),
        ]
        for use in uses:
            with contextlib.suppress(*REFUSALS):
                use()
        return len(store)


READERS["store"] = Reader(
    ("EvaluationStore",),
    lambda: samples.stores(),
    lambda: hostile_databases(samples.stores()[1]),
    _use_store,
    "store.sqlite",
    _STORE_WORDS,
)


def _use_drill(path: pathlib.Path) -> object:
    with Drill(samples.small_book(), path, seed=0) as drill:
        card = drill.next(samples.NOW)
        if card is not None:
            drill.answer(card, card.moves[0], samples.NOW)
        return drill.expected_loss(samples.NOW)


READERS["drill"] = Reader(
    ("Drill",),
    lambda: samples.drills(),
    lambda: hostile_databases(samples.drills()[0]),
    _use_drill,
    "drill.sqlite",
)


# -- texts ---------------------------------------------------------------------------------------------------


def _use_spec(path: pathlib.Path) -> object:
    text = path.read_text(encoding="utf-8", errors="replace")
    game, engine = ChessGame({}), _Engine()
    uses: list[Callable[[], object]] = [
        lambda: make_policy(game, text),
        lambda: make_policy(pyspiel.load_game("kuhn_poker"), text),
        lambda: make_policy(game, {"name": "noisy", "policy": text}),
        lambda: opponent_policy(game, text, engine),
        lambda: preparation_policies(PreparationSettings(opponent=text), engine),
        lambda: loaded_game(GAMES[0].replace(SPECS[0], text)),
    ]
    with contextlib.suppress(ValueError):
        if "best_response" in text and not touched(text):  # all of chess would be looked at
            return None
    for use in uses:
        with contextlib.suppress(*REFUSALS, TypeError):
            use()
    return None


READERS["spec"] = Reader(
    ("make_policy", "opponent_policy"),
    lambda: [b"uniform", b"noisy(policy=uci(r=20))"],
    lambda: (spec.encode() for spec in SPECS),
    _use_spec,
)


def main(step: int = 1) -> None:
    """Runs all readers, on every `step`th of the hostile files."""
    from tools.resumed import WATCHED  # which has these readers, and more

    told: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        inputs = {key: ([*each.good()], [*each.hostile()][::step]) for key, each in WATCHED.items()}
        for key, reader in WATCHED.items():  # what Numba compiles comes out of its cache now
            with tempfile.TemporaryDirectory(dir=name) as folder:
                _run(reader, inputs[key][0][0], pathlib.Path(folder))
        watch = Audit(pathlib.Path(name))
        # Engines are looked for by `shutil.which`, which no audit event tells of.
        shutil.which = lambda command, *_, **__: watch.events.append(  # type: ignore[assignment]
            ("audit", "which", str(command))
        )
        for key, reader in WATCHED.items():
            good, hostile = inputs[key]
            row = told[key] = {"good": len(good), "hostile": len(hostile), "read": 0, "events": []}
            for number, data in enumerate((*good, *hostile)):
                with tempfile.TemporaryDirectory(dir=name) as folder, watch.on(folder):
                    ok = _run(reader, data, pathlib.Path(folder))
                row["read"] += ok and number < len(good)
                row["events"] += [f"{event} of input {number}" for _, event, _ in watch.events]
    json.dump(told, sys.stdout)


def _run(reader: Reader, data: bytes, folder: pathlib.Path) -> bool:
    """Whether a file is read."""
    path = folder / reader.name
    path.write_bytes(data)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            reader.use(path)
        except REFUSALS:
            return False
    return True


if __name__ == "__main__":
    os.environ.setdefault("STOCKFISH", PROGRAM)
    main(*map(int, sys.argv[1:]))
