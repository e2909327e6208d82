"""Names of players: which are the same, and which may be.

A name is compared as its words, `name_words`. A name that a file has is that player's; one that it does not
have, such as "Karpov, A.", fits all that may be so written, and an error lists them where they are several.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from precomp_games._support.checks import ArgumentError

_CHOICES = 8  # names that an error lists
# What specs have other uses for, and dots, which are written or not.
_SEPARATORS = str.maketrans(dict.fromkeys(",.()=", " "))
_ESCAPED = re.compile(r'\\(["\\])')


def tag_text(value: str) -> str:
    r"""A tag's value as it is meant: PGN writes \" and \\ for quotation marks and backslashes in it."""
    return _ESCAPED.sub(r"\1", value) if "\\" in value else value


def printable_name(name: str) -> str:
    """A name without characters that are not seen, such as those that control a terminal."""
    return name if name.isprintable() else "".join(c for c in name if c.isprintable() or c.isspace())


def name_words(name: str) -> tuple[str, ...]:
    """A name as it is compared: "Karpov, A." and "karpov a" are the same."""
    return tuple(printable_name(name).casefold().translate(_SEPARATORS).split())


def alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two names may be one person's: the first word, and of the others what both have."""
    pairs = zip(one[1:], other[1:], strict=False)
    return one[:1] == other[:1] and all(a.startswith(b) or b.startswith(a) for a, b in pairs)


def same_initials(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two names have the same first word, and the same initials of others that both have."""
    return one[:1] == other[:1] and all(a[0] == b[0] for a, b in zip(one[1:], other[1:], strict=False))


def fitting_names(player: str, names: Mapping[str, int]) -> list[list[str]]:
    """The names of a file that each spelling of a player fits, the most frequent first.

    A name that the file has fits itself alone; "Karpov" and "Karpov, A." fit all that may be so written.

    Args:
        player: spellings, separated by semicolons.
        names: games by name, the most frequent first.
    """
    known: dict[tuple[str, ...], str] = {}
    for name in names:
        known.setdefault(name_words(name), name)
    parts = [name_words(part) for part in player.split(";")]
    return [
        [known[wanted]]
        if wanted in known
        else [name for words, name in known.items() if wanted and alike(wanted, words)]
        for wanted in parts
    ]


def resolve_names(player: str, names: Mapping[str, int], path: str) -> frozenset[tuple[str, ...]]:
    """The spellings, as `name_words`, of the player that is meant.

    A name that the file has is that player's; so is one that fits a single name in the file ("Karpov",
    "Karpov, A."). Several spellings are separated by semicolons.

    Args:
        player: who is meant.
        names: games by name, the most frequent first.
        path: the file.

    Raises:
        ValueError: nobody has that name, or several have; the error lists them.
    """
    spellings: set[tuple[str, ...]] = set()
    for part, fitting in zip(player.split(";"), fitting_names(player, names), strict=True):
        if len(fitting) == 1:
            spellings.add(name_words(fitting[0]))
            continue
        if fitting:
            raise ArgumentError(
                f"expected one player, got {player!r}, which fits {len(fitting)} names in "
                f"{path!r}: {'; '.join(map(printable_name, fitting[:_CHOICES]))} "
                "(give one of them, or several separated by semicolons)"
            )
        wanted = name_words(part)
        known: dict[tuple[str, ...], str] = {}
        for name in names:
            known.setdefault(name_words(name), name)
        plain = {" ".join(words): name for words, name in known.items()}
        near = [plain[p] for p in difflib.get_close_matches(" ".join(wanted), list(plain)[:5000], n=3)]
        listed = ", ".join(repr(name) for name in near or list(known.values())[:5])
        raise ArgumentError(
            f"expected moves of {player!r} in {path!r}, got none: the file has "
            f"{f'games of {listed}' if listed else 'no games'}"
        )
    return frozenset(spellings)
