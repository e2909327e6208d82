"""How a game is to be expanded, checked: what `HistoryTree.from_game` was given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyspiel

from precomp_games.checks import (
    check_choice,
    check_function,
    check_game,
    check_integer,
    check_number,
    check_penalties,
)
from precomp_games.expansion.positions import PolicyPair, hashable
from precomp_games.leaf_values import LeafValues, as_leaf_values
from precomp_games.policies import as_batch_policies

__all__ = ["PRICES", "STOP_VALUES", "TRUNCATIONS", "ExpansionOptions", "Progress"]

Progress = Callable[[int, int], None]
"""Called after each level with (level, histories so far)."""

STOP_VALUES = ("backup", "evaluate")
"""What stopping may be worth; see `HistoryTree.from_game`."""

TRUNCATIONS = ("none", "reach", "values")
"""What may be left out of a tree; see `HistoryTree.from_game`."""

PRICES = ("infosets", "positions")
"""What a penalty may be paid for; see `HistoryTree.from_game`."""

_MOST_CUT = 0.01


@dataclasses.dataclass(frozen=True)
class ExpansionOptions:
    """How to expand; see `HistoryTree.from_game` for the meaning of each."""

    sigma_pre: PolicyPair
    sigma: PolicyPair
    penalties: tuple[float, float]
    utility_range: float
    leaf_values: LeafValues
    evaluate_stops: bool
    truncate: str
    price: str
    position_key: Callable[[Any], Hashable] | None
    min_probability: float
    max_histories: int
    progress: Progress | None

    @classmethod
    def checked(
        cls,
        caller: str,
        game: pyspiel.Game,
        *,
        sigma_pre: Any,
        sigma: Any,
        penalties: Any,
        leaf_value: Any,
        truncate: Any,
        price: Any,
        stop_value: Any,
        position_key: Any,
        utility_range: Any,
        min_probability: Any,
        max_histories: Any,
        progress: Any,
    ) -> ExpansionOptions:
        """Checks the arguments of `HistoryTree.from_game`.

        Raises:
          ValueError: one of them, or the game, is not as documented there.
        """
        check_game(game, caller)
        penalty = check_penalties(penalties, caller)
        check_choice(stop_value, STOP_VALUES, "stop_value", caller)
        check_function(position_key, "position_key", caller, optional=True)
        check_function(progress, "progress", caller, optional=True)
        if stop_value == "evaluate" and np.isfinite(penalty).all():
            raise ValueError(
                f'{caller}: expected one player with an infinite penalty for stop_value="evaluate" '
                f"(against a fixed opponent), got penalties {penalty}"
            )
        check_choice(price, PRICES, "price", caller)
        if price == "positions":
            _check_positions(game, penalty, position_key, caller)
        if utility_range is None:
            utility_range = game.max_utility() - game.min_utility()
        return cls(
            sigma_pre=as_batch_policies(sigma_pre, "sigma_pre", caller, menus=True),
            sigma=as_batch_policies(sigma, "sigma", caller),
            penalties=penalty,
            utility_range=check_number(utility_range, "utility_range", caller, above=0.0),
            leaf_values=as_leaf_values(leaf_value, caller),
            evaluate_stops=stop_value == "evaluate",
            truncate=check_choice(truncate, TRUNCATIONS, "truncate", caller),
            price=price,
            position_key=None if position_key is None else hashable(position_key),
            min_probability=check_number(
                min_probability, "min_probability", caller, least=0.0, most=_MOST_CUT
            ),
            max_histories=check_integer(max_histories, "max_histories", caller, least=1),
            progress=progress,
        )


def _check_positions(
    game: pyspiel.Game, penalties: tuple[float, float], position_key: Any, caller: str
) -> None:
    """Holds to what a price per position needs.

    Raises:
      ValueError: the game has imperfect information, both players prepare, or positions have no key.
    """
    if game.get_type().information != pyspiel.GameType.Information.PERFECT_INFORMATION:
        raise ValueError(
            f'{caller}: expected a game of perfect information for price="positions", got {game}; elsewhere, '
            'expand with truncate="none" and give the solvers keys of information states'
        )
    if np.isfinite(penalties).all() or position_key is None:
        raise ValueError(
            f'{caller}: expected price="positions" with a position_key and with one player whose penalty is '
            f"infinite, got penalties {penalties} and position_key={position_key!r}"
        )
