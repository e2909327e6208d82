"""What solves the models of `precomp_games`."""

from precomp_games.algorithms.best_precomputation import (
    BestPrecomputation,
    MemorisedState,
    best_precomputation,
)
from precomp_games.algorithms.meta_equilibrium import MetaEquilibrium, meta_equilibrium
from precomp_games.algorithms.meta_exploitability import MetaExploitability, meta_exploitability
from precomp_games.algorithms.meta_policies import (
    MetaGamePolicy,
    meta_game_policy,
    strategies_from_policy,
    strategy_from_base_policy,
    strategy_from_mixture,
)
from precomp_games.algorithms.meta_sequence_form_lp import MetaLinearProgram, meta_sequence_form_lp
from precomp_games.algorithms.meta_strategies import MetaStrategy

__all__ = [
    "BestPrecomputation",
    "MemorisedState",
    "MetaEquilibrium",
    "MetaExploitability",
    "MetaGamePolicy",
    "MetaLinearProgram",
    "MetaStrategy",
    "best_precomputation",
    "meta_equilibrium",
    "meta_exploitability",
    "meta_game_policy",
    "meta_sequence_form_lp",
    "strategies_from_policy",
    "strategy_from_base_policy",
    "strategy_from_mixture",
]
