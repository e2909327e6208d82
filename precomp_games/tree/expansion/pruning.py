"""Pruning of a tree in the making: which information states, positions and histories can matter.

Where information is perfect every history is an information state of its own. Elsewhere OpenSpiel's
information state strings tell them apart, and the bound on what one is worth is taken over all its
histories of a level: min(bound of the player's previous information state, sum over histories). An
information state may have histories of different lengths. If one was cut for the reach of its short ones,
and is met again further down, `Reopened` reports it, and the expansion starts over, never to cut it.

Where all histories of a position share one price, a memorization set can do without a position P, and without
all that follows its histories, if these bring at most lambda together: leaving them out saves the price of P.
What they bring is at most the sum of their reaches times R, over the histories that can still be memorized.
So a position is kept or cut as a whole, and a history of a position that is kept stays, however rare it is:
it costs nothing more. A key may come up on several levels. If a position was cut for what it brings on the
first ones and brings lambda with a later one, or is kept there, it is reopened like an information state.

Where stopping is valued on the spot (`stop_value="evaluate"`), a tree that is expanded level by level knows,
for the player who prepares, what stopping at each of its histories is worth. Backing up the most that the
unexpanded rest could be worth,

    U(h) = pi(h) u(h)                                    at leaves,
    U(h) = max(pi(h) u(h), pi(h) u_max - lambda)         at an unexpanded turn of the player's,
    U(h) = pi(h) u_max                                   at other unexpanded histories,
    U(h) = max(pi(h) u(h), sum of U below - lambda)      at the player's turns, sum of U below elsewhere,

shows where memorizing cannot pay whatever the rest turns out to be: sum of U below - lambda <= pi(h) u(h).
Algorithm 1 stops there, so what lies below need not be searched. This is branch and bound with Algorithm 1's
own recursion; its answer is the same. On chess (Stockfish, lambda = 1e-3) it leaves 5 to 9 of every 100
searches that cutting by reach makes. Where there is a menu, the sum is taken over what follows an entry, and
the largest one counts. An entry that cannot pay is left out by itself, unless sigma plays its moves as well:
the tree then needs them for what stopping leads to.

An information state may cost several penalties, or none; what costs nothing stays whatever it is worth, since
a book may have to contain it.

Where all histories of a position share one price, any of them may be free. So nothing is charged in backing
up, and a position is ruled out as a whole, where the sum over its histories of what U brings beyond stopping
is at most lambda. If it is met again on a deeper level, more is to be summed up: the expansion starts over,
and spares it (`KeptPositions`).

Cost: a numpy pass over the tree so far for each level, so quadratic in the number of levels (a second for
400 levels).
"""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Hashable
from typing import Any, NoReturn

import numpy as np

from precomp_games._support.checks import ArgumentError
from precomp_games._support.memory import in_blocks
from precomp_games.tree.expansion.positions import LevelPositions
from precomp_games.tree.facts import TERMINAL


@dataclasses.dataclass
class Level:
    """The histories of one level, an entry each.

    Attributes:
      parent: Index into the level above.
      entry: The entry of the parent's mover's menu that leads here.
      played: Whether sigma plays the edge that leads here.
      chance: c. memorizing[i]: m_i. stopped[i]: b_i. before[i]: m_i as the level began.
      past: By player, its last information state among the ancestors and what it did there, -1 where there is
        none; None for perfect information, which does not need them.
      position: Index into the level's positions.
      player: The mover.
      weight: The penalties that memorizing costs the mover.
      infoset: The mover's information state where it may memorize, -1 elsewhere.
      value: See `HistoryTree`.
    """

    parent: np.ndarray
    entry: np.ndarray
    played: np.ndarray
    chance: np.ndarray
    memorizing: list[np.ndarray]
    stopped: list[np.ndarray]
    past: list[tuple[np.ndarray, np.ndarray]] | None
    position: np.ndarray = dataclasses.field(init=False)
    player: np.ndarray = dataclasses.field(init=False)
    before: list[np.ndarray] = dataclasses.field(init=False)
    weight: np.ndarray = dataclasses.field(init=False)
    infoset: np.ndarray = dataclasses.field(init=False)
    value: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.before = list(self.memorizing)

    def may_memorize(self, i: int) -> np.ndarray:
        """Return bool[n]: i's turns where it is memorizing still."""
        return np.asarray((self.player == i) & (self.memorizing[i] > 0.0))

    def stop_memorizing(self, i: int, histories: np.ndarray) -> None:
        """End i's memorizing at histories that it still can have come to memorizing."""
        stopped = self.stopped[i]
        stopped[histories] = np.maximum(stopped[histories], self.memorizing[i][histories])
        self.forget(i, histories)

    def forget(self, i: int, histories: np.ndarray) -> None:
        """End i's memorizing at histories; `before` stays as it was."""
        if len(histories):
            if self.memorizing[i] is self.before[i]:
                self.memorizing[i] = self.before[i].copy()
            self.memorizing[i][histories] = 0.0

    def leaves(self) -> np.ndarray:
        """Return where the game is over, or nobody can memorize any more."""
        nobody = (self.memorizing[0] <= 0.0) & (self.memorizing[1] <= 0.0)
        return np.asarray(nobody | (self.player == TERMINAL))

    def reach(self, i: int, memorizing: np.ndarray, histories: Any = slice(None)) -> np.ndarray:
        """Return the greatest reach of histories where i has `memorizing`; its rival may have stopped."""
        rival = np.maximum(self.memorizing[1 - i][histories], self.stopped[1 - i][histories])
        return np.asarray(self.chance[histories] * memorizing[histories] * rival)


class Reopened(Exception):
    """Information states, or positions, that were cut have further histories on a deeper level."""

    def __init__(self, *keys: Hashable) -> None:
        super().__init__(*keys)
        self.keys = keys


class InformationStates:
    """The information states of an imperfect-information tree in the making, in order of appearance.

    keys: their strings. players: whose they are. weights: how many penalties memorizing each costs.
    """

    def __init__(self, game_name: str, positions: LevelPositions, never_cut: set[Hashable]) -> None:
        self.keys: list[str] = []
        self.players, self.weights = array.array("b"), array.array("d")
        self._game_name, self._positions = game_name, positions
        self._never_cut = never_cut
        self._cut: set[Hashable] = set()
        self._index: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._bound = array.array("d")
        self._past = array.array("i"), array.array("q")  # the information state before each, the action there

    def group(
        self, player: int, level: Level, own: np.ndarray, bound: np.ndarray, threshold: float
    ) -> np.ndarray:
        """Return the information states of one level's histories that are a player's turns.

        Args:
          player: whose turns.
          level: its histories.
          own: int64[n], which of them are the player's turns.
          bound: float64[n], the most that each of these can be reached.
          threshold: information states with a smaller bound are cut, times their weight.

        Returns:
          int32[n], -1 where it was cut.

        Raises:
          ValueError: the histories of one differ in the player's own past: no perfect recall; or in weight.
          Reopened: see the module docstring.
        """
        assert level.past is not None
        local: dict[str, int] = {}
        asked = self._positions.infoset_strings(k for (k,) in in_blocks(level.position[own]))
        watched = self._positions.memory.watched("information states", asked, len(own))
        numbers = (local.setdefault(name, len(local)) for name in watched)
        members = np.fromiter(numbers, np.int32, len(own))
        names, first = list(local), np.unique(members, return_index=True)[1]
        columns = []
        for column, reject in zip(
            (*level.past[player], level.weight), (self._forgets, self._forgets, self._differ), strict=True
        ):
            here = column[own]
            columns.append(here[first])
            for wrong in np.flatnonzero(here != columns[-1][members])[:1].tolist():
                reject(player, names[members[wrong]])
        sums = np.bincount(members, weights=bound, minlength=len(names))
        each = zip(names, sums.tolist(), *(column.tolist() for column in columns), strict=True)
        found = [self._find(player, name, most, threshold, *past) for name, most, *past in each]
        return np.array(found, np.int32)[members]

    def _forgets(self, player: int, name: str) -> NoReturn:
        where = f"where player {player} forgets its own past in information state {name!r}"
        raise ArgumentError(f"expected a game with perfect recall, got {self._game_name}, {where}")

    def _differ(self, player: int, name: str) -> NoReturn:
        same = "the same at all histories of an information state"
        raise ArgumentError(f"expected weight to be {same}, got different ones in {name!r}")

    def _find(
        self,
        player: int,
        name: str,
        bound: float,
        threshold: float,
        previous: int,
        choice: int,
        weight: float,
    ) -> int:
        """Return the index of an information state, new or known; -1 if it is cut.

        `previous` and `choice` are the player's past at its histories, see `Level`.
        """
        index = self._index[player].get(name)
        if index is not None:
            if (self._past[0][index], self._past[1][index]) != (previous, choice):
                self._forgets(player, name)
            if self.weights[index] != weight:
                self._differ(player, name)
            return index
        key = (player, name)
        if key in self._cut:
            raise Reopened(key)
        if previous >= 0:
            bound = min(bound, self._bound[previous])
        if bound < threshold * weight and key not in self._never_cut:
            self._cut.add(key)
            return -1
        self._index[player][name] = index = len(self.keys)
        self.keys.append(name)
        self.players.append(player)
        self.weights.append(weight)
        # Short histories show too little of an information state that was reopened for its long ones.
        self._bound.append(np.inf if key in self._never_cut else bound)
        for column, past in zip(self._past, (previous, choice), strict=True):
            column.append(past)
        return index


@dataclasses.dataclass
class _Bounds:
    """One level.

    Attributes:
      parent, entry, played: See `Level`.
      stop: pi u, where evaluated.
      upper: U while unexpanded.
      decides: The player's turns where it may still memorize.
      weight: The number of penalties that this costs.
      price: The price charged for it in backing up.
      position: The group that shares a price, -1 if it must not be ruled out; None: each history by itself.
      gone: Below a turn where it stops, or an entry that cannot pay.
    """

    parent: np.ndarray
    entry: np.ndarray
    played: np.ndarray
    stop: np.ndarray
    upper: np.ndarray
    decides: np.ndarray
    weight: np.ndarray
    price: np.ndarray
    gone: np.ndarray
    position: np.ndarray | None


class StopBounds:
    """The bounds of a tree in the making, for one preparing player against a fixed opponent."""

    def __init__(self, player: int, penalty: float, utility_max: float) -> None:
        """Set up the bounds; args are the player, lambda and its greatest utility, both in its own units."""
        self._player, self._penalty, self._utility_max = player, penalty, utility_max
        self._levels: list[_Bounds] = []
        self._ruled_out = np.zeros(0, bool)  # by position

    def add_level(
        self,
        level: Level,
        value: np.ndarray,
        decides: np.ndarray,
        leaf: np.ndarray,
        position: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add the newest level and draws the consequences for the tree.

        Args:
          level: its histories.
          value: float64[n], u(h) of the player; NaN where it was not evaluated.
          decides: bool[n], the player's turns where it may memorize.
          leaf: bool[n], where the tree ends.
          position: int[n], numbers in the whole tree of what shares a price, -1 for what is not to be ruled
            out; None: each history by itself.

        Returns:
          (decides, gone): where it may still pay to memorize, and which histories of the level do not
          matter any more.
        """
        reach, weight = level.reach(self._player, level.before[self._player]), level.weight
        most = reach * self._utility_max
        stop = np.where(leaf | decides, reach * value, np.nan)
        upper = np.where(leaf, stop, most)
        price = self._penalty * weight if position is None else np.zeros(len(weight))
        upper[decides] = np.maximum(stop[decides], (most - price)[decides])
        decides = decides & ((most - price > stop) | (weight == 0.0))
        gone = np.zeros(len(weight), bool)
        edges = level.parent, level.entry, level.played
        self._levels.append(_Bounds(*edges, stop, upper, decides, weight, price, gone, position))
        self._back_up()
        self._pass_down()
        return decides, gone

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (decides, gone) of the whole tree, level after level."""
        decides, gone = zip(*((level.decides, level.gone) for level in self._levels), strict=True)
        return np.concatenate(decides), np.concatenate(gone)

    def ruled_out(self, position: np.ndarray) -> np.ndarray:
        """Return which positions have been ruled out."""
        known = position < len(self._ruled_out)
        known[known] = self._ruled_out[position[known]]
        return known

    def _rule_out(self, surplus: list[tuple[_Bounds, np.ndarray]]) -> None:
        """End memorizing at positions by what it brings at most, float64[n] of each level."""
        position = np.concatenate([bounds.position for bounds, _ in surplus if bounds.position is not None])
        brings = np.concatenate([brings for _, brings in surplus])
        weights = np.concatenate([bounds.weight for bounds, _ in surplus])
        shared = position >= 0
        position, brings, weights = position[shared], brings[shared], weights[shared]
        count = int(position.max(initial=0)) + 1
        total = np.bincount(position, brings, count)
        known, weight = np.zeros(count, bool), np.zeros(count)
        known[position[brings > 0.0]] = True
        weight[position] = weights
        ruled_out = known & (total <= self._penalty * weight)
        ruled_out[: len(self._ruled_out)] |= self._ruled_out
        self._ruled_out = ruled_out
        for bounds, _ in surplus:
            assert bounds.position is not None
            bounds.decides &= (bounds.position < 0) | ~ruled_out[bounds.position]

    def _back_up(self) -> None:
        """Back up U from the newest level and decide where memorizing is ruled out."""
        newest = self._levels[-1]
        upper = newest.upper
        surplus = [(newest, np.where(newest.decides, upper - newest.stop, 0.0))]
        for k in range(len(self._levels) - 1, 0, -1):
            level, above = self._levels[k], self._levels[k - 1]
            live = ~level.gone
            entries = int(level.entry.max(initial=0)) + 1
            group, shape = level.parent * entries + level.entry, (len(above.parent), entries)
            sums = np.bincount(group[live], weights=upper[live], minlength=shape[0] * entries).reshape(shape)
            # Levels above the newest are expanded, but for their leaves and what has been ruled out.
            expanded = np.zeros(len(above.parent), bool)
            expanded[level.parent[live]] = True
            below = sums[:, 0]
            if entries > 1:
                edges = np.bincount(group[live], minlength=sums.size).reshape(shape)
                sums[edges == 0] = -np.inf
                below = sums.max(axis=1)
                needed = np.bincount(group[level.played], minlength=sums.size).reshape(shape) > 0
                decides = (above.decides & (above.weight > 0.0))[:, None]
                too_little = decides & (sums - above.price[:, None] <= above.stop[:, None])
                level.gone |= (too_little & ~needed).ravel()[group]
            upper = above.upper.copy()
            upper[expanded] = below[expanded]
            memorized = below - above.price
            above.decides &= ~(expanded & (memorized <= above.stop) & (above.weight > 0.0))
            best = np.maximum(above.stop, memorized)
            upper = np.where(above.decides & expanded, best, upper)
            stopped = ~above.decides & np.isfinite(above.stop)
            upper[stopped] = above.stop[stopped]
            surplus.append((above, np.where(above.decides & ~above.gone, upper - above.stop, 0.0)))
        if newest.position is not None:
            self._rule_out(surplus)

    def _pass_down(self) -> None:
        """Mark what lies below a turn of the player's where it stops."""
        for above, level in zip(self._levels, self._levels[1:], strict=False):
            ends = above.gone | (np.isfinite(above.stop) & ~above.decides)
            level.gone |= ends[level.parent]


class KeptPositions:
    """The positions of a tree in the making that may be memorized, and those that were cut.

    Those that evaluated stops rule out are noted by `StopBounds`, which relies on `shared`.
    """

    def __init__(self, positions: LevelPositions, never_cut: set[Hashable]) -> None:
        """Begin with positions, of the level in the making, and those that must not be cut."""
        self._positions = positions
        self._kept = set(never_cut)
        self._never_cut = never_cut
        self._cut: dict[Hashable, float] = {}  # what they could bring so far

    def keep(self, position: np.ndarray, bound: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        """Return which histories of one level are kept.

        Args:
          position: int[n], each history's among those of the level.
          bound: float64[n], the most that each history can bring.
          threshold: float64[n], the same at all histories of a position, which is cut if it can bring less.

        Returns:
          bool[n].

        Raises:
          Reopened: see the module docstring.
        """
        keys = self._positions.keys
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
        return np.asarray(stays[position])

    def shared(self, position: np.ndarray, own: np.ndarray, bounds: StopBounds) -> np.ndarray:
        """Return each history's position in the whole tree, -1 where it must not be ruled out.

        Args:
          position: int[n], each history's among those of the level.
          own: bool[n], where the player may memorize.
          bounds: the player's.

        Raises:
          Reopened: a position that was ruled out is met again.
        """
        ids, keys = self._positions.ids(), self._positions.keys
        assert ids is not None
        again = np.unique(position[own & bounds.ruled_out(ids[position])])
        if len(again):
            raise Reopened(*(keys[k] for k in again.tolist()))
        spared = np.array([key in self._never_cut for key in keys], bool)
        return np.asarray(np.where(spared, np.int32(-1), ids)[position])
