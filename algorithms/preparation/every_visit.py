"""A book that answers wherever one of its positions comes up.

A memorization set is a set of histories (information states): off its lines, a player plays sigma to the end,
even if play comes back to a position that it knows. A file that looks positions up, such as a Polyglot book,
answers there too. That is another policy. It is not bounded by the best set: the game may come to a position
by a move of sigma's that no line has, and the answer is worth something there as well. Nor need it be better
than the set, since an answer that prepares a line may lose where what follows is not known.

Where information is imperfect, positions are for the player to tell apart: a key that differs between the
histories of one of its information states looks at what is hidden, and is refused where that shows. Histories
are then looked at one by one, since equal keys say nothing of what is hidden.

Cost of the value: a walk through all positions that the policies can reach, as of exact leaf values; through
all histories where information is imperfect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import ArgumentError, public
from precomp_games._support.checks import shown
from precomp_games.policies.precomputation import PrecomputationPolicy
from precomp_games.policies.rows import PolicyLike, check_policies
from precomp_games.tree.expansion.alike import history_words
from precomp_games.tree.expansion.positions import hashable
from precomp_games.tree.history_tree import HistoryTree

from .best_precomputation import BestPrecomputation

__all__ = ["OwnPositions", "candidates", "every_visit_policy", "every_visit_utility"]


class OwnPositions:
    """The positions of a player's turns, by a key that the player can know.

    perfect: whether information is perfect, so that any key can be known.
    """

    def __init__(self, game: pyspiel.Game, position_key: Callable[[Any], Hashable]) -> None:
        self._key = hashable(position_key)
        self.perfect = game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
        self._met: dict[str, tuple[Hashable, list[int]]] = {}  # by information state

    def __call__(self, state: Any) -> Hashable:
        """The key of a state where the player moves.

        Raises:
          ValueError: it cannot be looked up, or another history of the information state had another key.
        """
        found = self._key(state)
        if not self.perfect:
            name = state.information_state_string()
            first, history = self._met.setdefault(name, (found, state.history()))
            if first != found:
                raise ArgumentError(
                    "expected position_key to be the same at all histories of an "
                    f"information state, got {shown(first)} after {history_words(state, history)} and "
                    f"{shown(found)} after {history_words(state, state.history())}, which its player "
                    "cannot tell apart; state.information_state_string() is such a key"
                )
        return found

    def node(self, state: Any) -> Hashable:
        """What all that follows a state depends on."""
        return self._key(state) if self.perfect else tuple(state.history())


class _Lookup:
    """What is memorized, by position."""

    def __init__(self, rows: dict[Hashable, dict[int, float]], key: OwnPositions) -> None:
        self._rows, self._key = rows, key

    def __call__(self, state: Any) -> dict[int, float] | None:
        return self._rows.get(self._key(state))


@public
def every_visit_policy(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
) -> PrecomputationPolicy:
    """The policy that plays a book's move wherever its position comes up, and sigma elsewhere.

    Args:
      book: of `best_precomputation`. Where it has several entries of one position, which a price per
        information state allows, the one that is reached most often is played.
      position_key: a function from a state where the player moves to a key: which states are one position.
        It must be the same at all histories of an information state.
      sigma: what the players compute during play, one or a pair; by default what the tree was expanded with
        (a tree that was loaded from a file has none).

    Raises:
      ValueError: an argument is not as above.
    """
    tree, key = book.tree, OwnPositions(book.tree.game, position_key)
    play = tree.policies if sigma is None else check_policies(sigma, "sigma")
    rows, chosen = candidates(book, key, np.unique(tree.entry_infoset[book.memorization_set]))
    best = {position: rows[position][k] for position, k in chosen.items()}
    return PrecomputationPolicy(tree.game, book.player, _Lookup(best, key), play)


@public
def every_visit_utility(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
    leaf_value: Any = "exact",
) -> float:
    """What a book is worth to its player when every visit to its positions is answered.

    Compare it with the book's `utility`, which is what its lines are worth, as far as the tree's values are
    those of play by sigma.

    Args:
      book: see `every_visit_policy`.
      position_key: see there. Where information is perfect, states of one level with equal keys, whoever
        moves there, must be the same for both players' sigma and for the game from there on.
      sigma: see there; both players' are needed.
      leaf_value: as of `HistoryTree.from_game`: "exact" looks at all of the game that can come up,
        `RolloutValues` plays games.

    Raises:
      ValueError: an argument is not as above.
    """
    policy = every_visit_policy(book, position_key, sigma=sigma)
    play = book.tree.policies if sigma is None else check_policies(sigma, "sigma")
    if None in play:
        raise ArgumentError(f"expected the sigma of both players, got {play}")
    tree = HistoryTree.from_game(
        book.tree.game,
        sigma_pre=None,
        sigma=(policy, play[1]) if book.player == 0 else (play[0], policy),
        penalties=math.inf,
        leaf_value=leaf_value,
        position_key=position_key if OwnPositions(book.tree.game, position_key).perfect else None,
    )
    value = float(tree.value[0])
    return value if book.player == 0 else tree.utility_sum - value


def candidates(
    book: BestPrecomputation, key: OwnPositions, infosets: npt.NDArray[np.integer[Any]]
) -> tuple[dict[Hashable, list[dict[int, float]]], dict[Hashable, int]]:
    """What can be memorized at the positions of some information states, and what the book plays there.

    Returns:
      The rows of each position, and the number of the one that the book reaches most often; positions that
      the book does not have are not in the latter.

    Raises:
      ValueError: the histories of an information state have different keys.
    """
    tree = book.tree
    order = np.argsort(tree.infoset, kind="stable").astype(np.int32)
    start = np.searchsorted(tree.infoset, infosets, sorter=order)
    end = np.searchsorted(tree.infoset, infosets, side="right", sorter=order)
    rows: dict[Hashable, list[dict[int, float]]] = {}
    reached: dict[Hashable, dict[int, float]] = {}
    reach = dict(zip(book.memorization_set.tolist(), book.reach.tolist(), strict=True))
    for infoset, first, last in zip(infosets.tolist(), start.tolist(), end.tolist(), strict=True):
        (position,) = {key(tree.state(history)) for history in order[first:last].tolist()}
        menu = rows.setdefault(position, [])
        for entry in range(int(tree.first_entry[infoset]), int(tree.first_entry[infoset + 1])):
            row = tree.memorized_row(entry)
            if row not in menu:
                menu.append(row)
            if entry in reach:
                sums = reached.setdefault(position, {})
                sums[menu.index(row)] = sums.get(menu.index(row), 0.0) + reach[entry]
    return rows, {position: max(sums, key=sums.__getitem__) for position, sums in reached.items()}
