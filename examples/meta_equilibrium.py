r"""Both players prepare against each other, in any OpenSpiel game for two: an equilibrium of the meta-game.

  python examples/meta_equilibrium.py --game=leduc_poker --sigma=uniform --sigma_pre="cfr(iterations=100)" \
      --penalty_0=0.002 --penalty_1=0.002

Both play sigma and may memorize what sigma_pre does, or with --menu any one action of their choice, at a
penalty for each information state; both know that the other one prepares too. Prints what each side
memorizes, with which probability, and what of it only because the other side prepares; and what preparing is
worth to each: the value with nobody prepared, one side, both. Small games are solved as one linear program as
well, to compare with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import common
from absl import flags

from precomp_games import HistoryTree, Menu, algorithms

FLAGS = flags.FLAGS
common.define_game_flags()
common.define_memory_flag()
flags.adopt_module_key_flags(common)
_PENALTY_0 = flags.DEFINE_float("penalty_0", 0.01, "Utility that an information state costs player 0.")
_PENALTY_1 = flags.DEFINE_float("penalty_1", 0.01, "The same for player 1; inf never memorizes.")
_MENU = flags.DEFINE_bool("menu", False, "Which action to memorize is a choice; --sigma_pre is not asked.")
_VARIANT = flags.DEFINE_enum(
    "variant",
    None,
    list(algorithms.CFR_VARIANTS),
    "Which CFR. Default: none, but the double oracle, which is exact.",
)
_ITERATIONS = flags.DEFINE_integer(
    "iterations",
    None,
    "At most so many iterations of CFR. Default: what --target_nash_conv takes, at most a million.",
    lower_bound=1,
)
_TARGET = flags.DEFINE_float("target_nash_conv", 1e-6, "Stop at this NashConv.", lower_bound=0.0)
_STATES = flags.DEFINE_integer("states", 10, "How many memorized states of each to print.", lower_bound=0)
_MOST_EXACT = flags.DEFINE_integer(
    "exact_infosets", 5_000, "Solve exactly too where there are at most so many information states."
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Where result.json goes. Default: nowhere.")


def name_of(tree: HistoryTree, entry: int) -> str:
    """Return an information state, and where there is a choice, the actions that are memorized there."""
    name = common.infoset_name(tree, int(tree.entry_infoset[entry]))
    if not tree.has_menus:
        return name
    state = tree.state(int(tree.infoset_history[tree.entry_infoset[entry]]))
    moves = [state.action_to_string(state.current_player(), action) for action in tree.memorized_row(entry)]
    return f"{name}: {', '.join(moves)}"


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value) if _OUTPUT_DIR.value else None
    penalties = (_PENALTY_0.value, _PENALTY_1.value)
    game = common.named_game(FLAGS.game)
    tree = HistoryTree.from_game(
        game,
        sigma_pre=Menu.of_actions() if _MENU.value else common.policy(game, FLAGS.sigma_pre),
        sigma=common.policy(game, FLAGS.sigma),
        penalties=penalties,
    )
    alone = [algorithms.best_precomputation(tree, player) for player in (0, 1)]
    solved = algorithms.meta_equilibrium(
        tree, variant=_VARIANT.value, iterations=_ITERATIONS.value, target_nash_conv=_TARGET.value
    )
    print(
        f"{tree.game.get_type().short_name}: {tree.num_histories} histories, "
        f"{tree.num_infosets} information states worth a look\n"
        f"{common.solved_by(solved)}"
    )
    if not solved.converged:
        print(f"Not converged: --target_nash_conv={_TARGET.value:g} takes more --iterations")
    numbers = ("value", "utility", "nash_conv", "sizes", "solver", "iterations", "converged")
    result = {
        "game": FLAGS.game,
        "penalties": [None if math.isinf(penalty) else penalty for penalty in penalties],
        **{name: getattr(solved, name) for name in numbers},
    }
    if tree.num_infosets <= _MOST_EXACT.value:
        exact = algorithms.meta_sequence_form_lp(tree)
        result["exact_value"] = exact.value
        print(f"Value to player 0: expected {exact.value:.6f} (one program), obtained {solved.value:.6f}")
    common.print_table(
        [
            ("nobody", alone[0].unprepared, 0.0, 0.0, ""),
            ("player 0", alone[0].utility, float(alone[0].size), 0.0, ""),
            ("player 1", tree.utility_sum - alone[1].utility, 0.0, float(alone[1].size), ""),
            ("both", solved.utility, solved.sizes[0], solved.sizes[1], "in equilibrium, on average"),
        ],
        ("who prepares", "utility of player 0", "size 0", "size 1", ""),
    )
    for strategy, best in zip(solved.strategies, alone, strict=True):
        plan, known = strategy.realization_plan(), set(best.memorization_set.tolist())
        likely = sorted(range(len(plan)), key=lambda k: (-plan[k], k))
        shown = [k for k in likely if plan[k] > 1e-3][: _STATES.value]
        if shown:
            provoked = sum(plan[k] for k in likely if k not in known)
            print(f"\nPlayer {strategy.player} memorizes ({provoked:.2f} only because the other prepares)")
            rows = [(plan[k], "yes" if k in known else "no", name_of(tree, k)) for k in shown]
            common.print_table(rows, ("probability", "alone too", "information state"))
    if folder:
        result["memorized"] = [
            {name_of(tree, k): float(x) for k, x in enumerate(strategy.realization_plan()) if x > 0.0}
            for strategy in solved.strategies
        ]
        common.write_json(folder / "result.json", result)
        print(f"\nWritten: {folder}/result.json")


if __name__ == "__main__":
    common.run(main)
