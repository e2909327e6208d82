"""Bots and networks as policies.

    nash_conv("leduc_poker", PolicyBot(0, rng, policy))             # a bot plays the policy that it declares
    nash_conv("tic_tac_toe", pyspiel.MCTSBot(...))                  # or the move that it makes when asked
    nash_conv("leduc_poker", NetworkPolicy(network))                # all information states in one batch

A bot that declares its policy is that policy; any other is the move that it makes, asked at a copy of the
state, on a copy of the bot where there can be one, and restarted there if it can be: it goes on as before.
Bots in Python cannot be copied: their streams of random numbers are set back. Those in C++ that cannot be
copied, such as `pyspiel.MCTSBot`, have drawn some.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel

from precomp_games._support.checks import ArgumentError, at_history, public

Network = Callable[[npt.NDArray[np.float32], npt.NDArray[np.bool_]], Any]
"""A function of float32[n, d], tensors of n information states, and bool[n, actions], the legal actions."""


@dataclasses.dataclass(frozen=True)
class BotRow:
    """A bot's policy at a state, as {action: probability}."""

    bot: Any

    def __call__(self, state: Any) -> dict[int, float]:
        """Ask the bot at a state.

        Raises:
          ValueError: the bot is the other player's.
        """
        owner = self.bot.player_id() if hasattr(self.bot, "player_id") else None
        if owner not in (None, state.current_player()):
            wanted = f"a bot of player {state.current_player()}, who moves {at_history(state)}"
            raise ArgumentError(f"expected {wanted}, got one of player {owner}; give a pair of bots")
        bot, state = self.bot.clone() if self.bot.is_clonable() else self.bot, state.clone()
        kept = [(one, _stream_of(one)) for one in _streams(bot)]
        try:
            return _row(bot, state)
        finally:
            for one, was in kept:
                _set_back(one, was)


def _row(bot: Any, state: Any) -> dict[int, float]:
    if _has(bot, "restart_at"):
        bot.restart_at(state)
    gives_policy = bot.provides_policy()
    if gives_policy if _is_compiled(bot) else _has(bot, "step_with_policy"):
        policy, action = bot.step_with_policy(state)
        if (
            not policy and len(legal := state.legal_actions()) == 1
        ):  # as of OpenSpiel's PolicyBot, if that is 0
            action = legal[0]
        return dict(policy) if policy else {int(action): 1.0}
    return dict(bot.get_policy(state)) if gives_policy else {int(bot.step(state)): 1.0}


def _is_compiled(bot: Any) -> bool:
    return type(bot).__module__ == str(pyspiel.__name__)


def _has(bot: Any, method: str) -> bool:
    """Return whether a bot overrides an optional method; trying it would make OpenSpiel print an error."""
    return _is_compiled(bot) or getattr(type(bot), method) is not getattr(pyspiel.Bot, method)


def _streams(bot: Any) -> Iterator[Any]:
    """Yield numpy's generators that a bot in Python draws from, directly or by an object that it holds."""
    held = list(getattr(bot, "__dict__", {}).values())
    held += [inner for one in held for inner in getattr(one, "__dict__", {}).values()]
    yield from (one for one in held if isinstance(one, np.random.RandomState | np.random.Generator))


def _stream_of(stream: Any) -> Any:
    return stream.get_state() if isinstance(stream, np.random.RandomState) else stream.bit_generator.state


def _set_back(stream: Any, was: Any) -> None:
    if isinstance(stream, np.random.RandomState):
        stream.set_state(was)
    else:
        stream.bit_generator.state = was


@public
@dataclasses.dataclass(frozen=True)
class NetworkPolicy:
    """A network's policy, for all players.

    Attributes:
      network: A function of two arrays: float32[n, d], OpenSpiel's tensors of n information states (of
        observations, where a game has no others), and bool[n, actions], which actions are legal. It answers
        probabilities, [n, actions]: numpy's or torch's. What it gives to illegal actions is left out.
    """

    network: Network

    def action_probabilities_batch(self, states: Sequence[Any]) -> Any:
        """Return the network's answers for several states.

        Raises:
          ValueError: the game has no tensors.
        """
        kind = states[0].get_game().get_type()
        name = "information_state_tensor"
        if not kind.provides_information_state_tensor:
            name = "observation_tensor"
            if not kind.provides_observation_tensor:
                raise ArgumentError(f"expected a game with tensors for a network, got {kind.short_name}")
        tensors = np.array([getattr(state, name)(state.current_player()) for state in states], np.float32)
        masks = np.array([state.legal_actions_mask() for state in states], bool)
        return self.network(tensors, masks)
