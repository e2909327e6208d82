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

__all__ = ["STOP_VALUES", "TRUNCATIONS", "ExpansionOptions", "Progress"]

Progress = Callable[[int, int], None]
"""Called after each level with (level, histories so far)."""

STOP_VALUES = ("backup", "evaluate")
"""What stopping may be worth; see `HistoryTree.from_game`."""

TRUNCATIONS = ("none", "reach", "values")
"""What may be left out of a tree; see `HistoryTree.from_game`."""

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
            position_key=None if position_key is None else hashable(position_key),
            min_probability=check_number(
                min_probability, "min_probability", caller, least=0.0, most=_MOST_CUT
            ),
            max_histories=check_integer(max_histories, "max_histories", caller, least=1),
            progress=progress,
        )
