"""Evaluation functions for players with limited lookahead: values under an equilibrium, and noise on them.

    h = equilibrium_values(game, player=1)              # (16): expected values under `equilibrium(game)`
    noisy = independent_noise(h, gamma=0.5, seed=3)     # h + mu, leaves included
    noisy = cumulative_noise(h, gamma=0.5, seed=3)      # (17): passed on to what comes before; none on leaves

mu is drawn at each history from N(0, gamma^2), and gamma times the same standard draw for the same seed, so
that curves over gamma are smooth. An evaluation function is any callable on states; these are tables.

**Which equilibrium.** Values off the path, and with them what can be exploited, depend on it. `equilibrium`
takes the one that is lexicographically least in the probabilities of all but each information set's first
action, last actions first, information sets in the order of the game: of all optimal strategies, the one that
bets least. In Kuhn poker that is alpha = 0. Where a player's own plan does not come, it is uniform. It is
solver-independent as far as linear programs are solved exactly; probabilities are rounded to fractions where
that leaves the strategies optimal to 1e-9 (in Kuhn and KJ poker, to 1e-12).

Source: `limited_lookahead`, equations (16) and (17); von Stengel 1996 for the linear programs of an
equilibrium. The choice of one of their solutions is ours.

Cost: two linear programs of the size of the game; one more for each action but an information set's first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games._support import checks
from precomp_games._support.checks import public
from precomp_games._support.game_facts import infoset_key, legal_actions
from precomp_games.policies.rows import PolicyLike, as_batch_policy
from precomp_games.tree.base_game import AnySumGame, Game
from precomp_games.tree.facts import CHANCE, TERMINAL

from ..programs import LinearProgramError, ProgramBuilder
from .follower import EvaluationFunction, check_own, legal_probabilities
from .instance import add_realization_plan
from .sequence_form import SequenceForm

_EXACT = 1e-12
_FIXED = 1e-8


class StrategyPolicy(openspiel_policy.Policy):
    """An OpenSpiel policy from {information state: {action: probability}}, uniform elsewhere.

    Attributes:
      rows: Of both players, or of one; histories stand for information states where the game has none.
    """

    def __init__(self, game: pyspiel.Game, rows: Mapping[str, Mapping[int, float]]) -> None:
        """Initialize the policy, whose rows are distributions."""
        super().__init__(game, list(range(game.num_players())))
        self.rows = rows

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Return {action: probability} of all legal actions.

        Raises:
          ValueError: it is no state of the game where a player (`player_id`, if given) is to move.
        """
        checks.check_turn(state, player_id, self.game)
        legal = legal_actions(state)
        row = self.rows.get(infoset_key(state))
        if row is None:
            return dict.fromkeys(legal, 1.0 / len(legal))
        return dict.fromkeys(legal, 0.0) | dict(row)


@public
def equilibrium(game: Game, lexicographic: bool = True) -> StrategyPolicy:
    """Return an equilibrium of a two-player zero- or constant-sum game of perfect recall, see above.

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
    """Return a maximin realization plan: maximize v @ (1, 0, ...) with v(I) <= payoffs, by duality."""
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
                try:
                    solution = program.built().solve(presolve=False)
                except LinearProgramError:
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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class NodeValues:
    """An evaluation function as a table: a number for each history of a game.

    Attributes:
      form: The game's histories.
      player: Whose worth it is.
      values: float[histories], in the order of `form`, finite.
      odds: float[histories], the probability of the move that leads there, which values were backed up with.
    """

    _made_by = "equilibrium_values()"

    form: SequenceForm
    player: int
    values: npt.NDArray[np.float64]
    odds: npt.NDArray[np.float64]

    @property
    def game(self) -> pyspiel.Game:
        """The game whose histories these are."""
        return self.form.game

    def __repr__(self) -> str:
        return f"NodeValues(game={self.form.game}, player={self.player}, histories={len(self.values)})"

    def __call__(self, state: Any) -> float:
        """Return the value at a state.

        Raises:
          ValueError: the state is of another game.
        """
        return float(self.values[self.form.find(state)])


@public
def equilibrium_values(
    game: AnySumGame, player: checks.Player, policy: PolicyLike | None = None
) -> NodeValues:
    """Return each history's expected value to `player` if both play `policy` from there on (16).

    Args:
      game: two players, sequential, perfect recall.
      player: whose worth it is, 0 or 1.
      policy: for both players; by default `equilibrium(game)`.

    Raises:
      ValueError: the game is not as above, the player is not 0 or 1, or the policy gives no probabilities.
    """
    check_own(policy, game, "policy")
    ask = as_batch_policy(equilibrium(game) if policy is None else policy, "policy")
    form = SequenceForm.of(game)
    odds = np.ones(form.num_histories)
    for history in range(form.num_histories):
        children = list(form.children[history])
        if form.player[history] == CHANCE:
            odds[children] = form.chance[children] / form.chance[history]
        elif children:
            odds[children] = legal_probabilities(ask, form.states[history], "policy")
    leaves = np.where(form.player == TERMINAL, form.utility[:, player], 0.0)
    return NodeValues(form, player, _backed_up(form, leaves, odds), odds)


@public
def independent_noise(
    evaluation: NodeValues, gamma: checks.NonNegativeFloat, seed: checks.Seed
) -> NodeValues:
    """Add noise of standard deviation gamma to each history's value, independently, leaves included.

    Raises:
      ValueError: gamma is negative or no number, the evaluation function is no `NodeValues`, or the
        seed is not as `numpy.random.default_rng` takes it: an integer of at least 0, or a sequence of them.
    """
    noise = _noise(evaluation, gamma, seed)
    return dataclasses.replace(evaluation, values=evaluation.values + noise)


@public
def cumulative_noise(evaluation: NodeValues, gamma: checks.NonNegativeFloat, seed: checks.Seed) -> NodeValues:
    """Add noise of standard deviation gamma to each history but leaves, passed on to those before it (17).

    Raises:
      ValueError: as `independent_noise`.
    """
    noise = np.where(evaluation.form.player == TERMINAL, 0.0, _noise(evaluation, gamma, seed))
    passed_on = _backed_up(evaluation.form, noise, evaluation.odds)
    return dataclasses.replace(evaluation, values=evaluation.values + passed_on)


def evaluate_histories(form: SequenceForm, evaluation: EvaluationFunction) -> np.ndarray:
    """Return float[histories]: an evaluation function's values of all states.

    Raises:
      ValueError: a value is no finite number.
    """
    if isinstance(evaluation, NodeValues) and evaluation.form is form:
        values: Sequence[object] = evaluation.values.tolist()
    else:
        values = [evaluation(state) for state in form.states]
    return np.array(
        [
            checks.check_evaluation(value, state, "evaluation")
            for value, state in zip(values, form.states, strict=True)
        ]
    )


def _noise(evaluation: NodeValues, gamma: float, seed: int | Sequence[int]) -> npt.NDArray[np.float64]:
    """Return noise for each history, float[histories]."""
    return gamma * np.random.default_rng(seed).standard_normal(len(evaluation.values))


def _backed_up(form: SequenceForm, own: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Return each history's own number, plus the expected one of what follows it."""
    total = np.array(own, np.float64)
    for history in range(form.num_histories - 1, 0, -1):
        total[form.parent[history]] += odds[history] * total[history]
    return total
