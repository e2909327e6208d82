r"""How much does randomness protect, and how much of that do the entropy bounds see?

For several r, an opponent who plays Softmax(score / r): what Theorem 1 of the precomputation paper promises
who prepares, what its construction (learn what leads to the likeliest advantages) is really worth, and the
optimum of Algorithm 1, all with the price of what is learnt taken off. Then both sides prepare, and the
entropy of the opponent in equilibrium stands beside what Theorem 2, made general, demands: mostly nothing, as
it speaks only where lambda L is small beside what the player lacks.

  python examples/entropy_bounds.py --output_dir=output/entropy_bounds
  python examples/entropy_bounds.py --chess --penalty=0.001 --r_values=1,3,10,30,100,300

writes entropy_bounds.csv, entropy_bounds.png and settings.json. With --chess it needs an engine.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import chess_runs
import common
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import (
    EntropyBounds,
    best_precomputation,
    entropy_lower_bound,
    meta_equilibrium,
)
from precomp_games.algorithms.search import SoftmaxPolicy, default_position_key
from precomp_games.chess import preparation_tree

FLAGS = flags.FLAGS
_CHESS = flags.DEFINE_boolean("chess", False, "Chess by an engine's evaluations, in place of --game.")
_GAME = flags.DEFINE_string("game", "tic_tac_toe", "OpenSpiel game string; perfect information.")
_SIGMA = flags.DEFINE_string("sigma", "alpha_beta(depth=1)", "The search made during play.")
_SIGMA_PRE = flags.DEFINE_string("sigma_pre", "pvs(depth=6)", "The search whose moves can be memorized.")
_PRICE = flags.DEFINE_float("position_price", 0.005, "Utility that a memorized position costs in --game.")
_PLAYER = flags.DEFINE_integer("player", 0, "Who prepares.", 0, 1)
_R_VALUES = flags.DEFINE_list(
    "r_values",
    [],
    "Randomness of the opponent, separated by commas. Default: 0.01 to 5.12, in utility; with --chess 1 to "
    "100, in centipawns.",
)
_EQUILIBRIUM = flags.DEFINE_boolean("equilibrium", True, "Also the equilibrium, for --game.")
flags.DEFINE_string(
    "output_dir",
    "output/entropy_bounds",
    "Where files go; of another game by default beside it.",
)
common.define_chess_flags()
flags.adopt_module_key_flags(common)


def r_values() -> list[float]:
    if _R_VALUES.value:
        return sorted(set(common.positive_numbers(_R_VALUES)))
    return [1.0, 3.0, 10.0, 30.0, 100.0] if _CHESS.value else [round(0.01 * 2**i, 2) for i in range(10)]


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.game_folder()
    values = r_values()
    rows = chess_rows(values) if _CHESS.value else game_rows(values)
    common.write_csv(folder / "entropy_bounds.csv", rows)
    told: dict[str, Any] = {"player": _PLAYER.value, "r_values": values}
    if _CHESS.value:
        settings = chess_runs.settings(_PLAYER.value, values[0])
        side = ("White", "Black")[_PLAYER.value]
        what, price = (
            f"chess, {side} prepares: {settings.analyst_limit} against {settings.opponent_limit}",
            FLAGS.penalty,
        )
        # r is a list here.
        told |= {k: v for k, v in settings.as_dict().items() if k != "opponent_temperature_cp"}
    else:
        what, price = f"{_GAME.value}: {_SIGMA_PRE.value} against {_SIGMA.value}", _PRICE.value
        told |= {flag.name: flag.value for flag in (_GAME, _SIGMA, _SIGMA_PRE, _PRICE)}
    common.write_json(folder / "settings.json", told)
    unit = "centipawns" if _CHESS.value else "utility"
    plot(rows, f"{what}; a position costs {price:g}", unit, folder / "entropy_bounds.png")
    header = ("r", "unprepared", "bound", "construction", "optimum", "v", "P(v)", "H(v)", "size")
    common.print_table(
        [
            (
                f"{row['r']:g}", row["unprepared"], row["bound"], row["construction"], row["optimum"],
                row["v"], row["p_norm"], row["entropy"], f"{row['size']} of {row['optimal_size']}",
            )
            for row in rows
        ],
        header,
    )  # fmt: skip
    if "equilibrium_entropy" in rows[0]:
        print("\nBoth prepare: the entropy of the opponent's play in equilibrium, and the least it must be")
        common.print_table(
            [
                (
                    f"{row['r']:g}", row["equilibrium_value"], row["equilibrium_v"],
                    row["equilibrium_p_norm"], row["equilibrium_entropy"], row["demanded"],
                    f"{row['nash_conv']:.1e}",
                )
                for row in rows
            ],
            ("r", "value", "v", "P(v)", "H(v)", "demanded", "NashConv"),
        )  # fmt: skip
    ordered = [
        row["bound"] <= row["construction"] + 1e-9 and row["construction"] <= row["optimum"] + 1e-9
        for row in rows
    ]
    wrong = [row["r"] for row, holds in zip(rows, ordered, strict=True) if not holds]
    print(
        "\nExpected at every r: bound <= construction <= optimum; "
        + (f"got otherwise at r = {wrong}" if wrong else "so it is.")
    )
    print(f"Written: {folder}/entropy_bounds.csv, entropy_bounds.png, settings.json")


def measured(tree: HistoryTree, player: int, penalty: float) -> dict[str, Any]:
    """One tree's three values, and the lines behind the construction."""
    best, bounds = best_precomputation(tree, player), EntropyBounds(tree, player)
    promise, made = bounds.best_bound(penalty), bounds.best_construction(penalty)
    lines = bounds.lines(made.v)
    # Nothing worth promising: the least utility, by memorizing nothing.
    bound = max(promise.utility_bound - penalty * promise.size_bound, bounds.low)
    return {
        "unprepared": best.unprepared,
        "bound": bound,
        "construction": max(made.utility - penalty * made.size, best.unprepared),
        "optimum": best.value,
        "v": made.v,
        "p_norm": lines.p_norm,
        "entropy": lines.entropy,
        "size": made.size,
        "optimal_size": best.size,
    }


def game_rows(values: Sequence[float]) -> list[dict[str, Any]]:
    """A game with search policies."""
    game = common.load_game(_GAME.value)
    shallow: Any = common.policy(game, _SIGMA.value)
    deep = common.policy(game, _SIGMA_PRE.value)
    key, player = default_position_key(game), _PLAYER.value
    rows = []
    for r in common.progress_bar(values, desc="r", leave=False):
        random = SoftmaxPolicy(game, shallow, r)
        sigma = common.seats(player, shallow, random)
        penalties = common.seats(player, _PRICE.value, math.inf)
        tree = HistoryTree.from_game(game, sigma_pre=deep, sigma=sigma, penalties=penalties, position_key=key)
        row = {"r": r} | measured(tree, player, _PRICE.value)
        if _EQUILIBRIUM.value:
            row |= equilibrium(
                HistoryTree.from_game(
                    game, sigma_pre=deep, sigma=sigma, penalties=_PRICE.value, position_key=key
                ),
                player,
            )
        rows.append(row)
    return rows


def equilibrium(tree: HistoryTree, player: int) -> dict[str, Any]:
    """The opponent's entropy in equilibrium where most is demanded of it; else where v P(v) is greatest."""
    found = meta_equilibrium(tree, iterations=2000, target_nash_conv=1e-3)
    rival = found.strategies[1 - player]
    bounds = EntropyBounds(tree, player, opponent=rival)
    value = best_precomputation(tree, player, opponent=rival).value
    scaled, price = (value - bounds.low) / bounds.range, tree.penalties[player] / bounds.range
    best: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    for v in bounds.thresholds(40).tolist():
        part, p_norm = (v - bounds.low) / bounds.range, bounds.lines(v).p_norm
        demanded = entropy_lower_bound(scaled, part, p_norm, price, bounds.moves)
        best = max(best, (demanded, part * p_norm, v))
    lines = bounds.lines(best[2])
    return {
        "equilibrium_value": value,
        "equilibrium_v": best[2],
        "equilibrium_p_norm": lines.p_norm,
        "equilibrium_entropy": lines.entropy,
        "demanded": best[0],
        "nash_conv": found.nash_conv,
    }


def chess_rows(values: Sequence[float]) -> list[dict[str, Any]]:
    """Chess by an engine; utilities in [0, 1]."""
    rows, player = [], _PLAYER.value
    with chess_runs.engines() as engines:
        for k, r in enumerate(values):
            settings = chess_runs.settings(player, r)
            with engines.progress(f"r = {r:g} ({k + 1} of {len(values)})") as progress:
                tree = preparation_tree(settings, engines.analyst, engines.opponent, progress)
            rows.append({"r": r} | measured(tree, player, settings.penalty))
    return rows


def plot(rows: Sequence[dict[str, Any]], title: str, unit: str, path: pathlib.Path) -> None:
    """The three values (left axis) and the entropy (right axis) against r."""
    with common.figure(path, figsize=(7.0, 4.2)) as (figure, panel):
        x = [row["r"] for row in rows]
        names = (("optimum", "C0-o", "optimum"), ("construction", "C2-s", "Theorem 1's construction"))
        handles = [
            panel.plot(x, [row[name] for row in rows], style, lw=2.0, ms=4, label=label)[0]
            for name, style, label in (*names, ("bound", "C3-^", "Theorem 1's bound"))
        ]
        handles += panel.plot(x, [row["unprepared"] for row in rows], "k:", lw=1.2, label="unprepared")
        panel.set_xscale("log")
        panel.set_xlabel(f"randomness of the opponent, r ({unit})")
        panel.set_ylabel("value, price of learning taken off")
        right = panel.twinx()
        right.grid(visible=False)
        handles += right.plot(x, [row["entropy"] for row in rows], "C1--", lw=1.2, label="H(v), right")
        right.set_ylabel("entropy of the advantage lines, nats")
        right.set_ylim(bottom=0.0)
        figure.suptitle(title, fontsize=9)
        # Below the panel: inside it would hide one of the curves.
        figure.legend(handles=handles, loc="lower center", ncol=3, fontsize=8)
        figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


if __name__ == "__main__":
    common.run(main)
