"""Shared by the examples about chess: settings, engines and matches, by absl's global flags."""

from __future__ import annotations

from contextlib import AbstractContextManager

import common  # noqa: F401  # isort: skip  # first: it tells of an interrupt during the other imports

from absl import flags

from precomp_games.chess import Engines as Engines
from precomp_games.chess import PreparationSettings
from precomp_games.commands import _chess, _flags

FLAGS = flags.FLAGS


def settings(player: int, opponent_r: float, *, evaluated: bool = False) -> PreparationSettings:
    """Return the settings by absl's global flags."""
    changed = {"opponent": "", "opponent_temperature_cp": opponent_r}  # other flags may have their names
    return _flags.settings_of(FLAGS, player, evaluated=evaluated, **changed)


def engines() -> AbstractContextManager[Engines]:
    """Return the engines of absl's global flags."""
    return _chess.open_engines(FLAGS, settings(0, 10.0))
