"""precomp-games calibrate --games, on an engine that answers at once."""

import sys

from precomp_games.chess.model.people_values import load_people
from precomp_games.commands import main
from tests.chess import fake_engine
from tests.chess.test_rated_games import rated_game

SPEEDS = {"bullet": "60+2", "blitz": "180+2"}


# Costs seconds: two hundred games, read and fitted to.
def test_fits_of_a_file_are_written_and_checked_on_its_last_games(tmp_path, capsys):
    games = tmp_path / "rated.pgn"
    games.write_text("".join(rated_game(k, TimeControl=SPEEDS["blitz"], plies=40) for k in range(160)))
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    engine.chmod(0o755)
    out = tmp_path / "out"
    words = [f"--games={games}", "--positions=150", f"--engine={engine}", "--workers=1"]
    words += [f"--store={tmp_path}/kept.sqlite", "--analyst_nodes=20", f"--output_dir={out}"]
    status = main(["precomp-games", "calibrate", *words])
    said = capsys.readouterr()
    assert status == 0, said.err
    fit = load_people(out / "people_games.json")
    (whole, *_) = fit.rows
    assert (whole.speed, whole.band, whole.positions) == ("blitz", None, 150)
    assert fit.source == "136 rated games" and fit.analyst == "nodes=20"
    assert fit.evidence["kept_out_games"] == 24
    assert [each["by"] for each in fit.evidence["values"]][-2:] == ["the move as well", "bands"]
    assert "Kept out, the last games by date" in said.out and len(fit.evidence["seconds"]) == 10
    for flag, wrong in (("--speeds", "--speeds=hyper"), ("--games", "--games=none.pgn")):
        assert main(["precomp-games", "calibrate", *words, wrong]) == 1
        assert capsys.readouterr().err.startswith(f"error: {flag}: expected")
