"""`precomp-games scout`: its output, its files, and its errors if there is nothing to count."""

import json
import random

import chess.pgn
import pytest

from precomp_games.commands import main
from tests.chess.test_scouting import random_games
from tests.oracles.pgn import game


@pytest.fixture
def games(tmp_path):
    """Games of "Me", and one of somebody whose name is a path."""
    path = tmp_path / "games.pgn"
    path.write_text(random_games(random.Random(2), 40) + game("1. e4 e5", "../../etc/passwd", "Nobody"))
    return path


def test_without_words_it_scouts_a_sample(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["precomp-games", "scout"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Player              Karpov Anatoli: 126 games, 1984 to 1992\n")
    assert "\n   36    53%      74      –  1992  1. d4\n" in said
    assert "\n   15    22%      80      –  1992        3. Nf3\n" in said
    assert said.index("With White") < said.index("With Black") < said.index("New in") < said.index("Speeds")
    assert list(tmp_path.iterdir()) == []


def test_it_writes_a_page_lines_and_numbers(games, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["precomp-games", "scout", str(games), "Me", "--least=3", f"--output_dir={out}"]) == 0
    assert "Speeds, and seconds a move" in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"scout.html", "scout.pgn", "scout.json"}
    told = json.loads((out / "scout.json").read_text())
    white, black = told["colors"]
    assert told["games"] == white["lines"]["tally"]["games"] + black["lines"]["tally"]["games"]
    stack = [*white["lines"]["replies"]]
    for line in stack:
        assert line["tally"]["games"] >= 3 and chess.Move.from_uci(line["move"])
        stack += line["replies"]
    with (out / "scout.pgn").open() as file:
        first = chess.pgn.read_game(file)
    assert first.variations[0].move == chess.Move.from_uci(white["lines"]["replies"][0]["move"])
    assert 'href="scout.pgn"' in (out / "scout.html").read_text()


def test_filters_say_what_they_take(games, capsys):
    filters = ["--color=white", "--since=2020-03-01", "--until=2021-06", "--speed=blitz,rapid"]
    assert main(["precomp-games", "scout", str(games), "Me", *filters]) == 0
    said = capsys.readouterr().out
    assert " by --color, " in said and " by --since, " in said and "With Black" not in said
    assert main(["precomp-games", "scout", str(games), "Me", *filters, "--rating=2000-2100", "--rated"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: expected games of 'Me' that fit all filters, got none (40 games; ")
    assert " by --speed, " in error and error.endswith(" by --rating)\n") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["Zukertort"], "--games: expected moves of 'Zukertort' in "),
        ([], "--player: expected whose games in --games are meant, such as 'Me', 'Other "),
        (["Other"], "--player: expected one person, got 'Other', which fits Other "),
        (["Me", "--since=2021-13"], "--since: expected a day, a month or a year, such as 2021-03-01, got '2"),
        (["Me", "--until=soon"], "--until: expected a day, a month or a year, such as 2021-03-01, got 'so"),
        (["Me", "--speed=blits"], "--speed: expected some of bullet, blitz, rapid, classical, got 'blits'"),
        (["Me", "--rating=1900-1500"], "--rating: expected ratings from and to, such as 1500-1900, got '19"),
        (["Me", "--rating=1900"], "--rating: expected ratings from and to, such as 1500-1900, got '1900'"),
        (["Me", "--known=0"], "flag --known=0"),
        (["Me", "--output_dir=/dev/null/x"], "--output_dir: expected a folder, got '/dev/null/x'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(flags, error, games, capsys):
    assert main(["precomp-games", "scout", str(games), *flags]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"error: {error}") and said.err.count("\n") == 1, said.err


def test_a_name_names_no_file(games, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [str(games), "../../etc/passwd", "--output_dir=out", "--least=1"]
    assert main(["precomp-games", "scout", *words]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"games.pgn", "out"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"scout.html", "scout.pgn", "scout.json"}
