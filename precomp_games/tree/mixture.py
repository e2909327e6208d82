"""What a history tree knows of a mixed opponent: its components' probabilities and values, and the mixing.

With p_k(h) the posterior of component k (`precomp_games.policies.mixtures`), the mixed player's edges have
sum_k p_k(h) sigma_k(a | h), and where each component has values of its own, h is worth sum_k p_k(h) v_k(h).
sigma_k and v_k are functions of the position, so there is one row of them for each distinct edge and position
of the tree; p_k is a function of the history, and needs no row: it follows from the edges on the way.

Source: docs/mixtures.md. Cost: 8 K bytes for each distinct edge of the mixed player, and as much for each
valued position where values differ; mixing is a pass over the edges with K multiplications each.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

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


@kernel
def mixed(posterior: np.ndarray, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """float64[m]: sum_k posterior[h, k] table[rows[h], k].

    Args:
      posterior: float64[m, K].
      rows: int[m], index into `table`.
      table: float64[r, K].
    """
    found = np.zeros(len(rows))
    for h in range(len(rows)):
        for k in range(table.shape[1]):
            found[h] += posterior[h, k] * table[rows[h], k]
    return found


@kernel
def followed(
    posterior: np.ndarray,
    source: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    odds: np.ndarray,
    into: np.ndarray,
) -> None:
    """Writes how probable edges are into `odds`, and the posterior after each into `into`.

    Args:
      posterior: float64[m, K].
      source: int[e], index into `posterior`.
      rows: int[e], index into `table`.
      table: float64[r, K].
      odds: float64[e].
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
        odds[e] = total
        scale = 1.0 / total if total > 0.0 else 0.0
        for k in range(count):
            into[e, k] *= scale
