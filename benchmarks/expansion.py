"""Expansion of a tree by levels of positions, compared with history by history.

The game is OpenSpiel's own connect_four (C++), 2 rows by 6 columns, 3 in a row: the full-size tree has about
1,000,000 histories over about 20,000 positions. Player 0 prepares against a fixed opponent: Algorithm 1's
truncation, cut leaves counting as draws, so that evaluating them costs neither side anything. sigma_pre plays
every move; sigma plays the three it likes best.

Beside it stands the loop that one would write with OpenSpiel: a queue of states, breadth-first; at every
history both policies are asked, `state.child(action)` makes the next states, and parents, actions, movers,
probabilities and values go into lists, with the same cut. It must find the same histories, in the same order,
with the same numbers. It makes no checks of the policies' answers.

What a history costs that loop depends on the policies, so two kinds are measured:

  * computed: a row is worked out when it is asked for, a softmax of the board (`observation_tensor`) times a
    fixed random matrix: the smallest neural network that there is, and far below any search;
  * looked up: the same rows, kept in a dictionary by board once they were asked for. A further question costs
    a string and a look-up, the least that a policy which depends on the board can cost.

The dictionaries are full before the clock starts, or memory is measured.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from benchmarks.measure import Row, Times, fresh_process, peak_memory, side_by_side
from precomp_games import HistoryTree

__all__ = ["expand_by_history", "rows"]

_GAME = "connect_four(rows=2,columns=6,x_in_row=3)"
_PENALTY = 1.0e-6
_FULL_SIZE = 1_000_000
_LIKED = 3  # moves of sigma
_SPEED_TARGET = 20.0
_MEMORY_TARGET = 200.0
_SLACK = 1.0 - 1e-9  # as `HistoryTree`: a reach that equals the penalty up to rounding is kept


class ComputedPolicy(openspiel_policy.Policy):
    """Softmax over the `most` best moves of a random linear function of the board."""

    def __init__(self, game: pyspiel.Game, seed: int, most: int) -> None:
        super().__init__(game, [0, 1])
        shape = (game.num_distinct_actions(), math.prod(game.observation_tensor_shape()))
        self.most = most
        self.weights = 0.15 * np.random.default_rng(seed).standard_normal(shape)

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        legal = state.legal_actions()
        logits = self.weights @ state.observation_tensor(0)
        best = sorted(legal, key=lambda action: -logits[action])[: self.most]
        weights = np.exp(logits[best])
        return dict(zip(best, (weights / weights.sum()).tolist(), strict=True))


class LookedUpPolicy(openspiel_policy.Policy):
    """Another policy's rows, each asked for once a board."""

    def __init__(self, game: pyspiel.Game, policy: openspiel_policy.Policy) -> None:
        super().__init__(game, [0, 1])
        self.policy = policy
        self.table: dict[str, dict[int, float]] = {}

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        key = board(state)
        row = self.table.get(key)
        if row is None:
            row = self.table[key] = self.policy.action_probabilities(state)
        return row


def board(state: Any) -> str:
    """Return the position: the board shows who is to move as well."""
    return state.observation_string(0)


def draw(state: Any) -> float:
    """Return the value of a cut leaf."""
    return 0.0


def expand_by_history(
    game: pyspiel.Game,
    sigma_pre: openspiel_policy.Policy,
    sigma: openspiel_policy.Policy,
    penalty: float,
) -> dict[str, np.ndarray]:
    """Return the tree of player 0, preparing against player 1's sigma, one OpenSpiel state a history."""
    threshold = penalty / (game.max_utility() - game.min_utility()) * _SLACK
    parent, action, player, pre, play, value = [-1], [-1], [], [1.0], [1.0], []
    queue = deque([(game.new_initial_state(), 1.0)])
    history = 0
    while queue:
        state, reach = queue.popleft()
        mover = state.current_player()
        player.append(mover)
        if mover == pyspiel.PlayerId.TERMINAL:
            value.append(state.returns()[0])
        elif reach < threshold:
            value.append(draw(state))
        else:
            value.append(math.nan)
            row = sigma.action_probabilities(state)
            prepared = sigma_pre.action_probabilities(state) if mover == 0 else {}
            for a in sorted(row.keys() | prepared.keys()):
                p, q = prepared.get(a, 0.0), row.get(a, 0.0)
                parent.append(history)
                action.append(a)
                pre.append(p)
                play.append(q)
                queue.append((state.child(a), reach * (p if mover == 0 else q)))
        history += 1
    return {
        "parent": np.array(parent),
        "action": np.array(action),
        "player": np.array(player),
        "sigma_pre": np.array(pre),
        "sigma": np.array(play),
        "value": np.array(value),
    }


def rows(scale: float, turns: int, say: Callable[[str], None]) -> list[Row]:
    """Measure time and memory of the expansion, for a tree of about a million histories times `scale`."""
    histories = round(1_000_000 * scale)
    penalty = _PENALTY * max(1.0, _FULL_SIZE / histories)
    game = pyspiel.load_game(_GAME)
    computed = ComputedPolicy(game, 1, game.num_distinct_actions()), ComputedPolicy(game, 2, _LIKED)
    looked_up = LookedUpPolicy(game, computed[0]), LookedUpPolicy(game, computed[1])
    tree = _ours(game, looked_up, penalty)
    n, positions = tree.num_histories, tree.num_positions
    say(f"{_GAME}: {n} histories over {positions} positions")
    _compare(tree, expand_by_history(game, *looked_up, penalty))

    name = f"expansion, {n} histories / {positions} positions"
    measured = []
    for kind, policies, count in (
        ("computed", computed, max(1, turns // 2)),
        ("looked up", looked_up, turns),
    ):
        say(f"expanding with policies {kind}, {count} times each way")
        works = {
            "ours": lambda policies=policies: _ours(game, policies, penalty),
            "loop": lambda policies=policies: expand_by_history(game, policies[0], policies[1], penalty),
        }
        times = side_by_side(count, **works)
        say(f"  shortest: {times.least('ours'):.3f} s, history by history {times.least('loop'):.3f} s")
        measured.append(_speed_row(f"{name}: history by history / ours, policies {kind}", times))
    say("measuring memory in processes of their own")
    ours, count = fresh_process(_memory, looked_up, penalty)
    theirs, _ = fresh_process(_memory_by_history, looked_up, penalty)
    kept = sum(a.nbytes for a in vars(tree).values() if isinstance(a, np.ndarray))
    return [
        *measured,
        Row(
            f"{name}: peak memory",
            f"{ours / count:.0f} bytes a history",
            f"<= {_MEMORY_TARGET:.0f}",
            ours / count <= _MEMORY_TARGET,
        ),
        Row(f"{name}: the finished tree", f"{kept / n:.0f} bytes a history"),
        Row(f"{name}: peak memory, history by history", f"{theirs / count:.0f} bytes a history"),
    ]


def _speed_row(what: str, times: Times) -> Row:
    return Row(
        what,
        times.text("loop", "ours"),
        f">= {_SPEED_TARGET:.0f} x",
        times.ratio("loop", "ours") >= _SPEED_TARGET,
    )


def _ours(
    game: pyspiel.Game,
    policies: tuple[openspiel_policy.Policy, openspiel_policy.Policy],
    penalty: float,
) -> HistoryTree:
    return HistoryTree.from_game(
        game,
        sigma_pre=policies[0],
        sigma=policies[1],
        penalties=(penalty, math.inf),
        leaf_value=draw,
        position_key=board,
    )


def _compare(tree: HistoryTree, other: dict[str, np.ndarray]) -> None:
    """Check that the two expansions have the same histories, in the same order, with the same numbers.

    Raises:
      AssertionError: they differ.
    """
    for name, column in other.items():
        np.testing.assert_allclose(getattr(tree, name), column, rtol=1e-12, atol=1e-15, err_msg=name)


def _memory(policies: tuple[LookedUpPolicy, LookedUpPolicy], penalty: float) -> tuple[int, int]:
    """Return the peak bytes of an expansion, and the number of histories; in a fresh process."""
    game = pyspiel.load_game(_GAME)
    _ours(game, policies, 1e-2)  # whatever is imported on first use
    taken, tree = peak_memory(lambda: _ours(game, policies, penalty))
    return taken, tree.num_histories


def _memory_by_history(policies: tuple[LookedUpPolicy, LookedUpPolicy], penalty: float) -> tuple[int, int]:
    game = pyspiel.load_game(_GAME)
    taken, columns = peak_memory(lambda: expand_by_history(game, *policies, penalty))
    return taken, len(columns["parent"])
