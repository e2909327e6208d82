"""Strategies of the meta-game as OpenSpiel policies, and policies of OpenSpiel's solvers as strategies.

    policy = MetaGamePolicy(game, (s_0, s_1))        # of the game and its cached tree
    strategies_from_policy(game, solver.average_policy())

`MetaGamePolicy` is a behavioral strategy profile of G' for OpenSpiel: at an information state it stops or
memorizes an entry with the probabilities that the strategies have there. `strategies_from_policy` is its
inverse. It reads a profile of G' that some solver of OpenSpiel has computed, on the game itself or on its
cached tree.

Source: `precomputation`, section 4.1.

Cost: a policy is asked once for each information state, at a state that a few moves lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Shown
from precomp_games.meta_game.game import MetaPrecomputationGame, MetaPrecomputationState
from precomp_games.meta_game.rules import MEMORIZE, STOP
from precomp_games.policies.rows import BatchPolicy, PolicyLike, as_batch_policy, policy_rows
from precomp_games.tree.meta_strategy import MetaStrategy, at_most_one, check_strategies


class MetaGamePolicy(Shown, openspiel_policy.Policy):
    """Both players' strategies as an OpenSpiel policy of a meta-game of either form.

    It goes by information state strings, so it plays `pyspiel.convert_to_cached_tree(game)` as well.
    `to_tabular()` is OpenSpiel's own and walks through the game.
    """

    @public
    def __init__(self, game: MetaPrecomputationGame, strategies: tuple[MetaStrategy, MetaStrategy]) -> None:
        """Make the policy.

        Raises:
          ValueError: not strategies of players 0 and 1 on the game's tree.
        """
        check_strategies(strategies, game.tree)
        super().__init__(game, [0, 1])
        self.strategies = (strategies[0], strategies[1])
        finite = np.flatnonzero(np.isfinite(game.tree.penalties)[game.tree.infoset_player])
        self._infosets = {game.rules.infoset_view(k): k for k in finite.tolist()}

    def __reduce__(self) -> tuple[Any, ...]:
        return MetaGamePolicy, (self.game, self.strategies)

    @public
    def action_probabilities(
        self, state: pyspiel.State, player_id: checks.Player | None = None
    ) -> dict[int, float]:
        """Return {STOP: probability, MEMORIZE: probability} at a decision state; menus have more entries.

        Raises:
          ValueError: the player decides on nothing there, or not in this game.
        """
        mover = state.current_player()
        player = mover if player_id is None else player_id
        infoset = None
        if mover >= 0 and mover == player and state.get_game().get_type().provides_information_state_string:
            infoset = self._infosets.get(state.information_state_string(player))
        if infoset is None:
            raise ArgumentError(f"expected a decision of the meta-game, got {shown(state)}")
        return self._row(infoset)

    def _row(self, infoset: int) -> dict[int, float]:
        tree = self.game.tree
        strategy = self.strategies[int(tree.infoset_player[infoset])]
        entries = strategy.memorize[tree.first_entry[infoset] : tree.first_entry[infoset + 1]].tolist()
        return {STOP: max(0.0, 1.0 - sum(entries)), **dict(enumerate(entries, MEMORIZE))}

    def to_pyspiel(self) -> pyspiel.TabularPolicy:
        """Return the policy as a table for OpenSpiel's C++ algorithms."""
        return pyspiel.TabularPolicy(
            {name: list(self._row(infoset).items()) for name, infoset in self._infosets.items()}
        )


@public
def strategies_from_policy(
    game: MetaPrecomputationGame,
    policy: Annotated[PolicyLike | Sequence[PolicyLike], checks.Check(checks.check_pair)],
) -> tuple[MetaStrategy, MetaStrategy]:
    """Return both players' strategies that a policy of the meta-game describes.

    Args:
      game: either form.
      policy: an OpenSpiel policy, in Python or C++, or a function from a state to {action: probability};
        one for both players, or one each. It is asked at one state of each information state.

    Returns:
      Both players' strategies. Where the game never asks, they do not memorize: that is so for a player whose
      penalty is infinite and, in the reweighted form, for what chance rules out.

    Raises:
      ValueError: not a meta-game, a policy or a probability distribution.
    """
    tree = game.tree
    ask = [as_batch_policy(p, f"policy[{i}]") for i, p in enumerate(policy)]
    memorize = np.zeros((2, tree.num_entries))
    for infoset, state in _decision_states(game):
        player = int(tree.infoset_player[infoset])
        answer = _answer(ask[player], state, f"policy[{player}]")
        for k, entry in enumerate(range(*tree.first_entry[infoset : infoset + 2]), MEMORIZE):
            memorize[player, entry] = min(answer.get(k, 0.0), 1.0)
    first, second = (at_most_one(tree, row) for row in memorize)
    return MetaStrategy(tree, 0, first), MetaStrategy(tree, 1, second)


# -- helpers ---------------------------------------------------------------------------------------


def _answer(ask: BatchPolicy, state: Any, name: str) -> dict[int, float]:
    """Return a policy's {action: probability > 0} at a state, checked."""
    try:
        rows = policy_rows(ask, [state], name=name)
    except LookupError as error:  # a table of another game's
        raise ArgumentError(f"expected {name} to know {shown(state.history_str())}, got {error!r}") from error
    return dict(zip(rows.action.tolist(), rows.probability.tolist(), strict=True))


def _decision_states(game: MetaPrecomputationGame) -> Iterator[tuple[int, MetaPrecomputationState]]:
    """Yield a state of G' at each information state that can be reached."""
    if game.form == "audit":  # which visit each of them once
        start = game.new_initial_state()
        stack = [start.child(action) for action in start.legal_actions() if action > 0]
        while stack:
            state = stack.pop()
            if state.is_chance_node():
                stack += [state.child(action) for action in state.legal_actions()]
            elif not state.is_terminal():
                yield state.infoset, state
                stack += [state.child(action) for action in state.legal_actions() if action != STOP]
        return
    tree = game.tree
    decides = (tree.infoset >= 0) & np.isfinite(tree.penalties)[np.clip(tree.player, 0, 1)]
    visited = np.zeros(tree.num_infosets, bool)
    for history in np.flatnonzero(decides).tolist():
        infoset = int(tree.infoset[history])
        state = None if visited[infoset] else _play_to(game, history, decides)
        if state is not None:
            visited[infoset] = True
            yield infoset, state


def _play_to(
    game: MetaPrecomputationGame, history: int, decides: np.ndarray
) -> MetaPrecomputationState | None:
    """Return a state over a history of the tree whose mover has memorized all before it, or None."""
    tree, mover = game.tree, int(game.tree.player[history])
    path = [history]
    while path[-1] > 0:
        path.append(int(tree.parent[path[-1]]))
    edges = list(zip(path[:0:-1], path[-2::-1], strict=True))  # (parent, child), from the root
    rival = [child for parent, child in edges if tree.player[parent] == 1 - mover and decides[parent]]
    # The opponent can go on until sigma_pre does not play the next move, and must beyond what sigma does not.
    goes_on = next((n for n, child in enumerate(rival) if tree.sigma_pre[child] == 0.0), len(rival))
    if any(tree.sigma[child] == 0.0 for child in rival[goes_on:]):
        return None
    state = game.new_initial_state()
    decisions = 0
    for parent, child in edges:
        memorize = MEMORIZE + (int(tree.entry[child]) if tree.has_menus else 0)
        if state.current_player() == mover:
            state.apply_action(memorize)
        elif state.current_player() == 1 - mover:
            state.apply_action(memorize if decisions < goes_on else STOP)
            decisions += 1
        action = int(tree.action[child])
        if action not in state.legal_actions():
            return None
        state.apply_action(action)
        assert state.position.history == child, f"{parent} leads to {state.position.history}, not {child}"
    return state
