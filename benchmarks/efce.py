"""Best equilibria, and refining subgames by regret minimization up to Huge.

Times in seconds are shown beside their targets; they are of one core of this machine.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Literal

import pyspiel

from benchmarks.measure import Row, fresh_process, side_by_side, status_bytes
from precomp_games.algorithms import efce
from precomp_games.algorithms.efce.regret import RegretResolver

__all__ = ["rows"]

# H, W, ship size, shots; pairs of all of the game, and of one subgame, as the paper has them.
_GAMES = {
    "Med": ((3, 2, 1, 3), "3.89M", "107,925"),
    "Large": ((3, 2, 2, 4), "111.2M", "3.20M"),
    "Huge": ((3, 2, 2, 5), "360.1M", "10.45M"),
}
_SECONDS = {"Large": 0.3, "Huge": 0.3}
_MEMORY = 10**9

# Games of the tables in OpenSpiel's battleship.h and sheriff.h (items, bribe, rounds), of up to 36,000 pairs;
# the last two take minutes. Greatest welfare as EFCE, EFCCE and NFCCE, as docs/efce_measured.md has it.
_INSTANCES: dict[tuple[str, tuple[int, int, int]], tuple[float, float, float]] = {
    ("sheriff", (3, 3, 1)): (3 / 4, 3 / 4, 9 / 8),
    ("sheriff", (3, 5, 1)): (3 / 4, 3 / 4, 9 / 8),
    ("sheriff", (5, 3, 2)): (5 / 6, 1.182170542636, 1.354166666667),
    ("sheriff", (3, 5, 2)): (3 / 4, 1.107142857143, 9 / 8),
    ("battleship", (1, 3, 2)): (-13 / 18, -13 / 18, 0.0),
    ("battleship", (2, 2, 2)): (-0.525, -0.525, 0.0),
    ("battleship", (2, 2, 3)): (-0.703517587940, -0.703125, 0.0),
    ("sheriff", (3, 3, 3)): (3 / 4, 1.05, 9 / 8),
}
_LARGE = 2
_NOTIONS: tuple[Any, ...] = ("efce", "efcce", "nfcce")


def battleship(height: int, width: int, size: int, shots: int, multiplier: float = 2.0) -> pyspiel.Game:
    return pyspiel.load_game(
        f"battleship(board_height={height},board_width={width},ship_sizes=[{size}],ship_values=[1.0],"
        f"num_shots={shots},allow_repeated_shots=false,loss_multiplier={float(multiplier)})"
    )


def sheriff(items: int, bribe: int, rounds: int) -> pyspiel.Game:
    return pyspiel.load_game(f"sheriff(max_items={items},max_bribe={bribe},num_rounds={rounds})")


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Return the rows; a `scale` below 1 leaves out what takes minutes: Large and Huge."""
    del turns
    found = [*_instances(scale, say), *_row_2(say)]
    iterations = {"Med": 10_000, "Large": 200, "Huge": 50}
    names = ["Med"] if scale < 1.0 else list(_GAMES)
    for name in names:
        say(f"{name}: what its subgames are worth, then iterations, in a process of its own")
        found += fresh_process(_subgame, name, max(50, round(iterations[name] * scale)))
    return found


def _instances(scale: float, say: Callable[[str], None]) -> list[Row]:
    found = []
    for (name, sizes), expected in list(_INSTANCES.items())[: None if scale >= 1.0 else -_LARGE]:
        height, width, shots = sizes
        game = sheriff(*sizes) if name == "sheriff" else battleship(height, width, 1, shots)
        whole = efce.SequenceGame.of(game)
        for notion, welfare in zip(_NOTIONS, expected, strict=True):
            say(f"{name} {sizes}, {notion}")
            best = efce.efce_lp(whole, notion=notion, vertex=True)
            certified = max(best.gap, best.exploitability)
            found.append(
                Row(
                    f"{name} {sizes}, {notion}: welfare ({best.seconds:.1f} s, certified to {certified:.0e})",
                    f"{best.welfare:.12f}",
                    f"{welfare:.12f}",
                    bool(abs(best.welfare - welfare) < 1e-9 and certified < 1e-9),
                )
            )
    return found


def _row_2(say: Callable[[str], None]) -> list[Row]:
    say("regret minimization on row 2")
    game = battleship(2, 2, 1, 3)
    whole = efce.decompose(efce.SequenceGame.of(game), efce.public_moves(game, 1))
    resolving = efce.Resolving.of_subgames(whole, efce.uniform_blueprint())
    problem = resolving.problem(resolving.names[0])
    optimum = efce.refine_lp(problem)
    gap = optimum.welfare - optimum.blueprint_welfare
    found = []
    efce.refine_regret(problem, iterations=1)  # compiles
    for variant in ("predictive", "plain"):
        for what, target in (("no target", None), ("90% of the LP's gain", optimum.welfare - 0.1 * gap)):
            run = functools.partial(
                efce.refine_regret, problem, iterations=1000, target=target, start="random", variant=variant
            )
            curve = run().curve
            reached = [
                (n, s) for n, s, v in zip(curve.iterations, curve.seconds, curve.violation, strict=True)
                if v <= 1e-4
            ]  # fmt: skip
            at = f"{reached[0][0]} iterations, {reached[0][1]:.3f} s" if reached else "not reached"
            asked = variant == "predictive"
            found.append(
                Row(
                    f"row 2, {variant} RM+, {what}: violation 1e-4 at",
                    at,
                    "<= 1000, 1 s" if asked else "",
                    bool(reached and reached[0][1] <= 1.0) if asked else None,
                )
            )
            found.append(Row(f"row 2, {variant} RM+, {what}: curve", _curve(curve)))
    return found


def _curve(curve: Any) -> str:
    points = [(n, v) for n, v in zip(curve.iterations, curve.violation, strict=True) if str(n)[0] in "15"]
    return ", ".join(f"{v:.0e} ({n})" for n, v in points[-6:])


def _subgame(name: str, iterations: int) -> list[Row]:
    """Measure counts, and regret minimization on the first subgame, with the bounds of all."""
    sizes, total, part = _GAMES[name]
    game = battleship(*sizes)
    public = efce.public_moves(game, 1)
    start = time.perf_counter()
    resolving = efce.Resolving.of(game, efce.uniform_blueprint(), public)
    prepared = time.perf_counter() - start
    problem = resolving.problem(resolving.names[0])
    counts = resolving.counts
    digits = len(total.strip("M").split(".")[1])
    printed = f"{counts.total / 1e6:.{digits}f}M"
    tiny = battleship(1, 2, 1, 2)
    small = efce.Resolving.of(tiny, efce.uniform_blueprint(), efce.public_moves(tiny, 1))
    precision: Literal["double", "single"] = "double" if name == "Med" else "single"
    efce.refine_regret(small.problem(small.names[0]), iterations=1)  # compiles
    efce.refine_regret(small.problem(small.names[0]), iterations=1, precision="single")
    found = efce.refine_regret(problem, iterations=iterations, start="random", precision=precision)
    each = found.curve.seconds[-1] / found.iterations
    reached = [n for n, v in zip(found.curve.iterations, found.curve.violation, strict=True) if v <= 1e-4]
    peak = status_bytes("VmHWM")
    limit = _SECONDS.get(name)
    double = RegretResolver(problem, start="random")
    single = RegretResolver(problem, start="random", precision="single")
    times = side_by_side(5, double=lambda: double.run(1), single=lambda: single.run(1))
    return [
        Row(
            f"{name}: relevant pairs, {counts.total:,}",
            printed,
            total,
            printed == total,
        ),
        Row(f"{name}: pairs of the subgame", f"{counts.subgames[resolving.names[0]]:,}", part),
        Row(
            f"{name}: seconds until {len(resolving.names)} subgames' bounds are known",
            f"{prepared:.0f}",
        ),
        Row(
            f"{name}: seconds an iteration, {precision} precision",
            f"{each:.4f}",
            f"< {limit:g}" if limit else "",
            each < limit if limit else None,
        ),
        Row(f"{name}: an iteration in double / in single precision", times.text("double", "single")),
        Row(f"{name}: peak memory of the process, MB", f"{peak / 1e6:.0f}", "< 1000", peak < _MEMORY),
        Row(
            f"{name}: violation 1e-4 at",
            f"{reached[0]} iterations" if reached else f"not reached in {iterations}",
            "<= 10000" if name == "Med" else "",
            bool(reached) if name == "Med" else None,
        ),
        Row(f"{name}: curve", _curve(found.curve)),
        *(_by_program(name, problem) if name == "Med" else ()),
    ]


def _by_program(name: str, problem: Any) -> list[Row]:
    refined = efce.refine_lp(problem)
    violation = problem.violation(refined.plan)
    what = f"{name}: violation, by the linear program ({refined.seconds:.0f} s)"
    return [Row(what, f"{violation:.0e}", "<= 1e-8", violation <= 1e-8)]
