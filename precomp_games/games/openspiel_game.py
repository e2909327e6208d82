"""What the library's own games have in common: what OpenSpiel asks about a game, and what players see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyspiel

from precomp_games.checks import shown

__all__ = ["OpenObserver", "game_type", "observation_type"]


def game_type(
    name: str,
    long_name: str,
    parameters: Mapping[str, Any],
    *,
    chance: bool = True,
    perfect: bool = True,
    zero_sum: bool = False,
    tensors: bool = False,
) -> pyspiel.GameType:
    """The type of a sequential game for two players who are paid at its end, and who are told by strings.

    Args:
      name: what `pyspiel.load_game` knows it by.
      long_name: for people.
      parameters: defaults by name.
      chance: there may be chance nodes, explicit ones.
      perfect: information is perfect.
      zero_sum: utilities add up to 0, and not to another constant.
      tensors: observations and information states are tensors, too.
    """
    kind = pyspiel.GameType
    return kind(
        short_name=name,
        long_name=long_name,
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=kind.ChanceMode.EXPLICIT_STOCHASTIC if chance else kind.ChanceMode.DETERMINISTIC,
        information=(
            kind.Information.PERFECT_INFORMATION if perfect else kind.Information.IMPERFECT_INFORMATION
        ),
        utility=kind.Utility.ZERO_SUM if zero_sum else kind.Utility.CONSTANT_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=2,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=tensors,
        provides_observation_string=True,
        provides_observation_tensor=tensors,
        parameter_specification=dict(parameters),
    )


def observation_type(iig_obs_type: Any, params: Any, game: pyspiel.Game) -> pyspiel.IIGObservationType | None:
    """The type that a game's `make_py_observer` was asked for, None where none was named.

    Raises:
      ValueError: there are parameters, which observations of the library's games do not have.
    """
    # OpenSpiel's C++ side passes its parameters first when it has no observation type.
    if not isinstance(iig_obs_type, pyspiel.IIGObservationType):
        iig_obs_type, params = None, iig_obs_type or params
    if params:
        raise ValueError(
            f"{type(game).__name__}.make_py_observer(): expected no observation parameters, got "
            f"{shown(params)}"
        )
    return iig_obs_type


class OpenObserver:
    """The observer of a game of perfect information: strings only, of what both players see, everything."""

    def __init__(self, iig_obs_type: Any, moves: Callable[[Any], str]) -> None:
        """Args are the observation's type, None for all, and how a state's moves so far are written."""
        self.tensor = None
        self.dict: dict[str, Any] = {}
        self._public = iig_obs_type is None or iig_obs_type.public_info
        self._moves = moves if iig_obs_type is not None and iig_obs_type.perfect_recall else None

    def set_from(self, state: Any, player: int) -> None:
        """Does nothing: there is no tensor."""

    def string_from(self, state: Any, player: int) -> str:
        """The moves so far, the state, or nothing (there is no private information)."""
        del player
        if not self._public:
            return ""
        return str(state) if self._moves is None else self._moves(state)
