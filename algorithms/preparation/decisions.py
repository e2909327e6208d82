"""One player's decisions against a fixed opponent: a history tree summed up to its information states.

Everything one-sided follows from stop(I), what stopping at information state I is worth, and after(e), what
follows an entry e of I's menu and is no information state of the player's:

    stop(I)  = sum over h in I of pi(h) u(h),
    after(e) = the same sum over leaves, and over histories at which the player must stop, right after e,

with pi(h) the probability of coming to h by the player's entries on the way and against the opponent, and
u(h) the value of the player's sigma from h on. Memorizing e is then worth

    memorize(e) = after(e) + sum over J right after e of v(J) - lambda,

where v(J) is a mixture of stop(J) and memorize of J's entries (the value of a strategy), the largest of these
(Algorithm 1, a best response), or stop(J) throughout, which gives the gain of e alone:

    g(e) = after(e) + sum over J right after e of stop(J) - stop(I).

Utility is additive over a memorization set in these gains. This holds for any policies and supports, for
information states of any size, and for an opponent who plays a strategy of the meta-game: by Kuhn's theorem
it is the same as a behavioral policy that mixes its sigma_pre and sigma (`MetaStrategy.played`). Where menus
have one entry, an entry and its information state have one number, and this is the paper's model.

Source: `precomputation`, Algorithm 1 and Definition 2; the additive form is derived in docs/model.md.

Cost: one pass down the tree (reaches) and one back (values), 16 bytes per history; no policy is asked. All
that follows costs a pass over the information states.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError, Player, public
from precomp_games._support.checks import check_instance, check_number, check_numbers
from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import AnyForest, weighted
from precomp_games.tree.history_tree import TERMINAL, HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, check_memorize, check_strategy

__all__ = ["Decisions", "StrategyValue", "utility_of"]


class StrategyValue(NamedTuple):
    """What a strategy is worth against the opponent, from the start and at each information state.

    Attributes:
      value: Its utility, less the penalty for each information state that it is expected to memorize.
      memorize: float64[E], the strategy: the probability of memorizing each entry after all before it; 0 at
        the other's.
      lead: float64[E], memorize(e) - stop(I): what memorizing e, and then going on by the strategy, is worth
        more than stopping there, times the reach of I. 0 at the other player's.
    """

    value: float
    memorize: npt.NDArray[np.float64]
    lead: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """The player's decisions on n histories, m information states and E entries; utilities are the player's.

    What belongs to the other player is 0.

    Attributes:
      forest: What was summed up, mostly a `HistoryTree`.
      player: 0 or 1, whose decisions these are.
      reach: float64[m], probability of coming to I, by sigma_pre and against the opponent.
      stop: float64[m], see above.
      after: float64[E + 1], see above, at e + 1; after[0] is what comes before the player's first
        information state.
      history_reach: float64[n], the same as `reach` for histories; 0 below a turn at which the tree makes
        the player stop.
      worth: float64[n], u(h), what stopping at h is worth, its reach not counted.
      cut_reach: Probability of coming, by sigma_pre, to where the tree keeps the player from memorizing
        further: leaves where the game goes on, turns at which it must stop, and turns whose menus have
        lost entries. 0: the tree has all there is.
      known: Where something is known already (`preparation.known`): (all decisions, bool[E]: the entries that
        are). These decisions are then the ones that are left.
    """

    forest: AnyForest = dataclasses.field(repr=False)
    player: int
    reach: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    stop: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    after: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    history_reach: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    worth: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    cut_reach: float
    known: tuple[Decisions, npt.NDArray[np.bool_]] | None = dataclasses.field(default=None, repr=False)

    @property
    def tree(self) -> HistoryTree:
        """What was summed up, where that is a history tree; what is known already has weight 0 in it.

        Raises:
          ValueError: these are decisions without histories.
        """
        whole = self if self.known is None else self.known[0]
        return check_instance(whole.forest, HistoryTree, "forest")

    @classmethod
    @public
    def against(cls, tree: HistoryTree, player: Player, opponent: MetaStrategy | None = None) -> Decisions:
        """Sums a tree up.

        Args:
          tree: expanded for `player`.
          player: 0 or 1.
          opponent: a strategy of the other player on this tree; None: it plays its sigma.

        Raises:
          ValueError: an argument is not as above; a tree with evaluated stops knows no strategies.
        """
        if tree.stop_value == "evaluate":
            # with_penalties() may have made both infinite since; the opponent's turns tell, too.
            other = np.isfinite(tree.penalties[1 - player]) or (tree.infoset_player == 1 - player).any()
            if other:
                raise ArgumentError(
                    f"expected the tree's precomputing player, {1 - player}, since it "
                    f'was expanded with stop_value="evaluate", got player {player}'
                )
        played = tree.sigma
        if opponent is not None:
            played = check_strategy(opponent, tree, 1 - player, "opponent").played.probability
        n, m = tree.num_histories, tree.num_infosets
        reach, stop, after = np.zeros(m), np.zeros(m), np.zeros(tree.num_entries + 1)
        history_reach, worth = np.empty(n), np.zeros(n)
        cut_reach = _collect(
            tree.parent, tree.num_children, tree.player, tree.infoset, played, tree.sigma_pre, tree.value,
            tree.own_edges[player], tree.first_entry, tree.entry, player, tree.utility_sum,
            tree.stop_value == "evaluate", TERMINAL, history_reach, worth, reach, stop, after,
        )  # fmt: skip
        if len(tree.cut_menus):
            cut_reach += float(reach[tree.cut_menus & (tree.infoset_player == player)].sum())
        return cls(tree, player, reach, stop, after, history_reach, worth, cut_reach)

    @public
    def gains(self) -> tuple[npt.NDArray[np.float64], float]:
        """(g: float64[E], the utility of memorizing nothing)."""
        alone = self._value(np.zeros(self.forest.num_entries), 0.0, False)
        return alone.lead, alone.value

    @public
    def best(self, penalty: float | npt.ArrayLike | None = None) -> StrategyValue:
        """Algorithm 1: the best response, of zeros and ones; of ties, stopping, then the first entry.

        Args:
          penalty: lambda, which each information state costs by its weight; or float[m] with the price of
            each. None: the tree's.

        Raises:
          ValueError: the penalty is no number of at least 0, nor are these.
        """
        return self._value(np.zeros(self.forest.num_entries), penalty, True)

    @public
    def value(self, memorize: npt.ArrayLike, penalty: float | npt.ArrayLike | None = None) -> StrategyValue:
        """What a strategy is worth.

        Args:
          memorize: float[E], `MetaStrategy.memorize`.
          penalty: lambda, which each information state costs by its weight; or float[m] with the price of
            each. None: the tree's. 0 gives the strategy's utility.

        Raises:
          ValueError: these are not probabilities of entries, or the penalty is no number of at least 0, nor
            are these.
        """
        checked = check_memorize(memorize, self.forest, self.player)
        return self._value(np.array(checked), penalty, False)

    def _value(
        self, memorize: npt.NDArray[np.float64], penalty: float | npt.ArrayLike | None, best: bool
    ) -> StrategyValue:
        forest, lead = self.forest, np.zeros(self.forest.num_entries)
        prices = forest.infoset_penalty if penalty is None else _prices(penalty, forest)
        value = _recursion(
            forest.infoset_player,
            forest.first_entry,
            forest.previous,
            self.player,
            prices,
            self.stop,
            self.after,
            best,
            memorize,
            lead,
        )
        return StrategyValue(value, memorize, lead)


def utility_of(decisions: Decisions, memorize: npt.NDArray[np.float64]) -> StrategyValue:
    """`Decisions.value` at no penalty, of what is known to be a strategy's."""
    return decisions._value(memorize, 0.0, False)


def _prices(penalty: Any, forest: AnyForest) -> npt.NDArray[np.float64]:
    """float64[m]: what each information state costs at a penalty, or by prices that are given.

    Raises:
      ValueError: they are no numbers of at least 0, or not so many.
    """
    if not isinstance(penalty, np.ndarray | list | tuple):
        number = check_number(penalty, "penalty", least=0.0, finite=False)
        return weighted(number, forest.infoset_weight)
    prices = check_numbers(penalty, forest.num_infosets, "penalty", least=0.0, finite=False)
    return prices.copy()  # kernels are compiled anew for arrays that cannot be written to


@kernel
def _collect(
    parent: np.ndarray,
    num_children: np.ndarray,
    mover: np.ndarray,
    infoset: np.ndarray,
    played: np.ndarray,
    sigma_pre: np.ndarray,
    value: np.ndarray,
    own_edge: np.ndarray,
    first_entry: np.ndarray,
    entry: np.ndarray,
    player: int,
    utility_sum: float,
    evaluates: bool,
    terminal: int,
    reach: np.ndarray,
    worth: np.ndarray,
    reach_of: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
) -> float:
    """Writes into the last five arguments, all but `reach` zeros before; returns `Decisions.cut_reach`."""
    n = len(parent)
    cut_reach = 0.0
    reach[0] = 1.0
    for h in range(1, n):
        p = parent[h]
        if mover[p] != player:
            reach[h] = reach[p] * played[h]
        elif infoset[p] >= 0:
            reach[h] = reach[p] * sigma_pre[h]
        else:  # it has stopped for good: nothing below is by the book
            reach[h] = 0.0
    for h in range(n - 1, -1, -1):
        own = mover[h] == player
        decides = own and infoset[h] >= 0
        leaf = num_children[h] == 0
        if leaf or (evaluates and decides):
            worth[h] = value[h] if player == 0 else utility_sum - value[h]
        if h > 0:
            worth[parent[h]] += played[h] * worth[h]
        if decides:
            reach_of[infoset[h]] += reach[h]
            stop[infoset[h]] += reach[h] * worth[h]
        elif (own or leaf) and reach[h] > 0.0:
            edge = own_edge[h]
            before = infoset[parent[edge]] if edge > 0 else -1
            if len(entry) and edge > 0:
                before = first_entry[before] + entry[edge]
            after[before + 1] += reach[h] * worth[h]
            if own or mover[h] != terminal:
                cut_reach += reach[h]
    return cut_reach


@kernel
def _recursion(
    owner: np.ndarray,
    first_entry: np.ndarray,
    previous: np.ndarray,
    player: int,
    penalty: np.ndarray,
    stop: np.ndarray,
    after: np.ndarray,
    best: bool,
    memorize: np.ndarray,
    lead: np.ndarray,
) -> float:
    """The recursion over information states, from the last to the first; with `best`, writes `memorize`."""
    value = after.copy()
    for k in range(len(owner) - 1, -1, -1):
        if owner[k] != player:
            continue
        worth, chosen, total = stop[k], -1, 0.0
        mixed = 0.0
        for e in range(first_entry[k], first_entry[k + 1]):
            going_on = value[e + 1] - penalty[k]
            lead[e] = going_on - stop[k]
            if best and going_on > worth:
                worth, chosen = going_on, e
            x = memorize[e]
            if not best and x > 0.0:  # an infinite penalty must not meet a factor of 0
                mixed += x * going_on
                total += x
        if chosen >= 0:
            memorize[chosen] = 1.0
        if not best and total > 0.0:
            worth = mixed + (1.0 - total) * stop[k] if total < 1.0 else mixed
        value[previous[k] + 1] += worth
    return float(value[0])
