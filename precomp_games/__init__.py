"""Games played under computational constraints: the models.

What solves them is in `precomp_games.algorithms`, chess in `precomp_games.chess`. Importing this registers
the games python_meta_precomputation, python_clock and python_kj_poker with OpenSpiel.
"""

import importlib.metadata

from precomp_games._support.bars import use_progress_bars
from precomp_games._support.files import atomic_write, write_together
from precomp_games.cluster.client import cluster_client
from precomp_games.cluster.tasks import map_on_cluster
from precomp_games.games import kj_poker as _kj_poker  # noqa: F401  (registers the game)
from precomp_games.games.clock import ClockGame, ClockPolicy, SearchClock, TimedSearch, clock_position_key
from precomp_games.meta_game.gambit import to_efg, write_efg
from precomp_games.meta_game.game import MetaPrecomputationGame
from precomp_games.policies.leaf_values import RolloutValues, sample_size
from precomp_games.policies.menus import Menu
from precomp_games.policies.mixtures import MixturePolicy
from precomp_games.policies.precomputation import PrecomputationPolicy
from precomp_games.policies.specs import make_policy, policy_names, register_policy
from precomp_games.tree.history_tree import HistoryTree

try:
    __version__ = importlib.metadata.version("precomp-games")
except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"

__all__ = [
    "ClockGame",
    "ClockPolicy",
    "HistoryTree",
    "Menu",
    "MetaPrecomputationGame",
    "MixturePolicy",
    "PrecomputationPolicy",
    "RolloutValues",
    "SearchClock",
    "TimedSearch",
    "atomic_write",
    "clock_position_key",
    "cluster_client",
    "make_policy",
    "map_on_cluster",
    "policy_names",
    "register_policy",
    "sample_size",
    "to_efg",
    "use_progress_bars",
    "write_efg",
    "write_together",
]
