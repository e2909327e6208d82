"""Bars of what takes long where a caller gave no `progress`: on a terminal, for those who look."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

from tqdm import tqdm

from precomp_games._support.arguments import public

_DELAY = 1.0  # seconds, below which a bar would only flicker


def _on_terminal(**arguments: Any) -> tqdm[Any]:
    # None: wherever standard error is no terminal. Workers' bars would write over each other.
    disable = None if multiprocessing.parent_process() is None else True
    return tqdm(**({"leave": False} | arguments), delay=_DELAY, disable=disable)


_make: Callable[..., Any] = _on_terminal


def bar(**arguments: Any) -> Any:
    """A bar; arguments are tqdm's, by name."""
    return _make(**arguments)


@contextlib.contextmanager
def progress(description: str, unit: str, **arguments: Any) -> Iterator[Callable[..., None]]:
    """A bar for work that says how far it is; it stays when the work is done.

    Gives a function of the work that is done so far, None where that is as before, of a note, and of how much
    there is, where that shows later.
    """
    with bar(desc=description, unit=f" {unit}", **({"leave": True} | arguments)) as shown:

        def show(done: int | None = None, note: str | None = None, total: int | None = None) -> None:
            shown.total = shown.total if total is None else total
            if note is not None:
                shown.set_postfix_str(note)
            if done is not None:
                shown.update(done - shown.n)

        yield show


@public
def use_progress_bars(make: Callable[..., Any] | None = None) -> None:
    """Has the library show what takes long by other bars than its own, which are on terminals alone.

    Args:
        make: called as tqdm is, by name, with `desc`, `unit` and perhaps `total` and `leave`, such as
            tqdm.notebook's. None: the library's own again.

    Raises:
        ValueError: no function.
    """
    global _make
    _make = make or _on_terminal


@contextlib.contextmanager
def other_bars(make: Callable[..., Any]) -> Iterator[None]:
    """Within it, the library shows other bars, as with `use_progress_bars`."""
    global _make
    before, _make = _make, make
    try:
        yield
    finally:
        _make = before
