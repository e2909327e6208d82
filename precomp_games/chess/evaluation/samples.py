"""How games from positions end: what an evaluation is calibrated on.

Games are played by both sides' policies from positions that were given, by the rules of the game that these
belong to, each with a random stream of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import chess
import numpy as np

from precomp_games._support.arguments import Ge, Le, PositiveFloat, Seed, public
from precomp_games.chess.engines.searches import Line
from precomp_games.chess.evaluation.policies import EngineEvaluation, UnfinishedStates
from precomp_games.policies.playouts import play_on
from precomp_games.policies.rows import LeastProbability, PolicyLike, as_batch_policies

__all__ = ["CalibrationSample", "material", "played_samples"]

_PAWNS = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
_MOST_AHEAD = 103  # pawns: nine queens and all other pieces
_MOST_GAMES = 10**9
_Games = Annotated[int, Ge(0), Le(_MOST_GAMES)]
_STREAMS = int.from_bytes(b"samples", "big")  # the spawn key that sets these games' streams apart


@public
def material(board: chess.Board) -> int:
    """What the side to move has more on the board than the other one, in pawns.

    Raises:
      ValueError: something other than a board.
    """
    return sum(
        pawns * (len(board.pieces(piece, board.turn)) - len(board.pieces(piece, not board.turn)))
        for piece, pawns in _PAWNS.items()
    )


@public
@dataclasses.dataclass(frozen=True)
class CalibrationSample:
    """A position, and how games from it ended.

    Attributes:
      line: The analyst's best line.
      material: What the side to move has more on the board than the other one, in pawns.
      opponent_temperature_cp: r.
      wins, draws, losses: How many games ended so for the side to move.
      setting: What the position comes from, to keep whole settings out.
    """

    line: Line
    material: Annotated[int, Ge(-_MOST_AHEAD), Le(_MOST_AHEAD)]
    opponent_temperature_cp: PositiveFloat
    wins: _Games
    draws: _Games
    losses: _Games
    setting: str = ""

    @property
    def games(self) -> int:
        """How many."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Their total."""
        return self.wins + 0.5 * self.draws


@public
def played_samples(
    states: UnfinishedStates,
    sigma: PolicyLike | Sequence[PolicyLike],
    evaluation: EngineEvaluation,
    opponent_temperature_cp: PositiveFloat,
    games: Annotated[int, Ge(1), Le(_MOST_GAMES)] = 3,
    *,
    seed: Seed = 0,
    setting: str = "",
    min_probability: LeastProbability = 1e-9,
    progress: Callable[[int], Any] | None = None,
) -> list[CalibrationSample]:
    """Plays games from positions, and has them searched.

    Args:
      states: where games begin; they stay as they are.
      sigma: what both sides play, one policy or a pair, e.g. `PreparationPolicies.sigma`.
      evaluation: whose search gives the line, e.g. `PreparationPolicies.leaf_value`.
      opponent_temperature_cp: r, as it is told of the samples.
      games: how many from each position.
      seed: of the games.
      setting: what the samples are told to come from.
      min_probability: less likely moves are not played, as in preparations.
      progress: called with the number of finished games, after each half-move of those under way.

    Raises:
      ValueError: an argument is none of these, a game is over, or a policy does not answer as it should.
      EngineError: an engine fails, or its searches are stored ones alone and do not reach so far.
    """
    policies = as_batch_policies(sigma, "sigma")
    ends = play_on(
        [state for state in states for _ in range(games)],
        policies,
        [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS, k)))
            for k in range(len(states) * games)
        ],
        min_probability=min_probability,
        progress=progress,
    )
    epds = [state.epd for state in states]
    results = evaluation.engine.search(epds, evaluation.limit, evaluation.multipv)
    samples = []
    for k, (state, result) in enumerate(zip(states, results, strict=True)):
        mover = state.current_player()
        scores = [end.returns()[mover] for end in ends[k * games : (k + 1) * games]]
        wins, draws, losses = (scores.count(score) for score in (1.0, 0.5, 0.0))
        samples.append(
            CalibrationSample(
                result.lines[0],
                material(state.board),
                opponent_temperature_cp,
                wins,
                draws,
                losses,
                setting,
            )
        )
    return samples
