"""Extensive-form correlated equilibria of two-player games with public chance, and safe subgame resolving."""

from .correlation_plans import CorrelationPlan, jittered_blueprint, policy_blueprint, uniform_blueprint
from .equilibria import efce_lp
from .mediator import Mediator
from .refinement import refine_lp
from .regret import refine_regret
from .resolving import Resolving, safety, stitch
from .sequence_game import SequenceGame
from .subgames import decompose, finest_subgames, public_moves
from .triggers import exploitability

__all__ = [
    "CorrelationPlan",
    "Mediator",
    "Resolving",
    "SequenceGame",
    "decompose",
    "efce_lp",
    "exploitability",
    "finest_subgames",
    "jittered_blueprint",
    "policy_blueprint",
    "public_moves",
    "refine_lp",
    "refine_regret",
    "safety",
    "stitch",
    "uniform_blueprint",
]
