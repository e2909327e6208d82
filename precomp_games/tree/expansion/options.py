"""How a game is to be expanded, checked: what `HistoryTree.from_game` was given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Annotated, Any

import numpy as np
import pyspiel

from precomp_games._support.arguments import one_of
from precomp_games._support.checks import ArgumentError, check_pair, check_penalties, shown
from precomp_games.policies.leaf_values import EvaluatedValues, LeafValues, RolloutValues, as_leaf_values
from precomp_games.policies.mixtures import MixturePolicy, drawn_once, refuse_mixture
from precomp_games.policies.rows import BatchPolicy, Menu, as_batch_policies, shared_key
from precomp_games.tree.facts import NEVER

PolicyPair = tuple[BatchPolicy | None, BatchPolicy | None]
"""One policy for each player; None for a player who is never asked. As sigma_pre, a menu is one as well."""

STOP_VALUES = ("backup", "evaluate")
"""What stopping may be worth; see `HistoryTree.from_game`."""
StopValue = Annotated[str, one_of(STOP_VALUES)]
"""One of `STOP_VALUES`."""

TRUNCATIONS = ("none", "reach", "values")
"""What may be left out of a tree; see `HistoryTree.from_game`."""
Truncation = Annotated[str, one_of(TRUNCATIONS)]
"""One of `TRUNCATIONS`."""

PRICES = ("infosets", "positions")
"""What a penalty may be paid for; see `HistoryTree.from_game`."""
Price = Annotated[str, one_of(PRICES)]
"""One of `PRICES`."""


@dataclasses.dataclass(frozen=True)
class ExpansionOptions:
    """How to expand; see `HistoryTree.from_game` for the meaning of each.

    `mixture` is a player whose sigma is drawn once per game; then each component may have a leaf value.
    """

    sigma_pre: PolicyPair
    sigma: PolicyPair
    penalties: tuple[float, float]
    weight: Callable[[Any], float] | None
    utility_range: float
    leaf_values: tuple[LeafValues, ...]
    mixture: tuple[int, MixturePolicy] | None
    stop_value: str
    truncate: str
    price: str
    position_key: Callable[[Any], Hashable] | None
    min_probability: float
    max_histories: int

    @classmethod
    def checked(
        cls,
        game: pyspiel.Game,
        *,
        sigma_pre: Any,
        sigma: Any,
        penalties: Any,
        leaf_value: Any,
        stop_value: str,
        price: str,
        position_key: Callable[[Any], Hashable] | None,
        utility_range: float | None,
        **more: Any,
    ) -> ExpansionOptions:
        """Checks what the signature of `HistoryTree.from_game` leaves open; `more` is kept as it is.

        Raises:
          ValueError: an argument is not as documented there.
        """
        penalty = check_penalties(penalties)
        if stop_value == "evaluate" and np.isfinite(penalty).all():
            raise ArgumentError(
                'expected one player with an infinite penalty for stop_value="evaluate" '
                f"(against a fixed opponent), got penalties {penalty}"
            )
        shared = shared_key(position_key, sigma)
        if price == "positions":
            if shared is not position_key:
                raise ArgumentError(
                    'expected price="infosets" with a policy that depends on how a position came about, got '
                    f"{price!r}"
                )
            _check_positions(game, penalty, position_key)
        if utility_range is None:  # 0 where all payoffs are equal, and nothing is worth memorizing
            utility_range = game.max_utility() - game.min_utility()
        mixture = _mixture(sigma_pre, sigma, penalty)
        return cls(
            sigma_pre=as_batch_policies(sigma_pre, "sigma_pre", menus=True),
            sigma=as_batch_policies(sigma, "sigma"),
            penalties=penalty,
            utility_range=utility_range,
            leaf_values=_leaf_values(leaf_value, mixture),
            mixture=mixture,
            stop_value=stop_value,
            price=price,
            position_key=None if shared is None else hashable(shared),
            **more,
        )

    @classmethod
    def of_game(cls, game: pyspiel.Game, *, max_histories: int) -> ExpansionOptions:
        """Those of `HistoryTree.of_game`: both players choose any action, at no price, and nothing is cut."""
        actions = as_batch_policies(Menu.of_actions(), "sigma_pre", menus=True)
        return cls(
            sigma_pre=actions,
            sigma=(None, None),
            penalties=(0.0, 0.0),
            weight=None,
            utility_range=game.max_utility() - game.min_utility(),
            leaf_values=_leaf_values("exact", None),
            mixture=None,
            stop_value=NEVER,
            truncate="none",
            price="infosets",
            position_key=None,
            min_probability=0.0,
            max_histories=max_histories,
        )

    @property
    def evaluate_stops(self) -> bool:
        """Whether a stop is worth what an evaluation says, and nobody plays on from it."""
        return self.stop_value == "evaluate"

    def way_out(self) -> str:
        """What may be changed about a tree of too many histories."""
        if self.stop_value == NEVER:
            return "expand it with HistoryTree.of_game(game, max_histories=...)"
        return "raise the penalties, or max_histories"

    def advice(self) -> str:
        """What may be changed about a tree that is too large, "raise the penalties, "; see `MemoryMeter`."""
        if self.stop_value == NEVER:
            return ""
        changes = ["raise the penalties"]
        if self.position_key is None:
            changes.append("give a position_key")
        if any(values.deferred for values in self.leaf_values):
            changes.append("give an evaluation function as leaf_value")
        return "".join(f"{change}, " for change in changes) + "or "


def _mixture(sigma_pre: Any, sigma: Any, penalties: tuple[float, float]) -> tuple[int, MixturePolicy] | None:
    """The player whose sigma is a mixture that is drawn once per game, and the mixture.

    Raises:
      ValueError: it may memorize, or there are two of them.
    """
    policies = check_pair(sigma, "sigma")
    for i, (pre, played) in enumerate(zip(check_pair(sigma_pre, "sigma_pre"), policies, strict=True)):
        if np.isfinite(penalties[i]):
            refuse_mixture(pre, f"sigma_pre[{i}]")
            refuse_mixture(played, f"sigma[{i}]")
    drawn = [(i, played) for i, played in enumerate(policies) if drawn_once(played)]
    if len(drawn) > 1:
        raise ArgumentError(
            "expected at most one player whose sigma is drawn once per game, got mixtures for both"
        )
    return drawn[0] if drawn else None


def _leaf_values(leaf_value: Any, mixture: tuple[int, MixturePolicy] | None) -> tuple[LeafValues, ...]:
    """One leaf value, or one for each component of a mixture, on whom it depends what play is worth."""
    count = 1 if mixture is None else len(mixture[1].weights)
    if isinstance(leaf_value, list | tuple) and mixture is not None:
        if len(leaf_value) != count:
            raise ArgumentError(
                f"expected one leaf_value, or one for each of {count} components of the mixture, "
                f"got {shown(leaf_value)}"
            )
        return tuple(as_leaf_values(each) for each in leaf_value)
    one = as_leaf_values(leaf_value)
    if isinstance(one, EvaluatedValues):  # a function of the state alone
        return (one,)
    if isinstance(one, RolloutValues) and one.games is None:
        # All estimates of all components shall be right at once.
        one = dataclasses.replace(one, delta=one.delta / count)
    return (one,) * count


def _check_positions(game: pyspiel.Game, penalties: tuple[float, float], position_key: Any) -> None:
    """Holds to what a price per position needs.

    Raises:
      ValueError: the game has imperfect information, both players prepare, or positions have no key.
    """
    if game.get_type().information != pyspiel.GameType.Information.PERFECT_INFORMATION:
        raise ArgumentError(
            f'expected a game of perfect information for price="positions", got {game}; elsewhere, '
            'expand with truncate="none" and give the solvers keys of information states'
        )
    if np.isfinite(penalties).all() or position_key is None:
        raise ArgumentError(
            'expected price="positions" with a position_key and with one player whose penalty is '
            f"infinite, got penalties {penalties} and position_key={position_key!r}"
        )


def hashable(position_key: Callable[[Any], Hashable]) -> Callable[[Any], Hashable]:
    """The same function, which says so where its answer cannot be looked up."""

    def key(state: Any) -> Hashable:
        answer = position_key(state)
        try:
            hash(answer)
        except TypeError:
            raise ArgumentError(
                "expected position_key to give something hashable, such as a string "
                f"or a tuple, got {shown(answer)} at history {state.history_str()!r}"
            ) from None
        return answer

    return key
