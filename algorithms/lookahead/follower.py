"""What all functions on limited lookahead are told, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import pyspiel

from precomp_games.checks import (
    check_choice,
    check_function,
    check_game,
    check_integer,
    check_player,
    check_ranking,
    shown,
)
from precomp_games.policies import BatchPolicy, policy_rows

__all__ = [
    "TIE_BREAKING",
    "TIE_TOLERANCE",
    "Evaluation",
    "Order",
    "Recent",
    "check_own",
    "check_settings",
    "legal_odds",
    "preference",
]

Evaluation = Callable[[Any], float]
"""h: a state's worth to the player with limited lookahead, any finite number. It is asked of leaves too.

Where it has attributes `player` and `game`, as `NodeValues` has, these say whose worth it is, and in which
game.
"""

Order = Callable[[str, Sequence[int]], Sequence[int]]
"""A static rule: `(information state, its actions) -> the same actions, the preferred one first`."""

TIE_BREAKING = ("favorable", "static", "adversarial")
"""How the follower chooses among actions that look equally good to it."""

TIE_TOLERANCE = 1e-9
"""What counts as a tie: values that differ by less than this times the largest |h| that is seen."""


def check_own(value: Any, game: pyspiel.Game, name: str, caller: str) -> None:
    """Refuses a policy or an evaluation that says itself that it is another game's, and a class of them.

    Raises:
      ValueError: it is.
    """
    if isinstance(value, type):
        raise ValueError(f"{caller}: expected {name} to be an instance, got the class {value.__name__}")
    own = getattr(value, "game", None)
    if isinstance(own, pyspiel.Game) and own is not game and str(own) != str(game):
        raise ValueError(f"{caller}: expected {name} to be one of {shown(game)}, got one of {shown(own)}")


def check_settings(
    game: pyspiel.Game,
    rational_player: int,
    lookahead: int,
    evaluation: Evaluation,
    tie_breaking: str,
    order: Order | None,
    caller: str,
) -> None:
    """Refuses what no function on limited lookahead accepts.

    Raises:
      ValueError: a game outside the model, or a setting is not as documented.
    """
    check_game(game, caller, constant_sum=False)
    check_player(rational_player, caller, "rational_player")
    check_function(evaluation, "evaluation", caller)
    check_own(evaluation, game, "evaluation", caller)
    if getattr(evaluation, "player", None) == rational_player:
        raise ValueError(
            f"{caller}: expected what states are worth to player {1 - rational_player}, whose lookahead is "
            f"limited, got an evaluation of player {rational_player}"
        )
    check_integer(lookahead, "lookahead", caller, least=1)
    check_choice(tie_breaking, TIE_BREAKING, "tie_breaking", caller)
    check_function(order, "order", caller, optional=True)
    if order is not None and tie_breaking != "static":
        raise ValueError(
            f'{caller}: expected order only where tie_breaking is "static", which goes by it, '
            f'got both it and "{tie_breaking}"'
        )


def legal_odds(policy: BatchPolicy, state: Any, name: str, caller: str) -> list[float]:
    """The probabilities that a policy gives to a state's legal actions.

    Raises:
      ValueError: it gives none, or they do not sum to 1 within 1e-6.
    """
    rows = policy_rows(policy, [state], name=name, caller=caller)
    row = dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))
    return [row.get(action, 0.0) for action in state.legal_actions()]


def preference(order: Order | None, key: str, actions: Sequence[int], caller: str) -> list[int]:
    """An information set's actions, the preferred one first; as the game lists them where there is no order.

    Raises:
      ValueError: the order does not give each action once.
    """
    if order is None:
        return list(actions)
    return check_ranking(order(key, list(actions)), actions, "order", caller, key)


_T = TypeVar("_T")


class Recent(Generic[_T]):
    """What was last made of a few games; pyspiel's games cannot be hashed."""

    def __init__(self, size: int = 8) -> None:
        """Initializes an empty store."""
        self._size = size
        self._kept: list[tuple[pyspiel.Game, _T]] = []

    def of(self, game: pyspiel.Game, make: Callable[[], _T]) -> _T:
        """What belongs to this game object; `make` makes it where it is not there."""
        for at, (kept, made) in enumerate(self._kept):
            if kept is game:
                self._kept.append(self._kept.pop(at))
                return made
        made = make()
        self._kept = [*self._kept[-self._size + 1 :], (game, made)]
        return made
