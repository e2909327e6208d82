"""Effects of code on the machine, by Python's audit events: programs, connections, files, pickles."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

__all__ = ["Audit"]

_ROOT = pathlib.Path(__file__).parents[1]
_NEVER = frozenset(
    {
        *("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty"),
        *("os.startfile", "pty.spawn", "webbrowser.open", "ctypes.dlopen", "pickle.find_class"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "urllib.Request"),
        *("sqlite3.enable_load_extension", "sqlite3.load_extension"),
    }
)
_CHANGES = frozenset(
    {
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown"),
        *("os.link", "os.symlink", "os.utime", "os.setxattr", "shutil.move", "shutil.rmtree"),
    }
)


class Audit:
    """A record of forbidden effects while it is on. A process has one, and keeps it.

    events: (kind, what, argument).
    """

    def __init__(self, work: pathlib.Path) -> None:
        """Allow reading and writing files within `work`, and reading Python's own and the checkout's."""
        self.events: list[tuple[str, str, str]] = []
        self.is_on = False
        self._work = self._within = str(work)
        own = (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), str(_ROOT))
        more = ("/proc/", "/dev/", "/sys/", "/etc/localtime", "/usr/share/zoneinfo")
        self._readable = (*own, *map(os.path.realpath, own), *more)
        sys.addaudithook(self._hook)

    @contextlib.contextmanager
    def on(self, work: str | os.PathLike[str] | None = None) -> Iterator[None]:
        """Watch the block; its code may write in `work`, and nowhere else of its own."""
        self.events.clear()
        self._within = self._work if work is None else f"{os.path.abspath(work)}{os.sep}"
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def named(self, path: str | bytes | os.PathLike[str]) -> bool:
        """Return whether a file elsewhere may be opened all the same."""
        del path
        return False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        wrong = event in _NEVER and not (event == "pickle.find_class" and _for_numba())
        if event == "open":
            path, _, flags = arguments
            writes = bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            wrong = self._is_elsewhere(path, writes) and not self.named(path)
        elif event == "sqlite3.connect":
            path, _, how = os.fsdecode(arguments[0]).removeprefix("file://").partition("?")
            wrong = path != ":memory:" and self._is_elsewhere(path, "mode=ro" not in how.split("&"))
        elif event in ("os.remove", "os.rmdir") and arguments[1] >= 0:  # below a folder that is open
            wrong = self._is_elsewhere(os.path.join(f"/proc/self/fd/{arguments[1]}", arguments[0]), True)
        elif event in _CHANGES:
            both = event in ("os.rename", "os.link", "os.symlink", "shutil.move")
            wrong = any(self._is_elsewhere(path, True) for path in arguments[: 1 + both])
        if wrong:
            argument = str(arguments[0])[:80] if arguments else ""
            self.events.append(("audit", f"{event} {argument!r}", f"{event}{arguments!r}"[:500]))

    def _is_elsewhere(self, path: Any, writes: bool) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):  # a number of what is open
            return False
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith("/proc/self/fd/"):
            name = os.path.realpath(name)
        allowed = (self._within,) if writes else (self._within, *self._readable)
        return not f"{name}{os.sep}".startswith(allowed) and name != os.devnull and not _for_numba()


def _for_numba() -> bool:
    """Return whether numba is reading a compiled function from its cache, which has pickles of its own."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith("numba/core/caching.py"):
            return True
        frame = frame.f_back
    return False
