"""Measurements: ratios of times taken side by side, and peaks of memory in a fresh process.

Times are never compared across runs. The two works of a ratio run in turns, so that a neighbor who keeps the
machine busy slows both; the ratio is that of the shortest times, and the spread over the turns is shown
with it.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import gc
import multiprocessing
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Row", "Times", "fresh_process", "peak_memory", "side_by_side", "status_bytes", "table"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table. target: empty, and reached None, if the figure has no target."""

    what: str
    measured: str
    target: str = ""
    reached: bool | None = None


@dataclasses.dataclass(frozen=True)
class Times:
    """Wall-clock seconds of each turn, by name."""

    seconds: Mapping[str, list[float]]

    def least(self, name: str) -> float:
        return min(self.seconds[name])

    def ratio(self, over: str, under: str) -> float:
        return self.least(over) / self.least(under)

    def text(self, over: str, under: str) -> str:
        """Return the ratio of the shortest times, with the least and the greatest of a single turn."""
        turns = [a / b for a, b in zip(self.seconds[over], self.seconds[under], strict=True)]
        return f"{self.ratio(over, under):.1f} x ({min(turns):.1f} to {max(turns):.1f})"


def side_by_side(turns: int, **works: Callable[[], Any]) -> Times:
    """Run each of `works` once a turn; their results are dropped after the clock has stopped."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(turns):
        for name, work in works.items():
            gc.collect()
            start = time.perf_counter()
            result = work()
            seconds[name].append(time.perf_counter() - start)
            del result
    return Times(seconds)


def fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return `work(*arguments)` of a Python process of its own, started anew and not forked."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(work, *arguments).result()


def peak_memory(work: Callable[[], Any]) -> tuple[int, Any]:
    """Return the peak bytes of resident memory that `work()` takes beyond those before, and its result.

    Linux only: the process's high-water mark (VmHWM) is set back through /proc/self/clear_refs, since
    ru_maxrss remembers what was freed before, and even the parent process. What the C library holds free is
    given back first: `work` would use it unseen.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    before = status_bytes("VmRSS")
    result = work()
    return status_bytes("VmHWM") - before, result


def status_bytes(field: str) -> int:
    """Return a field of /proc/self/status in bytes: VmRSS now, VmHWM the peak since the program started."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def table(rows: list[Row]) -> str:
    """Return the rows as text, in columns."""
    marks = {None: "", True: "yes", False: "NO"}
    lines = [("what", "measured", "target", "reached")]
    lines += [(row.what, row.measured, row.target, marks[row.reached]) for row in rows]
    widths = [max(len(line[k]) for line in lines) for k in range(4)]
    lines.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )
