"""Evaluation functions for players with limited lookahead: values under an equilibrium, and noise on them.

    h = equilibrium_values(game, player=1)              # (16): expected values under `equilibrium(game)`
    noisy = independent_noise(h, gamma=0.5, seed=3)     # h + mu, leaves included
    noisy = cumulative_noise(h, gamma=0.5, seed=3)      # (17): passed on to what comes before; none on leaves

mu is drawn at each history from N(0, gamma^2), and gamma times the same standard draw for the same seed, so
that curves over gamma are smooth. An evaluation function is any callable on states; these are tables.

Source: `limited_lookahead`, equations (16) and (17).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.arguments import GeneralSumGame, NonNegativeFloat, Player, Seed, public
from precomp_games._support.checks import check_evaluation
from precomp_games.policies.rows import PolicyLike, as_batch_policy
from precomp_games.tree.facts import CHANCE, TERMINAL

from .equilibrium import equilibrium
from .follower import EvaluationFunction, check_own, legal_probabilities
from .sequence_form import SequenceForm

__all__ = [
    "NodeValues",
    "cumulative_noise",
    "equilibrium_values",
    "evaluate_histories",
    "independent_noise",
]


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
        """The value at a state.

        Raises:
          ValueError: the state is of another game.
        """
        return float(self.values[self.form.find(state)])


@public
def equilibrium_values(game: GeneralSumGame, player: Player, policy: PolicyLike | None = None) -> NodeValues:
    """Each history's expected value to `player` if both play `policy` from there on (16).

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
def independent_noise(evaluation: NodeValues, gamma: NonNegativeFloat, seed: Seed) -> NodeValues:
    """Noise of standard deviation gamma on each history's value, independently, leaves included.

    Raises:
      ValueError: gamma is negative or no number, the evaluation function is no `NodeValues`, or the
        seed is not as `numpy.random.default_rng` takes it: an integer of at least 0, or a sequence of them.
    """
    noise = _noise(evaluation, gamma, seed)
    return dataclasses.replace(evaluation, values=evaluation.values + noise)


@public
def cumulative_noise(evaluation: NodeValues, gamma: NonNegativeFloat, seed: Seed) -> NodeValues:
    """Noise of standard deviation gamma on each history but leaves, passed on to those before it (17).

    Raises:
      ValueError: as `independent_noise`.
    """
    noise = np.where(evaluation.form.player == TERMINAL, 0.0, _noise(evaluation, gamma, seed))
    passed_on = _backed_up(evaluation.form, noise, evaluation.odds)
    return dataclasses.replace(evaluation, values=evaluation.values + passed_on)


def evaluate_histories(form: SequenceForm, evaluation: EvaluationFunction) -> np.ndarray:
    """float[histories]: an evaluation function, asked of every state.

    Raises:
      ValueError: a value is no finite number.
    """
    if isinstance(evaluation, NodeValues) and evaluation.form is form:
        values: Sequence[object] = evaluation.values.tolist()
    else:
        values = [evaluation(state) for state in form.states]
    return np.array(
        [
            check_evaluation(value, state, "evaluation")
            for value, state in zip(values, form.states, strict=True)
        ]
    )


def _noise(evaluation: NodeValues, gamma: float, seed: int | Sequence[int]) -> npt.NDArray[np.float64]:
    """float[histories]."""
    return gamma * np.random.default_rng(seed).standard_normal(len(evaluation.values))


def _backed_up(form: SequenceForm, own: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Each history's own number, plus the expected one of what follows it."""
    total = np.array(own, np.float64)
    for history in range(form.num_histories - 1, 0, -1):
        total[form.parent[history]] += odds[history] * total[history]
    return total
