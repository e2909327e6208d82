"""The examples on budgets, bounds, certificates and clocks as a user runs them."""

import csv
import json

import pytest

from tests.chess.test_report import data_of
from tests.examples.launcher import launch
from tests.examples.test_examples import SMALL, fails, files, run


def table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.seconds("an example")
def test_entropy_bounds(tmp_path):
    flags = ("--r_values=0.02,5", "--position_price=0.01")
    result = run("entropy_bounds", *flags, f"--output_dir={tmp_path / 'a'}")
    assert result.returncode == 0, result.stderr
    assert "so it is." in result.stdout
    rows = table(tmp_path / "a" / "entropy_bounds.csv")
    assert [row["r"] for row in rows] == ["0.02", "5.0"]
    for row in rows:
        assert float(row["bound"]) <= float(row["construction"]) + 1e-9 <= float(row["optimum"]) + 2e-9
        assert float(row["equilibrium_entropy"]) >= float(row["demanded"])
    assert (tmp_path / "a" / "entropy_bounds.png").read_bytes().startswith(b"\x89PNG")
    launch("entropy_bounds", *flags, f"--output_dir={tmp_path / 'b'}")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_clock_precomputation(tmp_path):
    result = run("clock_precomputation", "--times=3,6", f"--output_dir={tmp_path}")
    assert result.returncode == 0, result.stderr
    short, long = table(tmp_path / "clock_precomputation.csv")
    assert (tmp_path / "clock_precomputation.png").read_bytes().startswith(b"\x89PNG")
    assert float(short["both: value"]) > float(short["moves only: value"])
    # Moves that the search would have found are learnt for the time that they save.
    assert int(short["time only: size"]) == int(short["time only: same moves"]) > 0
    assert float(short["time only: value"]) > float(short["unprepared"])
    assert float(long["unprepared"]) > float(short["unprepared"])


@pytest.mark.seconds("an example")
def test_certified_preparation(tmp_path):
    result = run("certified_preparation", "--epsilon=0.3", f"--output_dir={tmp_path}")
    assert result.returncode == 0, result.stderr
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["reached"] and told["upper"] - told["lower"] <= 0.3 and told["confidence"] == 0.95
    assert "Theorem 3" in result.stdout and "by dynamic programming" in result.stdout
    expected = float(result.stdout.split("Expected")[1].split()[0])
    assert told["lower"] <= expected <= told["upper"]
    limited = launch(
        "certified_preparation", "--epsilon=0.1", "--limit=3000", "--nocompare", f"--output_dir={tmp_path}"
    )
    assert limited.returncode == 0 and "Stopped at --limit" in limited.stdout
    assert "Theorem 3" not in limited.stdout
    assert (tmp_path / "interval.png").read_bytes().startswith(b"\x89PNG")


def test_certificates_where_the_whole_tree_is_out_of_reach(tmp_path):
    """Of connect four, exact values would look at every game."""
    result = launch(
        "certified_preparation", "--game=connect_four", "--sigma=uniform", "--sigma_pre=alpha_beta(depth=1)",
        "--position_price=0.05", "--epsilon=0.6", "--nocompare", f"--output_dir={tmp_path}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "result.json").read_text())["reached"]


@pytest.mark.engine
@pytest.mark.test_all("certificates of chess; of another game in test_certified_preparation")
def test_chess_with_a_gap_and_with_a_budget(tmp_path, searches):
    small = [*SMALL, f"--store={searches}"]
    result = launch(
        "certified_preparation", "--chess", "--epsilon=0.02", "--compare", "--report", *small,
        f"--output_dir={tmp_path / 'gap'}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    told = json.loads((tmp_path / "gap" / "result.json").read_text())
    counts = {line.split("  ")[0].strip(): line.split() for line in result.stdout.splitlines()}
    assert told["reached"] and (tmp_path / "gap" / "book.pgn").exists(), counts
    page = (tmp_path / "gap" / "report.html").read_text(encoding="utf-8")
    (data,) = data_of(page)
    # What lines end in is within what the certificate says; the score is its lower end.
    learned = told["penalty"] * told["size"]
    assert data["utility"] == pytest.approx(told["lower"] + learned)
    assert data["utility"] - 1e-6 <= data["nodes"][0]["value"] <= told["upper"] + learned + 1e-6
    assert "The interval</bdi>" in page and "any book at most" in page
    flags = ("--evaluation=linear", "--budget=10", "--match_games=2", f"--output_dir={tmp_path / 'book'}")
    result = launch("chess_preparation", *flags, *small)
    assert result.returncode == 0, result.stderr
    told = json.loads((tmp_path / "book" / "result.json").read_text())
    assert told["budget"] == 10 and told["size"] <= 10 and told["value"] == told["utility"]
    assert "50 more positions" in result.stdout
    curve = table(tmp_path / "book" / "memory.csv")
    assert [int(row["positions"]) for row in curve] == sorted(int(row["positions"]) for row in curve)
    assert (tmp_path / "book" / "memory.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.engine
def test_clocks_and_bounds_in_chess(tmp_path, searches):
    store = f"--store={searches}"
    small = [flag for flag in SMALL if not flag.startswith("--r=")]
    result = launch(
        "entropy_bounds", "--chess", "--r_values=5,50", *small, store, f"--output_dir={tmp_path / 'bounds'}"
    )
    assert result.returncode == 0, result.stderr
    assert "so it is." in result.stdout
    for row in table(tmp_path / "bounds" / "entropy_bounds.csv"):
        assert float(row["bound"]) <= float(row["construction"]) + 1e-9 <= float(row["optimum"]) + 2e-9
    assert json.loads((tmp_path / "bounds" / "settings.json").read_text())["analyst_limit"] == "nodes=1500"
    result = launch(
        "clock_precomputation", "--chess", "--times=4,12", *SMALL, "--penalty=0.1", "--max_plies=12", store,
        f"--output_dir={tmp_path / 'clock'}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    learnt = 0
    for row in table(tmp_path / "clock" / "clock_precomputation.csv"):
        for way in ("moves only", "time only", "both"):
            value, unprepared = float(row[f"{way}: value"]), float(row["unprepared"])
            assert value >= unprepared - 1e-9
            # To learn nothing is worth the same, whatever could have been learnt.
            assert int(row[f"{way}: size"]) or value == pytest.approx(unprepared, abs=1e-9)
            learnt += int(row[f"{way}: size"])
    assert learnt > 0


@pytest.mark.parametrize(
    ("example", "flag", "words"),
    [
        ("entropy_bounds", "--r_values=0", ("--r_values", "positive")),
        ("clock_precomputation", "--times=0", ("--times", "at least 1")),
        ("clock_precomputation", "--times=a", ("--times", "integers")),
        ("clock_precomputation", "--game=kuhn_poker", ("perfect information",)),
        ("certified_preparation", "--epsilon=0", ("epsilon",)),
        ("certified_preparation", "--report", ("--report", "--chess")),
        ("certified_preparation", "--delta=1", ("delta",)),
        ("certified_preparation", "--game=kuhn_poker", ("perfect information",)),
    ],
)
def test_bad_flags(tmp_path, example, flag, words):
    fails(launch(example, flag, f"--output_dir={tmp_path}"), *words)


def test_a_budget_below_0(tmp_path):
    result = launch("chess_preparation", "--budget=-1", f"--output_dir={tmp_path}")
    assert result.returncode != 0 and "budget" in result.stderr and "Traceback" not in result.stderr
