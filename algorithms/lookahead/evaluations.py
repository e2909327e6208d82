"""Node evaluations for players with limited lookahead: values under an equilibrium, and noise on them.

    h = equilibrium_values(game, player=1)              # (16): expected values under `equilibrium(game)`
    noisy = independent_noise(h, gamma=0.5, seed=3)     # h + mu, leaves included
    noisy = cumulative_noise(h, gamma=0.5, seed=3)      # (17): passed on to what comes before; none on leaves

mu is drawn at each history from N(0, gamma^2), and gamma times the same standard draw for the same seed, so
that curves over gamma are smooth. An evaluation is any callable on states; these are tables.

**Which equilibrium.** Values off the path, and with them what can be exploited, depend on it. `equilibrium`
takes the one that is lexicographically least in the probabilities of all but each information set's first
action, last actions first, information sets in the order of the game: of all optimal strategies, the one that
bets least. In Kuhn poker that is alpha = 0. Where a player's own plan does not come, it is uniform. It is
solver-independent as far as linear programs are solved exactly; probabilities are rounded to fractions where
that leaves the strategies optimal to 1e-9 (in Kuhn and KJ poker, to 1e-12).

Source: `limited_lookahead`, equations (16) and (17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from precomp_games.algorithms.lookahead.highs_program import Program
from precomp_games.algorithms.lookahead.instance import add_realization_rows
from precomp_games.algorithms.lookahead.sequence_form import CHANCE, TERMINAL, SequenceForm
from precomp_games.algorithms.lookahead.settings import Evaluation, check_row, check_value, is_number
from precomp_games.policies import PolicyLike, as_batch_policy

__all__ = [
    "NodeValues",
    "StrategyPolicy",
    "cumulative_noise",
    "equilibrium",
    "equilibrium_values",
    "evaluate_histories",
    "independent_noise",
]

_EXACT = 1e-12
_FIXED = 1e-8


class StrategyPolicy(openspiel_policy.Policy):
    """An OpenSpiel policy from {information state: {action: probability}}, uniform elsewhere."""

    def __init__(self, game: pyspiel.Game, rows: Mapping[str, Mapping[int, float]]) -> None:
        """Initialises the policy; rows of several players may stand together."""
        super().__init__(game, list(range(game.num_players())))
        self.rows = rows
        self._named = game.get_type().provides_information_state_string

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Returns {action: probability} of all legal actions."""
        del player_id
        legal = state.legal_actions()
        row = self.rows.get(state.information_state_string() if self._named else state.history_str())
        if row is None:
            return dict.fromkeys(legal, 1.0 / len(legal))
        return dict.fromkeys(legal, 0.0) | dict(row)


class NodeValues:
    """An evaluation by table: a number for each history of a game.

    player: whose worth it is. values: float[histories], in the order of `SequenceForm`.
    odds: float[histories], the probability of the move that leads there, which values were backed up with.
    """

    def __init__(self, form: SequenceForm, player: int, values: np.ndarray, odds: np.ndarray) -> None:
        """Initialises the table."""
        self.form, self.player, self.values, self.odds = form, player, values, odds

    def __repr__(self) -> str:
        return f"NodeValues(game={self.form.game}, player={self.player}, histories={len(self.values)})"

    def __call__(self, state: Any) -> float:
        """The value at a state.

        Raises:
          ValueError: the state is of another game.
        """
        history = 0
        for action in state.history():
            history = self.form.child(history, action)
            if history < 0:
                raise ValueError(
                    f"NodeValues: expected a history of {self.form.game}, got {state.history_str()!r}"
                )
        return float(self.values[history])


def equilibrium(game: pyspiel.Game, lexicographic: bool = True) -> StrategyPolicy:
    """An equilibrium of a two-player zero- or constant-sum game of perfect recall, see above.

    Args:
      game: as above.
      lexicographic: False takes whichever the solver finds first, which is quicker on large games, and may
        change with the version of HiGHS.

    Raises:
      ValueError: the game is not as above. RuntimeError: HiGHS fails.
    """
    if not isinstance(game, pyspiel.Game) or game.get_type().utility not in (
        pyspiel.GameType.Utility.ZERO_SUM,
        pyspiel.GameType.Utility.CONSTANT_SUM,
    ):
        raise ValueError(f"equilibrium(): expected a zero-sum or constant-sum game, got {game!r}")
    form = SequenceForm.of(game)
    rows: dict[str, dict[int, float]] = {}
    for player in (0, 1):
        rows |= form.players[player].behaviour(_optimal_plan(form, player, lexicographic))
    return StrategyPolicy(game, rows)


def equilibrium_values(game: pyspiel.Game, player: int, policy: PolicyLike | None = None) -> NodeValues:
    """Each history's expected value to `player` if both play `policy` from there on (16).

    Args:
      game: two players, sequential, perfect recall.
      player: whose worth it is, 0 or 1.
      policy: for both players; by default `equilibrium(game)`.

    Raises:
      ValueError: player is not 0 or 1, or the policy gives no probabilities.
    """
    if player not in (0, 1) or isinstance(player, bool):
        raise ValueError(f"equilibrium_values(): expected player 0 or 1, got {player!r}")
    form = SequenceForm.of(game)
    ask = as_batch_policy(equilibrium(game) if policy is None else policy, "policy", "equilibrium_values()")
    odds = np.ones(form.num_histories)
    for history in range(form.num_histories):
        children = form.children[history]
        if form.player[history] == CHANCE:
            odds[list(children)] = form.chance[list(children)] / form.chance[history]
        elif children:
            state = form.states[history]
            odds[list(children)] = check_row(ask([state])[0], state, "equilibrium_values()")
    leaves = np.where(form.player == TERMINAL, form.utility[:, player], 0.0)
    return NodeValues(form, player, _backed_up(form, leaves, odds), odds)


def independent_noise(evaluation: NodeValues, gamma: float, seed: int | Sequence[int]) -> NodeValues:
    """Noise of standard deviation gamma on each history's value, independently, leaves included.

    Raises:
      ValueError: gamma is negative or no number, or the evaluation is no `NodeValues`.
    """
    _check_noise(evaluation, gamma, "independent_noise()")
    noise = np.random.default_rng(seed).standard_normal(len(evaluation.values))
    return NodeValues(evaluation.form, evaluation.player, evaluation.values + gamma * noise, evaluation.odds)


def cumulative_noise(evaluation: NodeValues, gamma: float, seed: int | Sequence[int]) -> NodeValues:
    """Noise of standard deviation gamma on each history but leaves, passed on to those before it (17).

    Raises:
      ValueError: gamma is negative or no number, or the evaluation is no `NodeValues`.
    """
    _check_noise(evaluation, gamma, "cumulative_noise()")
    form = evaluation.form
    noise = gamma * np.random.default_rng(seed).standard_normal(len(evaluation.values))
    noise[form.player == TERMINAL] = 0.0
    total = evaluation.values + _backed_up(form, noise, evaluation.odds)
    return NodeValues(form, evaluation.player, total, evaluation.odds)


def evaluate_histories(form: SequenceForm, evaluation: Evaluation, caller: str) -> np.ndarray:
    """float[histories]: an evaluation, asked of every state.

    Raises:
      ValueError: a value is no finite number.
    """
    if isinstance(evaluation, NodeValues) and evaluation.form is form:
        values: Sequence[object] = evaluation.values.tolist()
    else:
        values = [evaluation(state) for state in form.states]
    return np.array(
        [check_value(value, state, caller) for value, state in zip(values, form.states, strict=True)]
    )


def _check_noise(evaluation: NodeValues, gamma: float, caller: str) -> None:
    if not isinstance(evaluation, NodeValues):
        raise ValueError(f"{caller}: expected NodeValues, as of equilibrium_values(), got {evaluation!r}")
    if not is_number(gamma) or gamma < 0.0:
        raise ValueError(f"{caller}: expected gamma to be a number of at least 0, got {gamma!r}")


def _backed_up(form: SequenceForm, own: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Each history's own number, plus the expected one of what follows it."""
    total = np.array(own, np.float64)
    for history in range(form.num_histories - 1, 0, -1):
        total[form.parent[history]] += odds[history] * total[history]
    return total


def _optimal_plan(form: SequenceForm, player: int, lexicographic: bool) -> np.ndarray:
    """A maximin realization plan: maximise v @ (1, 0, ...) with v(I) <= payoffs, by duality."""
    own, other = form.players[player], form.players[1 - player]
    program = Program()
    program.columns(own.num_sequences)
    add_realization_rows(program, own)
    worth = program.columns(other.num_infosets, -math.inf, math.inf)
    payoff: list[list[tuple[int, float]]] = [[] for _ in range(other.num_sequences)]
    for leaf in form.leaves.tolist():
        q, reply = int(form.sequence[leaf, player]), int(form.sequence[leaf, 1 - player])
        payoff[reply].append((q, float(form.chance[leaf] * form.utility[leaf, player])))
    for infoset, before in enumerate(other.parent.tolist()):
        payoff[before].append((worth + infoset, 1.0))
    for reply in range(1, other.num_sequences):
        own_set = worth + int(other.infoset[reply])
        program.row([(own_set, 1.0), *((column, -value) for column, value in payoff[reply])], high=0.0)
    for column, value in payoff[0]:
        program.add_cost(column, value)
    solution = program.solve()
    if solution.x is None:
        raise RuntimeError("equilibrium(): HiGHS found no optimum")
    plan, value = solution.x[: own.num_sequences], solution.objective
    if lexicographic:
        program.row(payoff[0], low=value - _FIXED)
        for infoset in range(own.num_infosets):
            for sequence in reversed(own.sequences(infoset)[1:]):
                program.set_costs({sequence: -1.0})
                solution = program.solve()
                if solution.x is None:
                    continue  # the slack of what is fixed so far is used up: what was found stays
                plan = solution.x[: own.num_sequences]
                program.set_bounds(sequence, 0.0, min(1.0, max(0.0, float(plan[sequence])) + _FIXED))
    plan = np.where(plan < 1e-8, 0.0, plan)
    exact = own.plan(
        {
            key: {a: float(Fraction(p).limit_denominator(2_000)) for a, p in row.items()}
            for key, row in own.behaviour(plan).items()
        }
    )
    sums = [abs(exact[list(own.sequences(i))].sum() - exact[own.parent[i]]) for i in range(own.num_infosets)]
    if max(sums, default=0.0) <= _EXACT and _guaranteed(form, player, exact) >= value - 1e-9:
        plan = exact
    return plan


def _guaranteed(form: SequenceForm, player: int, plan: np.ndarray) -> float:
    """The least that a realization plan gets."""
    other = form.players[1 - player]
    weights = np.zeros(other.num_sequences)
    leaves = form.leaves
    value = form.chance[leaves] * form.utility[leaves, player] * plan[form.sequence[leaves, player]]
    np.add.at(weights, form.sequence[leaves, 1 - player], -value)
    return -float(other.extremes(weights))
