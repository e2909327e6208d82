"""Solvers of the models in `precomp_games`.

Correlated equilibria (`precomp_games.algorithms.efce`), players with limited lookahead
(`precomp_games.algorithms.lookahead`) and searches with a budget (`precomp_games.algorithms.search`) have
packages of their own. Results and parts of them that nobody needs to name stay in their modules.
"""

if __name__ != "precomp_games.algorithms":
    raise ImportError(f"expected this package to be imported as precomp_games.algorithms, got {__name__}")

from precomp_games.tree.meta_strategy import MetaStrategy

from .meta.policies import MetaGamePolicy, strategies_from_policy
from .meta.restricted_nash import restricted_nash
from .preparation.best_first import best_first_precomputation
from .preparation.best_precomputation import (
    BestPrecomputation,
    best_of_frontier,
    best_precomputation,
    memorized_states,
    precomputation_plan,
    value_against_components,
)
from .preparation.certified_sampling import certified_precomputation
from .preparation.confirmed import confirmed_precomputation
from .preparation.entropy_bounds import EntropyBounds
from .preparation.frontier import MemoryFrontier, memory_frontier
from .preparation.judgment import judge_book
from .preparation.robust import robust_precomputation
from .zero_sum.equilibrium import meta_equilibrium
from .zero_sum.exploitability import meta_exploitability
from .zero_sum.regret_minimization import CFR_VARIANTS
from .zero_sum.sequence_form_lp import meta_sequence_form_lp
from .zero_sum.solve import best_response, nash_conv, solve
from .zero_sum.tables import load_policy, save_policy

__all__ = [
    "CFR_VARIANTS",
    "BestPrecomputation",
    "EntropyBounds",
    "MemoryFrontier",
    "MetaGamePolicy",
    "MetaStrategy",
    "best_first_precomputation",
    "best_of_frontier",
    "best_precomputation",
    "best_response",
    "certified_precomputation",
    "confirmed_precomputation",
    "judge_book",
    "load_policy",
    "memorized_states",
    "memory_frontier",
    "meta_equilibrium",
    "meta_exploitability",
    "meta_sequence_form_lp",
    "nash_conv",
    "precomputation_plan",
    "restricted_nash",
    "robust_precomputation",
    "save_policy",
    "solve",
    "strategies_from_policy",
    "value_against_components",
]
