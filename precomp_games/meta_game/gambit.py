"""Games as Gambit .efg files, for Gambit and for OpenSpiel's C++ solvers at their own speed.

    game = pyspiel.load_efg_game(to_efg(tree))               # the meta-game, its audit form
    text = to_efg(MetaPrecomputationGame(tree, "reweighted"))
    text = to_efg(pyspiel.load_game("leduc_poker"))          # a game alone, or its tree

Information sets are numbered 1 to n for each player, without gaps, in order of appearance; each is named by
the information state string of `MetaPrecomputationGame`. Actions are called "stop" and "memorize" in that
order, and "memorize 2" and so on where there is a menu: OpenSpiel numbers actions by their labels, in order
of appearance, which makes them 0, 1, 2 and so on there, too. Chance moves are called by their ids. Payoffs
are the returns of the game: to player 0's value add c / 2, stated in the title. In a game alone actions and
information sets have OpenSpiel's names, an action's number behind it where two would be called alike, and
payoffs are both players' utilities. All are written so that
they are read back as the same floating-point numbers. So are probabilities, but for one of each chance move,
which takes up what is missing to an exact sum of 1, as Gambit demands.

Source: Gambit's file format, https://gambitproject.readthedocs.io/en/latest/formats.efg.html. OpenSpiel
exports games too (`open_spiel.python.algorithms.gambit`), with 16 decimals, no care for quotation marks,
and in quadratic time.

Cost: about 9 us and 70 bytes of text per node.
"""

from __future__ import annotations

import functools
import math
import pathlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyspiel

from precomp_games._support.checks import public
from precomp_games.meta_game.game import MetaPrecomputationGame
from precomp_games.meta_game.rules import MetaPosition, MetaRules
from precomp_games.tree.facts import CHANCE, TERMINAL
from precomp_games.tree.history_tree import HistoryTree

# Who moves; payoffs, outcomes, or an information set's number, name and actions; and what follows.
_Node = tuple[int, Any, Sequence[Any]]


@public
def to_efg(source: MetaPrecomputationGame | HistoryTree | pyspiel.Game | str | pathlib.PurePath) -> str:
    """Return a game as text.

    Args:
      source: a meta-game in either form; a tree, which stands for the meta-game on it in the audit form, or
        for the game itself where it is of a game alone; or whatever `HistoryTree.of_game` takes.

    Raises:
      ValueError: `source` is none of these, or the game cannot be made of the tree.
    """
    if isinstance(source, pyspiel.Game | str | pathlib.PurePath) and not isinstance(
        source, MetaPrecomputationGame
    ):
        source = HistoryTree.of_game(source)
    if isinstance(source, HistoryTree) and not source.may_stop:
        return "".join(_written(efg_name(source.game_string), 0, _nodes_of_game(source)))
    game = source if isinstance(source, MetaPrecomputationGame) else MetaPrecomputationGame(source)
    title = (
        f"Precomputation meta-game ({game.form}) of {game.tree.game_string}, "
        f"penalties {game.tree.penalties}; add {game.value_shift!r} to payoffs"
    )
    return "".join(_written(efg_name(title), game.rules.start(), _nodes_of_meta_game(game.rules)))


def _written(title: str, root: Any, look: Callable[[Any], _Node]) -> Iterator[str]:
    """Yield the lines: nodes in prefix order."""
    yield f'EFG 2 R "{title}" {{ "0" "1" }}\n""\n\n'
    chance = ends = 0
    stack = [root]
    while stack:
        player, content, following = look(stack.pop())
        if player == TERMINAL:
            ends += 1
            yield f't "" {ends} "" {{ {content} }}\n'
        elif player == CHANCE:
            chance += 1
            shares = _exact_probabilities([p for _, p in content])
            labels = " ".join(f'"{action}" {p}' for (action, _), p in zip(content, shares, strict=True))
            yield f'c "" {chance} "" {{ {labels} }} 0\n'
        else:
            number, name, labels = content
            yield f'p "" {player + 1} {number} "{name}" {{ {labels} }} 0\n'
        stack += reversed(following)


def _nodes_of_game(tree: HistoryTree) -> Callable[[int], _Node]:
    number = np.zeros(tree.num_infosets, np.int64)
    for i in (0, 1):
        own = tree.infoset_player == i
        number[own] = 1 + np.arange(np.count_nonzero(own))
    named = functools.cache(lambda k: (number[k], efg_name(tree.key(k)), _action_labels(tree, k)))

    def look(h: int) -> _Node:
        player, children = int(tree.player[h]), tree.children(h)
        if not children:
            value = float(tree.value[h])
            other = float(tree.value_1[h]) if len(tree.value_1) else tree.utility_sum - value
            return TERMINAL, f"{_decimal(value)} {_decimal(other)}", ()
        if player == CHANCE:
            part = slice(children.start, children.stop)
            content = list(zip(tree.action[part].tolist(), tree.sigma[part].tolist(), strict=True))
            return player, content, children
        return player, named(int(tree.infoset[h])), children

    return look


def _action_labels(tree: HistoryTree, infoset: int) -> str:
    """Return the labels of the actions at an information state of a game alone, in quotation marks."""
    state, history = tree.infoset_states[infoset], int(tree.infoset_history[infoset])
    children = tree.children(history)
    actions = tree.action[children.start : children.stop].tolist()
    words = [efg_name(state.action_to_string(state.current_player(), action)) for action in actions]
    twice = len(set(words)) < len(words)
    return " ".join(
        f'"{word} ({action})"' if twice or not word else f'"{word}"'
        for word, action in zip(words, actions, strict=True)
    )


def _nodes_of_meta_game(rules: MetaRules) -> Callable[[MetaPosition], _Node]:
    numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def look(at: MetaPosition) -> _Node:
        player = rules.player(at)
        if player == TERMINAL:
            payoff = _decimal(rules.returns(at))
            return player, f"{payoff} {payoff[1:] if payoff.startswith('-') else f'-{payoff}'}", ()
        if player == CHANCE:
            outcomes = rules.outcomes(at)
            return player, outcomes, [rules.step(at, action) for action, _ in outcomes]
        infoset, choices = rules.infoset(at), rules.choices(at)
        number = numbers[player].setdefault(infoset, len(numbers[player]) + 1)
        content = number, efg_name(rules.infoset_view(infoset)), _labels(len(choices))
        return player, content, [rules.step(at, action) for action in choices]

    return look


@functools.cache
def _labels(count: int) -> str:
    """Return the labels of a decision's actions, in quotation marks."""
    return " ".join(['"stop" "memorize"', *(f'"memorize {action}"' for action in range(2, count))])


def efg_name(text: str) -> str:
    """Return text that may stand between quotation marks: OpenSpiel knows no escapes."""
    return " ".join(text.replace('"', "'").replace("\\", "/").split())


def _decimal(number: float) -> str:
    """Return a finite float in digits, without an exponent, read back as the same float."""
    assert math.isfinite(number)
    return f"{Decimal(repr(number)):f}"


def _exact_probabilities(probabilities: Sequence[float]) -> list[str]:
    """Return probabilities in digits, with an exact sum of 1: the largest absorbs the rest."""
    with localcontext() as context:
        context.prec = 400  # the smallest float has its first digit after 323 zeros
        exact = [Decimal(repr(p)) for p in probabilities]
        largest = max(range(len(exact)), key=exact.__getitem__)
        exact[largest] += 1 - sum(exact)
        return [f"{p:f}" for p in exact]
