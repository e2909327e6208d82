"""One price for all information states of a position: the most valuable set, and a proof that it is.

Gains g(I) add up over a memorization set S (`decisions`), and with I the set S holds the player's information
state before it. Where the information states of a position share one price lambda, S is worth

    F(S) = sum over I in S of g(I) - lambda |positions of S|.

To maximize F is a problem of project selection (Picard 1976): the closure of greatest weight in a graph in
which each information state needs the one before it and its position. The linear program over
x(I) <= x(before I), x(I) <= b(P) has integral vertices only, because it is the dual of a flow problem.

Its dual divides the price of each position among the information states of that position: y(I) >= 0, with a
sum of at most lambda. For any such division y, Algorithm 1 at the prices y gives an upper bound on F, and at
the optimum the two are equal. Therefore each set comes with a division, and one more pass certifies the set.

Passes over the forest settle most information states. Some optimal set agrees with all that they decide, by
two rules:

- *In.* Suppose that positions which are paid for are free and that every other information state pays lambda
  for itself. That charges too much, so the least of the sets that are best at these prices is part of every
  set that is best at the true ones. And where the information states of a position that could be taken now
  are together worth more than lambda, before that price, the position pays off too. They share its price in
  proportion to what they are worth.
- *Out.* Suppose that all that is open is free, except where a position other than P has one open information
  state left, which then pays lambda. If the information states of P are together worth at most lambda, some
  optimal set does without P. Each of them takes as much of the price as it is worth.

The proofs are in docs/position_prices.md. HiGHS solves what the rules leave open, which is some hundred of
60,000 positions on random trees.

Best sets can be chosen so that they shrink as lambda grows. So they form a frontier. Its bends lie where two
known lines meet (Eisner and Severance 1976), and each step looks only at what lies between two known sets.

Source: Picard, "Maximal closure of a graph and applications to combinatorial problems", Management Science
22 (1976).

Cost: two passes a round, and a linear program over what is left. Each round but the last settles at least one
information state, and not many more on a chain of positions that pay for each other; so there are at most as
many rounds as information states. The random trees of the tests take 2 to 8.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from ..programs import ProgramBuilder, unit
from .decisions import Decisions

_ROUNDING = 1e-13  # of the sum of gains: sets whose worth differs by less are the same
_OPEN, _IN, _OUT = 0, 1, 2


@dataclasses.dataclass(frozen=True, eq=False)
class PricedForest:
    """Gains on n nodes in trees, which share the prices of P positions.

    Attributes:
      previous: int32[n], the node before each, an earlier one; -1: there is none.
      gain: float64[n].
      position: int32[n], below P; P itself: it costs nothing.
      num_positions: P.
    """

    previous: npt.NDArray[np.int32]
    gain: npt.NDArray[np.float64]
    position: npt.NDArray[np.int32]
    num_positions: int

    @classmethod
    def of_decisions(cls, decisions: Decisions) -> tuple[PricedForest, npt.NDArray[np.int64]]:
        """Return (the forest of a player's information states, their numbers), where menus have one entry."""
        tree, shared = decisions.forest, decisions.shared
        assert shared is not None
        own = np.flatnonzero(tree.infoset_player == decisions.player)
        number = np.full(tree.num_infosets + 1, -1, np.int32)
        number[own] = np.arange(len(own), dtype=np.int32)
        free = tree.infoset_weight[own] == 0.0
        keys, position = np.unique(shared[own][~free], return_inverse=True)
        at = np.full(len(own), len(keys), np.int32)
        at[~free] = position
        gain, _ = decisions.gains()
        before = decisions.previous_infoset[own]
        return cls(number[before], gain[tree.first_entry[own]], at, len(keys)), own

    def between(
        self, inner: npt.NDArray[np.bool_], outer: npt.NDArray[np.bool_]
    ) -> tuple[PricedForest, npt.NDArray[np.int64]]:
        """Return (the forest of what `outer` has beyond `inner`, which is paid for; its nodes' numbers)."""
        nodes = np.flatnonzero(outer & ~inner)
        number = np.full(len(inner) + 1, -1, np.int32)
        number[nodes] = np.arange(len(nodes), dtype=np.int32)
        free = self.num_positions
        paid = self.paid(inner)[self.position[nodes]]
        keys, at = np.unique(np.where(paid, free, self.position[nodes]), return_inverse=True)
        count, position = len(keys) - int(paid.any()), at.astype(np.int32)
        return PricedForest(number[self.previous[nodes]], self.gain[nodes], position, count), nodes

    def paid(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return bool[P + 1]: the positions of a set of nodes, and what costs nothing."""
        paid = np.zeros(self.num_positions + 1, bool)
        paid[self.position[chosen]] = True
        paid[-1] = True
        return paid

    def size(self, chosen: npt.NDArray[np.bool_]) -> int:
        """Return the number of positions that a set of nodes pays for."""
        return int(self.paid(chosen)[:-1].sum())


@dataclasses.dataclass(frozen=True, eq=False)
class Closure:
    """A set of nodes of the greatest value, and the prices that prove it.

    Attributes:
      chosen: bool[n].
      gain: The sum of its gains.
      size: The number of positions that it pays for.
      upper: No set is worth more; gain - penalty * size but for rounding.
      price: float64[n], how the prices of positions are divided among their nodes.
      left: Nodes that were left to the linear program.
    """

    chosen: npt.NDArray[np.bool_]
    gain: float
    size: int
    upper: float
    price: npt.NDArray[np.float64]
    left: int


def best_closure(forest: PricedForest, penalty: float) -> Closure:
    """Return the set of most gain, less `penalty` for each position of it."""
    n, places = len(forest.gain), forest.num_positions + 1
    paid = np.zeros(places, bool)
    paid[-1] = True
    paid |= penalty == 0.0
    work = _Settling(
        forest.previous, forest.gain, forest.position, penalty,
        np.zeros(n, np.int8), paid, np.zeros(n), np.empty(n), np.empty(places), np.empty(places, np.int64),
    )  # fmt: skip
    _settle(work)
    left = np.flatnonzero(work.state == _OPEN)
    chosen = positions_of(forest, _by_program(forest, work, left)) if len(left) else work.state == _IN
    _, upper = values_at(forest, work.price)
    size = forest.size(chosen)
    return Closure(chosen, float(forest.gain[chosen].sum()), size, upper, work.price, len(left))


def positions_of(forest: PricedForest, bought: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return bool[n]: the best set of nodes at positions that are bought, bool[P + 1]."""
    at = np.where(bought, 0.0, np.inf)[forest.position]
    value, _ = values_at(forest, at)
    chosen = value > 0.0
    only_after(forest.previous, chosen)
    return chosen


def values_at(forest: PricedForest, price: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """Return (float64[n]: what each node with what is best after it is worth, the worth of the best set).

    `price` has a price for each node: this is Algorithm 1.
    """
    value = np.empty(len(price))
    return value, _values(forest.previous, forest.gain, price, value)


def _by_program(forest: PricedForest, work: _Settling, left: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Solve what is left; return bool[P + 1], what is paid for, and write `price` where it is left."""
    penalty, paid, price = work.penalty, work.paid, work.price
    scale = unit(float(np.abs(forest.gain[left]).max()), one=penalty)
    keys, at = np.unique(forest.position[left], return_inverse=True)
    to_pay = ~paid[keys]
    program = ProgramBuilder()
    program.columns(len(left) + len(keys))
    program.set_costs(
        dict(enumerate((forest.gain[left] * scale).tolist()))
        | {len(left) + k: -penalty * scale for k in np.flatnonzero(to_pay).tolist()}
    )
    number = np.full(len(work.state) + 1, -1)
    number[left] = np.arange(len(left))
    add_no_more_than(program, number[forest.previous[left]])
    own = add_no_more_than(program, np.where(to_pay[at], len(left) + at, -1))
    solution = program.built().solve()
    shares = np.maximum(solution.duals[own], 0.0) / scale * to_pay[at]
    total = np.bincount(at, shares, len(keys))
    price[left] = penalty * shares / np.maximum(total, penalty)[at]
    bought = paid.copy()
    bought[keys[solution.x[len(left) :] > 0.5]] = True
    return bought


def add_no_more_than(program: ProgramBuilder, other: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Add rows x[k] <= x[other[k]] for the first columns of a program, none where other[k] < 0.

    Returns:
      int64[n], the numbers of the rows.
    """
    n = len(other)
    rows = program.rows(np.full(n, -np.inf), np.zeros(n))
    program.put(np.where(other >= 0, rows, -1), np.arange(n), np.ones(n))
    program.put(rows, other, -np.ones(n))
    return rows


def closure_frontier(
    forest: PricedForest, penalty: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the best sets for all penalties from `penalty` upwards.

    Returns:
      (threshold: float64[n], the penalty at which a node leaves the set, 0 where it is not in the last one;
      breakpoints: float64[k], falling; sizes: int64[k + 1], positions; gains: float64[k + 1]).
    """
    threshold = np.zeros(len(forest.gain))
    last = best_closure(forest, penalty).chosen
    free = positions_of(forest, forest.paid(np.zeros(len(last), bool)))
    threshold[free] = np.inf
    waiting = [forest.between(free, last)]
    breakpoints: list[float] = []
    sizes, gains = [0], [float(forest.gain[free].sum())]
    while waiting:
        part, nodes = waiting.pop()
        if not len(nodes):
            continue
        gain = float(part.gain.sum())
        slope = gain / part.num_positions if part.num_positions else np.inf
        if part.num_positions > 1:
            closure = best_closure(part, slope)
            rounding = _ROUNDING * float(np.abs(part.gain).sum())
            inside = 0 < closure.size < part.num_positions
            if closure.gain - slope * closure.size > rounding and inside:
                nothing, everything = np.zeros(len(nodes), bool), np.ones(len(nodes), bool)
                above, beyond = part.between(closure.chosen, everything)
                below, within = part.between(nothing, closure.chosen)
                waiting += [(above, nodes[beyond]), (below, nodes[within])]
                continue
        if not part.num_positions:  # what rounding left over: it comes with what is there
            threshold[nodes] = breakpoints[-1] if breakpoints else 0.0
            gains[-1] += gain if breakpoints else 0.0
            continue
        if breakpoints and slope >= breakpoints[-1]:  # one bend, but for rounding
            slope = breakpoints.pop()
            sizes[-1] += part.num_positions
            gains[-1] += gain
        else:
            sizes.append(sizes[-1] + part.num_positions)
            gains.append(gains[-1] + gain)
        breakpoints.append(slope)
        threshold[nodes] = slope
    return threshold, np.array(breakpoints), np.array(sizes), np.array(gains)


@kernel
def _values(previous: np.ndarray, gain: np.ndarray, price: np.ndarray, value: np.ndarray) -> float:
    """Fill `value` at the prices and return the greatest total; see `values_at`."""
    below = np.zeros(len(gain) + 1)
    for k in range(len(gain) - 1, -1, -1):
        value[k] = gain[k] + below[k + 1] - price[k]
        if value[k] > 0.0:
            below[previous[k] + 1] += value[k]
    return float(below[0])


@kernel
def only_after(previous: np.ndarray, chosen: np.ndarray) -> None:
    """Take out what comes after something that is not chosen."""
    for k in range(len(previous)):
        if previous[k] >= 0 and not chosen[previous[k]]:
            chosen[k] = False


class _Settling(NamedTuple):
    """State of the module's rules, for n nodes at P positions.

    Attributes:
      previous, gain, position: See `PricedForest`.
      penalty: Lambda.
      state: int8[n], open, in the set, or out of it.
      paid: bool[P + 1], the positions that are paid for.
      price: float64[n], the share that each node has of the price of its position.
      worth: float64[n], what an open node is worth before its own price, at least or at most.
      total: float64[P + 1], the sum of what is worth something at each position.
      num_open: int64[P + 1], the open nodes of each.
    """

    previous: np.ndarray
    gain: np.ndarray
    position: np.ndarray
    penalty: float
    state: np.ndarray
    paid: np.ndarray
    price: np.ndarray
    worth: np.ndarray
    total: np.ndarray
    num_open: np.ndarray


@kernel
def _settle(work: _Settling) -> None:
    """Decide what passes can decide; write `state`, `paid` and `price`.

    Invariants of each round: some best set holds all nodes that are in, and none that are out. The node
    before a node that is in is in, and what comes after a node that is out is out. At a position that is paid
    for, the prices of the nodes that are in add up to `penalty`; elsewhere, the prices of the nodes that are
    out add up to at most `penalty`. So `price` divides the prices of positions among all that is decided. The
    rounds end with one that decides nothing.
    """
    changed = True
    while changed:
        _worth(work, False)
        taken_in = _take_in(work)
        work.num_open[:] = 0
        for k in range(len(work.gain)):
            if work.state[k] == _OPEN:
                work.num_open[work.position[k]] += 1
        _worth(work, True)
        left_out = _leave_out(work)
        changed = taken_in or left_out


@kernel
def _worth(work: _Settling, at_most: bool) -> None:
    """Write `worth`, at least or at most, and `total`, of positions to pay.

    At least: totals are over what can be had now. At most: over all that is open; `num_open` counts it.
    """
    previous, gain, state, worth = work.previous, work.gain, work.state, work.worth
    below = np.zeros(len(gain) + 1)
    work.total[:] = 0.0
    for k in range(len(gain) - 1, -1, -1):
        if state[k] != _OPEN:
            continue
        p, before = work.position[k], previous[k]
        worth[k] = gain[k] + below[k + 1]
        own = 0.0
        if not work.paid[p]:
            if worth[k] > 0.0 and (at_most or before < 0 or state[before] == _IN):
                work.total[p] += worth[k]
            if not at_most or work.num_open[p] == 1:
                own = work.penalty
        if worth[k] > own:
            below[before + 1] += worth[k] - own


@kernel
def _take_in(work: _Settling) -> bool:
    """Take in what pays at least; return whether there was anything."""
    state, paid, price, worth = work.state, work.paid, work.price, work.worth
    penalty, total = work.penalty, work.total
    share = np.zeros(len(paid))
    new = np.zeros(len(paid), np.bool_)
    changed = False
    for k in range(len(state)):
        before, p = work.previous[k], work.position[k]
        if state[k] != _OPEN or worth[k] <= 0.0 or not (before < 0 or state[before] == _IN):
            continue
        if not paid[p] or new[p]:
            # What follows something that came in just now counted its own price in full.
            if total[p] > penalty:
                price[k] = penalty * min(1.0, worth[k] / total[p])
            elif worth[k] > penalty:
                price[k] = penalty
            else:
                continue
            new[p], paid[p] = True, True
            share[p] += price[k]
        state[k] = _IN
        changed = True
    for k in range(len(state)):
        p = work.position[k]
        if new[p] and state[k] == _IN and share[p] > 0.0:
            price[k] *= penalty / share[p]
    return changed


@kernel
def _leave_out(work: _Settling) -> bool:
    """Leave out what cannot pay; return whether there was anything."""
    state, worth = work.state, work.worth
    changed = False
    for k in range(len(state)):
        before, p = work.previous[k], work.position[k]
        if state[k] != _OPEN:
            continue
        if before >= 0 and state[before] == _OUT:
            if not work.paid[p] and work.num_open[p] == 1:  # as it was counted before it
                work.price[k] = work.penalty
        elif work.paid[p]:
            if worth[k] > 0.0:
                continue
        elif work.total[p] <= work.penalty:
            work.price[k] = max(0.0, worth[k])
        else:
            continue
        state[k] = _OUT
        changed = True
    return changed
