r"""Compares the scores of books of several sizes with those of controls of the same size.

  python examples/book_size.py --sizes=10,25,50,100 --games=200 --output_dir=output/book_size

prepares a book for each size by the flags of examples/chess_preparation.py, and plays it and the controls of
`precomp-games match` against the opponent. Prints what was promised and scored; writes sizes.csv, sizes.png
and sizes.svg. --report writes a page of the largest book with the plot, report.html, and --export that book
for study.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
import sweeps
from absl import flags

from precomp_games.chess import Book, BookPage, EngineError
from precomp_games.commands import _chess, match, prepare
from precomp_games.commands._flags import define_flags, define_preparation_flags

FLAGS = flags.FLAGS
_SIZES = flags.DEFINE_list("sizes", ["10", "25", "50", "100"], "Positions that books may have.")
flags.DEFINE_string("output_dir", "output/book_size", "Where files go.")
_GAMES = flags.DEFINE_integer("games", 100, "Games of each book, by the rules of chess.", lower_bound=1)
_SEED = flags.DEFINE_integer("match_seed", 0, "Seed of these games.", lower_bound=0)
define_preparation_flags(FLAGS)
define_flags(FLAGS, _chess.ShowingFlags)


def main(argv: Sequence[str]) -> None:
    del argv
    sizes = common.numbers(_SIZES, "positive integers separated by commas", lambda size: size > 0, int)
    _chess.check_exports(FLAGS.export)
    folder = common.output_folder(FLAGS.output_dir)
    rows: list[dict[str, Any]] = []
    with chess_runs.engines() as engines:
        if not engines.can_search:
            raise EngineError("expected an engine to play games, got stored searches alone")
        for size in sorted(set(sizes)):
            made = prepare.prepared(FLAGS, prepare.preparation_settings(FLAGS), engines, size)
            books = {"the book": made.book} | dict(match.controls(made, engines))
            if not rows:
                books = {"no book": Book(made.book.start, made.book.side, ())} | books
            matches: dict[str, Any] = {}
            for name, book in books.items():
                matches[name] = engines.match(book, made.settings, _GAMES.value, seed=_SEED.value)
            for name, result in matches.items():
                promised = made.utility if name == "the book" else None
                rows.append({"budget": size} | match.scored(name, result, promised))
    common.write_csv(folder / "sizes.csv", rows)
    report(rows)
    description = textwrap.shorten(BookPage(made).opponent.description, 80)
    plot(rows, f"{made.side.capitalize()}, {description}", folder / "sizes.png")
    print(f"Written: {folder}/sizes.csv, sizes.png, sizes.svg")
    plots = {"What books of several sizes score": (folder / "sizes.svg").read_text(encoding="utf-8")}
    _chess.write_shown(FLAGS, folder, made, matches, plots=plots)


def report(rows: Sequence[dict[str, Any]]) -> None:
    """Print the scores."""
    columns = ("positions", "promised", "score", "standard_error", "player")
    cells = [[math.nan if row[name] is None else row[name] for name in columns] for row in rows]
    common.print_table(cells, ("positions", "promised", "scored", "+-", "player"))


def plot(rows: Sequence[dict[str, Any]], title: str, path: Any) -> None:
    """Plot score against positions, with 95 % intervals."""
    markers = {"the book": "o-", "most reached": "s--", "main lines": "^--", "linear evaluation": "v--"}
    with common.figure(path, figsize=(7.0, 4.2), page=True) as (figure, panel):
        (nothing,) = [row for row in rows if row["player"] == "no book"]
        panel.axhspan(nothing["low"], nothing["high"], color="0.85", label="no book")
        for k, (name, marker) in enumerate(markers.items()):
            of = sorted((row for row in rows if row["player"] == name), key=lambda row: row["positions"])
            if not of:
                continue
            y = [row["score"] for row in of]
            below = [max(0.0, row["score"] - row["low"]) for row in of]
            above = [max(0.0, row["high"] - row["score"]) for row in of]
            look = {"fmt": marker, "ms": 5, "capsize": 2, "color": f"C{k}", "label": name}
            panel.errorbar([row["positions"] for row in of], y, [below, above], **look)
        promised = [row for row in rows if row["promised"] is not None]
        sweeps.curve(panel, promised, "positions", "promised", "D", "promised", mfc="none", mec="0.3")
        panel.set_ylim(top=1.01)
        panel.set_xlabel("positions in the book")
        panel.set_ylabel(f"score in {rows[0]['games']} games, 95 %")
        panel.set_title(title)
        panel.legend(loc="lower right", frameon=True)  # on a band
        figure.tight_layout()


if __name__ == "__main__":
    common.run(main)
