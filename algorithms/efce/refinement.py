"""Refining a subgame by a linear program, so that no trigger of the whole game becomes more exploitable.

Variables: the plan's entries in the subgame (the trunk's are the blueprint's), v(I) of its information sets,
and beta(I; s+) of its sets after each trigger. The plan stays in Xi, and keeps (A), (B) and (C) of
`constraints`.
Maximizing the welfare of the subgame's leaves makes the refinement *fully safe*: the blueprint is a solution,
so the welfare is at least the blueprint's.

The program is solved in units of its own: each player's utilities within [-1, 1], plans as if play were in
the subgame. So payoffs' unit and zero make no difference to what a solver's tolerances mean.

Correlated equilibria (`equilibria`) are what the same program is about with all the game as one subgame: the
plan is in Xi, and no trigger has a positive delta.

Source: `efce_resolving`, equations 1 to 4, "Safe Subgame Resolving Using LPs" and appendix C; von Stengel and
Forges.

Cost: a row for each pair and for each (trigger, own sequence after it). Some 100,000 pairs take HiGHS half a
minute. Memory: 0.4 kB a pair to build a program, 2.3 to 2.9 kB with solving it, in programs of 20,000 to
110,000 pairs; 3 kB are counted.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.config import memory_limit
from precomp_games._support.memory import size_text
from precomp_games._support.results import Result

from ..programs import Clock, Program, ProgramBuilder, ProgramSolution
from .constraints import PlayerConstraints, RefinementProblem
from .correlation_plans import CorrelationPlan, flow_constraints
from .scaled_extensions import ScaledExtensions, write_again
from .sequence_game import spread
from .triggers import Notion, leaf_lanes

_BYTES_A_PAIR = 3000

_NOTHING = 1e-9
"""The solver's tolerance. What it leaves below is noise, which a deeper program may not be feasible with."""


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement(Result):
    """A refined subgame.

    Attributes:
      problem: The problem that was solved.
      plan: On the trunk, where it is the blueprint, and the subgame.
      welfare, blueprint_welfare: Of the subgame's leaves.
      seconds: Wall-clock.
      iterations: The solver's.
    """

    problem: RefinementProblem
    plan: CorrelationPlan
    welfare: float
    blueprint_welfare: float
    iterations: int
    seconds: float


@public
def refine_lp(
    problem: RefinementProblem,
    *,
    time_limit: checks.PositiveFloat | None = None,
    vertex: bool = False,
) -> Refinement:
    """Refine a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      time_limit: seconds for building the program and solving it.
      vertex: go on to a vertex, exact but for rounding; takes up to three times as long. With "paper" or
        "separate" bounds and utilities far from 0, next to no plan is safe, and interior points are not
        exact.

    Raises:
      ValueError: `problem` is none, a limit that is not positive, or a program that is estimated to take more
        memory than the process may have (`config`).
      LinearProgramError: no solution was found: infeasible (not with bounds of the blueprint itself), or out
      of time.
    """
    clock = Clock(time_limit)
    built = PlanProgram(problem, clock)
    game = built.normalized.game
    leaf = np.flatnonzero(game.leaf_label >= 0)
    gain = built.units.normalized_welfare(game.leaf_utility)[leaf]
    at = built.column[built.normalized.blueprint.pairs.leaves()[leaf]]
    built.program.add_costs(zip(at.tolist(), gain.tolist(), strict=True))
    plan, solution = built.solve(built.program.built(), clock, vertex)
    return Refinement(
        problem=problem,
        plan=plan,
        welfare=plan.welfare(0),
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=solution.iterations,
        seconds=clock.elapsed(),
    )


class PlanProgram:
    """A problem's program, to which an objective and more rows can be added, and the plans that solve it.

    Attributes:
      problem: The refinement problem; `normalized` is the same in the program's units, `units`.
      steps: That write its plans.
      program: Under construction.
      inside: The pairs that its first columns stand for. column: int64[pairs], -1 in the trunk.
      sides: Both players' incentives.
    """

    def __init__(self, problem: RefinementProblem, clock: Clock, notion: Notion = "efce") -> None:
        """Build the program; refuse one that takes more memory than there may be.

        Args:
          problem: the problem to build the program of.
          clock: of the time limit.
          notion: the notion of a trigger; where all of the game is one subgame.
        """
        pairs = problem.blueprint.pairs
        count = pairs.num_in_subgames
        need, limit = count * _BYTES_A_PAIR, memory_limit()
        if need > limit:
            raise ArgumentError(
                f"expected a linear program of at most max_memory={size_text(limit)}, got one of {count:,} "
                f"relevant pairs, which takes some {size_text(need)}; take a smaller game or smaller "
                "subgames, refine by refine_regret(), or raise max_memory"
            )
        clock.left()
        self.steps = ScaledExtensions.of(pairs)  # which may refuse the subgame
        self.problem = problem
        self.normalized, self.units = problem.normalize()
        plan = self.normalized.blueprint
        pairs = plan.pairs
        self.inside = np.flatnonzero(pairs.pair_label >= 0)
        self.program = program = ProgramBuilder()
        self.column = column = np.full(len(pairs), -1)
        column[self.inside] = program.columns(len(self.inside), high=np.inf) + np.arange(len(self.inside))
        for player in (0, 1):
            clock.left()
            flow, block = flow_constraints(pairs, player)
            flow = flow[pairs.label[block] >= 0].tocoo()
            fixed = column[flow.col] < 0
            known = -np.bincount(flow.row[fixed], flow.data[fixed] * plan.xi[flow.col[fixed]], flow.shape[0])
            program.put(program.rows(known, known)[flow.row], column[flow.col], flow.data)
        self.sides = [Incentives(self.normalized, player, column, program, notion) for player in (0, 1)]
        for side in self.sides:
            side.put(clock)

    def solve(self, program: Program, clock: Clock, vertex: bool) -> tuple[CorrelationPlan, ProgramSolution]:
        """Return the plan of what was built, and the solution in the program's units.

        Raises:
          LinearProgramError: there is none.
        """
        # As if play were in the subgame: it may be a rare one, and all of its entries small.
        mass = self.problem.mass or 1.0
        program = dataclasses.replace(
            program, row_lower=program.row_lower / mass, row_upper=program.row_upper / mass
        )
        solution = program.solve(time_limit=clock.left(), vertex=False, crossover=vertex)
        xi = self.problem.blueprint.xi.copy()
        entries = solution.x[: len(self.inside)]
        xi[self.inside] = np.where(entries > _NOTHING, mass * entries, 0.0)
        # A solver leaves errors of its tolerance. A plan that is refined again is held fixed where the next
        # trunk is, and such errors would contradict each other.
        write_again(self.steps, xi)
        return CorrelationPlan(self.problem.blueprint.pairs, xi), solution


class Incentives:
    """Constraints (A), (B) and (C) of one player in a linear program.

    `column` has that of each pair of the plan, -1 for those of the trunk; `v_column` that of v(I) of each
    information set, -1 in the trunk; `set_column` that of beta(I; s+) of each set below its trigger. Below a
    trigger itself v(s+) stands in its place: -1. `lane_row` has the row of each lane, -1 for unused ones.
    """

    def __init__(
        self,
        problem: RefinementProblem,
        player: int,
        column: np.ndarray,
        program: ProgramBuilder,
        notion: Notion,
    ) -> None:
        self.form, self.side = problem.game.players[player], PlayerConstraints.of(problem, player, notion)
        self.problem, self.player, self.column, self.program = problem, player, column, program
        deviations = self.side.deviations
        g, k = spread(deviations.num_triggers)
        self.v_column = self._numbered(self.form.label >= 0)
        below = deviations.top[g] != deviations.infoset[g]
        self.set_column = self._numbered(below & (k != deviations.through[g]))
        self.lane_row = np.full(deviations.num_lanes, -1)

    def _numbered(self, which: np.ndarray) -> np.ndarray:
        """Return a free column for each that is marked, -1 for the others."""
        count = int(which.sum())
        numbers = np.full(len(which), -1)
        numbers[which] = self.program.columns(count, -np.inf, np.inf) + np.arange(count)
        return numbers

    def put(self, clock: Clock) -> None:
        """Add all rows."""
        for part in (self._following, self._deviating, self._bounds):
            clock.left()
            part()

    def _following(self) -> None:
        """Add a row for each v(I): v(I) - leaves right after I - v of information sets right after I = 0."""
        form, side, program = self.form, self.side, self.program
        here = self.v_column >= 0
        row = np.full(form.num_infosets, -1)
        row[here] = program.rows(np.zeros(here.sum()), np.zeros(here.sum()))
        program.put(row, self.v_column, np.ones(len(row)))
        program.put(row[form.infoset[side.leaf_sequence]], self.column[side.leaf_pair], -side.leaf_utility)
        program.put(row[form.infoset[form.parent]], self.v_column, -np.ones(len(row)))

    def _deviating(self) -> None:
        """Add the rows of beta(I; s+) of all sets, and (A)."""
        side, deviations, program = self.side, self.side.deviations, self.program
        # A row for each lane: leaves + betas right after it - beta (or v) of its set <= what is allowed.
        group, k, a = deviations.lanes()
        number, skip = deviations.set_[group] + k, deviations.through[group]
        is_root = deviations.top[group] == deviations.infoset[group]
        trigger = np.where(is_root, side.set_arm[number], -1)
        used = k != np.where(skip >= 0, skip, a)
        # After a trigger of the trunk, a leaf may have both s+ and the opponent's sequence in the trunk: it
        # is settled. Where nobody has moved, following comes to the same leaf.
        settled = leaf_lanes(deviations, np.where(self.column < 0, self.problem.blueprint.xi, 0.0))
        settled[deviations.infoset[group] == 0] = 0.0
        most = (np.append(side.allowed, 0.0)[trigger] - settled)[used]
        self.lane_row[used] = program.rows(np.full(len(most), -np.inf), most)
        row = self.lane_row
        program.put(row, self.set_column[number], -np.ones(len(row)))
        # At the root: -v(s+) = -(leaves right after s+) - v of the information sets right after it.
        lane = np.flatnonzero(used & is_root)
        for sequence, entry, value in (
            (self.form.parent, self.v_column, np.ones(len(self.v_column))),
            (side.leaf_sequence, self.column[side.leaf_pair], side.leaf_utility),
        ):
            order = np.argsort(side.sequence_arm[sequence], kind="stable")
            which, place = _joined(trigger[lane], side.sequence_arm[sequence][order])
            program.put(row[lane[which]], entry[order[place]], -value[order[place]])
        # Leaves after a deviation, one term at a time.
        g, leaf = spread(np.diff(deviations.term))
        first = deviations.first[deviations.infoset[g]]
        leaf += deviations.leaf_start[first]
        a = np.searchsorted(deviations.leaf_start, leaf, "right") - 1 - first
        term, k = spread(deviations.num_triggers[g])
        g, leaf, a = g[term], leaf[term], a[term]
        term_row = row[deviations.lane_of(g, k, a)]
        pair = deviations.pair[term] + np.where(term_row >= 0, k * deviations.stride[leaf], 0)
        program.put(term_row, self.column[pair], deviations.utility[leaf])
        # beta of what comes next.
        g, k = spread(deviations.num_triggers)
        child = np.flatnonzero((self.set_column >= 0) & (deviations.parent[g] >= 0))
        lane = deviations.lane_of(deviations.parent[g[child]], k[child], deviations.parent_action[g[child]])
        program.put(row[lane], self.set_column[child], np.ones(len(child)))

    def _bounds(self) -> None:
        """Add the rows of (B) and (C), where there is something to keep."""
        if self.problem.bounds is None:
            return
        side, bounds, put = self.side, self.problem.bounds.players[self.player], self.program.put
        low = np.append(bounds.lower, np.full(len(bounds.upper), -np.inf))
        high = np.append(np.full(len(bounds.lower), np.inf), bounds.upper)
        kept = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        row = np.full(len(side.bound) + 1, -1)  # by arm, the last one for none
        row[len(side.allowed) + kept] = self.program.rows(low[kept], high[kept])
        put(row[side.head_arm], self.v_column, np.ones(len(self.v_column)))
        put(row[side.sequence_arm[side.leaf_sequence]], self.column[side.leaf_pair], side.leaf_utility)
        put(row[side.set_arm], self.set_column, np.ones(len(self.set_column)))
        put(row[side.cap_arm], self.column[side.cap_pair], side.cap_utility)


def _joined(keys: np.ndarray, sorted_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all (i, j) with keys[i] == sorted_keys[j]."""
    low = np.searchsorted(sorted_keys, keys, "left")
    which, place = spread(np.searchsorted(sorted_keys, keys, "right") - low)
    return which, low[which] + place
