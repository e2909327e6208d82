"""Single games that both players' policies play on, many at once, each with a random stream of its own.

`rollouts` counts how many of the games from one position take each action, which is all that a mean needs.
Here each game is played by itself, for callers that need to know its course: a match, or games from which
values of positions are learned. Which games are under way together changes none of them.

`mean_interval` says how far the mean of such games may be from their expectation. It must not be too sure of
itself: a hundred wins in a row do not show that every game will be won. The table compares intervals by their
coverage, the share of samples in which the interval contains the expectation. For each interval it has the
least coverage over expectations from 0.5 to 0.998, by enumeration of all results of 100 games. The columns
differ in the share of the lost points that is lost by draws:

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

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.config import bar
from precomp_games._support.deadlines import OutOfTimeError, deadline, limited
from precomp_games.policies.rows import PolicyLike, as_batch_policies, is_of_history, movers_rows

_NORMAL_95 = 1.959963984540054
_GAMES_AT_ONCE = 8  # of one whose play depends on the game: an engine is asked about it turn by turn
_IN_TIME = max(4, 2 * (os.cpu_count() or 1))  # games under way at once where time is limited
_LEAST = 2  # games that are played to their ends whatever the time


def play_on(
    states: Sequence[Any],
    policies: tuple[PolicyLike | None, PolicyLike | None],
    streams: Sequence[np.random.Generator],
    *,
    min_probability: float,
    batch: int = 256,
    visit: Callable[[int, Any], Any] | None = None,
) -> list[Any]:
    """Plays a game on from each state; returns the states in which they end, in the order of `states`.

    Where time is up (`deadline`), these are the first games, up to one that has not ended by then, or two.

    Args:
      states: where games go on from; they stay as they are.
      policies: what the players play.
      streams: a game's own each.
      min_probability: see `policy_rows`.
      batch: how many games are under way at once; fewer where a policy says that it is `of_history`.
      visit: called with (which game, the state) wherever a player or chance is to move, before it does.

    Raises:
      ValueError: a policy does not answer as it should.
    """
    asks = as_batch_policies(policies, "policies")
    if any(map(is_of_history, policies)):
        batch = min(batch, _GAMES_AT_ONCE)
    if (until := deadline()) is not None and math.isfinite(until.end):
        batch = min(batch, _IN_TIME)
    ends: list[Any] = [None] * len(states)
    under_way: list[tuple[int, Any]] = []
    begun = finished = 0
    with bar("Playing", "games", len(states)) as show:
        while under_way or begun < len(states):
            while begun < len(states) and len(under_way) < batch:
                under_way.append((begun, states[begun].clone()))
                begun += 1
            still = []
            for number, state in under_way:
                if state.is_terminal():
                    ends[number] = state
                    finished += 1
                else:
                    still.append((number, state))
            under_way = still
            if visit is not None:
                for number, state in under_way:
                    visit(number, state)
            moving = [state for _, state in under_way]
            try:
                with limited(until):
                    rows = movers_rows(moving, asks, name="policy", min_probability=min_probability)
            except OutOfTimeError:
                until, begun = None, len(states)
                under_way = [each for each in under_way if each[0] < _LEAST]
                continue
            for k, (number, state) in enumerate(under_way):
                first, end = rows.start[k], rows.start[k + 1]
                cumulative = np.cumsum(rows.probability[first:end])
                drawn = np.searchsorted(cumulative, streams[number].random() * cumulative[-1], side="right")
                state.apply_action(int(rows.action[min(first + drawn, end - 1)]))
            show(finished)
    return ends[: ends.index(None)] if None in ends else ends


def mean_interval(values: npt.NDArray[np.float64], least: float, most: float) -> tuple[float, float]:
    """The 95 % interval of the mean of independent values, whose number was fixed before any was seen.

    Normal, with two values of each end of the range added (Agresti and Coull's "plus four" for proportions).

    Args:
      values: float64[n].
      least: where the range of values begins.
      most: where it ends.
    """
    added = np.append(values, [least, most, least, most])
    mean, half = float(added.mean()), _NORMAL_95 * float(added.std(ddof=1)) / math.sqrt(len(added))
    return max(least, mean - half), min(most, mean + half)
