"""Random trees of a size that can be chosen, for the benchmarks: no game behind them, built level by level.

All are of games of perfect information in which players 0 and 1 take turns. They pass `HistoryTree.check`.

- `synthetic_tree`: player 0 prepares against a fixed opponent. Each has 1 to 4 moves worth a thought (2 on
  average, about what is left in chess at lambda = 1e-5), with random probabilities, and values rise by 0.01 a
  move, so that thousands of histories are worth memorizing. A history is cut at player 0's first turn whose
  reach is below the penalty: lines end at random depths. `stop_value` is "evaluate", as in chess preparation.
- `transposing_tree`: the same with transpositions. What has moves and values are positions, which stand
  behind several moves of the level before; a position is cut where the reaches of its histories add up to
  less than the penalty (`HistoryTree.from_game`, price="positions").
- `paired_tree`: both prepare. Two moves, random sigma and sigma_pre (Dirichlet(1, 1)) and random values in
  [0, 1]. A decision may be memorized where some preparation of the opponent makes its reach at least the
  penalty (Lemma 3), and lines end where that holds for neither player any more.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from precomp_games import HistoryTree

__all__ = ["paired_tree", "synthetic_tree", "transposing_tree", "with_menus"]

_MOST_MOVES = 4
_MOVES = (0.3, 0.45, 0.2, 0.05)  # probabilities of 1, 2, 3 and 4 moves
_PER_PENALTY = 6.73  # a tree for penalty p has about this many histories, divided by p


@dataclasses.dataclass
class _Levels:
    """A tree in the making; lists with an array for each level.

    children, decides (may be memorized), value: of the level's histories. source (numbers within the level
    before), action, sigma, sigma_pre: of how they are come to; the first level is the root's.
    """

    source: list[np.ndarray] = dataclasses.field(default_factory=lambda: [np.zeros(1, np.int64)])
    action: list[np.ndarray] = dataclasses.field(default_factory=lambda: [np.full(1, -1)])
    sigma: list[np.ndarray] = dataclasses.field(default_factory=lambda: [np.ones(1)])
    sigma_pre: list[np.ndarray] = dataclasses.field(default_factory=lambda: [np.ones(1)])
    children: list[np.ndarray] = dataclasses.field(default_factory=list)
    decides: list[np.ndarray] = dataclasses.field(default_factory=list)
    value: list[np.ndarray] = dataclasses.field(default_factory=list)

    def close(self, children: np.ndarray, decides: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Finish a level; return the histories that the next one's come from."""
        self.children.append(children)
        self.decides.append(decides)
        self.value.append(value)
        return np.repeat(np.arange(len(children)), children)

    def open(self, source: np.ndarray, action: np.ndarray, sigma: np.ndarray, sigma_pre: np.ndarray) -> None:
        """Start the next level."""
        self.source.append(source)
        self.action.append(action)
        self.sigma.append(sigma)
        self.sigma_pre.append(sigma_pre)

    def evaluated_tree(self, penalty: float, **fields: Any) -> HistoryTree:
        """Return the tree of player 0's preparation, in which stopping is evaluated on the spot."""
        decides, inner = np.concatenate(self.decides), np.concatenate(self.children) > 0
        value = np.concatenate(self.value).clip(0.0, 1.0)
        value = np.where(decides | ~inner, value, np.nan)
        return self.tree(value, penalties=(penalty, math.inf), stop_value="evaluate", **fields)

    def tree(self, value: np.ndarray, **fields: Any) -> HistoryTree:
        """Return the tree; `fields` are those that the levels do not determine."""
        sizes = [len(level) for level in self.children]
        starts = np.cumsum([0, *sizes])
        parent = [np.full(1, -1), *(start + at for start, at in zip(starts, self.source[1:], strict=False))]
        children, decides = np.concatenate(self.children), np.concatenate(self.decides)
        player = np.repeat(np.arange(len(sizes)) % 2, sizes)
        tree = HistoryTree(
            game_string="synthetic",
            utility_range=1.0,
            utility_sum=1.0,
            parent=np.concatenate(parent).astype(np.int32),
            first_child=np.where(children > 0, 1 + np.cumsum(children) - children, -1).astype(np.int32),
            num_children=children.astype(np.int32),
            player=player.astype(np.int8),
            action=np.concatenate(self.action).astype(np.int32),
            infoset=np.where(decides, np.cumsum(decides) - 1, -1).astype(np.int32),
            sigma=np.concatenate(self.sigma),
            sigma_pre=np.concatenate(self.sigma_pre),
            value=value,
            infoset_player=player[decides].astype(np.int8),
            infoset_keys=None,
            work={},
            **fields,
        )
        tree.check()
        return tree


def synthetic_tree(histories: int, seed: int = 0) -> HistoryTree:
    """Return a tree on which player 0 prepares, see above; of about so many histories."""
    rng = np.random.default_rng(seed)
    penalty = min(1.0, _PER_PENALTY / histories)
    levels, reach, mover = _Levels(), np.ones(1), 0
    while len(reach):
        n = len(reach)
        open_ = reach >= penalty if mover == 0 else np.ones(n, bool)
        moves = np.where(open_, rng.choice(np.arange(1, _MOST_MOVES + 1), n, p=_MOVES), 0)
        starts = (np.cumsum(moves) - moves)[open_]
        weight = rng.exponential(size=int(moves.sum()))
        if len(weight):
            weight /= np.repeat(np.add.reduceat(weight, starts), moves[open_])
        value = 0.5 + 0.01 * len(levels.value) + 0.02 * rng.standard_normal(n)
        source = levels.close(moves, (moves > 0) & (mover == 0), value)
        if len(source):
            # Stopping is evaluated where player 0 decides: nobody plays its sigma on from there.
            nobody = np.zeros(len(source))
            action = np.arange(len(source)) - np.repeat(starts, moves[open_])
            levels.open(source, action, *((nobody, weight) if mover == 0 else (weight, nobody)))
        reach, mover = reach[source] * weight, 1 - mover
    size = sum(len(level) for level in levels.value)
    return levels.evaluated_tree(penalty, position=rng.integers(0, 1 + size // 4, size).astype(np.int32))


def transposing_tree(penalty: float, joined: float = 1.12, noise: float = 0.02, seed: int = 0) -> HistoryTree:
    """Return a tree on which player 0 prepares for positions, see above; some 7 / penalty of them.

    Args:
      penalty: lambda.
      joined: how many moves of a level lead to one position of the next one, on average.
      noise: the standard deviation of a position's value.
      seed: of the generator.
    """
    rng = np.random.default_rng(seed)
    levels, reach, mover = _Levels(), np.ones(1), 0
    where, positions, ids, first = np.zeros(1, np.int64), 1, [], 0
    while len(reach):
        total = np.bincount(where, reach, positions)
        open_ = total >= penalty if mover == 0 else np.ones(positions, bool)
        moves = np.where(open_, rng.choice(np.arange(1, _MOST_MOVES + 1), positions, p=_MOVES), 0)
        starts = np.cumsum(moves) - moves
        weight = rng.exponential(size=int(moves.sum()))
        if len(weight):
            weight /= np.repeat(np.add.reduceat(weight, starts[open_]), moves[open_])
        value = 0.5 + 0.01 * len(levels.value) + noise * rng.standard_normal(positions)
        behind = rng.permutation(len(weight)) % max(1, round(len(weight) / joined))
        counts = moves[where]
        source = levels.close(counts, (counts > 0) & (mover == 0), value[where])
        ids.append(first + where)
        first += positions
        action = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        edge = starts[where[source]] + action
        if len(source):
            nobody = np.zeros(len(source))
            played = weight[edge]
            levels.open(source, action, *((nobody, played) if mover == 0 else (played, nobody)))
        positions = int(behind.max(initial=-1)) + 1
        reach, where, mover = reach[source] * weight[edge], behind[edge], 1 - mover
    position = np.concatenate(ids).astype(np.int32)
    return levels.evaluated_tree(penalty, position=position, cut_for="positions")


def with_menus(tree: HistoryTree) -> HistoryTree:
    """Return the tree with two entries to choose between: the first move, and all others."""
    edges = np.flatnonzero(tree.edge_entry >= 0)
    entry = np.zeros(tree.num_histories, np.int16)
    entry[edges] = tree.action[edges] > 0
    group = 2 * tree.parent[edges].astype(np.int64) + entry[edges]
    total = np.bincount(group, tree.sigma_pre[edges], 2 * tree.num_histories)
    sigma_pre = tree.sigma_pre.copy()
    sigma_pre[edges] = np.minimum(sigma_pre[edges] / total[group], 1.0)
    menus = dataclasses.replace(tree, entry=entry, sigma_pre=sigma_pre)
    menus.check()
    return menus


def paired_tree(penalty: float, seed: int = 0) -> HistoryTree:
    """Return a tree on which both players prepare, see above; of some 25 / penalty histories."""
    rng = np.random.default_rng(seed)
    # Per player: own reach while memorizing, and the best reach over the times at which it has stopped.
    memorizing, stopped = [np.ones(1), np.ones(1)], [np.zeros(1), np.zeros(1)]
    levels, mover = _Levels(), 0
    while len(memorizing[0]):
        n = len(memorizing[0])
        worth = [memorizing[i] * np.maximum(memorizing[1 - i], stopped[1 - i]) >= penalty for i in (0, 1)]
        inner, decides = worth[0] | worth[1], worth[mover]
        source = levels.close(2 * inner, decides, rng.random(n))
        play, pre = (rng.dirichlet([1.0, 1.0], len(source) // 2).ravel() for _ in range(2))
        if len(source):
            levels.open(source, np.tile([0, 1], len(source) // 2), play, pre)
        memorizing, stopped = [x[source] for x in memorizing], [x[source] for x in stopped]
        stopped[mover] = np.maximum(memorizing[mover], stopped[mover]) * play
        memorizing[mover] = np.where(decides[source], memorizing[mover] * pre, 0.0)
        mover = 1 - mover
    return levels.tree(
        np.concatenate(levels.value),
        penalties=(penalty, penalty),
        stop_value="backup",
        position=np.zeros(0, np.int32),
    )
