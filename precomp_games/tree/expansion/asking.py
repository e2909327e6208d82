"""Asking policies about very many states, within the memory that there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from precomp_games._support.memory import BLOCK, MemoryMeter
from precomp_games.policies.rows import PolicyRows

__all__ = ["asked_rows"]


def asked_rows(
    ask: Callable[[Sequence[Any]], PolicyRows], states: Sequence[Any], memory: MemoryMeter
) -> PolicyRows:
    """`ask(states)`, a block of states after the other: answers are dictionaries, much larger than rows.

    Raises:
      ValueError: as `ask`, or the memory does not suffice.
    """
    parts = []
    for first in range(0, max(len(states), 1), BLOCK):
        parts.append(ask(states[first : first + BLOCK]))
        memory.check()
    if len(parts) == 1:
        return parts[0]
    memory.check(sum(column.nbytes for part in parts for column in part))  # all of it twice, for a moment
    counts = np.concatenate([np.diff(part.start) for part in parts])
    _, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PolicyRows(np.append(0, np.cumsum(counts)), *columns)
