"""The examples on correlated equilibria, as a user runs them."""

import csv
import json

import pytest

from tests.examples.launcher import launch
from tests.examples.test_examples import fails, run


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.test_all("all of the paper's table")
def test_table_1_and_figure_2(tmp_path):
    out = tmp_path / "out"
    result = run(
        "efce_resolving", "--rows=1,2", "--seeds=1", "--stitch=1", "--figure=row2", "--iterations=500",
        f"--output_dir={out}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = table(out / "table_1.csv")
    assert len(rows) == 8
    for row in rows:
        assert row["pairs"] == row["pairs_printed"]
        for value, printed in (("welfare_1e-2", "welfare_printed"), ("refined_1e-2", "refined_printed")):
            if row[printed]:
                digits = len(row[printed].split(".")[1])
                assert abs(float(row[value]) - float(row[printed])) <= 0.5000001 * 10.0**-digits
    stitched = {
        (row["bounds"], row["blueprint"]): float(row["violation"]) for row in table(out / "stitched.csv")
    }
    assert stitched["paper", "jittered 0"] > 1e-2
    assert max(v for (kind, _), v in stitched.items() if kind != "paper") < 1e-6
    curve = [float(row["violation"]) for row in table(out / "figure_2.csv")]
    assert curve[-1] < 1e-4 < curve[0]
    assert (out / "figure_2.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "settings.json").read_text())["rows"] == ["1", "2"]
    assert "expected 4, obtained 4.000000" in result.stdout
    again = tmp_path / "again"
    flags = ["--rows=1", "--seeds=1", "--stitch_bounds=aggregate", "--figure=", "--workers=1"]
    result = launch("efce_resolving", *flags, f"--output_dir={again}")
    assert result.returncode == 0, result.stderr
    lines = (out / "stitched.csv").read_text().splitlines()
    assert (again / "stitched.csv").read_text().splitlines()[1:] == [
        line for line in lines if ",aggregate," in line
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--rows=5"], ["--rows", "5"]),
        (["--figure=tiny"], ["--figure", "tiny"]),
        (["--stitch_bounds=loose"], ["--stitch_bounds", "loose"]),
        (["--rows=", "--figure="], ["something to do"]),
        (["stray"], ["flags only"]),
        (["--rows=2", "--seeds=0", "--figure=", "--time_limit=0.01"], ["ime limit", "--time_limit"]),
    ],
)
def test_efce_resolving_with_wrong_input(flags, words, tmp_path):
    fails(launch("efce_resolving", *flags, f"--output_dir={tmp_path / 'out'}"), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("begin", "flags"),
    [
        (run, []),
        (launch, ["--game=sheriff", "--resolve=regret", "--deviate=0.5", "--seed=3"]),
        (launch, ["--resolve=none", "--plays=3"]),
    ],
)
def test_mediator(begin, flags, tmp_path):
    result = begin("mediator", *flags, f"--output_dir={tmp_path / 'out'}")
    assert result.returncode == 0, result.stderr
    plays = json.loads((tmp_path / "out" / "plays.json").read_text())["plays"]
    for play in plays:
        gone = [False, False]
        for move in play["moves"]:
            if gone[move["player"]]:
                assert move["recommended"] is None
            gone[move["player"]] |= move["recommended"] != move["action"]
        assert len(play["refinements"]) >= ("--resolve=none" not in flags and len(play["moves"]) > 4)
        if "--resolve=regret" not in flags:
            for entry in play["refinements"]:
                assert entry["welfare"] > entry["blueprint_welfare"] - 1e-7
                assert entry["violation"] < 1e-7
                # In the units of what the players get: somebody may sink the other, for 1 and -2.
                assert 0.0 < entry["probability"] < 1.0
                assert -1.0 <= entry["welfare"] < -0.1
                assert f"expected welfare from here {entry['blueprint_welfare']:.5f} -> " in result.stdout


def test_mediator_is_reproducible(tmp_path):
    plays = [
        launch("mediator", "--game=sheriff", "--plays=2", f"--output_dir={tmp_path / name}") for name in "ab"
    ]
    assert all(result.returncode == 0 for result in plays)
    moves = [
        [play["moves"] for play in json.loads((tmp_path / name / "plays.json").read_text())["plays"]]
        for name in "ab"
    ]
    assert moves[0] == moves[1]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--game=kuhn_poker"], ["public_moves()", "kuhn_poker"]),
        (["--game=no_such_game"], ["no_such_game"]),
        (["--game=sherif"], ["did you mean 'sheriff'"]),
        (["--game=tic_tac_toe"], ["battleship or sheriff"]),
        (["stray"], ["flags only"]),
    ],
)
def test_mediator_with_wrong_input(flags, words):
    fails(launch("mediator", *flags), *words)
