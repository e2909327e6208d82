"""The best commitment as a mixed-integer program over correlation plans, without big M.

With x the leader's realization plan and y(I, o) = 1 where the follower comes to I and finds option o best,
there is a variable xi(q, (I, o)) = x(q) y(I, o) for each leader's sequence q that can meet I, and y is
xi(empty, .):

    sum over b at J of xi(J b, (I, o))  =  xi(sequence before J, (I, o))             for all J that meet I
    sum over o at I of xi(q, (I, o))    =  sum over o' that hold the action before I of xi(q, (I', o'))
    sum over q of (V_o - V_o')[q] xi(q, (I, o))  >=  0                              for all rivals o' of o

y is integral, and then xi is the product. An option's payoff is linear in its xi; where it has several
actions, a free variable is at most what each of them is worth. Two information sets meet if some line of play
passes both.

Source: von Stengel and Forges 2008 for the variables, for `limited_lookahead` section 5.

Deviations: the paper has x and y apart, with big M (`big_m_program`).

Cost: a variable for each option and each leader's sequence that can meet it.
"""

from __future__ import annotations

import math

import numpy as np

from .highs_program import Program, Solution
from .instance import Instance, Plan, add_realization_rows

__all__ = ["CorrelationProgram"]


class CorrelationProgram:
    """The program of an instance; parts of plans can be ruled out between solves."""

    def __init__(self, instance: Instance) -> None:
        """Puts the program together."""
        self.instance = instance
        self.program = Program()
        leader, follower = instance.leader, instance.follower
        self.program.columns(leader.num_sequences)
        add_realization_rows(self.program, leader)
        meets = _meetings(instance)
        # Columns of xi(., (I, o)), by leader's sequence.
        self._columns: dict[tuple[int, int], dict[int, int]] = {}
        for infoset, found in enumerate(instance.sets):
            sequences = [0, *(q for j in sorted(meets[infoset]) for q in leader.sequences(j))]
            for k in range(len(found.options)):
                first = self.program.columns(len(sequences))
                self._columns[infoset, k] = dict(
                    zip(sequences, range(first, first + len(sequences)), strict=True)
                )
                self.program.integer(first)
        for infoset, found in enumerate(instance.sets):
            before = self._before(int(follower.parent[infoset]))
            for q in self._columns[infoset, 0]:
                entries = [(self._columns[infoset, k][q], 1.0) for k in range(len(found.options))]
                self.program.row([*entries, *((columns[q], -1.0) for columns in before)], 0.0, 0.0)
            for k, option in enumerate(found.options):
                columns = self._columns[infoset, k]
                for j in sorted(meets[infoset]):
                    entries = [(columns[q], 1.0) for q in leader.sequences(j)]
                    self.program.row([*entries, (columns[int(leader.parent[j])], -1.0)], 0.0, 0.0)
                for rival in option.rivals:
                    d = rival.difference
                    entries = [(columns[q], float(d[q])) for q in np.flatnonzero(d).tolist()]
                    if rival.worst > 0.0:
                        self.program.row(entries, low=0.0)
        for q, worth in instance.payoff[0].items():
            self.program.add_cost(q, worth)
        for column, worth in [term for infoset in instance.below[0] for term in self._terms(infoset)]:
            self.program.add_cost(column, worth)

    def solve(
        self, time_limit: float, start: Plan | None, absolute_gap: float
    ) -> tuple[Solution, Plan | None]:
        """Solves it as it stands; the plan is that of the best solution found, if there is one."""
        hint = None
        if start is not None:
            hint = {
                columns[0]: float(start.get(infoset) == k) for (infoset, k), columns in self._columns.items()
            }
        solution = self.program.solve(time_limit, hint, absolute_gap=absolute_gap)
        if solution.x is None:
            return solution, None
        y = {key: float(solution.x[columns[0]]) for key, columns in self._columns.items()}
        return solution, self.instance.plan(y)

    def rule_out(self, conflict: tuple[tuple[int, int], ...]) -> None:
        """No plan may hold all of these (information set, option)."""
        self.program.row([(self._columns[key][0], 1.0) for key in conflict], high=len(conflict) - 1.0)

    def _before(self, sequence: int) -> list[dict[int, int]]:
        """The columns whose sum is xi(., sequence)."""
        if sequence == 0:
            return [{q: q for q in range(self.instance.leader.num_sequences)}]
        infoset = int(self.instance.follower.infoset[sequence])
        position = sequence - int(self.instance.follower.first[infoset])
        return [self._columns[infoset, k] for k in self._holding(infoset, position)]

    def _holding(self, infoset: int, position: int) -> list[int]:
        options = self.instance.sets[infoset].options
        return [k for k, option in enumerate(options) if position in option.actions]

    def _terms(self, infoset: int) -> list[tuple[int, float]]:
        """What an information set and all below it is worth, as (column, coefficient)."""
        options = self.instance.sets[infoset].options
        terms: list[tuple[int, float]] = []
        least: dict[int, int] = {}
        bounds: dict[tuple[int, int], list[tuple[int, float]]] = {}  # rows "least <= terms" of ties
        for k, option in enumerate(options):
            if len(option.actions) > 1:
                least[k] = self.program.columns(1, -math.inf, math.inf)
                terms.append((least[k], 1.0))
        for position, _ in enumerate(self.instance.follower.actions[infoset]):
            sequence = int(self.instance.follower.first[infoset]) + position
            holding = self._holding(infoset, position)
            for k in holding:
                columns = self._columns[infoset, k]
                own = [(columns[q], worth) for q, worth in self.instance.payoff[sequence].items()]
                if k in least:
                    bounds[k, position] = own
                else:
                    terms += own
            if not holding:
                continue
            if not any(k in least for k in holding):
                terms += [term for after in self.instance.below[sequence] for term in self._terms(after)]
            elif len(holding) == 1:
                for after in self.instance.below[sequence]:
                    bounds[holding[0], position] += self._terms(after)
            else:
                for after in self.instance.below[sequence]:
                    for k, column in self._split(infoset, holding, after).items():
                        (bounds[k, position] if k in least else terms).append((column, 1.0))
        for (k, _), entries in bounds.items():
            self.program.row([(least[k], 1.0), *((column, -worth) for column, worth in entries)], high=0.0)
        return terms

    def _split(self, infoset: int, holding: list[int], after: int) -> dict[int, int]:
        """What `after` is worth under each of several options: a column each, zero but for the one taken."""
        shares = {}
        for k in holding:
            shares[k] = self.program.columns(1, -math.inf, math.inf)
            y = self._columns[infoset, k][0]
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


def _meetings(instance: Instance) -> list[set[int]]:
    """For each of the follower's information sets, the leader's that some line of play passes as well."""
    form, r = instance.form, instance.rational_player
    leader, follower = instance.leader, instance.follower
    found: list[set[int]] = [set() for _ in range(follower.num_infosets)]
    pairs = {(int(form.sequence[leaf, r]), int(form.sequence[leaf, 1 - r])) for leaf in form.leaves}
    chains: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
    for player, chain in ((leader, chains[0]), (follower, chains[1])):
        chain[0] = []
        for sequence in range(1, player.num_sequences):
            infoset = int(player.infoset[sequence])
            chain[sequence] = [*chain[int(player.parent[infoset])], infoset]
    for own, other in pairs:
        for infoset in chains[1][other]:
            found[infoset].update(chains[0][own])
    return found
