"""Search with a budget: what a player with little time plays.

Importing this makes the policies minimax, negamax, alpha_beta, pvs, mcts and softmax known to `make_policy`.
"""

from .alpha_beta import alpha_beta, principal_variation_search
from .budgets import SearchBudget, SimulationBudget
from .knowledge import default_evaluator, default_ordering, default_position_key
from .mcts import mcts
from .minimax import minimax, negamax
from .policies import SearchBot, SearchPolicy, SoftmaxPolicy

__all__ = [
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
    "principal_variation_search",
]
