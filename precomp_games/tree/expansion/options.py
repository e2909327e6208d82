"""Options of an expansion, checked: the arguments of `HistoryTree.from_game`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Annotated, Any

import numpy as np
import pyspiel

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, at_history, shown
from precomp_games.policies.leaf_values import EvaluatedValues, LeafValues, RolloutValues, as_leaf_values
from precomp_games.policies.mixtures import MixturePolicy, drawn_once, refuse_mixture
from precomp_games.policies.rows import BatchPolicies, shared_key
from precomp_games.tree.facts import NEVER

StopValue = Annotated[str, checks.one_of(("backup", "evaluate"))]
"""Kinds of values of stopping; see `HistoryTree.from_game`."""

Truncation = Annotated[str, checks.one_of(("none", "reach", "values"))]
"""Kinds of pruning; see `HistoryTree.from_game`."""

Price = Annotated[str, checks.one_of(("infosets", "positions"))]
"""Units that a penalty is paid for; see `HistoryTree.from_game`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpansionOptions:
    """Options of an expansion, checked; see `HistoryTree.from_game` for the meaning of each.

    Policies of a player who is never asked are None. `mixture` is a player whose sigma is drawn once per
    game; then each component may have a leaf value.
    """

    sigma_pre: tuple[Any, Any]  # policies, or menus
    sigma: BatchPolicies
    penalties: tuple[float, float]
    utility_range: float
    leaf_values: tuple[LeafValues, ...]
    mixture: tuple[int, MixturePolicy] | None = None
    weight: Callable[[Any], float] | None = None
    stop_value: str
    truncate: str = "none"
    price: str = "infosets"
    position_key: Callable[[Any], Hashable] | None = None
    min_probability: float = 0.0
    max_histories: int
    value_of: int | None = None  # see `HistoryTree`

    def advice(self) -> str:
        """Return changes that make a tree smaller, worded to precede the limit; see `MemoryMeter`."""
        if self.stop_value == NEVER:
            return ""
        changes = ["raise the penalties"]
        if self.position_key is None:
            changes.append("give a position_key")
        if any(values.deferred for values in self.leaf_values):
            changes.append("give an evaluation function as leaf_value")
        return "".join(f"{change}, " for change in changes) + "or "


def mixture_of(
    sigma_pre: Any, sigma: tuple[Any, Any], penalties: tuple[float, float]
) -> tuple[int, MixturePolicy] | None:
    """Return the player whose sigma is a mixture that is drawn once per game, and the mixture.

    Raises:
      ValueError: it may memorize, or there are two of them.
    """
    for i, (pre, played) in enumerate(zip(checks.check_pair(sigma_pre, "sigma_pre"), sigma, strict=True)):
        if np.isfinite(penalties[i]):
            refuse_mixture(pre, f"sigma_pre[{i}]")
            refuse_mixture(played, f"sigma[{i}]")
    drawn = [(i, played) for i, played in enumerate(sigma) if drawn_once(played)]
    if len(drawn) > 1:
        raise ArgumentError("expected at most one player whose sigma is drawn once per game, got both")
    return drawn[0] if drawn else None


def leaf_values_of(leaf_value: Any, mixture: tuple[int, MixturePolicy] | None) -> tuple[LeafValues, ...]:
    """Return the leaf value, one for each component of a mixture, since values depend on the component."""
    count = 1 if mixture is None else len(mixture[1].weights)
    if isinstance(leaf_value, list | tuple) and mixture is not None:
        if len(leaf_value) != count:
            each = f"one for each of {count} components of the mixture"
            raise ArgumentError(f"expected one leaf_value, or {each}, got {shown(leaf_value)}")
        return tuple(as_leaf_values(each) for each in leaf_value)
    one = as_leaf_values(leaf_value)
    if isinstance(one, EvaluatedValues):  # a function of the state alone
        return (one,)
    if isinstance(one, RolloutValues) and one.games is None:
        # All estimates of all components shall be right at once.
        one = dataclasses.replace(one, delta=one.delta / count)
    return (one,) * count


def key_of(
    game: pyspiel.Game, penalties: tuple[float, float], price: str, position_key: Any, sigma: Any
) -> Callable[[Any], Hashable] | None:
    """Return the key by which positions are shared: none where sigma depends on how they came about.

    Raises:
      ValueError: there is a price per position, and a policy depends on more than the position, the game has
        imperfect information, both players prepare, or positions have no key.
    """
    shared = shared_key(position_key, sigma)
    if price == "positions":
        if shared is not position_key:
            policy = "a policy that depends on how a position came about"
            raise ArgumentError(f'expected price="infosets" with {policy}, got {price!r}')
        if game.get_type().information != pyspiel.GameType.Information.PERFECT_INFORMATION:
            way = 'elsewhere, expand with truncate="none" and give the solvers keys of information states'
            raise ArgumentError(f'expected perfect information for price="positions", got {game}; {way}')
        if np.isfinite(penalties).all() or position_key is None:
            wanted = 'a position_key and one player with an infinite penalty for price="positions"'
            raise ArgumentError(f"expected {wanted}, got {penalties} and position_key={position_key!r}")
    return None if shared is None else hashable(shared)


def hashable(position_key: Callable[[Any], Hashable]) -> Callable[[Any], Hashable]:
    """Return the function with an error that names a state whose key cannot be hashed."""

    def key(state: Any) -> Hashable:
        answer = position_key(state)
        try:
            hash(answer)
        except TypeError:
            got = f"{shown(answer)} {at_history(state)}"
            raise ArgumentError(f"expected position_key to give something hashable, got {got}") from None
        return answer

    return key
