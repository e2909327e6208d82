"""Books for study, read back by what reads such files."""

import json
import sqlite3
import sys
import time
import zipfile

import chess
import chess.engine
import chess.pgn
import chess.svg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import Book, write_exports, write_pgn
from precomp_games.chess.data.book import BookExit
from precomp_games.chess.study import studies
from precomp_games.chess.study.sentences import BookSentences
from tests.examples.launcher import table
from tests.oracles.chess_books import entry, exits_of, random_book, random_books, small_book, uci
from tests.oracles.pages import against_people, changed, hostile, page_with, small
from tests.oracles.pgn import games_of, nodes_of, read_back
from tests.properties import examples


def reported(book, **more):
    return page_with(book, [0.001] * len(book), 0.6, 0.5, exits=exits_of(book), **more)


def tree_of(game):
    """Return {moves: comment without arrows and evaluation} of a game."""
    nodes = nodes_of(game)
    for node in nodes.values():
        node.set_arrows([])
        node.set_eval(None)
    return {history: node.comment for history, node in nodes.items()}


def plain_tree(book, folder):
    write_pgn(book, folder / "plain.pgn")
    return set(tree_of(read_back(folder / "plain.pgn")))


# -- PGN ---------------------------------------------------------------------------------------------------


@examples(40)
@given(random_books(), st.booleans())
def test_pgn_files_have_the_tree_of_the_book_and_its_sentences(tmp_path_factory, book, has_exits):
    each = reported(book) if has_exits else page_with(book, [0.0] * len(book), 0.6, 0.5)
    folder = tmp_path_factory.mktemp("exports")
    names = write_exports(folder, [each], min_share=0.0)
    assert names[:3] == ["arrows.pgn", "book.csv", "cards.apkg"]
    assert len(table(folder / "book.csv")) == len(book)
    assert len(collection(folder)[0]) == book.distinct_positions
    game = read_back(folder / "arrows.pgn")
    comments = tree_of(game)
    assert set(comments) == plain_tree(book, folder) and game.board() == book.start
    chapters = [game for name in names if "lichess" in name for game in games_of(folder / name)]
    assert {move: each for game in chapters for move, each in tree_of(game).items()} == comments
    assert {game.headers["Orientation"] for game in chapters} == {chess.COLOR_NAMES[book.side]}
    output = BookSentences(each.made)
    for history, comment in comments.items():
        ours = len(history) % 2 == (book.start.turn == book.side)
        expected = history and (output.of_move(history) if ours else output.of_reply(history))
        assert " ".join(comment.split()) == (expected or "")


def test_rare_replies_are_left_out_with_what_follows_them(tmp_path):
    """Of four replies, a part of one in ten at most is shown; where nobody knows how likely they are, all."""
    lines = {"e7e5": 0.6, "c7c5": 0.21, "e7e6": 0.1, "d7d5": 0.09}
    known = [entry(f"e2e4 {reply}", {"b1c3": 1.0}, reach) for reply, reach in lines.items()]
    known += [entry("", {"e2e4": 1.0}), entry("e2e4 d7d5 b1c3 d5e4", {"c3e4": 1.0}, 0.09)]
    book = Book(chess.Board(), chess.WHITE, known)
    ends = {f"e2e4 {reply} b1c3 g8f6": reach for reply, reach in lines.items() if reply != "d7d5"}
    ends["e2e4 d7d5 b1c3 d5e4 c3e4 g8f6"] = 0.09
    exits = [BookExit(uci(line), False, reach, 0.5) for line, reach in ends.items()]
    for made, least, left in ((exits, 0.1, 3), (exits, 0.09, 4), (exits, 1.0, 0), ((), 1.0, 4)):
        each = page_with(book, [0.0] * len(book), 0.6, 0.5, exits=made)
        write_exports(tmp_path, [each], ["pgn", "lichess", "anki", "csv"], min_share=least)
        game = read_back(tmp_path / "arrows.pgn")
        assert [node.uci() for node in game.next().variations] == list(lines)[:left]
        assert set(tree_of(read_back(tmp_path / "lichess-1.pgn"))) == set(tree_of(game))
        assert len(collection(tmp_path)[0]) == 1 + left + (left == 4)
        assert len(table(tmp_path / "book.csv")) == len(book)


def test_arrows_evaluations_and_notes(tmp_path):
    after = uci("e2e4 c7c5")
    scores = {(): chess.engine.Cp(31), after: chess.engine.Mate(3)}
    evaluations = {moves: chess.engine.PovScore(score, chess.WHITE) for moves, score in scores.items()}
    write_exports(tmp_path, [changed(small(), evaluations=evaluations)], ["pgn"])
    game = read_back(tmp_path / "arrows.pgn")
    drawn = {(arrow.tail, arrow.head, arrow.color) for arrow in game.arrows()}
    assert drawn == {(chess.E2, chess.E4, "green"), (chess.D2, chess.D4, "yellow")}
    assert game.eval() == evaluations[()] and "Where it begins." in game.comment
    first = game.next()
    replies = {chess.Move(arrow.tail, arrow.head): arrow.color for arrow in first.arrows()}
    assert len(replies) == 20 and first.eval() is None  # each is one reply in twenty
    assert {move.uci() for move, color in replies.items() if color == "blue"} == {"e7e5", "c7c5"}
    sicilian = first.variation(after[1])
    assert sicilian.eval() == evaluations[after] and sicilian.comment.endswith("[%eval #3]")
    assert "The Sicilian." in sicilian.comment and not sicilian.nags
    assert "Expected score: 80 of 100." in sicilian.next().comment
    write_exports(tmp_path, [against_people()], ["pgn", "lichess"])
    for name in ("arrows.pgn", "lichess-1.pgn"):
        assert read_back(tmp_path / name).next().variation(after[1]).nags == {chess.pgn.NAG_MISTAKE}


@pytest.mark.parametrize("most", [20, 80, 300])
def test_studies_keep_within_the_limits(most, tmp_path, monkeypatch):
    assert (studies.MOST_CHAPTERS, studies.MOST_NODES, studies.MOST_IN_ALL) == (64, 80, 3000)
    monkeypatch.setattr(studies, "MOST_CHAPTERS", 5)
    monkeypatch.setattr(studies, "MOST_NODES", most)
    book = random_book(1, chess.WHITE, chess.Board(), 150)
    each = reported(book)
    names = write_exports(tmp_path, [each], ["lichess"], "White", min_share=0.0)
    files = [games_of(tmp_path / name) for name in names]
    assert {len(games) for games in files[:-1]} <= {5} and 0 < len(files[-1]) <= 5
    studied = [{game.headers["StudyName"] for game in games} for games in files]
    assert studied == [{f"White ({k + 1})" if len(names) > 1 else "White"} for k in range(len(names))]
    chapters = [game for games in files for game in games]
    trees = [tree_of(game) for game in chapters]
    assert len(chapters) > 5 or most > 80
    assert max(map(len, trees)) <= most
    assert set().union(*trees) == plain_tree(book, tmp_path)
    titles = [game.headers["ChapterName"] for game in chapters]
    assert len(set(titles)) == len(titles) and max(map(len, titles)) <= 80
    monkeypatch.setattr(studies, "MOST_IN_ALL", 3 * most)
    shorter = write_exports(tmp_path, [each], ["lichess"], min_share=0.0)
    sizes = [sum(len(tree_of(game)) for game in games_of(tmp_path / name)) for name in shorter]
    assert max(sizes) <= 3 * most and sum(sizes) == sum(map(len, trees))


def test_chapters_are_called_by_their_moves_but_for_one_of_all_lines(tmp_path):
    lines = ["e7e5 g1f3 b8c6", "e7e5 g1f3 g8f6", "c7c5 g1f3 d7d6", "c7c5 g1f3 b8c6", "d7d5"]
    known = [entry(f"e2e4 {line}", {"b1c3": 1.0}, 0.1) for line in lines]
    known += [entry("", {"e2e4": 1.0}), *(entry(f"e2e4 {r}", {"g1f3": 1.0}, 0.3) for r in ("e7e5", "c7c5"))]
    book = Book(chess.Board(), chess.WHITE, known)
    openings = ["Sicilian Defense: 1. e4 c5", "King's Pawn Game: 1. e4 e5", "Scandinavian Defense: 1. e4 d5"]
    for each, titles in ((reported(book), openings), (small(), ["All lines"])):
        assert write_exports(tmp_path, [each], ["lichess"], min_share=0.0) == ["lichess-1.pgn"]
        chapters = games_of(tmp_path / "lichess-1.pgn")
        assert [game.headers["ChapterName"] for game in chapters] == titles
        assert {game.headers["StudyName"] for game in chapters} == {"Opening preparation"}


# -- Anki --------------------------------------------------------------------------------------------------


def collection(folder):
    """Return notes by GUID, pictures by name, and tags by the line that leads there, of a package."""
    with zipfile.ZipFile(folder / "cards.apkg") as package:
        assert package.testzip() is None
        (folder / "collection.anki2").write_bytes(package.read("collection.anki2"))
        numbers = json.loads(package.read("media"))
        pictures = {name: package.read(number).decode() for number, name in numbers.items()}
    connection = sqlite3.connect(folder / "collection.anki2")
    rows = connection.execute("SELECT guid, flds, tags FROM notes").fetchall()
    assert connection.execute("SELECT count(*) FROM cards").fetchone()[0] == len(rows)
    connection.close()
    notes = {guid: fields.split("\x1f") for guid, fields, _ in rows}
    return notes, pictures, {fields.split("\x1f")[0]: tags.split() for _, fields, tags in rows}


def test_a_position_is_a_card(tmp_path):
    each = reported(small_book(), spec="human(rating=1500)")
    assert write_exports(tmp_path, [each], ["anki"]) == ["cards.apkg"]
    notes, pictures, tags = collection(tmp_path)
    by_line = {fields[0]: fields for fields in notes.values()}
    assert set(by_line) == {"(start)", "1. e4 c5", "1. e4 e5", "1. e4 e5 2. Nf3 Nc6"}
    _, board, question, move, answer, details, note = by_line["1. e4 e5 2. Nf3 Nc6"]
    assert move == "Bb5, Bc4" and "White to move" in question and note == ""
    assert details.startswith("You get here in 30 of 100 games. Play 3. Bb5 in 60 of 100 cases. ")
    assert details.endswith(" Forgetting it costs 0.71 points in 100 games.")
    name = board.removeprefix('<img src="').removesuffix('">')
    expected = chess.svg.board(each.made.book.boards[3], orientation=chess.WHITE, size=360)
    assert pictures[name] == str(expected) and answer != board
    assert answer.removeprefix('<img src="').removesuffix('">') in pictures
    opponent = "opponent::players_rated_about_1500"
    assert tags["1. e4 c5"] == ["color::white", "opening::Sicilian_Defense", opponent]
    assert tags["(start)"] == ["color::white", opponent]
    assert "opening::King's_Knight_Opening::Normal_Variation" in tags["1. e4 e5 2. Nf3 Nc6"]


def test_the_same_books_give_the_same_bytes(tmp_path, monkeypatch):
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(time, "time", lambda name=name: 1e9 + 1e6 * ord(name))
        names = write_exports(tmp_path / name, [small(), small(chess.BLACK)])
        files.append({each: (tmp_path / name / each).read_bytes() for each in names})
    assert files[0] == files[1] and len(files[0]) == 8
    assert set(files[0]) >= {"white-arrows.pgn", "black-cards.apkg", "black-lichess-1.pgn", "white-book.csv"}


def test_anki_reads_cards_and_another_import_updates_them(tmp_path):
    anki = pytest.importorskip("anki.collection", reason="pip install 'precomp-games[compare]'")
    opened = anki.Collection(str(tmp_path / "collection.anki2"))

    def imported(book):
        write_exports(tmp_path, [book], ["anki"], "My openings")
        request = anki.ImportAnkiPackageRequest(package_path=str(tmp_path / "cards.apkg"))
        request.options.update_notes = 1
        opened.import_anki_package(request)
        assert opened.card_count() == 4
        notes = [opened.get_note(k) for k in opened.find_notes("")]
        return {note.guid: list(note.fields) for note in notes}

    each = reported(small_book())
    later = changed(each, notes={(): "Where it begins."})
    first, second = imported(each), imported(later)
    assert set(first) == set(second) and sum(first[guid] != second[guid] for guid in first) == 1
    assert imported(later) == second
    assert opened.decks.by_name("My openings: White")["name"] == "My openings: White"
    assert not opened.media.check().missing and len(opened.media.check().unused) == 0
    question = opened.get_card(opened.find_cards("")[0]).question()
    assert "<img" in question and "White to move" in question
    assert imported(each) == first  # one of these two times is the later one
    opened.close()


def test_anki_needs_genanki(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "genanki", None)
    with pytest.raises(ImportError, match=r"precomp-games\[study\]"):
        write_exports(tmp_path, [small()], ["csv", "anki"])
    assert not list(tmp_path.iterdir())  # all files or none


# -- a table, and any book ---------------------------------------------------------------------------------


def test_the_table(tmp_path):
    each = changed(small(), evaluations={(): chess.engine.PovScore(chess.engine.Cp(-31), chess.BLACK)})
    write_exports(tmp_path, [each], ["csv"])
    rows = table(tmp_path / "book.csv")
    assert [row["after"] for row in rows] == ["", "1. e4 e5", "1. e4 c5"]
    for row, position, gain in zip(rows, each.made.book.positions, each.made.gains, strict=True):
        assert uci(row["after_uci"]) == position.history and uci(row["play_uci"]) == (position.moves[0].move,)
        assert (float(row["reach"]), float(row["forgetting_costs"])) == (position.reach, position.worth)
        assert float(row["gain"]) == gain and float(row["score"]) == pytest.approx(0.8)
        assert chess.Board(row["fen"]).san(position.moves[0].move) == row["play"]
    assert rows[0]["instead"] == "d4 -0.0200" and rows[0]["evaluation_pawns_white"] == "0.31"
    assert rows[2]["note"] == "The Sicilian." and rows[1]["evaluation_pawns_white"] == ""


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]
TRICKS = ["} 1. d4 { x", "{", "[%eval 99.0]", "[%cal Ra1a8]", "; x", "% line", '"', '\n\n[Event "x"]\n']


def test_text_from_outside_does_nothing(tmp_path):
    """A book with such a note at each position, and in its title."""
    texts = [*TRICKS, *FORMULAS, *hostile()]
    book = random_book(1, chess.WHITE, chess.Board(), len(texts))
    each = page_with(book, [0.0] * len(book), 0.6, 0.5)
    notes = dict(zip([position.history for position in book.positions], texts, strict=True))
    write_exports(tmp_path, [changed(each, notes=notes)], title="Book " + " ".join(texts))
    for name in ("arrows.pgn", "lichess-1.pgn"):
        nodes = [node for game in games_of(tmp_path / name) for node in nodes_of(game).values()]
        assert all(node.eval() is None for node in nodes)
        assert {arrow.color for node in nodes for arrow in node.arrows()} <= {"green", "blue"}
    assert set(tree_of(read_back(tmp_path / "arrows.pgn"))) == plain_tree(book, tmp_path)
    cards = [fields[6] for fields in collection(tmp_path)[0].values()]
    assert any(cards) and not any("<" in note or ">" in note for note in cards)
    rows = table(tmp_path / "book.csv")
    assert len(rows) == len(texts) and {len(row) for row in rows} == {15}
    assert not any(None in row or row["note"].startswith(tuple("=+-@\t\r")) for row in rows)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("books", [small(), small()], "different colors"),
        ("formats", ["pdf"], "formats"),
        ("title", " ", "title"),
    ],
)
def test_wrong_arguments(name, value, words, tmp_path):
    with pytest.raises(ValueError, match=rf"^write_exports\(\): expected .*{words}"):
        write_exports(tmp_path, **({"books": [small()]} | {name: value}))
    assert not list(tmp_path.iterdir())
