"""Where the leader need not search: a follower whose options are the same whatever the leader plays.

**Lookahead 1 without information sets.** What the follower holds for best at a history is h at its
successors. With a static rule its play is known, and the rational player's best response is optimal
(Proposition 3). If ties are broken against the rational player, that is a zero-sum game in which the follower
has only its optimal actions. With its choice fixed in any way, a best response makes a Nash equilibrium
(Proposition 2, `lookahead_nash_equilibrium`).

**All leaves of a zero-sum game in sight.** If utilities have a constant sum, h is the follower's utility at
each leaf, and no leaf is more than k moves below an information set of the follower, then all that it
compares are its own expected utilities. What it does later is what it planned, since it goes by the same
numbers there; so it plays a best response, every one of which leaves the leader with the same utility. The
leader's problem is then to maximize the least that it can be left with, and ties do not matter, but for
leads that are too small for the follower to see (`TIE_TOLERANCE`).

Both are one option at each information set, which has no rivals: the worst of its actions for the leader is
what counts, and that is one linear program.

Source: `limited_lookahead`, sections 4.1 and 4.2; von Stengel 1996 for the linear program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from precomp_games._support.arguments import GeneralSumGame, Player, public
from precomp_games._support.checks import ArgumentError

from .evaluation_functions import StrategyPolicy, evaluate_histories
from .follower import TIE_TOLERANCE, EvaluationFunction, Follower, Order
from .options import InformationSet, Option
from .sequence_form import SequenceForm

_SUM = 1e-12  # of the greatest payoff: how far sums of utilities may differ by rounding


def fixed_options(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, InformationSet] | None:
    """One option at each information set, where that says all that the follower does; else None.

    Args:
      form: the game.
      follower: how far it looks, and how it breaks ties.
      h: float[histories], its evaluation function's values.
    """
    if _sees_one_history(form, follower) and follower.tie_breaking != "favorable":
        actions = _best_actions(form, follower, h)
    elif _sees_all(form, follower, h):
        own = form.players[follower.player]
        actions = {infoset: own.sequences(infoset) for infoset in range(1, own.num_infosets)}
    else:
        return None
    leader = form.players[follower.rational_player]
    nothing = np.zeros(leader.num_sequences)
    sets = {}
    for infoset, members in form.members(follower.player).items():
        sequences = form.sequence[members, follower.rational_player]
        reach = np.bincount(sequences, form.chance[members], leader.num_sequences)
        sets[infoset] = InformationSet(reach, (Option(tuple(actions[infoset]), nothing, ()),))
    return sets


def _sees_one_history(form: SequenceForm, follower: Follower) -> bool:
    """Whether the follower sees one move, and has no information sets."""
    alone = all(len(histories) == 1 for histories in form.members(follower.player).values())
    return follower.lookahead == 1 and alone


def _sees_all(form: SequenceForm, follower: Follower, h: np.ndarray) -> bool:
    """Whether the follower sees every leaf below it, by its utility, in a game of constant sum."""
    leaves = form.leaves
    own, total = form.utility[leaves, follower.player], form.utility[leaves].sum(axis=1)
    if not np.array_equal(h[leaves], own) or np.ptp(total) > _SUM * np.abs(form.utility).max():
        return False
    height = np.zeros(form.num_histories, np.int64)  # moves to the farthest leaf
    for history in range(form.num_histories - 1, 0, -1):
        height[form.parent[history]] = max(height[form.parent[history]], height[history] + 1)
    return bool((height[form.player == follower.player] <= follower.lookahead).all())


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


def _best_actions(form: SequenceForm, follower: Follower, h: np.ndarray) -> dict[int, Sequence[int]]:
    """By history of the follower, the sequences of its optimal actions, or of the one that the rule picks."""
    own = form.players[follower.player]
    actions: dict[int, Sequence[int]] = {}
    for infoset, (history,) in form.members(follower.player).items():
        values = h[list(form.children[history])]
        scale = float(np.abs(values).max())
        best = np.flatnonzero(values >= values.max() - TIE_TOLERANCE * scale).tolist()
        if follower.tie_breaking == "static":
            legal = own.actions(infoset)
            ranked = follower.ranked(own.keys[infoset], legal)
            best = [min(best, key=lambda k: ranked.index(legal[k]))]
        actions[infoset] = [own.sequences(infoset)[k] for k in best]
    return actions


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
    if not _sees_one_history(form, follower):
        raise ArgumentError(
            f"expected a game in which player {follower.player} has no information sets of "
            f"several histories, got {game}"
        )
    h = evaluate_histories(form, evaluation)
    leader, own = form.players[rational_player], form.players[follower.player]
    probabilities = np.zeros(own.num_sequences)
    for (picked,) in _best_actions(form, follower, h).values():
        probabilities[picked] = 1.0
    plan = own.realized(probabilities)
    utility, reply = leader.best_reply(form.against(follower.player, plan, rational_player))
    all_optimal = dataclasses.replace(follower, tie_breaking="adversarial", order=None)
    return LookaheadEquilibrium(
        utility=utility,
        policy=StrategyPolicy(game, own.as_rows(probabilities) | leader.behavior(reply)),
        optimal={
            own.keys[k]: tuple(own.action[list(best)].tolist())
            for k, best in _best_actions(form, all_optimal, h).items()
        },
    )
