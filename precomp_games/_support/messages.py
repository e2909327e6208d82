"""What others say, in messages and pages of ours: on one line, short, and without control characters."""

from __future__ import annotations

import difflib
import shlex
import unicodedata
from collections.abc import Iterable

_LONGEST = 300  # characters
_LINE_ENDS = "\n\r\t\u2028\u2029"


def one_line(error: object) -> str:
    """What went wrong, on one line; where an error says nothing, its name."""
    text = " ".join(str(error).split()) or repr(error)
    plain = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST])
    return plain[:_LONGEST]


def pasteable(text: str) -> str:
    """A text as a word of a shell's command line; where it has control characters, as Python writes it."""
    return shlex.quote(text) if text.isprintable() else repr(text)


def counted(number: int, what: str, form: str = "") -> str:
    """How many there are, such as "1 game" or "12 games"; the number by a format."""
    return f"{number:{form}} {what}{'s' * (number != 1)}"


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """What is added to an error about a name that is none; "" where no known one is near it."""
    near = difflib.get_close_matches(str(word)[:100], list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def plain_text(text: str, longest: int = 2000) -> str:
    """A text from outside without characters that only control layout, and of a length that can be shown."""
    kept = "".join(
        " " if character in _LINE_ENDS else character
        for character in text[: 2 * longest]
        if character in _LINE_ENDS or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"
