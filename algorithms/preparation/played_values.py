"""What stopping is worth, learned from games: best linear estimates by position.

An evaluation is an opinion about games, and what is picked for its value is picked for the evaluation's
errors too. Games are observations. With a prior mean f(x) that is worth n0 games, and n games from or through
position x of total score T,

    V(x) = (n0 clip(f(x) + rho d(y)) + T) / (n0 + n),        d = V - f,

where y is the player's last turn among the ancestors of x: what was too good, or too bad, about y is likely
to be so about x. A game counts for the first turns of the player's that it passes, since later ones say
little about where it began.

What V is: with rho = 0, and true values that scatter around f with variance v / n0, v that of a game around
its position's, V is of all linear functions of T the one with the least squared error. It is what is expected
of x, given its games, if the prior is conjugate to them (a Beta distribution and wins and losses), and in
general only then: where a position is worth 0.6 or 1, equally likely, n0 is 3, and after four wins in five
games V is 0.8, though a loss shows that it is worth 0.6. So what is picked for its V may still be worth less,
and games that had no part in picking say how much.

What it leaves out: a game that passes y and x counts for x twice, by T and through d(y), which is no
posterior of anything, but lets what was learned of a line reach positions of it without games. One game
counts for up to twelve positions: each has an estimate with the error that was said, but their errors go
together, and do not average out over a line as those of separate games would. A wrong n0 costs little: 4.8
in place of 3.3 adds 3.5 % to the squared error at most, whatever n is.

Source: ours. Cost: one evaluation per position, and a table lookup per state after that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games.policies.leaf_values import evaluated

from .partial_tree import PreparationProblem

_MARGIN = 0.005  # no prior mean is nearer to the ends, of the range of utilities


class PlayedValues:
    """Best linear estimates, as an evaluator of `BestFirstSearch`.

    Attributes:
      prior_games: n0.
      inherited: rho.
      doubt: How many standard deviations are taken off an estimate; negative, for hope: added.
    """

    def __init__(
        self,
        evaluator: Any,
        problem: PreparationProblem,
        *,
        prior_games: float,
        inherited: float,
        doubt: float = 0.0,
    ) -> None:
        """Starts without games.

        Args:
          evaluator: the prior mean, see `best_first_precomputation`.
          problem: whose player's utilities `credit` and `value` speak of, and which states are the same.
          prior_games: n0, positive.
          inherited: rho.
          doubt: see `deviation`.
        """
        self.prior_games, self.inherited, self.doubt = prior_games, inherited, doubt
        self._evaluator, self._player, self._total = evaluator, problem.player, problem.total
        self._low, self._high = problem.low, problem.high
        self._position = problem.position_key or _history
        self._prior: dict[Hashable, float] = {}
        self._games: dict[Hashable, int] = {}
        self._scores: dict[Hashable, float] = {}
        self._shift: dict[tuple[int, ...], float] = {}  # d, by history

    def evaluate_batch(self, states: Sequence[Any]) -> npt.NDArray[np.float64]:
        """float64[n]: player 0's. States that come before others must come no later than these."""
        fresh: dict[Hashable, Any] = {}
        for state in states:
            if self._position(state) not in self._prior:
                fresh.setdefault(self._position(state), state)
        values = evaluated(self._evaluator, list(fresh.values()), "evaluator")
        for name, value in zip(fresh, values.tolist(), strict=True):
            self._prior[name] = self._own(value)
        return np.array([self._own(self._learn(state)) for state in states])

    def _own(self, value: float) -> float:
        """From player 0's utility to the player's, and back."""
        return value if self._player == 0 else self._total - value

    def _learn(self, state: Any) -> float:
        history, name = tuple(state.history()), self._position(state)
        shift = self._inherited_shift(history)
        margin = _MARGIN * (self._high - self._low)
        prior = self._prior[name]
        mean = min(max(prior + shift, self._low + margin), self._high - margin)
        total = self.prior_games * mean + self._scores.get(name, 0.0)
        games = self.games(state)
        value = total / (self.prior_games + games)
        self._shift[history] = value - prior
        return min(max(value - self.doubt * self.deviation(value, games), self._low), self._high)

    def _inherited_shift(self, history: tuple[int, ...]) -> float:
        """What d of the last turn before says of a history."""
        before = (history[:k] for k in range(len(history) - 1, -1, -1))
        return next((self.inherited * self._shift[turn] for turn in before if turn in self._shift), 0.0)

    def games(self, state: Any) -> int:
        """How many games have passed a position."""
        return self._games.get(self._position(state), 0)

    def credit(self, states: Sequence[Any], scores: Sequence[float]) -> None:
        """Counts a game for positions that it has passed, with its score for each, the player's utility."""
        counted = set[Hashable]()
        for name, score in zip(map(self._position, states), scores, strict=False):
            if name not in counted:
                counted.add(name)
                self._games[name] = self._games.get(name, 0) + 1
                self._scores[name] = self._scores.get(name, 0.0) + score

    def deviation(self, value: float, games: int) -> float:
        """The standard deviation of what a position of such value is worth, seen in so many games.

        As if a Beta distribution were behind it: a guess, which says where to play, and what to doubt.
        """
        spread = max((value - self._low) * (self._high - value), 0.01 * (self._high - self._low) ** 2)
        return math.sqrt(spread / (self.prior_games + games + 1.0))


def _history(state: Any) -> Hashable:
    return tuple(state.history())
