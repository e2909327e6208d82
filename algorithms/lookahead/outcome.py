"""What a strategy earns against a player with limited lookahead, by plain recursion on OpenSpiel's states.

It shares nothing with what computes strategies, and is the certificate of every result: the follower's
optimal sets, what the tie-breaking rule picks of them, and the rational player's utility.

At each of its information sets I the follower expects of action a

    V(I, a) = max over its plans inside the lookahead of
              sum over s in I, and s' at k moves below s through a, of Pr(s | I) Pr(s, a -> s') h(s')

where Nature's moves count as moves, and a leaf that is met earlier counts with its own h. Optimal are the
actions within `TIE_TOLERANCE` times the largest |h| that it sees from the greatest V. Where the rational
player never lets it come to I, all actions are optimal, and nothing depends on which is taken.

Source: `limited_lookahead`, section 3 and the tie-breaking rules of section 4.2.

Cost: each history is looked at once for each of the follower's decisions that see it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pyspiel

from precomp_games._support.arguments import GeneralSumGame, Player, PositiveInt, public
from precomp_games._support.checks import check_evaluation
from precomp_games.policies.rows import BatchPolicy, PolicyLike, as_batch_policy

from .follower import (
    TIE_TOLERANCE,
    EvaluationFunction,
    Follower,
    Order,
    TieBreaking,
    check_own,
    infoset_key,
    legal_odds,
)
from .recent import Recent

__all__ = ["LookaheadOutcome", "evaluate_against_lookahead", "lookahead_outcome"]


@dataclasses.dataclass(frozen=True)
class LookaheadOutcome:
    """What happens when the rational player plays a given strategy.

    Attributes:
      utility: The rational player's, under the tie-breaking rule.
      least, most: The same if ties are broken against it and in its favor.
      optimal: {information state: the follower's optimal actions}, of all its information states.
      response: {information state: the action that the rule picks}, of all its information sets.
      values: {information state: {action: V}}, NaN where the rational player's strategy never leads there.
    """

    utility: float
    least: float
    most: float
    optimal: dict[str, tuple[int, ...]] = dataclasses.field(repr=False)
    response: dict[str, int] = dataclasses.field(repr=False)
    values: dict[str, dict[int, float]] = dataclasses.field(repr=False)


@public
def evaluate_against_lookahead(
    game: GeneralSumGame,
    strategy: PolicyLike,
    rational_player: Player,
    lookahead: PositiveInt,
    evaluation: EvaluationFunction,
    tie_breaking: TieBreaking = "adversarial",
    order: Order | None = None,
) -> LookaheadOutcome:
    """Plays a strategy of the rational player against the follower's optimal sets.

    Args:
      game: two players, sequential, perfect recall.
      strategy: the rational player's, an OpenSpiel policy or `state -> {action: probability}`.
      rational_player: 0 or 1; the other one has limited lookahead.
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, the limited player's evaluation function; asked of leaves too.
      tie_breaking: "favorable", "static" or "adversarial".
      order: for "static" only, the preferred action first.

    Raises:
      ValueError: a setting is not as above, h gives no finite number, or the strategy gives no
        probabilities.
    """
    follower = Follower(game, rational_player, lookahead, evaluation, tie_breaking, order)
    return lookahead_outcome(follower, strategy)


def lookahead_outcome(follower: Follower, strategy: PolicyLike) -> LookaheadOutcome:
    """`evaluate_against_lookahead`, where the follower is there already."""
    game = follower.game
    check_own(strategy, game, "strategy")
    rows = as_batch_policy(strategy, "strategy")
    walk = _LookaheadWalk(follower, rows)
    root = _ROOTS.of(game, lambda: _HistoryNode(game.new_initial_state()))
    walk.look(root)
    start = [(root, 1.0, math.inf)]
    response: dict[str, int] = {}
    utility = walk.play(start, follower.tie_breaking, response)
    for key, members in walk.members.items():
        if key not in response:  # where it comes only by actions that it does not pick
            walk.play(members, follower.tie_breaking, response)
    return LookaheadOutcome(
        utility=utility,
        least=walk.play(start, "adversarial", {}),
        most=walk.play(start, "favorable", {}),
        optimal=walk.optimal,
        response=response,
        values=walk.values,
    )


class _HistoryNode:
    """A history with its successors, made when asked for."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.player = int(state.current_player())
        self.actions: list[int] = []
        self.chance: dict[int, float] = {}
        self.key = ""
        self._next: dict[int, _HistoryNode] | None = None
        if self.player == pyspiel.PlayerId.CHANCE:
            self.chance = dict(state.chance_outcomes())
            self.actions = list(self.chance)
        elif self.player >= 0:
            self.actions = state.legal_actions()
            self.key = infoset_key(state)

    @property
    def next(self) -> dict[int, _HistoryNode]:
        if self._next is None:
            self._next = {action: _HistoryNode(self.state.child(action)) for action in self.actions}
        return self._next


_ROOTS: Recent[_HistoryNode] = Recent()

_Bundle = list[tuple[_HistoryNode, float, float]]
"""Histories, each with a weight and how many moves are still followed from there."""


class _LookaheadWalk:
    """The recursions, for one strategy."""

    def __init__(self, follower: Follower, rows: BatchPolicy) -> None:
        self.follower, self.rows = follower, rows
        self.optimal: dict[str, tuple[int, ...]] = {}
        self.values: dict[str, dict[int, float]] = {}
        self.members: dict[str, _Bundle] = {}
        self._row: dict[str, Mapping[int, float]] = {}

    def odds(self, node: _HistoryNode) -> Mapping[int, float]:
        """Nature's or the rational player's probabilities at a history."""
        if node.player != self.follower.rational_player:
            return node.chance
        row = self._row.get(node.key)
        if row is None:
            odds = legal_odds(self.rows, node.state, "strategy")
            row = self._row[node.key] = dict(zip(node.actions, odds, strict=True))
        return row

    def look(self, root: _HistoryNode) -> None:
        """Finds the optimal set of every information set of the follower."""
        stack = [(root, 1.0)]  # with the probability that the others let play come there
        while stack:
            node, reach = stack.pop()
            if node.player == self.follower.player:
                self.members.setdefault(node.key, []).append((node, reach, math.inf))
                stack += [(child, reach) for child in node.next.values()]
            else:
                odds = self.odds(node) if node.actions else {}
                stack += [(child, reach * odds.get(action, 0.0)) for action, child in node.next.items()]
        for key, members in self.members.items():
            actions = members[0][0].actions
            seeing: _Bundle = [(node, reach, self.follower.lookahead) for node, reach, _ in members]
            reach = math.fsum(weight for _, weight, _ in members)
            seen = [0.0]
            expected = {action: self.expect(_after(seeing, action), seen) for action in actions}
            if reach <= 0.0:
                self.values[key] = dict.fromkeys(actions, math.nan)
                self.optimal[key] = tuple(actions)
                continue
            self.values[key] = {action: value / reach for action, value in expected.items()}
            least = max(self.values[key].values()) - TIE_TOLERANCE * max(seen)
            self.optimal[key] = tuple(a for a in actions if self.values[key][a] >= least)

    def follow(self, bundle: _Bundle) -> tuple[list[tuple[_HistoryNode, float]], dict[str, _Bundle]]:
        """Where Nature and the rational player lead: histories at which to stop, and the follower's sets."""
        ends: list[tuple[_HistoryNode, float]] = []
        own: dict[str, _Bundle] = {}
        stack = list(bundle)
        while stack:
            node, weight, moves = stack.pop()
            if moves == 0 or not node.actions:
                ends.append((node, weight))
            elif node.player == self.follower.player:
                own.setdefault(node.key, []).append((node, weight, moves))
            else:
                odds = self.odds(node)
                stack += [(child, weight * odds.get(a, 0.0), moves - 1) for a, child in node.next.items()]
        return ends, own

    def expect(self, bundle: _Bundle, seen: list[float]) -> float:
        """The most that the follower can hope for, over its plans inside the lookahead.

        bundle: histories that it cannot all tell apart.
        seen: |h| of what it looks at is added here.
        """
        total = []
        ends, own = self.follow(bundle)
        for node, weight in ends:
            value = self.follower.evaluation(node.state)
            value = check_evaluation(value, node.state, "evaluation")
            seen.append(abs(value))
            total.append(weight * value)
        for members in own.values():
            actions = members[0][0].actions
            total.append(max(self.expect(_after(members, action), seen) for action in actions))
        return math.fsum(total)

    def play(self, bundle: _Bundle, rule: str, response: dict[str, int]) -> float:
        """The rational player's utility from histories on, where the follower plays by `rule`."""
        ends, own = self.follow(bundle)
        total = [weight * node.state.returns()[self.follower.rational_player] for node, weight in ends]
        for key, members in own.items():
            worth = {a: self.play(_after(members, a), rule, response) for a in self.optimal[key]}
            if rule == "static":
                ranked = self.follower.ranked(key, members[0][0].actions)
                action = next(a for a in ranked if a in worth)
            else:
                choose = max if rule == "favorable" else min
                action = choose(worth, key=worth.__getitem__)
            response[key] = action
            total.append(worth[action])
        return math.fsum(total)


def _after(members: _Bundle, action: int) -> _Bundle:
    """Where an action leads from an information set's histories."""
    return [(node.next[action], weight, moves - 1) for node, weight, moves in members]
