"""Pages of books in a browser: what is shown, what keys and the mouse do, and what the script computes."""

import dataclasses
import datetime
import importlib.resources
import json
import random

import chess
import chess.engine
import fsrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from precomp_games.chess import Book
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames
from precomp_games.chess.study.words import points
from tests.oracles import pages
from tests.oracles.chess_books import exits_of, random_book, uci
from tests.oracles.pages import opened, press, resize, shown_rows, text, texts, until, written
from tests.properties import examples

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser):
    """Return the browser, to whose console nothing may be written."""
    browser.get_log("browser")
    yield browser
    browser.execute_script("if (location.protocol == 'file:') localStorage.clear()")
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def small_page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("page") / "report.html", pages.small(), pages.small(chess.BLACK))


@pytest.fixture(scope="module")
def person_page(tmp_path_factory):
    """Return a book against a person, with an evaluation of its first position, and a guess."""
    each = pages.with_games(pages.small())
    known = {
        "settings": dataclasses.replace(each.made.settings, opponent="games(file=bob.pgn,player=Bob)"),
        "games": {uci("e2e4 e7e5"): each.made.games[uci("e2e4 e7e5")]},
        "evaluations": {(): chess.engine.PovScore(chess.engine.Cp(30), chess.WHITE)},
    }
    return written(tmp_path_factory.mktemp("page") / "report.html", pages.changed(each, **known, plots={}))


def enter(browser, name, value):
    """Set the value of an input at once."""
    browser.execute_script(
        "const [name, value] = arguments; const input = document.getElementById(name);"
        "input.value = value; input.dispatchEvent(new Event('input'))",
        name,
        value,
    )


def click(browser, selector):
    browser.find_element(By.CSS_SELECTOR, selector).click()


def count(browser, selector):
    return len(browser.find_elements(By.CSS_SELECTOR, selector))


def overflows(browser, width):
    """Return whether the page is wider than its window."""
    return browser.execute_script("return document.documentElement.scrollWidth") > width


def at(browser):
    """Return the moves of the line that is shown."""
    return " ".join(texts(browser, "#here .line button")).replace("\xa0", " ")


def rows(browser):
    """Each line that is shown: its moves, how often it comes up, its points, and what forgetting it costs."""
    found = []
    for row in shown_rows(browser):
        moves = [each.text for each in row.find_elements(By.CSS_SELECTOR, ".move") if each.is_displayed()]
        numbers = [row.find_element(By.CSS_SELECTOR, name).text for name in (".reach", ".score", ".worth")]
        found.append([" ".join(moves).replace("\xa0", " "), *numbers])
    return found


def shown_lines(browser):
    return [moves for moves, *_ in rows(browser)]


# -- what the script computes ------------------------------------------------------------------------------


def run(browser, modules, script, *arguments):
    """Run a script after some of the page's modules, and return its result."""
    folder = importlib.resources.files("precomp_games.chess.study").joinpath("report_page")
    source = "\n".join(folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in modules)
    return browser.execute_script(f"{source}\n{script}", *arguments)


@examples(40)
@given(st.booleans(), st.integers(0, 2**32))
def test_moves_on_the_page_lead_to_the_positions_of_python_chess(browser, usual, seed):
    start = chess.STARTING_FEN if usual else "r3k2r/pPp3p1/8/3pP3/1p6/8/P1P3pP/R3K2R w KQkq d6 0 1"
    rng, board, moves, fens = random.Random(seed), chess.Board(start), [], []
    while len(moves) < 60 and not board.is_game_over():
        move = rng.choice(sorted(board.legal_moves, key=chess.Move.uci))
        moves.append(move.uci())
        board.push(move)
        fens.append(" ".join(board.fen().split()[:2]))
    script = """const [start, line] = arguments
                let place = placed(start)
                return line.map((move) => fenOf(place = played(place, move)))"""
    assert run(browser, ["rules"], script, start, moves) == fens


@examples(60)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.3, 1.0, 4.5, 30.0, 400.0])), max_size=8))
def test_the_schedule_is_that_of_fsrs(browser, answers):
    scheduler = fsrs.Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
    card, now = fsrs.Card(), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    history, expected = [], []
    for right, days in answers:
        known = scheduler.get_card_retrievability(card, now)
        card, _ = scheduler.review_card(card, fsrs.Rating.Good if right else fsrs.Rating.Again, now)
        expected.append([known, card.stability, card.difficulty, card.due.timestamp() * 1000])
        history.append([now.timestamp() * 1000, right])
        now += datetime.timedelta(days=days)
    script = """let card = null
                return arguments[0].map(([now, right]) => {
                  const known = recall(card, now)
                  card = reviewed(card, right, now)
                  return [known, card.stability, card.difficulty, card.due]
                })"""
    found = run(browser, ["schedule"], script, history)
    assert found == [pytest.approx(row, rel=1e-9) for row in expected]


def test_points_are_written_as_by_our_words(page):
    values = [0.0, 0.734, 0.0996, 0.0994, 0.0142, 0.00996, 0.0035, -0.0035, -1e-7, 1.0, 0.005]
    script = "return arguments[0].map(points)"
    assert run(page, ["rules", "schedule", "tree"], script, values) == list(map(points, values))


# -- a book and its lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_opens_without_a_word_at_both_widths(width, small_page, page):
    opened(page, small_page, width)
    assert page.title == pages.SHORT and text(page, "h1") == pages.SHORT
    until(page, lambda: count(page, "#board [data-piece]") == 32)
    board = page.find_element(By.ID, "board").rect
    assert board["width"] > 270 and board["x"] >= 0 and board["x"] + board["width"] <= width
    assert text(page, ".summary .tiles").split("\n")[:2] == ["White learns", "3 positions"]
    for _ in range(6):  # every part of the page at every place of the book
        assert not overflows(page, width)
        press(page, Keys.ARROW_RIGHT)


# Costs seconds: a browser, key by key.
def test_moves_by_keys(small_page, page):
    opened(page, small_page)
    assert at(page) == "Start" and "We play e4" in text(page, "#here")
    assert [count(page, f".arrow-{of}") for of in ("own", "other")] == [1, 1]
    press(page, Keys.ARROW_RIGHT)
    replies = texts(page, "#here tbody tr")
    assert at(page) == "Start 1. e4" and len(replies) == 20 and all("5.0%" in reply for reply in replies)
    assert count(page, "[class*=arrow-reply]") == 20
    press(page, Keys.ARROW_RIGHT)
    assert at(page) in ("Start 1. e4 e5", "Start 1. e4 c5") and "We play Nf3" in text(page, "#here")
    for keys, moves, lines in (
        ([Keys.ARROW_LEFT, Keys.ARROW_LEFT], "Start", 2),
        ([Keys.ARROW_DOWN], "Start 1. e4 c5", 2),
        (["x", Keys.ARROW_UP], "Start", 1),  # side lines that are folded are not on the way
        ([Keys.ARROW_DOWN, Keys.ARROW_RIGHT, "2"], "Start 1. e4 c5", 2),
    ):
        press(page, *keys)
        assert (at(page), len(rows(page))) == (moves, lines)
    press(page, Keys.END)
    assert "The book ends here." in text(page, "#here") and at(page).count(" ") == 6
    press(page, Keys.HOME)
    assert at(page) == "Start"
    top = "return document.querySelector('#board .pieces [data-square=e8]').getBoundingClientRect().y"
    before = page.execute_script(top)
    press(page, "f")
    until(page, lambda: page.execute_script(top) > before + 100)
    press(page, "f", "f", "f", "b")
    assert text(page, ".summary:not([hidden]) .tiles").startswith("Black learns")
    assert "Our move" not in text(page, "#here") and count(page, "#here tbody tr") == 20
    for word, known in (("b--", "1 of 3"), ("+", "2 of 3")):
        press(page, *word)
        assert text(page, "#budget-text").startswith(known)


def test_moves_by_mouse(small_page, page):
    def square(name):
        return page.find_element(By.CSS_SELECTOR, f"#board .square[data-square={name}]")

    opened(page, small_page)
    ActionChains(page, duration=50).drag_and_drop(square("e2"), square("e4")).perform()
    until(page, lambda: at(page) == "Start 1. e4")
    for name in ("c7", "c5"):
        ActionChains(page, duration=50).click(square(name)).perform()
    until(page, lambda: at(page) == "Start 1. e4 c5")
    assert text(page, "#here .note") == "The Sicilian."
    # A move that the book does not have stays where it was, with a message.
    ActionChains(page, duration=50).click(square("a2")).perform()
    assert "in this book" in text(page, "#notice")
    for selector, moves in (
        ("#back", "Start 1. e4"),
        ("#here tr[data-move=e7e5] button", "Start 1. e4 e5"),
        (".move[data-position='2']", "Start 1. e4 c5"),
        ("#here .line button", "Start"),
    ):
        click(page, selector)
        assert at(page) == moves
    click(page, "#books button:nth-of-type(2)")
    buttons = page.find_elements(By.CSS_SELECTOR, "#books button")
    assert [each.get_attribute("aria-pressed") for each in buttons] == ["false", "true"]


def test_a_smaller_budget(small_page, page):
    opened(page, small_page)
    assert rows(page)[0] == ["1. e4 e5 2. Nf3", "100%", "80", "35"]
    enter(page, "budget", 2)
    assert text(page, "#budget-text") == "2 of 3 · 30 more points in 100 games"
    # Sicilians are left to what is worth less: all games lose what its gain was.
    assert rows(page) == [["1. e4 e5 2. Nf3", "100%", "75", "30"]]
    press(page, Keys.ARROW_RIGHT)
    click(page, "#here tr[data-move=c7c5] button")
    assert "Not in the best 2 positions" in text(page, "#here")
    enter(page, "budget", 0)
    assert rows(page) == [] and text(page, "#budget-text").startswith("0 of 3 · 0.00 more")
    assert "No position is learned yet" in text(page, "#nothing")
    # The curve, too, can be pointed at.
    curve = page.find_element(By.CSS_SELECTOR, "#curve svg")
    right = curve.size["width"] // 2 - 25
    ActionChains(page).move_to_element_with_offset(curve, right, 0).click().perform()
    assert text(page, "#budget-text").startswith("3 of 3")


def test_search_and_filters(small_page, page):
    opened(page, small_page)
    board = chess.Board("rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2")
    sicilian = ("1. e4 c5 2. Nf3", "e2e4 c7c5", "sicilian", board.fen(), board.board_fen())
    for words, found, first in (("Nf", 2, "e5"), *((words, 1, "c5") for words in sicilian)):
        enter(page, "search", words)
        assert text(page, "#count").startswith(f"{found} of 3"), words
        press(page, "/", Keys.ENTER)
        assert at(page).endswith(first), words
    for words in ("<script>", "\\", "d4 d5"):
        enter(page, "search", words)
        assert rows(page) == [] and "Fewer moves find more" in text(page, "#nothing"), words
    click(page, "#clear")
    press(page, "/", "e4 c5", Keys.ENTER)
    assert at(page) == "Start 1. e4 c5"
    press(page, "/", Keys.ESCAPE)
    assert shown_lines(page) == ["1. e4 e5 2. Nf3", "1… c5 2. Nf3"]
    for least in ("reach", "worth"):
        click(page, f'#min-{least} option[value="0.1"]')
        assert shown_lines(page) == ["1. e4"] and text(page, "#count") == "1 of 3 positions"
        click(page, f'#min-{least} option[value="0"]')


def test_keys_are_shown_and_colors_are_kept(small_page, page):
    opened(page, small_page)
    press(page, "?")
    assert "drill" in text(page, "#keys") and "no game has" not in text(page, "#keys")
    press(page, "f", Keys.ESCAPE)
    assert not page.find_element(By.ID, "keys").is_displayed()
    color = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(color)
    press(page, "t")
    dark = page.execute_script(color)
    assert dark != light and text(page, "#theme") == "Light"
    opened(page, small_page)
    assert page.execute_script(color) == dark
    click(page, "#theme")
    assert page.execute_script(color) == light
    click(page, "#glossary summary")
    assert texts(page, "#glossary dt")[:2] == ["point", "comes up"]


# -- against somebody --------------------------------------------------------------------------------------


def test_guesses_are_marked_and_can_be_hidden_beside_an_evaluation_bar_and_names(person_page, page):
    opened(page, person_page)
    assert "1 of 3 positions rests on guesses, with 14% of what the book adds" in text(page, ".tiles")
    assert shown_lines(page) == ["1. e4 e5 2. Nf3", "≈1… c5 2. Nf3"]
    assert text(page, "#evaluation") == "+0.3"
    press(page, Keys.ARROW_RIGHT, "g")  # the engine's score of its own move
    assert text(page, "#evaluation") == "+0.3" and text(page, "#here .opening") == "B00 King's Pawn Game"
    assert shown_lines(page) == ["1. e4 e5 2. Nf3"]
    assert count(page, "#here tr[data-move]") == 1 and "19 replies hidden" in text(page, "#here")
    click(page, "#no-guesses")
    assert count(page, "#here tr[data-move]") == 20
    click(page, "#here tr[data-move=c7c5] button")
    assert text(page, "#evaluation") == "–" and text(page, "#here .opening") == "B20 Sicilian Defense"
    assert all("a guess: never seen" in text(page, where) for where in ("#here", "#games"))


def test_a_book_against_people_shows_position_clock_coverage_and_traps(tmp_path, page):
    opened(page, written(tmp_path / "people.html", pages.against_people()))
    worth = "+35 points in 100 games by position, +1.0 on the clock, for 3 positions"
    assert texts(page, ".versus") == [f"Against players rated about 1500: {worth}"]
    tiles = text(page, ".tiles")
    assert "+35 by position" in tiles and "+1.0 on the clock" in tiles and "guess" not in tiles
    assert "Of 100 games 10 are still in the book at move 2" in tiles
    assert text(page, "#budget-text").endswith("35 more points in 100 games, by position")
    link = page.find_element(By.CSS_SELECTOR, ".traps a")
    assert link.text == (
        "After 1. e4, 5 of 100 play c5?, which gives you 40 points more in 100 games than their other moves: "
        "2. Nf3. It comes up in 5.0 of 100 games."
    )
    link.click()
    assert at(page) == "Start 1. e4 c5" and "We play Nf3" in text(page, "#here")


def test_replies_that_people_behind_a_persons_games_play_are_no_guesses(tmp_path, page):
    people = pages.against_people()
    behind = "games(file=bob.pgn,player=Bob,prior=human(rating=1640))"
    settings = dataclasses.replace(people.made.settings, opponent=behind)
    person = pages.changed(pages.with_games(people), settings=settings, games={}, plots={})
    opened(page, written(tmp_path / "person.html", person))
    assert text(page, ".versus").startswith("Bob with Black: 8 games")
    assert "2 of 3 positions rest on replies not in their games" in text(page, ".tiles")
    for message in ("In none of their games", "not in their games; people of their rating play it"):
        press(page, Keys.ARROW_RIGHT)
        assert message in text(page, "#games")
    assert text(page, "#guess-switch") == "hide replies not in their games"
    assert "guess" not in text(page, "main")


def test_games_and_plots_in_the_page(tmp_path, page, width=360):
    each = pages.changed(
        pages.with_games(pages.small()), plots={"Memory": pages.PLOT} | pages.hostile_plots()
    )
    opened(page, written(tmp_path / "a.html", each, pages.small(chess.BLACK)), width)
    assert not page.find_element(By.ID, "games").is_displayed()
    tiles = text(page, ".summary:not([hidden])")
    assert "none of 3 positions rests on guesses" in tiles and "Black: 8 games, 1990 to 1999" in tiles
    press(page, Keys.ARROW_RIGHT)
    shown = page.find_elements(By.CSS_SELECTOR, "#here tr.mark")
    marks = {each.get_attribute("data-behind"): each.text for each in shown}
    for reply, number in (("e7e5", 7), ("c7c5", 1)):
        assert marks.pop(reply) == f"seen in {number} of their games"
    assert set(marks.values()) == {"a guess: never seen"} and len(marks) == 18
    assert text(page, "#games h2") == "Replies in 8 games of theirs"
    assert texts(page, "#games li") == ["e5 Ann – Bob, 1999: 1–0", "e5 Carol <b> – Bob: ½–½"]
    assert text(page, "#games .small") == "and 6 older or undated"
    assert count(page, "#here tr[data-move]") == 20
    plots = page.find_elements(By.CSS_SELECTOR, ".plot img")
    assert sum(each.is_displayed() for each in plots) == 1 + len(pages.hostile_plots())
    assert page.execute_script("return arguments[0].complete && arguments[0].naturalWidth", plots[0])
    assert not overflows(page, width)
    assert page.execute_script("return window.hacked") is None


def test_a_game_is_played_through(person_page, page):
    opened(page, person_page)
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, "w")
    assert text(page, "#here .verdict") == "Ann – Bob, 1999: 1–0"
    assert at(page) == "Start 1. e4 e5 2. Nf3 Nc6"
    current = "#here .line [aria-current]"
    assert text(page, current) == "e5"  # where the board stood
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert text(page, current) == "Nc6"
    until(page, lambda: count(page, "#board .pieces [data-square=c6]") == 1)
    press(page, Keys.HOME)
    assert text(page, current) == "Start"
    press(page, Keys.ESCAPE)
    assert at(page) == "Start 1. e4 e5" and "We play Nf3" in text(page, "#here")


def test_a_sheet_to_print(person_page, page):
    opened(page, person_page)
    page.execute_script("dispatchEvent(new Event('beforeprint'))")
    sheet = page.find_element(By.ID, "sheet").get_attribute("textContent").replace("\xa0", " ")
    assert "Bob with Black: 8 games, 1990 to 1999" in sheet and "14 more points" not in sheet
    assert "1. e4 e5 2. Nf3" in sheet and "≈1… c5 2. Nf3" in sheet and "B20 Sicilian Defense" in sheet
    (board,) = page.find_elements(By.CSS_SELECTOR, "#sheet figure")
    assert board.get_attribute("textContent").replace("\xa0", " ") == "after 2. Nf3"
    assert not board.is_displayed()
    assert len(board.find_elements(By.CSS_SELECTOR, "use[href='#wn']")) == 2


def test_hostile_headers_and_comments_do_nothing(tmp_path, page):
    each, bad = pages.small(), pages.hostile()
    kinds = "script,style,iframe,form,img,base,link,meta,object,embed"
    elements = f"return document.querySelectorAll('{kinds}').length"
    plain = pages.with_texts(each, [f"text {k}" for k in range(len(bad))])
    usual = opened(page, written(tmp_path / "plain.html", plain)).execute_script(elements)
    path = written(tmp_path / "hostile.html", pages.with_texts(each, bad), title="".join(bad))
    controls = set("\u202e\u2066\u2067\u2068\u200f\u2028\u2029\x00\x1b\x07")
    assert not controls & set(path.read_text(encoding="utf-8"))
    opened(page, path)
    for _ in range(4):
        press(page, Keys.ARROW_RIGHT)
    page.execute_script(
        "for (const row of [...document.querySelectorAll('.row .move')]) { row.click();"
        "  for (const reply of [...document.querySelectorAll('#here tbody button')]) reply.click() }"
    )
    assert count(page, "#here") == 1 and page.execute_script(elements) == usual
    assert page.execute_script("return window.hacked") is None
    assert "<script>window.hacked=1</script>" in text(page, ".details .facts")
    assert not overflows(page, 1280)


# -- a drill -----------------------------------------------------------------------------------------------

KEPT = "return localStorage.getItem('precomp-games drill')"


# Costs seconds: a browser, question by question.
def test_a_drill_from_the_first_move(small_page, page):
    opened(page, small_page)
    press(page, "d")
    assert "White to move: what does the book play?" in text(page, "#drill")
    assert not page.find_element(By.CSS_SELECTOR, ".lines-card").is_displayed()
    press(page, "Ke5", Keys.ENTER)
    assert "“Ke5” is no move here" in text(page, "#drill")
    press(page, "e4", Keys.ENTER)
    assert "Right: e4" in text(page, "#drill") and "Where it begins." in text(page, "#drill .note")
    assert text(page, "#why") == (
        "It comes up in every game. Forgetting it costs 35 points in 100 games. d4 instead would cost 2.0. "
        "Expect 1...e5 in 1 of 20 cases."
    )
    press(page, Keys.ENTER)  # and on, along the line
    assert text(page, "#drill .line").replace("\xa0", " ") in ("1. e4 e5", "1. e4 c5")
    press(page, Keys.TAB, Keys.TAB, Keys.ENTER)  # I do not know
    assert "No. The book plays Nf3" in text(page, "#drill") and "1 of 2 right" in text(page, "#drill")
    # What is known is kept, and the next drill begins with what is not: the two others, from move 1.
    opened(page, small_page)
    kept = json.loads(page.execute_script(KEPT))
    assert kept["version"] == 1 and [card["side"] for card in kept["cards"]] == ["white"] * 2
    assert chess.STARTING_FEN.startswith(kept["cards"][0]["epd"])
    press(page, "d")
    assert "0 of 0 right · 2 of 3 positions known" in text(page, "#drill")
    click(page, "#drill input[value=cost]")
    press(page, Keys.ESCAPE)
    assert page.find_element(By.ID, "here").is_displayed()


def test_what_is_no_move_is_no_answer(page, tmp_path):
    each = pages.small()
    first, *others = each.made.book.positions
    first = dataclasses.replace(first, others=((*uci("d2d4"), 0.02), (*uci("g1f3"), 0.031)))
    book = Book(each.made.book.start, each.made.book.side, [first, *others])
    opened(page, written(tmp_path / "report.html", pages.changed(each, book=book)))
    press(page, "d")
    for word in ("--", "0000", "?", "help", "", "Z0", "@@@@", "Ke2", "dxe5", "e2e5", "O-O", "0-0-0"):
        press(page, *[word] * bool(word), Keys.ENTER)
        message = f"“{word}” is no move here" if word else "Type a move, or say that you do not know"
        assert message in text(page, "#drill .warn") and "0 of 0 right" in text(page, "#drill")
    assert page.execute_script(KEPT) is None
    press(page, "Nf3", Keys.ENTER)  # a move, and known to be worse
    assert "No. The book plays e4" in text(page, "#drill") and "0 of 1 right" in text(page, "#drill")
    assert "d4 instead would cost 2.0. Nf3 instead would cost 3.1. Expect" in text(page, "#why")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (360, 740), (390, 664)])
def test_a_drill_on_a_phone_shows_its_board(person_page, page, width, height):
    """The whole board, the question and where to answer it, without scrolling, from anywhere on the page."""
    opened(page, person_page)
    resize(page, width, height)
    page.execute_script("scrollTo(0, 600); document.getElementById('drill-button').click()")
    for _ in range(2):
        ends = """return ['board', 'answer'].map((id) => {
                    const {top, bottom} = document.getElementById(id).getBoundingClientRect()
                    return [top, bottom]
                  })"""
        for top, bottom in page.execute_script(ends):
            assert 0 <= top < bottom <= height
        press(page, "e4", Keys.ENTER, Keys.ENTER)
    press(page, Keys.ESCAPE, Keys.ESCAPE)
    assert page.find_element(By.CSS_SELECTOR, ".tiles").is_displayed()


def test_the_page_says_that_the_browser_keeps_nothing(page, small_page, tmp_path):
    outer = tmp_path / "outer.html"  # in such a frame localStorage raises
    outer.write_text(f'<iframe sandbox="allow-scripts" src="{small_page.as_uri()}"></iframe>')
    page.get(outer.as_uri())
    page.switch_to.frame(0)
    until(page, lambda: page.execute_script("return document.readyState") == "complete")
    click(page, "#drill-button")
    assert "This browser keeps nothing." in text(page, "#drill")
    page.switch_to.default_content()


def test_progress_from_a_file_or_the_browser_is_not_trusted(page, small_page, tmp_path):
    def imported(cards):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"version": 1, "cards": cards}))
        page.find_element(By.ID, "import").send_keys(str(path))

    opened(page, small_page)
    press(page, "d")
    card = {"side": "white", "epd": chess.Board().epd(), "stability": 9.0, "difficulty": 5.0}
    card |= {"reviewed": 1.8e12, "due": 1.9e12}
    for wrong in (7, [card | {"stability": -1.0}], [card | {"side": "<b>"}], [card | {"epd": 7}], [[]]):
        imported(wrong)
        until(page, lambda: "no progress of a drill" in text(page, "#drill"))
        press(page, Keys.ESCAPE, "d")
    assert "0 of 3 positions known" in text(page, "#drill")
    imported([card])
    until(page, lambda: "1 of 3 positions known" in text(page, "#drill"))
    page.execute_script("localStorage.setItem('precomp-games drill', '{\"version\": 1, \"cards\": [{}]}')")
    opened(page, small_page)
    press(page, "d")
    assert "0 of 3 positions known" in text(page, "#drill")


@pytest.mark.slow("how long a large page takes")
def test_a_page_of_five_hundred_positions_opens_in_a_second(tmp_path, page):
    rng, book = random.Random(0), random_book(1, chess.WHITE, chess.Board(), 500)
    exits = exits_of(book)
    moves = uci("g1f3 g8f6 f3g1 f6g8 " * 25)
    pool = [PlayedGame(f"Name, {k}", f"Other, {k}", k, "1-0", moves) for k in range(1500, 2000)]
    games = {exit.history: ReplyGames(9, tuple(rng.sample(pool, 5))) for exit in exits}
    each = pages.page_with(
        book, [0.001] * 500, 0.9, 0.4, exits=exits, games=games, person=Person("Other", 500)
    )
    path = written(tmp_path / "a.html", each)
    assert path.stat().st_size < 1_000_000
    seconds = []
    for _ in range(3):
        opened(page, path)
        spent = "const [n] = performance.getEntriesByType('navigation'); return n.loadEventEnd - n.startTime"
        seconds.append(page.execute_script(spent) / 1000)
        assert count(page, ".move") == 500
    assert min(seconds) < 1.0
    for budget in (10, 250, 499):
        enter(page, "budget", budget)
        assert text(page, "#count") == f"{budget} positions"
