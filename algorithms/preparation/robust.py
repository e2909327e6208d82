"""The memorization set that holds best against an opponent who is not quite the model.

At each of the opponent's turns nature chooses what is played, from a set around the model (`ambiguity`), so
that the player gets least; after the player has stopped, too, wherever the tree has the opponent's turns. The
answer is the set with the largest utility against that, less its penalties.

Algorithm 1 does not do it. Its recursion prices a memorized history by lambda over the reach of what comes
before; but nature's reach depends on what is memorized below, and dividing by the model's reach gives other
sets. The recursion over sizes (`robust_tables`) counts entries instead, and prices them at the root.

Nature is the worst for a given set of entries. That is what a player meets who cannot hide the book; one
who mixes books can be better off.

Source: robust dynamic programs with a rectangular set, Iyengar 2005, Nilim and El Ghaoui 2005; what nature
plays, see `ambiguity`.

Deviations: nature plays at the opponent's turns of the tree. What leaves are worth is given, and so is what
stopping is worth under stop_value="evaluate". A tree that was cut lacks what is rare by the model's reach;
only with truncate="none" the answer is that of the game.

Cost: see `robust_tables`. A tree like that of a chess opening, of 50,000 histories, takes a second for all
sizes up to 200.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from precomp_games._support.config import memory_limit
from precomp_games._support.memory import size_text
from precomp_games._support.results import Result
from precomp_games._support.validation import ArgumentError, NonNegativeInt, Player, public
from precomp_games.policies.rows import PolicyLike
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import (
    MemorizedState,
    MetaStrategy,
    PrecomputationPolicy,
    strategy_policy,
)

from .ambiguity import Ambiguity
from .best_precomputation import memorized_states
from .decisions import Decisions
from .robust_tables import chosen_entries, stopped_worth, tables_of

_BYTES = 14  # of a size in a table
_MOST_SIZES = 2**31 - 2**20
_STEPS = 10_000_000  # of the search at one turn, some seconds


@dataclasses.dataclass(frozen=True, eq=False)
class RobustPrecomputation(Result):
    """The best set against the worst opponent of a set around the model; utilities are `player`'s.

    Attributes:
      tree: What was solved.
      player: 0 or 1.
      ambiguity: The set of opponents.
      penalty: lambda, what each entry costs; 0 where there was a budget.
      value: utility - penalty * paid, the most that any memorization set has.
      utility: What the set is worth against the worst of the opponents, without penalties.
      nominal: What it is worth against the model itself.
      unprepared: What no book is worth against the worst for that.
      size: |S|, with what is known already.
      paid: How many entries are paid for: `size` without what has weight 0.
      memorization_set: int32[size], entries, increasing.
      sizes: int64[k], the sizes at which the best utility rises, 0 first: all up to the budget; with a
        penalty those that are worth more at this penalty than all smaller ones, and so all that are best at a
        larger penalty.
      utilities: float64[k], the utility of the best set of each of these sizes.
      nature: float64[n], the worst opponent's probabilities of the edges from its turns; elsewhere they are
        the tree's sigma. Against it the set has its utility, and no opponent of the set leaves it less.
      upper: No set on the tree has a greater value, nor is any of `utilities` too small by more than upper -
        value. It is `value` where the answer is exact: always, but for large radii at turns with many replies
        and much to memorize after each, where a search was stopped.
      budget: The budget that was given; None where the penalty counted.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    ambiguity: Ambiguity = dataclasses.field(repr=False)
    penalty: float
    value: float
    utility: float
    nominal: float
    unprepared: float
    size: int
    paid: int
    memorization_set: npt.NDArray[np.int32] = dataclasses.field(repr=False)
    sizes: npt.NDArray[np.int64] = dataclasses.field(repr=False)
    utilities: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    nature: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    upper: float
    budget: int | None = None

    def states(self) -> Iterator[MemorizedState]:
        """The memorized states in the order of the tree, with reaches and gains against `nature`."""
        penalties = (self.penalty, math.inf) if self.player == 0 else (math.inf, self.penalty)
        tree = dataclasses.replace(self.tree, sigma=self.nature, penalties=penalties)
        yield from memorized_states(MetaStrategy.of_set(tree, self.player, self.memorization_set))

    @public
    def policy(self, sigma: PolicyLike | Sequence[PolicyLike | None] | None = None) -> PrecomputationPolicy:
        """A policy of the base game: the book where it reaches, sigma off it and for the opponent.

        Args:
          sigma: see `BestPrecomputation.policy`.

        Raises:
          ValueError: `sigma` is no policy, or pair of them.
        """
        return strategy_policy(MetaStrategy.of_set(self.tree, self.player, self.memorization_set), sigma)


@public
def robust_precomputation(
    tree: HistoryTree, player: Player, ambiguity: Ambiguity, *, budget: NonNegativeInt | None = None
) -> RobustPrecomputation:
    """Computes the memorization set of `player` that is worth most against the worst of the opponents.

    Args:
      tree: of perfect information, on which only `player` memorizes: the opponent's penalty is infinite.
        Nature plays the edges that it has (see `ambiguity`), so expand it with truncate="none", or with a
        small penalty, and with the replies that the model may have missed.
      player: 0 or 1, who prepares.
      ambiguity: how far the opponent may be from the model at each turn.
      budget: the most entries. None: each costs the tree's penalty.

    Raises:
      ValueError: an argument is not as above; information states have weights other than 0 and 1; the tables
        need more memory than there is.
    """
    if tree.infoset_keys is not None or math.isfinite(tree.penalties[1 - player]):
        raise ArgumentError(
            "expected a tree of perfect information with an infinite penalty for the opponent, who "
            f"memorizes nothing, got {tree}"
        )
    decisions = Decisions.against(tree, player)
    weight = decisions.counted_weights()
    radius = np.array(ambiguity.radius(tree, player))
    kind = ambiguity.kind
    decides = (tree.player == player) & (tree.infoset >= 0)
    evaluates = tree.stop_value == "evaluate"

    def worst(played: np.ndarray, stopped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What all histories are worth, and nature."""
        edges, nature, evaluated = np.array(played), np.array(tree.sigma), stopped & evaluates
        total = tree.utility_sum
        return stopped_worth(tree.arrays, edges, evaluated, player, total, kind, radius, nature), nature

    worth, _ = worst(tree.sigma, decides)
    penalty = tree.penalties[player] if budget is None else 0.0
    most = int(min(memory_limit() / _BYTES, _MOST_SIZES))
    fits, tables = tables_of(
        tree.arrays, tree.sigma, worth, weight, player, kind, radius,
        len(weight) if budget is None else min(budget, len(weight)), penalty, most, _STEPS,
    )  # fmt: skip
    if not fits:
        raise ArgumentError(
            f"expected tables that fit into {size_text(most * _BYTES)}, got more on {tree}: "
            "give a smaller budget, a larger penalty or a smaller tree"
        )
    kept = int(tables.length[0])
    whole = slice(tables.start[0], tables.start[0] + kept)
    # With a penalty, what is kept rises in value; with a budget, in utility.
    chosen = chosen_entries(tree.arrays, player, kind, radius, tables)
    members = np.flatnonzero(chosen).astype(np.int32)
    strategy = MetaStrategy.of_set(tree, player, members)
    memorized = np.zeros(tree.num_infosets, bool)
    memorized[tree.entry_infoset[members]] = True
    stopped = decides.copy()
    stopped[decides] = ~memorized[tree.infoset[decides]]
    held, nature = worst(strategy.played.probability, stopped)
    utility, paid = float(held[0]), int(weight[tree.entry_infoset[members]].sum())
    value = utility - penalty * paid if paid else utility
    return RobustPrecomputation(
        tree=tree,
        player=player,
        ambiguity=ambiguity,
        penalty=penalty,
        value=value,
        utility=utility,
        nominal=decisions.value(strategy.memorize, 0.0).value,
        unprepared=float(worth[0]),
        size=len(members),
        paid=paid,
        memorization_set=members,
        sizes=tables.size[whole].astype(np.int64),
        utilities=tables.utility[whole].copy(),
        nature=nature,
        upper=value + float(tables.gap[0]),
        budget=budget,
    )
