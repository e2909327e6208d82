"""Holds policies and menus to one answer for all histories of an information state.

Whoever plays cannot tell these histories apart. An answer that differs between them looks at what is hidden,
or was drawn anew at each, and what a tree says of it nobody can play. Each answer is compared with that at
the first history of its information state, wherever in the game the two are.

Cost: an information state string for each distinct position that is asked about; in bytes, what is answered
and the history, for each information state. Where information is perfect nothing is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from precomp_games._support.kernels import kernel
from precomp_games._support.validation import ArgumentError, shown
from precomp_games.policies.rows import NO_ROWS, PolicyRows, action_words, entry_rows

_TOLERANCE = 1e-6  # as of sums: networks that answer batches of float32 numbers are no more exact


class AlikeRows:
    """What was answered where information states came up first, in one expansion."""

    def __init__(self) -> None:
        """Nothing has been answered."""
        self._index: dict[tuple[str, str], int] = {}  # of (policy, information state)
        self._histories: list[list[int]] = []
        self._rows = NO_ROWS

    def hold(self, states: Sequence[Any], rows: PolicyRows, names: tuple[str, str]) -> None:
        """Compares what was answered at states with what was answered before, and among them.

        Args:
          states: what was asked about, wherever the game goes on; chance is passed over.
          rows: the answers.
          names: whose they are, by player; what has one name is compared.

        Raises:
          ValueError: two histories of one information state have different answers.
        """
        which, new = [], []
        index, histories = self._index, self._histories
        for k, state in enumerate(states):
            player, first = state.current_player(), -1
            if player >= 0:
                key = names[player], state.information_state_string(player)
                first = index.setdefault(key, len(histories))
                if first == len(histories):
                    histories.append(state.history())
                    new.append(k)
            which.append(first)
        self._rows = _joined(self._rows, rows, np.array(new, np.int64))
        wrong = int(_first_difference(self._rows, rows, np.array(which, np.int64), _TOLERANCE))
        if wrong < 0:
            return
        state, first = states[wrong], which[wrong]
        player, game = state.current_player(), state.get_game()
        there, here = (action_words(game, each) for each in (self._histories[first], state.history()))
        raise ArgumentError(
            f"expected {names[player]} to be the same at all histories of an information "
            f"state, got {shown(_row(self._rows, first))} after {', '.join(there)!r} and "
            f"{shown(_row(rows, wrong))} after {', '.join(here)!r}, which player {player} cannot tell apart; "
            "nobody can play what looks at hidden things, or draws an answer anew at each "
            "history (as MCTS does)"
        )


def _joined(known: PolicyRows, rows: PolicyRows, chosen: np.ndarray) -> PolicyRows:
    """Some of the rows after those that are known."""
    if not len(chosen):
        return known
    counts = np.diff(rows.start)[chosen]
    ends = np.cumsum(counts)
    at = np.arange(ends[-1]) + np.repeat(rows.start[chosen] - (ends - counts), counts)
    return PolicyRows(
        np.append(known.start, known.start[-1] + ends),
        np.concatenate([known.action, rows.action[at]]),
        np.concatenate([known.probability, rows.probability[at]]),
        np.concatenate([known.entry, rows.entry[at]]),
    )


def _row(rows: PolicyRows, k: int) -> Any:
    """A row as {action: probability}; the entries where a menu has several, or none."""
    part = slice(int(rows.start[k]), int(rows.start[k + 1]))
    length = np.array([0, part.stop - part.start])
    one = PolicyRows(length, rows.action[part], rows.probability[part], rows.entry[part])
    (entries,) = entry_rows(one)
    return entries[0] if len(entries) == 1 else entries


@kernel
def _first_difference(rows: PolicyRows, new: PolicyRows, which: np.ndarray, tolerance: float) -> int:
    """The first new row k that differs from row which[k] by more than a tolerance, -1 for none.

    Actions increase within a row; which is -1 where there is nothing to compare with.
    """
    start, action, probability, entry = rows
    for k in range(len(which)):
        if which[k] < 0:
            continue
        i, end = start[which[k]], start[which[k] + 1]
        for j in range(new.start[k], new.start[k + 1]):
            while i < end and action[i] < new.action[j]:
                if probability[i] > tolerance:
                    return k
                i += 1
            if i < end and action[i] == new.action[j]:
                if abs(probability[i] - new.probability[j]) > tolerance or entry[i] != new.entry[j]:
                    return k
                i += 1
            elif new.probability[j] > tolerance:
                return k
        while i < end:
            if probability[i] > tolerance:
                return k
            i += 1
    return -1
