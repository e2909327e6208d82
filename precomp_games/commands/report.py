r"""Makes a page of a book: a board, its lines, what they are worth, and what a smaller book is worth.

  precomp-games report --from=output/chess_preparation --output_dir=output/book_report

shows the book of `precomp-games prepare` in that folder, or both of `precomp-games opponent`; --from may be
repeated, for a folder of each color.

  precomp-games report --book=mine.pgn

makes studies for Lichess of any repertoire, with its comments, in chapters of a size that Lichess takes.

--match_dir adds promises and scores of a match by `precomp-games match`, --notes the comments of a PGN file,
at the positions of its games, --games the games in which --player played the opponent's replies, and --plot a
plot, such as sizes.svg of examples/book_size.py.

Writes report.html, one file without anything to load: it opens from the disk, on a phone too. With
--export=lichess,pgn,anki,csv also files to study with.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import chess
import chess.pgn
from absl import flags

from precomp_games._support.files import read_json
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.data.movetext import Standard, standard
from precomp_games.chess.data.pgn_files import GameReport, game_texts
from precomp_games.chess.model.played import reply_games
from precomp_games.chess.study.exports import write_studies
from precomp_games.chess.study.page import BookPage, report_matches
from precomp_games.commands import _app, _chess, _flags

_MOST_NOTES = 2**22  # bytes; a game with all its variations is in memory, a hundred times as large
_MOST_PLIES = 1000
_MOST_PLOT = 2**20


@dataclasses.dataclass
class Flags:
    """Flags of what else the page shows.

    Attributes:
      output_dir: Where files go.
      match_dir: Output folder of `precomp-games match`, for a match of these books.
      notes: PGN file whose comments are shown at its games' positions.
      games: PGN file of the opponent's games, to list with its replies.
      player: The opponent's name in --games. Default: everybody.
      plot: SVG file of a plot to show; may be repeated.
    """

    output_dir: str = "output/book_report"
    match_dir: str | None = None
    notes: str | None = None
    games: str | None = None
    player: str | None = None
    plot: _flags.Repeated = ()


def define(own: flags.FlagValues) -> None:
    """Define the flags."""
    _flags.define_flags(own, _chess.FolderFlags, _chess.ShowingFlags, Flags, report=True)


def run(given: flags.FlagValues) -> None:
    """Make the page that the flags ask for."""
    _chess.check_exports(given.export)
    if given.book:
        _write_own(given)
        return
    books = _read_books(given, _chess.earlier_runs(given))
    _chess.write_books(given, _app.output_folder(given.output_dir), books)


def _write_own(given: flags.FlagValues) -> None:
    """Write studies of the book of --book, whose worth is unknown."""
    _chess.check_alone(given)
    for name in given.export:
        if name != "lichess":
            others = "precomp-games judge --book --export makes the others"
            raise ValueError(f"--export: expected lichess with --book ({others}), got {name!r}")
    book = _chess.own_book(given)
    print(f"{'Book':<20}{book.report}")
    files = [path for path in given.book if not path.lower().endswith(".bin")]
    games = (game for path in files for game in _read_games("book", path))
    folder, side = _app.output_folder(given.output_dir), chess.COLOR_NAMES[book.side].capitalize()
    names = write_studies(folder, book.by_lines(), f"{side}'s repertoire", games)
    print(f"For study: {', '.join(f'{folder}/{name}' for name in names)}")


def _read_match(folder: str) -> list[dict[str, Any]]:
    """Read the matches that `precomp-games match` wrote."""
    path = pathlib.Path(folder) / "result.json"
    try:
        return list(read_json(path)["matches"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(repr(error).split())[:300]
        raise ValueError(
            f"--match_dir: expected an output folder of `precomp-games match`, got {folder!r} ({reason})"
        ) from None


def _read_notes(path: str) -> dict[tuple[chess.Move, ...], str]:
    """Read the comments of a PGN file's games, by the moves from the usual start or the game's own."""
    notes: dict[tuple[chess.Move, ...], str] = {}
    games = 0
    for game in _read_games("notes", path):
        games += 1
        # With the nodes before each, in its line: no line is longer than the games.
        nodes: list[tuple[chess.pgn.GameNode, int]] = [(game, 0)]
        while nodes:
            node, plies = nodes.pop()
            if node.comment:
                history = _moves_to(node)
                notes[history] = "\n".join(filter(None, (notes.get(history), node.comment)))
            if plies < _MOST_PLIES:
                nodes += [(child, plies + 1) for child in node.variations]
    if not games:
        raise ValueError(f"--notes: expected a PGN file with games, got {path!r}")
    return notes


def _read_games(flag: str, path: str) -> Iterator[chess.pgn.Game]:
    """Yield the games of a PGN file that a flag names."""
    if os.path.getsize(path) > _MOST_NOTES:
        raise ValueError(f"--{flag}: expected a PGN file of at most {_MOST_NOTES >> 20} MiB, got {path!r}")
    for text in game_texts(path, GameReport()):
        yield from filter(None, map(_read_game, standard(text.text, text.languages)))


def _read_game(game: Standard) -> chess.pgn.Game | None:
    """Read a game; None if there is none, or if it cannot be read."""
    try:
        return chess.pgn.read_game(io.StringIO(game.text))
    except (ValueError, LookupError, AssertionError, AttributeError, RecursionError):  # what odd games end in
        return None


def _moves_to(node: chess.pgn.GameNode) -> tuple[chess.Move, ...]:
    """Return the moves from a game's start to a node."""
    moves = []
    above: chess.pgn.GameNode | None = node
    while above is not None and above.move is not None:
        moves.append(above.move)
        above = above.parent
    return tuple(reversed(moves))


def _read_plot(path: str | os.PathLike[str]) -> str:
    """Read an SVG file."""
    if os.path.getsize(path) > _MOST_PLOT:
        raise ValueError(f"--plot: expected SVG of at most {_MOST_PLOT >> 20} MiB, got {os.fspath(path)!r}")
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def _read_books(given: flags.FlagValues, runs: Sequence[_chess.Earlier]) -> list[BookPage]:
    """Read the books of earlier runs, with the matches, notes and plots that the flags add."""
    rows = _read_match(given.match_dir) if given.match_dir else []
    notes = _read_notes(given.notes) if given.notes else {}
    shared = {pathlib.Path(path).stem: _read_plot(path) for path in given.plot}
    books = []
    for folder, made in runs:
        sizes = _chess.sizes_of(folder, made)
        try:
            matches = report_matches(made, {}, rows)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"--from, --match_dir: expected results as the examples write them, got {error!r}"
            ) from None
        if given.games is not None:
            read = GameReport()
            meant = GameSelection(given.games, given.player)
            games, person = reply_games(made.book, meant, exits=made.exits, report=read)
            print(f"Games behind replies: {read}")
            made = dataclasses.replace(made, games=games, person=person)
        books.append(BookPage(made, notes=notes, matches=matches, sizes=sizes, plots=shared))
    return books
