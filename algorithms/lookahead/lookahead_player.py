"""A player with limited lookahead as an OpenSpiel policy.

    sigma = LookaheadPolicy(game, rational_player=0, strategy=best.policy(), lookahead=2, evaluation=h)

It is given what the rational player plays, and answers with its optimal actions at every information set, the
unreached ones included; so it can be what a player computes during play (sigma) where the other prepares:

    tree = HistoryTree.from_game(game, sigma_pre=..., sigma=(anything, sigma), penalties=(0.01, math.inf))

Source: `limited_lookahead`, section 3.

Cost: one walk by `evaluate_against_lookahead`, when it is made.
"""

from __future__ import annotations

from typing import Any

from open_spiel.python import policy as openspiel_policy

from precomp_games._support.arguments import GeneralSumGame, Player, PositiveInt, public
from precomp_games._support.checks import check_turn
from precomp_games.policies.rows import PolicyLike, as_batch_policy

from .follower import EvaluationFunction, Follower, Order, TieBreaking, infoset_key, legal_odds
from .outcome import LookaheadOutcome, lookahead_outcome

__all__ = ["LookaheadPolicy"]


class LookaheadPolicy(openspiel_policy.Policy):
    """What a player with limited lookahead plays against a strategy; the other's moves are by that strategy.

    Attributes:
      outcome: optimal sets, the actions picked, and what that is worth to the rational player.
    """

    outcome: LookaheadOutcome

    @public
    def __init__(
        self,
        game: GeneralSumGame,
        rational_player: Player,
        strategy: PolicyLike,
        lookahead: PositiveInt,
        evaluation: EvaluationFunction,
        tie_breaking: TieBreaking = "static",
        order: Order | None = None,
    ) -> None:
        """Initializes the policy.

        Args:
          game: two players, sequential, perfect recall.
          rational_player: 0 or 1; the other one looks ahead.
          strategy: the rational player's, an OpenSpiel policy or `state -> {action: probability}`.
          lookahead: k >= 1, in moves, Nature's included.
          evaluation: h, the limited player's evaluation function; asked of leaves too.
          tie_breaking: "favorable", "static" or "adversarial".
          order: for "static" only, the preferred action first.

        Raises:
          ValueError: as `evaluate_against_lookahead`.
        """
        follower = Follower(game, rational_player, lookahead, evaluation, tie_breaking, order)
        self.outcome = lookahead_outcome(follower, strategy)
        super().__init__(game, list(range(game.num_players())))
        self._rational = follower.rational_player
        self._strategy = as_batch_policy(strategy, "strategy")

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Returns {action: probability} of all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move, or the
            strategy gives no probabilities.
        """
        check_turn(state, player_id, self.game)
        actions = state.legal_actions()
        if state.current_player() == self._rational:
            return dict(zip(actions, legal_odds(self._strategy, state, "strategy"), strict=True))
        row = dict.fromkeys(actions, 0.0)
        row[self.outcome.response[infoset_key(state)]] = 1.0
        return row
