"""Moves of games: what can be read of a file that nobody vouches for, and an engine's games with itself."""

from __future__ import annotations

import collections
from pathlib import Path

import chess
import pytest

from precomp_games.chess import EnginePool, EvaluationStore, StoredEngine, game_records
from precomp_games.chess.played import engine_moves, pgn_moves, pgn_results
from tests.chess.test_engine import FAKE, LIMIT, START

TAGS = '[Event "?"]\n[White "{}"]\n[Black "{}"]\n[Result "*"]\n{}\n'


def write(path: Path, *games: tuple[str, str, str, str]) -> Path:
    """A file of games: White, Black, more tags, moves."""
    text = "".join(TAGS.format(*tags) + f"{moves} *\n\n" for *tags, moves in games)
    path.write_bytes(text.encode("latin-1"))
    return path


def after(*moves: str) -> str:
    board = chess.Board()
    for move in moves:
        board.push_san(move)
    return board.epd()


def test_moves_of_a_player(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.pgn",
        ("Müller,  Hans", "Other", "", "1. e4 e5 2. Nf3 (2. f4 exf4) {a comment} Nc6"),
        ("Other", "müller, hans", "", "1. e4 c5 2. Nf3"),
        ("Other", "Third", "", "1. d4 d5"),
    )
    counts = pgn_moves(path, "MÜLLER, Hans")  # the file is in Latin-1
    assert counts == {(START, "e2e4"): 1, (after("e4", "e5"), "g1f3"): 1, (after("e4"), "c7c5"): 1}
    everyone = pgn_moves(path)
    assert everyone[START, "e2e4"] == 2 and sum(everyone.values()) == 9
    assert sum(pgn_moves(path, skip_plies=2).values()) == 3
    assert sum(pgn_moves(path, max_games=1).values()) == 4
    with pytest.raises(ValueError, match=r"pgn_moves\(\): expected moves of 'Nobody'.*games of 'Other'"):
        pgn_moves(path, "Nobody")
    with pytest.raises(ValueError, match="more than 9 plies"):
        pgn_moves(path, "other", skip_plies=9)


def test_results_of_a_player(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    games = [("A", "B", "1-0"), ("B", "A", "1/2-1/2"), ("C", "A", "1-0"), ("A", "B", "*")]
    tags = '[White "{}"]\n[Black "{}"]\n[Result "{}"]\n\n1. e4 e5 2. Nf3 {}\n\n'
    path.write_text("".join(tags.format(*game, game[-1]) for game in games))
    own = [START, after("e4", "e5")]
    assert pgn_results(path, "a") == [(own, 1.0), ([after("e4")], 0.5), ([after("e4")], 0.0)]
    assert pgn_results(path, "A", skip_plies=2, max_games=2) == [(own[1:], 1.0)]
    everyone = pgn_results(path)
    assert len(everyone) == 6 and sum(score for _, score in everyone) == 3.0
    with pytest.raises(ValueError, match=r"pgn_results\(\): expected moves of 'D'.*games of 'A'"):
        pgn_results(path, "D")


def test_broken_games(tmp_path: Path) -> None:
    """Of each, what comes before the break counts; games after it are read."""
    good = ("A", "B", "", "1. e4 e5")
    broken = [
        ("A", "B", "", "1. e4 Ke4 2. Nf3"),  # an illegal move
        ("A", "B", "", "1. e4 (1. Ke5 Nf6 (1... Qh9) ) ) e5"),  # variations that nothing can be
        ("A", "B", "", "1. e4 e5 { no end"),
        ("A", "B", "", "1. e4 -- 2. d4"),  # no move at all
        ("A", "B", "", "((((("),
        ("A", "B", '[FEN "nonsense"]\n[SetUp "1"]', "1. e4"),
        ("A", "B", '[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n[SetUp "1"]', ""),
        ("A", "B", '[FEN "k7/8/8/8/8/8/8/KQQ5 b - - 0 1"]', "1... Kb8"),
        ("A", "B", '[Variant "Atomic"]', "1. e4 e5"),
        ("A", "B", '[Variant "no such rules"]', "1. e4 e5"),
        ("A", "B", '[Variant "Chess960"]', "1. e4 e5"),
        ("A", "B", "[White", "1. e4 e5"),
        ("A", "B", "", "\x00\x01 \xff\xfe $999999 1. e4 e5"),
    ]
    for game in broken:
        path = write(tmp_path / "a.pgn", good, game, ("A", "B", "", "1. d4 d5"))
        counts = pgn_moves(path, "A")
        assert counts[START, "e2e4"] in (1, 2), game
        if "no end" not in game[3]:
            assert counts[START, "d2d4"] == 1, game
        for epd, move in counts:  # whatever it was, these are legal moves
            board = chess.Board(epd + " 0 1")
            assert board.is_valid() and chess.Move.from_uci(move) in board.legal_moves


def test_files_that_are_no_games(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    for content in (b"", b"\n" * 1000, bytes(range(256)) * 40, b"e4 e5 Nf3\n", b"[" * 10_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="expected games of anyone"):
            pgn_moves(path)
    with pytest.raises(OSError, match="none"):
        pgn_moves(tmp_path / "none.pgn")


def test_endless_lines_and_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_records, "MAX_PLIES", 40)
    path = write(
        tmp_path / "a.pgn",
        ("A", "B", "", "{" + "x" * 300_000 + "} 1. e4"),
        ("A", "B", "", "Nf3 Nf6 Ng1 Ng8 " * 300),
        ("A", "B", "", "1. d4 d5"),
    )
    counts = pgn_moves(path)
    assert counts[START, "d2d4"] == 1
    assert counts[START, "g1f3"] == 10  # every fourth of 40 plies


def test_a_game_that_stands_there_twice(tmp_path: Path) -> None:
    line = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7 Re1 b5 Bb3 d6 c3 O-O h3 Nb8 d4 Nbd7"
    games = [("A", "B", "", line), ("A ", "B", "", line), ("A", "C", "", "1. e4"), ("A", "B", "", "1. e4")]
    counts = pgn_moves(write(tmp_path / "a.pgn", *games), "A")
    assert counts[START, "e2e4"] == 3  # short games may well have been played twice


def test_an_engines_own_games() -> None:
    with (
        EvaluationStore(":memory:") as store,
        EnginePool(FAKE, workers=2, options={"Skill Level": 5}) as pool,
    ):
        engine = StoredEngine(store, pool)
        how = {"games": 3, "plies": 2, "samples": 5, "opening_plies": 2}
        moves = engine_moves(engine, LIMIT, **how)
        totals: collections.Counter[str] = collections.Counter()
        for (epd, move), count in moves.items():
            assert chess.Move.from_uci(move) in chess.Board(epd + " 0 1").legal_moves
            totals[epd] += count
        assert set(totals.values()) == {5} and 4 <= len(totals) <= 6
        searches = engine.searches
        assert engine_moves(engine, LIMIT, **how) == moves  # the draws are stored
        assert engine.searches == searches
        assert engine_moves(engine, LIMIT, **how, seed=1) != moves
        one = engine_moves(engine, LIMIT, games=2, plies=1, opening_plies=0)
        assert list(one.values()) == [1]
