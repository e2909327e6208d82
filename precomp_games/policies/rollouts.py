"""Games that both players' sigma play on, many at once.

Games from one position are not played one after the other: how many of them take each action is a
multinomial draw, which has the same distribution. The caller decides how deep games go, in which order, and
from which random streams. This module recognizes positions, so that sigma is asked once about each.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from precomp_games.policies.rows import BatchPolicy, PolicyRows, movers_rows


@dataclasses.dataclass(eq=False, slots=True)
class RolloutState:
    """A state that games have come to.

    Attributes:
      state: The base game's.
      returns: Each player's utility where the game is over, else None.
      actions, probability: What sigma, or chance, plays here; None until it is asked.
      following: What each action leads to, None where no game has gone.
    """

    state: Any
    returns: list[float] | None
    actions: Sequence[int] = ()
    probability: np.ndarray | None = None
    following: list[RolloutState | None] | None = None


class Rollouts:
    """Games of one sigma."""

    def __init__(
        self,
        sigma: tuple[BatchPolicy | None, BatchPolicy | None],
        position: Callable[[Any], Hashable] | None,
        min_probability: float,
        alike: Callable[[Sequence[Any], PolicyRows], None] | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
          sigma: each player's policy, None where it is never asked.
          position: equal where states are the same; None: they never are.
          min_probability: see `policy_rows`.
          alike: called with states and sigma's answers, see `LeafContext`.
        """
        self._sigma, self._position = sigma, position
        self._min_probability = min_probability
        self._alike = alike
        self._known: dict[Hashable, RolloutState] = {}

    def at(self, state: Any) -> RolloutState:
        """What is known of a state; games from a new one have not been played."""
        if self._position is None:
            return _new(state)
        key = self._position(state)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _new(state)
        return known

    def forget(self) -> None:
        """States that come are new ones, whatever their positions."""
        self._known = {}

    def ask(self, states: Iterable[RolloutState]) -> None:
        """Asks about those of distinct states where the game goes on, in one batch a player.

        Raises:
          ValueError: a policy is missing or its answer is wrong.
        """
        asked = [here for here in states if here.returns is None and here.probability is None]
        states = [here.state for here in asked]
        rows = movers_rows(states, self._sigma, name="sigma", min_probability=self._min_probability)
        if self._alike is not None:
            self._alike(states, rows)
        actions = rows.action.tolist()
        for here, (first, end) in zip(asked, itertools.pairwise(rows.start.tolist()), strict=True):
            here.actions, here.probability = actions[first:end], rows.probability[first:end]
            here.following = [None] * (end - first)

    def step(
        self, here: RolloutState, games: int, stream: np.random.Generator
    ) -> list[tuple[RolloutState, int]]:
        """Plays one move of so many games that go on from a state; returns how many come to which."""
        if here.probability is None:
            self.ask([here])
        assert here.probability is not None and here.following is not None
        drawn = stream.multinomial(games, here.probability)
        reached = []
        for k, count in enumerate(drawn.tolist()):
            if count:
                following = here.following[k]
                if following is None:
                    following = here.following[k] = self.at(here.state.child(here.actions[k]))
                reached.append((following, count))
        return reached


def _new(state: Any) -> RolloutState:
    return RolloutState(state, state.returns() if state.is_terminal() else None)
