"""A repertoire as a preparation: the reach and the values of its positions.

The book plays the repertoire's first choices wherever it knows the position, by whatever moves. Positions
with a smaller reach than the penalty are not searched: their value is that of the position where the line
became as rare. So it is on the tree on which the repertoire is judged, and both agree.

People play all kinds of moves, most of them next to never. A position after such a reply, of fewer than 1 in
100 there, is not searched either if it is rare in all games: its value is taken from the position before the
reply, as if the reply lost nothing.

Cost: a search for each position of the book and for each reply that leaves it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games.chess.data.book import Book, BookExit, BookMove, BookPosition
from precomp_games.chess.data.repertoire import Repertoire
from precomp_games.chess.game import ChessState, move_of
from precomp_games.chess.model.model import Engines, PreparationPolicies
from precomp_games.chess.model.settings import PreparationSettings
from precomp_games.chess.plan.preparation import Preparation
from precomp_games.chess.plan.prepare import described
from precomp_games.policies.rows import as_batch_policy, policy_rows

KNOWN = ("positions", "lines")
"""The owner's knowledge of a book: each of its positions, by any order of moves, or its lines alone."""
_LIKELY = 0.01  # of people's replies: rarer ones are searched only if their reach is large enough
_OTHER_WAYS = 0.1  # of the penalty: reach above which orders of moves that no file has are followed


class _Node(NamedTuple):
    """A state on the way through a repertoire.

    Attributes:
      state: the state.
      reach: share of games that come there.
      before: the number of the book's position before it, -1 for none.
      rare: whether its value is that of the position where the line became rare.
    """

    state: ChessState
    reach: float
    before: int
    rare: bool


@public
def repertoire_preparation(
    repertoire: Repertoire,
    settings: PreparationSettings,
    engines: Engines,
    *,
    policies: PreparationPolicies | None = None,
    known: Annotated[str, checks.one_of(KNOWN)] = "positions",
) -> Preparation:
    """Make a preparation of a repertoire: all of its first choices, with their values.

    Args:
      repertoire: the book, of the side of `settings`.
      settings: the opponent and the evaluation.
      engines: engines of the searches.
      policies: of the settings, with another opponent; by default theirs.
      known: one of `KNOWN`.

    Raises:
      ValueError, EngineError: as `preparation_policies`.
    """
    if settings.evaluation == "rollouts":
        raise ArgumentError("expected settings with an engine's evaluation for a repertoire, got 'rollouts'")
    if policies is None:
        policies = engines.policies(settings)
    policies = with_likely_replies(policies, settings)
    positions, ends = _walk(repertoire, settings, policies, known == "positions", engines.can_search)
    own = 1.0 if repertoire.player == 0 else -1.0
    stop, asked = dict[int, float](), list[tuple[int, ChessState]]()
    nodes = [*positions, *ends]
    for k, node in enumerate(nodes):
        if node.rare:
            continue
        if node.state.is_terminal():
            stop[k] = node.state.returns()[repertoire.player]
        else:
            asked.append((k, node.state))
    values = policies.leaf_value.evaluate_batch([state for _, state in asked])
    stop |= {k: 0.5 + own * (float(v) - 0.5) for (k, _), v in zip(asked, values, strict=True)}
    for k, node in enumerate(nodes):  # parents first
        stop.setdefault(k, stop.get(node.before, 0.5))
    gain, least = [0.0] * len(positions), settings.penalty
    for k, node in enumerate(nodes):
        if node.before >= 0 and not node.rare:
            gain[node.before] += node.reach * stop[k]
    for k, node in enumerate(positions):
        gain[k] = 0.0 if node.rare or node.reach < least else gain[k] - node.reach * stop[k]
    worth = list(gain)
    for k in range(len(positions) - 1, -1, -1):
        if positions[k].before >= 0:
            worth[positions[k].before] += worth[k]
    first = (node.reach * stop[k] for k, node in enumerate(nodes) if node.before < 0)
    unprepared = min(1.0, max(0.0, math.fsum(first)))
    utility = min(1.0, max(0.0, unprepared + math.fsum(gain)))
    entries = [
        BookPosition(
            tuple(node.state.moves()),
            (BookMove(move_of(repertoire.actions_at(node.state.epd)[0]), 1.0),),
            min(node.reach, 1.0),
            worth[k],
        )
        for k, node in enumerate(positions)
    ]
    exits = [
        BookExit(tuple(node.state.moves()), node.state.is_terminal(), min(node.reach, 1.0), stop[k])
        for k, node in enumerate(ends, start=len(positions))
    ]
    exits.sort(key=lambda each: (-each.reach, [move.uci() for move in each.history]))
    book = Book(repertoire.start, repertoire.side, entries)
    met = sum(each.reach >= least for each in entries)
    made = Preparation(
        settings, book, engines.ids, utility, unprepared, utility - settings.penalty * met, gain
    )
    return described(made, engines, policies, exits, least)


def _walk(
    repertoire: Repertoire,
    settings: PreparationSettings,
    policies: PreparationPolicies,
    by_position: bool,
    to_the_end: bool,
) -> tuple[list[_Node], list[_Node]]:
    """Return the positions of the book, parents first, and the exits.

    With `to_the_end` lines are followed however rare they are; stored searches may not reach so far.
    """
    player, least = repertoire.player, settings.penalty
    opponent = as_batch_policy(policies.sigma[1 - player], "opponent")
    positions, ends = list[_Node](), list[_Node]()
    level = [_Node(settings.game().new_initial_state(), 1.0, -1, rare=False)]
    while level:
        asked, level_after = list[_Node](), list[_Node]()
        for node in level:
            state, line = node.state, tuple(node.state.history())
            if not state.is_terminal() and state.current_player() != player:
                asked.append(node)
                continue
            actions = () if state.is_terminal() else repertoire.actions_at(state.epd)
            rare = node.rare or node.reach < least
            known = line in repertoire.lines or (by_position and node.reach >= _OTHER_WAYS * least)
            if not actions or not known or (rare and not to_the_end):
                if node.reach > 0.0:
                    ends.append(node)
                continue
            asked.append(_Node(state.child(actions[0]), node.reach, len(positions), rare))
            positions.append(node)
        over = [node for node in asked if node.state.is_terminal()]
        ends += (node for node in over if node.reach > 0.0)
        asked = [node for node in asked if not node.state.is_terminal()]
        if not asked:
            break
        states = [node.state for node in asked]
        rows = policy_rows(opponent, states, name="opponent", min_probability=settings.min_probability)
        for k, node in enumerate(asked):
            here = slice(rows.start[k], rows.start[k + 1])
            replies = dict(zip(rows.action[here].tolist(), rows.probability[here].tolist(), strict=True))
            for line in repertoire.following.get(tuple(node.state.history()), ()):
                if line:
                    replies.setdefault(line[-1], 0.0)  # in the files, and never played
            for action, p in replies.items():
                level_after.append(node._replace(state=node.state.child(action), reach=node.reach * p))
        level = level_after
    return positions, ends


# -- replies that people hardly make -----------------------------------------------------------------------


_Way = tuple[float, Mapping[int, float], ChessState | None]


@dataclasses.dataclass(frozen=True, eq=False)
class _LikelyReplies:
    """White's utility of positions, in which those after unlikely replies have the value before the reply.

    Attributes:
      value: Values of other positions.
      opponent: The opponent's policy.
      player: The other player.
      least: Reach below which unlikely replies are not searched.
    """

    value: Any
    opponent: Any
    player: int
    least: float
    _ways: dict[tuple[int, ...], _Way] = dataclasses.field(default_factory=dict)

    def evaluate_batch(self, states: Sequence[ChessState]) -> npt.NDArray[np.float64]:
        """Return float64[n]: values of states."""
        return np.asarray(self.value.evaluate_batch(list(map(self._looked_at, states))))

    def _looked_at(self, state: ChessState) -> ChessState:
        """Return the state, or the one before an unlikely reply."""
        line = tuple(state.history())
        if not line or state.current_player() != self.player:
            return state
        reach, row, before = self._way(state, line[:-1])
        p = row.get(line[-1], 0.0)
        return state if before is None or p >= _LIKELY or reach * p >= self.least else before

    def _way(self, of: ChessState, line: tuple[int, ...]) -> _Way:
        """Return the reach of the opponent's turn after a line, its replies, and the state before."""
        if line not in self._ways:
            ask = as_batch_policy(self.opponent, "opponent")
            state, reach, before = of.get_game().new_initial_state(), 1.0, None
            for action in line:
                if state.current_player() == self.player:
                    before = state
                else:
                    reach *= ask([state])[0].get(action, 0.0)
                state = state.child(action)
            self._ways[line] = reach, ask([state])[0], before
        return self._ways[line]


def with_likely_replies(policies: PreparationPolicies, settings: PreparationSettings) -> PreparationPolicies:
    """Return policies whose values, against people, are searched after likely replies; see the module."""
    if not settings.of_people:
        return policies
    replies = policies.sigma[1 - settings.player]
    value = _LikelyReplies(policies.leaf_value, replies, settings.player, settings.penalty)
    return dataclasses.replace(policies, leaf_value=value)
