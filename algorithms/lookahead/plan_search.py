"""The search over the follower's plans for the best commitment.

    search = PlanSearch(instance, known=False)
    search.run(deadline)                # search.supremum, search.bound
    x, played = search.attain(delta, play)

1. Options that never are strictly best are left out, and the mixed-integer program finds the plan whose
   closure is worth most;
2. if that plan's strict rows cannot all hold strictly, the parts of it that show this are ruled out, and 1
   is done again, at first among plans that differ only there;
3. the best x with a margin to each strict rival is taken, the largest margin that keeps it within `delta`.

Where the follower has one option everywhere there is one plan, and one linear program.

**The program** is one over the leader's and the follower's plans, and has no big M. With x the leader's
realization plan and y(I, o) = 1 where the follower comes to I and finds option o best, there is a variable
xi(q, (I, o)) = x(q) y(I, o) for each of the leader's sequences q that can meet I, and y is xi(empty, .):

    sum over b at J of xi(J b, (I, o))  =  xi(sequence before J, (I, o))             for all J that meet I
    sum over o at I of xi(q, (I, o))    =  sum over o' that hold the action before I of xi(q, (I', o'))
    sum over q of (V_o - V_o')[q] xi(q, (I, o))  >=  0                              for all rivals o' of o

y is integral, and then xi is the product. An option's payoff is linear in its xi; where it has several
actions, a free variable is at most what each of them is worth. Two information sets meet if some line of play
passes both.

Source: `limited_lookahead`, section 5 and equation (1); von Stengel and Forges 2008 for the variables xi.

Deviations: strictness is decided after the fact, without epsilon. The paper's program, (13) to (15), has x
and y apart, joined by big M. Classes of structural ties and `rule_out` take the place of its free choice of
optimal sets; hypothetical plans are enumerated (`options`).

Cost: a variable for each option and each leader's sequence that can meet it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..programs import ProgramBuilder, ProgramSolution
from ..sequence_form import connected_infosets
from .follower import TIE_TOLERANCE, LookaheadOutcome
from .instance import Choices, Instance, Plan, add_realization_plan, nonzero

_MARGINS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 4.0 * TIE_TOLERANCE)
_ABSOLUTE_GAP = 1e-7
_NEAR = 1e-3


class Play(NamedTuple):
    """A strategy's utility, and its outcome against each type of the follower."""

    utility: float
    outcomes: tuple[LookaheadOutcome, ...]


class PlanSearch:
    """Search for the best plan and its value, in the instance's unit. known: there is only one plan."""

    def __init__(self, instance: Instance, known: bool) -> None:
        self.instance, self.known = instance, known
        self.supremum, self.bound = -math.inf, instance.most
        self.plan: Plan | None = None
        self.x: np.ndarray | None = None
        self.uniform = instance.leader.realized(
            instance.leader.probabilities(np.zeros(instance.leader.num_sequences))
        )
        self.work: dict[str, float] = {"rounds": 0, "nodes": 0, "columns": 0, "rows": 0, "integers": 0}

    def run(self, deadline: float) -> None:
        """Look for the best plan until the deadline, on the clock of `time.perf_counter`."""
        if self.known:
            self._keep(dict.fromkeys(self.instance.sets, 0))
            self.bound = self.supremum
            return
        self.instance.leave_out()
        program = CorrelationProgram(self.instance)
        columns, rows, integers = program.program.size
        self.work |= {"columns": columns, "rows": rows, "integers": integers}
        self._near(self.uniform)
        held: Plan = {}
        while True:
            solution, plan = program.solve(deadline - time.perf_counter(), self.plan, held, _ABSOLUTE_GAP)
            self.work["rounds"] += 1
            self.work["nodes"] += solution.nodes
            if not held:
                # Where nothing is left, all has been ruled out: what was kept is best.
                self.bound = min(self.bound, max(solution.bound, self.supremum))
            conflicts = [] if plan is None else self.instance.conflicts(plan)
            if plan is not None and not conflicts:
                self._keep(plan)
            for conflict in conflicts:
                program.rule_out(conflict)
            if plan is not None and conflicts and (closest := self.instance.solve(plan)) is not None:
                self._near(closest[1])
            if self.supremum >= self.bound - _ABSOLUTE_GAP or time.perf_counter() >= deadline:
                return
            if not held and not conflicts and solution.status == "optimal":
                return
            # Often a plan that differs only where the conflicts are is as good as the bound, which saves
            # the programs that would find it among all.
            held = {} if plan is None or not conflicts else self._apart(plan, conflicts)

    def _near(self, x: np.ndarray) -> None:
        """Keep what the follower does close to x, where that is better: something to start from."""
        plan = self.instance.response((1.0 - _NEAR) * x + _NEAR * self.uniform)
        if not self.instance.conflict(plan):
            self._keep(plan)

    def _apart(self, plan: Plan, conflicts: Sequence[Choices]) -> Plan:
        """Return the part of a plan that is neither in conflict nor below what is."""
        follower = self.instance.follower
        free = {infoset for conflict in conflicts for infoset, _ in conflict}
        for infoset in sorted(plan):  # what comes before an information set has a smaller number
            if int(follower.infoset[follower.parent[infoset]]) in free:
                free.add(infoset)
        return {infoset: k for infoset, k in plan.items() if infoset not in free}

    def _keep(self, plan: Plan) -> None:
        """Keep a plan if it is better."""
        solved = self.instance.solve(plan)
        if solved is not None and solved[0] > self.supremum:
            self.supremum, self.x, self.plan = solved[0], solved[1], plan

    def attain(self, delta: float, play: Callable[[np.ndarray], Play]) -> tuple[np.ndarray, Play]:
        """Return a strategy within delta of the supremum, as `play` finds it; else the best one tried."""
        if self.plan is None or self.x is None:
            return self.uniform, play(self.uniform)
        if not any(rival.strict for key in self.plan.items() for rival in self.instance.options[key].rivals):
            return self.x, play(self.x)
        nearest, unit = self.x, self.instance.unit
        enough = self.supremum - delta * unit
        best: tuple[np.ndarray, Play] | None = None
        for margin in _MARGINS:
            solved = self.instance.solve(self.plan, margin)
            if solved is None:
                continue
            if solved[0] < enough:
                nearest = solved[1]  # margins fall, so that later ones come nearer
                continue
            found = play(solved[1])
            if best is None or found.utility > best[1].utility:
                best = solved[1], found
            if found.utility * unit >= enough:
                return best
        # No margin that is wide enough to be seen is that near: the best of what there is.
        found = play(nearest)
        return best if best is not None and best[1].utility >= found.utility else (nearest, found)


class CorrelationProgram:
    """A program over realization plans x of the leader, its first columns, and plans of the follower.

    Parts of plans can be ruled out between solves.
    """

    def __init__(self, instance: Instance) -> None:
        """Put the program together."""
        self.instance = instance
        self.program = ProgramBuilder()
        add_realization_plan(self.program, instance.leader)
        # The binary that is 1 where the follower comes to (information set) and finds (option) best.
        self.taken: dict[tuple[int, int], int] = {}
        leader, follower = instance.leader, instance.follower
        meets = _meetings(instance)
        # Columns of xi(., (I, o)), by leader's sequence.
        self._columns: dict[tuple[int, int], dict[int, int]] = {}
        for infoset, information_set in instance.sets.items():
            sequences = [0, *(q for j in meets[infoset] for q in leader.sequences(j))]
            for k in range(len(information_set.options)):
                first = self.program.columns(len(sequences))
                self._columns[infoset, k] = dict(
                    zip(sequences, range(first, first + len(sequences)), strict=True)
                )
                self.taken[infoset, k] = first
                self.program.integer(first)
        for infoset, information_set in instance.sets.items():
            before = self._before(int(follower.parent[infoset]))
            for q in self._columns[infoset, 0]:
                entries = [(self._columns[infoset, k][q], 1.0) for k in range(len(information_set.options))]
                self.program.row([*entries, *((columns[q], -1.0) for columns in before)], 0.0, 0.0)
            for k, option in enumerate(information_set.options):
                columns = self._columns[infoset, k]
                for j in meets[infoset]:
                    entries = [(columns[q], 1.0) for q in leader.sequences(j)]
                    self.program.row([*entries, (columns[int(leader.parent[j])], -1.0)], 0.0, 0.0)
                for rival in option.rivals:
                    if rival.can_be_better:
                        self.program.row([(columns[q], d) for q, d in nonzero(rival.difference)], low=0.0)
        self.program.add_costs(instance.payoff[0].items())
        for infoset in follower.below[0]:
            self.program.add_costs(self._terms(infoset))

    def solve(
        self, time_limit: float, start: Plan | None, held: Plan, absolute_gap: float
    ) -> tuple[ProgramSolution, Plan | None]:
        """Solve it as it stands, among plans that take the options of `held`.

        The plan that is returned is that of the best solution found, if there is one.
        """
        hint = None
        if start is not None:
            hint = {column: float(start.get(infoset) == k) for (infoset, k), column in self.taken.items()}
        for key in held.items():
            self.program.set_bounds(self.taken[key], 1.0, 1.0)
        program = self.program.built()
        for key in held.items():
            self.program.set_bounds(self.taken[key], 0.0, 1.0)
        solution = program.solve(
            time_limit=time_limit,
            start=hint,
            absolute_gap=absolute_gap,
            heuristics=False,  # a few branches settle the bound
            attempt=True,
        )
        if not solution.found:
            return solution, None
        return solution, self.instance.plan(
            {key: float(solution.x[column]) for key, column in self.taken.items()}
        )

    def rule_out(self, conflict: Choices) -> None:
        """Forbid plans that hold all of these (information set, option)."""
        self.program.row([(self.taken[key], 1.0) for key in conflict], high=len(conflict) - 1.0)

    def _before(self, sequence: int) -> list[dict[int, int]]:
        """Return the columns whose sum is xi(., sequence)."""
        if sequence == 0:
            return [{q: q for q in range(self.instance.leader.num_sequences)}]
        return [self._columns[key] for key in self.instance.holding(sequence)]

    def _terms(self, infoset: int) -> list[tuple[int, float]]:
        """Return the value of an information set and all below it, as (column, coefficient)."""
        options = self.instance.sets[infoset].options
        terms: list[tuple[int, float]] = []
        least: dict[int, int] = {}
        bounds: dict[tuple[int, int], list[tuple[int, float]]] = {}  # rows "least <= terms" of ties
        for k, option in enumerate(options):
            if len(option.sequences) > 1:
                least[k] = self.program.columns(1, -math.inf, math.inf)
                terms.append((least[k], 1.0))
        for sequence in self.instance.follower.sequences(infoset):
            after_it = self.instance.follower.below[sequence]
            holding = [k for _, k in self.instance.holding(sequence)]
            for k in holding:
                columns = self._columns[infoset, k]
                own = [(columns[q], worth) for q, worth in self.instance.payoff[sequence].items()]
                if k in least:
                    bounds[k, sequence] = own
                else:
                    terms += own
            if not holding:
                continue
            if not any(k in least for k in holding):
                terms += [term for after in after_it for term in self._terms(after)]
            elif len(holding) == 1:
                for after in after_it:
                    bounds[holding[0], sequence] += self._terms(after)
            else:
                for after in after_it:
                    for k, column in self._split(infoset, holding, after).items():
                        (bounds[k, sequence] if k in least else terms).append((column, 1.0))
        for (k, _), entries in bounds.items():
            self.program.at_most(least[k], entries)
        return terms

    def _split(self, infoset: int, holding: list[int], after: int) -> dict[int, int]:
        """Return a column for each option with the value of `after`, zero but for the option taken."""
        shares = {}
        for k in holding:
            shares[k] = self.program.columns(1, -math.inf, math.inf)
            y = self.taken[infoset, k]
            low, high = min(self.instance.least, 0.0), max(self.instance.most, 0.0)
            self.program.row([(shares[k], 1.0), (y, -high)], high=0.0)
            self.program.row([(shares[k], 1.0), (y, -low)], low=0.0)
        terms = self._terms(after)
        self.program.row(
            [*((share, 1.0) for share in shares.values()), *((column, -worth) for column, worth in terms)],
            0.0,
            0.0,
        )
        return shares


def _meetings(instance: Instance) -> dict[int, list[int]]:
    """Return, for each of the follower's information sets, the leader's that share a line of play with it."""
    form, r = instance.form, instance.rational_player
    count = form.players[1].num_infosets
    meets: list[list[int]] = [[] for _ in range(form.players[1 - r].num_infosets)]
    meets[0] = list(range(1, instance.leader.num_infosets))
    for code in connected_infosets(form.parent, form.player, form.infoset, count).tolist():
        pair = divmod(code, count)
        meets[pair[1 - r]].append(pair[r])
    return {infoset: meets[origin] for infoset, origin in enumerate(instance.origin.tolist()) if infoset}
