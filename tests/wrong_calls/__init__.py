"""Wrong calls of public functions and methods, for what their signatures do not say.

What signatures say is checked by `precomp_games.arguments`, whose kinds of checks have tests of their own. A
module here holds calls that work, one `@good_call` for each function or method that takes more: arrays,
policies, states, arguments that must fit each other. `wrong_values` makes many of each that must be refused:
one argument at a time is replaced by what it cannot be. `fine` names what would be tried and is rightly
accepted.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from precomp_games.arguments import checks_of
from tests.dask_clusters import cluster_address

__all__ = ["GOOD_CALLS", "GoodCall", "cluster_address", "good_call", "wrong_values"]


class Nothing:
    """An object that is nothing anybody expects."""

    def __repr__(self) -> str:
        return "<nothing>"


NOTHING = Nothing()


@dataclasses.dataclass(frozen=True)
class GoodCall:
    """A call that works.

    name: "module face:qualified name", such as "precomp_games:HistoryTree.find".
    make: returns the function and its arguments by name, all that the generator shall replace.
    fine: {argument: values that are accepted}; `...` in place of the values: not replaced at all.
    more: {argument: further wrong values, or a function that makes them}: another game's, another tree's.
    """

    name: str
    make: Callable[[], tuple[Callable[..., Any], dict[str, Any]]]
    fine: dict[str, Any]
    more: dict[str, Any]

    @property
    def errors_name(self) -> str:
        """What an error must name: the function, the method, or the class that is made."""
        return self.name.partition(":")[2].rpartition(".")[2]


GOOD_CALLS: dict[str, GoodCall] = {}


def good_call(
    name: str, *, fine: dict[str, Any] | None = None, more: dict[str, Any] | None = None
) -> Callable[[Callable[[], tuple[Callable[..., Any], dict[str, Any]]]], None]:
    """Registers what makes a call of `name` that works."""

    def register(make: Callable[[], tuple[Callable[..., Any], dict[str, Any]]]) -> None:
        assert name not in GOOD_CALLS, name
        GOOD_CALLS[name] = GoodCall(name, make, fine or {}, more or {})

    return register


def wrong_values(
    call: GoodCall, function: Callable[..., Any], good: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """(argument, what it cannot be) for each argument of a call that works."""
    parameters, checks = inspect.signature(function).parameters, checks_of(function)
    for name, value in good.items():
        if call.fine.get(name) is ...:
            continue
        further = call.more.get(name, ())
        further = further() if callable(further) else further
        if name in checks:
            yield from ((name, wrong) for wrong in further)
            continue
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        tried: list[Any] = [
            NOTHING,
            math.nan,
            math.inf,
            -math.inf,
            -1,
            0.5,
            "nonsense",
            (1, 2, 3),
            {"a": "b"},
            b"\0\1",
        ]
        if default is not None:
            tried.append(None)
        if isinstance(value, np.ndarray) and value.ndim:
            tried += [value[:-1], np.full(value.shape, np.nan), [*value.tolist(), "x"], value[None]]
            tried += [value + 1j, np.ma.masked_all_like(value), value.astype(str), value.astype(str).tolist()]
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
        tried += list(further)
        fine = call.fine.get(name, ())
        for wrong in tried:
            if not any(_same(wrong, accepted) for accepted in fine):
                yield name, wrong


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    try:
        return bool(np.all(a == b))
    except Exception:
        return a is b
