"""A two-player game without chance as flat arrays: nodes, information sets, sequences, leaves.

A player's *sequence* is what it has done so far: nothing (sequence 0), or the last action a at its last
information set I, written Ia. Sequences of one information set are neighbors. Number 0 of the information
sets stands for "before the first decision" and has one sequence, the empty one, so that no case needs an
exception. Parents come before children everywhere.

A large game need not be held whole: `SequenceGame.of(game, public=..., only=label)` walks only what precedes
all subgames (the *trunk*) and one subgame. Whatever subgame that is, the trunk's information sets have the
same numbers.

Source: von Stengel's sequence form; `efce_resolving`, Background.

Cost: one visit of OpenSpiel's state for each node walked, some 4 microseconds for a C++ game.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable, Hashable
from typing import Any

import numba
import numpy as np
import pyspiel

from precomp_games.checks import (
    check_boolean,
    check_function,
    check_game,
    check_instance,
    check_integer,
    check_player,
    shown,
)

__all__ = [
    "PlayerForm",
    "PublicInformation",
    "SequenceGame",
    "check_name",
    "check_sequence_game",
    "same_game",
    "sequences_in",
    "spread",
    "subgame_name",
]

PublicInformation = Callable[[Any], Hashable | None]
"""From a state to the name of the subgame that starts there or above, None before all subgames."""


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerForm:
    """One player's information sets and sequences.

    Attributes:
      parent: int32[m], the sequence that leads to an information set; -1 for number 0.
      first: int64[m + 1], the first sequence of each information set.
      infoset: int32[S], the information set of each sequence.
      action: int32[S], OpenSpiel's action; -1 for the empty sequence.
      label: int32[m], index into the game's `labels` of the subgame an information set is in, -1 for the
        trunk.
      keys: The information sets' strings; "" for number 0.
    """

    parent: np.ndarray
    first: np.ndarray
    infoset: np.ndarray
    action: np.ndarray
    label: np.ndarray
    keys: list[str]

    @property
    def num_infosets(self) -> int:
        """With number 0."""
        return len(self.parent)

    @property
    def num_sequences(self) -> int:
        """With the empty sequence."""
        return len(self.infoset)

    @property
    def num_actions(self) -> np.ndarray:
        """int64[m], 1 for number 0."""
        return np.diff(self.first)

    @property
    def sequence_label(self) -> np.ndarray:
        """int32[S], the label of each sequence's information set."""
        return self.label[self.infoset]


@dataclasses.dataclass(frozen=True, eq=False)
class SequenceGame:
    """The game, or its trunk and one subgame.

    Attributes:
      labels: Names of the subgames that were met, in order of appearance; empty if none were asked for.
      players: Both players' information sets.
      node_parent, node_infoset: int32[N]; -1 at the root, -1 at leaves.
      node_player: int8[N], -1 at leaves.
      node_action: int32[N], which of the parent's actions (0, 1, ...) leads here.
      node_label: int32[N], index into `labels`, -1 in the trunk; leaves right after the trunk are in it.
      leaf_node: int32[L].
      leaf_sequence: int32[2, L], the players' last sequences.
      leaf_utility: float64[2, L].
    """

    game: pyspiel.Game
    labels: tuple[Hashable, ...]
    players: tuple[PlayerForm, PlayerForm]
    node_parent: np.ndarray
    node_player: np.ndarray
    node_infoset: np.ndarray
    node_action: np.ndarray
    node_label: np.ndarray
    leaf_node: np.ndarray
    leaf_sequence: np.ndarray
    leaf_utility: np.ndarray

    def __repr__(self) -> str:
        sizes = " and ".join(f"{form.num_infosets - 1:,}" for form in self.players)
        part = "" if self.is_whole else "part of "
        return (
            f"SequenceGame({part}{self.game}: {self.num_nodes:,} nodes, {sizes} information sets, "
            f"{len(self.labels)} subgames)"
        )

    @classmethod
    def of(
        cls,
        game: pyspiel.Game,
        *,
        public: PublicInformation | None = None,
        only: Hashable | None = None,
        trunk: bool = False,
        max_nodes: int = 20_000_000,
    ) -> SequenceGame:
        """Walks a game.

        Args:
          game: two players, no chance, perfect recall, information state strings; utilities may be anything.
          public: names subgames; what it says of a state holds for all below it, so it is asked only where
            nothing was said yet.
          only: leave out all subgames but the one of this name.
          trunk: leave out all subgames.
          max_nodes: stop with an error beyond.

        Raises:
          ValueError: the game is not as above, or too large; `only` names no subgame; subgames share an
            information set.
        """
        caller = "SequenceGame.of()"
        check_game(game, caller, constant_sum=False, chance=False)
        check_function(public, "public", caller, optional=True)
        check_boolean(trunk, "trunk", caller)
        check_integer(max_nodes, "max_nodes", caller, least=1)
        if (only is not None or trunk) and public is None:
            raise ValueError("SequenceGame.of(): expected `public` together with `only` or `trunk`, got None")
        walk = _Walk(game, public, only, trunk, max_nodes)
        if only is not None and only not in list(walk.labels):
            raise ValueError(
                f"SequenceGame.of(): expected `only` to be the name of a subgame, got {shown(only)}"
            )
        return walk.game_of_arrays()

    @property
    def num_nodes(self) -> int:
        """Decisions and leaves."""
        return len(self.node_parent)

    @property
    def leaf_label(self) -> np.ndarray:
        """int32[L], index into `labels` of the subgame that each leaf lies in, -1 for the trunk."""
        own = [self.players[i].sequence_label[self.leaf_sequence[i]] for i in (0, 1)]
        return np.maximum(own[0], own[1])

    def infoset_of(self, player: int, key: str) -> int:
        """The number of an information set.

        Raises:
          ValueError: there is none with this string.
        """
        check_player(player, "SequenceGame.infoset_of()")
        found = self._index()[player].get(key) if isinstance(key, str) else None
        if found is None:
            raise ValueError(
                f"SequenceGame.infoset_of(): expected an information set of player {player} in this part of "
                f"the game, got {shown(key)}"
            )
        return found

    def _index(self) -> tuple[dict[str, int], dict[str, int]]:
        made = self.__dict__.get("_keys")
        if made is None:
            made = tuple({key: k for k, key in enumerate(form.keys) if k} for form in self.players)
            object.__setattr__(self, "_keys", made)
        return made

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out: each action of each decision leads to a node."""
        decisions = 0
        for player, form in enumerate(self.players):
            infosets = self.node_infoset[self.node_player == player]
            decisions += int(form.num_actions[infosets].sum())
        return decisions + 1 == self.num_nodes

    def sequences_in(self, other: SequenceGame) -> tuple[np.ndarray, np.ndarray]:
        """For both players, the number in `other` of each sequence here: int64[S] each.

        Raises:
          ValueError: an information set is not in `other`, or has other actions or another past there.
        """
        return sequences_in(self, other, "SequenceGame.sequences_in()")

    def restricted(self, label: int) -> tuple[SequenceGame, tuple[np.ndarray, np.ndarray]]:
        """The trunk and one subgame (-1: none); and for both players, each sequence's number here.

        Raises:
          ValueError: there is no subgame of this number.
        """
        check_integer(label, "label", "SequenceGame.restricted()", least=-1, most=len(self.labels) - 1)
        keep = (self.node_label < 0) | (self.node_label == label)
        number = np.cumsum(keep) - 1
        nodes = np.flatnonzero(keep)
        parent = self.node_parent[nodes]
        new_infoset = []
        forms, old_sequences = [], []
        for form in self.players:
            trunk = np.flatnonzero(form.label < 0)
            inside = np.flatnonzero((form.label == label) & (form.label >= 0))
            order = np.concatenate([trunk, inside])
            new = np.full(form.num_infosets, -1, np.int64)
            new[order] = np.arange(len(order))
            counts = form.num_actions[order]
            first = np.concatenate([[0], np.cumsum(counts)])
            old = np.repeat(form.first[order] - first[:-1], counts) + np.arange(first[-1])
            new_sequence = np.full(form.num_sequences + 1, -1, np.int64)
            new_sequence[old] = np.arange(len(old))
            forms.append(
                PlayerForm(
                    parent=new_sequence[form.parent[order]].astype(np.int32),
                    first=first,
                    infoset=np.repeat(np.arange(len(order)), counts).astype(np.int32),
                    action=form.action[old],
                    label=np.where(form.label[order] >= 0, 0, -1).astype(np.int32),
                    keys=[form.keys[k] for k in order.tolist()],
                )
            )
            new_infoset.append(new)
            old_sequences.append((old, new_sequence))
        player = self.node_player[nodes]
        infoset = np.full(len(nodes), -1, np.int32)
        for i in (0, 1):
            infoset[player == i] = new_infoset[i][self.node_infoset[nodes][player == i]]
        leaves = np.flatnonzero(keep[self.leaf_node])
        return SequenceGame(
            game=self.game,
            labels=(self.labels[label],) if label >= 0 else (),
            players=(forms[0], forms[1]),
            node_parent=np.where(parent >= 0, number[parent], -1).astype(np.int32),
            node_player=player,
            node_infoset=infoset,
            node_action=self.node_action[nodes],
            node_label=np.where(self.node_label[nodes] >= 0, 0, -1).astype(np.int32),
            leaf_node=number[self.leaf_node[leaves]].astype(np.int32),
            leaf_sequence=np.stack(
                [old_sequences[i][1][self.leaf_sequence[i, leaves]] for i in (0, 1)]
            ).astype(np.int32),
            leaf_utility=np.ascontiguousarray(self.leaf_utility[:, leaves]),
        ), (old_sequences[0][0], old_sequences[1][0])

    def connected(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (I of player 0, J of player 1) such that a path visits both, sorted; number 0 with all."""
        counts = [form.num_infosets for form in self.players]
        codes = _connected(self.node_parent, self.node_player, self.node_infoset, counts[1], self._deepest())
        codes = np.unique(
            np.concatenate([np.arange(counts[1]), np.arange(counts[0]) * np.int64(counts[1]), codes])
        )
        return codes // counts[1], codes % counts[1]

    def _deepest(self) -> int:
        depth = np.zeros(self.num_nodes, np.int32)
        return int(_depths(self.node_parent, depth))


def check_sequence_game(value: Any, caller: str, name: str = "game") -> SequenceGame:
    """A game that is held as arrays.

    Raises:
      ValueError: it is none; OpenSpiel's own is the commonest case.
    """
    return check_instance(value, SequenceGame, name, caller, "; SequenceGame.of(game) makes one")


def sequences_in(game: SequenceGame, other: Any, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """As `SequenceGame.sequences_in`, for another function that errors name."""
    check_sequence_game(other, caller, "other")
    if other is game:
        return np.arange(game.players[0].num_sequences), np.arange(game.players[1].num_sequences)
    found = []
    for player, (form, theirs) in enumerate(zip(game.players, other.players, strict=True)):
        known = other._index()[player]
        infoset = np.array([0, *(known.get(key, -1) for key in form.keys[1:])], np.int64)
        numbers = theirs.first[infoset[form.infoset]] + np.arange(form.num_sequences)
        numbers -= form.first[form.infoset]
        same = (infoset >= 0) & (form.num_actions == theirs.num_actions[infoset])
        same[1:] &= numbers[form.parent[1:]] == theirs.parent[infoset[1:]]
        other_action = form.action != theirs.action[np.minimum(numbers, theirs.num_sequences - 1)]
        same[form.infoset[other_action]] = False
        if not same.all():
            key = form.keys[int(np.argmin(same))]
            raise ValueError(
                f"{caller}: expected parts of one game, but player {player}'s "
                f"information set {key!r} is not the same in both"
            )
        found.append(numbers)
    return found[0], found[1]


def same_game(one: SequenceGame, two: SequenceGame) -> bool:
    """Whether two have the same information sets, leaves and utilities, under the same numbers."""
    return one is two or (
        all(
            a.keys == b.keys and np.array_equal(a.action, b.action) and np.array_equal(a.parent, b.parent)
            for a, b in zip(one.players, two.players, strict=True)
        )
        and np.array_equal(one.leaf_sequence, two.leaf_sequence)
        and np.array_equal(one.leaf_utility, two.leaf_utility)
    )


def subgame_name(public: PublicInformation, state: Any, caller: str) -> Hashable | None:
    """What `public` says of a state.

    Raises:
      ValueError: it cannot be hashed, and so is no name (a list, say).
    """
    return check_name(public(state), caller)


def check_name(name: Any, caller: str) -> Hashable:
    """What can name a subgame.

    Raises:
      ValueError: it cannot be hashed.
    """
    try:
        hash(name)
    except TypeError:
        raise ValueError(
            f"{caller}: expected subgames' names to be hashable, such as tuples, got {shown(name)}"
        ) from None
    return name


def spread(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With counts (2, 0, 3): which is (0, 0, 2, 2, 2), and its place there (0, 1, 0, 1, 2); int64."""
    counts = np.asarray(counts, np.int64)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


class _Walk:
    """A walk in depth-first order, and what it found."""

    def __init__(
        self,
        game: pyspiel.Game,
        public: PublicInformation | None,
        only: Hashable | None,
        trunk: bool,
        max_nodes: int,
    ) -> None:
        self.game = game
        self.labels: dict[Hashable, int] = {}
        # Without number 0: OpenSpiel's string of a first decision can be "" (tic-tac-toe).
        self.index: tuple[dict[str, int], dict[str, int]] = ({}, {})
        # Information sets in order of discovery; their sequences are neighbors in order of discovery too.
        self.parent = [array("i", [-1]), array("i", [-1])]
        self.first = [array("q", [0, 1]), array("q", [0, 1])]
        self.label = [array("i", [-1]), array("i", [-1])]
        self.actions: list[list[list[int]]] = [[[-1]], [[-1]]]
        nodes = [array("i") for _ in range(5)]
        node_parent, node_player, node_infoset, node_action, node_label = nodes
        self.nodes = nodes
        self.leaf_node, self.leaf_sequence = array("i"), (array("i"), array("i"))
        self.leaf_utility = (array("d"), array("d"))
        stack: list[tuple[Any, int, int, int, int, int]] = [(game.new_initial_state(), -1, -1, 0, 0, -1)]
        while stack:
            state, above, k, mine, other, label = stack.pop()
            if label < 0 and public is not None:
                # A leaf right after the trunk stays in it: nobody moves below.
                name = None if state.is_terminal() else subgame_name(public, state, "SequenceGame.of()")
                if name is not None:
                    if trunk or (only is not None and name != only):
                        continue
                    label = self.labels.setdefault(name, len(self.labels))
            node = len(node_parent)
            if node >= max_nodes:
                raise ValueError(
                    f"SequenceGame.of(): expected at most {max_nodes} nodes (max_nodes), got more in {game}; "
                    "a large game can be held one subgame at a time (public, only)"
                )
            node_parent.append(above)
            node_action.append(k)
            node_label.append(label)
            player = state.current_player()
            if player < 0:
                if not state.is_terminal():
                    raise ValueError(f"SequenceGame.of(): expected no chance nodes, got one at {state}")
                returns = state.returns()
                node_player.append(-1)
                node_infoset.append(-1)
                self.leaf_node.append(node)
                self.leaf_sequence[0].append(mine)
                self.leaf_sequence[1].append(other)
                self.leaf_utility[0].append(returns[0])
                self.leaf_utility[1].append(returns[1])
                continue
            own = mine if player == 0 else other
            actions = state.legal_actions()
            infoset = self._infoset(player, state.information_state_string(), own, actions, label)
            node_player.append(player)
            node_infoset.append(infoset)
            first = self.first[player][infoset]
            # Pushed in reverse, so that they are met in order.
            for j in range(len(actions) - 1, -1, -1):
                child = state.child(actions[j])
                if player == 0:
                    stack.append((child, node, j, first + j, other, label))
                else:
                    stack.append((child, node, j, mine, first + j, label))

    def _infoset(self, player: int, key: str, own: int, actions: list[int], label: int) -> int:
        known = self.index[player].get(key)
        if known is None:
            index = len(self.parent[player])
            self.index[player][key] = index
            self.parent[player].append(own)
            self.first[player].append(self.first[player][-1] + len(actions))
            self.label[player].append(label)
            self.actions[player].append(actions)
            return index
        if self.parent[player][known] != own or self.actions[player][known] != actions:
            raise ValueError(
                f"SequenceGame.of(): expected a game with perfect recall, got {self.game}, where player "
                f"{player} comes to {key!r} in different ways"
            )
        if self.label[player][known] != label:
            raise ValueError(
                f"SequenceGame.of(): expected subgames that share no information set, but player {player}'s "
                f"{key!r} lies in several, or both in one and before it"
            )
        return known

    def game_of_arrays(self) -> SequenceGame:
        if not np.isfinite(self.leaf_utility).all():
            raise ValueError(f"SequenceGame.of(): expected finite utilities, got others in {self.game}")
        forms, new_infoset, new_sequence = [], [], []
        for i in (0, 1):
            label = np.array(self.label[i], np.int32)
            first = np.array(self.first[i], np.int64)
            order = np.argsort(label >= 0, kind="stable")  # the trunk first
            counts = np.diff(first)[order]
            starts = np.concatenate([[0], np.cumsum(counts)])
            old = np.repeat(first[order] - starts[:-1], counts) + np.arange(starts[-1])
            sequence = np.full(len(old) + 1, -1, np.int64)
            sequence[old] = np.arange(len(old))
            infoset = np.empty(len(order), np.int64)
            infoset[order] = np.arange(len(order))
            keys = ["", *self.index[i]]
            forms.append(
                PlayerForm(
                    parent=sequence[np.array(self.parent[i], np.int64)[order]].astype(np.int32),
                    first=starts,
                    infoset=np.repeat(np.arange(len(order)), counts).astype(np.int32),
                    action=np.concatenate([self.actions[i][k] for k in order.tolist()]).astype(np.int32),
                    label=label[order],
                    keys=[keys[k] for k in order.tolist()],
                )
            )
            new_infoset.append(infoset)
            new_sequence.append(sequence)
        parent, player, old_infoset, action, node_label = (np.array(a, np.int32) for a in self.nodes)
        renumbered = np.full(len(parent), -1, np.int32)
        for i in (0, 1):
            renumbered[player == i] = new_infoset[i][old_infoset[player == i]]
        return SequenceGame(
            game=self.game,
            labels=tuple(self.labels),
            players=(forms[0], forms[1]),
            node_parent=parent,
            node_player=player.astype(np.int8),
            node_infoset=renumbered,
            node_action=action,
            node_label=node_label,
            leaf_node=np.array(self.leaf_node, np.int32),
            leaf_sequence=np.stack(
                [new_sequence[i][np.array(self.leaf_sequence[i], np.int64)] for i in (0, 1)]
            ).astype(np.int32),
            leaf_utility=np.array(self.leaf_utility),
        )


@numba.njit(cache=True)
def _depths(parent: np.ndarray, depth: np.ndarray) -> int:
    deepest = 0
    for h in range(1, len(parent)):
        depth[h] = depth[parent[h]] + 1
        deepest = max(deepest, depth[h])
    return deepest


@numba.njit(cache=True)
def _connected(
    parent: np.ndarray, player: np.ndarray, infoset: np.ndarray, count: int, deepest: int
) -> np.ndarray:
    """Codes I * count + J, with repetitions dropped where they are neighbors."""
    last = np.full(deepest + 1, -1, np.int64)  # of the pairs at each distance up
    size = 0
    codes = np.empty(1024, np.int64)
    for h in range(len(parent)):
        p = player[h]
        if p < 0:
            continue
        up, distance = parent[h], 0
        while up >= 0:
            if player[up] != p:
                code = infoset[h] * count + infoset[up] if p == 0 else infoset[up] * count + infoset[h]
                if last[distance] != code:
                    last[distance] = code
                    if size == len(codes):
                        grown = np.empty(2 * size, np.int64)
                        grown[:size] = codes
                        codes = grown
                    codes[size] = code
                    size += 1
            up = parent[up]
            distance += 1
    return codes[:size]
