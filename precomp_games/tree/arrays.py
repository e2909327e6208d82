"""The arrays of a history tree: what makes them a tree, and their files."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from precomp_games._support.files import read_archive, write_archive
from precomp_games._support.validation import ArgumentError, check_penalties, one_line, shown
from precomp_games.tree.facts import (
    ARRAYS,
    CHANCE,
    FORMAT,
    NEVER,
    OPTIONAL,
    TERMINAL,
    TreeFacts,
)

_Tree = TypeVar("_Tree", bound=TreeFacts)

_MOST_ACTION = 2**31 - 1  # OpenSpiel has a game's number of actions as int32
_ROUNDING = 1e-6  # of sums of probabilities


def write_fields(tree: TreeFacts, path: str) -> None:
    """See `HistoryTree.save`."""
    more = {"penalties": tree.penalties, "cut_for": tree.cut_for, "work": tree.work}
    more["fingerprint"] = tree.fingerprint
    names = [*ARRAYS, *(name for name in OPTIONAL if len(getattr(tree, name)))]
    write_archive(path, tree.header() | more, {name: getattr(tree, name) for name in names})


def read_tree(kind: type[_Tree], path: str) -> _Tree:
    """See `HistoryTree.load`.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no such file, damaged, or not a tree.
    """
    try:
        head, arrays = read_archive(path, ARRAYS, OPTIONAL)
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']!r}")
        keys, fingerprint = head["infoset_keys"], head["fingerprint"]
        tree = kind(
            game_string=str(head["game"]),
            penalties=_penalties(head),
            utility_range=float(head["utility_range"]),
            utility_sum=float(head["utility_sum"]),
            stop_value=str(head["stop_value"]),
            cut_for=str(head.get("cut_for", "infosets")),
            infoset_keys=None if keys is None else tuple(map(str, keys)),
            work=dict(head["work"]),
            **arrays,
        )
        check_arrays(tree)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArgumentError(
            f'expected a file written by HistoryTree.save() ("{FORMAT}"), got {path!r}: {one_line(error)}'
        ) from error
    if tree.fingerprint != fingerprint:
        raise ArgumentError(
            f"expected fingerprint {shown(fingerprint)} of what is in the file, got another one: "
            f"{path!r} was damaged"
        )
    return tree


def check_arrays(tree: TreeFacts) -> None:
    """See `HistoryTree.check`.

    Raises:
      ValueError: the arrays are not a tree; says which one.
    """
    n, m = len(tree.parent), len(tree.infoset_player)
    for name, kind in (ARRAYS | OPTIONAL).items():
        array = getattr(tree, name)
        expected = m if name in ("infoset_player", "weight", "cut_menus") else n
        if array.dtype != kind or array.ndim != 1:
            raise ValueError(f"{name} is {array.dtype}[{array.shape}], not {np.dtype(kind)}[n]")
        if len(array) != expected and not (name in ("position", *OPTIONAL) and len(array) == 0):
            raise ValueError(f"{name} has {len(array)} entries, not {expected}")
    if n == 0:
        raise ValueError("there is no root")
    if not (np.isfinite(tree.utility_sum) and np.isfinite(tree.utility_range)):
        raise ValueError("utility_sum or utility_range is no number")
    if tree.stop_value not in ("backup", "evaluate", NEVER):
        raise ValueError(f"stop_value is {tree.stop_value!r}")
    if tree.cut_for not in ("nothing", "infosets", "positions"):
        raise ValueError(f"cut_for is {tree.cut_for!r}")
    if tree.infoset_keys is not None and len(tree.infoset_keys) != m:
        raise ValueError(f"there are {len(tree.infoset_keys)} infoset_keys, not {m}")
    if not (tree.parent[0] == -1 and ((tree.parent[1:] >= 0) & (tree.parent[1:] < np.arange(1, n))).all()):
        raise ValueError("parent does not describe a tree")
    inner = tree.num_children > 0
    ends = np.cumsum(tree.num_children[inner], dtype=np.int64)
    sane = {
        "num_children": (np.bincount(tree.parent[1:], minlength=n) == tree.num_children).all(),
        "first_child": (tree.first_child[~inner] == -1).all()
        and (tree.first_child[inner] == 1 + ends - tree.num_children[inner]).all()
        and (np.diff(tree.parent[1:]) >= 0).all(),
        "player": np.isin(tree.player, (0, 1, CHANCE, TERMINAL)).all()
        and not (inner & (tree.player == TERMINAL)).any(),
        "infoset": (tree.infoset >= -1).all()
        and (tree.infoset < m).all()
        and not ((tree.infoset >= 0) & ~inner).any(),
        "sigma": ((tree.sigma >= 0.0) & (tree.sigma <= 1.0)).all() and _are_rows(tree),
        "sigma_pre": ((tree.sigma_pre >= 0.0) & (tree.sigma_pre <= 1.0)).all(),
        "action": (tree.action[1:] >= 0).all() and (tree.action < _MOST_ACTION).all(),
        "value": np.isfinite(tree.value[~inner]).all(),
        "weight": (np.isfinite(tree.weight) & (tree.weight >= 0.0)).all(),
    }
    for name, holds in sane.items():
        if not holds:
            raise ValueError(f"{name} does not describe a tree")
    decisions = np.flatnonzero(tree.infoset >= 0)
    first = np.full(m, n)
    np.minimum.at(first, tree.infoset[decisions], decisions)
    ordered = {
        "action": ((np.diff(tree.action[1:]) > 0) | (np.diff(tree.parent[1:]) > 0)).all(),
        "infoset_player": (tree.infoset_player[tree.infoset[decisions]] == tree.player[decisions]).all()
        and np.isin(tree.infoset_player, (0, 1)).all()
        and (first < n).all(),
        "infoset": all((np.diff(first[tree.infoset_player == i]) > 0).all() for i in (0, 1)),
        "value": tree.stop_value != "evaluate" or np.isfinite(tree.value[decisions]).all(),
    }
    for name, holds in ordered.items():
        if not holds:
            raise ValueError(f"{name} does not describe a tree")
    if tree.has_menus and not _are_menus(tree):
        raise ValueError("entry does not describe menus")
    if not tree.may_stop and not _is_game(tree):
        raise ValueError("sigma_pre does not describe a base game alone")


def _penalties(head: dict[str, Any]) -> tuple[float, float]:
    """Those of a file: none in the tree of a base game alone."""
    penalties = list(head["penalties"])
    return (
        (0.0, 0.0) if head["stop_value"] == NEVER and penalties == [0.0, 0.0] else check_penalties(penalties)
    )


def _is_game(tree: TreeFacts) -> bool:
    """Whether at each turn of a player each action is an entry of its own, at no price."""
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
    """Whether no row of sigma sums to more than 1, and those of chance to nothing else."""
    total = np.bincount(tree.parent[1:], tree.sigma[1:], minlength=len(tree.parent))
    chance = total[(tree.player == CHANCE) & (tree.num_children > 0)]
    return bool((total <= 1.0 + _ROUNDING).all() and (chance >= 1.0 - _ROUNDING).all())


def _are_menus(tree: TreeFacts) -> bool:
    """Whether `entry` has, at each history of an information state, the same numbers from 0 on."""
    used = (tree.entry >= 0) & (tree.infoset[tree.parent] >= 0) & (tree.sigma_pre > 0.0)
    used[0] = False
    if tree.entry[~used].any():
        return False
    edges, kinds = np.flatnonzero(used), int(tree.entry.max(initial=0)) + 1
    parent = tree.parent[edges].astype(np.int64)
    entries = np.bincount(
        np.unique(parent * kinds + tree.entry[edges]) // kinds, minlength=tree.num_histories
    )
    decisions = np.flatnonzero(tree.infoset >= 0)
    wanted = np.diff(tree.first_entry)[tree.infoset[decisions]]
    return bool(tree.entry.any() and (entries[decisions] == wanted).all())
