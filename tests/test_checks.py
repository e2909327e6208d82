"""Checks of arguments by signatures: `precomp_games._support.checks`."""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import precomp_games
from precomp_games._support import checks
from precomp_games._support.checks import (
    INFINITE,
    ArgumentError,
    Check,
    Ge,
    Gt,
    Le,
    Lt,
    Player,
    Seed,
    each_of,
    one_of,
    public,
)


def even(value, name):
    if value % 2:
        raise ArgumentError(f"expected {name} to be even, got {value}")
    return value


_BOUNDED, _SHARE = Annotated[int, Ge(0), Le(9)], Annotated[float, Gt(0.0), Lt(1.0)]
_PRICE = Annotated[float, Ge(0.0), INFINITE] | None
_COLOR = Annotated[str, one_of(("red", "blue"))]
_ARRAYS = Annotated[Iterable[np.ndarray], each_of(np.ndarray)]
_EVEN = Annotated[Any, Check(even)]


def called(annotation, value):
    def function(given):
        return given

    function.__annotations__["given"] = annotation
    return public(function)(value)


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (int, np.int8(3), 3),
        (_BOUNDED, 9, 9),
        (_SHARE, np.float32(0.5), 0.5),
        (_PRICE, math.inf, math.inf),
        (_PRICE, None, None),
        (Literal["yes", "no"], "no", "no"),
        (bool, np.True_, True),
        (str | None, "a", "a"),
        (_COLOR, "blue", "blue"),
        (dict | list | None, [1], [1]),
        (
            Mapping[str, int],
            {"what is in it": "is left to the function"},
            {"what is in it": "is left to the function"},
        ),
        (dict[int, int] | None, None, None),
        (_ARRAYS, [], ()),
        (Callable[[int], int] | None, abs, abs),
        (Sequence[int] | np.ndarray, "left to the function", "left to the function"),
        (Player, np.int64(1), 1),
        (Seed, [1, np.int64(2)], [1, 2]),
        (_EVEN, 4, 4),
        (Any, called, called),
    ],
)
def test_what_is_taken_is_kept_in_its_plain_type(annotation, value, kept):
    got = called(annotation, value)
    assert got == kept and type(got) is type(kept)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, True, "to be an integer, got True"),
        (_BOUNDED, 10, "to be an integer from 0 to 9, got 10"),
        (_SHARE, 1, "to be a positive number below 1, got 1"),
        (_SHARE, None, "to be a positive number below 1, got None"),
        (_PRICE, math.nan, "to be a number of at least 0, got nan"),
        (Literal["yes", "no"], "maybe", 'to be one of "yes", "no", got \'maybe\''),
        (bool, 1, "to be True or False, got 1"),
        (str | None, 3, "to be a str, got 3"),
        (_COLOR, "green", 'to be one of "red", "blue", got \'green\''),
        (_COLOR, 1, 'to be one of "red", "blue", got 1'),
        (dict | list | None, 3, "to be a dict or a list, got 3"),
        (Mapping[str, int], [1], "to be a Mapping, got [1]"),
        (dict[int, int] | None, 1, "to be a dict, got 1"),
        (_ARRAYS, "abc", "to be ndarrays, got 'abc'"),
        (_ARRAYS, 1, "to be ndarrays, got 1"),
        (_ARRAYS, [1], "to be a ndarray, got 1"),
        (Callable[[int], int] | None, 3, "to be a function, got 3"),
        (Player, 2, "0 or 1, got 2"),
        (Seed, -1, "to be an integer of at least 0, or a sequence of them, got -1"),
        (_EVEN, 3, "to be even, got 3"),
    ],
)
def test_what_is_refused(annotation, value, words):
    with pytest.raises(ValueError, match=rf"function\(\): expected given {re.escape(words)}$"):
        called(annotation, value)


class Thing:
    @public
    def __init__(self, size: Annotated[int, Ge(1)]) -> None:
        self.size = size

    @classmethod
    @public
    def of(cls, size: int) -> "Thing":
        return cls(size)

    @public
    def grow(self, by: int, *more: int, **named: int) -> int:
        return self.size + by + sum(more) + sum(named.values())


class Part(Thing):
    pass


@public
@dataclasses.dataclass(frozen=True)
class Pair:
    first: Annotated[float, Ge(0.0)]
    second: "Annotated[int, Le(9)] | None" = None

    def __post_init__(self):
        assert type(self.first) is float


_PAIR = Pair(np.int8(1), np.int8(9))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Thing(0), r"Thing\(\): expected size to be an integer of at least 1, got 0"),
        (lambda: Part(0), r"Part\(\): expected size to be an integer of at least 1, got 0"),
        (lambda: Thing.of(0), r"Thing.of\(\): expected size to be an integer of at least 1, got 0"),
        (lambda: Thing(1).grow("x"), r"Thing\.grow\(\): expected by to be an integer, got 'x'"),
        (lambda: Pair(1.0, 10), r"Pair\(\): expected second to be an integer of at most 9, got 10"),
        (
            lambda: dataclasses.replace(_PAIR, second=10),
            r"Pair\(\): expected second to be .* of at most 9, got 10",
        ),
    ],
)
def test_the_outer_function_is_named(call, words):
    with pytest.raises(ValueError, match=f"^{words}$"):
        call()


def test_calls_are_pythons():
    assert type(_PAIR.first) is float and type(_PAIR.second) is int
    assert Thing(1).grow(np.int8(2), 3, by_name=4) == 10
    with pytest.raises(TypeError, match="positional argument"):
        Thing.of(1, 2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Thing.of(sise=2)


def test_all_annotations_can_be_read():
    found = {}
    for module in pkgutil.walk_packages(precomp_games.__path__, "precomp_games."):
        for thing in vars(importlib.import_module(module.name)).values():
            for member in [thing, *(vars(thing).values() if inspect.isclass(thing) else ())]:
                function = getattr(member, "__func__", member)
                if hasattr(function, "_reads_annotations"):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    assert len(found) > 200
    for name, function in found.items():
        try:
            checks.checks_of(function)
        except NameError as error:
            pytest.fail(f"{name}: {error}; what a public function takes is imported where it runs")
