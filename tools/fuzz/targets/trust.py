"""Files of strangers that would run, open or write something: nothing may come of them.

An input says which reader it is for, and what its file has: those of `tools/readers.py`, and the commands
that go on from a folder (`tools/resumed.py`), after changes. The oracle is the runner's: no program, no
connection, and no file but those of the folder. `TRUST=command_spar,command_drill` in the environment tries
some of them alone.
"""

from __future__ import annotations

import functools
import os
import pathlib
import random
import tempfile

from tools.fuzz import target
from tools.fuzz.mutate import bent
from tools.readers import PLACES, READERS, REFUSALS, SPECS
from tools.resumed import RESUMED, bent_state

_COMMAND = "command_"
WATCHED = READERS | {_COMMAND + name: reader for name, reader in RESUMED.items()}
_NAMES = sorted(filter(None, os.environ.get("TRUST", "").split(","))) or sorted(WATCHED)


@functools.cache
def _seeds(name: str) -> tuple[bytes, ...]:
    reader = WATCHED[name]
    return (*reader.good(), *reader.hostile())


_WORDS = tuple(text.encode("utf-8", "surrogateescape") for text in (*SPECS, *PLACES))


def prepare() -> None:
    """The files; and each reader once, since compiled functions come out of Numba's cache."""
    for name in _NAMES:
        reader = WATCHED[name]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, reader.name)
            path.write_bytes(_seeds(name)[0])
            reader.use(path)


def _make(rng: random.Random) -> bytes:
    name = rng.choice(_NAMES)
    if name.startswith(_COMMAND) and rng.random() < 0.7:
        return name.encode() + b"\n" + bent_state(rng, name.removeprefix(_COMMAND), _WORDS)
    seeds = _seeds(name)
    data = rng.choice(seeds) if rng.random() < 0.1 else bent(rng, seeds, _WORDS)
    return name.encode() + b"\n" + data


@target("trust", _make, prepare=prepare, refusals=REFUSALS)
def _(data: bytes, folder: pathlib.Path) -> object:
    name, _, file = data.partition(b"\n")
    reader = WATCHED.get(name.decode("utf-8", "replace"))
    if reader is None:  # a finding that is being made smaller
        return None
    path = folder / reader.name
    path.write_bytes(file)
    return reader.use(path)
