r"""Finds the positions worth memorizing against a fixed opponent, in any two-player OpenSpiel game.

  python examples/best_precomputation.py --game=kuhn_poker --sigma=uniform \
      --sigma_pre="cfr(iterations=300)" --penalty=0.01

Both players play sigma; one of them may memorize what sigma_pre does, at a penalty for each information
state. With --menu=support it memorizes one of the moves that sigma_pre plays, and with --menu=all any legal
move: at a small penalty that is a best response to sigma. Prints which ones are worth it (Algorithm 1), and
checks the result by OpenSpiel's expected_game_score of the policy if the game is small enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import common
from absl import flags
from open_spiel.python.algorithms import expected_game_score

from precomp_games import HistoryTree, Menu, RolloutValues
from precomp_games.algorithms import BestPrecomputation, best_precomputation

FLAGS = flags.FLAGS
common.define_game_flags()
common.define_memory_flag()
flags.adopt_module_key_flags(common)
_OPPONENT = flags.DEFINE_string("opponent", None, "The opponent's policy. Default: --sigma.")
_PLAYER = flags.DEFINE_enum("player", "both", ["0", "1", "both"], "Who prepares.")
_PENALTY = flags.DEFINE_float("penalty", 0.01, "Utility that an information state costs.")
_MENU = flags.DEFINE_enum(
    "menu",
    "none",
    ["none", "support", "all"],
    "What there is to choose among at an information state: nothing, sigma_pre is memorized as it is; one of "
    "the moves that sigma_pre plays; any legal move.",
)
_LEAF_VALUE = flags.DEFINE_enum(
    "leaf_value", "exact", ["exact", "rollouts"], "How play after the book is valued."
)
_EPSILON = flags.DEFINE_float("epsilon", 0.1, "Roll-outs: what they may cost, in utility.")
_DELTA = flags.DEFINE_float("delta", 0.05, "Roll-outs: the probability that they cost more.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the roll-outs.", lower_bound=0)
_STATES = flags.DEFINE_integer("states", 20, "How many memorized states to print.", lower_bound=0)
_MOST_SCORED = flags.DEFINE_integer(
    "check_histories", 200_000, "Check by playing the policy where the game has at most so many histories."
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Where result.json goes. Default: nowhere.")


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.output_folder(_OUTPUT_DIR.value) if _OUTPUT_DIR.value else None
    game = common.named_game(FLAGS.game)
    sigma = common.policy(game, FLAGS.sigma)
    sigma_pre: Any = Menu.of_actions() if _MENU.value == "all" else common.policy(game, FLAGS.sigma_pre)
    if _MENU.value == "support":
        sigma_pre = Menu.of_support(sigma_pre)
    opponent = common.policy(game, _OPPONENT.value) if _OPPONENT.value else sigma
    leaf_value: Any = "exact"
    if _LEAF_VALUE.value == "rollouts":
        leaf_value = RolloutValues(epsilon=_EPSILON.value, delta=_DELTA.value, seed=_SEED.value)
    players = (0, 1) if _PLAYER.value == "both" else (int(_PLAYER.value),)
    results = []
    for player in players:
        plays = common.seats(player, sigma, opponent)
        tree = HistoryTree.from_game(
            game,
            sigma_pre=sigma_pre,
            sigma=plays,
            penalties=common.seats(player, _PENALTY.value, math.inf),
            leaf_value=leaf_value,
        )
        best = best_precomputation(tree, player)
        report(tree, best)
        if common.fits(game, _MOST_SCORED.value):
            policies = list(plays)
            policies[player] = best.policy()
            scores = expected_game_score.policy_value(game.new_initial_state(), policies)
            print(f"Played out: expected {best.utility:.6f}, obtained {scores[player]:.6f}\n")
        memorized = [
            {
                "infoset": common.infoset_name(tree, state.infoset),
                "plays": {str(a): p for a, p in tree.memorized_row(state.entry).items()},
                **{name: getattr(state, name) for name in ("reach", "gain", "net_gain")},
            }
            for state in best.states()
        ]
        result = {"game": FLAGS.game, "player": player, "penalty": _PENALTY.value, "menu": _MENU.value}
        result |= {name: getattr(best, name) for name in ("value", "utility", "unprepared", "size")}
        results.append(result | {"memorized": memorized})
    if folder:
        common.write_json(folder / "result.json", results)
        print(f"Written: {folder}/result.json")


def report(tree: HistoryTree, best: BestPrecomputation) -> None:
    print(
        f"Player {best.player} of {tree.game.get_type().short_name}, "
        f"{tree.num_histories} histories, {tree.num_infosets} information states worth a look\n"
        f"  utility {best.unprepared:.4f} unprepared, {best.utility:.4f} prepared; "
        f"value {best.value:.4f} after {best.size} x {best.penalty:g}"
    )
    if not best.size:
        print("  Nothing is worth memorizing at this penalty.")
        return
    states = sorted(best.states(), key=lambda state: (-state.net_gain, state.infoset))
    rows = []
    for state in states[: _STATES.value]:
        row = tree.memorized_row(state.entry)
        base = tree.state(state.history)
        plays = ", ".join(
            f"{base.action_to_string(best.player, action)} {p:.2f}" for action, p in row.items()
        )
        where = common.infoset_name(tree, state.infoset)
        rows.append((state.net_gain, state.gain, f"{100 * state.reach:.1f}%", plays, where))
    common.print_table(rows, ("net gain", "gain", "reach", "plays", "information state"))


if __name__ == "__main__":
    common.run(main)
