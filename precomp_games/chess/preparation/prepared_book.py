"""From a preparation to a book: what is memorized on a tree, or by a search with a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import chess
import pyspiel

from precomp_games._support.arguments import Player, each_of, public
from precomp_games._support.checks import ArgumentError, check_instance, shown
from precomp_games.algorithms import CertifiedPrecomputation
from precomp_games.chess.books.book import Book, BookMove, BookPosition
from precomp_games.chess.game import ChessGame, move_of
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import Alternative, MemorizedState


@public
def preparation_book(
    tree: HistoryTree,
    player: Player,
    states: Annotated[Iterable[MemorizedState], each_of(MemorizedState)],
) -> Book:
    """The book of memorized states, e.g. `best.states()`, of a tree over `ChessGame`.

    A position's worth is its net gain: what forgetting it and all that follows it would cost.

    Raises:
      ValueError: another tree or player than the states are of, or no states at all.
    """
    check_instance(tree.game, ChessGame, "tree.game")
    for state in states:
        if not _is_of(tree, player, state):
            raise ArgumentError(
                f"expected states that player {player} memorizes in this tree, got {shown(state)}"
            )
    entries = ((s.actions, tree.memorized_row(s.entry), s.reach, s.net_gain, s.alternatives) for s in states)
    return _book_of(tree.game, player, entries)


def _is_of(tree: HistoryTree, player: int, state: MemorizedState) -> bool:
    """Whether this is a memorized state of the tree's, and the player's."""
    return (
        0 <= state.infoset < tree.num_infosets
        and tree.infoset_player[state.infoset] == player
        and tree.infoset_history[state.infoset] == state.history
        and 0 <= state.entry < tree.num_entries
        and tree.entry_infoset[state.entry] == state.infoset
        and tuple(tree.actions(state.history)) == state.actions
    )


@public
def certified_book(found: CertifiedPrecomputation) -> Book:
    """The book of what `best_first_precomputation` found in a `ChessGame`.

    A position's worth is its net gain: what forgetting it and all that follows it would cost.

    Raises:
      ValueError: `found` is no such preparation, or one of another game.
    """
    check_instance(found.game, ChessGame, "found.game")
    worth = map(float, found.net_gain)
    entries = zip(
        found.histories, found.rows, map(float, found.reach), worth, found.alternatives, strict=True
    )
    return _book_of(found.game, found.player, entries)


def _book_of(
    game: pyspiel.Game,
    player: int,
    entries: Iterable[tuple[Sequence[int], Mapping[int, float], float, float, Sequence[Alternative]]],
) -> Book:
    """The book of memorized histories of a `ChessGame`.

    Args:
      game: where histories start.
      player: whose book.
      entries: (actions from the start, {action: probability} to play, reach, worth, what else was on the
        menu) of each history.
    """
    positions = []
    for actions, row, reach, worth, alternatives in entries:
        others = [(move_of(action), other.loss) for other in alternatives for action in other.row]
        moves = sorted(row.items(), key=lambda entry: (-entry[1], entry[0]))
        positions.append(
            BookPosition(
                history=tuple(move_of(action) for action in actions),
                moves=tuple(BookMove(move_of(action), p) for action, p in moves),
                reach=reach,
                worth=worth,
                others=tuple(others),
            )
        )
    side = chess.WHITE if player == 0 else chess.BLACK
    return Book(game.start_board, side, positions)
