"""Files of strangers: they are read or refused, and nothing that they name is run, opened or written.

Each reader of `tools/readers.py` is a target, and each command that goes on from a folder
(`tools/resumed.py`).
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
from typing import Any

import numpy as np

from precomp_games import HistoryTree
from tools.fuzz import target
from tools.fuzz.mutate import changed
from tools.readers import PLACES, REFUSALS, SPECS, Reader
from tools.resumed import WATCHED, changed_state

_WORDS = tuple(text.encode("utf-8", "surrogateescape") for text in (*SPECS, *PLACES))


def with_fingerprint(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Make a fingerprint fit, as anyone who changes a file on purpose can."""
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
    words = (*reader.words, *_WORDS)
    mend = with_fingerprint if name == "tree" else None
    change = functools.partial(changed, words=words, suffix=pathlib.Path(reader.name).suffix, mend=mend)
    if name.startswith("command_"):
        change = functools.partial(changed_state, name.removeprefix("command_"), words=words)

    def use(data: bytes, folder: pathlib.Path) -> object:
        path = folder / reader.name
        path.write_bytes(data)
        return reader.use(path)

    def seeds() -> list[bytes]:
        good, hostile = [*reader.good()], [*reader.hostile()]
        return [*good * (2 * len(hostile) // len(good) + 1), *hostile]

    target(name, seeds, words, refusals=REFUSALS, change=change)(use)


for _name, _reader in WATCHED.items():
    _register(_name, _reader)
