"""Base classes of the library's own games: OpenSpiel's interface, and the players' observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyspiel

from precomp_games._support.checks import ArgumentError, one_line, shown


def observation_type(iig_obs_type: Any, params: Any, game: pyspiel.Game) -> pyspiel.IIGObservationType | None:
    """Return the type that a game's `make_py_observer` was asked for, None where none was named.

    Raises:
      ValueError: there are parameters, which observations of the library's games do not have.
    """
    # OpenSpiel's C++ side passes its parameters first when it has no observation type.
    if not isinstance(iig_obs_type, pyspiel.IIGObservationType):
        iig_obs_type, params = None, iig_obs_type or params
    if params:
        name = f"{type(game).__name__}.make_py_observer()"
        raise ValueError(f"{name}: expected no observation parameters, got {shown(params)}")
    return iig_obs_type


class StringObserver:
    """An observer by strings only: a player sees `string_from(state, player)`."""

    def __init__(self, string_from: Callable[[Any, int], str | None]) -> None:
        """Make it of its function, which gives None where a player sees nothing."""
        self.tensor = None
        self.dict: dict[str, Any] = {}
        self.string_from = string_from

    def set_from(self, state: Any, player: int) -> None:
        """Do nothing: there is no tensor."""


def open_observer(
    game: pyspiel.Game, iig_obs_type: Any, params: Any, moves: Callable[[Any], str]
) -> StringObserver:
    """Return the observer of a game of perfect information: the state, or the moves as `moves` writes them.

    There is no private information, and an observer that asks for nothing else sees nothing.
    """
    kind = observation_type(iig_obs_type, params, game)
    if kind is not None and not kind.public_info:
        return StringObserver(lambda state, player: "")
    recall = kind is not None and kind.perfect_recall
    return StringObserver(lambda state, player: moves(state) if recall else str(state))


def load_base_game(base: Any) -> pyspiel.Game:
    """Return the base game of a mapping of its name and parameters, a string or a game.

    Raises:
      ValueError: there is none of that name, or its parameters are wrong.
    """
    try:
        if isinstance(base, Mapping):
            arguments = dict(base)
            return pyspiel.load_game(arguments.pop("name", ""), arguments)
        return pyspiel.load_game(str(base))
    except (pyspiel.SpielError, RuntimeError, TypeError) as error:
        got = f"{shown(base)}: {one_line(str(error).split('. Available', 1)[0])}"
        raise ArgumentError(f"expected game to be a base game, got {got}") from None
