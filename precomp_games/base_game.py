"""A tree's base game: loaded from its string, and histories in the game's own words."""

from __future__ import annotations

from typing import Any, Protocol

import pyspiel

from precomp_games.checks import shown
from precomp_games.messages import one_line

__all__ = ["in_words", "loaded_game"]


def loaded_game(game_string: str, caller: str) -> pyspiel.Game:
    """The game that a string names.

    Raises:
      ValueError: the string does not load: the game's module is not imported, or it was made of what is not
        in its string, as `pyspiel.load_efg_game(text)` does.
    """
    name = game_string.split("(")[0]
    if name not in pyspiel.registered_names():
        hint = "import precomp_games.chess first" if name == "python_chess" else "import its module first"
        raise ValueError(f"{caller}: expected a registered game, got {shown(name)}; {hint}")
    try:
        return pyspiel.load_game(game_string)
    except (pyspiel.SpielError, RuntimeError, OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{caller}: expected a game that its string loads, got {shown(game_string)} "
            f"({one_line(error)}); give the tree its game with tree.with_game(game)"
        ) from None


def in_words(tree: TreeWithGame, history: int) -> str:
    """A history as its game's action strings; as actions where a tree from a file has no game that loads."""
    actions = tree.actions(history)
    try:
        state: Any = tree.game.new_initial_state()
        words = []
        for action in actions:
            words.append(str(state.action_to_string(state.current_player(), action)))
            state.apply_action(action)
    except (pyspiel.SpielError, RuntimeError, ValueError):
        return " ".join(map(str, actions))
    return " ".join(words)


class TreeWithGame(Protocol):
    """What is asked of a `HistoryTree`."""

    @property
    def game(self) -> pyspiel.Game: ...

    def actions(self, history: int) -> list[int]: ...
