"""--minutes: time is up, or Ctrl-C is pressed."""

import contextlib
import json
import os
import signal
import sys
import time

import pytest

from precomp_games.chess import Preparation
from precomp_games.commands import main
from precomp_games.commands._app import progress_bar, running_until
from precomp_games.commands.prepare import looking_until
from tests.chess import fake_engine
from tests.oracles.pgn import game


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
    assert main(["precomp-games", "prepare", "--minutes=1", "--evaluation=linear"]) == 1
    assert "--minutes: expected --menu of 2 or more" in capsys.readouterr().err


# Costs seconds: a preparation by games.
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_keeps_the_best_book_so_far(presses, tmp_path, monkeypatch, capsys):
    """Pressed once, games measure the book; twice, the run ends, and the book stays as it was written."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "engine"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    script.chmod(0o755)
    few = ["--max_evaluations=300", "--menu=3", "--penalty=1e-4", "--max_plies=20", "--match_games=0"]
    fen = "--fen=8/8/8/3k4/8/8/1Q6/K7 w - - 0 1"
    words = ["prepare", f"--engine={script}", fen, "--play_budget=6", "--neighbors=0", *few]
    write, written = Preparation.write, []

    def pressed(made, folder):
        write(made, folder)
        written.append(made)
        for _ in range(presses if len(written) == 2 else 0):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Preparation, "write", pressed)
    status = main(["precomp-games", *words, "--output_dir=out"])
    said = capsys.readouterr()
    made = Preparation.read(tmp_path / "out")
    assert "Looks no further; Ctrl-C again ends the program." in said.out
    if presses == 1:
        assert status == 0 and not made.unfinished, said.err
        assert made.to_json()["work"]["evaluations"] < 300 and written[1].unfinished
        return
    told = f"error: interrupted (the best book so far is in out, {len(written[1].book)} position"
    assert status == 130 and said.err.splitlines()[-1].startswith(told)
    assert made.unfinished and made.book.positions == written[1].book.positions
    assert (tmp_path / "out" / "book.bin").exists() and (tmp_path / "out" / "book.pgn").exists()


# Costs seconds: four preparations.
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
        assert main(["precomp-games", "prepare", *small, *each, f"--output_dir={name}"]) == 0
        results[name] = json.loads((tmp_path / name / "result.json").read_text())
        stopped = "by --minutes=0, at --penalty=2.56, not yet 0.01" in capsys.readouterr().out
        assert stopped == (name == "none")
    assert results["enough"] == results["whole"] != results["first"] == results["none"]


@pytest.mark.engine
# Costs seconds: a preparation by games.
def test_a_book_in_no_time(tmp_path, monkeypatch, capsys):
    """A small book is found, and games measure it."""
    monkeypatch.chdir(tmp_path)
    few = [
        "--play_budget=12",
        "--match_games=0",
        "--neighbors=0",
        "--analyst_nodes=100",
        "--opponent_nodes=50",
    ]
    assert main(["precomp-games", "prepare", "--minutes=0", "--output_dir=out", *few]) == 0
    said = capsys.readouterr().out
    assert "0 to learn what positions are worth" in said and (tmp_path / "out" / "book.bin").exists()


# -- whole commands ----------------------------------------------------------------------------------------

_LINES = (
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6",
    "1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6",
    "1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7",
)
_SMALL = ["--opponent_nodes=10", "--analyst_nodes=20"]


@pytest.fixture(scope="module")
def person(tmp_path_factory):
    """Forty games of "Lee, Bo" over four years, an engine, and what `opponent` makes of them in no time."""
    folder = tmp_path_factory.mktemp("minutes")
    text = ""
    for k in range(40):
        sides = ("Us", "Lee, Bo") if k % 2 else ("Lee, Bo", "Us")
        result = ("1-0", "0-1", "1/2-1/2")[k % 3]
        tags = {"Result": result, "Date": f"{2000 + k // 10}.01.02", "Round": str(k)}
        text += game(_LINES[k % 3], *sides, **tags).replace(" *\n", f" {result}\n")
    (folder / "games.pgn").write_text(text)
    (folder / "mine.pgn").write_text("1. e4 e5 (1... c5 2. Nf3) 2. Nf3 Nc6 3. Bb5 *\n")
    engine = folder / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    engine.chmod(0o755)
    small = ["--fen=8/8/8/3k4/8/8/1Q6/K7 w - - 0 1", "--max_plies=10", *_SMALL, "--play_budget=4"]
    few = ["--minutes=0", "--match_games=0", f"--engine={engine}", "--store=kept.sqlite"]
    with contextlib.chdir(folder):
        assert main(["precomp-games", "prepare", *small, *few, "--output_dir=ending"]) == 0
    return folder


def ran(folder, capsys, *words):
    """Run a command with the engine of a folder and its own store; return its status, output and errors."""
    with contextlib.chdir(folder):
        status = main(["precomp-games", *words, f"--engine={folder}/engine", "--store=kept.sqlite"])
    said = capsys.readouterr()
    return status, said.out, said.err


def lee(output, *more):
    return ["opponent", "games.pgn", "Lee, Bo", *_SMALL, "--plies=8", f"--output_dir={output}", *more]


# Costs seconds: both books against a person, in as little time as there is.
def test_an_opponent_in_no_time(person, capsys):
    """A page with both colors, and a model of a few games, drawn; omissions are reported."""
    status, said, err = ran(person, capsys, *lee("none", "--minutes=0"))
    assert status == 0, err
    assert "Fitted to           3 of 40 games, drawn with --seed, as there was time for by --minutes" in said
    assert said.count("by --minutes=0, at --penalty=0.128, not yet 0.0005") == 2
    assert (person / "none" / "report.html").is_file()
    for side in ("white", "black"):
        made = Preparation.read(person / "none" / side)
        assert "fit=rolling" not in made.settings.opponent and "alpha=" in made.settings.opponent
    judged = ["--from=none", "--book=mine.pgn", "--side=white", "--penalty=0.0005"]
    for words, files in (
        (["judge", *judged], {"result.json", "positions.csv"}),
        (["review", *judged, "--games=games.pgn", "--player=Us"], {"result.json", "games.csv"}),
    ):
        status, said, err = ran(person, capsys, *words, "--minutes=0", f"--output_dir={words[0]}")
        assert status == 0, err
        assert "for 1 of 2,000 games there was no time" in said
        assert files <= {path.name for path in (person / words[0]).iterdir()}


# Costs seconds: both books against a person, twice.
@pytest.mark.parametrize("presses", [1, 2])
def test_an_opponent_that_is_ended_has_a_page(presses, person, capsys, monkeypatch):
    """Once, as White is written, and Black is looked at a little; twice, amid Black, and White is there."""
    write, written = Preparation.write, []

    def pressed(made, folder, *more):
        write(made, folder, *more)
        if not made.unfinished:
            written.append(made.side)
            for _ in range(presses if len(written) == presses else 0):
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Preparation, "write", pressed)
    output = f"ended_{presses}"
    few = ["--behind=uniform", "--penalty=0.01", "--evaluation=linear", "--distrust=0.05"]
    status, said, err = ran(person, capsys, *lee(output, *few))
    assert "Looks no further; Ctrl-C again ends the program." in said
    page = (person / output / "report.html").read_text()
    assert f"<title>{'White and Black' if presses == 1 else 'White'} against Lee Bo" in page
    assert (status, written) == (0 if presses == 1 else 130, ["white", "black"]), err


# Costs seconds: commands that search and play, in as little time as there is.
@pytest.mark.parametrize(
    ("words", "told", "files"),
    [
        (
            ["estimate", "--pgn=games.pgn", "--player=Lee, Bo", "--skip_plies=0", "--nodes=20"],
            "16 of 21 positions, drawn with --seed",
            ["result.json"],
        ),
        (
            ["calibrate", "--pgn=games.pgn", "--skip_plies=0", "--analyst_nodes=20"],
            "drawn with --seed, as --minutes allow",
            ["calibration.json", "samples.csv"],
        ),
        (
            ["match", "--from=ending"],
            "As many of 100 games, and of controls, as there was time for by --minutes",
            ["result.json", "games.pgn", "match.png"],
        ),
        (
            ["prepare", "--fen=8/8/8/3k4/8/8/1Q6/K7 w - - 0 1", "--max_plies=10", *_SMALL, "--play_budget=4"],
            "Written: no_prepare/book.bin",
            ["result.json", "book.bin", "book.pgn"],
        ),
        (
            ["spar", "--opponent_movetime_ms=5", "--analyst_nodes=20", "--max_plies=10"],
            "The last book       ",
            ["result.json", "book.bin", "book.pgn"],
        ),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_a_command_in_no_time_ends_with_its_files(words, told, files, person, capsys):
    status, said, err = ran(person, capsys, *words, "--minutes=0", f"--output_dir=no_{words[0]}")
    assert status == 0, err
    assert told in said
    assert set(files) <= {path.name for path in (person / f"no_{words[0]}").iterdir()}


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


def test_minutes_are_one_flag_in_all_commands(capsys):
    """With one help text, and a default that may differ."""
    told = set()
    for name in (
        "prepare",
        "opponent",
        "judge",
        "review",
        "match",
        "spar",
        "estimate",
        "calibrate",
    ):
        assert main(["precomp-games", name, "--help"]) == 0
        _, _, rest = capsys.readouterr().out.partition("--minutes: ")
        told.add(" ".join(rest.partition("(default")[0].partition("(a non")[0].split()))
    assert len(told) == 1 and told.pop().startswith("End after so many minutes in all")
