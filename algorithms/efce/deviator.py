"""A subgame's constraints as a regret minimizer sees them: the deviator's side of the saddle point.

One player's constraints are its *arms*: first (A), the triggers in the subgame, then (B), rows of the
bounds, then (C), caps. An arm's gain is by how much it is violated, given the plan and how the player
deviates after each trigger. `evaluate` goes up the trees of deviations (`triggers`), updates their regrets on
the way, and ends with the gains; given weights on the arms, `add_gradient` goes down and adds up what each
entry of the plan is worth to the mediator, who wants gains to be small.

Source: `efce_resolving`, appendix E.

Cost: a pass touches each leaf once for each action at the player's information sets before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from .constraints import PlayerConstraints
from .triggers import leaf_values, respond, sum_back

__all__ = ["DeviatorState", "add_gradient", "evaluate", "evaluate_best"]


class DeviatorState(NamedTuple):
    """One player's regrets of deviating, and buffers.

    Attributes:
      regret, play, value: float64[lanes].
      sets: float64[sets].
      v: float64[S].
      v_infoset: float64[m].
      gains, weights: float64[arms].
    """

    regret: npt.NDArray[np.float64]
    play: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    sets: npt.NDArray[np.float64]
    v: npt.NDArray[np.float64]
    v_infoset: npt.NDArray[np.float64]
    gains: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]

    @classmethod
    def of(cls, side: PlayerConstraints, regrets: bool = True) -> DeviatorState:
        """Zeros; without `regrets`, for `evaluate_best` alone."""
        lanes, arms = side.deviations.num_lanes, len(side.allowed) + len(side.row_lower) + len(side.cap_upper)
        kept = lanes if regrets else 0
        sizes = (kept, kept, lanes, len(side.set_cap), len(side.bundle_row), len(side.head_row), arms, arms)
        return cls(*(np.zeros(size) for size in sizes))


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def evaluate(side: PlayerConstraints, work: DeviatorState, xi: np.ndarray, predict: float) -> None:
    """What each constraint is violated by, deviating as regrets say; and the regrets of deviating."""
    deviations = side.deviations
    leaf_values(deviations, xi, work.value)
    through, triggers, actions = deviations.through, deviations.num_triggers, deviations.num_actions
    parent, parent_action = deviations.parent, deviations.parent_action
    lane, set_ = deviations.lane, deviations.set_
    regret, play, value, sets = work.regret, work.play, work.value, work.sets
    for g in range(len(through) - 1, -1, -1):
        n, skip = actions[g], through[g]
        up = parent[g]
        for k in range(triggers[g]):
            if k == skip:
                continue
            base = lane[g] + k * n
            total, mixed, plain = 0.0, 0.0, 0.0
            # At I+ itself the recommended action is no deviation.
            out = k if skip < 0 else -1
            for a in range(n):
                if a != out:
                    p, x = play[base + a], value[base + a]
                    total += p
                    mixed += p * x
                    plain += x
            options = n - 1 if out >= 0 else n
            if options == 0:
                continue
            x = mixed if total > 0.0 else plain / options
            total = 0.0
            for a in range(n):
                if a != out:
                    gain = value[base + a] - x
                    r = max(regret[base + a] + gain, 0.0)
                    regret[base + a] = r
                    p = max(r + predict * gain, 0.0)
                    play[base + a] = p
                    total += p
            for a in range(n):
                if a != out:
                    play[base + a] = play[base + a] / total if total > 0.0 else 1.0 / options
            sets[set_[g] + k] = x
            if up >= 0:
                value[lane[up] + k * actions[up] + parent_action[g]] += x
    _arm_gains(side, work, xi)


@kernel
def evaluate_best(side: PlayerConstraints, work: DeviatorState, xi: np.ndarray) -> None:
    """The same with best deviations, which are left in `play` where there is room for it."""
    leaf_values(side.deviations, xi, work.value)
    respond(side.deviations, work.value, work.sets, work.play)
    _arm_gains(side, work, xi)


@kernel
def _arm_gains(side: PlayerConstraints, work: DeviatorState, xi: np.ndarray) -> None:
    v, v_infoset, gains, sets = work.v, work.v_infoset, work.gains, work.sets
    head_row, bundle_row, set_cap = side.head_row, side.bundle_row, side.set_cap
    triggers, rows = len(side.allowed), len(side.row_lower)
    for s in range(len(v)):
        v[s] = 0.0
    # The trunk's leaves and sequences are left out: v of the trunk is its bundles and heads, which is not
    # used.
    for n in range(len(side.leaf_pair)):
        v[side.leaf_sequence[n]] += side.leaf_utility[n] * xi[side.leaf_pair[n]]
    for r in range(rows):
        gains[triggers + r] = side.row_lower[r]
    for s in range(len(v)):
        if bundle_row[s] >= 0:
            gains[triggers + bundle_row[s]] -= v[s]
    sum_back(side.parent, side.deviations.first, v, v_infoset)
    for k in range(len(v_infoset) - 1, 0, -1):
        if head_row[k] >= 0:
            gains[triggers + head_row[k]] -= v_infoset[k]
    for n in range(triggers):
        gains[n] = sets[side.trigger_set[n]] - v[side.trigger_sequence[n]] - side.allowed[n]
    caps = triggers + rows
    for c in range(len(side.cap_upper)):
        gains[caps + c] = -side.cap_upper[c]
    for x in range(len(sets)):
        if set_cap[x] >= 0:
            gains[caps + set_cap[x]] += sets[x]
    for n in range(len(side.bundle_cap)):
        gains[caps + side.bundle_cap[n]] += side.bundle_utility[n] * xi[side.bundle_pair[n]]


@kernel
def add_gradient(side: PlayerConstraints, work: DeviatorState, gradient: np.ndarray) -> None:
    """Adds what the player's constraints make the plan's entries worth to the mediator."""
    deviations = side.deviations
    through, triggers, actions = deviations.through, deviations.num_triggers, deviations.num_actions
    parent, parent_action = deviations.parent, deviations.parent_action
    lane, set_ = deviations.lane, deviations.set_
    infosets, first, term, pair = deviations.infoset, deviations.first, deviations.term, deviations.pair
    leaf_start, utility, stride = deviations.leaf_start, deviations.utility, deviations.stride
    set_cap, above = side.set_cap, side.parent
    play, reach, sets, weights = work.play, work.value, work.sets, work.weights
    v, v_infoset, head_row, bundle_row = work.v, work.v_infoset, side.head_row, side.bundle_row
    arms, caps = len(side.allowed), len(side.allowed) + len(side.row_lower)
    for n in range(len(sets)):
        sets[n] = weights[caps + set_cap[n]] if set_cap[n] >= 0 else 0.0
    for n in range(arms):
        sets[side.trigger_set[n]] = weights[n]
    for g in range(len(through)):
        n, skip, up = actions[g], through[g], parent[g]
        s = first[infosets[g]]
        shift = term[g] - leaf_start[s]
        some = False
        for k in range(triggers[g]):
            base = lane[g] + k * n
            out = k if skip < 0 else -1
            x = 0.0
            if k != skip:
                x = sets[set_[g] + k]
                if up >= 0:
                    x += reach[lane[up] + k * actions[up] + parent_action[g]]
            if x <= 0.0:
                for a in range(n):
                    reach[base + a] = 0.0
                continue
            some = True
            for a in range(n):
                reach[base + a] = 0.0 if a == out else x * play[base + a]
        if not some:
            continue
        for a in range(n):
            for leaf in range(leaf_start[s + a], leaf_start[s + a + 1]):
                u = utility[leaf]
                if u == 0.0:
                    continue
                at, step = np.uint64(pair[leaf + shift]), np.uint64(stride[leaf])
                to = np.uint64(lane[g] + a)
                for _ in range(triggers[g]):
                    gradient[at] -= u * reach[to]
                    at += step
                    to += np.uint64(n)
    # Following: a leaf counts for the triggers and rows above it.
    for s in range(len(v)):
        v[s] = weights[arms + bundle_row[s]] if bundle_row[s] >= 0 else 0.0
    for n in range(arms):
        v[side.trigger_sequence[n]] = weights[n]
    for k in range(1, len(v_infoset)):
        if head_row[k] >= 0:
            x = weights[arms + head_row[k]]
        else:
            # A bundle's weight is not its heads'.
            x = v[above[k]] if bundle_row[above[k]] < 0 else 0.0
        v_infoset[k] = x
        for s in range(first[k], first[k + 1]):
            v[s] += x
    for n in range(len(side.leaf_pair)):
        gradient[side.leaf_pair[n]] += side.leaf_utility[n] * v[side.leaf_sequence[n]]
    for n in range(len(side.bundle_cap)):
        gradient[side.bundle_pair[n]] -= side.bundle_utility[n] * weights[caps + side.bundle_cap[n]]
