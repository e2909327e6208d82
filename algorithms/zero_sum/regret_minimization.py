"""Algorithm 2: an equilibrium of the meta-game by counterfactual regret minimization on the flat tree.

Each iteration updates player 0 and then player 1 against the other's current strategy. At information state
I the actions are worth stop(I) and, for each entry e of its menu, memorize(e) (`preparation.decisions`), the
player's penalty charged on its own realization plan, so that the result is exact for all policies. These are
the counterfactual values of the paper's game G', and on trees where that one is exact too the iterates are
those of OpenSpiel's solvers on it.

Variants, by name:

    "cfr"    regret matching, uniform averaging                              Zinkevich et al. 2007
    "cfr+"   regrets floored at 0, averages weighted with t                  Tammelin 2014
    "dcfr"   discounted, alpha = 1.5, beta = 0, gamma = 2                    Brown and Sandholm 2019
    "pcfr+"  predictive: the next strategy answers the last regrets again,   Farina, Kroer and Sandholm 2021
             averages weighted with t^2
    "pdcfr+" predictive, floored and discounted, alpha = 2.3, gamma = 5      Xu et al. 2024, arXiv 2404.13891

Indices of "pdcfr+": iteration t = 1, 2, ... adds its regrets, floors the sum, and then discounts it with
t^2.3 / (t^2.3 + 1). So iteration t + 1 finds it discounted with the index t, and the prediction, which is the
regrets of iteration t once more, is added to what is discounted. The average weighs iteration t with t^5.

An iteration makes one pass for each player i, against the current strategy of its opponent j. The pass goes
down over all decisions with j's contribution to their reach, in two parts: the probability that j still
memorizes, and that it has stopped. It comes back with two numbers, both in player 0's utility and weighted
with chance:

    worth  the value of i's sigma from here on,
    after  the product of i's sigma_pre so far, times the value of the leaves that follow without another
           decision of i's, plus the values of i's next information states.

At an information state of i, stopping is worth own_reach * worth, and memorizing an entry is worth its after
less the price. The pass updates regrets, averages and the strategy at once, and hands the value of the new
mixture on to the decisions above. `preparation.decisions` explains why these numbers suffice.

Loops over a menu are written once. `_first` and `_size` see by the type of their argument whether a tree has
menus. Where it has none, the compiler knows that each loop has one turn. In a base game alone, where nobody
stops, `_at` and `_add` see in the same way that there is nothing to read and write.

Source: `precomputation`, Algorithm 2, Theorem 4.

Deviations: CFR runs on the base game's histories, not on G', whose nodes multiply with both players' stop
times; it stops at a NashConv that is measured, not after O(|W|^2 / epsilon^2) iterations; the signs of the
penalties at truncated leaves (Algorithm 2, line 3) are Lemma 4's.

Cost: an iteration reads and writes each array twice, once for either player. NashConv is measured by other
code, `preparation.decisions`, on the tree as it is.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.kernels import kernel
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, adjusted

from .folded_tree import ALONE, ONE_OF_SEVERAL, DecisionTree

_AVERAGING = {"cfr": 0, "cfr+": 1, "dcfr": 2, "pcfr+": 2, "pdcfr+": 5}  # powers of t that weigh iteration t
_DISCOUNTING = {"dcfr": 1.5, "pdcfr+": 2.3}  # alpha: iteration t leaves t^alpha / (t^alpha + 1)

CFR_VARIANTS = tuple(_AVERAGING)
"""Names of the variants that `meta_equilibrium` knows."""
Variant = Annotated[str, checks.one_of(CFR_VARIANTS)]
"""One of `CFR_VARIANTS`."""

MOST_ITERATIONS = 1_000_000
"""After so many iterations `meta_equilibrium` gives a target up that it was given alone."""


class Rule(NamedTuple):
    """An update rule of one iteration.

    A regret r becomes max(r + gain, floor), then is multiplied by `positive` or `negative` as its sign is.
    The next strategy answers regrets to which the last gain is added `predict` times. `weight`: of this
    iteration's plan in the average.
    """

    floor: float
    positive: float
    negative: float
    predict: float
    weight: float


class RegretState(NamedTuple):
    """A run's arrays: what is kept between iterations, and what a pass writes down for itself.

    The latter is here so that no iteration waits for fresh memory.

    Attributes:
      current: float64[E], the strategies, the probability of each entry.
      regret_memorize: float64[E], the regret of each entry.
      regret_stop: float64[E], that of stopping, at the first entry of each information state.
      plan_sum: float64[E], the weighted sum of realization plans.
      goes_on, stops: float64[M] and float64[N], the opponent's contribution: after the opponent's own choice
        at its decisions, and elsewhere what memorizes still and what does not.
      worth, after: float64[N] and float64[M], sums over children, zero between passes but for number 0.
        `stops` and `worth` are None where nobody stops.
      plan: float64[E].
      shared: float64[E, 2], sums over an information state's histories: stop, at its first entry, and
        memorize.
    """

    current: npt.NDArray[np.float64]
    regret_memorize: npt.NDArray[np.float64]
    regret_stop: npt.NDArray[np.float64]
    plan_sum: npt.NDArray[np.float64]
    goes_on: npt.NDArray[np.float64]
    stops: npt.NDArray[np.float64] | None
    worth: npt.NDArray[np.float64] | None
    after: npt.NDArray[np.float64]
    plan: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64]

    @classmethod
    def start(cls, tree: DecisionTree, current: npt.NDArray[np.float64]) -> RegretState:
        """Return the arrays before the first iteration."""
        n, slots, entries = len(tree.parent), len(tree.pre_leaves), len(current)
        memorize, stop, plans, plan = np.zeros((4, entries))
        goes_on, after = np.zeros((2, slots))
        goes_on[0] = 1.0
        stops, worth = (None, None) if tree.sigma is None else np.zeros((2, n))
        shared = np.zeros((entries if (tree.status != ALONE).any() else 0, 2))
        return cls(current, memorize, stop, plans, goes_on, stops, worth, after, plan, shared)


class RegretMinimization:
    """Regrets and averages of a run, in the order of the decision tree; measured every so many iterations."""

    too_large = False

    def __init__(self, tree: HistoryTree, variant: str, check_every: int = MOST_ITERATIONS) -> None:
        self.tree = tree
        self.name = variant
        self.check_every = check_every
        self.iterations = 0
        self.decisions = DecisionTree.of(tree)
        playing = np.isfinite(np.array(tree.penalties))[tree.entry_player]
        actions = float(tree.may_stop) + np.diff(tree.first_entry)[tree.entry_infoset]
        self.unreached = np.where(playing, 1.0 / actions, 0.0)[self.decisions.tree_entry]
        self.state = RegretState.start(self.decisions, self.unreached.copy())

    def advance(self, most: int) -> None:
        """Go on to the next measurement, by at most so many iterations."""
        count = max(0, min(self.check_every - self.iterations % self.check_every, most))
        rules = [update_rule(self.name, self.iterations + 1 + k) for k in range(count)]
        iterate(self.decisions, self.state, rules)
        self.iterations += count

    def strategies(self) -> tuple[MetaStrategy, MetaStrategy]:
        """Return the average strategies; where neither player ever came, all actions alike."""
        decisions, plans = self.decisions, self.state.plan_sum
        start = _total_weight(self.name, float(self.iterations))
        above = np.where(decisions.previous >= 0, plans[decisions.previous], start)
        if decisions.first_entry is not None:
            above = np.repeat(above, np.diff(decisions.first_entry))
        averages = np.empty(len(plans))
        shares = np.divide(np.minimum(plans, above), above, out=self.unreached.copy(), where=above > 0.0)
        averages[decisions.tree_entry] = shares
        first, second = (adjusted(self.tree, averages, i) for i in (0, 1))  # sums of rounded numbers
        return MetaStrategy(self.tree, 0, first), MetaStrategy(self.tree, 1, second)

    def learn(self, chosen: npt.NDArray[np.bool_]) -> bool:
        """Return True: best responses add nothing, and it can always go on."""
        return True


def update_rule(variant: str, t: int) -> Rule:
    """Return the update rule of iteration t = 1, 2, ..."""
    power = _DISCOUNTING.get(variant)
    return Rule(
        floor=0.0 if variant.endswith("+") else -math.inf,
        positive=1.0 if power is None else t**power / (t**power + 1.0),
        negative=0.5 if variant == "dcfr" else 1.0,
        predict=1.0 if variant.startswith("p") else 0.0,
        weight=float(t ** _AVERAGING[variant]),
    )


def _total_weight(variant: str, t: float) -> float:
    """Return the sum of the weights of iterations 1 to t."""
    sums = {
        0: t,
        1: t * (t + 1.0) / 2.0,
        2: t * (t + 1.0) * (2.0 * t + 1.0) / 6.0,
        5: t**2 * (t + 1.0) ** 2 * (2.0 * t * (t + 1.0) - 1.0) / 12.0,
    }
    return sums[_AVERAGING[variant]]


def iterate(tree: DecisionTree, state: RegretState, rules: list[Rule]) -> None:
    """Do an iteration for each rule, player 0 before player 1; change `state`."""
    if rules:
        _iterate(tree, state, np.array(rules, np.float64))


@kernel
def _iterate(tree: DecisionTree, state: RegretState, rules: np.ndarray) -> None:
    for t in range(len(rules)):
        rule = Rule(rules[t, 0], rules[t, 1], rules[t, 2], rules[t, 3], rules[t, 4])
        if 0 in tree.players:
            _turn(tree, state, 0, rule)
        if 1 in tree.players:
            _turn(tree, state, 1, rule)


@kernel
def _turn(tree: DecisionTree, state: RegretState, player: int, rule: Rule) -> None:
    _put(state.worth, np.uint64(0), 0.0)
    state.after[0] = 0.0
    _down(tree, state, player)
    _up(tree, state, player, rule)


# In a pass back, `after` holds what the loops over a menu leave to each other, and is zero in the end.
# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned.


@kernel
def _first(firsts: np.ndarray | None, alone: np.uint64, k: np.uint64) -> np.uint64:
    """Return firsts[k]; without menus `alone`, a decision for its slot or a state for its entry."""
    if firsts is None:
        return alone
    return np.uint64(firsts[k])


@kernel
def _size(first_slot: np.ndarray | None, h: np.uint64) -> int:
    """Return the number of slots of a decision."""
    if first_slot is None:
        return 1
    return int(first_slot[h + np.uint64(1)]) - int(first_slot[h])


@kernel
def _row(rows: np.ndarray | None, k: int) -> Any:
    """Return rows[k]; None where nobody stops."""
    if rows is None:
        return None
    return rows[k]


@kernel
def _at(array: np.ndarray | None, h: np.uint64, otherwise: float) -> Any:
    """Return array[h]; `otherwise` where nobody stops."""
    if array is None:
        return otherwise
    return array[h]


@kernel
def _put(array: np.ndarray | None, h: np.uint64, value: float) -> None:
    """Set array[h] = value; do nothing where nobody stops."""
    if array is not None:
        array[h] = value


@kernel
def _add(array: np.ndarray | None, h: np.uint64, value: float) -> None:
    """Add value to array[h]; do nothing where nobody stops."""
    if array is not None:
        array[h] += value


@kernel
def _down(tree: DecisionTree, state: RegretState, player: int) -> None:
    """Pass the opponent's contribution and the player's plan down the tree."""
    parents, slots, infosets, previous = tree.parent, tree.parent_slot, tree.infoset, tree.previous
    runs, status = tree.runs, tree.status
    first_slot, first_entry, sigma, sigma_pre = tree.first_slot, tree.first_entry, tree.sigma, tree.sigma_pre
    goes_on, stops, plan, current = state.goes_on, state.stops, state.plan, state.current
    for run in range(len(runs)):
        first, end = runs[run, 0], runs[run, 1]
        # What precedes all decisions counts as player 0's: it goes on for sure, over edges of 1.
        rival_before, own = runs[run, 2] != player, runs[run, 3] == player
        for decision in range(first, end):
            h = np.uint64(decision)
            infoset = np.uint64(infosets[h])
            p = np.uint64(parents[h])
            memorizes, stopped = goes_on[_first(slots, p, h)], _at(stops, p, 0.0)
            if rival_before:
                memorizes *= _at(sigma_pre, h, 1.0)
                stopped *= _at(sigma, h, 1.0)
            entry, slot = _first(first_entry, infoset, infoset), _first(first_slot, h, h)
            size = _size(first_slot, h)
            if own:
                if status[h] != ONE_OF_SEVERAL:
                    before = previous[infoset]
                    reach = plan[np.uint64(before)] if before >= 0 else 1.0
                    for e in range(size):
                        plan[entry + np.uint64(e)] = reach * current[entry + np.uint64(e)]
                for e in range(size):
                    goes_on[slot + np.uint64(e)] = memorizes
                _put(stops, h, stopped)
            else:
                rest = memorizes + stopped
                for e in range(size):
                    on = memorizes * current[entry + np.uint64(e)]
                    goes_on[slot + np.uint64(e)] = on
                    rest -= on
                _put(stops, h, rest)


@kernel
def _up(tree: DecisionTree, state: RegretState, player: int, rule: Rule) -> None:
    """Pass values up the tree and update regrets."""
    parents, slots, infosets, status = tree.parent, tree.parent_slot, tree.infoset, tree.status
    first_slot, first_entry, prices, sigma = tree.first_slot, tree.first_entry, tree.price, tree.sigma
    sigma_leaves, pre_leaves, own_reach = tree.sigma_leaves, tree.pre_leaves, _row(tree.own_reach, player)
    goes_on, stops, worth, after = state.goes_on, state.stops, state.worth, state.after
    runs, plan, shared = tree.runs, state.plan, state.shared
    current, plan_sum = state.current, state.plan_sum
    regret_memorize, regret_stop = state.regret_memorize, state.regret_stop
    sign, may_stop = 1.0 if player == 0 else -1.0, tree.may_stop
    for run in range(len(runs) - 1, -1, -1):
        first, end = runs[run, 0], runs[run, 1]
        own_before, own = runs[run, 2] == player, runs[run, 3] == player
        for decision in range(end - 1, first - 1, -1):
            h = np.uint64(decision)
            slot, size = _first(first_slot, h, h), _size(first_slot, h)
            if own:
                infoset = np.uint64(infosets[h])
                entry = _first(first_entry, infoset, infoset)
                total, own_share = goes_on[slot] + _at(stops, h, 0.0), _at(own_reach, h, 1.0)
                here = _at(worth, h, 0.0) + total * _at(sigma_leaves, h, 0.0)
                stop = own_share * here
                several, complete = status[h] != ALONE, status[h] != ONE_OF_SEVERAL
                if several:
                    stop += shared[entry, 0]
                    shared[entry, 0] = 0.0 if complete else stop
                price = sign * prices[infoset] if complete else 0.0
                mean = -0.0  # of what memorizing is worth more than stopping; -0.0 + x costs nothing
                for e in range(size):
                    j, s = entry + np.uint64(e), slot + np.uint64(e)
                    memorize = after[s] + own_share * (total * pre_leaves[s])
                    if several:
                        memorize += shared[j, 1]
                        shared[j, 1] = 0.0 if complete else memorize
                    on = difference = 0.0
                    if complete:
                        on, difference = current[j], memorize - price - stop
                        mean += on * difference
                    after[s] = difference if size > 1 else 0.0
                value = 0.0
                if complete:
                    value = stop + mean
                    wishes = 0.0
                    if may_stop > 0.0:
                        gain = -sign * mean
                        regret = max(regret_stop[entry] + gain, rule.floor)
                        regret *= rule.positive if regret > 0.0 else rule.negative
                        regret_stop[entry] = regret
                        wishes = max(regret + rule.predict * gain, 0.0)
                    for e in range(size):
                        j, s = entry + np.uint64(e), slot + np.uint64(e)
                        if size > 1:  # with one entry, what the loops leave to each other is at hand
                            on, difference = current[j], after[s]
                        others = 0.0 if size == 1 else mean - on * difference
                        gain = sign * ((1.0 - on) * difference - others)
                        r = max(regret_memorize[j] + gain, rule.floor)
                        r *= rule.positive if r > 0.0 else rule.negative
                        regret_memorize[j] = r
                        wish = max(r + rule.predict * gain, 0.0)
                        wishes += wish
                        if size > 1:
                            after[s] = wish
                    for e in range(size):
                        j, s = entry + np.uint64(e), slot + np.uint64(e)
                        if size > 1:
                            wish, after[s] = after[s], 0.0
                        current[j] = wish / wishes if wishes > 0.0 else 1.0 / (may_stop + size)
                        plan_sum[j] += rule.weight * plan[j]
            else:
                leaves = _at(stops, h, 0.0) * _at(sigma_leaves, h, 0.0)
                for e in range(size):
                    leaves += goes_on[slot + np.uint64(e)] * pre_leaves[slot + np.uint64(e)]
                here = _at(worth, h, 0.0) + leaves
                value = _at(own_reach, h, 1.0) * leaves
                for e in range(size):
                    value += after[slot + np.uint64(e)]
                    after[slot + np.uint64(e)] = 0.0
            _put(worth, h, 0.0)
            if own_before:
                here *= _at(sigma, h, 1.0)
            p = np.uint64(parents[h])
            _add(worth, p, here)
            after[_first(slots, p, h)] += value
