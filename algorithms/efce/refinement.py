"""Refining a subgame by a linear program, so that no trigger of the whole game becomes more exploitable.

Variables: the plan's entries in the subgame (the trunk's are the blueprint's), v(I) of its information sets,
and beta(I; s+) of its sets after each trigger. The plan stays in Xi, and

    (A)  beta(I+ a'; s+) <= v(s+) + max(0, blueprint's delta(s+))   for triggers in the subgame, a' not a+
    (B)  rows of `bounds` from below,
    (C)  and after each trigger of the trunk from above.

Maximizing the welfare of the subgame's leaves makes the refinement *fully safe*: the blueprint is a solution,
so the welfare is at least the blueprint's.

The program is solved in units of its own: each player's utilities within [-1, 1], plans as if play were in
the subgame. So payoffs' unit and zero make no difference to what a solver's tolerances mean.

The EFCE of greatest welfare is the same program with all the game as one subgame: no bounds, and no delta
allowed.

Source: `efce_resolving`, "Safe Subgame Resolving Using LPs" and appendix C.

Cost: a row for each pair and for each (trigger, own sequence after it). Some 100,000 pairs take HiGHS half a
minute. Memory: 0.4 kB a pair to build a program, 2.3 to 2.9 kB with solving it, in programs of 20,000 to
110,000 pairs; 3 kB are counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import scipy.sparse

from precomp_games.checks import check_boolean, check_choice, check_instance, check_number

from ..programs import Clock, Program
from .bounds import PlayerBounds, SubgameBounds, player_rows
from .correlation_plans import CorrelationPlan, flow_constraints
from .scaled_extensions import ScaledExtensions, fill_plan, shares_of
from .sequence_game import SequenceGame, spread
from .sequence_pairs import RelevantPairs
from .triggers import Deviations, leaf_lanes

__all__ = [
    "MAX_MEMORY_GB",
    "Refinement",
    "RefinementProblem",
    "Units",
    "check_limits",
    "check_problem",
    "refine_lp",
    "refined_by_program",
]

MAX_MEMORY_GB = 8.0
"""What a program may take by default, in GB of estimated memory: some 2.7 million pairs."""
_BYTES_A_PAIR = 3000

Objective = Literal["welfare", "none"]
_NOTHING = 1e-9
"""The solver's tolerance. What it leaves below is noise, which a deeper program may not be feasible with."""


@dataclasses.dataclass(frozen=True, eq=False)
class RefinementProblem:
    """A subgame to refine.

    Attributes:
      name: The subgame's.
      blueprint: On the trunk and the subgame.
      bounds: (B) and (C); None where the subgame is all of the game.
      allowed: float64[S] each, what delta may be at the subgame's triggers; of no meaning elsewhere.
    """

    name: Hashable
    blueprint: CorrelationPlan
    bounds: SubgameBounds | None = dataclasses.field(repr=False)
    allowed: tuple[np.ndarray, np.ndarray] = dataclasses.field(repr=False)

    @property
    def game(self) -> SequenceGame:
        """The trunk and the subgame."""
        return self.blueprint.game

    @property
    def mass(self) -> float:
        """The probability that play comes to the subgame's leaves, which no refinement changes."""
        return float(self.blueprint.xi[self.blueprint.pairs.leaves()[self.game.leaf_label >= 0]].sum())

    def normalized(self) -> tuple[RefinementProblem, Units]:
        """The same problem, with the same solutions, where the subgame's utilities lie within [-1, 1].

        Utilities are scaled for each player, and centered where bounds allow it: "paper" and "separate" ones
        change with a constant that is added to all utilities, and then it stays.
        """
        game, bounds = self.game, self.bounds
        inside = game.leaf_utility[:, game.leaf_label >= 0]
        low, high = inside.min(axis=1), inside.max(axis=1)
        center = 0.5 * low + 0.5 * high if bounds is None or bounds.kind == "aggregate" else np.zeros(2)
        scale = np.maximum(high - center, center - low)
        scale[scale == 0.0] = 1.0
        utility = (game.leaf_utility - center[:, None]) / scale[:, None]
        pairs = dataclasses.replace(
            self.blueprint.pairs, game=dataclasses.replace(game, leaf_utility=utility)
        )
        plan = CorrelationPlan(pairs, self.blueprint.xi)
        if bounds is not None:
            sides = []
            for i, old in enumerate(bounds.players):
                # What there is to lose to a bound is a difference, and so needs no center.
                rows = player_rows(plan, Deviations.of(pairs, i), i, bounds.kind)
                lower = rows.value - (old.rows.value - old.lower) / scale[i]
                upper = rows.cap_value + (old.upper - old.rows.cap_value) / scale[i]
                sides.append(PlayerBounds(rows, lower, upper))
            bounds = SubgameBounds(bounds.kind, (sides[0], sides[1]))
        allowed = (self.allowed[0] / scale[0], self.allowed[1] / scale[1])
        problem = RefinementProblem(self.name, plan, bounds, allowed)
        return problem, Units((float(center[0]), float(center[1])), (float(scale[0]), float(scale[1])))


@dataclasses.dataclass(frozen=True)
class Units:
    """What a normalized problem is measured in.

    Attributes:
      center: For each player, the utility that is 0 there.
      scale: How much utility is 1 there.
    """

    center: tuple[float, float]
    scale: tuple[float, float]

    @property
    def welfare(self) -> float:
        """What welfare is measured in: the larger scale."""
        return max(self.scale)

    def normalized_welfare(self, utility: np.ndarray) -> np.ndarray:
        """The sum of both players' normalized utilities, float64[2, L], each with its weight: float64[L]."""
        return np.array(self.scale) / self.welfare @ utility


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
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


def refine_lp(
    problem: RefinementProblem,
    *,
    objective: Objective = "welfare",
    time_limit: float | None = None,
    vertex: bool = False,
    max_memory_gb: float = MAX_MEMORY_GB,
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
    check_problem(problem, "refine_lp()")
    check_choice(objective, ("welfare", "none"), "objective", "refine_lp()")
    check_limits(time_limit, vertex, max_memory_gb, "refine_lp()")
    return refined_by_program(problem, objective, Clock("refine_lp()", time_limit), vertex, max_memory_gb)


def check_problem(value: Any, caller: str) -> RefinementProblem:
    """A subgame to refine.

    Raises:
      ValueError: it is none; a `Resolving` is the commonest case.
    """
    return check_instance(
        value, RefinementProblem, "problem", caller, "; Resolving.problem(name) makes one of each subgame"
    )


def check_limits(time_limit: Any, vertex: Any, max_memory_gb: Any, caller: str) -> None:
    """What all linear programs take.

    Raises:
      ValueError: a limit is not positive, or `vertex` neither True nor False.
    """
    if time_limit is not None:
        check_number(time_limit, "time_limit", caller, above=0.0)
    check_boolean(vertex, "vertex", caller)
    check_number(max_memory_gb, "max_memory_gb", caller, above=0.0, finite=False)


def refined_by_program(
    problem: RefinementProblem, objective: Objective, clock: Clock, vertex: bool, max_memory_gb: float
) -> Refinement:
    """As `refine_lp`, for what has been checked; the clock names the public function."""
    pairs = problem.blueprint.pairs
    count = int(np.diff(pairs.start)[pairs.label >= 0].sum())
    need = count * _BYTES_A_PAIR / 1e9
    if need > max_memory_gb:
        raise ValueError(
            f"{clock.caller}: expected a linear program of at most {max_memory_gb:g} GB, got one of "
            f"{count:,} relevant pairs, which takes some {need:.1f} GB; take a smaller game or smaller "
            "subgames, refine by refine_regret(), or go on all the same with a larger max_memory_gb"
        )
    clock.left()
    normalized, units = problem.normalized()
    program, inside = build_program(normalized, objective, units, clock)
    # As if play were in the subgame: it may be a rare one, and all of its entries small.
    mass = problem.mass or 1.0
    program = dataclasses.replace(
        program, row_lower=program.row_lower / mass, row_upper=program.row_upper / mass
    )
    solution = program.solve(clock.caller, time_limit=clock.left(), vertex=vertex)
    xi = problem.blueprint.xi.copy()
    entries = solution.x[: len(inside)]
    xi[inside] = np.where(entries > _NOTHING, mass * entries, 0.0)
    plan = CorrelationPlan(problem.blueprint.pairs, _written_again(problem.blueprint.pairs, xi))
    return Refinement(
        problem=problem,
        plan=plan,
        welfare=plan.welfare(0),
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=solution.iterations,
        seconds=clock.elapsed(),
    )


def _written_again(pairs: RelevantPairs, xi: np.ndarray) -> np.ndarray:
    """The plan from its own shares: in Xi up to rounding, where a solver leaves an error of its tolerance.

    A plan that is refined again is held fixed where the next trunk is, and such errors would contradict each
    other.
    """
    steps = ScaledExtensions.of(pairs)
    shares = np.zeros(len(xi))
    shares_of(steps, xi, shares)
    fill_plan(steps, shares, xi)
    return xi


class _Rows:
    """Rows of a matrix in the making, while the clock has time left."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.row: list[np.ndarray] = []
        self.column: list[np.ndarray] = []
        self.value: list[np.ndarray] = []
        self.lower: list[np.ndarray] = []
        self.upper: list[np.ndarray] = []
        self.count = 0

    def block(self, lower: np.ndarray, upper: np.ndarray) -> int:
        """Makes room for rows; the number of the first."""
        first = self.count
        self.lower.append(np.asarray(lower, np.float64))
        self.upper.append(np.asarray(upper, np.float64))
        self.count += len(lower)
        return first

    def put(self, row: np.ndarray, column: np.ndarray, value: np.ndarray | float) -> None:
        self.clock.left()
        self.row.append(np.asarray(row, np.int64))
        self.column.append(np.asarray(column, np.int64))
        self.value.append(np.broadcast_to(np.asarray(value, np.float64), np.shape(row)))


def build_program(
    problem: RefinementProblem, objective: Objective, units: Units, clock: Clock
) -> tuple[Program, np.ndarray]:
    """The program of a normalized problem, and the pairs that its first columns stand for."""
    plan = problem.blueprint
    pairs, game = plan.pairs, plan.game
    inside = np.flatnonzero(pairs.pair_label >= 0)
    column = np.full(len(pairs), -1, np.int64)
    column[inside] = np.arange(len(inside))
    rows = _Rows(clock)
    columns = len(inside)
    for player in (0, 1):
        flow, block = flow_constraints(pairs, player)
        flow = flow[pairs.label[block] >= 0].tocoo()
        fixed = column[flow.col] < 0
        known = -np.bincount(flow.row[fixed], flow.data[fixed] * plan.xi[flow.col[fixed]], flow.shape[0])
        first = rows.block(known, known)
        rows.put(first + flow.row[~fixed], column[flow.col[~fixed]], flow.data[~fixed])
    for player in (0, 1):
        columns = _incentives(problem, player, column, columns, rows)
    leaves = pairs.leaves()
    counted = game.leaf_label >= 0
    gain = np.zeros(columns)
    if objective == "welfare":
        np.add.at(gain, column[leaves[counted]], units.normalized_welfare(game.leaf_utility)[counted])
    lower = np.full(columns, -np.inf)
    lower[: len(inside)] = 0.0
    matrix = scipy.sparse.csr_array(
        (np.concatenate(rows.value), (np.concatenate(rows.row), np.concatenate(rows.column))),
        shape=(rows.count, columns),
    )
    program = Program(
        objective=gain,
        matrix=matrix,
        row_lower=np.concatenate(rows.lower),
        row_upper=np.concatenate(rows.upper),
        lower=lower,
        upper=np.full(columns, np.inf),
    )
    return program, inside


def _incentives(
    problem: RefinementProblem, player: int, column: np.ndarray, columns: int, rows: _Rows
) -> int:
    """One player's (A), (B) and (C), from column number `columns` on; the number of columns after them."""
    plan = problem.blueprint
    pairs, game = plan.pairs, plan.game
    form = game.players[player]
    in_subgame = form.label >= 0
    leaves = pairs.leaves()
    utility = game.leaf_utility[player]
    leaf_sequence = game.leaf_sequence[player]

    # v(I), one row each: v(I) - leaves right after I - v(J) of the information sets J right after I = 0.
    here = np.flatnonzero(in_subgame)
    v_column = np.full(form.num_infosets, -1, np.int64)
    v_column[here] = columns + np.arange(len(here))
    columns += len(here)
    row_of = np.full(form.num_infosets, -1, np.int64)
    row_of[here] = rows.block(np.zeros(len(here)), np.zeros(len(here))) + np.arange(len(here))
    rows.put(row_of[here], v_column[here], 1.0)
    at = form.infoset[leaf_sequence]
    used = np.flatnonzero(in_subgame[at])
    rows.put(row_of[at[used]], column[leaves[used]], -utility[used])
    above = form.infoset[form.parent[here]]
    below = here[in_subgame[above]]
    rows.put(row_of[form.infoset[form.parent[below]]], v_column[below], -1.0)

    # beta(I; s+) has a column for each set below its trigger; below a trigger itself v(s+) stands in its
    # place.
    deviations = Deviations.of(pairs, player, inside=True)
    g, k = spread(deviations.num_triggers)
    root = deviations.through[g] < 0
    set_used = ~root & (k != deviations.through[g])
    set_column = np.full(len(g), -1, np.int64)
    set_column[set_used] = columns + np.arange(int(set_used.sum()))
    columns += int(set_used.sum())

    # A row for each lane: leaves + betas right after it - beta (or v) of its set <= what is allowed.
    lg, inner = spread(np.diff(deviations.lane))
    width = deviations.num_actions[lg]
    lk, la = inner // width, inner % width
    lroot = deviations.through[lg] < 0
    lane_used = np.where(lroot, lk != la, lk != deviations.through[lg])
    trigger = deviations.first[deviations.top[lg]] + lk
    allowed = np.where(lroot, problem.allowed[player][trigger], 0.0)
    lane_row = np.full(len(lg), -1, np.int64)
    count = int(lane_used.sum())
    # After a trigger of the trunk, a leaf may have both s+ and the opponent's sequence in the trunk: it is
    # settled.
    settled = leaf_lanes(deviations, np.where(column < 0, plan.xi, 0.0))
    most = (allowed - settled)[lane_used]
    lane_row[lane_used] = rows.block(np.full(count, -np.inf), most) + np.arange(count)
    inner_lane = np.flatnonzero(lane_used & ~lroot)
    rows.put(lane_row[inner_lane], set_column[deviations.set_[lg[inner_lane]] + lk[inner_lane]], -1.0)
    # At the root: -v(s+) = -(leaves right after s+) - v of the information sets right after it.
    root_lane = np.flatnonzero(lane_used & lroot)
    by_parent = np.argsort(form.parent[here], kind="stable")
    _put_children(rows, lane_row[root_lane], trigger[root_lane], form.parent[here][by_parent],
                  v_column[here][by_parent], -1.0)  # fmt: skip
    order = deviations.leaf
    _put_children(rows, lane_row[root_lane], trigger[root_lane], leaf_sequence[order],
                  column[leaves[order]], -utility[order])  # fmt: skip
    # Leaves after a deviation, one term at a time.
    _put_terms(rows, deviations, column, lane_row)
    # beta of what comes next.
    child = np.flatnonzero(set_used & (deviations.parent[g] >= 0))
    up = deviations.parent[g[child]]
    lane = deviations.lane[up] + k[child] * deviations.num_actions[up] + deviations.parent_action[g[child]]
    rows.put(lane_row[lane], set_column[child], 1.0)

    if problem.bounds is not None:
        bounds = problem.bounds.players[player]
        part = bounds.rows
        head = part.member_infoset >= 0
        kept = np.isfinite(bounds.lower)
        low_row = np.full(len(kept), -1, np.int64)
        low_row[kept] = rows.block(bounds.lower[kept], np.full(int(kept.sum()), np.inf)) + np.arange(
            kept.sum()
        )
        used = head & kept[part.member_row]
        rows.put(low_row[part.member_row[used]], v_column[part.member_infoset[used]], 1.0)
        kept_cap = np.isfinite(bounds.upper)
        cap_row = np.full(len(kept_cap), -1, np.int64)
        cap_row[kept_cap] = rows.block(
            np.full(int(kept_cap.sum()), -np.inf), bounds.upper[kept_cap]
        ) + np.arange(kept_cap.sum())
        # Members of each cap: those of its row.
        order_m = np.argsort(part.member_row, kind="stable")
        caps = np.flatnonzero(kept_cap)
        which, member = _joined(part.cap_row[caps], part.member_row[order_m])
        member = order_m[member]
        c = caps[which]
        heads = np.flatnonzero(part.member_infoset[member] >= 0)
        group = deviations.group(part.cap_top[c[heads]], part.member_infoset[member[heads]])
        rows.put(cap_row[c[heads]], set_column[deviations.set_[group] + part.cap_action[c[heads]]], 1.0)
        # Bundles: the subgame's leaves at the row's sequence, from below at s itself, from above at s+.
        bundle_row = np.full(form.num_sequences, -1, np.int64)
        bundle_row[part.sequence[part.member_row[~head]]] = part.member_row[~head]
        mine = np.flatnonzero((game.leaf_label >= 0) & (bundle_row[leaf_sequence] >= 0))
        row = bundle_row[leaf_sequence[mine]]
        on = kept[row]
        rows.put(low_row[row[on]], column[leaves[mine[on]]], utility[mine[on]])
        bundles = np.flatnonzero(part.member_infoset[member] < 0)
        cb = c[bundles]
        sort = np.argsort(row, kind="stable")
        which, leaf = _joined(part.cap_row[cb], row[sort])
        leaf = mine[sort][leaf]
        cb = cb[which]
        trigger_sequence = form.first[part.cap_top[cb]] + part.cap_action[cb]
        tau = game.leaf_sequence[1 - player][leaf]
        pair = pairs.index(trigger_sequence, tau) if player == 0 else pairs.index(tau, trigger_sequence)
        rows.put(cap_row[cb], column[pair], utility[leaf])
    return columns


def _joined(keys: np.ndarray, sorted_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All (i, j) with keys[i] == sorted_keys[j]."""
    low = np.searchsorted(sorted_keys, keys, "left")
    which, place = spread(np.searchsorted(sorted_keys, keys, "right") - low)
    return which, low[which] + place


def _put_children(
    rows: _Rows,
    row: np.ndarray,
    sequence: np.ndarray,
    sorted_sequence: np.ndarray,
    column: np.ndarray,
    value: np.ndarray | float,
) -> None:
    """In each row, what stands at its sequence."""
    which, entry = _joined(sequence, sorted_sequence)
    rows.put(row[which], column[entry], value if isinstance(value, float) else value[entry])


def _put_terms(rows: _Rows, deviations: Deviations, column: np.ndarray, lane_row: np.ndarray) -> None:
    """The leaves of all lanes."""
    g, leaf = spread(np.diff(deviations.term))
    s0 = deviations.first[deviations.infoset[g]]
    leaf += deviations.leaf_start[s0]
    a = np.searchsorted(deviations.leaf_start, leaf, "right") - 1 - s0
    term, k = spread(deviations.num_triggers[g])
    g, leaf, a = g[term], leaf[term], a[term]
    row = lane_row[deviations.lane[g] + k * deviations.num_actions[g] + a]
    at = column[deviations.pair[term] + np.where(row >= 0, k * deviations.stride[leaf], 0)]
    used = (row >= 0) & (at >= 0)
    rows.put(row[used], at[used], deviations.utility[leaf[used]])
