"""Strategies of the meta-game as data: how a player mixes memorization sets.

A strategy says, for each information state of a player, with what probability it goes on memorizing there
if it has memorized everything before. By Kuhn's theorem this is as good as a mixture of memorization sets.

Source: `precomputation`, section 4.1.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from precomp_games.checks import (
    check_indices,
    check_instance,
    check_player,
    check_probabilities,
    shown,
)
from precomp_games.history_tree import HistoryTree
from precomp_games.policies import PolicyLike, PrecomputationPolicy, check_policies
from precomp_games.tree_facts import edge_product

__all__ = [
    "MemorizedState",
    "MetaStrategy",
    "Played",
    "check_memorization_set",
    "check_meta_tree",
    "check_strategies",
    "check_strategy",
    "strategy_policy",
]


@dataclasses.dataclass(frozen=True)
class MemorizedState:
    """Why one information state is worth learning; utilities are the book player's.

    Attributes:
      infoset: Its index in the tree.
      history: Its first history in the tree.
      actions: The base game's actions from the start to that history.
      reach: The probability of coming there, by the book and against the opponent.
      gain: The utility gained by knowing this state and nothing after it, compared with stopping here. Gains
        of the whole set add up to utility - unprepared.
      net_gain: The value lost by forgetting this state and all that follows it: the gains of all of these,
        less their penalties.
      probability: The probability with which it is memorized; 1 in a memorization set.
    """

    infoset: int
    history: int
    actions: tuple[int, ...]
    reach: float
    gain: float
    net_gain: float
    probability: float = 1.0


class Played(NamedTuple):
    """A strategy as a behavioral policy of the base game, on the tree.

    Attributes:
      memorizing: float64[n], the probability that the player is memorizing still when it comes to h, given
        what it has played so far; 0 where it never comes.
      probability: float64[n], of the edge that leads to h: sigma_pre and sigma mixed at the player's own
        turns, sigma elsewhere.
    """

    memorizing: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class MetaStrategy:
    """A player's strategy in the meta-game of a tree.

    Attributes:
      player: 0 or 1.
      memorize: float64[m], in [0, 1], the probability of memorizing I where all before it is memorized; 0 at
        the other player's information states.

    Raises:
      ValueError: these are not probabilities for the tree's information states, or there is no such player.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    memorize: npt.NDArray[np.float64]

    def __reduce__(self) -> tuple[Any, ...]:
        return MetaStrategy, (self.tree, self.player, self.memorize)

    def __post_init__(self) -> None:
        caller = "MetaStrategy()"
        tree, player = (
            check_instance(self.tree, HistoryTree, "tree", caller),
            check_player(self.player, caller),
        )
        own = tree.infoset_player == player
        memorize = check_probabilities(self.memorize, tree.num_infosets, "memorize", caller, own)
        object.__setattr__(self, "player", player)
        object.__setattr__(self, "memorize", memorize)

    @classmethod
    def of_set(cls, tree: HistoryTree, player: int, memorization_set: Iterable[int]) -> MetaStrategy:
        """The strategy that memorizes a set of information states (indices) for sure.

        Raises:
          ValueError: the set holds another player's information state, or lacks one before its members.
        """
        caller = "MetaStrategy.of_set()"
        check_instance(tree, HistoryTree, "tree", caller)
        player = check_player(player, caller)
        members = check_memorization_set(memorization_set, tree, player, caller)
        memorize = np.zeros(tree.num_infosets)
        memorize[members] = 1.0
        return cls(tree, player, memorize)

    @classmethod
    def of_plan(cls, tree: HistoryTree, player: int, plan: npt.ArrayLike) -> MetaStrategy:
        """The strategy of a realization plan, the inverse of `plan`; 0 where the plan does not come.

        Args:
          tree: see the class.
          player: 0 or 1.
          plan: float[m], in [0, 1], as `plan()` gives it. Where it is greater than before, it is what was
            before.

        Raises:
          ValueError: these are not probabilities for the tree's information states.
        """
        caller = "MetaStrategy.of_plan()"
        check_instance(tree, HistoryTree, "tree", caller)
        own = tree.infoset_player == check_player(player, caller)
        x = check_probabilities(plan, tree.num_infosets, "plan", caller, own)
        above = np.where(tree.previous >= 0, x[tree.previous], 1.0)
        memorize = np.divide(x, above, out=np.zeros(tree.num_infosets), where=above > 0.0)
        return cls(tree, player, np.minimum(memorize, 1.0))

    def plan(self) -> npt.NDArray[np.float64]:
        """The realization plan: float64[m], the probability that I is memorized; 0 at the other player's."""
        plan = np.array(self.memorize)
        _multiply_down(self.tree.previous, plan)
        return plan

    def reach(self) -> npt.NDArray[np.float64]:
        """float64[n]: how far the player's own choices and policies let each history be reached."""
        tree = self.tree
        return edge_product(
            tree, np.where(tree.player[tree.parent] == self.player, self.played.probability, 1.0)
        )

    @property
    def expected_size(self) -> float:
        """E|S|, the expected number of memorized information states."""
        return float(self.plan().sum())

    def mixture(self) -> list[tuple[float, npt.NDArray[np.int32]]]:
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

    def draw(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """int32: a memorization set drawn from the mixture, information states in increasing order."""
        check_instance(rng, np.random.Generator, "rng", "MetaStrategy.draw()")
        return np.flatnonzero(self.plan() > rng.random()).astype(np.int32)

    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """A policy of the base game that plays like this strategy, and sigma for the other player.

        At a history of the tree it mixes sigma_pre and sigma by how likely the player is to be memorizing
        still, given what it has played so far.

        Args:
          sigma: what the players compute during play, one or a pair; by default what the tree was
            expanded with (a tree that was loaded from a file has none).

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        return strategy_policy(self, sigma, "MetaStrategy.policy()", self.tree.stop_value == "backup")

    @functools.cached_property
    def played(self) -> Played:
        """What the strategy plays in the base game, on the histories of the tree."""
        tree = self.tree
        memorizing, probability = np.ones(tree.num_histories), np.array(tree.sigma)
        _mix(
            tree.parent, tree.player, tree.infoset, tree.sigma_pre,
            self.player, self.memorize, memorizing, probability,
        )  # fmt: skip
        return Played(memorizing, probability)


def strategy_policy(
    strategy: MetaStrategy, sigma: Any, caller: str, knows_sigma: bool = False
) -> PrecomputationPolicy:
    """`MetaStrategy.policy`, for a public function that errors name.

    `knows_sigma`: where no sigma is at hand, the tree's own is played as far as the tree goes.
    """
    tree = strategy.tree
    play = tree.policies if sigma is None else check_policies(sigma, "sigma", caller)
    # A tree from a file has no policies, but it knows what sigma plays where one may stop.
    stops = knows_sigma and play[strategy.player] is None
    return PrecomputationPolicy(tree.game, strategy.player, functools.partial(_row, strategy, stops), play)


def _row(strategy: MetaStrategy, stops: bool, state: Any) -> dict[int, float] | None:
    """What is played at a state; None: sigma, since nothing is memorized there.

    `stops`: the tree's own sigma where nothing is memorized, as far as the tree goes.
    """
    tree, infoset = strategy.tree, strategy.tree.infoset_of(state)
    if infoset < 0:
        return None
    # One history speaks for all: the player's own choices on the way are the same.
    history = int(tree.infoset_history[infoset])
    goes_on = float(strategy.played.memorizing[history] * strategy.memorize[infoset])
    if goes_on == 0.0 and not stops:
        return None
    children = tree.children(history)
    part = slice(children.start, children.stop)
    row = goes_on * tree.sigma_pre[part] + (1.0 - goes_on) * tree.sigma[part]
    return {int(a): float(p) for a, p in zip(tree.action[part], row, strict=True) if p > 0.0}


def check_meta_tree(tree: Any, caller: str) -> HistoryTree:
    """A tree on which strategies of the meta-game are known: not one with evaluated stops.

    Raises:
      ValueError: it is none.
    """
    if isinstance(tree, HistoryTree) and tree.stop_value == "backup":
        return tree
    raise ValueError(
        f'{caller}: expected a HistoryTree with stop_value="backup", where both players\' sigma are known, '
        f"got {shown(tree)}"
    )


def check_memorization_set(value: Any, tree: HistoryTree, player: int, caller: str) -> npt.NDArray[np.int64]:
    """A memorization set of one player: the indices of its information states, increasing.

    Raises:
      ValueError: the set holds another player's information state, or lacks one before its members.
    """
    members = np.unique(check_indices(value, tree.num_infosets, "memorization_set", caller))
    before = tree.previous[members]
    closed = np.isin(before[before >= 0], members).all()
    if (tree.infoset_player[members] != player).any() or not closed:
        raise ValueError(
            f"{caller}: expected information states of player {player}, each with all of its own earlier "
            f"ones, got {shown(members.tolist())}"
        )
    return members


def check_strategy(value: Any, tree: HistoryTree, player: int, name: str, caller: str) -> MetaStrategy:
    """A strategy of one player on one tree; penalties do not matter.

    Raises:
      ValueError: it is none, or another player's, or on another tree.
    """
    if not isinstance(value, MetaStrategy) or value.player != player:
        raise ValueError(
            f"{caller}: expected {name} to be a MetaStrategy of player {player}, got {shown(value)}"
        )
    check_meta_tree(tree, caller)
    if not value.tree.same_as(tree):
        raise ValueError(f"{caller}: expected strategies on {tree}, got one on another tree, {value.tree}")
    return value


def check_strategies(value: Any, tree: HistoryTree, caller: str) -> tuple[MetaStrategy, MetaStrategy]:
    """Strategies of players 0 and 1, in this order, on one tree.

    Raises:
      ValueError: they are not.
    """
    check_meta_tree(tree, caller)
    pair = isinstance(value, list | tuple) and len(value) == 2
    if not pair or not all(isinstance(s, MetaStrategy) and s.player == i for i, s in enumerate(value)):
        raise ValueError(f"{caller}: expected strategies of players 0 and 1, got {shown(value)}")
    first, second = (check_strategy(value[i], tree, i, f"strategies[{i}]", caller) for i in (0, 1))
    return first, second


@numba.njit(cache=True)
def _multiply_down(previous: np.ndarray, plan: np.ndarray) -> None:
    for k in range(len(plan)):
        if previous[k] >= 0:
            plan[k] *= plan[previous[k]]


@numba.njit(cache=True)
def _mix(
    parent: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    sigma_pre: np.ndarray,
    player: int,
    memorize: np.ndarray,
    memorizing: np.ndarray,
    played: np.ndarray,
) -> None:
    """Mixes sigma_pre into `played`, which holds sigma, by how likely the player is memorizing still."""
    for h in range(1, len(parent)):
        p = parent[h]
        memorizing[h] = memorizing[p]
        if mover[p] == player:
            goes_on = memorizing[p] * memorize[infoset[p]] if infoset[p] >= 0 else 0.0
            by_heart = goes_on * sigma_pre[h]
            played[h] = by_heart + (1.0 - goes_on) * played[h]
            memorizing[h] = by_heart / played[h] if played[h] > 0.0 else 0.0
