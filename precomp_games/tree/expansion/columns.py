"""The arrays of a tree in the making, of one level and of all, and what is taken out of them at the end.

By name, the arrays of the tree are those of `COLUMNS`, `infoset_player`, `weight` and `cut_menus`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games.tree.expansion.positions import Edges
from precomp_games.tree.facts import COLUMNS, OF_INFOSETS, TERMINAL

ALL_COLUMNS = COLUMNS | {"entry": np.int16, "edge_row": np.int32, "value_row": np.int32}
"""`COLUMNS` with those that there are only where there are menus, or a mixed opponent."""

_OF_INFOSETS = ("infoset_player", *OF_INFOSETS)  # the other arrays have a number for each history


@dataclasses.dataclass
class Level:
    """The histories of one level, an entry each.

    Attributes:
      parent: Index into the level above.
      entry: The entry of the parent's mover's menu that leads here.
      played: Whether sigma plays the edge that leads here.
      position: Index into the level's positions.
      chance: c. memorizing[i]: m_i. stopped[i]: b_i. previous[i], choice[i]: player i's last information
        state among the ancestors and what it did there, -1 where there is none; None for perfect information,
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

    def stop_memorizing(self, i: int, histories: np.ndarray) -> None:
        """Ends i's memorizing at histories that it still can have come to memorizing."""
        memorizing, stopped = self.memorizing[i], self.stopped[i]
        stopped[histories] = np.maximum(stopped[histories], memorizing[histories])
        memorizing[histories] = 0.0

    def leaves(self, player: np.ndarray) -> np.ndarray:
        """Where the game is over, or nobody can memorize any more."""
        nobody = (self.memorizing[0] <= 0.0) & (self.memorizing[1] <= 0.0)
        return np.asarray(nobody | (player == TERMINAL))

    def rival_reach(self, i: int) -> np.ndarray:
        """float64[n]: the best reach of player i's rival, over its memorizing still and having stopped."""
        return np.asarray(np.maximum(self.memorizing[1 - i], self.stopped[1 - i]))


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


def drop_histories(
    arrays: dict[str, np.ndarray], decides: npt.NDArray[np.bool_], gone: npt.NDArray[np.bool_]
) -> None:
    """Takes histories out of a perfect-information tree; those that decide no more become leaves.

    What menus lose by that is noted in `cut_menus`.
    """
    kept = ~gone
    # Where the mover goes on to decide, what is gone behind a memorized move is an entry that cannot pay.
    behind = 1 + np.flatnonzero(gone[1:] & (arrays["sigma_pre"][1:] > 0.0))
    lost = np.zeros(len(gone), bool)
    lost[arrays["parent"][behind]] = True
    arrays["cut_menus"][arrays["infoset"][lost & kept & decides]] = True
    index = np.cumsum(kept, dtype=np.int32) - 1
    for name in _OF_INFOSETS:
        arrays[name] = arrays[name][arrays["infoset"][kept & decides]]
    arrays["infoset"] = np.where(decides, np.cumsum(kept & decides) - 1, -1).astype(np.int32)
    for name, column in arrays.items():
        if name not in _OF_INFOSETS and len(column):
            arrays[name] = column[kept]
    parent = arrays["parent"]
    parent[1:] = index[parent[1:]]
    children = np.bincount(parent[1:], minlength=len(parent))
    arrays["num_children"] = children.astype(np.int32)
    first = np.where(children > 0, 1 + np.cumsum(children) - children, -1)
    arrays["first_child"] = first.astype(np.int32)


def settle_menus(arrays: dict[str, np.ndarray], keys: list[str] | None) -> list[str] | None:
    """Numbers the entries that are left from 0 on; where there are none, nothing can be memorized.

    Returns:
      `keys`, those of the information states that are left.
    """
    parent, infoset = arrays["parent"], arrays["infoset"]
    edges = 1 + np.flatnonzero((infoset[parent[1:]] >= 0) & (arrays["sigma_pre"][1:] > 0.0))
    most = int(arrays["entry"].max(initial=0)) + 1
    menus, place = np.unique(
        parent[edges].astype(np.int64) * most + arrays["entry"][edges], return_inverse=True
    )
    owner = menus // most
    arrays["entry"][:] = 0
    arrays["entry"][edges] = (np.arange(len(menus)) - np.searchsorted(owner, owner))[place]
    if not arrays["entry"].any():  # one entry each, which goes without saying
        arrays["entry"] = arrays["entry"][:0]
    has_entries = np.zeros(len(parent), bool)
    has_entries[owner] = True
    kept = np.zeros(len(arrays["infoset_player"]), bool)
    kept[infoset[has_entries]] = True
    if not kept.all():
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        arrays["infoset"] = np.where(infoset >= 0, number[infoset], np.int32(-1)) if len(number) else infoset
        for name in _OF_INFOSETS:
            arrays[name] = arrays[name][kept]
    return keys if keys is None else [key for key, stays in zip(keys, kept.tolist(), strict=True) if stays]
