"""Pages of books: what is written. What a browser makes of it is in test_report_page.py."""

import base64
import dataclasses
import re
import string

import chess
import pytest

from precomp_games.chess import Book, BookPage, Preparation, write_exports
from precomp_games.chess.model.played import PlayedGame, ReplyGames
from tests.oracles import pages
from tests.oracles.chess_books import entry, small_book, uci
from tests.oracles.pages import PLOT, against_people, changed, data_of, page_of, page_with, small
from tests.oracles.pgn import read_back


def test_a_page_has_all_that_it_needs_asks_for_nothing_and_is_the_same_each_time(tmp_path):
    plots = {"What memory is worth": PLOT} | pages.hostile_plots()
    books = changed(small(), plots=plots), small(chess.BLACK)
    page, again = (page_of(tmp_path / "a.html", *books) for _ in range(2))
    assert page == again
    assert "unsafe" not in page.partition("<style>")[0] and "default-src &#39;none&#39;" in page
    addresses = set(re.findall(r"https?://([\w.-]+)", page))
    # Where the board and its pieces come from, and names that XML has; nothing of it is loaded.
    wikimedia = {"commons.wikimedia.org", "creativecommons.org", "en.wikipedia.org"}
    assert addresses <= {"github.com", "medium.com", "shaack.com", "www.w3.org"} | wikimedia
    assert not re.search(r"\b(src|href)=\"(?!data:|#)", page.replace("xlink:href", ""))
    # Plots are pictures, whatever is in them.
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert [base64.b64decode(each).decode() for each in pictures] == list(plots.values())
    assert 'alt="What memory is worth"' in page and "javascript:" not in page and "example.org" not in page
    assert "sourceMappingURL" not in page and "CC BY-SA 3.0" in page
    assert not re.search(r"^(import|export)\b", page, re.MULTILINE)


def test_the_data_of_a_page_are_those_of_its_book_and_of_the_games_behind_it(tmp_path):
    each = pages.with_games(small())
    ends = PlayedGame("Dan", "Bob", 2000, "0-1", uci("e2e4 e7e5 e4e5 g8f6"))  # legal as far as 1... e5
    games = {uci("e2e4 g8f6"): ReplyGames(1, (ends,))} | each.made.games
    (data,) = data_of(page_of(tmp_path / "a.html", changed(each, games=games)))
    assert data["curve"] == pytest.approx([0.45, 0.65, 0.75, 0.8]) and data["price"] == pytest.approx(0.001)
    assert [row["reach"] for row in data["positions"]] == [1.0, 0.05, 0.05]
    nodes = data["nodes"]
    masses = nodes["mass"]
    assert masses[0] == pytest.approx(1.0) and nodes["value"][0] == pytest.approx(0.8)
    boards = [chess.Board(data["start"])]
    for number, parent in enumerate(nodes["parent"][1:], start=1):
        board = boards[parent].copy()
        assert parent < number
        assert board.san_and_push(chess.Move.from_uci(nodes["uci"][number])) == nodes["san"][number]
        boards.append(board)
        below = [mass for mass, above in zip(masses, nodes["parent"], strict=True) if above == number]
        assert not below or masses[number] == pytest.approx(sum(below))
    assert [data["positions"][k]["epd"] for k in nodes["position"].values()] == [
        boards[int(number)].epd() for number in nodes["position"]
    ]
    assert len(each.made.exits) == len(nodes["exit"]) and list(nodes["played"].values()) == [[7, 0.5]]
    assert set(nodes["note"].values()) == {"Where it begins.", "The Sicilian."}
    assert nodes["name"]["1"] == "B00 King's Pawn Game"
    assert sorted(data["games"]) == [  # each once, whatever the number of replies it is behind
        ["Ann", "Bob", 1999, "1-0", "e4 e5 Nf3 Nc6", "Mc0kGV5q"],
        ["Carol <b>", "Bob", None, "1/2-1/2", "", ""],
        ["Dan", "Bob", 2000, "0-1", "e4 e5", "Mc0k"],
    ]
    behind = {nodes["uci"][int(number)]: found for number, found in nodes["games"].items()}
    named = {reply: [count, *(data["games"][k][0] for k in of)] for reply, (count, *of) in behind.items()}
    assert named == {"e7e5": [7, "Ann", "Carol <b>"], "c7c5": [1, "Ann"], "g8f6": [1, "Dan"]}


def test_books_without_exits_and_without_positions(tmp_path):
    empty = page_with(Book(chess.Board(), chess.BLACK, []), [], 0.5, 0.5)
    bare = page_with(small_book(), [0.1] * 4, 0.9, 0.5)
    first, second = data_of(page_of(tmp_path / "a.html", empty, bare))
    assert first["curve"] == [0.5] and first["nodes"]["mass"] == [0.0]
    assert len(second["positions"]) == 4 and set(second["nodes"]["value"]) == {None}


def test_answers_that_the_pages_drill_accepts_are_legal_moves(tmp_path):
    """Each as two squares, here in a check, in which nobody castles or promotes."""
    board = chess.Board("4r1k1/P7/8/8/8/8/8/R3K2R w KQ - 0 1")
    book = Book(board, board.turn, [entry("", {"e1f1": 1.0})])
    (data,) = data_of(page_of(tmp_path / "page.html", page_with(book, [0.1], 0.6, 0.5)))
    letters = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    squares = [letters.index(letter) for letter in data["positions"][0]["legal"]]
    moves = {(move.from_square, move.to_square) for move in board.legal_moves}
    assert set(zip(squares[::2], squares[1::2], strict=True)) == moves


def test_traps_are_written_beside_a_book_against_people(tmp_path):
    small().made.write(tmp_path)
    assert not (tmp_path / "traps.pgn").exists()
    against_people().made.write(tmp_path)
    game = read_back(tmp_path / "traps.pgn")
    assert game.board().variation_san(game.mainline_moves()) == "1. e4 c5 2. Nf3"
    assert Preparation.read(tmp_path).traps == against_people().made.traps


@pytest.mark.parametrize("name", ["x" * 1_000_000, "a\u202eb", "a\ud800b", "a\x1b[31m\x00"])
def test_no_text_is_shown_as_it_came(name, tmp_path):
    """A megabyte of it, one that turns what follows, one that no file can hold, one that a terminal obeys."""
    each = pages.with_texts(small(), [name])
    page = page_of(tmp_path / "a.html", each, title=name)
    write_exports(tmp_path, [each], title=name)
    for path in tmp_path.glob("*.*"):
        text = path.read_bytes()
        assert len(text) < 1_000_000 and not any(bad.encode() in text for bad in ("\u202e", "x" * 2001)), path
    assert data_of(page)[0]["opponent"].split(" (1,000")[0] in ("x" * 79 + "…", "ab", "a[31m")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((field.name, ...) for field in dataclasses.fields(BookPage)),
        ("matches", [...]),
        ("notes", {(): ...}),
        ("plots", {(): ...}),
        ("sizes", [(1, 1.5)]),
        ("plots", {"Unreadable": "<svg"}),
        ("plots", {"Without a size": "<svg/>"}),
        ("plots", {"With an entity": PLOT.replace("<svg", '<!DOCTYPE s [<!ENTITY a "b">]><svg')}),
        ("plots", {"Too large": PLOT + " " * (1 << 20)}),
    ],
)
def test_books_that_cannot_be_shown(name, wrong, tmp_path):
    with pytest.raises(ValueError, match=rf"^(BookPage|write_report)\(\): expected .*(books|{name})"):
        pages.written(tmp_path / "a.html", dataclasses.replace(small(), **{name: wrong}))
    assert not list(tmp_path.iterdir())


def test_matches_that_cannot_be_shown():
    for name, wrong in (("score", "0.5"), ("games", -1)):
        with pytest.raises(ValueError, match=rf"^ReportMatch\(\): expected {name} to be "):
            dataclasses.replace(small().matches[0], **{name: wrong})
