"""Plain minimax and negamax: every position down to the horizon, as a yardstick for the others.

Where there are chance nodes this is expectiminimax: a chance node is worth the expectation of its children,
and takes no depth. Source: `game_search`, "Minimax" and "Negamax".

Deviation: the slides give each ply the opposite color. Here the game says who is to move, so that a player
may move twice in a row.

Cost: b^d positions for b moves and depth d. Every root score is exact.
"""

from __future__ import annotations

from typing import Any

from precomp_games._support.arguments import public
from precomp_games.policies.rows import legal_actions

from .budgets import MinimaxResult, SearchBudget, SearchState
from .depth_first import DepthFirstSearch, Evaluator, SearchOptions


@public
def minimax(state: SearchState, budget: SearchBudget, *, evaluator: Evaluator | None = None) -> MinimaxResult:
    """Searches every position within the budget: player 0 maximizes its utility, player 1 minimizes it.

    Args:
      state: of a two-player game of zero or constant sum and perfect information, a player to move.
      budget: with a limit in nodes or seconds, or without one in depth, depths 1, 2, ... are tried.
      evaluator: player 0's utility of a state at the horizon; None: a draw, half the sum of utilities.

    Raises:
      ValueError: an argument is not as above, or the evaluator's answer is not finite.
    """
    return _Minimax(state, budget, evaluator, SearchOptions(all_scores=True)).run()


@public
def negamax(state: SearchState, budget: SearchBudget, *, evaluator: Evaluator | None = None) -> MinimaxResult:
    """The same search written for the player to move: values change sign where the mover changes.

    Arguments, result and errors as for `minimax`.
    """
    return _Negamax(state, budget, evaluator, SearchOptions(all_scores=True)).run()


class _Minimax(DepthFirstSearch):
    """Player 0 maximizes, player 1 minimizes; windows are left aside."""

    def _value(self, child: Any, mover: int, depth: int, alpha: float, beta: float, has_rival: bool) -> float:
        value = self._utility_0(child, depth)
        return value if mover == 0 else -value

    def _utility_0(self, state: Any, depth: int) -> float:
        self._count()
        mover = state.current_player()
        if mover < 0 or depth == 0:
            self._line = ()
            return self._settle(state, mover, depth)
        best = None
        line: tuple[int, ...] = ()
        for action in legal_actions(state):
            value = self._utility_0(state.child(action), depth - 1)
            if best is None or (value > best if mover == 0 else value < best):
                best, line = value, (action, *self._line)
        assert best is not None
        self._line = line
        return best


class _Negamax(DepthFirstSearch):
    """Both players maximize their own value."""

    def _value(self, child: Any, mover: int, depth: int, alpha: float, beta: float, has_rival: bool) -> float:
        self._count()
        player = child.current_player()
        if player < 0 or depth == 0:
            self._line = ()
            value = self._settle(child, player, depth)
            return value if mover == 0 else -value
        best = -float("inf")
        line: tuple[int, ...] = ()
        for action in legal_actions(child):
            value = self._value(child.child(action), player, depth - 1, alpha, beta, False)
            if value > best:
                best, line = value, (action, *self._line)
        self._line = line
        return best if player == mover else -best
