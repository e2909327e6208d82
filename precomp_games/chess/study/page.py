"""A page that shows books to people: one HTML file with a board, its lines, and their values.

The file needs no network and no other file. It contains its scripts and styles, and a content security
policy names them by their hashes, so that nothing else in the file can run or load anything. Text from
outside (names, notes) is escaped, cut to a length that a page can show, and stripped of characters that
control the layout of text. Plots are pictures, in which browsers run and load nothing.

For a smaller budget, the page shows the best part of the book (`best_parts`), with the sum of its gains. A
book that was made for that budget may have other moves, and may be worth more.

A game that is behind several replies is listed once. Positions are not listed: the script plays the moves.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import pathlib
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import chess
import chess.engine
import jinja2
import numpy as np
from markupsafe import Markup

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, plain_text, public, shown
from precomp_games._support.files import atomic_write
from precomp_games._support.results import Shown
from precomp_games.chess.data.book import BookPosition, Node, trie_with_exits
from precomp_games.chess.model.played import PlayedGame
from precomp_games.chess.plan.preparation import PlainText, Preparation, Share, best_parts, predecessors
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.study import words
from precomp_games.chess.study.sentences import BookSentences

_History = tuple[chess.Move, ...]
_LONGEST_NAME = 80  # characters of a player's name
_MOST_PLOT = 1 << 20  # characters
_MOST_TRAPS = 20
# Ordered so that each has what it needs; `import` and `export` lines are left out.
_BOARD_MODULES = (
    "lib/Utils.js",
    "lib/Svg.js",
    "model/Extension.js",
    "model/Position.js",
    "model/ChessboardState.js",
    "view/PositionAnimationsQueue.js",
    "view/VisualMoveInput.js",
    "view/ChessboardView.js",
    "Chessboard.js",
    "extensions/arrows/Arrows.js",
)
_PAGE_MODULES = ("rules", "schedule", "tree", "here", "lines", "games", "chart", "drill", "sheet", "page")
_MODULE_SYNTAX = re.compile(r"^import .*$|^export \{.*\}$|^export (?=class |const )", re.MULTILINE)
_SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")
_XML_DECLARATION = re.compile(r"^<\?xml.*?\?>")
_SQUARES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"  # a1, b1, ..., h8
_DIGITS = 9  # of numbers in the page


# -- content -----------------------------------------------------------------------------------------------


def _score(value: Any, name: str) -> tuple[int, float]:
    """Check a number of games or positions, and a score."""
    count, score = checks.check_pair(value, name)
    return checks.check_integer(count, name, least=0), checks.check_number(score, name, least=0.0, most=1.0)


def _scores(value: Any, name: str) -> list[tuple[int, float]]:
    return [_score(each, name) for each in checks.check_instance(value, Sequence, name)]


def _texts(value: Any, name: str) -> dict[Any, str]:
    texts = checks.check_instance(value, Mapping, name).items()
    return {what: checks.check_instance(text, str, name) for what, text in texts}


@public
@dataclasses.dataclass(frozen=True)
class ReportMatch:
    """A player's result in a match, for the page; scores are its side's, in [0, 1].

    Attributes:
      player: its name, such as "the book".
      positions: number of its memorized positions.
      games: number of games.
      score: their mean.
      low: lower end of the 95 % interval of its expected score.
      high: upper end.
      promised: the expected score beforehand, or None.
      exits: (games, mean score) by the moves up to where they left the book.
    """

    player: PlainText
    positions: checks.NonNegativeInt
    games: checks.NonNegativeInt
    score: Share
    low: Share
    high: Share
    promised: Share | None = None
    exits: Mapping[_History, tuple[int, float]] = dataclasses.field(default_factory=dict)


def report_matches(
    made: Preparation, results: Mapping[str, MatchResult], rows: Sequence[Mapping[str, Any]] = ()
) -> list[ReportMatch]:
    """Return the results of matches for a page.

    Args:
      made: the preparation.
      results: by the player's name; "the book" is the preparation's own.
      rows: of other matches, as in the result.json of `precomp-games match`.

    Raises:
      ValueError, LookupError, TypeError: rows are of another kind.
    """
    shown = []
    for name, match in results.items():
        left = match.exit_scores(made.exits) if name == "the book" else ()
        exits = {row.exit.history: (row.games, row.score) for row in left if row.games}
        promised = made.utility if name == "the book" else None
        games, ends = len(match.games), match.interval
        shown.append(ReportMatch(name, len(match.book), games, match.score, *ends, promised, exits))
    names = [field.name for field in dataclasses.fields(ReportMatch) if field.name != "exits"]
    for row in (row for row in rows if row["side"] == made.side):
        passed = row["exits"] if row["player"] == "the book" else ()
        exits = {
            tuple(map(chess.Move.from_uci, each["after"])): _score((each["games"], each["score"]), "exits")
            for each in passed
            if each["games"]
        }
        shown.append(ReportMatch(**{name: row[name] for name in names}, exits=exits))
    return shown


@public
@dataclasses.dataclass(frozen=True)
class BookPage(Shown):
    """A preparation, with further content of a page, or of files for study.

    Attributes:
      made: the preparation. Replies' probabilities and scores are known if it has exits.
      expect: the expected outcome, in sentences; the page begins with it.
      notes: texts at positions, by the moves up to them.
      matches: results of the book and of others.
      sizes: (positions, utility) of the best book of each size, if they were computed.
      plots: SVG files that belong to the book, by title.
    """

    made: Preparation
    expect: PlainText = ""
    notes: Annotated[Mapping[_History, str], checks.Check(_texts)] = dataclasses.field(default_factory=dict)
    matches: Annotated[Sequence[ReportMatch], checks.each_of(ReportMatch)] = ()
    sizes: Annotated[Sequence[tuple[int, float]], checks.Check(_scores)] = ()
    plots: Annotated[Mapping[str, str], checks.Check(_texts)] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Clean the notes for display."""
        notes = {moves: plain_text(note) for moves, note in self.notes.items()}
        object.__setattr__(self, "notes", notes)

    @property
    def opponent(self) -> words.OpponentWords:
        """The opponent in words."""
        return words.OpponentWords(self.made.settings, self.made.engines[1])

    @property
    def facts(self) -> dict[str, str]:
        """The opponent and the engines of the preparation, by name."""
        made = self.made
        settings = made.settings
        ends = words.evaluation_words(settings, corrected=made.standard_error is not None)
        ends += ", of a run that had not finished" if made.unfinished else ""
        price = f"{words.points(settings.penalty)} points in 100 games for each position"
        if made.budget is not None:
            price = f"at most {made.budget} positions are learned"
        return {
            "Opponent": self.opponent.source,
            "The book's moves": plain_text(
                f"{made.engines[0]}, {words.limit_words(str(settings.analyst_limit))}"
            ),
            "Where lines end": ends,
            "What learning costs": price,
        }


BookPages = Annotated[Sequence[BookPage], checks.each_of(BookPage)]
"""Books of a page, or of files for study."""


@public
def write_report(path: checks.FilePath, books: BookPages, title: str = "Opening preparation") -> None:
    """Write a page about books, replacing `path` atomically; the same books give the same bytes.

    Args:
      path: the file.
      books: one or several, usually one a color.
      title: of the page.

    Raises:
      ValueError: a blank title, no books, or a plot that is no plain SVG file.
      OSError: as `atomic_write`.
    """
    script, style, sprites = _assets()
    page = template("page.html").render(
        title=shown_title(books, title),
        books=[_summary(each) for each in books],
        data=Markup(_embedded([_data(each) for each in books])),
        script=Markup(script),
        style=Markup(style),
        sprites=Markup(sprites),
        policy=policy(style, script),
    )
    with atomic_write(path) as file:
        file.write(page)


def shown_title(books: Sequence[BookPage], title: str) -> str:
    """Return the title of a page, or of files for study.

    Raises:
      ValueError: no title, or no books.
    """
    if not title.strip():
        raise ArgumentError(f"expected title to be a text, got {shown(title)}")
    if not books:
        raise ArgumentError("expected books to be BookPages, at least one, got none")
    return plain_text(title)


# -- data for the script -----------------------------------------------------------------------------------


def _data(each: BookPage) -> dict[str, Any]:
    """Return a book's data for the page's script."""
    made, book, sentences = each.made, each.made.book, BookSentences(each.made)
    parts = best_parts(book, made.gains)
    # Between one budget and the next: the positions that are added, or replaced by better ones.
    changes = [np.flatnonzero(more != less).tolist() for less, more in itertools.pairwise(parts)]
    curve = made.unprepared + parts @ np.array(made.gains, np.float64)
    return {
        "side": chess.COLOR_NAMES[book.side],
        "start": book.start.fen(),
        "scoreName": made.score_name,
        "opponent": plain_text(each.opponent.title, _LONGEST_NAME),
        "source": each.opponent.replies,
        "seen": words.SEEN,
        "guess": None if made.person is None else each.opponent.guess,
        "unseen": each.opponent.unseen,
        "byClock": made.clock is not None,
        "utility": _short(made.utility),
        "unprepared": _short(made.unprepared),
        "error": None if made.standard_error is None else _short(made.standard_error),
        "price": _short(_price(made)),
        "curve": list(map(_short, curve.tolist())),
        "sizes": [[size, _short(utility)] for size, utility in each.sizes],
        "changes": changes,
        "gains": list(map(_short, made.gains)),
        "positions": [
            _position_data(position, board, made.evaluations.get(position.history))
            | {"sentences": sentences.of_position(position, whole=False)}
            for position, board in zip(book.positions, book.boards, strict=True)
        ],
        "games": list(map(_game_data, made.listed_games)),
        "nodes": _node_data(each, made.listed_games),
    }


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def _price(made: Preparation) -> float:
    """Return the price of a position in `BookPosition.worth`.

    A worth is the gains of a position and of all that follow it, less a price for each of them.
    """
    positions, before = made.book.positions, predecessors(made.book)
    first = [each.worth for each, k in zip(positions, before, strict=True) if k == len(positions)]
    return (math.fsum(made.gains) - math.fsum(first)) / len(positions) if positions else 0.0


def _position_data(
    position: BookPosition, board: chess.Board, score: chess.engine.PovScore | None
) -> dict[str, Any]:
    others = [
        (move, board.san(move), _short(loss))
        for move, loss in sorted(position.others, key=lambda other: other[1])
        if board.is_legal(move)
    ]
    data = {
        "epd": board.epd(),
        "reach": _short(position.reach),
        "worth": _short(position.worth),
        "play": [
            [entry.move.uci(), board.san(entry.move), _short(entry.probability)]
            for entry in position.moves
            if entry.probability > 0.0
        ],
        "others": [[move.uci(), san, loss] for move, san, loss in others],
        "legal": "".join(_squares(move) for move in board.legal_moves),
        "why": words.why_words(position.reach, position.worth, [(san, loss) for _, san, loss in others]),
    }
    if score is not None:
        white = score.white()
        data["evaluation"] = white.score() if white.mate() is None else f"#{white.mate()}"
    return data


def _squares(move: chess.Move) -> str:
    return _SQUARES[move.from_square] + _SQUARES[move.to_square]


def _game_data(game: PlayedGame) -> list[Any]:
    """Return a game's players, year, result, moves in SAN, and squares, two characters a move."""
    board, sans, squares = chess.Board(), [], []
    for move in game.moves:
        if not board.is_legal(move):  # a result from elsewhere may contain anything
            break
        sans.append(board.san(move))
        # Under-promotions are recognized by their SAN.
        squares.append(_squares(move))
        board.push(move)
    white, black, result = map(plain_text, (game.white, game.black, game.result))
    return [white, black, game.year, result, " ".join(sans), "".join(squares)]


def _node_data(each: BookPage, listed: Mapping[PlayedGame, int]) -> dict[str, Any]:
    """Return the book's nodes by columns; rare properties are listed by the nodes' numbers."""
    index = {position.history: k for k, position in enumerate(each.made.book.positions)}
    played = {moves: score for match in each.matches for moves, score in match.exits.items()}
    columns: dict[str, list[Any]] = {name: [] for name in ("parent", "uci", "san", "mass", "value")}
    few: dict[str, dict[int, Any]] = {
        name: {} for name in ("position", "exit", "played", "note", "games", "name")
    }
    for number, (history, parent, san, node, value) in enumerate(book_nodes(each)):
        uci, worth = history[-1].uci() if history else "", None if value is None else _short(value)
        row = parent, uci, san, _short(node.mass), worth
        for column, value_there in zip(columns.values(), row, strict=True):
            column.append(value_there)
        behind = each.made.games.get(history)
        data = {
            "position": index.get(history),
            "exit": None if node.exit is None else int(node.exit.over),
            "played": played.get(history),
            "note": each.notes.get(history),
            "games": None if behind is None else [behind.count, *(listed[game] for game in behind.games)],
            "name": words.opening_name(node.board),
        }
        for name, fact in data.items():
            if fact is not None:
                few[name][number] = fact
    return columns | few


def book_nodes(each: BookPage) -> list[tuple[_History, int, str, Node, float | None]]:
    """Return the book's histories and exits, parents before children, the most reached child first.

    For each: the moves up to it, its parent's number, its move in SAN, its node, and its value: the sum of
    reach times expected score over the exits here or below, None if one is unknown.
    """
    found: list[tuple[_History, int, str, Node, float | None]] = []
    stack: list[tuple[_History, int, str, Node]] = [
        ((), -1, "", trie_with_exits(each.made.book, each.made.exits))
    ]
    while stack:
        history, _, _, node = place = stack.pop()
        number = len(found)
        found.append((*place, node.value if node.mass > 0.0 else None))
        children = sorted(node.children.items(), key=lambda item: (item[1].flow, item[0].uci()))
        stack += [((*history, move), number, node.board.san(move), child) for move, child in children]
    return found


# -- the page without its script ---------------------------------------------------------------------------


def _summary(each: BookPage) -> dict[str, Any]:
    """Return the content of the page without its script."""
    made, guesses = each.made, None
    if made.person is not None and made.book.positions:
        rest, added = made.guessed
        whole = math.fsum(made.gains)
        guesses = words.unseen_words(rest, len(set(made.places)), added, whole, each.opponent.unseen)
    title = plain_text(each.opponent.title, _LONGEST_NAME)
    gain, found = made.utility - made.unprepared, made.traps[:_MOST_TRAPS]
    versus = [words.versus_words(made.side, title, made.person)]
    if made.clock is not None:
        versus[made.person is not None :] = [words.worth_words(title, gain, made.clock, made.learned)]
    numbers = {history: k for k, (history, *_) in enumerate(book_nodes(each))} if found else {}
    return {
        "page": each,
        "made": made,
        "versus": versus,
        "gain": gain,
        "guesses": guesses,
        "unseen": each.opponent.unseen,
        "coverage": words.coverage_words(made.coverage),
        "traps": [(numbers[*trap.history, trap.reply], trap.parts(made.book.start)) for trap in found],
        "plots": [(plain_text(name), _picture(svg)) for name, svg in each.plots.items()],
    }


def _picture(svg: str) -> str:
    """Return the address of a picture that contains an SVG file."""
    if len(svg) > _MOST_PLOT or "<!ENTITY" in svg.upper():
        raise ArgumentError(f"expected plots as SVG of at most {_MOST_PLOT >> 20} MiB without entities")
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError) as error:
        raise ArgumentError(f"expected plots as SVG, got what cannot be read ({error})") from None
    if root.tag != "{http://www.w3.org/2000/svg}svg" or "viewBox" not in root.attrib:
        raise ArgumentError(f"expected plots as SVG with a viewBox, got {root.tag[:40]!r}")
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


# -- text and files ----------------------------------------------------------------------------------------


def _embedded(data: Any) -> str:
    """Return JSON for a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(style: str, script: str = "") -> str:
    """Return a content security policy for a page with only this style and this script."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    css, of_script = (f"'sha256-{each}'" for each in hashes)
    scripts = f"script-src {of_script}; " if script else ""
    return f"default-src 'none'; {scripts}style-src {css}; img-src data:; base-uri 'none'; form-action 'none'"


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a page's template, a file of the folder report_page."""
    loader = jinja2.FunctionLoader(lambda each: asset(f"report_page/{each}"))
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=loader
    )
    environment.filters |= {"points": words.points, "signed": words.signed_points}
    return environment.get_template(name)


@functools.cache
def _assets() -> tuple[str, str, str]:
    """Return the page's script and style, the board's before its own, and the board's pictures."""
    board = "vendor/cm-chessboard"
    modules = [_MODULE_SYNTAX.sub("", asset(f"{board}/src/{name}")) for name in _BOARD_MODULES]
    modules += [asset(f"report_page/{name}.js") for name in _PAGE_MODULES]
    script = '"use strict";\n(() => {\n' + "\n".join(modules) + "\n})();\n"
    styles = (f"{board}/assets/chessboard.css", f"{board}/assets/extensions/arrows/arrows.css")
    style = "\n".join(_SOURCE_MAP.sub("", asset(name)) for name in (*styles, "report_page/page.css"))
    pictures = (f"{board}/assets/pieces/standard.svg", f"{board}/assets/extensions/arrows/arrows.svg")
    return script, style, "\n".join(_XML_DECLARATION.sub("", asset(name)) for name in pictures)


def asset(name: str) -> str:
    """Return the text of a file that pages use."""
    return (pathlib.Path(__file__).parent / name).read_text(encoding="utf-8")
