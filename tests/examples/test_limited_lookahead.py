"""examples/limited_lookahead.py as a user runs it."""

import csv
import json
import re

import pyspiel
import pytest

from precomp_games.algorithms.lookahead import (
    commit_against_lookahead,
    equilibrium_values,
    independent_noise,
)
from tests.examples.launcher import launch
from tests.examples.test_examples import fails, files, run

_SMALL = ("--games=kuhn_poker", "--gammas=0,0.5", "--draws=2")


def _table(folder, name):
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.seconds("an example")
def test_small(tmp_path):
    for workers, begin in ((1, launch), (2, run)):
        result = begin(
            "limited_lookahead", *_SMALL, f"--workers={workers}", f"--output_dir={tmp_path / str(workers)}"
        )
        assert result.returncode == 0, result.stderr
    one, two = tmp_path / "1", tmp_path / "2"
    assert set(files(one)) == {
        *("limited_lookahead.csv", "draws.csv", "independent.png", "cumulative.png", "settings.json")
    }
    for name in ("draws.csv", "independent.png", "cumulative.png"):
        assert files(one)[name] == files(two)[name]
    for line in result.stdout.splitlines():
        found = re.search(r"expected (\S+), obtained (\S+)$", line)
        assert found is None or found[1] == found[2], line
    assert result.stdout.count("expected") == 3 + 8
    rows = _table(one, "limited_lookahead.csv")
    assert len(rows) == 2 * 2 * 2 * 2  # noise, players, lookaheads, gammas
    draws = _table(one, "draws.csv")
    assert len(draws) == 8 + 16
    assert json.loads((one / "settings.json").read_text())["game_values"]["kuhn_poker"] == pytest.approx(
        -1 / 18
    )
    # A draw made again by hand.
    game = pyspiel.load_game("kuhn_poker")
    h = independent_noise(equilibrium_values(game, 0), 0.5, [0, 1])
    (row,) = [
        row
        for row in draws
        if (row["noise"], row["rational_player"], row["lookahead"], row["gamma"], row["draw"])
        == ("independent", "1", "2", "0.5", "1")
    ]
    assert float(row["supremum"]) == commit_against_lookahead(game, 1, 2, h).supremum


def test_kj_and_favorable_ties(tmp_path):
    result = launch(
        "limited_lookahead",
        "--games=python_kj_poker",
        "--noise=cumulative",
        "--gammas=0.5",
        "--lookaheads=1",
        "--players=1",
        "--draws=2",
        "--workers=1",
        "--tie_breaking=favorable",
        f"--output_dir={tmp_path}",
    )
    assert result.returncode == 0, result.stderr
    assert set(files(tmp_path)) == {
        *("limited_lookahead.csv", "draws.csv", "cumulative.png", "settings.json")
    }
    for row in _table(tmp_path, "draws.csv"):
        assert row["optimal"] == "True"
        assert float(row["value"]) == pytest.approx(float(row["supremum"]), abs=1e-6)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--gammas=-1"], ["--gammas", "at least 0", "-1"]),
        (["--gammas=nan"], ["--gammas", "nan"]),
        (["--lookaheads=0"], ["--lookaheads", "at least 1"]),
        (["--time_limit=nan"], ["--time_limit", "nan"]),
        (["--players=3"], ["--players", "0 or 1"]),
        (["--noise=loud"], ["--noise", "loud"]),
        (["--games=no_such_game"], ["no_such_game"]),
        (["--games=leduc_poker", "--max_histories=100"], ["--max_histories"]),
        (["--games=kuhn_poker(players=3)"], ["two-player"]),
    ],
)
def test_wrong_input(flags, words, tmp_path):
    fails(launch("limited_lookahead", *flags, f"--output_dir={tmp_path / 'out'}"), *words)
    assert not (tmp_path / "out").exists()
