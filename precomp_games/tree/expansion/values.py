"""Values of the histories of a tree in the making: computed once for each position of a level.

Against a mixed opponent a position may have a different value against each component. Histories then have
the mean, by their own posteriors.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from precomp_games._support.checks import of_constant_sum
from precomp_games.policies.leaf_values import LeafContext
from precomp_games.policies.mixtures import component_name
from precomp_games.policies.rows import BatchPolicies
from precomp_games.tree.expansion.options import ExpansionOptions
from precomp_games.tree.expansion.positions import LevelPositions
from precomp_games.tree.expansion.pruning import Level
from precomp_games.tree.facts import TERMINAL
from precomp_games.tree.mixture import MixedOpponent


class _Waiting(NamedTuple):
    """Positions of a level whose values come at the end.

    Attributes:
      states: The positions.
      histories: int32[m], of the tree.
      which: int32[m], each one's position.
      posterior: float64[m, K], theirs; None where values do not depend on components.
    """

    states: list[Any]
    histories: np.ndarray
    which: np.ndarray
    posterior: np.ndarray | None


class TreeValues:
    """Values of one expansion.

    Attributes:
      evaluations: How many positions were valued.
      games: How many games were sampled for that.
    """

    def __init__(
        self, game: pyspiel.Game, options: ExpansionOptions, opponent: Any, positions: LevelPositions
    ) -> None:
        """Nothing is valued yet; `opponent` is a `MixedOpponent`, or None."""
        self.evaluations = self.games = 0
        self._constant_sum = of_constant_sum(game)
        self._options, self._positions, alike = options, positions, positions.alike
        self._opponent: MixedOpponent | None = opponent
        self._by_component = len(options.leaf_values) > 1
        self._deferred = any(values.deferred for values in options.leaf_values)
        self._contexts = [
            LeafContext(
                sigma=sigma,
                position_key=options.position_key,
                min_probability=options.min_probability,
                utility_range=options.utility_range,
                bounds=(game.min_utility(), game.max_utility()),
                max_states=options.max_histories,
                player=options.value_of or 0,
                alike=None if alike is None else functools.partial(alike.hold, names=names),
                memory=positions.memory,
            )
            for sigma, names in (_against(options, k) for k in range(len(options.leaf_values)))
        ]
        self._waiting: list[_Waiting] = []

    def of_level(
        self, level: Level, needed: np.ndarray, first: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """u^sigma of a level's histories that need one or are over, NaN elsewhere and where it comes later.

        Args:
          level: its histories.
          needed: bool[n], where a value is wanted, if the game is not over.
          first: how many histories the levels before have.

        Returns:
          float64[n]; int32[n], see `TreeMixture.value_row`, int32[0] without a mixed opponent; and
          float64[n], `HistoryTree.value_1`, or None.
        """
        states, position, player = self._positions.states, level.position, level.player
        value = np.full(len(player), np.nan)
        rows = np.full(0 if self._opponent is None else len(player), -1, np.int32)
        both = not self._constant_sum and self._options.value_of is None
        value_1 = np.full(len(player), np.nan) if both else None
        over = np.flatnonzero(player == TERMINAL)
        if len(over):
            utilities = self._positions.utilities[position[over]]
            value[over] = -utilities[:, 1] if self._options.value_of == 1 else utilities[:, 0]
            if value_1 is not None:
                value_1[over] = utilities[:, 1]
        histories = np.flatnonzero(needed & (player != TERMINAL))
        asked = np.zeros(len(states), bool)
        asked[position[histories]] = True
        chosen = [states[k] for k in np.flatnonzero(asked).tolist()]
        self.evaluations += len(chosen)
        # Where among `chosen` each history's position is.
        which = (np.cumsum(asked) - 1)[position[histories]].astype(np.int32)
        posterior = None
        if self._by_component and self._opponent is not None:
            posterior = self._opponent.posterior(histories)
        waiting = _Waiting(chosen, (first + histories).astype(np.int32), which, posterior)
        if self._deferred:
            self._waiting.append(waiting)
        elif chosen:
            (answers,) = self._answers([chosen])
            self._write(value, rows, histories, waiting, answers)
        return value, rows, value_1

    def fill_in(self, value: np.ndarray, rows: np.ndarray) -> None:
        """Write what wanted to see all positions at once, into arrays of the whole tree."""
        if self._deferred:
            answers = self._answers([waiting.states for waiting in self._waiting])
            for waiting, answer in zip(self._waiting, answers, strict=True):
                self._write(value, rows, waiting.histories, waiting, answer)

    def _answers(self, levels: list[list[Any]]) -> list[np.ndarray]:
        """Return float64[positions, 1 or K] of each level."""
        columns = []
        for values, context in zip(self._options.leaf_values, self._contexts, strict=True):
            answers, games = values(levels, context)
            if context.player == 1:
                answers = [-answer for answer in answers]
            self.games += games
            columns.append(answers)
        return [np.stack(answers, axis=1) for answers in zip(*columns, strict=True)]

    def _write(
        self, value: np.ndarray, rows: np.ndarray, at: np.ndarray, waiting: _Waiting, answers: np.ndarray
    ) -> None:
        """Write what histories are worth, and their rows of values by component."""
        if waiting.posterior is None or self._opponent is None:
            value[at] = answers[waiting.which, 0]
        else:
            value[at], rows[at] = self._opponent.valued(waiting.posterior, waiting.which, answers)


def _against(options: ExpansionOptions, number: int) -> tuple[BatchPolicies, tuple[str, str]]:
    """Return the sigma of each player against a component, and the names of these policies in errors."""
    sigma, names = list(options.sigma), ["sigma[0]", "sigma[1]"]
    if options.mixture is not None:
        player, mixture = options.mixture
        sigma[player], names[player] = mixture.components[number], component_name(number)
    return (sigma[0], sigma[1]), (names[0], names[1])
