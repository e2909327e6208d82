"""How far an expansion is, where nobody asked to be told otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from precomp_games._support.bars import bar as progress_bar
from precomp_games.tree.expansion.options import Progress

__all__ = ["told"]


@contextlib.contextmanager
def told(progress: Progress | None) -> Iterator[Progress]:
    """The caller's `progress`; where there is none, a bar for what takes more than a second."""
    if progress is not None:
        yield progress
        return
    with progress_bar(desc="expanding", unit=" histories") as bar:

        def show(level: int, histories: int) -> None:
            bar.set_postfix_str(f"level {level}", refresh=False)
            bar.update(histories - bar.n)

        yield show
