"""A mixed opponent in a tree in the making: the posteriors of one level's histories.

Positions are asked about, and histories are played from: `LevelPositions` asks the components once for each
distinct position, and here their answers are mixed for each history, by the posterior that its own moves
have. So histories that lead to one position may differ in what is played there, and in what stopping is
worth, while nothing is asked twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.tree.mixture import TreeMixture, followed, mixed

__all__ = ["MixedOpponent"]


class MixedOpponent:
    """The posteriors of a level's histories, and the rows of all levels so far."""

    def __init__(self, player: int, mixture: MixturePolicy, min_probability: float) -> None:
        """Starts at the root.

        Args:
          player: who is the mixture.
          mixture: drawn once per game.
          min_probability: what is played less often is set to zero, and the rest renormalized.
        """
        self.player = player
        self.weights = mixture.weights
        self._min_probability = min_probability
        # A history's posterior is the one after its mixed player's last move: `_at` says which.
        self._posterior = mixture.weights[None, :].copy()
        self._at = np.zeros(1, np.int64)
        self._spare = np.empty((0, len(mixture.weights)))  # memory of an earlier level's
        self._sigma: list[np.ndarray] = []
        self._value: list[np.ndarray] = []
        self._sigma_rows = self._value_rows = 0

    def play(
        self,
        own: npt.NDArray[np.bool_],
        source: npt.NDArray[np.int64],
        kind: npt.NDArray[np.int64],
        table: npt.NDArray[np.float64],
        sigma: npt.NDArray[np.float64],
    ) -> None:
        """Writes what is played at a level's edges into `sigma`; `follow` then goes on to what is behind.

        Args:
          own: bool[e], edges of the mixed player.
          source: int64[e], which history they leave.
          kind: int64[e], which distinct edges they are.
          table: float64[distinct, K].
          sigma: float64[e].
        """
        self._edges, self._table = (own, source, kind), table
        at = np.flatnonzero(own)
        if len(self._spare) < len(at):
            self._spare = np.empty((len(at), len(self.weights)))
        if not len(at):
            return
        odds, histories = np.empty(len(at)), len(self._at)
        followed(self._posterior, self._at[source[at]], kind[at], table, odds, self._spare)
        if (odds < self._min_probability).any():
            likeliest = np.zeros(histories)
            np.maximum.at(likeliest, source[at], odds)
            odds[(odds < self._min_probability) & (odds < likeliest[source[at]])] = 0.0
        sigma[at] = odds / np.bincount(source[at], weights=odds, minlength=histories)[source[at]]

    def follow(self, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Goes on to the histories behind those edges (bool[e]) that the tree has.

        Returns:
          int32[histories], `TreeMixture.edge_row`.
        """
        own, source, kind = self._edges
        rows = np.full(len(own), -1, np.int32)
        behind = self._at[source]
        if own.any():
            kept = own & used
            needed = np.zeros(len(self._table), bool)
            needed[kind[kept]] = True
            table = self._table if needed.all() else self._table[needed]
            rows[kept] = (self._sigma_rows + np.cumsum(needed) - 1)[kind[kept]]
            self._sigma.append(table)
            self._sigma_rows += len(table)
            if own.all():
                self._posterior, self._spare = self._spare, self._posterior
                behind = np.arange(len(own))
            else:  # who moved last differs between the histories of the next level
                count = int(own.sum())
                behind[own] = np.arange(count)
                behind[~own] += count
                self._posterior = np.concatenate([self._spare[:count], self._posterior])
        self._at = behind[used]
        return rows[used]

    def posterior(self, histories: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """float64[m, K] of some of the level's histories."""
        return np.asarray(self._posterior[self._at[histories]])

    def valued(
        self,
        posterior: npt.NDArray[np.float64],
        which: npt.NDArray[np.int32],
        table: npt.NDArray[np.float64],
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """(what histories are worth, `TreeMixture.value_row`).

        Args:
          posterior: float64[m, K], theirs.
          which: int32[m], the row of `table` of each.
          table: float64[positions, K], what positions are worth against each component.
        """
        worth = mixed(posterior, which, table)
        rows = which + np.int32(self._value_rows)
        self._value.append(table)
        self._value_rows += len(table)
        return worth, rows

    def result(self, edge_row: npt.NDArray[np.int32], value_row: npt.NDArray[np.int32]) -> TreeMixture:
        """What the tree keeps."""
        none = np.zeros((0, len(self.weights)))
        return TreeMixture(
            self.player,
            self.weights,
            edge_row,
            np.concatenate([none, *self._sigma]),
            value_row,
            np.concatenate([none, *self._value]),
        )
