"""An instance of the commitment problem, and what does not depend on which program solves it: plans.

A **plan** of the follower names an option for each information set that it comes to by its own choices; where
an option has several actions, it comes to what lies below each of them. For a fixed plan the best realization
plan x is a linear program: the options' rivals are rows, and where an option has several actions, what lies
below is worth the least of them.

Rows for strict rivals are d @ x >= margin * reach(x), so that the follower, who compares conditional
expectations, sees a lead of `margin` (in units of the largest |h| that it sees). With margin 0 the program is
that of the closure, whose value is the supremum if some x satisfies all strict rows strictly (`interior`).

Source: `limited_lookahead`, equations (2), (3) and (8).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .highs_program import Program
from .options import InformationSet
from .sequence_form import Player, SequenceForm
from .settings import TIE_TOLERANCE

__all__ = ["Instance", "Interior", "Plan"]

Plan = Mapping[int, int]
"""{information set that the follower comes to: its option}."""

_SAMPLES = 64
_VARIANTS = 81
_LENGTH = 1e3  # sum of a row's coefficients: the solver's tolerance is then less than any margin
_INSIDE = 1e-8  # a least lead, of rows of that length, that counts as positive


class Interior(NamedTuple):
    """Whether some x satisfies all strict rows of a plan strictly; if not, a part of the plan to blame."""

    exists: bool
    conflict: tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Instance:
    """A game, what the follower may find best in it, and what that is worth to the leader.

    Attributes:
      sets: The follower's information sets.
      payoff: For each of its sequences, {leader's sequence: chance times the leader's utility, summed over
        leaves}.
      below: The information sets that come right after a sequence.
      most, least: The leader's greatest and least utility at leaves.
    """

    form: SequenceForm
    rational_player: int
    sets: list[InformationSet]
    payoff: list[dict[int, float]]
    below: list[list[int]]
    most: float
    least: float

    @classmethod
    def of(cls, form: SequenceForm, rational_player: int, sets: list[InformationSet]) -> Instance:
        """Puts an instance together."""
        follower = form.players[1 - rational_player]
        payoff: list[dict[int, float]] = [{} for _ in range(follower.num_sequences)]
        leaves = form.leaves
        for leaf in leaves.tolist():
            row = payoff[int(form.sequence[leaf, 1 - rational_player])]
            q = int(form.sequence[leaf, rational_player])
            row[q] = row.get(q, 0.0) + float(form.chance[leaf] * form.utility[leaf, rational_player])
        below: list[list[int]] = [[] for _ in range(follower.num_sequences)]
        for infoset, sequence in enumerate(follower.parent.tolist()):
            below[sequence].append(infoset)
        utility = form.utility[leaves, rational_player]
        return cls(form, rational_player, sets, payoff, below, float(utility.max()), float(utility.min()))

    @property
    def leader(self) -> Player:
        """The rational player."""
        return self.form.players[self.rational_player]

    @property
    def follower(self) -> Player:
        """The player with limited lookahead."""
        return self.form.players[1 - self.rational_player]

    def plan(self, chosen: Mapping[tuple[int, int], float]) -> Plan:
        """The plan that takes the option with the greatest entry at each information set it comes to."""
        plan: dict[int, int] = {}
        stack = list(self.below[0])
        while stack:
            infoset = stack.pop()
            options = self.sets[infoset].options
            plan[infoset] = max(range(len(options)), key=lambda k: chosen.get((infoset, k), -math.inf))
            for position in options[plan[infoset]].actions:
                stack += self.below[int(self.follower.first[infoset]) + position]
        return plan

    def random_plans(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Realization plans of the leader, at random: float[sequences, count]."""
        leader = self.leader
        x = np.ones((leader.num_sequences, count))
        for infoset, actions in enumerate(leader.actions):
            odds = rng.dirichlet(np.full(len(actions), 0.5), count).T
            x[list(leader.sequences(infoset))] = x[leader.parent[infoset]] * odds
        return x

    def response(self, x: np.ndarray) -> Plan:
        """A plan that fits a realization plan: at each information set, the option of the greatest value.

        Of options that are worth the same, the first; so it may not be the one that the rules pick.
        """
        return self.plan(
            {
                (infoset, k): float(option.value @ x)
                for infoset, found in enumerate(self.sets)
                for k, option in enumerate(found.options)
            }
        )

    def solve(self, plan: Plan, margin: float = 0.0) -> tuple[float, np.ndarray] | None:
        """The best x among those for which the plan's options are best, and its value; None if there is none.

        Raises:
          RuntimeError: HiGHS fails.
        """
        program, _ = self._program(plan, margin, with_lead=False)
        self._value(program, plan)
        solution = program.solve()
        if solution.x is None:
            return None
        return solution.objective, solution.x[: self.leader.num_sequences]

    def interior(self, plan: Plan) -> Interior:
        """Whether the plan's strict rows can all hold strictly, by more than what counts as a tie.

        Raises:
          RuntimeError: HiGHS fails.
        """
        program, rows = self._program(plan, TIE_TOLERANCE, with_lead=True)
        solution = program.solve()
        if solution.x is not None and (not rows or solution.objective > _INSIDE):
            return Interior(True, ())
        blamed = set(rows.values())
        if solution.duals is not None:
            # The rows with multipliers prove by themselves that there is no lead.
            blamed = {rows[k] for k in rows if abs(solution.duals[k]) > 1e-9} or blamed
        return Interior(False, tuple(sorted(blamed)))

    def conflicts(self, plan: Plan) -> list[tuple[tuple[int, int], ...]]:
        """Minimal parts of plans whose strict rows have no common strict solution; some for `plan`, if any.

        Where a part of the plan is in conflict, other options of the same information sets may be so too, and
        are looked at as well: each of them could cost a mixed-integer program later.

        Raises:
          RuntimeError: HiGHS fails.
        """
        found: list[tuple[tuple[int, int], ...]] = []
        left = dict(plan)
        while not (inside := self.interior(left)).exists:
            conflict = self._minimal(inside.conflict)
            found.append(conflict)
            for infoset, _ in conflict:
                del left[infoset]
            sets = [infoset for infoset, _ in conflict]
            if len(sets) == 1 or math.prod(len(self.sets[k].options) for k in sets) > _VARIANTS:
                continue
            for chosen in itertools.product(*(range(len(self.sets[k].options)) for k in sets)):
                variant = tuple(zip(sets, chosen, strict=True))
                if any(set(known) <= set(variant) for known in found):
                    continue
                inside = self.interior(dict(variant))
                if not inside.exists:
                    found.append(self._minimal(inside.conflict))
        return found

    def _minimal(self, conflict: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """A conflict of which every part is needed."""
        needed = list(conflict)
        for pair in conflict:
            rest = [other for other in needed if other != pair]
            if pair in needed and rest and not (inside := self.interior(dict(rest))).exists:
                needed = [other for other in rest if other in inside.conflict]
        return tuple(needed)

    def never_best(self) -> list[tuple[int, int]]:
        """The options whose strict rows have no common strict solution, other information sets aside.

        Raises:
          RuntimeError: HiGHS fails.
        """
        # Most options are seen to be best at one of some random x, without a linear program.
        x = self.random_plans(np.random.default_rng(0), _SAMPLES)
        found = []
        for infoset, options in ((k, found.options) for k, found in enumerate(self.sets)):
            for k, option in enumerate(options):
                strict = [rival.difference for rival in option.rivals if rival.strict]
                if not strict:
                    continue
                lead = np.array([rival.difference for rival in option.rivals]) @ x
                if not (lead > 1e-6).all(axis=0).any() and not self.interior({infoset: k}).exists:
                    found.append((infoset, k))
        return found

    def _program(
        self, plan: Plan, margin: float, with_lead: bool
    ) -> tuple[Program, dict[int, tuple[int, int]]]:
        """The rows of a plan; also {row of a rival: (information set, option)}."""
        program = Program()
        leader = self.leader
        program.columns(leader.num_sequences)
        lead = program.columns(1, -1.0, 1.0, 1.0) if with_lead else -1
        add_realization_rows(program, leader)
        rows = {}
        for infoset, chosen in plan.items():
            found = self.sets[infoset]
            for rival in found.options[chosen].rivals:
                d = rival.difference - margin * found.reach if rival.strict else rival.difference
                size = float(np.abs(d).sum())
                if size == 0.0:
                    continue
                entries = [(q, float(d[q]) * _LENGTH / size) for q in np.flatnonzero(d).tolist()]
                if with_lead and rival.strict:
                    entries.append((lead, -1.0))
                rows[program.row(entries, low=0.0)] = (infoset, chosen)
        return program, rows

    def _value(self, program: Program, plan: Plan) -> None:
        """Adds what the leader earns to the objective."""
        for q, worth in self.payoff[0].items():
            program.add_cost(q, worth)
        # Terms go into the objective (None) or into the rows q <= terms of an action of a tie.
        terms: dict[tuple[int, int] | None, list[tuple[int, float]]] = {None: []}
        stack: list[tuple[int, tuple[int, int] | None]] = [(infoset, None) for infoset in self.below[0]]
        least: dict[tuple[int, int], int] = {}
        while stack:
            infoset, sink = stack.pop()
            option = self.sets[infoset].options[plan[infoset]]
            if len(option.actions) > 1:
                column = program.columns(1, -math.inf, math.inf)
                terms[sink].append((column, 1.0))
            for position in option.actions:
                sequence = int(self.follower.first[infoset]) + position
                into = sink
                if len(option.actions) > 1:
                    into = (infoset, position)
                    least[into] = column
                    terms[into] = []
                terms[into] += self.payoff[sequence].items()
                stack += [(after, into) for after in self.below[sequence]]
        for column, worth in terms[None]:
            program.add_cost(column, worth)
        for key, column in least.items():
            program.row([(column, 1.0), *((other, -worth) for other, worth in terms[key])], high=0.0)


def add_realization_rows(program: Program, player: Player, first: int = 0) -> None:
    """The rows that make columns first, first + 1, ... a realization plan."""
    program.row([(first, 1.0)], 1.0, 1.0)
    for infoset in range(player.num_infosets):
        entries = [(first + q, 1.0) for q in player.sequences(infoset)]
        program.row([*entries, (first + int(player.parent[infoset]), -1.0)], 0.0, 0.0)
