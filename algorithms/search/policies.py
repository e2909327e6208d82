"""Searches as players: OpenSpiel policies, policies by name, and bots.

    make_policy(game, "pvs(depth=6)")
    make_policy(game, "mcts(simulations=200,seed=1)")
    make_policy(game, "softmax(policy=alpha_beta(depth=2),temperature=0.5)")

Limits of 0 are none; a spec without any searches to depth 4, or runs 200 simulations. A spec's searches use
what is known of the game (`knowledge`): its evaluation, move ordering and position key. Where nothing is
known, the horizon counts as a draw and there is no transposition table. With limits in depth, nodes or
simulations a policy is a function of the position: the same row at each call.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Annotated, Any, Literal

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.game_facts import legal_actions
from precomp_games._support.results import Shown
from precomp_games.policies.rows import policy_rows
from precomp_games.policies.specs import make_policy, register_policy
from precomp_games.tree.base_game import AnySumGame

from .depth_first import (
    MinimaxResult,
    SearchBudget,
    alpha_beta,
    minimax,
    position_of,
    principal_variation_search,
)
from .knowledge import known_of
from .mcts import MCTSResult, SimulationBudget, mcts

Search = Callable[[Any], MinimaxResult | MCTSResult]

# Where a spec names no limit.
_DEPTH = 4
_SIMULATIONS = 200


class SearchPolicy(Shown, openspiel_policy.Policy):
    """Plays the best move that a search finds."""

    @public
    def __init__(
        self,
        game: AnySumGame,
        search: Search,
        *,
        scored: Search | None = None,
        position_key: Callable[[Any], Hashable] | None = None,
    ) -> None:
        """Initialize the policy.

        Args:
          game: whose states it is asked about.
          search: from a state to a result, such as `functools.partial(alpha_beta, budget=...)`.
          scored: the same with exact scores of all root moves (`all_scores=True`); None: `search` has them.
          position_key: answers are kept, and given again for states with an equal key and the same player
            to move; None: nothing is kept.

        Raises:
          ValueError: an argument is not as above.
        """
        super().__init__(game, list(range(game.num_players())))
        self._search = search
        self._scored = scored or search
        self._key = position_key
        self._best: dict[Hashable, int] = {}
        self._scores: dict[Hashable, dict[int, float]] = {}

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: 1 for the best, else 0}, over all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move, or the
            search finds none of its actions.
        """
        checks.check_turn(state, player_id, self.game)
        actions = legal_actions(state)

        def search() -> int:
            result = self._search(state)
            action: Any = getattr(result, "action", None)
            if action not in actions:
                raise ArgumentError(
                    f"expected search to give a result whose action is one of {actions}, got {shown(result)}"
                )
            return int(action)

        best = self._remembered(self._best, state, search)
        return {action: 1.0 if action == best else 0.0 for action in actions}

    @public
    def scores(self, state: Any) -> dict[int, float]:
        """Return {action: the mover's utility}, exact within the search's horizon; for MCTS, means.

        Raises:
          ValueError: it is no state of the game where a player is to move, or the budget ended before all
            root moves had been searched once.
        """
        checks.check_turn(state, None, self.game)

        def search() -> dict[int, float]:
            result = self._scored(state)
            if not isinstance(scores := getattr(result, "scores", None), dict):
                raise ArgumentError(f"expected scored to give a result with scores, got {shown(result)}")
            if not scores or getattr(result, "upper_bounds", None):
                raise ArgumentError(
                    "expected a search with exact scores of all root moves, got "
                    f"{'bounds' if scores else 'none'} after {result.nodes} nodes"
                )
            return scores

        return dict(self._remembered(self._scores, state, search))

    def _remembered(self, known: dict[Hashable, Any], state: Any, search: Callable[[], Any]) -> Any:
        if self._key is None:
            return search()
        key = (state.current_player(), position_of(state, self._key))
        if key not in known:
            known[key] = search()
        return known[key]


class SoftmaxPolicy(Shown, openspiel_policy.Policy):
    """Plays each move with a probability proportional to exp(score / temperature)."""

    @public
    def __init__(self, game: AnySumGame, policy: SearchPolicy, temperature: checks.PositiveFloat) -> None:
        """Initialize the policy.

        Args:
          game: whose states it is asked about.
          policy: whose `scores(state)` are taken; moves without a score are not played.
          temperature: in the game's utility; the greater, the more random.

        Raises:
          ValueError: an argument is not as above.
        """
        super().__init__(game, list(range(game.num_players())))
        self._policy, self._temperature = policy, temperature

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability}, over all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move, or the
            policy has no scores for it.
        """
        checks.check_turn(state, player_id, self.game)
        scores = self._policy.scores(state)
        best = max(scores.values())
        weights = {
            action: math.exp((scores[action] - best) / self._temperature) if action in scores else 0.0
            for action in legal_actions(state)
        }
        total = sum(weights.values())
        return {action: weight / total for action, weight in weights.items()}


class SearchBot(Shown, pyspiel.Bot):
    """A policy as an OpenSpiel bot, for either side. Draws its moves from a stream of its own."""

    @public
    def __init__(self, policy: openspiel_policy.Policy, seed: checks.NonNegativeInt = 0) -> None:
        """Initialize the bot.

        Args:
          policy: any OpenSpiel policy.
          seed: of the stream, at least 0; `restart_at` does not set it back.

        Raises:
          ValueError: an argument is not as above.
        """
        super().__init__()
        self._policy = policy
        self._random = np.random.default_rng(seed)

    @public
    def step(self, state: Any) -> int:
        """Return a move.

        Raises:
          ValueError: it is no state where a player is to move, or the policy gives no probabilities.
        """
        checks.check_turn(state, None)
        row = self._policy.action_probabilities(state)
        policy_rows(lambda states: [row], [state], name="policy")
        actions, odds = zip(*((action, p) for action, p in row.items() if p > 0.0), strict=True)
        if len(actions) == 1:  # nothing is drawn
            return int(actions[0])
        probabilities = np.array(odds)
        return int(actions[self._random.choice(len(actions), p=probabilities / probabilities.sum())])

    def restart_at(self, state: Any) -> None:
        """Do nothing: the bot keeps nothing of a game but its stream."""


# -- policies by name --------------------------------------------------------------------------------


def _perfect(game: Any, name: str) -> pyspiel.Game:
    return checks.check_game(game, perfect=True)


_PerfectGame = Annotated[pyspiel.Game, checks.Check(_perfect)]
_Evaluation = Literal["auto", "draw"]


def _budget(depth: int, nodes: int, seconds: float) -> SearchBudget:
    """Return the limits of a spec: 0 is none, and without any there is a depth."""
    if not (depth or nodes or seconds):
        depth = _DEPTH
    return SearchBudget(depth=depth or None, nodes=nodes or None, seconds=seconds or None)


@public
def _minimax(
    game: _PerfectGame,
    depth: checks.NonNegativeInt = 0,
    nodes: checks.NonNegativeInt = 0,
    seconds: checks.NonNegativeFloat = 0.0,
    evaluator: _Evaluation = "auto",
) -> SearchPolicy:
    known = known_of(game)
    value = known.evaluator if evaluator == "auto" else None
    made = functools.partial(minimax, budget=_budget(depth, nodes, seconds), evaluator=value)
    return SearchPolicy(game, made, position_key=known.position_key)


def _pruning(search: Callable[..., MinimaxResult]) -> Callable[..., SearchPolicy]:
    """Return the factory of alpha-beta and PVS."""

    @public
    def factory(
        game: _PerfectGame,
        depth: checks.NonNegativeInt = 0,
        nodes: checks.NonNegativeInt = 0,
        seconds: checks.NonNegativeFloat = 0.0,
        evaluator: _Evaluation = "auto",
        table: bool = True,
    ) -> SearchPolicy:
        known = known_of(game)
        key = known.position_key
        made = functools.partial(
            search,
            budget=_budget(depth, nodes, seconds),
            evaluator=known.evaluator if evaluator == "auto" else None,
            ordering=known.ordering,
            position_key=key if table else None,
        )
        return SearchPolicy(game, made, scored=functools.partial(made, all_scores=True), position_key=key)

    return factory


@public
def _mcts(
    game: _PerfectGame,
    simulations: checks.NonNegativeInt = 0,
    seconds: checks.NonNegativeFloat = 0.0,
    c: checks.NonNegativeFloat = 1.4,
    seed: int = 0,
    evaluator: Literal["auto", "rollouts"] = "rollouts",
) -> SearchPolicy:
    if not (simulations or seconds):
        simulations = _SIMULATIONS
    budget = SimulationBudget(simulations=simulations or None, seconds=seconds or None)
    value = known_of(game).evaluator if evaluator == "auto" else None
    made = functools.partial(mcts, budget=budget, c=c, seed=seed, evaluator=value)
    return SearchPolicy(game, made, position_key=known_of(game).position_key)


def _softmax(
    game: pyspiel.Game, policy: str = "alpha_beta(depth=2)", temperature: float = 1.0
) -> SoftmaxPolicy:
    inner: Any = make_policy(game, policy)
    return SoftmaxPolicy(game, inner, temperature)


register_policy("minimax", _minimax)
register_policy("alpha_beta", _pruning(alpha_beta))
register_policy("pvs", _pruning(principal_variation_search))
register_policy("mcts", _mcts)
register_policy("softmax", _softmax)
