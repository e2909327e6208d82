"""What it would be worth to know what the opponent plays: a bound of all that learning can bring.

Of an opponent that is not known, only its mean matters for the next game, and the best set against the mean
is the best there is. For more games it is not: what is tried now may teach what to play later. To play best
over all of them is a problem with a state for each thing that can be learned. But for each opponent t, no set
is worth more than the best one against t, so whatever is learned, and however, a game is worth

    E[ max over S of u(S, t) ]

at most, and to find that takes a pass for each t: the clairvoyant's value. Its distance from the best set
against the mean is what exploring can bring at most.

What is bounded are sets of what a search has opened, of any size and at no price, with stops worth what the
search takes them for, whoever the opponent is.

Source: the value of perfect information; ours is only the pass. Cost: one call to the opponent's policy for
each opened entry, which has been asked there before, and 8 bytes for each node and opponent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .best_first import BestFirstSearch
from .partial_tree import Branch

Possible = Callable[[Sequence[Any], Sequence[Mapping[int, float]]], Sequence[Mapping[int, Any]]]
"""What each of K opponents plays at states where their mean is known: {action: float64[K]} of the same
actions, one for each state and its {action: probability}."""


def clairvoyant_values(search: BestFirstSearch, possible: Possible) -> npt.NDArray[np.float64]:
    """float64[K]: what the best set of what is open is worth against each of K opponents.

    Args:
      search: the player's utilities are its, and so are the stops; one that is not known counts as the least.
      possible: the opponents.
    """
    tree, player = search.tree, search.problem.player
    followed = [branch for node in tree.nodes for branch in node.entries if branch.followed]
    replies = _replies(search, followed, possible)
    values: dict[tuple[int, ...], Any] = {}  # of nodes by history: children come after their parents

    def ahead(state: Any) -> Any:
        if state.is_terminal():
            return search.problem.own_utility(state)
        history = tuple(state.history())
        if state.current_player() == player:
            return values[history]
        return sum(p * ahead(state.child(action)) for action, p in replies[history].items())

    def worth(branch: Branch) -> Any:
        if branch.node is tree.root:
            return ahead(branch.node.state)
        return sum(p * ahead(branch.node.state.child(action)) for action, p in branch.row.items())

    for node in reversed(tree.nodes[1:]):
        value: Any = search.stop_value(node)
        for branch in node.entries:
            if branch.followed:
                value = np.maximum(value, worth(branch))
        values[node.actions()] = value
    return np.atleast_1d(np.asarray(worth(tree.root.entries[0]), float))


def _replies(
    search: BestFirstSearch, followed: Sequence[Branch], possible: Possible
) -> dict[tuple[int, ...], Mapping[int, Any]]:
    """What is played where neither the player moves nor the game is over, behind entries, by history."""
    tree, player = search.tree, search.problem.player
    replies: dict[tuple[int, ...], Mapping[int, Any]] = {}
    ahead = [
        state
        for branch in followed
        for state in (
            [branch.node.state]
            if branch.node is tree.root
            else [branch.node.state.child(action) for action in branch.row]
        )
    ]
    while ahead:
        turns = [each for each in ahead if not each.is_terminal() and each.current_player() != player]
        rows = tree.replies(turns)
        theirs = [k for k, state in enumerate(turns) if not state.is_chance_node()]
        each = possible([turns[k] for k in theirs], [rows[k] for k in theirs])
        known: list[Mapping[int, Any]] = list(rows)
        for k, row in zip(theirs, each, strict=True):
            known[k] = row
        ahead = []
        for state, row in zip(turns, known, strict=True):
            replies[tuple(state.history())] = row
            ahead += [state.child(action) for action in row]
    return replies


def drawn_replies(
    weight: Callable[[Sequence[Any]], Sequence[float]],
    draws: int,
    seed: int | Sequence[int],
    position: Callable[[Any], Any],
) -> Possible:
    """Opponents drawn from independent Dirichlet distributions, one for each position.

    Args:
      weight: how many games the mean at each state is worth, positive: the sum of the distribution's
        parameters.
      draws: K.
      seed: of the draws.
      position: states with equal ones have the same distribution, and one draw.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[Any, Mapping[int, Any]] = {}

    def possible(states: Sequence[Any], rows: Sequence[Mapping[int, float]]) -> list[Mapping[int, Any]]:
        for state, row, games in zip(states, rows, weight(states), strict=True):
            if (name := position(state)) not in drawn:
                mean = np.array(list(row.values()))
                gammas = rng.standard_gamma(games * mean, (draws, len(mean)))
                total = gammas.sum(axis=1, keepdims=True)
                played = np.where(total > 0.0, gammas / np.where(total > 0.0, total, 1.0), mean)
                drawn[name] = dict(zip(row, played.T, strict=True))
        return [drawn[position(state)] for state in states]

    return possible
