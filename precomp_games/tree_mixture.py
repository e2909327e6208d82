"""What a history tree knows of a mixed opponent: its components' probabilities and values, and the mixing.

With p_k(h) the posterior of component k (`precomp_games.mixtures`), the edges of the mixed player have
sum_k p_k(h) sigma_k(a | h), and where each component has values of its own, h is worth sum_k p_k(h) v_k(h).
sigma_k and v_k are functions of the position, so there is one row of them for each distinct edge and position
of the tree; p_k is a function of the history, and needs no row: it follows from the edges on the way.

Source: docs/model.md. Cost: 8 K bytes for each distinct edge of the mixed player, and as much for each
valued position where values differ; mixing is a pass over the edges with K multiplications each.
"""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["TreeMixture", "followed", "mixed"]


@dataclasses.dataclass(frozen=True, eq=False)
class TreeMixture:
    """The components of a tree's mixed opponent.

    Attributes:
      player: Who is the mixture.
      weights: float64[K], how often each component is drawn.
      edge_row: int32[n], the row of `sigma` of the edge that leads to h; -1 where another one moved.
      sigma: float64[rows, K], what each component plays at the distinct edges.
      value_row: int32[n], the row of `value` of h; -1 where all components have the tree's value, or none.
      value: float64[rows, K], what h is worth to player 0 against each.
    """

    player: int
    weights: npt.NDArray[np.float64]
    edge_row: npt.NDArray[np.int32]
    sigma: npt.NDArray[np.float64]
    value_row: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]

    @property
    def num_components(self) -> int:
        """K."""
        return len(self.weights)


@numba.njit(cache=True)
def mixed(
    posterior: np.ndarray, source: np.ndarray, rows: np.ndarray, table: np.ndarray, into: np.ndarray
) -> None:
    """Writes sum_k posterior[source, k] table[row, k] into `into` wherever a row is not -1.

    Args:
      posterior: float64[m, K].
      source: int[e], index into `posterior`.
      rows: int[e], index into `table`.
      table: float64[r, K].
      into: float64[e].
    """
    for e in range(len(source)):
        row = rows[e]
        if row >= 0:
            total = 0.0
            h = source[e]
            for k in range(table.shape[1]):
                total += posterior[h, k] * table[row, k]
            into[e] = total


@numba.njit(cache=True)
def followed(posterior: np.ndarray, source: np.ndarray, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """float64[e, K]: the posterior after edges, which is the one before them where a row is -1.

    Arguments as for `mixed`. Some component must play each edge.
    """
    found = np.empty((len(source), posterior.shape[1]))
    for e in range(len(source)):
        h, row = source[e], rows[e]
        if row < 0:
            for k in range(posterior.shape[1]):
                found[e, k] = posterior[h, k]
        else:
            total = 0.0
            for k in range(posterior.shape[1]):
                found[e, k] = posterior[h, k] * table[row, k]
                total += found[e, k]
            for k in range(posterior.shape[1]):
                found[e, k] /= total
    return found
