"""The extensive-form correlated equilibrium of greatest social welfare, by a linear program.

It is the refinement program with all of the game as one subgame (`refinement`): the plan is in Xi, and no
trigger has a positive delta.

Source: von Stengel and Forges; `efce_resolving`, equations 1 to 4.

Cost: a row for each relevant pair and for each (trigger, own sequence after it).
"""

from __future__ import annotations

import dataclasses

import pyspiel

from precomp_games._support.arguments import PositiveFloat, public

from ..programs import Clock
from .blueprints import uniform_blueprint
from .correlation_plans import CorrelationPlan
from .refinement import MAX_MEMORY_GB, MemoryLimit, refine_by_program
from .resolving import whole_game_problem
from .sequence_game import SequenceGame
from .triggers import exploitability

__all__ = ["Efce", "efce_lp"]


@dataclasses.dataclass(frozen=True, eq=False)
class Efce:
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
      game: two players, no chance, perfect recall; utilities of any sum.
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
    refined = refine_by_program(problem, "welfare", clock, vertex, max_memory_gb)
    u = refined.plan.utilities()
    return Efce(
        plan=refined.plan,
        welfare=u[0] + u[1],
        utilities=u,
        exploitability=exploitability(refined.plan).worst,
        seconds=refined.seconds,
    )
