"""Games played under computational constraints: the models.

What solves them is in `precomp_games.algorithms`, chess in `precomp_games.chess`. Importing this registers
the games python_meta_precomputation, python_clock, python_kj_poker and python_chess with OpenSpiel.
Everything else is imported when it is asked for, so that a command that needs none of it does not wait.
"""

from typing import TYPE_CHECKING, Any

from precomp_games.games import registered as _registered  # noqa: F401  (registers the games)

if TYPE_CHECKING:
    from precomp_games._support.config import config
    from precomp_games.cluster import cluster_client, map_on_cluster
    from precomp_games.games.clock import ClockGame, SearchClock
    from precomp_games.meta_game.gambit import to_efg
    from precomp_games.meta_game.game import MetaPrecomputationGame
    from precomp_games.policies.bots import NetworkPolicy
    from precomp_games.policies.leaf_values import RolloutValues
    from precomp_games.policies.mixtures import MixturePolicy
    from precomp_games.policies.rows import Menu
    from precomp_games.policies.specs import make_policy, policy_names, register_policy
    from precomp_games.tree.history_tree import HistoryTree

    __version__: str
else:
    from precomp_games._support.faces import face

    _named = face(
        __name__,
        {
            "_support.config": "config",
            "cluster": "cluster_client map_on_cluster",
            "games.clock": "ClockGame SearchClock",
            "meta_game.gambit": "to_efg",
            "meta_game.game": "MetaPrecomputationGame",
            "policies.bots": "NetworkPolicy",
            "policies.leaf_values": "RolloutValues",
            "policies.mixtures": "MixturePolicy",
            "policies.rows": "Menu",
            "policies.specs": "make_policy policy_names register_policy",
            "tree.history_tree": "HistoryTree",
        },
    )

    def __getattr__(name: str) -> Any:
        """Return a name of `__all__`, or the version."""
        if name != "__version__":
            return _named(name)
        import importlib.metadata

        try:
            return importlib.metadata.version("precomp-games")
        except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
            return "0"


__all__ = [
    "ClockGame",
    "HistoryTree",
    "Menu",
    "MetaPrecomputationGame",
    "MixturePolicy",
    "NetworkPolicy",
    "RolloutValues",
    "SearchClock",
    "cluster_client",
    "config",
    "make_policy",
    "map_on_cluster",
    "policy_names",
    "register_policy",
    "to_efg",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
