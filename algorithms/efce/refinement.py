"""Refining a subgame by a linear program, so that no trigger of the whole game becomes more exploitable.

Variables: the plan's entries in the subgame (the trunk's are the blueprint's), v(I) of its information sets,
and beta(I; s+) of its sets after each trigger. The plan stays in Xi, and keeps (A), (B) and (C) of
`constraints`.
Maximizing the welfare of the subgame's leaves makes the refinement *fully safe*: the blueprint is a solution,
so the welfare is at least the blueprint's.

The program is solved in units of its own: each player's utilities within [-1, 1], plans as if play were in
the subgame. So payoffs' unit and zero make no difference to what a solver's tolerances mean.

The extensive-form correlated equilibrium of greatest social welfare (`efce_lp`) is the same program with all
the game as one subgame: the plan is in Xi, and no trigger has a positive delta.

Source: `efce_resolving`, equations 1 to 4, "Safe Subgame Resolving Using LPs" and appendix C; von Stengel and
Forges.

Cost: a row for each pair and for each (trigger, own sequence after it). Some 100,000 pairs take HiGHS half a
minute. Memory: 0.4 kB a pair to build a program, 2.3 to 2.9 kB with solving it, in programs of 20,000 to
110,000 pairs; 3 kB are counted.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import numpy as np
import pyspiel

from precomp_games._support.arguments import INFINITE, Gt, PositiveFloat, public
from precomp_games._support.checks import ArgumentError
from precomp_games._support.results import Result

from ..programs import Clock, Program, ProgramBuilder
from .blueprints import uniform_blueprint
from .constraints import PlayerConstraints, RefinementProblem, Units
from .correlation_plans import Blueprint, CorrelationPlan, flow_constraints
from .scaled_extensions import ScaledExtensions, write_again
from .sequence_game import SequenceGame, spread
from .subgames import one_subgame
from .triggers import exploitability, leaf_lanes

MAX_MEMORY_GB = 8.0
"""What a program may take by default, in GB of estimated memory: some 2.7 million pairs."""
MemoryLimit = Annotated[float, Gt(0.0), INFINITE]
"""In GB; math.inf for none."""
_BYTES_A_PAIR = 3000

Objective = Literal["welfare", "none"]
_NOTHING = 1e-9
"""The solver's tolerance. What it leaves below is noise, which a deeper program may not be feasible with."""


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement(Result):
    """A refined subgame.

    Attributes:
      problem: What was refined.
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
    objective: Objective = "welfare",
    time_limit: PositiveFloat | None = None,
    vertex: bool = False,
    max_memory_gb: MemoryLimit = MAX_MEMORY_GB,
) -> Refinement:
    """Refines a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      objective: "welfare" (fully safe), or "none": any safe refinement.
      time_limit: seconds for building the program and solving it.
      vertex: by simplex; slow but for small subgames. With "paper" or "separate" bounds and utilities far
        from 0, next to no plan is safe, and interior points are not exact.
      max_memory_gb: refuse programs that are estimated to take more, before they are built; math.inf for
        none.

    Raises:
      ValueError: `problem` is none, another objective, a limit that is not positive, or too large a program.
      LinearProgramError: no solution was found: infeasible (not with bounds of the blueprint itself), or out
      of time.
    """
    return _refine(problem, objective, Clock(time_limit), vertex, max_memory_gb)


@dataclasses.dataclass(frozen=True, eq=False)
class Efce(Result):
    """An equilibrium.

    Attributes:
      plan: The correlation plan.
      welfare: Of both players.
      utilities: Of each.
      exploitability: The greatest delta of a trigger, measured apart from the program; at most 0 but for
        rounding.
      seconds: Wall-clock of setting up and solving.
    """

    plan: CorrelationPlan
    welfare: float
    utilities: tuple[float, float]
    exploitability: float
    seconds: float


@public
def efce_lp(
    game: pyspiel.Game | SequenceGame,
    *,
    allowance: float = 0.0,
    time_limit: PositiveFloat | None = None,
    vertex: bool = False,
    max_memory_gb: MemoryLimit = MAX_MEMORY_GB,
) -> Efce:
    """Computes an EFCE of greatest welfare.

    Args:
      game: two players, perfect recall, no chance that makes `triangles`; utilities of any sum.
      allowance: the greatest delta that a trigger may have; negative ones ask players to lose by deviating,
        which not all games can.
      time_limit: seconds for walking the game, building the program and solving it.
      vertex: by simplex: a vertex, exact but for rounding; for small games.
      max_memory_gb: as for `refine_lp`.

    Raises:
      ValueError: the game is not as above, or a part of one, or too large for the memory; the allowance is
        not finite, or a limit not positive.
      LinearProgramError: infeasible (negative allowances only), or out of time.
    """
    clock = Clock(time_limit)
    if not isinstance(game, SequenceGame):
        game = SequenceGame.of(game)
        clock.left()
    problem = whole_game_problem(game, uniform_blueprint(), allowance)
    refined = _refine(problem, "welfare", clock, vertex, max_memory_gb)
    u = refined.plan.utilities()
    return Efce(refined.plan, u[0] + u[1], u, exploitability(refined.plan).worst, refined.seconds)


def whole_game_problem(game: SequenceGame, blueprint: Blueprint, allowance: float = 0.0) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    game.check_whole()
    plan = CorrelationPlan.of(one_subgame(game), blueprint)
    one, two = (np.full(form.num_sequences, allowance) for form in plan.game.players)
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(one, two))


def _refine(
    problem: RefinementProblem, objective: Objective, clock: Clock, vertex: bool, max_memory_gb: float
) -> Refinement:
    """`refine_lp`, on a clock that has been started."""
    pairs = problem.blueprint.pairs
    count = pairs.num_in_subgames
    need = count * _BYTES_A_PAIR / 1e9
    if need > max_memory_gb:
        raise ArgumentError(
            f"expected a linear program of at most {max_memory_gb:g} GB, got one of "
            f"{count:,} relevant pairs, which takes some {need:.1f} GB; take a smaller game or smaller "
            "subgames, refine by refine_regret(), or go on all the same with a larger max_memory_gb"
        )
    clock.left()
    steps = ScaledExtensions.of(pairs)  # which may refuse the subgame
    normalized, units = problem.normalize()
    program, inside = _program(normalized, objective, units, clock)
    # As if play were in the subgame: it may be a rare one, and all of its entries small.
    mass = problem.mass or 1.0
    program = dataclasses.replace(
        program, row_lower=program.row_lower / mass, row_upper=program.row_upper / mass
    )
    solution = program.solve(time_limit=clock.left(), vertex=vertex)
    xi = problem.blueprint.xi.copy()
    entries = solution.x[: len(inside)]
    xi[inside] = np.where(entries > _NOTHING, mass * entries, 0.0)
    # A solver leaves errors of its tolerance. A plan that is refined again is held fixed where the next trunk
    # is, and such errors would contradict each other.
    write_again(steps, xi)
    plan = CorrelationPlan(pairs, xi)
    return Refinement(
        problem=problem,
        plan=plan,
        welfare=plan.welfare(0),
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=solution.iterations,
        seconds=clock.elapsed(),
    )


def _program(
    problem: RefinementProblem, objective: Objective, units: Units, clock: Clock
) -> tuple[Program, np.ndarray]:
    """The program of a normalized problem, and the pairs that its first columns stand for."""
    plan = problem.blueprint
    pairs, game = plan.pairs, plan.game
    inside = np.flatnonzero(pairs.pair_label >= 0)
    program = ProgramBuilder()
    column = np.full(len(pairs), -1)
    column[inside] = program.columns(len(inside), high=np.inf) + np.arange(len(inside))
    for player in (0, 1):
        clock.left()
        flow, block = flow_constraints(pairs, player)
        flow = flow[pairs.label[block] >= 0].tocoo()
        fixed = column[flow.col] < 0
        known = -np.bincount(flow.row[fixed], flow.data[fixed] * plan.xi[flow.col[fixed]], flow.shape[0])
        program.put(program.rows(known, known)[flow.row], column[flow.col], flow.data)
    for player in (0, 1):
        _Incentives(problem, player, column, program).put(clock)
    if objective == "welfare":
        leaf = np.flatnonzero(game.leaf_label >= 0)
        gain = units.normalized_welfare(game.leaf_utility)[leaf]
        program.add_costs(zip(column[pairs.leaves()[leaf]].tolist(), gain.tolist(), strict=True))
    return program.built(), inside


class _Incentives:
    """One player's (A), (B) and (C) in a program.

    `column` has that of each pair of the plan, -1 for those of the trunk; `v_column` that of v(I) of each
    information set, -1 in the trunk; `set_column` that of beta(I; s+) of each set below its trigger. Below a
    trigger itself v(s+) stands in its place: -1.
    """

    def __init__(
        self, problem: RefinementProblem, player: int, column: np.ndarray, program: ProgramBuilder
    ) -> None:
        self.problem, self.player, self.form = problem, player, problem.game.players[player]
        self.side = PlayerConstraints.of(problem, player)
        self.column, self.program = column, program
        deviations = self.side.deviations
        g, k = spread(deviations.num_triggers)
        self.v_column = self._numbered(self.form.label >= 0)
        self.set_column = self._numbered((deviations.through[g] >= 0) & (k != deviations.through[g]))

    def _numbered(self, which: np.ndarray) -> np.ndarray:
        """A free column for each that is marked, -1 for the others."""
        count = int(which.sum())
        numbers = np.full(len(which), -1)
        numbers[which] = self.program.columns(count, -np.inf, np.inf) + np.arange(count)
        return numbers

    def put(self, clock: Clock) -> None:
        """Adds all rows."""
        for part in (self._following, self._deviating, self._bounds):
            clock.left()
            part()

    def _following(self) -> None:
        """A row for each v(I): v(I) - leaves right after I - v of the information sets right after I = 0."""
        form, side, program = self.form, self.side, self.program
        here = self.v_column >= 0
        row = np.full(form.num_infosets, -1)
        row[here] = program.rows(np.zeros(here.sum()), np.zeros(here.sum()))
        program.put(row, self.v_column, np.ones(len(row)))
        program.put(row[form.infoset[side.leaf_sequence]], self.column[side.leaf_pair], -side.leaf_utility)
        program.put(row[form.infoset[form.parent]], self.v_column, -np.ones(len(row)))

    def _deviating(self) -> None:
        """beta(I; s+) of all sets, and (A)."""
        side, deviations, program = self.side, self.side.deviations, self.program
        # A row for each lane: leaves + betas right after it - beta (or v) of its set <= what is allowed.
        lane_group, inner = spread(np.diff(deviations.lane))
        lane_k, lane_a = np.divmod(inner, deviations.num_actions[lane_group])
        is_root = deviations.through[lane_group] < 0
        used = np.where(is_root, lane_k != lane_a, lane_k != deviations.through[lane_group])
        trigger = deviations.first[deviations.top[lane_group]] + lane_k
        allowed = np.where(is_root, self.problem.allowed[self.player][trigger], 0.0)
        # After a trigger of the trunk, a leaf may have both s+ and the opponent's sequence in the trunk: it
        # is settled.
        settled = leaf_lanes(deviations, np.where(self.column < 0, self.problem.blueprint.xi, 0.0))
        most = (allowed - settled)[used]
        row = np.full(len(lane_group), -1)
        row[used] = program.rows(np.full(len(most), -np.inf), most)
        program.put(row, self.set_column[deviations.set_[lane_group] + lane_k], -np.ones(len(row)))
        # At the root: -v(s+) = -(leaves right after s+) - v of the information sets right after it.
        lane = np.flatnonzero(used & is_root)
        for sequence, entry, value in (
            (self.form.parent, self.v_column, np.ones(len(self.v_column))),
            (side.leaf_sequence, self.column[side.leaf_pair], side.leaf_utility),
        ):
            order = np.argsort(sequence, kind="stable")
            which, place = _joined(trigger[lane], sequence[order])
            program.put(row[lane[which]], entry[order[place]], -value[order[place]])
        # Leaves after a deviation, one term at a time.
        self._put_terms(row)
        # beta of what comes next.
        g, k = spread(deviations.num_triggers)
        child = np.flatnonzero((self.set_column >= 0) & (deviations.parent[g] >= 0))
        lane = deviations.lane_of(deviations.parent[g[child]], k[child], deviations.parent_action[g[child]])
        program.put(row[lane], self.set_column[child], np.ones(len(child)))

    def _put_terms(self, lane_row: np.ndarray) -> None:
        """The leaves of all lanes."""
        deviations = self.side.deviations
        g, leaf = spread(np.diff(deviations.term))
        s0 = deviations.first[deviations.infoset[g]]
        leaf += deviations.leaf_start[s0]
        a = np.searchsorted(deviations.leaf_start, leaf, "right") - 1 - s0
        term, k = spread(deviations.num_triggers[g])
        g, leaf, a = g[term], leaf[term], a[term]
        row = lane_row[deviations.lane_of(g, k, a)]
        pair = deviations.pair[term] + np.where(row >= 0, k * deviations.stride[leaf], 0)
        self.program.put(row, self.column[pair], deviations.utility[leaf])

    def _bounds(self) -> None:
        """(B) and (C), where there is something to keep."""
        side = self.side
        low_row, cap_row = self._kept_rows(side.row_lower, True), self._kept_rows(side.cap_upper, False)
        bundle_row = low_row[side.bundle_row[side.leaf_sequence]]
        put = self.program.put
        put(low_row[side.head_row], self.v_column, np.ones(len(self.v_column)))
        put(bundle_row, self.column[side.leaf_pair], side.leaf_utility)
        put(cap_row[side.set_cap], self.set_column, np.ones(len(self.set_column)))
        put(cap_row[side.bundle_cap], self.column[side.bundle_pair], side.bundle_utility)

    def _kept_rows(self, bound: np.ndarray, below: bool) -> np.ndarray:
        """A row for each finite bound, from below or above: their numbers, -1 for others and at the end."""
        kept = np.flatnonzero(np.isfinite(bound))
        infinite = np.full(len(kept), np.inf)
        numbers = np.full(len(bound) + 1, -1)
        numbers[kept] = self.program.rows(*((bound[kept], infinite) if below else (-infinite, bound[kept])))
        return numbers


def _joined(keys: np.ndarray, sorted_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All (i, j) with keys[i] == sorted_keys[j]."""
    low = np.searchsorted(sorted_keys, keys, "left")
    which, place = spread(np.searchsorted(sorted_keys, keys, "right") - low)
    return which, low[which] + place
