"""Runs a target's inputs in child processes, and says what came out that should not.

Inputs run in batches, each in a forked child with a limit on its memory, so that a crash is a finding and
not the end: the next child goes on after the input that did it. While an input runs, Python's audit events
tell of files, programs, connections and pickles; a watchdog ends what takes too long, with its stack.

An input that raises what it should not is made smaller while the same comes of it, and the smallest one of
each kind of finding is kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import hashlib
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
from collections.abc import Callable, Iterator
from typing import Any

from tools.audit import Audit
from tools.fuzz import Target

__all__ = ["Finding", "Report", "fuzz"]

SECONDS = 10  # of the processor's time, for one input
_WAITING_SECONDS = 300.0  # by the clock, which goes on while other processes work
MEMORY = 1 << 30  # bytes of a child
_BATCH = 2500
_LONGEST_MESSAGE = 4000
_SMALLER_SECONDS = 1.5
_ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass
class Finding:
    """Something that should not have come out.

    kind: "exception", "message", "memory", "time", "crash", "thread" or "audit".
    what: the exception or event, and where in our code; findings of one `what` are one.
    told: the message, or the stack.
    number: of the input that was met first.
    times: how many inputs did it.
    data: the smallest input that does it.
    """

    kind: str
    what: str
    told: str
    number: int
    data: bytes
    times: int = 1


@dataclasses.dataclass
class Report:
    """What came of a target.

    accepted, refused: inputs with a result, and inputs that were refused as they should be.
    peak: the most memory that a child had, in bytes.
    digest: of all inputs; the same seed gives the same.
    """

    target: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    peak: int = 0
    digest: str = ""
    findings: dict[str, Finding] = dataclasses.field(default_factory=dict)

    def add(self, found: Finding) -> None:
        """Counts a finding, and keeps the smaller input of two."""
        known = self.findings.setdefault(found.what, found)
        if known is not found:
            known.times += found.times
            if len(found.data) < len(known.data):
                known.data, known.told = found.data, found.told


def fuzz(target: Target, inputs: int, seed: int, progress: Callable[[int], None] | None = None) -> Report:
    """Runs so many inputs of a target.

    Args:
      target: what is fuzzed.
      inputs: how many.
      seed: of the inputs.
      progress: called with the inputs that were run since the last call.
    """
    began = time.monotonic()
    target.prepare()
    report = Report(target.name, inputs)
    digest = hashlib.sha256()
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=home) as folder:
        first = 0
        while first < inputs:
            first = _batch(
                target, range(first, min(first + _BATCH, inputs)), seed, folder, report, digest, progress
            )
    report.seconds = time.monotonic() - began
    report.digest = digest.hexdigest()[:16]
    return report


def _batch(
    target: Target,
    numbers: range,
    seed: int,
    folder: str,
    report: Report,
    digest: Any,
    progress: Callable[[int], None] | None,
) -> int:
    """Runs inputs in a child; returns which one is next, which a child that dies has not come to."""
    notes = pathlib.Path(folder, "notes")
    work = pathlib.Path(folder, "work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _in_child(target, numbers, seed, work, notes, writer)
    os.close(writer)
    seen = numbers.start - 1
    accepted = refused = 0
    with os.fdopen(reader, "rb") as stream:
        while line := stream.readline():
            told = json.loads(line)
            if "at" in told:
                seen, accepted, refused = told["at"], told["accepted"], told["refused"]
                if progress is not None:
                    progress(1)
            elif "digest" in told:
                digest.update(bytes.fromhex(told["digest"]))
            elif "peak" in told:
                accepted, refused = told["accepted"], told["refused"]
                report.peak = max(report.peak, told["peak"])
            else:
                told["data"] = bytes.fromhex(told["data"])
                report.add(Finding(**told))
    _, status = os.waitpid(child, 0)
    report.accepted += accepted
    report.refused += refused
    if status == 0:
        return numbers.stop
    stack = notes.read_text(errors="replace") if notes.exists() else ""
    late = "Timeout" in stack or os.waitstatus_to_exitcode(status) == -signal.SIGXCPU
    what = (
        "more than ten seconds of work, or five minutes of waiting"
        if late
        else f"the process ended with status {os.waitstatus_to_exitcode(status)}"
    )
    frame = next((each.strip() for each in stack.splitlines() if "/precomp_games/" in each), "")
    file, _, function = frame.replace(f"{_ROOT}/", "").partition(" in ")
    where = f"{file.partition(',')[0]} in {function}" if function else ""
    report.add(
        Finding("time" if late else "crash", f"{what} {where}".strip(), stack, seen, target.input(seed, seen))
    )
    return seen + 1


# -- in the child ------------------------------------------------------------------------------------------


def _in_child(
    target: Target, numbers: range, seed: int, work: pathlib.Path, notes: pathlib.Path, writer: int
) -> None:
    """Runs inputs and writes lines of JSON; never returns."""
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
        digest = hashlib.sha256()
        accepted = refused = 0
        known: set[str] = set()
        with open(notes, "w") as stacks:
            faulthandler.register(signal.SIGXCPU, stacks, chain=True)
            for number in numbers:
                _write(writer, {"at": number, "accepted": accepted, "refused": refused})
                data = target.input(seed, number)
                digest.update(hashlib.sha256(data).digest())
                _limit_time(SECONDS, stacks)
                found, ok = _outcome(target, data, number, work, watch)
                faulthandler.cancel_dump_traceback_later()
                accepted, refused = accepted + (ok and found is None), refused + (not ok and found is None)
                if found is not None:
                    if found.kind in ("exception", "message") and found.what not in known:
                        known.add(found.what)
                        _limit_time(SECONDS + 2, stacks)
                        _make_smaller(target, found, work, watch)
                        faulthandler.cancel_dump_traceback_later()
                    told = dataclasses.asdict(found) | {"data": found.data.hex()}
                    _write(writer, told)
                if number % 50 == 49 or number == numbers[-1]:
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                    _write(writer, {"accepted": accepted, "refused": refused, "peak": peak})
        _write(writer, {"digest": digest.hexdigest()})
        status = 0
    except BaseException:
        with contextlib.suppress(OSError):
            notes.write_text(traceback.format_exc())
    finally:
        os._exit(status)


def _limit_time(seconds: int, stacks: Any) -> None:
    """Ends the process, with its stack, after so much of the processor's time from now on."""
    limit = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    faulthandler.dump_traceback_later(_WAITING_SECONDS, exit=True, file=stacks)


def _write(writer: int, told: dict[str, Any]) -> None:
    data = json.dumps(told).encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]


def _outcome(
    target: Target, data: bytes, number: int, work: pathlib.Path, watch: _Watch
) -> tuple[Finding | None, bool]:
    """(what should not have come out, whether the input was accepted)."""
    with tempfile.TemporaryDirectory(dir=work) as name, watch.input(data, name):
        try:
            target.use(data, pathlib.Path(name))
        except target.refusals as error:
            found = _of_refusal(error)
        except Exception as error:
            found = "exception", f"{type(error).__name__} {_where(error)}", _told(error)
        else:
            found = None
            ok = watch.events == []
            if ok:
                return None, True
        if watch.events:
            kind, what, told = watch.events[0]
            found = kind, what, told
    if found is None:
        return None, False
    return Finding(*found, number, data), False


def _of_refusal(error: Exception) -> tuple[str, str, str] | None:
    """What is wrong with an error that may come, if anything is."""
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return "memory", f"memory ran out {_where(cause)}", _told(cause)
        cause = cause.__cause__ or cause.__context__
    problem = None
    if not text.strip():
        problem = "an empty message"
    elif len(text.splitlines()) != 1:
        problem = "a message of several lines"
    elif len(text) > _LONGEST_MESSAGE and not isinstance(error, OSError):  # Python's own, with the name
        problem = "a message of thousands of characters"
    elif not text.isprintable():
        problem = "a message with characters that cannot be printed"
    return None if problem is None else ("message", f"{problem} {_where(error)}", repr(text)[:2000])


def _where(error: BaseException) -> str:
    """Our innermost function that an error came through, and the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if str(_ROOT) in frame.filename and "/tests/" not in frame.filename]
    chosen = [*ours[-1:], *(frame for frame in frames[-1:] if frame not in ours[-1:])]
    names = (f"{pathlib.Path(frame.filename).name}:{frame.name}" for frame in chosen)
    return f"in {' < '.join(names)}"


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3000:]


def _make_smaller(target: Target, found: Finding, work: pathlib.Path, watch: _Watch) -> None:
    """Cuts parts of an input out as long as the same comes of it."""
    end = time.monotonic() + _SMALLER_SECONDS
    size = max(1, len(found.data) // 2)
    while size >= 1 and time.monotonic() < end:
        place, smaller = 0, False
        while place < len(found.data) and time.monotonic() < end:
            data = found.data[:place] + found.data[place + size :]
            again, _ = _outcome(target, data, found.number, work, watch)
            if again is not None and again.what == found.what:
                found.data, found.told, smaller = data, again.told, True
            else:
                place += size
        if size == 1 and not smaller:
            return
        size = max(1, size // 2) if not smaller or size > 1 else 1


class _Watch(Audit):
    """Python's audit events while an input runs, and errors in threads.

    events: (kind, what, told) of what should not happen.
    """

    def __init__(self, work: pathlib.Path, names_files: bool) -> None:
        super().__init__(work)
        self._names_files, self._data = names_files, b""
        if names_files:  # of flags, a process for each example waits and forks
            self.never = self.never - {"os.fork"}
        threading.excepthook = self._of_thread
        sys.unraisablehook = lambda told: self._add("thread", told.exc_value)

    @contextlib.contextmanager
    def input(self, data: bytes, folder: str) -> Iterator[None]:
        """While an input runs in its folder, which may be a user's own words, and name files."""
        self._data = data
        with self.on(folder):
            yield

    def named(self, path: str | bytes | os.PathLike[str]) -> bool:
        return self._names_files and os.fsencode(path) in self._data

    def _of_thread(self, told: Any) -> None:
        self._add("thread", told.exc_value)

    def _add(self, kind: str, error: BaseException | None) -> None:
        if self.is_on and error is not None and not isinstance(error, SystemExit):
            self.events.append((kind, f"{type(error).__name__} {_where(error)}, in a thread", _told(error)))
