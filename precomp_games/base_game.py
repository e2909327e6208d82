"""What the library asks of a base game: two players, zero- or constant-sum, sequential."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

__all__ = ["check_base_game", "pair", "penalty_pair", "utility_sum"]


def check_base_game(game: pyspiel.Game, caller: str) -> None:
    """Refuses games outside the model.

    Perfect recall cannot be read off a game; it is checked while the tree is expanded.

    Raises:
      ValueError: not a sequential two-player game of zero or constant sum with explicit chance.
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
    if kind.utility not in (
        pyspiel.GameType.Utility.ZERO_SUM,
        pyspiel.GameType.Utility.CONSTANT_SUM,
    ):
        raise ValueError(f"{caller}: expected a zero-sum or constant-sum game, {got} with {kind.utility}")
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"{caller}: expected explicit chance nodes, {got} with sampled ones")
    perfect = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    if not perfect and not kind.provides_information_state_string:
        raise ValueError(
            f"{caller}: expected information state strings where information is imperfect, {got}, "
            "which provides none"
        )


def utility_sum(game: pyspiel.Game) -> float:
    """The constant that both players' utilities add up to (0 for a zero-sum game)."""
    total = game.utility_sum()
    return 0.0 if total is None else float(total)


def penalty_pair(penalties: float | Sequence[float], caller: str) -> tuple[float, float]:
    """Penalties (lambda_0, lambda_1) a memorised state, in utility; one number stands for both.

    Raises:
      ValueError: a penalty is not positive or NaN. Infinity is allowed: a player who never memorises.
    """
    values = pair(penalties, "penalties", caller)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0.0:
            raise ValueError(
                f"{caller}: expected penalties to be positive numbers (math.inf for a player who "
                f"never memorises), got {penalties!r}"
            )
    return float(values[0]), float(values[1])


def pair(value: Any, name: str, caller: str) -> tuple[Any, Any]:
    """`(value, value)`, or the two elements of a list, tuple or array: one for both players, or one each.

    Raises:
      ValueError: a list or tuple that does not have two elements.
    """
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) != 2:
            raise ValueError(f"{caller}: expected {name} to be one value or a pair, got {len(value)} of them")
        return value[0], value[1]
    return value, value
