"""`precomp-games opponent`: one command for both colors, whose games they are, what goes on from there."""

import contextlib
import csv
import dataclasses
import io
import json
import os
import pathlib
import subprocess
import sys
import types

import chess.pgn
import pytest
from absl import flags

from precomp_games.chess import Book, Preparation, SearchLimit
from precomp_games.chess.model.played import Person
from precomp_games.commands import judge, main, match, opponent, scout
from precomp_games.commands._chess import earlier_run, earlier_runs
from precomp_games.commands.judge import book_and_settings
from precomp_games.commands.opponent import folder_name
from tests.chess import fake_engine
from tests.oracles.pages import against_people
from tests.oracles.pgn import game

_GAMES = "my games (1), a=b.pgn"
_AGAIN = "once; again (1), a=b [%C3]"
_LINES = ("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6", "1. e4 c5 2. Nf3 d6 3. d4 cxd4", "1. d4 d5 2. c4 e6 3. Nc3 Nf6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Games of "Karpov, A." and "Karpov, Anatoly", with both colors, a year apart; and an engine."""
    folder = tmp_path_factory.mktemp("an opponent (1), a=b")
    names = ["Karpov, Anatoly"] * 8 + ["Karpov, A."] * 3
    text = ""
    for k, name in enumerate(names):
        sides = ("Us", name) if k % 2 else (name, "Us")
        text += game(f"{_LINES[k % 3]} {{game {k}}}", *sides, Date=f"{1990 + k // 4}.??.??", Round=str(k))
    (folder / _GAMES).write_text(text)
    engine = folder / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    engine.chmod(0o755)
    return folder


def small(folder):
    """Return flags that make a run short."""
    behind = "--behind=noisy(policy=uci(nodes=10,r=40),epsilon=0.1)"
    return [f"--engine={folder}/engine", "--store=kept.sqlite", behind, "--plies=8", "--distrust=0.05",
            "--evaluation=linear", "--scale_cp=600", "--penalty=2e-3", "--budget=6", "--opponent_nodes=10",
            "--analyst_nodes=20"]  # fmt: skip


@pytest.fixture(scope="module")
def prepared(folder):
    """Run the command in the folder and return its output."""
    words = [_GAMES, "Karpov", "--all_spellings", *small(folder), "--export=lichess,csv"]
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        assert main(["precomp-games", "opponent", *words]) == 0
    return said.getvalue()


# Costs seconds: a person's model and both books, with an engine.
def test_one_command_prepares_both_colors(folder, prepared):
    made = folder / "output" / "karpov_anatoly"
    names = {path.name for path in made.iterdir()}
    assert names == {
        *("report.html", "white", "black", "white-book.csv", "black-book.csv"),
        *("scout.html", "scout.pgn", "scout.json"),
        *("white-lichess-1.pgn", "black-lichess-1.pgn"),
    }
    assert prepared.startswith("Played              11 games, 1990 to 1992\n\nWith White\ngames  share")
    assert 'href="report.html"' in (made / "scout.html").read_text()
    page = (made / "report.html").read_text()
    for side in ("white", "black"):
        there = Preparation.read(made / side)
        assert there.side == side and there.settings.distrust == 0.05
        assert (len(there.book) > 0) == (side == "white")  # by this engine Black learns nothing
        assert there.settings.opponent.startswith(f'games(file="{_GAMES}",player=Karpov Anatoly; Karpov A.,')
        assert (made / side / "opponent.npz").is_file()
        assert (made / side / "positions.csv").is_file() == (side == "white")
        assert json.loads((made / side / "result.json").read_text())["model"]["read"].startswith("11 games")
    plays, worth, sure = prepared.rpartition("What to expect\n")[2].splitlines()
    assert (
        plays.startswith("Karpov, Anatoly; Karpov, A.: after 1. ") and "; with White expect e4 in " in plays
    )
    assert worth.startswith("More points in 100 games: 1.2 with White (")
    assert ", and nothing is worth learning with Black, by a model of 11 games and " in worth
    assert sure.startswith("Guesses, ") and " of that with White; at worst, " in sure
    assert "What to expect" in page and "by a model of 11 games" in page


def test_each_color_keeps_its_own_files(tmp_path, capsys):
    white, black, both = (str(tmp_path / f"{name}.pgn") for name in ("white", "black", "both"))
    pathlib.Path(white).write_text(
        "1. e4 e5 (1... c5 2. Nf3) (1... e6 2. d4) 2. Nf3 Nc6 (2... d6 3. d4) 3. Bb5\n"
    )
    pathlib.Path(black).write_text("1. e4 (1. d4 d5) (1. c4 c5) e5 2. Nf3 (2. Bc4 Nf6) 2... Nc6\n")
    pathlib.Path(both).write_text("1. e4 e5 2. Nf3 Nc6\n")

    def kept(*files):
        given = types.SimpleNamespace(keep=list(files), fen="")
        return opponent._kept_files(given, ["white", "black"])

    assert kept(white, black) == {"white": [white], "black": [black]}
    assert kept(both, black) == {"white": [both], "black": [both, black]}  # one that does not tell
    assert kept(black) == {"black": [black]}
    assert "Not with White: no file of --keep has" in capsys.readouterr().out
    assert kept() == {"white": [], "black": []}


@pytest.fixture(scope="module")
def again(folder, prepared):
    """Run the command for White once more, into another folder, and return its output."""
    words = [_GAMES, "Karpov", "--all_spellings", *small(folder), "--side=white", f"--output_dir={_AGAIN}"]
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        assert main(["precomp-games", "opponent", *words, "--noreport", "--export="]) == 0
    return said.getvalue()


# Costs seconds: a person's model and both books, with an engine.
def test_the_same_again_is_in_the_store(folder, again):
    assert "needed, 0 of them new searches" in again
    first, second = (folder / each / "white" / "result.json" for each in ("output/karpov_anatoly", _AGAIN))
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in (folder / _AGAIN).iterdir()] == ["white"]


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ({}, "unknown: no game has a date, so all count alike"),
        ({"Date": "????.??.??", "UTCDate": "1990.01.02"}, "unknown: no games before 1990"),
    ],
)
# Costs seconds: a person's model and a book, with an engine.
def test_whatever_is_known_of_dates(tags, told, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "games.pgn").write_text("".join(game(line, "P", "Us", **tags) for line in _LINES * 2))
    words = ["games.pgn", "P", *small(folder), "--behind=fitted", "--side=black", "--noreport"]
    assert main(["precomp-games", "opponent", *words]) == 0
    said = capsys.readouterr().out
    assert told in said and said.count("has a date") == ("has a date" in told)


def test_a_name_that_fits_several_is_asked_once(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = ["precomp-games", "opponent", _GAMES, "karpov", "--behind=uniform", *small(folder)[3:]]
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    assert main(words) == 1
    told = capsys.readouterr().err
    assert (
        "fits Karpov, Anatoly (8 games); Karpov, A. (3 games): give one" in told and "--all_spellings" in told
    )

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    answers = iter(["3", "x", "2"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    assert scout._asked("karpov", {"Karpov, Anatoly": 8, "Karpov, A.": 3}) == ["Karpov, A."]
    monkeypatch.setattr("builtins.input", lambda prompt: "all")
    assert scout._asked("karpov", {"Karpov, Anatoly": 8, "Karpov, A.": 3}) == [
        "Karpov, Anatoly",
        "Karpov, A.",
    ]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Karpov, Anatoly; Karpov, A.", "karpov_anatoly"),
        ("../../etc/passwd", "etc_passwd"),
        ("\x1b[31mred\u202e", "31mred"),
        ("Ørsted, Å.", "ørsted_å"),
        ("..", "opponent"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_folder_is_named_after_the_person_and_nothing_else(name, folder):
    assert folder_name(name) == folder


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            [_GAMES],
            "--player: expected whose games in --games are meant, such as 'Us', 'Karpov, Anatoly'",
        ),
        ([_GAMES, "Nobody"], f"expected moves of 'Nobody' in '{_GAMES}', got none"),
        (["none.pgn", "Us"], "--games: expected a PGN file, got 'none.pgn'"),
        (["a\x1b[2J.pgn", "Us"], r"--games: expected a PGN file, got 'a\x1b[2J.pgn'"),
        ([os.devnull], "--games: expected a PGN file with games, got"),
        ([_GAMES, "Us", "more"], "expected flags only, got 'more'"),
        (
            [_GAMES, "Us", f"--games={_GAMES}"],
            f"--games: expected it once, got '{_GAMES}' and '{_GAMES}'",
        ),
        ([_GAMES, "Us", "--opponent=uniform"], "--opponent: expected none"),
    ],
)
def test_what_is_wrong_is_told(words, error, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["precomp-games", "opponent", *words, "--output_dir=wrong"]) == 1
    assert error in capsys.readouterr().err
    assert not (folder / "wrong").exists()


# Costs seconds: a person's model and a book, with an engine.
def test_a_last_game_without_a_move_of_the_person_and_a_name_that_controls_terminals(
    folder, monkeypatch, capsys
):
    """A prediction that the last games cannot test is unknown, and the run can be gone on from."""
    monkeypatch.chdir(folder)
    name = "Kar\x1b[31mp\u200cov, A"
    games = [game(line, name, "Us", Date=f"{1990 + k}.??.??") for k, line in enumerate(_LINES)]
    (folder / "odd.pgn").write_text("".join(games) + game("1. e4", "Us", name, Date="1999.??.??"))
    words = [each for each in small(folder) if "behind" not in each and "distrust" not in each]
    words += ["--behind=uniform", "--side=black", "--penalty=0.05", "--output_dir=odd"]
    words += ["--noreport", "--export="]
    assert main(["precomp-games", "opponent", "odd.pgn", name, *words]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "Prediction          unknown: no moves from 1999 on" in said
    assert "Distrust" not in said and "an engine thinks" not in said
    result = json.loads((folder / "odd/black/result.json").read_text())
    assert result["model"]["bits"] is None and result["settings"]["distrust"] == 0.0
    assert Preparation.read(folder / "odd/black").settings.opponent.startswith(
        "games(file=odd.pgn,player=Kar[31mpov A,"
    )


# -- what goes on from there -------------------------------------------------------------------------------


@pytest.fixture
def runs(folder, prepared, monkeypatch, capsys):
    """Run a command in the folder, with the engine and its searches."""
    monkeypatch.chdir(folder)

    def run(*words, status=0):
        engine = (
            [] if words[0] in ("drill", "report") else [f"--engine={folder}/engine", "--store=kept.sqlite"]
        )
        assert main(["precomp-games", *words, *engine]) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    return run


_FROM = "--from=output/karpov_anatoly"


def flagged(command, *words):
    """Return the flags of a command, as these words set them."""
    given = flags.FlagValues()
    command.define(given)
    given([command.__name__, *([] if any("--from" in word for word in words) else [_FROM]), *words])
    return given


def test_settings_are_those_of_the_run_but_for_what_is_said(folder, prepared, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = Preparation.read("output/karpov_anatoly/white").settings
    book, settings = book_and_settings(flagged(judge))
    assert "White's of output/karpov_anatoly; --side=black is for the other." in capsys.readouterr().out
    assert len(book) > 0 and not settings.trusted and settings.files is not None
    assert settings == dataclasses.replace(before, distrust=0.0, files=settings.files)
    _, settings = book_and_settings(flagged(judge, "--penalty=0.5", "--opponent_nodes=7"))
    assert (settings.penalty, settings.opponent_limit) == (0.5, SearchLimit(nodes=7))
    assert settings.opponent == before.opponent
    assert [each.made.side for each in earlier_runs(flagged(match))] == ["white", "black"]
    assert [each.made.side for each in earlier_runs(flagged(match, "--side=black"))] == ["black"]


def test_what_no_data_stand_for_is_said_again(folder, prepared, monkeypatch):
    """Nothing that a folder names is opened or run, but what a flag names."""
    monkeypatch.chdir(folder)
    result = json.loads((folder / "output/karpov_anatoly/white/result.json").read_text())
    (folder / "bare").mkdir()
    (folder / "bare/book.pgn").write_bytes((folder / "output/karpov_anatoly/white/book.pgn").read_bytes())

    def bare(opponent, *words):
        result["settings"]["opponent"] = opponent
        (folder / "bare/result.json").write_text(json.dumps(result))
        return book_and_settings(flagged(judge, "--from=bare", *words))[1]

    told = (
        r"--opponent: expected 'uci\(engine=x\)' as in the folder, since uci\(engine=...\) is opened or run"
    )
    with pytest.raises(ValueError, match=told):
        bare("uci(engine=x)", "--calibration=own.json", "--evaluation=calibrated")
    assert bare("uci(engine=x)", "--opponent=uci(engine=x)").trusted
    with pytest.raises(FileNotFoundError, match=r"own.json"):
        bare("uniform", "--calibration=own.json", "--evaluation=calibrated")


def test_judge_and_review_have_the_book_and_the_opponent(folder, runs):
    few = ("--penalty=0.1", "--learn=0")
    assert "White's book against " in runs("judge", _FROM, *few, "--output_dir=judged")
    (folder / "new.pgn").write_text(game("1. d4 d5 2. c4 e6 3. Nc3 Nf6", "Me", "Karpov"))
    mine = ("--games=new.pgn", "--player=Me")
    assert "--games: expected the games that you have played" in runs("review", _FROM, status=1)
    runs("review", _FROM, "--side=white", *mine, *few, "--output_dir=seen")
    assert json.loads((folder / "seen/result.json").read_text())["reviewed"] == 1


def test_match_plays_both_books(runs, monkeypatch):
    """A book of each color, against what lies in its folder; games take their time elsewhere."""
    played = []

    def play(given, made, engines):
        opponent = engines.policies(made.settings).sigma[1 - made.settings.player]
        played.append((made.side, opponent.action_probabilities(made.settings.game().new_initial_state())))
        raise ValueError("games")

    monkeypatch.setattr("precomp_games.commands.match._play", play)
    for words in ([], ["--side=black"]):
        assert "error: games" in runs("match", _FROM, *words, "--output_dir=match", status=1)
    assert [side for side, _ in played] == ["white", "black"]
    assert played[0][1] == played[1][1] and len(played[0][1]) > 1


def test_a_page_shows_both_books(folder, runs):
    said = runs("report", _FROM, "--export=csv", "--output_dir=page (1), a=b")
    assert "For study: page (1), a=b/black-book.csv, page (1), a=b/white-book.csv" in said
    assert "White and Black against Karpov Anatoly" in (folder / "page (1), a=b" / "report.html").read_text()
    runs("report", _FROM, "--side=white", "--export=csv", "--output_dir=one")
    assert {path.name for path in (folder / "one").iterdir()} == {"report.html", "book.csv"}


# Costs seconds: imports in a process of its own.
def test_what_needs_no_linear_program_imports_none(folder, prepared):
    """A drill does with little address space; and progress and searches are kept in files of any name."""
    code = f"""
import resource, sys
from precomp_games.commands import main
unlimited = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (560 << 20, unlimited[1]))
drill = main(["precomp-games", "drill", "{_FROM}", "--progress=my drill (1), a=b?.sqlite"])
resource.setrlimit(resource.RLIMIT_AS, unlimited)
engine = ["--engine={folder}/engine", "--store=my searches (1), a=b?%23#.sqlite", "--output_dir=of (1), a=b"]
fit = ["--nodes=10,20", "--top_k_values=2", "--skip_plies=0", "--pgn={_GAMES}", "--player=Us"]
estimate = main(["precomp-games", "estimate", *engine, *fit])
print(drill, estimate, "highspy" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, input="q\n", capture_output=True, text=True, timeout=120
    )
    assert done.stdout.endswith("\n0 0 False\n"), done.stdout + done.stderr
    assert (folder / "my drill (1), a=b?.sqlite").exists()
    assert (folder / "my searches (1), a=b?%23#.sqlite").exists()


def test_drill_asks_the_book(runs, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda prompt: "q")
    assert "White's of output/karpov_anatoly; --side=black is for the other." in runs("drill", _FROM)
    white, _ = earlier_runs(flagged(match))
    nothing = dataclasses.replace(white.made, book=Book(white.made.book.start, chess.WHITE, ()), gains=())
    both = [white._replace(made=nothing), white]
    monkeypatch.setattr("precomp_games.commands._chess.earlier_runs", lambda given: both)
    assert earlier_run(flagged(match)) is white  # which has something to ask


def test_a_folder_of_something_else_is_refused(folder, again, runs):
    assert "with no preparation in it" in runs("judge", "--from=.", status=1)
    assert "with no preparation of Black's in it" in runs(
        "judge", f"--from={_AGAIN}", "--side=black", status=1
    )
    assert "--from: expected one book a color, got " in runs("match", _FROM, f"--from={_AGAIN}", status=1)


def test_what_to_expect_with_people_behind_the_games():
    """Gains by position and by clock are separate, and people's moves are no guesses."""
    people = against_people().made
    behind = "games(file=bob.pgn,player=Bob,prior=human(rating=1640))"
    made = dataclasses.replace(
        people, settings=dataclasses.replace(people.settings, opponent=behind), person=Person("Bob", 8)
    )
    model = types.SimpleNamespace(
        report=types.SimpleNamespace(games=8),
        action_probabilities=lambda state: {state.legal_actions()[0]: 1.0},
    )
    against = types.SimpleNamespace(person=types.SimpleNamespace(name="Bob"), model=model)
    plays, worth, sure = opponent.expectations(against, [made])
    assert plays.endswith("(not in their games; people of their rating play it).")
    assert "+35 by position and +1.0 on the clock with White (80 in place of 45, 3 positions)" in worth
    assert sure == (
        "Replies not in their games, which networks of people think likely, carry 43% of that with White."
    )


def test_studies_and_tables_say_what_is_a_guess(folder, prepared):
    with (folder / "output/karpov_anatoly/white-lichess-1.pgn").open() as file:
        read = chess.pgn.read_game(file)
    assert read is not None and not read.errors and read.variations
    with (folder / "output/karpov_anatoly/white-book.csv").open(newline="") as file:
        told = [row["reply"] for row in csv.DictReader(file)]
    text = " ".join((folder / "output/karpov_anatoly/white-lichess-1.pgn").read_text().split())
    guess = "a guess: never seen, an engine thinks so"
    assert told[0] == "" and set(told[1:]) == {guess}  # to a first move that nobody played
    assert text.count("(a guess)") >= len(told) - 1
