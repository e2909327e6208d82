r"""Preparing against a search, without any engine: sigma is a shallow search and sigma_pre a deep one.

  python examples/search_precomputation.py --game=tic_tac_toe --sigma="alpha_beta(depth=1)" \
      --sigma_pre="pvs(depth=6)" --output_dir=output/search_precomputation

As in Figure 1 of the precomputation paper, for several r: an opponent plays Softmax(score / r) over the exact
scores of all its moves, and either side in turn computes the best book against that; off the book it plays
what sigma finds best. Then both sides prepare while both play Softmax(score / r), in equilibrium. A book of
each side is played, to see that it is worth what it should be. Writes search_precomputation.csv,
search_precomputation.png and settings.json.

A position is searched once for the whole sweep. Larger games need --leaf_value=evaluator, and penalties that
keep the trees small: --game=connect_four --penalty=0.002 --equilibrium_penalty=0.02.
"""

from __future__ import annotations

import math
import pathlib
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import common
import numpy as np
import pyspiel
import sweeps
from absl import flags

from precomp_games import HistoryTree, RolloutValues, algorithms
from precomp_games.algorithms.search import SearchBot, SoftmaxPolicy, known_of

FLAGS = flags.FLAGS
sweeps.define_output_flag("output/search_precomputation")
sweeps.define_search_flags()
flags.adopt_module_key_flags(sweeps)
_R_VALUES = flags.DEFINE_list(
    "r_values",
    [f"{0.01 * 2**i:g}" for i in range(10)],
    "Randomness of the opponent, in the game's utility, separated by commas.",
)
_PENALTY = flags.DEFINE_float("penalty", 0.02, "Utility that a memorized position costs.", lower_bound=1e-9)
_EQUILIBRIUM_PENALTY = flags.DEFINE_float(
    "equilibrium_penalty", 0.05, "The same where both sides prepare.", lower_bound=1e-9
)
_LEAF_VALUE = flags.DEFINE_enum(
    "leaf_value",
    "exact",
    ["exact", "rollouts", "evaluator"],
    "What play after the book is worth: exactly, the mean of games played on, or the game's evaluation.",
)
_GAMES = flags.DEFINE_integer("rollout_games", 100, "Games a leaf, for --leaf_value=rollouts.", lower_bound=1)
_TARGET = flags.DEFINE_float(
    "target_nash_conv", 1e-4, "Stop the equilibrium's search at this NashConv.", lower_bound=0.0
)
_ITERATIONS = flags.DEFINE_integer(
    "iterations", 20_000, "At most so many iterations of the equilibrium's search.", lower_bound=1
)
_CHECK_GAMES = flags.DEFINE_integer(
    "check_games", 500, "Games that one book of each side is played for; 0: none.", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of roll-outs and of games played.", lower_bound=0)

_SIDES = ("player 0", "player 1", "both")


def leaf_value(game: pyspiel.Game) -> Any:
    if _LEAF_VALUE.value == "rollouts":
        return RolloutValues(games=_GAMES.value, seed=_SEED.value)
    if _LEAF_VALUE.value == "exact":
        return "exact"
    evaluator = known_of(game).evaluator
    if evaluator is None:
        raise ValueError(f"--leaf_value=evaluator: expected a game with an evaluation, got {FLAGS.game!r}")
    return lambda state: float(state.returns()[0]) if state.is_terminal() else evaluator(state)


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.game_folder()
    values = sorted(common.positive_numbers(_R_VALUES))
    game = common.named_game(FLAGS.game)
    shallow, deep = common.policy(game, FLAGS.sigma), common.policy(game, FLAGS.sigma_pre)
    SoftmaxPolicy(game, shallow, values[0])  # wrong flags are errors before any search
    leaves = leaf_value(game)
    rows: list[dict[str, Any]] = []
    checks = []
    for k, r in enumerate(values):
        for side in _SIDES:
            about = f"{side}, r = {r:g} ({k + 1} of {len(values)})"
            with common.bar(about, "steps", leave=False) as show:
                row, check = prepared(game, shallow, deep, leaves, side, r, show)
            rows.append({"prepares": side, "r": r, "log10_r": round(math.log10(r), 6)} | row)
            if check is not None and k == len(values) // 2:
                checks.append((side, r, *check))
    common.write_csv(folder / "search_precomputation.csv", rows)
    own = (_PENALTY, _EQUILIBRIUM_PENALTY, _LEAF_VALUE, _GAMES, _TARGET, _ITERATIONS, _SEED)
    settings = sweeps.values_of("game", "sigma", "sigma_pre", *(flag.name for flag in own))
    common.write_json(folder / "settings.json", settings | {"r_values": values})
    title = f"{FLAGS.game}: {FLAGS.sigma}, prepared by {FLAGS.sigma_pre}"
    plot(rows, title, folder / "search_precomputation.png")
    for side in _SIDES:
        print(f"\n{heading(side)}")
        columns = {"r": "r:g"}
        columns |= {name: name for name in ("utility", "size", "value", "unprepared", "histories")}
        columns["NashConv" if side == "both" else "positions"] = "certificate"
        own_rows = [row | {"size": sizes(row)} for row in rows if row["prepares"] == side]
        sweeps.print_rows(own_rows, columns)
    print()
    for side, r, expected, obtained, error in checks:
        # An evaluation ranks positions; it is not what they are worth.
        word = "evaluated at" if _LEAF_VALUE.value == "evaluator" else "expected"
        print(
            f"Played out, {side}, r = {r:g}: {word} {expected:.4f}, obtained {obtained:.4f} "
            f"(standard error {error:.4f}, {_CHECK_GAMES.value} games)"
        )
    print(f"Written: {folder}/search_precomputation.csv, search_precomputation.png, settings.json")


def heading(side: str) -> str:
    return "Both prepare" if side == "both" else f"{side.capitalize()} prepares"


def sizes(row: dict[str, Any]) -> str:
    """Return the number of memorized positions; for each side, on average, if both prepare."""
    if row["prepares"] == "both":
        return f"{row['size_0']:.2f} + {row['size_1']:.2f}"
    return f"{row['size_0'] + row['size_1']:.0f}"


def prepared(
    game: pyspiel.Game, shallow: Any, deep: Any, leaves: Any, side: str, r: float, show: Callable[..., None]
) -> tuple[dict[str, Any], tuple[float, float, float] | None]:
    """Return the row of one tree, with the score that playing the book gave.

    Utilities are those of the player who prepares; where both do, of player 0.
    """
    random = SoftmaxPolicy(game, shallow, r)
    player, both = _SIDES.index(side), side == "both"
    tree = HistoryTree.from_game(
        game,
        sigma_pre=deep,
        sigma=random if both else common.seats(player, shallow, random),
        penalties=_EQUILIBRIUM_PENALTY.value if both else common.seats(player, _PENALTY.value, math.inf),
        leaf_value=leaves,
        position_key=known_of(game).position_key,
    )
    check: tuple[float, float, float] | None = None
    result: Any
    certificate: float
    if both:
        show(note="equilibrium")
        result = algorithms.meta_equilibrium(
            tree, iterations=_ITERATIONS.value, target_nash_conv=_TARGET.value
        )
        nobody = algorithms.best_precomputation(tree.with_penalties((math.inf, math.inf)), 0)
        unprepared, number, certificate = nobody.unprepared, result.sizes, result.nash_conv
    else:
        result = best = algorithms.best_precomputation(tree, player)
        number = common.seats(player, best.size, 0)
        unprepared, certificate = best.unprepared, best.num_positions
        if _CHECK_GAMES.value:
            show(note="playing")
            check = (best.utility, *played(game, best.policy(), player))
    row = {"utility": result.utility, "value": result.value, "unprepared": unprepared}
    row |= {"size_0": float(number[0]), "size_1": float(number[1])}
    return row | {"histories": tree.num_histories, "certificate": certificate}, check


def played(game: pyspiel.Game, policy: Any, player: int) -> tuple[float, float]:
    """Return the mean utility of games in which both sides play `policy`, and its standard error."""
    bot = SearchBot(policy, seed=_SEED.value)
    seeds = np.random.default_rng(_SEED.value).integers(2**31, size=_CHECK_GAMES.value)
    utilities = [
        pyspiel.evaluate_bots(game.new_initial_state(), [bot, bot], int(seed))[player] for seed in seeds
    ]
    spread = statistics.stdev(utilities) if len(utilities) > 1 else math.nan
    return statistics.fmean(utilities), spread / math.sqrt(len(utilities))


def plot(rows: Sequence[dict[str, Any]], title: str, path: pathlib.Path) -> None:
    """Plot utility (left axis) and size (right axis) against log10 r, a panel for each who prepares."""
    with common.figure(path, 3, figsize=(7.0, 9.6), sharex=True) as (figure, panels):
        for player, (side, panel) in enumerate(zip(_SIDES, panels, strict=True)):
            own = [row for row in rows if row["prepares"] == side]
            both = side == "both"
            handles = [
                sweeps.curve(panel, own, "log10_r", "utility", "C0-o", "prepared", lw=2.5, ms=5),
                sweeps.curve(panel, own, "log10_r", "unprepared", "C0:", "nobody prepared", lw=1.5),
            ]
            panel.set_ylabel(f"utility of {_SIDES[0] if both else side}", color="C0")
            panel.set_title(heading(side), fontsize=10)
            right = sweeps.right_axis(panel, "positions")
            sizes = {"size_0": "positions of player 0", "size_1": "positions of player 1"}
            if not both:
                sizes = {f"size_{player}": "positions in the book"}
            for (size, label), style in zip(sizes.items(), ("C1-s", "C2-^"), strict=False):
                handles.append(sweeps.curve(right, own, "log10_r", size, style, label, lw=1.2, ms=3.5))
            right.set_ylim(bottom=0.0)
            panel.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncol=4, fontsize=8)
        panels[-1].set_xlabel(
            "randomness of what is computed during play, log10 r (r in utility)", labelpad=22
        )
        figure.suptitle(title, fontsize=10)
        figure.tight_layout(h_pad=2.0)


if __name__ == "__main__":
    common.run(main)
