"""Names of players: spellings of the same name, and names that may be the same person's.

A name is compared by its words, `name_words`: names that differ in capitals, commas, dots and apostrophes, or
in how accents are composed, are the same. A name that a file has is that player's; another one, such as
"Karpov, A.", fits all names that may be so written, and an error lists them if there are several.

Names that may be the same person's (`alike`) are more: ü may be ue or u, Карпов Karpov, "Anatoly Karpov" and
"GM Karpov, A." may be "Karpov, Anatoly". Users are asked or informed; such names are never silently merged.
Names in other alphabets are transliterated by anyascii; since Александр is Alexander, initials are enough
there.
"""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from collections.abc import Mapping

from anyascii import anyascii

from precomp_games._support.checks import ArgumentError

_CHOICES = 8  # names that an error lists
_CACHED = 1 << 15  # names; a file has each of them at every game of that player
_MOST_WORDS = 6  # of a name, that are tried in another order
# Separators: characters with another use in specs, dots, which are often omitted, and those used for a space.
_PUNCTUATION = str.maketrans(
    dict.fromkeys(',;.()=_"“”„«»', " ") | dict.fromkeys("'`´‘’ʻʼʹ′", "") | dict.fromkeys("‐‑‒–—−", "-")
)
_ESCAPED = re.compile(r'\\(["\\])')
_TITLES = re.compile(r"\b(?:v?[gifc]m|dr|prof)\b")  # w is v by then
_GLUED_INITIALS = re.compile(r"(?<=,)\s*[A-Z]{2,3}\s*$")  # "Fischer, RJ"
_OTHER_ALPHABETS = re.compile(r"[^\W\0-\u036f\u1e00-\u1eff]")
_SIGNS = re.compile("(?<=[a-z])(?=[A-Z])")  # each begins with a capital, as anyascii writes it
# Spelling variants: umlauts, Đ, Щ; and letters of one sound.
_WRITTEN_OR_NOT = re.compile("(?<=[aou])e|(?<=d)j|(?<=s)h(?=ch)")
_DOUBLED = re.compile(r"([a-z])\1+")
_PLAIN = str.maketrans(
    {chr(k): " " for k in range(128) if not chr(k).isalnum()}
    | {",": ",", "'": "", "`": ""}
    | {"j": "i", "y": "i", "w": "v", "x": "ks"}
)

Reading = tuple[str, ...]  # a last name, and others


def tag_text(value: str) -> str:
    r"""Return a tag's value unescaped: PGN writes \" and \\ for quotation marks and backslashes in it."""
    return _ESCAPED.sub(r"\1", value) if "\\" in value else value


def printable_name(name: str) -> str:
    """Return a name without invisible characters, such as those that control a terminal."""
    return name if name.isprintable() else "".join(c for c in name if c.isprintable() or c.isspace())


def _in_small(name: str) -> str:
    return unicodedata.normalize("NFC", printable_name(name)).casefold()


@functools.lru_cache(_CACHED)
def name_words(name: str) -> tuple[str, ...]:
    """Return a name's words for comparing: "Karpov, A." equals "karpov a", and O'Kelly equals O’Kelly."""
    return tuple(_in_small(name).translate(_PUNCTUATION).split())


@functools.lru_cache(_CACHED)
def _readings(name: str) -> tuple[frozenset[Reading], bool]:
    """Return a name's readings, as a last name and others, and whether another alphabet occurs in it.

    A comma stands behind the last name, which may be several words; without a comma, it may begin with any of
    the words. "=" stands before a whole name without initials in one word, for names such as "WangYue".
    """
    text = _in_small(_GLUED_INITIALS.sub(lambda initials: " ".join(initials[0]), name))
    foreign = _OTHER_ALPHABETS.search(text) is not None
    text = _WRITTEN_OR_NOT.sub("", _SIGNS.sub(" ", anyascii(text)).lower())
    text = _DOUBLED.sub(r"\1", text.translate(_PLAIN))
    untitled = _TITLES.sub(" ", text)
    last, comma, others = (untitled if untitled.partition(",")[0].strip() else text).partition(",")
    family, given = last.split()[:_MOST_WORDS], others.replace(",", " ").split()[:_MOST_WORDS]
    words = family + given
    orders = [family[k:] + family[:k] for k in range(1 if comma else len(family))]
    readings = {("".join(each[:k]), *each[k:], *given) for each in orders for k in range(1, len(each) + 1)}
    readings = {reading for reading in readings if len(reading[0]) > 1} or readings
    if min(map(len, words), default=0) > 1:
        readings |= {("=" + "".join(words[k:] + words[:k]),) for k in range(len(words))}
    return frozenset(readings), foreign


def alike(one: str, other: str) -> bool:
    """Return whether two names may be one person's: the last names agree, and other names that both have."""
    (first, foreign), (second, far) = _readings(one), _readings(other)
    return _agree(first, second, initials=foreign != far)


def same_initials(one: str, other: str) -> bool:
    """Return whether two names have the same last name, and the same initials of others that both have."""
    return _agree(_readings(one)[0], _readings(other)[0], initials=True)


def _agree(one: frozenset[Reading], other: frozenset[Reading], initials: bool) -> bool:
    def agree(a: str, b: str) -> bool:
        return a[0] == b[0] if initials else a.startswith(b) or b.startswith(a)

    return any(
        first[0] == second[0] and all(map(agree, first[1:], second[1:])) for first in one for second in other
    )


def _by_words(names: Mapping[str, int]) -> dict[tuple[str, ...], str]:
    """Return the first of the names with the same words, by these words."""
    known: dict[tuple[str, ...], str] = {}
    for name in names:
        known.setdefault(name_words(name), name)
    return known


def fitting_names(player: str, names: Mapping[str, int], *, all_alike: bool = False) -> list[list[str]]:
    """Return the names of a file that each spelling of a player fits, the most frequent first.

    A name that the file has fits only itself; "Karpov" and "Karpov, A." fit all names that may be so written.

    Args:
        player: spellings, separated by semicolons.
        names: games by name, the most frequent first.
        all_alike: whether a name that the file has fits all others that may be the same as well.
    """
    known = _by_words(names)
    fitting = []
    for part in player.split(";"):
        wanted = name_words(part)
        if not wanted or (wanted in known and not all_alike):
            fitting.append([known[wanted]] if wanted else [])
        else:
            fitting.append([name for words, name in known.items() if words == wanted or alike(part, name)])
    return fitting


def resolve_names(player: str, names: Mapping[str, int], path: str) -> frozenset[tuple[str, ...]]:
    """Return the spellings, as `name_words`, of a player.

    A name that the file has is that player's; so is one that fits a single name in the file ("Karpov",
    "Karpov, A."). Several spellings are separated by semicolons.

    Args:
        player: the player's name.
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
        known = _by_words(names)
        plain = {" ".join(words): name for words, name in known.items()}
        near = [plain[p] for p in difflib.get_close_matches(" ".join(wanted), list(plain)[:5000], n=3)]
        listed = ", ".join(repr(name) for name in near or list(known.values())[:5])
        raise ArgumentError(
            f"expected moves of {player!r} in {path!r}, got none: the file has "
            f"{f'games of {listed}' if listed else 'no games'}"
        )
    return frozenset(spellings)
