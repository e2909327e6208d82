"""Groups histories into information states, and says which of them may be worth memorizing.

Where information is perfect every history is an information state of its own. Elsewhere OpenSpiel's
information state strings tell them apart, and the bound on what one is worth is taken over all its
histories of a level: min(bound of the player's previous information state, sum over histories). An
information state may have histories of different lengths. If one was cut for the reach of its short ones,
and is met again further down, `Reopened` says so, and the expansion starts over, never to cut it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError

__all__ = ["InformationStates", "Reopened"]


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
