"""Relevant pairs of sequences: what a correlation plan has one number for.

Pairs stand in *blocks*, one for each pair (I, J) of connected information sets, number 0 ("before the first
decision") being connected with all. The block of (I, J) has |A(I)| |A(J)| entries, player 0's action first.
Counting pairs therefore needs the connected information sets only.

Source: `efce_resolving`, Definitions 1 and 2, and Theorem 1 for which subgame a pair belongs to.

Cost: a sort of the connected information sets; 20 bytes a block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import ArgumentError, public
from precomp_games._support.checks import check_indices, shown

from .public_information import PublicInformation, subgame_names
from .sequence_game import SequenceGame, find
from .subgames import check_apart, infoset_marks

__all__ = ["PairCounts", "RelevantPairs", "check_as_many", "count_pairs"]


@dataclasses.dataclass(frozen=True, eq=False)
class RelevantPairs:
    """The relevant pairs of a game, or of its trunk and one subgame.

    Attributes:
      game: The pairs' sequences are this one's.
      first, second: int64[B], the information sets of players 0 and 1 of each block, sorted.
      start: int64[B + 1], the first pair of each block.
      label: int32[B], the subgame of a block's pairs (index into the game's labels), -1 for the trunk.
    """

    game: SequenceGame
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    label: npt.NDArray[np.int32]
    _codes: np.ndarray

    def __repr__(self) -> str:
        return f"RelevantPairs({len(self):,} in {self.num_blocks:,} blocks of {self.game})"

    @classmethod
    @public
    def of(cls, game: SequenceGame) -> RelevantPairs:
        """All relevant pairs of `game`.

        Raises:
          ValueError: a pair would belong to two subgames, so they are none.
        """
        first, second = game.connected()
        sizes = game.players[0].num_actions[first] * game.players[1].num_actions[second]
        own, other = game.players[0].label[first], game.players[1].label[second]
        if ((own >= 0) & (other >= 0) & (own != other)).any():
            raise ArgumentError("expected valid subgames, but a path visits two of them")
        return cls(
            game=game,
            first=first,
            second=second,
            start=np.concatenate([[0], np.cumsum(sizes)]),
            label=np.maximum(own, other),
            _codes=first * game.players[1].num_infosets + second,
        )

    def __len__(self) -> int:
        """How many pairs there are."""
        return int(self.start[-1])

    @property
    def num_blocks(self) -> int:
        """How many pairs of connected information sets there are."""
        return len(self.first)

    @property
    def pair_label(self) -> npt.NDArray[np.int32]:
        """int32[pairs], the subgame that each belongs to, -1 for the trunk."""
        return np.repeat(self.label, np.diff(self.start))

    @public
    def block(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Blocks of (I, J), -1 where they are not connected.

        Raises:
          ValueError: these are no information sets, or not as many of one player as of the other.
        """
        counts = [form.num_infosets for form in self.game.players]
        first, second = check_as_many(first, second, counts)
        return find(self._codes, first * counts[1] + second)

    @public
    def index(self, first: np.ndarray, second: np.ndarray) -> npt.NDArray[np.int64]:
        """Pairs of the players' sequences, -1 where they are not relevant.

        Raises:
          ValueError: these are no sequences, or not as many of one player as of the other.
        """
        counts = [form.num_sequences for form in self.game.players]
        first, second = check_as_many(first, second, counts)
        one, two = self.game.players
        i, j = one.infoset[first].astype(np.int64), two.infoset[second]
        blocks = find(self._codes, i * two.num_infosets + j)
        inside = (first - one.first[i]) * two.num_actions[j] + (second - two.first[j])
        return np.where(blocks >= 0, self.start[blocks] + inside, -1)

    def sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """Player 0's and player 1's sequence of each pair: int64[pairs] each."""
        one, two = self.game.players
        sizes = np.diff(self.start)
        inside = np.arange(len(self)) - np.repeat(self.start[:-1], sizes)
        width = np.repeat(two.num_actions[self.second], sizes)
        return (
            np.repeat(one.first[self.first], sizes) + inside // width,
            np.repeat(two.first[self.second], sizes) + inside % width,
        )

    def leaves(self) -> npt.NDArray[np.int64]:
        """int64[L], the pair of each leaf."""
        return self.index(*self.game.leaf_sequence)


def check_as_many(first: Any, second: Any, counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """As many numbers of player 0 as of player 1: int64 each.

    Raises:
      ValueError: they are no integers from 0 to below `counts`, or not as many.
    """
    first = check_indices(first, counts[0], "first")
    second = check_indices(second, counts[1], "second")
    if len(first) != len(second):
        raise ArgumentError(
            f"expected as many of player 1 as of player 0, got {len(second)} and {len(first)}"
        )
    return first, second


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """How many relevant pairs a game has.

    Attributes:
      trunk: Those before all subgames.
      subgames: Those of each subgame alone, by its name.
    """

    trunk: int
    subgames: dict[Hashable, int]

    @property
    def total(self) -> int:
        """The whole game's."""
        return self.trunk + sum(self.subgames.values())

    @public
    def refinement(self, name: Hashable) -> int:
        """Those of a subgame together with the trunk's: what a refinement of it is made of.

        Raises:
          ValueError: there is no subgame of this name.
        """
        if name not in list(self.subgames):
            raise ArgumentError(f"expected the name of a subgame, got {shown(name)}")
        return self.trunk + self.subgames[name]


@public
def count_pairs(
    game: pyspiel.Game,
    public: PublicInformation,
    names: Iterable[Hashable],
) -> PairCounts:
    """Counts a game's relevant pairs one subgame at a time; memory is that of one subgame's nodes.

    Args:
      game: as for `SequenceGame`.
      public: names the subgames.
      names: of all of them (`subgames.subgame_names`).

    Raises:
      ValueError: these are not the names of all subgames, or subgames share an information set.
    """
    known = subgame_names(game, public)
    names = list(names) if isinstance(names, Iterable) else [names]
    if len(names) != len(known) or not all(name in names for name in known):
        raise ArgumentError(
            f"expected the names of all {len(known)} subgames (subgame_names()), got {shown(names)}"
        )
    trunk = len(RelevantPairs.of(SequenceGame.of(game, public=public, trunk=True)))
    counts: dict[Hashable, int] = {}
    marks: dict[Hashable, np.ndarray] = {}
    for name in names:
        part = SequenceGame.of(game, public=public, only=name)
        counts[name] = len(RelevantPairs.of(part)) - trunk
        marks[name] = infoset_marks(part)
    check_apart(marks)
    return PairCounts(trunk, counts)
