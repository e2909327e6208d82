"""What is taken out of the arrays of a tree once they are complete, and what menus have to be there.

`arrays` are those of `levels.COLUMNS`, `infoset_player` and `weight`; the functions change them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["drop_histories", "settle_menus"]

_OF_INFOSETS = ("infoset_player", "weight")  # the other arrays have a number for each history


def drop_histories(
    arrays: dict[str, np.ndarray], decides: npt.NDArray[np.bool_], gone: npt.NDArray[np.bool_]
) -> None:
    """Takes histories out of a perfect-information tree; those that decide no more become leaves."""
    kept = ~gone
    index = np.cumsum(kept, dtype=np.int32) - 1
    for name in _OF_INFOSETS:
        arrays[name] = arrays[name][arrays["infoset"][kept & decides]]
    arrays["infoset"] = np.where(decides, np.cumsum(kept & decides) - 1, -1).astype(np.int32)
    for name, column in arrays.items():
        if name not in _OF_INFOSETS and len(column):
            arrays[name] = column[kept]
    parent = arrays["parent"]
    parent[1:] = index[parent[1:]]
    children = np.bincount(parent[1:], minlength=len(parent))
    arrays["num_children"] = children.astype(np.int32)
    first = np.where(children > 0, 1 + np.cumsum(children) - children, -1)
    arrays["first_child"] = first.astype(np.int32)


def settle_menus(arrays: dict[str, np.ndarray], keys: list[str] | None) -> list[str] | None:
    """Numbers the entries that are left from 0 on; where there are none, nothing can be memorized.

    Returns:
      `keys`, those of the information states that are left.

    Raises:
      ValueError: the histories of an information state have different menus.
    """
    parent, infoset = arrays["parent"], arrays["infoset"]
    edges = 1 + np.flatnonzero((infoset[parent[1:]] >= 0) & (arrays["sigma_pre"][1:] > 0.0))
    most = int(arrays["entry"].max(initial=0)) + 1
    menus, place = np.unique(
        parent[edges].astype(np.int64) * most + arrays["entry"][edges], return_inverse=True
    )
    owner = menus // most
    arrays["entry"][:] = 0
    arrays["entry"][edges] = (np.arange(len(menus)) - np.searchsorted(owner, owner))[place]
    if keys is not None:
        _check_alike(arrays, keys, edges)
    if not arrays["entry"].any():  # one entry each, which goes without saying
        arrays["entry"] = arrays["entry"][:0]
    has_entries = np.zeros(len(parent), bool)
    has_entries[owner] = True
    kept = np.zeros(len(arrays["infoset_player"]), bool)
    kept[infoset[has_entries]] = True
    if not kept.all():
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        arrays["infoset"] = np.where(infoset >= 0, number[infoset], np.int32(-1)) if len(number) else infoset
        for name in _OF_INFOSETS:
            arrays[name] = arrays[name][kept]
    return keys if keys is None else [key for key, stays in zip(keys, kept.tolist(), strict=True) if stays]


def _check_alike(arrays: dict[str, np.ndarray], keys: list[str], edges: npt.NDArray[np.int64]) -> None:
    """Refuses menus that differ between the histories of an information state."""
    parent, infoset, entry = arrays["parent"], arrays["infoset"], arrays["entry"]
    counts = np.zeros((2, len(keys)), np.int64)
    entries = np.zeros(len(parent), np.int64)
    np.maximum.at(entries, parent[edges], 1 + entry[edges].astype(np.int64))
    decisions = np.flatnonzero(infoset >= 0)
    counts[0] = len(parent)
    np.minimum.at(counts[0], infoset[decisions], entries[decisions])
    np.maximum.at(counts[1], infoset[decisions], entries[decisions])
    pairs = np.stack([infoset[parent[edges]].astype(np.int64), arrays["action"][edges], entry[edges]])
    distinct = np.unique(pairs, axis=1)
    twice = (np.diff(distinct[0]) == 0) & (np.diff(distinct[1]) == 0)
    wrong = np.append(np.flatnonzero(counts[0] != counts[1]), distinct[0][1:][twice])
    if len(wrong):
        raise ValueError(
            "HistoryTree.from_game(): expected the menus of sigma_pre to be the same at all histories of an "
            f"information state, got different ones at {keys[int(wrong[0])]!r}"
        )
