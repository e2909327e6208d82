"""Commands against people: networks' flags, what is behind a person's games, a book against a rating."""

import json

import pytest

from precomp_games.chess import Preparation
from tests.commands.conftest import ENGINE, GAMES


@pytest.mark.engine
# Costs seconds: a command with a real engine.
def test_a_book_against_a_rating_has_two_parts_of_value(folder, run):
    words = ["--opponent=human(rating=1300)", "--budget=6", "--max_evaluations=100", "--analyst_nodes=500"]
    words += [
        "--check_nodes=1000",
        "--match_games=2",
        "--neighbors=0",
        "--maia=networks",
        "--output_dir=rated",
    ]
    printed = run("prepare", "--store=real.sqlite", *words)
    assert "people rated about 1300" in printed and "by position" in printed and "on the clock" in printed
    made = Preparation.read(folder / "rated")
    settings = made.settings
    assert (settings.evaluation, settings.rating) == ("people", 1300.0)
    assert (settings.menu, settings.price) == (4, "positions")
    assert made.clock >= 0.0 and 0 < made.learned <= 6
    assert json.loads((folder / "rated" / "result.json").read_text())["clock"] == made.clock


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
