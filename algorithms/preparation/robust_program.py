"""Mixed preparation against the worst opponent around a model: one linear program of the tree's size.

The player mixes memorization sets by a realization plan x. Nature knows x and not what is drawn, and plays
the opponent: at each information state J of the opponent it chooses q = (1 - s) p + s r for any r, with p
what the model plays and s its contamination (`robust`), anew at each J and the same at all histories of J.
The opponent memorizes nothing. What is looked for is

    max over x of min over q of u(x, q) - cost(x),

where u(x, q) is the utility of x on the tree whose opponent plays q in place of its sigma. So nature moves
where the tree has a turn of the opponent's, also where the player has stopped and plays on in the tree
(stop_value="backup"). What a leaf is worth, or an evaluated stop, nature does not change.

With y the opponent's realization plan, u is linear in x and in y, and q is bounded by cones in y: with Ja a
sequence, an information state of the opponent's with a reply, y(Ja) >= (1 - s) p_a y(before J). Let g_Ja(x)
be what is won at ends of which Ja is the opponent's last sequence, divided by y(Ja). Backwards, W_Ja is
what follows Ja and V_J what nature leaves at J:

    maximize    g_nothing(x) + sum over first J of V_J - lambda sum w(I) x
    subject to  W_Ja <= g_Ja(x) + sum over K right after Ja of V_K
                V_J <= (1 - s) sum p_a W_Ja + s m_J,        m_J <= W_Ja
                x is a realization plan; with a budget, sum w(I) x <= B in place of the penalty

The duals of the second line are nature's realization plan.

Nobody gains by mixing against a fixed opponent. Against nature it may, since nature does not see the draw:
the value is at least that of the best set. With imperfect information this is data-biased response, with
contamination 1 the safest preparation.

Certificates know nothing of the program: the worst nature for x by one pass back over the opponent's
information states gives the value, and Algorithm 1 against nature's policy an upper bound.

Optimal strategies memorize little, so on a large tree of perfect information a double oracle allows some
entries at first (`zero_sum.double_oracle`). Elsewhere the player has stopped, and what nature leaves then is
a number for each history, by one pass back, into which the tree is folded. The program of what is left says
what nature plays there; Algorithm 1 against it on the whole tree says what else to allow, or that nothing is
missing. Where information is imperfect, an information state may lie on both sides, and one program has all.

Source: Johanson and Bowling, "Data Biased Robust Counter Strategies", AISTATS 2009; realization plans: von
Stengel 1996.

Cost: some passes over the tree for each program; for a program a number for each pair of an end and an entry
on the path to it, and HiGHS. Where information is imperfect, each turn of the opponent's is replayed once.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # which imports `sparse` when that is used: a third of a second

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, realization_plan

from ..programs import Program, unit
from ..zero_sum.double_oracle import grow, kept_histories, restricted_tree
from ..zero_sum.sequence_form_lp import EntryMatrices, contributions
from .decisions import Decisions
from .robust import contamination_at, worst_reply, worst_values

_DEAREST = 4.0  # times the tree's scale: what costs more than that is not memorized either
_NEVER = 1e-12  # nature comes nowhere with less than that probability
_SMALL = 300  # entries; with no more, one program has all of them
_ROUNDING = 1e-12  # of the tree's scale: a gap that counts as none
_SLACK = 1e-9  # of a contamination
_LEAST = 1e-12  # replies that the model may have missed have probabilities of about 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class RobustStrategy(Result):
    """The best mixture of memorization sets against the worst opponent; utilities are the player's.

    Attributes:
      player: 0 or 1.
      value: utility - price of what is memorized by the penalty; with a budget, utility.
      utility: Base-game utility against the worst opponent for this strategy.
      strategy: How sets are mixed. Its `largest_size` says how large a drawn set can be.
      nature: float64[n], what nature plays against all strategies: the probability of the edge that leads to
        h, of the opponent's edges by its policy, of the others as in the tree's `sigma`.
      price: What one information state more costs: the penalty, or what a unit of the budget is worth.
      gap: No strategy has a value that is greater by more, by Algorithm 1 against `nature`; 0 up to rounding.
    """

    player: int
    value: float
    utility: float
    strategy: MetaStrategy = dataclasses.field(repr=False)
    nature: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    price: float
    gap: float


@public
def robust_strategy(
    tree: HistoryTree,
    player: checks.Player,
    contamination: Any,
    *,
    budget: checks.NonNegativeFloat | None = None,
) -> RobustStrategy:
    """Computes the best mixture of memorization sets against the worst opponent around the model.

    Args:
      tree: expanded with a finite penalty for `player`. The opponent plays sigma in the model, and memorizes
        nothing, whatever its penalty is. Nature plays what the tree has as edges.
      player: 0 or 1, who prepares.
      contamination: see `robust_precomputation`. Where information is imperfect, it is the same at all
        histories of an information state.
      budget: the most information states, by weight and in expectation, which then cost nothing. A drawn set
        may be larger. None: each costs the tree's penalty.

    Raises:
      ValueError: an argument is not as above.
      LinearProgramError: HiGHS did not find an optimum.
    """
    return _Run(tree, player, contamination, budget).solved()


class _Run:
    """Programs in which few entries are allowed at first, and what they find, measured on the whole tree."""

    def __init__(self, tree: HistoryTree, player: int, contamination: Any, budget: float | None) -> None:
        self.tree, self.player, self.budget = tree, player, budget
        self.model = Decisions.against(tree, player)  # which refuses a tree that is not the player's
        self.share = contamination_at(tree, player, contamination)
        self.turns = _Turns.of(tree, player, self.share)
        # What a history is worth to a player who has stopped, and nature's answer to that.
        decides = (tree.player == player) & (tree.infoset >= 0)
        self.worth, self.stopped = worst_values(tree, player, self.share, tree.sigma, decides)
        free = budget is not None or math.isfinite(tree.penalties[player])
        self.playing = (tree.entry_player == player) & free

    def solved(self) -> RobustStrategy:
        """Solves programs until nothing else is worth memorizing against the nature that one found."""
        tree, allowed = self.tree, self.playing
        if tree.infoset_keys is None and allowed.sum() > _SMALL:
            allowed = self._first()
        while True:
            plan, nature, price = self._program(allowed)
            found, chosen = self._measured(plan, nature, price)
            grown = allowed.copy()
            grow(tree.previous[tree.entry_infoset], chosen & self.playing, grown)
            if found.gap <= _ROUNDING * tree.scale or (grown == allowed).all():
                return found
            allowed = grown

    def _first(self) -> npt.NDArray[np.bool_]:
        """bool[E]: what is best against the model, and with a budget somewhat more than it has room for."""
        tree, price = self.tree, self.tree.penalties[self.player]
        weight = tree.infoset_weight[tree.entry_infoset]

        def best(price: float) -> npt.NDArray[np.float64]:
            return realization_plan(tree, self.model.best(price).memorize)

        if self.budget is not None and math.isfinite(price):
            while best(price) @ weight > self.budget:
                price *= 2.0
            price /= 2.0
        return best(price) > 0.0

    def _program(
        self, allowed: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
        """(the player's plan: float64[E], nature: float64[n], what an information state costs)."""
        tree, player, nature = self.tree, self.player, self.stopped.copy()
        if (allowed == self.playing).all():
            plan, replies, price = _solved(tree, player, self.turns, self.budget)
            return plan, self.turns.edges(tree, self.turns.behavior(replies)), price
        kept = np.flatnonzero(kept_histories(tree, allowed)[2])
        worth = self.worth if player == 0 else tree.utility_sum - self.worth
        small = restricted_tree(tree, allowed, worth)
        turns = _Turns.of(small, player, self.share[kept])
        part, replies, price = _solved(small, player, turns, self.budget)
        plan = np.zeros(tree.num_entries)
        plan[allowed] = part
        nature[kept] = turns.edges(small, turns.behavior(replies))
        return plan, nature, price

    def _measured(
        self, plan: npt.NDArray[np.float64], nature: npt.NDArray[np.float64], price: float
    ) -> tuple[RobustStrategy, npt.NDArray[np.bool_]]:
        """(the strategy and its certificate; bool[E], what Algorithm 1 memorizes against this nature)."""
        tree, player, budget = self.tree, self.player, self.budget
        strategy = MetaStrategy.of_plan(tree, player, plan)
        utility = self.turns.worst(_won(tree, strategy))
        paid = float(strategy.plan() @ tree.infoset_weight[tree.entry_infoset])
        value = utility if budget is not None or not paid else utility - price * paid
        best = Decisions.against(dataclasses.replace(tree, sigma=nature), player).best(price)
        upper = best.value + (0.0 if budget is None else price * budget)
        found = RobustStrategy(player, value, utility, strategy, nature, price, upper - value)
        return found, best.memorize > 0.0


class _Turns(NamedTuple):
    """The opponent's k information states and S sequences on a tree: where nature moves.

    Attributes:
      first: int64[k + 1], the first sequence of each information state. Number 0 is "no reply so far".
      previous: int64[k], the sequence before each; -1 where nature cannot come.
      share: float64[k], s.
      model: float64[S], p of each sequence.
      sequence: int64[n], the opponent's last one at each history; -1 where nature cannot come.
      edge: int64[n], the sequence of the edge that leads to h; -1 where nature does not play it, 0 where
        another one moved.
    """

    first: npt.NDArray[np.int64]
    previous: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    model: npt.NDArray[np.float64]
    sequence: npt.NDArray[np.int64]
    edge: npt.NDArray[np.int64]

    @classmethod
    def of(cls, tree: HistoryTree, player: int, share: npt.NDArray[np.float64]) -> _Turns:
        """Those of the opponent of `player`. share: float64[n].

        Raises:
          ValueError: s is not one number for an information state, or the opponent forgets something.
        """
        turns = np.flatnonzero((tree.player == 1 - player) & (tree.num_children > 0))
        state = np.full(tree.num_histories, -1)
        state[turns] = _information_states(tree, turns)
        k = int(state.max(initial=-1)) + 1
        first_history = np.full(k, -1)
        first_history[state[turns[::-1]]] = turns[::-1]
        # Of an information state, the replies that all of its histories have on the tree.
        edges = 1 + np.flatnonzero(state[tree.parent[1:]] >= 0)
        many = int(tree.action.max(initial=0)) + 1
        keys = state[tree.parent[edges]] * many + tree.action[edges]
        replies, at, counts = np.unique(keys, return_inverse=True, return_counts=True)
        common = counts == np.bincount(state[turns], minlength=k)[replies // many]
        edge = np.zeros(tree.num_histories, np.int64)
        edge[edges] = np.where(common, np.cumsum(common), -1)[at]
        sequence = np.zeros(tree.num_histories, np.int64)
        for level in tree.levels[1:]:
            before = sequence[tree.parent[level]]
            sequence[level] = np.where((before < 0) | (edge[level] == 0), before, edge[level])
        model = np.ones(1 + int(common.sum()))
        played = edges[edge[edges] > 0][::-1]  # the first history speaks for all
        model[edge[played]] = tree.sigma[played]
        own = first_history[state[turns]]
        if (np.abs(share[turns] - share[own]) > _SLACK).any():
            raise ArgumentError(
                "expected contamination to be the same at all histories of an information state"
            )
        if (sequence[turns] != sequence[own]).any():
            raise ArgumentError(f"expected an opponent with perfect recall, got {tree}")
        first = 1 + np.searchsorted(replies[common], np.arange(k + 1) * many)
        return cls(first, sequence[first_history], share[first_history], model, sequence, edge)

    @property
    def infoset(self) -> npt.NDArray[np.int64]:
        """int64[S - 1], the information state of each sequence but number 0."""
        return np.repeat(np.arange(len(self.previous)), np.diff(self.first))

    def worst(self, won: npt.NDArray[np.float64]) -> float:
        """The least that is won, where `won`, float64[n], is what each history ends with if nature comes."""
        reached = self.sequence >= 0
        worth = np.bincount(self.sequence[reached], won[reached], len(self.model))
        return float(_worst(self.first, self.previous, self.share, self.model, worth))

    def behavior(self, plan: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """float64[S]: the probability of each reply, of a realization plan.

        What is anybody's, and not the model's, is s in all, however it was rounded. Where nature does not
        come, it is the model.
        """
        infoset, k, p = self.infoset, len(self.previous), self.model[1:]
        total = np.bincount(infoset, plan[1:], k)[infoset]
        q = np.divide(plan[1:], total, out=p.copy(), where=total > _NEVER)
        share = self.share[infoset]
        free = np.maximum(q - (1.0 - share) * p, 0.0)  # it stays where nature put it, however small p is
        whole = np.bincount(infoset, free, k)[infoset]
        other = np.divide(free, whole, out=p.copy(), where=whole > 0.0)
        return np.append(1.0, p + share * (other - p))

    def edges(self, tree: HistoryTree, behavior: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """float64[n]: `tree.sigma` with such replies of the opponent's."""
        return np.where(self.edge == 0, tree.sigma, np.where(self.edge > 0, behavior[self.edge], 0.0))


def _information_states(tree: HistoryTree, turns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which of its mover's information states each of some turns is, numbered as they appear.

    Where information is imperfect, a tree numbers those that may be memorized only, so states are replayed.
    """
    if tree.infoset_keys is None:
        return np.arange(len(turns))
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(tree.state(h).information_state_string(), len(numbers)) for h in turns.tolist()],
        np.int64,
    )


def _won(tree: HistoryTree, strategy: MetaStrategy) -> npt.NDArray[np.float64]:
    """float64[n]: what ends at each history, by the player and chance alone, times what it is worth."""
    player, leaf = strategy.player, tree.num_children == 0
    if tree.stop_value == "backup":
        ends = np.where(leaf, strategy.reach(), 0.0)
    else:
        edge = tree.own_edges[player]
        before = np.where(edge > 0, np.append(strategy.plan(), 1.0)[tree.edge_entry[edge]], 1.0)
        decides = (tree.player == player) & (tree.infoset >= 0)
        stops = np.where(
            decides, 1.0 - np.append(strategy.totals, 0.0)[tree.infoset], np.where(leaf, 1.0, 0.0)
        )
        ends = tree.own_reaches[player] * before * stops
    ended = ends > 0.0  # elsewhere there may be no value
    won = np.zeros(tree.num_histories)
    worth = tree.value[ended] if player == 0 else tree.utility_sum - tree.value[ended]
    won[ended] = (ends * tree.chance_reach)[ended] * worth
    return won


def _payoffs(
    tree: HistoryTree, player: int, own: npt.NDArray[np.int64], turns: _Turns, scale: float
) -> tuple[scipy.sparse.csc_array, float]:
    """The matrix of g: a row for each sequence of the opponent's, a column "nothing", then one per entry.

    Values are the player's, multiplied with `scale`, less a constant: whatever is memorized, the game ends.

    Returns:
      (the matrix, more than what follows any sequence can be worth or cost).
    """
    leaf = (tree.num_children == 0) & (turns.sequence >= 0)
    ends = np.flatnonzero(leaf)
    if tree.stop_value == "backup":
        by_entry = contributions(tree, player, own, ends)
    else:
        decides = (tree.player == player) & (tree.infoset >= 0) & (turns.sequence >= 0)
        ends = np.flatnonzero(leaf | decides)
        column = np.full(tree.num_entries, -1)
        column[own] = 1 + np.arange(len(own))
        edge = tree.own_edges[player][ends]
        last = np.where(edge > 0, np.append(column, 0)[tree.edge_entry[edge]], 0)
        # At a turn, the player stops with the probability of having come, less those of the turn's entries.
        stops = np.flatnonzero(decides[ends])
        infoset = tree.infoset[ends[stops]]
        counts = np.diff(tree.first_entry)[infoset]
        rows = np.repeat(stops, counts)
        entry = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        entry += np.repeat(tree.first_entry[infoset], counts)
        reach = tree.own_reaches[player][ends]
        row, at = np.append(np.arange(len(ends)), rows), np.append(last, column[entry])
        used, part = at >= 0, np.append(reach, -reach[rows])
        shape = (len(ends), 1 + len(own))
        by_entry = scipy.sparse.coo_array((part[used], (row[used], at[used])), shape=shape).tocsr()
    low, high = float(tree.value[ends].min()), float(tree.value[ends].max())
    worth = tree.value[ends] - (0.5 * low + 0.5 * high)
    weight = scale * tree.chance_reach[ends] * (worth if player == 0 else -worth)
    of_sequence = scipy.sparse.coo_array(
        (weight, (turns.sequence[ends], np.arange(len(ends)))), shape=(len(turns.model), len(ends))
    )
    return (of_sequence.tocsr() @ by_entry).tocsc(), scale * (high - low)


def _nature_rows(turns: _Turns) -> scipy.sparse.csr_array:
    """What the program asks of W, V and m; the rows of W are first."""
    k, s, infoset = len(turns.previous), len(turns.model) - 1, turns.infoset
    later, numbers = np.flatnonzero(turns.previous > 0), np.arange(s)
    after = scipy.sparse.csr_array((np.ones(len(later)), (turns.previous[later] - 1, later)), shape=(s, k))
    member = scipy.sparse.csr_array((np.ones(s), (numbers, infoset)), shape=(s, k))
    model = scipy.sparse.csr_array((turns.model[1:], (infoset, numbers)), shape=(k, s))
    each, one = scipy.sparse.eye_array(s), scipy.sparse.eye_array(k)
    share, rest = (scipy.sparse.diags_array(part) for part in (turns.share, 1.0 - turns.share))
    rows = [[each, -after, None], [-rest @ model, one, -share], [-each, None, member]]
    return scipy.sparse.block_array(rows, format="csr")


def _solved(
    tree: HistoryTree, player: int, turns: _Turns, budget: float | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """(the player's plan: float64[E], nature's: float64[S], what an information state costs)."""
    penalty = tree.penalties[player]
    own = np.flatnonzero((tree.entry_player == player) & (budget is not None or np.isfinite(penalty)))
    scale = unit(tree.scale)
    payoff, most = _payoffs(tree, player, own, turns, scale)
    matrices, nature = EntryMatrices.of(tree, own), _nature_rows(turns)
    weight = tree.infoset_weight[tree.entry_infoset[own]]
    cost = 0.0 if budget is not None else scale * min(penalty, _DEAREST * tree.scale)
    m, k, s = len(own), len(turns.previous), len(turns.model) - 1
    rows, columns = nature.shape
    by_entry = scipy.sparse.csr_array(-payoff[1:, 1:])
    by_entry.resize(rows, m)
    chain = matrices.members - matrices.after
    gain = payoff[[0], 1:].toarray().ravel() - cost * weight
    first = (turns.previous == 0).astype(np.float64)
    # What is far from any solution bounds W, V and m: HiGHS can fail where columns are free.
    least, greatest = np.full(columns, -most), np.full(columns, most)
    upper = np.zeros(rows)
    upper[:s] = payoff[1:, [0]].toarray().ravel()
    solution = Program(
        objective=np.concatenate([gain, np.zeros(s), first, np.zeros(columns - s - k)]),
        matrix=scipy.sparse.block_array(
            [[by_entry, nature], [chain, None], [weight[np.newaxis], None]], format="csr"
        ),
        row_lower=np.full(rows + len(matrices.previous) + 1, -np.inf),
        row_upper=np.concatenate([upper, matrices.previous < 0, [np.inf if budget is None else budget]]),
        lower=np.concatenate([np.zeros(m), least]),
        upper=np.concatenate([np.ones(m), greatest]),
        least=_LEAST,
    ).solve()
    plan = np.zeros(tree.num_entries)
    plan[own] = np.clip(solution.x[:m], 0.0, 1.0)
    natures = np.append(1.0, np.maximum(solution.duals[:s], 0.0))
    return plan, natures, penalty if budget is None else max(0.0, solution.duals[-1] / scale)


@kernel
def _worst(
    first: np.ndarray,
    previous: np.ndarray,
    share: np.ndarray,
    model: np.ndarray,
    worth: np.ndarray,
) -> float:
    """What nature leaves, where `worth` is what is won right after each sequence."""
    q = np.empty(len(model))
    for k in range(len(previous) - 1, -1, -1):
        a, b = first[k], first[k + 1]
        left = worst_reply(share[k], model[a:b], worth[a:b], q[a:b])
        if previous[k] >= 0:
            worth[previous[k]] += left
    return float(worth[0])
