"""The examples on budgets, bounds, certificates and clocks as a user runs them."""

import pytest

from tests.examples.launcher import files, is_png, printed, result_of, table
from tests.examples.test_examples import SMALL
from tests.oracles.pages import data_of


def bounds_are_bounds(rows):
    for row in rows:
        assert float(row["bound"]) <= float(row["construction"]) + 1e-9 <= float(row["optimum"]) + 2e-9


def test_entropy_bounds(tmp_path):
    flags = ("--r_values=0.02,5", "--position_price=0.01")
    for name in "ab":
        said = printed("entropy_bounds", *flags, f"--output_dir={tmp_path / name}")
    assert "so it is." in said
    rows = table(tmp_path / "a" / "entropy_bounds.csv")
    assert [row["r"] for row in rows] == ["0.02", "5.0"]
    bounds_are_bounds(rows)
    assert all(float(row["equilibrium_entropy"]) >= float(row["demanded"]) for row in rows)
    assert is_png(tmp_path / "a" / "entropy_bounds.png")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_clock_precomputation(tmp_path):
    printed("clock_precomputation", "--times=3,6", f"--output_dir={tmp_path}")
    short, long = table(tmp_path / "clock_precomputation.csv")
    assert is_png(tmp_path / "clock_precomputation.png")
    assert float(short["both: value"]) > float(short["moves only: value"])
    # Moves that the search would have found are learnt for the time that they save.
    assert int(short["time only: size"]) == int(short["time only: same moves"]) > 0
    assert float(short["time only: value"]) > float(short["unprepared"])
    assert float(long["unprepared"]) > float(short["unprepared"])


# Costs seconds: runs of the example.
def test_certified_preparation(tmp_path):
    said = printed("certified_preparation", "--epsilon=0.3", f"--output_dir={tmp_path}")
    told = result_of(tmp_path)
    assert told["reached"] and told["upper"] - told["lower"] <= 0.3 and told["confidence"] == 0.95
    assert "Theorem 3" in said and "by dynamic programming" in said
    assert told["lower"] <= float(said.split("Expected")[1].split()[0]) <= told["upper"]
    flags = ("--epsilon=0.1", "--limit=3000", "--nocompare", f"--output_dir={tmp_path}")
    limited = printed("certified_preparation", *flags)
    assert "Stopped at --limit" in limited and "Theorem 3" not in limited
    assert is_png(tmp_path / "interval.png")


def test_certificates_where_the_whole_tree_is_out_of_reach(tmp_path):
    """Of connect four, exact values would look at every game."""
    printed(
        "certified_preparation", "--game=connect_four", "--sigma=uniform", "--sigma_pre=alpha_beta(depth=1)",
        "--position_price=0.05", "--epsilon=0.6", "--nocompare", f"--output_dir={tmp_path}",
    )  # fmt: skip
    assert result_of(tmp_path)["reached"]


@pytest.mark.engine
@pytest.mark.slow("a preparation with a budget")
def test_chess_with_a_budget(tmp_path, searches):
    small = [*SMALL, f"--store={searches}"]
    flags = ("--evaluation=linear", "--budget=10", "--match_games=2", "--report")
    said = printed("chess_preparation", *flags, f"--output_dir={tmp_path / 'book'}", *small)
    told = result_of(tmp_path / "book")
    assert told["budget"] == 10 and told["size"] <= 10 and told["value"] == told["utility"]
    assert "50 more positions" in said
    curve = [int(row["positions"]) for row in table(tmp_path / "book" / "memory.csv")]
    assert curve == sorted(curve) and is_png(tmp_path / "book" / "memory.png")
    # The page draws the best book of each size itself.
    page = (tmp_path / "book" / "report.html").read_text(encoding="utf-8")
    assert [size for size, _ in data_of(page)[0]["sizes"]] == curve and "<figure" not in page


@pytest.mark.engine
# Costs seconds: runs of the example.
def test_clocks_and_bounds_in_chess(tmp_path, searches):
    store = f"--store={searches}"
    bounds = [*SMALL[:-1], "--penalty=0.01", "--max_plies=12", "--r_values=5,50", store]
    said = printed("entropy_bounds", "--chess", *bounds, f"--output_dir={tmp_path / 'bounds'}")
    assert "so it is." in said
    bounds_are_bounds(table(tmp_path / "bounds" / "entropy_bounds.csv"))
    assert result_of(tmp_path / "bounds", "settings.json")["analyst_limit"] == "nodes=1500"
    clock = (*SMALL, "--penalty=0.1", "--max_plies=12", "--times=4,12", store)
    printed("clock_precomputation", "--chess", *clock, f"--output_dir={tmp_path / 'clock'}")
    learnt = 0
    for row in table(tmp_path / "clock" / "clock_precomputation.csv"):
        for way in ("moves only", "time only", "both"):
            value, unprepared = float(row[f"{way}: value"]), float(row["unprepared"])
            assert value >= unprepared - 1e-9
            # To learn nothing is worth the same, whatever could have been learnt.
            assert int(row[f"{way}: size"]) or value == pytest.approx(unprepared, abs=1e-9)
            learnt += int(row[f"{way}: size"])
    assert learnt > 0
