"""What each information state adds to a memorization set: a tree summed up to one player's decisions.

Against a fixed strategy of the opponent, utility is additive over a memorization set S,

    u(S) = u(empty set) + sum over I in S of g(I),
    g(I) = after(I) + sum over J right after I of stop(J) - stop(I),

where stop(I) is what stopping at I is worth, times the reach of I under sigma_pre, and after(I) what follows
I directly and is no information state. Algorithm 1, the memory frontier and the memory budget need no more.

Source: `precomputation`, Algorithm 1; section 4.1 for an opponent who plays a strategy of the meta-game.

Cost: one pass down the tree (reaches) and one back (values), a few floats a history; no policy is asked.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np

from precomp_games.algorithms.meta_passes import TreePasses
from precomp_games.history_tree import CHANCE, TERMINAL, HistoryTree

__all__ = ["MemoryGains", "cut_reach", "memory_gains"]


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryGains:
    """The player's decisions, as arrays over the tree's m information states; utilities are its own.

    Entries at the other player's information states mean nothing.

    owner: int8[m], whose information state it is. player: whose gains these are.
    previous: int32[m], the player's information state before I, -1 for none; always a smaller index.
    reach: float64[m], probability of coming to I, by sigma_pre and against the opponent.
    stop: float64[m], what stopping at I is worth, times the reach. after: float64[m + 1], see above, at
      I + 1; after[0]: the same before the first information state.
    """

    owner: np.ndarray
    player: int
    previous: np.ndarray
    reach: np.ndarray
    stop: np.ndarray
    after: np.ndarray

    def gains(self) -> tuple[np.ndarray, float]:
        """(g: float64[m], u(empty set))."""
        gain = np.zeros(len(self.owner))
        return gain, _gains(self.owner, self.previous, self.player, self.stop, self.after, gain)


def memory_gains(tree: HistoryTree, player: int, opponent: Any, caller: str) -> MemoryGains:
    """Sums a tree up.

    Args:
      tree: expanded for `player`.
      player: 0 or 1.
      opponent: a `MetaStrategy` of the other player on this tree; None: it plays its sigma.
      caller: whom errors name.

    Raises:
      ValueError: an argument is not as above; a tree with evaluated stops knows no strategies.
    """
    if not isinstance(tree, HistoryTree):
        raise ValueError(f"{caller}: expected a HistoryTree, got {tree!r}")
    if player not in (0, 1) or isinstance(player, bool):
        raise ValueError(f"{caller}: expected player 0 or 1, got {player!r}")
    # with_penalties() may have made both infinite since; the opponent's turns tell, too.
    other = np.isfinite(tree.penalties[1 - player]) or (tree.infoset_player == 1 - player).any()
    if tree.stop_value == "evaluate" and other:
        raise ValueError(
            f"{caller}: expected the tree's precomputing player, {1 - player}, since it "
            f'was expanded with stop_value="evaluate", got player {player}'
        )
    m = tree.num_infosets
    if opponent is not None:
        return _against_strategy(tree, player, opponent, caller)
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
    return MemoryGains(tree.infoset_player, int(player), previous, reach, stop, after)


def _against_strategy(tree: HistoryTree, player: int, opponent: Any, caller: str) -> MemoryGains:
    from precomp_games.algorithms.meta_strategies import MetaStrategy, check_strategies

    if not isinstance(opponent, MetaStrategy) or opponent.player != 1 - player:
        raise ValueError(
            f"{caller}: expected opponent to be a MetaStrategy of player {1 - player} or None, "
            f"got {opponent!r}"
        )
    own = MetaStrategy(tree, player, np.zeros(tree.num_infosets))
    check_strategies(tree, (own, opponent) if player == 0 else (opponent, own), caller)
    try:
        passes = TreePasses(tree)
    except ValueError as error:
        raise ValueError(f"{caller}: {error}") from None
    view = passes.players[player]
    rival = passes.contribution(1 - player, opponent.memorise)
    stop, after = passes.collect(player, rival)
    here = np.flatnonzero((tree.player == player) & (tree.infoset >= 0))
    weight = (view.own_reach * passes.chance * rival)[here]
    reach = np.bincount(tree.infoset[here], weight, tree.num_infosets)
    return MemoryGains(tree.infoset_player, int(player), view.previous, reach, stop, after)


def cut_reach(tree: HistoryTree, player: int, opponent: Any = None) -> float:
    """Probability of coming, by sigma_pre of the player, to where the tree keeps it from memorising further.

    That is the reach of histories that were cut: leaves where the game goes on, and the player's turns that
    it must stop at. 0: the tree has everything that the player could memorise.
    """
    passed = opponent.memorise if opponent is not None else np.zeros(tree.num_infosets)
    rest = _cut_reach(
        tree.parent, tree.num_children, tree.player, tree.infoset, tree.sigma, tree.sigma_pre, player,
        passed, CHANCE, TERMINAL,
    )  # fmt: skip
    return float(rest)


@numba.njit(cache=True)
def _gains(
    owner: np.ndarray,
    previous: np.ndarray,
    player: int,
    stop: np.ndarray,
    after: np.ndarray,
    gain: np.ndarray,
) -> float:
    start = after[0]
    for k in range(len(owner)):
        if owner[k] != player:
            continue
        gain[k] += after[k + 1] - stop[k]
        if previous[k] >= 0:
            gain[previous[k]] += stop[k]
        else:
            start += stop[k]
    return start


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
def _cut_reach(
    parent: np.ndarray,
    num_children: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma: np.ndarray,
    sigma_pre: np.ndarray,
    player: int,
    opponent: np.ndarray,
    chance: int,
    terminal: int,
) -> float:
    """The reach of cut histories; the opponent goes on memorising at I with probability opponent[I]."""
    n = len(parent)
    reach, memorising = np.empty(n), np.empty(n)  # memorising: the part in which the opponent has not stopped
    cut = 0.0
    for h in range(n):
        if h == 0:
            reach[h] = memorising[h] = 1.0
        else:
            p = parent[h]
            if mover[p] == player:
                edge = sigma_pre[h] if infoset[p] >= 0 else 0.0
                reach[h], memorising[h] = reach[p] * edge, memorising[p] * edge
            elif mover[p] == chance:
                reach[h], memorising[h] = reach[p] * sigma[h], memorising[p] * sigma[h]
            else:
                goes_on = memorising[p] * opponent[infoset[p]] if infoset[p] >= 0 else 0.0
                memorising[h] = goes_on * sigma_pre[h]
                reach[h] = memorising[h] + (reach[p] - goes_on) * sigma[h]
        over = num_children[h] == 0 and mover[h] != terminal
        forced = mover[h] == player and infoset[h] < 0
        if over or forced:
            cut += reach[h]
    return cut
