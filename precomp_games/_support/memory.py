"""The memory that a process has and may have, and a refusal before it takes more.

    meter = MemoryMeter(2e9)
    states = list(meter.watched("states", (state.child(action) for action in actions), len(actions)))

What is in use is measured, as the resident memory of the whole process: that is what a machine runs out of,
and it includes what policies, engines and OpenSpiel's C++ keep. What is still to come is estimated from that:
objects that follow take as much as those before them took. An estimate that passes the limit is refused at
once, with what to change.

Deviation: freed memory that the C library holds back is handed back to the system first (`malloc_trim`),
since it would count as used.

Cost: 10 microseconds a look, at every few thousand states.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.abc
import math
import mmap
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, shown

BLOCK = 8192
"""Objects that are made between two looks at the memory: some 50 MB of states."""

_LEAST = 1e6
_SHARE = 0.8  # of what is available, by default
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_MEMORY = pathlib.Path("/proc/meminfo")
_OWN_GROUPS = pathlib.Path("/proc/self/cgroup")
_Object = TypeVar("_Object")
# What of a package loads an OpenBLAS of its own, and bytes of address space that this takes for a thread, a
# buffer and a stack. That of numpy gives up by itself.
_OPENBLAS = ({"highspy"}, 144 << 20), ({"scipy.linalg", "scipy.special"}, 48 << 20)


def size_text(size: float) -> str:
    """Return bytes in words, such as "2 GB"."""
    unit = next((unit for unit in ("T", "G", "M", "K") if size >= _UNITS[unit]), "")
    return f"{size / _UNITS[unit]:.3g} {unit}B"


def check_memory(value: Any, name: str) -> float:
    """Return a `Memory` limit in bytes.

    Raises:
      ValueError: it is no such limit.
    """
    if not isinstance(value, str):
        size = checks.check_number(value, name, finite=False)
    elif match := _SIZE.fullmatch(value):
        base = _UNITS[match[2].upper()]
        size = float(match[1]) * (1024 ** round(math.log(base, 1000)) if match[3] else base)
    else:
        size = 0.0
    if size < _LEAST:  # a unit was forgotten
        kind = 'a size of at least 1 MB, such as "2GB"'
        raise ArgumentError(f"expected {name} to be {kind}, got {shown(value)}")
    return size


Memory = Annotated[float | str, checks.Check(check_memory)]
"""A limit in bytes: a number, or a text such as "2GB" or "512MiB"; the function gets a number."""


def default_memory() -> float:
    """Return four fifths of what the process has and could still get, by machine and control groups.

    So it stays the same while the process grows, and others' memory is not counted.
    """
    return _SHARE * (resident_memory() + max(min([_available_memory(), *_group_rooms()]), 0.0))


def _available_memory() -> float:
    """Return the bytes that the machine could give without swapping."""
    with contextlib.suppress(OSError, ValueError):
        return 1024.0 * _numbers(_MEMORY)["MemAvailable:"]
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))


def _group_rooms() -> list[float]:
    """Return the bytes that are left below the limits of this process's control groups, of both versions."""
    rooms = []
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        names = ("limit_in_bytes", "usage_in_bytes", "total_inactive_file")
        limit, usage, cached = names if controllers else ("max", "current", "inactive_file")
        root = _CGROUPS / controllers
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):  # a group may have no more than what it is in
            with contextlib.suppress(OSError, ValueError):  # not there, or "max"
                rooms.append(float((folder / f"memory.{limit}").read_text(encoding="utf-8")))
                rooms[-1] -= float((folder / f"memory.{usage}").read_text(encoding="utf-8"))
                rooms[-1] += _numbers(folder / "memory.stat").get(cached, 0.0)  # of files, let go when needed
            if folder == root:
                break
    return rooms


def _numbers(path: pathlib.Path) -> dict[str, float]:
    """Return the number behind each name in a file of lines such as "MemFree: 12 kB"."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: float(number) for name, number, *_ in lines}


def resident_memory() -> float:
    """Return the bytes of physical memory that the process has now."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return float(int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))


class _Guard(importlib.abc.MetaPathFinder):
    """Guard against imports that would spin forever on a whole core without address space (`ulimit -v`).

    As it is loaded, an OpenBLAS takes a buffer for each of its threads, and one more when it computes. Where
    it gets none it asks again, without end. So as much is mapped here before, and let go untouched.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Look at the module that is about to be imported, and leave it to others."""
        for names, size in _OPENBLAS:
            if fullname in names and names.isdisjoint(sys.modules):
                self._check(fullname.partition(".")[0], size)

    def _check(self, package: str, size: int) -> None:
        limits = (os.environ.get(f"{who}_NUM_THREADS", "") for who in ("OPENBLAS", "GOTO", "OMP"))
        cores = len(os.sched_getaffinity(0))
        threads = min(cores, next((int(text) for text in limits if text.isdecimal() and int(text)), cores))
        with contextlib.ExitStack() as mapped:
            try:
                for _ in range(threads + 1):
                    mapped.enter_context(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            except OSError:
                raise MemoryError(
                    f"expected {size_text((threads + 1) * size)} of address space for {package}, got less: "
                    "raise ulimit -v, or set OPENBLAS_NUM_THREADS=1"
                ) from None


sys.meta_path.insert(0, _Guard())


# Looked up once, here: what reads files loads no libraries.
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", abs)


def give_back() -> None:
    """Let the C library return what is free to the system, where it can."""
    _TRIM(0)


def in_blocks(*columns: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns as Python's numbers, several times as large, a block at a time."""
    for first in range(0, len(columns[0]), BLOCK):
        yield from zip(*(column[first : first + BLOCK].tolist() for column in columns), strict=True)


class MemoryMeter:
    """A watch on one growing piece of work.

    Attributes:
      limit: Bytes; infinite for no limit.
      where: How far the work is, for the error.
    """

    def __init__(self, limit: float = math.inf, advice: str = "") -> None:
        """Begin.

        Args:
          limit: bytes.
          advice: what to change besides the limit.
        """
        self.limit = limit
        self.where = "at the start"
        self._advice = advice
        self._most = resident_memory()
        self._took: dict[str, tuple[float, int]] = {}  # by kind: bytes, and the objects that took them
        self._trimmed = False

    def begin(self, where: str) -> None:
        """Start another part of the work: memory taken in between counts for neither."""
        self.where, self._trimmed = where, False
        self._most = max(self._most, resident_memory())

    def watched(self, kind: str, objects: Iterable[_Object], count: int) -> Iterator[_Object]:
        """Yield `count` objects as they are made; those of a kind are taken to be of equal size.

        Raises:
          ValueError: see `check`; those that follow are estimated by those that came.
        """
        self.look(kind, 0, count)
        for made, each in enumerate(objects, 1):
            yield each
            if made % BLOCK == 0:
                self.look(kind, BLOCK, count - made)

    def look(self, kind: str, made: int, left: int) -> None:
        """Compare the memory with the limit: what it is, and what objects of a kind that are left will take.

        Args:
            kind: of the objects.
            made: how many of them were made since the last look; 0 as they begin.
            left: how many are still to be made.

        Raises:
            ValueError: it passes the limit.
        """
        used = resident_memory()
        size, seen = self._took.get(kind, (0.0, 0))
        if made and used > self._most:  # elsewhere they reused freed memory, and show nothing
            size, seen = size + used - self._most, seen + made
            self._took[kind] = (size, seen)
        self._most = max(self._most, used)
        self._hold(used, left * size / seen if seen else 0.0)

    def check(self, ahead: float = 0.0) -> None:
        """Check the memory in use now, and that about to be, against the limit.

        Raises:
          ValueError: it passes the limit.
        """
        self._hold(resident_memory(), ahead)

    def _hold(self, used: float, ahead: float) -> None:
        if used + ahead > self.limit and not self._trimmed:
            self._trimmed = True
            give_back()
            used = resident_memory()
        if used + ahead > self.limit:
            raise ArgumentError(
                f"expected to need at most max_memory={size_text(self.limit)}, got an "
                f"estimate of {size_text(used + ahead)} {self.where}, where {size_text(used)} are in use; "
                f"{self._advice}raise max_memory"
            )
