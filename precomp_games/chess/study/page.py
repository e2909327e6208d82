"""The text of a page about books: what its script reads, what stands there without one, and its files.

A game that is behind several replies is told once. Positions are not: the script plays the moves.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import chess
import chess.engine
import jinja2
import numpy as np
from markupsafe import Markup

from precomp_games.chess.books.book import BookExit, BookPosition, Node, trie_with_exits
from precomp_games.chess.opponents.played import PlayedGame, rests_on_guesses
from precomp_games.chess.preparation.preparation import best_parts
from precomp_games.chess.study.openings import opening_name
from precomp_games.chess.study.plots import embedded_plot
from precomp_games.chess.study.words import (
    GLOSSARY,
    SEEN,
    guesses_words,
    points,
    versus_words,
    why_words,
)

if TYPE_CHECKING:
    from precomp_games.chess.study.report import ReportBook

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
_PAGE_MODULES = ("rules", "schedule", "tree", "here", "lines", "games", "chart", "drill", "sheet", "page")
_MODULE_SYNTAX = re.compile(r"^import .*$|^export \{.*\}$|^export (?=class |const )", re.MULTILINE)
_SOURCE_MAP = re.compile(r"/\*# sourceMappingURL=.*?\*/")
_XML_DECLARATION = re.compile(r"^<\?xml.*?\?>")
_SQUARES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"  # a1, b1, ..., h8
_DIGITS = 9  # of numbers in the page


def page_text(books: Sequence[ReportBook], title: str) -> str:
    """The page; the same books give the same text.

    Raises:
      ValueError: a plot that is no plain SVG file.
    """
    script, style, sprites = _assets()
    data = [_data(each) for each in books]
    return _template().render(
        title=title,
        books=[_summary(each) for each in books],
        glossary=GLOSSARY,
        data=Markup(_embedded(data)),
        script=Markup(script),
        style=Markup(style),
        sprites=Markup(sprites),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
    )


# -- what the script reads ---------------------------------------------------------------------------------


def _data(each: ReportBook) -> dict[str, Any]:
    """What the page's script reads of a book."""
    book = each.book
    parts = best_parts(book, each.gains)
    # Between one budget and the next: the positions that come in, or go for better ones.
    changes = [np.flatnonzero(more != less).tolist() for less, more in itertools.pairwise(parts)]
    listed: dict[PlayedGame, int] = {}
    for behind in each.games.values():
        for game in behind.games:
            listed.setdefault(game, len(listed))
    curve = each.unprepared + parts @ np.array(each.gains, np.float64)
    return {
        "side": chess.COLOR_NAMES[book.side],
        "start": book.start.fen(),
        "scoreName": each.score_name,
        "opponent": each.opponent,
        "source": each.source,
        "seen": SEEN,
        "guess": None if each.person is None else each.guess,
        "utility": _short(each.utility),
        "unprepared": _short(each.unprepared),
        "error": None if each.standard_error is None else _short(each.standard_error),
        "price": _short(_price(each)),
        "curve": list(map(_short, curve.tolist())),
        "sizes": [[size, _short(utility)] for size, utility in each.sizes],
        "changes": changes,
        "gains": list(map(_short, each.gains)),
        "positions": [
            _position_data(position, board, each.evaluations.get(position.history))
            for position, board in zip(book.positions, book.boards, strict=True)
        ],
        "games": list(map(_game_data, listed)),
        "nodes": _node_data(each, listed),
    }


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


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


def _position_data(
    position: BookPosition, board: chess.Board, score: chess.engine.PovScore | None
) -> dict[str, Any]:
    others = [
        (move, board.san(move), _short(loss))
        for move, loss in sorted(position.others, key=lambda other: other[1])
        if board.is_legal(move)
    ]
    told = {
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
        "why": why_words(position.reach, position.worth, [(san, loss) for _, san, loss in others]),
    }
    if score is not None:
        white = score.white()
        told["evaluation"] = white.score() if white.mate() is None else f"#{white.mate()}"
    return told


def _squares(move: chess.Move) -> str:
    return _SQUARES[move.from_square] + _SQUARES[move.to_square]


def _game_data(game: PlayedGame) -> list[Any]:
    """A game: who, when, how it ended, its moves in SAN, and their squares, two characters a move."""
    board, sans, squares = chess.Board(), [], []
    for move in game.moves:
        if not board.is_legal(move):  # a result from elsewhere may say anything
            break
        sans.append(board.san(move))
        # Under-promotions are told by their SAN.
        squares.append(_squares(move))
        board.push(move)
    return [game.white, game.black, game.year, game.result, " ".join(sans), "".join(squares)]


def _node_data(each: ReportBook, listed: Mapping[PlayedGame, int]) -> dict[str, Any]:
    """The book's nodes, column by column; what few of them have stands by their numbers."""
    columns: dict[str, Any] = {name: [] for name in ("parent", "uci", "san", "mass", "value")}
    few: dict[str, dict[int, Any]] = {
        name: {} for name in ("position", "exit", "played", "note", "games", "name")
    }
    for number, (history, node) in enumerate(book_nodes(each)):
        columns["parent"].append(node["parent"])
        columns["uci"].append(node.get("uci", ""))
        columns["san"].append(node.get("san", ""))
        columns["mass"].append(_short(node["mass"]))
        columns["value"].append(None if node["value"] is None else _short(node["value"]))
        for name in ("position", "played", "note"):
            if name in node:
                few[name][number] = node[name]
        if "exit" in node:
            few["exit"][number] = int(node["exit"]["over"])
        if (opening := opening_name(node["board"])) is not None:
            few["name"][number] = opening
        if (found := each.games.get(history)) is not None:
            few["games"][number] = [found.count, *(listed[game] for game in found.games)]
    return columns | few


def book_nodes(each: ReportBook) -> list[tuple[tuple[chess.Move, ...], dict[str, Any]]]:
    """The book's histories and exits, parents before children, the most reached child first.

    Each comes with the moves up to it, and has its parent's number, board, move, position, mass (the reach of
    the exits here or below), and value (the sum of their reaches times what is promised there; None where
    that is unknown).
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
        told: dict[str, Any] = {"parent": parent, "board": node.board, "mass": node.mass}
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


# -- what stands in the page without its script ------------------------------------------------------------


def _summary(each: ReportBook) -> dict[str, Any]:
    side = chess.COLOR_NAMES[each.book.side]
    summary = {
        "side": side,
        "expect": each.expect,
        "versus": versus_words(side, each.opponent, each.person),
        "size": len(each.book),
        "distinct": each.book.distinct_positions,
        "score_name": each.score_name,
        "gain": points(abs(each.utility - each.unprepared)),
        "more": "more" if each.utility >= each.unprepared else "fewer",
        "utility": points(each.utility),
        "unprepared": points(each.unprepared),
        "error": None if each.standard_error is None else points(each.standard_error),
        "guesses": None,
        "facts": list(each.facts.items()),
        "matches": [
            {
                "player": match.player,
                "positions": match.positions,
                "games": match.games,
                "promised": None if match.promised is None else points(match.promised),
                "score": points(match.score),
                "low": points(match.low),
                "high": points(match.high),
                "at": [round(100.0 * value, 1) for value in (match.low, match.score, match.high)],
                "promised_at": None if match.promised is None else round(100.0 * match.promised, 1),
            }
            for match in each.matches
        ],
        "neighbors": each.neighbors,
        "plots": [
            (name, embedded_plot(svg, name, f"{side}-plot-{k}-"))
            for k, (name, svg) in enumerate(each.plots.items())
        ],
    }
    if each.person is not None and each.book.positions:
        guessed = rests_on_guesses(each.book, each.games)
        share = math.fsum(gain for gain, is_guess in zip(each.gains, guessed, strict=True) if is_guess)
        summary["guesses"] = guesses_words(sum(guessed), len(guessed), share, math.fsum(each.gains))
    return summary


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
    environment.filters["points"] = points
    return environment.from_string(_file("report_page/page.html"))


@functools.cache
def _assets() -> tuple[str, str, str]:
    """The page's script and style, the board's before its own, and the board's pictures."""
    board = "vendor/cm-chessboard"
    modules = [_MODULE_SYNTAX.sub("", _file(f"{board}/src/{name}")) for name in _BOARD_MODULES]
    modules += [_file(f"report_page/{name}.js") for name in _PAGE_MODULES]
    script = '"use strict";\n(() => {\n' + "\n".join(modules) + "\n})();\n"
    styles = (f"{board}/assets/chessboard.css", f"{board}/assets/extensions/arrows/arrows.css")
    style = "\n".join(_SOURCE_MAP.sub("", _file(name)) for name in (*styles, "report_page/page.css"))
    pictures = (f"{board}/assets/pieces/standard.svg", f"{board}/assets/extensions/arrows/arrows.svg")
    return script, style, "\n".join(_XML_DECLARATION.sub("", _file(name)) for name in pictures)


def _file(name: str) -> str:
    folder: Traversable = importlib.resources.files("precomp_games.chess.study")
    return folder.joinpath(*name.split("/")).read_text(encoding="utf-8")
