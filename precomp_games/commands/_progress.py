"""Bars of commands: in a log, a line now and then; and a word of what runs where nothing is counted.

A command that has --minutes has a deadline (`running_until`), and its bars say what is left.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from types import FrameType
from typing import Any

from tqdm import tqdm

from precomp_games._support.config import bar as bar
from precomp_games._support.deadlines import Deadline, limited

_SECONDS_FIRST = 2.0  # that a run says nothing, at first
_SECONDS_A_LINE = 10.0  # in a log
_WORKING = 0.9  # of --minutes; in the rest files are written


class _Log:
    """Where bars go that nobody sees move: a line of them now and then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        self._next = time.monotonic() + min(_SECONDS_FIRST, _SECONDS_A_LINE)

    def write(self, text: str) -> None:
        line = text.strip()
        with self._lock:
            if line and time.monotonic() >= self._next:
                self._next = time.monotonic() + _SECONDS_A_LINE
                print(line, file=sys.stderr, flush=True)

    def flush(self) -> None:
        pass


_log = _Log()
_bars: weakref.WeakValueDictionary[int, tqdm] = weakref.WeakValueDictionary()  # in the order of their making
_number = itertools.count()


_until: Deadline | None = None  # of the command, for threads as well


class _Bar(tqdm):
    """A bar that says how much time is left, where that is known."""

    @property
    def format_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = super().format_dict
        return told | {"prefix": f"{told['prefix'].removesuffix(': ')}{_time_left()}"}


def _time_left() -> str:
    if _until is None or math.isinf(_until.end):
        return ""
    return f" ({int(_until.left // 60)}:{int(_until.left % 60):02} left)"


@contextlib.contextmanager
def pressed_once() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; pressed again, it interrupts as ever.

    What a shell runs in the background, and threads that are not the main one, hear of no Ctrl-C before, and
    of none here.
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
    """Within it, the run has this deadline.

    Args:
      minutes: of all of the run; None: as long as it takes.
      began: when it began, by `time.monotonic`.
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
    """Tqdm's bar on a terminal; elsewhere, such as in a log, a line with count and rate every ten seconds."""
    if sys.stderr.isatty():
        bar = _Bar(iterable, dynamic_ncols=True, **arguments)
    else:
        bar = _Bar(iterable, file=_log, ncols=100, mininterval=0.5, **arguments)
    _bars[next(_number)] = bar
    return bar


class Clock:
    """Shows that a run goes on while it counts nothing: the seconds of its bar, or else where it is.

    Work that has no bar is named, after two seconds of silence, by the function of the library that runs.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._bar: tqdm | None = None  # of a terminal, while there is no other
        self.waits = False  # for what is typed

    @contextlib.contextmanager
    def running(self, own_folders: Collection[str]) -> Iterator[None]:
        """Watches the thread that calls it.

        Args:
          own_folders: of the modules whose functions are not named: those of commands and examples.
        """
        self._own_folders = own_folders
        self._main, self._begun = threading.get_ident(), time.monotonic()
        self._ended = threading.Event()  # another one for each run: the thread of the last may still be there
        _log.begin()
        threading.Thread(target=self._run, args=(self._ended,), daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()
            self.said()

    def said(self) -> None:
        """Something else is about to be written."""
        with self._lock:
            self._begun = time.monotonic()
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(1.0):
            with contextlib.suppress(RuntimeError, OSError, ValueError):  # a bar just opened; nobody listens
                self._tick()

    def _tick(self) -> None:
        counting = [bar for bar in _bars.values() if not bar.disable]
        if counting:
            self.said()
            if sys.stderr.isatty():
                for bar in counting:
                    bar.refresh()
            else:
                _log.write("\n".join(map(str, counting)))
            return
        with self._lock:
            silent = time.monotonic() - self._begun
            if silent < _SECONDS_FIRST or self.waits or self._ended.is_set():
                return
            what = f"Working: {self._where()}{_time_left()}"
            if not sys.stderr.isatty():
                _log.write(f"{what}, {silent:.0f} s")
            elif self._bar is None:
                self._bar = tqdm(desc=what, bar_format="{desc}, {elapsed}", leave=False)
                self._bar.start_t -= silent
            else:
                self._bar.set_description_str(what)

    def _where(self) -> str:
        """The outermost function of the library that the run is in; its own where it is in none."""
        frame, name = sys._current_frames().get(self._main), "main"
        while frame is not None:
            code = frame.f_code
            folder = os.path.dirname(os.path.abspath(code.co_filename))
            if frame.f_globals.get("__name__") == "__main__" or folder in self._own_folders:
                return name if name != "main" else code.co_name
            if code.co_name.isidentifier():
                name = code.co_name
            frame = frame.f_back
        return name


CLOCK = Clock()
"""Of the process: a command may be called from another one, and both write to the same streams."""


def typed(prompt: str) -> str:
    """`input`, during which the clock is silent: whoever types knows what is waited for."""
    CLOCK.waits = True
    try:
        return input(prompt)
    finally:
        CLOCK.said()
        CLOCK.waits = False
