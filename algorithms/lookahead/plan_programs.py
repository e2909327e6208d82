"""The best commitment as a mixed-integer program over the leader's and the follower's plans.

With x the leader's realization plan and y(I, o) = 1 where the follower
comes to I and finds option o best, there is a variable xi(q, (I, o)) = x(q) y(I, o) for each of the leader's
sequences q that can meet I, and y is xi(empty, .):

    sum over b at J of xi(J b, (I, o))  =  xi(sequence before J, (I, o))             for all J that meet I
    sum over o at I of xi(q, (I, o))    =  sum over o' that hold the action before I of xi(q, (I', o'))
    sum over q of (V_o - V_o')[q] xi(q, (I, o))  >=  0                              for all rivals o' of o

y is integral, and then xi is the product. An option's payoff is linear in its xi; where it has several
actions, a free variable is at most what each of them is worth. Two information sets meet if some line of play
passes both.

Source: von Stengel and Forges 2008 for the variables xi; `limited_lookahead`, section 5 and equation (1).

Deviations: the paper's program, (13) to (15), has x and y apart, joined by big M. Classes of structural ties
and `rule_out` take the place of its epsilon and of its free choice of optimal sets; hypothetical plans are
enumerated (`options`).

Cost: a variable for each option and each leader's sequence that can meet it.
"""

from __future__ import annotations

import math

from ..programs import ProgramBuilder, ProgramSolution
from ..sequence_form import connected_infosets
from .instance import Choices, Instance, Plan, add_realization_plan, nonzero


class CorrelationProgram:
    """A program over realization plans x of the leader, its first columns, and plans of the follower.

    Parts of plans can be ruled out between solves.
    """

    def __init__(self, instance: Instance) -> None:
        """Puts the program together."""
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
        """Solves it as it stands, among plans that take the options of `held`.

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
        """No plan may hold all of these (information set, option)."""
        self.program.row([(self.taken[key], 1.0) for key in conflict], high=len(conflict) - 1.0)

    def _before(self, sequence: int) -> list[dict[int, int]]:
        """The columns whose sum is xi(., sequence)."""
        if sequence == 0:
            return [{q: q for q in range(self.instance.leader.num_sequences)}]
        return [self._columns[key] for key in self.instance.holding(sequence)]

    def _terms(self, infoset: int) -> list[tuple[int, float]]:
        """What an information set and all below it is worth, as (column, coefficient)."""
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
        """What `after` is worth under each of several options: a column each, zero but for the one taken."""
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
    """For each of the follower's information sets, the leader's that some line of play passes as well."""
    form, r = instance.form, instance.rational_player
    count = form.players[1].num_infosets
    meets: list[list[int]] = [[] for _ in range(form.players[1 - r].num_infosets)]
    meets[0] = list(range(1, instance.leader.num_infosets))
    for code in connected_infosets(form.parent, form.player, form.infoset, count).tolist():
        pair = divmod(code, count)
        meets[pair[1 - r]].append(pair[r])
    return {infoset: meets[origin] for infoset, origin in enumerate(instance.origin.tolist()) if infoset}
