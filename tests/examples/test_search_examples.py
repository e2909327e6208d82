"""The examples on search as a user runs them."""

import re

import pytest

from tests.examples.launcher import files, printed, result_of, table


# Costs seconds: runs of the example.
def test_search_precomputation(tmp_path):
    flags = ("--r_values=0.01,5", "--check_games=200")
    said = [
        printed("search_precomputation", *flags, f"--output_dir={tmp_path / name}").replace(
            str(tmp_path / name), ""
        )
        for name in "ab"
    ]
    assert said[0] == said[1] and files(tmp_path / "a") == files(tmp_path / "b")
    rows = table(tmp_path / "a" / "search_precomputation.csv")
    assert [(row["prepares"], row["r"]) for row in rows] == [
        (side, r) for r in ("0.01", "5.0") for side in ("player 0", "player 1", "both")
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
    played = re.findall(r"^Played out.*expected (\S+), obtained (\S+).*error (\S+)", said[0], re.MULTILINE)
    assert len(played) == 2
    for expected, obtained, error in ([float(word.strip(",")) for word in line] for line in played):
        assert obtained == pytest.approx(expected, abs=4 * error + 1e-9)
    settings = result_of(tmp_path / "a", "settings.json")
    assert settings["r_values"] == [0.01, 5.0] and settings["sigma_pre"] == "pvs(depth=6)"
    names = {"search_precomputation.csv", "search_precomputation.png", "settings.json"}
    assert set(files(tmp_path / "a")) == names


@pytest.mark.parametrize(
    ("game", "leaf_value"),
    [
        ("connect_four(rows=4,columns=4)", "evaluator"),
        ("breakthrough(rows=4,columns=3)", "rollouts"),
    ],
)
def test_search_precomputation_of_other_games(tmp_path, game, leaf_value):
    flags = [f"--game={game}", "--r_values=0.2", f"--leaf_value={leaf_value}", "--rollout_games=20"]
    flags += ["--sigma_pre=mcts(simulations=200)", "--check_games=0", f"--output_dir={tmp_path}"]
    printed("search_precomputation", *flags)
    assert len(table(tmp_path / "search_precomputation.csv")) == 3


def test_search_match(tmp_path):
    flags = ("--game=tic_tac_toe", "--first=pvs(depth=9)", "--second=uniform", "--games=7", "--seed=3")
    said = printed("search_match", *flags, f"--output_dir={tmp_path / 'a'}")
    rows = table(tmp_path / "a" / "games.csv")
    assert [row["seat_of_first"] for row in rows] == ["0", "1", "0", "1", "0", "1", "0"]
    openings = [row["moves"].split()[:2] for row in rows]
    assert openings[0] == openings[1] and openings[2] == openings[3]
    mean = sum(float(row["utility_of_first"]) for row in rows) / 7
    assert f"{mean:.4f}" in said and mean > 0.4
    for words in ("won", "drawn", "lost", "moving first", "together", "ms a move", "uniform"):
        assert words in said
    printed("search_match", *flags, f"--output_dir={tmp_path / 'b'}")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    with_chance = ("--first=alpha_beta(depth=2)", "--second=mcts(simulations=50)", "--games=2")
    printed("search_match", "--game=pig(winscore=15)", *with_chance)
