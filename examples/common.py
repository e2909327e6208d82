"""Shared by the examples: interrupts during imports, flags for any game, and helpers of the commands."""

# ruff: noqa: E402  (what an interrupt says is settled before the imports)

from __future__ import annotations

import os
import sys

_IN_WORKER = "multiprocessing.spawn" in sys.modules  # before the imports below, which load it anywhere


def _tell_uncaught(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    """Print an interrupt outside of `run`, which is while modules are imported, as `run` does."""
    interrupt = issubclass(kind, KeyboardInterrupt)
    if not interrupt and not isinstance(error.__cause__, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    if not _IN_WORKER:  # in a worker it is no news
        print("error: interrupted", file=sys.stderr, flush=True)
    if not interrupt:  # modules written in C++ make an ImportError of it, which would end with another status
        os._exit(130)


# Before the imports below, which take a second.
sys.excepthook = _tell_uncaught

import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyspiel
from absl import flags

from precomp_games import HistoryTree, make_policy, policy_names
from precomp_games.commands import _flags
from precomp_games.commands._app import bar as bar
from precomp_games.commands._app import errors_by_flag
from precomp_games.commands._app import output_folder as output_folder
from precomp_games.commands._app import pressed_once as pressed_once
from precomp_games.commands._app import progress_bar as progress_bar
from precomp_games.commands._app import run_command as run_command
from precomp_games.commands._app import run_example as run
from precomp_games.commands._files import curve_style as curve_style
from precomp_games.commands._files import figure as figure
from precomp_games.commands._files import print_table as print_table
from precomp_games.commands._files import rows_of as rows_of
from precomp_games.commands._files import solved_by as solved_by
from precomp_games.commands._files import write_csv as write_csv
from precomp_games.commands._files import write_json as write_json
from precomp_games.commands._flags import named_game as named_game
from precomp_games.commands._flags import numbers as numbers
from precomp_games.commands._flags import positive_numbers as positive_numbers

__all__ = ["errors_by_flag", "run"]

FLAGS = flags.FLAGS


def end_with(command: Any) -> None:
    """Run a command of the library, and end the program as it ends."""
    sys.exit(run_command(command))


def chosen(flag: flags.FlagHolder[Any], known: Sequence[str]) -> list[Any]:
    """Return the names that a flag lists, each once; an unknown name is an error."""
    names = [name for name in dict.fromkeys(flag.value) if name]
    for name in names:
        if name not in known:
            raise ValueError(f"--{flag.name}: expected {', '.join(known)}, got {name!r}")
    return names


def define_memory_flag() -> None:
    _flags.define_flags(FLAGS, _flags.MemoryFlags)


def define_chess_flags() -> None:
    without = ("opponent_temperature_cp", "opponent_weights", "opponent", "distrust", "price")
    _flags.define_chess_flags(FLAGS, (*without, "menu", "menu_window_cp"))


def policy(game: pyspiel.Game, spec: str) -> Any:
    """Return the policy that a flag names; what the user names is opened and run."""
    return make_policy(game, spec, trusted=True)


def check_game(game: pyspiel.Game, *, perfect: bool = False) -> None:
    """Refuse a game that the library would refuse later, after work has been done.

    Args:
      game: that of --game.
      perfect: information must be perfect.
    """
    kind, name = game.get_type(), game.get_type().short_name
    sums = (kind.Utility.ZERO_SUM, kind.Utility.CONSTANT_SUM)
    if game.num_players() != 2 or kind.dynamics != kind.Dynamics.SEQUENTIAL or kind.utility not in sums:
        raise ValueError(f"--game: expected a sequential two-player game of constant sum, got {name}")
    if kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(f"--game: expected explicit chance nodes, got {name} with sampled ones")
    if perfect and kind.information != kind.Information.PERFECT_INFORMATION:
        raise ValueError(f"--game: expected a game of perfect information, got {name}")


def fits(game: pyspiel.Game, most: int) -> bool:
    """Return whether the whole game has at most so many histories; it visits no more of them."""
    return sum(1 for _ in itertools.islice(histories(game), most + 1)) <= most


def histories(game: pyspiel.Game) -> Iterator[Any]:
    """Yield the states of a game, one for each history."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        yield state
        if not state.is_terminal():
            stack += [state.child(action) for action in state.legal_actions()]


def check_histories(game: pyspiel.Game, most: int, flag: str = "game") -> None:
    """Refuse a game of more histories than --max_histories."""
    if not fits(game, most):
        raise ValueError(f"--{flag}: expected at most {most} histories (--max_histories), got more in {game}")


def own_settings() -> dict[str, Any]:
    """Return the values of the flags that the example itself defines, for settings.json."""
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module("__main__")}


def seats(player: int, own: Any, other: Any) -> tuple[Any, Any]:
    """Return the player's item and its opponent's, in the order of players."""
    return (own, other) if player == 0 else (other, own)


def known_policies() -> str:
    """Return specs of policies, for a flag's help."""
    return ", ".join(f"{name}({arguments})" for name, arguments in policy_names().items())


def define_game_flags() -> None:
    flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string.")
    flags.DEFINE_string(
        "sigma", "uniform", f"What players compute during play. Policies: {known_policies()}."
    )
    flags.DEFINE_string("sigma_pre", "cfr(iterations=300)", "What can be memorized; policies as for --sigma.")


def game_folder() -> pathlib.Path:
    """Make the output folder; by default its name has the game, if that is not the example's own."""
    path = FLAGS.output_dir
    game = "chess" if "chess" in FLAGS and FLAGS.chess else FLAGS.game
    if not FLAGS["output_dir"].present and game != FLAGS["game"].default:
        path += "_" + re.sub(r"\W+", "_", game).strip("_")[:100]
    return output_folder(path)


OBJECTIVES = "welfare, smaller (of both utilities), a player, 0 or 1, or two weights, as 1,0.5"
"""Of correlated equilibria, as --objective takes them."""


def objective(words: str) -> Any:
    """Parse --objective into the form that `efce_lp` takes.

    Raises:
      ValueError: it is none.
    """
    if words in ("welfare", "smaller"):
        return words
    if words in ("0", "1"):
        return int(words)
    try:
        one, two = (float(word) for word in words.split(","))
    except ValueError:
        raise ValueError(f"--objective: expected {OBJECTIVES}, got {words!r}") from None
    return one, two


def infoset_name(tree: HistoryTree, infoset: int) -> str:
    """Return an information state as the game writes it; a history, by its actions, where it writes none."""
    if tree.infoset_keys is not None:
        return tree.infoset_keys[infoset].replace("\n", " ")
    state, words = tree.game.new_initial_state(), []
    for action in tree.actions(int(tree.infoset_history[infoset])):
        words.append(state.action_to_string(state.current_player(), action))
        state.apply_action(action)
    return " ".join(words) or "(start)"
