"""The extensive-form correlated equilibrium of greatest social welfare, by a linear program.

It is the refinement program with all of the game as one subgame (`refinement`): the plan is in Xi, and no
trigger has a positive delta.

Source: von Stengel and Forges; `efce_resolving`, equations 1 to 4.

Cost: a row for each relevant pair and for each (trigger, own sequence after it).
"""

from __future__ import annotations

import dataclasses
import math

import pyspiel

from .blueprints import uniform
from .correlation_plans import CorrelationPlan
from .refinement import refine_lp
from .resolving import whole_game_problem
from .sequence_game import SequenceGame
from .triggers import exploitability

__all__ = ["Efce", "efce_lp"]


@dataclasses.dataclass(frozen=True, eq=False)
class Efce:
    """An equilibrium.

    plan: the correlation plan. welfare: of both players; utilities: of each.
    exploitability: the greatest delta of a trigger, measured apart from the program; at most 0 but for
      rounding.
    seconds: wall-clock of setting up and solving.
    """

    plan: CorrelationPlan
    welfare: float
    utilities: tuple[float, float]
    exploitability: float
    seconds: float


def efce_lp(
    game: pyspiel.Game | SequenceGame,
    *,
    allowance: float = 0.0,
    time_limit: float | None = None,
    vertex: bool = False,
) -> Efce:
    """Computes an EFCE of greatest welfare.

    Args:
      game: two players, no chance, perfect recall; utilities of any sum.
      allowance: the greatest delta that a trigger may have; negative ones ask players to lose by deviating,
        which not all games can.
      time_limit: seconds for HiGHS.
      vertex: by simplex: a vertex, exact but for rounding; for small games.

    Raises:
      ValueError: the game is not as above, or a part of one; the allowance is not finite, or the time limit
        not positive.
      LinearProgramError: infeasible (negative allowances only), or out of time.
    """
    if not math.isfinite(allowance):
        raise ValueError(f"efce_lp(): expected a finite allowance, got {allowance!r}")
    held = game if isinstance(game, SequenceGame) else SequenceGame.of(game)
    problem = whole_game_problem(held, uniform(), allowance)
    refined = refine_lp(problem, time_limit=time_limit, vertex=vertex)
    u = refined.plan.utilities()
    return Efce(
        plan=refined.plan,
        welfare=u[0] + u[1],
        utilities=u,
        exploitability=exploitability(refined.plan).worst,
        seconds=refined.seconds,
    )
