"""The paper's mixed-integer program, with big M, for comparison.

x is the leader's realization plan and z(I, o) = 1 where the follower comes to I and finds option o best:

    sum over o at I of z(I, o)  =  sum over o' that hold the action before I of z(I', o')
    (V_o - V_o') @ x  >=  -M (1 - z(I, o))                                          for all rivals o' of o
    v(I)  <=  payoff(I a) @ x + sum over I' right after (I, a) of v(I') + M (1 - z(I, o))     for a in o

and the objective is what is earned before the follower moves plus v of its first information sets. Each M is
the smallest that is valid: the rows' extreme over realization plans.

Source: `limited_lookahead`, equations (1) and (13) to (15).

Deviations: z(I, o) = 1 makes an option best (the text says the opposite, its rows mean this); classes of
structural ties and `rule_out` take the place of epsilon and of the free choice of optimal sets; hypothetical
plans are enumerated (`options`). Of favorable tie-breaking the text has r_z <= payoff @ x, r_z <= M y, which
is the rows on v with one M a leaf.
"""

from __future__ import annotations

import math

import numpy as np

from .highs_program import Program, Solution
from .instance import Instance, Plan, add_realization_rows

__all__ = ["BigMProgram"]


class BigMProgram:
    """The program of an instance; parts of plans can be ruled out between solves."""

    def __init__(self, instance: Instance) -> None:
        """Puts the program together."""
        self.instance = instance
        program = self.program = Program()
        leader, follower = instance.leader, instance.follower
        program.columns(leader.num_sequences)
        add_realization_rows(program, leader)
        self._z: dict[tuple[int, int], int] = {}
        for infoset, found in enumerate(instance.sets):
            for k in range(len(found.options)):
                self._z[infoset, k] = program.columns(1, integer=True)
        high, low = (_reaches(instance, sign) for sign in (1.0, -1.0))
        worth = [program.columns(1, -math.inf, float(bound)) for bound in high[1]]
        for infoset, found in enumerate(instance.sets):
            before = int(follower.parent[infoset])
            entries = [(self._z[infoset, k], 1.0) for k in range(len(found.options))]
            if before == 0:
                program.row(entries, 1.0, 1.0)
            else:
                above = int(follower.infoset[before])
                position = before - int(follower.first[above])
                for k, option in enumerate(instance.sets[above].options):
                    if position in option.actions:
                        entries.append((self._z[above, k], -1.0))
                program.row(entries, 0.0, 0.0)
            for k, option in enumerate(found.options):
                z = self._z[infoset, k]
                for rival in option.rivals:
                    d = rival.difference
                    terms = [(q, float(d[q])) for q in np.flatnonzero(d).tolist()]
                    if rival.worst > 0.0:
                        program.row([*terms, (z, -rival.worst)], low=-rival.worst)
                for position in option.actions:
                    sequence = int(follower.first[infoset]) + position
                    m = float(high[1][infoset] + low[0][sequence])  # low is of the negative
                    terms = [(worth[infoset], 1.0), (z, m)]
                    terms += [(q, -value) for q, value in instance.payoff[sequence].items()]
                    terms += [(worth[after], -1.0) for after in instance.below[sequence]]
                    program.row(terms, high=m)
        for q, value in instance.payoff[0].items():
            program.add_cost(q, value)
        for infoset in instance.below[0]:
            program.add_cost(worth[infoset], 1.0)

    def solve(
        self, time_limit: float, start: Plan | None, absolute_gap: float
    ) -> tuple[Solution, Plan | None]:
        """Solves it as it stands; the plan is that of the best solution found, if there is one."""
        hint = None
        if start is not None:
            hint = {z: float(start.get(infoset) == k) for (infoset, k), z in self._z.items()}
        solution = self.program.solve(time_limit, hint, absolute_gap=absolute_gap)
        if solution.x is None:
            return solution, None
        return solution, self.instance.plan({key: float(solution.x[z]) for key, z in self._z.items()})

    def rule_out(self, conflict: tuple[tuple[int, int], ...]) -> None:
        """No plan may hold all of these (information set, option)."""
        self.program.row([(self._z[key], 1.0) for key in conflict], high=len(conflict) - 1.0)


def _reaches(instance: Instance, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of sign * payoff below each sequence and each information set, over all play of both."""
    leader, follower = instance.leader, instance.follower
    sequences, sets = np.zeros(follower.num_sequences), np.zeros(follower.num_infosets)
    for infoset in range(follower.num_infosets - 1, -1, -1):
        for sequence in follower.sequences(infoset):
            weights = np.zeros(leader.num_sequences)
            for q, value in instance.payoff[sequence].items():
                weights[q] = sign * value
            own = float(leader.extremes(weights))
            sequences[sequence] = own + sum(sets[after] for after in instance.below[sequence])
        sets[infoset] = max(sequences[list(follower.sequences(infoset))])
    return sequences, sets
