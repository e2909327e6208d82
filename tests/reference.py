"""The oracle: memorization sets enumerated, and each played out on OpenSpiel's own states.

Nothing here uses the library's tree: it walks base-game states by recursion, and is slow and plain.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyspiel

Policy = Callable[[Any], dict[int, float]]


def information_state(game: pyspiel.Game, state: Any, player: int) -> str:
    """What a memorized state is: a history, or an information state where information is imperfect."""
    if game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION:
        return str(state.history())
    return str(state.information_state_string(player))


def predecessors(game: pyspiel.Game, player: int) -> dict[str, str | None]:
    """Every information state of a player, with its own previous one."""
    found: dict[str, str | None] = {}

    def walk(state: Any, last: str | None) -> None:
        if state.is_terminal():
            return
        if state.current_player() == player:
            name = information_state(game, state, player)
            assert found.setdefault(name, last) == last
            last = name
        for action in state.legal_actions():
            walk(state.child(action), last)

    walk(game.new_initial_state(), None)
    return found


def prefix_closed_sets(parents: dict[str, str | None]) -> Iterator[frozenset[str]]:
    """All sets that hold, with an information state, its player's previous one."""
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)

    def below(name: str) -> list[frozenset[str]]:
        """Sets within the subtree of `name`: the empty one, or `name` and any mix further down."""
        options = [below(child) for child in children.get(name, [])]
        mixes = [frozenset([name]).union(*mix) for mix in itertools.product(*options)]
        return [frozenset(), *mixes]

    roots = [below(name) for name in children.get(None, [])]
    for mix in itertools.product(*roots):
        yield frozenset().union(*mix)


def count_prefix_closed_sets(parents: dict[str, str | None]) -> int:
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)

    def count(name: str) -> int:
        product = 1
        for child in children.get(name, []):
            product *= count(child)
        return 1 + product

    total = 1
    for root in children.get(None, []):
        total *= count(root)
    return total


class _Node:
    """A state as brute force comes by it thousands of times: asked once for each thing, when first needed."""

    def __init__(self, game: pyspiel.Game, state: Any, pre: Any, sigma: Any) -> None:
        self.game, self.state, self.pre, self.sigma = game, state, pre, sigma
        self.player = state.current_player()
        self.utility = float(state.returns()[0]) if state.is_terminal() else None
        self.name = information_state(game, state, self.player) if self.player >= 0 else ""
        self._children: dict[int, _Node] = {}
        self._played: dict[bool, list[tuple[float, _Node]]] = {}

    def child(self, action: int) -> _Node:
        if action not in self._children:
            self._children[action] = _Node(self.game, self.state.child(action), self.pre, self.sigma)
        return self._children[action]

    def played(self, memorized: bool) -> list[tuple[float, _Node]]:
        """[(probability, node)] of what follows."""
        if memorized not in self._played:
            if self.state.is_chance_node():
                outcomes = self.state.chance_outcomes()
            else:
                outcomes = (self.pre if memorized else self.sigma)[self.player](self.state).items()
            self._played[memorized] = [(p, self.child(a)) for a, p in outcomes if p > 0.0]
        return self._played[memorized]


def _value(node: _Node, sets: tuple[frozenset[str], frozenset[str]]) -> float:
    if node.utility is not None:
        return node.utility
    memorized = node.player >= 0 and node.name in sets[node.player]
    return sum(p * _value(child, sets) for p, child in node.played(memorized))


def utilities(
    game: pyspiel.Game, pre: Any, sigma: Any
) -> Callable[[tuple[frozenset[str], frozenset[str]]], float]:
    """The function (S_0, S_1) -> u(S_0, S_1) for player 0, for many pairs of sets."""
    root = _Node(game, game.new_initial_state(), pre, sigma)
    return lambda sets: _value(root, sets)


def expected_utility(
    game: pyspiel.Game, sets: tuple[frozenset[str], frozenset[str]], pre: Any, sigma: Any
) -> float:
    """u(S_0, S_1) for player 0."""
    return utilities(game, pre, sigma)(sets)


def best_set(
    game: pyspiel.Game, player: int, penalty: float, pre: Any, sigma: Any
) -> tuple[float, float, frozenset[str]]:
    """(value, utility, set) that is best for `player`, over all prefix-closed sets."""
    total = game.utility_sum() or 0.0
    played_out = utilities(game, pre, sigma)
    best: tuple[float, float, frozenset[str]] | None = None
    for chosen in prefix_closed_sets(predecessors(game, player)):
        sets = (chosen, frozenset()) if player == 0 else (frozenset(), chosen)
        utility = played_out(sets)
        utility = utility if player == 0 else total - utility
        value = utility - penalty * len(chosen)
        if best is None or value > best[0]:
            best = (value, utility, chosen)
    assert best is not None
    return best
