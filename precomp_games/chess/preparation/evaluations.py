"""What stopped play may be valued by, and what the score of a book is then called.

A kind of evaluation says what the leaves of a preparation are worth, how far that value looks, and whose
opinion a book's score is. Only games that are played give an expected score: roll-outs, and the matches that
correct a fitted evaluation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from precomp_games.chess.evaluation.policies import EngineEvaluation
from precomp_games.chess.evaluation.scores import ScoreUtility, score_utility
from precomp_games.chess.game import RULES_OF_CHESS
from precomp_games.chess.preparation.model_files import named_calibration
from precomp_games.policies.leaf_values import RolloutValues

if TYPE_CHECKING:
    from precomp_games.chess.engines.stored_engine import EngineLike
    from precomp_games.chess.preparation.settings import PreparationSettings


EXPECTED_SCORE = "Expected score"
"""What the score of a book is called where games say so."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A kind of evaluation: the analyst's score of a position, as a utility.

    Attributes:
      score_name: what a book's score by it is called.
      owner: whose opinion that is, in words; "" where it is none.
      fitted: whether it was fitted to games by the rules of chess, which more games may then correct.
    """

    score_name: str = "Analyst's score"
    owner: str = "the analyst's evaluations"
    fitted: bool = False

    def leaf_value(self, settings: PreparationSettings, analyst: EngineLike) -> Any:
        """What stopped play is worth to White by these settings.

        Raises:
          ValueError: there is no such value of this engine, or the settings name a file and are not trusted.
        """
        utility = self._utility(settings, analyst)
        return EngineEvaluation(analyst, settings.analyst_limit, settings.multipv, utility)

    def _utility(self, settings: PreparationSettings, analyst: EngineLike) -> ScoreUtility:
        return score_utility(settings.evaluation, settings.scale_cp, analyst.engine_id)

    def horizon(self, settings: PreparationSettings) -> int:
        """The half-move from which on such values count a draw."""
        return settings.max_plies

    def leaf_value_at_exits(self, leaf_value: Any) -> Any:
        """What is promised where games leave a book; None where that is known of no single position."""
        return leaf_value

    def misfits(self, settings: PreparationSettings, leaf_value: Any, engine_id: str) -> list[str]:
        """Lines that say where it was fitted to something else than these settings."""
        return []

    def note(self) -> str:
        """A line that says what such scores are not; "" of expected scores."""
        if not self.owner:
            return ""
        return (
            f"Scores are {self.owner} of where lines leave the book, not results of games, which\n"
            'come out lower: see "What games score" in docs/chess_measured.md.\n'
        )


class _Fitted(Evaluation):
    """A function of the analyst's score that was fitted to games by the rules of chess."""

    def _utility(self, settings: PreparationSettings, analyst: EngineLike) -> ScoreUtility:
        return named_calibration(settings)

    def horizon(self, settings: PreparationSettings) -> int:
        return int(RULES_OF_CHESS["max_plies"])  # no horizon of a preparation ends the games

    def misfits(self, settings: PreparationSettings, leaf_value: Any, engine_id: str) -> list[str]:
        return list(leaf_value.utility.misfits(settings, engine_id))


class _RollOuts(Evaluation):
    """The mean of games that both sides' shallow policies play on."""

    def leaf_value(self, settings: PreparationSettings, analyst: EngineLike) -> Any:
        return RolloutValues(
            epsilon=settings.rollout_epsilon, delta=settings.rollout_delta, seed=settings.seed
        )

    def leaf_value_at_exits(self, leaf_value: Any) -> Any:
        return None


_SCORE = Evaluation()
EVALUATIONS: Mapping[str, Evaluation] = {
    "linear": _SCORE,
    "threshold": _SCORE,
    "wdl": _SCORE,
    "calibrated": _Fitted("Fitted score", "a fitted evaluation's", fitted=True),
    "rollouts": _RollOuts(EXPECTED_SCORE, ""),
}
"""The kinds by name: see `score_utility`, `CalibratedUtility` and `RolloutValues`."""
