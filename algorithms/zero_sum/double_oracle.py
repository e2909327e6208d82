"""The exact equilibrium of the meta-game of a large tree, by small linear programs.

Optimal strategies memorize little, so most of a tree only matters through what it is worth without memory. A
double oracle allows both players some entries, folds everything else into u^sigma (`restricted_tree`),
and solves the program of that small tree (`sequence_form_lp`). Then it asks for best responses on the whole
tree, and allows what they memorize. If they memorize nothing new, they are worth no more than the
program's value, and the strategies are an equilibrium of the whole tree. Regret minimization finds most of
what matters in a few iterations, so that two or three programs are enough.

Where strategies memorize a large part of the tree, as in poker with small penalties, small programs do not
pay: once the next program has a good part of all entries, all of them are allowed. A program that is too
large for the simplex method is left to regret minimization.

Source: Bosansky, Kiekintveld, Lisy and Pechoucek, "An Exact Double-Oracle Algorithm for Zero-Sum
Extensive-Form Games with Imperfect Information", JAIR 51 (2014).

Deviations: where a player is not allowed to memorize, it plays sigma and no default strategy. There are no
temporary leaves, since u^sigma is known. A best response adds entries after any entry that is allowed, even
where its own play does not come.

Cost: the first iterations of regret minimization; for each program some passes over the tree, and the simplex
method.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from precomp_games._support.kernels import kernel
from precomp_games.tree.facts import ARRAYS, COLUMNS
from precomp_games.tree.history_tree import HistoryTree
from precomp_games.tree.meta_strategy import MetaStrategy, realization_plan

from ..preparation.decisions import Decisions
from ..programs import LinearProgramError
from .regret_minimization import RegretMinimization
from .sequence_form_lp import PlanBasis, equilibrium_plans, strategies_of

DOUBLE_ORACLE = "double_oracle"
"""Its name among the solvers."""

WARM_UP_VARIANT = "pdcfr+"
"""The variant of regret minimization that goes before, and that large programs are left to."""

_WARM_UP = 50  # iterations
_LEAST_PLAN = 1e-4  # allowed at first: what is memorized with more than this probability
_SMALL = 1000  # entries; the program of a tree with no more takes milliseconds
_PART = 0.4  # of the whole tree's entries; a program with more of them does not pay
_MOST = 50_000  # entries of a program
MOST_OF_GAME = 400_000
"""Entries of a program of a base game alone, which is thinner by far."""


class DoubleOracle:
    """A run.

    Attributes:
      iterations: The number of programs solved.
      plan: float64[E], both players' realization plans.
      allowed: bool[E], the entries of the program that they are of.
      basis: Where the program ended.
    """

    name = DOUBLE_ORACLE

    def __init__(self, tree: HistoryTree, shares: tuple[float, float] = (1.0, 1.0)) -> None:
        """Set up the first program. shares: in games with preparation, see `equilibrium_plans`."""
        self.tree = tree
        self.shares = shares
        self.iterations = 0
        self.failed = False
        self.playing = np.isfinite(np.array(tree.penalties))[tree.entry_player]
        self.plan = np.zeros(tree.num_entries)
        self.allowed = np.zeros(tree.num_entries, bool)
        self.basis = PlanBasis.of_sets(tree, self.allowed)
        self._begun, self._pending = False, True

    @property
    def too_large(self) -> bool:
        """Return whether the next program is too large for the simplex method, or HiGHS has failed."""
        most = _MOST if self.tree.may_stop else MOST_OF_GAME
        return self.failed or int(self.allowed.sum()) > most

    @property
    def warms_up(self) -> bool:
        """Return whether the tree is so large that regret minimization goes first."""
        return self.tree.may_stop and int(self.playing.sum()) > _SMALL

    @functools.cached_property
    def worth(self) -> npt.NDArray[np.float64]:
        """float64[n]: u^sigma(h) for player 0."""
        return Decisions.against(self.tree, 0).worth

    def advance(self, most: int) -> None:
        """Solve the next program; before the first one of a large tree there is the warm-up."""
        begun, self._begun = self._begun, True
        if not begun and self.warms_up:
            run = RegretMinimization(self.tree, WARM_UP_VARIANT)
            run.advance(_WARM_UP)
            own, other = run.strategies()
            self.plan = own.realization_plan() + other.realization_plan()
            self._allow(self.plan > _LEAST_PLAN)
            return
        if not begun:
            self._allow(self.playing)
        if self._pending and most > 0 and not self.too_large:
            self._solve()

    def _solve(self) -> None:
        allowed, whole = self.allowed, self.basis
        infosets = np.zeros(self.tree.num_infosets, bool)
        infosets[self.tree.entry_infoset[allowed]] = True
        small = restricted_tree(self.tree, allowed, self.worth) if self.tree.may_stop else self.tree
        basis = None
        if self.iterations:
            basis = PlanBasis(whole.entries[allowed], whole.infosets[infosets])
        elif self.warms_up:
            basis = PlanBasis.of_sets(small, self.plan[allowed] > 0.5)
        try:
            plan, ended = equilibrium_plans(small, basis, self.shares)
        except LinearProgramError:
            if self.tree.may_stop:
                raise
            self.failed = True
            return
        self.plan = np.zeros(len(allowed))
        self.plan[allowed] = plan
        whole.entries[allowed], whole.infosets[infosets] = ended
        self.iterations += 1

    def _allow(self, allowed: npt.NDArray[np.bool_]) -> None:
        """Allow these entries in the next program, or all where small programs do not pay."""
        everything = int(self.playing.sum())
        many = _PART * everything < allowed.sum() and everything <= _MOST
        self.allowed = self.playing if many else allowed

    def learn(self, chosen: npt.NDArray[np.bool_]) -> bool:
        """Allow what best responses memorize, see `answered`; return whether a program is left to solve."""
        known = self.allowed
        memorized = realization_plan(self.tree, chosen.astype(np.float64)) > 0.0
        self._pending = self.iterations == 0 or bool((memorized & ~known).any())
        if self._pending:
            grown = known.copy()
            grow(self.tree.previous[self.tree.entry_infoset], chosen, grown)
            self._allow(grown)
        return self._pending

    def strategies(self) -> tuple[MetaStrategy, MetaStrategy]:
        """Return both players' strategies of the last program, or of the warm-up."""
        return strategies_of(self.tree, self.plan)


@kernel
def grow(previous: np.ndarray, chosen: np.ndarray, allowed: np.ndarray) -> None:
    """Add to `allowed` what is chosen after something that is allowed."""
    for e in range(len(previous)):
        if chosen[e] and (previous[e] < 0 or allowed[previous[e]]):
            allowed[e] = True


def restricted_tree(
    tree: HistoryTree, allowed: npt.NDArray[np.bool_], worth: npt.NDArray[np.float64]
) -> HistoryTree:
    """Return the tree in which nothing but `allowed` may be memorized; it is small where these are few.

    Kept are the histories that lead to an information state at which something may be memorized, and what
    follows these directly. Both players play sigma from everything else on, so it is a leaf there, worth
    u^sigma(h). It takes a pass over the histories; what is kept is then copied.

    Information states and entries keep their order: the k-th allowed entry is entry k of the result.

    Args:
      tree: of a meta-game.
      allowed: bool[E]; with an entry, the owner's entry before it.
      worth: float64[n], u^sigma(h) for player 0.
    """
    infosets, inner, keeps = kept_histories(tree, allowed)
    kept = np.flatnonzero(keeps)
    parent = np.append(-1, (np.cumsum(keeps) - 1)[tree.parent[kept[1:]]])
    num_children = np.where(inner[kept], tree.num_children[kept], 0)
    small = tree_of_part(tree, kept, infosets, parent, num_children, value=worth[kept])
    if not tree.has_menus:
        return small
    edge_entry = tree.edge_entry[kept]
    plays = (edge_entry >= 0) & allowed[edge_entry]
    decides = small.infoset[parent] >= 0  # of what is not played here by an entry, some is not allowed
    before = np.append(0, np.cumsum(allowed))
    place = before[edge_entry] - before[tree.first_entry[tree.entry_infoset[edge_entry]]]
    entry = np.where(plays, place, 0)
    sigma_pre = np.where(decides & ~plays, 0.0, small.sigma_pre)
    return dataclasses.replace(
        small, sigma_pre=sigma_pre, entry=(entry if entry.any() else entry[:0]).astype(np.int16)
    )


def tree_of_part(
    tree: HistoryTree,
    kept: npt.NDArray[np.int64],
    infosets: npt.NDArray[np.bool_],
    parent: npt.NDArray[np.int64],
    num_children: npt.NDArray[np.int64],
    **columns: npt.NDArray[Any],
) -> HistoryTree:
    """Return a tree of some histories of another. Information states and entries keep their order.

    Args:
      tree: the other.
      kept: int64[k], the histories, level by level.
      infosets: bool[m], the information states that are left.
      parent: int64[k], of each in the result, -1 for the first one.
      num_children: int64[k], in the result.
      columns: arrays of the result in place of those of `tree` at `kept`.
    """
    number = np.append(np.where(infosets, np.cumsum(infosets) - 1, -1), -1)  # the last one is none
    same = {name: getattr(tree, name) for name in (*COLUMNS, "entry")}
    chosen: dict[str, Any] = {name: column[kept] for name, column in same.items() if len(column)} | {
        "parent": parent,
        "first_child": np.where(num_children > 0, 1 + np.cumsum(num_children) - num_children, -1),
        "num_children": num_children,
        "infoset": number[tree.infoset[kept]],
        "infoset_player": tree.infoset_player[infosets],
        "weight": tree.infoset_weight[infosets],
        "cut_menus": tree.cut_menus[infosets] if len(tree.cut_menus) else tree.cut_menus,
        **columns,
    }
    keys = tree.infoset_keys
    return dataclasses.replace(
        tree,
        infoset_keys=None if keys is None else tuple(itertools.compress(keys, infosets.tolist())),
        **{name: array.astype(ARRAYS.get(name, array.dtype)) for name, array in chosen.items()},
    )


def kept_histories(
    tree: HistoryTree, allowed: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return what `restricted_tree` keeps: bool[m], bool[n] (histories where play goes on), bool[n] (all)."""
    infosets = np.zeros(tree.num_infosets, bool)
    infosets[tree.entry_infoset[allowed]] = True
    inner = np.zeros(tree.num_histories, bool)
    _mark_ancestors(tree.parent, tree.infoset, infosets, inner)
    keeps = inner | inner[tree.parent]  # the root's parent is -1, and the last history is a leaf
    keeps[0] = True
    return infosets, inner, keeps


@kernel
def _mark_ancestors(parent: np.ndarray, infoset: np.ndarray, infosets: np.ndarray, inner: np.ndarray) -> None:
    """Mark the histories of these information states, and their ancestors; all are False before."""
    for h in range(len(parent) - 1, -1, -1):
        if infoset[h] >= 0 and infosets[infoset[h]]:
            inner[h] = True
        if inner[h] and h > 0:
            inner[parent[h]] = True
