"""A price per position beside Algorithm 1, and beside HiGHS on the unreduced program.

The tree is `transposing_tree`: a million histories over 300,000 positions. Times are those of
`best_precomputation`, certificate and all, in turns with those of a price per information state. HiGHS solves
the whole program once (half a minute), beside the passes and the program of what they leave.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from benchmarks.measure import Row, side_by_side
from benchmarks.synthetic_trees import transposing_tree
from precomp_games import HistoryTree
from precomp_games.algorithms import best_precomputation, memory_frontier
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.position_prices import PricedForest, best_closure
from precomp_games.algorithms.programs import Program, ProgramBuilder

__all__ = ["rows", "whole_program"]

_PENALTY, _JOINED = 2e-5, 1.02  # a million histories, 300,000 positions
_FASTER = 20.0
_PASSES = 10.0


def whole_program(forest: PricedForest, penalty: float) -> Program:
    """Return the unreduced linear program, in units of the penalty."""
    program = ProgramBuilder()
    n, count = len(forest.gain), forest.num_positions
    program.columns(n + count)
    costs = dict(enumerate((forest.gain / penalty).tolist()))
    program.set_costs(costs | {n + k: -1.0 for k in range(count)})
    node, one = np.arange(n), np.ones(n)
    for other in (forest.previous.astype(np.int64), n + forest.position):
        numbers = program.rows(np.full(n, -np.inf), np.zeros(n))
        program.put(np.where(other >= 0, numbers, -1), node, one)
        program.put(numbers, other, -one)
    return program.built()


def _forest(tree: HistoryTree) -> PricedForest:
    decisions = Decisions.against(tree, 0, price="positions")
    return PricedForest.of_decisions(decisions)[0]


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure on `scale` of a million histories."""
    penalty = _PENALTY / scale
    tree = transposing_tree(penalty, _JOINED)
    positions = tree.num_positions
    say(f"prices per position: {tree.num_histories} histories over {positions} positions")
    forest = _forest(tree)
    best = best_precomputation(tree, 0, price="positions")  # compiles
    best_precomputation(tree, 0)
    left = best_closure(forest, penalty).left
    times = side_by_side(
        turns,
        positions=lambda: best_precomputation(dataclasses.replace(tree), 0, price="positions"),
        frontier=lambda: memory_frontier(dataclasses.replace(tree), 0, price="positions"),
        algorithm=lambda: best_precomputation(dataclasses.replace(tree), 0),
    )
    name = f"price per position, {tree.num_histories} histories over {positions} positions"
    result = [
        Row(
            f"{name} (left to HiGHS: {left} of {len(forest.gain)}): time / a pass of Algorithm 1",
            times.text("positions", "algorithm"),
            f"< {_PASSES:.0f} x",
            times.ratio("positions", "algorithm") < _PASSES,
        ),
        Row(
            f"{name}: seconds, gap, positions and histories in the set",
            f"{times.least('positions'):.2f}, {best.gap:.1e}, {best.num_positions}, {best.size}",
        ),
        Row(
            f"{name}: time of the frontier / a pass of Algorithm 1",
            times.text("frontier", "algorithm"),
        ),
    ]
    say("the whole program by HiGHS")
    times = side_by_side(
        1,
        program=lambda: whole_program(forest, penalty).solve(),
        ours=lambda: best_closure(forest, penalty),
    )
    result.append(
        Row(
            f"{name}: HiGHS on the whole program ({times.least('program'):.1f} s) / passes and HiGHS on what "
            "they leave",
            f"{times.ratio('program', 'ours'):.0f} x",
            f">= {_FASTER:.0f} x",
            times.ratio("program", "ours") >= _FASTER,
        )
    )
    return result
