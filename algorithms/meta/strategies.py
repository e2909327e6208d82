"""Strategies of the meta-game, and what they mean for memorization sets and for the base game.

A strategy says, for each information state of a player, with what probability it goes on memorizing there
if it has memorized everything before. By Kuhn's theorem this is as good as a mixture of memorization sets.

A strategy belongs to the tree that it was made for, and to equal ones (by `HistoryTree.fingerprint`, which
does not count penalties): a copy in another process, the same tree under larger penalties. `check_opponent`
and `check_strategies` are where all others are refused.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from precomp_games.checks import check_indices, check_instance, check_player, check_probabilities, shown
from precomp_games.history_tree import HistoryTree
from precomp_games.policies import PolicyLike, PrecomputationPolicy, check_policies

from .passes import TreePasses, check_meta_tree

__all__ = ["MemorizedState", "MetaStrategy", "check_memorization_set", "check_opponent", "check_strategies"]


@dataclasses.dataclass(frozen=True)
class MemorizedState:
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
class MetaStrategy:
    """A player's strategy in the meta-game of a tree.

    tree: expanded with stop_value="backup".
    player: 0 or 1.
    memorize: float64[m], in [0, 1], the probability of going on at I; a copy that cannot be written to, with
      zeros at the other player's information states, whatever was given there.

    Raises:
      ValueError: the tree is no meta-game's, or there are not m probabilities.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    memorize: np.ndarray

    def __post_init__(self) -> None:
        caller = "MetaStrategy()"
        tree = check_meta_tree(self.tree, caller)
        player = check_player(self.player, caller)
        own = tree.infoset_player == player
        memorize = check_probabilities(self.memorize, tree.num_infosets, "memorize", caller, own)
        object.__setattr__(self, "player", player)
        object.__setattr__(self, "memorize", memorize)

    def __reduce__(self) -> tuple[Any, ...]:
        return MetaStrategy, (self.tree, self.player, self.memorize)

    @classmethod
    def of_set(cls, tree: HistoryTree, player: int, memorization_set: Any) -> MetaStrategy:
        """The strategy that memorizes a set of information states (indices) for sure.

        Raises:
          ValueError: the set holds another player's information state, or lacks one before its members.
        """
        caller = "MetaStrategy.of_set()"
        player, passes = check_player(player, caller), TreePasses(tree, caller)
        previous = passes.players[player].previous
        memorize = np.zeros(tree.num_infosets)
        memorize[check_memorization_set(memorization_set, tree, player, previous, caller)] = 1.0
        return cls(tree, player, memorize)

    def plan(self) -> np.ndarray:
        """The realization plan: float64[m], the probability that I is memorized; 0 at the other's."""
        return self._passes.plan(self.player, self.memorize)

    @functools.cached_property
    def _passes(self) -> TreePasses:
        return TreePasses(self.tree)

    @property
    def expected_size(self) -> float:
        """E|S|, the expected number of memorized information states."""
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
        """int32: a memorization set drawn from the mixture, information states in increasing order.

        Raises:
          ValueError: `rng` is no `numpy.random.Generator`.
        """
        check_instance(rng, np.random.Generator, "rng", "MetaStrategy.draw()")
        return np.flatnonzero(self.plan() > rng.random()).astype(np.int32)

    def states(self, opponent: MetaStrategy | None = None) -> Iterator[tuple[float, MemorizedState]]:
        """(probability that it is memorized, the state) for each that may be, in the order of the tree.

        Reach, gain and net gain are those of memorizing the state, with all before it, against `opponent`;
        what follows it is memorized as this strategy does.

        Args:
          opponent: the other player's strategy on this tree; None: it plays its sigma and memorizes nothing.

        Raises:
          ValueError: `opponent` is no such strategy.
        """
        # Gains are computed against strategies, so their module stands on this one.
        from ..preparation.decisions import memory_gains

        found = memory_gains(self.tree, self.player, opponent, "MetaStrategy.states()")
        gain, _ = found.gains()
        return self._states(gain, found.reach, found.stop, found.after.copy(), found.previous)

    def _states(
        self, gain: np.ndarray, reach: np.ndarray, stop: np.ndarray, value: np.ndarray, previous: np.ndarray
    ) -> Iterator[tuple[float, MemorizedState]]:
        """`states` from a `MemoryGains`; sums values of what follows up in `value`."""
        tree, plan, penalty = self.tree, self.plan(), self.tree.penalties[self.player]
        own = np.flatnonzero(tree.infoset_player == self.player)
        for k in own[::-1].tolist():
            on = self.memorize[k] * (value[k + 1] - penalty) if self.memorize[k] else 0.0
            value[previous[k] + 1] += on + (1.0 - self.memorize[k]) * stop[k]
        for k in own[plan[own] > 0.0].tolist():
            history = int(tree.infoset_history[k])
            yield (
                float(plan[k]),
                MemorizedState(
                    infoset=k,
                    history=history,
                    actions=tuple(tree.actions(history)),
                    reach=float(reach[k]),
                    gain=float(gain[k]),
                    net_gain=float(value[k + 1] - penalty - stop[k]),
                ),
            )

    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """A policy of the base game that plays like this strategy (sigma for the other player).

        At a history of the tree it mixes sigma_pre and sigma by how likely the player is to be memorizing
        still, given what it has played so far.

        Args:
          sigma: what the players compute during play, one or a pair; by default the tree's.

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        tree = self.tree
        play = tree.policies if sigma is None else check_policies(sigma, "sigma", "MetaStrategy.policy()")
        memorizing, total = np.ones(tree.num_histories), np.ones(tree.num_histories)
        self._passes.contribution_into(self.player, self.memorize, memorizing, total)
        # One history speaks for all of its information state: the player's own choices before are the same.
        at = tree.infoset_history
        goes_on = np.full(tree.num_infosets, np.nan)
        np.divide(memorizing[at] * self.memorize, total[at], out=goes_on, where=total[at] > 0.0)
        lookup = functools.partial(_mixed_row, tree, goes_on)
        return PrecomputationPolicy(tree.game, self.player, lookup, play)


def _mixed_row(tree: HistoryTree, goes_on: np.ndarray, state: Any) -> dict[int, float] | None:
    """{action: probability} at a base-game state, where `goes_on` is not NaN.

    goes_on: float64[m], of memorizing an information state, given that it has been come to.
    """
    infoset = tree.infoset_of(state)
    if infoset < 0 or np.isnan(goes_on[infoset]):
        return None
    p = float(goes_on[infoset])
    return {
        int(tree.action[child]): float(p * tree.sigma_pre[child] + (1.0 - p) * tree.sigma[child])
        for child in tree.children(int(tree.infoset_history[infoset]))
    }


# -- checks ------------------------------------------------------------------------------------------


def check_strategies(tree: HistoryTree, strategies: Any, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """Both players' arrays, of players 0 and 1 in this order.

    Raises:
      ValueError: they are not a strategy of each player on this tree.
    """
    pair = strategies if isinstance(strategies, tuple | list) else ()
    if [s.player if isinstance(s, MetaStrategy) else None for s in pair] != [0, 1]:
        raise ValueError(f"{caller}: expected strategies of players 0 and 1, got {shown(strategies)}")
    return _array_on(tree, pair[0], caller), _array_on(tree, pair[1], caller)


def check_opponent(tree: HistoryTree, player: int, opponent: Any, caller: str) -> np.ndarray:
    """The array of a strategy of the other player than `player`.

    Raises:
      ValueError: it is not one of that player's on this tree.
    """
    if not isinstance(opponent, MetaStrategy) or opponent.player != 1 - player:
        raise ValueError(
            f"{caller}: expected opponent to be a MetaStrategy of player {1 - player} or None, "
            f"got {shown(opponent)}"
        )
    return _array_on(check_meta_tree(tree, caller), opponent, caller)


def _array_on(tree: HistoryTree, strategy: MetaStrategy, caller: str) -> np.ndarray:
    """A strategy's array, if it is one on `tree`."""
    if strategy.tree is not tree and strategy.tree.fingerprint != tree.fingerprint:
        raise ValueError(f"{caller}: expected strategies on {tree}, got one on another tree, {strategy.tree}")
    return strategy.memorize


def check_memorization_set(
    value: Any, tree: HistoryTree, player: int, previous: np.ndarray, caller: str
) -> np.ndarray:
    """int64, increasing: a memorization set of a player.

    Args:
      value: indices of information states, any iterable of them.
      tree: that they are of.
      player: whose they are to be.
      previous: int32[m], the player's information state before each of its own, -1 for none.
      caller: the public function, "function()".

    Raises:
      ValueError: one of them is not the player's, or one that comes before it is missing.
    """
    members = np.unique(check_indices(value, tree.num_infosets, "memorization_set", caller))
    before = previous[members]
    closed = np.isin(before[before >= 0], members).all()
    if (tree.infoset_player[members] != player).any() or not closed:
        raise ValueError(
            f"{caller}: expected information states of player {player}, each with all of its own earlier "
            f"ones, got {shown(members.tolist())}"
        )
    return members
