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

from precomp_games.checks import check_instance, check_player
from precomp_games.history_tree import TERMINAL, HistoryTree

from ..meta.strategies import check_opponent

__all__ = ["MemoryGains", "gains_and_worths", "memory_gains"]


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryGains:
    """The player's decisions, as arrays over the tree's m information states; utilities are its own.

    Entries at the other player's information states mean nothing.

    owner: int8[m], whose information state it is. player: whose gains these are.
    previous: int32[m], the player's information state before I, -1 for none; always a smaller index.
    reach: float64[m], probability of coming to I, by sigma_pre and against the opponent.
    stop: float64[m], what stopping at I is worth, times the reach. after: float64[m + 1], see above, at
      I + 1; after[0]: the same before the first information state.
    cut_reach: probability of coming, by sigma_pre, to where the tree keeps the player from memorizing
      further: leaves where the game goes on, and turns that it must stop at. 0: the tree has all there is.
    """

    owner: np.ndarray
    player: int
    previous: np.ndarray
    reach: np.ndarray
    stop: np.ndarray
    after: np.ndarray
    cut_reach: float = 0.0

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
    return gains_and_worths(tree, player, opponent, caller)[0]


def gains_and_worths(
    tree: HistoryTree, player: int, opponent: Any, caller: str
) -> tuple[MemoryGains, np.ndarray, np.ndarray]:
    """`memory_gains`, and what it sums up, over the n histories.

    Returns:
      gains; reach: float64[n], by sigma_pre and against the opponent, 0 below turns that the player must
      stop at; worth: float64[n], what stopping at h is worth to the player, not counting its reach.
    """
    check_instance(tree, HistoryTree, "tree", caller)
    player = check_player(player, caller)
    # with_penalties() may have made both infinite since; the opponent's turns tell, too.
    other = np.isfinite(tree.penalties[1 - player]) or (tree.infoset_player == 1 - player).any()
    if tree.stop_value == "evaluate" and other:
        raise ValueError(
            f"{caller}: expected the tree's precomputing player, {1 - player}, since it "
            f'was expanded with stop_value="evaluate", got player {player}'
        )
    n, m = tree.num_histories, tree.num_infosets
    gains = MemoryGains(
        owner=tree.infoset_player,
        player=player,
        previous=np.full(m, -1, np.int32),
        reach=np.zeros(m),
        stop=np.zeros(m),
        after=np.zeros(m + 1),
    )
    played = tree.sigma if opponent is None else _played(tree, player, opponent, caller)
    reach, worth = np.empty(n), np.zeros(n)
    cut_reach = _collect(
        tree.parent, tree.num_children, tree.player, tree.infoset, played, tree.sigma_pre, tree.value,
        player, float(tree.utility_sum), tree.stop_value == "evaluate", TERMINAL,
        reach, worth, gains.reach, gains.stop, gains.after, gains.previous,
    )  # fmt: skip
    return dataclasses.replace(gains, cut_reach=cut_reach), reach, worth


def _played(tree: HistoryTree, player: int, opponent: Any, caller: str) -> np.ndarray:
    """float64[n]: sigma, with the opponent's strategy in place of its sigma (Kuhn's theorem)."""
    memorize = check_opponent(tree, player, opponent, caller)
    played = tree.sigma.copy()
    _mix(tree.parent, tree.player, tree.infoset, tree.sigma_pre, 1 - player, memorize, played)
    return played


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
def _mix(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma_pre: np.ndarray,
    player: int,
    memorize: np.ndarray,
    played: np.ndarray,
) -> None:
    """Mixes sigma_pre into `played`, the sigma of `player`, by how likely it is memorizing still."""
    memorizing = np.ones(len(parent))  # given that it has played so far what leads here
    for h in range(1, len(parent)):
        p = parent[h]
        memorizing[h] = memorizing[p]
        if mover[p] == player:
            goes_on = memorizing[p] * memorize[infoset[p]] if infoset[p] >= 0 else 0.0
            by_heart = goes_on * sigma_pre[h]
            played[h] = by_heart + (1.0 - goes_on) * played[h]
            memorizing[h] = by_heart / played[h] if played[h] > 0.0 else 0.0


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
    terminal: int,
    reach: np.ndarray,
    worth: np.ndarray,
    reach_of: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
    previous: np.ndarray,
) -> float:
    """Sums a tree up to the player's information states, writing into the last six arguments.

    `worth`, `reach_of`, `stop` and `after` are zeros before. Returns `MemoryGains.cut_reach`.
    """
    n = len(parent)
    cut_reach = 0.0
    before = np.empty(n, np.int32)
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
            if own or mover[h] != terminal:
                cut_reach += reach[h]
    return cut_reach
