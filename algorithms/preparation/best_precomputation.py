"""Algorithm 1: the memorization set that is worth most against a fixed opponent.

With u^sigma(h) the value of history h to the player when it stops there, and pi(h) the reach of h under
(sigma_pre of the player, sigma of the opponent, chance), the best value of information state I is

    best(I) = max( sum of best over what follows I under sigma_pre - lambda,
                   sum over h in I of pi(h) u^sigma(h) )

and what follows is information states, or leaves worth pi(h) u^sigma(h). The set is read off from the root.

Source: `precomputation`, Algorithm 1 and Theorem 3; values of the leaves: `precomp_games.leaf_values`.

Deviations: either player; information states with several histories (imperfect information, where perfect
recall makes the recursion sound); two meanings of stopping (`HistoryTree.from_game`, `stop_value`).

With a budget in place of the penalty, see `memory_budget`; for all penalties at once, `memory_frontier`.

Cost: one pass down the tree (reaches) and one back (values), a few floats a history; no policy is asked.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numba
import numpy as np

from precomp_games.checks import check_integer
from precomp_games.history_tree import HistoryTree
from precomp_games.policies import PolicyLike, PrecomputationPolicy, check_policies

from ..meta.strategies import MemorizedState
from .budget import best_within_budget, truncation_loss
from .decisions import MemoryGains, memory_gains
from .frontier import memory_frontier

__all__ = ["BestPrecomputation", "best_precomputation"]


@dataclasses.dataclass(frozen=True, eq=False)
class BestPrecomputation:
    """The answer of Algorithm 1, from the viewpoint of `player`.

    player: 0 or 1. penalty: lambda, utility an information state.
    value: utility - penalty * size, the most that any memorization set has.
    utility: base-game utility of playing the book, without the penalty; what is really earned as far as
      the tree's values are what stopped play is worth.
    unprepared: the same without any book, u^sigma; under stop_value="evaluate" the evaluation of the
      player's first histories.
    size: |S|, in information states (histories where information is perfect).
    positions: |S| in distinct positions of the tree's `position_key`; `size` where there is none.
    memorization_set: int32[size], indices of information states, increasing.
    reach, gain, net_gain: float64[size], see `MemorizedState`.
    work: histories and information states that the pass went over.
    budget: the most information states that there could be; None for a penalty.
    truncation_loss: with a budget, how much more utility a set may have that needs what the tree cut; 0 if
      nothing was cut. It falls with the penalty that the tree is expanded for.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    penalty: float
    value: float
    utility: float
    unprepared: float
    size: int
    positions: int
    memorization_set: np.ndarray = dataclasses.field(repr=False)
    reach: np.ndarray = dataclasses.field(repr=False)
    gain: np.ndarray = dataclasses.field(repr=False)
    net_gain: np.ndarray = dataclasses.field(repr=False)
    work: dict[str, int]
    budget: int | None = None
    truncation_loss: float = 0.0

    def states(self) -> Iterator[MemorizedState]:
        """The memorized states in the order of the tree: those reached earlier in the game first."""
        for k, infoset in enumerate(self.memorization_set.tolist()):
            history = int(self.tree.infoset_history[infoset])
            yield MemorizedState(
                infoset=infoset,
                history=history,
                actions=tuple(self.tree.actions(history)),
                reach=float(self.reach[k]),
                gain=float(self.gain[k]),
                net_gain=float(self.net_gain[k]),
            )

    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """A policy of the base game: the book where it reaches, sigma off it and for the opponent.

        Args:
          sigma: what the players compute during play, one or a pair; by default what the tree was
            expanded with (a tree that was loaded from a file has none).

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        tree, caller = self.tree, "BestPrecomputation.policy()"
        play = tree.policies if sigma is None else check_policies(sigma, "sigma", caller)
        lookup = functools.partial(_row, tree, frozenset(self.memorization_set.tolist()))
        return PrecomputationPolicy(tree.game, self.player, lookup, play)


def _row(tree: HistoryTree, memorized: frozenset[int], state: Any) -> dict[int, float] | None:
    """{action: probability} at a base-game state, where it is memorized."""
    infoset = tree.infoset_of(state)
    return tree.memorized_row(infoset) if infoset in memorized else None


def best_precomputation(
    tree: HistoryTree, player: int, *, budget: int | None = None, opponent: Any = None
) -> BestPrecomputation:
    """Computes the best memorization set of `player` against a fixed opponent.

    Args:
      tree: expanded with a finite penalty for `player`; with an infinite one the set is empty. A finite
        penalty of the opponent does not matter: what it does is given.
      player: 0 or 1.
      budget: the best set of at most so many information states instead, which then cost nothing; exact on
        the tree, and `truncation_loss` says what the tree may have cut. None: the tree's penalty counts.
      opponent: what the other player does in the meta-game, a `MetaStrategy` on this tree (a side of an
        equilibrium, say); None: it plays its sigma and memorizes nothing. Utilities are base-game utilities
        less the player's own penalties: what the opponent pays for memorizing is not in them.

    Raises:
      ValueError: an argument is not as above.
    """
    caller = "best_precomputation()"
    gains = memory_gains(tree, player, opponent, caller)
    if budget is not None:
        return _within_budget(tree, gains, budget, opponent, caller)
    penalty = tree.penalties[player]
    chosen = np.zeros(tree.num_infosets, np.bool_)
    gain, net_gain = np.zeros(tree.num_infosets), np.zeros(tree.num_infosets)
    unprepared, utility = _choose(
        tree.infoset_player, gains.previous, player, penalty, gains.stop, gains.after, chosen, gain, net_gain
    )
    return _result(tree, gains, penalty, chosen, unprepared, utility, gain, net_gain, None, 0.0)


def _within_budget(
    tree: HistoryTree, gains: MemoryGains, budget: Any, opponent: Any, caller: str
) -> BestPrecomputation:
    budget = check_integer(budget, "budget", caller, least=0)
    found = best_within_budget(gains, budget)
    gain, unprepared = gains.gains()
    net_gain = np.where(found.chosen, gain, 0.0)  # of all that is memorized from there on
    _add_later(gains.previous, found.chosen, net_gain)
    loss = 0.0
    worth = gains.cut_reach * tree.utility_range
    if worth > 0.0:
        frontier = memory_frontier(tree, gains.player, opponent=opponent)
        loss = truncation_loss(
            frontier.sizes, frontier.utilities, found.utility, float(budget), frontier.penalty, worth
        )
    return _result(tree, gains, 0.0, found.chosen, unprepared, found.utility, gain, net_gain, budget, loss)


def _result(
    tree: HistoryTree,
    gains: MemoryGains,
    penalty: float,
    chosen: np.ndarray,
    unprepared: float,
    utility: float,
    gain: np.ndarray,
    net_gain: np.ndarray,
    budget: int | None,
    loss: float,
) -> BestPrecomputation:
    members = np.flatnonzero(chosen).astype(np.int32)
    size = len(members)
    positions = size
    if len(tree.position):
        positions = len(np.unique(tree.position[tree.infoset_history[members]]))
    return BestPrecomputation(
        tree=tree,
        player=gains.player,
        penalty=penalty,
        value=float(utility - penalty * size) if size else float(utility),
        utility=float(utility),
        unprepared=float(unprepared),
        size=size,
        positions=positions,
        memorization_set=members,
        reach=gains.reach[members],
        gain=gain[members],
        net_gain=net_gain[members],
        work={"histories": tree.num_histories, "infosets": tree.num_infosets},
        budget=budget,
        truncation_loss=loss,
    )


@numba.njit(cache=True)
def _add_later(previous: np.ndarray, chosen: np.ndarray, net_gain: np.ndarray) -> None:
    for k in range(len(chosen) - 1, -1, -1):
        if chosen[k] and previous[k] >= 0:
            net_gain[previous[k]] += net_gain[k]


@numba.njit(cache=True)
def _choose(
    infoset_player: np.ndarray,
    previous: np.ndarray,
    player: int,
    penalty: float,
    stop: np.ndarray,
    after: np.ndarray,
    chosen: np.ndarray,
    gain: np.ndarray,
    net_gain: np.ndarray,
) -> tuple[float, float]:
    """The recursion over information states; an information state comes after its previous one.

    Writes into the last three arguments and returns (u^sigma, utility of the set).
    """
    m = len(infoset_player)
    best = after.copy()  # [I + 1]: value of memorizing I, its own penalty aside
    used = after.copy()  # [I + 1]: utility of the same
    once = after.copy()  # [I + 1]: utility of memorizing I and nothing after it
    for k in range(m - 1, -1, -1):
        if infoset_player[k] != player:
            continue
        at = previous[k] + 1
        memorized = best[k + 1] - penalty
        chosen[k] = memorized > stop[k]
        gain[k] = once[k + 1] - stop[k]
        net_gain[k] = memorized - stop[k]
        best[at] += memorized if chosen[k] else stop[k]
        used[at] += used[k + 1] if chosen[k] else stop[k]
        once[at] += stop[k]
    for k in range(m):
        if infoset_player[k] == player and previous[k] >= 0:
            chosen[k] = chosen[k] and chosen[previous[k]]
    return once[0], used[0]
