"""`precomp-games equilibrium` and `match`: both sides' books, and books that play games."""

import json
import math

import chess.polyglot
import pyspiel
import pytest

from precomp_games import HistoryTree
from precomp_games.chess import Preparation
from precomp_games.chess.play.match_statistics import MatchStatistics
from precomp_games.chess.study.words import points
from tests.commands.conftest import ENGINE
from tests.commands.test_prepare import TINY
from tests.examples.launcher import files, is_png, result_of
from tests.oracles.pgn import games_of
from tools.soak.clusters import engine_file


# Costs seconds: a run of the command.
def test_both_sides_prepare_with_the_shipped_searches(here, tmp_path, without_engine):
    output = here("equilibrium", "--output_dir=out")
    out = tmp_path / "out"
    books = {f"{side}.{kind}" for side in ("white", "black") for kind in ("bin", "pgn")}
    assert files(out).keys() == books | {"result.json", "tree.npz", "penalties.csv", "penalties.png"}
    found = result_of(out)
    assert found["nash_conv"] < 1e-12 and found["solver"] == "double_oracle"
    for row in found["penalties"]:
        assert row["black"] <= row["nobody"] <= row["white"]
        assert row["black"] - 1e-6 <= row["both"] <= row["white"] + 1e-6
    # At a prohibitive penalty nobody prepares.
    assert row["nobody"] == pytest.approx(row["both"])
    assert "analyst's score" in output and "not results of games" in output and "xpected score" not in output
    tree = HistoryTree.load(out / "tree.npz")
    assert pyspiel.load_game("python_meta_precomputation", {"tree_file": str(out / "tree.npz")})
    for i, (side, other) in enumerate((("White", "Black"), ("Black", "White"))):
        rows, loss = found["memorized"][side.lower()], found["unaware"][side.lower()]["loss"]
        assert 1.0 < sum(row["probability"] for row in rows) == pytest.approx(found["sizes"][i])
        assert all(row["also_alone"] == (row["alone"] is not None) for row in rows)
        with chess.polyglot.open_reader(out / f"{side.lower()}.bin") as book:
            assert len(list(book)) <= len(rows) <= (tree.infoset_player == i).sum()
        provoked = [row for row in rows if not row["also_alone"]]
        size = sum(row["probability"] for row in provoked)
        assert f"positions on average, {size:.1f} of them only because the other side" in output
        assert f"Because {other} prepares, {side} learns:" in output
        # Who prepares for the unprepared loses, where the other side is prepared.
        assert loss > 1e-3 and f"lose {points(loss)} points in 100 games to a prepared" in output
        assert any(row["reach_unprepared"] == 0.0 < row["reach"] for row in provoked)


def test_both_sides_prepare_with_menus(here, tmp_path):
    """By an engine of no strength; test_trees.py has the books."""
    engine_file(tmp_path, slow=False)
    flags = ["equilibrium", *ENGINE, "--workers=1", "--menu=2", "--menu_window_cp=400", "--max_plies=3"]
    flags += ["--penalty=0.003", "--fen=4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1", "--scale_cp=1000", "--r=200"]
    outputs = [here(*flags, "--penalty_factors=1,3", f"--output_dir={name}") for name in ("out", "again")]
    assert "with another move than alone" in outputs[0]
    assert files(tmp_path / "out") == files(tmp_path / "again")  # pure books are drawn by a seed
    found = result_of(tmp_path / "out")
    rows = [row for side in ("white", "black") for row in found["memorized"][side]]
    assert sum(row["probability"] for row in rows) == pytest.approx(sum(found["sizes"]))
    assert all(row["also_alone"] == (row["alone"] == row["play"]) for row in rows)
    assert any(row["instead"] for row in rows) and found["nash_conv"] < 1e-12
    assert all(loss <= 1e-9 for row in rows for loss in row["instead"].values())
    assert "at most max_histories=20" in here(*flags, "--max_histories=20", "--output_dir=no", status=1)


@pytest.mark.engine
@pytest.mark.slow("two preparations and their matches")
def test_a_match_of_books_of_both_colors(here, tmp_path, searches):
    kept = f"--store={searches}"
    for side in ("white", "black"):
        flags = [*TINY, "--evaluation=linear", f"--side={side}", "--match_games=0", kept]
        here("prepare", *flags, f"--output_dir={side}")
    both = ["match", "--from=white", "--from=black", "--games=4", "--sprt=0,5", kept]
    output = here(*both, "--output_dir=out")
    matches = result_of(tmp_path / "out")["matches"]
    players = ["no book", "the book", "most reached", "main lines", "analyst all game"]
    assert [row["player"] for row in matches] == 2 * players
    for row in matches:
        found = MatchStatistics(row["wins"], row["draws"], row["losses"])
        assert (found.games, found.score) == (4, row["score"]) and row["low"] <= row["score"] <= row["high"]
        for name, value in zip(("elo", "elo_low", "elo_high"), (found.elo, *found.elo_interval), strict=True):
            assert row[name] == (value if math.isfinite(value) else None)
        if row["player"] == "the book":
            assert f"{'Elo with the book':<20}{found}\n" in output
            assert row["promised"] == result_of(tmp_path / row["side"])["utility"]
            games = games_of(tmp_path / "out" / f"{row['side']}_games.pgn")
            score = {"1-0": 1.0, "1/2-1/2": 0.5, "0-1": 0.0}
            white = sum(score[game.headers["Result"]] for game in games) / 4
            assert row["score"] == (white if row["side"] == "white" else 1.0 - white)
    assert "SPRT with the book  LLR " in output and "H0: +0, H1: +5 logistic Elo: goes on\n" in output
    assert "Where games leave the book:" in output and "xpected score" not in output
    assert "made against another opponent" not in output and is_png(tmp_path / "out" / "match.png")
    # One engine, and nothing to search: the same files.
    again = here(*both, "--workers=1", "--output_dir=again")
    assert again.count(" 0 new") == 2 and files(tmp_path / "again") == files(tmp_path / "out")
    other = ["--games=2", "--nocontrols", "--openings=0.5", "--opponent=uci(r=100)", "--output_dir=other"]
    output = here("match", "--from=white", kept, *other)
    assert "The book was made against another opponent" in output
    assert " start positions, in which White scores near 0.5" in output
    assert {"openings.epd", "openings.pgn"} <= files(tmp_path / "other").keys()
    assert [row["player"] for row in result_of(tmp_path / "other")["matches"]] == players[:2]


@pytest.mark.engine
# Costs seconds: two matches and a judgment, with a real engine.
def test_a_match_of_a_repertoire_and_the_folder_of_its_judgment(folder, run, searches):
    opponent = ("--opponent=uci(nodes=100,r=40,top_k=3)", f"--store={searches}")
    mine, played = (
        ("--book=mine.pgn", "--side=white"),
        ("--games=2", "--nocontrols", "--output_dir=own_match"),
    )
    printed = run("match", *mine, *opponent, *played)
    assert "White's book of " in printed and "made against another opponent" not in printed
    assert json.loads((folder / "own_match" / "result.json").read_text())["matches"][1]["promised"] > 0.0
    printed = run("judge", *mine, *opponent, "--penalty=0.02", "--output_dir=own")
    order = ["Coverage", "Replies without an answer", "What to learn next", "What to drop first"]
    assert sorted(order, key=printed.index) == order
    made = Preparation.read(folder / "own")
    assert made.utility == pytest.approx(made.unprepared + sum(made.gains))
    printed = run("match", "--book=own/book.bin", "--from=own", *opponent, *played)
    assert f"White's book of {made.book.distinct_positions} positions" in printed
