"""The examples on correlated equilibria, as a user runs them."""

import pytest

from tests.examples.launcher import is_png, printed, result_of, table


@pytest.mark.slow("all of the paper's table")
def test_table_1_and_figure_2(tmp_path):
    out = tmp_path / "out"
    said = printed(
        "efce_resolving", "--rows=1,2", "--seeds=1", "--stitch=1", "--figure=row2", "--iterations=500",
        f"--output_dir={out}",
    )  # fmt: skip
    rows = table(out / "table_1.csv")
    assert len(rows) == 8
    for row in rows:
        assert row["pairs"] == row["pairs_printed"]
        for value, paper in (("welfare_1e-2", "welfare_printed"), ("refined_1e-2", "refined_printed")):
            if row[paper]:
                digits = len(row[paper].split(".")[1])
                assert abs(float(row[value]) - float(row[paper])) <= 0.5000001 * 10.0**-digits
    stitched = {
        (row["bounds"], row["blueprint"]): float(row["violation"]) for row in table(out / "stitched.csv")
    }
    assert stitched["paper", "jittered 0"] > 1e-2
    assert max(v for (kind, _), v in stitched.items() if kind != "paper") < 1e-6
    curve = [float(row["violation"]) for row in table(out / "figure_2.csv")]
    assert curve[-1] < 1e-4 < curve[0]
    assert is_png(out / "figure_2.png")
    assert result_of(out, "settings.json")["rows"] == ["1", "2"]
    assert "expected 4, obtained 4.000000" in said
    again = tmp_path / "again"
    flags = ["--rows=1", "--seeds=1", "--stitch_bounds=aggregate", "--figure=", "--workers=1"]
    printed("efce_resolving", *flags, f"--output_dir={again}")
    lines = (out / "stitched.csv").read_text().splitlines()
    written = (again / "stitched.csv").read_text().splitlines()[1:]
    assert written == [line for line in lines if ",aggregate," in line]


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--game=sheriff", "--resolve=regret", "--deviate=0.5", "--seed=3"],
        ["--resolve=none", "--plays=3"],
        ["--game=sheriff(max_items=1,max_bribe=1,num_rounds=1)", "--blueprint=equilibrium", "--resolve=none",
         "--objective=0,1", "--notion=efcce"],
    ],
)  # fmt: skip
def test_mediator(flags, tmp_path):
    said = printed("mediator", *flags, f"--output_dir={tmp_path}")
    plays = result_of(tmp_path, "plays.json")["plays"]
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
                assert f"expected welfare from here {entry['blueprint_welfare']:.5f} -> " in said


def test_mediator_draws_what_chance_does(tmp_path):
    said = printed("mediator", "--game=goofspiel", "--plays=4", f"--output_dir={tmp_path}")
    assert "chance draws 'Deal" in said
    for play in result_of(tmp_path, "plays.json")["plays"]:
        assert [move["player"] for move in play["moves"]] == [-1, 0, 1, -1, 0, 1]
        (entry,) = play["refinements"]
        assert (entry["rounds"], len(entry["subgame"])) == (1, 3)
        # Of three prizes, 6 in all, none is lost in the rounds that are refined.
        assert entry["blueprint_welfare"] < entry["welfare"] <= sum(play["returns"]) + 1e-6
        assert entry["violation"] < 1e-7


def test_mediator_is_reproducible(tmp_path):
    moves = []
    for name in "ab":
        printed("mediator", "--game=sheriff", "--plays=2", f"--output_dir={tmp_path / name}")
        moves.append([play["moves"] for play in result_of(tmp_path / name, "plays.json")["plays"]])
    assert moves[0] == moves[1]


def test_payoff_frontier(tmp_path):
    said = printed("payoff_frontier", "--game=matrix_sh", "--objective=smaller", f"--output_dir={tmp_path}")
    rows = table(tmp_path / "frontier.csv")
    corners = {
        notion: [
            (float(row["utility_0"]), float(row["utility_1"])) for row in rows if row["notion"] == notion
        ]
        for notion in ("efce", "nfcce", "nash")
    }
    expected = ((2, 2), (1, 4 / 3), (1, 1), (4 / 3, 1))
    assert corners["efce"] == [pytest.approx(corner) for corner in expected]
    assert len(corners["nfcce"]) == 4
    assert corners["nash"] == [pytest.approx(corner) for corner in ((1, 1), (2, 2))]
    assert all(float(row["gap"]) < 1e-9 for row in rows if row["gap"])
    assert is_png(tmp_path / "frontier.png")
    assert "Best by smaller" in said
    assert result_of(tmp_path, "settings.json")["notions"] == ["efce", "efcce", "nfcce"]
