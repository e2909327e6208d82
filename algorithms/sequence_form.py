"""A player's information sets and sequences, and how a walk through a game finds them.

A player's *sequence* is what it has done so far: nothing (sequence 0), or the last action a at its last
information set I, written Ia. Sequences of one information set are neighbors. Number 0 of the information
sets stands for "before the first decision" and has one sequence, the empty one, so that no case needs an
exception. Parents come before children.

A *realization plan* x has x[0] = 1 and, at each information set, the entries of its actions add up to that of
the sequence before it.

Source: von Stengel 1996.

Cost: a pass over the information sets for each function.
"""

from __future__ import annotations

import dataclasses
import functools
from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.checks import ArgumentError
from precomp_games._support.game_facts import GameFacts, check_infoset_keys


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerSequences:
    """Information sets and sequences of one player.

    Attributes:
      parent: int32[m], the sequence that leads to an information set; -1 for number 0.
      first: int64[m + 1], the first sequence of each information set.
      action: int32[S], OpenSpiel's action; -1 for the empty sequence.
      keys: The information sets' strings (histories where the game has none); "" for number 0.
    """

    parent: np.ndarray
    first: np.ndarray
    action: np.ndarray
    keys: list[str]

    @property
    def num_infosets(self) -> int:
        """With number 0."""
        return len(self.parent)

    @property
    def num_sequences(self) -> int:
        """With the empty sequence."""
        return len(self.action)

    @property
    def num_actions(self) -> np.ndarray:
        """int64[m], 1 for number 0."""
        return np.diff(self.first)

    @functools.cached_property
    def infoset(self) -> np.ndarray:
        """int32[S], the information set of each sequence."""
        return np.repeat(np.arange(self.num_infosets, dtype=np.int32), self.num_actions)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Information sets by their strings, without number 0: a first decision's can be "" as well."""
        return {key: k for k, key in enumerate(self.keys) if k}

    @functools.cached_property
    def below(self) -> list[list[int]]:
        """The information sets that come right after each sequence."""
        below: list[list[int]] = [[] for _ in range(self.num_sequences)]
        for infoset, sequence in enumerate(self.parent[1:].tolist(), 1):
            below[sequence].append(infoset)
        return below

    def sequences(self, infoset: int) -> range:
        """Return the sequences of an information set's actions."""
        return range(int(self.first[infoset]), int(self.first[infoset + 1]))

    def actions(self, infoset: int) -> list[int]:
        """Return OpenSpiel's actions at an information set."""
        return list(self.action[self.first[infoset] : self.first[infoset + 1]].tolist())

    def path(self, sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all sequences on the path to each, itself included and the empty one not: int64 each.

        Returns:
          (which, sequence): the place among `sequences`, and one on its path; all last ones come first.
        """
        which, parts = np.arange(len(sequences)), [np.zeros((2, 0), np.int64)]
        while len(which):
            which, sequences = which[sequences > 0], sequences[sequences > 0]
            parts.append(np.stack([which, sequences]))
            sequences = self.parent[self.infoset[sequences]]
        which, path = np.concatenate(parts, axis=1)
        return which, path

    def extremes(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the maximum of `weights @ x` over realization plans x, by column of weights[sequence, :]."""
        total: npt.NDArray[np.float64] = np.array(weights, np.float64)
        for k in range(self.num_infosets - 1, 0, -1):
            total[self.parent[k]] += total[self.first[k] : self.first[k + 1]].max(axis=0)
        return np.asarray(total[0])

    def realized(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the realization plan of action probabilities, both float[sequences, ...], any entry at 0."""
        plan = np.array(probabilities, np.float64)
        plan[0] = 1.0
        for k in range(1, self.num_infosets):
            plan[self.first[k] : self.first[k + 1]] *= plan[self.parent[k]]
        return plan

    def probabilities(self, plan: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the action probabilities of a realization plan; uniform where it does not come."""
        probabilities = np.maximum(plan, 0.0)
        for k in range(1, self.num_infosets):
            own = slice(self.first[k], self.first[k + 1])
            total = probabilities[own].sum()
            probabilities[own] = probabilities[own] / total if total > 0.0 else 1.0 / (own.stop - own.start)
        return np.asarray(probabilities)

    def behavior(self, plan: np.ndarray) -> dict[str, dict[int, float]]:
        """Return a realization plan as a behavioral strategy {information state: {action: probability}}."""
        rows = np.split(self.probabilities(plan), self.first[1:-1])
        return {
            key: dict(zip(self.actions(k), rows[k].tolist(), strict=True)) for key, k in self.index.items()
        }


def connected_infosets(parent: np.ndarray, player: np.ndarray, infoset: np.ndarray, count: int) -> np.ndarray:
    """Return pairs of information sets (I of player 0, J of player 1) such that a path visits both.

    Args:
      parent: int[N], the node before each, -1 at the root.
      player: int[N], who moves; negative where no player does.
      infoset: int[N], the mover's information set.
      count: player 1's information sets, number 0 included.

    Returns:
      int64, I * count + J, each once, ascending.
    """
    pairs = [np.zeros(0, np.int64)]
    node = above = np.flatnonzero(player >= 0).astype(np.int32)
    while len(node):
        above = parent[above]
        node, above = node[above >= 0], above[above >= 0]
        both = (player[above] >= 0) & (player[node] != player[above])
        own, theirs = infoset[node[both]].astype(np.int64), infoset[above[both]].astype(np.int64)
        codes = np.where(player[node[both]] == 0, own * count + theirs, theirs * count + own)
        pairs.append(codes[np.diff(codes, append=-1) != 0])  # neighbors are often the same
    return np.unique(np.concatenate(pairs))


class SequencesBuilder:
    """A player's information sets and sequences, while a walk meets its decisions.

    Attributes:
      parent, first: As `PlayerSequences`, of the information sets so far, in order of discovery.
    """

    def __init__(self, game: pyspiel.Game, player: int) -> None:
        """Begin with number 0 alone."""
        self._game, self._player, self._facts = game, player, GameFacts(game, bounded=False)
        self.parent, self.first = array("i", [-1]), array("q", [0, 1])
        self._actions: list[list[int]] = [[-1]]
        self._index: dict[str, int] = {}

    def visit(self, key: str, actions: list[int], before: int) -> int:
        """Return the information set of a decision, to which the player came by the sequence `before`.

        Raises:
          ValueError: the player forgets what it knew or did, or has other actions there than before, or one
            that the game says that there is not.
        """
        infoset = self._index.setdefault(key, len(self.parent))
        if infoset == len(self.parent):
            self._facts.check_actions(actions, key)
            self.parent.append(before)
            self.first.append(self.first[-1] + len(actions))
            self._actions.append(actions)
        elif self.parent[infoset] != before:
            raise ArgumentError(
                f"expected a game with perfect recall, got {self._game}, in which player "
                f"{self._player} comes to {key!r} with different pasts of its own"
            )
        elif self._actions[infoset] != actions:
            raise ArgumentError(
                f"expected one set of legal actions at {key!r}, got {self._actions[infoset]} and {actions}"
            )
        return infoset

    def arrays(self) -> dict[str, Any]:
        """Return the fields of `PlayerSequences`.

        Raises:
          ValueError: see `check_infoset_keys`.
        """
        check_infoset_keys(self._game, self._index)
        return {
            "parent": np.array(self.parent, np.int32),
            "first": np.array(self.first, np.int64),
            "action": np.array([action for actions in self._actions for action in actions], np.int32),
            "keys": ["", *self._index],
        }
