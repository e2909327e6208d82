"""The drill in a terminal: questions, answers, and progress from one run to the next."""

import json

from precomp_games.chess import PreparationSettings
from tests.examples.launcher import launch


def write_book(folder):
    """A preparation of three positions, as chess_preparation.py writes it."""
    folder.mkdir()
    told = [("", "e2e4", 1.0, 0.4), ("e2e4 e7e5", "g1f3", 0.7, 0.3), ("e2e4 c7c5", "b1c3", 0.3, 0.1)]
    memorized = [
        {"after": line.split(), "play": {move: 1.0}, "reach": reach, "net_gain": worth}
        for line, move, reach, worth in told
    ]
    numbers = {"memorized": memorized, "utility": 0.9, "analyst": "Fake", "opponent": "Fake"}
    (folder / "result.json").write_text(json.dumps(numbers | {"settings": PreparationSettings().as_dict()}))


def test_a_drill(tmp_path):
    write_book(tmp_path / "book")
    flags = ("--book_dir=book", "--progress=kept/progress.sqlite", "--drill_seed=1")
    (tmp_path / "first").write_text("e4\nNf9\nb1c3\n\n")
    first = launch("drill", *flags, cwd=tmp_path, typed=tmp_path / "first")
    assert first.returncode == 0, first.stderr
    assert "Right: e4. Forgetting it costs 0.4000." in first.stdout
    assert "'Nf9' is no legal move here" in first.stdout
    assert "Right: Nc3" in first.stdout and "No: Nf3" in first.stdout
    assert "2 of 3 right. 2 of 3 positions are known" in first.stdout
    assert "costs 0.300 points a game" in first.stdout
    second = launch("drill", *flags, "--nounicode", cwd=tmp_path)
    assert second.returncode == 0 and "Nothing is left to ask today." in second.stdout


def test_wrong_input(tmp_path):
    write_book(tmp_path / "book")
    (tmp_path / "text").write_text("nonsense " * 1000)
    for flags, word in (
        (["--book_dir=none"], "--book_dir"),
        (["--book_dir=book", "--book_dir=book"], "--book_dir"),
        (["--book_dir=book", "--progress=text"], "progress"),
        (["--book_dir=book", "--questions=0"], "--questions"),
    ):
        result = launch("drill", *flags, cwd=tmp_path)
        assert result.returncode != 0 and word in result.stderr, result
        assert "Traceback" not in result.stderr
