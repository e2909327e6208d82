"""Strategies of the meta-game, and what they mean for memorization sets and for the base game.

A strategy says, for each information state of a player, with what probability it goes on memorising there
if it has memorised everything before. By Kuhn's theorem this is as good as a mixture of memorization sets.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from precomp_games.algorithms.best_precomputation import MemorisedState
from precomp_games.algorithms.memory_gains import memory_gains
from precomp_games.algorithms.meta_passes import TreePasses
from precomp_games.history_tree import HistoryTree
from precomp_games.policies import PolicyLike, PrecomputationPolicy

__all__ = ["MetaStrategy", "check_strategies"]


@dataclasses.dataclass(frozen=True, eq=False)
class MetaStrategy:
    """A player's strategy in the meta-game of a tree.

    player: 0 or 1.
    memorise: float64[m], in [0, 1], the probability of going on at I; not read at the other player's.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    memorise: np.ndarray

    @classmethod
    def of_set(cls, tree: HistoryTree, player: int, memorization_set: Any) -> MetaStrategy:
        """The strategy that memorises a set of information states (indices) for sure.

        Raises:
          ValueError: the set holds another player's information state, or lacks one before its members.
        """
        memorise = np.zeros(tree.num_infosets)
        members = np.asarray(list(memorization_set), np.int64)
        if len(members) and not ((members >= 0) & (members < tree.num_infosets)).all():
            raise ValueError(f"MetaStrategy.of_set(): expected indices below {tree.num_infosets}")
        memorise[members] = 1.0
        strategy = cls(tree, player, memorise)
        if (tree.infoset_player[members] != player).any() or (strategy.plan()[members] != 1.0).any():
            raise ValueError(
                f"MetaStrategy.of_set(): expected information states of player {player}, each with all of "
                f"its own earlier ones, got {sorted(members.tolist())}"
            )
        return strategy

    def plan(self) -> np.ndarray:
        """The realization plan: float64[m], the probability that I is memorised; 0 at the other's."""
        return self._passes.plan(self.player, self.memorise)

    @functools.cached_property
    def _passes(self) -> TreePasses:
        return TreePasses(self.tree)

    @property
    def expected_size(self) -> float:
        """E|S|, the expected number of memorised information states."""
        return float(self.plan().sum())

    def mixture(self) -> list[tuple[float, np.ndarray]]:
        """Memorization sets with probabilities that play the same: nested, at most m + 1 of them.

        Those I with x(I) >= t, for t drawn from [0, 1]: plans fall along the tree, so these sets are closed
        under predecessors, and I is in the set with probability x(I).
        """
        plan = self.plan()
        levels = np.unique(plan[plan > 0.0])[::-1]
        bounds = np.append(levels, 0.0)
        sets = [(float(1.0 - bounds[0]), np.zeros(0, np.int32))]
        for upper, lower in itertools.pairwise(bounds):
            sets.append((float(upper - lower), np.flatnonzero(plan >= upper).astype(np.int32)))
        return [(probability, members) for probability, members in sets if probability > 0.0]

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """int32: a memorization set drawn from the mixture, information states in increasing order."""
        return np.flatnonzero(self.plan() > rng.random()).astype(np.int32)

    def states(self, opponent: MetaStrategy) -> Iterator[tuple[float, MemorisedState]]:
        """(probability that it is memorised, the state) for each that may be, in the order of the tree.

        Reach, gain and net gain are those of memorising the state, with all before it, against `opponent`;
        what follows it is memorised as this strategy does.
        """
        tree, plan = self.tree, self.plan()
        found = memory_gains(tree, self.player, opponent, "MetaStrategy.states()")
        gain, _ = found.gains()
        stop, value, penalty = found.stop, found.after.copy(), tree.penalties[self.player]
        own = np.flatnonzero(tree.infoset_player == self.player)
        for k in own[::-1].tolist():
            on = self.memorise[k] * (value[k + 1] - penalty) if self.memorise[k] else 0.0
            value[found.previous[k] + 1] += on + (1.0 - self.memorise[k]) * stop[k]
        for k in own[plan[own] > 0.0].tolist():
            history = int(tree.infoset_history[k])
            yield (
                float(plan[k]),
                MemorisedState(
                    infoset=k,
                    history=history,
                    actions=tuple(tree.actions(history)),
                    reach=float(found.reach[k]),
                    gain=float(gain[k]),
                    net_gain=float(value[k + 1] - penalty - stop[k]),
                ),
            )

    def policy(self, sigma: PolicyLike | None = None) -> PrecomputationPolicy:
        """A policy of the base game that plays like this strategy (sigma for the other player).

        At a history of the tree it mixes sigma_pre and sigma by how likely the player is to be memorising
        still, given what it has played so far.

        Args:
          sigma: what the players compute during play, one or a pair; by default the tree's.
        """
        play = self.tree.policies if sigma is None else sigma
        pair = play if isinstance(play, tuple | list) else (play, play)
        tree = self.tree
        memorising, total = np.ones(tree.num_histories), np.ones(tree.num_histories)
        self._passes.contribution_into(self.player, self.memorise, memorising, total)
        # One history speaks for all: the player's own choices on the way are the same.
        first = tree.infoset_history
        with np.errstate(invalid="ignore"):
            goes_on = memorising[first] * self.memorise / total[first]  # NaN: it never comes there
        lookup = functools.partial(_mixed_row, tree, goes_on)  # a partial can be pickled
        return PrecomputationPolicy(tree.game, self.player, lookup, pair)


def _mixed_row(tree: HistoryTree, goes_on: np.ndarray, state: Any) -> dict[int, float] | None:
    """A state's mixture of sigma_pre and sigma, None where the strategy has none.

    goes_on: float64[m], how likely the player still memorises there; NaN where it never comes.
    """
    infoset = tree.infoset_of(state)
    if infoset < 0 or math.isnan(goes_on[infoset]):
        return None
    p = goes_on[infoset]
    return {
        int(tree.action[child]): float(p * tree.sigma_pre[child] + (1.0 - p) * tree.sigma[child])
        for child in tree.children(int(tree.infoset_history[infoset]))
    }


def check_strategies(
    tree: HistoryTree, strategies: tuple[MetaStrategy, MetaStrategy], caller: str
) -> tuple[np.ndarray, np.ndarray]:
    """Both players' arrays, of players 0 and 1 in this order.

    Raises:
      ValueError: they are not a strategy of each player on this tree.
    """
    good = len(strategies) == 2 and all(isinstance(s, MetaStrategy) for s in strategies)
    if not good or [s.player for s in strategies] != [0, 1]:
        raise ValueError(f"{caller}: expected strategies of players 0 and 1, got {strategies!r}")
    for strategy in strategies:
        fits = strategy.memorise.shape == (tree.num_infosets,)
        own = strategy.memorise[tree.infoset_player == strategy.player] if fits else strategy.memorise
        if not fits or not ((own >= 0.0) & (own <= 1.0)).all():
            raise ValueError(
                f"{caller}: expected {tree.num_infosets} probabilities of player {strategy.player}, "
                f"got {strategy.memorise!r}"
            )
    return strategies[0].memorise, strategies[1].memorise
