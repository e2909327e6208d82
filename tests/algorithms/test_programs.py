"""The wrapper of HiGHS: signs, statuses and integers, on programs that are solved by hand."""

import math

import highspy
import numpy as np
import pytest

from precomp_games.algorithms.programs import (
    AT_LOWER,
    AT_UPPER,
    BASIC,
    LinearProgramError,
    Program,
    ProgramBuilder,
    ProgramSolution,
)


def hand_made(capacity=4.0):
    """Maximize 3 a + 2 b with a + b <= capacity, a + 3 b <= 6 and b >= 1/2."""
    builder = ProgramBuilder()
    a, b = (builder.columns(1, high=math.inf, cost=cost) for cost in (3.0, 2.0))
    builder.row([(a, 1.0), (b, 0.5), (b, 0.5)], high=capacity)  # columns may repeat
    builder.row([(a, 1.0), (b, 3.0)], high=6.0)
    builder.row([(b, 1.0)], low=0.5)
    return builder


def test_numbers_of_a_basis_are_those_of_highs():
    """They stand there as numbers: HiGHS is imported when a program is solved."""
    kinds = highspy.HighsBasisStatus
    assert tuple(map(int, (kinds.kLower, kinds.kBasic, kinds.kUpper))) == (AT_LOWER, BASIC, AT_UPPER)


@pytest.mark.parametrize("options", [{}, {"presolve": False}, {"vertex": False}])
def test_an_optimum_and_its_duals(options):
    found = hand_made().built().solve(**options)
    assert found.status == "optimal"
    assert found.x == pytest.approx([3.5, 0.5], abs=1e-6)
    assert found.objective == found.bound == pytest.approx(11.5)
    # One unit more of the capacity is worth 3; half a unit more of b costs half a unit of 1.
    assert found.duals == pytest.approx([3.0, 0.0, -1.0], abs=1e-6)
    more = hand_made(4.5).built().solve(**options)
    assert more.objective - found.objective == pytest.approx(0.5 * found.duals[0])
    free = ProgramBuilder()
    free.columns(2, cost=1.0)
    assert free.built().solve(**options).x == pytest.approx([1.0, 1.0])  # without rows


def test_integers():
    builder = hand_made()
    builder.integer(0)
    found = builder.built().solve(start={0: 1.0})
    assert found.x == pytest.approx([3.0, 1.0]) and not len(found.duals)
    assert found.objective == pytest.approx(11.0) and found.bound == pytest.approx(11.0)
    assert builder.size == (2, 3, 1)


def test_no_optimum_is_an_error_or_an_answer():
    infeasible = hand_made(0.25).built()
    for options in ({}, {"presolve": False}, {"vertex": False}):
        with pytest.raises(LinearProgramError, match="nfeasible"):
            infeasible.solve(**options)
        found = infeasible.solve(attempt=True, **options)
        assert found.status == "infeasible" and not found.found and not len(found.x)
        assert found.objective == found.bound == -math.inf
    late = hand_made().built().solve(time_limit=0.0, attempt=True)
    assert (late.status, late.found, late.bound) == ("time_limit", False, math.inf)
    with pytest.raises(LinearProgramError, match="Time limit"):
        hand_made().built().solve(time_limit=0.0)
    unbounded = ProgramBuilder()
    unbounded.columns(1, high=math.inf, cost=1.0)
    with pytest.raises(LinearProgramError, match="nbounded"):
        unbounded.built().solve(attempt=True)
    malformed = hand_made()
    malformed.set_bounds(0, math.nan, 1.0)
    with pytest.raises(LinearProgramError, match="malformed"):
        malformed.built().solve()


def test_a_program_that_presolve_calls_infeasible():
    def solve(missing):
        """x + y >= 1 and x + y <= 1 - missing."""
        builder = ProgramBuilder()
        x = builder.columns(2, high=math.inf, cost=1.0)
        builder.row([(x, 1.0), (x + 1, 1.0)], low=1.0)
        builder.row([(x, 1.0), (x + 1, 1.0)], high=1.0 - missing)
        return builder.built().solve(vertex=False).x

    assert solve(1.1e-9).sum() == pytest.approx(1.0, abs=1e-8)
    with pytest.raises(LinearProgramError, match="nfeasible"):
        solve(1e-4)


def test_a_clock_that_jumps_does_not_end_a_program(monkeypatch):
    """HiGHS goes by the wall clock; what it calls the end of the time is tried again while there is some."""
    read, limits = Program._read, []

    def jumped(self, highs):
        limits.append(highs.getOptionValue("time_limit")[1])
        return ProgramSolution("time_limit") if len(limits) < 3 else read(self, highs)

    monkeypatch.setattr(Program, "_read", jumped)
    assert hand_made().built().solve(time_limit=100.0).status == "optimal"
    assert len(limits) == 3 and limits[0] == 100.0 and 99.0 < limits[2] < limits[1] < 100.0
    limits.clear()
    late = hand_made().built().solve(time_limit=1e-9, attempt=True)
    assert late.status == "time_limit" and len(limits) == 1


@pytest.fixture
def solvers(monkeypatch):
    """Return a function that makes runs of HiGHS fail with a status, given their number and the solver."""
    run, status_of, runs = highspy.Highs.run, highspy.Highs.getModelStatus, []

    def noted(highs):
        runs.append(tuple(highs.getOptionValue(name)[1] for name in ("solver", "presolve")))
        return run(highs)

    def failing(status, fails):
        def status_or_failure(highs):
            return getattr(highspy.HighsModelStatus, status) if fails(runs) else status_of(highs)

        monkeypatch.setattr(highspy.Highs, "run", noted)
        monkeypatch.setattr(highspy.Highs, "getModelStatus", status_or_failure)
        return runs

    return failing


@pytest.mark.parametrize("status", ["kNotset", "kSolveError"])
def test_what_presolve_leaves_may_defeat_the_simplex_method(status, solvers):
    """HiGHS then ends with an error, and without presolve it finds the optimum (HiGHS 1.15)."""
    runs = solvers(status, lambda runs: len(runs) == 1)
    assert hand_made().built().solve().objective == pytest.approx(11.5)
    assert runs == [("simplex", "choose"), ("simplex", "off")]


@pytest.mark.parametrize("status", ["kUnknown", "kSolveError", "kIterationLimit"])
@pytest.mark.parametrize("crossover", [False, True])
def test_where_interior_points_fail_another_method_goes_on(status, crossover, solvers):
    runs = solvers(status, lambda runs: runs[-1][0] != "simplex")
    found = hand_made().built().solve(vertex=False, crossover=crossover)
    assert found.objective == pytest.approx(11.5)
    assert [solver for solver, _ in runs[-2:]] == ["ipx", "simplex"]


def test_a_basis_to_begin_with():
    program = hand_made().built()
    first = program.solve()
    assert [part.tolist() for part in first.basis] == [[BASIC, BASIC], [AT_UPPER, BASIC, AT_LOWER]]
    again = program.solve(basis=first.basis)
    assert again.iterations == 0 and again.x == pytest.approx(first.x, abs=1e-12)
    slack = (np.full(2, AT_LOWER, np.int8), np.full(3, BASIC, np.int8))
    cold = program.solve(basis=slack)
    assert cold.iterations > 0 and cold.x == pytest.approx(first.x, abs=1e-12)
    assert not len(hand_made().built().solve(vertex=False).basis[0])
