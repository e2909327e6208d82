"""An engine as a policy, as a menu, and as an evaluation of positions.

An engine scores a position for the side to move, in centipawns or moves to mate. A utility here is White's
(player 0's), in [0, 1]. The value of a centipawn differs between engines and between versions of one, so
the conversion is always named: the paper's threshold, linear interpolation (as in its published code), or
the engine's own model of wins, draws and losses.

A policy plays in one of three ways:

* "softmax": the engine's k best moves with probabilities proportional to exp(cp / r): Softmax(cp / r) of the
  MultiPV scores of the last iteration that was finished, r in centipawns. As r goes to 0 it plays the best
  move; at r = 100 a move that loses a pawn is played 1/e as often.
* "bestmove": the engine's move, with its own options. An engine that draws its moves at random (Skill Level,
  UCI_LimitStrength) is asked several times, and its answers' frequencies are the probabilities. Of n answers,
  the frequency of a move with probability p has a standard error of sqrt(p (1 - p) / n), 0.11 at most with
  n = 20, and a move is missed altogether with probability (1 - p)^n.
* "game": its move when the game is played to it as match programs do: a new game once, then the moves so far
  at each of its turns. Its hash table stays, so its answer is a function of the game, not of the position.
  With a limit of nodes or of depth, and one thread, that is one move. With a move time it has a little
  randomness of its own, and `samples` games are played to it. It is sent the moves that were played at its
  earlier turns, whatever it would have played there.

Except for "game", positions go to the engine as EPD, without clocks and without history, so its answer is a
function of the position alone. So it may repeat a won game into a draw, and does in a quarter of those
that a book of the default leaves three pawns ahead. With repeats=False it plays like one that keeps score:
while it is ahead, it enters no position that has occurred, if another of its moves keeps it ahead.

Source: `precomputation`, section 5 and appendix, "Experimental Details", for the softmax, and
simplification 3 for utilities.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol

import chess
import chess.engine
import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Shown
from precomp_games.chess.engines import searches
from precomp_games.chess.engines.searches import MATE_CP, Line, Multipv, SearchLimit, SearchResult
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine, check_scores, searches_to_see
from precomp_games.chess.game import ChessGame, ChessState, UnfinishedStates, action_of, check_unfinished

# Python-chess's models, by Stockfish's versions.
_WDL_MODELS: dict[str, Any] = {"12": "sf12", "14": "sf14", "14.1": "sf14"}
_WDL_MODELS |= {version: f"sf{version}" for version in ("15", "15.1", "16", "16.1")}

Scale = Annotated[float, checks.Gt(0.0), checks.Lt(MATE_CP)]
"""Range of scales, in centipawns: between 0 and a mate's."""


def centipawns(line: Line) -> int:
    """Return a line's score in centipawns for the side to move; mate in n moves is `MATE_CP` - n."""
    if line.mate is None:
        assert line.cp is not None
        return line.cp
    return MATE_CP - line.mate if line.mate > 0 else -MATE_CP - line.mate


def pov_score(line: Line, side: chess.Color) -> chess.engine.PovScore:
    """Return a line's score, of a search in which `side` was to move."""
    score = chess.engine.Cp(line.cp or 0) if line.mate is None else chess.engine.Mate(line.mate)
    return chess.engine.PovScore(score, side)


class ScoreUtility(Protocol):
    """A conversion of scores to the expected result of the side to move."""

    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """Return the utility in [0, 1] of the side to move on `board`, whose best line is `line`."""


@dataclasses.dataclass(frozen=True)
class ThresholdUtility:
    """1 from `threshold_cp` centipawns on, 0 from -`threshold_cp` on, 1/2 between: the paper's text."""

    threshold_cp: Scale = 400.0

    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """Return the utility, see `ScoreUtility`."""
        score = centipawns(line)
        return 0.5 + 0.5 * (score >= self.threshold_cp) - 0.5 * (score <= -self.threshold_cp)


@dataclasses.dataclass(frozen=True)
class LinearUtility:
    """A straight line from 0 at -`scale_cp` centipawns to 1 at `scale_cp`."""

    scale_cp: Scale = 400.0

    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """Return the utility, see `ScoreUtility`."""
        return min(1.0, max(0.0, 0.5 + centipawns(line) / (2.0 * self.scale_cp)))


@dataclasses.dataclass(frozen=True)
class WdlUtility:
    """Expected score by the win-draw-loss model that belongs to the engine's version.

    Attributes:
      model: Python-chess's name of it, e.g. "sf15.1".
    """

    model: chess.engine.WdlModel

    def mover_utility(self, line: Line, board: chess.Board) -> float:
        """Return the utility, see `ScoreUtility`."""
        score = pov_score(line, board.turn).relative
        return score.wdl(model=self.model, ply=board.ply()).expectation()


@public
def score_utility(
    name: Annotated[str, checks.one_of(("threshold", "linear", "wdl"))], scale_cp: Scale, engine_id: str
) -> ScoreUtility:
    """Return the conversion called "threshold", "linear" or "wdl"; `scale_cp` is for the first two.

    Raises:
      ValueError: there is no model for the engine.
    """
    if name != "wdl":
        return ThresholdUtility(scale_cp) if name == "threshold" else LinearUtility(scale_cp)
    match = re.match(r"Stockfish (\d+(?:\.\d+)?)(?: |$)", engine_id)
    if not match or match[1] not in _WDL_MODELS:
        raise ArgumentError(
            f"expected Stockfish in one of the versions {', '.join(_WDL_MODELS)}, got {shown(engine_id)}; "
            "use another evaluation"
        )
    return WdlUtility(_WDL_MODELS[match[1]])


PLAYS = ("softmax", "bestmove", "game")
"""Ways in which an `EnginePolicy` may play."""
ANSWERS = ("bestmove", "game")
"""Kinds of play in which the engine's move is played, and its scores are not read."""
Plays = Annotated[str, checks.one_of(PLAYS)]
"""A kind of play, of `PLAYS`."""
SAMPLES = 20
"""Default number of searches for an engine that draws its moves."""


@public
def softmax(scores_cp: Sequence[float], temperature_cp: checks.PositiveFloat) -> npt.NDArray[np.float64]:
    """Return probabilities proportional to exp(score / temperature), both in centipawns."""
    scores = np.asarray(scores_cp, np.float64)
    # The best score is subtracted first: at r = 1e-6 the exponents would overflow otherwise.
    weights = np.exp((scores - scores.max()) / temperature_cp)
    return np.asarray(weights / weights.sum())


class EnginePolicy(Shown, openspiel_policy.Policy):
    """An engine's play: Softmax(cp / r) over its `top_k` best moves, or the move that it answers.

    Attributes:
      temperature_cp: r, in centipawns, positive; unused by "bestmove" and "game".
      top_k: number of moves, and the MultiPV of the searches; fewer if there are fewer legal moves. Unused by
        "bestmove" and "game".
      plays: one of `PLAYS`.
      of_history: whether the policy depends on a position's history beyond `position_key`.
      samples: for "bestmove" and "game", number of searches for an engine that draws its moves, by its
        options, or in a game by its clock; others are asked once.
      repeats: whether it depends on the position alone. Otherwise it depends on the history as well, in games
        with the threefold rule.
    """

    @public
    def __init__(
        self,
        game: ChessGame,
        engine: EngineLike,
        limit: SearchLimit,
        temperature_cp: checks.PositiveFloat,
        top_k: Multipv = 2,
        *,
        plays: Plays = "softmax",
        samples: searches.SomeSamples = SAMPLES,
        repeats: bool = True,
    ) -> None:
        """Make the policy.

        Raises:
          ValueError: an engine with options that make it play other moves than its scores say, where scores
            are read; or repeats=False without scores.
        """
        super().__init__(game, [0, 1])
        if plays not in ANSWERS:
            check_scores(engine, "engine")
        elif not repeats:
            raise ArgumentError('expected plays to be "softmax" with repeats=False')
        self.engine, self.limit = engine, limit
        self.temperature_cp, self.top_k, self.plays = temperature_cp, top_k, plays
        self.repeats, self.of_history = repeats, plays == "game"
        timed = plays == "game" and limit.movetime_ms is not None
        self.samples = samples if timed else searches_to_see(engine, samples)
        self._asked: tuple[Any, ...] = {
            "softmax": (limit, top_k),
            "bestmove": (limit, 1, self.samples),
            "game": (limit, 1, self.samples),
        }[plays]

    @public
    def action_probabilities_batch(self, states: UnfinishedStates) -> list[dict[int, float]]:
        """Return one {action: probability} for each state; the engine searches new positions."""
        asked = [state.epd for state in states]
        if self.plays == "game":
            asked = [searches.game_text(state.get_game().start_board, state.moves()) for state in states]
        results = self.engine.search(asked, *self._asked)
        return [self._row_of(state, result) for state, result in zip(states, results, strict=True)]

    def _row_of(self, state: ChessState, result: SearchResult) -> dict[int, float]:
        """Return {action: probability} after a search."""
        if self.plays in ANSWERS:
            odds = {move: count / result.samples for move, count in result.played}
        else:
            lines = result.lines[: self.top_k]
            if not self.repeats:
                lines = _going_on(state, lines)
            shares = softmax([centipawns(line) for line in lines], self.temperature_cp)
            odds = {line.move: float(p) for line, p in zip(lines, shares, strict=True)}
        return {action_of(chess.Move.from_uci(move)): p for move, p in odds.items()}

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} at one state; `player_id` can only be the side to move."""
        return self.action_probabilities_batch(check_unfinished([state], "state", player_id))[0]


def _going_on(state: ChessState, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return the lines by which a leading mover stays ahead in a new position; if none does, all lines."""
    if centipawns(lines[0]) <= 0:
        return lines
    ahead = (line for line in lines if centipawns(line) > 0)
    return tuple(line for line in ahead if not state.repeats(chess.Move.from_uci(line.move))) or lines


@public
@dataclasses.dataclass(frozen=True)
class EngineMenu:
    """An engine's best moves as candidate moves, one of which is memorized (`precomp_games.policies.rows`).

    Attributes:
      engine, limit, multipv: The search; one that has been made already is not made again.
      count: The most moves; no more than `multipv`.
      window_cp: Moves that are worse than the best one by more than this, in centipawns, are left out. 0: of
        several best moves, each is an entry.
      max_plies: Horizon of books: from this half-move on there is nothing to memorize.
    """

    engine: ScoringEngine
    limit: SearchLimit
    multipv: Multipv
    count: int
    window_cp: float
    max_plies: float = math.inf

    @public
    def entries_batch(self, states: UnfinishedStates) -> list[list[int]]:
        """Return the actions at each state, the best one first."""
        within = [state.ply < self.max_plies for state in states]
        asked = [state.epd for state, looks in zip(states, within, strict=True) if looks]
        results = iter(self.engine.search(asked, self.limit, self.multipv))
        lines = [next(results).lines if looks else () for looks in within]
        return [
            [
                action_of(chess.Move.from_uci(line.move))
                for line in each[: self.count]
                if centipawns(line) >= centipawns(each[0]) - self.window_cp
            ]
            for each in lines
        ]


@public
@dataclasses.dataclass(frozen=True)
class EngineEvaluation:
    """White's utility of positions by an engine's search, as `leaf_value` of a `HistoryTree`.

    Attributes:
      engine, limit, multipv: The search; one that a policy has made already is not made again.
      utility: The value of a score.
      beside: Further knowledge of a state, for its mover, which a `CalibratedUtility` adds to its logit.
    """

    engine: ScoringEngine
    limit: SearchLimit
    multipv: Multipv
    utility: ScoreUtility
    beside: Callable[[ChessState], float] | None = None

    def __post_init__(self) -> None:
        """Check the utility."""
        if isinstance(self.utility, type) or not callable(getattr(self.utility, "mover_utility", None)):
            raise ArgumentError(f"expected utility to be a LinearUtility or alike, got {shown(self.utility)}")

    @public
    def evaluate_batch(self, states: UnfinishedStates) -> npt.NDArray[np.float64]:
        """Return float64[n]: utility of player 0, White, in [0, 1]."""
        results = self.engine.search([state.epd for state in states], self.limit, self.multipv)
        utility: Any = self.utility
        values = np.empty(len(states))
        for k, (state, result) in enumerate(zip(states, results, strict=True)):
            beside = () if self.beside is None else (self.beside(state),)
            mover = utility.mover_utility(result.lines[0], state.board, *beside)
            values[k] = mover if state.board.turn == chess.WHITE else 1.0 - mover
        return values


def check_opponents(
    temperature: Any, weights: Any, plays: Any
) -> tuple[float | tuple[float, ...], tuple[float, ...]]:
    """Check `opponent_temperature_cp` and `opponent_weights` of settings: one opponent, or several.

    Raises:
      ValueError: they are not positive numbers, as many of one as of the other; or there are several for an
        opponent that does not use them.
    """
    name = "opponent_temperature_cp"
    several = isinstance(temperature, list | tuple) and len(temperature) > 0
    given = list(temperature) if several else [temperature]
    checked = tuple(
        checks.check_number(r, f"{name}[{k}]" if several else name, above=0.0) for k, r in enumerate(given)
    )
    if len(given) > 1 and plays in ANSWERS:
        raise ArgumentError(
            f'expected one {name} with opponent_plays="{plays}", which has no use for it, got '
            f"{shown(temperature)}"
        )
    if not isinstance(weights, list | tuple) or len(weights) not in (0, len(given)):
        raise ArgumentError(
            f"expected opponent_weights to be () or {len(given)} numbers, one for each {name}, got "
            f"{shown(weights)}"
        )
    shares = (checks.check_number(w, f"opponent_weights[{k}]", above=0.0) for k, w in enumerate(weights))
    return checked if several else checked[0], tuple(shares)
