"""Extensive-form correlated equilibria of two-player games without chance, and safe subgame resolving."""

from ..programs import LinearProgramError
from .blueprints import (
    Blueprint,
    ProductBlueprint,
    jittered_blueprint,
    plan_of,
    policy_blueprint,
    uniform_blueprint,
)
from .constraints import RefinementProblem
from .correlation_plans import CorrelationPlan, flow_constraints, is_plan, plan_error
from .device import Mediator, PureProfile, correlation_device, draw_profiles
from .efce_lp import Efce, efce_lp
from .public_information import public_moves, subgame_names
from .refinement import Refinement, refine_lp
from .regret_refinement import RegretRefinement, refine_regret, search_target
from .regret_resolver import RegretResolver
from .resolving import Resolving
from .scaled_extensions import ScaledExtensions
from .sequence_game import SequenceGame
from .sequence_pairs import PairCounts, RelevantPairs, count_pairs
from .stitching import Safety, complete, safety, stitch
from .subgame_rows import BOUNDS
from .subgames import check_decomposition, decompose, finest_subgames, one_subgame
from .triggers import Exploitability, exploitability

__all__ = [
    "BOUNDS",
    "Blueprint",
    "CorrelationPlan",
    "Efce",
    "Exploitability",
    "LinearProgramError",
    "Mediator",
    "PairCounts",
    "ProductBlueprint",
    "PureProfile",
    "Refinement",
    "RefinementProblem",
    "RegretRefinement",
    "RegretResolver",
    "RelevantPairs",
    "Resolving",
    "Safety",
    "ScaledExtensions",
    "SequenceGame",
    "check_decomposition",
    "complete",
    "correlation_device",
    "count_pairs",
    "decompose",
    "draw_profiles",
    "efce_lp",
    "exploitability",
    "finest_subgames",
    "flow_constraints",
    "is_plan",
    "jittered_blueprint",
    "one_subgame",
    "plan_error",
    "plan_of",
    "policy_blueprint",
    "public_moves",
    "refine_lp",
    "refine_regret",
    "safety",
    "search_target",
    "stitch",
    "subgame_names",
    "uniform_blueprint",
]
