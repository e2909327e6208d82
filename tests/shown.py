"""Progress that the library shows of long work, as tests see it."""

import contextlib

from precomp_games import config


class Bar:
    """Tqdm's, as far as the library uses it.

    Attributes:
        given: what it was made with.
        notes: (how much was done, the note) whenever that was shown.
    """

    def __init__(self, **given):
        self.given, self.total, self.notes, self.ended = given, given["total"], [], False
        self.n, self.note = 0, ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ended = True

    def set_postfix_str(self, note, refresh=True):
        self.note = note
        if refresh:
            self.notes.append((self.n, note))

    def update(self, more):
        self.n += more
        self.notes.append((self.n, self.note))


@contextlib.contextmanager
def shown():
    """Yield the bars that are made within it, in their order."""
    bars = []

    def make(**given):
        bars.append(Bar(**given))
        return bars[-1]

    with config(progress=make):
        yield bars
