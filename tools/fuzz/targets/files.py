"""Files of strangers: they are read or refused, and nothing that they name is run, opened or written.

Each reader of `tools/readers.py` is a target, and each command that goes on from a folder
(`tools/resumed.py`).
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import random
import tempfile
from typing import Any

import numpy as np

from precomp_games import HistoryTree
from tools.fuzz import target
from tools.fuzz.mutate import bent, bent_file
from tools.readers import PLACES, REFUSALS, SPECS, Reader
from tools.resumed import WATCHED, bent_state

_WORDS = tuple(text.encode("utf-8", "surrogateescape") for text in (*SPECS, *PLACES))


def _with_fingerprint(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Makes a fingerprint fit, as whoever changes a file on purpose can."""
    with contextlib.suppress(Exception):
        fields = {
            name: header[name] for name in ("penalties", "utility_range", "utility_sum", "stop_value", "work")
        }
        keys = header["infoset_keys"]
        tree = HistoryTree(
            game_string=header["game"],
            infoset_keys=None if keys is None else tuple(map(str, keys)),
            **fields,
            **{name: np.asarray(array) for name, array in arrays.items()},
        )
        header["fingerprint"] = tree.fingerprint


def _register(name: str, reader: Reader) -> None:
    """Make a target of a reader."""

    @functools.cache
    def seeds() -> tuple[list[bytes], list[bytes]]:
        return [*reader.good()], [*reader.hostile()]

    def use(data: bytes, folder: pathlib.Path) -> object:
        path = folder / reader.name
        path.write_bytes(data)
        return reader.use(path)

    def prepare() -> None:
        """Read a good file: compiled functions come out of Numba's cache by pickles."""
        with tempfile.TemporaryDirectory() as folder:
            use(seeds()[0][0], pathlib.Path(folder))

    def make(rng: random.Random) -> bytes:
        good, hostile = seeds()
        kind = rng.random()
        if kind < 0.1:
            return rng.choice(hostile)
        if kind < 0.25:
            return bent(rng, hostile, _WORDS)
        words = reader.words if reader.words and kind < 0.8 else _WORDS
        if name.startswith("command_"):
            return bent_state(rng, name.removeprefix("command_"), words)
        return bent_file(rng, reader.name, good, words, _with_fingerprint if name == "tree" else None)

    target(name, make, prepare=prepare, refusals=REFUSALS)(use)


for _name, _reader in WATCHED.items():
    _register(_name, _reader)
