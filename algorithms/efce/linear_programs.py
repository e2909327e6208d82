"""Linear programs by HiGHS, through its own Python package: scipy's front end cannot leave crossover out.

The programs of this package are wide and degenerate. Simplex is very slow on them; interior points without
crossover give a solution within tolerances that is no vertex. HiGHS has two such methods. HiPO, with the
augmented system, solves Table 1's last row in a quarter of IPX's time; with the normal equations it gets
stuck. It needs the package highspy-extras (`highspy[extras]`); without that, IPX is used.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time

import highspy
import numpy as np
import scipy.sparse

__all__ = ["Clock", "LinearProgram", "LinearProgramError", "Solution"]

_INTERIOR_POINTS = "hipo" if importlib.util.find_spec("highspy_extras") else "ipx"


class LinearProgramError(RuntimeError):
    """HiGHS found no optimum.

    status: HiGHS's own word for why, such as "Infeasible" or "Time limit reached".
    """

    def __init__(self, caller: str, status: str) -> None:
        super().__init__(f"{caller}: HiGHS found no optimum: {status}")
        self.caller, self.status = caller, status

    def __reduce__(self) -> tuple[type[LinearProgramError], tuple[str, str]]:
        return LinearProgramError, (self.caller, self.status)  # to come back from another process


class Clock:
    """A time limit, from now on. caller: the public function, for the error; seconds: None for no limit."""

    def __init__(self, caller: str, seconds: float | None) -> None:
        self.caller = caller
        self.start = time.perf_counter()
        self._end = None if seconds is None else self.start + seconds

    def left(self) -> float | None:
        """Seconds that are left; None for no limit.

        Raises:
          LinearProgramError: there are none.
        """
        if self._end is None:
            return None
        left = self._end - time.perf_counter()
        if left <= 0.0:
            raise LinearProgramError(self.caller, "Time limit reached")
        return left

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """x: float64[columns]. objective: maximized. iterations: of the interior point or simplex method."""

    x: np.ndarray
    objective: float
    iterations: int


@dataclasses.dataclass(frozen=True, eq=False)
class LinearProgram:
    """Maximize objective x subject to row_lower <= matrix x <= row_upper, lower <= x <= upper.

    Attributes:
      matrix: Sparse, rows x columns; the rest are float64 arrays, infinite where there is no bound.
    """

    objective: np.ndarray
    matrix: scipy.sparse.csr_array
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def solve(
        self,
        caller: str,
        *,
        time_limit: float | None = None,
        vertex: bool = False,
        tolerance: float = 1e-9,
        threads: int = 1,
    ) -> Solution:
        """Solves it.

        Args:
          caller: for messages.
          time_limit: seconds.
          vertex: by simplex, which ends at a vertex; otherwise by interior points.
          tolerance: of feasibility and optimality.
          threads: HiGHS's.

        Raises:
          LinearProgramError: infeasible, unbounded, out of time.
        """
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", threads)
        solver.setOptionValue("solver", "simplex" if vertex else _INTERIOR_POINTS)
        solver.setOptionValue("hipo_system", "augmented")
        solver.setOptionValue("run_crossover", "on" if vertex else "off")
        solver.setOptionValue("primal_feasibility_tolerance", max(tolerance, 1e-10))
        solver.setOptionValue("dual_feasibility_tolerance", max(tolerance, 1e-10))
        solver.setOptionValue("ipm_optimality_tolerance", max(tolerance, 1e-12))
        if time_limit is not None:
            solver.setOptionValue("time_limit", float(time_limit))
        matrix = scipy.sparse.csr_array(self.matrix)
        matrix.sum_duplicates()
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        # Minimized: asked to maximize, the interior point method ends with duals of the wrong sign, and
        # calls what it found "unknown" (HiGHS 1.15).
        lp.sense_ = highspy.ObjSense.kMinimize
        lp.col_cost_ = -np.asarray(self.objective, np.float64)
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_, lp.row_upper_ = self.row_lower, self.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
        lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
        lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
        lp.a_matrix_.value_ = matrix.data.astype(np.float64)
        if solver.passModel(lp) == highspy.HighsStatus.kError:
            raise LinearProgramError(caller, "the program is malformed")
        solver.run()
        status = solver.getModelStatus()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            # Where right-hand sides are about as small as the tolerance, presolve calls feasible programs so.
            solver.setOptionValue("presolve", "off")
            solver.run()
            status = solver.getModelStatus()
        stuck = (highspy.HighsModelStatus.kUnknown, highspy.HighsModelStatus.kSolveError)
        if status in stuck and not vertex:
            # Programs with next to no interior: crossover and simplex finish what interior points could not.
            solver.setOptionValue("run_crossover", "on")
            solver.run()
            status = solver.getModelStatus()
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kModelEmpty):
            raise LinearProgramError(caller, solver.modelStatusToString(status))
        info = solver.getInfo()
        return Solution(
            x=np.array(solver.getSolution().col_value),
            objective=-float(info.objective_function_value),
            iterations=int(max(info.ipm_iteration_count, info.simplex_iteration_count, 0)),
        )
