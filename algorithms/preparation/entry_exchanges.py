"""One memorization set for several opponents at once, improved one entry at a time.

The best single set maximizes a concave function of what it is worth against each opponent, which is no sum
over entries: no recursion finds it. A set is improved by the best exchange until there is none: an entry is
taken in, or dropped with all that follows it, or both. Of entries to drop, only those are tried whose loss
costs least by itself.

Source: docs/mixtures.md. Cost: for each exchange, K multiplications for each entry that could be taken in,
times the entries that are tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .components import ComponentDecisions

_DROPPED = 8  # entries that are tried
_ROUNDING = 1e-13  # of what the set is worth: exchanges that gain less are none


def exchanged(
    opponents: ComponentDecisions,
    members: npt.NDArray[np.int32],
    worth: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    penalty: float,
    budget: int | None,
) -> tuple[npt.NDArray[np.int32], float]:
    """(a set that no exchange improves, what it pays), where each information state has its own price.

    Args:
      opponents: of whom nothing is known already.
      members: int32, the set to begin with.
      worth: what utilities against each opponent, float64[..., K], without what is paid, are worth.
      penalty: what each information state costs, by its weight.
      budget: how much of that a set has at most, which then costs nothing; None: there is none.
    """
    forest, gain = opponents.mixture.forest, opponents.gain
    infoset, own = forest.entry_infoset, forest.entry_player == opponents.mixture.player
    weight, before = forest.infoset_weight[infoset], forest.previous[infoset]
    held = np.zeros(len(gain) + 1, bool)  # before the first entries, at -1, everything is held
    held[members], held[-1] = True, True
    while True:
        members = np.flatnonzero(held[:-1]).astype(np.int32)
        utilities, paid = opponents.utilities(members), float(weight[members].sum())
        best = float(worth(utilities)) - penalty * paid + _ROUNDING * float(np.abs(utilities).max())
        lost, freed = gain[members], weight[members]  # with each member and all that follows it
        place = np.searchsorted(members, before[members])
        for k in np.flatnonzero(before[members] >= 0)[::-1]:
            lost[place[k]] += lost[k]
            freed[place[k]] += freed[k]
        cheapest = np.argsort(penalty * (paid - freed) - worth(utilities - lost), kind="stable")[:_DROPPED]
        exchange = held
        for k in (-1, *cheapest.tolist()):
            rest, left, cost = held, utilities, paid
            if k >= 0:
                gone = {int(members[k])}
                for e in members[k + 1 :].tolist():
                    if before[e] in gone:
                        gone.add(e)
                rest, left, cost = held.copy(), utilities - lost[k], paid - float(freed[k])
                rest[list(gone)] = False
            taken = np.zeros(forest.num_infosets, bool)
            taken[infoset[rest[:-1]]] = True
            new = np.flatnonzero(own & rest[before] & ~taken[infoset])
            if budget is not None:
                new = new[cost + weight[new] <= budget]
            options = worth(np.vstack([left, left + gain[new]]))
            options -= penalty * (cost + np.append(0.0, weight[new]))
            chosen = int(np.argmax(options))
            if options[chosen] > best:
                best, exchange = float(options[chosen]), rest.copy()
                exchange[new[chosen - 1 : chosen]] = True  # nothing is new where nothing is taken in
        if exchange is held:
            return members, paid
        held = exchange
