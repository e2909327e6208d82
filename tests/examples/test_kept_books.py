"""Books priced by positions, books that keep what is known already, and plans."""

import chess
import pytest

from tests.examples.launcher import is_png, printed, result_of, table

_SMALL = (
    "--evaluation=linear",
    "--opponent_nodes=100",
    "--analyst_nodes=300",
    "--max_plies=10",
    "--r=30",
    "--penalty=0.002",
    "--match_games=0",
)
_MINE = """[Event "mine"]
[Result "*"]

1. d4 d5 (1... Nf6 2. c4 e6 3. Nc3) 2. c4 e6 (2... c6 3. Nf3) 3. Nc3 *
"""


def _positions(told):
    """{EPD: moves} of a result."""
    found = {}
    for entry in told["memorized"]:
        board = chess.Board()
        for move in entry["after"]:
            board.push_uci(move)
        found.setdefault(board.epd(), set()).update(entry["play"])
    return found


@pytest.mark.engine
def test_what_is_kept_is_in_the_book(tmp_path, searches):
    (tmp_path / "mine.pgn").write_text(_MINE)
    own = ("--keep=mine.pgn", f"--store={searches}", "--output_dir=out")
    said = printed("chess_preparation", *_SMALL, *own, cwd=tmp_path)
    told = result_of(tmp_path / "out")
    board = chess.Board()
    assert _positions(told)[board.epd()] == {"d2d4"}
    for entry in told["memorized"]:
        if entry["after"] == ["d2d4", "d7d5"]:
            assert entry["play"] == {"c2c4": 1.0}
    kept = told["kept"]
    assert kept["given"] == 6 and kept["histories"] >= 1
    assert kept["learned"] == told["size"] - kept["histories"]
    assert told["value"] == pytest.approx(told["utility"] - 0.002 * kept["learned"])
    assert "If nothing is kept" in said and f"Your repertoire and {kept['learned']} addition" in said
    assert len(kept["additions"]) == kept["learned"] and told["unprepared"] < kept["alone"] <= told["utility"]
    gains = sum(told["memorized"][k]["gain"] for k in kept["additions"])
    assert told["utility"] - gains == pytest.approx(kept["alone"])
    assert f"{kept['learned']} positions to learn, in a book of" in said


@pytest.mark.engine
def test_a_plan_of_positions(tmp_path, searches):
    own = ("--side=black", "--price=positions", "--plan=1,3,6", f"--store={searches}", "--output_dir=out")
    printed("chess_preparation", *_SMALL, *own, cwd=tmp_path)
    told, rows = result_of(tmp_path / "out"), table(tmp_path / "out" / "plan.csv")
    assert [int(row["positions"]) for row in rows] == [1, 3, 6]
    utilities = [float(row["utility"]) for row in rows]
    assert utilities == sorted(utilities)
    assert all(float(row["loss"]) >= -1e-12 for row in rows)
    assert told["utility"] == pytest.approx(utilities[-1])
    assert told["distinct_positions"] == int(rows[-1]["learned"]) <= 6
    assert is_png(tmp_path / "out" / "plan.png")
