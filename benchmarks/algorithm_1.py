"""Time of one pass of Algorithm 1, compared with numpy's copy of the tree's arrays.

It times the whole public call, `best_precomputation(tree, 0)`, compiled beforehand, on a tree whose cached
properties have not been asked for. Beside it: `.copy()` of each array of the tree, all copies kept until the
last is made, so that their memory is freshly allocated; and `np.copyto` into arrays that are there already,
numpy's lowest price for the same bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, fresh_process, peak_memory, side_by_side
from benchmarks.synthetic_trees import synthetic_tree, with_menus
from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation

__all__ = ["rows", "tree_arrays"]

_TARGET = 10.0
_MENUS_TARGET = 3.0


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure Algorithm 1's time and memory on a tree of about 2.8 million histories times `scale`."""
    histories = round(2_800_000 * scale)
    say(f"building a synthetic tree of about {histories} histories")
    tree = synthetic_tree(histories)
    arrays = tree_arrays(tree)
    size = sum(array.nbytes for array in arrays)
    best = best_precomputation(tree, 0)  # compiles
    say(
        f"{tree.num_histories} histories in {size / 2**20:.0f} MiB of arrays; "
        f"{best.size} memorized, worth {best.value:.4f}"
    )
    menus = with_menus(tree)
    menu_arrays = tree_arrays(menus)
    best_precomputation(menus, 0)
    buffers = [np.zeros_like(array) for array in arrays]

    def copy_over() -> None:
        for buffer, array in zip(buffers, arrays, strict=True):
            np.copyto(buffer, array)

    times = side_by_side(
        turns,
        algorithm=lambda: best_precomputation(dataclasses.replace(tree), 0),
        menus=lambda: best_precomputation(dataclasses.replace(menus), 0),
        copy=lambda: [array.copy() for array in arrays],
        copy_menus=lambda: [array.copy() for array in menu_arrays],
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
        Row(
            f"{name}, menus of two entries: time / array.copy()",
            times.text("menus", "copy_menus"),
            f"< {_MENUS_TARGET:.0f} x",
            times.ratio("menus", "copy_menus") < _MENUS_TARGET,
        ),
        Row(f"{name}: time / np.copyto, no allocation", times.text("algorithm", "copy_over")),
        Row(f"{name}: seconds here", f"{times.least('algorithm'):.3f}"),
        Row(f"{name}: peak memory beyond the tree", f"{taken / count:.0f} bytes a history"),
    ]


def tree_arrays(tree: HistoryTree) -> list[np.ndarray]:
    """Return every array of a tree."""
    fields = (getattr(tree, field.name) for field in dataclasses.fields(tree))
    return [value for value in fields if isinstance(value, np.ndarray)]


def _memory(histories: int) -> tuple[int, int]:
    """Return the peak bytes of one call, and the number of histories; in a fresh process."""
    best_precomputation(synthetic_tree(1000), 0)  # compiles
    tree = synthetic_tree(histories)
    taken, _ = peak_memory(lambda: best_precomputation(tree, 0))
    return taken, tree.num_histories
