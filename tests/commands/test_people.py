"""Commands against people: networks' flags, what is behind a person's games, a book against a rating."""

import json
import pathlib
import sys

import pytest

from precomp_games.chess import Preparation
from precomp_games.commands import main
from precomp_games.commands.uci import main as uci
from tests.chess import fake_engine
from tests.oracles.network import random_network
from tests.oracles.pgn import game

_LINES = ("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6", "1. e4 c5 2. Nf3 d6 3. d4 cxd4", "1. d4 d5 2. c4 e6 3. Nc3 Nf6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Random networks of two ratings, games of a rated person, and an engine."""
    folder = tmp_path_factory.mktemp("people")
    (folder / "networks").mkdir()
    for seed, rating in enumerate((1200, 1600)):
        (folder / "networks" / f"random-{rating}.pb.gz").write_bytes(random_network(seed))
    text = ""
    for k in range(10):
        sides = ("Us", "A Friend") if k % 2 else ("A Friend", "Us")
        tags = {"Date": f"{2020 + k // 5}.01.{k + 1:02}", "WhiteElo": "1300", "BlackElo": "1400"}
        text += game(_LINES[k % 3], *sides, TimeControl="180+0", **tags)
    (folder / "games.pgn").write_text(text)
    engine = folder / "engine"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake_engine.__file__}"\n')
    engine.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PRECOMP_MAIA", raising=False)


def small():
    return ["--engine=./engine", "--store=kept.sqlite", "--analyst_nodes=20", "--maia=networks"]


@pytest.mark.engine
# Costs seconds: a command with a real engine.
def test_a_book_against_a_rating_has_two_parts_of_value(capsys):
    words = ["--opponent=human(rating=1300)", "--budget=6", "--max_evaluations=200", "--analyst_nodes=500"]
    words += ["--check_nodes=1000", "--match_games=2", "--neighbors=0", "--maia=networks", "--output_dir=out"]
    assert main(["precomp-games", "prepare", "--store=real.sqlite", *words]) == 0
    said = capsys.readouterr().out
    assert "people rated about 1300" in said and "by position" in said and "on the clock" in said
    made = Preparation.read("out")
    settings = made.settings
    assert (settings.evaluation, settings.rating, settings.menu, settings.price) == (
        "people",
        1300.0,
        4,
        "positions",
    )
    assert made.clock >= 0.0 and 0 < made.learned <= 6
    assert json.loads(pathlib.Path("out/result.json").read_text())["clock"] == made.clock


# Costs seconds: the whole command, with searches.
def test_people_of_the_rating_are_behind_a_persons_games(capsys):
    words = [
        "games.pgn",
        "A Friend",
        *small(),
        "--plies=4",
        "--budget=2",
        "--max_plies=5",
        "--distrust=0.05",
        "--side=white",
    ]
    assert (
        main(["precomp-games", "opponent", *words, "--export=", "--penalty=2e-3", "--output_dir=friend"]) == 0
    )
    said = capsys.readouterr().out
    assert "people rated 1360, by networks" in said and "Missing" not in said
    settings = Preparation.read("friend/white").settings
    assert "prior=human(rating=1360,spread=200)" in settings.opponent
    assert (settings.evaluation, settings.speed, settings.rating) == ("people", "blitz", 1360.0)
    # Elsewhere, without networks, an error names what is missing.
    assert main(["precomp-games", "match", "--from=friend", "--engine=./engine", "--games=2"]) == 1
    assert "expected networks of people's moves" in capsys.readouterr().err


def test_people_play_as_a_uci_engine(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", iter(()))
    lines = iter(["uci\n", "position startpos moves e2e4\n", "go infinite\n", "stop\n", "quit\n"])
    monkeypatch.setattr("sys.stdin", type("Input", (), {"readline": lambda self, _: next(lines, "")})())
    assert uci(["precomp-games-uci", "--play=human(rating=1300)", "--maia=networks", "--seed=1"]) == 0
    said = capsys.readouterr().out
    assert "players rated about 1300" in said and "bestmove " in said
    assert uci(["precomp-games-uci", "--play=human(rating=1300)"]) == 1
    assert "expected networks of people's moves" in capsys.readouterr().err
    assert uci(["precomp-games-uci", "--play=nobody"]) == 1
    assert "engine, model" in capsys.readouterr().err
