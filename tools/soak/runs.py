"""Runs of examples that can be killed, forked after the imports."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import threading
import time
from collections.abc import Callable

from tools.forked_runs import RunServer

ROOT = pathlib.Path(__file__).parents[2]
MOST_SECONDS = 900
"""What a run may take, engines that hang included; one that takes longer is a finding."""


@dataclasses.dataclass
class Ended:
    """A run that is over.

    Attributes:
      code: its exit status; negative: the signal.
      stderr: what it said there, without bars and warnings.
      seconds: how long it took.
    """

    code: int
    stderr: str
    seconds: float

    @property
    def error(self) -> str:
        """The one line of an error; anything else is told whole, and is a finding."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        if len(lines) == 1 and "Traceback" not in self.stderr:
            return lines[0]
        return f"not one line: {self.stderr[-2000:]!r}"


def run(
    server: RunServer,
    words: list[str],
    folder: pathlib.Path,
    environment: dict[str, str],
    log: pathlib.Path,
    after: float | None = None,
    how: Callable[[int], object] = int,
) -> Ended:
    """A forked run to its end; after some seconds `how` is called with its process."""
    log.unlink(missing_ok=True)
    timers = []

    def disturb_later(child: int) -> None:
        if after is not None:
            timers.append(threading.Timer(after, _disturb, (how, child)))
            timers[0].start()

    begin = time.monotonic()
    code = server.run(
        words,
        folder,
        seconds=MOST_SECONDS,
        files=(os.devnull, os.devnull, str(log)),
        environment=environment,
        meanwhile=disturb_later,
    )
    for timer in timers:
        timer.cancel()
        timer.join()
    return Ended(code, log.read_text(errors="replace"), time.monotonic() - begin)


def _disturb(how: Callable[[int], object], child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        how(child)


def alive(folder: pathlib.Path) -> list[int]:
    """Processes that work in a folder, or whose commands name it, as those of its engines do."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            at = pathlib.Path(os.readlink(path / "cwd"))
            if at.is_relative_to(folder) or str(folder).encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def all_gone(folder: pathlib.Path, seconds: float = 60.0) -> bool:
    """Whether no process of a folder is left after some seconds.

    A worker looks for its parent when its imports are made, which can take long on a busy machine.
    """
    end = time.monotonic() + seconds
    while alive(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
