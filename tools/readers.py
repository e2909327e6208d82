"""Everything public that reads a file, with files of strangers that would reach out of it.

    python -m tools.readers

runs each reader on good and on hostile files, uses what it read as users do, and prints what it did to the
machine beside reading: JSON, by reader, of audit events. `tests/test_trust.py` checks what may come out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import chess
import pyspiel

from precomp_games import HistoryTree, MetaPrecomputationGame, make_policy, to_efg
from precomp_games import chess as prep
from precomp_games.algorithms import best_precomputation, load_policy, meta_equilibrium, save_policy, solve
from precomp_games.chess.data.move_counts import GameSelection, PolyglotCounts
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.data.scouting import ScoutedGames, scout
from precomp_games.chess.engines.searches import Line, SearchResult
from precomp_games.chess.game import ChessGame
from precomp_games.chess.model import people_values
from precomp_games.chess.model.calibration import load_calibration
from precomp_games.chess.model.model import MODEL_FILE, ModelFiles, preparation_policies
from precomp_games.chess.model.opponents import polyglot_policy
from precomp_games.chess.model.played import pgn_moves, pgn_results, reply_games
from precomp_games.chess.plan.sparring import SparringGames
from precomp_games.chess.play.uci_engine import uci_book
from precomp_games.chess.study import scout_page
from precomp_games.chess.study.words import OpponentWords
from precomp_games.commands import report
from precomp_games.policies.specs import parsed_spec, touched
from precomp_games.tree.base_game import loaded_game
from tools import samples
from tools.audit import Audit
from tools.fuzz.mutate import HARM, VALUES, harm, packed, places, tables, unpacked

__all__ = ["READERS", "REFUSALS", "Reader"]

REFUSALS = (ValueError, OSError, prep.EngineError, pyspiel.SpielError)
"""Errors that a reader may raise."""

# A program, a file to read and one to write, and a folder, all elsewhere.
PROGRAM, SECRET, WRITTEN, FOLDER = "/bin/true", "/etc/passwd", "/var/tmp/precomp-games-written", "/etc"
_TOUCHING = (
    f"uci(engine={PROGRAM},nodes=1)",
    f"games(file={SECRET},player=A,fit=rolling)",
    f"uci(engine={PROGRAM},store={WRITTEN})",
    f"uci(engine={PROGRAM},options=of(Hash=64,DebugLogFile={WRITTEN}))",
    f"uci(options=of(SyzygyPath={FOLDER}))",
    f"polyglot(file={SECRET})",
    f"uci(store={WRITTEN})",
    "uci(workers=4)",
)
_MIXED = (
    *("noisy(policy={})", "noisy(policy=noisy(policy={}),epsilon=0.5)", "softmax(policy={})"),
    *("mixture(a=uniform,b={})", "mixture(a={},b={},per=move)", "mixture(a=uniform,b=uniform,weights={})"),
    *("mixture(a=mixture(a=uniform,b={}),b=uniform)", "best_response(to={})", "mcts(evaluator={})"),
    *(f"games(file={SECRET},prior={{0}})", f"polyglot(file={SECRET},prior={{0}})"),
)
SPECS = (*_TOUCHING, *(part.format(spec, spec) for part, spec in itertools.product(_MIXED, _TOUCHING[:2])))
"""Policies that would run or open something."""

_FILES = (
    *(f"efg_game(filename={SECRET})", f"efg_game( filename = {SECRET} )", f"nfg_game(filename={SECRET})"),
    *(f"bargaining(instances_file={SECRET})", f"colored_trails(boards_file={SECRET})"),
    *(f"crossword(puzzles_root={FOLDER},word_list_file={SECRET})", f"crossword(puzzles_root={FOLDER})"),
    f"python_meta_precomputation(tree_file={SECRET})",
)
_AROUND = (
    "python_meta_precomputation(game={},sigma=uniform(),sigma_pre=uniform())",
    *("python_clock(game={})", "repeated_game(stage_game={},num_repetitions=2)", "cached_tree(game={})"),
    *("turn_based_simultaneous_game(game={})", "start_at(game={},history=0)", "misere(game={})"),
    "zerosum(game=misere(game={}))",
)
_OF_POLICIES = "python_meta_precomputation(game=kuhn_poker(),sigma={},sigma_pre={},penalty_0=0.1)"
GAMES = (
    *(_OF_POLICIES.format(spec, "uniform()") for spec in SPECS),
    _OF_POLICIES.format("uniform()", SPECS[0]),
    *_FILES,
    *(game.format(_FILES[number % 3]) for number, game in enumerate(_AROUND)),
)
"""Games that would."""

PLACES = (
    *_TOUCHING,
    f"Stockfish 15.1 [Debug Log File={WRITTEN}, SyzygyPath=$(id>x)]",
    f"Stockfish 15.1 [Debug Log File={WRITTEN}]",
    *(SECRET, f"file://{SECRET}", WRITTEN, f"../../../../../../..{WRITTEN}", f"|{PROGRAM}", "$(id>x)"),
    *("`id`", "http://127.0.0.1:9/x", "\\\\host\\share", "~/.bashrc", "cos\nsystem\n(S'id'\ntR.", "%s%n"),
    *("__import__('os')", "{0.__class__}", "'; ATTACH DATABASE '/var/tmp/x' AS x; --"),
    *("-oProxyCommand=id", "\0/etc/passwd"),
)
"""Texts that would, somewhere."""


@dataclasses.dataclass(frozen=True)
class Reader:
    """A reader of files.

    covers: the public functions that it calls with the file.
    good: files that are read.
    use: reads a file of a folder, and works with what came of it.
    name: of the file; its suffix determines how fuzzing changes it.
    words: tokens that have a meaning to the reader.
    more: hostile files, beside those that are made of the last good one by its kind.
    """

    covers: tuple[str, ...]
    good: Callable[[], Sequence[bytes]]
    use: Callable[[pathlib.Path], object]
    name: str = "file"
    words: tuple[bytes, ...] = ()
    more: Callable[[], Iterable[bytes]] = tuple

    def hostile(self) -> list[bytes]:
        """Hostile files for this reader."""
        return [*self.more(), *hostile_files(self.name, self.good()[-1])]


class _Pool(prep.EnginePool):
    """Scores by number, in place of engines."""

    def __init__(self) -> None:
        self.engine_id = "Fake 1.0"

    def search(self, epds: Any, limit: Any, multipv: int, on_result: Any = None, samples: int = 0) -> Any:
        for epd in epds:
            moves = sorted(move.uci() for move in chess.Board(f"{epd} 0 1").legal_moves)
            lines = tuple(Line(move, 30 - 7 * k, None) for k, move in enumerate(moves[:multipv]))
            on_result(epd, SearchResult(lines, 5, 1 << 20, ((lines[0].move, max(samples, 1)),)))


@contextlib.contextmanager
def numbering_engine(store: str | os.PathLike[str] = ":memory:") -> Iterator[prep.StoredEngine]:
    """Open an engine within this process, with a store."""
    with prep.EvaluationStore(store) as opened:
        yield prep.StoredEngine(opened, _Pool())


def tried(*uses: Callable[[], object]) -> None:
    """Use a value that was read in each way, refused or not."""
    for use in uses:
        with contextlib.suppress(*REFUSALS):
            use()


# -- hostile files, by kind ----------------------------------------------------------------------------------


def hostile_files(name: str, sample: bytes) -> Iterable[bytes]:
    """Return hostile files in place of a good one, by the suffix of its name."""
    kind = name.rpartition(".")[2]
    if kind == "json":
        yield from (json.dumps(document).encode() for document in _documents(json.loads(sample)))
    elif kind == "npz":
        header, arrays = unpacked(sample)
        yield from (packed(document, arrays) for document in _documents(header))
    elif kind == "sqlite":
        yield from _databases(sample)
    elif kind == "pgn":
        yield from _games()
        yield from (sample[: -k or None] for k in range(0, 120, 7))
    elif kind == "csv":
        yield from (sample.replace(b",", b"," + place, 3) for place in map(_encoded, PLACES))
    elif kind == "bin":
        for data in map(_encoded, PLACES):
            yield data
            yield data.ljust(-(-len(data) // 16) * 16, b"\0")
            key = chess.polyglot.zobrist_hash(chess.Board())
            yield struct.pack(">Q", key) + data[:8].ljust(8, b"\0")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _documents(document: Any) -> Iterable[Any]:
    """Return JSON documents with each hostile text in place of texts, and each kind of value anywhere."""
    for values, kinds in ((PLACES, (str, type(None))), (VALUES, (object,))):
        number = count = 0
        while number < max(count, len(values)):
            changed = json.loads(json.dumps(document))
            found = [(holder, key) for holder, key in places(changed) if isinstance(holder[key], kinds)]
            count = len(found)
            holder, key = found[number % count]
            holder[key] = values[number % len(values)]
            yield changed
            number += 1


def _games() -> Iterable[bytes]:
    moves = b"\n1. e4 e5 2. Nf3 *\n\n"
    for text in PLACES:
        value = _encoded(text.replace('"', "'"))
        for tag in (b"White", b"FEN", b"Variant", b"Event"):
            setup = b'[SetUp "1"]\n' if tag == b"FEN" else b""
            yield setup + b'[%s "%s"]\n[Black "B"]\n' % (tag, value) + moves
        yield b'[White "A"]\n[Black "B"]\n\n1. e4 {[%%cmd %s] %s} e5 $1 *\n' % (value, value)
    yield b'[Event "%s"]\n' % PROGRAM.encode() * 50 + moves
    yield b"%include /etc/passwd\n" + moves


def _databases(sample: bytes) -> Iterable[bytes]:
    with contextlib.closing(_opened(sample)) as file:
        of = tables(file)
        texts = [
            (table, row[1])
            for table in of
            for row in file.execute(f"PRAGMA table_info({table})")
            if row[2] == "TEXT"
        ]
    for number, text in enumerate(PLACES):
        table, column = texts[number % len(texts)]
        with contextlib.closing(_opened(sample)) as file:
            file.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (text,))
            yield file.serialize()
    for change, (table, columns) in itertools.product(HARM, of.items()):
        with contextlib.closing(_opened(sample)) as file:
            with contextlib.suppress(sqlite3.Error):
                harm(file, change, table, columns)
            yield file.serialize()


def _opened(sample: bytes) -> sqlite3.Connection:
    file = sqlite3.connect(":memory:", isolation_level=None)
    file.deserialize(sample)
    return file


# -- results -------------------------------------------------------------------------------------------------


def _hostile_results() -> Iterable[bytes]:
    (result,) = samples.results()
    changes: list[dict[str, Any]] = [{"opponent": spec} for spec in SPECS]
    changes += [{"opponent": spec, "trusted": True} for spec in SPECS]
    changes += [{"evaluation": "calibrated", "calibration": text} for text in PLACES]
    for more in changes:
        yield json.dumps(result | {"settings": result["settings"] | more}).encode()
    for text in PLACES:
        yield json.dumps(result | {"analyst": text, "opponent": text}).encode()


def _use_result(path: pathlib.Path) -> object:
    found = prep.Preparation.read(path.parent)
    state = found.settings.game().new_initial_state()
    with numbering_engine() as engine:
        policies = preparation_policies(found.settings, engine)
        policies.leaf_value.evaluate_batch([state])
        prep.write_polyglot(found.book, path.with_name("book.bin"))
        prep.write_pgn(found.book, path.with_name("book.pgn"), exits=found.exits)
        used = found.book.first_lines(3), OpponentWords(found.settings, found.engines[1]).name
        return [used, *(policy.action_probabilities(state) for policy in policies.sigma)]


@functools.cache
def _model_files() -> list[bytes]:
    """Return the model file of a preparation against a person's games."""
    with tempfile.TemporaryDirectory() as name, numbering_engine() as engine:
        folder = pathlib.Path(name)
        (folder / "games.pgn").write_bytes(samples.sample_games()[-1])
        spec = f"mixture(a=noisy(policy=games(file={folder}/games.pgn,prior=uci(r=20))),b=uniform)"
        settings = prep.PreparationSettings(opponent=spec, trusted=True)
        policies = preparation_policies(settings, engine)
        files = ModelFiles.of(settings, policies.sigma[1], policies.leaf_value)
        assert files is not None
        files.save(folder / MODEL_FILE)
        header, arrays = unpacked((folder / MODEL_FILE).read_bytes())
        header["named"]["opponent"] = _NAMED  # and not a folder's name, which is another one each time
        return [packed(header, arrays)]


_NAMED = "games(file=games.pgn)"


def _hostile_models() -> Iterable[bytes]:
    header, arrays = unpacked(_model_files()[0])
    for spec in SPECS:
        for part in (spec, parsed_spec(spec), {"name": "noisy", "policy": spec}):
            counts = {"name": "counts", "source": 0, "alpha": 1.0, "prior": part}
            yield packed(header | {"opponent": part}, arrays)
            yield packed(header | {"opponent": counts}, arrays)


def _use_model(path: pathlib.Path) -> object:
    (result,) = samples.results()
    more = {"opponent": _NAMED, "evaluation": "calibrated"}
    path.with_name("result.json").write_text(json.dumps(result | {"settings": result["settings"] | more}))
    return _use_result(path)


# -- trees and policies --------------------------------------------------------------------------------------


@functools.cache
def _saved(save: Callable[[pathlib.Path], object]) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "file.npz")
        save(path)
        return [path.read_bytes()]


def _tree(path: pathlib.Path) -> None:
    samples.sample_trees()[0].save(path)


def _policy(path: pathlib.Path) -> None:
    save_policy(solve("kuhn_poker").policy(), path)


def _hostile_trees() -> Iterable[bytes]:
    header, arrays = unpacked(_saved(_tree)[0])
    own = samples.sample_trees()[0]
    for game in (*GAMES, *SPECS, *PLACES):
        fitting = dataclasses.replace(own, game_string=game).fingerprint
        yield packed(header | {"game": game, "fingerprint": fitting}, arrays)


def _hostile_policies() -> Iterable[bytes]:
    header, arrays = unpacked(_saved(_policy)[0])
    return (packed(header | {"game": game}, arrays) for game in (*GAMES, *SPECS, *PLACES))


def _use_tree(path: pathlib.Path) -> object:
    tree = HistoryTree.load(path)
    tried(
        lambda: tree.state(3),
        lambda: best_precomputation(tree, 0).policy(),
        lambda: meta_equilibrium(tree, iterations=3, check_every=3),
        lambda: to_efg(MetaPrecomputationGame(tree, check_supports=False)),
        lambda: tree.game.new_initial_state(),
        lambda: HistoryTree.load(path).game,
    )
    return tree


# -- games, books and databases ------------------------------------------------------------------------------


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


def _scouted(path: pathlib.Path) -> object:
    """Return the scouted moves of the first player of a file, as they are shown."""
    found = scout(ScoutedGames.read(path, next(iter(pgn_names(path)), "B")), least=1)
    scout_page.write_scout_page(path.with_name("scout.html"), found, {})
    return scout_page.scout_pgn(found), found.to_json()


def _sparred(path: pathlib.Path) -> object:
    """Return the games of a file's player, against whom both sides prepare."""
    games = SparringGames.read(path, next(iter(pgn_names(path)), "B"))
    return [games.against(prep.PreparationSettings(player=player)) for player in (0, 1)]


def _use_book(path: pathlib.Path) -> object:
    tried(
        lambda: polyglot_policy(ChessGame({}), path),
        lambda: uci_book(str(path))(chess.Board()),
        lambda: prep.read_repertoire(path, chess.WHITE, max_plies=4),
    )
    return PolyglotCounts.read(path).at(chess.Board())


_MATCH = {"matches": [{"side": "white", "player": "the book", "positions": 4, "games": 2, "score": 0.5}]}


def _use_shown(path: pathlib.Path) -> object:
    """Read what a page shows beside its books."""
    tried(lambda: report._read_plot(path), lambda: report._read_notes(str(path)))
    return report._read_match(str(path.parent))


_STORE_WORDS = (
    *b"e2e4:#0 e2e4:999999999 nodes=100 movetime=0".split(),
    *(b"e2e4:31 d2d4:#-3", b"e2e4:1 e2e4:1", b"9 700 e2e4:1 d2d4:2;10 900", b"Fake 2"),
)


def _use_store(path: pathlib.Path) -> object:
    epds, limit, name = samples.store_positions(), samples.STORE_LIMIT, samples.STORE_ENGINE
    result = SearchResult((Line("e2e4", 1, None),), 1, 1)
    with prep.EvaluationStore(path) as store:
        for engine in store.engines():
            stored = prep.StoredEngine(store, engine_id=engine)
            tried(lambda stored=stored: stored.search([chess.Board().epd()], prep.SearchLimit(nodes=100), 2))
        tried(
            lambda: store.get_many(name, limit, 2, epds),
            lambda: store.get_many(name, limit, 2, epds, 3),
            lambda: store.put(name, "nodes=7", 2, epds[0], result),
            lambda: store.export(path.with_name("copy.sqlite")),
        )
        return len(store)


def _use_drill(path: pathlib.Path) -> object:
    with prep.Drill(samples.small_book(), path, seed=0) as drill:
        card = drill.next(samples.NOW)
        if card is not None:
            drill.answer(card, card.moves[0], samples.NOW)
        return drill.expected_loss(samples.NOW)


def _use_spec(path: pathlib.Path) -> object:
    text = path.read_text(encoding="utf-8", errors="replace")
    game = ChessGame({})
    with contextlib.suppress(ValueError):
        if "best_response" in text and not touched(text):  # all of chess would be looked at
            return None
    with numbering_engine() as engine, contextlib.suppress(TypeError):
        tried(
            lambda: make_policy(game, text),
            lambda: make_policy(pyspiel.load_game("kuhn_poker"), text),
            lambda: make_policy(game, {"name": "noisy", "policy": text}),
            lambda: prep.opponent_policy(game, text, engine),
            lambda: preparation_policies(prep.PreparationSettings(opponent=text), engine),
            lambda: loaded_game(_OF_POLICIES.format(text, "uniform()")),
        )
    return None


def _json(document: Any) -> list[bytes]:
    return [json.dumps(document).encode()]


def _of_games(covers: str, read: Callable[[pathlib.Path], object]) -> Reader:
    good = lambda: [b"".join(samples.sample_games()[:-1])]  # noqa: E731
    return Reader((covers,), good, read, "games.pgn", _PGN_WORDS)


READERS: dict[str, Reader] = {
    "result": Reader(
        ("Preparation.read",),
        lambda: _json(samples.results()[0]),
        _use_result,
        "result.json",
        (b'"e2e4"', b'"fen"', b"nodes=", b'"mate": 0'),
        _hostile_results,
    ),
    "opponent_data": Reader(
        ("Preparation.read",), _model_files, _use_model, "opponent.npz", more=_hostile_models
    ),
    "tree": Reader(("HistoryTree.load",), lambda: _saved(_tree), _use_tree, "tree.npz", more=_hostile_trees),
    "policy": Reader(
        ("load_policy",), lambda: _saved(_policy), load_policy, "policy.npz", more=_hostile_policies
    ),
    "games": _of_games("read_games", lambda path: list(prep.read_games(path, setups=True))),
    "scouting": _of_games("ScoutedGames.read", _scouted),
    "table": _of_games("GameSelection", lambda path: GameSelection(path).table()),
    "pgn_moves": _of_games("pgn_moves", pgn_moves),
    "pgn_names": _of_games("pgn_names", pgn_names),
    "pgn_results": _of_games("pgn_results", pgn_results),
    "reply_games": _of_games(
        "reply_games", lambda path: reply_games(samples.small_book(), GameSelection(path))
    ),
    "sparring": _of_games("SparringGames.read", _sparred),
    "repertoire": _of_games("read_repertoire", lambda path: prep.read_repertoire(path, chess.WHITE).playable),
    "games_policy": _of_games("games_policy", lambda path: str(prep.games_policy(ChessGame({}), path))),
    "polyglot": Reader(
        ("PolyglotCounts", "polyglot_policy", "uci_book"),
        lambda: samples.polyglot_samples()[:2],
        _use_book,
        "book.bin",
    ),
    "calibration": Reader(
        ("load_calibration",),
        lambda: [data for document in samples.calibrations() for data in _json(document)],
        load_calibration,
        "fit.json",
    ),
    "people_values": Reader(
        ("load_people",),
        lambda: _json(people_values.as_json(people_values.load_people())),
        people_values.load_people,
        "people_games.json",
    ),
    "shown": Reader((), lambda: _json(_MATCH), _use_shown, "result.json"),
    "store": Reader(("EvaluationStore",), samples.stores, _use_store, "store.sqlite", _STORE_WORDS),
    "drill": Reader(("Drill",), samples.drills, _use_drill, "drill.sqlite"),
    "spec": Reader(
        ("make_policy", "opponent_policy"),
        lambda: [b"uniform", b"noisy(policy=uci(r=20))"],
        _use_spec,
        more=lambda: [spec.encode() for spec in SPECS],
    ),
}


def main(step: int = 1) -> None:
    """Run all readers, on every `step`th of the hostile files."""
    from tools.resumed import WATCHED  # which has these readers, and more

    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        inputs = {key: ([*each.good()], [*each.hostile()][::step]) for key, each in WATCHED.items()}
        for key, reader in WATCHED.items():  # what Numba compiles comes out of its cache now
            with tempfile.TemporaryDirectory(dir=name) as folder:
                _run(reader, inputs[key][0][0], pathlib.Path(folder))
        watch = Audit(pathlib.Path(name))
        # Engines are looked for by `shutil.which`, which no audit event reports.
        shutil.which = lambda command, *_, **__: watch.events.append(  # type: ignore[assignment]
            ("audit", "which", str(command))
        )
        for key, reader in WATCHED.items():
            good, hostile = inputs[key]
            row = rows[key] = {"good": len(good), "hostile": len(hostile), "read": 0, "events": []}
            for number, data in enumerate((*good, *hostile)):
                with tempfile.TemporaryDirectory(dir=name) as folder, watch.on(folder):
                    ok = _run(reader, data, pathlib.Path(folder))
                row["read"] += ok and number < len(good)
                row["events"] += [f"{event} of input {number}" for _, event, _ in watch.events]
    json.dump(rows, sys.stdout)


def _run(reader: Reader, data: bytes, folder: pathlib.Path) -> bool:
    """Return whether a reader accepts a file."""
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
