"""--minutes: time is up, or Ctrl-C is pressed."""

import json
import os
import signal
import time

import pytest

from precomp_games.chess import Preparation
from precomp_games.commands._app import progress_bar, running_until
from precomp_games.commands.prepare import looking_until
from tests.commands.conftest import ENDGAME, ENGINE, FEW, GAMES, call

_NONE = ("--minutes=0", *ENGINE)
_ENDING = ["prepare", ENDGAME, "--max_plies=10", *FEW, "--play_budget=4", "--match_games=0"]


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


def press(monkeypatch, presses, at, counts=lambda made: True):
    """Press Ctrl-C so often as one book is written, the one with this number of those that count."""
    write, written = Preparation.write, []

    def pressed(made, *folder):
        write(made, *folder)
        if counts(made):
            written.append(made)
            for _ in range(presses if len(written) == at else 0):
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Preparation, "write", pressed)
    return written


# Costs seconds: a preparation by games.
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_keeps_the_best_book_so_far(presses, folder, monkeypatch):
    """Pressed once, games measure the book; twice, the run ends, and the book stays as it was written."""
    written, out = press(monkeypatch, presses, 2), f"pressed_{presses}"
    few = ["--max_evaluations=100", "--menu=3", "--penalty=1e-4", "--neighbors=0", *ENGINE]
    status, printed, err = call(folder, *_ENDING, *few, f"--output_dir={out}")
    made = Preparation.read(folder / out)
    assert "Looks no further; Ctrl-C again ends the program." in printed
    if presses == 1:
        assert status == 0 and not made.unfinished, err
        assert made.to_json()["work"]["evaluations"] < 100 and written[1].unfinished
        return
    message = f"error: interrupted (the best book so far is in {out}, {len(written[1].book)} position"
    assert status == 130 and err.splitlines()[-1].startswith(message)
    assert made.unfinished and made.book.positions == written[1].book.positions
    assert (folder / out / "book.bin").exists() and (folder / out / "book.pgn").exists()


# Costs seconds: four preparations.
def test_a_whole_tree_is_looked_at_as_far_as_there_is_time(folder, run):
    """With time it is the tree of --penalty, and with none that of 256 times the penalty."""
    small = [*FEW, *ENGINE, "--evaluation=linear", "--menu=1", "--max_plies=3", "--budget=3"]
    runs = {"whole": ["--penalty=0.01"], "first": ["--penalty=2.56"]}
    runs |= {"enough": ["--penalty=0.01", "--minutes=10"], "none": ["--penalty=0.01", "--minutes=0"]}
    results = {}
    for name, each in runs.items():
        more = ["--match_games=0", "--neighbors=0", f"--output_dir=tree_{name}"]
        printed = run("prepare", *small, *each, *more)
        results[name] = json.loads((folder / f"tree_{name}" / "result.json").read_text())
        assert ("by --minutes=0, at --penalty=2.56, not yet 0.01" in printed) == (name == "none")
    assert results["enough"] == results["whole"] != results["first"] == results["none"]


# Costs seconds: both books against a person, and two commands, in as little time as there is.
def test_an_opponent_in_no_time(folder, run):
    """A page with both colors, and a model of a few games, drawn; omissions are reported."""
    words = [GAMES, "Karpov", "--all_spellings", *FEW, "--plies=8", "--output_dir=none", *_NONE]
    printed = run("opponent", *words)
    assert "3 of 40 games, drawn with --seed, as there was time for by --minutes" in printed
    assert printed.count("by --minutes=0, at --penalty=0.128, not yet 0.0005") == 2
    assert (folder / "none" / "report.html").is_file()
    for side in ("white", "black"):
        made = Preparation.read(folder / "none" / side)
        assert "fit=rolling" not in made.settings.opponent and "alpha=" in made.settings.opponent
    judged = ["--from=none", "--book=mine.pgn", "--side=white", "--penalty=0.0005", *_NONE]
    mine = [f"--games={GAMES}", "--player=Us"]
    for words, table in ((["judge"], "positions.csv"), (["review", *mine], "games.csv")):
        printed = run(*words, *judged, f"--output_dir={words[0]}_none")
        assert "for 1 of 2,000 games there was no time" in printed
        there = {path.name for path in (folder / f"{words[0]}_none").iterdir()}
        assert {"result.json", table} <= there


# Costs seconds: both books against a person, twice.
@pytest.mark.parametrize("presses", [1, 2])
def test_an_opponent_that_is_ended_has_a_page(presses, folder, monkeypatch):
    """Once, as White is written, and Black is looked at a little; twice, amid Black, and White is there."""
    written = press(monkeypatch, presses, presses, lambda made: not made.unfinished)
    few = ["--plies=8", "--behind=uniform", "--penalty=0.01", "--evaluation=linear", "--distrust=0.05"]
    words = ["opponent", GAMES, "Karpov, Anatoly", *FEW, *few, *ENGINE, f"--output_dir=ended_{presses}"]
    status, printed, err = call(folder, *words)
    assert "Looks no further; Ctrl-C again ends the program." in printed
    page = (folder / f"ended_{presses}" / "report.html").read_text()
    assert f"<title>{'White and Black' if presses == 1 else 'White'} against Karpov Anatoly" in page
    assert status == (0 if presses == 1 else 130), err
    assert [made.side for made in written] == ["white", "black"]


# Costs seconds: commands that search and play, in as little time as there is.
def test_commands_in_no_time_end_with_their_files(folder, run):
    pgn = [f"--pgn={GAMES}", "--skip_plies=0"]
    sparring = ["--opponent_movetime_ms=5", "--analyst_nodes=20", "--max_plies=10"]
    book = ["result.json", "book.bin", "book.pgn"]
    for words, message, files in (
        (["estimate", *pgn, "--player=Karpov, Anatoly", "--nodes=20"], "positions, drawn with --seed", []),
        (["calibrate", *pgn, "--analyst_nodes=20"], "drawn with --seed, as --minutes allow", ["samples.csv"]),
        (_ENDING, "Written: no_prepare/book.bin", book),
        (["match", "--from=no_prepare"], "As many of 100 games, and of controls", ["match.png"]),
        (["spar", *sparring], "The last book       ", book),
    ):
        assert message in run(*words, *_NONE, f"--output_dir=no_{words[0]}")
        there = {path.name for path in (folder / f"no_{words[0]}").iterdir()}
        assert there & {"result.json", "calibration.json"} and there >= set(files)


def test_bars_say_how_much_is_left():
    """Of the whole command, and the searches that are known to be needed."""
    with (
        running_until(2.0, began=time.monotonic(), stops=False),
        progress_bar(desc="Searching", total=8, unit=" searches") as bar,
    ):
        bar.update(3)
        assert str(bar).startswith("Searching (1:4") and " left): " in str(bar) and "| 3/8 [" in str(bar)
    with progress_bar(desc="Searching", total=8) as bar:
        assert str(bar).startswith("Searching: ")


def test_minutes_are_one_flag_in_all_commands(run):
    """With one help text, and a default that may differ."""
    helps = set()
    for name in ("prepare", "opponent", "judge", "review", "match", "spar", "estimate", "calibrate"):
        _, _, rest = run(name, "--help").partition("--minutes: ")
        helps.add(" ".join(rest.partition("(default")[0].partition("(a non")[0].split()))
    assert len(helps) == 1 and helps.pop().startswith("End after so many minutes in all")
