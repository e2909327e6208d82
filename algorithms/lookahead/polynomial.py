"""Where limited lookahead is easy: lookahead 1 and no information sets.

What the follower holds for best at a history is then h at its successors, whatever the other plays. With a
static rule its play is known, and the rational player's best response is optimal (Proposition 3). If ties are
broken against the rational player, that is a zero-sum game in which the follower has only its optimal
actions. And with its choice fixed in any way, a best response makes a Nash equilibrium (Proposition 2).

Source: `limited_lookahead`, sections 4.1 and 4.2.

Cost: a pass over the game; one linear program of its size where ties are broken adversarially.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyspiel

from .evaluations import StrategyPolicy, evaluate_histories
from .options import InformationSet, Option
from .sequence_form import SequenceForm, flattened
from .settings import (
    TIE_TOLERANCE,
    Evaluation,
    Order,
    check_settings,
    preference,
)

__all__ = ["LookaheadEquilibrium", "is_polynomial", "lookahead_nash_equilibrium", "polynomial_sets"]

_CALLER = "lookahead_nash_equilibrium()"


@dataclasses.dataclass(frozen=True, eq=False)
class LookaheadEquilibrium:
    """A Nash equilibrium between a rational player and one with limited lookahead.

    Attributes:
      utility: The rational player's.
      policy: Of both.
      optimal: {history of the follower: its optimal actions}.
    """

    utility: float
    policy: StrategyPolicy
    optimal: dict[str, tuple[int, ...]]


def is_polynomial(form: SequenceForm, rational_player: int, lookahead: int, tie_breaking: str) -> bool:
    """Whether the follower sees one move, has no information sets, and does not break ties favorably."""
    follower = 1 - rational_player
    alone = int((form.player == follower).sum()) == form.players[follower].num_infosets
    return lookahead == 1 and alone and tie_breaking != "favorable"


def polynomial_sets(
    form: SequenceForm,
    rational_player: int,
    h: np.ndarray,
    tie_breaking: str,
    order: Order | None,
    caller: str,
) -> list[InformationSet]:
    """One option at each of the follower's histories: its optimal actions, or the one that the rule picks."""
    leader, follower = form.players[rational_player], form.players[1 - rational_player]
    nothing = np.zeros(leader.num_sequences)
    found = []
    for infoset, (history,) in enumerate(form.members(1 - rational_player)):
        values = h[list(form.children[history])]
        scale = float(np.abs(values).max())
        best = np.flatnonzero(values >= values.max() - TIE_TOLERANCE * scale).tolist()
        if tie_breaking == "static":
            legal = follower.actions[infoset]
            ranked = preference(order, follower.keys[infoset], legal, caller)
            best = [min(best, key=lambda k: ranked.index(legal[k]))]
        reach = nothing.copy()
        reach[form.sequence[history, rational_player]] = form.chance[history]
        found.append(InformationSet(scale or 1.0, reach, (Option(tuple(best), nothing, ()),)))
    return found


def lookahead_nash_equilibrium(
    game: pyspiel.Game, rational_player: int, evaluation: Evaluation, order: Order | None = None
) -> LookaheadEquilibrium:
    """A Nash equilibrium where the limited player has lookahead 1 and no information sets.

    Args:
      game: two players, sequential, perfect recall.
      rational_player: 0 or 1; the other one has limited lookahead.
      evaluation: h, what a state is worth to the limited player.
      order: which of its optimal actions it takes, the preferred one first; by default as the game lists
        them.

    Raises:
      ValueError: the limited player has information sets of several histories, or an argument is wrong.
    """
    check_settings(game, rational_player, 1, evaluation, "static", order, _CALLER)
    form = flattened(game, _CALLER)
    if not is_polynomial(form, rational_player, 1, "static"):
        raise ValueError(
            f"{_CALLER}: expected a game in which player {1 - rational_player} has no information sets of "
            f"several histories, got {game}"
        )
    h = evaluate_histories(form, evaluation, _CALLER)
    leader, follower = form.players[rational_player], form.players[1 - rational_player]
    picked = polynomial_sets(form, rational_player, h, "static", order, _CALLER)
    optimal = polynomial_sets(form, rational_player, h, "adversarial", None, _CALLER)
    plan = np.zeros(follower.num_sequences)
    plan[0] = 1.0
    rows = {}
    for infoset, found in enumerate(picked):
        position = found.options[0].actions[0]
        plan[int(follower.first[infoset]) + position] = plan[follower.parent[infoset]]
        rows[follower.keys[infoset]] = {follower.actions[infoset][position]: 1.0}
    leaves = form.leaves
    worth = form.chance[leaves] * form.utility[leaves, rational_player]
    weights = np.zeros(leader.num_sequences)
    np.add.at(
        weights,
        form.sequence[leaves, rational_player],
        worth * plan[form.sequence[leaves, 1 - rational_player]],
    )
    utility, best = leader.best_reply(weights)
    return LookaheadEquilibrium(
        utility=utility,
        policy=StrategyPolicy(game, rows | leader.behavior(best)),
        optimal={
            follower.keys[k]: tuple(follower.actions[k][p] for p in found.options[0].actions)
            for k, found in enumerate(optimal)
        },
    )
