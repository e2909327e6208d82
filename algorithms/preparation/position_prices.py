"""One price for all information states of a position: the set that is worth most, and a proof that it is.

Gains g(I) add up over a memorization set S (`decisions`), and S holds with I the player's information state
before it. Where those of a position share one price lambda, S is worth

    F(S) = sum over I in S of g(I) - lambda |positions of S|.

This is project selection (Picard 1976): the closure of most weight in a graph in which each information
state needs the one before it and its position. The linear program over x(I) <= x(before I), x(I) <= b(P) has
only integral vertices, being the dual of a flow.

Its dual divides the price of each position among its information states: y(I) >= 0, at most lambda for each
position. For any such y, Algorithm 1 at the prices y gives an upper bound on F, and at the optimum the two
are equal. So a division is kept with each set, and one more pass certifies the set.

Most is settled by passes alone. What these decide is so in an optimal set, by two rules:

- *In.* Let positions that are paid for be free, and let each information state pay for itself elsewhere. That
  is too much, so what pays at these prices pays in any case: the least of the sets that are best there is in
  every set that is best here. And if what the information states of a position are worth that can be had now,
  before the position's own price, adds up to more than lambda, the position pays too. They share its price in
  proportion.
- *Out.* Let all that is not decided be free, except where a position other than P has one information state
  left, which pays for itself. If what P's information states are worth adds up to at most lambda, no set
  needs P. Each of them takes as much of the price as it is worth.

docs/position_prices.md has the proofs. What is left goes to HiGHS: some hundred of 60,000 positions, on
random trees.

Best sets can be chosen so that they shrink as lambda grows. So there is a frontier, whose bends lie where two
known lines meet (Eisner and Severance 1976); each step looks only at what lies between two sets that are
known.

Source: Picard, "Maximal closure of a graph and applications to combinatorial problems", Management Science
22 (1976).

Cost: two passes a round, and a linear program over what is left. Each round but the last settles one
information state at least, and on a chain of positions that pay for each other not many more, so there are at
most as many rounds as information states. On trees that were looked at there are 2 to 8.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError
from precomp_games._support.checks import shown
from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import AnyForest
from precomp_games.tree.history_tree import HistoryTree

from ..programs import ProgramBuilder, unit
from .decisions import Decisions

__all__ = [
    "Closure",
    "PricedForest",
    "best_closure",
    "check_price",
    "closure_frontier",
    "infosets_before",
    "positions_of",
    "values_at",
]

_ROUNDING = 1e-13  # of the sum of gains: sets whose worth differs by less are the same
_OPEN, _IN, _OUT = 0, 1, 2


def check_price(price: Any, tree: HistoryTree, player: int) -> npt.NDArray[np.int64] | None:
    """What `price` of a solver means: int64[m], equal where information states share one price.

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
        if isinstance(price, str):
            raise ArgumentError(
                f'expected price to be "infosets", "positions" or keys of information states, got {price!r}'
            )
        cut_for = ("nothing",)
        shared = check_keys(price, tree.num_infosets)
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


def infosets_before(tree: AnyForest) -> npt.NDArray[np.int32]:
    """int32[m]: the owner's information state before each, where menus have one entry; -1 for none."""
    return np.append(tree.entry_infoset, np.int32(-1))[tree.previous].astype(np.int32)


def check_keys(value: Any, count: int) -> npt.NDArray[np.int64]:
    """int64[count], numbered from 0: equal where the keys are.

    Raises:
      ValueError: these are no integers, or not so many.
    """
    keys = np.asarray(value) if isinstance(value, np.ndarray | list | tuple) else np.zeros(0, object)
    if keys.ndim != 1 or keys.dtype.kind not in "iu" or len(keys) != count or np.ma.is_masked(value):
        raise ArgumentError(
            f'expected price to be "infosets", "positions" or {count} integers, one for each '
            f"information state, got {shown(value)}"
        )
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


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
    def of_decisions(
        cls, decisions: Decisions, shared: npt.NDArray[np.int64]
    ) -> tuple[PricedForest, npt.NDArray[np.int64]]:
        """(the forest of a player's information states, their numbers), where menus have one entry."""
        tree = decisions.forest
        own = np.flatnonzero(tree.infoset_player == decisions.player)
        number = np.full(tree.num_infosets + 1, -1, np.int32)
        number[own] = np.arange(len(own), dtype=np.int32)
        free = tree.infoset_weight[own] == 0.0
        keys, position = np.unique(shared[own][~free], return_inverse=True)
        at = np.full(len(own), len(keys), np.int32)
        at[~free] = position
        gain, _ = decisions.gains()
        before = infosets_before(tree)[own]
        return cls(number[before], gain[tree.first_entry[own]], at, len(keys)), own

    def between(
        self, inner: npt.NDArray[np.bool_], outer: npt.NDArray[np.bool_]
    ) -> tuple[PricedForest, npt.NDArray[np.int64]]:
        """(the forest of what `outer` has beyond `inner`, which is paid for; its nodes' numbers)."""
        nodes = np.flatnonzero(outer & ~inner)
        number = np.full(len(inner) + 1, -1, np.int32)
        number[nodes] = np.arange(len(nodes), dtype=np.int32)
        free = self.num_positions
        paid = self.paid(inner)[self.position[nodes]]
        keys, at = np.unique(np.where(paid, free, self.position[nodes]), return_inverse=True)
        count, position = len(keys) - int(paid.any()), at.astype(np.int32)
        return PricedForest(number[self.previous[nodes]], self.gain[nodes], position, count), nodes

    def paid(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """bool[P + 1]: the positions of a set of nodes, and what costs nothing."""
        paid = np.zeros(self.num_positions + 1, bool)
        paid[self.position[chosen]] = True
        paid[-1] = True
        return paid

    def size(self, chosen: npt.NDArray[np.bool_]) -> int:
        """How many positions a set of nodes pays for."""
        return int(self.paid(chosen)[:-1].sum())


@dataclasses.dataclass(frozen=True, eq=False)
class Closure:
    """A set of nodes that is worth most, and why.

    Attributes:
      chosen: bool[n].
      gain: The sum of its gains.
      size: How many positions it pays for.
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
    """The set of most gain, less `penalty` for each position of it."""
    n = len(forest.gain)
    state, price = np.zeros(n, np.int8), np.zeros(n)
    paid = np.zeros(forest.num_positions + 1, bool)
    paid[-1] = True
    paid |= penalty == 0.0
    _settle(forest.previous, forest.gain, forest.position, penalty, state, paid, price)
    left = np.flatnonzero(state == _OPEN)
    if len(left):
        bought = _by_program(forest, penalty, state, paid, price, left)
        chosen = positions_of(forest, bought)
    else:
        chosen = state == _IN
    _, upper = values_at(forest, price)
    return Closure(chosen, float(forest.gain[chosen].sum()), forest.size(chosen), upper, price, len(left))


def positions_of(forest: PricedForest, bought: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """bool[n]: the best set of nodes at positions that are bought, bool[P + 1]."""
    at = np.where(bought, 0.0, np.inf)[forest.position]
    value, _ = values_at(forest, at)
    chosen = value > 0.0
    only_after(forest.previous, chosen)
    return chosen


def values_at(forest: PricedForest, price: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """(float64[n]: what each node with what is best after it is worth, the worth of the best set).

    `price` has a price for each node: this is Algorithm 1.
    """
    value = np.empty(len(price))
    return value, _values(forest.previous, forest.gain, price, value)


def _by_program(
    forest: PricedForest,
    penalty: float,
    state: npt.NDArray[np.int8],
    paid: npt.NDArray[np.bool_],
    price: npt.NDArray[np.float64],
    left: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Solves what is left; returns bool[P + 1], what is paid for, and writes `price` where it is left."""
    scale = unit(float(np.abs(forest.gain[left]).max()), one=penalty)
    keys, at = np.unique(forest.position[left], return_inverse=True)
    to_pay = ~paid[keys]
    program = ProgramBuilder()
    program.columns(len(left) + len(keys))
    node = np.arange(len(left))
    program.set_costs(
        dict(enumerate((forest.gain[left] * scale).tolist()))
        | {len(left) + k: -penalty * scale for k in np.flatnonzero(to_pay).tolist()}
    )
    number = np.full(len(state) + 1, -1)
    number[left] = node
    before = number[forest.previous[left]]
    minus_infinity = np.full(len(left), -np.inf)
    rows = program.rows(minus_infinity, np.zeros(len(left)))
    program.put(np.where(before >= 0, rows, -1), node, np.ones(len(left)))
    program.put(rows, before, -np.ones(len(left)))
    own = program.rows(minus_infinity, np.zeros(len(left)))
    program.put(np.where(to_pay[at], own, -1), node, np.ones(len(left)))
    program.put(np.where(to_pay[at], own, -1), len(left) + at, -np.ones(len(left)))
    solution = program.built().solve()
    shares = np.maximum(solution.duals[own], 0.0) / scale * to_pay[at]
    total = np.bincount(at, shares, len(keys))
    price[left] = penalty * shares / np.maximum(total, penalty)[at]
    bought = paid.copy()
    bought[keys[solution.x[len(left) :] > 0.5]] = True
    return bought


def closure_frontier(
    forest: PricedForest, penalty: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Best sets for all penalties from `penalty` upwards.

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
            found = best_closure(part, slope)
            rounding = _ROUNDING * float(np.abs(part.gain).sum())
            if found.gain - slope * found.size > rounding and 0 < found.size < part.num_positions:
                nothing, everything = np.zeros(len(nodes), bool), np.ones(len(nodes), bool)
                above, beyond = part.between(found.chosen, everything)
                below, within = part.between(nothing, found.chosen)
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
    """See `values_at`."""
    below = np.zeros(len(gain) + 1)
    for k in range(len(gain) - 1, -1, -1):
        value[k] = gain[k] + below[k + 1] - price[k]
        if value[k] > 0.0:
            below[previous[k] + 1] += value[k]
    return float(below[0])


@kernel
def only_after(previous: np.ndarray, chosen: np.ndarray) -> None:
    """Takes out what comes after something that is not chosen."""
    for k in range(len(previous)):
        if previous[k] >= 0 and not chosen[previous[k]]:
            chosen[k] = False


@kernel
def _settle(
    previous: np.ndarray,
    gain: np.ndarray,
    position: np.ndarray,
    penalty: float,
    state: np.ndarray,
    paid: np.ndarray,
    price: np.ndarray,
) -> None:
    """Decides what passes can decide, by the rules of the module docstring; writes the last three."""
    worth = np.empty(len(gain))
    total, count = np.empty(len(paid)), np.empty(len(paid), np.int64)
    changed = True
    while changed:
        _worth(previous, gain, position, penalty, state, paid, count, False, worth, total)
        taken_in = _take_in(previous, position, penalty, state, paid, price, worth, total)
        count[:] = 0
        for k in range(len(gain)):
            if state[k] == _OPEN:
                count[position[k]] += 1
        _worth(previous, gain, position, penalty, state, paid, count, True, worth, total)
        left_out = _leave_out(previous, position, penalty, state, paid, price, worth, total, count)
        changed = taken_in or left_out


@kernel
def _worth(
    previous: np.ndarray,
    gain: np.ndarray,
    position: np.ndarray,
    penalty: float,
    state: np.ndarray,
    paid: np.ndarray,
    count: np.ndarray,
    at_most: bool,
    worth: np.ndarray,
    total: np.ndarray,
) -> None:
    """What open nodes are worth before their own price, at least or at most; totals of positions to pay.

    At least: totals are over what can be had now. At most: over all that is open; `count` says how much.
    """
    below = np.zeros(len(gain) + 1)
    total[:] = 0.0
    for k in range(len(gain) - 1, -1, -1):
        if state[k] != _OPEN:
            continue
        p, before = position[k], previous[k]
        worth[k] = gain[k] + below[k + 1]
        own = 0.0
        if not paid[p]:
            if worth[k] > 0.0 and (at_most or before < 0 or state[before] == _IN):
                total[p] += worth[k]
            if not at_most or count[p] == 1:
                own = penalty
        if worth[k] > own:
            below[before + 1] += worth[k] - own


@kernel
def _take_in(
    previous: np.ndarray,
    position: np.ndarray,
    penalty: float,
    state: np.ndarray,
    paid: np.ndarray,
    price: np.ndarray,
    worth: np.ndarray,
    total: np.ndarray,
) -> bool:
    """Takes in what pays at least; whether there was anything."""
    share = np.zeros(len(paid))
    new = np.zeros(len(paid), np.bool_)
    changed = False
    for k in range(len(state)):
        before, p = previous[k], position[k]
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
        p = position[k]
        if new[p] and state[k] == _IN and share[p] > 0.0:
            price[k] *= penalty / share[p]
    return changed


@kernel
def _leave_out(
    previous: np.ndarray,
    position: np.ndarray,
    penalty: float,
    state: np.ndarray,
    paid: np.ndarray,
    price: np.ndarray,
    worth: np.ndarray,
    total: np.ndarray,
    count: np.ndarray,
) -> bool:
    """Leaves out what cannot pay; whether there was anything."""
    changed = False
    for k in range(len(state)):
        before, p = previous[k], position[k]
        if state[k] != _OPEN:
            continue
        if before >= 0 and state[before] == _OUT:
            if not paid[p] and count[p] == 1:  # as it was counted before it
                price[k] = penalty
        elif paid[p]:
            if worth[k] > 0.0:
                continue
        elif total[p] <= penalty:
            price[k] = max(0.0, worth[k])
        else:
            continue
        state[k] = _OUT
        changed = True
    return changed
