"""`precomp-games opponent` and `scout`: one command for both colors, whose games they are, what goes on."""

import dataclasses
import json
import os
import random
import subprocess
import sys
import types

import pytest
from absl import flags

from precomp_games.chess import Preparation, SearchLimit
from precomp_games.chess.model.played import Person
from precomp_games.commands import judge, match, opponent, scout
from precomp_games.commands._chess import earlier_run, earlier_runs
from precomp_games.commands.judge import book_and_settings
from tests.chess.test_scouting import random_games
from tests.commands.conftest import ENGINE, FEW, GAMES, LINES
from tests.examples.launcher import result_of, table
from tests.oracles.pages import against_people
from tests.oracles.pgn import game, games_of, read_back

_AGAIN = "once; again (1), a=b [%C3]"
_FROM = "--from=output/karpov_anatoly"
_SMALL = [*ENGINE, *FEW, "--plies=8", "--evaluation=linear", "--scale_cp=600", "--budget=6", "--penalty=2e-3"]
_BEHIND = ["--behind=noisy(policy=uci(nodes=10,r=40),epsilon=0.1)", "--distrust=0.05"]


@pytest.fixture(scope="module")
def prepared(run):
    """Run the command and return its output."""
    return run("opponent", GAMES, "Karpov", "--all_spellings", *_SMALL, *_BEHIND, "--export=lichess,csv")


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


# Costs seconds: a person's model and both books, with an engine.
def test_one_command_prepares_both_colors(folder, prepared):
    made = folder / "output" / "karpov_anatoly"
    pages = {"report.html", "scout.html", "scout.pgn", "scout.json", "white", "black"}
    exports = {f"{side}-{name}" for side in ("white", "black") for name in ("book.csv", "lichess-1.pgn")}
    assert {path.name for path in made.iterdir()} == pages | exports
    played = "Played              40 games, 2000-01 to 2003-01, rated 1300, then 1400"
    assert prepared.startswith(f"{played}\n\nWith White\ngames  share")
    assert 'href="report.html"' in (made / "scout.html").read_text()
    for side in ("white", "black"):
        there = Preparation.read(made / side)
        assert there.side == side and there.settings.distrust == 0.05
        assert (len(there.book) > 0) == (side == "white")  # by this engine Black learns nothing
        assert there.settings.opponent.startswith(f'games(file="{GAMES}",player=Karpov Anatoly; Karpov A.,')
        assert (made / side / "opponent.npz").is_file()
        assert (made / side / "positions.csv").is_file() == (side == "white")
        assert result_of(made / side)["model"]["read"].startswith("40 games")
    plays, worth, sure = prepared.rpartition("What to expect\n")[2].splitlines()
    assert plays.startswith("Karpov, Anatoly; Karpov, A.: after 1. ")
    assert "; with White expect e4 in " in plays
    assert worth.startswith("More points in 100 games: ") and " with White (" in worth
    assert ", and nothing is worth learning with Black, by a model of 40 games and " in worth
    assert sure.startswith("Guesses, ") and " of that with White; at worst, " in sure
    page = (made / "report.html").read_text()
    assert "What to expect" in page and "by a model of 40 games" in page
    assert read_back(made / "white-lichess-1.pgn").variations
    first, *replies = [row["reply"] for row in table(made / "white-book.csv")]
    # To a first move that nobody played.
    assert first == "" and set(replies) == {"a guess: never seen, an engine thinks so"}
    assert " ".join((made / "white-lichess-1.pgn").read_text().split()).count("(a guess)") >= len(replies)


# Costs seconds: a person's model and a book, with an engine.
def test_the_same_again_is_in_the_store(folder, prepared, run):
    words = [GAMES, "Karpov", "--all_spellings", *_SMALL, *_BEHIND, "--side=white", "--noreport", "--export="]
    assert "needed, 0 of them new searches" in run("opponent", *words, f"--output_dir={_AGAIN}")
    first, second = (folder / each / "white" / "result.json" for each in ("output/karpov_anatoly", _AGAIN))
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in (folder / _AGAIN).iterdir()] == ["white"]
    # As a folder to go on from, it has a book of White's alone.
    assert "no preparation of Black's in it" in run("judge", f"--from={_AGAIN}", "--side=black", status=1)
    assert "--from: expected one book a color" in run("match", _FROM, f"--from={_AGAIN}", status=1)


def test_each_color_keeps_its_own_files(folder, capsys):
    white, black, both = "mine.pgn", "black.pgn", "both.pgn"
    (folder / black).write_text("1. e4 (1. d4 d5) (1. c4 c5) e5 2. Nf3 (2. Bc4 Nf6) 2... Nc6\n")
    (folder / both).write_text("1. e4 e5 2. Nf3 Nc6\n")

    def kept(*files):
        return opponent._kept_files(types.SimpleNamespace(keep=list(files), fen=""), ["white", "black"])

    assert kept(white, black) == {"white": [white], "black": [black]}
    assert kept(both, black) == {"white": [both], "black": [both, black]}  # one that does not tell
    assert kept(black) == {"black": [black]}
    assert "Not with White: no file of --keep has" in capsys.readouterr().out
    assert kept() == {"white": [], "black": []}


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({}, "unknown: no game has a date, so all count alike"),
        ({"Date": "????.??.??", "UTCDate": "1990.01.02"}, "unknown: no games before 1990"),
        ({"Date": "1990.01.02"}, "unknown: no moves from 1999 on"),
    ],
)
# Costs seconds: a person's model and a book, with an engine.
def test_a_prediction_that_no_games_can_test_is_unknown(tags, message, folder, run):
    """And a name that controls terminals does no harm."""
    name, output = "Kar\x1b[31mp\u200cov, A", f"odd {message[12:20]}"
    games = [game(line, name, "Us", **tags) for line in LINES]
    if "1999" in message:
        games.append(game("1. e4", "Us", name, Date="1999.??.??"))  # without a move of that person
    (folder / "odd.pgn").write_text("".join(games))
    few = ["--side=black", "--noreport", "--export=", f"--output_dir={output}", "--penalty=0.05"]
    earlier = folder / output / "black" / "positions.csv"  # of a run that learned something
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    printed = run("opponent", "odd.pgn", name, *_SMALL, "--behind=fitted", *few)
    assert "\x1b" not in printed and f"Prediction          {message}" in printed and "Distrust" not in printed
    result = result_of(folder / output / "black")
    assert result["model"]["bits"] is None and result["settings"]["distrust"] == 0.0
    settings = Preparation.read(folder / output / "black").settings
    assert settings.opponent.startswith("games(file=odd.pgn,player=Kar[31mpov A,") and not earlier.exists()


def test_a_name_that_fits_several_is_asked_once(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    message = run("opponent", GAMES, "karpov", "--behind=uniform", *ENGINE, status=1)
    assert "fits Karpov, Anatoly (30 games); Karpov, A. (10 games): give one" in message
    assert "--all_spellings" in message
    names = {"Karpov, Anatoly": 8, "Karpov, A.": 3}
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for typed, chosen in ((["3", "x", "2"], ["Karpov, A."]), (["all"], list(names))):
        answers = iter(typed)
        monkeypatch.setattr("builtins.input", lambda prompt, answers=answers: next(answers))
        assert scout._asked("karpov", names) == chosen


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Karpov, Anatoly; Karpov, A.", "karpov_anatoly"),
        ("../../etc/passwd", "etc_passwd"),
        ("\x1b[31mred\u202e", "31mred"),
        ("Ørsted, Å.", "ørsted_å"),
        ("..", "opponent"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_folder_is_named_after_the_person_and_nothing_else(name, expected):
    assert opponent.folder_name(name) == expected


# -- people of a rating ----------------------------------------------------------------------------------


@pytest.mark.engine
# Costs seconds: a command with a real engine.
def test_a_book_against_a_rating_has_two_parts_of_value(folder, run):
    words = ["--opponent=human(rating=1300)", "--budget=6", "--max_evaluations=100", "--analyst_nodes=500"]
    words += ["--check_nodes=1000", "--match_games=2", "--neighbors=0", "--maia=networks"]
    printed = run("prepare", "--store=real.sqlite", *words, "--output_dir=rated")
    assert "people rated about 1300" in printed and "by position" in printed and "on the clock" in printed
    made = Preparation.read(folder / "rated")
    settings = made.settings
    assert (settings.evaluation, settings.rating) == ("people", 1300.0)
    assert (settings.menu, settings.price) == (4, "positions")
    assert made.clock >= 0.0 and 0 < made.learned <= 6
    assert result_of(folder / "rated")["clock"] == made.clock


# Costs seconds: the whole command, with searches.
def test_people_of_the_rating_are_behind_a_persons_games(folder, run):
    words = ["--analyst_nodes=20", "--maia=networks", "--plies=4", "--budget=2", "--max_plies=5"]
    words += ["--distrust=0.05", "--side=white", "--export=", "--penalty=2e-3", "--output_dir=friend"]
    printed = run("opponent", GAMES, "Karpov, Anatoly", *ENGINE, *words)
    assert "people rated 1329, by networks" in printed and "Missing" not in printed
    hasty = ["--minutes=0", "--distrust=0", "--store=hasty.sqlite", "--output_dir=hasty", "--side=white"]
    printed = run("opponent", GAMES, "Karpov, Anatoly", *ENGINE, *words, *hasty)
    assert "Stopped             by --minutes=0, before all lines were compared" in printed
    settings = Preparation.read(folder / "friend" / "white").settings
    assert "prior=human(rating=1329,spread=200)" in settings.opponent
    assert (settings.evaluation, settings.speed, round(settings.rating)) == ("people", "blitz", 1329)
    # Elsewhere, without networks, an error names what is missing.
    error = run("match", "--from=friend", ENGINE[0], "--games=2", status=1)
    assert "expected networks of people's moves" in error


# -- scouting --------------------------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path, here):
    """Return a function that scouts "Me", or another one, in games of mine and of whose name is a path."""
    path = tmp_path / "games.pgn"
    path.write_text(random_games(random.Random(2), 40) + game("1. e4 e5", "../../etc/passwd", "Nobody"))
    return lambda *words, name="Me", status=0: here("scout", "games.pgn", name, *words, status=status)


def test_a_page_lines_and_numbers_of_whom_is_scouted(mine, tmp_path):
    assert "Speeds, and seconds a move" in mine("--least=3", "--output_dir=out")
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"scout.html", "scout.pgn", "scout.json"}
    data = result_of(out, "scout.json")
    white, black = (color["lines"] for color in data["colors"])
    assert data["games"] == white["tally"]["games"] + black["tally"]["games"]
    stack = [*white["replies"]]
    for line in stack:
        assert line["tally"]["games"] >= 3
        stack += line["replies"]
    first = games_of(out / "scout.pgn")[0].variations[0]
    assert first.move.uci() == white["replies"][0]["move"]
    assert 'href="scout.pgn"' in (out / "scout.html").read_text()
    # A name names no file.
    mine("--output_dir=odd", "--least=1", name="../../etc/passwd")
    assert {path.name for path in tmp_path.iterdir()} == {"games.pgn", "out", "odd"}
    assert {path.name for path in (tmp_path / "odd").iterdir()} == {"scout.html", "scout.pgn", "scout.json"}


def test_filters_say_what_they_take(mine):
    filters = ["--color=white", "--since=2020-03-01", "--until=2021-06", "--speed=blitz,rapid"]
    printed = mine(*filters)
    assert " by --color, " in printed and " by --since, " in printed and "With Black" not in printed
    error = mine(*filters, "--rating=2000-2100", "--rated", status=1)
    assert error.startswith("error: expected games of 'Me' that fit all filters, got none (40 games; ")
    assert " by --speed, " in error and error.endswith(" by --rating)\n")


# -- what goes on from there -------------------------------------------------------------------------------


def flagged(command, *words):
    """Return the flags of a command, as these words set them."""
    given = flags.FlagValues()
    command.define(given)
    given([command.__name__, *([] if any("--from" in word for word in words) else [_FROM]), *words])
    return given


def test_settings_are_those_of_the_run_but_for_what_flags_say(prepared, capsys):
    before = Preparation.read("output/karpov_anatoly/white").settings
    book, settings = book_and_settings(flagged(judge))
    assert "White's of output/karpov_anatoly; --side=black is for the other." in capsys.readouterr().out
    assert len(book) > 0 and not settings.trusted and settings.files is not None
    assert settings == dataclasses.replace(before, distrust=0.0, files=settings.files)
    _, settings = book_and_settings(flagged(judge, "--penalty=0.5", "--opponent_nodes=7"))
    assert (settings.penalty, settings.opponent_limit) == (0.5, SearchLimit(nodes=7))
    assert settings.opponent == before.opponent
    os.mkdir("wide")  # a book that was looked for best first, without replies that a whole tree has
    wide = dataclasses.replace(before, min_probability=0.02)
    dataclasses.replace(Preparation.read("output/karpov_anatoly/white"), settings=wide).write("wide")
    _, settings = book_and_settings(flagged(judge, "--from=wide"))
    assert settings.min_probability == 0.01
    assert [each.made.side for each in earlier_runs(flagged(match, "--side=black"))] == ["black"]
    white, black = earlier_runs(flagged(match))
    assert (white.made.side, black.made.side) == ("white", "black")
    both = [f"{_FROM}/black", f"{_FROM}/white"]
    assert earlier_run(flagged(match, *both)).made.side == "white"  # which has something to ask


def test_what_no_data_stand_for_is_in_flags_again(folder, prepared):
    """Nothing that a folder names is opened or run, but what a flag names."""
    made = folder / "output" / "karpov_anatoly" / "white"
    result = result_of(made)
    (folder / "bare").mkdir()
    (folder / "bare/book.pgn").write_bytes((made / "book.pgn").read_bytes())

    def bare(opponent, *words):
        result["settings"]["opponent"] = opponent
        (folder / "bare/result.json").write_text(json.dumps(result))
        return book_and_settings(flagged(judge, "--from=bare", *words))[1]

    own = ("--calibration=own.json", "--evaluation=calibrated")
    with pytest.raises(
        ValueError, match=r"--opponent: expected 'uci\(engine=x\)' as in the folder, since uci"
    ):
        bare("uci(engine=x)", *own)
    assert bare("uci(engine=x)", "--opponent=uci(engine=x)").trusted
    with pytest.raises(FileNotFoundError, match=r"own.json"):
        bare("uniform", *own)


# Costs seconds: two commands with searches.
def test_judge_and_review_have_the_book_and_the_opponent(folder, prepared, run):
    few = ("--penalty=0.1", "--learn=0", *ENGINE)
    assert "White's book against " in run("judge", _FROM, *few, "--output_dir=judged")
    (folder / "new.pgn").write_text(game("1. d4 d5 2. c4 e6 3. Nc3 Nf6", "Me", "Karpov"))
    assert "--games: expected the games that you have played" in run("review", _FROM, *ENGINE, status=1)
    run("review", _FROM, "--side=white", "--games=new.pgn", "--player=Me", *few, "--output_dir=seen")
    assert result_of(folder / "seen")["reviewed"] == 1


def test_match_plays_both_books(prepared, run, monkeypatch):
    """A book of each color, against what lies in its folder; games take their time elsewhere."""
    played = []

    def play(given, made, engines):
        policy = engines.policies(made.settings).sigma[1 - made.settings.player]
        played.append((made.side, policy.action_probabilities(made.settings.game().new_initial_state())))
        raise ValueError("games")

    monkeypatch.setattr("precomp_games.commands.match._play", play)
    for words in ([], ["--side=black"]):
        assert "error: games" in run("match", _FROM, *words, *ENGINE, "--output_dir=match", status=1)
    (white, row), (black, other) = played
    assert (white, black) == ("white", "black") and row == other and len(row) > 1


def test_a_page_shows_both_books(folder, prepared, run):
    printed = run("report", _FROM, "--export=csv", "--output_dir=page (1), a=b")
    assert "For study: page (1), a=b/black-book.csv, page (1), a=b/white-book.csv" in printed
    assert "White and Black against Karpov Anatoly" in (folder / "page (1), a=b" / "report.html").read_text()
    run("report", _FROM, "--side=white", "--export=csv", "--output_dir=one")
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
engine = ["{ENGINE[0]}", "--store=my searches (1), a=b?%23#.sqlite", "--output_dir=of (1), a=b"]
fit = ["--nodes=10,20", "--top_k_values=2", "--skip_plies=0", "--pgn={GAMES}", "--player=Us"]
estimate = main(["precomp-games", "estimate", *engine, *fit])
print(drill, estimate, "highspy" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input="q\n", capture_output=True, text=True, timeout=120
    )
    assert done.stdout.endswith("\n0 0 False\n"), done.stdout + done.stderr
    assert (folder / "my drill (1), a=b?.sqlite").exists()
    assert (folder / "my searches (1), a=b?%23#.sqlite").exists()


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
