"""Algorithm 1: the memorization set that is worth most against a fixed opponent.

With u^sigma(h) the value of history h to the player when it stops there, and pi(h) the reach of h under
(sigma_pre of the player, sigma of the opponent, chance), the best value of information state I is

    best(I) = max( sum of best over what follows I under sigma_pre - lambda,
                   sum over h in I of pi(h) u^sigma(h) )

and what follows is information states, or leaves worth pi(h) u^sigma(h). The set is read off from the root.
With menus, the first of the two is taken over the entries of I's menu.

Source: `precomputation`, Algorithm 1 and Theorem 3; leaves' values: `precomp_games.policies.leaf_values`.

Deviations: either player; information states with several histories (imperfect information, where perfect
recall makes the recursion sound); two meanings of stopping (`HistoryTree.from_game`, `stop_value`).

With a price per position, which histories share, see `position_prices` and `position_programs`.

The recursion is `Decisions.best`. With a budget in place of the penalty, see `budget`; for all penalties at
once, `frontier`.

Cost: one pass down the tree (reaches) and one back (values); no policy is asked.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError, NonNegativeFloat, NonNegativeInt, Player, public
from precomp_games.policies.precomputation import PrecomputationPolicy
from precomp_games.policies.rows import PolicyLike
from precomp_games.tree.facts import has_choice
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MemorizedState, MetaStrategy, realization_plan, strategy_policy

from ..programs import Clock
from .budget import best_within_budget, truncation_loss
from .decisions import Decisions, StrategyValue, utility_of
from .frontier import MemoryFrontier, check_known, frontier_of, position_frontier
from .known import knowing
from .memorized_states import alternatives
from .position_prices import PricedForest, best_closure, check_price
from .position_programs import best_at_most, best_choices

__all__ = ["BestPrecomputation", "best_of_frontier", "best_precomputation"]


@dataclasses.dataclass(frozen=True, eq=False)
class BestPrecomputation:
    """The answer of Algorithm 1, from the viewpoint of `player`.

    Attributes:
      player: 0 or 1.
      penalty: lambda, the utility that each memorized information state costs, or each position.
      value: utility - penalty * paid, the most that any memorization set has.
      paid: How many penalties that is, and what a budget counts: `size`, or with a price per position
        `num_positions`, each with its weight in the tree. What is known already costs nothing.
      utility: Base-game utility of playing the book, without the penalty. It is what is really earned as far
        as the tree's values are what play is worth after the book.
      unprepared: The same without any book, u^sigma. Under stop_value="evaluate" it is the evaluation of the
        player's first histories.
      size: |S|, in information states (histories where information is perfect).
      num_positions: How many distinct positions S has by the tree's `position_key`, or by the keys that were
        given as `price`; `size` where there are none.
      memorization_set: int32[size], what is memorized, increasing: entries' numbers in the tree, which are
        information states' where every menu has one entry.
      reach, gain, net_gain: float64[size], see `MemorizedState`.
      lead: float64[E], `StrategyValue.lead` of memorizing an entry and what is best after it, at `penalty`,
        or at what one information state more is worth within the budget. Alternatives are compared by it.
      work: How many histories and information states the pass went over.
      budget: The budget that was given, in information states; None where the penalty counted.
      truncation_loss: With a budget, how much more utility a set of the whole game can have than the best one
        on the tree, which was cut; 0 if nothing was cut. It falls with the penalty that the tree is
        expanded for.
      upper: No set on the tree is worth more (within the budget, no utility is greater). It is `value` where
        the answer is exact; where an integer program was stopped, it is above.
      price: What was paid for: "infosets" or "positions".
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    penalty: float
    value: float
    utility: float
    unprepared: float
    size: int
    num_positions: int
    memorization_set: np.ndarray = dataclasses.field(repr=False)
    reach: np.ndarray = dataclasses.field(repr=False)
    gain: np.ndarray = dataclasses.field(repr=False)
    net_gain: np.ndarray = dataclasses.field(repr=False)
    lead: np.ndarray = dataclasses.field(repr=False)
    work: dict[str, int]
    budget: int | None = None
    truncation_loss: float = 0.0
    upper: float = math.nan
    price: str = "infosets"
    paid: float = math.nan

    @property
    def gap(self) -> float:
        """How much more than this set another one can be worth at most."""
        return self.upper - self.value

    def states(self) -> Iterator[MemorizedState]:
        """The memorized states in the order of the tree: those reached earlier in the game first."""
        for k, entry in enumerate(self.memorization_set.tolist()):
            infoset = int(self.tree.entry_infoset[entry])
            history = int(self.tree.infoset_history[infoset])
            yield MemorizedState(
                infoset=infoset,
                entry=entry,
                history=history,
                actions=tuple(self.tree.actions(history)),
                reach=float(self.reach[k]),
                gain=float(self.gain[k]),
                net_gain=float(self.net_gain[k]),
                alternatives=alternatives(self.tree, entry, float(self.lead[entry]), self.lead),
            )

    @public
    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """A policy of the base game: the book where it reaches, sigma off it and for the opponent.

        Args:
          sigma: what the players compute during play, one or a pair; by default what the tree was
            expanded with (a tree that was loaded from a file has none).

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        strategy = MetaStrategy.of_set(self.tree, self.player, self.memorization_set)
        return strategy_policy(strategy, sigma)


@public
def best_precomputation(
    tree: HistoryTree,
    player: Player,
    *,
    price: Any = "infosets",
    budget: NonNegativeInt | None = None,
    keep: npt.ArrayLike | None = None,
    opponent: MetaStrategy | None = None,
    time_limit: NonNegativeFloat | None = None,
) -> BestPrecomputation:
    """Computes the best memorization set of `player` against a fixed opponent.

    Args:
      tree: a tree that was expanded with a finite penalty for `player`; where it is infinite, the set is
        empty. The opponent's penalty does not matter, because what the opponent does is given.
      player: 0 or 1, who prepares.
      price: what the penalty is paid for, and what a budget counts. "infosets": each information state.
        "positions": each position of the tree, on whichever levels it stands; the tree must be expanded with
        price="positions", or uncut. An array, int[m]: information states with equal keys share one price, on
        a tree that was expanded with truncate="none". With menus, those that share a price share the entry,
        too (its number in the menu).
      budget: find the best set of at most so many information states, or positions, which then cost nothing.
        The answer is exact on the tree, and its `truncation_loss` says what the tree may have cut. None: each
        costs the tree's penalty.
      keep: numbers of entries that are known already, one of an information state. They cost nothing, with a
        price per position nor does anything else at their positions, and the set has them wherever it comes
        to them, for better or worse. A tree keeps what is known, however seldom it is reached, if it was
        expanded with `weight`.
      opponent: what the other player does in the meta-game: a `MetaStrategy` on this tree, for instance one
        side of an equilibrium. None: it plays its sigma and memorizes nothing. What the opponent pays for
        memorizing is not in the result.
      time_limit: seconds after which an integer program is stopped. There is one for a price per position,
        with menus, or for a budget at which the frontier does not bend; `upper` then says how good the set
        is. None: it is solved.

    Raises:
      ValueError: an argument is not as above.
    """
    decisions = Decisions.against(tree, player, opponent)
    shared = check_price(price, tree, player)
    decisions = knowing(decisions, keep, shared)
    clock = Clock(time_limit)
    if shared is not None and has_choice(tree, player):
        return _by_choices(decisions, shared, budget, clock)
    if budget is not None:
        frontier = frontier_of(decisions) if shared is None else position_frontier(decisions, shared)
        return _within_budget(frontier, budget, clock)
    if shared is not None:
        return _by_position(decisions, shared, clock)
    best = decisions.best()
    return _result(decisions, best.memorize, tree.penalties[player], None, 0.0, best.lead)


@public
def best_of_frontier(
    frontier: MemoryFrontier,
    budget: NonNegativeInt,
    *,
    time_limit: NonNegativeFloat | None = None,
) -> BestPrecomputation:
    """`best_precomputation` with a budget, where the memory frontier is known: for many budgets on one tree.

    Args:
      frontier: of `memory_frontier`; its tree, player, price and opponent are meant.
      budget: the most information states, or positions.
      time_limit: see `best_precomputation`.

    Raises:
      ValueError: an argument is not as above.
    """
    return _within_budget(frontier, budget, Clock(time_limit))


def _within_budget(frontier: MemoryFrontier, budget: int, clock: Clock) -> BestPrecomputation:
    decisions = frontier.decisions
    if frontier.shared is None:
        found = best_within_budget(decisions, frontier, budget)
        loss = truncation_loss(decisions, frontier, found.utility, float(budget))
        lead = decisions.best(found.slope).lead
        return _result(decisions, found.chosen.astype(np.float64), 0.0, budget, loss, lead)
    assert frontier.threshold is not None
    forest, own = PricedForest.of_decisions(decisions, frontier.shared)
    _, unprepared = decisions.gains()
    curve = (frontier.breakpoints, frontier.sizes, frontier.utilities - unprepared)
    most = best_at_most(forest, curve, frontier.threshold[own], frontier.penalty, budget, clock)
    memorize = np.zeros(decisions.forest.num_entries)
    memorize[decisions.forest.first_entry[own[most.chosen]]] = 1.0
    utility = utility_of(decisions, memorize).value
    loss = truncation_loss(decisions, frontier, utility, float(budget))
    found_at = _shares(decisions, frontier.shared, memorize, 0.0)
    upper = max(unprepared + most.upper, utility)
    return _result(decisions, memorize, 0.0, budget, loss, found_at.lead, upper, frontier.shared)


def _by_position(decisions: Decisions, shared: npt.NDArray[np.int64], clock: Clock) -> BestPrecomputation:
    """The best set where positions have a price, and menus one entry."""
    penalty = decisions.tree.penalties[decisions.player]
    check_known(decisions.forest, decisions.player, shared)
    forest, own = PricedForest.of_decisions(decisions, shared)
    closure = best_closure(forest, penalty)
    memorize, prices = np.zeros(decisions.forest.num_entries), np.zeros(decisions.forest.num_infosets)
    memorize[decisions.forest.first_entry[own[closure.chosen]]] = 1.0
    prices[own] = closure.price
    bound = decisions.best(prices)  # Algorithm 1 once more: the certificate
    return _result(decisions, memorize, penalty, None, 0.0, bound.lead, bound.value, shared)


def _by_choices(
    decisions: Decisions, shared: npt.NDArray[np.int64], budget: int | None, clock: Clock
) -> BestPrecomputation:
    """The best set where positions have a price, and share the entry."""
    if (decisions.forest.infoset_weight != 1.0).any():
        raise ArgumentError(
            "expected nothing to be known already, nor other weights, with a price per "
            'position and menus of several entries; price="infosets" takes both'
        )
    penalty = decisions.tree.penalties[decisions.player] if budget is None else 0.0
    found = best_choices(decisions, shared, penalty, budget, clock)
    memorize = found.chosen.astype(np.float64)
    at = _shares(decisions, shared, memorize, penalty)
    _, unprepared = decisions.gains()
    loss = 0.0
    if budget is not None and decisions.cut_reach > 0.0:
        rest = decisions.cut_reach * decisions.tree.utility_range
        loss = min(rest, decisions.tree.penalties[decisions.player] * budget)
    return _result(decisions, memorize, penalty, budget, loss, at.lead, unprepared + found.upper, shared)


def _shares(
    decisions: Decisions, shared: npt.NDArray[np.int64], memorize: npt.NDArray[np.float64], penalty: float
) -> StrategyValue:
    """What a set is worth where each position's price is divided among what is memorized of it, by reach."""
    tree = decisions.forest
    infosets = tree.entry_infoset[np.flatnonzero(memorize)]
    prices = np.zeros(tree.num_infosets)
    total = np.bincount(shared[infosets], decisions.reach[infosets])
    share = decisions.reach[infosets] / total[shared[infosets]]
    prices[infosets] = penalty * share * tree.infoset_weight[infosets]
    return decisions.value(memorize, prices)


def _result(
    decisions: Decisions,
    memorize: npt.NDArray[np.float64],
    penalty: float,
    budget: int | None,
    loss: float,
    lead: npt.NDArray[np.float64],
    upper: float = -math.inf,
    shared: npt.NDArray[np.int64] | None = None,
) -> BestPrecomputation:
    tree, player = decisions.tree, decisions.player
    if decisions.known is not None:
        decisions, known = decisions.known
        memorize = np.where(known, 1.0, memorize)
        lead = np.where(known, utility_of(decisions, memorize).lead, lead)
    gain, unprepared = decisions.gains()
    members = np.flatnonzero(realization_plan(tree, memorize)).astype(np.int32)
    infosets, size = tree.entry_infoset[members], len(members)
    free = utility_of(decisions, memorize)
    utility = free.value
    num_positions = size
    if shared is not None:
        num_positions = len(np.unique(shared[infosets]))
    elif len(tree.position):
        num_positions = len(np.unique(tree.position[tree.infoset_history[infosets]]))
    priced = infosets
    if shared is not None:
        priced = infosets[np.unique(shared[infosets], return_index=True)[1]]
    paid = float(tree.infoset_weight[priced].sum())
    value = utility - penalty * paid if paid else utility
    return BestPrecomputation(
        tree=tree,
        player=player,
        penalty=penalty,
        value=value,
        utility=utility,
        unprepared=unprepared,
        size=size,
        num_positions=num_positions,
        memorization_set=members,
        reach=decisions.reach[infosets],
        gain=gain[members],
        net_gain=(lead if budget is None else free.lead)[members],
        work={"histories": tree.num_histories, "infosets": tree.num_infosets},
        budget=budget,
        truncation_loss=loss,
        lead=lead,
        upper=max(upper, value),
        price="infosets" if shared is None else "positions",
        paid=paid,
    )
