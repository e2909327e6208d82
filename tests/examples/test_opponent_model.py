"""The example that predicts a person's moves: on the shipped samples, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest

from tests.chess.test_game_records import game
from tests.examples.launcher import launch_without_engine


@pytest.mark.seconds("an example at its defaults")
def test_shipped_samples(tmp_path):
    result = launch_without_engine("opponent_model", "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Karpov Anatoli      126 games" in result.stdout and "147 before 1990" in result.stdout
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    bits = {name: model["bits"] for name, model in found["models"].items()}
    assert bits["with population"] < 2.5 < bits["with age"] < bits["counts alone"] < 2.7
    assert bits["population alone"] > 3.0
    fits = found["models"]["with age"]["fits"]
    assert [fit["year"] for fit in fits] == found["years"] == [1990, 1991, 1992]
    rows = list(csv.DictReader((tmp_path / "out" / "by_ply.csv").open()))
    assert [int(row["ply"]) for row in rows] == list(range(1, 17))
    moves = sum(int(row["moves"]) for row in rows)
    assert moves == found["models"]["with age"]["moves"] == 392
    for name, value in bits.items():
        mean = sum(int(row["moves"]) * float(row[f"{name}, bits"]) for row in rows) / moves
        assert mean == pytest.approx(value, abs=1e-3)
    for name in ("calibration.png", "by_ply.png"):
        assert (tmp_path / "out" / name).stat().st_size > 10_000


def test_a_person_without_a_population(tmp_path):
    years = "".join(game("1. e4 e5 2. Nf3", "Us", "Them", Date=f"{1990 + k}.??.??") for k in range(6))
    (tmp_path / "games.pgn").write_text(years)
    flags = ("--games=games.pgn", "--player=US", "--since=1994", "--plies=3", "--output_dir=out")
    result = launch_without_engine("opponent_model", *flags, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    assert list(found["models"]) == ["counts alone", "with age"]
    assert found["models"]["with age"]["first"] == 1.0  # whoever always plays the same is easily predicted
    assert found["models"]["with age"]["bits"] < 0.05


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--games=games.pgn"], ["--player: expected"]),
        (["--games=none.pgn", "--player=Us"], ["none.pgn"]),
        (["--games=games.pgn", "--player=Nobody"], ["'Nobody'", "games of 'Us', 'Them'"]),
        (["--games=games.pgn", "--player=Us", "--since=1980"], ["--since: expected", "within 1990 and 1990"]),
        (["--since=1991", "--until=1990"], ["--since: expected"]),
        (["--population=games.pgn", "--since=1985"], ["--population: expected games before 1985"]),
        (["--plies=0"], ["plies"]),
    ],
)
def test_wrong_input(flags, words, tmp_path):
    (tmp_path / "games.pgn").write_text(game("1. e4 e5", "Us", "Them", Date="1990.??.??"))
    result = launch_without_engine("opponent_model", *flags, "--output_dir=out", cwd=tmp_path)
    assert result.returncode != 0 and "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert not (tmp_path / "out").exists()
