"""Games to solve, and OpenSpiel's linear program beside them."""

import functools
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import pyspiel
from open_spiel.python.algorithms import best_response as openspiel_best_response
from open_spiel.python.algorithms import lp_solver, sequence_form_lp

from tests.oracles.games import EfgText

SMALL = (
    "kuhn_poker",
    "leduc_poker",
    "liars_dice(dice_sides=2)",
    "goofspiel(num_cards=3,imp_info=True)",
    "goofspiel(num_cards=3,imp_info=True,points_order=descending)",
    "oshi_zumo(coins=3,size=1,horizon=3)",
    "dark_hex(board_size=2)",
    "blotto(players=2,coins=4,fields=2)",
    "coordinated_mp",
    "matrix_rpsw",
    "mnk(m=2,n=2,k=2)",
    "nim(pile_sizes=1;2;3)",
)


@functools.cache
def game_of(name: str) -> pyspiel.Game:
    """Return a game whose players take turns."""
    return pyspiel.load_game_as_turn_based(name)


def constant_sum(total: float = 10.0) -> pyspiel.Game:
    """Utilities that add up to that, a turn with one action, and an outcome of chance that never comes."""
    text = EfgText()
    text.chance({"a": "0.5", "b": "0.5", "never": "0"})
    for k, payoffs in enumerate([(1, 9, 8, 2), (7, 3, 4, 6), (9, 1, 2, 8)]):
        text.move(1, 1 + k, ["only"])
        text.move(1, 4 + k, ["l", "r"])
        for half in (0, 1):
            text.move(2, 1, ["x", "y"])
            for one in payoffs[2 * half : 2 * half + 2]:
                text.leaf(one - 5 + total / 2, total / 2 + 5 - one)
    return text.game()


class MatrixGame(pyspiel.Game):
    """A game in Python: player 0 chooses a row, player 1 a column, without seeing it; declared as zero-sum.

    returns: what each pair gives both players, by row and column. name: of all information states, if given.
    """

    def __init__(self, returns: Any, name: str = "") -> None:
        self.table, self.name = np.asarray(returns, float), name
        most, high = max(self.table.shape[:2]), max(1.0, float(np.nanmax(np.abs(self.table))))
        info = pyspiel.GameInfo(most, 0, 2, -high, high, 0.0, 2)
        super().__init__(game_of("matrix_mp").get_type(), info, {})

    def new_initial_state(self) -> Any:
        return _MatrixState(self)


class _MatrixState(pyspiel.State):
    def __init__(self, game: Any) -> None:
        super().__init__(game)
        self.table, self.name, self.played = game.table, game.name, []  # a game cannot be copied

    def current_player(self) -> int:
        return len(self.played) if len(self.played) < 2 else int(pyspiel.PlayerId.TERMINAL)

    def _legal_actions(self, player: int) -> list[int]:
        return list(range(self.table.shape[player]))

    def _apply_action(self, action: int) -> None:
        self.played.append(action)

    def is_terminal(self) -> bool:
        return len(self.played) == 2

    def returns(self) -> list[float]:
        return [float(x) for x in self.table[tuple(self.played)]] if self.is_terminal() else [0.0, 0.0]

    def information_state_string(self, player: int | None = None) -> str:
        return self.name or str(self.current_player() if player is None else player)

    def _action_to_string(self, player: int, action: int) -> str:
        return str(action)

    def __str__(self) -> str:
        return str(self.played)


def is_perfect(game: pyspiel.Game) -> bool:
    """Return whether a game has perfect information."""
    return bool(game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION)


def value_of(game: pyspiel.Game) -> float:
    """The value to player 0: by recursion where information is perfect, else by OpenSpiel's program."""
    return linear_program(game) if not is_perfect(game) else recursion(game.new_initial_state(), None, (0, 1))


def recursion(state: Any, policy: Any, choosers: Sequence[int]) -> float:
    """Player 0's utility where some players choose what is best at each state, and others play a policy."""
    if state.is_terminal():
        return float(state.returns()[0])
    mover = state.current_player()
    if mover in choosers:
        best = max if mover == 0 else min
        return float(best(recursion(state.child(a), policy, choosers) for a in state.legal_actions()))
    odds = state.chance_outcomes() if mover < 0 else policy.action_probabilities(state).items()
    return float(sum(p * recursion(state.child(a), policy, choosers) for a, p in odds))


def best_response_value(game: pyspiel.Game, policy: Any, player: int, start: Any = None) -> float:
    """Return a player's best-response value against a policy, by OpenSpiel if information states have names.

    start: where play begins, with all that its movers know. None: at the game's start.
    """
    start = start or game.new_initial_state()
    if game.get_type().provides_information_state_string:
        return float(openspiel_best_response.BestResponsePolicy(game, player, policy, start).value(start))
    value = recursion(start, policy, (player,))
    return value if player == 0 else game.utility_sum() - value


def nash_conv_of(game: pyspiel.Game, policy: Any, start: Any = None) -> float:
    """Return the sum of what both could gain."""
    best = sum(best_response_value(game, policy, player, start) for player in (0, 1))
    return float(best - (game.utility_sum() or 0.0))


def subgames(game: pyspiel.Game) -> list[Any]:
    """Return the roots of proper subgames: states whose information sets below have no member elsewhere."""
    members: dict[str, int] = {}
    met: list[tuple[Any, dict[str, int]]] = []

    def walk(state: Any) -> dict[str, int]:
        """Return the number of members of each information set from a state on."""
        below: dict[str, int] = {}
        if state.is_terminal():
            return below
        if state.current_player() >= 0:
            named = game.get_type().provides_information_state_string
            name = state.information_state_string() if named else state.history_str()
            below[name] = 1
            members[name] = members.get(name, 0) + 1
        never = [a for a, p in state.chance_outcomes() if p == 0.0] if state.is_chance_node() else []
        for action in set(state.legal_actions()).difference(never):
            for name, count in walk(state.child(action)).items():
                below[name] = below.get(name, 0) + count
        met.append((state, below))
        return below

    walk(game.new_initial_state())
    return [state for state, below in met if all(members[name] == count for name, count in below.items())]


def linear_program(game: pyspiel.Game) -> float:
    """The value to player 0 by OpenSpiel's, by a simplex method: its own choice is good to 1e-7 only."""
    with mock.patch.dict(lp_solver.DEFAULT_SOLVER_KWARGS, clear=True):
        return float(sequence_form_lp.solve_zero_sum_game(game, solver="HIGHS")[0])
