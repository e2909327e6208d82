"""Fuzzing of all that reads what comes from outside.

    python -m tools.fuzz --inputs=10000 --seed=0 --only=pgn,store --report=fuzz.json

A target makes inputs, which are bytes, and uses each as a user would: a file is written and read, and what
came of it is worked with. What may come out is an ordinary result, or one of the target's refusals in one
line. Everything else is a finding (`tools.fuzz.runner`): another exception, a warning of our own code, a
crash, more than ten seconds, more than a gigabyte, a pickle that is read, a program or a connection that is
opened, or a file outside of the folder that was given.

Input i of a target is a function of the seed, the target's name, and i.
"""

from __future__ import annotations

import dataclasses
import pathlib
import random
from collections.abc import Callable

__all__ = ["TARGETS", "Target", "target"]


@dataclasses.dataclass(frozen=True)
class Target:
    """What is fuzzed.

    name: for --only.
    prepare: makes what the inputs are made of, once; it may take seconds.
    make: an input, of a generator and of what was prepared.
    use: works with an input in an empty folder.
    refusals: what `use` may raise, in one line.
    names_files: inputs are a user's own words, and files that they name may be opened. What is read from a
      file may never.
    """

    name: str
    prepare: Callable[[], object]
    make: Callable[[random.Random], bytes]
    use: Callable[[bytes, pathlib.Path], object]
    refusals: tuple[type[Exception], ...]
    names_files: bool

    def input(self, seed: int, number: int) -> bytes:
        """Input `number` of a run."""
        return self.make(random.Random(f"{seed} {self.name} {number}"))


TARGETS: dict[str, Target] = {}


def target(
    name: str,
    make: Callable[[random.Random], bytes],
    *,
    prepare: Callable[[], object] = lambda: None,
    refusals: tuple[type[Exception], ...] = (),
    names_files: bool = False,
) -> Callable[[Callable[[bytes, pathlib.Path], object]], Callable[[bytes, pathlib.Path], object]]:
    """Registers what uses the inputs of a target; ValueError is always a refusal."""

    def register(use: Callable[[bytes, pathlib.Path], object]) -> Callable[[bytes, pathlib.Path], object]:
        assert name not in TARGETS, name
        TARGETS[name] = Target(name, prepare, make, use, (ValueError, *refusals), names_files)
        return use

    return register
