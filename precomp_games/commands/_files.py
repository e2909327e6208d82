"""Output of commands: tables, JSON, figures, and a line about an equilibrium."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from precomp_games._support.files import atomic_write
from precomp_games._support.results import rows_of as rows_of
from precomp_games.algorithms.zero_sum.exploitability import MetaEquilibrium
from precomp_games.chess.data.book import points_axis


def write_csv(path: pathlib.Path, rows: Sequence[dict[str, Any]]) -> None:
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_json(path: pathlib.Path, value: Any) -> None:
    with atomic_write(path) as file:
        json.dump(value, file, indent=1)
        file.write("\n")


_STYLE: Any = {
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.titlesize": 10,
    "figure.titlesize": 10,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "precomp-games",
}


def curve_style(number: int) -> str:
    """Return color, line and marker of one of several curves; in grey, line and marker tell them apart."""
    return f"C{number % 10}{('-', '--', '-.', ':')[number % 4]}{'os^Dv'[number % 5]}"


@contextlib.contextmanager
def figure(path: pathlib.Path, *shape: int, page: bool = False, **how: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its panels, as pyplot's subplots gives them, to draw in; it is written as a PNG.

    With `page` it is also written as an SVG file beside it, for a page.
    """
    import matplotlib

    matplotlib.use("Agg")  # needs no display
    from matplotlib import pyplot

    # Without the date and the version, the same run gives the same file.
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}}
    if page:
        kinds["svg"] = {"Date": None, "Creator": None}
    dpi = how.pop("dpi", 150)
    with matplotlib.rc_context(_STYLE):
        drawn, panels = pyplot.subplots(*shape, **how)
        yield drawn, panels
        for kind, metadata in kinds.items():
            with atomic_write(path.with_suffix(f".{kind}"), "wb") as file:
                drawn.savefig(file, format=kind, dpi=dpi, metadata=metadata)
        pyplot.close(drawn)


@contextlib.contextmanager
def points_figure(path: pathlib.Path, xlabel: str, ylabel: str, *, page: bool = False) -> Iterator[Any]:
    """Yield the panel of a `figure` in which utilities are points in 100 games."""
    with figure(path, figsize=(7.0, 4.0), page=page) as (drawing, panel):
        yield panel
        panel.set(xlabel=xlabel, ylabel=ylabel)
        points_axis(panel.yaxis)
        panel.legend(loc="lower right")
        drawing.tight_layout()


def print_table(rows: Iterable[Sequence[Any]], header: Sequence[str]) -> None:
    """Print a table: columns aligned right, the last one left."""
    cells = [list(map(_cell, row)) for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    for row in cells:
        aligned = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([*aligned[:-1], row[-1]]).rstrip())


def end_of(line: str, most: int = 80) -> str:
    """Return a line of moves, or the last ones where it is longer than so many characters."""
    return line if len(line) <= most else f"... {line[4 - most :].partition(' ')[2]}"


def ends_of(text: str, most: int = 60) -> str:
    """Return a text, or its two ends where it is longer than so many characters: states differ at both."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[: most - 5 - half]} ... {text[-half:]}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:z.4f}"  # no -0.0000
    return str(value)


def solved_by(equilibrium: MetaEquilibrium) -> str:
    """Return a line about how an equilibrium was computed, and how exact it is."""
    counted = "programs" if equilibrium.solver == "double_oracle" else "iterations"
    nash_conv = max(equilibrium.nash_conv, 0.0)
    return f"{equilibrium.solver}: NashConv {nash_conv:.2g} after {equilibrium.iterations} {counted}"
