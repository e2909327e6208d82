"""Bounds that keep the trunk's triggers safe while subgames are refined one at a time.

A trigger in the trunk depends on all subgames, and none may know what the others become. So each trigger's
room, between what following is worth and what deviating is worth under the blueprint, is shared out among
the subgames: what a player gets by following in a subgame may not fall below a lower bound (B), what it gets
there after deviating may not rise above an upper bound (C).

Shares go down the trunk. With v and beta the blueprint's, and delta = beta* - v at a trigger s:

- delta <= 0: both may move up to (v + beta*) / 2. Otherwise neither may move to the worse.
- (B) the slack of a sequence is split equally among its children, an information set's among its actions;
  where several triggers reach a sequence, the least slack counts.
- (C) for each trigger on its own: an information set's upper bound is that of each of its actions; the slack
  of an action (upper bound less beta) is split equally among its children.

Shares end at the subgames' rows and caps (`subgame_rows`). docs/efce.md proves by induction over children
that this is safe. Which children a sequence s has is a choice, and neither of the safe ones has more welfare
in every game:

| `bounds` | children of s | safe |
|---|---|---|
| "paper" | information sets | no: bundles are bound by nothing |
| "separate" | information sets, and each bundle | yes |
| "aggregate" | the trunk's information sets, and each subgame: its heads and bundle bound together | yes |

Under "aggregate" all of a subgame after s is one row, to which play comes as often in any refinement. So a
constant that is added to a player's utilities changes nothing; under the other two it does (docs/efce.md).

When a refined subgame is decomposed again, its own bounds take the place of the triggers in the trunk before
it (`inherited`), so that what holds for the first refinement holds for the next.

Source: `efce_resolving`, equations 6 to 12 and Theorem 2; bundles are missing there, and Theorem 2 with them
fails.

Cost: a pass over the groups of the trunk; a row for each trigger and head.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from .correlation_plans import CorrelationPlan
from .sequence_game import spread
from .subgame_rows import BoundsKind, PlayerRows, sums
from .triggers import Deviations, leaf_lanes, respond, sum_back

__all__ = ["Inherited", "PlayerBounds", "SubgameBounds", "trunk_bounds"]


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerBounds:
    """A subgame's rows with the bounds that its refinement must keep.

    Attributes:
      lower: float64[R].
      upper: float64[C]. Infinite where there is nothing to keep.
    """

    rows: PlayerRows
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameBounds:
    """Both players' bounds for one subgame. kind: how shares were made."""

    kind: BoundsKind
    players: tuple[PlayerBounds, PlayerBounds]


@dataclasses.dataclass(frozen=True, eq=False)
class TrunkValues:
    """What the blueprint is worth to one player in the trunk: its own leaves, and the rows of all subgames.

    Attributes:
      plan: The blueprint on the trunk.
      rows: By subgame.
      v: float64[S], following, by sequence; of_infoset: float64[m], by information set.
      lanes, sets: Deviating, as `triggers.deviation_values`.
      children: float64[S], information sets and rows right after each sequence.
      cap_lane: By subgame, the lane that each cap stands below.
    """

    plan: CorrelationPlan
    player: int
    rows: Mapping[Hashable, PlayerRows]
    deviations: Deviations
    v: npt.NDArray[np.float64]
    of_infoset: np.ndarray
    lanes: np.ndarray
    sets: np.ndarray
    children: npt.NDArray[np.float64]
    cap_lane: Mapping[Hashable, np.ndarray]

    @classmethod
    def of(cls, plan: CorrelationPlan, player: int, rows: Mapping[Hashable, PlayerRows]) -> TrunkValues:
        """Evaluates both following and deviating."""
        form = plan.game.players[player]
        deviations = Deviations.of(plan.pairs, player)
        worth = plan.xi[plan.pairs.leaves()] * plan.game.leaf_utility[player]
        v = sums(plan.game.leaf_sequence[player], worth, form.num_sequences)
        of_infoset = np.zeros(form.num_infosets)
        lanes, sets = leaf_lanes(deviations, plan.xi), np.full(deviations.num_sets, -np.inf)
        children = sums(form.parent[1:], np.ones(form.num_infosets - 1), form.num_sequences)
        cap_lane = {}
        for name, part in rows.items():
            np.add.at(v, part.sequence, part.value)
            np.add.at(children, part.sequence, 1.0)
            lane = lanes_above(plan, player, deviations, part)
            np.add.at(lanes, lane, part.cap_value)
            cap_lane[name] = lane
        sum_back(form.parent, form.first, v, of_infoset)
        respond(deviations, lanes, sets, np.zeros(0))
        return cls(plan, player, rows, deviations, v, of_infoset, lanes, sets, children, cap_lane)


def lanes_above(plan: CorrelationPlan, player: int, deviations: Deviations, rows: PlayerRows) -> np.ndarray:
    """The trunk's lane that each cap stands below: that of its row's sequence after its trigger."""
    form = plan.game.players[player]
    s = rows.sequence[rows.cap_row]
    infoset = form.infoset[s]
    group = deviations.group(rows.cap_top, infoset)
    return deviations.lane_of(group, rows.cap_action, s - form.first[infoset])


def trunk_bounds(
    plan: CorrelationPlan,
    kind: BoundsKind,
    rows: Mapping[Hashable, Sequence[PlayerRows]],
    inherited: Inherited | None = None,
) -> dict[Hashable, SubgameBounds]:
    """The bounds of each subgame.

    Args:
      plan: the blueprint on the trunk alone.
      kind: see the module.
      rows: of all subgames, for both players.
      inherited: where the trunk's game is itself a refined subgame with its trunk, that subgame's bounds.
    """
    one, two = (
        _share(TrunkValues.of(plan, player, {name: both[player] for name, both in rows.items()}), inherited)
        for player in (0, 1)
    )
    return {name: SubgameBounds(kind, (one[name], two[name])) for name in rows}


def _share(values: TrunkValues, inherited: Inherited | None) -> dict[Hashable, PlayerBounds]:
    """One player's bounds of each subgame."""
    form = values.plan.game.players[values.player]
    deviations, v, children = values.deviations, values.v, values.children

    best = np.full(form.num_sequences, -np.inf)
    at, trigger = deviations.triggers()
    best[trigger] = values.sets[at]
    has = np.isfinite(best)
    room = has & (best <= v)
    middle = np.where(room, 0.5 * (v + np.where(has, best, 0.0)), 0.0)
    slack = np.where(has, np.where(room, v - middle, 0.0), np.inf)
    target = np.where(has, np.where(room, middle, best), np.inf)

    limits = Limits.of(values)
    if inherited is not None:
        before = inherited.frozen[values.player]
        slack[:before], target[:before] = np.inf, np.inf
        inherited.split(values, limits)
    lane_slack = np.full(deviations.num_lanes, np.inf)
    share_following(form.parent, form.first, children, limits.infoset_slack, slack)
    _share_deviating(
        deviations, form.parent, target, children, values.lanes, values.sets, limits.set_upper, lane_slack
    )
    found = {}
    for name, part in values.rows.items():
        share = np.minimum(slack[part.sequence] / children[part.sequence], limits.row_slack[name])
        lane_share = lane_slack[values.cap_lane[name]] / children[part.sequence[part.cap_row]]
        upper = np.minimum(part.cap_value + lane_share, limits.cap_upper[name])
        found[name] = PlayerBounds(part, part.value - share, upper)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Limits:
    """What slack and upper bounds may be at most, infinite to begin with.

    Attributes:
      infoset_slack: float64[m]. set_upper: float64[sets].
      row_slack, cap_upper: By subgame, float64[R] and float64[C].
    """

    infoset_slack: npt.NDArray[np.float64]
    set_upper: np.ndarray
    row_slack: dict[Hashable, np.ndarray]
    cap_upper: dict[Hashable, np.ndarray]

    @classmethod
    def of(cls, values: TrunkValues) -> Limits:
        """Infinite ones."""
        return cls(
            infoset_slack=np.full(len(values.of_infoset), np.inf),
            set_upper=np.full(values.deviations.num_sets, np.inf),
            row_slack={name: np.full(len(rows.sequence), np.inf) for name, rows in values.rows.items()},
            cap_upper={name: np.full(len(rows.cap_row), np.inf) for name, rows in values.rows.items()},
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Inherited:
    """Bounds of a refined subgame that is decomposed again. "Base" is that subgame with the trunk before it.

    The trunk before keeps its numbers at every depth, so its sequences and triggers need no translation.

    Attributes:
      bounds: The base subgame's, in the base's numbers.
      frozen: For both players, how many sequences the trunk before the base subgame has; they come first.
      infoset: For both players, the base's information set of each of the new trunk's.
      part_infosets: By the new subgames' names, the same for their information sets.
    """

    bounds: SubgameBounds
    frozen: Sequence[int]
    infoset: Sequence[np.ndarray]
    part_infosets: Mapping[Hashable, Sequence[np.ndarray]]

    def split(self, values: TrunkValues, limits: Limits) -> None:
        """Splits the bounds among what their rows have become, and lowers `limits` to that.

        An inherited row has become heads of the trunk, rows of the new subgames, and leaves of its bundle
        that are settled by now, since the opponent's sequence is in the new trunk, not the old.
        """
        lower, upper = self._pieces(values, limits)
        old = self.bounds.players[values.player]
        limited = np.concatenate([piece.of for piece in lower if piece.limit is not None])
        count = np.bincount(limited, minlength=len(old.lower))
        # Less than nothing is rounding.
        share = np.maximum((_summed(lower, old.lower) - old.lower) / np.maximum(count, 1), 0.0)
        for piece in lower:
            if piece.limit is not None:
                piece.limit[piece.at] = share[piece.of]
        share = (old.upper - _summed(upper, old.upper)) / np.maximum(count[old.rows.cap_row], 1)
        for piece in upper:
            if piece.limit is not None:
                piece.limit[piece.at] = piece.value + np.maximum(share[piece.of], 0.0)

    def _row_of(self, name: Hashable, rows: PlayerRows, player: int) -> np.ndarray:
        """The inherited row that each row of a new subgame comes from, -1 for none."""
        old = self.bounds.players[player].rows
        found = np.full(len(rows.sequence), -1, np.int64)
        for row, mine in (
            (rows.head_row, old.row_of_heads(self.part_infosets[name][player][rows.head])),
            (rows.bundle_row, old.row_of_bundles(rows.bundle)),
        ):
            known = (mine >= 0) & (rows.sequence[row] < self.frozen[player])
            found[row[known]] = mine[known]
        return found

    def _pieces(self, values: TrunkValues, limits: Limits) -> tuple[list[_Piece], list[_Piece]]:
        """What the inherited rows have come to, (B), and their caps for each trigger on its own, (C)."""
        plan, player, deviations = values.plan, values.player, values.deviations
        game, old = plan.game, self.bounds.players[player].rows
        own, other = game.leaf_sequence[player], game.leaf_sequence[1 - player]
        settled = (own < self.frozen[player]) & (other >= self.frozen[1 - player])
        head_row = old.row_of_heads(self.infoset[player])
        heads, leaves = np.flatnonzero(head_row >= 0), np.flatnonzero(settled)
        row = old.row_of_bundles(own[leaves])
        leaves, row = leaves[row >= 0], row[row >= 0]
        worth = plan.xi[plan.pairs.leaves()[leaves]] * game.leaf_utility[player][leaves]
        lower = [
            _Piece(limits.infoset_slack, heads, head_row[heads], values.of_infoset[heads]),
            _Piece(None, leaves, row, worth),
        ]
        groups = np.flatnonzero(head_row[deviations.infoset] >= 0)
        which, action = spread(deviations.num_triggers[groups])
        group = groups[which]
        cap = old.cap_of(head_row[deviations.infoset[group]], deviations.top[group], action)
        sets, cap = (deviations.set_[group] + action)[cap >= 0], cap[cap >= 0]
        settled_only = np.where(settled[deviations.leaf], deviations.utility, 0.0)
        lanes = leaf_lanes(deviations._replace(utility=settled_only), plan.xi)
        bundle = np.flatnonzero(old.row_of_bundles(old.sequence[old.cap_row]) == old.cap_row)
        lane = lanes_above(plan, player, deviations, old)[bundle]
        upper = [
            _Piece(limits.set_upper, sets, cap, values.sets[sets]),
            _Piece(None, lane, bundle, lanes[lane]),
        ]
        for name, part in values.rows.items():
            mine = self._row_of(name, part, player)
            at = np.flatnonzero(mine >= 0)
            lower.append(_Piece(limits.row_slack[name], at, mine[at], part.value[at]))
            mine = old.cap_of(mine[part.cap_row], part.cap_top, part.cap_action)
            at = np.flatnonzero(mine >= 0)
            upper.append(_Piece(limits.cap_upper[name], at, mine[at], part.cap_value[at]))
        return lower, upper


class _Piece(NamedTuple):
    """What inherited rows or caps have come to in one place.

    Attributes:
      limit: What to lower there; None for leaves that are settled.
      at: int64[n], where in `limit`; of: int64[n], the row or cap that each comes from; value: float64[n].
    """

    limit: np.ndarray | None
    at: np.ndarray
    of: np.ndarray
    value: np.ndarray


def _summed(pieces: list[_Piece], like: np.ndarray) -> np.ndarray:
    """The pieces' values by row or cap."""
    total = np.zeros(len(like))
    for piece in pieces:
        np.add.at(total, piece.of, piece.value)
    return total


@kernel
def share_following(
    parent: np.ndarray,
    first: np.ndarray,
    children: np.ndarray,
    infoset_slack: np.ndarray,
    slack: np.ndarray,
) -> None:
    """Passes slack down.

    `slack`, by sequence, has each trigger's own to begin with, `infoset_slack` what is inherited.
    """
    for k in range(1, len(parent)):
        above = parent[k]
        infoset_slack[k] = min(infoset_slack[k], slack[above] / children[above])
        n = first[k + 1] - first[k]
        for s in range(first[k], first[k + 1]):
            slack[s] = min(slack[s], infoset_slack[k] / n)


@kernel
def _share_deviating(
    deviations: Deviations,
    parents: np.ndarray,
    target: np.ndarray,
    children: np.ndarray,
    lanes: np.ndarray,
    sets: np.ndarray,
    set_upper: np.ndarray,
    lane_slack: np.ndarray,
) -> None:
    """Upper bounds down each trigger's tree: slack by lane, from target[s+] at I+ on."""
    first, infosets, through = deviations.first, deviations.infoset, deviations.through
    for g in range(len(infosets)):
        n = deviations.num_actions[g]
        up = deviations.parent[g]
        s = parents[infosets[g]]
        for k in range(deviations.num_triggers[g]):
            if k == through[g]:
                continue
            at = deviations.set_[g] + k
            if up >= 0:
                lane = deviations.lane[up] + k * deviations.num_actions[up] + deviations.parent_action[g]
                set_upper[at] = min(set_upper[at], sets[at] + lane_slack[lane] / children[s])
            else:
                set_upper[at] = min(set_upper[at], target[first[infosets[g]] + k])
            for a in range(n):
                if up >= 0 or k != a:
                    lane = deviations.lane[g] + k * n + a
                    lane_slack[lane] = set_upper[at] - lanes[lane]
