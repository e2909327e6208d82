r"""Compares the protection that randomness gives with the protection that the entropy bounds prove.

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

import functools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import chess_runs
import common
import sweeps
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import EntropyBounds, best_precomputation, meta_equilibrium
from precomp_games.algorithms.search import SoftmaxPolicy, known_of
from precomp_games.chess import preparation_tree

FLAGS = flags.FLAGS
_CHESS = flags.DEFINE_boolean("chess", False, "Chess by an engine's evaluations, in place of --game.")
_PRICE = flags.DEFINE_float("position_price", 0.005, "Utility that a memorized position costs in --game.")
_PLAYER = flags.DEFINE_integer("player", 0, "Who prepares.", 0, 1)
_R_VALUES = flags.DEFINE_list(
    "r_values",
    [],
    "Randomness of the opponent, separated by commas. Default: 0.01 to 5.12, in utility; with --chess 1 to "
    "100, in centipawns.",
)
_EQUILIBRIUM = flags.DEFINE_boolean("equilibrium", True, "Also the equilibrium, for --game.")
sweeps.define_output_flag("output/entropy_bounds")
sweeps.define_search_flags()
common.define_chess_flags()
flags.adopt_module_key_flags(common)
flags.adopt_module_key_flags(sweeps)


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
    parameters: dict[str, Any] = {"player": _PLAYER.value, "r_values": values}
    if _CHESS.value:
        settings = chess_runs.settings(_PLAYER.value, values[0])
        side = ("White", "Black")[_PLAYER.value]
        what = f"chess, {side} prepares: {settings.analyst_limit} against {settings.opponent_limit}"
        price = FLAGS.penalty
        # r is a list here.
        parameters |= {k: v for k, v in settings.as_dict().items() if k != "opponent_temperature_cp"}
    else:
        what, price = f"{FLAGS.game}: {FLAGS.sigma_pre} against {FLAGS.sigma}", _PRICE.value
        parameters |= sweeps.values_of("game", "sigma", "sigma_pre", "position_price")
    common.write_json(folder / "settings.json", parameters)
    unit = "centipawns" if _CHESS.value else "utility"
    plot(rows, f"{what}; a position costs {price:g}", unit, folder / "entropy_bounds.png")
    values_alone = {name: name for name in ("unprepared", "bound", "construction", "optimum")}
    lines = {"v": "v", "P(v)": "p_norm", "H(v)": "entropy", "size": "sizes"}
    sizes = [row | {"sizes": f"{row['size']} of {row['optimal_size']}"} for row in rows]
    sweeps.print_rows(sizes, {"r": "r:g"} | values_alone | lines)
    if "equilibrium_entropy" in rows[0]:
        print("\nBoth prepare: the entropy of the opponent's play in equilibrium, and the least it must be")
        headings = {"value": "value", "v": "v", "P(v)": "p_norm", "H(v)": "entropy"}
        columns = {"r": "r:g"} | {heading: f"equilibrium_{name}" for heading, name in headings.items()}
        columns |= {"demanded": "demanded", "NashConv": "nash_conv:.1e"}
        sweeps.print_rows(rows, columns)
    wrong = [
        row["r"]
        for row in rows
        if row["bound"] > row["construction"] + 1e-9 or row["construction"] > row["optimum"] + 1e-9
    ]
    print(
        "\nExpected at every r: bound <= construction <= optimum; "
        + (f"got otherwise at r = {wrong}" if wrong else "so it is.")
    )
    print(f"Written: {folder}/entropy_bounds.csv, entropy_bounds.png, settings.json")


def measured(tree: HistoryTree, player: int, penalty: float) -> dict[str, Any]:
    """Return one tree's three values, and the lines behind the construction."""
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
    """Return the rows of a game with search policies."""
    game = common.named_game(FLAGS.game)
    shallow: Any = common.policy(game, FLAGS.sigma)
    deep = common.policy(game, FLAGS.sigma_pre)
    key, player = known_of(game).position_key, _PLAYER.value
    rows = []
    for r in common.progress_bar(values, desc="r", leave=False):
        random = SoftmaxPolicy(game, shallow, r)
        sigma = common.seats(player, shallow, random)
        expand = functools.partial(HistoryTree.from_game, game, sigma_pre=deep, sigma=sigma, position_key=key)
        tree = expand(penalties=common.seats(player, _PRICE.value, math.inf))
        row = {"r": r} | measured(tree, player, _PRICE.value)
        if _EQUILIBRIUM.value:
            row |= equilibrium(expand(penalties=_PRICE.value), player)
        rows.append(row)
    return rows


def equilibrium(tree: HistoryTree, player: int) -> dict[str, Any]:
    """Return the opponent's entropy in equilibrium, at the v that demands most, else with most v P(v)."""
    solved = meta_equilibrium(tree, iterations=2000, target_nash_conv=1e-3)
    rival = solved.strategies[1 - player]
    bounds = EntropyBounds(tree, player, opponent=rival)
    value = best_precomputation(tree, player, opponent=rival).value
    best: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    for v in bounds.thresholds(40).tolist():
        likely = (v - bounds.low) / bounds.range * bounds.lines(v).p_norm
        best = max(best, (bounds.entropy_lower_bound(value, v, tree.penalties[player]), likely, v))
    lines = bounds.lines(best[2])
    found = {"value": value, "v": best[2], "p_norm": lines.p_norm, "entropy": lines.entropy}
    row = {f"equilibrium_{name}": number for name, number in found.items()}
    return row | {"demanded": best[0], "nash_conv": solved.nash_conv}


def chess_rows(values: Sequence[float]) -> list[dict[str, Any]]:
    """Return the rows of chess by an engine; utilities in [0, 1]."""
    rows, player = [], _PLAYER.value
    with chess_runs.engines() as engines:
        for r in common.progress_bar(values, desc="r", leave=False):
            settings = chess_runs.settings(player, r)
            tree = preparation_tree(settings, engines.analyst, engines.opponent)
            rows.append({"r": r} | measured(tree, player, settings.penalty))
    return rows


def plot(rows: Sequence[dict[str, Any]], title: str, unit: str, path: pathlib.Path) -> None:
    """Plot the three values (left axis) and the entropy (right axis) against r."""
    with common.figure(path, figsize=(7.0, 4.2)) as (figure, panel):
        curves = [
            ("optimum", "C0-o", "optimum"),
            ("construction", "C2-s", "Theorem 1's construction"),
            ("bound", "C3-^", "Theorem 1's bound"),
        ]
        handles = [sweeps.curve(panel, rows, "r", *each, lw=2.0, ms=4) for each in curves]
        handles.append(sweeps.curve(panel, rows, "r", "unprepared", "k:", "unprepared", lw=1.2))
        panel.set_xscale("log")
        panel.set_xlabel(f"randomness of the opponent, r ({unit})")
        panel.set_ylabel("value, price of learning taken off")
        right = sweeps.right_axis(panel, "entropy of the advantage lines, nats")
        handles.append(sweeps.curve(right, rows, "r", "entropy", "C1--", "H(v), right", lw=1.2))
        right.set_ylim(bottom=0.0)
        figure.suptitle(title, fontsize=9)
        # Below the panel: inside it would hide one of the curves.
        figure.legend(handles=handles, loc="lower center", ncol=3, fontsize=8)
        figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))


if __name__ == "__main__":
    common.run(main)
