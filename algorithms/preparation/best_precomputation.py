"""Algorithm 1: the memorization set that is worth most against a fixed opponent.

Let u^sigma(h) be the value of history h to the player when it stops there, and let pi(h) be the reach of h
under sigma_pre of the player, sigma of the opponent, and chance. The best value of an information state I is

    best(I) = max( sum of best over what follows I under sigma_pre - lambda,
                   sum over h in I of pi(h) u^sigma(h) ).

What follows I are information states, or leaves, which are worth pi(h) u^sigma(h). The set is read off from
the first information states downwards. With menus, the first of the two is taken over the entries of the menu
at I.

The penalty lambda may be paid for each position instead, which its information states share, and a budget may
take the place of the penalty. These are solved by

    price per            menus            with a penalty               with a budget
    information state    of any length    `Decisions.best`             `frontier`: a knapsack
    position             of one entry     `position_prices`            `position_programs`: a closure
    position             of several       `position_programs`: entries that information states share

A plan is an order of learning. The best sets of each size need not contain each other; where
menus have one entry, those do at which the memory frontier bends. Each step extends what is known already as
well as possible, and gives the value of the best set of that size. It looks no further than
itself; another first book might make a better second one.

Source: `precomputation`, Algorithm 1 and Theorem 3; leaves' values: `precomp_games.policies.leaf_values`.

Deviations: the algorithm serves either player; information states may have several histories (imperfect
information, where perfect recall makes the recursion sound); stopping has two meanings
(`HistoryTree.from_game`, `stop_value`).

Cost: one pass down the tree (reaches) and one back (values), and three over the information states: what each
is worth alone, the recursion, and what the set is worth. No policy is asked. A plan has two budgets a step.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Result
from precomp_games.policies.rows import PolicyLike
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import (
    Alternative,
    MemorizedState,
    MetaStrategy,
    PrecomputationPolicy,
    realization_plan,
    strategy_policy,
)

from ..programs import Clock
from .decisions import Decisions, StrategyValue
from .frontier import MemoryFrontier, best_within_budget, frontier_of, truncation_loss
from .position_prices import PricedForest, best_closure
from .position_programs import best_closure_within_budget, best_shared_entries


@dataclasses.dataclass(frozen=True, eq=False)
class BestPrecomputation(Result):
    """The answer of Algorithm 1, from the viewpoint of `player`.

    Attributes:
      player: 0 or 1.
      penalty: lambda, the utility that each memorized information state costs, or each position.
      value: utility - penalty * paid, the most that any memorization set has.
      paid: The number of penalties paid, which a budget counts: `size`, or with a price per position
        `num_positions`, each with its weight in the tree. What is known already costs nothing.
      utility: Base-game utility of playing the book, without the penalty. It is what is really earned as far
        as the tree's values are what play is worth after the book.
      unprepared: The same without any book, u^sigma. Under stop_value="evaluate" it is the evaluation of the
        player's first histories.
      size: |S|, in information states (histories where information is perfect).
      num_positions: The number of distinct positions of S by the tree's `position_key`, or by the keys that
        were given as `price`; `size` where there are none.
      memorization_set: int32[size], the memorized entries, increasing: entries' numbers in the tree, which
        are information states' where every menu has one entry.
      reach, gain, net_gain: float64[size], see `MemorizedState`.
      advantage: float64[E], `StrategyValue.advantage` of memorizing an entry and what is best after it, at
        `penalty`, or at what one information state more is worth within the budget. Alternatives are compared
        by it.
      work: The numbers of histories and information states in the pass.
      budget: The budget that was given, in information states; None where the penalty counted.
      truncation_loss: With a budget, how much more utility a set of the whole game can have than the best one
        on the tree, which was cut; 0 if nothing was cut. It falls with the penalty that the tree is
        expanded for.
      upper: No set on the tree is worth more (within the budget, no utility is greater). It is `value` where
        the answer is exact; where an integer program was stopped, it is above.
      price: The unit that was paid for: "infosets" or "positions".
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
    advantage: np.ndarray = dataclasses.field(repr=False)
    work: dict[str, int]
    budget: int | None = None
    truncation_loss: float = 0.0
    upper: float = math.nan
    price: str = "infosets"
    paid: float = math.nan

    @property
    def gap(self) -> float:
        """Upper bound on how much more than this set another one can be worth."""
        return self.upper - self.value

    def states(self) -> Iterator[MemorizedState]:
        """Yield the memorized states in the order of the tree: those reached earlier in the game first."""
        for k, entry in enumerate(self.memorization_set.tolist()):
            worth = {name: float(getattr(self, name)[k]) for name in ("reach", "gain", "net_gain")}
            yield _memorized_state(self.tree, entry, float(self.advantage[entry]), self.advantage, **worth)

    def columns(self) -> dict[str, Any]:
        """Return a row for each memorized entry: information state, action, reach, gain and net gain."""
        tree, entries = self.tree, self.memorization_set
        names = {
            "infoset": [tree.key(k) for k in tree.entry_infoset[entries].tolist()],
            "action": tree.entry_action[entries],
        }
        return names | {"reach": self.reach, "gain": self.gain, "net_gain": self.net_gain}

    @public
    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """Return a policy of the base game: the book where it reaches, sigma off it and for the opponent.

        Args:
          sigma: the players' policies during play, one or a pair; by default what the tree was
            expanded with (a tree that was loaded from a file has none).

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        strategy = MetaStrategy.of_set(self.tree, self.player, self.memorization_set)
        return strategy_policy(strategy, sigma)


@public
def best_precomputation(
    tree: HistoryTree,
    player: checks.Player,
    *,
    price: Any = "infosets",
    budget: checks.NonNegativeInt | None = None,
    keep: npt.ArrayLike | None = None,
    opponent: MetaStrategy | None = None,
    time_limit: checks.NonNegativeFloat | None = None,
) -> BestPrecomputation:
    """Compute the best memorization set of `player` against a fixed opponent.

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
        The answer is exact on the tree; its `truncation_loss` bounds what the tree has pruned. None: each
        costs the tree's penalty.
      keep: numbers of entries that are known already, one of an information state. They cost nothing, with a
        price per position nor does anything else at their positions, and the set has them wherever it comes
        to them, for better or worse. A tree keeps what is known, however seldom it is reached, if it was
        expanded with `weight`.
      opponent: the other player's strategy in the meta-game: a `MetaStrategy` on this tree, for instance one
        side of an equilibrium. None: it plays its sigma and memorizes nothing. What the opponent pays for
        memorizing is not in the result.
      time_limit: seconds after which an integer program is stopped. There is one for a price per position,
        with menus, or for a budget at which the frontier does not bend; `upper` then bounds how good the set
        is. None: it is solved.
    """
    decisions = Decisions.against(tree, player, opponent, price=price, keep=keep)
    return best_set(decisions, budget, Clock(time_limit))


@public
def best_of_frontier(
    frontier: MemoryFrontier,
    budget: checks.NonNegativeInt,
    *,
    time_limit: checks.NonNegativeFloat | None = None,
) -> BestPrecomputation:
    """Run `best_precomputation` with a budget on a known memory frontier: for many budgets on one tree.

    Args:
      frontier: of `memory_frontier`; its tree, player, price and opponent are meant.
      budget: the most information states, or positions.
      time_limit: see `best_precomputation`.
    """
    decisions = frontier.decisions
    return _result(decisions, _within_budget(decisions, budget, Clock(time_limit), frontier), budget)


def best_set(decisions: Decisions, budget: int | None, clock: Clock) -> BestPrecomputation:
    """Return `best_precomputation` on decisions."""
    if decisions.shared is not None and decisions.has_choice:
        found = _shared_entries(decisions, budget, clock)
    elif budget is not None:
        found = _within_budget(decisions, budget, clock)
    elif decisions.shared is not None:
        found = _closure(decisions)
    else:  # Algorithm 1
        best = decisions.best()
        found = _Solution(best.memorize, best.advantage)
    return _result(decisions, found, budget)


class _Solution(NamedTuple):
    """Output of a solver.

    Attributes:
      memorize: float64[E], the set, zeros and ones; what cannot be reached does not count.
      advantage: float64[E], see `BestPrecomputation`.
      played: The value of the set without penalties; None where the solver did not compute it.
      truncation_loss: See there.
      upper: See there; below `value` where the answer is exact.
    """

    memorize: npt.NDArray[np.float64]
    advantage: npt.NDArray[np.float64]
    played: StrategyValue | None = None
    truncation_loss: float = 0.0
    upper: float = -math.inf


def _within_budget(
    decisions: Decisions, budget: int, clock: Clock, frontier: MemoryFrontier | None = None
) -> _Solution:
    """Return the best set within a budget, with the memory frontier if it is known."""
    frontier = frontier or frontier_of(decisions)
    if frontier.shared is None:
        choice = best_within_budget(frontier, budget)
        loss = truncation_loss(frontier, choice.utility, float(budget))
        return _Solution(choice.played.memorize, choice.best.advantage, choice.played, loss)
    memorize, most = best_closure_within_budget(frontier, budget, clock)
    played = decisions.value(memorize, 0.0)
    loss = truncation_loss(frontier, played.value, float(budget))
    upper = max(decisions.gains()[1] + most, played.value)
    return _Solution(played.memorize, played.advantage, played, loss, upper)


def _closure(decisions: Decisions) -> _Solution:
    """Return the best set where positions have a price, and menus one entry."""
    decisions.counted_weights()  # refuses others
    forest, own = PricedForest.of_decisions(decisions)
    closure = best_closure(forest, decisions.tree.penalties[decisions.player])
    prices = np.zeros(decisions.forest.num_infosets)
    prices[own] = closure.price
    bound = decisions.best(prices)  # Algorithm 1 once more: the certificate
    memorize = np.zeros(decisions.forest.num_entries)
    memorize[decisions.forest.first_entry[own]] = closure.chosen
    return _Solution(memorize, bound.advantage, upper=bound.value)


def _shared_entries(decisions: Decisions, budget: int | None, clock: Clock) -> _Solution:
    """Return the best set where positions have a price, and share the entry."""
    tree, shared = decisions.forest, decisions.shared
    assert shared is not None
    if (tree.infoset_weight != 1.0).any():
        raise ArgumentError(
            "expected nothing to be known already, nor other weights, with a price per "
            'position and menus of several entries; price="infosets" takes both'
        )
    lambda_ = tree.penalties[decisions.player]
    penalty = lambda_ if budget is None else 0.0
    memorize, most = best_shared_entries(decisions, penalty, budget, clock)
    # For the advantages, the price of a position is divided among what is memorized of it, by reach.
    infosets = tree.entry_infoset[np.flatnonzero(memorize)]
    reach = decisions.reach[infosets]
    prices = np.zeros(tree.num_infosets)
    prices[infosets] = penalty * (reach / np.bincount(shared[infosets], reach)[shared[infosets]])
    at = decisions.value(memorize, prices)
    loss = 0.0
    if budget is not None and decisions.cut_reach > 0.0:
        loss = min(decisions.cut_reach * decisions.tree.utility_range, lambda_ * budget)
    return _Solution(at.memorize, at.advantage, None, loss, decisions.gains()[1] + most)


def _result(decisions: Decisions, solution: _Solution, budget: int | None) -> BestPrecomputation:
    shared, memorize, advantage, played = decisions.shared, *solution[:3]
    if decisions.known is not None:
        decisions, known = decisions.known
        played = decisions.value(np.where(known, 1.0, memorize), 0.0)
        advantage = np.where(known, played.advantage, advantage)
    elif played is None:
        played = decisions.value(memorize, 0.0)
    tree, player = decisions.tree, decisions.player
    gain, unprepared = decisions.gains()
    members = np.flatnonzero(realization_plan(tree, played.memorize)).astype(np.int32)
    infosets, size = tree.entry_infoset[members], len(members)
    priced, num_positions = infosets, size
    if shared is not None:
        priced = infosets[np.unique(shared[infosets], return_index=True)[1]]
        num_positions = len(priced)
    elif len(tree.position):
        num_positions = len(np.unique(tree.position[tree.infoset_history[infosets]]))
    penalty = tree.penalties[player] if budget is None else 0.0
    paid = float(tree.infoset_weight[priced].sum())
    value = played.value - penalty * paid if paid else played.value
    return BestPrecomputation(
        tree=tree,
        player=player,
        penalty=penalty,
        value=value,
        utility=played.value,
        unprepared=unprepared,
        size=size,
        num_positions=num_positions,
        memorization_set=members,
        reach=decisions.reach[infosets],
        gain=gain[members],
        net_gain=(advantage if budget is None else played.advantage)[members],
        work={"histories": tree.num_histories, "infosets": tree.num_infosets},
        budget=budget,
        truncation_loss=solution.truncation_loss,
        advantage=advantage,
        upper=max(solution.upper, value),
        price="infosets" if shared is None else "positions",
        paid=paid,
    )


@public
def value_against_components(book: BestPrecomputation) -> npt.NDArray[np.float64]:
    """Return the utility of a memorization set against each component of the mixture that it was made for.

    Args:
      book: of `best_precomputation` on a tree whose opponent's sigma is a `MixturePolicy`, drawn once per
        game. The set is taken as it is, also where it was made against a strategy.

    Returns:
      float64[K], the player's base-game utility, without penalties. Its mean by the mixture's weights is
      `book.utility`.

    Raises:
      ValueError: `book` is no such result; files of trees do not hold the components.
    """
    tree, player = book.tree, book.player
    if tree.mixture is None or tree.mixture.player == player:
        raise ArgumentError(
            "expected a tree whose opponent is a MixturePolicy that is drawn once per game, got "
            f"{tree!r} and player {player}; trees that were loaded from files know no components"
        )
    memorize = np.zeros(tree.num_entries)
    memorize[book.memorization_set] = 1.0
    components = range(len(tree.mixture.weights))
    return np.array(
        [Decisions.against(tree, player, component=k).value(memorize, 0.0).value for k in components]
    )


@public
def memorized_states(strategy: MetaStrategy, opponent: MetaStrategy | None = None) -> list[MemorizedState]:
    """Return each entry that a strategy may memorize, in the order of the tree.

    Reach, gain and net gain are those of memorizing the state, with all before it, against the opponent; what
    follows it is memorized as the strategy does. An alternative is followed by what is best after it; of
    entries that an equilibrium mixes, none is worth less than another.

    Args:
      strategy: of the player who prepares.
      opponent: the other player's strategy on the same tree; None: it plays its sigma.
    """
    tree = strategy.tree
    decisions = Decisions.against(tree, strategy.player, opponent)
    gain, _ = decisions.gains()
    net_gain, plan = decisions.value(strategy.memorize).advantage, strategy.realization_plan()
    best = decisions.best().advantage
    return [
        _memorized_state(
            tree,
            entry,
            float(net_gain[entry]),
            best,
            reach=float(decisions.reach[tree.entry_infoset[entry]]),
            gain=float(gain[entry]),
            net_gain=float(net_gain[entry]),
            probability=float(plan[entry]),
        )
        for entry in np.flatnonzero(plan).tolist()
    ]


def _memorized_state(
    tree: HistoryTree, entry: int, own: float, advantage: npt.NDArray[np.float64], **worth: float
) -> MemorizedState:
    """Return a memorized entry and its alternatives, by `own` advantage and float64[E] of the others."""
    infoset = int(tree.entry_infoset[entry])
    history = int(tree.infoset_history[infoset])
    first, end = tree.first_entry[infoset : infoset + 2].tolist()
    alternatives = (
        Alternative(tree.memorized_row(other), own - float(advantage[other]))
        for other in range(first, end)
        if other != entry
    )
    return MemorizedState(
        infoset=infoset,
        entry=entry,
        history=history,
        actions=tuple(tree.actions(history)),
        alternatives=tuple(alternatives),
        **worth,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PlanStep(Result):
    """A step of a plan; utilities are the player's.

    Attributes:
      budget: The most that is learned by then, in information states or positions.
      learned: The number learned, without those known at the start; at most `budget`.
      chosen: The set by then, with all that was known before. Its `paid` is what this step adds.
      best: The best set of at most `budget` that need not contain the plan's earlier ones.
    """

    budget: int
    learned: int
    chosen: BestPrecomputation
    best: BestPrecomputation

    @property
    def loss(self) -> float:
        """Utility lost by nesting: that of the best set of this size less that of the plan's."""
        return self.best.utility - self.chosen.utility


@public
def precomputation_plan(
    tree: HistoryTree,
    player: checks.Player,
    budgets: Sequence[int],
    *,
    price: Any = "infosets",
    keep: npt.ArrayLike | None = None,
    time_limit: checks.NonNegativeFloat | None = None,
) -> tuple[PlanStep, ...]:
    """Plan the order in which `player` learns: the best set by each budget, one inside the next.

    Args:
      tree: see `best_precomputation`.
      player: 0 or 1.
      budgets: the total learned by each step, growing: 10, 20, 50 is 10 at first, then 10 more, then 30.
      price: see `best_precomputation`; with a price per position, menus must have one entry.
      keep: the entries known at the start, see there.
      time_limit: seconds after which each integer program is stopped, see there.

    Returns:
      A step for each budget. Each contains the one before, and is its best extension.
    """
    numbers = budgets if isinstance(budgets, Sequence) and not isinstance(budgets, str | bytes) else ()
    wanted = [checks.check_integer(budget, f"budgets[{k}]", least=0) for k, budget in enumerate(numbers)]
    if not wanted or any(after <= before for before, after in itertools.pairwise(wanted)):
        raise ArgumentError(f"expected budgets to be numbers that grow, got {shown(budgets)}")

    best_of = functools.partial(best_precomputation, tree, player, price=price, time_limit=time_limit)
    steps: list[PlanStep] = []
    known, learned = keep, 0
    for budget in wanted:
        chosen = best_of(budget=budget - learned, keep=known)
        learned += round(chosen.paid)
        best = best_of(budget=budget, keep=keep) if steps else chosen
        steps.append(PlanStep(budget, learned, chosen, best))
        known = np.union1d([] if keep is None else keep, chosen.memorization_set).astype(np.int64)
    return tuple(steps)
