"""How a player with a book plays: memorized rows where the book has them, and its sigma elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from open_spiel.python import policy as openspiel_policy

from precomp_games._support.arguments import Game, Player, public
from precomp_games._support.checks import ArgumentError, check_turn
from precomp_games._support.pickles import packed, unpacked
from precomp_games._support.results import Shown
from precomp_games.policies.rows import PolicyLike, as_batch_policies


class PrecomputationPolicy(Shown, openspiel_policy.Policy):
    """A precomputation strategy (Definition 1): the book where it reaches, sigma everywhere else.

    The book player's memorized states are looked up first; a state that is not among them, and every
    state of the other player, is answered by that player's sigma.

    It can be pickled where `lookup` can. A sigma that cannot, such as a function without a name, is not known
    in the copy, which plays the book all the same.
    """

    @public
    def __init__(
        self,
        game: Game,
        player: Player,
        lookup: Callable[[Any], dict[int, float] | None],
        sigma: PolicyLike | Sequence[PolicyLike | None],
    ) -> None:
        """Initializes the policy.

        Args:
          game: the base game.
          player: whose book it is, 0 or 1.
          lookup: a state's memorized row, or None off the book.
          sigma: what the players compute during play, one for both or a pair; None where it is not known.

        Raises:
          ValueError: an argument is not as above.
        """
        super().__init__(game, [0, 1])
        self.player, self._lookup = player, lookup
        self._sigma = as_batch_policies(sigma, "sigma")
        self._game_string = str(game)

    def __getstate__(self) -> dict[str, Any]:
        carried = {"game": packed(self.game), "_sigma": tuple(map(packed, self._sigma))}
        return self.__dict__ | carried

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.game = unpacked(state["game"])
        self._sigma = tuple(map(unpacked, state["_sigma"]))

    @public
    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        """Returns {action: probability} of all legal actions at a decision state.

        Args:
          state: of the base game.
          player_id: who moves there; only games in which players move at once have a choice.

        Raises:
          ValueError: an argument is not as above, or the state is off the book and the player's sigma is not
            known.
        """
        player = check_turn(state, player_id, self.game or self._game_string)
        if player == self.player:
            row = self._lookup(state)
            if row is not None:
                return self._whole(state, row)
        sigma = self._sigma[player]
        if sigma is None:
            raise ArgumentError(
                f"expected a state on the book of player {self.player}, got "
                f"{state.history_str()!r}; give policy(sigma=...) what player {player} computes during play, "
                "which is not known here (files of trees have no policies, and pickles none that cannot be "
                "pickled)"
            )
        return self._whole(state, sigma([state])[0])

    @staticmethod
    def _whole(state: Any, row: Mapping[int, float]) -> dict[int, float]:
        """A row with its zeros, which OpenSpiel's C++ best response asks for."""
        return dict.fromkeys(state.legal_actions(), 0.0) | dict(row)
