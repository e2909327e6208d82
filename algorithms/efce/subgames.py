"""Subgames: what names them, and decompositions of a game into them.

A *subgame* is a set of nodes that holds with each node all below it, and with each node of an information set
all of it; a *decomposition* is a set of disjoint subgames; what is left over, with the leaves right after it,
is the *trunk*. So nothing that is played in one subgame can be seen from another (`efce_resolving`,
Definitions 5 and 6). A subgame begins with decisions: what chance does first is in the trunk.

- `decompose(game, public)` goes by public information. `public` is a function from OpenSpiel's states to
  names. `public_moves(game, rounds)` makes one for OpenSpiel's Battleship, Sheriff and Goofspiel: it names
  subgames by what everybody sees, chance's moves included, after so many rounds (a move of each player).
- `finest_subgames(game, depth)` is the finest decomposition whose subgames start at a depth, for any game:
  two nodes are in one subgame if a chain of information sets below joins them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse.csgraph

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public

from .sequence_game import CorrelatedGame, PublicInformation, SequenceGame, check_name, labeled, moves


@public
def public_moves(game: CorrelatedGame, rounds: checks.PositiveInt) -> PublicInformation:
    """Return names of subgames by the public actions of the first `rounds` rounds: a tuple of actions.

    In Battleship the placements are secret and the shots public; in Sheriff only the cargo is secret. Where
    hits are seen by both players they are public as well, but they do not name subgames here (nor in the
    paper). In Goofspiel (`turn_based_simultaneous_game(game=goofspiel(...))`) the prizes are public, the next
    round's too, and the bids of rounds that are over, or with imp_info=True only who won them: 1 for player
    0, -1 for player 1, 0 for nobody.

    Raises:
      ValueError: another game, or a number of rounds that is not positive.
    """
    name, values = game.get_type().short_name, game.get_parameters()
    if name == "turn_based_simultaneous_game":
        name, values = values["game"]["name"], values["game"]
    if name == "battleship":
        secret = 2 * len(str(values["ship_sizes"]).strip("[]").split(";"))
    elif name == "sheriff":
        secret = 1
    elif name == "goofspiel":
        return _goofspiel_rounds(values["points_order"] == "random", bool(values["imp_info"]), rounds)
    else:
        raise ArgumentError(
            f"expected battleship, sheriff or turn-based goofspiel, got {name}; name the subgames by a "
            "function of your own, or use finest_subgames()"
        )
    end = secret + 2 * rounds

    def seen(state: Any) -> Hashable | None:
        history = state.history()
        return tuple(history[secret:end]) if len(history) >= end else None

    return seen


def _goofspiel_rounds(drawn: bool, hidden: bool, rounds: int) -> PublicInformation:
    """Return `public_moves` of Goofspiel. drawn: chance draws the prizes; hidden: bids are not shown."""
    before = int(drawn)  # each round begins with the prize
    length = before + 2
    end = length * rounds + before

    def seen(state: Any) -> Hashable | None:
        history = state.history()
        if len(history) < end:
            return None
        if not hidden:
            return tuple(history[:end])
        name = []
        for k in range(0, length * rounds, length):
            *prize, one, two = history[k : k + length]
            name += [*prize, (one > two) - (one < two)]
        return (*name, *history[length * rounds : end])

    return seen


@public
def decompose(game: SequenceGame, public: PublicInformation) -> SequenceGame:
    """Return the game with the subgames that `public` names; OpenSpiel visits only the trunk's states.

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
            state = parent.child(moves(parent)[game.node_action[h]][0])
        name = check_name(public(state)) if game.node_player[h] >= 0 else None
        if name is None:
            states[h] = state
        else:
            node_label[h] = labels.setdefault(name, len(labels))
    if not labels:
        raise ArgumentError("expected subgames, but `public` names none")
    return labeled(game, node_label, tuple(labels))


@public
def finest_subgames(game: SequenceGame, depth: checks.PositiveInt) -> SequenceGame:
    """Return the game with its finest decomposition into subgames that start after `depth` moves.

    Chance's moves count; where the next one is chance's, subgames start after it.

    Raises:
      ValueError: the depth is not positive, or nobody moves that deep; or an information set has nodes above
        and below it.
    """
    level, above = np.zeros(game.num_nodes, np.int32), game.node_parent
    while (below := above >= 0).any():
        level += below
        above = np.where(below, game.node_parent[above], -1)
    # Where the game ends at the depth, there is no subgame.
    root = np.where((level >= depth) & (game.node_player >= 0), np.arange(game.num_nodes), -1)
    for deep in range(depth + 1, int(level.max()) + 1):
        nodes = np.flatnonzero(level == deep)
        above = root[game.node_parent[nodes]]
        root[nodes] = np.where(above >= 0, above, root[nodes])
    inside = root >= 0
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
    return labeled(game, node_label, tuple(range(len(names))))


def one_subgame(game: SequenceGame) -> SequenceGame:
    """Return the game as one subgame that starts at the root."""
    return labeled(game, np.zeros(game.num_nodes, np.int32), ("game",))


def infoset_marks(part: SequenceGame) -> npt.NDArray[np.uint64]:
    """Return uint64, a hash of each information set in the subgame that a part of a game holds."""
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
    """Refuse subgames with an information set in common, where only one at a time was held.

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
