"""Pages of books, and what a browser shows of a page."""

import dataclasses
import functools
import json
import pathlib
import re

import chess
import chess.engine
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from precomp_games.chess import (
    Book,
    BookPage,
    Preparation,
    PreparationSettings,
    book_exits,
    write_report,
)
from precomp_games.chess.model.played import Person, PlayedGame, ReplyGames
from precomp_games.chess.plan.preparation import BestFirst, BySparring, Neighbor
from precomp_games.chess.study.page import ReportMatch
from tests.oracles.chess_books import entry, uci
from tests.oracles.games import uniform

SHORT = "A small book"
PLOT = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 viewBox="0 0 9 5"><style>*{stroke-linejoin: round}</style>
<defs><path id="data" d="M0 0L1 1" style="stroke: #1f77b4; fill: none"/>
<clipPath id="c"><rect width="5" height="5"/></clipPath></defs>
<g clip-path="url(#c)" style="opacity: 0.5"><use xlink:href="#data" x="1" y="2"/></g>
<text style="font: 10px 'DejaVu Sans', sans-serif; text-anchor: middle"
 transform="rotate(-90)">score &lt;1&gt;</text>
</svg>"""
_BESIDE = ("expect", "notes", "matches", "plots")


def page_with(book, gains, utility, unprepared, *, spec="uniform", error=None, **more):
    """Return a page of a book; what its preparation has and what stands beside that, by name."""
    settings = PreparationSettings(player=int(not book.side), opponent=spec)
    beside = {name: more.pop(name) for name in [*more] if name in _BESIDE}
    if error is not None:
        more["search"] = BySparring(games={}, work={}, stops=(), standard_error=error)
    made = Preparation(
        settings, book, ("An engine", "An engine"), utility, unprepared, utility, gains, **more
    )
    return BookPage(made, **beside)


def changed(each, **fields):
    """Return a page with other fields, of its preparation or beside it."""
    beside = {name: fields.pop(name) for name in [*fields] if name in _BESIDE}
    return dataclasses.replace(each, made=dataclasses.replace(each.made, **fields), **beside)


@functools.cache
def small(side=chess.WHITE):
    """Return a book whose numbers fit together: gains add up, and exits are worth what the book is."""
    rows = [("", "e2e4", 1.0, 0.2), ("e2e4 e7e5", "g1f3", 0.05, 0.1), ("e2e4 c7c5", "g1f3", 0.05, 0.05)]
    rows = rows if side else [("e2e4", "e7e5", 0.05, 0.1), ("d2d4", "d7d5", 0.05, 0.05)]
    gains, positions = [gain for *_, gain in rows], []
    for history, move, reach, gain in rows:
        worth = gain - 0.001 if history else sum(gains) - 0.001 * len(rows)
        positions.append(entry(history, {move: 1.0}, reach, worth))
    if side:
        positions[0] = dataclasses.replace(positions[0], others=((*uci("d2d4"), 0.02),))
    book = Book(chess.Board(), side, positions)
    exits = book_exits(book, uniform, lambda state: 0.8 if side else 0.2)
    return page_with(
        book,
        gains,
        utility=0.8,
        unprepared=0.8 - sum(gains),
        error=0.01,
        exits=exits,
        notes={(): "Where it begins."} | ({uci("e2e4 c7c5"): "The Sicilian."} if side else {}),
        matches=[
            ReportMatch("the book", len(book), 100, 0.79, 0.71, 0.86, 0.8, {exits[0].history: (7, 0.5)}),
            ReportMatch("no book", 0, 100, 0.45, 0.35, 0.55),
        ],
    )


def against_people():
    """Return a book against people, of whom one in twenty walks into a trap, with what its time is worth."""
    each = small()
    kind = {"opponent": "human(rating=1500)", "evaluation": "people", "rating": 1500.0}
    exits = [
        dataclasses.replace(exit, promised=0.9 if exit.history[1:2] == uci("c7c5") else 0.5)
        for exit in each.made.exits
    ]
    pawns = {(): 30, uci("e2e4 c7c5"): 90}
    return changed(
        each,
        settings=dataclasses.replace(each.made.settings, **kind),
        exits=exits,
        evaluations={
            moves: chess.engine.PovScore(chess.engine.Cp(cp), chess.WHITE) for moves, cp in pawns.items()
        },
        search=BestFirst(),
        clock=0.01,
    )


ANN = PlayedGame("Ann", "Bob", 1999, "1-0", uci("e2e4 e7e5 g1f3 b8c6"))


def with_games(each):
    """Return the page's book with games behind replies, and a plot."""
    known = {
        uci("e2e4 e7e5"): ReplyGames(7, (ANN, PlayedGame("Carol <b>", "Bob", None, "1/2-1/2"))),
        uci("e2e4 c7c5"): ReplyGames(1, (ANN,)),
    }
    person = Person("Bob", 8, 1990, 1999)
    return changed(each, games=known, person=person, plots={"What memory is worth": PLOT})


def hostile():
    """Return texts that would do something in a page that takes them for more than text."""
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


def hostile_plots():
    """Return plots that would, each with its name."""
    bad = [
        "<script>window.hacked=1</script>",
        "<g onload='window.hacked=1' onclick='window.hacked=1'/>",
        "<a xlink:href='javascript:window.hacked=1'><text>x</text></a>",
        "<use xlink:href='https://example.org/a.svg#x'/><use href='//example.org#x'/>",
        "<image href='https://example.org/a.png'/>",
        "<foreignObject><b xmlns='http://www.w3.org/1999/xhtml'><script>hacked=1</script></b></foreignObject>",
        "<rect fill='url(https://example.org#x)' style='stroke: url(//example.org); mask: url(//a)'/>",
        "<animate attributeName='href' to='javascript:window.hacked=1'/><set attributeName='onload' to='x'/>",
        "<style>@import url(//example.org);</style>",
        "<text>&lt;/text&gt;&lt;script&gt;window.hacked=1&lt;/script&gt;</text>",
        "<rect id='x&quot; onload=&quot;window.hacked=1' d='&quot;&gt;&lt;script&gt;'/>",
        "<!-- --><?php x?><![CDATA[<script>window.hacked=1</script>]]>",
        "<g>" * 500 + "<rect/>" + "</g>" * 500,
    ]
    return {f"{k}<script>": PLOT.replace("</svg>", f"{part}</svg>") for k, part in enumerate(bad)}


def with_texts(each, texts):
    """Return the page with these texts wherever a text from outside is shown, in files and in headers."""
    some = "".join(texts[:8])
    exits = [exit.history for exit in each.made.exits]
    games = tuple(PlayedGame(text, text, 1, text) for text in texts)
    return changed(
        each,
        settings=dataclasses.replace(each.made.settings, opponent=""),
        engines=(some, some),
        expect=some,
        person=Person(texts[-1], 1),
        neighbors=[Neighbor(text, 2, 0.5, 0.5, 0.1) for text in texts],
        notes=dict(zip(exits, texts, strict=False)) | {(): "".join(texts)},
        matches=[ReportMatch(text, 3, 10, 0.5, 0.2, 0.8) for text in texts],
        games={uci("e2e4 e7e5"): ReplyGames(len(games), games)},
        plots=dict.fromkeys(texts, PLOT),
    )


def written(path, *books, title=SHORT):
    write_report(path, list(books), title)
    return path


def page_of(path, *books, title=SHORT):
    return written(path, *books, title=title).read_text(encoding="utf-8")


def data_of(page):
    """Return the data that a page has for its script."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(text)


# -- in a browser ------------------------------------------------------------------------------------------


def resize(browser, width, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def opened(browser, path, width=1280):
    resize(browser, width)
    browser.get_log("browser")
    browser.get(pathlib.Path(path).resolve().as_uri())
    return browser


def text(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector).text


def texts(browser, selector):
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, selector)]


def until(browser, condition):
    """Wait for what the page shows, which may be drawn anew while it is read."""
    wait = WebDriverWait(browser, 5, 0.02, ignored_exceptions=[StaleElementReferenceException])
    wait.until(lambda _: condition())


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def shown_rows(browser):
    return [each for each in browser.find_elements(By.CSS_SELECTOR, ".row") if each.is_displayed()]
