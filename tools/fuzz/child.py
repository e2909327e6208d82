"""Runs of a target's inputs in a forked process, with the outcome of each.

It goes on after as many inputs as there are notes in a folder, and leaves the input at which it ends there.
While an input runs, Python's audit events report files, programs, connections and pickles.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib.util
import json
import math
import os
import pathlib
import random
import resource
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

SECONDS = 10  # of the processor's time, for one input
_WAITING_SECONDS = 300.0  # by the clock, which goes on while other processes work
MEMORY = 1 << 30  # bytes beyond what the imports take
_LONGEST = 1 << 18  # bytes of an input
_LONGEST_MESSAGE = 4000
_ROOT = pathlib.Path(__file__).parents[2]
_HAS_ATHERIS = importlib.util.find_spec("atheris") is not None


def register_targets() -> None:
    """Import the targets, and with them the library, whose lines libFuzzer sees."""
    with contextlib.ExitStack() as stack:
        if _HAS_ATHERIS:
            atheris = importlib.import_module("atheris")
            stack.enter_context(atheris.instrument_imports(include=["precomp_games"]))
        importlib.import_module("tools.fuzz.targets")


def run(target: Target, folder: pathlib.Path, inputs: int, seed: int) -> None:
    """Run the remaining inputs."""
    notes, last = folder / "notes", folder / "input"
    done = len(notes.read_text("utf-8").splitlines())
    warnings.filterwarnings("error", module=r"precomp_games(\.|$)")
    for number, path in enumerate((os.devnull, os.devnull, str(folder / "ended"))):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    with contextlib.suppress(*target.refusals):
        target.use(target.seeds()[0], pathlib.Path(tempfile.mkdtemp(dir=folder)))  # numba's cache has pickles
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, chain=True)
    gc.freeze()
    watch = _Watch(folder, target.names_files)
    with open(notes, "a", encoding="utf-8") as lines:

        def note(data: bytes) -> None:
            last.write_bytes(data)
            limit = math.ceil(time.process_time()) + SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            faulthandler.dump_traceback_later(_WAITING_SECONDS, exit=True)
            what, message = _outcome(target, data, folder, watch)
            lines.write(json.dumps([what, message, "" if message is None else data.hex()]) + "\n")
            lines.flush()

        if not _HAS_ATHERIS:
            for number in range(done, inputs):
                note(target.input(seed, number))
        else:
            _by_libfuzzer(target, note, folder, inputs - done, seed + done)


def _by_libfuzzer(
    target: Target, note: Callable[[bytes], None], folder: pathlib.Path, inputs: int, seed: int
) -> None:
    atheris: Any = importlib.import_module("atheris")
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words if word)
    words.write_text("".join(f'"{word}"\n' for word in quoted))

    def change(data: bytes, most: int, drawn: int) -> bytes:
        plain = lambda part: atheris.Mutate(part, max(len(part) + 64, 64))  # noqa: E731
        return target.change(random.Random(drawn), data, plain)[:most]

    how = [f"-runs={inputs}", f"-seed={seed + 1}", "-timeout=1000000", f"-max_len={_LONGEST}"]
    how += [f"-handle_{name}=0" for name in ["segv", "bus", "abrt", "ill", "fpe", "xfsz"]]
    how += [f"-dict={words}", f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup(["fuzz", *how], note, custom_mutator=change)
    atheris.Fuzz()


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
            found = f"{type(error).__name__} {_where(error)}", _message(error)
    if found[1] is None and watch.events:
        kind, what, message = watch.events[0]
        return f"{kind}: {what}", message
    return found


def _of_refusal(error: Exception) -> tuple[str, str | None]:
    """Return what is wrong with an error, and its details; ("refused", None) if nothing is."""
    text = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return f"memory ran out {_where(cause)}", _message(cause)
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
    """Return our innermost function that an error came through, and the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if str(_ROOT) in frame.filename and "/tests/" not in frame.filename]
    chosen = [*ours[-1:], *(frame for frame in frames[-1:] if frame not in ours[-1:])]
    return "in " + " < ".join(f"{pathlib.Path(frame.filename).name}:{frame.name}" for frame in chosen)


def _message(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3000:]


class _Watch(Audit):
    """Watch on Python's audit events while an input runs, and on errors in threads."""

    data = b""

    def __init__(self, work: pathlib.Path, names_files: bool) -> None:
        super().__init__(work)
        self._names_files = names_files
        threading.excepthook = lambda hook: self._add(hook.exc_value)
        sys.unraisablehook = lambda hook: self._add(hook.exc_value)

    def named(self, path: str | bytes | os.PathLike[str]) -> bool:
        """Return whether an input is a user's own words and names the file."""
        return self._names_files and os.fsencode(path) in self.data

    def _add(self, error: BaseException | None) -> None:
        if self.is_on and error is not None and not isinstance(error, SystemExit):
            self.events.append(("thread", f"{type(error).__name__} {_where(error)}", _message(error)))
