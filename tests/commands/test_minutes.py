"""--minutes: time is up, or Ctrl-C is pressed."""

import json
import os
import signal
import sys

import pytest

from precomp_games.chess import read_preparation, write_preparation
from precomp_games.commands import _preparing, prepare
from precomp_games.commands._preparing import looking_until
from tests.chess import fake_engine


def test_ctrl_c_ends_the_looking_and_then_the_program(capsys):
    before = signal.getsignal(signal.SIGINT)
    with looking_until(60.0) as enough:
        assert not enough()
        os.kill(os.getpid(), signal.SIGINT)
        assert enough() and "Ctrl-C again ends the program" in capsys.readouterr().out
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
    assert signal.getsignal(signal.SIGINT) is before
    with looking_until(0.0) as enough:
        assert enough()


def test_a_whole_tree_needs_something_else_that_ends_it(capsys):
    assert prepare.main(["prepare", "--minutes=1", "--evaluation=linear"]) == 1
    assert "--minutes: expected --menu of 2 or more" in capsys.readouterr().err


@pytest.mark.seconds("a preparation by games")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_keeps_the_best_book_so_far(presses, tmp_path, monkeypatch, capsys):
    """Pressed once, games say what it is worth; twice, the run ends, and the book stays as it was written."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "engine"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    script.chmod(0o755)
    few = ["--max_evaluations=300", "--menu=3", "--penalty=1e-4", "--max_plies=20", "--match_games=0"]
    fen = "--fen=8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"
    words = ["prepare", f"--engine={script}", fen, "--play_budget=6", "--neighbors=0", *few]
    write, written = write_preparation, []

    def pressed(made, folder):
        write(made, folder)
        written.append(made)
        for _ in range(presses if len(written) == 2 else 0):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(_preparing, "write_preparation", pressed)
    status = prepare.main([*words, "--output_dir=out"])
    said = capsys.readouterr()
    made = read_preparation(tmp_path / "out")
    assert "Looks no further; Ctrl-C again ends the program." in said.out
    if presses == 1:
        assert status == 0 and "unfinished" not in made.search, said.err
        assert made.search["work"]["evaluations"] < 300 and written[1].search["unfinished"]
        return
    told = f"error: interrupted (the best book so far is in out, {len(written[1].book)} position"
    assert status == 130 and said.err.splitlines()[-1].startswith(told)
    assert made.search["unfinished"] and made.book.positions == written[1].book.positions
    assert (tmp_path / "out" / "book.bin").exists() and (tmp_path / "out" / "book.pgn").exists()


@pytest.mark.seconds("four preparations")
def test_a_whole_tree_is_looked_at_as_far_as_there_is_time(tmp_path, monkeypatch, capsys):
    """With time it is the tree of --penalty, and with none that of 256 times the penalty."""
    monkeypatch.chdir(tmp_path)
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    engine.chmod(0o755)
    small = [f"--engine={engine}", "--evaluation=linear", "--menu=1", "--max_plies=4", "--budget=3"]
    small += ["--match_games=0", "--neighbors=0", "--opponent_nodes=10", "--analyst_nodes=20"]
    runs = {"whole": ["--penalty=0.01"], "first": ["--penalty=2.56"]}
    runs |= {"enough": ["--penalty=0.01", "--minutes=10"], "none": ["--penalty=0.01", "--minutes=0"]}
    results = {}
    for name, each in runs.items():
        assert prepare.main(["prepare", *small, *each, f"--output_dir={name}"]) == 0
        results[name] = json.loads((tmp_path / name / "result.json").read_text())
        stopped = "by --minutes=0, at --penalty=2.56, not yet 0.01" in capsys.readouterr().out
        assert stopped == (name == "none")
    assert results["enough"] == results["whole"] != results["first"] == results["none"]


@pytest.mark.engine
@pytest.mark.seconds("a preparation by games")
def test_a_book_in_no_time(tmp_path, monkeypatch, capsys):
    """As little as there is, and games say what it is worth."""
    monkeypatch.chdir(tmp_path)
    few = [
        "--play_budget=12",
        "--match_games=0",
        "--neighbors=0",
        "--analyst_nodes=100",
        "--opponent_nodes=50",
    ]
    assert prepare.main(["prepare", "--minutes=0", "--output_dir=out", *few]) == 0
    said = capsys.readouterr().out
    assert "0 to learn what positions are worth" in said and (tmp_path / "out" / "book.bin").exists()
