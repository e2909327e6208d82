"""What a subgame is to the trunk: the rows and caps that a refinement's bounds are about.

For one player, a sequence s of the trunk goes on in subgame j in two ways:

- A *head* is an information set in j whose parent sequence is s (the paper's head information set).
- The *bundle* (s, j) consists of the leaves in j at which the player's last sequence is still s, because a
  move of the opponent in j has ended the game. The paper has no word for them.

Bounds are about these or their sums, in the words of linear programs:

- A *row* is a head, a bundle, or all of subgame j after s; which of them is decided by the kind of bounds
  (`bounds`). The value of following there has a lower bound.
- A *cap* is a row after a trigger of the trunk. The value of deviating there has an upper bound.

Rows and caps follow from the game and the kind of bounds alone. This is the one place where they are worked
out; `bounds` gives them values, and `constraints` hands them to whoever keeps them.

Source: `efce_resolving`, equations 6 to 12; bundles are missing there.

Cost: a pass over the subgame's groups, and over the actions before each bundle's leaves.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

from .correlation_plans import CorrelationPlan, RelevantPairs
from .sequence_game import find, spread
from .triggers import Deviations, deviation_values, following_values

BoundsKind = Literal["paper", "separate", "aggregate"]
"""How slack is shared; see `bounds`."""
BOUNDS: tuple[BoundsKind, ...] = ("paper", "separate", "aggregate")
"""All of them."""


@dataclasses.dataclass(frozen=True, eq=False)
class RowLayout:
    """Which rows and caps one subgame has for one player.

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
        """The row of each information set that is a head, -1 for others."""
        return np.append(self.head_row, -1)[find(self.head, infosets)]

    def row_of_bundles(self, sequences: np.ndarray) -> np.ndarray:
        """The row of the bundle at each sequence, -1 where there is none."""
        return np.append(self.bundle_row, -1)[find(self.bundle, sequences)]

    def cap_of(self, row: np.ndarray, top: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Caps by row and trigger, -1 where there is none."""
        tops = 1 + max(self.cap_top.max(initial=0), top.max(initial=0))
        actions = 1 + max(self.cap_action.max(initial=0), action.max(initial=0))
        codes = (self.cap_row * tops + self.cap_top) * actions + self.cap_action  # caps stand in this order
        return find(codes, (row * tops + top) * actions + action)


@dataclasses.dataclass(frozen=True, eq=False)
class PlayerRows(RowLayout):
    """What the rows and caps are worth under a plan.

    Attributes:
      value: float64[R], following.
      cap_value: float64[C], deviating.
    """

    value: npt.NDArray[np.float64]
    cap_value: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class RowMembers:
    """What each cap is the sum of.

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
        """Those of the one subgame that the pairs' game holds; `deviations` are those inside it."""
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
        leaf, leaf_row, top, chosen = _triggers_before(
            pairs, player, leaf, bundle_row[np.searchsorted(bundle, own[leaf])]
        )
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


def _triggers_before(
    pairs: RelevantPairs, player: int, leaf: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(leaf, its row, I+, action at I+) for each leaf and each trigger after which it may be come to."""
    form = pairs.game.players[player]
    which, path = form.path(pairs.game.leaf_sequence[player][leaf])
    top = form.infoset[path].astype(np.int64)
    at, action = spread(form.num_actions[top])
    used = form.first[top[at]] + action != path[at]
    at, action = at[used], action[used]
    return leaf[which[at]], row[which[at]], top[at], action


def player_rows(plan: CorrelationPlan, player: int, kind: BoundsKind) -> PlayerRows:
    """The rows of the one subgame that `plan`'s game holds."""
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
        value=sums(
            np.concatenate([rows.head_row, rows.bundle_row]),
            np.concatenate([following[rows.head], bundles[rows.bundle]]),
            len(rows.sequence),
        ),
        cap_value=sums(members.head_cap, sets[members.head_set], caps)
        + sums(members.bundle_cap, after, caps),
    )


def sums(index: np.ndarray, value: np.ndarray, count: int) -> npt.NDArray[np.float64]:
    """Sums by index: float64[count]; np.bincount counts in integers where there is nothing to sum."""
    return np.bincount(index, value, count).astype(np.float64)
