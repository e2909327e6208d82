"""What travels in pickles beside the data that must: policies and games, where they can be pickled.

Users' policies and games may be anything: functions without a name, engines, or games that OpenSpiel pickles
as a string which does not load. They must not keep a tree or a book from being sent to another process. Hence
each is pickled separately, into bytes, and is None in the copy if that fails. What needs it there says so.
"""

from __future__ import annotations

import pickle
from typing import Any


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
