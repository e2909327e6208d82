"""Kernels: functions that numba compiles, once for each machine and user.

numba keeps what it compiled beside the source, so that every clone, every CI run and every installed wheel
compiles everything anew. `kernel` keeps it in the user's cache folder, `$XDG_CACHE_HOME/precomp-games` or
`~/.cache/precomp-games`, under a digest of the module's text and of the modules of all kernels that it calls.
Wherever that text stands, its kernels are found; and a change of a called kernel in another module, which
numba itself does not notice, is noticed.

`NUMBA_CACHE_DIR` and `NUMBA_CACHE_LOCATOR_CLASSES` mean what they mean to numba. Where the folder cannot be
written, numba's own choice follows (beside the source); where nothing can be, kernels are compiled in every
process. The cache is made of numba's private classes, since numba's settings are for all kernels of a process
or for none.

The first calls after an installation take some seconds more than all later ones, and without a word they look
as if they hung. One line of the logger "precomp_games" reports it; Python writes it to stderr where nothing
else is set up. It is silent when all is in the cache, and in processes that others started, such as workers.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import multiprocessing
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, config, event, types
from numba.core.dispatcher import Dispatcher

_LOGGER = logging.getLogger("precomp_games")
_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def kernel(function: _Kernel) -> _Kernel:
    """Compile a function with numba when it is first called, or find it compiled.

    Args:
      function: of a module of this library, after the kernels that it calls.
    """
    compiled: Any = numba.njit(nogil=True)(function)
    compiled.get_call_template = functools.partial(_call_template, compiled)
    with contextlib.suppress(RuntimeError):  # nowhere to write
        compiled._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast(_Kernel, compiled)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to, for what a kernel reads and some callers may not write.

    numba compiles a kernel once for such arrays and once for others.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def _call_template(compiled: Any, given: Sequence[types.Type], by_name: Mapping[str, types.Type]) -> Any:
    """Return the template of a call by another kernel, with literal numbers taken as any of their type.

    Otherwise numba would compile the kernel anew for each such number.
    """
    given = [types.unliteral(each) for each in given]
    by_name = {name: types.unliteral(each) for name, each in by_name.items()}
    return type(compiled).get_call_template(compiled, given, by_name)


class _UserFolder(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """Cache locator that points numba to the user's folder."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._stamp = _stamp(function)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        given: Any = config  # its settings are made when it is imported
        return None if given.CACHE_DIR else super().from_function(function, file)  # type: ignore[no-untyped-call]

    def get_cache_path(self) -> str:
        given = os.environ.get("XDG_CACHE_HOME", "")
        home = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
        return os.path.join(home, "precomp-games", f"{pathlib.Path(self._py_file).stem}-{self._stamp}")

    def get_source_stamp(self) -> str:
        return self._stamp


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_UserFolder, *caching.CompileResultCacheImpl._locator_classes]  # noqa: RUF012


class _Cache(caching.FunctionCache):
    _impl_class = _Implementation


def _stamp(function: Callable[..., Any]) -> str:
    """Return a digest of all that what is compiled depends on."""
    digest = hashlib.blake2b(digest_size=16)
    for part in sorted(_parts(function)):
        digest.update(part)
    return digest.hexdigest()


def _parts(function: Callable[..., Any]) -> set[bytes]:
    """Return the modules of a function, of all kernels that it calls and of named tuples that it takes.

    Their texts: where fields stand in a named tuple is compiled in like a number. Their names: numba keeps
    them, and would look for a module that has moved. And its constants.
    """
    parts = {numba.__version__.encode(), *_module(function)}
    for name in {*function.__code__.co_names, *map(str, function.__annotations__.values())}:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            if value.py_func is not function and value.py_func.__module__ != function.__module__:
                parts |= _parts(value.py_func)
        elif isinstance(value, bool | int | float | str):
            parts.add(f"{name}={value!r}".encode())
        elif inspect.isclass(value) and issubclass(value, tuple):
            parts |= _module(value)
    return parts


def _module(defined: Any) -> set[bytes]:
    """Return the name and the text of the module that defines a function or a class."""
    return {str(defined.__module__).encode(), _text(inspect.getfile(defined))}


@functools.cache
def _text(file: str) -> bytes:
    return hashlib.blake2b(pathlib.Path(file).read_bytes()).digest()


class _Announcement(event.Listener):  # type: ignore[misc,unused-ignore]
    """Listener to numba's compiler, which loads from the cache without an event."""

    def __init__(self) -> None:
        self._said = multiprocessing.parent_process() is not None

    def on_start(self, event: event.Event) -> None:
        if not self._said and event.data["dispatcher"].py_func.__module__.startswith("precomp_games."):
            self._said = True
            _LOGGER.warning("precomp_games: compiling with numba, which takes some seconds the first time")

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcement())
