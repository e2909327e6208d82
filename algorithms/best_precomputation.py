"""Algorithm 1: the memorization set that is worth most against a fixed opponent.

With u^sigma(h) the value of history h to the player when it stops there, and pi(h) the reach of h under
(sigma_pre of the player, sigma of the opponent, chance), the best value of information state I is

    best(I) = max( sum of best over what follows I under sigma_pre - lambda,
                   sum over h in I of pi(h) u^sigma(h) )

and what follows is information states, or leaves worth pi(h) u^sigma(h). The set is read off from the root.

Source: `precomputation`, Algorithm 1 and Theorem 3; values of the leaves: `precomp_games.leaf_values`.

Deviations: either player; information states with several histories (imperfect information, where perfect
recall makes the recursion sound); two meanings of stopping (`HistoryTree.from_game`, `stop_value`).

Cost: one pass down the tree (reaches) and one back (values), a few floats a history; no policy is asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numba
import numpy as np

from precomp_games.base_game import pair
from precomp_games.history_tree import HistoryTree
from precomp_games.policies import PolicyLike, PrecomputationPolicy

__all__ = ["BestPrecomputation", "MemorisedState", "best_precomputation"]


@dataclasses.dataclass(frozen=True)
class MemorisedState:
    """Why one information state is worth learning; utilities are the book player's.

    infoset: its index in the tree. history: its first history in the tree.
    actions: the base game's actions from the start to that history.
    reach: probability of coming there, by the book and against the opponent.
    gain: utility gained by knowing this state and nothing after it, compared with stopping here. Gains of
      the whole set add up to utility - unprepared.
    net_gain: value lost by forgetting this state and all that follows it: the gains below, less penalties.
    """

    infoset: int
    history: int
    actions: tuple[int, ...]
    reach: float
    gain: float
    net_gain: float


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
    reach, gain, net_gain: float64[size], see `MemorisedState`.
    work: histories and information states that the pass went over.
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

    def states(self) -> Iterator[MemorisedState]:
        """The memorised states in the order of the tree: those reached earlier in the game first."""
        for k, infoset in enumerate(self.memorization_set.tolist()):
            history = int(self.tree.infoset_history[infoset])
            yield MemorisedState(
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
        """
        play = self.tree.policies if sigma is None else pair(sigma, "sigma", "policy()")
        memorised = frozenset(self.memorization_set.tolist())
        tree = self.tree

        def lookup(state: Any) -> dict[int, float] | None:
            infoset = tree.infoset_of(state)
            return tree.memorised_row(infoset) if infoset in memorised else None

        return PrecomputationPolicy(tree.game, self.player, lookup, play)


def best_precomputation(tree: HistoryTree, player: int) -> BestPrecomputation:
    """Computes the best memorization set of `player` against an opponent who plays its sigma.

    Args:
      tree: expanded with a finite penalty for `player`; with an infinite one the set is empty. A finite
        penalty of the opponent does not matter: it does not prepare here.
      player: 0 or 1.

    Raises:
      ValueError: `tree` or `player` is not as above.
    """
    if not isinstance(tree, HistoryTree):
        raise ValueError(f"best_precomputation(): expected a HistoryTree, got {tree!r}")
    if player not in (0, 1) or isinstance(player, bool):
        raise ValueError(f"best_precomputation(): expected player 0 or 1, got {player!r}")
    # with_penalties() may have made both infinite since; the opponent's turns tell, too.
    other = np.isfinite(tree.penalties[1 - player]) or (tree.infoset_player == 1 - player).any()
    if tree.stop_value == "evaluate" and other:
        raise ValueError(
            f"best_precomputation(): expected the tree's precomputing player, {1 - player}, since it "
            f'was expanded with stop_value="evaluate", got player {player}'
        )
    penalty = tree.penalties[player]
    m = tree.num_infosets
    reach, stop, after, previous = (
        np.zeros(m),
        np.zeros(m),
        np.zeros(m + 1),
        np.full(m, -1, np.int32),
    )
    _collect(
        tree.parent, tree.num_children, tree.player, tree.infoset, tree.sigma, tree.sigma_pre,
        tree.value, player, float(tree.utility_sum), tree.stop_value == "evaluate",
        reach, stop, after, previous,
    )  # fmt: skip
    chosen = np.zeros(m, np.bool_)
    gain, net_gain = np.zeros(m), np.zeros(m)
    unprepared, utility = _choose(
        tree.infoset_player, previous, player, penalty, stop, after, chosen, gain, net_gain
    )
    members = np.flatnonzero(chosen).astype(np.int32)
    size = len(members)
    positions = size
    if len(tree.position):
        positions = len(np.unique(tree.position[tree.infoset_history[members]]))
    return BestPrecomputation(
        tree=tree,
        player=int(player),
        penalty=penalty,
        value=float(utility - penalty * size) if size else float(utility),
        utility=float(utility),
        unprepared=float(unprepared),
        size=size,
        positions=positions,
        memorization_set=members,
        reach=reach[members],
        gain=gain[members],
        net_gain=net_gain[members],
        work={"histories": tree.num_histories, "infosets": m},
    )


@numba.njit(cache=True)
def _collect(
    parent: np.ndarray,
    num_children: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma: np.ndarray,
    sigma_pre: np.ndarray,
    value: np.ndarray,
    player: int,
    utility_sum: float,
    evaluates: bool,
    reach_of: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
    previous: np.ndarray,
) -> None:
    """Sums a tree up to the player's information states, writing into the last four arguments.

    reach_of[I]: reach of I. stop[I]: sum of pi(h) u^sigma(h) over I. previous[I]: the player's
    information state before I, -1 for none. after[I + 1]: sum of pi(h) u^sigma(h) over what follows I
    directly and is no information state: leaves, and turns where the player must stop. after[0]: the same
    before its first information state.
    """
    n = len(parent)
    reach = np.empty(n)
    before = np.empty(n, np.int32)
    worth = np.zeros(n)
    reach[0] = 1.0
    before[0] = -1
    for h in range(1, n):
        p = parent[h]
        if mover[p] != player:
            reach[h] = reach[p] * sigma[h]
            before[h] = before[p]
        elif infoset[p] >= 0:
            reach[h] = reach[p] * sigma_pre[h]
            before[h] = infoset[p]
        else:  # it has stopped for good: nothing below is by the book
            reach[h] = 0.0
            before[h] = before[p]
    for h in range(n - 1, -1, -1):
        own = mover[h] == player
        decides = own and infoset[h] >= 0
        leaf = num_children[h] == 0
        if leaf or (evaluates and decides):
            worth[h] = value[h] if player == 0 else utility_sum - value[h]
        if h > 0:
            worth[parent[h]] += sigma[h] * worth[h]
        if decides:
            reach_of[infoset[h]] += reach[h]
            stop[infoset[h]] += reach[h] * worth[h]
            previous[infoset[h]] = before[h]
        elif (own or leaf) and reach[h] > 0.0:
            after[before[h] + 1] += reach[h] * worth[h]


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
    best = after.copy()  # [I + 1]: value of memorising I, its own penalty aside
    used = after.copy()  # [I + 1]: utility of the same
    once = after.copy()  # [I + 1]: utility of memorising I and nothing after it
    for k in range(m - 1, -1, -1):
        if infoset_player[k] != player:
            continue
        at = previous[k] + 1
        memorised = best[k + 1] - penalty
        chosen[k] = memorised > stop[k]
        gain[k] = once[k + 1] - stop[k]
        net_gain[k] = memorised - stop[k]
        best[at] += memorised if chosen[k] else stop[k]
        used[at] += used[k + 1] if chosen[k] else stop[k]
        once[at] += stop[k]
    for k in range(m):
        if infoset_player[k] == player and previous[k] >= 0:
            chosen[k] = chosen[k] and chosen[previous[k]]
    return once[0], used[0]
