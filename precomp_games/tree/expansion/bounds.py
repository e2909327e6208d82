"""Which histories cannot matter any more, once stopping has been evaluated above them.

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
and spares it (`kept_positions`).

Cost: a numpy pass over the tree so far for each level, so quadratic in the number of levels (a second for
400 levels).
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from precomp_games.tree.expansion.columns import Level


@dataclasses.dataclass
class _Bounds:
    """One level.

    Attributes:
      parent, entry, played: See `Level`.
      stop: pi u, where evaluated.
      upper: U while unexpanded.
      decides: The player's turns where it may still memorize.
      weight: How many penalties that costs.
      price: What is charged for it in backing up.
      position: What shares a price, -1 for what is not to be ruled out; None: each history by itself.
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

    def __init__(self, penalty: float, utility_max: float) -> None:
        """Args are lambda and the most that the player can get, both in its own utility."""
        self._penalty = penalty
        self._utility_max = utility_max
        self._levels: list[_Bounds] = []
        self._ruled_out = np.zeros(0, bool)  # by position

    def add_level(
        self,
        level: Level,
        reach: npt.NDArray[np.float64],
        own_value: npt.NDArray[np.float64],
        decides: npt.NDArray[np.bool_],
        leaf: npt.NDArray[np.bool_],
        weight: npt.NDArray[np.float64],
        position: npt.NDArray[np.int32] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Adds the newest level and draws the consequences for the tree.

        Args:
          level: its histories.
          reach: float64[n], pi(h).
          own_value: float64[n], u(h) of the player; NaN where it was not evaluated.
          decides: bool[n], the player's turns where it may memorize.
          leaf: bool[n], where the tree ends.
          weight: float64[n], how many penalties it costs to memorize.
          position: int[n], numbers in the whole tree of what shares a price, -1 for what is not to be ruled
            out; None: each history by itself.

        Returns:
          (decides, gone): where it may still pay to memorize, and which histories of the level do not
          matter any more.
        """
        most = reach * self._utility_max
        stop = np.where(leaf | decides, reach * own_value, np.nan)
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
        """(decides, gone) of the whole tree, level after level."""
        return (
            np.concatenate([level.decides for level in self._levels]),
            np.concatenate([level.gone for level in self._levels]),
        )

    def ruled_out(self, position: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which positions have been ruled out."""
        known = position < len(self._ruled_out)
        known[known] = self._ruled_out[position[known]]
        return known

    def _rule_out(self, surplus: list[tuple[_Bounds, np.ndarray]]) -> None:
        """Ends memorizing at positions by what it brings at most, float64[n] of each level."""
        position = np.concatenate([bounds.position for bounds, _ in surplus if bounds.position is not None])
        brings = np.concatenate([brings for _, brings in surplus])
        count = int(position.max(initial=0)) + 1
        total = np.bincount(position[position >= 0], brings[position >= 0], count)
        known = np.zeros(count, bool)
        known[position[(brings > 0.0) & (position >= 0)]] = True
        weight = np.zeros(count)
        weight[position[position >= 0]] = np.concatenate([bounds.weight for bounds, _ in surplus])[
            position >= 0
        ]
        ruled_out = known & (total <= self._penalty * weight)
        ruled_out[: len(self._ruled_out)] |= self._ruled_out
        self._ruled_out = ruled_out
        for bounds, _ in surplus:
            assert bounds.position is not None
            bounds.decides &= (bounds.position < 0) | ~ruled_out[bounds.position]

    def _back_up(self) -> None:
        """U of every level from the newest one; decides where memorizing is ruled out."""
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
        """Marks what lies below a turn of the player's where it stops."""
        for above, level in zip(self._levels, self._levels[1:], strict=False):
            ends = above.gone | (np.isfinite(above.stop) & ~above.decides)
            level.gone |= ends[level.parent]
