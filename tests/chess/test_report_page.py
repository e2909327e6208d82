"""The page's script: what it computes, by python-chess, fsrs and our own words, and what its keys do."""

import dataclasses
import datetime
import importlib.resources
import json
import random

import chess
import chess.engine
import fsrs
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from precomp_games.chess import Book, BookMove, BookPosition
from precomp_games.chess.study.words import points
from tests.chess.test_report import line, rows, with_games
from tests.oracles.chess_books import uci
from tests.oracles.pages import (
    against_people,
    changed,
    data_of,
    opened,
    page_of,
    page_with,
    press,
    resize,
    small,
    text,
    texts,
    until,
    written,
)


@pytest.fixture
def browser(browser):
    """Nothing is written to its console."""
    yield browser
    assert browser.get_log("browser") == []


def run(browser, modules, script, *arguments):
    """Run a script after some of the page's modules, and return its result."""
    folder = importlib.resources.files("precomp_games.chess.study").joinpath("report_page")
    source = "\n".join(folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in modules)
    return browser.execute_script(f"{source}\n{script}", *arguments)


@pytest.mark.browser
def test_moves_are_those_of_python_chess(browser, small_page):
    """Moves on the page lead to python-chess's positions."""
    opened(browser, small_page)
    rng = random.Random(1)
    lines, fens = [], []
    starts = ["", "r3k2r/pPp3p1/8/3pP3/1p6/8/P1P3pP/R3K2R w KQkq d6 0 1"]
    for start in starts * 20:
        board, line, after = chess.Board(start or chess.STARTING_FEN), [], []
        while len(line) < 60 and not board.is_game_over():
            move = rng.choice(sorted(board.legal_moves, key=chess.Move.uci))
            line.append(move.uci())
            board.push(move)
            after.append(" ".join(board.fen().split()[:2]))
        lines.append([start or chess.STARTING_FEN, line])
        fens.append(after)
    told = run(
        browser,
        ["rules"],
        """return arguments[0].map(([start, line]) => {
             let place = placed(start)
             return line.map((move) => fenOf(place = played(place, move)))
           })""",
        lines,
    )
    assert told == fens


@pytest.mark.browser
def test_the_schedule_is_that_of_fsrs(browser, small_page):
    opened(browser, small_page)
    scheduler = fsrs.Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
    rng = random.Random(2)
    began = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    histories, expected = [], []
    for _ in range(60):
        card, now, history, found = fsrs.Card(), began, [], []
        for _ in range(8):
            right = rng.random() < 0.7
            known = scheduler.get_card_retrievability(card, now)
            rating = fsrs.Rating.Good if right else fsrs.Rating.Again
            card, _ = scheduler.review_card(card, rating, now)
            found.append([known, card.stability, card.difficulty, card.due.timestamp() * 1000])
            history.append([now.timestamp() * 1000, right])
            now += datetime.timedelta(days=rng.choice([0.0, 0.3, 1.0, 4.5, 30.0, 400.0]))
        histories.append(history)
        expected.append(found)
    told = run(
        browser,
        ["schedule"],
        """return arguments[0].map((history) => {
             let card = null
             return history.map(([now, right]) => {
               const known = recall(card, now)
               card = reviewed(card, right, now)
               return [known, card.stability, card.difficulty, card.due]
             })
           })""",
        histories,
    )
    for found, wanted in zip(told, expected, strict=True):
        assert found == [pytest.approx(row, rel=1e-9) for row in wanted]


@pytest.mark.browser
def test_points_are_told_as_by_our_words(browser, small_page):
    opened(browser, small_page)
    values = [0.0, 0.734, 0.0996, 0.0994, 0.0142, 0.00996, 0.0035, -0.0035, -1e-7, 1.0, 0.005]
    told = run(browser, ["rules", "schedule", "tree"], "return arguments[0].map(points)", values)
    assert told == list(map(points, values))
    assert points(0.734) == "73" and points(-0.0142) == "−1.4"


# -- in the page -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("page") / "report.html", small())


@pytest.fixture(scope="module")
def person_page(tmp_path_factory):
    """Return a book against a person, with an evaluation of its first position, and a guess."""
    each = with_games(small())
    games = {uci("e2e4 e7e5"): each.made.games[uci("e2e4 e7e5")]}
    score = chess.engine.PovScore(chess.engine.Cp(30), chess.WHITE)
    settings = dataclasses.replace(each.made.settings, opponent="games(file=bob.pgn,player=Bob)")
    each = changed(each, settings=settings, games=games, evaluations={(): score}, plots={})
    return written(tmp_path_factory.mktemp("page") / "report.html", each)


@pytest.mark.browser
def test_an_evaluation_bar_and_names_of_openings(browser, person_page):
    opened(browser, person_page)
    assert text(browser, "#evaluation") == "+0.3"
    press(browser, Keys.ARROW_RIGHT)  # the engine's score of its own move
    assert (
        text(browser, "#evaluation") == "+0.3" and text(browser, "#here .opening") == "B00 King's Pawn Game"
    )
    press(browser, Keys.ARROW_RIGHT)
    assert text(browser, "#evaluation") == "–" and text(browser, "#here .opening") == "C20 King's Pawn Game"


@pytest.mark.browser
def test_guesses_are_marked_and_can_be_hidden(browser, person_page):
    opened(browser, person_page)
    assert "1 of 3 positions rests on guesses, with 14% of what the book adds" in text(browser, ".tiles")
    assert [row[0] for row in rows(browser)] == ["1. e4 e5 2. Nf3", "≈1… c5 2. Nf3"]
    press(browser, Keys.ARROW_RIGHT, "g")
    assert [row[0] for row in rows(browser)] == ["1. e4 e5 2. Nf3"]
    assert len(texts(browser, "#here tr[data-move]")) == 1 and "19 replies hidden" in text(browser, "#here")
    browser.find_element(By.ID, "no-guesses").click()
    assert len(texts(browser, "#here tr[data-move]")) == 20
    browser.find_element(By.CSS_SELECTOR, "#here tr[data-move=c7c5] button").click()
    assert "a guess: never seen" in text(browser, "#here") and "a guess: never seen" in text(
        browser, "#games"
    )


@pytest.fixture(scope="module")
def people_page(tmp_path_factory):
    """Return a book against people of a rating, and one against a person with people behind its games."""
    people = against_people()
    behind = "games(file=bob.pgn,player=Bob,prior=human(rating=1640))"
    settings = dataclasses.replace(people.made.settings, opponent=behind)
    person = changed(with_games(people), settings=settings, games={}, plots={})
    folder = tmp_path_factory.mktemp("people")
    return written(folder / "people.html", people), written(folder / "person.html", person)


@pytest.mark.browser
def test_position_clock_coverage_and_traps(browser, people_page):
    opened(browser, people_page[0])
    worth = "+35 points in 100 games by position, +1.0 on the clock, for 3 positions"
    assert texts(browser, ".versus") == [f"Against players rated about 1500: {worth}"]
    tiles = text(browser, ".tiles")
    assert "+35 by position" in tiles and "+1.0 on the clock" in tiles and "guess" not in tiles
    assert "Of 100 games 10 are still in the book at move 2" in tiles
    assert text(browser, "#budget-text").endswith("35 more points in 100 games, by position")
    link = browser.find_element(By.CSS_SELECTOR, ".traps a")
    assert link.text == (
        "After 1. e4, 5 of 100 play c5?, which gives you 40 points more in 100 games than their other moves: "
        "2. Nf3. It comes up in 5.0 of 100 games."
    )
    link.click()
    assert line(browser) == ["Start", "1. e4", "c5"] and "We play Nf3" in text(browser, "#here")


@pytest.mark.browser
def test_replies_that_people_play_are_no_guesses(browser, people_page):
    opened(browser, people_page[1])
    assert text(browser, ".versus").startswith("Bob with Black: 8 games")
    assert "2 of 3 positions rest on replies not in their games" in text(browser, ".tiles")
    press(browser, Keys.ARROW_RIGHT)
    assert text(browser, "#games") == "In none of their games"
    press(browser, Keys.ARROW_RIGHT)
    assert "not in their games; people of their rating play it" in text(browser, "#games")
    assert text(browser, "#guess-switch") == "hide replies not in their games"
    assert "guess" not in text(browser, "main")


@pytest.mark.browser
def test_a_game_is_played_through(browser, person_page):
    opened(browser, person_page)
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, "w")
    assert text(browser, "#here .verdict") == "Ann – Bob, 1999: 1–0"
    whole = ["Start", "1. e4", "e5", "2. Nf3", "Nc6"]
    assert line(browser) == whole
    current = "#here .line [aria-current]"
    assert text(browser, current) == "e5"  # where the board stood
    press(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text(browser, current) == "Nc6"
    placed = "return document.querySelector('#board .pieces [data-square=c6]') !== null"
    until(browser, lambda: browser.execute_script(placed))
    press(browser, Keys.HOME)
    assert text(browser, current) == "Start"
    press(browser, Keys.ESCAPE)
    assert line(browser) == ["Start", "1. e4", "e5"] and "We play Nf3" in text(browser, "#here")


@pytest.mark.browser
def test_keys_are_shown_and_colors_are_kept(browser, small_page):
    opened(browser, small_page)
    press(browser, "?")
    assert "drill" in text(browser, "#keys") and "no game has" not in text(browser, "#keys")
    press(browser, "f", Keys.ESCAPE)
    assert not browser.find_element(By.ID, "keys").is_displayed()
    color = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(color)
    press(browser, "t")
    dark = browser.execute_script(color)
    assert dark != light and text(browser, "#theme") == "Light"
    opened(browser, small_page)
    assert browser.execute_script(color) == dark
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(color) == light
    browser.find_element(By.CSS_SELECTOR, "#glossary summary").click()
    assert texts(browser, "#glossary dt")[:2] == ["point", "comes up"]


@pytest.mark.browser
def test_a_sheet_to_print(browser, person_page):
    opened(browser, person_page)
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    sheet = browser.execute_script("return document.getElementById('sheet').textContent").replace("\xa0", " ")
    assert "Bob with Black: 8 games, 1990 to 1999" in sheet and "14 more points" not in sheet
    assert "1. e4 e5 2. Nf3" in sheet and "≈1… c5 2. Nf3" in sheet and "B20 Sicilian Defense" in sheet
    boards = browser.find_elements(By.CSS_SELECTOR, "#sheet figure")
    assert [each.get_attribute("textContent").replace("\xa0", " ") for each in boards] == ["after 2. Nf3"]
    assert not boards[0].is_displayed()
    pieces = "return [...document.querySelectorAll('#sheet use')].map((each) => each.getAttribute('href'))"
    assert sorted(browser.execute_script(pieces)).count("#wn") == 2


@pytest.mark.browser
# Costs seconds: a browser, question by question.
def test_a_drill_from_the_first_move(browser, small_page):
    opened(browser, small_page)
    browser.execute_script("localStorage.clear()")
    opened(browser, small_page)
    press(browser, "d")
    assert "White to move: what does the book play?" in text(browser, "#drill")
    assert not browser.find_element(By.CSS_SELECTOR, ".lines-card").is_displayed()
    press(browser, "Ke5", Keys.ENTER)
    assert "“Ke5” is no move here" in text(browser, "#drill")
    press(browser, "e4", Keys.ENTER)
    why = "It comes up in every game. Forgetting it costs 35 points in 100 games."
    assert "Right: e4" in text(browser, "#drill")
    why += " d4 instead would cost 2.0. Expect 1...e5 in 1 of 20 cases."
    assert text(browser, "#why") == why and "Where it begins." in text(browser, "#drill .note")
    press(browser, Keys.ENTER)  # and on, along the line
    assert text(browser, "#drill .line").replace("\xa0", " ") in ("1. e4 e5", "1. e4 c5")
    press(browser, Keys.TAB, Keys.TAB, Keys.ENTER)  # I do not know
    assert "No. The book plays Nf3" in text(browser, "#drill")
    assert "1 of 2 right" in text(browser, "#drill")
    # What is known is kept, and the next drill begins with what is not: the two others, from move 1.
    opened(browser, small_page)
    kept = json.loads(browser.execute_script("return localStorage.getItem('precomp-games drill')"))
    assert kept["version"] == 1 and len(kept["cards"]) == 2
    assert {card["side"] for card in kept["cards"]} == {"white"}
    assert chess.STARTING_FEN.startswith(kept["cards"][0]["epd"])
    press(browser, "d")
    assert "0 of 0 right · 2 of 3 positions known" in text(browser, "#drill")
    browser.find_element(By.CSS_SELECTOR, "#drill input[value=cost]").click()
    press(browser, Keys.ESCAPE)
    assert browser.find_element(By.ID, "here").is_displayed()
    browser.execute_script("localStorage.clear()")


@pytest.mark.browser
@pytest.mark.parametrize(
    "words",
    [["--", "0000", "?", "help", ""], ["Z0", "@@@@", "Ke2", "dxe5", "e2e5", "O-O", "0-0-0"]],
)
def test_what_is_no_move_is_no_answer(browser, tmp_path, words):
    each = small()
    first, *others = each.made.book.positions
    first = dataclasses.replace(first, others=((*uci("d2d4"), 0.02), (*uci("g1f3"), 0.031)))
    book = Book(each.made.book.start, each.made.book.side, [first, *others])
    page = written(tmp_path / "report.html", changed(each, book=book))
    opened(browser, page)
    browser.execute_script("localStorage.clear()")
    opened(browser, page)
    press(browser, "d")
    for word in words:
        press(browser, *[word] * bool(word), Keys.ENTER)
        told = f"“{word}” is no move here" if word else "Type a move, or say that you do not know"
        assert told in text(browser, "#drill .warn") and "0 of 0 right" in text(browser, "#drill")
    assert browser.execute_script("return localStorage.getItem('precomp-games drill')") is None
    press(browser, "Nf3", Keys.ENTER)  # a move, and known to be worse
    assert "No. The book plays e4" in text(browser, "#drill") and "0 of 1 right" in text(browser, "#drill")
    assert "d4 instead would cost 2.0. Nf3 instead would cost 3.1. Expect" in text(browser, "#why")
    browser.execute_script("localStorage.clear()")


def test_answers_on_the_page_are_legal_moves(tmp_path):
    """The answers that the page's drill accepts at each position are python-chess's legal moves."""
    squares = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    starts = [
        chess.STARTING_FEN,
        "r3k2r/pPp3p1/8/3pP3/1p6/8/P1P3pP/R3K2R w KQkq d6 0 1",
        "4k3/8/8/8/1b6/8/3N4/4K2R w K - 0 1",  # a pin
        "4r1k1/8/8/8/8/8/8/R3K2R w KQ - 0 1",  # a check, in which nobody castles
        "8/8/8/2k5/2pP4/8/8/4K3 b - d3 0 1",
    ]
    for fen in starts:
        board = chess.Board(fen)
        move = next(iter(board.legal_moves))
        book = Book(board, board.turn, [BookPosition((), (BookMove(move, 1.0),), 1.0, 0.1)])
        (data,) = data_of(page_of(tmp_path / "page.html", page_with(book, [0.1], 0.6, 0.5)))
        told = data["positions"][0]["legal"]
        pairs = {(squares.index(a), squares.index(b)) for a, b in zip(told[::2], told[1::2], strict=True)}
        assert pairs == {(each.from_square, each.to_square) for each in board.legal_moves}


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(390, 844), (360, 740), (390, 664)])
def test_a_drill_on_a_phone_shows_its_board(browser, person_page, width, height):
    """The whole board, the question and where to answer it, without scrolling, from anywhere on the page."""
    opened(browser, person_page)
    resize(browser, width, height)
    browser.execute_script("scrollTo(0, 600)")
    browser.execute_script("document.getElementById('drill-button').click()")
    for _ in range(2):
        ends = """return ['board', 'answer'].map((id) => {
                    const {top, bottom} = document.getElementById(id).getBoundingClientRect()
                    return [top, bottom]
                  })"""
        for top, bottom in browser.execute_script(ends):
            assert 0 <= top < bottom <= height
        press(browser, "e4", Keys.ENTER, Keys.ENTER)
    press(browser, Keys.ESCAPE, Keys.ESCAPE)
    assert browser.find_element(By.CSS_SELECTOR, ".tiles").is_displayed()
    browser.execute_script("localStorage.clear()")


@pytest.mark.browser
def test_a_browser_that_keeps_nothing_is_told_so(browser, small_page, tmp_path):
    outer = tmp_path / "outer.html"  # in such a frame localStorage raises
    outer.write_text(f'<iframe sandbox="allow-scripts" src="{small_page.as_uri()}"></iframe>')
    browser.get(outer.as_uri())
    browser.switch_to.frame(0)
    until(browser, lambda: browser.execute_script("return document.readyState") == "complete")
    browser.find_element(By.ID, "drill-button").click()
    assert "This browser keeps nothing." in text(browser, "#drill")
    browser.switch_to.default_content()


@pytest.mark.browser
def test_progress_from_a_file_is_not_trusted(browser, small_page, tmp_path):
    opened(browser, small_page)
    browser.execute_script("localStorage.clear()")
    opened(browser, small_page)
    press(browser, "d")
    card = {
        "side": "white",
        "epd": chess.Board().epd(),
        "stability": 9.0,
        "difficulty": 5.0,
        "reviewed": 1.8e12,
        "due": 1.9e12,
    }
    for number, cards in enumerate(
        [7, [card | {"stability": -1.0}], [card | {"side": "<b>"}], [card | {"epd": 7}], [[]]]
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"version": 1, "cards": cards}))
        browser.find_element(By.ID, "import").send_keys(str(path))
        until(browser, lambda: "no progress of a drill" in text(browser, "#drill"))
        press(browser, Keys.ESCAPE, "d")
    assert "0 of 3 positions known" in text(browser, "#drill")
    path = tmp_path / "good.json"
    path.write_text(json.dumps({"version": 1, "cards": [card]}))
    browser.find_element(By.ID, "import").send_keys(str(path))
    until(browser, lambda: "1 of 3 positions known" in text(browser, "#drill"))
    # What the browser has kept is looked at as well.
    browser.execute_script("localStorage.setItem('precomp-games drill', '{\"version\": 1, \"cards\": [{}]}')")
    opened(browser, small_page)
    press(browser, "d")
    assert "0 of 3 positions known" in text(browser, "#drill")
    browser.execute_script("localStorage.clear()")
