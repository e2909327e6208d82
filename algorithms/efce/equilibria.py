"""The correlated equilibrium that is best by an objective, with a certificate from both sides.

The program is that of `refinement` with all of the game as one subgame: the plan is in Xi, and no trigger of
the notion asked for has a positive delta (`triggers`). Both players' utilities are columns of it, so that
every objective here is linear in them:

    "welfare"        u_0 + u_1
    0 or 1           u_0, or u_1
    (w_0, w_1)       w_0 u_0 + w_1 u_1
    "smaller"        the greatest t with t <= u_0 and t <= u_1

and `floors` bound them from below. What is found is checked twice: the plan's deltas by the passes of
`triggers`, and its objective by a bound that no equilibrium exceeds (`certificate`).

Source: von Stengel and Forges 2008; Farina, Bianchi and Sandholm 2020, for the coarse notions.

Cost: as `refine_lp`, and one pass over leaves for the bound. EFCEs have a row for each (trigger, own sequence
after it), coarse notions for fewer.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
import pyspiel

from precomp_games._support.arguments import Check, PositiveFloat, public
from precomp_games._support.checks import ArgumentError, check_numbers, check_player, shown
from precomp_games._support.results import Result

from ..programs import Clock, ProgramSolution
from .blueprints import uniform_blueprint
from .certificate import Multipliers, TriggerWeights, greatest
from .constraints import RefinementProblem
from .correlation_plans import Blueprint, CorrelationPlan
from .refinement import MAX_MEMORY_GB, MemoryLimit, PlanProgram
from .sequence_game import SequenceGame, spread
from .subgames import one_subgame
from .triggers import Notion, exploitability


def _check_objective(value: Any, name: str) -> Any:
    """An `Objective`: a word, or float64[2]."""
    if isinstance(value, str) and value in ("welfare", "smaller"):
        return value
    try:
        if isinstance(value, int | np.integer):
            return np.eye(2)[check_player(value, name)]
        return check_numbers(value, 2, name)
    except ArgumentError:
        raise ArgumentError(
            f'expected {name} to be "welfare", "smaller", a player, 0 or 1, or a pair of weights, '
            f"got {shown(value)}"
        ) from None


Objective = Annotated[
    Literal["welfare", "smaller"] | int | tuple[float, float] | np.ndarray, Check(_check_objective)
]
"""What is maximized: the sum of both utilities, the smaller of them, one player's, or a weighted sum."""


def _check_floors(value: Any, name: str) -> Any:
    """None, or float64[2]; -infinity where there is no floor."""
    if value is None:
        return None
    floors = check_numbers(value, 2, name, finite=False)
    if np.inf in floors:
        raise ArgumentError(f"expected {name} to be two numbers, -infinity for none, got {shown(value)}")
    return floors


Floors = Annotated[tuple[float, float] | np.ndarray | None, Check(_check_floors)]
"""What each player must have at least, in utility; -math.inf for no floor."""


@dataclasses.dataclass(frozen=True, eq=False)
class Equilibrium(Result):
    """A correlated equilibrium.

    Attributes:
      notion: "efce", "efcce" or "nfcce".
      plan: The correlation plan.
      welfare: Of both players.
      utilities: Of each.
      value: The objective's.
      bound: No equilibrium of the notion that keeps the floors has a greater value of the objective, but for
        rounding; computed from the program's multipliers apart from the program.
      exploitability: The greatest delta of a trigger of the notion, measured apart from the program; at most
        0 but for rounding.
      seconds: Wall-clock of setting up and solving.
    """

    notion: Notion
    plan: CorrelationPlan
    welfare: float
    utilities: tuple[float, float]
    value: float
    bound: float
    exploitability: float
    seconds: float

    @property
    def gap(self) -> float:
        """How far the value may be from the greatest; negative by as much as the plan is exploitable."""
        return self.bound - self.value


@public
def efce_lp(
    game: pyspiel.Game | SequenceGame,
    *,
    objective: Objective = "welfare",
    notion: Notion = "efce",
    floors: Floors = None,
    allowance: float = 0.0,
    time_limit: PositiveFloat | None = None,
    vertex: bool = False,
    max_memory_gb: MemoryLimit = MAX_MEMORY_GB,
) -> Equilibrium:
    """Computes a best correlated equilibrium.

    Args:
      game: two players, perfect recall, no chance that makes `triangles`; utilities of any sum.
      objective: what to maximize: "welfare", "smaller" (of both utilities), a player, 0 or 1, or a pair of
        weights.
      notion: "efce", extensive-form correlated equilibria; "efcce", coarse ones; "nfcce", normal-form coarse
        ones; see `exploitability`.
      floors: what each player must have at least; none by default.
      allowance: the greatest delta that a trigger may have; negative ones ask players to lose by deviating,
        which not all games can.
      time_limit: seconds for walking the game, building the program and solving it.
      vertex: go on to a vertex, exact but for rounding: certified to 1e-9 and better, in up to three times as
        long.
      max_memory_gb: as for `refine_lp`.

    Raises:
      ValueError: the game is not as above, or a part of one, or too large for the memory; no such objective
        or notion, floors that are no pair of numbers, an allowance that is not finite, or a limit that is not
        positive.
      LinearProgramError: infeasible (with floors or negative allowances only), or out of time.
    """
    clock = Clock(time_limit)
    program = EquilibriumProgram(game, objective, notion, floors, allowance, clock, max_memory_gb)
    return program.solve(vertex)


def whole_game_problem(game: SequenceGame, blueprint: Blueprint, allowance: float = 0.0) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    game.check_whole()
    plan = CorrelationPlan.of(one_subgame(game), blueprint)
    one, two = (np.full(form.num_sequences, allowance) for form in plan.game.players)
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(one, two))


class EquilibriumProgram:
    """The program of a game's equilibria, for one objective after another.

    Attributes:
      game: Held whole.
      notion, allowance: As for `efce_lp`.
      units: Each player's center and scale of utility, with which it lies within [-1, 1].
    """

    def __init__(
        self,
        game: pyspiel.Game | SequenceGame,
        objective: Any,
        notion: Notion,
        floors: Any,
        allowance: float,
        clock: Clock,
        max_memory_gb: float,
    ) -> None:
        """As `efce_lp`; `objective` and `floors` as they were checked."""
        if not isinstance(game, SequenceGame):
            game = SequenceGame.of(game)
            clock.left()
        self.notion, self.allowance, self._clock = notion, allowance, clock
        self._parts = parts = PlanProgram(
            whole_game_problem(game, uniform_blueprint(), allowance), clock, max_memory_gb, notion
        )
        self.game, self.units = parts.problem.game, parts.units
        center, scale = parts.units
        plan = parts.normalized.blueprint
        leaf = parts.column[plan.pairs.leaves()]
        settled = np.where(leaf < 0, plan.xi[plan.pairs.leaves()], 0.0)  # nobody has moved
        program = parts.program
        self._utility = program.columns(2, -np.inf, np.inf)
        for player in (0, 1):
            utility = plan.game.leaf_utility[player]
            known = -float(utility @ settled)
            row = program.row([(self._utility + player, -1.0)], known, known)
            program.put(np.full(len(leaf), row), leaf, utility)
        # u_i = center_i + scale_i * column
        self._floors = np.full(2, -np.inf) if floors is None else floors
        self._floor_row = [
            program.row([(self._utility + i, 1.0)], (floor - center[i]) / scale[i]) if floor > -np.inf else -1
            for i, floor in enumerate(self._floors)
        ]
        self._weights = np.ones(2) if isinstance(objective, str) else objective
        self._least_row: list[int] = []
        self._least = -1
        if isinstance(objective, str) and objective == "smaller":
            # Measured from where the smaller utility can be at most, in units of the larger scale.
            zero, unit = (center + scale).min(), parts.units.welfare
            self._least = program.columns(1, -np.inf, np.inf)
            for i in (0, 1):
                terms = [(self._least, 1.0), (self._utility + i, -scale[i] / unit)]
                self._least_row.append(program.row(terms, high=(center[i] - zero) / unit))
        self._program = program.built()

    def solve(self, vertex: bool, weights: np.ndarray | None = None) -> Equilibrium:
        """The best equilibrium; with `weights`, float64[2], by their weighted sum of utilities instead.

        Raises:
          LinearProgramError: there is none, or no time left.
        """
        scale = self.units.scale
        smaller = self._least >= 0
        costs = np.zeros(len(self._program.objective))
        if smaller:
            unit = self.units.welfare
            costs[self._least] = 1.0
        else:
            weights = self._weights if weights is None else weights
            unit = float(np.abs(weights * scale).max()) or 1.0
            costs[self._utility : self._utility + 2] = weights * scale / unit
        program = dataclasses.replace(self._program, objective=costs)
        plan, solution = self._parts.solve(program, self._clock, vertex)
        multipliers = self._multipliers(solution, unit)
        if weights is not None:
            multipliers = multipliers._replace(weights=weights)
        u = plan.utilities()
        value = min(u) if smaller else float(multipliers.weights @ u)
        return Equilibrium(
            notion=self.notion,
            plan=plan,
            welfare=u[0] + u[1],
            utilities=u,
            value=value,
            bound=greatest(plan.pairs, self.notion, multipliers, self.allowance, self._floors),
            exploitability=exploitability(plan, self.notion).worst,
            seconds=self._clock.elapsed(),
        )

    def _multipliers(self, solution: ProgramSolution, unit: float) -> Multipliers:
        """A solution's duals by trigger and sequence, where the objective's unit is `unit` of utility."""
        scale, duals = self.units.scale, solution.duals
        triggers = []
        for side, size in zip(self._parts.sides, scale.tolist(), strict=True):
            deviations = side.side.deviations
            g, inner = spread(np.diff(deviations.lane))
            k, a = np.divmod(inner, deviations.num_actions[g])
            used = np.flatnonzero(side.lane_row >= 0)
            g, k, a = g[used], k[used], a[used]
            triggers.append(
                TriggerWeights(
                    trigger=deviations.trigger[g] + k,
                    sequence=deviations.first[deviations.infoset[g]] + a,
                    weight=duals[side.lane_row[used]] * (unit / size),
                )
            )
        weights = self._weights
        if self._least_row:  # those of a mean
            weights = np.maximum(duals[self._least_row], 0.0)
            weights /= weights.sum()
        floors = [
            -duals[row] * (unit / scale[i]) if row >= 0 else 0.0 for i, row in enumerate(self._floor_row)
        ]
        return Multipliers(weights, np.array(floors), (triggers[0], triggers[1]))
