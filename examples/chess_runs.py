"""What examples about chess share: settings, engines and matches, by absl's global flags."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import common  # noqa: F401  # isort: skip  # first: it tells of an interrupt during the other imports

from absl import flags

from precomp_games.chess import Engines as Engines
from precomp_games.chess import PreparationSettings
from precomp_games.commands import _flags
from precomp_games.commands._engines import open_engines

FLAGS = flags.FLAGS


def settings(
    player: int,
    opponent_r: float | Sequence[float],
    *,
    weights: Sequence[float] = (),
    evaluated: bool = False,
    menu: tuple[int, float] = (0, 100.0),
) -> PreparationSettings:
    """`settings_of` absl's global flags."""
    return _flags.settings_of(
        FLAGS,
        player,
        opponent_r,
        weights=weights,
        evaluated=evaluated,
        menu=menu,
    )


def engines() -> AbstractContextManager[Engines]:
    """The engines of absl's global flags."""
    return open_engines(FLAGS, settings(0, 10.0))
