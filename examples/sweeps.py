"""Shared by the examples that sweep a parameter: flags of their games, tables and curves of their rows.

A row is a dictionary of what was computed for one value of the parameter, such as `csv` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import common
from absl import flags

Rows = Sequence[Mapping[str, Any]]


def define_output_flag(folder: str) -> None:
    flags.DEFINE_string("output_dir", folder, "Where files go; of another game by default beside it.")


def define_search_flags() -> None:
    flags.DEFINE_string("game", "tic_tac_toe", "OpenSpiel game string; perfect information.")
    flags.DEFINE_string("sigma", "alpha_beta(depth=1)", "The search made during play.")
    flags.DEFINE_string("sigma_pre", "pvs(depth=6)", "The search whose moves can be memorized.")


def values_of(*names: str) -> dict[str, Any]:
    """Return the values of flags by name, for settings.json."""
    return {name: flags.FLAGS[name].value for name in names}


def print_rows(rows: Rows, columns: Mapping[str, str]) -> None:
    """Print rows as a table; columns: {heading: name} or {heading: "name:format"}."""
    named = [column.partition(":") for column in columns.values()]
    table = [[format(row[name], how) if how else row[name] for name, _, how in named] for row in rows]
    common.print_table(table, list(columns))


def curve(panel: Any, rows: Rows, x: str, y: str, style: str, label: str, **look: Any) -> Any:
    """Draw one number of the rows against another and return the legend's handle."""
    return panel.plot([row[x] for row in rows], [row[y] for row in rows], style, label=label, **look)[0]


def right_axis(panel: Any, label: str, **look: Any) -> Any:
    """Return a second axis, at the right of a panel."""
    right = panel.twinx()
    right.grid(visible=False)
    right.set_ylabel(label, **look)
    return right
