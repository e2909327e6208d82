"""The *follower*, a player with limited lookahead: its settings, what it plays, what is earned against it.

    earned = evaluate_against_lookahead(game, best.policy(), rational_player=0, lookahead=2, evaluation=h)
    sigma = LookaheadPolicy(game, rational_player=0, strategy=best.policy(), lookahead=2, evaluation=h)

Both are plain recursions on OpenSpiel's states. They share nothing with what computes strategies, and so they
are the certificate of every result: the follower's optimal sets, what the tie-breaking rule picks of them,
and the rational player's utility.

At each of its information sets I the follower expects of action a

    V(I, a) = max over its plans inside the lookahead of
              sum over s in I, and s' at k moves below s through a, of Pr(s | I) Pr(s, a -> s') h(s')

where Nature's moves count as moves, and a leaf that is met earlier counts with its own h. Optimal are the
actions within `TIE_TOLERANCE` times the largest |h| that it sees from the greatest V. Where the rational
player never lets it come to I, all actions are optimal, and nothing depends on which is taken.

As a policy, the follower answers the strategy that it is given at every information set, the unreached ones
included. So it can be what a player computes during play (sigma) where the other one prepares:

    tree = HistoryTree.from_game(game, sigma_pre=..., sigma=(anything, sigma), penalties=(0.01, math.inf))

Source: `limited_lookahead`, section 3 and the tie-breaking rules of section 4.2.

Cost: each history is looked at once for each of the follower's decisions that see it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.game_facts import (
    GameFacts,
    chance_outcomes,
    check_infoset_keys,
    infoset_key,
    legal_actions,
)
from precomp_games._support.results import Result, Shown
from precomp_games.policies.rows import (
    BatchPolicy,
    PolicyLike,
    as_batch_policy,
    policy_rows,
)
from precomp_games.tree.base_game import AnySumGame

from .sequence_form import Recent

EvaluationFunction = Callable[[Any], float]
"""h: a state's worth to the player with limited lookahead, any finite number. It is asked of leaves too.

Where it has attributes `player` and `game`, as `NodeValues` has, these say whose worth it is, and in which
game.
"""

Order = Callable[[str, Sequence[int]], Sequence[int]]
"""A static rule: `(information state, its actions) -> the same actions, the preferred one first`."""

TieBreaking = Literal["favorable", "static", "adversarial"]
"""The follower's choice among actions that look equally good to it."""

TIE_TOLERANCE = 1e-9
"""Tolerance of ties: values that differ by less than this times the largest |h| that is seen."""


def check_own(value: Any, game: pyspiel.Game, name: str) -> None:
    """Refuse a policy or an evaluation function of another game, and a class of them.

    Raises:
      ValueError: it is.
    """
    if isinstance(value, type):
        raise ArgumentError(f"expected {name} to be an instance, got the class {value.__name__}")
    own = getattr(value, "game", None)
    if isinstance(own, pyspiel.Game) and own is not game and str(own) != str(game):
        raise ArgumentError(f"expected {name} to be one of {shown(game)}, got one of {shown(own)}")


@public
@dataclasses.dataclass(frozen=True, eq=False)
class FollowerType:
    """A possible type of a player with limited lookahead, apart from the game and its seat.

    Attributes:
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, its evaluation function; asked of leaves too.
      tie_breaking: Its choice among its optimal actions: "favorable" to the rational player, "static" (by
        `order`), or "adversarial".
      order: For "static" only, the preferred action first; None goes by the game's.
    """

    lookahead: checks.PositiveInt
    evaluation: EvaluationFunction
    tie_breaking: TieBreaking = "adversarial"
    order: Order | None = None

    def __post_init__(self) -> None:
        """Refuse what does not fit together.

        Raises:
          ValueError: there is an order without use.
        """
        if self.order is not None and self.tie_breaking != "static":
            raise ArgumentError(
                'expected order only where tie_breaking is "static", which goes by it, '
                f'got both it and "{self.tie_breaking}"'
            )


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Follower(FollowerType):
    """The player with limited lookahead in a game.

    Attributes:
      game: Two players, sequential, perfect recall.
      rational_player: The other one.
    """

    game: pyspiel.Game
    rational_player: int

    def __post_init__(self) -> None:
        """Refuse what does not fit together.

        Raises:
          ValueError: the evaluation is of another game or player, or there is an order without use.
        """
        check_own(self.evaluation, self.game, "evaluation")
        if getattr(self.evaluation, "player", None) == self.rational_player:
            raise ArgumentError(
                f"expected what states are worth to player {self.player}, whose lookahead is "
                f"limited, got an evaluation of player {self.rational_player}"
            )
        super().__post_init__()

    @property
    def player(self) -> int:
        """The one that looks ahead."""
        return 1 - self.rational_player

    def ranked(self, key: str, actions: Sequence[int]) -> list[int]:
        """Return an information set's actions by preference, or in the game's order without an `order`.

        Raises:
          ValueError: the order does not give each action once.
        """
        if self.order is None:
            return list(actions)
        return checks.check_ranking(self.order(key, list(actions)), actions, "order", key)


def legal_probabilities(policy: BatchPolicy, state: Any, name: str) -> list[float]:
    """Return the probabilities that a policy gives to a state's legal actions.

    Raises:
      ValueError: it gives none, or they do not sum to 1 within 1e-6.
    """
    rows = policy_rows(policy, [state], name=name)
    row = dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))
    return [row.get(action, 0.0) for action in legal_actions(state)]


@dataclasses.dataclass(frozen=True)
class LookaheadOutcome(Result):
    """Outcome of a given strategy of the rational player.

    Attributes:
      utility: The rational player's, under the tie-breaking rule.
      optimal: {information state: the follower's optimal actions}, of all its information states.
      response: {information state: the action that the rule picks}, of all its information sets.
      values: {information state: {action: V}}, NaN where the rational player's strategy never leads there.
    """

    utility: float
    optimal: dict[str, tuple[int, ...]] = dataclasses.field(repr=False)
    response: dict[str, int] = dataclasses.field(repr=False)
    values: dict[str, dict[int, float]] = dataclasses.field(repr=False)


@public
def evaluate_against_lookahead(
    game: AnySumGame,
    strategy: PolicyLike,
    rational_player: checks.Player,
    lookahead: checks.PositiveInt,
    evaluation: EvaluationFunction,
    tie_breaking: TieBreaking = "adversarial",
    order: Order | None = None,
) -> LookaheadOutcome:
    """Play a strategy of the rational player against the follower's optimal sets.

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
    follower = Follower(
        lookahead, evaluation, tie_breaking, order, game=game, rational_player=rational_player
    )
    return lookahead_outcome(follower, strategy)


def lookahead_outcome(follower: Follower, strategy: PolicyLike) -> LookaheadOutcome:
    """Return `evaluate_against_lookahead`, where the follower is there already."""
    game = follower.game
    check_own(strategy, game, "strategy")
    rows = as_batch_policy(strategy, "strategy")
    walk = _LookaheadWalk(follower, rows)
    root = _ROOTS.of(game, lambda: _HistoryNode(game.new_initial_state(), GameFacts(game, bounded=False)))
    walk.look(root)
    check_infoset_keys(game, [*walk.members, *walk.asked])
    response: dict[str, int] = {}
    utility = walk.play([(root, 1.0, math.inf)], response)
    for key, members in walk.members.items():
        if key not in response:  # where it comes only by actions that it does not pick
            walk.play(members, response)
    return LookaheadOutcome(
        utility=utility,
        optimal=walk.optimal,
        response=response,
        values=walk.values,
    )


class _HistoryNode:
    """A history with its successors, made when asked for."""

    def __init__(self, state: Any, facts: GameFacts) -> None:
        self.state, self.facts = state, facts
        self.player = facts.mover(state)
        self.actions: list[int] = []
        self.chance: dict[int, float] = {}
        self.key = ""
        self._next: dict[int, _HistoryNode] | None = None
        if self.player == pyspiel.PlayerId.CHANCE:
            self.chance = dict(chance_outcomes(state))
            self.actions = list(self.chance)
        elif self.player >= 0:
            self.actions = legal_actions(state)
            facts.check_actions(self.actions, state)
            self.key = infoset_key(state)

    @property
    def next(self) -> dict[int, _HistoryNode]:
        if self._next is None:
            self._next = {a: _HistoryNode(self.state.child(a), self.facts) for a in self.actions}
        return self._next


_ROOTS: Recent[_HistoryNode] = Recent()

_Histories = list[tuple[_HistoryNode, float, float]]
"""Histories, each with a weight and how many moves are still followed from there."""


class _LookaheadWalk:
    """The recursions, for one strategy."""

    def __init__(self, follower: Follower, rows: BatchPolicy) -> None:
        self.follower, self.rows = follower, rows
        self.optimal: dict[str, tuple[int, ...]] = {}
        self.values: dict[str, dict[int, float]] = {}
        self.members: dict[str, _Histories] = {}
        self.asked: dict[str, Mapping[int, float]] = {}

    def probabilities(self, node: _HistoryNode) -> Mapping[int, float]:
        """Return Nature's or the rational player's probabilities at a history."""
        if node.player != self.follower.rational_player:
            return node.chance
        row = self.asked.get(node.key)
        if row is None:
            asked = legal_probabilities(self.rows, node.state, "strategy")
            row = self.asked[node.key] = dict(zip(node.actions, asked, strict=True))
        return row

    def look(self, root: _HistoryNode) -> None:
        """Find the optimal set of every information set of the follower."""
        stack = [(root, 1.0)]  # with the probability that the others let play come there
        while stack:
            node, reach = stack.pop()
            if node.player == self.follower.player:
                self.members.setdefault(node.key, []).append((node, reach, math.inf))
                stack += [(child, reach) for child in node.next.values()]
            else:
                row = self.probabilities(node) if node.actions else {}
                stack += [(child, reach * row.get(action, 0.0)) for action, child in node.next.items()]
        for key, members in self.members.items():
            actions = members[0][0].actions
            seeing: _Histories = [(node, reach, self.follower.lookahead) for node, reach, _ in members]
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

    def follow(self, histories: _Histories) -> tuple[list[tuple[_HistoryNode, float]], dict[str, _Histories]]:
        """Return the histories that end the lookahead, and the follower's sets that are reached before."""
        ends: list[tuple[_HistoryNode, float]] = []
        own: dict[str, _Histories] = {}
        stack = list(histories)
        while stack:
            node, weight, moves = stack.pop()
            if moves == 0 or not node.actions:
                ends.append((node, weight))
            elif node.player == self.follower.player:
                own.setdefault(node.key, []).append((node, weight, moves))
            else:
                row = self.probabilities(node)
                stack += [(child, weight * row.get(a, 0.0), moves - 1) for a, child in node.next.items()]
        return ends, own

    def expect(self, histories: _Histories, seen: list[float]) -> float:
        """Return the most that the follower can hope for, over its plans inside the lookahead.

        histories: the possible true ones, given what the follower has seen.
        seen: |h| of what it looks at is added here.
        """
        total = []
        ends, own = self.follow(histories)
        for node, weight in ends:
            value = self.follower.evaluation(node.state)
            value = checks.check_evaluation(value, node.state, "evaluation")
            seen.append(abs(value))
            total.append(weight * value)
        for members in own.values():
            actions = members[0][0].actions
            total.append(max(self.expect(_after(members, action), seen) for action in actions))
        return math.fsum(total)

    def play(self, histories: _Histories, response: dict[str, int]) -> float:
        """Return the rational player's utility from histories on; write the follower's play to `response`."""
        ends, own = self.follow(histories)
        player = self.follower.rational_player
        total = [weight * node.facts.utilities(node.state)[player] for node, weight in ends]
        for key, members in own.items():
            worth = {a: self.play(_after(members, a), response) for a in self.optimal[key]}
            if self.follower.tie_breaking == "static":
                ranked = self.follower.ranked(key, members[0][0].actions)
                action = next(a for a in ranked if a in worth)
            else:
                choose = max if self.follower.tie_breaking == "favorable" else min
                action = choose(worth, key=worth.__getitem__)
            response[key] = action
            total.append(worth[action])
        return math.fsum(total)


def _after(members: _Histories, action: int) -> _Histories:
    """Return the histories after an action at an information set."""
    return [(node.next[action], weight, moves - 1) for node, weight, moves in members]


class LookaheadPolicy(Shown, openspiel_policy.Policy):
    """The policy of a player with limited lookahead against a strategy, which the other player follows.

    Attributes:
      outcome: Optimal sets, the actions picked, and the rational player's utility.
    """

    outcome: LookaheadOutcome

    @public
    def __init__(
        self,
        game: AnySumGame,
        rational_player: checks.Player,
        strategy: PolicyLike,
        lookahead: checks.PositiveInt,
        evaluation: EvaluationFunction,
        tie_breaking: TieBreaking = "static",
        order: Order | None = None,
    ) -> None:
        """Initialize the policy.

        Args:
          game: two players, sequential, perfect recall.
          rational_player: 0 or 1; the other one looks ahead.
          strategy: the rational player's, an OpenSpiel policy or `state -> {action: probability}`.
          lookahead: k >= 1, in moves, Nature's included.
          evaluation: h, the limited player's evaluation function; asked of leaves too.
          tie_breaking: "favorable", "static" or "adversarial".
          order: for "static" only, the preferred action first.

        Raises:
          ValueError: as `evaluate_against_lookahead`.
        """
        self.outcome = evaluate_against_lookahead(
            game, strategy, rational_player, lookahead, evaluation, tie_breaking, order
        )
        super().__init__(game, list(range(game.num_players())))
        self._rational = rational_player
        self._strategy = as_batch_policy(strategy, "strategy")

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} of all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move, or the
            strategy gives no probabilities.
        """
        checks.check_turn(state, player_id, self.game)
        actions = legal_actions(state)
        if state.current_player() == self._rational:
            return dict(zip(actions, legal_probabilities(self._strategy, state, "strategy"), strict=True))
        row = dict.fromkeys(actions, 0.0)
        row[self.outcome.response[infoset_key(state)]] = 1.0
        return row
