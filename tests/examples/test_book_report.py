"""examples/book_report.py as a user runs it: its page shows what result.json has."""

import json
import math
import os
import re

import chess
import chess.pgn
import pytest
from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from precomp_games.chess.study.words import points
from tests.examples.launcher import fails, files, printed, result_of, table
from tests.examples.test_examples import ROOT
from tests.oracles.pages import PLOT, data_of, opened, press, resize, shown_rows, text, texts
from tests.oracles.pgn import game, read_back


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Return (folder, what is printed) of the default book and its page, from the shipped searches alone."""
    folder = tmp_path_factory.mktemp("report")
    flags = ("--output_dir=book", "--report", "--export=lichess,pgn,anki,csv", "--min_share=0")
    return folder, printed("chess_preparation", *flags, cwd=folder, has_engine=False)


@pytest.fixture
def prepared(first_run):
    return first_run[0]


@pytest.fixture
def answer(prepared):
    return result_of(prepared / "book")


def percent(fraction):
    value = 100.0 * fraction
    if value < 0.01:
        return "< 0.01%"
    if value >= 99.95:
        return "100%"
    return f"{value:.0f}%" if value >= 10 else f"{value:.1f}%" if value >= 1 else f"{value:.2f}%"


# Costs seconds: the first example, at its defaults.
def test_without_an_engine_the_shipped_searches_serve(first_run, answer):
    folder, said = first_run
    (notice,) = [line for line in said.splitlines() if "No engine found" in line]
    assert "apt-get install stockfish" in notice
    exports = {"arrows.pgn", "book.csv", "cards.apkg", "lichess-1.pgn"}
    assert set(files(folder / "book")) == {"book.bin", "book.pgn", "result.json", "report.html", *exports}
    assert f"For study: {', '.join(f'book/{name}' for name in sorted(exports))}" in said
    assert "Page: book/report.html" in said
    assert 20 < answer["size"] <= 150
    # A score by games is called so, with its error, and the value is the sum that it is.
    told = {name: points(answer[name]) for name in ("unprepared", "utility", "standard_error", "value")}
    found = f"{told['unprepared']} unprepared, {told['utility']} +- {told['standard_error']}"
    assert f"Expected score      {found} with the book" in said
    assert not re.search(r"(?<![\d.])-?[01]\.\d{3,}(?![\d%])", said)
    value = f"{told['value']} = {told['utility']} - {answer['size']} x 0.01 "
    assert f"Value               {value}" in said
    assert "nalyst's score" not in said
    assert re.search(r"^Coverage +of 100 games \d+ are still in the book at move ", said, re.MULTILINE)
    # The match is in the store as well, and keeps the promise.
    pattern = r"^Match +promised (.*), scored (.*) \+- (.*) in 100 games; .* \(from stored searches\)$"
    promised, scored, error = map(float, re.search(pattern, said, re.MULTILINE).groups())
    assert abs(promised - scored) <= 4.0 * math.hypot(error, 100.0 * answer["standard_error"]) + 1.0
    costs = re.findall(r"forgetting\s+it\s+(costs|saves)", (folder / "book" / "book.pgn").read_text())
    assert len(costs) >= answer["size"] and set(costs) == {"costs"}


def test_replies_are_in_the_result(answer):
    assert sum(each["reach"] for each in answer["exits"]) == pytest.approx(1.0, abs=1e-6)
    assert answer["score"] == "Expected score"
    # What lines end in, by the means that the book was chosen by, is what its gains come to.
    expected = sum(each["reach"] * each["promised"] for each in answer["exits"])
    gains = sum(each["gain"] for each in answer["memorized"])
    assert expected == pytest.approx(answer["unprepared"] + gains, abs=1e-6)
    # A position comes up as often as games leave behind it.
    for each in answer["memorized"]:
        size = len(each["after"])
        below = [exit["reach"] for exit in answer["exits"] if exit["after"][:size] == each["after"]]
        assert sum(below) == pytest.approx(each["reach"], rel=1e-6, abs=1e-9)


def test_exports_have_the_numbers_of_the_result(prepared, answer):
    for row, each in zip(table(prepared / "book" / "book.csv"), answer["memorized"], strict=True):
        assert row["after_uci"].split() == each["after"] and row["play_uci"].split() == list(each["play"])
        for column, name in (("reach", "reach"), ("gain", "gain"), ("forgetting_costs", "net_gain")):
            assert float(row[column]) == each[name]
        ((unit, value),) = each["evaluation"].items()
        assert row["evaluation_pawns_white"] == (f"{value / 100:.2f}" if unit == "cp" else f"#{value}")
    arrows = read_back(prepared / "book" / "arrows.pgn")
    for each in answer["memorized"]:
        node: chess.pgn.GameNode = arrows
        for move in each["after"]:
            node = node.variation(chess.Move.from_uci(move))
        white = node.eval().white()
        assert each["evaluation"] in ({"cp": white.score()}, {"mate": white.mate()})
        green = {(arrow.tail, arrow.head) for arrow in node.arrows() if arrow.color == "green"}
        assert green == {
            (move.from_square, move.to_square) for move in map(chess.Move.from_uci, each["play"])
        }


def test_games_plots_and_exports_of_books_that_are_there(prepared):
    games = [game("1. e4 {} Nc6", "Us", "Ann", Date="1999.??.??", Result="1-0")]
    games += [game("1. e4 Nc6 2. Nf3", "Us", "Dave", Date="2001.??.??", Result="0-1")]
    (prepared / "games.pgn").write_text("".join(games))
    (prepared / "sizes.svg").write_text(PLOT)
    flags = ("--from=book", "--output_dir=more", "--plot=sizes.svg", "--games=games.pgn", "--player=Ann")
    said = printed("book_report", *flags, "--export=pgn,csv", "--min_share=0", cwd=prepared)
    assert said.startswith("Games behind replies: 1 game; 1 left out: games of others\n")
    assert set(files(prepared / "more")) == {"report.html", "arrows.pgn", "book.csv"}
    # With the games, the exports give for each reply in how many of them it was seen.
    (alone, seen), (rows, known) = (
        [(prepared / folder / name).read_text() for folder in ("book", "more")]
        for name in ("arrows.pgn", "book.csv")
    )
    told = r"seen in 1 of their games|not in their games|a guess: never seen"
    assert seen.count("[%cal") == alone.count("[%cal") and re.sub(told, "", known) == rows
    assert re.search(told, seen) and re.search(told, known)
    page = (prepared / "more" / "report.html").read_text(encoding="utf-8")
    (data,) = data_of(page)
    assert data["games"] == [["Us", "Ann", 1999, "1-0", "e4 Nc6", "Mc5q"]]
    assert list(data["nodes"]["games"].values()) == [[1, 0]]
    assert "Stockfish" in page and "with Black: 1 game, 1999" in page
    assert "<bdi>sizes</bdi>" in page and 'alt="sizes"' in page


@pytest.mark.browser
# Costs seconds: a preparation.
def test_the_page_shows_the_numbers_of_the_result(prepared, answer, browser):
    opened(browser, prepared / "book" / "report.html")
    gain = answer["utility"] - answer["unprepared"]
    assert texts(browser, ".tiles b")[:3] == [
        str(answer["size"]),
        points(gain),
        points(answer["utility"]),
    ]
    tiles = text(browser, ".tiles")
    assert f"± {points(answer['standard_error'])}" in tiles
    assert f"and {points(answer['unprepared'])} without the book" in tiles
    if text(browser, "#fold") == "unfold all":
        press(browser, "a")
    told = 0
    for row in shown_rows(browser):
        own = [
            int(each.get_attribute("data-position")) for each in row.find_elements(By.CSS_SELECTOR, ".move")
        ]
        first = answer["memorized"][own[0]]
        told += len(own)
        reach, cost = (row.find_element(By.CSS_SELECTOR, name).text for name in (".reach", ".worth"))
        assert (reach, cost) == (percent(first["reach"]), points(first["net_gain"]))
    assert told == answer["size"]
    # One position after the other: what else was on the menu, and then the replies.
    exits = answer["exits"]
    for k, each in enumerate(answer["memorized"][:6]):
        row = browser.find_element(By.CSS_SELECTOR, f".move[data-position='{k}']")
        browser.execute_script("arguments[0].click()", row)
        menu = {
            other.get_attribute("data-move"): other.text.split()[-1]
            for other in browser.find_elements(By.CSS_SELECTOR, "#here tbody tr")
        }
        assert menu == {
            move: f"{'+' * (change > 0.0)}{points(change)}" for move, change in each["instead"].items()
        }
        press(browser, Keys.ARROW_RIGHT)
        (move,) = each["play"]
        behind = [exit for exit in exits if exit["after"][: len(each["after"]) + 1] == [*each["after"], move]]
        mass = sum(exit["reach"] for exit in behind)
        for reply in browser.find_elements(By.CSS_SELECTOR, "#here tbody tr"):
            after = [*each["after"], move, reply.get_attribute("data-move")]
            below = [exit for exit in behind if exit["after"][: len(after)] == after]
            share = sum(exit["reach"] for exit in below)
            score = sum(exit["reach"] * exit["promised"] for exit in below) / share
            assert percent(share / mass) in reply.text and f"{points(score)} " in reply.text
    assert "by 100 games that were played" in tiles
    assert browser.get_log("browser") == []


@pytest.mark.browser
# Costs seconds: a preparation against a person.
def test_pictures_for_the_docs(browser, tmp_path):
    """Pictures are made in any case, and written into docs/ if UPDATE_PICTURES is set."""
    folder = ROOT / "docs" if os.environ.get("UPDATE_PICTURES") else tmp_path
    printed("opponent_preparation", "--output_dir=book", "--report", cwd=tmp_path, has_engine=False)
    opened(browser, tmp_path / "book" / "report.html")
    assert text(browser, "h1") == "White against Karpov Anatoli"
    assert re.search(r"^Karpov Anatoli with Black: 58 games, 1984 to 1992$", text(browser, ".versus"))
    # Neither a spec nor a path, and none of the opponent's settings as flags have them.
    assert not re.search(
        r"games\(|\.pgn|=", browser.find_element(By.TAG_NAME, "main").text.replace("r = ", "")
    )
    resize(browser, 1280, 1020)
    press(browser, Keys.ARROW_RIGHT)
    moved = "return document.querySelector('#board .pieces [data-square=e4]') !== null"  # the pieces glide
    WebDriverWait(browser, 20).until(lambda _: browser.execute_script(moved))
    for name, width, height, scheme in (
        ("report_wide.png", 1280, 1020, "light"),
        ("report_phone.png", 390, 844, "light"),
        ("report_dark.png", 390, 844, "dark"),
    ):
        resize(browser, width, height)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        if scheme == "dark":
            browser.execute_script("document.getElementById('here').scrollIntoView()")
        assert browser.save_screenshot(str(folder / name))
        with Image.open(folder / name) as picture:
            smaller = picture.convert("RGB").quantize(160)
        smaller.save(folder / name, optimize=True)
        assert (folder / name).stat().st_size < 200_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.get_log("browser") == []


def test_a_page_of_books_that_are_there(prepared, answer):
    book = ("--from=book", "--output_dir=page")
    (prepared / "notes.pgn").write_text(
        "{From here.} 1. e4 {Best by test.} Nc6 (1... d5 {Scandinavian.}) *\n"
    )
    match = {"side": "white", "player": "the book", "positions": 58, "promised": 0.98, "games": 50}
    match |= {"score": 0.97, "low": 0.9, "high": 0.99}
    match["exits"] = [{"after": answer["exits"][0]["after"], "games": 9, "score": 0.94}]
    (prepared / "match").mkdir()
    (prepared / "match" / "result.json").write_text(json.dumps({"matches": [match]}))
    made = ("--match_dir=match", "--notes=notes.pgn")
    said = printed("book_report", *book, *made, cwd=prepared)
    assert said == "Page: page/report.html (open it in a browser)\n"
    page = (prepared / "page" / "report.html").read_text(encoding="utf-8")
    (data,) = data_of(page)
    notes = set(data["nodes"]["note"].values())
    assert notes == {"From here.", "Best by test.", "Scandinavian."}
    assert list(data["nodes"]["played"].values()) == [[9, 0.94]]
    assert "90 to 99" in page
    printed("book_report", book[0], "--output_dir=again", *made, cwd=prepared)
    assert files(prepared / "again") == files(prepared / "page")


def test_wrong_input(prepared, answer, tmp_path):
    def refused(*flags, told):
        fails("book_report", *flags, "--output_dir=out", told=told, cwd=tmp_path)

    bad = tmp_path / "bad"
    bad.mkdir()
    replies = [{"after": ["e2e4"], "count": 1, "games": [{"white": 7}]}]
    evaluated = [answer["memorized"][0] | {"evaluation": {"cp": 0.5}}]
    wrong = ({"utility": "x"}, {"exits": [7]}, {"replies": replies}, {"memorized": evaluated})
    for words in ("nonsense", "[" * 100_000, *(json.dumps(answer | each) for each in wrong)):
        (bad / "result.json").write_text(words)
        refused("--from=bad", told="bad")
    (bad / "result.json").write_text("{}")
    (tmp_path / "bad.svg").write_text("<svg")
    (tmp_path / "empty.pgn").write_text("")
    book = f"--from={prepared / 'book'}"
    refused(book, "--match_dir=bad", told="--match_dir")
    refused(book, book, told=("--from", "one book a color"))
    refused("--from=none", told=("--from", "'none'"))
    for flag in ("--export=pdf", "--export=pgn,pdf"):
        refused(book, flag, told=("--export", "'pdf'"))
    refused(book, "--plot=bad.svg", told="plots as SVG")
    refused(book, "--plot=none.svg", told="none.svg")
    refused(book, "--games=none.pgn", told="none.pgn")
    refused(book, "--notes=none.pgn", told="none.pgn")
    refused(book, "--notes=empty.pgn", told="--notes")
    for flag in ("--plot=bad.svg", "--match_dir=bad"):
        refused(flag, told="--from: expected an output folder")
    tree = {"expanded": 3, "histories": 3, "positions": 3, "fingerprint": "x"}
    whole = {name: value for name, value in answer.items() if name != "games"}
    whole |= {"budget": 9, "learned": 1, "truncation_loss": 0.0, "tree": tree}
    (bad / "result.json").write_text(json.dumps(whole))
    for words in ("a,b\n1,2\n", "positions,utility\n1\n", f"positions,utility\n{'x' * 200_000},1\n"):
        (bad / "memory.csv").write_text(words)
        refused("--from=bad", told=("a table of precomp-games prepare", "memory.csv"))
    assert not (tmp_path / "out").exists()
