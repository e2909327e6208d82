"""An equilibrium of every proper subgame: subgame-perfect, because subgames are solved from the last.

An equilibrium prescribes little where play does not come. But a proper subgame is a game by itself:
its movers know that play is in it. In the game around it only what it is worth counts.

1. A history begins a proper subgame if the information states that are met from there on are met nowhere
   else. The histories of one information state come together, on the way back to the start, at one last
   history; none of these may lie before.
2. A subgame without the subgames inside it is its part. Parts behind which equally many others follow, one
   inside the other, are the branches of one chance move. One linear program solves the game of that move, and
   so each of its branches.

What comes out is measured by best responses in the same order, from the last, and these know nothing of
programs: a best response in a subgame is put together from those in the subgames inside it.

Inside of a part nothing is refined: where its own equilibrium does not come, play is as in any equilibrium.
In poker, whose only proper subgame is the whole, nothing is changed.

Source: Selten, "Spieltheoretische Behandlung eines Oligopolmodells mit Nachfrageträgheit", Zeitschrift für
die gesamte Staatswissenschaft 121 (1965).

Cost: as many programs as subgames follow one inside the other, of the equilibrium's size all together, and a
pass over the tree for each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from precomp_games._support.checks import ArgumentError
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.facts import CHANCE, TreeArrays
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy

from ..preparation.decisions import Decisions
from ..programs import LinearProgramError
from .double_oracle import tree_of_part
from .sequence_form_lp import equilibrium_plans, strategies_of

Profile = tuple[MetaStrategy, MetaStrategy]
"""Strategies of players 0 and 1."""

_Play = Callable[[HistoryTree, npt.NDArray[np.int64]], npt.NDArray[np.float64]]
"""From parts side by side, and what their entries are in the whole tree, to what both players play there."""


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement(Result):
    """A certificate that strategies are an equilibrium of every proper subgame.

    Attributes:
      subgames: Their number, with the whole game and without those that chance never reaches.
      gap: The greatest NashConv of any of them: what both players could gain by best responses, added up, if
        play began there.
    """

    subgames: int
    gap: float


def refined(tree: HistoryTree) -> Profile:
    """Return an equilibrium of every proper subgame of a game alone.

    Raises:
      ValueError: HiGHS did not find an optimum.
    """

    def solved(parts: HistoryTree, _: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        first, second = strategies_of(parts, equilibrium_plans(parts)[0])
        return first.memorize + second.memorize

    try:
        return profile_of(tree, _from_the_last(tree, *_subgames(tree), solved)[0])
    except LinearProgramError as error:
        raise ArgumentError(
            f"expected a game that HiGHS can solve with refine=True, got {tree}: {error}"
        ) from error


def certified(tree: HistoryTree, strategies: Profile) -> Refinement:
    """Measure strategies of a game alone in all of its proper subgames."""
    begin, height = _subgames(tree)
    played = strategies[0].memorize + strategies[1].memorize
    most = []
    for i in (0, 1):

        def answered(
            parts: HistoryTree, entries: npt.NDArray[np.int64], i: int = i
        ) -> npt.NDArray[np.float64]:
            other = profile_of(parts, played[entries])[1 - i]
            return Decisions.against(parts, i, other, alone=True).best().memorize + other.memorize

        most.append(_from_the_last(tree, begin, height, answered)[1])
    own = np.unique(begin)
    return Refinement(len(own), float((most[0] - most[1])[own].max()))


def profile_of(tree: HistoryTree, memorize: npt.NDArray[np.float64]) -> Profile:
    """Return both players' strategies, of their probabilities in one array."""
    first, second = (MetaStrategy(tree, i, np.where(tree.entry_player == i, memorize, 0.0)) for i in (0, 1))
    return first, second


def _from_the_last(
    tree: HistoryTree, begin: npt.NDArray[np.int64], height: npt.NDArray[np.int64], play: _Play
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return (float64[E]: what is played, float64[n]: what that is worth to player 0 where subgames begin).

    begin, height: see `_subgames`.
    """
    worth, memorize = tree.value.copy(), np.zeros(tree.num_entries)
    depth = np.repeat(np.arange(len(tree.levels)), [level.stop - level.start for level in tree.levels])
    for turn in range(int(height.max()) + 1):
        parts, first, entries = _side_by_side(tree, worth, begin, height == turn, depth)
        odds, chosen = parts.sigma.copy(), parts.edge_entry >= 0
        if len(entries):  # else chance alone is left
            memorize[entries] = play(parts, entries)
            odds[chosen] = memorize[entries[parts.edge_entry[chosen]]]
        expected = np.where(parts.num_children == 0, parts.value, 0.0)
        for level in reversed(parts.levels[2:]):
            np.add.at(expected, parts.parent[level], odds[level] * expected[level])
        worth[first] = expected[1 : 1 + len(first)]
    return memorize, worth


def _side_by_side(
    tree: HistoryTree,
    worth: npt.NDArray[np.float64],
    begin: npt.NDArray[np.int64],
    inside: npt.NDArray[np.bool_],
    depth: npt.NDArray[np.int64],
) -> tuple[HistoryTree, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Join parts as the branches of one chance move.

    Args:
      tree: the whole.
      worth: float64[n], of leaves and of subgames that begin right after the parts.
      begin: see `_subgames`.
      inside: bool[n], what is in the parts.
      depth: int64[n].

    Returns:
      The tree; where each part begins; and the numbers in the whole tree of its entries.
    """
    first = np.unique(begin[inside])
    later = np.flatnonzero(np.append(False, inside[tree.parent[1:]]))
    later = later[np.argsort((depth - depth[begin])[tree.parent[later]], kind="stable")]
    kept = np.concatenate([[tree.num_histories - 1], first, later])  # that leaf is the chance move
    drawn = slice(0, 1 + len(first))
    number = np.zeros(tree.num_histories, np.int64)
    number[kept[1:]] = np.arange(1, len(kept))
    parent = np.concatenate([[-1], np.zeros(len(first), np.int64), number[tree.parent[later]]])
    num_children = np.where(inside[kept], tree.num_children[kept], 0)
    num_children[0] = len(first)
    infosets = inside[tree.infoset_history]
    columns = {name: getattr(tree, name)[kept] for name in ("player", "sigma", "sigma_pre")}
    columns["player"][0], columns["value"] = CHANCE, worth[kept]
    columns["sigma"][drawn] = columns["sigma_pre"][drawn] = 1.0 / len(first)
    if tree.has_menus:
        columns["entry"] = tree.entry[kept]
        columns["entry"][drawn] = 0
    parts = tree_of_part(tree, kept, infosets, parent, num_children, **columns)
    return parts, first, np.flatnonzero(infosets[tree.entry_infoset])


def _subgames(tree: HistoryTree) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the beginning of each history's last proper subgame, and how many others that one waits for."""
    begin, height = np.zeros((2, tree.num_histories), np.int64)
    _find(tree.arrays, tree.num_infosets, begin, height)
    return begin, height[begin]


@kernel
def _find(tree: TreeArrays, num_infosets: int, begin: np.ndarray, height: np.ndarray) -> None:
    """Write `_subgames` into the last two arguments, zeros before; heights at the beginnings."""
    parent, num_children, infoset = tree.parent, tree.num_children, tree.infoset
    met = np.full(num_infosets, -1)  # the last history that all of an information state's come after, or are
    for h in range(len(parent)):
        if infoset[h] >= 0:
            a, b = met[infoset[h]], h
            while a != b and a >= 0:
                if a > b:
                    a = parent[a]
                else:
                    b = parent[b]
            met[infoset[h]] = b
    least = np.arange(len(parent))  # the first history that those from here on hang together by
    for h in range(len(parent) - 1, 0, -1):
        if infoset[h] >= 0:
            least[h] = min(least[h], met[infoset[h]])
        least[parent[h]] = min(least[parent[h]], least[h])
    for h in range(1, len(parent)):
        begin[h] = h if least[h] == h and num_children[h] > 0 else begin[parent[h]]
    for h in range(len(parent) - 1, 0, -1):
        if begin[h] == h:
            around = begin[parent[h]]
            height[around] = max(height[around], height[h] + 1)
