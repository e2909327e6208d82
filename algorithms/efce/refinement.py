"""Refining a subgame by a linear program, so that no trigger of the whole game becomes more exploitable.

Variables: the plan's entries in the subgame (the trunk's are the blueprint's), v(I) of its information sets,
and beta(I; s+) of its sets after each trigger. The plan stays in Xi, and

    (A)  beta(I+ a'; s+) <= v(s+) + max(0, blueprint's delta(s+))   for triggers in the subgame, a' not a+
    (B)  rows of `bounds` from below,
    (C)  and after each trigger of the trunk from above.

Maximizing the welfare of the subgame's leaves makes the refinement *fully safe*: the blueprint is a solution,
so the welfare is at least the blueprint's.

The EFCE of greatest welfare is the same program with all the game as one subgame: no bounds, and no delta
allowed.

Source: `efce_resolving`, "Safe Subgame Resolving Using LPs" and appendix C.

Cost: a row for each pair and for each (trigger, own sequence after it). Some 100,000 pairs take HiGHS half a
minute.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Hashable
from typing import Literal

import numpy as np
import scipy.sparse

from .bounds import SubgameBounds
from .correlation_plans import CorrelationPlan, flow_constraints
from .linear_programs import LinearProgram
from .scaled_extensions import ScaledExtensions, fill_plan, shares_of
from .sequence_game import SequenceGame, spread
from .sequence_pairs import RelevantPairs
from .triggers import Deviations, leaf_lanes

__all__ = ["Refinement", "RefinementProblem", "refine_lp"]

Objective = Literal["welfare", "none"]
_NOTHING = 1e-9
"""The solver's tolerance. What it leaves below is noise, which a deeper program may not be feasible with."""


@dataclasses.dataclass(frozen=True, eq=False)
class RefinementProblem:
    """A subgame to refine.

    name: the subgame's.
    blueprint: on the trunk and the subgame.
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


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A refined subgame.

    problem: what was refined. plan: on the trunk, where it is the blueprint, and the subgame.
    welfare, blueprint_welfare: of the subgame's leaves. seconds: wall-clock.
    iterations: the solver's.
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
) -> Refinement:
    """Refines a subgame.

    Args:
      problem: from `resolving.Resolving.problem`.
      objective: "welfare" (fully safe), or "none": any safe refinement.
      time_limit: seconds for HiGHS.
      vertex: by simplex; slow but for small subgames.

    Raises:
      ValueError: another objective, or a time limit that is not positive.
      LinearProgramError: no solution was found: infeasible (not with bounds of the blueprint itself), or out
      of time.
    """
    if objective not in ("welfare", "none"):
        raise ValueError(f'refine_lp(): expected objective "welfare" or "none", got {objective!r}')
    if time_limit is not None and not time_limit > 0.0:
        raise ValueError(f"refine_lp(): expected a positive time_limit or None, got {time_limit!r}")
    start = time.perf_counter()
    program, inside = build_program(problem, objective)
    solution = program.solve("refine_lp()", time_limit=time_limit, vertex=vertex)
    xi = problem.blueprint.xi.copy()
    entries = solution.x[: len(inside)]
    xi[inside] = np.where(entries > _NOTHING, entries, 0.0)
    plan = CorrelationPlan(problem.blueprint.pairs, _written_again(problem.blueprint.pairs, xi))
    return Refinement(
        problem=problem,
        plan=plan,
        welfare=plan.welfare(0),
        blueprint_welfare=problem.blueprint.welfare(0),
        iterations=solution.iterations,
        seconds=time.perf_counter() - start,
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
    """Rows of a matrix in the making."""

    def __init__(self) -> None:
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
        self.row.append(np.asarray(row, np.int64))
        self.column.append(np.asarray(column, np.int64))
        self.value.append(np.broadcast_to(np.asarray(value, np.float64), np.shape(row)))


def build_program(problem: RefinementProblem, objective: Objective) -> tuple[LinearProgram, np.ndarray]:
    """The program, and the pairs that its first columns stand for."""
    plan = problem.blueprint
    pairs, game = plan.pairs, plan.game
    inside = np.flatnonzero(pairs.pair_label >= 0)
    column = np.full(len(pairs), -1, np.int64)
    column[inside] = np.arange(len(inside))
    rows = _Rows()
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
        np.add.at(gain, column[leaves[counted]], game.leaf_utility.sum(axis=0)[counted])
    lower = np.full(columns, -np.inf)
    lower[: len(inside)] = 0.0
    matrix = scipy.sparse.csr_array(
        (np.concatenate(rows.value), (np.concatenate(rows.row), np.concatenate(rows.column))),
        shape=(rows.count, columns),
    )
    program = LinearProgram(
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
