"""Two-player games of perfect recall as flat arrays: histories, information sets and sequences.

Histories are numbered breadth first, so that a history comes after its predecessor. A player's sequences are
0, the empty one, and then one for each action of each of its information sets, an information set after those
that the player passes before it. A realization plan x has x[0] = 1 and, at each information set, the entries
of its actions add up to that of the sequence before it.

Source: von Stengel 1996, as in `limited_lookahead`, section 5.1.

Cost: every history of the game is visited once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from precomp_games.checks import check_game, check_integer, check_player, check_state

from .settings import Recent

__all__ = ["CHANCE", "TERMINAL", "Player", "SequenceForm", "find", "flattened"]

CHANCE = int(pyspiel.PlayerId.CHANCE)
"""Who moves at a chance node."""
TERMINAL = int(pyspiel.PlayerId.TERMINAL)
"""Who moves at a leaf: nobody."""


@dataclasses.dataclass(frozen=True)
class Player:
    """One player's information sets and sequences.

    Attributes:
      keys: Information state strings (histories where the game has none).
      index: Their inverse.
      actions: Each information set's legal actions.
      first: int[m], the sequence of an information set's first action; the others follow.
      parent: int[m], the sequence before an information set.
      infoset: int[n], a sequence's information set, -1 for the empty one.
    """

    keys: tuple[str, ...]
    index: Mapping[str, int] = dataclasses.field(repr=False)
    actions: tuple[tuple[int, ...], ...]
    first: np.ndarray
    parent: np.ndarray
    infoset: np.ndarray

    @property
    def num_infosets(self) -> int:
        """How many information sets the player has."""
        return len(self.keys)

    @property
    def num_sequences(self) -> int:
        """How many sequences the player has, the empty one included."""
        return len(self.infoset)

    def sequences(self, infoset: int) -> range:
        """The sequences of an information set's actions."""
        start = int(self.first[infoset])
        return range(start, start + len(self.actions[infoset]))

    def extremes(self, weights: np.ndarray) -> np.ndarray:
        """The greatest of `weights @ x` over realization plans x, for each column of weights[sequence, :]."""
        total = np.array(weights, np.float64)
        for infoset in range(self.num_infosets - 1, -1, -1):
            start = int(self.first[infoset])
            total[self.parent[infoset]] += total[start : start + len(self.actions[infoset])].max(axis=0)
        return total[0]

    def best_reply(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The same for one vector, with a pure realization plan that attains it."""
        total = np.array(weights, np.float64)
        choice = np.zeros(self.num_infosets, np.int64)
        for infoset in range(self.num_infosets - 1, -1, -1):
            start = int(self.first[infoset])
            choice[infoset] = start + int(np.argmax(total[start : start + len(self.actions[infoset])]))
            total[self.parent[infoset]] += total[choice[infoset]]
        plan = np.zeros(self.num_sequences)
        plan[0] = 1.0
        for infoset in range(self.num_infosets):
            plan[choice[infoset]] = plan[self.parent[infoset]]
        return float(total[0]), plan

    def behavior(self, plan: np.ndarray) -> dict[str, dict[int, float]]:
        """Action probabilities of a realization plan; uniform where it does not come."""
        rows = {}
        for infoset, key in enumerate(self.keys):
            weights = np.maximum(plan[list(self.sequences(infoset))], 0.0)
            total = weights.sum()
            row = weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))
            rows[key] = dict(zip(self.actions[infoset], row.tolist(), strict=True))
        return rows

    def plan(self, rows: Mapping[str, Mapping[int, float]]) -> np.ndarray:
        """The realization plan of action probabilities."""
        plan = np.zeros(self.num_sequences)
        plan[0] = 1.0
        for infoset, key in enumerate(self.keys):
            for sequence, action in zip(self.sequences(infoset), self.actions[infoset], strict=True):
                plan[sequence] = plan[self.parent[infoset]] * rows[key].get(action, 0.0)
        return plan


@dataclasses.dataclass(frozen=True, eq=False)
class SequenceForm:
    """A game, flattened. Arrays have one entry a history.

    Attributes:
      parent: The history before, -1 at the start.
      children: Lists of histories.
      player: 0, 1, CHANCE or TERMINAL.
      depth: Moves from the start, Nature's included.
      infoset: The mover's information set, -1 where Nature moves or play is over.
      action: The game's action that leads there.
      chance: The probability of Nature's moves on the way.
      sequence: int[n, 2], each player's sequence on the way.
      utility: float[n, 2], returns at leaves, zeros elsewhere.
    """

    game: pyspiel.Game
    states: tuple[Any, ...] = dataclasses.field(repr=False)
    parent: np.ndarray = dataclasses.field(repr=False)
    children: tuple[tuple[int, ...], ...] = dataclasses.field(repr=False)
    player: np.ndarray = dataclasses.field(repr=False)
    depth: np.ndarray = dataclasses.field(repr=False)
    infoset: np.ndarray = dataclasses.field(repr=False)
    action: np.ndarray = dataclasses.field(repr=False)
    chance: np.ndarray = dataclasses.field(repr=False)
    sequence: np.ndarray = dataclasses.field(repr=False)
    utility: np.ndarray = dataclasses.field(repr=False)
    players: tuple[Player, Player] = dataclasses.field(repr=False)

    @classmethod
    def of(cls, game: pyspiel.Game) -> SequenceForm:
        """Flattens a game; asked again for the same game object, it gives the same form.

        Raises:
          ValueError: no sequential game of two players with explicit chance; a player forgets what it knew or
            did (no perfect recall); histories of one information set differ in legal actions.
        """
        return flattened(game, "SequenceForm.of()")

    @property
    def num_histories(self) -> int:
        """How many histories the game has."""
        return len(self.parent)

    @property
    def leaves(self) -> np.ndarray:
        """The terminal histories."""
        return np.flatnonzero(self.player == TERMINAL)

    def child(self, history: int, action: int) -> int:
        """The history that an action leads to, -1 where there is none.

        Raises:
          ValueError: there is no such history, or the action is no integer.
        """
        check_integer(history, "history", "SequenceForm.child()", least=0, most=self.num_histories - 1)
        return self._after(history, check_integer(action, "action", "SequenceForm.child()"))

    def _after(self, history: int, action: int) -> int:
        for child in self.children[history]:
            if self.action[child] == action:
                return child
        return -1

    def members(self, player: int) -> list[list[int]]:
        """The histories of each of a player's information sets.

        Raises:
          ValueError: the player is not 0 or 1.
        """
        player = check_player(player, "SequenceForm.members()")
        sets: list[list[int]] = [[] for _ in range(self.players[player].num_infosets)]
        for history in np.flatnonzero(self.player == player).tolist():
            sets[int(self.infoset[history])].append(history)
        return sets


def flattened(game: pyspiel.Game, caller: str) -> SequenceForm:
    """`SequenceForm.of` for a function of another name."""
    check_game(game, caller, constant_sum=False)
    return _FORMS.of(game, lambda: _flatten(game, caller))


def find(form: SequenceForm, state: Any, caller: str) -> int:
    """Which history of a game a state is.

    Raises:
      ValueError: it is none.
    """
    history = 0
    for action in check_state(state, caller, form.game).history():
        history = form._after(history, action)
        if history < 0:
            raise ValueError(f"{caller}: expected a history of {form.game}, got {state.history_str()!r}")
    return history


def _flatten(game: pyspiel.Game, caller: str) -> SequenceForm:
    named = game.get_type().provides_information_state_string
    states: list[Any] = [game.new_initial_state()]
    parent, depth, action, chance, sequence = [-1], [0], [-1], [1.0], [(0, 0)]
    player: list[int] = []
    infoset: list[int] = []
    children: list[tuple[int, ...]] = []
    utility: list[tuple[float, float]] = []
    keys: tuple[dict[str, int], dict[str, int]] = ({}, {})
    actions: tuple[list[tuple[int, ...]], ...] = ([], [])
    first: tuple[list[int], ...] = ([], [])
    before: tuple[list[int], ...] = ([], [])
    count = [1, 1]
    at = 0
    while at < len(states):
        state = states[at]
        mover = int(state.current_player())
        player.append(mover)
        utility.append(tuple(state.returns()) if mover == TERMINAL else (0.0, 0.0))
        here = -1
        if mover == TERMINAL:
            moves: list[tuple[int, float, tuple[int, int]]] = []
        elif mover == CHANCE:
            moves = [(a, p, sequence[at]) for a, p in state.chance_outcomes() if p > 0.0]
        else:
            legal = tuple(state.legal_actions())
            key = state.information_state_string() if named else state.history_str()
            here = keys[mover].setdefault(key, len(actions[mover]))
            if here == len(actions[mover]):
                actions[mover].append(legal)
                first[mover].append(count[mover])
                before[mover].append(sequence[at][mover])
                count[mover] += len(legal)
            elif before[mover][here] != sequence[at][mover]:
                raise ValueError(
                    f"{caller}: expected a game of perfect recall, got {game}, in which player {mover} "
                    f"comes to {key!r} with different pasts of its own"
                )
            elif actions[mover][here] != legal:
                raise ValueError(
                    f"{caller}: expected one set of legal actions at {key!r}, got {actions[mover][here]} "
                    f"and {legal}"
                )
            start = first[mover][here]
            moves = [
                (a, 1.0, (start + j, sequence[at][1]) if mover == 0 else (sequence[at][0], start + j))
                for j, a in enumerate(legal)
            ]
        infoset.append(here)
        children.append(tuple(range(len(states), len(states) + len(moves))))
        for a, p, pair in moves:
            states.append(state.child(a))
            parent.append(at)
            depth.append(depth[at] + 1)
            action.append(a)
            chance.append(chance[at] * p)
            sequence.append(pair)
        at += 1
    players = []
    for i in (0, 1):
        owner = np.full(count[i], -1)
        for k, legal in enumerate(actions[i]):
            owner[first[i][k] : first[i][k] + len(legal)] = k
        players.append(
            Player(
                keys=tuple(keys[i]),
                index=keys[i],
                actions=tuple(actions[i]),
                first=np.array(first[i], np.int64),
                parent=np.array(before[i], np.int64),
                infoset=owner,
            )
        )
    return SequenceForm(
        game=game,
        states=tuple(states),
        parent=np.array(parent),
        children=tuple(children),
        player=np.array(player),
        depth=np.array(depth),
        infoset=np.array(infoset),
        action=np.array(action),
        chance=np.array(chance),
        sequence=np.array(sequence).reshape(-1, 2),
        utility=np.array(utility).reshape(-1, 2),
        players=(players[0], players[1]),
    )


_FORMS: Recent[SequenceForm] = Recent()
