"""Games against players who look only a few moves ahead: how to exploit them best, and what they play."""

from .commitment import commit_against_lookahead, commit_against_types
from .evaluation_functions import cumulative_noise, equilibrium, equilibrium_values, independent_noise
from .follower import FollowerType, LookaheadPolicy, evaluate_against_lookahead

__all__ = [
    "FollowerType",
    "LookaheadPolicy",
    "commit_against_lookahead",
    "commit_against_types",
    "cumulative_noise",
    "equilibrium",
    "equilibrium_values",
    "evaluate_against_lookahead",
    "independent_noise",
]
