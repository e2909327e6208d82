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
        self._kept: dict[int, tuple[pyspiel.Game, _T]] = {}

    def of(self, game: pyspiel.Game, make: Callable[[], _T]) -> _T:
        """What belongs to this game object; `make` makes it where it is not there."""
        # Nothing else has the object's id while it is kept. What was asked for last stands last.
        self._kept[id(game)] = found = self._kept.pop(id(game), None) or (game, make())
        if len(self._kept) > self._size:
            del self._kept[next(iter(self._kept))]
        return found[1]
