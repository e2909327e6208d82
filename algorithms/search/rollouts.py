"""Random play to the end of the game, as an evaluator: player 0's utility in one game.

Games of OpenSpiel's C++ are played out by its own `RandomRolloutEvaluator`. Python reaches it only through
a tree search of a single simulation, which evaluates its root and stops; that is about 4 times faster than
playing move by move from Python. Games written in Python, and C++ games around them, are played move by
move: C++'s tree search does not survive them.
"""

from __future__ import annotations

import random
from typing import Any

import pyspiel

from precomp_games._support.arguments import Game, public
from precomp_games._support.checks import check_state, utility_sum
from precomp_games.tree.facts import CHANCE, TERMINAL

__all__ = ["RandomRollouts"]


class RandomRollouts:
    """A function of a state: player 0's utility in a game played on at random. Draws anew at each call.

    search: where C++ plays, what does it: from a state where a player is to move to a node whose
      `total_reward` is that player's utility in the game; else None.
    """

    @public
    def __init__(self, game: Game, seed: int = 0) -> None:
        """Initializes the roll-outs.

        Args:
          game: whose states they are asked about: two players, sequential, zero or constant sum.
          seed: of the stream that all calls draw from, any integer; the lowest 64 bits count.

        Raises:
          ValueError: an argument is not as above.
        """
        self._random = random.Random(seed % 2**64)
        self._sum = utility_sum(game)
        self.search: Any = None
        in_cpp = type(game.new_initial_state()).__module__.partition(".")[0] == "pyspiel"
        around_another = any(isinstance(value, dict) for value in game.get_parameters().values())
        if in_cpp and not around_another:
            evaluator = pyspiel.RandomRolloutEvaluator(1, self._random.getrandbits(31))
            # (game, evaluator, uct_c, simulations, MB of nodes, solve, seed, verbose)
            bot = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 1, False, 0, False)
            self.search = bot.mcts_search
            self._keep = (bot, evaluator)

    def __call__(self, state: Any) -> float:
        """Plays one game on from `state`, which stays as it is."""
        check_state(state)
        mover = state.current_player()
        if mover < 0:  # the single simulation needs a player's viewpoint
            state = state.clone()
            while mover == CHANCE:
                self._draw(state)
                mover = state.current_player()
            if mover == TERMINAL:
                return float(state.returns()[0])
        if self.search is not None:
            utility = float(self.search(state).total_reward)
            return utility if mover == 0 else self._sum - utility
        return self._play(state.clone())

    def _play(self, state: Any) -> float:
        draw = self._random.random
        while (mover := state.current_player()) != TERMINAL:
            if mover == CHANCE:
                self._draw(state)
            else:
                actions = state.legal_actions()
                state.apply_action(actions[int(draw() * len(actions))])
        return float(state.returns()[0])

    def _draw(self, state: Any) -> None:
        outcomes, odds = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(self._random.choices(outcomes, odds)[0])
