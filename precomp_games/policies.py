"""Policies as the library asks them: many states at once, checked, with tiny probabilities cut off.

A policy is an `open_spiel.python.policy.Policy`, or any callable `state -> {action: probability}`. One
that can answer many states together (an engine pool, a neural network) has a method
`action_probabilities_batch(states) -> [{action: probability}, ...]`; the others are asked state by state.

Rows of a whole batch are kept as flat arrays (`PolicyRows`), because that is what the expansion of a
history tree multiplies with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

__all__ = [
    "BatchPolicy",
    "PolicyLike",
    "PolicyRows",
    "PrecomputationPolicy",
    "as_batch_policy",
    "chance_rows",
    "policy_rows",
]

PolicyLike = Any
"""An OpenSpiel `Policy`, an object with `action_probabilities_batch`, or `state -> {action: probability}`."""

BatchPolicy = Callable[[Sequence[Any]], Sequence[Mapping[int, float]]]
"""What every policy is turned into: `states -> one {action: probability} per state`."""

_SUM_TOLERANCE = 1e-6


class PolicyRows(NamedTuple):
    """Action distributions of n states in compressed rows: state k has entries `start[k]:start[k + 1]`.

    start: int64[n + 1]. action: int64[m], increasing within a row. probability: float64[m], positive,
    summing to 1 in each row.
    """

    start: np.ndarray
    action: np.ndarray
    probability: np.ndarray


def as_batch_policy(policy: PolicyLike, name: str = "policy") -> BatchPolicy:
    """Returns `states -> rows` for any of the accepted kinds of policy.

    Raises:
      ValueError: `policy` is none of them; `name` says which argument it was.
    """
    if hasattr(policy, "action_probabilities_batch"):
        batch: BatchPolicy = policy.action_probabilities_batch
        return batch
    if hasattr(policy, "action_probabilities"):
        ask = policy.action_probabilities
    elif callable(policy):
        ask = policy
    else:
        raise ValueError(
            f"as_batch_policy(): expected {name} to be an OpenSpiel Policy, an object with "
            "action_probabilities_batch(states), or a function from a state to "
            f"{{action: probability}}, got {policy!r}"
        )
    return lambda states: [ask(state) for state in states]


def policy_rows(
    policy: BatchPolicy,
    states: Sequence[Any],
    *,
    name: str = "policy",
    min_probability: float = 0.0,
) -> PolicyRows:
    """Asks `policy` about `states` and checks the answers.

    Args:
      policy: see `as_batch_policy`.
      states: decision states, distinct.
      name: how error messages call the policy.
      min_probability: probabilities below this are set to zero and the rest renormalised.

    Raises:
      ValueError: a row is missing, names an illegal action, has a negative or non-finite probability,
        or does not sum to 1 (within 1e-6).
    """
    answers = policy(states)
    if len(answers) != len(states):
        raise ValueError(
            f"policy_rows(): expected {name} to answer {len(states)} states, got {len(answers)} rows"
        )
    lengths: list[int] = []
    actions: list[int] = []
    probabilities: list[float] = []
    for state, answer in zip(states, answers, strict=True):
        row = sorted(answer.items()) if len(answer) > 1 else list(answer.items())
        # The common case is decided by two comparisons; only a suspicious row is looked into.
        total = sum(answer.values())
        if not abs(total - 1.0) <= _SUM_TOLERANCE or not all(p >= 0.0 for p in answer.values()):
            _reject(state, answer, name)
        if not set(answer).issubset(state.legal_actions()):
            legal = set(state.legal_actions())
            if any(p > 0.0 and action not in legal for action, p in row):
                _reject(state, answer, name)
        kept = [(action, p) for action, p in row if p > 0.0 and p >= min_probability]
        if not kept:  # min_probability above every entry: the likeliest action is what is left
            kept = [max(row, key=lambda entry: entry[1])]
        lengths.append(len(kept))
        for action, p in kept:
            actions.append(action)
            probabilities.append(p)
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    probability = np.array(probabilities, np.float64)
    if len(lengths):
        sums = np.add.reduceat(probability, start[:-1])
        probability /= np.repeat(sums, lengths)
    return PolicyRows(start, np.array(actions, np.int64), probability)


def chance_rows(states: Sequence[Any]) -> PolicyRows:
    """The chance outcomes of chance states, as rows like a policy's.

    Raises:
      ValueError: a state's chance probabilities do not sum to 1.
    """

    def outcomes(chance_states: Sequence[Any]) -> list[dict[int, float]]:
        return [dict(state.chance_outcomes()) for state in chance_states]

    return policy_rows(outcomes, states, name="chance")


def _reject(state: Any, answer: Mapping[int, float], name: str) -> None:
    """Raises the error that says what is wrong with one row."""
    legal = set(state.legal_actions())
    where = f"at history {state.history_str()!r}"
    for action, p in answer.items():
        if not p >= 0.0 or p > 1.0 + _SUM_TOLERANCE:
            raise ValueError(
                f"policy_rows(): expected {name} to give probabilities in [0, 1] {where}, "
                f"got {p!r} for action {action}"
            )
        if p > 0.0 and action not in legal:
            raise ValueError(
                f"policy_rows(): expected {name} to play legal actions {where}, "
                f"got action {action}, which is not one of {sorted(legal)}"
            )
    raise ValueError(
        f"policy_rows(): expected the probabilities of {name} to sum to 1 {where}, "
        f"got {sum(answer.values())!r}"
    )


class PrecomputationPolicy(openspiel_policy.Policy):
    """A precomputation strategy (Definition 1): the book where it reaches, sigma everywhere else.

    The book player's memorised states are looked up first; a state that is not among them, and every
    state of the other player, is answered by that player's sigma.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        lookup: Callable[[Any], dict[int, float] | None],
        sigma: Sequence[PolicyLike | None],
    ) -> None:
        """Initialises the policy.

        Args:
          game: the base game.
          player: whose book it is, 0 or 1.
          lookup: a state's memorised row, or None off the book.
          sigma: what each player computes during play; None where it is not known.
        """
        super().__init__(game, list(range(game.num_players())))
        self.player = player
        self._lookup = lookup
        self._sigma = [
            None if policy is None else as_batch_policy(policy, f"sigma[{i}]")
            for i, policy in enumerate(sigma)
        ]

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Returns {action: probability} at a decision state.

        Raises:
          ValueError: the state is off the book and the player's sigma is not known.
        """
        player = state.current_player() if player_id is None else player_id
        if player == self.player:
            row = self._lookup(state)
            if row is not None:
                return row
        sigma = self._sigma[player]
        if sigma is None:
            raise ValueError(
                "PrecomputationPolicy.action_probabilities(): expected a state on the book of player "
                f"{self.player}, got {state.history_str()!r}; give policy(sigma=...) what player "
                f"{player} computes during play"
            )
        return dict(sigma([state])[0])
