"""Says so, once, when kernels are compiled.

numba compiles a function at its first call and keeps the result in a cache on disk. The first calls after
an installation therefore take some seconds more than all later ones; without a word they look as if they
hung. One line of the logger "precomp_games" says what is going on; Python writes it to stderr where nothing
else is set up. Nothing is said when all is in the cache, nor by processes that others started, such as
workers.
"""

from __future__ import annotations

import logging
import multiprocessing

from numba.core import event

__all__ = ["announce_compilation"]

_LOGGER = logging.getLogger("precomp_games")


class _Announcement(event.Listener):
    """Listens to numba's compiler, which loads from the cache without an event."""

    def __init__(self) -> None:
        self._said = multiprocessing.parent_process() is not None

    def on_start(self, event: event.Event) -> None:
        if not self._said and event.data["dispatcher"].py_func.__module__.startswith("precomp_games."):
            self._said = True
            _LOGGER.warning("precomp_games: compiling with numba, which takes some seconds the first time")

    def on_end(self, event: event.Event) -> None:
        pass


def announce_compilation() -> None:
    """From now on, the first kernel of this library that has to be compiled is announced."""
    event.register("numba:compile", _Announcement())
