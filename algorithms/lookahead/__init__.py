"""Games against players who look only a few moves ahead: how to exploit them best, and what they play."""

from precomp_games.algorithms.lookahead.commitment import Commitment, commit_against_lookahead
from precomp_games.algorithms.lookahead.evaluations import (
    NodeValues,
    StrategyPolicy,
    cumulative_noise,
    equilibrium,
    equilibrium_values,
    independent_noise,
)
from precomp_games.algorithms.lookahead.evaluator import LookaheadOutcome, evaluate_against_lookahead
from precomp_games.algorithms.lookahead.lookahead_player import LookaheadPolicy
from precomp_games.algorithms.lookahead.polynomial import LookaheadEquilibrium, lookahead_nash_equilibrium
from precomp_games.algorithms.lookahead.sequence_form import SequenceForm

__all__ = [
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
