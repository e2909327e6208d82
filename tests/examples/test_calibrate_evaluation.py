"""examples/calibrate_evaluation.py as a user runs it."""

import pytest

from precomp_games.chess import PreparationSettings, SearchLimit
from precomp_games.chess.model.calibration import load_calibration
from tests.examples.launcher import files, printed, result_of, table
from tests.oracles.pgn import game

SMALL = ("--opponent_nodes=100", "--analyst_nodes=200", "--menu=2", "--store=s.sqlite")
TINY = (
    *SMALL,
    "--positions=4",
    "--exits=2",
    "--playouts=2",
    "--r_values=30",
    "--test_r_values=60",
    "--fens=8/8/8/8/4k3/8/4P3/4K3 w - - 0 1",
    "--test_fens=8/8/8/4k3/8/8/4P3/3QK3 w - - 0 1",
    "--max_evaluations=15",
    "--budget=3",
)
GAMES = (
    game("1. e4 e5 2. Nf3 Nc6 3. Bb5", "Us", "Them", Result="1-0"),
    game("1. e4 e5 2. Nf3 Nc6", "Them", "Us", Result="1/2-1/2"),
    game("1. e4 e5 2. Nf3 Nc6 3. d4", "Us", "Them", Result="1-0"),
    game("1. e4 e5 2. Nf3 Nc6 3. Bc4", "Us", "Them", Result="0-1"),
)


@pytest.mark.engine
@pytest.mark.slow("many games; a fit to few in the other tests")
def test_a_fit_to_games_that_are_played(tmp_path):
    said = printed("calibrate_evaluation", *TINY, "--output_dir=out", cwd=tmp_path)
    fit = load_calibration(tmp_path / "out" / "calibration.json")
    settings = PreparationSettings(
        menu=2,
        opponent_temperature_cp=30.0,
        analyst_limit=SearchLimit(nodes=200),
        opponent_limit=SearchLimit(nodes=100),
    )
    assert fit.misfits(settings, fit.made_for.engine) == []
    assert fit.misfits(PreparationSettings(), "Stockfish 99") != []
    rows = table(tmp_path / "out" / "samples.csv")
    assert {row["kind"] for row in rows} == {"search", "exit"}
    for row in rows:
        # What is tested with is another setting than all that was fitted to.
        assert ("r = 60" in row["setting"]) == (row["test"] == "1") == (row["r"] == "60.0")
        assert sum(int(row[name]) for name in ("wins", "draws", "losses")) == 2
        assert 0.0 < float(row["expected"]) < 1.0
    told = result_of(tmp_path / "out", "calibration.json")["evidence"]
    assert told["positions"] == sum(row["test"] == "0" for row in rows)
    for line in told["kept_out"]["exit"]:
        assert f"{line['brier']:.4f}" in said and line["low"] <= line["more"] <= line["high"]
    assert {"calibrated", "linear", "threshold", "logistic"} <= {
        line["evaluation"] for line in told["kept_out"]["exit"]
    }
    # One engine, and nothing to search: the same files.
    printed("calibrate_evaluation", *TINY, "--workers=1", "--output_dir=again", cwd=tmp_path)
    assert files(tmp_path / "again") == files(tmp_path / "out")


@pytest.mark.engine
def test_a_fit_to_games_of_a_file(tmp_path):
    (tmp_path / "games.pgn").write_text("".join(GAMES))
    made = ("--pgn=games.pgn", "--player=us", "--skip_plies=0", "--r_values=25", "--output_dir=out")
    said = printed("calibrate_evaluation", *SMALL, *made, cwd=tmp_path)
    assert said.startswith("Games  ")
    assert "Fitted to 5 positions and 8 games" in said  # the last game is to test with
    rows = table(tmp_path / "out" / "samples.csv")
    assert sum(int(row["losses"]) for row in rows if row["test"] == "0") == 0
    first = next(row for row in rows if row["ply"] == "0" and row["material"] == "0" and row["wins"] == "2")
    assert first["draws"] == first["losses"] == "0" and first["test"] == "0"
    assert load_calibration(tmp_path / "out" / "calibration.json").made_for.least_r == 25.0
