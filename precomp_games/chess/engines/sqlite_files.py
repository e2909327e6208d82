"""SQLite files that others may have made: nothing but our own tables is read.

A database can run: behind the name of a table there may be a view whose rows never end, a column that is
computed, or a trigger.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Sequence

__all__ = ["first_strange"]

_LISTED = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def first_strange(db: sqlite3.Connection, *statements: str, optional: Sequence[str] = ()) -> str | None:
    """The name of something that a database has or lacks, unlike one that our statements make; None if none.

    Args:
      db: the database.
      statements: what makes tables that must be there.
      optional: what makes tables that may be there.

    Raises:
      sqlite3.Error: the file is damaged.
    """
    needed, found = _made(*statements), set(db.execute(_LISTED))
    strange = (found - _made(*statements, *optional)) | (needed - found)
    return min((str(name) for _, name, *_ in strange), default=None)


@functools.cache
def _made(*statements: str) -> frozenset[tuple[str, str, str, str | None]]:
    """What a database lists that the statements have made."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for statement in statements:
            db.executescript(statement)
        return frozenset(db.execute(_LISTED))
