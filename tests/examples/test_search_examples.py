"""The examples on search as a user runs them."""

import csv
import json

import pytest

from tests.examples.launcher import launch
from tests.examples.test_examples import fails, files, run


def table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("example", ["search_precomputation", "search_match"])
def test_help(example):
    shown = launch(example, "--help").stdout
    for flag in ("--game", "--seed", "--output_dir"):
        assert flag in shown
    assert "alpha_beta" in shown and "Traceback" not in shown


@pytest.mark.seconds("an example")
def test_search_precomputation(tmp_path):
    flags = ("--r_values=0.01,0.3,5", "--check_games=400")
    result = run("search_precomputation", *flags, f"--output_dir={tmp_path / 'a'}")
    assert result.returncode == 0, result.stderr
    rows = table(tmp_path / "a" / "search_precomputation.csv")
    assert [(row["prepares"], row["r"]) for row in rows] == [
        (side, r) for r in ("0.01", "0.3", "5.0") for side in ("player 0", "player 1", "both")
    ]
    for row in rows:
        sizes = [float(row["size_0"]), float(row["size_1"])]
        if row["prepares"] == "both":
            cost = 0.05 * (sizes[0] - sizes[1])
            assert float(row["certificate"]) <= 1e-4
        else:
            cost = 0.02 * sum(sizes)
            # A book is never worth less than none.
            assert float(row["value"]) >= float(row["unprepared"]) - 1e-9
        assert float(row["value"]) == pytest.approx(float(row["utility"]) - cost, abs=1e-9)
    # Against an opponent who hardly varies, a book of a few positions wins.
    assert float(rows[0]["utility"]) > 0.99 and float(rows[0]["unprepared"]) < 0.7
    played = [line for line in result.stdout.splitlines() if line.startswith("Played out")]
    assert len(played) == 2
    for line in played:
        words = line.replace(",", "").split()
        expected, obtained = (
            float(words[words.index("expected") + 1]),
            float(words[words.index("obtained") + 1]),
        )
        assert obtained == pytest.approx(expected, abs=4 * float(words[words.index("error") + 1]) + 1e-9)
    settings = json.loads((tmp_path / "a" / "settings.json").read_text())
    assert settings["r_values"] == [0.01, 0.3, 5.0] and settings["sigma_pre"] == "pvs(depth=6)"
    assert set(files(tmp_path / "a")) == {
        "search_precomputation.csv",
        "search_precomputation.png",
        "settings.json",
    }
    again = launch("search_precomputation", *flags, f"--output_dir={tmp_path / 'b'}")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert again.stdout.replace(str(tmp_path / "b"), str(tmp_path / "a")) == result.stdout


@pytest.mark.parametrize(
    ("game", "leaf_value"),
    [
        ("connect_four(rows=4,columns=4)", "evaluator"),
        ("breakthrough(rows=4,columns=3)", "rollouts"),
    ],
)
def test_search_precomputation_of_other_games(tmp_path, game, leaf_value):
    result = launch(
        "search_precomputation",
        f"--game={game}",
        "--r_values=0.2",
        f"--leaf_value={leaf_value}",
        "--rollout_games=20",
        "--sigma_pre=mcts(simulations=200)",
        "--check_games=0",
        f"--output_dir={tmp_path / 'out'}",
    )
    assert result.returncode == 0, result.stderr
    assert len(table(tmp_path / "out" / "search_precomputation.csv")) == 3


def test_search_match(tmp_path):
    flags = ("--game=tic_tac_toe", "--first=pvs(depth=9)", "--second=uniform", "--games=7", "--seed=3")
    result = run("search_match", *flags, f"--output_dir={tmp_path / 'a'}")
    assert result.returncode == 0, result.stderr
    rows = table(tmp_path / "a" / "games.csv")
    assert [row["seat_of_first"] for row in rows] == ["0", "1", "0", "1", "0", "1", "0"]
    openings = [row["moves"].split()[:2] for row in rows]
    assert openings[0] == openings[1] and openings[2] == openings[3]
    mean = sum(float(row["utility_of_first"]) for row in rows) / 7
    assert f"{mean:.4f}" in result.stdout and mean > 0.4
    for words in ("won", "drawn", "lost", "moving first", "together", "ms a move", "uniform"):
        assert words in result.stdout
    again = launch("search_match", *flags, f"--output_dir={tmp_path / 'b'}")
    assert again.returncode == 0
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_search_match_with_chance():
    result = launch(
        "search_match",
        "--game=pig(winscore=15)",
        "--first=alpha_beta(depth=2)",
        "--second=mcts(simulations=50)",
        "--games=2",
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("example", "flags", "words"),
    [
        ("search_match", ["--first=pvs(depth=-1)"], ["make_policy()", "depth", "-1"]),
        ("search_match", ["--game=kuhn_poker"], ["perfect information", "kuhn_poker"]),
        ("search_match", ["--first=stockfish()"], ["make_policy()", "stockfish"]),
        ("search_match", ["--game=tic_tac_toe", "--opening_moves=9"], ["--opening_moves", "9"]),
        ("search_precomputation", ["--sigma=uniform"], ["search policy"]),
        ("search_precomputation", ["--r_values=1,x"], ["--r_values", "1,x"]),
        (
            "search_precomputation",
            ["--game=hex(board_size=3)", "--leaf_value=evaluator"],
            ["--leaf_value=evaluator", "hex"],
        ),
    ],
)
def test_wrong_flags(tmp_path, example, flags, words):
    fails(launch(example, *flags, cwd=tmp_path), *words)
