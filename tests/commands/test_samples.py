"""Commands on the shipped samples of games and of a book, and pictures of a page for the docs."""

import math
import os
import pathlib
import re

import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from precomp_games.chess import Preparation
from precomp_games.chess.study.words import points
from tests.commands.conftest import call, ends, hide_engine
from tests.examples.launcher import files, result_of, table
from tests.oracles.pages import opened, press, resize, text

_SMALLER = pytest.mark.slow("a shipped sample; the other tests of commands have smaller ones")


@pytest.fixture(scope="module")
def against_karpov(tmp_path_factory):
    """Return (folder, what is printed) of a preparation at its defaults, with no engine."""
    folder = tmp_path_factory.mktemp("karpov")
    with pytest.MonkeyPatch.context() as patch:
        hide_engine(patch)
        return folder / "out", ends(folder, "opponent", "--output_dir=out")


@_SMALLER
def test_the_readme_of_the_shipped_sample_has_what_its_files_have(against_karpov):
    """White's alone, by stored searches."""
    folder, output = against_karpov
    result, made = result_of(folder / "white"), Preparation.read(folder / "white")
    assert "White alone: the stored searches are those." in output and not (folder / "black").exists()
    assert 10 < result["size"] <= 60 and result["utility"] > result["unprepared"] + 0.05
    model, robust = result["model"], result["robust"]
    assert model["person"] == "Karpov Anatoli" and model["bits"] < 2.0
    assert result["settings"]["distrust"] == round(model["distrust"]["share"], 2) > 0.1
    # Nothing is played before the first move.
    assert result["unprepared"] == pytest.approx(robust["unprepared"])
    assert robust["unprepared"] + 0.01 < robust["utility"] < result["utility"]
    worth = points(result["utility"] - result["unprepared"])
    worst = points(robust["utility"] - robust["unprepared"])
    assert f"{result['size']} positions, worth {worth} more points in 100 games: " in output
    assert f"At worst            {worst} more points in 100 games: " in output
    rows = table(folder / "white" / "positions.csv")
    assert len(rows) == result["size"] == len(made.book)
    adds = math.fsum(float(row["adds"]) for row in rows)
    assert adds == pytest.approx(result["utility"] - result["unprepared"], abs=1e-9)
    rare = [float(row["adds"]) for row in rows if int(row["games"]) < 3]
    assert result["seldom"]["positions"] == len(rare)
    assert result["seldom"]["share"] == pytest.approx(math.fsum(rare) / adds)
    # A position hangs on a guess where a reply on the way to it is one.
    guessed = [
        float(row["adds"])
        for row, position in zip(rows, made.book.positions, strict=True)
        if any(position.history[:ply] not in made.games for ply in range(2, len(position.history) + 1, 2))
    ]
    share = math.fsum(guessed) / adds
    assert result["guessed"] == pytest.approx(share) and 0.5 < share < 1.0
    assert f"{len(guessed)} of {len(rows)} positions rest on guesses, with {share:.0%} of" in output
    assert "Karpov Anatoli: after 1. e4 expect c6 in 57 of 100 games (" in output
    assert f"carry {share:.0%} of that with White; at worst, {worst} with White are left." in output
    replies = {row["reply"] for row in table(folder / "book.csv")}
    assert {"seen in 12 of their games", "seen in 9 of their games"} < replies


@_SMALLER
@pytest.mark.browser
def test_pictures_for_the_docs(browser, against_karpov, tmp_path):
    """Pictures are made in any case, and written into docs/ if UPDATE_PICTURES is set."""
    docs = pathlib.Path(__file__).parents[2] / "docs"
    folder = docs if os.environ.get("UPDATE_PICTURES") else tmp_path
    opened(browser, against_karpov[0] / "report.html")
    assert text(browser, "h1") == "White against Karpov Anatoli"
    assert re.search(r"^Karpov Anatoli with Black: 58 games, 1984 to 1992$", text(browser, ".versus"))
    # Neither a spec nor a path, and none of the opponent's settings as flags have them.
    assert not re.search(r"games\(|\.pgn|=", text(browser, "main").replace("r = ", ""))
    resize(browser, 1280, 1020)
    press(browser, Keys.ARROW_RIGHT)
    moved = "return document.querySelector('#board .pieces [data-square=e4]') !== null"  # the pieces glide
    WebDriverWait(browser, 20).until(lambda _: browser.execute_script(moved))
    for name, width, height in (("wide", 1280, 1020), ("phone", 390, 844), ("dark", 390, 844)):
        resize(browser, width, height)
        feature = {"name": "prefers-color-scheme", "value": "dark" if name == "dark" else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        if name == "dark":
            browser.execute_script("document.getElementById('here').scrollIntoView()")
        path = folder / f"report_{name}.png"
        assert browser.save_screenshot(str(path))
        with Image.open(path) as picture:
            smaller = picture.convert("RGB").quantize(160)
        smaller.save(path, optimize=True)
        assert path.stat().st_size < 200_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.get_log("browser") == []


@_SMALLER
def test_the_sample_book_is_judged_and_the_sample_games_are_reviewed(here, tmp_path, without_engine):
    output = {}
    for command in ("judge", "review"):
        output[command] = here(command, f"--output_dir={command}")
        # No share of a game is printed; what is listed as worth less is so by a hundredth of a point or more.
        assert "points in 100 games" in output[command] and "No engine found" in output[command]
        assert not re.search(r"(?<![\d.])-?[01]\.\d{3,}(?![\d%])", output[command])
        _, _, rest = output[command].partition("worth less than another one, by these scores")
        less = re.findall(r"^ *([\d.]+) +[\d.]+%", rest.partition("\n\n")[0], re.MULTILINE)
        assert less and all(float(each) > 0.0 for each in less)

    result = result_of(tmp_path / "judge")
    positions = result["positions"]
    assert result["read"]["positions"] == 81 and result["read"]["contradictions"] == 3
    assert result["score"] == "Fitted score" and "0 of them new" in output["judge"]
    assert len(positions) == result["size"] == 22 and len(result["learn"]) == 10
    gains = sum(each["gain"] for each in positions)
    assert 0.0 < result["own_regret"] < result["regret"] < 0.5
    # Forgetting the first move is forgetting the book.
    assert (positions[0]["after"], positions[0]["forgetting"]) == ("(start)", pytest.approx(gains, abs=1e-9))
    assert sum(each["because"] == "the opponent" for each in result["not_met"]) == 54
    for name in ("positions", "learn", "holes", "not_met"):
        assert len(table(tmp_path / "judge" / f"{name}.csv")) == len(result[name])

    seen = result_of(tmp_path / "review")
    assert seen["reviewed"] == 5 and "1 left out: games with the other side" in output["review"]
    assert seen["left_by"] == {"the book's end": 2, "you": 1, "the opponent": 2}
    (by_you,) = (each for each in seen["games"] if each["left_by"] == "you")
    assert (by_you["game"], by_you["played"], by_you["better"]) == (2, "exd5", "e5")
    assert [each["learn"] for each in seen["to_learn"]] == ["e5"]
    # A reply that was played once, of a model that was worth five games.
    new = next(each for each in seen["replies"] if each["reply"] == "Nc6" and each["was"] < 1e-9)
    assert new["is"] == pytest.approx(1 / 6, abs=1e-6)
    assert seen["before"]["utility"] == pytest.approx(result["utility"], abs=1e-12) != seen["utility"]
    assert len(table(tmp_path / "review" / "games.csv")) == 5


def test_a_table_of_an_earlier_run_goes(here, tmp_path, without_engine):
    (tmp_path / "learn.csv").write_text("of an earlier run")
    assert "learn.csv" not in here("judge", "--learn=0", "--output_dir=.")
    tables = {"holes.csv", "not_met.csv", "positions.csv"}
    others = {"book.bin", "book.pgn", "opponent.npz", "result.json", "traps.pgn"}
    assert files(tmp_path).keys() == tables | others and result_of(tmp_path)["learn"] == []


def test_without_words_a_sample_is_scouted(tmp_path):
    status, printed, _ = call(tmp_path, "scout")
    assert status == 0 and list(tmp_path.iterdir()) == []
    assert printed.startswith("Player              Karpov Anatoli: 126 games, 1984 to 1992\n")
    assert "\n   36    53%      74      –  1992  1. d4\n" in printed
    assert "\n   15    22%      80      –  1992        3. Nf3\n" in printed
    order = ["With White", "With Black", "New in", "Speeds"]
    assert sorted(order, key=printed.index) == order
