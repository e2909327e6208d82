"""Why a strategy memorizes what it memorizes: reach, gain and net gain of each information state.

Source: `precomputation`, Algorithm 1; the numbers are those of `Decisions`.
"""

from __future__ import annotations

import numpy as np

from precomp_games.checks import check_instance
from precomp_games.meta_strategy import MemorizedState, MetaStrategy

from .decisions import Decisions

__all__ = ["memorized_states"]


def memorized_states(strategy: MetaStrategy, opponent: MetaStrategy | None = None) -> list[MemorizedState]:
    """Each entry that a strategy may memorize, in the order of the tree.

    Reach, gain and net gain are those of memorizing the state, with all before it, against the opponent; what
    follows it is memorized as the strategy does.

    Args:
      strategy: of the player who prepares.
      opponent: the other player's strategy on the same tree; None: it plays its sigma.

    Raises:
      ValueError: an argument is not as above.
    """
    caller = "memorized_states()"
    tree = check_instance(strategy, MetaStrategy, "strategy", caller).tree
    decisions = Decisions.against(tree, strategy.player, opponent, caller)
    gain, _ = decisions.gains()
    lead, plan = decisions.value(strategy.memorize).lead, strategy.plan()
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
        )
        for entry in np.flatnonzero(plan).tolist()
        for infoset in [int(tree.entry_infoset[entry])]
    ]
