"""Games played under computational constraints: the models.

What solves them is in `precomp_games.algorithms`, chess in `precomp_games.chess`.
"""

from precomp_games.history_tree import HistoryTree
from precomp_games.leaf_values import EvaluatedValues, ExactValues, RolloutValues, sample_size
from precomp_games.policies import PrecomputationPolicy
from precomp_games.policy_specs import make_policy, register_policy

__all__ = [
    "EvaluatedValues",
    "ExactValues",
    "HistoryTree",
    "PrecomputationPolicy",
    "RolloutValues",
    "make_policy",
    "register_policy",
    "sample_size",
]
