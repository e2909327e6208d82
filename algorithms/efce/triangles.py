"""Triangles: where chance can make Xi larger than what players can be recommended together.

Let s be a sequence of player 0 and t one of player 1, and look at which information sets right after s are
connected with which right after t. A *triangle* is a path through four of them: I' - J - I - J', with I and
I' right after s, and J and J' right after t. A plan says of each connected pair for itself what is
recommended together, and along such a path that may be more than one distribution over pairs of pure
strategies can do. Games without triangles have none of this: there Xi is what those distributions induce,
and `scaled_extensions` writes its points. (Not every triangle does harm, but all are refused.)

Games without chance have no triangle, and neither have games in which both players see what chance draws.
Where each player sees cards of its own there is nearly always one.

Source: Farina and Sandholm 2020, *Polynomial-Time Computation of Optimal Correlated Equilibria in Two-Player
Extensive-Form Games with Public Chance Moves and Beyond*.

Cost: a sort of the connected information sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.validation import ArgumentError

from .sequence_game import SequenceGame


class Connections(NamedTuple):
    """Pairs of connected information sets: int64[n] each.

    Attributes:
      first, second: Player 0's set and player 1's.
      first_parent, second_parent: The sequences before them.
    """

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    first_parent: npt.NDArray[np.int64]
    second_parent: npt.NDArray[np.int64]

    @classmethod
    def of(cls, game: SequenceGame, first: np.ndarray, second: np.ndarray) -> Connections:
        """Those of a game. first, second: int64[B], the sets of its blocks (`RelevantPairs`)."""
        both = (first > 0) & (second > 0)
        first, second = first[both], second[both]
        one, two = game.players
        return cls(first, second, one.parent[first].astype(np.int64), two.parent[second].astype(np.int64))

    def triangle(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """((I', I), (J, J')), where I' - J - I - J' are connected; None where there is none."""
        # I and J are connected, I with several sets right after t, and J with several right after s.
        of_first, after_t = _groups(self.first, self.second_parent)
        of_second, after_s = _groups(self.second, self.first_parent)
        middle = np.flatnonzero((after_t > 1) & (after_s > 1))
        if not len(middle):
            return None
        i, j = self.first[middle[0]], self.second[middle[0]]
        other_second = self.second[(of_first == of_first[middle[0]]) & (self.second != j)][0]
        other_first = self.first[(of_second == of_second[middle[0]]) & (self.first != i)][0]
        return (int(other_first), int(i)), (int(j), int(other_second))


def _groups(key: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(number of the pair (key, other), how many such pairs there are): int64[n] each."""
    codes = key * (1 + other.max(initial=0)) + other
    _, group, count = np.unique(codes, return_inverse=True, return_counts=True)
    return group, count[group]


def check_triangle_free(game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
    """Refuses a game, or a part of one, that has a triangle.

    Args:
      game: the game.
      first: int64[B], player 0's set of each block.
      second: int64[B], player 1's.

    Raises:
      ValueError: it has one; the error names the four information sets.
    """
    if game.has_chance and (found := Connections.of(game, first, second).triangle()):
        raise _refusal([[form.keys[k] for k in two] for form, two in zip(game.players, found, strict=True)])


def _refusal(keys: list[list[str]]) -> ArgumentError:
    """The error of a triangle, by its sets' strings."""
    (one, two), (three, four) = keys
    return ArgumentError(
        "expected a game without triangles, such as one in which both players see what chance draws (in "
        f"others plans may be no correlation), got player 0's {one!r} and {two!r}, which come after the same "
        f"moves of its own, and likewise player 1's {three!r} and {four!r}: play can come to the first of "
        "both, to the second of both, and to player 0's second with player 1's first"
    )


class TrunkConnections:
    """The same for triangles that lie in several parts of a game, which are held one at a time.

    All four sets of such a triangle come right after sequences of the trunk.
    """

    def __init__(self) -> None:
        self._parts: list[Connections] = []
        self._keys: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self._count = 0

    def add(self, game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
        """Adds the blocks of the trunk and one subgame; all have the same trunk."""
        if not game.has_chance:
            return
        part = Connections.of(game, first, second)
        trunk_sets = [int((form.label < 0).sum()) for form in game.players]
        trunk_sequences = [int(form.first[k]) for form, k in zip(game.players, trunk_sets, strict=True)]
        kept = (part.first_parent < trunk_sequences[0]) & (part.second_parent < trunk_sequences[1])
        part = Connections(*(column[kept] for column in part))
        # The trunk's sets have the same numbers everywhere, others get numbers of their own.
        numbers = []
        for player, infosets in enumerate((part.first, part.second)):
            number = np.where(infosets < trunk_sets[player], infosets, infosets + self._count)
            keys = game.players[player].keys
            self._keys[player].update(
                (n, keys[k]) for n, k in zip(number.tolist(), infosets.tolist(), strict=True)
            )
            numbers.append(number)
        self._parts.append(part._replace(first=numbers[0], second=numbers[1]))
        self._count += max(form.num_infosets for form in game.players)

    def check(self) -> None:
        """As `check_triangle_free`."""
        if self._parts:
            rows = np.unique(np.concatenate([np.stack(part) for part in self._parts], axis=1), axis=1)
            if found := Connections(*rows).triangle():
                raise _refusal([[keys[n] for n in two] for keys, two in zip(self._keys, found, strict=True)])
