"""What players see of the library's own games, as OpenSpiel asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OpenObserver"]


class OpenObserver:
    """The observer of a game of perfect information: strings only, of what both players see, everything."""

    def __init__(self, iig_obs_type: Any, moves: Callable[[Any], str]) -> None:
        """Args are the observation's type, None for all, and how a state's moves so far are written."""
        self.tensor = None
        self.dict: dict[str, Any] = {}
        self._public = iig_obs_type is None or iig_obs_type.public_info
        self._moves = moves if iig_obs_type is not None and iig_obs_type.perfect_recall else None

    def set_from(self, state: Any, player: int) -> None:
        """Does nothing: there is no tensor."""

    def string_from(self, state: Any, player: int) -> str:
        """The moves so far, the state, or nothing (there is no private information)."""
        del player
        if not self._public:
            return ""
        return str(state) if self._moves is None else self._moves(state)
