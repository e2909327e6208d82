"""Pages of books: what is written, and what a browser makes of it."""

import base64
import dataclasses
import random
import re
import time

import chess
import chess.engine
import chess.pgn
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from precomp_games.chess import (
    Book,
    BookPage,
    Preparation,
    action_of,
    book_exits,
    write_exports,
    write_report,
)
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames
from precomp_games.chess.plan.preparation import Neighbor
from precomp_games.chess.study.page import ReportMatch
from tests.oracles.chess_books import random_book, small_book, uci
from tests.oracles.pages import (
    PLOT,
    SHORT,
    against_people,
    changed,
    data_of,
    opened,
    page_of,
    page_with,
    press,
    shown_rows,
    small,
    text,
    texts,
    until,
    written,
)

LONG = (
    "h2h4 d7d5 e2e4 g8f6 a2a4 g7g5 g2g4 f6h5 e4e5 f8g7 a1a3 c8e6 a3g3 g7e5 g3g2 e5d4 f1b5 e6d7 b2b3 d4f6 "
    "a4a5 h5g7 c1b2 e8g8 b5e2 d7c8 f2f4 c8f5 b2a3 d5d4 h1h2 d4d3 a3d6 a7a6 h4h5 a8a7 d1c1 d8e8 d6b4 e7e6 "
    "c1b2 e8a4 b4c3 f8e8 h5h6 a7a8 b3a4 g5f4 c3d4 e8e7 d4e3 a8a7 e2f1 f5e4 b2c1 g8f8 c1d1 e4c6 c2c3 c6f3 "
    "e3b6 f6g5 g1h3 a7a8 g2g1 g5f6 h2f2 f3d1 b6c5 d1e2 f1g2 e2g4 g1f1 g7f5 f1g1 c7c6 g1f1 f6e5 h3g5 e5c7 "
)


def replies_to(book):
    """Return an opponent who plays what the book has an answer to, and two other moves."""
    known = {}
    for position in book.positions:
        known.setdefault(position.history[:-1], []).append(position.history[-1:])

    def replies(state):
        legal = state.legal_actions()
        own = [action_of(move) for (move,) in filter(None, known.get(tuple(state.moves()), ()))]
        actions = [*own, *[action for action in legal if action not in own][:2]]
        return dict.fromkeys(actions, 1.0 / len(actions))

    return replies


ANN = PlayedGame("Ann", "Bob", 1999, "1-0", uci("e2e4 e7e5 g1f3 b8c6"))


def with_games(each):
    """Return the page's book with games behind replies, and a plot."""
    known = {
        uci("e2e4 e7e5"): ReplyGames(7, (ANN, PlayedGame("Carol <b>", "Bob", None, "1/2-1/2"))),
        uci("e2e4 c7c5"): ReplyGames(1, (ANN,)),
    }
    person = Person("Bob", 8, 1990, 1999)
    return changed(each, games=known, person=person, plots={"What memory is worth": PLOT})


@pytest.fixture(scope="module")
def small_page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("page") / "report.html", small(), small(chess.BLACK))


# -- without a browser -------------------------------------------------------------------------------------


def test_the_same_books_give_the_same_bytes(tmp_path):
    assert page_of(tmp_path / "a.html", small()) == page_of(tmp_path / "b.html", small())


def test_the_page_has_all_that_it_needs_and_asks_for_nothing(small_page):
    page = small_page.read_text(encoding="utf-8")
    assert "unsafe" not in page.partition("<style>")[0] and "default-src &#39;none&#39;" in page
    addresses = set(re.findall(r"https?://([\w.-]+)", page))
    # Where the board and its pieces come from, and names that XML has; nothing of it is loaded.
    wikimedia = {"commons.wikimedia.org", "creativecommons.org", "en.wikipedia.org"}
    assert addresses <= {"github.com", "medium.com", "shaack.com", "www.w3.org"} | wikimedia
    assert not re.search(r"\b(src|href)=\"(?!data:|#)", page.replace("xlink:href", ""))
    assert "sourceMappingURL" not in page and "CC BY-SA 3.0" in page
    assert not re.search(r"^(import|export)\b", page, re.MULTILINE)


def test_numbers_of_the_page_are_those_of_the_book(tmp_path):
    each = small()
    (data,) = data_of(page_of(tmp_path / "a.html", each))
    assert data["curve"] == pytest.approx([0.45, 0.65, 0.75, 0.8]) and data["price"] == pytest.approx(0.001)
    assert [row["reach"] for row in data["positions"]] == [1.0, 0.05, 0.05]
    nodes = data["nodes"]
    masses, values = nodes["mass"], nodes["value"]
    assert masses[0] == pytest.approx(1.0) and values[0] == pytest.approx(0.8)
    boards = [chess.Board(data["start"])]
    for number, parent in enumerate(nodes["parent"][1:], start=1):
        board = boards[parent].copy()
        assert (
            parent < number
            and board.san_and_push(chess.Move.from_uci(nodes["uci"][number])) == (nodes["san"][number])
        )
        boards.append(board)
        below = [mass for mass, above in zip(masses, nodes["parent"], strict=True) if above == number]
        assert not below or masses[number] == pytest.approx(sum(below))
    assert [data["positions"][k]["epd"] for k in nodes["position"].values()] == [
        boards[int(number)].epd() for number in nodes["position"]
    ]
    assert len(each.made.exits) == len(nodes["exit"])
    assert list(nodes["played"].values()) == [[7, 0.5]]
    assert set(nodes["note"].values()) == {"Where it begins.", "The Sicilian."}
    assert nodes["name"]["1"] == "B00 King's Pawn Game"


@pytest.mark.parametrize("name", ["x" * 1_000_000, "a\u202eb", "a\ud800b", "a\x1b[31m\x00"])
def test_no_text_is_shown_as_it_came(name, tmp_path):
    """A megabyte of it, one that turns what follows, one that no file can hold, one that a terminal obeys."""
    each = with_games(small())
    texts = {
        "engines": (name, name),
        "expect": name,
        "person": Person(name, 1),
        "neighbors": [Neighbor(name, 2, 0.5, 0.5, 0.1)],
        "notes": {(): name},
        "matches": [ReportMatch(name, 3, 10, 0.5, 0.2, 0.8)],
        "games": {uci("e2e4 e7e5"): ReplyGames(1, (PlayedGame(name, name, 1, name),))},
        "plots": {name: PLOT},
    }
    settings = dataclasses.replace(each.made.settings, opponent="")
    each = changed(each, settings=settings, **texts)
    page = page_of(tmp_path / "a.html", each, title=name)
    write_exports(tmp_path, [each], title=name)
    for path in tmp_path.glob("*.*"):
        text = path.read_bytes()
        assert len(text) < 1_000_000 and not any(bad.encode() in text for bad in ("\u202e", "x" * 2001)), path
    assert data_of(page)[0]["opponent"].split(" (1,000")[0] in ("x" * 79 + "…", "ab", "a[31m")


def test_traps_are_written_beside_a_book_against_people(tmp_path):
    against_people().made.write(tmp_path)
    with (tmp_path / "traps.pgn").open() as file:
        game = chess.pgn.read_game(file)
        assert chess.pgn.read_game(file) is None
    assert game.board().variation_san(game.mainline_moves()) == "1. e4 c5 2. Nf3"
    assert Preparation.read(tmp_path).traps == against_people().made.traps
    other = tmp_path / "other"
    other.mkdir()
    small().made.write(other)
    assert not (other / "traps.pgn").exists()


def test_games_behind_replies_are_told_once(tmp_path):
    (data,) = data_of(page_of(tmp_path / "a.html", with_games(small())))
    assert data["games"] == [
        ["Ann", "Bob", 1999, "1-0", "e4 e5 Nf3 Nc6", "Mc0kGV5q"],
        ["Carol <b>", "Bob", None, "1/2-1/2", "", ""],
    ]
    moves = data["nodes"]["uci"]
    assert {moves[int(number)]: games for number, games in data["nodes"]["games"].items()} == {
        "e7e5": [7, 0, 1],
        "c7c5": [1, 0],
    }


def test_moves_of_games_are_told_as_far_as_they_are_legal(tmp_path):
    game = dataclasses.replace(ANN, moves=uci("e2e4 e7e5 e4e5 g8f6"))
    each = changed(with_games(small()), games={uci("e2e4 e7e5"): ReplyGames(1, (game,))})
    (data,) = data_of(page_of(tmp_path / "a.html", each))
    assert data["games"][0][4:] == ["e4 e5", "Mc0k"]


def test_what_rests_on_guesses_stands_at_the_top(tmp_path):
    each = with_games(small())
    assert "none of 3 positions rests on guesses" in page_of(tmp_path / "a.html", each)
    fewer = changed(each, games={uci("e2e4 c7c5"): each.made.games[uci("e2e4 c7c5")]})
    assert "1 of 3 positions rests on guesses, with 29% of what the book adds" in page_of(
        tmp_path / "b.html", fewer
    )
    assert "on guesses, with" not in page_of(tmp_path / "c.html", small())
    assert "anybody with Black: 8 games, 1990 to 1999" in page_of(tmp_path / "d.html", each)


def plots_of(page):
    return "".join(re.findall(r'<figure class="plot">.*?</figure>', page, re.DOTALL))


def pictures_of(page):
    return [
        base64.b64decode(each).decode()
        for each in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    ]


def test_a_plot_is_a_picture(tmp_path):
    page = page_of(tmp_path / "a.html", with_games(small()))
    assert 'alt="What memory is worth"' in plots_of(page) and pictures_of(page) == [PLOT]


HOSTILE_SVG = [
    "<script>window.hacked=1</script>",
    "<g onload='window.hacked=1' onclick='window.hacked=1'/>",
    "<a xlink:href='javascript:window.hacked=1'><text>x</text></a>",
    "<use xlink:href='https://example.org/a.svg#x'/>",
    "<use href='//example.org#x'/>",
    "<image href='https://example.org/a.png'/>",
    "<foreignObject><b xmlns='http://www.w3.org/1999/xhtml'><script>window.hacked=1</script></b></foreignObject>",
    "<rect fill='url(https://example.org#x)' style='stroke: url(//example.org); mask: url(//a)'/>",
    "<animate attributeName='href' to='javascript:window.hacked=1'/><set attributeName='onload' to='x'/>",
    "<style>@import url(//example.org);</style>",
    "<text>&lt;/text&gt;&lt;script&gt;window.hacked=1&lt;/script&gt;</text>",
    "<rect id='x&quot; onload=&quot;window.hacked=1' d='&quot;&gt;&lt;script&gt;'/>",
    "<title>&lt;/svg&gt;&lt;script&gt;window.hacked=1&lt;/script&gt;</title>",
    "<!-- --><?php x?><![CDATA[<script>window.hacked=1</script>]]>",
    "<g>" * 500 + "<rect/>" + "</g>" * 500,
]


def hostile_plots():
    return {f"{k}<script>": PLOT.replace("</svg>", f"{bad}</svg>") for k, bad in enumerate(HOSTILE_SVG)}


def test_plots_from_outside_are_pictures(tmp_path):
    page = page_of(tmp_path / "a.html", changed(small(), plots=hostile_plots()))
    assert pictures_of(page) == list(hostile_plots().values())
    named = set(re.findall(r"<([a-zA-Z]+)", plots_of(page)))
    assert named == {"figure", "figcaption", "bdi", "div", "img"}
    assert (
        "example.org" not in page and "javascript:" not in page and not re.search(r"\son\w+=", plots_of(page))
    )


def test_books_without_exits_and_without_positions(tmp_path):
    empty = page_with(Book(chess.Board(), chess.BLACK, []), [], 0.5, 0.5)
    bare = page_with(small_book(), [0.1] * 4, 0.9, 0.5)
    first, second = data_of(page_of(tmp_path / "a.html", empty, bare))
    assert first["curve"] == [0.5] and first["nodes"]["mass"] == [0.0]
    assert len(second["positions"]) == 4 and set(second["nodes"]["value"]) == {None}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((field.name, ...) for field in dataclasses.fields(BookPage)),
        *((name, [...]) for name in ("matches", "sizes")),
        *((name, {(): ...}) for name in ("notes", "plots")),
        ("sizes", [(1, 1.5)]),
        ("plots", {"Unreadable": "<svg"}),
        ("plots", {"Without a size": "<svg/>"}),
        ("plots", {"With an entity": PLOT.replace("<svg", '<!DOCTYPE s [<!ENTITY a "b">]><svg')}),
        ("plots", {"Too large": PLOT + " " * (1 << 20)}),
    ],
)
def test_books_that_cannot_be_shown(name, wrong, tmp_path):
    with pytest.raises(ValueError, match=rf"^(BookPage|write_report)\(\): expected .*(books|{name})"):
        write_report(tmp_path / "a.html", [dataclasses.replace(small(), **{name: wrong})])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "wrong"), [("score", "0.5"), ("player", 5), ("games", -1)])
def test_matches_that_cannot_be_shown(name, wrong):
    with pytest.raises(ValueError, match=rf"^ReportMatch\(\): expected {name} to be "):
        dataclasses.replace(small().matches[0], **{name: wrong})


# -- in a browser ------------------------------------------------------------------------------------------


@pytest.fixture
def browser(browser):
    """Nothing is written to its console."""
    yield browser
    assert browser.get_log("browser") == []


def pick(browser, selector, value):
    browser.find_element(By.CSS_SELECTOR, f'{selector} option[value="{value}"]').click()


def enter(browser, name, value):
    """Set the value of an input at once."""
    browser.execute_script(
        "const [name, value] = arguments; const input = document.getElementById(name);"
        "input.value = value; input.dispatchEvent(new Event('input'))",
        name,
        value,
    )


def overflows(browser, width):
    """Return whether the page is wider than its window."""
    return browser.execute_script("return document.documentElement.scrollWidth") > width


def line(browser):
    return [each.replace("\xa0", " ") for each in texts(browser, "#here .line button")]


def rows(browser):
    """Each line that is shown: its moves, how often it comes up, its points, and what forgetting it costs."""
    found = []
    for row in shown_rows(browser):
        moves = [each.text for each in row.find_elements(By.CSS_SELECTOR, ".move") if each.is_displayed()]
        numbers = [row.find_element(By.CSS_SELECTOR, name).text for name in (".reach", ".score", ".worth")]
        found.append([" ".join(moves).replace("\xa0", " "), *numbers])
    return found


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_opens_without_a_word_at_both_widths(width, small_page, browser):
    opened(browser, small_page, width)
    assert browser.title == SHORT and text(browser, "h1") == SHORT
    assert not overflows(browser, width)
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "#board [data-piece]")) == 32)
    board = browser.find_element(By.ID, "board").rect
    assert board["width"] > 270 and board["x"] >= 0 and board["x"] + board["width"] <= width
    assert text(browser, ".summary .tiles").split("\n")[:2] == ["White learns", "3 positions"]
    # Every part of the page at every place of the book.
    for _ in range(5):
        press(browser, Keys.ARROW_RIGHT)
        assert not overflows(browser, width)


@pytest.mark.browser
# Costs seconds: a browser, key by key.
def test_moves_by_keys(small_page, browser):
    opened(browser, small_page)
    assert line(browser) == ["Start"] and "We play e4" in text(browser, "#here")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".arrow-own")) == 1
    assert len(browser.find_elements(By.CSS_SELECTOR, ".arrow-other")) == 1
    press(browser, Keys.ARROW_RIGHT)
    assert line(browser) == ["Start", "1. e4"]
    replies = texts(browser, "#here tbody tr")
    assert len(replies) == 20 and all("5.0%" in reply for reply in replies)
    assert len(browser.find_elements(By.CSS_SELECTOR, "[class*=arrow-reply]")) == 20
    press(browser, Keys.ARROW_RIGHT)
    assert line(browser)[-1] in ("e5", "c5") and "We play Nf3" in text(browser, "#here")
    press(browser, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert line(browser) == ["Start"]
    press(browser, Keys.ARROW_DOWN)
    assert line(browser) == ["Start", "1. e4", "c5"]
    press(browser, "x", Keys.ARROW_UP)  # side lines that are folded are not on the way
    assert line(browser) == ["Start"] and len(rows(browser)) == 1
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, "2")
    assert line(browser) == ["Start", "1. e4", "c5"] and len(rows(browser)) == 2
    press(browser, Keys.END)
    assert "The book ends here." in text(browser, "#here") and len(line(browser)) == 5
    press(browser, Keys.HOME)
    assert line(browser) == ["Start"]
    top = "return document.querySelector('#board .pieces [data-square=e8]').getBoundingClientRect().y"
    before = browser.execute_script(top)
    press(browser, "f")
    until(browser, lambda: browser.execute_script(top) > before + 100)
    press(browser, "f", "f", "f", "b")
    assert text(browser, ".summary:not([hidden]) .tiles").startswith("Black learns")
    assert "Our move" not in text(browser, "#here") and len(texts(browser, "#here tbody tr")) == 20
    press(browser, "b", "-", "-")
    assert text(browser, "#budget-text").startswith("1 of 3")
    press(browser, "+")
    assert text(browser, "#budget-text").startswith("2 of 3")


def square(browser, name):
    return browser.find_element(By.CSS_SELECTOR, f"#board .square[data-square={name}]")


@pytest.mark.browser
def test_moves_by_mouse(small_page, browser):
    opened(browser, small_page)
    drag = ActionChains(browser, duration=50)
    drag.move_to_element(square(browser, "e2")).click_and_hold().move_to_element(square(browser, "e4"))
    drag.release().perform()
    until(browser, lambda: line(browser) == ["Start", "1. e4"])
    for name in ("c7", "c5"):
        ActionChains(browser, duration=50).move_to_element(square(browser, name)).click().perform()
    until(browser, lambda: line(browser) == ["Start", "1. e4", "c5"])
    assert text(browser, "#here .note") == "The Sicilian."
    # A move that the book does not have stays where it was, with a message.
    ActionChains(browser, duration=50).move_to_element(square(browser, "a2")).click().perform()
    assert "not in this book" in text(browser, "#said") or "in this book" in text(browser, "#said")
    browser.find_element(By.ID, "back").click()
    assert line(browser) == ["Start", "1. e4"]
    browser.find_element(By.CSS_SELECTOR, "#here tr[data-move=e7e5] button").click()
    assert line(browser)[-1] == "e5"
    browser.find_element(By.CSS_SELECTOR, ".move[data-position='2']").click()
    assert line(browser)[-1] == "c5"
    browser.find_element(By.CSS_SELECTOR, "#here .line button").click()
    assert line(browser) == ["Start"]
    browser.find_elements(By.CSS_SELECTOR, "#books button")[1].click()
    assert browser.find_elements(By.CSS_SELECTOR, "#books button")[1].get_attribute("aria-pressed") == "true"


@pytest.mark.browser
def test_a_smaller_budget(small_page, browser):
    opened(browser, small_page)
    assert rows(browser)[0] == ["1. e4 e5 2. Nf3", "100%", "80", "35"]
    enter(browser, "budget", 2)
    assert text(browser, "#budget-text") == "2 of 3 · 30 more points in 100 games"
    # Sicilians are left to what is worth less: all games lose what its gain was.
    assert rows(browser) == [["1. e4 e5 2. Nf3", "100%", "75", "30"]]
    press(browser, Keys.ARROW_RIGHT)
    browser.find_element(By.CSS_SELECTOR, "#here tr[data-move=c7c5] button").click()
    assert "Not in the best 2 positions" in text(browser, "#here")
    enter(browser, "budget", 0)
    assert rows(browser) == [] and text(browser, "#budget-text").startswith("0 of 3 · 0.00 more")
    assert "No position is learned yet" in text(browser, "#nothing")
    # The curve, too, can be pointed at.
    curve = browser.find_element(By.CSS_SELECTOR, "#curve svg")
    ActionChains(browser).move_to_element_with_offset(
        curve, curve.size["width"] // 2 - 25, 0
    ).click().perform()
    assert text(browser, "#budget-text").startswith("3 of 3")


@pytest.mark.browser
def test_search_and_filters(small_page, browser):
    opened(browser, small_page)
    sicilian, open_game = "1… c5 2. Nf3", "1. e4 e5 2. Nf3"
    board = chess.Board("rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2")
    for words, found, first in (
        ("1. e4 c5 2. Nf3", 1, "c5"),
        ("e2e4 c7c5", 1, "c5"),
        ("Nf", 2, "e5"),
        ("sicilian", 1, "c5"),
        (board.fen(), 1, "c5"),
        (board.board_fen(), 1, "c5"),
    ):
        enter(browser, "search", words)
        assert text(browser, "#count").startswith(f"{found} of 3"), words
        press(browser, "/", Keys.ENTER)
        assert line(browser)[-1] == first, words
    for words in ("<script>", "\\", "d4 d5"):
        enter(browser, "search", words)
        assert rows(browser) == [] and "Fewer moves find more" in text(browser, "#nothing"), words
    browser.find_element(By.ID, "clear").click()
    assert [row[0] for row in rows(browser)] == [open_game, sicilian]
    press(browser, "/", "e4 c5", Keys.ENTER)
    assert line(browser) == ["Start", "1. e4", "c5"]
    press(browser, "/", Keys.ESCAPE)
    assert len(rows(browser)) == 2
    pick(browser, "#min-reach", "0.1")
    assert [row[0] for row in rows(browser)] == ["1. e4"] and text(browser, "#count") == "1 of 3 positions"
    pick(browser, "#min-reach", "0")
    pick(browser, "#min-worth", "0.1")
    assert [row[0] for row in rows(browser)] == ["1. e4"]


@pytest.mark.browser
def test_games_and_plots_in_the_page(tmp_path, browser, width=360):
    hostile_book = changed(with_games(small()), plots={"Memory": PLOT} | hostile_plots())
    opened(browser, written(tmp_path / "a.html", hostile_book, small(chess.BLACK)), width)
    assert not browser.find_element(By.ID, "games").is_displayed()
    press(browser, Keys.ARROW_RIGHT)
    marks = {
        each.get_attribute("data-behind"): each.text
        for each in browser.find_elements(By.CSS_SELECTOR, "#here tr.mark")
    }
    assert marks.pop("e7e5") == "seen in 7 of their games"
    assert marks.pop("c7c5") == "seen in 1 of their games"
    assert set(marks.values()) == {"a guess: never seen"} and len(marks) == 18
    assert text(browser, "#games h2") == "Replies in 8 games of theirs"
    assert texts(browser, "#games li") == ["e5 Ann – Bob, 1999: 1–0", "e5 Carol <b> – Bob: ½–½"]
    assert text(browser, "#games .small") == "and 6 older or undated"
    assert len(texts(browser, "#here tr[data-move]")) == 20
    plots = [each for each in browser.find_elements(By.CSS_SELECTOR, ".plot img") if each.is_displayed()]
    assert len(plots) == 1 + len(HOSTILE_SVG)
    drawn = (
        "return [...document.querySelectorAll('.plot img')].map((each) => each.complete && each.naturalWidth)"
    )
    assert all(browser.execute_script(drawn)[:1])
    assert not overflows(browser, width)
    assert browser.execute_script("return window.hacked") is None


def hostile():
    """Texts that would do something in a page that takes them for more than text."""
    run = "window.hacked=1"
    return [
        *(f"{end}<script>{run}</script>" for end in ("", "</script>", "</title>", "</style>", "</bdi></h1>")),
        *(f"{end}<img src=x onerror={run}>" for end in ("", '">', "'>", "-->", "]]>")),
        *(f"{quote} autofocus onfocus={quote}{run}" for quote in "'\""),
        *(f"<svg onload={run}>", f"<a href=javascript:{run}>x</a>", f"<!--<script>{run}//-->"),
        *("<base href=//example.org>", "<meta http-equiv=refresh content=0>", "<object data=x>"),
        *("<form action=//example.org><input name=x autofocus>", "<iframe srcdoc=x>"),
        *("<template>", "<plaintext>", "<textarea>", "<noscript>", "<style>*{display:none}</style>"),
        *("&lt;script&gt;", "&amp;lt;", "{{7*7}}", "{% raw %}", "\\u003cscript\\u003e"),
        *("__proto__", "constructor"),
        *("\u202etxet desrever", "\u2066\u2067\u200f\u200e\u061c\ufeff", "\u2028\u2029\x85"),
        *("a\x00b\x1b[31m\x07", "\ud7ff\U0010ffff\ufffe", "x" * 100_000),
    ]


@pytest.mark.browser
def test_hostile_headers_and_comments_do_nothing(tmp_path, browser):
    each = small()
    bad = hostile()
    exits = [exit.history for exit in each.made.exits]
    hostile_book = changed(
        each,
        settings=dataclasses.replace(each.made.settings, opponent=""),
        engines=(bad[0] + bad[6], bad[2] + bad[4] + bad[5]),
        expect=bad[1] + bad[7],
        person=Person(bad[3], 3),
        neighbors=[Neighbor(name, 2, 0.5, 0.5, 0.1) for name in bad],
        notes=dict(zip(exits, bad, strict=False)) | {(): "".join(bad)},
        matches=[ReportMatch(name, 3, 10, 0.5, 0.2, 0.8) for name in bad],
        games={
            uci("e2e4 e7e5"): ReplyGames(len(bad), tuple(PlayedGame(name, name, 1, name) for name in bad))
        },
    )
    plain = opened(browser, written(tmp_path / "plain.html", each))
    elements = (
        "return document.querySelectorAll('script,style,iframe,form,img,base,link,meta,object,embed').length"
    )
    usual = plain.execute_script(elements)
    page = written(tmp_path / "hostile.html", hostile_book, title="".join(bad))
    controls = set("\u202e\u2066\u2067\u2068\u200f\u2028\u2029\x00\x1b\x07")
    assert not controls & set(page.read_text(encoding="utf-8"))
    opened(browser, page)
    for _ in range(4):
        press(browser, Keys.ARROW_RIGHT)
    browser.execute_script(
        "for (const row of [...document.querySelectorAll('.row .move')]) { row.click();"
        "  for (const reply of [...document.querySelectorAll('#here tbody button')]) reply.click() }"
    )
    assert len(browser.find_elements(By.ID, "here")) == 1 and browser.execute_script(elements) == usual
    assert browser.execute_script("return window.hacked") is None
    facts = texts(browser, ".details .facts dd")
    assert "<script>window.hacked=1</script>" in facts[1] and len(facts) == 4
    assert not overflows(browser, 1280)


@pytest.mark.browser
@pytest.mark.slow("how long a large page takes")
def test_five_hundred_positions(tmp_path, browser):
    book = random_book(1, chess.WHITE, chess.Board(), 500)
    rng = random.Random(0)
    gains = [rng.random() / 1000 for _ in range(500)]
    exits = book_exits(book, replies_to(book), lambda state: 0.7)
    assert len(book) == 500 and len(exits) > 500
    moves = uci(LONG)
    pool = [
        PlayedGame(f"Surname, First {k}", f"Other, Second {k}", 1900 + k % 120, "1-0", moves)
        for k in range(500)
    ]
    each = page_with(
        book,
        gains,
        0.4 + sum(gains),
        0.4,
        exits=exits,
        games={exit.history: ReplyGames(9, tuple(rng.sample(pool, 5))) for exit in exits},
        person=Person("Other, Second", 500, 1900, 2019),
        plots={"What memory is worth": PLOT},
    )
    began = time.process_time()
    page = written(tmp_path / "a.html", each)
    assert time.process_time() - began < 20.0 and page.stat().st_size < 1_000_000
    seconds = []
    for _ in range(3):
        opened(browser, page)
        spent = "const [n] = performance.getEntriesByType('navigation'); return n.loadEventEnd - n.startTime"
        seconds.append(browser.execute_script(spent) / 1000)
        assert len(browser.find_elements(By.CSS_SELECTOR, ".move")) == 500
    assert min(seconds) < 1.0
    for budget in (10, 250, 499):
        enter(browser, "budget", budget)
        assert text(browser, "#count") == f"{budget} positions"
