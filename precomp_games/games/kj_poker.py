"""KJ poker: two kings, two jacks, two rounds of betting, as an OpenSpiel game.

    game = pyspiel.load_game("python_kj_poker")         # once precomp_games is imported

Each player pays an ante of 1 and gets a card. A round of betting follows, with bets of 2. Then a public
card is dealt, and a second round of betting follows, with bets of 4. In a round, player 0 checks or bets. A
check may be answered by a bet, and a bet is answered by folding or calling. At the showdown, a pair with
the public card wins the pot. Players with equal private cards split it.

Nature deals both private cards at once and by rank, because suits do not matter. The game has 199
histories, and 57 sequences and 28 information sets per player. After two equal cards the public card is
known, but Nature still deals it. The deal then counts as a move for a player that looks a number of moves
ahead.

Source: `limited_lookahead`, section 6.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pyspiel

from precomp_games.games.openspiel_game import StringObserver, observation_type
from precomp_games.games.registered import KJ_POKER

PASS = 0
"""Check, or fold to a bet."""
BET = 1
"""Bet, or call a bet."""

_RANKS = "JK"
_DECK = (2, 2)  # how many cards of each rank
_ANTE = 1.0
_BETS = (2.0, 4.0)  # by round
_DEALS = 4  # chance action: 2 * rank of player 0 + rank of player 1
_ROUND_OVER = {(PASS, PASS), (BET, PASS), (BET, BET), (PASS, BET, PASS), (PASS, BET, BET)}

_GAME_INFO = pyspiel.GameInfo(
    num_distinct_actions=2,
    max_chance_outcomes=_DEALS,
    num_players=2,
    min_utility=-(_ANTE + sum(_BETS)),
    max_utility=_ANTE + sum(_BETS),
    utility_sum=0.0,
    max_game_length=6,
)


class KJPokerGame(pyspiel.Game):
    """The game; registered as `python_kj_poker`. It has no parameters."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        """Make the game; OpenSpiel calls it with parameters, and has refused any that are not the type's."""
        del params
        super().__init__(KJ_POKER.type, _GAME_INFO, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return KJPokerGame, ()

    def new_initial_state(self) -> KJPokerState:
        """Return the state before the deal."""
        return KJPokerState(self)

    def max_chance_nodes_in_history(self) -> int:
        """Return the deal and the public card."""
        return 2

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> StringObserver:
        """Return an observer: strings of all that is known, or of what lies open now."""
        open_now = pyspiel.IIGObservationType(perfect_recall=False)
        kind = observation_type(iig_obs_type, params, self) or open_now
        return StringObserver(functools.partial(_view, kind))


class KJPokerState(pyspiel.State):
    """A state. Made by `KJPokerGame.new_initial_state` and `child`.

    Attributes:
      cards: ranks (0: J, 1: K) of the players' cards and the public card, as far as they are dealt.
      bets: the moves of each round that has begun.
    """

    def __init__(self, game: KJPokerGame) -> None:
        super().__init__(game)
        self.cards: tuple[int, ...] = ()
        self.bets: tuple[tuple[int, ...], ...] = ((),)

    def current_player(self) -> int:
        """Return 0, 1, or pyspiel's chance or terminal player."""
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        if not self.cards or len(self.cards) - 2 < len(self.bets) - 1:
            return int(pyspiel.PlayerId.CHANCE)
        return len(self.bets[-1]) % 2

    def is_terminal(self) -> bool:
        """Return whether somebody has folded, or the second round is over."""
        return self.bets[-1] in _ROUND_OVER

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the deal (2 * rank + rank), or the public card (its rank); all with positive probability."""
        if not self.cards:
            deals = [(2 * a + b, _DECK[a] * (_DECK[b] - (a == b))) for a in (0, 1) for b in (0, 1)]
        else:
            deals = [(rank, count - self.cards.count(rank)) for rank, count in enumerate(_DECK)]
        total = sum(count for _, count in deals)
        return [(action, count / total) for action, count in deals if count > 0]

    def _legal_actions(self, player: int) -> list[int]:
        del player
        return [PASS, BET]

    def _apply_action(self, action: int) -> None:
        if self.current_player() == pyspiel.PlayerId.CHANCE:
            self.cards += (action,) if self.cards else divmod(action, 2)
            return
        line = (*self.bets[-1], action)
        self.bets = (*self.bets[:-1], line)
        if len(self.bets) == 1 and line in _ROUND_OVER and line[-2:] != (BET, PASS):
            self.bets = (*self.bets, ())

    def paid(self) -> tuple[float, float]:
        """Return each player's payments into the pot, the ante included."""
        paid = [_ANTE, _ANTE]
        for line, bet in zip(self.bets, _BETS, strict=False):
            for move, action in enumerate(line):
                paid[move % 2] += bet * action
        return paid[0], paid[1]

    def returns(self) -> list[float]:
        """Return both players' winnings, with sum 0; zeros until the game is over."""
        if not self.is_terminal():
            return [0.0, 0.0]
        line, paid = self.bets[-1], self.paid()
        if line[-2:] == (BET, PASS):
            loser = (len(line) - 1) % 2
        elif self.cards[0] == self.cards[1]:
            return [0.0, 0.0]
        else:
            loser = 1 if self.cards[0] == self.cards[2] else 0
        won = paid[loser] if loser == 1 else -paid[loser]
        return [won, -won]

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"Public:{_RANKS[action]}" if self.cards else "Deal:" + "".join(_names(divmod(action, 2)))
        return "Bet" if action == BET else "Pass"

    def __str__(self) -> str:
        return f"{''.join(_names(self.cards[:2]))} {_public(self)}".rstrip()


def _view(kind: pyspiel.IIGObservationType, state: KJPokerState, player: int) -> str:
    """Return a player's knowledge in words: its card, the public card, and all bets or the pot."""
    pieces = [f"p{player}"]
    if kind.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER and state.cards:
        pieces.append(_RANKS[state.cards[player]])
    elif kind.private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
        pieces.append("".join(_names(state.cards[:2])))
    if kind.public_info and kind.perfect_recall:
        pieces.append(_public(state))
    elif kind.public_info:
        paid = state.paid()
        pieces += [*_names(state.cards[2:]), f"{paid[0]:g}-{paid[1]:g}"]
    return " ".join(piece for piece in pieces if piece)


def _names(cards: tuple[int, ...]) -> list[str]:
    return [_RANKS[card] for card in cards]


def _public(state: KJPokerState) -> str:
    """Return the bets so far, p and b, with the public card between the rounds."""
    words = ["".join("pb"[action] for action in line) for line in state.bets]
    words[1:1] = _names(state.cards[2:])
    return " ".join(word for word in words if word)
