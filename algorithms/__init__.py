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
from precomp_games.algorithms.search import (
    MCTSResult,
    RandomRollouts,
    SearchBot,
    SearchBudget,
    SearchPolicy,
    SearchResult,
    SimulationBudget,
    SoftmaxPolicy,
    alpha_beta,
    default_evaluator,
    default_ordering,
    default_position_key,
    mcts,
    minimax,
    negamax,
    order_by_evaluator,
    principal_variation_search,
)

__all__ = [
    "BestPrecomputation",
    "MCTSResult",
    "MemorisedState",
    "MetaEquilibrium",
    "MetaExploitability",
    "MetaGamePolicy",
    "MetaLinearProgram",
    "MetaStrategy",
    "RandomRollouts",
    "SearchBot",
    "SearchBudget",
    "SearchPolicy",
    "SearchResult",
    "SimulationBudget",
    "SoftmaxPolicy",
    "alpha_beta",
    "best_precomputation",
    "default_evaluator",
    "default_ordering",
    "default_position_key",
    "mcts",
    "meta_equilibrium",
    "meta_exploitability",
    "meta_game_policy",
    "meta_sequence_form_lp",
    "minimax",
    "negamax",
    "order_by_evaluator",
    "principal_variation_search",
    "strategies_from_policy",
    "strategy_from_base_policy",
    "strategy_from_mixture",
]
