"""How a book does against opponents who are nearly the one that it was made for.

A book keeps its promise against its model of the opponent. Nobody is the model: who searches a twentieth more
answers other moves, and where the book has no answer to them, the game goes on without it. So each
preparation is played against the model's neighbors too, with the book and without it. What a book is for is
the gain, since some of these opponents are stronger than others with or without a book.

The games of a neighbor and those of another are not independent: they have the same seed, and the same book.

Cost: two matches for each neighbor.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from precomp_games._support.arguments import PositiveInt, Seed, public
from precomp_games._support.deadlines import time_is_up
from precomp_games.chess.books.book import Book
from precomp_games.chess.engines.searches import MAX_LIMIT, MAX_MULTIPV, SearchLimit
from precomp_games.chess.evaluation.policies import ANSWERS
from precomp_games.chess.preparation.engines import Engines
from precomp_games.chess.preparation.preparation import Neighbor, Preparation
from precomp_games.chess.preparation.settings import PreparationSettings

_LIMITS = {"half the": 0.5, "5 % more": 1.05, "20 % more": 1.2, "twice the": 2.0}
_TEMPERATURES = {"half the": 0.5, "twice the": 2.0}
_UNITS = {"nodes": "nodes", "movetime_ms": "time", "depth": "depth"}


@public
def neighbors(settings: PreparationSettings) -> dict[str, PreparationSettings]:
    """The model and opponents beside it, by what is other about them; none where a spec names the model."""
    if settings.opponent:
        return {}
    found = {"the model": settings}

    def add(name: str, **changes: Any) -> None:
        found.setdefault(name, dataclasses.replace(settings, **changes))

    several = settings.opponent_temperatures_cp if len(settings.opponent_temperatures_cp) > 1 else ()
    for r in several:
        add(f"r = {r:g} alone", opponent_temperature_cp=r, opponent_weights=())
    limit = settings.opponent_limit
    for attribute, unit in _UNITS.items():
        if (amount := getattr(limit, attribute)) is not None:
            for name, share in _LIMITS.items():
                near = SearchLimit(**{attribute: min(max(1, round(share * amount)), MAX_LIMIT)})
                if near != limit:
                    add(f"{name} {unit}", opponent_limit=near)
    if settings.opponent_plays in ANSWERS:
        return found
    for name, share in _TEMPERATURES.items():
        each = tuple(share * r for r in settings.opponent_temperatures_cp)
        add(f"{name} r", opponent_temperature_cp=each if several else each[0])
    if settings.top_k < MAX_MULTIPV:
        add("a move more", top_k=settings.top_k + 1)
    add(
        "the engine as it answers",
        opponent_plays="bestmove",
        opponent_temperature_cp=settings.opponent_temperatures_cp[0],
        opponent_weights=(),
    )
    return found


@public
def play_neighbors(
    made: Preparation, engines: Engines, games: PositiveInt = 20, *, seed: Seed = 0
) -> tuple[Neighbor, ...]:
    """Plays a book, and no book, against each of `neighbors`.

    Args:
      made: whose book.
      engines: whose searches.
      games: of each match, as far as there is time for neighbors and games.
      seed: of the games.

    Raises:
      ValueError, EngineError: as `play_match`.
    """
    settings, book = made.settings, made.book
    played = []
    for name, against in neighbors(settings).items():
        if time_is_up():
            break
        both = [
            engines.match(f"{name}, {what}", each, settings, games, seed=seed, against=against).scores
            for what, each in (("the book", book), ("no book", Book(book.start, book.side, ())))
        ]
        count = min(map(len, both))  # as many as there was time for
        spread = sum(float(scores.var(ddof=1)) for scores in both) if count > 1 else 0.0
        score, without = (float(scores.mean()) for scores in both)
        played.append(Neighbor(name, count, score, without, math.sqrt(spread / count)))
    return tuple(played)
