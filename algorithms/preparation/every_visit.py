"""A book that answers wherever one of its positions comes up.

A memorization set is a set of histories (information states): off its lines, a player plays sigma to the end,
even if play comes back to a position that it knows. A file that looks positions up, such as a Polyglot book,
answers there too. That is another policy. It is not bounded by the best set: the game may come to a position
by a move of sigma's that no line has, and the answer is worth something there as well. Nor need it be better
than the set, since an answer that prepares a line may lose where what follows is not known.

Where information is imperfect, positions are for the player to tell apart: a key that differs between the
histories of one of its information states looks at what is hidden, and is refused where that shows. Histories
are then looked at one by one, since equal keys say nothing of what is hidden.

What such a book is worth is no sum over positions: an answer changes how often others come up, and what they
are worth. The best book of a size is then a hard problem with no bound at hand. Exchange is a local search: a
position of the book goes, another one comes, and stays where the value of the whole grows. What comes out is
worth no less than what went in, and nothing is claimed beyond that.

All positions that play by sigma or by any of the book's candidates can reach are looked at once, level by
level, with the rows of all choices. The value of a book and, to first order, what each single change of it
would bring,

    sum over nodes of the position of  reach(node) (Q(node, choice) - V(node)),

then come from a pass up and a pass down. The sum is exact for one change at positions that come up once in a
game; changes are tried in its order, by their exact value.

Cost of the value: a walk through all positions that the policies can reach, as of exact leaf values; through
all histories where information is imperfect. Cost of an exchange: these positions once, two passes a round,
and one pass for each change that is tried.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import NonNegativeInt, PositiveInt, public
from precomp_games._support.checks import ArgumentError, shown
from precomp_games._support.results import Result
from precomp_games.policies.precomputation import PrecomputationPolicy
from precomp_games.policies.rows import (
    BatchPolicy,
    PolicyLike,
    as_batch_policies,
    check_policies,
    entry_rows,
    movers_rows,
)
from precomp_games.tree.expansion.alike import AlikeRows, history_words
from precomp_games.tree.expansion.options import hashable
from precomp_games.tree.history_tree import HistoryTree

from .best_precomputation import BestPrecomputation

_TRIED = 64  # exchanges a round
_LEAST = 1e-12  # of the game's greatest payoff: an exchange that brings less is none
_Rows = dict[Hashable, list[dict[int, float]]]
_Floats = npt.NDArray[np.float64]


class _OwnPositions:
    """The positions of a player's turns, by a key that the player can know.

    perfect: whether information is perfect, so that any key can be known.
    """

    def __init__(self, game: pyspiel.Game, position_key: Callable[[Any], Hashable]) -> None:
        self._key = hashable(position_key)
        self.perfect = game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
        self._met: dict[str, tuple[Hashable, list[int]]] = {}  # by information state

    def __call__(self, state: Any) -> Hashable:
        """The key of a state where the player moves.

        Raises:
          ValueError: it cannot be looked up, or another history of the information state had another key.
        """
        here = self._key(state)
        if not self.perfect:
            name = state.information_state_string()
            first, history = self._met.setdefault(name, (here, state.history()))
            if first != here:
                raise ArgumentError(
                    "expected position_key to be the same at all histories of an "
                    f"information state, got {shown(first)} after {history_words(state, history)} and "
                    f"{shown(here)} after {history_words(state, state.history())}, which its player "
                    "cannot tell apart; state.information_state_string() is such a key"
                )
        return here

    def node(self, state: Any) -> Hashable:
        """What all that follows a state depends on."""
        return self._key(state) if self.perfect else tuple(state.history())


@public
def every_visit_policy(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
) -> PrecomputationPolicy:
    """The policy that plays a book's move wherever its position comes up, and sigma elsewhere.

    Args:
      book: of `best_precomputation`. Where it has several entries of one position, which a price per
        information state allows, the one that is reached most often is played.
      position_key: a function from a state where the player moves to a key: which states are one position.
        It must be the same at all histories of an information state.
      sigma: what the players compute during play, one or a pair; by default what the tree was expanded with
        (a tree that was loaded from a file has none).

    Raises:
      ValueError: an argument is not as above.
    """
    tree, key = book.tree, _OwnPositions(book.tree.game, position_key)
    play = tree.policies if sigma is None else check_policies(sigma, "sigma")
    rows, chosen = _candidates(book, key, np.unique(tree.entry_infoset[book.memorization_set]))
    best = {position: rows[position][k] for position, k in chosen.items()}
    return PrecomputationPolicy(tree.game, book.player, functools.partial(_row, best, key), play)


@public
def every_visit_utility(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
    leaf_value: Any = "exact",
) -> float:
    """What a book is worth to its player when every visit to its positions is answered.

    Compare it with the book's `utility`, which is what its lines are worth, as far as the tree's values are
    those of play by sigma.

    Args:
      book: see `every_visit_policy`.
      position_key: see there. Where information is perfect, states of one level with equal keys, whoever
        moves there, must be the same for both players' sigma and for the game from there on.
      sigma: see there; both players' are needed.
      leaf_value: as of `HistoryTree.from_game`: "exact" looks at all of the game that can come up,
        `RolloutValues` plays games.

    Raises:
      ValueError: an argument is not as above.
    """
    policy = every_visit_policy(book, position_key, sigma=sigma)
    play = _sigma_of_both(book, sigma)
    tree = HistoryTree.from_game(
        book.tree.game,
        sigma_pre=None,
        sigma=(policy, play[1]) if book.player == 0 else (play[0], policy),
        penalties=math.inf,
        leaf_value=leaf_value,
        position_key=position_key if _OwnPositions(book.tree.game, position_key).perfect else None,
    )
    value = float(tree.value[0])
    return value if book.player == 0 else tree.utility_sum - value


def _row(rows: dict[Hashable, dict[int, float]], key: _OwnPositions, state: Any) -> dict[int, float] | None:
    """What is memorized at a state's position."""
    return rows.get(key(state))


def _sigma_of_both(book: BestPrecomputation, sigma: Any) -> tuple[PolicyLike, PolicyLike]:
    """What both players compute during play, by default what the book's tree was expanded with."""
    first, second = book.tree.policies if sigma is None else check_policies(sigma, "sigma")
    if first is None or second is None:
        raise ArgumentError(f"expected the sigma of both players, got {(first, second)}")
    return first, second


def _candidates(
    book: BestPrecomputation, key: _OwnPositions, infosets: npt.NDArray[np.integer[Any]]
) -> tuple[dict[Hashable, list[dict[int, float]]], dict[Hashable, int]]:
    """What can be memorized at the positions of some information states, and what the book plays there.

    Returns:
      The rows of each position, and the number of the one that the book reaches most often; positions that
      the book does not have are not in the latter.

    Raises:
      ValueError: the histories of an information state have different keys.
    """
    tree = book.tree
    order = np.argsort(tree.infoset, kind="stable").astype(np.int32)
    start = np.searchsorted(tree.infoset, infosets, sorter=order)
    end = np.searchsorted(tree.infoset, infosets, side="right", sorter=order)
    rows: dict[Hashable, list[dict[int, float]]] = {}
    reached: dict[Hashable, dict[int, float]] = {}
    reach = dict(zip(book.memorization_set.tolist(), book.reach.tolist(), strict=True))
    for infoset, first, last in zip(infosets.tolist(), start.tolist(), end.tolist(), strict=True):
        (position,) = {key(tree.state(history)) for history in order[first:last].tolist()}
        menu = rows.setdefault(position, [])
        for entry in range(int(tree.first_entry[infoset]), int(tree.first_entry[infoset + 1])):
            row = tree.memorized_row(entry)
            if row not in menu:
                menu.append(row)
            if entry in reach:
                sums = reached.setdefault(position, {})
                sums[menu.index(row)] = sums.get(menu.index(row), 0.0) + reach[entry]
    return rows, {position: max(sums, key=sums.__getitem__) for position, sums in reached.items()}


@dataclasses.dataclass(frozen=True)
class EveryVisitBook(Result):
    """What a book became by exchange.

    Attributes:
      rows: {action: probability} by position, at most as many as the book had positions.
      utility: What it is worth to the player when every visit is answered.
      before: What the book was worth so that it began with.
      exchanges: How many changes were made.
    """

    rows: Mapping[Hashable, Mapping[int, float]] = dataclasses.field(repr=False)
    utility: float
    before: float
    exchanges: int


@public
def every_visit_exchange(
    book: BestPrecomputation,
    position_key: Callable[[Any], Hashable],
    *,
    sigma: PolicyLike | Sequence[PolicyLike | None] | None = None,
    max_positions: PositiveInt = 1_000_000,
    max_exchanges: NonNegativeInt = 1000,
) -> EveryVisitBook:
    """Exchanges a book's positions for others of its tree, as long as that is worth something.

    Args:
      book: see `every_visit_policy`; of several entries of one position the most reached one is played.
      position_key: see `every_visit_utility`.
      sigma: see there; both players' are needed.
      max_positions: of the game, level by level, that may be looked at; histories where information is
        imperfect.
      max_exchanges: after so many the search ends.

    Raises:
      ValueError: an argument is not as above, or the game has more positions.
    """
    key = _OwnPositions(book.tree.game, position_key)
    play = _sigma_of_both(book, sigma)
    own = np.flatnonzero(book.tree.infoset_player == book.player).astype(np.int32)
    rows, chosen = _candidates(book, key, own)
    graph = _Graph.of(book, key, rows, as_batch_policies(play, "sigma"), max_positions)
    before = value = graph.value(chosen)
    size, least, done = len(chosen), _LEAST * float(np.abs(graph.terminal).max()), 0
    while done < max_exchanges:
        better = _exchanged(graph, rows, chosen, size, value + least)
        if better is None:
            break
        chosen, value = better
        done += 1
    return EveryVisitBook({where: rows[where][k] for where, k in chosen.items()}, value, before, done)


def _exchanged(
    graph: _Graph, rows: _Rows, chosen: dict[Hashable, int], size: int, least: float
) -> tuple[dict[Hashable, int], float] | None:
    """The first change that is found to be worth more than `least`, and its value; None if none is."""
    gains = graph.gains(chosen)
    # What never comes up brings nothing. Keys may be of several kinds, which have no order.
    drops = sorted(((-gains.get((where, -1), 0.0), str(where), where) for where in chosen), key=_in_order)
    adds = sorted(
        (
            (-gain, str(where), where, k)
            for (where, k), gain in gains.items()
            if k >= 0 and chosen.get(where) != k
        ),
        key=_in_order,
    )
    trials: list[tuple[float, dict[Hashable, int]]] = [
        (loss, {w: k for w, k in chosen.items() if w != where}) for loss, _, where in drops[:_TRIED]
    ]
    for minus, _, where, k in adds[:_TRIED]:
        if where in chosen or len(chosen) < size:
            trials.append((minus, {**chosen, where: k}))
        elif drops:
            for loss, _, gone in drops[:_TRIED]:
                trials.append((minus + loss, {w: n for w, n in chosen.items() if w != gone} | {where: k}))
    trials.sort(key=lambda trial: trial[0])
    for _, trial in trials[:_TRIED]:
        new = graph.value(trial)
        if new > least:
            return trial, new
    return None


def _in_order(change: tuple[Any, ...]) -> tuple[float, str]:
    """What comes first among changes: what costs least, then by name."""
    return change[0], change[1]


@dataclasses.dataclass(frozen=True, eq=False)
class _Graph:
    """All positions of a game, level by level, and what may be played there.

    Attributes:
      terminal: float64[n], what a position is worth where the game is over, to the player; 0 elsewhere.
      rows: For each level: the node of each row, its first edge and the end of the last, and edges' children.
      probabilities: For each level, of its edges.
      choice: For each position key and choice, -1 being sigma, each (level, row in it, node) where it can be
        made.
    """

    terminal: _Floats
    rows: list[tuple[npt.NDArray[np.int64], ...]]
    probabilities: list[_Floats]
    choice: dict[tuple[Hashable, int], list[tuple[int, int, int]]]

    @classmethod
    def of(
        cls,
        book: BestPrecomputation,
        key: _OwnPositions,
        candidates: _Rows,
        sigma: tuple[BatchPolicy, BatchPolicy],
        most: int,
    ) -> _Graph:
        """Expands the game of a book."""
        tree, player = book.tree, book.player
        alike = None if key.perfect else AlikeRows()
        terminal: list[float] = [0.0]
        level: list[Any] = [tree.game.new_initial_state()]
        base = 0
        levels: list[tuple[npt.NDArray[np.int64], ...]] = []
        probabilities: list[_Floats] = []
        choice: dict[tuple[Hashable, int], list[tuple[int, int, int]]] = {}
        while level:
            below: dict[Hashable, int] = {}
            states: list[Any] = []
            source: list[int] = []
            first, child = [0], list[int]()
            probability: list[float] = []
            for node, (state, row) in enumerate(
                zip(level, _sigma_rows(level, sigma, alike), strict=True), base
            ):
                if state.is_terminal():
                    white = state.returns()[0]
                    terminal[node] = white if player == 0 else tree.utility_sum - white
                    continue
                own = not state.is_chance_node() and state.current_player() == player
                where = key(state) if own else None
                menu = candidates.get(where, []) if own else []
                legal = set(state.legal_actions())
                for number, played in enumerate([row, *menu], -1):
                    if not played.keys() <= legal:
                        raise ArgumentError(
                            "expected position_key to join only states with the same legal "
                            f"actions, got one where {sorted(played)} are played, and one with "
                            f"{sorted(legal)} after {history_words(state, state.history())}"
                        )
                    if own:
                        choice.setdefault((where, number), []).append((len(levels), len(source), node))
                    source.append(node)
                    for action, p in played.items():
                        after = state.child(action)
                        over = after.is_terminal()
                        behind = after.returns()[0] if over else key.node(after)
                        at = below.setdefault((over, behind), len(states))
                        if at == len(states):
                            states.append(after)
                        child.append(base + len(level) + at)
                        probability.append(p)
                    first.append(len(child))
            levels.append(tuple(np.array(column, np.int64) for column in (source, first, child)))
            probabilities.append(np.array(probability, np.float64))
            base += len(level)
            terminal += [0.0] * len(states)
            if base + len(states) > most:
                raise ArgumentError(
                    f"expected a game of at most max_positions={most} positions, got more; every "
                    "visit is looked at to the end of the game"
                )
            level = states
        return cls(np.array(terminal), levels, probabilities, choice)

    def value(self, chosen: Mapping[Hashable, int]) -> float:
        """What a book is worth at the start."""
        return float(self._up(chosen)[0][0])

    def gains(self, chosen: Mapping[Hashable, int]) -> dict[tuple[Hashable, int], float]:
        """What making each choice instead would bring, to first order."""
        values, worth, plays = self._up(chosen)
        reach = np.zeros(len(values))
        reach[0] = 1.0
        for (source, first, child), p, row in zip(self.rows, self.probabilities, plays, strict=True):
            if len(source):
                weight = np.where(row, reach[source], 0.0)
                np.add.at(reach, child, np.repeat(weight, np.diff(first)) * p)
        return {
            each: sum(float(reach[node] * (worth[level][row] - values[node])) for level, row, node in where)
            for each, where in self.choice.items()
        }

    def _up(
        self, chosen: Mapping[Hashable, int]
    ) -> tuple[_Floats, list[_Floats], list[npt.NDArray[np.bool_]]]:
        """Values of nodes, of rows by level, and which rows are played."""
        plays = [np.ones(len(source), np.bool_) for source, _, _ in self.rows]
        for (where, number), places in self.choice.items():
            made = chosen.get(where, -1) == number
            for level, row, _ in places:
                plays[level][row] = made
        values, worth = self.terminal.copy(), [np.zeros(0)] * len(self.rows)
        for level in reversed(range(len(self.rows))):
            source, first, child = self.rows[level]
            if len(source):
                sums = np.append(0.0, np.cumsum(self.probabilities[level] * values[child]))
                worth[level] = sums[first[1:]] - sums[first[:-1]]
                values[source[plays[level]]] = worth[level][plays[level]]
        return values, worth, plays


def _sigma_rows(
    states: Sequence[Any], sigma: tuple[BatchPolicy, BatchPolicy], alike: AlikeRows | None
) -> list[dict[int, float]]:
    """What sigma, or chance, plays at each state; {} where the game is over."""
    played: list[dict[int, float]] = [{} for _ in states]
    going_on = [k for k, state in enumerate(states) if not state.is_terminal()]
    asked = [states[k] for k in going_on]
    rows = movers_rows(asked, sigma, name="sigma", min_probability=0.0)
    if alike is not None:
        alike.hold(asked, rows, ("sigma[0]", "sigma[1]"))
    for k, (row,) in zip(going_on, entry_rows(rows), strict=True):
        played[k] = row
    return played
