"""A mixed opponent on a history tree: its components' probabilities and values, and how they are mixed.

With p_k(h) the posterior of component k (`precomp_games.policies.mixtures`), the mixed player's edges have
sum_k p_k(h) sigma_k(a | h), and where each component has values of its own, h is worth sum_k p_k(h) v_k(h).
sigma_k and v_k are functions of the position, so there is one row of them for each distinct edge and position
of the tree; p_k is a function of the history, and needs no row: it follows from the edges to its ancestors.

While a tree is made, `LevelPositions` asks the components once for each distinct position. `MixedOpponent`
mixes their answers for each history, by the posterior that its own moves have. So histories that lead to one
position may differ in what is played there, and in what stopping is worth, while nothing is asked twice.

Source: docs/mixtures.md. Cost: 8 K bytes for each distinct edge of the mixed player, and as much for each
valued position where values differ; mixing is a pass over the edges with K multiplications each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.policies.mixtures import MixturePolicy


class TreeMixture(NamedTuple):
    """The components of a tree's mixed opponent.

    Attributes:
      player: The player who is the mixture.
      weights: float64[K], the probability of each component.
      edge_row: int32[n], the row of `sigma` of the edge that leads to h; -1 where another one moved.
      sigma: float64[rows, K], each component's probabilities of the distinct edges.
      value_row: int32[n], the row of `value` of h; -1 where all components have the tree's value, or none.
      value: float64[rows, K], the value of h to player 0 against each.
    """

    player: int
    weights: npt.NDArray[np.float64]
    edge_row: npt.NDArray[np.int32]
    sigma: npt.NDArray[np.float64]
    value_row: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]

    def component(
        self, k: int, sigma: npt.NDArray[np.float64], value: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return `HistoryTree.sigma` and `value`, where the opponent is component k: float64[n] each."""
        sigma, value = sigma.copy(), value.copy()
        for into, row, table in ((sigma, self.edge_row, self.sigma), (value, self.value_row, self.value)):
            at = np.flatnonzero(row >= 0)
            into[at] = table[row[at], k]
        return sigma, value


class MixedOpponent:
    """The posteriors of a level's histories, and the rows of all levels so far."""

    def __init__(self, player: int, mixture: MixturePolicy, min_probability: float) -> None:
        """Start at the root.

        Args:
          player: the player who is the mixture.
          mixture: drawn once per game.
          min_probability: what is played less often is set to zero, and the rest renormalized.
        """
        self.player = player
        self.weights = mixture.weights
        self._min_probability = min_probability
        # A history's posterior is the one after its mixed player's last move: `_at` has its index.
        self._posterior = mixture.weights[None, :].copy()
        self._at = np.zeros(1, np.int64)
        self._spare = np.empty((0, len(mixture.weights)))  # memory of an earlier level's
        self._sigma: list[np.ndarray] = []
        self._value: list[np.ndarray] = []

    def step(
        self,
        own: np.ndarray,
        source: np.ndarray,
        kind: np.ndarray,
        table: np.ndarray,
        sigma: np.ndarray,
        sigma_pre: np.ndarray,
    ) -> np.ndarray:
        """Go on to the histories behind those of a level's edges that some policy plays.

        Args:
          own: bool[e], edges of the mixed player.
          source: int64[e], which history they leave.
          kind: int64[e], which distinct edges they are.
          table: float64[distinct, K].
          sigma: float64[e], into which what the mixed player plays is written.
          sigma_pre: float64[e].

        Returns:
          int32[histories behind], `TreeMixture.edge_row`.
        """
        if own.any():
            self._play(np.flatnonzero(own), source, kind, table, sigma)
        used = (sigma_pre > 0.0) | (sigma > 0.0)
        rows = np.full(len(own), -1, np.int32)
        behind = self._at[source]
        if own.any():
            kept = own & used
            needed = np.zeros(len(table), bool)
            needed[kind[kept]] = True
            rows[kept] = (sum(map(len, self._sigma)) + np.cumsum(needed) - 1)[kind[kept]]
            self._sigma.append(table if needed.all() else table[needed])
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

    def _play(
        self, at: np.ndarray, source: np.ndarray, kind: np.ndarray, table: np.ndarray, sigma: np.ndarray
    ) -> None:
        """Write what is played at edges of the mixed player into `sigma`, and what follows into `_spare`."""
        if len(self._spare) < len(at):
            self._spare = np.empty((len(at), len(self.weights)))
        probability, histories = np.empty(len(at)), len(self._at)
        before = self._at[source[at]]
        _followed(self._posterior, before, kind[at], table, probability, self._spare)
        rare = probability < self._min_probability
        if rare.any():
            likeliest = np.zeros(histories)
            np.maximum.at(likeliest, source[at], probability)
            probability[rare & (probability < likeliest[source[at]])] = 0.0
        total = np.bincount(source[at], weights=probability, minlength=histories)
        sigma[at] = probability / total[source[at]]

    def posterior(self, histories: np.ndarray) -> np.ndarray:
        """Return float64[m, K] of some of the level's histories."""
        return np.asarray(self._posterior[self._at[histories]])

    def valued(
        self, posterior: np.ndarray, which: np.ndarray, table: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (what histories are worth, `TreeMixture.value_row`).

        Args:
          posterior: float64[m, K], theirs.
          which: int32[m], the row of `table` of each.
          table: float64[positions, K], the values of positions against each component.
        """
        rows = which + np.int32(sum(map(len, self._value)))
        self._value.append(table)
        return _mixed(posterior, which, table), rows

    def result(self, edge_row: np.ndarray, value_row: np.ndarray) -> TreeMixture:
        """Return the mixture that the tree keeps."""
        none = np.zeros((0, len(self.weights)))
        sigma, value = (np.concatenate([none, *tables]) for tables in (self._sigma, self._value))
        return TreeMixture(self.player, self.weights, edge_row, sigma, value_row, value)


@kernel
def _mixed(posterior: np.ndarray, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return float64[m]: sum_k posterior[h, k] table[rows[h], k].

    Args:
      posterior: float64[m, K].
      rows: int[m], index into `table`.
      table: float64[r, K].
    """
    means = np.zeros(len(rows))
    for h in range(len(rows)):
        for k in range(table.shape[1]):
            means[h] += posterior[h, k] * table[rows[h], k]
    return means


@kernel
def _followed(
    posterior: np.ndarray,
    source: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    probability: np.ndarray,
    into: np.ndarray,
) -> None:
    """Write how probable edges are into `probability`, and the posterior after each into `into`.

    Args:
      posterior: float64[m, K].
      source: int[e], index into `posterior`.
      rows: int[e], index into `table`.
      table: float64[r, K].
      probability: float64[e].
      into: float64[e, K]; zeros after an edge that no component plays.
    """
    count = table.shape[1]
    for e in range(len(source)):
        h, row = source[e], rows[e]
        for k in range(count):
            into[e, k] = posterior[h, k] * table[row, k]
        total = 0.0
        for k in range(count):
            total += into[e, k]
        probability[e] = total
        scale = 1.0 / total if total > 0.0 else 0.0
        for k in range(count):
            into[e, k] *= scale
