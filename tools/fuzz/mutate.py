"""Inputs that are nearly right: real ones, damaged as files get damaged, or changed with harmful intent."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Plain = Callable[[bytes], bytes]
"""Changes bytes, whatever they are."""
_NUMBERS = (
    *b"0 -0 -1 1 00 0x10 1_000 1e999 -1e999 1e-999 NaN Infinity 0.5 2147483648 4294967296".split(),
    *b"9223372036854775808 18446744073709551616 1000000000000000".split(),
    *(b"9" * 40, b"9" * 400, b"9" * 5000, b"-" + b"9" * 5000, "²".encode(), "٣".encode()),
)
_ODD = (
    *(b"\0", b"\r", b"\n", b"\r\n", b"\t", b"\x0b", b"\x1a", b"\x1b[2J", b"\x7f", b"\x85", b" " * 300),
    *("\u2028".encode(), "\u202e".encode(), "\ufeff".encode(), "é".encode("latin-1"), "é".encode()),
    *("😀".encode(), b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"%s%n", b"../../x"),
    *(bracket * 1200 for bracket in (b"(", b"[", b"{", b'{"a":', b"<")),
)


def damaged(rng: random.Random, data: bytes, words: Sequence[bytes] = ()) -> bytes:
    """Return some bytes after a few changes; `words` are tokens that the reader knows."""
    for _ in range(min(1 + int(rng.expovariate(0.7)), 8)):
        first = rng.randrange(len(data) + 1)
        last = min(len(data), first + rng.randrange(rng.choice((1, 2, 4, 16, 64, 1024))) + 1)
        part = data[first:last]
        put = (
            *(b"", b"", part * rng.choice((2, 3, 200)), bytes(byte ^ 32 for byte in part), rng.choice(_ODD)),
            *(rng.choice(_NUMBERS), rng.choice(words or _ODD), rng.choice(words or _ODD)),
        )
        data = data[:first] + rng.choice(put) + data[last if rng.random() < 0.7 else first :]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data


# -- JSON --------------------------------------------------------------------------------------------------


VALUES: tuple[Any, ...] = (
    *(True, None, -1, 0.5, 1e400, 10**400, float("nan"), "", "x/../../victim/repertoire", [], {}, [[True]]),
    *({"x": {"x": None}}, json.loads("[" * 300 + "]" * 300), 0, 1, 2, 1e308, 5e-324, 2**63, -(10**20), "0"),
    *("NaN", "e2e4q", "0000", "P@e4", "\0", "\ud800", "\u2028", "x" * 5000, "/etc/passwd", "[" * 3000),
    *([None], [0, 1, 2], ["e2e4"], {"x" * 300: 0}),
)
"""Replacements for values in JSON: each kind, numbers that are none, long and deep values."""


def places(document: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a document."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        found.extend((each, key) for key in keys)
        waiting.extend(each[key] for key in keys)
    return found


def bent_document(rng: random.Random, document: Any) -> Any:
    """Return a copy of what JSON can have, after a few changes of its values and fields."""
    top = {"": copy.deepcopy(document)}
    for _ in range(min(1 + int(rng.expovariate(0.8)), 6)):
        found = places(top)
        holder, key = rng.choice(found)
        change, value = rng.randrange(8), copy.deepcopy(rng.choice(VALUES))
        if change < 4:
            holder[key] = value
        elif change == 4 and isinstance(holder, dict) and holder is not top:
            del holder[key]
        elif change == 5 and isinstance(holder, dict) and holder is not top:
            holder[rng.choice(("extra", "", str(key) + "_", "fen", "format"))] = value
        elif change == 6 and isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), rng.choice(holder))
        else:
            other, name = rng.choice(found)
            holder[key] = copy.deepcopy(other[name])
        if not top:
            top[""] = None
    return top[""]


def bent_json(rng: random.Random, data: bytes, plain: Plain) -> bytes:
    """Return a document, changed as one, as text, or as both."""
    kind = rng.random()
    if kind < 0.75:
        data = json.dumps(bent_document(rng, json.loads(data)), indent=rng.choice((None, 1))).encode()
    return data if kind < 0.6 else plain(data)


# -- NumPy archives ----------------------------------------------------------------------------------------


class _Harmful:
    """An object that runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return print, ("unpickled",)


def archive(members: Mapping[str, bytes], bombs: Mapping[str, int] | None = None) -> bytes:
    """Return a zip file of members; of a bomb, a compressed megabyte claims to be so many of them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as whole:
        for name, data in members.items():
            size = (bombs or {}).get(name)
            info = zipfile.ZipInfo(f"{name}.npy")
            if size is None:
                whole.writestr(info, data)
                continue
            packer = zlib.compressobj(9, wbits=-15)
            block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
            start = zlib.compressobj(9, wbits=-15)
            first = start.compress(data) + start.flush(zlib.Z_FULL_FLUSH)
            whole.writestr(info, first + block * size)
            # Only the directory claims it, and readers believe it.
            info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, len(data) + (size << 20)
    return file.getvalue()


def _array_bytes(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def _head(shape: tuple[int, ...], descr: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of what `write_archive` writes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return json.loads(bytes(file["header"])), {name: file[name] for name in file if name != "header"}


def packed(header: Any, arrays: Mapping[str, Any]) -> bytes:
    """Return an archive as `write_archive` writes it."""
    return archive(_members(header, arrays))


def _members(header: Any, arrays: Mapping[str, Any]) -> dict[str, bytes]:
    whole = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays}
    return {name: _array_bytes(array) for name, array in whole.items()}


def bent_archive(
    rng: random.Random,
    data: bytes,
    plain: Plain,
    mend: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
) -> bytes:
    """Return an archive with a JSON header, after changes of the header, of arrays, or of members.

    Args:
      rng: what is drawn from.
      data: of `write_archive`.
      plain: changes any bytes.
      mend: brings a changed header in line with changed arrays, such as a fingerprint.
    """
    kind = rng.random()
    if kind < 0.2:
        return plain(data)
    header, arrays = unpacked(data)
    if kind < 0.45:
        header = bent_document(rng, header)
    if kind > 0.4:
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice(sorted(arrays))
            arrays[name] = _bent_array(rng, arrays[name])
    if mend is not None and isinstance(header, dict) and rng.random() < 0.8:
        mend(header, arrays)
    members = _members(header, arrays)
    bombs: dict[str, int] = {}
    if kind > 0.85:
        name = rng.choice(sorted(members))
        which = rng.randrange(6)
        if which == 0:
            members[name] = _array_bytes(np.array([_Harmful()], object), allow_pickle=True)
        elif which == 1:  # a gigabyte and more of zeros in a megabyte
            bombs[name] = rng.choice((1200, 3000))
            members[name] = _head((bombs[name] << 20,), "|u1")
        elif which == 2:
            members[name] = plain(members[name])
        elif which == 3:
            del members[name]
        else:  # a shape or a type that its data does not have
            shapes = ((8,), (1 << 40,), (1 << 62, 4), (-1,), (1 << 31, 1 << 31), (0, 1 << 62), (1,) * 40)
            types = ("<f8", "|u1", "<i4", "|O", "<U9999999", "|S0", "|V8", "<M8[s]", "<f2")
            members[name] = _head(rng.choice(shapes), rng.choice(types)) + bytes(64)
    return archive(members, bombs)


def _bent_array(rng: random.Random, array: Any) -> Any:
    change = rng.randrange(7)
    array = array if array.ndim else array[None]
    if change < 4 and array.size and array.dtype.kind != "U":
        array = array.copy()
        for _ in range(rng.choice((1, 1, 2, 8))):
            odd: list[Any] = [0, 1, -1, 2, len(array), len(array) - 1]
            if array.dtype.kind == "f":
                odd += [float("nan"), float("inf"), -float("inf"), 1e308, 0.5, -0.5, 5e-324]
            elif array.dtype.kind in "iu":
                odd += [np.iinfo(array.dtype).max, np.iinfo(array.dtype).min, rng.randrange(len(array))]
            array.flat[rng.randrange(array.size)] = np.array(rng.choice(odd)).astype(array.dtype)
        return array
    if change == 4 and array.dtype.kind != "U":
        return array.astype(rng.choice(("f4", "f8", "i1", "i8", "u8", "c16", "?", "U8")))
    if change == 5:
        return rng.choice((array[:-1], array[:0], array[None], np.concatenate((array, array)), array[::-1]))
    return np.array(rng.choice((0, 1.5, "text", [], [[1]])))


# -- SQLite ------------------------------------------------------------------------------------------------


def bent_database(rng: random.Random, data: bytes, plain: Plain, texts: Sequence[str]) -> bytes:
    """Return a SQLite file after changes of its bytes, values, tables, or marks; some values are texts."""
    if rng.random() < 0.25:
        return plain(data)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(data)
    connection.execute("PRAGMA writable_schema=1")
    names = sorted(tables(connection))
    for _ in range(rng.choice((1, 1, 2, 3))):
        with contextlib.suppress(sqlite3.Error):  # a change that another one has made impossible
            _change_database(rng, connection, rng.choice(names), texts)
    data = connection.serialize()
    connection.close()
    return data if rng.random() < 0.9 else plain(data)


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of the tables of a database."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


HARM = (
    "CREATE TRIGGER harm AFTER INSERT ON {table} BEGIN SELECT load_extension('/etc/passwd'); END",
    "CREATE TRIGGER harm BEFORE UPDATE ON {table} BEGIN SELECT writefile('/var/tmp/written', 'x'); END",
    "CREATE TRIGGER harm AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
    "DROP TABLE {table}; CREATE VIEW {table} AS SELECT load_extension('/etc/passwd') AS x",
    # A view in place of a table, whose rows never end.
    "DROP TABLE {table}; CREATE VIEW {table} AS WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {endless} FROM n",
    "CREATE INDEX harm ON {table} (upper(load_extension))",
    "CREATE VIRTUAL TABLE harm USING fts5(x)",
    "PRAGMA writable_schema=1; UPDATE sqlite_master SET sql = 'CREATE TABLE x (a DEFAULT (readfile(''x'')))'",
    "DROP TABLE {table}",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    *(f"PRAGMA {mark} = 65536" for mark in ("application_id", "user_version", "page_size", "auto_vacuum")),
)
"""Changes of a table, for `harm`."""


def harm(connection: sqlite3.Connection, change: str, table: str, columns: Sequence[str]) -> None:
    """Change a database by SQL of `HARM`."""
    endless = ", ".join(f"hex(zeroblob(i * 1000000)) AS {name}" for name in columns)
    connection.executescript(change.format(table=table, column=columns[0], endless=endless))


def _change_database(
    rng: random.Random, connection: sqlite3.Connection, table: str, texts: Sequence[str]
) -> None:
    columns = tables(connection).get(table)
    if not columns:  # a table that another change has dropped
        return
    if rng.random() < 0.5:
        return harm(connection, rng.choice(HARM), table, rng.sample(columns, len(columns)))
    column = rng.choice(columns)
    odd: Any = rng.choice(
        (
            *(None, 0, -1, 1, 2**62, -(2**63), 0.5, 1e308, float("inf"), b"", b"\xff\0", "", "x" * 20000),
            *("\0", "1", "\u2028", "e2e4:1", "a\nb", "[" * 3000, "9" * 5000, *texts),
        )
    )
    value = rng.choice(("?", "?", "CAST(? AS TEXT)"))
    of = rng.choice(("", "", f" WHERE {column} LIKE '%1%'"))
    connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}{of}", (odd,))
    return None


# -- any file ----------------------------------------------------------------------------------------------


def changed(
    rng: random.Random,
    data: bytes,
    plain: Plain,
    words: Sequence[bytes] = (),
    suffix: str = "",
    mend: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
) -> bytes:
    """Return a file, changed as its kind is, which a suffix names; a file of no such kind, as bytes."""
    try:
        if suffix == ".json":
            return bent_json(rng, data, plain)
        if suffix == ".npz":
            return bent_archive(rng, data, plain, mend)
        if suffix == ".sqlite":
            texts = [word.decode("utf-8", "surrogateescape") for word in words]
            return bent_database(rng, data, plain, texts)
    except (ValueError, KeyError, IndexError, OSError, RecursionError, zipfile.BadZipFile, sqlite3.Error):
        pass
    return plain(data)
