"""Subgame decompositions by public information, and whether they are valid.

A *subgame* is a set of nodes that holds with each node all below it, and with each node of an information set
all of it; a *decomposition* is a set of disjoint subgames; what is left over, with the leaves right after it,
is the *trunk*. So nothing that is played in one subgame can be seen from another (`efce_resolving`,
Definitions 5 and 6).

- `decompose(game, public)`: by public information (`public_information`).
- `finest_subgames(game, depth)`: the finest decomposition whose subgames start at a depth, for any game: two
  nodes are in one subgame if a chain of information sets below joins them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse.csgraph

from precomp_games._support.arguments import ArgumentError, PositiveInt, public
from precomp_games._support.checks import shown

from .public_information import PublicInformation, check_name
from .sequence_game import SequenceGame, infoset_labels

__all__ = [
    "check_apart",
    "check_decomposition",
    "decompose",
    "finest_subgames",
    "infoset_marks",
    "one_subgame",
]


@public
def decompose(game: SequenceGame, public: PublicInformation) -> SequenceGame:
    """The same game with the subgames that `public` names; OpenSpiel is asked about the trunk's states only.

    Raises:
      ValueError: they are no valid decomposition.
    """
    labels: dict[Hashable, int] = {}
    node_label = np.full(game.num_nodes, -1, np.int32)
    states: dict[int, Any] = {}
    for h in range(game.num_nodes):
        above = int(game.node_parent[h])
        if above < 0:
            state = game.game.new_initial_state()
        elif node_label[above] >= 0:
            node_label[h] = node_label[above]
            continue
        else:
            parent = states[above]
            form = game.players[int(game.node_player[above])]
            sequence = form.first[game.node_infoset[above]] + game.node_action[h]
            state = parent.child(int(form.action[sequence]))
        name = None if state.is_terminal() else check_name(public(state))
        if name is None:
            states[h] = state
        else:
            node_label[h] = labels.setdefault(name, len(labels))
    if not labels:
        raise ArgumentError("expected subgames, but `public` names none")
    return check_decomposition(game, node_label, tuple(labels))


@public
def finest_subgames(game: SequenceGame, depth: PositiveInt) -> SequenceGame:
    """The same game with the finest decomposition into subgames that start after `depth` moves.

    Raises:
      ValueError: the depth is not positive, or nobody moves that deep; or an information set has nodes above
        and below it.
    """
    level, root = game.node_depth, np.arange(game.num_nodes)
    while (deeper := level[root] > depth).any():
        root[deeper] = game.node_parent[root[deeper]]
    # Where the game ends at the depth, there is no subgame.
    inside = (level > depth) | ((level == depth) & (game.node_player >= 0))
    if not inside.any():
        raise ArgumentError(f"expected nodes at depth {depth} with moves below, got none")
    # A graph of nodes and, after them, both players' information sets.
    nodes = np.flatnonzero(inside & (game.node_player >= 0))
    before = game.num_nodes + np.array([0, game.players[0].num_infosets])
    infoset = before[game.node_player[nodes]] + game.node_infoset[nodes]
    size = before[1] + game.players[1].num_infosets
    graph = scipy.sparse.coo_array((np.ones(len(nodes)), (root[nodes], infoset)), shape=(size, size))
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=False)
    names, label = np.unique(component[root[inside]], return_inverse=True)
    node_label = np.full(game.num_nodes, -1, np.int32)
    node_label[inside] = label
    return check_decomposition(game, node_label, tuple(range(len(names))))


@public
def one_subgame(game: SequenceGame) -> SequenceGame:
    """The same game as one subgame that starts at the root.

    Raises:
      ValueError: it is no game that is held as arrays, or ends at once.
    """
    return check_decomposition(game, np.zeros(game.num_nodes, np.int32), ("game",))


@public
def check_decomposition(
    game: SequenceGame, node_label: np.ndarray, labels: tuple[Hashable, ...]
) -> SequenceGame:
    """The game with these subgames, if they are valid.

    Args:
      game: the game.
      node_label: int[N], the subgame of each node, -1 for none.
      labels: the subgames' names.

    Raises:
      ValueError: a node's child is not in its subgame, or an information set is in several, or partly in one;
        a name is given twice, or to no decision.
    """
    names = [check_name(label) for label in labels] if isinstance(labels, list | tuple) else []
    if not names or len(set(names)) < len(names):
        raise ArgumentError(f"expected labels to be a tuple of different names, got {shown(labels)}")
    if np.ma.is_masked(node_label):
        raise ArgumentError(f"expected {game.num_nodes} integers, got masked ones")
    try:
        node_label = np.asarray(node_label)
    except ValueError:  # lists of unequal lengths
        node_label = np.zeros(())
    if node_label.shape != (game.num_nodes,) or not np.issubdtype(node_label.dtype, np.integer):
        raise ArgumentError(
            f"expected {game.num_nodes} integers, got shape {node_label.shape} of {node_label.dtype}"
        )
    if node_label.min() < -1 or node_label.max() >= len(labels):
        raise ArgumentError(f"expected labels from -1 to {len(labels) - 1}")
    above = node_label[game.node_parent[1:]]
    alone = (game.node_player[1:] < 0) & (above < 0)
    node_label = np.append(node_label[:1], np.where(alone, -1, node_label[1:]))
    bad = np.flatnonzero((above >= 0) & (node_label[1:] != above))
    if len(bad):
        raise ArgumentError(
            f"expected a valid decomposition, but node {bad[0] + 1} is not in the "
            f"subgame {labels[above[bad[0]]]!r} of its parent"
        )
    found = infoset_labels(game.players, game.node_player, game.node_infoset, node_label)
    one, two = (
        dataclasses.replace(form, label=label) for form, label in zip(game.players, found, strict=True)
    )
    decisions = node_label[game.node_player >= 0]
    unused = set(range(len(labels))).difference(decisions.tolist())
    if unused:
        raise ArgumentError(f"expected each subgame to have a decision, but {labels[min(unused)]!r} has none")
    return dataclasses.replace(
        game, players=(one, two), node_label=node_label.astype(np.int32), labels=tuple(labels)
    )


def infoset_marks(part: SequenceGame) -> npt.NDArray[np.uint64]:
    """uint64, a hash of each information set in the subgame that a part of a game holds."""
    return np.array(
        [
            hash((player, key)) % 2**64
            for player, form in enumerate(part.players)
            for key, label in zip(form.keys, form.label.tolist(), strict=True)
            if label >= 0
        ],
        np.uint64,
    )


def check_apart(marks: dict[Hashable, np.ndarray]) -> None:
    """Refuses subgames with an information set in common, where only one at a time was held.

    Args:
      marks: `infoset_marks` of each. Among ten million, one time in 400,000 two are the same by chance.

    Raises:
      ValueError: two have one in common.
    """
    every = np.concatenate([*marks.values(), np.zeros(0, np.uint64)])
    order = np.argsort(every, kind="stable")
    same = np.flatnonzero(every[order[1:]] == every[order[:-1]])
    if len(same):
        owner = np.repeat(np.arange(len(marks)), [len(mine) for mine in marks.values()])
        one, two = (list(marks)[owner[order[same[0] + k]]] for k in (0, 1))
        raise ArgumentError(
            f"expected a valid decomposition, but subgames {one!r} and {two!r} share an information set"
        )
