"""Linear and mixed-integer programs, put together row by row and solved by HiGHS. Always a maximum."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import highspy
import numpy as np

__all__ = ["FEASIBILITY", "Program", "Solution"]

FEASIBILITY = 1e-9
"""How far rows and bounds may be violated, and how far from 0 and 1 a binary may be."""

_INF = highspy.kHighsInf


@dataclasses.dataclass(frozen=True)
class Solution:
    """What HiGHS found.

    Attributes:
      status: "optimal", "infeasible" or "time_limit".
      bound: No solution has a greater objective.
      objective: Of `x`; -inf where there is none.
      x: float[columns], or None.
      duals: float[rows], of linear programs at their optimum.
      nodes: Of the branch and bound.
    """

    status: str
    bound: float
    objective: float
    x: np.ndarray | None
    duals: np.ndarray | None
    nodes: int


class Program:
    """A program under construction. Columns and rows are numbered from 0 in the order they are added."""

    def __init__(self) -> None:
        """Starts without columns and rows."""
        self._cost: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._integer: list[int] = []
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self._start: list[int] = [0]
        self._index: list[int] = []
        self._value: list[float] = []

    @property
    def size(self) -> tuple[int, int, int]:
        """Columns, rows, and how many of the columns are integers."""
        return len(self._cost), len(self._row_low), len(self._integer)

    def columns(
        self, count: int, low: float = 0.0, high: float = 1.0, cost: float = 0.0, integer: bool = False
    ) -> int:
        """Adds columns and returns the first one's number."""
        first = len(self._cost)
        self._cost += [cost] * count
        self._low += [low] * count
        self._high += [high] * count
        if integer:
            self._integer += range(first, first + count)
        return first

    def integer(self, column: int) -> None:
        """Makes a column an integer."""
        self._integer.append(column)

    def add_cost(self, column: int, cost: float) -> None:
        """Adds to a column's coefficient in the objective, which is maximized."""
        self._cost[column] += cost

    def set_costs(self, costs: Mapping[int, float]) -> None:
        """Makes these the objective; what is not named counts nothing."""
        self._cost = [0.0] * len(self._cost)
        for column, cost in costs.items():
            self._cost[column] = cost

    def set_bounds(self, column: int, low: float, high: float) -> None:
        """Bounds a column."""
        self._low[column], self._high[column] = low, high

    def row(
        self, entries: Iterable[tuple[int, float]], low: float = -math.inf, high: float = math.inf
    ) -> int:
        """Adds low <= sum of value * column <= high and returns its number; columns may repeat."""
        merged: dict[int, float] = {}
        for column, value in entries:
            merged[column] = merged.get(column, 0.0) + value
        self._index += merged.keys()
        self._value += merged.values()
        self._start.append(len(self._index))
        self._row_low.append(low)
        self._row_high.append(high)
        return len(self._row_low) - 1

    def solve(
        self,
        time_limit: float = math.inf,
        start: Mapping[int, float] | None = None,
        absolute_gap: float = 1e-7,
    ) -> Solution:
        """Solves the program.

        Args:
          time_limit: seconds.
          start: values of some columns, all integer ones among them, to begin with; need not be feasible.
          absolute_gap: when a mixed-integer program counts as solved, in the objective's units.

        Raises:
          RuntimeError: HiGHS fails.
        """
        highs = self._load()
        if time_limit <= 0.0:
            return Solution("time_limit", math.inf, -math.inf, None, None, 0)
        if math.isfinite(time_limit):
            highs.setOptionValue("time_limit", float(time_limit))
        if self._integer:
            highs.setOptionValue("mip_rel_gap", 0.0)
            highs.setOptionValue("mip_abs_gap", absolute_gap)
            if start:
                highs.setSolution(
                    len(start), np.array(list(start), np.int32), np.array(list(start.values()), np.float64)
                )
        else:
            # Vertices of the program itself: the presolve's are off by more than rounding.
            highs.setOptionValue("presolve", "off")
            highs.setOptionValue("solver", "simplex")
        highs.run()
        if highs.getModelStatus() == highspy.HighsModelStatus.kSolveError:
            # Nearly parallel rows can defeat the simplex method; with fewer of them it goes through.
            highs.clearSolver()
            highs.setOptionValue("presolve", "on")
            highs.run()
        return self._read(highs)

    def _load(self) -> highspy.Highs:
        highs = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("parallel", "off"),
            ("primal_feasibility_tolerance", FEASIBILITY),
            ("dual_feasibility_tolerance", FEASIBILITY),
            ("mip_feasibility_tolerance", FEASIBILITY),
        ):
            highs.setOptionValue(name, value)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self._cost), len(self._row_low)
        program.sense_ = highspy.ObjSense.kMaximize
        program.col_cost_ = np.array(self._cost)
        program.col_lower_, program.col_upper_ = _bounds(self._low), _bounds(self._high)
        program.row_lower_, program.row_upper_ = _bounds(self._row_low), _bounds(self._row_high)
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.num_col_, matrix.num_row_ = program.num_col_, program.num_row_
        matrix.start_ = np.array(self._start, np.int32)
        matrix.index_ = np.array(self._index, np.int32)
        matrix.value_ = np.array(self._value, np.float64)
        if self._integer:
            kinds = [highspy.HighsVarType.kContinuous] * len(self._cost)
            for column in self._integer:
                kinds[column] = highspy.HighsVarType.kInteger
            program.integrality_ = kinds
        if highs.passModel(program) == highspy.HighsStatus.kError:
            raise RuntimeError("HiGHS refused the program")
        return highs

    def _read(self, highs: highspy.Highs) -> Solution:
        status, kinds = highs.getModelStatus(), highspy.HighsModelStatus
        info, found = highs.getInfo(), highs.getSolution()
        nodes = max(0, int(info.mip_node_count)) if self._integer else 0
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Solution("infeasible", -math.inf, -math.inf, None, None, nodes)
        if status not in (kinds.kOptimal, kinds.kTimeLimit):
            raise RuntimeError(f"HiGHS ended with {highs.modelStatusToString(status)}")
        done = status == kinds.kOptimal
        has = bool(found.value_valid) and len(found.col_value) > 0
        if not self._integer:
            has = has and done
            objective = float(info.objective_function_value) if has else -math.inf
            return Solution(
                "optimal" if done else "time_limit",
                objective if done else math.inf,
                objective,
                np.array(found.col_value) if has else None,
                np.array(found.row_dual) if has else None,
                0,
            )
        has = has and math.isfinite(info.objective_function_value)
        bound = float(info.mip_dual_bound)
        return Solution(
            "optimal" if done else "time_limit",
            bound if math.isfinite(bound) else math.inf,
            float(info.objective_function_value) if has else -math.inf,
            np.array(found.col_value) if has else None,
            None,
            nodes,
        )


def _bounds(values: Sequence[float]) -> np.ndarray:
    return np.clip(np.array(values, np.float64), -_INF, _INF)
