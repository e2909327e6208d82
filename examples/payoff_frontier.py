r"""Computes the utilities that a mediator can lead two players to: the polygons of correlated equilibria.

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

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import common
import numpy as np
import pyspiel
import sweeps
from absl import flags

from precomp_games.algorithms import efce

FLAGS = flags.FLAGS
_NOTIONS = ("efce", "efcce", "nfcce")
_NEW = 1e-7  # how far beyond an edge a new corner is, where utilities lie within [-1, 1]
_ROUNDING = 1e-9
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


class Frontier(NamedTuple):
    """All pairs of utilities that a notion's equilibria reach: a polygon.

    Attributes:
      equilibria: One for each corner, counterclockwise; one where all equilibria have the same utilities, two
        where these are a segment.
      gap: How far utilities may lie beyond an edge, or beyond what was tried of a point or a segment.
    """

    equilibria: list[Any]
    gap: float

    @property
    def corners(self) -> Any:
        """float64[n, 2]."""
        return np.array([each.utilities for each in self.equilibria])


def frontier(held: efce.SequenceGame, notion: Any, vertex: bool = True) -> Frontier:
    """Return the farthest points in four directions, then beyond each edge between two, until none is left.

    A polygon of n corners takes some 2 n programs. Each one's bound limits how far it can reach.
    """
    low, high = held.payoffs.min(axis=1), held.payoffs.max(axis=1)
    center = 0.5 * low + 0.5 * high
    scale = np.maximum(high - center, center - low)
    scale[scale <= 1e-15 * np.maximum(np.abs(low), np.abs(high))] = 1.0  # rounding
    tried = []

    def farthest(normal: Any) -> Any:
        unit = normal / np.hypot(*normal)
        found = efce.efce_lp(held, notion=notion, objective=unit, vertex=vertex)
        tried.append((unit, found.bound))
        return found

    def place(found: Any) -> Any:
        return (np.array(found.utilities) - center) / scale

    first = [farthest(np.array(normal)) for normal in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    corners = []
    edges = [(first[k], first[(k + 1) % 4]) for k in (3, 2, 1, 0)]  # still to be looked at, the next one last
    while edges:
        one, two = edges.pop()
        along = place(two) - place(one)
        length = float(np.hypot(*along))
        if length > _NEW:
            outward = np.array([along[1], -along[0]]) / length
            beyond = farthest(outward / scale)
            if float(outward @ (place(beyond) - place(one))) > _NEW:
                edges += [(beyond, two), (one, beyond)]
                continue
        corners.append(one)
    corners = corners_of(corners, [place(each) for each in corners])
    points = np.array([each.utilities for each in corners])
    return Frontier(corners, max(bound - float((points @ normal).max()) for normal, bound in tried))


def corners_of(found: list[Any], places: list[Any]) -> list[Any]:
    """Return a convex polygon's corners among its points, in order: no repetitions, and none on an edge."""
    left, k = list(range(len(found))), 0
    while k < len(left) and len(left) > 1:
        before, here, after = (places[left[(k + d) % len(left)]] for d in (-1, 0, 1))
        come, go = here - before, after - here
        off = abs(float(come[0] * go[1] - come[1] * go[0]))
        # Who turns back is an end of a segment.
        passed = off <= _NEW * float(np.hypot(*(come + go))) and float(come @ go) > 0.0
        if passed or float(np.hypot(*come)) <= _NEW:
            del left[k]
            k = max(k - 1, 0)
        else:
            k += 1
    return [found[n] for n in left]


def nash(held: efce.SequenceGame, most: int = 16) -> Any:
    """Return both players' utilities in each extreme Nash equilibrium: distinct float64[n, 2], ascending.

    With payoffs A and B above 0, the vertices of {x >= 0, B^T x <= 1} and {y >= 0, A y <= 1} are found by
    solving for each choice of constraints that hold exactly; two of them are an equilibrium if each pure
    strategy is either unused or a best reply (von Stengel 2002). There are none where the players have more
    than `most` pure strategies, what their own actions rule out left aside.
    """
    plans = [pure_plans(form, most) for form in held.players]
    if sum(map(len, plans)) > most:
        return np.zeros((0, 2))
    payoffs = []
    for utility in held.leaf_utility:
        table = np.zeros([form.num_sequences for form in held.players])
        np.add.at(table, tuple(held.leaf_sequence), utility)
        payoffs.append(plans[0] @ table @ plans[1].T)
    # What is added to all payoffs, and their unit, make no difference to equilibria.
    one, two = (between_1_and_2(table) for table in payoffs)
    columns, found = vertices(one), []
    for x in vertices(two.T):
        used, best = x > _ROUNDING, two.T @ x > 1.0 - _ROUNDING
        for y in columns[((columns > _ROUNDING) <= best).all(axis=1)]:
            if (one @ y > 1.0 - _ROUNDING)[used].all():
                found.append([float(x / x.sum() @ table @ (y / y.sum())) for table in payoffs])
    points = np.array(sorted(found))
    return points[np.append(True, np.abs(np.diff(points, axis=0)).max(axis=1) > _ROUNDING)]


def between_1_and_2(table: Any) -> Any:
    """Return a table from 1 to 2; 1 where it differs by rounding alone, of sums over what chance does."""
    size = float(np.ptp(table))
    return 1.0 + (table - table.min()) / size if size > 1e-13 * np.abs(table).max() else np.ones_like(table)


def pure_plans(form: Any, most: int) -> Any:
    """Return float64[n, S], the reduced pure strategies as realization plans; few more than `most`."""
    plans = [np.eye(1, form.num_sequences)[0]]
    for k in range(1, form.num_infosets):
        more = []
        for plan in plans:
            own = list(form.sequences(k)) if plan[form.parent[k]] else []
            for s in own[1:]:
                more.append(plan.copy())
                more[-1][s] = 1.0
            if own:
                plan[own[0]] = 1.0
        plans += more
        if len(plans) > most:
            break
    return np.array(plans)


def vertices(table: Any) -> Any:
    """Return the vertices but 0 of {x >= 0, table @ x <= 1}, each once: float64[n, x's length]."""
    m, n = table.shape
    sides, bounds = np.vstack([table, -np.eye(n)]), np.append(np.ones(m), np.zeros(n))
    chosen = np.array(list(itertools.combinations(range(m + n), n)))
    matrix, right = sides[chosen], bounds[chosen]
    regular = np.linalg.cond(matrix) < 1e12
    x = np.linalg.solve(matrix[regular], right[regular][..., None])[..., 0]
    x = x[(x @ sides.T <= bounds + _ROUNDING).all(axis=1) & (x.max(axis=1) > _ROUNDING)]
    _, first = np.unique(np.round(x, 10) + 0.0, axis=0, return_index=True)
    return np.maximum(x[first], 0.0)


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
    notions = common.chosen(_CHOSEN, _NOTIONS)
    if not notions:
        raise ValueError("--notions: expected at least one, got none")
    aim = common.objective(_OBJECTIVE.value)
    with common.errors_by_flag("game", "a game"):
        held = efce.SequenceGame.of(game())
    folder = common.output_folder(_OUTPUT_DIR.value)
    frontiers: dict[str, Any] = {}
    best = []
    for notion in notions:
        found = frontiers[notion] = frontier(held, notion, vertex=not _INTERIOR.value)
        one = efce.efce_lp(held, notion=notion, objective=aim, vertex=not _INTERIOR.value)
        numbers = [f"{number:.6f}" for number in (*one.utilities, one.welfare)]
        reached = (f"{found.gap:.0e}", f"{one.value:.6f}", f"{one.gap:.0e}")
        best.append((notion, len(found.corners), *reached, *numbers))
    points = nash(held)
    polygons = [(notion, found.corners, found.gap) for notion, found in frontiers.items()]
    rows = [
        {"notion": notion, "utility_0": u, "utility_1": v, "gap": gap}
        for notion, corners, gap in (*polygons, ("nash", points, ""))
        for u, v in corners.tolist()
    ]
    print(f"Best by {_OBJECTIVE.value}, each polygon's corners, and how far more is possible at most\n")
    header = ("notion", "corners", "beyond", "value", "beyond", "utility 0", "utility 1", "welfare")
    common.print_table(best, header)
    print()
    columns = {"corner of": "notion", "utility 0": "utility_0:.6f", "utility 1": "utility_1:.6f"}
    sweeps.print_rows(rows, columns)
    common.write_csv(folder / "frontier.csv", rows)
    plot(frontiers, points, folder / "frontier.png")
    common.write_json(folder / "settings.json", common.own_settings())
    print(f"\nWritten: {folder}/frontier.csv, frontier.png, settings.json")


if __name__ == "__main__":
    common.run(main)
