"""examples/book_match.py as a user runs it."""

import math
import re

import pytest

from precomp_games.chess.play.match_statistics import MatchStatistics
from tests.examples.launcher import files, is_png, printed, result_of, table
from tests.oracles.pages import data_of
from tests.oracles.pgn import games_of

# What an engine is asked in games has to be enough for it to finish a depth anywhere.
PLAYED = ("--penalty=0.01", "--opponent_nodes=300", "--analyst_nodes=600", "--max_plies=8", "--r=30")
TINY = ("--penalty=0.01", "--opponent_nodes=100", "--analyst_nodes=300", "--max_plies=12", "--r=30")


@pytest.mark.engine
@pytest.mark.slow("two preparations and their match")
def test_books_of_both_colors(tmp_path, searches):
    for side in ("white", "black"):
        flags = (*TINY, "--evaluation=linear", f"--side={side}", "--match_games=0", f"--store={searches}")
        printed("chess_preparation", *flags, f"--output_dir={side}", cwd=tmp_path)
    both = ("--from=white", "--from=black", "--games=4", f"--store={searches}")
    said = printed("book_match", *both, "--output_dir=out", cwd=tmp_path)
    told = result_of(tmp_path / "out")
    players = ["no book", "the book", "most reached", "main lines", "analyst all game"]
    assert [row["player"] for row in told["matches"]] == 2 * players
    for row in told["matches"]:
        assert row["games"] == 4 and row["low"] <= row["score"] <= row["high"]
        made = result_of(tmp_path / row["side"])
        if row["player"] in players[1:4]:
            assert row["positions"] == made["size"] > 0
        if row["player"] == "the book":
            assert row["promised"] == made["utility"]
            # Where each exit's promise counts by its reach, they are the book's.
            promised = sum(exit["reach"] * exit["promised"] for exit in row["exits"])
            assert promised == pytest.approx(made["utility"], abs=1e-6)
            games = games_of(tmp_path / "out" / f"{row['side']}_games.pgn")
            points = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
            white = sum(points[game.headers["Result"]] for game in games) / 4
            assert row["score"] == (white if row["side"] == "white" else 1.0 - white)
        if row["player"] not in ("analyst all game",):
            assert sum(exit["games"] for exit in row["exits"]) == 4
    assert is_png(tmp_path / "out" / "match.png")
    assert len(re.findall(r"promised [\d.]+, scored [\d.]+ ", said)) == 2
    assert "Where games leave the book:" in said and "xpected score" not in said
    # One engine, and nothing to search: the same files.
    again = printed("book_match", *both, "--workers=1", "--output_dir=again", cwd=tmp_path)
    assert again.count(" 0 new") == 2 and files(tmp_path / "again") == files(tmp_path / "out")
    openings = ("--match_seed=1", "--openings=0.5", "--output_dir=other")
    assert " start positions, in which White scores near 0.5" in printed(
        "book_match", *both, *openings, cwd=tmp_path
    )
    assert {"openings.epd", "openings.pgn"} <= files(tmp_path / "other").keys()
    assert files(tmp_path / "other")["white_games.pgn"] != files(tmp_path / "out")["white_games.pgn"]
    # Another opponent than the one that was prepared for is marked as such.
    weaker = ("--from=white", "--games=2", f"--store={searches}", "--opponent=uci(r=100)", "--nocontrols")
    changed = printed("book_match", *weaker, "--output_dir=changed", cwd=tmp_path)
    assert "made against another opponent" in changed and "made against another opponent" not in said
    names = [row["player"] for row in result_of(tmp_path / "changed")["matches"]]
    assert names == ["no book", "the book"]


@pytest.mark.engine
# Costs seconds: an example.
def test_a_book_of_several_moves_and_a_test_of_its_games(tmp_path, searches):
    kept = f"--store={searches}"
    few = (*PLAYED, "--menu=2", "--budget=4", "--play_budget=8", "--match_games=0", "--output_dir=book")
    printed("chess_preparation", *few, kept, cwd=tmp_path)
    flags = ("--from=book", "--games=2", "--sprt=0,5", "--output_dir=out")
    said = printed("book_match", *flags, kept, cwd=tmp_path)
    assert "SPRT with the book  LLR " in said and "H0: +0, H1: +5 logistic Elo: goes on\n" in said
    told = result_of(tmp_path / "out")
    for row in told["matches"]:
        found = MatchStatistics(row["wins"], row["draws"], row["losses"])
        assert (found.games, found.score) == (2, row["score"])
        for kept, value in zip(("elo", "elo_low", "elo_high"), (found.elo, *found.elo_interval), strict=True):
            assert row[kept] == (value if math.isfinite(value) else None)
        if row["player"] in ("the book", "no book"):
            called = "Elo with the book" if row["player"] == "the book" else "Elo without"
            assert f"{called:<20}{found}\n" in said
    assert [row["player"] for row in told["matches"]][-2:] == ["linear evaluation", "analyst all game"]
    assert all(row["positions"] <= 4 for row in told["matches"])
    # What there is without it comes from seven games, of which the match has the first ones.
    half_points = 14.0 * told["matches"][0]["promised"]
    assert half_points == pytest.approx(round(half_points))
    assert len(games_of(tmp_path / "out" / "games.pgn")) == 2
    (own,) = (row for row in told["matches"] if row["player"] == "the book")
    assert all(0.0 <= exit["promised"] <= 1.0 for exit in own["exits"])


@pytest.mark.engine
# Costs seconds: an example.
def test_books_of_several_sizes(tmp_path, searches):
    flags = (*PLAYED, "--games=2", "--sizes=2,4", "--menu=2", "--play_budget=8", f"--store={searches}")
    printed("book_size", *flags, "--report", "--export=csv", "--output_dir=out", cwd=tmp_path)
    rows = table(tmp_path / "out" / "sizes.csv")
    names = ["the book", "most reached", "main lines", "linear evaluation"]
    assert [row["player"] for row in rows] == ["no book", *names, *names]
    assert all(int(row["positions"]) <= int(row["budget"]) for row in rows)
    assert is_png(tmp_path / "out" / "sizes.png")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (data,) = data_of(page)
    (size,) = (int(row["positions"]) for row in rows[5:6])
    assert len(data["positions"]) == size and "What books of several sizes score</bdi>" in page
    assert len(table(tmp_path / "out" / "book.csv")) == size


@pytest.mark.engine
@pytest.mark.slow("a preparation against several opponents")
def test_several_opponents_at_once(tmp_path, searches):
    flags = (*PLAYED[:-1], "--r=5,60", "--r_weights=1,2", "--evaluation=linear", f"--store={searches}")
    written = ("--output_dir=book", "--report")
    said = printed("chess_preparation", *flags, "--match_games=2", *written, cwd=tmp_path)
    assert "r = 5, 60 cp, drawn as 1, 2" in said
    page = (tmp_path / "book" / "report.html").read_text(encoding="utf-8")
    assert "(r = 5 or 60 cp, drawn for each game as 1 to 2)" in page
    assert "  r = 5 alone\n" in said and "  r = 60 alone\n" in said  # a match against each
    settings = result_of(tmp_path / "book")["settings"]
    assert settings["opponent_temperature_cp"] == [5.0, 60.0]
    assert settings["opponent_weights"] == [1.0, 2.0]
    played = ("--from=book", "--games=2", f"--store={searches}", "--nocontrols", "--output_dir=out")
    assert "another opponent" not in printed("book_match", *played, cwd=tmp_path)
    other = printed("book_match", *played, "--opponent=uci(r=5)", cwd=tmp_path)
    assert "The book was made against another opponent" in other
