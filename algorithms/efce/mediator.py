"""The mediator who recommends moves during play.

It recommends an action only when a player comes to move, given the last recommendations (s, t) of both: I a
with probability xi[I a, t] / xi[s, t]. A player who does not follow gets no more recommendations, and its
last one, the trigger, stays.

Source: von Stengel and Forges; `efce_resolving`, Background and Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public, shown
from precomp_games._support.results import Shown

from .correlation_plans import AnyBlueprint, Blueprint, check_blueprint
from .sequence_game import SequenceGame


class Mediator(Shown):
    """Recommends moves through one play of a game.

    Args:
      game: holds the information sets that play can come to: all of the game, or as much as `blueprint` is
        for.
      blueprint: the source of recommendations.
      seed: of the draws.
      refine: called with each state that is asked about; returns the part of the game and the plan to go on
        with, or None to go on as before. The new plan must have the old one's entries at what has been
        recommended.

    Raises:
      ValueError: `game` is no `SequenceGame`, `blueprint` none, `seed` no integer of at least 0, or `refine`
        no function.
    """

    @public
    def __init__(
        self,
        game: SequenceGame,
        blueprint: AnyBlueprint,
        seed: checks.NonNegativeInt = 0,
        refine: Callable[[Any], tuple[SequenceGame, Blueprint] | None] | None = None,
    ) -> None:
        self.game = game
        self.blueprint: Blueprint = blueprint
        self._refine = refine
        self._rng = np.random.default_rng(seed)
        # Each player's last recommendation, its information set and which of the actions there; and whether
        # the player has left its recommendations.
        self._recommended: list[tuple[str, int] | None] = [None, None]
        self.deviated = [False, False]

    def sequences(self) -> tuple[int, int]:
        """Return both players' last recommended sequences, in the numbers of the current part of the game."""
        return self._last(0), self._last(1)

    def _last(self, player: int) -> int:
        if (last := self._recommended[player]) is None:
            return 0
        return self.game.players[player].sequences(self.game.infoset_of(player, last[0]))[last[1]]

    @public
    def probabilities(self, state: Any) -> dict[int, float] | None:
        """Return the recommendation's distribution for the player to move; None if it has deviated before.

        Raises:
          ValueError: this is no state of the game, or no player moves there, or it is outside the part of the
            game that is held; or the recommendations so far had probability zero.
        """
        self._check_state(state)
        if self._refine is not None:
            refined = self._refine(state)
            if refined is not None:
                self.game = checks.check_instance(refined[0], SequenceGame, "what is refined")
                self.blueprint = check_blueprint(refined[1])
        player = state.current_player()
        if self.deviated[player]:
            return None
        form = self.game.players[player]
        infoset = self.game.infoset_of(player, state.information_state_string())
        own = np.array(form.sequences(infoset))
        other = np.full(len(own), self.sequences()[1 - player])
        first, second = (own, other) if player == 0 else (other, own)
        weights = np.maximum(self.blueprint.entries(self.game, first, second), 0.0)
        total = weights.sum()
        if not total > 0.0:
            raise ArgumentError("expected recommendations of positive probability so far")
        return {int(a): float(w / total) for a, w in zip(form.action[own], weights, strict=True)}

    def _check_state(self, state: Any) -> None:
        checks.check_state(state, self.game.game)
        if state.current_player() < 0:
            raise ArgumentError(f"expected a state where a player moves, got {shown(state)}")

    @public
    def recommend(self, state: Any) -> int | None:
        """Return an action for the player to move, drawn from `probabilities`; None where they are None.

        Asked again it gives the same action: another draw would reveal more than the plan does.

        Raises:
          ValueError: as `probabilities`.
        """
        probabilities = self.probabilities(state)
        if probabilities is None:
            return None
        player: int = state.current_player()
        key = state.information_state_string()
        last = self._recommended[player]
        if last is None or last[0] != key:
            last = (key, int(self._rng.choice(len(probabilities), p=list(probabilities.values()))))
            self._recommended[player] = last
        actions: list[int] = list(probabilities)
        return actions[last[1]]

    @public
    def played(self, state: Any, action: int) -> None:
        """Tell the mediator what was played at `state`, after `recommend`.

        Raises:
          ValueError: this is no state of the game, or the action not legal there; `recommend` was not asked
            at this state before.
        """
        self._check_state(state)
        legal = state.legal_actions()
        if action not in legal:
            raise ArgumentError(f"expected a legal action, one of {legal}, got {shown(action)}")
        player = state.current_player()
        if self.deviated[player]:
            return
        last = self._recommended[player]
        if last is None or last[0] != state.information_state_string():
            raise ArgumentError("expected recommend() to be asked first")
        self.deviated[player] = legal[last[1]] != action
