"""Menus: which entries a player may choose among when it memorizes an information state.

If sigma_pre is a policy, a player only decides whether to memorize its row. With a menu it also decides which
of several entries to memorize, each of them a distribution over actions. The entries of one menu share no
action, so that the move that was played reveals which of them was memorized, and a history of the base game
still is a state of the decision problem.

    HistoryTree.from_game(game, sigma_pre=(Menu.of_actions(), None), ...)       # any legal move
    HistoryTree.from_game(game, sigma_pre=Menu(lambda state: state.legal_actions()[:2]), ...)
    HistoryTree.from_game(game, sigma_pre=Menu.of_support(policy), ...)         # one entry for each of its
    moves

A policy is a menu of one entry. Where a menu is empty, nothing can be memorized, there and further on.

Deviations: the paper's players choose where sigma_pre is memorized, never what it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from precomp_games._support.arguments import public
from precomp_games.policies.rows import (
    BatchPolicy,
    PolicyLike,
    PolicyRows,
    as_batch_policy,
    check_entries,
    legal_actions,
)

Entry = int | Mapping[int, float]
"""What can be memorized at an information state: an action, or {action: probability}."""


_LEAST = 1e-9  # of a probability; smaller ones are rounding


@public
@dataclasses.dataclass(frozen=True)
class Menu:
    """A player's menu at each state.

    An object of any other class is a menu, too, if it has `entries_batch(states)`: one that asks an engine
    about many positions at once, for instance.

    Attributes:
      entries: A function from a state to a sequence of entries: actions, or {action: probability}. It must
        give the same at all histories of an information state.
    """

    entries: Callable[[Any], Sequence[Entry]]

    def entries_batch(self, states: Sequence[Any]) -> list[Sequence[Entry]]:
        """The menu at each of several states."""
        return [self.entries(state) for state in states]

    @classmethod
    def of_actions(cls) -> Menu:
        """Every legal action: which move is memorized is left to the player altogether."""
        return _ActionMenu(_every_action)

    @classmethod
    @public
    def of_support(cls, policy: PolicyLike) -> SupportMenu:
        """One entry for each action that a policy plays: of moves that it plays alike, one is enough to know.

        Raises:
          ValueError: it is no policy.
        """
        return SupportMenu(as_batch_policy(policy))


@dataclasses.dataclass(frozen=True)
class _ActionMenu(Menu):
    """What `Menu.of_actions` makes: rows that need no looking into are made at once."""

    def action_rows(self, states: Sequence[Any]) -> PolicyRows:
        """What `rows.menu_rows` makes of this menu."""
        menus = [sorted(legal_actions(state)) for state in states]
        check_entries(menus, states)
        counts = np.array([len(menu) for menu in menus], np.int64)
        start = np.append(0, np.cumsum(counts)).astype(np.int64)
        action = np.array([action for menu in menus for action in menu], np.int64)
        entry = np.arange(len(action)) - np.repeat(start[:-1], counts)
        return PolicyRows(start, action, np.ones(len(action)), entry.astype(np.int16))


@dataclasses.dataclass(frozen=True)
class SupportMenu:
    """A menu with an entry for each action that a policy plays; made by `Menu.of_support`."""

    policy: BatchPolicy

    def entries_batch(self, states: Sequence[Any]) -> list[list[int]]:
        """The menu at each of several states, actions in increasing order."""
        rows = self.policy(states)
        return [sorted(a for a, p in row.items() if p >= _LEAST) for row in rows]


# Not called "_legal_actions": pybind11 would take it for that method of a state that is written in Python.
def _every_action(state: Any) -> list[int]:
    return list(legal_actions(state))
