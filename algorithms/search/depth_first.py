"""Depth-first search with a budget: minimax, alpha-beta (fail-soft) and principal variation search.

A search values each move at the root, at one depth or at depths 1, 2, ... (iterative deepening: what one
iteration learns orders the moves of the next, and an answer is at hand whenever the budget ends). An
iteration that the budget interrupts is thrown away.

Values inside a search are player 0's utility, negated where the mover is player 1. So they change sign
where the mover changes, not from ply to ply. Where there are chance nodes this is expectiminimax: a chance
node is worth the expectation of its children, and takes no depth.

**Alpha-beta.** The value, to the player to move, of a position is sought within a window (alpha, beta). A
move that is worth beta or more ends it, since the opponent will not let it come to that. What is returned is
the best value seen (fail-soft): exact inside the window, else a bound that may be tighter than the window's.

The table keeps, for each position and player to move, the depth searched, a value, whether it is exact or a
lower or an upper bound, the best move, and whether the subtree was searched to the end of the game. A value
is used where it was searched to the same depth, or to the end within less: a deeper heuristic value is not
the value at this depth, and would make the answer depend on the order of search. The best move is searched
first at any depth. So all variants return plain minimax's value.

Principal variation search expects the first move to be best, and asks of the others only whether they are
better, with a window that holds no number; one that is better is searched again. Plain minimax, the yardstick
for the others, raises no alpha.

Searches make a new state for each move and undo none. From Python, applying and undoing a move takes 0.9
times as long in tic-tac-toe and breakthrough, and 4 times in chess; many games cannot undo at all.

Source: `game_search`, "Minimax" and "Negamax", "Alpha-Beta" to "Alpha-Beta Variants in Practice". What slips
in its pseudocode, as we have it:

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
  * `-color` at every ply is wrong where a player moves twice in a row.

Deviation: a child that is a chance node gets the full window at once, and so do the outcomes below it, since
a null window would not save anything there.

Cost: between b^(d/2) and b^d positions, for b moves and depth d; minimax looks at all of them. A table entry
takes some 200 bytes; there is one a position searched.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown, utility_sum
from precomp_games._support.game_facts import GameFacts, chance_outcomes, legal_actions
from precomp_games._support.results import Result
from precomp_games.tree.facts import CHANCE, TERMINAL

Evaluator = Callable[[Any], float]
"""A state's value to player 0, in the game's utility; finite. It may be asked about chance nodes."""

Ordering = Callable[[Any, list[int]], Sequence[int]]
"""(state, its legal actions) -> the same actions, those worth searching first in front."""

_BATCH = 16  # positions between two looks at the clock
_INFINITY = math.inf
_EXACT, _LOWER, _UPPER = 0, 1, 2


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
      player: The player to move at the root.
      action: Its best move; of equal ones, the first searched (the least action where all scores are
        exact).
      value: The root's value to `player`.
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
    """Return a state's key.

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


@public
def minimax(state: SearchState, budget: SearchBudget, *, evaluator: Evaluator | None = None) -> MinimaxResult:
    """Search every position within the budget: player 0 maximizes its utility, player 1 minimizes it.

    Args:
      state: of a two-player game of zero or constant sum and perfect information, a player to move.
      budget: with a limit in nodes or seconds, or without one in depth, depths 1, 2, ... are tried.
      evaluator: player 0's utility of a state at the horizon; None: a draw, half the sum of utilities.

    Raises:
      ValueError: an argument is not as above, or the evaluator's answer is not finite.
    """
    return _Search(state, budget, evaluator, all_scores=True, prunes=False).run()


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
    """Search for plain minimax's value with fewer positions.

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
    return _Search(state, budget, evaluator, ordering, position_key, iterative_deepening, all_scores).run()


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
    """Search by alpha-beta that tests whether later moves are better. Pays where moves are well ordered.

    Arguments, result and errors as for `alpha_beta`.
    """
    options = (ordering, position_key, iterative_deepening, all_scores)
    return _Search(state, budget, evaluator, *options, null_windows=True).run()


_Entry = tuple[int, int, float, int, bool]
"""Depth searched, kind of bound, value to the mover, best action, whether searched to the end."""

_Answer = tuple[int, dict[int, float], frozenset[int], tuple[int, ...]]
"""One iteration's at the root: the best action, values to the mover, those that are bounds, and best play."""


class _OutOfBudgetError(Exception):
    """The budget has ended; its argument names the limit."""


class _Search:
    """A search from one state. Made for one `run()`.

    `_horizon` counts evaluations before the end of the game: a subtree that leaves it unchanged has been
    searched to the end. `_line` is best play according to the last call of `_value` or `_visit`.
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
        *,
        prunes: bool = True,
        null_windows: bool = False,
    ) -> None:
        """Prepare the search: see `alpha_beta` for all but the last two arguments.

        `prunes`: whether values narrow the window. `null_windows`: whether later moves are only asked whether
        they are better.

        Raises:
          ValueError: `position_key` gives what cannot be hashed.
        """
        if position_key is not None:
            position_of(state, position_key)
        self._state, self._budget = state, budget
        self._evaluator, self._ordering, self._key = evaluator, ordering, position_key
        self._all_scores, self._prunes, self._null_windows = all_scores, prunes, null_windows
        self._sum = utility_sum(state.get_game())
        self._facts = GameFacts(state.get_game(), bounded=False)
        self._deepens = iterative_deepening or (budget.nodes, budget.seconds) != (None, None)
        self._nodes = self._horizon = 0
        self._line: tuple[int, ...] = ()
        self._node_limit = sys.maxsize if budget.nodes is None else int(budget.nodes)
        self._stop_at = self._node_limit  # positions until the next look at the budget
        self._deadline = _INFINITY
        # By player to move: a board does not always show who it is. Of evaluations, chance is the last.
        self._tables: tuple[dict[Hashable, _Entry], dict[Hashable, _Entry]] = ({}, {})
        self._evaluations: tuple[dict[Hashable, float], ...] = ({}, {}, {})

    def run(self) -> MinimaxResult:
        """Search until the budget ends or the game is solved."""
        start = time.perf_counter()
        if self._budget.seconds is not None:
            self._deadline, self._stop_at = start + self._budget.seconds, 0
        mover = self._state.current_player()
        order = list(legal_actions(self._state))
        if self._ordering is not None:
            order = self._in_order(self._state, order)
        answer: _Answer = (order[0], {}, frozenset(), ())
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
                action, scores = answer[:2]
                if self._all_scores:
                    order = sorted(order, key=lambda a, scores=scores: -scores[a])  # type: ignore[misc]
                else:
                    order = [action, *(other for other in order if other != action)]
                depth += 1
        except _OutOfBudgetError as end:
            stopped = end.args[0]
        finally:
            sys.setrecursionlimit(room)
        action, scores, bounds, line = answer
        value = scores[action] if finished else self._to(mover, self._evaluate(self._state))
        return MinimaxResult(
            player=mover,
            action=action,
            value=self._utility(mover, value),
            scores={a: self._utility(mover, score) for a, score in sorted(scores.items())},
            upper_bounds=bounds,
            principal_variation=line,
            depth=finished,
            nodes=self._nodes,
            seconds=time.perf_counter() - start,
            stopped=stopped,
        )

    # -- the root ----------------------------------------------------------------------------------

    def _iteration(self, mover: int, depth: int, order: list[int]) -> _Answer:
        """Search all root moves."""
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
        if self._key is None:
            return best_action, scores, frozenset(bounds), line
        solved = self._horizon == before
        self._tables[mover][self._key(self._state)] = (depth, _EXACT, best, best_action, solved)
        return best_action, scores, frozenset(bounds), self._lengthen(line, depth)

    def _lengthen(self, line: tuple[int, ...], depth: int) -> tuple[int, ...]:
        """Complete best play that a table look-up has cut short, as far as the budget goes."""
        state = self._state.clone()
        for action in line:
            state.apply_action(action)
        while len(line) < depth and (mover := state.current_player()) >= 0:
            # Exact entries answer at once; what has been overwritten since is searched again.
            try:
                self._count()
                self._visit(state, mover, depth - len(line), -_INFINITY, _INFINITY)
            except _OutOfBudgetError:
                break
            for action in self._line:
                state.apply_action(action)
            line = (*line, *self._line)
        return line

    @staticmethod
    def _to(mover: int, value: float) -> float:
        """Return player 0's utility to `mover`; changes it back as well."""
        return value if mover == 0 else -value

    def _utility(self, mover: int, value: float) -> float:
        """Return a value inside the search as `mover`'s utility."""
        # + 0.0 makes a negated zero an ordinary one.
        return value + 0.0 if mover == 0 else self._sum + value

    # -- below it ------------------------------------------------------------------------------------

    def _count(self) -> None:
        """Count one position.

        Raises:
          _OutOfBudgetError: it is not to be visited any more.
        """
        if self._nodes >= self._stop_at:
            self._check_budget()
        self._nodes += 1

    def _check_budget(self) -> None:
        if self._nodes >= self._node_limit:
            raise _OutOfBudgetError("nodes")
        if time.perf_counter() >= self._deadline:
            raise _OutOfBudgetError("seconds")
        self._stop_at = min(self._node_limit, self._nodes + _BATCH)

    def _value(self, child: Any, mover: int, depth: int, alpha: float, beta: float, has_rival: bool) -> float:
        """Return a child's value to `mover`, who is to move at its parent, searched `depth` moves ahead.

        Exact where it lies between alpha and beta; else a bound on the same side. has_rival: another child
        has been searched, and alpha is its value or more.
        """
        if self._nodes >= self._stop_at:  # `_count`, without a call for every position
            self._check_budget()
        self._nodes += 1
        player = child.current_player()
        if not 0 <= player <= 1 or depth == 0:
            self._line = ()
            return self._to(mover, self._settle(child, player, depth))
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
        """Return the value to `mover`, who is to move, `depth` >= 1 moves ahead."""
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
                if value > low and self._prunes:
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

    def _settle(self, state: Any, mover: int, depth: int) -> float:
        """Return player 0's utility of a state that is over, at the horizon, or a chance node."""
        if mover == TERMINAL:
            return self._facts.utilities(state)[0]
        if not 0 <= mover <= 1 and self._facts.mover(state) == CHANCE and depth > 0:
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
        if self._key is None:
            return checks.check_evaluation(self._evaluator(state), state, "evaluator")
        known, key = self._evaluations[int(state.current_player())], self._key(state)
        value = known.get(key)
        if value is None:
            value = known[key] = checks.check_evaluation(self._evaluator(state), state, "evaluator")
        return value

    def _in_order(self, state: Any, actions: list[int]) -> list[int]:
        """Return the actions as the ordering has them."""
        assert self._ordering is not None
        answer = self._ordering(state, actions[:])
        try:  # without a call, as above; OpenSpiel's actions are sorted
            if type(answer) is list and sorted(answer) == actions and type(sum(answer)) is int:
                return answer[:]
        except TypeError:
            pass
        return checks.check_ranking(answer, actions, "ordering")
