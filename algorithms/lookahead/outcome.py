"""What a strategy earns against a player with limited lookahead, by plain recursion on OpenSpiel's states.

It shares nothing with what computes strategies, and is the certificate of every result: the follower's
optimal sets, what the tie-breaking rule picks of them, and the rational player's utility.

At each of its information sets I the follower expects of action a

    V(I, a) = max over its plans inside the lookahead of
              sum over s in I, and s' at k moves below s through a, of Pr(s | I) Pr(s, a -> s') h(s')

where Nature's moves count as moves, and a leaf that is met earlier counts with its own h. Optimal are the
actions within `tie_tolerance` times the largest |h| that it sees from the greatest V. Where the rational
player never lets it come to I, all actions are optimal, and nothing depends on which is taken.

Source: `limited_lookahead`, section 3 and the tie-breaking rules of section 4.2.

Cost: each history is looked at once for each of the follower's decisions that see it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyspiel

from precomp_games.checks import check_evaluation, check_number
from precomp_games.policies import PolicyLike, as_batch_policy

from .settings import (
    TIE_TOLERANCE,
    Evaluation,
    Order,
    Recent,
    check_own,
    check_settings,
    legal_odds,
    preference,
)

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


def evaluate_against_lookahead(
    game: pyspiel.Game,
    strategy: PolicyLike,
    rational_player: int,
    lookahead: int,
    evaluation: Evaluation,
    tie_breaking: str = "adversarial",
    order: Order | None = None,
    tie_tolerance: float = TIE_TOLERANCE,
) -> LookaheadOutcome:
    """Plays a strategy of the rational player against the follower's optimal sets.

    Args:
      game: two players, sequential, perfect recall.
      strategy: the rational player's, an OpenSpiel policy or `state -> {action: probability}`.
      rational_player: 0 or 1; the other one has limited lookahead.
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, what a state is worth to the limited player; asked of leaves too.
      tie_breaking: "favorable", "static" or "adversarial".
      order: for "static" only, the preferred action first.
      tie_tolerance: see above; in units of the largest |h| seen from an information set.

    Raises:
      ValueError: a setting is not as above, an evaluation is no finite number, or the strategy gives no
        probabilities.
    """
    return lookahead_outcome(
        game, strategy, rational_player, lookahead, evaluation, tie_breaking, order, tie_tolerance,
        "evaluate_against_lookahead()",
    )  # fmt: skip


def lookahead_outcome(
    game: pyspiel.Game,
    strategy: PolicyLike,
    rational_player: int,
    lookahead: int,
    evaluation: Evaluation,
    tie_breaking: str,
    order: Order | None,
    tie_tolerance: float,
    caller: str,
) -> LookaheadOutcome:
    """`evaluate_against_lookahead` for a function of another name."""
    check_settings(game, rational_player, lookahead, evaluation, tie_breaking, order, caller)
    tie_tolerance = check_number(tie_tolerance, "tie_tolerance", caller, least=0.0)
    check_own(strategy, game, "strategy", caller)
    rows = as_batch_policy(strategy, "strategy", caller)
    root = _ROOTS.of(game, lambda: _Node(game.new_initial_state()))
    walk = _Walk(root, rational_player, int(lookahead), evaluation, rows, tie_tolerance, caller)
    walk.look(walk.root)
    start = [(walk.root, 1.0)]
    response: dict[str, int] = {}
    utility = walk.play(start, tie_breaking, order, response)
    for key, members in walk.members.items():
        if key not in response:  # where it comes only by actions that it does not pick
            walk.play(members, tie_breaking, order, response)
    return LookaheadOutcome(
        utility=utility,
        least=walk.play(start, "adversarial", None, {}),
        most=walk.play(start, "favorable", None, {}),
        optimal=walk.optimal,
        response=response,
        values=walk.values,
    )


class _Node:
    """A history with its successors, made when asked for."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.player = int(state.current_player())
        self.actions: list[int] = []
        self.chance: dict[int, float] = {}
        self.key = ""
        self._next: dict[int, _Node] | None = None
        if self.player == pyspiel.PlayerId.CHANCE:
            self.chance = dict(state.chance_outcomes())
            self.actions = list(self.chance)
        elif self.player >= 0:
            self.actions = state.legal_actions()
            kind = state.get_game().get_type()
            self.key = (
                state.information_state_string()
                if kind.provides_information_state_string
                else state.history_str()
            )

    @property
    def next(self) -> dict[int, _Node]:
        if self._next is None:
            self._next = {action: _Node(self.state.child(action)) for action in self.actions}
        return self._next


_ROOTS: Recent[_Node] = Recent()

_Bundle = list[tuple[_Node, float]]


class _Walk:
    """The recursions, for one strategy."""

    def __init__(
        self,
        root: _Node,
        rational: int,
        lookahead: int,
        evaluation: Evaluation,
        rows: Callable[[Sequence[Any]], Sequence[Mapping[int, float]]],
        tie_tolerance: float,
        caller: str,
    ) -> None:
        self.root, self.rational, self.follower = root, rational, 1 - rational
        self.lookahead, self.evaluation, self.rows = lookahead, evaluation, rows
        self.tie_tolerance, self.caller = tie_tolerance, caller
        self.optimal: dict[str, tuple[int, ...]] = {}
        self.values: dict[str, dict[int, float]] = {}
        self.members: dict[str, _Bundle] = {}
        self._row: dict[str, Mapping[int, float]] = {}

    def odds(self, node: _Node) -> Mapping[int, float]:
        """Nature's or the rational player's probabilities at a history."""
        if node.player != self.rational:
            return node.chance
        row = self._row.get(node.key)
        if row is None:
            odds = legal_odds(self.rows, node.state, "strategy", self.caller)
            row = self._row[node.key] = dict(zip(node.actions, odds, strict=True))
        return row

    def look(self, root: _Node) -> None:
        """Finds the optimal set of every information set of the follower."""
        sets = self.members
        stack = [(root, 1.0)]  # with the probability that the others let play come there
        while stack:
            node, reach = stack.pop()
            if node.player == self.follower:
                sets.setdefault(node.key, []).append((node, reach))
                stack += [(child, reach) for child in node.next.values()]
            else:
                odds = self.odds(node) if node.actions else {}
                stack += [(child, reach * odds.get(action, 0.0)) for action, child in node.next.items()]
        for key, members in sets.items():
            actions = members[0][0].actions
            reach = math.fsum(weight for _, weight in members)
            seen = [0.0]
            expected = {
                action: self.expect(
                    [(node.next[action], weight, self.lookahead - 1) for node, weight in members], seen
                )
                for action in actions
            }
            if reach <= 0.0:
                self.values[key] = dict.fromkeys(actions, math.nan)
                self.optimal[key] = tuple(actions)
                continue
            self.values[key] = {action: value / reach for action, value in expected.items()}
            least = max(self.values[key].values()) - self.tie_tolerance * max(seen)
            self.optimal[key] = tuple(a for a in actions if self.values[key][a] >= least)

    def expect(self, bundle: Iterable[tuple[_Node, float, int]], seen: list[float]) -> float:
        """The most that the follower can hope for, over its plans inside the lookahead.

        bundle: histories that it cannot all tell apart, with weights and how many moves it still sees.
        seen: |h| of what it looks at is added here.
        """
        total = []
        own: dict[str, list[tuple[_Node, float, int]]] = {}
        stack = list(bundle)
        while stack:
            node, weight, moves = stack.pop()
            if moves == 0 or not node.actions:
                value = check_evaluation(self.evaluation(node.state), node.state, "evaluation", self.caller)
                seen.append(abs(value))
                total.append(weight * value)
            elif node.player == self.follower:
                own.setdefault(node.key, []).append((node, weight, moves))
            else:
                odds = self.odds(node)
                stack += [(child, weight * odds.get(a, 0.0), moves - 1) for a, child in node.next.items()]
        for members in own.values():
            total.append(
                max(
                    self.expect([(node.next[action], w, moves - 1) for node, w, moves in members], seen)
                    for action in members[0][0].actions
                )
            )
        return math.fsum(total)

    def play(self, bundle: _Bundle, rule: str, order: Order | None, response: dict[str, int]) -> float:
        """The rational player's utility from histories on, where the follower plays by `rule`."""
        total = []
        own: dict[str, _Bundle] = {}
        stack = list(bundle)
        while stack:
            node, weight = stack.pop()
            if not node.actions:
                total.append(weight * node.state.returns()[self.rational])
            elif node.player == self.follower:
                own.setdefault(node.key, []).append((node, weight))
            else:
                odds = self.odds(node)
                stack += [(child, weight * odds.get(a, 0.0)) for a, child in node.next.items()]
        for key, members in own.items():
            actions: Sequence[int] = self.optimal[key]
            worth = {
                a: self.play([(node.next[a], w) for node, w in members], rule, order, response)
                for a in actions
            }
            if rule == "static":
                ranked = preference(order, key, members[0][0].actions, self.caller)
                action = next(a for a in ranked if a in worth)
            else:
                choose = max if rule == "favorable" else min
                action = choose(actions, key=worth.__getitem__)
            response[key] = action
            total.append(worth[action])
        return math.fsum(total)
