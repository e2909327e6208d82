"""`precomp-games estimate` and `calibrate`: how random an opponent is, and what scores are worth."""

import re

import pytest

from precomp_games.chess.model.calibration import load_calibration
from precomp_games.chess.model.people_values import load_people
from tests.commands.conftest import ENGINE
from tests.examples.launcher import result_of, table
from tests.oracles.pgn import game, rated_game


# Costs seconds: runs of the command.
@pytest.mark.engine
def test_how_random_an_opponent_is(here, tmp_path):
    games = game("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7", "Us", "Them")
    games += game("1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7 5. Ke9 (5. xx) e3", "Them", "us")
    (tmp_path / "games.pgn").write_text(games)
    common = ["estimate", "--store=s.sqlite", "--output_dir=out", "--top_k_values=2,4"]
    theirs = ["--pgn=games.pgn", "--player=US", "--skip_plies=2", "--nodes=300,1000"]
    output = here(*common, *theirs)
    assert output.startswith("Games               2 games; ") and "taken together: 'Us', 'us'\n" in output
    assert "US: 7 moves in 7 positions" in output and "Best: --opponent_nodes=" in output
    found = result_of(tmp_path / "out")
    kinds = [(fit["top_k"], fit["nodes"]) for fit in found["fits"]]
    assert kinds == [(2, 300), (2, 1000), (4, 300), (4, 1000)]
    best = max(found["fits"], key=lambda fit: fit["log_likelihood"])
    assert (best["top_k"], best["nodes"]) == (found["best_top_k"], found["best_nodes"])
    assert best["moves"] == 7 and best["log_likelihood"] >= best["uniform_log_likelihood"]

    weak = ["--nodes=1000", "--opponent_option=Skill Level=3", "--opponent_samples=4", "--positions=6"]
    own = here(*common, *weak, "--games=2", "--plies=5")
    drawn = re.search(r"\[Skill Level=3\] \(nodes=1000\): (\d+) moves in 6 positions", own)
    # It draws with no seed, so a game may come to a position with one legal move, which proves nothing.
    assert int(drawn[1]) in range(12, 25, 4)


_SMALL = ["calibrate", "--opponent_nodes=100", "--analyst_nodes=200", "--menu=2", "--store=s.sqlite"]
_SMALL += ["--output_dir=out"]


@pytest.mark.engine
@pytest.mark.slow("many games; a fit to few in the other test")
def test_a_fit_to_games_that_are_played(here, tmp_path):
    flags = ["--positions=4", "--exits=2", "--playouts=2", "--max_evaluations=15", "--budget=3"]
    flags += ["--r_values=30", "--test_r_values=60", "--fens=8/8/8/8/4k3/8/4P3/4K3 w - - 0 1"]
    output = here(*_SMALL, *flags, "--test_fens=8/8/8/4k3/8/8/4P3/3QK3 w - - 0 1")
    rows = table(tmp_path / "out" / "samples.csv")
    assert {row["kind"] for row in rows} == {"search", "exit"}
    for row in rows:
        # What is tested with is another setting than all that was fitted to.
        assert ("r = 60" in row["setting"]) == (row["test"] == "1") == (row["r"] == "60.0")
        assert sum(int(row[name]) for name in ("wins", "draws", "losses")) == 2
    evidence = result_of(tmp_path / "out", "calibration.json")["evidence"]
    assert evidence["positions"] == sum(row["test"] == "0" for row in rows)
    kinds = {line["evaluation"] for line in evidence["kept_out"]["exit"]}
    assert kinds >= {"calibrated", "linear", "threshold", "logistic"}
    assert all(f"{line['brier']:.4f}" in output for line in evidence["kept_out"]["exit"])


@pytest.mark.engine
def test_a_fit_to_games_of_a_file(here, tmp_path):
    begin, games = "1. e4 e5 2. Nf3 Nc6 3. ", [game("1. e4 e5 2. Nf3 Nc6", "Them", "Us", Result="1/2-1/2")]
    for move, result in (("Bb5", "1-0"), ("d4", "1-0"), ("Bc4", "0-1")):
        games.append(game(f"{begin}{move}", "Us", "Them", Result=result))
    (tmp_path / "games.pgn").write_text("".join(games))
    output = here(*_SMALL, "--pgn=games.pgn", "--player=us", "--skip_plies=0", "--r_values=25")
    assert "Fitted to 5 positions and 8 games" in output  # the last game is to test with
    rows = table(tmp_path / "out" / "samples.csv")
    assert sum(int(row["losses"]) for row in rows if row["test"] == "0") == 0
    first = next(row for row in rows if row["ply"] == "0" and row["material"] == "0" and row["wins"] == "2")
    assert first["draws"] == first["losses"] == "0" and first["test"] == "0"
    assert load_calibration(tmp_path / "out" / "calibration.json").made_for.least_r == 25.0


# Costs seconds: games are read and fitted to.
def test_fits_of_rated_games_are_checked_on_the_last_games_of_the_file(folder, run):
    games = [rated_game(k, TimeControl="180+2", plies=40) for k in range(160)]
    (folder / "rated.pgn").write_text("".join(games))
    words = ["--games=rated.pgn", "--positions=150", "--analyst_nodes=20", "--output_dir=fits", *ENGINE]
    printed = run("calibrate", *words)
    fit = load_people(folder / "fits" / "people_games.json")
    (whole, *_) = fit.rows
    assert (whole.speed, whole.band, whole.positions) == ("blitz", None, 150)
    assert fit.source == "136 rated games" and fit.analyst == "nodes=20"
    assert fit.evidence["kept_out_games"] == 24
    assert [each["by"] for each in fit.evidence["values"]][-2:] == ["the move as well", "bands"]
    assert "Kept out, the last games by date" in printed and len(fit.evidence["seconds"]) == 10
