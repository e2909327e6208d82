"""Games and evaluations for the tests of limited lookahead: the paper's, and random ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

from tests.oracles.games import EfgText
from tests.oracles.trees import efg

Clause = tuple[int, ...]
"""Literals: v + 1 for variable v, -(v + 1) for its negation."""


def figure_1(a: float, b: float) -> tuple[pyspiel.Game, Callable[[Any], float]]:
    """Return the paper's Figure 1, with numbers of our own: one information set of the follower, at depth 1.

    Player 0 goes left or right; player 1, who does not see which, stops (a leaf: 1 or 0 to it) or goes on, to
    nodes of player 0, which the evaluation gives the values a and b.
    """
    game = efg(
        'p "" 1 1 "" { "l" "r" } 0',
        'p "" 2 1 "" { "stop" "on" } 0',
        't "" 1 "" { 0 1 }',
        'p "" 1 2 "" { "x" "y" } 0',
        't "" 2 "" { 5 0 }',
        't "" 3 "" { 1 9 }',
        'p "" 2 1 "" { "stop" "on" } 0',
        't "" 4 "" { 0 0 }',
        'p "" 1 3 "" { "x" "y" } 0',
        't "" 5 "" { 4 2 }',
        't "" 6 "" { 2 3 }',
    )
    guess = {(0, 3): a, (1, 3): b}  # actions are numbered by label: l, r, stop, on, x, y

    def h(state: Any) -> float:
        return state.returns()[1] if state.is_terminal() else guess.get(tuple(state.history()), 0.0)

    return game, h


def narrow(height: float) -> tuple[pyspiel.Game, Callable[[Any], float]]:
    """A game whose follower has to be moved by small differences between evaluations of about `height`.

    Player 1 goes left or right, and player 0 sees it and answers. After left it earns 1, 2 or, where player 1
    looks forward to 2 more, -2; so the second answer is worth most, with as little of the third as it takes.
    """
    text = EfgText()
    text.move(2, 1, ["left", "right"])
    for number, earned in ((1, (1, 2, -2)), (2, (0, 1, 0))):
        text.move(1, number, "xyz")
        for utility in earned:
            text.leaf(utility, 0)
    hopes = {(0, 4): 2.0, (1, 3): 2.0}  # actions are numbered by label: left, right, x, y, z
    return text.game(), lambda state: height + hopes.get(tuple(state.history()), 0.0)


def held_at_a_tie() -> tuple[pyspiel.Game, Callable[[Any], float], Callable[[Any], float]]:
    """Return a game with two evaluations: the first has "still" for best only where the second has a tie.

    Player 0 goes left or right, and player 1, who does not see it, follows, evades, or stays still. That is
    worth 2, 0 and 10 to player 0, wherever it has gone.
    """
    text = EfgText()
    text.move(1, 1, ["left", "right"])
    for _ in range(2):
        text.move(2, 1, ["follow", "evade", "still"])
        for earned in (2, 0, 10):
            text.leaf(earned, 0)

    def evaluation(still: float) -> Callable[[Any], float]:
        # Actions are numbered by label: left, right, follow, evade, still.
        hopes = {(0, 2): 1.0, (1, 2): -1.0, (0, 3): -1.0, (1, 3): 1.0, (0, 4): still, (1, 4): still}
        return lambda state: hopes.get(tuple(state.history()), 0.0)

    return text.game(), evaluation(0.0), evaluation(-5.0)


def maxsat(clauses: Sequence[Clause], variables: int) -> int:
    """Return the most clauses that an assignment satisfies, by trying all."""
    return max(
        sum(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)
        for values in itertools.product([False, True], repeat=variables)
    )


def random_formula(seed: int, variables: int, clauses: int) -> list[Clause]:
    rng = np.random.default_rng(seed)
    return [
        tuple(
            int(v + 1) * int(rng.choice([-1, 1]))
            for v in rng.choice(variables, size=3, replace=False).tolist()
        )
        for _ in range(clauses)
    ]


def clauses_first(clauses: Sequence[Clause], unsatisfied: bool) -> pyspiel.Game:
    """Clause nodes of the follower, then variables of the leader.

    Theorem 1's game, for a constant evaluation; and Theorem 2's, where an action "unsatisfied" is added, for
    lookahead 2 and utilities as evaluation.
    """
    text, number = EfgText(), _numbers(clauses)
    text.chance(_drawn(len(clauses)))
    for c, clause in enumerate(clauses):
        literals = [f"literal {literal}" for literal in clause]
        text.move(2, c + 1, ["unsatisfied", *literals] if unsatisfied else literals)
        if unsatisfied:
            text.leaf(0.0, 2 / 3)
        for literal in clause:
            text.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                hit = float(value == (literal > 0))
                text.leaf(*((1.0, hit) if unsatisfied else (hit, 0.0)))
    return text.game()


def theorem_3(clauses: Sequence[Clause]) -> pyspiel.Game:
    """Variables of the leader, then information sets of six nodes; for lookahead 1 and utilities."""
    text, number = EfgText(), _numbers(clauses)
    text.chance(_drawn(3 * len(clauses)))
    for c, clause in enumerate(clauses):
        for literal in clause:
            text.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                text.move(2, c + 1, ["unsatisfied", *(f"variable {abs(other)}" for other in clause)])
                text.leaf(0.0, 2 / 3)
                for other in clause:
                    hit = other == literal and value == (literal > 0)
                    text.leaf(1.0, 3.0 * hit)
    return text.game()


def _drawn(count: int) -> dict[int, str]:
    return dict.fromkeys(range(count), f"1/{count}")


def _numbers(clauses: Sequence[Clause]) -> dict[int, int]:
    """Information sets of the variables that occur, numbered without gaps."""
    used = sorted({abs(literal) for clause in clauses for literal in clause})
    return {variable: k + 1 for k, variable in enumerate(used)}


def utility_of(player: int) -> Callable[[Any], float]:
    """Return a player's utility at leaves, zero elsewhere."""
    return lambda state: state.returns()[player] if state.is_terminal() else 0.0


def random_evaluation(seed: int, coarse: bool) -> Callable[[Any], float]:
    """Numbers by history; coarse ones are 0, 1 or 2, so that there are ties of every kind."""

    def h(state: Any) -> float:
        rng = np.random.default_rng([seed, *(action + 1 for action in state.history())])
        return float(rng.integers(0, 3)) if coarse else float(rng.normal())

    return h
