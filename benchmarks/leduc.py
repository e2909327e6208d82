"""Leduc poker with any number of ranks, as an OpenSpiel game: `leduc_poker` has three for two players.

Two cards of each rank, an ante of 1, two bets of 2 in the first round and, after a public card, two of 4 in
the second. Nature deals both private cards at once and by rank. With three ranks it is
`leduc_poker(suit_isomorphism=true)` but for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyspiel

from precomp_games.games.openspiel_game import StringObserver
from precomp_games.games.registered import game_type

__all__ = ["LeducGame"]

FOLD, CALL, RAISE = range(3)
_ANTE, _BETS, _RAISES = 1, (2, 4), 2
_MOST = _ANTE + _RAISES * sum(_BETS)
_TYPE = game_type(
    "python_leduc_poker", "Leduc Poker", {"ranks": 3}, perfect=False, zero_sum=True, tensors=False
)


class LeducGame(pyspiel.Game):
    """The game, with `ranks` ranks."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        self.ranks = int((params or {}).get("ranks", 3))
        info = pyspiel.GameInfo(
            num_distinct_actions=3,
            max_chance_outcomes=self.ranks**2,
            num_players=2,
            min_utility=-float(_MOST),
            max_utility=float(_MOST),
            utility_sum=0.0,
            max_game_length=2 * (_RAISES + 2),
        )
        super().__init__(_TYPE, info, {"ranks": self.ranks})

    def __reduce__(self) -> tuple[Any, ...]:
        return LeducGame, ({"ranks": self.ranks},)

    def new_initial_state(self) -> _State:
        return _State(self)

    def max_chance_nodes_in_history(self) -> int:
        return 2

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> StringObserver:
        del iig_obs_type, params
        return StringObserver(_known)


class _State(pyspiel.State):
    """cards: ranks of the private cards and the public one; lines: the moves of each round that has begun."""

    def __init__(self, game: LeducGame) -> None:
        super().__init__(game)
        self.ranks = game.ranks
        self.cards: tuple[int, ...] = ()
        self.lines: tuple[tuple[int, ...], ...] = ((),)
        self.paid = [_ANTE, _ANTE]

    def _round_over(self) -> bool:
        line = self.lines[-1]
        return len(line) > 1 and line[-1] == CALL

    def is_terminal(self) -> bool:
        return self.lines[-1][-1:] == (FOLD,) or (len(self.lines) == 2 and self._round_over())

    def current_player(self) -> int:
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        if len(self.cards) < 1 + len(self.lines):
            return int(pyspiel.PlayerId.CHANCE)
        return len(self.lines[-1]) % 2

    def chance_outcomes(self) -> list[tuple[int, float]]:
        if self.cards:
            left = [(rank, 2 - self.cards.count(rank)) for rank in range(self.ranks)]
        else:
            left = [(pair, 2 * (1 if a == b else 2)) for pair in range(self.ranks**2)
                    for a, b in [divmod(pair, self.ranks)]]  # fmt: skip
        total = sum(count for _, count in left)
        return [(action, count / total) for action, count in left if count]

    def _legal_actions(self, player: int) -> list[int]:
        line = self.lines[-1]
        legal = [FOLD, CALL] if self.paid[player] < self.paid[1 - player] else [CALL]
        return [*legal, RAISE] if line.count(RAISE) < _RAISES else legal

    def _apply_action(self, action: int) -> None:
        if self.current_player() == pyspiel.PlayerId.CHANCE:
            self.cards += (action,) if self.cards else divmod(action, self.ranks)
            return
        player = self.current_player()
        other = self.paid[1 - player]
        if action != FOLD:
            raised = _BETS[len(self.lines) - 1] if action == RAISE else 0
            self.paid = [other, other]
            self.paid[player] += raised
        self.lines = (*self.lines[:-1], (*self.lines[-1], action))
        if len(self.lines) == 1 and self._round_over():
            self.lines = (*self.lines, ())

    def returns(self) -> list[float]:
        if not self.is_terminal():
            return [0.0, 0.0]
        if self.lines[-1][-1] == FOLD:
            winner = len(self.lines[-1]) % 2
        elif self.cards[0] == self.cards[1]:
            return [0.0, 0.0]
        else:
            winner = max((0, 1), key=lambda i: (self.cards[i] == self.cards[2], self.cards[i]))
        won = float(self.paid[1 - winner])
        return [won, -won] if winner == 0 else [-won, won]

    def _action_to_string(self, player: int, action: int) -> str:
        return str(action) if player < 0 else ("Fold", "Call", "Raise")[action]

    def __str__(self) -> str:
        return f"{self.cards} {self.lines}"


def _known(state: _State, player: int) -> str:
    """What a player knows: its card, the public one, and all moves."""
    return f"p{player} {state.cards[player]} {state.cards[2:]} {state.lines}"


pyspiel.register_game(_TYPE, LeducGame)
