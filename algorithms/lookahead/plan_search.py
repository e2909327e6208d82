"""The search over the follower's plans for the best commitment, whatever program bounds it.

    search = PlanSearch(instance, "correlation")
    search.run(deadline)                # search.supremum, search.bound
    x, played = search.attain(delta, play)

1. The mixed-integer program finds the plan whose closure is worth most;
2. if that plan's strict rows cannot all hold strictly, the parts of it that show this are ruled out, and 1
   is done again;
3. the best x with a margin to each strict rival is taken, the largest margin that keeps it within `delta`.

Where the follower has one option everywhere there is one plan, and one linear program.

Source: `limited_lookahead`, section 5, without its epsilon: strictness is decided after the fact.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .follower import TIE_TOLERANCE, LookaheadOutcome
from .instance import Choices, Instance, Plan
from .plan_programs import BigMProgram, CorrelationProgram

_MARGINS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 4.0 * TIE_TOLERANCE)
_ABSOLUTE_GAP = 1e-7
_NEAR = 1e-3
_MENDED = 100


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
        program = (BigMProgram if self.method == "big_m" else CorrelationProgram)(self.instance)
        columns, rows, integers = program.program.size
        self.work |= {"columns": columns, "rows": rows, "integers": integers}
        self._near(self.uniform)
        hopeless: list[tuple[int, int]] | None = None
        while True:
            solution, plan = program.solve(deadline - time.perf_counter(), self.plan, _ABSOLUTE_GAP)
            self.work["rounds"] += 1
            self.work["nodes"] += solution.nodes
            if solution.status == "infeasible":
                # All that is left has been ruled out: what was kept is best.
                self.bound = min(self.bound, self.supremum)
                return
            self.bound = min(self.bound, solution.bound)
            if plan is not None:
                conflicts = self.instance.conflicts(plan)
                if not conflicts:
                    self._keep(plan)
                else:
                    if hopeless is None:  # where one such plan looks good, others will
                        hopeless = self.instance.never_best()
                        conflicts += [(option,) for option in hopeless if (option,) not in conflicts]
                    for conflict in conflicts:
                        program.rule_out(conflict)
                    closest = self.instance.solve(plan)
                    if closest is not None:
                        self._near(closest[1])
                        self._mend(plan, conflicts, closest[1])
                    if solution.status == "optimal" and self.supremum < self.bound - _ABSOLUTE_GAP:
                        continue
            if solution.status == "optimal" or time.perf_counter() >= deadline:
                return

    def _near(self, x: np.ndarray) -> None:
        """Keeps what the follower does close to x, where that is better: something to start from."""
        self._try(self.instance.response((1.0 - _NEAR) * x + _NEAR * self.uniform))

    def _mend(self, plan: Plan, conflicts: Sequence[Choices], x: np.ndarray) -> None:
        """Looks for possible plans that differ from one with conflicts where those are.

        Often one is as good as the bound, which saves the programs that would find it by ruling out others.
        """
        sets = sorted({k for conflict in conflicts if _within(conflict, plan) for k, _ in conflict})
        near = (1.0 - _NEAR) * x + _NEAR * self.uniform
        values = self.instance.values(near)
        kept = {(infoset, k): math.inf for infoset, k in plan.items() if infoset not in sets}
        options = [range(len(self.instance.sets[k].options)) for k in sets]
        for chosen in itertools.islice(itertools.product(*options), _MENDED):
            variant = {(infoset, k): math.inf for infoset, k in zip(sets, chosen, strict=True)}
            if not any(_within(conflict, dict(zip(sets, chosen, strict=True))) for conflict in conflicts):
                self._try(self.instance.plan(values | kept | variant))
            if self.supremum >= self.bound - _ABSOLUTE_GAP:
                return

    def _try(self, plan: Plan) -> bool:
        """Keeps a plan if it is possible and better; whether it is."""
        return not self.instance.conflict(plan) and self._keep(plan)

    def _keep(self, plan: Plan) -> bool:
        """Keeps a plan if it is better; whether it is."""
        solved = self.instance.solve(plan)
        if solved is None or solved[0] <= self.supremum:
            return False
        self.supremum, self.x, self.plan = solved[0], solved[1], plan
        return True

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


def _within(part: Choices, plan: Plan) -> bool:
    """Whether a plan holds all of these (information set, option)."""
    return all(plan.get(infoset) == k for infoset, k in part)
