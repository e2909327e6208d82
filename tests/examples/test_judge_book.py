"""Judging one's own book and reviewing one's games: on the shipped samples, and what is refused."""

from __future__ import annotations

import csv
import json

import pytest

from tests.chess.test_repertoire import game
from tests.examples.launcher import launch_without_engine


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The output of both examples, from the shipped samples and searches alone."""
    folder = tmp_path_factory.mktemp("judged")
    said = {}
    for example in ("judge_book", "review_games"):
        result = launch_without_engine(example, f"--output_dir={example}", cwd=folder)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "No engine found" in result.stdout
        said[example] = result.stdout
    return folder, said


def told(folder, example):
    return json.loads((folder / example / "result.json").read_text(encoding="utf-8"))


def rows(folder, example, name):
    with (folder / example / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_sample_book(judged):
    folder, said = judged
    result = told(folder, "judge_book")
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
        assert len(rows(folder, "judge_book", name)) == len(result[name])
    for title in ("forgetting", "drop first", "learn next", "without an answer", "lose", "hardly lets you"):
        assert title in said["judge_book"]


def test_a_table_of_an_earlier_run_goes(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "learn.csv").write_text("of an earlier run")
    result = launch_without_engine("judge_book", "--learn=0", "--output_dir=out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert told(tmp_path, "out")["learn"] == [] and "learn.csv" not in result.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "holes.csv", "not_met.csv", "positions.csv", "result.json",
    ]  # fmt: skip


def test_the_sample_games(judged):
    folder, said = judged
    result = told(folder, "review_games")
    assert result["reviewed"] == 5 and "1 left out: games with the other side" in said["review_games"]
    assert result["left_by"] == {"the book's end": 2, "you": 1, "the opponent": 2}
    by_you = next(each for each in result["games"] if each["left_by"] == "you")
    assert (by_you["game"], by_you["played"], by_you["better"]) == (2, "exd5", "e5")
    assert [each["learn"] for each in result["to_learn"]] == ["e5"]
    # A reply that was played once, of a model that was worth five games.
    new = next(each for each in result["replies"] if each["reply"] == "Nc6" and each["was"] < 1e-9)
    assert new["is"] == pytest.approx(1 / 6, abs=1e-6)
    before = told(folder, "judge_book")
    assert result["before"]["utility"] == pytest.approx(before["utility"], abs=1e-12)
    assert result["utility"] != before["utility"]
    assert len(rows(folder, "review_games", "games")) == 5


@pytest.mark.parametrize(
    ("example", "flags", "words"),
    [
        ("judge_book", ["--book=none.pgn"], ["--book: expected PGN or Polyglot files, got 'none.pgn'"]),
        ("judge_book", ["--book=prose.md"], ["--book: expected moves of white in 'prose.md'", "no PGN tags"]),
        ("judge_book", ["--opponent=games(file=none.pgn)"], ["--opponent: expected a file, got 'none.pgn'"]),
        ("judge_book", ["--book=mine.pgn"], ["--book: expected moves of white in 'mine.pgn', got none"]),
        ("judge_book", ["--side=black"], ["--book: expected your book for Black"]),
        ("judge_book", ["--evaluation=rollouts"], ["--evaluation: expected an engine's evaluation"]),
        ("judge_book", ["--menu=0"], ["--menu: expected at least 1"]),
        ("judge_book", ["--fen=nonsense"], ["fen"]),
        ("judge_book", ["--opponent=nobody()"], ["nobody"]),
        ("judge_book", ["--known=hearsay"], ["--known"]),
        ("review_games", ["--games=none.pgn", "--player=A"], ["--games: expected a file, got 'none.pgn'"]),
        ("review_games", ["--games=new.pgn"], ["--player: expected whose games"]),
        ("review_games", ["--games=new.pgn", "--player=Nobody"], ["'Nobody'", "games of 'A', 'B'"]),
        ("review_games", ["--games=new.pgn", "--player=B"], ["--games: expected games of 'B' as White"]),
    ],
)
def test_wrong_input(example, flags, words, tmp_path):
    (tmp_path / "mine.pgn").write_text(game("1. Ke4"))
    (tmp_path / "prose.md").write_text(
        "# Openings\n\nOf all moves e4 is best.\n\nThen e5 and Nf3, or e6 and d4 d5 e5.\n"
    )
    (tmp_path / "new.pgn").write_text(game("1. e4 e5 2. Nf3"))
    result = launch_without_engine(example, *flags, "--output_dir=out", cwd=tmp_path)
    assert result.returncode != 0 and "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert (
        len(result.stderr.strip().splitlines()) == 1 or "FATAL" in result.stderr or "--known" in result.stderr
    )
    assert not (tmp_path / "out").exists()
