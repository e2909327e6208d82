"""What is taken out of the arrays of a tree once they are complete, and how menus are numbered.

`arrays` are those of `levels.COLUMNS`, `infoset_player`, `weight` and `cut_menus`; the functions change them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["drop_histories", "settle_menus"]

_OF_INFOSETS = ("infoset_player", "weight", "cut_menus")  # the other arrays have a number for each history


def drop_histories(
    arrays: dict[str, np.ndarray], decides: npt.NDArray[np.bool_], gone: npt.NDArray[np.bool_]
) -> None:
    """Takes histories out of a perfect-information tree; those that decide no more become leaves.

    What menus lose by that is noted in `cut_menus`.
    """
    kept = ~gone
    # Where the mover goes on to decide, what is gone behind a memorized move is an entry that cannot pay.
    behind = 1 + np.flatnonzero(gone[1:] & (arrays["sigma_pre"][1:] > 0.0))
    lost = np.zeros(len(gone), bool)
    lost[arrays["parent"][behind]] = True
    arrays["cut_menus"][arrays["infoset"][lost & kept & decides]] = True
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
