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
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games.checks import check_game, check_integer, check_numbers, check_player, check_state
from precomp_games.tree_facts import CHANCE, TERMINAL

from .follower import infoset_key
from .recent import Recent

__all__ = ["PlayerSequences", "SequenceForm", "find", "flattened"]


@dataclasses.dataclass(frozen=True)
class PlayerSequences:
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

    @functools.cached_property
    def below(self) -> list[list[int]]:
        """The information sets that come right after each sequence."""
        below: list[list[int]] = [[] for _ in range(self.num_sequences)]
        for infoset, sequence in enumerate(self.parent.tolist()):
            below[sequence].append(infoset)
        return below

    def sequences(self, infoset: int) -> range:
        """The sequences of an information set's actions."""
        start = int(self.first[infoset])
        return range(start, start + len(self.actions[infoset]))

    def extremes(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The greatest of `weights @ x` over realization plans x, for each column of weights[sequence, :]."""
        total = np.array(weights, np.float64)
        for infoset in range(self.num_infosets - 1, -1, -1):
            start = int(self.first[infoset])
            total[self.parent[infoset]] += total[start : start + len(self.actions[infoset])].max(axis=0)
        greatest: npt.NDArray[np.float64] = total[0]
        return greatest

    def best_reply(self, weights: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        """The same for one vector, with a pure realization plan that attains it."""
        total = np.array(weights, np.float64)
        odds = np.zeros(self.num_sequences)
        for infoset in range(self.num_infosets - 1, -1, -1):
            start = int(self.first[infoset])
            choice = start + int(np.argmax(total[start : start + len(self.actions[infoset])]))
            odds[choice] = 1.0
            total[self.parent[infoset]] += total[choice]
        return float(total[0]), self.realized(odds)

    def realized(self, odds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The realization plan of action probabilities, both float[sequences, ...] with any entry at 0."""
        plan = np.array(odds, np.float64)
        plan[0] = 1.0
        for infoset in range(self.num_infosets):
            plan[list(self.sequences(infoset))] *= plan[self.parent[infoset]]
        return plan

    def odds(self, plan: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The action probabilities of a realization plan; uniform where it does not come."""
        odds: npt.NDArray[np.float64] = np.maximum(plan, 0.0)
        for infoset in range(self.num_infosets):
            own = list(self.sequences(infoset))
            total = odds[own].sum()
            odds[own] = odds[own] / total if total > 0.0 else 1.0 / len(own)
        return odds

    def behavior(self, plan: npt.NDArray[np.float64]) -> dict[str, dict[int, float]]:
        """The same as {information state: {action: probability}}."""
        return self.as_rows(self.odds(plan))

    def as_rows(self, odds: np.ndarray) -> dict[str, dict[int, float]]:
        """{information state: {action: probability}} of action probabilities float[sequences]."""
        return {
            key: dict(zip(self.actions[k], odds[list(self.sequences(k))].tolist(), strict=True))
            for k, key in enumerate(self.keys)
        }

    def plan(self, rows: Mapping[str, Mapping[int, float]]) -> np.ndarray:
        """The realization plan of {information state: {action: probability}}."""
        odds = [
            rows[key].get(action, 0.0)
            for key, actions in zip(self.keys, self.actions, strict=True)
            for action in actions
        ]
        return self.realized(np.array([1.0, *odds]))


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
    players: tuple[PlayerSequences, PlayerSequences] = dataclasses.field(repr=False)

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

    def payoff(self, player: int) -> list[dict[int, float]]:
        """{own sequence: chance times own utility, summed over leaves}, for each sequence of the other.

        Raises:
          ValueError: there is no such player.
        """
        player = check_player(player, "SequenceForm.payoff()")
        payoff: list[dict[int, float]] = [{} for _ in range(self.players[1 - player].num_sequences)]
        for leaf in self.leaves.tolist():
            row, own = payoff[int(self.sequence[leaf, 1 - player])], int(self.sequence[leaf, player])
            row[own] = row.get(own, 0.0) + float(self.chance[leaf] * self.utility[leaf, player])
        return payoff

    def against(self, player: int, plan: np.ndarray, whose: int) -> np.ndarray:
        """What `whose` earns with each of the other's sequences against a realization plan of `player`.

        Args:
          player: 0 or 1.
          plan: float[S], a number for each of the player's sequences.
          whose: 0 or 1.

        Returns:
          float64, a number for each sequence of the other player.

        Raises:
          ValueError: an argument is not as above.
        """
        caller = "SequenceForm.against()"
        player, whose = check_player(player, caller), check_player(whose, caller, "whose")
        plan = check_numbers(plan, self.players[player].num_sequences, "plan", caller)
        leaves, weights = self.leaves, np.zeros(self.players[1 - player].num_sequences)
        worth = self.chance[leaves] * self.utility[leaves, whose] * plan[self.sequence[leaves, player]]
        np.add.at(weights, self.sequence[leaves, 1 - player], worth)
        return weights

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


class _Sequences:
    """A player's information sets and sequences, while histories are being visited."""

    def __init__(self, game: pyspiel.Game, player: int, caller: str) -> None:
        self.game, self.player, self.caller = game, player, caller
        self.index: dict[str, int] = {}
        self.actions: list[tuple[int, ...]] = []
        self.first: list[int] = []
        self.parent: list[int] = []
        self.infoset = [-1]

    def visit(self, key: str, legal: tuple[int, ...], before: int) -> int:
        """The information set of a history, to which it came by the sequence `before`."""
        here = self.index.setdefault(key, len(self.actions))
        if here == len(self.actions):
            self.actions.append(legal)
            self.first.append(len(self.infoset))
            self.parent.append(before)
            self.infoset += [here] * len(legal)
        elif self.parent[here] != before:
            raise ValueError(
                f"{self.caller}: expected a game of perfect recall, got {self.game}, in which player "
                f"{self.player} comes to {key!r} with different pasts of its own"
            )
        elif self.actions[here] != legal:
            raise ValueError(
                f"{self.caller}: expected one set of legal actions at {key!r}, got {self.actions[here]} "
                f"and {legal}"
            )
        return here

    def frozen(self) -> PlayerSequences:
        return PlayerSequences(
            keys=tuple(self.index),
            index=self.index,
            actions=tuple(self.actions),
            first=np.array(self.first, np.int64),
            parent=np.array(self.parent, np.int64),
            infoset=np.array(self.infoset),
        )


def _flatten(game: pyspiel.Game, caller: str) -> SequenceForm:
    own = (_Sequences(game, 0, caller), _Sequences(game, 1, caller))
    states: list[Any] = [game.new_initial_state()]
    parent, depth, action, chance, sequence = [-1], [0], [-1], [1.0], [(0, 0)]
    player: list[int] = []
    infoset: list[int] = []
    children: list[tuple[int, ...]] = []
    utility: list[Sequence[float]] = []
    for at, state in enumerate(states):  # which grows
        mover, here = int(state.current_player()), -1
        moves: list[tuple[int, float, tuple[int, int]]] = []
        if mover == CHANCE:
            moves = [(a, p, sequence[at]) for a, p in state.chance_outcomes() if p > 0.0]
        elif mover != TERMINAL:
            legal = tuple(state.legal_actions())
            here = own[mover].visit(infoset_key(state), legal, sequence[at][mover])
            for after, a in enumerate(legal, own[mover].first[here]):
                moves.append((a, 1.0, (after, sequence[at][1]) if mover == 0 else (sequence[at][0], after)))
        player.append(mover)
        infoset.append(here)
        utility.append(state.returns() if mover == TERMINAL else (0.0, 0.0))
        children.append(tuple(range(len(states), len(states) + len(moves))))
        for a, p, pair in moves:
            states.append(state.child(a))
            parent.append(at)
            depth.append(depth[at] + 1)
            action.append(a)
            chance.append(chance[at] * p)
            sequence.append(pair)
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
        players=(own[0].frozen(), own[1].frozen()),
    )


_FORMS: Recent[SequenceForm] = Recent()
