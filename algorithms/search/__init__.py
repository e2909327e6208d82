"""Search with a budget: what a player with little time plays.

Importing this makes the policies minimax, negamax, alpha_beta, pvs, mcts and softmax known to `make_policy`.
"""

from .alpha_beta import alpha_beta, principal_variation_search
from .budgets import MinimaxResult, SearchBudget, SimulationBudget
from .knowledge import (
    default_evaluator,
    default_ordering,
    default_position_key,
    order_by_evaluator,
)
from .mcts import MCTSResult, mcts
from .minimax import minimax, negamax
from .policies import SearchBot, SearchPolicy, SoftmaxPolicy
from .rollouts import RandomRollouts

__all__ = [
    "MCTSResult",
    "MinimaxResult",
    "RandomRollouts",
    "SearchBot",
    "SearchBudget",
    "SearchPolicy",
    "SimulationBudget",
    "SoftmaxPolicy",
    "alpha_beta",
    "default_evaluator",
    "default_ordering",
    "default_position_key",
    "mcts",
    "minimax",
    "negamax",
    "order_by_evaluator",
    "principal_variation_search",
]
