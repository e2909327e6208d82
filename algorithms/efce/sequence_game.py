"""A two-player game as flat arrays: nodes, information sets, sequences, leaves.

Information sets and sequences are numbered as in `sequence_form`. Parents come before children everywhere.
Chance is part of the tree, and then of the payoffs: a leaf's utilities are multiplied with the probability of
chance's moves on the way, so that a sum over leaves of utility times a plan's entry is an expectation.

Subgames begin with decisions. So a chance node belongs to a subgame if a player has moved in it before, and a
leaf if it is come to by such a move; what chance decides before is in the trunk.

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
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.game_facts import GameFacts, chance_outcomes, information_state, legal_actions
from precomp_games._support.results import Shown
from precomp_games.tree.base_game import given_game
from precomp_games.tree.facts import CHANCE, TERMINAL

from ..sequence_form import PlayerSequences, SequencesBuilder

CorrelatedGame = Annotated[
    Any, checks.Check(lambda game, name: given_game(game, constant_sum=False, strings=True))
]
"""A sequential game of two players with information state strings, chance explicit; utilities of any sum."""

PublicInformation = Callable[[Any], Hashable | None]
"""From a state where a player moves to the name of the subgame that starts there or above, None before all
subgames."""


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerForm(PlayerSequences):
    """Information sets and sequences of one player, and the subgames that they are in.

    Attributes:
      label: int32[m], index into the game's `labels` of the subgame an information set is in, -1 for the
        trunk.
    """

    label: np.ndarray

    @property
    def sequence_label(self) -> npt.NDArray[np.int32]:
        """int32[S], the label of each sequence's information set."""
        return np.asarray(self.label[self.infoset])


@dataclasses.dataclass(frozen=True, eq=False)
class SequenceGame(Shown):
    """The game, or its trunk and one subgame.

    Attributes:
      labels: Names of the subgames that were met, in order of appearance; empty if none were asked for.
      players: Both players' information sets.
      node_parent, node_infoset: int32[N]; -1 at the root, -1 where no player moves.
      node_player: int8[N], as OpenSpiel has it: CHANCE, or TERMINAL at leaves.
      node_action: int32[N], which of the parent's `moves` (0, 1, ...) leads here.
      node_label: int32[N], index into `labels`, -1 in the trunk; leaves right after the trunk are in it.
      outcomes: int32[C], how many moves each chance node has, in the order of the nodes.
      leaf_node: int32[L].
      leaf_sequence: int32[2, L], the players' last sequences.
      leaf_chance: float64[L], the probability of chance's moves on the way.
      leaf_utility: float64[2, L], multiplied with `leaf_chance`.
    """

    _made_by = "SequenceGame.of(game)"

    game: pyspiel.Game
    labels: tuple[Hashable, ...]
    players: tuple[PlayerForm, PlayerForm]
    node_parent: npt.NDArray[np.int32]
    node_player: npt.NDArray[np.int8]
    node_infoset: npt.NDArray[np.int32]
    node_action: npt.NDArray[np.int32]
    node_label: npt.NDArray[np.int32]
    outcomes: npt.NDArray[np.int32]
    leaf_node: npt.NDArray[np.int32]
    leaf_sequence: npt.NDArray[np.int32]
    leaf_chance: npt.NDArray[np.float64]
    leaf_utility: npt.NDArray[np.float64]

    def __repr__(self) -> str:
        sizes = " and ".join(f"{form.num_infosets - 1:,}" for form in self.players)
        part = "" if self.is_whole else "part of "
        return (
            f"SequenceGame({part}{self.game}: {self.num_nodes:,} nodes, {sizes} information sets, "
            f"{len(self.labels)} subgames)"
        )

    @classmethod
    @public
    def of(
        cls,
        game: CorrelatedGame,
        *,
        public: PublicInformation | None = None,
        only: Hashable | None = None,
        trunk: bool = False,
        max_nodes: checks.PositiveInt = 20_000_000,
    ) -> SequenceGame:
        """Walk a game.

        Args:
          game: two players, perfect recall, information state strings; utilities may be anything.
          public: names subgames; what it says of a state holds for all below it, so it is asked only where
            nothing was recommended yet, and a player moves.
          only: leave out all subgames but the one of this name.
          trunk: leave out all subgames but their names.
          max_nodes: stop with an error beyond.

        Raises:
          ValueError: the game is not as above, or too large; `only` names no subgame; subgames share an
            information set.
        """
        if (only is not None or trunk) and public is None:
            raise ArgumentError("expected `public` together with `only` or `trunk`, got None")
        walked = _walked(game, public, only, trunk, max_nodes)
        if not (walked.node_player >= 0).any() and not (trunk or only is not None):
            raise ArgumentError(f"expected a game in which a player moves, got {game}")
        if only is not None and only not in walked.labels:
            raise ArgumentError(f"expected `only` to be the name of a subgame, got {shown(only)}")
        trunk_first = [np.argsort(form.label >= 0, kind="stable") for form in walked.players]
        return _select(walked, np.ones(walked.num_nodes, np.bool_), trunk_first)[0]

    @property
    def num_nodes(self) -> int:
        """Decisions, chance nodes and leaves."""
        return len(self.node_parent)

    @property
    def has_chance(self) -> bool:
        """Return whether the game has chance moves, in this part of it or elsewhere."""
        return bool(self.game.get_type().chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC)

    @property
    def payoffs(self) -> npt.NDArray[np.float64]:
        """float64[2, L], what the leaves pay the players, whatever chance does on the way."""
        return self.leaf_utility / self.leaf_chance

    @property
    def leaf_label(self) -> npt.NDArray[np.int32]:
        """int32[L], index into `labels` of the subgame that each leaf lies in, -1 for the trunk."""
        own = [self.players[i].sequence_label[self.leaf_sequence[i]] for i in (0, 1)]
        label: npt.NDArray[np.int32] = np.maximum(own[0], own[1])
        return label

    @public
    def infoset_of(self, player: checks.Player, key: str) -> int:
        """Return the number of an information set.

        Raises:
          ValueError: there is none with this string.
        """
        infoset = self.players[player].index.get(key)
        if infoset is None:
            raise ArgumentError(
                f"expected an information set of player {player} in this part of the game, got {shown(key)}"
            )
        return infoset

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is left out: each action of a decision or chance node leads to a node."""
        infosets = [self.node_infoset[self.node_player == player] for player in (0, 1)]
        actions = sum(int(self.players[i].num_actions[infosets[i]].sum()) for i in (0, 1))
        return actions + int(self.outcomes.sum()) + 1 == self.num_nodes

    def check_whole(self) -> None:
        """Refuse a part of a game."""
        if not self.is_whole:
            raise ArgumentError(f"expected a game that is held whole, got {self}")

    @public
    def sequences_in(self, other: SequenceGame) -> tuple[np.ndarray, np.ndarray]:
        """Return, for both players, the number in `other` of each sequence here: int64[S] each.

        Raises:
          ValueError: an information set is not in `other`, or has other actions or another past there.
        """
        if other is self:
            return np.arange(self.players[0].num_sequences), np.arange(self.players[1].num_sequences)
        both = []
        for player, (form, theirs) in enumerate(zip(self.players, other.players, strict=True)):
            infoset = np.array([0, *(theirs.index.get(key, -1) for key in form.keys[1:])], np.int64)
            numbers = theirs.first[infoset[form.infoset]] + np.arange(form.num_sequences)
            numbers -= form.first[form.infoset]
            same = (infoset >= 0) & (form.num_actions == theirs.num_actions[infoset])
            same[1:] &= numbers[form.parent[1:]] == theirs.parent[infoset[1:]]
            other_action = form.action != theirs.action[np.minimum(numbers, theirs.num_sequences - 1)]
            same[form.infoset[other_action]] = False
            if not same.all():
                key = form.keys[int(np.argmin(same))]
                raise ArgumentError(
                    f"expected parts of one game, but player {player}'s "
                    f"information set {key!r} is not the same in both"
                )
            both.append(numbers)
        return both[0], both[1]

    @public
    def restrict(self, label: int) -> tuple[SequenceGame, tuple[np.ndarray, np.ndarray]]:
        """Return the trunk and one subgame (-1: none); and for both players, each sequence's number here.

        Raises:
          ValueError: there is no subgame of this number.
        """
        label = checks.check_integer(label, "label", least=-1, most=len(self.labels) - 1)
        keep = (self.node_label < 0) | (self.node_label == label)
        orders = [
            np.concatenate([np.flatnonzero(form.label == k) for k in sorted({-1, label})])
            for form in self.players
        ]
        part, sequences = _select(self, keep, orders)
        # The one subgame that is left becomes number 0.
        one, two = (dataclasses.replace(form, label=np.minimum(form.label, 0)) for form in part.players)
        labels = (self.labels[label],) if label >= 0 else ()
        part = dataclasses.replace(
            part, labels=labels, players=(one, two), node_label=np.minimum(part.node_label, 0)
        )
        return part, sequences


def _walked(
    game: pyspiel.Game,
    public: PublicInformation | None,
    only: Hashable | None,
    trunk: bool,
    max_nodes: int,
) -> SequenceGame:
    """Walk a game as `SequenceGame.of` does, numbered in the order of a depth-first walk.

    Limited lookahead has a walk of its own, breadth first: one generator for both would take 1.4 times as
    long here.
    """
    labels: dict[Hashable, int] = {}
    own, facts = (SequencesBuilder(game, 0), SequencesBuilder(game, 1)), GameFacts(game, bounded=False)
    # Five numbers a node, three and three a leaf.
    nodes, leaves, utilities = array("i"), array("i"), array("d")
    outcomes = array("i")
    stack: list[tuple[Any, int, int, int, int, int, float]] = [
        (game.new_initial_state(), -1, -1, 0, 0, -1, 1.0)
    ]
    while stack:
        state, above, k, mine, other, label, chance = stack.pop()
        player, node = facts.mover(state), len(nodes) // 5
        if label < 0 and player >= 0 and public is not None:
            # A leaf right after the trunk stays in it, as does what chance does there: nobody has moved.
            name = check_name(public(state))
            if name is not None:
                if only is not None and name != only:
                    continue
                label = labels.setdefault(name, len(labels))
                if trunk:
                    continue
        if node >= max_nodes:
            raise ArgumentError(
                f"expected at most {max_nodes} nodes (max_nodes), got more in {game}; "
                "a large game can be held one subgame at a time (public, only)"
            )
        if player == TERMINAL:
            nodes.fromlist([above, player, -1, k, label])
            leaves.fromlist([node, mine, other])
            utilities.fromlist([chance, *facts.utilities(state)])
            continue
        if player == CHANCE:
            drawn = moves(state)
            nodes.fromlist([above, player, -1, k, label])
            outcomes.append(len(drawn))
            for j in range(len(drawn) - 1, -1, -1):
                outcome, p = drawn[j]
                stack.append((state.child(outcome), node, j, mine, other, label, chance * p))
            continue
        actions = legal_actions(state)
        infoset = own[player].visit(information_state(state), actions, (mine, other)[player])
        nodes.fromlist([above, player, infoset, k, label])
        first = own[player].first[infoset]
        # Pushed in reverse, so that they are met in order.
        for j in range(len(actions) - 1, -1, -1):
            after = (first + j, other) if player == 0 else (mine, first + j)
            stack.append((state.child(actions[j]), node, j, *after, label, chance))
    parent, mover, node_infoset, action, node_label = np.array(nodes).reshape(-1, 5).T
    leaf = np.array(leaves).reshape(-1, 3).T
    leaf_chance, *utility = np.array(utilities).reshape(-1, 3).T
    one, two = (PlayerForm(**builder.arrays(), label=np.zeros(0, np.int32)) for builder in own)
    walked = SequenceGame(
        game=game,
        labels=(),
        players=(one, two),
        node_parent=parent,
        node_player=mover.astype(np.int8),
        node_infoset=node_infoset,
        node_action=action,
        node_label=node_label,
        outcomes=np.array(outcomes, np.int32),
        leaf_node=leaf[0],
        leaf_sequence=leaf[1:],
        leaf_chance=leaf_chance,
        leaf_utility=leaf_chance * utility,
    )
    return labeled(walked, node_label, tuple(labels))


def moves(state: Any) -> list[tuple[int, float]]:
    """Return a chance node's (action, probability > 0) pairs; (action, 1) where a player moves."""
    if state.current_player() != CHANCE:
        return [(action, 1.0) for action in legal_actions(state)]
    return [(action, p) for action, p in chance_outcomes(state) if p > 0.0]


def labeled(
    game: SequenceGame, node_label: npt.NDArray[np.int32], labels: tuple[Hashable, ...]
) -> SequenceGame:
    """Return the game with these subgames.

    Args:
      game: the game.
      node_label: int32[N], the subgame of each node, -1 in the trunk; children are where their parents are.
        Chance nodes and leaves that no player has moved to in a subgame come into the trunk.
      labels: the subgames' names.

    Raises:
      ValueError: an information set is in several subgames, or partly in one.
    """
    node_label, above = node_label.copy(), np.maximum(game.node_parent, 0)
    idle = np.flatnonzero(game.node_player < 0)
    while len(early := idle[(node_label[idle] >= 0) & ((node_label[above[idle]] < 0) | (idle == 0))]):
        node_label[early] = -1
    players = []
    for player, form in enumerate(game.players):
        nodes = np.flatnonzero(game.node_player == player)
        infoset, label = game.node_infoset[nodes], np.full(form.num_infosets, -1, np.int32)
        label[infoset] = node_label[nodes]
        bad = np.flatnonzero(label[infoset] != node_label[nodes])
        if len(bad):
            raise ArgumentError(
                "expected a valid decomposition, into subgames that share no information set, but "
                f"player {player}'s {form.keys[int(infoset[bad[0]])]!r} is not in one part of it only"
            )
        players.append(dataclasses.replace(form, label=label))
    return dataclasses.replace(game, players=(players[0], players[1]), node_label=node_label, labels=labels)


def _select(
    game: SequenceGame, keep: npt.NDArray[np.bool_], orders: list[np.ndarray]
) -> tuple[SequenceGame, tuple[np.ndarray, np.ndarray]]:
    """Return some nodes, and the information sets there in another order; and each sequence's number before.

    Args:
      game: the game.
      keep: bool[N], which nodes.
      orders: for both players, the information sets at these nodes, number 0 first.
    """
    nodes, leaves = np.flatnonzero(keep), np.flatnonzero(keep[game.leaf_node])
    number = np.cumsum(keep) - 1
    parent, player = game.node_parent[nodes], game.node_player[nodes]
    node_infoset = np.full(len(nodes), -1, np.int32)
    forms, old_sequences, leaf_sequence = [], [], []
    for i, (form, order) in enumerate(zip(game.players, orders, strict=True)):
        counts = form.num_actions[order]
        first = np.concatenate([[0], np.cumsum(counts)])
        which, place = spread(counts)
        old = form.first[order][which] + place
        infoset = np.full(form.num_infosets, -1, np.int32)
        infoset[order] = np.arange(len(order))
        sequence = np.full(form.num_sequences + 1, -1, np.int32)  # the last one for no parent
        sequence[old] = np.arange(len(old))
        forms.append(
            PlayerForm(
                parent=sequence[form.parent[order]],
                first=first,
                action=form.action[old],
                label=form.label[order],
                keys=[form.keys[k] for k in order.tolist()],
            )
        )
        node_infoset[player == i] = infoset[game.node_infoset[nodes][player == i]]
        leaf_sequence.append(sequence[game.leaf_sequence[i, leaves]])
        old_sequences.append(old)
    return SequenceGame(
        game=game.game,
        labels=game.labels,
        players=(forms[0], forms[1]),
        node_parent=np.where(parent >= 0, number[parent], -1).astype(np.int32),
        node_player=player,
        node_infoset=node_infoset,
        node_action=game.node_action[nodes],
        node_label=game.node_label[nodes],
        outcomes=game.outcomes[keep[game.node_player == CHANCE]],
        leaf_node=number[game.leaf_node[leaves]].astype(np.int32),
        leaf_sequence=np.stack(leaf_sequence),
        leaf_chance=game.leaf_chance[leaves],
        leaf_utility=np.ascontiguousarray(game.leaf_utility[:, leaves]),
    ), (old_sequences[0], old_sequences[1])


def same_game(one: SequenceGame, two: SequenceGame) -> bool:
    """Return whether two games have equal information sets, leaves and utilities, equally numbered."""
    return one is two or (
        all(
            a.keys == b.keys and np.array_equal(a.action, b.action) and np.array_equal(a.parent, b.parent)
            for a, b in zip(one.players, two.players, strict=True)
        )
        and np.array_equal(one.leaf_sequence, two.leaf_sequence)
        and np.array_equal(one.leaf_chance, two.leaf_chance)
        and np.array_equal(one.leaf_utility, two.leaf_utility)
    )


def spread(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spread counts: (2, 0, 3) gives the owners (0, 0, 2, 2, 2) and the places (0, 1, 0, 1, 2); int64."""
    counts = np.asarray(counts, np.int64)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


def find(codes: np.ndarray, wanted: np.ndarray) -> npt.NDArray[np.int64]:
    """Return each wanted number's index among distinct ascending ones, -1 where it is missing; int64."""
    if not len(codes):
        return np.full(np.shape(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[place] == wanted, place, -1)


def check_name(name: Hashable | None) -> Hashable | None:
    """Return the value if it can name a subgame, or is None.

    Raises:
      ValueError: it cannot be hashed (a list, say).
    """
    try:
        hash(name)
    except TypeError:
        raise ArgumentError(
            f"expected subgames' names to be hashable, such as tuples, got {shown(name)}"
        ) from None
    return name
