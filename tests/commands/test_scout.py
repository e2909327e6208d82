"""`precomp-games scout`: its output and its files."""

import json
import random

import chess.pgn
import pytest

from tests.chess.test_scouting import random_games
from tests.commands.conftest import call
from tests.oracles.pgn import game


@pytest.fixture
def games(tmp_path):
    """Games of "Me", and one of somebody whose name is a path."""
    path = tmp_path / "games.pgn"
    path.write_text(random_games(random.Random(2), 40) + game("1. e4 e5", "../../etc/passwd", "Nobody"))
    return tmp_path


def test_it_writes_a_page_lines_and_numbers(games):
    status, printed, _ = call(games, "scout", "games.pgn", "Me", "--least=3", "--output_dir=out")
    assert status == 0 and "Speeds, and seconds a move" in printed
    out = games / "out"
    assert {path.name for path in out.iterdir()} == {"scout.html", "scout.pgn", "scout.json"}
    data = json.loads((out / "scout.json").read_text())
    white, black = data["colors"]
    assert data["games"] == white["lines"]["tally"]["games"] + black["lines"]["tally"]["games"]
    stack = [*white["lines"]["replies"]]
    for line in stack:
        assert line["tally"]["games"] >= 3 and chess.Move.from_uci(line["move"])
        stack += line["replies"]
    with (out / "scout.pgn").open() as file:
        first = chess.pgn.read_game(file)
    assert first.variations[0].move.uci() == white["lines"]["replies"][0]["move"]
    assert 'href="scout.pgn"' in (out / "scout.html").read_text()
    # A name names no file.
    assert call(games, "scout", "games.pgn", "../../etc/passwd", "--output_dir=odd", "--least=1")[0] == 0
    assert {path.name for path in games.iterdir()} == {"games.pgn", "out", "odd"}
    assert {path.name for path in (games / "odd").iterdir()} == {"scout.html", "scout.pgn", "scout.json"}


def test_filters_say_what_they_take(games):
    filters = ["--color=white", "--since=2020-03-01", "--until=2021-06", "--speed=blitz,rapid"]
    status, printed, _ = call(games, "scout", "games.pgn", "Me", *filters)
    assert status == 0
    assert " by --color, " in printed and " by --since, " in printed and "With Black" not in printed
    status, _, error = call(games, "scout", "games.pgn", "Me", *filters, "--rating=2000-2100", "--rated")
    assert error.startswith("error: expected games of 'Me' that fit all filters, got none (40 games; ")
    assert " by --speed, " in error and error.endswith(" by --rating)\n") and error.count("\n") == status == 1
