"""The drill in a terminal: questions, answers, and progress from one run to the next."""

import json
import os
import sqlite3
import subprocess
import sys

import chess
import pytest

from precomp_games.chess import EvaluationStore, PreparationSettings
from precomp_games.chess.engines.searches import Line, SearchResult
from tests.examples.launcher import printed
from tests.examples.test_examples import ROOT


def write_book(folder):
    """A preparation of three positions, as chess_preparation.py writes it."""
    folder.mkdir()
    told = [("", "e2e4", 1.0, 0.4), ("e2e4 e7e5", "g1f3", 0.7, 0.3), ("e2e4 c7c5", "b1c3", 0.3, 0.1)]
    others = {"": {"c2c4": -0.02, "g1f3": -0.005, "b1c3": 0.0123}}
    memorized = [
        {"after": line.split(), "play": {move: 1.0}, "reach": reach, "gain": worth, "net_gain": worth}
        | {"instead": others.get(line, {})}
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


# Costs seconds: two runs of the example.
def test_a_drill(tmp_path):
    write_book(tmp_path / "book")
    flags = ("--from=book", "--progress=kept/progress.sqlite", "--drill_seed=1")
    (tmp_path / "first").write_text("e4\nNf9\nb1c3\n\n\n")
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


_NO_ANSWERS = (
    ["--", "0000", "?", "help"],
    ["@@@@", "Z0", "h", "HELP", " "],
    ["Ke2", "e5", "e2e5", "a7a8q", "1. e4", "resign", "\u2654", "a1a1"],
)


# Costs seconds: a run of the command.
@pytest.mark.parametrize("words", _NO_ANSWERS)
def test_what_is_no_move_is_no_answer(tmp_path, words):
    """It is asked again, and nothing is kept; the right move counts after it."""
    write_book(tmp_path / "book")
    (tmp_path / "typed").write_text("\n".join([*words, "e4", "", "quit", ""]))
    flags = ("--from=book", "--progress=p.sqlite", "--drill_seed=1")
    said = printed("drill", *flags, cwd=tmp_path, typed=tmp_path / "typed")
    assert "Right: e4." in said and "1 of 1 right" in said and "No:" not in said
    explained = said.count("is no legal move here: answer as in Nf3") + said.count("Enter once more")
    assert explained == len(words) + 1
    with sqlite3.connect(tmp_path / "p.sqlite") as file:
        assert file.execute("SELECT answer FROM answers").fetchall() == [("e2e4",)]


# Costs seconds: four runs of the command.
def test_what_a_wrong_answer_costs_and_what_is_replied(tmp_path):
    """Cost and reply are printed if the preparation or stored searches have them, and else nothing."""
    write_book(tmp_path / "book")
    settings = PreparationSettings()
    start, board = chess.Board(), chess.Board()
    board.push_san("c4")
    with EvaluationStore(tmp_path / "kept.sqlite") as store:
        lines = (Line("e2e4", 40, None), Line("b1c3", None, -3))
        for epd, found in ((start.epd(), lines), (board.epd(), (Line("e7e5", 35, None),))):
            store.put("Fake", settings.analyst_limit, settings.multipv, epd, SearchResult(found, 5, 9))
    told = {
        "c4": ("c4 instead would cost 2.0.", "e4 0.40; c4 is answered by e5, -0.35."),
        "Nc3": ("Nc3 instead would bring 1.2.", "e4 0.40; Nc3 #-3."),
        "a4": ("Nc3 instead would bring 1.2.", "e4 0.40."),
    }
    for kept, move in (("kept", "c4"), ("kept", "Nc3"), ("kept", "a4"), ("none", "c4")):
        cost, searched = told[move]
        (tmp_path / "typed").write_text(f"{move}\nq\n")
        flags = ("--from=book", f"--progress={kept}{move}.sqlite", f"--store={kept}.sqlite")
        said = printed("drill", *flags, cwd=tmp_path, typed=tmp_path / "typed")
        assert (
            f"No: e4. It comes up in every game. Forgetting it costs 40 points in 100 games. {cost}" in said
        )
        assert (f"Fake, in pawns for White: {searched}" in said) == (kept == "kept")
        assert ("in pawns" in said) == (kept == "kept")


def test_whole_lines(tmp_path):
    write_book(tmp_path / "book")
    (tmp_path / "typed").write_text("e4\n\n\ne4\nq\n")
    said = printed(
        "drill",
        "--from=book",
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


# Costs seconds: the example from the start, twice.
def test_a_terminal_without_chess_symbols(tmp_path):
    write_book(tmp_path / "book")
    words = [sys.executable, str(ROOT / "examples" / "drill.py"), "--from=book", "--progress=p.sqlite"]
    how = {"cwd": tmp_path, "env": os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0"}, "capture_output": True}
    result = subprocess.run(words, input=b"\n", timeout=120, **how)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"R N B Q K B N R" in result.stdout
    result = subprocess.run([*words, "--unicode"], timeout=120, **how)
    assert result.returncode == 1 and b"--nounicode" in result.stderr
