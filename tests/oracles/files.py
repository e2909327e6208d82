"""Files that somebody changed."""

import copy
from typing import Any


def with_value(data: Any, at: str, value: Any) -> Any:
    """Return JSON data with another value at a place, such as rows.0.speed."""
    changed = copy.deepcopy(data)
    *names, last = (int(name) if name.isdigit() else name for name in at.split("."))
    inner = changed
    for name in names:
        inner = inner[name]
    inner[last] = value
    return changed
