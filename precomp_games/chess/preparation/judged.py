"""A repertoire on a history tree: its moves beside the analyst's, and which of the tree's entries it has.

A book that is there already is judged on a tree of the preparation (`preparation_tree`), and so has to be on
it: a position's menu has the analyst's moves and the repertoire's. The analyst's go as far as a horizon, the
repertoire's to the end of its lines. Cut such a tree by reach alone (`truncate="reach"`): by values, a move
that does not pay would be cut, and with it what is to be judged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import ArgumentError, NonNegativeInt, PositiveInt, one_of, public
from precomp_games._support.checks import check_instance
from precomp_games.chess.books.repertoire import Repertoire
from precomp_games.chess.evaluation.policies import EngineMenu
from precomp_games.chess.game import ChessGame, ChessState
from precomp_games.chess.preparation.policies import PreparationPolicies
from precomp_games.tree.history_tree import HistoryTree

__all__ = ["KNOWN", "KnownEntries", "RepertoireMenu", "known_entries", "repertoire_policies"]

KNOWN = ("positions", "lines")
"""What the owner of a book knows: each of its positions, however it came up, or its lines alone."""


@public
@dataclasses.dataclass(frozen=True)
class RepertoireMenu:
    """A menu with the moves of a repertoire beside those of an engine, which come first."""

    repertoire: Repertoire
    engine_menu: EngineMenu

    def entries_batch(self, states: Sequence[ChessState]) -> list[list[int]]:
        """The actions at each state.

        Raises:
          ValueError: what is no state of chess, or one where the game is over.
        """
        found = self.engine_menu.entries_batch(states)
        return [
            [*entries, *(a for a in self.repertoire.actions_at(state.epd) if a not in entries)]
            for state, entries in zip(states, found, strict=True)
        ]


@public
def repertoire_policies(
    policies: PreparationPolicies,
    repertoire: Repertoire,
    horizon: NonNegativeInt,
    count: PositiveInt = 1,
) -> PreparationPolicies:
    """The policies of a preparation whose player has a repertoire's moves to choose among as well.

    Args:
      policies: of `preparation_policies`, with a menu for the repertoire's side.
      repertoire: the moves.
      horizon: from this half-move on, there are only the repertoire's.
      count: how many of the engine's best moves there are to choose among, no more than the menu has. The
        tree grows with this number to the power of moves.

    Raises:
      ValueError: an argument is not as above.
    """
    menu = policies.sigma_pre[repertoire.player]
    if not isinstance(menu, EngineMenu):
        raise ArgumentError(
            f"expected policies of settings with a menu of at least 1 for the repertoire's side, got {menu!r}"
        )
    fewer = dataclasses.replace(menu, max_plies=min(menu.max_plies, horizon), count=min(menu.count, count))
    both = RepertoireMenu(repertoire, fewer)
    return dataclasses.replace(policies, sigma_pre=(both, None) if repertoire.player == 0 else (None, both))


@dataclasses.dataclass(frozen=True, eq=False)
class KnownEntries:
    """What a repertoire has of a tree.

    Attributes:
      memorization_set: int32[k], the entries that play its first choices, increasing.
      own_entries: int32, those of all its choices.
      met: The positions of the set, as EPD.
    """

    memorization_set: npt.NDArray[np.int32]
    own_entries: npt.NDArray[np.int32]
    met: frozenset[str]


@public
def known_entries(
    tree: HistoryTree, repertoire: Repertoire, known: Annotated[str, one_of(KNOWN)] = "positions"
) -> KnownEntries:
    """Finds a repertoire on a tree over `ChessGame` whose menus have its moves.

    Args:
      tree: see `repertoire_policies`.
      repertoire: the book.
      known: one of `KNOWN`.

    Raises:
      ValueError: an argument is not as above.
    """
    check_instance(tree.game, ChessGame, "tree.game")
    by_position = known == "positions"
    first: list[int] = []
    own: list[int] = []
    met: set[str] = set()
    start: Any = tree.game.new_initial_state()
    waiting: list[tuple[int, Any, tuple[int, ...], bool]] = [(0, start, (), True)]
    while waiting:
        history, state, line, chosen = waiting.pop()
        children = tree.children(history)
        if tree.player[history] != repertoire.player:
            for child in children:
                action = int(tree.action[child])
                waiting.append((child, state.child(action), (*line, action), chosen))
            continue
        if tree.infoset[history] < 0 or not (by_position or line in repertoire.lines):
            continue
        after = {int(tree.action[child]): child for child in children if tree.sigma_pre[child] > 0.0}
        for rank, action in enumerate(repertoire.actions_at(state.epd)):
            if action not in after:
                continue
            entry, plays = int(tree.edge_entry[after[action]]), chosen and rank == 0
            own.append(entry)
            if plays:
                first.append(entry)
                met.add(state.epd)
            waiting.append((after[action], state.child(action), (*line, action), plays))
    return KnownEntries(_increasing(first), _increasing(own), frozenset(met))


def _increasing(entries: list[int]) -> npt.NDArray[np.int32]:
    return np.unique(np.array(entries, np.int32))
