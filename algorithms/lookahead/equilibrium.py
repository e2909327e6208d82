"""An equilibrium by linear programming, which does not depend on the solver; and strategies as policies.

**Which equilibrium.** Values off the path, and with them what can be exploited, depend on it. `equilibrium`
takes the one that is lexicographically least in the probabilities of all but each information set's first
action, last actions first, information sets in the order of the game: of all optimal strategies, the one that
bets least. In Kuhn poker that is alpha = 0. Where a player's own plan does not come, it is uniform. It is
solver-independent as far as linear programs are solved exactly; probabilities are rounded to fractions where
that leaves the strategies optimal to 1e-9 (in Kuhn and KJ poker, to 1e-12).

Source: von Stengel 1996 for the linear programs; the choice of one of their solutions is ours.

Cost: two linear programs of the size of the game; one more for each action but an information set's first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support.arguments import Game, public
from precomp_games._support.checks import check_turn
from precomp_games.policies.rows import infoset_key

from ..programs import ProgramBuilder
from .instance import add_realization_plan
from .sequence_form import SequenceForm

__all__ = ["StrategyPolicy", "equilibrium"]

_EXACT = 1e-12
_FIXED = 1e-8


class StrategyPolicy(openspiel_policy.Policy):
    """An OpenSpiel policy from {information state: {action: probability}}, uniform elsewhere.

    Attributes:
      rows: Of both players, or of one; histories stand for information states where the game has none.
    """

    def __init__(self, game: pyspiel.Game, rows: Mapping[str, Mapping[int, float]]) -> None:
        """Initializes the policy, whose rows are distributions."""
        super().__init__(game, list(range(game.num_players())))
        self.rows = rows

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Returns {action: probability} of all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move.
        """
        check_turn(state, player_id, self.game)
        legal = state.legal_actions()
        row = self.rows.get(infoset_key(state))
        if row is None:
            return dict.fromkeys(legal, 1.0 / len(legal))
        return dict.fromkeys(legal, 0.0) | dict(row)


@public
def equilibrium(game: Game, lexicographic: bool = True) -> StrategyPolicy:
    """An equilibrium of a two-player zero- or constant-sum game of perfect recall, see above.

    Args:
      game: as above.
      lexicographic: False takes whichever the solver finds first, which is quicker on large games, and may
        change with the version of HiGHS.

    Raises:
      ValueError: the game is not as above. LinearProgramError: HiGHS fails.
    """
    form = SequenceForm.of(game)
    form, _ = form.normalized(0)
    rows: dict[str, dict[int, float]] = {}
    for player in (0, 1):
        rows |= form.players[player].behavior(_optimal_plan(form, player, lexicographic))
    return StrategyPolicy(game, rows)


def _optimal_plan(form: SequenceForm, player: int, lexicographic: bool) -> np.ndarray:
    """A maximin realization plan: maximize v @ (1, 0, ...) with v(I) <= payoffs, by duality."""
    own, other = form.players[player], form.players[1 - player]
    program = ProgramBuilder()
    add_realization_plan(program, own)
    # Of each information set of the other player; number 0 has no column.
    worth = program.columns(other.num_infosets - 1, -math.inf, math.inf) - 1
    payoff = [list(row.items()) for row in form.payoff(player)]
    for infoset in range(1, other.num_infosets):
        for reply in other.sequences(infoset):
            below = [(worth + after, 1.0) for after in other.below[reply]]
            program.at_most(worth + infoset, [*payoff[reply], *below])
    first = [*payoff[0], *((worth + infoset, 1.0) for infoset in other.below[0])]
    program.add_costs(first)
    solution = program.built().solve(presolve=False)
    plan, value = solution.x[: own.num_sequences], solution.objective
    if lexicographic:
        program.row(first, low=value - _FIXED)
        for infoset in range(1, own.num_infosets):
            for sequence in reversed(own.sequences(infoset)[1:]):
                program.set_costs({sequence: -1.0})
                solution = program.built().solve(presolve=False, attempt=True)
                if not solution.found:
                    continue  # the slack of what is fixed so far is used up: what was found stays
                plan = solution.x[: own.num_sequences]
                program.set_bounds(sequence, 0.0, min(1.0, max(0.0, float(plan[sequence])) + _FIXED))
    plan = np.where(plan < 1e-8, 0.0, plan)
    fractions = [float(Fraction(p).limit_denominator(2_000)) for p in own.probabilities(plan).tolist()]
    exact = own.realized(np.array(fractions))
    sums = np.add.reduceat(exact, own.first[1:-1]) - exact[own.parent[1:]]
    if np.abs(sums).max(initial=0.0) <= _EXACT:
        guaranteed = -float(other.extremes(-form.against(player, exact, player)))
        if guaranteed >= value - 1e-9:
            plan = exact
    return plan
