"""Cost of a mixed opponent's components, beside one pass of Algorithm 1.

On a synthetic tree in which no two histories share a position, so that each edge of the opponent's has a row
of its own, which is the most that there can be. It times the mixing, level by level, as an expansion does
it when the components have answered (`MixedOpponent`: rows are gathered, probabilities mixed, posteriors
followed), and the value of the best set against each component (`value_against_components`), for which the
tree is summed up for each. The games' states and the components' own answers are not included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Row, side_by_side
from benchmarks.synthetic_trees import synthetic_tree
from precomp_games import HistoryTree, MixturePolicy
from precomp_games.algorithms import best_precomputation, value_against_components
from precomp_games.tree.mixture import MixedOpponent

__all__ = ["rows"]

_TARGET = 10.0


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure 100 components on a tree of about a million histories; below scale 1, ten on a smaller one."""
    histories, components = round(1_000_000 * scale), 100 if scale == 1.0 else 10
    say(f"building a synthetic tree of about {histories} histories, with {components} components")
    tree, levels, mixture = _mixed_tree(histories, components)
    best = best_precomputation(tree, 0)
    mean = float(mixture.weights @ value_against_components(best))
    say(f"{best.size} memorized, worth {best.utility:.9f}, and {mean:.9f} on average against the components")
    times = side_by_side(
        turns,
        algorithm=lambda: best_precomputation(dataclasses.replace(tree), 0),
        mix=lambda: _mix(levels, mixture),
        values=lambda: value_against_components(best),
    )
    name = f"{components} components, {tree.num_histories} histories"
    return [
        Row(
            f"{name}: mixing the tree / one pass of Algorithm 1",
            times.text("mix", "algorithm"),
            f"< {_TARGET:.0f} x",
            times.ratio("mix", "algorithm") < _TARGET,
        ),
        Row(
            f"{name}: the set's value against each / one pass",
            times.text("values", "algorithm"),
            f"< {2 * components} x",
            times.ratio("values", "algorithm") < 2 * components,
        ),
        Row(f"{name}: seconds of mixing here", f"{times.least('mix'):.3f}"),
    ]


def _mix(levels: list[tuple[np.ndarray, np.ndarray, np.ndarray]], mixture: MixturePolicy) -> list[np.ndarray]:
    """Return the mixed probabilities of each level's edges."""
    opponent, found = MixedOpponent(1, mixture, 1e-12), []
    for source, own, table in levels:
        sigma, kind = np.zeros(len(source)), np.arange(len(source))
        opponent.step(own, source, kind, table, sigma, np.ones(len(source)))
        found.append(sigma)
    return found


def _mixed_tree(
    histories: int, components: int
) -> tuple[HistoryTree, list[tuple[np.ndarray, np.ndarray, np.ndarray]], MixturePolicy]:
    """Return a synthetic tree against a mixture, (source, own, table) of each level's edges, the mixture."""
    tree = synthetic_tree(histories)
    mixture = MixturePolicy([_nobody] * components)
    rng, levels, sigma = np.random.default_rng(1), [], tree.sigma.copy()
    own = tree.player[tree.parent] == 1
    own[0] = False
    for above, level in zip(tree.levels, tree.levels[1:], strict=False):
        source = tree.parent[level].astype(np.int64) - above.start
        table = np.zeros((len(source), components))
        if own[level].any():
            table = rng.exponential(size=table.shape)
            starts = np.flatnonzero(np.diff(source, prepend=-1))
            table /= np.repeat(
                np.add.reduceat(table, starts), np.diff(np.append(starts, len(source))), axis=0
            )
        levels.append((source, own[level], table))
    opponent, edge_row = MixedOpponent(1, mixture, 1e-12), [np.full(1, -1, np.int32)]
    for level, (source, mine, table) in zip(tree.levels[1:], levels, strict=True):
        kind, all_are = np.arange(len(source)), np.ones(len(source))
        edge_row.append(opponent.step(mine, source, kind, table, sigma[level], all_are))
    mixed = opponent.result(np.concatenate(edge_row), np.full(tree.num_histories, -1, np.int32))
    return dataclasses.replace(tree, sigma=sigma, mixture=mixed), levels, mixture


def _nobody(state: Any) -> dict[int, float]:
    """Raise an error: this component is never asked."""
    raise AssertionError(state)
