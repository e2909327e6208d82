"""Groups histories into information states, and says which of them, or of positions, can be worth memorizing.

Where information is perfect every history is an information state of its own. Elsewhere OpenSpiel's
information state strings tell them apart, and the bound on what one is worth is taken over all its
histories of a level: min(bound of the player's previous information state, sum over histories). An
information state may have histories of different lengths. If one was cut for the reach of its short ones,
and is met again further down, `Reopened` says so, and the expansion starts over, never to cut it.

Where all histories of a position share one price, a memorization set can do without a position P, and without
all that follows its histories, if these bring at most lambda together: leaving them out saves the price of P.
What they bring is at most the sum of their reaches times R, over the histories that can still be memorized.
So a position is kept or cut as a whole, and a history of a position that is kept stays, however rare it is:
it costs nothing more. A key may come up on several levels. If a position was cut for what it brings on the
first ones and brings lambda with a later one, or is kept there, it is reopened like an information state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games.tree.expansion.bounds import StopBounds
from precomp_games.tree.expansion.positions import LevelPositions


class Reopened(Exception):
    """Information states, or positions, that were cut have further histories on a deeper level."""

    def __init__(self, *keys: Hashable) -> None:
        super().__init__(*keys)
        self.keys = keys


class InformationStates:
    """The information states of an imperfect-information tree in the making, in order of appearance.

    keys: their strings. players: whose they are. weights: how many penalties memorizing each costs.
    """

    def __init__(self, game_name: str, never_cut: set[Hashable]) -> None:
        self.keys: list[str] = []
        self.players: list[int] = []
        self.weights: list[float] = []
        self._game_name = game_name
        self._never_cut = never_cut
        self._cut: set[Hashable] = set()
        self._index: dict[Hashable, int] = {}
        self._bound: list[float] = []
        self._past: list[tuple[int, int]] = []

    def group(
        self,
        player: int,
        states: Sequence[Any],
        position: np.ndarray,
        bound: npt.NDArray[np.float64],
        past: tuple[np.ndarray, np.ndarray],
        weight: npt.NDArray[np.float64],
        threshold: float,
    ) -> np.ndarray:
        """Information states of one level's histories that are a player's turns.

        Args:
          player: whose turns.
          states: the level's positions.
          position: int[n], each history's index into `states`.
          bound: float64[n], the most that each history can be reached.
          past: two int[n], the player's previous information state and what it did there, -1 for none.
          weight: float64[n], how many penalties memorizing costs there.
          threshold: information states with a smaller bound are cut, times their weight.

        Returns:
          int32[n], -1 where it was cut.

        Raises:
          ValueError: the histories of one differ in the player's own past: no perfect recall; or in weight.
          Reopened: see the module docstring.
        """
        infoset = np.full(len(position), -1, np.int32)
        names: dict[int, str] = {}
        local: dict[str, int] = {}
        members = np.zeros(len(position), np.int64)
        for k, where in enumerate(position.tolist()):
            if where not in names:
                names[where] = states[where].information_state_string(player)
            members[k] = local.setdefault(names[where], len(local))
        sums = np.bincount(members, weights=bound, minlength=len(local))
        order = np.argsort(members, kind="stable")
        ends = np.cumsum(np.bincount(members, minlength=len(local)))
        for (name, group), histories in zip(local.items(), np.split(order, ends[:-1]), strict=bool(local)):
            own_past = {(int(past[0][h]), int(past[1][h])) for h in histories.tolist()}
            costs = set(weight[histories].tolist())
            infoset[histories] = self._find(player, name, own_past, float(sums[group]), costs, threshold)
        return infoset

    def _find(
        self,
        player: int,
        name: str,
        past: set[tuple[int, int]],
        bound: float,
        costs: set[float],
        threshold: float,
    ) -> int:
        """The index of an information state, new or known; -1 if it is cut."""
        key = (player, name)
        index = self._index.get(key)
        if index is not None:
            past = past | {self._past[index]}
        if len(past) > 1:
            raise ArgumentError(
                f"expected a game with perfect recall, got {self._game_name}, "
                f"where player {player} forgets its own past in information state {name!r}"
            )
        if len(costs if index is None else costs | {self.weights[index]}) > 1:
            raise ArgumentError(
                "expected weight to be the same at all histories of an information "
                f"state, got different ones in {name!r}"
            )
        if index is not None:
            return index
        if key in self._cut:
            raise Reopened(key)
        own = next(iter(past))
        if own[0] >= 0:
            bound = min(bound, self._bound[own[0]])
        weight = next(iter(costs))
        if bound < threshold * weight and key not in self._never_cut:
            self._cut.add(key)
            return -1
        self._index[key] = len(self.keys)
        self.keys.append(name)
        self.players.append(player)
        self.weights.append(weight)
        # Short histories say too little of an information state that was reopened for its long ones.
        self._bound.append(np.inf if key in self._never_cut else bound)
        self._past.append(own)
        return len(self.keys) - 1


class KeptPositions:
    """The positions of a tree in the making that may be memorized, and those that were cut.

    Those that evaluated stops rule out are noted by `StopBounds`, which relies on `shared`.
    """

    def __init__(self, never_cut: set[Hashable]) -> None:
        """Begins with the positions that must not be cut, from expansions before."""
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
