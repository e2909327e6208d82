"""One pass of Algorithm 1 beside numpy's copy of the tree's arrays.

The tree is synthetic: histories of a game of perfect information in which players 0 and 1 take turns and have
1 to 4 moves worth a thought (2 on average, about what is left in chess at lambda = 1e-5), with random
probabilities, and values that rise by 0.01 a move, so that thousands of histories are worth memorising. As in
an expansion for player 0 against a fixed opponent, a history is cut at player 0's first turn whose reach is
below the penalty: lines end at random depths. `stop_value` is "evaluate", as in chess preparation.

Measured is the whole public call, `best_precomputation(tree, 0)`, compiled beforehand, on a tree whose
cached properties have not been asked for. Beside it: `.copy()` of each array of the tree, all copies kept
until the last is made, so that their memory is freshly allocated; and `np.copyto` into arrays that are there
already, numpy's lowest price for the same bytes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, fresh_process, peak_memory, side_by_side
from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation

__all__ = ["rows", "synthetic_tree"]

_TARGET = 10.0
_MOST_MOVES = 4
_MOVES = (0.3, 0.45, 0.2, 0.05)  # probabilities of 1, 2, 3 and 4 moves
_PER_PENALTY = 6.73  # a tree for penalty p has about this many histories, divided by p


def rows(histories: int, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measures Algorithm 1's time and memory on a tree of about so many histories."""
    say(f"building a synthetic tree of about {histories} histories")
    tree = synthetic_tree(histories)
    arrays = tree_arrays(tree)
    size = sum(array.nbytes for array in arrays)
    best = best_precomputation(tree, 0)  # compiles
    say(
        f"{tree.num_histories} histories in {size / 2**20:.0f} MiB of arrays; "
        f"{best.size} memorised, worth {best.value:.4f}"
    )
    buffers = [np.zeros_like(array) for array in arrays]

    def copy_over() -> None:
        for buffer, array in zip(buffers, arrays, strict=True):
            np.copyto(buffer, array)

    times = side_by_side(
        turns,
        algorithm=lambda: best_precomputation(dataclasses.replace(tree), 0),
        copy=lambda: [array.copy() for array in arrays],
        copy_over=copy_over,
    )
    say("measuring its memory in a process of its own")
    taken, count = fresh_process(_memory, histories)
    name = f"Algorithm 1, {tree.num_histories} histories"
    return [
        Row(
            f"{name}: time / array.copy()",
            times.text("algorithm", "copy"),
            f"< {_TARGET:.0f} x",
            times.ratio("algorithm", "copy") < _TARGET,
        ),
        Row(f"{name}: time / np.copyto, no allocation", times.text("algorithm", "copy_over")),
        Row(f"{name}: seconds here", f"{times.least('algorithm'):.3f}"),
        Row(f"{name}: peak memory beyond the tree", f"{taken / count:.0f} bytes a history"),
    ]


def tree_arrays(tree: HistoryTree) -> list[np.ndarray]:
    """Every array of a tree."""
    fields = (getattr(tree, field.name) for field in dataclasses.fields(tree))
    return [value for value in fields if isinstance(value, np.ndarray)]


def synthetic_tree(histories: int, seed: int = 0) -> HistoryTree:
    """A random tree of about so many histories, see above; passes `HistoryTree.check`."""
    rng = np.random.default_rng(seed)
    penalty = min(1.0, _PER_PENALTY / histories)
    parent, action, player = [np.full(1, -1)], [np.full(1, -1)], []
    sigma, sigma_pre, children, value = [np.ones(1)], [np.ones(1)], [], []
    reach, first, mover = np.ones(1), 0, 0
    while len(reach):
        n = len(reach)
        open_ = reach >= penalty if mover == 0 else np.ones(n, bool)
        moves = np.where(open_, rng.choice(np.arange(1, _MOST_MOVES + 1), n, p=_MOVES), 0)
        source = np.repeat(np.arange(n), moves)
        starts = (np.cumsum(moves) - moves)[open_]
        weight = rng.exponential(size=len(source))
        if len(source):
            weight /= np.repeat(np.add.reduceat(weight, starts), moves[open_])
        player.append(np.full(n, mover))
        value.append(0.5 + 0.01 * len(value) + 0.02 * rng.standard_normal(n))
        children.append(moves)
        parent.append(first + source)
        action.append(np.arange(len(source)) - np.repeat(starts, moves[open_]))
        # Stopping is evaluated where player 0 decides: nobody plays its sigma on from there.
        sigma.append(weight if mover == 1 else np.zeros(len(source)))
        sigma_pre.append(weight if mover == 0 else np.zeros(len(source)))
        reach, first, mover = reach[source] * weight, first + n, 1 - mover
    movers, num_children = np.concatenate(player), np.concatenate(children)
    n = len(movers)
    inner = num_children > 0
    decides = inner & (movers == 0)
    tree = HistoryTree(
        game_string="synthetic",
        penalties=(penalty, math.inf),
        utility_range=1.0,
        utility_sum=1.0,
        stop_value="evaluate",
        parent=np.concatenate(parent).astype(np.int32),
        first_child=np.where(inner, 1 + np.cumsum(num_children) - num_children, -1).astype(np.int32),
        num_children=num_children.astype(np.int32),
        player=movers.astype(np.int8),
        action=np.concatenate(action).astype(np.int32),
        infoset=np.where(decides, np.cumsum(decides) - 1, -1).astype(np.int32),
        sigma=np.concatenate(sigma),
        sigma_pre=np.concatenate(sigma_pre),
        value=np.where(decides | ~inner, np.concatenate(value).clip(0.0, 1.0), np.nan),
        position=rng.integers(0, 1 + n // 4, n).astype(np.int32),
        infoset_player=np.zeros(int(decides.sum()), np.int8),
        infoset_keys=None,
        work={},
    )
    tree.check()
    return tree


def _memory(histories: int) -> tuple[int, int]:
    """(bytes that one call takes at its peak, histories); in a fresh process."""
    best_precomputation(synthetic_tree(1000), 0)  # compiles
    tree = synthetic_tree(histories)
    taken, _ = peak_memory(lambda: best_precomputation(tree, 0))
    return taken, tree.num_histories
