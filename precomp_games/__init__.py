"""Games played under computational constraints: the models.

What solves them is in `precomp_games.algorithms`, chess in `precomp_games.chess`.
"""

from precomp_games.history_tree import HistoryTree
from precomp_games.leaf_values import EvaluatedValues, ExactValues, RolloutValues, sample_size
from precomp_games.policies import PrecomputationPolicy

__all__ = [
    "EvaluatedValues",
    "ExactValues",
    "HistoryTree",
    "PrecomputationPolicy",
    "RolloutValues",
    "sample_size",
]
