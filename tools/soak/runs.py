"""Runs of examples that can be killed: forked after the imports, or from the start."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from tools.forked_runs import RunServer

ROOT = pathlib.Path(__file__).parents[2]
MOST_SECONDS = 900
"""What a run may take, engines that hang included; one that takes longer is a finding."""


def command(example: str, flags: tuple[str, ...]) -> list[str]:
    return [str(ROOT / "examples" / f"{example}.py"), *flags]


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
    *,
    log: pathlib.Path,
    after: float | None = None,
    whole_group: bool = True,
) -> Ended:
    """A forked run to its end, or to SIGKILL `after` seconds, of its process alone or its group."""
    log.unlink(missing_ok=True)
    timers = []

    def kill_later(child: int) -> None:
        if after is not None:
            timers.append(threading.Timer(after, _kill, (child, whole_group)))
            timers[0].start()

    begin = time.monotonic()
    code = server.run(
        words,
        folder,
        seconds=MOST_SECONDS,
        files=(os.devnull, os.devnull, str(log)),
        environment=environment,
        meanwhile=kill_later,
    )
    for timer in timers:
        timer.cancel()
        timer.join()
    return Ended(code, _text(log), time.monotonic() - begin)


def _kill(child: int, whole_group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(child, signal.SIGKILL)


class Started:
    """A run from the start, with all its imports, in a group of its own."""

    def __init__(
        self, words: list[str], folder: pathlib.Path, environment: dict[str, str], log: pathlib.Path
    ) -> None:
        self._log, self._begin = log, time.monotonic()
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )

    def interrupt(self) -> None:
        """What Ctrl-C does: all processes of the terminal's group are told."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> Ended:
        try:
            code = self.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(self.process.pid, True)
            code = self.process.wait()
        return Ended(code, _text(self._log), time.monotonic() - self._begin)


def _text(log: pathlib.Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


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
