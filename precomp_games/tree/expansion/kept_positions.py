"""Which positions may be worth memorizing where all histories of a position share one price.

A memorization set can do without a position P, and without all that follows its histories, if these bring at
most lambda together: leaving them out saves the price of P. What they bring is at most the sum of their
reaches times R, over the histories that can still be memorized. So a position is kept or cut as a whole,
and a history of a position that is kept stays, however rare it is: it costs nothing more.

A key may come up on several levels. If a position was cut for what it brings on the first ones and brings
lambda with a later one, or is kept there, `Reopened` says so, and the expansion starts over, never to cut it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from precomp_games.tree.expansion.bounds import StopBounds
from precomp_games.tree.expansion.information_states import Reopened
from precomp_games.tree.expansion.positions import LevelPositions

__all__ = ["KeptPositions"]


class KeptPositions:
    """The positions of a tree in the making that may be memorized, and those that were cut.

    Those that evaluated stops rule out are noted by `StopBounds`, which relies on `shared`.
    """

    def __init__(self, never_cut: set[Hashable]) -> None:
        """Begins with what an expansion before has found; see the class."""
        self._kept = set(never_cut)
        self._never_cut = never_cut
        self._cut: dict[Hashable, float] = {}  # what they could bring so far

    def keep(
        self,
        keys: Sequence[Hashable],
        position: npt.NDArray[np.int32],
        bound: npt.NDArray[np.float64],
        threshold: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.bool_]:
        """Which histories of one level are kept.

        Args:
          keys: of the level's positions.
          position: int[n], each history's index into `keys`.
          bound: float64[n], the most that each history can bring.
          threshold: float64[n], the same at all histories of a position, which is cut if it can bring less.

        Returns:
          bool[n].

        Raises:
          Reopened: see the module docstring.
        """
        total = np.bincount(position, weights=bound, minlength=len(keys))
        least = np.zeros(len(keys))
        least[position] = threshold
        stays, reopened = np.zeros(len(keys), bool), set()
        for k in np.unique(position).tolist():
            key = keys[k]
            brings = float(total[k]) + self._cut.get(key, 0.0)
            if key in self._kept or brings >= least[k]:
                if key in self._cut:
                    reopened.add(key)
                self._kept.add(key)
                stays[k] = True
            else:
                self._cut[key] = brings
        if reopened:
            raise Reopened(*reopened)
        return stays[position]

    def shared(
        self,
        positions: LevelPositions,
        position: npt.NDArray[np.int32],
        own: npt.NDArray[np.bool_],
        bounds: StopBounds,
    ) -> npt.NDArray[np.int32]:
        """Each history's position in the whole tree, -1 where it must not be ruled out.

        Args:
          positions: of the level.
          position: int[n], each history's index among them.
          own: bool[n], where the player may memorize.
          bounds: the player's.

        Raises:
          Reopened: a position that was ruled out is met again.
        """
        ids = positions.ids()
        assert ids is not None
        again = np.unique(position[own & bounds.ruled_out(ids[position])])
        if len(again):
            raise Reopened(*(positions.keys[k] for k in again.tolist()))
        spared = np.array([key in self._never_cut for key in positions.keys], bool)
        return np.where(spared, np.int32(-1), ids)[position]
