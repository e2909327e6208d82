"""A history tree folded to the decisions of the meta-game, for passes that are made many times.

Counterfactual regret minimization passes over the same tree hundreds of times, so it pays to make that tree
small first. What is left are both players' decisions, each with a parent decision. Two things are folded into
them:

- Leaves. The leaves right after a history become two numbers: the sums of their values, weighted with sigma
  and with sigma_pre.
- Histories at which nothing may be memorized: chance moves there, or a player that cannot memorize any more
  and plays sigma for sure. Their probabilities multiply the values of the leaves below them.

Decisions are sorted by how many come before, and into *runs*. A run has neighbors with the same mover, after
decisions of the same player, so a pass over it has nothing to branch on.

Numbers that differ between the entries of a menu stand in *slots*. Each decision has one slot for each entry
of its information state, and these are neighbors. Where no menu has two entries, slots are decisions and
entries are information states, and the arrays that map one to the other are None. numba treats None as a type
of its own, so for such trees the kernel is compiled as if there were no menus.

Cost: a pass over the histories and a sort of the decisions. Memory: 66 bytes per decision are kept, and 12
bytes per history are needed meanwhile. Menus add 8 bytes per decision and 8 per slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.tree.history_tree import HistoryTree

ALONE = 0
"""A decision's status: the only one of its information state."""
ONE_OF_SEVERAL = 1
"""The same: others of its information state are yet to be met, from the last decision to the first."""
LAST = 2
"""The same: all others of its information state have been met."""


class DecisionTree(NamedTuple):
    """Decisions as arrays, number 0 being what comes before the first ones; a tuple, so that numba takes it.

    N decisions with M slots, m information states of both players with E entries, renumbered in order of
    appearance.

    Attributes:
      runs: int64[k, 4], (first decision, one past the last, mover of their parents, their mover).
      parent: int32[N], the decision before, 0 for none. Parents come first.
      parent_slot: int32[N], its slot for the entry that leads here; None without menus.
      first_slot: int32[N + 1], the slots of decision h are first_slot[h]:first_slot[h + 1]; None without
        menus.
      infoset: int32[N], -1 at number 0.
      status: uint8[N], `ALONE`, `ONE_OF_SEVERAL` or `LAST`.
      sigma, sigma_pre: float64[N], the parent's mover's probability of coming here; 1 after number 0.
      sigma_leaves, pre_leaves: float64[N] and float64[M], sum over the leaves after this decision (and entry)
        and before the next ones of player 0's utility less half of the constant sum, times the probability
        that chance and players who have stopped for sure contribute to the leaf, times the mover's sigma or
        sigma_pre.
      own_reach: float64[2, N], m_i(h), the product of player i's sigma_pre along the path to h. It, `sigma`,
        `sigma_pre` and `sigma_leaves` are None in a base game alone, where nobody stops and all actions are
        entries.
      previous: int32[m], the mover's entry before, -1 for none.
      first_entry: int32[m + 1], the entries of information state I are first_entry[I]:first_entry[I + 1];
        None without menus.
      tree_infoset: int32[m], the history tree's number of each information state.
      tree_entry: int32[E], the history tree's number of each entry.
      price: float64[m], what memorizing each information state costs.
      players: int64[k], those with a finite penalty.
      may_stop: 1.0 where players may stop, 0.0 in a base game alone.
    """

    runs: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int32]
    parent_slot: npt.NDArray[np.int32] | None
    first_slot: npt.NDArray[np.int32] | None
    infoset: npt.NDArray[np.int32]
    status: npt.NDArray[np.uint8]
    sigma: npt.NDArray[np.float64] | None
    sigma_pre: npt.NDArray[np.float64] | None
    sigma_leaves: np.ndarray | None
    pre_leaves: np.ndarray
    own_reach: npt.NDArray[np.float64] | None
    previous: npt.NDArray[np.int32]
    first_entry: npt.NDArray[np.int32] | None
    tree_infoset: npt.NDArray[np.int32]
    tree_entry: npt.NDArray[np.int32]
    price: npt.NDArray[np.float64]
    players: npt.NDArray[np.int64]
    may_stop: float

    @classmethod
    def of(cls, tree: HistoryTree) -> DecisionTree:
        """Fold a tree expanded with stop_value="backup"."""
        edge, weight = np.zeros(tree.num_histories, np.int32), np.ones(tree.num_histories)
        _fold(tree.parent, tree.infoset, tree.sigma, edge, weight)

        decisions = np.flatnonzero(tree.infoset >= 0)
        number = np.zeros(tree.num_histories + 1, np.int32)  # the last entry is read at index -1
        number[decisions] = np.arange(1, len(decisions) + 1)
        above = tree.parent[edge]  # -1 where no decision comes before
        parent = np.append(0, number[above[decisions]])
        mover = np.append(0, tree.player[decisions]).astype(np.int64)
        infoset = np.append(-1, tree.infoset[decisions])
        level = _levels(parent)
        order = np.lexsort((mover, mover[parent], level))

        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        parent, mover, level = place[parent[order]], mover[order], level[order]
        leaves = np.flatnonzero(tree.num_children == 0)
        at = place[number[above[leaves]]]
        value = weight[leaves] * (tree.value[leaves] - tree.utility_sum / 2.0)
        infoset, tree_infoset = _renumbered(infoset[order])

        first_slot = first_entry = parent_slot = None
        edges, last = edge[np.append(0, decisions)[order]], edge[leaves]
        slot, tree_entry = at, tree_infoset
        before = infoset[parent]  # the entry that leads here, -1 at what comes first
        if tree.has_menus:
            sizes = np.diff(tree.first_entry)[tree_infoset]
            first_entry = _starts(sizes)
            tree_entry = np.arange(first_entry[-1], dtype=np.int32)
            tree_entry += np.repeat(tree.first_entry[tree_infoset] - first_entry[:-1], sizes)
            first_slot = _starts(np.append(1, sizes[infoset[1:]]))
            parent_slot = first_slot[parent] + tree.entry[edges]
            slot = first_slot[at] + tree.entry[last]
            before = first_entry[before] + tree.entry[edges]
        sigma_pre = _along(tree.sigma_pre, edges)
        previous = np.full(len(tree_infoset), -1, np.int32)
        own_reach = np.ones((2, len(order)))
        _own(parent, mover, infoset, before, sigma_pre, own_reach, previous)
        stops = tree.may_stop
        return cls(
            runs=_runs(parent, mover, level),
            parent=parent,
            parent_slot=parent_slot,
            first_slot=first_slot,
            infoset=infoset,
            status=_status(infoset),
            sigma=_along(tree.sigma, edges) if stops else None,
            sigma_pre=sigma_pre if stops else None,
            sigma_leaves=np.bincount(at, value * _along(tree.sigma, last), len(order)) if stops else None,
            pre_leaves=np.bincount(
                slot,
                value * _along(tree.sigma_pre, last),
                len(order) if first_slot is None else int(first_slot[-1]),
            ),
            own_reach=own_reach if stops else None,
            previous=previous,
            first_entry=first_entry,
            tree_infoset=tree_infoset,
            tree_entry=tree_entry,
            price=tree.infoset_penalty[tree_infoset],
            players=np.flatnonzero(np.isfinite(tree.penalties)),
            may_stop=float(stops),
        )


@kernel
def _fold(
    parent: np.ndarray, infoset: np.ndarray, sigma: np.ndarray, edge: np.ndarray, weight: np.ndarray
) -> None:
    """Compute for each history the edge taken at the last decision above it, and what lies between.

    edge: the history that it leads to, 0 where no decision comes before. weight: the product of `sigma` over
    all edges in between that are no decision's.
    """
    for h in range(1, len(parent)):
        p = parent[h]
        if infoset[p] >= 0:
            edge[h], weight[h] = h, weight[p]
        else:
            edge[h], weight[h] = edge[p], weight[p] * sigma[h]


def _along(policy: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return a policy's probabilities of edges, 1 at number 0."""
    return np.where(edges > 0, policy[edges], 1.0)


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Return int32[k + 1]: where each of k blocks begins, and where the last one ends."""
    return np.append(0, np.cumsum(sizes)).astype(np.int32)


@kernel
def _levels(parent: np.ndarray) -> np.ndarray:
    """Return the number of decisions before each, number 0 among them."""
    level = np.zeros(len(parent), np.int64)
    for h in range(1, len(parent)):
        level[h] = level[parent[h]] + 1
    return level


def _runs(parent: np.ndarray, mover: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return the runs, for sorted decisions."""
    keys = np.stack([level, mover[parent], mover])
    bounds = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    starts, stops = bounds, np.append(bounds[1:], len(parent))[: len(bounds)]
    return np.stack([starts, stops, mover[parent[starts]], mover[starts]], axis=1).astype(np.int64)


def _renumbered(infoset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (information states in order of appearance, the old number of each)."""
    old, first = np.unique(infoset[1:], return_index=True)
    order = np.argsort(first, kind="stable")
    new = np.empty(int(old.max(initial=-1)) + 1, np.int32)
    new[old[order]] = np.arange(len(old))
    return np.append(-1, new[infoset[1:]]).astype(np.int32), old[order].astype(np.int32)


@kernel
def _own(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    before: np.ndarray,
    sigma_pre: np.ndarray,
    own_reach: np.ndarray,
    previous: np.ndarray,
) -> None:
    """Write `own_reach`, ones before, and `previous`. before: int32[N], the entry that leads to each."""
    last = np.full((2, len(parent)), -1, np.int32)
    for h in range(1, len(parent)):
        p = parent[h]
        for i in range(2):
            own_reach[i, h] = own_reach[i, p]
            last[i, h] = last[i, p]
            if p > 0 and mover[p] == i:
                own_reach[i, h] *= sigma_pre[h]
                last[i, h] = before[h]
        previous[infoset[h]] = last[mover[h], h]


def _status(infoset: np.ndarray) -> np.ndarray:
    decisions = infoset[1:]
    several = np.bincount(decisions)[decisions] > 1
    first = np.zeros(len(decisions), bool)
    first[np.unique(decisions, return_index=True)[1]] = True
    status = np.where(several, np.where(first, LAST, ONE_OF_SEVERAL), ALONE)
    return np.append(ALONE, status).astype(np.uint8)
