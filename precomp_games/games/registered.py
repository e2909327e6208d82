"""The library's games as OpenSpiel knows them: types, and classes that import a game when one is made.

Importing this registers all games of the library. It imports nothing else, so a program that makes no game
waits for none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pyspiel


class GameKind:
    """A game of the library: sequential, for two players who are paid at its end and observe strings.

    Attributes:
      type: as OpenSpiel has it.
      defaults: of its parameters, by name.
    """

    def __init__(
        self,
        module: str,
        game: str,
        name: str,
        long_name: str,
        defaults: dict[str, Any],
        *,
        chance: bool = True,
        hidden: bool = False,
        tensors: bool = False,
    ) -> None:
        """Register a game.

        Args:
          module: where its class is.
          game: the class.
          name: its name for `pyspiel.load_game`.
          long_name: the name shown to people.
          defaults: of its parameters, by name.
          chance: there may be chance nodes, explicit ones.
          hidden: information is imperfect, and utilities add up to 0, not to another constant.
          tensors: observations and information states are tensors, too.
        """
        kind = pyspiel.GameType
        information = kind.Information
        self.defaults = defaults
        self.type = kind(
            short_name=name,
            long_name=long_name,
            dynamics=kind.Dynamics.SEQUENTIAL,
            chance_mode=kind.ChanceMode.EXPLICIT_STOCHASTIC if chance else kind.ChanceMode.DETERMINISTIC,
            information=information.IMPERFECT_INFORMATION if hidden else information.PERFECT_INFORMATION,
            utility=kind.Utility.ZERO_SUM if hidden else kind.Utility.CONSTANT_SUM,
            reward_model=kind.RewardModel.TERMINAL,
            max_num_players=2,
            min_num_players=2,
            provides_information_state_string=True,
            provides_information_state_tensor=tensors,
            provides_observation_string=True,
            provides_observation_tensor=tensors,
            parameter_specification=dict(defaults),
        )

        # A class, not a function: what OpenSpiel's registry frees last, when Python has ended, crashes it.
        class Made:
            def __new__(cls, parameters: Mapping[str, Any] | None = None) -> Any:
                return getattr(importlib.import_module(module), game)(parameters)

        pyspiel.register_game(self.type, Made)


CHESS = GameKind(
    "precomp_games.chess.game",
    "ChessGame",
    "python_chess",
    "Chess of finite length (python-chess)",
    {"fen": "", "max_plies": 100, "threefold": False, "fifty_moves": False},
    chance=False,
)
CLOCK = GameKind(
    "precomp_games.games.clock",
    "ClockGame",
    "python_clock",
    "Base game with clocks",
    {"game": {"name": "tic_tac_toe"}, "time_0": 10, "time_1": 10, "move_time": 0},
)
KJ_POKER = GameKind(
    "precomp_games.games.kj_poker", "KJPokerGame", "python_kj_poker", "KJ Poker", {}, hidden=True
)
META_GAME = GameKind(
    "precomp_games.meta_game.game",
    "MetaPrecomputationGame",
    "python_meta_precomputation",
    "Precomputation meta-game",
    {
        "tree_file": "",
        "form": "audit",
        "check_supports": True,
        "game": {"name": "kuhn_poker"},
        "sigma": {"name": "uniform"},
        "sigma_pre": {"name": "cfr"},
        "penalty_0": 0.05,
        "penalty_1": 0.05,
    },
    tensors=True,
    hidden=True,
)
