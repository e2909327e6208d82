"""The value of memorized moves on the clock, beside their value on the board.

A player who knows a position plays in a second where others think. If play leaves the book after a history h,
the side that prepared has saved

    s(h) = sum over its known positions before h of (expected seconds there - 1),

and c log((T + s(h)) / T) is added to the logit of its score there, with T the time that both sides are
expected to have left (`clock_times`) and c the effect of clocks in rated games (`people_values`). All
positions before h are known, since a book is closed under predecessors. So this is a leaf value at h, which
Algorithm 1 takes as any other (the paper's Example 2, on real numbers).

Exact, given the fits, are the sum over known positions and its part in a book's value. Assumed are that
position and clock add up on the logit, that the other side spends the usual time whatever is played, and c
itself, which is a regression's (see `people_values`).
"""

from __future__ import annotations

import dataclasses
import math

from precomp_games.chess.game import ChessState
from precomp_games.chess.model.clock_times import ClockTimes
from precomp_games.chess.model.people_values import PeopleUtility

_UNTIMED = 2  # half-moves before which no clock runs


@dataclasses.dataclass(frozen=True)
class SavedTime:
    """The time that a side saves by knowing all of its positions up to a history.

    Attributes:
      times: seconds that people spend.
      utility: the effect of clocks.
      player: the player who knows the positions.
    """

    times: ClockTimes
    utility: PeopleUtility
    player: int
    _known: dict[tuple[int, ...], float] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def seconds(self, state: ChessState) -> float:
        """Return the seconds that the player has saved up to a state."""
        history = tuple(state.history())
        known = len(history)
        while known and history[:known] not in self._known:
            known -= 1
        here = state.get_game().new_initial_state()
        for action in history[:known]:
            here.apply_action(action)
        saved = self._known.get(history[:known], 0.0)
        for ply in range(known, len(history)):
            if here.current_player() == self.player and ply >= _UNTIMED:
                saved += self.times.saved(ply, len(here.legal_actions()))
            here.apply_action(history[ply])
            self._known[history[: ply + 1]] = saved
        return saved

    def with_time(self, score: float, state: ChessState) -> float:
        """Return the player's score at a state where it moves, given its score for the position alone."""
        if not 0.0 < score < 1.0:  # the game is over
            return score
        left = self.times.clock(state.ply)
        more = self.utility.of_clocks(left, left, self.seconds(state))
        return 1.0 / (1.0 + (1.0 - score) / score * math.exp(-more))
