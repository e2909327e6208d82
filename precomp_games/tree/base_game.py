"""Base games as users give them, and loaded from the strings of trees' files.

What functions take as a `Game` or an `AnySumGame` is a `pyspiel.Game`; its name, as `pyspiel.load_game` takes
it; or the path of a Gambit file, which ends in ".efg". A game in which players move at once is taken as turns
that hide what the other one did (`pyspiel.convert_to_turn_based`).
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, did_you_mean, one_line, shown
from precomp_games.policies.specs import parsed_call

# Parameters of games that name files, of OpenSpiel's (efg_game, bargaining, crossword, ...) and of our own; a
# test looks through all that are registered. Names count at any depth, and in texts, which costs nothing.
_NAMES_FILES = re.compile(r"(?:file|path|root|folder|dir)(?:s|names?|ectory|ectories)?$", re.I)
_DEEPEST = 64  # calls in a game string; OpenSpiel's parser copies what is in each


def names_files(game_string: str) -> str:
    """Return the first parameter in a game string that names a file to open, "" if there is none."""
    names = re.findall(r"\b(\w+)\s*=", game_string)
    return next(filter(_NAMES_FILES.search, names), "")


def given_game(value: Any, **kinds: bool) -> pyspiel.Game:
    """Return a game as users give it, see above; `kinds` of games are those of `checks.check_game`.

    Raises:
      ValueError: it is none, or none of that kind.
    """
    if isinstance(value, str | os.PathLike):
        value = named_game(str(value))
    simultaneous = pyspiel.GameType.Dynamics.SIMULTANEOUS
    if isinstance(value, pyspiel.Game) and value.get_type().dynamics == simultaneous:
        value = pyspiel.convert_to_turn_based(value)
    return checks.check_game(value, **kinds)


Game = Annotated[Any, checks.Check(lambda value, name: given_game(value))]
"""A game inside of the model: for two players, sequential, of constant sum, with explicit chance."""
AnySumGame = Annotated[Any, checks.Check(lambda value, name: given_game(value, constant_sum=False))]
"""The same, of any sum."""


def named_game(text: str) -> pyspiel.Game:
    """Return the game that a user's string names, for OpenSpiel's `load_game` or as the path of an .efg file.

    Raises:
      ValueError: there is no such game, or it has no such parameter; or the file is none, or no such file.
    """
    if text.endswith(".efg"):
        return _efg_game(text)
    name = text.partition("(")[0]
    if name not in pyspiel.registered_names():
        hint = did_you_mean(name, pyspiel.registered_names())
        raise ArgumentError(f"expected an OpenSpiel game such as kuhn_poker, got {shown(text)}{hint}")
    try:
        if '="' not in text:
            return pyspiel.load_game(text)
        arguments = parsed_call(text)  # OpenSpiel's parser knows no quotes
        return pyspiel.load_game(arguments.pop("name"), arguments)
    except pyspiel.SpielError as error:
        raise ArgumentError(f"expected an OpenSpiel game, got {shown(text)} ({one_line(error)})") from None


def _efg_game(path: str) -> pyspiel.Game:
    if not os.path.isfile(path):
        raise ArgumentError(f"expected an .efg file, got {shown(path)}, where there is none")
    try:
        return pyspiel.load_game("efg_game", {"filename": path})
    except (pyspiel.SpielError, RuntimeError, IndexError, ValueError) as error:
        raise ArgumentError(
            f"expected a game that OpenSpiel reads, got {shown(path)} ({one_line(error)})"
        ) from None


def loaded_game(game_string: str) -> pyspiel.Game:
    """Return the game that a string names. A stranger's string opens no file and runs no program.

    Raises:
      ValueError: the string does not load: the game's module is not imported, it names a file, or it was made
        of what is not in its string, as `pyspiel.load_efg_game(text)` does.
    """
    name = game_string.split("(")[0]
    if name not in pyspiel.registered_names():
        hint = "import precomp_games.chess first" if name == "python_chess" else "import its module first"
        raise ArgumentError(f"expected a registered game, got {shown(name)}; {hint}")
    wrong = f"more than {_DEEPEST} calls" if game_string.count("(") > _DEEPEST else ""
    if parameter := names_files(game_string):
        wrong = f"{parameter}= names a file, which it may not open"
    try:
        if not wrong:
            return pyspiel.load_game(game_string)
    except (pyspiel.SpielError, RuntimeError, OSError, TypeError, ValueError) as error:
        wrong = one_line(error)
    way = "give the tree its game with tree.with_game(game)"
    raise ArgumentError(f"expected a game that its string loads, got {shown(game_string)} ({wrong}); {way}")
