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
>= 0. An equilibrium xi has dev(s+; xi) <= v(s+; xi) + e, where e is what deltas may be, and u_i(xi) >= f_i.
So what it is worth is at most

    max over xi in Xi of   sum over i of (w_i + n_i) u_i(xi) - n_i f_i
                           - sum over s+ of m(s+) (dev(s+; xi) - v(s+; xi) - e),

whatever the multipliers and the deviations are; with those of a program's optimum it is the optimum. All of
it is linear in xi: a sum over leaves, of pairs of sequences. A linear function is maximized over Xi along the
scaled extensions, from the last step to the first: a simplex step takes its best entry, a sum step hands on.

Multipliers come as one weight for each trigger and own sequence after it: m(s+) times the probability that
the deviation plays so. Whatever comes is made that: negative weights become 0, at I+ weights are what they
are, and below they are shares of what leads there.

Of a solver this takes the multipliers alone: triggers, leaves and pairs are looked up here once more.

Source: von Stengel and Forges 2008; Farina, Bianchi and Sandholm 2020, for the coarse notions; weak duality.

Cost: as `refine_lp`, and one pass over leaves for the bound, each with the triggers whose deviations lead
there. EFCEs have a row for each (trigger, own sequence after it), coarse notions for fewer.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result

from ..programs import Clock, ProgramSolution
from .constraints import RefinementProblem
from .correlation_plans import Blueprint, CorrelationPlan, RelevantPairs, uniform_blueprint
from .refinement import Incentives, PlanProgram
from .scaled_extensions import ScaledExtensions
from .sequence_game import PlayerForm, SequenceGame, find, spread
from .subgames import one_subgame
from .triggers import Notion, exploitability


def _check_objective(value: Any, name: str) -> Any:
    """An `Objective`: a word, or float64[2]."""
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
"""What is maximized: the sum of both utilities, the smaller of them, one player's, or a weighted sum."""


def _check_floors(value: Any, name: str) -> Any:
    """None, or float64[2]; -infinity where there is no floor."""
    if value is None:
        return None
    floors = checks.check_numbers(value, 2, name, finite=False)
    if np.inf in floors:
        raise ArgumentError(f"expected {name} to be two numbers, -infinity for none, got {shown(value)}")
    return floors


Floors = Annotated[tuple[float, float] | np.ndarray | None, checks.Check(_check_floors)]
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
    time_limit: checks.PositiveFloat | None = None,
    vertex: bool = False,
) -> Equilibrium:
    """Computes a best correlated equilibrium.

    Args:
      game: two players, perfect recall, no chance that makes triangles; utilities of any sum.
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

    Raises:
      ValueError: the game is not as above, or a part of one, or too large for the memory; no such objective
        or notion, floors that are no pair of numbers, an allowance that is not finite, or a limit that is not
        positive.
      LinearProgramError: infeasible (with floors or negative allowances only), or out of time.
    """
    clock = Clock(time_limit)
    if not isinstance(game, SequenceGame):
        game = SequenceGame.of(game)
        clock.left()
    parts = PlanProgram(whole_game_problem(game, uniform_blueprint(), allowance), clock, notion)
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
    least = np.full(2, -np.inf) if floors is None else np.asarray(floors)
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
    plan, solution = parts.solve(program.built(), clock, vertex)
    if smaller:  # whose multipliers are the weights of a mean
        weights = np.maximum(solution.duals[least_row], 0.0)
        weights /= weights.sum()
    floor_weights = [
        -solution.duals[row] * (unit / scale[i]) if row >= 0 else 0.0 for i, row in enumerate(floor_row)
    ]
    triggers = [
        _trigger_weights(side, solution, unit / size)
        for side, size in zip(parts.sides, scale.tolist(), strict=True)
    ]
    multipliers = Multipliers(weights, np.array(floor_weights), (triggers[0], triggers[1]))
    u = plan.utilities()
    return Equilibrium(
        notion=notion,
        plan=plan,
        welfare=u[0] + u[1],
        utilities=u,
        value=min(u) if smaller else float(weights @ u),
        bound=greatest(plan.pairs, notion, multipliers, allowance, least),
        exploitability=exploitability(plan, notion).worst,
        seconds=clock.elapsed(),
    )


def _trigger_weights(side: Incentives, solution: ProgramSolution, unit: float) -> TriggerWeights:
    """A solution's duals of one player's deviations, by trigger and sequence."""
    deviations = side.side.deviations
    group, inner = spread(np.diff(deviations.lane))
    trigger, action = np.divmod(inner, deviations.num_actions[group])
    used = np.flatnonzero(side.lane_row >= 0)
    group, trigger, action = group[used], trigger[used], action[used]
    return TriggerWeights(
        trigger=deviations.trigger[group] + trigger,
        sequence=deviations.first[deviations.infoset[group]] + action,
        weight=solution.duals[side.lane_row[used]] * unit,
    )


def whole_game_problem(game: SequenceGame, blueprint: Blueprint, allowance: float = 0.0) -> RefinementProblem:
    """All of the game as one subgame, each trigger's delta at most `allowance`.

    Raises:
      ValueError: it is a part of a game.
    """
    game.check_whole()
    plan = CorrelationPlan.of(one_subgame(game), blueprint)
    one, two = (np.full(form.num_sequences, allowance) for form in plan.game.players)
    return RefinementProblem(name="game", blueprint=plan, bounds=None, allowed=(one, two))


class TriggerWeights(NamedTuple):
    """One player's multipliers.

    Attributes:
      trigger: int64[n], a sequence, or an information set for coarse notions.
      sequence: int64[n], the player's own, after the trigger.
      weight: float64[n]; what is not named is 0.
    """

    trigger: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


class Multipliers(NamedTuple):
    """What an upper bound is made of.

    Attributes:
      weights: float64[2], of utilities.
      floors: float64[2], of floors.
      triggers: Both players'.
    """

    weights: npt.NDArray[np.float64]
    floors: npt.NDArray[np.float64]
    triggers: tuple[TriggerWeights, TriggerWeights]


def greatest(
    pairs: RelevantPairs,
    notion: Notion,
    multipliers: Multipliers,
    allowance: float,
    floors: npt.NDArray[np.float64],
) -> float:
    """What no equilibrium's weighted utilities exceed, those that keep the floors; see above.

    Args:
      pairs: the game's, which is held whole.
      notion: what a trigger is.
      multipliers: any. The smaller of two utilities is at most their mean with any weights.
      allowance: the greatest delta of equilibria.
      floors: float64[2], -infinity where there is none.
    """
    game = pairs.game
    worth, bound = np.zeros(len(pairs)), 0.0
    for player in (0, 1):
        payoffs = game.payoffs[player]
        center = 0.5 * payoffs.min() + 0.5 * payoffs.max()
        utility = game.leaf_utility[player] - center * game.leaf_chance
        floor_weight = max(float(multipliers.floors[player]), 0.0) if floors[player] > -np.inf else 0.0
        weight = float(multipliers.weights[player]) + floor_weight
        after = _Deviations.of(game.players[player], notion, multipliers.triggers[player])
        bound += weight * center + allowance * float(after.trigger_weight.sum())
        bound -= floor_weight * floors[player] if floor_weight else 0.0
        own, other = game.leaf_sequence[player], game.leaf_sequence[1 - player]

        def pair(mine: np.ndarray, theirs: np.ndarray, player: int = player) -> np.ndarray:
            return pairs.index(mine, theirs) if player == 0 else pairs.index(theirs, mine)

        # Following, and the objective.
        np.add.at(worth, pair(own, other), utility * (weight + after.followed[own]))
        # Deviating: each leaf, with each trigger whose deviation leads there.
        leaf, place = spread(np.diff(after.start)[own])
        entry = after.start[own[leaf]] + place
        used = after.weight[entry] > 0.0
        leaf, entry = leaf[used], entry[used]
        np.subtract.at(worth, pair(after.told[entry], other[leaf]), utility[leaf] * after.weight[entry])
    steps = ScaledExtensions.of(pairs, whole=True)
    best_of(steps, worth)
    return bound + float(worth[0])


class _Deviations(NamedTuple):
    """One player's deviations, by the sequence that they lead to.

    Attributes:
      start: int64[S + 1], each sequence's first entry.
      told: int64[n], the sequence that was recommended last.
      weight: float64[n].
      trigger_weight: float64, of each trigger, by its number.
      followed: float64[S], the weight of all triggers that a sequence's leaves count for.
    """

    start: np.ndarray
    told: np.ndarray
    weight: np.ndarray
    trigger_weight: np.ndarray
    followed: np.ndarray

    @classmethod
    def of(cls, form: PlayerForm, notion: Notion, given: TriggerWeights) -> _Deviations:
        """All triggers and sequences after them, with the weights that are given."""
        sequences = np.arange(form.num_sequences)
        which, path = form.path(sequences)  # a sequence, and one on the way to it
        top = form.infoset[path].astype(np.int64)
        if notion == "efce":
            # Each other action there is a trigger from which it is gone this way.
            entry, k = spread(form.num_actions[top])
            trigger = form.first[top[entry]] + k
            kept = trigger != path[entry]
            entry, trigger = entry[kept], trigger[kept]
            sequence, top, told, numbers = which[entry], top[entry], trigger, form.num_sequences
        elif notion == "efcce":
            sequence, trigger, told, numbers = which, top, form.parent[top], form.num_infosets
        else:
            sequence, top = sequences, np.zeros(len(sequences), np.int64)
            trigger = told = top
            numbers = form.num_infosets
        order = np.lexsort((trigger, sequence))
        sequence, top, trigger, told = sequence[order], top[order], trigger[order], told[order]
        infoset = form.infoset[sequence]
        code = sequence * numbers + trigger
        root = infoset == top
        parent = np.where(root, -1, find(code, form.parent[infoset].astype(np.int64) * numbers + trigger))
        weight = np.zeros(len(code))
        at = find(code, given.sequence * numbers + given.trigger)
        np.add.at(weight, at[at >= 0], np.maximum(given.weight, 0.0)[at >= 0])
        _, group = np.unique(infoset.astype(np.int64) * numbers + trigger, return_inverse=True)
        total = np.bincount(group, weight)[group]
        share = np.where(
            total > 0.0, weight / np.where(total > 0.0, total, 1.0), 1.0 / form.num_actions[infoset]
        )
        # Sequences are in ascending order, and so parents come first.
        _spread_down(parent, share, weight)
        trigger_weight = np.bincount(trigger[root], weight[root], numbers)
        followed = np.zeros(form.num_sequences)
        if notion == "nfcce":
            followed[:] = trigger_weight[0]
        else:
            np.add.at(followed, which, trigger_weight[path if notion == "efce" else form.infoset[path]])
        start = np.searchsorted(sequence, np.arange(form.num_sequences + 1))
        return cls(start, told, weight, trigger_weight, followed)


@kernel
def _spread_down(parent: np.ndarray, share: np.ndarray, weight: np.ndarray) -> None:
    """Makes weights shares of their parents'; those without one stay as they are."""
    for n in range(len(parent)):
        if parent[n] >= 0:
            weight[n] = weight[parent[n]] * share[n]


@kernel
def best_of(steps: ScaledExtensions, worth: np.ndarray) -> None:
    """The greatest of `worth @ xi` over Xi, left in worth[0]; `worth`, float64[pairs], is used up."""
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
