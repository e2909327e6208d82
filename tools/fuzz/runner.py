"""Runs a target's inputs in child processes, and says what came out that should not.

Inputs run in batches, each in a forked child with a limit on its memory, so that a crash is a finding and
not the end: the next child goes on after the input that did it. While an input runs, Python's audit events
tell of files, programs, connections and pickles; a limit on the processor's time ends what takes too long,
with its stack.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import json
import math
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tools.audit import Audit
from tools.fuzz import Target

__all__ = ["Report", "fuzz"]

SECONDS = 10  # of the processor's time, for one input
_WAITING_SECONDS = 300.0  # by the clock, which goes on while other processes work
MEMORY = 1 << 30  # bytes of a child
_BATCH = 500
_LONGEST_MESSAGE = 4000
_ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass
class Report:
    """What came of a target.

    accepted, refused: inputs with a result, and inputs that were refused as they should be.
    findings: by what came out and where in our code: {"told": the message or stack, "number": of the first
      input, "times": how many did it, "data": the shortest such input in hexadecimal}.
    """

    target: str
    inputs: int
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    def add(self, what: str, told: str, number: int, data: bytes) -> None:
        """Count a finding, and keep the shorter input of two."""
        known = self.findings.setdefault(
            what, {"told": told, "number": number, "times": 0, "data": data.hex()}
        )
        known["times"] += 1
        known["data"] = min(known["data"], data.hex(), key=len)


def fuzz(target: Target, inputs: int, seed: int, progress: Callable[[int], object] = int) -> Report:
    """Run the first `inputs` inputs of a target; `progress` gets how many were run since its last call."""
    began = time.monotonic()
    target.prepare()
    report, first = Report(target.name, inputs), 0
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=home) as folder:
        while first < inputs:
            following = _batch(target, range(first, min(first + _BATCH, inputs)), seed, folder, report)
            progress(following - first)
            first = following
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _batch(target: Target, numbers: range, seed: int, folder: str, report: Report) -> int:
    """Run inputs in a child; return which one is next, which a child that dies has not come to."""
    notes, stack, work = (pathlib.Path(folder, name) for name in ("notes", "stack", "work"))
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    notes.write_text("")
    stack.write_text("")
    if not (child := os.fork()):
        _in_child(target, numbers, seed, work, notes, stack)
    _, status = os.waitpid(child, 0)
    seen = numbers.start - 1
    for line in notes.read_text("utf-8").splitlines():
        seen, outcome, told = json.loads(line)
        report.accepted += outcome == "accepted"
        report.refused += outcome == "refused"
        if told is not None:
            report.add(outcome, told, seen, target.input(seed, seen))
    if status == 0:
        return numbers.stop
    code = os.waitstatus_to_exitcode(status)
    stacks = stack.read_text("utf-8", errors="replace")
    late = "Timeout" in stacks or code == -signal.SIGXCPU
    what = (
        f"more than {SECONDS} s of work, or of waiting" if late else f"the process ended with status {code}"
    )
    frame = next((each.strip() for each in stacks.splitlines() if "/precomp_games/" in each), "")
    report.add(f"{what} {frame.replace(f'{_ROOT}/', '')}", stacks, seen + 1, target.input(seed, seen + 1))
    return seen + 2


# -- in the child ------------------------------------------------------------------------------------------


def _in_child(
    target: Target, numbers: range, seed: int, work: pathlib.Path, notes: pathlib.Path, stack: pathlib.Path
) -> None:
    """Run inputs, with a line of JSON for each; never return."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        warnings.filterwarnings("error", module=r"precomp_games(\.|$)")
        gc.freeze()
        watch = _Watch(work, target.names_files)
        with open(notes, "w", encoding="utf-8") as lines, open(stack, "w", encoding="utf-8") as stacks:
            faulthandler.register(signal.SIGXCPU, stacks, chain=True)
            for number in numbers:
                data = target.input(seed, number)
                limit = math.ceil(time.process_time()) + SECONDS
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
                faulthandler.dump_traceback_later(_WAITING_SECONDS, exit=True, file=stacks)
                outcome = _outcome(target, data, work, watch)
                faulthandler.cancel_dump_traceback_later()
                lines.write(json.dumps([number, *outcome]) + "\n")
                lines.flush()
        status = 0
    except BaseException:
        with contextlib.suppress(OSError):
            stack.write_text(traceback.format_exc(), "utf-8")
    finally:
        os._exit(status)


def _outcome(target: Target, data: bytes, work: pathlib.Path, watch: _Watch) -> tuple[str, str | None]:
    """Return ("accepted" or "refused", None), or (what should not have come out, its message or stack)."""
    watch.data = data
    with tempfile.TemporaryDirectory(dir=work) as name, watch.on(name):
        try:
            target.use(data, pathlib.Path(name))
            found: tuple[str, str | None] = ("accepted", None)
        except target.refusals as error:
            found = _of_refusal(error)
        except Exception as error:
            found = f"{type(error).__name__} {_where(error)}", _told(error)
    if found[1] is None and watch.events:
        kind, what, told = watch.events[0]
        return f"{kind}: {what}", told
    return found


def _of_refusal(error: Exception) -> tuple[str, str | None]:
    """Say what is wrong with an error that may come, if anything is."""
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return f"memory ran out {_where(cause)}", _told(cause)
        cause = cause.__cause__ or cause.__context__
    if len(text.splitlines()) != 1 or not text.strip():
        problem = "an empty message, or one of several lines"
    elif len(text) > _LONGEST_MESSAGE and not isinstance(error, OSError):  # Python's own, with the name
        problem = "a message of thousands of characters"
    elif not text.isprintable():
        problem = "a message with characters that cannot be printed"
    else:
        return "refused", None
    return f"{problem} {_where(error)}", repr(text)[:2000]


def _where(error: BaseException) -> str:
    """Name our innermost function that an error came through, and the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if str(_ROOT) in frame.filename and "/tests/" not in frame.filename]
    chosen = [*ours[-1:], *(frame for frame in frames[-1:] if frame not in ours[-1:])]
    return "in " + " < ".join(f"{pathlib.Path(frame.filename).name}:{frame.name}" for frame in chosen)


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3000:]


class _Watch(Audit):
    """Python's audit events while an input runs, and errors in threads."""

    data = b""

    def __init__(self, work: pathlib.Path, names_files: bool) -> None:
        super().__init__(work)
        self._names_files = names_files
        threading.excepthook = lambda told: self._add(told.exc_value)
        sys.unraisablehook = lambda told: self._add(told.exc_value)

    def named(self, path: str | bytes | os.PathLike[str]) -> bool:
        """Whether an input is a user's own words, in which a file is named."""
        return self._names_files and os.fsencode(path) in self.data

    def _add(self, error: BaseException | None) -> None:
        if self.is_on and error is not None and not isinstance(error, SystemExit):
            self.events.append(("thread", f"{type(error).__name__} {_where(error)}", _told(error)))
