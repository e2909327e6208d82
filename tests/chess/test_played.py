"""Moves of games: what can be read of a file that nobody vouches for, and an engine's games with itself."""

import collections
from pathlib import Path

import chess
import pytest

from precomp_games.chess import EnginePool, EvaluationStore, StoredEngine
from precomp_games.chess.model.played import engine_moves, pgn_moves, pgn_results
from tests.chess.test_engine import FAKE, LIMIT, START
from tests.oracles.pgn import after, game


def test_moves_of_a_player(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    games = (
        game("1. e4 e5 2. Nf3 (2. f4 exf4) {a comment} Nc6", "Müller,  Hans", "Other"),
        game("1. e4 c5 2. Nf3", "Other", "müller, hans"),
        game("1. d4 d5", "Other", "Third"),
    )
    path.write_bytes("".join(games).encode("latin-1"))
    counts = pgn_moves(path, "MÜLLER, Hans")
    assert counts == {(START, "e2e4"): 1, (after("e4 e5"), "g1f3"): 1, (after("e4"), "c7c5"): 1}
    everyone = pgn_moves(path)
    assert everyone[START, "e2e4"] == 2 and sum(everyone.values()) == 9
    assert sum(pgn_moves(path, skip_plies=2).values()) == 3
    with pytest.raises(ValueError, match=r"pgn_moves\(\): expected moves of 'Nobody'.*games of 'Other'"):
        pgn_moves(path, "Nobody")
    with pytest.raises(ValueError, match="more than 9 plies"):
        pgn_moves(path, "other", skip_plies=9)


def test_results_of_a_player(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    games = [("A", "B", "1-0"), ("B", "A", "1/2-1/2"), ("C", "A", "1-0"), ("A", "B", "*")]
    path.write_text("".join(game("1. e4 e5 2. Nf3", *names, Result=result) for *names, result in games))
    own = [START, after("e4 e5")]
    assert pgn_results(path, "a") == [(own, 1.0), ([after("e4")], 0.5), ([after("e4")], 0.0)]
    assert pgn_results(path, "A", skip_plies=2)[:1] == [(own[1:], 1.0)]
    everyone = pgn_results(path)
    assert len(everyone) == 6 and sum(score for _, score in everyone) == 3.0
    with pytest.raises(ValueError, match=r"pgn_results\(\): expected moves of 'D'.*games of 'A'"):
        pgn_results(path, "D")


@pytest.mark.parametrize(
    "fen", ["nonsense", "8/8/8/8/8/8/8/8 w - - 0 1", "k7/8/8/8/8/8/8/KQQ5 b - - 0 1", "k7/8/8/8/8/8/8/9 b"]
)
def test_games_from_positions_that_cannot_be(tmp_path: Path, fen: str) -> None:
    """They count nothing; what else is odd about games is in test_game_records.py."""
    path = tmp_path / "a.pgn"
    path.write_text(game("1. e4") + game("1. e4 1... Kb8", FEN=fen, SetUp="1") + game("1. d4 d5"))
    assert pgn_moves(path, "A") == {(START, "e2e4"): 1, (START, "d2d4"): 1}


def test_files_that_are_no_games(tmp_path: Path) -> None:
    path = tmp_path / "a.pgn"
    for content in (b"", b"\n" * 1000, bytes(range(256)) * 40, b"e4 e5 Nf3\n", b"[" * 10_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="expected games of anyone"):
            pgn_moves(path)
    with pytest.raises(OSError, match="none"):
        pgn_moves(tmp_path / "none.pgn")


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
