"""A store of engine searches: a position is searched once per engine, limit and MultiPV, ever.

One SQLite file holds any number of engines and limits. It is written in write-ahead mode, so every
`EvaluationStore.put` that has returned survives the death of the process, even by SIGKILL; a power cut can
lose the last few rows, never the file. `EvaluationStore.export` writes a compact copy without the journal
files, fit to be shipped and opened read-only.

A search is stored under the requested limit. If that was too small for all of its lines, it was continued
until they were there, and the nodes in its row are twice the limit or more.

Layout (schema 1, marked by `application_id` and `user_version`): the texts of engines and limits
are stored once each in small tables; `searches` maps (engine, budget, multipv, epd) to depth, nodes and
the lines as text, best first: `e2e4:31 d2d4:-28`, with `#3` and `#-2` for mates. Scores are the
engine's own, from the viewpoint of the side to move; the store does not turn them into utilities. The moves
that an engine played in a number of fresh searches, `e2e4:13 d2d4:7`, are in a table of its own, `plays`,
which is created when it is first needed: a file without the table is valid and has no such moves. If an
engine gave only its move, lines are empty, and a query for lines finds nothing. Files of earlier versions
have more, which is ignored: a column `last` of `plays`, and a table `iterations`.

A file may have been damaged or made by another program, so rows are parsed strictly, and anything
odd raises `StoreError` with the position. A database can also run code: behind a table's name there may be a
view whose rows never end, a computed column, or a trigger. So a file is used only if everything in it is what
our own statements make, to the letter (`first_strange`); and a journal beside it may name a file, which
SQLite removes (`refuse_journal_of_several`). SQLite's `PRAGMA trusted_schema=OFF` would let the
endless view run: it only keeps views and triggers from functions with side effects and from virtual tables.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown
from precomp_games._support.files import write_together
from precomp_games._support.results import Shown
from precomp_games.chess.engines import searches
from precomp_games.chess.engines.pool import EngineError
from precomp_games.chess.engines.searches import SearchLimit, SearchResult

APPLICATION_ID = 0x50434753  # "PCGS"
SCHEMA_VERSION = 1
BUSY_SECONDS = 30.0  # how long to wait for another process that is writing
CHUNK = 500  # positions a query; SQLite before 3.32 takes 999 parameters

_SCHEMA = (
    "CREATE TABLE engines (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE budgets (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE searches (engine INTEGER NOT NULL, budget INTEGER NOT NULL,"
    " multipv INTEGER NOT NULL, epd TEXT NOT NULL, depth INTEGER NOT NULL,"
    " nodes INTEGER NOT NULL, lines TEXT NOT NULL,"
    " PRIMARY KEY (engine, budget, multipv, epd)) WITHOUT ROWID",
)
_PLAYS = (  # a table that is created when something is first put into it
    "CREATE TABLE IF NOT EXISTS plays (engine INTEGER NOT NULL, budget INTEGER NOT NULL,"
    " multipv INTEGER NOT NULL, epd TEXT NOT NULL, samples INTEGER NOT NULL,"
    " played TEXT NOT NULL, last TEXT NOT NULL,"
    " PRIMARY KEY (engine, budget, multipv, epd, samples)) WITHOUT ROWID"
)
_ITERATIONS = (  # which earlier versions wrote
    "CREATE TABLE IF NOT EXISTS iterations (engine INTEGER NOT NULL, budget INTEGER NOT NULL,"
    " multipv INTEGER NOT NULL, epd TEXT NOT NULL, iterations TEXT NOT NULL,"
    " PRIMARY KEY (engine, budget, multipv, epd)) WITHOUT ROWID"
)

_NAMES = "JOIN engines ON engines.id = engine JOIN budgets ON budgets.id = budget"
_ROWS = f"SELECT engines.name, budgets.name, multipv, epd, depth, nodes, lines FROM searches {_NAMES}"
_PLAYED_ROWS = f"SELECT engines.name, budgets.name, multipv, epd, samples, played, '' FROM plays {_NAMES}"
_OF_KEY = "WHERE engines.name = ? AND budgets.name = ? AND multipv = ?"

_Rows = Iterable[tuple[object, ...]]
_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # of a journal that ends with the name of a file
_LISTED = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_DAMAGED = "the file is damaged: move it away and run again, or restore a copy"
# Advice, by words of SQLite's own message; the file is damaged if none of them is in it.
_HINTS = {
    "free disk space (or raise the quota) and run again; stored rows are kept": ("full", "disk i/o"),
    "another process holds it: wait for that to finish, or use another store": ("locked", "busy"),
    "check the permissions of the file and of its directory": ("readonly", "unable to open", "permission"),
    "the file is something else: choose another path": ("not a database",),
}


class StoreError(EngineError):
    """Stored searches cannot be opened, read or written; the message says what to do."""


class EvaluationStore(Shown, contextlib.AbstractContextManager["EvaluationStore"]):
    """Searches by (engine, limit, multipv, epd) in one SQLite file.

    Usable from several threads (a lock serializes them) and from several processes at once (SQLite
    locks the file; a writer waits up to 30 seconds for another). A context manager; closing folds
    the journal into the file. Unpickled in another process, it opens its file there.

    Args:
        path: the file, created if it does not exist (its directory must), or ":memory:".
        read_only: open an existing file without writing to it or beside it, e.g. from a
            read-only installation. Meant for files made by `export`: a file that another process
            is writing is read through its journal instead.

    Raises:
        ValueError: ":memory:" to be read only.
        StoreError: the file cannot be opened, is no store, or is one of another version.
    """

    @public
    def __init__(self, path: checks.FilePath, read_only: bool = False) -> None:
        self.path, self.read_only = os.fspath(path), read_only
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        name = self.path
        if name == ":memory:":
            if read_only:
                raise ArgumentError("expected a file to open read-only, got ':memory:'")
        else:
            self._check_path()
            # `immutable` promises that nobody writes, which needs no lock files beside the
            # store; with a journal at hand the promise does not hold, and the journal has rows.
            quiet = not _has_journal(self.path)
            mode = ("mode=ro&immutable=1" if quiet else "mode=ro") if read_only else "mode=rwc"
            name = f"{Path(self.path).absolute().as_uri()}?{mode}"
        with self._errors():
            refuse_journal_of_several(self.path)
            # Transactions are begun by hand (isolation_level=None).
            self._db = sqlite3.connect(
                name, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
            )
            try:
                self._open(self._db)
            except BaseException:
                self.close()
                raise

    def __reduce__(self) -> tuple[Any, ...]:
        if self._db is None or self.path == ":memory:":
            what = "a closed one" if self._db is None else "one in this process's memory"
            raise TypeError(f"EvaluationStore: expected an open store in a file to pickle, got {what}")
        return EvaluationStore, (self.path, self.read_only)

    def _check_path(self) -> None:
        """Raise StoreError for an unusable path, since SQLite's message is the same for all of these."""
        path = Path(self.path)
        problem = None
        if not path.absolute().parent.is_dir():
            problem = "its directory does not exist: create it, or choose another path"
        elif path.exists() and not path.is_file():
            problem = "it is a directory or a device, which keeps nothing: name a file"
        elif self.read_only and not path.exists():
            problem = "there is no such file: check the path, or open it for writing to create it"
        if problem is not None:
            raise StoreError(f"expected the path of a store, got {self.path!r}: {problem}")

    def _open(self, db: sqlite3.Connection) -> None:
        """Check that the file is ours before anything is written to it, and create the tables."""
        with db:  # ends the transaction, which is begun by hand
            # In one transaction: another process may be creating it.
            db.execute("BEGIN DEFERRED" if self.read_only else "BEGIN IMMEDIATE")
            (application,), (version,) = (
                db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
            if application not in (0, APPLICATION_ID) or (
                not application and (version or db.execute(_LISTED).fetchone())
            ):
                raise StoreError(
                    "expected an evaluation store, got an SQLite database of another program in "
                    f"{self.path!r}: choose another path"
                )
            if application and version != SCHEMA_VERSION:
                raise StoreError(
                    f"expected a store of schema version {SCHEMA_VERSION}, got version {version} in "
                    f"{self.path!r}: use the release that wrote it, or another file"
                )
            if not application:
                if self.read_only:
                    raise StoreError(f"expected a store to read, got an empty file {self.path!r}")
                _create_tables(db)
            elif strange := first_strange(db, *_SCHEMA, optional=(_PLAYS, _ITERATIONS)):
                raise StoreError(
                    f"expected the tables of a store in {self.path!r}, got another or no "
                    f"{shown(strange)}: {_DAMAGED}"
                )
        if self.read_only:
            return
        # Changing the journal mode does not wait for other processes, so wait here.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                db.execute("PRAGMA journal_mode=WAL").fetchone()
                break
            except sqlite3.OperationalError as err:
                if "locked" not in str(err) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        db.execute("PRAGMA synchronous=NORMAL")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite's errors into a StoreError that says what to do."""
        try:
            yield
        except sqlite3.Error as err:
            text = str(err).lower()
            hint = next((hint for hint, words in _HINTS.items() if any(w in text for w in words)), _DAMAGED)
            raise StoreError(
                f"expected a usable store in {self.path!r}, got {one_line(err)}: {hint}"
            ) from err

    @contextlib.contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Yield the database for this thread alone; raise StoreError if it is closed, or on failure."""
        with self._lock, self._errors():
            if self._db is None:
                raise StoreError("expected an open store, got a closed one")
            yield self._db

    @public
    def put(
        self, engine: _Text, limit: _Limit, multipv: searches.Multipv, epd: _Text, result: SearchResult
    ) -> None:
        """Store a search; on return it is committed. A search already there is left as it is.

        Args:
            engine: the engine's identity, `EnginePool.engine_id`.
            limit: a `SearchLimit`, or its text, e.g. "nodes=5000".
            multipv: the MultiPV of the search, 1 or more.
            epd: the position, without clocks.
            result: the result, from the side to move's viewpoint.

        Raises:
            ValueError: a key or a result that could not be read back.
            StoreError: a store that is read-only, closed, damaged or on a full disk.
        """
        searched = (result.depth, result.nodes, searches.encode_lines(result.lines))
        played = searches.encode_played(result.played)
        try:
            searches.decode(multipv, result.samples, *searched, played)
        except ValueError as err:
            raise ArgumentError(
                f"expected a search result of 1 to {multipv} lines for {epd!r}, got {err}"
            ) from None
        with self._database() as db:
            if self.read_only:
                raise StoreError(
                    f"expected a store opened for writing, got {self.path!r} opened read-only: "
                    "copy it and open the copy"
                )
            with db:
                db.execute("BEGIN IMMEDIATE")
                key = (engine, str(limit), multipv, epd)
                _insert(db, "searches", *key, *searched)
                if result.played:
                    _insert(db, "plays", *key, result.samples, played, "")

    @public
    def get_many(
        self,
        engine: _Text,
        limit: _Limit,
        multipv: searches.Multipv,
        epds: searches.Positions,
        samples: searches.Samples = 0,
    ) -> dict[str, SearchResult]:
        """Return the stored searches of these positions, by EPD; missing ones are left out.

        Args:
            engine: the engine's identity.
            limit: a `SearchLimit`, or its text.
            multipv: the MultiPV of the searches.
            epds: the positions, without clocks.
            samples: with the moves played in so many searches, if they are stored. 0: without.

        Raises:
            StoreError: a store that is closed or damaged, or a row that `put` does not write.
        """
        asked = dict.fromkeys(epds)
        wanted = list(asked)
        results: dict[str, SearchResult] = {}
        key = [engine, str(limit), multipv, *([samples] if samples else [])]
        query = f"SELECT epd, depth, nodes, lines FROM searches {_NAMES} {_OF_KEY} AND lines != ''"
        if samples:
            tables = f"searches JOIN plays USING (engine, budget, multipv, epd) {_NAMES}"
            query = f"SELECT epd, depth, nodes, lines, played FROM {tables} {_OF_KEY} AND samples = ?"
        with self._database() as db:
            if samples and not _has_plays(db):
                return results
            for start in range(0, len(wanted), CHUNK):
                chunk = wanted[start : start + CHUNK]
                marks = ",".join("?" * len(chunk))
                for epd, *row in db.execute(f"{query} AND epd IN ({marks})", (*key, *chunk)):
                    try:
                        if epd not in asked:  # a damaged index finds other rows
                            raise ValueError("a position that was not asked for")
                        results[epd] = searches.decode(multipv, samples, *row)
                    except ValueError as err:
                        raise StoreError(
                            f"expected a search in {self.path!r} for {epd!r}, got {err}: {_DAMAGED}"
                        ) from None
        return results

    @public
    def engines(self) -> list[str]:
        """Return the identities of the engines with at least one search, in alphabetical order."""
        with self._database() as db:
            rows = db.execute(
                "SELECT name FROM engines WHERE EXISTS "
                "(SELECT 1 FROM searches WHERE engine = engines.id) ORDER BY name"
            )
            return [str(name) for (name,) in rows]

    @public
    def __len__(self) -> int:
        """Return the number of searches."""
        with self._database() as db:
            return int(db.execute("SELECT count(*) FROM searches").fetchone()[0])

    def __bool__(self) -> bool:
        """Return True: an empty store is a store."""
        return True

    @public
    def export(self, path: checks.FilePath, keys: _Keys | None = None) -> None:
        """Write a compact copy: one file without journals, the same bytes for the same content.

        The file appears under its name only when it is complete, in place of an older one.

        Args:
            path: the file to write; not the store itself, nor a store that is open for writing.
            keys: the (engine, limit, multipv, epd) to keep, with all moves played there; None keeps all.

        Raises:
            StoreError: the copy cannot be written, or a key is not in the store.
        """
        target = Path(path).absolute()
        own = target.exists() and self.path != ":memory:" and target.samefile(self.path)
        if own or _has_journal(target):
            raise StoreError(f"expected a path that no store is open on, got {path!s}: choose another")
        with self._database() as db:
            order = "ORDER BY engines.name, budgets.name, multipv, epd"
            rows: _Rows = db.execute(f"{_ROWS} {order}")
            plays: _Rows = db.execute(f"{_PLAYED_ROWS} {order}, samples") if _has_plays(db) else ()
            if keys is not None:
                chosen = keys
                rows = [db.execute(f"{_ROWS} {_OF_KEY} AND epd = ?", key).fetchone() for key in chosen]
                kept = set(chosen)
                plays = [row for row in plays if row[:4] in kept]
                missing = [key for key, row in zip(chosen, rows, strict=True) if row is None]
                if missing:
                    raise StoreError(
                        f"expected keys that are stored, got {len(missing)} of {len(chosen)} that are "
                        f"not, the first {missing[0]!r}"
                    )
            try:
                with write_together(target.parent) as drafts:
                    _write_copy(drafts / target.name, {"searches": rows, "plays": plays})
            except OSError as err:
                raise StoreError(f"expected to write {path!s}, got {err}") from err

    def close(self) -> None:
        """Close the store; calling it again is harmless."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def _text(value: Any, name: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise ArgumentError(f"expected {name} to be text, got {shown(value)}")


def _keys(value: Any, name: str) -> list[tuple[str, str, int, str]]:
    """Return the different keys, sorted, with their limits as text."""
    try:
        given = [(engine, limit, multipv, epd) for engine, limit, multipv, epd in value]
    except (TypeError, ValueError):
        raise ArgumentError(f"expected {name} (engine, limit, multipv, epd), got {shown(value)}") from None
    most = {"least": 1, "most": searches.MAX_MULTIPV}
    return sorted(
        {
            (
                _text(engine, "engine"),
                searches.limit_text(limit, "limit"),
                checks.check_integer(multipv, "multipv", **most),
                _text(epd, "epd"),
            )
            for engine, limit, multipv, epd in given
        }
    )


_Text = Annotated[str, checks.Check(_text)]
_Limit = Annotated[SearchLimit | str, checks.Check(searches.limit_text)]
_Keys = Annotated[Any, checks.Check(_keys)]


def _create_tables(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _has_plays(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'plays'").fetchone() is not None


def _insert(db: sqlite3.Connection, table: str, engine: object, budget: object, *rest: object) -> None:
    """Add a row to a table, with engine and limit by name, unless its key is already there."""
    if table == "plays":
        db.execute(_PLAYS)
    db.execute("INSERT OR IGNORE INTO engines (name) VALUES (?)", (engine,))
    db.execute("INSERT OR IGNORE INTO budgets (name) VALUES (?)", (budget,))
    db.execute(
        f"INSERT OR IGNORE INTO {table} SELECT engines.id, budgets.id{', ?' * len(rest)} "
        "FROM engines, budgets WHERE engines.name = ? AND budgets.name = ?",
        (*rest, engine, budget),
    )


def _write_copy(path: Path, rows: dict[str, _Rows]) -> None:
    """Write a new store with these rows of tables (engine and limit by name), in the given order."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")
        copy.execute("BEGIN")
        _create_tables(copy)
        for table, each in rows.items():
            for row in each:
                _insert(copy, table, *row)
        copy.execute("COMMIT")
        copy.execute("VACUUM")


def _has_journal(path: str | os.PathLike[str]) -> bool:
    """Return whether a write-ahead journal with content stands beside the file."""
    with contextlib.suppress(OSError):
        return os.stat(f"{os.fspath(path)}-wal").st_size > 0
    return False


def refuse_journal_of_several(path: str | os.PathLike[str]) -> None:
    """Raise for a journal beside a database that names a file: SQLite would read that file, and remove it.

    Such a journal belongs to a transaction of several databases, which ours never are.

    Raises:
        sqlite3.DatabaseError: there is such a journal.
    """
    with contextlib.suppress(OSError), open(f"{os.fspath(path)}-journal", "rb") as journal:
        journal.seek(-len(_JOURNAL_END), os.SEEK_END)
        if journal.read() == _JOURNAL_END:
            raise sqlite3.DatabaseError("a journal beside it that names another file: remove the journal")


def first_strange(db: sqlite3.Connection, *statements: str, optional: Sequence[str] = ()) -> str | None:
    """Return the name of an entry of a database that differs from our statements' tables; None if none does.

    Args:
        db: the database.
        statements: the statements of tables that must be there.
        optional: the statements of tables that may be there.

    Raises:
        sqlite3.Error: the file is damaged.
    """
    needed, listed = _made(*statements), set(db.execute(_LISTED))
    strange = (listed - _made(*statements, *optional)) | (needed - listed)
    return min((str(name) for _, name, *_ in strange), default=None)


@functools.cache
def _made(*statements: str) -> frozenset[tuple[str, str, str, str | None]]:
    """Return SQLite's listing of a database that the statements make."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for statement in statements:
            db.executescript(statement)
        return frozenset(db.execute(_LISTED))
