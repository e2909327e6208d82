"""Controls for matches of a book: books that anyone can make, and opponents beside the model.

A prepared book has to beat books of its own size that are made without values of positions. Both of these
always play the analyst's first move, and differ in their positions:

most reached   The positions that come up most often. Learning one brings those after it, so the book grows at
               its most reached end, and is the most reached set of its size.

main lines     The usual way to learn openings from an engine: the main line, in which the opponent always
               plays its likeliest move, for a number of our moves; then the likeliest departure from what is
               learned so far, again for as many moves; and so on.

A book's value holds against its model of the opponent. No real opponent is the model: an engine that searches
a twentieth more plays other moves, and if the book has no answer to them, the game goes on without it. So
each preparation is also played against the model's neighbors, with the book and without it. The book's value
is the gain, since some of these opponents are stronger than others with or without a book. The games of
different neighbors are not independent: they have the same seed, and the same book.

Cost: of a book, one search at the analyst's limit a position, and one at the opponent's; two matches for each
neighbor.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from typing import Any

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.deadlines import time_is_up
from precomp_games.chess.data.book import Book, BookMove, BookPosition
from precomp_games.chess.engines.searches import MAX_LIMIT, MAX_MULTIPV, SearchLimit
from precomp_games.chess.game import ChessState, move_of
from precomp_games.chess.model.engine_policies import ANSWERS
from precomp_games.chess.model.model import Engines, PreparationPolicies
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Neighbor, Preparation
from precomp_games.policies.rows import as_batch_policy, entry_rows, menu_rows, policy_rows

MAIN_LINES = 10
"""Number of our moves in a main line of a control."""

_LIMITS = {"half the": 0.5, "5 % more": 1.05, "20 % more": 1.2, "twice the": 2.0}
_TEMPERATURES = {"half the": 0.5, "twice the": 2.0}
_UNITS = {"nodes": "nodes", "movetime_ms": "time", "depth": "depth"}


@public
def control_book(
    settings: PreparationSettings,
    policies: PreparationPolicies,
    *,
    positions: checks.NonNegativeInt,
    moves: checks.PositiveInt = 1,
) -> Book:
    """Return the book of the analyst's first moves in the most reached lines of `moves` moves of ours.

    Args:
      settings: of the book's side and start.
      policies: of these settings, see `Engines.policies`, with a menu of at least 1: its first entry counts.
      positions: number to learn; fewer if games end before.
      moves: number of our moves for which a line is followed, from the most reached position that is not
        learned yet. 1: the most reached positions. `MAIN_LINES`: the main line and its likeliest departures.

    Raises:
      ValueError, EngineError: as `preparation_tree`, or policies without a menu.
    """
    player, menu = settings.player, policies.sigma_pre[settings.player]
    if not hasattr(menu, "entries_batch"):
        raise ArgumentError(f"expected policies with a menu for the book's side, got {shown(menu)}")
    replies = as_batch_policy(policies.sigma[1 - player])

    def ours(state: ChessState, reach: float) -> list[tuple[ChessState, float]]:
        """Return our next positions, with their reach."""
        if state.is_terminal() or state.current_player() == player:
            return [] if state.is_terminal() else [(state, reach)]
        rows = policy_rows(replies, [state], name="opponent", min_probability=settings.min_probability)
        children = [(state.child(a), reach * p) for a, p in entry_rows(rows)[0][0].items()]
        return [each for each in children if not each[0].is_terminal()]

    learnt: list[BookPosition] = []
    # With equal reach: the shorter history, then the first by its moves.
    first = ours(settings.game().new_initial_state(), 1.0)
    heap = [(-reach, state.ply, state.history(), state) for state, reach in first]
    heapq.heapify(heap)
    while heap and len(learnt) < positions:
        loss, _, _, state = heapq.heappop(heap)
        reach = -loss
        for left in reversed(range(min(moves, positions - len(learnt)))):
            action = next(iter(entry_rows(menu_rows(menu, [state], name="analyst"))[0][0]))
            move = BookMove(move_of(action), 1.0)
            learnt.append(BookPosition(tuple(state.moves()), (move,), reach, 0.0))
            following = ours(state.child(action), reach)
            following.sort(key=lambda each: (-each[1], each[0].history()))
            ahead = following.pop(0) if left and following else None
            for other, often in following:
                heapq.heappush(heap, (-often, other.ply, other.history(), other))
            if ahead is None:
                break
            state, reach = ahead
    return Book(settings.game().start_board, settings.side, learnt)


# -- neighbors ----------------------------------------------------------------------------------------------


@public
def neighbors(settings: PreparationSettings) -> dict[str, PreparationSettings]:
    """Return the model and opponents beside it, by what differs; {} if a spec names the model."""
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
    made: Preparation, engines: Engines, games: checks.PositiveInt = 20, *, seed: checks.Seed = 0
) -> tuple[Neighbor, ...]:
    """Play a book, and no book, against each of `neighbors`.

    Args:
      made: the book's preparation.
      engines: engines of the searches.
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
            engines.match(each, settings, games, seed=seed, against=against).scores
            for each in (book, Book(book.start, book.side, ()))
        ]
        count = min(map(len, both))  # as many as there was time for
        spread = sum(float(scores.var(ddof=1)) for scores in both) if count > 1 else 0.0
        score, without = (float(scores.mean()) for scores in both)
        played.append(Neighbor(name, count, score, without, math.sqrt(spread / count)))
    return tuple(played)
