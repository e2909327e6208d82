"""One level of a tree that is being expanded, as columns: its histories, and the edges out of it."""

from __future__ import annotations

import dataclasses

import numpy as np

from precomp_games.tree.expansion.positions import Edges
from precomp_games.tree.facts import TERMINAL

__all__ = ["Level", "LevelEdges", "leaves", "stop_memorizing"]


@dataclasses.dataclass
class Level:
    """The histories of one level, an entry each.

    Attributes:
      parent: Index into the level above.
      entry: The entry of the parent's mover's menu that leads here.
      played: Whether sigma plays the edge that leads here.
      position: Index into the level's positions.
      chance: c. memorizing[i]: m_i. stopped[i]: b_i. previous[i], choice[i]: player i's last information
        state on the way here and what it did there, -1 where there is none; None for perfect information,
        which does not need them.
    """

    parent: np.ndarray
    entry: np.ndarray
    played: np.ndarray
    position: np.ndarray
    chance: np.ndarray
    memorizing: tuple[np.ndarray, np.ndarray]
    stopped: tuple[np.ndarray, np.ndarray]
    previous: tuple[np.ndarray, np.ndarray] | None
    choice: tuple[np.ndarray, np.ndarray] | None


@dataclasses.dataclass
class LevelEdges:
    """The tree's edges out of one level, in the order of the next level's histories.

    Attributes:
      source: The history that an edge leaves, index into the level.
      kind: Its entry in `distinct`.
      sigma_pre, sigma: 0 where the mover cannot, or need not, play that policy there.
      row: `TreeMixture.edge_row`; None without a mixed opponent.
    """

    source: np.ndarray
    kind: np.ndarray
    distinct: Edges
    sigma_pre: np.ndarray
    sigma: np.ndarray
    row: np.ndarray | None


def stop_memorizing(level: Level, i: int, histories: np.ndarray) -> None:
    """Ends i's memorizing at histories that it still can have come to memorizing."""
    level.stopped[i][histories] = np.maximum(level.stopped[i][histories], level.memorizing[i][histories])
    level.memorizing[i][histories] = 0.0


def leaves(level: Level, player: np.ndarray) -> np.ndarray:
    """Where the game is over, or nobody can memorize any more."""
    nobody = (level.memorizing[0] <= 0.0) & (level.memorizing[1] <= 0.0)
    return np.asarray(nobody | (player == TERMINAL))
