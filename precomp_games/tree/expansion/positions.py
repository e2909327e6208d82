"""The distinct positions of one level: asking policies about them, and the positions that follow.

A history tree multiplies histories, but a policy is asked once for each distinct position of a level, in
one batch. What is the same position is the caller's promise, `position_key`, which is held to it on a few
of the pairs that it joins.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.memory import MemoryMeter, in_blocks
from precomp_games._support.validation import ArgumentError
from precomp_games.policies.mixtures import ComponentRows, MixturePolicy, component_name
from precomp_games.policies.rows import DistinctStates, PolicyRows, asked_rows, distinct_edges, movers_rows
from precomp_games.tree.expansion.alike import AlikeRows
from precomp_games.tree.expansion.options import ExpansionOptions
from precomp_games.tree.facts import CHANCE

_SPOT_TOLERANCE = 1e-9
_BYTES_AN_ANSWER = 110  # of a policy, a number: what joining takes, measured (tests/test_memory.py)
_POLICIES = ("sigma_pre", "sigma")
_NOBODY = int(pyspiel.PlayerId.INVALID)  # -1 is chance


@dataclasses.dataclass(frozen=True)
class Edges:
    """The distinct edges out of a level's positions, in order of (position, action).

    Attributes:
      start: int64[positions + 1], position k has edges start[k]:start[k + 1].
      action: int64[edges].
      sigma_pre, sigma: float64[edges], 0 where that policy was not asked or does not play the action.
      entry: int16[edges], the entry of the mover's menu that plays the action; 0 where none does.
      components: float64[edges, K], what each component of a mixed opponent plays, 0 where it was not asked;
        K is 0 where there is no such opponent.
    """

    start: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    sigma_pre: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]
    entry: npt.NDArray[np.int16]
    components: npt.NDArray[np.float64]


class LevelPositions:
    """Steps from one level's positions to the next one's.

    states: the current level's positions. keys: theirs. mover: int8[n], who moves there.
    policy_queries: rows asked of policies so far.
    """

    def __init__(
        self, root: Any, options: ExpansionOptions, alike: AlikeRows | None, memory: MemoryMeter
    ) -> None:
        """Starts at the root; `alike` compares answers where information is imperfect."""
        self.policy_queries = 0
        mixed: tuple[int, MixturePolicy | None] = options.mixture or (_NOBODY, None)
        self._mixed_player, self._mixture = mixed
        self._policies = options.sigma_pre, options.sigma
        self._key, self._min_probability = options.position_key, options.min_probability
        self._alike, self._memory = alike, memory
        self._ids: dict[Hashable, int] = {}
        self._merges = 0
        self._doubles: list[tuple[int, Any]] = []
        self._enter([root])

    def _enter(self, reached: list[Any]) -> np.ndarray:
        """Goes on to the distinct ones of states; returns which of them stands for each."""
        distinct = DistinctStates(self._key)
        which = distinct.add(reached)
        self._doubles = []
        new = 0
        for state, k in zip(reached, which, strict=True) if len(distinct.states) < len(reached) else ():
            if k == new:
                new += 1
                continue
            self._merges += 1
            if self._merges & (self._merges - 1) == 0:  # the 1st, 2nd, 4th, 8th, ... of the tree
                self._doubles.append((k, state))
        self.states, self.keys = distinct.states, distinct.keys
        looked_at = self._memory.watched("looked at", self.states, len(self.states))
        self.mover = np.array([state.current_player() for state in looked_at], np.int8)
        return np.array(which, np.int32)

    def ids(self) -> np.ndarray | None:
        """int32[n]: the positions' numbers in the whole tree; None without a key."""
        if self._key is None:
            return None
        return np.array([self._ids.setdefault(key, len(self._ids)) for key in self.keys], np.int32)

    def ask(self, wants_pre: np.ndarray, wants_sigma: np.ndarray) -> Edges:
        """Asks each policy about the positions where it is wanted (bool[n] each).

        Raises:
          ValueError: a policy is missing or its answer is wrong, or `position_key` broke its promise.
        """
        batches: list[tuple[np.ndarray, PolicyRows, int]] = []
        wants_mixed = wants_sigma & (self.mover == self._mixed_player)
        for column, wanted in enumerate((wants_pre, wants_sigma & ~wants_mixed)):
            asked = np.flatnonzero(wanted)
            self.policy_queries += int((self.mover[asked] >= 0).sum())
            states = [self.states[k] for k in asked.tolist()]
            rows = asked_rows(functools.partial(self._ask_movers, column), states, self._memory)
            self._hold(states, rows, *(f"{_POLICIES[column]}[{i}]" for i in (0, 1)))
            batches.append((asked, rows, column))
        asked = np.flatnonzero(wants_mixed)
        mixed = None
        if self._mixture is not None:
            mixed = asked, self._asked_mixture(self._mixture, [self.states[k] for k in asked.tolist()])
        self._spot_check(wants_pre, wants_sigma)
        numbers = sum(len(rows.action) for _, rows, _ in batches)
        numbers += 0 if mixed is None else int(np.count_nonzero(mixed[1].probability))
        self._memory.check(_BYTES_AN_ANSWER * numbers)
        edges = _union(batches, mixed, len(self.states))
        by_chance = np.repeat(self.mover == CHANCE, np.diff(edges.start))
        edges.sigma_pre[by_chance] = edges.sigma[by_chance]
        return edges

    def _ask_movers(self, column: int, states: Sequence[Any]) -> PolicyRows:
        """What sigma_pre (column 0) or sigma (1) of whoever moves there answers about states."""
        return movers_rows(
            states, self._policies[column], name=_POLICIES[column], min_probability=self._min_probability
        )

    def _hold(self, states: list[Any], rows: PolicyRows, first: str, second: str) -> None:
        """Holds players' answers, under their names, to being alike within information states."""
        if self._alike is not None:
            self._alike.hold(states, rows, (first, second))

    def _asked_mixture(self, mixture: MixturePolicy, states: list[Any]) -> ComponentRows:
        """What each component answers at states; alike at those of one information state."""
        count = len(mixture.weights)
        if not states:
            return ComponentRows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((0, count)))
        self.policy_queries += count * len(states)
        rows = asked_rows(mixture.component_rows, states, self._memory)
        for k in range(count):
            self._hold(states, rows.of(k), *(component_name(k),) * 2)
        return rows

    def advance(self, edges: Edges, used: np.ndarray) -> np.ndarray:
        """Goes on to the positions behind the edges marked in `used` (bool[edges]).

        Returns:
          int32[edges]: the new position behind each used edge.
        """
        taken = np.flatnonzero(used)
        owner = np.repeat(np.arange(len(self.states)), np.diff(edges.start))[taken]
        parents = self.states
        made = (parents[where].child(action) for where, action in in_blocks(owner, edges.action[taken]))
        reached = list(self._memory.watched("states", made, len(taken)))
        behind = np.zeros(len(edges.action), np.int32)
        behind[taken] = self._enter(reached)
        return behind

    def _spot_check(self, wants_pre: np.ndarray, wants_sigma: np.ndarray) -> None:
        """Compares a few states with the ones that stand for them."""
        for k, other in self._doubles:
            state, i = self.states[k], int(self.mover[k])
            same = i == other.current_player()
            if same and state.is_terminal():
                same = state.returns() == other.returns()
            elif same:
                same = state.legal_actions() == other.legal_actions()
            if same and i >= 0 and self._alike is not None:
                same = all(
                    state.information_state_string(p) == other.information_state_string(p) for p in (0, 1)
                )
            # Only what was asked here anyway: a further answer may cost a search.
            if same and i >= 0 and wants_pre[k]:
                same = _agree(self._ask_movers(0, [state, other]))
            if same and i >= 0 and wants_sigma[k]:
                mixed = self._mixture if i == self._mixed_player else None
                rows = (
                    self._ask_movers(1, [state, other])
                    if mixed is None
                    else mixed.component_rows([state, other])
                )
                same = _agree(rows)
            if not same:
                raise ArgumentError(
                    "expected position_key to join only states that play the "
                    f"same, got {state.history_str()!r} and {other.history_str()!r} under one key; "
                    "a policy that depends on the history needs position_key=None"
                )


def _agree(rows: PolicyRows | ComponentRows) -> bool:
    """Whether answers about two states are the same, but for what hardly ever happens."""
    likely = np.max(rows.probability.reshape(len(rows.action), -1), axis=1, initial=0.0) > _SPOT_TOLERANCE
    first, second = np.split(np.flatnonzero(likely), [np.count_nonzero(likely[: rows.start[1]])])
    same = [np.array_equal(column[first], column[second]) for column in (rows.action, *rows[3:])]
    return all(same) and np.allclose(
        rows.probability[first], rows.probability[second], rtol=0.0, atol=_SPOT_TOLERANCE
    )


def _union(
    batches: list[tuple[np.ndarray, PolicyRows, int]],
    mixed: tuple[np.ndarray, ComponentRows] | None,
    count: int,
) -> Edges:
    """Joins batches into distinct edges.

    Args:
      batches: (positions asked, rows, 0 for sigma_pre or 1 for sigma).
      mixed: the same of a mixed opponent's components.
      count: how many positions there are.
    """
    asked: list[tuple[np.ndarray, Any]] = [(at, rows) for at, rows, _ in batches]
    asked += [] if mixed is None else [mixed]
    position = np.concatenate([np.repeat(at, np.diff(rows.start)) for at, rows in asked])
    action = np.concatenate([rows.action for _, rows in asked])
    start, action, which = distinct_edges(position, action, count)
    behind = np.split(which, np.cumsum([len(rows.action) for _, rows in asked]))  # the edge of each answer
    columns, entries = np.zeros((2, len(action))), np.zeros(len(action), np.int16)
    for (_, rows, column), at in zip(batches, behind, strict=False):
        columns[column, at] = rows.probability
        entries[at[rows.entry > 0]] = rows.entry[rows.entry > 0]
    components = np.zeros((len(action), 0 if mixed is None else mixed[1].probability.shape[1]))
    if mixed is not None:
        components[behind[-2]] = mixed[1].probability
    return Edges(start, action, columns[0], columns[1], entries, components)
