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

A subgame's *rows* are what the shares end at. A *head* is an information set inside a subgame whose parent
sequence s is in the trunk. A *bundle* (s, j) is made of the leaves of subgame j at which the player's last
sequence is still s: where the opponent's move in j ends the game. Refining j changes them too.

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
from collections.abc import Hashable
from typing import Literal

import numba
import numpy as np

from .correlation_plans import CorrelationPlan
from .sequence_game import spread
from .triggers import (
    Deviations,
    deviation_values,
    following_values,
    leaf_lanes,
    respond,
    sum_back,
)

__all__ = [
    "BOUNDS",
    "BoundsKind",
    "PlayerBounds",
    "PlayerRows",
    "SubgameBounds",
    "TrunkBounds",
    "player_rows",
]

BoundsKind = Literal["paper", "separate", "aggregate"]
"""How slack is shared; see the module."""
BOUNDS: tuple[BoundsKind, ...] = ("paper", "separate", "aggregate")
"""All of them."""


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerRows:
    """What one subgame means to one player in the trunk, under the blueprint.

    Numbers are those of the trunk with the subgame.

    Attributes:
      sequence: int64[R], the trunk's sequence that each row stands below.
      value: float64[R], following.
      member_row, member_infoset: int64[M], the row's heads, -1 for its bundle.
      cap_row, cap_top, cap_action: int64[C]; a cap is a row after the trigger (cap_top, cap_action).
      cap_value: float64[C], deviating.
    """

    sequence: np.ndarray
    value: np.ndarray
    member_row: np.ndarray
    member_infoset: np.ndarray
    cap_row: np.ndarray
    cap_top: np.ndarray
    cap_action: np.ndarray
    cap_value: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerBounds:
    """A subgame's rows with the bounds that its refinement must keep.

    Attributes:
      lower: float64[R].
      upper: float64[C]. Infinite where there is nothing to keep.
    """

    rows: PlayerRows
    lower: np.ndarray
    upper: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameBounds:
    """Both players' bounds for one subgame. kind: how shares were made."""

    kind: BoundsKind
    players: tuple[PlayerBounds, PlayerBounds]


def player_rows(plan: CorrelationPlan, deviations: Deviations, player: int, kind: BoundsKind) -> PlayerRows:
    """The rows of the one subgame that `plan`'s game holds."""
    game = plan.game
    form = game.players[player]
    trunk_sets = int((form.label < 0).sum())  # they come first
    trunk_sequences = int(form.first[trunk_sets])
    _, following = following_values(plan, player)
    _, sets = deviation_values(deviations, plan.xi)
    heads = trunk_sets + np.flatnonzero(form.parent[trunk_sets:] < trunk_sequences)
    inside = (game.leaf_label >= 0) & (game.leaf_sequence[player] < trunk_sequences)
    weight = plan.xi[plan.pairs.leaves()] * game.leaf_utility[player]
    bundle_value = _sums(game.leaf_sequence[player][inside], weight[inside], trunk_sequences)
    bundles = np.unique(game.leaf_sequence[player][inside]).astype(np.int64)
    if kind == "paper":
        bundles = bundles[:0]
    infoset = np.concatenate([heads, np.full(len(bundles), -1, np.int64)])
    sequence = np.concatenate([form.parent[heads].astype(np.int64), bundles])
    value = np.concatenate([following[heads], bundle_value[bundles]])
    if kind == "aggregate":
        distinct, row = np.unique(sequence, return_inverse=True)
    else:
        distinct, row = sequence, np.arange(len(sequence))

    # Caps: a head's sets, a bundle's leaves after each trigger.
    top, infosets, through = deviations.top, deviations.infoset, deviations.through
    is_head = np.zeros(form.num_infosets, np.bool_)
    is_head[heads] = True
    groups = np.flatnonzero(is_head[infosets] & (top < trunk_sets))
    place = np.full(form.num_infosets, -1, np.int64)
    place[heads] = row[: len(heads)]
    which, k = spread(deviations.num_triggers[groups])
    g = groups[which]
    used = k != through[g]
    g, k = g[used], k[used]
    cap = [place[infosets[g]], top[g], k, sets[deviations.set_[g] + k]]
    if len(bundles):
        bundle_lanes = _inside_lanes(deviations, plan.xi, inside[deviations.leaf])
        of_sequence = np.full(trunk_sequences, -1, np.int64)
        of_sequence[bundles] = row[len(heads) :]
        groups = np.flatnonzero(infosets < trunk_sets)
        which, lane = spread(np.diff(deviations.lane)[groups])
        g = groups[which]
        n = deviations.num_actions[g]
        k, a = lane // n, lane % n
        s = form.first[infosets[g]] + a
        used = (of_sequence[s] >= 0) & np.where(through[g] >= 0, k != through[g], k != a)
        g, k, a, s, lane = g[used], k[used], a[used], s[used], lane[used]
        more = [of_sequence[s], top[g], k, bundle_lanes[deviations.lane[g] + lane]]
        cap = [np.concatenate(pair) for pair in zip(cap, more, strict=True)]
    code = (cap[0] * form.num_infosets + cap[1]) * max(int(form.num_actions.max()), 1) + cap[2]
    _, one, which = np.unique(code, return_index=True, return_inverse=True)
    return PlayerRows(
        sequence=distinct,
        value=_sums(row, value, len(distinct)),
        member_row=row,
        member_infoset=infoset,
        cap_row=cap[0][one],
        cap_top=cap[1][one],
        cap_action=cap[2][one],
        cap_value=_sums(which, cap[3], len(one)),
    )


class TrunkBounds:
    """Collects the rows of all subgames, then bounds each.

    Args:
      plan: the blueprint on the trunk alone.
      kind: see the module.
      inherited: where the trunk's game is itself a refined subgame with its trunk, that subgame's bounds, and
        for both players the base game's information set of each of the trunk's.
    """

    def __init__(
        self,
        plan: CorrelationPlan,
        kind: BoundsKind,
        inherited: Inherited | None = None,
    ) -> None:
        if kind not in BOUNDS:
            raise ValueError(f"TrunkBounds(): expected bounds to be one of {', '.join(BOUNDS)}, got {kind!r}")
        self.kind: BoundsKind = kind
        self.plan = plan
        self._inherited = inherited
        self._rows: dict[Hashable, tuple[PlayerRows, PlayerRows]] = {}
        self._bounds: dict[Hashable, SubgameBounds] | None = None

    def add(self, name: Hashable, rows: tuple[PlayerRows, PlayerRows]) -> None:
        """A subgame's rows, once for each subgame."""
        self._rows[name] = rows
        self._bounds = None

    def bounds(self, name: Hashable) -> SubgameBounds:
        """The bounds of a subgame, when all have been added."""
        if self._bounds is None:
            one, two = self._share(0), self._share(1)
            self._bounds = {name: SubgameBounds(self.kind, (one[name], two[name])) for name in self._rows}
        return self._bounds[name]

    def _share(self, player: int) -> dict[Hashable, PlayerBounds]:
        """Bounds of all subgames."""
        plan, form = self.plan, self.plan.game.players[player]
        names = list(self._rows)
        rows = [self._rows[name][player] for name in names]
        deviations = Deviations.of(plan.pairs, player)
        count = form.num_sequences

        # What the blueprint is worth in the trunk: its own leaves, and the rows below.
        worth = plan.xi[plan.pairs.leaves()] * plan.game.leaf_utility[player]
        v = _sums(plan.game.leaf_sequence[player], worth, count)
        of_infoset = np.zeros(form.num_infosets)
        lanes, sets = leaf_lanes(deviations, plan.xi), np.full(deviations.num_sets, -np.inf)
        children = np.bincount(form.parent[1:], minlength=count).astype(np.float64)
        cap_lane = []
        for part in rows:
            np.add.at(v, part.sequence, part.value)
            np.add.at(children, part.sequence, 1.0)
            s = part.sequence[part.cap_row]
            group = deviations.group(part.cap_top, form.infoset[s])
            lane = (
                deviations.lane[group]
                + part.cap_action * deviations.num_actions[group]
                + (s - form.first[form.infoset[s]])
            )
            cap_lane.append(lane)
            np.add.at(lanes, lane, part.cap_value)
        sum_back(form.parent, form.first, v, of_infoset)
        respond(deviations, lanes, sets)

        best = np.full(count, -np.inf)
        at, trigger = deviations.triggers()
        best[trigger] = sets[at]
        has = np.isfinite(best)
        room = has & (best <= v)
        middle = np.where(room, 0.5 * (v + np.where(has, best, 0.0)), 0.0)
        own_slack = np.where(has, np.where(room, v - middle, 0.0), np.inf)
        target = np.where(has, np.where(room, middle, best), np.inf)

        infoset_slack = np.full(form.num_infosets, np.inf)
        set_upper = np.full(deviations.num_sets, np.inf)
        row_slack = [np.full(len(part.sequence), np.inf) for part in rows]
        cap_upper = [np.full(len(part.cap_row), np.inf) for part in rows]
        if self._inherited is not None:
            before = self._inherited.frozen[player]
            own_slack[before], target[before] = np.inf, np.inf
            self._inherited.start(
                player, plan, deviations, of_infoset, sets, names, rows,
                infoset_slack, set_upper, row_slack, cap_upper,
            )  # fmt: skip

        slack = own_slack.copy()
        lane_slack = np.full(deviations.num_lanes, np.inf)
        share_following(form.parent, form.first, children, infoset_slack, slack)
        _share_deviating(deviations, form.parent, target, children, lanes, sets, set_upper, lane_slack)
        found = {}
        for k, name in enumerate(names):
            part = rows[k]
            share = np.minimum(slack[part.sequence] / children[part.sequence], row_slack[k])
            lane_share = lane_slack[cap_lane[k]] / children[part.sequence[part.cap_row]]
            upper = np.minimum(part.cap_value + lane_share, cap_upper[k])
            found[name] = PlayerBounds(part, part.value - share, upper)
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class Inherited:
    """Bounds of a refined subgame that is decomposed again. "Base" is that subgame with the trunk before it.

    Attributes:
      bounds: The base subgame's, in the base's numbers.
      frozen: For both players, bool[S] of the new trunk: sequences of the trunk before the base subgame.
      infoset: For both players, the base's information set of each of the new trunk's.
      part_infosets: By the new subgames' names, the same for their information sets.
    """

    bounds: SubgameBounds
    frozen: tuple[np.ndarray, np.ndarray]
    infoset: tuple[np.ndarray, np.ndarray]
    part_infosets: dict[Hashable, tuple[np.ndarray, np.ndarray]]

    def start(
        self,
        player: int,
        plan: CorrelationPlan,
        deviations: Deviations,
        of_infoset: np.ndarray,
        sets: np.ndarray,
        names: list[Hashable],
        rows: list[PlayerRows],
        infoset_slack: np.ndarray,
        set_upper: np.ndarray,
        row_slack: list[np.ndarray],
        cap_upper: list[np.ndarray],
    ) -> None:
        """Splits the inherited bounds among what their rows have become; writes into the last four arguments.

        The trunk before keeps its numbers at every depth, so its sequences and triggers need no translation.
        """
        old = self.bounds.players[player]
        form = plan.game.players[player]
        # Which inherited row each head, and each sequence's bundle, belongs to.
        head_row = dict(zip(old.rows.member_infoset.tolist(), old.rows.member_row.tolist(), strict=True))
        bundle_row = {
            int(old.rows.sequence[row]): row
            for row, infoset in zip(
                old.rows.member_row.tolist(), old.rows.member_infoset.tolist(), strict=True
            )
            if infoset < 0
        }
        frozen = self.frozen[player]
        count = len(old.rows.sequence)
        value, pieces = np.zeros(count), np.zeros(count)
        trunk_heads = [
            (k, head_row[int(self.infoset[player][k])])
            for k in range(1, form.num_infosets)
            if int(self.infoset[player][k]) in head_row
        ]
        for k, row in trunk_heads:
            value[row] += of_infoset[k]
            pieces[row] += 1.0
        # The bundles' leaves that are settled by now: the opponent's sequence is in the new trunk, not the
        # old.
        opponent_frozen = self.frozen[1 - player]
        own, other = plan.game.leaf_sequence[player], plan.game.leaf_sequence[1 - player]
        settled = frozen[own] & ~opponent_frozen[other]
        worth = plan.xi[plan.pairs.leaves()] * plan.game.leaf_utility[player]
        for leaf in np.flatnonzero(settled).tolist():
            row = bundle_row.get(int(own[leaf]))
            if row is not None:
                value[row] += worth[leaf]
        of_row = []
        for k, part in enumerate(rows):
            mine = np.full(len(part.sequence), -1, np.int64)
            base = self.part_infosets[names[k]][player]
            for row, infoset in zip(part.member_row.tolist(), part.member_infoset.tolist(), strict=True):
                if not frozen[part.sequence[row]]:
                    continue
                found = (
                    head_row.get(int(base[infoset]))
                    if infoset >= 0
                    else bundle_row.get(int(part.sequence[row]))
                )
                if found is not None:
                    mine[row] = found
            has = mine >= 0
            np.add.at(value, mine[has], part.value[has])
            np.add.at(pieces, mine[has], 1.0)
            of_row.append(mine)
        share = np.where(pieces > 0, (value - old.lower) / np.maximum(pieces, 1.0), np.inf)
        share = np.maximum(share, 0.0)  # less than nothing is rounding
        for k, row in trunk_heads:
            infoset_slack[k] = min(infoset_slack[k], share[row])
        for k, mine in enumerate(of_row):
            has = mine >= 0
            row_slack[k][has] = np.minimum(row_slack[k][has], share[mine[has]])

        # The same for caps, by (inherited row, trigger).
        cap_of = {
            key: c
            for c, key in enumerate(
                zip(
                    old.rows.cap_row.tolist(),
                    old.rows.cap_top.tolist(),
                    old.rows.cap_action.tolist(),
                    strict=True,
                )
            )
        }
        value = np.zeros(len(old.upper))
        trunk_caps = []
        for k, row in trunk_heads:
            for g in np.flatnonzero(deviations.infoset == k).tolist():
                top = int(deviations.top[g])
                for action in range(int(deviations.num_triggers[g])):
                    c = cap_of.get((row, top, action))
                    if c is not None:
                        at = int(deviations.set_[g]) + action
                        value[c] += sets[at]
                        trunk_caps.append((at, c))
        settled_lanes = _inside_lanes(deviations, plan.xi, settled[deviations.leaf])
        for (row, top, action), c in cap_of.items():
            s = int(old.rows.sequence[row])
            if bundle_row.get(s) == row:
                g = int(deviations.group(np.array([top]), form.infoset[[s]])[0])
                lane = deviations.lane[g] + action * deviations.num_actions[g]
                value[c] += settled_lanes[lane + s - form.first[form.infoset[s]]]
        part_caps = []
        for k, part in enumerate(rows):
            where = np.full(len(part.cap_row), -1, np.int64)
            for c, (row, top, action) in enumerate(
                zip(part.cap_row.tolist(), part.cap_top.tolist(), part.cap_action.tolist(), strict=True)
            ):
                if of_row[k][row] >= 0:
                    where[c] = cap_of.get((int(of_row[k][row]), top, action), -1)
            has = where >= 0
            np.add.at(value, where[has], part.cap_value[has])
            part_caps.append(where)
        cap_share = (old.upper - value) / np.maximum(pieces[old.rows.cap_row], 1.0)
        cap_share = np.maximum(cap_share, 0.0)
        for at, c in trunk_caps:
            set_upper[at] = min(set_upper[at], sets[at] + cap_share[c])
        for k, where in enumerate(part_caps):
            has = where >= 0
            cap_upper[k][has] = np.minimum(cap_upper[k][has], rows[k].cap_value[has] + cap_share[where[has]])


def _sums(index: np.ndarray, value: np.ndarray, count: int) -> np.ndarray:
    """Sums by index: float64[count]; np.bincount counts in integers where there is nothing to sum."""
    return np.bincount(index, value, count).astype(np.float64)


def _inside_lanes(deviations: Deviations, xi: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """`leaf_lanes` of the leaves that count: bool[L] in the order of `deviations.leaf`."""
    return leaf_lanes(deviations._replace(utility=np.where(counted, deviations.utility, 0.0)), xi)


@numba.njit(cache=True)
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


@numba.njit(cache=True)
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
