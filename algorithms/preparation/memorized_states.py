"""Why a strategy memorizes what it memorizes: reach, gain and net gain of each information state.

Source: `precomputation`, Algorithm 1; the numbers are those of `Decisions`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import public
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import Alternative, MemorizedState, MetaStrategy

from .decisions import Decisions

__all__ = ["alternatives", "memorized_states"]


@public
def memorized_states(strategy: MetaStrategy, opponent: MetaStrategy | None = None) -> list[MemorizedState]:
    """Each entry that a strategy may memorize, in the order of the tree.

    Reach, gain and net gain are those of memorizing the state, with all before it, against the opponent; what
    follows it is memorized as the strategy does. An alternative is followed by what is best after it; of
    entries that an equilibrium mixes, none is worth less than another.

    Args:
      strategy: of the player who prepares.
      opponent: the other player's strategy on the same tree; None: it plays its sigma.

    Raises:
      ValueError: an argument is not as above.
    """
    tree = strategy.tree
    decisions = Decisions.against(tree, strategy.player, opponent)
    gain, _ = decisions.gains()
    lead, plan = decisions.value(strategy.memorize).lead, strategy.plan()
    best = decisions.best().lead
    return [
        MemorizedState(
            infoset=infoset,
            entry=entry,
            history=int(tree.infoset_history[infoset]),
            actions=tuple(tree.actions(int(tree.infoset_history[infoset]))),
            reach=float(decisions.reach[infoset]),
            gain=float(gain[entry]),
            net_gain=float(lead[entry]),
            probability=float(plan[entry]),
            alternatives=alternatives(tree, entry, float(lead[entry]), best),
        )
        for entry in np.flatnonzero(plan).tolist()
        for infoset in [int(tree.entry_infoset[entry])]
    ]


def alternatives(
    tree: HistoryTree, entry: int, worth: float, lead: npt.NDArray[np.float64]
) -> tuple[Alternative, ...]:
    """The other entries of an entry's menu; `worth` is its own lead, `lead` theirs, by entry."""
    infoset = int(tree.entry_infoset[entry])
    first, end = tree.first_entry[infoset : infoset + 2].tolist()
    return tuple(
        Alternative(tree.memorized_row(other), worth - float(lead[other]))
        for other in range(first, end)
        if other != entry
    )
