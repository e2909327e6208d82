"""Best responses and NashConv of any policy in a two-player zero-sum game, by passes over its tree.

    nash_conv("leduc_poker", policy)                     # as OpenSpiel's exploitability.nash_conv
    best_response(tree, policy, player=0).value

A policy is any that OpenSpiel's Python has (a table, a solver's average, a bot's), one of its C++ policies, a
function, or what answers batches, such as a neural network; it is asked once about each information state.
Whoever measures often expands the game once: `tree = HistoryTree.of_game(game)`, and gives the tree.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from open_spiel.python import policy as openspiel_policy

from precomp_games._support.arguments import Player, public
from precomp_games._support.checks import check_pair
from precomp_games._support.results import Result
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from ..preparation.decisions import Decisions
from .tables import AnyGame, Policies, strategies_by, strategy_by, table_of, tree_of


@dataclasses.dataclass(frozen=True, eq=False)
class BestResponse(Result):
    """A best response.

    Attributes:
      player: Whose it is.
      value: Its utility, the player's own.
      strategies: Those of players 0 and 1: the response, and what it responds to. Of actions that are alike
        it chooses the first.
      tree: The game's.
    """

    player: int
    value: float
    strategies: tuple[MetaStrategy, MetaStrategy] = dataclasses.field(repr=False)
    tree: HistoryTree

    def policy(self) -> openspiel_policy.TabularPolicy:
        """The response, and what it responds to, as one policy of both players for OpenSpiel."""
        return table_of(self.tree, self.strategies)


@public
def best_response(game: AnyGame, policy: Policies, player: Player) -> BestResponse:
    """A player's best response to the other's policy.

    Args:
      game: see `solve`.
      policy: of both players, or a pair; the player's own is not asked.
      player: 0 or 1.

    Raises:
      ValueError: an argument is not as above, or an answer is no distribution over legal actions.
    """
    tree = tree_of(game)
    other = strategy_by(tree, check_pair(policy, "policy")[1 - player], 1 - player)
    best = Decisions.against(tree, player, other, alone=True).best()
    own = MetaStrategy(tree, player, np.where(tree.entry_player == player, best.memorize, 0.0))
    return BestResponse(player, best.value, (own, other) if player == 0 else (other, own), tree)


@public
def nash_conv(game: AnyGame, policy: Policies) -> float:
    """What both players could gain by best responses to a policy, added up; twice its exploitability.

    Args:
      game: see `solve`.
      policy: of both players, or a pair.

    Raises:
      ValueError: an argument is not as above, or an answer is no distribution over legal actions.
    """
    tree = tree_of(game)
    strategies = strategies_by(tree, policy)
    best = sum(Decisions.against(tree, i, strategies[1 - i], alone=True).best().value for i in (0, 1))
    return best - tree.utility_sum
