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

from precomp_games._support.arguments import ArgumentError, GeneralSumGame, Player, public

from .equilibrium import StrategyPolicy
from .evaluation_functions import evaluate_histories
from .follower import TIE_TOLERANCE, EvaluationFunction, Follower, Order
from .options import InformationSet, Option
from .sequence_form import SequenceForm

__all__ = ["LookaheadEquilibrium", "is_polynomial", "lookahead_nash_equilibrium", "polynomial_sets"]


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


def is_polynomial(form: SequenceForm, follower: Follower) -> bool:
    """Whether the follower sees one move, has no information sets, and does not break ties favorably."""
    alone = all(len(histories) == 1 for histories in form.members(follower.player).values())
    return follower.lookahead == 1 and alone and follower.tie_breaking != "favorable"


def polynomial_sets(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, InformationSet]:
    """One option at each of the follower's histories: its optimal actions, or the one that the rule picks."""
    own = form.players[follower.player]
    nothing = np.zeros(form.players[follower.rational_player].num_sequences)
    found = {}
    for infoset, (history,) in form.members(follower.player).items():
        values = h[list(form.children[history])]
        scale = float(np.abs(values).max())
        best = np.flatnonzero(values >= values.max() - TIE_TOLERANCE * scale).tolist()
        if follower.tie_breaking == "static":
            legal = own.actions(infoset)
            ranked = follower.ranked(own.keys[infoset], legal)
            best = [min(best, key=lambda k: ranked.index(legal[k]))]
        reach = nothing.copy()
        reach[form.sequence[history, follower.rational_player]] = form.chance[history]
        sequences = tuple(own.sequences(infoset)[k] for k in best)
        found[infoset] = InformationSet(reach, (Option(sequences, nothing, ()),))
    return found


@public
def lookahead_nash_equilibrium(
    game: GeneralSumGame,
    rational_player: Player,
    evaluation: EvaluationFunction,
    order: Order | None = None,
) -> LookaheadEquilibrium:
    """A Nash equilibrium where the limited player has lookahead 1 and no information sets.

    Args:
      game: two players, sequential, perfect recall.
      rational_player: 0 or 1; the other one has limited lookahead.
      evaluation: h, the limited player's evaluation function.
      order: which of its optimal actions it takes, the preferred one first; by default as the game lists
        them.

    Raises:
      ValueError: the limited player has information sets of several histories, or an argument is wrong.
    """
    follower = Follower(game, rational_player, 1, evaluation, "static", order)
    form = SequenceForm.of(game)
    if not is_polynomial(form, follower):
        raise ArgumentError(
            f"expected a game in which player {follower.player} has no information sets of "
            f"several histories, got {game}"
        )
    h = evaluate_histories(form, evaluation)
    leader, own = form.players[rational_player], form.players[follower.player]
    odds = np.zeros(own.num_sequences)
    for found in polynomial_sets(form, follower, h).values():
        odds[found.options[0].sequences[0]] = 1.0
    plan = own.realized(odds)
    utility, best = leader.best_reply(form.against(follower.player, plan, rational_player))
    all_optimal = dataclasses.replace(follower, tie_breaking="adversarial", order=None)
    return LookaheadEquilibrium(
        utility=utility,
        policy=StrategyPolicy(game, own.as_rows(odds) | leader.behavior(best)),
        optimal={
            own.keys[k]: tuple(own.action[list(found.options[0].sequences)].tolist())
            for k, found in polynomial_sets(form, all_optimal, h).items()
        },
    )
