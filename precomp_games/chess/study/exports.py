"""Books for study: Lichess studies, PGN with arrows, cards for Anki, and a table.

Studies, PGN and cards are for people, so they are short: replies in fewer than one of 20 cases are left out
there, with all that follows them; the table has the whole book. Rarity is measured where a reply is played,
and not over all games: a line of likely replies is worth knowing, however long it gets. Lines end with moves
of ours, and likely replies to which the book has no answer are named where they are played.

Comments are the sentences of `BookSentences`. The PGN files also have arrows ([%cal]: green for our moves,
yellow for other candidate moves; the opponent's replies that are not rare are blue if the book has an answer,
and red if it ends), a question mark at likely mistakes, the analyst's evaluation ([%eval], in pawns for
White) if it is known, and notes. Scores are written in words: they are against one opponent, unlike
evaluations.

A card for Anki is a position, by any order of moves. Its GUID is that of the position and of the book's
color, so a second import updates cards and keeps their progress. It has the line that led there, and tags:
the opening and its variation, the color, and the opponent. Boards are pictures of python-chess.

Text from outside cannot end a comment or be taken for a command in PGN, is escaped in cards, and in the table
gets an apostrophe if a spreadsheet would take it for a formula. Needs genanki for Anki:
`pip install precomp-games[study]`.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import itertools
import json
import math
import pathlib
import re
import sqlite3
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import chess
import chess.pgn
import chess.svg

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, plain_text, public, shown
from precomp_games._support.files import write_together
from precomp_games.chess.data.book import Book, BookPosition, book_game, pgn_text, set_headers
from precomp_games.chess.data.exits import LIKELY
from precomp_games.chess.plan.preparation import Share
from precomp_games.chess.study.drill import DrillCard, book_cards
from precomp_games.chess.study.page import BookPage, BookPages, book_nodes, shown_title
from precomp_games.chess.study.sentences import BookSentences
from precomp_games.chess.study.studies import studies
from precomp_games.chess.study.words import often, opening_of, pawns_text, points

EXPORTS = ("lichess", "pgn", "anki", "csv")
"""Formats of `write_exports`."""

_MOST_PLIES = 200  # of lines in others' games
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MODEL = 1_716_230_417  # Anki's number of a note type and a deck, drawn once and for all
_MOMENT = 1_700_000_000.0  # time stamp of written files
_DECKS = {chess.WHITE: 1_716_230_418, chess.BLACK: 1_716_230_419}
_FIELDS = ("Line", "Board", "Question", "Move", "Answer", "Details", "Note")
_CSS = (
    ".card { font-family: sans-serif; font-size: 18px; text-align: center; }\n"
    "img { width: 360px; max-width: 95%; }\n.move { font-size: 26px; font-weight: bold; }\n"
    ".small { font-size: 14px; color: gray; }\n"
)
_FRONT = '<p class="small">{{Line}}</p>{{Board}}<p>{{Question}}</p>'
_BACK = (
    '<p class="small">{{Line}}</p>{{Answer}}<p class="move">{{Move}}</p><p class="small">{{Details}}</p>'
    "<p>{{Note}}</p>"
)


@public
def write_exports(
    folder: checks.FilePath,
    books: BookPages,
    formats: Sequence[str] = EXPORTS,
    title: str = "Opening preparation",
    min_share: Share = LIKELY,
) -> list[str]:
    """Write books for study into a folder, all files or none; the same books give the same bytes.

    Args:
      folder: the folder, which must exist.
      books: at most one a color. Of two, the files' names begin with the color.
      formats: of `EXPORTS`: "lichess" writes lichess-1.pgn and so on, a study each; "pgn" arrows.pgn; "anki"
        cards.apkg; "csv" book.csv, a row for each history.
      title: of studies and decks.
      min_share: studies, PGN and cards leave out replies that are less likely than this where they are
        played, with all that follows them; 0: none. If replies' probabilities are unknown, all are there.

    Returns:
      The files' names.

    Raises:
      ValueError: a blank title, no such format, or books that a page could not show either.
      ImportError: "anki" without genanki.
      OSError: as `write_together`.
    """
    title = shown_title(books, title)
    if len({each.made.book.side for each in books}) < len(books):
        raise ArgumentError(f"expected books of different colors, got {len(books)}")
    if not isinstance(formats, list | tuple):
        raise ArgumentError(f"expected formats of {', '.join(EXPORTS)}, got {shown(formats)}")
    wanted = [checks.check_choice(name, EXPORTS, "formats") for name in formats]
    written = []
    with write_together(folder) as drafts:
        for each in books:
            begin = f"{each.made.side}-" if len(books) > 1 else ""
            sentences = BookSentences(each.made)
            if "lichess" in wanted or "pgn" in wanted:
                game = _decorated(each, sentences, min_share)
                if "lichess" in wanted:
                    for number, text in enumerate(studies(each.made.book, game, title), start=1):
                        (drafts / f"{begin}lichess-{number}.pgn").write_text(text, encoding="utf-8")
                if "pgn" in wanted:
                    set_headers(game, {"Event": title})
                    (drafts / f"{begin}arrows.pgn").write_text(pgn_text(game), encoding="utf-8")
            if "anki" in wanted:
                _write_cards(each, sentences, drafts / f"{begin}cards.apkg", title, min_share)
            if "csv" in wanted:
                _write_table(each, drafts / f"{begin}book.csv")
        written = sorted(path.name for path in drafts.iterdir())
    return written


@public
def write_studies(
    folder: checks.FilePath,
    book: Book,
    title: str = "Repertoire",
    games: Iterable[chess.pgn.Game] = (),
) -> list[str]:
    """Write studies of a book without numbers, all files or none: lichess-1.pgn and so on.

    Args:
      folder: the folder, which must exist.
      book: the book.
      title: of the studies.
      games: moves, comments and marks of these games, variations included, are added to the book's moves;
        games that begin elsewhere are left out.

    Returns:
      The files' names.

    Raises:
      ValueError: a blank title, or games of another kind.
      OSError: as `write_together`.
    """
    whole, nodes = book_game(book, ())
    for node, _, _ in nodes:
        node.comment = ""
    for game in games:
        checks.check_instance(game, chess.pgn.Game, "games")
        if game.board().epd() == book.start.epd():
            _add_game(whole, game)
    title = plain_text(title)
    with write_together(folder) as drafts:
        for number, text in enumerate(studies(book, whole, title), start=1):
            (drafts / f"lichess-{number}.pgn").write_text(text, encoding="utf-8")
        return sorted(path.name for path in drafts.iterdir())


def _add_game(whole: chess.pgn.Game, game: chess.pgn.Game) -> None:
    """Add another game's content to a game with variations."""
    waiting: list[tuple[chess.pgn.GameNode, chess.pgn.GameNode, int]] = [(whole, game, 0)]
    while waiting:
        into, node, plies = waiting.pop()
        if node.comment not in into.comment:
            into.comment = " ".join(filter(None, (into.comment, node.comment)))
        into.nags |= node.nags
        for child in node.variations if plies < _MOST_PLIES else ():
            if not child.move:  # a null move
                continue
            known = into.has_variation(child.move)
            after = into.variation(child.move) if known else into.add_variation(child.move)
            waiting.append((after, child, plies + 1))


# -- PGN ---------------------------------------------------------------------------------------------------


def _comment(text: str) -> str:
    """Return a text from outside that is safe in a comment."""
    text = text.replace("{", "(").replace("}", ")")
    return text.replace("[%", "[ %")


def _decorated(each: BookPage, sentences: BookSentences, min_share: float) -> chess.pgn.Game:
    """Return a book's game without rare replies, with sentences, arrows, evaluations and notes."""
    made = each.made
    game, nodes = book_game(made.book, ())
    for pgn_node, _, history in nodes:
        before, text = pgn_node.parent, ""
        if before is not None:
            if sentences.is_rare(history, min_share):
                before.remove_variation(pgn_node)
                continue
            ours = before.turn() == made.book.side
            text = sentences.of_move(history) if ours else sentences.of_reply(history)
            if not ours and sentences.is_mistake(history):
                pgn_node.nags.add(chess.pgn.NAG_MISTAKE)
        pgn_node.comment = " ".join(filter(None, (text, _comment(each.notes.get(history, "")))))
        pgn_node.set_arrows(_arrows(sentences, history))
        if history in made.evaluations:
            pgn_node.set_eval(made.evaluations[history])
    return game


def _arrows(sentences: BookSentences, history: tuple[chess.Move, ...]) -> list[chess.svg.Arrow]:
    """Return the arrows at a position."""
    node = sentences.root.line(history)[-1]
    if node.position is not None:
        own = [entry.move for entry in node.position.moves if entry.probability > 0.0]
        others = [move for move, _ in node.position.others if move not in own]
        colors = [*((move, "green") for move in own), *((move, "yellow") for move in others)]
    else:
        replies = [(move, child) for move, child in node.children.items() if child.mass > LIKELY * node.mass]
        colors = [(move, "blue" if child.position is not None else "red") for move, child in replies]
    return [chess.svg.Arrow(move.from_square, move.to_square, color=color) for move, color in colors]


# -- Anki --------------------------------------------------------------------------------------------------


def _write_cards(
    each: BookPage, sentences: BookSentences, path: pathlib.Path, title: str, min_share: float
) -> None:
    """Write a package: a database of notes, and pictures.

    A note's time depends on its content: Anki takes over changed notes if "Update notes" is "Always".
    """
    try:
        import genanki
    except ImportError:
        raise ImportError("expected genanki to be installed: pip install 'precomp-games[study]'") from None
    side = each.made.side
    templates = [{"name": "Position", "qfmt": _FRONT, "afmt": _BACK}]
    fields = [{"name": name} for name in _FIELDS]
    model = genanki.Model(_MODEL, "precomp-games position", fields=fields, templates=templates, css=_CSS)
    deck = genanki.Deck(_DECKS[each.made.book.side], f"{title}: {side.capitalize()}".replace("::", ": :"))
    pictures: dict[str, str] = {}
    for card in book_cards(each.made.book):
        ways = [way for way in card.positions if not sentences.is_rare(way.history, min_share)]
        if ways:
            ways.sort(key=lambda position: -position.reach)
            guid = genanki.guid_for("precomp-games", card.epd, side)
            content = {"fields": _fields(each, card, ways, sentences, pictures), "tags": _tags(each, ways[0])}
            deck.add_note(genanki.Note(model=model, guid=guid, **content))
    database = path.with_name(f".{path.name}.collection")
    connection = sqlite3.connect(database)
    # Like Package.write_to_file, which leaves its database behind in the folder for temporary files.
    genanki.Package(deck).write_to_db(connection.cursor(), _MOMENT, itertools.count(int(_MOMENT * 1000)))
    drawn = [(_drawn_time(note.fields + note.tags), note.guid) for note in deck.notes]
    connection.executemany("UPDATE notes SET mod = ? WHERE guid = ?", drawn)
    connection.commit()
    connection.close()
    numbered = dict(enumerate(pictures))
    contents: list[Any] = [("collection.anki2", database.read_bytes()), ("media", json.dumps(numbered))]
    contents += [(str(number), pictures[name]) for number, name in numbered.items()]
    with zipfile.ZipFile(path, "w") as package:
        for name, content in contents:
            package.writestr(zipfile.ZipInfo(name, time.gmtime(_MOMENT)[:6]), content, zipfile.ZIP_DEFLATED)
    database.unlink()


def _drawn_time(fields: Sequence[str]) -> int:
    """Return a time before `_MOMENT` unlike other texts', since Anki takes equal times for equal cards."""
    text = "\x1f".join(fields).encode()
    return int(_MOMENT) - int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % 500_000_000


def _tags(each: BookPage, position: BookPosition) -> list[str]:
    """Return the opening and its variation, the color, and the opponent; Anki nests the parts behind "::"."""
    opening = opening_of(each.made.book.start, position.history).partition(" ")[2]
    tags = {"color": each.made.side, "opening": opening, "opponent": each.opponent.title}
    words = {
        name: [re.findall(r"[\w'.-]+", part) for part in text.split(": ")] for name, text in tags.items()
    }
    return sorted(
        "::".join([name, *("_".join(part) for part in parts)]) for name, parts in words.items() if all(parts)
    )


def _fields(
    each: BookPage,
    card: DrillCard,
    ways: Sequence[BookPosition],
    sentences: BookSentences,
    pictures: dict[str, str],
) -> list[str]:
    """Return a card's fields, as HTML; `ways` are the histories to show, the most reached first."""
    book = each.made.book
    board = chess.Board(f"{card.epd} 0 1")
    lines = [book.start.variation_san(position.history) or "(start)" for position in ways]
    arrows = [chess.svg.Arrow(move.from_square, move.to_square, color="green") for move in card.moves]
    reach = math.fsum(position.reach for position in card.positions)
    details = [
        f"You get here in {often(reach)}.",
        sentences.of_position(ways[0], whole=False),
        f"Forgetting it costs {points(card.worth)} points in 100 games.",
    ]
    if each.made.person is not None and ways[0].history:
        details.append(f"The last reply: {each.opponent.seen(each.made.games.get(ways[0].history))}.")
    details += [f"Also after {line}." for line in lines[1:3]]
    notes = [each.notes[position.history] for position in ways if position.history in each.notes]
    moves = ", ".join(board.san(move) for move in card.moves)
    question = f"{chess.COLOR_NAMES[book.side].capitalize()} to move: what does the book play?"
    return [
        html.escape(lines[0]),
        _picture(board, book.side, [], pictures),
        question,
        html.escape(moves),
        _picture(board, book.side, arrows, pictures),
        html.escape(" ".join(filter(None, details))),
        html.escape(" ".join(notes)),
    ]


def _picture(
    board: chess.Board, side: chess.Color, arrows: Sequence[chess.svg.Arrow], pictures: dict[str, str]
) -> str:
    """Draw a board; pictures are named by their content."""
    drawn = str(chess.svg.board(board, orientation=side, arrows=arrows, size=360))
    name = f"precomp-{hashlib.blake2b(drawn.encode(), digest_size=10).hexdigest()}.svg"
    pictures[name] = drawn
    return f'<img src="{name}">'


# -- a table -----------------------------------------------------------------------------------------------


def _cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _write_table(each: BookPage, path: pathlib.Path) -> None:
    """Write a row for each history."""
    nodes = book_nodes(each)
    scores = {history: value / node.mass for history, *_, node, value in nodes if value is not None}
    text = io.StringIO()
    rows = [_row(each, k, board, scores) for k, board in enumerate(each.made.book.boards)]
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["after", "play"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def _row(
    each: BookPage, number: int, board: chess.Board, scores: Mapping[tuple[chess.Move, ...], float]
) -> dict[str, Any]:
    made = each.made
    position = made.book.positions[number]
    played = [entry for entry in position.moves if entry.probability > 0.0]
    evaluation = made.evaluations.get(position.history)
    others = [(move, loss) for move, loss in position.others if board.is_legal(move)]
    return {
        "side": made.side,
        "after": made.book.start.variation_san(position.history),
        "after_uci": " ".join(move.uci() for move in position.history),
        "fen": board.fen(),
        "play": " ".join(board.san(entry.move) for entry in played),
        "play_uci": " ".join(entry.move.uci() for entry in played),
        "probabilities": " ".join(repr(entry.probability) for entry in played),
        "reach": position.reach,
        "score": scores.get(position.history),
        "forgetting_costs": position.worth,
        "gain": float(made.gains[number]),
        "reply": ""
        if made.person is None or not position.history
        else each.opponent.seen(made.games.get(position.history)),
        "evaluation_pawns_white": None if evaluation is None else pawns_text(evaluation),
        "instead": _cell("; ".join(f"{board.san(move)} {-loss:+.4f}" for move, loss in others)),
        "note": _cell(each.notes.get(position.history, "")),
    }
