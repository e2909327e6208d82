"""examples/limited_lookahead.py as a user runs it."""

import re

import pyspiel
import pytest

from precomp_games.algorithms.lookahead import (
    commit_against_lookahead,
    equilibrium_values,
    independent_noise,
)
from tests.examples.launcher import files, printed, result_of, table


def test_small(tmp_path):
    """In one process; in several, and on a cluster, in test_parallel.py."""
    flags = ("--games=kuhn_poker", "--gammas=0,0.5", "--draws=2", "--workers=1")
    said = printed("limited_lookahead", *flags, f"--output_dir={tmp_path}")
    assert set(files(tmp_path)) == {
        *("limited_lookahead.csv", "draws.csv", "independent.png", "cumulative.png", "settings.json")
    }
    found = re.findall(r"expected (\S+), obtained (\S+)$", said, re.MULTILINE)
    assert len(found) == 3 + 8 and all(expected == obtained for expected, obtained in found)
    rows = table(tmp_path / "limited_lookahead.csv")
    assert len(rows) == 2 * 2 * 2 * 2  # noise, players, lookaheads, gammas
    draws = table(tmp_path / "draws.csv")
    assert len(draws) == 8 + 16
    values = result_of(tmp_path, "settings.json")["game_values"]
    assert values["kuhn_poker"] == pytest.approx(-1 / 18)
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
    printed(
        "limited_lookahead", "--games=python_kj_poker", "--noise=cumulative", "--gammas=0.5",
        "--lookaheads=1", "--players=1", "--draws=2", "--workers=1", "--tie_breaking=favorable",
        f"--output_dir={tmp_path}",
    )  # fmt: skip
    names = {"limited_lookahead.csv", "draws.csv", "cumulative.png", "settings.json"}
    assert set(files(tmp_path)) == names
    for row in table(tmp_path / "draws.csv"):
        assert row["optimal"] == "True"
        assert float(row["value"]) == pytest.approx(float(row["supremum"]), abs=1e-6)
