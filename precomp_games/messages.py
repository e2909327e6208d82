"""What others say, in messages of ours: on one line, short, and without control characters."""

from __future__ import annotations

__all__ = ["one_line"]

_LONGEST = 300  # characters


def one_line(error: object) -> str:
    """What went wrong, on one line; where an error says nothing, its name."""
    text = " ".join(str(error).split()) or repr(error)
    plain = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST])
    return plain[:_LONGEST]
