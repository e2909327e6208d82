"""What is known already: entries that cost nothing, and that every set has wherever it comes to them.

Such an entry is no decision. So a player's decisions are contracted: what follows a known entry e at I
follows what comes before I, as if I were not there,

    after(entry before I) becomes after(entry before I) + after(e),

and the information states right after e come right after the entry before I. What follows other entries of
I's menu cannot be reached. All solvers take the contracted decisions as they take any others, and count and
price only what is left; `Decisions.known` tells what was there.

Cost: a pass over the information states.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError
from precomp_games._support.checks import check_indices, shown
from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import Forest

from .decisions import Decisions

__all__ = ["knowing"]


def knowing(decisions: Decisions, keep: Any, shared: npt.NDArray[np.int64] | None) -> Decisions:
    """The decisions that are left where some entries are known.

    Args:
      decisions: a player's, on a history tree.
      keep: the numbers of the known entries; None: there are none.
      shared: int64[m], equal where information states share one price; None: each has its own.

    Raises:
      ValueError: these are not the player's entries, or two of them are of one information state.
    """
    if keep is None:
        return decisions
    tree = decisions.tree
    known = np.zeros(tree.num_entries, bool)
    known[check_indices(keep, tree.num_entries, "keep")] = True
    infosets = tree.entry_infoset[known]
    if (tree.entry_player[known] != decisions.player).any() or len(np.unique(infosets)) < len(infosets):
        raise ArgumentError(
            f"expected keep to be entries of player {decisions.player}, one of an information "
            f"state, got {shown(keep)}"
        )
    free = np.zeros(tree.num_infosets, bool)
    free[infosets] = True
    if shared is not None:
        free = np.isin(shared, shared[infosets])
    tree = tree.with_weights(np.where(free, 0.0, tree.infoset_weight))
    whole = dataclasses.replace(decisions, forest=tree)
    previous, after = tree.previous.copy(), decisions.after.copy()
    owner = tree.infoset_player.copy()
    _contract(tree.first_entry, known, previous, after, owner)
    forest = Forest(tree.first_entry, previous, tree.penalties, owner, tree.infoset_weight)
    return dataclasses.replace(decisions, forest=forest, after=after, known=(whole, known))


@kernel
def _contract(
    first_entry: np.ndarray, known: np.ndarray, previous: np.ndarray, after: np.ndarray, owner: np.ndarray
) -> None:
    """Takes information states of known entries, and what cannot be reached, out; `owner` becomes -1."""
    leads = np.arange(len(known))  # the entry that is left in place of each; -1: the start
    gone = np.zeros(len(known), np.bool_)  # not to be reached
    for k in range(len(previous)):
        unreached = previous[k] >= 0 and gone[previous[k]]
        if previous[k] >= 0:
            previous[k] = leads[previous[k]]
        chosen = -1
        for e in range(first_entry[k], first_entry[k + 1]):
            if known[e]:
                chosen = e
        if chosen >= 0 or unreached:
            owner[k] = -1
            for e in range(first_entry[k], first_entry[k + 1]):
                gone[e] = unreached or e != chosen
        if chosen >= 0 and not unreached:
            leads[chosen] = previous[k]
            after[previous[k] + 1] += after[chosen + 1]
