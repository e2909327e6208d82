"""Searches beside OpenSpiel's own: time to a depth, nodes, simulations a second.

Depth-first search, on Connect Four from the start. OpenSpiel's `alpha_beta_search` needs a value function for
positions at the horizon; both sides get the same one: the lines still open to each player (about 5
microseconds), and, for information, a constant. Answers must be equal: the value, and the move's own value.
How much of the ratio comes from where is shown by rows for plain alpha-beta (the same positions as
OpenSpiel's), with the middle columns first, with a transposition table and iterative deepening too, and with
principal variation search. Then nodes of all variants on the named games, plain minimax too, which visits
every position; all must give the same value.

Monte Carlo tree search, on the same position. "The same roll-outs" are one object, `RandomRollouts`, given to
OpenSpiel's Python `MCTSBot` as its evaluator; for information, OpenSpiel's C++ `MCTSBot`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts as openspiel_mcts
from open_spiel.python.algorithms import minimax as openspiel_minimax

from benchmarks.measure import Row, side_by_side
from precomp_games.algorithms.search import (
    SearchBudget,
    SimulationBudget,
    alpha_beta,
    known_of,
    mcts,
    minimax,
    principal_variation_search,
)
from precomp_games.algorithms.search.depth_first import MinimaxResult
from precomp_games.algorithms.search.mcts import RandomRollouts

__all__ = ["rows"]

_GAME = "connect_four"
_SPEED_TARGET = 10.0
_SIMULATION_TARGET = 3.0
_C = 1.4


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure searches of Connect Four to depth 8 and 20,000 simulations; below scale 1, less."""
    depth, simulations = 8 if scale == 1.0 else 4, max(200, round(20_000 * scale))
    return [
        *_depth_rows(depth, turns, say),
        *_node_rows(depth, say),
        *_simulation_rows(simulations, turns, say),
    ]


# -- depth-first search ------------------------------------------------------------------------------


def _variants(game: pyspiel.Game, evaluator: Any) -> dict[str, Callable[..., MinimaxResult]]:
    """Return the variants from plain to best; each adds something to the last one."""
    _, ordering, key = known_of(game)
    options: dict[str, tuple[Any, dict[str, Any]]] = {
        "alpha-beta": (alpha_beta, {}),
        "ordered": (alpha_beta, {"ordering": ordering}),
        "with a table": (
            alpha_beta,
            {"ordering": ordering, "position_key": key, "iterative_deepening": True},
        ),
        "PVS": (principal_variation_search, {"ordering": ordering, "position_key": key}),
    }
    return {
        name: functools.partial(search, evaluator=evaluator, **arguments)
        for name, (search, arguments) in options.items()
    }


def _depth_rows(depth: int, turns: int, say: Callable[[str], None]) -> list[Row]:
    game = pyspiel.load_game(_GAME)
    root = game.new_initial_state()
    budget = SearchBudget(depth=depth)
    measured = []
    for values, evaluator in (("open lines", known_of(game).evaluator), ("a constant", lambda state: 0.0)):
        say(f"Connect Four to depth {depth}, evaluated by {values}, {turns} times each way")

        def theirs(state: Any, depth: int, evaluator: Any = evaluator) -> tuple[float, int]:
            return openspiel_minimax.alpha_beta_search(
                game, state, value_function=evaluator, maximum_depth=depth, maximizing_player_id=0
            )

        searches = _variants(game, evaluator)
        expected = theirs(root, depth)[0]
        for name, search in searches.items():
            found = search(root, budget)
            own = theirs(root.child(found.action), depth - 1)[0]
            if not found.value == expected == own:
                raise AssertionError(f"{name}: {found.value}, move worth {own}; OpenSpiel: {expected}")
        times = side_by_side(
            turns,
            theirs=functools.partial(theirs, root, depth),
            **{name: functools.partial(search, root, budget) for name, search in searches.items()},
        )
        best = values == "open lines"
        for name in searches:
            is_target = best and name == "PVS" and depth == 8
            measured.append(
                Row(
                    f"Connect Four, depth {depth}, {values}: OpenSpiel's alpha-beta / {name}",
                    times.text("theirs", name),
                    f">= {_SPEED_TARGET:.0f} x" if is_target else "",
                    times.ratio("theirs", name) >= _SPEED_TARGET if is_target else None,
                )
            )
    return measured


def _node_rows(depth: int, say: Callable[[str], None]) -> list[Row]:
    """Measure positions visited; the depths of the named games shrink with that of Connect Four."""
    less = 8 - depth
    measured = []
    for game_string, full in (
        ("tic_tac_toe", 9),
        (_GAME, 8),
        ("breakthrough(rows=5,columns=5)", 6),
    ):
        at = max(1, full - less)
        game = pyspiel.load_game(game_string)
        root, evaluator = game.new_initial_state(), known_of(game).evaluator
        say(f"nodes of all variants: {game_string} to depth {at}")
        searches = {"minimax": functools.partial(minimax, evaluator=evaluator)}
        found = {
            name: search(root, SearchBudget(depth=at))
            for name, search in (searches | _variants(game, evaluator)).items()
        }
        if len({result.value for result in found.values()}) != 1:
            raise AssertionError({name: result.value for name, result in found.items()})
        nodes = {name: result.nodes for name, result in found.items()}
        plain, pruned, ordered, table, pvs = nodes.values()
        falls = plain >= pruned >= ordered > table >= pvs
        measured.append(
            Row(
                f"{game_string}, depth {at}: nodes of {', '.join(nodes)}",
                " / ".join(f"{count:,}" for count in nodes.values()),
                "" if less else "falling",
                None if less else falls,
            )
        )
    return measured


# -- Monte Carlo tree search -------------------------------------------------------------------------


class _SameRollouts(openspiel_mcts.Evaluator):
    """Our roll-outs as OpenSpiel's Python search asks for them."""

    def __init__(self, game: pyspiel.Game) -> None:
        self._play = RandomRollouts(game, 1)

    def evaluate(self, state: Any) -> np.ndarray:
        value = self._play(state)
        return np.array([value, -value])

    def prior(self, state: Any) -> list[tuple[int, float]]:
        actions = state.legal_actions()
        return [(action, 1.0 / len(actions)) for action in actions]


def _simulation_rows(simulations: int, turns: int, say: Callable[[str], None]) -> list[Row]:
    game = pyspiel.load_game(_GAME)
    root = game.new_initial_state()
    budget = SimulationBudget(simulations)
    say(f"{simulations} simulations of Connect Four, {turns} times each way")

    def python_bot() -> Any:
        how: dict[str, Any] = {"solve": False, "random_state": np.random.RandomState(1)}
        return openspiel_mcts.MCTSBot(game, _C, simulations, _SameRollouts(game), **how)

    mcts(root, SimulationBudget(10))  # compiles
    done = (
        mcts(root, budget, c=_C).simulations,
        python_bot().mcts_search(root).explore_count,
    )
    if done != (simulations, simulations):
        raise AssertionError(f"{done} simulations of {simulations}")

    def cpp() -> Any:
        evaluator = pyspiel.RandomRolloutEvaluator(1, 1)
        # (..., MB of nodes, solve, seed, verbose)
        return pyspiel.MCTSBot(game, evaluator, _C, simulations, 1000, False, 1, False).mcts_search(root)

    times = side_by_side(
        turns,
        ours=lambda: mcts(root, budget, c=_C),
        theirs=lambda: python_bot().mcts_search(root),
        cpp=cpp,
    )
    name = f"Connect Four, {simulations} simulations"
    rate = simulations / times.least("ours")
    return [
        Row(
            f"{name}: OpenSpiel's Python MCTS with the same roll-outs / ours",
            times.text("theirs", "ours"),
            f">= {_SIMULATION_TARGET:.0f} x",
            times.ratio("theirs", "ours") >= _SIMULATION_TARGET,
        ),
        Row(f"{name}: time, ours / OpenSpiel's C++ MCTS", times.text("ours", "cpp")),
        Row(f"{name}: simulations a second here", f"{rate:,.0f}"),
    ]
