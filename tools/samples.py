"""Small sample files, as the library and its users write them: for readers and tests."""

from __future__ import annotations

import datetime
import functools
import json
import pathlib
import sqlite3
import struct
import tempfile
from typing import Any

import chess
import chess.polyglot
import pyspiel

from precomp_games import HistoryTree, make_policy
from precomp_games.chess import Book, BookMove, BookPosition, Drill, EvaluationStore, PreparationSettings
from precomp_games.chess.engines.searches import Line, SearchLimit, SearchResult
from precomp_games.chess.model import calibration, people_values

_DATA = pathlib.Path(__file__).parents[1] / "precomp_games" / "commands" / "data"
NOW = datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC)


@functools.cache
def small_book(side: chess.Color = chess.WHITE) -> Book:
    """Return two replies to e4 and a line after one of them; for Black an answer."""
    lines = {"": "e2e4", "e2e4 e7e5": "g1f3", "e2e4 c7c5": "g1f3", "e2e4 e7e5 g1f3 b8c6": "f1b5"}
    lines = lines if side else {"e2e4": "e7e5", "e2e4 e7e5 g1f3": "b8c6"}
    positions = []
    for number, (history, move) in enumerate(lines.items()):
        moves = tuple(map(chess.Move.from_uci, history.split()))
        played = (BookMove(chess.Move.from_uci(move), 1.0),)
        positions.append(BookPosition(moves, played, 1.0 / (1 + number), 0.3 / (1 + number)))
    return Book(chess.Board(), side, positions)


@functools.cache
def sample_games() -> tuple[bytes, ...]:
    """Return some short files."""
    files = [(_DATA / f"{name}_sample.pgn").read_bytes() for name in ("karpov", "repertoire", "review")]
    games = [b"[Event" + game for file in files for game in file.split(b"[Event")[1:]]
    chosen = sorted(games, key=len)[:8] + games[-8:]
    return (*chosen, b"".join(chosen[:3]))


def sample_boards() -> list[chess.Board]:
    """Return positions of the first moves; White may castle in the last."""
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


@functools.cache
def results() -> tuple[Any, ...]:
    """Return a result as `chess_preparation.py` writes it."""
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
    result = {
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
    return (result,)


@functools.cache
def calibrations() -> tuple[Any, ...]:
    """Return the fits that are shipped, but for that to people's rated games."""
    files = sorted((pathlib.Path(calibration.__file__).parent / "data").glob("*.json"))
    every = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    return tuple(fit for fit in every if fit["format"] != people_values.FORMAT)


@functools.cache
def drills() -> tuple[bytes, ...]:
    """Return the progress of some answers; without fsrs there is none."""
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
                state = json.dumps(json.loads(text) | {"card_id": 1})
                file.execute("UPDATE cards SET state = ? WHERE epd = ?", (state, epd))
        return (path.read_bytes(),)


STORE_ENGINE, STORE_LIMIT = "Fake 1.0", SearchLimit(nodes=100)


@functools.cache
def store_positions() -> tuple[str, ...]:
    board = chess.Board()
    found = [board.epd()]
    for move in ("e2e4", "e7e5", "g1f3"):
        board.push_uci(move)
        found.append(board.epd())
    return tuple(found)


@functools.cache
def stores() -> tuple[bytes, ...]:
    """Return stores with and without games and comments."""
    files = []
    for samples in (0, 3):
        with tempfile.TemporaryDirectory() as name:
            with EvaluationStore(pathlib.Path(name, "store.sqlite")) as store:
                for number, epd in enumerate(store_positions()):
                    moves = [move.uci() for move in chess.Board(f"{epd} 0 1").legal_moves][:2]
                    lines = (Line(moves[0], 30 - number, None), Line(moves[1], None, -3))
                    played = ((moves[0], 2), (moves[1], 1)) if samples else ()
                    result = SearchResult(lines, 10, 1234, played)
                    store.put(STORE_ENGINE, STORE_LIMIT, 2, epd, result)
                store.export(pathlib.Path(name, "copy.sqlite"))
            files.append(pathlib.Path(name, "copy.sqlite").read_bytes())
    return tuple(files)


@functools.cache
def sample_trees() -> tuple[HistoryTree, ...]:
    """Return trees with perfect and imperfect information, chance, menus, weights."""
    trees = []
    for name, penalties in (("kuhn_poker", (0.01, 0.02)), ("nim(pile_sizes=2;3)", (0.01, 0.3))):
        game = pyspiel.load_game(name)
        pre, own = make_policy(game, "random(seed=1)"), make_policy(game, "uniform")
        trees.append(HistoryTree.from_game(game, sigma_pre=pre, sigma=own, penalties=penalties))
        trees.append(
            HistoryTree.from_game(game, sigma_pre=pre, sigma=own, penalties=0.02, weight=lambda state: 0.5)
        )
    return tuple(trees)
