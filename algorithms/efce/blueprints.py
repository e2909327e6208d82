"""Blueprints: correlation plans to start from, asked for entry by entry and never stored in full.

`ProductBlueprint` lets the players move independently, xi[s, tau] = x[s] y[tau], each by a behavioral
strategy: uniform, jittered around uniform, or any OpenSpiel policy. A `CorrelationPlan`, such as an
equilibrium or an earlier refinement, is a blueprint of what it holds.

A strategy is a function of the information state's string, so the same blueprint serves the whole game, its
trunk, or one subgame. Jitter is drawn by hashing (seed, player, string): it does not depend on what part of
the game is held, nor on the utilities.

Source: `efce_resolving`, Definition 7 and Experiments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from open_spiel.python.policy import TabularPolicy

from precomp_games._support.validation import (
    ArgumentError,
    Check,
    Ge,
    Le,
    check_pair,
    public,
    real_array,
    shown,
)

from .sequence_game import SequenceGame

Behavior = Callable[[int, str, list[int]], Any]
"""(player, information state string, actions) -> probabilities, in the order of the actions or by action."""


class ProductBlueprint:
    """Two players who move independently.

    Args:
      behavior: what each does at its information sets.
      name: for messages.
    """

    def __init__(self, behavior: Behavior, name: str = "blueprint") -> None:
        self._behavior, self.name = behavior, name
        self._last: tuple[SequenceGame, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] | None = None

    def __repr__(self) -> str:
        return self.name

    def entries(self, plan_game: SequenceGame, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """As `correlation_plans.Blueprint`.

        Raises:
          ValueError: as `realization_plans`.
        """
        x, y = self.realization_plans(plan_game)
        entries: npt.NDArray[np.float64] = x[first] * y[second]
        return entries

    def realization_plans(
        self, game: SequenceGame
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(x, y): float64[S] each, the probability that a player's own choices are those of a sequence.

        Raises:
          ValueError: what a player does somewhere is no distribution over its actions.
        """
        if self._last is None or self._last[0] is not game:
            self._last = (game, (self._plan(game, 0), self._plan(game, 1)))
        return self._last[1]

    def _plan(self, game: SequenceGame, player: int) -> npt.NDArray[np.float64]:
        form = game.players[player]
        infosets = range(1, form.num_infosets)
        rows = [self._checked(player, form.keys[k], form.actions(k)) for k in infosets]
        return form.realized(np.concatenate([np.ones(1), *rows]))

    def _checked(self, player: int, key: str, actions: list[int]) -> npt.NDArray[np.float64]:
        row = self._behavior(player, key, actions)
        if isinstance(row, Mapping) and set(row) <= set(actions):
            row = [row.get(action, 0.0) for action in actions]
        p = real_array(row)
        # Written so that NaN fails, and short: it runs once for each information set.
        if p is None or p.shape != (len(actions),) or not p.min() >= 0.0 or not abs(p.sum() - 1.0) < 1e-6:
            raise ValueError(
                f"{self.name}: expected a strategy, that is, a distribution over {actions} at "
                f"player {player}'s {key!r}, got {shown(row)}"
            )
        normalized: npt.NDArray[np.float64] = p / p.sum()
        return normalized


@public
def uniform_blueprint() -> ProductBlueprint:
    """Both players choose among their actions with equal probabilities."""
    return ProductBlueprint(lambda player, key, actions: np.full(len(actions), 1.0 / len(actions)))


@public
def jittered_blueprint(seed: int, width: Annotated[float, Ge(0.0), Le(1.0)] = 0.5) -> ProductBlueprint:
    """Action a has a probability in proportion to 1 + width * e(a), e uniform in [-1, 1].

    Raises:
      ValueError: the width is not between 0 and 1, or the seed no integer.
    """

    def behavior(player: int, key: str, actions: list[int]) -> np.ndarray:
        weights = np.empty(len(actions))
        for k, action in enumerate(actions):
            text = f"{seed}|{player}|{action}|{key}".encode()
            draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2.0**64
            weights[k] = 1.0 + width * (2.0 * draw - 1.0)
        total = weights.sum()
        return weights / total if total > 0.0 else np.full(len(actions), 1.0 / len(actions))

    return ProductBlueprint(behavior, f"jittered_blueprint(seed={seed}, width={width:g})")


@public
def policy_blueprint(policies: Annotated[Any, Check(check_pair)]) -> ProductBlueprint:
    """The blueprint of one OpenSpiel policy for both players, or of a pair of them.

    They are asked by information state string (`TabularPolicy`, `pyspiel.TabularPolicy`, ...).

    Raises:
      ValueError: a policy cannot be asked so.
    """
    ask = [_by_string(policy) for policy in policies]
    return ProductBlueprint(lambda player, key, actions: ask[player](key))


def _by_string(policy: Any) -> Callable[[str], Any]:
    if isinstance(policy, TabularPolicy):

        def ask(key: str) -> Any:
            known = key in policy.state_lookup
            return {a: p for a, p in enumerate(policy.policy_for_key(key)) if p > 0.0} if known else None

        return ask
    # pyspiel.TabularPolicy and other C++ ones.
    if hasattr(policy, "get_state_policy") and not isinstance(policy, type):
        return lambda key: dict(policy.get_state_policy(key))
    raise ArgumentError(
        "expected policies that answer for information state strings (TabularPolicy), "
        f"got {shown(policy)}; open_spiel.python.policy.tabular_policy_from_callable makes one"
    )
