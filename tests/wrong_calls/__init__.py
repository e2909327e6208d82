"""Wrong calls of public functions and methods, from tables of what their parameters take.

A module here holds the table of one face of the library:

    def table():
        return {
            "seed": 1,
            "state": Arg(in_progress(), finished(), of_another_game()),
            "SearchBot.state": Arg(in_progress(), finished()),
            "SearchBot()": SearchBot(Answers()),
        }

Names are those of parameters. Each function that is exported is called with the values of its parameters,
which works, and with what they cannot be, one at a time. So a new function needs an entry for a parameter
only if its name is new. Where it means something else, its entry is "function.parameter"; before "parameter"
go "Class.method.parameter", "method.parameter" (of all classes) and "Class.parameter" (of its constructor and
methods), too. What is optional, and checked by the signature, keeps its default if it has no entry.

Methods are called on "Class()", or on the table's first value of this class, or on one that is made of the
values of the constructor's parameters. "function()" is called in place of a function.

Annotations in signatures are checked by `precomp_games._support.checks`, whose kinds of checks have tests of
their own: one wrong value shows that it is asked. For arrays, policies, states, and arguments that must
fit each other, `wrong_values` makes many; a table adds those that nobody would guess.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import importlib
import inspect
import math
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from precomp_games._support.checks import checks_of

FACES = {
    "precomp_games": "core",
    "precomp_games.algorithms": "algorithms",
    "precomp_games.algorithms.efce": "efce",
    "precomp_games.algorithms.lookahead": "lookahead",
    "precomp_games.algorithms.search": "search",
    "precomp_games.chess": "chess",
}
"""Modules of the tables, by face."""

_MADE = "made by the library"
_MENU = "what expansions ask, with states of their own"

EXEMPT = {
    "precomp_games:Menu.entries_batch": _MENU,
    "precomp_games:NetworkPolicy.action_probabilities_batch": _MENU,
    "precomp_games.algorithms.efce:Resolving": _MADE + ": of(), of_subgames() and deeper()",
}
"""Public names that are not called, and why; results, protocols and errors go without saying."""


class Nothing:
    """An object that is nothing anybody expects."""

    def __repr__(self) -> str:
        return "<nothing>"


NOTHING = Nothing()


class Arg:
    """Values that a parameter accepts and values that it refuses.

    fine: what is generated as wrong and is rightly accepted; `...`: whatever it may be.
    """

    def __init__(self, good: Any, *wrong: Any, fine: Any = ()) -> None:
        self.good, self.wrong, self.fine = good, wrong, fine


@dataclasses.dataclass(frozen=True)
class Call:
    """A call that works, of "face:function", "face:Class" or "face:Class.method"."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Arg]

    @property
    def good(self) -> dict[str, Any]:
        return {name: argument.good for name, argument in self.arguments.items()}

    @property
    def keys(self) -> set[str]:
        """All that the table may have for it."""
        path = self.name.partition(":")[2]
        parameters = inspect.signature(self.function).parameters
        values = {key for parameter in parameters for key in keys_of(path, parameter)}
        return values | {f"{path}()", f"{path.partition('.')[0]}()"}

    @property
    def errors_name(self) -> str:
        """Return the name that an error must contain: of the function, the method, or the class."""
        return self.name.partition(":")[2].rpartition(".")[2]


def answering(*answers: Any) -> list[Callable[[Any], Any]]:
    """Functions of a state, each with its answer."""
    return [lambda state, answer=answer: answer for answer in answers]


@functools.cache
def folder() -> pathlib.Path:
    """Return a folder that lives as long as the tests."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    return pathlib.Path(made.name)


@functools.cache
def table(face: str) -> dict[str, Any]:
    made: dict[str, Any] = importlib.import_module(f"{__name__}.{FACES[face]}").table()
    return made


def calls(face: str) -> Iterator[Call]:
    """Yield a call of each function of a face, and of each constructor and method of its classes."""
    for path in public_paths(face):
        if f"{face}:{path}" not in EXEMPT:
            function = _function(face, path)
            yield Call(f"{face}:{path}", function, dict(_arguments(face, path, function)))


def public_paths(face: str) -> Iterator[str]:
    """Yield the public callables of a face: "function", "Class", "Class.method".

    A face may show what is another one's. Data that check nothing are results and errors, which the library
    makes; nobody makes protocols.
    """
    module = importlib.import_module(face)
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing) or face != _home(name, thing) or getattr(thing, "_is_protocol", False):
            continue
        if not inspect.isclass(thing):
            yield name
            continue
        is_data = dataclasses.is_dataclass(thing) or issubclass(thing, tuple | Exception)
        if not is_data or hasattr(thing.__init__, "_reads_annotations"):
            yield name
        yield from (f"{name}.{method}" for method, what in vars(thing).items() if _is_method(method, what))


def _home(name: str, thing: Any) -> str:
    """Return the last face that has it: `precomp_games.algorithms` shows what stands in its parts."""
    return [face for face in FACES if getattr(importlib.import_module(face), name, None) is thing][-1]


def _is_method(name: str, what: Any) -> bool:
    """Return whether it is a public method with parameters."""
    is_static = isinstance(what, staticmethod)
    function = what.__func__ if isinstance(what, classmethod | staticmethod) else what
    if name.startswith("_") or not inspect.isfunction(function):
        return False
    return len(inspect.signature(function).parameters) > (not is_static)


def _function(face: str, path: str) -> Callable[..., Any]:
    """Return the callable of a path, bound if it is a method."""
    name, _, method = path.partition(".")
    thing = getattr(importlib.import_module(face), name)
    if f"{path}()" in table(face) and (method or not inspect.isclass(thing)):
        return table(face)[f"{path}()"]
    if not method:
        return thing
    is_bound = isinstance(vars(thing)[method], classmethod | staticmethod)
    return getattr(thing if is_bound else _object(face, name, thing), method)


def _object(face: str, name: str, kind: type) -> Any:
    """Return the object that methods of a class are called on."""
    values = table(face)
    if f"{name}()" in values:
        return values[f"{name}()"]
    for value in values.values():
        if type(_argument(value).good) is kind:
            return _argument(value).good
    return kind(**{key: each.good for key, each in _arguments(face, name, kind)})


def keys_of(path: str, parameter: str) -> list[str]:
    """Return the keys under which a table may have a parameter's values, the most special first."""
    name, _, method = path.partition(".")
    return [f"{path}.{parameter}", f"{method}.{parameter}", f"{name}.{parameter}", parameter]


def _argument(value: Any) -> Arg:
    return value if isinstance(value, Arg) else Arg(value)


def _arguments(face: str, path: str, function: Callable[..., Any]) -> Iterator[tuple[str, Arg]]:
    values, checks = table(face), checks_of(function)
    for parameter in inspect.signature(function).parameters.values():
        found = [values[key] for key in keys_of(path, parameter.name) if key in values]
        if found:
            yield parameter.name, _argument(found[0])
        elif parameter.default is parameter.empty or parameter.name not in checks:
            raise LookupError(
                f"{face}: {path}() takes {parameter.name}, of which {FACES[face]}.py knows nothing: "
                f"give it a value under {parameter.name!r} or {f'{path}.{parameter.name}'!r}"
            )


def wrong_values(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield (argument, what it cannot be) for each argument of a call that works."""
    checks = checks_of(call.function)
    for name, parameter in inspect.signature(call.function).parameters.items():
        argument = call.arguments.get(name)
        if name in checks:
            yield name, NOTHING
        elif argument is not None and argument.fine is not ...:
            for wrong in _generated(argument.good, parameter.default):
                if not any(_same(wrong, accepted) for accepted in argument.fine):
                    yield name, wrong
        if argument is not None:
            yield from ((name, wrong) for wrong in argument.wrong)


def _generated(value: Any, default: Any) -> list[Any]:
    """Return values to try as wrong ones in place of a value that is accepted."""
    tried: list[Any] = [NOTHING, math.nan, math.inf, -math.inf, -1, 0.5]
    tried += ["nonsense", (1, 2, 3), {"a": "b"}, b"\0\1"]
    if default is not None:
        tried.append(None)
    if isinstance(value, np.ndarray) and value.ndim:
        tried += [value[:-1], np.full(value.shape, np.nan), [*value.tolist(), "x"], value[None]]
        tried += [value + 1j, np.ma.masked_array(value, True), value.astype(str), value.astype(str).tolist()]
    elif isinstance(value, list | tuple) and value:
        tried += [[NOTHING] * len(value), [math.nan] * len(value), [*value, NOTHING]]
    elif isinstance(value, bool):
        tried += [2, "yes"]
    elif isinstance(value, int | np.integer):
        tried += [True, np.nan, 10**30, -(10**30), 1.5, str(value), [value]]
    elif isinstance(value, float):
        tried += [True, -value if value else -1.0, str(value), [value], 1e308 * 10, complex(value, 1)]
    elif isinstance(value, str):
        tried += [value + "?", "", b"bytes", 7]
    return tried


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    try:
        return bool(np.all(a == b))
    except Exception:
        return a is b
