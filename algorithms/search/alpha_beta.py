"""Alpha-beta (fail-soft) and principal variation search, with a transposition table.

The value, to the player to move, of a position is sought within a window (alpha, beta). A move that is worth
beta or more ends it, since the opponent will not let it come to that. What is returned is the best value seen
(fail-soft): exact inside the window, else a bound that may be tighter than the window's.

The table keeps, for each position and player to move, the depth searched, a value, whether it is exact or a
lower or an upper bound, the best move, and whether the subtree was searched to the end of the game. A value
is used where it was searched to the same depth, or to the end within less: a deeper heuristic value is not
the value at this depth, and would make the answer depend on the order of search. The best move is searched
first at any depth. So all variants return plain minimax's value.

Principal variation search expects the first move to be best, and asks of the others only whether they are
better, with a window that holds no number; one that is better is searched again.

Source: `game_search`, "Alpha-Beta" to "Alpha-Beta Variants in Practice". What slips in its pseudocode, as we
have it:

  * cut-offs are at beta < alpha; at beta = alpha the rest cannot matter either (`>=` here). The table's
    `beta_c < alpha` and `beta < alpha_c` are the same;
  * the table: v = alpha' passes `v < alpha'` by and is kept as a lower bound, but a search that does not
    exceed alpha returns an upper bound. Where there are ties this gives wrong values;
  * the table: an exact entry inside the window is not returned, but searched again with an empty window;
  * the table: entries narrow alpha and beta, and what is stored is then judged by the caller's
    alpha (alpha') and the narrowed beta. Here an entry either answers or only orders moves;
  * the null window (alpha, alpha + 1) holds no other value where values are integers. Utilities are real: in
    [-1, 1] it is a full window and saves nothing. Here it ends at the next floating-point number;
  * the second search's window (v, beta) excludes v itself, so that a value of exactly v comes back as a
    bound, without best play, and as a bound into the table. Here it is (alpha, beta);
  * PVS returns alpha, which is a looser bound where every move is worse. Here the best value seen is returned
    (and the function, which is called `alphabeta` but calls `pvs`, calls itself);
  * `-color` at every ply is wrong where a player moves twice in a row: see `depth_first`.

Deviation: a child that is a chance node gets the full window at once, and so do the outcomes below it, since
a null window would not save anything there.

Cost: between b^(d/2) and b^d positions. A table entry takes some 200 bytes; there is one a position searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

from precomp_games._support.checks import ArgumentError, public
from precomp_games.policies.rows import legal_actions

from .depth_first import (
    DepthFirstSearch,
    Evaluator,
    MinimaxResult,
    Ordering,
    OutOfBudget,
    SearchBudget,
    SearchState,
)

_EXACT, _LOWER, _UPPER = 0, 1, 2
_INFINITY = math.inf


@public
def alpha_beta(
    state: SearchState,
    budget: SearchBudget,
    *,
    evaluator: Evaluator | None = None,
    ordering: Ordering | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    iterative_deepening: bool = False,
    all_scores: bool = False,
) -> MinimaxResult:
    """Plain minimax's value with fewer positions.

    Args:
      state: of a two-player game of zero or constant sum and perfect information, a player to move.
      budget: with a limit in nodes or seconds, or without one in depth, the search deepens iteratively.
      evaluator: player 0's utility of a state at the horizon; None: a draw, half the sum of utilities.
      ordering: moves worth searching first; None: the game's order. The table's move goes before them.
      position_key: turns the transposition table on. States with equal keys and the same player to move
        have the same future and evaluation: that is the caller's promise. For most board games: `str`.
      iterative_deepening: search depths 1, 2, ... even where the budget is a depth alone.
      all_scores: an exact score for every root move, at the price of cutting less.

    Raises:
      ValueError: an argument is not as above, or an answer of one of the functions.
    """
    options = (ordering, position_key, iterative_deepening, all_scores)
    return _AlphaBeta(state, budget, evaluator, *options).run()


@public
def principal_variation_search(
    state: SearchState,
    budget: SearchBudget,
    *,
    evaluator: Evaluator | None = None,
    ordering: Ordering | None = None,
    position_key: Callable[[Any], Hashable] | None = None,
    iterative_deepening: bool = True,
    all_scores: bool = False,
) -> MinimaxResult:
    """Alpha-beta that only asks of later moves whether they are better. Pays where moves are well ordered.

    Arguments, result and errors as for `alpha_beta`.
    """
    options = (ordering, position_key, iterative_deepening, all_scores)
    return _PrincipalVariation(state, budget, evaluator, *options).run()


_Entry = tuple[int, int, float, int, bool]
"""Depth searched, kind of bound, value to the mover, best action, whether searched to the end."""


class _AlphaBeta(DepthFirstSearch):
    """The core: every variant is this with one thing or another switched on."""

    _null_windows = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # By player to move: a board does not always say who it is.
        self._tables: tuple[dict[Hashable, _Entry], dict[Hashable, _Entry]] = ({}, {})
        # Evaluations by player to move, chance last.
        self._evaluations: tuple[dict[Hashable, float], ...] = ({}, {}, {})

    def _value(self, child: Any, mover: int, depth: int, alpha: float, beta: float, has_rival: bool) -> float:
        if self._nodes >= self._stop_at:  # `_count`, without a call for every position
            self._check_budget()
        self._nodes += 1
        player = child.current_player()
        if player < 0 or depth == 0:
            self._line = ()
            value = self._settle(child, player, depth)
            return value if mover == 0 else -value
        if has_rival and self._null_windows:
            above = math.nextafter(alpha, _INFINITY)
            if player == mover:
                value = self._visit(child, player, depth, alpha, above)
            else:
                value = -self._visit(child, player, depth, -above, -alpha)
            if not alpha < value < beta:
                return value
            self._count()
        if player == mover:
            return self._visit(child, player, depth, alpha, beta)
        return -self._visit(child, player, depth, -beta, -alpha)

    def _visit(self, state: Any, mover: int, depth: int, alpha: float, beta: float) -> float:
        """The value to `mover`, who is to move, `depth` >= 1 moves ahead."""
        first = -1
        if self._key is not None:
            table, key = self._tables[mover], self._key(state)
            entry = table.get(key)
            if entry is not None:
                searched, kind, value, first, solved = entry
                if (searched == depth or (solved and searched < depth)) and (
                    kind == _EXACT or (value >= beta if kind == _LOWER else value <= alpha)
                ):
                    if not solved:
                        self._horizon += 1
                    self._line = (first,)
                    return value
        actions = legal_actions(state)
        if self._ordering is not None:
            actions = self._in_order(state, actions)
        if first >= 0 and actions[0] != first:
            self._put_first(state, actions, first)
        before = self._horizon
        best, best_action, low = -_INFINITY, actions[0], alpha
        line: tuple[int, ...] = ()
        rival = False
        for action in actions:
            value = self._value(state.child(action), mover, depth - 1, low, beta, rival)
            if value > best:
                best, best_action = value, action
                line = (action, *self._line)
                if value > low:
                    low = value
                    if low >= beta:
                        break
            rival = low > -_INFINITY
        if self._key is not None:
            kind = _LOWER if best >= beta else _UPPER if best <= alpha else _EXACT
            table[key] = (depth, kind, best, best_action, self._horizon == before)
        self._line = line
        return best

    def _put_first(self, state: Any, actions: list[int], first: int) -> None:
        try:
            actions.remove(first)
        except ValueError:
            raise ArgumentError(
                "expected states with equal position_key to have the same legal actions, "
                f"got action {first}, which is not one of {actions}, at history {state.history_str()!r}"
            ) from None
        actions.insert(0, first)

    def _evaluate(self, state: Any) -> float:
        if self._key is None or self._evaluator is None:
            return super()._evaluate(state)
        known = self._evaluations[int(state.current_player())]
        key = self._key(state)
        value = known.get(key)
        if value is None:
            value = known[key] = super()._evaluate(state)
        return value

    def _remember(self, mover: int, depth: int, value: float, action: int, solved: bool) -> None:
        if self._key is not None:
            self._tables[mover][self._key(self._state)] = (depth, _EXACT, value, action, solved)

    def _lengthen(self, line: tuple[int, ...], depth: int) -> tuple[int, ...]:
        if self._key is None:
            return line
        state = self._state.clone()
        for action in line:
            state.apply_action(action)
        while len(line) < depth and (mover := state.current_player()) >= 0:
            # Exact entries answer at once; what has been overwritten since is searched again.
            try:
                self._count()
                self._visit(state, mover, depth - len(line), -_INFINITY, _INFINITY)
            except OutOfBudget:
                break
            for action in self._line:
                state.apply_action(action)
            line = (*line, *self._line)
        return line


class _PrincipalVariation(_AlphaBeta):
    """Asks of later moves only whether they are better."""

    _null_windows = True
