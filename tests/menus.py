"""The oracle of the meta-game with menus: both players' sets with choices, played out on OpenSpiel's states.

A *choice* says which entry of its menu a player memorizes, at each information state of a set. Nothing here
uses the library's tree; menus are asked state by state.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyspiel
from scipy.optimize import linprog

from precomp_games import HistoryTree
from tests.history_tree.cases import uneven_efg
from tests.random_games import random_efg, random_menu, random_policy, random_tree
from tests.reference import information_state

MOST_PAIRS = 40_000

Choice = dict[str, int]


def rows(given: Any, state: Any) -> list[dict[int, float]]:
    """The entries of a menu, or of a policy as a menu of one."""
    if not hasattr(given, "entries_batch"):
        return [given(state)]
    return [{e: 1.0} if isinstance(e, int) else dict(e) for e in given.entries_batch([state])[0]]


class Side:
    """What a player may memorize: its information states with their entries, and all its choices.

    kept: the names of those that count, all by default.
    """

    def __init__(self, game: pyspiel.Game, player: int, given: Any, kept: Any = None) -> None:
        self.game, self.player, self._kept = game, player, kept
        self.entries: dict[str, list[dict[int, float]]] = {}
        self._following: dict[tuple[str, int] | None, list[str]] = {}
        self._walk(game.new_initial_state(), None, given)

    def _walk(self, state: Any, last: tuple[str, int] | None, given: Any) -> None:
        if state.is_terminal():
            return
        own = state.current_player() == self.player
        if own:
            name = information_state(self.game, state, self.player)
            if name not in self.entries:
                self.entries[name] = rows(given, state)
                if self._kept is None or name in self._kept:
                    self._following.setdefault(last, []).append(name)
        for action in state.legal_actions():
            self._walk(state.child(action), (name, action) if own else last, given)

    def _next(self, name: str, entry: dict[int, float]) -> list[str]:
        return [n for action, p in entry.items() if p > 0.0 for n in self._following.get((name, action), [])]

    def count(self, names: list[str] | None = None) -> int:
        names = self._following.get(None, []) if names is None else names
        return math.prod(
            1 + sum(self.count(self._next(name, entry)) for entry in self.entries[name]) for name in names
        )

    def choices(self, names: list[str] | None = None) -> list[Choice]:
        """All of them: at each of these states nothing, or an entry with choices at what follows it."""
        names = self._following.get(None, []) if names is None else names
        options = [
            [{}]
            + [
                {name: k} | below
                for k, entry in enumerate(self.entries[name])
                for below in self.choices(self._next(name, entry))
            ]
            for name in names
        ]
        return [{k: v for part in mix for k, v in part.items()} for mix in itertools.product(*options)]


def payoffs(
    game: pyspiel.Game, sides: list[Side], choices: list[list[Choice]], sigma: Any, penalties: Any
) -> np.ndarray:
    """Player 0's meta-game utility for each pair of choices: a sum over all ends of the game."""
    matrix = np.zeros(tuple(map(len, choices)))

    def walk(state: Any, chance: float, weights: list[np.ndarray]) -> None:
        if state.is_terminal():
            matrix[...] += chance * state.returns()[0] * np.outer(*weights)
        elif state.is_chance_node():
            for action, p in state.chance_outcomes():
                walk(state.child(action), chance * p, weights)
        else:
            i = state.current_player()
            name, play = information_state(game, state, i), sigma[i](state)
            entries = sides[i].entries[name]
            for action in state.legal_actions():
                played = np.array(
                    [(entries[c[name]] if name in c else play).get(action, 0.0) for c in choices[i]]
                )
                if played.any():
                    part = list(weights)
                    part[i] = part[i] * played
                    walk(state.child(action), chance, part)

    walk(game.new_initial_state(), 1.0, [np.ones(len(c)) for c in choices])
    sizes = [np.array([len(c) for c in chosen]) for chosen in choices]
    costs = [np.where(s > 0, s * np.array(p), 0.0) for s, p in zip(sizes, penalties, strict=True)]
    return matrix - costs[0][:, None] + costs[1][None, :]


def matrix_value(matrix: np.ndarray, sizes: Any = None, budgets: Any = (None, None)) -> float:
    """The value of a matrix game for the player of rows.

    budgets: each player's, where it mixes rows or columns of such sizes on average; None where it is free to.
    """
    rows, columns = matrix.shape
    first, second = sizes if sizes is not None else (np.zeros(rows), np.zeros(columns))
    # max v - mu B_1 over x, v, mu >= 0: v <= x'A_j + mu w_j for each column j, and sum w x <= B_0
    result = linprog(
        np.concatenate([np.zeros(rows), [-1.0, budgets[1] or 0.0]]),
        A_ub=np.vstack(
            [
                np.column_stack([-matrix.T, np.ones(columns), -second]),
                np.concatenate([first if budgets[0] is not None else np.zeros(rows), [0.0, 0.0]]),
            ]
        ),
        b_ub=np.append(np.zeros(columns), budgets[0] or 0.0),
        A_eq=[np.concatenate([np.ones(rows), [0.0, 0.0]])],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None), (0.0, None if budgets[1] is not None else 0.0)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return float(-result.fun)


def menu_case(kind: str, seed: int) -> tuple[pyspiel.Game, tuple[Any, Any], tuple[Any, Any]]:
    """(game, sigma_pre, sigma) of a random game; one player in four has a policy for its menu."""
    support = ("full", "partial", "pure")[seed % 3]
    by = "history" if kind == "tree" else "infoset"
    if kind == "tree":
        game = random_tree(seed, depth=3 + seed % 2, actions=2 + (seed // 2) % 2)
    elif kind == "efg":
        game = random_efg(seed, depth=3, actions=2 + seed % 2)
    else:
        game = uneven_efg(seed)
    kinds = [by, "or_nothing" if kind == "tree" and seed % 5 == 0 else by]
    pre: Any = tuple(
        random_policy(4 * seed + i, support, by)
        if (seed + 3 * i) % 4 == 0
        else random_menu(4 * seed + i, 1 + (seed + i) % 3, kinds[i])
        for i in (0, 1)
    )
    sigma: Any = tuple(random_policy(4 * seed + 2 + i, support, by) for i in (0, 1))
    return game, pre, sigma


PENALTIES = ((0.01, 0.03), (0.05, 0.05), (0.1, 0.02))


def menu_tree(kind: str, seed: int, truncate: str = "reach", penalties: Any = None) -> HistoryTree:
    """The tree of a `menu_case`."""
    game, pre, sigma = menu_case(kind, seed)
    return HistoryTree.from_game(
        game, sigma_pre=pre, sigma=sigma, penalties=penalties or PENALTIES[seed % 3], truncate=truncate
    )


def names_in(tree: HistoryTree, player: int) -> list[str]:
    """A player's information states of a tree, in its order, as the oracle calls them."""
    histories = tree.infoset_history[tree.infoset_player == player].tolist()
    return [information_state(tree.game, tree.state(h), player) for h in histories]


def chosen(side: Side, tree: HistoryTree, members: Any) -> Choice:
    """A memorization set of a tree as the oracle has it."""
    found = {}
    for e in np.asarray(members).tolist():
        infoset = int(tree.entry_infoset[e])
        state = tree.state(int(tree.infoset_history[infoset]))
        found[information_state(side.game, state, side.player)] = e - int(tree.first_entry[infoset])
    return found
