"""Games as Gambit .efg files, for Gambit and for OpenSpiel's C++ solvers at their own speed.

    write_efg(tree, "meta.efg")                                   # the meta-game, its audit form
    write_efg(MetaPrecomputationGame(tree, "reweighted"), "meta.efg")
    write_efg(pyspiel.load_game("leduc_poker"), "leduc.efg")      # a game alone, or its tree
    game = pyspiel.load_efg_game(to_efg(tree))

Information sets are numbered 1 to n for each player, without gaps, in order of appearance; each is named by
the information state string of `MetaPrecomputationGame`. Actions are called "stop" and "memorize" in that
order, and "memorize 2" and so on where there is a menu: OpenSpiel numbers actions by their labels, in order
of appearance, which makes them 0, 1, 2 and so on there, too. Chance moves are called by their ids. Payoffs
are the returns of the game: to player 0's value add c / 2, which the title says. In a game alone actions and
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
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext

import numpy as np
import pyspiel

from precomp_games._support.files import atomic_write
from precomp_games._support.validation import FilePath, public
from precomp_games.meta_game.game import MetaPrecomputationGame
from precomp_games.tree.facts import CHANCE, TERMINAL
from precomp_games.tree.history_tree import HistoryTree


@public
def to_efg(source: MetaPrecomputationGame | HistoryTree | pyspiel.Game) -> str:
    """A game as text.

    Args:
      source: a meta-game in either form; a tree, which stands for the meta-game on it in the audit form, or
        for the game itself where it is of a game alone; or any game that `HistoryTree.of_game` takes.

    Raises:
      ValueError: `source` is none of these, or the game cannot be made of the tree.
    """
    return "".join(_lines(source))


@public
def write_efg(source: MetaPrecomputationGame | HistoryTree | pyspiel.Game, path: FilePath) -> None:
    """Writes what `to_efg` gives to a file, whole or not at all.

    Raises:
      ValueError: as `to_efg`.
      OSError: the file cannot be written.
    """
    lines = _lines(source)
    with atomic_write(path) as file:
        file.writelines(lines)


def _lines(source: MetaPrecomputationGame | HistoryTree | pyspiel.Game) -> Iterator[str]:
    """The file's lines: nodes in prefix order."""
    if isinstance(source, pyspiel.Game) and not isinstance(source, MetaPrecomputationGame):
        source = HistoryTree.of_game(source)
    if isinstance(source, HistoryTree) and not source.may_stop:
        return _lines_of_game(source)
    return _lines_of_meta_game(
        source if isinstance(source, MetaPrecomputationGame) else MetaPrecomputationGame(source)
    )


def _lines_of_game(tree: HistoryTree) -> Iterator[str]:
    yield f'EFG 2 R "{efg_name(tree.game_string)}" {{ "0" "1" }}\n""\n\n'
    number = np.zeros(tree.num_infosets, np.int64)
    for i in (0, 1):
        own = tree.infoset_player == i
        number[own] = 1 + np.arange(np.count_nonzero(own))
    names: dict[int, tuple[str, str]] = {}
    chance = ends = 0
    stack = [0]
    while stack:
        h = stack.pop()
        player, children = int(tree.player[h]), tree.children(h)
        if not children:
            ends += 1
            value = float(tree.value[h])
            yield f't "" {ends} "" {{ {_decimal(value)} {_decimal(tree.utility_sum - value)} }}\n'
            continue
        if player == CHANCE:
            chance += 1
            actions = tree.action[children.start : children.stop].tolist()
            shares = _exact_probabilities(tree.sigma[children.start : children.stop].tolist())
            labels = " ".join(f'"{action}" {p}' for action, p in zip(actions, shares, strict=True))
            yield f'c "" {chance} "" {{ {labels} }} 0\n'
        else:
            infoset = int(tree.infoset[h])
            if infoset not in names:
                names[infoset] = (efg_name(tree.key(infoset)), _action_labels(tree, infoset))
            name, labels = names[infoset]
            yield f'p "" {player + 1} {number[infoset]} "{name}" {{ {labels} }} 0\n'
        stack += reversed(children)


def _action_labels(tree: HistoryTree, infoset: int) -> str:
    """What the actions at an information state of a game alone are called, between quotation marks."""
    state, history = tree.infoset_states[infoset], int(tree.infoset_history[infoset])
    children = tree.children(history)
    actions = tree.action[children.start : children.stop].tolist()
    words = [efg_name(state.action_to_string(state.current_player(), action)) for action in actions]
    twice = len(set(words)) < len(words)
    return " ".join(
        f'"{word} ({action})"' if twice or not word else f'"{word}"'
        for word, action in zip(words, actions, strict=True)
    )


def _lines_of_meta_game(game: MetaPrecomputationGame) -> Iterator[str]:
    rules, tree = game.rules, game.tree
    title = (
        f"Precomputation meta-game ({game.form}) of {tree.game_string}, penalties {tree.penalties}; "
        f"add {game.value_shift!r} to payoffs"
    )
    yield f'EFG 2 R "{efg_name(title)}" {{ "0" "1" }}\n""\n\n'
    numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})
    chance = ends = 0
    stack = [rules.start()]
    while stack:
        at = stack.pop()
        player = rules.player(at)
        if player == TERMINAL:
            ends += 1
            payoff = _decimal(rules.returns(at))
            other = payoff[1:] if payoff.startswith("-") else f"-{payoff}"
            yield f't "" {ends} "" {{ {payoff} {other} }}\n'
            continue
        if player == CHANCE:
            chance += 1
            outcomes = rules.outcomes(at)
            probabilities = _exact_probabilities([p for _, p in outcomes])
            labels = " ".join(
                f'"{action}" {p}' for (action, _), p in zip(outcomes, probabilities, strict=True)
            )
            yield f'c "" {chance} "" {{ {labels} }} 0\n'
            stack += [rules.step(at, action) for action, _ in reversed(outcomes)]
        else:
            infoset = rules.infoset(at)
            number = numbers[player].setdefault(infoset, len(numbers[player]) + 1)
            name = efg_name(rules.infoset_view(infoset))
            choices = rules.choices(at)
            yield f'p "" {player + 1} {number} "{name}" {{ {_labels(len(choices))} }} 0\n'
            stack += [rules.step(at, action) for action in reversed(choices)]


@functools.cache
def _labels(count: int) -> str:
    """What the actions of a decision are called, between quotation marks."""
    return " ".join(['"stop" "memorize"', *(f'"memorize {action}"' for action in range(2, count))])


def efg_name(text: str) -> str:
    """Text that may stand between quotation marks: OpenSpiel knows no escapes."""
    return " ".join(text.replace('"', "'").replace("\\", "/").split())


def _decimal(number: float) -> str:
    """A finite float in digits, without an exponent, read back as the same float."""
    assert math.isfinite(number)
    return f"{Decimal(repr(number)):f}"


def _exact_probabilities(probabilities: Sequence[float]) -> list[str]:
    """Probabilities in digits, with an exact sum of 1: the largest takes up what is missing."""
    with localcontext() as context:
        context.prec = 400  # the smallest float has its first digit after 323 zeros
        exact = [Decimal(repr(p)) for p in probabilities]
        largest = max(range(len(exact)), key=exact.__getitem__)
        exact[largest] += 1 - sum(exact)
        return [f"{p:f}" for p in exact]
