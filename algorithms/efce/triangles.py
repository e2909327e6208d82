"""Triangles: where chance leaves Xi larger than what players can be recommended together.

Let s be a sequence of player 0 and t one of player 1, and look at which information sets right after s are
connected with which right after t. A *triangle* is a path through four of them: I' - J - I - J', with I and I'
right after s, J and J' right after t. A mediator who recommends J at I, as it were, and I' at J, has by then
said what I and J' are to do together as well, and Xi knows nothing of that. Where there is no triangle, Xi is
what distributions over pairs of pure strategies induce.

Games without chance have none, and neither have games in which both players see what chance draws. Where each
player sees cards of its own there is nearly always one.

Source: Farina and Sandholm 2020, Definition 2 and Theorem 1.

Cost: a sort of the connected information sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError

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
        """Those of a game, by the sets of its blocks (`RelevantPairs`)."""
        both = (first > 0) & (second > 0)
        first, second = first[both], second[both]
        one, two = game.players
        return cls(first, second, one.parent[first].astype(np.int64), two.parent[second].astype(np.int64))

    def triangle(self) -> tuple[int, int, int, int] | None:
        """(I', J, I, J'), each connected with the next; None where there is none."""
        # I and J are connected, I with more than one set right after t, J with more than one right after s.
        theirs, their_number = _groups(self.first, self.second_parent)
        ours, our_number = _groups(self.second, self.first_parent)
        middle = np.flatnonzero((their_number > 1) & (our_number > 1))
        if not len(middle):
            return None
        e = middle[0]
        i, j = self.first[e], self.second[e]
        last = self.second[(theirs == theirs[e]) & (self.second != j)][0]
        before = self.first[(ours == ours[e]) & (self.first != i)][0]
        return int(before), int(j), int(i), int(last)


def _groups(key: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(number of the pair (key, other), how often that pair is there), for each."""
    codes = key * (1 + other.max(initial=0)) + other
    _, group, count = np.unique(codes, return_inverse=True, return_counts=True)
    return group, count[group]


def refuse(names: tuple[str, str, str, str]) -> ArgumentError:
    """The error of a triangle, by the strings of I', J, I and J'."""
    one, two, three, four = names
    return ArgumentError(
        "expected a game without triangles, such as one in which both players see what chance draws (else plans "
        f"do not describe correlation), got player 0's {one!r} and {three!r}, which come after the same moves "
        f"of its own, and likewise player 1's {two!r} and {four!r}: play can come to the first of both, to the "
        "second of both, and to player 0's second with player 1's first"
    )


def check_triangle_free(game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
    """Refuses a game, or a part of one, that has a triangle.

    Args:
      game: the game.
      first, second: the sets of its blocks.

    Raises:
      ValueError: it has one; the error names the four information sets.
    """
    if game.has_chance and (found := Connections.of(game, first, second).triangle()):
        keys = [form.keys for form in game.players]
        raise refuse(tuple(keys[n % 2][k] for n, k in enumerate(found)))


class TrunkConnections:
    """The same for triangles that lie in several parts of a game, which are held one at a time.

    In such a triangle all four sets come right after sequences of the trunk.
    """

    def __init__(self) -> None:
        self._parts: list[Connections] = []
        self._keys: list[dict[int, str]] = [{}, {}]
        self._count = 0

    def add(self, game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
        """Adds the blocks of the trunk and one subgame; all have the same trunk."""
        if not game.has_chance:
            return
        all_of = Connections.of(game, first, second)
        trunk_sets = [int((form.label < 0).sum()) for form in game.players]
        trunk_sequences = [int(form.first[k]) for form, k in zip(game.players, trunk_sets, strict=True)]
        kept = (all_of.first_parent < trunk_sequences[0]) & (all_of.second_parent < trunk_sequences[1])
        *both, first_parent, second_parent = (column[kept] for column in all_of)
        # The trunk's sets have the same numbers everywhere, others get numbers of their own.
        numbers = []
        for player, infosets in enumerate(both):
            number = np.where(infosets < trunk_sets[player], infosets, infosets + self._count)
            keys = game.players[player].keys
            self._keys[player] |= {n: keys[k] for n, k in zip(number.tolist(), infosets.tolist(), strict=True)}
            numbers.append(number)
        self._parts.append(Connections(*numbers, first_parent, second_parent))
        self._count += max(form.num_infosets for form in game.players)

    def check(self) -> None:
        """As `check_triangle_free`."""
        if not self._parts:
            return
        rows = np.unique(np.concatenate([np.stack(part) for part in self._parts], axis=1), axis=1)
        if found := Connections(*rows).triangle():
            raise refuse(tuple(self._keys[n % 2][k] for n, k in enumerate(found)))
