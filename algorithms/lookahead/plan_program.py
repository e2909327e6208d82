"""What the two mixed-integer programs of an instance share: binaries that say which options a plan takes."""

from __future__ import annotations

from ..programs import ProgramBuilder, ProgramSolution
from .instance import Instance, Plan, add_realization_plan

__all__ = ["PlanProgram"]


class PlanProgram:
    """A program over realization plans x of the leader, its first columns, and plans of the follower.

    Parts of plans can be ruled out between solves.
    """

    def __init__(self, instance: Instance) -> None:
        """Starts with the columns and rows of x."""
        self.instance = instance
        self.program = ProgramBuilder()
        add_realization_plan(self.program, instance.leader)
        # The binary that is 1 where the follower comes to (information set) and finds (option) best.
        self.taken: dict[tuple[int, int], int] = {}

    def solve(
        self, time_limit: float, start: Plan | None, absolute_gap: float
    ) -> tuple[ProgramSolution, Plan | None]:
        """Solves it as it stands; the plan is that of the best solution found, if there is one."""
        hint = None
        if start is not None:
            hint = {column: float(start.get(infoset) == k) for (infoset, k), column in self.taken.items()}
        solution = self.program.built().solve(
            time_limit=time_limit, start=hint, absolute_gap=absolute_gap, attempt=True
        )
        if not solution.found:
            return solution, None
        return solution, self.instance.plan(
            {key: float(solution.x[column]) for key, column in self.taken.items()}
        )

    def rule_out(self, conflict: tuple[tuple[int, int], ...]) -> None:
        """No plan may hold all of these (information set, option)."""
        self.program.row([(self.taken[key], 1.0) for key in conflict], high=len(conflict) - 1.0)
