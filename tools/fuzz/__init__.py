"""Fuzzing of all that reads what comes from outside, by libFuzzer (pip install atheris).

    python -m tools.fuzz --inputs=10000 --seed=0 --only=games,store --report=fuzz.json

A target has inputs to begin with, which are bytes, and uses each as a user would: a file is written and read,
and what came of it is worked with. What may come out is an ordinary result, or one of the target's refusals
in one line. Everything else is a finding (`tools.fuzz.child`): another exception, a warning of our own code,
a crash, more than ten seconds, more than a gigabyte, a pickle that is read, a program or a connection that is
opened, or a file outside of the folder that was given.

libFuzzer goes on with inputs that reach new lines. What its changes of bytes would never make (JSON,
archives and databases that still are such) `tools.fuzz.mutate` makes. Without atheris inputs are changed at
random, and input i of a target is a function of the seed, the target's name, and i.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import random
from collections.abc import Callable, Sequence

from tools.fuzz.mutate import Plain, changed, damaged

__all__ = ["TARGETS", "Target", "target"]

_Use = Callable[[bytes, pathlib.Path], object]


@dataclasses.dataclass(frozen=True)
class Target:
    """A target of fuzzing.

    name: for --only.
    seeds: makes the inputs to begin with; it may take seconds.
    use: works with an input in an empty folder.
    refusals: errors that `use` may raise, in one line.
    words: tokens that have a meaning to the reader.
    change: makes another input of one, with libFuzzer's own changes.
    names_files: inputs are a user's own words, and files that they name may be opened. Files named in a file
      may never be.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    use: _Use
    refusals: tuple[type[Exception], ...]
    words: Sequence[bytes]
    change: Callable[[random.Random, bytes, Plain], bytes]
    names_files: bool

    def input(self, seed: int, number: int) -> bytes:
        """Make input `number` of a run without atheris."""
        rng = random.Random(f"{seed} {self.name} {number}")
        plain = functools.partial(damaged, rng, words=self.words)
        return self.change(rng, rng.choice(self.seeds()), plain)


TARGETS: dict[str, Target] = {}


def target(
    name: str,
    seeds: Callable[[], Sequence[bytes]],
    words: Sequence[bytes] = (),
    *,
    refusals: tuple[type[Exception], ...] = (),
    names_files: bool = False,
    change: Callable[[random.Random, bytes, Plain], bytes] | None = None,
) -> Callable[[_Use], _Use]:
    """Register what uses the inputs of a target; ValueError is always a refusal."""
    changing = change or functools.partial(changed, words=words)

    def register(use: _Use) -> _Use:
        assert name not in TARGETS, name
        made = functools.cache(seeds)
        TARGETS[name] = Target(name, made, use, (ValueError, *refusals), words, changing, names_files)
        return use

    return register
