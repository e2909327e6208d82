"""A page that shows books to people: one HTML file with a board, its lines, and what they are worth.

The file needs no network and no other file. Its scripts and styles stand in it, and a content security
policy names them by their hashes, so that nothing else in the file can run or load anything. Text from
outside (names, notes) is escaped, cut to a length that a page can show, and rid of characters that control
how text is laid out.

What the page shows of a smaller budget is the best part of the book (`best_parts`), worth what its gains
add up to. A book that was made for that budget may have other moves, and may be worth more.

Where the opponent's replies come from is told in words (`ReportBook.source`) and, where they are a person's,
by games (`reply_games`); the page shows both with them.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib.resources
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Annotated, Any

import chess
import chess.engine
import jinja2
import numpy as np
from markupsafe import Markup

from precomp_games._support.arguments import (
    FilePath,
    Ge,
    Le,
    NonNegativeFloat,
    NonNegativeInt,
    each_of,
    public,
)
from precomp_games._support.checks import (
    ArgumentError,
    check_integer,
    check_number,
    check_numbers,
    check_pair,
    shown,
)
from precomp_games._support.files import atomic_write
from precomp_games._support.messages import plain_text
from precomp_games._support.results import Shown
from precomp_games.chess.books.book import Book, BookExit, BookPosition, Exits, Node, trie_with_exits
from precomp_games.chess.opponents.played import PlayedGame, ReplyGames
from precomp_games.chess.play.match import MatchResult
from precomp_games.chess.preparation.best_parts import best_parts
from precomp_games.chess.preparation.preparation import Neighbor, Preparation
from precomp_games.chess.study.plots import embedded_plot

_LONGEST_NAME = 80  # characters of what a score is called
# In an order in which each has what it needs; `import` and `export` lines are left out.
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
_MODULE_SYNTAX = re.compile(r"^import .*$|^export \{.*\}$|^export (?=class |const )", re.MULTILINE)
_SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")
_XML_DECLARATION = re.compile(r"^<\?xml.*?\?>")


_Share = Annotated[float, Ge(0.0), Le(1.0)]


@public
@dataclasses.dataclass(frozen=True)
class ReportMatch:
    """How one player did in a match, in the words and numbers of the page; scores are its side's, in [0, 1].

    Attributes:
      player: its name, such as "the book".
      positions: how many it had memorized.
      games: how many it played.
      score: their mean.
      low: lower end of the 95 % interval of its expected score.
      high: upper end.
      promised: what was expected beforehand, or None.
    """

    player: str
    positions: NonNegativeInt
    games: NonNegativeInt
    score: _Share
    low: _Share
    high: _Share
    promised: _Share | None = None


@public
@dataclasses.dataclass(frozen=True)
class ReportBook(Shown):
    """A book, and what there is to say of it; utilities are its side's, in [0, 1].

    Attributes:
      book: the book.
      gains: of each of its positions, what knowing it adds to knowing those before it, in all games.
      utility: what the book promises.
      unprepared: what there is without it.
      standard_error: of `utility`, where it comes from games.
      exits: where games leave the book, as `book_exits` gives them. Replies and scores are known from these.
      score_name: what such a score is, such as "Expected score" or "Analyst's score".
      source: where the replies' probabilities come from, in words.
      facts: what was prepared with and against, by name.
      notes: texts at positions, by the moves up to them.
      matches: how it and others did.
      neighbors: how it did against opponents near the model.
      played: (games, mean score) of a match's games, by the moves up to where they left the book.
      games: in which the opponent's replies were played, by the moves up to the reply and with it.
      evaluations: of the analyst, by the moves up to the position; only exports have them.
      plots: SVG files that belong to the book, by what they show.
    """

    book: Book
    gains: Sequence[float]
    utility: _Share
    unprepared: _Share
    standard_error: NonNegativeFloat | None = None
    exits: Exits = ()
    score_name: str = "Expected score"
    source: str = ""
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Mapping[tuple[chess.Move, ...], str] = dataclasses.field(default_factory=dict)
    matches: Annotated[Sequence[ReportMatch], each_of(ReportMatch)] = ()
    neighbors: Annotated[Sequence[Neighbor], each_of(Neighbor)] = ()
    played: Mapping[tuple[chess.Move, ...], tuple[int, float]] = dataclasses.field(default_factory=dict)
    games: Mapping[tuple[chess.Move, ...], ReplyGames] = dataclasses.field(default_factory=dict)
    evaluations: Mapping[tuple[chess.Move, ...], chess.engine.PovScore] = dataclasses.field(
        default_factory=dict
    )
    plots: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what a page could not show."""
        gains = check_numbers(self.gains, len(self.book), "gains")
        object.__setattr__(self, "gains", tuple(gains.tolist()))
        played = {}
        for moves, found in self.played.items():
            games, score = check_pair(found, "played")
            games = check_integer(games, "played", least=1)
            played[moves] = (games, check_number(score, "played", least=0.0, most=1.0))
        object.__setattr__(self, "played", played)
        kinds = {"facts": str, "notes": str, "plots": str}
        for name, kind in (kinds | {"games": ReplyGames, "evaluations": chess.engine.PovScore}).items():
            given = getattr(self, name)
            if not all(isinstance(value, kind) for value in given.values()):
                raise ArgumentError(f"expected {name} to have {kind.__name__}s, got {shown(given)}")
        for text in (*self.facts, *self.plots):
            if not isinstance(text, str):
                raise ArgumentError(f"expected names of facts and plots to be texts, got {shown(text)}")


@public
def report_book(
    preparation: Preparation,
    matches: Mapping[str, MatchResult] | None = None,
    rows: Annotated[Sequence[Mapping[str, Any]], each_of(Mapping)] = (),
    notes: Mapping[tuple[chess.Move, ...], str] | None = None,
    plots: Mapping[str, str] | None = None,
) -> ReportBook:
    """What a page and exports show of a preparation.

    Args:
      preparation: the preparation.
      matches: that were played, by the player's name; "the book" is its own.
      rows: of matches, as the result.json of `precomp-games match` has them.
      notes: texts at positions, by the moves up to them.
      plots: SVG files, by what they show.

    Raises:
      ValueError, LookupError, TypeError: rows are of another kind, or what there is to show is.
    """
    settings, book = preparation.settings, preparation.book
    played: dict[tuple[chess.Move, ...], tuple[int, float]] = {}
    shown = []
    for name, match in (matches or {}).items():
        own = name == "the book"
        promised = preparation.utility if own else None
        games, (low, high) = len(match.games), match.interval
        shown.append(ReportMatch(name, len(match.book), games, match.score, low, high, promised))
        if own:
            scores = match.exit_scores(preparation.exits)
            played |= {row.exit.history: (row.games, row.score) for row in scores if row.games}
    for row in (row for row in rows if row["side"] == preparation.side):
        shown.append(ReportMatch(*(row[field.name] for field in dataclasses.fields(ReportMatch))))
        if row["player"] == "the book":
            exits = (each for each in row["exits"] if each["games"])
            played |= {
                tuple(map(chess.Move.from_uci, each["after"])): (each["games"], each["score"])
                for each in exits
            }
    budget = preparation.budget
    replies = settings.opponent_replies(preparation.engines[1])
    corrected = ", corrected by games" if preparation.standard_error is not None else ""
    corrected += ", of a run that had not finished" if preparation.search.get("unfinished") else ""
    return ReportBook(
        book,
        gains=preparation.gains,
        utility=preparation.utility,
        unprepared=preparation.unprepared,
        standard_error=preparation.standard_error,
        exits=preparation.exits,
        score_name=preparation.score_name,
        source=replies,
        facts={
            "Opponent": replies,
            "The book's moves": f"{preparation.engines[0]}, {settings.analyst_limit}",
            "Where lines end": f"{settings.evaluation} evaluation{corrected}",
            "Memory": f"{settings.penalty:g} of a game a position"
            if budget is None
            else f"at most {budget} positions",
        },
        notes=notes or {},
        matches=shown,
        neighbors=preparation.neighbors,
        played=played,
        games=preparation.games,
        evaluations=preparation.evaluations,
        plots=plots or {},
    )


ReportBooks = Annotated[Sequence[ReportBook], each_of(ReportBook)]
"""Books that a page, or files to study with, are about."""


@public
def write_report(path: FilePath, books: ReportBooks, title: str = "Opening preparation") -> None:
    """Writes a page about books, replacing `path` atomically; the same books give the same bytes.

    Args:
      path: the file.
      books: one or several, usually one a color.
      title: of the page.

    Raises:
      ValueError: no path or title, no books, or a plot that is no plain SVG file.
      OSError: as `atomic_write`.
    """
    books, title = shown_books(books, title)
    data = [_data(each) for each in books]
    script, style, sprites = _assets()
    page = _template().render(
        title=title,
        books=[_summary(each) for each in books],
        data=Markup(_embedded(data)),
        script=Markup(script),
        style=Markup(style),
        sprites=Markup(sprites),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
    )
    with atomic_write(path) as file:
        file.write(page)


# -- what is checked ---------------------------------------------------------------------------------------


def shown_books(books: ReportBooks, title: str) -> tuple[list[ReportBook], str]:
    """What a page, or files to study with, are about and called, with all texts as they are shown.

    Raises:
      ValueError: no title, or no books.
    """
    if not title.strip():
        raise ArgumentError(f"expected title to be a text, got {shown(title)}")
    if not books:
        raise ArgumentError("expected books to be ReportBooks, at least one, got none")
    return [_plain(each) for each in books], plain_text(title)


def _plain(each: ReportBook) -> ReportBook:
    """A book whose texts are rid of what cannot be shown; nothing else in it comes from outside as text."""
    games = {
        history: ReplyGames(
            found.count,
            tuple(
                PlayedGame(plain_text(game.white), plain_text(game.black), game.year, plain_text(game.result))
                for game in found.games
            ),
        )
        for history, found in each.games.items()
    }
    return dataclasses.replace(
        each,
        score_name=plain_text(each.score_name, _LONGEST_NAME),
        source=plain_text(each.source),
        facts={plain_text(name): plain_text(value) for name, value in each.facts.items()},
        notes={history: plain_text(note) for history, note in each.notes.items()},
        matches=[dataclasses.replace(match, player=plain_text(match.player)) for match in each.matches],
        neighbors=[dataclasses.replace(near, name=plain_text(near.name)) for near in each.neighbors],
        games=games,
        plots={plain_text(name): svg for name, svg in each.plots.items()},
    )


# -- what the page knows -----------------------------------------------------------------------------------


def _data(each: ReportBook) -> dict[str, Any]:
    """What the page's script reads of a book."""
    book = each.book
    parts = best_parts(book, each.gains)
    # Between one budget and the next: the positions that come in, or go for better ones.
    changes = [np.flatnonzero(more != less).tolist() for less, more in itertools.pairwise(parts)]
    # A game is behind several replies, and is told once.
    listed: dict[PlayedGame, int] = {}
    for behind in each.games.values():
        for game in behind.games:
            listed.setdefault(game, len(listed))
    return {
        "side": chess.COLOR_NAMES[book.side],
        "scoreName": each.score_name,
        "source": each.source,
        "utility": each.utility,
        "unprepared": each.unprepared,
        "error": each.standard_error,
        "price": _price(each),
        "curve": (each.unprepared + parts @ np.array(each.gains, np.float64)).tolist(),
        "changes": changes,
        "gains": [float(gain) for gain in each.gains],
        "positions": list(map(_position_data, book.positions, book.boards)),
        "games": [[game.white, game.black, game.year, game.result] for game in listed],
        "nodes": [
            node | {"games": [found.count, *(listed[game] for game in found.games)]}
            if (found := each.games.get(history)) is not None
            else node
            for history, node in book_nodes(each)
        ],
    }


def _price(each: ReportBook) -> float:
    """What a position costs in `BookPosition.worth`.

    A worth is the gains of a position and of all that follow it, less a price for each of them.
    """
    known = {position.history for position in each.book.positions}
    first = [
        position.worth
        for position in each.book.positions
        if not any(position.history[:ply] in known for ply in range(len(position.history)))
    ]
    return (math.fsum(each.gains) - math.fsum(first)) / len(known) if known else 0.0


def _position_data(position: BookPosition, board: chess.Board) -> dict[str, Any]:
    return {
        "reach": position.reach,
        "worth": position.worth,
        "play": [
            [entry.move.uci(), board.san(entry.move), entry.probability]
            for entry in position.moves
            if entry.probability > 0.0
        ],
        "others": [
            [move.uci(), board.san(move), loss]
            for move, loss in sorted(position.others, key=lambda other: other[1])
            if board.is_legal(move)
        ],
    }


def book_nodes(each: ReportBook) -> list[tuple[tuple[chess.Move, ...], dict[str, Any]]]:
    """The book's histories and exits, parents before children, the most reached child first.

    Each comes with the moves up to it, and has its parent's number, move, position, mass (the reach of the
    exits here or below), and value (the sum of their reaches times what is promised there; None where that is
    unknown).
    """
    index = {position.history: k for k, position in enumerate(each.book.positions)}
    found: list[dict[str, Any]] = []
    histories: list[tuple[chess.Move, ...]] = []
    values: list[float | None] = []
    stack: list[tuple[Node, int, tuple[chess.Move, ...], str]] = [
        (trie_with_exits(each.book, each.exits), -1, (), "")
    ]
    while stack:
        node, parent, history, san = stack.pop()
        number = len(found)
        told: dict[str, Any] = {"parent": parent, "fen": node.board.fen(), "mass": node.mass}
        if history:
            told |= {"uci": history[-1].uci(), "san": san}
        if history in index:
            told["position"] = index[history]
        if node.exit is not None:
            told["exit"] = {"over": node.exit.over, "promised": node.exit.promised}
        if history in each.played:
            told["played"] = list(each.played[history])
        if history in each.notes:
            told["note"] = each.notes[history]
        found.append(told)
        histories.append(history)
        values.append(_own_value(node.exit))
        children = sorted(node.children.items(), key=lambda item: (item[1].flow, item[0].uci()))
        stack += [(child, number, (*history, move), node.board.san(move)) for move, child in children]
    for number in range(len(found) - 1, 0, -1):
        parent, value = found[number]["parent"], values[number]
        total = values[parent]
        values[parent] = None if value is None or total is None else total + value
    for told, value in zip(found, values, strict=True):
        told["value"] = value if told["mass"] > 0.0 else None
    return list(zip(histories, found, strict=True))


def _own_value(exit: BookExit | None) -> float | None:
    """What games that leave here add to the value."""
    if exit is None or exit.reach == 0.0:
        return 0.0
    return None if exit.promised is None else exit.reach * exit.promised


def _summary(each: ReportBook) -> dict[str, Any]:
    """What stands in the page without any script."""
    side = chess.COLOR_NAMES[each.book.side]
    return {
        "side": side,
        "size": len(each.book),
        "distinct": each.book.distinct_positions,
        "score_name": each.score_name,
        "utility": each.utility,
        "unprepared": each.unprepared,
        "error": each.standard_error,
        "facts": list(each.facts.items()),
        "matches": each.matches,
        "neighbors": each.neighbors,
        "plots": [
            (name, embedded_plot(svg, name, f"{side}-plot-{k}-"))
            for k, (name, svg) in enumerate(each.plots.items())
        ],
    }


# -- text and files ----------------------------------------------------------------------------------------


def _embedded(data: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_file("report_page/page.html"))


@functools.cache
def _assets() -> tuple[str, str, str]:
    """The page's script and style, the board's before its own, and the board's pictures."""
    board = "vendor/cm-chessboard"
    modules = (_MODULE_SYNTAX.sub("", _file(f"{board}/src/{name}")) for name in _BOARD_MODULES)
    script = '"use strict";\n(() => {\n' + "\n".join((*modules, _file("report_page/page.js"))) + "\n})();\n"
    styles = (f"{board}/assets/chessboard.css", f"{board}/assets/extensions/arrows/arrows.css")
    style = "\n".join(_SOURCE_MAP.sub("", _file(name)) for name in (*styles, "report_page/page.css"))
    pictures = (f"{board}/assets/pieces/standard.svg", f"{board}/assets/extensions/arrows/arrows.svg")
    return script, style, "\n".join(_XML_DECLARATION.sub("", _file(name)) for name in pictures)


def _file(name: str) -> str:
    folder: Traversable = importlib.resources.files("precomp_games.chess.study")
    return folder.joinpath(*name.split("/")).read_text(encoding="utf-8")
