"""From an engine's scores to utilities, and to numbers that a softmax can take.

An engine scores a position for the side to move, in centipawns or moves to mate. A utility here is White's
(player 0's), in [0, 1]. What a centipawn is worth differs between engines and between versions of one, so
which conversion is used is always named: the paper's threshold, linear interpolation (what its published
code does), or the engine's own model of wins, draws and losses.

Source: `precomputation`, appendix, "Experimental Details", simplification 3.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Protocol

import chess
import chess.engine

from precomp_games._support.validation import ArgumentError, Gt, Lt, one_of, public, shown
from precomp_games.chess.engines.searches import MATE_CP, Line

# Python-chess's models, by Stockfish's versions.
_WDL_MODELS: dict[str, chess.engine.WdlModel] = {
    "12": "sf12",
    "14": "sf14",
    "14.1": "sf14",
    "15": "sf15",
    "15.1": "sf15.1",
    "16": "sf16",
    "16.1": "sf16.1",
}

Scale = Annotated[float, Gt(0.0), Lt(MATE_CP)]
"""Centipawns between 0 and a mate's."""


def centipawns(line: Line) -> int:
    """A line's score in centipawns for the side to move, mates as `MATE_CP` less the moves to it."""
    if line.mate is None:
        assert line.cp is not None
        return line.cp
    return MATE_CP - line.mate if line.mate > 0 else -MATE_CP - line.mate


def pov_score(line: Line, side: chess.Color) -> chess.engine.PovScore:
    """A line's score, of a search in which `side` was to move."""
    score = chess.engine.Cp(line.cp or 0) if line.mate is None else chess.engine.Mate(line.mate)
    return chess.engine.PovScore(score, side)


class ScoreUtility(Protocol):
    """Turns a score into the expected result of the side to move."""

    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """Utility in [0, 1] of the side to move on `board`, whose best line is `line`."""


@public
@dataclasses.dataclass(frozen=True)
class ThresholdUtility:
    """1 from `threshold_cp` centipawns on, 0 from -`threshold_cp` on, 1/2 between: the paper's text."""

    threshold_cp: Scale = 400.0

    @public
    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """See `ScoreUtility`."""
        score = centipawns(line)
        return 0.5 + 0.5 * (score >= self.threshold_cp) - 0.5 * (score <= -self.threshold_cp)


@public
@dataclasses.dataclass(frozen=True)
class LinearUtility:
    """A straight line from 0 at -`scale_cp` centipawns to 1 at `scale_cp`."""

    scale_cp: Scale = 400.0

    @public
    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """See `ScoreUtility`."""
        return min(1.0, max(0.0, 0.5 + centipawns(line) / (2.0 * self.scale_cp)))


@public
@dataclasses.dataclass(frozen=True)
class WdlUtility:
    """Expected score by the win-draw-loss model that belongs to the engine's version.

    Attributes:
      model: Python-chess's name of it, e.g. "sf15.1".
    """

    model: chess.engine.WdlModel

    @classmethod
    @public
    def for_engine(cls, engine_id: str) -> WdlUtility:
        """The model of an engine by its UCI name, e.g. "Stockfish 15.1".

        Raises:
          ValueError: python-chess has no model of that engine's version.
        """
        match = re.match(r"Stockfish (\d+(?:\.\d+)?)(?: |$)", engine_id)
        if not match or match[1] not in _WDL_MODELS:
            raise ArgumentError(
                "expected Stockfish in one of the versions "
                f"{', '.join(_WDL_MODELS)}, got {shown(engine_id)}; use another evaluation"
            )
        return cls(_WDL_MODELS[match[1]])

    @public
    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """See `ScoreUtility`."""
        score = pov_score(line, board.turn).relative
        return score.wdl(model=self.model, ply=board.ply()).expectation()


@public
def score_utility(
    name: Annotated[str, one_of(("threshold", "linear", "wdl"))], scale_cp: Scale, engine_id: str
) -> ScoreUtility:
    """The conversion called "threshold", "linear" or "wdl"; `scale_cp` serves the first two.

    Raises:
      ValueError: another name, a scale that is not positive, or no model for the engine.
    """
    if name == "wdl":
        return WdlUtility.for_engine(engine_id)
    return ThresholdUtility(scale_cp) if name == "threshold" else LinearUtility(scale_cp)
