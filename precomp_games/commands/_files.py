"""What commands write and print: a folder, tables, JSON, figures, and a line about an equilibrium."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from precomp_games._support.files import atomic_write
from precomp_games._support.results import rows_of as rows_of

if TYPE_CHECKING:
    from precomp_games.algorithms.zero_sum.exploitability import MetaEquilibrium

DATA = pathlib.Path(__file__).parent / "data"
"""The samples, and the searches that the defaults need."""

_made_folders: list[pathlib.Path] = []  # by the run that is under way


def start_of_run() -> None:
    """Forgets the folders that earlier runs of this process have made."""
    _made_folders.clear()


def remove_empty_made_folders() -> None:
    """Removes the folders that a failed run has made; those with something finished in them stay."""
    for folder in _made_folders:
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def shown_path(path: pathlib.Path) -> str:
    """A path as it is printed: from where the command runs, if it lies below, and whole otherwise."""
    here = pathlib.Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def output_folder(path: str) -> pathlib.Path:
    """Makes the folder of --output_dir, before any work is done that could not be written.

    A run that fails removes it again if nothing is in it.
    """
    folder = pathlib.Path(path)
    try:
        _made_folders.extend(f for f in (folder, *folder.parents) if not f.exists())
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise ValueError(f"--output_dir: expected a folder, got {path!r} ({error.strerror})") from None
    if not writable:
        raise ValueError(f"--output_dir: expected a folder that can be written to, got {path!r}")
    return folder


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
    """Color, line and marker of one of several curves; in grey, line and marker tell them apart."""
    return f"C{number % 10}{('-', '--', '-.', ':')[number % 4]}{'os^Dv'[number % 5]}"


@contextlib.contextmanager
def figure(
    path: pathlib.Path,
    rows: int = 1,
    columns: int = 1,
    *,
    dpi: int = 150,
    page: bool = False,
    **arguments: Any,
) -> Iterator[tuple[Any, Any]]:
    """A figure and its panels, as pyplot's subplots gives them, to draw in; it is written as a PNG.

    With `page` also as an SVG file beside it, for a page.
    """
    import matplotlib

    matplotlib.use("Agg")  # needs no display
    from matplotlib import pyplot

    # Without the date and the version, the same run gives the same file.
    kinds: dict[str, dict[str, Any]] = {"png": {"Software": None}}
    if page:
        kinds["svg"] = {"Date": None, "Creator": None}
    with matplotlib.rc_context(_STYLE):
        drawn, panels = pyplot.subplots(rows, columns, **arguments)
        yield drawn, panels
        for kind, metadata in kinds.items():
            with atomic_write(path.with_suffix(f".{kind}"), "wb") as file:
                drawn.savefig(file, format=kind, dpi=dpi, metadata=metadata)
        pyplot.close(drawn)


def print_table(rows: Iterable[Sequence[Any]], header: Sequence[str]) -> None:
    """Columns aligned right, the last one left."""
    cells = [list(map(_cell, row)) for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    for row in cells:
        aligned = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join([*aligned[:-1], row[-1]]).rstrip())


def end_of(line: str, most: int = 80) -> str:
    """Returns a line of moves, or the last ones where it is longer than so many characters."""
    return line if len(line) <= most else f"... {line[4 - most :].partition(' ')[2]}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:z.4f}"  # no -0.0000
    return str(value)


def solved_by(equilibrium: MetaEquilibrium) -> str:
    """A line that says how an equilibrium was computed, and how good it is."""
    counted = "programs" if equilibrium.solver == "double_oracle" else "iterations"
    nash_conv = max(equilibrium.nash_conv, 0.0)
    return f"{equilibrium.solver}: NashConv {nash_conv:.2g} after {equilibrium.iterations} {counted}"
