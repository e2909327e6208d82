"""What was last made of a few games, for functions that are asked about the same game again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import pyspiel

__all__ = ["Recent"]

_T = TypeVar("_T")


class Recent(Generic[_T]):
    """What was last made of a few games; pyspiel's games cannot be hashed."""

    def __init__(self, size: int = 8) -> None:
        """Initializes an empty store."""
        self._size = size
        self._kept: list[tuple[pyspiel.Game, _T]] = []

    def of(self, game: pyspiel.Game, make: Callable[[], _T]) -> _T:
        """What belongs to this game object; `make` makes it where it is not there."""
        for at, (kept, made) in enumerate(self._kept):
            if kept is game:
                self._kept.append(self._kept.pop(at))
                return made
        made = make()
        self._kept = [*self._kept[-self._size + 1 :], (game, made)]
        return made
