"""Public information: what names the subgame that a state is in, asked of OpenSpiel's states.

`public_moves(game, rounds)` names subgames by the moves that everybody sees, after so many rounds (a move of
each player) of them. It knows OpenSpiel's Battleship and Sheriff; any other function from states to names
serves as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Annotated, Any

import pyspiel

from precomp_games._support.arguments import ArgumentError, Check, PositiveInt, public
from precomp_games._support.checks import check_game, shown

__all__ = ["CertainGame", "PublicInformation", "check_name", "public_moves", "subgame_names"]

CertainGame = Annotated[
    pyspiel.Game, Check(lambda game, name: check_game(game, constant_sum=False, chance=False))
]
"""A sequential game of two players without chance, with information state strings; utilities of any sum."""

PublicInformation = Callable[[Any], Hashable | None]
"""From a state to the name of the subgame that starts there or above, None before all subgames."""


@public
def public_moves(game: CertainGame, rounds: PositiveInt) -> PublicInformation:
    """Names subgames by the first `rounds` rounds of public moves: a tuple of actions.

    In Battleship the placements are secret and the shots public; in Sheriff only the cargo is secret. Where
    hits are seen by both players they are public as well, but they do not name subgames here (nor in the
    paper).

    Raises:
      ValueError: another game, or a number of rounds that is not positive.
    """
    name = game.get_type().short_name
    if name == "battleship":
        sizes = str(game.get_parameters()["ship_sizes"]).strip("[]")
        secret = 2 * len(sizes.split(";"))
    elif name == "sheriff":
        secret = 1
    else:
        raise ArgumentError(
            f"expected battleship or sheriff, got {name}; name the subgames by a function of "
            "your own, or use finest_subgames()"
        )
    length = secret + 2 * rounds

    def moves(state: Any) -> Hashable | None:
        history = state.history()
        return tuple(history[secret:length]) if len(history) >= length else None

    return moves


@public
def subgame_names(game: CertainGame, public: PublicInformation) -> list[Hashable]:
    """The names of all subgames, in order of appearance; nothing below their first nodes is walked.

    Raises:
      ValueError: the game is not as for `SequenceGame`, or `public` no function that gives names.
    """
    names: dict[Hashable, None] = {}
    stack = [game.new_initial_state()]
    while stack:
        state = stack.pop()
        if state.is_terminal():
            continue
        name = check_name(public(state))
        if name is not None:
            names.setdefault(name)
        else:
            stack += [state.child(action) for action in reversed(state.legal_actions())]
    return list(names)


def check_name(name: Hashable | None) -> Hashable | None:
    """What can name a subgame, or None.

    Raises:
      ValueError: it cannot be hashed, and so is no name (a list, say).
    """
    try:
        hash(name)
    except TypeError:
        raise ArgumentError(
            f"expected subgames' names to be hashable, such as tuples, got {shown(name)}"
        ) from None
    return name
