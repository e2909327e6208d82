"""Remains of examples' runs: an error, a store, and processes that should be gone."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import sqlite3
import time

ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass
class Ended:
    """A run that is over.

    Attributes:
      code: its exit status; negative: the signal.
      stderr: its text, without bars and warnings.
      seconds: how long it took.
    """

    code: int
    stderr: str
    seconds: float

    @property
    def error(self) -> str:
        """Return the one line of an error; anything else is shown whole, and is a finding."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        if len(lines) == 1 and "Traceback" not in self.stderr:
            return lines[0]
        return f"not one line: {self.stderr[-2000:]!r}"


def stored(path: pathlib.Path) -> int:
    """Return the searches in a store that a live run may be writing to; it must be sound."""
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as db:
        with contextlib.suppress(sqlite3.OperationalError):  # it has no table yet
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return int(db.execute("SELECT count(*) FROM searches").fetchone()[0])
        return 0


def alive(folder: pathlib.Path) -> list[int]:
    """Return processes that work in a folder, or whose commands name it, as those of its engines do."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            at = pathlib.Path(os.readlink(path / "cwd"))
            if at.is_relative_to(folder) or str(folder).encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def all_gone(folder: pathlib.Path, seconds: float = 60.0) -> bool:
    """Return whether all processes of a folder have ended within some seconds.

    A worker looks for its parent when its imports are made, which can take long on a busy machine.
    """
    end = time.monotonic() + seconds
    while alive(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
