"""Writing files so that a reader never sees half of one.

Results take hours of engine time, so a file of ours is either the old one or the whole new one,
whatever happens in between: it is written under another name in the same folder (a rename is atomic
only within one file system), flushed to the disk, and renamed over its target.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pathlib
import pickle
import secrets
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public, shown

_DEEPEST = 40  # lists and objects in each other, in JSON


@public
def atomic_write(path: checks.FilePath, mode: Literal["w", "wb"] = "w") -> AbstractContextManager[IO[Any]]:
    """Open a file for writing that replaces `path` when the `with` block ends well.

    If the block raises, `path` is left as it was and nothing remains beside it. (A process killed
    with SIGKILL leaves a hidden `.name.*.tmp` behind, never a damaged `path`.) Text is UTF-8, and
    lines end with a line feed on every platform. A new file gets the permissions that `open` would
    give it; a file that exists keeps its own. A symbolic link is followed, as `open` does.

    Args:
      path: the file to write; its folder must exist.
      mode: "w" for text, "wb" for bytes.

    Returns:
      A context manager that gives the open file; the caller must not close it.

    Raises:
      ValueError: another mode, or `path` names something that is no plain file.
      FileNotFoundError, NotADirectoryError: the folder does not exist, or is none.
      OSError: as `open`, e.g. for a folder that may not be written to.
    """
    # Checked here rather than on entering, so that the error shows the line that named the file.
    # Replacing a link, a device or a pipe by a plain file is not what "write to it" means.
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.exists(folder):
        raise FileNotFoundError(f"expected a file in a folder that exists, got {os.fspath(path)!r}")
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"expected a file in a folder, got {os.fspath(path)!r}")
    if os.path.exists(target) and not os.path.isfile(target):
        raise ArgumentError(f"expected the path of a plain file, got {os.fspath(path)!r}")
    return _replacing(target, folder, name, mode)


@contextlib.contextmanager
def _replacing(target: str, folder: str, name: str, mode: str) -> Iterator[IO[Any]]:
    """Yield a file under a temporary name in `folder`; then rename it to `target`."""
    # File systems allow 255 bytes for a name; the target's is cut so that ours fits whenever its
    # own does.
    prefix = os.fsdecode(os.fsencode(name)[:200])
    temporary = os.path.join(folder, f".{prefix}.{secrets.token_hex(8)}.tmp")
    # Not tempfile: it makes files that only their owner may read, and asking for the umask means
    # changing it, for every thread. The kernel applies it to a file that is opened like this.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with os.fdopen(descriptor, mode, **text) as file:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not name the file
            error.filename = target
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make the rename itself survive a power cut, where the system can do that."""
    # Some systems and network file systems cannot open or sync a folder; the file is complete
    # either way.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@public
def write_together(folder: checks.FilePath) -> AbstractContextManager[pathlib.Path]:
    """Open a folder for drafts of files that belong together; `folder` gets all of them or none.

    If the `with` block ends well, every draft replaces the file of its name in `folder`; if it raises,
    nothing there has changed.

    Args:
      folder: where the files go; it must exist.

    Returns:
      A context manager that gives the folder to write them in, which is gone at the end.

    Raises:
      ValueError: `folder` is no path.
      OSError: it does not exist, or may not be written to.
    """
    return _moving(os.fspath(folder))


@contextlib.contextmanager
def _moving(folder: str) -> Iterator[pathlib.Path]:
    """Yield a folder inside `folder`; then moves what is in it there."""
    # Inside, since a rename is atomic only within one file system.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
        drafts = pathlib.Path(name)
        yield drafts
        for path in sorted(drafts.iterdir()):
            os.replace(path, os.path.join(folder, path.name))
    _sync_folder(folder)


def read_json(path: str | os.PathLike[str], most: int | None = None) -> dict[str, Any]:
    """Read a JSON object, of which nothing is trusted: its reader checks each field.

    Args:
      path: the file.
      most: bytes that it may have at most.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no such object, or its lists and objects stand in each other too deeply.
    """
    with open(path, "rb") as file:
        raw = file.read() if most is None else file.read(most + 1)
    try:
        if most is not None and len(raw) > most:
            raise ValueError(f"more than {most} bytes")
        found = json.loads(raw.decode("utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"no JSON object, but {shown(found)}")
        inner: list[Any] = [found]
        for _ in range(_DEEPEST):
            parts = [each.values() if isinstance(each, dict) else each for each in inner]
            inner = [each for part in parts for each in part if isinstance(each, dict | list)]
        if inner:
            raise ValueError(f"more than {_DEEPEST} lists and objects in each other")
    except (ValueError, RecursionError) as error:
        raise ValueError(one_line(repr(error))) from None
    return found


def write_archive(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays with a JSON header as a NumPy archive (.npz), whole or not at all."""
    with atomic_write(path, "wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


def read_archive(
    path: str | os.PathLike[str], names: Iterable[str], optional: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the header and the named arrays of what `write_archive` wrote; nothing is unpickled.

    Args:
      path: the file.
      names: of the arrays.
      optional: names of arrays that need not be there.

    Raises:
      OSError: the file cannot be opened.
      ValueError: whatever else is wrong with it; zipfile and numpy raise nearly anything.
    """
    with open(path, "rb") as file:
        try:  # from here on, whatever goes wrong is the file's contents
            with zipfile.ZipFile(file) as archive:
                members, size = set(archive.namelist()), os.fstat(file.fileno()).st_size
                header = json.loads(bytes(_array(archive, "header", size)))
                given = [*names, *(name for name in optional if f"{name}.npy" in members)]
                arrays = {name: _array(archive, name, size) for name in given}
            if not isinstance(header, dict):
                raise ValueError("the header is no JSON object")
        except Exception as error:
            raise ValueError(one_line(error)) from error
    return header, arrays


def _array(archive: zipfile.ZipFile, name: str, size: int) -> npt.NDArray[Any]:
    """Return an array of plain numbers or text, checked against the file's size, not its header's claim.

    Raises:
      ValueError: there is another kind of data, or a shape that the data does not have.
      LookupError: there is no such array.
    """
    member = archive.getinfo(f"{name}.npy")
    claimed = max(member.file_size, member.compress_size)  # a megabyte may hold gigabytes, or claim to
    if member.compress_type != zipfile.ZIP_STORED or claimed > size:
        raise ValueError(f"{name} is compressed")
    data = archive.read(member)
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{name} is of format {version}")
    shape, by_columns, kind = np.lib.format.read_array_header_1_0(file)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(data) - file.tell():
        raise ValueError(f"{name} is not {shown(kind)}{shown(shape)}")
    order: Any = "F" if by_columns else "C"
    return np.ndarray(shape, kind, data, file.tell(), order=order).copy()


# -- what comes along if it can ---------------------------------------------------------------------------


def packed(thing: Any) -> bytes | None:
    """Return the pickle of what is to come along with a tree or a book if it can; None where it cannot.

    Users' policies and games may be anything: functions without a name, engines, or games that OpenSpiel
    pickles as a string which does not load. They must not keep what they belong to from another process.
    """
    try:
        return pickle.dumps(thing)
    except Exception:  # objects raise what they like
        return None


def unpacked(data: bytes | None) -> Any:
    """Return the object that `packed` was given, or None if it cannot be restored here.

    This process may lack a module, a registered game or a file that the other one had.
    """
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # as above
        return None
