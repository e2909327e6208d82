"""The refinement problem of a subgame: its constraints as flat arrays, and their violations.

A plan of the subgame stays in Xi, and

    (A)  beta(I+ a'; s+) <= v(s+) + max(0, blueprint's delta(s+))   for triggers in the subgame, a' not a+
    (B)  rows of `bounds` from below,
    (C)  and after each trigger of the trunk from above.

`PlayerConstraints` is the one place where these are resolved into sets, leaves and pairs; the linear program
(`refinement`) and the regret minimizer read them there.

To a regret minimizer one player's constraints are its *arms*: first (A), the triggers in the subgame, then
(B), rows of the bounds, then (C), caps. An arm's gain is by how much it is violated, given the plan and how
the player deviates after each trigger. `evaluate` goes up the trees of deviations (`triggers`), updates their
regrets on the way, and ends with the gains; given weights on the arms, `add_gradient` goes down and adds up
what each entry of the plan is worth to the mediator, who wants gains to be small.

Source: `efce_resolving`, "Safe Subgame Resolving Using LPs" and appendices C and E.

Cost: a pass touches each leaf once for each action at the player's information sets before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.kernels import kernel, read_only
from precomp_games._support.results import Shown

from .bounds import RowMembers, SubgameBounds, player_rows
from .correlation_plans import CorrelationPlan
from .sequence_game import SequenceGame, find, same_game
from .triggers import Deviations, Notion, leaf_values, respond, sum_back

_ENTRY_MISS = 1e-9
"""By how much a refinement's entries in the trunk may miss the blueprint's."""
_ROUNDING = 1e-15
"""Relative tolerance of utilities."""


@dataclasses.dataclass(frozen=True, eq=False)
class RefinementProblem(Shown):
    """A subgame to refine.

    Attributes:
      name: The subgame's.
      blueprint: On the trunk and the subgame.
      bounds: (B) and (C); None where the subgame is all of the game.
      allowed: float64[S] each, what delta may be at the subgame's triggers; of no meaning elsewhere.
    """

    _made_by = "Resolving.problem(name)"

    name: Hashable
    blueprint: CorrelationPlan
    bounds: SubgameBounds | None = dataclasses.field(repr=False)
    allowed: tuple[np.ndarray, np.ndarray] = dataclasses.field(repr=False)

    @property
    def game(self) -> SequenceGame:
        """The trunk and the subgame."""
        return self.blueprint.game

    @property
    def mass(self) -> float:
        """The probability that play comes to the subgame's leaves, which no refinement changes."""
        leaf = np.flatnonzero(self.game.leaf_label >= 0)
        return float(self.game.leaf_chance[leaf] @ self.blueprint.xi[self.blueprint.pairs.leaves()[leaf]])

    @public
    def violation(self, plan: CorrelationPlan) -> float:
        """Return the worst violation of (A), (B) and (C) by a plan of this subgame, at least 0.

        In utility, weighted with the probability of what it is about, as everywhere.

        Raises:
          ValueError: it is a plan of another subgame, or differs from the blueprint in the trunk.
        """
        if not same_game(plan.game, self.game):
            raise ArgumentError(f"expected a plan of {self.game}, got one of {plan.game}")
        trunk = self.blueprint.pairs.pair_label < 0
        apart = float(np.abs(plan.xi - self.blueprint.xi)[trunk].max(initial=0.0))
        if apart > _ENTRY_MISS:
            raise ArgumentError(
                f"expected a plan with the blueprint's entries in the trunk, got one that is {apart:.1e} off"
            )
        return NormalizedConstraints.of(self).violation(plan.xi)

    def normalize(self) -> tuple[RefinementProblem, Units]:
        """Return an equivalent problem in which the subgame's utilities lie within [-1, 1], and its units.

        Utilities are scaled for each player, and centered where bounds allow it: "paper" and "separate" ones
        change with a constant that is added to all utilities, and then it stays.
        """
        game, bounds = self.game, self.bounds
        inside = game.payoffs[:, game.leaf_label >= 0]
        low, high = inside.min(axis=1), inside.max(axis=1)
        center = 0.5 * low + 0.5 * high if bounds is None or bounds.kind == "aggregate" else np.zeros(2)
        scale = np.maximum(high - center, center - low)
        # What is constant but for rounding, times and then divided by chance, is constant.
        same = scale <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        scale[same] = 1.0
        utility = (game.leaf_utility - np.outer(center, game.leaf_chance)) / scale[:, None]
        utility[np.outer(same, game.leaf_label >= 0)] = 0.0
        pairs = dataclasses.replace(
            self.blueprint.pairs, game=dataclasses.replace(game, leaf_utility=utility)
        )
        plan = CorrelationPlan(pairs, self.blueprint.xi)
        if bounds is not None:
            sides = []
            for i, old in enumerate(bounds.players):
                # What there is to lose to a bound is a difference, and so needs no center.
                rows = player_rows(plan, i, bounds.kind)
                lower = rows.value - (old.value - old.lower) / scale[i]
                upper = rows.cap_value + (old.upper - old.cap_value) / scale[i]
                sides.append(dataclasses.replace(rows, lower=lower, upper=upper))
            bounds = SubgameBounds(bounds.kind, (sides[0], sides[1]))
        allowed = (self.allowed[0] / scale[0], self.allowed[1] / scale[1])
        return RefinementProblem(self.name, plan, bounds, allowed), Units(center, scale)


class Units(NamedTuple):
    """Units in which a normalized problem measures utilities.

    Attributes:
      center: float64[2], for each player the utility that is 0 there.
      scale: float64[2], the utility that is 1 there.
    """

    center: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @property
    def welfare(self) -> float:
        """Unit of welfare: the larger scale."""
        return float(self.scale.max())

    def normalized_welfare(self, utility: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return both players' normalized utilities, float64[2, L], summed with their weights: float64[L]."""
        return np.asarray(self.scale / self.welfare @ utility)


class PlayerConstraints(NamedTuple):
    """Constraints of one player, in the problem's units; a tuple, so that numba takes it.

    Arms are numbered as above: triggers, rows, caps; -1 stands for none.

    Attributes:
      deviations: Groups whose lower information set is in the subgame.
      allowed: float64[A], what (A) lets the delta be of each trigger in the subgame that leaves a choice.
      bound: float64[arms], 0 for (A), lower bounds of (B), less upper bounds of (C); -infinity where there is
        nothing to keep.
      set_arm: int32[sets], the trigger whose deviation begins there, or the cap of a head's set.
      sequence_arm: int32[S], the trigger that following a sequence counts for, or its bundle's row.
      head_arm: int32[m], the row of each head information set.
      cap_arm: int32[b], pair: int32[b], cap_utility: float64[b], leaves of bundles after triggers.
      parent: int32[m], as `PlayerForm.parent`.
      leaf_pair: int32[l], leaf_sequence: int32[l], leaf_utility: float64[l], of leaves in the subgame; all of
        them where it is all of the game.
    """

    deviations: Deviations
    allowed: np.ndarray
    bound: npt.NDArray[np.float64]
    set_arm: npt.NDArray[np.int32]
    sequence_arm: npt.NDArray[np.int32]
    head_arm: npt.NDArray[np.int32]
    cap_arm: npt.NDArray[np.int32]
    cap_pair: np.ndarray
    cap_utility: np.ndarray
    parent: npt.NDArray[np.int32]
    leaf_pair: npt.NDArray[np.int32]
    leaf_sequence: np.ndarray
    leaf_utility: np.ndarray

    @classmethod
    def of(cls, problem: RefinementProblem, player: int, notion: Notion = "efce") -> PlayerConstraints:
        """Return a player's constraints."""
        pairs, game = problem.blueprint.pairs, problem.game
        form, utility = game.players[player], game.leaf_utility[player]
        deviations = Deviations.of(pairs, player, inside=True, notion=notion)
        trigger_set, trigger = deviations.triggers()
        number = np.arange(form.num_sequences) if notion == "efce" else form.infoset
        if notion == "efce":
            choice = form.num_actions[form.infoset[trigger]] > 1
            trigger_set, trigger = trigger_set[choice], trigger[choice]
        set_arm = np.full(deviations.num_sets, -1, np.int32)
        set_arm[trigger_set] = np.arange(len(trigger))
        sequence_arm = find(trigger, number).astype(np.int32)
        head_arm = np.full(form.num_infosets, -1, np.int32)
        bound = np.zeros(len(trigger))
        cap: npt.NDArray[np.integer] = np.zeros(0, np.int32)
        pair = leaf = cap
        inside = np.arange(len(game.leaf_label))
        if problem.bounds is not None:
            inside = np.flatnonzero(game.leaf_label >= 0)
            members = RowMembers.of(pairs, deviations, player, problem.bounds.kind)
            bounds, rows = problem.bounds.players[player], members.rows
            caps = len(trigger) + len(bounds.lower)
            bound = np.concatenate([bound, bounds.lower, -bounds.upper])
            head_arm[rows.head] = len(trigger) + rows.head_row
            sequence_arm[rows.bundle] = len(trigger) + rows.bundle_row
            set_arm[members.head_set] = caps + members.head_cap
            cap, pair, leaf = caps + members.bundle_cap, members.bundle_pair, members.bundle_leaf
        return cls(
            deviations=deviations,
            allowed=problem.allowed[player][trigger],
            bound=bound,
            set_arm=set_arm,
            sequence_arm=sequence_arm,
            head_arm=head_arm,
            cap_arm=cap.astype(np.int32),
            cap_pair=pair.astype(np.int32),
            cap_utility=utility[leaf],
            parent=form.parent,
            leaf_pair=pairs.leaves()[inside].astype(np.int32),
            leaf_sequence=game.leaf_sequence[player][inside],
            leaf_utility=np.ascontiguousarray(utility[inside]),
        )


class NormalizedConstraints(NamedTuple):
    """Both players' constraints in the units of `RefinementProblem.normalize`.

    Attributes:
      sides: Each player's.
      units: Their units.
    """

    sides: tuple[PlayerConstraints, PlayerConstraints]
    units: Units

    @classmethod
    def of(cls, problem: RefinementProblem) -> NormalizedConstraints:
        """Return a problem's constraints."""
        normalized, units = problem.normalize()
        return cls((PlayerConstraints.of(normalized, 0), PlayerConstraints.of(normalized, 1)), units)

    def violation(self, xi: np.ndarray) -> float:
        """Return the worst violation, in utility; at least 0."""
        worst = 0.0
        for side, scale in zip(
            self.sides, self.units.scale.tolist(), strict=True
        ):  # one at a time, for memory
            work = DeviatorState.of(side, regrets=False)
            evaluate_best(side, work, read_only(xi))
            worst = max(worst, float(work.gains.max(initial=0.0)) * scale)
        return worst


class DeviatorState(NamedTuple):
    """Regrets of one player for deviating, and buffers.

    Attributes:
      regret, play, value: float64 or float32[lanes].
      sets: float64 or float32[sets].
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
    def of(
        cls, side: PlayerConstraints, regrets: bool = True, dtype: npt.DTypeLike = np.float64
    ) -> DeviatorState:
        """Return a state of zeros; without `regrets`, one for `evaluate_best` alone."""
        lanes, arms = side.deviations.num_lanes, len(side.bound)
        kept = lanes if regrets else 0
        large = (np.zeros(size, dtype) for size in (kept, kept, lanes, len(side.set_arm)))
        return cls(*large, *map(np.zeros, (len(side.sequence_arm), len(side.head_arm), arms, arms)))


# Numba counts references at each access to a tuple's array, so the passes below take them out first; and it
# lets signed indices count from the end, so theirs are unsigned where it matters.


@kernel
def evaluate(side: PlayerConstraints, work: DeviatorState, xi: np.ndarray, predict: float) -> None:
    """Compute each constraint's violation when deviations follow the regrets, and update these regrets."""
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
    """Compute each constraint's violation under best deviations; no regrets are updated."""
    leaf_values(side.deviations, xi, work.value)
    respond(side.deviations, work.value, work.sets)
    _arm_gains(side, work, xi)


@kernel
def _arm_gains(side: PlayerConstraints, work: DeviatorState, xi: np.ndarray) -> None:
    v, v_infoset, gains, sets = work.v, work.v_infoset, work.gains, work.sets
    set_arm, sequence_arm, head_arm = side.set_arm, side.sequence_arm, side.head_arm
    for s in range(len(v)):
        v[s] = 0.0
    # The trunk's leaves and sequences are left out: v of the trunk is its bundles and heads, which is not
    # used.
    for n in range(len(side.leaf_pair)):
        v[side.leaf_sequence[n]] += side.leaf_utility[n] * xi[side.leaf_pair[n]]
    for n in range(len(gains)):
        gains[n] = side.bound[n]
    for x in range(len(sets)):
        if set_arm[x] >= 0:
            gains[set_arm[x]] += sets[x]
    for n in range(len(side.cap_arm)):
        gains[side.cap_arm[n]] += side.cap_utility[n] * xi[side.cap_pair[n]]
    for s in range(len(v)):  # of bundles
        if sequence_arm[s] >= len(side.allowed):
            gains[sequence_arm[s]] -= v[s]
    sum_back(side.parent, side.deviations.first, v, v_infoset)
    for s in range(len(v)):
        if 0 <= sequence_arm[s] < len(side.allowed):
            gains[sequence_arm[s]] -= v[s]
    for k in range(len(v_infoset) - 1, 0, -1):
        if head_arm[k] >= 0:
            gains[head_arm[k]] -= v_infoset[k]
    for n in range(len(side.allowed)):
        gains[n] -= side.allowed[n]


@kernel
def add_gradient(side: PlayerConstraints, work: DeviatorState, gradient: np.ndarray) -> None:
    """Add what the player's constraints make the plan's entries worth to the mediator."""
    deviations = side.deviations
    through, triggers, actions = deviations.through, deviations.num_triggers, deviations.num_actions
    parent, parent_action = deviations.parent, deviations.parent_action
    lane, set_ = deviations.lane, deviations.set_
    infosets, first, term, pair = deviations.infoset, deviations.first, deviations.term, deviations.pair
    leaf_start, utility, stride = deviations.leaf_start, deviations.utility, deviations.stride
    set_arm, sequence_arm, head_arm, above = side.set_arm, side.sequence_arm, side.head_arm, side.parent
    play, reach, sets, weights = work.play, work.value, work.sets, work.weights
    v, v_infoset = work.v, work.v_infoset
    for n in range(len(sets)):
        sets[n] = weights[set_arm[n]] if set_arm[n] >= 0 else 0.0
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
        v[s] = weights[sequence_arm[s]] if sequence_arm[s] >= 0 else 0.0
    for k in range(1, len(v_infoset)):
        if head_arm[k] >= 0:
            x = weights[head_arm[k]]
        else:
            # A bundle's weight is not its heads'.
            x = v[above[k]] if sequence_arm[above[k]] < len(side.allowed) else 0.0
        v_infoset[k] = x
        for s in range(first[k], first[k + 1]):
            v[s] += x
    for n in range(len(side.leaf_pair)):
        gradient[side.leaf_pair[n]] += side.leaf_utility[n] * v[side.leaf_sequence[n]]
    for n in range(len(side.cap_arm)):
        gradient[side.cap_pair[n]] -= side.cap_utility[n] * weights[side.cap_arm[n]]
