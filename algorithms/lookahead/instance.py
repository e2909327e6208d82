"""An instance of the commitment problem, and what does not depend on which program solves it: plans.

**Several types** of the follower meet the same x. Their information sets stand side by side, as those of one
player who is told first which type it is. By weights, Nature tells it, and payoffs are multiplied with each
type's probability. Where the worst type counts, a first information set of its own has an action for each
type, which all tie whatever x is and are broken against the leader. So nothing below knows of types: a plan
is one of all of them, and so is what rules it out.

A **plan** of the follower names an option for each information set that it comes to by its own choices; where
an option has several actions, it comes to what lies below each of them. For a fixed plan the best realization
plan x is a linear program: the options' rivals are rows, and where an option has several actions, what lies
below is worth the least of them.

Rows for strict rivals are d @ x >= margin * reach(x), so that the follower, who compares conditional
expectations, sees a lead of `margin` (in units of the largest |h| that it sees). With margin 0 the program is
that of the closure, whose value is the supremum if some x satisfies all strict rows strictly (`conflict`).

Source: `limited_lookahead`, equations (2), (3) and (8); Harsanyi 1967 for types as moves of Nature.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..programs import ProgramBuilder
from ..sequence_form import PlayerSequences
from .follower import TIE_TOLERANCE
from .options import InformationSet, Option
from .sequence_form import SequenceForm

Plan = Mapping[int, int]
"""{information set that the follower comes to: its option}."""

Choices = tuple[tuple[int, int], ...]
"""A part of a plan: (information set, option) each."""

_SAMPLES = 64
_VARIANTS = 81
_LENGTH = 1e3  # sum of a row's coefficients: the solver's tolerance is then less than any margin
_INSIDE = 1e-8  # a least lead, of rows of that length, that counts as positive


class Instance:
    """An instance of the commitment problem: a game, the follower's options, and their values for the leader.

    Attributes:
      leader, follower: Their sequences; the follower's, of all types side by side.
      sets: The follower's information sets, by number.
      origin: int[follower's information sets], which of the game's each one is; 0 where the types differ.
      options: Theirs, by (information set, number of the option).
      unit: The factor of the leader's utilities here, see `SequenceForm.normalized`.
      payoff: For each of its sequences, {leader's sequence: chance times the leader's utility, summed over
        leaves}.
      most, least: The leader's greatest and least utility at leaves.
    """

    def __init__(
        self,
        form: SequenceForm,
        rational_player: int,
        types: Sequence[dict[int, InformationSet]],
        weights: np.ndarray | None,
    ) -> None:
        """Put an instance together.

        Args:
          form: the game.
          rational_player: the leader.
          types: the game's information sets of the follower, as each type sees them.
          weights: float[types], their probabilities; None: the worst type counts.
        """
        form, self.unit = form.normalized(rational_player)
        self.form, self.rational_player = form, rational_player
        self.leader, own = form.players[rational_player], form.players[1 - rational_player]
        chosen = len(types) if weights is None and len(types) > 1 else 0
        self.follower, self.origin = _side_by_side(own, len(types), chosen)
        payoff = form.payoff(rational_player)
        self.payoff = [payoff[0], *({} for _ in range(chosen))]
        self.sets: dict[int, InformationSet] = {}
        if chosen:
            always = np.zeros(self.leader.num_sequences)
            always[0] = 1.0
            tie = Option(tuple(range(1, chosen + 1)), np.zeros_like(always), ())
            self.sets[1] = InformationSet(always, (tie,))
        for sets, weight in zip(types, np.ones(len(types)) if weights is None else weights, strict=True):
            sequence, infoset = len(self.payoff) - 1, len(self.sets)  # what the game's numbers are raised by
            self.payoff += [{q: float(weight) * worth for q, worth in row.items()} for row in payoff[1:]]
            self.sets |= {infoset + k: _raised(each, sequence) for k, each in sorted(sets.items())}
        self.options = _numbered(self.sets)
        utility = form.utility[form.leaves, rational_player]
        self.most, self.least = float(utility.max()), float(utility.min())

    def holding(self, sequence: int) -> list[tuple[int, int]]:
        """Return the (information set, option) that hold the last action of a follower's sequence."""
        infoset = int(self.follower.infoset[sequence])
        options = self.sets[infoset].options
        return [(infoset, k) for k, option in enumerate(options) if sequence in option.sequences]

    def plan(self, chosen: Mapping[tuple[int, int], float]) -> Plan:
        """Return the plan that takes the option of the greatest entry at each information set it reaches."""
        plan: dict[int, int] = {}
        stack = list(self.follower.below[0])
        while stack:
            infoset = stack.pop()
            options = self.sets[infoset].options
            plan[infoset] = max(range(len(options)), key=lambda k: chosen.get((infoset, k), -math.inf))
            for sequence in options[plan[infoset]].sequences:
                stack += self.follower.below[sequence]
        return plan

    def response(self, x: np.ndarray) -> Plan:
        """Return a plan that fits a realization plan: the option of the greatest value at each set.

        Of options that are worth the same, the first; so it may not be the one that the rules pick.
        """
        return self.plan({key: float(option.value @ x) for key, option in self.options.items()})

    def solve(self, plan: Plan, margin: float = 0.0) -> tuple[float, np.ndarray] | None:
        """Return the best x for which the plan's options are best, and its value; None if there is none.

        The value is in the instance's unit.

        Raises:
          LinearProgramError: HiGHS fails.
        """
        program, _ = self._program(plan, margin, with_lead=False)
        self._value(program, plan)
        solution = program.built().solve(presolve=False, attempt=True)
        if not solution.found:
            return None
        return solution.objective, solution.x[: self.leader.num_sequences]

    def conflict(self, plan: Plan) -> Choices:
        """Return a part of the plan whose strict rows cannot all hold strictly, beyond a tie's tolerance.

        It is empty if those of the whole plan can.

        Raises:
          LinearProgramError: HiGHS fails.
        """
        program, rows = self._program(plan, TIE_TOLERANCE, with_lead=True)
        solution = program.built().solve(presolve=False, attempt=True)
        if solution.found and (not rows or solution.objective > _INSIDE):
            return ()
        blamed = set(rows.values())
        if solution.found:
            # The rows with multipliers prove by themselves that there is no lead.
            blamed = {rows[k] for k in rows if abs(solution.duals[k]) > 1e-9} or blamed
        return tuple(sorted(blamed))

    def conflicts(self, plan: Plan) -> list[Choices]:
        """Return minimal parts of plans whose strict rows have no common strict solution; of `plan`, if any.

        Where a part of the plan is in conflict, other options of the same information sets may be so too, and
        are looked at as well: each of them could cost a mixed-integer program later.

        Raises:
          LinearProgramError: HiGHS fails.
        """
        minimal: list[Choices] = []
        left = dict(plan)
        while conflict := self.conflict(left):
            conflict = self._minimal(conflict)
            minimal.append(conflict)
            sets = [infoset for infoset, _ in conflict]
            for infoset in sets:
                del left[infoset]
            if len(sets) == 1 or math.prod(len(self.sets[k].options) for k in sets) > _VARIANTS:
                continue
            for chosen in itertools.product(*(range(len(self.sets[k].options)) for k in sets)):
                variant = tuple(zip(sets, chosen, strict=True))
                if any(set(known) <= set(variant) for known in minimal):
                    continue
                if conflict := self.conflict(dict(variant)):
                    minimal.append(self._minimal(conflict))
        return minimal

    def _minimal(self, conflict: Choices) -> Choices:
        """Return a conflict of which every part is needed."""
        needed = list(conflict)
        for pair in conflict:
            rest = [other for other in needed if other != pair]
            if pair in needed and rest and (within := self.conflict(dict(rest))):
                needed = [other for other in rest if other in within]
        return tuple(needed)

    def leave_out(self) -> None:
        """Drop the options that are never best: other information sets aside, no x makes them so.

        Raises:
          LinearProgramError: HiGHS fails.
        """
        # Most options are seen to be best at one of some random x, without a linear program.
        rng = np.random.default_rng(0)
        drawn = [rng.dirichlet(np.full(n, 0.5), _SAMPLES).T for n in self.leader.num_actions[1:]]
        x = self.leader.realized(np.concatenate([np.ones((1, _SAMPLES)), *drawn]))
        never = set()
        for (infoset, k), option in self.options.items():
            if any(rival.strict for rival in option.rivals):
                lead = np.array([rival.difference for rival in option.rivals]) @ x
                if not (lead > 1e-6).all(axis=0).any() and self.conflict({infoset: k}):
                    never.add((infoset, k))
        for infoset in {infoset for infoset, _ in never}:
            each = self.sets[infoset]
            kept = tuple(o for k, o in enumerate(each.options) if (infoset, k) not in never)
            if kept:
                self.sets[infoset] = dataclasses.replace(each, options=kept)
        self.options = _numbered(self.sets)

    def _program(
        self, plan: Plan, margin: float, with_lead: bool
    ) -> tuple[ProgramBuilder, dict[int, tuple[int, int]]]:
        """Return the rows of a plan; also {row of a rival: (information set, option)}."""
        program = ProgramBuilder()
        add_realization_plan(program, self.leader)
        lead = program.columns(1, -1.0, 1.0, 1.0) if with_lead else -1
        rows = {}
        for infoset, chosen in plan.items():
            information_set = self.sets[infoset]
            for rival in information_set.options[chosen].rivals:
                d = rival.difference - margin * information_set.reach if rival.strict else rival.difference
                size = float(np.abs(d).sum())
                if size == 0.0:
                    continue
                entries = nonzero(d * _LENGTH / size)
                if with_lead and rival.strict:
                    entries.append((lead, -1.0))
                rows[program.row(entries, low=0.0)] = (infoset, chosen)
        return program, rows

    def _value(self, program: ProgramBuilder, plan: Plan) -> None:
        """Add what the leader earns to the objective."""
        program.add_costs(self.payoff[0].items())
        # Terms go into the objective (None) or into the rows q <= terms of an action of a tie.
        terms: dict[int | None, list[tuple[int, float]]] = {None: []}
        stack: list[tuple[int, int | None]] = [(infoset, None) for infoset in self.follower.below[0]]
        least: dict[int, int] = {}
        while stack:
            infoset, sink = stack.pop()
            option = self.sets[infoset].options[plan[infoset]]
            if len(option.sequences) > 1:
                column = program.columns(1, -math.inf, math.inf)
                terms[sink].append((column, 1.0))
            for sequence in option.sequences:
                into = sink
                if len(option.sequences) > 1:
                    into = sequence
                    least[into] = column
                    terms[into] = []
                terms[into] += self.payoff[sequence].items()
                stack += [(after, into) for after in self.follower.below[sequence]]
        program.add_costs(terms[None])
        for key, column in least.items():
            program.at_most(column, terms[key])


def _side_by_side(own: PlayerSequences, count: int, chosen: int) -> tuple[PlayerSequences, np.ndarray]:
    """Return a player's sequences so many times, and which of its information sets each one is.

    chosen: as many, where a first information set of its own chooses among them; 0 where Nature does.
    """
    sequences, before = own.num_sequences - 1, 1 if chosen else 0
    parents = [np.array([-1, 0][: 1 + before])]
    for number in range(count):
        root = number + 1 if chosen else 0
        raised = own.parent[1:] + chosen + number * sequences
        parents.append(np.where(own.parent[1:] == 0, root, raised))
    sizes = np.array([0, 1, *[chosen] * before, *np.tile(own.num_actions[1:], count)])
    actions = np.array([-1, *range(chosen), *np.tile(own.action[1:], count)], np.int32)
    origin = np.array([0, *[0] * before, *np.tile(np.arange(1, own.num_infosets), count)])
    keys = [own.keys[k] for k in origin.tolist()]
    return PlayerSequences(np.concatenate(parents).astype(np.int32), np.cumsum(sizes), actions, keys), origin


def _numbered(sets: Mapping[int, InformationSet]) -> dict[tuple[int, int], Option]:
    """Return the sets' options, by (information set, number of the option)."""
    return {(infoset, k): o for infoset, each in sets.items() for k, o in enumerate(each.options)}


def _raised(information_set: InformationSet, by: int) -> InformationSet:
    """Return an information set with the numbers of its sequences raised, as of another type."""
    options = (
        dataclasses.replace(option, sequences=tuple(sequence + by for sequence in option.sequences))
        for option in information_set.options
    )
    return dataclasses.replace(information_set, options=tuple(options))


def add_realization_plan(program: ProgramBuilder, player: PlayerSequences) -> None:
    """Add columns that are a realization plan, one for each sequence, to a program that has none yet."""
    program.columns(player.num_sequences)
    program.row([(0, 1.0)], 1.0, 1.0)
    for infoset in range(1, player.num_infosets):
        entries = [(q, 1.0) for q in player.sequences(infoset)]
        program.row([*entries, (int(player.parent[infoset]), -1.0)], 0.0, 0.0)


def nonzero(vector: np.ndarray) -> list[tuple[int, float]]:
    """Return a row's entries: (column, value)."""
    columns = np.flatnonzero(vector)
    return list(zip(columns.tolist(), vector[columns].tolist(), strict=True))
