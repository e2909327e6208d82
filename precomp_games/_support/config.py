"""Settings of a whole process: memory for trees, how long progress is shown, where people's networks are.

Settings are of the process and not of a thread: memory and the terminal are the process's, and threads that
search or solve see what was set before they began.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

from tqdm import tqdm

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.memory import Memory, default_memory

_DELAY = 1.0  # seconds, below which a bar would only flicker


def _on_terminal(**arguments: Any) -> tqdm[Any]:
    # None: wherever standard error is no terminal. Workers' bars would write over each other.
    disable = None if multiprocessing.parent_process() is None else True
    return tqdm(**arguments, delay=_DELAY, disable=disable)


_settings: dict[str, Any] = {"max_memory": None, "progress": _on_terminal, "networks": None}


@public
def config(
    *,
    max_memory: Memory | None = None,
    progress: Callable[..., Any] | None = None,
    networks: checks.FilePath | None = None,
) -> contextlib.ExitStack:
    """Set the process's settings; in a `with` statement, until its end.

    Args:
        max_memory: bytes that the process may have, or a text such as "2GB"; a tree that is about to take
            more is refused early, with what to change. By default four fifths of what is available. None: as
            before.
        progress: what shows work that takes long, called as tqdm is, by name, with `desc`, `unit`, `total`
            and `leave`, such as tqdm.notebook's. By default bars on terminals alone. None: as before.
        networks: a file or a folder of networks of people's moves, for `human(...)`. By default what the
            environment's PRECOMP_MAIA names. None: as before.

    Returns:
        A context manager that puts back what was set before.

    Raises:
        ValueError: no such size, or no function.
    """
    back = contextlib.ExitStack()
    back.callback(_settings.update, dict(_settings))
    given = {"max_memory": max_memory, "progress": progress, "networks": networks}
    _settings.update({name: value for name, value in given.items() if value is not None})
    return back


def memory_limit() -> float:
    """Return the bytes that the process may have."""
    return default_memory() if _settings["max_memory"] is None else float(_settings["max_memory"])


def networks_named() -> str | os.PathLike[str] | None:
    """Return the path of the networks of people's moves, or None if it is not set."""
    named: str | os.PathLike[str] | None = _settings["networks"]
    return named or os.environ.get("PRECOMP_MAIA")


@contextlib.contextmanager
def bar(
    description: str, unit: str, total: int | None = None, *, leave: bool | None = None
) -> Iterator[Callable[..., None]]:
    """Show the progress of long work.

    Gives a function of the work that is done so far, None where that is as before, of a note, and of how much
    there is, where that shows later.

    Args:
        description: of the work.
        unit: what is counted.
        total: how much there is, where that is known.
        leave: whether the bar stays when the work is done; None: where it is the outermost one.
    """
    with _settings["progress"](desc=description, unit=f" {unit}", total=total, leave=leave) as shown:

        def show(done: int | None = None, note: str | None = None, total: int | None = None) -> None:
            shown.total = shown.total if total is None else total
            if note is not None:
                shown.set_postfix_str(note, refresh=done is None)
            if done is not None:
                shown.update(done - shown.n)

        yield show
