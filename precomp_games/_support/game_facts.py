"""Declarations of a game, compared with its states where it is walked; errors state what is wrong.

A game may come from a file, or from whoever is just writing it. What it declares is relied on far from where
it is seen: a range of utilities cuts trees and bounds estimates, a number of actions is the width of a table.
So whatever walks a game asks here.

    facts = GameFacts(game)
    facts.mover(state)                   # chance, a player, or nobody where the game is over
    facts.utilities(state)               # both players', where it is over
    legal_actions(state), chance_outcomes(state), information_state(state)

Cost: comparisons of numbers that are read anyway, and the names of a few states a level where the game says
that nothing is hidden.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.checks import ArgumentError, at_history, of_constant_sum, shown, utility_sum

_ROUNDING = 1e-9  # of sums of utilities, and of their bounds
_OF_CHANCE = 1e-6  # of sums of probabilities, as of policies
_LOOKED_AT = 32  # neighbors among a level's states, and as many all over it

CHANCE = int(pyspiel.PlayerId.CHANCE)
"""The `player` of a chance node."""
TERMINAL = int(pyspiel.PlayerId.TERMINAL)
"""The `player` of a history where the game is over."""


class GameFacts:
    """The declarations of one game: who moves, what actions there are, and the range of utilities.

    Attributes:
      movers: Who may be to move, TERMINAL included.
    """

    def __init__(self, game: pyspiel.Game, *, bounded: bool = True) -> None:
        """Read the declarations.

        Args:
          game: any of two players, in which they take turns.
          bounded: whether its range of utilities is relied on; otherwise it may have no ends.

        Raises:
          ValueError: its range of utilities is none, or has no ends.
        """
        low, high = game.min_utility(), game.max_utility()
        if not low <= high or (bounded and not -math.inf < low <= high < math.inf):
            got = f"one from {low} to {high} of {shown(str(game))}"
            raise ArgumentError(f"expected a {'finite ' * bounded}range of utilities, got {got}")
        most, kind = sys.float_info.max, game.get_type()
        slack = min(_ROUNDING * (1.0 + abs(low) + abs(high)), most)
        self._said, self._low, self._high = (low, high), max(low - slack, -most), min(high + slack, most)
        self._sum = utility_sum(game) if of_constant_sum(game) else None
        self._chance = kind.chance_mode != kind.ChanceMode.DETERMINISTIC
        self.movers = frozenset({0, 1, TERMINAL} | ({CHANCE} if self._chance else set()))
        self._most = game.num_distinct_actions()
        perfect = kind.information == kind.Information.PERFECT_INFORMATION
        self._tells_all = perfect and kind.provides_information_state_string

    def mover(self, state: Any) -> int:
        """Return who is to move: 0, 1, chance, or nobody (TERMINAL).

        Raises:
          ValueError: it is somebody else, or chance in a game that says that it has none.
        """
        player: int = state.current_player()
        if player not in self.movers:
            self._reject_mover(state)
        return player

    def movers_of(self, states: Sequence[Any], watched: Iterable[Any]) -> npt.NDArray[np.int8]:
        """Return who is to move at each of several states, which come `watched` one by one."""
        players = [state.current_player() for state in watched]
        if not self.movers.issuperset(players):
            self._reject_mover(
                next(s for s, player in zip(states, players, strict=True) if player not in self.movers)
            )
        return np.array(players, np.int8)

    def _reject_mover(self, state: Any) -> NoReturn:
        player = state.current_player()
        wanted = "player 0 or 1 to move, or chance" if self._chance else "no chance, as the game says"
        got = "chance" if player == CHANCE else f"{player}"
        where = f"{at_history(state)} of {shown(str(state.get_game()))}"
        raise ArgumentError(f"expected {wanted}, got {got} {where}")

    def check_actions(self, actions: Sequence[int] | npt.NDArray[np.int64], where: Any) -> None:
        """Compare the actions at a player's state, or information state, with the declared number.

        Raises:
          ValueError: one is beyond.
        """
        if len(actions) and not (min(actions) >= 0 and max(actions) < self._most):
            at = f"at {where!r}" if isinstance(where, str) else at_history(where)
            got = f"{shown(sorted(map(int, actions)))} {at}"
            wanted = f"actions from 0 to {self._most - 1}, as num_distinct_actions says"
            raise ArgumentError(f"expected {wanted}, got {got}")

    def check_level(
        self, states: Sequence[Any], mover: npt.NDArray[np.int8], start: Any, action: npt.NDArray[np.int64]
    ) -> None:
        """Compare those of many states, which are `action[start[k]:start[k + 1]]` each, by chance as well."""
        beyond = np.flatnonzero((action < 0) | (action >= self._most))
        owner = np.searchsorted(start, beyond, side="right") - 1
        for k in owner[mover[owner] >= 0][:1].tolist():
            self.check_actions(action[start[k] : start[k + 1]], states[k])

    def check_names(self, states: Sequence[Any], mover: npt.NDArray[np.int8]) -> None:
        """Compare the information states of a few states, if the game declares perfect information.

        Raises:
          ValueError: two that differ have one information state string.
        """
        if not self._tells_all:
            return
        turns, met = np.flatnonzero(mover >= 0), dict[tuple[int, str], Any]()
        some = np.append(turns[:_LOOKED_AT], turns[_LOOKED_AT :: 1 + len(turns) // _LOOKED_AT])
        for state in (states[k] for k in some.tolist()):
            first = met.setdefault((state.current_player(), information_state(state)), state)
            if first is not state and str(first) != str(state):
                name, game = shown(information_state(state)), shown(str(state.get_game()))
                raise ArgumentError(
                    f"expected a game of perfect information, as it says, got {game}, which calls "
                    f"{first.history_str()!r} and {state.history_str()!r} {name} alike"
                )

    def utilities(self, state: Any) -> tuple[float, float]:
        """Return the utilities of players 0 and 1.

        Raises:
          ValueError: they are no two numbers, or one is outside of the game's range, or they do not add up to
            what the game says.
        """
        low, high, total = self._low, self._high, self._sum
        try:
            first, second = state.returns()
            holds = low <= first <= high and low <= second <= high
            if holds and first + second == total:  # as nearly always
                return first, second
        except (TypeError, ValueError):
            got = f"{shown(state.returns())} {at_history(state)}"
            raise ArgumentError(f"expected two utilities, got {got}") from None
        if not holds:
            self._reject(state, "utilities from {:g} to {:g}".format(*self._said), (first, second))
        if total is not None and not abs(first + second - total) <= _ROUNDING * (
            1.0 + abs(first) + abs(second)
        ):
            self._reject(state, f"utilities that add up to {total:g}", (first, second))
        return first, second

    def _reject(self, state: Any, wanted: str, seen: tuple[float, float]) -> NoReturn:
        got = f"{seen[0]} and {seen[1]} {at_history(state)}"
        raise ArgumentError(f"expected {wanted}, as the game says, got {got}")


def legal_actions(state: Any) -> list[int]:
    """Return the legal actions of a state where the game goes on.

    Raises:
      ValueError: there is none; or two have one number: nobody could choose between them, and `child` knows
        only the first.
    """
    actions: list[int] = state.legal_actions()
    if len(set(actions)) < len(actions) or not actions:
        _reject_actions(state, actions)
    return actions


def chance_outcomes(state: Any) -> list[tuple[int, float]]:
    """Return the outcomes of a chance node and their probabilities.

    Raises:
      ValueError: two have one number, or the probabilities are none, or do not sum to 1.
    """
    outcomes: list[tuple[int, float]] = state.chance_outcomes()
    odds = dict(outcomes)
    if len(odds) < len(outcomes):
        _reject_actions(state, [action for action, _ in outcomes])
    total = sum(odds.values())
    if not abs(total - 1.0) <= _OF_CHANCE or not min(odds.values()) >= 0.0:
        where = at_history(state)
        if not all(p >= 0.0 for p in odds.values()):
            raise ArgumentError(f"expected chance to give probabilities in [0, 1] {where}, got {shown(odds)}")
        raise ArgumentError(f"expected the probabilities of chance to sum to 1 {where}, got {total!r}")
    return outcomes


def _reject_actions(state: Any, actions: list[int]) -> NoReturn:
    where = f"{at_history(state)} of {shown(str(state.get_game()))}"
    if not actions:
        raise ArgumentError(f"expected a legal action, got none {where}")
    raise ArgumentError(
        f"expected the actions of a state to differ, got {shown(actions)} {where}; in an EFG file, label "
        "the actions of each node differently"
    )


def information_state(state: Any, player: int | None = None) -> str:
    """Return the information state string of the player who moves; `player` may give it.

    Raises:
      ValueError: the game says that it has such strings, and has none.
    """
    why = None
    try:
        name = state.information_state_string(state.current_player() if player is None else player)
    except (AttributeError, NotImplementedError, TypeError, pyspiel.SpielError) as error:
        name = why = error
    if type(name) is not str:
        got = f"{shown(name)} {at_history(state)} of {shown(str(state.get_game()))}"
        raise ArgumentError(f"expected information state strings, as the game says, got {got}") from why
    return name


def infoset_key(state: Any) -> str:
    """Return the information state of a state where a player moves; its history where the game has none."""
    named = state.get_game().get_type().provides_information_state_string
    return information_state(state) if named else str(state.history_str())


def check_infoset_keys(game: pyspiel.Game, keys: Iterable[str]) -> None:
    """Refuse an EFG file with one information set that OpenSpiel takes for two.

    Its strings there are "mover-player-number-name", and files may leave the name out after the first time.

    Args:
      game: any.
      keys: the information state strings that were met in it, each once.

    Raises:
      ValueError: two of them have one number.
    """
    if game.get_type().short_name != "efg_game":
        return
    met: dict[tuple[str, ...], str] = {}
    for key in keys:
        first = met.setdefault(tuple(key.split("-", 3)[:3]), key)
        if first != key:
            wanted = "an EFG file to name an information set alike at each of its nodes"
            raise ArgumentError(f"expected {wanted}, got {first!r} and {key!r} in {shown(str(game))}")
