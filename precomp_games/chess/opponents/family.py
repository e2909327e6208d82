"""A family of opponents from one search: any limit up to N, any temperature, several numbers of moves.

Who the opponent is, nobody knows exactly: an engine with some limit n of nodes that plays its k best moves
with probabilities proportional to exp(cp / r). A search to N nodes passes through what searches to n < N say
(`SearchResult.before`), so one stored search to the largest limit for each k, as MultiPV, answers for all n
and r. It does not answer for another k: with MultiPV an engine searches other trees, and its best two moves
of four are not those of two.

`EngineFamily` draws one member for the whole game, as a `MixturePolicy`, and the moves of a game say who it
probably is. Values, trees and posteriors need what all members play, and make the large searches. Games are
played against one member at a time, which searches to its own limit, as a real engine with this limit would.

Source: ours. Equality of members and engines, measured by `tools/family_equality.py`: docs/chess_measured.md.
Cost: a search to N nodes for each position and k, and some 0.1 ms for all answers of a hundred members to it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import chess
import numpy as np
import numpy.typing as npt

from precomp_games._support.arguments import Check, NonNegativeInt, PositiveInt, one_of, public
from precomp_games._support.checks import ArgumentError, check_integer, check_number, shown
from precomp_games.chess.engines.searches import (
    MAX_LIMIT,
    MAX_MULTIPV,
    Asked,
    Iteration,
    Line,
    SearchLimit,
    SearchResult,
)
from precomp_games.chess.engines.stored_engine import ScoringEngine, searched
from precomp_games.chess.evaluation.policies import EnginePolicy
from precomp_games.chess.evaluation.scores import centipawns
from precomp_games.chess.game import ChessGame, action_of, board_key
from precomp_games.policies.mixtures import ComponentRows, MixturePolicy

_MOST_MEMBERS = 10_000


class Member(NamedTuple):
    """Who a member of a family is.

    Attributes:
      nodes: n, the limit of its searches.
      temperature_cp: r, in centipawns.
      top_k: k, how many moves it plays, and the MultiPV of its searches.
    """

    nodes: int
    temperature_cp: float
    top_k: int


def _range(check: Callable[..., Any], value: Any, name: str, **bounds: Any) -> tuple[Any, Any]:
    """A number, which stands for itself, or (least, most)."""
    ends = value if isinstance(value, list | tuple) else (value, value)
    if len(ends) != 2:
        raise ArgumentError(f"expected {name} to be a number or a pair (least, most), got {shown(value)}")
    low, high = (check(end, name, **bounds) for end in ends)
    if low > high:
        raise ArgumentError(f"expected {name} to be (least, most), got {shown(value)}")
    return low, high


_Nodes = Annotated[Any, Check(functools.partial(_range, check_integer, least=1, most=MAX_LIMIT))]
_Temperatures = Annotated[Any, Check(functools.partial(_range, check_number, above=0.0))]
_TopK = Annotated[Any, Check(functools.partial(_range, check_integer, least=1, most=MAX_MULTIPV))]


class FamilyMember(EnginePolicy):
    """A member's play: what its engine has said before n nodes, by a search to its limit or a larger one.

    An `EnginePolicy` with this limit counts an iteration only when a deeper one has been reported, since it
    looks at depths alone. In a hundredth of the positions it is one iteration behind.
    """

    def __init__(self, game: ChessGame, engine: ScoringEngine, member: Member, searched: SearchLimit) -> None:
        """Makes the policy; `searched` is the limit of the searches that answer, n or more nodes."""
        super().__init__(game, engine, SearchLimit(nodes=member.nodes), *member[1:])
        self._asked = (searched, member.top_k, 0, True)

    def _lines(self, result: SearchResult) -> tuple[Line, ...]:
        return result.before(self._nodes).lines

    @property
    def _nodes(self) -> int:
        assert self.limit.nodes is not None
        return self.limit.nodes


class EngineFamily(MixturePolicy):
    """One of many opponents by one engine, drawn for the whole game: a grid of limits, temperatures and k.

    It can be used wherever a `MixturePolicy` can. Its `policies` answer from the searches to the largest
    limit, one by one.

    Attributes:
      members: Who the components are, in the order of `policies` and `weights`: by nodes, r, and k.
      engine: Who searches.
    """

    @public
    def __init__(
        self,
        game: ChessGame,
        engine: ScoringEngine,
        nodes: _Nodes = (300, 3000),
        temperatures_cp: _Temperatures = (5.0, 60.0),
        top_k: _TopK = (2, 4),
        per: Annotated[str, one_of(("game", "move"))] = "game",
        *,
        num_limits: PositiveInt = 8,
        num_temperatures: PositiveInt = 4,
        num_top_k: PositiveInt | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        """Makes the family.

        Args:
          game: of chess.
          engine: who searches for all of them.
          nodes: n, a number or (least, most).
          temperatures_cp: r in centipawns, a number or (least, most).
          top_k: k, a number or (least, most). With 1 r has no meaning.
          per: "game", one is drawn for the whole game, or "move", one anew at each move, such as an engine
            under a clock, which visits more nodes or fewer.
          num_limits: how many different n there are, as many apart in logarithms each.
          num_temperatures: how many different r, likewise.
          num_top_k: how many different k there are, as far apart each; each takes a search of its own. None:
            all whole numbers between.
          weights: how often each member is drawn; they need not sum to 1. None: equally often, which is
            uniform in the logarithms of n and r.

        Raises:
          ValueError: another game than chess, an engine without scores, a range that is none, more than
            10,000 members, or weights that are not one positive number for each.
        """
        num_top_k = min(num_top_k or MAX_MULTIPV, top_k[1] - top_k[0] + 1)
        count = num_limits * num_temperatures * num_top_k
        if count > _MOST_MEMBERS:
            raise ArgumentError(f"expected at most {_MOST_MEMBERS} members, got {count}")
        limits = np.unique(_geometric(nodes, num_limits).round().astype(np.int64)).tolist()
        temperatures = np.unique(_geometric(temperatures_cp, num_temperatures)).tolist()
        moves = [round(k) for k in np.linspace(float(top_k[0]), float(top_k[1]), num_top_k).tolist()]
        self.engine = engine
        self.members = tuple(itertools.starmap(Member, itertools.product(limits, temperatures, moves)))
        self._searched = SearchLimit(nodes=limits[-1])
        self._grid = (limits, np.array(temperatures), moves)
        each = [FamilyMember(game, engine, member, self._searched) for member in self.members]
        super().__init__(each, weights, per, position_key=board_key)

    def __str__(self) -> str:
        """One line."""
        return (
            f"{len(self.members)} opponents by {self.engine.engine_id}, one of them drawn once per "
            f"{self.per}: nodes {_words([m.nodes for m in self.members])}, r = "
            f"{_words([m.temperature_cp for m in self.members])} cp, "
            f"its {_words([m.top_k for m in self.members])} best moves"
        )

    @public
    def alone(self, number: NonNegativeInt) -> FamilyMember:
        """A member as an engine of its own, which searches to its own limit.

        Raises:
          ValueError: there is no such member.
        """
        if number >= len(self.members):
            raise ArgumentError(f"expected number to be less than {len(self.members)}, got {number}")
        member = self.members[number]
        return FamilyMember(self.game, self.engine, member, SearchLimit(nodes=member.nodes))

    def component_rows(self, states: Sequence[Any]) -> ComponentRows:
        """What each member plays, by one search of each state for each k (see `MixturePolicy`)."""
        limits, temperatures, moves = self._grid
        asked = [Asked(state.epd, self._searched, k, 0, True) for k in moves for state in states]
        each_said = [_said(result, limits) for result in searched(self.engine, asked)]
        said = [each_said[j * len(states) : (j + 1) * len(states)] for j in range(len(moves))]
        start, actions, rows = [0], list[int](), list[dict[int, int]]()  # rows: of a state's actions
        for at, state in enumerate(states):
            known = sorted({_action(line.move) for each in said for it in each[at][0] for line in it.lines})
            if not set(state.legal_actions()).issuperset(known):
                raise ArgumentError(
                    f"expected legal moves in stored searches, got others at history {state.history_str()!r}"
                )
            rows.append({action: start[-1] + i for i, action in enumerate(known)})
            actions += known
            start.append(len(actions))
        probability = np.zeros((len(actions), len(limits), len(temperatures), len(moves)))
        for j, each in enumerate(said):
            _fill(probability[..., j], each, rows, temperatures)
        table = probability.reshape(len(actions), len(self.members))
        played = table.any(axis=1)
        kept = np.append(0, np.cumsum(played))[np.array(start)]
        return ComponentRows(kept, np.array(actions, np.int64)[played], table[played])

    def drawn_members(
        self, states: Sequence[Any], player: int, streams: Sequence[np.random.Generator]
    ) -> list[int]:
        """Who a player is in games that go on from states, by the posterior there; see `play_on`."""
        cumulative = np.cumsum(self.posteriors(states, player), axis=1)
        drawn = np.array([stream.random() for stream in streams])[:, None] * cumulative[:, -1:]
        return np.minimum((cumulative <= drawn).sum(axis=1), len(self.members) - 1).tolist()  # type: ignore[no-any-return]

    def member_rows(self, members: Sequence[int], states: Sequence[Any]) -> list[dict[int, float]]:
        """What members play, each at a state, by searches to their own limits."""
        asked = [
            Asked(state.epd, SearchLimit(nodes=self.members[k].nodes), self.members[k].top_k, 0, True)
            for k, state in zip(members, states, strict=True)
        ]
        return [
            self.policies[k]._row_of(state, result)
            for k, state, result in zip(members, states, searched(self.engine, asked), strict=True)
        ]


def _geometric(ends: tuple[float, float], count: int) -> npt.NDArray[np.float64]:
    """From the least to the most; of one number, the mean of their logarithms."""
    if count == 1:
        return np.array([np.sqrt(ends[0] * ends[1])])
    return np.geomspace(*ends, count).clip(*ends)  # rounding makes two of one number otherwise


def _said(result: SearchResult, limits: Sequence[int]) -> tuple[list[Iteration], list[int]]:
    """The different iterations that count for some limit, and which of them does for each."""
    different: list[Iteration] = []
    index = []
    for limit in limits:
        iteration = result.before(limit)
        if not different or different[-1] is not iteration:
            different.append(iteration)
        index.append(len(different) - 1)
    return different, index


def _fill(
    probability: npt.NDArray[np.float64],
    said: Sequence[tuple[list[Iteration], list[int]]],
    rows: Sequence[dict[int, int]],
    temperatures: npt.NDArray[np.float64],
) -> None:
    """Writes what the members with one k play.

    Args:
      probability: float64[actions, limits, temperatures], zeros.
      said: of each state, see `_said`.
      rows: of each state, which row of `probability` is an action's.
      temperatures: float64[temperatures].
    """
    iterations = [(of, it) for of, (different, _) in zip(rows, said, strict=True) for it in different]
    most = max((len(it.lines) for _, it in iterations), default=0)
    score, row = np.full((len(iterations), most), -np.inf), np.full((len(iterations), most), -1)
    for k, (of, it) in enumerate(iterations):
        score[k, : len(it.lines)] = [centipawns(line) for line in it.lines]
        row[k, : len(it.lines)] = [of[_action(line.move)] for line in it.lines]
    score -= score.max(axis=1, initial=-np.inf, keepdims=True)
    odds = np.exp(score[:, None, :] / temperatures[:, None])
    odds /= odds.sum(axis=2, keepdims=True)
    # Which of the iterations counts for each state and limit.
    first = np.cumsum([0, *(len(different) for different, _ in said)])[:-1]
    which = first[:, None] + np.array([index for _, index in said], np.int64).reshape(
        len(said), probability.shape[1]
    )
    limit = np.broadcast_to(np.arange(which.shape[1]), which.shape)
    for line in range(most):
        at = row[which, line]
        there = at >= 0
        probability[at[there], limit[there]] = odds[which[there], :, line]


@functools.lru_cache(maxsize=1 << 12)  # there are 1,968 different moves
def _action(move: str) -> int:
    return action_of(chess.Move.from_uci(move))


def _words(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
