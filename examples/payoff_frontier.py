r"""Which utilities can a mediator lead two players to? The polygons of correlated equilibria.

  python examples/payoff_frontier.py
  python examples/payoff_frontier.py --game='sheriff(max_bribe=2,num_rounds=1)' --objective=smaller
  python examples/payoff_frontier.py --game=matrix_sh --notions=efce --objective=0.25,0.75

For each notion of correlated equilibria, by when a player decides whether to follow (told its move: efce,
before it is told: efcce, before the game: nfcce), all pairs of utilities that equilibria reach: a polygon, of
which all corners are found, exact but for rounding, and how far equilibria could reach beyond it at most.
Beside them the best equilibrium by an objective, and, where the game is small, the utilities of Nash
equilibria, which lie in all of the polygons.

Writes frontier.csv, frontier.png and settings.json.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import pyspiel
from absl import flags

from precomp_games.algorithms import efce

FLAGS = flags.FLAGS
_NOTIONS = ("efce", "efcce", "nfcce")
_GAME = flags.DEFINE_string(
    "game",
    "sheriff(max_items=2,max_bribe=2,num_rounds=2)",
    "An OpenSpiel game string; players who move at once are made to take turns.",
)
_CHOSEN = flags.DEFINE_list("notions", list(_NOTIONS), "Of efce, efcce, nfcce.")
_OBJECTIVE = flags.DEFINE_string("objective", "welfare", f"What is best: {common.OBJECTIVES}.")
_INTERIOR = flags.DEFINE_boolean("interior", False, "Quicker in large games, but corners to 1e-7 only.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/payoff_frontier", "Where files go.")


def game() -> pyspiel.Game:
    named = common.named_game(_GAME.value)
    if named.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        return pyspiel.convert_to_turn_based(named)
    return named


def nash(held: efce.SequenceGame) -> Any:
    """float64[n, 2], none where the game is too large."""
    try:
        return efce.nash_payoffs(held)
    except ValueError:
        return np.zeros((0, 2))


def plot(frontiers: dict[str, Any], points: Any, path: pathlib.Path) -> None:
    with common.figure(path, dpi=120, figsize=(6.4, 4.6)) as (figure, panel):
        for k, (notion, frontier) in reversed(list(enumerate(frontiers.items()))):
            around = np.vstack([frontier.corners, frontier.corners[:1]])
            panel.fill(*around.T, color=f"C{k}", alpha=0.12, lw=0)
            panel.plot(*around.T, common.curve_style(k), ms=4, lw=1.5, label=notion.upper())
        if len(points):
            panel.plot(*points.T, "k*", ms=9, label="Nash")
        panel.set(xlabel="utility of player 0", ylabel="utility of player 1")
        panel.legend()
        figure.tight_layout()


def main(argv: Sequence[str]) -> None:
    del argv
    notions: list[Any] = [notion for notion in dict.fromkeys(_CHOSEN.value) if notion]
    for notion in notions:
        if notion not in _NOTIONS:
            raise ValueError(f"--notions: expected {', '.join(_NOTIONS)}, got {notion!r}")
    if not notions:
        raise ValueError("--notions: expected at least one, got none")
    aim = common.objective(_OBJECTIVE.value)
    with common.told_as("game", "a game"):
        held = efce.SequenceGame.of(game())
    folder = common.output_folder(_OUTPUT_DIR.value)
    frontiers: dict[str, Any] = {}
    best, rows = [], []
    for notion in notions:
        found = efce.payoff_frontier(held, notion=notion, vertex=not _INTERIOR.value)
        frontiers[notion] = found
        one = efce.efce_lp(held, notion=notion, objective=aim, vertex=not _INTERIOR.value)
        best.append(
            (notion, len(found.corners), f"{found.gap:.0e}", f"{one.value:.6f}", f"{one.gap:.0e}",
             f"{one.utilities[0]:.6f}", f"{one.utilities[1]:.6f}", f"{one.welfare:.6f}")
        )  # fmt: skip
        rows += [
            {"notion": notion, "utility_0": u, "utility_1": v, "gap": found.gap}
            for u, v in found.corners.tolist()
        ]
    points = nash(held)
    rows += [{"notion": "nash", "utility_0": u, "utility_1": v, "gap": ""} for u, v in points.tolist()]
    print(f"Best by {_OBJECTIVE.value}, each polygon's corners, and how far more is possible at most\n")
    common.print_table(
        best, ("notion", "corners", "beyond", "value", "beyond", "utility 0", "utility 1", "welfare")
    )
    print()
    common.print_table(
        [(row["notion"], f"{row['utility_0']:.6f}", f"{row['utility_1']:.6f}") for row in rows],
        ("corner of", "utility 0", "utility 1"),
    )
    common.write_csv(folder / "frontier.csv", rows)
    plot(frontiers, points, folder / "frontier.png")
    settings = {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module("__main__")}
    common.write_json(folder / "settings.json", settings)
    print(f"\nWritten: {folder}/frontier.csv, frontier.png, settings.json")


if __name__ == "__main__":
    common.run(main)
