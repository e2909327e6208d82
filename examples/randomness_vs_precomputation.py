r"""Measures how far randomness protects against preparation. Figure 1 of the precomputation paper.

For either side and for r = 0.1, 0.2, ..., 1638.4 centipawns: the utility of the best book against an
opponent who plays Softmax(cp / r), and how many positions it has. Every distinct position is searched once
for the whole sweep, and kept: a second run searches nothing.

  python examples/randomness_vs_precomputation.py --output_dir=output/randomness

writes randomness.csv, randomness.png and settings.json.
"""

from __future__ import annotations

import functools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import chess_runs
import common
import sweeps
from absl import flags

from precomp_games.algorithms import best_precomputation
from precomp_games.chess import preparation_tree

FLAGS = flags.FLAGS
_SIDES = flags.DEFINE_multi_enum("sides", ["white", "black"], ["white", "black"], "Who prepares.")
_R_VALUES = flags.DEFINE_list(
    "r_values",
    [f"{0.1 * 2**i:g}" for i in range(15)],
    "Randomness of the opponent, in centipawns, separated by commas.",
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/randomness", "Where files go.")
common.define_chess_flags()
flags.adopt_module_key_flags(common)

# The authors' run: 10 and 50 ms a move, the Stockfish of 2021. Shown beside runs that are comparable.
_PUBLISHED_SETTINGS = {"penalty": 1e-4, "evaluation": "linear", "top_k": 2, "max_plies": 100, "fen": ""}
_PUBLISHED = {
    ("white", 0.1): 1.00,
    ("white", 25.6): 0.74,
    ("white", 1638.4): 0.81,
    ("black", 0.1): 0.99,
    ("black", 25.6): 0.58,
    ("black", 1638.4): 0.65,
}


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value)
    values = common.positive_numbers(_R_VALUES)
    chess_runs.settings(0, values[0])  # wrong flags are errors before any search
    rows: list[dict[str, Any]] = []
    with chess_runs.engines() as engines:
        for side in dict.fromkeys(_SIDES.value):
            player = 0 if side == "white" else 1
            before, largest = engines.searches, 0
            together: set[tuple[str, str, int, str]] = set()
            for r in common.progress_bar(values, desc=side, leave=False):
                settings = chess_runs.settings(player, r)
                needed = engines.start_record()
                tree = preparation_tree(settings, engines.analyst, engines.opponent)
                best = best_precomputation(tree, player)
                largest = max(largest, len(needed))
                together |= needed
                row = {"side": side, "r": r, "log10_r": round(math.log10(r), 6)}
                row |= {"utility": best.utility, "size": best.size, "distinct_positions": best.num_positions}
                row |= {"value": best.value, "unprepared": best.unprepared, "histories": tree.num_histories}
                rows.append(row)
            print(
                f"{side}: {len(together)} distinct searches for all r, {len(together) / largest:.2f} times "
                f"the {largest} of the largest single r; {engines.searches - before} searches made",
                flush=True,
            )
        title = (
            f"{engines.analyst.engine_id}, {settings.opponent_limit} against {settings.analyst_limit}, "
            f"{FLAGS.evaluation} evaluation, penalty {FLAGS.penalty:g}"
        )
        parameters = settings.as_dict() | {"r_values": values, "sides": list(dict.fromkeys(_SIDES.value))}
        del parameters["player"], parameters["opponent_temperature_cp"]
        parameters |= {"analyst": engines.analyst.engine_id, "opponent": engines.opponent.engine_id}
    common.write_csv(folder / "randomness.csv", rows)
    common.write_json(folder / "settings.json", parameters)
    plot(rows, title, folder / "randomness.png")
    columns = {"side": "side", "r": "r:g", "log10 r": "log10_r"}
    columns |= {name: name for name in ("utility", "size", "value", "unprepared", "histories")}
    if all(parameters[name] == value for name, value in _PUBLISHED_SETTINGS.items()):
        columns["published utility"] = "published"
    print()
    sweeps.print_rows([row | {"published": _published(row)} for row in rows], columns)
    print(f"\n{settings.kind.note()}", end="")
    print(f"\nWritten: {folder}/randomness.csv, randomness.png, settings.json")


def _published(row: dict[str, Any]) -> str:
    known = _PUBLISHED.get((row["side"], row["r"]))
    return "" if known is None else f"{known:.2f}"


def plot(rows: Sequence[dict[str, Any]], title: str, path: pathlib.Path) -> None:
    """Plot utility (left axis, thick) and size (right axis, thin) against log10 r, one panel a side."""
    sides = list(dict.fromkeys(row["side"] for row in rows))
    with common.figure(path, len(sides), figsize=(7.0, 3.4 * len(sides)), sharex=True, squeeze=False) as (
        figure,
        panels,
    ):
        for side, panel in zip(sides, panels[:, 0], strict=True):
            own = [row for row in rows if row["side"] == side]
            curve = functools.partial(sweeps.curve, rows=own, x="log10_r")
            handles = [
                curve(panel, y="utility", style="C0-o", label="utility with the book", lw=2.5, ms=5),
                curve(panel, y="unprepared", style="C0:", label="score of the first position", lw=1.2),
            ]
            panel.set_ylim(0.0, 1.05)
            panel.set_ylabel("utility", color="C0")
            panel.set_title(f"{side.capitalize()} prepares")
            right = sweeps.right_axis(panel, "positions", color="C1")
            handles.append(
                curve(right, y="size", style="C1-s", label="positions in the book", lw=1.2, ms=3.5)
            )
            right.set_ylim(bottom=0.0)
        panels[-1, 0].set_xlabel("randomness of the opponent, log10 r (r in centipawns)")
        figure.suptitle(title, fontsize=10)
        # Below the panels: inside them it would hide one of the curves.
        figure.legend(handles=handles, loc="lower center", ncol=3, fontsize=8)
        figure.tight_layout(rect=(0.0, 0.03, 1.0, 1.0))


if __name__ == "__main__":
    common.run(main)
