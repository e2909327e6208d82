"""The correlated equilibrium that is best by an objective, with a certificate from both sides.

The program is that of `refinement` with all of the game as one subgame: the plan is in Xi, and no trigger of
the notion asked for has a positive delta (`triggers`). Both players' utilities are columns of it, so that
every objective here is linear in them:

    "welfare"        u_0 + u_1
    0 or 1           u_0, or u_1
    (w_0, w_1)       w_0 u_0 + w_1 u_1
    "smaller"        the greatest t with t <= u_0 and t <= u_1

and `floors` bound them from below. What is found is checked twice: the plan's deltas by the passes of
`triggers`, and its objective by a bound that no equilibrium exceeds.

**The bound** is made of multipliers and one pass over the game. Let w be weights of both players' utilities.
For a trigger s+ let a deviation be given, and a multiplier m(s+) >= 0; for a player's floor f another one, n
>= 0. An equilibrium xi has dev(s+; xi) <= v(s+; xi), and u_i(xi) >= f_i. So what it is worth is at most

    max over xi in Xi of   sum over i of (w_i + n_i) u_i(xi) - n_i f_i
                           - sum over s+ of m(s+) (dev(s+; xi) - v(s+; xi)),

whatever the multipliers and the deviations are; with those of a program's optimum it is the optimum. All of
it is linear in xi: what entries are worth to a mediator who is charged for deviations (`constraints`). A
linear function is maximized over Xi along the scaled extensions, from the last step to the first: a simplex
step takes its best entry, a sum step hands on.

Multipliers come as one number for each lane: m(s+) times the probability that the deviation plays so.
Whatever comes is made that: negative ones become 0, at I+ they are what they are, and below they are shares
of what leads there. Of the program this takes nothing else.

Source: von Stengel and Forges 2008; Farina, Bianchi and Sandholm 2020, for the coarse notions; weak duality.

Cost: as `refine_lp`, and one pass of `add_gradient` for the bound. EFCEs have a row for each (trigger, own
sequence after it), coarse notions for fewer.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result

from ..programs import Clock, LinearProgramError
from .constraints import DeviatorState, RefinementProblem, add_gradient
from .correlation_plans import Blueprint, CorrelationPlan, uniform_blueprint
from .refinement import Incentives, PlanProgram
from .scaled_extensions import ScaledExtensions
from .sequence_game import SequenceGame
from .subgames import one_subgame
from .triggers import Notion, exploitability


def _check_objective(value: Any, name: str) -> Any:
    """Return an `Objective`: a word, or float64[2]."""
    if isinstance(value, str) and value in ("welfare", "smaller"):
        return value
    try:
        if isinstance(value, int | np.integer):
            return np.eye(2)[checks.check_player(value, name)]
        return checks.check_numbers(value, 2, name)
    except ArgumentError:
        raise ArgumentError(
            f'expected {name} to be "welfare", "smaller", a player, 0 or 1, or a pair of weights, '
            f"got {shown(value)}"
        ) from None


Objective = Annotated[
    Literal["welfare", "smaller"] | int | tuple[float, float] | np.ndarray, checks.Check(_check_objective)
]
"""The objective: the sum of both utilities, the smaller of them, one player's, or a weighted sum."""


def _check_floors(value: Any, name: str) -> Any:
    """Return float64[2]; -infinity where there is no floor."""
    given = [None, None] if value is None else value
    if isinstance(given, list | tuple):
        given = [-np.inf if floor is None else floor for floor in given]
    floors = checks.check_numbers(given, 2, name, finite=False)
    if np.inf in floors:
        raise ArgumentError(f"expected {name} to be two numbers, None for no floor, got {shown(value)}")
    return floors


Floors = Annotated[Sequence[float | None] | np.ndarray | None, checks.Check(_check_floors)]
"""The least utility that each player must have; None or -math.inf for no floor."""


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
        """Bound on the value's distance from the greatest; negative by as much as the plan is exploitable."""
        return self.bound - self.value


@public
def efce_lp(
    game: SequenceGame | pyspiel.Game | str | pathlib.PurePath,
    *,
    objective: Objective = "welfare",
    notion: Notion = "efce",
    floors: Floors = None,
    time_limit: checks.PositiveFloat | None = None,
    vertex: bool = False,
) -> Equilibrium:
    """Compute a best correlated equilibrium.

    Args:
      game: two players, perfect recall, no chance that makes triangles; utilities of any sum. By its name or
        its file, as for `solve`, itself, or walked already.
      objective: the quantity to maximize: "welfare", "smaller" (of both utilities), a player, 0 or 1, or a
        pair of weights.
      notion: "efce", extensive-form correlated equilibria; "efcce", coarse ones; "nfcce", normal-form coarse
        ones; see `exploitability`.
      floors: the least utility of each player; none by default.
      time_limit: seconds for walking the game, building the program and solving it.
      vertex: go on to a vertex, exact but for rounding: certified to 1e-9 and better, in up to three times as
        long.

    Raises:
      ValueError: the game is not as above, or a part of one, or too large for the memory; no such objective
        or notion, floors that are no pair of numbers, or a limit that is not positive.
      LinearProgramError: no equilibrium keeps the floors, or out of time.
    """
    clock = Clock(time_limit)
    if not isinstance(game, SequenceGame):
        game = SequenceGame.of(game)
        clock.left()
    parts = PlanProgram(whole_game_problem(game, uniform_blueprint()), clock, notion)
    center, scale = parts.units
    plan, program = parts.normalized.blueprint, parts.program
    leaf = parts.column[plan.pairs.leaves()]
    settled = np.where(leaf < 0, plan.xi[plan.pairs.leaves()], 0.0)  # nobody has moved
    utility = program.columns(2, -np.inf, np.inf)  # u_i = center_i + scale_i * column
    for player in (0, 1):
        worth = plan.game.leaf_utility[player]
        known = -float(worth @ settled)
        row = program.row([(utility + player, -1.0)], known, known)
        program.put(np.full(len(leaf), row), leaf, worth)
    least = np.asarray(_check_floors(floors, "floors"))  # its default is not checked
    floor_row = [
        program.row([(utility + i, 1.0)], (floor - center[i]) / scale[i]) if floor > -np.inf else -1
        for i, floor in enumerate(least)
    ]
    least_row = []
    if smaller := isinstance(objective, str) and objective == "smaller":
        # Measured from where the smaller utility can be at most, in units of the larger scale.
        zero, unit = (center + scale).min(), parts.units.welfare
        smallest = program.columns(1, -np.inf, np.inf)
        program.set_costs({smallest: 1.0})
        for i in (0, 1):
            terms = [(smallest, 1.0), (utility + i, -scale[i] / unit)]
            least_row.append(program.row(terms, high=(center[i] - zero) / unit))
    else:
        weights = np.ones(2) if isinstance(objective, str) else np.asarray(objective)
        unit = float(np.abs(weights * scale).max()) or 1.0
        program.set_costs({utility + i: weights[i] * scale[i] / unit for i in (0, 1)})
    try:
        plan, solution = parts.solve(program.built(), clock, vertex)
    except LinearProgramError as error:
        if "infeasible" not in error.status.lower() or not np.isfinite(least).any():
            raise
        kept = [None if floor == -np.inf else floor for floor in least.tolist()]
        why = f"no {notion} gives the players the floors {shown(kept)}"
        raise LinearProgramError(error.status, why) from None
    if smaller:  # whose multipliers are the weights of a mean
        weights = np.maximum(solution.duals[least_row], 0.0)
        weights /= weights.sum()
    floor_weights = [
        -solution.duals[row] * (unit / scale[i]) if row >= 0 else 0.0 for i, row in enumerate(floor_row)
    ]
    u = plan.utilities()
    return Equilibrium(
        notion=notion,
        plan=plan,
        welfare=u[0] + u[1],
        utilities=u,
        value=min(u) if smaller else float(weights @ u),
        bound=greatest(parts, solution.duals * unit, weights, np.array(floor_weights), least),
        exploitability=exploitability(plan, notion).worst,
        seconds=clock.elapsed(),
    )


def whole_game_problem(game: SequenceGame, blueprint: Blueprint) -> RefinementProblem:
    """Return all of the game as one subgame, in which no trigger's delta is positive.

    Raises:
      ValueError: it is a part of a game.
    """
    game.check_whole()
    plan = CorrelationPlan.of(one_subgame(game), blueprint)
    one, two = (np.zeros(form.num_sequences) for form in plan.game.players)
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(one, two))


def greatest(
    parts: PlanProgram,
    multipliers: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    floor_weights: npt.NDArray[np.float64],
    floors: npt.NDArray[np.float64],
) -> float:
    """Return a bound on the weighted utilities of all equilibria that keep the floors; see the module.

    Args:
      parts: the program of all of the game.
      multipliers: any, by row of the program; of lanes, in the program's units of utility.
      weights: float64[2], of utilities. The smaller of them is at most their mean with any weights.
      floor_weights: float64[2], the floors' multipliers, any.
      floors: float64[2], -infinity where there is none.
    """
    plan, (center, scale) = parts.normalized.blueprint, parts.units
    floor_weights = np.where(floors > -np.inf, np.maximum(floor_weights, 0.0), 0.0)
    weights = weights + floor_weights
    worth = np.zeros(len(plan.pairs))
    np.add.at(worth, plan.pairs.leaves(), (weights * scale) @ plan.game.leaf_utility)
    for side in parts.sides:
        _charge(side, multipliers, worth)
    best_of(parts.steps, worth)
    return float(worth[0] + weights @ center - floor_weights @ np.where(floor_weights > 0.0, floors, 0.0))


def _charge(player: Incentives, multipliers: npt.NDArray[np.float64], worth: np.ndarray) -> None:
    """Add the worth of following, less that of deviating, to the entries' worth, by the multipliers."""
    side, row = player.side, player.lane_row
    deviations, work = side.deviations, DeviatorState.of(side)
    group, k, _ = deviations.lanes()
    number = deviations.set_[group] + k
    weight = np.where(row >= 0, np.maximum(multipliers[row], 0.0), 0.0)
    total = np.bincount(number, weight, deviations.num_sets)
    some = total[number] > 0.0
    work.play[:] = np.where(
        some, weight / np.where(some, total[number], 1.0), 1.0 / deviations.num_actions[group]
    )
    work.weights[side.set_arm[side.set_arm >= 0]] = total[side.set_arm >= 0]
    add_gradient(side, work, worth)


@kernel
def best_of(steps: ScaledExtensions, worth: np.ndarray) -> None:
    """Maximize `worth @ xi` over Xi, left in worth[0]; `worth`, float64[pairs], is used up."""
    for n in range(len(steps.start) - 1, -1, -1):
        at, stride, other = steps.start[n], steps.stride[n], steps.other[n]
        if steps.is_sum[n]:
            for k in range(steps.size[n]):
                worth[at + k * stride] += worth[other]
        else:
            best = worth[at]
            for k in range(1, steps.size[n]):
                best = max(best, worth[at + k * stride])
            worth[other] += best
