"""What a player of the meta-game sees, as a string and as a tensor, for what learns through tensors.

    environment = rl_environment.Environment(MetaPrecomputationGame(tree))

A tensor is made of parts, which are 1 where something holds and 0 elsewhere. With m the larger number of
information states that a player has in the tree:

    player    2                  who looks
    infoset   m                  the last of its information states that the player came to
    choices   m x num_actions    what it has done at each of its information states: 0 is to stop, 1 + k to
                                 memorize entry k of the menu
    moves     depth x width      where information is perfect: which of its siblings each history on the way
                                 is

Two tensors are equal where, and only where, the strings are: they tell what the player knows and has done,
and nothing of what its opponent chose. As the strings do, observations tell all that information states do.

Deviation: OpenSpiel's observations may forget; these do not, since a choice that was made cannot be seen
anywhere later.

Cost: a few numbers are set for each own decision and each history on the way. A tensor has at least
m (1 + num_actions) numbers, so for trees of many thousand information states a table serves better.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from precomp_games.games.openspiel_game import tensor_parts
from precomp_games.meta_game.rules import MetaRules

__all__ = ["MetaObserver"]


class MetaObserver:
    """An observer of meta-game states, as OpenSpiel expects it.

    Attributes:
      tensor: float32[size], what `set_from` saw last.
      dict: the parts by name, views of the same memory in the shapes above.
    """

    def __init__(self, rules: MetaRules) -> None:
        """Lays out the parts for a game's tree."""
        tree = rules.tree
        self._rules = rules
        self._place = np.zeros(tree.num_infosets, np.int64)  # among the owner's
        for player in (0, 1):
            own = np.flatnonzero(tree.infoset_player == player)
            self._place[own] = np.arange(len(own))
        most = 1 + int(self._place.max(initial=0))
        shapes: dict[str, tuple[int, ...]] = {
            "player": (2,),
            "infoset": (most,),
            "choices": (most, rules.num_actions),
        }
        if tree.infoset_keys is None:
            width = int(tree.num_children.max())
            shapes["moves"] = (max(len(tree.levels) - 1, 1), max(width, 1))
        self.tensor, self.dict = tensor_parts(shapes)

    def set_from(self, state: Any, player: int) -> None:
        """Writes what a player sees of a state into `tensor` and `dict`."""
        tree, at = self._rules.tree, state.position
        last, made = self._rules.known(at, player)
        self.tensor.fill(0.0)
        self.dict["player"][player] = 1.0
        if last >= 0:
            self.dict["infoset"][self._place[tree.infoset[last]]] = 1.0
        for infoset, action in made:
            self.dict["choices"][self._place[infoset], action] = 1.0
        if "moves" in self.dict:
            history, ranks = at.history, []
            while history > 0:
                parent = int(tree.parent[history])
                ranks.append(history - int(tree.first_child[parent]))
                history = parent
            self.dict["moves"][np.arange(len(ranks)), ranks[::-1]] = 1.0

    def string_from(self, state: Any, player: int) -> str:
        """The same in words: the information state string."""
        return self._rules.view(state.position, player)
