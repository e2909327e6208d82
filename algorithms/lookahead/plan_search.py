"""The search over the follower's plans for the best commitment.

    search = PlanSearch(instance, "correlation")
    search.run(deadline)                # search.supremum, search.bound
    x, played = search.attain(delta, play)

1. Options that never are strictly best are left out, and the mixed-integer program finds the plan whose
   closure is worth most;
2. if that plan's strict rows cannot all hold strictly, the parts of it that show this are ruled out, and 1
   is done again, at first among plans that differ only there;
3. the best x with a margin to each strict rival is taken, the largest margin that keeps it within `delta`.

Where the follower has one option everywhere there is one plan, and one linear program.

Source: `limited_lookahead`, section 5, without its epsilon: strictness is decided after the fact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .follower import TIE_TOLERANCE, LookaheadOutcome
from .instance import Choices, Instance, Plan
from .plan_programs import CorrelationProgram

_MARGINS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 4.0 * TIE_TOLERANCE)
_ABSOLUTE_GAP = 1e-7
_NEAR = 1e-3


class Play(NamedTuple):
    """What a strategy earns, and what happens where it meets each type of the follower."""

    utility: float
    outcomes: tuple[LookaheadOutcome, ...]


class PlanSearch:
    """The best plan, and what it is worth, in the instance's unit."""

    def __init__(self, instance: Instance, method: str) -> None:
        self.instance, self.method = instance, method
        self.supremum, self.bound = -math.inf, instance.most
        self.plan: Plan | None = None
        self.x: np.ndarray | None = None
        self.uniform = instance.leader.realized(
            instance.leader.probabilities(np.zeros(instance.leader.num_sequences))
        )
        self.work: dict[str, float] = {"rounds": 0, "nodes": 0, "columns": 0, "rows": 0, "integers": 0}

    def run(self, deadline: float) -> None:
        """Looks for the best plan until the deadline, on the clock of `time.perf_counter`."""
        if self.method == "polynomial":
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
        """Keeps what the follower does close to x, where that is better: something to start from."""
        plan = self.instance.response((1.0 - _NEAR) * x + _NEAR * self.uniform)
        if not self.instance.conflict(plan):
            self._keep(plan)

    def _apart(self, plan: Plan, conflicts: Sequence[Choices]) -> Plan:
        """The part of a plan that is neither in conflict nor below what is."""
        follower = self.instance.follower
        free = {infoset for conflict in conflicts for infoset, _ in conflict}
        for infoset in sorted(plan):  # what comes before an information set has a smaller number
            if int(follower.infoset[follower.parent[infoset]]) in free:
                free.add(infoset)
        return {infoset: k for infoset, k in plan.items() if infoset not in free}

    def _keep(self, plan: Plan) -> None:
        """Keeps a plan if it is better."""
        solved = self.instance.solve(plan)
        if solved is not None and solved[0] > self.supremum:
            self.supremum, self.x, self.plan = solved[0], solved[1], plan

    def attain(self, delta: float, play: Callable[[np.ndarray], Play]) -> tuple[np.ndarray, Play]:
        """A strategy within delta of the supremum, as `play` finds it; else the best that was tried."""
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
