"""Declarations of a game, compared with its states where it is walked; errors state what is wrong.

A game may come from a file, or from whoever is just writing it. What it declares is relied on far from where
it is seen: a range of utilities cuts trees and bounds estimates, a number of actions is the width of a table.
So whatever walks a game asks here.

    utilities = Utilities(game)
    utilities.of(state)                  # both players', where the game is over

Cost: comparisons of numbers that are read anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.checks import ArgumentError, at_history, of_constant_sum, shown, utility_sum

_ROUNDING = 1e-9  # of sums of utilities, and of their bounds


class Utilities:
    """Both players' utilities where a game is over."""

    def __init__(self, game: pyspiel.Game) -> None:
        """Reads what the game says of them.

        Raises:
          ValueError: its range of utilities has no ends.
        """
        low, high = game.min_utility(), game.max_utility()
        if not -math.inf < low <= high < math.inf:
            got = f"one from {low} to {high} of {shown(str(game))}"
            raise ArgumentError(f"expected a finite range of utilities, got {got}")
        slack = _ROUNDING * (1.0 + abs(low) + abs(high))
        self._said, self._low, self._high = (low, high), low - slack, high + slack
        self._sum = utility_sum(game) if of_constant_sum(game) else None

    def of(self, state: Any) -> tuple[float, float]:
        """The utilities of players 0 and 1.

        Raises:
          ValueError: one is no number, or outside of the game's range, or they do not add up to what the game
            says.
        """
        first, second = state.returns()
        low, high, total = self._low, self._high, self._sum
        if not (low <= first <= high and low <= second <= high):
            self._reject(state, "utilities from {:g} to {:g}".format(*self._said), (first, second))
        if total is not None and not abs(first + second - total) <= _ROUNDING * (
            1.0 + abs(first) + abs(second)
        ):
            self._reject(state, f"utilities that add up to {total:g}", (first, second))
        return first, second

    def of_all(self, states: Sequence[Any]) -> npt.NDArray[np.float64]:
        """The same of several states, float64[n, 2]."""
        both = np.array([state.returns() for state in states], np.float64).reshape(-1, 2)
        wrong = ~((self._low <= both) & (both <= self._high)).all(axis=1)
        if self._sum is not None:
            slack = _ROUNDING * (1.0 + np.abs(both).sum(axis=1))
            wrong |= ~(np.abs(both.sum(axis=1) - self._sum) <= slack)
        for k in np.flatnonzero(wrong)[:1].tolist():
            self.of(states[k])
        return both

    def _reject(self, state: Any, wanted: str, seen: tuple[float, float]) -> NoReturn:
        got = f"{seen[0]} and {seen[1]} {at_history(state)}"
        raise ArgumentError(f"expected {wanted}, as the game says, got {got}")
