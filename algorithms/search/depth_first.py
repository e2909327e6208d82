"""Depth-first search with a budget: what all share, and plain minimax, the yardstick for the others.

A search is a way to value a child of the root, `_value`. Here it is asked for every root move, at one depth
or at depths 1, 2, ... (iterative deepening: what one iteration learns orders the moves of the next, and an
answer is at hand whenever the budget ends). An iteration that the budget interrupts is thrown away.

Values inside a search are player 0's utility, negated where the mover is player 1. So they change sign
where the mover changes, not from ply to ply: in games where a player may move twice in a row, the slides'
`-color` at every ply is wrong.

Where there are chance nodes this is expectiminimax: a chance node is worth the expectation of its children,
and takes no depth.

Searches make a new state for each move and undo none. From Python, applying and undoing a move takes 0.9
times as long in tic-tac-toe and breakthrough, and 4 times in chess; many games cannot undo at all.

Source: `game_search`, "Minimax" and "Negamax".

Cost: plain minimax looks at b^d positions for b moves and depth d, and every root score is exact.
"""

from __future__ import annotations

import abc
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown, utility_sum
from precomp_games._support.results import Result
from precomp_games.policies.rows import chance_outcomes, legal_actions
from precomp_games.tree.facts import CHANCE, TERMINAL

Evaluator = Callable[[Any], float]
"""What a state is worth to player 0, in the game's utility; finite. It may be asked about chance nodes."""

Ordering = Callable[[Any, list[int]], Sequence[int]]
"""(state, its legal actions) -> the same actions, those worth searching first in front."""

_BATCH = 16  # positions between two looks at the clock
_INFINITY = math.inf


class Limits:
    """At least one of them is a limit."""

    def __post_init__(self) -> None:
        limits = vars(self)
        if all(limit is None for limit in limits.values()):
            raise ArgumentError(f"expected a limit, {' or '.join(limits)}, got none")


@public
@dataclasses.dataclass(frozen=True)
class SearchBudget(Limits):
    """Limits of a depth-first search; the first one that is reached ends it.

    Attributes:
      depth: Moves of the players looked ahead, at least 1; chance does not count. Where none is left,
        positions are evaluated as they are, chance nodes too.
      nodes: Positions visited, the root included; never exceeded.
      seconds: Wall-clock time, looked at once every few positions. Results are not reproducible then.
    """

    depth: checks.PositiveInt | None = None
    nodes: checks.PositiveInt | None = None
    seconds: checks.PositiveFloat | None = None


@dataclasses.dataclass(frozen=True)
class MinimaxResult(Result):
    """The answer of the deepest search that was finished. Utilities are those of `player`.

    Attributes:
      player: Who is to move at the root.
      action: Its best move; of equal ones, the first searched (the least action where all scores are
        exact).
      value: What the root is worth to `player`.
      scores: {action: value}. Exact for every move if the search was asked for all scores; otherwise exact
        for the best move, and for the others at least an upper bound.
      upper_bounds: The actions whose score is only an upper bound, at most `value`.
      principal_variation: Best play of both sides, up to the horizon, the end or the first chance node.
      depth: Moves looked ahead; 0 if not even depth 1 was finished. Then `scores` is empty, `value` is the
        evaluation of the root, and `action` the first that would have been searched.
      nodes: Positions visited, in all iterations.
      seconds: Wall-clock time.
      stopped: "depth", "nodes" or "seconds", the limit that ended the search, or "solved": nothing was left
        to look at, and the value is that of perfect play.
    """

    player: int
    action: int
    value: float
    scores: dict[int, float]
    upper_bounds: frozenset[int]
    principal_variation: tuple[int, ...]
    depth: int
    nodes: int
    seconds: float
    stopped: str


def position_of(state: Any, position_key: Callable[[Any], Hashable]) -> Hashable:
    """A state's key.

    Raises:
      ValueError: it cannot be hashed.
    """
    key = position_key(state)
    try:
        hash(key)
    except TypeError:
        raise ArgumentError(
            f"expected position_key to give what can be hashed, such as a string, got {shown(key)}"
        ) from None
    return key


def _check_search_state(state: Any, name: str) -> Any:
    checks.check_game(checks.check_state(state).get_game(), perfect=True)
    if state.current_player() < 0:
        what = "a terminal state" if state.is_terminal() else "a chance node"
        raise ArgumentError(f"expected a state where a player is to move, got {what}")
    return state


SearchState = Annotated[Any, checks.Check(_check_search_state)]
"""A state where a player is to move, of a game inside of the model and of perfect information."""


class OutOfBudget(Exception):
    """The budget has ended; its argument names the limit."""


class _Answer(NamedTuple):
    """One iteration's answer at the root: the best action, values to the mover, and best play."""

    action: int
    scores: Mapping[int, float] = MappingProxyType({})
    upper_bounds: frozenset[int] = frozenset()
    line: tuple[int, ...] = ()


class DepthFirstSearch(abc.ABC):
    """One search from one state. Made for one `run()`.

    `_horizon` counts what was evaluated before the end of the game: a subtree that leaves it as it was has
    been searched to the end. `_line` is best play according to the last call of `_value`.
    """

    def __init__(
        self,
        state: Any,
        budget: SearchBudget,
        evaluator: Evaluator | None,
        ordering: Ordering | None = None,
        position_key: Callable[[Any], Hashable] | None = None,
        iterative_deepening: bool = False,
        all_scores: bool = False,
    ) -> None:
        """Prepares the search.

        Args:
          state: where a player is to move.
          budget: with a limit in nodes or seconds, or without one in depth, the search deepens iteratively.
          evaluator: value of states at the horizon; None: half the sum of utilities, a draw.
          ordering: moves worth searching first; None: the game's order.
          position_key: by which what is known of positions is kept; None keeps nothing.
          iterative_deepening: whether to do so where only a depth is given.
          all_scores: whether to search every root move with a full window.

        Raises:
          ValueError: `position_key` gives what cannot be hashed.
        """
        if position_key is not None:
            position_of(state, position_key)
        self._state, self._budget = state, budget
        self._evaluator, self._ordering, self._key = evaluator, ordering, position_key
        self._game = state.get_game()
        self._sum = utility_sum(self._game)
        self._all_scores = all_scores
        self._deepens = (
            iterative_deepening
            or budget.depth is None
            or budget.nodes is not None
            or budget.seconds is not None
        )
        self._nodes = 0
        self._horizon = 0
        self._line: tuple[int, ...] = ()
        self._node_limit = sys.maxsize if budget.nodes is None else int(budget.nodes)
        self._stop_at = self._node_limit  # positions until the next look at the budget
        self._deadline = _INFINITY

    def run(self) -> MinimaxResult:
        """Searches until the budget ends or the game is solved."""
        start = time.perf_counter()
        if self._budget.seconds is not None:
            self._deadline, self._stop_at = start + self._budget.seconds, 0
        mover = self._state.current_player()
        order = list(legal_actions(self._state))
        if self._ordering is not None:
            order = self._in_order(self._state, order)
        answer = _Answer(order[0])
        deepest = sys.maxsize if self._budget.depth is None else int(self._budget.depth)
        depth, stopped = 1 if self._deepens else deepest, "depth"
        finished = 0
        room = sys.getrecursionlimit()
        try:
            while depth <= deepest:
                # A move and a chance node take five calls at most. The game's own code gets the usual room.
                sys.setrecursionlimit(max(room, min(5 * depth, 10**6) + 1000))
                before = self._horizon
                answer = self._iteration(mover, depth, order)
                finished = depth
                if self._horizon == before:
                    stopped = "solved"
                    break
                order = self._next_order(order, answer)
                depth += 1
        except OutOfBudget as end:
            stopped = end.args[0]
        finally:
            sys.setrecursionlimit(room)
        if finished:
            value = answer.scores[answer.action]
        else:
            value = self._evaluate(self._state)
            value = value if mover == 0 else -value
        return MinimaxResult(
            player=mover,
            action=answer.action,
            value=self._utility(mover, value),
            scores={a: self._utility(mover, score) for a, score in sorted(answer.scores.items())},
            upper_bounds=answer.upper_bounds,
            principal_variation=answer.line,
            depth=finished,
            nodes=self._nodes,
            seconds=time.perf_counter() - start,
            stopped=stopped,
        )

    # -- for the subclasses ------------------------------------------------------------------------

    @abc.abstractmethod
    def _value(self, child: Any, mover: int, depth: int, alpha: float, beta: float, has_rival: bool) -> float:
        """The value of a child of a node where `mover` is to move, to `mover`, and `depth` moves ahead.

        Exact where it lies between alpha and beta; else a bound on the same side. Leaves the best play
        from the child on in `_line`. has_rival: another child has been searched, and alpha is its value
        or more. Calls `_count` once for each position visited.
        """

    def _remember(  # noqa: B027 - nothing to do where there is no table
        self, mover: int, depth: int, value: float, action: int, solved: bool
    ) -> None:
        """Keeps each iteration's exact answer at the root."""

    def _lengthen(self, line: tuple[int, ...], depth: int) -> tuple[int, ...]:
        """Completes best play that a table look-up has cut short, as far as the budget goes."""
        return line

    def _count(self) -> None:
        """Counts one position.

        Raises:
          OutOfBudget: it is not to be visited any more.
        """
        if self._nodes >= self._stop_at:
            self._check_budget()
        self._nodes += 1

    def _check_budget(self) -> None:
        if self._nodes >= self._node_limit:
            raise OutOfBudget("nodes")
        if time.perf_counter() >= self._deadline:
            raise OutOfBudget("seconds")
        self._stop_at = min(self._node_limit, self._nodes + _BATCH)

    def _settle(self, state: Any, mover: int, depth: int) -> float:
        """Player 0's utility of a state that is over, at the horizon, or a chance node."""
        if mover == TERMINAL:
            return float(state.returns()[0])
        if mover == CHANCE and depth > 0:
            return self._expectation(state, depth)
        self._horizon += 1
        return self._evaluate(state)

    def _expectation(self, state: Any, depth: int) -> float:
        # Every outcome is searched with a full window. Cutting here (Star1) needs bounds on what an evaluator
        # may say, and adds up differently, so that answers would agree up to rounding only.
        total = 0.0
        for outcome, probability in chance_outcomes(state):
            total += probability * self._value(state.child(outcome), 0, depth, -_INFINITY, _INFINITY, False)
        self._line = ()
        return total

    def _evaluate(self, state: Any) -> float:
        if self._evaluator is None:
            return self._sum / 2.0
        value = self._evaluator(state)
        if type(value) is float and -_INFINITY < value < _INFINITY:  # without a call: searches ask very often
            return value
        return checks.check_evaluation(value, state, "evaluator")

    def _in_order(self, state: Any, actions: list[int]) -> list[int]:
        """The actions as the ordering has them."""
        assert self._ordering is not None
        answer = self._ordering(state, actions[:])
        try:  # without a call, as above; OpenSpiel's actions are sorted
            if type(answer) is list and sorted(answer) == actions and type(sum(answer)) is int:
                return answer[:]
        except TypeError:
            pass
        return checks.check_ranking(answer, actions, "ordering")

    # -- the root ----------------------------------------------------------------------------------

    def _iteration(self, mover: int, depth: int, order: list[int]) -> _Answer:
        """Searches all root moves."""
        self._count()
        before = self._horizon
        best, best_action = -_INFINITY, -1
        line: tuple[int, ...] = ()
        scores: dict[int, float] = {}
        bounds = set()
        for action in order:
            alpha = -_INFINITY if self._all_scores else best
            value = self._value(
                self._state.child(action), mover, depth - 1, alpha, _INFINITY, alpha > -_INFINITY
            )
            scores[action] = value
            if value <= alpha:
                bounds.add(action)
            if value > best or (self._all_scores and value == best and action < best_action):
                best, best_action, line = value, action, (action, *self._line)
        self._remember(mover, depth, best, best_action, self._horizon == before)
        return _Answer(best_action, scores, frozenset(bounds), self._lengthen(line, depth))

    def _next_order(self, order: list[int], answer: _Answer) -> list[int]:
        """Root moves for the next iteration: the best one first; by score where all are exact."""
        if self._all_scores:
            return sorted(order, key=lambda action: -answer.scores[action])
        return [answer.action, *(action for action in order if action != answer.action)]

    def _utility(self, mover: int, value: float) -> float:
        """A value inside the search as `mover`'s utility."""
        # + 0.0 makes a negated zero an ordinary one.
        return value + 0.0 if mover == 0 else self._sum + value


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
    return _Minimax(state, budget, evaluator, all_scores=True).run()


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
