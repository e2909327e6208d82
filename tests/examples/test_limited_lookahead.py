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


def test_types(tmp_path):
    flags = ("--games=kuhn_poker", "--noise=independent", "--gammas=0,0.5", "--types=2,1", "--draws=2")
    said = printed("limited_lookahead", *flags, "--workers=1", f"--output_dir={tmp_path}")
    assert set(files(tmp_path)) == {"types.csv", "draws.csv", "independent.png", "settings.json"}
    found = re.findall(r"expected (\S+), obtained (\S+)$", said, re.MULTILINE)
    assert len(found) == 4 and all(expected == obtained for expected, obtained in found)
    rows = table(tmp_path / "types.csv")
    assert len(rows) == 2 * 2 * 4  # players, gammas, what commitments are made for
    assert [row["made_for"] for row in rows[:4]] == ["1", "2", "mean", "worst"]
    # The values of Kuhn poker without noise on the page on limited lookahead.
    earned = [(float(row["against_1"]), float(row["against_2"])) for row in rows[:4]]
    assert earned[0] == pytest.approx((1 / 6, -1 / 6), abs=1e-3)
    for pair in (earned[1], earned[3]):
        assert pair == pytest.approx((-1 / 18, -1 / 18), abs=1e-3)
    for row in table(tmp_path / "draws.csv"):
        pair = float(row["against_1"]), float(row["against_2"])
        assert float(row["mean"]) == pytest.approx(sum(pair) / 2) and float(row["worst"]) == min(pair)


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
