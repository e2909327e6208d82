"""Games and books of chess: PGN, Polyglot, results, progress of drills."""

from __future__ import annotations

import datetime
import functools
import json
import pathlib
import random
import sqlite3
import struct
import tempfile
import zlib
from typing import Any

import chess
import chess.polyglot

from precomp_games.chess import (
    Book,
    BookMove,
    BookPosition,
    ChessGame,
    Drill,
    PreparationSettings,
    games_policy,
    load_calibration,
    polyglot_policy,
    read_games,
    read_preparation,
    read_repertoire,
    read_table,
    reply_games,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.engines.searches import SearchLimit
from precomp_games.chess.evaluation import calibration
from precomp_games.chess.opponents.played import pgn_moves, pgn_results
from precomp_games.chess.play.uci_engine import uci_book
from precomp_games.chess.records.book_counts import PolyglotCounts
from precomp_games.chess.records.pgn_files import pgn_names
from precomp_games.chess.study.words import OpponentWords
from tools.fuzz import target
from tools.fuzz.mutate import bent, bent_database, bent_json

_DATA = pathlib.Path(__file__).parents[3] / "precomp_games" / "commands" / "data"
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


def _way(data: bytes, count: int) -> int:
    """Which of several uses an input has, by the input."""
    return zlib.crc32(data) % count


@functools.cache
def small_book(side: chess.Color = chess.WHITE) -> Book:
    """Two replies to e4 and a line after one of them; for Black an answer."""
    lines = {"": "e2e4", "e2e4 e7e5": "g1f3", "e2e4 c7c5": "g1f3", "e2e4 e7e5 g1f3 b8c6": "f1b5"}
    lines = lines if side else {"e2e4": "e7e5", "e2e4 e7e5 g1f3": "b8c6"}
    positions = []
    for number, (history, move) in enumerate(lines.items()):
        moves = tuple(map(chess.Move.from_uci, history.split()))
        played = (BookMove(chess.Move.from_uci(move), 1.0),)
        positions.append(BookPosition(moves, played, 1.0 / (1 + number), 0.3 / (1 + number)))
    return Book(chess.Board(), side, positions)


# -- PGN ---------------------------------------------------------------------------------------------------


@functools.cache
def sample_games() -> tuple[bytes, ...]:
    """Some short files."""
    files = [(_DATA / f"{name}_sample.pgn").read_bytes() for name in ("karpov", "repertoire", "review")]
    games = [b"[Event" + game for file in files for game in file.split(b"[Event")[1:]]
    chosen = sorted(games, key=len)[:8] + games[-8:]
    return (*chosen, b"".join(chosen[:3]))


def make_pgn(rng: random.Random) -> bytes:
    return bent(rng, sample_games(), _PGN_WORDS)


@target("pgn", make_pgn, prepare=sample_games)
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "games.pgn"
    path.write_bytes(data)
    way = _way(data, 7)
    if way == 0:
        return list(read_games(path, setups=True, key=chess.Board.epd)), pgn_names(path)
    if way == 1:
        return read_table(path, "Karpov")
    if way == 2:
        return pgn_moves(path, skip_plies=2)
    if way == 3:
        return pgn_results(path)
    if way == 4:
        return reply_games(small_book(), path)
    if way == 5:
        policy = games_policy(ChessGame({}), path, fit="rolling")
        return policy.action_probabilities(ChessGame({}).new_initial_state()), str(policy)
    return read_table(path, without="Karpov Anatoli")


@target("repertoire", make_pgn, prepare=sample_games)
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "book.pgn"
    path.write_bytes(data)
    book = read_repertoire(path, bool(_way(data, 2)))
    return book.playable, book.longest, str(book.report)


# -- Polyglot ----------------------------------------------------------------------------------------------


def sample_boards() -> list[chess.Board]:
    """Positions of the first moves; White may castle in the last."""
    boards = []
    for line in ("", "e2e4", "e2e4 e7e5", "e2e4 e7e5 g1f3", "g1f3 g8f6 g2g3 g7g6 f1g2 f8g7"):
        boards.append(chess.Board())
        for move in line.split():
            boards[-1].push_uci(move)
    return boards


@functools.cache
def polyglot_samples() -> tuple[bytes, ...]:
    entries = []
    for board in sample_boards():
        key = chess.polyglot.zobrist_hash(board)
        for number, move in enumerate([*board.legal_moves][:4]):
            raw = move.from_square << 6 | move.to_square
            entries.append(struct.pack(">QHHI", key, raw, number, 0))
    castling = struct.pack(">QHHI", key, 4 << 6 | 7, 9, 0)
    unsorted = b"".join(sorted([*entries, *entries[:3]], reverse=True))
    return b"".join(sorted(entries)), b"".join([*sorted(entries), castling]), b"", unsorted


def _make_polyglot(rng: random.Random) -> bytes:
    return bent(rng, polyglot_samples(), [entry[8:] for entry in (polyglot_samples()[1],)])


@target("polyglot", _make_polyglot, prepare=polyglot_samples)
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "book.bin"
    path.write_bytes(data)
    way, board = _way(data, 4), chess.Board()
    if way == 0:
        return read_repertoire(path, chess.WHITE, max_plies=8)
    if way == 1:
        return uci_book(str(path))(board)
    if way == 2:
        policy = polyglot_policy(ChessGame({}), path, ("frequency", "score", "uniform")[_way(data, 3)])
        return policy.action_probabilities(ChessGame({}).new_initial_state())
    counts = PolyglotCounts(path, "score")
    return counts.at(board), len(counts)


# -- results -----------------------------------------------------------------------------------------------


@functools.cache
def results() -> tuple[Any, ...]:
    """A result as `chess_preparation.py` writes it."""
    settings = PreparationSettings(
        player=0,
        penalty=0.01,
        opponent_temperature_cp=10.0,
        analyst_limit=SearchLimit(nodes=5000),
        opponent_limit=SearchLimit(nodes=1000),
    )
    memorized = [
        {
            "after": [move.uci() for move in position.history],
            "play": {entry.move.uci(): entry.probability for entry in position.moves},
            "reach": position.reach,
            "net_gain": position.worth,
            "gain": position.worth,
            "instead": {"d2d4": -0.01} if not position.history else {},
            "evaluation": {"cp": 30} if len(position.history) < 3 else {"mate": -3},
        }
        for position in small_book().positions
    ]
    line = ["e2e4", "e7e5", "g1f3", "g8f6"]
    game = {"white": "A", "black": "B", "year": 1984, "result": "1-0"}
    told = {
        "settings": settings.as_dict(),
        "analyst": "Stockfish 15.1",
        "opponent": "Stockfish 15.1 [Hash=64]",
        "value": 0.6,
        "utility": 0.7,
        "unprepared": 0.5,
        "budget": None,
        "stops": [{"after": line, "reach": 0.25, "value": 0.55, "games": 0}],
        "exits": [{"after": line, "over": False, "reach": 0.25, "promised": 0.55}],
        "replies": [{"after": line, "count": 2, "games": [game, game | {"year": None}]}],
        "memorized": memorized,
    }
    return (told,)


def _make_result(rng: random.Random) -> bytes:
    return bent_json(rng, results(), (b'"e2e4"', b'"fen"', b"nodes=", b'"mate": 0'))


@target("result", _make_result, prepare=results)
def _(data: bytes, folder: pathlib.Path) -> object:
    (folder / "result.json").write_bytes(data)
    found = read_preparation(folder)
    write_polyglot(found.book, folder / "book.bin")
    write_pgn(found.book, folder / "book.pgn", exits=found.exits)
    return found.book.first_lines(3), found.side, OpponentWords(found.settings, found.engines[1]).name


@functools.cache
def calibrations() -> tuple[Any, ...]:
    """The fits that are shipped."""
    files = sorted((pathlib.Path(calibration.__file__).parent / "data").glob("*.json"))
    return tuple(json.loads(file.read_text(encoding="utf-8")) for file in files)


def _make_calibration(rng: random.Random) -> bytes:
    return bent_json(rng, calibrations())


@target("calibration", _make_calibration, prepare=calibrations)
def _(data: bytes, folder: pathlib.Path) -> object:
    (folder / "fit.json").write_bytes(data)
    return load_calibration(folder / "fit.json")


# -- drills ------------------------------------------------------------------------------------------------

NOW = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC)


@functools.cache
def drills() -> tuple[bytes, ...]:
    """Progress of some answers; without fsrs there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "drill.sqlite")
        with Drill(small_book(), path, seed=0) as drill:
            for number in range(5):
                now = NOW + datetime.timedelta(days=number)
                if (card := drill.next(now)) is not None:
                    drill.answer(card, card.moves[0] if number != 2 else None, now)
        # A card's number is the time at which it was made: another one each time.
        with sqlite3.connect(path) as file:
            for epd, text in file.execute("SELECT epd, state FROM cards").fetchall():
                told = json.dumps(json.loads(text) | {"card_id": 1})
                file.execute("UPDATE cards SET state = ? WHERE epd = ?", (told, epd))
        return (path.read_bytes(),)


@functools.cache
def _card_texts() -> tuple[str, ...]:
    with sqlite3.connect(":memory:") as file:
        file.deserialize(drills()[0])
        return tuple(text for (text,) in file.execute("SELECT state FROM cards ORDER BY epd"))


def _make_drill(rng: random.Random) -> bytes:
    documents = [json.loads(text) for text in _card_texts()]
    texts = [bent_json(rng, documents).decode("utf-8", "replace") for _ in range(3)]
    return bent_database(rng, drills(), [*texts, "null", "white"])


@target("drill", _make_drill, prepare=_card_texts)
def _(data: bytes, folder: pathlib.Path) -> object:
    path = folder / "drill.sqlite"
    path.write_bytes(data)
    now = NOW + datetime.timedelta(days=400)
    with Drill(small_book(), path, seed=0) as drill:
        card = drill.next(now)
        if card is not None:
            drill.answer(card, card.moves[0], now)
        return drill.expected_loss(now)
