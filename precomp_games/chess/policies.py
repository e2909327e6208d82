"""An engine as a policy, and as an evaluation of positions.

A policy plays the engine's k best moves with probabilities proportional to exp(cp / r): Softmax(cp / r) of
its MultiPV scores, r in centipawns. As r goes to 0 it plays the best move; at r = 100 a move that loses a
pawn is played 1/e as often. Positions go to the engine as EPD, without clocks and without history, so that
what it answers is a function of the position alone.

Source: `precomputation`, section 5 and appendix, "Experimental Details".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import chess
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games.chess.engine import SearchLimit
from precomp_games.chess.game import ChessState, action_of
from precomp_games.chess.scores import ScoreUtility, centipawns
from precomp_games.chess.stored_engine import StoredEngine

__all__ = ["EngineEvaluation", "EnginePolicy", "softmax"]


def softmax(scores_cp: Sequence[float], temperature_cp: float) -> np.ndarray:
    """Probabilities proportional to exp(score / temperature), both in centipawns.

    Raises:
      ValueError: the temperature is not positive and finite.
    """
    if not 0.0 < temperature_cp < np.inf:
        raise ValueError(f"softmax(): expected a positive, finite temperature_cp, got {temperature_cp!r}")
    scores = np.asarray(scores_cp, np.float64)
    # The best score is taken off first: at r = 1e-6 the exponents would overflow otherwise.
    weights = np.exp((scores - scores.max()) / temperature_cp)
    return np.asarray(weights / weights.sum())


class EnginePolicy(openspiel_policy.Policy):
    """Softmax(cp / r) over an engine's `top_k` best moves.

    temperature_cp: r, in centipawns, positive.
    top_k: how many moves, and the MultiPV of the searches; fewer where there are fewer legal moves.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        engine: StoredEngine,
        limit: SearchLimit,
        temperature_cp: float,
        top_k: int = 2,
    ) -> None:
        super().__init__(game, [0, 1])
        softmax([0.0], temperature_cp)
        if top_k < 1:
            raise ValueError(f"EnginePolicy(): expected top_k >= 1, got {top_k!r}")
        self.engine = engine
        self.limit = limit
        self.temperature_cp = float(temperature_cp)
        self.top_k = int(top_k)

    def action_probabilities_batch(self, states: Sequence[ChessState]) -> list[dict[int, float]]:
        """One {action: probability} a state; the engine searches what it has not seen before."""
        results = self.engine.search([state.epd for state in states], self.limit, self.top_k)
        rows = []
        for result in results:
            lines = result.lines[: self.top_k]
            odds = softmax([centipawns(line) for line in lines], self.temperature_cp)
            rows.append(
                {
                    action_of(chess.Move.from_uci(line.move)): float(p)
                    for line, p in zip(lines, odds, strict=True)
                }
            )
        return rows

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """{action: probability} at one state; `player_id` can only be the side to move."""
        return self.action_probabilities_batch([state])[0]


@dataclasses.dataclass(frozen=True)
class EngineEvaluation:
    """White's utility of positions by an engine's search, as `leaf_value` of a `HistoryTree`.

    engine, limit, multipv: the search; one that a policy has made already is not made again.
    utility: what a score is worth.
    """

    engine: StoredEngine
    limit: SearchLimit
    multipv: int
    utility: ScoreUtility

    def evaluate_batch(self, states: Sequence[ChessState]) -> np.ndarray:
        """float64[n]: utility of player 0, White, in [0, 1]."""
        results = self.engine.search([state.epd for state in states], self.limit, self.multipv)
        values = np.empty(len(states))
        for k, (state, result) in enumerate(zip(states, results, strict=True)):
            mover = self.utility.mover_utility(result.lines[0], state.board)
            values[k] = mover if state.board.turn == chess.WHITE else 1.0 - mover
        return values
