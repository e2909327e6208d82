"""The example that predicts a person's moves: on the shipped samples, and what it refuses."""

import pytest

from tests.examples.launcher import printed, result_of, table
from tests.oracles.pgn import game


def test_shipped_samples(tmp_path):
    said = printed("opponent_model", "--output_dir=out", cwd=tmp_path, has_engine=False)
    assert "Karpov Anatoli      126 games" in said and "147 before 1990" in said
    found = result_of(tmp_path / "out")
    bits = {name: model["bits"] for name, model in found["models"].items()}
    assert bits["with population"] < 2.5 < bits["with age"] < bits["counts alone"] < 2.7
    assert bits["population alone"] > 3.0
    fits = found["models"]["with age"]["fits"]
    assert [fit["year"] for fit in fits] == found["years"] == [1990, 1991, 1992]
    rows = table(tmp_path / "out" / "by_ply.csv")
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
    printed("opponent_model", *flags, cwd=tmp_path, has_engine=False)
    found = result_of(tmp_path / "out")
    assert list(found["models"]) == ["counts alone", "with age"]
    assert found["models"]["with age"]["first"] == 1.0  # whoever always plays the same is easily predicted
    assert found["models"]["with age"]["bits"] < 0.05
