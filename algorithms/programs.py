"""Linear and mixed-integer programs, solved by HiGHS. Always a maximum.

    program = ProgramBuilder()
    x = program.columns(2, cost=1.0)
    program.row([(x, 1.0), (x + 1, 2.0)], high=1.0)                     # row by row
    program.put(program.rows(low, high)[at], x + column, value)         # many at once
    program.built().solve().x

    Program(objective, matrix, row_lower, row_upper, lower, upper).solve()    # by a matrix

Linear programs are solved by simplex, which ends at a vertex, or by interior points without crossover (which
scipy's front end cannot leave out), which give a solution within tolerances that is no vertex: simplex is
very slow on wide and degenerate programs, as those of correlated equilibria are. HiGHS has two such methods.
HiPO, with the augmented system, solves the greatest of those in a quarter of IPX's time; with the normal
equations it gets stuck. It needs the package highspy-extras (`highspy[extras]`); without that, IPX is used.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # which imports `sparse` when that is used: a third of a second

from precomp_games._support.checks import Unnamed

if TYPE_CHECKING:
    import highspy

FEASIBILITY = 1e-9
"""Tolerances of violated rows and bounds, of violated duals, and of a column's distance from an integer."""

_GREATEST = 1e7
"""The most that a program's greatest utility is scaled to: floats are then as fine as FEASIBILITY."""

AT_LOWER, BASIC, AT_UPPER = 0, 1, 2
"""In a basis, by HiGHS's numbers: at its lower bound; solved for, as many as there are rows; at its upper."""

Basis = tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]
"""State of the simplex method: int8[columns] and int8[rows], each of the above."""

NO_BASIS: Basis = (np.zeros(0, np.int8), np.zeros(0, np.int8))
"""Of what was not solved by the simplex method."""

_INTERIOR_POINTS = "hipo" if importlib.util.find_spec("highspy_extras") else "ipx"
_TIME_LIMIT = "Time limit reached"
_BRANCHING_ALONE = {
    "mip_allow_restart": False,
    "mip_pscost_minreliable": 0,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
_NO_LIMIT = 2**31 - 1  # of iterations
_INTERIOR_STEPS = 500
"""Interior points that have not arrived by then go round in circles: they take some 100 iterations."""


def _highs() -> Any:
    """Return HiGHS's module, when a program is solved: what solves none does not import it."""
    import highspy

    return highspy


def unit(greatest: float = 0.0, *, one: float = 0.0) -> float:
    """Return the power of two that scales a program's utilities: HiGHS's tolerances are absolute.

    HiGHS drops coefficients below 1e-9 and is content with errors of that size, and probabilities of coming
    to a history make coefficients small. So utilities are made large, and the answer is the same whatever
    they were measured in.

    Args:
      greatest: the greatest amount of utility in the program, or how far apart its utilities lie.
      one: the amount that becomes 1, such as a price, or less where `greatest` would become too large.
    """
    tops = [limit / size for limit, size in ((_GREATEST, greatest), (1.0, one)) if size > 0.0]
    return math.ldexp(1.0, round(math.log2(min(tops)))) if tops else 1.0


class LinearProgramError(Unnamed, RuntimeError):
    """HiGHS found no optimum.

    status: HiGHS's own word for why, such as "Infeasible" or "Time limit reached".
    """

    def __init__(self, status: str, why: str = "") -> None:
        super().__init__(f"HiGHS found no optimum: {status}{why and f'; {why}'}")
        self.status, self._why = status, why

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearProgramError, (self.status, self._why), vars(self)  # to come back from another process


class Clock:
    """A time limit, from now on. seconds: None for no limit."""

    def __init__(self, seconds: float | None) -> None:
        self.start = time.perf_counter()
        self._end = None if seconds is None else self.start + seconds

    def left(self) -> float | None:
        """Return the seconds that are left; None for no limit.

        Raises:
          LinearProgramError: there are none.
        """
        remaining = self.remaining()
        if remaining == 0.0:
            raise LinearProgramError(_TIME_LIMIT)
        return remaining

    def remaining(self) -> float | None:
        """Return the seconds that are left, at least 0; None for no limit."""
        return None if self._end is None else max(self._end - time.perf_counter(), 0.0)

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.start


@dataclasses.dataclass(frozen=True, eq=False)
class ProgramSolution:
    """A solution that HiGHS found.

    Attributes:
      status: "optimal", "infeasible" or "time_limit".
      x: float64[columns]; empty where there is none. Of linear programs only an optimum counts.
      objective: Of `x`; -inf where there is none.
      bound: No solution has a greater objective.
      duals: float64[rows], of linear programs at their optimum: what the objective gains for each unit by
        which the bound that holds the row moves up, so not negative where that is the upper one. Else empty.
      iterations: Of the interior point or simplex method.
      nodes: Of the branch and bound.
      basis: Of linear programs solved by simplex, where it ended. Else empty.
    """

    status: str
    x: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.empty(0))
    objective: float = -math.inf
    bound: float = math.inf
    duals: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.empty(0))
    iterations: int = 0
    nodes: int = 0
    basis: Basis = NO_BASIS

    @property
    def found(self) -> bool:
        """Return whether there is an `x`."""
        return self.objective > -math.inf


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Maximize objective @ x subject to row_lower <= matrix @ x <= row_upper, lower <= x <= upper.

    Attributes:
      matrix: Sparse, rows x columns; the rest are float64 arrays, infinite where there is no bound.
      integers: The columns that must be integers.
      least: HiGHS leaves out what is smaller in the matrix.
    """

    objective: npt.NDArray[np.float64]
    matrix: scipy.sparse.csr_array
    row_lower: npt.NDArray[np.float64]
    row_upper: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    integers: Sequence[int] = ()
    least: float = 1e-9

    def solve(
        self,
        *,
        vertex: bool = True,
        crossover: bool = False,
        presolve: bool = True,
        time_limit: float | None = None,
        start: Mapping[int, float] | None = None,
        basis: Basis | None = None,
        absolute_gap: float = 1e-7,
        heuristics: bool = True,
        attempt: bool = False,
    ) -> ProgramSolution:
        """Solve the program.

        Args:
          vertex: by simplex; otherwise by interior points. Of linear programs only, as the next one.
          crossover: from an interior point simplex steps lead to a vertex: for programs that are so
            degenerate that the simplex method alone may stall. With `vertex` only where that has taken half
            as many steps as there are rows and columns.
          presolve: False gives a vertex of the program itself: presolve's are off by more than rounding.
          time_limit: seconds.
          start: values of some columns, all integer ones among them, to begin with; need not be feasible.
          basis: for the simplex method to begin with, as `ProgramSolution.basis`; without presolve then.
          absolute_gap: when a mixed-integer program counts as solved, in the objective's units.
          heuristics: False leaves out what HiGHS does for mixed-integer programs beside cuts and branching:
            smaller programs that look for solutions, and branches that are tried before one is taken. Where
            few branches settle the bound, they take most of the time.
          attempt: whether infeasibility and the end of the time are answers, not errors.

        Raises:
          LinearProgramError: there is no optimum; with `attempt`, if HiGHS fails.
        """
        if time_limit is not None and time_limit <= 0.0:
            if attempt:
                return ProgramSolution("time_limit")
            raise LinearProgramError(_TIME_LIMIT)
        clock, left = Clock(time_limit), time_limit
        while True:
            highs, limit = self._loaded(), left
            if limit is not None and math.isfinite(limit):
                highs.setOptionValue("time_limit", float(limit))
            if self.integers:
                highs.setOptionValue("mip_rel_gap", 0.0)
                highs.setOptionValue("mip_abs_gap", absolute_gap)
                if not heuristics:
                    for name, value in _BRANCHING_ALONE.items():
                        highs.setOptionValue(name, value)
                if start:
                    columns, values = np.array(list(start), np.int32), np.array(list(start.values()))
                    highs.setSolution(len(start), columns, values.astype(np.float64))
                highs.run()
            else:
                highs.setOptionValue("presolve", "choose" if presolve else "off")
                highs.setOptionValue("solver", "simplex" if vertex else _INTERIOR_POINTS)
                highs.setOptionValue("run_crossover", "on" if vertex or crossover else "off")
                if basis is not None:
                    highs.setBasis(_highs_basis(basis))
                if not vertex:
                    highs.setOptionValue("ipm_iteration_limit", _INTERIOR_STEPS)
                elif crossover:
                    highs.setOptionValue("simplex_iteration_limit", sum(self.matrix.shape) // 2)
                _run(highs, vertex, presolve and basis is None)
                if highs.getModelStatus() == _highs().HighsModelStatus.kIterationLimit:
                    highs.setOptionValue("simplex_iteration_limit", _NO_LIMIT)
                    highs.setOptionValue("solver", "ipx")  # HiPO's crossover takes twice as long
                    highs.clearSolver()
                    highs.run()
            solution, left = self._read(highs), clock.remaining()
            stopped = solution is not None and solution.status == "time_limit"
            # HiGHS goes by the wall clock. If that has jumped, there is time left, for another try.
            if not stopped or limit is None or (left or 0.0) <= 0.01 * limit:
                break
        if solution is None or not (attempt or solution.status == "optimal"):
            raise LinearProgramError(highs.modelStatusToString(highs.getModelStatus()))
        return solution

    def _loaded(self) -> highspy.Highs:
        module = _highs()
        highs: highspy.Highs = module.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("parallel", "off"),
            ("hipo_system", "augmented"),
            ("primal_feasibility_tolerance", FEASIBILITY),
            ("dual_feasibility_tolerance", FEASIBILITY),
            ("ipm_optimality_tolerance", FEASIBILITY),
            ("mip_feasibility_tolerance", FEASIBILITY),
            ("small_matrix_value", self.least),
        ):
            highs.setOptionValue(name, value)
        matrix = self.matrix.tocsr()
        matrix.sum_duplicates()
        lp = module.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        # Minimized: asked to maximize, the interior point method ends with duals of the wrong sign, and
        # calls what it found "unknown" (HiGHS 1.15).
        lp.sense_ = module.ObjSense.kMinimize
        lp.col_cost_ = -np.asarray(self.objective, np.float64)
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_, lp.row_upper_ = self.row_lower, self.row_upper
        lp.a_matrix_.format_ = module.MatrixFormat.kRowwise
        lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
        lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
        lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
        lp.a_matrix_.value_ = matrix.data.astype(np.float64)
        if self.integers:
            kinds = [module.HighsVarType.kContinuous] * lp.num_col_
            for column in self.integers:
                kinds[column] = module.HighsVarType.kInteger
            lp.integrality_ = kinds
        if highs.passModel(lp) == module.HighsStatus.kError:
            raise LinearProgramError("the program is malformed")
        return highs

    def _read(self, highs: highspy.Highs) -> ProgramSolution | None:
        """Return the solution; None where HiGHS failed."""
        kinds, status = _highs().HighsModelStatus, highs.getModelStatus()
        info, solution = highs.getInfo(), highs.getSolution()
        nodes = max(0, int(info.mip_node_count)) if self.integers else 0
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return ProgramSolution("infeasible", bound=-math.inf, nodes=nodes)
        if status not in (kinds.kOptimal, kinds.kModelEmpty, kinds.kTimeLimit):
            return None
        done = status != kinds.kTimeLimit
        objective = 0.0 - float(info.objective_function_value)  # 0 less it, which has no -0
        bound = 0.0 - float(info.mip_dual_bound) if self.integers else objective if done else math.inf
        has = done or bool(self.integers and solution.value_valid and math.isfinite(objective))
        basis = highs.getBasis()
        return ProgramSolution(
            status="optimal" if done else "time_limit",
            x=np.array(solution.col_value if has else []),
            objective=objective if has else -math.inf,
            bound=bound if math.isfinite(bound) else math.inf,
            duals=-np.array(solution.row_dual if has and not self.integers else []),
            iterations=int(max(info.ipm_iteration_count, info.simplex_iteration_count, 0)),
            nodes=nodes,
            basis=(_numbers(basis.col_status), _numbers(basis.row_status)) if basis.valid else NO_BASIS,
        )


def _numbers(statuses: Sequence[highspy.HighsBasisStatus]) -> npt.NDArray[np.int8]:
    return np.fromiter(map(int, statuses), np.int8, len(statuses))


def _highs_basis(basis: Basis) -> highspy.HighsBasis:
    kinds = {int(kind): kind for kind in _highs().HighsBasisStatus.__members__.values()}
    made: highspy.HighsBasis = _highs().HighsBasis()
    made.col_status, made.row_status = ([kinds[k] for k in part.tolist()] for part in basis)
    made.valid = True
    return made


def _run(highs: highspy.Highs, vertex: bool, presolve: bool) -> None:
    """Solve a linear program, and once more in another way where the first one failed."""
    kinds = _highs().HighsModelStatus
    failed = (kinds.kSolveError, kinds.kNotset)
    highs.run()
    if presolve and highs.getModelStatus() in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible, *failed):
        # Where right-hand sides are about as small as the tolerance, presolve calls feasible programs so.
        # With what it leaves of others the simplex method cannot begin, and ends without any status.
        highs.setOptionValue("presolve", "off")
        highs.run()
    if not vertex and highs.getModelStatus() in (kinds.kUnknown, kinds.kSolveError):
        # Programs with next to no interior: crossover and simplex finish what interior points could not.
        highs.setOptionValue("run_crossover", "on")
        highs.run()
    elif not presolve and highs.getModelStatus() in (kinds.kUnknown, *failed):
        # Nearly parallel rows can defeat the simplex method; with fewer of them it goes through.
        highs.clearSolver()
        highs.setOptionValue("presolve", "on")
        highs.run()
    for solver in () if vertex else ("ipx", "simplex"):
        # HiPO stops short of the optimum of some degenerate programs, and crossover from there on never ends.
        if highs.getModelStatus() in (kinds.kUnknown, kinds.kIterationLimit, *failed):
            highs.clearSolver()
            highs.setOptionValue("solver", solver)
            highs.run()


class ProgramBuilder:
    """A program under construction. Columns and rows are numbered from 0 in the order they are added."""

    def __init__(self) -> None:
        """Start without columns and rows."""
        self._cost, self._low, self._high = array("d"), array("d"), array("d")
        self._integers: list[int] = []
        self._row_low, self._row_high = array("d"), array("d")
        self._row, self._column, self._value = array("i"), array("i"), array("d")

    @property
    def size(self) -> tuple[int, int, int]:
        """Columns, rows, and how many of the columns are integers."""
        return len(self._cost), len(self._row_low), len(self._integers)

    def columns(self, count: int, low: float = 0.0, high: float = 1.0, cost: float = 0.0) -> int:
        """Add columns and return the first one's number."""
        first = len(self._cost)
        for values, value in ((self._cost, cost), (self._low, low), (self._high, high)):
            values.extend(array("d", [value]) * count)
        return first

    def integer(self, column: int) -> None:
        """Make a column an integer."""
        self._integers.append(column)

    def add_costs(self, terms: Iterable[tuple[int, float]]) -> None:
        """Add to columns' coefficients in the objective, which is maximized."""
        for column, cost in terms:
            self._cost[column] += cost

    def set_costs(self, costs: Mapping[int, float]) -> None:
        """Make these the objective; what is not named counts nothing."""
        self._cost = array("d", [0.0]) * len(self._cost)
        self.add_costs(costs.items())

    def set_bounds(self, column: int, low: float, high: float) -> None:
        """Bound a column."""
        self._low[column], self._high[column] = low, high

    def row(
        self, entries: Iterable[tuple[int, float]], low: float = -math.inf, high: float = math.inf
    ) -> int:
        """Add low <= sum of value * column <= high and return its number; columns may repeat."""
        number = len(self._row_low)
        for column, value in entries:
            self._row.append(number)
            self._column.append(column)
            self._value.append(value)
        self._row_low.append(low)
        self._row_high.append(high)
        return number

    def rows(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Add empty rows with these bounds, float64[n] each, and return their numbers."""
        self._row_low.frombytes(low.tobytes())
        self._row_high.frombytes(high.tobytes())
        return np.arange(len(self._row_low) - len(low), len(self._row_low))

    def put(self, row: np.ndarray, column: np.ndarray, value: np.ndarray) -> None:
        """Add value * column to rows; where the row or the column is -1, there is nothing to add."""
        used = (row >= 0) & (column >= 0)
        self._row.frombytes(row[used].astype(np.int32).tobytes())
        self._column.frombytes(column[used].astype(np.int32).tobytes())
        self._value.frombytes(value[used].tobytes())

    def at_most(self, column: int, terms: Iterable[tuple[int, float]]) -> int:
        """Add a row that keeps a column at or below the sum of value * column, and return its number."""
        return self.row([(column, 1.0), *((other, -value) for other, value in terms)], high=0.0)

    def built(self) -> Program:
        """Return the program as it stands."""
        columns, rows, _ = self.size
        row = np.array(self._row)
        order = np.argsort(row, kind="stable")
        start = np.searchsorted(row[order], np.arange(rows + 1))
        entries = (np.array(self._value)[order], np.array(self._column)[order], start)
        return Program(
            objective=np.array(self._cost),
            matrix=scipy.sparse.csr_array(entries, shape=(rows, columns)),
            row_lower=np.array(self._row_low),
            row_upper=np.array(self._row_high),
            lower=np.array(self._low),
            upper=np.array(self._high),
            integers=tuple(self._integers),
        )
