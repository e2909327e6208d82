"""Extensive-form correlated equilibria of two-player games without chance, and safe subgame resolving."""

from ..programs import LinearProgramError
from .blueprints import (
    Blueprint,
    ProductBlueprint,
    jittered,
    plan_of,
    policy_blueprint,
    uniform,
)
from .bounds import BOUNDS
from .correlation_plans import (
    CorrelationPlan,
    flow_constraints,
    is_plan,
    plan_error,
)
from .device import Mediator, PureProfile, correlation_device, draw_profiles
from .efce_lp import Efce, efce_lp
from .refinement import Refinement, RefinementProblem, refine_lp
from .regret_resolver import (
    RegretRefinement,
    RegretResolver,
    refine_regret,
    search_target,
)
from .resolving import Resolving
from .scaled_extensions import ScaledExtensions
from .sequence_game import SequenceGame
from .sequence_pairs import PairCounts, RelevantPairs, count_pairs
from .stitching import Safety, completed, safety, stitched
from .subgames import (
    check_decomposition,
    decompose,
    finest_subgames,
    one_subgame,
    public_moves,
    subgame_names,
)
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
    "completed",
    "correlation_device",
    "count_pairs",
    "decompose",
    "draw_profiles",
    "efce_lp",
    "exploitability",
    "finest_subgames",
    "flow_constraints",
    "is_plan",
    "jittered",
    "one_subgame",
    "plan_error",
    "plan_of",
    "policy_blueprint",
    "public_moves",
    "refine_lp",
    "refine_regret",
    "safety",
    "search_target",
    "stitched",
    "subgame_names",
    "uniform",
]
