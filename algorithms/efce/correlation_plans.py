"""Relevant pairs of sequences, and the polytope Xi of correlation plans, which have one number for each pair.

Pairs stand in *blocks*, one for each pair (I, J) of connected information sets, number 0 ("before the first
decision") being connected with all. The block of (I, J) has |A(I)| |A(J)| entries, player 0's action first.
Counting pairs therefore needs the connected information sets only. Xi is

    xi >= 0,   xi[empty, empty] = 1,
    sum over a of xi[I a, tau] = xi[parent(I), tau]   for every I of player 0 and every tau relevant to it,

and the same for player 1. In games without triangles the points of Xi are what the distributions over pairs
of pure strategies induce; other games are refused.

**Triangles** are where chance can make Xi larger than that. Let s be a sequence of player 0 and t one of
player 1, and look at which information sets right after s are connected with which right after t. A
*triangle* is a path through four of them: I' - J - I - J', with I and I' right after s, and J and J' right
after t. A plan says of each connected pair for itself what is recommended together, and along such a path
that may be more than one distribution over pairs of pure strategies can do. Games without triangles have none
of this: there Xi is what those distributions induce, and `scaled_extensions` writes its points. (Not every
triangle does harm, but all are refused.)

Games without chance have no triangle, and neither have games in which both players see what chance draws.
Where each player sees cards of its own there is nearly always one.

**Blueprints** are plans to start from, asked for entry by entry and never stored in full. `ProductBlueprint`
lets the players move independently, xi[s, tau] = x[s] y[tau], each by a behavioral strategy: uniform,
jittered around uniform, or any OpenSpiel policy. A `CorrelationPlan`, such as an equilibrium or an earlier
refinement, is a blueprint of what it holds.

A strategy is a function of the information state's string, so the same blueprint serves the whole game, its
trunk, or one subgame. Jitter is drawn by hashing (seed, player, string): it does not depend on what part of
the game is held, nor on the utilities.

Source: von Stengel and Forges; `efce_resolving`, Definitions 1 to 3, and Theorem 1 for which subgame a pair
belongs to, and Definition 7; with chance, Farina and Sandholm 2020, *Polynomial-Time Computation of Optimal
Correlated Equilibria in Two-Player Extensive-Form Games with Public Chance Moves and Beyond*.

Cost: a sort of the connected information sets; 20 bytes a block. Xi has about one row a pair, |A(I)| + 1
entries each.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse
from open_spiel.python.policy import TabularPolicy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.kernels import kernel, read_only
from precomp_games._support.results import Result, Shown

from ..sequence_form import connected_infosets
from .sequence_game import SequenceGame, find, spread


def check_triangle_free(game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
    """Refuse a game, or a part of one, that has a triangle.

    Args:
      game: the game.
      first: int64[B], player 0's set of each block.
      second: int64[B], player 1's.

    Raises:
      ValueError: it has one; the error names the four information sets.
    """
    if game.has_chance:
        _check_connections(_connections(game, first, second), [form.keys for form in game.players])


def _connections(game: SequenceGame, first: np.ndarray, second: np.ndarray) -> npt.NDArray[np.int64]:
    """Return int64[4, n], of blocks: both players' connected sets, and the sequences before them."""
    both = (first > 0) & (second > 0)
    sets = first[both], second[both]
    before = [form.parent[mine].astype(np.int64) for form, mine in zip(game.players, sets, strict=True)]
    return np.stack([*sets, *before])


def _check_connections(connections: npt.NDArray[np.int64], keys: Sequence[Sequence[str]]) -> None:
    """Check as `check_triangle_free`; keys: both players' information sets' strings, by number."""
    first, second, first_parent, second_parent = connections
    # I and J are connected, I with several sets right after t, and J with several right after s.
    of_first, after_t = _groups(first, second_parent)
    of_second, after_s = _groups(second, first_parent)
    middle = np.flatnonzero((after_t > 1) & (after_s > 1))
    if len(middle):
        at = middle[0]
        i, j = first[at], second[at]
        other_first = first[(of_second == of_second[at]) & (first != i)][0]
        other_second = second[(of_first == of_first[at]) & (second != j)][0]
        raise ArgumentError(
            "expected a game without triangles, such as one in which both players see what chance draws (in "
            f"others plans may be no correlation), got player 0's {keys[0][other_first]!r} and "
            f"{keys[0][i]!r}, which come after the same moves of its own, and likewise player 1's "
            f"{keys[1][j]!r} and {keys[1][other_second]!r}: play can come to the first of both, to the "
            "second of both, and to player 0's second with player 1's first"
        )


def _groups(key: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (number of the pair (key, other), how many such pairs there are): int64[n] each."""
    codes = key * (1 + other.max(initial=0)) + other
    _, group, count = np.unique(codes, return_inverse=True, return_counts=True)
    return group, count[group]


class TrunkConnections:
    """Connections of the trunk by triangles that lie in several parts of a game, held one at a time.

    All four sets of such a triangle come right after sequences of the trunk.
    """

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.int64]] = []
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def add(self, game: SequenceGame, first: np.ndarray, second: np.ndarray) -> None:
        """Add the blocks of the trunk and one subgame; all have the same trunk."""
        if not game.has_chance:
            return
        part = _connections(game, first, second)
        for player, form in enumerate(game.players):
            part = part[:, part[2 + player] < form.first[(form.label < 0).sum()]]
        for player, (form, number) in enumerate(zip(game.players, self._numbers, strict=True)):
            part[player] = [number.setdefault(form.keys[k], len(number)) for k in part[player].tolist()]
        self._parts.append(part)

    def check(self) -> None:
        """Check as `check_triangle_free`."""
        if self._parts:
            every = np.unique(np.concatenate(self._parts, axis=1), axis=1)
            _check_connections(every, [list(number) for number in self._numbers])


_MISS = 1e-6
"""By how much a plan may miss Xi: solvers' tolerances, added up, and single precision."""
_MOST_BLOCKS = 1 << 16
"""Whose sums are looked at together."""


@dataclasses.dataclass(frozen=True, eq=False)
class RelevantPairs(Shown):
    """The relevant pairs of a game, or of its trunk and one subgame.

    Attributes:
      game: The pairs' sequences are this one's.
      first, second: int64[B], the information sets of players 0 and 1 of each block, sorted.
      start: int64[B + 1], the first pair of each block.
      label: int32[B], the subgame of a block's pairs (index into the game's labels), -1 for the trunk.
    """

    game: SequenceGame
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    label: npt.NDArray[np.int32]
    _codes: np.ndarray

    def __repr__(self) -> str:
        return f"RelevantPairs({len(self):,} in {len(self.first):,} blocks of {self.game})"

    @classmethod
    def of(cls, game: SequenceGame) -> RelevantPairs:
        """Return all relevant pairs of `game`.

        Raises:
          ValueError: a pair would belong to two subgames, so they are none; or there are triangles.
        """
        one, two = game.players
        count = two.num_infosets
        on_paths = connected_infosets(game.node_parent, game.node_player, game.node_infoset, count)
        with_none = np.concatenate([np.arange(count), np.arange(one.num_infosets) * count])
        codes = np.unique(np.concatenate([with_none, on_paths]))
        first, second = np.divmod(codes, count)
        check_triangle_free(game, first, second)
        sizes = one.num_actions[first] * two.num_actions[second]
        own, other = one.label[first], two.label[second]
        if ((own >= 0) & (other >= 0) & (own != other)).any():
            raise ArgumentError("expected valid subgames, but a path visits two of them")
        start = np.concatenate([[0], np.cumsum(sizes)])
        return cls(game, first, second, start, np.maximum(own, other), codes)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return int(self.start[-1])

    @property
    def pair_label(self) -> npt.NDArray[np.int32]:
        """int32[pairs], the subgame that each belongs to, -1 for the trunk."""
        return np.repeat(self.label, np.diff(self.start))

    @property
    def num_in_subgames(self) -> int:
        """Number of pairs outside the trunk."""
        return int(np.diff(self.start)[self.label >= 0].sum())

    def index(self, first: np.ndarray, second: np.ndarray) -> npt.NDArray[np.int64]:
        """Return the pairs of player 0's and player 1's sequences, as many of each; -1 if irrelevant."""
        one, two = self.game.players
        i, j = one.infoset[first].astype(np.int64), two.infoset[second]
        blocks = find(self._codes, i * two.num_infosets + j)
        inside = (first - one.first[i]) * two.num_actions[j] + (second - two.first[j])
        return np.where(blocks >= 0, self.start[blocks] + inside, -1)

    def sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """Return player 0's and player 1's sequence of each pair: int64[pairs] each."""
        one, two = self.game.players
        sizes = np.diff(self.start)
        inside = np.arange(len(self)) - np.repeat(self.start[:-1], sizes)
        width = np.repeat(two.num_actions[self.second], sizes)
        return (
            np.repeat(one.first[self.first], sizes) + inside // width,
            np.repeat(two.first[self.second], sizes) + inside % width,
        )

    def leaves(self) -> npt.NDArray[np.int64]:
        """Return int64[L], the pair of each leaf."""
        return self.index(*self.game.leaf_sequence)


class Blueprint(Protocol):
    """Anything that knows the entries of a correlation plan."""

    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the plan at pairs of `plan_game`'s sequences: float64, as long as `first` and `second`."""


def check_blueprint(value: Any) -> Any:
    """Return the value if it has a method `entries`, which gives a plan's entries.

    Raises:
      ValueError: it has none; most often it is a function that makes blueprints, not yet called.
    """
    if isinstance(value, type) or not callable(getattr(value, "entries", None)):
        raise ArgumentError(
            "expected a blueprint, such as uniform_blueprint(), jittered_blueprint(seed) or a "
            f"CorrelationPlan, got {shown(value)}"
        )
    return value


AnyBlueprint = Annotated[Blueprint, checks.Check(lambda value, name: check_blueprint(value))]
"""A blueprint that is given to a function."""


@public
@dataclasses.dataclass(frozen=True, eq=False)
class CorrelationPlan(Result):
    """A point of Xi, which is checked when it is made.

    Attributes:
      pairs: Its index.
      xi: float64[pairs], probabilities that both sequences are recommended, as an array that cannot be
        written to: the given one where that is so already, else a copy.

    Raises:
      ValueError: another length, numbers that are not finite, or a vector that misses Xi by more than 1e-6.
    """

    _made_by = "CorrelationPlan(pairs, xi)"

    pairs: RelevantPairs
    xi: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        xi = checks.real_array(self.xi)
        if xi is None or xi.shape != (len(self.pairs),) or not np.isfinite(xi).all():
            raise ArgumentError(f"expected xi to be {len(self.pairs)} finite numbers, got {shown(self.xi)}")
        error = plan_error(self.pairs, xi)
        if error > _MISS:
            raise ArgumentError(
                f"expected xi to be a correlation plan, got a vector that misses Xi by {error:.1e}"
            )
        if xi.flags.writeable or not xi.flags.owndata:
            xi = np.array(xi)
            xi.flags.writeable = False
        object.__setattr__(self, "xi", xi)

    @classmethod
    @public
    def of(cls, game: SequenceGame, blueprint: AnyBlueprint) -> CorrelationPlan:
        """Return a blueprint's entries at all relevant pairs of a game, or of a part of one.

        Raises:
          ValueError: they are not in Xi, or the blueprint is of another game.
        """
        pairs = RelevantPairs.of(game)
        try:
            xi = np.asarray(blueprint.entries(game, *pairs.sequences()), np.float64)
            return cls(pairs, np.maximum(xi, 0.0) if xi.min(initial=0.0) > -_MISS else xi)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"expected a blueprint of this game, got {shown(blueprint)}: {error}"
            ) from error

    def __repr__(self) -> str:
        return f"CorrelationPlan({len(self.pairs):,} pairs of {self.game})"

    @property
    def game(self) -> SequenceGame:
        """The pairs' game."""
        return self.pairs.game

    @public
    def utilities(self, label: int | None = None) -> tuple[float, float]:
        """Return both players' expected utilities; with `label`, of that subgame's leaves alone.

        Raises:
          ValueError: there is no subgame of this number.
        """
        weight = self.xi[self.pairs.leaves()]
        if label is not None:
            label = checks.check_integer(label, "label", least=0, most=len(self.game.labels) - 1)
            weight = np.where(self.game.leaf_label == label, weight, 0.0)
        u = self.game.leaf_utility @ weight
        return float(u[0]), float(u[1])

    @public
    def welfare(self, label: int | None = None) -> float:
        """Return the social welfare: the sum of `utilities`."""
        return sum(self.utilities(label))

    @public
    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return entries, as `Blueprint`; `plan_game` is the plan's own game or a part of it.

        Raises:
          ValueError: it is of another game, or holds what the plan does not; a pair is not relevant.
        """
        counts = [form.num_sequences for form in plan_game.players]
        first = checks.check_indices(first, counts[0], "first")
        second = checks.check_indices(second, counts[1], "second")
        if len(first) != len(second):
            raise ArgumentError(
                f"expected as many of player 1 as of player 0, got {len(second)} and {len(first)}"
            )
        if plan_game is not self.game:
            numbers = plan_game.sequences_in(self.game)
            first, second = numbers[0][first], numbers[1][second]
        at = self.pairs.index(first, second)
        if (at < 0).any():
            raise ArgumentError("expected relevant pairs, got some that are not")
        probabilities: npt.NDArray[np.float64] = self.xi[at]
        return probabilities


def flow_constraints(pairs: RelevantPairs, player: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return one player's flow constraints on the plans in Xi.

    Returns:
      (F, block) with F xi = 0; block: int64[rows], the block that each row's left side lies in.
    """
    sums = _Sums.of(pairs, player)
    row, k = spread(sums.number)
    entry_row, a = spread(sums.size[row])
    column = (sums.start[row] + k * sums.next_sum[row])[entry_row] + a * sums.stride[row][entry_row]
    source = sums.source[row] + k * sums.next_source[row]
    matrix = scipy.sparse.csr_array(
        (
            np.concatenate([np.ones(len(column)), -np.ones(len(row))]),
            (np.concatenate([entry_row, np.arange(len(row))]), np.concatenate([column, source])),
        ),
        shape=(len(row), len(pairs)),
    )
    return matrix, sums.block[row]


class _Sums(NamedTuple):
    """Flow constraints of one player, by block: int64 each. A tuple, so that numba takes it.

    Attributes:
      block: The block that is summed over the player's actions, once for each of the opponent's.
      number, size: The number of sums in the block, and of entries in each.
      start: The first sum's first entry.
      stride, next_sum: From an entry to the next one of its sum, and to the next sum's.
      source, next_source: The entry that the first sum must equal, in the block of the player's set before;
        and the step to the next one.
    """

    block: np.ndarray
    number: np.ndarray
    size: np.ndarray
    start: np.ndarray
    stride: np.ndarray
    next_sum: np.ndarray
    source: np.ndarray
    next_source: np.ndarray

    @classmethod
    def of(cls, pairs: RelevantPairs, player: int, which: slice = slice(None)) -> _Sums:
        """Return the sums over a player's actions, in all blocks that have any or in some of them."""
        form, other = pairs.game.players[player], pairs.game.players[1 - player]
        own, theirs = (pairs.first, pairs.second) if player == 0 else (pairs.second, pairs.first)
        block = np.flatnonzero(own > 0)[which]
        own, theirs = own[block], theirs[block]
        size, number = form.num_actions[own], other.num_actions[theirs]
        above, first = form.parent[own].astype(np.int64), other.first[theirs]
        source = pairs.index(above, first) if player == 0 else pairs.index(first, above)
        one = np.ones_like(size)
        # Player 0's action comes first in a block, so that player 1's are neighbors.
        if player == 0:
            return cls(block, number, size, pairs.start[block], number, one, source, one)
        width = form.num_actions[form.infoset[above]]
        return cls(block, number, size, pairs.start[block], one, size, source, width)


def plan_error(pairs: RelevantPairs, xi: np.ndarray) -> float:
    """Return the greatest violation of Xi's constraints by a vector, float64[pairs]."""
    xi = read_only(xi)
    worst = max(abs(float(xi[0]) - 1.0), -float(xi.min()))
    for player in (0, 1):
        for first in range(0, len(pairs.start), _MOST_BLOCKS):  # all at once take as much memory as xi
            some = _Sums.of(pairs, player, slice(first, first + _MOST_BLOCKS))
            worst = max(worst, float(_worst_sum(xi, some)))
    return worst


@kernel
def _worst_sum(xi: np.ndarray, sums: _Sums) -> float:
    """Return the worst difference of a sum over a player's actions from its source."""
    worst = 0.0
    number, size, start, stride = sums.number, sums.size, sums.start, sums.stride
    next_sum, source, next_source = sums.next_sum, sums.source, sums.next_source
    for b in range(len(number)):
        for k in range(number[b]):
            total = -xi[source[b] + k * next_source[b]]
            for a in range(size[b]):
                total += xi[start[b] + k * next_sum[b] + a * stride[b]]
            worst = max(worst, abs(total))
    return worst


Behavior = Callable[[int, str, list[int]], Any]
"""(player, information state string, actions) -> probabilities, in the order of the actions or by action."""


class ProductBlueprint:
    """Two players who move independently.

    Args:
      behavior: each player's behavioral strategy.
      name: for messages.
    """

    def __init__(self, behavior: Behavior, name: str = "blueprint") -> None:
        self._behavior, self.name = behavior, name
        self._last: tuple[SequenceGame, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] | None = None

    def __repr__(self) -> str:
        return self.name

    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return entries, as `correlation_plans.Blueprint`.

        Raises:
          ValueError: as `realization_plans`.
        """
        x, y = self.realization_plans(plan_game)
        entries: npt.NDArray[np.float64] = x[first] * y[second]
        return entries

    def realization_plans(
        self, game: SequenceGame
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return (x, y): float64[S] each, the probability of a sequence by the player's own choices.

        Raises:
          ValueError: what a player does somewhere is no distribution over its actions.
        """
        if self._last is None or self._last[0] is not game:
            self._last = (game, (self._plan(game, 0), self._plan(game, 1)))
        return self._last[1]

    def _plan(self, game: SequenceGame, player: int) -> npt.NDArray[np.float64]:
        form = game.players[player]
        infosets = range(1, form.num_infosets)
        rows = [self._checked(player, form.keys[k], form.actions(k)) for k in infosets]
        return form.realized(np.concatenate([np.ones(1), *rows]))

    def _checked(self, player: int, key: str, actions: list[int]) -> npt.NDArray[np.float64]:
        row = self._behavior(player, key, actions)
        if isinstance(row, Mapping) and set(row) <= set(actions):
            row = [row.get(action, 0.0) for action in actions]
        p = checks.real_array(row)
        # Written so that NaN fails, and short: it runs once for each information set.
        if p is None or p.shape != (len(actions),) or not p.min() >= 0.0 or not abs(p.sum() - 1.0) < 1e-6:
            raise ValueError(
                f"{self.name}: expected a strategy, that is, a distribution over {actions} at "
                f"player {player}'s {key!r}, got {shown(row)}"
            )
        normalized: npt.NDArray[np.float64] = p / p.sum()
        return normalized


@public
def uniform_blueprint() -> ProductBlueprint:
    """Return the blueprint in which both players choose among their actions with equal probabilities."""
    return ProductBlueprint(lambda player, key, actions: np.full(len(actions), 1.0 / len(actions)))


@public
def jittered_blueprint(
    seed: int, width: Annotated[float, checks.Ge(0.0), checks.Le(1.0)] = 0.5
) -> ProductBlueprint:
    """Return a blueprint whose action a has weight 1 + width * e(a), e uniform in [-1, 1].

    Raises:
      ValueError: the width is not between 0 and 1, or the seed no integer.
    """

    def behavior(player: int, key: str, actions: list[int]) -> np.ndarray:
        weights = np.empty(len(actions))
        for k, action in enumerate(actions):
            text = f"{seed}|{player}|{action}|{key}".encode()
            draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2.0**64
            weights[k] = 1.0 + width * (2.0 * draw - 1.0)
        total = weights.sum()
        return weights / total if total > 0.0 else np.full(len(actions), 1.0 / len(actions))

    return ProductBlueprint(behavior, f"jittered_blueprint(seed={seed}, width={width:g})")


@public
def policy_blueprint(policies: Annotated[Any, checks.Check(checks.check_pair)]) -> ProductBlueprint:
    """Return the blueprint of one OpenSpiel policy for both players, or of a pair of them.

    They are asked by information state string (`TabularPolicy`, `pyspiel.TabularPolicy`, ...).

    Raises:
      ValueError: a policy cannot be asked so.
    """
    ask = [_by_string(policy) for policy in policies]
    return ProductBlueprint(lambda player, key, actions: ask[player](key))


def _by_string(policy: Any) -> Callable[[str], Any]:
    if isinstance(policy, TabularPolicy):

        def ask(key: str) -> Any:
            known = key in policy.state_lookup
            return {a: p for a, p in enumerate(policy.policy_for_key(key)) if p > 0.0} if known else None

        return ask
    # pyspiel.TabularPolicy and other C++ ones.
    if hasattr(policy, "get_state_policy") and not isinstance(policy, type):
        return lambda key: dict(policy.get_state_policy(key))
    raise ArgumentError(
        "expected policies that answer for information state strings (TabularPolicy), "
        f"got {shown(policy)}; open_spiel.python.policy.tabular_policy_from_callable makes one"
    )
