"""Games alone, beside OpenSpiel and LiteEFG.

- `nash_conv` and `best_response` of a tree that is there already, of a table, beside OpenSpiel's C++ and
  Python functions on the same game and policy.
- An iteration of CFR+ beside OpenSpiel's C++ and LiteEFG's, on Leduc poker and on Liar's Dice.
- `solve` of a small game, beside an iteration of OpenSpiel's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import best_response as openspiel_best_response
from open_spiel.python.algorithms import exploitability

from benchmarks.liteefg import NOT_MEASURED, Node, cfr_plus
from benchmarks.measure import Row, side_by_side
from precomp_games import HistoryTree
from precomp_games.algorithms import best_response, nash_conv, solve
from precomp_games.algorithms.zero_sum.regret_minimization import RegretMinimization, iterate, update_rule
from precomp_games.tree.facts import CHANCE, TERMINAL

__all__ = ["rows"]

_BESIDE_CPP, _BESIDE_PYTHON, _ITERATION = 30.0, 1000.0, 1000.0


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure on Leduc poker and Liar's Dice; below scale 1 on Liar's Dice with four sides."""
    dice = "liars_dice" if scale == 1.0 else "liars_dice(dice_sides=4)"
    return [
        *_responses(dice, turns, say),
        *[row for name in ("leduc_poker", dice) for row in _iterations(name, turns, say)],
        *_small(turns),
    ]


def _responses(name: str, turns: int, say: Callable[[str], None]) -> list[Row]:
    say(f"best responses in {name}")
    game = pyspiel.load_game(name)
    tree = HistoryTree.of_game(game)
    table = solve(tree, method="cfr+", iterations=100).policy()
    compiled = pyspiel.TabularPolicy(
        {
            key: [(int(a), float(table.action_probability_array[k, a])) for a in np.flatnonzero(legal)]
            for (key, k), legal in zip(
                table.state_lookup.items(),
                table.legal_actions_mask[list(table.state_lookup.values())],
                strict=True,
            )
        }
    )
    nash_conv(tree, table)
    many, root = 20, game.new_initial_state().history_str()
    times = side_by_side(
        min(turns, 3),
        cpp=lambda: pyspiel.nash_conv(game, compiled),
        cpp_best=lambda: pyspiel.TabularBestResponse(game, 0, compiled).value(root),
        ours=lambda: [nash_conv(tree, table) for _ in range(many)],
        ours_best=lambda: [best_response(tree, table, 0) for _ in range(many)],
    )
    once = side_by_side(
        1,
        python=lambda: exploitability.nash_conv(game, table),
        python_best=lambda: openspiel_best_response.BestResponsePolicy(game, 0, table).value(
            game.new_initial_state()
        ),
    )
    found = []
    for what, cpp, python, ours in (
        ("nash_conv", "cpp", "python", "ours"),
        ("best_response", "cpp_best", "python_best", "ours_best"),
    ):
        own = times.least(ours) / many
        for words, seconds, target in (
            ("C++", times.least(cpp), _BESIDE_CPP),
            ("Python", once.least(python), _BESIDE_PYTHON),
        ):
            ratio = seconds / own
            found.append(
                Row(
                    f"{what}, {name}: OpenSpiel's {words} / ours",
                    f"{ratio:.0f} x",
                    f">= {target:.0f} x",
                    ratio >= target,
                )
            )
    difference = abs(nash_conv(tree, table) - pyspiel.nash_conv(game, compiled))
    return [*found, Row(f"nash_conv, {name}: what differs", f"{difference:.1e}")]


def _iterations(name: str, turns: int, say: Callable[[str], None]) -> list[Row]:
    say(f"iterations on {name}")
    game = pyspiel.load_game(name)
    tree, theirs = HistoryTree.of_game(game), pyspiel.CFRPlusSolver(game)
    run = RegretMinimization(tree, "cfr+")
    run.advance(1)
    many = max(1, round(2_000_000 / tree.num_histories))

    def ours() -> None:
        rules = [update_rule("cfr+", run.iterations + 1 + k) for k in range(many)]
        iterate(run.decisions, run.state, rules)
        run.iterations += many

    works: dict[str, Callable[[], Any]] = {"openspiel": theirs.evaluate_and_update_policy, "ours": ours}
    lite = cfr_plus(0, functools.partial(_node, tree))
    if lite is not None:
        works["liteefg"] = lite.iterate
    times = side_by_side(min(turns, 5), **works)
    own = times.least("ours") / many
    ratio = times.least("openspiel") / own
    found = [
        Row(
            f"CFR+, {name} ({tree.num_histories} histories): OpenSpiel's C++ iteration / ours",
            f"{ratio:.0f} x",
            f">= {_ITERATION:.0f} x",
            ratio >= _ITERATION,
        )
    ]
    against = NOT_MEASURED if lite is None else f"{times.least('liteefg') / own:.0f} x"
    return [*found, Row(f"CFR+, {name}: LiteEFG's iteration / ours", against)]


def _node(tree: HistoryTree, history: int) -> Node:
    children, player = tree.children(history), int(tree.player[history])
    if not children:
        return Node(TERMINAL, payoff=float(tree.value[history]) - tree.utility_sum / 2.0)
    if player < 0:
        return Node(CHANCE, children, odds=[float(tree.sigma[child]) for child in children])
    return Node(player, children, int(tree.infoset[history]))


def _small(turns: int) -> list[Row]:
    solve("kuhn_poker")
    times = side_by_side(max(turns, 7), ours=lambda: solve("kuhn_poker"))
    return [Row("solve('kuhn_poker'), expansion included", f"{1000.0 * times.least('ours'):.0f} ms")]
