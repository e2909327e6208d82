"""Judging one's own book and reviewing one's games: on the shipped samples, and what is refused."""

import re

import pytest

from tests.examples.launcher import printed, result_of, table


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return the output of both examples, from the shipped samples and searches alone."""
    folder = tmp_path_factory.mktemp("judged")
    said = {}
    for example in ("judge_book", "review_games"):
        said[example] = printed(example, f"--output_dir={example}", cwd=folder, has_engine=False)
        assert "No engine found" in said[example]
    return folder, said


# Costs seconds: runs of the example.
def test_the_sample_book(judged):
    folder, said = judged
    result = result_of(folder / "judge_book")
    assert result["read"]["positions"] == 81 and result["read"]["contradictions"] == 3
    assert result["score"] == "Fitted score" and "0 of them new" in said["judge_book"]
    positions, lessons = result["positions"], result["learn"]
    assert len(positions) == result["size"] == 22 and len(lessons) == 10
    gains = sum(each["gain"] for each in positions)
    assert result["unprepared"] + gains == pytest.approx(result["utility"], abs=1e-9)
    assert result["value"] == pytest.approx(result["utility"] - 22 * 1e-3, abs=1e-12)
    assert result["regret"] == pytest.approx(result["best_of_its_size"] - result["utility"], abs=1e-12)
    assert 0.0 < result["own_regret"] < result["regret"] < 0.5
    assert sorted(each["drop"] for each in positions) == list(range(1, 23))
    # Forgetting the first move is forgetting the book.
    assert positions[0]["after"] == "(start)"
    assert positions[0]["forgetting"] == pytest.approx(gains, abs=1e-9)
    assert all(each["cost"] >= 0.0 for each in result["holes"])
    assert sum(each["because"] == "the opponent" for each in result["not_met"]) == 54
    for name in ("positions", "learn", "holes", "not_met"):
        assert len(table(folder / "judge_book" / f"{name}.csv")) == len(result[name])
    titles = (
        "forgetting",
        "drop first",
        "learn next",
        "without an answer",
        "are worth less",
        "hardly lets you",
    )
    for title in titles:
        assert title in said["judge_book"]


def test_scores_are_points_in_100_games(judged):
    """No share of a game is printed; what is listed as worth less is so by a hundredth of a point or more."""
    _, said = judged
    for text in said.values():
        assert "points in 100 games" in text and not re.search(r"(?<![\d.])-?[01]\.\d{3,}(?![\d%])", text)
        _, _, rest = text.partition("worth less than another one, by these scores")
        less = re.findall(r"^ *([\d.]+) +[\d.]+%", rest.partition("\n\n")[0], re.MULTILINE)
        assert less and all(float(each) > 0.0 for each in less) and " lose" not in text


def test_a_table_of_an_earlier_run_goes(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "learn.csv").write_text("of an earlier run")
    flags = ("--learn=0", "--output_dir=out")
    assert "learn.csv" not in printed("judge_book", *flags, cwd=tmp_path, has_engine=False)
    assert result_of(tmp_path / "out")["learn"] == []
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "book.bin", "book.pgn", "holes.csv", "not_met.csv", "opponent.npz", "positions.csv", "result.json",
        "traps.pgn",
    ]  # fmt: skip


def test_the_sample_games(judged):
    folder, said = judged
    result = result_of(folder / "review_games")
    assert result["reviewed"] == 5 and "1 left out: games with the other side" in said["review_games"]
    assert result["left_by"] == {"the book's end": 2, "you": 1, "the opponent": 2}
    by_you = next(each for each in result["games"] if each["left_by"] == "you")
    assert (by_you["game"], by_you["played"], by_you["better"]) == (2, "exd5", "e5")
    assert [each["learn"] for each in result["to_learn"]] == ["e5"]
    # A reply that was played once, of a model that was worth five games.
    new = next(each for each in result["replies"] if each["reply"] == "Nc6" and each["was"] < 1e-9)
    assert new["is"] == pytest.approx(1 / 6, abs=1e-6)
    before = result_of(folder / "judge_book")
    assert result["before"]["utility"] == pytest.approx(before["utility"], abs=1e-12)
    assert result["utility"] != before["utility"]
    assert len(table(folder / "review_games" / "games.csv")) == 5
