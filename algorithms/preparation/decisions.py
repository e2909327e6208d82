"""The tree-form decision problem of one player against a fixed opponent: a history tree, summed up.

The player's strategies are a treeplex: at information state I it stops, or memorizes an entry of a menu, and
right after an entry come further information states. Everything one-sided follows from stop(I), the value of
stopping at I, and after(e), the value of all that follows an entry e outside the player's information states:

    stop(I)  = sum over h in I of pi(h) u(h),
    after(e) = the same sum over leaves, and over histories at which the player must stop, right after e,

with pi(h) the probability of coming to h by the player's entries at its ancestors and against the opponent,
and u(h) the value of the player's sigma from h on. Memorizing e is then worth

    memorize(e) = after(e) + sum over J right after e of v(J) - lambda,

where v(J) is a mixture of stop(J) and memorize of J's entries (the value of a strategy), the largest of these
(Algorithm 1: a best response, by rollback), or stop(J) throughout, which gives the gain of e alone:

    g(e) = after(e) + sum over J right after e of stop(J) - stop(I).

Utility is additive over a memorization set in these gains. This holds for any policies and supports, for
information states of any size, and for an opponent who plays a strategy of the meta-game: by Kuhn's theorem
it is the same as a behavioral policy that mixes its sigma_pre and sigma (`MetaStrategy.played`). Where menus
have one entry, an entry and its information state have one number, and this is the paper's model.

Known entries cost nothing and are no decisions. So the problem is contracted: what follows a known
entry e at I follows the entry before I, as if I were not there. Then after(entry before I) grows by after(e),
the information states right after e come right after the entry before I, and what follows other entries of
I's menu cannot be reached. Solvers take the contracted problem as any other; they count and price what is
left.

Source: `precomputation`, Algorithm 1 and Definition 2; the additive form is derived in docs/model.md.

Cost: one pass down the tree (reaches) and one back (values), 16 bytes per history; no policy is asked. All
that follows costs a pass over the information states.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, shown
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Shown
from precomp_games.tree.facts import TERMINAL, AnyForest, Forest, TreeArrays, weighted
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, check_strategy


class StrategyValue(NamedTuple):
    """Value of a strategy against the opponent, from the start and at each information state.

    Attributes:
      value: Its utility, less the penalty for each information state that it is expected to memorize.
      memorize: float64[E], the strategy: the probability of memorizing each entry after all before it; 0 at
        the other's.
      advantage: float64[E], memorize(e) - stop(I): what memorizing e, and then going on by the strategy, is
        worth more than stopping there, times the reach of I. 0 at the other player's.
    """

    value: float
    memorize: npt.NDArray[np.float64]
    advantage: npt.NDArray[np.float64]


class Treeplex(NamedTuple):
    """A tree-form decision problem as arrays, which kernels go through.

    Attributes:
      owner: int8[m], whose each information state is, -1 for nobody's.
      first_entry: int32[m + 1], where the entries of each begin.
      previous: int32[m], the owner's entry before each, -1 for none.
      player: The player whose problem it is.
      stop: float64[m].
      after: float64[E + 1], of entry e at e + 1; of what comes before the first information state at 0.
      may_stop: Whether it may memorize nothing.
    """

    owner: np.ndarray
    first_entry: np.ndarray
    previous: np.ndarray
    player: int
    stop: np.ndarray
    after: np.ndarray
    may_stop: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions(Shown):
    """The player's decisions on n histories, m information states and E entries; utilities are the player's.

    What belongs to the other player is 0.

    Attributes:
      forest: The forest that was summed up, mostly a `HistoryTree`.
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
      shared: int64[m], equal where information states share one price; None: each has its own.
      known: Where something is known already: (all decisions, bool[E]: the entries that are). These decisions
        are then the ones that are left.
    """

    forest: AnyForest = dataclasses.field(repr=False)
    player: int
    reach: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    stop: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    after: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    history_reach: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    worth: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    cut_reach: float
    shared: npt.NDArray[np.int64] | None = dataclasses.field(default=None, repr=False)
    known: tuple[Decisions, npt.NDArray[np.bool_]] | None = dataclasses.field(default=None, repr=False)

    @property
    def tree(self) -> HistoryTree:
        """The history tree that was summed up; entries that are known already have weight 0 in it.

        Raises:
          ValueError: these are decisions without histories.
        """
        whole = self if self.known is None else self.known[0]
        return checks.check_instance(whole.forest, HistoryTree, "forest")

    @functools.cached_property
    def treeplex(self) -> Treeplex:
        """The decision problem as arrays."""
        forest = self.forest
        return Treeplex(
            forest.infoset_player, forest.first_entry, forest.previous, self.player, self.stop, self.after,
            forest.may_stop,
        )  # fmt: skip

    @functools.cached_property
    def has_choice(self) -> bool:
        """Return whether some information state of the player has several entries.

        Where positions have a price, what is known counts too: it shares the entry with the rest.
        """
        whole = self if self.known is None or self.shared is None else self.known[0]
        if not whole.forest.has_menus:
            return False
        own = whole.forest.infoset_player == self.player
        return bool((np.diff(whole.forest.first_entry)[own] > 1).any())

    @property
    def previous_infoset(self) -> npt.NDArray[np.int32]:
        """int32[m]: the owner's information state before each, where menus have one entry; -1 for none."""
        before = np.append(self.forest.entry_infoset, np.int32(-1))[self.forest.previous]
        return before.astype(np.int32)

    @classmethod
    def against(
        cls,
        tree: HistoryTree,
        player: int,
        opponent: MetaStrategy | None = None,
        *,
        component: int | None = None,
        price: Any = "infosets",
        keep: Any = None,
        alone: bool = False,
    ) -> Decisions:
        """Sum up a tree.

        Args:
          tree: expanded for `player`.
          player: 0 or 1.
          opponent: a strategy of the other player on this tree; None: it plays its sigma.
          component: which one of a mixture the opponent is; None: it is the mixture.
          price: what is paid for, see `best_precomputation`.
          keep: the numbers of the entries that are known already; None: there are none.
          alone: whether the tree may be of a game alone, in which no player can stop.

        Raises:
          ValueError: a tree with evaluated stops knows no strategies.
        """
        if tree.stop_value == "evaluate":
            # with_penalties() may have made both infinite since; the opponent's turns tell, too.
            other = np.isfinite(tree.penalties[1 - player]) or (tree.infoset_player == 1 - player).any()
            if other:
                raise ArgumentError(
                    f"expected the tree's precomputing player, {1 - player}, since it "
                    f'was expanded with stop_value="evaluate", got player {player}'
                )
        if not tree.may_stop and not (alone and opponent is not None):
            raise ArgumentError(
                "expected a tree with policies that are computed during play, got that of a game alone: "
                f"{tree}"
            )
        if tree.value_of not in (None, player):
            got = f"player {player}: the game is of general sum, and only the other one's utilities are kept"
            raise ArgumentError(f"expected the tree's precomputing player, {1 - player}, got {got}")
        arrays, played = tree.arrays, tree.sigma
        if player == 1 and len(tree.value_1):  # as if player 0 had what it lacks
            arrays = arrays._replace(value=-tree.value_1)
        if component is not None:
            assert tree.mixture is not None
            played, value = tree.mixture.component(component, played, tree.value)
            arrays = arrays._replace(value=value)
        if opponent is not None:
            played = check_strategy(opponent, tree, 1 - player, "opponent").played.probability
        n, m = tree.num_histories, tree.num_infosets
        reach, stop, after = np.zeros(m), np.zeros(m), np.zeros(tree.num_entries + 1)
        history_reach, worth = np.empty(n), np.zeros(n)
        cut_reach = _collect(
            arrays, played, tree.own_edges[player], player, tree.utility_sum,
            tree.stop_value == "evaluate", TERMINAL, history_reach, worth, reach, stop, after,
        )  # fmt: skip
        if len(tree.cut_menus):
            cut_reach += float(reach[tree.cut_menus & (tree.infoset_player == player)].sum())
        shared = shared_prices(price, tree, player)
        decisions = cls(tree, player, reach, stop, after, history_reach, worth, cut_reach, shared)
        return decisions if keep is None else decisions.without(keep)

    def without(self, keep: Any) -> Decisions:
        """Return the decisions that are left where some entries are known.

        Raises:
          ValueError: these are not the player's entries, or two of them are of one information state.
        """
        tree, shared = self.tree, self.shared
        known = np.zeros(tree.num_entries, bool)
        known[checks.check_indices(keep, tree.num_entries, "keep")] = True
        infosets = tree.entry_infoset[known]
        if (tree.entry_player[known] != self.player).any() or len(np.unique(infosets)) < len(infosets):
            raise ArgumentError(
                f"expected keep to be entries of player {self.player}, one of an information "
                f"state, got {shown(keep)}"
            )
        free = np.zeros(tree.num_infosets, bool)
        free[infosets] = True
        if shared is not None:
            free = np.isin(shared, shared[infosets])
        tree = tree.with_weights(np.where(free, 0.0, tree.infoset_weight))
        whole = dataclasses.replace(self, forest=tree)
        owner, previous, after = tree.infoset_player.copy(), tree.previous.copy(), self.after.copy()
        whole_problem = (owner, tree.first_entry, previous, self.player, self.stop, after, tree.may_stop)
        _contract(Treeplex(*whole_problem), known)
        forest = Forest(tree.first_entry, previous, tree.penalties, owner, tree.infoset_weight)
        return dataclasses.replace(self, forest=forest, after=after, known=(whole, known))

    def gains(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return (g: float64[E], the utility of memorizing nothing)."""
        return self._alone.advantage, self._alone.value

    @functools.cached_property
    def _alone(self) -> StrategyValue:
        """The strategy that memorizes nothing: the advantage of an entry is then its gain alone."""
        return self._recursion(np.zeros(self.forest.num_entries), 0.0, False)

    def best(self, penalty: float | npt.NDArray[np.float64] | None = None) -> StrategyValue:
        """Run Algorithm 1: the best response, of zeros and ones; of ties, stopping, then the first entry.

        Args:
          penalty: lambda, which each information state costs by its weight; or float64[m] with the price of
            each. None: the tree's.
        """
        return self._recursion(np.zeros(self.forest.num_entries), penalty, True)

    def value(
        self, memorize: npt.NDArray[np.float64], penalty: float | npt.NDArray[np.float64] | None = None
    ) -> StrategyValue:
        """Return the value of a strategy.

        Args:
          memorize: float64[E], `MetaStrategy.memorize`.
          penalty: lambda, which each information state costs by its weight; or float64[m] with the price of
            each. None: the tree's. 0 gives the strategy's utility.
        """
        return self._recursion(np.array(memorize), penalty, False)

    def _recursion(
        self, memorize: npt.NDArray[np.float64], penalty: float | npt.NDArray[np.float64] | None, best: bool
    ) -> StrategyValue:
        forest, advantage = self.forest, np.zeros(self.forest.num_entries)
        if penalty is None:
            prices = forest.infoset_penalty
        elif isinstance(penalty, np.ndarray):
            prices = penalty
        elif penalty == 0.0:  # the same, sooner
            prices = np.zeros(forest.num_infosets)
        else:
            prices = weighted(penalty, forest.infoset_weight)
        value = _recursion(self.treeplex, prices, best, memorize, advantage)
        return StrategyValue(value, memorize, advantage)

    def counted_weights(self) -> npt.NDArray[np.int64]:
        """Return int64[m], the weights where sizes are numbers: 0 for what is known already, else 1.

        Raises:
          ValueError: some information state of the player has another weight, or those of a position differ.
        """
        weight, own = self.forest.infoset_weight, self.forest.infoset_player == self.player
        other = np.flatnonzero(own & (weight != 0.0) & (weight != 1.0))
        shared = self.shared
        if shared is not None and np.isin(shared[own & (weight == 0.0)], shared[own & (weight > 0.0)]).any():
            raise ArgumentError(
                "expected information states that share a price to have one weight, got 0 and 1"
            )
        if len(other):
            raise ArgumentError(
                f"expected weights of 0 and 1, where sizes are counted, got {weight[other[0]]} at "
                f"information state {other[0]}; best_precomputation() without a budget takes any"
            )
        return weight.astype(np.int64)


def shared_prices(price: Any, tree: HistoryTree, player: int) -> npt.NDArray[np.int64] | None:
    """Return the meaning of a solver's `price`: int64[m], equal where information states share a price.

    None for "infosets": each has its own.

    Raises:
      ValueError: it means nothing, or the tree was cut for another price.
    """
    if isinstance(price, str) and price == "infosets":
        return None
    if isinstance(price, str) and price == "positions":
        if not len(tree.position) or tree.infoset_keys is not None:
            raise ArgumentError(
                'expected a tree of perfect information that has positions for price="positions", '
                f"got {tree}; expand it with position_key, or give keys of information states"
            )
        cut_for: tuple[str, ...] = ("positions", "nothing")
        shared = tree.position[tree.infoset_history].astype(np.int64)
    else:
        cut_for, keys = ("nothing",), np.zeros(0, object)
        if isinstance(price, np.ndarray | list | tuple):
            keys = np.asarray(price)
        fit = keys.ndim == 1 and keys.dtype.kind in "iu" and len(keys) == tree.num_infosets
        if not fit or np.ma.is_masked(price):
            raise ArgumentError(
                f'expected price to be "infosets", "positions" or {tree.num_infosets} integers, one for each '
                f"information state, got {shown(price)}"
            )
        shared = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    if tree.cut_for not in cut_for:
        raise ArgumentError(
            "expected a tree that keeps what this price needs, got one that was cut for "
            f'{tree.cut_for}; expand it with price="positions" (its own positions) or truncate="none"'
        )
    counts = np.diff(tree.first_entry)
    own = np.flatnonzero(tree.infoset_player == player)
    if tree.has_menus and len(own):
        first = np.full(int(shared.max(initial=0)) + 1, -1)
        first[shared[own[::-1]]] = own[::-1]
        if (counts[own] != counts[first[shared[own]]]).any():
            raise ArgumentError(
                "expected menus of as many entries at all information states that share a price"
            )
    return shared


@kernel
def _collect(
    tree: TreeArrays,
    played: np.ndarray,
    own_edge: np.ndarray,
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
    """Write into the last five arguments, all but `reach` zeros before; return `Decisions.cut_reach`."""
    parent, mover, infoset, value = tree.parent, tree.mover, tree.infoset, tree.value
    n, cut_reach = len(parent), 0.0
    reach[0] = 1.0
    for h in range(1, n):
        p = parent[h]
        if mover[p] != player:
            reach[h] = reach[p] * played[h]
        elif infoset[p] >= 0:
            reach[h] = reach[p] * tree.sigma_pre[h]
        else:  # it has stopped for good: nothing below is by the book
            reach[h] = 0.0
    for h in range(n - 1, -1, -1):
        own = mover[h] == player
        decides = own and infoset[h] >= 0
        leaf = tree.num_children[h] == 0
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
            if len(tree.entry) and edge > 0:
                before = tree.first_entry[before] + tree.entry[edge]
            after[before + 1] += reach[h] * worth[h]
            if own or mover[h] != terminal:
                cut_reach += reach[h]
    return cut_reach


@kernel
def _recursion(
    problem: Treeplex, penalty: np.ndarray, best: bool, memorize: np.ndarray, advantage: np.ndarray
) -> float:
    """Run the recursion over information states, last to first; with `best`, write `memorize`."""
    owner, first_entry, previous = problem.owner, problem.first_entry, problem.previous
    player, stop, value = problem.player, problem.stop, problem.after.copy()
    for k in range(len(owner) - 1, -1, -1):
        if owner[k] != player:
            continue
        worth, chosen, total = stop[k], -1, 0.0
        mixed = 0.0
        if best and not problem.may_stop:
            worth = -np.inf
        for e in range(first_entry[k], first_entry[k + 1]):
            going_on = value[e + 1] - penalty[k]
            advantage[e] = going_on - stop[k]
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


@kernel
def _contract(problem: Treeplex, known: np.ndarray) -> None:
    """Take known information states, and what cannot be reached, out; their owner becomes -1."""
    owner, first_entry, previous = problem.owner, problem.first_entry, problem.previous
    in_place = np.arange(len(known))  # the entry that is left in place of each; -1: the start
    gone = np.zeros(len(known), np.bool_)  # not to be reached
    for k in range(len(previous)):
        unreached = previous[k] >= 0 and gone[previous[k]]
        if previous[k] >= 0:
            previous[k] = in_place[previous[k]]
        chosen = -1
        for e in range(first_entry[k], first_entry[k + 1]):
            if known[e]:
                chosen = e
        if chosen >= 0 or unreached:
            owner[k] = -1
            for e in range(first_entry[k], first_entry[k + 1]):
                gone[e] = unreached or e != chosen
        if chosen >= 0 and not unreached:
            in_place[chosen] = previous[k]
            problem.after[previous[k] + 1] += problem.after[chosen + 1]
