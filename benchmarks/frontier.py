"""The memory frontier beside Algorithm 1, and certified preparation beside the roll-outs of Theorem 3.

- The frontier of a synthetic tree (see `algorithm_1`) and passes of Algorithm 1 on the same tree, in turns.
- Budgets between two bends of the curve: seconds, and how many information states the bounds leave open.
- Roll-outs until the interval is 0.05 wide at delta = 0.05, on several games, beside Theorem 3's
  K = 16 log(|W| / delta) / epsilon^2 games at each history of W that is not the end of a game. W is what a
  tree holds that is expanded by reach alone. Theorem 3 is stated for R = 1: where R = 2, epsilon is 0.05 R.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from benchmarks.measure import Row, side_by_side
from benchmarks.synthetic_trees import synthetic_tree
from precomp_games import HistoryTree, make_policy
from precomp_games.algorithms import best_precomputation
from precomp_games.algorithms.preparation.certified_sampling import certified_precomputation
from precomp_games.algorithms.preparation.decisions import Decisions
from precomp_games.algorithms.preparation.frontier import best_within_budget, frontier_of, memory_frontier
from precomp_games.algorithms.search import known_of
from precomp_games.tree.facts import TERMINAL

__all__ = ["certificate_rows", "rows"]

_PASSES = 20.0
_FEWER = 20.0
_EPSILON = 0.05
_DELTA = 0.05

# (game, sigma of both players, sigma_pre, player, lambda).
_SOFT = "softmax(policy=alpha_beta(depth=1),temperature=0.5)"
_GAMES = (
    ("tic_tac_toe", _SOFT, "alpha_beta(depth=4)", 0, 0.01),
    ("tic_tac_toe", _SOFT, "alpha_beta(depth=4)", 1, 0.01),
    ("tic_tac_toe", "uniform", "alpha_beta(depth=4)", 0, 0.005),
    ("tic_tac_toe", "uniform", "alpha_beta(depth=4)", 1, 0.005),
    ("breakthrough(rows=4,columns=3)", "uniform", "alpha_beta(depth=3)", 0, 0.01),
    ("connect_four(rows=4,columns=4)", _SOFT, "alpha_beta(depth=3)", 0, 0.005),
)


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure on a tree of about 2.8 million histories times `scale`, and certificates on games."""
    histories, games = round(2_800_000 * scale), len(_GAMES) if scale > 0.1 else 1
    say(f"the memory frontier of a synthetic tree of about {histories} histories")
    tree = synthetic_tree(histories)
    frontier = memory_frontier(tree, 0)  # compiles
    best_precomputation(tree, 0)
    times = side_by_side(
        turns,
        frontier=lambda: memory_frontier(dataclasses.replace(tree), 0),
        algorithm=lambda: best_precomputation(dataclasses.replace(tree), 0),
    )
    name = f"memory frontier, {tree.num_histories} histories, {len(frontier.breakpoints)} breakpoints"
    result = [
        Row(
            f"{name}: time / a pass of Algorithm 1",
            times.text("frontier", "algorithm"),
            f"< {_PASSES:.0f} x",
            times.ratio("frontier", "algorithm") < _PASSES,
        )
    ]
    small = Decisions.against(synthetic_tree(1000), 0)
    curve = frontier_of(small)
    for budget in range(20):  # compiles, on the curve's breakpoints and between them
        best_within_budget(curve, budget)
    frontier = frontier_of(Decisions.against(tree, 0))
    for budget in (200, frontier.exact_size // 2 + 1, frontier.exact_size + 1):
        start = time.perf_counter()
        found = best_within_budget(frontier, budget)
        seconds = time.perf_counter() - start
        short = frontier.upper_bound(budget) - found.utility
        result.append(
            Row(
                f"budget of {budget}: seconds, left open, below the curve",
                f"{seconds:.2f}, {found.open}, {max(short, 0.0):.1e}",
            )
        )
    return [*result, *certificate_rows(say, games)]


def certificate_rows(say: Callable[[str], None], games: int = len(_GAMES)) -> list[Row]:
    """Measure the roll-outs that certificates need, by game."""
    result = []
    for name, play, prepared, player, penalty in _GAMES[:games]:
        game = pyspiel.load_game(name)
        say(f"certificates on {name}, player {player}")
        pre, sigma = make_policy(game, prepared), make_policy(game, play)
        key: Any = known_of(game).position_key
        penalties = (penalty, math.inf) if player == 0 else (math.inf, penalty)
        tree = HistoryTree.from_game(
            game,
            sigma_pre=pre,
            sigma=sigma,
            penalties=penalties,
            stop_value="evaluate",
            truncate="reach",
            position_key=key,
        )
        sampled = ((tree.infoset >= 0) | (tree.num_children == 0)) & (tree.player != TERMINAL)
        histories, scale = int(sampled.sum()), tree.utility_range
        epsilon = _EPSILON * scale
        asked = histories * math.ceil(16.0 * _EPSILON**-2 * math.log(histories / _DELTA))  # Theorem 3
        found = certified_precomputation(
            game, pre, sigma, penalty, player, epsilon=epsilon, delta=_DELTA, position_key=key, seed=1
        )
        value = best_precomputation(tree, player).value
        assert found.reached and np.isfinite(found.gap)
        inside = found.lower <= value <= found.upper
        ratio = asked / found.work["rollouts"]
        result.append(
            Row(
                f"certificate, {name.partition('(')[0]} ({play.partition('(')[0]}), player {player}, "
                f"|W| = {histories}: Theorem 3's games / ours ({found.work['rollouts']})"
                + ("" if inside else "; VALUE OUTSIDE"),
                f"{ratio:.0f} x",
                f">= {_FEWER:.0f} x",
                ratio >= _FEWER,
            )
        )
    return result
