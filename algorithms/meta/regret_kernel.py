"""Counterfactual regret minimization over a `DecisionTree`: the passes down and back of one iteration.

Against player j's current strategy, player i's pass goes down over all decisions with the probability that
j's choices and policies contribute, split into what memorizes still and what has stopped, and comes back with
two numbers, both of player 0's utility and weighted with chance:

    worth  the value of i's sigma from here on,
    after  i's own sigma_pre so far times the value of what follows directly and is no decision of i's,
           and the values of i's next information states.

At an information state, stopping is worth own_reach * worth and memorizing after - penalty; regrets, averages
and the strategy are updated on the spot, and the mixture of the two is its value in what lies above. See
`preparation.decisions` for why this is all there is.

Source: `precomputation`, Algorithm 2; the update rules' sources are in `meta_equilibrium`.

Cost: an iteration reads and writes each array twice, once for either player.
"""

from __future__ import annotations

import concurrent.futures
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from .folded_tree import ALONE, LAST, ONE_OF_SEVERAL, DecisionTree

__all__ = ["RegretState", "Rule", "Work", "iterate"]


class Rule(NamedTuple):
    """One iteration's update rule.

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
    """What is kept between iterations: float64[m] each.

    Attributes:
      current: The strategies.
      regret_memorize, regret_stop: The regrets of the two actions.
      plan_sum: The weighted sum of realization plans.
    """

    current: npt.NDArray[np.float64]
    regret_memorize: npt.NDArray[np.float64]
    regret_stop: npt.NDArray[np.float64]
    plan_sum: npt.NDArray[np.float64]

    @classmethod
    def start(cls, current: npt.NDArray[np.float64]) -> RegretState:
        """Before the first iteration."""
        return cls(current, *(np.zeros(len(current)) for _ in range(3)))


class Work(NamedTuple):
    """What a pass writes down for itself; kept, so that no iteration waits for fresh memory.

    Attributes:
      goes_on, stops: float64[N], the opponent's contribution: after the opponent's own choice at its
        decisions, and elsewhere what memorizes still and what does not.
      worth, after: float64[N], sums over children, zero between passes but for number 0.
      plan: float64[m].
      shared: float64[m, 2], sums over an information state's histories.
    """

    goes_on: npt.NDArray[np.float64]
    stops: npt.NDArray[np.float64]
    worth: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    plan: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64]

    @classmethod
    def of(cls, tree: DecisionTree) -> Work:
        """Buffers for a tree."""
        n, m = len(tree.parent), len(tree.previous)
        shared = m if (tree.status != ALONE).any() else 0
        goes_on = np.zeros(n)
        goes_on[0] = 1.0
        return cls(goes_on, np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(m), np.zeros((shared, 2)))


def iterate(
    tree: DecisionTree,
    state: RegretState,
    work: Work,
    rules: list[Rule],
    penalties: tuple[float, float],
    threads: concurrent.futures.Executor | None = None,
) -> None:
    """Does an iteration for each rule, player 0 before player 1.

    Args:
      tree: what to run over.
      state: is changed.
      work: of this tree.
      rules: of the iterations to do.
      penalties: an infinite one: that player is left out.
      threads: where given, the shards are handed to it; the result is the same to the last bit.
    """
    if not rules:
        return
    table = np.array(rules, np.float64)
    if threads is None or len(tree.shards) <= 3:
        _iterate(tree, state, work, table, penalties[0], penalties[1])
        return
    count = len(tree.shards) - 1
    for rule in rules:
        for player, penalty in enumerate(penalties):
            if np.isfinite(penalty):
                _down(tree, state, work, 0, player)
                shards = [
                    threads.submit(_shard, tree, state, work, k, player, penalty, rule)
                    for k in range(1, count)
                ]
                for shard in shards:
                    shard.result()
                _attach(tree, work, player)
                _up(tree, state, work, 0, player, penalty, rule)


@numba.njit(cache=True, nogil=True)
def _iterate(
    tree: DecisionTree, state: RegretState, work: Work, rules: np.ndarray, penalty_0: float, penalty_1: float
) -> None:
    for t in range(len(rules)):
        rule = Rule(rules[t, 0], rules[t, 1], rules[t, 2], rules[t, 3], rules[t, 4])
        for player in range(2):
            penalty = penalty_0 if player == 0 else penalty_1
            if penalty < np.inf:
                _down(tree, state, work, 0, player)
                for k in range(1, len(tree.shards) - 1):
                    _shard(tree, state, work, k, player, penalty, rule)
                _attach(tree, work, player)
                _up(tree, state, work, 0, player, penalty, rule)


@numba.njit(cache=True, nogil=True)
def _shard(
    tree: DecisionTree, state: RegretState, work: Work, k: int, player: int, penalty: float, rule: Rule
) -> None:
    _down(tree, state, work, k, player)
    _up(tree, state, work, k, player, penalty, rule)


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned.


@numba.njit(cache=True, nogil=True)
def _down(tree: DecisionTree, state: RegretState, work: Work, k: int, player: int) -> None:
    """The opponent's contribution and the player's plan in shard k."""
    parents, infosets, sigma, sigma_pre = tree.parent, tree.infoset, tree.sigma, tree.sigma_pre
    goes_on, stops, plan, current, previous = (
        work.goes_on,
        work.stops,
        work.plan,
        state.current,
        tree.previous,
    )
    for run in range(tree.shards[k], tree.shards[k + 1]):
        first, end = tree.runs[run, 0], tree.runs[run, 1]
        # What precedes all decisions counts as player 0's: it goes on for sure, over edges of 1.
        rival_before, own = tree.runs[run, 2] != player, tree.runs[run, 3] == player
        for decision in range(first, end):
            h = np.uint64(decision)
            p, infoset = np.uint64(parents[h]), np.uint64(infosets[h])
            memorizes, stopped = goes_on[p], stops[p]
            if rival_before:
                memorizes *= sigma_pre[h]
                stopped *= sigma[h]
            if own:
                before = previous[infoset]
                reach = plan[np.uint64(before)] if before >= 0 else 1.0
                plan[infoset] = reach * current[infoset]
                goes_on[h], stops[h] = memorizes, stopped
            else:
                on = memorizes * current[infoset]
                goes_on[h], stops[h] = on, memorizes + stopped - on


@numba.njit(cache=True, nogil=True)
def _up(
    tree: DecisionTree, state: RegretState, work: Work, k: int, player: int, penalty: float, rule: Rule
) -> None:
    """Values and updates in shard k."""
    parents, infosets, status, sigma = tree.parent, tree.infoset, tree.status, tree.sigma
    sigma_leaves, pre_leaves, own_reach = tree.sigma_leaves, tree.pre_leaves, tree.own_reach[player]
    goes_on, stops, worth, after = work.goes_on, work.stops, work.worth, work.after
    plan, shared = work.plan, work.shared
    current, plan_sum = state.current, state.plan_sum
    regret_memorize, regret_stop = state.regret_memorize, state.regret_stop
    sign = 1.0 if player == 0 else -1.0
    for run in range(tree.shards[k + 1] - 1, tree.shards[k] - 1, -1):
        first, end = tree.runs[run, 0], tree.runs[run, 1]
        own_before, own, enters = tree.runs[run, 2] == player, tree.runs[run, 3] == player, tree.runs[run, 4]
        for decision in range(end - 1, first - 1, -1):
            h = np.uint64(decision)
            if own:
                total = goes_on[h] + stops[h]
                here = worth[h] + total * sigma_leaves[h]
                memorize = after[h] + own_reach[h] * (total * pre_leaves[h])
                stop = own_reach[h] * here
                infoset = np.uint64(infosets[h])
                if status[h] != ALONE:
                    stop += shared[infoset, 0]
                    memorize += shared[infoset, 1]
                    complete = status[h] == LAST
                    shared[infoset, 0] = 0.0 if complete else stop
                    shared[infoset, 1] = 0.0 if complete else memorize
                if status[h] != ONE_OF_SEVERAL:
                    on = current[infoset]
                    difference = memorize - sign * penalty - stop
                    value = stop + on * difference
                    gain_memorize, gain_stop = sign * (1.0 - on) * difference, -sign * on * difference
                    r = max(regret_memorize[infoset] + gain_memorize, rule.floor)
                    s = max(regret_stop[infoset] + gain_stop, rule.floor)
                    r *= rule.positive if r > 0.0 else rule.negative
                    s *= rule.positive if s > 0.0 else rule.negative
                    regret_memorize[infoset] = r
                    regret_stop[infoset] = s
                    r = max(r + rule.predict * gain_memorize, 0.0)
                    s = max(s + rule.predict * gain_stop, 0.0)
                    current[infoset] = r / (r + s) if r + s > 0.0 else 0.5
                    plan_sum[infoset] += rule.weight * plan[infoset]
                else:
                    value = 0.0
            else:
                leaves = goes_on[h] * pre_leaves[h] + stops[h] * sigma_leaves[h]
                here = worth[h] + leaves
                value = after[h] + own_reach[h] * leaves
            worth[h] = 0.0
            after[h] = 0.0
            if own_before:
                here *= sigma[h]
            if enters:  # into shard 0, where other threads may write: `_attach` does it
                goes_on[h], stops[h] = here, value
            else:
                p = np.uint64(parents[h])
                worth[p] += here
                after[p] += value


@numba.njit(cache=True, nogil=True)
def _attach(tree: DecisionTree, work: Work, player: int) -> None:
    """Adds what the shards found to shard 0, always in the same order."""
    parents, runs = tree.parent, tree.runs
    goes_on, stops, worth, after = work.goes_on, work.stops, work.worth, work.after
    worth[0] = 0.0
    after[0] = 0.0
    for run in range(len(runs) - 1, tree.shards[1] - 1, -1):
        if runs[run, 4]:
            for h in range(runs[run, 1] - 1, runs[run, 0] - 1, -1):
                p = np.uint64(parents[h])
                worth[p] += goes_on[h]
                after[p] += stops[h]
