"""The oracle: memorization sets enumerated, and each played out on OpenSpiel's own states.

A *choice* is a memorization set with the entry of the menu that is memorized at each information state; a
policy is a menu of one entry. Nothing here uses the library's tree: it walks base-game states by recursion,
and is slow and plain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

Policy = Callable[[Any], dict[int, float]]


def information_state(game: pyspiel.Game, state: Any, player: int) -> str:
    """Return a memorized state's name: a history, or an information state if information is imperfect."""
    if game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION:
        return str(state.history())
    return str(state.information_state_string(player))


class AsPolicy(openspiel_policy.Policy):
    """A function of the state as OpenSpiel's algorithms take it."""

    def __init__(self, game: pyspiel.Game, function: Policy) -> None:
        super().__init__(game, [0, 1])
        self.function = function

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        return self.function(state)


class _Node:
    """A state as brute force comes by it thousands of times: asked once for each thing, when first needed."""

    def __init__(self, game: pyspiel.Game, state: Any) -> None:
        self.game, self.state = game, state
        self.player = state.current_player()
        self.utilities = state.returns() if state.is_terminal() else None
        self.name = information_state(game, state, self.player) if self.player >= 0 else ""
        self._children: dict[int, _Node] = {}

    def child(self, action: int) -> _Node:
        if action not in self._children:
            self._children[action] = _Node(self.game, self.state.child(action))
        return self._children[action]

    def children(self) -> Iterator[tuple[int, _Node]]:
        for action in [] if self.utilities is not None else self.state.legal_actions():
            yield action, self.child(action)


_last: list[tuple[pyspiel.Game, _Node]] = []


def _root(game: pyspiel.Game) -> _Node:
    """The root of a game; the last game's tree is kept, since the functions below all walk through it."""
    if not _last or _last[0][0] is not game:
        _last[:] = [(game, _Node(game, game.new_initial_state()))]
    return _last[0][1]


def _turns(game: pyspiel.Game, player: int) -> dict[str, tuple[_Node, tuple[str, int] | None]]:
    """Every information state of a player, with a history and what the player did last: where, and which."""
    found: dict[str, tuple[_Node, tuple[str, int] | None]] = {}

    def walk(node: _Node, last: tuple[str, int] | None) -> None:
        own = node.player == player
        if own:
            assert found.setdefault(node.name, (node, last))[1] == last
        for action, child in node.children():
            walk(child, (node.name, action) if own else last)

    walk(_root(game), None)
    return found


def last_steps(game: pyspiel.Game, player: int) -> dict[str, tuple[str, int] | None]:
    """Return a player's last step before each of its information states: where, and which action."""
    return {name: last for name, (_, last) in _turns(game, player).items()}


def positions(game: pyspiel.Game, player: int) -> dict[str, str]:
    """Return the text of the states of each information state of a player, str(state)."""
    return {name: str(node.state) for name, (node, _) in _turns(game, player).items()}


def states(game: pyspiel.Game) -> Iterator[Any]:
    """Yield all states of a game, parents first."""
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        yield state
        if not state.is_terminal():
            stack += [state.child(action) for action in state.legal_actions()]


def play_value(state: Any, policies: Sequence[Policy], player: int = 0, power: int = 1) -> float:
    """Return a player's mean utility, or the mean of a power of it, if both play these from a state on."""
    if state.is_terminal():
        return float(state.returns()[player]) ** power
    mover = state.current_player()
    row = dict(state.chance_outcomes()) if mover < 0 else policies[mover](state)
    below = ((p, state.child(action)) for action, p in row.items() if p > 0.0)
    return sum(p * play_value(child, policies, player, power) for p, child in below)


Row = dict[int, float]
"""{action: probability}"""
Choices = dict[str, Row]
"""Memorized rows, by information state."""


def key_of(choice: Choices) -> frozenset[tuple[str, frozenset[int]]]:
    """Return a choice without its probabilities: entries of a menu share no actions."""
    return frozenset((name, frozenset(a for a, p in row.items() if p > 0.0)) for name, row in choice.items())


def entries(given: Any, state: Any) -> list[Row]:
    """Return the entries of a menu at a state, or of a policy as a menu of one."""
    if not hasattr(given, "entries_batch"):
        return [given(state)]
    return [{e: 1.0} if isinstance(e, int) else dict(e) for e in given.entries_batch([state])[0]]


def all_choices(game: pyspiel.Game, player: int, given: Any, most: float = math.inf) -> list[Choices]:
    """Return a player's choices from a menu or a policy; none at all where there are more than `most`."""
    turns = _turns(game, player)
    after: dict[tuple[str, int] | None, list[str]] = {}
    for name, (_, last) in turns.items():
        after.setdefault(last, []).append(name)
    # Of each information state: each entry, with the next information states after it.
    options: dict[str, list[tuple[Row, list[str]]]] = {}
    for name, (node, _) in turns.items():
        options[name] = []
        for row in entries(given, node.state):
            played = [a for a, p in row.items() if p > 0.0]
            options[name].append((row, [n for a in played for n in after.get((name, a), [])]))

    def count(names: Sequence[str]) -> int:
        return math.prod(1 + sum(count(below) for _, below in options[name]) for name in names)

    def chosen(names: Sequence[str]) -> Iterator[Choices]:
        """Yield all ways: at each of these nothing, or an entry with what is chosen after it."""
        each = [
            [{}, *({name: row} | rest for row, below in options[name] for rest in chosen(below))]
            for name in names
        ]
        for mix in itertools.product(*each):
            yield {name: row for part in mix for name, row in part.items()}

    first = after.get(None, [])
    return list(chosen(first)) if count(first) <= most else []


def utilities_of_choices(
    game: pyspiel.Game, choices: tuple[Sequence[Choices], Sequence[Choices]], sigma: Any, player: int = 0
) -> np.ndarray:
    """u for a player of all pairs of choices, shape (choices of 0, choices of 1); one walk plays all out."""
    # Of each information state: which row each choice memorizes there, 0 for none, and these rows.
    memorized: tuple[dict[str, tuple[np.ndarray, list[Row]]], ...] = ({}, {})
    for i in (0, 1):
        for k, chosen in enumerate(choices[i]):
            for name, row in chosen.items():
                which, found = memorized[i].setdefault(name, (np.zeros(len(choices[i]), dtype=int), []))
                if row not in found:
                    found.append(row)
                which[k] = 1 + found.index(row)

    def value(node: _Node) -> Any:  # a number, or an array that broadcasts to the shape
        if node.utilities is not None:
            return node.utilities[player]
        if node.player < 0:
            alike, rows = True, [dict(node.state.chance_outcomes())]
        else:
            which, found = memorized[node.player].get(node.name, (np.zeros(1, int), []))
            alike, rows = bool((which == which[0]).all()), [sigma[node.player](node.state), *found]
            rows = rows[which[0] : which[0] + 1] if alike else rows
        below: dict[int, Any] = {}
        for row in rows:
            for action, p in row.items():
                if p > 0.0 and action not in below:
                    below[action] = value(node.child(action))
        mixed = [sum(p * below[action] for action, p in row.items() if p > 0.0) for row in rows]
        if alike:  # at all choices
            return mixed[0]
        return np.choose(which.reshape((-1, 1) if node.player == 0 else (1, -1)), mixed)

    return np.broadcast_to(value(_root(game)), (len(choices[0]), len(choices[1])))


def own_utilities_of_choices(
    game: pyspiel.Game, player: int, choices: Sequence[Choices], sigma: Any
) -> np.ndarray:
    """Return a player's utility of each of its choices, if the opponent memorizes nothing."""
    nothing: list[Choices] = [{}]
    pair = (choices, nothing) if player == 0 else (nothing, choices)
    return utilities_of_choices(game, pair, sigma, player).ravel()


def best_choice(
    game: pyspiel.Game, player: int, penalty: float, given: Any, sigma: Any
) -> tuple[float, float, Choices]:
    """Return (value, utility, choice) that is best for `player`."""
    choices = all_choices(game, player, given)
    found = own_utilities_of_choices(game, player, choices, sigma)
    values = found - penalty * np.array(list(map(len, choices)))
    best = int(values.argmax())
    return float(values[best]), float(found[best]), choices[best]
