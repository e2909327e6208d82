"""What a refined subgame must keep: the problem, and each player's constraints as flat arrays.

A plan of the subgame stays in Xi, and

    (A)  beta(I+ a'; s+) <= v(s+) + max(0, blueprint's delta(s+))   for triggers in the subgame, a' not a+
    (B)  rows of `bounds` from below,
    (C)  and after each trigger of the trunk from above.

`PlayerConstraints` is the one place where these are resolved into sets, leaves and pairs; the linear program
(`refinement`), the regret minimizer's deviator and the projection read them there.

Source: `efce_resolving`, "Safe Subgame Resolving Using LPs" and appendix C.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .bounds import PlayerBounds, SubgameBounds
from .correlation_plans import CorrelationPlan
from .sequence_game import SequenceGame
from .subgame_rows import RowMembers, player_rows
from .triggers import Deviations

__all__ = ["PlayerConstraints", "RefinementProblem", "Units"]


@dataclasses.dataclass(frozen=True, eq=False)
class RefinementProblem:
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
        return float(self.blueprint.xi[self.blueprint.pairs.leaves()[self.game.leaf_label >= 0]].sum())

    def normalize(self) -> tuple[RefinementProblem, Units]:
        """The same problem, with the same solutions, where the subgame's utilities lie within [-1, 1].

        Utilities are scaled for each player, and centered where bounds allow it: "paper" and "separate" ones
        change with a constant that is added to all utilities, and then it stays.
        """
        game, bounds = self.game, self.bounds
        inside = game.leaf_utility[:, game.leaf_label >= 0]
        low, high = inside.min(axis=1), inside.max(axis=1)
        center = 0.5 * low + 0.5 * high if bounds is None or bounds.kind == "aggregate" else np.zeros(2)
        scale = np.maximum(high - center, center - low)
        scale[scale == 0.0] = 1.0
        utility = (game.leaf_utility - center[:, None]) / scale[:, None]
        pairs = dataclasses.replace(
            self.blueprint.pairs, game=dataclasses.replace(game, leaf_utility=utility)
        )
        plan = CorrelationPlan(pairs, self.blueprint.xi)
        if bounds is not None:
            sides = []
            for i, old in enumerate(bounds.players):
                # What there is to lose to a bound is a difference, and so needs no center.
                rows = player_rows(plan, i, bounds.kind)
                lower = rows.value - (old.rows.value - old.lower) / scale[i]
                upper = rows.cap_value + (old.upper - old.rows.cap_value) / scale[i]
                sides.append(PlayerBounds(rows, lower, upper))
            bounds = SubgameBounds(bounds.kind, (sides[0], sides[1]))
        allowed = (self.allowed[0] / scale[0], self.allowed[1] / scale[1])
        problem = RefinementProblem(self.name, plan, bounds, allowed)
        return problem, Units((float(center[0]), float(center[1])), (float(scale[0]), float(scale[1])))


@dataclasses.dataclass(frozen=True)
class Units:
    """What a normalized problem is measured in.

    Attributes:
      center: For each player, the utility that is 0 there.
      scale: How much utility is 1 there.
    """

    center: tuple[float, float]
    scale: tuple[float, float]

    @property
    def welfare(self) -> float:
        """What welfare is measured in: the larger scale."""
        return max(self.scale)

    def normalized_welfare(self, utility: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of both players' normalized utilities, float64[2, L], each with its weight: float64[L]."""
        sums: npt.NDArray[np.float64] = np.array(self.scale) / self.welfare @ utility
        return sums


class PlayerConstraints(NamedTuple):
    """One player's constraints, in the problem's units; a tuple, so that numba takes it.

    Attributes:
      deviations: Those whose lower information set is in the subgame.
      trigger_set: int32[A], the set of each trigger in the subgame that leaves a choice; trigger_sequence:
        int32[A]. allowed: float64[A], what (A) lets its delta be.
      row_lower: float64[R], (B), and cap_upper: float64[C], (C); infinite where there is nothing to keep.
      head_row: int32[m], the row of each head information set, -1 for others.
      bundle_row: int32[S], the row of the trunk's sequences that have bundles, -1 for others.
      set_cap: int32[sets], the cap of each head's sets, -1 for others.
      bundle_cap: int32[b], bundle_pair: int32[b], bundle_utility: float64[b], leaves of bundles after
        triggers.
      parent: int32[m], as `PlayerForm.parent`.
      leaf_pair: int32[l], leaf_sequence: int32[l], leaf_utility: float64[l], of leaves in the subgame.
    """

    deviations: Deviations
    trigger_set: npt.NDArray[np.int32]
    trigger_sequence: np.ndarray
    allowed: np.ndarray
    row_lower: npt.NDArray[np.float64]
    cap_upper: np.ndarray
    head_row: npt.NDArray[np.int32]
    bundle_row: npt.NDArray[np.int32]
    set_cap: npt.NDArray[np.int32]
    bundle_cap: npt.NDArray[np.int32]
    bundle_pair: np.ndarray
    bundle_utility: np.ndarray
    parent: npt.NDArray[np.int32]
    leaf_pair: npt.NDArray[np.int32]
    leaf_sequence: np.ndarray
    leaf_utility: np.ndarray

    @classmethod
    def of(cls, problem: RefinementProblem, player: int) -> PlayerConstraints:
        """A player's constraints."""
        pairs, game = problem.blueprint.pairs, problem.game
        form, utility = game.players[player], game.leaf_utility[player]
        deviations = Deviations.of(pairs, player, inside=True)
        trigger_set, trigger = deviations.triggers()
        choice = form.num_actions[form.infoset[trigger]] > 1
        trigger_set, trigger = trigger_set[choice], trigger[choice]
        head_row = np.full(form.num_infosets, -1, np.int32)
        bundle_row = np.full(form.num_sequences, -1, np.int32)
        set_cap = np.full(deviations.num_sets, -1, np.int32)
        lower = upper = np.zeros(0)
        cap: npt.NDArray[np.integer] = np.zeros(0, np.int32)
        pair = leaf = cap
        if problem.bounds is not None:
            members = RowMembers.of(pairs, deviations, player, problem.bounds.kind)
            bounds = problem.bounds.players[player]
            lower, upper = bounds.lower, bounds.upper
            head_row[members.rows.head] = members.rows.head_row
            bundle_row[members.rows.bundle] = members.rows.bundle_row
            set_cap[members.head_set] = members.head_cap
            cap, pair, leaf = members.bundle_cap, members.bundle_pair, members.bundle_leaf
        inside = np.flatnonzero(game.leaf_label >= 0)
        return cls(
            deviations=deviations,
            trigger_set=trigger_set.astype(np.int32),
            trigger_sequence=trigger.astype(np.int32),
            allowed=problem.allowed[player][trigger],
            row_lower=lower,
            cap_upper=upper,
            head_row=head_row,
            bundle_row=bundle_row,
            set_cap=set_cap,
            bundle_cap=cap.astype(np.int32),
            bundle_pair=pair.astype(np.int32),
            bundle_utility=utility[leaf],
            parent=form.parent,
            leaf_pair=pairs.leaves()[inside].astype(np.int32),
            leaf_sequence=game.leaf_sequence[player][inside],
            leaf_utility=np.ascontiguousarray(utility[inside]),
        )
