"""Search with a budget: what a player with little time plays.

Importing this makes the policies minimax, alpha_beta, pvs, mcts and softmax known to `make_policy`.
"""

from .depth_first import SearchBudget, alpha_beta, minimax, principal_variation_search
from .knowledge import known_of
from .mcts import SimulationBudget, mcts
from .policies import SearchBot, SearchPolicy, SoftmaxPolicy

__all__ = [
    "SearchBot",
    "SearchBudget",
    "SearchPolicy",
    "SimulationBudget",
    "SoftmaxPolicy",
    "alpha_beta",
    "known_of",
    "mcts",
    "minimax",
    "principal_variation_search",
]
