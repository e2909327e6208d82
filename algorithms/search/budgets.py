"""What a search may spend, and what it says when it is done."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Annotated, Any

from precomp_games._support.arguments import Check, PositiveFloat, PositiveInt, public
from precomp_games._support.checks import ArgumentError, check_game, check_state, shown
from precomp_games._support.results import Result


class _Limits:
    """At least one of them is a limit."""

    def __post_init__(self) -> None:
        limits = vars(self)
        if all(limit is None for limit in limits.values()):
            raise ArgumentError(f"expected a limit, {' or '.join(limits)}, got none")


@public
@dataclasses.dataclass(frozen=True)
class SearchBudget(_Limits):
    """Limits of a depth-first search; the first one that is reached ends it.

    Attributes:
      depth: Moves of the players looked ahead, at least 1; chance does not count. Where none is left,
        positions are evaluated as they are, chance nodes too.
      nodes: Positions visited, the root included; never exceeded.
      seconds: Wall-clock time, looked at once every few positions. Results are not reproducible then.
    """

    depth: PositiveInt | None = None
    nodes: PositiveInt | None = None
    seconds: PositiveFloat | None = None


@public
@dataclasses.dataclass(frozen=True)
class SimulationBudget(_Limits):
    """Limits of Monte Carlo tree search; the first one that is reached ends it.

    Attributes:
      simulations: Games played from the root, in the tree and beyond.
      seconds: Wall-clock time. Results are not reproducible then.
    """

    simulations: PositiveInt | None = None
    seconds: PositiveFloat | None = None


@dataclasses.dataclass(frozen=True)
class MinimaxResult(Result):
    """The answer of the deepest search that was finished. Utilities are those of `player`.

    Attributes:
      player: Who is to move at the root.
      action: Its best move; of equal ones, the first searched (the least action where all scores are
        exact).
      value: What the root is worth to `player`.
      scores: {action: value}. Exact for every move if the search was asked for all scores; otherwise exact
        for the best move, and for the others at least an upper bound.
      upper_bounds: The actions whose score is only an upper bound, at most `value`.
      principal_variation: Best play of both sides, up to the horizon, the end or the first chance node.
      depth: Moves looked ahead; 0 if not even depth 1 was finished. Then `scores` is empty, `value` is the
        evaluation of the root, and `action` the first that would have been searched.
      nodes: Positions visited, in all iterations.
      seconds: Wall-clock time.
      stopped: "depth", "nodes" or "seconds", the limit that ended the search, or "solved": nothing was left
        to look at, and the value is that of perfect play.
    """

    player: int
    action: int
    value: float
    scores: dict[int, float]
    upper_bounds: frozenset[int]
    principal_variation: tuple[int, ...]
    depth: int
    nodes: int
    seconds: float
    stopped: str


def position_of(state: Any, position_key: Callable[[Any], Hashable]) -> Hashable:
    """A state's key.

    Raises:
      ValueError: it cannot be hashed.
    """
    key = position_key(state)
    try:
        hash(key)
    except TypeError:
        raise ArgumentError(
            f"expected position_key to give what can be hashed, such as a string, got {shown(key)}"
        ) from None
    return key


def _check_search_state(state: Any, name: str) -> Any:
    check_game(check_state(state).get_game(), perfect=True)
    if state.current_player() < 0:
        what = "a terminal state" if state.is_terminal() else "a chance node"
        raise ArgumentError(f"expected a state where a player is to move, got {what}")
    return state


SearchState = Annotated[Any, Check(_check_search_state)]
"""A state where a player is to move, of a game inside of the model and of perfect information."""
