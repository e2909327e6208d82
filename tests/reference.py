"""The oracle: memorization sets enumerated, and each played out on OpenSpiel's own states.

Nothing here uses the library's tree: it walks base-game states by recursion, and is slow and plain.
"""

from __future__ import annotations

import itertools
import math
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


# -- menus: which entry is memorized is a choice ------------------------------------------------------


Choices = dict[str, dict[int, float]]
"""What is memorized, {action: probability} by information state."""


def all_choices(game: pyspiel.Game, player: int, menu: Any, most: int) -> list[Choices]:
    """All memorization sets with all choices of entries; none at all where there are more than `most`."""
    entries: dict[str, list[dict[int, float]]] = {}
    after: dict[tuple[str, int] | None, list[str]] = {}

    def walk(state: Any, last: tuple[str, int] | None) -> None:
        if state.is_terminal():
            return
        own = state.current_player() == player
        name = information_state(game, state, player) if own else ""
        if own and name not in entries:
            found = menu.entries(state)
            entries[name] = [{entry: 1.0} if isinstance(entry, int) else entry for entry in found]
            after.setdefault(last, []).append(name)
        for action in state.legal_actions():
            walk(state.child(action), (name, action) if own else last)

    walk(game.new_initial_state(), None)

    def count(name: str) -> int:
        following = [
            [n for action in entry for n in after.get((name, action), [])] for entry in entries[name]
        ]
        return 1 + sum(math.prod(map(count, names)) for names in following)

    if math.prod(map(count, after.get(None, []))) > most:
        return []

    def below(name: str) -> list[Choices]:
        options: list[Choices] = [{}]
        for entry in entries[name]:
            following = [below(n) for action in entry for n in after.get((name, action), [])]
            for mix in itertools.product(*following):
                options.append({name: entry} | {k: v for part in mix for k, v in part.items()})
        return options

    roots = [below(name) for name in after.get(None, [])]
    return [{k: v for part in mix for k, v in part.items()} for mix in itertools.product(*roots)]


def utilities_of_choices(game: pyspiel.Game, sigma: Any) -> Callable[[tuple[Choices, Choices]], float]:
    """The function (choices of 0, choices of 1) -> u for player 0; it walks through the game once."""

    def node(state: Any) -> tuple[int, Any, Any, dict[int, Any]]:
        """(player, information state, what is played there without a memory or the utility, children)."""
        if state.is_terminal():
            return (-4, "", float(state.returns()[0]), {})
        children = {action: node(state.child(action)) for action in state.legal_actions()}
        if state.is_chance_node():
            return (-1, "", dict(state.chance_outcomes()), children)
        i = state.current_player()
        return (i, information_state(game, state, i), sigma[i](state), children)

    def value(at: Any, chosen: tuple[Choices, Choices]) -> float:
        player, name, row, children = at
        if not children:
            return row
        if player >= 0:
            row = chosen[player].get(name, row)
        return sum(p * value(children[action], chosen) for action, p in row.items() if p > 0.0)

    root = node(game.new_initial_state())
    return lambda chosen: value(root, chosen)
