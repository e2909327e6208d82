"""Arrays of a history tree: the conditions that make them a tree, and their files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, shown
from precomp_games._support.files import read_archive, write_archive
from precomp_games.tree.facts import ARRAYS, CHANCE, FORMAT, NEVER, OPTIONAL, TERMINAL, TreeFacts

_Tree = TypeVar("_Tree", bound=TreeFacts)

_MOST_ACTION = 2**31 - 1  # OpenSpiel has a game's number of actions as int32
_ROUNDING = 1e-6  # of sums of probabilities


def write_fields(tree: TreeFacts, path: str) -> None:
    """Write a tree's file, see `HistoryTree.save`."""
    more = {"penalties": tree.penalties, "cut_for": tree.cut_for, "work": tree.work}
    more["fingerprint"] = tree.fingerprint
    names = [*ARRAYS, *(name for name in OPTIONAL if len(getattr(tree, name)))]
    write_archive(path, tree.header() | more, {name: getattr(tree, name) for name in names})


def read_tree(kind: type[_Tree], path: str) -> _Tree:
    """Read a tree's file, see `HistoryTree.load`.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no such file, damaged, or not a tree.
    """
    try:
        head, arrays = read_archive(path, ARRAYS, OPTIONAL)
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']!r}")
        keys, fingerprint, penalties = head["infoset_keys"], head["fingerprint"], list(head["penalties"])
        of_game = head["stop_value"] == NEVER and penalties == [0.0, 0.0]  # alone, where nothing has a price
        tree = kind(
            game_string=str(head["game"]),
            penalties=(0.0, 0.0) if of_game else checks.check_penalties(penalties),
            utility_range=float(head["utility_range"]),
            utility_sum=float(head["utility_sum"]),
            stop_value=str(head["stop_value"]),
            cut_for=str(head.get("cut_for", "infosets")),
            value_of=head.get("value_of"),
            infoset_keys=None if keys is None else tuple(map(str, keys)),
            work=dict(head["work"]),
            **arrays,
        )
        check_arrays(tree)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        wanted, got = f'a file written by HistoryTree.save() ("{FORMAT}")', f"{path!r}: {one_line(error)}"
        raise ArgumentError(f"expected {wanted}, got {got}") from error
    if tree.fingerprint != fingerprint:
        got = f"another one: {path!r} was damaged"
        raise ArgumentError(f"expected fingerprint {shown(fingerprint)} of what is in the file, got {got}")
    return tree


def check_arrays(tree: TreeFacts) -> None:
    """Check that the arrays describe a tree, see `HistoryTree.check`.

    Raises:
      ValueError: an array does not describe a tree; the error names it.
    """
    n, m = len(tree.parent), len(tree.infoset_player)
    for name, kind in (ARRAYS | OPTIONAL).items():
        array = getattr(tree, name)
        expected = m if name in ("infoset_player", "weight", "cut_menus") else n
        if array.dtype != kind or array.ndim != 1:
            raise ValueError(f"{name} is {array.dtype}[{array.shape}], not {np.dtype(kind)}[n]")
        if len(array) != expected and not (name in ("position", *OPTIONAL) and len(array) == 0):
            raise ValueError(f"{name} has {len(array)} entries, not {expected}")
    for name, holds in _claims(tree, n, m):
        if not holds:
            raise ValueError(f"{name} does not describe a tree")


def _claims(tree: TreeFacts, n: int, m: int) -> Iterator[tuple[str, Any]]:
    """Yield the name of each array with a condition on it, which relies on those before."""
    yield "parent", n > 0 and tree.parent[0] == -1
    yield "utility_sum", np.isfinite(tree.utility_sum)
    yield "utility_range", np.isfinite(tree.utility_range)
    yield "stop_value", tree.stop_value in ("backup", "evaluate", NEVER)
    yield "cut_for", tree.cut_for in ("nothing", "infosets", "positions")
    yield "infoset_keys", tree.infoset_keys is None or len(tree.infoset_keys) == m
    yield "parent", ((tree.parent[1:] >= 0) & (tree.parent[1:] < np.arange(1, n))).all()
    inner = tree.num_children > 0
    ends = np.cumsum(tree.num_children[inner], dtype=np.int64)
    yield "num_children", (np.bincount(tree.parent[1:], minlength=n) == tree.num_children).all()
    yield "first_child", (tree.first_child[~inner] == -1).all()
    yield "first_child", (tree.first_child[inner] == 1 + ends - tree.num_children[inner]).all()
    yield "first_child", (np.diff(tree.parent[1:]) >= 0).all()
    yield "player", np.isin(tree.player, (0, 1, CHANCE, TERMINAL)).all()
    yield "player", not (inner & (tree.player == TERMINAL)).any()
    yield "infoset", (tree.infoset >= -1).all() and (tree.infoset < m).all()
    yield "infoset", not ((tree.infoset >= 0) & ~inner).any()
    yield "sigma", ((tree.sigma >= 0.0) & (tree.sigma <= 1.0)).all() and _are_rows(tree)
    yield "sigma_pre", ((tree.sigma_pre >= 0.0) & (tree.sigma_pre <= 1.0)).all()
    yield "action", (tree.action[1:] >= 0).all() and (tree.action < _MOST_ACTION).all()
    yield "value", np.isfinite(tree.value[~inner]).all()
    yield "value_1", not len(tree.value_1) or (not tree.may_stop and np.isfinite(tree.value_1[~inner]).all())
    yield "value_of", tree.value_of in (None, 0, 1) and (tree.may_stop or tree.value_of is None)
    yield "weight", (np.isfinite(tree.weight) & (tree.weight >= 0.0)).all()
    yield "action", ((np.diff(tree.action[1:]) > 0) | (np.diff(tree.parent[1:]) > 0)).all()
    decisions = np.flatnonzero(tree.infoset >= 0)
    first = np.full(m, n)
    np.minimum.at(first, tree.infoset[decisions], decisions)
    yield "infoset_player", (tree.infoset_player[tree.infoset[decisions]] == tree.player[decisions]).all()
    yield "infoset_player", np.isin(tree.infoset_player, (0, 1)).all() and (first < n).all()
    yield "infoset", all((np.diff(first[tree.infoset_player == i]) > 0).all() for i in (0, 1))
    yield "value", tree.stop_value != "evaluate" or np.isfinite(tree.value[decisions]).all()
    yield "entry", not tree.has_menus or _are_menus(tree)
    yield "sigma_pre", tree.may_stop or _is_game(tree)


def _is_game(tree: TreeFacts) -> bool:
    """Return whether each action at each turn of a player is an entry of its own, at no price."""
    decides = (tree.player >= 0) & (tree.num_children > 0)
    own = decides[tree.parent]
    own[0] = False
    counts = np.diff(tree.first_entry)
    # Each history of an information state has the same actions, after the same entry of the mover's before.
    entry, edges = tree.edge_entry, np.flatnonzero(own)
    action, before = np.full(tree.num_entries, -1), np.full(tree.num_infosets, -1)
    action[entry[edges]] = tree.action[edges]
    last = np.where(tree.player == 0, *tree.own_edges)
    last = np.where(last > 0, entry[last], -1)[decides]
    before[tree.infoset[decides]] = last
    return bool(
        (action[entry[edges]] == tree.action[edges]).all()
        and (before[tree.infoset[decides]] == last).all()
        and (tree.infoset_keys is not None or np.count_nonzero(decides) == tree.num_infosets)
        and tree.penalties == (0.0, 0.0)
        and ((tree.infoset >= 0) == decides).all()
        and ((tree.player >= 0) == decides).all()
        and (tree.sigma_pre[own] == 1.0).all()
        and not tree.sigma[own].any()
        and (counts[tree.infoset[decides]] == tree.num_children[decides]).all()
    )


def _are_rows(tree: TreeFacts) -> bool:
    """Return whether no row of sigma sums to more than 1, and chance's rows sum to 1."""
    total = np.bincount(tree.parent[1:], tree.sigma[1:], minlength=len(tree.parent))
    chance = total[(tree.player == CHANCE) & (tree.num_children > 0)]
    return bool((total <= 1.0 + _ROUNDING).all() and (chance >= 1.0 - _ROUNDING).all())


def _are_menus(tree: TreeFacts) -> bool:
    """Return whether `entry` has, at each history of an information state, the same numbers from 0 on."""
    used = (tree.entry >= 0) & (tree.infoset[tree.parent] >= 0) & (tree.sigma_pre > 0.0)
    used[0] = False
    if tree.entry[~used].any():
        return False
    edges, kinds = np.flatnonzero(used), int(tree.entry.max(initial=0)) + 1
    parent = tree.parent[edges].astype(np.int64)
    owners = np.unique(parent * kinds + tree.entry[edges]) // kinds
    entries = np.bincount(owners, minlength=tree.num_histories)
    decisions = np.flatnonzero(tree.infoset >= 0)
    wanted = np.diff(tree.first_entry)[tree.infoset[decisions]]
    return bool(tree.entry.any() and (entries[decisions] == wanted).all())
