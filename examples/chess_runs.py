"""What examples about chess share: settings, engines and matches, by absl's global flags."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import common  # isort: skip  # first: it tells of an interrupt during the other imports

from absl import flags

from precomp_games.chess import Book, MatchResult, PreparationSettings, play_match
from precomp_games.chess import Engines as Engines
from precomp_games.commands import _flags
from precomp_games.commands._engines import open_engines

FLAGS = flags.FLAGS


def define_opponent_flag() -> None:
    _flags.define_opponent_flag(FLAGS)


def define_export_store_flag() -> None:
    _flags.define_export_store_flag(FLAGS)


def define_menu_flags(default: int | None, by_default: str) -> None:
    _flags.define_menu_flags(FLAGS, default, by_default)


def define_match_flags() -> None:
    _flags.define_match_flags(FLAGS)


def settings(
    player: int,
    opponent_r: float | Sequence[float],
    *,
    weights: Sequence[float] = (),
    evaluated: bool = False,
    menu: tuple[int, float] = (0, 100.0),
) -> PreparationSettings:
    """`settings_of` absl's global flags."""
    # The flag of `define_opponent_flag`: other examples have others of that name.
    has_opponent = FLAGS.find_module_defining_flag("opponent") == __name__
    return _flags.settings_of(
        FLAGS,
        player,
        opponent_r,
        weights=weights,
        evaluated=evaluated,
        menu=menu,
        opponent=FLAGS.opponent if has_opponent else "",
    )


def score_name(settings: PreparationSettings, *, played: bool = False) -> str:
    """What the score of a book is: expected where games say so, and otherwise an opinion, with its owner.

    Args:
      settings: what the book was made by.
      played: whether games have been played for it, besides roll-outs.
    """
    if played or settings.evaluation == "rollouts":
        return "Expected score"
    return "Fitted score" if settings.evaluation == "calibrated" else "Analyst's score"


def score_note(settings: PreparationSettings, *, played: bool = False) -> str:
    """A line that says what such scores are not; no line for expected scores."""
    name = score_name(settings, played=played)
    if name == "Expected score":
        return ""
    what = "a fitted evaluation's" if name == "Fitted score" else "the analyst's evaluations"
    return (
        f"Scores are {what} of where lines leave the book, not results of games, which\n"
        'come out lower: see "What games score" in docs/chess.md.\n'
    )


def engines() -> AbstractContextManager[Engines]:
    """The engines of absl's global flags."""
    return open_engines(FLAGS)


def match(
    description: str,
    book: Book,
    settings: PreparationSettings,
    engines: Engines,
    *,
    own: Any = None,
    against: PreparationSettings | None = None,
    games: int | None = None,
    seed: int | None = None,
) -> MatchResult:
    """Plays the flags' match, with a bar of games and of what they need in searches.

    Args:
      description: of the bar.
      book: what is played, and then what `settings` say we play out of book.
      settings: what the book was made by.
      engines: whose searches.
      own: another policy for our play out of book.
      against: another opponent.
      games: how many, in place of --match_games.
      seed: in place of --match_seed.
    """
    games = FLAGS.match_games if games is None else games
    player, before, began = settings.player, engines.searches, time.monotonic()
    policies, other = engines.policies(settings), engines.policies(against or settings)
    with common.progress(description, "games", total=games) as show:

        def told(finished: int) -> None:
            made = engines.searches - before
            show(finished, f"{made} searches, {made / max(time.monotonic() - began, 1e-9):.0f}/s")

        return play_match(
            book,
            other.sigma[1 - player],
            policies.sigma[player] if own is None else own,
            games,
            seed=FLAGS.match_seed if seed is None else seed,
            min_probability=settings.min_probability,
            progress=told,
        )


def match_line(promised: float | None, result: MatchResult, without: MatchResult | None) -> str:
    """What a book promised and what it scored, in words."""
    scored = f"scored {result.score:.2f} +- {result.standard_error:.2f} in {len(result.games)} games"
    told = scored if promised is None else f"promised {promised:.2f}, {scored}"
    return told if without is None else f"{told}; without the book {without.score:.2f}"
