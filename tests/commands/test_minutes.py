"""--minutes: time is up, or Ctrl-C is pressed."""

import os
import signal

import pytest

from precomp_games.commands import prepare
from precomp_games.commands._preparing import looking_until


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


def test_a_whole_tree_takes_what_it_takes(capsys):
    assert prepare.main(["prepare", "--minutes=1", "--evaluation=linear"]) == 1
    assert "--minutes: expected --menu of 2 or more" in capsys.readouterr().err


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
