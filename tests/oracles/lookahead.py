"""The oracle: the best commitment by trying out every optimal set of the follower.

The leader mixes over all of its pure strategies, with weights mu. Everything that the follower looks at, and
every payoff, is linear in mu, and is read off by walking OpenSpiel's states with pure strategies. For each
choice of what is optimal at every information set (of the follower, the actions, and by which plans inside
the lookahead) linear programs decide whether some mu brings just that about, and its value. Of several
types of the follower, each has its own information sets, and the same mu meets them all. Nothing here uses
the sequence form, and no case is left out but those that some of their information sets already rule out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyspiel
import scipy.optimize

_NONE = 1e-12

Row = tuple[np.ndarray, str]
"""float[p], with the kind of comparison to zero: "=", ">=" or ">"."""


class Oracle:
    """All that is linear in mu."""

    def __init__(self, game: pyspiel.Game, rational: int, lookahead: int, h: Callable[[Any], float]) -> None:
        self.rational, self.follower, self.lookahead, self.h = rational, 1 - rational, lookahead, h
        self.sets: tuple[dict[str, list[int]], ...] = ({}, {})
        self.members: dict[str, list[Any]] = {}
        self._collect(game.new_initial_state())
        self.pure = [self._pure(player) for player in (0, 1)]
        p, y = len(self.pure[rational]), len(self.pure[self.follower])
        self.payoff = np.zeros((p, y))  # the leader's utility by pure strategies
        # [I][a]: distinct vectors float[p], one for each plan inside the lookahead; [I]: float[p].
        self.values: dict[str, list[np.ndarray]] = {}
        self._pay(game.new_initial_state(), 1.0, np.ones(p), np.ones(y))
        for key, members in self.members.items():
            rows = []
            for action in self.sets[self.follower][key]:
                table = np.zeros((p, y))
                for state, chance, reach in members:
                    table += self._look(state.child(action), chance, reach, np.ones(y), lookahead - 1)
                rows.append(np.unique(np.round(table.T, 13), axis=0))
            self.values[key] = rows

    def _collect(self, state: Any) -> None:
        if not state.is_terminal():
            player = state.current_player()
            if player >= 0:
                self.sets[player][_key(state)] = state.legal_actions()
            for action in state.legal_actions():
                self._collect(state.child(action))

    def _pure(self, player: int) -> list[dict[str, int]]:
        keys = list(self.sets[player])
        return [dict(zip(keys, c, strict=True)) for c in itertools.product(*self.sets[player].values())]

    def _takes(self, player: int, state: Any, action: int) -> np.ndarray:
        return np.array([float(pure[_key(state)] == action) for pure in self.pure[player]])

    def _moves(self, state: Any) -> Iterator[tuple[Any, float, Any, Any]]:
        """Each successor, with what its move multiplies chance, leader and follower with."""
        player = state.current_player()
        if player == pyspiel.PlayerId.CHANCE:
            for action, chance in state.chance_outcomes():
                yield state.child(action), chance, 1.0, 1.0
        else:
            for action in state.legal_actions():
                takes = self._takes(player, state, action)
                own = player == self.rational
                yield state.child(action), 1.0, takes if own else 1.0, 1.0 if own else takes

    def _pay(self, state: Any, chance: float, leads: np.ndarray, follows: np.ndarray) -> None:
        if state.is_terminal():
            self.payoff += chance * state.returns()[self.rational] * np.outer(leads, follows)
            return
        if state.current_player() == self.follower:
            self.members.setdefault(_key(state), []).append((state, chance, leads))
        for child, odds, lead, follow in self._moves(state):
            self._pay(child, chance * odds, leads * lead, follows * follow)

    def _look(
        self, state: Any, chance: float, leads: np.ndarray, follows: np.ndarray, moves: int
    ) -> np.ndarray:
        if moves == 0 or state.is_terminal():
            return chance * self.h(state) * np.outer(leads, follows)
        return np.asarray(
            sum(
                self._look(child, chance * odds, leads * lead, follows * follow, moves - 1)
                for child, odds, lead, follow in self._moves(state)
            )
        )

    def best(self, tie_breaking: str) -> float:
        """Return the supremum, with ties by the order of the actions where they are static."""
        return best_of_types([(self, tie_breaking)], [1.0])[0]

    def cases(self, key: str, tie_breaking: str) -> Iterator[tuple[list[int], list[Row]]]:
        """Yield sets of actions that may be optimal at an information set, with rows "=", ">=", ">" zero."""
        table = self.values[key]
        count = len(table)
        sizes = range(1, count + 1) if tie_breaking == "adversarial" else [1]
        for chosen in (c for size in sizes for c in itertools.combinations(range(count), size)):
            for plans in itertools.product(*(range(len(table[a])) for a in chosen)):
                first = table[chosen[0]][plans[0]]
                rows = [(table[a][plan] - first, "=") for a, plan in zip(chosen, plans, strict=True)][1:]
                for a in range(count):
                    kind = ">="
                    if a not in chosen and (
                        tie_breaking == "adversarial" or (tie_breaking == "static" and a < chosen[0])
                    ):
                        kind = ">"
                    rows += [(first - other, kind) for other in table[a]]
                actions = self.sets[self.follower][key]
                yield [actions[a] for a in chosen], rows

    def replies(self, optimal: dict[str, list[int]]) -> np.ndarray:
        """Return the leader's payoff by each reply of pure optimal actions: float[replies, p]."""
        fits = [
            k
            for k, pure in enumerate(self.pure[self.follower])
            if all(pure[key] in actions for key, actions in optimal.items())
        ]
        return np.unique(self.payoff[:, fits].T, axis=0)


# -- the search ------------------------------------------------------------------------------------


def best_of_types(types: Sequence[tuple[Oracle, str]], weights: Sequence[float]) -> tuple[float, float]:
    """Return the suprema against types with their rules for ties: on average, and of the worst.

    types: of the same game and player.
    """
    mean = worst = -np.inf
    at = [(number, key) for number, (oracle, _) in enumerate(types) for key in oracle.values]
    p = len(types[0][0].payoff)

    def go(depth: int, rows: list[Row], mu: np.ndarray, optimal: list[dict[str, list[int]]]) -> None:
        nonlocal mean, worst
        if depth == len(at):
            replies = [oracle.replies(each) for (oracle, _), each in zip(types, optimal, strict=True)]
            assert all(
                rule == "adversarial" or len(own) == 1 for (_, rule), own in zip(types, replies, strict=True)
            )
            mean = max(mean, _worth(rows, replies, weights))
            worst = max(worst, _worth(rows, replies, None)) if len(types) > 1 else mean
            return
        number, key = at[depth]
        oracle, rule = types[number]
        for actions, more in oracle.cases(key, rule):
            # Most of them need no linear program: no mu at all satisfies a row, or this one all of them.
            if not all(_may_hold(*row) for row in more):
                continue
            witness = mu if all(_holds(*row, mu) for row in more) else _witness(rows + more, p)
            if witness is not None:
                now = [each | {key: actions} if k == number else each for k, each in enumerate(optimal)]
                go(depth + 1, rows + more, witness, now)

    go(0, [], np.full(p, 1.0 / p), [{} for _ in types])
    return mean, worst


def _witness(rows: list[Row], p: int) -> np.ndarray | None:
    """Return a mu that satisfies all rows, the strict ones strictly; None if there is none."""
    strict = [row for row, kind in rows if kind == ">"]
    if any(np.abs(row).max() < _NONE for row in strict):
        return None
    low, equal = _matrices(rows, p + 1)
    at = [k for k, (_, kind) in enumerate(r for r in rows if r[1] != "=") if kind == ">"]
    for k in at:
        low[k, -1] = np.abs(low[k, :-1]).max()
    result = _greatest(low, equal, np.array([1.0]), 1.0)
    return result.x[:-1] if result.status == 0 and (not strict or -result.fun > 1e-9) else None


def _worth(rows: list[Row], replies: list[np.ndarray], weights: Sequence[float] | None) -> float:
    """Return the greatest mean, or least, over the types of the least over their replies."""
    p = replies[0].shape[1]
    costs = np.array([1.0] if weights is None else weights)
    low, equal = _matrices(rows, p + len(costs))
    for number, own in enumerate(replies):
        column = np.zeros((len(own), len(costs)))
        column[:, 0 if weights is None else number] = 1.0
        low = np.vstack([low, np.hstack([-own, column])])
    result = _greatest(low, equal, costs, None)
    assert result.status == 0, result.message
    return -float(result.fun)


def _greatest(low: np.ndarray, equal: np.ndarray, costs: np.ndarray, most: float | None) -> Any:
    """Return the greatest of costs times the last variables, with mu before them: low <= 0, equal = 0."""
    p = equal.shape[1] - len(costs)
    equal = np.vstack([equal, np.append(np.ones(p), np.zeros(len(costs)))])
    return scipy.optimize.linprog(
        np.append(np.zeros(p), -costs),
        A_ub=low if len(low) else None,
        b_ub=np.zeros(len(low)) if len(low) else None,
        A_eq=equal,
        b_eq=np.append(np.zeros(len(equal) - 1), 1.0),
        bounds=[(0.0, 1.0)] * p + [(None if most is None else -most, most)] * len(costs),
    )


def _may_hold(row: np.ndarray, kind: str) -> bool:
    """Return whether a row alone can be satisfied, by more than a linear program's tolerance."""
    if kind == ">":
        return bool(row.max() > 0.0)
    return bool(row.max() > -1e-6 and (kind == ">=" or row.min() < 1e-6))


def _holds(row: np.ndarray, kind: str, mu: np.ndarray) -> bool:
    """Return whether mu satisfies a row, a strict one clearly."""
    found = float(row @ mu)
    if kind == "=":
        return abs(found) < 1e-12
    return found >= (1e-6 * float(np.abs(row).max()) + _NONE if kind == ">" else 0.0)


def _matrices(rows: list[Row], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (-d <= 0 for ">" and ">=", d = 0 for "="), with zeros up to the width."""

    def matrix(kinds: str, sign: float) -> np.ndarray:
        found = [
            np.append(sign * row, np.zeros(width - len(row)))
            for row, kind in rows
            if (kind == "=") == (kinds == "=")
        ]
        return np.array(found) if found else np.zeros((0, width))

    return matrix(">", -1.0), matrix("=", 1.0)


def _key(state: Any) -> str:
    kind = state.get_game().get_type()
    return state.information_state_string() if kind.provides_information_state_string else state.history_str()
