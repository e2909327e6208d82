"""A subgame's constraints as a regret minimizer sees them: the deviator's side of the saddle point.

One player's constraints are its *arms*: (A) a trigger in the subgame, (B) a row of the bounds, (C) a cap. An
arm's gain is by how much it is violated, given the plan and how the player deviates after each trigger.
`evaluate` goes up the trees of deviations (`triggers`), updates their regrets on the way, and ends with the
gains; given weights on the arms, `add_gradient` goes down and adds up what each entry of the plan is worth to
the mediator, who wants gains to be small.

Source: `efce_resolving`, appendix E.

Cost: a pass touches each leaf once for each action at the player's information sets before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from .refinement import RefinementProblem
from .sequence_game import spread
from .triggers import Deviations

__all__ = ["Side", "Work", "add_gradient", "evaluate", "evaluate_best", "side_of", "work_of"]


class Side(NamedTuple):
    """One player's constraints as flat arrays; weights are those of the deviator.

    The groups are those whose lower information set is in the subgame. An arm is a constraint:
    first the triggers (A) in the order of `arm_set`, then rows (B), then caps (C).

    Attributes:
      infoset, through, parent, parent_action, num_triggers, num_actions, lane, set_, term: As `Deviations`.
      pair: int32, utility: float64, stride: int32, leaf_start, first: as `Deviations`.
      arm_set: int32[A], the set of each trigger in the subgame.
      arm_sequence: int32[A].
      arm_allowed: float64[A].
      row_lower: float64[R].
      cap_upper: float64[C].
      head_row: int32[m], the row of each head information set, -1 for others.
      bundle_row: int32[S], the row of the trunk's sequences that have bundles, -1 for others.
      set_cap: int32[sets], the cap of each head's sets, -1 for others.
      bundle_cap: int32[b], bundle_pair: int32[b], bundle_utility: float64[b], leaves of bundles after
        triggers.
      parent_sequence: int32[m].
      leaf_pair: int32[l], leaf_sequence: int32[l], leaf_utility: float64[l], of leaves in the subgame.
    """

    infoset: np.ndarray
    through: np.ndarray
    parent: np.ndarray
    parent_action: np.ndarray
    num_triggers: np.ndarray
    num_actions: np.ndarray
    lane: np.ndarray
    set_: np.ndarray
    term: np.ndarray
    pair: np.ndarray
    utility: np.ndarray
    stride: np.ndarray
    leaf_start: np.ndarray
    first: np.ndarray
    arm_set: np.ndarray
    arm_sequence: np.ndarray
    arm_allowed: np.ndarray
    row_lower: np.ndarray
    cap_upper: np.ndarray
    head_row: np.ndarray
    bundle_row: np.ndarray
    set_cap: np.ndarray
    bundle_cap: np.ndarray
    bundle_pair: np.ndarray
    bundle_utility: np.ndarray
    parent_sequence: np.ndarray
    leaf_pair: np.ndarray
    leaf_sequence: np.ndarray
    leaf_utility: np.ndarray


class Work(NamedTuple):
    """One player's state and buffers.

    Attributes:
      regret, play, value: float64[lanes].
      sets: float64[sets].
      v: float64[S].
      v_infoset: float64[m].
      gains, weights: float64[arms].
    """

    regret: np.ndarray
    play: np.ndarray
    value: np.ndarray
    sets: np.ndarray
    v: np.ndarray
    v_infoset: np.ndarray
    gains: np.ndarray
    weights: np.ndarray


def side_of(problem: RefinementProblem, player: int) -> Side:
    """A player's constraints, in the problem's units."""
    plan = problem.blueprint
    pairs, game = plan.pairs, plan.game
    form = game.players[player]
    deviations = Deviations.of(pairs, player, inside=True)
    sets = deviations.num_sets
    arm_set, arm_sequence = deviations.triggers()
    choice = form.num_actions[form.infoset[arm_sequence]] > 1
    arm_set, arm_sequence = arm_set[choice], arm_sequence[choice]
    head_row = np.full(form.num_infosets, -1, np.int32)
    bundle_row = np.full(form.num_sequences, -1, np.int32)
    set_cap = np.full(sets, -1, np.int32)
    lower, upper = np.zeros(0), np.zeros(0)
    bundle_cap, bundle_pair, bundle_utility = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    inside = np.flatnonzero(game.leaf_label >= 0)
    leaf_sequence, utility = game.leaf_sequence[player], game.leaf_utility[player]
    if problem.bounds is not None:
        bounds = problem.bounds.players[player]
        rows, lower, upper = bounds.rows, bounds.lower, bounds.upper
        heads = rows.member_infoset >= 0
        head_row[rows.member_infoset[heads]] = rows.member_row[heads]
        bundle_row[rows.sequence[rows.member_row[~heads]]] = rows.member_row[~heads]
        # Caps by (row, I+, action), to find them from a head's sets and from a bundle's leaves.
        most = max(int(form.num_actions.max()), 1)

        def code(row: np.ndarray, top: np.ndarray, action: np.ndarray) -> np.ndarray:
            return (row.astype(np.int64) * form.num_infosets + top) * most + action

        codes = code(rows.cap_row, rows.cap_top, rows.cap_action)
        order = np.argsort(codes)

        def cap_of(wanted: np.ndarray) -> np.ndarray:
            if not len(codes):
                return np.full(len(wanted), -1, np.int64)
            place = np.minimum(np.searchsorted(codes[order], wanted), len(codes) - 1)
            return np.where(codes[order[place]] == wanted, order[place], -1)

        groups = np.flatnonzero((head_row[deviations.infoset] >= 0) & (form.label[deviations.top] < 0))
        which, k = spread(deviations.num_triggers[groups])
        g = groups[which]
        set_cap[deviations.set_[g] + k] = cap_of(code(head_row[deviations.infoset[g]], deviations.top[g], k))
        mine = inside[bundle_row[leaf_sequence[inside]] >= 0]
        parts = []
        at, through = form.infoset[leaf_sequence[mine]].astype(np.int64), leaf_sequence[mine].astype(np.int64)
        row, leaf = bundle_row[leaf_sequence[mine]], mine
        while len(leaf):
            on = at > 0
            at, through, row, leaf = at[on], through[on], row[on], leaf[on]
            which, action = spread(form.num_actions[at])
            cap = cap_of(code(row[which], at[which], action))
            used = (cap >= 0) & (form.first[at[which]] + action != through[which])
            which, action, cap = which[used], action[used], cap[used]
            trigger = form.first[at[which]] + action
            tau = game.leaf_sequence[1 - player][leaf[which]]
            pair = pairs.index(trigger, tau) if player == 0 else pairs.index(tau, trigger)
            parts.append((cap, pair, utility[leaf[which]]))
            through = form.parent[at].astype(np.int64)
            at = form.infoset[through].astype(np.int64)
        if parts:
            bundle_cap = np.concatenate([part[0] for part in parts]).astype(np.int32)
            bundle_pair = np.concatenate([part[1] for part in parts]).astype(np.int32)
            bundle_utility = np.concatenate([part[2] for part in parts])
    return Side(
        infoset=deviations.infoset,
        through=deviations.through,
        parent=deviations.parent,
        parent_action=deviations.parent_action,
        num_triggers=deviations.num_triggers,
        num_actions=deviations.num_actions,
        lane=deviations.lane,
        set_=deviations.set_,
        term=deviations.term,
        pair=deviations.pair.astype(np.int32),
        utility=deviations.utility,
        stride=deviations.stride.astype(np.int32),
        leaf_start=deviations.leaf_start,
        first=deviations.first,
        arm_set=arm_set.astype(np.int32),
        arm_sequence=arm_sequence.astype(np.int32),
        arm_allowed=problem.allowed[player][arm_sequence],
        row_lower=lower,
        cap_upper=upper,
        head_row=head_row,
        bundle_row=bundle_row,
        set_cap=set_cap,
        bundle_cap=bundle_cap,
        bundle_pair=bundle_pair,
        bundle_utility=bundle_utility,
        parent_sequence=form.parent,
        leaf_pair=pairs.leaves()[inside].astype(np.int32),
        leaf_sequence=leaf_sequence[inside],
        leaf_utility=np.ascontiguousarray(utility[inside]),
    )


def work_of(side: Side, regrets: bool = True) -> Work:
    """Zeros; without `regrets`, for `evaluate_best` alone."""
    arms = len(side.arm_set) + len(side.row_lower) + len(side.cap_upper)
    lanes, sets = int(side.lane[-1]), int(side.set_[-1])
    return Work(
        regret=np.zeros(lanes if regrets else 0),
        play=np.zeros(lanes if regrets else 0),
        value=np.zeros(lanes),
        sets=np.zeros(sets),
        v=np.zeros(len(side.bundle_row)),
        v_infoset=np.zeros(len(side.head_row)),
        gains=np.zeros(arms),
        weights=np.zeros(arms),
    )


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@numba.njit(cache=True)
def evaluate(side: Side, work: Work, xi: np.ndarray, predict: float) -> None:
    """What each constraint is violated by, deviating as regrets say; and the regrets of deviating."""
    _leaf_values(side, work.value, xi)
    through, triggers, actions = side.through, side.num_triggers, side.num_actions
    parent, parent_action, lane, set_ = side.parent, side.parent_action, side.lane, side.set_
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


@numba.njit(cache=True)
def evaluate_best(side: Side, work: Work, xi: np.ndarray) -> None:
    """The same with best deviations, which are left in `play` where there is room for it."""
    _leaf_values(side, work.value, xi)
    through, triggers, actions = side.through, side.num_triggers, side.num_actions
    parent, parent_action, lane, set_ = side.parent, side.parent_action, side.lane, side.set_
    value, sets, play = work.value, work.sets, work.play
    for g in range(len(through) - 1, -1, -1):
        n, skip, up = actions[g], through[g], parent[g]
        for k in range(triggers[g]):
            if k == skip or (skip < 0 and n == 1):
                continue
            best, chosen, base = -np.inf, 0, lane[g] + k * n
            for a in range(n):
                if (skip >= 0 or a != k) and value[base + a] > best:
                    best, chosen = value[base + a], a
            if len(play):
                for a in range(n):
                    play[base + a] = 1.0 if a == chosen else 0.0
            sets[set_[g] + k] = best
            if up >= 0:
                value[lane[up] + k * actions[up] + parent_action[g]] += best
    _arm_gains(side, work, xi)


@numba.njit(cache=True)
def _leaf_values(side: Side, value: np.ndarray, xi: np.ndarray) -> None:
    infosets, triggers, actions = side.infoset, side.num_triggers, side.num_actions
    first, leaf_start, term, pair = side.first, side.leaf_start, side.term, side.pair
    utility, stride, lane = side.utility, side.stride, side.lane
    for x in range(len(value)):
        value[x] = 0.0
    for g in range(len(infosets)):
        s, n, m = first[infosets[g]], actions[g], triggers[g]
        shift = term[g] - leaf_start[s]
        for a in range(n):
            for leaf in range(leaf_start[s + a], leaf_start[s + a + 1]):
                u = utility[leaf]
                if u == 0.0:
                    continue
                at, step = np.uint64(pair[leaf + shift]), np.uint64(stride[leaf])
                to = np.uint64(lane[g] + a)
                # Lanes that lead nowhere are written too: their values are never read.
                for _ in range(m):
                    value[to] += u * xi[at]
                    at += step
                    to += np.uint64(n)


@numba.njit(cache=True)
def _arm_gains(side: Side, work: Work, xi: np.ndarray) -> None:
    v, gains, sets = work.v, work.gains, work.sets
    parent, first, head_row, set_cap = side.parent_sequence, side.first, side.head_row, side.set_cap
    triggers, rows = len(side.arm_set), len(side.row_lower)
    for s in range(len(v)):
        v[s] = 0.0
    # The trunk's leaves and sequences are left out: v of the trunk is its bundles and heads, which is not
    # used.
    for n in range(len(side.leaf_pair)):
        v[side.leaf_sequence[n]] += side.leaf_utility[n] * xi[side.leaf_pair[n]]
    for r in range(rows):
        gains[triggers + r] = side.row_lower[r]
    for s in range(len(v)):
        if side.bundle_row[s] >= 0:
            gains[triggers + side.bundle_row[s]] -= v[s]
    for k in range(len(parent) - 1, 0, -1):
        total = 0.0
        for s in range(first[k], first[k + 1]):
            total += v[s]
        v[parent[k]] += total
        if head_row[k] >= 0:
            gains[triggers + head_row[k]] -= total
    for n in range(triggers):
        gains[n] = sets[side.arm_set[n]] - v[side.arm_sequence[n]] - side.arm_allowed[n]
    caps = triggers + rows
    for c in range(len(side.cap_upper)):
        gains[caps + c] = -side.cap_upper[c]
    for x in range(len(sets)):
        if set_cap[x] >= 0:
            gains[caps + set_cap[x]] += sets[x]
    for n in range(len(side.bundle_cap)):
        gains[caps + side.bundle_cap[n]] += side.bundle_utility[n] * xi[side.bundle_pair[n]]


@numba.njit(cache=True)
def add_gradient(side: Side, work: Work, gradient: np.ndarray) -> None:
    """Adds what the player's constraints make the plan's entries worth to the mediator."""
    through, triggers, actions = side.through, side.num_triggers, side.num_actions
    parent, parent_action, lane, set_ = side.parent, side.parent_action, side.lane, side.set_
    infosets, first, leaf_start, term, pair = side.infoset, side.first, side.leaf_start, side.term, side.pair
    utility, stride, set_cap = side.utility, side.stride, side.set_cap
    play, reach, sets, weights = work.play, work.value, work.sets, work.weights
    v, v_infoset, head_row, bundle_row = work.v, work.v_infoset, side.head_row, side.bundle_row
    arms, caps = len(side.arm_set), len(side.arm_set) + len(side.row_lower)
    for n in range(len(sets)):
        sets[n] = weights[caps + set_cap[n]] if set_cap[n] >= 0 else 0.0
    for n in range(arms):
        sets[side.arm_set[n]] = weights[n]
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
        v[side.arm_sequence[n]] = weights[n]
    for k in range(1, len(v_infoset)):
        if head_row[k] >= 0:
            x = weights[arms + head_row[k]]
        else:
            # A bundle's weight is not its heads'.
            x = v[side.parent_sequence[k]] if bundle_row[side.parent_sequence[k]] < 0 else 0.0
        v_infoset[k] = x
        for s in range(first[k], first[k + 1]):
            v[s] += x
    for n in range(len(side.leaf_pair)):
        gradient[side.leaf_pair[n]] += side.leaf_utility[n] * v[side.leaf_sequence[n]]
    for n in range(len(side.bundle_cap)):
        gradient[side.bundle_pair[n]] -= side.bundle_utility[n] * weights[caps + side.bundle_cap[n]]
