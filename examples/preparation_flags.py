"""What examples that prepare a book share of flags: who prepares, against whom, how much, and how."""

from __future__ import annotations

import dataclasses
import itertools

import common  # isort: skip  # first: it tells of an interrupt during the other imports

import chess_runs
from absl import flags

from precomp_games.algorithms import ORDERS
from precomp_games.chess import PreparationSettings

_CHOICE = 8  # moves on a menu, where games are played and nothing else is said

FLAGS = flags.FLAGS
_SIDE = flags.DEFINE_enum("side", "white", ["white", "black"], "Who prepares.")
_R = flags.DEFINE_list(
    "r",
    ["10"],
    "Randomness of the opponent, in centipawns; 0.1 is predictable, 100 costs a pawn. Several, such as "
    "5,10,40: one of these opponents is drawn for the whole game, and the book is for all of them.",
)
_R_WEIGHTS = flags.DEFINE_list(
    "r_weights", [], "How often each of several opponents is drawn, such as 1,2,1. Default: equally often."
)
_BUDGET = flags.DEFINE_integer(
    "budget",
    None,
    "Learn at most so many positions, as well as possible. --penalty then only says how far is looked: the "
    "smaller, the less may be missed. Default: 150 where games are played, else as many as are worth it.",
    lower_bound=0,
)
_ORDER = flags.DEFINE_enum(
    "order",
    "optimistic",
    list(ORDERS),
    "With --menu of 2 or more and without games, which lines are looked at first: those that promise most, "
    "which is quick, or those that settle what the best book is worth.",
)
_GAP = flags.DEFINE_float(
    "gap", 0.001, "With --menu of 2 or more and without games: stop when no book is worth more by this."
)
_MAX_EVALUATIONS = flags.DEFINE_integer(
    "max_evaluations", 20_000, "With --menu of 2 or more: stop after so many evaluations.", lower_bound=1
)
_PLAY_BUDGET = flags.DEFINE_integer(
    "play_budget",
    1200,
    "With --evaluation=calibrated: games between both sides' play. A sixth of them at most teaches what "
    "positions are worth; the others say what the book is worth, as many as that takes, and 100 at most "
    "besides what there is without it. 0: none, and the evaluation is taken at its word.",
    lower_bound=0,
)
_PRICE = flags.DEFINE_enum(
    "price",
    "infosets",
    ["infosets", "positions"],
    "What --penalty is paid for, and --budget counts: each history, or each position, however it is reached.",
)
_KEEP = flags.DEFINE_multi_string(
    "keep",
    [],
    "A file of what is known already, PGN with variations or Polyglot (.bin): its moves of the preparing "
    "side are in the book wherever it comes to them, and cost nothing. May be repeated.",
)
_PLAN = flags.DEFINE_list(
    "plan",
    [],
    "Numbers of positions that grow, such as 10,20,50: what to learn first, and what then. Each book has in "
    "it the one before.",
)
common.define_chess_flags()
chess_runs.define_opponent_flag()
common.define_memory_flag()
chess_runs.define_menu_flags(
    None, "Default: 8 with the calibrated evaluation, which games correct, and otherwise 1."
)
chess_runs.define_match_flags()
FLAGS.set_default("evaluation", "calibrated")


def settings(side: str) -> PreparationSettings:
    """The settings of the flags for a side, white or black."""
    menu = FLAGS.menu
    if menu is None:
        menu = _CHOICE if FLAGS.evaluation == "calibrated" and not whole_tree() else 1
    choice = (menu, FLAGS.menu_window_cp)
    randomness, weights = opponents()
    player = 0 if side == "white" else 1
    found = chess_runs.settings(player, randomness, weights=weights, evaluated=menu > 1, menu=choice)
    if whole_tree() and menu > 1:
        raise ValueError(f"--menu: expected 0 or 1 with --{whole_tree()}, got {menu}")
    if _PLAN.value:
        plan_sizes()  # a wrong one is told before any work
    if _PLAN.value and _BUDGET.value is not None:
        raise ValueError("--plan: expected no --budget beside it, since the plan says how much is learned")
    return dataclasses.replace(found, price=_PRICE.value)


def whole_tree() -> str:
    """A flag that needs the whole tree, the empty string where none is given."""
    given = {"price": _PRICE.value != "infosets", "keep": bool(_KEEP.value), "plan": bool(_PLAN.value)}
    return next((flag for flag, is_given in given.items() if is_given), "")


def opponents() -> tuple[float | list[float], list[float]]:
    """r of --r, or several of them, and their --r_weights."""
    each = common.positive_numbers(_R)
    weights = common.positive_numbers(_R_WEIGHTS) if _R_WEIGHTS.value else []
    if len(weights) not in (0, len(each)):
        raise ValueError(
            f"--r_weights: expected {len(each)} numbers, one for each --r, got {','.join(_R_WEIGHTS.value)!r}"
        )
    return (each[0], []) if len(each) == 1 else (each, weights)


def plan_sizes() -> list[int]:
    """The numbers of --plan."""
    sizes = common.positive_numbers(_PLAN)
    growing = all(after > before for before, after in itertools.pairwise(sizes))
    if not growing or any(size != int(size) for size in sizes):
        raise ValueError(f"--plan: expected numbers of positions that grow, got {','.join(_PLAN.value)!r}")
    return list(map(int, sizes))
