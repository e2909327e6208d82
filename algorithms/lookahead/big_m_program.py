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

from .instance import Instance, nonzero
from .plan_program import PlanProgram

__all__ = ["BigMProgram"]


class BigMProgram(PlanProgram):
    """The program of an instance."""

    def __init__(self, instance: Instance) -> None:
        """Puts the program together."""
        super().__init__(instance)
        program, follower = self.program, instance.follower
        for infoset, found in instance.sets.items():
            for k in range(len(found.options)):
                self.taken[infoset, k] = program.columns(1)
                program.integer(self.taken[infoset, k])
        high, low = (_reaches(instance, sign) for sign in (1.0, -1.0))
        worth = {k: program.columns(1, -math.inf, float(high[1][k])) for k in instance.sets}
        for infoset, found in instance.sets.items():
            before = int(follower.parent[infoset])
            entries = [(self.taken[infoset, k], 1.0) for k in range(len(found.options))]
            if before == 0:
                program.row(entries, 1.0, 1.0)
            else:
                entries += [(self.taken[key], -1.0) for key in instance.holding(before)]
                program.row(entries, 0.0, 0.0)
            for k, option in enumerate(found.options):
                z = self.taken[infoset, k]
                for rival in option.rivals:
                    if rival.worst > 0.0:
                        program.row([*nonzero(rival.difference), (z, -rival.worst)], low=-rival.worst)
                for sequence in option.sequences:
                    m = float(high[1][infoset] + low[0][sequence])  # low is of the negative
                    terms = [(worth[infoset], 1.0), (z, m)]
                    terms += [(q, -value) for q, value in instance.payoff[sequence].items()]
                    terms += [(worth[after], -1.0) for after in follower.below[sequence]]
                    program.row(terms, high=m)
        program.add_costs(instance.payoff[0].items())
        program.add_costs((worth[infoset], 1.0) for infoset in follower.below[0])


def _reaches(instance: Instance, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of sign * payoff below each sequence and each information set, over all play of both."""
    leader, follower = instance.leader, instance.follower
    sequences, sets = np.zeros(follower.num_sequences), np.zeros(follower.num_infosets)
    for infoset in range(follower.num_infosets - 1, 0, -1):
        for sequence in follower.sequences(infoset):
            weights = np.zeros(leader.num_sequences)
            for q, value in instance.payoff[sequence].items():
                weights[q] = sign * value
            own = float(leader.extremes(weights))
            sequences[sequence] = own + sum(sets[after] for after in follower.below[sequence])
        sets[infoset] = max(sequences[list(follower.sequences(infoset))])
    return sequences, sets
