r"""What is it worth to know that the opponent looks only a few moves ahead?

  python examples/limited_lookahead.py                          # Kuhn and KJ poker, 10 draws: a minute
  python examples/limited_lookahead.py --draws=100              # the paper's Figures 6 and 7: minutes
  python examples/limited_lookahead.py --games=kuhn_poker --tie_breaking=favorable --noise=cumulative

One player is rational and commits to a strategy; the other one sees k moves ahead, and evaluates what it sees
by its expected value in equilibrium, with Gaussian noise of standard deviation gamma: on every history alike
(independent), or on all but leaves and passed on to the histories before (cumulative). For each number of
moves and each gamma, so many evaluation functions are drawn, the same standard draws for every gamma and k,
and the best commitment to each is computed exactly and played by an independent recursion.

Prints a table, and writes limited_lookahead.csv (mean, standard deviation and more at each point), draws.csv,
a figure for each kind of noise, and settings.json. The same flags give the same numbers on any number of
workers.
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
import parallel
import pyspiel
from absl import flags
from kept_work import kept_work

from precomp_games.algorithms.lookahead import (
    NodeValues,
    commit_against_lookahead,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    independent_noise,
)

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
_MODELS = {"independent": independent_noise, "cumulative": cumulative_noise}


@dataclasses.dataclass(frozen=True)
class Task:
    """One draw of noise in one game, at one gamma."""

    game: str
    noise: str
    rational_player: int
    lookahead: int
    gamma: float
    draw: int
    seed: int
    tie_breaking: Any
    time_limit: float


Exact = tuple[pyspiel.Game, tuple[NodeValues, NodeValues]]
"""A game, and what its histories are worth to each player in equilibrium."""


def exact_values(game: pyspiel.Game) -> Exact:
    policy = equilibrium(game)
    return game, (equilibrium_values(game, 0, policy), equilibrium_values(game, 1, policy))


def solve(given: tuple[Exact, Task]) -> dict[str, Any]:
    (game, exact), task = given
    player = task.rational_player
    evaluation = exact[1 - player]
    if task.gamma > 0.0:
        evaluation = _MODELS[task.noise](evaluation, task.gamma, [task.seed, task.draw])
    best = commit_against_lookahead(
        game, player, task.lookahead, evaluation, task.tie_breaking, time_limit=task.time_limit
    )
    return {
        **{name: getattr(task, name) for name in (*_POINT, "draw")},
        **{name: getattr(best, name) for name in ("supremum", "bound", "value", "optimal")},
        "seconds": best.work["seconds"],
    }


def tasks() -> list[Task]:
    gammas = common.numbers(
        _GAMMAS, "numbers of at least 0 separated by commas", lambda g: 0.0 <= g < math.inf
    )
    lookaheads = common.numbers(
        _LOOKAHEADS, "integers of at least 1 separated by commas", lambda k: k >= 1, int
    )
    players = common.numbers(_PLAYERS, "0 or 1 separated by commas", lambda p: p in (0, 1), int)
    unknown = [noise for noise in _NOISE.value if noise not in _MODELS]
    if unknown or not _NOISE.value:
        raise ValueError(f"--noise: expected independent or cumulative, got {','.join(_NOISE.value)!r}")
    if math.isnan(_TIME_LIMIT.value):
        raise ValueError(f"--time_limit: expected seconds, got {_TIME_LIMIT.value}")
    points = itertools.product(
        dict.fromkeys(_GAMES.value),
        dict.fromkeys(_NOISE.value),
        *(sorted(set(values)) for values in (players, lookaheads, gammas)),
    )
    # Without noise there is but one evaluation function.
    return [
        Task(game, noise, player, lookahead, gamma, draw, _SEED.value, _TIES.value, _TIME_LIMIT.value)
        for game, noise, player, lookahead, gamma in points
        for draw in range(_DRAWS.value if gamma > 0.0 else 1)
    ]


def check_histories(game: pyspiel.Game, most: int) -> None:
    stack, count = [game.new_initial_state()], 0
    while stack:
        state = stack.pop()
        count += 1
        if count > most:
            raise ValueError(
                f"--games: expected at most {most} histories (--max_histories), got more in {game}"
            )
        if not state.is_terminal():
            stack += [state.child(action) for action in state.legal_actions()]


def summary(draws: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for key, group in itertools.groupby(draws, key=lambda row: tuple(row[name] for name in _POINT)):
        drawn = list(group)
        suprema = [row["supremum"] for row in drawn]
        rows.append(
            {
                **dict(zip(_POINT, key, strict=True)),
                "draws": len(drawn),
                "mean": statistics.fmean(suprema),
                "deviation": statistics.stdev(suprema) if len(drawn) > 1 else 0.0,
                "attained": statistics.fmean(row["value"] for row in drawn),
                "unproven": sum(not row["optimal"] for row in drawn),
                "seconds": statistics.fmean(row["seconds"] for row in drawn),
            }
        )
    return rows


def main(argv: Sequence[str]) -> None:
    del argv
    todo = tasks()
    parallel.check_workers(_WORKERS.value, _CLUSTER.value)
    exact, worth = {}, {}
    for name in dict.fromkeys(_GAMES.value):
        game = common.named_game(name)
        check_histories(game, _MOST.value)
        exact[name] = exact_values(game)
        worth[name] = exact[name][1][0](game.new_initial_state())
    folder = common.output_folder(_OUTPUT_DIR.value)
    print(f"{len(todo)} commitments, ties {_TIES.value}", flush=True)
    start = time.monotonic()
    with kept_work(folder / "draws.unfinished") as kept:
        solved = kept.each_done(
            solve,
            [(exact[task.game], task) for task in todo],
            "draws",
            names=[repr(task) for task in todo],
            workers=_WORKERS.value,
            cluster=_CLUSTER.value,
        )
        done = sorted((row for _, row in solved), key=lambda row: [row[name] for name in (*_POINT, "draw")])
        seconds = time.monotonic() - start
        rows = summary(done)
        common.write_csv(folder / "limited_lookahead.csv", rows)
        common.write_csv(
            folder / "draws.csv", [{k: v for k, v in row.items() if k != "seconds"} for row in done]
        )
        for noise in dict.fromkeys(_NOISE.value):
            draw_figure(folder / f"{noise}.png", [row for row in rows if row["noise"] == noise], worth)
        settings = {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module("__main__")}
        common.write_json(folder / "settings.json", {**settings, "game_values": worth})
    common.print_table(
        [
            (
                *(row["game"], row["noise"], row["rational_player"] + 1, row["lookahead"], row["gamma"]),
                *(row["draws"], row["mean"], row["deviation"], row["seconds"]),
            )
            for row in rows
        ],
        ("game", "noise", "rational", "k", "gamma", "draws", "mean utility", "deviation", "seconds each"),
    )
    print()
    expectations(done, worth)
    print(f"\n{len(done)} commitments in {seconds:.0f} s; files are in {folder}")


def expectations(done: Sequence[dict[str, Any]], worth: dict[str, float]) -> None:
    """What is known beforehand, next to what came out."""
    signs = [worth[row["game"]] * (1 if row["rational_player"] == 0 else -1) for row in done]
    least = sum(row["bound"] >= sign - 1e-6 for row, sign in zip(done, signs, strict=True))
    print(f"At least the value of the game: expected {len(done)}, obtained {least}")
    near = sum(row["value"] >= row["supremum"] - 1.0001e-4 for row in done)
    print(f"Within 1e-4 of the supremum when played: expected {len(done)}, obtained {near}")
    print(f"Proven optimal: expected {len(done)}, obtained {sum(row['optimal'] for row in done)}")
    if _TIES.value != "adversarial":
        return
    known = {(0, 1): 1 / 6, (0, 2): -1 / 18, (1, 1): 1 / 18, (1, 2): 1 / 18}
    for row in done:
        at = row["rational_player"], row["lookahead"]
        if row["game"] == "kuhn_poker" and row["gamma"] == 0.0 and row["draw"] == 0 and at in known:
            print(
                f"Kuhn, no noise ({row['noise']}), player {at[0] + 1} rational, k = {at[1]}: "
                f"expected {known[at]:.6f}, obtained {row['supremum']:.6f}"
            )


def draw_figure(path: pathlib.Path, rows: Sequence[dict[str, Any]], worth: dict[str, float]) -> None:
    games = list(dict.fromkeys(row["game"] for row in rows))
    players = sorted({row["rational_player"] for row in rows})
    gammas = sorted({row["gamma"] for row in rows})
    lookaheads = sorted({row["lookahead"] for row in rows})
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
            for number, lookahead in enumerate(lookaheads):
                curve = [row for row in own if row["lookahead"] == lookahead]
                panel.errorbar(
                    [row["gamma"] + apart * (number - (len(lookaheads) - 1) / 2) for row in curve],
                    [row["mean"] for row in curve],
                    [row["deviation"] for row in curve],
                    fmt=common.curve_style(number),
                    ms=3,
                    lw=1.5,
                    capsize=2,
                    elinewidth=0.8,
                    label=f"lookahead {lookahead}",
                )
            panel.set_title(f"{game}, player {player + 1} rational", fontsize=9)
            panel.set_xlabel("standard deviation of the noise, in utility", fontsize=8)
            panel.set_ylabel("utility of the rational player", fontsize=8)
            panel.tick_params(labelsize=8)
        draws = max(row["draws"] for row in rows)
        figure.suptitle(
            f"Commitment against limited lookahead: {rows[0]['noise']} noise, {_TIES.value} ties\n"
            f"mean of {draws} draws; bars are one standard deviation of the draws",
            fontsize=10,
        )
        lines, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), fontsize=8)


if __name__ == "__main__":
    common.run(main)
