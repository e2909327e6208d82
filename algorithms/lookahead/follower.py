"""The player with limited lookahead, as every function here is told of it, and how that is checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pyspiel

from precomp_games._support.arguments import ArgumentError, one_of
from precomp_games._support.checks import check_ranking, shown
from precomp_games.policies.rows import BatchPolicy, infoset_key, policy_rows

__all__ = [
    "TIE_BREAKING",
    "TIE_TOLERANCE",
    "EvaluationFunction",
    "Follower",
    "Order",
    "TieBreaking",
    "check_own",
    "infoset_key",
    "legal_odds",
]

EvaluationFunction = Callable[[Any], float]
"""h: a state's worth to the player with limited lookahead, any finite number. It is asked of leaves too.

Where it has attributes `player` and `game`, as `NodeValues` has, these say whose worth it is, and in which
game.
"""

Order = Callable[[str, Sequence[int]], Sequence[int]]
"""A static rule: `(information state, its actions) -> the same actions, the preferred one first`."""

TIE_BREAKING = ("favorable", "static", "adversarial")
"""How the follower chooses among actions that look equally good to it."""
TieBreaking = Annotated[str, one_of(TIE_BREAKING)]
"""One of `TIE_BREAKING`."""

TIE_TOLERANCE = 1e-9
"""What counts as a tie: values that differ by less than this times the largest |h| that is seen."""


def check_own(value: Any, game: pyspiel.Game, name: str) -> None:
    """Refuses a policy or an evaluation function that says that it is another game's, and a class of them.

    Raises:
      ValueError: it is.
    """
    if isinstance(value, type):
        raise ArgumentError(f"expected {name} to be an instance, got the class {value.__name__}")
    own = getattr(value, "game", None)
    if isinstance(own, pyspiel.Game) and own is not game and str(own) != str(game):
        raise ArgumentError(f"expected {name} to be one of {shown(game)}, got one of {shown(own)}")


@dataclasses.dataclass(frozen=True, eq=False)
class Follower:
    """The player with limited lookahead.

    Attributes:
      game: Two players, sequential, perfect recall.
      rational_player: The other one.
      lookahead: k >= 1, in moves, Nature's included.
      evaluation: h, its evaluation function.
      tie_breaking: One of `TIE_BREAKING`.
      order: For "static" only, the preferred action first; None goes by the game's.
    """

    game: pyspiel.Game
    rational_player: int
    lookahead: int
    evaluation: EvaluationFunction
    tie_breaking: TieBreaking
    order: Order | None

    def __post_init__(self) -> None:
        """Refuses what does not fit together.

        Raises:
          ValueError: the evaluation is of another game or player, or there is an order without use.
        """
        check_own(self.evaluation, self.game, "evaluation")
        if getattr(self.evaluation, "player", None) == self.rational_player:
            raise ArgumentError(
                f"expected what states are worth to player {self.player}, whose lookahead is "
                f"limited, got an evaluation of player {self.rational_player}"
            )
        if self.order is not None and self.tie_breaking != "static":
            raise ArgumentError(
                'expected order only where tie_breaking is "static", which goes by it, '
                f'got both it and "{self.tie_breaking}"'
            )

    @property
    def player(self) -> int:
        """The one that looks ahead."""
        return 1 - self.rational_player

    def ranked(self, key: str, actions: Sequence[int]) -> list[int]:
        """An information set's actions, the preferred one first; as the game lists them without an order.

        Raises:
          ValueError: the order does not give each action once.
        """
        if self.order is None:
            return list(actions)
        return check_ranking(self.order(key, list(actions)), actions, "order", key)


def legal_odds(policy: BatchPolicy, state: Any, name: str) -> list[float]:
    """The probabilities that a policy gives to a state's legal actions.

    Raises:
      ValueError: it gives none, or they do not sum to 1 within 1e-6.
    """
    rows = policy_rows(policy, [state], name=name)
    row = dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))
    return [row.get(action, 0.0) for action in state.legal_actions()]
