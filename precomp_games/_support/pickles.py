"""What travels in pickles beside the data that must: policies and games, where they can be pickled.

Policies and games are whatever users make of them: functions without a name, engines, games that OpenSpiel
pickles as a string which does not load. They must not keep a tree or a book from going to another process,
and whoever needs one that did not come along says so. Hence they are pickled by themselves, into bytes.
"""

from __future__ import annotations

import pickle
from typing import Any

__all__ = ["packed", "unpacked"]


def packed(thing: Any) -> bytes | None:
    """The pickle of what is to come along if it can; None where it cannot."""
    try:
        return pickle.dumps(thing)
    except Exception:  # objects raise what they like
        return None


def unpacked(data: bytes | None) -> Any:
    """What `packed` was given; None where it cannot be had here.

    This process may lack a module, a registered game or a file that the other one had.
    """
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # as above
        return None
