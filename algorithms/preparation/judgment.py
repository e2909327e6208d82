"""Judgment of an existing book: its value, its holes, and the entries it can do without.

The book is a memorization set S of the player's on a history tree, mostly one with menus, in which the book's
own moves stand beside those that somebody better would memorize. Against a fixed opponent everything is a
sum over information states (`decisions`), so each of these questions is one that is solved already, on a part
of the tree:

* regret to the best book of S's size: the best set within a budget, on the whole tree;
* regret to the best book of its own moves: the same on what the book's own entries alone can reach;
* what forgetting I costs: what S from I on is worth more than stopping at I;
* what to drop first: the thresholds of the memory frontier on S alone. As memory gets dearer, the best part
  of S shrinks, and each state leaves it at one price;
* what to learn next: the best set of so many entries on what lies behind S, given S. These are the best ones
  *together*. A greedy choice of one state after the other misses a move that gains nothing until the one
  after it is known;
* holes: where games come to a state of the player's that S does not have, and what the best answer, with the
  best that follows it, would bring, less the penalty;
* moves that lose: entries of S beside which another entry of the menu is worth more, each with what is best
  after it.

All of it is exact on the tree. Where the tree's values are estimates, what is a maximum over them errs
upward: regret, lessons, losses, and what holes cost. What forgetting costs is none.

Source: `precomputation`, Algorithm 1; the budget and the thresholds are those of `frontier`.

Cost: a pass down the tree and one back, and what two budgets take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, public
from precomp_games._support.kernels import kernel
from precomp_games._support.results import Result
from precomp_games.tree.facts import Forest
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import check_memorization_set

from ..programs import Clock
from .best_precomputation import BestPrecomputation, best_set
from .decisions import Decisions, Treeplex
from .frontier import best_within_budget, frontier_of

_ROUNDING = 1e-12  # of the tree's scale: moves that differ by less are worth the same


class Holes(NamedTuple):
    """Positions where games leave a book at its player's turn; the dearest first, then the most frequent.

    Attributes:
      infoset: int32[j].
      reach: float64[j], the probability that a game comes there.
      cost: float64[j], what the best answer and the best that follows it would bring, in all games, less the
        tree's penalty for each; 0 where nothing pays.
      answer: int32[j], the entry that brings it; the best one where none pays.
      gain: float64[j], the most that an answer, and what follows it, would bring where memory costs nothing.
    """

    infoset: npt.NDArray[np.int32]
    reach: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]
    answer: npt.NDArray[np.int32]
    gain: npt.NDArray[np.float64]


class Lessons(NamedTuple):
    """Entries to learn next, in an order in which they can be learned: the most gain for each state first.

    Attributes:
      entry: int32[l].
      gain: float64[l], the utility that each adds to the book and to those before it. One that only prepares
        others adds nothing by itself, or less.
      net_gain: float64[l], what each adds together with those of the lessons that follow it.
    """

    entry: npt.NDArray[np.int32]
    gain: npt.NDArray[np.float64]
    net_gain: npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class BookJudgment(Result):
    """Judgment of a book on a tree, from the viewpoint of `player`.

    Attributes:
      tree: The tree on which it was judged.
      player: 0 or 1.
      memorization_set: int32[k], the book's entries, increasing.
      size: k, the number of information states.
      value: utility - penalty * size, with the tree's penalty.
      utility: Base-game utility of playing the book, without penalties.
      unprepared: Base-game utility without any book.
      reach: float64[k], the probability that a game comes to each of its states.
      gain: float64[k], see `MemorizedState`; they add up to utility - unprepared.
      forgetting: float64[k], the utility that is lost if the state, and all of the book behind it, is
        forgotten. Below 0, forgetting helps.
      threshold: float64[k], the price of memory at which the state leaves the best part of the book. At
        most 0: the book is no worse without it.
      loss: float64[k], how much more another entry of the menu is worth, at the tree's penalty and with what
        is best after each; 0 where none is.
      better: int32[k], that entry, -1 where there is none.
      best: The best set on the tree of at most as many states.
      own_set: int32, the best such set of the owner's entries alone.
      own_utility: The utility of that set.
      holes: Positions where games leave the book.
      lessons: Entries to learn next.
    """

    tree: HistoryTree = dataclasses.field(repr=False)
    player: int
    memorization_set: npt.NDArray[np.int32] = dataclasses.field(repr=False)
    size: int
    value: float
    utility: float
    unprepared: float
    reach: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    gain: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    forgetting: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    threshold: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    loss: npt.NDArray[np.float64] = dataclasses.field(repr=False)
    better: npt.NDArray[np.int32] = dataclasses.field(repr=False)
    best: BestPrecomputation = dataclasses.field(repr=False)
    own_set: npt.NDArray[np.int32] = dataclasses.field(repr=False)
    own_utility: float
    holes: Holes = dataclasses.field(repr=False)
    lessons: Lessons = dataclasses.field(repr=False)

    @property
    def regret(self) -> float:
        """Utility that the best set of that size on the tree has beyond the book's."""
        return self.best.utility - self.utility

    @property
    def own_regret(self) -> float:
        """Utility that the best set of that size made of the owner's entries alone has beyond the book's."""
        return self.own_utility - self.utility

    @property
    def drop_order(self) -> npt.NDArray[np.int32]:
        """int32[k]: the book's entries in the order in which to drop them, what follows a state before it."""
        # A stable sort leaves an information state after its previous one; turned around, before it.
        return self.memorization_set[np.argsort(-self.threshold, kind="stable")][::-1]


@public
def judge_book(
    tree: HistoryTree,
    player: checks.Player,
    memorization_set: Iterable[int],
    *,
    own_entries: Iterable[int] = (),
    learn: checks.NonNegativeInt = 10,
) -> BookJudgment:
    """Judge a memorization set of `player` against a fixed opponent.

    Args:
      tree: a tree that was expanded with a finite penalty for `player`. The set is compared with others on
        this tree: what was cut is not looked at.
      player: 0 or 1, whose book it is.
      memorization_set: the numbers of the book's entries, each with the player's entry before it. Where
        menus have one entry, they are information states' numbers.
      own_entries: further entries that the book's owner knows, such as second choices, for the best set of
        the owner's entries.
      learn: the most states to be learned next.
    """
    decisions = Decisions.against(tree, player)
    if len(tree.weight):
        raise ArgumentError(
            "expected a tree whose information states all cost one penalty, got weights: what is "
            "known already has no regret"
        )
    members = check_memorization_set(memorization_set, tree, player)
    own = checks.check_indices(own_entries, tree.num_entries, "own_entries")
    if (tree.entry_player[own] != player).any():
        raise ArgumentError(f"expected own_entries of player {player}, got the other player's")
    book, owned, nothing = (np.zeros(tree.num_entries, bool) for _ in range(3))
    book[members] = True
    owned[np.concatenate([members, own])] = True
    played, size = decisions.value(book.astype(np.float64), 0.0), len(members)
    gain, unprepared = decisions.gains()
    infosets = tree.entry_infoset[members]
    advantage = decisions.best().advantage
    loss, better = _losses(tree, members, advantage)
    part = _Part.of(decisions, nothing, owned)
    own_set = part.best(size)
    owned = np.isin(np.arange(tree.num_entries), own_set)
    return BookJudgment(
        tree=tree,
        player=player,
        memorization_set=members.astype(np.int32),
        size=size,
        value=played.value - tree.penalties[player] * size if size else played.value,
        utility=played.value,
        unprepared=unprepared,
        reach=decisions.reach[infosets],
        gain=gain[members],
        forgetting=played.advantage[members],
        threshold=_Part.of(decisions, nothing, book).thresholds(),
        loss=loss,
        better=better,
        best=best_set(decisions, size, Clock(None)),
        own_set=own_set,
        own_utility=decisions.value(owned.astype(np.float64), 0.0).value,
        holes=_holes(decisions, book, advantage),
        lessons=_lessons(decisions, book, learn),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """A part of the player's decisions: what some entries can reach, where others are memorized for sure.

    Attributes:
      decisions: Of the part alone; its player is 0.
      entries: int32, the entries of the part, by their numbers in the tree.
    """

    decisions: Decisions
    entries: npt.NDArray[np.int32]

    @classmethod
    def of(cls, whole: Decisions, base: npt.NDArray[np.bool_], allowed: npt.NDArray[np.bool_]) -> _Part:
        """Return the part that `allowed` entries, bool[E], can reach; `base`, bool[E], is memorized."""
        infosets, first_entry, previous, entries, after = _select(whole.treeplex, base, allowed)
        part = Forest.of_player_0(first_entry, previous, whole.forest.penalties[whole.player])
        none = np.zeros(0)
        decisions = Decisions(
            part, 0, whole.reach[infosets], whole.stop[infosets], after, none, none, whole.cut_reach
        )
        return cls(decisions, entries)

    def best(self, budget: int) -> npt.NDArray[np.int32]:
        """Return the best set of at most so many entries, increasing."""
        choice = best_within_budget(frontier_of(self.decisions), budget)
        best: npt.NDArray[np.int32] = self.entries[choice.chosen]
        return best

    def thresholds(self) -> npt.NDArray[np.float64]:
        """Return `MemoryFrontier.threshold`, where menus have one entry."""
        threshold = frontier_of(self.decisions).threshold
        assert threshold is not None
        return threshold


def _losses(
    tree: HistoryTree, members: npt.NDArray[np.int64], advantage: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return (loss, better) of each member, see `BookJudgment`."""
    loss, better = np.zeros(len(members)), np.full(len(members), -1, np.int32)
    for k, entry in enumerate(members.tolist()):
        infoset = tree.entry_infoset[entry]
        first = int(tree.first_entry[infoset])
        other = first + int(advantage[first : tree.first_entry[infoset + 1]].argmax())
        if advantage[other] - advantage[entry] > _ROUNDING * tree.scale:
            loss[k], better[k] = advantage[other] - advantage[entry], other
    return loss, better


def _holes(decisions: Decisions, book: npt.NDArray[np.bool_], advantage: npt.NDArray[np.float64]) -> Holes:
    """Return the positions where games leave the book."""
    forest = decisions.forest
    answered = np.zeros(forest.num_infosets, bool)
    answered[forest.entry_infoset[book]] = True
    before = forest.previous
    open_to = (before < 0) | np.append(book, False)[before]
    holes = np.flatnonzero((forest.infoset_player == decisions.player) & open_to & ~answered)
    first, last = forest.first_entry[holes].tolist(), forest.first_entry[holes + 1].tolist()
    parts = [slice(*ends) for ends in zip(first, last, strict=True)]
    answer = np.array([part.start + int(advantage[part].argmax()) for part in parts], np.int32)
    free = decisions.best(0.0).advantage
    gain = np.array([max(0.0, free[part].max()) for part in parts])
    cost, reach = np.maximum(advantage[answer], 0.0), decisions.reach[holes]
    order = np.lexsort((-reach, -cost))
    return Holes(holes[order].astype(np.int32), reach[order], cost[order], answer[order], gain[order])


def _lessons(decisions: Decisions, book: npt.NDArray[np.bool_], learn: int) -> Lessons:
    """Return the best `learn` entries behind a book, or fewer where no more pay."""
    chosen = np.zeros(len(book), bool)
    chosen[_Part.of(decisions, book, ~book).best(learn)] = True
    part = _Part.of(decisions, book, chosen)
    count = len(part.entries)
    net_gain = part.decisions.value(np.ones(count), 0.0).advantage
    gain, _ = part.decisions.gains()
    order = np.argsort(-part.thresholds(), kind="stable")
    return Lessons(part.entries[order], gain[order], net_gain[order])


@kernel
def _select(
    problem: Treeplex, base: np.ndarray, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (infosets, first_entry, previous, entries, after) of a part, see `_Part.of`."""
    first_entry, previous, after = problem.first_entry, problem.previous, problem.after
    where = np.full(len(base) + 1, -1, np.int64)  # 1 + an entry's number in the part; 0: before the part
    where[0] = 0
    infosets, firsts = np.empty(len(problem.owner), np.int32), np.zeros(len(problem.owner) + 1, np.int32)
    before, entries = np.empty(len(problem.owner), np.int32), np.empty(len(base), np.int32)
    worth = np.zeros(len(base) + 1)
    worth[0] = after[0]
    m, count = 0, 0
    for k in range(len(problem.owner)):
        at = where[previous[k] + 1]
        if problem.owner[k] != problem.player or at < 0:
            continue
        memorized = False
        for e in range(first_entry[k], first_entry[k + 1]):
            if base[e]:
                memorized, where[e + 1] = True, 0
                worth[0] += after[e + 1]
        if memorized:
            continue
        begins = count
        for e in range(first_entry[k], first_entry[k + 1]):
            if allowed[e]:
                entries[count] = e
                count += 1
                where[e + 1] = count
                worth[count] = after[e + 1]
        if count == begins:
            worth[at] += problem.stop[k]
            continue
        infosets[m], before[m] = k, at - 1
        m += 1
        firsts[m] = count
    return infosets[:m], firsts[: m + 1], before[:m], entries[:count], worth[: count + 1]
