"""Passes over a history tree that every solver of the meta-game is made of.

In the meta-game with penalties charged on a player's own realization plan, player i's payoff against a
fixed strategy of its opponent j comes down to two numbers an information state I,

    stop(I)   value of what follows from stopping at I: sum over h in I of m_i(h) S_i(h),
    after(I)  value of what follows I directly and is no information state of i's,

with m_i(h) the product of i's sigma_pre on the way to h, and S_i(h) the value of i's sigma from h on, leaves
weighted with chance and with r_j(z), the probability that j's choices and policies contribute to z. Then

    memorize(I) = after(I) + sum over information states J right after I of v(J) - lambda_i,

and v(J) is a mixture of memorize(J) and stop(J) (expected values, CFR) or the larger one (best response).
This holds for any policies and supports, and for information states of any size.

Source: `precomputation` Definition 2 and Algorithm 2; the additive form is derived in docs/model.md.

Cost: a pass down the tree for r_j and a pass back for S_i, 8 bytes a history each to keep.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np

from precomp_games.checks import shown
from precomp_games.history_tree import CHANCE, HistoryTree

__all__ = ["PlayerView", "TreePasses", "check_meta_tree"]


def check_meta_tree(tree: Any, caller: str) -> HistoryTree:
    """A tree on which both players have strategies.

    Raises:
      ValueError: it is none, or was expanded for a single player's evaluated stops.
    """
    if isinstance(tree, HistoryTree) and tree.stop_value == "backup":
        return tree
    raise ValueError(
        f'{caller}: expected a HistoryTree with stop_value="backup", where both players\' sigma are known, '
        f"got {shown(tree)}"
    )


@dataclasses.dataclass(frozen=True)
class PlayerView:
    """What does not change while strategies do, from one player's side.

    value: float64[n], leaves' u^sigma for the player times chance reach; 0 elsewhere.
    own_reach: float64[n], m_i(h); 0 below a turn where the player had to stop.
    before: int32[n], the player's last information state before h, -1 for none.
    previous: int32[m], the same for its information states.
    penalty: lambda_i.
    """

    value: np.ndarray
    own_reach: np.ndarray
    before: np.ndarray
    previous: np.ndarray
    penalty: float


class TreePasses:
    """The passes of one tree. Strategies are float64[m]: the probability of going on memorizing at I."""

    def __init__(self, tree: HistoryTree, caller: str = "TreePasses()") -> None:
        """Prepares a tree.

        Raises:
          ValueError: `check_meta_tree` refuses it; `caller` is whom the error names.
        """
        self.tree = check_meta_tree(tree, caller)
        chance = np.ones(tree.num_histories)
        _chance_reach(tree.parent, tree.player, tree.sigma, CHANCE, chance)
        self.chance = chance  # float64[n], the product of chance's probabilities on the way
        leaf = tree.num_children == 0
        self.players = (self._view(0, chance, leaf), self._view(1, chance, leaf))

    def _view(self, player: int, chance: np.ndarray, leaf: np.ndarray) -> PlayerView:
        tree = self.tree
        utility = tree.value if player == 0 else tree.utility_sum - tree.value
        own_reach = np.ones(tree.num_histories)
        before = np.full(tree.num_histories, -1, np.int32)
        previous = np.full(tree.num_infosets, -1, np.int32)
        _own_reach(
            tree.parent, tree.player, tree.infoset, tree.sigma_pre, player, own_reach, before, previous
        )
        return PlayerView(
            value=np.where(leaf, chance * utility, 0.0),
            own_reach=own_reach,
            before=before,
            previous=previous,
            penalty=tree.penalties[player],
        )

    def contribution(self, player: int, strategy: np.ndarray) -> np.ndarray:
        """r_i: float64[n], how far a player's choices and policies let h be reached."""
        memorizing, total = np.ones(self.tree.num_histories), np.ones(self.tree.num_histories)
        self.contribution_into(player, strategy, memorizing, total)
        return total

    def contribution_into(
        self, player: int, strategy: np.ndarray, memorizing: np.ndarray, total: np.ndarray
    ) -> None:
        """Writes r_i into `total`, and the part of it that is memorizing still into `memorizing`."""
        t = self.tree
        _contribution(
            t.parent, t.player, t.infoset, t.sigma, t.sigma_pre, player, strategy, memorizing, total
        )  # fmt: skip

    def collect(self, player: int, rival: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(stop, after) against the opponent's contribution; after[I + 1], after[0] before the first."""
        tree, view = self.tree, self.players[player]
        stop, after = np.zeros(tree.num_infosets), np.zeros(tree.num_infosets + 1)
        _collect(
            tree.parent,
            tree.player,
            tree.infoset,
            tree.num_children,
            tree.sigma,
            player,
            view.value,
            view.own_reach,
            view.before,
            rival,
            np.zeros(tree.num_histories),
            stop,
            after,
        )
        return stop, after

    def payoff(self, player: int, strategy: np.ndarray, rival: np.ndarray) -> tuple[float, float]:
        """(value, utility) of a player's strategy: with its own penalties, without them."""
        view, tree = self.players[player], self.tree
        stop, after = self.collect(player, rival)
        utility, size = _expected(tree.infoset_player, view.previous, player, strategy, stop, after)
        return (utility - view.penalty * size if size else utility), utility

    def best_response(self, player: int, rival: np.ndarray) -> tuple[float, np.ndarray]:
        """(value, strategy of zeros and ones) of a best response; ties stop."""
        view, tree = self.players[player], self.tree
        stop, after = self.collect(player, rival)
        strategy = np.zeros(tree.num_infosets)
        value = _best(tree.infoset_player, view.previous, player, view.penalty, stop, after, strategy)
        return value, strategy

    def plan(self, player: int, strategy: np.ndarray) -> np.ndarray:
        """The realization plan x_i: float64[m], probability of memorizing I; 0 at the other's."""
        plan = np.zeros(self.tree.num_infosets)
        _plan(self.tree.infoset_player, self.players[player].previous, player, strategy, plan)
        return plan

    def behavior(self, player: int, plan: np.ndarray) -> np.ndarray:
        """The strategy of a realization plan, the inverse of `plan`; 0 where the plan does not come."""
        previous = self.players[player].previous
        above = np.where(previous >= 0, plan[previous], 1.0)
        strategy = np.divide(plan, above, out=np.zeros(self.tree.num_infosets), where=above > 0.0)
        strategy[self.tree.infoset_player != player] = 0.0
        return np.clip(strategy, 0.0, 1.0)


@numba.njit(cache=True)
def _chance_reach(
    parent: np.ndarray, mover: np.ndarray, sigma: np.ndarray, chance: int, out: np.ndarray
) -> None:
    for h in range(1, len(parent)):
        p = parent[h]
        out[h] = out[p] * sigma[h] if mover[p] == chance else out[p]


@numba.njit(cache=True)
def _own_reach(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma_pre: np.ndarray,
    player: int,
    own_reach: np.ndarray,
    before: np.ndarray,
    previous: np.ndarray,
) -> None:
    for h in range(len(parent)):
        if h > 0:
            p = parent[h]
            own_reach[h] = own_reach[p]
            before[h] = before[p]
            if mover[p] == player:
                if infoset[p] >= 0:
                    own_reach[h] *= sigma_pre[h]
                    before[h] = infoset[p]
                else:
                    own_reach[h] = 0.0
        if mover[h] == player and infoset[h] >= 0:
            previous[infoset[h]] = before[h]


@numba.njit(cache=True)
def _contribution(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma: np.ndarray,
    sigma_pre: np.ndarray,
    player: int,
    strategy: np.ndarray,
    memorizing: np.ndarray,
    total: np.ndarray,
) -> None:
    """Writes the probability through either policy, and the part of it in which it has not stopped."""
    for h in range(1, len(parent)):
        p = parent[h]
        memorizing[h] = memorizing[p]
        total[h] = total[p]
        if mover[p] == player:
            goes_on = memorizing[p] * strategy[infoset[p]] if infoset[p] >= 0 else 0.0
            memorizing[h] = goes_on * sigma_pre[h]
            total[h] = memorizing[h] + (total[p] - goes_on) * sigma[h]


@numba.njit(cache=True)
def _collect(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    num_children: np.ndarray,
    sigma: np.ndarray,
    player: int,
    value: np.ndarray,
    own_reach: np.ndarray,
    before: np.ndarray,
    rival: np.ndarray,
    worth: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
) -> None:
    for h in range(len(parent) - 1, -1, -1):
        own = mover[h] == player
        leaf = num_children[h] == 0
        if leaf:
            worth[h] = value[h] * rival[h]
        if h > 0:
            p = parent[h]
            worth[p] += worth[h] * sigma[h] if mover[p] == player else worth[h]
        if own and infoset[h] >= 0:
            stop[infoset[h]] += own_reach[h] * worth[h]
        elif own or leaf:
            after[before[h] + 1] += own_reach[h] * worth[h]


@numba.njit(cache=True)
def _expected(
    infoset_player: np.ndarray,
    previous: np.ndarray,
    player: int,
    strategy: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
) -> tuple[float, float]:
    """(utility, expected number of memorized information states)."""
    utility = after.copy()
    size = np.zeros(len(after))
    for k in range(len(stop) - 1, -1, -1):
        if infoset_player[k] == player:
            at = previous[k] + 1
            utility[at] += strategy[k] * utility[k + 1] + (1.0 - strategy[k]) * stop[k]
            size[at] += strategy[k] * (1.0 + size[k + 1])
    return utility[0], size[0]


@numba.njit(cache=True)
def _best(
    infoset_player: np.ndarray,
    previous: np.ndarray,
    player: int,
    penalty: float,
    stop: np.ndarray,
    after: np.ndarray,
    strategy: np.ndarray,
) -> float:
    best = after.copy()
    for k in range(len(stop) - 1, -1, -1):
        if infoset_player[k] == player:
            memorize = best[k + 1] - penalty
            strategy[k] = 1.0 if memorize > stop[k] else 0.0
            best[previous[k] + 1] += max(memorize, stop[k])
    return best[0]


@numba.njit(cache=True)
def _plan(
    infoset_player: np.ndarray, previous: np.ndarray, player: int, strategy: np.ndarray, plan: np.ndarray
) -> None:
    for k in range(len(plan)):
        if infoset_player[k] == player:
            plan[k] = strategy[k] * (plan[previous[k]] if previous[k] >= 0 else 1.0)
