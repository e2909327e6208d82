"""What positions are worth against a family of opponents, by the analyst's score and who it may be.

A calibrated evaluation (`precomp_games.chess.evaluation.calibration`) was fitted to one opponent, who
searches as long as we do. Against a stronger one the same score wins less often. Here the expected score of a
position is, with p_k the posterior of member k after the moves so far,

    P = sum_k p_k E(a + b cp / 400 + c sign(m) ln(1 + |m|) + d ln(n / n_k) + e ln(r_k / 10) + f (k_k - 2)),

E and the first terms being the calibration's, n our own limit of nodes, and n_k, r_k and k_k the member's.
Of a member that is like the opponent of the calibration, the other three terms vanish.

The six coefficients start at the calibration's, and at what matches between members have shown, and are
fitted to the games of a preparation as these are played: what is picked is picked for the errors of the fit,
and in the next round the fit has seen what came of that. A fit is the most probable one, with a Gaussian
prior around the start. A game counts once, divided among the turns of ours that it passed. Who the opponent
was is not asked, so the sum over members stands inside of the likelihood.

Source: ours. Cost: the posteriors of the positions, and a fit takes some fifty passes over the games' turns,
with as many sigmoids for each as there are members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import chess
import numpy as np
import numpy.typing as npt
import scipy  # which imports `optimize` when that is used: half a second

from precomp_games._support.arguments import Player, PositiveInt, public
from precomp_games.chess.engines.searches import Asked, Line, Multipv, SearchLimit
from precomp_games.chess.engines.stored_engine import ScoringEngine, searched
from precomp_games.chess.evaluation.calibration import (
    SPREAD,
    CalibratedUtility,
    expected_score,
    material,
    score_features,
)
from precomp_games.chess.evaluation.policies import UnfinishedStates
from precomp_games.chess.game import ChessState, action_of
from precomp_games.chess.opponents.family import EngineFamily

Floats = npt.NDArray[np.float64]

_OF_MEMBERS = (1.3, 0.3, 0.1)
"""d, e and f to begin with."""
_SPREAD = np.array([*SPREAD, 0.6, 0.3, 0.3])
"""How far each coefficient may be from where it begins: standard deviations of the prior."""


@dataclasses.dataclass(frozen=True)
class FamilyEvaluation:
    """White's utility of positions, as an evaluation that learns from games (`Evaluator`).

    Attributes:
      engine, limit, multipv: The analyst's search.
      utility: The calibration that a, b and c begin with.
      family: Who the opponent may be.
      player: Who prepares, 0 White, 1 Black.
      own_nodes: n.
      coefficients: a to f; None: those to begin with.
    """

    engine: ScoringEngine
    limit: SearchLimit
    multipv: Multipv
    utility: CalibratedUtility
    family: EngineFamily
    player: Player
    own_nodes: PositiveInt
    coefficients: tuple[float, ...] | None = None
    _known: dict[str, tuple[list[int], Floats]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # `_moves`, by position

    of_history = True

    @property
    def _fit(self) -> Floats:
        return np.array(self.coefficients or (*self.utility.coefficients, *_OF_MEMBERS))

    @public
    def evaluate_batch(self, states: UnfinishedStates) -> Floats:
        """float64[n]: utility of White, in (0, 1), of positions in which the preparing side is to move.

        Raises:
          ValueError: what is no state of chess, or one where the game is over.
        """
        if not states:
            return np.zeros(0)
        own = self._predicted(self._fit, *self._features(states))[0]
        return own if self.player == 0 else 1.0 - own

    @public
    def promised_batch(self, states: UnfinishedStates) -> list[dict[int, float]]:
        """White's utility that moves promise by their scores: ours by the analyst's, replies by the family's.

        Replies are not looked at again: what they are worth is what the largest of the searches says that
        also say how likely they are.

        Raises:
          ValueError: what is no state of chess, or one where the game is over.
        """
        if not states:
            return []
        moves = self._moves(states)
        counts = [len(actions) for actions, _ in moves]
        posterior = np.repeat(self.family.posteriors(states, 1 - self.player), counts, axis=0)
        own = self._predicted(self._fit, np.concatenate([rows for _, rows in moves]), posterior)[0]
        white = iter((own if self.player == 0 else 1.0 - own).tolist())
        return [{action: next(white) for action in actions} for actions, _ in moves]

    @public
    def learned(self, games: Sequence[tuple[Sequence[ChessState], float]]) -> FamilyEvaluation:
        """The evaluation that has seen games.

        Args:
          games: the states in which the preparing side was to move, and White's score, of each.

        Raises:
          ValueError: what is no state of chess, or one where the game is over.
        """
        passed = [(state, score, 1.0 / len(states)) for states, score in games for state in states]
        if not passed:
            return self
        states, scores, weights = zip(*passed, strict=True)
        positions, posterior = self._features(states)
        won = np.array(scores) if self.player == 0 else 1.0 - np.array(scores)
        weight = np.array(weights)
        start = np.array((*self.utility.coefficients, *_OF_MEMBERS))

        def loss(fit: Floats) -> tuple[float, Floats]:
            p, slopes = self._predicted(fit, positions, posterior)
            likelihood = weight @ (won * np.log(p) + (1.0 - won) * np.log1p(-p))
            gradient = (weight * (won / p - (1.0 - won) / (1.0 - p))) @ slopes
            off = (fit - start) / _SPREAD
            return float(0.5 * off @ off - likelihood), off / _SPREAD - gradient

        best = scipy.optimize.minimize(loss, self._fit, method="L-BFGS-B", jac=True)
        made = dataclasses.replace(self, coefficients=tuple(best.x.tolist()))
        made._known.update(self._known)  # which no coefficient changes
        return made

    def _moves(self, states: Sequence[ChessState]) -> list[tuple[list[int], Floats]]:
        """([the actions that a search speaks of], float64[n, 3]: `_position` of each), of each state."""
        fresh = {state.epd: state for state in states if state.epd not in self._known}.values()
        most = max(member.top_k for member in self.family.members)
        largest = SearchLimit(nodes=self.family.members[-1].nodes)
        ours, replies = (self.limit, self.multipv), (largest, most, 0, True)
        for engine, how, replied in ((self.engine, ours, False), (self.family.engine, replies, True)):
            of = [state for state in fresh if (state.current_player() != self.player) == replied]
            results = searched(engine, [Asked(state.epd, *how) for state in of])
            for state, result in zip(of, results, strict=True):
                rows = [self._position(state, line, replied=replied) for line in result.lines]
                actions = [action_of(chess.Move.from_uci(line.move)) for line in result.lines]
                self._known[state.epd] = actions, np.array(rows)
        return [self._known[state.epd] for state in states]

    def _features(self, states: Sequence[ChessState]) -> tuple[Floats, Floats]:
        """(float64[n, 3] of positions, float64[n, K]: the posterior of members)."""
        results = self.engine.search([state.epd for state in states], self.limit, self.multipv)
        rows = [self._position(state, result.lines[0]) for state, result in zip(states, results, strict=True)]
        return np.array(rows), self.family.posteriors(states, 1 - self.player)

    def _position(
        self, state: ChessState, line: Line, *, replied: bool = False
    ) -> tuple[float, float, float]:
        """What a, b and c are multiplied by, by a line from a state: of it, or of what its move leads to."""
        if replied:
            board = state.board.copy(stack=False)
            board.push(chess.Move.from_uci(line.move))
            lead = -material(board)
        else:
            lead = material(state.board)
        one, cp, ahead = score_features(line, lead)
        sign = 1.0 if (state.board.turn == chess.WHITE) == (self.player == 0) else -1.0
        return one, sign * cp, sign * ahead

    @property
    def _members(self) -> Floats:
        """float64[K, 3]: what d, e and f are multiplied by."""
        each = np.array(self.family.members, np.float64)
        return np.stack(
            [np.log(self.own_nodes / each[:, 0]), np.log(each[:, 1] / 10.0), each[:, 2] - 2.0], axis=1
        )

    def _predicted(self, fit: Floats, positions: Floats, posterior: Floats) -> tuple[Floats, Floats]:
        """(float64[n]: P, float64[n, 6]: how it grows with each coefficient)."""
        members = self._members
        each, slope = expected_score((positions @ fit[:3])[:, None] + (members @ fit[3:])[None, :])
        moved = posterior * slope
        return (posterior * each).sum(axis=1), np.concatenate(
            [moved.sum(axis=1)[:, None] * positions, moved @ members], axis=1
        )
