"""Time limits of a run: one deadline for all of it, and shares of the remaining time for its parts.

Code that searches calls `time_is_up` before each search, and raises `OutOfTimeError` in its place. Work that
is useful in part is done in growing steps, and the last one that there is time for counts
(`as_far_as_time_goes`): the first is small, and taken in any case, so that there always is a result. A step
reuses the searches of the one before it. Without a deadline, the last step alone is taken.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")
Step = TypeVar("Step")
Found = TypeVar("Found")

_IN_HASTE = 0.8  # of the time that is left, for the next step: it may take longer than it seems


class OutOfTimeError(Exception):
    """Error: no time is left for the next piece of work."""


@dataclasses.dataclass(frozen=True)
class Deadline:
    """The end of some work.

    Attributes:
      end: By `time.monotonic`; infinity: never by itself.
      stopped: Whether somebody has ended it before.
    """

    end: float
    stopped: Callable[[], bool] = lambda: False

    @property
    def left(self) -> float:
        """Seconds that are left, 0 once it has passed."""
        return 0.0 if self.stopped() else max(0.0, self.end - time.monotonic())


_current: contextvars.ContextVar[Deadline | None] = contextvars.ContextVar("deadline", default=None)


def deadline() -> Deadline | None:
    """Return the deadline of the work under way; None where it has no limit."""
    return _current.get()


def seconds_left() -> float:
    """Return the seconds until the deadline; infinity without one."""
    now = _current.get()
    return math.inf if now is None else now.left


def time_is_up() -> bool:
    """Return whether the deadline has passed."""
    return seconds_left() <= 0.0


def check_finished(done: int, of: int) -> None:
    """Raise `OutOfTimeError` where time did not do for all of some work."""
    if done < of:
        raise OutOfTimeError(f"expected time for {of} searches, got it for {done}")


@contextlib.contextmanager
def limited(until: Deadline | None) -> Iterator[None]:
    """Give the work in the block this deadline, or none."""
    token = _current.set(until)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def part(share: float) -> Iterator[None]:
    """Give the work in the block this share of the time that is left."""
    now = _current.get()
    if now is not None and math.isfinite(now.end):
        now = dataclasses.replace(now, end=time.monotonic() + share * now.left)
    with limited(now):
        yield


def as_far_as_time_goes(
    steps: Iterable[Step], whole: Step, work: Callable[[Step], Found], share: float = 1.0
) -> tuple[Step, Found]:
    """Return the last one of growing steps that there is time for, and what was found by it.

    Args:
      steps: each takes no less time than the one before; there is one.
      whole: the last of them, which is taken where time is not limited.
      work: raises `OutOfTimeError` where time is up; the first step has no deadline.
      share: of the time that is left, for the others.
    """
    now = _current.get()
    if now is None:
        return whole, work(whole)
    if math.isinf(now.end):  # as without a deadline, unless somebody ends it
        with contextlib.suppress(OutOfTimeError):
            return whole, work(whole)
    done: list[tuple[Step, Found]] = []
    with part(share):
        took = 0.0
        for step in steps:
            if done and took > seconds_left():
                break
            began = time.monotonic()
            try:
                with contextlib.nullcontext() if done else limited(None):
                    done.append((step, work(step)))
            except OutOfTimeError:
                break
            took = time.monotonic() - began
    return done[-1]


def sample_in_time(
    items: Sequence[Item],
    work: Callable[[list[Item]], Found],
    *,
    seed: int,
    share: float = 1.0,
    first: int = 32,
) -> tuple[int, Found]:
    """Draw as many items as there is time for; return their number, and what `work` found from them.

    Args:
      items: all of them.
      work: takes some of them, in their order; see `as_far_as_time_goes`.
      seed: of the drawing.
      share: see there.
      first: the number that is taken in any case.
    """
    whole = len(items)
    order = np.random.default_rng(seed).permutation(whole)

    def sizes() -> Iterator[int]:
        before, size = 0, min(first, whole)
        while size > before:
            began = time.monotonic()
            yield size
            now = time.monotonic()
            left = _IN_HASTE * seconds_left()
            more = int(min(size, left * (size - before) / max(now - began, 1e-6)))
            before, size = size, min(size + more, whole)

    return as_far_as_time_goes(
        sizes(), whole, lambda size: work([items[k] for k in sorted(order[:size].tolist())]), share
    )
