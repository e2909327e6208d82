"""The frame of a command: one error line in place of a traceback, a status, its folder, a deadline, bars.

`run_command` runs commands, which have flags of their own; `run_example` runs scripts with absl's global
flags. A command that has --minutes has a deadline (`running_until`), and its bars show the time left.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import math
import os
import pathlib
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

import pyspiel
from absl import app, flags
from tqdm import tqdm

from precomp_games import commands
from precomp_games._support.checks import one_line
from precomp_games._support.config import bar as bar
from precomp_games._support.config import config
from precomp_games._support.deadlines import Deadline, OutOfTimeError, limited
from precomp_games.chess.engines.pool import EngineError
from precomp_games.commands import of_address_space

_LONGEST_FLAG = 100  # characters of a name
_LONGEST_ERROR = 2000  # characters
_SECONDS_FIRST = 2.0  # of silence at first
_SECONDS_A_LINE = 10.0  # in a log
_WORKING = 0.9  # of --minutes; the rest is for writing files


def run_command(command: Any, argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status.

    The process is left as it was, so that a program may call this.

    Args:
      command: its module, with `define`, which defines its flags, `run`, which does the work by them, and a
        docstring that its help begins with; optionally `WORDS`, the flags whose values may be given as bare
        words, in their order, and `STOPS`: Ctrl-C, pressed once, ends the work as --minutes does.
      argv: the command line, which begins with the command's name; by default the process's.
    """
    words: Sequence[str] = getattr(command, "WORDS", ())
    began = time.monotonic() if commands.process_began is None else commands.process_began
    line = list(sys.argv if argv is None else argv)
    given = flags.FlagValues()  # type: ignore[no-untyped-call]
    flags.DEFINE_bool("help", False, "Show this help.", short_name="h", flag_values=given)
    flags.DEFINE_alias("helpfull", "help", flag_values=given)  # as absl's programs have it
    flags.DEFINE_bool("only_check_args", False, "Check the flags, and end.", flag_values=given)
    command.define(given)
    with _output():
        try:
            rest = given(line)
            for flag in words[: len(rest) - 1]:
                if given[flag].present:
                    return _failed(f"--{flag}: expected it once, got {given[flag].value!r} and {rest[1]!r}")
                given[flag].parse(rest.pop(1))
        except flags.Error as error:
            return _failed(f"{one_line(str(error))} (see --help)")
        except RecursionError:  # absl looks for flags of similar names
            name = max((word.partition("=")[0] for word in line), key=len)
            got = f"got {name[:_LONGEST_FLAG]}... of {len(name)} characters (see --help)"
            return _failed(f"expected a flag, {got}")
        if given["help"].value:
            named = "".join(f" [{flag.upper()}]" for flag in words)
            print(f"usage: {line[0]}{named} [--flags]\n\n{command.__doc__}\nflags:")
            del given.helpfull, given.help, given.only_check_args  # which all have
            print(given.get_help(include_special_flags=False))
            return 0
        if given["only_check_args"].value:
            return 0
        minutes = given["minutes"].value if "minutes" in given else None
        with running_until(minutes, began=began, stops=getattr(command, "STOPS", False)):
            return _guarded(functools.partial(command.run, given), given, rest)


def run_example(main: Callable[[Sequence[str]], None]) -> None:
    """Run a script by absl's global flags, and exit."""

    def guarded(argv: Sequence[str]) -> int:
        return _guarded(functools.partial(main, argv), flags.FLAGS, argv)

    with _output():
        app.run(guarded, flags_parser=_parsed)


def _parsed(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line that are no flags; exit with status 0 after printing help."""
    try:
        return list(flags.FLAGS(argv))
    except SystemExit:  # absl's flags for help exit with 1, as for an error
        sys.stdout.flush()
        sys.exit(0)
    except flags.Error:
        return list(app.parse_flags_with_usage(list(argv)))  # prints it


def _guarded(work: Callable[[], None], given: flags.FlagValues, argv: Sequence[str]) -> int:
    """Run a command's work and return the exit status; errors that a user can correct are one line, status 1.

    Args:
      work: the function to run.
      given: its flags.
      argv: the rest of the command line after the flags.
    """
    if len(argv) > 1:
        return _failed(f"expected flags only, got {' '.join(argv[1:])!r} (see --help)")
    _made_folders.clear()
    asyncio_log = logging.getLogger("asyncio")
    try:
        with contextlib.ExitStack() as stack:
            # An interrupt can close the engines' event loop before it has seen them end; that is no news.
            stack.callback(asyncio_log.setLevel, asyncio_log.level)
            asyncio_log.setLevel(logging.ERROR)
            memory, maia = (given[each].value if each in given else None for each in ("max_memory", "maia"))
            bars = functools.partial(progress_bar, delay=1.0)
            stack.enter_context(config(max_memory=memory, progress=bars, networks=maia))
            work()
        sys.stdout.flush()
    except (ValueError, EngineError, OSError, pyspiel.SpielError) as error:
        text = (_by_file(error, given) if isinstance(error, OSError) else "") or str(error)
        # OpenSpiel lists every game that it knows.
        return _failed(_by_flag((text.splitlines() or [repr(error)])[0], given))
    except OutOfTimeError as error:
        return _failed(f"--minutes: {error}; searches are kept, so the same command goes on from there")
    except MemoryError as error:
        text = one_line(error)  # of ours, or of code that knows no flags
        lower = "expected work that fits into memory, got none left: lower the flags that count"
        return _failed(text if text.startswith("expected") else lower)
    except (ImportError, RuntimeError, SystemError) as error:
        if not (text := of_address_space(error)):
            raise
        return _failed(text)
    except KeyboardInterrupt as error:
        kept = [str(error)] if error.args else []
        kept += ["finished searches are in the store"] if "store" in given else []
        return _failed("interrupted" + (f" ({', '.join(kept)})" if kept else ""), 130)
    return 0


@contextlib.contextmanager
def _output() -> Iterator[None]:
    """Give a run streams that it can write to, even if they are closed, and restore them at its end."""
    _open_closed_streams()
    stream, errors = sys.stdout, getattr(sys.stdout, "errors", None)
    by_lines = getattr(stream, "line_buffering", False)
    if isinstance(stream, io.TextIOWrapper):  # a character that its encoding lacks must not end the run
        stream.reconfigure(errors="backslashreplace", line_buffering=True)
    sys.stdout = _Output(stream)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a command reports it itself; another error comes first
            sys.stdout.flush()
        sys.stdout = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors, line_buffering=by_lines)


def _open_closed_streams() -> None:
    """Open closed streams (`>&-`) on /dev/null; else the next opened file would take a stream's place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _failed(message: str, status: int = 1) -> int:
    """Print an error and return the exit status."""
    for folder in _made_folders:
        with contextlib.suppress(OSError):  # not empty: what is finished stays
            folder.rmdir()
    if len(message) > _LONGEST_ERROR:  # a flag of thousands of characters, say
        message = f"{message[: _LONGEST_ERROR // 2]} ... {message[-_LONGEST_ERROR // 4 :]}"
    print(f"error: {message}", file=sys.stderr)
    return status


def _by_flag(message: str, given: flags.FlagValues) -> str:
    """Rephrase an error about an argument that a flag set, as an error about the flag."""
    match = re.fullmatch(r"[\w.]+\(\): expected (\w+) (?:to be )?(.*)", message)
    if match is None:
        return message
    flag = match[1]
    if flag not in given or f", got {given[flag].value!r}" not in match[2]:
        return message  # some other argument of that name
    return f"--{flag}: expected {match[2]}"


def _by_file(error: OSError, given: flags.FlagValues) -> str:
    """Rephrase an error about a file that a flag names, as an error about the flag; "" if none does."""
    if error.filename is None:
        return ""
    # Other flags have specs with a file in them.
    whole = re.compile(rf"(?<![\w./-]){re.escape(str(error.filename))}(?![\w./-])")
    for flag in given:
        value = given[flag].value
        values = value if isinstance(value, list) else [value]
        if given[flag].present and any(whole.search(str(value)) for value in values):
            return _no_file(flag, "a file", error)
    return ""


def _no_file(flag: str, expected: str, error: OSError) -> str:
    return f"--{flag}: expected {expected}, got {str(error.filename)!r} ({error.strerror})"


@contextlib.contextmanager
def errors_by_flag(flag: str, expected: str) -> Iterator[None]:
    """Raise errors about a file that cannot be read, or about its contents, as errors about a flag.

    Args:
      flag: the flag that names the file, or files.
      expected: a description of the files.
    """
    try:
        yield
    except ValueError as error:
        reason = str(error).partition(": ")[2]
        raise ValueError(f"--{flag}: {reason}" if reason.startswith("expected") else str(error)) from None
    except OSError as error:
        raise ValueError(_no_file(flag, expected, error)) from None


_made_folders: list[pathlib.Path] = []  # by the run that is under way


def output_folder(path: str) -> pathlib.Path:
    """Make the folder of --output_dir, before any work is done that could not be written.

    A run that fails removes it again if nothing is in it.
    """
    folder = pathlib.Path(path)
    try:
        _made_folders.extend(f for f in (folder, *folder.parents) if not f.exists())
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise ValueError(f"--output_dir: expected a folder, got {path!r} ({error.strerror})") from None
    if not writable:
        raise ValueError(f"--output_dir: expected a folder that can be written to, got {path!r}")
    return folder


class _Output:
    """Standard output, of which `| head` may read no more: the run goes on, for the files that it writes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._may_end():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._may_end():
            self._stream.flush()

    @contextlib.contextmanager
    def _may_end(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is still to be written, or stands in the buffer, goes nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, "standard output") from None


# -- bars, and how long there is ---------------------------------------------------------------------------


class _Log:
    """A stream for progress bars where there is no terminal: it prints a line now and then."""

    def __init__(self) -> None:
        self._next = time.monotonic() + min(_SECONDS_FIRST, _SECONDS_A_LINE)

    def write(self, text: str) -> None:
        if text.strip() and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_A_LINE
            print(text.strip(), file=sys.stderr, flush=True)

    def flush(self) -> None:
        pass


_log = _Log()
_until: Deadline | None = None  # of the command, for threads as well


class _Bar(tqdm):
    """A bar that shows how much time is left, if that is known."""

    @property
    def format_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().format_dict
        return fields | {"prefix": f"{fields['prefix'].removesuffix(': ')}{_time_left()}"}


def _time_left() -> str:
    if _until is None or math.isinf(_until.end):
        return ""
    return f" ({int(_until.left // 60)}:{int(_until.left % 60):02} left)"


@contextlib.contextmanager
def pressed_once() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; a second press raises KeyboardInterrupt.

    Processes that a shell runs in the background, and threads other than the main one, receive no Ctrl-C
    anyway; here the function then returns False.
    """
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        print("Looks no further; Ctrl-C again ends the program.", flush=True)

    before = signal.getsignal(signal.SIGINT)
    hears = before is not signal.SIG_IGN and threading.current_thread() is threading.main_thread()
    if hears:
        signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        if hears:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def running_until(minutes: float | None, *, began: float, stops: bool) -> Iterator[None]:
    """Give the run a deadline within the block.

    Args:
      minutes: the time of the whole run; None: as long as it takes.
      began: the run's begin, by `time.monotonic`.
      stops: whether Ctrl-C, pressed once, is a deadline as well.
    """
    global _until
    end = math.inf if minutes is None else began + _WORKING * 60.0 * minutes
    with contextlib.ExitStack() as stack:
        if stops:
            _until = Deadline(end, stack.enter_context(pressed_once()))
        elif minutes is not None:
            _until = Deadline(end)
        stack.enter_context(limited(_until))
        try:
            yield
        finally:
            _until = None


def progress_bar(iterable: Iterable[Any] | None = None, **arguments: Any) -> tqdm:
    """Return tqdm's bar on a terminal; in a log, a line with count and rate every ten seconds."""
    if sys.stderr.isatty():
        return _Bar(iterable, dynamic_ncols=True, **arguments)
    return _Bar(iterable, file=_log, ncols=100, mininterval=0.5, **arguments)
