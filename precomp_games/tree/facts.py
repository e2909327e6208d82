"""Facts of a history tree that every solver asks for: levels, what comes before, reaches.

They follow from the arrays alone, are computed when they are first asked for, and are then kept.

Cost: a few numpy passes over the levels; 8 bytes per history for a reach, 4 for an edge.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.game_facts import CHANCE as CHANCE
from precomp_games._support.game_facts import TERMINAL as TERMINAL
from precomp_games._support.kernels import kernel
from precomp_games.policies.rows import PolicyLike
from precomp_games.tree.mixture import TreeMixture

NEVER = "never"
"""The `stop_value` of a tree in which nobody can stop: of a base game alone, see `HistoryTree.of_game`."""

FORMAT = "precomp-games history tree 1"
"""The first text of files of trees, and of the data that digests cover."""

COLUMNS = {
    "parent": np.int32,
    "first_child": np.int32,
    "num_children": np.int32,
    "player": np.int8,
    "action": np.int32,
    "infoset": np.int32,
    "sigma": np.float64,
    "sigma_pre": np.float64,
    "value": np.float64,
    "position": np.int32,
}
"""The arrays that have a number for each history of every tree, and their types; see `HistoryTree`."""

ARRAYS = COLUMNS | {"infoset_player": np.int8}
"""All arrays that every tree has, and their types."""

OPTIONAL = {"entry": np.int16, "weight": np.float64, "cut_menus": np.bool_, "value_1": np.float64}
"""Arrays that a tree may have, and their types."""

GOES_WITHOUT_SAYING = {"entry": 0, "weight": 1.0, "cut_menus": False}
"""Defaults of most of these: an array is empty if all of its numbers are its default."""

_ALIKE = 1e-6  # of R: less than this between the values of a tree's leaves is no scale


class _Entries:
    """Facts that follow from where each information state's entries begin, of any `AnyForest`."""

    @property
    def num_infosets(self: Any) -> int:
        """m, the information states that may be memorized, of both players."""
        return len(self.infoset_player)

    @property
    def num_entries(self: Any) -> int:
        """E, the entries of all menus."""
        return int(self.first_entry[-1])

    @functools.cached_property
    def entry_infoset(self: Any) -> npt.NDArray[np.int32]:
        """int32[E]: whose entry each is."""
        first: npt.NDArray[np.int32] = self.first_entry
        if not self.has_menus:
            return first[:-1]
        return np.repeat(np.arange(self.num_infosets, dtype=np.int32), np.diff(first))

    @functools.cached_property
    def entry_player(self: Any) -> npt.NDArray[np.int8]:
        """int8[E]: who may choose each."""
        player: npt.NDArray[np.int8] = self.infoset_player
        return player[self.entry_infoset] if self.has_menus else player

    @functools.cached_property
    def infoset_penalty(self: Any) -> npt.NDArray[np.float64]:
        """float64[m]: what memorizing each information state costs its owner, in utility.

        Its weight times the owner's penalty. Where that is infinite this is too, whatever the weight is.
        """
        return weighted(np.array(self.penalties)[self.infoset_player], self.infoset_weight)


@dataclasses.dataclass(frozen=True, eq=False)
class Forest(_Entries):
    """A player's information states and entries without histories: where its treeplex branches.

    Attributes:
      first_entry: int32[m + 1], see `HistoryTree`.
      previous: int32[m], see there.
      penalties: (lambda_0, lambda_1).
      infoset_player: int8[m], whose each is, -1 for nobody's.
      infoset_weight: float64[m], see `HistoryTree`.
      may_stop: See `TreeFacts`.
    """

    first_entry: npt.NDArray[np.int32]
    previous: npt.NDArray[np.int32]
    penalties: tuple[float, float]
    infoset_player: npt.NDArray[np.int8]
    infoset_weight: npt.NDArray[np.float64]
    may_stop: bool = True

    @classmethod
    def of_player_0(
        cls, first_entry: npt.NDArray[np.int32], previous: npt.NDArray[np.int32], penalty: float
    ) -> Forest:
        """Make a forest whose information states all are player 0's, at one penalty."""
        m = len(previous)
        return cls(first_entry, previous, (penalty, math.inf), np.zeros(m, np.int8), np.ones(m))

    @property
    def has_menus(self) -> bool:
        """Return whether some information state has several entries."""
        return self.num_entries > self.num_infosets


class TreeArrays(NamedTuple):
    """Arrays of a `HistoryTree` that kernels take, described there; `mover` is its `player`."""

    parent: np.ndarray
    num_children: np.ndarray
    mover: np.ndarray
    infoset: np.ndarray
    sigma: np.ndarray
    sigma_pre: np.ndarray
    value: np.ndarray
    entry: np.ndarray
    first_entry: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class TreeFacts(_Entries):
    """The arrays of a `HistoryTree`, which is where they are described, and what follows from them."""

    game_string: str
    penalties: tuple[float, float]
    utility_range: float
    utility_sum: float
    stop_value: str
    parent: np.ndarray
    first_child: np.ndarray
    num_children: np.ndarray
    player: np.ndarray
    action: np.ndarray
    infoset: np.ndarray
    sigma: np.ndarray
    sigma_pre: np.ndarray
    value: np.ndarray
    position: np.ndarray
    infoset_player: np.ndarray
    infoset_keys: tuple[str, ...] | None
    work: dict[str, int]
    policies: tuple[PolicyLike | None, PolicyLike | None] = (None, None)
    base_game: pyspiel.Game | None = None
    entry: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int16))
    mixture: TreeMixture | None = None
    cut_for: str = "infosets"
    weight: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    cut_menus: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))
    value_1: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    value_of: int | None = None

    @functools.cached_property
    def fingerprint(self) -> str:
        """A digest of all but penalties, weights, `work` and `policies`. It shows damage, and is no seal."""
        hashed = hashlib.sha256(json.dumps(self.header(), sort_keys=True).encode())
        for name, kind in (ARRAYS | {"entry": np.int16, "value_1": np.float64}).items():
            hashed.update(np.ascontiguousarray(getattr(self, name), kind).tobytes())
        return hashed.hexdigest()

    def header(self) -> dict[str, Any]:
        """Return the fields that identify a tree besides its arrays."""
        return ({} if self.value_of is None else {"value_of": self.value_of}) | {
            "format": FORMAT,
            "game": self.game_string,
            "utility_range": self.utility_range,
            "utility_sum": self.utility_sum,
            "stop_value": self.stop_value,
            "infoset_keys": self.infoset_keys,
        }

    @property
    def may_stop(self) -> bool:
        """Return whether players may stop; in the tree of a game alone they choose an entry everywhere."""
        return self.stop_value != NEVER

    @property
    def of_constant_sum(self) -> bool:
        """Return whether one player's utility determines the other's."""
        return self.value_of is None and not len(self.value_1)

    @property
    def num_histories(self) -> int:
        """n, with leaves and chance nodes."""
        return len(self.parent)

    @property
    def num_positions(self) -> int:
        """Distinct positions where a `position_key` was given; histories where not."""
        return len(np.unique(self.position)) if len(self.position) else self.num_histories

    @functools.cached_property
    def scale(self) -> float:
        """Unit in which solvers measure utilities and penalties: how far apart the leaves' values lie.

        Where the values differ by rounding alone it is a millionth of R, and where all payoffs of the game
        are equal, the greatest penalty. Solvers' tolerances are shares of it, never amounts of utility.
        """
        values = self.value[self.num_children == 0]
        apart = max(float(values.max() - values.min()), _ALIKE * self.utility_range)
        return apart or max((p for p in self.penalties if math.isfinite(p)), default=0.0) or 1.0

    @functools.cached_property
    def arrays(self) -> TreeArrays:
        """The tree as kernels take it."""
        return TreeArrays(
            self.parent, self.num_children, self.player, self.infoset, self.sigma, self.sigma_pre, self.value,
            self.entry, self.first_entry,
        )  # fmt: skip

    @property
    def infoset_history(self) -> npt.NDArray[np.int32]:
        """int32[m]: the first history of each information state, in the tree's order."""
        return self._ancestry[2]

    @functools.cached_property
    def infoset_weight(self) -> npt.NDArray[np.float64]:
        """float64[m]: the penalties that memorizing each information state costs, 1 by default."""
        return self.weight if len(self.weight) else np.ones(self.num_infosets)

    @functools.cached_property
    def levels(self) -> tuple[slice, ...]:
        """The histories of each length, those of length 0 first."""
        bounds = [0, 1]
        while bounds[-1] < self.num_histories:
            bounds.append(bounds[-1] + int(self.num_children[bounds[-2] : bounds[-1]].sum()))
        return tuple(slice(start, stop) for start, stop in itertools.pairwise(bounds))

    @property
    def has_menus(self) -> bool:
        """Return whether some information state has several entries; else entries are information states."""
        return len(self.entry) > 0

    @functools.cached_property
    def first_entry(self) -> npt.NDArray[np.int32]:
        """int32[m + 1]: the entries of information state I are first_entry[I]:first_entry[I + 1]."""
        if not self.has_menus:
            return np.arange(self.num_infosets + 1, dtype=np.int32)
        counts = np.ones(self.num_infosets, np.int64)
        edges = np.flatnonzero(self.entry > 0)
        np.maximum.at(counts, self.infoset[self.parent[edges]], 1 + self.entry[edges].astype(np.int64))
        return np.append(0, np.cumsum(counts)).astype(np.int32)

    @functools.cached_property
    def edge_entry(self) -> npt.NDArray[np.int32]:
        """int32[n]: the entry at stake on the edge that leads to h, -1 where nothing can be memorized.

        It plays the edge with the probability `sigma_pre`, which may be 0.
        """
        infoset = np.append(np.int32(-1), self.infoset[self.parent[1:]])
        if not self.has_menus:
            return infoset
        return np.where(infoset >= 0, self.first_entry[infoset] + self.entry, np.int32(-1))

    @property
    def own_edges(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Each player's last memorizable turn among the ancestors of h, as the history that it leads to.

        int32[n] each, h itself included; 0 where there was no such turn.
        """
        return self._ancestry[0], self._ancestry[1]

    @property
    def previous(self) -> npt.NDArray[np.int32]:
        """int32[m]: the owner's entry before each, one of an earlier information state; -1: there is none."""
        return self._ancestry[3]

    @functools.cached_property
    def _ancestry(self) -> tuple[npt.NDArray[np.int32], ...]:
        """(own_edges of players 0 and 1, infoset_history, previous), all from one pass down the tree."""
        first, second = np.zeros((2, self.num_histories), np.int32)
        history, previous = np.zeros(self.num_infosets, np.int32), np.full(self.num_infosets, -1, np.int32)
        _look(self.arrays, first, second, history, previous)
        return first, second, history, previous

    @functools.cached_property
    def chance_reach(self) -> npt.NDArray[np.float64]:
        """float64[n]: the product of chance's probabilities at the ancestors of h."""
        return edge_product(self, np.where(self.player[self.parent] == CHANCE, self.sigma, 1.0))

    @functools.cached_property
    def own_reaches(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """float64[n] for each player: the product of its sigma_pre at the ancestors of h.

        0 below a turn that the tree does not let it memorize: it has stopped for good by then.
        """
        mover, memorizable = self.player[self.parent], self.infoset[self.parent] >= 0
        pre = np.where(memorizable, self.sigma_pre, 0.0)
        first, second = (edge_product(self, np.where(mover == i, pre, 1.0)) for i in (0, 1))
        return first, second


AnyForest = Forest | TreeFacts
"""Trees that recursions over information states and entries use."""


def weighted(
    penalty: float | npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return penalties times weights; an infinite penalty stays infinite where its weight is 0."""
    return np.where(np.isinf(penalty), np.inf, np.where(np.isinf(penalty), 0.0, penalty) * weight)


def edge_product(tree: TreeFacts, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return float64[n]: the product of `edges`, a number for the edge to each history, on the path to h."""
    product = np.ones(tree.num_histories)
    for level in tree.levels[1:]:
        product[level] = product[tree.parent[level]] * edges[level]
    return product


@kernel
def _look(
    tree: TreeArrays, first: np.ndarray, second: np.ndarray, history: np.ndarray, previous: np.ndarray
) -> None:
    """Write `TreeFacts._ancestry` into the last four arguments."""
    parent, mover, infoset = tree.parent, tree.mover, tree.infoset
    met = np.zeros(len(history), np.bool_)
    for h in range(len(parent)):
        if h > 0:
            p = parent[h]
            decides = infoset[p] >= 0
            first[h] = h if decides and mover[p] == 0 else first[p]
            second[h] = h if decides and mover[p] == 1 else second[p]
        k = infoset[h]
        if k >= 0 and not met[k]:
            met[k], history[k] = True, h
            edge = first[h] if mover[h] == 0 else second[h]
            if edge > 0:
                before = infoset[parent[edge]]
                previous[k] = tree.first_entry[before] + tree.entry[edge] if len(tree.entry) else before
