"""Progress that the library shows of long work, as tests see it."""

import contextlib
from collections.abc import Iterator
from typing import Any

from precomp_games import config


class Bar:
    """Tqdm's, as far as the library uses it.

    Attributes:
        given: what it was made with.
        told: (how much was done, the note) whenever that was shown.
    """

    def __init__(self, **given: Any) -> None:
        self.given, self.total = given, given["total"]
        self.n, self.note = 0, ""
        self.told: list[tuple[int, str]] = []
        self.ended = False

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *error: Any) -> None:
        self.ended = True

    def set_postfix_str(self, note: str, refresh: bool = True) -> None:
        self.note = note
        if refresh:
            self.told.append((self.n, note))

    def update(self, more: int) -> None:
        self.n += more
        self.told.append((self.n, self.note))


@contextlib.contextmanager
def shown() -> Iterator[list[Bar]]:
    """Yield the bars that are made within it, in their order."""
    bars: list[Bar] = []

    def make(**given: Any) -> Bar:
        bars.append(Bar(**given))
        return bars[-1]

    with config(progress=make):
        yield bars
