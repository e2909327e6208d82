"""What known moves are worth on the clock, beside what they are worth on the board.

Who knows a position plays in a second what others think about. Where play leaves the book after a history h,
the side that prepared has saved

    s(h) = sum over its known positions before h of (expected seconds there - 1),

and its score there has, on the logit, c log((T + s(h)) / T) more, with T what both sides are expected to have
left (`clock_times`) and c what rated games say of clocks (`people_values`). All positions before h are known,
since what is known is closed under predecessors, so that this is a value of stopping at h, which Algorithm 1
takes as any other (the paper's Example 2, on real numbers).

What is exact, given the fits, is the sum over known positions and its part in a book's value. What is not:
that position and clock add up on the logit, that the other side spends what is usual whatever is played, and
c itself, which is what a regression finds (see `people_values`).
"""

from __future__ import annotations

import dataclasses
import math

from precomp_games.chess.game import ChessState
from precomp_games.chess.model.clock_times import ClockTimes
from precomp_games.chess.model.people_values import PeopleUtility

_UNTIMED = 2  # half-moves, before which no clock runs


@dataclasses.dataclass(frozen=True)
class SavedTime:
    """The time that a side saves by knowing all of its positions up to a history.

    Attributes:
      times: what people spend.
      utility: what clocks are worth.
      player: who knows.
    """

    times: ClockTimes
    utility: PeopleUtility
    player: int
    _known: dict[tuple[int, ...], float] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def seconds(self, state: ChessState) -> float:
        """What the player has saved up to a state."""
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
        """What the player scores from a state where it is to move, by its score for the position alone."""
        if not 0.0 < score < 1.0:  # the game is over
            return score
        left = self.times.clock(state.ply)
        more = self.utility.of_clocks(left, left, self.seconds(state))
        return 1.0 / (1.0 + (1.0 - score) / score * math.exp(-more))
