"""Bounds that keep the trunk's triggers safe while subgames are refined one at a time.

Whether a trigger in the trunk gains by deviating depends on all subgames, and none may know what the others
become. Under the blueprint, following after the trigger s has the value v(s), and the best deviation has the
value beta*(s). The bounds share out the difference between the two among the subgames: in each of them, the
value of following may not fall below a lower bound (B), and the value of deviating may not rise above an
upper bound (C).

For one player, a sequence s of the trunk goes on in subgame j in two ways:

- A *head* is an information set in j whose parent sequence is s (the paper's head information set).
- The *bundle* (s, j) consists of the leaves in j at which the player's last sequence is still s, because a
  move of the opponent in j has ended the game. The paper has no word for them.

Bounds are about these or their sums, in the words of linear programs (`bounds` below names which):

- A *row* is a head, a bundle, or all of subgame j after s; which of them is decided by the kind of bounds.
  The value of following there has a lower bound.
- A *cap* is a row after a trigger of the trunk. The value of deviating there has an upper bound.

Rows and caps follow from the game and the kind of bounds alone.

Shares are handed down the player's tree of sequences and information sets in the trunk. With
delta = beta* - v at a trigger s:

- Where delta <= 0, v may fall to (v + beta*) / 2, and beta* may rise to it. Where delta > 0, v may not fall
  and beta* may not rise.
- (B) The *slack* of a sequence is by how much its v may fall. It is split equally among the children of the
  sequence, and the slack of an information set equally among its actions. Where a sequence has a slack of its
  own, as a trigger, and one that was handed down, the smaller one counts.
- (C) This is done for each trigger on its own. Each action of an information set gets the upper bound of the
  information set. The slack of the action, which is that bound less its beta, is split equally among its
  children.

The shares of the trunk's last sequences bound the rows and caps of subgames. docs/efce.md
proves by induction over children that this is safe. What counts as a child of a sequence s can be chosen, and
neither of the safe choices has more welfare in every game:

| `bounds` | children of s | safe |
|---|---|---|
| "paper" | information sets | no: bundles are bound by nothing |
| "separate" | information sets, and each bundle | yes |
| "aggregate" | the trunk's information sets, and each subgame: its heads and bundle bound together | yes |

Under "aggregate" all of a subgame after s is one row, to which play comes as often in any refinement. So a
constant that is added to a player's utilities changes nothing; under the other two it does (docs/efce.md).

When a refined subgame is decomposed again, its own bounds take the place of the triggers in the trunk before
it (`Inherited`), so that what holds for the first refinement holds for the next.

Source: `efce_resolving`, equations 6 to 12 and Theorem 2; bundles are missing there, and Theorem 2 with them
fails.

Cost: a pass over the groups of the trunk; a row for each trigger and head.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel

from .correlation_plans import CorrelationPlan, RelevantPairs
from .sequence_game import SequenceGame, find, spread
from .triggers import Deviations, deviation_values, following_values, leaf_lanes, respond, sum_back

BoundsKind = Literal["paper", "separate", "aggregate"]
"""Ways to share slack; see `bounds`."""


@dataclasses.dataclass(frozen=True, eq=False)
class RowLayout:
    """Layout of one player's rows and caps in one subgame.

    Numbers are those of the trunk with the subgame.

    Attributes:
      sequence: int64[R], the trunk's sequence that each row stands below.
      head, head_row: int64[H], information sets, and the row of each.
      bundle, bundle_row: int64[B], sequences, and the row of each.
      cap_row, cap_top, cap_action: int64[C]; a cap is a row after the trigger (cap_top, cap_action).
    """

    sequence: npt.NDArray[np.int64]
    head: npt.NDArray[np.int64]
    head_row: npt.NDArray[np.int64]
    bundle: npt.NDArray[np.int64]
    bundle_row: npt.NDArray[np.int64]
    cap_row: npt.NDArray[np.int64]
    cap_top: npt.NDArray[np.int64]
    cap_action: npt.NDArray[np.int64]

    def row_of_heads(self, infosets: np.ndarray) -> np.ndarray:
        """Return the row of each information set that is a head, -1 for others."""
        return np.append(self.head_row, -1)[find(self.head, infosets)]

    def row_of_bundles(self, sequences: np.ndarray) -> np.ndarray:
        """Return the row of the bundle at each sequence, -1 where there is none."""
        return np.append(self.bundle_row, -1)[find(self.bundle, sequences)]

    def cap_of(self, row: np.ndarray, top: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return caps by row and trigger, -1 where there is none."""
        tops = 1 + max(self.cap_top.max(initial=0), top.max(initial=0))
        actions = 1 + max(self.cap_action.max(initial=0), action.max(initial=0))
        codes = (self.cap_row * tops + self.cap_top) * actions + self.cap_action  # caps stand in this order
        return find(codes, (row * tops + top) * actions + action)


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerRows(RowLayout):
    """Values of one player's rows and caps under a plan, and the bounds that a refinement must keep.

    Attributes:
      origin: int64[R], the inherited row that each comes from, -1 for none.
      value: float64[R], the value of following the recommendations.
      cap_value: float64[C], the value of deviating.
      lower: float64[R], bounds on following. upper: float64[C], bounds on deviating. Infinite where there is
        nothing to keep.
    """

    origin: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    cap_value: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class RowMembers:
    """The terms that each cap sums up.

    Attributes:
      head_set, head_cap: int64, sets of the player's deviations inside the subgame, and the cap of each.
      bundle_leaf, bundle_pair, bundle_cap: int64, leaves of bundles, once for each trigger before them; the
        pair of the trigger and the leaf's sequence of the opponent; the cap of each.
    """

    rows: RowLayout
    head_set: npt.NDArray[np.int64]
    head_cap: npt.NDArray[np.int64]
    bundle_leaf: npt.NDArray[np.int64]
    bundle_pair: npt.NDArray[np.int64]
    bundle_cap: npt.NDArray[np.int64]

    @classmethod
    def of(cls, pairs: RelevantPairs, deviations: Deviations, player: int, kind: BoundsKind) -> RowMembers:
        """Return the members of the one subgame in the pairs' game; `deviations` are those inside it."""
        form = pairs.game.players[player]
        trunk_sets = int((form.label < 0).sum())  # they come first
        trunk_sequences = int(form.first[trunk_sets])
        head = trunk_sets + np.flatnonzero(form.parent[trunk_sets:] < trunk_sequences)
        own = pairs.game.leaf_sequence[player]
        leaf = np.flatnonzero((pairs.game.leaf_label >= 0) & (own < trunk_sequences) & (kind != "paper"))
        bundle = np.unique(own[leaf]).astype(np.int64)
        sequence = np.concatenate([form.parent[head].astype(np.int64), bundle])
        row = np.arange(len(sequence))
        if kind == "aggregate":
            sequence, row = np.unique(sequence, return_inverse=True)
        head_row, bundle_row = row[: len(head)], row[len(head) :]

        row_of = np.full(form.num_infosets, -1, np.int64)
        row_of[head] = head_row
        groups = np.flatnonzero((row_of[deviations.infoset] >= 0) & (deviations.top < trunk_sets))
        which, action = spread(deviations.num_triggers[groups])
        used = action != deviations.through[groups[which]]
        group, action = groups[which[used]], action[used]
        # Bundles' leaves, once for each trigger after which each may be come to.
        which, path = form.path(own[leaf])
        top = form.infoset[path].astype(np.int64)
        at, chosen = spread(form.num_actions[top])
        used = form.first[top[at]] + chosen != path[at]
        at, chosen = at[used], chosen[used]
        leaf, top = leaf[which[at]], top[at]
        leaf_row = bundle_row[np.searchsorted(bundle, own[leaf])]
        trigger, tau = form.first[top] + chosen, pairs.game.leaf_sequence[1 - player][leaf]
        caps = (
            np.concatenate([row_of[deviations.infoset[group]], leaf_row]),
            np.concatenate([deviations.top[group], top]),
            np.concatenate([action, chosen]),
        )
        code = (caps[0] * form.num_infosets + caps[1]) * max(int(form.num_actions.max()), 1) + caps[2]
        _, one, cap = np.unique(code, return_index=True, return_inverse=True)
        cap_row, cap_top, cap_action = (part[one] for part in caps)
        return cls(
            rows=RowLayout(sequence, head, head_row, bundle, bundle_row, cap_row, cap_top, cap_action),
            head_set=deviations.set_[group] + action,
            head_cap=cap[: len(group)],
            bundle_leaf=leaf,
            bundle_pair=pairs.index(trigger, tau) if player == 0 else pairs.index(tau, trigger),
            bundle_cap=cap[len(group) :],
        )


def player_rows(
    plan: CorrelationPlan, player: int, kind: BoundsKind, inherited: Inherited | None = None
) -> PlayerRows:
    """Return the rows of the one subgame that `plan`'s game holds, without bounds."""
    game = plan.game
    deviations = Deviations.of(plan.pairs, player, inside=True)
    members = RowMembers.of(plan.pairs, deviations, player, kind)
    _, following = following_values(plan, player)
    _, sets = deviation_values(deviations, plan.xi)
    utility = game.leaf_utility[player]
    inside = game.leaf_label >= 0
    worth = plan.xi[plan.pairs.leaves()[inside]] * utility[inside]
    bundles = sums(game.leaf_sequence[player][inside], worth, game.players[player].num_sequences)
    rows, caps = members.rows, len(members.rows.cap_row)
    after = utility[members.bundle_leaf] * plan.xi[members.bundle_pair]
    return PlayerRows(
        **vars(rows),
        origin=np.full(len(rows.sequence), -1)
        if inherited is None
        else inherited.rows_of(game, rows, player),
        value=sums(
            np.concatenate([rows.head_row, rows.bundle_row]),
            np.concatenate([following[rows.head], bundles[rows.bundle]]),
            len(rows.sequence),
        ),
        cap_value=sums(members.head_cap, sets[members.head_set], caps)
        + sums(members.bundle_cap, after, caps),
        lower=np.full(len(rows.sequence), -np.inf),
        upper=np.full(caps, np.inf),
    )


def sums(index: np.ndarray, value: np.ndarray, count: int) -> npt.NDArray[np.float64]:
    """Return sums by index: float64[count]; np.bincount counts in integers where there is nothing to sum."""
    return np.bincount(index, value, count).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameBounds:
    """Both players' rows of one subgame, with bounds. kind: how shares were made."""

    kind: BoundsKind
    players: tuple[PlayerRows, PlayerRows]


class _TrunkRows(NamedTuple):
    """One player's rows and caps of all subgames, subgame by subgame; fields as in `PlayerRows`."""

    sequence: npt.NDArray[np.int64]
    origin: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    cap_row: npt.NDArray[np.int64]
    cap_top: npt.NDArray[np.int64]
    cap_action: npt.NDArray[np.int64]
    cap_value: npt.NDArray[np.float64]

    @classmethod
    def of(cls, parts: Sequence[PlayerRows]) -> _TrunkRows:
        """Concatenate the rows of the subgames."""
        rows = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls._fields))
        before = np.cumsum([0, *(len(part.sequence) for part in parts[:-1])])
        return rows._replace(cap_row=rows.cap_row + np.repeat(before, [len(part.cap_row) for part in parts]))


class _TrunkValues:
    """Values of the blueprint for one player in the trunk, from its own leaves and the rows of all subgames.

    Attributes:
      plan: The blueprint on the trunk.
      rows: Of all subgames.
      v: float64[S], following, by sequence; of_infoset: float64[m], by information set.
      lanes, sets: Deviating, as `triggers.deviation_values`.
      children: float64[S], information sets and rows right after each sequence.
      cap_lane: int64[C], the lane that each cap stands below.
      infoset_slack: float64[m], row_slack: float64[R], set_upper: float64[sets], cap_upper: float64[C], what
        slack and upper bounds may be at most, infinite to begin with.
    """

    def __init__(self, plan: CorrelationPlan, player: int, parts: Sequence[PlayerRows]) -> None:
        """Evaluate both following and deviating."""
        self.plan, self.player = plan, player
        self.rows = rows = _TrunkRows.of(parts)
        form = plan.game.players[player]
        worth = plan.xi[plan.pairs.leaves()] * plan.game.leaf_utility[player]
        self.v = sums(plan.game.leaf_sequence[player], worth, form.num_sequences)
        np.add.at(self.v, rows.sequence, rows.value)
        after = np.concatenate([form.parent[1:], rows.sequence])
        self.children = sums(after, np.ones(len(after)), form.num_sequences)
        self.of_infoset = np.zeros(form.num_infosets)
        sum_back(form.parent, form.first, self.v, self.of_infoset)
        self.deviations = deviations = Deviations.of(plan.pairs, player)
        self.lanes, self.sets = leaf_lanes(deviations, plan.xi), np.full(deviations.num_sets, -np.inf)
        self.cap_lane = _lanes_above(plan, player, deviations, rows)
        np.add.at(self.lanes, self.cap_lane, rows.cap_value)
        respond(deviations, self.lanes, self.sets)
        self.infoset_slack, self.row_slack, self.set_upper, self.cap_upper = (
            np.full(len(each), np.inf) for each in (self.of_infoset, rows.value, self.sets, rows.cap_value)
        )


def _lanes_above(
    plan: CorrelationPlan, player: int, deviations: Deviations, rows: _TrunkRows | PlayerRows
) -> np.ndarray:
    """Return the trunk's lane that each cap stands below: that of its row's sequence after its trigger."""
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
    """Return the bounds of each subgame.

    Args:
      plan: the blueprint on the trunk alone.
      kind: see the module.
      rows: of all subgames, for both players.
      inherited: where the trunk's game is itself a refined subgame with its trunk, that subgame's bounds.
    """
    sides = (_share(plan, player, [both[player] for both in rows.values()], inherited) for player in (0, 1))
    return {
        name: SubgameBounds(kind, both) for name, both in zip(rows, zip(*sides, strict=True), strict=True)
    }


def _share(
    plan: CorrelationPlan, player: int, parts: Sequence[PlayerRows], inherited: Inherited | None
) -> list[PlayerRows]:
    """Return one player's rows of each subgame, with their bounds."""
    values = _TrunkValues(plan, player, parts)
    form, rows = plan.game.players[player], values.rows
    deviations, v, children = values.deviations, values.v, values.children

    best = np.full(form.num_sequences, -np.inf)
    at, trigger = deviations.triggers()
    best[trigger] = values.sets[at]
    has = np.isfinite(best)
    room = has & (best <= v)
    middle = np.where(room, 0.5 * (v + np.where(has, best, 0.0)), 0.0)
    slack = np.where(has, np.where(room, v - middle, 0.0), np.inf)
    target = np.where(has, np.where(room, middle, best), np.inf)
    if inherited is not None:
        before = inherited.frozen(player)
        slack[:before], target[:before] = np.inf, np.inf
        inherited.split(values)
    lane_slack = np.full(deviations.num_lanes, np.inf)
    _share_following(form.parent, form.first, children, values.infoset_slack, slack)
    _share_deviating(
        deviations, form.parent, target, children, values.lanes, values.sets, values.set_upper, lane_slack
    )
    share = np.minimum(slack[rows.sequence] / children[rows.sequence], values.row_slack)
    lane_share = lane_slack[values.cap_lane] / children[rows.sequence[rows.cap_row]]
    upper = np.minimum(rows.cap_value + lane_share, values.cap_upper)
    lowers = np.split(rows.value - share, np.cumsum([len(part.sequence) for part in parts]))
    uppers = np.split(upper, np.cumsum([len(part.cap_row) for part in parts]))
    return [dataclasses.replace(part, lower=lowers[k], upper=uppers[k]) for k, part in enumerate(parts)]


class Inherited(NamedTuple):
    """Bounds of a refined subgame that is decomposed again. "Base" is that subgame with the trunk before it.

    The trunk before keeps its numbers at every depth, so its sequences and triggers need no translation.

    Attributes:
      base: Its game.
      bounds: The base subgame's, in the base's numbers.
    """

    base: SequenceGame
    bounds: SubgameBounds

    def frozen(self, player: int) -> int:
        """Return the number of sequences in the trunk before the base subgame; they come first."""
        form = self.base.players[player]
        return int(form.first[(form.label < 0).sum()])

    def rows_of(self, game: SequenceGame, rows: RowLayout, player: int) -> npt.NDArray[np.int64]:
        """Return the base's row of each row of a new subgame, -1 for none; `game` has the numbers."""
        old = self.bounds.players[player]
        row_of = np.full(len(rows.sequence), -1, np.int64)
        for row, mine in (
            (rows.head_row, old.row_of_heads(self._infosets(game, rows.head, player))),
            (rows.bundle_row, old.row_of_bundles(rows.bundle)),
        ):
            known = (mine >= 0) & (rows.sequence[row] < self.frozen(player))
            row_of[row[known]] = mine[known]
        return row_of

    def _infosets(self, game: SequenceGame, infosets: np.ndarray, player: int) -> npt.NDArray[np.int64]:
        """Return the base's number of each information set but 0."""
        keys, index = game.players[player].keys, self.base.players[player].index
        return np.array([index[keys[k]] for k in infosets.tolist()], np.int64)

    def split(self, values: _TrunkValues) -> None:
        """Split the bounds among what their rows have become, and lower limits of `values` to that.

        An inherited row has become heads of the trunk, rows of the new subgames, and leaves of its bundle
        that are settled by now, since the opponent's sequence is in the new trunk, not the old. Likewise, its
        caps have become sets of the trunk, caps of the new subgames, and the same leaves after a trigger.
        """
        plan, player, deviations, rows = values.plan, values.player, values.deviations, values.rows
        game, old = plan.game, self.bounds.players[player]
        own, other = game.leaf_sequence[player], game.leaf_sequence[1 - player]
        settled = (own < self.frozen(player)) & (other >= self.frozen(1 - player))

        # (B). Of each head, settled leaf and new row: its place, and the inherited row that it comes from.
        sets = np.arange(1, game.players[player].num_infosets)
        head_row = np.append(-1, old.row_of_heads(self._infosets(game, sets, player)))
        heads = np.flatnonzero(head_row >= 0)
        leaf_row = np.where(settled, old.row_of_bundles(own), -1)
        leaves = np.flatnonzero(leaf_row >= 0)
        worth = plan.xi[plan.pairs.leaves()[leaves]] * game.leaf_utility[player][leaves]
        row_of = rows.origin
        kept = np.flatnonzero(row_of >= 0)
        total = np.zeros(len(old.lower))
        np.add.at(total, head_row[heads], values.of_infoset[heads])
        np.add.at(total, leaf_row[leaves], worth)
        np.add.at(total, row_of[kept], rows.value[kept])
        count = np.bincount(np.concatenate([head_row[heads], row_of[kept]]), minlength=len(total))
        # Less than nothing is rounding.
        share = np.maximum((total - old.lower) / np.maximum(count, 1), 0.0)
        values.infoset_slack[heads] = share[head_row[heads]]
        values.row_slack[kept] = share[row_of[kept]]

        # (C), for each trigger on its own: the same of sets, of lanes with settled leaves, and of new caps.
        groups = np.flatnonzero(head_row[deviations.infoset] >= 0)
        which, action = spread(deviations.num_triggers[groups])
        group = groups[which]
        set_cap = old.cap_of(head_row[deviations.infoset[group]], deviations.top[group], action)
        sets, set_cap = (deviations.set_[group] + action)[set_cap >= 0], set_cap[set_cap >= 0]
        settled_only = np.where(settled[deviations.leaf], deviations.utility, 0.0)
        lanes = leaf_lanes(deviations._replace(utility=settled_only), plan.xi)
        bundle = np.flatnonzero(old.row_of_bundles(old.sequence[old.cap_row]) == old.cap_row)
        cap_of = old.cap_of(row_of[rows.cap_row], rows.cap_top, rows.cap_action)
        caps = np.flatnonzero(cap_of >= 0)
        total = np.zeros(len(old.upper))
        np.add.at(total, set_cap, values.sets[sets])
        np.add.at(total, bundle, lanes[_lanes_above(plan, player, deviations, old)[bundle]])
        np.add.at(total, cap_of[caps], rows.cap_value[caps])
        share = np.maximum((old.upper - total) / np.maximum(count[old.cap_row], 1), 0.0)
        values.set_upper[sets] = values.sets[sets] + share[set_cap]
        values.cap_upper[caps] = rows.cap_value[caps] + share[cap_of[caps]]


@kernel
def _share_following(
    parent: np.ndarray, first: np.ndarray, children: np.ndarray, infoset_slack: np.ndarray, slack: np.ndarray
) -> None:
    """Pass slack down.

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
    """Write upper bounds down each trigger's tree: slack by lane, from target[s+] at I+ on."""
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
