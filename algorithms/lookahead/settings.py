"""What all functions on limited lookahead are told, and how it is checked."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyspiel

__all__ = [
    "TIE_BREAKING",
    "TIE_TOLERANCE",
    "Evaluation",
    "Order",
    "Recent",
    "check_game",
    "check_row",
    "check_settings",
    "check_value",
    "is_number",
    "preference",
]

Evaluation = Callable[[Any], float]
"""h: a state's worth to the player with limited lookahead, any finite number. It is asked of leaves too.

Where it has an attribute `player`, as `NodeValues` has, that says whose worth it is.
"""

Order = Callable[[str, Sequence[int]], Sequence[int]]
"""A static rule: `(information state, its actions) -> the same actions, the preferred one first`."""

TIE_BREAKING = ("favorable", "static", "adversarial")
"""How the follower chooses among actions that look equally good to it."""

TIE_TOLERANCE = 1e-9
"""What counts as a tie: values that differ by less than this times the largest |h| that is seen."""


def check_game(game: pyspiel.Game, caller: str) -> None:
    """Refuses games outside the model.

    Perfect recall cannot be read off a game; it is checked where the game is flattened.

    Raises:
      ValueError: not a sequential two-player game with explicit chance.
    """
    if not isinstance(game, pyspiel.Game):
        raise ValueError(f"{caller}: expected a pyspiel.Game, got {game!r}")
    kind = game.get_type()
    got = f"got {kind.short_name}"
    if game.num_players() != 2:
        raise ValueError(f"{caller}: expected a two-player game, {got} with {game.num_players()} players")
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        raise ValueError(
            f"{caller}: expected a sequential game, {got}, which is simultaneous; "
            "pyspiel.convert_to_turn_based() makes it one"
        )
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{caller}: expected explicit chance nodes, {got} with sampled ones")
    perfect = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    if not perfect and not kind.provides_information_state_string:
        raise ValueError(f"{caller}: expected information state strings, {got}, which provides none")


def is_number(value: Any) -> bool:
    """Whether it is a finite real number."""
    return isinstance(value, numbers.Real) and math.isfinite(value)


def check_settings(
    game: pyspiel.Game,
    rational_player: int,
    lookahead: int,
    evaluation: Evaluation,
    tie_breaking: str,
    caller: str,
) -> None:
    """Refuses what no function on limited lookahead accepts.

    Raises:
      ValueError: a game outside the model, or a setting is not as documented.
    """
    check_game(game, caller)
    if type(rational_player) is bool or not (
        isinstance(rational_player, numbers.Integral) and 0 <= rational_player <= 1
    ):
        raise ValueError(f"{caller}: expected rational_player 0 or 1, got {rational_player!r}")
    if not callable(evaluation):
        raise ValueError(f"{caller}: expected evaluation to be a function of a state, got {evaluation!r}")
    if getattr(evaluation, "player", None) == rational_player:
        raise ValueError(
            f"{caller}: expected what states are worth to player {1 - rational_player}, whose lookahead is "
            f"limited, got an evaluation of player {rational_player}"
        )
    if not isinstance(lookahead, numbers.Integral) or isinstance(lookahead, bool) or lookahead < 1:
        raise ValueError(f"{caller}: expected lookahead to be an integer of at least 1, got {lookahead!r}")
    if tie_breaking not in TIE_BREAKING:
        raise ValueError(f"{caller}: expected tie_breaking to be one of {TIE_BREAKING}, got {tie_breaking!r}")


def check_value(value: Any, state: Any, caller: str) -> float:
    """What an evaluation said of a state.

    Raises:
      ValueError: it is no finite number.
    """
    if not is_number(value):
        raise ValueError(
            f"{caller}: expected finite evaluations, got {value!r} at history {state.history_str()!r}"
        )
    return float(value)


def check_row(row: Mapping[int, float], state: Any, caller: str) -> list[float]:
    """The probabilities that a policy gives to a state's legal actions.

    Raises:
      ValueError: they are negative, or do not sum to 1 within 1e-6.
    """
    odds = [row.get(action, 0.0) for action in state.legal_actions()]
    if not all(p >= 0.0 for p in odds) or abs(sum(odds) - 1.0) > 1e-6:
        raise ValueError(
            f"{caller}: expected probabilities of the legal actions {state.legal_actions()} at history "
            f"{state.history_str()!r}, got {dict(row)}"
        )
    return odds


def preference(order: Order | None, key: str, actions: Sequence[int], caller: str) -> list[int]:
    """An information set's actions, the preferred one first; as the game lists them where there is no order.

    Raises:
      ValueError: the order does not give each action once.
    """
    if order is None:
        return list(actions)
    if not callable(order):
        raise ValueError(f"{caller}: expected order to be a function or None, got {order!r}")
    ranked = [int(action) for action in order(key, list(actions))]
    if sorted(ranked) != sorted(actions):
        raise ValueError(f"{caller}: expected order to rank {list(actions)} at {key!r}, got {ranked}")
    return ranked


_T = TypeVar("_T")


class Recent(Generic[_T]):
    """What was last made of a few games; pyspiel's games cannot be hashed."""

    def __init__(self, make: Callable[[pyspiel.Game], _T], size: int = 8) -> None:
        """Initialises an empty store for what `make` makes of a game."""
        self._make, self._size = make, size
        self._kept: list[tuple[pyspiel.Game, _T]] = []

    def of(self, game: pyspiel.Game) -> _T:
        """What belongs to this game object."""
        for at, (kept, made) in enumerate(self._kept):
            if kept is game:
                self._kept.append(self._kept.pop(at))
                return made
        made = self._make(game)
        self._kept = [*self._kept[-self._size + 1 :], (game, made)]
        return made
