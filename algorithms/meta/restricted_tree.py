"""A history tree in which only some entries may be memorized: an ordinary tree, small where these are few.

Kept are the histories that lead to an information state at which something may be memorized, and what follows
these directly. Both players play sigma from everything else on, so it is a leaf there, worth u^sigma(h).

Cost: a pass over the histories; what is kept is then copied.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.tree.arrays import ARRAYS
from precomp_games.tree.expansion.columns import COLUMNS
from precomp_games.tree.history_tree import HistoryTree

__all__ = ["restricted_tree"]


def restricted_tree(
    tree: HistoryTree, allowed: npt.NDArray[np.bool_], worth: npt.NDArray[np.float64]
) -> HistoryTree:
    """The tree in which nothing but `allowed` may be memorized.

    Information states and entries keep their order: the k-th allowed entry is entry k of the result.

    Args:
      tree: of a meta-game.
      allowed: bool[E]; with an entry, the owner's entry before it.
      worth: float64[n], u^sigma(h) for player 0.
    """
    infosets = np.zeros(tree.num_infosets, bool)
    infosets[tree.entry_infoset[allowed]] = True
    inner = np.zeros(tree.num_histories, bool)
    _lead_on(tree.parent, tree.infoset, infosets, inner)
    keeps = inner | inner[tree.parent]  # the root's parent is -1, and the last history is a leaf
    keeps[0] = True
    kept = np.flatnonzero(keeps)
    columns = {name: getattr(tree, name)[kept] for name in COLUMNS if name != "position"}
    number, num_children = np.cumsum(keeps) - 1, np.where(inner[kept], columns["num_children"], 0)
    parent = np.append(-1, number[columns["parent"][1:]])
    state = np.append(np.where(infosets, np.cumsum(infosets) - 1, -1), -1)  # the last one is none
    infoset = state[columns["infoset"]]
    columns |= {
        "parent": parent,
        "first_child": np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, -1),
        "num_children": num_children,
        "infoset": infoset,
        "value": worth[kept],
        "position": tree.position[kept] if len(tree.position) else tree.position,
        "infoset_player": tree.infoset_player[infosets],
        "weight": tree.infoset_weight[infosets],
        "cut_menus": tree.cut_menus[infosets] if len(tree.cut_menus) else tree.cut_menus,
    }
    if tree.has_menus:
        edge_entry = tree.edge_entry[kept]
        plays = (edge_entry >= 0) & allowed[edge_entry]
        decides = infoset[parent] >= 0  # of what is not played here by an entry, some is not allowed
        before = np.append(0, np.cumsum(allowed))
        place = before[edge_entry] - before[tree.first_entry[tree.entry_infoset[edge_entry]]]
        entry = np.where(plays, place, 0)
        columns["sigma_pre"] = np.where(decides & ~plays, 0.0, columns["sigma_pre"])
        columns["entry"] = (entry if entry.any() else entry[:0]).astype(np.int16)
    keys = tree.infoset_keys
    return dataclasses.replace(
        tree,
        infoset_keys=None if keys is None else tuple(itertools.compress(keys, infosets.tolist())),
        **{name: array.astype(ARRAYS.get(name, array.dtype)) for name, array in columns.items()},
    )


@kernel
def _lead_on(parent: np.ndarray, infoset: np.ndarray, infosets: np.ndarray, inner: np.ndarray) -> None:
    """Which histories lead to some of these information states; all False before."""
    for h in range(len(parent) - 1, -1, -1):
        if infoset[h] >= 0 and infosets[infoset[h]]:
            inner[h] = True
        if inner[h] and h > 0:
            inner[parent[h]] = True
