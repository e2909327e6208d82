"""Games that both players' policies play on, many at once: each by itself, or counted together.

`play_on` plays each game by itself, with a random stream of its own, for callers that need to know its
course: a match, or games from which values of positions are learned. Which games are under way together
changes none of them.

`Rollouts` counts how many of the games from one position take each action, which is all that a mean needs: a
multinomial draw, which has the same distribution. The caller decides how deep games go, in which order, and
from which random streams. Positions are recognized, so that sigma is asked once about each.

`mean_interval` bounds how far the mean of such games may be from their expectation. It must not be too
sure of itself: a hundred wins in a row do not show that every game will be won. The table compares intervals
by their coverage, the share of samples in which the interval contains the expectation. For each interval it
has the least coverage over expectations from 0.5 to 0.998, by enumeration of all results of 100 games. The
columns differ in the share of the lost points that is lost by draws:

    by draws                          0      0.3    0.7    1
    two won, two lost added           0.94   0.95   0.95   0.93
    1.96 standard errors              0.18   0.23   0.29   0.33
    Wilson, variance p (1 - p)        0.92   0.95   0.97   0.98
    Wilson, less what draws lack      0.92   0.88   0.75   0.33
    Jeffreys, draws half won          0.91   0.95   0.98   0.99
    Clopper and Pearson, the same     0.95   0.97   0.99   1.00

The library uses the first one. For 20 games its coverage is 0.94, 0.96, 0.95 and 0.92. It needs nothing but a
mean and a variance, so it also serves where something that was known before is subtracted from the scores.

Cost: policies are asked about all games under way at once, so that an engine pool is busy. Where time is
limited, fewer are, so that some end.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.config import bar
from precomp_games._support.deadlines import OutOfTimeError, deadline, limited
from precomp_games._support.game_facts import TERMINAL, GameFacts
from precomp_games.policies import rows

_NORMAL_95 = 1.959963984540054
_GAMES_AT_ONCE = 8  # of one whose play depends on the game: an engine is asked about it turn by turn
_IN_TIME = max(4, 2 * (os.cpu_count() or 1))  # games under way at once where time is limited
_LEAST = 2  # games that are played to their ends whatever the time


def play_on(
    states: Sequence[Any],
    policies: tuple[rows.PolicyLike | None, rows.PolicyLike | None],
    streams: Sequence[np.random.Generator],
    *,
    min_probability: float,
    batch: int = 256,
    visit: Callable[[int, Any], Any] | None = None,
) -> list[Any]:
    """Play a game on from each state; return the states in which they end, in the order of `states`.

    Where time is up (`deadline`), these are the first games, up to one that has not ended by then, or two.

    Args:
      states: where games go on from; they stay as they are.
      policies: the players' policies.
      streams: a game's own each.
      min_probability: see `policy_rows`.
      batch: the number of games under way at once; fewer where a policy declares that it is `of_history`.
      visit: called with (which game, the state) wherever a player or chance is to move, before it does.

    Raises:
      ValueError: a policy does not answer as it should.
    """
    asks = rows.as_batch_policies(policies, "policies")
    if any(map(rows.is_of_history, policies)):
        batch = min(batch, _GAMES_AT_ONCE)
    if (until := deadline()) is not None and math.isfinite(until.end):
        batch = min(batch, _IN_TIME)
    ends: dict[int, Any] = {}  # by the game's number
    under_way: dict[int, Any] = {}
    begun = 0
    with bar("Playing", "games", len(states)) as show:
        while under_way or begun < len(states):
            while begun < len(states) and len(under_way) < batch:
                under_way[begun] = states[begun].clone()
                begun += 1
            for number in [number for number, state in under_way.items() if state.is_terminal()]:
                ends[number] = under_way.pop(number)
            if visit is not None:
                for number, state in under_way.items():
                    visit(number, state)
            try:
                with limited(until):
                    moving = list(under_way.values())
                    played = rows.movers_rows(moving, asks, name="policy", min_probability=min_probability)
            except OutOfTimeError:
                until, begun = None, len(states)
                under_way = {number: state for number, state in under_way.items() if number < _LEAST}
                continue
            spans = itertools.pairwise(played.start.tolist())
            for (number, state), (first, end) in zip(under_way.items(), spans, strict=True):
                cumulative = np.cumsum(played.probability[first:end])
                drawn = np.searchsorted(cumulative, streams[number].random() * cumulative[-1], side="right")
                state.apply_action(int(played.action[min(first + drawn, end - 1)]))
            show(len(ends))
    return [ends[number] for number in itertools.takewhile(ends.__contains__, range(len(states)))]


@dataclasses.dataclass(eq=False, slots=True)
class RolloutState:
    """A state that games have come to.

    Attributes:
      state: The base game's.
      returns: Each player's utility where the game is over, else None.
      actions, probability: The distribution of sigma, or chance, here; None until it is asked.
      following: The state after each action, None where no game has gone.
    """

    state: Any
    returns: tuple[float, float] | None = None
    actions: Sequence[int] = ()
    probability: np.ndarray | None = None
    following: list[RolloutState | None] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Rollouts:
    """Games of one sigma.

    Attributes:
      sigma: Each player's policy, None where it is never asked.
      position: Equal where states are the same; None: they never are.
      min_probability: See `policy_rows`.
      alike: Called with states and sigma's answers, see `LeafContext`.
      known: The states met so far, by position. Without it, states that come are new ones.
      facts: Of the game; None before the first state.
    """

    sigma: rows.BatchPolicies
    position: Callable[[Any], Hashable] | None
    min_probability: float
    alike: Callable[[Sequence[Any], rows.PolicyRows], None] | None = None
    known: dict[Hashable, RolloutState] = dataclasses.field(default_factory=dict)
    facts: GameFacts | None = None

    def at(self, state: Any) -> RolloutState:
        """Return the statistics of a state; a new one has no games."""
        if self.position is None:
            return self._new(state)
        key = self.position(state)
        if key not in self.known:
            self.known[key] = self._new(state)
        return self.known[key]

    def _new(self, state: Any) -> RolloutState:
        if self.facts is None:
            self.facts = GameFacts(state.get_game(), bounded=False)
        over = self.facts.mover(state) == TERMINAL
        return RolloutState(state, self.facts.utilities(state) if over else None)

    def ask(self, states: Iterable[RolloutState]) -> None:
        """Ask about those of distinct states where the game goes on, in one batch a player.

        Raises:
          ValueError: a policy is missing or its answer is wrong.
        """
        asked = [here for here in states if here.returns is None and here.probability is None]
        states = [here.state for here in asked]
        played = rows.movers_rows(states, self.sigma, name="sigma", min_probability=self.min_probability)
        if self.alike is not None:
            self.alike(states, played)
        actions = played.action.tolist()
        for here, (first, end) in zip(asked, itertools.pairwise(played.start.tolist()), strict=True):
            here.actions, here.probability = actions[first:end], played.probability[first:end]
            here.following = [None] * (end - first)

    def step(
        self, here: RolloutState, games: int, stream: np.random.Generator
    ) -> list[tuple[RolloutState, int]]:
        """Play one move of so many games that go on from a state; return how many come to which."""
        if here.probability is None:
            self.ask([here])
        assert here.probability is not None
        reached = []
        for k, count in enumerate(stream.multinomial(games, here.probability).tolist()):
            if count:
                following = here.following[k] or self.at(here.state.child(here.actions[k]))
                here.following[k] = following
                reached.append((following, count))
        return reached


def mean_interval(values: npt.NDArray[np.float64], least: float, most: float) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent values, whose number was fixed before any was seen.

    Normal, with two values of each end of the range added (Agresti and Coull's "plus four" for proportions).

    Args:
      values: float64[n].
      least: where the range of values begins.
      most: where it ends.
    """
    added = np.append(values, [least, most, least, most])
    mean, half = float(added.mean()), _NORMAL_95 * float(added.std(ddof=1)) / math.sqrt(len(added))
    return max(least, mean - half), min(most, mean + half)
