"""Books that are made without asking what a position is worth learning: what a match holds a book against.

A prepared book has to beat books of its own size that anyone can make. Both of these always play the
analyst's first move, and differ in where they go:

most reached   The positions that come up most often. Learning one brings those after it, so the book grows at
               its most reached end, and is the most reached set of its size.

main lines     As one learns openings from an engine: the main line, in which the opponent always plays its
               likeliest move, for a number of our moves; then the likeliest departure from what is learnt so
               far, again for as many moves; and so on.

Cost: one search at the analyst's limit a position, and one at the opponent's.
"""

from __future__ import annotations

import dataclasses
import heapq
from typing import Any

import chess

from precomp_games._support.arguments import NonNegativeInt, PositiveInt, public
from precomp_games._support.checks import ArgumentError, shown
from precomp_games.chess.books.book import Book, BookMove, BookPosition
from precomp_games.chess.engines.stored_engine import EngineLike, ScoringEngine
from precomp_games.chess.game import ChessState, move_of
from precomp_games.chess.preparation.policies import PreparationPolicies, preparation_policies
from precomp_games.chess.preparation.settings import PreparationSettings
from precomp_games.policies.rows import as_batch_policy, entry_rows, menu_rows, policy_rows

MAIN_LINES = 10
"""How many of our moves a main line has in a control."""


@public
def control_book(
    settings: PreparationSettings,
    analyst: ScoringEngine,
    opponent: EngineLike | None = None,
    *,
    positions: NonNegativeInt,
    moves: PositiveInt = 1,
    policies: PreparationPolicies | None = None,
) -> Book:
    """The analyst's first move where games come most often, in lines of `moves` moves of ours.

    Args:
      settings: what `preparation_policies` takes.
      analyst: see there.
      opponent: see there.
      positions: how many to learn; fewer where games end before.
      moves: how many of our moves a line is followed for, from the most reached position that is not learnt
        yet. 1: the most reached positions. `MAIN_LINES`: the main line and its likeliest departures.
      policies: of `preparation_policies`, with a menu of 1, where they have been made already.

    Raises:
      ValueError, EngineError, StoreError: as `preparation_tree`, or a number that is none.
    """
    lines = _Lines(settings, analyst, opponent, policies)
    learnt: list[BookPosition] = []
    # Equally often: the shorter history, then the first by its moves.
    heap = [(-reach, state.ply, state.history(), state) for state, reach in lines.first()]
    heapq.heapify(heap)
    while heap and len(learnt) < positions:
        loss, _, _, state = heapq.heappop(heap)
        reach = -loss
        for left in reversed(range(min(moves, positions - len(learnt)))):
            position, following = lines.learn(state, reach)
            learnt.append(position)
            following.sort(key=lambda each: (-each[1], each[0].history()))
            ahead = following.pop(0) if left and following else None
            for other, often in following:
                heapq.heappush(heap, (-often, other.ply, other.history(), other))
            if ahead is None:
                break
            state, reach = ahead
    side = chess.WHITE if settings.player == 0 else chess.BLACK
    return Book(settings.game().start_board, side, learnt)


class _Lines:
    """The analyst's first moves, and what the opponent answers."""

    def __init__(self, settings: Any, analyst: Any, opponent: Any, policies: Any) -> None:
        # With a menu of one, its first entry is the analyst's first move, however many a preparation has.
        if policies is None:
            policies = preparation_policies(dataclasses.replace(settings, menu=1), analyst, opponent)
        self._settings = settings
        self._menu = policies.sigma_pre[settings.player]
        if not hasattr(self._menu, "entries_batch"):
            raise ArgumentError(f"expected policies with a menu for the book's side, got {shown(self._menu)}")
        self._replies = as_batch_policy(policies.sigma[1 - settings.player])

    def first(self) -> list[tuple[ChessState, float]]:
        """The positions in which we are first to move, and how often they come up."""
        return self._ours(self._settings.game().new_initial_state(), 1.0)

    def learn(self, state: ChessState, reach: float) -> tuple[BookPosition, list[tuple[ChessState, float]]]:
        """A position of ours with the analyst's first move, and those of ours that follow it."""
        rows = menu_rows(self._menu, [state], name="analyst")
        action = next(iter(entry_rows(rows)[0][0]))
        move = BookMove(move_of(action), 1.0)
        position = BookPosition(tuple(state.moves()), (move,), reach, 0.0)
        return position, self._ours(state.child(action), reach)

    def _ours(self, state: ChessState, reach: float) -> list[tuple[ChessState, float]]:
        if state.is_terminal():
            return []
        if state.current_player() == self._settings.player:
            return [(state, reach)]
        rows = policy_rows(
            self._replies, [state], name="opponent", min_probability=self._settings.min_probability
        )
        children = [(state.child(a), reach * p) for a, p in entry_rows(rows)[0][0].items()]
        return [each for each in children if not each[0].is_terminal()]
