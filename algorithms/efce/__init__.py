"""Extensive-form correlated equilibria of two-player games without chance, and safe subgame resolving."""

from precomp_games.algorithms.efce.blueprints import (
    Blueprint,
    ProductBlueprint,
    jittered,
    plan_of,
    policy_blueprint,
    uniform,
)
from precomp_games.algorithms.efce.bounds import BOUNDS
from precomp_games.algorithms.efce.correlation_plans import (
    CorrelationPlan,
    flow_constraints,
    is_plan,
    plan_error,
)
from precomp_games.algorithms.efce.device import Mediator, PureProfile, correlation_device, draw_profiles
from precomp_games.algorithms.efce.efce_lp import Efce, efce_lp
from precomp_games.algorithms.efce.linear_programs import LinearProgramError
from precomp_games.algorithms.efce.refinement import Refinement, RefinementProblem, refine_lp
from precomp_games.algorithms.efce.regret_resolver import (
    RegretRefinement,
    RegretResolver,
    refine_regret,
    search_target,
)
from precomp_games.algorithms.efce.resolving import Resolving
from precomp_games.algorithms.efce.scaled_extensions import ScaledExtensions
from precomp_games.algorithms.efce.sequence_game import SequenceGame
from precomp_games.algorithms.efce.sequence_pairs import PairCounts, RelevantPairs, count_pairs
from precomp_games.algorithms.efce.stitching import Safety, completed, safety, stitched
from precomp_games.algorithms.efce.subgames import (
    check_decomposition,
    decompose,
    finest_subgames,
    one_subgame,
    public_moves,
    subgame_names,
)
from precomp_games.algorithms.efce.triggers import Exploitability, exploitability

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
