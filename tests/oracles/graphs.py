"""Random games of perfect information for the searches, and an oracle that shares no code with them.

A game is a random graph of positions, level by level, unfolded into an EFG tree: lines that meet in a
position are transpositions, a player may move several times in a row, and utilities are few (ties) or real.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pyspiel

from tests.oracles.games import EfgText

_CHANCE, _OVER = -1, -4


@dataclasses.dataclass(frozen=True)
class RandomGame:
    """A game, what its states may be keyed by, and an evaluation of player 0's utility."""

    game: pyspiel.Game
    key: Callable[[Any], Hashable]
    evaluator: Callable[[Any], float]
    levels: int


@dataclasses.dataclass(frozen=True)
class _Position:
    player: int
    successors: tuple[int, ...]
    odds: tuple[float, ...]
    utility: float
    evaluation: float


def random_game(
    seed: int,
    levels: int = 5,
    width: int = 8,
    actions: int = 3,
    chance: float = 0.0,
    forced: float = 0.0,
    ties: bool = True,
    utility_sum: float = 0.0,
) -> RandomGame:
    """Return a random game.

    Args:
      seed: of everything.
      levels: moves until the game is over at the latest.
      width: positions a level; the fewer, the more transpositions.
      actions: at most so many.
      chance: share of chance nodes.
      forced: share of positions with a single move; for deep lines.
      ties: utilities and evaluations are integers from -2 to 2, else real numbers between them.
      utility_sum: what the players' utilities add up to.
    """
    rng = np.random.default_rng(seed)

    def number() -> float:
        return float(rng.integers(-2, 3)) if ties else round(float(rng.uniform(-2, 2)), 6)

    graph: list[list[_Position]] = []
    for level in range(levels + 1):
        row = []
        for _ in range(1 if level == 0 else width):
            draw = rng.random()
            over = level == levels or (level > 1 and draw > 0.9 and not forced)
            player = _OVER if over else _CHANCE if level and rng.random() < chance else int(rng.integers(2))
            count = 1 if level and rng.random() < forced else int(rng.integers(2, actions + 1))
            odds = [1.0] if count == 1 else np.round(rng.dirichlet(np.ones(count)), 4).tolist()
            odds[-1] = round(1.0 - sum(odds[:-1]), 4)
            if min(odds) <= 0.0:
                odds = [0.5, 0.5][:count] if count < 3 else [0.25] * (count - 1) + [1 - 0.25 * (count - 1)]
            row.append(
                _Position(
                    player,
                    () if over else tuple(rng.integers(width, size=count).tolist()),
                    tuple(odds),
                    number(),
                    number(),
                )
            )
        graph.append(row)

    text, counts = EfgText(), [0, 0]

    def write(level: int, index: int) -> None:
        position = graph[level][index]
        if position.player == _OVER:
            text.leaf(position.utility, utility_sum - position.utility)
        elif position.player == _CHANCE:
            text.chance(dict(enumerate(position.odds)))
        else:
            counts[position.player] += 1
            text.move(position.player + 1, counts[position.player], range(len(position.successors)))
        for successor in position.successors:
            write(level + 1, successor)

    write(0, 0)
    game = text.game()

    place: dict[tuple[int, ...], tuple[int, int]] = {}

    def walk(state: Any, level: int, index: int) -> None:
        place[tuple(state.history())] = (level, index)
        if not state.is_terminal():
            player = state.current_player()
            for action in state.legal_actions():
                k = int(state.action_to_string(player, action))
                walk(state.child(action), level + 1, graph[level][index].successors[k])

    walk(game.new_initial_state(), 0, 0)

    def key(state: Any) -> tuple[int, int]:
        return place[tuple(state.history())]

    def evaluator(state: Any) -> float:
        level, index = key(state)
        return graph[level][index].evaluation

    return RandomGame(game, key, evaluator, levels)


class Oracle:
    """Plain (expecti)minimax by the definition, remembered by (position, player to move, depth)."""

    def __init__(self, evaluator: Callable[[Any], float], key: Callable[[Any], Hashable]) -> None:
        self.evaluator, self.key = evaluator, key
        self.known: dict[Hashable, float] = {}

    def value(self, state: Any, depth: int) -> float:
        """Player 0's utility, `depth` moves of the players ahead."""
        if state.is_terminal():
            return state.returns()[0]
        if depth == 0:
            return self.evaluator(state)
        at = (self.key(state), state.current_player(), depth)
        if at not in self.known:
            if state.is_chance_node():
                total = 0.0  # Python 3.12's sum() rounds otherwise
                for outcome, probability in state.chance_outcomes():
                    total += probability * self.value(state.child(outcome), depth)
                self.known[at] = total
            else:
                best = max if state.current_player() == 0 else min
                self.known[at] = best(self.value(state.child(a), depth - 1) for a in state.legal_actions())
        return self.known[at]

    def scores(self, state: Any, depth: int) -> dict[int, float]:
        """Return the mover's utility of every move, for a game of sum 0."""
        sign = 1.0 if state.current_player() == 0 else -1.0
        return {a: sign * self.value(state.child(a), depth - 1) for a in state.legal_actions()}


def after(game_string: str, moves: Sequence[int]) -> Any:
    """Return a state of a game that OpenSpiel loads."""
    return follow(pyspiel.load_game(game_string).new_initial_state(), moves)


def follow(state: Any, line: Sequence[int]) -> Any:
    """Return the state after a line of legal moves; from a clone."""
    state = state.clone()
    for action in line:
        assert action in state.legal_actions()
        state.apply_action(action)
    return state


def without_time(result: Any) -> dict[str, Any]:
    """Return all that a seed or a budget of nodes decides."""
    return {name: value for name, value in vars(result).items() if name != "seconds"}
