r"""Computes the gain from knowing that the opponent looks only a few moves ahead.

  python examples/limited_lookahead.py                          # Kuhn and KJ poker, 10 draws: a minute
  python examples/limited_lookahead.py --draws=100              # the paper's Figures 6 and 7: minutes
  python examples/limited_lookahead.py --games=kuhn_poker --tie_breaking=favorable --noise=cumulative
  python examples/limited_lookahead.py --games=kuhn_poker --types=1,2,3   # k is not known: seconds

One player is rational and commits to a strategy; the other one sees k moves ahead, and evaluates what it sees
by its expected value in equilibrium, with Gaussian noise of standard deviation gamma: on every history alike
(independent), or on all but leaves and passed on to the histories before (cumulative). For each number of
moves and each gamma, so many evaluation functions are drawn, the same standard draws for every gamma and k,
and the best commitment to each is computed exactly and played by an independent recursion.

With --types, how far the other one sees is not known. A commitment is made for each number of moves, one for
what is earned on average over them, and one for the worst of them, and each meets all types.

Prints a table, and writes limited_lookahead.csv (mean, standard deviation and more at each point), draws.csv,
a figure for each kind of noise, and settings.json; with --types, types.csv in place of the first. The same
flags give the same numbers on any number of workers.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
import statistics
import time
from collections.abc import Sequence
from typing import Any

import common
import numpy as np
import parallel
import pyspiel
import sweeps
from absl import flags
from kept_work import kept_work

from precomp_games.algorithms import lookahead

FLAGS = flags.FLAGS
_GAMES = flags.DEFINE_multi_string(
    "games", ["kuhn_poker", "python_kj_poker"], "OpenSpiel game string; may be repeated."
)
_NOISE = flags.DEFINE_list(
    "noise", ["independent", "cumulative"], "Kinds of noise, a figure each: independent, cumulative."
)
_GAMMAS = flags.DEFINE_list(
    "gammas",
    ["0", "0.1", "0.25", "0.5", "0.75", "1", "1.5", "2"],
    "Standard deviations of the noise, in utility; numbers of at least 0 separated by commas.",
)
_LOOKAHEADS = flags.DEFINE_list("lookaheads", ["1", "2"], "How many moves ahead the limited player sees.")
_TYPES = flags.DEFINE_list(
    "types",
    None,
    "In place of --lookaheads: how many moves ahead the limited player may see, all as probable; one "
    "commitment for each, one for their average and one for the worst, each against all.",
)
_PLAYERS = flags.DEFINE_list(
    "players",
    ["0", "1"],
    "Which player is rational: 0 or 1 (players 1 and 2 of the paper, tables and figures), or both.",
)
_DRAWS = flags.DEFINE_integer("draws", 10, "Evaluations drawn for each point.", lower_bound=1)
_RULES = ["favorable", "static", "adversarial"]
_TIES: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "tie_breaking", "adversarial", _RULES, "How the limited player breaks ties."
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the draws.", lower_bound=0)
_WORKERS = flags.DEFINE_integer("workers", None, "Processes. Default: one a core.", lower_bound=1)
_CLUSTER = flags.DEFINE_string("cluster", None, f"Commit on {parallel.CLUSTER}")
_TIME_LIMIT = flags.DEFINE_float("time_limit", 600.0, "Seconds for one commitment at most.", lower_bound=0.1)
_MOST = flags.DEFINE_integer("max_histories", 20_000, "Refuse games of more histories.", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/limited_lookahead", "Where files go.")

_POINT = ("game", "noise", "rational_player", "lookahead", "gamma")
_TYPES_POINT = ("game", "noise", "rational_player", "gamma", "made_for")
_HEDGED = ("mean", "worst")
_MODELS = {"independent": lookahead.independent_noise, "cumulative": lookahead.cumulative_noise}


@dataclasses.dataclass(frozen=True)
class Task:
    """One draw of noise in one game, at one gamma; against one lookahead, or several as types."""

    game: str
    noise: str
    rational_player: int
    lookahead: int | tuple[int, ...]
    gamma: float
    draw: int
    seed: int
    tie_breaking: Any
    time_limit: float


Exact = tuple[pyspiel.Game, tuple[Any, Any]]
"""A game, and what its histories are worth to each player in equilibrium."""


def exact_values(game: pyspiel.Game) -> Exact:
    policy = lookahead.equilibrium(game)
    return game, (
        lookahead.equilibrium_values(game, 0, policy),
        lookahead.equilibrium_values(game, 1, policy),
    )


def committed(given: tuple[Exact, Task]) -> list[dict[str, Any]]:
    """Return the commitments of a task, a row each."""
    (game, exact), task = given
    player = task.rational_player
    evaluation = exact[1 - player]
    if task.gamma > 0.0:
        evaluation = _MODELS[task.noise](evaluation, task.gamma, [task.seed, task.draw])
    if isinstance(task.lookahead, tuple):
        return against_types(game, evaluation, task, task.lookahead)
    best = lookahead.commit_against_lookahead(
        game, player, task.lookahead, evaluation, task.tie_breaking, time_limit=task.time_limit
    )
    row = {name: getattr(task, name) for name in (*_POINT, "draw")}
    row |= {name: getattr(best, name) for name in ("supremum", "bound", "value", "optimal")}
    return [row | {"seconds": best.work["seconds"]}]


def against_types(
    game: pyspiel.Game, evaluation: Any, task: Task, lookaheads: Sequence[int]
) -> list[dict[str, Any]]:
    player, limit = task.rational_player, task.time_limit
    types = [lookahead.FollowerType(k, evaluation, task.tie_breaking) for k in lookaheads]
    objectives: tuple[Any, ...] = _HEDGED
    hedged = [
        lookahead.commit_against_types(game, player, types, objective=objective, time_limit=limit)
        for objective in objectives
    ]
    made = [lookahead.commit_against_types(game, player, [kind], time_limit=limit) for kind in types]
    rows = []
    for made_for, best in zip((*map(str, lookaheads), *_HEDGED), (*made, *hedged), strict=True):
        policy = best.policy()
        utility = [
            lookahead.evaluate_against_lookahead(
                game, policy, player, kind.lookahead, kind.evaluation, kind.tie_breaking
            ).utility
            for kind in types
        ]
        row = {name: getattr(task, name) for name in _TYPES_POINT[:4]}
        row |= {"made_for": made_for, "draw": task.draw}
        row |= {f"against_{k}": u for k, u in zip(lookaheads, utility, strict=True)}
        row |= {"mean": float(np.mean(utility)), "worst": min(utility)}
        rows.append(row | {"optimal": best.optimal, "seconds": best.work["seconds"]})
    return rows


def tasks() -> list[Task]:
    gammas = common.numbers(
        _GAMMAS, "numbers of at least 0 separated by commas", lambda g: 0.0 <= g < math.inf
    )
    lookaheads, types = (
        common.numbers(flag, "integers of at least 1 separated by commas", lambda k: k >= 1, int)
        for flag in (_LOOKAHEADS, _LOOKAHEADS if _TYPES.value is None else _TYPES)
    )
    if _TYPES.value is not None and FLAGS["lookaheads"].present:
        raise ValueError(f"--lookaheads: expected none with --types, got {','.join(_LOOKAHEADS.value)!r}")
    players = common.numbers(_PLAYERS, "0 or 1 separated by commas", lambda p: p in (0, 1), int)
    unknown = [noise for noise in _NOISE.value if noise not in _MODELS]
    if unknown or not _NOISE.value:
        raise ValueError(f"--noise: expected independent or cumulative, got {','.join(_NOISE.value)!r}")
    if math.isnan(_TIME_LIMIT.value):
        raise ValueError(f"--time_limit: expected seconds, got {_TIME_LIMIT.value}")
    points = itertools.product(
        dict.fromkeys(_GAMES.value),
        dict.fromkeys(_NOISE.value),
        sorted(set(players)),
        sorted(set(lookaheads)) if _TYPES.value is None else [tuple(sorted(set(types)))],
        sorted(set(gammas)),
    )
    # Without noise there is but one evaluation function.
    return [
        Task(game, noise, player, lookahead, gamma, draw, _SEED.value, _TIES.value, _TIME_LIMIT.value)
        for game, noise, player, lookahead, gamma in points
        for draw in range(_DRAWS.value if gamma > 0.0 else 1)
    ]


def summary(draws: Sequence[dict[str, Any]], point: Sequence[str]) -> list[dict[str, Any]]:
    """Return means over the draws of each point, with the standard deviation of the values behind "mean"."""
    means = {"mean": "supremum"}
    if point == _TYPES_POINT:
        earned = [name for name in draws[0] if name.startswith("against_")]
        means = {name: name for name in (*earned, *_HEDGED)}
    rows = []
    for key, group in itertools.groupby(draws, key=lambda row: tuple(row[name] for name in point)):
        drawn = list(group)
        spread = [row[means["mean"]] for row in drawn]
        row = dict(zip(point, key, strict=True)) | {"draws": len(drawn)}
        row |= {name: statistics.fmean(row[drawn_as] for row in drawn) for name, drawn_as in means.items()}
        row["deviation"] = statistics.stdev(spread) if len(drawn) > 1 else 0.0
        if point == _POINT:
            row["attained"] = statistics.fmean(row["value"] for row in drawn)
        row["unproven"] = sum(not row["optimal"] for row in drawn)
        row["seconds"] = statistics.fmean(row["seconds"] for row in drawn)
        rows.append(row)
    return rows


def main(argv: Sequence[str]) -> None:
    del argv
    todo = tasks()
    parallel.check_workers(_WORKERS.value, _CLUSTER.value)
    exact, worth = {}, {}
    for name in dict.fromkeys(_GAMES.value):
        game = common.named_game(name)
        common.check_histories(game, _MOST.value, "games")
        exact[name] = exact_values(game)
        worth[name] = exact[name][1][0](game.new_initial_state())
    folder = common.output_folder(_OUTPUT_DIR.value)
    of_types = _TYPES.value is not None
    print(f"{len(todo)} {'draws of types' if of_types else 'commitments'}, ties {_TIES.value}", flush=True)
    start = time.monotonic()
    point = _TYPES_POINT if of_types else _POINT
    with kept_work(folder / "draws.unfinished") as kept:
        solved = kept.each_done(
            committed,
            [(exact[task.game], task) for task in todo],
            "draws",
            names=[repr(task) for task in todo],
            workers=_WORKERS.value,
            cluster=_CLUSTER.value,
        )
        done = sorted(
            itertools.chain.from_iterable(rows for _, rows in solved),
            key=lambda row: [row[name] for name in (*point, "draw")],
        )
        seconds = time.monotonic() - start
        rows = summary(done, point)
        common.write_csv(folder / ("types.csv" if of_types else "limited_lookahead.csv"), rows)
        common.write_csv(
            folder / "draws.csv", [{k: v for k, v in row.items() if k != "seconds"} for row in done]
        )
        for noise in dict.fromkeys(_NOISE.value):
            draw_figure(folder / f"{noise}.png", [row for row in rows if row["noise"] == noise], worth)
        common.write_json(folder / "settings.json", common.own_settings() | {"game_values": worth})
    print_rows(rows)
    print()
    values = [worth[row["game"]] * (1 if row["rational_player"] == 0 else -1) for row in done]
    (expectations_of_types if of_types else expectations)(done, values)
    print(f"Proven optimal: expected {len(done)}, obtained {sum(row['optimal'] for row in done)}")
    if not of_types and _TIES.value == "adversarial":
        expectations_of_kuhn(done)
    print(f"\n{len(done)} commitments in {seconds:.0f} s; files are in {folder}")


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    columns = {"game": "game", "noise": "noise", "rational": "rational"}
    if _TYPES.value is None:
        columns |= {"k": "lookahead", "gamma": "gamma", "draws": "draws"}
        columns |= {"mean utility": "mean", "deviation": "deviation"}
    else:
        earned = [name for name in rows[0] if name.startswith("against_")]
        columns |= {"gamma": "gamma", "made for": "made_for", "draws": "draws"}
        columns |= {f"k = {name.removeprefix('against_')}": name for name in earned}
        columns |= {name: name for name in _HEDGED}
    shown = [row | {"rational": row["rational_player"] + 1} for row in rows]
    sweeps.print_rows(shown, columns | {"seconds each": "seconds"})


def expectations_of_types(done: Sequence[dict[str, Any]], values: Sequence[float]) -> None:
    """Print identities that must hold beside the results; values: of the game, to the rational player."""
    draws: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in done:
        draws.setdefault((*(row[name] for name in _TYPES_POINT[:4]), row["draw"]), []).append(row)
    for made_for in _HEDGED:
        greatest = 0
        for rows in draws.values():
            (own,) = [row[made_for] for row in rows if row["made_for"] == made_for]
            greatest += own >= max(row[made_for] for row in rows) - 1.0001e-4
        print(
            f"What is made for the {made_for} earns most in it, to 1e-4: "
            f"expected {len(draws)}, obtained {greatest}"
        )
    pairs = zip(done, values, strict=True)
    safe = [row["worst"] - value for row, value in pairs if row["made_for"] == "worst"]
    least = sum(each >= -1.0001e-4 for each in safe)
    print(
        "The worst of the types leaves the value of the game, to 1e-4: "
        f"expected {len(safe)}, obtained {least}"
    )


def expectations(done: Sequence[dict[str, Any]], values: Sequence[float]) -> None:
    """Print identities that must hold where the lookahead is known."""
    least = sum(row["bound"] >= value - 1e-6 for row, value in zip(done, values, strict=True))
    print(f"At least the value of the game: expected {len(done)}, obtained {least}")
    near = sum(row["value"] >= row["supremum"] - 1.0001e-4 for row in done)
    print(f"Within 1e-4 of the supremum when played: expected {len(done)}, obtained {near}")


def expectations_of_kuhn(done: Sequence[dict[str, Any]]) -> None:
    """Print the known values of Kuhn poker without noise beside the results."""
    known = {(0, 1): 1 / 6, (0, 2): -1 / 18, (1, 1): 1 / 18, (1, 2): 1 / 18}
    for row in done:
        at = row["rational_player"], row["lookahead"]
        if row["game"] == "kuhn_poker" and row["gamma"] == 0.0 and row["draw"] == 0 and at in known:
            print(
                f"Kuhn, no noise ({row['noise']}), player {at[0] + 1} rational, k = {at[1]}: "
                f"expected {known[at]:.6f}, obtained {row['supremum']:.6f}"
            )


def curve_label(name: int | str) -> str:
    """Return a curve's label: the lookahead, or, with types, the objective of the commitment."""
    if isinstance(name, int):
        return f"lookahead {name}"
    return f"made for the {name}" if name in _HEDGED else f"made for k = {name}"


def draw_figure(path: pathlib.Path, rows: Sequence[dict[str, Any]], worth: dict[str, float]) -> None:
    games = list(dict.fromkeys(row["game"] for row in rows))
    players = sorted({row["rational_player"] for row in rows})
    gammas = sorted({row["gamma"] for row in rows})
    of_types = _TYPES.value is not None
    curve_name = "made_for" if of_types else "lookahead"
    curves = sorted({row[curve_name] for row in rows})
    # Error bars stand side by side.
    apart = 0.008 * (gammas[-1] - gammas[0])
    with common.figure(
        path,
        len(games),
        len(players),
        dpi=130,
        figsize=(max(4.6 * len(players), 6.4), 3.3 * len(games) + 0.8),
        squeeze=False,
        layout="constrained",
    ) as (figure, panels):
        for (line, game), (column, player) in itertools.product(enumerate(games), enumerate(players)):
            panel = panels[line][column]
            value = worth[game] * (1 if player == 0 else -1)
            panel.axhline(value, color="0.35", ls="--", lw=1.0, label="value of the game")
            own = [row for row in rows if row["game"] == game and row["rational_player"] == player]
            for number, name in enumerate(curves):
                curve = [row for row in own if row[curve_name] == name]
                panel.errorbar(
                    [row["gamma"] + apart * (number - (len(curves) - 1) / 2) for row in curve],
                    [row["mean"] for row in curve],
                    [row["deviation"] for row in curve],
                    fmt=common.curve_style(number),
                    ms=3,
                    lw=1.5,
                    capsize=2,
                    elinewidth=0.8,
                    label=curve_label(name),
                )
            panel.set_title(f"{game}, player {player + 1} rational", fontsize=9)
            panel.set_xlabel("standard deviation of the noise, in utility", fontsize=8)
            panel.set_ylabel(
                f"utility of the rational player{', mean of types' if of_types else ''}", fontsize=8
            )
            panel.tick_params(labelsize=8)
        draws = max(row["draws"] for row in rows)
        figure.suptitle(
            f"Commitment against {'unknown' if of_types else 'limited'} lookahead: "
            f"{rows[0]['noise']} noise, {_TIES.value} ties\n"
            f"mean of {draws} draws; bars are one standard deviation of the draws",
            fontsize=10,
        )
        lines, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            lines, labels, loc="outside lower center", ncols=min(len(labels), 3 * len(players)), fontsize=8
        )


if __name__ == "__main__":
    common.run(main)
