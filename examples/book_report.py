r"""What is in a book? Makes a page of it: a board, its lines, what they are worth, what a budget leaves.

  python examples/book_report.py --book_dir=output/chess_preparation --output_dir=output/book_report

shows the book of examples/chess_preparation.py in that folder; without --book_dir it prepares one first, by
the flags of that example, and --book_dir may be repeated for a book of the other color. --match_dir adds
what was promised and scored in a match of examples/book_match.py, --notes the comments of a PGN file, at the
positions that its games go through, --games the games in which --player played the opponent's replies, and
--plot a plot, such as sizes.svg of examples/book_size.py.

Writes report.html, one file without anything to load: it opens from the disk, on a phone too. With
--export=lichess,pgn,anki,csv also files to study with.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, TextIO

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess
import chess.pgn
import chess_preparation
import chess_runs
import preparation_results
from absl import flags

from precomp_games.chess import ReportBook, reply_games

_MOST_NOTES = 2**22  # bytes; a game with all its variations is in memory, a hundred times as large
_MOST_PLIES = 1000
_MOST_PLOT = 2**20

FLAGS = flags.FLAGS
_BOOK_DIR = flags.DEFINE_multi_string(
    "book_dir", [], "Output folder of chess_preparation.py; may be repeated, once a color."
)
_MATCH_DIR = flags.DEFINE_string(
    "match_dir", None, "Output folder of book_match.py, for a match of these books."
)
_NOTES = flags.DEFINE_string("notes", None, "PGN file whose comments are shown at its games' positions.")
_GAMES = flags.DEFINE_string(
    "games", None, "PGN file of the opponent's games, which are listed behind its replies."
)
_PLAYER = flags.DEFINE_string("player", None, "Who the opponent is in --games. Default: everybody.")
_PLOTS = flags.DEFINE_multi_string("plot", [], "SVG file of a plot to show; may be repeated.")
for _flag in ("side", "r", "budget", "menu", "play_budget", "output_dir", "export"):
    flags.declare_key_flag(_flag)
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(chess_runs)
FLAGS.set_default("output_dir", "output/book_report")
FLAGS.set_default("report", True)


def read_match(folder: str) -> list[dict[str, Any]]:
    """The matches that book_match.py wrote."""
    path = pathlib.Path(folder) / "result.json"
    try:
        return list(json.loads(path.read_text(encoding="utf-8"))["matches"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        told = " ".join(repr(error).split())[:300]
        raise ValueError(
            f"--match_dir: expected an output folder of book_match.py, got {folder!r} ({told})"
        ) from None


def read_notes(path: str) -> dict[tuple[chess.Move, ...], str]:
    """The comments of a PGN file's games from the usual start or their own, by the moves up to them."""
    if os.path.getsize(path) > _MOST_NOTES:
        raise ValueError(f"--notes: expected a PGN file of at most {_MOST_NOTES >> 20} MiB, got {path!r}")
    notes: dict[tuple[chess.Move, ...], str] = {}
    games = 0
    with open(path, encoding="utf-8", errors="replace") as file:
        while (game := _read_game(file)) is not None:
            games += 1
            # With the nodes before each, in its line: what is looked at is no longer than games are.
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


def _read_game(file: TextIO) -> chess.pgn.Game | None:
    """The next game; None where there is none, and where the rest cannot be read."""
    try:
        return chess.pgn.read_game(file)
    except (ValueError, LookupError, AssertionError, AttributeError, RecursionError):  # what odd games end in
        return None


def _moves_to(node: chess.pgn.GameNode) -> tuple[chess.Move, ...]:
    """The moves from a game's start to a node."""
    moves = []
    above: chess.pgn.GameNode | None = node
    while above is not None and above.move is not None:
        moves.append(above.move)
        above = above.parent
    return tuple(reversed(moves))


def read_plot(path: str | os.PathLike[str]) -> str:
    """An SVG file."""
    if os.path.getsize(path) > _MOST_PLOT:
        raise ValueError(f"--plot: expected SVG of at most {_MOST_PLOT >> 20} MiB, got {os.fspath(path)!r}")
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def read_books() -> list[ReportBook]:
    """What the folders of the flags have."""
    rows = read_match(_MATCH_DIR.value) if _MATCH_DIR.value else []
    notes = read_notes(_NOTES.value) if _NOTES.value else {}
    shared = {pathlib.Path(path).stem: read_plot(path) for path in _PLOTS.value}
    if _MATCH_DIR.value and (pathlib.Path(_MATCH_DIR.value) / "match.svg").is_file():
        shared = {"Scores": read_plot(pathlib.Path(_MATCH_DIR.value) / "match.svg")} | shared
    books = []
    for folder in _BOOK_DIR.value:
        made = preparation_results.read_folder(folder)
        plots = preparation_results.plots_of(pathlib.Path(folder), made.told) | shared
        try:
            books.append(preparation_results.reported(made, rows=rows, notes=notes, plots=plots))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"--book_dir, --match_dir: expected results as the examples write them, got {error!r}"
            ) from None
        if _GAMES.value is not None:
            with common.progress("Games behind replies", "bytes") as show:
                games = reply_games(
                    made.book,
                    _GAMES.value,
                    _PLAYER.value,
                    exits=made.exits,
                    progress=lambda done, size: show(done),
                )
            books[-1] = dataclasses.replace(books[-1], games=games)
    if len({each.book.side for each in books}) < len(books):
        raise ValueError(f"--book_dir: expected one book a color, got {', '.join(_BOOK_DIR.value)}")
    return books


def main(argv: Sequence[str]) -> None:
    if not _BOOK_DIR.value:
        if _MATCH_DIR.value or _NOTES.value or _GAMES.value or _PLOTS.value:
            raise ValueError("--match_dir, --notes, --games, --plot: expected --book_dir as well, got none")
        chess_preparation.main(argv)
        return
    preparation_results.check_exports()
    books = read_books()
    folder = common.output_folder(FLAGS.output_dir)
    preparation_results.write_page(folder, books)
    preparation_results.export(folder, books)


if __name__ == "__main__":
    common.run(main)
