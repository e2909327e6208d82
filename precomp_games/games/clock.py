"""A base game on the clock: each player has a time for the whole game, and loses when it has run out.

    game = ClockGame({"game": {"name": "tic_tac_toe"}, "time_0": 5, "time_1": 5})
    game = pyspiel.load_game("python_clock(game=connect_four(),time_0=20,time_1=20,move_time=4)")

Time is counted in ticks. A move of the clock game is a move of the base game together with the ticks that it
took; `encode` and `decode` turn the two into an action and back. A player whose move takes more than it has
left loses at once, and the move is not made. Chance takes no time, and keeps the base game's actions.

    sigma = game.policy(search, ticks)          what a player computes: takes time
    sigma_pre = game.policy(deep_search)        what it has memorized: takes none

A memorized move and the same move computed are different actions, so the supports of sigma_pre and sigma are
disjoint. Lemma 4's form of the meta-game does not hold then (`MetaPrecomputationGame` refuses it); additive
costs, the audit form and all solvers of this library are exact.

Source: `precomputation`, Example 2.

Deviations: time is discrete; the base game may have chance moves and draws.

Cost: a child takes some 30 us beyond the base game's own; a state holds a base-game state.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, utility_sum
from precomp_games._support.results import Shown
from precomp_games.games.openspiel_game import StringObserver, load_base_game, open_observer
from precomp_games.games.registered import CLOCK
from precomp_games.policies.rows import PolicyLike, as_batch_policy, is_of_history

_MOST_ACTIONS = 2**31 - 1  # OpenSpiel's


class ClockGame(pyspiel.Game):
    """A base game with clocks; registered as `python_clock`.

    The parameters are given as a mapping; `pyspiel.load_game` also reads them from a game string.

    Game Parameters:
      game: the base game, as {"name": ..., parameters}, a string or a `pyspiel.Game`. It has two players, is
        sequential, of perfect information, and of zero or constant sum. Within a game string its name has
        parentheses, `tic_tac_toe()`.
      time_0, time_1: the ticks that each player has for the whole game, at least 1.
      move_time: the most ticks that a move can take; 0 stands for one more than either clock has.

    Attributes:
      base: the base game.
      times: (time_0, time_1).
      move_time: the most ticks that a move can take, never 0.
      lost_on_time: returns where player 0's time has run out, and where player 1's has.

    Raises:
      ValueError: a parameter is not as above.
    """

    @public
    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        values = checks.check_parameters({} if params is None else params, CLOCK.defaults)
        for name, least in (("time_0", 1), ("time_1", 1), ("move_time", 0)):
            values[name] = checks.check_integer(values[name], name, least=least)
        self.base = checks.check_game(load_base_game(values["game"]), perfect=True)
        if not isinstance(values["game"], Mapping):
            values["game"] = self.base.get_parameters() | {"name": self.base.get_type().short_name}
        self.times = (values["time_0"], values["time_1"])
        self.move_time: int = values["move_time"] or max(self.times) + 1
        moves = self.base.num_distinct_actions()
        if moves * (self.move_time + 1) > _MOST_ACTIONS:
            got = f"{moves} moves of 0 to {self.move_time} ticks; a smaller move_time gives fewer"
            raise ArgumentError(f"expected at most {_MOST_ACTIONS} actions, got {got}")
        total, lowest = utility_sum(self.base), self.base.min_utility()
        self.lost_on_time = ([lowest, total - lowest], [total - lowest, lowest])
        info = pyspiel.GameInfo(
            num_distinct_actions=moves * (self.move_time + 1),
            max_chance_outcomes=self.base.max_chance_outcomes(),
            num_players=2,
            min_utility=lowest,
            max_utility=max(self.base.max_utility(), total - lowest),
            utility_sum=total,
            max_game_length=self.base.max_game_length(),
        )
        self._parameters = values
        super().__init__(CLOCK.type, info, values)

    def __reduce__(self) -> tuple[Any, ...]:
        return ClockGame, (self._parameters,)

    def new_initial_state(self) -> ClockState:
        """Return the start, with full clocks."""
        return ClockState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the base game's number."""
        return int(self.base.max_chance_nodes_in_history())

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> StringObserver:
        """Return an observer of strings."""
        return open_observer(self, iig_obs_type, params, lambda state: state.history_str())

    @public
    def position_key(
        self, base_key: Callable[[Any], Hashable] | None
    ) -> Callable[[ClockState], Hashable] | None:
        """Return the game's `position_key`, of its base game's: clocks are part of a position; None of None.

        Raises:
          ValueError: `base_key` is no function.
        """
        return base_key and functools.partial(_position_key, base_key)  # a partial can be pickled

    @public
    def policy(
        self, policy: PolicyLike, ticks: int | Callable[[ClockState], int] = 0
    ) -> openspiel_policy.Policy:
        """Return a policy of the base game on the clock; `ticks` gives the time that its moves take.

        Args:
          policy: of the base game: an OpenSpiel policy or anything that `HistoryTree` takes.
          ticks: the time of a move, a number or a function of the clock game's state; 0: it is memorized.
        """
        return ClockPolicy(self, policy, ticks)

    @public
    def encode(self, action: int, ticks: int) -> int:
        """Return the action of a base-game action that took so many ticks.

        Raises:
          ValueError: the base game has no such action, or `ticks` is no integer from 0 to `move_time`.
        """
        most = self.base.num_distinct_actions() - 1
        action = checks.check_integer(action, "action", least=0, most=most)
        return self._encode(action, checks.check_integer(ticks, "ticks", least=0, most=self.move_time))

    def _encode(self, action: int, ticks: int) -> int:
        return action * (self.move_time + 1) + ticks

    @public
    def decode(self, action: int) -> tuple[int, int]:
        """Return (the base game's action, ticks).

        Raises:
          ValueError: there is no such action.
        """
        most = self.num_distinct_actions() - 1
        action = checks.check_integer(action, "action", least=0, most=most)
        return divmod(action, self.move_time + 1)


class ClockState(pyspiel.State):
    """A state of the base game and two clocks. Made by `ClockGame.new_initial_state` and `child`.

    Attributes:
      base: the base game's state; read it, `child()` to play on.
      left: (ticks of player 0, of player 1) that are left.
      late: the player who has run out of time, -1 for none.
    """

    def __init__(self, game: ClockGame) -> None:
        super().__init__(game)
        self.base = game.base.new_initial_state()
        self.left = game.times
        self.late = -1

    def current_player(self) -> int:
        """Return 0, 1, or pyspiel's chance or terminal player."""
        if self.late >= 0:
            return int(pyspiel.PlayerId.TERMINAL)
        return int(self.base.current_player())

    def is_terminal(self) -> bool:
        """Return whether the base game is over or a player is late."""
        return self.late >= 0 or self.base.is_terminal()

    def returns(self) -> list[float]:
        """Return both players' utilities; zeros until the game is over."""
        if self.late >= 0:
            return list(self.get_game().lost_on_time[self.late])
        return [float(u) for u in self.base.returns()] if self.base.is_terminal() else [0.0, 0.0]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the base game's outcomes."""
        return list(self.base.chance_outcomes())

    def _legal_actions(self, player: int) -> list[int]:
        if player == pyspiel.PlayerId.CHANCE:
            return [action for action, _ in self.base.chance_outcomes()]
        game = self.get_game()
        # One tick more than is left stands for all that come too late.
        most = min(game.move_time, self.left[player] + 1)
        return [game._encode(a, ticks) for a in self.base.legal_actions() for ticks in range(most + 1)]

    def _apply_action(self, action: int) -> None:
        if self.base.is_chance_node():
            self.base = self.base.child(action)
            return
        player = self.base.current_player()
        move, ticks = self.get_game().decode(action)
        if ticks > self.left[player]:
            self.late = int(player)
            return
        left = list(self.left)
        left[player] -= ticks
        self.left = (left[0], left[1])
        self.base = self.base.child(move)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return str(self.base.action_to_string(player, action))
        move, ticks = self.get_game().decode(action)
        name = self.base.action_to_string(player, move)
        return f"{name} ({ticks})" if ticks <= self.left[player] else f"{name} (late)"

    def __str__(self) -> str:
        late = f", player {self.late} is late" if self.late >= 0 else ""
        return f"{self.base}\nclocks {self.left[0]} {self.left[1]}{late}"


class ClockPolicy(Shown, openspiel_policy.Policy):
    """A policy of the clock game that `ClockGame.policy` makes."""

    def __init__(self, game: ClockGame, policy: PolicyLike, ticks: Any) -> None:
        super().__init__(game, [0, 1])
        self._batch, self.of_history = as_batch_policy(policy), is_of_history(policy)
        self._ticks = ticks if callable(ticks) else checks.check_integer(ticks, "ticks", least=0)

    @public
    def action_probabilities_batch(self, states: Sequence[ClockState]) -> list[dict[int, float]]:
        """Return {action: probability} for each state, of the moves that are played.

        Raises:
          ValueError: they are no states of the game where a player moves, or `ticks` gives what is none.
        """
        movers = [checks.check_turn(state, None, self.game) for state in states]
        timed = []
        for row, state, i in zip(self._batch([state.base for state in states]), states, movers, strict=True):
            ticks = self._ticks(state) if callable(self._ticks) else self._ticks
            if isinstance(ticks, numbers.Real):  # encode() reports what is none
                ticks = min(ticks, state.left[i] + 1)
            timed.append({self.game.encode(a, ticks): float(p) for a, p in row.items() if p > 0.0})
        return timed

    @public
    def action_probabilities(self, state: ClockState, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} at one state; `player_id` can only be the side to move.

        Raises:
          ValueError: as above.
        """
        checks.check_turn(state, player_id, self.game)
        return self.action_probabilities_batch([state])[0]


@public
@dataclasses.dataclass(frozen=True)
class SearchClock:
    """A player's division of time: what a search may spend now, and what a spent node costs.

    A search that is over early (`nodes` visited) takes only its own ticks, one at the least.

    Attributes:
      nodes_per_tick: The nodes in a tick.
      moves: The moves to plan for; each gets an equal part of the time that is left.
    """

    nodes_per_tick: checks.PositiveInt
    moves: checks.PositiveInt = 10

    @public
    def allotted(self, left: checks.NonNegativeInt) -> int:
        """Return the ticks for the next move with `left` on the clock: at least 1, even if fewer are left.

        Raises:
          ValueError: `left` is no integer of at least 0.
        """
        return max(1, left // self.moves)

    @public
    def nodes(self, left: checks.NonNegativeInt) -> int:
        """Return the allotted time in nodes.

        Raises:
          ValueError: as above.
        """
        return self.allotted(left) * self.nodes_per_tick

    @public
    def ticks(self, nodes: checks.NonNegativeInt) -> int:
        """Return the ticks that a search of so many nodes takes.

        Raises:
          ValueError: `nodes` is no integer of at least 0.
        """
        return max(1, -(-nodes // self.nodes_per_tick))

    @public
    def policy(
        self,
        game: ClockGame,
        search: Callable[[Any, int], Any],
        position_key: Callable[[Any], Hashable] | None = None,
    ) -> openspiel_policy.Policy:
        """Return a player that searches as long as its clock allows, and plays the best move that it finds.

        Args:
          game: with clocks.
          search: `search(base_state, nodes)` returns something with `action` and `nodes` (positions visited),
            as `alpha_beta(state, SearchBudget(nodes=nodes))` does; a function of its arguments alone.
          position_key: of the base game; searches are kept, and serve for equal positions again.
        """
        return TimedSearch(game, search, self, position_key)


class TimedSearch(Shown, openspiel_policy.Policy):
    """A policy of timed searches that `SearchClock.policy` makes."""

    def __init__(
        self, game: ClockGame, search: Callable[[Any, int], Any], clock: SearchClock, position_key: Any
    ) -> None:
        super().__init__(game, [0, 1])
        self._search, self._clock, self._key = search, clock, position_key
        self._found: dict[Hashable, tuple[int, int]] = {}

    @public
    def action_probabilities(self, state: ClockState, player_id: int | None = None) -> dict[int, float]:
        """Return {action: 1.0}: the move found, and the ticks that it took.

        Raises:
          ValueError: it is no state of the game where a player moves, or `player_id` is not the one who does.
        """
        player = checks.check_turn(state, player_id, self.game)
        nodes = self._clock.nodes(state.left[player])
        name = tuple(state.base.history()) if self._key is None else self._key(state.base)
        key = (player, name, nodes)
        if key not in self._found:
            result = self._search(state.base, nodes)
            self._found[key] = (int(result.action), int(result.nodes))
        action, spent = self._found[key]
        ticks = min(self._clock.ticks(spent), state.left[player] + 1)
        return {self.game.encode(action, ticks): 1.0}


def _position_key(base_key: Callable[[Any], Hashable], state: ClockState) -> Hashable:
    return (base_key(state.base), state.left, state.late)
