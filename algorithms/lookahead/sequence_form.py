"""Two-player games of perfect recall as flat arrays: histories, and the players' sequences on the way.

Histories are numbered breadth first, so that a history comes after its predecessor, and an information set
after those that the player passes before it.

Source: von Stengel 1996, as in `limited_lookahead`, section 5.1.

Cost: every history of the game is visited once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError
from precomp_games._support.game_facts import GameFacts, chance_outcomes, infoset_key, legal_actions
from precomp_games.tree.facts import CHANCE, TERMINAL

from ..sequence_form import PlayerSequences, SequencesBuilder

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, eq=False)
class SequenceForm:
    """A game, flattened. Arrays have one entry a history.

    Attributes:
      parent: The history before, -1 at the start.
      children: Lists of histories.
      player: 0, 1, CHANCE or TERMINAL.
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
    infoset: np.ndarray = dataclasses.field(repr=False)
    action: np.ndarray = dataclasses.field(repr=False)
    chance: np.ndarray = dataclasses.field(repr=False)
    sequence: np.ndarray = dataclasses.field(repr=False)
    utility: np.ndarray = dataclasses.field(repr=False)
    players: tuple[PlayerSequences, PlayerSequences] = dataclasses.field(repr=False)

    @classmethod
    def of(cls, game: pyspiel.Game) -> SequenceForm:
        """Flatten a game; asked again for the same game object, it gives the same form.

        Raises:
          ValueError: a player forgets what it knew or did (no perfect recall); histories of one information
            set differ in legal actions.
        """
        return _FORMS.of(game, lambda: _flatten(game))

    @property
    def num_histories(self) -> int:
        """Number of histories of the game."""
        return len(self.parent)

    @property
    def leaves(self) -> np.ndarray:
        """The terminal histories."""
        return np.flatnonzero(self.player == TERMINAL)

    def normalized(self, player: int) -> tuple[SequenceForm, float]:
        """Return the game in which a player's greatest |utility| is 1, and the factor.

        So tolerances mean the same whatever utilities are measured in.
        """
        greatest = float(np.abs(self.utility[:, player]).max())
        scale = 1.0 / greatest if greatest > 0.0 else 1.0
        return dataclasses.replace(self, utility=self.utility * scale), scale

    def payoff(self, player: int) -> list[dict[int, float]]:
        """Return {own sequence: chance times own utility, summed over leaves}, by the other's sequence."""
        payoff: list[dict[int, float]] = [{} for _ in range(self.players[1 - player].num_sequences)]
        for leaf in self.leaves.tolist():
            row, own = payoff[int(self.sequence[leaf, 1 - player])], int(self.sequence[leaf, player])
            row[own] = row.get(own, 0.0) + float(self.chance[leaf] * self.utility[leaf, player])
        return payoff

    def against(self, player: int, plan: np.ndarray, whose: int) -> np.ndarray:
        """Return what `whose` earns by each of the other's sequences against a plan of `player`.

        Args:
          player: 0 or 1.
          plan: float[S], a realization plan: a number for each of the player's sequences.
          whose: 0 or 1.

        Returns:
          float64, a number for each sequence of the other player.
        """
        leaves, count = self.leaves, self.players[1 - player].num_sequences
        worth = self.chance[leaves] * self.utility[leaves, whose] * plan[self.sequence[leaves, player]]
        return np.bincount(self.sequence[leaves, 1 - player], worth, count)

    def members(self, player: int) -> dict[int, list[int]]:
        """Return the histories of each of a player's information sets, by its number."""
        sets: dict[int, list[int]] = {}
        for history in np.flatnonzero(self.player == player).tolist():
            sets.setdefault(int(self.infoset[history]), []).append(history)
        return sets

    def find(self, state: Any) -> int:
        """Return the number of a state's history.

        Raises:
          ValueError: it is none.
        """
        history = 0
        for action in checks.check_state(state, self.game).history():
            history = next((child for child in self.children[history] if self.action[child] == action), -1)
            if history < 0:
                raise ArgumentError(f"expected a history of {self.game}, got {state.history_str()!r}")
        return history


def _flatten(game: pyspiel.Game) -> SequenceForm:
    own, facts = (SequencesBuilder(game, 0), SequencesBuilder(game, 1)), GameFacts(game, bounded=False)
    # State, history before, action, chance, and both players' sequences.
    queue: list[tuple[Any, int, int, float, int, int]] = [(game.new_initial_state(), -1, -1, 1.0, 0, 0)]
    player: list[int] = []
    infoset: list[int] = []
    children: list[tuple[int, ...]] = []
    utility: list[Sequence[float]] = []
    for at, (state, _, _, chance, mine, other) in enumerate(queue):  # which grows
        mover, here, first = facts.mover(state), -1, len(queue)
        if mover == CHANCE:
            for a, p in chance_outcomes(state):
                if p > 0.0:
                    queue.append((state.child(a), at, a, chance * p, mine, other))
        elif mover != TERMINAL:
            legal = legal_actions(state)
            here = own[mover].visit(infoset_key(state), legal, (mine, other)[mover])
            for sequence, a in enumerate(legal, own[mover].first[here]):
                after = (sequence, other) if mover == 0 else (mine, sequence)
                queue.append((state.child(a), at, a, chance, *after))
        player.append(mover)
        infoset.append(here)
        utility.append(facts.utilities(state) if mover == TERMINAL else (0.0, 0.0))
        children.append(tuple(range(first, len(queue))))
    columns = list(zip(*queue, strict=True))
    return SequenceForm(
        game=game,
        states=columns[0],
        parent=np.array(columns[1]),
        children=tuple(children),
        player=np.array(player),
        infoset=np.array(infoset),
        action=np.array(columns[2]),
        chance=np.array(columns[3]),
        sequence=np.array(columns[4:]).T,
        utility=np.array(utility),
        players=(PlayerSequences(**own[0].arrays()), PlayerSequences(**own[1].arrays())),
    )


class Recent(Generic[_T]):
    """A cache of values of the games used last, each looked up again and again; games cannot be hashed."""

    def __init__(self, size: int = 8) -> None:
        """Initialize an empty store."""
        self._size = size
        self._kept: dict[int, tuple[pyspiel.Game, _T]] = {}

    def of(self, game: pyspiel.Game, make: Callable[[], _T]) -> _T:
        """Return the value of this game object; `make` computes it where it is not stored."""
        # Nothing else has the object's id while it is kept. The entry used last stands last.
        self._kept[id(game)] = entry = self._kept.pop(id(game), None) or (game, make())
        if len(self._kept) > self._size:
            del self._kept[next(iter(self._kept))]
        return entry[1]


_FORMS: Recent[SequenceForm] = Recent()
