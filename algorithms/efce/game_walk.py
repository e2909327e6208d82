"""A walk through OpenSpiel's states, which lists the nodes and information sets of a game or of a part of it.

Cost: one visit of OpenSpiel's state for each node walked, some 4 microseconds for a C++ game.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Any

import pyspiel

from ..sequence_form import FoundSequences
from .public_information import PublicInformation, subgame_name

__all__ = ["GameWalk"]


class GameWalk:
    """A walk in depth-first order, and what it found.

    Attributes:
      labels: The subgames' numbers by name, in order of appearance.
      own: Both players' information sets and sequences, in order of discovery.
      label: For both players, the subgame of each information set.
      nodes: The parent, player, information set, action and label of each node.
      leaf_node, leaf_sequence, leaf_utility: By leaf, the last two for both players.
    """

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
        self.own = tuple(FoundSequences(game, player, "SequenceGame.of()") for player in (0, 1))
        self.label = (array("i", [-1]), array("i", [-1]))
        self.nodes = tuple(array(code) for code in "ibiii")
        node_parent, node_player, node_infoset, node_action, node_label = self.nodes
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
            before = mine if player == 0 else other
            actions, key = state.legal_actions(), state.information_state_string()
            infoset = self.own[player].visit(key, actions, before)
            labels = self.label[player]
            if infoset == len(labels):
                labels.append(label)
            elif labels[infoset] != label:
                raise ValueError(
                    f"SequenceGame.of(): expected subgames that share no information set, but player "
                    f"{player}'s {key!r} lies in several, or both in one and before it"
                )
            node_player.append(player)
            node_infoset.append(infoset)
            first = self.own[player].first[infoset]
            # Pushed in reverse, so that they are met in order.
            for j in range(len(actions) - 1, -1, -1):
                child = state.child(actions[j])
                if player == 0:
                    stack.append((child, node, j, first + j, other, label))
                else:
                    stack.append((child, node, j, mine, first + j, label))
