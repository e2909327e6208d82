"""Games against players who look only a few moves ahead: how to exploit them best, and what they play."""

from .commitment import Commitment, commit_against_lookahead, lookahead_nash_equilibrium
from .evaluation_functions import (
    NodeValues,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    independent_noise,
)
from .follower import LookaheadPolicy, evaluate_against_lookahead

__all__ = [
    "Commitment",
    "LookaheadPolicy",
    "NodeValues",
    "commit_against_lookahead",
    "cumulative_noise",
    "equilibrium",
    "equilibrium_values",
    "evaluate_against_lookahead",
    "independent_noise",
    "lookahead_nash_equilibrium",
]
