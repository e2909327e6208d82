r"""Prepares with a certificate: how good the book is at least, and how good any book could be, as it goes on.

Both players search, and what stopping is worth is learned from games that they play on (roll-outs): the
interval holds with probability 1 - delta at every moment, and the work stops when it is narrower than
epsilon.

  python examples/certified_preparation.py --game=tic_tac_toe --epsilon=0.1

In chess an engine's evaluations certify a book: `precomp-games prepare --order=certified`.

Ctrl-C stops the work, and what is certain by then is written.

Unless --nocompare is given, the whole tree is expanded as well: the exact value, and how much more work that
is. Writes result.json, interval.png and interval.svg, the interval as it narrows.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

import common
import pyspiel
from absl import flags

from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation, certified_precomputation
from precomp_games.algorithms.search import known_of

FLAGS = flags.FLAGS
_GAME = flags.DEFINE_string("game", "tic_tac_toe", "OpenSpiel game string; perfect information.")
_SIGMA = flags.DEFINE_string(
    "sigma", "softmax(policy=alpha_beta(depth=1),temperature=0.5)", "What both players compute during play."
)
_SIGMA_PRE = flags.DEFINE_string("sigma_pre", "alpha_beta(depth=4)", "What can be memorized.")
_PRICE = flags.DEFINE_float("position_price", 0.01, "Utility that a memorized position costs.")
_PLAYER = flags.DEFINE_integer("player", 0, "Who prepares.", 0, 1)
_EPSILON = flags.DEFINE_float("epsilon", 0.1, "Stop when the interval is at most this wide, in utility.")
_DELTA = flags.DEFINE_float("delta", 0.05, "The probability with which roll-outs' interval may be wrong.")
_LIMIT = flags.DEFINE_integer(
    "limit", None, "Stop after so many games; the interval is what it is then.", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the games.", lower_bound=0)
_COMPARE = flags.DEFINE_boolean("compare", True, "Also expand the whole tree, and compare.")
flags.DEFINE_string(
    "output_dir",
    "output/certified_preparation",
    "Where files go; of another game by default beside it.",
)
common.define_memory_flag()
flags.adopt_module_key_flags(common)


def tell(found: Any, work: str, pressed: bool, folder: pathlib.Path) -> None:
    """Print the certificate and write result.json."""
    by = "by Ctrl-C" if pressed else "at --limit"
    sure = "certain" if found.confidence == 1.0 else f"with probability {found.confidence:g}"
    print(
        f"This book           worth at least {found.lower:.4f} ({sure})\n"
        f"Any book            worth at most  {found.upper:.4f}, {found.gap:.4f} more\n"
        f"Size                {found.size} positions to learn\n"
        f"Work                {work}"
        + ("" if found.reached else f"\nStopped {by}, before the interval was as narrow as --epsilon")
    )
    names = ("player", "penalty", "lower", "upper", "confidence", "reached", "size", "work")
    result = {name: getattr(found, name) for name in names}
    histories = [list(actions) for actions in found.histories]
    common.write_json(folder / "result.json", result | {"histories": histories})


def main(argv: Sequence[str]) -> None:
    del argv
    folder = common.game_folder()
    game = common.named_game(_GAME.value)
    pre, sigma = common.policy(game, _SIGMA_PRE.value), common.policy(game, _SIGMA.value)
    key = known_of(game).position_key
    with common.pressed_once() as pressed:
        found = certified_precomputation(
            game,
            pre,
            sigma,
            _PRICE.value,
            _PLAYER.value,
            epsilon=_EPSILON.value,
            delta=_DELTA.value,
            max_rollouts=_LIMIT.value,
            position_key=key,
            seed=_SEED.value,
            enough=pressed,
        )
    with common.figure(folder / "interval.png", figsize=(7.0, 4.0), page=True) as (figure, panel):
        found.plot(panel)
        figure.tight_layout()
    games = found.work["rollouts"]
    tell(found, f"{games} games", pressed(), folder)
    if pressed():
        raise KeyboardInterrupt("what is certain so far is written")
    if not _COMPARE.value:
        return
    player = found.player
    tree = HistoryTree.from_game(
        game,
        sigma_pre=pre,
        sigma=sigma,
        penalties=common.seats(player, _PRICE.value, math.inf),
        stop_value="evaluate",
        truncate="reach",
        position_key=key,
    )
    ended = tree.player == int(pyspiel.PlayerId.TERMINAL)
    sampled = ((tree.infoset >= 0) | (tree.num_children == 0)) & ~ended
    histories = int(sampled.sum())
    share = (tree.utility_range / _EPSILON.value) ** 2
    theorem_3 = histories * math.ceil(16.0 * share * math.log(histories / _DELTA.value))
    print(
        f"Expected            {best_precomputation(tree, player).value:.4f} by dynamic programming\n"
        f"Theorem 3           {theorem_3} games at {histories} histories, "
        f"{theorem_3 / max(games, 1):.0f} times as many"
    )


if __name__ == "__main__":
    common.run(main)
