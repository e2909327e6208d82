"""Games against players who look only a few moves ahead: how to exploit them best, and what they play."""

from .commitment import Commitment, commit_against_lookahead
from .equilibrium import StrategyPolicy, equilibrium
from .evaluation_functions import NodeValues, cumulative_noise, equilibrium_values, independent_noise
from .follower import TIE_BREAKING
from .lookahead_player import LookaheadPolicy
from .outcome import LookaheadOutcome, evaluate_against_lookahead
from .polynomial import LookaheadEquilibrium, lookahead_nash_equilibrium
from .sequence_form import SequenceForm

__all__ = [
    "TIE_BREAKING",
    "Commitment",
    "LookaheadEquilibrium",
    "LookaheadOutcome",
    "LookaheadPolicy",
    "NodeValues",
    "SequenceForm",
    "StrategyPolicy",
    "commit_against_lookahead",
    "cumulative_noise",
    "equilibrium",
    "equilibrium_values",
    "evaluate_against_lookahead",
    "independent_noise",
    "lookahead_nash_equilibrium",
]
