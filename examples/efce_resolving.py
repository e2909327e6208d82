r"""Measures the welfare that safe resolving gains, and its speed. Table 1 and Figure 2 of the paper.

  python examples/efce_resolving.py --output_dir=output/efce
  python examples/efce_resolving.py --rows=1,2,3,4 --seeds=10 --stitch=2 --figure=med,large
  python examples/efce_resolving.py --rows=3 --seeds=20 --stitch=3 --stitch_bounds=separate --figure=

Table 1: in games of Battleship, a blueprint's subgame after the first round of shots is refined by a linear
program; the welfare of its leaves before and after is printed, in units of 1e-2, for a uniform blueprint and
for jittered ones (mean over seeds). With --stitch all subgames are refined and stitched together, and the
worst violation of safety is printed, for each kind of bounds.

Figure 2: a subgame is refined by regret minimization, and the worst violation of its constraints is plotted
against iterations and seconds. "med" takes seconds, "large" and "huge" minutes before they start, since the
values of all subgames to the trunk are needed first, by a walk of each.

A program of row 3 takes HiGHS seconds and one of row 4 half a minute; both rows are left out by default.
Stitching takes 25 of them a plan in row 3 and 36 in row 4; plans are shared among --workers.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import resource
import time
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import parallel
import pyspiel
import sweeps
from absl import flags
from kept_work import KeptWork, kept_work

from precomp_games.algorithms import efce

FLAGS = flags.FLAGS
_KINDS = ["paper", "separate", "aggregate"]
_ROWS = flags.DEFINE_list("rows", ["1", "2"], "Rows of Table 1, of 1 to 4; empty for none.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Jittered blueprints a row.", lower_bound=0, upper_bound=10**6)
_WIDTH = flags.DEFINE_float("width", 0.5, "Of the jitter: weights lie within 1 -+ this.", 0.0, 1.0)
_STITCH = flags.DEFINE_integer(
    "stitch", 1, "Stitch all subgames of the rows up to this one, 0 for none.", lower_bound=0, upper_bound=4
)
_STITCH_BOUNDS = flags.DEFINE_list("stitch_bounds", _KINDS, "Bounds to stitch with.")
_WORKERS = flags.DEFINE_integer(
    "workers", None, "Processes for stitching. Default: one a core.", lower_bound=1
)
_CLUSTER = flags.DEFINE_string("cluster", None, f"Stitch on {parallel.CLUSTER}")
_FIGURE = flags.DEFINE_list("figure", ["row2", "med"], "Of row2, med, large, huge; empty for none.")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "Of regret minimization.", lower_bound=1)
_BOUNDS: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "bounds",
    "separate",
    _KINDS,
    'How slack is shared among subgames. "separate" has the table as printed.',
)
_TIME_LIMIT = flags.DEFINE_float("time_limit", 3600.0, "Seconds for one linear program.", lower_bound=0.0)
_SEED = flags.DEFINE_integer(
    "seed", 0, "Of regret minimization's start, and the first of the blueprints'.", lower_bound=0
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/efce_resolving", "Where files go.")

# H, W, shots each; pairs of a subgame with the trunk's; gamma: blueprint and refined welfare, uniform, as
# printed.
TABLE_1 = {
    "1": ((1, 3, 2), 382, {2: ("-3.70", "-3.70"), 5: ("-14.8", "-14.8")}),
    "2": ((2, 2, 3), 3246, {2: ("-3.13", "-2.95"), 5: ("-12.5", "-11.4")}),
    "3": ((1, 5, 3), 22566, {2: ("-1.92", "-1.34"), 5: ("-7.68", "-4.80")}),
    "4": ((3, 2, 3), 115966, {2: ("-1.23", "-.772"), 5: ("-4.94", "-2.47")}),
}
FIGURE_2 = {"row2": (2, 2, 1, 3), "med": (3, 2, 1, 3), "large": (3, 2, 2, 4), "huge": (3, 2, 2, 5)}


def battleship(height: int, width: int, size: int, shots: int, multiplier: float) -> pyspiel.Game:
    return pyspiel.load_game(
        f"battleship(board_height={height},board_width={width},ship_sizes=[{size}],ship_values=[1.0],"
        f"num_shots={shots},allow_repeated_shots=false,loss_multiplier={float(multiplier)})"
    )


@dataclasses.dataclass(frozen=True)
class Task:
    """A row of Table 1, whose subgames are refined from one blueprint. seed: None for the uniform one."""

    row: str
    multiplier: int
    seed: int | None
    width: float
    bounds: Any
    time_limit: float

    @property
    def blueprint(self) -> Any:
        if self.seed is None:
            return efce.uniform_blueprint()
        return efce.jittered_blueprint(self.seed, self.width)

    @property
    def blueprint_name(self) -> str:
        return "uniform" if self.seed is None else f"jittered {self.seed}"

    def resolving(self) -> efce.Resolving:
        (height, width, shots), _, _ = TABLE_1[self.row]
        game = battleship(height, width, 1, shots, self.multiplier)
        whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
        return efce.Resolving.of_subgames(whole, self.blueprint, self.bounds)

    def refined(self, resolving: efce.Resolving, name: Any) -> Any:
        return efce.refine_lp(resolving.problem(name), time_limit=self.time_limit)


def tasks(row: str, multiplier: int, bounds: str) -> list[Task]:
    """Return a task for each blueprint, the uniform one first."""
    seeds = [None, *range(_SEED.value, _SEED.value + _SEEDS.value)]
    return [Task(row, multiplier, seed, _WIDTH.value, bounds, _TIME_LIMIT.value) for seed in seeds]


def refine(task: Task) -> dict[str, Any]:
    _, pairs, printed = TABLE_1[task.row]
    resolving = task.resolving()
    refined = task.refined(resolving, resolving.names[0])
    return {
        "row": task.row,
        "gamma": task.multiplier,
        "blueprint": task.blueprint_name,
        "subgames": len(resolving.names),
        "pairs": len(refined.plan.pairs),
        "pairs_printed": pairs,
        "welfare_1e-2": 100 * refined.blueprint_welfare,
        "refined_1e-2": 100 * refined.welfare,
        "welfare_printed": printed[task.multiplier][0] if task.seed is None else "",
        "refined_printed": printed[task.multiplier][1] if task.seed is None else "",
        "seconds": refined.seconds,
    }


def table_1(rows: Sequence[str], kept: KeptWork) -> list[dict[str, Any]]:
    """Return a dictionary for each row, gamma and blueprint, computed in turn, since seconds are shown."""
    todo = [task for row in rows for gamma in (2, 5) for task in tasks(row, gamma, _BOUNDS.value)]
    done = dict(kept.each_done(refine, todo, "subgames", workers=1))
    return [done[k] for k in sorted(done)]


def print_table_1(done: Sequence[dict[str, Any]]) -> None:
    lines = []
    for (row, gamma), group in itertools.groupby(done, key=lambda entry: (entry["row"], entry["gamma"])):
        mine = list(group)
        one = mine[0]
        line = [row, one["subgames"], one["pairs"], gamma]
        line += [f"{one[f'{what}_1e-2']:.4g} ({one[f'{what}_printed']})" for what in ("welfare", "refined")]
        for what in ("welfare", "refined"):
            jittered = [entry[f"{what}_1e-2"] for entry in mine[1:]]
            line.append(f"{np.mean(jittered):.4g}" if jittered else "")
        lines.append((*line, f"{np.mean([entry['seconds'] for entry in mine]):.1f}"))
    print("\nTable 1: welfare of a subgame, in units of 1e-2 (expected)\n")
    header = ("row", "subgames", "pairs", "gamma", "uniform", "refined", "jittered", "refined", "seconds")
    common.print_table(lines, header)
    worst = min(e["refined_1e-2"] - e["welfare_1e-2"] for e in done)
    print(f"\nRefined less blueprint: expected at least 0, obtained at least {worst / 100:.1e}")
    two, five = ([e["welfare_1e-2"] for e in done if e["gamma"] == gamma] for gamma in (2, 5))
    ratios = np.array(five) / np.array(two)
    print(f"Blueprint at gamma 5 / at 2: expected 4, obtained {ratios.min():.6f} to {ratios.max():.6f}")


def stitch(task: Task) -> dict[str, Any]:
    resolving = task.resolving()
    assert resolving.game is not None
    refinements = [task.refined(resolving, name) for name in resolving.names]
    plan = efce.stitch(resolving.game, task.blueprint, refinements)
    safety = efce.safety(plan, task.blueprint)
    return {
        "row": task.row,
        "bounds": task.bounds,
        "blueprint": task.blueprint_name,
        "violation": safety.violation,
        "welfare_1e-2": 100 * safety.blueprint_welfare,
        "refined_1e-2": 100 * safety.welfare,
    }


def stitch_all(
    rows: Sequence[str], kinds: Sequence[str], kept: KeptWork, folder: pathlib.Path
) -> list[dict[str, Any]]:
    """Refine all subgames of the rows, for each kind of bounds and blueprint; write plans as they come."""
    stitched_rows = [row for row in rows if int(row) <= _STITCH.value]
    todo = [task for row in stitched_rows for kind in kinds for task in tasks(row, 2, kind)]
    done: dict[int, dict[str, Any]] = {}
    stitched = kept.each_done(stitch, todo, "plans", workers=_WORKERS.value, cluster=_CLUSTER.value)
    for number, plan in stitched:
        done[number] = plan
        common.write_csv(folder / "stitched.csv", [done[k] for k in sorted(done)])
    return [done[k] for k in sorted(done)]


def print_stitched(done: Sequence[dict[str, Any]], kinds: Sequence[str]) -> None:
    print("\nAll subgames refined and stitched together, gamma 2: welfare in units of 1e-2\n")
    columns = {"row": "row", "bounds": "bounds", "blueprint": "blueprint"}
    columns |= {"welfare": "welfare_1e-2:.4g", "refined": "refined_1e-2:.4g", "violation": "violation:.1e"}
    sweeps.print_rows(done, columns)
    for kind in kinds:
        worst = max(e["violation"] for e in done if e["bounds"] == kind)
        expected = "no bound" if kind == "paper" else "at most 1e-6"
        print(f'Violation with bounds "{kind}": expected {expected}, obtained {worst:.1e}')


def compile_first() -> None:
    """Call the iterations once, so that numba's compiling is not part of their seconds."""
    game = battleship(1, 2, 1, 2, 2)
    resolving = efce.Resolving.of(game, efce.uniform_blueprint(), efce.public_moves(game, 1), _BOUNDS.value)
    efce.refine_regret(resolving.problem(resolving.names[0]), iterations=1)


def figure_2(name: str) -> tuple[Any, dict[str, Any]]:
    height, width, size, shots = FIGURE_2[name]
    game = battleship(height, width, size, shots, 2)
    start = time.perf_counter()
    resolving = efce.Resolving.of(game, efce.uniform_blueprint(), efce.public_moves(game, 1), _BOUNDS.value)
    problem = resolving.problem(resolving.names[0])
    prepared = time.perf_counter() - start
    refined = efce.refine_regret(problem, iterations=_ITERATIONS.value, start="random", seed=_SEED.value)
    return refined.curve, {
        "name": name,
        "subgames": len(resolving.names),
        "pairs": int((refined.plan.pairs.pair_label >= 0).sum()),
        "prepared_seconds": prepared,
        "seconds_an_iteration": refined.curve.seconds[-1] / refined.iterations,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def print_figure_2(points: Sequence[dict[str, Any]], about: Sequence[dict[str, Any]]) -> None:
    print("\nFigure 2: the worst violation, from a random start\n")
    columns = {"subgame": "name", "iterations": "iterations", "seconds": "seconds:.3g"}
    sweeps.print_rows(points, columns | {"violation": "violation:.1e", "welfare": "welfare:.5f"})
    print()
    columns = {"subgame": "name", "pairs": "pairs", "seconds before": "prepared_seconds:.1f"}
    columns |= {"seconds an iteration": "seconds_an_iteration:.2g", "peak MiB": "peak_mib:.0f"}
    sweeps.print_rows(about, columns)


def plot(curves: dict[str, Any], path: pathlib.Path) -> None:
    with common.figure(path, 1, 2, dpi=120, figsize=(9.0, 3.8), sharey=True) as (figure, panels):
        for panel, label in zip(panels, ("iterations", "seconds"), strict=True):
            for k, (name, curve) in enumerate(curves.items()):
                violation = np.maximum(curve.violation, 1e-12)
                panel.plot(getattr(curve, label), violation, common.curve_style(k), ms=3, lw=1.5, label=name)
            panel.set(xscale="log", yscale="log", xlabel=label)
        panels[0].set_ylabel("worst violation (utility)")
        panels[0].legend()
        figure.tight_layout()


def main(argv: Sequence[str]) -> None:
    del argv
    rows, figures = common.chosen(_ROWS, list(TABLE_1)), common.chosen(_FIGURE, list(FIGURE_2))
    if not rows and not figures:
        raise ValueError("--rows, --figure: expected something to do, got neither")
    kinds = common.chosen(_STITCH_BOUNDS, _KINDS)
    parallel.check_workers(_WORKERS.value, _CLUSTER.value)
    folder = common.output_folder(_OUTPUT_DIR.value)
    try:
        with kept_work(folder / "plans.unfinished") as kept:
            written = show(rows, figures, kinds, kept, folder)
    except RuntimeError as error:
        if "Time limit" not in str(error):
            raise
        raise ValueError(f"{error} (--time_limit)") from None
    common.write_json(folder / "settings.json", common.own_settings())
    print(f"\nWritten: {folder}/{', '.join([*written, 'settings.json'])}")


def show(
    rows: Sequence[str],
    figures: Sequence[str],
    kinds: Sequence[str],
    kept: KeptWork,
    folder: pathlib.Path,
) -> list[str]:
    """Print and write all results; return the names of the files."""
    written = []
    if rows:
        table = table_1(rows, kept)
        print_table_1(table)
        common.write_csv(folder / "table_1.csv", table)
        written.append("table_1.csv")
        if stitched := stitch_all(rows, kinds, kept, folder):
            print_stitched(stitched, kinds)
            written.append("stitched.csv")
    if figures:
        compile_first()
        curves, about = zip(*map(figure_2, figures), strict=True)
        names = ("iterations", "seconds", "violation", "welfare")
        points = [
            {"name": name} | dict(zip(names, point, strict=True))
            for name, curve in zip(figures, curves, strict=True)
            for point in zip(*(getattr(curve, what) for what in names), strict=True)
        ]
        print_figure_2(points, about)
        common.write_csv(folder / "figure_2.csv", points)
        plot(dict(zip(figures, curves, strict=True)), folder / "figure_2.png")
        written += ["figure_2.csv", "figure_2.png"]
    return written


if __name__ == "__main__":
    common.run(main)
