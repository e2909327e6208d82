"""The drill in a terminal: questions, answers, and progress from one run to the next."""

import json
import os
import subprocess
import sys

import pytest

from precomp_games.chess import PreparationSettings
from tests.examples.launcher import printed
from tests.examples.test_examples import ROOT


def write_book(folder):
    """A preparation of three positions, as chess_preparation.py writes it."""
    folder.mkdir()
    told = [("", "e2e4", 1.0, 0.4), ("e2e4 e7e5", "g1f3", 0.7, 0.3), ("e2e4 c7c5", "b1c3", 0.3, 0.1)]
    memorized = [
        {"after": line.split(), "play": {move: 1.0}, "reach": reach, "gain": worth, "net_gain": worth}
        for line, move, reach, worth in told
    ]
    numbers = {
        "memorized": memorized,
        "utility": 0.9,
        "unprepared": 0.5,
        "value": 0.9,
        "analyst": "Fake",
        "opponent": "Fake",
    }
    (folder / "result.json").write_text(json.dumps(numbers | {"settings": PreparationSettings().as_dict()}))


@pytest.mark.seconds("two runs of the example")
def test_a_drill(tmp_path):
    write_book(tmp_path / "book")
    flags = ("--book_dir=book", "--progress=kept/progress.sqlite", "--drill_seed=1")
    (tmp_path / "first").write_text("e4\nNf9\nb1c3\n\n")
    first = printed("drill", *flags, cwd=tmp_path, typed=tmp_path / "first")
    for words in (
        "Right: e4. It comes up in every game. Forgetting it costs 40 points in 100 games.",
        "'Nf9' is no legal move here",
        "Right: Nc3",
        "No: Nf3",
        "2 of 3 right. 2 of 3 positions are known",
        "costs 30 points in 100 games",
        "2 ♙ ♙ ♙ ♙ · ♙ ♙ ♙",
        "  a b c d e f g h",
    ):
        assert words in first
    assert "Nothing is left to ask today." in printed("drill", *flags, "--nounicode", cwd=tmp_path)


def test_whole_lines(tmp_path):
    write_book(tmp_path / "book")
    (tmp_path / "typed").write_text("e4\n\ne4\nq\n")
    said = printed(
        "drill",
        "--book_dir=book",
        "--progress=p.sqlite",
        "--from_move_1",
        "--drill_seed=1",
        cwd=tmp_path,
        typed=tmp_path / "typed",
    )
    # After the first line's end, the next one begins with move 1 again, though that is known.
    begun = [text.split("   ")[0] for text in said.splitlines() if "% of games" in text]
    assert begun[0] == "(start)" and begun[1].startswith("1. e4 ") and begun[2] == "(start)"
    assert begun[3].startswith("1. e4 ") and begun[1] != begun[3]


@pytest.mark.seconds("the example from the start, twice")
def test_a_terminal_without_chess_symbols(tmp_path):
    write_book(tmp_path / "book")
    words = [sys.executable, str(ROOT / "examples" / "drill.py"), "--book_dir=book", "--progress=p.sqlite"]
    how = {"cwd": tmp_path, "env": os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}, "capture_output": True}
    result = subprocess.run(words, input=b"\n", timeout=120, **how)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"R N B Q K B N R" in result.stdout
    result = subprocess.run([*words, "--unicode"], timeout=120, **how)
    assert result.returncode == 1 and b"--nounicode" in result.stderr
