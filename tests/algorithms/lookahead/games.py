"""Games and evaluations for the tests of limited lookahead: the paper's, and random ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

Clause = tuple[int, ...]
"""Literals: v + 1 for variable v, -(v + 1) for its negation."""


def figure_1(a: float, b: float) -> tuple[pyspiel.Game, Callable[[Any], float]]:
    """The paper's Figure 1, with numbers of our own: one information set of the follower, at depth 1.

    Player 0 goes left or right; player 1, who does not see which, stops (a leaf: 1 or 0 to it) or goes on, to
    nodes of player 0, which the evaluation gives the values a and b.
    """
    lines = [
        'EFG 2 R "figure 1" { "rational" "limited" }',
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
    ]
    guess = {(0, 3): a, (1, 3): b}  # actions are numbered by label: l, r, stop, on, x, y

    def h(state: Any) -> float:
        return state.returns()[1] if state.is_terminal() else guess.get(tuple(state.history()), 0.0)

    return pyspiel.load_efg_game("\n".join(lines) + "\n"), h


def narrow(height: float) -> tuple[pyspiel.Game, Callable[[Any], float]]:
    """A game whose follower has to be moved by small differences between evaluations of about `height`.

    Player 1 goes left or right, and player 0 sees it and answers. After left it earns 1, 2 or, where player 1
    looks forward to 2 more, -2; so the second answer is worth most, with as little of the third as it takes.
    """
    lines = ['EFG 2 R "narrow" { "rational" "limited" }', 'p "" 2 1 "" { "left" "right" } 0']
    for number, earned in ((1, (1, 2, -2)), (2, (0, 1, 0))):
        lines.append(f'p "" 1 {number} "" {{ "x" "y" "z" }} 0')
        lines += [f't "" {3 * number + k} "" {{ {utility} 0 }}' for k, utility in enumerate(earned)]
    hopes = {(0, 4): 2.0, (1, 3): 2.0}  # actions are numbered by label: left, right, x, y, z
    return pyspiel.load_efg_game(
        "\n".join(lines) + "\n"
    ), lambda state: height + hopes.get(tuple(state.history()), 0.0)


def maxsat(clauses: Sequence[Clause], variables: int) -> int:
    """The most clauses that an assignment satisfies, by trying all."""
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


class _Writer:
    """An EFG file line by line."""

    def __init__(self) -> None:
        self.lines = ['EFG 2 R "reduction" { "rational" "limited" }']
        self.outcomes = self.chances = 0

    def chance(self, count: int) -> None:
        self.chances += 1
        odds = " ".join(f'"{k}" 1/{count}' for k in range(count))
        self.lines.append(f'c "" {self.chances} "" {{ {odds} }} 0')

    def move(self, player: int, infoset: int, actions: Sequence[str]) -> None:
        labels = " ".join(f'"{action}"' for action in actions)
        self.lines.append(f'p "" {player} {infoset} "" {{ {labels} }} 0')

    def leaf(self, rational: float, limited: float) -> None:
        self.outcomes += 1
        self.lines.append(f't "" {self.outcomes} "" {{ {rational} {limited} }}')

    def game(self) -> pyspiel.Game:
        return pyspiel.load_efg_game("\n".join(self.lines) + "\n")


def theorem_1(clauses: Sequence[Clause]) -> pyspiel.Game:
    """Clause nodes of the follower, then variables of the leader; the evaluation is to be constant."""
    writer = _Writer()
    writer.chance(len(clauses))
    number = _numbers(clauses)
    for c, clause in enumerate(clauses):
        writer.move(2, c + 1, [f"literal {literal}" for literal in clause])
        for literal in clause:
            writer.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                writer.leaf(float(value == (literal > 0)), 0.0)
    return writer.game()


def theorem_2(clauses: Sequence[Clause]) -> pyspiel.Game:
    """The same with an action "unsatisfied"; for lookahead 2 and utilities as evaluation."""
    writer = _Writer()
    writer.chance(len(clauses))
    number = _numbers(clauses)
    for c, clause in enumerate(clauses):
        writer.move(2, c + 1, ["unsatisfied", *(f"literal {literal}" for literal in clause)])
        writer.leaf(0.0, 2 / 3)
        for literal in clause:
            writer.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                writer.leaf(1.0, float(value == (literal > 0)))
    return writer.game()


def theorem_3(clauses: Sequence[Clause]) -> pyspiel.Game:
    """Variables of the leader, then information sets of six nodes; for lookahead 1 and utilities."""
    writer = _Writer()
    writer.chance(3 * len(clauses))
    number = _numbers(clauses)
    for c, clause in enumerate(clauses):
        for literal in clause:
            writer.move(1, number[abs(literal)], ["false", "true"])
            for value in (False, True):
                writer.move(2, c + 1, ["unsatisfied", *(f"variable {abs(other)}" for other in clause)])
                writer.leaf(0.0, 2 / 3)
                for other in clause:
                    hit = other == literal and value == (literal > 0)
                    writer.leaf(1.0, 3.0 * hit)
    return writer.game()


def _numbers(clauses: Sequence[Clause]) -> dict[int, int]:
    """Information sets of the variables that occur, numbered without gaps."""
    used = sorted({abs(literal) for clause in clauses for literal in clause})
    return {variable: k + 1 for k, variable in enumerate(used)}


def utility_of(player: int) -> Callable[[Any], float]:
    """A player's utility at leaves, zero elsewhere."""
    return lambda state: state.returns()[player] if state.is_terminal() else 0.0


def random_evaluation(seed: int, coarse: bool) -> Callable[[Any], float]:
    """Numbers by history; coarse ones are 0, 1 or 2, so that there are ties of every kind."""

    def h(state: Any) -> float:
        rng = np.random.default_rng([seed, *(action + 1 for action in state.history())])
        return float(rng.integers(0, 3)) if coarse else float(rng.normal())

    return h
