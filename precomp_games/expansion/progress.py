"""How far an expansion is, on a terminal where nobody asked to be told otherwise."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator

from tqdm import tqdm

from precomp_games.expansion.options import Progress

__all__ = ["told"]

_DELAY = 1.0  # seconds, below which a bar would only flicker


@contextlib.contextmanager
def told(progress: Progress | None) -> Iterator[Progress]:
    """The caller's `progress`; where there is none, a bar on a terminal for what takes more than a second."""
    if progress is not None:
        yield progress
        return
    # None: wherever standard error is no terminal. Workers' bars would write over each other.
    disable = None if multiprocessing.parent_process() is None else True
    with tqdm(desc="expanding", unit=" histories", delay=_DELAY, leave=False, disable=disable) as bar:

        def show(level: int, histories: int) -> None:
            bar.set_postfix_str(f"level {level}", refresh=False)
            bar.update(histories - bar.n)

        yield show
