"""Games played under computational constraints: the models.

What solves them is in `precomp_games.algorithms`, chess in `precomp_games.chess`.
"""

from precomp_games.efg_export import to_efg, write_efg
from precomp_games.history_tree import HistoryTree
from precomp_games.leaf_values import EvaluatedValues, ExactValues, RolloutValues, sample_size
from precomp_games.meta_game import MetaPrecomputationGame
from precomp_games.policies import PrecomputationPolicy
from precomp_games.policy_specs import make_policy, register_policy

__all__ = [
    "EvaluatedValues",
    "ExactValues",
    "HistoryTree",
    "MetaPrecomputationGame",
    "PrecomputationPolicy",
    "RolloutValues",
    "make_policy",
    "register_policy",
    "sample_size",
    "to_efg",
    "write_efg",
]
